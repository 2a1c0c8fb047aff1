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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_finds_what_it_promises),  cmocka_unit_test(what_is_given_stays),
        cmocka_unit_test(what_makes_no_sense_is_refused), cmocka_unit_test(keys_are_those_of_their_rows),
        cmocka_unit_test(bands_have_keys_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
