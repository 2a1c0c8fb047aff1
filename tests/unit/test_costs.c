/* test_costs.c - the cost model: its arithmetic, and constants that are measured. */
#include "support.h"

#include "hamming/hamming.h"

static void a_ball_counts_what_is_within(void **state) {
    (void)state;
    assert_true(dp_ball(16, 0) == 1);
    assert_true(dp_ball(16, 1) == 17);
    assert_true(dp_ball(16, 2) == 137);
    assert_true(dp_ball(4, 9) == 16);
    assert_true(dp_ball(0, 3) == 1);
    assert_true(dp_ball(16, -1) == 0);
}

static void a_table_that_is_not_probed_costs_nothing(void **state) {
    (void)state;
    dp_layout layout;
    doppel_costs costs;
    doppel_costs_get(&costs);
    assert_int_equal(dp_layout_parse("4x16", 64, &layout, NULL), DOPPEL_OK);
    dp_effort effort = dp_effort_table(&(dp_question){&costs, 1000000, 3}, &layout, 0, -1);
    assert_true(effort.probes == 0 && effort.candidates == 0 && effort.nanoseconds == 0);
}

static void a_greater_radius_costs_more(void **state) {
    (void)state;
    dp_layout layout;
    doppel_costs costs;
    doppel_costs_get(&costs);
    assert_int_equal(dp_layout_parse("4x16", 64, &layout, NULL), DOPPEL_OK);
    dp_question question = {&costs, 1000000, 16};
    for (int radius = 0; radius < 16; radius++)
        assert_true(dp_effort_table(&question, &layout, 0, radius).nanoseconds <
                    dp_effort_table(&question, &layout, 0, radius + 1).nanoseconds);
}

/* In little memory, so that it takes a second: the constants are rough, but they are there. */
static void constants_can_be_measured(void **state) {
    (void)state;
    doppel_costs costs = {0};
    assert_int_equal(doppel_costs_measure(1 << 20, &costs, NULL), DOPPEL_OK);
    assert_int_equal(costs.size, sizeof costs);
    const double all[] = {costs.probe_cached, costs.probe, costs.candidate, costs.query,
                          costs.move,         costs.place, costs.pair};
    for (int i = 0; i < 7; i++)
        assert_true(all[i] > 0 && all[i] < 1e6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ball_counts_what_is_within),
        cmocka_unit_test(a_table_that_is_not_probed_costs_nothing),
        cmocka_unit_test(a_greater_radius_costs_more),
        cmocka_unit_test(constants_can_be_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
