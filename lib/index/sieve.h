/* sieve.h - tells of most streamed fingerprints, without looking at the held ones, that none of those is near:
 * plan, build, (sifter) init, load ..., run, free.
 *
 * The bits are cut into m parts. Two fingerprints within k differ by at most r_i in some part i, when the r_i + 1 sum
 * up to more than k. A map for each part has a mark for every key that is within r_i of the key of a held fingerprint;
 * keys are the part, or less of it. A streamed fingerprint whose mark is in no map is near none; one whose mark is in
 * some maps can be near only in their parts (held_parts.c).
 *
 * A map has a bit for each key, which is its mark; or it is squeezed: 2^(6 + squeeze) keys share a word of 64 bits, and
 * a mark is two bits of the word and two of another one beside it. Then some keys pass that have no mark, but the map
 * is that much smaller, and memory brings it into the cache that much faster.
 *
 * A large map is tested slice by slice: the keys of a whole batch are dealt into slices first, so that the slice of the
 * map stays in the cache while its keys are looked up. */
#ifndef DP_INDEX_SIEVE_H
#define DP_INDEX_SIEVE_H

#include "index/held.h"
#include "kernel/kernel.h"

enum { DP_SIEVE_PARTS = 4 };

typedef struct dp_sieve_part {
    int word, shift, bits; /* the key: `bits` bits (at most 32) from bit `shift` of number `word` on */
    int radius;
    int squeeze;    /* log2 of the keys for each bit of the map */
    int slice_bits; /* log2 of the number of slices; 0: tested as a whole */
    uint64_t *map;
} dp_sieve_part;

typedef struct dp_sieve {
    size_t words; /* 64-bit numbers a fingerprint */
    int parts;    /* 0: lets everything through */
    dp_sieve_part part[DP_SIEVE_PARTS];
    bool sliced;  /* some part is */
    size_t batch; /* fingerprints to test together */
    bool nested;  /* the held side is to have tables inside of the parts: */
    dp_held_part found[DP_SIEVE_PARTS];
} dp_sieve;

typedef struct dp_sieve_options {
    size_t threads;
    uint64_t memory; /* for the maps and the batches of all threads, besides the tables that the held side plans */
    uint64_t stream; /* fingerprints that will be tested, or a guess */
} dp_sieve_options;

/* The cheapest sieve for a held side; none when it would not pay. */
void dp_sieve_plan(dp_sieve *sieve, const dp_held *held, const dp_sieve_options *options);

/* Fills the maps. False when there is no memory. */
bool dp_sieve_build(dp_sieve *sieve, const dp_held *held, size_t threads);
void dp_sieve_free(dp_sieve *sieve);

/* ---- testing: sift.c ---- */

/* What one thread tests a batch with. */
typedef struct dp_sifter {
    const dp_sieve *sieve;
    uint64_t *values;                 /* room for a batch, in secret order */
    uint64_t *passed[DP_SIEVE_PARTS]; /* a bit for each of the batch: it may be near one in this part */
    size_t count;                     /* in the batch */
    uint64_t *entries, *open;
    uint32_t *counts[DP_SIEVE_PARTS]; /* of each slice */
    uint32_t *starts, *fills;
} dp_sifter;

/* False when there is no memory. */
bool dp_sifter_init(dp_sifter *sifter, const dp_sieve *sieve);
void dp_sifter_free(dp_sifter *sifter);

/* Begins a batch. */
void dp_sifter_clear(dp_sifter *sifter);
/* `count` more fingerprints stand behind those of the batch; there is room for sieve->batch. */
void dp_sifter_added(dp_sifter *sifter, size_t count);
/* Sets `passed`. */
void dp_sifter_run(dp_sifter *sifter);

/* ---- marks ---- */

/* The word of a key. The low bits, which a squeezed map has no room for, are exclusive-or'ed to its number, so that the
 * keys around one held fingerprint do not crowd one word; what they move it by is less than a slice. */
static inline size_t dp_sieve_word(int squeeze, uint32_t key) {
    return squeeze ? key >> (6 + squeeze) ^ (key & ((64U << squeeze) - 1)) : key >> 6;
}

/* The mark in a squeezed map: by the top of a product that all bits of the key have a part in, two bits of the word and
 * two of a word in the same line of 64 bytes. */
typedef struct dp_sieve_mark {
    size_t word, beside;
    uint64_t first, second, third, fourth;
} dp_sieve_mark;

static inline dp_sieve_mark dp_sieve_mark_of(int squeeze, uint32_t key) {
    uint64_t mixed = key * 0x9E3779B97F4A7C15u;
    size_t word = dp_sieve_word(squeeze, key);
    return (dp_sieve_mark){
        word, word ^ (mixed >> 37 & 7), mixed >> 58, mixed >> 52 & 63, mixed >> 46 & 63, mixed >> 40 & 63};
}

static inline void dp_sieve_set(uint64_t *map, int squeeze, uint32_t key) {
    dp_sieve_mark m = dp_sieve_mark_of(squeeze, key);
    if (!squeeze) {
        map[key >> 6] |= (uint64_t)1 << (key & 63);
        return;
    }
    map[m.word] |= (uint64_t)1 << m.first | (uint64_t)1 << m.second;
    map[m.beside] |= (uint64_t)1 << m.third | (uint64_t)1 << m.fourth;
}

/* Whether the map has the mark of a key: 1 or 0. */
static inline uint64_t dp_sieve_test(const uint64_t *map, int squeeze, uint32_t key) {
    dp_sieve_mark m = dp_sieve_mark_of(squeeze, key);
    if (!squeeze)
        return map[key >> 6] >> (key & 63) & 1;
    uint64_t here = map[m.word], beside = map[m.beside];
    return here >> m.first & here >> m.second & beside >> m.third & beside >> m.fourth & 1;
}

#endif
