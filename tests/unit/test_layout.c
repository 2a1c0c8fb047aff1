/* test_layout.c - layouts by name: their tables, keys and orders of bits, and the names that are refused. */
#include "support.h"

#include "hamming/hamming.h"

static const char *const names[] = {"scan",   "1x5",    "2x4",     "3x3",      "4x2",       "4x16", "3c2x5", "4c3x6",
                                    "5c2x26", "6c3x30", "2x3+2x2", "3x2+2x30", "4x16+4x12", "2x30", "7c4x29"};
static const int widths[] = {1, 2, 3, 7, 8, 12, 31, 32, 33, 63, 64, 128};

enum { NAMES = sizeof names / sizeof *names, WIDTHS = sizeof widths / sizeof *widths };

static dp_bits all_bits(int bits) {
    return bits == 128 ? ~(dp_bits)0 : ((dp_bits)1 << bits) - 1;
}

static dp_bits random_bits(uint64_t *seed, int bits) {
    return ((dp_bits)random_next(seed) << 64 | random_next(seed)) & all_bits(bits);
}

static dp_layout layout_of(const char *name, int bits) {
    dp_layout layout;
    doppel_error error = {0};
    if (dp_layout_parse(name, bits, &layout, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    return layout;
}

/* Calls `check` for every table of every layout that can be. */
static void for_each_table(void (*check)(const dp_layout *layout, const dp_table_layout *table)) {
    for (int n = 0; n < NAMES; n++)
        for (int w = 0; w < WIDTHS; w++) {
            dp_layout layout;
            if (dp_layout_parse(names[n], widths[w], &layout, NULL) == DOPPEL_OK)
                for (int t = 0; t < layout.tables; t++)
                    check(&layout, &layout.table[t]);
        }
}

static void check_cuts(const dp_layout *layout, const dp_table_layout *table) {
    dp_bits seen = 0;
    assert_in_range(table->cuts, 1, DP_MAX_CUTS);
    for (int i = 0; i < table->cuts; i++) {
        dp_bits cut = all_bits(table->cut[i].width) << table->cut[i].from;
        assert_true((seen & cut) == 0);
        seen |= cut;
    }
    assert_true(seen == all_bits(layout->bits));
}

static void the_cuts_of_a_table_hold_every_bit_once(void **state) {
    (void)state;
    for_each_table(check_cuts);
}

static void check_restore(const dp_layout *layout, const dp_table_layout *table) {
    uint64_t seed = 1;
    for (int i = 0; i < 20; i++) {
        dp_bits value = random_bits(&seed, layout->bits), other = random_bits(&seed, layout->bits);
        dp_bits arranged = dp_layout_arrange(table, value);
        assert_true(dp_layout_restore(table, arranged) == value);
        assert_int_equal(dp_bits_count(arranged ^ dp_layout_arrange(table, other)), dp_bits_count(value ^ other));
    }
}

static void restore_undoes_arrange_and_distances_stay(void **state) {
    (void)state;
    for_each_table(check_restore);
}

static void check_key(const dp_layout *layout, const dp_table_layout *table) {
    assert_in_range(table->key_bits, 0, DP_MAX_KEY);
    assert_int_equal(dp_bits_count(table->key_mask), table->key_bits);
    dp_bits top =
        all_bits(layout->bits) & ~(table->key_bits < layout->bits ? all_bits(layout->bits) >> table->key_bits : 0);
    assert_true(dp_layout_arrange(table, table->key_mask) == top);
}

static void the_key_is_at_the_top(void **state) {
    (void)state;
    for_each_table(check_key);
}

static void check_first(const dp_layout *layout, const dp_table_layout *table) {
    uint64_t seed = 2;
    dp_bits value = random_bits(&seed, layout->bits);
    if (table == &layout->table[0])
        assert_true(dp_layout_arrange(table, value) == value && table->cuts == 1);
}

static void the_first_table_keeps_the_order_of_numbers(void **state) {
    (void)state;
    for_each_table(check_first);
}

static void blocks_have_a_table_each(void **state) {
    (void)state;
    dp_layout layout = layout_of("4x16", 64);
    assert_int_equal(layout.tables, 4);
    for (int t = 0; t < 4; t++)
        assert_true(layout.table[t].key_mask == (dp_bits)0xFFFF << (48 - 16 * t));
}

static void wider_blocks_come_first(void **state) {
    (void)state;
    dp_layout layout = layout_of("3x30", 64);
    assert_int_equal(layout.table[0].key_bits, 22);
    assert_int_equal(layout.table[1].key_bits, 21);
    assert_int_equal(layout.table[2].key_bits, 21);
    assert_true(layout.table[2].key_mask == 0x1FFFFF);
}

static void a_shorter_key_is_the_top_of_its_block(void **state) {
    (void)state;
    dp_layout layout = layout_of("2x8", 64);
    assert_true(layout.table[0].key_mask == (dp_bits)0xFF << 56);
    assert_true(layout.table[1].key_mask == (dp_bits)0xFF << 24);
}

static void every_choice_of_blocks_has_a_table(void **state) {
    (void)state;
    dp_layout layout = layout_of("5c2x26", 64);
    assert_int_equal(layout.tables, 10);
    assert_int_equal(layout.table[0].key_bits, 26);
    assert_int_equal(layout.table[9].key_bits, 25);
    assert_true(layout.table[9].key_mask == 0x1FFFFFF);
    for (int t = 0; t < 10; t++)
        for (int other = 0; other < t; other++)
            assert_true(layout.table[t].key_mask != layout.table[other].key_mask);
}

static void two_levels_have_a_table_for_each_pair(void **state) {
    (void)state;
    dp_layout layout = layout_of("4x16+4x12", 64);
    assert_int_equal(layout.tables, 16);
    assert_int_equal(layout.table[0].key_bits, 28);
    assert_true(layout.table[0].key_mask == (dp_bits)0xFFFFFFF << 36);
    /* The second of the first level, the last 12 of the other 48 bits. */
    assert_true(layout.table[7].key_mask == ((dp_bits)0xFFFF << 32 | 0xFFF));
    /* The third of the first level, and the block that goes around it: 8 bits above, 4 below. */
    assert_true(layout.table[8 + 2].key_mask == ((dp_bits)0xFFFF << 16 | (dp_bits)0xFF << 32 | 0xF << 12));
}

static void a_scan_has_one_table_without_a_key(void **state) {
    (void)state;
    dp_layout layout = layout_of("scan", 33);
    assert_int_equal(layout.tables, 1);
    assert_int_equal(layout.table[0].key_bits, 0);
    assert_true(layout.table[0].key_mask == 0);
}

static void check_refused(const char *name, int bits, const char *says) {
    dp_layout layout;
    doppel_error error = {0};
    assert_int_equal(dp_layout_parse(name, bits, &layout, &error), DOPPEL_ERROR_USAGE);
    if (!strstr(error.message, says))
        fail_msg("\"%s\": %s", name, error.message);
}

static void names_that_are_none_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"",      "4",       "4x",         "x16",        "4x16+",        "4x16+4",
                                        "4x16 ", "-4x16",   "4c",         "4c2",        "4x16x3",       "scan2",
                                        "SCAN",  "4x99999", "5c2x12+2x2", "4x16+5c2x3", "4x16+4x12+2x3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_refused(wrong[i], 64, "a layout is such as 4x16");
    char longest[200];
    memset(longest, '1', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    check_refused(longest, 64, "a layout is such as 4x16");
}

static void layouts_that_cannot_be_are_refused_with_the_reason(void **state) {
    (void)state;
    check_refused("0x16", 64, "1 to 64 blocks, not 0");
    check_refused("9x1", 8, "1 to 8 blocks, not 9");
    check_refused("4x31", 64, "1 to 30 bits, not 31");
    check_refused("4x0", 64, "1 to 30 bits, not 0");
    check_refused("5c6x20", 64, "1 to 5 of 5 blocks, not 6");
    check_refused("5c0x20", 64, "1 to 5 of 5 blocks, not 0");
    check_refused("9c4x20", 64, "more than 64 tables");
    check_refused("100x1", 128, "more than 64 tables");
    check_refused("64c32x20", 64, "more than 64 tables");
    check_refused("9x4+9x4", 64, "more than 64 tables");
    check_refused("4x16+4x20", 64, "at most 30 bits in both levels");
    check_refused("1x8+1x1", 8, "leaves no bits");
    check_refused("2x3+5x1", 7, "1 to 4 blocks, not 5");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cuts_of_a_table_hold_every_bit_once),
        cmocka_unit_test(restore_undoes_arrange_and_distances_stay),
        cmocka_unit_test(the_key_is_at_the_top),
        cmocka_unit_test(the_first_table_keeps_the_order_of_numbers),
        cmocka_unit_test(blocks_have_a_table_each),
        cmocka_unit_test(wider_blocks_come_first),
        cmocka_unit_test(a_shorter_key_is_the_top_of_its_block),
        cmocka_unit_test(every_choice_of_blocks_has_a_table),
        cmocka_unit_test(two_levels_have_a_table_for_each_pair),
        cmocka_unit_test(a_scan_has_one_table_without_a_key),
        cmocka_unit_test(names_that_are_none_are_refused),
        cmocka_unit_test(layouts_that_cannot_be_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
