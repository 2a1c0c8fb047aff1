/* lmdb_file.c - one LMDB file: checking it, opening it, its snapshots, its commits, and values with checksums.
 *
 * dp_file_check uses read calls only, so that no file with missing pages is mapped. The file begins with two meta
 * pages, written in turn: page 0 by transactions of even numbers, page 1 by odd ones, so that their numbers differ by
 * one. The later says how many pages there are. A file may have fewer without harm: pages that were taken and given
 * back in one transaction are never written. Then each page that is not there has to be in the tree of free pages,
 * which is walked: its leaves hold lists of page numbers.
 *
 * A flipped bit in the later meta page could make LMDB go back to the earlier one, and so to the commit before the
 * last. So a note of the last commit is kept beside the file: its number and checksums of what it left. It is written
 * without a sync, after the commit has been synced: it may be older than the file, never newer.
 *
 * dp_env_open has LMDB open the file, for its locks and its writing; what is read is read by pages.h, at a moment that
 * a transaction of LMDB's holds (dp_env_read). dp_env_write begins a transaction after a look at all that LMDB reads by
 * itself, dp_env_commit ends it and writes the note. */
#include "store/lmdb.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

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

/* ---- values ---- */

static void store64(char *to, uint64_t number) {
    for (int i = 0; i < 8; i++)
        to[i] = (char)(number >> (8 * i));
}

static uint64_t checksum_of(uint64_t number, int seed, const void *bytes, size_t length) {
    return XXH3_64bits_withSeed(bytes, length, number * 8 + (uint64_t)seed);
}

static int put(MDB_txn *txn, MDB_dbi db, MDB_val key, uint64_t checksum, doppel_slice bytes, unsigned flags) {
    MDB_val value = {DP_CHECKSUM + bytes.length, NULL};
    DP_TRY_REASON(mdb_put(txn, db, &key, &value, flags | MDB_RESERVE));
    store64(value.mv_data, checksum);
    if (bytes.length)
        memcpy((char *)value.mv_data + DP_CHECKSUM, bytes.data, bytes.length);
    return 0;
}

int dp_value_put(MDB_txn *txn, MDB_dbi db, uint64_t number, int seed, doppel_slice bytes, unsigned flags) {
    return put(txn, db, dp_number_key(&number), checksum_of(number, seed, bytes.data, bytes.length), bytes, flags);
}

bool dp_value_open(const MDB_val *value, uint64_t number, int seed, doppel_slice *bytes) {
    const char *from = value->mv_data;
    if (value->mv_size < DP_CHECKSUM)
        return false;
    *bytes = (doppel_slice){from + DP_CHECKSUM, value->mv_size - DP_CHECKSUM};
    return checksum_of(number, seed, bytes->data, bytes->length) == dp_load64(from);
}

/* ---- meta ---- */

static const char *meta_name(dp_seed seed) {
    return seed == DP_SEED_SETTINGS    ? "settings"
           : seed == DP_SEED_STATE     ? "state"
           : seed == DP_SEED_SUCCESSOR ? "successor"
           : seed == DP_SEED_SECRET    ? "secret"
                                       : "clock";
}

static MDB_val meta_key(dp_seed seed) {
    const char *name = meta_name(seed);
    return (MDB_val){strlen(name), (void *)(uintptr_t)name};
}

int dp_meta_get(const dp_snapshot *snapshot, dp_seed seed, doppel_slice *bytes) {
    dp_page_value found;
    DP_GUARD(guard, MDB_CORRUPTED);
    int reason = dp_btree_get_text(&snapshot->pages, &snapshot->db[DP_DB_META], meta_name(seed), &found);
    if (!reason && !dp_value_open(&found.value, 0, (int)seed, bytes))
        reason = MDB_CORRUPTED;
    dp_guard_leave(&guard);
    return reason;
}

int dp_meta_put(MDB_txn *txn, const dp_env *env, dp_seed seed, doppel_slice bytes) {
    return put(txn, env->db[DP_DB_META], meta_key(seed), checksum_of(0, (int)seed, bytes.data, bytes.length), bytes, 0);
}

/* ---- counts and the state ---- */

void dp_counts_encode(const dp_counts *counts, char bytes[DP_COUNTS_SIZE]) {
    for (int i = 0; i < DP_COUNTERS; i++)
        store64(bytes + 8 * i, counts->by[i]);
    store64(bytes + 24, counts->last);
}

bool dp_counts_decode(doppel_slice bytes, dp_counts *counts) {
    if (bytes.length != DP_COUNTS_SIZE)
        return false;
    for (int i = 0; i < DP_COUNTERS; i++)
        counts->by[i] = dp_load64(bytes.data + 8 * i);
    counts->last = dp_load64(bytes.data + 24);
    return true;
}

enum { STATE_SIZE = 16 + DP_COUNTS_SIZE, CLOCK_SIZE = 40 };

/* The clock stored with the state; none if it was written without one. */
static void get_clock(const dp_snapshot *snapshot, dp_clock *clock) {
    doppel_slice bytes;
    if (dp_meta_get(snapshot, DP_SEED_CLOCK, &bytes) || bytes.length != CLOCK_SIZE ||
        dp_load64(bytes.data) != clock->time)
        return;
    clock->boot = dp_load64(bytes.data + 8);
    clock->uptime = dp_load64(bytes.data + 16);
    clock->doubted = dp_load64(bytes.data + 24);
    clock->seen = dp_load64(bytes.data + 32);
}

static int put_clock(MDB_txn *txn, const dp_env *env, const dp_clock *clock) {
    const uint64_t numbers[] = {clock->time, clock->boot, clock->uptime, clock->doubted, clock->seen};
    char bytes[CLOCK_SIZE];
    for (int i = 0; i < CLOCK_SIZE / 8; i++)
        store64(bytes + 8 * i, numbers[i]);
    return dp_meta_put(txn, env, DP_SEED_CLOCK, (doppel_slice){bytes, sizeof bytes});
}

int dp_state_get(const dp_snapshot *snapshot, dp_store_state *state) {
    doppel_slice bytes;
    int reason = dp_meta_get(snapshot, DP_SEED_STATE, &bytes);
    if (reason || bytes.length != STATE_SIZE)
        return reason ? reason : MDB_CORRUPTED;
    state->last = dp_load64(bytes.data);
    state->clock = (dp_clock){.time = dp_load64(bytes.data + 8)};
    get_clock(snapshot, &state->clock);
    dp_counts_decode((doppel_slice){bytes.data + 16, DP_COUNTS_SIZE}, &state->total);
    return 0;
}

int dp_state_put(MDB_txn *txn, const dp_env *env, const dp_store_state *state) {
    char bytes[STATE_SIZE];
    store64(bytes, state->last);
    store64(bytes + 8, state->clock.time);
    dp_counts_encode(&state->total, bytes + 16);
    DP_TRY_REASON(dp_meta_put(txn, env, DP_SEED_STATE, (doppel_slice){bytes, sizeof bytes}));
    return put_clock(txn, env, &state->clock);
}

/* ---- the secret of names ---- */

enum { SECRET_SIZE = 16 };

/* The secret of its names; MDB_NOTFOUND: it has none, for it is of format 1. */
static int get_names(const dp_snapshot *snapshot, dp_names *names) {
    doppel_slice bytes;
    *names = (dp_names){.keyed = false};
    int reason = dp_meta_get(snapshot, DP_SEED_SECRET, &bytes);
    if (reason || bytes.length != SECRET_SIZE)
        return reason ? reason : MDB_CORRUPTED;
    *names = (dp_names){.keyed = true, .secret = {dp_load64(bytes.data), dp_load64(bytes.data + 8)}};
    return 0;
}

int dp_names_put(MDB_txn *txn, const dp_env *env, const dp_names *names) {
    char bytes[SECRET_SIZE];
    store64(bytes, names->secret[0]);
    store64(bytes + 8, names->secret[1]);
    return dp_meta_put(txn, env, DP_SEED_SECRET, (doppel_slice){bytes, sizeof bytes});
}

/* ---- notes ---- */

enum { NOTE_BYTES = 32 };

bool dp_note_read(const char *path, dp_note *note) {
    uint8_t bytes[NOTE_BYTES];
    char *name = dp_format("%s-commit", path);
    int number = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    free(name);
    if (number < 0)
        return false;
    ssize_t length = pread(number, bytes, sizeof bytes, 0);
    close(number);
    *note = (dp_note){dp_load64(bytes), dp_load64(bytes + 8), dp_load64(bytes + 16)};
    return length == NOTE_BYTES && checksum_of(0, DP_SEED_NOTE, bytes, 24) == dp_load64(bytes + 24);
}

/* A note that cannot be written is not an error: an older one does no harm. */
static void write_note(const char *path, const dp_note *note) {
    char bytes[NOTE_BYTES];
    char *name = dp_format("%s-commit", path);
    int number = name ? open(name, O_WRONLY | O_CLOEXEC) : -1;
    /* Users who may read the file may read its note. */
    if (name && number < 0 && (number = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) >= 0)
        dp_access_like(path, name);
    free(name);
    if (number < 0)
        return;
    store64(bytes, note->transaction);
    store64(bytes + 8, note->meta);
    store64(bytes + 16, note->free);
    store64(bytes + 24, checksum_of(0, DP_SEED_NOTE, bytes, 24));
    (void)!pwrite(number, bytes, sizeof bytes, 0);
    close(number);
}

static void remove_note(const char *path) {
    char *name = dp_format("%s-commit", path);
    if (name)
        unlink(name);
    free(name);
}

/* ---- whether a file is whole ---- */

enum { PAGE_HEADER = 16, PAGE_FLAGS = 10, PAGE_LOWER = 12, META_VERSION = PAGE_HEADER + 4, META_MAGIC = PAGE_HEADER };
enum { IS_BRANCH = 1, IS_LEAF = 2, IS_META = 8, NODE_HEADER = 8, NODE_ELSEWHERE = 1, MOST_LEVELS = 32 };
#define MAGIC 0xBEEFC0DEu
#define VERSION 1
#define NO_PAGE UINT64_MAX

typedef struct file_check {
    int number;
    uint64_t size, page_size, last, free_root;
    uint64_t absent; /* the first page that is not there */
    uint64_t found;  /* pages from there on that are free */
    uint64_t left;   /* bytes that the walk may still read: pages of a damaged tree may form a circle */
    const char *path;
    doppel_error *error;
} file_check;

static uint16_t load16(const uint8_t *at) {
    return (uint16_t)(at[0] | at[1] << 8);
}

static doppel_status cut_short(const file_check *f) {
    return dp_fail_at(f->error, DOPPEL_ERROR_STORE, f->path, 0,
                      "is cut short: it has %" PRIu64 " bytes of %" PRIu64 "; put back a copy of the folder", f->size,
                      (f->last + 1) * f->page_size);
}

static doppel_status read_at(file_check *f, void *to, uint64_t length, uint64_t at) {
    if (length > f->left)
        return cut_short(f);
    f->left -= length;
    for (char *next = to; length;) {
        ssize_t done = pread(f->number, next, length, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return dp_env_fail(f->path, errno, f->error);
        if (!done)
            return cut_short(f);
        next += done;
        at += (uint64_t)done;
        length -= (uint64_t)done;
    }
    return DOPPEL_OK;
}

/* ---- pages that are free ---- */

/* A list of pages: how many, then each. */
static doppel_status count_list(file_check *f, const uint8_t *list, uint64_t length) {
    uint64_t count = length >= 8 ? dp_load64(list) : 0;
    if (length < 8 || count > length / 8 - 1)
        return cut_short(f);
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t page = dp_load64(list + 8 * i);
        f->found += page >= f->absent && page <= f->last;
    }
    return DOPPEL_OK;
}

/* A list that has pages of its own. */
static doppel_status count_elsewhere(file_check *f, const uint8_t *node, uint64_t length) {
    uint64_t page = dp_load64(node);
    if (page >= f->absent || length > f->size - page * f->page_size)
        return cut_short(f);
    uint8_t *list = malloc(length ? length : 1);
    if (!list)
        return dp_no_memory(f->error);
    doppel_status status = read_at(f, list, length, page * f->page_size + PAGE_HEADER);
    DP_THEN(status, count_list(f, list, length));
    free(list);
    return status;
}

static doppel_status walk_free(file_check *f, uint64_t page, int level);

static doppel_status walk_node(file_check *f, const uint8_t *page, uint64_t at, int level) {
    bool branch = load16(page + PAGE_FLAGS) & IS_BRANCH;
    if (at < PAGE_HEADER || at + NODE_HEADER > f->page_size)
        return cut_short(f);
    const uint8_t *node = page + at;
    uint64_t low = dp_load32(node), flags = load16(node + 4), data = at + NODE_HEADER + load16(node + 6);
    if (branch)
        return walk_free(f, low | flags << 32, level + 1);
    bool elsewhere = flags & NODE_ELSEWHERE;
    if (data + (elsewhere ? 8 : low) > f->page_size)
        return cut_short(f);
    return elsewhere ? count_elsewhere(f, page + data, low) : count_list(f, page + data, low);
}

static doppel_status walk_free(file_check *f, uint64_t page, int level) {
    if (page >= f->absent || level > MOST_LEVELS)
        return cut_short(f);
    uint8_t *bytes = malloc(f->page_size);
    if (!bytes)
        return dp_no_memory(f->error);
    doppel_status status = read_at(f, bytes, f->page_size, page * f->page_size);
    uint64_t lower = status ? 0 : load16(bytes + PAGE_LOWER);
    if (!status && (!(load16(bytes + PAGE_FLAGS) & (IS_BRANCH | IS_LEAF)) || lower > f->page_size))
        status = cut_short(f);
    for (uint64_t at = PAGE_HEADER; !status && at + 2 <= lower; at += 2)
        status = walk_node(f, bytes, load16(bytes + at), level);
    free(bytes);
    return status;
}

/* ---- meta pages ---- */

static doppel_status not_ours(const file_check *f) {
    return dp_fail_at(f->error, DOPPEL_ERROR_STORE, f->path, 0,
                      "is not a file of LMDB, or its beginning is damaged; put back a copy of the folder");
}

static doppel_status read_meta_page(file_check *f, uint64_t at, dp_meta *meta) {
    uint8_t bytes[DP_META_BYTES];
    if (f->size < at + sizeof bytes)
        return not_ours(f);
    f->left = sizeof bytes;
    DP_TRY(read_at(f, bytes, sizeof bytes, at));
    uint32_t version = dp_load32(bytes + META_VERSION);
    if (load16(bytes + PAGE_FLAGS) & IS_META && dp_load32(bytes + META_MAGIC) == MAGIC && version != VERSION)
        return dp_fail_at(f->error, DOPPEL_ERROR_STORE, f->path, 0,
                          "is of version %" PRIu32 " of LMDB's format; this program reads version %d", version,
                          VERSION);
    return dp_meta_decode(bytes, meta) ? DOPPEL_OK : not_ours(f);
}

/* Whether the two are what LMDB leaves: one transaction apart, each in its place, or those of a new file. */
static bool are_pair(const dp_meta meta[2]) {
    uint64_t even = meta[0].transaction, odd = meta[1].transaction;
    return meta[0].page_size == meta[1].page_size &&
           ((!even && !odd) || (!(even & 1) && odd & 1 && (even + 1 == odd || odd + 1 == even)));
}

static doppel_status read_pair(file_check *f, dp_meta meta[2]) {
    doppel_status status = read_meta_page(f, 0, &meta[0]);
    DP_THEN(status, read_meta_page(f, meta[0].page_size, &meta[1]));
    return status || are_pair(meta) ? status : not_ours(f);
}

/* Another process may be committing, which writes meta pages in less time than this. */
enum { TRIES = 200, PAUSE = 500 /* microseconds */ };

static doppel_status read_metas(file_check *f, dp_meta *meta) {
    struct stat known;
    dp_meta pair[2];
    dp_note note;
    /* The note first: it is never ahead of the file. */
    bool noted = dp_note_read(f->path, &note);
    doppel_status status = read_pair(f, pair);
    for (int tries = 0; status == DOPPEL_ERROR_STORE && tries < TRIES; tries++) {
        usleep(PAUSE);
        status = read_pair(f, pair);
    }
    if (status)
        return status;
    *meta = pair[pair[1].transaction > pair[0].transaction];
    if (!meta->sound)
        return not_ours(f);
    /* The length is read after the meta pages: a file only grows. */
    if (fstat(f->number, &known))
        return dp_env_fail(f->path, errno, f->error);
    f->size = (uint64_t)known.st_size;
    f->absent = f->size / meta->page_size;
    f->page_size = meta->page_size;
    f->last = meta->last;
    f->free_root = meta->free.root;
    if (noted && meta->transaction < note.transaction)
        return dp_damaged(f->path, f->error,
                          "the last commit, number %" PRIu64 ", is gone, and the one found is %" PRIu64,
                          note.transaction, meta->transaction);
    /* It says nothing about an earlier commit: LMDB leaves parts of a failed commit in that one's page. */
    return noted && meta->transaction == note.transaction && meta->checksum != note.meta ? not_ours(f) : DOPPEL_OK;
}

/* ---- the file ---- */

static doppel_status check_pages(file_check *f) {
    f->found = 0;
    f->left = f->size;
    if (f->absent > f->last)
        return DOPPEL_OK;
    doppel_status status = f->free_root == NO_PAGE ? DOPPEL_OK : walk_free(f, f->free_root, 0);
    return status || f->found >= f->last - f->absent + 1 ? status : cut_short(f);
}

/* While another process writes, pages may change during the walk: a finding counts only if nothing was committed. */
static doppel_status check_file(file_check *f) {
    dp_meta meta;
    uint64_t before;
    doppel_status status = read_metas(f, &meta), found;
    if (status)
        return status;
    do {
        before = meta.transaction;
        found = check_pages(f);
        if (found && (status = read_metas(f, &meta)))
            return status;
    } while (found && before != meta.transaction);
    return found ? check_pages(f) : DOPPEL_OK;
}

doppel_status dp_file_check(const char *path, doppel_error *error) {
    struct stat known;
    file_check f = {.number = open(path, O_RDONLY | O_CLOEXEC), .path = path, .error = error};
    if (f.number < 0)
        return dp_env_fail(path, errno, error);
    doppel_status status = DOPPEL_OK;
    if (fstat(f.number, &known))
        status = dp_env_fail(path, errno, error);
    else if (!S_ISREG(known.st_mode))
        status = not_ours(&f);
    f.size = status ? 0 : (uint64_t)known.st_size;
    DP_THEN(status, check_file(&f));
    close(f.number);
    return status;
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
    snapshot->id = 0;
    int reason = dp_pages_begin(&snapshot->pages, env->map, meta);
    if (reason)
        return reason;
    DP_GUARD(guard, MDB_CORRUPTED);
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

/* ---- reading ---- */

static int begin_or_renew(const dp_env *env, MDB_txn **txn) {
    int reason = *txn ? mdb_txn_renew(*txn) : mdb_txn_begin(env->env, NULL, MDB_RDONLY, txn), dead = 0;
    /* Dead processes may still have slots in the reader table. */
    if (reason == MDB_READERS_FULL && !mdb_reader_check(env->env, &dead) && dead)
        reason = mdb_txn_begin(env->env, NULL, MDB_RDONLY, txn);
    return reason;
}

/* Whether a transaction shows one moment. LMDB takes the number N of the last that was committed, then copies its meta
 * page, the one of two that N + 2 is written to. That was not begun if, after the copy, N is still the last: either in
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
        DP_TRY_REASON(begin_or_renew(env, txn));
        uint64_t transaction = mdb_txn_id(*txn);
        bool known = snapshot->id == transaction + 1, whole = known || read_meta(env, transaction, &meta);
        int reason = is_one_moment(env, *txn, probe, &is);
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
    DP_GUARD(guard, MDB_CORRUPTED);
    int reason = read_moment(env, txn, probe, snapshot);
    dp_guard_leave(&guard);
    return reason;
}

int dp_env_read_once(const dp_env *env, MDB_txn **txn, dp_snapshot *snapshot) {
    MDB_txn *probe = NULL;
    *txn = NULL;
    *snapshot = (dp_snapshot){0};
    int reason = dp_env_read(env, txn, &probe, snapshot);
    /* No other thread uses it yet; another process writes to it. */
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
    DP_GUARD(guard, dp_env_fail(env->path, MDB_CORRUPTED, error));
    int reason = mdb_env_info(env->env, info);
    dp_guard_leave(&guard);
    return reason ? dp_env_fail(env->path, reason, error) : DOPPEL_OK;
}

/* ---- writing ---- */

/* Reads what a note of a moment says; MDB_CORRUPTED when the list of free pages is damaged. */
static int make_note(const dp_snapshot *snapshot, dp_note *note) {
    uint64_t free_pages;
    DP_GUARD(guard, MDB_CORRUPTED);
    *note = (dp_note){.transaction = snapshot->pages.meta.transaction, .meta = snapshot->pages.meta.checksum};
    int reason = dp_free_check(&snapshot->pages, &note->free, &free_pages, NULL);
    dp_guard_leave(&guard);
    return reason;
}

static int check_whole(const dp_btree *tree, const dp_snapshot *snapshot) {
    DP_GUARD(guard, MDB_CORRUPTED);
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
    DP_TRY_REASON(mdb_txn_commit(txn));
    /* The next write detects what is wrong now. */
    env->note = (dp_note){0};
    if (read_meta(env, transaction, &meta) && !take_snapshot(env, &meta, &snapshot) &&
        !make_note(&snapshot, &env->note))
        write_note(env->path, &env->note);
    return 0;
}

/* ---- opening and closing ---- */

enum { READERS = 2048 }; /* two for a view */

/* A place of 64 bytes for each reader, and what LMDB has ahead of them, less than a page. */
#define LOCK_BYTES ((off_t)READERS * 64 + 4096)

/* LMDB writes to its lock through a map: without disk space for it the process would be killed. So the space is
 * allocated here, or an error returned. A file system that cannot preallocate is left alone. Nothing else in this
 * process may have the file open, as closing it releases all locks on it. A lock created here gets the access rights of
 * the data file. */
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

/* LMDB found its own data inconsistent, and aborts if this returns. */
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

/* Without LMDB's lock a writer does not know which pages are being read, and reuses them. So it is omitted only where
 * nobody can write: on a read-only file system. Another mount of it may be writable: so the data file is locked against
 * writers, which keep it locked as long as they are open. */
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

/* Tries with less and less address space, and without the lock if nobody can write. */
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

/* A writer excludes readers that cannot lock. */
static int keep_unlocked_out(dp_env *env) {
    int number, reason = mdb_env_get_fd(env->env, &number);
    env->process = getpid();
    if (!reason && flock(number, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        reason = EAGAIN;
    return reason;
}

/* The databases that are written to. A new file gets them. */
static int open_databases(dp_env *env) {
    MDB_txn *txn;
    dp_snapshot snapshot = {0};
    unsigned make = env->mode == DP_ENV_NEW ? MDB_CREATE : 0;
    /* A writer begins a transaction: by that LMDB finds out if the writer before was killed, and the last commit. */
    int reason = make ? mdb_txn_begin(env->env, NULL, 0, &txn) : dp_env_write(env, &txn, &snapshot);
    if (reason)
        return reason;
    for (int i = 0; i < DP_DBS && !reason; i++)
        reason = mdb_dbi_open(txn, databases[i].name, databases[i].flags | make, &env->db[i]);
    if (!reason && !make && (reason = get_names(&snapshot, &env->names)) == MDB_NOTFOUND)
        reason = 0;
    if (!reason)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return reason == MDB_NOTFOUND || reason == MDB_INCOMPATIBLE ? MDB_CORRUPTED : reason;
}

/* A reader opens none through LMDB, but its list of them must exist. */
static int look_at_databases(dp_env *env) {
    MDB_txn *txn;
    dp_snapshot snapshot = {0};
    if (env->mode != DP_ENV_READ)
        return open_databases(env);
    int reason = dp_env_read_once(env, &txn, &snapshot);
    if (reason)
        return reason;
    if ((reason = get_names(&snapshot, &env->names)) == MDB_NOTFOUND)
        reason = 0;
    mdb_txn_abort(txn);
    return reason;
}

/* For a reader that may not write to the lock: the shell commands that fix it. */
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

doppel_status dp_env_open(dp_env *env, const char *path, dp_env_mode mode, uint64_t map, doppel_error *error) {
    *env = (dp_env){.mode = mode};
    if (mode == DP_ENV_NEW)
        remove_note(path);
    doppel_status status = mode == DP_ENV_NEW ? DOPPEL_OK : dp_file_check(path, error);
    if (status)
        return status;
    env->path = strdup(path);
    env->lock_path = dp_format("%s-lock", path);
    if (!env->path || !env->lock_path) {
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
    /* Its writer has enlarged the map since. */
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

void dp_env_close(dp_env *env) {
    int number;
    /* A child that was forked since has the file open, too, and with it its lock. */
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
