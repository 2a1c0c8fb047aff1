/* test_server_archive_faults.c - archives of several files while the n-th allocation, or opening of a file, fails, for
 * all n: the answer is a problem, or the same as without faults. */
#include "faults.h"

#include "server/service.h"

#include <sys/stat.h>

/* What comes of an archive: its files, those that are left out, and their bytes; or the status of a problem. */
typedef struct outcome {
    int status;
    size_t inputs;
    uint64_t left_out, received;
} outcome;

static char *read_archive(const char *name, size_t *length) {
    char path[100];
    snprintf(path, sizeof path, "fuzz/seeds/fuzz_archive/%s", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *length = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*length);
    assert_int_equal(fread(bytes, 1, *length, file), *length);
    fclose(file);
    return bytes;
}

static bool take(request *r, file_run *run, const char *bytes, size_t length) {
    archive *a = archive_create(r, run);
    if (!a)
        return false; /* upload_begin answers it */
    bool fine = archive_take(a, bytes, length) && archive_end(a);
    archive_free(a);
    assert_true(fine != r->done);
    return fine;
}

/* Takes an archive, with faults of these kinds. */
static outcome take_archive(const char *name, int kinds) {
    service s = {.options = {.max_run = 1 << 20, .max_ratio = 10}};
    file_run run = {.all = &s.runs, .several = true, .file = -1};
    request r = {.service = &s, .status = 503};
    char folder[] = "/tmp/doppel-test-XXXXXX", path[sizeof folder + 8];
    size_t length;
    char *bytes = read_archive(name, &length);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/input/", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    run.path = path;
    pthread_mutex_init(&s.runs.lock, NULL);
    pthread_cond_init(&s.runs.change, NULL);
    faults.kinds = kinds;
    bool fine = take(&r, &run, bytes + 1, length - 1);
    faults.kinds = 0;
    outcome found = {.status = r.status};
    if (fine)
        found = (outcome){0, run.input_count, run.left_out.all, run.received};
    run_folder_remove(folder);
    run_unread_free(&run.left_out);
    for (size_t i = 0; i < run.input_count; i++)
        free(run.inputs[i]);
    free(run.inputs);
    free(run.fields_path);
    text_free(&r.answer);
    free(bytes);
    return found;
}

/* Gives the number of faults. */
static size_t take_with_faults(const char *name, int kinds, bool go_on) {
    const outcome usual = take_archive(name, 0);
    for (size_t n = 1;; n++) {
        faults.calls = 0;
        faults.fail_at = n;
        faults.go_on = go_on;
        outcome found = take_archive(name, kinds);
        bool same = found.status == usual.status && found.inputs == usual.inputs && found.left_out == usual.left_out &&
                    found.received == usual.received;
        if (found.status != 503 && !same)
            fail_msg("%s: status %d, %zu inputs, %ju left out, %ju bytes after fault %zu", name, found.status,
                     found.inputs, (uintmax_t)found.left_out, (uintmax_t)found.received, n);
        if (faults.calls < n)
            return n - 1;
    }
}

static const char *const archives[] = {"ustar",      "ustar_prefix", "gnu_long", "pax_long", "pax_empty", "names",
                                       "compressed", "dense",        "links",    "twice",    "word"};

static void memory_that_is_missing(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof archives / sizeof *archives; i++) {
        assert_true(take_with_faults(archives[i], MEMORY, false) > 0);
        take_with_faults(archives[i], MEMORY, true);
    }
}

static void files_that_cannot_be_made(void **state) {
    (void)state;
    size_t met = 0;
    for (size_t i = 0; i < sizeof archives / sizeof *archives; i++)
        met += take_with_faults(archives[i], FILES, false);
    assert_true(met > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_is_missing),
        cmocka_unit_test(files_that_cannot_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
