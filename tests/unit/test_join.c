/* test_join.c - the join of one set: rounds in little memory, large keys, crowded buckets, stopping, errors. That it
 * gives what a double loop gives is tested in test_join_exact.c. */
#include "join_runs.h"

#include "hamming/hamming.h"

/* More than the least memory holds at once. */
enum { MANY = 200000, FEWER = MANY / SMALLER, SECRET = 77 };

/* What a join gave, in short: counts, and a sum that depends on every pair and on the order. */
typedef struct result {
    doppel_status status;
    doppel_error error;
    doppel_join_counts counts;
    uint64_t sum;
} result;

static doppel_status add_to_sum(const doppel_pair *pairs, size_t count, void *user) {
    result *r = user;
    for (size_t i = 0; i < count; i++)
        r->sum = (r->sum ^ pairs[i].a << 32 ^ pairs[i].b ^ (uint64_t)pairs[i].distance << 28) * 0x9E3779B97F4A7C15u + 1;
    return DOPPEL_OK;
}

static result join(const fingerprints *set, const join_run *run) {
    rest left;
    result r = {.status = DOPPEL_OK};
    doppel_source source = source_of(set, run->source, &left);
    doppel_join_options options = options_of(run, set->bits, NULL);
    options.pairs = add_to_sum;
    options.user = &r;
    r.status = doppel_join(&source, run->distance, &options, &r.counts, &r.error);
    return r;
}

static void check_same(const result *a, const result *b) {
    assert_int_equal(a->status, DOPPEL_OK);
    assert_int_equal(b->status, DOPPEL_OK);
    assert_int_equal(a->counts.pairs, b->counts.pairs);
    assert_int_equal(a->counts.copies, b->counts.copies);
    assert_int_equal(a->counts.groups, b->counts.groups);
    assert_int_equal(a->counts.all_pairs, b->counts.all_pairs);
    assert_int_equal(a->sum, b->sum);
}

/* The least memory that a join asks for, in bytes. */
static uint64_t least_memory(const fingerprints *set, join_run run) {
    run.memory = 1;
    result r = join(set, &run);
    assert_int_equal(r.status, DOPPEL_ERROR_USAGE);
    const char *number = strpbrk(r.error.message, "0123456789");
    assert_non_null(number);
    return strtoull(number, NULL, 10) << 20;
}

/* Random ones, of which one in 20 is near an earlier one or equals it. */
static fingerprints make_planted(int bits, size_t count) {
    uint64_t seed = 1;
    fingerprints set = make_prints(&shapes[0], bits, count, 2);
    for (size_t i = 20; i < count; i += 20)
        make_near(&set, print_at(&set, i), print_at(&set, random_below(&seed, i)), random_below(&seed, 5), &seed);
    return set;
}

/* ---- memory ---- */

static void rounds_in_little_memory_give_the_same(void **state) {
    (void)state;
    for (int bits = 64; bits <= 128; bits += 64) {
        fingerprints set = make_planted(bits, FEWER);
        result one = join(&set, &(join_run){.distance = 3, .threads = 1});
        for (int threads = 1; threads <= 2; threads++) {
            join_run run = {.distance = 3, .threads = threads, .source = threads == 1 ? FROM_FILE : FROM_CALLBACK};
            run.memory = least_memory(&set, run);
            result rounds = join(&set, &run);
            check_same(&one, &rounds);
        }
        free_prints(&set);
    }
}

/* All in one key, more than memory holds: but only one of them stays. */
/* What comes only once is held in memory, or in a file where it takes too much of it. */
static void a_callback_is_held_while_memory_allows(void **state) {
    (void)state;
    for (int bits = 64; bits <= 128; bits += 64)
        for (size_t count = MANY / 4; count <= MANY; count += SMALLER > 1 ? 3 * MANY / 4 : MANY / 4) {
            fingerprints set = make_planted(bits, count);
            join_run run = {.distance = 3, .threads = 1, .secret = SECRET};
            result array = join(&set, &run);
            run.source = FROM_CALLBACK;
            result held = join(&set, &run);
            check_same(&array, &held);
            assert_int_equal(held.counts.spilled_bytes, 0);
            run.memory = least_memory(&set, run);
            result kept = join(&set, &run);
            check_same(&array, &kept);
            assert_true(count < MANY || kept.counts.spilled_bytes >= count * set.words * 8);
            free_prints(&set);
        }
}

static void many_equal_ones_need_no_memory(void **state) {
    (void)state;
    fingerprints set = make_prints(&shapes[4], 64, MANY, 3);
    join_run run = {.distance = 3, .threads = 2};
    run.memory = least_memory(&set, run);
    result r = join(&set, &run);
    assert_int_equal(r.status, DOPPEL_OK);
    assert_int_equal(r.counts.pairs, MANY - 1);
    assert_int_equal(r.counts.copies, MANY - 1);
    assert_int_equal(r.counts.groups, 1);
    assert_int_equal(r.counts.all_pairs, (uint64_t)MANY * (MANY - 1) / 2);
    free_prints(&set);
}

/* Whoever knows the secret can put all into one key: there they have to be held together. */
static fingerprints make_one_key(size_t count) {
    uint64_t seed = 4;
    dp_order order;
    dp_order_init(&order, 64, SECRET);
    fingerprints set = make_planted(64, count);
    for (size_t i = 0; i < count; i++)
        set.values[i] = (uint64_t)dp_order_undo(&order, random_next(&seed) >> 13);
    return set;
}

static void a_key_that_does_not_fit_is_refused_with_what_it_needs(void **state) {
    (void)state;
    fingerprints set = make_one_key(MANY);
    join_run run = {.distance = 3, .threads = 1, .secret = SECRET};
    run.memory = least_memory(&set, run);
    result refused = join(&set, &run);
    assert_int_equal(refused.status, DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(refused.error.message, "MiB would do"));
    free_prints(&set);
}

/* Nearly all in one key, but few of them differ. */
static void a_key_that_is_larger_than_a_round_is_taken_alone(void **state) {
    (void)state;
    enum { DIFFERENT = 1000, COUNT = 2 * FEWER };
    fingerprints set = make_one_key(COUNT), rest_of_them = make_planted(64, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        set.values[i] = i % 16 == 15 ? rest_of_them.values[i] : set.values[i % DIFFERENT];
    result other = join(&set, &(join_run){.distance = 3, .threads = 2, .secret = 5});
    join_run run = {.distance = 3, .threads = 2, .secret = SECRET};
    run.memory = least_memory(&set, run);
    result alone = join(&set, &run);
    check_same(&other, &alone);
    free_prints(&set);
    free_prints(&rest_of_them);
}

/* ---- what the data look like ---- */

/* A group of near ones fills its buckets many times over. They are found among many as they are found alone. */
static void large_groups_of_near_ones_are_found_whole(void **state) {
    (void)state;
    enum { GROUP = 500 / SMALLER, AMONG = 100 * GROUP };
    for (int bits = 64; bits <= 128; bits += 64) {
        fingerprints set = make_prints(&shapes[0], bits, AMONG, 5), group = make_prints(&shapes[0], bits, GROUP, 6);
        uint64_t seed = 7;
        for (size_t i = 1; i < GROUP; i++)
            make_near(&group, print_at(&group, i), group.values, 3, &seed);
        for (size_t i = 0; i < GROUP; i++)
            memcpy(print_at(&set, i * 100), print_at(&group, i), group.words * 8);
        for (int k = 1; k <= 6; k++) {
            pair_list want = plain_pairs(&group, k);
            result r = join(&set, &(join_run){.distance = k, .threads = 2});
            assert_int_equal(r.status, DOPPEL_OK);
            assert_int_equal(r.counts.all_pairs, want.count);
            free_pairs(&want);
        }
        free_prints(&set);
        free_prints(&group);
    }
}

static void all_gives_as_many_pairs_as_are_counted(void **state) {
    (void)state;
    fingerprints set = make_planted(64, 30000);
    for (size_t i = 0; i < 3000; i++)
        set.values[i * 7] = set.values[i % 10];
    result counted = join(&set, &(join_run){.distance = 3, .threads = 2});
    result given = join(&set, &(join_run){.distance = 3, .threads = 2, .all = true});
    assert_int_equal(given.status, DOPPEL_OK);
    assert_true(counted.counts.pairs < counted.counts.all_pairs);
    assert_int_equal(given.counts.pairs, counted.counts.all_pairs);
    assert_int_equal(given.counts.all_pairs, counted.counts.all_pairs);
    free_prints(&set);
}

static void candidates_are_few_on_random_data(void **state) {
    (void)state;
    fingerprints set = make_prints(&shapes[0], 64, 200000, 8);
    result r = join(&set, &(join_run){.distance = 3, .threads = 1});
    assert_true(r.counts.candidates < set.count * 60);
    free_prints(&set);
}

/* ---- stopping and progress ---- */

typedef struct watch {
    uint64_t told, total;
    int calls;
    volatile int stop;
    uint64_t stop_at; /* per cent */
} watch;

static void look(uint64_t done, uint64_t total, void *user) {
    watch *w = user;
    assert_true(done >= w->told && done <= total);
    assert_true(w->total == 0 || w->total == total);
    w->told = done;
    w->total = total;
    w->calls++;
    if (done >= total / 100 * w->stop_at)
        __atomic_store_n(&w->stop, 1, __ATOMIC_RELAXED);
}

static doppel_status run_watched(const fingerprints *set, watch *w, int distance, int threads) {
    doppel_source source = {.size = sizeof source, .array = set->values, .count = set->count};
    doppel_join_options options = {
        .size = sizeof options, .threads = threads, .count_only = true, .progress = look, .user = w, .stop = &w->stop};
    return doppel_join(&source, distance, &options, NULL, NULL);
}

static void progress_grows_to_the_end(void **state) {
    (void)state;
    fingerprints set = make_planted(64, 100000);
    for (int threads = 1; threads <= 2; threads++) {
        watch w = {.stop_at = 1000};
        assert_int_equal(run_watched(&set, &w, 3, threads), DOPPEL_OK);
        assert_true(w.calls > 10);
        assert_int_equal(w.told, w.total);
    }
    set.count = 3000;
    watch w = {.stop_at = 1000};
    assert_int_equal(run_watched(&set, &w, 30, 1), DOPPEL_OK); /* all with all */
    assert_int_equal(w.told, w.total);
    free_prints(&set);
}

static void stop_ends_it_anywhere(void **state) {
    (void)state;
    fingerprints set = make_planted(64, 100000);
    for (uint64_t at = 0; at < 90; at += 20) {
        watch w = {.stop_at = at};
        assert_int_equal(run_watched(&set, &w, 3, 2), DOPPEL_ERROR_INTERRUPTED);
    }
    free_prints(&set);
}

static doppel_status refuse(const doppel_pair *pairs, size_t count, void *user) {
    (void)pairs;
    (void)count;
    ++*(int *)user;
    return DOPPEL_ERROR_STORE;
}

static void what_the_callback_returns_ends_it(void **state) {
    (void)state;
    fingerprints set = make_planted(64, 50000);
    for (int all = 0; all < 2; all++) {
        int calls = 0;
        doppel_source source = {.size = sizeof source, .array = set.values, .count = set.count};
        doppel_join_options options = {.size = sizeof options, .all = all, .pairs = refuse, .user = &calls};
        assert_int_equal(doppel_join(&source, 3, &options, NULL, NULL), DOPPEL_ERROR_STORE);
        assert_int_equal(calls, 1);
    }
    free_prints(&set);
}

/* ---- errors ---- */

static void distances_that_cannot_be_are_refused(void **state) {
    (void)state;
    fingerprints set = make_prints(&shapes[0], 64, 10, 1);
    assert_int_equal(join(&set, &(join_run){.distance = -1}).status, DOPPEL_ERROR_USAGE);
    assert_int_equal(join(&set, &(join_run){.distance = 65}).status, DOPPEL_ERROR_USAGE);
    set.bits = 65;
    assert_int_equal(join(&set, &(join_run){.distance = 3}).status, DOPPEL_ERROR_USAGE);
    free_prints(&set);
}

static void bits_beyond_the_width_are_bad_input(void **state) {
    (void)state;
    fingerprints set = make_prints(&shapes[0], 20, 5000, 1);
    set.values[4321] |= 1 << 20;
    for (int source = 0; source < SOURCES; source++)
        for (int k = 0; k <= 20; k += 10)
            assert_int_equal(join(&set, &(join_run){.distance = k, .source = source}).status, DOPPEL_ERROR_INPUT);
    free_prints(&set);
}

static void without_options_it_counts(void **state) {
    (void)state;
    uint64_t numbers[] = {0, 0x78, 0x70, 0};
    doppel_source source = {.size = sizeof source, .array = numbers, .count = 4};
    doppel_join_counts counts;
    assert_int_equal(doppel_join(&source, 3, NULL, &counts, NULL), DOPPEL_OK);
    assert_int_equal(counts.fingerprints, 4);
    assert_int_equal(counts.copies, 1);
    assert_int_equal(counts.groups, 1);
    assert_int_equal(counts.pairs, 3);     /* 0-3, 0-2, 1-2 */
    assert_int_equal(counts.all_pairs, 4); /* and 2-3 */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_in_little_memory_give_the_same),
        cmocka_unit_test(a_callback_is_held_while_memory_allows),
        cmocka_unit_test(many_equal_ones_need_no_memory),
        cmocka_unit_test(a_key_that_does_not_fit_is_refused_with_what_it_needs),
        cmocka_unit_test(a_key_that_is_larger_than_a_round_is_taken_alone),
        cmocka_unit_test(large_groups_of_near_ones_are_found_whole),
        cmocka_unit_test(all_gives_as_many_pairs_as_are_counted),
        cmocka_unit_test(candidates_are_few_on_random_data),
        cmocka_unit_test(progress_grows_to_the_end),
        cmocka_unit_test(stop_ends_it_anywhere),
        cmocka_unit_test(what_the_callback_returns_ends_it),
        cmocka_unit_test(distances_that_cannot_be_are_refused),
        cmocka_unit_test(bits_beyond_the_width_are_bad_input),
        cmocka_unit_test(without_options_it_counts),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
