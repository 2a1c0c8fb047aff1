/* test_server_json.c - JSON of requests: what is read, what is refused and where; shapes. */
#include "support.h"

#include "server/service.h"

#include <stdio.h>

static void refused(const char *source, size_t position) {
    json j = {0};
    assert_false(json_read(&j, source, strlen(source)));
    assert_true(j.why[0]);
    if (j.position != position)
        fail_msg("%s: at %zu, not %zu: %s", source, j.position, position, j.why);
    json_free(&j);
}

static void test_values(void **state) {
    (void)state;
    static const char source[] =
        " {\"a\": [1, -2.5e+3, true, false, null], \"b\\u0063\": \"x\\n\\ud834\\udd1e\\/\", \"d\": {}} ";
    json j = {0};
    assert_true(json_read(&j, source, strlen(source)));
    const json_value *a = json_member(&j, j.values, "a"), *b = json_member(&j, j.values, "bc");
    assert_int_equal(j.values->count, 3);
    assert_int_equal(a->count, 5);
    const json_value *number = json_next(&j, json_first(a));
    assert_int_equal(number->kind, JSON_NUMBER);
    assert_memory_equal(number->text.data, "-2.5e+3", number->text.length);
    assert_int_equal(b->text.length, 7);
    assert_memory_equal(b->text.data, "x\n\xF0\x9D\x84\x9E/", 7);
    assert_int_equal(json_member(&j, j.values, "d")->kind, JSON_OBJECT);
    assert_null(json_member(&j, j.values, "e"));
    /* An object as it stands in the source. */
    assert_memory_equal(json_member(&j, j.values, "d")->text.data, "{}", 2);
    json_free(&j);
}

static void test_what_is_refused(void **state) {
    (void)state;
    refused("", 0);
    refused("{", 1);
    refused("[1,]", 3);
    refused("{\"a\":1,}", 7);
    refused("[1 2]", 3);
    refused("01", 2);
    refused("1.", 2);
    refused("-", 1);
    refused("1e", 2);
    refused("tru", 0);
    refused("\"a", 2);
    refused("\"\x01\"", 1);
    refused("\"\\q\"", 2);
    refused("\"\\u12g4\"", 2);
    refused("\"\\ud800x\"", 7);
    refused("\"\xC3\"", 1);
    refused("\"\xED\xA0\x80\"", 1);
    refused("1 1", 2);
    refused("{\"a\":1,\"b\":2,\"\\u0061\":3}", 13);
}

static void test_limits(void **state) {
    (void)state;
    char deep[200];
    json j = {0};
    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    assert_true(json_read(&j, deep + 100 - JSON_MAX_DEPTH, 2 * JSON_MAX_DEPTH));
    assert_false(json_read(&j, deep + 99 - JSON_MAX_DEPTH, 2 * JSON_MAX_DEPTH + 2));
    text_buffer many = {0};
    text_put(&many, "{");
    for (int i = 0; i <= JSON_MAX_MEMBERS; i++)
        text_format(&many, "%s\"%d\":0", i ? "," : "", i);
    text_put(&many, "}");
    assert_false(json_read(&j, many.data, many.length));
    text_free(&many);
    json_free(&j);
}

/* Escapes in many strings, and the same memory again for another body. */
static void test_held_strings(void **state) {
    (void)state;
    json j = {0};
    for (int size = 1; size < 300; size += 37) {
        text_buffer t = {0};
        for (int i = 0; i < size; i++)
            text_format(&t, "%s\"%d\\t\\u00e4\"", i ? "," : "[", i);
        text_put(&t, "]");
        assert_true(json_read(&j, t.data, t.length));
        const json_value *value = json_first(j.values);
        for (int i = 0; i < size; i++, value = json_next(&j, value)) {
            char want[32];
            int length = snprintf(want, sizeof want, "%d\t\xC3\xA4", i);
            assert_int_equal(value->text.length, length);
            assert_memory_equal(value->text.data, want, (size_t)length);
        }
        text_free(&t);
    }
    json_free(&j);
}

static void check_shape(const char *source, bool fine, const char *pointer) {
    json j = {0};
    problem p = {0};
    assert_true(json_read(&j, source, strlen(source)));
    assert_int_equal(shape_check(&shape_document, &j, j.values, NULL, &p), fine);
    assert_string_equal(p.pointer, pointer);
    json_free(&j);
}

static void test_shapes(void **state) {
    (void)state;
    check_shape("{\"id\":1,\"text\":\"x\",\"ttl\":5,\"url\":null}", true, "");
    check_shape("{\"text\":5}", false, "/text");
    check_shape("{\"other\":5}", false, "/other");
    check_shape("{\"a~/b\":5}", false, "/a~0~1b");
    check_shape("{\"ttl\":1.5}", false, "/ttl");
    check_shape("{\"ttl\":-1}", false, "/ttl");
    check_shape("[]", false, "");
}

static void test_written_json_is_read_again(void **state) {
    (void)state;
    static const char bytes[] = "a\"\\\b\f\n\r\t\x01\x7F\xC3\xA4\xFF";
    text_buffer t = {0};
    json j = {0};
    text_string(&t, (doppel_slice){bytes, sizeof bytes - 1});
    assert_true(json_read(&j, t.data, t.length));
    assert_int_equal(j.values->text.length, sizeof bytes - 1 + 2);
    assert_memory_equal(j.values->text.data, bytes, sizeof bytes - 2);
    assert_memory_equal(j.values->text.data + sizeof bytes - 2, "\xEF\xBF\xBD", 3);
    text_free(&t);
    json_free(&j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_limits), cmocka_unit_test(test_held_strings),
        cmocka_unit_test(test_shapes), cmocka_unit_test(test_written_json_is_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
