/* two_sets.h - the parts of a join of two sets: the resident set (resident.c) and the prefilter (prefilter.c).
 *
 * The resident set: build, (use_parts,) fill, (finder) init, run ..., free. Equal fingerprints stand once, with the
 * list of their positions. A table keeps the fingerprints, or 32 bits of them where those are enough, sorted by its
 * key, so that a bucket is one piece of memory and is compared by one kernel. */
#ifndef DP_JOIN_TWO_SETS_H
#define DP_JOIN_TWO_SETS_H

#include "join/join.h"
#include "kernel/kernel.h"

/* A key is put together from pieces of the number, the first at the top. */
typedef struct dp_resident_table {
    int key_bits, radius;
    unsigned parts; /* a query is looked up here when it may be near in one of these parts; all bits: always */
    int pieces;
    dp_cut piece[DP_MAX_CUTS];
    dp_bits key_mask;
    uint32_t *flips; /* exclusive-or'ed to a key, they give all keys within the radius */
    size_t flip_count;
    uint32_t *directory; /* where the bucket of each key begins, and at last the count */
    uint32_t *ids;       /* by key, which of the distinct ones they are */
    uint64_t *column;    /* by key, the fingerprints; or NULL: there is a filter, */
    uint32_t *filter;    /* by key, 32 bits of the fingerprints, from bit `from` on */
    int from;
} dp_resident_table;

typedef struct dp_resident {
    int bits, distance;
    size_t words; /* 64-bit numbers a fingerprint */
    dp_order order;
    uint64_t count;      /* positions */
    uint32_t distinct;   /* fingerprints: their number is an id */
    uint64_t *values;    /* of each id, in secret order, ascending */
    uint32_t *starts;    /* of each id, and at last the count: where its positions begin */
    uint32_t *positions; /* ascending for each id */
    int tables;          /* 0: all are compared */
    dp_resident_table table[DP_MAX_TABLES];
    size_t probes;      /* of all tables, a query */
    double nanoseconds; /* that a query is expected to take */
} dp_resident;

typedef struct dp_resident_options {
    int distance;
    size_t threads;
    uint64_t memory; /* that may be used, the tables included */
    uint64_t secret; /* not 0 */
    const volatile int *stop;
} dp_resident_options;

/* Reads all of a source and plans tables. Errors: DOPPEL_ERROR_USAGE when the memory is too little (the message says
 * what is needed) or there are more than 2^32 - 2 fingerprints, those of the source, DOPPEL_ERROR_MEMORY. On an error
 * it is empty. */
doppel_status dp_resident_build(dp_resident *set, dp_fingerprints *source, const dp_resident_options *options,
                                doppel_error *error);
void dp_resident_free(dp_resident *set);

/* Fills the tables that are planned. False when there is no memory. */
bool dp_resident_fill(dp_resident *set, size_t threads);

/* Bytes it takes, and those of them that its tables take. */
uint64_t dp_resident_bytes(const dp_resident *set);
uint64_t dp_resident_table_bytes(const dp_resident *set);

/* The key of a fingerprint in secret order. */
static inline uint32_t dp_resident_key(const dp_resident_table *table, dp_bits value) {
    uint32_t key = 0;
    for (int i = 0; i < table->pieces; i++) {
        dp_cut piece = table->piece[i];
        key = key << piece.width | ((uint32_t)(value >> piece.from) & ((1U << piece.width) - 1));
    }
    return key;
}

/* ---- tables inside of parts ---- */

/* A part of the bits, and how those that differ in at most `radius` bits of it are found: by a table for each block. */
typedef struct dp_resident_part {
    int from, width, radius;
    int blocks, key_bits; /* of each block: the key of its table is no wider */
    double nanoseconds;   /* that a query is expected to take; infinite: there is no such table */
} dp_resident_part;

/* The cheapest blocks for a part. */
void dp_resident_plan_part(const dp_resident *set, dp_resident_part *part);

/* Replaces the planned tables by those of parts, at most 4. */
void dp_resident_use_parts(dp_resident *set, const dp_resident_part *parts, int count);

/* Bytes that they would take. */
uint64_t dp_resident_parts_bytes(const dp_resident *set, const dp_resident_part *parts, int count);

/* ---- finding ---- */

typedef struct dp_resident_hit {
    uint32_t query, id, distance;
} dp_resident_hit;

typedef struct dp_resident_probe {
    uint32_t query, table;
    uint32_t key; /* of the bucket; then where it begins */
    uint32_t end;
} dp_resident_probe;

/* What a comparison found, and is to be looked at in full: an entry of a table, then its id. */
typedef struct dp_resident_near {
    uint32_t query, table, at;
} dp_resident_near;

/* Pieces of a bucket that are compared at once. */
enum { DP_RESIDENT_PIECE = 4096 };

/* What one thread finds with. */
typedef struct dp_resident_finder {
    const dp_resident *set;
    dp_resident_probe *probes;
    size_t group; /* queries at once */
    const uint64_t *queries;
    const uint8_t *parts;  /* of each query: those in which it may be near, a bit each */
    dp_resident_hit *hits; /* of the last find, in order of the queries */
    size_t hit_count, hit_capacity;
    uint64_t candidates; /* compared so far */
    uint32_t near[DP_RESIDENT_PIECE + 16];
    dp_resident_near waiting[2 * DP_RESIDENT_PIECE];
    size_t waiting_count;
} dp_resident_finder;

/* False when there is no memory. */
bool dp_resident_finder_init(dp_resident_finder *finder, const dp_resident *set);
void dp_resident_finder_free(dp_resident_finder *finder);

/* Finds all within the distance of each query (in secret order), at most `group` of them, each once; of tables inside
 * of parts, those of the query's parts. False when there is no memory. */
bool dp_resident_finder_run(dp_resident_finder *finder, const uint64_t *queries, const uint8_t *parts, size_t count);

/* ---- the prefilter: finds out that a streamed fingerprint is near none, mostly without a look at the resident set
 * ----
 *
 * plan, build, (batch) init, added ..., run, free.
 *
 * The bits are cut into m parts. Two fingerprints within k differ by at most r_i in some part i, when the r_i + 1 sum
 * up to more than k. A map for each part has a mark for every key that is within r_i of the key of a resident
 * fingerprint; keys are the part, or less of it. A streamed fingerprint whose mark is in no map is near none; one whose
 * mark is in some maps can be near only in their parts (resident.c).
 *
 * A map has a bit for each key, which is its mark; or it is squeezed: 2^(6 + squeeze) keys share a word of 64 bits, and
 * a mark is two bits of the word and two of another one beside it. Then some keys pass that have no mark, but the map
 * is that much smaller, and memory brings it into the cache that much faster.
 *
 * A large map is tested slice by slice: the keys of a whole batch are dealt into slices first, so that the slice of the
 * map stays in the cache while its keys are looked up. */

enum { DP_PREFILTER_PARTS = 4 };

typedef struct dp_prefilter_part {
    int word, shift, bits; /* the key: `bits` bits (at most 32) from bit `shift` of number `word` on */
    int radius;
    int squeeze;    /* log2 of the keys for each bit of the map */
    int slice_bits; /* log2 of the number of slices; 0: tested as a whole */
    uint64_t *map;
} dp_prefilter_part;

typedef struct dp_prefilter {
    size_t words; /* 64-bit numbers a fingerprint */
    int parts;    /* 0: lets everything through */
    dp_prefilter_part part[DP_PREFILTER_PARTS];
    bool sliced;  /* some part is */
    size_t batch; /* fingerprints to test together */
    bool nested;  /* the resident set is to have tables inside of the parts: */
    dp_resident_part found[DP_PREFILTER_PARTS];
} dp_prefilter;

typedef struct dp_prefilter_options {
    size_t threads;
    uint64_t memory; /* for the maps and the batches of all threads, besides the tables that the resident set plans */
    uint64_t stream; /* fingerprints that will be tested, or a guess */
} dp_prefilter_options;

/* The cheapest prefilter for a resident set; none when it would not pay. */
void dp_prefilter_plan(dp_prefilter *filter, const dp_resident *set, const dp_prefilter_options *options);

/* Fills the maps. False when there is no memory. */
bool dp_prefilter_build(dp_prefilter *filter, const dp_resident *set, size_t threads);
void dp_prefilter_free(dp_prefilter *filter);

/* ---- testing ---- */

/* What one thread tests a batch with. */
typedef struct dp_filter_batch {
    const dp_prefilter *filter;
    uint64_t *values;                     /* room for a batch, in secret order */
    uint64_t *passed[DP_PREFILTER_PARTS]; /* a bit for each of the batch: it may be near one in this part */
    size_t count;                         /* in the batch */
    uint64_t *entries, *open;
    uint32_t *counts[DP_PREFILTER_PARTS]; /* of each slice */
    uint32_t *starts, *fills;
} dp_filter_batch;

/* False when there is no memory. */
bool dp_filter_batch_init(dp_filter_batch *batch, const dp_prefilter *filter);
void dp_filter_batch_free(dp_filter_batch *batch);

/* Begins a batch. */
void dp_filter_batch_clear(dp_filter_batch *batch);
/* `count` more fingerprints were put after those of the batch; there is room for filter->batch. */
void dp_filter_batch_added(dp_filter_batch *batch, size_t count);
/* Sets `passed`. */
void dp_filter_batch_run(dp_filter_batch *batch);

/* ---- marks ---- */

/* The word of a key. The low bits, which a squeezed map has no room for, are exclusive-or'ed to its number, so that the
 * keys around one resident fingerprint do not crowd one word; what they move it by is less than a slice. */
static inline size_t dp_prefilter_word(int squeeze, uint32_t key) {
    return squeeze ? key >> (6 + squeeze) ^ (key & ((64U << squeeze) - 1)) : key >> 6;
}

/* The mark in a squeezed map: by the top of a product that all bits of the key have a part in, two bits of the word and
 * two of a word in the same line of 64 bytes. */
typedef struct dp_prefilter_mark {
    size_t word, beside;
    uint64_t first, second, third, fourth;
} dp_prefilter_mark;

static inline dp_prefilter_mark dp_prefilter_mark_of(int squeeze, uint32_t key) {
    uint64_t mixed = key * 0x9E3779B97F4A7C15u;
    size_t word = dp_prefilter_word(squeeze, key);
    return (dp_prefilter_mark){
        word, word ^ (mixed >> 37 & 7), mixed >> 58, mixed >> 52 & 63, mixed >> 46 & 63, mixed >> 40 & 63};
}

static inline void dp_prefilter_set(uint64_t *map, int squeeze, uint32_t key) {
    dp_prefilter_mark m = dp_prefilter_mark_of(squeeze, key);
    if (!squeeze) {
        map[key >> 6] |= (uint64_t)1 << (key & 63);
        return;
    }
    map[m.word] |= (uint64_t)1 << m.first | (uint64_t)1 << m.second;
    map[m.beside] |= (uint64_t)1 << m.third | (uint64_t)1 << m.fourth;
}

/* Whether the map has the mark of a key: 1 or 0. */
static inline uint64_t dp_prefilter_test(const uint64_t *map, int squeeze, uint32_t key) {
    dp_prefilter_mark m = dp_prefilter_mark_of(squeeze, key);
    if (!squeeze)
        return map[key >> 6] >> (key & 63) & 1;
    uint64_t here = map[m.word], beside = map[m.beside];
    return here >> m.first & here >> m.second & beside >> m.third & beside >> m.fourth & 1;
}

#endif
