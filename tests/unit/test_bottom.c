/* test_bottom.c - samples of sets: what they hold, and how near the similarity comes that is estimated by them. */
#include "support.h"

#include "verify/verify.h"

#include <math.h>

enum { MOST = 192 };

static doppel_slice sample_of(const uint64_t *set, size_t count, dp_buffer *to) {
    to->size = 0;
    assert_true(dp_bottom_make(set, count, MOST, to));
    doppel_slice sample = {to->data, to->size};
    assert_int_equal(dp_bottom_is_valid(sample), count > 0);
    return sample;
}

/* Two sets with `shared` numbers in common, and `own` each has for itself; ascending. */
static void make_sets(uint64_t *seed, size_t shared, const size_t own[2], uint64_t *set[2]) {
    size_t all = shared + own[0] + own[1];
    uint64_t *scratch = malloc((all + 1) * sizeof *scratch);
    assert_non_null(scratch);
    for (size_t i = 0; i < shared; i++)
        set[0][i] = set[1][i] = random_next(seed);
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < own[k]; i++)
            set[k][shared + i] = random_next(seed);
        dp_sort64(set[k], shared + own[k], scratch);
    }
    free(scratch);
}

/* The mean error and the standard error of many pairs of one similarity. */
static void check_error(size_t shared, size_t a, size_t b, double most_bias, double most_error) {
    enum { PAIRS = 400 };
    uint64_t seed = shared + a + 7, *set[2];
    dp_buffer bytes[2] = {{0}};
    double bias = 0, squares = 0, truth = (double)shared / (double)(shared + a + b);
    for (int k = 0; k < 2; k++)
        assert_non_null(set[k] = malloc((shared + a + b) * sizeof *set[k]));
    for (int i = 0; i < PAIRS; i++) {
        make_sets(&seed, shared, (size_t[]){a, b}, set);
        doppel_slice x = sample_of(set[0], shared + a, &bytes[0]), y = sample_of(set[1], shared + b, &bytes[1]);
        double found = dp_bottom_similarity(x, y, MOST);
        assert_true(found == dp_bottom_similarity(y, x, MOST));
        bias += (found - truth) / PAIRS;
        squares += (found - truth) * (found - truth) / PAIRS;
    }
    if (fabs(bias) > most_bias || sqrt(squares) > most_error)
        fail_msg("%zu of %zu: bias %.4f, standard error %.4f", shared, shared + a + b, bias, sqrt(squares));
    for (int k = 0; k < 2; k++) {
        free(set[k]);
        dp_buffer_free(&bytes[k]);
    }
}

static void estimates_are_near(void **state) {
    (void)state;
    /* sqrt(J (1 - J) / 192) is 0.029 at 0.8, and less where much of the set is in the sample. */
    check_error(8000, 1000, 1000, 0.006, 0.033);
    check_error(240, 30, 30, 0.004, 0.02);
    check_error(1000, 500, 500, 0.008, 0.04);
    check_error(100, 2000, 2000, 0.008, 0.02);
    /* Sizes that differ: more than their ratio is never said. */
    check_error(1000, 0, 1000, 0.03, 0.04);
    if (SMALLER == 1)
        check_error(40000, 5000, 5000, 0.006, 0.033);
    if (full_suite())
        check_error(500000, 60000, 60000, 0.006, 0.033);
}

static void small_sets_are_whole(void **state) {
    (void)state;
    uint64_t seed = 3, a[MOST], b[MOST], *set[2] = {a, b};
    dp_buffer bytes[2] = {{0}};
    for (size_t shared = 1; shared < 60; shared++) {
        make_sets(&seed, shared, (size_t[]){10, 20}, set);
        doppel_slice x = sample_of(a, shared + 10, &bytes[0]), y = sample_of(b, shared + 20, &bytes[1]);
        assert_true(fabs(dp_bottom_similarity(x, y, MOST) - (double)shared / (double)(shared + 30)) < 0.02);
        assert_int_equal(dp_bottom_count(x), shared + 10);
        assert_true(fabs(dp_bottom_containment(x, y, (double)shared / (double)(shared + 30)) -
                         (double)shared / (double)(shared + 10)) < 1e-9);
        assert_true(dp_bottom_similarity(x, x, MOST) == 1);
    }
    dp_buffer_free(&bytes[0]);
    dp_buffer_free(&bytes[1]);
}

static void a_sample_has_a_bounded_size(void **state) {
    (void)state;
    enum { MANY = 100000 };
    uint64_t seed = 9, *set = malloc(2 * MANY * sizeof *set);
    dp_buffer bytes = {0};
    assert_non_null(set);
    for (size_t i = 0; i < MANY; i++)
        set[i] = random_next(&seed);
    dp_sort64(set, MANY, set + MANY);
    assert_true(sample_of(set, MANY, &bytes).length <= 5 + 2 * MOST);
    assert_true(sample_of(set, 20, &bytes).length <= 5 + 2 * 20);
    free(set);
    dp_buffer_free(&bytes);
}

static void other_bytes_are_no_sample(void **state) {
    (void)state;
    static const char good[] = {48, 3, 0, 0, 0, 1, 0, 2, 0, 3, 1};
    assert_true(dp_bottom_is_valid((doppel_slice){good, sizeof good}));
    for (size_t i = 0; i < sizeof good; i++)
        if (i != 7 && i != 9)
            assert_false(dp_bottom_is_valid((doppel_slice){good, i}));
    static const char bad[][11] = {{49, 3, 0, 0, 0, 1, 0, 2, 0, 3, 1},
                                   {48, 2, 0, 0, 0, 1, 0, 2, 0, 3, 1},
                                   {48, 3, 0, 0, 0, 1, 0, 1, 0, 3, 1},
                                   {48, 3, 0, 0, 0, 2, 0, 1, 0, 3, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(dp_bottom_is_valid((doppel_slice){bad[i], sizeof bad[i]}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates_are_near),
        cmocka_unit_test(small_sets_are_whole),
        cmocka_unit_test(a_sample_has_a_bounded_size),
        cmocka_unit_test(other_bytes_are_no_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
