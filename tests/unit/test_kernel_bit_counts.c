/* test_kernel_bit_counts.c - the kernels that add up bits, each variant against counting them one by one. */
#include "support.h"

#include "kernel/kernel.h"

#include <stdlib.h>

/* ---- tally ---- */

static void count_bits(const uint64_t *numbers, size_t count, uint64_t counters[64]) {
    for (size_t i = 0; i < count; i++)
        for (int bit = 0; bit < 64; bit++)
            counters[bit] += numbers[i] >> bit & 1;
}

static void to_planes(const uint64_t counters[64], uint64_t planes[DP_BIT_COUNTS_PLANES]) {
    memset(planes, 0, DP_BIT_COUNTS_PLANES * sizeof *planes);
    for (int bit = 0; bit < 64; bit++)
        for (int p = 0; p < DP_BIT_COUNTS_PLANES; p++)
            planes[p] |= (counters[bit] >> p & 1) << bit;
}

static void check_tally(const uint64_t *numbers, size_t count, const uint64_t before[64]) {
    uint64_t counters[64], want[DP_BIT_COUNTS_PLANES];
    memcpy(counters, before, sizeof counters);
    count_bits(numbers, count, counters);
    to_planes(counters, want);
    EACH_VARIANT(bit_counts, variant) {
        uint64_t planes[DP_BIT_COUNTS_PLANES];
        to_planes(before, planes);
        variant->run(numbers, count, planes);
        assert_memory_equal(planes, want, sizeof planes);
    }
}

static void tally_of_every_count(void **state) {
    (void)state;
    enum { MOST = 700 };
    uint64_t numbers[MOST], before[64], seed = 1;
    guarded room = guarded_create(sizeof numbers);
    for (size_t count = 0; count <= MOST; count += count < 300 ? 1 : 9)
        for (int kind = 0; kind < 3; kind++) {
            for (size_t i = 0; i < count; i++)
                numbers[i] = kind == 2 ? UINT64_MAX : random_next(&seed) & (kind ? random_next(&seed) : UINT64_MAX);
            /* Counters that carry far, and counters at zero. */
            for (int bit = 0; bit < 64; bit++)
                before[bit] = kind ? (random_next(&seed) >> (9 + bit % 50)) | 0xFFFF : 0;
            check_tally(guarded_copy(room, numbers, count * 8), count, before);
        }
    guarded_free(room);
}

static void a_whole_batch_fits_the_planes(void **state) {
    (void)state;
    uint64_t *numbers = malloc(DP_BIT_COUNTS_BATCH * sizeof *numbers), before[64] = {0};
    memset(numbers, 0xFF, DP_BIT_COUNTS_BATCH * sizeof *numbers);
    check_tally(numbers, DP_BIT_COUNTS_BATCH, before);
    check_tally(numbers, DP_BIT_COUNTS_BATCH - 1, before);
    free(numbers);
}

static void above_compares_each_counter_with_the_limit(void **state) {
    (void)state;
    uint64_t seed = 2, counters[64], planes[DP_BIT_COUNTS_PLANES];
    for (int round = 0; round < 20000; round++) {
        uint64_t limit = random_next(&seed) >> (10 + random_below(&seed, 54)), want = 0;
        for (int bit = 0; bit < 64; bit++) {
            /* Often the limit itself or a neighbour; never above twice the limit and one. */
            uint64_t near = limit + random_below(&seed, 3);
            uint64_t counter = random_below(&seed, 2) ? near - (near > 0) : random_next(&seed) % (2 * limit + 2);
            counters[bit] = counter > 2 * limit + 1 ? 0 : counter;
            want |= (uint64_t)(counters[bit] > limit) << bit;
        }
        to_planes(counters, planes);
        assert_int_equal(dp_bit_counts_above(planes, limit), want);
    }
}

/* ---- weigh ---- */

static void weights_are_added_bit_by_bit(void **state) {
    (void)state;
    enum { MOST = 70 };
    uint64_t hashes[MOST], seed = 3;
    int64_t weights[MOST], before[64], want[64];
    guarded hash_room = guarded_create(sizeof hashes), weight_room = guarded_create(sizeof weights);
    guarded sum_room = guarded_create(sizeof before);
    for (size_t round = 0; round < 10 * (MOST + 1); round++) {
        size_t count = round / 10;
        for (size_t i = 0; i < count; i++) {
            hashes[i] = round % 10 ? random_next(&seed) : UINT64_MAX;
            weights[i] = (int64_t)random_next(&seed) >> (16 + random_below(&seed, 40));
        }
        for (int bit = 0; bit < 64; bit++)
            want[bit] = before[bit] = (int64_t)random_next(&seed) >> 10;
        for (size_t i = 0; i < count; i++)
            for (int bit = 0; bit < 64; bit++)
                want[bit] += hashes[i] >> bit & 1 ? weights[i] : 0;
        EACH_VARIANT(weigh, variant) {
            int64_t *sums = guarded_copy(sum_room, before, sizeof before);
            variant->run(guarded_copy(hash_room, hashes, count * 8), guarded_copy(weight_room, weights, count * 8),
                         count, sums);
            assert_memory_equal(sums, want, sizeof want);
        }
    }
    guarded_free(hash_room);
    guarded_free(weight_room);
    guarded_free(sum_room);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tally_of_every_count),
        cmocka_unit_test(a_whole_batch_fits_the_planes),
        cmocka_unit_test(above_compares_each_counter_with_the_limit),
        cmocka_unit_test(weights_are_added_bit_by_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
