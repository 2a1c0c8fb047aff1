/* test_input_numbers.c - where records stand in their files, and the numbers that documents have in a second run. */
#include "input_runs.h"

#include <fcntl.h>
#include <unistd.h>

/* ---- positions ---- */

/* Writes whether the record stands where it is said to, or - for one without a position. */
static doppel_status check_position(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    char bytes[4096];
    const char *found = "-\n";
    if (d->record_at != DOPPEL_NO_POSITION) {
        int fd = open(d->file, O_RDONLY);
        ssize_t got = pread(fd, bytes, d->record.length, (off_t)d->record_at);
        close(fd);
        found = got == (ssize_t)d->record.length && !memcmp(bytes, d->record.data, d->record.length) ? "+" : "?";
        doppel_output_write(output, doppel_slice_of(found));
        found = d->file_number == 0 ? "0\n" : d->file_number == 1 ? "1\n" : "2\n";
    }
    return doppel_output_write(output, doppel_slice_of(found));
}

static void expect_positions(const char *const *paths, size_t count, const char *expected) {
    for (int i = 0; i < 40; i++) {
        dp_input_sizes sizes = {.block = 1 + (size_t)i * 3, .small_file = i & 4 ? 0 : 1 << 20, .batch_files = 3};
        doppel_input_options options = {.threads = 1 + i % 3};
        result kept = {0};
        doppel_work work = {.user = &kept, .document = check_position, .emit = collect};
        result r =
            run_job((dp_input_job){.paths = paths, .path_count = count, .sizes = &sizes, .work = &work}, &options);
        assert_int_equal(r.status, DOPPEL_OK);
        dp_buffer_add(&kept.output, "", 1);
        assert_string_equal(kept.output.data, expected);
        free_result(&r);
        free_result(&kept);
    }
}

static void a_record_stands_where_its_position_says(void **state) {
    (void)state;
    const char *paths[] = {"a.jsonl", "b.jsonl", "c.jsonl"};
    write_text(paths[0],
               "\xEF\xBB\xBF{\"text\":\"mark\"}\r\n\n  \n{\"text\":\"b\xFF\"}\nbad\n {\"text\":\"spaces\"} \r\n");
    write_text(paths[1], "");
    write_text(paths[2], "{\"text\":\"one\"}\n{\"text\":\"the last line has no end\"}");
    expect_positions(paths, 3, "+0\n+0\n+0\n+2\n+2\n");
}

static void other_files_give_no_positions(void **state) {
    (void)state;
    const char *paths[] = {"a.jsonl.gz", "b.csv", "c.txt"};
    dp_buffer gzip = {0};
    add_gzip(&gzip, "{\"text\":\"packed\"}\n");
    write_bytes(paths[0], gzip.data, gzip.size);
    dp_buffer_free(&gzip);
    write_text(paths[1], "id,text\n1,row\n");
    write_text(paths[2], "plain");
    expect_positions(paths, 3, "-\n-\n-\n");
}

/* ---- numbers ---- */

/* Records of many lengths, some bad, from a number on. */
static void add_records(dp_buffer *to, int first, int count) {
    for (int i = first; i < first + count; i++)
        if (i % 7 == 3)
            dp_buffer_printf(to, "bad %d\n", i);
        else
            dp_buffer_printf(to, "{\"id\":%d,\"text\":\"%*s\"}\n", i, i * 31 % 200, "x");
}

static const char *const inputs[] = {"big.jsonl", "packed.jsonl.gz", "small"};
enum { INPUTS = 3 };

static void write_inputs(void) {
    dp_buffer text = {0}, gzip = {0};
    add_records(&text, 1, 300);
    write_bytes(inputs[0], text.data, text.size);
    for (int i = 0; i < 9; i++) {
        text.size = 0;
        add_records(&text, 301 + i * 30, 30);
        dp_buffer_add(&text, "", 1);
        add_gzip(&gzip, text.data);
    }
    write_bytes(inputs[1], gzip.data, gzip.size);
    assert_int_equal(system("mkdir -p small"), 0);
    for (int i = 0; i < 9; i++) {
        char path[40];
        snprintf(path, sizeof path, "small/%d.jsonl", i);
        text.size = 0;
        add_records(&text, 1000 + i * 5, 5);
        write_bytes(path, text.data, text.size);
    }
    dp_buffer_free(&text);
    dp_buffer_free(&gzip);
}

static doppel_status write_id(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    doppel_output_write(output, d->id);
    return doppel_output_write(output, doppel_slice_of("\n"));
}

static doppel_status write_number(void *state, uint64_t number, const doppel_document *d, doppel_output *output) {
    char text[40];
    (void)state;
    snprintf(text, sizeof text, "%llu %.*s\n", (unsigned long long)number, (int)d->id.length, d->id.data);
    return doppel_output_write(output, doppel_slice_of(text));
}

static bool is_third(void *state, uint64_t number) {
    (void)state;
    return number % 3 == 0;
}

/* One run over the inputs; what was emitted is in `output`. */
static result run_inputs(dp_input_job job, int threads, dp_buffer *output) {
    result kept = {0};
    doppel_input_options options = {.threads = threads};
    doppel_work work = {.user = &kept, .document = write_id, .emit = collect};
    job.paths = inputs;
    job.path_count = INPUTS;
    job.work = &work;
    result r = run_job(job, &options);
    dp_buffer_add(&kept.output, "", 1);
    *output = kept.output;
    return r;
}

/* What a second run should write of the ids of the first: every `step`-th, with its number. */
static void add_numbers(const char *ids, int step, dp_buffer *to) {
    for (int number = 0; *ids; number++) {
        int length = (int)strcspn(ids, "\n");
        if (number % step == 0)
            dp_buffer_printf(to, "%d %.*s\n", number, length, ids);
        ids += length + 1;
    }
    dp_buffer_add(to, "", 1);
}

static void a_second_run_knows_the_numbers(void **state) {
    (void)state;
    write_inputs();
    for (int i = 0; i < 48; i++) {
        dp_input_sizes sizes = {.block = 1 + (size_t)(i * i) * 3,
                                .small_file = i & 1 ? 2000 : 0,
                                .batch_files = 1 + (size_t)i % 5,
                                .pending = i & 2 ? 100 : 1 << 20};
        dp_input_units units = {0};
        dp_input_numbered numbered = {&units, i & 4 ? is_third : NULL, write_number};
        dp_buffer ids, numbers, expected = {0};
        result first = run_inputs((dp_input_job){.sizes = &sizes, .units = &units}, 1 + i % 4, &ids);
        result second = run_inputs((dp_input_job){.sizes = &sizes, .numbered = &numbered}, 1 + i / 4 % 4, &numbers);
        assert_int_equal(second.status, DOPPEL_OK);
        assert_int_equal(units.documents, first.counts.documents);
        assert_memory_equal(&first.counts, &second.counts, sizeof first.counts);
        add_numbers(ids.data, i & 4 ? 3 : 1, &expected);
        assert_string_equal(numbers.data, expected.data);
        free_result(&first);
        free_result(&second);
        dp_buffer_free(&ids);
        dp_buffer_free(&numbers);
        dp_buffer_free(&expected);
        dp_input_units_free(&units);
    }
}

static void expect_changed(const dp_input_sizes *sizes, const dp_input_units *units) {
    for (int threads = 1; threads <= 4; threads++) {
        dp_input_numbered numbered = {units, NULL, write_number};
        dp_buffer numbers;
        result r = run_inputs((dp_input_job){.sizes = sizes, .numbered = &numbered}, threads, &numbers);
        assert_int_equal(r.status, DOPPEL_ERROR_INPUT);
        assert_string_equal(r.error.message, DP_WHY_CHANGED);
        free_result(&r);
        dp_buffer_free(&numbers);
    }
}

static void a_second_run_fails_when_the_inputs_have_changed(void **state) {
    (void)state;
    dp_input_sizes sizes = {.block = 700, .small_file = 2000, .batch_files = 4, .pending = 1 << 20};
    dp_input_units units = {0};
    dp_buffer ids;
    static const char *const changes[] = {"echo '{\"text\":\"more\"}' >>big.jsonl",
                                          "sed -i 5d big.jsonl",
                                          "sed -i '1s/.*/bad/' big.jsonl",
                                          "rm big.jsonl",
                                          "rm small/8.jsonl",
                                          "echo '{\"text\":\"more\"}' >small/x.jsonl",
                                          "rm -r small/*"};
    write_inputs();
    result first = run_inputs((dp_input_job){.sizes = &sizes, .units = &units}, 2, &ids);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        assert_int_equal(system(changes[i]), 0);
        expect_changed(&sizes, &units);
        write_inputs();
        assert_int_equal(system("rm -f small/x.jsonl"), 0);
    }
    free_result(&first);
    dp_buffer_free(&ids);
    dp_input_units_free(&units);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_record_stands_where_its_position_says),
        TEST(other_files_give_no_positions),
        TEST(a_second_run_knows_the_numbers),
        TEST(a_second_run_fails_when_the_inputs_have_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
