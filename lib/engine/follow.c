/* follow.c - a reader process keeps up with its writer: it takes in the traces that came after the last it knows. What
 * was removed is told by a removal, which holds the trace of what is gone. After a compaction removals may be missing:
 * then everything is read anew. */
#include "engine/engine.h"

#include <stdlib.h>

/* What has expired is counted so often, in seconds, and does not matter up to so many. */
enum { EXPIRE_EVERY = 600, EXPIRE_FEW = 4096 };

typedef struct following {
    doppel_engine *engine;
    uint64_t damaged;
} following;

static doppel_status on_trace(uint64_t number, doppel_slice bytes, void *user) {
    following *f = user;
    doppel_engine *engine = f->engine;
    dp_trace trace;
    uint32_t keys[DP_MOST_BANDS];
    if (!dp_trace_decode(bytes, &trace) || trace.key_count > DP_MOST_BANDS) {
        f->damaged++;
        return DOPPEL_OK;
    }
    if (trace.key_count)
        memcpy(keys, trace.keys, trace.key_count * sizeof *keys);
    trace.keys = keys;
    dp_latest(&engine->newest, trace.added);
    doppel_status status;
    if (!dp_trace_is_removal(&trace)) {
        status = dp_known_add(engine->known, &trace);
    } else {
        /* A new version stands before the removal of the old one. */
        atomic_fetch_add(&engine->removals, 1);
        trace.number = trace.of;
        trace.kind = trace.kind == DP_TRACE_COPY_REMOVAL ? DP_TRACE_COPY : DP_TRACE_DOCUMENT;
        status = dp_known_remove(engine->known, &trace);
    }
    if (status == DOPPEL_OK)
        engine->followed = number;
    return status;
}

static void on_damaged(uint64_t number, void *user) {
    following *f = user;
    (void)number;
    f->damaged++;
}

/* Takes in what is new in a view that has begun; `order` is held. */
static doppel_status take_in(doppel_engine *engine, dp_view *view, const dp_moment *moment, doppel_error *error) {
    following f = {.engine = engine};
    const dp_each each = {.part = DP_PART_TRACE,
                          .from = engine->followed + 1,
                          .to = moment->last,
                          .value = on_trace,
                          .damaged = on_damaged,
                          .user = &f};
    doppel_status status = dp_view_each(view, &each, error);
    if (status != DOPPEL_OK)
        return status == DOPPEL_ERROR_MEMORY ? dp_no_memory(error) : status;
    if (f.damaged) {
        doppel_error why = {0};
        dp_damaged(engine->path, &why, "documents that were added lately cannot be read");
        if ((status = dp_engine_damage(engine, f.damaged, &why, error)) != DOPPEL_OK)
            return status;
    }
    engine->followed = moment->last;
    dp_engine_set_clock(engine, &moment->clock);
    return DOPPEL_OK;
}

doppel_status dp_engine_catch_up(doppel_engine *engine, dp_worker *worker, dp_moment *moment, dp_look *look,
                                 doppel_error *error) {
    if (moment->last <= atomic_load(&engine->followed))
        return DOPPEL_OK;
    /* `order` is taken before a view begins, here as everywhere. */
    dp_view_end(worker->view);
    pthread_mutex_lock(&engine->order);
    doppel_status status = dp_view_begin(worker->view, error);
    if (status == DOPPEL_OK) {
        dp_view_moment(worker->view, moment);
        if (moment->generation == engine->followed_generation && moment->last > engine->followed)
            status = take_in(engine, worker->view, moment, error);
        if (status != DOPPEL_OK)
            dp_view_end(worker->view);
    }
    look->removals = atomic_load(&engine->removals);
    pthread_mutex_unlock(&engine->order);
    return status;
}

/* Whether so much has expired that everything is better read anew: what goes by its time leaves no removal. `order` is
 * held. */
static bool is_stale(doppel_engine *engine) {
    dp_known_stats known;
    uint64_t now = dp_engine_purge_time(engine);
    /* The clock has gone back, and what was left out has not expired. */
    if (now < engine->loaded_by)
        return true;
    if (now >= engine->expired_at && now < engine->expired_at + EXPIRE_EVERY)
        return false;
    engine->expired_at = now;
    dp_known_get_stats(engine->known, &known);
    size_t enough = (size_t)((known.documents + known.copies) / 2 + EXPIRE_FEW);
    uint64_t *numbers = malloc(enough * sizeof *numbers);
    bool stale = numbers && dp_known_expired(engine->known, now, numbers, enough) == enough;
    free(numbers);
    return stale;
}

static doppel_status look(doppel_engine *engine, bool *anew, doppel_error *error) {
    dp_moment moment;
    dp_worker *worker = dp_worker_take(engine, error);
    *anew = false;
    if (!worker)
        return error && error->code ? error->code : DOPPEL_ERROR_MEMORY;
    doppel_status status = dp_view_begin(worker->view, error);
    if (status == DOPPEL_OK) {
        dp_view_moment(worker->view, &moment);
        dp_engine_set_clock(engine, &moment.clock);
        *anew = moment.generation != engine->followed_generation;
        if (!*anew && moment.last > engine->followed)
            status = take_in(engine, worker->view, &moment, error);
        dp_view_end(worker->view);
        *anew = *anew || is_stale(engine);
    }
    dp_worker_give(engine, worker);
    return status;
}

doppel_status dp_engine_follow(doppel_engine *engine, doppel_error *error) {
    bool anew = false;
    doppel_status status = DOPPEL_OK;
    pthread_rwlock_rdlock(&engine->shape);
    uint64_t loads = engine->loads;
    /* Whoever finds another at it goes on with what is known. */
    if (!pthread_mutex_trylock(&engine->order)) {
        status = look(engine, &anew, error);
        pthread_mutex_unlock(&engine->order);
    }
    pthread_rwlock_unlock(&engine->shape);
    if (status != DOPPEL_OK || !anew)
        return status;
    pthread_rwlock_wrlock(&engine->shape);
    if (engine->loads == loads)
        status = dp_engine_load(engine, error);
    pthread_rwlock_unlock(&engine->shape);
    return status;
}
