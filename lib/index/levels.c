/* levels.c - when runs are merged.
 *
 * Level i has runs of up to DP_HEAD_ROOM * RATIO^i entries, one at a time: what comes from the head is merged with the
 * run of level 1; when that becomes too large for its level, with the run of the next one too, all in one merge. An
 * entry is so moved about RATIO / 2 times a level. Runs of which half is dead are merged with whatever comes. */
#include "index/versions.h"

#include <stdlib.h>

/* Reads look at one run a level, writes move an entry RATIO / 2 times a level. */
enum { RATIO = 16 };

static int level_of(uint64_t count) {
    int level = 1;
    for (uint64_t most = DP_HEAD_ROOM * RATIO; most < count && level < 16; most *= RATIO)
        level++;
    return level;
}

static bool is_mostly_dead(const dp_run *run) {
    uint64_t dead = atomic_load_explicit(&run->dead_count, memory_order_relaxed);
    return dead >= DP_HEAD_ROOM && dead > dp_run_slots(run) / 2;
}

bool dp_index_is_untidy(const doppel_index *index) {
    const dp_version *version = atomic_load_explicit(&index->current, memory_order_relaxed);
    for (int i = 0; i < version->runs; i++)
        if (is_mostly_dead(version->run[i]))
            return true;
    return false;
}

/* What a flush works on. */
typedef struct flush {
    doppel_index *index;
    const dp_version *version;
    dp_run *more, *head_run; /* without tables; NULL: none */
    bool chosen[DP_MAX_RUNS];
    dp_merging merging;
    dp_run *made;
    uint64_t total; /* positions that are merged, at most */
} flush;

_Static_assert(DP_MERGE_MOST == DP_MAX_RUNS + 2, "all runs, what comes, and the head");

static bool choose(flush *f, int i) {
    uint64_t count = f->version->run[i]->count;
    if (f->chosen[i] || f->total + count > DP_RUN_MOST)
        return false;
    f->chosen[i] = true;
    f->total += count;
    return true;
}

/* Marks the runs that are merged with what comes: from the smallest up, while the sum is of their level. */
static void choose_runs(flush *f, bool all) {
    const dp_version *version = f->version;
    f->total = (f->more ? f->more->count : 0) + (f->head_run ? f->head_run->count : 0);
    for (int i = 0; i < version->runs; i++)
        if (all || is_mostly_dead(version->run[i]))
            choose(f, i);
    for (int i = version->runs - 1; i >= 0; i--)
        if (level_of(version->run[i]->count) <= level_of(f->total) || i >= DP_MAX_RUNS - 2)
            choose(f, i);
}

static void list_sources(flush *f) {
    for (int i = 0; i < f->version->runs; i++)
        if (f->chosen[i])
            f->merging.run[f->merging.count++] = f->version->run[i];
    if (f->more)
        f->merging.run[f->merging.count++] = f->more;
    if (f->head_run)
        f->merging.run[f->merging.count++] = f->head_run;
}

/* The runs become one, without tables. A single one that has none is taken as it is. */
static doppel_status merge_sources(flush *f) {
    if (f->merging.count == 1 && f->merging.run[0]->values) {
        f->made = f->more ? f->more : f->head_run;
        f->more = f->head_run = NULL;
        f->merging.count = 0;
        return DOPPEL_OK;
    }
    return dp_run_merge(&f->merging, &f->made);
}

doppel_status dp_index_build(const doppel_index *index, dp_run *run, const dp_merging *merging) {
    dp_layout layout;
    if (index->layout_name[0]) {
        doppel_status status = dp_layout_parse(index->layout_name, index->bits, &layout, NULL);
        if (status != DOPPEL_OK)
            return status;
    } else {
        dp_plan_run(run->count, index->distance, index->bits, index->bytes_per_entry, &layout);
    }
    return dp_run_build(run, &layout, merging);
}

/* The runs that were not chosen, and the new one, largest first. */
static doppel_status publish(flush *f) {
    dp_run *runs[DP_MAX_RUNS + 1];
    int count = 0;
    dp_run *made = f->made && f->made->count ? f->made : NULL;
    bool placed = !made;
    for (int i = 0; i < f->version->runs; i++) {
        dp_run *run = f->version->run[i];
        if (!placed && made->count > run->count && (placed = true))
            runs[count++] = made;
        if (!f->chosen[i])
            runs[count++] = run;
    }
    if (!placed)
        runs[count++] = made;
    dp_head *head = dp_head_create(f->index->bits);
    if (!head || !dp_index_publish(f->index, runs, count, head)) {
        free(head);
        return DOPPEL_ERROR_MEMORY;
    }
    memset(&f->index->places, 0, sizeof f->index->places);
    if (made)
        f->made = NULL;
    return DOPPEL_OK;
}

static doppel_status run_flush(flush *f, bool all) {
    doppel_status status = dp_head_run(f->version->head, &f->head_run);
    if (status != DOPPEL_OK)
        return status;
    choose_runs(f, all);
    list_sources(f);
    if (f->merging.count)
        status = merge_sources(f);
    if (status == DOPPEL_OK && f->made && f->made->count)
        status = dp_index_build(f->index, f->made, f->merging.count ? &f->merging : NULL);
    return status == DOPPEL_OK ? publish(f) : status;
}

/* Whether everything is in one run already, and all of it alive. */
static bool is_compact(const dp_version *version) {
    return version->runs <= 1 && !atomic_load_explicit(&version->head->count, memory_order_relaxed) &&
           (!version->runs || !atomic_load_explicit(&version->run[0]->dead_count, memory_order_relaxed));
}

doppel_status dp_index_flush(doppel_index *index, dp_run *more, bool all) {
    if (!more && all && is_compact(atomic_load_explicit(&index->current, memory_order_relaxed)))
        return DOPPEL_OK;
    flush *f = calloc(1, sizeof *f);
    if (!f) {
        dp_run_free(more);
        return DOPPEL_ERROR_MEMORY;
    }
    f->index = index;
    f->version = atomic_load_explicit(&index->current, memory_order_relaxed);
    f->more = more;
    f->merging.pool = &index->pool;
    doppel_status status = run_flush(f, all);
    dp_merging_free(&f->merging);
    dp_run_free(f->more);
    dp_run_free(f->head_run);
    dp_run_free(f->made);
    free(f);
    return status;
}
