/* test_mirrors.c - hosts and prefixes that mirror each other: planted ones are found, all of them and no other. */
#include "files.h"

#include "base/base.h"
#include "doppel.h"

/* ---- pages ---- */

/* A page whose text is made from a seed; `edit` changes a word of 150. */
static void add_page(dp_buffer *file, const char *url, uint64_t seed, unsigned edit) {
    uint64_t state = seed;
    dp_buffer_printf(file, "{\"url\":\"%s\",\"text\":\"", url);
    for (unsigned i = 0; i < 150; i++) {
        uint64_t word = random_next(&state) % 5000;
        if (edit && i == 75)
            dp_buffer_printf(file, "changed%u ", edit);
        else
            dp_buffer_printf(file, "w%llu ", (unsigned long long)word);
    }
    dp_buffer_printf(file, "\"}\n");
}

static void add_pages(dp_buffer *file, const char *prefix, uint64_t seed, unsigned count, unsigned edit) {
    char url[200];
    for (unsigned i = 0; i < count; i++) {
        snprintf(url, sizeof url, i % 3 ? "%s/part%u/page%u.html" : "%s/%u-%u", prefix, i % 5, i);
        add_page(file, url, seed * 1000 + i, edit ? edit + i : 0);
    }
}

static void save(dp_buffer *file, const char *path) {
    spit(path, file->data ? file->data : "", file->size);
    dp_buffer_free(file);
}

/* ---- runs ---- */

static doppel_status take_mirror(const doppel_mirror *mirror, void *user) {
    dp_buffer *lines = user;
    dp_buffer_printf(lines, "%s %s %llu %llu %.2f", mirror->a, mirror->b, (unsigned long long)mirror->shared,
                     (unsigned long long)mirror->matching, mirror->score);
    if (mirror->page)
        dp_buffer_printf(lines, " %s", mirror->page);
    return dp_buffer_add(lines, "\n", 1) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static dp_buffer run(const char *path, doppel_mirrors_options options, doppel_mirrors_counts *counts) {
    dp_buffer lines = {0};
    doppel_error error = {.code = DOPPEL_OK};
    options.size = sizeof options;
    options.mirror = take_mirror;
    options.user = &lines;
    if (doppel_mirrors_find(&path, 1, &options, counts, &error) != DOPPEL_OK) {
        print_error("%s: %s\n", error.file, error.message);
        fail();
    }
    dp_buffer_add(&lines, "", 1);
    return lines;
}

static void check(const char *path, doppel_mirrors_options options, const char *expected) {
    dp_buffer lines = run(path, options, NULL);
    assert_string_equal(lines.data, expected);
    dp_buffer_free(&lines);
}

/* ---- planted mirrors ---- */

/* 1,000 hosts with pages of their own at paths that others have too; the first 300 are parked: their front page is the
 * same. Of each ten, one has a mirror: a host, or a prefix of its own at another place of a host that has other pages.
 */
static void plant(const char *path, dp_buffer *expected) {
    dp_buffer file = {0};
    char name[100], mirror[100];
    for (unsigned h = 0; h < 1000; h++) {
        snprintf(name, sizeof name, "https://host%03u.example", h);
        add_page(&file, name, h < 300 ? 1 : 1000000 + h, 0);
        snprintf(name, sizeof name, "https://host%03u.example/about", h);
        add_page(&file, name, h < 300 ? 2 : 2000000 + h, 0);
        if (h % 10 != 5)
            continue;
        bool whole = h % 20 == 5;
        snprintf(name, sizeof name, whole ? "http://www.host%03u.example" : "http://host%03u.example/docs/v%u", h, h);
        snprintf(mirror, sizeof mirror, whole ? "https://mirror%03u.example" : "https://big%u.example/pub/m%u", h, h);
        if (!whole)
            snprintf(mirror, sizeof mirror, "https://big%u.example/pub/m%u", h % 3, h);
        add_pages(&file, name, 10 + h, 8, 0);
        add_pages(&file, mirror, 10 + h, 8, 1 + h % 2 * 7);
        if (whole)
            dp_buffer_printf(expected, "host%03u.example mirror%03u.example 8 8 1.00\n", h, h);
    }
    for (unsigned b = 0; b < 3; b++)
        for (unsigned h = 15; h < 1000; h += 20)
            if (h % 3 == b)
                dp_buffer_printf(expected, "big%u.example/pub/m%u host%03u.example/docs/v%u 8 8 1.00\n", b, h, h, h);
    dp_buffer_add(expected, "", 1);
    save(&file, path);
}

static int by_line(const void *x, const void *y) {
    return strcmp(*(char *const *)x, *(char *const *)y);
}

/* Sorts lines in place, as they stand in a buffer that ends with NUL. */
static dp_buffer sorted_lines(dp_buffer *text) {
    char *lines[2000];
    size_t count = 0;
    dp_buffer sorted = {0};
    for (char *line = strtok(text->data, "\n"); line; line = strtok(NULL, "\n"))
        lines[count++] = line;
    qsort(lines, count, sizeof *lines, by_line);
    for (size_t i = 0; i < count; i++)
        dp_buffer_printf(&sorted, "%s\n", lines[i]);
    dp_buffer_add(&sorted, "", 1);
    dp_buffer_free(text);
    return sorted;
}

static void test_planted_mirrors(void **state) {
    dp_buffer expected = {0};
    doppel_mirrors_counts counts;
    plant(in(state, "crawl.jsonl"), &expected);
    dp_buffer lines = run(in(state, "crawl.jsonl"), (doppel_mirrors_options){0}, &counts);
    dp_buffer want = sorted_lines(&expected), got = sorted_lines(&lines);
    assert_string_equal(got.data, want.data);
    assert_int_equal(counts.mirrors, 100);
    assert_true(counts.frequent > 0);
    dp_buffer_free(&want);
    dp_buffer_free(&got);
}

static void test_threads_and_memory_change_nothing(void **state) {
    dp_buffer expected = {0};
    plant(in(state, "crawl.jsonl"), &expected);
    dp_buffer_free(&expected);
    expected = run(in(state, "crawl.jsonl"), (doppel_mirrors_options){0}, NULL);
    for (int threads = 1; threads < 4; threads++) {
        doppel_input_options input = {.size = sizeof input, .threads = threads};
        doppel_mirrors_counts counts;
        dp_buffer lines = run(in(state, "crawl.jsonl"),
                              (doppel_mirrors_options){.memory = threads == 2 ? 1 : 0, .input = &input}, &counts);
        assert_string_equal(lines.data, expected.data);
        dp_buffer_free(&lines);
    }
    dp_buffer_free(&expected);
}

/* ---- where a mirror begins ---- */

static void test_whole_host(void **state) {
    dp_buffer file = {0};
    add_pages(&file, "http://a.example/en", 1, 6, 0);
    add_pages(&file, "http://b.example/en", 1, 6, 0);
    save(&file, in(state, "a.jsonl"));
    /* All pages are below en: that is not worth saying. */
    check(in(state, "a.jsonl"), (doppel_mirrors_options){0}, "a.example b.example 6 6 1.00\n");
}

static void test_longest_prefix(void **state) {
    dp_buffer file = {0};
    add_pages(&file, "http://a.example/docs", 1, 6, 0);
    add_pages(&file, "http://a.example/blog", 2, 6, 0);
    add_pages(&file, "http://b.example/m/docs", 1, 6, 0);
    add_pages(&file, "http://c.example/docs", 1, 6, 3);
    add_pages(&file, "http://c.example/blog", 5, 6, 0);
    save(&file, in(state, "a.jsonl"));
    check(in(state, "a.jsonl"), (doppel_mirrors_options){0},
          "a.example/docs b.example/m/docs 6 6 1.00\na.example/docs c.example/docs 6 6 1.00\n"
          "b.example/m/docs c.example/docs 6 6 1.00\n");
}

static void test_score(void **state) {
    dp_buffer file = {0};
    add_pages(&file, "http://a.example", 1, 9, 0);
    add_pages(&file, "http://b.example", 1, 6, 0);
    add_page(&file, "http://b.example/1-6", 77, 0);
    add_page(&file, "http://b.example/part2/page7.html", 78, 0);
    add_page(&file, "http://b.example/part3/page8.html", 79, 0);
    save(&file, in(state, "a.jsonl"));
    check(in(state, "a.jsonl"), (doppel_mirrors_options){0}, "a.example b.example 9 6 0.67\n");
    check(in(state, "a.jsonl"), (doppel_mirrors_options){.min_score = 0.7}, "");
    check(in(state, "a.jsonl"), (doppel_mirrors_options){.min_paths = 10}, "");
    check(in(state, "a.jsonl"), (doppel_mirrors_options){.min_paths = 9}, "a.example b.example 9 6 0.67\n");
}

/* Two parts of hosts mirror each other, the whole does not. */
static void test_parts(void **state) {
    dp_buffer file = {0};
    add_pages(&file, "http://a.example/x", 1, 4, 0);
    add_pages(&file, "http://a.example/y", 2, 4, 0);
    add_pages(&file, "http://a.example/z", 3, 30, 0);
    add_pages(&file, "http://b.example/x", 1, 4, 0);
    add_pages(&file, "http://b.example/y", 2, 4, 0);
    add_pages(&file, "http://b.example/z", 4, 30, 0);
    save(&file, in(state, "a.jsonl"));
    check(in(state, "a.jsonl"), (doppel_mirrors_options){0},
          "a.example/x b.example/x 4 4 1.00\na.example/y b.example/y 4 4 1.00\n");
}

static void test_one_host(void **state) {
    dp_buffer file = {0};
    add_pages(&file, "http://a.example/en", 1, 6, 0);
    add_pages(&file, "http://a.example/us", 1, 6, 0);
    add_pages(&file, "http://a.example/print/en", 1, 6, 0); /* a.example has en below it too: no mirror of itself */
    save(&file, in(state, "a.jsonl"));
    check(in(state, "a.jsonl"), (doppel_mirrors_options){0},
          "a.example/en a.example/us 6 6 1.00\na.example/print/en a.example/us 6 6 1.00\n");
}

static void test_page(void **state) {
    dp_buffer file = {0};
    add_pages(&file, "http://a.example/docs", 1, 6, 0);
    add_page(&file, "http://a.example/docs/more", 50, 0);
    add_page(&file, "http://a.example/index.html", 51, 0);
    add_pages(&file, "https://www.b.example/m/docs", 1, 6, 0);
    add_pages(&file, "http://c.example/docs", 1, 6, 0);
    add_page(&file, "http://c.example/docs/more", 50, 0);
    add_page(&file, "http://c.example/other", 52, 0);
    save(&file, in(state, "a.jsonl"));
    check(in(state, "a.jsonl"),
          (doppel_mirrors_options){.page = "https://a.example/docs/part1/page1.html?utm_source=x"},
          "a.example/docs b.example/m/docs 6 6 1.00 https://www.b.example/m/docs/part1/page1.html\n"
          "a.example/docs c.example/docs 7 7 1.00 http://c.example/docs/part1/page1.html\n");
    check(in(state, "a.jsonl"), (doppel_mirrors_options){.page = "http://c.example/docs/more"},
          "c.example/docs a.example/docs 7 7 1.00 http://a.example/docs/more\n"
          "c.example/docs b.example/m/docs 6 6 1.00\n");
    check(in(state, "a.jsonl"), (doppel_mirrors_options){.page = "http://c.example/other"}, "");
}

static void test_odd_addresses(void **state) {
    dp_buffer file = {0};
    add_page(&file, "", 1, 0);
    add_page(&file, "mailto:a@b.example", 1, 0);
    add_page(&file, "http://", 1, 0);
    add_page(&file, "http:///x", 1, 0);
    add_page(&file, "http://a.example:8080", 1, 0);
    add_page(&file, "http://a.example/?q=/x/y", 2, 0);
    add_page(&file, "http://a.example/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15", 3, 0);
    add_page(&file, "http://b.example/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15", 3, 0);
    add_page(&file, "http://b.example/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15", 4, 0);
    add_page(&file, "http://b.example?q=/x/y", 2, 0);
    add_page(&file, "http://a.example/1/2/3/4/5/6/7/8/9/10/11/12/13/14/16", 5, 0);
    add_page(&file, "http://b.example/1/2/3/4/5/6/7/8/9/10/11/12/13/14/16", 5, 0);
    dp_buffer_printf(&file, "{\"url\":\"http://c.example/none\",\"text\":\"!\"}\n{\"text\":\"no address\"}\n");
    save(&file, in(state, "a.jsonl"));
    doppel_mirrors_counts counts;
    dp_buffer lines = run(in(state, "a.jsonl"), (doppel_mirrors_options){0}, &counts);
    assert_string_equal(lines.data, "a.example b.example 3 3 1.00\n");
    assert_int_equal(counts.pages, 7);
    dp_buffer_free(&lines);
}

static void test_usage(void **state) {
    (void)state;
    doppel_error error = {.code = DOPPEL_OK};
    doppel_mirrors_options options = {.size = sizeof options, .min_score = 2};
    assert_int_equal(doppel_mirrors_find(NULL, 0, &options, NULL, &error), DOPPEL_ERROR_USAGE);
    options = (doppel_mirrors_options){.size = sizeof options, .page = "not an address"};
    assert_int_equal(doppel_mirrors_find(NULL, 0, &options, NULL, &error), DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(error.message, "not an address"));
    assert_int_equal(doppel_mirrors_find(NULL, 0, NULL, NULL, NULL), DOPPEL_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_planted_mirrors), TEST(test_threads_and_memory_change_nothing),
        TEST(test_whole_host),      TEST(test_longest_prefix),
        TEST(test_score),           TEST(test_parts),
        TEST(test_one_host),        TEST(test_page),
        TEST(test_odd_addresses),   TEST(test_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
