/* test_minhash.c - signatures and samples (docs/FORMAT.md section 5): the definition, and what it is good for. */
#include "support.h"

#include "doppel.h"

#include <math.h>
#include <stdlib.h>

/* ---- the definition ---- */

static uint64_t plain_mix(uint64_t x) {
    x = (x ^ x >> 32) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 29) * 0x94D049BB133111EBu;
    return x ^ x >> 32;
}

/* Slot by slot and round by round, as the page has it. */
static void plain_minhash(const uint64_t *set, size_t count, size_t t, uint32_t *signature) {
    bool *full = calloc(t, sizeof *full);
    uint32_t *best = malloc(t * sizeof *best);
    bool *now = malloc(t * sizeof *now);
    size_t empty = t;
    for (uint64_t r = 0; empty; r++) {
        memset(now, 0, t * sizeof *now);
        for (size_t i = 0; i < count; i++) {
            uint64_t y = r ? plain_mix(set[i] + r * 0x9E3779B97F4A7C15u) : set[i];
            size_t slot = r < t ? (size_t)((y >> 32) * t / 4294967296u) : (size_t)(r - t);
            if (full[slot] || (now[slot] && best[slot] <= (uint32_t)y))
                continue;
            empty -= !now[slot];
            now[slot] = true;
            best[slot] = (uint32_t)y;
        }
        for (size_t slot = 0; slot < t; slot++)
            if (now[slot]) {
                full[slot] = true;
                signature[slot] = best[slot] + (uint32_t)r * 0x9E3779B1u;
            }
    }
    free(full);
    free(best);
    free(now);
}

static void random_set(uint64_t *seed, uint64_t *set, size_t count) {
    for (size_t i = 0; i < count; i++)
        set[i] = random_next(seed);
}

static void minhash(const uint64_t *set, size_t count, size_t t, uint32_t *signature) {
    assert_int_equal(doppel_minhash(set, count, t, signature), DOPPEL_OK);
}

static void signatures_are_as_defined(void **state) {
    (void)state;
    static const size_t slots[] = {1, 2, 3, 7, 64, 128, 255, 256, 257, 1000}, sizes[] = {1, 2, 3, 10, 100, 5000};
    uint64_t set[5000], seed = 1;
    uint32_t got[1000], want[1000];
    for (size_t s = 0; s < sizeof slots / sizeof *slots; s++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            random_set(&seed, set, sizes[k]);
            minhash(set, sizes[k], slots[s], got);
            plain_minhash(set, sizes[k], slots[s], want);
            assert_memory_equal(got, want, slots[s] * 4);
        }
}

/* Features as they come, each several times and in any order, give what their set gives. */
static void repeats_change_nothing(void **state) {
    (void)state;
    static const size_t slots[] = {7, 210, 512, 513}, sizes[] = {1, 9, 100, 700};
    uint64_t set[700], features[2100], seed = 3;
    uint32_t got[513], want[513];
    for (size_t s = 0; s < sizeof slots / sizeof *slots; s++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            random_set(&seed, set, sizes[k]);
            for (size_t i = 0; i < 3 * sizes[k]; i++)
                features[i] = i < sizes[k] ? set[sizes[k] - 1 - i] : set[random_next(&seed) % sizes[k]];
            minhash(features, 3 * sizes[k], slots[s], got);
            plain_minhash(set, sizes[k], slots[s], want);
            assert_memory_equal(got, want, slots[s] * 4);
        }
}

static void the_most_slots(void **state) {
    (void)state;
    enum { MOST = 65536 };
    uint32_t *signature = malloc(MOST * 4), *other = malloc(MOST * 4);
    uint64_t set[3000], seed = 2;
    random_set(&seed, set, 3000);
    minhash(set, 1, MOST, signature);
    minhash(set, 3000, MOST, signature);
    minhash(set, 2000, MOST, other);
    size_t same = 0;
    for (size_t i = 0; i < MOST; i++)
        same += signature[i] == other[i];
    assert_true(fabs((double)same / MOST - 2.0 / 3) < 0.02);
    free(signature);
    free(other);
}

static void a_number_of_slots_that_makes_no_sense(void **state) {
    (void)state;
    uint64_t one = 1;
    uint32_t signature[1];
    assert_int_equal(doppel_minhash(&one, 1, 0, signature), DOPPEL_ERROR_USAGE);
    assert_int_equal(doppel_minhash(&one, 1, 65537, signature), DOPPEL_ERROR_USAGE);
}

static void the_empty_set_has_its_own_signature(void **state) {
    (void)state;
    uint32_t signature[100];
    minhash(NULL, 0, 100, signature);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(signature[i], UINT32_MAX);
}

static void order_and_repeats_do_not_matter(void **state) {
    (void)state;
    uint64_t set[200], seed = 3;
    uint32_t want[128], got[128];
    random_set(&seed, set, 100);
    minhash(set, 100, 128, want);
    for (size_t i = 0; i < 100; i++)
        set[100 + i] = set[99 - i];
    minhash(set + 100, 100, 128, got);
    assert_memory_equal(got, want, sizeof want);
    minhash(set, 200, 128, got);
    assert_memory_equal(got, want, sizeof want);
}

/* ---- what it is good for ---- */

/* The share of equal slots over many pairs of sets of a + s and b + s with s in common. */
static double mean_estimate(uint64_t *seed, size_t a, size_t b, size_t s, size_t slots) {
    enum { PAIRS = 300 };
    uint64_t *numbers = malloc((a + s + b) * 8);
    uint32_t *x = malloc(slots * 4), *y = malloc(slots * 4);
    double sum = 0;
    for (int pair = 0; pair < PAIRS; pair++) {
        random_set(seed, numbers, a + s + b);
        minhash(numbers, a + s, slots, x);
        minhash(numbers + a, s + b, slots, y);
        sum += doppel_signature_jaccard(x, y, slots);
    }
    free(numbers);
    free(x);
    free(y);
    return sum / PAIRS;
}

static void the_estimate_is_close_to_jaccard(void **state) {
    (void)state;
    static const size_t sizes[][3] = {{1, 1, 1},     {1, 0, 1},    {2, 2, 1},     {5, 5, 10},
                                      {1, 9, 3},     {50, 50, 50}, {10, 10, 200}, {300, 300, 30},
                                      {0, 400, 100}, {500, 0, 20}, {100, 100, 0}, {0, 0, 30}};
    static const size_t slots[] = {1, 16, 128};
    uint64_t seed = 4;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (size_t i = 0; i < 3; i++) {
            double shared = (double)sizes[k][2], all = (double)(sizes[k][0] + sizes[k][1]) + shared, j = shared / all;
            double got = mean_estimate(&seed, sizes[k][0], sizes[k][1], sizes[k][2], slots[i]);
            /* Five standard deviations of the mean over 300 pairs, if slots were independent. */
            double allowed = 5 * sqrt(j * (1 - j) / (300.0 * (double)slots[i]));
            if (fabs(got - j) > allowed + 1e-9) {
                print_error("%zu slots: %g, not %g +- %g\n", slots[i], got, j, allowed);
                fail();
            }
        }
}

static void every_slot_of_a_union_is_one_of_its_parts(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 2, 5, 40, 600}, slots[] = {1, 3, 64, 500};
    uint64_t numbers[1200], seed = 5;
    uint32_t a[500], b[500], both[500];
    for (size_t k = 0; k < 100; k++) {
        size_t first = sizes[k % 5], second = sizes[k / 5 % 5], t = slots[k / 25];
        random_set(&seed, numbers, first + second);
        minhash(numbers, first, t, a);
        minhash(numbers + first, second, t, b);
        minhash(numbers, first + second, t, both);
        for (size_t i = 0; i < t; i++)
            assert_true(both[i] == a[i] || both[i] == b[i]);
    }
}

/* ---- samples ---- */

static void a_sample_keeps_order_in_place(void **state) {
    (void)state;
    uint64_t numbers[] = {8, 3, 0, 12, 8, 5, UINT64_MAX, 4};
    assert_int_equal(doppel_sample(numbers, 8, 4), 5);
    assert_memory_equal(numbers, ((const uint64_t[]){8, 0, 12, 8, 4}), 40);
    assert_int_equal(doppel_sample(numbers, 5, 1), 5);
    assert_int_equal(doppel_sample(numbers, 5, UINT64_MAX), 1);
    assert_int_equal(doppel_sample(numbers, 5, 0), 0);
    assert_int_equal(doppel_sample(NULL, 0, 4), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_are_as_defined),
        cmocka_unit_test(repeats_change_nothing),
        cmocka_unit_test(the_most_slots),
        cmocka_unit_test(a_number_of_slots_that_makes_no_sense),
        cmocka_unit_test(the_empty_set_has_its_own_signature),
        cmocka_unit_test(order_and_repeats_do_not_matter),
        cmocka_unit_test(the_estimate_is_close_to_jaccard),
        cmocka_unit_test(every_slot_of_a_union_is_one_of_its_parts),
        cmocka_unit_test(a_sample_keeps_order_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
