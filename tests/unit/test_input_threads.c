/* test_input_threads.c - every number of threads gives the same, in order; what ends a run. */
#include "input_runs.h"

#include <sys/stat.h>

/* ---- threads, order, ends ---- */

/* 20,000 records, every 37th bad, in one file. */
static void write_corpus(const char *path) {
    FILE *file = fopen(path, "wb");
    for (int i = 1; i <= 20000; i++) {
        if (i % 37)
            fprintf(file, "{\"id\":%d,\"text\":\"%*s\"}\n", i, i % 300, "x");
        else
            fprintf(file, "{\"id\":%d}\n", i);
    }
    fclose(file);
}

static void every_thread_count_gives_the_same(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    dp_input_sizes sizes = {.block = 5000, .small_file = 0, .batch_files = 1, .pending = 1 << 20};
    write_corpus(path);
    result first = {0};
    for (int threads = 1; threads <= 8; threads++) {
        doppel_input_options options = {.threads = threads};
        /* Some with so little room that units have to wait for their turn in between. */
        sizes.pending = threads % 2 ? 1000 : 1 << 20;
        result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes}, &options);
        assert_int_equal(r.counts.documents, 20000 - 20000 / 37);
        assert_int_equal(r.counts.bad, 20000 / 37);
        if (threads == 1) {
            first = r;
            continue;
        }
        assert_string_equal(r.output.data, first.output.data);
        assert_string_equal(r.reports.data, first.reports.data);
        free_result(&r);
    }
    free_result(&first);
}

static void strict_stops_at_the_first_bad_record(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    dp_input_sizes sizes = {.block = 500, .small_file = 0, .batch_files = 1, .pending = 1 << 20};
    write_corpus(path);
    for (int threads = 1; threads <= 4; threads += 3) {
        doppel_input_options options = {.threads = threads, .strict = true};
        result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes}, &options);
        assert_int_equal(r.status, DOPPEL_ERROR_INPUT);
        assert_int_equal(r.error.line, 37);
        assert_string_equal(r.error.file, path);
        assert_string_equal(
            r.reports.data,
            "a.jsonl:37: has no field \"text\" or \"html\"; --text-key KEY names the field with the text\n");
        assert_int_equal(r.counts.documents, 36);
        free_result(&r);
    }
}

static void strict_stops_at_a_missing_file(void **state) {
    (void)state;
    const char *paths[] = {"missing", "a"};
    doppel_input_options options = {.strict = true};
    write_text("a", "1");
    result r = run_paths(paths, 2, &options);
    assert_int_equal(r.status, DOPPEL_ERROR_INPUT);
    assert_string_equal(r.output.data, "");
    free_result(&r);
}

static doppel_status fail_at_100(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    if (d->line == 100)
        return DOPPEL_ERROR_STORE;
    doppel_output_write(output, d->id);
    return doppel_output_write(output, doppel_slice_of("\n"));
}

static void a_failing_document_ends_the_run_in_its_turn(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    dp_input_sizes sizes = {.block = 500, .small_file = 0, .batch_files = 1, .pending = 1 << 20};
    write_corpus(path);
    for (int threads = 1; threads <= 4; threads += 3) {
        result kept = {0};
        doppel_input_options options = {.threads = threads};
        doppel_work work = {.user = &kept, .document = fail_at_100, .emit = collect};
        result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes, .work = &work}, &options);
        dp_buffer_add(&kept.output, "", 1);
        assert_int_equal(r.status, DOPPEL_ERROR_STORE);
        assert_int_equal(r.error.line, 100);
        const char *last = strstr(kept.output.data, "\n99\n");
        assert_true(last && !last[4]);
        free_result(&r);
        free_result(&kept);
    }
}

static doppel_status refuse(void *user, doppel_slice bytes) {
    (void)user;
    (void)bytes.data;
    (void)bytes.length;
    return DOPPEL_ERROR_IO;
}

static void a_failing_emit_ends_the_run(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    dp_input_sizes sizes = {.block = 500, .small_file = 0, .batch_files = 1, .pending = 100};
    write_corpus(path);
    for (int threads = 1; threads <= 4; threads += 3) {
        doppel_input_options options = {.threads = threads};
        doppel_work work = {.document = write_document, .emit = refuse};
        result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes, .work = &work}, &options);
        assert_int_equal(r.status, DOPPEL_ERROR_IO);
        free_result(&r);
    }
}

static volatile int stop;

static doppel_status stop_at_50(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    (void)output;
    if (d->line == 50)
        stop = 1;
    return DOPPEL_OK;
}

static void the_stop_flag_interrupts(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    doppel_input_options options = {.threads = 1, .stop = &stop};
    doppel_work work = {.document = stop_at_50};
    stop = 0;
    write_corpus(path);
    result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .work = &work}, &options);
    assert_int_equal(r.status, DOPPEL_ERROR_INTERRUPTED);
    assert_true(r.counts.documents < 20000);
    free_result(&r);
}

static doppel_status begin(void *user, void **state) {
    *state = calloc(1, 1);
    (void)user;
    return *state ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static void end(void *user, void *state) {
    (void)user;
    free(state);
}

static doppel_status check_state(void *state, const doppel_document *d, doppel_output *output) {
    (void)d;
    (void)output;
    *(char *)state = 1;
    return DOPPEL_OK;
}

static void every_thread_has_a_state_of_its_own(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    doppel_input_options options = {.size = sizeof options, .threads = 4};
    doppel_work work = {.begin = begin, .document = check_state, .end = end};
    doppel_input_counts counts;
    write_corpus(path);
    assert_int_equal(doppel_input_run(&path, 1, &options, &work, &counts, NULL), DOPPEL_OK);
    assert_int_equal(counts.documents, 20000 - 20000 / 37);
}

static uint64_t shown_bytes, shown_total;

static void show(uint64_t bytes, uint64_t total, uint64_t documents, void *user) {
    (void)documents;
    (void)user;
    shown_bytes = bytes;
    shown_total = total;
}

static void progress_ends_at_the_total(void **state) {
    (void)state;
    const char *paths[] = {"a.jsonl", "b.txt", "f"};
    doppel_input_options options = {.threads = 2, .progress = show};
    struct stat status;
    write_corpus("a.jsonl");
    write_text("b.txt", "text");
    assert_int_equal(mkdir("f", 0755), 0);
    write_text("f/c.txt", "more text");
    result r = run_paths(paths, 3, &options);
    assert_int_equal(stat("a.jsonl", &status), 0);
    assert_int_equal(shown_total, status.st_size + 4 + 9);
    assert_int_equal(shown_bytes, shown_total);
    free_result(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_thread_count_gives_the_same),   TEST(strict_stops_at_the_first_bad_record),
        TEST(strict_stops_at_a_missing_file),      TEST(a_failing_document_ends_the_run_in_its_turn),
        TEST(a_failing_emit_ends_the_run),         TEST(the_stop_flag_interrupts),
        TEST(every_thread_has_a_state_of_its_own), TEST(progress_ends_at_the_total),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
