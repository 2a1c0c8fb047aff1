/* test_parallel.c - pieces, sums and sorting on threads give what the plain way gives. */
#include "support.h"

#include "base/base.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { COUNT = 300000 };
static const size_t thread_counts[] = {1, 2, 3, 8, 16};

typedef struct visits {
    atomic_uchar *seen;
    size_t piece;
} visits;

static void visit(void *user, size_t from, size_t to) {
    const visits *v = user;
    assert_int_equal(from % v->piece, 0);
    assert_true(to > from && to - from <= v->piece);
    for (size_t i = from; i < to; i++)
        atomic_fetch_add(&v->seen[i], 1);
}

static void every_number_is_in_one_piece(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 99, 100, 101, 5000};
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            visits v = {calloc(counts[c] + 1, 1), 100};
            dp_run_pieces(thread_counts[t], counts[c], v.piece, visit, &v);
            for (size_t i = 0; i <= counts[c]; i++)
                assert_int_equal(v.seen[i], i < counts[c]);
            free(v.seen);
        }
}

/* Numbers below a limit; 0: any. */
static uint64_t *random_numbers(size_t count, uint64_t below) {
    uint64_t *numbers = malloc((count + 1) * sizeof *numbers), random = count + 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = random_below(&random, UINT64_MAX);
        numbers[i] = below ? number % below : number;
    }
    return numbers;
}

static void sums_are_those_of_one_thread(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, DP_PIECE, DP_PIECE + 1, COUNT};
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            uint64_t *numbers = random_numbers(counts[c], 1000), *summed = random_numbers(counts[c], 1000), sum = 0;
            uint64_t all = dp_add_up(thread_counts[t], summed, counts[c]);
            for (size_t i = 0; i < counts[c]; i++)
                assert_int_equal(summed[i], sum += numbers[i]);
            assert_int_equal(all, sum);
            free(numbers);
            free(summed);
        }
}

/* Any numbers; few distinct ones; nearly all the same; components and ranks, as they are grouped. */
static void sorted_numbers_are_those_of_one_thread(void **state) {
    (void)state;
    uint64_t *plain = malloc(COUNT * sizeof *plain), *scratch = malloc(COUNT * sizeof *scratch);
    for (int kind = 0; kind < 5; kind++) {
        uint64_t *numbers = random_numbers(COUNT, kind == 1 ? 7 : kind == 2 ? 100000 : 0);
        for (size_t i = 0; i < COUNT; i++)
            numbers[i] = kind == 3   ? (i % 100 ? 5 : numbers[i])
                         : kind == 4 ? (numbers[i] % 50 / 49 * 77) << 32 | (numbers[i] >> 40)
                                     : numbers[i];
        memcpy(plain, numbers, COUNT * sizeof *plain);
        dp_sort64(plain, COUNT, scratch);
        for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++) {
            uint64_t *sorted = malloc(COUNT * sizeof *sorted);
            memcpy(sorted, numbers, COUNT * sizeof *sorted);
            dp_sort64_on(thread_counts[t], sorted, COUNT, scratch);
            assert_memory_equal(sorted, plain, COUNT * sizeof *sorted);
            free(sorted);
        }
        free(numbers);
    }
    free(plain);
    free(scratch);
}

/* By a key of few values, then by number. */
static int compare_by_key(const void *x, const void *y, void *user) {
    const uint64_t *key = user;
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    if (key[a] != key[b])
        return key[a] < key[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

static void numbers_are_sorted_by_a_comparison(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 2, 4096, 4097, 50000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        size_t count = counts[c];
        uint64_t *keys = random_numbers(count, 1000);
        uint32_t *plain = malloc((count + 1) * sizeof *plain), *sorted = malloc((count + 1) * sizeof *sorted);
        uint32_t *scratch = malloc((count + 1) * sizeof *scratch);
        for (uint32_t i = 0; i < count; i++)
            plain[i] = i;
        qsort_r(plain, count, sizeof *plain, compare_by_key, keys);
        for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++) {
            for (uint32_t i = 0; i < count; i++)
                sorted[i] = (uint32_t)count - 1 - i;
            dp_sort_by(thread_counts[t], sorted, count, scratch, compare_by_key, keys);
            assert_memory_equal(sorted, plain, count * sizeof *plain);
        }
        free(keys);
        free(plain);
        free(sorted);
        free(scratch);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_in_one_piece),
        cmocka_unit_test(sums_are_those_of_one_thread),
        cmocka_unit_test(sorted_numbers_are_those_of_one_thread),
        cmocka_unit_test(numbers_are_sorted_by_a_comparison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
