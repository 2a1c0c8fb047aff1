/* commit.c - from decided to durable: one commit for all that wait.
 *
 * Changes gather in the current group. Of those that wait for one, the first that finds no commit under way becomes the
 * writer: it takes the group, lets `order` go, writes, and wakes everybody. Meanwhile the next group gathers, and it
 * may rest on what is being written: if that fails, both are taken back, the last change first. */
#include "engine/engine.h"

#include <stdlib.h>

/* A group of so many bytes is written before more is taken, also when nobody has to wait for it. */
#define GROUP_BYTES (64U << 20)

/* ---- groups ---- */

static void group_free(dp_group *group) {
    if (!group)
        return;
    for (size_t i = 0; i < group->count; i++)
        free(group->pending[i].bytes);
    free(group->pending);
    free(group);
}

static void group_let_go(dp_group *group) {
    if (!--group->holders)
        group_free(group);
}

/* The first change that stands at a number is that number's own. */
static const dp_pending *group_find(const dp_group *group, uint64_t number) {
    size_t low = 0, high = group ? group->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (group->pending[middle].at < number)
            low = middle + 1;
        else
            high = middle;
    }
    return group && low < group->count && group->pending[low].change.number == number ? &group->pending[low] : NULL;
}

const dp_pending *dp_commit_find(const doppel_engine *engine, uint64_t number) {
    const dp_pending *found = group_find(engine->current, number);
    return found ? found : group_find(engine->writing, number);
}

/* Takes back what a change did to `known`. */
static void undo(doppel_engine *engine, const dp_pending *p) {
    if (p->added)
        dp_known_remove(engine->known, &p->trace);
    if (p->removed && !dp_is_leaving(p) && dp_known_add(engine->known, &p->trace) != DOPPEL_OK)
        dp_log_line(engine, DOPPEL_LOG_ERROR, "COMMIT_ERROR", "document %llu is not found until the next opening",
                    (unsigned long long)p->trace.number);
}

static void group_undo(doppel_engine *engine, const dp_group *group) {
    for (size_t i = group ? group->count : 0; i-- > 0;)
        undo(engine, &group->pending[i]);
}

static void group_end(dp_group *group, doppel_status status, const doppel_error *error) {
    group->done = true;
    group->status = status;
    group->error = *error;
}

/* ---- queueing ---- */

/* Copies all that a change points to into one block. */
static bool take_bytes(dp_pending *p) {
    size_t size = p->trace.key_count * sizeof *p->trace.keys + p->trace.title.length, at = 0;
    for (int i = 0; i < DP_PARTS; i++)
        size += p->change.part[i].length;
    if (!(p->bytes = malloc(size + 1)))
        return false;
    if (p->trace.key_count) {
        at = p->trace.key_count * sizeof *p->trace.keys;
        memcpy(p->bytes, p->trace.keys, at);
        p->trace.keys = (const uint32_t *)(void *)p->bytes;
    }
    doppel_slice *slices[DP_PARTS + 1] = {&p->trace.title};
    for (int i = 0; i < DP_PARTS; i++)
        slices[i + 1] = &p->change.part[i];
    for (int i = 0; i <= DP_PARTS; i++) {
        if (!slices[i]->data)
            continue;
        memcpy(p->bytes + at, slices[i]->data, slices[i]->length);
        slices[i]->data = p->bytes + at;
        at += slices[i]->length;
    }
    return true;
}

doppel_status dp_commit_queue(doppel_engine *engine, const dp_pending *pending, doppel_error *error) {
    dp_group *group = engine->current;
    if (!group) {
        if (!(group = calloc(1, sizeof *group)))
            return dp_no_memory(error);
        group->holders = 1;
        engine->current = group;
    }
    if (!dp_reserve(&group->pending, &group->room, group->count + 1, sizeof *group->pending))
        return dp_no_memory(error);
    dp_pending *p = &group->pending[group->count];
    *p = *pending;
    p->bytes = NULL;
    if (!take_bytes(p))
        return dp_no_memory(error);
    p->at = p->change.number || !group->count ? p->change.number : group->pending[group->count - 1].at;
    doppel_status status = DOPPEL_OK;
    if (p->added)
        status = dp_known_add(engine->known, &p->trace);
    else if (dp_is_leaving(p))
        status = dp_leaving_reserve(&engine->leaving) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    else if (p->removed)
        status = dp_known_remove(engine->known, &p->trace);
    if (status != DOPPEL_OK) {
        free(p->bytes);
        return dp_fail(error, status, "%s", doppel_status_name(status));
    }
    if (dp_is_leaving(p))
        dp_leaving_add(&engine->leaving, p->trace.number);
    group->count++;
    for (int i = 0; i < DP_PARTS; i++)
        group->bytes += p->change.part[i].length;
    group->bytes += sizeof *p;
    return DOPPEL_OK;
}

size_t dp_commit_mark(const doppel_engine *engine) {
    return engine->current ? engine->current->count : 0;
}

void dp_commit_back(doppel_engine *engine, size_t mark) {
    dp_group *group = engine->current;
    while (group && group->count > mark) {
        undo(engine, &group->pending[--group->count]);
        free(group->pending[group->count].bytes);
    }
    dp_leaving_again(engine);
}

/* ---- writing ---- */

static doppel_status write_group(doppel_engine *engine, const dp_group *group, doppel_error *error) {
    double began = dp_engine_clock();
    doppel_status status = DOPPEL_OK;
    dp_change *changes = malloc(group->count * sizeof *changes);
    if (!changes)
        status = dp_no_memory(error);
    for (size_t i = 0; i < group->count && changes; i++)
        changes[i] = group->pending[i].change;
    bool news;
    const dp_clock clock = dp_engine_get_clock(engine, &news);
    if (changes)
        status = dp_store_write(engine->store, changes, group->count, &clock, error);
    free(changes);
    atomic_fetch_add(status == DOPPEL_OK ? &engine->counters.commits : &engine->counters.failed_commits, 1);
    dp_tally_add(&engine->counters.commit_time, (uint64_t)((dp_engine_clock() - began) * 1e6));
    if (status != DOPPEL_OK)
        dp_log_error(engine, "COMMIT", error);
    return status;
}

/* Whether a commit that failed is there all the same: the system may refuse the very last step. Then nothing is
 * acknowledged, but what is there must be known. */
static bool is_written(doppel_engine *engine, uint64_t last) {
    dp_view *view = NULL;
    dp_moment moment = {0};
    if (dp_view_create(engine->store, &view, NULL) == DOPPEL_OK && dp_view_begin(view, NULL) == DOPPEL_OK) {
        dp_view_moment(view, &moment);
        dp_view_end(view);
    }
    dp_view_free(view);
    return last && moment.last >= last;
}

/* Ends the commit that was under way: numbers become visible, or all that is pending goes. `order` is held. */
static void settle(doppel_engine *engine, doppel_status status, const doppel_error *error) {
    dp_group *group = engine->writing;
    bool written = status == DOPPEL_OK || is_written(engine, group->pending[group->count - 1].at);
    engine->writing = NULL;
    if (written)
        dp_leaving_go(engine, group);
    if (status != DOPPEL_OK) {
        group_undo(engine, engine->current);
        if (!written)
            group_undo(engine, group);
        if (engine->current) {
            group_end(engine->current, status, error);
            group_let_go(engine->current);
            engine->current = NULL;
        }
        engine->failed = status;
        engine->failed_error = *error;
        engine->taken_back++;
    }
    dp_leaving_again(engine);
    group_end(group, status, error);
    group_let_go(group);
    pthread_cond_broadcast(&engine->settled);
}

/* Writes the current group. `order` is held, and let go while the disk is busy unless `hold`. */
static void write_current(doppel_engine *engine, bool hold) {
    doppel_error error = {0};
    engine->writing = engine->current;
    engine->current = NULL;
    if (!hold)
        pthread_mutex_unlock(&engine->order);
    doppel_status status = write_group(engine, engine->writing, &error);
    if (!hold)
        pthread_mutex_lock(&engine->order);
    settle(engine, status, &error);
}

/* Until the group is done: writes it, or waits for who does. */
static doppel_status await(doppel_engine *engine, dp_group *group, bool hold, doppel_error *error) {
    group->holders++;
    while (!group->done) {
        if (!engine->writing)
            write_current(engine, hold);
        else
            pthread_cond_wait(&engine->settled, &engine->order);
    }
    doppel_status status = group->status;
    if (status != DOPPEL_OK && error)
        *error = group->error;
    group_let_go(group);
    return status;
}

/* The last group that has something in it. */
static dp_group *last_group(const doppel_engine *engine) {
    return engine->current && engine->current->count ? engine->current : engine->writing;
}

doppel_status dp_commit_now(doppel_engine *engine, doppel_error *error) {
    dp_group *group = last_group(engine);
    return group ? await(engine, group, true, error) : DOPPEL_OK;
}

doppel_status dp_engine_flush(doppel_engine *engine, doppel_error *error) {
    if (!engine->has_background)
        return DOPPEL_OK;
    pthread_rwlock_rdlock(&engine->shape);
    pthread_mutex_lock(&engine->order);
    doppel_status status = dp_commit_now(engine, error);
    pthread_mutex_unlock(&engine->order);
    pthread_rwlock_unlock(&engine->shape);
    return status;
}

/* What a commit in the background ended with, once. */
static doppel_status tell_failure(doppel_engine *engine, doppel_error *error) {
    doppel_status status = engine->failed;
    engine->failed = DOPPEL_OK;
    if (status != DOPPEL_OK && error)
        *error = engine->failed_error;
    return status;
}

doppel_status dp_commit_wait(doppel_engine *engine, doppel_error *error) {
    dp_group *group = last_group(engine);
    if (engine->has_background && (!group || group->bytes < GROUP_BYTES))
        return tell_failure(engine, error);
    doppel_status status = group ? await(engine, group, false, error) : DOPPEL_OK;
    engine->failed = DOPPEL_OK;
    return status;
}

void dp_commit_write(doppel_engine *engine) {
    if (engine->current && engine->current->count && !engine->writing)
        write_current(engine, false);
}

/* ---- the end ---- */

/* A clock that was doubted, or is no more, is kept also when there was nothing to write: the next process goes on from
 * there. */
static doppel_status write_clock(doppel_engine *engine, doppel_error *error) {
    bool news;
    const dp_clock clock = dp_engine_get_clock(engine, &news);
    return news && !engine->options.read_only ? dp_store_write(engine->store, NULL, 0, &clock, error) : DOPPEL_OK;
}

void dp_commit_stop(doppel_engine *engine) {
    doppel_error error = {0};
    dp_background_stop(engine);
    pthread_mutex_lock(&engine->order);
    if (dp_commit_now(engine, &error) != DOPPEL_OK || write_clock(engine, &error) != DOPPEL_OK)
        dp_log_error(engine, "CLOSE", &error);
    pthread_mutex_unlock(&engine->order);
    group_free(engine->current);
    engine->current = NULL;
}
