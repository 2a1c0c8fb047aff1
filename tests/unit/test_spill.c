/* test_spill.c - files that only grow: what was added is read back, and more can be appended after reopening. */
#include "files.h"

#include "batch/batch.h"

#include <signal.h>

/* Pieces of every size, larger than what is written at once among them. */
static void what_was_added_is_read_back(void **state) {
    dp_append_file file;
    dp_buffer all = {0};
    uint64_t random = 3;
    char block[5000], *large = malloc(3 << 20);
    assert_int_equal(dp_append_file_open(&file, NULL, NULL, *state, NULL), DOPPEL_OK);
    memset(large, 'x', 3 << 20);
    for (int i = 0; i < 1000; i++) {
        size_t length = i == 500 ? 3 << 20 : random_below(&random, sizeof block);
        for (size_t k = 0; k < sizeof block; k++)
            block[k] = (char)random_next(&random);
        assert_int_equal(dp_append_file_size(&file), all.size);
        assert_int_equal(dp_append_file_add(&file, i == 500 ? large : block, length, NULL), DOPPEL_OK);
        assert_true(dp_buffer_add(&all, i == 500 ? large : block, length));
    }
    assert_int_equal(dp_append_file_flush(&file, NULL), DOPPEL_OK);
    assert_int_equal(dp_append_file_flush(&file, NULL), DOPPEL_OK);
    assert_int_equal(file.scratch.size, all.size);
    for (int i = 0; i < 1000; i++) {
        size_t at = random_below(&random, all.size - sizeof block);
        assert_int_equal(dp_append_file_read(&file, at, block, sizeof block, NULL), DOPPEL_OK);
        assert_memory_equal(block, all.data + at, sizeof block);
    }
    assert_int_equal(dp_append_file_read(&file, all.size, block, 0, NULL), DOPPEL_OK);
    assert_int_equal(entries(*state, false), 0); /* it has no name */
    dp_append_file_close(&file);
    dp_buffer_free(&all);
    free(large);
}

static void reading_past_the_end_is_an_error(void **state) {
    dp_append_file file;
    doppel_error error = {0};
    char block[10];
    assert_int_equal(dp_append_file_open(&file, NULL, NULL, *state, NULL), DOPPEL_OK);
    assert_int_equal(dp_append_file_add(&file, "12345", 5, NULL), DOPPEL_OK);
    assert_int_equal(dp_append_file_flush(&file, NULL), DOPPEL_OK);
    assert_int_equal(dp_append_file_read(&file, 2, block, 10, &error), DOPPEL_ERROR_IO);
    assert_true(error.message[0]);
    dp_append_file_close(&file);
}

static void a_named_file_goes_on(void **state) {
    dp_append_file file;
    char block[10];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dp_append_file_open(&file, *state, "name", NULL, NULL), DOPPEL_OK);
        assert_int_equal(dp_append_file_size(&file), 3 * i);
        assert_int_equal(dp_append_file_add(&file, "abc", 3, NULL), DOPPEL_OK);
        assert_int_equal(dp_append_file_flush(&file, NULL), DOPPEL_OK);
        dp_append_file_close(&file);
    }
    assert_int_equal(dp_append_file_open(&file, *state, "name", NULL, NULL), DOPPEL_OK);
    assert_int_equal(dp_append_file_read(&file, 0, block, 9, NULL), DOPPEL_OK);
    assert_memory_equal(block, "abcabcabc", 9);
    dp_append_file_close(&file);
}

static void a_place_that_is_none_is_told(void **state) {
    dp_append_file file;
    doppel_error error = {0};
    char deep[5000];
    assert_int_equal(dp_append_file_open(&file, NULL, NULL, "/nonexistent/folder", &error), DOPPEL_ERROR_IO);
    assert_non_null(strstr(error.file, "/nonexistent/folder"));
    dp_append_file_close(&file);
    assert_int_equal(dp_append_file_open(&file, "/nonexistent/folder", "name", NULL, &error), DOPPEL_ERROR_IO);
    assert_non_null(strstr(error.file, "/nonexistent/folder"));
    dp_append_file_close(&file);
    memset(deep, 'x', sizeof deep);
    deep[sizeof deep - 1] = 0;
    assert_int_equal(dp_append_file_open(&file, deep, "name", NULL, &error), DOPPEL_ERROR_IO);
    dp_append_file_close(&file);
    (void)state;
}

static void a_full_disk_is_told(void **state) {
    dp_append_file file;
    doppel_error error = {0};
    char block[4096] = {0};
    doppel_status status = DOPPEL_OK;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(dp_append_file_open(&file, NULL, NULL, *state, NULL), DOPPEL_OK);
    limit_files(1 << 20);
    for (int i = 0; i < 1000 && status == DOPPEL_OK; i++)
        status = dp_append_file_add(&file, block, sizeof block, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, DOPPEL_ERROR_IO);
    assert_non_null(strstr(error.message, "make room"));
    dp_append_file_close(&file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(what_was_added_is_read_back), TEST(reading_past_the_end_is_an_error),
                                       TEST(a_named_file_goes_on), TEST(a_place_that_is_none_is_told),
                                       TEST(a_full_disk_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
