/* test_index_levels.c - when runs are merged: as many as an index can have, what comes, and the head, all at once. */
#include "support.h"

#include "hamming/index.h"

/* A run of one entry, with its tables. */
static dp_run *make_run(const doppel_index *index, uint64_t number) {
    uint64_t item[] = {number, number};
    dp_items items = {.item = item, .count = 1, .bits = 64};
    dp_run *run;
    assert_int_equal(dp_run_from_items(&items, &run), DOPPEL_OK);
    assert_int_equal(dp_index_build(index, run, NULL), DOPPEL_OK);
    return run;
}

/* As a file may have them: an index itself merges long before. */
static doppel_index *make_full_index(void) {
    doppel_index_options options = {.size = sizeof options, .bits = 64, .distance = 3, .secret = 9};
    doppel_index *plain, *full;
    dp_run *runs[DP_MAX_RUNS];
    assert_int_equal(doppel_index_create(&options, &plain, NULL), DOPPEL_OK);
    for (int i = 0; i < DP_MAX_RUNS; i++)
        runs[i] = make_run(plain, (uint64_t)i * 0x10001);
    assert_int_equal(dp_index_create(&options, runs, DP_MAX_RUNS, &full), DOPPEL_OK);
    doppel_index_free(plain);
    return full;
}

static void all_runs_the_head_and_what_comes_are_merged(void **state) {
    (void)state;
    enum { MANY = DP_HEAD_ROOM };
    static uint64_t numbers[MANY];
    doppel_index *index = make_full_index();
    uint64_t seed = 4;
    for (size_t i = 0; i < MANY; i++)
        numbers[i] = random_next(&seed);
    uint64_t one = 1;
    assert_int_equal(doppel_index_add(index, &one, 1, 0), DOPPEL_OK);
    assert_int_equal(doppel_index_add_batch(index, numbers, NULL, NULL, MANY), DOPPEL_OK);
    doppel_index_stats stats;
    doppel_error reason = {0};
    doppel_index_get_stats(index, &stats);
    assert_int_equal(stats.runs, 1);
    assert_int_equal(stats.entries, DP_MAX_RUNS + 1 + MANY);
    if (doppel_index_validate(index, &reason))
        fail_msg("%s", reason.message);
    doppel_index_free(index);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_runs_the_head_and_what_comes_are_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
