/* test_bands.c - candidates by bands: how many there are, their keys, and who shares one. */
#include "batches.h"

#include "doppel.h"

/* ---- plans ---- */

static void a_plan_finds_what_it_promises(void **state) {
    (void)state;
    for (int percent = 30; percent <= 100; percent++) {
        int bands = 0, rows = 0;
        assert_true(dp_bands_plan(percent / 100.0, &bands, &rows));
        assert_in_range(bands, 1, DP_MOST_BANDS);
        assert_in_range(rows, 1, DP_MOST_SLOTS / bands);
        assert_true(dp_bands_recall(percent / 100.0, bands, rows) >= 0.99);
    }
    /* Below, there are as many as there can be. */
    int bands = 0, rows = 0;
    assert_true(dp_bands_plan(0.01, &bands, &rows));
    assert_int_equal(bands, DP_MOST_BANDS);
    assert_int_equal(rows, 1);
}

static void what_is_given_stays(void **state) {
    (void)state;
    int bands = 20, rows = 5;
    assert_true(dp_bands_plan(0.8, &bands, &rows));
    assert_int_equal(bands, 20);
    assert_int_equal(rows, 5);
    rows = 0;
    assert_true(dp_bands_plan(0.8, &bands, &rows));
    assert_int_equal(bands, 20);
    assert_true(dp_bands_recall(0.8, bands, rows) >= 0.99);
    bands = 0, rows = 5;
    assert_true(dp_bands_plan(0.8, &bands, &rows));
    assert_int_equal(rows, 5);
    assert_true(dp_bands_recall(0.8, bands, rows) >= 0.99);
}

static void what_makes_no_sense_is_refused(void **state) {
    (void)state;
    static const int bad[][2] = {{-1, 4}, {4, -1}, {65, 1}, {64, 17}, {1, 1025}, {2, 1024}, {0, 1024}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int bands = bad[i][0], rows = bad[i][1];
        assert_false(dp_bands_plan(0.8, &bands, &rows));
    }
}

/* ---- keys ---- */

enum { BANDS = 16, ROWS = 2 };

static int compare_hashes(const void *x, const void *y) {
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static void random_set(uint64_t *set, size_t count, uint64_t *random) {
    for (size_t i = 0; i < count; i++)
        set[i] = random_next(random);
    qsort(set, count, sizeof *set, compare_hashes);
}

/* Two sets share a key just where they agree in all rows of that band, and a key of one band is none of another's. */
static void keys_are_those_of_their_rows(void **state) {
    (void)state;
    enum { SETS = 300, COUNT = 40 };
    static uint32_t keys[SETS][BANDS], slots[SETS][BANDS * ROWS];
    uint64_t set[COUNT], random = 7;
    size_t shared = 0;
    random_set(set, COUNT, &random);
    for (size_t s = 0; s < SETS; s++) {
        set[random_below(&random, COUNT)] = random_next(&random);
        qsort(set, COUNT, sizeof *set, compare_hashes);
        assert_int_equal(dp_bands_keys(set, COUNT, BANDS, ROWS, keys[s]), DOPPEL_OK);
        assert_int_equal(doppel_minhash(set, COUNT, BANDS * ROWS, slots[s]), DOPPEL_OK);
        for (size_t t = 0; t < s; t++)
            for (size_t b = 0; b < BANDS; b++) {
                bool same = !memcmp(slots[s] + b * ROWS, slots[t] + b * ROWS, ROWS * sizeof **slots);
                assert_int_equal(keys[s][b] == keys[t][b], same);
                shared += same;
            }
    }
    assert_true(shared > 1000);
}

/* Where all slots are the same, the keys still differ from band to band. */
static void bands_have_keys_of_their_own(void **state) {
    (void)state;
    uint32_t keys[BANDS];
    assert_int_equal(dp_bands_keys(NULL, 0, BANDS, ROWS, keys), DOPPEL_OK);
    for (size_t a = 0; a < BANDS; a++)
        for (size_t b = 0; b < a; b++)
            assert_int_not_equal(keys[a], keys[b]);
}

/* ---- the public calls ---- */

static void public_plans_are_the_same_and_say_what_they_find(void **state) {
    (void)state;
    static const int given[][2] = {{0, 0}, {20, 0}, {0, 5}, {30, 7}, {64, 16}, {1, 1024}};
    for (int percent = 1; percent <= 100; percent++)
        for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
            int bands = given[i][0], rows = given[i][1], own_bands = bands, own_rows = rows;
            double similarity = percent / 100.0, share = doppel_bands_plan(similarity, &bands, &rows);
            bool possible = dp_bands_plan(similarity, &own_bands, &own_rows);
            assert_true(share == (possible ? dp_bands_recall(similarity, own_bands, own_rows) : 0));
            assert_true(!possible || (bands == own_bands && rows == own_rows));
        }
}

static void public_plans_are_not_possible_for_other_numbers(void **state) {
    (void)state;
    static const int bad[][2] = {{-1, 4}, {4, -1}, {65, 1}, {64, 17}, {1, 1025}, {INT32_MAX, INT32_MAX}};
    static const double similarities[] = {0, -0.1, 1.1, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int bands = bad[i][0], rows = bad[i][1], none = 0;
        assert_true(doppel_bands_plan(0.8, &bands, &rows) == 0);
        bands = rows = 0;
        assert_true(doppel_bands_plan(similarities[i], &bands, &none) == 0);
    }
}

static void public_keys_are_the_same(void **state) {
    (void)state;
    enum { COUNT = 100 };
    uint64_t set[COUNT], random = 3;
    random_set(set, COUNT, &random);
    for (int bands = 1; bands <= DP_MOST_BANDS; bands++)
        for (int rows = 1; rows <= DP_MOST_SLOTS / bands; rows *= 2) {
            uint32_t keys[DP_MOST_BANDS], own[DP_MOST_BANDS];
            assert_int_equal(doppel_bands_keys(set, COUNT, bands, rows, keys), DOPPEL_OK);
            assert_int_equal(dp_bands_keys(set, COUNT, bands, rows, own), DOPPEL_OK);
            assert_memory_equal(keys, own, (size_t)bands * sizeof *keys);
        }
}

/* docs/FORMAT.md section 11, step by step. */
static void public_keys_are_as_defined(void **state) {
    (void)state;
    uint64_t set[50], random = 4;
    uint32_t keys[BANDS], slots[BANDS * ROWS];
    uint64_t wide[BANDS];
    random_set(set, 50, &random);
    assert_int_equal(doppel_bands_keys(set, 50, BANDS, ROWS, keys), DOPPEL_OK);
    assert_int_equal(doppel_bands_wide_keys(set, 50, BANDS, ROWS, wide), DOPPEL_OK);
    assert_int_equal(doppel_minhash(set, 50, BANDS * ROWS, slots), DOPPEL_OK);
    for (size_t b = 0; b < BANDS; b++) {
        uint64_t key = b;
        for (size_t r = 0; r < ROWS; r++) {
            key = (key ^ slots[b * ROWS + r]) * 0x9E3779B97F4A7C15u;
            key ^= key >> 32;
        }
        assert_int_equal(keys[b], key >> 16 & 0xFFFFFFFF);
        assert_int_equal(wide[b], key);
    }
}

static void public_keys_of_no_set_or_no_bands_are_refused(void **state) {
    (void)state;
    static const int bad[][2] = {{0, 1}, {1, 0}, {-1, 1}, {1, -1}, {65, 1}, {64, 17}, {1, 1025}, {INT32_MAX, 2}};
    const uint64_t set[] = {1};
    uint32_t keys[DP_MOST_BANDS];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(doppel_bands_keys(set, 1, bad[i][0], bad[i][1], keys), DOPPEL_ERROR_USAGE);
    assert_int_equal(doppel_bands_keys(set, 0, BANDS, ROWS, keys), DOPPEL_ERROR_USAGE);
    assert_int_equal(doppel_bands_wide_keys(set, 0, BANDS, ROWS, NULL), DOPPEL_ERROR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_finds_what_it_promises),
        cmocka_unit_test(what_is_given_stays),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(keys_are_those_of_their_rows),
        cmocka_unit_test(bands_have_keys_of_their_own),
        cmocka_unit_test(public_plans_are_the_same_and_say_what_they_find),
        cmocka_unit_test(public_plans_are_not_possible_for_other_numbers),
        cmocka_unit_test(public_keys_are_the_same),
        cmocka_unit_test(public_keys_are_as_defined),
        cmocka_unit_test(public_keys_of_no_set_or_no_bands_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
