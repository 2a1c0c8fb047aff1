/* whole.c - what is done to a folder as a whole: its smallest form, a copy, a check of all of it. */
#include "engine/over.h"

#include <stdlib.h>

typedef struct keeping {
    doppel_engine *engine;
    uint64_t now;
    dp_trace *orphans; /* copies and texts that are known, but whose original is gone */
    size_t count, room;
} keeping;

/* Documents that are known, and copies of such. An orphan that there is no memory for stays until the next time. */
static bool is_kept(const dp_trace *trace, void *user) {
    keeping *k = user;
    if (dp_trace_is_removal(trace) || !dp_known_alive(k->engine->known, trace->number, k->now))
        return false;
    if (trace->kind == DP_TRACE_DOCUMENT || dp_known_alive(k->engine->known, trace->of, k->now) ||
        !dp_reserve(&k->orphans, &k->room, k->count + 1, sizeof *k->orphans))
        return true;
    dp_trace *orphan = &k->orphans[k->count++];
    *orphan = *trace;
    orphan->keys = NULL;
    orphan->key_count = 0;
    orphan->title = (doppel_slice){NULL, 0};
    return false;
}

/* What has left the store leaves the memory, too. */
static void forget_orphans(const keeping *k) {
    for (size_t i = 0; i < k->count; i++)
        if (dp_known_remove(k->engine->known, &k->orphans[i]) != DOPPEL_OK)
            dp_log_line(k->engine, DOPPEL_LOG_ERROR, "COMPACT_ERROR",
                        "no memory to forget copy %llu before the next opening",
                        (unsigned long long)k->orphans[i].number);
}

doppel_status doppel_engine_compact(doppel_engine *engine, doppel_error *error) {
    uint64_t expired;
    if (engine->shared)
        return dp_over_refuse("compact", error);
    doppel_status status = doppel_engine_expire(engine, &expired, error);
    if (status != DOPPEL_OK)
        return status;
    /* Nobody is inside: no view, nothing that waits for a commit. */
    pthread_rwlock_wrlock(&engine->shape);
    pthread_mutex_lock(&engine->order);
    status = dp_commit_now(engine, error);
    if (status == DOPPEL_OK) {
        keeping k = {.engine = engine, .now = dp_engine_purge_time(engine)};
        status = dp_store_compact(engine->store, is_kept, &k, error);
        if (status == DOPPEL_OK)
            forget_orphans(&k);
        free(k.orphans);
    }
    pthread_mutex_unlock(&engine->order);
    pthread_rwlock_unlock(&engine->shape);
    return status;
}

doppel_status doppel_engine_backup(doppel_engine *engine, const char *path, doppel_error *error) {
    if (engine->shared)
        return dp_over_refuse("backup", error);
    doppel_status status = dp_engine_flush(engine, error);
    if (status != DOPPEL_OK)
        return status;
    pthread_rwlock_rdlock(&engine->shape);
    status = dp_store_backup(engine->store, path, error);
    pthread_rwlock_unlock(&engine->shape);
    return status;
}

doppel_status doppel_engine_verify(const char *path, void (*finding)(const char *what, void *user), void *user,
                                   doppel_verified *verified, doppel_error *error) {
    if (path && dp_shared_takes(path))
        return dp_over_refuse("verify", error);
    return dp_store_verify(path, finding, user, verified, error);
}
