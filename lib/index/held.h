/* held.h - the side of a join that is held in memory, as tables that many queries at once are looked up in:
 * build, (finder) init, find ..., free.
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
    uint64_t memory; /* that may be used */
    uint64_t secret; /* not 0 */
    const volatile int *stop;
} dp_held_options;

/* Reads all of a source. Errors: DOPPEL_ERROR_USAGE when the memory is too little (the message says what is needed) or
 * there are more than 2^32 - 2 fingerprints, those of the source, DOPPEL_ERROR_MEMORY. On an error it is empty. */
doppel_status dp_held_build(dp_held *held, dp_feed *feed, const dp_held_options *options, doppel_error *error);
void dp_held_free(dp_held *held);

/* Bytes it takes. */
uint64_t dp_held_bytes(const dp_held *held);

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

/* Plans and fills the tables over the values. */
doppel_status dp_held_build_tables(dp_held *held, const dp_held_options *options, doppel_error *error);

/* The memory is too little for `count` fingerprints, which need so many bytes. */
doppel_status dp_held_too_little(uint64_t count, uint64_t bytes, doppel_error *error);

/* ---- finding: held_find.c ---- */

typedef struct dp_held_hit {
    uint32_t query, id, distance;
} dp_held_hit;

typedef struct dp_held_probe {
    uint32_t query, table;
    uint32_t key; /* of the bucket; then where it begins */
    uint32_t end;
} dp_held_probe;

/* Pieces of a bucket that are compared at once. */
enum { DP_HELD_PIECE = 4096 };

/* What one thread finds with. */
typedef struct dp_held_finder {
    const dp_held *held;
    dp_held_probe *probes;
    size_t group; /* queries at once */
    const uint64_t *queries;
    dp_held_hit *hits; /* of the last find, in order of the queries */
    size_t hit_count, hit_capacity;
    uint64_t candidates; /* compared so far */
    uint32_t near[DP_HELD_PIECE + 16];
} dp_held_finder;

/* False when there is no memory. */
bool dp_held_finder_init(dp_held_finder *finder, const dp_held *held);
void dp_held_finder_free(dp_held_finder *finder);

/* Finds all within the distance of each query (in secret order), at most `group` of them, each once. False when there
 * is no memory. */
bool dp_held_finder_run(dp_held_finder *finder, const uint64_t *queries, size_t count);

#endif
