/* test_record.c - records edited in place: members that are left out, and parts of strings that are cut. What is
 * cut of a string, still escaped, is what the same cuts leave of its text. */
#include "support.h"

#include "input/input.h"
#include "input/json.h"

#include <stdio.h>

/* ---- members ---- */

/* The record without the members that have these names (NULL at the end), closed again. */
static dp_buffer strip(const char *record, const char *const *names, bool *had) {
    size_t count = 0, length = strlen(record);
    while (names[count])
        count++;
    /* Neither the record nor the room is touched behind its end. */
    guarded from = guarded_create(length), to = guarded_create(length);
    char *room = guarded_copy(to, NULL, length);
    const doppel_slice given = {guarded_copy(from, record, length), length};
    size_t size = doppel_record_strip(given, names, count, room, had);
    dp_buffer made = {0};
    assert_true(size <= length);
    assert_true(dp_buffer_add(&made, room, size) && dp_buffer_add(&made, "}", 2));
    guarded_free(from);
    guarded_free(to);
    return made;
}

static void check(const char *record, const char *name, const char *expected) {
    bool had;
    dp_buffer made = strip(record, (const char *const[]){name, NULL}, &had);
    assert_string_equal(made.data, expected);
    assert_int_equal(had, strcmp(record, expected) != 0);
    dp_buffer_free(&made);
}

static void a_member_goes_wherever_it_stands(void **state) {
    (void)state;
    check("{\"a\":1,\"b\":2,\"c\":3}", "a", "{\"b\":2,\"c\":3}");
    check("{\"a\":1,\"b\":2,\"c\":3}", "b", "{\"a\":1,\"c\":3}");
    check("{\"a\":1,\"b\":2,\"c\":3}", "c", "{\"a\":1,\"b\":2}");
    check("{\"a\":1}", "a", "{}");
}

static void a_record_without_it_stays(void **state) {
    (void)state;
    check("{\"a\":1,\"b\":2}", "c", "{\"a\":1,\"b\":2}");
    check("{}", "a", "{}");
    check("{\"ab\":1,\"\":2}", "a", "{\"ab\":1,\"\":2}");
}

static void values_of_all_kinds_go(void **state) {
    (void)state;
    static const char *const values[] = {"\"text\"",
                                         "\"\"",
                                         "-1.50e+3",
                                         "true",
                                         "null",
                                         "[]",
                                         "{}",
                                         "[1,[2,{\"x\":[3]}],\"]\",\"}\"]",
                                         "{\"a\":{\"x\":\"{[,\"},\"y\":[1,2]}",
                                         "\"\\\"x\\\":1,\\\"\"",
                                         "\"\\\\\"",
                                         "\"ends with \\\\\\\"\"",
                                         "\"}{][,:\""};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char record[200], left[200];
        snprintf(record, sizeof record, "{\"k\":%s,\"x\":%s,\"l\":%s}", values[i], values[i], values[i]);
        snprintf(left, sizeof left, "{\"k\":%s,\"l\":%s}", values[i], values[i]);
        check(record, "x", left);
    }
}

static void only_members_of_the_record_itself_go(void **state) {
    (void)state;
    check("{\"b\":{\"a\":1},\"c\":[{\"a\":2}],\"d\":\"a\",\"a\":3}", "a",
          "{\"b\":{\"a\":1},\"c\":[{\"a\":2}],\"d\":\"a\"}");
}

static void a_member_that_is_there_twice_goes_twice(void **state) {
    (void)state;
    check("{\"a\":1,\"a\":2,\"b\":3,\"a\":4}", "a", "{\"b\":3}");
}

static void white_space_of_others_stays(void **state) {
    (void)state;
    check("  { \"a\" : 1 , \"b\" :\t2 , \"c\" : [ 3 , 4 ] }", "b", "  { \"a\" : 1 , \"c\" : [ 3 , 4 ] }");
    check("{ \"a\" : 1 , \"b\" : 2 }", "a", "{ \"b\" : 2 }");
    check("{ \"a\" : 1 }", "a", "{}");
}

static void several_names_go_at_once(void **state) {
    (void)state;
    bool had;
    dp_buffer made = strip("{\"a\":1,\"b\":2,\"c\":3}", (const char *const[]){"c", "none", "a", NULL}, &had);
    assert_string_equal(made.data, "{\"b\":2}");
    assert_true(had);
    dp_buffer_free(&made);
    made = strip("{\"a\":1}", (const char *const[]){NULL}, NULL);
    assert_string_equal(made.data, "{\"a\":1}");
    dp_buffer_free(&made);
}

/* ---- random records ---- */

static void add_space(dp_buffer *to, uint64_t *random) {
    static const char *const spaces[] = {"", "", "", " ", "\t", "  "};
    assert_true(dp_buffer_printf(to, "%s", spaces[random_below(random, sizeof spaces / sizeof *spaces)]));
}

static void add_string(dp_buffer *to, uint64_t *random) {
    static const char *const parts[] = {
        "a", "{", "}", "[", "]", ",", ":", "\\\"", "\\\\", "\\u0022", "\\/", "\xE4\xB8\xAD", "x y", "text"};
    assert_true(dp_buffer_add(to, "\"", 1));
    for (size_t i = random_below(random, 6); i > 0; i--)
        assert_true(dp_buffer_printf(to, "%s", parts[random_below(random, sizeof parts / sizeof *parts)]));
    assert_true(dp_buffer_add(to, "\"", 1));
}

static void add_value(dp_buffer *to, uint64_t *random, size_t depth) {
    size_t kind = random_below(random, depth ? 6 : 4), count = random_below(random, 4);
    add_space(to, random);
    if (kind < 2)
        add_string(to, random);
    else if (kind < 4)
        assert_true(dp_buffer_printf(to, "%s", kind == 2 ? "-1.5e3" : "null"));
    if (kind >= 4) {
        assert_true(dp_buffer_add(to, kind == 4 ? "[" : "{", 1));
        for (size_t i = 0; i < count; i++) {
            assert_true(!i || dp_buffer_add(to, ",", 1));
            if (kind == 5) {
                add_string(to, random);
                assert_true(dp_buffer_add(to, ":", 1));
            }
            add_value(to, random, depth - 1);
        }
        assert_true(dp_buffer_add(to, kind == 4 ? "]" : "}", 1));
    }
    add_space(to, random);
}

/* Members with random values: what is left is the members that are not named. */
static void random_records(void **state) {
    (void)state;
    uint64_t random = 1;
    static const char *const names[] = {"a", "text", "spans", "other", NULL};
    for (size_t round = 0; round < 5000 / SMALLER; round++) {
        dp_buffer record = {0}, left = {0}, member = {0};
        assert_true(dp_buffer_add(&record, "{", 1) && dp_buffer_add(&left, "{", 1));
        for (size_t i = 0, count = random_below(&random, 6); i < count; i++) {
            size_t name = random_below(&random, 4);
            member.size = 0;
            add_space(&member, &random);
            assert_true(dp_buffer_printf(&member, "\"%s\"", names[name]));
            add_space(&member, &random);
            assert_true(dp_buffer_add(&member, ":", 1));
            add_value(&member, &random, 3);
            assert_true((!i || dp_buffer_add(&record, ",", 1)) && dp_buffer_add(&record, member.data, member.size));
            if (name < 2)
                continue;
            assert_true(left.size == 1 || dp_buffer_add(&left, ",", 1));
            assert_true(dp_buffer_add(&left, member.data, member.size));
        }
        assert_true(dp_buffer_add(&record, "}", 2) && dp_buffer_add(&left, "}", 2));
        dp_buffer made = strip(record.data, (const char *const[]){"a", "text", NULL}, NULL);
        assert_string_equal(made.data, left.data);
        dp_buffer_free(&made);
        dp_buffer_free(&record);
        dp_buffer_free(&left);
        dp_buffer_free(&member);
    }
}

/* ---- strings ---- */

/* The text of a string that is still escaped. */
static dp_buffer unescaped(doppel_slice raw) {
    dp_buffer text = {0};
    bool repaired;
    assert_true(dp_reserve(&text.data, &text.capacity, raw.length + 1, 1));
    text.size = dp_json_unescape(raw.data, raw.length, text.data, &repaired);
    assert_true(text.size != SIZE_MAX);
    return text;
}

static dp_buffer cut_raw(doppel_slice raw, const doppel_range *cuts, size_t count) {
    dp_buffer made = {0};
    guarded from = guarded_create(raw.length);
    const doppel_slice given = {guarded_copy(from, raw.data, raw.length), raw.length};
    assert_true(dp_json_string_cut(given, cuts, count, &made));
    guarded_free(from);
    return made;
}

static void check_cut(const char *raw, doppel_range range, const char *expected) {
    dp_buffer made = cut_raw(doppel_slice_of(raw), &range, 1);
    assert_int_equal(made.size, strlen(expected));
    if (made.size)
        assert_memory_equal(made.data, expected, made.size);
    dp_buffer_free(&made);
}

static void plain_bytes_are_cut(void **state) {
    (void)state;
    check_cut("abcdef", (doppel_range){0, 6}, "");
    check_cut("abcdef", (doppel_range){0, 2}, "cdef");
    check_cut("abcdef", (doppel_range){2, 4}, "abef");
    check_cut("abcdef", (doppel_range){4, 6}, "abcd");
    check_cut("abcdef", (doppel_range){3, 3}, "abcdef");
    check_cut("", (doppel_range){0, 0}, "");
}

static void no_cuts_leave_the_string(void **state) {
    (void)state;
    dp_buffer made = cut_raw(doppel_slice_of("a\\nb\\u00e9"), NULL, 0);
    assert_int_equal(made.size, 10);
    assert_memory_equal(made.data, "a\\nb\\u00e9", 10);
    dp_buffer_free(&made);
}

static void each_short_escape_is_one_byte(void **state) {
    (void)state;
    static const char *const escapes[] = {"\\\"", "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"};
    for (size_t i = 0; i < 8; i++) {
        char raw[32], left[32];
        snprintf(raw, sizeof raw, "a%sb%sc", escapes[i], escapes[i]);
        snprintf(left, sizeof left, "ab%sc", escapes[i]);
        check_cut(raw, (doppel_range){1, 2}, left);
        snprintf(left, sizeof left, "a%sbc", escapes[i]);
        check_cut(raw, (doppel_range){3, 4}, left);
        check_cut(raw, (doppel_range){1, 4}, "ac");
    }
}

static void escaped_code_points_have_the_bytes_of_their_text(void **state) {
    (void)state;
    check_cut("a\\u0000b", (doppel_range){1, 2}, "ab");
    check_cut("a\\u007Fb", (doppel_range){1, 2}, "ab");
    check_cut("a\\u0080b", (doppel_range){1, 3}, "ab");
    check_cut("a\\u07ffb", (doppel_range){1, 3}, "ab");
    check_cut("a\\u0800b", (doppel_range){1, 4}, "ab");
    check_cut("a\\uFFFFb", (doppel_range){1, 4}, "ab");
    check_cut("a\\uE000\\ud7ffb", (doppel_range){4, 7}, "a\\uE000b");
}

static void a_pair_of_surrogates_is_four_bytes(void **state) {
    (void)state;
    check_cut("a\\ud83d\\uDE00b", (doppel_range){1, 5}, "ab");
    check_cut("\\uD800\\udc00\\uDBFF\\uDFFF", (doppel_range){0, 4}, "\\uDBFF\\uDFFF");
    check_cut("\\uD800\\udc00\\uDBFF\\uDFFF", (doppel_range){4, 8}, "\\uD800\\udc00");
}

/* Each half by itself is U+FFFD, of three bytes. */
static void lone_halves_are_three_bytes(void **state) {
    (void)state;
    check_cut("a\\ud800b", (doppel_range){1, 4}, "ab");
    check_cut("a\\udc00b", (doppel_range){1, 4}, "ab");
    check_cut("\\udc00\\ud800", (doppel_range){0, 3}, "\\ud800");
    check_cut("\\ud800\\ud800\\udc00x", (doppel_range){0, 3}, "\\ud800\\udc00x");
    check_cut("\\ud800\\u0041x", (doppel_range){3, 4}, "\\ud800x");
    check_cut("\\ud800\\nx", (doppel_range){3, 4}, "\\ud800x");
    check_cut("\\ud800x", (doppel_range){3, 4}, "\\ud800");
    check_cut("\\ud800", (doppel_range){0, 3}, "");
    check_cut("\\ud800\\\\udc00", (doppel_range){3, 4}, "\\ud800udc00");
}

static void several_cuts_are_made_at_once(void **state) {
    (void)state;
    const doppel_range cuts[] = {{0, 1}, {2, 4}, {4, 5}, {9, 10}};
    dp_buffer made = cut_raw(doppel_slice_of("\\nA\\u00e9\\tx\\ud83d\\ude00"), cuts, 3);
    assert_int_equal(made.size, 14);
    assert_memory_equal(made.data, "Ax\\ud83d\\ude00", 14);
    dp_buffer_free(&made);
}

/* ---- random strings ---- */

/* A string, still escaped, and the places in its text where a code point begins, its end as well. */
typedef struct random_string {
    dp_buffer raw;
    size_t bound[40], bounds;
} random_string;

static random_string make_string(uint64_t *random) {
    static const struct {
        const char *raw;
        size_t bytes;
    } parts[] = {{"a", 1},
                 {"word ", 5},
                 {"\\n", 1},
                 {"\\\"", 1},
                 {"\\\\", 1},
                 {"\\/", 1},
                 {"\\b", 1},
                 {"\\u0041", 1},
                 {"\\u00e9", 2},
                 {"\\u4E2d", 3},
                 {"\xC3\xA9", 2},
                 {"\\uDFFF", 3},
                 {"\\udbff", 3},
                 {"\\ud83d\\ude00", 4},
                 {"\xE4\xB8\xAD", 3},
                 {"u0041", 5},
                 {"\\u0000", 1},
                 {"\\ufffd", 3},
                 {"\xF0\x9F\x98\x80", 4}};
    random_string s = {.bounds = 1};
    bool half = false;
    for (size_t i = random_below(random, 30); i > 0; i--) {
        size_t part = random_below(random, sizeof parts / sizeof *parts);
        /* A half and the next one would be a pair. */
        if (half && !strcmp(parts[part].raw, "\\uDFFF"))
            continue;
        half = !strcmp(parts[part].raw, "\\udbff");
        assert_true(dp_buffer_printf(&s.raw, "%s", parts[part].raw));
        s.bound[s.bounds] = s.bound[s.bounds - 1] + parts[part].bytes;
        s.bounds++;
    }
    assert_true(dp_buffer_add(&s.raw, "", 1));
    s.raw.size--;
    return s;
}

static size_t choose_cuts(const random_string *s, uint64_t *random, doppel_range *cuts) {
    size_t count = 0;
    for (size_t at = 0; at < s->bounds; at++) {
        size_t end = at + random_below(random, 5);
        if (end >= s->bounds || random_below(random, 3))
            continue;
        cuts[count++] = (doppel_range){s->bound[at], s->bound[end]};
        at = end;
    }
    return count;
}

/* The cut of the escaped string unescapes to the cut of the text. */
static void random_strings(void **state) {
    (void)state;
    uint64_t random = 2;
    for (size_t round = 0; round < 20000 / SMALLER; round++) {
        random_string s = make_string(&random);
        doppel_range cuts[40];
        size_t count = choose_cuts(&s, &random, cuts), at = 0;
        dp_buffer text = unescaped((doppel_slice){s.raw.data, s.raw.size}), left = {0};
        assert_int_equal(text.size, s.bound[s.bounds - 1]);
        for (size_t i = 0; i < count; at = (size_t)cuts[i++].end)
            assert_true(dp_buffer_add(&left, text.data + at, (size_t)cuts[i].start - at));
        assert_true(dp_buffer_add(&left, text.data + at, text.size - at));
        dp_buffer made = cut_raw((doppel_slice){s.raw.data, s.raw.size}, cuts, count);
        dp_buffer got = unescaped((doppel_slice){made.data ? made.data : "", made.size});
        assert_int_equal(got.size, left.size);
        if (got.size)
            assert_memory_equal(got.data, left.data, got.size);
        dp_buffer_free(&text);
        dp_buffer_free(&left);
        dp_buffer_free(&made);
        dp_buffer_free(&got);
        dp_buffer_free(&s.raw);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_goes_wherever_it_stands),
        cmocka_unit_test(a_record_without_it_stays),
        cmocka_unit_test(values_of_all_kinds_go),
        cmocka_unit_test(only_members_of_the_record_itself_go),
        cmocka_unit_test(a_member_that_is_there_twice_goes_twice),
        cmocka_unit_test(white_space_of_others_stays),
        cmocka_unit_test(several_names_go_at_once),
        cmocka_unit_test(random_records),
        cmocka_unit_test(plain_bytes_are_cut),
        cmocka_unit_test(no_cuts_leave_the_string),
        cmocka_unit_test(each_short_escape_is_one_byte),
        cmocka_unit_test(escaped_code_points_have_the_bytes_of_their_text),
        cmocka_unit_test(a_pair_of_surrogates_is_four_bytes),
        cmocka_unit_test(lone_halves_are_three_bytes),
        cmocka_unit_test(several_cuts_are_made_at_once),
        cmocka_unit_test(random_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
