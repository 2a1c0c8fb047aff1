/* test_trim_records.c - the records that a trim writes: all bytes but those that are cut are unchanged, in JSON with
 * escapes, CR LF and invalid UTF-8; pages gain a text; other formats become records; spans are added to whole ones. */
#include "trims.h"

#define CUT "one two three four five"

typedef struct lines {
    const char *line[12];
} lines;

static doppel_status add_line(const doppel_trimmed *d, void *user) {
    assert_true(dp_buffer_add(user, d->record.data, d->record.length) && dp_buffer_add(user, "\n", 1));
    return DOPPEL_OK;
}

/* The records of a file, with one thread and with several. */
static void check_file(const char *path, doppel_trim_options options, unsigned wanted, const dp_buffer *expected) {
    for (int threads = 1; threads < 4; threads += 2) {
        doppel_input_options input = {.size = sizeof input};
        if (options.input)
            input = *options.input;
        input.threads = threads;
        doppel_trim_options o = options;
        o.input = &input;
        dp_buffer written = {0};
        doppel_trim *trim = find_repeats(&path, 1, o);
        write_trimmed(trim, wanted, add_line, &written);
        doppel_trim_free(trim);
        if (written.size != expected->size || (written.size && memcmp(written.data, expected->data, written.size)))
            fail_msg("%.*s instead of %.*s", (int)written.size, written.data, (int)expected->size, expected->data);
        dp_buffer_free(&written);
    }
}

/* Lines as they are given, and as they are expected; the first one is the original of all, and is not given here. */
static void check_records(doppel_trim_options options, unsigned wanted, lines given, lines expected) {
    static const char original[] = "{\"id\":\"a\",\"text\":\"" CUT "\"}\n";
    dp_buffer file = {0}, written = {0};
    assert_true(dp_buffer_printf(&file, "%s", original));
    assert_true(dp_buffer_printf(
        &written, wanted & DOPPEL_TRIM_ANNOTATE ? "{\"id\":\"a\",\"text\":\"" CUT "\",\"spans\":[]}\n" : original));
    for (size_t i = 0; given.line[i]; i++)
        assert_true(dp_buffer_printf(&file, "%s\n", given.line[i]));
    for (size_t i = 0; expected.line[i]; i++)
        assert_true(dp_buffer_printf(&written, "%s\n", expected.line[i]));
    save_buffer(&file, "records.jsonl");
    check_file("records.jsonl", options, wanted, &written);
    dp_buffer_free(&written);
}

/* ---- cuts ---- */

static void all_else_stays_byte_for_byte(void **state) {
    (void)state;
    check_records(
        (doppel_trim_options){0}, DOPPEL_TRIM_RECORDS,
        (lines){{"  { \"x\" : [1.50e+3, {\"text\":\"" CUT "\"}],\t\"text\" : \"" CUT
                 "\\nrest\" , \"id\":\"\\u0062\"}  ",
                 "{\"id\":\"c\",\"text\":\"x\\n" CUT "\",\"title\":\"" CUT "\"}", "{\"id\":\"d\",\"text\":\"" CUT "\"}",
                 "{\"id\":\"e\", \"text\":\"nothing\", \"y\":null }"}},
        (lines){{"  { \"x\" : [1.50e+3, {\"text\":\"" CUT "\"}],\t\"text\" : \"rest\" , \"id\":\"\\u0062\"}  ",
                 "{\"id\":\"c\",\"text\":\"x\\n\",\"title\":\"" CUT "\"}", "{\"id\":\"d\",\"text\":\"\"}",
                 "{\"id\":\"e\", \"text\":\"nothing\", \"y\":null }"}});
}

static void escapes_are_cut_whole(void **state) {
    (void)state;
    check_records(
        (doppel_trim_options){0}, DOPPEL_TRIM_RECORDS,
        (lines){{"{\"id\":\"b\",\"text\":\"\\u00e9\\/\\\\\\nOne\\u0020t\\u0077o \\\"three\\\" four \\ud83d\\ude00 "
                 "five\\r\\n\\ud83d\\ude00y\\t\"}",
                 "{\"id\":\"c\",\"text\":\"\\ud83d\\ude00 x\\u2028\\u006Fne two three four five\\u2029\\u0000z\"}",
                 "{\"id\":\"d\",\"\\u0074ext\":\"x\\n" CUT "\"}",
                 "{\"text\":\"not this\",\"id\":\"e\",\"text\":\"" CUT "\\nthis\"}"}},
        (lines){{"{\"id\":\"b\",\"text\":\"\\u00e9\\/\\\\\\n\\ud83d\\ude00y\\t\"}",
                 "{\"id\":\"c\",\"text\":\"\\ud83d\\ude00 x\\u2028\\u0000z\"}",
                 "{\"id\":\"d\",\"\\u0074ext\":\"x\\n\"}", "{\"text\":\"not this\",\"id\":\"e\",\"text\":\"this\"}"}});
}

/* Half a pair before a cut and half a pair after it do not make a whole one. */
static void halves_of_pairs_do_not_meet(void **state) {
    (void)state;
    check_records(
        (doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 5}, DOPPEL_TRIM_RECORDS,
        (lines){{"{\"id\":\"b\",\"text\":\"\\ud83d" CUT " \\ude00\\u0301x\"}",
                 "{\"id\":\"c\",\"text\":\"\\ud83d\\ud83d " CUT "\"}"}},
        (lines){{"{\"id\":\"b\",\"text\":\"\\ud83d\\ufffd\\u0301x\"}", "{\"id\":\"c\",\"text\":\"\\ud83d\\ud83d \"}"}});
}

static void lines_that_end_in_cr_lf(void **state) {
    (void)state;
    check_records((doppel_trim_options){0}, DOPPEL_TRIM_RECORDS,
                  (lines){{"{\"id\":\"b\",\"text\":\"" CUT "\\nx\"}\r", "\r", "{\"id\":\"c\",\"text\":\"y\"}\r",
                           "{\"id\":\"d\",\"html\":\"<p>" CUT "</p><p>z</p>\"}\r",
                           "{\"id\":\"\xFF\",\"text\":\"" CUT "\\nz\xFF\"}\r"}},
                  (lines){{"{\"id\":\"b\",\"text\":\"x\"}\r", "{\"id\":\"c\",\"text\":\"y\"}\r",
                           "{\"id\":\"d\",\"html\":\"<p>" CUT "</p><p>z</p>\",\"text\":\"z\"}\r",
                           "{\"id\":\"\xEF\xBF\xBD\",\"text\":\"z\xEF\xBF\xBD\"}\r"}});
}

/* A record with invalid UTF-8 is repaired if it is cut: its text has U+FFFD there, and so have its spans. */
static void invalid_utf8(void **state) {
    (void)state;
    check_records((doppel_trim_options){0}, DOPPEL_TRIM_RECORDS,
                  (lines){{"{\"id\":\"b\",\"text\":\"\xFF\\n" CUT "\\nz\xE4\xB8\",\"x\":\"\xFE\"}",
                           "{\"id\":\"c\",\"text\":\"\xFF\"}"}},
                  (lines){{"{\"id\":\"b\",\"text\":\"\xEF\xBF\xBD\\nz\xEF\xBF\xBD\",\"x\":\"\xEF\xBF\xBD\"}",
                           "{\"id\":\"c\",\"text\":\"\xFF\"}"}});
}

/* ---- pages ---- */

static void pages_gain_a_text(void **state) {
    (void)state;
    check_records(
        (doppel_trim_options){0}, DOPPEL_TRIM_RECORDS,
        (lines){{"{\"id\":\"b\",\"html\":\"<p>" CUT "</p><p>\\u00e9<\\/p>\"}",
                 "{\"html\":\"<p>own</p>\",\"text\":null,\"id\":\"c\" }",
                 "{\"id\":\"d\",\"text\":\"\",\"html\":\"<p>ONE two three four five</p>\",\"z\":[]}",
                 "{\"id\":\"e\",\"html\":\"<p>" CUT "</p>\",\"text\":\"text\"}", "{\"id\":\"f\",\"html\":\"\"}"}},
        (lines){{"{\"id\":\"b\",\"html\":\"<p>" CUT "</p><p>\\u00e9<\\/p>\",\"text\":\"\u00e9\"}",
                 "{\"html\":\"<p>own</p>\",\"id\":\"c\" ,\"text\":\"own\"}",
                 "{\"id\":\"d\",\"html\":\"<p>ONE two three four five</p>\",\"z\":[],\"text\":\"\"}",
                 "{\"id\":\"e\",\"html\":\"<p>" CUT "</p>\",\"text\":\"text\"}",
                 "{\"id\":\"f\",\"html\":\"\",\"text\":\"\"}"}});
}

static void keys_have_other_names(void **state) {
    (void)state;
    static const char given[] = "{\"key\":\"a\",\"body\":\"" CUT "\"}\n"
                                "{\"key\":\"b\",\"text\":\"" CUT "\",\"body\":\"" CUT "\\nx\"}\n"
                                "{\"key\":\"c\",\"page\":\"<p>" CUT "</p><p>y</p>\"}\n";
    static const char expected[] = "{\"key\":\"a\",\"body\":\"" CUT "\"}\n"
                                   "{\"key\":\"b\",\"text\":\"" CUT "\",\"body\":\"x\"}\n"
                                   "{\"key\":\"c\",\"page\":\"<p>" CUT "</p><p>y</p>\",\"body\":\"y\"}\n";
    doppel_input_options input = {.size = sizeof input, .id_key = "key", .text_key = "body", .html_key = "page"};
    spit("named.jsonl", given, sizeof given - 1);
    check_file("named.jsonl", (doppel_trim_options){.input = &input}, DOPPEL_TRIM_RECORDS,
               &(dp_buffer){(char *)(uintptr_t)expected, sizeof expected - 1, 0});
}

/* ---- spans in records ---- */

#define SPAN(start, end) "{\"start\":" #start ",\"end\":" #end ",\"words\":5,\"originalId\":\"a\",\"originalStart\":0}"

static void spans_are_added_to_whole_records(void **state) {
    (void)state;
    check_records(
        (doppel_trim_options){.drop = true}, DOPPEL_TRIM_ANNOTATE,
        (lines){{"{\"id\":\"b\",\"text\":\"" CUT "\\nx\\n" CUT "\"}",
                 "{ \"spans\" : {\"mine\":[1]}, \"id\":\"c\", \"text\":\"" CUT "\" } ",
                 "{\"id\":\"d\",\"text\":\"x\"}\r", "{\"id\":\"e\",\"html\":\"<p>" CUT "</p>\"}",
                 "{\"id\":\"f\",\"text\":\"\xFF\\n" CUT "\"}"}},
        (lines){{"{\"id\":\"b\",\"text\":\"" CUT "\\nx\\n" CUT "\",\"spans\":[" SPAN(0, 24) "," SPAN(26, 49) "]}",
                 "{ \"id\":\"c\", \"text\":\"" CUT "\" ,\"spans\":[" SPAN(0, 23) "]}",
                 "{\"id\":\"d\",\"text\":\"x\",\"spans\":[]}\r",
                 "{\"id\":\"e\",\"html\":\"<p>" CUT "</p>\",\"text\":\"" CUT "\",\"spans\":[" SPAN(0, 23) "]}",
                 "{\"id\":\"f\",\"text\":\"\xFF\\n" CUT "\",\"spans\":[" SPAN(4, 27) "]}"}});
}

/* Ids of originals are escaped. */
static void originals_are_named_as_json(void **state) {
    (void)state;
    static const char given[] = "{\"id\":\"\\\"\\u00e9\\n\",\"text\":\"" CUT "\"}\n{\"id\":2,\"text\":\"" CUT "\"}\n";
    static const char expected[] =
        "{\"id\":\"\\\"\\u00e9\\n\",\"text\":\"" CUT "\",\"spans\":[]}\n{\"id\":2,\"text\":\"" CUT
        "\",\"spans\":[{\"start\":0,\"end\":23,\"words\":5,\"originalId\":\"\\\"\u00e9\\n\",\"originalStart\":0}]}\n";
    spit("ids.jsonl", given, sizeof given - 1);
    check_file("ids.jsonl", (doppel_trim_options){0}, DOPPEL_TRIM_ANNOTATE,
               &(dp_buffer){(char *)(uintptr_t)expected, sizeof expected - 1, 0});
}

/* ---- other formats, and what cannot be read ---- */

static void documents_of_other_formats_become_records(void **state) {
    (void)state;
    static const char table[] =
        "id,url,title,text,extra\n1,http://x.com/,T,\"" CUT "\nown \"\"words\"\"\",x\n2,,,\"" CUT "\",y\n";
    static const char expected[] = "{\"id\":\"1\",\"url\":\"http://x.com/\",\"title\":\"T\",\"text\":\"" CUT
                                   "\\nown \\\"words\\\"\",\"extra\":\"x\"}\n"
                                   "{\"id\":\"2\",\"url\":\"\",\"title\":\"\",\"text\":\"\",\"extra\":\"y\"}\n";
    static const char annotated[] =
        "{\"id\":\"1\",\"url\":\"http://x.com/\",\"title\":\"T\",\"text\":\"" CUT
        "\\nown \\\"words\\\"\",\"extra\":\"x\",\"spans\":[]}\n"
        "{\"id\":\"2\",\"url\":\"\",\"title\":\"\",\"text\":\"" CUT
        "\",\"extra\":\"y\",\"spans\":[{\"start\":0,\"end\":23,\"words\":5,\"originalId\":\"1\","
        "\"originalStart\":0}]}\n";
    spit("table.csv", table, sizeof table - 1);
    check_file("table.csv", (doppel_trim_options){0}, DOPPEL_TRIM_RECORDS,
               &(dp_buffer){(char *)(uintptr_t)expected, sizeof expected - 1, 0});
    check_file("table.csv", (doppel_trim_options){0}, DOPPEL_TRIM_ANNOTATE,
               &(dp_buffer){(char *)(uintptr_t)annotated, sizeof annotated - 1, 0});
}

static void note_bad(const doppel_error *what, void *user) {
    assert_true(dp_buffer_printf(user, "%llu %d;", (unsigned long long)what->line, (int)what->code));
}

/* Damaged records are named, once, and left out. */
static void damaged_records_are_left_out(void **state) {
    (void)state;
    static const char given[] = "{\"id\":\"a\",\"text\":\"" CUT "\"}\nbroken\n{\"id\":\"b\",\"text\":7}\n\n"
                                "{\"id\":\"c\",\"text\":\"" CUT "\"\n{\"id\":\"d\",\"text\":\"\xFF\\n" CUT "\"}\n"
                                "{\"id\":\"e\",\"text\":\"x\\n" CUT "\"}";
    static const char expected[] = "{\"id\":\"a\",\"text\":\"" CUT "\"}\n{\"id\":\"d\",\"text\":\"\xEF\xBF\xBD\\n\"}\n"
                                   "{\"id\":\"e\",\"text\":\"x\\n\"}\n";
    const char *path = "bad.jsonl";
    dp_buffer written = {0}, bad = {0};
    doppel_input_options input = {.size = sizeof input, .bad = note_bad, .user = &bad};
    doppel_trim_stats stats;
    spit(path, given, sizeof given - 1);
    doppel_trim *trim = find_repeats(&path, 1, (doppel_trim_options){.input = &input});
    write_trimmed(trim, DOPPEL_TRIM_RECORDS | DOPPEL_TRIM_SPANS, add_line, &written);
    doppel_trim_get_stats(trim, &stats);
    assert_int_equal(stats.input.bad, 3);
    assert_int_equal(stats.input.repaired, 1);
    assert_int_equal(stats.input.documents, 3);
    assert_int_equal(written.size, sizeof expected - 1);
    assert_memory_equal(written.data, expected, written.size);
    assert_true(dp_buffer_add(&bad, "", 1));
    char reports[64];
    snprintf(reports, sizeof reports, "2 %d;3 %d;5 %d;6 0;", DOPPEL_ERROR_INPUT, DOPPEL_ERROR_INPUT,
             DOPPEL_ERROR_INPUT);
    assert_string_equal(bad.data, reports);
    doppel_trim_free(trim);
    dp_buffer_free(&bad);
    dp_buffer_free(&written);
}

/* What is not asked for is not there. */
static doppel_status check_nothing(const doppel_trimmed *d, void *user) {
    assert_int_equal(d->record.length + d->text.length + d->original.length + d->span_count, 0);
    assert_int_equal(d->position, (*(int *)user)++);
    assert_int_equal(d->line, d->position + 1);
    assert_string_equal(d->file, "texts.jsonl");
    return DOPPEL_OK;
}

static void only_what_is_asked_for_is_given(void **state) {
    (void)state;
    const char *path = "texts.jsonl";
    int seen = 0;
    save_texts(path, (texts){{CUT, CUT, "x"}}, 'a');
    doppel_trim *trim = find_repeats(&path, 1, (doppel_trim_options){0});
    write_trimmed(trim, 0, check_nothing, &seen);
    assert_int_equal(seen, 3);
    doppel_trim_free(trim);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(all_else_stays_byte_for_byte),
        TEST(escapes_are_cut_whole),
        TEST(halves_of_pairs_do_not_meet),
        TEST(lines_that_end_in_cr_lf),
        TEST(invalid_utf8),
        TEST(pages_gain_a_text),
        TEST(keys_have_other_names),
        TEST(spans_are_added_to_whole_records),
        TEST(originals_are_named_as_json),
        TEST(documents_of_other_formats_become_records),
        TEST(damaged_records_are_left_out),
        TEST(only_what_is_asked_for_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
