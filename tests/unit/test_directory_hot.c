/* test_directory_hot.c - keys that everybody has, and numbers that end. */
#include "support.h"

#include "known/directory.h"

static const dp_directory_options by_distance = {.bits = 64, .distance = 3, .titles = true, .title_similarity = 0.9};
static const dp_directory_options by_similarity = {.bits = 64, .by_similarity = true};

/* ---- keys that everybody has ---- */

/* Thirty thousand documents with one id, one digest and one title, added and loaded from both ends, and removed in
 * three orders: were any of it quadratic, this would take long. */
static dp_trace hot_trace(uint64_t number) {
    static const char title[] = "the same title for all of them";
    dp_trace trace = {.number = number, .kind = DP_TRACE_DOCUMENT, .id_hash = 1, .url_hash = 2, .content = true};
    trace.digest[0] = 3;
    trace.title = (doppel_slice){title, sizeof title - 1};
    return trace;
}

static void expect_hot(dp_directory *directory, dp_key key, uint64_t hash, size_t count) {
    dp_numbers found = {0};
    assert_int_equal(dp_directory_find_key(directory, key, hash, &found), DOPPEL_OK);
    assert_int_equal(found.count, count);
    for (size_t i = 1; i < found.count; i++)
        assert_true(found.number[i - 1] < found.number[i]);
    dp_numbers_free(&found);
}

/* Takes out number after number; `order` 0: the first first, 1: the last first, 2: all over. */
static void remove_hot(dp_directory *directory, size_t count, int order) {
    for (size_t i = 0; i < count; i++) {
        size_t at = order == 0 ? i : order == 1 ? count - 1 - i : (i * 7919) % count;
        dp_trace trace = hot_trace(at + 1);
        assert_int_equal(dp_directory_remove(directory, &trace), DOPPEL_OK);
        if (i == count / 3)
            expect_hot(directory, DP_KEY_URL, 2, count - i - 1);
    }
    expect_hot(directory, DP_KEY_ID, 1, 0);
    expect_hot(directory, DP_KEY_DIGEST, 3, 0);
}

static void keys_of_all_stay_fast(void **state) {
    (void)state;
    enum { COUNT = 30000 };
    for (int order = 0; order < 3; order++) {
        dp_directory *directory;
        dp_directory_load *load;
        assert_int_equal(dp_directory_create(&by_distance, &directory, NULL), DOPPEL_OK);
        assert_int_equal(dp_directory_load_begin(directory, &load), DOPPEL_OK);
        for (size_t i = COUNT / 2; i > 0; i--) {
            dp_trace trace = hot_trace(i);
            assert_int_equal(dp_directory_load_add(load, &trace), DOPPEL_OK);
        }
        assert_int_equal(dp_directory_load_end(load), DOPPEL_OK);
        for (size_t i = COUNT / 2; i < COUNT; i++) {
            dp_trace trace = hot_trace(i + 1);
            assert_int_equal(dp_directory_add(directory, &trace), DOPPEL_OK);
        }
        expect_hot(directory, DP_KEY_URL, 2, COUNT);
        remove_hot(directory, COUNT, order);
        dp_directory_free(directory);
    }
}

/* ---- numbers that end ---- */

/* Pages of numbers that are over are used again: memory stays, and old numbers do not come back to life. */
static void pages_are_used_again(void **state) {
    (void)state;
    dp_directory *directory;
    dp_directory_stats stats;
    uint64_t most = 0;
    assert_int_equal(dp_directory_create(&by_similarity, &directory, NULL), DOPPEL_OK);
    for (uint64_t n = 1; n < 400000; n++) {
        dp_trace trace = {.number = n, .kind = DP_TRACE_COPY, .id_hash = n, .expires = n};
        assert_int_equal(dp_directory_add(directory, &trace), DOPPEL_OK);
        if (n > 1000) {
            trace = (dp_trace){.number = n - 1000, .kind = DP_TRACE_COPY, .id_hash = n - 1000, .expires = n - 1000};
            assert_int_equal(dp_directory_remove(directory, &trace), DOPPEL_OK);
            assert_false(dp_directory_alive(directory, n - 1000, 0));
        }
        if (n % 100000 == 0) {
            dp_directory_get_stats(directory, &stats);
            assert_true(!most || stats.keys_bytes < most + most / 4);
            most = most ? most : stats.keys_bytes;
            assert_int_equal(stats.copies, 1000);
        }
    }
    dp_directory_free(directory);
}

static void times_beyond_32_bits_are_held(void **state) {
    (void)state;
    dp_directory *directory;
    assert_int_equal(dp_directory_create(&by_similarity, &directory, NULL), DOPPEL_OK);
    dp_trace trace = {.number = 1, .kind = DP_TRACE_COPY, .expires = UINT64_MAX};
    assert_int_equal(dp_directory_add(directory, &trace), DOPPEL_OK);
    assert_true(dp_directory_alive(directory, 1, UINT32_MAX - 2U));
    assert_false(dp_directory_alive(directory, 1, UINT32_MAX));
    trace = (dp_trace){.number = 2, .kind = DP_TRACE_COPY};
    assert_int_equal(dp_directory_add(directory, &trace), DOPPEL_OK);
    assert_true(dp_directory_alive(directory, 2, UINT64_MAX));
    uint64_t ended[2];
    assert_int_equal(dp_directory_expired(directory, UINT64_MAX, ended, 2), 1);
    dp_directory_free(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_all_stay_fast),
        cmocka_unit_test(pages_are_used_again),
        cmocka_unit_test(times_beyond_32_bits_are_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
