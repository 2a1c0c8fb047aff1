/* follow.c - a reader process keeps up with its writer: it takes in the traces that came after the last it knows. What
 * was removed is told by a removal, which holds the trace of what is gone. After a compaction removals may be missing:
 * then everything is read anew. */
#include "engine/engine.h"

static doppel_status on_trace(uint64_t number, doppel_slice bytes, void *user) {
    doppel_engine *engine = user;
    dp_trace trace;
    uint32_t keys[DP_MOST_BANDS];
    if (!dp_trace_decode(bytes, &trace) || trace.key_count > DP_MOST_BANDS) {
        atomic_fetch_add(&engine->counters.damaged, 1);
        return DOPPEL_OK;
    }
    if (trace.key_count)
        memcpy(keys, trace.keys, trace.key_count * sizeof *keys);
    trace.keys = keys;
    dp_latest(&engine->newest, trace.added);
    doppel_status status;
    if (trace.kind < DP_TRACE_REMOVAL) {
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
    doppel_engine *engine = user;
    (void)number;
    atomic_fetch_add(&engine->counters.damaged, 1);
}

/* Takes in what is new in a view that has begun; `order` is held. */
static doppel_status take_in(doppel_engine *engine, dp_view *view, const dp_moment *moment, doppel_error *error) {
    const dp_each each = {.part = DP_PART_TRACE,
                          .from = engine->followed + 1,
                          .to = moment->last,
                          .value = on_trace,
                          .damaged = on_damaged,
                          .user = engine};
    doppel_status status = dp_view_each(view, &each, error);
    if (status != DOPPEL_OK)
        return status == DOPPEL_ERROR_MEMORY ? dp_no_memory(error) : status;
    engine->followed = moment->last;
    dp_latest(&engine->clock, moment->clock);
    return DOPPEL_OK;
}

static doppel_status look(doppel_engine *engine, bool *compacted, doppel_error *error) {
    dp_moment moment;
    dp_worker *worker = dp_worker_take(engine, error);
    *compacted = false;
    if (!worker)
        return error && error->code ? error->code : DOPPEL_ERROR_MEMORY;
    doppel_status status = dp_view_begin(worker->view, error);
    if (status == DOPPEL_OK) {
        dp_view_moment(worker->view, &moment);
        *compacted = moment.generation != engine->followed_generation;
        if (!*compacted && moment.last > engine->followed)
            status = take_in(engine, worker->view, &moment, error);
        dp_view_end(worker->view);
    }
    dp_worker_give(engine, worker);
    return status;
}

doppel_status dp_engine_follow(doppel_engine *engine, doppel_error *error) {
    bool compacted = false;
    /* Whoever finds another at it goes on with what is known. */
    if (pthread_mutex_trylock(&engine->order))
        return DOPPEL_OK;
    pthread_rwlock_rdlock(&engine->shape);
    doppel_status status = look(engine, &compacted, error);
    uint64_t generation = engine->followed_generation;
    pthread_rwlock_unlock(&engine->shape);
    pthread_mutex_unlock(&engine->order);
    if (status != DOPPEL_OK || !compacted)
        return status;
    pthread_rwlock_wrlock(&engine->shape);
    if (engine->followed_generation == generation)
        status = dp_engine_load(engine, error);
    pthread_rwlock_unlock(&engine->shape);
    return status;
}
