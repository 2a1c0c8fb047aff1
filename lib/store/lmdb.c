/* lmdb.c - stores in a folder: opening one as it is, making one, finishing one that was half made. */
#include "store/lmdb.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_MAP ((uint64_t)64 << 30)
#define SMALLEST_MAP ((uint64_t)1 << 20) /* a new file has to fit */

static bool takes(const char *path) {
    return path != NULL;
}

/* ---- a new file ---- */

static int write_first(dp_env *env, const char *settings) {
    MDB_txn *txn;
    const dp_state state = {0};
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
    return dp_folder_write_index(store->folder, &index, error);
}

/* The settings and an empty state in a file that is open, then the names that make the folder an index. */
static doppel_status begin_file(dp_lmdb *store, const char *settings, doppel_error *error) {
    doppel_status status = dp_names_create(&store->env.names, error);
    int reason = status ? 0 : write_first(&store->env, settings);
    if (reason)
        status = dp_env_fail(store->env.path, reason, error);
    if (!status)
        status = dp_folder_sync(store->folder, error);
    if (!status)
        status = name_generation(store, error);
    return status ? status : dp_folder_sync_parent(store->folder, error);
}

static doppel_status make_first(dp_lmdb *store, const char *settings, doppel_error *error) {
    char *path = dp_folder_file(store->folder, 1);
    store->generation = 1;
    if (!path)
        return dp_no_memory(error);
    dp_folder_clear(store->folder, 1);
    doppel_status status = dp_env_open(&store->env, path, DP_ENV_NEW, store->map, error);
    free(path);
    return status ? status : begin_file(store, settings, error);
}

/* ---- a file that is there ---- */

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

/* A secret that is lost would make every name one that is not known: doppel.index says whether there is one. */
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
 * used as it is when it can be read, renamed aside when it can be no more than a creation that was cut off, and left
 * alone, with an error, in all other cases. */

/* LMDB's pages have at least 4096 bytes, and the first two are its meta pages: a file of this size has no other. */
enum { META_PAGES = 2 * 4096 };
/* A new file has 8 pages at most; pages have up to 64 KiB. */
enum { NEW_PAGES = 16 };

static doppel_status no_index(const dp_lmdb *store, const char *why, doppel_error *error) {
    return dp_fail_at(error, DOPPEL_ERROR_STORE, store->folder, 0, "is not an index folder: %s", why);
}

/* Whether a file that was opened holds nothing: no number was given, and no page lies behind those that its meta page
 * knows of, as they would after a commit that a damaged meta page hides. */
static int look_inside(const dp_env *env, uint64_t *last, bool *empty) {
    MDB_txn *txn;
    dp_snapshot now;
    struct stat known;
    dp_state state;
    int reason = dp_env_read_once(env, &txn, &now);
    if (reason)
        return reason;
    reason = dp_state_get(&now, &state);
    *last = reason ? 0 : state.last;
    *empty = !*last;
    for (int db = 0; db < DP_DB_META && !reason; db++)
        *empty = *empty && !now.db[db].entries && !now.db[db].depth;
    mdb_txn_abort(txn);
    const dp_meta *meta = &now.pages.meta;
    *empty = *empty && !stat(env->path, &known) && (uint64_t)known.st_size <= (meta->last + 1) * meta->page_size;
    return reason == MDB_NOTFOUND ? MDB_CORRUPTED : reason;
}

/* Whether a failure to open or read says that the file's bytes are wrong, not that something was in the way. */
static bool is_damage(doppel_status status, int reason) {
    return status == DOPPEL_ERROR_STORE && reason != MDB_VERSION_MISMATCH && reason != MDB_READERS_FULL;
}

/* Renames the file and makes a new one. */
static doppel_status make_beside(dp_lmdb *store, const char *path, const dp_store_options *options,
                                 doppel_error *error) {
    char *aside = NULL;
    doppel_status status = dp_folder_put_aside(path, &aside, error);
    if (status)
        return status;
    status = make_first(store, options->settings ? options->settings : "", error);
    if (options->warn) {
        dp_buffer text = {0};
        if (dp_buffer_printf(&text,
                             "%s: there was no doppel.index, and %s could not be read: it is kept as %s, and the "
                             "index begins empty",
                             store->folder, strrchr(path, '/') + 1, strrchr(aside, '/') + 1) &&
            dp_buffer_add(&text, "", 1))
            options->warn(text.data, options->user);
        dp_buffer_free(&text);
    }
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
        return unlink(path) ? dp_env_fail(path, errno, error)
                            : make_first(store, options->settings ? options->settings : "", error);
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
        return begin_file(store, options->settings ? options->settings : "", error);
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
    doppel_status status = dp_folder_look(store->folder, &content, error);
    if (status)
        return status;
    return content.files ? finish_folder(store, &content, options, error)
                         : make_first(store, options->settings ? options->settings : "", error);
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
    if (status || (status = dp_folder_claim(store->folder, &store->claim, error)))
        return status;
    store->claimed = true;
    if (store->read_only)
        return dp_lmdb_open_named(store, &store->env, &store->generation, error);
    if ((status = dp_folder_lock(store->folder, &store->lock, error)) ||
        (status = dp_folder_generation(store->folder, &store->generation, error)))
        return status;
    if (!store->generation)
        return make_folder(store, options, error);
    if ((status = dp_lmdb_open_generation(store, &store->env, store->generation, error)))
        return status;
    dp_folder_clear(store->folder, store->generation);
    return DOPPEL_OK;
}

static void close_store(dp_store *store) {
    dp_lmdb *s = dp_lmdb_of(store);
    dp_env_close(&s->env);
    /* A child that was forked meanwhile has the lock, too, until it is given up. */
    if (s->lock >= 0 && s->claim.process == getpid())
        flock(s->lock, LOCK_UN);
    if (s->lock >= 0)
        close(s->lock);
    if (s->claimed)
        dp_folder_unclaim(&s->claim);
    pthread_rwlock_destroy(&s->gate);
    pthread_mutex_destroy(&s->views_mutex);
    dp_checked_free(&s->checked);
    free(s->folder);
    free(s->settings);
    free(s);
}

/* Whoever wants the gate to write gets it before those who come after him. */
static void make_gate(pthread_rwlock_t *gate) {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(gate, &attributes);
    pthread_rwlockattr_destroy(&attributes);
}

static doppel_status open_store(const char *path, const dp_store_options *options, dp_store **store,
                                doppel_error *error) {
    dp_lmdb *made = calloc(1, sizeof *made);
    if (!made)
        return dp_no_memory(error);
    *made = (dp_lmdb){.store.kind = &dp_store_lmdb, .lock = -1, .read_only = options->read_only};
    made->map = !options->map ? DEFAULT_MAP : options->map < SMALLEST_MAP ? SMALLEST_MAP : options->map;
    make_gate(&made->gate);
    pthread_mutex_init(&made->views_mutex, NULL);
    doppel_status status = (made->folder = strdup(path)) ? open_folder(made, options, error) : dp_no_memory(error);
    if (!status && options->group_readable && !options->read_only)
        status = dp_folder_share(made->folder, made->generation, error);
    if (!status)
        status = read_settings(made, error);
    if (status)
        close_store(&made->store);
    else
        *store = &made->store;
    return status;
}

static const char *settings_of(const dp_store *store) {
    return dp_lmdb_of(store)->settings;
}

const dp_store_kind dp_store_lmdb = {
    .version = DP_STORE_KIND_VERSION,
    .name = "lmdb",
    .takes = takes,
    .open = open_store,
    .close = close_store,
    .settings = settings_of,
    .write = dp_lmdb_write,
    .view_create = dp_lmdb_view_create,
    .view_free = dp_lmdb_view_free,
    .view_begin = dp_lmdb_view_begin,
    .view_end = dp_lmdb_view_end,
    .view_moment = dp_lmdb_view_moment,
    .view_info = dp_lmdb_view_info,
    .view_get = dp_lmdb_view_get,
    .view_counts = dp_lmdb_view_counts,
    .view_links = dp_lmdb_view_links,
    .view_each = dp_lmdb_view_each,
    .view_each_count = dp_lmdb_view_each_count,
    .compact = dp_lmdb_compact,
    .backup = dp_lmdb_backup,
};
