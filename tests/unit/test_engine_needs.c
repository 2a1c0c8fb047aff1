/* test_engine_needs.c - what an engine needs, by its path alone. */
#include "support.h"

#include "doppel.h"

static doppel_engine_needs needs_of(const char *path) {
    doppel_engine_needs needs;
    doppel_error error = {0};
    memset(&needs, 1, sizeof needs);
    assert_int_equal(doppel_engine_get_needs(path, &needs, &error), DOPPEL_OK);
    return needs;
}

static void a_folder_has_one_writer(void **state) {
    static const char *const paths[] = {"seen", "/var/lib/doppel/seen", ".", "redis", "redis:/seen", "./redis://host"};
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        doppel_engine_needs needs = needs_of(paths[i]);
        assert_true(needs.folder && needs.one_writer);
        assert_false(needs.connects);
    }
}

static void a_url_connects_and_has_many(void **state) {
    static const char *const urls[] = {"redis://host:6379/0?prefix=pages", "redis+unix:///run/redis.sock",
                                       "redis+sentinel://host/main", "redis+cluster://a,b"};
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        doppel_engine_needs needs = needs_of(urls[i]);
        assert_true(needs.connects);
        assert_false(needs.folder || needs.one_writer);
    }
}

static void memory_is_this_process_s_alone(void **state) {
    (void)state;
    doppel_engine_needs needs = needs_of(NULL);
    assert_true(needs.one_writer);
    assert_false(needs.folder || needs.connects);
}

static void an_empty_path_is_refused(void **state) {
    doppel_engine_needs needs;
    doppel_error error = {0};
    (void)state;
    assert_int_equal(doppel_engine_get_needs("", &needs, &error), DOPPEL_ERROR_USAGE);
    assert_string_equal(error.message, "the path of the index is empty");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_has_one_writer),
        cmocka_unit_test(a_url_connects_and_has_many),
        cmocka_unit_test(memory_is_this_process_s_alone),
        cmocka_unit_test(an_empty_path_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
