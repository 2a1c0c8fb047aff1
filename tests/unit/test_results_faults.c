/* test_results_faults.c - search results folded without memory, and so a whole engine in memory: a clear
 * error, no leak, and the same call works afterwards. */
#include "faults.h"

#include "engine_cases.h"

/* The parser of pages leaks some of what it has when it gets no more. What the library has is counted by faults.h. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

enum { RESULTS = 6 };

static doppel_status fold_all(const char *preset, uint64_t *result) {
    static const char *const texts[RESULTS] = {ARTICLE, OTHER_ARTICLE, ARTICLE_CHANGED, TRANSLATED, "", OTHER_ARTICLE};
    static const char *const titles[RESULTS] = {"Harbour bridge opens after nine years", "Kilns", NULL, NULL,
                                                "Harbor bridge opens after nine years",  NULL};
    doppel_item items[RESULTS];
    doppel_verdict verdicts[RESULTS] = {{0}};
    size_t fold[RESULTS];
    doppel_error error = {0};
    doppel_engine_options options = {.size = sizeof options, .preset = preset, .threads = 2};
    for (size_t i = 0; i < RESULTS; i++) {
        items[i] = (doppel_item){.size = sizeof *items};
        if (i % 2)
            items[i].document.url.data = "http://a.example/", items[i].document.url.length = 17;
        items[i].document.text.data = texts[i];
        items[i].document.text.length = strlen(texts[i]);
        items[i].document.title.data = titles[i];
        items[i].document.title.length = titles[i] ? strlen(titles[i]) : 0;
    }
    doppel_status status = doppel_dedupe_results(items, RESULTS, &options, fold, verdicts, &error);
    assert_true(status == DOPPEL_OK || error.message[0]);
    for (size_t i = 0; i < RESULTS; i++) {
        if (status == DOPPEL_OK)
            *result = mixed(mixed(*result, fold[i]), verdicts[i].original_id.length);
        doppel_verdict_free(&verdicts[i]);
    }
    return status;
}

static doppel_status by_similarity(uint64_t *result) {
    return fold_all("general", result);
}

static doppel_status by_distance(uint64_t *result) {
    return fold_all("article", result);
}

static void results_without_memory(void **state) {
    (void)state;
    for (int go_on = 0; go_on < 2; go_on++) {
        const fault_plan plan = {.kinds = MEMORY, .go_on = go_on, .expected = DOPPEL_ERROR_MEMORY, .may_pass = true};
        run_with(by_similarity, plan);
        run_with(by_distance, plan);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
