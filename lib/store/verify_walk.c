/* verify_walk.c - everything that can be wrong with a folder, looked at in this order:
 *   1. the file is LMDB's and whole, its databases can be opened, settings and state are there;
 *   2. each database can be walked, its numbers ascend, and it has as many entries as it says;
 *   3. each value has its checksum, traces and records can be decoded, sets ascend and are as long as their record
 * says, and so are texts once they are unpacked;
 *   4. every document and copy has its record, and the set and text this speaks of; no part is without a trace;
 *   5. links lead from an original to its copies, counts stand at what is there, and no number is above the last;
 *   6. no page is used twice, or used and free. */
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

typedef struct linking {
    dp_walk *walk;
    uint64_t original, seen;
} linking;

static int check_link(uint64_t copy, void *user) {
    linking *l = user;
    l->seen++;
    dp_verify_link(l->walk, l->original, copy);
    return 0;
}

static void check_entry(dp_walk *w, int db, uint64_t number, const dp_found *found, linking *l) {
    l->original = number;
    if (db < DP_PARTS)
        dp_verify_part(w, db, number, &found->value);
    else if (db == DP_DB_COUNTS)
        dp_verify_count(w, number, &found->value);
    else if (dp_dups_each(&w->now.pages, found, check_link, l, w->used))
        dp_verify_say(w, "number %" PRIu64 ": the list of its copies is damaged", number);
}

static void end_database(dp_walk *w, int db, uint64_t damaged, uint64_t seen) {
    uint64_t entries = w->now.db[db].entries;
    if (damaged)
        dp_verify_say(w, "%" PRIu64 " page%s of the %s cannot be read", damaged, damaged == 1 ? "" : "s",
                      dp_verify_db_name(db));
    if (entries != seen)
        dp_verify_say(w, "of %" PRIu64 " %s %" PRIu64 " can be read", entries, dp_verify_db_name(db), seen);
    /* What cannot be read of the traces is lost, whatever its numbers are. */
    if (db == DP_PART_TRACE)
        w->place->found.damaged += entries > seen ? entries - seen : damaged;
    end_findings(w, db);
}

static void walk_database(dp_walk *w, int db) {
    dp_cursor cursor = {.used = w->used};
    dp_found found;
    linking l = {.walk = w};
    uint64_t seen = 0, damaged = 0, number;
    w->place->db = db;
    w->place->number = 0;
    dp_cursor_seek(&cursor, &w->now.pages, &w->now.db[db], 0);
    for (int reason; (reason = dp_cursor_next(&cursor, &number, &found)) != MDB_NOTFOUND;) {
        if (reason) {
            damaged++;
            continue;
        }
        w->place->number = number;
        seen++;
        check_entry(w, db, number, &found, &l);
    }
    end_database(w, db, damaged, db == DP_DB_LINKS ? l.seen : seen);
}

/* ---- LMDB's own ---- */

/* The databases, `meta`, the free pages: none of them is used twice. */
static void check_pages(dp_walk *w) {
    dp_cursor cursor = {.used = w->used};
    dp_found found;
    uint64_t number, checksum, free_pages;
    int reason;
    w->place->db = DP_DB_META;
    dp_cursor_seek(&cursor, &w->now.pages, &w->now.db[DP_DB_META], 0);
    while (!(reason = dp_cursor_next(&cursor, &number, &found)))
        ;
    if (reason != MDB_NOTFOUND)
        dp_verify_say(w, "a page of the settings cannot be read");
    dp_cursor_seek(&cursor, &w->now.pages, &w->now.pages.meta.main, 0);
    while (!(reason = dp_cursor_next(&cursor, &number, &found)))
        ;
    if (reason != MDB_NOTFOUND)
        dp_verify_say(w, "the list of databases cannot be read");
    if (dp_free_check(&w->now.pages, &checksum, &free_pages, w->used))
        dp_verify_say(w, "the list of free pages is damaged, or has pages that are in use: nothing may be written");
    dp_note note;
    const dp_meta *meta = &w->now.pages.meta;
    if (dp_note_read(w->env.path, &note) && note.transaction == meta->transaction &&
        (note.meta != meta->checksum || (note.free && checksum && note.free != checksum)))
        dp_verify_say(w, "the list of free pages is not the one that the last commit left: nothing may be written");
    end_findings(w, DP_DB_META);
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
    dp_cursor cursor = {0};
    dp_found value;
    doppel_verified *found = &w->place->found;
    uint64_t number;
    if (w->bad_count)
        qsort(w->bad, w->bad_count, sizeof *w->bad, compare_numbers);
    w->bad_count = w->bad_count ? dp_unique64(w->bad, w->bad_count) : 0;
    found->damaged += w->bad_count;
    dp_cursor_seek(&cursor, &w->now.pages, &w->now.db[DP_PART_TRACE], 0);
    for (int reason; (reason = dp_cursor_next(&cursor, &number, &value)) != MDB_NOTFOUND;) {
        dp_trace trace;
        if (reason || (w->bad_count && bsearch(&number, w->bad, w->bad_count, sizeof number, compare_numbers)) ||
            !dp_verify_trace(w, number, &trace))
            continue;
        found->documents += trace.kind == DP_TRACE_DOCUMENT;
        found->copies += trace.kind == DP_TRACE_COPY;
        found->removed += dp_trace_is_removal(&trace);
    }
}

static void check_meta(dp_walk *w) {
    doppel_slice settings;
    int reason = dp_meta_get(&w->now, DP_SEED_SETTINGS, &settings);
    if (reason)
        dp_verify_say(w, "the settings cannot be read: %s", mdb_strerror(reason));
    if (!(reason = dp_state_get(&w->now, &w->state)))
        return;
    dp_verify_say(w, "the last number and the clock cannot be read: %s", mdb_strerror(reason));
    w->state.last = UINT64_MAX;
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
    if (index.format != dp_folder_format(&w->env.names))
        dp_verify_say(w, "doppel.index speaks of format %d, but there is %s secret for names", (int)index.format,
                      w->env.names.keyed ? "a" : "no");
    return true;
}

void dp_verify_walk(const char *folder, int pipe, dp_verify_place *place) {
    dp_walk w = {.pipe = pipe, .place = place};
    if (!open_file(&w, folder))
        return;
    int reason = dp_env_read_once(&w.env, &w.txn, &w.now);
    if (reason) {
        dp_verify_say(&w, "cannot be read: %s", mdb_strerror(reason));
        return;
    }
    if (!(w.used = calloc(w.now.pages.count / 64 + 1, sizeof *w.used)))
        _exit(1);
    place->db = DP_DB_META;
    check_meta(&w);
    for (int db = 0; db <= DP_DB_COUNTS; db++)
        walk_database(&w, db);
    check_pages(&w);
    count_right(&w);
    mdb_txn_abort(w.txn);
    dp_env_close(&w.env);
    free(w.bad);
    free(w.used);
}
