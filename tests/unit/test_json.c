/* test_json.c - JSON as it is written: escapes, invalid UTF-8, members, numbers, little room, no memory. */
#include "support.h"

#include "base/base.h"

#include <locale.h>
#include <math.h>

/* What a string is written as, NUL-ended. */
static const char *written(const char *bytes, size_t length) {
    static char out[4096];
    assert_true(doppel_json_string((doppel_slice){bytes, length}, out, sizeof out) < sizeof out);
    return out;
}

static void strings_are_escaped(void **state) {
    (void)state;
    assert_string_equal(written("", 0), "\"\"");
    assert_string_equal(written(NULL, 0), "null");
    assert_string_equal(written("plain / text", 12), "\"plain / text\"");
    assert_string_equal(written("\"\\", 2), "\"\\\"\\\\\"");
    assert_string_equal(written("\b\t\n\f\r", 5), "\"\\b\\t\\n\\f\\r\"");
    assert_string_equal(written("\0\v\x1F\x7F", 4), "\"\\u0000\\u000b\\u001f\\u007f\"");
    assert_string_equal(written("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9), "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
}

static void invalid_utf8_is_replaced(void **state) {
    (void)state;
    assert_string_equal(written("a\xFF"
                                "b",
                                3),
                        "\"a\xEF\xBF\xBD"
                        "b\"");
    /* A sequence that is cut is one error, a surrogate is three. */
    assert_string_equal(written("\xE2\x82", 2), "\"\xEF\xBF\xBD\"");
    assert_string_equal(written("\xED\xA0\x80", 3), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

static void members_are_separated(void **state) {
    (void)state;
    dp_buffer out = {0};
    dp_json_writer w = {.buffer = &out};
    dp_json_text(&w, "{");
    dp_json_key(&w, "a");
    dp_json_bool(&w, true);
    dp_json_key(&w, "b");
    dp_json_text(&w, "{");
    dp_json_key(&w, "c");
    dp_json_count(&w, UINT64_MAX);
    dp_json_text(&w, "}");
    dp_json_key(&w, "d");
    dp_json_string(&w, (doppel_slice){"{", 1});
    dp_json_key(&w, "e");
    dp_json_share(&w, NAN);
    dp_json_text(&w, "}");
    dp_json_put(&w, "", 1);
    assert_false(w.failed);
    assert_int_equal(w.length, out.size);
    assert_string_equal(out.data, "{\"a\":true,\"b\":{\"c\":18446744073709551615},\"d\":\"{\",\"e\":null}");
    dp_buffer_free(&out);
}

static const char *share(double value) {
    static char out[64];
    dp_json_writer w = {.to = out, .room = sizeof out};
    dp_json_share(&w, value);
    assert_true(w.length < sizeof out);
    out[w.length] = 0;
    return out;
}

static void numbers_have_six_digits_and_a_point(void **state) {
    (void)state;
    static const char *const locales[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8"}; /* those that are installed */
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        setlocale(LC_ALL, locales[i]);
        assert_string_equal(share(0), "0");
        assert_string_equal(share(1), "1");
        assert_string_equal(share(-3), "-3");
        assert_string_equal(share(2.0 / 3), "0.666667");
        assert_string_equal(share(1.5e-9), "1.5e-09");
    }
    setlocale(LC_ALL, "C");
}

static void what_does_not_fit_is_counted(void **state) {
    (void)state;
    static const char text[] = "a\nb\xFF\xE2\x82\xAC";
    char whole[64], part[64];
    size_t length = doppel_json_string((doppel_slice){text, sizeof text - 1}, whole, sizeof whole);
    assert_int_equal(length, strlen(whole));
    for (size_t room = 0; room <= length + 1; room++) {
        memset(part, '#', sizeof part);
        assert_int_equal(doppel_json_string((doppel_slice){text, sizeof text - 1}, room ? part : NULL, room), length);
        assert_memory_equal(part, whole, room ? room - 1 : 0);
        assert_true(!room || part[room - 1] == 0);
        assert_int_equal(part[room], '#');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_escaped), cmocka_unit_test(invalid_utf8_is_replaced),
        cmocka_unit_test(members_are_separated), cmocka_unit_test(numbers_have_six_digits_and_a_point),
        cmocka_unit_test(what_does_not_fit_is_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
