/* fuzz_warc.c - any bytes as a web archive. However it is cut into blocks and given to threads, the same documents and
 * reports come out; with a low limit of records nothing breaks. The first byte chooses the name and how it is cut. */
#include "fuzz.h"

#include "input/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void write_string(doppel_output *output, const char *text, size_t length) {
    CHECK(text || !length);
    CHECK(!doppel_output_json(output, text ? text : "", length) && !doppel_output_write(output, "\n", 1));
}

static doppel_status take(void *state, const doppel_document *document, doppel_output *output) {
    (void)state;
    CHECK(document->line && !document->record && document->id_length && document->text);
    CHECK(!document->alias || (!document->html && !document->text_length));
    write_string(output, document->id, document->id_length);
    write_string(output, document->text, document->text_length);
    write_string(output, document->url, document->url_length);
    write_string(output, document->html, document->html_length);
    write_string(output, document->alias, document->alias_length);
    write_string(output, document->charset, document->charset ? strlen(document->charset) : 0);
    for (size_t i = 0; i < 2; i++)
        write_string(output, document->extra[i].data, document->extra[i].length);
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

/* Documents and reports of one run, and what is counted. */
typedef struct outcome {
    dp_buffer documents, reports;
    doppel_input_counts counts;
} outcome;

static outcome run(const char *path, const dp_input_sizes *sizes, int threads, size_t max_record) {
    static const char *const keys[] = {"date", "Server"};
    outcome o = {{0}, {0}, {0}};
    doppel_input_options options = {.size = sizeof options,
                                    .threads = threads,
                                    .max_record = max_record,
                                    .bad = report,
                                    .user = &o.reports,
                                    .extra_keys = keys,
                                    .extra_count = 2};
    doppel_work work = {.user = &o.documents, .document = take, .emit = collect};
    dp_input_job job = {&path, 1, &options, &work, sizes};
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

/* Files whose names say what they hold: links to memory. */
static char paths[2][64];

static void remove_links(void) {
    unlink(paths[0]);
    unlink(paths[1]);
}

static int open_files(void) {
    char target[40];
    int file = memfd_create("archive", 0);
    CHECK(file >= 0);
    snprintf(target, sizeof target, "/proc/self/fd/%d", file);
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "/tmp/doppel-fuzz.%ld.%s", (long)getpid(), i ? "arc" : "warc");
        unlink(paths[i]);
        CHECK(!symlink(target, paths[i]));
    }
    atexit(remove_links);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int file;
    if (!file)
        file = open_files();
    if (!size)
        return 0;
    CHECK(!ftruncate(file, 0) && pwrite(file, data + 1, size - 1, 0) == (ssize_t)(size - 1));
    const char *path = paths[data[0] >> 7];
    const dp_input_sizes tiny = {1u + data[0] % 64, 0, 1, data[0] * 10};
    outcome usual = run(path, NULL, 1, 1 << 20), cut = run(path, &tiny, data[0] & 64 ? 2 : 1, 1 << 20);
    outcome low = run(path, &tiny, 1, 1u + data[0] % 64 * 8);
    CHECK(same(&usual.documents, &cut.documents) && same(&usual.reports, &cut.reports));
    CHECK(usual.counts.documents == cut.counts.documents && usual.counts.bad == cut.counts.bad);
    CHECK(usual.counts.repaired == cut.counts.repaired && usual.counts.unopened == cut.counts.unopened);
    free_outcome(&usual);
    free_outcome(&cut);
    free_outcome(&low);
    return 0;
}
