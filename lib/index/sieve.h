/* sieve.h - tells of most streamed fingerprints, without looking at the held ones, that none of those is near:
 * plan, build, (sifter) init, load ..., run, free.
 *
 * The bits are cut into m parts. Two fingerprints within k differ by at most r_i in some part i, when the r_i + 1 sum
 * up to more than k. A map for each part has a bit for every key that is within r_i of the key of a held fingerprint;
 * keys are the part, or less of it. A streamed fingerprint whose bit is set in no map is near none.
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
    int slice_bits; /* log2 of the number of slices; 0: tested as a whole */
    uint64_t *map;
} dp_sieve_part;

typedef struct dp_sieve {
    size_t words; /* 64-bit numbers a fingerprint */
    int parts;    /* 0: lets everything through */
    dp_sieve_part part[DP_SIEVE_PARTS];
    bool sliced;  /* some part is */
    size_t batch; /* fingerprints to test together */
} dp_sieve;

typedef struct dp_sieve_options {
    size_t threads;
    uint64_t memory; /* for the maps and the batches of all threads */
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
    uint64_t *values; /* room for a batch, in secret order */
    uint64_t *passed; /* a bit for each of the batch: it may be near one */
    size_t count;     /* in the batch */
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

#endif
