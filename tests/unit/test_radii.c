/* test_radii.c - radii are exact: no pattern of at most k differing bits hides from every probe. */
#include "support.h"

#include "hamming/hamming.h"

#include <stdio.h>

/* So many entries that a scan is never cheaper than radii. */
#define MANY ((uint64_t)1 << 50)

static bool choose_radii(const dp_layout *layout, int distance, uint64_t count, int *radius) {
    doppel_costs costs;
    doppel_costs_get(&costs);
    return dp_layout_radii(&(dp_question){&costs, count, distance}, layout, radius);
}

static bool is_found(const dp_layout *layout, const int *radius, dp_bits errors) {
    for (int t = 0; t < layout->tables; t++)
        if (radius[t] >= 0 && dp_bits_count(errors & layout->table[t].key_mask) <= radius[t])
            return true;
    return false;
}

static void check_all_patterns(const char *name, int bits) {
    dp_layout layout;
    int radius[DP_MAX_TABLES];
    assert_int_equal(dp_layout_parse(name, bits, &layout, NULL), DOPPEL_OK);
    for (int distance = 0; distance <= bits; distance++) {
        choose_radii(&layout, distance, MANY, radius);
        for (uint32_t errors = 0; errors < 1u << bits; errors++)
            if (dp_bits_count(errors) <= distance && !is_found(&layout, radius, errors))
                fail_msg("%s of %d bits within %d misses %x", name, bits, distance, errors);
    }
}

static void no_pattern_of_a_small_width_is_missed(void **state) {
    (void)state;
    static const char *const names[] = {"1x5",   "2x3",   "2x6",     "3x2",     "3x4",     "4x3",     "5x1",
                                        "3c2x8", "4c2x6", "4c2x3",   "4c3x9",   "5c2x4",   "5c3x7",   "6c2x4",
                                        "6c3x6", "7c3x5", "2x3+2x3", "3x2+2x4", "2x6+3x2", "4x3+4x2", "3x4+1x2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        check_all_patterns(names[i], 12);
        check_all_patterns(names[i], 11);
        check_all_patterns(names[i], 8);
    }
}

/* A pattern of `count` bits: spread at random, or crowded into blocks of `bits` / `crowd`. */
static dp_bits random_errors(uint64_t *seed, int bits, int count, int crowd) {
    dp_bits errors = 0;
    int block = (bits + crowd - 1) / crowd;
    while (dp_bits_count(errors) < count) {
        size_t at = random_below(seed, (size_t)bits);
        if (crowd > 1 && random_below(seed, 3))
            at = at / (size_t)block * (size_t)block + random_below(seed, 3);
        if (at < (size_t)bits)
            errors |= (dp_bits)1 << at;
    }
    return errors;
}

static void check_random_patterns(const char *name, int bits, int most) {
    dp_layout layout;
    int radius[DP_MAX_TABLES];
    uint64_t seed = 7;
    assert_int_equal(dp_layout_parse(name, bits, &layout, NULL), DOPPEL_OK);
    for (int distance = 0; distance <= most; distance++) {
        choose_radii(&layout, distance, MANY, radius);
        for (int i = 0; i < 3000; i++) {
            dp_bits errors = random_errors(&seed, bits, distance, i % 4 ? layout.blocks : 1);
            if (!is_found(&layout, radius, errors))
                fail_msg("%s of %d bits within %d misses a pattern", name, bits, distance);
        }
    }
}

static void no_random_pattern_is_missed(void **state) {
    (void)state;
    static const char *const names[] = {"4x16",   "3x21",      "2x26", "5c2x26", "6c3x30",
                                        "7c4x29", "4x16+4x12", "5x12", "8c2x16"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        check_random_patterns(names[i], 64, 16);
        check_random_patterns(names[i], 63, 16);
        check_random_patterns(names[i], 128, 32);
    }
}

static void expect_radii(const char *name, int distance, const char *expected) {
    dp_layout layout;
    int radius[DP_MAX_TABLES];
    char text[200] = "";
    assert_int_equal(dp_layout_parse(name, 64, &layout, NULL), DOPPEL_OK);
    assert_true(choose_radii(&layout, distance, 10000000, radius));
    for (int t = 0; t < layout.tables; t++)
        sprintf(text + strlen(text), "%s%d", t ? " " : "", radius[t]);
    assert_string_equal(text, expected);
}

static void blocks_share_the_distance_evenly(void **state) {
    (void)state;
    expect_radii("4x16", 3, "0 0 0 0");
    expect_radii("4x16", 6, "1 1 1 0");
    expect_radii("4x16", 8, "2 1 1 1");
    expect_radii("4x16", 10, "2 2 2 1");
    expect_radii("3x21", 3, "1 0 0");
}

static void a_smaller_distance_takes_fewer_tables(void **state) {
    (void)state;
    expect_radii("4x16", 0, "0 -1 -1 -1");
    expect_radii("4x16", 1, "0 0 -1 -1");
    expect_radii("5c2x26", 1, "0 -1 -1 -1 -1 -1 -1 0 -1 -1");
    expect_radii("5c2x26", 2, "0 0 0 -1 0 0 -1 0 -1 -1");
}

static void choices_are_exact_keys_for_what_they_are_made_for(void **state) {
    (void)state;
    expect_radii("5c2x26", 3, "0 0 0 0 0 0 0 0 0 0");
    expect_radii("6c3x30", 3, "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
    expect_radii("4x16+4x12", 3, "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
}

static void few_entries_are_scanned(void **state) {
    (void)state;
    dp_layout layout;
    int radius[DP_MAX_TABLES];
    assert_int_equal(dp_layout_parse("2x3", 64, &layout, NULL), DOPPEL_OK);
    assert_false(choose_radii(&layout, 3, 10, radius));
    assert_int_equal(dp_layout_parse("4x16", 64, &layout, NULL), DOPPEL_OK);
    assert_true(choose_radii(&layout, 3, 1000000, radius));
    assert_false(choose_radii(&layout, 40, 1000000, radius));
}

static void a_scan_has_no_radii(void **state) {
    (void)state;
    dp_layout layout;
    int radius[DP_MAX_TABLES];
    assert_int_equal(dp_layout_parse("scan", 64, &layout, NULL), DOPPEL_OK);
    assert_false(choose_radii(&layout, 3, MANY, radius));
    assert_int_equal(radius[0], -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_pattern_of_a_small_width_is_missed),
        cmocka_unit_test(no_random_pattern_is_missed),
        cmocka_unit_test(blocks_share_the_distance_evenly),
        cmocka_unit_test(a_smaller_distance_takes_fewer_tables),
        cmocka_unit_test(choices_are_exact_keys_for_what_they_are_made_for),
        cmocka_unit_test(few_entries_are_scanned),
        cmocka_unit_test(a_scan_has_no_radii),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
