/* check.c - checks a folder: dp_store_check.
 *
 * A child process walks the folder, so that whatever a damaged file does to a reader happens there. Its findings come
 * through a pipe, one per line; if it dies, that is one more. The child checks, in this order, whether
 *   1. the file is LMDB's and whole, its databases can be opened, settings and state are there;
 *   2. each database can be walked, its numbers ascend, and it has as many entries as it says;
 *   3. each value has its checksum, traces and records can be decoded, sets ascend and are as long as their record
 *      says, and so are texts once they are unpacked;
 *   4. every document and copy has its record, and the set and text that the record mentions; no part lacks a trace;
 *   5. links lead from an original to its copies, counts belong to numbers that exist, no number is above the last;
 *   6. no page is used twice, or used and free. */
#include "store/lmdb.h"
#include "verify/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

/* Shared memory of parent and child: the child's findings so far, and its position. */
typedef struct check_progress {
    doppel_verified found;
    int db;          /* a database; -1: before all of them */
    uint64_t number; /* in it; 0: its beginning */
} check_progress;

/* Findings reported per database; the rest are only counted. */
enum { MOST_FINDINGS = 100 };

typedef struct folder_check {
    int pipe;
    check_progress *place;
    dp_env env;
    MDB_txn *txn;
    dp_snapshot now;
    uint64_t *used; /* a bit for each page that something leads to */
    dp_store_state state;
    uint64_t reports; /* findings in this database */
    dp_hashmap bad;   /* numbers that are lost or incomplete */
} folder_check;

/* "records", ... */
static const char *database_name(int db) {
    static const char *const names[DP_DBS] = {"traces", "records", "sets", "texts", "links", "counts", "settings"};
    return names[db];
}

/* ---- findings, in the child ---- */

/* A finding, a sentence. */
__attribute__((format(printf, 2, 3))) static void report(folder_check *w, const char *format, ...) {
    char line[1024];
    va_list args;
    if (w->reports++ >= MOST_FINDINGS)
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

static void end_findings(folder_check *w, int db) {
    uint64_t more = w->reports > MOST_FINDINGS ? w->reports - MOST_FINDINGS : 0;
    w->reports = 0;
    if (more)
        report(w, "%" PRIu64 " more findings in the %s", more, database_name(db));
    w->reports = 0;
}

/* Marks a number that is lost or incomplete. */
static void mark_bad(folder_check *w, uint64_t number) {
    uint64_t *value = dp_hashmap_add(&w->bad, number);
    if (!value)
        _exit(1);
    *value = 1;
}

/* A finding on a number, which is marked. */
#define WRONG(w, number, ...)                       \
    do {                                            \
        char what_[300];                            \
        snprintf(what_, sizeof what_, __VA_ARGS__); \
        report_number(w, number, what_);            \
    } while (0)

/* Bytes of an id that are reported. */
#define MOST_ID ((size_t)200)

/* ---- looking up ---- */

/* A value with a valid checksum; false: there is none. */
static bool get(const folder_check *w, int part, uint64_t number, doppel_slice *bytes) {
    dp_page_value found;
    return !dp_btree_get(&w->now.pages, &w->now.db[part], number, &found) &&
           dp_value_open(&found.value, number, part, bytes);
}

static bool exists(const folder_check *w, int db, uint64_t number) {
    dp_page_value found;
    return !dp_btree_get(&w->now.pages, &w->now.db[db], number, &found);
}

/* The trace of a number; false: none that can be read. */
static bool get_trace(const folder_check *w, uint64_t number, dp_trace *trace) {
    doppel_slice bytes;
    return get(w, DP_PART_TRACE, number, &bytes) && dp_trace_decode(bytes, trace);
}

static bool get_record(const folder_check *w, uint64_t number, dp_record *record) {
    doppel_slice bytes;
    return get(w, DP_PART_RECORD, number, &bytes) && dp_record_decode(bytes, record);
}

/* With the id, where the record can be read. */
static void report_number(folder_check *w, uint64_t number, const char *what) {
    dp_record record;
    mark_bad(w, number);
    if (get_record(w, number, &record) && record.id.length)
        report(w, "number %" PRIu64 " (id %.*s): %s", number,
               (int)(record.id.length < MOST_ID ? record.id.length : MOST_ID), record.id.data, what);
    else
        report(w, "number %" PRIu64 ": %s", number, what);
}

/* ---- one value ---- */

static void check_trace(folder_check *w, uint64_t number, doppel_slice bytes) {
    dp_trace trace;
    if (!dp_trace_decode(bytes, &trace))
        WRONG(w, number, "its trace is malformed");
    else if (trace.number != number)
        WRONG(w, number, "its trace is that of number %" PRIu64, trace.number);
    else if (dp_trace_is_kept(&trace) && !exists(w, DP_PART_RECORD, number))
        WRONG(w, number, "its record is missing");
    else if (trace.kind != DP_TRACE_DOCUMENT && (!trace.of || trace.of >= number))
        WRONG(w, number, "its trace refers to number %" PRIu64 ", which came later", trace.of);
}

static void check_record(folder_check *w, uint64_t number, doppel_slice bytes) {
    dp_record record;
    if (!dp_record_decode(bytes, &record)) {
        WRONG(w, number, "its record is malformed");
        return;
    }
    if (record.set_count && !exists(w, DP_PART_SET, number))
        WRONG(w, number, "its set of features is missing");
    if (record.text_length && !exists(w, DP_PART_TEXT, number))
        WRONG(w, number, "its text is missing");
}

static void check_set(folder_check *w, uint64_t number, doppel_slice bytes) {
    dp_record record;
    if (get_record(w, number, &record) && record.sampled) {
        if (!dp_bottom_is_valid(bytes))
            WRONG(w, number, "its sample of features is malformed");
        else if (dp_bottom_count(bytes) != record.set_count)
            WRONG(w, number, "its sample is of %zu features, its record speaks of others", dp_bottom_count(bytes));
        return;
    }
    for (size_t at = 8; at + 8 <= bytes.length; at += 8)
        if (dp_load64(bytes.data + at) <= dp_load64(bytes.data + at - 8)) {
            WRONG(w, number, "its set of features is not in order");
            return;
        }
    if (bytes.length % 8 || (get_record(w, number, &record) && record.set_count != bytes.length / 8))
        WRONG(w, number, "its set has %zu features, its record speaks of others", bytes.length / 8);
}

static void check_text(folder_check *w, uint64_t number, doppel_slice bytes) {
    dp_record record;
    unsigned long long length = ZSTD_getFrameContentSize(bytes.data, bytes.length);
    if (length == ZSTD_CONTENTSIZE_ERROR || length == ZSTD_CONTENTSIZE_UNKNOWN)
        WRONG(w, number, "its text is not compressed as it should be");
    else if (get_record(w, number, &record) && record.text_length != length)
        WRONG(w, number, "its text has %llu bytes, its record speaks of %" PRIu64, length, record.text_length);
}

static void check_part(folder_check *w, int part, uint64_t number, const MDB_val *value) {
    static void (*const checks[DP_PARTS])(folder_check *, uint64_t, doppel_slice) = {check_trace, check_record,
                                                                                     check_set, check_text};
    doppel_slice bytes;
    if (!dp_value_open(value, number, part, &bytes))
        WRONG(w, number, "its %s is damaged, the checksum is wrong", dp_part_name((dp_part)part));
    else
        checks[part](w, number, bytes);
    if (part != DP_PART_TRACE && !exists(w, DP_PART_TRACE, number))
        WRONG(w, number, "has a %s, but no trace", dp_part_name((dp_part)part));
    if (number > w->state.last)
        WRONG(w, number, "is above the last number, %" PRIu64, w->state.last);
}

static void check_link_target(folder_check *w, uint64_t number, uint64_t copy) {
    dp_trace trace;
    if (!exists(w, DP_PART_TRACE, number))
        report(w, "number %" PRIu64 " has a link, but is not there", number);
    /* A damaged trace has been reported. */
    if (!exists(w, DP_PART_TRACE, copy))
        report(w, "number %" PRIu64 " has a link to number %" PRIu64 ", which is not there", number, copy);
    else if (get_trace(w, copy, &trace) && (trace.kind != DP_TRACE_COPY || trace.of != number))
        report(w, "number %" PRIu64 " has a link to number %" PRIu64 ", which is no copy of it", number, copy);
}

static void check_count(folder_check *w, uint64_t number, const MDB_val *value) {
    doppel_slice bytes;
    dp_counts counts;
    if (!dp_value_open(value, number, DP_SEED_COUNTS, &bytes) || !dp_counts_decode(bytes, &counts))
        report(w, "number %" PRIu64 ": the count of its duplicates is damaged, the checksum is wrong", number);
    if (!exists(w, DP_PART_TRACE, number))
        report(w, "duplicates of number %" PRIu64 " are counted, but it is not there", number);
}

/* ---- one database ---- */

typedef struct links_check {
    folder_check *walk;
    uint64_t original, seen;
} links_check;

static int check_link(uint64_t copy, void *user) {
    links_check *l = user;
    l->seen++;
    check_link_target(l->walk, l->original, copy);
    return 0;
}

static void check_entry(folder_check *w, int db, uint64_t number, const dp_page_value *found, links_check *l) {
    l->original = number;
    if (db < DP_PARTS)
        check_part(w, db, number, &found->value);
    else if (db == DP_DB_COUNTS)
        check_count(w, number, &found->value);
    else if (dp_dups_each(&w->now.pages, found, check_link, l, w->used))
        report(w, "number %" PRIu64 ": the list of its copies is damaged", number);
}

static void end_database(folder_check *w, int db, uint64_t damaged, uint64_t seen) {
    uint64_t entries = w->now.db[db].entries;
    if (damaged)
        report(w, "%" PRIu64 " page%s of the %s cannot be read", damaged, damaged == 1 ? "" : "s", database_name(db));
    if (entries != seen)
        report(w, "of %" PRIu64 " %s %" PRIu64 " can be read", entries, database_name(db), seen);
    /* Unreadable traces are lost, whatever their numbers. */
    if (db == DP_PART_TRACE)
        w->place->found.damaged += entries > seen ? entries - seen : damaged;
    end_findings(w, db);
}

static void walk_database(folder_check *w, int db) {
    dp_cursor cursor = {.used = w->used};
    dp_page_value found;
    links_check l = {.walk = w};
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

/* Whether all pages of a small database can be read, and none of them is used twice. */
static bool is_readable(const folder_check *w, const dp_btree *tree) {
    dp_cursor cursor = {.used = w->used};
    dp_page_value found;
    uint64_t number;
    int reason;
    dp_cursor_seek(&cursor, &w->now.pages, tree, 0);
    while (!(reason = dp_cursor_next(&cursor, &number, &found)))
        ;
    return reason == MDB_NOTFOUND;
}

/* The databases, `meta`, the free pages. */
static void check_pages(folder_check *w) {
    uint64_t checksum, free_pages;
    w->place->db = DP_DB_META;
    if (!is_readable(w, &w->now.db[DP_DB_META]))
        report(w, "a page of the settings cannot be read");
    if (!is_readable(w, &w->now.pages.meta.main))
        report(w, "the list of databases cannot be read");
    if (dp_free_check(&w->now.pages, &checksum, &free_pages, w->used))
        report(w, "the list of free pages is damaged, or has pages that are in use: nothing may be written");
    dp_note note;
    const dp_meta *meta = &w->now.pages.meta;
    if (dp_note_read(w->env.path, &note) && note.transaction == meta->transaction &&
        (note.meta != meta->checksum || (note.free && checksum && note.free != checksum)))
        report(w, "the list of free pages is not the one that the last commit left: nothing may be written");
    end_findings(w, DP_DB_META);
}

/* ---- all of it ---- */

/* Counts intact documents: every trace whose number is not marked. */
static void count_right(folder_check *w) {
    dp_cursor cursor = {0};
    dp_page_value value;
    doppel_verified *found = &w->place->found;
    uint64_t number;
    found->damaged += w->bad.count;
    dp_cursor_seek(&cursor, &w->now.pages, &w->now.db[DP_PART_TRACE], 0);
    for (int reason; (reason = dp_cursor_next(&cursor, &number, &value)) != MDB_NOTFOUND;) {
        dp_trace trace;
        if (reason || dp_hashmap_find(&w->bad, number) || !get_trace(w, number, &trace))
            continue;
        found->documents += trace.kind == DP_TRACE_DOCUMENT;
        found->copies += trace.kind == DP_TRACE_COPY;
        found->removed += dp_trace_is_removal(&trace);
    }
}

static void check_meta(folder_check *w) {
    doppel_slice settings;
    int reason = dp_meta_get(&w->now, DP_SEED_SETTINGS, &settings);
    if (reason)
        report(w, "the settings cannot be read: %s", mdb_strerror(reason));
    if (!(reason = dp_state_get(&w->now, &w->state)))
        return;
    report(w, "the last number and the clock cannot be read: %s", mdb_strerror(reason));
    w->state.last = UINT64_MAX;
}

/* Big enough for any file: dp_env_open uses less if it has to. */
#define MAP ((uint64_t)1 << 36)

static doppel_status open_generation(folder_check *w, const char *folder, uint64_t generation, doppel_error *error) {
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

/* If the folder is compacted at the same time, doppel.index names another file. */
static bool open_file(folder_check *w, const char *folder) {
    doppel_error error = {.code = DOPPEL_OK};
    dp_folder_index index;
    uint64_t named;
    doppel_status status;
    do {
        status = dp_folder_read_index(folder, &index, &error);
        DP_THEN(status, open_generation(w, folder, index.generation, &error));
    } while (status && !dp_folder_generation(folder, &named, NULL) && named != index.generation);
    if (status) {
        report(w, "%s: %s", error.file, error.message);
        return false;
    }
    if (index.format != dp_folder_format(&w->env.names))
        report(w, "doppel.index speaks of format %d, but there is %s secret for names", (int)index.format,
               w->env.names.keyed ? "a" : "no");
    return true;
}

/* Walks the file of a folder and writes findings to `pipe`. */
static void walk_folder(const char *folder, int pipe, check_progress *place) {
    folder_check w = {.pipe = pipe, .place = place};
    if (!open_file(&w, folder))
        return;
    int reason = dp_env_read_once(&w.env, &w.txn, &w.now);
    if (reason) {
        report(&w, "cannot be read: %s", mdb_strerror(reason));
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
    dp_hashmap_free(&w.bad);
    free(w.used);
}

typedef struct check_run {
    const char *path;
    void (*finding)(const char *what, void *user);
    void *user;
    uint64_t findings;
    char first[400]; /* the first finding */
} check_run;

static void tell(check_run *v, const char *what) {
    if (!v->findings++)
        snprintf(v->first, sizeof v->first, "%s", what);
    if (v->finding)
        v->finding(what, v->user);
}

/* ---- the child ---- */

static void run_child(const char *path, int pipe, check_progress *place) {
    const struct rlimit none = {0, 0};
    /* The handlers of the program are not meant for this process. */
    const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGPIPE};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal(deadly[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &none);
    walk_folder(path, pipe, place);
    _exit(0);
}

/* ---- the parent ---- */

static bool read_findings(check_run *v, int pipe) {
    dp_buffer line = {0};
    char block[4096];
    bool good = true;
    for (ssize_t got; good && (got = read(pipe, block, sizeof block)) != 0;) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        for (ssize_t i = 0; i < got && good; i++) {
            bool end = block[i] == '\n';
            good = dp_buffer_add(&line, end ? "" : &block[i], 1);
            if (good && end) {
                tell(v, line.data);
                line.size = 0;
            }
        }
    }
    dp_buffer_free(&line);
    return good;
}

static void report_death(check_run *v, int ended, check_progress *place) {
    char what[400], where[100] = "while it was opened";
    if (place->db >= 0)
        snprintf(where, sizeof where, "in its %s, behind number %" PRIu64, database_name(place->db), place->number);
    if (WIFSIGNALED(ended))
        snprintf(what, sizeof what, "the file is damaged %s: reading on ends the process (%s)", where,
                 strsignal(WTERMSIG(ended)));
    else
        snprintf(what, sizeof what, "the file is damaged %s: reading on ends the process (status %d)", where,
                 WEXITSTATUS(ended));
    place->found.damaged += !place->found.damaged;
    tell(v, what);
}

static doppel_status watch(check_run *v, check_progress *place, doppel_error *error) {
    int ends[2], ended = 0;
    if (pipe2(ends, O_CLOEXEC))
        return dp_env_fail(v->path, errno, error);
    pid_t child = fork();
    if (!child)
        run_child(v->path, ends[1], place);
    int reason = errno;
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return dp_env_fail(v->path, reason, error);
    }
    bool good = read_findings(v, ends[0]);
    close(ends[0]);
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR)
        ;
    if (!good)
        return dp_no_memory(error);
    if (ended)
        report_death(v, ended, place);
    return DOPPEL_OK;
}

/* Whether there is anything to walk. */
static doppel_status look(const char *path, doppel_error *error) {
    dp_folder_content content;
    uint64_t generation = 0;
    doppel_status status = dp_folder_look(path, &content, error);
    if (!status && content.missing)
        return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "there is no such folder");
    DP_THEN(status, dp_folder_generation(path, &generation, error));
    if (!status && !generation)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0,
                          "is not an index; make one with doppel add --index DIR INPUT...");
    return status;
}

doppel_status dp_store_check(const char *path, void (*finding)(const char *what, void *user), void *user,
                             doppel_verified *verified, doppel_error *error) {
    check_run v = {.path = path, .finding = finding, .user = user};
    *verified = (doppel_verified){0};
    DP_TRY(look(path, error));
    check_progress *place = mmap(NULL, sizeof *place, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
        return dp_no_memory(error);
    place->db = -1;
    doppel_status status = watch(&v, place, error);
    *verified = place->found;
    munmap(place, sizeof *place);
    if (status || !v.findings)
        return status;
    return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "%" PRIu64 " finding%s, the first: %s", v.findings,
                      v.findings == 1 ? "" : "s", v.first);
}
