/* runs.c - common runs of words, found through an index of the second text's runs of min_words words.
 *
 * Every run of min_words words has a hash, taken from prefix sums (Karp and Rabin), and a list of the places in B where
 * it stands. For each word of A the list of its run is walked; a place where the words before differ too is the
 * beginning of a run that cannot be made longer to the left, and halving finds its end. Lists are walked to CHAIN
 * places only, so that texts that repeat themselves cost no more than CHAIN steps a word. */
#include "verify/runs.h"
#include "kernel/kernel.h"

#include <stdlib.h>

/* So many places of one run are looked at. A run of five words or more that stands in a text more often is a table or a
 * list; 32 keep a million words of the same under a second or two. */
#define CHAIN 32

/* Ends closer than this are found word by word, without hashes. */
#define NEAR 32

#define NONE UINT32_MAX

/* ---- numbers for words ---- */

struct word {
    uint64_t hash;
    const uint8_t *bytes;
    uint32_t length, id; /* length 0: a free place */
};

static uint32_t word_id(struct word *table, size_t mask, const uint8_t *bytes, uint32_t length, uint32_t *next) {
    uint64_t hash = dp_hash_mix(dp_hash_word(bytes, length));
    size_t at = hash & mask;
    for (; table[at].length; at = (at + 1) & mask)
        if (table[at].hash == hash && table[at].length == length && !memcmp(table[at].bytes, bytes, length))
            return table[at].id;
    table[at] = (struct word){hash, bytes, length, (*next)++};
    return table[at].id;
}

static void number_words(struct word *table, size_t mask, const dp_word_list *list, uint32_t *ids, uint32_t *next) {
    for (size_t i = 0; i < list->count; i++) {
        uint32_t start = list->starts[i], length = list->starts[i + 1] - 1 - start;
        ids[i] = word_id(table, mask, (const uint8_t *)list->text.data + start, length, next);
    }
}

/* A power of two, at least twice `count`. */
static size_t table_size(size_t count) {
    size_t size = 16;
    while (size < 2 * count)
        size *= 2;
    return size;
}

bool dp_word_ids_init(dp_word_ids *ids, const dp_word_list *a, const dp_word_list *b) {
    size_t size = table_size(a->count + b->count);
    struct word *table = calloc(size, sizeof *table);
    *ids = (dp_word_ids){.a_count = a->count, .b_count = b->count};
    ids->a = malloc((a->count + 1) * sizeof *ids->a);
    ids->b = malloc((b->count + 1) * sizeof *ids->b);
    bool done = table && ids->a && ids->b;
    if (done) {
        uint32_t next = 0;
        number_words(table, size - 1, a, ids->a, &next);
        number_words(table, size - 1, b, ids->b, &next);
    }
    free(table);
    return done;
}

void dp_word_ids_free(dp_word_ids *ids) {
    free(ids->a);
    free(ids->b);
}

/* ---- hashes of runs ---- */

/* Polynomials modulo the prime 2^61 - 1: products of two 61-bit numbers fit 128 bits, and the remainder is two folds.
 */
#define PRIME (((uint64_t)1 << 61) - 1)
#define BASE 0x12E15E35B500F16Eu

__extension__ typedef unsigned __int128 uint128;

static uint64_t times(uint64_t a, uint64_t b) {
    uint128 product = (uint128)a * b;
    uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}

struct place {
    uint64_t hash;
    uint32_t first, last; /* places in B; first = NONE: free */
};

struct finder {
    const dp_word_ids *ids;
    size_t min_words;
    uint64_t *sums_a, *sums_b; /* of the words before each one */
    uint64_t *powers;          /* of BASE */
    struct place *table;       /* the distinct runs of min_words words of B */
    size_t mask;
    uint32_t *next; /* the next place in B with the same run */
    dp_common_runs *runs;
};

static uint64_t *sum_words(const uint32_t *ids, size_t count) {
    uint64_t *sums = malloc((count + 1) * sizeof *sums);
    if (!sums)
        return NULL;
    sums[0] = 0;
    for (size_t i = 0; i < count; i++)
        sums[i + 1] = (times(sums[i], BASE % PRIME) + ids[i] + 1) % PRIME;
    return sums;
}

static uint64_t *raise_base(size_t count) {
    uint64_t *powers = malloc((count + 1) * sizeof *powers);
    if (!powers)
        return NULL;
    powers[0] = 1;
    for (size_t i = 0; i < count; i++)
        powers[i + 1] = times(powers[i], BASE % PRIME);
    return powers;
}

static uint64_t hash_run(const struct finder *finder, const uint64_t *sums, size_t at, size_t length) {
    uint64_t before = times(sums[at], finder->powers[length]);
    return sums[at + length] >= before ? sums[at + length] - before : sums[at + length] + PRIME - before;
}

/* How many words are the same from a and b on. */
static size_t common(const struct finder *finder, size_t a, size_t b) {
    const dp_word_ids *ids = finder->ids;
    size_t most = ids->a_count - a < ids->b_count - b ? ids->a_count - a : ids->b_count - b, low = 0;
    while (low < most && low < NEAR && ids->a[a + low] == ids->b[b + low])
        low++;
    if (low < NEAR || low == most)
        return low;
    size_t high = most;
    while (low < high) {
        size_t middle = high - (high - low) / 2;
        if (hash_run(finder, finder->sums_a, a, middle) == hash_run(finder, finder->sums_b, b, middle))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The same to the left: how many words before a and b. */
static size_t common_before(const struct finder *finder, size_t a, size_t b) {
    const dp_word_ids *ids = finder->ids;
    size_t most = a < b ? a : b, low = 0;
    while (low < most && low < NEAR && ids->a[a - low - 1] == ids->b[b - low - 1])
        low++;
    if (low < NEAR || low == most)
        return low;
    size_t high = most;
    while (low < high) {
        size_t middle = high - (high - low) / 2;
        if (hash_run(finder, finder->sums_a, a - middle, middle) ==
            hash_run(finder, finder->sums_b, b - middle, middle))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* ---- the index ---- */

static struct place *find_place(const struct finder *finder, uint64_t hash) {
    size_t at = dp_hash_mix(hash) & finder->mask;
    while (finder->table[at].first != NONE && finder->table[at].hash != hash)
        at = (at + 1) & finder->mask;
    return &finder->table[at];
}

static void index_b(struct finder *finder) {
    for (size_t i = 0; i <= finder->mask; i++)
        finder->table[i].first = NONE;
    for (size_t b = 0; b + finder->min_words <= finder->ids->b_count; b++) {
        uint64_t hash = hash_run(finder, finder->sums_b, b, finder->min_words);
        struct place *place = find_place(finder, hash);
        finder->next[b] = NONE;
        if (place->first == NONE)
            *place = (struct place){hash, (uint32_t)b, (uint32_t)b};
        else
            finder->next[place->last] = (uint32_t)b;
        place->last = (uint32_t)b;
    }
}

static bool finder_init(struct finder *finder) {
    size_t a_count = finder->ids->a_count, b_count = finder->ids->b_count, size = table_size(b_count);
    finder->sums_a = sum_words(finder->ids->a, a_count);
    finder->sums_b = sum_words(finder->ids->b, b_count);
    finder->powers = raise_base(a_count > b_count ? a_count : b_count);
    finder->table = malloc(size * sizeof *finder->table);
    finder->mask = size - 1;
    finder->next = malloc(b_count * sizeof *finder->next);
    if (!finder->sums_a || !finder->sums_b || !finder->powers || !finder->table || !finder->next)
        return false;
    index_b(finder);
    return true;
}

static void finder_free(struct finder *finder) {
    free(finder->sums_a);
    free(finder->sums_b);
    free(finder->powers);
    free(finder->table);
    free(finder->next);
}

/* ---- walking A ---- */

static bool add_run(struct finder *finder, size_t a, size_t b, size_t before) {
    dp_common_runs *runs = finder->runs;
    size_t length = common(finder, a, b) + before;
    if (length < finder->min_words)
        return true;
    if (!dp_reserve(&runs->runs, &runs->capacity, runs->count + 1, sizeof *runs->runs))
        return false;
    runs->runs[runs->count++] = (dp_common_run){(uint32_t)length, (uint32_t)(a - before), (uint32_t)(b - before)};
    return true;
}

/* Adds the runs that begin at word a. Where the words before are the same too, the run was found from there, unless
 * that word's list was not walked to its end (*whole): then this one, if it is, makes good for it. */
static bool add_runs_at(struct finder *finder, size_t a, size_t chain, bool *whole) {
    const dp_word_ids *ids = finder->ids;
    uint64_t hash = hash_run(finder, finder->sums_a, a, finder->min_words);
    uint32_t first = find_place(finder, hash)->first, b = first;
    bool before_whole = *whole;
    size_t places = 0;
    for (; b != NONE && places < chain; b = finder->next[b])
        places++;
    *whole = b == NONE;
    for (b = first; places--; b = finder->next[b]) {
        bool longer = a && b && ids->a[a - 1] == ids->b[b - 1];
        if (longer && (before_whole || !*whole))
            continue;
        if (!add_run(finder, a, b, longer ? common_before(finder, a, b) : 0))
            return false;
    }
    return true;
}

bool dp_common_runs_find(const dp_word_ids *ids, size_t min_words, dp_common_runs *runs) {
    *runs = (dp_common_runs){0};
    if (min_words > ids->a_count || min_words > ids->b_count)
        return true;
    struct finder finder = {.ids = ids, .min_words = min_words, .runs = runs};
    /* So many runs can only come from texts that repeat themselves; then one place for each word must do. */
    size_t plenty = 4 * (ids->a_count + ids->b_count) + 1024;
    bool done = finder_init(&finder), whole = true;
    for (size_t a = 0; done && a + min_words <= ids->a_count; a++)
        done = add_runs_at(&finder, a, runs->count < plenty ? CHAIN : 1, &whole);
    finder_free(&finder);
    return done;
}
