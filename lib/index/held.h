/* held.h - the side of a join that is held in memory, as tables that many queries at once are looked up in:
 * build, (use_parts,) fill, (finder) init, run ..., free.
 *
 * Equal fingerprints stand once, with the list of their positions. A table keeps the fingerprints, or 32 bits of them
 * where those tell enough, sorted by its key, so that a bucket is one piece of memory and is compared by one kernel. */
#ifndef DP_INDEX_HELD_H
#define DP_INDEX_HELD_H

#include "index/index.h"
#include "index/source.h"

/* A key is put together from pieces of the number, the first at the top. */
typedef struct dp_held_table {
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
} dp_held_table;

typedef struct dp_held {
    int bits, distance;
    size_t words; /* 64-bit numbers a fingerprint */
    dp_order order;
    uint64_t count;      /* positions */
    uint32_t distinct;   /* fingerprints: their number is an id */
    uint64_t *values;    /* of each id, in secret order, ascending */
    uint32_t *starts;    /* of each id, and at last the count: where its positions begin */
    uint32_t *positions; /* ascending for each id */
    int tables;          /* 0: all are compared */
    dp_held_table table[DP_MAX_TABLES];
    size_t probes;      /* of all tables, a query */
    double nanoseconds; /* that a query is expected to take */
} dp_held;

typedef struct dp_held_options {
    int distance;
    size_t threads;
    uint64_t memory; /* that may be used, the tables included */
    uint64_t secret; /* not 0 */
    const volatile int *stop;
} dp_held_options;

/* Reads all of a source and plans tables. Errors: DOPPEL_ERROR_USAGE when the memory is too little (the message says
 * what is needed) or there are more than 2^32 - 2 fingerprints, those of the source, DOPPEL_ERROR_MEMORY. On an error
 * it is empty. */
doppel_status dp_held_build(dp_held *held, dp_feed *feed, const dp_held_options *options, doppel_error *error);
void dp_held_free(dp_held *held);

/* Fills the tables that are planned. False when there is no memory. */
bool dp_held_fill(dp_held *held, size_t threads);

/* Bytes it takes, and those of them that its tables take. */
uint64_t dp_held_bytes(const dp_held *held);
uint64_t dp_held_table_bytes(const dp_held *held);

/* ---- tables: held_tables.c ---- */

/* The key of a fingerprint in secret order. */
static inline uint32_t dp_held_key(const dp_held_table *table, dp_bits value) {
    uint32_t key = 0;
    for (int i = 0; i < table->pieces; i++) {
        dp_cut piece = table->piece[i];
        key = key << piece.width | ((uint32_t)(value >> piece.from) & ((1U << piece.width) - 1));
    }
    return key;
}

/* Plans tables over the values. */
doppel_status dp_held_plan_tables(dp_held *held, const dp_held_options *options, doppel_error *error);

/* The bits of a table's key, of which `left` are wanted: from a piece of the number, its top. */
void dp_held_add_piece(dp_held_table *table, dp_cut cut, int left);

/* Sets all that follows from the key and the radius, and adds the table. */
void dp_held_add_table(dp_held *held, const dp_held_table *table);

/* The memory is too little for `count` fingerprints, which need so many bytes. */
doppel_status dp_held_too_little(uint64_t count, uint64_t bytes, doppel_error *error);

/* ---- tables inside of parts: held_parts.c ---- */

/* A part of the bits, and how those that differ in at most `radius` bits of it are found: by a table for each block. */
typedef struct dp_held_part {
    int from, width, radius;
    int blocks, key_bits; /* of each block: the key of its table is no wider */
    double nanoseconds;   /* that a query is expected to take; infinite: there is no such table */
} dp_held_part;

/* The cheapest blocks for a part. */
void dp_held_plan_part(const dp_held *held, dp_held_part *part);

/* Replaces the planned tables by those of parts, at most 4. */
void dp_held_use_parts(dp_held *held, const dp_held_part *parts, int count);

/* Bytes that they would take. */
uint64_t dp_held_parts_bytes(const dp_held *held, const dp_held_part *parts, int count);

/* ---- finding: held_find.c ---- */

typedef struct dp_held_hit {
    uint32_t query, id, distance;
} dp_held_hit;

typedef struct dp_held_probe {
    uint32_t query, table;
    uint32_t key; /* of the bucket; then where it begins */
    uint32_t end;
} dp_held_probe;

/* What a comparison found, and is to be looked at in full: an entry of a table, then its id. */
typedef struct dp_held_near {
    uint32_t query, table, at;
} dp_held_near;

/* Pieces of a bucket that are compared at once. */
enum { DP_HELD_PIECE = 4096 };

/* What one thread finds with. */
typedef struct dp_held_finder {
    const dp_held *held;
    dp_held_probe *probes;
    size_t group; /* queries at once */
    const uint64_t *queries;
    const uint8_t *parts; /* of each query: those in which it may be near, a bit each */
    dp_held_hit *hits;    /* of the last find, in order of the queries */
    size_t hit_count, hit_capacity;
    uint64_t candidates; /* compared so far */
    uint32_t near[DP_HELD_PIECE + 16];
    dp_held_near waiting[2 * DP_HELD_PIECE];
    size_t waiting_count;
} dp_held_finder;

/* False when there is no memory. */
bool dp_held_finder_init(dp_held_finder *finder, const dp_held *held);
void dp_held_finder_free(dp_held_finder *finder);

/* Finds all within the distance of each query (in secret order), at most `group` of them, each once; of tables inside
 * of parts, those of the query's parts. False when there is no memory. */
bool dp_held_finder_run(dp_held_finder *finder, const uint64_t *queries, const uint8_t *parts, size_t count);

#endif
