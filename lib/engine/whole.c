/* whole.c - what is done to a folder as a whole: its smallest form, a copy, a check of all of it. */
#include "engine/engine.h"

typedef struct keeping {
    doppel_engine *engine;
    uint64_t now;
} keeping;

/* Documents that are known, and copies of such. */
static bool is_kept(const dp_trace *trace, void *user) {
    keeping *k = user;
    return trace->kind < DP_TRACE_REMOVAL && dp_known_alive(k->engine->known, trace->number, k->now) &&
           (trace->kind != DP_TRACE_COPY || dp_known_alive(k->engine->known, trace->of, k->now));
}

doppel_status doppel_engine_compact(doppel_engine *engine, doppel_error *error) {
    uint64_t expired;
    doppel_status status = doppel_engine_expire(engine, &expired, error);
    if (status != DOPPEL_OK)
        return status;
    /* Nobody is inside: no view, nothing that waits for a commit. */
    pthread_rwlock_wrlock(&engine->shape);
    pthread_mutex_lock(&engine->order);
    status = dp_commit_now(engine, error);
    if (status == DOPPEL_OK) {
        keeping k = {engine, dp_engine_now(engine)};
        status = dp_store_compact(engine->store, is_kept, &k, error);
    }
    pthread_mutex_unlock(&engine->order);
    pthread_rwlock_unlock(&engine->shape);
    return status;
}

doppel_status doppel_engine_backup(doppel_engine *engine, const char *path, doppel_error *error) {
    pthread_rwlock_rdlock(&engine->shape);
    doppel_status status = dp_store_backup(engine->store, path, error);
    pthread_rwlock_unlock(&engine->shape);
    return status;
}

doppel_status doppel_engine_verify(const char *path, void (*finding)(const char *what, void *user), void *user,
                                   doppel_verified *verified, doppel_error *error) {
    return dp_store_verify(path, finding, user, verified, error);
}
