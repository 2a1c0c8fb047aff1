/* wordids.c - numbers the words of two texts: equal words, equal numbers. */
#include "kernel/kernel.h"
#include "verify/runs.h"

#include <stdlib.h>

struct word {
    const uint8_t *bytes;
    uint32_t length;
};

struct numbering {
    dp_hashmap map;     /* from the hash of a word to its number + 1 */
    struct word *words; /* by number */
    uint32_t count;
};

/* What a word is compared with: those that have numbers. */
struct comparing {
    const struct word *words;
    struct word word;
};

static bool same_word(const void *user, uint64_t value) {
    const struct comparing *c = user;
    const struct word *other = &c->words[value - 1];
    return other->length == c->word.length && !memcmp(other->bytes, c->word.bytes, other->length);
}

/* There is room for all words. */
static uint32_t number_of(struct numbering *numbering, struct word word) {
    struct comparing c = {numbering->words, word};
    uint64_t *value = dp_hashmap_add_if(&numbering->map, dp_hash_word(word.bytes, word.length), same_word, &c);
    if (!*value) {
        numbering->words[numbering->count++] = word;
        *value = numbering->count;
    }
    return (uint32_t)*value - 1;
}

static void number_all(struct numbering *numbering, const dp_word_list *list, uint32_t *ids) {
    for (size_t i = 0; i < list->count; i++) {
        uint32_t start = list->starts[i], length = list->starts[i + 1] - 1 - start;
        ids[i] = number_of(numbering, (struct word){(const uint8_t *)list->text.data + start, length});
    }
}

bool dp_word_ids_init(dp_word_ids *ids, const dp_word_list *a, const dp_word_list *b) {
    size_t all = a->count + b->count;
    struct numbering numbering = {.words = malloc((all + 1) * sizeof *numbering.words)};
    bool reserved = dp_hashmap_reserve(&numbering.map, all);
    *ids = (dp_word_ids){.a_count = a->count, .b_count = b->count};
    ids->a = malloc((a->count + 1) * sizeof *ids->a);
    ids->b = malloc((b->count + 1) * sizeof *ids->b);
    bool done = reserved && numbering.words && ids->a && ids->b;
    if (done) {
        number_all(&numbering, a, ids->a);
        number_all(&numbering, b, ids->b);
    }
    dp_hashmap_free(&numbering.map);
    free(numbering.words);
    return done;
}

void dp_word_ids_free(dp_word_ids *ids) {
    free(ids->a);
    free(ids->b);
}
