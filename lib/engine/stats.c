/* stats.c - counters of what was done, and what there is. */
#include "engine/over.h"

#include <stdio.h>
#include <time.h>

double dp_engine_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void dp_tally_add(dp_tally *tally, uint64_t value) {
    int bucket = value ? 64 - __builtin_clzll(value) : 0;
    if (bucket >= DOPPEL_BUCKETS)
        bucket = DOPPEL_BUCKETS - 1;
    atomic_fetch_add_explicit(&tally->bucket[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tally->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tally->sum, value, memory_order_relaxed);
}

void dp_engine_note(doppel_engine *engine, const dp_finding *finding) {
    dp_engine_counters *c = &engine->counters;
    atomic_fetch_add_explicit(&c->verdicts_by[finding->reason], 1, memory_order_relaxed);
    dp_tally_add(&c->candidates, finding->candidates);
    if (finding->reason == DP_SAME_CONTENT && finding->best.evidence.distance >= 0)
        dp_tally_add(&c->distances, (uint64_t)finding->best.evidence.distance);
}

static void read_tally(const dp_tally *tally, doppel_histogram *to) {
    for (int i = 0; i < DOPPEL_BUCKETS; i++)
        to->bucket[i] = atomic_load(&tally->bucket[i]);
    to->count = atomic_load(&tally->count);
    to->sum = atomic_load(&tally->sum);
}

void dp_engine_read_counters(const doppel_engine *engine, doppel_engine_stats *stats) {
    const dp_engine_counters *c = &engine->counters;
    stats->open_seconds = engine->open_seconds;
    stats->checks = atomic_load(&c->checks);
    stats->adds = atomic_load(&c->adds);
    stats->removes = atomic_load(&c->removes);
    stats->expired = atomic_load(&c->expired);
    stats->damaged = atomic_load(&c->damaged);
    stats->commits = atomic_load(&c->commits);
    stats->failed_commits = atomic_load(&c->failed_commits);
    for (int i = 0; i < DP_REASONS; i++)
        stats->verdicts_by[i] = atomic_load(&c->verdicts_by[i]);
    read_tally(&c->check_time, &stats->check_time);
    read_tally(&c->add_time, &stats->add_time);
    read_tally(&c->commit_time, &stats->commit_time);
    read_tally(&c->candidates, &stats->candidates);
    read_tally(&c->distances, &stats->distances);
}

typedef struct oldest {
    doppel_engine *engine;
    uint64_t now, added;
} oldest;

static doppel_status on_trace(uint64_t number, doppel_slice bytes, void *user) {
    oldest *o = user;
    dp_trace trace;
    if (!dp_known_alive(o->engine->known, number, o->now) || !dp_trace_decode(bytes, &trace))
        return DOPPEL_OK;
    o->added = trace.added;
    return DOPPEL_ERROR_INTERRUPTED;
}

/* What the store says; zeros where it cannot be read. */
static void read_store(doppel_engine *engine, dp_worker *worker, doppel_engine_stats *stats) {
    dp_store_info info;
    oldest o = {.engine = engine, .now = dp_engine_now(engine)};
    const dp_each each = {.part = DP_PART_TRACE, .from = 1, .to = UINT64_MAX, .value = on_trace, .user = &o};
    if (dp_view_begin(worker->view, NULL) != DOPPEL_OK)
        return;
    dp_view_info(worker->view, &info);
    dp_view_each(worker->view, &each, NULL);
    dp_view_end(worker->view);
    stats->oldest = o.added;
    stats->last = info.last;
    stats->disk_bytes = info.disk_bytes;
    stats->free_bytes = info.free_bytes;
    stats->memory_bytes = info.memory_bytes;
    for (int i = 0; i < 3; i++)
        stats->duplicates_by[i] = info.total.by[i];
}

void doppel_engine_get_stats(doppel_engine *engine, doppel_engine_stats *stats) {
    dp_worker *worker;
    dp_known_stats known;
    memset(stats, 0, sizeof *stats);
    dp_engine_read_counters(engine, stats);
    if (engine->shared) {
        dp_over_stats(engine, stats);
        return;
    }
    if (dp_engine_enter(engine, &worker, NULL) != DOPPEL_OK)
        return;
    read_store(engine, worker, stats);
    dp_known_get_stats(engine->known, &known);
    dp_engine_leave(engine, worker);
    stats->documents = known.documents;
    stats->copies = known.copies;
    stats->titles = known.titles;
    stats->newest = known.documents || known.copies ? atomic_load(&engine->newest) : 0;
    stats->keys_bytes = known.keys_bytes;
    stats->near_bytes = known.near_bytes;
    stats->title_bytes = known.title_bytes;
    stats->memory_bytes += known.keys_bytes + known.near_bytes + known.title_bytes;
    if (engine->rules.by_similarity)
        snprintf(stats->plan, sizeof stats->plan, "%dx%d", engine->asking.bands, engine->asking.rows);
    else
        memcpy(stats->plan, known.plan, sizeof stats->plan);
}
