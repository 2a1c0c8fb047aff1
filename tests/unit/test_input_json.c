/* test_input_json.c - lines of JSON, escapes, numbers, UTF-8 repair. */
#include "input/json.h"

#include "input/reader.h"
#include "kernel/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* Reads a line with fields "id" and "text"; the line has its padding behind it. */
static dp_json_result read_line(const char *line, dp_json_field fields[2]) {
    char *padded = calloc(1, strlen(line) + DP_JSON_PADDING);
    memcpy(padded, line, strlen(line));
    dp_json *json = dp_json_create();
    fields[0] = (dp_json_field){.key = "id", .key_length = 2};
    fields[1] = (dp_json_field){.key = "text", .key_length = 4};
    dp_json_result result = dp_json_read(json, padded, strlen(line), fields, 2);
    for (int i = 0; i < 2; i++)
        if (fields[i].kind != DP_JSON_ABSENT)
            fields[i].raw = line + (fields[i].raw - padded);
    dp_json_free(json);
    free(padded);
    return result;
}

static void check_field(const dp_json_field *field, dp_json_kind kind, const char *raw) {
    assert_int_equal(field->kind, kind);
    assert_int_equal(field->raw_length, strlen(raw));
    assert_memory_equal(field->raw, raw, strlen(raw));
}

static void fields_are_found_in_any_order(void **state) {
    (void)state;
    dp_json_field f[2];
    assert_int_equal(read_line(" {\"x\":[1,{\"text\":2}], \"text\" : \"a\\nb\" ,\"id\":\"7\"} ", f), DP_JSON_OK);
    check_field(&f[0], DP_JSON_STRING, "7");
    check_field(&f[1], DP_JSON_STRING, "a\\nb");
}

static void a_number_keeps_its_text(void **state) {
    (void)state;
    dp_json_field f[2];
    assert_int_equal(read_line("{\"id\": 1.50e3 ,\"text\":123456789012345678901234567890}", f), DP_JSON_OK);
    check_field(&f[0], DP_JSON_NUMBER, "1.50e3");
    check_field(&f[1], DP_JSON_NUMBER, "123456789012345678901234567890");
}

static void the_last_of_equal_keys_counts(void **state) {
    (void)state;
    dp_json_field f[2];
    assert_int_equal(read_line("{\"text\":\"a\",\"te\\u0078t\":\"b\"}", f), DP_JSON_OK);
    check_field(&f[1], DP_JSON_STRING, "b");
    assert_int_equal(f[0].kind, DP_JSON_ABSENT);
}

static void all_that_is_json_is_accepted(void **state) {
    (void)state;
    static const char *const lines[] = {
        "{}",
        "{\"a\":{}}",
        "{\"a\":[]}",
        "{\"a\":[[],{},[[1]],\"\\\"\"]}",
        "{\"a\":true,\"b\":false,\"c\":null}",
        "{\"\":0,\" \":-0,\"e\":1E+5,\"f\":-1.5e-7}",
        "{\"a\\\\\":\"\\\\\"}",
        "{\"a\":\"\\ud83d\\ude00\\ud800\"}",
        "\t{ \"a\" :\t1 }\t",
    };
    dp_json_field f[2];
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (read_line(lines[i], f) != DP_JSON_OK)
            fail_msg("%s", lines[i]);
}

static void what_is_not_json_is_refused(void **state) {
    (void)state;
    static const char *const lines[] = {
        "",
        " ",
        "{",
        "}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1}}",
        "{\"a\":1} x",
        "{\"a\":1}{\"b\":2}",
        "{\"a\":[1,]}",
        "{\"a\":[1 2]}",
        "{\"a\":[1}",
        "{\"a\":[1}]",
        "{\"a\":{\"b\":1]}",
        "{\"a\":tru}",
        "{\"a\":truex}",
        "{\"a\":nul}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":+1}",
        "{\"a\":-}",
        "{\"a\":1e}",
        "{\"a\":0x10}",
        "{\"a\":NaN}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"\\u12\"}",
        "{\"\\q\":1}",
        "{\"a\":\"b}",
        "{\"a\":\"\x01\"}",
        "{\"a\":'b'}",
        "{a:1}",
        "{1:1}",
        "{\"a\" 1}",
        "{\"a\"::1}",
        "{\"a\":1,,\"b\":2}",
        "{\"a\":[,1]}",
        "{\"a\":\"b\"\"c\"}",
        "{\"a\":\"b\"c}",
        "{\"a\":]}",
        "{\"a\":[}",
        "{\"a\":[\"b\":1]}",
    };
    dp_json_field f[2];
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (read_line(lines[i], f) != DP_JSON_BROKEN)
            fail_msg("%s", lines[i]);
}

static void json_of_other_kinds_is_no_object(void **state) {
    (void)state;
    static const char *const lines[] = {"[]", "[{}]", "1", "\"a\"", "null", "true"};
    dp_json_field f[2];
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(read_line(lines[i], f), DP_JSON_NOT_OBJECT);
}

static void invalid_utf8_is_told_apart(void **state) {
    (void)state;
    dp_json_field f[2];
    assert_int_equal(read_line("{\"a\":\"\xFF\"}", f), DP_JSON_NOT_UTF8);
}

static void nesting_has_a_limit(void **state) {
    (void)state;
    char line[4100] = "{\"a\":";
    dp_json_field f[2];
    size_t at = strlen(line);
    memset(line + at, '[', 900);
    memset(line + at + 900, ']', 900);
    strcpy(line + at + 1800, "}");
    assert_int_equal(read_line(line, f), DP_JSON_OK);
    memset(line + at, '[', 2000);
    memset(line + at + 2000, ']', 2000);
    strcpy(line + at + 4000, "}");
    assert_int_equal(read_line(line, f), DP_JSON_BROKEN);
}

/* ---- escapes ---- */

static void check_unescape(const char *raw, const char *text, size_t length, bool is_repaired) {
    char to[256];
    bool repaired = false;
    assert_int_equal(dp_json_unescape(raw, strlen(raw), to, &repaired), length);
    if (length != SIZE_MAX)
        assert_memory_equal(to, text, length);
    assert_int_equal(repaired, is_repaired);
}

static void escapes_become_characters(void **state) {
    (void)state;
    check_unescape("", "", 0, false);
    check_unescape("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t", 8, false);
    check_unescape("\\u0041\\u00e9\\u20AC\\ud83d\\uDE00", "A\u00e9\u20ac\U0001F600", 10, false);
    check_unescape("a\\u0000b", "a\0b", 3, false);
    check_unescape("\\\\n", "\\n", 2, false);
}

static void lone_surrogates_become_replacement_characters(void **state) {
    (void)state;
    check_unescape("a\\ud800b", "a\uFFFDb", 5, true);
    check_unescape("\\udc00\\ud800", "\uFFFD\uFFFD", 6, true);
    check_unescape("\\ud800\\ud83d\\ude00", "\uFFFD\U0001F600", 7, true);
    check_unescape("\\ud800\\u0041", "\uFFFDA", 4, true);
    check_unescape("\\ud800\\n", "\uFFFD\n", 4, true);
}

static void escapes_that_json_lacks_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"\\",         "a\\",          "\\x41",  "\\u",  "\\u12",  "\\u123g",
                                        "\\ud800\\u", "\\ud800\\u12", "\\\x80", "\\\n", "abc\\a", "\\'"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char to[64];
        bool repaired;
        if (dp_json_unescape(wrong[i], strlen(wrong[i]), to, &repaired) != SIZE_MAX)
            fail_msg("%s", wrong[i]);
    }
}

/* A page that ends where the next one cannot be touched. */
static char *guarded(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(two, MAP_FAILED);
    assert_int_equal(mprotect(two + page, page, PROT_NONE), 0);
    return two + page - size;
}

static void every_unescape_variant_gives_the_same(void **state) {
    (void)state;
    static const char letters[] = "aaaaaaaaaaaaa\\\\\\n\"u/t\x80 bf";
    char *raw_end = guarded(0), *to_end = guarded(0);
    srand(1);
    for (int round = 0; round < 20000; round++) {
        size_t length = (size_t)rand() % 200, expected_size, size;
        char *raw = raw_end - length, *to = to_end - length, expected[200];
        int dense = rand() % 2;
        for (size_t i = 0; i < length; i++)
            raw[i] = dense || rand() % 8 == 0 ? letters[(size_t)rand() % (sizeof letters - 1)] : 'x';
        const dp_unescape_variant *last = dp_unescape_variants;
        while (last->needs)
            last++;
        size_t taken = last->run(raw, length, expected, &expected_size);
        for (const dp_unescape_variant *v = dp_unescape_variants; v < last; v++) {
            if (v->needs > dp_cpu_best())
                continue;
            assert_int_equal(v->run(raw, length, to, &size), taken);
            assert_int_equal(size, expected_size);
            assert_memory_equal(to, expected, size);
        }
    }
}

static dp_json_result read_number(const char *number, dp_json_field fields[2]) {
    char line[64];
    snprintf(line, sizeof line, "{\"id\":%s}", number);
    return read_line(line, fields);
}

static void numbers_follow_the_grammar(void **state) {
    (void)state;
    dp_json_field f[2];
    static const char *const right[] = {"0", "-0", "10", "0.5", "1e5", "1E-5", "-12.50e+07"};
    static const char *const wrong[] = {"", "-", "01", "1.", ".5", "1e", "1e+", "+1", "1a", "0x1", "--1", "1.e5"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_int_equal(read_number(right[i], f), DP_JSON_OK);
        assert_int_equal(f[0].kind, DP_JSON_NUMBER);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_not_equal(read_number(wrong[i], f), DP_JSON_OK);
    assert_int_equal(read_number("1 ", f), DP_JSON_OK);
    assert_int_equal(f[0].raw_length, 1);
}

/* ---- UTF-8 ---- */

static void check_repair(const char *text, const char *repaired) {
    dp_buffer out = {0};
    assert_true(dp_utf8_repair(text, strlen(text), &out));
    assert_int_equal(out.size, strlen(repaired));
    if (out.size)
        assert_memory_equal(out.data, repaired, out.size);
    dp_buffer_free(&out);
}

static void valid_utf8_stays(void **state) {
    (void)state;
    check_repair("", "");
    check_repair("a\u00e9\u20ac\U0001F600\U0010FFFF\uD7FF\uE000", "a\u00e9\u20ac\U0001F600\U0010FFFF\uD7FF\uE000");
}

static void each_maximal_invalid_sequence_is_one_replacement(void **state) {
    (void)state;
    check_repair("a\xFFz", "a\uFFFDz");
    check_repair("\xE2\x82z", "\uFFFDz");
    check_repair("\xF0\x9F\x98", "\uFFFD");
    check_repair("\xF0\x9F\x98\xF0\x9F\x98\x80", "\uFFFD\U0001F600");
    check_repair("\xC0\xAF", "\uFFFD\uFFFD");
    check_repair("\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD");
    check_repair("\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD");
    check_repair("\x80\xBF", "\uFFFD\uFFFD");
    check_repair("\xC3", "\uFFFD");
    /* The example of Unicode section 3.9, table 3-11. */
    check_repair("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "\uFFFD\uFFFD\uFFFD\uFFFD\x41");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_found_in_any_order),
        cmocka_unit_test(a_number_keeps_its_text),
        cmocka_unit_test(the_last_of_equal_keys_counts),
        cmocka_unit_test(all_that_is_json_is_accepted),
        cmocka_unit_test(what_is_not_json_is_refused),
        cmocka_unit_test(json_of_other_kinds_is_no_object),
        cmocka_unit_test(invalid_utf8_is_told_apart),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(escapes_become_characters),
        cmocka_unit_test(lone_surrogates_become_replacement_characters),
        cmocka_unit_test(escapes_that_json_lacks_are_refused),
        cmocka_unit_test(every_unescape_variant_gives_the_same),
        cmocka_unit_test(numbers_follow_the_grammar),
        cmocka_unit_test(valid_utf8_stays),
        cmocka_unit_test(each_maximal_invalid_sequence_is_one_replacement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
