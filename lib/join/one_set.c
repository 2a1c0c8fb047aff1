/* one_set.c - all pairs within a distance in one set: doppel_join.
 *
 * The reordered bits are cut into `blocks` blocks. A pair within the distance can differ in at most `distance` of them,
 * so it agrees in at least `shared` = blocks - distance whole ones. Where the blocks c[1] < ... < c[l] (l <= shared)
 * are chosen, numbers that agree in them are compared, and a pair is reported only if these are the first l blocks in
 * which it agrees. Every pair within the distance has exactly one such choice on each way down the blocks: it is found,
 * and reported once.
 *
 * One pass for each block that can be the first in which a pair agrees: the set is moved through memory, sorted into
 * lines by the first bits of that block, and each part that shares them, a cell, is taken into the cache, where tables
 * by the other blocks are made and compared. Nothing is sorted but the pairs (pairs.c).
 *
 * Where blocks would be too narrow for a large distance, all are compared with all. */
#include "join/join.h"
#include "kernel/kernel.h"

#include <stdlib.h>

typedef struct join_block {
    int shift, width; /* the bits from `shift` on */
    dp_bits mask;
} join_block;

/* How numbers that agree in block `last` are compared in a table by block b: by a column of 64 bits. */
typedef struct join_window {
    bool bits_suffice; /* 32 bits of the column are enough for the bucket_pairs kernel */
    int turn;          /* the column: the low 64 bits of the number rotated right by it (more than 64 bits only) */
    int top;           /* the block's bits end below this bit of the column */
    int rotate;        /* the 32 bits, as the bucket_pairs kernel has them */
} join_window;

/* 128 bits rotated right. */
static inline dp_bits rotate_right(dp_bits value, int turn) {
    return turn ? value >> turn | value << (128 - turn) : value;
}

/* Groups of equal fingerprints: a hash table of first position << 32 | number of copies, which is never 0. */
typedef struct copy_groups {
    uint64_t *entries;
    size_t count, capacity; /* capacity: a power of two, or 0 */
} copy_groups;

typedef struct set_join {
    doppel_join_options options;
    dp_fingerprints source;
    dp_order order;
    int bits, distance;
    size_t words; /* 64-bit numbers per fingerprint */
    uint64_t count, memory;
    dp_join_memory need;

    int blocks, shared;                    /* 0 blocks: all are compared with all */
    join_block block[DP_JOIN_BLOCKS];      /* the first at the top */
    join_window (*window)[DP_JOIN_BLOCKS]; /* [last][b] */
    int key_bits;                          /* the first bits of a block that lines are sorted by */

    size_t threads;
    struct join_thread *joiners; /* one per thread */
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
    copy_groups groups; /* of all, once the first pass is over: then there are `entries` */
    uint64_t *members;  /* with `all`: first << 32 | copy, ascending */
    size_t member_count;

    _Atomic uint64_t done;
    uint64_t total, reported; /* total work; progress last reported */

    pthread_mutex_t lock; /* of status and error */
    _Atomic int status;
    doppel_error error;
} set_join;

/* The slice of a thread, 4096 fingerprints at a time. */
enum { BATCH = 4096 };
typedef struct join_batch {
    uint64_t at, end;
    const uint64_t *got; /* read, not yet taken */
    size_t left;
    uint64_t *room;   /* DP_FINGERPRINTS_BATCH fingerprints */
    uint64_t *values; /* the batch: reordered, without copies */
    uint32_t *positions;
    size_t count;
} join_batch;

/* Numbers that agree in the blocks chosen so far. */
typedef struct join_cell {
    uint64_t *values;
    uint32_t *positions;
    size_t count, capacity;
} join_cell;

/* One thread. */
typedef struct join_thread {
    set_join *join;
    size_t number;
    join_batch batch;
    dp_line *open; /* one per key */

    join_cell cells[DP_JOIN_LEVELS + 1]; /* one per chosen block, and one for full buckets */
    uint32_t *extra;                     /* copies of each number of the cell */
    size_t extra_capacity;
    uint32_t *heads; /* a hash table of the cell: number + 1 */
    size_t head_capacity;
    int head_bits;
    copy_groups cell_groups; /* of the cell, in the first pass */
    uint64_t *groups;        /* of all cells so far: first position << 32 | number of copies */
    size_t group_count, group_capacity;
    uint64_t *members;
    size_t member_count, member_capacity;

    /* Tables. */
    dp_bucket_pairs bucket_pairs;
    size_t crowd_keys;
    uint64_t *column, *sorted;
    uint32_t *ids, *bounds, *hits;
    uint64_t *row_hits;
    size_t table_room, bound_room;

    uint64_t copies, near, all_pairs, candidates;
} join_thread;

/* ---- errors and progress ---- */

/* Ends the join with an error; the first one counts. False, so that `return fail(...)` is one line. */
static bool fail(set_join *join, doppel_status status, const doppel_error *error) {
    pthread_mutex_lock(&join->lock);
    if (!atomic_load(&join->status)) {
        join->error = *error;
        atomic_store(&join->status, status);
    }
    pthread_mutex_unlock(&join->lock);
    return false;
}

static bool no_memory(set_join *join) {
    doppel_error error;
    return fail(join, dp_no_memory(&error), &error);
}

/* Adds to the work done, and reports progress from the first thread; false when the join has to end. */
static bool advance(join_thread *joiner, uint64_t work) {
    set_join *join = joiner->join;
    uint64_t done = atomic_fetch_add_explicit(&join->done, work, memory_order_relaxed) + work;
    if (dp_stopped(join->options.stop)) {
        doppel_error error;
        return fail(join, dp_fail(&error, DOPPEL_ERROR_INTERRUPTED, "interrupted"), &error);
    }
    if (joiner->number == 0 && join->options.progress && done - join->reported > join->total / 512) {
        join->reported = done < join->total ? done : join->total;
        join->options.progress(join->reported, join->total, join->options.user);
    }
    return !atomic_load_explicit(&join->status, memory_order_relaxed);
}

/* ---- reading: the fingerprints of a slice, in batches that stay in the cache, reordered, without known copies ---- */

static bool batch_init(join_thread *joiner) {
    size_t words = joiner->join->words;
    join_batch *batch = &joiner->batch;
    batch->room =
        joiner->join->source.given.array ? NULL : dp_big_alloc(DP_FINGERPRINTS_BATCH * words * sizeof(uint64_t));
    batch->values = malloc(BATCH * words * sizeof(uint64_t));
    batch->positions = malloc(BATCH * sizeof(uint32_t));
    return (batch->room || joiner->join->source.given.array) && batch->values && batch->positions;
}

static void batch_free(join_batch *batch) {
    free(batch->room);
    free(batch->values);
    free(batch->positions);
}

/* Goes to a slice; then each `next` gives a batch, false at its end or on an error. */
static void batch_start(join_batch *batch, uint64_t from, uint64_t to) {
    batch->at = from;
    batch->end = to;
    batch->left = 0;
}

/* Moves fingerprints from .. to - 1 of the batch down to `at`. */
static void keep(const set_join *join, join_batch *batch, size_t at, size_t from, size_t to) {
    size_t words = join->words;
    if (at == from)
        return;
    memmove(batch->values + at * words, batch->values + from * words, (to - from) * words * sizeof *batch->values);
    memmove(batch->positions + at, batch->positions + from, (to - from) * sizeof *batch->positions);
}

/* Drops marked copies: everything between two copies is moved at once. */
static void drop_copies(const set_join *join, join_batch *batch, uint64_t first) {
    size_t kept = 0, start = 0;
    uint64_t end = first + batch->count;
    for (uint64_t at = first / 64 * 64; at < end; at += 64) {
        uint64_t marks = atomic_load_explicit(&join->marks[at / 64], memory_order_relaxed);
        for (; marks; marks &= marks - 1) {
            uint64_t copy = at + (uint64_t)__builtin_ctzll(marks);
            if (copy < first || copy >= end)
                continue;
            keep(join, batch, kept, start, (size_t)(copy - first));
            kept += (size_t)(copy - first) - start;
            start = (size_t)(copy - first) + 1;
        }
    }
    keep(join, batch, kept, start, batch->count);
    batch->count = kept + batch->count - start;
}

static bool batch_next(join_thread *joiner) {
    set_join *join = joiner->join;
    join_batch *batch = &joiner->batch;
    if (batch->at == batch->end && !batch->left)
        return false;
    if (!batch->left) {
        doppel_error error;
        uint64_t rest = batch->end - batch->at;
        size_t count = rest < DP_FINGERPRINTS_BATCH ? (size_t)rest : DP_FINGERPRINTS_BATCH;
        doppel_status status = dp_fingerprints_read(&join->source, (dp_fingerprints_part){batch->at, count},
                                                    batch->room, &batch->got, &error);
        if (status)
            return fail(join, status, &error);
        batch->left = count;
        batch->at += count;
    }
    uint64_t from = batch->at - batch->left;
    batch->count = batch->left < BATCH ? batch->left : BATCH;
    dp_order_apply_many(&join->order, batch->got, batch->count, batch->values);
    batch->got += batch->count * join->words;
    batch->left -= batch->count;
    for (size_t i = 0; i < batch->count; i++)
        batch->positions[i] = (uint32_t)(from + i);
    if (join->has_copies)
        drop_copies(join, batch, from);
    return true;
}

/* Reports a pair, if pairs are kept. */
static bool report_pair(join_thread *joiner, uint32_t a, uint32_t b, int distance) {
    set_join *join = joiner->join;
    if (!join->keeps_pairs ||
        dp_pairs_add(&join->pairs.buffers[joiner->number], a < b ? a : b, a < b ? b : a, distance))
        return true;
    return fail(join, join->pairs.status, &join->pairs.error);
}

/* ---- copies of a fingerprint: reported as they are found, counted by groups, multiplied out if every pair is wanted
 * ---- */

static bool add_copy(join_thread *joiner, uint32_t first, uint32_t copy) {
    set_join *join = joiner->join;
    joiner->copies++;
    atomic_fetch_or_explicit(&join->marks[copy / 64], (uint64_t)1 << (copy % 64), memory_order_relaxed);
    if (!join->keeps_pairs || !join->options.all)
        return report_pair(joiner, first, copy, 0);
    if (!dp_reserve(&joiner->members, &joiner->member_capacity, joiner->member_count + 1, sizeof(uint64_t)))
        return no_memory(join);
    joiner->members[joiner->member_count++] = (uint64_t)first << 32 | copy;
    return true;
}

/* The saturating sum. */
static inline uint64_t add_saturated(uint64_t a, uint64_t b) {
    return a + b < a ? UINT64_MAX : a + b;
}

static bool add_group(join_thread *joiner, uint32_t first, uint32_t copies) {
    if (!dp_reserve(&joiner->groups, &joiner->group_capacity, joiner->group_count + 1, sizeof *joiner->groups))
        return no_memory(joiner->join);
    joiner->groups[joiner->group_count++] = (uint64_t)first << 32 | copies;
    uint64_t size = (uint64_t)copies + 1;
    joiner->all_pairs = add_saturated(joiner->all_pairs, size % 2 ? (size - 1) / 2 * size : size / 2 * (size - 1));
    return true;
}

/* Empties a table and makes room for `count` groups. */
static bool reset_groups(set_join *join, copy_groups *groups, size_t count) {
    size_t capacity = 16;
    while (capacity < 2 * count)
        capacity *= 2;
    if (capacity > groups->capacity) {
        free(groups->entries);
        *groups = (copy_groups){.entries = malloc(capacity * sizeof *groups->entries)};
        if (!groups->entries)
            return no_memory(join);
        groups->capacity = capacity;
    }
    memset(groups->entries, 0, groups->capacity * sizeof *groups->entries);
    groups->count = 0;
    return true;
}

/* The place of a group, or the empty one where it would be. */
static size_t place_of(const copy_groups *groups, uint32_t first) {
    size_t at = (size_t)(first * 0x9E3779B97F4A7C15 >> 32) & (groups->capacity - 1);
    while (groups->entries[at] && groups->entries[at] >> 32 != first)
        at = (at + 1) & (groups->capacity - 1);
    return at;
}

static void put_group(copy_groups *groups, uint64_t entry) {
    groups->entries[place_of(groups, (uint32_t)(entry >> 32))] = entry;
    groups->count++;
}

/* How many there are of a fingerprint, its first one given. */
static uint64_t group_size(const copy_groups *groups, uint32_t first) {
    return (groups->entries[place_of(groups, first)] & UINT32_MAX) + 1;
}

static bool collect_groups(set_join *join, size_t count) {
    if (!reset_groups(join, &join->groups, count))
        return false;
    for (size_t thread = 0; thread < join->threads; thread++) {
        join_thread *joiner = &join->joiners[thread];
        for (size_t i = 0; i < joiner->group_count; i++)
            put_group(&join->groups, joiner->groups[i]);
        free(joiner->groups);
        joiner->groups = NULL;
    }
    return true;
}

static bool collect_members(set_join *join, size_t count) {
    uint64_t *members = malloc(count * sizeof *members + 1), *scratch = malloc(count * sizeof *members + 1);
    size_t done = 0;
    for (size_t thread = 0; members && scratch && thread < join->threads; thread++) {
        join_thread *joiner = &join->joiners[thread];
        if (joiner->member_count)
            memcpy(members + done, joiner->members, joiner->member_count * sizeof *members);
        done += joiner->member_count;
        free(joiner->members);
        joiner->members = NULL;
    }
    if (members && scratch)
        dp_sort64(members, count, scratch);
    free(scratch);
    join->members = members;
    join->member_count = count;
    return (members && scratch) || no_memory(join);
}

/* Merges the groups of all threads. */
static bool collect_copies(set_join *join) {
    size_t groups = 0, members = 0;
    for (size_t thread = 0; thread < join->threads; thread++) {
        groups += join->joiners[thread].group_count;
        members += join->joiners[thread].member_count;
        join->has_copies |= join->joiners[thread].copies > 0;
    }
    return collect_groups(join, groups) && collect_members(join, members);
}

/* Where the numbers with `high` as their upper half begin. */
static size_t find_high(const uint64_t *numbers, size_t count, uint32_t high) {
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (numbers[middle] >> 32 < high)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* Pairs of firsts are read in order, and become pairs of all their copies, which are sorted again. */
typedef struct copies_product {
    set_join *join;
    dp_pairs pairs;
} copies_product;

/* All that equal `first`: itself and the copies from *from on. */
static size_t copies_of(const set_join *join, uint32_t first, size_t *from) {
    size_t to = *from = find_high(join->members, join->member_count, first);
    while (to < join->member_count && join->members[to] >> 32 == first)
        to++;
    return to - *from;
}

static inline uint32_t member(const set_join *join, uint32_t first, size_t from, size_t i) {
    return i ? (uint32_t)join->members[from + i - 1] : first;
}

static doppel_status multiply(const doppel_pair *pairs, size_t count, void *user) {
    copies_product *p = user;
    for (size_t i = 0; i < count; i++) {
        uint32_t a = (uint32_t)pairs[i].a, b = (uint32_t)pairs[i].b;
        size_t a_from, b_from, a_count = copies_of(p->join, a, &a_from), b_count = copies_of(p->join, b, &b_from);
        for (size_t x = 0; x <= a_count; x++)
            for (size_t y = 0; y <= b_count; y++) {
                uint32_t one = member(p->join, a, a_from, x), two = member(p->join, b, b_from, y);
                if (!dp_pairs_add(&p->pairs.buffers[0], one < two ? one : two, one < two ? two : one,
                                  pairs[i].distance))
                    return DOPPEL_OK; /* finish reports the error */
            }
    }
    return DOPPEL_OK;
}

/* The pairs inside groups. */
static void multiply_groups(copies_product *p) {
    const set_join *join = p->join;
    for (size_t at = 0; at < join->member_count;) {
        uint32_t first = (uint32_t)(join->members[at] >> 32);
        size_t from, count = copies_of(join, first, &from);
        for (size_t x = 0; x <= count; x++)
            for (size_t y = x + 1; y <= count; y++)
                if (!dp_pairs_add(&p->pairs.buffers[0], member(join, first, from, x), member(join, first, from, y), 0))
                    return;
        at = from + count;
    }
}

/* Emits every pair between groups, in order. */
static doppel_status emit_with_copies(set_join *join, uint64_t *given, doppel_error *error) {
    copies_product p = {.join = join};
    dp_pairs_options options = join->pairs.options;
    options.threads = 1;
    DP_TRY(dp_pairs_init(&p.pairs, &options, error));
    multiply_groups(&p);
    doppel_status status = dp_pairs_finish(&join->pairs, multiply, &p, given, error);
    DP_THEN(status, dp_pairs_finish(&p.pairs, join->options.pairs, join->options.user, given, error));
    join->pairs.file.size += p.pairs.file.size;
    dp_pairs_free(&p.pairs);
    return status;
}

/* Bytes of a number's tables in a cell, beyond its own size: only for the memory limit. */
enum { BYTES_BESIDE = 48 };

/* Room for `need` numbers in a cell. */
static bool reserve_cell(join_thread *joiner, join_cell *cell, size_t need) {
    set_join *join = joiner->join;
    if (need <= cell->capacity)
        return true;
    size_t capacity = cell->capacity ? cell->capacity : 1024;
    while (capacity < need)
        capacity += capacity / 2;
    uint64_t bytes = (uint64_t)capacity * (join->words * sizeof(uint64_t) + BYTES_BESIDE);
    if (bytes > join->memory) {
        doppel_error error;
        dp_fail(&error, DOPPEL_ERROR_USAGE,
                "too little memory: %zu fingerprints that share a key have to be held at once; %llu MiB would do", need,
                (unsigned long long)(bytes / 4 * 5 >> 20) + 1);
        return fail(join, DOPPEL_ERROR_USAGE, &error);
    }
    uint64_t *values = realloc(cell->values, capacity * join->words * sizeof *values);
    if (values)
        cell->values = values;
    uint32_t *positions = realloc(cell->positions, capacity * sizeof *positions);
    if (positions)
        cell->positions = positions;
    if (!values || !positions)
        return no_memory(join);
    cell->capacity = capacity;
    return true;
}

/* ---- comparing numbers of a cell in full ---- */

/* Numbers of a cell in some order: number i is ids[i] of the cell; NULL: in cell order. */
typedef struct cell_numbers {
    const uint64_t *values;
    const uint32_t *ids;
    size_t count;
} cell_numbers;

/* Number `one` with numbers from .. to - 1. */
typedef struct row_range {
    size_t one, from, to;
} row_range;

/* Whether the chosen blocks are the first in which two numbers agree, given where they differ. */
static inline bool agree_first(const set_join *join, dp_bits differ, uint64_t chosen) {
    for (int b = 0; chosen; b++, chosen >>= 1)
        if (((differ & join->block[b].mask) == 0) != (chosen & 1))
            return false;
    return true;
}

/* The number of pairs that a pair represents when every copy counts. */
static uint64_t pairs_of_copies(const join_thread *joiner, uint32_t a, uint32_t b) {
    const copy_groups *groups = joiner->join->groups.entries ? &joiner->join->groups : &joiner->cell_groups;
    return groups->count ? group_size(groups, a) * group_size(groups, b) : 1;
}

static bool report_near(join_thread *joiner, uint32_t a, uint32_t b, int distance) {
    joiner->near++;
    joiner->all_pairs = add_saturated(joiner->all_pairs, pairs_of_copies(joiner, a, b));
    return report_pair(joiner, a, b, distance);
}

/* A candidate: numbers i and j of a cell. */
static bool check_candidate(join_thread *joiner, const join_cell *cell, size_t i, size_t j, uint64_t chosen) {
    const set_join *join = joiner->join;
    dp_bits differ;
    if (join->words == 1)
        differ = cell->values[i] ^ cell->values[j];
    else
        differ = dp_bits_load(cell->values + 2 * i, 128) ^ dp_bits_load(cell->values + 2 * j, 128);
    if (!agree_first(join, differ, chosen))
        return true;
    int distance = dp_bits_count(differ);
    return distance > join->distance || report_near(joiner, cell->positions[i], cell->positions[j], distance);
}

static bool compare_one(join_thread *joiner, const join_cell *cell, const cell_numbers *these, row_range row,
                        uint64_t chosen) {
    const set_join *join = joiner->join;
    const uint64_t *values = these->values;
    size_t i = row.one, count = row.to - row.from;
    size_t found =
        join->words == 1
            ? dp_near64_kernel()(values + row.from, count, values[i], join->distance, joiner->hits)
            : dp_near128_kernel()(values + 2 * row.from, count, values + 2 * i, join->distance, joiner->hits);
    joiner->candidates += count;
    for (size_t hit = 0; hit < found; hit++) {
        size_t j = row.from + joiner->hits[hit];
        if (!check_candidate(joiner, cell, these->ids ? these->ids[i] : i, these->ids ? these->ids[j] : j, chosen))
            return false;
    }
    return true;
}

static bool compare_numbers(join_thread *joiner, const join_cell *cell, const cell_numbers *these, uint64_t chosen) {
    for (size_t i = 0; i + 1 < these->count; i++)
        if (!compare_one(joiner, cell, these, (row_range){i, i + 1, these->count}, chosen))
            return false;
    return true;
}

/* ---- tables: the numbers of a cell in buckets by one more block ----
 *
 * There are three ways. Small buckets: the bucket_pairs kernel compares while it fills them. Buckets of a dozen or
 * more: 32 bits of each number are sorted by bucket, and the row_pairs kernel compares. If 32 bits are too few, or
 * buckets are larger still, the numbers themselves are sorted, and each is compared with those after it. */

/* Hits of the row_pairs kernel at a time. */
enum { ROW_HITS = 4096 };

/* A table that is made. */
typedef struct block_table {
    int b, bits; /* the block, and how many of its first bits are the key */
    uint64_t chosen;
    const join_window *window;
} block_table;

/* Room for tables of `count` numbers. */
static bool reserve_tables(join_thread *joiner, size_t count) {
    if (count <= joiner->table_room)
        return true;
    size_t room = count + count / 2 + 1024, words = joiner->join->words;
    free(joiner->column);
    free(joiner->sorted);
    free(joiner->ids);
    free(joiner->hits);
    free(joiner->row_hits);
    joiner->table_room = 0;
    joiner->column = words == 2 ? malloc(room * sizeof(uint64_t)) : NULL;
    joiner->sorted = malloc((room + 8) * words * sizeof(uint64_t));
    joiner->ids = malloc(room * sizeof(uint32_t));
    joiner->hits = malloc((room + 64) * sizeof(uint32_t));
    joiner->row_hits = malloc((ROW_HITS + DP_ROW_PAIRS_SLACK + 1) * sizeof(uint64_t));
    if ((words == 2 && !joiner->column) || !joiner->sorted || !joiner->ids || !joiner->hits || !joiner->row_hits)
        return no_memory(joiner->join);
    joiner->table_room = room;
    return true;
}

static bool reserve_bounds(join_thread *joiner, size_t need) {
    return dp_reserve(&joiner->bounds, &joiner->bound_room, need, sizeof *joiner->bounds) || no_memory(joiner->join);
}

static bool reserve_crowd(join_thread *joiner, size_t keys) {
    if (keys <= joiner->crowd_keys)
        return true;
    dp_bucket_pairs *buckets = &joiner->bucket_pairs;
    free(buckets->fills);
    free(buckets->slots);
    free(buckets->ids);
    joiner->crowd_keys = 0;
    buckets->fills = malloc(keys);
    buckets->slots = aligned_alloc(64, keys * DP_BUCKET_SLOTS * sizeof *buckets->slots);
    buckets->ids = malloc(keys * DP_BUCKET_SLOTS * sizeof *buckets->ids);
    if (!buckets->fills || !buckets->slots || !buckets->ids)
        return no_memory(joiner->join);
    joiner->crowd_keys = keys;
    return true;
}

/* Sorts the numbers of a cell by the first `bits` bits of a block: bucket k is bounds[k] .. bounds[k + 1] - 1 of
 * `values` and of `order`, which says where they stood. */
typedef struct cell_sorting {
    int b, bits;
    uint32_t *bounds; /* two more than buckets */
    uint64_t *values;
    uint32_t *order;
} cell_sorting;

static void add_up_bounds(const cell_sorting *s) {
    for (size_t key = 2; key <= (size_t)1 << s->bits; key++)
        s->bounds[key] += s->bounds[key - 1];
}

static void sort_narrow(const join_cell *cell, const cell_sorting *s, int shift) {
    const uint64_t mask = ((uint64_t)1 << s->bits) - 1, *from = cell->values;
    for (size_t i = 0; i < cell->count; i++)
        s->bounds[(from[i] >> shift & mask) + 2]++;
    add_up_bounds(s);
    for (size_t i = 0; i < cell->count; i++) {
        uint32_t at = s->bounds[(from[i] >> shift & mask) + 1]++;
        s->values[at] = from[i];
        s->order[at] = (uint32_t)i;
    }
}

static void sort_wide(const join_cell *cell, const cell_sorting *s, int shift) {
    const uint64_t mask = ((uint64_t)1 << s->bits) - 1, *from = cell->values;
    for (size_t i = 0; i < cell->count; i++)
        s->bounds[((uint64_t)(dp_bits_load(from + 2 * i, 128) >> shift) & mask) + 2]++;
    add_up_bounds(s);
    for (size_t i = 0; i < cell->count; i++) {
        uint32_t at = s->bounds[((uint64_t)(dp_bits_load(from + 2 * i, 128) >> shift) & mask) + 1]++;
        memcpy(s->values + 2 * (size_t)at, from + 2 * i, 2 * sizeof *from);
        s->order[at] = (uint32_t)i;
    }
}

static void sort_cell(const set_join *join, const join_cell *cell, const cell_sorting *s) {
    int shift = join->block[s->b].shift + join->block[s->b].width - s->bits;
    memset(s->bounds, 0, (((size_t)1 << s->bits) + 2) * sizeof *s->bounds);
    if (join->words == 1)
        sort_narrow(cell, s, shift);
    else
        sort_wide(cell, s, shift);
}

static bool table_by_sort(join_thread *joiner, const join_cell *cell, int b, uint64_t chosen) {
    const set_join *join = joiner->join;
    size_t words = join->words;
    int bits = 1;
    while (bits < join->block[b].width && cell->count >> bits > 2)
        bits++;
    if (!reserve_bounds(joiner, ((size_t)1 << bits) + 2))
        return false;
    sort_cell(join, cell, &(cell_sorting){b, bits, joiner->bounds, joiner->sorted, joiner->ids});
    for (size_t key = 0; key < (size_t)1 << bits; key++) {
        size_t from = joiner->bounds[key];
        cell_numbers bucket = {joiner->sorted + from * words, joiner->ids + from, joiner->bounds[key + 1] - from};
        if (bucket.count > 1 && !compare_numbers(joiner, cell, &bucket, chosen))
            return false;
    }
    return true;
}

/* The numbers for the bucket_pairs kernel: unchanged, or 64 bits around the block. */
static const uint64_t *make_column(join_thread *joiner, const join_cell *cell, int turn) {
    if (joiner->join->words == 1)
        return cell->values;
    for (size_t i = 0; i < cell->count; i++)
        joiner->column[i] = (uint64_t)rotate_right(dp_bits_load(cell->values + 2 * i, 128), turn);
    return joiner->column;
}

/* Pairs compared in the buckets that are not full. */
static uint64_t count_compared(const dp_bucket_pairs *buckets) {
    uint64_t compared = 0;
    for (size_t key = 0; key < (size_t)1 << buckets->width; key++) {
        uint32_t fill = buckets->fills[key] <= DP_BUCKET_SLOTS ? buckets->fills[key] : 0;
        compared += fill * (fill - 1) / 2;
    }
    return compared;
}

static inline bool is_overflowing(const dp_bucket_pairs *buckets, size_t i) {
    uint64_t mask = ((uint64_t)1 << buckets->width) - 1;
    return buckets->fills[buckets->numbers[i] >> buckets->shift & mask] == DP_BUCKET_OVERFLOW;
}

/* Adds a number to the cell of overflowing buckets, which is sorted by the numbers themselves. */
static bool set_aside(join_thread *joiner, const join_cell *cell, size_t i) {
    join_cell *aside = &joiner->cells[DP_JOIN_LEVELS];
    size_t words = joiner->join->words;
    if (!reserve_cell(joiner, aside, aside->count + 1))
        return false;
    memcpy(aside->values + aside->count * words, cell->values + i * words, words * sizeof *aside->values);
    aside->positions[aside->count++] = cell->positions[i];
    return true;
}

/* The numbers of all buckets that are over. */
static bool sort_overflow(join_thread *joiner, const join_cell *cell, int b, uint64_t chosen) {
    join_cell *aside = &joiner->cells[DP_JOIN_LEVELS];
    aside->count = 0;
    for (size_t i = 0; i < cell->count; i++)
        if (is_overflowing(&joiner->bucket_pairs, i) && !set_aside(joiner, cell, i))
            return false;
    return table_by_sort(joiner, aside, b, chosen);
}

static bool table_by_crowd(join_thread *joiner, const join_cell *cell, const block_table *t) {
    dp_bucket_pairs *buckets = &joiner->bucket_pairs;
    if (!reserve_crowd(joiner, (size_t)1 << t->bits))
        return false;
    buckets->numbers = make_column(joiner, cell, t->window->turn);
    buckets->count = cell->count;
    buckets->shift = t->window->top - t->bits;
    buckets->width = t->bits;
    buckets->rotate = t->window->rotate;
    buckets->distance = joiner->join->distance;
    buckets->hits = joiner->hits;
    buckets->room = cell->count;
    size_t found = dp_bucket_pairs_kernel()(buckets);
    if (found == DP_BUCKET_HITS_FULL)
        return table_by_sort(joiner, cell, t->b, t->chosen);
    joiner->candidates += count_compared(buckets);
    for (size_t hit = 0; hit < found; hit++) {
        size_t i = joiner->hits[hit] >> 16, j = joiner->hits[hit] & 0xFFFF;
        if (!(buckets->overflow && is_overflowing(buckets, i)) && !check_candidate(joiner, cell, i, j, t->chosen))
            return false;
    }
    return buckets->overflow == 0 || sort_overflow(joiner, cell, t->b, t->chosen);
}

/* 32 bits of each number and its place in the cell, sorted by bucket. */
static void sort_rows(join_thread *joiner, const join_cell *cell, const join_window *window, int bits) {
    const uint64_t mask = ((uint64_t)1 << bits) - 1, *column = make_column(joiner, cell, window->turn);
    const int shift = window->top - bits, rotate = window->rotate, back = -window->rotate & 63;
    uint32_t *bounds = joiner->bounds;
    uint64_t *rows = joiner->sorted;
    memset(bounds, 0, (mask + 3) * sizeof *bounds);
    for (size_t i = 0; i < cell->count; i++)
        bounds[(column[i] >> shift & mask) + 2]++;
    for (size_t key = 2; key <= mask + 1; key++)
        bounds[key] += bounds[key - 1];
    for (size_t i = 0; i < cell->count; i++) {
        uint32_t word = (uint32_t)(column[i] >> rotate | column[i] << back);
        rows[bounds[(column[i] >> shift & mask) + 1]++] = (uint64_t)word << 32 | i;
    }
}

/* Sets aside what the row_pairs kernel skips, and counts what it compares. */
static bool look_at_bounds(join_thread *joiner, const join_cell *cell, size_t buckets) {
    joiner->cells[DP_JOIN_LEVELS].count = 0;
    for (size_t key = 0; key < buckets; key++) {
        size_t from = joiner->bounds[key], count = joiner->bounds[key + 1] - from;
        if (count <= DP_ROW_PAIRS_MOST)
            joiner->candidates += count * (count - 1) / 2;
        else
            for (size_t i = 0; i < count; i++)
                if (!set_aside(joiner, cell, (uint32_t)joiner->sorted[from + i]))
                    return false;
    }
    return true;
}

static bool table_by_rows(join_thread *joiner, const join_cell *cell, const block_table *t) {
    join_cell *aside = &joiner->cells[DP_JOIN_LEVELS];
    size_t buckets = (size_t)1 << t->bits;
    if (!reserve_bounds(joiner, buckets + 2))
        return false;
    sort_rows(joiner, cell, t->window, t->bits);
    dp_row_pairs rows = {joiner->sorted,   joiner->bounds, buckets, joiner->join->distance, 0,
                         joiner->row_hits, ROW_HITS};
    while (rows.next < buckets) {
        size_t found = dp_row_pairs_kernel()(&rows);
        for (size_t hit = 0; hit < found; hit++)
            if (!check_candidate(joiner, cell, joiner->row_hits[hit] >> 32, (uint32_t)joiner->row_hits[hit], t->chosen))
                return false;
    }
    return look_at_bounds(joiner, cell, buckets) &&
           (aside->count == 0 || table_by_sort(joiner, aside, t->b, t->chosen));
}

/* Compares the numbers of a cell that agree in block b too; `chosen` has it already, and `last` before it. */
static bool compare_by_block(join_thread *joiner, const join_cell *cell, int last, int b, uint64_t chosen) {
    const set_join *join = joiner->join;
    const join_window *window = &join->window[last][b];
    int bits = 1;
    while (bits < join->block[b].width && cell->count >> bits >= DP_BUCKET_LOAD)
        bits++;
    if (!reserve_tables(joiner, cell->count))
        return false;
    if (!window->bits_suffice || cell->count >> bits > DP_ROW_PAIRS_MOST / 2)
        return table_by_sort(joiner, cell, b, chosen);
    bool small = cell->count <= DP_BUCKET_MOST && cell->count >> bits <= DP_BUCKET_LOAD;
    block_table t = {b, bits, chosen, window};
    return small ? table_by_crowd(joiner, cell, &t) : table_by_rows(joiner, cell, &t);
}

/* ---- choosing the blocks: all numbers of a cell agree in the first ----
 *
 * For each block that may come next the numbers are put into buckets by it. Most often that is the last block there is
 * to choose. With more to choose, each bucket is a cell of its own. A cell that is small enough is compared at once:
 * the rule above holds for any number of blocks. */

static join_window plan_window(const set_join *join, int last, int b) {
    const join_block *block = &join->block[b];
    join_window window = {.top = block->shift + block->width};
    dp_bits known = join->block[last].mask | block->mask;
    if (join->bits > 64) {
        window.turn = (window.top + 64) % 128;
        window.top = 64;
        known = rotate_right(known, window.turn);
    }
    uint64_t same = (uint64_t)known | (join->bits < 64 ? ~(((uint64_t)1 << join->bits) - 1) : 0);
    int best = 33;
    for (int rotate = 0; rotate < 64; rotate++) {
        int overlap = __builtin_popcountll(same & (rotate ? dp_rotl64(UINT32_MAX, rotate) : UINT32_MAX));
        if (overlap < best) {
            best = overlap;
            window.rotate = rotate;
        }
    }
    window.bits_suffice = dp_join_bits_suffice(32 - best, join->distance);
    return window;
}

static bool plan_windows(set_join *join) {
    join->window = calloc((size_t)join->blocks + 1, sizeof *join->window);
    if (!join->window)
        return no_memory(join);
    for (int last = 0; last < join->blocks; last++)
        for (int b = last + 1; b < join->blocks; b++)
            join->window[last][b] = plan_window(join, last, b);
    return true;
}

static bool descend(join_thread *joiner, const join_cell *cell, int level, uint64_t chosen);

/* Makes each bucket of a block a cell of its own. */
static bool split(join_thread *joiner, const join_cell *cell, int level, int b, uint64_t chosen) {
    const set_join *join = joiner->join;
    uint32_t bounds[(1 << DP_SPLIT_BITS) + 2];
    size_t words = join->words;
    int bits = join->block[b].width < DP_SPLIT_BITS ? join->block[b].width : DP_SPLIT_BITS;
    join_cell *sorted = &joiner->cells[level];
    if (!reserve_tables(joiner, cell->count) || !reserve_cell(joiner, sorted, cell->count))
        return false;
    sort_cell(join, cell, &(cell_sorting){b, bits, bounds, sorted->values, joiner->ids});
    for (size_t i = 0; i < cell->count; i++)
        sorted->positions[i] = cell->positions[joiner->ids[i]];
    for (size_t key = 0; key < (size_t)1 << bits; key++) {
        size_t from = bounds[key];
        join_cell part = {sorted->values + from * words, sorted->positions + from, bounds[key + 1] - from, 0};
        if (part.count > 1 && !descend(joiner, &part, level + 1, chosen))
            return false;
    }
    return true;
}

/* `level` blocks are chosen, and all numbers of the cell agree in them. */
static bool descend(join_thread *joiner, const join_cell *cell, int level, uint64_t chosen) {
    const set_join *join = joiner->join;
    int last = 63 - __builtin_clzll(chosen), end = join->blocks - join->shared + level;
    if (level == join->shared || cell->count <= (size_t)(DP_AT_ONCE * (end - last))) {
        cell_numbers all = {cell->values, NULL, cell->count};
        return reserve_tables(joiner, cell->count) && compare_numbers(joiner, cell, &all, chosen);
    }
    for (int b = last + 1; b <= end; b++) {
        uint64_t choice = chosen | (uint64_t)1 << b;
        bool leaf = level + 1 == join->shared || cell->count >> join->block[b].width <= DP_BUCKET_LOAD;
        if (!(leaf ? compare_by_block(joiner, cell, last, b, choice) : split(joiner, cell, level, b, choice)))
            return false;
    }
    return true;
}

/* Compares the first cell, for all choices that begin with the pass's block. */
static bool compare_cell(join_thread *joiner) {
    /* Copies are reported already, and nothing else is within 0. */
    return joiner->cells[0].count < 2 || joiner->join->distance == 0 ||
           descend(joiner, &joiner->cells[0], 1, (uint64_t)1 << joiner->join->pass);
}

/* Compares rows first .. last - 1 of a cell with all after them, where no block is chosen. */
static bool compare_rows(join_thread *joiner, const join_cell *cell, size_t first, size_t last) {
    enum { TILE = 2048 }; /* of the numbers after: 16 or 32 KiB, which stay in the L1 cache for all rows */
    cell_numbers all = {cell->values, NULL, cell->count};
    if (!reserve_tables(joiner, TILE))
        return false;
    for (size_t from = first; from < cell->count; from += TILE)
        for (size_t i = first; i < last; i++) {
            size_t start = from > i + 1 ? from : i + 1, end = from + TILE < cell->count ? from + TILE : cell->count;
            if (start < end && !compare_one(joiner, cell, &all, (row_range){i, start, end}, 0))
                return false;
        }
    return true;
}

/* The first bits of a pass's block that lines are sorted by. */
static inline int pass_key_bits(const set_join *join, int pass) {
    return join->block[pass].width < join->key_bits ? join->block[pass].width : join->key_bits;
}

/* ---- cells: the fingerprints of one key, in the cache ----
 *
 * In the first pass, which brings equal ones together, each is looked up in a hash table of those before it: a copy is
 * reported, marked and left out. */

static size_t head_of(const join_thread *joiner, const uint64_t *value) {
    uint64_t mixed = value[0];
    if (joiner->join->words == 2)
        mixed ^= (value[1] << 32 | value[1] >> 32) * 0xC2B2AE3D27D4EB4F;
    return (size_t)((mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15 >> (64 - joiner->head_bits));
}

/* Makes the table fit for `count` numbers, at most half full, and puts those of the cell in. */
static bool rebuild_heads(join_thread *joiner, size_t count) {
    const join_cell *cell = &joiner->cells[0];
    int bits = 8;
    while ((size_t)1 << bits < 2 * count)
        bits++;
    if ((size_t)1 << bits > joiner->head_capacity) {
        free(joiner->heads);
        joiner->head_capacity = 0;
        joiner->heads = dp_big_alloc(sizeof(uint32_t) << bits);
        if (!joiner->heads)
            return no_memory(joiner->join);
        joiner->head_capacity = (size_t)1 << bits;
    }
    joiner->head_bits = bits;
    memset(joiner->heads, 0, sizeof(uint32_t) << bits);
    size_t mask = ((size_t)1 << bits) - 1, words = joiner->join->words;
    for (size_t i = 0; i < cell->count; i++) {
        size_t at = head_of(joiner, cell->values + i * words);
        while (joiner->heads[at])
            at = (at + 1) & mask;
        joiner->heads[at] = (uint32_t)i + 1;
    }
    return true;
}

static bool reserve_extra(join_thread *joiner, size_t need) {
    if (need <= joiner->extra_capacity)
        return true;
    size_t before = joiner->extra_capacity;
    if (!dp_reserve(&joiner->extra, &joiner->extra_capacity, need, sizeof *joiner->extra))
        return no_memory(joiner->join);
    memset(joiner->extra + before, 0, (joiner->extra_capacity - before) * sizeof *joiner->extra);
    return true;
}

/* Room in the table for `more` numbers that may all be new. */
static bool reserve_distinct(join_thread *joiner, size_t more) {
    join_cell *cell = &joiner->cells[0];
    size_t need = cell->count + more;
    if (!reserve_cell(joiner, cell, need) || !reserve_extra(joiner, need))
        return false;
    return need <= (size_t)1 << joiner->head_bits >> 1 || rebuild_heads(joiner, 2 * need);
}

static inline bool equal(const uint64_t *a, const uint64_t *b, size_t words) {
    return a[0] == b[0] && (words == 1 || a[1] == b[1]);
}

/* Puts a number in, or finds the one that it copies. */
static inline bool add_distinct(join_thread *joiner, const uint64_t *value, uint32_t position, size_t words) {
    join_cell *cell = &joiner->cells[0];
    size_t mask = ((size_t)1 << joiner->head_bits) - 1, at = head_of(joiner, value);
    for (; joiner->heads[at]; at = (at + 1) & mask) {
        uint32_t here = joiner->heads[at] - 1;
        if (equal(cell->values + here * words, value, words)) {
            joiner->extra[here]++;
            return add_copy(joiner, cell->positions[here], position);
        }
    }
    joiner->heads[at] = (uint32_t)cell->count + 1;
    for (size_t w = 0; w < words; w++)
        cell->values[cell->count * words + w] = value[w];
    cell->positions[cell->count++] = position;
    return true;
}

/* Before a cell of up to `count` numbers. If most are copies a small table is enough, so it starts small and grows. */
static bool begin(join_thread *joiner, size_t count) {
    enum { FIRST_MOST = 1 << 16 };
    joiner->cells[0].count = 0;
    joiner->cell_groups.count = 0;
    return joiner->join->pass > 0 || rebuild_heads(joiner, count < FIRST_MOST ? count : FIRST_MOST);
}

/* After a cell: numbers with copies become groups. */
static bool end(join_thread *joiner) {
    set_join *join = joiner->join;
    const join_cell *cell = &joiner->cells[0];
    size_t before = joiner->group_count;
    for (size_t i = 0; join->pass == 0 && i < cell->count; i++)
        if (joiner->extra[i]) {
            if (!add_group(joiner, cell->positions[i], joiner->extra[i]))
                return false;
            joiner->extra[i] = 0;
        }
    if (joiner->group_count == before)
        return true;
    if (!reset_groups(join, &joiner->cell_groups, joiner->group_count - before))
        return false;
    for (size_t i = before; i < joiner->group_count; i++)
        put_group(&joiner->cell_groups, joiner->groups[i]);
    return true;
}

static bool add(join_thread *joiner, const uint64_t *values, const uint32_t *positions, size_t count) {
    join_cell *cell = &joiner->cells[0];
    size_t words = joiner->join->words;
    if (joiner->join->pass == 0) {
        for (size_t i = 0; i < count; i++)
            if (!add_distinct(joiner, values + i * words, positions[i], words))
                return false;
        return true;
    }
    memcpy(cell->values + cell->count * words, values, count * words * sizeof *values);
    memcpy(cell->positions + cell->count, positions, count * sizeof *positions);
    cell->count += count;
    return true;
}

static bool load_lines(join_thread *joiner, const dp_line *lines, size_t count) {
    enum { ONCE = 256 }; /* lines, between two checks of the room */
    bool wide = joiner->join->words == 2;
    for (size_t i = 0; i < count; i++) {
        size_t room = (count - i < ONCE ? count - i : ONCE) * DP_LINE_NARROW;
        if (i % ONCE == 0 &&
            !(joiner->join->pass ? reserve_cell(joiner, &joiner->cells[0], joiner->cells[0].count + room)
                                 : reserve_distinct(joiner, room)))
            return false;
        const dp_line *line = &lines[i];
        if (!(wide ? add(joiner, line->wide.value[0], line->wide.position, line->wide.fill)
                   : add(joiner, line->narrow.value, line->narrow.position, line->narrow.fill)))
            return false;
    }
    return true;
}

/* Takes the numbers of a key of this round; copies are reported and left out. */
static bool load_cell(join_thread *joiner, uint32_t key) {
    const set_join *join = joiner->join;
    size_t lines = 0;
    for (size_t thread = 0; thread < join->threads; thread++)
        lines += join->ends[(thread << join->key_bits) + key] - join->starts[(thread << join->key_bits) + key];
    if (!begin(joiner, lines * DP_LINE_NARROW))
        return false;
    for (size_t thread = 0; thread < join->threads; thread++) {
        uint32_t from = join->starts[(thread << join->key_bits) + key],
                 to = join->ends[(thread << join->key_bits) + key];
        if (!load_lines(joiner, join->lines + from, to - from))
            return false;
    }
    return end(joiner);
}

/* Keeps those of the batch that have the key. */
static void keep_key(const set_join *join, join_batch *batch, uint32_t key) {
    int bits = pass_key_bits(join, join->pass),
        shift = join->block[join->pass].shift + join->block[join->pass].width - bits;
    size_t kept = 0, words = join->words;
    dp_bits mask = ((dp_bits)1 << bits) - 1;
    for (size_t i = 0; i < batch->count; i++) {
        dp_bits value = dp_bits_load(batch->values + i * words, join->bits);
        for (size_t w = 0; w < words; w++)
            batch->values[kept * words + w] = batch->values[i * words + w];
        batch->positions[kept] = batch->positions[i];
        kept += (value >> shift & mask) == key;
    }
    batch->count = kept;
}

/* The same for one key, straight from the source; with no blocks for all there is. */
static bool read_cell(join_thread *joiner, uint32_t key) {
    set_join *join = joiner->join;
    join_batch *batch = &joiner->batch;
    if (!begin(joiner, BATCH))
        return false;
    batch_start(batch, 0, join->count);
    while (batch_next(joiner)) {
        size_t count = batch->count;
        if (join->blocks)
            keep_key(join, batch, key);
        if (!(join->pass ? reserve_cell(joiner, &joiner->cells[0], joiner->cells[0].count + batch->count)
                         : reserve_distinct(joiner, batch->count)))
            return false;
        if (!add(joiner, batch->values, batch->positions, batch->count) || !advance(joiner, join->blocks ? 0 : count))
            return false;
    }
    return !atomic_load(&join->status) && end(joiner);
}

/* ---- lines: a set sorted by the first bits of one block ----
 *
 * Each thread has a slice of the positions. How many of each key a slice has is counted once, for all passes; so every
 * thread knows where its lines of a key go, and the lines of a key stand in the order of the positions, slice by slice.
 * If not everything fits into memory, it is moved in rounds, each for a range of keys. */

/* How many of each key there are in the slice of a thread. */
static inline uint32_t *key_counts(const set_join *join, size_t thread, int pass) {
    size_t passes = (size_t)join->distance + 1;
    return join->counts + ((thread * passes + (size_t)pass) << join->key_bits);
}

static void slice_of(const set_join *join, size_t thread, uint64_t *from, uint64_t *to) {
    *from = join->count * thread / join->threads;
    *to = join->count * (thread + 1) / join->threads;
}

static void count_batch(const set_join *join, const join_batch *batch, int pass, uint32_t *counts) {
    int bits = pass_key_bits(join, pass), shift = join->block[pass].shift + join->block[pass].width - bits;
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    if (join->words == 1)
        for (size_t i = 0; i < batch->count; i++)
            counts[batch->values[i] >> shift & mask]++;
    else
        for (size_t i = 0; i < batch->count; i++)
            counts[(uint64_t)(dp_bits_load(batch->values + 2 * i, 128) >> shift) & mask]++;
}

/* Counts the keys of all passes. */
static void count_keys(void *given, size_t thread) {
    set_join *join = given;
    join_thread *joiner = &join->joiners[thread];
    uint64_t from, to;
    slice_of(join, thread, &from, &to);
    batch_start(&joiner->batch, from, to);
    while (batch_next(joiner)) {
        for (int pass = 0; pass <= join->distance; pass++)
            count_batch(join, &joiner->batch, pass, key_counts(join, thread, pass));
        if (!advance(joiner, joiner->batch.count))
            return;
    }
}

/* Plans the lines for the keys of this round, which `first_key` begins; 0 keys: one alone does not fit. */
static void plan_round(set_join *join) {
    uint32_t all = (uint32_t)1 << pass_key_bits(join, join->pass), keys = 0;
    size_t lines = 0, per_line = join->words == 1 ? DP_LINE_NARROW : DP_LINE_WIDE;
    for (; join->first_key + keys < all; keys++) {
        size_t before = lines;
        for (size_t thread = 0; thread < join->threads; thread++) {
            join->starts[(thread << join->key_bits) + keys] = (uint32_t)lines;
            size_t count = key_counts(join, thread, join->pass)[join->first_key + keys];
            lines += (count + per_line - 1) / per_line;
        }
        if (lines > join->line_room) {
            lines = before;
            break;
        }
    }
    join->keys = keys;
}

/* Writes the open lines to memory too. */
static void flush_open(const dp_scatter *scatter, bool wide) {
    for (uint32_t key = 0; key < scatter->keys; key++) {
        dp_line *line = &scatter->open[key];
        if (wide ? line->wide.fill : line->narrow.fill)
            scatter->lines[scatter->next[key]++] = *line;
    }
}

/* Moves the fingerprints of the round into lines. */
static void move_to_lines(void *given, size_t thread) {
    set_join *join = given;
    join_thread *joiner = &join->joiners[thread];
    const join_block *block = &join->block[join->pass];
    int bits = pass_key_bits(join, join->pass);
    uint32_t *next = join->ends + (thread << join->key_bits);
    memcpy(next, join->starts + (thread << join->key_bits), join->keys * sizeof *next);
    dp_scatter scatter = {
        block->shift + block->width - bits, bits, join->first_key, join->keys, joiner->open, next, join->lines};
    memset(joiner->open, 0, join->keys * sizeof *joiner->open);
    uint64_t from, to;
    slice_of(join, thread, &from, &to);
    batch_start(&joiner->batch, from, to);
    dp_scatter64_fn move = join->words == 1 ? dp_scatter64_kernel() : dp_scatter128_kernel();
    while (batch_next(joiner)) {
        move(&scatter, joiner->batch.values, joiner->batch.positions, joiner->batch.count);
        if (!advance(joiner, joiner->batch.count * join->keys >> bits))
            return;
    }
    flush_open(&scatter, join->words == 2);
}

/* ---- setting up: how the join cuts, and which part of the memory is for what ---- */

static void cut_blocks(set_join *join) {
    int from = join->bits;
    for (int b = 0; b < join->blocks; b++) {
        int width = (from + join->blocks - b - 1) / (join->blocks - b);
        from -= width;
        join->block[b] = (join_block){from, width, (((dp_bits)1 << width) - 1) << from};
    }
}

static void plan(set_join *join) {
    int blocks = dp_plan_join(join->count, join->distance, join->bits);
    if (blocks <= join->distance + 1 || blocks > join->bits || blocks > DP_JOIN_BLOCKS)
        blocks = 0;
    if (blocks > join->distance + DP_JOIN_LEVELS)
        blocks = join->distance + DP_JOIN_LEVELS;
    join->blocks = blocks;
    join->shared = blocks ? blocks - join->distance : 0;
    cut_blocks(join);
    join->need = dp_plan_join_memory(&(dp_join_size){join->count, join->bits, join->distance, join->threads});
    join->key_bits = join->need.sorted_bits;
    join->total = join->count * (blocks ? 1 : 2);
    for (int pass = 0; blocks && pass <= join->distance; pass++)
        join->total += join->count * (uint64_t)(1 + blocks - pass);
}

/* Fingerprints of a callback are kept in memory while there is room; without the minimum, they go to a file. */
static doppel_status make_room(set_join *join, doppel_error *error) {
    uint64_t kept = dp_fingerprints_kept_bytes(&join->source), need = (uint64_t)join->need.fixed + DP_JOIN_LEAST;
    if (join->memory < need)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "too little memory: this join needs at least %llu MiB",
                       (unsigned long long)(need >> 20) + 1);
    if (join->memory - need < kept)
        return dp_fingerprints_spool(&join->source, join->options.tmp, error);
    join->memory -= kept;
    return DOPPEL_OK;
}

/* Shares the memory: what is fixed, then lines up to three quarters; returns the rest, which is for pairs. */
static uint64_t share_memory(set_join *join) {
    uint64_t rest = join->memory - (uint64_t)join->need.fixed, most = rest / 4 * 3;
    uint64_t want = join->blocks ? (uint64_t)join->need.lines : 0, lines = want < most ? want : most;
    join->line_room = lines / sizeof(dp_line);
    return rest - lines;
}

/* Lines begin where cache lines do. */
static dp_line *alloc_lines(size_t count) {
    const size_t big = (size_t)4 << 20; /* bytes: from there dp_big_alloc gives whole pages */
    size_t bytes = count * sizeof(dp_line);
    return bytes < big ? aligned_alloc(sizeof(dp_line), bytes) : dp_big_alloc(bytes);
}

static doppel_status make_pairs(set_join *join, uint64_t memory, doppel_error *error) {
    bool twice = join->options.all; /* pairs of copies are sorted again */
    dp_pairs_options options = {join->threads, twice ? memory / 2 : memory, join->options.tmp, join->options.stop,
                                false};
    return join->keeps_pairs ? dp_pairs_init(&join->pairs, &options, error) : DOPPEL_OK;
}

static bool make_joiner(set_join *join, size_t thread) {
    join_thread *joiner = &join->joiners[thread];
    *joiner = (join_thread){.join = join, .number = thread};
    joiner->open = alloc_lines((size_t)1 << join->key_bits);
    return joiner->open && batch_init(joiner);
}

static doppel_status make_work(set_join *join, doppel_error *error) {
    size_t keys = (size_t)1 << join->key_bits, passes = (size_t)join->distance + 1;
    join->joiners = calloc(join->threads, sizeof *join->joiners);
    join->marks = calloc((size_t)join->count / 64 + 1, sizeof *join->marks);
    join->counts = calloc(join->blocks ? join->threads * passes * keys : 1, sizeof *join->counts);
    join->starts = calloc(join->threads * keys, sizeof *join->starts);
    join->ends = calloc(join->threads * keys, sizeof *join->ends);
    join->lines = alloc_lines(join->line_room + 1);
    if (!join->joiners || !join->marks || !join->counts || !join->starts || !join->ends || !join->lines)
        return dp_no_memory(error);
    for (size_t thread = 0; thread < join->threads; thread++)
        if (!make_joiner(join, thread))
            return dp_no_memory(error);
    return DOPPEL_OK;
}

/* Decides how to join `count` fingerprints, shares the memory, and makes what is needed. */
static doppel_status set_up(set_join *join, doppel_error *error) {
    plan(join);
    doppel_status status = make_room(join, error);
    DP_THEN(status, make_pairs(join, share_memory(join), error));
    return status ? status : make_work(join, error);
}

static void free_joiner(join_thread *joiner) {
    batch_free(&joiner->batch);
    free(joiner->open);
    for (int level = 0; level <= DP_JOIN_LEVELS; level++) {
        free(joiner->cells[level].values);
        free(joiner->cells[level].positions);
    }
    free(joiner->extra);
    free(joiner->heads);
    free(joiner->groups);
    free(joiner->cell_groups.entries);
    free(joiner->members);
    free(joiner->bucket_pairs.fills);
    free(joiner->bucket_pairs.slots);
    free(joiner->bucket_pairs.ids);
    free(joiner->column);
    free(joiner->sorted);
    free(joiner->ids);
    free(joiner->bounds);
    free(joiner->hits);
    free(joiner->row_hits);
}

/* Frees what only comparing needs. */
static void free_work(set_join *join) {
    for (size_t thread = 0; join->joiners && thread < join->threads; thread++)
        free_joiner(&join->joiners[thread]);
    free(join->joiners);
    free(join->window);
    free(join->counts);
    free(join->starts);
    free(join->ends);
    free(join->lines);
    free(join->marks);
    join->joiners = NULL;
    join->window = NULL;
    join->counts = join->starts = join->ends = NULL;
    join->lines = NULL;
    join->marks = NULL;
}

/* ---- passes ---- */

static void run_cells(void *given, size_t thread) {
    set_join *join = given;
    join_thread *joiner = &join->joiners[thread];
    uint64_t tables = (uint64_t)(join->blocks - join->pass);
    for (uint32_t key; (key = atomic_fetch_add(&join->next_key, 1)) < join->keys;)
        if (!load_cell(joiner, key) || !compare_cell(joiner) || !advance(joiner, joiner->cells[0].count * tables))
            return;
}

/* A key that does not fit into memory has mostly copies, or is a small part: one thread reads it from the source. */
static void run_large_key(set_join *join) {
    join_thread *joiner = &join->joiners[0];
    if (read_cell(joiner, join->first_key) && compare_cell(joiner))
        advance(joiner, joiner->cells[0].count * (uint64_t)(join->blocks - join->pass));
}

static bool run_pass(set_join *join) {
    for (join->first_key = 0; join->first_key < (uint32_t)1 << pass_key_bits(join, join->pass);) {
        plan_round(join);
        if (join->keys == 0) {
            run_large_key(join);
            join->keys = 1;
        } else {
            dp_run_threads(join->threads, move_to_lines, join);
            atomic_store(&join->next_key, 0);
            if (!atomic_load(&join->status))
                dp_run_threads(join->threads, run_cells, join);
        }
        if (atomic_load(&join->status))
            return false;
        join->first_key += join->keys;
    }
    return join->pass > 0 || collect_copies(join);
}

/* Rows that a thread compares at a time where all are compared with all. */
enum { ROWS = 256 };

static void run_rows(void *given, size_t thread) {
    set_join *join = given;
    join_thread *joiner = &join->joiners[thread];
    const join_cell *cell = &join->joiners[0].cells[0];
    for (uint64_t row; (row = (uint64_t)atomic_fetch_add(&join->next_key, 1) * ROWS) < cell->count;) {
        size_t last = cell->count - row < ROWS ? cell->count : (size_t)row + ROWS;
        if (!compare_rows(joiner, cell, (size_t)row, last) || !advance(joiner, last - row))
            return;
    }
}

static void run(set_join *join) {
    if (join->blocks == 0) {
        if (read_cell(&join->joiners[0], 0) && collect_copies(join))
            dp_run_threads(join->threads, run_rows, join);
        return;
    }
    if (!plan_windows(join))
        return;
    dp_run_threads(join->threads, count_keys, join);
    for (join->pass = 0; join->pass <= join->distance; join->pass++)
        if (atomic_load(&join->status) || !run_pass(join))
            return;
}

/* ---- the call ---- */

static void add_up(const set_join *join, doppel_join_counts *counts) {
    counts->fingerprints = join->count;
    counts->groups = join->groups.count;
    for (size_t thread = 0; thread < join->threads; thread++) {
        const join_thread *joiner = &join->joiners[thread];
        counts->copies += joiner->copies;
        counts->pairs += joiner->copies + joiner->near;
        counts->all_pairs = add_saturated(counts->all_pairs, joiner->all_pairs);
        counts->candidates += joiner->candidates;
    }
    if (join->options.all)
        counts->pairs = counts->all_pairs;
}

static doppel_status emit(set_join *join, doppel_join_counts *counts, doppel_error *error) {
    uint64_t given;
    doppel_status status = join->options.all && join->member_count
                               ? emit_with_copies(join, &given, error)
                               : dp_pairs_finish(&join->pairs, join->options.pairs, join->options.user, &given, error);
    counts->spilled_bytes += join->pairs.file.size;
    return status;
}

static doppel_status join_set(set_join *join, doppel_join_counts *counts, doppel_error *error) {
    dp_fingerprints_keeping keeping = {join->memory, join->options.tmp, join->options.stop};
    DP_TRY(dp_fingerprints_settle(&join->source, &keeping, error));
    join->count = join->source.count;
    if (join->count > UINT32_MAX)
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "a set of more than 4294967295 fingerprints cannot be joined; cut it "
                       "into parts and join them one with another");
    doppel_status status = set_up(join, error);
    if (status)
        return status;
    run(join);
    if (atomic_load(&join->status)) {
        if (error)
            *error = join->error;
        return (doppel_status)atomic_load(&join->status);
    }
    add_up(join, counts);
    counts->spilled_bytes = join->source.spool.size;
    free_work(join);
    if (join->options.progress)
        join->options.progress(join->total, join->total, join->options.user);
    return join->keeps_pairs ? emit(join, counts, error) : DOPPEL_OK;
}

doppel_status doppel_join(const doppel_source *source, int distance, const doppel_join_options *options,
                          doppel_join_counts *counts, doppel_error *error) {
    set_join join = {.distance = distance, .lock = PTHREAD_MUTEX_INITIALIZER};
    doppel_join_counts found = {0};
    if (options)
        dp_copy_options(&join.options, options, sizeof join.options);
    doppel_status status = dp_fingerprints_open(&join.source, source, join.options.bits, error);
    if (status)
        return status;
    join.bits = join.source.bits;
    join.words = join.source.words;
    join.threads = dp_thread_count(join.options.threads);
    join.memory = join.options.memory ? join.options.memory : dp_memory_default();
    join.keeps_pairs = !join.options.count_only && join.options.pairs;
    if (distance < 0 || distance > join.bits) {
        status = dp_fail(error, DOPPEL_ERROR_USAGE, "a distance of %d: fingerprints have %d bits", distance, join.bits);
    } else {
        dp_order_init(&join.order, join.bits, join.options.secret ? join.options.secret : dp_random_number());
        status = join_set(&join, &found, error);
    }
    free_work(&join);
    free(join.groups.entries);
    free(join.members);
    dp_pairs_free(&join.pairs);
    dp_fingerprints_close(&join.source);
    if (counts)
        *counts = found;
    return status;
}
