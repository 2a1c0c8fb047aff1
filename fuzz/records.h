/* records.h - what fuzz targets of record formats share: any bytes as a file of a format. However the input is cut into
 * blocks and given to threads, the same documents and reports come out in the same order; with a low limit of records
 * nothing breaks. The first byte of the input chooses the file's name and how it is cut. */
#ifndef FUZZ_RECORDS_H
#define FUZZ_RECORDS_H

#include "fuzz.h"

#include "input/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { EXTRA = 2 };

typedef struct format {
    const char *ending[2]; /* of the file's name, one or the other */
    size_t max_record;
    void (*check)(const doppel_document *document); /* what is true of every document */
    const char *format, *text_key;                  /* of doppel_input_options; may be NULL */
} format;

static inline void check_utf8(const char *text, size_t length) {
    for (const uint8_t *p = (const uint8_t *)(text ? text : ""), *end = p + length; p < end;) {
        bool whole;
        p += dp_utf8_extent(p, (size_t)(end - p), &whole);
        CHECK(whole);
    }
}

/* format.check of formats whose fields are all text. */
static inline void check_fields(const doppel_document *document) {
    CHECK(document->text.data && document->id.length);
    check_utf8(document->id.data, document->id.length);
    check_utf8(document->text.data, document->text.length);
    check_utf8(document->url.data, document->url.length);
    check_utf8(document->title.data, document->title.length);
    for (size_t i = 0; i < EXTRA; i++)
        check_utf8(document->extra[i].data, document->extra[i].length);
}

/* ---- one run ---- */

static void write_bytes(doppel_output *output, const char *bytes, size_t length) {
    CHECK(bytes || !length);
    CHECK(!doppel_output_write(output, (doppel_slice){bytes ? bytes : "(none)", bytes ? length : 6}));
    CHECK(!doppel_output_write(output, doppel_slice_of("\n")));
}

static const format *fuzzed;

static doppel_status take(void *state, const doppel_document *document, doppel_output *output) {
    (void)state;
    char place[64];
    CHECK(document->line);
    fuzzed->check(document);
    int length = snprintf(place, sizeof place, "%llu %llu", (unsigned long long)document->line,
                          (unsigned long long)document->record_at);
    write_bytes(output, place, (size_t)length);
    write_bytes(output, document->id.data, document->id.length);
    write_bytes(output, document->text.data, document->text.length);
    write_bytes(output, document->url.data, document->url.length);
    write_bytes(output, document->title.data, document->title.length);
    write_bytes(output, document->html.data, document->html.length);
    write_bytes(output, document->alias.data, document->alias.length);
    write_bytes(output, document->record.data, document->record.length);
    write_bytes(output, document->charset, document->charset ? strlen(document->charset) : 0);
    for (size_t i = 0; i < EXTRA; i++)
        write_bytes(output, document->extra[i].data, document->extra[i].length);
    return DOPPEL_OK;
}

static doppel_status collect(void *user, doppel_slice bytes) {
    CHECK(dp_buffer_add(user, bytes.data, bytes.length));
    return DOPPEL_OK;
}

static void report(const doppel_error *what, void *user) {
    CHECK(what->message[0]);
    CHECK(dp_buffer_printf(user, "%d %llu %s\n", (int)what->code, (unsigned long long)what->line, what->message));
}

/* Documents and reports of one run, and what is counted. */
typedef struct outcome {
    dp_buffer documents, reports;
    doppel_input_counts counts;
} outcome;

static outcome run(const char *path, const dp_input_sizes *sizes, int threads, size_t max_record) {
    static const char *const extra[EXTRA] = {"date", "Server"};
    outcome o = {{0}, {0}, {0}};
    doppel_input_options options = {.size = sizeof options,
                                    .threads = threads,
                                    .max_record = max_record,
                                    .format = fuzzed->format,
                                    .text_key = fuzzed->text_key,
                                    .bad = report,
                                    .user = &o.reports,
                                    .extra_keys = extra,
                                    .extra_count = EXTRA,
                                    .row_records = true};
    doppel_work work = {.user = &o.documents, .document = take, .emit = collect};
    dp_input_job job = {.paths = &path, .path_count = 1, .options = &options, .work = &work, .sizes = sizes};
    doppel_error error;
    CHECK(!dp_input_run(&job, &o.counts, &error));
    return o;
}

static void free_outcome(outcome *o) {
    dp_buffer_free(&o->documents);
    dp_buffer_free(&o->reports);
}

static bool same(const dp_buffer *a, const dp_buffer *b) {
    return a->size == b->size && (!a->size || !memcmp(a->data, b->data, a->size));
}

/* ---- one input ---- */

/* A file in memory, and links to it whose names give the format. */
static char paths[2][64];
static int file;

static void remove_links(void) {
    unlink(paths[0]);
    unlink(paths[1]);
}

static void open_file(void) {
    char target[40];
    file = memfd_create("records", 0);
    CHECK(file >= 0);
    snprintf(target, sizeof target, "/proc/self/fd/%d", file);
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "/tmp/doppel-fuzz.%ld.%d%s", (long)getpid(), i, fuzzed->ending[i]);
        unlink(paths[i]);
        CHECK(!symlink(target, paths[i]));
    }
    atexit(remove_links);
}

static int try_input(const uint8_t *data, size_t size, const format *as) {
    fuzzed = as;
    if (!paths[0][0])
        open_file();
    if (!size)
        return 0;
    CHECK(!ftruncate(file, 0) && pwrite(file, data + 1, size - 1, 0) == (ssize_t)(size - 1));
    const char *path = paths[data[0] >> 7];
    /* Some thousand blocks at most. */
    size_t block = (1u + data[0] % 64) * (1 + size / 4096);
    const dp_input_sizes tiny = {block, data[0] & 128 ? 0 : 1 << 20, 1 + data[0] % 3, data[0] * 10};
    outcome usual = run(path, NULL, 1, as->max_record), cut = run(path, &tiny, data[0] & 64 ? 2 : 1, as->max_record);
    outcome low = run(path, &tiny, 1, 1u + data[0] % 64 * 8);
    CHECK(same(&usual.documents, &cut.documents) && same(&usual.reports, &cut.reports));
    CHECK(usual.counts.documents == cut.counts.documents && usual.counts.bad == cut.counts.bad);
    CHECK(usual.counts.repaired == cut.counts.repaired && usual.counts.unopened == cut.counts.unopened);
    free_outcome(&usual);
    free_outcome(&cut);
    free_outcome(&low);
    return 0;
}

#endif
