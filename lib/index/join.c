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
    dp_feed_keeping keeping = {join->memory, join->options.tmp, join->options.stop};
    doppel_status status = dp_feed_settle(&join->feed, &keeping, error);
    if (status)
        return status;
    join->count = join->feed.count;
    if (join->count > UINT32_MAX)
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "a set of more than 4294967295 fingerprints cannot be joined; cut it "
                       "into parts and join them one with another");
    status = dp_join_make(join, error);
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
    dp_join_free_work(join);
    if (join->options.progress)
        join->options.progress(join->total, join->total, join->options.user);
    return join->keeps_pairs ? emit(join, counts, error) : DOPPEL_OK;
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
        dp_order_init(&join.order, join.bits, join.options.secret ? join.options.secret : dp_order_random());
        status = join_set(&join, &found, error);
    }
    dp_join_free_work(&join);
    free(join.groups.entries);
    free(join.members);
    dp_pairs_free(&join.pairs);
    dp_feed_close(&join.feed);
    if (counts)
        *counts = found;
    return status;
}
