/* test_decide_titles.c - which titles are evidence. */
#include "support.h"

#include "decide/decide.h"
#include "sketch/sketch.h"

/* The list of empty titles is in the form that normalising gives. */
static void empty_titles_do_not_count(void **state) {
    (void)state;
    static const char *const empty[] = {"Breaking News!",
                                        "404 - Page not found",
                                        "Just a moment...",
                                        "Untitled Document",
                                        "ページが見つかりません",
                                        "Страница не найдена",
                                        "Página no encontrada",
                                        "Short one",
                                        "",
                                        "Datenschutzerklärung",
                                        "페이지를 찾을 수 없습니다"};
    static const char *const full[] = {"Breaking news: man bites dog", "Ten letter",
                                       "A page that was not found in Rome"};
    doppel_sketcher *sketcher;
    doppel_slice title;
    assert_int_equal(dp_title_sketcher_create(&sketcher, NULL), DOPPEL_OK);
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        assert_int_equal(dp_title_normalise(sketcher, empty[i], strlen(empty[i]), &title), DOPPEL_OK);
        if (dp_title_counts(title))
            fail_msg("%s", empty[i]);
    }
    for (size_t i = 0; i < sizeof full / sizeof *full; i++) {
        assert_int_equal(dp_title_normalise(sketcher, full[i], strlen(full[i]), &title), DOPPEL_OK);
        assert_true(dp_title_counts(title));
    }
    doppel_sketcher_free(sketcher);
}

/* Ten code points are enough, however many bytes they have. */
static void short_titles_do_not_count(void **state) {
    (void)state;
    assert_false(dp_title_counts((doppel_slice){NULL, 0}));
    assert_false(dp_title_counts((doppel_slice){"nine char", 9}));
    assert_true(dp_title_counts((doppel_slice){"ten  chars", 10}));
    assert_false(dp_title_counts((doppel_slice){"ååååååååå", 18}));
    assert_true(dp_title_counts((doppel_slice){"åååååååååå", 20}));
}

/* More than 8 times, and by more than the share; both must be exceeded. */
static void frequent_titles_exceed_both_bounds(void **state) {
    (void)state;
    assert_false(dp_title_is_frequent(0, 0, 0));
    assert_false(dp_title_is_frequent(8, 8, 0));
    assert_true(dp_title_is_frequent(9, 9, 0));
    assert_false(dp_title_is_frequent(10, 10000, 0.001));
    assert_true(dp_title_is_frequent(11, 10000, 0.001));
    assert_false(dp_title_is_frequent(9, 9, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_titles_do_not_count),
        cmocka_unit_test(short_titles_do_not_count),
        cmocka_unit_test(frequent_titles_exceed_both_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
