/* fuzz_docx.c - any bytes as a Word document: it is read, or left out with a message. */
#include "fuzz.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file in memory, and a link to it whose name gives the format. */
static char path[64];
static int file;

static void remove_link(void) {
    unlink(path);
}

static void open_file(void) {
    char target[40];
    file = memfd_create("docx", 0);
    CHECK(file >= 0);
    snprintf(target, sizeof target, "/proc/self/fd/%d", file);
    snprintf(path, sizeof path, "/tmp/doppel-fuzz.%ld.docx", (long)getpid());
    unlink(path);
    CHECK(!symlink(target, path));
    atexit(remove_link);
}

enum { LIMIT = 1 << 16 };

static doppel_status take(void *state, const doppel_document *document, doppel_output *output) {
    (void)state, (void)output;
    CHECK(document->text.data && document->text.length <= LIMIT && !document->line);
    return DOPPEL_OK;
}

static void report(const doppel_error *what, void *user) {
    CHECK(what->message[0]);
    ++*(int *)user;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int reports = 0;
    const char *const paths[] = {path};
    doppel_input_counts counts;
    doppel_input_options options = {
        .size = sizeof options, .threads = 1, .max_record = LIMIT, .bad = report, .user = &reports};
    doppel_work work = {.document = take};
    if (!path[0])
        open_file();
    CHECK(!ftruncate(file, 0) && pwrite(file, data, size, 0) == (ssize_t)size);
    CHECK(!doppel_input_run(paths, 1, &options, &work, &counts, NULL));
    CHECK(counts.documents + counts.bad + counts.unopened == 1 && (counts.documents || reports));
    return 0;
}
