/* fuzz_jsonl.c - any bytes as lines of JSON. However the input is cut into blocks and given to threads, the same
 * documents come out in the same order, their text is UTF-8, and every line is accounted for. The first byte chooses
 * how it is cut. */
#include "fuzz.h"

#include "input/input.h"
#include "input/json.h"
#include "input/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_utf8(const char *text, size_t length) {
    for (const char *p = text, *end = text + length; p < end;) {
        bool valid;
        p += dp_utf8_sequence(p, end, &valid);
        CHECK(valid);
    }
}

static void write_string(doppel_output *output, const char *text, size_t length) {
    CHECK(!doppel_output_json(output, text ? text : "", length) && !doppel_output_write(output, "\n", 1));
}

static doppel_status take(void *state, const doppel_document *document, doppel_output *output) {
    (void)state;
    check_utf8(document->text, document->text_length);
    check_utf8(document->id, document->id_length);
    CHECK(document->line && document->record);
    write_string(output, document->id, document->id_length);
    write_string(output, document->text, document->text_length);
    write_string(output, document->url, document->url_length);
    write_string(output, document->title, document->title_length);
    write_string(output, document->record, document->record_length);
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
    doppel_input_options options = {
        .size = sizeof options, .threads = threads, .max_record = 4000, .bad = report, .user = &o.reports};
    doppel_work work = {.user = &o.documents, .document = take, .emit = collect};
    dp_input_job job = {&path, 1, &options, &work, sizes};
    doppel_error error;
    CHECK(!dp_input_run(&job, &o.counts, &error));
    return o;
}

static bool same(const dp_buffer *a, const dp_buffer *b) {
    return a->size == b->size && (!a->size || !memcmp(a->data, b->data, a->size));
}

/* A file whose name says that it holds lines of JSON: a link to memory. */
static const char *open_file(int *file) {
    static char path[64];
    char target[40];
    *file = memfd_create("lines", 0);
    CHECK(*file >= 0);
    snprintf(target, sizeof target, "/proc/self/fd/%d", *file);
    snprintf(path, sizeof path, "/tmp/doppel-fuzz.%ld.jsonl", (long)getpid());
    unlink(path);
    CHECK(!symlink(target, path));
    return path;
}

static const char *path;

static void remove_link(void) {
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int file;
    if (!path) {
        path = open_file(&file);
        atexit(remove_link);
    }
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
