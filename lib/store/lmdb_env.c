/* lmdb_env.c - one file of LMDB's: opened with its databases, and what its errors mean. */
#include "store/lmdb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- errors ---- */

/* What to do about an error of the system; NULL: nothing more than its text. */
static const char *advice(int reason) {
    switch (reason) {
    case ENOSPC:
    case EDQUOT: return "make room on the disk and try again";
    case EFBIG: return "the file system, or the limit of the process (ulimit -f), allows no larger file";
    case EROFS: return "the file system is read-only: check, get, similar and stats can still read it";
    case EACCES:
    case EPERM: return "its owner can grant access to a group (docs/ENGINE.md, \"Who may read\")";
    case EAGAIN: return "it is read through a read-only mount, where readers cannot take a lock: wait for them";
    case EIO: return "the disk is full or fails: check it and try again";
    }
    return NULL;
}

static const char *meaning(int reason) {
    switch (reason) {
    case MDB_READERS_FULL: return "1024 views and more are open in all processes; close some";
    case MDB_MAP_FULL: return "its map is full";
    case MDB_VERSION_MISMATCH: return "is in use by another version of LMDB";
    case MDB_INVALID: return "is not a file of LMDB";
    }
    return NULL;
}

doppel_status dp_env_fail(const char *path, int reason, doppel_error *error) {
    const char *what = reason > 0 ? advice(reason) : meaning(reason);
    if (reason == ENOMEM)
        return dp_no_memory(error);
    if (reason > 0)
        return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "%s%s%s", strerror(reason), what ? ": " : "",
                          what ? what : "");
    if (what)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "%s", what);
    return dp_damaged(path, error, reason == MDB_CORRUPTED ? "a page cannot be read" : "%s", mdb_strerror(reason));
}

/* ---- databases ---- */

static const struct {
    const char *name;
    unsigned flags;
} databases[DP_DBS] = {
    [DP_PART_TRACE] = {"traces", MDB_INTEGERKEY},
    [DP_PART_RECORD] = {"records", MDB_INTEGERKEY},
    [DP_PART_SET] = {"sets", MDB_INTEGERKEY},
    [DP_PART_TEXT] = {"texts", MDB_INTEGERKEY},
    [DP_DB_LINKS] = {"links", MDB_INTEGERKEY | MDB_DUPSORT | MDB_DUPFIXED | MDB_INTEGERDUP},
    [DP_DB_COUNTS] = {"counts", MDB_INTEGERKEY},
    [DP_DB_META] = {"meta", 0},
};

/* The databases that are written to. A new file gets them. */
static int open_databases(dp_env *env) {
    MDB_txn *txn;
    dp_snapshot snapshot = {0};
    unsigned make = env->mode == DP_ENV_NEW ? MDB_CREATE : 0;
    /* Who writes begins to: if the writer before was killed, LMDB finds out by that, and which commit was the last. */
    int reason = make ? mdb_txn_begin(env->env, NULL, 0, &txn) : dp_env_write(env, &txn, &snapshot);
    if (reason)
        return reason;
    for (int i = 0; i < DP_DBS && !reason; i++)
        reason = mdb_dbi_open(txn, databases[i].name, databases[i].flags | make, &env->db[i]);
    if (!reason && !make && (reason = dp_names_get(&snapshot, &env->names)) == MDB_NOTFOUND)
        reason = 0;
    if (!reason)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return reason == MDB_NOTFOUND || reason == MDB_INCOMPATIBLE ? MDB_CORRUPTED : reason;
}

/* A reader has none of LMDB's, but its list of them must be there. */
static int look_at_databases(dp_env *env) {
    MDB_txn *txn;
    dp_snapshot snapshot = {0};
    if (env->mode != DP_ENV_READ)
        return open_databases(env);
    int reason = dp_env_read_once(env, &txn, &snapshot);
    if (reason)
        return reason;
    if ((reason = dp_names_get(&snapshot, &env->names)) == MDB_NOTFOUND)
        reason = 0;
    mdb_txn_abort(txn);
    return reason;
}

/* ---- moments ---- */

/* The meta page of a transaction, as it is now; false: it is another's, or damaged. */
static bool read_meta(const dp_env *env, uint64_t transaction, dp_meta *meta) {
    uint8_t bytes[DP_META_BYTES];
    uint64_t mapped;
    dp_guard guard;
    const uint8_t *map = dp_map_cover(env->map, 2 * (uint64_t)env->page_size, &mapped);
    if (mapped < 2 * (uint64_t)env->page_size || DP_GUARD_ENTER(guard))
        return false;
    memcpy(bytes, map + (transaction & 1) * env->page_size, sizeof bytes);
    dp_guard_leave(&guard);
    return dp_meta_decode(bytes, meta) && meta->sound && meta->transaction == transaction &&
           meta->page_size == env->page_size;
}

static int take_snapshot(const dp_env *env, const dp_meta *meta, dp_snapshot *snapshot) {
    dp_guard guard;
    snapshot->id = 0;
    int reason = dp_pages_begin(&snapshot->pages, env->map, meta);
    if (reason)
        return reason;
    if (DP_GUARD_ENTER(guard))
        return MDB_CORRUPTED;
    int missing = 0;
    for (int i = 0; i < DP_DBS; i++)
        if (dp_btree_named(&snapshot->pages, databases[i].name, databases[i].flags, &snapshot->db[i])) {
            snapshot->db[i] = (dp_btree){.depth = 1, .flags = databases[i].flags};
            missing++;
        }
    dp_guard_leave(&guard);
    snapshot->id = meta->transaction + 1;
    return missing == DP_DBS ? MDB_CORRUPTED : 0;
}

/* ---- the environment ---- */

enum { READERS = 2048 }; /* two for a view */

/* A place of 64 bytes for each reader, and what LMDB has ahead of them, less than a page. */
#define LOCK_BYTES ((off_t)READERS * 64 + 4096)

/* LMDB writes to its lock through a map: where that has no room on the disk the process would end. So it gets all of it
 * here, or an error. A file system that cannot promise room is left alone. Nothing else in this process has the file
 * open, for closing it gives up all locks on it. A lock that is made here is for whoever the data file is for. */
static int reserve_lock(const dp_env *env) {
    int reason = 0, number = open(env->lock_path, O_RDWR | O_CLOEXEC);
    bool make = number < 0 && errno == ENOENT;
    if (make)
        number = open(env->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (number < 0)
        return errno;
    if (make)
        dp_access_of_lock(env->path, env->lock_path);
    while (fallocate(number, 0, 0, LOCK_BYTES) && (reason = errno) == EINTR)
        reason = 0;
    close(number);
    return reason == EOPNOTSUPP || reason == ENOSYS ? 0 : reason;
}

/* LMDB finds its own data wrong, and ends the process if this returns. */
static void on_doubt(MDB_env *env, const char *message) {
    (void)env, (void)message;
    dp_guard_raise();
}

static int open_environment(dp_env *env, uint64_t map, unsigned flags) {
    int reason = flags & MDB_NOLOCK ? 0 : reserve_lock(env);
    if (reason || (reason = mdb_env_create(&env->env)))
        return reason;
    (void)(mdb_env_set_maxdbs(env->env, DP_DBS) || mdb_env_set_maxreaders(env->env, READERS));
    /* A multiple of all sizes of pages. */
    reason = mdb_env_set_mapsize(env->env, (size_t)map / 65536 * 65536);
    if (!reason)
        reason = mdb_env_open(env->env, env->path, flags | MDB_NOSUBDIR | MDB_NOTLS, 0666);
    int number;
    if (!reason && !(reason = mdb_env_get_fd(env->env, &number))) {
        fcntl(number, F_SETFD, FD_CLOEXEC);
        reason = dp_map_open(&env->map, number);
    }
    MDB_stat known;
    if (!reason && !(reason = mdb_env_stat(env->env, &known))) {
        env->page_size = known.ms_psize;
        return mdb_env_set_assert(env->env, on_doubt);
    }
    mdb_env_close(env->env);
    env->env = NULL;
    return reason;
}

#define LEAST_MAP ((uint64_t)64 << 20)

/* Without LMDB's lock a writer does not know which pages are being read, and uses them again. So it is left out only
 * where nobody can write: on a read-only file system. That may be one mount of several, and another be writable: so
 * the data file is locked against writers, who have it locked as long as they are open. */
static bool nobody_can_write(dp_env *env) {
    struct statvfs system;
    int number = open(env->path, O_RDONLY | O_CLOEXEC);
    bool nobody =
        number >= 0 && !fstatvfs(number, &system) && system.f_flag & ST_RDONLY && !flock(number, LOCK_SH | LOCK_NB);
    if (nobody)
        env->held = number + 1;
    else if (number >= 0)
        close(number);
    return nobody;
}

static bool is_denied(int reason) {
    return reason == EACCES || reason == EPERM || reason == EROFS;
}

/* With less and less address space, and without the lock where nobody can write. */
static int open_anyhow(dp_env *env, uint64_t map) {
    unsigned flags = env->mode == DP_ENV_READ ? MDB_RDONLY : 0;
    for (;;) {
        int reason = open_environment(env, map, flags);
        if (reason == ENOMEM && map / 2 >= LEAST_MAP)
            map /= 2;
        else if (is_denied(reason) && flags == MDB_RDONLY && nobody_can_write(env))
            flags |= MDB_NOLOCK;
        else
            return reason;
    }
}

/* A writer keeps out readers that cannot lock. */
static int keep_unlocked_out(dp_env *env) {
    int number, reason = mdb_env_get_fd(env->env, &number);
    env->process = getpid();
    if (!reason && flock(number, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        reason = EAGAIN;
    return reason;
}

/* A reader who may not write to the lock: what there is to do, in the words of the shell. */
static doppel_status refuse_reader(const dp_env *env, int reason, doppel_error *error) {
    const char *slash = strrchr(env->lock_path, '/');
    int length = slash ? (int)(slash - env->lock_path) : 0;
    const char *folder = slash ? env->lock_path : ".", *name = slash ? slash + 1 : env->lock_path;
    if (reason == EROFS)
        return dp_fail_at(
            error, DOPPEL_ERROR_IO, env->lock_path, 0,
            "a reader has to write to this file, which is on a read-only mount, while a process writes to "
            "the index through another: mount the folder writable for its readers, or let them read a "
            "copy (doppel backup)");
    if (access(env->lock_path, F_OK) && errno == ENOENT)
        return dp_fail_at(error, DOPPEL_ERROR_IO, env->lock_path, 0,
                          "a reader has to write to this file; it is missing, and this user may not make it: let the "
                          "owner of the index open it once (doppel stats --index %.*s)",
                          slash ? length : 1, folder);
    return dp_fail_at(error, DOPPEL_ERROR_IO, env->lock_path, 0,
                      "%s: a reader has to write to this file, so that the writer keeps the pages that are being read. "
                      "The owner can grant that to a group: cd %.*s && chgrp -R GROUP . && chmod -R g+rX . && "
                      "chmod g+s . && chmod g+w %s",
                      strerror(reason), slash ? length : 1, folder, name);
}

static bool set_paths(dp_env *env, const char *path) {
    dp_buffer lock = {0};
    env->path = strdup(path);
    if (!dp_buffer_printf(&lock, "%s-lock", path) || !dp_buffer_add(&lock, "", 1))
        dp_buffer_free(&lock);
    env->lock_path = lock.data;
    return env->path && env->lock_path;
}

doppel_status dp_env_open(dp_env *env, const char *path, dp_env_mode mode, uint64_t map, doppel_error *error) {
    *env = (dp_env){.mode = mode};
    if (mode == DP_ENV_NEW)
        dp_note_remove(path);
    doppel_status status = mode == DP_ENV_NEW ? DOPPEL_OK : dp_file_check(path, error);
    if (status)
        return status;
    if (!set_paths(env, path)) {
        dp_env_close(env);
        return dp_no_memory(error);
    }
    dp_guard_install();
    int reason = open_anyhow(env, map);
    if (is_denied(reason) && mode == DP_ENV_READ) {
        status = refuse_reader(env, reason, error);
        dp_env_close(env);
        return status;
    }
    if (!reason && mode != DP_ENV_READ)
        reason = keep_unlocked_out(env);
    if (!reason && mode != DP_ENV_READ)
        reason = mdb_reader_check(env->env, NULL);
    if (!reason)
        reason = look_at_databases(env);
    /* Its writer has made the map larger since. */
    while (reason == MDB_MAP_RESIZED && !(reason = mdb_env_set_mapsize(env->env, 0)))
        reason = look_at_databases(env);
    if (!reason)
        return DOPPEL_OK;
    dp_env_close(env);
    if (reason == ENOMEM)
        return dp_fail_at(error, DOPPEL_ERROR_MEMORY, path, 0,
                          "no memory to open it: a map of %d MiB is the least; raise the limit (ulimit -v)",
                          (int)(LEAST_MAP >> 20));
    return dp_env_fail(path, reason, error);
}

static int begin_or_renew(const dp_env *env, MDB_txn **txn) {
    int reason = *txn ? mdb_txn_renew(*txn) : mdb_txn_begin(env->env, NULL, MDB_RDONLY, txn), dead = 0;
    /* Processes that died may still have places in the table of readers. */
    if (reason == MDB_READERS_FULL && !mdb_reader_check(env->env, &dead) && dead)
        reason = mdb_txn_begin(env->env, NULL, MDB_RDONLY, txn);
    return reason;
}

/* Whether a transaction shows one moment. LMDB takes the number N of the last that was committed, then copies its meta
 * page, the one of two that N + 2 is written to. That was not begun if, behind the copy, N is still the last: either in
 * the meta pages, or, while N + 1 waits for the disk, by what another that begins now is given. */
static int is_one_moment(const dp_env *env, MDB_txn *txn, MDB_txn **probe, bool *is) {
    MDB_envinfo info;
    __sync_synchronize();
    int reason = mdb_env_info(env->env, &info);
    *is = !reason && info.me_last_txnid == mdb_txn_id(txn);
    if (reason || *is || (reason = begin_or_renew(env, probe)))
        return reason;
    *is = mdb_txn_id(*probe) == mdb_txn_id(txn);
    mdb_txn_reset(*probe);
    return 0;
}

static int read_moment(const dp_env *env, MDB_txn **txn, MDB_txn **probe, dp_snapshot *snapshot) {
    for (bool is = false;;) {
        dp_meta meta;
        int reason = begin_or_renew(env, txn);
        if (reason)
            return reason;
        uint64_t transaction = mdb_txn_id(*txn);
        bool known = snapshot->id == transaction + 1, whole = known || read_meta(env, transaction, &meta);
        reason = is_one_moment(env, *txn, probe, &is);
        if (!reason && is && !whole)
            reason = MDB_CORRUPTED;
        else if (!reason && is && !known)
            reason = take_snapshot(env, &meta, snapshot);
        if (!reason && is)
            return 0;
        mdb_txn_reset(*txn);
        if (reason)
            return reason;
    }
}

int dp_env_read(const dp_env *env, MDB_txn **txn, MDB_txn **probe, dp_snapshot *snapshot) {
    dp_guard guard;
    if (DP_GUARD_ENTER(guard))
        return MDB_CORRUPTED;
    int reason = read_moment(env, txn, probe, snapshot);
    dp_guard_leave(&guard);
    return reason;
}

int dp_env_read_once(const dp_env *env, MDB_txn **txn, dp_snapshot *snapshot) {
    MDB_txn *probe = NULL;
    *txn = NULL;
    *snapshot = (dp_snapshot){0};
    int reason = dp_env_read(env, txn, &probe, snapshot);
    /* Nobody else uses it yet, where another process writes to it. */
    while (reason == MDB_MAP_RESIZED && !(reason = mdb_env_set_mapsize(env->env, 0)))
        reason = dp_env_read(env, txn, &probe, snapshot);
    mdb_txn_abort(probe);
    if (!reason)
        return 0;
    mdb_txn_abort(*txn);
    *txn = NULL;
    return reason;
}

doppel_status dp_env_info(const dp_env *env, MDB_envinfo *info, doppel_error *error) {
    dp_guard guard;
    if (DP_GUARD_ENTER(guard))
        return dp_env_fail(env->path, MDB_CORRUPTED, error);
    int reason = mdb_env_info(env->env, info);
    dp_guard_leave(&guard);
    return reason ? dp_env_fail(env->path, reason, error) : DOPPEL_OK;
}

/* ---- writing ---- */

/* Reads what a note of a moment says; MDB_CORRUPTED when the list of free pages is damaged. */
static int make_note(const dp_snapshot *snapshot, dp_note *note) {
    uint64_t free_pages;
    dp_guard guard;
    if (DP_GUARD_ENTER(guard))
        return MDB_CORRUPTED;
    *note = (dp_note){.transaction = snapshot->pages.meta.transaction, .meta = snapshot->pages.meta.checksum};
    int reason = dp_free_check(&snapshot->pages, &note->free, &free_pages, NULL);
    dp_guard_leave(&guard);
    return reason;
}

static int check_whole(const dp_btree *tree, const dp_snapshot *snapshot) {
    dp_guard guard;
    if (DP_GUARD_ENTER(guard))
        return MDB_CORRUPTED;
    int reason = dp_btree_check_text(&snapshot->pages, tree);
    dp_guard_leave(&guard);
    return reason;
}

/* What LMDB reads whatever is written: its databases, `meta`, the free pages; and what is known of the last commit. */
static int check_common(const dp_env *env, const dp_snapshot *snapshot) {
    dp_note now, then = env->note;
    int reason = make_note(snapshot, &now);
    if (!reason)
        reason = check_whole(&snapshot->pages.meta.main, snapshot);
    if (!reason)
        reason = check_whole(&snapshot->db[DP_DB_META], snapshot);
    if (reason || (!then.transaction && !dp_note_read(env->path, &then)) || then.transaction != now.transaction)
        return reason;
    return then.meta != now.meta || (then.free && now.free && then.free != now.free) ? MDB_CORRUPTED : 0;
}

int dp_env_write(const dp_env *env, MDB_txn **txn, dp_snapshot *snapshot) {
    dp_meta meta;
    int reason = dp_map_is_whole(env->map) ? mdb_txn_begin(env->env, NULL, 0, txn) : MDB_CORRUPTED;
    if (reason)
        return reason;
    reason = read_meta(env, mdb_txn_id(*txn) - 1, &meta) ? take_snapshot(env, &meta, snapshot) : MDB_CORRUPTED;
    if (!reason)
        reason = check_common(env, snapshot);
    if (reason) {
        mdb_txn_abort(*txn);
        *txn = NULL;
    }
    return reason;
}

int dp_env_commit(dp_env *env, MDB_txn *txn) {
    dp_meta meta;
    dp_snapshot snapshot = {0};
    uint64_t transaction = mdb_txn_id(txn);
    int reason = mdb_txn_commit(txn);
    if (reason)
        return reason;
    /* What is wrong now is found by whoever writes next. */
    env->note = (dp_note){0};
    if (read_meta(env, transaction, &meta) && !take_snapshot(env, &meta, &snapshot) &&
        !make_note(&snapshot, &env->note))
        dp_note_write(env->path, &env->note);
    return 0;
}

void dp_env_close(dp_env *env) {
    int number;
    /* A child that was forked meanwhile has the file open, too, and with it its lock. */
    if (env->env && env->process == getpid() && !mdb_env_get_fd(env->env, &number))
        flock(number, LOCK_UN);
    if (!env->stuck) {
        mdb_env_close(env->env);
        dp_map_close(env->map);
    }
    if (env->held)
        close(env->held - 1);
    free(env->path);
    free(env->lock_path);
    *env = (dp_env){0};
}
