/* test_parse.c - one document from one record in memory. */
#include "doppel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static doppel_document *parse(const char *record) {
    doppel_document *document;
    doppel_error error;
    assert_int_equal(doppel_document_parse(doppel_slice_of(record), NULL, &document, &error), DOPPEL_OK);
    return document;
}

static void check(const char *bytes, size_t length, const char *expected) {
    assert_int_equal(length, strlen(expected));
    assert_memory_equal(bytes, expected, length);
}

static void fields_are_unescaped(void **state) {
    (void)state;
    doppel_document *d =
        parse("{\"text\":\"a\\nb\\u00e9\",\"id\":\"x\\\"y\",\"url\":\"http://e.example/\",\"title\":\"T\","
              "\"html\":\"<p>\",\"more\":[1,{}]}");
    check(d->id.data, d->id.length, "x\"y");
    check(d->url.data, d->url.length, "http://e.example/");
    check(d->title.data, d->title.length, "T");
    check(d->text.data, d->text.length, "a\nb\xc3\xa9");
    check(d->html.data, d->html.length, "<p>");
    doppel_document_free(d);
}

static void what_is_missing_is_null_or_empty(void **state) {
    (void)state;
    doppel_document *d = parse("{\"id\":17,\"title\":null,\"text\":[],\"url\":3}");
    check(d->id.data, d->id.length, "17");
    check(d->text.data, d->text.length, "");
    assert_null(d->title.data);
    assert_null(d->url.data);
    assert_null(d->html.data);
    doppel_document_free(d);
    d = parse("{}");
    check(d->id.data, d->id.length, "");
    doppel_document_free(d);
}

static void keys_are_those_of_the_options(void **state) {
    (void)state;
    static const char record[] = "{\"body\":\"B\",\"text\":\"T\",\"key\":\"K\"}";
    doppel_input_options options = {.size = sizeof options, .id_key = "key", .text_key = "body"};
    doppel_document *d;
    assert_int_equal(doppel_document_parse(doppel_slice_of(record), &options, &d, NULL), DOPPEL_OK);
    check(d->id.data, d->id.length, "K");
    check(d->text.data, d->text.length, "B");
    doppel_document_free(d);
}

static void more_fields_are_given_as_they_are_asked_for(void **state) {
    (void)state;
    static const char record[] = "{\"text\":\"T\",\"a\":\"x\\ty\",\"b\":17,\"c\":[1, 2],\"d\":null}";
    static const char *const keys[] = {"b", "none", "a", "d", "c"};
    doppel_input_options options = {.size = sizeof options, .extra_keys = keys, .extra_count = 5};
    doppel_document *d;
    assert_int_equal(doppel_document_parse(doppel_slice_of(record), &options, &d, NULL), DOPPEL_OK);
    check(d->extra[0].data, d->extra[0].length, "17");
    assert_null(d->extra[1].data);
    check(d->extra[2].data, d->extra[2].length, "x\ty");
    assert_null(d->extra[3].data);
    check(d->extra[4].data, d->extra[4].length, "[1, 2]");
    check(d->text.data, d->text.length, "T");
    doppel_document_free(d);
    options.extra_count = 33;
    assert_int_equal(doppel_document_parse(doppel_slice_of(record), &options, &d, NULL), DOPPEL_ERROR_USAGE);
    assert_null(d);
}

/* A page that was converted for JSON may still name the charset it had. */
static void pages_of_records_are_utf8_whatever_they_say(void **state) {
    (void)state;
    doppel_page_reader *reader;
    doppel_page page;
    doppel_document *d = parse("{\"html\":\"<meta charset=windows-1251><p>caf\xC3\xA9 \\u041f\"}");
    assert_int_equal(doppel_page_reader_create(&reader), DOPPEL_OK);
    assert_int_equal(doppel_document_text(reader, d, DOPPEL_CONTENT_ALL, &page), DOPPEL_OK);
    check(page.text.data, page.text.length, "caf\xC3\xA9 \xD0\x9F");
    doppel_page_reader_free(reader);
    doppel_document_free(d);
}

static void invalid_utf8_is_repaired(void **state) {
    (void)state;
    doppel_document *d = parse("{\"text\":\"a\xff z\"}");
    check(d->text.data, d->text.length, "a\xef\xbf\xbd z");
    doppel_document_free(d);
}

static void what_is_no_object_is_refused(void **state) {
    (void)state;
    static const char *const records[] = {"", "17", "[1]", "{\"text\":\"a", "{\"text\":\"\\q\"}", "{} x", "null"};
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        doppel_document *d;
        doppel_error error = {0};
        assert_int_equal(doppel_document_parse(doppel_slice_of(records[i]), NULL, &d, &error), DOPPEL_ERROR_INPUT);
        assert_null(d);
        assert_true(error.message[0]);
    }
    doppel_document_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_unescaped),
        cmocka_unit_test(what_is_missing_is_null_or_empty),
        cmocka_unit_test(keys_are_those_of_the_options),
        cmocka_unit_test(more_fields_are_given_as_they_are_asked_for),
        cmocka_unit_test(pages_of_records_are_utf8_whatever_they_say),
        cmocka_unit_test(invalid_utf8_is_repaired),
        cmocka_unit_test(what_is_no_object_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
