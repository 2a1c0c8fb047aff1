/* test_base.c - errors, growing memory, sorting, bytes, the CPU level. */
#include "support.h"

#include "base/base.h"

#include <stdlib.h>

/* ---- errors ---- */

static void a_failure_fills_the_error(void **state) {
    (void)state;
    doppel_error error;
    memset(&error, 0xAA, sizeof error);
    assert_int_equal(dp_fail(&error, DOPPEL_ERROR_USAGE, "%d of %s", 3, "these"), DOPPEL_ERROR_USAGE);
    assert_int_equal(error.code, DOPPEL_ERROR_USAGE);
    assert_string_equal(error.message, "3 of these");
    assert_string_equal(error.file, "");
    assert_int_equal(error.line + error.position, 0);
    assert_int_equal(dp_fail_at(&error, DOPPEL_ERROR_IO, "a/b", 7, "gone"), DOPPEL_ERROR_IO);
    assert_string_equal(error.file, "a/b");
    assert_int_equal(error.line, 7);
    assert_string_equal(error.message, "gone");
    assert_int_equal(dp_no_memory(&error), DOPPEL_ERROR_MEMORY);
    assert_string_equal(error.message, "no memory");
}

static void nobody_has_to_take_the_error(void **state) {
    (void)state;
    assert_int_equal(dp_fail(NULL, DOPPEL_ERROR_USAGE, "%d", 3), DOPPEL_ERROR_USAGE);
    assert_int_equal(dp_fail_at(NULL, DOPPEL_ERROR_IO, "a", 1, "b"), DOPPEL_ERROR_IO);
}

static void long_messages_and_names_are_cut(void **state) {
    (void)state;
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    doppel_error error;
    dp_fail_at(&error, DOPPEL_ERROR_INPUT, text, 1, "%s", text);
    assert_int_equal(strlen(error.file), sizeof error.file - 1);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

static void every_status_has_a_name(void **state) {
    (void)state;
    assert_string_equal(doppel_status_name(DOPPEL_OK), "ok");
    for (int status = 2; status <= 8; status++) {
        assert_string_not_equal(doppel_status_name((doppel_status)status), "unknown");
        for (int other = 2; other < status; other++)
            assert_string_not_equal(doppel_status_name((doppel_status)status),
                                    doppel_status_name((doppel_status)other));
    }
    assert_string_equal(doppel_status_name((doppel_status)99), "unknown");
    assert_string_equal(doppel_version(), DOPPEL_VERSION);
}

static doppel_status tried(doppel_status given, int *reached) {
    DP_TRY(DOPPEL_OK);
    DP_TRY(given);
    ++*reached;
    return DOPPEL_OK;
}

static doppel_status count(int *calls, doppel_status status) {
    ++*calls;
    return status;
}

static void a_failure_ends_what_is_tried(void **state) {
    (void)state;
    int reached = 0, calls = 0;
    assert_int_equal(tried(DOPPEL_ERROR_IO, &reached), DOPPEL_ERROR_IO);
    assert_int_equal(reached, 0);
    assert_int_equal(tried(DOPPEL_OK, &reached), DOPPEL_OK);
    assert_int_equal(reached, 1);
    doppel_status status = DOPPEL_OK;
    DP_THEN(status, count(&calls, DOPPEL_OK));
    DP_THEN(status, count(&calls, DOPPEL_ERROR_INPUT));
    DP_THEN(status, count(&calls, DOPPEL_ERROR_IO));
    assert_int_equal(status, DOPPEL_ERROR_INPUT);
    assert_int_equal(calls, 2);
}

static void one_clock_never_goes_back_and_one_tells_the_time(void **state) {
    (void)state;
    double before = dp_seconds();
    uint64_t wall = dp_wall_seconds();
    dp_sleep(0.01);
    assert_true(dp_seconds() - before >= 0.01);
    assert_true(wall > 1600000000 && dp_wall_seconds() >= wall);
}

/* ---- memory ---- */

static void reserve_grows_by_doubling(void **state) {
    (void)state;
    uint32_t *numbers = NULL;
    size_t capacity = 0, moves = 0;
    for (size_t count = 0; count < 100000; count++) {
        size_t before = capacity;
        assert_true(dp_reserve(&numbers, &capacity, count + 1, sizeof *numbers));
        assert_true(capacity > count);
        moves += capacity != before;
        numbers[count] = (uint32_t)count;
    }
    assert_true(moves < 20);
    for (size_t i = 0; i < 100000; i++)
        assert_int_equal(numbers[i], i);
    free(numbers);
}

static void reserve_refuses_more_than_there_can_be(void **state) {
    (void)state;
    uint64_t *numbers = NULL;
    size_t capacity = 0;
    assert_true(dp_reserve(&numbers, &capacity, 10, 8));
    uint64_t *before = numbers;
    size_t room = capacity;
    assert_false(dp_reserve(&numbers, &capacity, SIZE_MAX, 8));
    assert_false(dp_reserve(&numbers, &capacity, SIZE_MAX / 8, 8));
    assert_true(dp_reserve(&numbers, &capacity, 0, 8));
    assert_ptr_equal(numbers, before);
    assert_int_equal(capacity, room);
    free(numbers);
}

static void a_buffer_takes_bytes_and_print(void **state) {
    (void)state;
    dp_buffer buffer = {0};
    assert_true(dp_buffer_add(&buffer, NULL, 0));
    assert_null(buffer.data);
    assert_true(dp_buffer_add(&buffer, "a\0b", 3));
    assert_true(dp_buffer_printf(&buffer, "%s-%d", "x", 42));
    assert_int_equal(buffer.size, 7);
    assert_memory_equal(buffer.data, "a\0bx-42", 8);
    for (int i = 0; i < 1000; i++)
        assert_true(dp_buffer_printf(&buffer, "%d", i % 10));
    assert_int_equal(buffer.size, 1007);
    assert_int_equal(buffer.data[1006], '9');
    dp_buffer_free(&buffer);
    assert_null(buffer.data);
    assert_int_equal(buffer.size + buffer.capacity, 0);
    dp_buffer_free(&buffer);
}

/* ---- bytes ---- */

static void loads_are_little_endian_and_read_no_further(void **state) {
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8};
    guarded room = guarded_create(8);
    const uint8_t *at = guarded_copy(room, bytes, 8);
    assert_int_equal(dp_load64(at), 0x0807060504030201);
    assert_int_equal(dp_load32(at + 4), 0x08070605);
    uint64_t want = 0;
    for (size_t length = 0; length <= 8; length++) {
        assert_int_equal(dp_load_tail(guarded_copy(room, bytes, length), length), want);
        want |= (uint64_t)(length + 1) << (8 * length % 64);
    }
    guarded_free(room);
    assert_int_equal(dp_rotl64(0x8000000000000001, 1), 3);
}

/* ---- sorting ---- */

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void check_sort(uint64_t *numbers, size_t count) {
    guarded room = guarded_create(count * 8), scratch = guarded_create(count * 8);
    uint64_t *sorted = guarded_copy(room, numbers, count * 8);
    dp_sort64(sorted, count, guarded_copy(scratch, NULL, count * 8));
    if (count)
        qsort(numbers, count, 8, compare);
    assert_memory_equal(sorted, numbers, count * 8);
    size_t distinct = dp_unique64(sorted, count), expected = 0;
    for (size_t i = 0; i < count; i++)
        if (!i || numbers[i] != numbers[i - 1])
            assert_int_equal(sorted[expected++], numbers[i]);
    assert_int_equal(distinct, expected);
    guarded_free(room);
    guarded_free(scratch);
}

static void sorting_every_count_and_spread(void **state) {
    (void)state;
    uint64_t numbers[1000], seed = 1;
    for (size_t count = 0; count <= 1000; count += count < 130 ? 1 : 87)
        for (int spread = 0; spread < 5; spread++) {
            for (size_t i = 0; i < count; i++) {
                uint64_t x = random_next(&seed);
                numbers[i] = spread == 0   ? x
                             : spread == 1 ? x & 7
                             : spread == 2 ? x & 0xFF00000000000000
                             : spread == 3 ? UINT64_MAX - i
                                           : (x & 0xFF) << (8 * (x >> 61));
            }
            check_sort(numbers, count);
        }
}

/* Evenly spread, up to and beyond what is dealt out by top bits; and so many in one place that they are not. */
static void sorting_many_numbers(void **state) {
    (void)state;
    enum { MOST = 20000 };
    uint64_t *numbers = malloc(MOST * sizeof *numbers), seed = 2;
    for (size_t count = 1000; count <= MOST; count += 2111)
        for (size_t together = 0; together < 40; together += 13) {
            for (size_t i = 0; i < count; i++)
                numbers[i] = i < together ? UINT64_MAX - random_next(&seed) % 9 : random_next(&seed);
            check_sort(numbers, count);
        }
    free(numbers);
}

/* ---- the CPU ---- */

static void the_environment_lowers_the_cpu_level(void **state) {
    (void)state;
    const char *wanted = getenv("DOPPEL_CPU"), *level = doppel_cpu_level();
    static const char *const names[] = {"portable", "avx2", "avx512", "neon"};
    bool known = false;
    for (size_t i = 0; i < 4; i++)
        known = known || !strcmp(level, names[i]);
    assert_true(known);
    assert_true(dp_cpu_level() <= dp_cpu_best());
    if (wanted && !strcmp(wanted, "portable"))
        assert_string_equal(level, "portable");
    if (wanted && !strcmp(wanted, "avx2") && dp_cpu_best() >= DP_CPU_AVX2)
        assert_string_equal(level, "avx2");
    if (!wanted)
        assert_int_equal(dp_cpu_level(), dp_cpu_best());
    /* It is asked once. */
    setenv("DOPPEL_CPU", strcmp(level, "portable") ? "portable" : "avx2", 1);
    assert_string_equal(doppel_cpu_level(), level);
    if (wanted)
        setenv("DOPPEL_CPU", level, 1);
    else
        unsetenv("DOPPEL_CPU");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_fills_the_error),
        cmocka_unit_test(nobody_has_to_take_the_error),
        cmocka_unit_test(long_messages_and_names_are_cut),
        cmocka_unit_test(every_status_has_a_name),
        cmocka_unit_test(a_failure_ends_what_is_tried),
        cmocka_unit_test(one_clock_never_goes_back_and_one_tells_the_time),
        cmocka_unit_test(reserve_grows_by_doubling),
        cmocka_unit_test(reserve_refuses_more_than_there_can_be),
        cmocka_unit_test(a_buffer_takes_bytes_and_print),
        cmocka_unit_test(loads_are_little_endian_and_read_no_further),
        cmocka_unit_test(sorting_every_count_and_spread),
        cmocka_unit_test(sorting_many_numbers),
        cmocka_unit_test(the_environment_lowers_the_cpu_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
