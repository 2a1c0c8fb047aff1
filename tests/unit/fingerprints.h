/* fingerprints.h - sets of fingerprints of every shape, and the plain double loop that finds what is near in them.
 *
 * A set is made from a seed and is always the same. A dense set is one of which nearly all pairs are near. */
#ifndef TESTS_FINGERPRINTS_H
#define TESTS_FINGERPRINTS_H

#include "support.h"

#include "doppel.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct fingerprints {
    int bits;
    size_t count;
    size_t words;     /* uint64_t a fingerprint: 1 or 2 */
    uint64_t *values; /* count * words */
} fingerprints;

static inline uint64_t *print_at(const fingerprints *set, size_t i) {
    return set->values + i * set->words;
}

/* The largest distance that is tried at a width. */
static inline int most_distance(int bits) {
    return bits == 128 ? 32 : bits < 16 ? bits : 16;
}

/* ---- one fingerprint ---- */

static inline void cut_to_width(int bits, uint64_t *value) {
    if (bits < 64)
        value[0] &= ((uint64_t)1 << bits) - 1;
}

static inline void make_random(const fingerprints *set, uint64_t *value, uint64_t *seed) {
    for (size_t w = 0; w < set->words; w++)
        value[w] = random_next(seed);
    cut_to_width(set->bits, value);
}

/* A copy of `from` with up to `flips` bits changed. */
static inline void make_near(const fingerprints *set, uint64_t *value, const uint64_t *from, size_t flips,
                             uint64_t *seed) {
    memmove(value, from, set->words * sizeof *value);
    while (flips--) {
        size_t bit = random_below(seed, (size_t)set->bits);
        value[bit / 64] ^= (uint64_t)1 << bit % 64;
    }
}

/* On x86 the instruction, which every such CPU with AVX2 has and all since 2008: as fast as the loop should be. */
#if defined(__x86_64__)
#define WITH_POPCOUNT __attribute__((target("popcnt")))
#else
#define WITH_POPCOUNT
#endif

WITH_POPCOUNT static inline int plain_distance(const uint64_t *a, const uint64_t *b, size_t words) {
    int distance = __builtin_popcountll(a[0] ^ b[0]);
    return words == 2 ? distance + __builtin_popcountll(a[1] ^ b[1]) : distance;
}

/* ---- shapes ---- */

static inline void fill_random(fingerprints *set, uint64_t *seed) {
    for (size_t i = 0; i < set->count; i++)
        make_random(set, print_at(set, i), seed);
}

/* Every fourth is near an earlier one: at all distances up to a third of the bits, many of them small. */
static inline void fill_planted(fingerprints *set, uint64_t *seed) {
    fill_random(set, seed);
    for (size_t i = 4; i < set->count; i += 4) {
        size_t flips = random_below(seed, 1 + random_below(seed, 1 + (size_t)set->bits / 3));
        make_near(set, print_at(set, i), print_at(set, random_below(seed, i)), flips, seed);
    }
}

/* Half of all lie in groups of about a hundred: half of a group equal, the others a few bits off. */
static inline void fill_skewed(fingerprints *set, uint64_t *seed) {
    fill_random(set, seed);
    size_t groups = set->count / 200 + 1;
    for (size_t i = groups; i < set->count; i++)
        if (random_next(seed) & 1)
            make_near(set, print_at(set, i), print_at(set, random_below(seed, groups)),
                      random_next(seed) & 1 ? random_below(seed, 6) : 0, seed);
}

static inline void fill_equal(fingerprints *set, uint64_t *seed) {
    uint64_t value[2];
    make_random(set, value, seed);
    for (size_t i = 0; i < set->count; i++)
        memcpy(print_at(set, i), value, set->words * sizeof *value);
}

/* Each one bit from the next, by the reflected binary code. */
static inline void fill_steps(fingerprints *set, uint64_t *seed) {
    (void)seed;
    for (size_t i = 0; i < set->count; i++) {
        print_at(set, i)[set->words - 1] = i ^ i >> 1;
        cut_to_width(set->bits, print_at(set, i));
    }
}

/* All one bit from the first. */
static inline void fill_star(fingerprints *set, uint64_t *seed) {
    make_random(set, set->values, seed);
    for (size_t i = 1; i < set->count; i++) {
        size_t bit = i % (size_t)set->bits;
        memcpy(print_at(set, i), set->values, set->words * sizeof *set->values);
        print_at(set, i)[bit / 64] ^= (uint64_t)1 << bit % 64;
    }
}

static inline void fill_sequence(fingerprints *set, uint64_t *seed) {
    (void)seed;
    for (size_t i = 0; i < set->count; i++) {
        print_at(set, i)[0] = i;
        cut_to_width(set->bits, print_at(set, i));
    }
}

/* All equal outside one band of at most 16 bits: every other key is the same for all. */
static inline void fill_one_band(fingerprints *set, uint64_t *seed) {
    size_t width = set->bits < 64 ? (size_t)set->bits / 4 + 1 : 16;
    size_t shift = set->bits < 32 ? 0 : 20;
    uint64_t value[2] = {0};
    make_random(set, value, seed);
    for (size_t i = 0; i < set->count; i++) {
        memcpy(print_at(set, i), value, set->words * sizeof *value);
        print_at(set, i)[0] ^= (uint64_t)random_below(seed, (size_t)1 << width) << shift;
        cut_to_width(set->bits, print_at(set, i));
    }
}

/* Texts as they are, or nearly: what stands in the windows of documents. */
typedef struct windows {
    fingerprints *set;
    doppel_sketcher *sketcher;
    size_t made;
} windows;

static inline doppel_status take_windows(void *user, const doppel_document *document, doppel_output *output) {
    enum { WINDOW = 1500, STEP = 40 };
    windows *w = user;
    (void)output;
    size_t most = w->made + w->set->count / 20 + 1; /* of one document, so that there are several */
    if (most > w->set->count)
        most = w->set->count;
    for (size_t at = 0; at < document->text.length && w->made < most; at += STEP) {
        size_t left = document->text.length - at;
        doppel_sketch sketch;
        doppel_status status = doppel_sketcher_run(
            w->sketcher, (doppel_slice){document->text.data + at, left < WINDOW ? left : WINDOW}, &sketch);
        if (status)
            return status;
        memcpy(print_at(w->set, w->made++), sketch.fingerprint, w->set->words * sizeof(uint64_t));
    }
    return DOPPEL_OK;
}

static inline doppel_status give_windows(void *user, void **state) {
    *state = user;
    return DOPPEL_OK;
}

/* From the files in the folder DOPPEL_DATA, or from the project's own documentation. */
static inline void fill_real(fingerprints *set, uint64_t *seed) {
    (void)seed;
    const char *path = getenv("DOPPEL_DATA") ? getenv("DOPPEL_DATA") : "docs";
    char recipe_text[60];
    doppel_recipe *recipe;
    windows w = {.set = set};
    snprintf(recipe_text, sizeof recipe_text, "simhash%d:words=3", set->bits);
    assert_int_equal(doppel_recipe_parse(recipe_text, NULL, &recipe, NULL), DOPPEL_OK);
    assert_int_equal(doppel_sketcher_create(recipe, 0, &w.sketcher, NULL), DOPPEL_OK);
    doppel_input_options options = {.size = sizeof options, .threads = 1};
    doppel_work work = {.user = &w, .begin = give_windows, .document = take_windows};
    assert_int_equal(doppel_input_run(&path, 1, &options, &work, NULL, NULL), DOPPEL_OK);
    set->count = w.made;
    doppel_sketcher_free(w.sketcher);
    doppel_recipe_free(recipe);
}

typedef struct set_shape {
    const char *name;
    void (*fill)(fingerprints *set, uint64_t *seed);
    bool dense;
} set_shape;

static const set_shape shapes[] = {
    {"random", fill_random, false},        {"planted", fill_planted, false},
    {"skewed", fill_skewed, false},        {"real", fill_real, false},
    {"equal", fill_equal, true},           {"one bit from the next", fill_steps, true},
    {"one bit from one", fill_star, true}, {"sequence", fill_sequence, true},
    {"one band", fill_one_band, true},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static inline fingerprints make_prints(const set_shape *shape, int bits, size_t count, uint64_t seed) {
    fingerprints set = {.bits = bits, .count = count, .words = bits > 64 ? 2 : 1};
    set.values = calloc(count + 1, set.words * sizeof *set.values);
    assert_non_null(set.values);
    shape->fill(&set, &seed);
    return set;
}

static inline void free_prints(fingerprints *set) {
    free(set->values);
    set->values = NULL;
}

/* ---- all near pairs, by the double loop ---- */

typedef struct pair_list {
    doppel_pair *pairs;
    size_t count, capacity;
} pair_list;

static inline void add_pair(pair_list *list, uint64_t a, uint64_t b, int distance) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 1024;
        list->pairs = realloc(list->pairs, list->capacity * sizeof *list->pairs);
        assert_non_null(list->pairs);
    }
    list->pairs[list->count++] = (doppel_pair){a, b, distance};
}

/* In one set, in order of (a, b). */
WITH_POPCOUNT static inline pair_list plain_pairs(const fingerprints *set, int most) {
    pair_list list = {0};
    for (size_t a = 0; a < set->count; a++)
        for (size_t b = a + 1; b < set->count; b++) {
            int distance = plain_distance(print_at(set, a), print_at(set, b), set->words);
            if (distance <= most)
                add_pair(&list, a, b, distance);
        }
    return list;
}

/* Between two sets, in order of (b, a). */
WITH_POPCOUNT static inline pair_list plain_pairs_between(const fingerprints *set_a, const fingerprints *set_b,
                                                          int most) {
    pair_list list = {0};
    for (size_t b = 0; b < set_b->count; b++)
        for (size_t a = 0; a < set_a->count; a++) {
            int distance = plain_distance(print_at(set_a, a), print_at(set_b, b), set_a->words);
            if (distance <= most)
                add_pair(&list, a, b, distance);
        }
    return list;
}

static inline void free_pairs(pair_list *list) {
    free(list->pairs);
    *list = (pair_list){0};
}

#endif
