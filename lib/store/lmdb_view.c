/* lmdb_view.c - views: each has a read transaction of its own that is renewed by begin and reset by end, without a lock
 * but the gate, which only a change of the map or the file closes.
 *
 * A reader process follows its writer: when the file names a successor, or doppel.index (looked at once a second)
 * another generation, begin opens that. */
#include "store/lmdb.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

static dp_lmdb_view *of_view(dp_view *view) {
    return (dp_lmdb_view *)view;
}

static dp_lmdb *store_of(const dp_lmdb_view *v) {
    return dp_lmdb_of(v->view.store);
}

static doppel_status fail(const dp_lmdb_view *v, int reason, doppel_error *error) {
    return dp_env_fail(store_of(v)->folder, reason, error);
}

doppel_status dp_lmdb_view_create(dp_store *store, dp_view **view, doppel_error *error) {
    dp_lmdb *s = dp_lmdb_of(store);
    dp_lmdb_view *made = calloc(1, sizeof *made);
    if (!made)
        return dp_no_memory(error);
    made->view.store = store;
    pthread_mutex_lock(&s->views_mutex);
    made->place = &s->views;
    made->next = s->views;
    if (made->next)
        made->next->place = &made->next;
    s->views = made;
    pthread_mutex_unlock(&s->views_mutex);
    *view = &made->view;
    return DOPPEL_OK;
}

void dp_lmdb_view_free(dp_view *view) {
    dp_lmdb_view *v = of_view(view);
    dp_lmdb *store = store_of(v);
    pthread_rwlock_rdlock(&store->gate);
    pthread_mutex_lock(&store->views_mutex);
    *v->place = v->next;
    if (v->next)
        v->next->place = v->place;
    pthread_mutex_unlock(&store->views_mutex);
    mdb_txn_abort(v->txn);
    mdb_txn_abort(v->probe);
    pthread_rwlock_unlock(&store->gate);
    free(v);
}

/* ---- begin and end ---- */

/* A view that has to move on: not one of LMDB's own reasons. */
enum { MOVED = -1 };

static uint64_t seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec + 1;
}

/* Whether doppel.index names another generation; it is looked at once a second, or `at_once`. */
static bool index_moved(dp_lmdb_view *v, bool at_once) {
    uint64_t generation, now = seconds();
    if (v->looked == now && !at_once)
        return false;
    v->looked = now;
    return !dp_folder_generation(store_of(v)->folder, &generation, NULL) && generation &&
           generation != store_of(v)->generation;
}

/* Reads the state anew if anything was written since. */
static int read_state(dp_lmdb_view *v) {
    const dp_lmdb *store = store_of(v);
    uint64_t id = mdb_txn_id(v->txn) + 1;
    doppel_slice successor;
    if (store->read_only && index_moved(v, false))
        return MOVED;
    if (id == v->id)
        return 0;
    if (store->read_only && !dp_meta_get(v->txn, &store->env, DP_SEED_SUCCESSOR, &successor) && index_moved(v, true))
        return MOVED;
    int reason = dp_state_get(v->txn, &store->env, &v->state);
    if (!reason)
        v->id = id;
    return reason;
}

static int begin(dp_lmdb_view *v) {
    const dp_lmdb *store = store_of(v);
    if (!store->env.env)
        return MDB_PANIC;
    int reason = dp_env_read(&store->env, &v->txn, &v->probe);
    if (reason)
        return reason;
    if ((reason = read_state(v)))
        mdb_txn_reset(v->txn);
    return reason;
}

/* Whatever keeps a view from beginning is set right, if it can be. */
static doppel_status set_right(dp_lmdb_view *v, int reason, doppel_error *error) {
    dp_lmdb *store = store_of(v);
    if (reason == MDB_MAP_RESIZED)
        return dp_lmdb_follow_map(store, error);
    if (reason == MDB_PANIC)
        return dp_lmdb_recover(store, error);
    if (reason == MOVED)
        return dp_lmdb_follow(store, error);
    return fail(v, reason, error);
}

enum { MOST_TRIES = 100 };

doppel_status dp_lmdb_view_begin(dp_view *view, doppel_error *error) {
    dp_lmdb_view *v = of_view(view);
    pthread_rwlock_t *gate = &store_of(v)->gate;
    int reason = 0;
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        pthread_rwlock_rdlock(gate);
        if (!(reason = begin(v)))
            return DOPPEL_OK;
        pthread_rwlock_unlock(gate);
        doppel_status status = set_right(v, reason, error);
        if (status)
            return status;
    }
    return dp_fail_at(error, DOPPEL_ERROR_STORE, store_of(v)->folder, 0, "changes too fast to be read; try again");
}

void dp_lmdb_view_end(dp_view *view) {
    dp_lmdb_view *v = of_view(view);
    mdb_txn_reset(v->txn);
    pthread_rwlock_unlock(&store_of(v)->gate);
}

/* ---- what it is like ---- */

void dp_lmdb_view_moment(dp_view *view, dp_moment *moment) {
    const dp_lmdb_view *v = of_view(view);
    *moment = (dp_moment){v->state.last, store_of(v)->generation, v->state.clock, store_of(v)->env.names};
}

/* Pages in LMDB's own list of those that can be used again: database 0, each value led by its count. */
static uint64_t free_pages(const dp_lmdb_view *v) {
    MDB_cursor *cursor;
    MDB_val key, value;
    uint64_t pages = 0;
    if (mdb_cursor_open(v->txn, 0, &cursor))
        return 0;
    while (!mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
        pages += value.mv_size >= 8 ? dp_load64(value.mv_data) : 0;
    mdb_cursor_close(cursor);
    return pages;
}

void dp_lmdb_view_info(dp_view *view, dp_store_info *info) {
    const dp_lmdb_view *v = of_view(view);
    const dp_lmdb *store = store_of(v);
    struct stat known;
    MDB_stat stat_of;
    info->last = v->state.last;
    info->clock = v->state.clock;
    info->generation = store->generation;
    info->total = v->state.total;
    for (int part = 0; part < DP_PARTS; part++)
        if (!mdb_stat(v->txn, store->env.db[part], &stat_of))
            info->entries[part] = stat_of.ms_entries;
    if (!stat(store->env.path, &known))
        info->disk_bytes = (uint64_t)known.st_size;
    if (!mdb_env_stat(store->env.env, &stat_of))
        info->free_bytes = free_pages(v) * stat_of.ms_psize;
}

/* ---- reading ---- */

static doppel_status damaged(const dp_lmdb_view *v, const char *what, uint64_t number, doppel_error *error) {
    return dp_fail_at(error, DOPPEL_ERROR_STORE, store_of(v)->folder, 0,
                      "the %s of number %" PRIu64 " is damaged: its checksum is wrong", what, number);
}

doppel_status dp_lmdb_view_get(dp_view *view, dp_part part, uint64_t number, doppel_slice *bytes, doppel_error *error) {
    const dp_lmdb_view *v = of_view(view);
    MDB_val key = dp_key(&number), value;
    int reason = mdb_get(v->txn, store_of(v)->env.db[part], &key, &value);
    if (reason)
        return reason == MDB_NOTFOUND ? DOPPEL_OK : fail(v, reason, error);
    if (dp_value_open(&value, number, (int)part, bytes))
        return DOPPEL_OK;
    *bytes = (doppel_slice){0};
    return damaged(v, dp_part_name(part), number, error);
}

doppel_status dp_lmdb_view_counts(dp_view *view, uint64_t number, dp_counts *counts, doppel_error *error) {
    const dp_lmdb_view *v = of_view(view);
    MDB_val key = dp_key(&number), value;
    doppel_slice bytes;
    int reason = mdb_get(v->txn, store_of(v)->env.db[DP_DB_COUNTS], &key, &value);
    if (reason)
        return reason == MDB_NOTFOUND ? DOPPEL_OK : fail(v, reason, error);
    return dp_value_open(&value, number, DP_SEED_COUNTS, &bytes) && dp_counts_decode(bytes, counts)
               ? DOPPEL_OK
               : damaged(v, "count", number, error);
}

static int read_links(MDB_cursor *cursor, uint64_t number, uint64_t *links, size_t room, size_t *found) {
    MDB_val key = dp_key(&number), value;
    int reason = mdb_cursor_get(cursor, &key, &value, MDB_SET);
    if (!reason)
        reason = mdb_cursor_get(cursor, &key, &value, MDB_FIRST_DUP);
    for (; !reason; reason = mdb_cursor_get(cursor, &key, &value, MDB_NEXT_DUP)) {
        if (*found < room)
            links[*found] = dp_load64(value.mv_data);
        ++*found;
    }
    return reason == MDB_NOTFOUND ? 0 : reason;
}

doppel_status dp_lmdb_view_links(dp_view *view, uint64_t number, uint64_t *links, size_t room, size_t *found,
                                 doppel_error *error) {
    const dp_lmdb_view *v = of_view(view);
    MDB_cursor *cursor;
    int reason = mdb_cursor_open(v->txn, store_of(v)->env.db[DP_DB_LINKS], &cursor);
    if (!reason) {
        reason = read_links(cursor, number, links, room, found);
        mdb_cursor_close(cursor);
    }
    return reason ? fail(v, reason, error) : DOPPEL_OK;
}

/* ---- all of something ---- */

static doppel_status each_value(const dp_lmdb_view *v, MDB_cursor *cursor, const dp_each *each, doppel_error *error) {
    uint64_t number = each->from;
    MDB_val key = dp_key(&number), value;
    doppel_slice bytes;
    int reason = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    for (; !reason; reason = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        number = dp_load64(key.mv_data);
        if (number > each->to)
            return DOPPEL_OK;
        doppel_status status = DOPPEL_OK;
        if (dp_value_open(&value, number, (int)each->part, &bytes))
            status = each->value(number, bytes, each->user);
        else if (each->damaged)
            each->damaged(number, each->user);
        if (status)
            return status;
    }
    return reason == MDB_NOTFOUND ? DOPPEL_OK : fail(v, reason, error);
}

doppel_status dp_lmdb_view_each(dp_view *view, const dp_each *each, doppel_error *error) {
    const dp_lmdb_view *v = of_view(view);
    MDB_cursor *cursor;
    int reason = mdb_cursor_open(v->txn, store_of(v)->env.db[each->part], &cursor);
    if (reason)
        return fail(v, reason, error);
    doppel_status status = each_value(v, cursor, each, error);
    mdb_cursor_close(cursor);
    return status;
}

doppel_status dp_lmdb_view_each_count(dp_view *view, dp_counted *counted, void *user, doppel_error *error) {
    const dp_lmdb_view *v = of_view(view);
    MDB_cursor *cursor;
    MDB_val key, value;
    doppel_status status = DOPPEL_OK;
    int reason = mdb_cursor_open(v->txn, store_of(v)->env.db[DP_DB_COUNTS], &cursor);
    if (reason)
        return fail(v, reason, error);
    while (!status && !(reason = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))) {
        doppel_slice bytes;
        dp_counts counts;
        uint64_t number = dp_load64(key.mv_data);
        if (dp_value_open(&value, number, DP_SEED_COUNTS, &bytes) && dp_counts_decode(bytes, &counts))
            status = counted(number, &counts, user);
    }
    mdb_cursor_close(cursor);
    return status || !reason || reason == MDB_NOTFOUND ? status : fail(v, reason, error);
}
