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
 * list; 16 keep a million words of the same under a second or two. */
#define CHAIN 16

/* So many runs that begin at one word are kept. */
#define KEPT 4

/* Ends closer than this are found word by word, without hashes. */
#define NEAR 32

#define NONE UINT32_MAX

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

/* A run of min_words words of B: its last place, how many there are, and where a walk of the list begins. */
struct place {
    uint32_t last, count, begin;
};

struct finder {
    const dp_word_ids *ids;
    size_t min_words;
    uint64_t *sums_a, *sums_b; /* of the words before each one */
    uint64_t *powers;          /* of BASE */
    dp_hashmap map;            /* from the hash of a run of min_words words of B to its number + 1 */
    struct place *places;      /* by number */
    uint32_t *next;            /* the next place in B with the same run */
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

/* How many words are the same from a and b on, or before them. */
static size_t common(const struct finder *finder, size_t a, size_t b, bool before) {
    const dp_word_ids *ids = finder->ids;
    size_t left_a = before ? a : ids->a_count - a, left_b = before ? b : ids->b_count - b;
    size_t most = left_a < left_b ? left_a : left_b, low = 0;
    while (low < most && low < NEAR &&
           (before ? ids->a[a - low - 1] == ids->b[b - low - 1] : ids->a[a + low] == ids->b[b + low]))
        low++;
    if (low < NEAR || low == most)
        return low;
    for (size_t high = most; low < high;) {
        size_t middle = high - (high - low) / 2, back = before ? middle : 0;
        if (hash_run(finder, finder->sums_a, a - back, middle) == hash_run(finder, finder->sums_b, b - back, middle))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* ---- the index ---- */

/* Fills the map, which has room for all runs. */
static void index_b(struct finder *finder) {
    for (size_t b = 0; b + finder->min_words <= finder->ids->b_count; b++) {
        uint64_t *number = dp_hashmap_add(&finder->map, hash_run(finder, finder->sums_b, b, finder->min_words));
        bool is_new = !*number;
        if (is_new)
            *number = finder->map.count;
        struct place *place = &finder->places[*number - 1];
        finder->next[b] = NONE;
        if (is_new)
            *place = (struct place){.begin = (uint32_t)b};
        else
            finder->next[place->last] = (uint32_t)b;
        place->last = (uint32_t)b;
        place->count++;
    }
}

static bool finder_init(struct finder *finder) {
    size_t a_count = finder->ids->a_count, b_count = finder->ids->b_count;
    finder->sums_a = sum_words(finder->ids->a, a_count);
    finder->sums_b = sum_words(finder->ids->b, b_count);
    finder->powers = raise_base(a_count > b_count ? a_count : b_count);
    finder->places = malloc(b_count * sizeof *finder->places);
    finder->next = malloc(b_count * sizeof *finder->next);
    if (!finder->sums_a || !finder->sums_b || !finder->powers || !finder->places || !finder->next ||
        !dp_hashmap_reserve(&finder->map, b_count))
        return false;
    index_b(finder);
    return true;
}

static void finder_free(struct finder *finder) {
    free(finder->sums_a);
    free(finder->sums_b);
    free(finder->powers);
    dp_hashmap_free(&finder->map);
    free(finder->places);
    free(finder->next);
}

/* ---- walking A ---- */

/* The longest runs that begin at one word, in the order they were found. */
struct best {
    dp_common_run runs[KEPT];
    size_t count, most;
};

static void keep_best(struct best *best, dp_common_run run) {
    size_t shortest = 0;
    if (best->count < best->most) {
        best->runs[best->count++] = run;
        return;
    }
    for (size_t i = 1; i < best->count; i++)
        if (best->runs[i].length <= best->runs[shortest].length)
            shortest = i;
    if (run.length <= best->runs[shortest].length)
        return;
    for (size_t i = shortest; i + 1 < best->count; i++)
        best->runs[i] = best->runs[i + 1];
    best->runs[best->count - 1] = run;
}

/* The runs that begin at word a. Where the words before are the same too, the run was found from there, unless that
 * word's list is long and not all of it was seen (*seen): then this one, if it is short, makes good for it. */
static struct best best_at(struct finder *finder, size_t a, bool *seen) {
    const dp_word_ids *ids = finder->ids;
    uint64_t number = dp_hashmap_find(&finder->map, hash_run(finder, finder->sums_a, a, finder->min_words));
    struct place *place = number ? &finder->places[number - 1] : NULL;
    bool seen_before = *seen, all = *seen = !place || place->count <= CHAIN;
    struct best best = {.most = all ? KEPT : 1};
    uint32_t b = place ? place->begin : NONE;
    if (!all && finder->next[b] != NONE)
        place->begin = finder->next[b];
    for (size_t places = 0; b != NONE && places < CHAIN; b = finder->next[b], places++) {
        bool longer = a && b && ids->a[a - 1] == ids->b[b - 1];
        if (longer && (seen_before || !all))
            continue;
        size_t before = longer ? common(finder, a, b, true) : 0, length = common(finder, a, b, false) + before;
        if (length >= finder->min_words)
            keep_best(&best, (dp_common_run){(uint32_t)length, (uint32_t)(a - before), (uint32_t)(b - before)});
    }
    return best;
}

bool dp_common_runs_find(const dp_word_ids *ids, size_t min_words, dp_common_runs *runs) {
    *runs = (dp_common_runs){0};
    if (min_words > ids->a_count || min_words > ids->b_count)
        return true;
    struct finder finder = {.ids = ids, .min_words = min_words};
    bool done = finder_init(&finder), seen = true;
    for (size_t a = 0; done && a + min_words <= ids->a_count; a++) {
        struct best best = best_at(&finder, a, &seen);
        done = dp_reserve(&runs->runs, &runs->capacity, runs->count + best.count, sizeof *runs->runs);
        if (done && best.count)
            memcpy(runs->runs + runs->count, best.runs, best.count * sizeof *runs->runs);
        runs->count += done ? best.count : 0;
    }
    finder_free(&finder);
    return done;
}
