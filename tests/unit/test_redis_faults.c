/* test_redis_faults.c - an engine in Redis without memory: a clear error, no leak, and the same calls work afterwards.
 */
#include "faults.h"

#include "engine_cases.h"
#include "redis_server.h"

/* The parser of pages leaks some of what it has when it gets no more. What the library has is counted by faults.h. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

static redis_server redis;

enum { ITEMS = 6 };

static void make_items(doppel_item items[ITEMS]) {
    static const char *const texts[ITEMS] = {ARTICLE, OTHER_ARTICLE, ARTICLE_CHANGED, TRANSLATED, "", OTHER_ARTICLE};
    static const char *const titles[ITEMS] = {"Harbour bridge opens after nine years", "Kilns", NULL, NULL,
                                              "Harbor bridge opens after nine years",  NULL};
    static const char *const ids[ITEMS] = {"a", "b", "c", "d", "e", "f"};
    for (size_t i = 0; i < ITEMS; i++) {
        items[i] = (doppel_item){.size = sizeof *items, .origin = {ids[i], 1}};
        items[i].document =
            (doppel_document){.id.data = ids[i], .id.length = 1, .text.data = texts[i], .title.data = titles[i]};
        items[i].document.text.length = strlen(texts[i]);
        items[i].document.title.length = titles[i] ? strlen(titles[i]) : 0;
        if (i % 2)
            items[i].document.url.data = "http://a.example/", items[i].document.url.length = 17;
    }
}

static bool note(const doppel_stored *stored, void *user) {
    uint64_t *result = user;
    *result = mixed(mixed(*result, stored->number), stored->text.length);
    return true;
}

static doppel_status add_all(doppel_engine *engine, uint64_t *result, doppel_error *error) {
    doppel_item items[ITEMS];
    doppel_verdict verdicts[ITEMS] = {{0}};
    make_items(items);
    doppel_status status = doppel_engine_add(engine, &items[0], &verdicts[0], error);
    if (status == DOPPEL_OK)
        status = doppel_engine_add_batch(engine, items, ITEMS, verdicts, NULL, error);
    if (status == DOPPEL_OK)
        status = doppel_engine_check(engine, &items[1], &verdicts[1], error);
    for (size_t i = 0; i < ITEMS; i++) {
        *result = mixed(mixed(*result, verdicts[i].is_duplicate), verdicts[i].original_id.length);
        doppel_verdict_free(&verdicts[i]);
    }
    return status;
}

static doppel_status list_all(doppel_engine *engine, uint64_t *result, doppel_error *error) {
    doppel_stored_list list = {0};
    doppel_item items[ITEMS];
    make_items(items);
    doppel_status status = doppel_engine_get(engine, doppel_slice_of("http://a.example/"), &list, error);
    *result = mixed(*result, list.count);
    if (status == DOPPEL_OK)
        status = doppel_engine_find_similar(engine, &items[2], NULL, &list, error);
    *result = mixed(*result, list.count);
    if (status == DOPPEL_OK)
        status = doppel_engine_groups(engine, 10, &list, error);
    *result = mixed(*result, list.count);
    if (status == DOPPEL_OK)
        status = doppel_engine_each(engine, note, result, NULL, error);
    doppel_stored_list_free(&list);
    return status;
}

static doppel_status live(uint64_t *result) {
    const doppel_engine_options options = {.size = sizeof options,
                                           .preset = "article",
                                           .on_duplicate = DOPPEL_DUPLICATE_LINK,
                                           .keep_text = DOPPEL_SWITCH_ON,
                                           .threads = 2};
    doppel_engine *engine;
    doppel_error error = {0};
    bool removed = false;
    int kinds = pause_faults();
    redis_do(&redis, "FLUSHALL");
    resume_faults(kinds);
    doppel_status status = doppel_engine_open(redis.url, &options, &engine, &error);
    if (status == DOPPEL_OK)
        status = add_all(engine, result, &error);
    if (status == DOPPEL_OK)
        status = list_all(engine, result, &error);
    if (status == DOPPEL_OK)
        status = doppel_engine_remove(engine, doppel_slice_of("a"), &removed, &error);
    *result = mixed(*result, removed);
    doppel_engine_close(engine);
    assert_true(status == DOPPEL_OK || error.message[0]);
    if (status == DOPPEL_ERROR_MEMORY)
        *result = 0;
    return status;
}

static void an_engine_in_redis_without_memory(void **state) {
    static const char *const settings[] = {"--save", "", NULL};
    (void)state;
    redis = redis_start(settings);
    for (int go_on = 0; go_on < 2; go_on++) {
        const fault_plan plan = {
            .kinds = MEMORY, .go_on = go_on, .expected = DOPPEL_ERROR_MEMORY, .may_pass = true, .sparse = true};
        run_with(live, plan);
    }
    redis_remove(&redis);
}

int main(void) {
    if (!redis_installed())
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_engine_in_redis_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
