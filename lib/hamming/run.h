/* run.h - a run: an immutable set of fingerprints with their owners, and tables that find them.
 *
 * A run has `count` positions, one per distinct fingerprint (reordered, see order.c), ascending. Table 0 holds the
 * fingerprints in that order, so a position is a place in table 0; every other table holds the same fingerprints in its
 * own order, bucket after bucket, in any order inside a bucket. A fingerprint in a table is an arranged number
 * (dp_layout_arrange) cut in three, from the top: the key, which is the number of the bucket; the rest, in whole bytes;
 * and the filter, a column of numbers that kernels compare.
 *
 * Owners are in slots. Slot p is the owner of position p, in ids[p]; where bit p of `shared` is set, the fingerprint
 * has several owners: ids[p] is where its list begins in `lists`, a number of owners and then the owners, ascending.
 * The owner at lists[i] has slot count + i. A removed entry gets its bit in `dead`; expiry times are in `expires`, both
 * by slot. These two can change while others read, and are created on first use.
 *
 * A run is in memory or in a mapped file. It is read only through the functions below, which have the file's owner
 * check a part before its first use; a run in memory pays one branch for it. */
#ifndef DP_HAMMING_RUN_H
#define DP_HAMMING_RUN_H

#include "hamming/hamming.h"

/* ---- memory: memory.c ---- */

/* The memory need not be zeroed. Large blocks use huge pages. */
typedef struct dp_memory {
    void *data;
    size_t size;   /* as asked for */
    size_t mapped; /* of the mapping it lies in; 0: from the heap */
} dp_memory;

bool dp_memory_alloc(dp_memory *block, size_t size);
/* Frees what is beyond `size`, as far as the system allows. */
void dp_memory_trim(dp_memory *block, size_t size);
void dp_memory_free(dp_memory *block);

/* ---- a run ---- */

/* What a mapped run lies in. One file may back several runs: each holds a reference. */
typedef struct dp_backing {
    /* Checks what is not checked yet of the bytes from..from + size; DOPPEL_ERROR_STORE when they are damaged. Many
     * threads call it at once. */
    doppel_status (*touch)(struct dp_backing *backing, const void *from, size_t size);
    void (*release)(struct dp_backing *backing);
} dp_backing;

typedef struct dp_run_table {
    const uint32_t *directory; /* 2^key_bits + 1 of them: where each bucket begins; the last is `count` */
    const void *filter;        /* the low 32 bits (64 for 128) of each arranged number: uint32_t (uint64_t) */
    const uint8_t *rest;       /* the bits between key and filter, little-endian; 8 bytes beyond can be read */
    int key_bits, rest_bits, rest_bytes;
} dp_run_table;

/* How a find probes a run for one distance: `tables` of them in the order of `table`, or all entries compared. */
typedef struct dp_schedule {
    bool scan;
    int tables;
    int table[DP_MAX_TABLES], radius[DP_MAX_TABLES];
} dp_schedule;

enum { DP_MAX_BITS = 128, DP_REST_PADDING = 8, DP_MERGE_MOST = 68 };

/* What a run in memory is made of. The filter of table 0 replaces the values. */
enum { DP_RUN_VALUES, DP_RUN_IDS, DP_RUN_LISTS, DP_RUN_SHARED, DP_RUN_TABLES, DP_RUN_BLOCKS };

/* A run has fewer positions than a directory can count. */
#define DP_RUN_MOST ((uint64_t)UINT32_MAX - 1)

typedef struct dp_run {
    int bits;
    uint64_t count;      /* positions */
    uint64_t list_count; /* numbers in `lists` */
    dp_layout layout;
    dp_run_table table[DP_MAX_TABLES];
    const uint64_t *ids;    /* count */
    const uint64_t *lists;  /* list_count */
    const uint64_t *shared; /* bits by position, in whole words; NULL: none */
    const uint64_t *values; /* the numbers themselves, while a run is made and has no tables; else NULL */

    _Atomic(_Atomic uint64_t *) expires;              /* by slot; NULL: nothing expires */
    _Atomic(_Atomic uint64_t *) dead;                 /* bits by slot; NULL: nothing is dead */
    _Atomic uint64_t dead_count;                      /* slots that are dead */
    _Atomic(dp_schedule *) schedule[DP_MAX_BITS + 1]; /* by distance, each made at its first use */

    dp_backing *backing;            /* NULL: in memory */
    dp_memory block[DP_RUN_BLOCKS]; /* what is freed with the run */
    void *expires_memory;           /* the same, for a column that was made here; the writer's */
    /* The index's, under its lock. */
    uint64_t holders;    /* versions that hold it, and a merge that reads it */
    bool merging;        /* a background merge reads it: changes in it are logged */
    struct dp_run *next; /* in the list of those to be freed */
} dp_run;

/* ---- sections: what a run is made of, in bytes ---- */

static inline size_t dp_filter_size(const dp_run *run) {
    return run->bits > 64 ? sizeof(uint64_t) : sizeof(uint32_t);
}

static inline int dp_filter_bits(int bits) {
    return bits > 64 ? 64 : 32;
}

/* The bits between key and filter. */
static inline int dp_rest_bits(int bits, int key_bits) {
    int rest = bits - key_bits - dp_filter_bits(bits);
    return rest > 0 ? rest : 0;
}

static inline size_t dp_directory_bytes(const dp_run_table *table) {
    return (((size_t)1 << table->key_bits) + 1) * sizeof(uint32_t);
}

static inline size_t dp_filter_bytes(const dp_run *run) {
    return run->count * dp_filter_size(run);
}

/* With the bytes beyond that can be read. */
static inline size_t dp_rest_bytes(const dp_run *run, const dp_run_table *table) {
    return run->count * (size_t)table->rest_bytes + DP_REST_PADDING;
}

static inline size_t dp_shared_bytes(const dp_run *run) {
    return (run->count + 63) / 64 * sizeof(uint64_t);
}

static inline uint64_t dp_run_slots(const dp_run *run) {
    return run->count + run->list_count;
}

/* Fills key_bits, rest_bits and rest_bytes of every table from the layout. */
void dp_run_set_layout(dp_run *run, const dp_layout *layout);

/* ---- reading ---- */

/* Everything that reads a section calls this first. */
static inline doppel_status dp_run_touch(const dp_run *run, const void *from, size_t size) {
    return __builtin_expect(!run->backing, 1) ? DOPPEL_OK : run->backing->touch(run->backing, from, size);
}

/* A new, empty run, to be filled by the caller; NULL when out of memory. */
dp_run *dp_run_create(int bits);
void dp_run_free(dp_run *run);

/* The arranged number at a place of a table, whose key (the bucket) is known. */
static inline dp_bits dp_run_arranged(const dp_run *run, const dp_run_table *table, uint64_t key, uint64_t place) {
    uint64_t rest = 0;
    if (table->rest_bits)
        rest = dp_load64(table->rest + place * (uint64_t)table->rest_bytes) & (UINT64_MAX >> (64 - table->rest_bits));
    dp_bits top = table->key_bits ? (dp_bits)key << (run->bits - table->key_bits) : 0;
    if (run->bits > 64)
        return top | (dp_bits)rest << 64 | ((const uint64_t *)table->filter)[place];
    return top | rest << 32 | ((const uint32_t *)table->filter)[place];
}

/* Numbers of positions from .. from + count - 1, one or two words each (low half first). `bucket` is a bucket of table
 * 0 at or before the one `from` lies in; it is moved to the one the last position lies in, so that one can read on. */
doppel_status dp_run_values(const dp_run *run, uint64_t from, uint64_t count, uint64_t *bucket, uint64_t *values);

/* The places of a bucket. */
typedef struct dp_range {
    uint64_t from, to;
} dp_range;
doppel_status dp_run_mapped_bucket(const dp_run *run, const dp_run_table *table, uint64_t key, dp_range *range);
static inline doppel_status dp_run_bucket(const dp_run *run, const dp_run_table *table, uint64_t key, dp_range *range) {
    if (__builtin_expect(run->backing != NULL, 0))
        return dp_run_mapped_bucket(run, table, key, range);
    *range = (dp_range){table->directory[key], table->directory[key + 1]};
    return DOPPEL_OK;
}

/* The position of a number; *found is false if it is absent. */
doppel_status dp_run_search(const dp_run *run, dp_bits value, bool *found, uint64_t *position);

/* The owners of a position: `count` of them from owner[0], in slots from `slot`. */
typedef struct dp_owners {
    const uint64_t *owner;
    uint64_t count;
    uint64_t slot;
} dp_owners;
doppel_status dp_run_owners(const dp_run *run, uint64_t position, dp_owners *owners);

static inline bool dp_run_is_shared(const dp_run *run, uint64_t position) {
    return run->shared && run->shared[position / 64] >> (position % 64) & 1;
}

static inline bool dp_run_is_dead(const dp_run *run, uint64_t slot) {
    _Atomic uint64_t *dead = atomic_load_explicit(&run->dead, memory_order_acquire);
    return dead && atomic_load_explicit(&dead[slot / 64], memory_order_acquire) >> (slot % 64) & 1;
}

/* When the entry of a slot expires; 0: never. */
static inline uint64_t dp_run_expires(const dp_run *run, uint64_t slot) {
    _Atomic uint64_t *expires = atomic_load_explicit(&run->expires, memory_order_acquire);
    return expires ? atomic_load_explicit(&expires[slot], memory_order_relaxed) : 0;
}

/* The slot of an entry, dead or not; *found is false when it has none. */
doppel_status dp_run_slot(const dp_run *run, dp_bits value, uint64_t owner, bool *found, uint64_t *slot);

/* ---- changing: the writer's ---- */

/* Make room for dead bits and for times, so that setting them cannot fail: DOPPEL_OK, DOPPEL_ERROR_MEMORY, or
 * DOPPEL_ERROR_STORE where the times of a file are damaged. */
doppel_status dp_run_prepare_dead(dp_run *run);
doppel_status dp_run_prepare_expires(dp_run *run);
void dp_run_set_dead(dp_run *run, uint64_t slot, bool dead);
void dp_run_set_expires(dp_run *run, uint64_t slot, uint64_t expires);

/* Marks entries that expire at or before `now` as dead; adds their number to *expired. */
doppel_status dp_run_expire(dp_run *run, uint64_t now, uint64_t *expired);

/* ---- making ---- */

/* A run without tables from sorted items. */
doppel_status dp_run_from_items(const dp_items *items, dp_run **run);

/* Runs that are merged into one. `gone` are the numbers of a run that do not go into the merged one on its behalf: all
 * their owners are dead, or a run before it has them too. */
typedef struct dp_merging {
    int count;
    const _Atomic bool *cancel; /* NULL, or set when the merge is no longer wanted: DOPPEL_ERROR_INTERRUPTED */
    const dp_run *run[DP_MERGE_MOST];
    dp_buffer gone[DP_MERGE_MOST]; /* as uint64_t, one or two words each, ascending */
} dp_merging;

static inline bool dp_merging_is_cancelled(const dp_merging *merging) {
    return merging && merging->cancel && atomic_load_explicit(merging->cancel, memory_order_relaxed);
}

/* Merges the live entries of several runs, with or without tables, into one without tables. Fills `gone`, which
 * dp_merging_free frees. The writer may change times and dead bits during the merge: whether the merged run has these
 * changes is undefined. */
doppel_status dp_run_merge(dp_merging *merging, dp_run **merged);
static inline void dp_merging_free(dp_merging *merging) {
    for (int i = 0; i < merging->count; i++)
        dp_buffer_free(&merging->gone[i]);
}

/* Gives a run without tables its tables. If `merging` (NULL: none) says what it was merged from, buckets of equal
 * tables are copied. */
doppel_status dp_run_build(dp_run *run, const dp_layout *layout, const dp_merging *merging);

#endif
