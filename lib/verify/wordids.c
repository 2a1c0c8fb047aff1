/* wordids.c - numbers the words of two texts: equal words, equal numbers. */
#include "kernel/kernel.h"
#include "verify/runs.h"

#include <stdlib.h>

/* A hash table with open addressing, at most half full. A place holds the word's number + 1 (0: free) and some bits of
 * its hash, which spare most comparisons. */
struct place {
    uint32_t tag, number;
};

struct numbering {
    struct place *table;
    size_t mask;
    struct word {
        const uint8_t *bytes;
        uint32_t length;
    } * words; /* by number */
    uint32_t count;
};

static uint32_t number_of(struct numbering *numbering, struct word word) {
    uint64_t hash = dp_hash_mix(dp_hash_word(word.bytes, word.length));
    uint32_t tag = (uint32_t)(hash >> 32);
    size_t at = hash & numbering->mask;
    for (; numbering->table[at].number; at = (at + 1) & numbering->mask) {
        uint32_t number = numbering->table[at].number - 1;
        const struct word *other = &numbering->words[number];
        if (numbering->table[at].tag == tag && other->length == word.length &&
            !memcmp(other->bytes, word.bytes, word.length))
            return number;
    }
    numbering->words[numbering->count++] = word;
    numbering->table[at] = (struct place){tag, numbering->count};
    return numbering->count - 1;
}

static void number_all(struct numbering *numbering, const dp_word_list *list, uint32_t *ids) {
    for (size_t i = 0; i < list->count; i++) {
        uint32_t start = list->starts[i], length = list->starts[i + 1] - 1 - start;
        ids[i] = number_of(numbering, (struct word){(const uint8_t *)list->text.data + start, length});
    }
}

bool dp_word_ids_init(dp_word_ids *ids, const dp_word_list *a, const dp_word_list *b) {
    size_t all = a->count + b->count, size = 16;
    while (size < 2 * all)
        size *= 2;
    struct numbering numbering = {.mask = size - 1};
    numbering.table = calloc(size, sizeof *numbering.table);
    numbering.words = malloc((all + 1) * sizeof *numbering.words);
    *ids = (dp_word_ids){.a_count = a->count, .b_count = b->count};
    ids->a = malloc((a->count + 1) * sizeof *ids->a);
    ids->b = malloc((b->count + 1) * sizeof *ids->b);
    bool done = numbering.table && numbering.words && ids->a && ids->b;
    if (done) {
        number_all(&numbering, a, ids->a);
        number_all(&numbering, b, ids->b);
    }
    free(numbering.table);
    free(numbering.words);
    return done;
}

void dp_word_ids_free(dp_word_ids *ids) {
    free(ids->a);
    free(ids->b);
}
