/* test_join_two_exact.c - a join of two sets gives what a double loop gives, pair for pair. */
#include "join_runs.h"

/* Half of the second set is near the first one, at all distances. */
static fingerprints make_second(const set_shape *shape, const fingerprints *set, size_t count, uint64_t seed) {
    fingerprints second = make_prints(shape, set->bits, count, seed);
    for (size_t i = 0; i < second.count; i += 2)
        make_near(&second, print_at(&second, i), print_at(set, random_below(&seed, set->count)),
                  random_below(&seed, 1 + random_below(&seed, (size_t)set->bits / 3 + 1)), &seed);
    return second;
}

static void check_between(const fingerprints *a, const fingerprints *b, const pair_list *want, const join_run *run) {
    rest left_a, left_b;
    pair_list found = {0};
    doppel_source source_a = source_of(a, run->source == FROM_FILE ? FROM_ARRAY : FROM_FILE, &left_a);
    doppel_source source_b = source_of(b, run->source, &left_b);
    doppel_join_options options = options_of(run, a->bits, &found);
    doppel_join_counts counts = {0};
    doppel_error error = {0};
    if (doppel_join_two(&source_a, &source_b, run->distance, &options, &counts, &error))
        fail_msg("%d bits, within %d: %s", a->bits, run->distance, error.message);
    size_t at = 0;
    for (size_t i = 0; i < want->count; i++) {
        if (want->pairs[i].distance > run->distance)
            continue;
        assert_true(at < found.count);
        assert_int_equal(found.pairs[at].b, want->pairs[i].b);
        assert_int_equal(found.pairs[at].a, want->pairs[i].a);
        assert_int_equal(found.pairs[at].distance, want->pairs[i].distance);
        at++;
    }
    assert_int_equal(at, found.count);
    assert_int_equal(counts.pairs, at);
    assert_int_equal(counts.fingerprints, b->count);
    free_pairs(&found);
}

static void check_between_shapes(int bits, size_t count_a, size_t count_b, int step) {
    for (size_t s = 0; s < SHAPES; s++) {
        size_t less = shapes[s].dense ? 8 : 1;
        fingerprints a = make_prints(&shapes[s], bits, count_a / less, 1);
        fingerprints b = make_second(&shapes[s], &a, count_b / less, 2);
        pair_list want = plain_pairs_between(&a, &b, most_distance(bits));
        for (int k = 0; k <= most_distance(bits); k += step)
            check_between(&a, &b, &want,
                          &(join_run){.distance = k, .threads = 1 + k / step % 2, .source = k / step % SOURCES});
        free_pairs(&want);
        free_prints(&a);
        free_prints(&b);
    }
}

static void every_distance_between_two_sets(void **state) {
    (void)state;
    check_between_shapes(64, full_suite() ? 20000 : 700, full_suite() ? 100000 : 1500, 1);
    check_between_shapes(128, full_suite() ? 20000 : 700, full_suite() ? 100000 : 1500, full_suite() ? 1 : 3);
}

static void odd_widths_between_two_sets(void **state) {
    (void)state;
    static const int widths[] = {1, 7, 16, 33, 63};
    for (size_t i = 0; i < 5; i++)
        check_between_shapes(widths[i], widths[i] < 20 ? 100 : 400, widths[i] < 20 ? 150 : 600, widths[i] < 20 ? 1 : 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_distance_between_two_sets),
        cmocka_unit_test(odd_widths_between_two_sets),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
