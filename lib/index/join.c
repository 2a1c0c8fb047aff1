/* join.c - all pairs within a distance in one set: doppel_join.
 *
 * One pass for each block that can be the first in which a pair agrees: the set is moved through memory, sorted by the
 * first bits of that block (join_move.c), and each part that shares them is taken into the cache (join_cell.c), where
 * tables by the other blocks are made and compared (join_table.c). Nothing is sorted but the pairs (pairs.c). The
 * rule that finds every pair, and tells it once, stands in join.h.
 *
 * Where blocks would be too narrow for a large distance, all are compared with all. */
#include "index/join.h"

#include <stdlib.h>

/* A cell should hold about so many numbers: with its tables it stays in the second cache, and tables of fewer would
 * cost more than they compare. */
enum { CELL_TARGET = 2048 };
/* More keys are too many lines to fill at once: 4096 of them are 256 KiB, with 8192 a pass takes half as long again.
 * That still pays where a cell would not fit the second cache. */
enum { KEY_BITS = 12, MOST_KEY_BITS = 13, LARGE_CELL = 1 << 15 };
/* Rows that a thread compares at a time where all are compared with all. */
enum { ROWS = 256 };

/* ---- errors and progress ---- */

bool dp_join_fail(dp_join *join, doppel_status status, const doppel_error *error) {
    pthread_mutex_lock(&join->lock);
    if (!atomic_load(&join->status)) {
        join->error = *error;
        atomic_store(&join->status, status);
    }
    pthread_mutex_unlock(&join->lock);
    return false;
}

bool dp_join_no_memory(dp_join *join) {
    doppel_error error;
    return dp_join_fail(join, dp_no_memory(&error), &error);
}

bool dp_join_advance(dp_joiner *joiner, uint64_t work) {
    dp_join *join = joiner->join;
    uint64_t done = atomic_fetch_add_explicit(&join->done, work, memory_order_relaxed) + work;
    if (dp_stopped(join->options.stop)) {
        doppel_error error;
        return dp_join_fail(join, dp_fail(&error, DOPPEL_ERROR_INTERRUPTED, "interrupted"), &error);
    }
    if (joiner->number == 0 && join->options.progress && done - join->told > join->total / 512) {
        join->told = done < join->total ? done : join->total;
        join->options.progress(join->told, join->total, join->options.user);
    }
    return !atomic_load_explicit(&join->status, memory_order_relaxed);
}

/* ---- what to do ---- */

static void cut_blocks(dp_join *join) {
    int from = join->bits;
    for (int b = 0; b < join->blocks; b++) {
        int width = (from + join->blocks - b - 1) / (join->blocks - b);
        from -= width;
        join->block[b] = (dp_join_block){from, width, (((dp_bits)1 << width) - 1) << from};
    }
}

static void plan(dp_join *join) {
    int blocks = dp_plan_join(join->count, join->distance, join->bits);
    if (blocks <= join->distance + 1 || blocks > join->bits || blocks > DP_JOIN_BLOCKS)
        blocks = 0;
    if (blocks > join->distance + DP_JOIN_LEVELS)
        blocks = join->distance + DP_JOIN_LEVELS;
    join->blocks = blocks;
    join->shared = blocks ? blocks - join->distance : 0;
    cut_blocks(join);
    join->key_bits = 1;
    while (join->key_bits < KEY_BITS && join->count >> (join->key_bits + 1) >= CELL_TARGET)
        join->key_bits++;
    while (join->key_bits < MOST_KEY_BITS && join->count >> join->key_bits > LARGE_CELL)
        join->key_bits++;
    join->total = join->count * (blocks ? 1 : 2);
    for (int pass = 0; blocks && pass <= join->distance; pass++)
        join->total += join->count * (uint64_t)(1 + blocks - pass);
}

/* What is held whatever the data: keys and open lines of each thread, and marks. */
static uint64_t fixed_bytes(const dp_join *join) {
    uint64_t keys = (uint64_t)1 << join->key_bits, passes = (uint64_t)join->distance + 1;
    uint64_t thread = keys * (sizeof(dp_line) + 8 + 4 * passes) + ((uint64_t)2 << 20);
    return join->threads * thread + join->count / 8;
}

/* Shares the memory: what is fixed, lines for as many as fit, the rest for pairs. */
static doppel_status share_memory(dp_join *join, uint64_t *for_pairs, doppel_error *error) {
    const uint64_t least = (uint64_t)1 << 20; /* lines and pairs below this are more trouble than memory */
    uint64_t fixed = fixed_bytes(join), per_line = join->words == 1 ? DP_LINE_NARROW : DP_LINE_WIDE;
    uint64_t want = join->blocks ? (join->count / per_line + (join->threads << join->key_bits)) * sizeof(dp_line) : 0;
    if (join->memory < fixed + 2 * least)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "too little memory: this join needs at least %llu MiB",
                       (unsigned long long)((fixed + 2 * least) >> 20) + 1);
    uint64_t rest = join->memory - fixed;
    uint64_t lines = want < rest / 4 * 3 ? want : rest / 4 * 3;
    join->line_room = lines / sizeof(dp_line);
    *for_pairs = rest - lines;
    return DOPPEL_OK;
}

/* ---- making and freeing ---- */

/* Lines begin where cache lines do. */
static dp_line *alloc_lines(size_t count) {
    const size_t big = (size_t)4 << 20; /* bytes: from there dp_big_alloc gives whole pages */
    size_t bytes = count * sizeof(dp_line);
    return bytes < big ? aligned_alloc(sizeof(dp_line), bytes) : dp_big_alloc(bytes);
}

static doppel_status init(dp_join *join, doppel_error *error) {
    uint64_t for_pairs = 0;
    doppel_status status = share_memory(join, &for_pairs, error);
    if (status)
        return status;
    if (join->keeps_pairs) {
        bool twice = join->options.all; /* pairs of copies are sorted again */
        dp_pairs_options options = {join->threads, twice ? for_pairs / 2 : for_pairs, join->options.tmp,
                                    join->options.stop, false};
        status = dp_pairs_init(&join->pairs, &options, error);
        if (status)
            return status;
    }
    size_t keys = (size_t)1 << join->key_bits, passes = (size_t)join->distance + 1;
    join->joiners = calloc(join->threads, sizeof *join->joiners);
    join->marks = calloc((size_t)join->count / 64 + 1, sizeof *join->marks);
    join->counts = calloc(join->blocks ? join->threads * passes * keys : 1, sizeof *join->counts);
    join->starts = calloc(join->threads * keys, sizeof *join->starts);
    join->ends = calloc(join->threads * keys, sizeof *join->ends);
    join->lines = alloc_lines(join->line_room + 1);
    if (!join->joiners || !join->marks || !join->counts || !join->starts || !join->ends || !join->lines)
        return dp_no_memory(error);
    for (size_t thread = 0; thread < join->threads; thread++) {
        dp_joiner *joiner = &join->joiners[thread];
        *joiner = (dp_joiner){.join = join, .number = thread};
        joiner->open = alloc_lines(keys);
        if (!joiner->open || !dp_batch_init(joiner))
            return dp_no_memory(error);
    }
    return DOPPEL_OK;
}

static void free_joiner(dp_joiner *joiner) {
    dp_batch_free(&joiner->batch);
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
    free(joiner->crowd.fills);
    free(joiner->crowd.slots);
    free(joiner->crowd.ids);
    free(joiner->column);
    free(joiner->sorted);
    free(joiner->ids);
    free(joiner->bounds);
    free(joiner->hits);
    free(joiner->row_hits);
}

/* What the comparing needs, and emitting does not. */
static void free_work(dp_join *join) {
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

/* ---- comparing ---- */

static void run_cells(void *given, size_t thread) {
    dp_join *join = given;
    dp_joiner *joiner = &join->joiners[thread];
    uint64_t tables = (uint64_t)(join->blocks - join->pass);
    for (uint32_t key; (key = atomic_fetch_add(&join->next_key, 1)) < join->keys;)
        if (!dp_cell_load(joiner, key) || !dp_tables_run(joiner) ||
            !dp_join_advance(joiner, joiner->cells[0].count * tables))
            return;
}

/* A key that does not fit into memory has mostly copies, or is a small part: one thread takes it from the source. */
static void run_large_key(dp_join *join) {
    dp_joiner *joiner = &join->joiners[0];
    if (dp_cell_feed(joiner, join->first_key) && dp_tables_run(joiner))
        dp_join_advance(joiner, joiner->cells[0].count * (uint64_t)(join->blocks - join->pass));
}

static bool run_pass(dp_join *join) {
    for (join->first_key = 0; join->first_key < (uint32_t)1 << dp_join_key_bits(join, join->pass);) {
        dp_join_plan_round(join);
        if (join->keys == 0) {
            run_large_key(join);
            join->keys = 1;
        } else {
            dp_run_threads(join->threads, dp_join_move, join);
            atomic_store(&join->next_key, 0);
            if (!atomic_load(&join->status))
                dp_run_threads(join->threads, run_cells, join);
        }
        if (atomic_load(&join->status))
            return false;
        join->first_key += join->keys;
    }
    return join->pass > 0 || dp_groups_settle(join);
}

static void run_rows(void *given, size_t thread) {
    dp_join *join = given;
    dp_joiner *joiner = &join->joiners[thread];
    const dp_cell *cell = &join->joiners[0].cells[0];
    for (uint64_t row; (row = (uint64_t)atomic_fetch_add(&join->next_key, 1) * ROWS) < cell->count;) {
        size_t last = cell->count - row < ROWS ? cell->count : (size_t)row + ROWS;
        if (!dp_tables_all(joiner, cell, (size_t)row, last) || !dp_join_advance(joiner, last - row))
            return;
    }
}

static void run(dp_join *join) {
    if (join->blocks == 0) {
        if (dp_cell_feed(&join->joiners[0], 0) && dp_groups_settle(join))
            dp_run_threads(join->threads, run_rows, join);
        return;
    }
    if (!dp_tables_init(join))
        return;
    dp_run_threads(join->threads, dp_join_count, join);
    for (join->pass = 0; join->pass <= join->distance; join->pass++)
        if (atomic_load(&join->status) || !run_pass(join))
            return;
}

/* ---- the call ---- */

static void add_up(const dp_join *join, doppel_join_counts *counts) {
    counts->fingerprints = join->count;
    counts->groups = join->groups.count;
    for (size_t thread = 0; thread < join->threads; thread++) {
        const dp_joiner *joiner = &join->joiners[thread];
        counts->copies += joiner->copies;
        counts->pairs += joiner->copies + joiner->near;
        counts->all_pairs = dp_add_sure(counts->all_pairs, joiner->all_pairs);
        counts->candidates += joiner->candidates;
    }
    if (join->options.all)
        counts->pairs = counts->all_pairs;
}

static doppel_status emit(dp_join *join, doppel_join_counts *counts, doppel_error *error) {
    uint64_t given;
    doppel_status status = join->options.all && join->member_count
                               ? dp_copies_emit(join, &given, error)
                               : dp_pairs_finish(&join->pairs, join->options.pairs, join->options.user, &given, error);
    counts->spilled_bytes += join->pairs.file.size;
    return status;
}

static doppel_status join_set(dp_join *join, doppel_join_counts *counts, doppel_error *error) {
    doppel_status status = dp_feed_settle(&join->feed, join->options.tmp, join->options.stop, error);
    if (status)
        return status;
    join->count = join->feed.count;
    if (join->count > UINT32_MAX)
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "a set of more than 4294967295 fingerprints cannot be joined; cut it "
                       "into parts and join them one with another");
    plan(join);
    status = init(join, error);
    if (status)
        return status;
    run(join);
    if (atomic_load(&join->status)) {
        if (error)
            *error = join->error;
        return (doppel_status)atomic_load(&join->status);
    }
    add_up(join, counts);
    counts->spilled_bytes = join->feed.spool.size;
    free_work(join);
    if (join->options.progress)
        join->options.progress(join->total, join->total, join->options.user);
    return join->keeps_pairs ? emit(join, counts, error) : DOPPEL_OK;
}

static void set_order(dp_join *join) {
    dp_order_init(&join->order, join->bits, join->options.secret ? join->options.secret : dp_order_random());
    for (int half = 0; half < 2; half++)
        for (int stage = 0; stage < 6; stage++)
            join->masks[half][stage] = join->order.mask[stage][half];
}

doppel_status doppel_join(const doppel_source *source, int distance, const doppel_join_options *options,
                          doppel_join_counts *counts, doppel_error *error) {
    dp_join join = {.distance = distance, .lock = PTHREAD_MUTEX_INITIALIZER};
    doppel_join_counts found = {0};
    if (options)
        dp_copy_options(&join.options, options, sizeof join.options);
    doppel_status status = dp_feed_open(&join.feed, source, join.options.bits, error);
    if (status)
        return status;
    join.bits = join.feed.bits;
    join.words = join.feed.words;
    join.threads = dp_thread_count(join.options.threads);
    join.memory = join.options.memory ? join.options.memory : dp_memory_default();
    join.keeps_pairs = !join.options.count_only && join.options.pairs;
    if (distance < 0 || distance > join.bits) {
        status = dp_fail(error, DOPPEL_ERROR_USAGE, "a distance of %d: fingerprints have %d bits", distance, join.bits);
    } else {
        set_order(&join);
        status = join_set(&join, &found, error);
    }
    free_work(&join);
    free(join.groups.entries);
    free(join.members);
    dp_pairs_free(&join.pairs);
    dp_feed_close(&join.feed);
    if (counts)
        *counts = found;
    return status;
}
