/* compact.c - the next generation of a store in a folder (compact), and copies of it (backup): a new file with what is
 * kept, in order. Views and writes continue during it.
 *
 * A copy is made in steps of a few MiB, each from one snapshot of the old file. A backup uses the same snapshot for all
 * of them. A compaction begins each step with a new one, at the number where the last one ended, so that no page of the
 * old file is kept from reuse for long; what was written since is caught up with:
 *   1. traces with all their parts, then links, then counts, each from the first number to the last;
 *   2. rounds (catch_up), each of one moment: what has come after the last number that was copied; then every number
 *      before it that a writer has touched (dp_touched_list): it is deleted if it is gone, or its count copied again.
 *      Then the copy is what the old file was at that moment, and its entries are counted (check_complete). Rounds are
 *      repeated until little is left;
 *   3. with writers shut out (`writing`), one last round; then the new file takes the old one's place (finish).
 * A write waits only for the third step: a round of a few hundred numbers and two syncs. A view waits for nothing.
 *
 * The next generation is complete and synced before doppel.index names it; then the old one is marked as having a
 * successor, for processes that read it, and is removed. Whatever happens on the way, doppel.index names a complete
 * file; the other one is removed by the next writer. A backup is the same file in another folder, with everything.
 *
 * Nothing is copied that is not whole: every checksum is compared, every document needs its record and the parts it
 * mentions, and each database must have as many entries as it says. At the first error there is no copy.
 *
 * A folder of format 1 becomes one of format 2 when it is compacted: the next generation has a secret, and the hashes
 * of names in its traces are computed again from the records. A backup of it stays as it is. */
#include "store/lmdb.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What one step takes at most: its dirty pages have to fit into memory, and a writer's sync may have to wait for them
 * on the same disk. */
#define STEP_BYTES ((size_t)4 << 20)

/* With this few numbers left to catch up with, or after this many rounds, writers are blocked for the last one. */
enum { FEW_LEFT = 256, MOST_ROUNDS = 64 };

typedef struct store_copy {
    dp_lmdb *store;
    dp_view *view;          /* of the old file */
    const dp_snapshot *now; /* what is read: the view's */
    char *path;             /* of the new one */
    dp_env to;
    MDB_txn *write;
    volatile bool putting; /* LMDB is writing to it */
    size_t pending;        /* bytes of this step */
    uint64_t next;         /* the number after the last that was copied */
    dp_trace_filter *keep; /* NULL: everything, of one moment */
    void *user;
    dp_buffer bytes;             /* of a trace that is converted */
    uint64_t removals, dangling; /* traces of removals, and dangling links, that were left out */
    uint64_t *dropped;           /* other numbers that were left out, ascending */
    size_t dropped_count, dropped_room;
    dp_touched_list touched; /* what writers report */
    dp_touched *later;       /* what was reported by transactions after the current snapshot */
    size_t later_count, later_room;
    char wrong[200]; /* what is damaged, if known */
} store_copy;

/* ---- copying ---- */

static int wrong(store_copy *c, const char *what, uint64_t number) {
    snprintf(c->wrong, sizeof c->wrong, "the %s of number %" PRIu64 " is damaged or missing", what, number);
    return MDB_CORRUPTED;
}

static int put(store_copy *c, int db, MDB_val key, MDB_val value, unsigned flags) {
    c->putting = true;
    int reason = mdb_put(c->write, c->to.db[db], &key, &value, flags);
    c->putting = false;
    return reason;
}

static int copy_value(store_copy *c, int db, uint64_t number, MDB_val value) {
    c->pending += value.mv_size;
    return put(c, db, dp_number_key(&number), value, db == DP_DB_COUNTS ? 0 : MDB_APPEND);
}

/* A part that must exist. */
static int copy_part(store_copy *c, dp_part part, uint64_t number, doppel_slice *bytes) {
    dp_page_value found;
    int reason = dp_btree_get(&c->now->pages, &c->now->db[part], number, &found);
    if (reason || !dp_value_open(&found.value, number, (int)part, bytes))
        return wrong(c, dp_part_name(part), number);
    return copy_value(c, (int)part, number, found.value);
}

/* A document or a copy: its record, and the set and text that the record mentions. */
static int copy_parts(store_copy *c, uint64_t number) {
    doppel_slice bytes;
    dp_record record;
    int reason = copy_part(c, DP_PART_RECORD, number, &bytes);
    if (!reason && !dp_record_decode(bytes, &record))
        reason = wrong(c, "record", number);
    bool set = !reason && record.set_count, text = !reason && record.text_length;
    if (set)
        reason = copy_part(c, DP_PART_SET, number, &bytes);
    if (!reason && text)
        reason = copy_part(c, DP_PART_TEXT, number, &bytes);
    return reason;
}

/* The hash of a name by the secret of the next generation; one that has none gets none. */
static uint64_t hash_again(const store_copy *c, uint64_t hash, doppel_slice name) {
    return hash ? dp_name_hash(&c->to.names, name) : 0;
}

/* The trace of a file without a secret, with the hashes of the names in its record. */
static int convert_trace(store_copy *c, dp_trace *trace) {
    dp_page_value found;
    doppel_slice bytes;
    dp_record record;
    uint64_t number = trace->number;
    if (dp_btree_get(&c->now->pages, &c->now->db[DP_PART_RECORD], number, &found) ||
        !dp_value_open(&found.value, number, DP_PART_RECORD, &bytes) || !dp_record_decode(bytes, &record))
        return wrong(c, "record", number);
    trace->id_hash = hash_again(c, trace->id_hash, record.id);
    trace->url_hash = hash_again(c, trace->url_hash, record.canonical);
    c->bytes.size = 0;
    if (!dp_trace_encode(trace, &c->bytes))
        return ENOMEM;
    c->pending += c->bytes.size;
    return dp_value_put(c->write, c->to.db[DP_PART_TRACE], number, DP_PART_TRACE,
                        (doppel_slice){c->bytes.data, c->bytes.size}, MDB_APPEND);
}

static bool is_keyed(const store_copy *c) {
    return ((const dp_lmdb_view *)c->view)->names.keyed;
}

static bool was_kept(const store_copy *c, uint64_t number) {
    MDB_val key = dp_number_key(&number), value;
    return !mdb_get(c->write, c->to.db[DP_PART_TRACE], &key, &value);
}

/* Leaves out an unwanted trace; *out: it did. */
static int leave_out(store_copy *c, const dp_trace *trace, bool *out) {
    bool removal = dp_trace_is_removal(trace);
    *out = c->keep && (removal || !c->keep(trace, c->user));
    c->removals += *out && removal;
    if (!*out || removal)
        return 0;
    if (!dp_reserve(&c->dropped, &c->dropped_room, c->dropped_count + 1, sizeof *c->dropped))
        return ENOMEM;
    c->dropped[c->dropped_count++] = trace->number;
    return 0;
}

static int put_link(store_copy *c, uint64_t original, uint64_t number) {
    c->pending += sizeof number;
    return put(c, DP_DB_LINKS, dp_number_key(&original), dp_number_key(&number), 0);
}

static int open_trace(store_copy *c, uint64_t number, const dp_page_value *found, dp_trace *trace) {
    doppel_slice bytes;
    bool whole = found->value.mv_data && dp_value_open(&found->value, number, DP_PART_TRACE, &bytes) &&
                 dp_trace_decode(bytes, trace) && trace->number == number;
    return whole ? 0 : wrong(c, "trace", number);
}

static int take_trace(store_copy *c, uint64_t number, const dp_page_value *found) {
    dp_trace trace;
    bool out;
    c->next = number + 1;
    DP_TRY_REASON(open_trace(c, number, found, &trace));
    DP_TRY_REASON(leave_out(c, &trace, &out));
    if (out)
        return 0;
    bool same = is_keyed(c) == c->to.names.keyed;
    int reason = same ? copy_value(c, DP_PART_TRACE, number, found->value) : convert_trace(c, &trace);
    return reason || !dp_trace_is_kept(&trace) ? reason : copy_parts(c, number);
}

/* After the links were copied: a copy brings its own. */
static int take_late_trace(store_copy *c, uint64_t number, const dp_page_value *found) {
    dp_trace trace;
    DP_TRY_REASON(take_trace(c, number, found));
    DP_TRY_REASON(open_trace(c, number, found, &trace));
    bool linked = trace.kind == DP_TRACE_COPY && was_kept(c, number) && was_kept(c, trace.of);
    return linked ? put_link(c, trace.of, number) : 0;
}

static int take_count(store_copy *c, uint64_t number, const dp_page_value *found) {
    doppel_slice bytes;
    dp_counts counts;
    if (!found->value.mv_data || !dp_value_open(&found->value, number, DP_SEED_COUNTS, &bytes) ||
        !dp_counts_decode(bytes, &counts))
        return wrong(c, "count", number);
    return was_kept(c, number) ? copy_value(c, DP_DB_COUNTS, number, found->value) : 0;
}

typedef struct links_copy {
    store_copy *copy;
    uint64_t original;
    bool kept;
} links_copy;

static bool is_stored(const store_copy *c, uint64_t number) {
    dp_page_value found;
    return !dp_btree_get(&c->now->pages, &c->now->db[DP_PART_TRACE], number, &found);
}

static int take_link(uint64_t number, void *user) {
    links_copy *l = user;
    store_copy *c = l->copy;
    if (number <= l->original)
        return wrong(c, "list of copies", l->original);
    if (!l->kept)
        return 0;
    if (was_kept(c, number))
        return put_link(c, l->original, number);
    c->dangling += !is_stored(c, number);
    return 0;
}

static int take_links(store_copy *c, uint64_t number, const dp_page_value *found) {
    links_copy l = {.copy = c, .original = number, .kept = was_kept(c, number)};
    return dp_dups_each(&c->now->pages, found, take_link, &l, NULL);
}

/* ---- steps ---- */

/* Reads the old file in a guarded section, as a page may be unreadable. A transaction in which LMDB was interrupted
 * cannot even be aborted. */
static int guarded(store_copy *c, int (*work)(store_copy *c, void *user), void *user) {
    dp_guard guard;
    if (!c->write)
        DP_TRY_REASON(mdb_txn_begin(c->to.env, NULL, 0, &c->write));
    if (DP_GUARD_ENTER(guard)) {
        c->to.stuck = c->putting;
        c->write = c->putting ? NULL : c->write;
        return MDB_CORRUPTED;
    }
    int reason = work(c, user);
    dp_guard_leave(&guard);
    return reason;
}

/* Entries of a database, from a number on. */
typedef struct entries_copy {
    int db;
    uint64_t from; /* the next number */
    int (*take)(store_copy *c, uint64_t number, const dp_page_value *found);
} entries_copy;

/* Until the step is full: MDB_NOTFOUND at the end of the database. */
static int copy_some(store_copy *c, void *user) {
    entries_copy *e = user;
    dp_cursor cursor = {0};
    dp_page_value found;
    uint64_t number;
    int reason = 0;
    dp_cursor_seek(&cursor, &c->now->pages, &c->now->db[e->db], e->from);
    while (!reason && c->pending < STEP_BYTES && !(reason = dp_cursor_next(&cursor, &number, &found))) {
        reason = e->take(c, number, &found);
        e->from = number + 1;
    }
    return reason;
}

/* Commits what was copied, and syncs it: so a later sync never has to wait for more than a step. */
static int commit_step(store_copy *c) {
    MDB_txn *full = c->write;
    c->write = NULL;
    c->pending = 0;
    DP_TRY_REASON(mdb_txn_commit(full));
    return mdb_env_sync(c->to.env, 1);
}

static doppel_status copy_failed(store_copy *c, int reason, doppel_error *error) {
    const char *path = c->keep || reason < 0 ? c->store->folder : c->path;
    return reason == MDB_CORRUPTED && *c->wrong ? dp_damaged(c->store->folder, error, "%s", c->wrong)
                                                : dp_env_fail(path, reason, error);
}

/* A thread that waits for a lock of the store must not be in a view: the thread that has the lock may wait for all
 * views to end. */
static void leave_view(store_copy *c) {
    if (c->now)
        dp_view_end(c->view);
    c->now = NULL;
}

/* Moves to the current snapshot, for a compaction; what was copied is committed, so that LMDB's lock is not held while
 * this waits for a lock of the store. */
static doppel_status renew(store_copy *c, doppel_error *error) {
    if (!c->keep)
        return DOPPEL_OK;
    leave_view(c);
    int reason = c->write ? commit_step(c) : 0;
    if (reason)
        return copy_failed(c, reason, error);
    DP_TRY(dp_view_begin(c->view, error));
    c->now = &((dp_lmdb_view *)c->view)->now;
    return DOPPEL_OK;
}

/* All entries from there on, in steps of one snapshot each, or all of the current snapshot (`still`). */
static doppel_status copy_entries(store_copy *c, entries_copy e, bool still, doppel_error *error) {
    for (;;) {
        int reason = guarded(c, copy_some, &e);
        if (reason == MDB_NOTFOUND)
            return DOPPEL_OK;
        if (!reason)
            reason = commit_step(c);
        if (reason)
            return copy_failed(c, reason, error);
        if (!still)
            DP_TRY(renew(c, error));
    }
}

static doppel_status copy_databases(store_copy *c, doppel_error *error) {
    DP_TRY(copy_entries(c, (entries_copy){DP_PART_TRACE, 0, take_trace}, false, error));
    DP_TRY(copy_entries(c, (entries_copy){DP_DB_LINKS, 0, take_links}, false, error));
    return copy_entries(c, (entries_copy){DP_DB_COUNTS, 0, take_count}, false, error);
}

/* ---- catching up ---- */

static int delete_key(const store_copy *c, int db, uint64_t number, uint64_t *dup) {
    MDB_val key = dp_number_key(&number), value = dup ? dp_number_key(dup) : (MDB_val){0, NULL};
    int reason = mdb_del(c->write, c->to.db[db], &key, dup ? &value : NULL);
    return reason == MDB_NOTFOUND ? 0 : reason;
}

/* Removes a number that is no longer in the old file. */
static int forget(store_copy *c, uint64_t number) {
    MDB_val key = dp_number_key(&number), value;
    doppel_slice bytes;
    dp_trace trace;
    int reason = mdb_get(c->write, c->to.db[DP_PART_TRACE], &key, &value);
    if (reason)
        return reason == MDB_NOTFOUND ? 0 : reason;
    if (!dp_value_open(&value, number, DP_PART_TRACE, &bytes) || !dp_trace_decode(bytes, &trace))
        return wrong(c, "trace", number);
    if (trace.kind == DP_TRACE_COPY)
        DP_TRY_REASON(delete_key(c, DP_DB_LINKS, trace.of, &number));
    for (int db = 0; db <= DP_DB_COUNTS; db++)
        DP_TRY_REASON(delete_key(c, db, number, NULL));
    return 0;
}

/* Updates the copy of a number. One that was not copied yet is copied in its turn. */
static int take_touched(store_copy *c, uint64_t number) {
    dp_page_value found;
    if (number >= c->next)
        return 0;
    int reason = dp_btree_get(&c->now->pages, &c->now->db[DP_PART_TRACE], number, &found);
    if (reason == MDB_NOTFOUND)
        return forget(c, number);
    if (!reason)
        reason = dp_btree_get(&c->now->pages, &c->now->db[DP_DB_COUNTS], number, &found);
    return reason ? (reason == MDB_NOTFOUND ? 0 : reason) : take_count(c, number, &found);
}

typedef struct touched_numbers {
    uint64_t *numbers;
    size_t count;
} touched_numbers;

static int take_all_touched(store_copy *c, void *user) {
    const touched_numbers *list = user;
    for (size_t i = 0; i < list->count; i++)
        if (!i || list->numbers[i] != list->numbers[i - 1])
            DP_TRY_REASON(take_touched(c, list->numbers[i]));
    return 0;
}

/* Takes what writers have reported so far; false: out of memory. */
static bool take_reported(store_copy *c) {
    dp_touched_list *list = &c->touched;
    pthread_mutex_lock(&list->mutex);
    dp_touched *told = list->items;
    size_t count = list->count;
    bool lost = list->lost;
    list->items = NULL;
    list->count = list->room = 0;
    pthread_mutex_unlock(&list->mutex);
    bool room = !lost && dp_reserve(&c->later, &c->later_room, c->later_count + count, sizeof *c->later);
    if (room && count)
        memcpy(c->later + c->later_count, told, count * sizeof *told);
    c->later_count += room ? count : 0;
    free(told);
    return room;
}

static int compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Numbers touched up to the current snapshot, ascending; false: out of memory. free() them. */
static bool touched_by_now(store_copy *c, touched_numbers *list) {
    *list = (touched_numbers){0};
    if (!take_reported(c) || !(list->numbers = malloc((c->later_count + 1) * sizeof *list->numbers)))
        return false;
    size_t later = 0;
    for (size_t i = 0; i < c->later_count; i++) {
        if (c->later[i].transaction <= c->now->pages.meta.transaction)
            list->numbers[list->count++] = c->later[i].number;
        else
            c->later[later++] = c->later[i];
    }
    c->later_count = later;
    qsort(list->numbers, list->count, sizeof *list->numbers, compare_numbers);
    return true;
}

/* Brings the copy up to the current snapshot. A transaction is reported before it becomes visible, so nothing in the
 * snapshot is missing. */
static doppel_status catch_up(store_copy *c, doppel_error *error) {
    touched_numbers touched;
    DP_TRY(renew(c, error));
    DP_TRY(copy_entries(c, (entries_copy){DP_PART_TRACE, c->next, take_late_trace}, true, error));
    if (!touched_by_now(c, &touched))
        return dp_no_memory(error);
    int reason = guarded(c, take_all_touched, &touched);
    free(touched.numbers);
    return reason ? copy_failed(c, reason, error) : DOPPEL_OK;
}

/* Numbers added or touched since the last round. */
static uint64_t count_left(store_copy *c) {
    const dp_lmdb_view *v = (const dp_lmdb_view *)c->view;
    pthread_mutex_lock(&c->touched.mutex);
    uint64_t touched = c->touched.count;
    pthread_mutex_unlock(&c->touched.mutex);
    return touched + c->later_count + (v->state.last >= c->next ? v->state.last - c->next + 1 : 0);
}

/* ---- completeness ---- */

static int count_link(uint64_t number, void *user) {
    (void)number;
    ++*(uint64_t *)user;
    return 0;
}

/* What the old file still has for a number that was left out. */
static int count_dropped(store_copy *c, uint64_t number, uint64_t left[DP_DBS]) {
    dp_page_value found;
    dp_trace trace;
    int reason = dp_btree_get(&c->now->pages, &c->now->db[DP_PART_TRACE], number, &found);
    if (reason)
        return reason == MDB_NOTFOUND ? 0 : reason;
    DP_TRY_REASON(open_trace(c, number, &found, &trace));
    left[DP_PART_TRACE]++;
    left[DP_DB_LINKS] += trace.kind == DP_TRACE_COPY && was_kept(c, trace.of);
    left[DP_DB_COUNTS] += !dp_btree_get(&c->now->pages, &c->now->db[DP_DB_COUNTS], number, &found);
    reason = dp_btree_get(&c->now->pages, &c->now->db[DP_DB_LINKS], number, &found);
    if (reason)
        return reason == MDB_NOTFOUND ? 0 : reason;
    return dp_dups_each(&c->now->pages, &found, count_link, &left[DP_DB_LINKS], NULL);
}

static int count_all_dropped(store_copy *c, void *user) {
    for (size_t i = 0; i < c->dropped_count; i++)
        DP_TRY_REASON(count_dropped(c, c->dropped[i], user));
    return 0;
}

/* Whether the copy, and what was left out, has as many entries as the old file says it has. The copy is of the current
 * snapshot. */
static doppel_status check_complete(store_copy *c, doppel_error *error) {
    const int databases[] = {DP_PART_TRACE, DP_DB_LINKS, DP_DB_COUNTS};
    uint64_t left[DP_DBS] = {[DP_PART_TRACE] = c->removals, [DP_DB_LINKS] = c->dangling};
    int reason = guarded(c, count_all_dropped, left);
    for (size_t i = 0; i < sizeof databases / sizeof *databases && !reason; i++) {
        MDB_stat known;
        int db = databases[i];
        reason = mdb_stat(c->write, c->to.db[db], &known);
        if (!reason && known.ms_entries + left[db] != c->now->db[db].entries)
            reason = MDB_CORRUPTED;
    }
    return reason ? copy_failed(c, reason, error) : DOPPEL_OK;
}

/* ---- the end of a copy ---- */

/* All but the successor, which is of the old file alone. */
static int copy_meta(store_copy *c, void *user) {
    (void)user;
    dp_cursor cursor = {0};
    dp_page_value found;
    doppel_slice settings;
    dp_store_state state;
    uint64_t number;
    int reason = dp_meta_get(c->now, DP_SEED_SETTINGS, &settings);
    if (!reason)
        reason = dp_state_get(c->now, &state);
    if (reason)
        return MDB_CORRUPTED;
    dp_cursor_seek(&cursor, &c->now->pages, &c->now->db[DP_DB_META], 0);
    while (!(reason = dp_cursor_next(&cursor, &number, &found))) {
        if (!found.value.mv_data)
            return MDB_CORRUPTED;
        bool successor = found.key.mv_size == 9 && !memcmp(found.key.mv_data, "successor", 9);
        if (!successor && (reason = put(c, DP_DB_META, found.key, found.value, 0)))
            return reason;
    }
    if (reason != MDB_NOTFOUND)
        return reason;
    return is_keyed(c) == c->to.names.keyed ? 0 : dp_names_put(c->write, &c->to, &c->to.names);
}

/* Writes the state and the settings of the current snapshot, and makes the last commit. */
static doppel_status end_copy(store_copy *c, doppel_error *error) {
    int reason = guarded(c, copy_meta, NULL);
    if (!reason) {
        MDB_txn *last = c->write;
        c->write = NULL;
        reason = dp_env_commit(&c->to, last);
    }
    if (!reason)
        reason = mdb_env_sync(c->to.env, 1);
    if (!reason)
        reason = mdb_env_set_flags(c->to.env, MDB_NOSYNC, 0);
    return reason ? copy_failed(c, reason, error) : DOPPEL_OK;
}

/* ---- the beginning of a copy ---- */

/* Bytes of address space of the store's file. No view is held. */
static doppel_status size_of_map(dp_lmdb *store, uint64_t *map, doppel_error *error) {
    MDB_envinfo info = {0};
    pthread_rwlock_rdlock(&store->gate);
    doppel_status status = store->env.env ? dp_env_info(&store->env, &info, error) : DOPPEL_OK;
    pthread_rwlock_unlock(&store->gate);
    *map = info.me_mapsize;
    return status;
}

/* A new file with the access rights of the old one. It does not count before it is complete, so single commits are not
 * synced. */
static doppel_status open_new(store_copy *c, uint64_t map, doppel_error *error) {
    const dp_lmdb_view *v = (const dp_lmdb_view *)c->view;
    /* It is smaller than the old one, but pages are used and freed on the way, and more is written during the copy. */
    uint64_t most = 2 * (c->now->pages.meta.last + 1) * c->now->pages.size + STEP_BYTES;
    DP_TRY(dp_env_open(&c->to, c->path, DP_ENV_NEW, map > most ? map : most, error));
    char *old = dp_folder_file(c->store->folder, v->generation), *lock = old ? dp_format("%s-lock", old) : NULL;
    if (lock) {
        dp_access_like(old, c->path);
        dp_access_like(lock, c->to.lock_path);
    }
    free(old);
    free(lock);
    c->to.names = v->names;
    int reason = lock ? mdb_env_set_flags(c->to.env, MDB_NOSYNC, 1) : ENOMEM;
    return reason ? copy_failed(c, reason, error) : DOPPEL_OK;
}

/* A view of the old file, and a new one in `folder`, `later` generations after it. */
static doppel_status begin_copy(store_copy *c, const char *folder, uint64_t later, doppel_error *error) {
    uint64_t map = 0;
    DP_TRY(size_of_map(c->store, &map, error));
    DP_TRY(dp_view_create(&c->store->store, &c->view, error));
    DP_TRY(dp_view_begin(c->view, error));
    c->now = &((dp_lmdb_view *)c->view)->now;
    c->path = dp_folder_file(folder, ((dp_lmdb_view *)c->view)->generation + later);
    return c->path ? open_new(c, map, error) : dp_no_memory(error);
}

static void free_copy(store_copy *c) {
    mdb_txn_abort(c->write);
    c->write = NULL;
    leave_view(c);
    dp_view_free(c->view);
    dp_env_close(&c->to);
    free(c->path);
    dp_buffer_free(&c->bytes);
    free(c->dropped);
    free(c->later);
    free(c->touched.items);
}

/* ---- backups ---- */

static void remove_file(const char *path, const char *ending) {
    char *name = dp_format("%s%s", path, ending);
    if (name)
        unlink(name);
    free(name);
}

/* Removes an unfinished copy, and what LMDB leaves beside a finished one. */
static void remove_beside(const char *path, bool all) {
    remove_file(path, "-lock");
    if (all) {
        remove_file(path, "-commit");
        remove_file(path, "");
    }
}

static doppel_status copy_file(store_copy *c, const char *folder, doppel_error *error) {
    doppel_status status = begin_copy(c, folder, 0, error);
    DP_THEN(status, copy_databases(c, error));
    DP_THEN(status, check_complete(c, error));
    DP_THEN(status, end_copy(c, error));
    if (c->path) {
        mdb_txn_abort(c->write);
        c->write = NULL;
        dp_env_close(&c->to);
        remove_beside(c->path, status != DOPPEL_OK);
    }
    return status;
}

static doppel_status copy_folder(dp_lmdb *store, const char *folder, doppel_error *error) {
    store_copy c = {.store = store};
    doppel_status status = copy_file(&c, folder, error);
    DP_THEN(status, dp_folder_sync(folder, false, error));
    if (!status) {
        const dp_lmdb_view *v = (const dp_lmdb_view *)c.view;
        const dp_folder_index index = {dp_folder_format(&v->names), v->generation};
        dp_folder_change change;
        status = dp_folder_begin_index(folder, &index, &change, error);
        DP_THEN(status, dp_folder_end_index(&change, true, error));
        if (status)
            remove_beside(c.path, true);
    }
    free_copy(&c);
    return status ? status : dp_folder_sync(folder, true, error);
}

doppel_status dp_lmdb_backup(dp_store *given, const char *path, doppel_error *error) {
    dp_lmdb *store = dp_lmdb_of(given);
    dp_folder_content content;
    doppel_status status = dp_folder_look(path, &content, error);
    if (status)
        return status;
    if (!content.missing && !content.empty)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0, "is there and not empty; name a new folder");
    if (content.missing && (status = dp_folder_make(path, error)))
        return status;
    status = copy_folder(store, path, error);
    if (status && content.missing)
        rmdir(path);
    return status;
}

/* ---- the next generation ---- */

/* Readers in other processes look for it. If this fails, they find out from doppel.index. It needs no sync once that is
 * `durable`. */
static void name_successor(dp_lmdb *store, uint64_t generation, bool durable) {
    char bytes[8];
    MDB_txn *txn;
    dp_snapshot before = {0};
    dp_guard guard;
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(generation >> (8 * i));
    if (store->broken || !store->env.env)
        return;
    if (DP_GUARD_ENTER(guard)) {
        store->env.stuck = true;
        return;
    }
    if ((!durable || !mdb_env_set_flags(store->env.env, MDB_NOSYNC, 1)) && !dp_env_write(&store->env, &txn, &before)) {
        if (dp_meta_put(txn, &store->env, DP_SEED_SUCCESSOR, (doppel_slice){bytes, sizeof bytes}))
            mdb_txn_abort(txn);
        else
            (void)dp_env_commit(&store->env, txn);
    }
    dp_guard_leave(&guard);
}

/* Whether doppel.index names the next generation: it may even if the call that wrote it failed, when it could not be
 * synced: *durable says whether it was. */
static doppel_status switch_index(dp_lmdb *store, dp_folder_change *change, bool *durable, doppel_error *error) {
    uint64_t named;
    doppel_status status = dp_folder_end_index(change, true, error);
    *durable = !status;
    if (status && !dp_folder_generation(store->folder, &named, NULL) && named == store->generation + 1)
        status = DOPPEL_OK;
    return status;
}

/* The last round; then the new file replaces the old one. `writing` is held. */
static doppel_status take_place(store_copy *c, dp_folder_change *change, dp_retired *retired, doppel_error *error) {
    dp_lmdb *store = c->store;
    bool durable;
    doppel_status status = catch_up(c, error);
    DP_THEN(status, end_copy(c, error));
    leave_view(c);
    if (status) {
        (void)dp_folder_end_index(change, false, NULL);
        return status;
    }
    DP_TRY(switch_index(store, change, &durable, error));
    pthread_rwlock_rdlock(&store->gate);
    name_successor(store, store->generation + 1, durable);
    pthread_rwlock_unlock(&store->gate);
    c->to.mode = DP_ENV_WRITE;
    pthread_rwlock_wrlock(&store->gate);
    dp_lmdb_swap(store, &c->to, store->generation + 1, retired);
    pthread_rwlock_unlock(&store->gate);
    c->to = (dp_env){0};
    return DOPPEL_OK;
}

/* Everything possible is written before writers are blocked: the names of the new files, and the next doppel.index
 * beside the current one. */
static doppel_status finish(store_copy *c, doppel_error *error) {
    dp_lmdb *store = c->store;
    const dp_folder_index next = {dp_folder_format(&c->to.names), store->generation + 1};
    dp_folder_change change;
    DP_TRY(dp_folder_sync(store->folder, false, error));
    DP_TRY(dp_folder_begin_index(store->folder, &next, &change, error));
    dp_retired *retired = calloc(1, sizeof *retired);
    if (!retired) {
        (void)dp_folder_end_index(&change, false, NULL);
        return dp_no_memory(error);
    }
    leave_view(c);
    pthread_mutex_lock(&store->writing);
    doppel_status status = take_place(c, &change, retired, error);
    store->touched = NULL;
    pthread_mutex_unlock(&store->writing);
    if (status) {
        free(retired);
        return status;
    }
    dp_lmdb_release(store, retired);
    return DOPPEL_OK;
}

/* Repeats until little is left. The first round ends with everything that existed when it began, and all of it is then
 * counted. */
static doppel_status catch_up_beside(store_copy *c, doppel_error *error) {
    for (int round = 0; round < MOST_ROUNDS; round++) {
        DP_TRY(catch_up(c, error));
        if (!round)
            DP_TRY(check_complete(c, error));
        DP_TRY(renew(c, error));
        if (count_left(c) <= FEW_LEFT)
            break;
    }
    return DOPPEL_OK;
}

static void set_touched(dp_lmdb *store, dp_touched_list *list) {
    pthread_mutex_lock(&store->writing);
    store->touched = list;
    pthread_mutex_unlock(&store->writing);
}

static doppel_status make_next(store_copy *c, doppel_error *error) {
    doppel_status status = begin_copy(c, c->store->folder, 1, error);
    if (!status && !c->to.names.keyed)
        status = dp_names_create(&c->to.names, error);
    DP_THEN(status, copy_databases(c, error));
    DP_THEN(status, catch_up_beside(c, error));
    return status ? status : finish(c, error);
}

doppel_status dp_lmdb_compact(dp_store *given, dp_trace_filter *keep, void *user, doppel_error *error) {
    dp_lmdb *store = dp_lmdb_of(given);
    store_copy c = {.store = store, .keep = keep, .user = user};
    if (store->read_only)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, store->folder, 0, "was opened for reading only");
    pthread_mutex_init(&c.touched.mutex, NULL);
    pthread_mutex_lock(&store->compacting);
    /* Files left by an earlier one. */
    dp_folder_clear(store->folder, store->generation);
    set_touched(store, &c.touched);
    doppel_status status = make_next(&c, error);
    leave_view(&c);
    set_touched(store, NULL);
    free_copy(&c);
    dp_folder_clear(store->folder, store->generation);
    pthread_mutex_unlock(&store->compacting);
    pthread_mutex_destroy(&c.touched.mutex);
    return status;
}
