/* lmdb_view.c - views: each has a read transaction of its own that is renewed by begin and reset by end, without a lock
 * but the gate, which only a change of the map or the file closes.
 *
 * A reader process follows its writer: when the file names a successor, or doppel.index (looked at once a second)
 * another generation, begin opens that. */
#include "store/lmdb.h"

#include <errno.h>
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
    *moment = (dp_moment){.last = v->state.last,
                          .clock = v->state.clock,
                          .generation = store_of(v)->generation,
                          .names = store_of(v)->env.names,
                          .commit = v->now.id,
                          .traces = v->now.db[DP_PART_TRACE].entries,
                          .records = v->now.db[DP_PART_RECORD].entries};
}

/* Pages in LMDB's own list of those that can be used again. */
static uint64_t free_pages(const dp_lmdb_view *v) {
    uint64_t checksum, pages;
    dp_guard guard;
    if (DP_GUARD_ENTER(guard))
        return 0;
    int reason = dp_free_check(&v->now.pages, &checksum, &pages, NULL);
    dp_guard_leave(&guard);
    return reason ? 0 : pages;
}

void dp_lmdb_view_info(dp_view *view, dp_store_info *info) {
    const dp_lmdb_view *v = of_view(view);
    const dp_lmdb *store = store_of(v);
    struct stat known;
    info->last = v->state.last;
    info->clock = v->state.clock;
    info->generation = store->generation;
    info->total = v->state.total;
    for (int part = 0; part < DP_PARTS; part++)
        info->entries[part] = v->now.db[part].entries;
    if (!stat(store->env.path, &known))
        info->disk_bytes = (uint64_t)known.st_size;
    info->free_bytes = free_pages(v) * v->now.pages.size;
}

/* ---- reading ---- */

static doppel_status damaged(const dp_lmdb_view *v, const char *what, uint64_t number, doppel_error *error) {
    return dp_damaged(store_of(v)->folder, error, "the %s of number %" PRIu64 " is damaged", what, number);
}

/* A value, its checksum seen to be right: MDB_BAD_VALSIZE when it is not. */
static int get(const dp_lmdb_view *v, int db, uint64_t number, int seed, doppel_slice *bytes) {
    dp_found found;
    dp_guard guard;
    if (DP_GUARD_ENTER(guard))
        return MDB_CORRUPTED;
    int reason = dp_btree_get(&v->now.pages, &v->now.db[db], number, &found);
    if (!reason && !dp_value_open(&found.value, number, seed, bytes))
        reason = MDB_CORRUPTED;
    dp_guard_leave(&guard);
    return reason;
}

doppel_status dp_lmdb_view_get(dp_view *view, dp_part part, uint64_t number, doppel_slice *bytes, doppel_error *error) {
    const dp_lmdb_view *v = of_view(view);
    int reason = get(v, (int)part, number, (int)part, bytes);
    if (!reason)
        return DOPPEL_OK;
    *bytes = (doppel_slice){0};
    return reason == MDB_NOTFOUND ? DOPPEL_OK : damaged(v, dp_part_name(part), number, error);
}

doppel_status dp_lmdb_view_counts(dp_view *view, uint64_t number, dp_counts *counts, doppel_error *error) {
    const dp_lmdb_view *v = of_view(view);
    doppel_slice bytes;
    int reason = get(v, DP_DB_COUNTS, number, DP_SEED_COUNTS, &bytes);
    if (reason == MDB_NOTFOUND)
        return DOPPEL_OK;
    return !reason && dp_counts_decode(bytes, counts) ? DOPPEL_OK : damaged(v, "count", number, error);
}

typedef struct linking {
    uint64_t *links;
    size_t room, found;
    uint64_t above, last;
} linking;

/* A link leads from an original to a copy, which came later. */
static int take_link(uint64_t number, void *user) {
    linking *l = user;
    if (number <= l->above || number > l->last)
        return MDB_CORRUPTED;
    if (l->found < l->room)
        l->links[l->found] = number;
    l->found++;
    return 0;
}

static int read_links(const dp_lmdb_view *v, uint64_t number, linking *l) {
    dp_found found;
    dp_guard guard;
    if (DP_GUARD_ENTER(guard))
        return MDB_CORRUPTED;
    int reason = dp_btree_get(&v->now.pages, &v->now.db[DP_DB_LINKS], number, &found);
    if (!reason)
        reason = dp_dups_each(&v->now.pages, &found, take_link, l, NULL);
    dp_guard_leave(&guard);
    return reason == MDB_NOTFOUND ? 0 : reason;
}

doppel_status dp_lmdb_view_links(dp_view *view, uint64_t number, uint64_t *links, size_t room, size_t *found,
                                 doppel_error *error) {
    const dp_lmdb_view *v = of_view(view);
    linking l = {.links = links, .room = room, .above = number, .last = v->state.last};
    int reason = read_links(v, number, &l);
    *found = reason ? 0 : l.found;
    return reason ? damaged(v, "list of copies", number, error) : DOPPEL_OK;
}

/* ---- all of something ---- */

/* The next value and whether it is whole. */
static int step(dp_cursor *cursor, int seed, uint64_t *number, doppel_slice *bytes, bool *whole) {
    dp_found found;
    dp_guard guard;
    if (DP_GUARD_ENTER(guard))
        return EIO;
    int reason = dp_cursor_next(cursor, number, &found);
    *whole = !reason && dp_value_open(&found.value, *number, seed, bytes);
    dp_guard_leave(&guard);
    return reason;
}

/* A page that cannot be read is passed over, if whoever asks takes note of that. */
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

doppel_status dp_lmdb_view_each(dp_view *view, const dp_each *each, doppel_error *error) {
    const dp_lmdb_view *v = of_view(view);
    dp_cursor cursor = {0};
    dp_cursor_seek(&cursor, &v->now.pages, &v->now.db[each->part], each->from);
    return each_value(v, &cursor, each, error);
}

doppel_status dp_lmdb_view_each_count(dp_view *view, dp_counted *counted, void *user, doppel_error *error) {
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
        doppel_status status = counted(number, &counts, user);
        if (status)
            return status;
        good++;
    }
    if (good == seen && good == v->now.db[DP_DB_COUNTS].entries)
        return DOPPEL_OK;
    return dp_damaged(store_of(v)->folder, error, "of %" PRIu64 " counts of duplicates %" PRIu64 " can be read",
                      v->now.db[DP_DB_COUNTS].entries, good);
}
