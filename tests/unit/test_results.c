/* test_results.c - search results folded: which are shown, and under which the others go. */
#include "support.h"

#include "doppel.h"
#include "engine_cases.h"

#include <stdio.h>

static doppel_item result_of(const char *id, const char *url, const char *title, const char *text) {
    doppel_item item = {.size = sizeof item};
    item.document = (doppel_document){.id.data = id, .url.data = url, .title.data = title, .text.data = text};
    item.document.id.length = id ? strlen(id) : 0;
    item.document.url.length = url ? strlen(url) : 0;
    item.document.title.length = title ? strlen(title) : 0;
    item.document.text.length = text ? strlen(text) : 0;
    return item;
}

static void assert_id(doppel_slice id, const char *expected) {
    if (!expected) {
        assert_null(id.data);
        return;
    }
    assert_int_equal(id.length, strlen(expected));
    assert_memory_equal(id.data, expected, id.length);
}

static void copies_fold_under_the_first(void **state) {
    (void)state;
    const doppel_item results[] = {
        result_of("a", "http://a.example/bridge", "Harbour bridge opens after nine years", ARTICLE),
        result_of("b", "http://b.example/kilns", "The kilns of the hills", OTHER_ARTICLE),
        result_of("c", "http://c.example/1", NULL, ARTICLE),                               /* the words of a */
        result_of("d", "http://d.example/1", NULL, ARTICLE_CHANGED),                       /* near a */
        result_of("e", "https://www.b.example/kilns/#top", NULL, TRANSLATED),              /* the URL of b */
        result_of("f", "http://f.example/", "Harbor bridge opens after nine years", NULL), /* the title of a */
        result_of("g", "http://g.example/", "Quite another thing", NULL),
        result_of(NULL, "http://h.example/", NULL, TRANSLATED), /* the words of e */
        result_of(NULL, NULL, NULL, TRANSLATED),
        result_of(NULL, NULL, NULL, "words that nobody else has said so far"),
        result_of("a", NULL, NULL, "the id of another, but not its words at all"),
    };
    static const size_t expected[] = {0, 1, 0, 0, 1, 0, 6, 1, 1, 9, 10};
    static const char *const originals[] = {NULL, NULL, "a", "a", "b", "a", NULL, "b", "b", NULL, NULL};
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "http://h.example/", "8", "9", "a"};
    enum { COUNT = sizeof results / sizeof *results };
    size_t fold[COUNT], again[COUNT];
    doppel_verdict verdicts[COUNT] = {{0}};
    doppel_error error = {0};
    if (doppel_dedupe_results(results, COUNT, NULL, fold, verdicts, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < COUNT; i++) {
        if (fold[i] != expected[i])
            fail_msg("result %zu folds under %zu", i, fold[i]);
        assert_int_equal(verdicts[i].is_duplicate, expected[i] != i);
        assert_id(verdicts[i].id, names[i]);
        assert_id(verdicts[i].original_id, originals[i]);
        doppel_verdict_free(&verdicts[i]);
    }
    assert_int_equal(doppel_dedupe_results(results, COUNT, NULL, again, NULL, NULL), DOPPEL_OK);
    assert_memory_equal(again, fold, sizeof fold);
}

/* What a caller wants of an engine that remembers makes no result vanish. */
static void options_cannot_hide_results(void **state) {
    (void)state;
    doppel_item results[] = {result_of("a", "http://a.example/", NULL, ARTICLE),
                             result_of("b", "http://a.example/", NULL, OTHER_ARTICLE),
                             result_of("c", "http://c.example/", NULL, ARTICLE)};
    doppel_engine_options options = {.size = sizeof options,
                                     .on_duplicate = DOPPEL_DUPLICATE_STORE,
                                     .on_same_url = DOPPEL_SAME_URL_REFRESH,
                                     .ttl = 1,
                                     .read_only = true,
                                     .must_exist = true};
    size_t fold[3];
    results[0].ttl = 1;
    assert_int_equal(doppel_dedupe_results(results, 3, &options, fold, NULL, NULL), DOPPEL_OK);
    assert_int_equal(fold[1], 0);
    assert_int_equal(fold[2], 0);
    options.preset = "crawl";
    options.distance = 20;
    assert_int_equal(doppel_dedupe_results(results, 3, &options, fold, NULL, NULL), DOPPEL_OK);
    assert_int_equal(fold[2], 0);
}

static void a_bad_result_is_named(void **state) {
    (void)state;
    doppel_item results[] = {result_of("a", NULL, NULL, ARTICLE), result_of("b", NULL, NULL, ARTICLE)};
    doppel_error error = {0};
    size_t fold[2];
    char *url = malloc(70000);
    memset(url, 'u', 70000);
    results[1].document.url.data = url;
    results[1].document.url.length = 70000;
    assert_int_equal(doppel_dedupe_results(results, 2, NULL, fold, NULL, &error), DOPPEL_ERROR_INPUT);
    assert_non_null(strstr(error.message, "result 1: a URL of 70000 bytes"));
    assert_int_equal(doppel_dedupe_results(results, 2, NULL, fold, NULL, NULL), DOPPEL_ERROR_INPUT);
    free(url);
    doppel_engine_options options = {.size = sizeof options, .preset = "no such preset"};
    assert_int_equal(doppel_dedupe_results(results, 1, &options, fold, NULL, &error), DOPPEL_ERROR_USAGE);
}

static void no_results_are_fine(void **state) {
    (void)state;
    assert_int_equal(doppel_dedupe_results(NULL, 0, NULL, NULL, NULL, NULL), DOPPEL_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_fold_under_the_first),
        cmocka_unit_test(options_cannot_hide_results),
        cmocka_unit_test(a_bad_result_is_named),
        cmocka_unit_test(no_results_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
