/* test_input_formats.c - which format a file has, pages, extra fields, patterns of paths. */
#include "input_runs.h"

#include <sys/stat.h>

/* A line for each document: file:line, text, html, extra fields. */
static doppel_status write_parts(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    char place[300];
    snprintf(place, sizeof place, "%s:%llu", d->file, (unsigned long long)d->line);
    doppel_output_write(output, doppel_slice_of(place));
    doppel_output_write(output, doppel_slice_of(" text="));
    doppel_output_write(output, d->text);
    if (d->html.data) {
        assert_string_equal(d->charset ? d->charset : "none", d->record.data ? "utf-8" : "none");
        doppel_output_write(output, doppel_slice_of(" html="));
        doppel_output_write(output, d->html);
    }
    for (size_t i = 0; i < 16 && d->extra[i].data; i++) {
        doppel_output_write(output, doppel_slice_of(" extra="));
        doppel_output_write(output, d->extra[i]);
    }
    return doppel_output_write(output, doppel_slice_of("\n"));
}

static void expect(const char *const *paths, size_t count, doppel_input_options options, const char *output,
                   const char *reports) {
    result kept = {0};
    doppel_work work = {.user = &kept, .document = write_parts, .emit = collect};
    result r = run_job((dp_input_job){.paths = paths, .path_count = count, .work = &work}, &options);
    assert_int_equal(r.status, DOPPEL_OK);
    dp_buffer_add(&kept.output, "", 1);
    assert_string_equal(kept.output.data, output);
    assert_string_equal(r.reports.data, reports);
    free_result(&r);
    free_result(&kept);
}

static void expect_path(const char *path, const char *output, const char *reports) {
    expect(&path, 1, (doppel_input_options){0}, output, reports);
}

/* ---- pages ---- */

static void html_is_told_by_name(void **state) {
    (void)state;
    const char *const names[] = {"a.html", "a.HTM", "a.xhtml", "a.html.gz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char expected[60];
        write_text(names[i], "{words}");
        snprintf(expected, sizeof expected, "%s:0 text= html={words}\n", names[i]);
        expect_path(names[i], expected, "");
    }
    write_text("empty.html", "");
    expect_path("empty.html", "empty.html:0 text= html=\n", "");
}

static void names_tell_formats(void **state) {
    (void)state;
    static const char *const known[][2] = {
        {"a.jsonl", "JSONL"}, {"a.json.gz", "JSONL"}, {"a.csv", "CSV"},  {"a.TAB", "TSV"},   {"b/a.warc.zst", "WARC"},
        {"a.wet.gz", "WARC"}, {"a.arc", "ARC"},       {"a.mbx", "mbox"}, {"a.mbox", "mbox"}, {"a.xhtml", "HTML"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_string_equal(doppel_input_format(known[i][0]), known[i][1]);
    assert_null(doppel_input_format("a.txt"));
    assert_null(doppel_input_format("a.gz"));
    assert_null(doppel_input_format(".csv"));
    assert_null(doppel_input_format(""));
}

static void html_is_told_by_how_it_begins(void **state) {
    (void)state;
    static const char *const pages[] = {
        "<html>",
        "<HTML lang=en>",
        "<!DocType HTML>",
        "\xEF\xBB\xBF\r\n\t <!doctype html public>",
        "<!-- a > b --><!-- --> <html\n>",
        "<?xml version=\"1.0\"?>\n<!DOCTYPE html>",
    };
    static const char *const texts[] = {"<htmlx>", "<html", "a <html>", "<!-- <html>", "<?xml?><svg>", "<p>", "<", ""};
    char expected[100];
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        write_text("a", pages[i]);
        snprintf(expected, sizeof expected, "a:0 text= html=%s\n", pages[i]);
        expect_path("a", expected, "");
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_text("a", texts[i]);
        snprintf(expected, sizeof expected, "a:0 text=%s\n", texts[i]);
        expect_path("a", expected, "");
    }
}

static void big_pages_are_whole(void **state) {
    (void)state;
    size_t size = 1000000;
    char *page = malloc(size + 1), *expected = malloc(size + 100);
    memset(page, 'x', size);
    memcpy(page, "<html>", 6);
    page[size] = 0;
    write_text("a", page);
    snprintf(expected, size + 100, "a:0 text= html=%s\n", page);
    expect_path("a", expected, "");
    free(page);
    free(expected);
}

static void records_have_a_text_or_a_page(void **state) {
    (void)state;
    write_text("a.jsonl",
               "{\"html\":\"<p>\\u0041\"}\n{\"text\":\"t\",\"html\":\"<p>\"}\n{\"text\":null,\"html\":\"<p>\"}\n"
               "{\"text\":\"t\",\"html\":7}\n{\"text\":\"\",\"html\":\"\"}\n");
    expect_path("a.jsonl",
                "a.jsonl:1 text= html=<p>A\na.jsonl:2 text=t html=<p>\na.jsonl:3 text= html=<p>\na.jsonl:4 text=t\n"
                "a.jsonl:5 text= html=\n",
                "");
    write_text("a.jsonl", "{\"html\":7}\n{\"text\":7,\"html\":\"<p>\"}\n{}\n{\"html\":\"\\x\"}\n");
    expect_path(
        "a.jsonl", "",
        "a.jsonl:1: field \"html\" is a number, not a string\na.jsonl:2: field \"text\" is a number, not a string\n"
        "a.jsonl:3: has no field \"text\" or \"html\"; --text-key KEY names the field with the text\n"
        "a.jsonl:4: not JSON: an escape in a string that JSON does not allow\n");
    const char *path = "b.jsonl";
    write_text(path, "{\"page\":\"<p>\",\"html\":\"no\"}\n");
    expect(&path, 1, (doppel_input_options){.html_key = "page"}, "b.jsonl:1 text= html=<p>\n", "");
}

/* ---- extra fields ---- */

static void extra_fields_are_given(void **state) {
    (void)state;
    const char *keys[] = {"a", "b"}, *path = "a.jsonl";
    doppel_input_options options = {.extra_keys = keys, .extra_count = 2};
    write_text(path, "{\"text\":\"t\",\"a\":\"x\\ty\",\"b\":-1.50e3}\n"
                     "{\"b\":[1, {\"c\":\"]\\\"}\"}] ,\"a\": {\"d\" : [ ] } ,\"text\":\"t\"}\n"
                     "{\"text\":\"t\",\"a\":true,\"b\":null}\n{\"text\":\"t\",\"b\":1}\n");
    expect(&path, 1, options,
           "a.jsonl:1 text=t extra=x\ty extra=-1.50e3\n"
           "a.jsonl:2 text=t extra={\"d\" : [ ] } extra=[1, {\"c\":\"]\\\"}\"}]\n"
           "a.jsonl:3 text=t extra=true\na.jsonl:4 text=t\n",
           "");
    write_text(path, "{\"text\":\"t\",\"a\":\"\\x\"}\n{\"text\":\"t\",\"a\":[1,}\n");
    expect(
        &path, 1, options, "",
        "a.jsonl:1: not JSON: an escape in a string that JSON does not allow\n"
        "a.jsonl:2: not JSON: a value that is neither a string, a number, true, false, null, an object nor an array\n");
    keys[0] = "text";
    write_text(path, "{\"text\":\"a\\\\b\",\"b\":\"c\"}\n");
    expect(&path, 1, options, "a.jsonl:1 text=a\\b extra=a\\b extra=c\n", "");
}

static void there_is_a_limit_of_extra_fields(void **state) {
    (void)state;
    const char *keys[33] = {0}, *path = "a.jsonl";
    for (size_t i = 0; i < 33; i++)
        keys[i] = "text";
    write_text(path, "{\"text\":\"t\"}\n");
    doppel_input_options options = {.extra_keys = keys, .extra_count = 33};
    result r = run_paths(&path, 1, &options);
    assert_int_equal(r.status, DOPPEL_ERROR_USAGE);
    assert_string_equal(r.error.message, "more than 32 extra keys");
    free_result(&r);
    options.extra_count = 16;
    r = run_paths(&path, 1, &options);
    assert_int_equal(r.status, DOPPEL_OK);
    free_result(&r);
}

/* ---- patterns ---- */

static void patterns_stand_for_what_matches(void **state) {
    (void)state;
    const char *paths[] = {"d/a*", "[x]", "d/?"};
    assert_int_equal(mkdir("d", 0755) | mkdir("d/ab", 0755), 0);
    write_text("d/a9", "9");
    write_text("d/a10", "10");
    write_text("d/ab/y", "y");
    write_text("d/c", "c");
    write_text("[x]", "bracket");
    write_text("x", "no");
    expect(paths, 3, (doppel_input_options){0},
           "d/a10:0 text=10\nd/a9:0 text=9\nd/ab/y:0 text=y\n[x]:0 text=bracket\nd/c:0 text=c\n", "");
}

static void a_pattern_without_a_match_is_named(void **state) {
    (void)state;
    const char *paths[] = {"*.none", "a"};
    write_text("a", "a");
    expect(paths, 2, (doppel_input_options){0}, "a:0 text=a\n", "*.none:0: no file matches this pattern\n");
}

/* ---- arrays ---- */

/* 4 million bytes of escapes in one string, without a quote for all of them. Were what follows each of them searched
 * for its end, this would take minutes. */
static void escapes_in_an_array_are_passed_once(void **state) {
    (void)state;
    enum { ESCAPES = 2000000 };
    static const char before[] = "[\n{\"id\":\"a\",\"text\":\"", after[] = "\\\"\"},\n{\"text\":\"\\\\\"}]";
    dp_buffer array = {0};
    dp_buffer_add(&array, before, sizeof before - 1);
    for (size_t i = 0; i < ESCAPES; i++)
        dp_buffer_add(&array, "\\\\", 2);
    dp_buffer_add(&array, after, sizeof after - 1);
    write_bytes("a.json", array.data, array.size);
    result r = run_path("a.json");
    assert_int_equal(r.counts.documents, 2);
    assert_int_equal(r.output.size - 1, strlen("a|") + ESCAPES + strlen("\"||\na.json:2|\\||\n"));
    assert_string_equal(r.output.data + r.output.size - 19, "\\\"||\na.json:2|\\||\n");
    free_result(&r);
    dp_buffer_free(&array);
}

/* ---- ids ---- */

static void ids_that_are_missing_can_stay_so(void **state) {
    (void)state;
    const char *const paths[] = {"a.jsonl", "b.csv", "c.txt"};
    doppel_input_options options = {.size = sizeof options, .no_made_ids = true};
    write_text("a.jsonl", "{\"text\":\"a\"}\n{\"id\":null,\"text\":\"b\"}\n{\"id\":\"x\",\"text\":\"c\"}\n");
    write_text("b.csv", "id,text\n,d\ny,e\n");
    write_text("c.txt", "f");
    result r = run_paths(paths, 3, &options);
    assert_string_equal(r.output.data, "|a||\n|b||\nx|c||\n|d||\ny|e||\nc.txt|f||\n");
    free_result(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(html_is_told_by_name),
        TEST(names_tell_formats),
        TEST(html_is_told_by_how_it_begins),
        TEST(big_pages_are_whole),
        TEST(records_have_a_text_or_a_page),
        TEST(extra_fields_are_given),
        TEST(there_is_a_limit_of_extra_fields),
        TEST(patterns_stand_for_what_matches),
        TEST(a_pattern_without_a_match_is_named),
        TEST(escapes_in_an_array_are_passed_once),
        TEST(ids_that_are_missing_can_stay_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
