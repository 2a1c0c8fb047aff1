/* test_verdict.c - verdicts: what they hold, and how they are printed. */
#include "support.h"

#include "decide/decide.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>

static const dp_rules rules = {
    .by_similarity = true, .similarity = 0.8, .distance = 3, .bits = 64, .titles = true, .title_similarity = 0.9};

static doppel_slice slice(const char *text) {
    return (doppel_slice){text, text ? strlen(text) : 0};
}

static void set(doppel_verdict *v, doppel_reason reason, const doppel_evidence *e, const char *id,
                const char *original) {
    assert_int_equal(dp_verdict_set(v, &rules, reason, e, (doppel_slice[]){slice(id), slice(original)}), DOPPEL_OK);
}

static void assert_json(const doppel_verdict *v, bool lead, const char *expected) {
    char text[1024];
    assert_int_equal(doppel_verdict_json(v, lead, text, sizeof text), strlen(expected));
    assert_string_equal(text, expected);
}

static void a_duplicate_is_printed_whole(void **state) {
    (void)state;
    doppel_verdict v = {0};
    doppel_evidence e = {
        .distance = 2, .similarity = 0.97, .containment = 0.99, .title_similarity = (double)NAN, .verified = true};
    set(&v, DOPPEL_REASON_CONTENT, &e, "new", "old");
    assert_json(&v, false,
                "{\"isDuplicate\":true,\"confidence\":0.97,\"reason\":\"content_hash\",\"originalId\":\"old\","
                "\"evidence\":{\"distance\":2,\"similarity\":0.97,\"containment\":0.99,\"titleSimilarity\":null,"
                "\"sameUrl\":false,\"sameDigest\":false,\"verified\":true}}");
    v.known = true;
    assert_json(&v, true,
                "{\"id\":\"new\",\"isDuplicate\":true,\"known\":true,\"confidence\":0.97,"
                "\"reason\":\"content_hash\",\"originalId\":\"old\","
                "\"evidence\":{\"distance\":2,\"similarity\":0.97,\"containment\":0.99,\"titleSimilarity\":null,"
                "\"sameUrl\":false,\"sameDigest\":false,\"verified\":true}}");
    doppel_verdict_free(&v);
}

static const char unknown[] = "\"evidence\":{\"distance\":null,\"similarity\":null,\"containment\":null,"
                              "\"titleSimilarity\":null,\"sameUrl\":false,\"sameDigest\":false,\"verified\":false}}";

static void what_is_not_known_is_null(void **state) {
    (void)state;
    doppel_verdict v = {0};
    char expected[512];
    set(&v, DOPPEL_REASON_NONE, NULL, "a", "not printed");
    v.replaced = true;
    snprintf(expected, sizeof expected,
             "{\"id\":\"a\",\"isDuplicate\":false,\"replaced\":true,\"confidence\":0,\"reason\":null,"
             "\"originalId\":null,%s",
             unknown);
    assert_json(&v, true, expected);
    assert_null(v.original_id.data);
    set(&v, DOPPEL_REASON_NONE, NULL, NULL, NULL);
    snprintf(expected, sizeof expected,
             "{\"id\":null,\"isDuplicate\":false,\"confidence\":0,\"reason\":null,\"originalId\":null,%s", unknown);
    assert_json(&v, true, expected);
    doppel_verdict_free(&v);
}

static void shares_have_six_digits(void **state) {
    (void)state;
    doppel_verdict v = {0};
    doppel_evidence e = dp_evidence_none();
    e.title_similarity = 12. / 13;
    e.similarity = 1e-7;
    set(&v, DOPPEL_REASON_TITLE, &e, "a", "b");
    static const char expected[] =
        "{\"isDuplicate\":true,\"confidence\":0.461539,\"reason\":\"title_similarity\",\"originalId\":\"b\","
        "\"evidence\":{\"distance\":null,\"similarity\":1e-07,\"containment\":null,\"titleSimilarity\":0.923077,"
        "\"sameUrl\":false,\"sameDigest\":false,\"verified\":false}}";
    assert_json(&v, false, expected);
    /* Whatever the locale writes in place of the point; not every machine has these. */
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8"};
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++)
        if (setlocale(LC_NUMERIC, locales[i]))
            assert_json(&v, false, expected);
    setlocale(LC_NUMERIC, "C");
    doppel_verdict_free(&v);
}

static void ids_are_escaped(void **state) {
    (void)state;
    doppel_verdict v = {0};
    char text[1024];
    set(&v, DOPPEL_REASON_URL, NULL, "a\"b\\c\n\x01\x7F\xFF\xC3\xA9\xE2\x82", "");
    doppel_verdict_json(&v, true, text, sizeof text);
    static const char head[] = "{\"id\":\"a\\\"b\\\\c\\n\\u0001\\u007f\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\",";
    assert_memory_equal(text, head, sizeof head - 1);
    assert_non_null(strstr(text, "\"originalId\":\"\","));
    doppel_verdict_free(&v);
}

static void an_id_may_hold_any_bytes(void **state) {
    (void)state;
    doppel_verdict v = {0};
    char text[1024];
    doppel_slice ids[] = {{"a\0b", 3}, {NULL, 0}};
    assert_int_equal(dp_verdict_set(&v, &rules, DOPPEL_REASON_NONE, NULL, ids), DOPPEL_OK);
    doppel_verdict_json(&v, true, text, sizeof text);
    static const char head[] = "{\"id\":\"a\\u0000b\",";
    assert_memory_equal(text, head, sizeof head - 1);
    doppel_verdict_free(&v);
}

/* As much as fits, a NUL, and how long it would be. */
static void any_room_is_enough(void **state) {
    (void)state;
    doppel_verdict v = {0};
    char whole[1024];
    set(&v, DOPPEL_REASON_URL, NULL, "caf\xC3\xA9 \"x\"", "other");
    size_t length = doppel_verdict_json(&v, true, whole, sizeof whole);
    assert_int_equal(strlen(whole), length);
    assert_int_equal(doppel_verdict_json(&v, true, NULL, 0), length);
    for (size_t room = 1; room <= length + 2; room++) {
        guarded memory = guarded_create(room);
        char *to = guarded_copy(memory, NULL, room);
        assert_int_equal(doppel_verdict_json(&v, true, to, room), length);
        size_t fits = room - 1 < length ? room - 1 : length;
        assert_memory_equal(to, whole, fits);
        assert_int_equal(to[fits], 0);
        guarded_free(memory);
    }
    doppel_verdict_free(&v);
}

static void memory_is_used_again(void **state) {
    (void)state;
    doppel_verdict v = {0};
    set(&v, DOPPEL_REASON_URL, NULL, "a document with a long name", "another document with a long name");
    v.known = v.replaced = true;
    char *memory = v.memory;
    set(&v, DOPPEL_REASON_CONTENT, NULL, "short", "name");
    assert_ptr_equal(v.memory, memory);
    assert_memory_equal(v.id.data, "short", 5);
    assert_memory_equal(v.original_id.data, "name", 4);
    assert_false(v.known || v.replaced);
    assert_int_equal(dp_verdict_name(&v, (doppel_slice[]){slice("other"), slice("names")}), DOPPEL_OK);
    assert_true(v.is_duplicate);
    assert_memory_equal(v.original_id.data, "names", 5);
    doppel_verdict_free(&v);
    assert_null(v.memory);
    doppel_verdict_free(&v);
    doppel_verdict_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_duplicate_is_printed_whole), cmocka_unit_test(what_is_not_known_is_null),
        cmocka_unit_test(shares_have_six_digits),       cmocka_unit_test(ids_are_escaped),
        cmocka_unit_test(an_id_may_hold_any_bytes),     cmocka_unit_test(any_room_is_enough),
        cmocka_unit_test(memory_is_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
