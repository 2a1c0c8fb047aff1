/* lmdb_env.c - one file of LMDB's: opened with its databases, and what its errors mean. */
#include "store/lmdb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
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
    case EPERM: return "change the permissions; check, get, similar and stats only have to read it";
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
    return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0,
                      "is damaged (%s): `doppel verify` tells what is lost; put back a copy of the folder",
                      mdb_strerror(reason));
}

/* ---- databases ---- */

static int open_databases(dp_env *env) {
    static const struct {
        const char *name;
        unsigned flags;
    } list[DP_DBS] = {
        [DP_PART_TRACE] = {"traces", MDB_INTEGERKEY},
        [DP_PART_RECORD] = {"records", MDB_INTEGERKEY},
        [DP_PART_SET] = {"sets", MDB_INTEGERKEY},
        [DP_PART_TEXT] = {"texts", MDB_INTEGERKEY},
        [DP_DB_LINKS] = {"links", MDB_INTEGERKEY | MDB_DUPSORT | MDB_DUPFIXED | MDB_INTEGERDUP},
        [DP_DB_COUNTS] = {"counts", MDB_INTEGERKEY},
        [DP_DB_META] = {"meta", 0},
    };
    MDB_txn *txn;
    /* Who writes begins to: if the writer before was killed, LMDB finds out by that, and which commit was the last. */
    int reason = mdb_txn_begin(env->env, NULL, env->mode == DP_ENV_READ ? MDB_RDONLY : 0, &txn);
    if (reason)
        return reason;
    for (int i = 0; i < DP_DBS && !reason; i++)
        reason =
            mdb_dbi_open(txn, list[i].name, list[i].flags | (env->mode == DP_ENV_NEW ? MDB_CREATE : 0), &env->db[i]);
    if (!reason && (reason = dp_names_get(txn, env, &env->names)) == MDB_NOTFOUND)
        reason = 0;
    if (!reason)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return reason == MDB_NOTFOUND || reason == MDB_INCOMPATIBLE ? MDB_CORRUPTED : reason;
}

/* ---- the environment ---- */

enum { READERS = 2048 }; /* two for a view */

/* A place of 64 bytes for each reader, and what LMDB has ahead of them, less than a page. */
#define LOCK_BYTES ((off_t)READERS * 64 + 4096)

/* LMDB writes to its lock through a map: where that has no room on the disk the process would end. So it gets all of it
 * here, or an error. A file system that cannot promise room is left alone, and who may not write is told so by LMDB.
 * Nothing else in this process has the file open, for closing it gives up all locks on it. */
static int reserve_lock(const dp_env *env) {
    dp_buffer path = {0};
    int reason = 0;
    if (!dp_buffer_printf(&path, "%s-lock", env->path) || !dp_buffer_add(&path, "", 1)) {
        dp_buffer_free(&path);
        return ENOMEM;
    }
    int number = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    dp_buffer_free(&path);
    if (number < 0)
        return errno == EACCES || errno == EPERM || errno == EROFS ? 0 : errno;
    while (fallocate(number, 0, 0, LOCK_BYTES) && (reason = errno) == EINTR)
        reason = 0;
    close(number);
    return reason == EOPNOTSUPP || reason == ENOSYS ? 0 : reason;
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
    if (!reason && !mdb_env_get_fd(env->env, &number))
        fcntl(number, F_SETFD, FD_CLOEXEC);
    if (!reason)
        return 0;
    mdb_env_close(env->env);
    env->env = NULL;
    return reason;
}

#define LEAST_MAP ((uint64_t)64 << 20)

/* With less and less address space, and where the lock cannot be had, without it: then nobody else can be kept from
 * using pages again that are being read, but neither can he write to a file that is read-only. */
static int open_anyhow(dp_env *env, uint64_t map) {
    unsigned flags = env->mode == DP_ENV_READ ? MDB_RDONLY : 0;
    for (;;) {
        int reason = open_environment(env, map, flags);
        if (reason == ENOMEM && map / 2 >= LEAST_MAP)
            map /= 2;
        else if ((reason == EACCES || reason == EPERM || reason == EROFS) && flags == MDB_RDONLY)
            flags |= MDB_NOLOCK;
        else
            return reason;
    }
}

doppel_status dp_env_open(dp_env *env, const char *path, dp_env_mode mode, uint64_t map, doppel_error *error) {
    *env = (dp_env){.mode = mode};
    doppel_status status = mode == DP_ENV_NEW ? DOPPEL_OK : dp_file_check(path, error);
    if (status)
        return status;
    if (!(env->path = strdup(path)))
        return dp_no_memory(error);
    int reason = open_anyhow(env, map);
    if (!reason && mode != DP_ENV_READ)
        reason = mdb_reader_check(env->env, NULL);
    if (!reason)
        reason = open_databases(env);
    /* Its writer has made the map larger since. */
    while (reason == MDB_MAP_RESIZED && !(reason = mdb_env_set_mapsize(env->env, 0)))
        reason = open_databases(env);
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

int dp_env_read(const dp_env *env, MDB_txn **txn, MDB_txn **probe) {
    for (bool is = false;;) {
        int reason = begin_or_renew(env, txn);
        if (reason)
            return reason;
        reason = is_one_moment(env, *txn, probe, &is);
        if (!reason && is)
            return 0;
        mdb_txn_reset(*txn);
        if (reason)
            return reason;
    }
}

int dp_env_read_once(const dp_env *env, MDB_txn **txn) {
    MDB_txn *probe = NULL;
    *txn = NULL;
    int reason = dp_env_read(env, txn, &probe);
    /* Nobody else uses it yet, where another process writes to it. */
    while (reason == MDB_MAP_RESIZED && !(reason = mdb_env_set_mapsize(env->env, 0)))
        reason = dp_env_read(env, txn, &probe);
    mdb_txn_abort(probe);
    if (!reason)
        return 0;
    mdb_txn_abort(*txn);
    *txn = NULL;
    return reason;
}

void dp_env_close(dp_env *env) {
    mdb_env_close(env->env);
    free(env->path);
    *env = (dp_env){0};
}
