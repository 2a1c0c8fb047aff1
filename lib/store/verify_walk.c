/* verify_walk.c - everything that can be wrong with a folder, looked at in this order:
 *   1. the file is LMDB's and whole, its databases can be opened, settings and state are there;
 *   2. each database can be walked, its numbers ascend, and it has as many entries as it says;
 *   3. each value has its checksum, traces and records can be decoded, sets ascend and are as long as their record
 * says, and so are texts once they are unpacked;
 *   4. every document and copy has its record, and the set and text this speaks of; no part is without a trace;
 *   5. links lead from an original to its copies, counts stand at what is there, and no number is above the last. */
#include "store/verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const char *dp_verify_db_name(int db) {
    static const char *const names[DP_DBS] = {"traces", "records", "sets", "texts", "links", "counts", "settings"};
    return names[db];
}

/* ---- findings ---- */

void dp_verify_say(dp_walk *w, const char *format, ...) {
    char line[1024];
    va_list args;
    if (w->told++ >= DP_VERIFY_FINDINGS)
        return;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    length = length < (int)sizeof line - 1 ? length : (int)sizeof line - 2;
    for (int i = 0; i < length; i++)
        line[i] = line[i] == '\n' ? ' ' : line[i];
    line[length] = '\n';
    if (write(w->pipe, line, (size_t)length + 1) < 0)
        _exit(1);
}

static void end_findings(dp_walk *w, int db) {
    uint64_t more = w->told > DP_VERIFY_FINDINGS ? w->told - DP_VERIFY_FINDINGS : 0;
    w->told = 0;
    if (more)
        dp_verify_say(w, "%" PRIu64 " more findings in the %s", more, dp_verify_db_name(db));
    w->told = 0;
}

void dp_verify_mark(dp_walk *w, uint64_t number) {
    if (w->bad_count && w->bad[w->bad_count - 1] == number)
        return;
    if (!dp_reserve(&w->bad, &w->bad_room, w->bad_count + 1, sizeof *w->bad))
        _exit(1);
    w->bad[w->bad_count++] = number;
}

/* ---- one database ---- */

static void check_entry(dp_walk *w, int db, uint64_t number, const MDB_val *value) {
    if (db < DP_PARTS)
        dp_verify_part(w, db, number, value);
    else if (db == DP_DB_LINKS)
        dp_verify_link(w, number, value);
    else
        dp_verify_count(w, number, value);
}

static void end_database(dp_walk *w, int db, int reason, uint64_t seen) {
    MDB_stat known = {0};
    mdb_stat(w->txn, w->env.db[db], &known);
    if (reason != MDB_NOTFOUND)
        dp_verify_say(w, "the %s cannot be read behind number %" PRIu64 ": %s", dp_verify_db_name(db), w->place->number,
                      mdb_strerror(reason));
    if (known.ms_entries != seen)
        dp_verify_say(w, "of %zu %s %" PRIu64 " can be read", known.ms_entries, dp_verify_db_name(db), seen);
    /* What cannot be read of the traces is lost, whatever its numbers are. */
    if (db == DP_PART_TRACE && known.ms_entries > seen)
        w->place->found.damaged += known.ms_entries - seen;
    end_findings(w, db);
}

static void walk_database(dp_walk *w, int db) {
    MDB_cursor *cursor;
    MDB_val key, value;
    uint64_t seen = 0, before = 0;
    w->place->db = db;
    w->place->number = 0;
    int reason = mdb_cursor_open(w->txn, w->env.db[db], &cursor);
    while (!reason && !(reason = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))) {
        uint64_t number = key.mv_size == 8 ? dp_load64(key.mv_data) : 0;
        /* Also what keeps a damaged tree from being walked for ever. */
        if (number < before || (db != DP_DB_LINKS && number == before)) {
            reason = MDB_CORRUPTED;
            break;
        }
        w->place->number = before = number;
        seen++;
        check_entry(w, db, number, &value);
    }
    end_database(w, db, reason, seen);
}

/* ---- all of it ---- */

static int compare_numbers(const void *a, const void *b) {
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* What is right: every trace whose number is in order. */
static void count_right(dp_walk *w) {
    MDB_cursor *cursor;
    MDB_val key, value;
    doppel_verified *found = &w->place->found;
    if (w->bad_count)
        qsort(w->bad, w->bad_count, sizeof *w->bad, compare_numbers);
    w->bad_count = w->bad_count ? dp_unique64(w->bad, w->bad_count) : 0;
    found->damaged += w->bad_count;
    if (mdb_cursor_open(w->txn, w->env.db[DP_PART_TRACE], &cursor))
        return;
    for (uint64_t before = 0; !mdb_cursor_get(cursor, &key, &value, MDB_NEXT);) {
        dp_trace trace;
        uint64_t number = key.mv_size == 8 ? dp_load64(key.mv_data) : 0;
        if (number <= before)
            break;
        before = number;
        if ((w->bad_count && bsearch(&number, w->bad, w->bad_count, sizeof number, compare_numbers)) ||
            !dp_verify_trace(w, number, &trace))
            continue;
        found->documents += trace.kind == DP_TRACE_DOCUMENT;
        found->copies += trace.kind == DP_TRACE_COPY;
        found->removed += dp_trace_is_removal(&trace);
    }
    mdb_cursor_close(cursor);
}

static void check_meta(dp_walk *w) {
    doppel_slice settings;
    int reason = dp_meta_get(w->txn, &w->env, DP_SEED_SETTINGS, &settings);
    if (reason)
        dp_verify_say(w, "the settings cannot be read: %s", mdb_strerror(reason));
    if (!(reason = dp_state_get(w->txn, &w->env, &w->state)))
        return;
    dp_verify_say(w, "the last number and the clock cannot be read: %s", mdb_strerror(reason));
    w->state.last = UINT64_MAX;
}

/* LMDB's own doubts: the parent tells of them. */
static void doubt(MDB_env *env, const char *message) {
    (void)env, (void)message;
    abort();
}

/* Big enough for any file: dp_env_open goes below it where it has to. */
#define MAP ((uint64_t)1 << 36)

static doppel_status open_generation(dp_walk *w, const char *folder, uint64_t generation, doppel_error *error) {
    struct stat known;
    char *path = dp_folder_file(folder, generation);
    if (!path)
        _exit(1);
    if (!stat(path, &known))
        w->place->found.bytes = (uint64_t)known.st_size;
    doppel_status status = dp_env_open(&w->env, path, DP_ENV_READ, MAP, error);
    free(path);
    return status;
}

/* Should it be compacted meanwhile, doppel.index names another file. */
static bool open_file(dp_walk *w, const char *folder) {
    doppel_error error = {.code = DOPPEL_OK};
    dp_folder_index index;
    uint64_t named;
    doppel_status status;
    do {
        status = dp_folder_read_index(folder, &index, &error);
        if (!status)
            status = open_generation(w, folder, index.generation, &error);
    } while (status && !dp_folder_generation(folder, &named, NULL) && named != index.generation);
    if (status) {
        dp_verify_say(w, "%s: %s", error.file, error.message);
        return false;
    }
    mdb_env_set_assert(w->env.env, doubt);
    if (index.format != dp_folder_format(&w->env.names))
        dp_verify_say(w, "doppel.index speaks of format %d, but there is %s secret for names", (int)index.format,
                      w->env.names.keyed ? "a" : "no");
    return true;
}

void dp_verify_walk(const char *folder, int pipe, dp_verify_place *place) {
    dp_walk w = {.pipe = pipe, .place = place};
    if (!open_file(&w, folder))
        return;
    int reason = dp_env_read_once(&w.env, &w.txn);
    if (reason) {
        dp_verify_say(&w, "cannot be read: %s", mdb_strerror(reason));
        return;
    }
    place->db = DP_DB_META;
    check_meta(&w);
    for (int db = 0; db <= DP_DB_COUNTS; db++)
        walk_database(&w, db);
    count_right(&w);
    mdb_txn_abort(w.txn);
    dp_env_close(&w.env);
    free(w.bad);
}
