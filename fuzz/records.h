/* records.h - what fuzz targets of record formats share: any bytes as a file of a format. However the input is cut into
 * blocks and given to threads, the same documents and reports come out in the same order, and their text is UTF-8. The
 * first byte of the input chooses how it is cut. */
#ifndef FUZZ_RECORDS_H
#define FUZZ_RECORDS_H

#include "fuzz.h"

#include "input/input.h"
#include "input/utf8.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_utf8(const char *text, size_t length) {
    for (const char *p = text, *end = text + length; p < end;) {
        bool valid;
        p += dp_utf8_sequence(p, end, &valid);
        CHECK(valid);
    }
}

static void write_bytes(doppel_output *output, const char *bytes, size_t length) {
    CHECK(!doppel_output_write(output, bytes ? bytes : "(none)", bytes ? length : 6));
    CHECK(!doppel_output_write(output, "\n", 1));
}

static void write_text(doppel_output *output, const char *text, size_t length) {
    check_utf8(text ? text : "", length);
    write_bytes(output, text, length);
}

static doppel_status take(void *state, const doppel_document *document, doppel_output *output) {
    (void)state;
    CHECK(document->line && document->text && document->id_length);
    write_text(output, document->id, document->id_length);
    write_text(output, document->text, document->text_length);
    write_text(output, document->url, document->url_length);
    write_text(output, document->title, document->title_length);
    write_text(output, document->extra->data, document->extra->length);
    write_bytes(output, document->html, document->html_length);
    return DOPPEL_OK;
}

static doppel_status collect(void *user, const char *bytes, size_t length) {
    CHECK(dp_buffer_add(user, bytes, length));
    return DOPPEL_OK;
}

static void report(const doppel_error *what, void *user) {
    CHECK(what->message[0]);
    CHECK(dp_buffer_printf(user, "%d %llu %s\n", (int)what->code, (unsigned long long)what->line, what->message));
}

/* Documents and reports of one run. */
typedef struct outcome {
    dp_buffer documents, reports;
    doppel_input_counts counts;
} outcome;

static outcome run(const char *path, const dp_input_sizes *sizes, int threads) {
    outcome o = {{0}, {0}, {0}};
    static const char *const extra[] = {"date"};
    doppel_input_options options = {.size = sizeof options,
                                    .threads = threads,
                                    .max_record = 4000,
                                    .bad = report,
                                    .user = &o.reports,
                                    .extra_keys = extra,
                                    .extra_count = 1};
    doppel_work work = {.user = &o.documents, .document = take, .emit = collect};
    dp_input_job job = {&path, 1, &options, &work, sizes};
    doppel_error error;
    CHECK(!dp_input_run(&job, &o.counts, &error));
    return o;
}

static bool same(const dp_buffer *a, const dp_buffer *b) {
    return a->size == b->size && (!a->size || !memcmp(a->data, b->data, a->size));
}

/* A file in memory, and a link to it whose name says what it holds. */
static char path[64];
static int file;

static void remove_link(void) {
    unlink(path);
}

static void open_file(const char *ending) {
    char target[40];
    file = memfd_create("records", 0);
    CHECK(file >= 0);
    snprintf(target, sizeof target, "/proc/self/fd/%d", file);
    snprintf(path, sizeof path, "/tmp/doppel-fuzz.%ld%s", (long)getpid(), ending);
    unlink(path);
    CHECK(!symlink(target, path));
    atexit(remove_link);
}

/* One input, as a file whose name ends so. */
static int try_input(const uint8_t *data, size_t size, const char *ending) {
    if (!path[0])
        open_file(ending);
    if (!size)
        return 0;
    CHECK(!ftruncate(file, 0) && pwrite(file, data + 1, size - 1, 0) == (ssize_t)(size - 1));
    const dp_input_sizes tiny = {1u + data[0] % 64, data[0] & 128 ? 0 : 1 << 20, 1 + data[0] % 3, data[0] * 10};
    outcome usual = run(path, NULL, 1), cut = run(path, &tiny, data[0] & 64 ? 2 : 1);
    CHECK(same(&usual.documents, &cut.documents) && same(&usual.reports, &cut.reports));
    CHECK(usual.counts.documents == cut.counts.documents && usual.counts.bad == cut.counts.bad);
    CHECK(usual.counts.repaired == cut.counts.repaired && usual.counts.unopened == cut.counts.unopened);
    for (int i = 0; i < 2; i++) {
        dp_buffer_free(i ? &cut.documents : &usual.documents);
        dp_buffer_free(i ? &cut.reports : &usual.reports);
    }
    return 0;
}

#endif
