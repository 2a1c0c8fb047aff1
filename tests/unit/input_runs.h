/* input_runs.h - what the tests of lib/input share: files in a folder of a test's own, and runs over them.
 *
 * The work of a run writes a line for each document: id|text|url|title. */
#ifndef TESTS_INPUT_RUNS_H
#define TESTS_INPUT_RUNS_H

#include "work_folder.h"

#include "input/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

/* ---- files ---- */

static inline void write_bytes(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static inline void write_text(const char *path, const char *text) {
    write_bytes(path, text, strlen(text));
}

static inline void add_gzip(dp_buffer *to, const char *text) {
    z_stream z = {0};
    char out[1 << 16];
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)strlen(text);
    z.next_out = (Bytef *)out;
    z.avail_out = sizeof out;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_true(dp_buffer_add(to, out, sizeof out - z.avail_out));
    deflateEnd(&z);
}

static inline void add_zstd(dp_buffer *to, const char *text) {
    char out[1 << 16];
    size_t size = ZSTD_compress(out, sizeof out, text, strlen(text), 3);
    assert_false(ZSTD_isError(size));
    assert_true(dp_buffer_add(to, out, size));
}

/* ---- runs ---- */

typedef struct result {
    dp_buffer output, reports;
    doppel_input_counts counts;
    doppel_status status;
    doppel_error error;
} result;

static inline doppel_status write_document(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    doppel_output_write(output, d->id);
    doppel_output_write(output, doppel_slice_of("|"));
    doppel_output_write(output, d->text);
    doppel_output_write(output, doppel_slice_of("|"));
    doppel_output_write(output, d->url);
    doppel_output_write(output, doppel_slice_of("|"));
    doppel_output_write(output, d->title);
    return doppel_output_write(output, doppel_slice_of("\n"));
}

static inline doppel_status collect(void *user, doppel_slice bytes) {
    return dp_buffer_add(&((result *)user)->output, bytes.data, bytes.length) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static inline void report(const doppel_error *what, void *user) {
    dp_buffer_printf(&((result *)user)->reports, "%s:%llu: %s%s\n", what->file, (unsigned long long)what->line,
                     what->code == DOPPEL_OK ? "repaired: " : "", what->message);
}

static inline result run_job(dp_input_job job, const doppel_input_options *given) {
    result r = {0};
    doppel_input_options options = given ? *given : (doppel_input_options){0};
    doppel_work work = {.user = &r, .document = write_document, .emit = collect};
    options.size = sizeof options;
    options.bad = report;
    options.user = &r;
    job.options = &options;
    if (!job.work)
        job.work = &work;
    r.status = dp_input_run(&job, &r.counts, &r.error);
    dp_buffer_add(&r.output, "", 1);
    dp_buffer_add(&r.reports, "", 1);
    return r;
}

static inline result run_paths(const char *const *paths, size_t count, const doppel_input_options *options) {
    return run_job((dp_input_job){.paths = paths, .path_count = count}, options);
}

static inline result run_path(const char *path) {
    return run_paths(&path, 1, NULL);
}

static inline void free_result(result *r) {
    dp_buffer_free(&r->output);
    dp_buffer_free(&r->reports);
}

/* Runs over one path, and compares output and reports. */
static inline void check(const char *path, const char *output, const char *reports) {
    result r = run_path(path);
    assert_int_equal(r.status, DOPPEL_OK);
    assert_string_equal(r.output.data, output);
    assert_string_equal(r.reports.data, reports);
    free_result(&r);
}

/* Reads a file of `size` bytes cut into blocks of every size, as a big file and as a small one, with one thread and
 * with several: it gives what it gave as a whole. */
static inline void check_every_cut(const char *path, size_t size, const doppel_input_options *given,
                                   const result *whole) {
    for (size_t block = 1; block < size + 3; block++)
        for (int variant = 0; variant < 4; variant++) {
            dp_input_sizes sizes = {block, variant & 1 ? 1 << 20 : 0, 2, 1 << 20};
            doppel_input_options options = *given;
            options.threads = variant & 2 ? 4 : 1;
            result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes}, &options);
            assert_string_equal(r.output.data, whole->output.data);
            assert_string_equal(r.reports.data, whole->reports.data);
            assert_int_equal(r.counts.documents, whole->counts.documents);
            free_result(&r);
        }
}

#endif
