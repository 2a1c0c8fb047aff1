/* lmdb.c - a store in an LMDB folder: its environment, its changes, its views. Opening one: lmdb_folder.c; its file:
 * lmdb_file.c.
 *
 * Changes of one write are one transaction: it is durable when its commit is, or it never happened. Numbers only grow,
 * so parts are appended. A map that is full is grown and the transaction made again; after a commit that failed half
 * way LMDB has to be opened again.
 *
 * LMDB trusts the pages it changes, and on a damaged one it does anything from ending the process to giving pages away
 * that are in use. So before each step the pages that it may read are checked (dp_btree_check): those on the way to a
 * key and their neighbours, as the last commit left them. Pages that this transaction has made since come from those.
 *
 * A view has a read transaction of its own that is renewed by begin and reset by end, without a lock but the gate in
 * begin, which only a change of the map or the file closes. A view that is between begin and end when the file is
 * replaced reads on in the old one, which is closed by the last such view. A reader process follows its writer: when
 * the file names a successor, or doppel.index (looked at once a second) another generation, begin opens that. */
#include "store/lmdb.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the environment, while it is not in use: replaced, or its map resized ---- */

/* For an idle view: its transactions belong to a replaced environment. */
static void forget_file(dp_lmdb_view *view) {
    mdb_txn_abort(view->txn);
    mdb_txn_abort(view->probe);
    view->txn = view->probe = NULL;
    view->now.id = view->id = 0;
}

/* Active views hold the retired file; the others drop it. The gate is held to write. */
static void retire_views(dp_lmdb *store, dp_retired *retired) {
    pthread_mutex_lock(&store->views_mutex);
    for (dp_lmdb_view *view = store->views; view; view = view->next) {
        dp_view_state is = DP_VIEW_ACTIVE;
        if (atomic_compare_exchange_strong(&view->is, &is, DP_VIEW_RETIRED)) {
            view->retired = retired;
            retired->holders++;
        } else if (is == DP_VIEW_IDLE) {
            forget_file(view);
        }
    }
    pthread_mutex_unlock(&store->views_mutex);
}

void dp_lmdb_swap(dp_lmdb *store, const dp_env *env, uint64_t generation, dp_retired *retired) {
    *retired = (dp_retired){.env = store->env, .holders = 1};
    retire_views(store, retired);
    store->env = *env;
    store->generation = generation;
}

/* Releases one reference. Closing a large file takes long: its pages are unmapped. */
static void release_retired(dp_lmdb *store, dp_retired *retired) {
    pthread_mutex_lock(&store->views_mutex);
    bool last = !--retired->holders;
    pthread_mutex_unlock(&store->views_mutex);
    if (last) {
        dp_env_close(&retired->env);
        free(retired);
    }
}

void dp_lmdb_release(dp_lmdb *store, dp_retired *retired) {
    for (int tries = 0, alone = 0; tries < 100 && !alone; tries++) {
        pthread_mutex_lock(&store->views_mutex);
        alone = retired->holders == 1;
        pthread_mutex_unlock(&store->views_mutex);
        if (!alone)
            usleep(1000);
    }
    release_retired(store, retired);
}

/* Waits until no view is between begin and end; with the gate held to write none begins. */
static void await_views(dp_lmdb *store) {
    for (bool any = true; any;) {
        any = false;
        pthread_mutex_lock(&store->views_mutex);
        for (dp_lmdb_view *view = store->views; view; view = view->next)
            any = any || atomic_load(&view->is) == DP_VIEW_ACTIVE;
        pthread_mutex_unlock(&store->views_mutex);
        if (any)
            usleep(1000);
    }
}

/* Closes and opens again: LMDB opens a file once in a process, so that no view may read it. When that fails there is no
 * environment, and the next call tries again. */
static doppel_status reopen(dp_lmdb *store, doppel_error *error) {
    await_views(store);
    pthread_mutex_lock(&store->views_mutex);
    for (dp_lmdb_view *view = store->views; view; view = view->next)
        if (atomic_load(&view->is) == DP_VIEW_IDLE)
            forget_file(view);
    pthread_mutex_unlock(&store->views_mutex);
    dp_env_close(&store->env);
    return dp_lmdb_open_generation(store, &store->env, store->generation, error);
}

/* LMDB reads its meta pages for that. */
static int set_size(MDB_env *env, uint64_t map) {
    DP_GUARD(guard, MDB_CORRUPTED);
    int reason = mdb_env_set_mapsize(env, (size_t)map);
    dp_guard_leave(&guard);
    return reason;
}

static doppel_status set_map(dp_lmdb *store, uint64_t map, doppel_error *error) {
    int reason = set_size(store->env.env, map);
    if (!reason)
        return DOPPEL_OK;
    /* LMDB has unmapped the file. */
    DP_TRY(reopen(store, error));
    return dp_fail_at(error, DOPPEL_ERROR_IO, store->folder, 0,
                      "there is no address space for a map of %zu MiB: raise the limit (ulimit -v)", (size_t)map >> 20);
}

/* A map of twice the size. */
static doppel_status grow_map(dp_lmdb *store, doppel_error *error) {
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

/* Another process has grown it. */
static doppel_status follow_map(dp_lmdb *store, doppel_error *error) {
    pthread_rwlock_wrlock(&store->gate);
    doppel_status status = store->env.env ? set_map(store, 0, error) : DOPPEL_OK;
    pthread_rwlock_unlock(&store->gate);
    return status;
}

static int try_read(MDB_env *env) {
    MDB_txn *txn;
    DP_GUARD(guard, MDB_PANIC);
    int reason = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
    if (!reason)
        mdb_txn_abort(txn);
    dp_guard_leave(&guard);
    return reason;
}

/* After a failed commit: LMDB refuses everything until it is reopened. Does nothing if it does not. */
static doppel_status recover(dp_lmdb *store, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    pthread_rwlock_wrlock(&store->gate);
    int reason = store->env.env ? try_read(store->env.env) : MDB_PANIC;
    if (reason == MDB_PANIC)
        status = reopen(store, error);
    pthread_rwlock_unlock(&store->gate);
    return status;
}

/* A reader moves on to the generation that doppel.index names. */
static doppel_status follow_index(dp_lmdb *store, doppel_error *error) {
    dp_env env = {0};
    uint64_t generation;
    dp_retired *retired = calloc(1, sizeof *retired);
    if (!retired)
        return dp_no_memory(error);
    pthread_rwlock_wrlock(&store->gate);
    doppel_status status = dp_folder_generation(store->folder, &generation, error);
    bool moves = !status && generation && generation != store->generation;
    if (moves && !(status = dp_lmdb_open_named(store, &env, &generation, error)))
        dp_lmdb_swap(store, &env, generation, retired);
    pthread_rwlock_unlock(&store->gate);
    if (moves && !status)
        dp_lmdb_release(store, retired);
    else
        free(retired);
    return status;
}

/* ---- writing ---- */

/* Dead readers keep pages from being reused: they are searched for once in this many writes. */
enum { READER_CHECK = 64 };

typedef struct transaction {
    dp_lmdb *store;
    MDB_txn *txn;
    dp_snapshot before; /* what the last commit left */
    dp_store_state state;
} transaction;

static MDB_dbi db_of(const transaction *w, int db) {
    return w->store->env.db[db];
}

/* Whether LMDB may read and change a key. */
static int check(const transaction *w, int db, uint64_t number, uint64_t dup) {
    return dp_btree_check(&w->before.pages, &w->before.db[db], number, dup, &w->store->checked);
}

/* ---- the parts of a change ---- */

/* The value of a key, or MDB_NOTFOUND. */
static int read_key(const transaction *w, int db, uint64_t number, MDB_val *value) {
    MDB_val key = dp_number_key(&number);
    DP_TRY_REASON(check(w, db, number, 0));
    return mdb_get(w->txn, db_of(w, db), &key, value);
}

static int unless_missing(int reason) {
    return reason == MDB_NOTFOUND ? 0 : reason;
}

static int delete_key(const transaction *w, int db, uint64_t number) {
    MDB_val key = dp_number_key(&number);
    DP_TRY_REASON(check(w, db, number, 0));
    return unless_missing(mdb_del(w->txn, db_of(w, db), &key, NULL));
}

/* Of a copy: its entry under its original. */
static int delete_link(const transaction *w, uint64_t number) {
    MDB_val key = dp_number_key(&number), value;
    doppel_slice bytes;
    dp_trace trace;
    int reason = read_key(w, DP_PART_TRACE, number, &value);
    if (reason || !dp_value_open(&value, number, DP_PART_TRACE, &bytes) || !dp_trace_decode(bytes, &trace) ||
        trace.kind != DP_TRACE_COPY)
        return unless_missing(reason);
    MDB_val original = dp_number_key(&trace.of);
    DP_TRY_REASON(check(w, DP_DB_LINKS, trace.of, number));
    return unless_missing(mdb_del(w->txn, db_of(w, DP_DB_LINKS), &original, &key));
}

static int remove_number(const transaction *w, uint64_t number) {
    DP_TRY_REASON(delete_link(w, number));
    for (int db = 0; db <= DP_DB_COUNTS; db++)
        DP_TRY_REASON(delete_key(w, db, number));
    return 0;
}

static int add_parts(const transaction *w, const dp_change *change) {
    for (int part = 0; part < DP_PARTS; part++) {
        if (!change->part[part].data)
            continue;
        DP_TRY_REASON(check(w, part, UINT64_MAX, 0));
        DP_TRY_REASON(dp_value_put(w->txn, db_of(w, part), change->number, part, change->part[part], MDB_APPEND));
    }
    return 0;
}

/* If the original exists. */
static int add_link(const transaction *w, const dp_change *change) {
    MDB_val key = dp_number_key(&change->link), value = dp_number_key(&change->number), trace;
    int reason = read_key(w, DP_PART_TRACE, change->link, &trace);
    if (reason)
        return unless_missing(reason);
    DP_TRY_REASON(check(w, DP_DB_LINKS, change->link, change->number));
    return mdb_put(w->txn, db_of(w, DP_DB_LINKS), &key, &value, 0);
}

/* In all, and at the number if it exists. */
static int add_count(transaction *w, const dp_change *change) {
    dp_counts counts = {0};
    MDB_val value;
    doppel_slice bytes;
    char encoded[DP_COUNTS_SIZE];
    dp_counts_add(&w->state.total, change);
    int reason = read_key(w, DP_PART_TRACE, change->count, &value);
    if (reason)
        return unless_missing(reason);
    reason = read_key(w, DP_DB_COUNTS, change->count, &value);
    DP_TRY_REASON(unless_missing(reason));
    if (!reason && (!dp_value_open(&value, change->count, DP_SEED_COUNTS, &bytes) || !dp_counts_decode(bytes, &counts)))
        return MDB_CORRUPTED;
    dp_counts_add(&counts, change);
    dp_counts_encode(&counts, encoded);
    return dp_value_put(w->txn, db_of(w, DP_DB_COUNTS), change->count, DP_SEED_COUNTS,
                        (doppel_slice){encoded, sizeof encoded}, 0);
}

static int make_change(transaction *w, const dp_change *change) {
    if (change->remove)
        DP_TRY_REASON(remove_number(w, change->remove));
    if (change->number)
        DP_TRY_REASON(add_parts(w, change));
    if (change->number && change->link)
        DP_TRY_REASON(add_link(w, change));
    return change->count ? add_count(w, change) : 0;
}

/* ---- the transaction ---- */

typedef struct request {
    const dp_change *changes;
    size_t count;
    const dp_clock *clock;
    const char *settings; /* to replace the stored ones; NULL: those stay */
    doppel_error *error;
    doppel_status status; /* of changes that cannot be made */
} request;

static void touch(dp_touched_list *list, uint64_t id, uint64_t number) {
    if (!number)
        return;
    if (dp_reserve(&list->items, &list->room, list->count + 1, sizeof *list->items))
        list->items[list->count++] = (dp_touched){id, number};
    else
        list->lost = true;
}

/* Tells a compaction which numbers before its own place this changes, before anybody can see it. What is new comes
 * after its place, and a link goes with the copy that it leads to. */
static void touch_all(const transaction *w, const request *r) {
    dp_touched_list *list = w->store->touched;
    uint64_t id = mdb_txn_id(w->txn);
    if (!list)
        return;
    pthread_mutex_lock(&list->mutex);
    for (size_t i = 0; i < r->count; i++) {
        touch(list, id, r->changes[i].remove);
        touch(list, id, r->changes[i].count);
    }
    pthread_mutex_unlock(&list->mutex);
}

/* Returns LMDB's error code; 0 also when the changes cannot be made. */
static int fill_transaction(transaction *w, request *r) {
    int reason = dp_state_get(&w->before, &w->state);
    if (reason)
        return reason == MDB_NOTFOUND ? MDB_CORRUPTED : reason;
    r->status = dp_changes_check(r->changes, r->count, &w->state.last, r->error);
    if (!r->status)
        touch_all(w, r);
    for (size_t i = 0; i < r->count && !reason && !r->status; i++)
        reason = make_change(w, &r->changes[i]);
    w->state.clock = *r->clock;
    if (r->settings && !reason && !r->status)
        reason =
            dp_meta_put(w->txn, &w->store->env, DP_SEED_SETTINGS, (doppel_slice){r->settings, strlen(r->settings)});
    return reason || r->status ? reason : dp_state_put(w->txn, &w->store->env, &w->state);
}

/* All of a transaction. If LMDB stops in the middle of it, it can neither continue nor release its lock before the
 * process ends. */
static int run_transaction(dp_lmdb *store, request *r) {
    transaction w = {.store = store};
    dp_guard guard;
    if (DP_GUARD_ENTER(guard)) {
        store->broken = store->env.stuck = true;
        return MDB_CORRUPTED;
    }
    dp_hashmap_clear(&store->checked);
    int reason = dp_env_write(&store->env, &w.txn, &w.before);
    if (!reason) {
        reason = fill_transaction(&w, r);
        if (reason || r->status)
            mdb_txn_abort(w.txn);
        else
            reason = dp_env_commit(&store->env, w.txn);
    }
    dp_guard_leave(&guard);
    return reason;
}

static int try_write(dp_lmdb *store, request *r) {
    pthread_rwlock_rdlock(&store->gate);
    int reason = store->broken ? MDB_CORRUPTED : store->env.env ? run_transaction(store, r) : MDB_PANIC;
    if (!reason && ++store->writes % READER_CHECK == 0)
        mdb_reader_check(store->env.env, NULL);
    pthread_rwlock_unlock(&store->gate);
    return reason;
}

/* `writing` is held. */
static doppel_status write_request(dp_lmdb *store, request *r, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    int reason, tries = 0;
    do {
        reason = try_write(store, r);
        if (reason == MDB_MAP_FULL)
            status = grow_map(store, error);
        else if (reason == MDB_PANIC && !tries++)
            status = recover(store, error);
        else
            break;
    } while (!status);
    if (status || r->status || !reason)
        return status ? status : r->status;
    /* The next call must find it in order; if this fails, that call tries again. */
    if (!store->broken)
        recover(store, NULL);
    return dp_env_fail(store->folder, reason, error);
}

static doppel_status write_in_turn(dp_lmdb *store, request *r, doppel_error *error) {
    if (store->read_only)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, store->folder, 0, "was opened for reading only");
    pthread_mutex_lock(&store->writing);
    doppel_status status = write_request(store, r, error);
    pthread_mutex_unlock(&store->writing);
    return status;
}

static doppel_status write_changes(dp_store *given, const dp_change *changes, size_t count, const dp_clock *clock,
                                   doppel_error *error) {
    request r = {.changes = changes, .count = count, .clock = clock, .error = error};
    return write_in_turn(dp_lmdb_of(given), &r, error);
}

static doppel_status set_settings(dp_store *given, const char *settings, const dp_clock *clock, doppel_error *error) {
    dp_lmdb *store = dp_lmdb_of(given);
    request r = {.clock = clock, .settings = settings, .error = error};
    char *copy = strdup(settings);
    doppel_status status = copy ? write_in_turn(store, &r, error) : dp_no_memory(error);
    if (status != DOPPEL_OK) {
        free(copy);
        return status;
    }
    free(store->settings);
    store->settings = copy;
    return DOPPEL_OK;
}

/* ---- views ---- */

static dp_lmdb_view *of_view(dp_view *view) {
    return (dp_lmdb_view *)view;
}

static dp_lmdb *store_of(const dp_lmdb_view *v) {
    return dp_lmdb_of(v->view.store);
}

static doppel_status fail(const dp_lmdb_view *v, int reason, doppel_error *error) {
    return dp_env_fail(store_of(v)->folder, reason, error);
}

static doppel_status view_create(dp_store *store, dp_view **view, doppel_error *error) {
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

static void view_free(dp_view *view) {
    dp_lmdb_view *v = of_view(view);
    dp_lmdb *store = store_of(v);
    pthread_mutex_lock(&store->views_mutex);
    *v->place = v->next;
    if (v->next)
        v->next->place = v->place;
    forget_file(v);
    pthread_mutex_unlock(&store->views_mutex);
    free(v);
}

/* ---- begin and end ---- */

/* The view has to move on to the next generation: not one of LMDB's own reasons. */
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

/* Reads the state again if anything was written since. */
static int read_state(dp_lmdb_view *v) {
    const dp_lmdb *store = store_of(v);
    doppel_slice successor;
    if (store->read_only && index_moved(v, false))
        return MOVED;
    if (v->now.id == v->id)
        return 0;
    if (store->read_only && !dp_meta_get(&v->now, DP_SEED_SUCCESSOR, &successor) && index_moved(v, true))
        return MOVED;
    int reason = dp_state_get(&v->now, &v->state);
    if (!reason)
        v->id = v->now.id;
    return reason == MDB_NOTFOUND ? MDB_CORRUPTED : reason;
}

static int begin(dp_lmdb_view *v) {
    const dp_lmdb *store = store_of(v);
    if (!store->env.env)
        return MDB_PANIC;
    int reason = dp_env_read(&store->env, &v->txn, &v->probe, &v->now);
    if (reason)
        return reason;
    if ((reason = read_state(v))) {
        mdb_txn_reset(v->txn);
        return reason;
    }
    v->generation = store->generation;
    v->names = store->env.names;
    atomic_store(&v->is, DP_VIEW_ACTIVE);
    return 0;
}

/* Fixes what keeps a view from beginning, if it can. */
static doppel_status repair_view(dp_lmdb_view *v, int reason, doppel_error *error) {
    dp_lmdb *store = store_of(v);
    if (reason == MDB_MAP_RESIZED)
        return follow_map(store, error);
    if (reason == MDB_PANIC)
        return recover(store, error);
    if (reason == MOVED)
        return follow_index(store, error);
    return fail(v, reason, error);
}

enum { MOST_TRIES = 100 };

static doppel_status view_begin(dp_view *view, doppel_error *error) {
    dp_lmdb_view *v = of_view(view);
    pthread_rwlock_t *gate = &store_of(v)->gate;
    int reason = 0;
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        pthread_rwlock_rdlock(gate);
        reason = begin(v);
        pthread_rwlock_unlock(gate);
        if (!reason)
            return DOPPEL_OK;
        DP_TRY(repair_view(v, reason, error));
    }
    return dp_fail_at(error, DOPPEL_ERROR_STORE, store_of(v)->folder, 0, "changes too fast to be read; try again");
}

/* The file was replaced during the view. */
static void leave_retired(dp_lmdb_view *v) {
    dp_lmdb *store = store_of(v);
    pthread_mutex_lock(&store->views_mutex);
    dp_retired *retired = v->retired;
    v->retired = NULL;
    forget_file(v);
    pthread_mutex_unlock(&store->views_mutex);
    release_retired(store, retired);
}

static void view_end(dp_view *view) {
    dp_lmdb_view *v = of_view(view);
    mdb_txn_reset(v->txn);
    if (atomic_exchange(&v->is, DP_VIEW_IDLE) == DP_VIEW_RETIRED)
        leave_retired(v);
}

/* ---- what it is like ---- */

static void view_moment(dp_view *view, dp_moment *moment) {
    const dp_lmdb_view *v = of_view(view);
    *moment = (dp_moment){.last = v->state.last,
                          .clock = v->state.clock,
                          .generation = v->generation,
                          .names = v->names,
                          .commit = v->now.id,
                          .traces = v->now.db[DP_PART_TRACE].entries,
                          .records = v->now.db[DP_PART_RECORD].entries,
                          .titles = v->state.total.by[dp_reason_counter(DOPPEL_REASON_TITLE)]};
}

/* Pages in LMDB's own list of those that can be used again. */
static uint64_t free_pages(const dp_lmdb_view *v) {
    uint64_t checksum, pages;
    DP_GUARD(guard, 0);
    int reason = dp_free_check(&v->now.pages, &checksum, &pages, NULL);
    dp_guard_leave(&guard);
    return reason ? 0 : pages;
}

static void view_info(dp_view *view, dp_store_info *info) {
    const dp_lmdb_view *v = of_view(view);
    char *path = dp_folder_file(store_of(v)->folder, v->generation);
    struct stat known;
    info->last = v->state.last;
    info->clock = v->state.clock;
    info->generation = v->generation;
    info->total = v->state.total;
    for (int part = 0; part < DP_PARTS; part++)
        info->entries[part] = v->now.db[part].entries;
    if (path && !stat(path, &known))
        info->disk_bytes = (uint64_t)known.st_size;
    free(path);
    info->free_bytes = free_pages(v) * v->now.pages.size;
}

/* ---- reading ---- */

static doppel_status damaged(const dp_lmdb_view *v, const char *what, uint64_t number, doppel_error *error) {
    return dp_damaged(store_of(v)->folder, error, "the %s of number %" PRIu64 " is damaged", what, number);
}

/* A value with a verified checksum: MDB_BAD_VALSIZE if it is wrong. */
static int get(const dp_lmdb_view *v, int db, uint64_t number, int seed, doppel_slice *bytes) {
    dp_page_value found;
    DP_GUARD(guard, MDB_CORRUPTED);
    int reason = dp_btree_get(&v->now.pages, &v->now.db[db], number, &found);
    if (!reason && !dp_value_open(&found.value, number, seed, bytes))
        reason = MDB_CORRUPTED;
    dp_guard_leave(&guard);
    return reason;
}

static doppel_status view_get(dp_view *view, dp_part part, uint64_t number, doppel_slice *bytes, doppel_error *error) {
    const dp_lmdb_view *v = of_view(view);
    int reason = get(v, (int)part, number, (int)part, bytes);
    if (!reason)
        return DOPPEL_OK;
    *bytes = (doppel_slice){0};
    return reason == MDB_NOTFOUND ? DOPPEL_OK : damaged(v, dp_part_name(part), number, error);
}

static doppel_status view_counts(dp_view *view, uint64_t number, dp_counts *counts, doppel_error *error) {
    const dp_lmdb_view *v = of_view(view);
    doppel_slice bytes;
    int reason = get(v, DP_DB_COUNTS, number, DP_SEED_COUNTS, &bytes);
    if (reason == MDB_NOTFOUND)
        return DOPPEL_OK;
    return !reason && dp_counts_decode(bytes, counts) ? DOPPEL_OK : damaged(v, "count", number, error);
}

typedef struct link_list {
    uint64_t *links;
    size_t room, found;
    uint64_t above, last;
} link_list;

/* A link leads from an original to a copy, which came later. */
static int take_link(uint64_t number, void *user) {
    link_list *l = user;
    if (number <= l->above || number > l->last)
        return MDB_CORRUPTED;
    if (l->found < l->room)
        l->links[l->found] = number;
    l->found++;
    return 0;
}

static int read_links(const dp_lmdb_view *v, uint64_t number, link_list *l) {
    dp_page_value found;
    DP_GUARD(guard, MDB_CORRUPTED);
    int reason = dp_btree_get(&v->now.pages, &v->now.db[DP_DB_LINKS], number, &found);
    if (!reason)
        reason = dp_dups_each(&v->now.pages, &found, take_link, l, NULL);
    dp_guard_leave(&guard);
    return reason == MDB_NOTFOUND ? 0 : reason;
}

static doppel_status view_links(dp_view *view, uint64_t number, uint64_t *links, size_t room, size_t *found,
                                doppel_error *error) {
    const dp_lmdb_view *v = of_view(view);
    link_list l = {.links = links, .room = room, .above = number, .last = v->state.last};
    int reason = read_links(v, number, &l);
    *found = reason ? 0 : l.found;
    return reason ? damaged(v, "list of copies", number, error) : DOPPEL_OK;
}

/* ---- all of something ---- */

/* The next value and whether it is intact. */
static int step(dp_cursor *cursor, int seed, uint64_t *number, doppel_slice *bytes, bool *whole) {
    dp_page_value found;
    DP_GUARD(guard, EIO);
    int reason = dp_cursor_next(cursor, number, &found);
    *whole = !reason && dp_value_open(&found.value, *number, seed, bytes);
    dp_guard_leave(&guard);
    return reason;
}

/* An unreadable page is skipped, if the caller counts damage (each->damaged). */
static doppel_status each_value(const dp_lmdb_view *v, dp_cursor *cursor, const dp_each *each, doppel_error *error) {
    doppel_slice bytes;
    bool whole;
    for (;;) {
        uint64_t number = 0;
        int reason = step(cursor, (int)each->part, &number, &bytes, &whole);
        if (reason == MDB_NOTFOUND || (!reason && number > each->to))
            return DOPPEL_OK;
        if (reason && (reason != MDB_CORRUPTED || !each->damaged))
            return fail(v, reason, error);
        doppel_status status = DOPPEL_OK;
        if (!reason && whole)
            status = each->value(number, bytes, each->user);
        else if (each->damaged)
            each->damaged(number, each->user);
        if (status)
            return status;
    }
}

static doppel_status view_each(dp_view *view, const dp_each *each, doppel_error *error) {
    const dp_lmdb_view *v = of_view(view);
    dp_cursor cursor = {0};
    dp_cursor_seek(&cursor, &v->now.pages, &v->now.db[each->part], each->from);
    return each_value(v, &cursor, each, error);
}

static doppel_status view_each_count(dp_view *view, dp_count_visit *counted, void *user, doppel_error *error) {
    const dp_lmdb_view *v = of_view(view);
    dp_cursor cursor = {0};
    doppel_slice bytes;
    bool whole;
    uint64_t number = 0, seen = 0, good = 0;
    dp_cursor_seek(&cursor, &v->now.pages, &v->now.db[DP_DB_COUNTS], 0);
    for (int reason; (reason = step(&cursor, DP_SEED_COUNTS, &number, &bytes, &whole)) != MDB_NOTFOUND; seen++) {
        dp_counts counts;
        if (reason && reason != MDB_CORRUPTED)
            return fail(v, reason, error);
        if (reason || !whole || !dp_counts_decode(bytes, &counts))
            continue;
        DP_TRY(counted(number, &counts, user));
        good++;
    }
    if (good == seen && good == v->now.db[DP_DB_COUNTS].entries)
        return DOPPEL_OK;
    return dp_damaged(store_of(v)->folder, error, "of %" PRIu64 " counts of duplicates %" PRIu64 " can be read",
                      v->now.db[DP_DB_COUNTS].entries, good);
}

/* ---- the kind ---- */

static bool takes(const char *path) {
    return path != NULL;
}

static const char *settings_of(const dp_store *store) {
    return dp_lmdb_of(store)->settings;
}

const dp_store_kind dp_store_lmdb = {
    .name = "lmdb",
    .takes = takes,
    .open = dp_lmdb_open,
    .close = dp_lmdb_close,
    .settings = settings_of,
    .set_settings = set_settings,
    .write = write_changes,
    .view_create = view_create,
    .view_free = view_free,
    .view_begin = view_begin,
    .view_end = view_end,
    .view_moment = view_moment,
    .view_info = view_info,
    .view_get = view_get,
    .view_counts = view_counts,
    .view_links = view_links,
    .view_each = view_each,
    .view_each_count = view_each_count,
    .compact = dp_lmdb_compact,
    .backup = dp_lmdb_backup,
};
