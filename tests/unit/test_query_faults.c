/* test_query_faults.c - asking without memory: a clear error, no leak, and the same item works afterwards. */
#include "faults.h"

#include "engine/query.h"
#include "sketch/sketch.h"

/* The parser of pages leaks some of what it has when it gets no more. What the library has is counted by faults.h. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

static const char html[] =
    "<title>The Life of Whales</title><link rel=canonical href=/whales><main><p>Whales breathe air"
    " and have lungs, as all of their kind do, wherever they live.</main>";

static uint64_t sum_of(const dp_query *q) {
    uint64_t sum = mixed(mixed(q->id.length, q->canonical.length), mixed(q->title_key.length, q->fields.length));
    sum = mixed(mixed(sum, q->fingerprint[0]), dp_load64(q->digest));
    for (size_t i = 0; i < q->key_count; i++)
        sum = mixed(sum, q->keys[i]);
    return mixed(sum, q->set_count);
}

static doppel_status ask_all(dp_query_maker *asker, uint64_t *result) {
    doppel_slice extra = {"a \"wire\"", 8};
    doppel_item item = {.size = sizeof item,
                        .document = {.url.data = "http://a.example/x", .url.length = 18, .extra = &extra}};
    item.document.html.data = html;
    item.document.html.length = sizeof html - 1;
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < 2 && status == DOPPEL_OK; i++) {
        dp_query query, *copy;
        doppel_error error = {0};
        status = dp_query_make(asker, &item, &query, &error);
        assert_true(status == DOPPEL_OK || error.message[0]);
        if (status == DOPPEL_OK && !(copy = dp_query_copy(&query)))
            status = DOPPEL_ERROR_MEMORY;
        if (status != DOPPEL_OK)
            break;
        *result = mixed(*result, sum_of(copy));
        free(copy);
        item.document.html.data = NULL; /* then the text */
        item.document.text.data = html;
        item.document.text.length = sizeof html - 1;
    }
    return status;
}

static doppel_status asking(uint64_t *result) {
    char *fields[] = {(char[]){"source"}};
    dp_query_settings how = {.recipe = dp_recipe_default(),
                             .by_similarity = true,
                             .min_words = 5,
                             .titles = true,
                             .keep_text = true,
                             .fields = fields,
                             .field_count = 1};
    assert_true(dp_bands_plan(0.8, &how.bands, &how.rows));
    dp_query_maker *asker;
    doppel_error error = {0};
    doppel_status status = dp_query_maker_create(&how, &asker, &error);
    assert_true(status == DOPPEL_OK || error.message[0]);
    if (status == DOPPEL_OK)
        status = ask_all(asker, result);
    dp_query_maker_free(asker);
    return status;
}

static void asking_without_memory(void **state) {
    (void)state;
    for (int go_on = 0; go_on < 2; go_on++)
        run_with(asking, (fault_plan){.kinds = MEMORY, .go_on = go_on, .expected = DOPPEL_ERROR_MEMORY});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(asking_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
