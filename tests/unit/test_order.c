/* The secret order of bits: a permutation, back and forth, that keeps distances, widths and, seed by seed, secrets. */
#include "hamming/hamming.h"
#include "unit/support.h"

static const int widths[] = {1, 2, 7, 16, 31, 33, 63, 64, 128};
enum { WIDTHS = sizeof widths / sizeof *widths };

static dp_bits random_bits(uint64_t *random, int bits) {
    dp_bits value = (dp_bits)random_next(random) << 64 | random_next(random);
    return bits == 128 ? value : value & (((dp_bits)1 << bits) - 1);
}

static void test_undo_is_the_way_back(void **state) {
    (void)state;
    uint64_t random = 1;
    for (int w = 0; w < WIDTHS; w++) {
        for (int round = 0; round < 500; round++) {
            dp_order order;
            dp_order_init(&order, widths[w], random_next(&random));
            dp_bits value = random_bits(&random, widths[w]);
            assert_true(dp_order_undo(&order, dp_order_apply(&order, value)) == value);
        }
    }
}

static void test_many_are_as_one_by_one(void **state) {
    (void)state;
    enum { COUNT = 700 };
    uint64_t random = 8;
    for (int w = 0; w < WIDTHS; w++) {
        size_t words = widths[w] > 64 ? 2 : 1;
        uint64_t from[2 * COUNT], to[2 * COUNT];
        dp_order order;
        dp_order_init(&order, widths[w], 1 + random_next(&random));
        for (size_t i = 0; i < COUNT; i++) {
            uint64_t value[2];
            dp_bits_store(random_bits(&random, widths[w]), value);
            memcpy(from + i * words, value, words * sizeof *value);
        }
        dp_order_apply_many(&order, from, COUNT, to);
        for (size_t i = 0; i < COUNT; i++) {
            dp_bits one = dp_order_apply(&order, dp_bits_load(from + i * words, widths[w]));
            assert_true(one == dp_bits_load(to + i * words, widths[w]));
        }
        dp_order_apply_many(&order, from, COUNT, from);
        assert_memory_equal(from, to, COUNT * words * sizeof *to);
    }
}

static void test_distances_stay(void **state) {
    (void)state;
    uint64_t random = 2;
    for (int w = 0; w < WIDTHS; w++) {
        dp_order order;
        dp_order_init(&order, widths[w], 3);
        for (int round = 0; round < 500; round++) {
            dp_bits a = random_bits(&random, widths[w]), b = random_bits(&random, widths[w]);
            int before = dp_bits_count(a ^ b);
            assert_int_equal(dp_bits_count(dp_order_apply(&order, a) ^ dp_order_apply(&order, b)), before);
        }
    }
}

static void test_bits_stay_within_the_width(void **state) {
    (void)state;
    uint64_t random = 4;
    for (int w = 0; w < WIDTHS - 1; w++) {
        for (int round = 0; round < 500; round++) {
            dp_order order;
            dp_order_init(&order, widths[w], random_next(&random));
            assert_true(dp_order_apply(&order, random_bits(&random, widths[w])) >> widths[w] == 0);
        }
    }
}

static void test_seed_0_changes_nothing(void **state) {
    (void)state;
    uint64_t random = 5;
    for (int w = 0; w < WIDTHS; w++) {
        dp_order order;
        dp_order_init(&order, widths[w], 0);
        dp_bits value = random_bits(&random, widths[w]);
        assert_true(dp_order_apply(&order, value) == value);
    }
}

static void test_a_bit_can_come_to_any_place(void **state) {
    (void)state;
    for (int bits = 64; bits <= 128; bits += 64) {
        dp_bits reached = 0;
        for (uint64_t seed = 1; seed <= 2000; seed++) {
            dp_order order;
            dp_order_init(&order, bits, seed);
            reached |= dp_order_apply(&order, 1);
        }
        assert_int_equal(dp_bits_count(reached), bits);
    }
}

static void test_one_seed_gives_one_order(void **state) {
    (void)state;
    dp_order a, b, c;
    dp_order_init(&a, 64, 6);
    dp_order_init(&b, 64, 6);
    dp_order_init(&c, 64, 7);
    assert_memory_equal(&a, &b, sizeof a);
    assert_memory_not_equal(&a, &c, sizeof a);
    assert_true(dp_random_number() != dp_random_number());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undo_is_the_way_back),     cmocka_unit_test(test_many_are_as_one_by_one),
        cmocka_unit_test(test_distances_stay),           cmocka_unit_test(test_bits_stay_within_the_width),
        cmocka_unit_test(test_seed_0_changes_nothing),   cmocka_unit_test(test_a_bit_can_come_to_any_place),
        cmocka_unit_test(test_one_seed_gives_one_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
