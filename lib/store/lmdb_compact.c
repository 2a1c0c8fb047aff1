/* lmdb_compact.c - the next generation: a new file with what is kept, in order.
 *
 * It is written and synced beside the old one, then doppel.index names it, then the old one says that it has a
 * successor, for processes that read it, and is removed. Whatever happens on the way, doppel.index names a whole file;
 * the other is cleared by the next who writes.
 *
 * A folder of format 1 becomes one of format 2 on that way: the next generation has a secret, and the hashes of names
 * in its traces are made anew from the records. */
#include "store/lmdb.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* What one transaction takes at most, so that its dirty pages do not fill the memory. */
#define COMMIT_BYTES ((size_t)64 << 20)

typedef struct copying {
    const dp_env *from;
    MDB_txn *read;
    dp_env to;
    MDB_txn *write;
    size_t pending; /* bytes since the last commit */
    dp_keep *keep;
    void *user;
    dp_buffer bytes; /* of a trace that is made anew */
} copying;

/* ---- copying ---- */

static int commit_some(copying *c, size_t bytes) {
    c->pending += bytes;
    if (c->pending < COMMIT_BYTES)
        return 0;
    c->pending = 0;
    MDB_txn *full = c->write;
    c->write = NULL;
    int reason = mdb_txn_commit(full);
    return reason ? reason : mdb_txn_begin(c->to.env, NULL, 0, &c->write);
}

/* A value as it is: a checksum that is wrong stays so. */
static int copy_value(copying *c, int db, MDB_val key, MDB_val value) {
    int reason = mdb_put(c->write, c->to.db[db], &key, &value, MDB_APPEND);
    return reason ? reason : commit_some(c, value.mv_size);
}

/* The hash of a name by the secret of the next generation; one that has none gets none. */
static uint64_t hash_again(const copying *c, uint64_t hash, doppel_slice name) {
    return hash ? dp_name_hash(&c->to.names, name) : 0;
}

/* The trace of a file without a secret: it has to be read, and the record that goes with it. */
static int convert_trace(copying *c, uint64_t number, MDB_val value) {
    MDB_val key = dp_key(&number), found;
    doppel_slice bytes;
    dp_trace trace;
    dp_record record;
    if (!dp_value_open(&value, number, DP_PART_TRACE, &bytes) || !dp_trace_decode(bytes, &trace))
        return MDB_CORRUPTED;
    int reason = mdb_get(c->read, c->from->db[DP_PART_RECORD], &key, &found);
    if (reason || !dp_value_open(&found, number, DP_PART_RECORD, &bytes) || !dp_record_decode(bytes, &record))
        return reason && reason != MDB_NOTFOUND ? reason : MDB_CORRUPTED;
    trace.id_hash = hash_again(c, trace.id_hash, record.id);
    trace.url_hash = hash_again(c, trace.url_hash, record.canonical);
    c->bytes.size = 0;
    if (!dp_trace_encode(&trace, &c->bytes))
        return ENOMEM;
    reason = dp_value_put(c->write, c->to.db[DP_PART_TRACE], number, DP_PART_TRACE,
                          (doppel_slice){c->bytes.data, c->bytes.size}, MDB_APPEND);
    return reason ? reason : commit_some(c, c->bytes.size);
}

static int copy_number(copying *c, uint64_t number, MDB_val trace) {
    MDB_val key = dp_key(&number), value;
    int reason = c->from->names.keyed ? copy_value(c, DP_PART_TRACE, key, trace) : convert_trace(c, number, trace);
    for (int part = DP_PART_RECORD; part < DP_PARTS && !reason; part++) {
        reason = mdb_get(c->read, c->from->db[part], &key, &value);
        if (!reason)
            reason = copy_value(c, part, key, value);
        else if (reason == MDB_NOTFOUND)
            reason = 0;
    }
    return reason;
}

/* What has no trace that can be read is lost already. */
static bool is_kept(const copying *c, uint64_t number, const MDB_val *value) {
    doppel_slice bytes;
    dp_trace trace;
    return dp_value_open(value, number, DP_PART_TRACE, &bytes) && dp_trace_decode(bytes, &trace) &&
           !dp_trace_is_removal(&trace) && c->keep(&trace, c->user);
}

static bool was_kept(const copying *c, MDB_val number) {
    MDB_val value;
    return !mdb_get(c->write, c->to.db[DP_PART_TRACE], &number, &value);
}

/* A folder is not converted without all that it has. */
static bool is_unreadable(const copying *c, uint64_t number, const MDB_val *value) {
    doppel_slice bytes;
    dp_trace trace;
    return !c->from->names.keyed &&
           !(dp_value_open(value, number, DP_PART_TRACE, &bytes) && dp_trace_decode(bytes, &trace));
}

static int take_entry(copying *c, int db, MDB_val key, MDB_val value) {
    uint64_t number = dp_load64(key.mv_data);
    if (db == DP_PART_TRACE && is_unreadable(c, number, &value))
        return MDB_CORRUPTED;
    if (db == DP_PART_TRACE)
        return is_kept(c, number, &value) ? copy_number(c, number, value) : 0;
    if (!was_kept(c, key))
        return 0;
    if (db == DP_DB_COUNTS)
        return copy_value(c, db, key, value);
    int reason = was_kept(c, value) ? mdb_put(c->write, c->to.db[db], &key, &value, 0) : 0;
    return reason ? reason : commit_some(c, value.mv_size);
}

/* Every entry of a database, ascending. */
static int copy_database(copying *c, int db) {
    MDB_cursor *cursor;
    MDB_val key, value;
    int reason = mdb_cursor_open(c->read, c->from->db[db], &cursor);
    if (reason)
        return reason;
    while (!(reason = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)))
        if ((reason = take_entry(c, db, key, value)))
            break;
    mdb_cursor_close(cursor);
    return reason == MDB_NOTFOUND ? 0 : reason;
}

static int copy_meta(copying *c) {
    doppel_slice settings;
    dp_state state;
    int reason = dp_meta_get(c->read, c->from, DP_SEED_SETTINGS, &settings);
    if (!reason)
        reason = dp_state_get(c->read, c->from, &state);
    if (!reason)
        reason = dp_meta_put(c->write, &c->to, DP_SEED_SETTINGS, settings);
    if (!reason)
        reason = dp_names_put(c->write, &c->to, &c->to.names);
    return reason ? reason : dp_state_put(c->write, &c->to, &state);
}

static int copy_all(copying *c) {
    int reason = dp_env_read_once(c->from, &c->read);
    if (!reason)
        reason = mdb_txn_begin(c->to.env, NULL, 0, &c->write);
    const int databases[] = {DP_PART_TRACE, DP_DB_LINKS, DP_DB_COUNTS};
    for (size_t i = 0; i < sizeof databases / sizeof *databases && !reason; i++)
        reason = copy_database(c, databases[i]);
    if (!reason)
        reason = copy_meta(c);
    if (!reason) {
        MDB_txn *last = c->write;
        c->write = NULL;
        reason = mdb_txn_commit(last);
    }
    mdb_txn_abort(c->write);
    mdb_txn_abort(c->read);
    return reason;
}

/* ---- the next generation ---- */

static doppel_status write_next(dp_lmdb *store, copying *c, doppel_error *error) {
    MDB_envinfo info;
    char *path = dp_folder_file(store->folder, store->generation + 1);
    if (!path)
        return dp_no_memory(error);
    doppel_status status = dp_lmdb_enter(store, error);
    if (status) {
        free(path);
        return status;
    }
    c->from = &store->env;
    (void)mdb_env_info(store->env.env, &info);
    /* It is smaller than the old one, but some pages may be used and freed on the way. */
    uint64_t most = 2 * (info.me_last_pgno + 1) * (uint64_t)sysconf(_SC_PAGESIZE);
    status = dp_env_open(&c->to, path, DP_ENV_NEW, info.me_mapsize > most ? info.me_mapsize : most, error);
    if (!status) {
        dp_access_like(c->from->path, path);
        dp_access_like(c->from->lock_path, c->to.lock_path);
    }
    c->to.names = c->from->names;
    if (!status && !c->to.names.keyed)
        status = dp_names_create(&c->to.names, error);
    int reason = status ? 0 : copy_all(c);
    pthread_rwlock_unlock(&store->gate);
    free(path);
    return reason ? dp_env_fail(store->folder, reason, error) : status;
}

/* Readers in other processes look for it. Should it fail, they find out by doppel.index. */
static void name_successor(const dp_env *env, uint64_t generation) {
    char bytes[8];
    MDB_txn *txn;
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(generation >> (8 * i));
    if (mdb_txn_begin(env->env, NULL, 0, &txn))
        return;
    if (dp_meta_put(txn, env, DP_SEED_SUCCESSOR, (doppel_slice){bytes, sizeof bytes}))
        mdb_txn_abort(txn);
    else
        (void)mdb_txn_commit(txn);
}

/* Whether doppel.index names the next generation: it may even if the call that wrote it failed, when it could not be
 * synced. */
static doppel_status switch_index(dp_lmdb *store, const dp_names *names, doppel_error *error) {
    const dp_folder_index next = {dp_folder_format(names), store->generation + 1};
    uint64_t named;
    doppel_status status = dp_folder_sync(store->folder, error);
    if (!status)
        status = dp_folder_write_index(store->folder, &next, error);
    if (status && !dp_folder_generation(store->folder, &named, NULL) && named == next.generation)
        status = DOPPEL_OK;
    return status;
}

doppel_status dp_lmdb_compact(dp_store *given, dp_keep *keep, void *user, doppel_error *error) {
    dp_lmdb *store = dp_lmdb_of(given);
    copying c = {.keep = keep, .user = user};
    if (store->read_only)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, store->folder, 0, "was opened for reading only");
    /* What an earlier one left. */
    dp_folder_clear(store->folder, store->generation);
    doppel_status status = write_next(store, &c, error);
    if (!status)
        status = switch_index(store, &c.to.names, error);
    dp_buffer_free(&c.bytes);
    if (status) {
        dp_env_close(&c.to);
    } else {
        pthread_rwlock_wrlock(&store->gate);
        name_successor(&store->env, store->generation + 1);
        c.to.mode = DP_ENV_WRITE;
        dp_lmdb_swap(store, &c.to, store->generation + 1);
        pthread_rwlock_unlock(&store->gate);
    }
    dp_folder_clear(store->folder, store->generation);
    return status;
}
