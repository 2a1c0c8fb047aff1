/* test_sorter.c - records come out sorted, equal ones in the order in which they came in, in memory and from files. */
#include "support.h"

#include "batch/spill.h"

/* Adds `count` records {a, b, number}, keys a and b of few values, and looks at what comes out. */
static void check_sorted(size_t count, uint64_t values, uint64_t memory, bool spills) {
    uint64_t state = count + values;
    dp_sorter sorter;
    doppel_error error;
    const uint64_t *record;
    dp_sorter_init(&sorter, &(dp_sorter_options){.words = 3, .keys = 2, .memory = memory});
    for (size_t i = 0; i < count; i++) {
        uint64_t a = random_next(&state) % values, b = random_next(&state) % values;
        uint64_t made[3] = {a * 0x9E3779B97F4A7C15u, b << 40, i};
        assert_int_equal(dp_sorter_add(&sorter, made, &error), DOPPEL_OK);
    }
    assert_int_equal(dp_sorter_finish(&sorter, &error), DOPPEL_OK);
    assert_int_equal(dp_sorter_spilled(&sorter) != 0, spills);
    uint64_t last[3] = {0}, sum = 0;
    size_t got = 0;
    for (; dp_sorter_next(&sorter, &record, &error) == DOPPEL_OK && record; got++) {
        bool after = record[0] != last[0]   ? record[0] > last[0]
                     : record[1] != last[1] ? record[1] > last[1]
                                            : record[2] > last[2];
        assert_true(after || !got);
        memcpy(last, record, sizeof last);
        sum += record[2];
    }
    assert_int_equal(got, count);
    assert_int_equal(sum, count ? (uint64_t)count * (count - 1) / 2 : 0);
    assert_int_equal(dp_sorter_next(&sorter, &record, &error), DOPPEL_OK);
    assert_null(record);
    dp_sorter_free(&sorter);
}

static void test_in_memory(void **state) {
    (void)state;
    const size_t counts[] = {0, 1, 2, 47, 49, 300, 70000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        check_sorted(counts[i], 1, 1 << 24, false);
        check_sorted(counts[i], 7, 1 << 24, false);
        check_sorted(counts[i], UINT64_MAX, 1 << 24, false);
    }
}

static void test_spilled(void **state) {
    (void)state;
    check_sorted(50000, 5, 0, true); /* 13 runs, more than are read at once */
    check_sorted(50000, 1u << 30, 1 << 20, true);
    check_sorted(400000, 1000, 0, true); /* 98 runs, merged in two rounds */
}

/* Numbers below `values`, many times each: those that were there come out once, or as often as they came in. */
static void check_numbers(size_t count, uint64_t values, uint64_t memory, bool unique) {
    uint64_t state = values, last = 0;
    uint32_t *seen = calloc(values, sizeof *seen);
    dp_sorter sorter;
    const uint64_t *record;
    dp_sorter_init(&sorter, &(dp_sorter_options){.words = 1, .keys = 1, .unique = unique, .memory = memory});
    for (size_t i = 0; i < count; i++) {
        uint64_t number = random_next(&state) % values;
        seen[number] = unique ? 1 : seen[number] + 1;
        assert_int_equal(dp_sorter_add(&sorter, &number, NULL), DOPPEL_OK);
    }
    assert_int_equal(dp_sorter_finish(&sorter, NULL), DOPPEL_OK);
    while (dp_sorter_next(&sorter, &record, NULL) == DOPPEL_OK && record) {
        assert_true(*record >= last);
        assert_true(seen[*record]-- > 0);
        last = *record;
    }
    for (size_t i = 0; i < values; i++)
        assert_int_equal(seen[i], 0);
    free(seen);
    dp_sorter_free(&sorter);
}

static void test_numbers(void **state) {
    (void)state;
    for (int unique = 0; unique < 2; unique++) {
        check_numbers(0, 10, 0, unique);
        check_numbers(30000, 1000, 0, unique);
        check_numbers(100000, 50000, 0, unique);
        check_numbers(100000, 50000, 1 << 22, unique);
    }
}

static void test_no_folder(void **state) {
    (void)state;
    dp_sorter sorter;
    doppel_error error = {.code = DOPPEL_OK};
    doppel_status status = DOPPEL_OK;
    dp_sorter_init(&sorter, &(dp_sorter_options){.words = 1, .keys = 1, .tmp = "/nonexistent/folder"});
    for (uint64_t i = 0; i < 100000 && status == DOPPEL_OK; i++)
        status = dp_sorter_add(&sorter, &i, &error);
    assert_int_equal(status, DOPPEL_ERROR_IO);
    assert_int_equal(error.code, DOPPEL_ERROR_IO);
    dp_sorter_free(&sorter);
}

static void test_stopped(void **state) {
    (void)state;
    volatile int stop = 1;
    dp_sorter sorter;
    doppel_error error;
    doppel_status status = DOPPEL_OK;
    dp_sorter_init(&sorter, &(dp_sorter_options){.words = 1, .keys = 1, .stop = &stop});
    for (uint64_t i = 0; i < 100000 && status == DOPPEL_OK; i++)
        status = dp_sorter_add(&sorter, &i, &error);
    assert_int_equal(status, DOPPEL_ERROR_INTERRUPTED);
    dp_sorter_free(&sorter);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_memory), cmocka_unit_test(test_spilled), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_no_folder), cmocka_unit_test(test_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
