/* lmdb_folder.c - an index folder: its files and the access to them; opening an existing one, creating one, or
 * completing a half-created one (dp_lmdb_open). doppel.index            a few lines: what this is, the version of the
 * format, and the generation in use documents-N.mdb         generation N, and beside it LMDB's own lock,
 * documents-N.mdb-lock, and a note of the last commit, documents-N.mdb-commit (lmdb_file.c) writer.lock locked, with
 * the number of the process that writes documents-N.mdb.aside   a file that could not be read while doppel.index was
 * missing: never touched again doppel.index is written last: with it a folder is an index, without it it is not. */
#include "store/lmdb.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEX "doppel.index"
#define LOCK "writer.lock"
#define ASIDE ".aside"
#define LAST_FORMAT 2 /* format 1 has no secret for its names */

/* ---- names ---- */

char *dp_format(const char *format, ...) {
    va_list args;
    va_start(args, format);
    size_t size = (size_t)vsnprintf(NULL, 0, format, args) + 1;
    va_end(args);
    char *text = malloc(size);
    va_start(args, format);
    if (text)
        vsnprintf(text, size, format, args);
    va_end(args);
    return text;
}

char *dp_folder_file(const char *folder, uint64_t generation) {
    return dp_format("%s/documents-%" PRIu64 ".mdb", folder, generation);
}

/* ---- doppel.index ---- */

static doppel_status parse_index(const char *path, const char *text, dp_folder_index *index, doppel_error *error) {
    dp_folder_index read = {0};
    int end = 0;
    if (sscanf(text, "doppel index\nformat %" SCNu64 "\n", &read.format) != 1)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "is not the file of an index folder, or is damaged");
    if (!read.format || read.format > LAST_FORMAT)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0,
                          "is of format %" PRIu64 "; this program reads formats 1 to %d: use the program that made it",
                          read.format, LAST_FORMAT);
    if (sscanf(text, "doppel index\nformat %*u\ngeneration %" SCNu64 "\n%n", &read.generation, &end) != 1 ||
        !read.generation || text[end])
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "is damaged: it names no generation");
    *index = read;
    return DOPPEL_OK;
}

static doppel_status read_file(const char *path, dp_folder_index *index, doppel_error *error) {
    char text[256] = "";
    int number = open(path, O_RDONLY | O_CLOEXEC, 0);
    if (number < 0)
        return errno == ENOENT ? DOPPEL_OK : dp_env_fail(path, errno, error);
    ssize_t length = read(number, text, sizeof text - 1);
    int reason = errno;
    close(number);
    if (length < 0)
        return dp_env_fail(path, reason, error);
    return parse_index(path, text, index, error);
}

doppel_status dp_folder_read_index(const char *folder, dp_folder_index *index, doppel_error *error) {
    char *path = dp_format("%s/" INDEX, folder);
    *index = (dp_folder_index){0};
    doppel_status status = path ? read_file(path, index, error) : dp_no_memory(error);
    free(path);
    return status;
}

doppel_status dp_folder_generation(const char *folder, uint64_t *generation, doppel_error *error) {
    dp_folder_index index;
    doppel_status status = dp_folder_read_index(folder, &index, error);
    *generation = index.generation;
    return status;
}

static int write_and_sync(int number, const char *text, size_t length) {
    ssize_t done = write(number, text, length);
    if (done != (ssize_t)length)
        return done < 0 ? errno : ENOSPC;
    return fsync(number) ? errno : 0;
}

doppel_status dp_folder_begin_index(const char *folder, const dp_folder_index *index, dp_folder_change *change,
                                    doppel_error *error) {
    char text[128];
    int length = snprintf(text, sizeof text, "doppel index\nformat %" PRIu64 "\ngeneration %" PRIu64 "\n",
                          index->format, index->generation);
    change->path = dp_format("%s/" INDEX, folder);
    doppel_status status = change->path ? dp_newfile_create(&change->file, change->path, error) : dp_no_memory(error);
    if (!status) {
        dp_access_like(change->path, change->file.beside);
        int reason = write_and_sync(change->file.number, text, (size_t)length);
        change->file.synced = !reason;
        if (!reason)
            return DOPPEL_OK;
        status = dp_newfile_finish(&change->file, reason, error);
    }
    free(change->path);
    return status;
}

doppel_status dp_folder_end_index(dp_folder_change *change, bool stays, doppel_error *error) {
    doppel_status status = dp_newfile_finish(&change->file, stays ? 0 : ECANCELED, error);
    free(change->path);
    return stays ? status : DOPPEL_OK;
}

/* ---- the content of a folder ---- */

/* Ours: documents-N.mdb, its lock and what either leaves when it is being made; N is 0 for the others, among them files
 * that were put aside. */
static bool is_ours(const char *name, uint64_t *generation, bool *whole) {
    int end = 0;
    *generation = 0;
    *whole = false;
    if (sscanf(name, "documents-%" SCNu64 ".mdb%n", generation, &end) == 1 && end) {
        *whole = !name[end];
        if (!strncmp(name + end, ASIDE, strlen(ASIDE))) {
            *generation = 0;
            return true;
        }
        return *whole || !strcmp(name + end, "-lock") || !strcmp(name + end, "-commit") ||
               !strcmp(name + strlen(name) - 4, ".tmp");
    }
    *generation = 0;
    return !strcmp(name, LOCK) || !strncmp(name, INDEX, strlen(INDEX));
}

doppel_status dp_folder_look(const char *folder, dp_folder_content *content, doppel_error *error) {
    *content = (dp_folder_content){.empty = true};
    DIR *open = opendir(folder);
    content->missing = !open && errno == ENOENT;
    if (content->missing)
        return DOPPEL_OK;
    if (!open && errno == ENOTDIR)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, folder, 0, "is not a folder");
    if (!open)
        return dp_env_fail(folder, errno, error);
    for (struct dirent *entry; (entry = readdir(open));) {
        uint64_t generation;
        bool whole;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        content->empty = false;
        if (!is_ours(entry->d_name, &generation, &whole))
            snprintf(content->foreign, sizeof content->foreign, "%s", entry->d_name);
        content->files += whole;
        if (whole)
            content->generation = generation;
    }
    closedir(open);
    return DOPPEL_OK;
}

void dp_folder_clear(const char *folder, uint64_t keep) {
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));) {
        uint64_t generation;
        bool whole, ours = is_ours(entry->d_name, &generation, &whole);
        bool unfinished = strlen(entry->d_name) > 4 && !strcmp(entry->d_name + strlen(entry->d_name) - 4, ".tmp");
        if (ours && (unfinished || (generation && generation != keep)))
            unlinkat(dirfd(open), entry->d_name, 0);
    }
    if (open)
        closedir(open);
}

/* The lock belongs to the removed file: the next file gets a new one. */
static doppel_status remove_lock(const char *path, doppel_error *error) {
    char *lock = dp_format("%s-lock", path);
    doppel_status status = DOPPEL_OK;
    if (!lock)
        status = dp_no_memory(error);
    else if (unlink(lock) && errno != ENOENT)
        status = dp_env_fail(lock, errno, error);
    free(lock);
    return status;
}

/* Renames a documents file so that it is no longer used; *aside is its new path: free() it, on an error, too. The
 * writer's lock is held: no other process creates or takes the name. */
static doppel_status put_aside(const char *path, char **aside, doppel_error *error) {
    *aside = NULL;
    DP_TRY(remove_lock(path, error));
    *aside = dp_format("%s" ASIDE, path);
    for (unsigned i = 2; *aside && !access(*aside, F_OK); i++) {
        free(*aside);
        *aside = dp_format("%s" ASIDE "-%u", path, i);
    }
    if (!*aside)
        return dp_no_memory(error);
    return rename(path, *aside) ? dp_env_fail(path, errno, error) : DOPPEL_OK;
}

static doppel_status sync_names(const char *folder, doppel_error *error) {
    int number = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    /* A folder that can be written but not read, and a file system that cannot sync folders, are no reason to fail. */
    if (number < 0)
        return errno == ENOMEM || errno == EMFILE || errno == ENFILE ? dp_env_fail(folder, errno, error) : DOPPEL_OK;
    int reason = fsync(number) && errno != EINVAL ? errno : 0;
    close(number);
    return reason ? dp_env_fail(folder, reason, error) : DOPPEL_OK;
}

doppel_status dp_folder_sync(const char *folder, bool parent, doppel_error *error) {
    DP_TRY(sync_names(folder, error));
    if (!parent)
        return DOPPEL_OK;
    char *above = dp_format("%s/..", folder);
    doppel_status status = above ? sync_names(above, error) : dp_no_memory(error);
    free(above);
    return status;
}

doppel_status dp_folder_make(const char *folder, doppel_error *error) {
    int reason = mkdir(folder, 0777) ? errno : 0;
    if (!reason || reason == EEXIST)
        return DOPPEL_OK;
    size_t length = strlen(folder);
    while (length && folder[length - 1] == '/')
        length--;
    while (length && folder[length - 1] != '/')
        length--;
    if (reason == ENOENT && length > 1)
        return dp_fail_at(error, DOPPEL_ERROR_IO, folder, 0, "cannot be made: there is no folder %.*s", (int)length - 1,
                          folder);
    return dp_env_fail(folder, reason, error);
}

/* ---- access to its files ---- */

/* Links are not followed: the folder may be another user's. */
static void give_access(const struct stat *like, mode_t mode, const char *path) {
    struct stat is;
    if (lstat(path, &is) || !S_ISREG(is.st_mode))
        return;
    bool same = is.st_uid == like->st_uid && is.st_gid == like->st_gid;
    /* Only root can set owners, only members groups. With another group, its rights would go to the wrong
     * users. */
    if (!same && lchown(path, like->st_uid, like->st_gid) && is.st_gid != like->st_gid &&
        lchown(path, (uid_t)-1, like->st_gid))
        return;
    if (mode != (is.st_mode & 07777))
        (void)!fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW);
}

void dp_access_like(const char *before, const char *path) {
    struct stat like;
    if (!stat(before, &like))
        give_access(&like, like.st_mode & 07777, path);
}

void dp_access_of_lock(const char *data, const char *lock) {
    struct stat like, above;
    const char *slash = strrchr(data, '/');
    char *folder = dp_format("%.*s", slash ? (int)(slash - data) + 1 : 1, slash ? data : ".");
    bool found = folder && !stat(data, &like) && !stat(folder, &above);
    free(folder);
    if (!found)
        return;
    mode_t mode = like.st_mode & 07777;
    if (above.st_mode & S_ISGID && mode & S_IRGRP)
        mode |= S_IWGRP;
    give_access(&like, mode, lock);
}

static doppel_status share(const char *path, mode_t more, gid_t group, doppel_error *error) {
    struct stat is;
    if (lstat(path, &is))
        return dp_env_fail(path, errno, error);
    bool given = is.st_gid == group || !lchown(path, (uid_t)-1, group);
    if (given && (is.st_mode & more) != more)
        given = !fchmodat(AT_FDCWD, path, (is.st_mode & 07777) | more, AT_SYMLINK_NOFOLLOW);
    return given
               ? DOPPEL_OK
               : dp_fail_at(error, DOPPEL_ERROR_IO, path, 0,
                            "cannot be made readable for the group of its folder: %s; only its owner can do that, who "
                            "has to be in the group",
                            strerror(errno));
}

/* Lets the folder's group read the index whatever the umask, now and in generations to come: the folder g+rxs, the lock
 * of the generation g+rw, the other files g+r, all of them the folder's group's. */
static doppel_status share_folder(const char *folder, uint64_t generation, doppel_error *error) {
    struct stat is;
    char *index = dp_format("%s/" INDEX, folder), *data = dp_folder_file(folder, generation);
    char *lock = data ? dp_format("%s-lock", data) : NULL, *note = data ? dp_format("%s-commit", data) : NULL;
    doppel_status status = DOPPEL_OK;
    if (!index || !lock || !note)
        status = dp_no_memory(error);
    else if (stat(folder, &is))
        status = dp_env_fail(folder, errno, error);
    DP_THEN(status, share(folder, S_ISGID | S_IRGRP | S_IXGRP, is.st_gid, error));
    DP_THEN(status, share(index, S_IRGRP, is.st_gid, error));
    DP_THEN(status, share(data, S_IRGRP, is.st_gid, error));
    DP_THEN(status, share(lock, S_IRGRP | S_IWGRP, is.st_gid, error));
    if (!status && !access(note, F_OK)) /* it may be missing */
        status = share(note, S_IRGRP, is.st_gid, error);
    free(index);
    free(data);
    free(lock);
    free(note);
    return status;
}

/* ---- one writer ---- */

static doppel_status name_writer(const char *folder, int lock, doppel_error *error) {
    char text[32] = "", command[64] = "", path[64], who[128] = "another process";
    ssize_t length = pread(lock, text, sizeof text - 1, 0);
    long process = length > 0 ? strtol(text, NULL, 10) : 0;
    snprintf(path, sizeof path, "/proc/%ld/comm", process);
    int number = process ? open(path, O_RDONLY | O_CLOEXEC, 0) : -1;
    if (number >= 0) {
        length = read(number, command, sizeof command - 1);
        command[length > 0 ? length - 1 : 0] = 0;
        close(number);
    }
    close(lock);
    if (process)
        snprintf(who, sizeof who, "process %ld%s%s%s", process, *command ? " (" : "", command, *command ? ")" : "");
    return dp_fail_at(error, DOPPEL_ERROR_STORE, folder, 0,
                      "%s writes to it: wait for it, stop it, or, if it is doppel serve, send it the documents (POST "
                      "/v1/batch?op=add). Until then, check, get, similar and stats can read it",
                      who);
}

/* The lock of the writer: an error names the process that holds it. close() it. */
static doppel_status lock_folder(const char *folder, int *lock, doppel_error *error) {
    char *path = dp_format("%s/" LOCK, folder), text[32];
    *lock = -1;
    if (!path)
        return dp_no_memory(error);
    int number = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    doppel_status status = number < 0 ? dp_env_fail(path, errno, error) : DOPPEL_OK;
    free(path);
    if (status)
        return status;
    if (flock(number, LOCK_EX | LOCK_NB)) {
        if (errno == EWOULDBLOCK)
            return name_writer(folder, number, error);
        status = dp_env_fail(folder, errno, error);
        close(number);
        return status;
    }
    int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* The number is for messages only: a full disk does not matter. */
    (void)!(ftruncate(number, 0) || pwrite(number, text, (size_t)length, 0));
    *lock = number;
    return DOPPEL_OK;
}

/* ---- one opening in a process ---- */

static pthread_mutex_t claims_mutex = PTHREAD_MUTEX_INITIALIZER;
static dp_claim *claims;

static doppel_status claim_folder(const char *folder, dp_claim *claim, doppel_error *error) {
    struct stat known;
    bool taken = false;
    if (stat(folder, &known))
        return dp_env_fail(folder, errno, error);
    *claim = (dp_claim){.device = known.st_dev, .file = known.st_ino, .process = getpid()};
    pthread_mutex_lock(&claims_mutex);
    for (const dp_claim *other = claims; other; other = other->next)
        taken =
            taken || (other->device == claim->device && other->file == claim->file && other->process == claim->process);
    if (!taken) {
        claim->next = claims;
        claims = claim;
    }
    pthread_mutex_unlock(&claims_mutex);
    return taken ? dp_fail_at(error, DOPPEL_ERROR_STORE, folder, 0,
                              "this process has it open already: use it there, for reading, too")
                 : DOPPEL_OK;
}

static void unclaim_folder(dp_claim *claim) {
    pthread_mutex_lock(&claims_mutex);
    dp_claim **at = &claims;
    while (*at != claim)
        at = &(*at)->next;
    *at = claim->next;
    pthread_mutex_unlock(&claims_mutex);
}

/* ---- a new file ---- */

static int write_first(dp_env *env, const char *settings) {
    MDB_txn *txn;
    const dp_store_state state = {0};
    int reason = mdb_txn_begin(env->env, NULL, 0, &txn);
    if (reason)
        return reason;
    if (!(reason = dp_meta_put(txn, env, DP_SEED_SETTINGS, (doppel_slice){settings, strlen(settings)})) &&
        !(reason = dp_names_put(txn, env, &env->names)) && !(reason = dp_state_put(txn, env, &state)))
        return dp_env_commit(env, txn);
    mdb_txn_abort(txn);
    return reason;
}

static doppel_status name_generation(const dp_lmdb *store, doppel_error *error) {
    const dp_folder_index index = {dp_folder_format(&store->env.names), store->generation};
    dp_folder_change change;
    DP_TRY(dp_folder_begin_index(store->folder, &index, &change, error));
    return dp_folder_end_index(&change, true, error);
}

/* The settings and an empty state in a file that is open, then the names that make the folder an index. */
static doppel_status begin_file(dp_lmdb *store, const dp_store_options *options, doppel_error *error) {
    doppel_status status = dp_names_create(&store->env.names, error);
    int reason = status ? 0 : write_first(&store->env, options->settings ? options->settings : "");
    if (reason)
        status = dp_env_fail(store->env.path, reason, error);
    DP_THEN(status, dp_folder_sync(store->folder, false, error));
    DP_THEN(status, name_generation(store, error));
    return status ? status : dp_folder_sync(store->folder, true, error);
}

static doppel_status make_first(dp_lmdb *store, const dp_store_options *options, doppel_error *error) {
    char *path = dp_folder_file(store->folder, 1);
    store->generation = 1;
    if (!path)
        return dp_no_memory(error);
    dp_folder_clear(store->folder, 1);
    doppel_status status = dp_env_open(&store->env, path, DP_ENV_NEW, store->map, error);
    free(path);
    return status ? status : begin_file(store, options, error);
}

/* ---- an existing file ---- */

static doppel_status read_settings(dp_lmdb *store, doppel_error *error) {
    MDB_txn *txn;
    dp_snapshot now;
    doppel_slice settings = {0};
    int reason = dp_env_read_once(&store->env, &txn, &now);
    if (reason)
        return dp_env_fail(store->env.path, reason, error);
    reason = dp_meta_get(&now, DP_SEED_SETTINGS, &settings);
    if (!reason && !(store->settings = strndup(settings.data, settings.length)))
        reason = ENOMEM;
    mdb_txn_abort(txn);
    return reason ? dp_env_fail(store->env.path, reason == MDB_NOTFOUND ? MDB_CORRUPTED : reason, error) : DOPPEL_OK;
}

/* A lost secret would make every name unknown: doppel.index says whether there is one. */
static doppel_status check_format(const dp_lmdb *store, const dp_env *env, uint64_t generation, doppel_error *error) {
    dp_folder_index index;
    doppel_status status = dp_folder_read_index(store->folder, &index, error);
    if (status || index.generation != generation || index.format == dp_folder_format(&env->names))
        return status;
    return dp_fail_at(
        error, DOPPEL_ERROR_STORE, env->path, 0,
        "is damaged: doppel.index speaks of format %d, but the file has %s secret for its names; put back "
        "a copy of the folder",
        (int)index.format, env->names.keyed ? "a" : "no");
}

doppel_status dp_lmdb_open_generation(dp_lmdb *store, dp_env *env, uint64_t generation, doppel_error *error) {
    char *path = dp_folder_file(store->folder, generation);
    doppel_status status =
        path ? dp_env_open(env, path, store->read_only ? DP_ENV_READ : DP_ENV_WRITE, store->map, error)
             : dp_no_memory(error);
    free(path);
    if (!status && (status = check_format(store, env, generation, error)))
        dp_env_close(env);
    return status;
}

/* The file is gone, and doppel.index names another. */
doppel_status dp_lmdb_open_named(dp_lmdb *store, dp_env *env, uint64_t *generation, doppel_error *error) {
    for (;;) {
        uint64_t named;
        doppel_status status = dp_lmdb_open_generation(store, env, *generation, error);
        if (!status || !store->read_only || dp_folder_generation(store->folder, &named, NULL) || named == *generation ||
            !named)
            return status;
        *generation = named;
    }
}

/* ---- folders without doppel.index ---- */

/* Making a folder was interrupted, or doppel.index was lost. A file that may hold a document is never deleted: it is
 * used if it can be read, renamed if it can only be an interrupted creation, and left alone, with an error, in all
 * other cases. */

/* LMDB's pages have at least 4096 bytes, and the first two are its meta pages: a file of this size has no other. */
enum { META_PAGES = 2 * 4096 };
/* A new file has 8 pages at most; pages have up to 64 KiB. */
enum { NEW_PAGES = 16 };

static doppel_status no_index(const dp_lmdb *store, const char *why, doppel_error *error) {
    return dp_fail_at(error, DOPPEL_ERROR_STORE, store->folder, 0, "is not an index folder: %s", why);
}

/* Whether an opened file is empty: no number was assigned, and no page follows those that its meta page knows, as would
 * be the case after a commit hidden by a damaged meta page. */
static int look_inside(const dp_env *env, uint64_t *last, bool *empty) {
    MDB_txn *txn;
    dp_snapshot now;
    struct stat known;
    dp_store_state state;
    DP_TRY_REASON(dp_env_read_once(env, &txn, &now));
    int reason = dp_state_get(&now, &state);
    *last = reason ? 0 : state.last;
    *empty = !*last;
    for (int db = 0; db < DP_DB_META && !reason; db++)
        *empty = *empty && !now.db[db].entries && !now.db[db].depth;
    mdb_txn_abort(txn);
    const dp_meta *meta = &now.pages.meta;
    *empty = *empty && !stat(env->path, &known) && (uint64_t)known.st_size <= (meta->last + 1) * meta->page_size;
    return reason == MDB_NOTFOUND ? MDB_CORRUPTED : reason;
}

/* Whether a failure to open or read means that the file's bytes are wrong, not that something else prevented it. */
static bool is_damage(doppel_status status, int reason) {
    return status == DOPPEL_ERROR_STORE && reason != MDB_VERSION_MISMATCH && reason != MDB_READERS_FULL;
}

/* Renames the file and makes a new one. */
static doppel_status make_beside(dp_lmdb *store, const char *path, const dp_store_options *options,
                                 doppel_error *error) {
    char *aside, *warning = NULL;
    doppel_status status = put_aside(path, &aside, error);
    if (!status && options->warn)
        warning = dp_format(
            "%s: there was no doppel.index, and %s could not be read: it is kept as %s, and the index begins empty",
            store->folder, strrchr(path, '/') + 1, strrchr(aside, '/') + 1);
    DP_THEN(status, make_first(store, options, error));
    if (warning)
        options->warn(warning, options->user);
    free(warning);
    free(aside);
    return status;
}

/* The file cannot be read, as *error says. */
static doppel_status give_up_on(dp_lmdb *store, const char *path, off_t size, const dp_store_options *options,
                                doppel_error *error) {
    char why[sizeof error->message];
    if (size <= (off_t)NEW_PAGES * sysconf(_SC_PAGESIZE))
        return make_beside(store, path, options, error);
    snprintf(why, sizeof why, "%s", error ? error->message : "");
    return dp_fail_at(
        error, DOPPEL_ERROR_STORE, store->folder, 0,
        "has no doppel.index, and %s cannot be read (%.120s): put back a copy of the folder, or move that "
        "file away to begin with an empty index",
        strrchr(path, '/') + 1, why);
}

/* The one file of documents there is. */
static doppel_status finish_file(dp_lmdb *store, const char *path, const dp_folder_content *content,
                                 const dp_store_options *options, doppel_error *error) {
    struct stat known;
    uint64_t last = 0;
    bool empty = false;
    doppel_error why = {0};
    if (stat(path, &known))
        return dp_env_fail(path, errno, error);
    if (known.st_size <= META_PAGES)
        return unlink(path) ? dp_env_fail(path, errno, error) : make_first(store, options, error);
    doppel_status status = dp_lmdb_open_generation(store, &store->env, content->generation, &why);
    int reason = status ? 0 : look_inside(&store->env, &last, &empty);
    if (reason)
        status = dp_env_fail(path, reason, &why);
    if (!status && last) {
        store->generation = content->generation;
        return name_generation(store, error);
    }
    if (!status && empty) {
        store->generation = content->generation;
        return begin_file(store, options, error);
    }
    dp_env_close(&store->env);
    if (!status)
        status =
            dp_fail_at(&why, DOPPEL_ERROR_STORE, path, 0, "it names no document, but is longer than an empty file");
    if (error)
        *error = why;
    return is_damage(status, reason) ? give_up_on(store, path, known.st_size, options, error) : status;
}

static doppel_status finish_folder(dp_lmdb *store, const dp_folder_content *content, const dp_store_options *options,
                                   doppel_error *error) {
    if (content->files > 1)
        return no_index(store, "it has several documents-N.mdb, but no doppel.index; put back a copy of that", error);
    char *path = dp_folder_file(store->folder, content->generation);
    doppel_status status = path ? finish_file(store, path, content, options, error) : dp_no_memory(error);
    free(path);
    return status;
}

static doppel_status make_folder(dp_lmdb *store, const dp_store_options *options, doppel_error *error) {
    dp_folder_content content;
    DP_TRY(dp_folder_look(store->folder, &content, error));
    return content.files ? finish_folder(store, &content, options, error) : make_first(store, options, error);
}

/* ---- opening ---- */

/* Before anything is written: may there be an index here? */
static doppel_status look_first(dp_lmdb *store, const dp_store_options *options, doppel_error *error) {
    dp_folder_content content;
    doppel_status status = dp_folder_look(store->folder, &content, error);
    if (!status && !content.missing)
        status = dp_folder_generation(store->folder, &store->generation, error);
    if (status || store->generation)
        return status;
    bool make = !options->read_only && !options->must_exist;
    if (content.missing && !make)
        return dp_fail_at(error, DOPPEL_ERROR_IO, store->folder, 0, "there is no such folder");
    if (!make)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, store->folder, 0,
                          "is not an index; make one with doppel add --index DIR INPUT...");
    if (*content.foreign)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, store->folder, 0,
                          "is not an index folder, but has `%s` in it; name an empty or a new folder", content.foreign);
    return content.missing ? dp_folder_make(store->folder, error) : DOPPEL_OK;
}

static doppel_status open_folder(dp_lmdb *store, const dp_store_options *options, doppel_error *error) {
    doppel_status status = look_first(store, options, error);
    if (status || (status = claim_folder(store->folder, &store->claim, error)))
        return status;
    store->claimed = true;
    if (store->read_only)
        return dp_lmdb_open_named(store, &store->env, &store->generation, error);
    if ((status = lock_folder(store->folder, &store->lock, error)) ||
        (status = dp_folder_generation(store->folder, &store->generation, error)))
        return status;
    if (!store->generation)
        return make_folder(store, options, error);
    if ((status = dp_lmdb_open_generation(store, &store->env, store->generation, error)))
        return status;
    dp_folder_clear(store->folder, store->generation);
    return DOPPEL_OK;
}

void dp_lmdb_close(dp_store *store) {
    dp_lmdb *s = dp_lmdb_of(store);
    dp_env_close(&s->env);
    /* A child that was forked since has the lock, too, until it is released. */
    if (s->lock >= 0 && s->claim.process == getpid())
        flock(s->lock, LOCK_UN);
    if (s->lock >= 0)
        close(s->lock);
    if (s->claimed)
        unclaim_folder(&s->claim);
    pthread_rwlock_destroy(&s->gate);
    pthread_mutex_destroy(&s->compacting);
    pthread_mutex_destroy(&s->writing);
    pthread_mutex_destroy(&s->views_mutex);
    dp_hashmap_free(&s->checked);
    free(s->folder);
    free(s->settings);
    free(s);
}

#define DEFAULT_MAP ((uint64_t)64 << 30)
#define SMALLEST_MAP ((uint64_t)1 << 20) /* a new file has to fit */

/* A writer waiting for the gate gets it before later readers. */
static void make_gate(pthread_rwlock_t *gate) {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(gate, &attributes);
    pthread_rwlockattr_destroy(&attributes);
}

doppel_status dp_lmdb_open(const char *path, const dp_store_options *options, dp_store **store, doppel_error *error) {
    dp_lmdb *made = calloc(1, sizeof *made);
    if (!made)
        return dp_no_memory(error);
    *made = (dp_lmdb){.store.kind = &dp_store_lmdb, .lock = -1, .read_only = options->read_only};
    made->map = !options->map ? DEFAULT_MAP : options->map < SMALLEST_MAP ? SMALLEST_MAP : options->map;
    make_gate(&made->gate);
    pthread_mutex_init(&made->compacting, NULL);
    pthread_mutex_init(&made->writing, NULL);
    pthread_mutex_init(&made->views_mutex, NULL);
    doppel_status status = (made->folder = strdup(path)) ? open_folder(made, options, error) : dp_no_memory(error);
    if (!status && options->group_readable && !options->read_only)
        status = share_folder(made->folder, made->generation, error);
    DP_THEN(status, read_settings(made, error));
    if (status)
        dp_lmdb_close(&made->store);
    else
        *store = &made->store;
    return status;
}
