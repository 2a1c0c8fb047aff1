/* stats.c - counters of what was done, and what there is. */
#include "engine/engine.h"

#include <stdio.h>

void dp_engine_note(doppel_engine *engine, const dp_counted *counted) {
    dp_engine_counters *c = &engine->counters;
    atomic_fetch_add_explicit(&c->verdicts_by[counted->reason], 1, memory_order_relaxed);
    dp_tally_add(&c->candidates, counted->candidates);
    if (counted->reason == DP_SAME_CONTENT && counted->distance >= 0)
        dp_tally_add(&c->distances, (uint64_t)counted->distance);
}

static void read_tally(const dp_tally *tally, doppel_histogram *to) {
    for (int i = 0; i < DOPPEL_BUCKETS; i++)
        to->bucket[i] = atomic_load(&tally->bucket[i]);
    to->count = atomic_load(&tally->count);
    to->sum = atomic_load(&tally->sum);
}

static void read_counters(const doppel_engine *engine, doppel_engine_stats *stats) {
    const dp_engine_counters *c = &engine->counters;
    stats->open_seconds = engine->open_seconds;
    stats->checks = atomic_load(&c->checks);
    stats->adds = atomic_load(&c->adds);
    stats->removes = atomic_load(&c->removes);
    stats->expired = atomic_load(&c->known.expired);
    stats->damaged = atomic_load(&c->known.damaged);
    stats->commits = atomic_load(&c->known.commits);
    stats->failed_commits = atomic_load(&c->known.failed_commits);
    for (int i = 0; i < DP_REASONS; i++)
        stats->verdicts_by[i] = atomic_load(&c->verdicts_by[i]);
    read_tally(&c->check_time, &stats->check_time);
    read_tally(&c->add_time, &stats->add_time);
    read_tally(&c->known.commit_time, &stats->commit_time);
    read_tally(&c->candidates, &stats->candidates);
    read_tally(&c->distances, &stats->distances);
}

void doppel_engine_get_stats(doppel_engine *engine, doppel_engine_stats *stats) {
    memset(stats, 0, sizeof *stats);
    read_counters(engine, stats);
    dp_known_get_stats(engine->known, stats);
    if (engine->rules.by_similarity)
        snprintf(stats->plan, sizeof stats->plan, "%dx%d", engine->asking.bands, engine->asking.rows);
}
