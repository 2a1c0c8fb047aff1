/* lmdb_switch.c - what is done to an environment while nobody uses it: another takes its place, or its map changes. */
#include "store/lmdb.h"

#include <errno.h>

void dp_lmdb_swap(dp_lmdb *store, const dp_env *env, uint64_t generation) {
    pthread_mutex_lock(&store->views_mutex);
    for (dp_lmdb_view *view = store->views; view; view = view->next) {
        mdb_txn_abort(view->txn);
        mdb_txn_abort(view->probe);
        view->txn = view->probe = NULL;
        view->now.id = view->id = 0;
    }
    pthread_mutex_unlock(&store->views_mutex);
    dp_env_close(&store->env);
    store->env = *env;
    store->generation = generation;
}

/* Closes and opens again. When that fails there is none, and whoever comes next tries again. */
static doppel_status reopen(dp_lmdb *store, doppel_error *error) {
    dp_env env = {0};
    dp_lmdb_swap(store, &env, store->generation);
    return dp_lmdb_open_generation(store, &store->env, store->generation, error);
}

/* LMDB reads its meta pages for that. */
static int set_size(MDB_env *env, uint64_t map) {
    dp_guard guard;
    if (DP_GUARD_ENTER(guard))
        return MDB_CORRUPTED;
    int reason = mdb_env_set_mapsize(env, (size_t)map);
    dp_guard_leave(&guard);
    return reason;
}

static doppel_status set_map(dp_lmdb *store, uint64_t map, doppel_error *error) {
    int reason = set_size(store->env.env, map);
    if (!reason)
        return DOPPEL_OK;
    /* LMDB has let go of the map it had. */
    doppel_status status = reopen(store, error);
    if (status)
        return status;
    return dp_fail_at(error, DOPPEL_ERROR_IO, store->folder, 0,
                      "there is no address space for a map of %zu MiB: raise the limit (ulimit -v)", (size_t)map >> 20);
}

doppel_status dp_lmdb_grow(dp_lmdb *store, doppel_error *error) {
    MDB_envinfo info;
    doppel_status status = DOPPEL_OK;
    pthread_rwlock_wrlock(&store->gate);
    if (store->env.env && !(status = dp_env_info(&store->env, &info, error))) {
        status = set_map(store, info.me_mapsize * 2, error);
        store->map = status ? store->map : info.me_mapsize * 2;
    }
    pthread_rwlock_unlock(&store->gate);
    return status;
}

doppel_status dp_lmdb_follow_map(dp_lmdb *store, doppel_error *error) {
    pthread_rwlock_wrlock(&store->gate);
    doppel_status status = store->env.env ? set_map(store, 0, error) : DOPPEL_OK;
    pthread_rwlock_unlock(&store->gate);
    return status;
}

static int try_read(MDB_env *env) {
    MDB_txn *txn;
    dp_guard guard;
    if (DP_GUARD_ENTER(guard))
        return MDB_PANIC;
    int reason = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
    if (!reason)
        mdb_txn_abort(txn);
    dp_guard_leave(&guard);
    return reason;
}

doppel_status dp_lmdb_recover(dp_lmdb *store, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    pthread_rwlock_wrlock(&store->gate);
    int reason = store->env.env ? try_read(store->env.env) : MDB_PANIC;
    if (reason == MDB_PANIC)
        status = reopen(store, error);
    pthread_rwlock_unlock(&store->gate);
    return status;
}

doppel_status dp_lmdb_follow(dp_lmdb *store, doppel_error *error) {
    dp_env env = {0};
    uint64_t generation;
    pthread_rwlock_wrlock(&store->gate);
    doppel_status status = dp_folder_generation(store->folder, &generation, error);
    if (!status && generation && generation != store->generation) {
        status = dp_lmdb_open_named(store, &env, &generation, error);
        if (!status)
            dp_lmdb_swap(store, &env, generation);
    }
    pthread_rwlock_unlock(&store->gate);
    return status;
}

doppel_status dp_lmdb_enter(dp_lmdb *store, doppel_error *error) {
    pthread_rwlock_rdlock(&store->gate);
    if (store->env.env)
        return DOPPEL_OK;
    pthread_rwlock_unlock(&store->gate);
    doppel_status status = dp_lmdb_recover(store, error);
    if (status)
        return status;
    pthread_rwlock_rdlock(&store->gate);
    if (store->env.env)
        return DOPPEL_OK;
    pthread_rwlock_unlock(&store->gate);
    return dp_env_fail(store->folder, EIO, error);
}
