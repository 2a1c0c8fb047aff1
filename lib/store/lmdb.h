/* lmdb.h - stores in a folder, and what their files share.
 *
 * lmdb_file.c: one file of LMDB's. lmdb_folder.c: the folder it is in, and opening that. lmdb.c: the store, its changes
 * and its views. compact.c: the next generation, beside calls, and copies. pages.c: how its pages are read, without
 * trusting them; LMDB itself only writes, and keeps pages being read from reuse. */
#ifndef DP_LMDB_H
#define DP_LMDB_H

#include "store/pages.h"
#include "store/store.h"

#include <lmdb.h>
#include <pthread.h>
#include <sys/types.h>

/* ---- one file ---- */

/* Databases: the parts by number, then these. */
enum { DP_DB_LINKS = DP_PARTS, DP_DB_COUNTS, DP_DB_META, DP_DBS };

/* What a checksum is seeded with beside the number: a dp_part, or one of these. */
typedef enum dp_seed {
    DP_SEED_COUNTS = DP_PARTS,
    DP_SEED_SETTINGS,
    DP_SEED_STATE,
    DP_SEED_SUCCESSOR,
    DP_SEED_SECRET,
    DP_SEED_CLOCK,
    DP_SEED_NOTE = 15
} dp_seed;

enum { DP_CHECKSUM = 8 };

typedef enum dp_env_mode { DP_ENV_READ, DP_ENV_WRITE, DP_ENV_NEW } dp_env_mode;

/* The state after the last commit, kept beside the file (FILE-commit) and rewritten after each: what no value's
 * checksum covers. */
typedef struct dp_note {
    uint64_t transaction;
    uint64_t meta; /* checksum of its meta page */
    uint64_t free; /* checksum of the list of free pages; 0: not known */
} dp_note;

/* A file that is open. Zero is none. */
typedef struct dp_env {
    MDB_env *env;
    MDB_dbi db[DP_DBS]; /* of a writer */
    char *path, *lock_path;
    dp_env_mode mode;
    pid_t process;  /* that writes; 0: none does */
    int held;       /* reading without LMDB's lock: the descriptor, + 1, of the data file, locked against writers */
    dp_names names; /* as the file has them; a new file: not yet */
    dp_map *map;
    uint32_t page_size;
    dp_note note; /* of a writer: the last commit's; zero: not known */
    bool stuck;   /* LMDB was interrupted in a write: it holds its lock, and is never closed */
} dp_env;

/* One moment of a file, and its databases. Zero is none. */
typedef struct dp_snapshot {
    uint64_t id; /* of the transaction, + 1 */
    dp_pages pages;
    dp_btree db[DP_DBS]; /* one that cannot be found returns MDB_CORRUPTED to every request */
} dp_snapshot;

/* Opens a file with `map` bytes of address space, or with less if the system refuses them. Errors: DOPPEL_ERROR_STORE
 * for a file that is not one, or is truncated; DOPPEL_ERROR_IO. */
doppel_status dp_env_open(dp_env *env, const char *path, dp_env_mode mode, uint64_t map, doppel_error *error);
void dp_env_close(dp_env *env);

/* Begins a transaction for reading, or renews *txn; returns what LMDB says. *probe is one that it may need; NULL at
 * first, and the caller must abort it. *snapshot, of an earlier call or zero, is of that moment. */
int dp_env_read(const dp_env *env, MDB_txn **txn, MDB_txn **probe, dp_snapshot *snapshot);
/* The same for a transaction that is not renewed. */
int dp_env_read_once(const dp_env *env, MDB_txn **txn, dp_snapshot *snapshot);
/* Begins a transaction for writing, on what *snapshot shows, after checking everything that LMDB reads by itself when
 * it writes: its databases and its list of free pages. */
int dp_env_write(const dp_env *env, MDB_txn **txn, dp_snapshot *snapshot);
/* Commits it, and writes the note. */
int dp_env_commit(dp_env *env, MDB_txn *txn);

/* What LMDB says of it: the size of its map, its last page. */
doppel_status dp_env_info(const dp_env *env, MDB_envinfo *info, doppel_error *error);

/* Whether the file can be mapped and read: LMDB's, of its version, as long as it says, and with its last commit. */
doppel_status dp_file_check(const char *path, doppel_error *error);
/* The note of a file, by the file's path; false: there is none, or it is incomplete. */
bool dp_note_read(const char *path, dp_note *note);

/* Turns an error of LMDB or the system into one whose message says what to do. */
doppel_status dp_env_fail(const char *path, int reason, doppel_error *error);

/* ---- values: an XXH3 checksum, seeded by the number and what it is, then the bytes ---- */

/* Puts a value into a database by number; returns what LMDB says. */
int dp_value_put(MDB_txn *txn, MDB_dbi db, uint64_t number, int seed, doppel_slice bytes, unsigned flags);
/* The bytes of a value; false: its checksum is wrong. */
bool dp_value_open(const MDB_val *value, uint64_t number, int seed, doppel_slice *bytes);

/* The value of a name in the database `meta`: MDB_NOTFOUND, or MDB_CORRUPTED when its checksum is wrong. */
int dp_meta_get(const dp_snapshot *snapshot, dp_seed seed, doppel_slice *bytes);
int dp_meta_put(MDB_txn *txn, const dp_env *env, dp_seed seed, doppel_slice bytes);

/* What changes with every write. */
typedef struct dp_store_state {
    uint64_t last;
    dp_clock clock;
    dp_counts total;
} dp_store_state;
int dp_state_get(const dp_snapshot *snapshot, dp_store_state *state);
int dp_state_put(MDB_txn *txn, const dp_env *env, const dp_store_state *state);
/* The secret of its names. */
int dp_names_put(MDB_txn *txn, const dp_env *env, const dp_names *names);
/* The bytes of counts and back; false: not their length. */
enum { DP_COUNTS_SIZE = 32 };
void dp_counts_encode(const dp_counts *counts, char bytes[DP_COUNTS_SIZE]);
bool dp_counts_decode(doppel_slice bytes, dp_counts *counts);

static inline MDB_val dp_number_key(const uint64_t *number) {
    return (MDB_val){sizeof *number, (void *)(uintptr_t)number};
}

/* ---- the folder ---- */

/* A text, printed; free() it. NULL: out of memory. */
char *dp_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* documents-GENERATION.mdb there; the same. */
char *dp_folder_file(const char *folder, uint64_t generation);

/* What doppel.index says. */
typedef struct dp_folder_index {
    uint64_t format;     /* 1: names have no secret; 2: they have one */
    uint64_t generation; /* 0: there is no such file */
} dp_folder_index;
doppel_status dp_folder_read_index(const char *folder, dp_folder_index *index, doppel_error *error);
/* Writes another: beside the current one, and synced; then it replaces that, or is removed (`stays` false). */
typedef struct dp_folder_change {
    char *path;
    dp_newfile file;
} dp_folder_change;
doppel_status dp_folder_begin_index(const char *folder, const dp_folder_index *index, dp_folder_change *change,
                                    doppel_error *error);
doppel_status dp_folder_end_index(dp_folder_change *change, bool stays, doppel_error *error);
/* The generation alone. */
doppel_status dp_folder_generation(const char *folder, uint64_t *generation, doppel_error *error);

/* The format of a folder whose names are such. */
static inline uint64_t dp_folder_format(const dp_names *names) {
    return names->keyed ? 2 : 1;
}

/* The other content of a folder. */
typedef struct dp_folder_content {
    uint64_t files;      /* documents-N.mdb */
    uint64_t generation; /* N of the last of them that was seen */
    char foreign[256];   /* the name of a foreign file; empty: there is none */
    bool missing, empty; /* the folder does not exist; it is empty */
} dp_folder_content;
doppel_status dp_folder_look(const char *folder, dp_folder_content *content, doppel_error *error);
/* Removes all files of ours but doppel.index, writer.lock and what belongs to `generation`. */
void dp_folder_clear(const char *folder, uint64_t generation);

/* ---- access to its files ---- */

/* A file that replaces another gets its owner, group and mode, as far as this process may set them. */
void dp_access_like(const char *before, const char *path);
/* The same for a new lock, by the data file; in a folder with the setgid bit, a group that may read the data file may
 * write to the lock. */
void dp_access_of_lock(const char *data, const char *lock);

/* Creates the folder, if missing; the error names what is missing above it. */
doppel_status dp_folder_make(const char *folder, doppel_error *error);
/* Makes the names in it durable, and its own (`parent`). */
doppel_status dp_folder_sync(const char *folder, bool parent, doppel_error *error);

/* A process may open a folder only once, as LMDB requires: a second opening fails. A forked child does not own what its
 * parent opened. */
typedef struct dp_claim {
    uint64_t device, file;
    pid_t process;
    struct dp_claim *next;
} dp_claim;

/* ---- the store ---- */

typedef struct dp_lmdb_view dp_lmdb_view;

/* Numbers that a writer removed, or counted a duplicate at, while compact.c copies: a copy of them may be out of date.
 * Each has the transaction that did it. */
typedef struct dp_touched {
    uint64_t transaction, number;
} dp_touched;

typedef struct dp_touched_list {
    pthread_mutex_t mutex;
    dp_touched *items;
    size_t count, room;
    bool lost; /* there was no memory for one */
} dp_touched_list;

/* A replaced file, and how many still read it: the last one closes it. */
typedef struct dp_retired {
    dp_env env;
    size_t holders; /* with `views_mutex` */
} dp_retired;

typedef struct dp_lmdb {
    dp_store store;
    char *folder, *settings;
    bool read_only, claimed;
    dp_claim claim;
    int lock;     /* writer.lock; -1: not held */
    uint64_t map; /* bytes of address space */
    /* Locks, in the order in which they are taken: `compacting` (one compaction at a time), `writing` (from the first
     * page of a write to its commit), `gate`, `views_mutex`. */
    pthread_mutex_t compacting, writing;
    dp_touched_list *touched; /* with `writing`; NULL: nothing is being compacted */
    /* Held to read by threads that have LMDB begin a transaction or write, to write by one that replaces the
     * environment or changes its map. A view that has begun does not hold it: it reads by a map of its own (pages.h),
     * and LMDB ends a read transaction without touching a page. */
    pthread_rwlock_t gate;
    dp_env env;
    uint64_t generation;
    uint64_t writes;
    dp_hashmap checked; /* of the transaction that is being written */
    bool broken;        /* LMDB was interrupted in a write: this process no longer writes */
    pthread_mutex_t views_mutex;
    dp_lmdb_view *views; /* all there are */
} dp_lmdb;

typedef enum dp_view_state { DP_VIEW_IDLE, DP_VIEW_ACTIVE, DP_VIEW_RETIRED } dp_view_state;

struct dp_lmdb_view {
    dp_view view;
    /* Active between begin and end; retired if the file was replaced in between. Begun with the gate held to read,
     * retired with it held to write, ended without. */
    _Atomic dp_view_state is;
    dp_retired *retired;  /* the file of a retired one */
    MDB_txn *txn, *probe; /* NULL: none since the environment was opened */
    dp_snapshot now;
    uint64_t generation; /* of the file, and its names */
    dp_names names;
    uint64_t id;     /* of the snapshot that `state` was read in; 0: none */
    uint64_t looked; /* when a reader looked at doppel.index, in seconds */
    dp_store_state state;
    dp_lmdb_view *next, **place;
};

static inline dp_lmdb *dp_lmdb_of(const dp_store *store) {
    return (dp_lmdb *)(uintptr_t)store;
}

/* ---- lmdb_folder.c ---- */

doppel_status dp_lmdb_open(const char *path, const dp_store_options *options, dp_store **store, doppel_error *error);
void dp_lmdb_close(dp_store *store);

/* The file of a generation, opened for what the store was opened for. */
doppel_status dp_lmdb_open_generation(dp_lmdb *store, dp_env *env, uint64_t generation, doppel_error *error);
/* A reader may meet a writer that compacts: then *generation is the one that doppel.index names now. */
doppel_status dp_lmdb_open_named(dp_lmdb *store, dp_env *env, uint64_t *generation, doppel_error *error);

/* ---- the environment ---- */

/* `env` replaces the store's environment, which goes into *retired, held by the caller and by each view between begin
 * and end; with the gate held to write. */
void dp_lmdb_swap(dp_lmdb *store, const dp_env *env, uint64_t generation, dp_retired *retired);
/* Releases one reference, or closes it; takes up to a tenth of a second, so that the views of short calls end first,
 * and none of them has to close the file. Without the gate. */
void dp_lmdb_release(dp_lmdb *store, dp_retired *retired);

/* ---- compact.c ---- */

doppel_status dp_lmdb_compact(dp_store *store, dp_trace_filter *keep, void *user, doppel_error *error);
doppel_status dp_lmdb_backup(dp_store *store, const char *path, doppel_error *error);

#endif
