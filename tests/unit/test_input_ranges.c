/* test_input_ranges.c - a file of lines that threads read by ranges of its bytes gives what it gives when it is read
 * from its start to its end: a file counts as small for that. */
#include "input_runs.h"

#include <unistd.h>

/* ---- random files ---- */

static void add_line(dp_buffer *to, uint64_t *seed) {
    static const char *const lines[] = {"",
                                        " \t ",
                                        "{",
                                        "[1]",
                                        "{\"id\":\"a\",\"text\":\"short\"}",
                                        "{\"text\":\"no id\"}",
                                        "bad",
                                        "\xFF\xFE",
                                        "{\"text\":7}",
                                        "\r",
                                        "{\"text\":\"inva\xFFlid\"}",
                                        " {\"text\":\"spaces\",\"id\":3} ",
                                        "PAR1",
                                        "\xEF\xBB\xBF{\"text\":\"mark\"}"};
    size_t which = random_below(seed, sizeof lines / sizeof *lines + 4);
    if (which < sizeof lines / sizeof *lines)
        dp_buffer_add(to, lines[which], strlen(lines[which]));
    else if (which % 4)
        dp_buffer_printf(to, "{\"title\":\"t\",\"text\":\"%*s\"}", (int)random_below(seed, 400), "long");
    else
        dp_buffer_add(to, "{\"text\":\"N\0UL\"}", 15);
    if (random_below(seed, 4) == 0)
        dp_buffer_add(to, "\r", 1);
    dp_buffer_add(to, "\n\n\n", random_below(seed, 9) ? 1 : 3);
}

static void write_random(const char *path, uint64_t *seed) {
    dp_buffer text = {0};
    size_t lines = random_below(seed, 25);
    if (random_below(seed, 4) == 0)
        dp_buffer_add(&text, "\xEF\xBB\xBF", 3);
    for (size_t i = 0; i < lines; i++)
        add_line(&text, seed);
    while (text.size && text.data[text.size - 1] == '\n' && random_below(seed, 2))
        text.size--;
    write_bytes(path, text.data ? text.data : "", text.size);
    dp_buffer_free(&text);
}

static doppel_status write_all(void *state, const doppel_document *d, doppel_output *output) {
    char place[80];
    snprintf(place, sizeof place, "%s:%llu at %llu: ", d->file, (unsigned long long)d->line,
             (unsigned long long)d->record_at);
    doppel_output_write(output, doppel_slice_of(place));
    doppel_output_write(output, d->record);
    return write_document(state, d, output);
}

typedef struct cutting {
    size_t block, max_record;
    bool ranges, refuse;
    int threads;
} cutting;

static result run_cut(const char *path, const cutting *cut, dp_buffer *output) {
    result kept = {0};
    dp_input_sizes sizes = {cut->block, cut->ranges ? 0 : (size_t)1 << 30, 1, cut->threads == 3 ? 50 : 1 << 20};
    doppel_input_options options = {.threads = cut->threads, .max_record = cut->max_record, .refuse_bad = cut->refuse};
    doppel_work work = {.user = &kept, .document = write_all, .emit = collect};
    result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes, .work = &work}, &options);
    *output = kept.output;
    dp_buffer_add(output, "", 1);
    return r;
}

static void expect_same(const char *path, cutting cut) {
    dp_buffer documents, expected;
    cut.ranges = true;
    result by_ranges = run_cut(path, &cut, &documents);
    cut.ranges = false;
    result whole = run_cut(path, &cut, &expected);
    assert_int_equal(by_ranges.status, whole.status);
    assert_int_equal(documents.size, expected.size);
    assert_memory_equal(documents.data, expected.data, expected.size);
    assert_string_equal(by_ranges.reports.data, whole.reports.data);
    assert_memory_equal(&by_ranges.counts, &whole.counts, sizeof whole.counts);
    assert_string_equal(by_ranges.error.message, whole.error.message);
    free_result(&by_ranges);
    free_result(&whole);
    dp_buffer_free(&documents);
    dp_buffer_free(&expected);
}

static void ranges_give_what_the_whole_file_gives(void **state) {
    (void)state;
    uint64_t seed = 11;
    for (int i = 0; i < (full_suite() ? 20000 : 800); i++) {
        write_random("a.jsonl", &seed);
        cutting cut = {.block = 1 + random_below(&seed, random_below(&seed, 2) ? 20 : 500),
                       .max_record = random_below(&seed, 2) ? 1 + random_below(&seed, 300) : 0,
                       .refuse = random_below(&seed, 2),
                       .threads = 1 + i % 4};
        expect_same("a.jsonl", cut);
    }
}

/* Lines of every length near the limits, at every place of a range, with and without an end. */
static void lines_at_the_limits(void **state) {
    (void)state;
    for (size_t length = 0; length < 90; length++)
        for (size_t shift = 0; shift < 20; shift++) {
            char text[200];
            int size = snprintf(text, sizeof text, "%*s\n%0*d%s", (int)shift, "", (int)length, 0,
                                length % 2 ? "\n{\"text\":\"after\"}\n" : "");
            write_bytes("a.jsonl", text, (size_t)size);
            expect_same("a.jsonl", (cutting){.block = 16, .max_record = 20, .threads = 1});
            expect_same("a.jsonl", (cutting){.block = 40, .max_record = 20, .threads = 2});
        }
}

static void long_lines_in_usual_blocks(void **state) {
    (void)state;
    for (size_t length = 19900; length < 20100; length += 3) {
        dp_buffer text = {0};
        for (size_t i = 0; i < 5; i++)
            dp_buffer_printf(&text, "{\"text\":\"%*s\"}\n", (int)(length + i * 11), "x");
        write_bytes("a.jsonl", text.data, text.size);
        dp_buffer_free(&text);
        expect_same("a.jsonl", (cutting){.block = 8192, .max_record = 20000, .threads = 1});
        expect_same("a.jsonl", (cutting){.block = 20010, .max_record = 100, .threads = 2});
        expect_same("a.jsonl", (cutting){.block = 50000, .max_record = 20000, .threads = 2});
    }
}

/* ---- the file changes ---- */

static doppel_status cut_off(void *state, const doppel_document *d, doppel_output *output) {
    if (d->line == 100)
        assert_int_equal(truncate("a.jsonl", 10000), 0);
    return write_document(state, d, output);
}

static doppel_status append(void *state, const doppel_document *d, doppel_output *output) {
    if (d->line == 100) {
        FILE *file = fopen("a.jsonl", "ab");
        fputs("{\"id\":\"more\",\"text\":\"\"}\n", file);
        fclose(file);
    }
    return write_document(state, d, output);
}

static uint64_t count_after(doppel_status (*document)(void *, const doppel_document *, doppel_output *), int threads) {
    const char *path = "a.jsonl";
    dp_input_sizes sizes = {.block = 300, .small_file = 0, .batch_files = 1, .pending = 1 << 20};
    doppel_input_options options = {.threads = threads};
    doppel_work work = {.document = document};
    FILE *file = fopen(path, "wb");
    for (int i = 0; i < 1000; i++)
        fprintf(file, "{\"id\":\"%04d\",\"text\":\"a line of 41 bytes\"}\n", i);
    fclose(file);
    result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes, .work = &work}, &options);
    assert_int_equal(r.status, DOPPEL_OK);
    uint64_t documents = r.counts.documents;
    free_result(&r);
    return documents;
}

static void a_file_may_grow_or_shrink_meanwhile(void **state) {
    (void)state;
    assert_int_equal(count_after(append, 1), 1001);
    assert_in_range(count_after(append, 4), 1000, 1001);
    assert_in_range(count_after(cut_off, 1), 10000 / 42, 10000 / 42 + 8);
    assert_in_range(count_after(cut_off, 4), 100, 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(ranges_give_what_the_whole_file_gives),
        TEST(lines_at_the_limits),
        TEST(long_lines_in_usual_blocks),
        TEST(a_file_may_grow_or_shrink_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
