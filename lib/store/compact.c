/* compact.c - the next generation of a store in a folder (compact), and copies of it (backup): a new file with what is
 * kept, in order.
 *
 * The next generation is written and synced beside the old one, then doppel.index names it, then the old one says that
 * it has a successor, for processes that read it, and is removed. Whatever happens on the way, doppel.index names a
 * whole file; the other one is removed by the next writer. A backup is the same file in another folder, with
 * everything.
 *
 * Nothing is copied that is not whole: every checksum is compared, every document needs its record and what that speaks
 * of, and of each database there must be as many entries as it says. At the first that is wrong there is no copy.
 *
 * A folder of format 1 becomes one of format 2 when it is compacted: the next generation has a secret, and the hashes
 * of names in its traces are computed again from the records. A backup of it stays as it is. */
#include "store/lmdb.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What one transaction takes at most, so that its dirty pages do not fill the memory. */
#define COMMIT_BYTES ((size_t)64 << 20)

typedef struct store_copy {
    const dp_env *from;
    MDB_txn *read;
    dp_snapshot now; /* what is read */
    dp_env to;
    MDB_txn *write;
    volatile bool putting; /* LMDB is at work on it */
    size_t pending;        /* bytes since the last commit */
    dp_trace_filter *keep; /* NULL: everything */
    void *user;
    dp_buffer bytes; /* of a trace that is converted */
    char wrong[200]; /* what is damaged, where it can be said */
} store_copy;

/* ---- copying ---- */

static int wrong(store_copy *c, const char *what, uint64_t number) {
    snprintf(c->wrong, sizeof c->wrong, "the %s of number %" PRIu64 " is damaged or missing", what, number);
    return MDB_CORRUPTED;
}

static int commit_some(store_copy *c, size_t bytes) {
    c->pending += bytes;
    if (c->pending < COMMIT_BYTES)
        return 0;
    c->pending = 0;
    MDB_txn *full = c->write;
    c->write = NULL;
    DP_TRY_REASON(mdb_txn_commit(full));
    return mdb_txn_begin(c->to.env, NULL, 0, &c->write);
}

static int put(store_copy *c, int db, MDB_val key, MDB_val value, unsigned flags) {
    c->putting = true;
    int reason = mdb_put(c->write, c->to.db[db], &key, &value, flags);
    c->putting = false;
    return reason;
}

static int copy_value(store_copy *c, int db, uint64_t number, MDB_val value) {
    DP_TRY_REASON(put(c, db, dp_number_key(&number), value, MDB_APPEND));
    return commit_some(c, value.mv_size);
}

/* A part that must be there. */
static int copy_part(store_copy *c, dp_part part, uint64_t number, doppel_slice *bytes) {
    dp_page_value found;
    int reason = dp_btree_get(&c->now.pages, &c->now.db[part], number, &found);
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
    if (dp_btree_get(&c->now.pages, &c->now.db[DP_PART_RECORD], number, &found) ||
        !dp_value_open(&found.value, number, DP_PART_RECORD, &bytes) || !dp_record_decode(bytes, &record))
        return wrong(c, "record", number);
    trace->id_hash = hash_again(c, trace->id_hash, record.id);
    trace->url_hash = hash_again(c, trace->url_hash, record.canonical);
    c->bytes.size = 0;
    if (!dp_trace_encode(trace, &c->bytes))
        return ENOMEM;
    DP_TRY_REASON(dp_value_put(c->write, c->to.db[DP_PART_TRACE], number, DP_PART_TRACE,
                               (doppel_slice){c->bytes.data, c->bytes.size}, MDB_APPEND));
    return commit_some(c, c->bytes.size);
}

static int take_trace(store_copy *c, uint64_t number, const dp_page_value *found) {
    doppel_slice bytes;
    dp_trace trace;
    if (!found->value.mv_data || !dp_value_open(&found->value, number, DP_PART_TRACE, &bytes) ||
        !dp_trace_decode(bytes, &trace) || trace.number != number)
        return wrong(c, "trace", number);
    if (c->keep && (dp_trace_is_removal(&trace) || !c->keep(&trace, c->user)))
        return 0;
    bool same = c->from->names.keyed == c->to.names.keyed;
    int reason = same ? copy_value(c, DP_PART_TRACE, number, found->value) : convert_trace(c, &trace);
    return reason || !dp_trace_is_kept(&trace) ? reason : copy_parts(c, number);
}

static bool was_kept(const store_copy *c, uint64_t number) {
    MDB_val key = dp_number_key(&number), value;
    return !mdb_get(c->write, c->to.db[DP_PART_TRACE], &key, &value);
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
    uint64_t original, seen;
    bool kept;
} links_copy;

static int take_link(uint64_t number, void *user) {
    links_copy *l = user;
    store_copy *c = l->copy;
    if (number <= l->original)
        return wrong(c, "list of copies", l->original);
    l->seen++;
    if (!l->kept || !was_kept(c, number))
        return 0;
    DP_TRY_REASON(put(c, DP_DB_LINKS, dp_number_key(&l->original), dp_number_key(&number), 0));
    return commit_some(c, sizeof number);
}

/* Every entry of a database, ascending. */
static int copy_database(store_copy *c, int db) {
    dp_cursor cursor = {0};
    dp_page_value found;
    links_copy l = {.copy = c};
    uint64_t number, seen = 0;
    int reason;
    dp_cursor_seek(&cursor, &c->now.pages, &c->now.db[db], 0);
    while (!(reason = dp_cursor_next(&cursor, &number, &found))) {
        if (db == DP_DB_LINKS) {
            l.original = number;
            l.kept = was_kept(c, number);
            reason = dp_dups_each(&c->now.pages, &found, take_link, &l, NULL);
        } else {
            reason = db == DP_PART_TRACE ? take_trace(c, number, &found) : take_count(c, number, &found);
        }
        if (reason)
            return reason;
        seen++;
    }
    if (reason == MDB_NOTFOUND && (db == DP_DB_LINKS ? l.seen : seen) == c->now.db[db].entries)
        return 0;
    return MDB_CORRUPTED;
}

/* All but the successor, which is of the old file alone. */
static int copy_meta(store_copy *c) {
    dp_cursor cursor = {0};
    dp_page_value found;
    doppel_slice settings;
    dp_store_state state;
    uint64_t number;
    int reason = dp_meta_get(&c->now, DP_SEED_SETTINGS, &settings);
    if (!reason)
        reason = dp_state_get(&c->now, &state);
    if (reason)
        return MDB_CORRUPTED;
    dp_cursor_seek(&cursor, &c->now.pages, &c->now.db[DP_DB_META], 0);
    while (!(reason = dp_cursor_next(&cursor, &number, &found))) {
        if (!found.value.mv_data)
            return MDB_CORRUPTED;
        bool successor = found.key.mv_size == 9 && !memcmp(found.key.mv_data, "successor", 9);
        if (!successor && (reason = put(c, DP_DB_META, found.key, found.value, 0)))
            return reason;
    }
    if (reason != MDB_NOTFOUND)
        return reason;
    return c->from->names.keyed == c->to.names.keyed ? 0 : dp_names_put(c->write, &c->to, &c->to.names);
}

static int copy_databases(store_copy *c) {
    const int databases[] = {DP_PART_TRACE, DP_DB_LINKS, DP_DB_COUNTS};
    dp_guard guard;
    int reason = 0;
    /* A transaction that LMDB was interrupted in cannot even be given up. */
    if (DP_GUARD_ENTER(guard)) {
        c->to.stuck = c->putting;
        c->write = c->putting ? NULL : c->write;
        return MDB_CORRUPTED;
    }
    for (size_t i = 0; i < sizeof databases / sizeof *databases && !reason; i++)
        reason = copy_database(c, databases[i]);
    if (!reason)
        reason = copy_meta(c);
    dp_guard_leave(&guard);
    return reason;
}

static int copy_all(store_copy *c) {
    int reason = dp_env_read_once(c->from, &c->read, &c->now);
    if (!reason)
        reason = mdb_txn_begin(c->to.env, NULL, 0, &c->write);
    if (!reason)
        reason = copy_databases(c);
    if (!reason) {
        MDB_txn *last = c->write;
        c->write = NULL;
        reason = dp_env_commit(&c->to, last);
    }
    mdb_txn_abort(c->write);
    mdb_txn_abort(c->read);
    return reason;
}

/* Writes all that is kept to a new file, which is then open. The caller holds the gate and has an environment. */
static doppel_status write_copy(dp_lmdb *store, store_copy *c, const char *path, doppel_error *error) {
    MDB_envinfo info;
    c->from = &store->env;
    DP_TRY(dp_env_info(c->from, &info, error));
    /* It is smaller than the old one, but some pages may be used and freed on the way. */
    uint64_t most = 2 * (info.me_last_pgno + 1) * (uint64_t)sysconf(_SC_PAGESIZE);
    doppel_status status =
        dp_env_open(&c->to, path, DP_ENV_NEW, info.me_mapsize > most ? info.me_mapsize : most, error);
    if (!status) {
        dp_access_like(c->from->path, path);
        dp_access_like(c->from->lock_path, c->to.lock_path);
    }
    c->to.names = c->from->names;
    if (!status && c->keep && !c->to.names.keyed)
        status = dp_names_create(&c->to.names, error);
    int reason = status ? 0 : copy_all(c);
    if (reason == MDB_CORRUPTED && *c->wrong)
        return dp_damaged(store->folder, error, "%s", c->wrong);
    return reason ? dp_env_fail(c->keep || reason < 0 ? store->folder : path, reason, error) : status;
}

/* ---- backups ---- */

/* A copy that did not come to its end, and what LMDB leaves beside one that did. */
static void remove_beside(const char *path, bool all) {
    char *lock = dp_format("%s-lock", path);
    if (lock)
        unlink(lock);
    free(lock);
    if (all) {
        dp_note_remove(path);
        unlink(path);
    }
}

static doppel_status copy_folder(dp_lmdb *store, const char *folder, doppel_error *error) {
    store_copy c = {0};
    char *path = dp_folder_file(folder, store->generation);
    if (!path)
        return dp_no_memory(error);
    doppel_status status = write_copy(store, &c, path, error);
    dp_env_close(&c.to);
    DP_THEN(status, dp_folder_sync(folder, error));
    const dp_folder_index index = {dp_folder_format(&store->env.names), store->generation};
    DP_THEN(status, dp_folder_write_index(folder, &index, error));
    remove_beside(path, status != DOPPEL_OK);
    free(path);
    return status ? status : dp_folder_sync_parent(folder, error);
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
    if (!(status = dp_lmdb_enter(store, error))) {
        status = copy_folder(store, path, error);
        pthread_rwlock_unlock(&store->gate);
    }
    if (status && content.missing)
        rmdir(path);
    return status;
}

/* ---- the next generation ---- */

static doppel_status write_next(dp_lmdb *store, store_copy *c, doppel_error *error) {
    char *path = dp_folder_file(store->folder, store->generation + 1);
    if (!path)
        return dp_no_memory(error);
    doppel_status status = dp_lmdb_enter(store, error);
    if (!status) {
        status = write_copy(store, c, path, error);
        pthread_rwlock_unlock(&store->gate);
    }
    free(path);
    return status;
}

/* Readers in other processes look for it. Should it fail, they find out by doppel.index. */
static void name_successor(dp_lmdb *store, uint64_t generation) {
    char bytes[8];
    MDB_txn *txn;
    dp_snapshot before = {0};
    dp_guard guard;
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(generation >> (8 * i));
    if (store->broken)
        return;
    if (DP_GUARD_ENTER(guard)) {
        store->env.stuck = true;
        return;
    }
    if (!dp_env_write(&store->env, &txn, &before)) {
        if (dp_meta_put(txn, &store->env, DP_SEED_SUCCESSOR, (doppel_slice){bytes, sizeof bytes}))
            mdb_txn_abort(txn);
        else
            (void)dp_env_commit(&store->env, txn);
    }
    dp_guard_leave(&guard);
}

/* Whether doppel.index names the next generation: it may even if the call that wrote it failed, when it could not be
 * synced. */
static doppel_status switch_index(dp_lmdb *store, const dp_names *names, doppel_error *error) {
    const dp_folder_index next = {dp_folder_format(names), store->generation + 1};
    uint64_t named;
    doppel_status status = dp_folder_sync(store->folder, error);
    DP_THEN(status, dp_folder_write_index(store->folder, &next, error));
    if (status && !dp_folder_generation(store->folder, &named, NULL) && named == next.generation)
        status = DOPPEL_OK;
    return status;
}

doppel_status dp_lmdb_compact(dp_store *given, dp_trace_filter *keep, void *user, doppel_error *error) {
    dp_lmdb *store = dp_lmdb_of(given);
    store_copy c = {.keep = keep, .user = user};
    if (store->read_only)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, store->folder, 0, "was opened for reading only");
    /* What an earlier one left. */
    dp_folder_clear(store->folder, store->generation);
    doppel_status status = write_next(store, &c, error);
    DP_THEN(status, switch_index(store, &c.to.names, error));
    dp_buffer_free(&c.bytes);
    if (status) {
        dp_env_close(&c.to);
    } else {
        pthread_rwlock_wrlock(&store->gate);
        name_successor(store, store->generation + 1);
        c.to.mode = DP_ENV_WRITE;
        dp_lmdb_swap(store, &c.to, store->generation + 1);
        pthread_rwlock_unlock(&store->gate);
    }
    dp_folder_clear(store->folder, store->generation);
    return status;
}
