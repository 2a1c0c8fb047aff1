/* lmdb_write.c - changes, all in one transaction: it is durable when its commit is, or it never was.
 *
 * Numbers only grow, so parts are appended. A map that is full is grown and the transaction made again; after a commit
 * that failed half way LMDB wants to be opened again.
 *
 * LMDB trusts the pages it changes, and on a damaged one it does anything from ending the process to giving pages away
 * that are in use. So before each step the pages that it may read are checked (dp_btree_check): those on the way to a
 * key and their neighbours, as the last commit left them. Pages that this transaction has made since come from those.
 */
#include "store/lmdb.h"

/* Dead readers hold on to pages: they are looked for once in so many writes. */
enum { READER_CHECK = 64 };

typedef struct writing {
    dp_lmdb *store;
    MDB_txn *txn;
    dp_snapshot before; /* what the last commit left */
    dp_state state;
} writing;

static MDB_dbi db_of(const writing *w, int db) {
    return w->store->env.db[db];
}

/* Whether LMDB may read and change a key. */
static int check(const writing *w, int db, uint64_t number, uint64_t dup) {
    return dp_btree_check(&w->before.pages, &w->before.db[db], number, dup, &w->store->checked);
}

/* ---- what a change is made of ---- */

static int delete_key(const writing *w, int db, uint64_t number) {
    MDB_val key = dp_key(&number);
    int reason = check(w, db, number, 0);
    if (!reason)
        reason = mdb_del(w->txn, db_of(w, db), &key, NULL);
    return reason == MDB_NOTFOUND ? 0 : reason;
}

/* Of a copy: its entry under its original. */
static int delete_link(const writing *w, uint64_t number) {
    MDB_val key = dp_key(&number), value;
    doppel_slice bytes;
    dp_trace trace;
    int reason = check(w, DP_PART_TRACE, number, 0);
    if (!reason)
        reason = mdb_get(w->txn, db_of(w, DP_PART_TRACE), &key, &value);
    if (reason)
        return reason == MDB_NOTFOUND ? 0 : reason;
    if (!dp_value_open(&value, number, DP_PART_TRACE, &bytes) || !dp_trace_decode(bytes, &trace) ||
        trace.kind != DP_TRACE_COPY)
        return 0;
    MDB_val original = dp_key(&trace.of);
    reason = check(w, DP_DB_LINKS, trace.of, number);
    if (!reason)
        reason = mdb_del(w->txn, db_of(w, DP_DB_LINKS), &original, &key);
    return reason == MDB_NOTFOUND ? 0 : reason;
}

static int remove_number(const writing *w, uint64_t number) {
    int reason = delete_link(w, number);
    for (int db = 0; db <= DP_DB_COUNTS && !reason; db++)
        reason = delete_key(w, db, number);
    return reason;
}

static int add_parts(const writing *w, const dp_change *change) {
    int reason = 0;
    for (int part = 0; part < DP_PARTS && !reason; part++) {
        if (!change->part[part].data)
            continue;
        reason = check(w, part, UINT64_MAX, 0);
        if (!reason)
            reason = dp_value_put(w->txn, db_of(w, part), change->number, part, change->part[part], MDB_APPEND);
    }
    return reason;
}

/* Whether a number is there to be linked to or counted at. */
static int look_up(const writing *w, uint64_t number) {
    MDB_val key = dp_key(&number), value;
    int reason = check(w, DP_PART_TRACE, number, 0);
    return reason ? reason : mdb_get(w->txn, db_of(w, DP_PART_TRACE), &key, &value);
}

static int add_link(const writing *w, const dp_change *change) {
    int reason = look_up(w, change->link);
    if (reason)
        return reason == MDB_NOTFOUND ? 0 : reason;
    MDB_val key = dp_key(&change->link), value = dp_key(&change->number);
    reason = check(w, DP_DB_LINKS, change->link, change->number);
    return reason ? reason : mdb_put(w->txn, db_of(w, DP_DB_LINKS), &key, &value, 0);
}

static int add_count(writing *w, const dp_change *change) {
    dp_counts counts = {0};
    doppel_slice bytes;
    char encoded[DP_COUNTS_SIZE];
    dp_counts_add(&w->state.total, change);
    int reason = look_up(w, change->count);
    if (reason)
        return reason == MDB_NOTFOUND ? 0 : reason;
    MDB_val key = dp_key(&change->count), value;
    if ((reason = check(w, DP_DB_COUNTS, change->count, 0)))
        return reason;
    reason = mdb_get(w->txn, db_of(w, DP_DB_COUNTS), &key, &value);
    if (reason && reason != MDB_NOTFOUND)
        return reason;
    if (!reason && (!dp_value_open(&value, change->count, DP_SEED_COUNTS, &bytes) || !dp_counts_decode(bytes, &counts)))
        return MDB_CORRUPTED;
    dp_counts_add(&counts, change);
    dp_counts_encode(&counts, encoded);
    return dp_value_put(w->txn, db_of(w, DP_DB_COUNTS), change->count, DP_SEED_COUNTS,
                        (doppel_slice){encoded, sizeof encoded}, 0);
}

static int make_change(writing *w, const dp_change *change) {
    int reason = change->remove ? remove_number(w, change->remove) : 0;
    if (!reason && change->number)
        reason = add_parts(w, change);
    if (!reason && change->number && change->link)
        reason = add_link(w, change);
    if (!reason && change->count)
        reason = add_count(w, change);
    return reason;
}

/* ---- the transaction ---- */

typedef struct request {
    const dp_change *changes;
    size_t count;
    const dp_clock *clock;
    doppel_error *error;
    doppel_status status; /* of changes that cannot be made */
} request;

/* Gives what LMDB says; 0 also when the changes cannot be made. */
static int fill_transaction(writing *w, request *r) {
    int reason = dp_state_get(&w->before, &w->state);
    if (reason)
        return reason == MDB_NOTFOUND ? MDB_CORRUPTED : reason;
    r->status = dp_changes_check(r->changes, r->count, &w->state.last, r->error);
    for (size_t i = 0; i < r->count && !reason && !r->status; i++)
        reason = make_change(w, &r->changes[i]);
    w->state.clock = *r->clock;
    return reason || r->status ? reason : dp_state_put(w->txn, &w->store->env, &w->state);
}

/* All of a transaction. Should LMDB stop in the middle of it, it can neither go on nor give up its lock before the
 * process ends. */
static int run_transaction(dp_lmdb *store, request *r) {
    writing w = {.store = store};
    dp_guard guard;
    if (DP_GUARD_ENTER(guard)) {
        store->broken = store->env.stuck = true;
        return MDB_CORRUPTED;
    }
    dp_checked_clear(&store->checked);
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

doppel_status dp_lmdb_write(dp_store *given, const dp_change *changes, size_t count, const dp_clock *clock,
                            doppel_error *error) {
    dp_lmdb *store = dp_lmdb_of(given);
    request r = {changes, count, clock, error, DOPPEL_OK};
    if (store->read_only)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, store->folder, 0, "was opened for reading only");
    doppel_status status = DOPPEL_OK;
    int reason, tries = 0;
    do {
        reason = try_write(store, &r);
        if (reason == MDB_MAP_FULL)
            status = dp_lmdb_grow(store, error);
        else if (reason == MDB_PANIC && !tries++)
            status = dp_lmdb_recover(store, error);
        else
            break;
    } while (!status);
    if (status || r.status || !reason)
        return status ? status : r.status;
    /* What comes next must find it in order; should that fail, it tries again. */
    if (!store->broken)
        dp_lmdb_recover(store, NULL);
    return dp_env_fail(store->folder, reason, error);
}
