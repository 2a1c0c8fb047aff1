/* test_keep.c - which document of a group is kept: rules, and fields as numbers. */
#include "support.h"

#include "decide/decide.h"

#include <math.h>
#include <stdio.h>

/* ---- parsing ---- */

static void rules_are_read_in_order(void **state) {
    (void)state;
    dp_keep_policy keep = {0};
    dp_fields fields = {0};
    assert_int_equal(
        dp_keep_parse("https,shortest-url,newest:date,largest:size,oldest:date,last", &keep, &fields, NULL), DOPPEL_OK);
    static const dp_keep_kind kinds[] = {DP_KEEP_HTTPS,   DP_KEEP_SHORTEST_URL, DP_KEEP_NEWEST,
                                         DP_KEEP_LARGEST, DP_KEEP_OLDEST,       DP_KEEP_LAST};
    assert_int_equal(keep.count, 6);
    for (size_t i = 0; i < keep.count; i++)
        assert_int_equal(keep.rule[i].kind, kinds[i]);
    /* A field is asked for once. */
    assert_int_equal(fields.count, 2);
    assert_string_equal(fields.key[0], "date");
    assert_string_equal(fields.key[1], "size");
    assert_int_equal(keep.rule[2].field, 0);
    assert_int_equal(keep.rule[3].field, 1);
    assert_int_equal(keep.rule[4].field, 0);
}

static void the_first_needs_no_numbers(void **state) {
    (void)state;
    dp_keep_policy keep = {0};
    dp_fields fields = {0};
    assert_int_equal(dp_keep_parse("first", &keep, &fields, NULL), DOPPEL_OK);
    assert_int_equal(keep.count, 0);
    assert_int_equal(dp_keep_parse("longest,first", &keep, &fields, NULL), DOPPEL_OK);
    assert_int_equal(keep.count, 2);
}

static void ids_are_for_callers_that_rank_them(void **state) {
    (void)state;
    dp_keep_policy keep = {0}, with_ids = {.ids = true};
    dp_fields fields = {0};
    doppel_error error = {0};
    assert_int_equal(dp_keep_parse("longest,id", &with_ids, &fields, NULL), DOPPEL_OK);
    assert_int_equal(with_ids.rule[1].kind, DP_KEEP_ID);
    assert_int_equal(dp_keep_parse("longest,id", &keep, &fields, &error), DOPPEL_ERROR_USAGE);
    assert_null(strstr(error.message, "id,"));
    assert_int_equal(dp_keep_parse("id:x", &with_ids, &fields, NULL), DOPPEL_ERROR_USAGE);
}

static void what_is_no_rule_is_refused(void **state) {
    (void)state;
    char long_name[200];
    memset(long_name, 'x', sizeof long_name - 1);
    memcpy(long_name, "newest:", 7);
    long_name[sizeof long_name - 1] = 0;
    const char *bad[] = {"",
                         ",",
                         "first,",
                         ",first",
                         "newest",
                         "newest:",
                         "longest:size",
                         "firsts",
                         "First",
                         "first last",
                         "shortest_url",
                         " first",
                         "first:",
                         "newest:a,,last",
                         long_name,
                         "last,last,last,last,last,last,last,last,last"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dp_keep_policy keep = {0};
        dp_fields fields = {0};
        doppel_error error = {0};
        assert_int_equal(dp_keep_parse(bad[i], &keep, &fields, &error), DOPPEL_ERROR_USAGE);
        assert_true(!strncmp(error.message, "keep: ", 6));
    }
}

static void fields_are_counted(void **state) {
    (void)state;
    dp_fields fields = {0};
    for (size_t i = 0; i < DP_MOST_FIELDS; i++) {
        char name[8];
        int length = snprintf(name, sizeof name, "f%zu", i);
        assert_int_equal(dp_fields_add(&fields, name, (size_t)length), i);
    }
    assert_int_equal(dp_fields_add(&fields, "f3", 2), 3);
    assert_int_equal(dp_fields_add(&fields, "more", 4), DP_MOST_FIELDS);
}

/* ---- ranks ---- */

/* The rank of a document with one field. */
static double rank_of(dp_keep_kind kind, const char *value) {
    dp_keep_policy keep = {.count = 1, .rule = {{kind, 0}}};
    doppel_slice field = {value, value ? strlen(value) : 0};
    double rank;
    dp_keep_rank(&keep, &(dp_keep_document){.text_length = 7, .field = &field}, &rank);
    return rank;
}

static void dates_are_moments(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double seconds;
    } dates[] = {
        {"1970-01-01", 0},
        {"1970-01-02", 86400},
        {"1969-12-31T23:59:59Z", -1},
        {"2000-02-29", 951782400},
        {"2024-03-01T00:00:00Z", 1709251200},
        {"2024-03-01T00:00:00", 1709251200},
        {"2024-03-01 00:00", 1709251200},
        {"2024-03-01t01:30:15.5z", 1709251200 + 5415.5},
        {"2024-03-01T02:00:00+02:00", 1709251200},
        {"2024-02-29T18:30:00-0530", 1709251200},
        {"2024-03-01T05:45+05:45", 1709251200},
        {"2024-03-01T02:00:00+02", 1709251200},
        {"2024-03-01 02:00:00 +0200", 1709251200},
        {"1709251200", 1709251200},
        {"-1e3", -1000},
    };
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        if (rank_of(DP_KEEP_OLDEST, dates[i].text) != dates[i].seconds)
            fail_msg("%s: %f, not %f", dates[i].text, rank_of(DP_KEEP_OLDEST, dates[i].text), dates[i].seconds);
        assert_true(rank_of(DP_KEEP_NEWEST, dates[i].text) == -dates[i].seconds);
    }
}

/* What is no date and no number comes last, whichever way it is sorted. */
static void what_is_no_number_comes_last(void **state) {
    (void)state;
    static const char *const bad[] = {NULL,
                                      "",
                                      "soon",
                                      "12 apples",
                                      "2024-13-01",
                                      "2024-00-10",
                                      "2024-01-32",
                                      "nan",
                                      "2024-01-xx",
                                      "2024-01-01Tx",
                                      "2024-01-01T25:00",
                                      "1111111111222222222233333333334444444444555555555566666666667777"};
    static const dp_keep_kind kinds[] = {DP_KEEP_NEWEST, DP_KEEP_OLDEST, DP_KEEP_LARGEST, DP_KEEP_SMALLEST};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t k = 0; k < 4; k++)
            if (rank_of(kinds[k], bad[i]) != (double)INFINITY)
                fail_msg("\"%s\" by rule %d: %f", bad[i] ? bad[i] : "(none)", (int)kinds[k], rank_of(kinds[k], bad[i]));
}

static void urls_and_lengths_are_ranked(void **state) {
    (void)state;
    dp_keep_policy keep = {
        .count = 4,
        .rule = {{DP_KEEP_HTTPS, 0}, {DP_KEEP_SHORTEST_URL, 0}, {DP_KEEP_LONGEST, 0}, {DP_KEEP_SHORTEST, 0}}};
    dp_keep_document secure = {{"HTTPS://a/b", 11}, 100, NULL}, plain = {{"http://a", 8}, 50, NULL};
    dp_keep_document none = {.text_length = 50};
    double a[4], b[4], c[4];
    dp_keep_rank(&keep, &secure, a);
    dp_keep_rank(&keep, &plain, b);
    dp_keep_rank(&keep, &none, c);
    assert_true(a[0] < b[0] && b[0] == c[0]);
    assert_true(b[1] < a[1] && a[1] < c[1]);
    assert_true(a[2] < b[2] && b[3] < a[3]);
}

/* ---- comparing ---- */

static int compare(const char *rules, const double *a, const double *b) {
    dp_keep_policy keep = {0};
    dp_fields fields = {0};
    assert_int_equal(dp_keep_parse(rules, &keep, &fields, NULL), DOPPEL_OK);
    int order = dp_keep_compare(&keep, &(dp_keep_place){a, 1}, &(dp_keep_place){b, 2});
    assert_int_equal(dp_keep_compare(&keep, &(dp_keep_place){b, 2}, &(dp_keep_place){a, 1}), -order);
    return order;
}

static void the_first_rule_that_differs_decides(void **state) {
    (void)state;
    assert_true(compare("longest,https", (double[]){-5, 1}, (double[]){-4, 0}) < 0);
    assert_true(compare("longest,https", (double[]){-5, 1}, (double[]){-5, 0}) > 0);
    assert_true(compare("longest,https", (double[]){-5, 1}, (double[]){-5, 1}) < 0);
}

static void positions_decide_what_is_left_open(void **state) {
    (void)state;
    assert_true(compare("first", NULL, NULL) < 0);
    assert_true(compare("last", (double[]){0}, (double[]){0}) > 0);
    assert_true(compare("longest,last", (double[]){-5, 0}, (double[]){-5, 0}) > 0);
    assert_true(compare("longest,last", (double[]){-5, 0}, (double[]){-4, 0}) < 0);
    /* What follows `first` or `last` has nothing left to decide. */
    assert_true(compare("first,https", (double[]){0, 1}, (double[]){0, 0}) < 0);
    assert_true(compare("last,https", (double[]){0, 0}, (double[]){0, 1}) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_read_in_order),
        cmocka_unit_test(the_first_needs_no_numbers),
        cmocka_unit_test(ids_are_for_callers_that_rank_them),
        cmocka_unit_test(what_is_no_rule_is_refused),
        cmocka_unit_test(fields_are_counted),
        cmocka_unit_test(dates_are_moments),
        cmocka_unit_test(what_is_no_number_comes_last),
        cmocka_unit_test(urls_and_lengths_are_ranked),
        cmocka_unit_test(the_first_rule_that_differs_decides),
        cmocka_unit_test(positions_decide_what_is_left_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
