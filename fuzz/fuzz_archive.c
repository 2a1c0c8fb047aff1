/* fuzz_archive.c - any bytes as the tar archive of a run, first in pieces of as many bytes as the very first byte says,
 * then in one piece. Both end alike: with the same files, or with a problem. What is stored is below the folder of the
 * run, under the names that are said to be read. */
#include "fuzz.h"

#include "server/service.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST = 1 << 20 }; /* --max-run */

/* A run without a thread, and the request that sends its files. */
typedef struct sent {
    service service;
    file_run run;
    request request;
    bool fine;
} sent;

static void begin(sent *s, const char *folder) {
    *s = (sent){.service.options = {.max_run = MOST, .max_ratio = 10}};
    s->run = (file_run){.all = &s->service.runs, .several = true, .file = -1};
    s->request = (request){.service = &s->service};
    CHECK(!pthread_mutex_init(&s->service.runs.lock, NULL) && !pthread_cond_init(&s->service.runs.change, NULL));
    CHECK(asprintf(&s->run.folder, "%s", folder) > 0 && asprintf(&s->run.path, "%s/input/", folder) > 0);
    CHECK(!mkdir(s->run.folder, 0700) && !mkdir(s->run.path, 0700));
}

static void end(sent *s) {
    file_run *run = &s->run;
    run_folder_remove(run->folder);
    run_unread_free(&run->left_out);
    for (size_t i = 0; i < run->input_count; i++)
        free(run->inputs[i]);
    free(run->inputs);
    free(run->fields_path);
    free(run->folder);
    free(run->path);
    text_free(&s->request.answer);
    pthread_cond_destroy(&s->service.runs.change);
    pthread_mutex_destroy(&s->service.runs.lock);
}

static void take(sent *s, const char *bytes, size_t length, size_t piece) {
    archive *a = archive_create(&s->request, &s->run);
    CHECK(a);
    s->fine = true;
    while (length && s->fine) {
        size_t now = length < piece ? length : piece;
        s->fine = archive_take(a, bytes, now);
        bytes += now;
        length -= now;
    }
    s->fine = s->fine && archive_end(a);
    archive_free(a);
    CHECK(s->fine != s->request.done);
}

/* Nothing is beside the folder that the files are in, and each of these belongs to an input. */
static void check_names(const sent *s) {
    size_t below = strlen(s->run.path);
    DIR *folder = opendir(s->run.folder);
    CHECK(folder);
    for (struct dirent *found; (found = readdir(folder));)
        CHECK(found->d_name[0] == '.' || !strcmp(found->d_name, "input"));
    closedir(folder);
    for (size_t i = 0; i < s->run.input_count; i++) {
        const char *input = s->run.inputs[i];
        CHECK(!strncmp(input, s->run.path, below) && input[below] && !strchr(input + below, '/'));
        CHECK(strcmp(input + below, ".") != 0 && strcmp(input + below, "..") != 0);
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(input, s->run.inputs[j]) != 0);
    }
    CHECK(!s->fine || s->run.input_count);
    CHECK(!s->fine || s->run.received <= MOST);
}

static void compare(const sent *a, const sent *b) {
    CHECK(a->fine == b->fine);
    if (!a->fine)
        return;
    CHECK(a->run.received == b->run.received && a->run.input_count == b->run.input_count);
    CHECK(a->run.left_out.all == b->run.left_out.all && a->run.left_out.count == b->run.left_out.count);
    for (size_t i = 0; i < a->run.left_out.count; i++)
        CHECK(!strcmp(a->run.left_out.item[i].why, b->run.left_out.item[i].why));
}

/* Where the folder of the run is. */
static char above[] = "/tmp/doppel-fuzz-XXXXXX";

static void remove_above(void) {
    run_folder_remove(above);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool made;
    sent pieces, whole;
    char folder[64];
    if (!size)
        return 0;
    if (!made)
        CHECK(mkdtemp(above) && !atexit(remove_above));
    made = true;
    snprintf(folder, sizeof folder, "%s/run", above);
    begin(&pieces, folder);
    take(&pieces, (const char *)data + 1, size - 1, data[0] ? data[0] : 65536);
    check_names(&pieces);
    run_folder_remove(folder);
    begin(&whole, folder);
    take(&whole, (const char *)data + 1, size - 1, SIZE_MAX);
    check_names(&whole);
    compare(&pieces, &whole);
    end(&pieces);
    end(&whole);
    return 0;
}
