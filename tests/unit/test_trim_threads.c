/* test_trim_threads.c - trims of many documents: the same bytes with any number of threads and any memory, by files and
 * in rounds; every document keeps its spans together; and what occurs everywhere costs no more than what occurs twice.
 */
#include "trims.h"

/* ---- many documents ---- */

enum { SENTENCES = 400, DOCUMENTS = 6000 / SMALLER };

/* A sentence of 3 to 12 words, the same for the same number. */
static void add_sentence(dp_buffer *text, uint64_t number) {
    uint64_t state = number;
    for (size_t words = 3 + random_below(&state, 10); words--;)
        assert_true(dp_buffer_printf(text, "w%zu%s", random_below(&state, 3000), words ? " " : ". "));
}

/* Documents of some sentences; one in three of those stands in others, too, and all end with a footer. */
static void save_documents(const char *path, size_t count) {
    dp_buffer file = {0}, text = {0};
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) {
        char id[32], more[64];
        text.size = 0;
        for (size_t sentences = random_below(&state, 9); sentences--;) {
            size_t run = random_below(&state, 3) ? 0 : 1 + random_below(&state, 4),
                   from = random_below(&state, SENTENCES);
            for (size_t k = 0; k < run; k++)
                add_sentence(&text, from + k);
            if (!run)
                add_sentence(&text, random_next(&state));
            assert_true(random_below(&state, 2) || dp_buffer_add(&text, "\n", 1));
        }
        assert_true(dp_buffer_printf(&text, "\nall of these pages end with this footer here"));
        assert_true(dp_buffer_add(&text, "", 1));
        snprintf(id, sizeof id, "%zu", i);
        snprintf(more, sizeof more, ",\"url\":\"http://h%zu.com/%zu\"", random_below(&state, 9), i);
        add_record(&file, id, text.data, more);
    }
    save_buffer(&file, path);
    dp_buffer_free(&text);
}

/* Trims a file: a line of each document, and figures. *spilled: the bytes that went to files. */
static dp_buffer run(const char *path, doppel_trim_options options, int threads, uint64_t memory, uint64_t *spilled) {
    const doppel_repeat *repeats;
    size_t count;
    doppel_input_options input = {.size = sizeof input, .threads = threads};
    doppel_trim_stats stats;
    options.input = &input;
    options.memory = memory;
    options.tmp = ".";
    doppel_trim *trim = find_repeats(&path, 1, options);
    doppel_trim_get_stats(trim, &stats);
    dp_buffer lines = trimmed_lines(trim);
    lines.size--; /* the NUL */
    assert_int_equal(doppel_trim_get_repeats(trim, &repeats, &count, NULL), DOPPEL_OK);
    for (size_t i = 0; i < count; i++)
        assert_true(dp_buffer_printf(&lines, "%llu %llu %llu\n", (unsigned long long)repeats[i].count,
                                     (unsigned long long)repeats[i].original, (unsigned long long)repeats[i].start));
    assert_true(dp_buffer_printf(&lines, "%llu units, %llu words, %llu repeated, %llu values",
                                 (unsigned long long)stats.units, (unsigned long long)stats.words,
                                 (unsigned long long)stats.repeated, (unsigned long long)stats.values) &&
                dp_buffer_add(&lines, "", 1));
    assert_int_equal(stats.input.unopened + stats.input.bad, 0);
    *spilled = stats.spilled_bytes;
    doppel_trim_free(trim);
    return lines;
}

static void check_ways(const char *path, doppel_trim_options options) {
    static const struct {
        int threads;
        uint64_t memory;
    } ways[] = {{2, 0}, {3, 48 << 20}, {8, 0}, {1, 1}, {4, 1 << 20}};
    uint64_t spilled;
    dp_buffer truth = run(path, options, 1, 0, &spilled);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        dp_buffer lines = run(path, options, ways[i].threads, ways[i].memory, &spilled);
        assert_string_equal(lines.data, truth.data);
        dp_buffer_free(&lines);
    }
    dp_buffer_free(&truth);
}

static void threads_and_memory_make_no_difference(void **state) {
    (void)state;
    const char *path = "many.jsonl";
    save_documents(path, DOCUMENTS / 6);
    check_ways(path, (doppel_trim_options){.keep = "longest"});
    check_ways(path, (doppel_trim_options){.unit = DOPPEL_UNIT_SENTENCE, .run = 2, .within = "host", .min_count = 3});
    check_ways(path, (doppel_trim_options){.unit = DOPPEL_UNIT_PARAGRAPH, .cut_first = true, .across = "host"});
    check_ways(path, (doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 10, .keep = "last", .min_count = 3});
    check_ways(path,
               (doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 7, .cut_first = true, .within = "domain"});
}

/* ---- more than fits into memory ---- */

static size_t stages;

static void count_stages(const char *stage, uint64_t done, uint64_t total, void *user) {
    (void)done;
    assert_int_equal(total, DP_TRIM_PARTS);
    stages += !strcmp(stage, user);
}

/* The windows of texts that all repeat take more than the texts: they are compared in rounds. */
static void passages_in_rounds(void **state) {
    (void)state;
    const char *path = "copies.jsonl";
    char stage[] = "repeats";
    dp_buffer file = {0}, text = {0};
    uint64_t numbers = 7, spilled;
    for (size_t i = 0; i < 40; i++) {
        char id[32];
        text.size = 0;
        for (size_t k = 0; k < 40; k++)
            add_sentence(&text, random_below(&numbers, 2) ? k : i * 1000 + k);
        assert_true(dp_buffer_add(&text, "", 1));
        snprintf(id, sizeof id, "%zu", i % 20); /* ids stand twice */
        add_record(&file, id, text.data, "");
        add_record(&file, id, text.data, "");
    }
    save_buffer(&file, path);
    doppel_trim_options o = {.unit = DOPPEL_UNIT_PASSAGE, .words = 20, .progress = count_stages, .user = stage};
    dp_buffer truth = run(path, o, 1, 0, &spilled);
    assert_int_equal(stages, DP_TRIM_PARTS); /* one round */
    stages = 0;
    dp_buffer lines = run(path, o, 1, 1, &spilled);
    assert_true(stages > 2 * DP_TRIM_PARTS);
    assert_string_equal(lines.data, truth.data);
    dp_buffer_free(&lines);
    dp_buffer_free(&truth);
    dp_buffer_free(&text);
}

/* A sorter writes from 4,096 records on: one line in all documents goes to files, and so do the marks of many. */
static void lines_by_files(void **state) {
    (void)state;
    const char *path = "lines.jsonl";
    enum { LINES = 60, TEXTS = 5000 };
    dp_buffer file = {0}, text = {0};
    uint64_t spilled, more;
    for (size_t i = 0; i < TEXTS / SMALLER; i++) {
        char id[32];
        text.size = 0;
        for (size_t k = 0; k < LINES; k++)
            assert_true(dp_buffer_printf(&text, "line %zu of them all\n", k));
        assert_true(dp_buffer_add(&text, "", 1));
        snprintf(id, sizeof id, "%zu", i);
        add_record(&file, id, text.data, "");
    }
    save_buffer(&file, path);
    dp_buffer truth = run(path, (doppel_trim_options){0}, 2, 0, &spilled);
    dp_buffer lines = run(path, (doppel_trim_options){0}, 1, 1, &more);
    /* Windows of three numbers and marks of two. */
    if (SMALLER == 1)
        assert_true(more > spilled + LINES * TEXTS / 2 * 40);
    assert_string_equal(lines.data, truth.data);
    dp_buffer_free(&lines);
    dp_buffer_free(&truth);
    dp_buffer_free(&text);
}

/* ---- parts ---- */

/* All marks of a document are in one part, whatever the number of documents: 49 * (1 / 49.) is less than 1. */
static void a_document_is_not_divided(void **state) {
    (void)state;
    const char *path = "numbers.jsonl";
    static const char two[] = "first line of five words\nsecond line has five words";
    for (size_t step = 47; step < 53; step += 2) {
        size_t count = 64 * step - 1;
        dp_buffer file = {0};
        for (size_t i = 0; i < count; i++) {
            char id[32];
            snprintf(id, sizeof id, "%zu", i);
            add_record(&file, id, i % step ? "x" : two, "");
        }
        save_buffer(&file, path);
        doppel_trim *trim = find_repeats(&path, 1, (doppel_trim_options){0});
        doppel_trim_stats stats;
        write_trimmed(trim, 0, NULL, NULL);
        doppel_trim_get_stats(trim, &stats);
        assert_int_equal(stats.repeated, 2 * 63);
        assert_int_equal(stats.words_cut, 10 * 63);
        assert_int_equal(stats.emptied, 63);
        doppel_trim_free(trim);
    }
}

/* ---- what stands everywhere ---- */

static doppel_status count_spans(const doppel_trimmed *d, void *user) {
    *(uint64_t *)user += d->span_count + d->cut_count;
    return DOPPEL_OK;
}

/* Documents with a footer that is the same in all of them, or in two. */
static double seconds_of(doppel_trim_options options, size_t count, bool same) {
    const char *path = "footers.jsonl";
    dp_buffer file = {0};
    uint64_t spans = 0;
    for (size_t i = 0; i < count; i++) {
        char id[32], text[160];
        snprintf(id, sizeof id, "%zu", i);
        size_t n = same ? 0 : i / 2;
        snprintf(text, sizeof text, "page %zu\nwrite to the office %zu of number %zu for a copy %zu", i, n, n, n);
        add_record(&file, id, text, "");
    }
    save_buffer(&file, path);
    double begun = dp_seconds();
    doppel_trim *trim = find_repeats(&path, 1, options);
    write_trimmed(trim, DOPPEL_TRIM_SPANS, count_spans, &spans);
    double seconds = dp_seconds() - begun;
    assert_int_equal(spans, 2 * (options.cut_first ? count : same ? count - 1 : count / 2));
    doppel_trim_free(trim);
    return seconds;
}

/* Some 20 times what it takes otherwise would be a square of the number: a bound that no busy machine breaks. */
static void a_hot_line_is_linear(void **state) {
    (void)state;
    enum { COUNT = 30000 / SMALLER };
    doppel_trim_options o = {0};
    for (int way = 0; way < 3; way++) {
        double usual = seconds_of(o, COUNT, false), hot = seconds_of(o, COUNT, true);
        assert_true(hot < 20 * usual + 1);
        o = way ? (doppel_trim_options){.cut_first = true, .min_count = 2}
                : (doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 8};
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(threads_and_memory_make_no_difference),
        TEST(passages_in_rounds),
        TEST(lines_by_files),
        TEST(a_document_is_not_divided),
        TEST(a_hot_line_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
