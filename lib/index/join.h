/* join.h - the parts of the join of one set: join.c leads; join_make.c makes what it works with; join_batch.c reads;
 * join_move.c sorts by one block into lines of memory; join_cell.c takes the lines of one key into the cache, without
 * copies; join_table.c chooses the blocks, join_bucket.c makes buckets by them, join_check.c compares in full;
 * join_copies.c knows how many copies there are.
 *
 * The reordered bits are cut into `blocks` blocks. A pair within the distance can differ in at most `distance` of them,
 * so it agrees in at least `shared` = blocks - distance whole ones. Where the blocks c[1] < ... < c[l] (l <= shared)
 * are chosen, numbers that agree in them are compared, and a pair is told only if these are the first l blocks in which
 * it agrees. Every pair within the distance has exactly one such choice on each way down the blocks: it is found, and
 * told once. */
#ifndef DP_INDEX_JOIN_H
#define DP_INDEX_JOIN_H

#include "index/join_plan.h"
#include "index/pairs.h"
#include "index/source.h"
#include "kernel/kernel.h"

typedef struct dp_join_block {
    int shift, width; /* the bits from `shift` on */
    dp_bits mask;
} dp_join_block;

/* How numbers that agree in block `last` are compared in a table by block b: by a column of 64 bits. */
typedef struct dp_join_window {
    bool crowd; /* 32 bits of the column tell enough for the crowd kernel */
    int turn;   /* the column: the low 64 bits of the number rotated right by it (more than 64 bits only) */
    int top;    /* the block's bits end below this bit of the column */
    int rotate; /* the 32 bits, as the crowd kernel has them */
} dp_join_window;

/* 128 bits rotated right. */
static inline dp_bits dp_join_turn(dp_bits value, int turn) {
    return turn ? value >> turn | value << (128 - turn) : value;
}

/* Groups of equal fingerprints: a hash table of first position << 32 | number of copies, which is never 0. */
typedef struct dp_groups {
    uint64_t *entries;
    size_t count, capacity; /* capacity: a power of two, or 0 */
} dp_groups;

struct dp_joiner;

typedef struct dp_join {
    doppel_join_options options;
    dp_feed feed;
    dp_order order;
    int bits, distance;
    size_t words; /* 64-bit numbers a fingerprint */
    uint64_t count, memory;

    int blocks, shared;                       /* 0 blocks: all are compared with all */
    dp_join_block block[DP_JOIN_BLOCKS];      /* the first at the top */
    dp_join_window (*window)[DP_JOIN_BLOCKS]; /* [last][b] */
    int key_bits;                             /* the first bits of a block that lines are sorted by */

    size_t threads;
    struct dp_joiner *joiners; /* one a thread */
    dp_pairs pairs;
    bool keeps_pairs; /* else they are only counted */

    /* The pass over one block. */
    int pass;
    uint32_t first_key, keys; /* of this round */
    uint32_t *counts;         /* [thread][pass][key]: how many there are in a thread's slice */
    uint32_t *starts, *ends;  /* [thread][key of this round]: lines */
    dp_line *lines;
    size_t line_room;
    _Atomic uint32_t next_key;

    /* Copies. */
    _Atomic uint64_t *marks; /* a bit a position: it is a copy of an earlier one */
    bool has_copies;
    dp_groups groups;  /* of all, once the first pass is over: then there are `entries` */
    uint64_t *members; /* with `all`: first << 32 | copy, ascending */
    size_t member_count;

    _Atomic uint64_t done;
    uint64_t total, told; /* work there is; what progress was told last */

    pthread_mutex_t lock; /* of status and error */
    _Atomic int status;
    doppel_error error;
} dp_join;

/* The slice of a thread, 4096 fingerprints at a time. */
enum { DP_BATCH = 4096 };
typedef struct dp_batch {
    uint64_t at, end;
    const uint64_t *got; /* read, not yet taken */
    size_t left;
    uint64_t *room;   /* DP_FEED_BATCH fingerprints */
    uint64_t *values; /* the batch: reordered, without copies */
    uint32_t *positions;
    size_t count;
} dp_batch;

/* Numbers that agree in the blocks chosen so far. */
typedef struct dp_cell {
    uint64_t *values;
    uint32_t *positions;
    size_t count, capacity;
} dp_cell;

/* One thread. */
typedef struct dp_joiner {
    dp_join *join;
    size_t number;
    dp_batch batch;
    dp_line *open; /* one a key */

    dp_cell cells[DP_JOIN_LEVELS + 1]; /* one a chosen block, and one for buckets that are over */
    uint32_t *extra;                   /* copies of each number of the cell */
    size_t extra_capacity;
    uint32_t *heads; /* a hash table of the cell: number + 1 */
    size_t head_capacity;
    int head_bits;
    dp_groups cell_groups; /* of the cell, in the first pass */
    uint64_t *groups;      /* of all cells so far: first position << 32 | number of copies */
    size_t group_count, group_capacity;
    uint64_t *members;
    size_t member_count, member_capacity;

    /* Tables. */
    dp_crowd crowd;
    size_t crowd_keys;
    uint64_t *column, *sorted;
    uint32_t *ids, *bounds, *hits;
    uint64_t *row_hits;
    size_t table_room, bound_room;

    uint64_t copies, near, all_pairs, candidates;
} dp_joiner;

/* ---- join.c ---- */

/* Ends the join with an error; the first one counts. False, so that `return dp_join_fail(...)` is one line. */
bool dp_join_fail(dp_join *join, doppel_status status, const doppel_error *error);
bool dp_join_no_memory(dp_join *join);
/* Adds to the work done, tells progress from the calling thread; false when the join has to end. */
bool dp_join_advance(dp_joiner *joiner, uint64_t work);

/* ---- join_make.c ---- */

/* Decides how to join `count` fingerprints, shares the memory, and makes what is needed. */
doppel_status dp_join_make(dp_join *join, doppel_error *error);
/* Frees what the comparing needs, and emitting does not. */
void dp_join_free_work(dp_join *join);

/* ---- join_batch.c ---- */

bool dp_batch_init(dp_joiner *joiner);
void dp_batch_free(dp_batch *batch);
/* Goes to a slice; then each `next` gives a batch, false at its end or on an error. */
void dp_batch_start(dp_batch *batch, uint64_t from, uint64_t to);
bool dp_batch_next(dp_joiner *joiner);

/* ---- join_move.c ---- */

/* Counts the keys of all passes. */
void dp_join_count(void *join, size_t thread);
/* Plans the lines for the keys of this round, which `first_key` begins; 0 keys: one alone does not fit. */
void dp_join_plan_round(dp_join *join);
/* Moves the fingerprints of the round into lines. */
void dp_join_move(void *join, size_t thread);

static inline int dp_join_key_bits(const dp_join *join, int pass) {
    return join->block[pass].width < join->key_bits ? join->block[pass].width : join->key_bits;
}

static inline uint32_t *dp_join_counts_of(const dp_join *join, size_t thread, int pass) {
    size_t passes = (size_t)join->distance + 1;
    return join->counts + ((thread * passes + (size_t)pass) << join->key_bits);
}

/* ---- join_cell.c ---- */

/* Takes the numbers of a key of this round; copies are told and left out. */
bool dp_cell_load(dp_joiner *joiner, uint32_t key);
/* The same for one key, straight from the source; with no blocks for all there is. */
bool dp_cell_feed(dp_joiner *joiner, uint32_t key);
bool dp_cell_reserve(dp_joiner *joiner, dp_cell *cell, size_t need);

/* ---- join_table.c ---- */

bool dp_tables_init(dp_join *join);
/* Compares what stands in the first cell, for all choices that begin with the pass's block. */
bool dp_tables_run(dp_joiner *joiner);
/* Compares rows first .. last - 1 of a cell with all behind them, where no block is chosen. */
bool dp_tables_all(dp_joiner *joiner, const dp_cell *cell, size_t first, size_t last);

/* ---- join_bucket.c ---- */

/* Compares the numbers of a cell that agree in block b too; `chosen` has it already, and `last` before it. */
bool dp_join_table(dp_joiner *joiner, const dp_cell *cell, int last, int b, uint64_t chosen);

/* Sorts the numbers of a cell by the first `bits` bits of a block: bucket k is bounds[k] .. bounds[k + 1] - 1 of
 * `values` and of `order`, which tells where they stood. */
typedef struct dp_join_sorting {
    int b, bits;
    uint32_t *bounds; /* two more than buckets */
    uint64_t *values;
    uint32_t *order;
} dp_join_sorting;
void dp_join_sort(const dp_join *join, const dp_cell *cell, const dp_join_sorting *sorting);
/* Room for tables of so many numbers. */
bool dp_join_reserve(dp_joiner *joiner, size_t count);

/* ---- join_check.c ---- */

/* Tells a pair, where pairs are kept. */
bool dp_join_tell(dp_joiner *joiner, uint32_t a, uint32_t b, int distance);

/* A candidate: numbers i and j of a cell are compared in full, and told if they are near and this is the place. */
bool dp_join_check(dp_joiner *joiner, const dp_cell *cell, size_t i, size_t j, uint64_t chosen);

/* Numbers of a cell in some order: number i is ids[i] of the cell; NULL: as they stand. */
typedef struct dp_join_queue {
    const uint64_t *values;
    const uint32_t *ids;
    size_t count;
} dp_join_queue;
/* Number `one` with from .. to - 1, and each with all behind it. */
typedef struct dp_join_row {
    size_t one, from, to;
} dp_join_row;
bool dp_join_compare_one(dp_joiner *joiner, const dp_cell *cell, const dp_join_queue *these, dp_join_row row,
                         uint64_t chosen);
bool dp_join_compare(dp_joiner *joiner, const dp_cell *cell, const dp_join_queue *these, uint64_t chosen);

/* ---- join_copies.c ---- */

bool dp_copy_add(dp_joiner *joiner, uint32_t first, uint32_t copy);
bool dp_group_add(dp_joiner *joiner, uint32_t first, uint32_t copies);
/* Puts the groups of all threads together. */
bool dp_groups_settle(dp_join *join);
/* How many there are of a fingerprint, its first one given. */
uint64_t dp_group_size(const dp_groups *groups, uint32_t first);
/* Empties a table and makes it fit for so many groups; then each is put. */
bool dp_groups_reset(dp_join *join, dp_groups *groups, size_t count);
void dp_groups_put(dp_groups *groups, uint64_t entry);
/* Gives every pair of pairs of groups, in order. */
doppel_status dp_copies_emit(dp_join *join, uint64_t *given, doppel_error *error);

static inline uint64_t dp_add_sure(uint64_t a, uint64_t b) {
    return a + b < a ? UINT64_MAX : a + b;
}

#endif
