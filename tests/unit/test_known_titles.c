/* test_known_titles.c - titles as evidence: which of them count. */
#include "support.h"

#include "engine/known.h"
#include "sketch/sketch.h"

#include <stdio.h>

static const dp_known_options by_distance = {.bits = 64, .distance = 3, .titles = true, .title_similarity = 0.9};

static dp_title_hit ask(dp_known *known, const char *title, double share) {
    dp_title_matches matches = {0};
    dp_title_hit hit;
    dp_title_query query = {.title = {title, strlen(title)}, .below = UINT64_MAX, .share = share};
    assert_int_equal(dp_known_find_title(known, &query, &matches, &hit), DOPPEL_OK);
    dp_title_matches_free(&matches);
    return hit;
}

static void put(dp_known *known, uint64_t number, const char *title) {
    dp_trace trace = {.number = number, .kind = DP_TRACE_DOCUMENT, .id_hash = number, .title = {title, strlen(title)}};
    assert_int_equal(dp_known_add(known, &trace), DOPPEL_OK);
}

static const char common[] = "a title that is everywhere", rare[] = "a title that has one owner";

static void titles_that_are_everywhere_do_not_count(void **state) {
    (void)state;
    dp_known *known;
    assert_int_equal(dp_known_create(&by_distance, &known, NULL), DOPPEL_OK);
    put(known, 1, rare);
    for (uint64_t n = 2; n < 10; n++)
        put(known, n, common);
    assert_int_equal(ask(known, common, 0.01).number, 2); /* eight are few */
    put(known, 10, common);
    assert_int_equal(ask(known, common, 0.01).number, 0);
    assert_int_equal(ask(known, common, 0.95).number, 2); /* but not more than this share */
    assert_int_equal(ask(known, "a title that is everywhare", 0.01).number, 0);
    assert_int_equal(ask(known, rare, 0.01).number, 1);
    dp_known_free(known);
}

/* Duplicates are not added, but their title counts as often as it came. */
static void titles_that_came_often_do_not_count(void **state) {
    (void)state;
    dp_known *known;
    const char *typo = "a title that has one owmer";
    assert_int_equal(dp_known_create(&by_distance, &known, NULL), DOPPEL_OK);
    put(known, 1, rare);
    put(known, 2, common);
    doppel_slice seen = {rare, sizeof rare - 1};
    assert_int_equal(dp_known_title_seen(known, seen, 7), DOPPEL_OK);
    assert_int_equal(ask(known, rare, 0.1).number, 1);
    assert_int_equal(ask(known, typo, 0.1).number, 1);
    assert_int_equal(dp_known_title_seen(known, seen, 1), DOPPEL_OK);
    assert_int_equal(ask(known, rare, 0.1).number, 0);
    assert_int_equal(ask(known, typo, 0.1).number, 0);
    assert_int_equal(ask(known, common, 0.1).number, 2);
    /* One that came often in another spelling. */
    seen = (doppel_slice){"a title that is everywhera", sizeof common - 1};
    assert_int_equal(dp_known_title_seen(known, seen, 9), DOPPEL_OK);
    assert_int_equal(ask(known, seen.data, 0.1).number, 0);
    assert_int_equal(ask(known, common, 0.1).number, 2);
    for (int i = 0; i < 500; i++) {
        char title[64];
        seen = (doppel_slice){title, (size_t)snprintf(title, sizeof title, "another title, number %d", i)};
        assert_int_equal(dp_known_title_seen(known, seen, 1), DOPPEL_OK);
    }
    assert_int_equal(ask(known, rare, 0.01).number, 0);
    assert_int_equal(ask(known, rare, 0.5).number, 1);
    dp_known_free(known);
}

/* Titles of all widths of code points have the hash of their text. */
static void hashes_of_titles_and_entries_agree(void **state) {
    (void)state;
    static const char *const titles[] = {"a plain title of letters", "ein Titel mit Ümläuten darin",
                                         "заголовок из букв", "一个只有汉字的标题在这里",
                                         "a title with \U0001F600 in it"};
    dp_titles_index *index;
    dp_title_matches found = {0};
    assert_int_equal(dp_titles_index_create(0.9, &index), DOPPEL_OK);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        assert_int_equal(dp_titles_index_add(index, titles[i], strlen(titles[i]), i), DOPPEL_OK);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        uint64_t hash;
        assert_int_equal(dp_titles_index_find(index, titles[i], strlen(titles[i]), &found), DOPPEL_OK);
        assert_int_equal(found.count, 1);
        assert_int_equal(dp_titles_index_hash(index, titles[i], strlen(titles[i]), &hash), DOPPEL_OK);
        assert_int_equal(dp_titles_index_hash_of(index, &found.match[0]), hash);
    }
    dp_title_matches_free(&found);
    dp_titles_index_free(index);
}

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(titles_that_are_everywhere_do_not_count),
        cmocka_unit_test(titles_that_came_often_do_not_count),
        cmocka_unit_test(hashes_of_titles_and_entries_agree),
        cmocka_unit_test(empty_titles_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
