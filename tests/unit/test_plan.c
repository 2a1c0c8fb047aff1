/* test_plan.c - plans: what is listed, in what order, what fits, what is refused, and what runs and joins take. */
#include "support.h"

#include "hamming/hamming.h"

#include <math.h>

enum { ROOM = 400 };

static doppel_plan plans[ROOM];

static doppel_plan_options options_of(int bits, uint64_t memory, const char *layout) {
    return (doppel_plan_options){.size = sizeof(doppel_plan_options), .bits = bits, .memory = memory, .layout = layout};
}

static size_t list(uint64_t count, int distance, const doppel_plan_options *options) {
    size_t found;
    doppel_error error = {0};
    if (doppel_plan_list(count, distance, options, plans, ROOM, &found, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    assert_in_range(found, 1, ROOM);
    return found;
}

static const doppel_plan *plan_named(size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(plans[i].layout, name))
            return &plans[i];
    fail_msg("there is no plan %s", name);
    return NULL;
}

static void check_refused(int distance, const doppel_plan_options *options, const char *says) {
    size_t found;
    doppel_error error = {0};
    assert_int_equal(doppel_plan_list(1000, distance, options, plans, ROOM, &found, &error), DOPPEL_ERROR_USAGE);
    assert_int_equal(found, 0);
    if (!strstr(error.message, says))
        fail_msg("%s", error.message);
}

/* ---- the list ---- */

static void the_classic_reductions_are_printed(void **state) {
    (void)state;
    static const uint64_t counts[] = {0, 1000, 1000000, 1000000000};
    for (int i = 0; i < 4; i++) {
        size_t found = list(counts[i], 3, NULL);
        assert_true(plan_named(found, "4x16")->reduction == 1024);
        assert_true(fabs(plan_named(found, "4x16+4x12")->reduction - 87381.33) < 0.01);
    }
}

static void a_reduction_stands_only_where_exact_keys_do(void **state) {
    (void)state;
    doppel_plan_options options = options_of(64, 0, "4x16");
    list(1000000, 4, &options);
    assert_true(plans[0].reduction == 0);
    options.layout = "5c2x26";
    list(1000000, 3, &options);
    assert_true(plans[0].reduction == 0);
}

static void bytes_are_those_of_the_tables(void **state) {
    (void)state;
    doppel_plan_options options = options_of(64, 0, "4x16");
    list(10000000, 3, &options);
    /* A table has 4 bytes of filter and 2 of the rest an entry, and a directory. */
    assert_true(fabs(plans[0].memory - (1e7 * (4 * 6 + 8.125) + 4 * 4 * 65537.0)) < 1);
    options.bits = 128;
    list(10000000, 3, &options);
    /* 8 bytes of filter, 6 of the rest. */
    assert_true(fabs(plans[0].memory - (1e7 * (4 * 14 + 8.125) + 4 * 4 * 65537.0)) < 1);
}

static void probes_and_candidates_follow_from_the_radii(void **state) {
    (void)state;
    doppel_plan_options options = options_of(64, 0, "4x16");
    list(10000000, 6, &options);
    assert_int_equal(plans[0].radius[0], 1);
    assert_int_equal(plans[0].radius[3], 0);
    assert_true(plans[0].probes == 3 * 17 + 1);
    assert_true(fabs(plans[0].candidates - 52 * 1e7 / 65536) < 1e-6);
}

static void what_fits_comes_first(void **state) {
    (void)state;
    doppel_plan_options options = options_of(64, (uint64_t)3 << 30, NULL);
    size_t found = list(100000000, 3, &options), fit = 0;
    while (fit < found && plans[fit].fits)
        fit++;
    assert_in_range(fit, 1, found - 1);
    for (size_t i = 0; i < found; i++) {
        assert_int_equal(plans[i].fits, i < fit);
        assert_int_equal(plans[i].fits, plans[i].memory <= 3.0 * (1 << 30));
    }
}

static void a_billion_fit_into_20_gigabytes(void **state) {
    (void)state;
    doppel_plan_options options = options_of(64, (uint64_t)20 << 30, NULL);
    for (int join = 0; join < 2; join++) {
        options.purpose = join ? DOPPEL_FOR_JOIN : DOPPEL_FOR_FIND;
        list(1000000000, 3, &options);
        assert_true(plans[0].fits);
        assert_true(plans[0].memory <= 20.0 * (1 << 30));
    }
}

static void where_nothing_fits_the_smallest_comes_first(void **state) {
    (void)state;
    doppel_plan_options options = options_of(64, 1000, NULL);
    for (int join = 0; join < 2; join++) {
        options.purpose = join ? DOPPEL_FOR_JOIN : DOPPEL_FOR_FIND;
        size_t found = list(1000000, 3, &options);
        assert_false(plans[0].fits);
        for (size_t i = 1; i < found; i++)
            assert_true(plans[i].memory >= plans[0].memory);
    }
}

static void less_room_gives_the_first_plans(void **state) {
    (void)state;
    doppel_plan first;
    size_t found, all = list(1000000, 3, NULL);
    assert_int_equal(doppel_plan_list(1000000, 3, NULL, &first, 1, &found, NULL), DOPPEL_OK);
    assert_int_equal(found, all);
    assert_string_equal(first.layout, plans[0].layout);
    assert_int_equal(doppel_plan_list(1000000, 3, NULL, NULL, 0, &found, NULL), DOPPEL_OK);
    assert_int_equal(found, all);
}

static void every_width_and_distance_has_a_plan(void **state) {
    (void)state;
    static const int widths[] = {1, 2, 3, 8, 17, 33, 63, 64, 128};
    for (int w = 0; w < 9; w++)
        for (int distance = 0; distance <= widths[w]; distance += 1 + distance / 8)
            for (int join = 0; join < 2; join++) {
                doppel_plan_options options = options_of(widths[w], 0, NULL);
                options.purpose = join ? DOPPEL_FOR_JOIN : DOPPEL_FOR_FIND;
                size_t found = list(100000, distance, &options);
                for (size_t i = 0; i < found; i++)
                    assert_true(isfinite(plans[i].microseconds) && plans[i].microseconds > 0 && plans[i].memory > 0);
            }
}

static void no_entries_and_one_are_planned(void **state) {
    (void)state;
    doppel_plan_options options = options_of(64, 0, NULL);
    for (uint64_t count = 0; count < 2; count++)
        for (int join = 0; join < 2; join++) {
            options.purpose = join ? DOPPEL_FOR_JOIN : DOPPEL_FOR_FIND;
            list(count, 3, &options);
            assert_string_equal(plans[0].layout, "scan");
        }
}

static void other_costs_give_another_choice(void **state) {
    (void)state;
    doppel_costs costs;
    doppel_costs_get(&costs);
    doppel_plan_options options = options_of(64, 0, NULL);
    options.costs = &costs;
    costs.candidate = 1000; /* comparing is what costs: longer keys */
    list(10000000, 3, &options);
    assert_true(plans[0].candidates < 10);
    doppel_costs_get(&costs);
    costs.probe = costs.probe_cached = 1e6; /* looking is what costs: few probes */
    list(10000000, 3, &options);
    assert_true(plans[0].probes <= 4);
}

static void wrong_requests_are_refused(void **state) {
    (void)state;
    doppel_plan_options options = options_of(65, 0, NULL);
    check_refused(3, &options, "1 to 64 or 128 bits, not 65");
    options.bits = -1;
    check_refused(3, &options, "1 to 64 or 128 bits, not -1");
    options.bits = 32;
    check_refused(33, &options, "0 to 32 bits apart, not 33");
    check_refused(-1, &options, "0 to 32 bits apart, not -1");
    options.layout = "4y16";
    check_refused(3, &options, "there is no layout");
    options.layout = "33x1";
    check_refused(3, &options, "1 to 32 blocks");
    options.purpose = DOPPEL_FOR_JOIN;
    options.layout = "4x16";
    check_refused(3, &options, "a join within 3 of 32 bits");
}

/* ---- wider ---- */

static void a_plan_widens_to_greater_and_smaller_distances(void **state) {
    (void)state;
    doppel_plan_options options = options_of(64, 0, "4x16");
    doppel_plan wider;
    list(10000000, 3, &options);
    double before = plans[0].microseconds;
    for (int distance = 4; distance <= 10; distance++) {
        assert_int_equal(doppel_plan_widen(&plans[0], distance, NULL, &wider, NULL), DOPPEL_OK);
        assert_string_equal(wider.layout, "4x16");
        assert_int_equal(wider.distance, distance);
        assert_true(wider.memory == plans[0].memory);
        assert_true(wider.microseconds > before);
        before = wider.microseconds;
    }
    assert_int_equal(doppel_plan_widen(&plans[0], 0, NULL, &wider, NULL), DOPPEL_OK);
    assert_true(wider.probes == 1);
}

static void a_plan_may_be_widened_in_place(void **state) {
    (void)state;
    doppel_plan_options options = options_of(64, 0, "4x16");
    doppel_plan wider;
    list(10000000, 3, &options);
    assert_int_equal(doppel_plan_widen(&plans[0], 6, NULL, &wider, NULL), DOPPEL_OK);
    assert_int_equal(doppel_plan_widen(&plans[0], 6, NULL, &plans[0], NULL), DOPPEL_OK);
    assert_memory_equal(&plans[0], &wider, sizeof wider);
}

static void no_plan_widens_beyond_its_bits(void **state) {
    (void)state;
    doppel_plan wider;
    doppel_error error;
    list(1000, 3, NULL);
    assert_int_equal(doppel_plan_widen(&plans[0], 65, NULL, &wider, &error), DOPPEL_ERROR_USAGE);
    assert_int_equal(doppel_plan_widen(&plans[0], -1, NULL, &wider, &error), DOPPEL_ERROR_USAGE);
}

/* ---- runs and joins ---- */

static void a_run_keeps_to_its_bytes(void **state) {
    (void)state;
    for (uint64_t count = 1000; count <= 1000000000; count *= 10)
        for (int distance = 0; distance <= 12; distance += 3) {
            dp_layout layout;
            dp_plan_run(count, distance, 64, 40, &layout);
            assert_true(dp_layout_bytes(&layout, count) <= 40 * (double)count);
        }
}

static void a_run_with_too_few_bytes_takes_the_smallest(void **state) {
    (void)state;
    dp_layout layout;
    dp_plan_run(1000000, 3, 64, 1, &layout);
    assert_int_equal(layout.tables, 1);
}

static void a_run_of_few_is_scanned(void **state) {
    (void)state;
    dp_layout layout;
    dp_plan_run(1, 3, 64, 40, &layout);
    assert_string_equal(layout.name, "scan");
    dp_plan_run(0, 3, 128, 40, &layout);
    assert_string_equal(layout.name, "scan");
}

static void joins_go_by_blocks_that_must_agree(void **state) {
    (void)state;
    assert_int_equal(dp_plan_join(10000000, 3, 64), 5);
    for (int distance = 0; distance <= 16; distance++) {
        int blocks = dp_plan_join(1000000, distance, 64);
        if (blocks)
            assert_in_range(blocks, distance + 2, 64);
    }
}

static void joins_of_few_or_of_far_compare_all(void **state) {
    (void)state;
    assert_int_equal(dp_plan_join(0, 3, 64), 0);
    assert_int_equal(dp_plan_join(10, 3, 64), 0);
    assert_int_equal(dp_plan_join(1000000, 40, 64), 0);
    assert_int_equal(dp_plan_join(1000000, 7, 8), 0);
    assert_int_equal(dp_plan_join(1000000, 1, 1), 0);
}

static void a_join_in_less_memory_takes_more_rounds(void **state) {
    (void)state;
    doppel_plan_options options = options_of(64, 0, "5c2x26");
    options.purpose = DOPPEL_FOR_JOIN;
    list(100000000, 3, &options);
    double whole = plans[0].memory, quick = plans[0].microseconds;
    options.memory = (uint64_t)(whole / 3);
    assert_int_equal(list(100000000, 3, &options), 2);
    assert_true(plans[0].fits && plans[0].memory <= whole / 3 && plans[0].microseconds > quick);
    assert_true(!plans[1].fits && plans[1].memory == whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_classic_reductions_are_printed),
        cmocka_unit_test(a_reduction_stands_only_where_exact_keys_do),
        cmocka_unit_test(bytes_are_those_of_the_tables),
        cmocka_unit_test(probes_and_candidates_follow_from_the_radii),
        cmocka_unit_test(what_fits_comes_first),
        cmocka_unit_test(a_billion_fit_into_20_gigabytes),
        cmocka_unit_test(where_nothing_fits_the_smallest_comes_first),
        cmocka_unit_test(less_room_gives_the_first_plans),
        cmocka_unit_test(every_width_and_distance_has_a_plan),
        cmocka_unit_test(no_entries_and_one_are_planned),
        cmocka_unit_test(other_costs_give_another_choice),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(a_plan_widens_to_greater_and_smaller_distances),
        cmocka_unit_test(a_plan_may_be_widened_in_place),
        cmocka_unit_test(no_plan_widens_beyond_its_bits),
        cmocka_unit_test(a_run_keeps_to_its_bytes),
        cmocka_unit_test(a_run_with_too_few_bytes_takes_the_smallest),
        cmocka_unit_test(a_run_of_few_is_scanned),
        cmocka_unit_test(joins_go_by_blocks_that_must_agree),
        cmocka_unit_test(joins_of_few_or_of_far_compare_all),
        cmocka_unit_test(a_join_in_less_memory_takes_more_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
