/* test_two_sets.c - prefilters of any shape, squeezed or not, whole or in slices, with tables inside of their
 * parts: what passes and is looked up in the parts that let it pass is what a double loop finds, each pair once. The
 * file is included as a whole: the planner gives such shapes to large sets only. */
#include "join/two_sets.c"

#include "join_runs.h"

/* A cut into `parts` parts, with keys of `bits` bits. */
typedef struct filter_cut {
    int distance, parts, bits, squeeze, slice_bits;
    int key_bits; /* of the tables; 0: as planned */
} filter_cut;

static void cut_filter(prefilter *filter, const resident_set *set, const filter_cut *c) {
    int width = set->bits / c->parts, sum = c->distance - c->parts + 1;
    *filter = (prefilter){.words = set->words, .parts = c->parts, .sliced = c->slice_bits > 0, .nested = true};
    for (int i = 0; i < c->parts; i++) {
        int radius = sum / c->parts + (i < sum % c->parts), bits = c->bits < width ? c->bits : width;
        int from = i * width + width - bits;
        filter->found[i] = (resident_part){.from = i * width, .width = width, .radius = radius};
        plan_part(set, &filter->found[i]);
        if (c->key_bits)
            filter->found[i].key_bits = c->key_bits;
        filter->part[i] = (filter_part){
            .word = from / 64, .shift = from % 64, .bits = bits, .squeeze = c->squeeze, .slice_bits = c->slice_bits};
        filter->part[i].radius = radius < bits ? radius : bits;
    }
}

static void hold(resident_set *set, const fingerprints *a, int distance) {
    doppel_source source = {.size = sizeof source, .array = a->values, .count = a->count};
    resident_options options = {.distance = distance, .threads = 1, .memory = 1 << 30, .secret = 7};
    dp_fingerprints numbers;
    assert_int_equal(dp_fingerprints_open(&numbers, &source, a->bits, NULL), DOPPEL_OK);
    assert_int_equal(resident_build(set, &numbers, &options, NULL), DOPPEL_OK);
    dp_fingerprints_close(&numbers);
}

/* Looks one up that passed the maps of some parts, and marks what is found; gives how many pairs. */
static size_t find_one(resident_finder *finder, const uint64_t *value, uint8_t parts, bool *found) {
    const resident_set *set = finder->set;
    size_t pairs = 0;
    assert_true(finder_run(finder, value, &parts, 1));
    for (size_t i = 0; i < finder->hit_count; i++)
        for (uint32_t at = set->starts[finder->hits[i].id]; at < set->starts[finder->hits[i].id + 1]; at++) {
            assert_false(found[set->positions[at]]);
            found[set->positions[at]] = true;
            pairs++;
        }
    return pairs;
}

static void check_all(filter_batch *batch, resident_finder *finder, const fingerprints *a, const fingerprints *b) {
    int distance = finder->set->distance;
    for (size_t j = 0; j < b->count; j++) {
        bool *found = calloc(a->count, 1);
        size_t pairs = 0, want = 0;
        unsigned parts = 0;
        for (int i = 0; i < batch->filter->parts; i++)
            parts |= (unsigned)(batch->passed[i][j / 64] >> j % 64 & 1) << i;
        if (parts)
            pairs = find_one(finder, batch->values + j * a->words, (uint8_t)parts, found);
        for (size_t i = 0; i < a->count; i++)
            if (plain_distance(print_at(a, i), print_at(b, j), a->words) <= distance) {
                assert_true(found[i]);
                want++;
            }
        assert_int_equal(pairs, want);
        free(found);
    }
}

static void check_cut(const fingerprints *a, const fingerprints *b, const filter_cut *c) {
    resident_set set;
    prefilter filter;
    filter_batch batch;
    resident_finder *finder = malloc(sizeof *finder);
    hold(&set, a, c->distance);
    cut_filter(&filter, &set, c);
    filter.batch = b->count;
    use_parts(&set, filter.found, filter.parts);
    assert_true(all_table_bytes(&set) <= parts_bytes(&set, filter.found, filter.parts));
    assert_true(resident_fill(&set, 2));
    assert_true(prefilter_build(&filter, &set, 2));
    assert_true(filter_batch_init(&batch, &filter));
    assert_true(finder && finder_init(finder, &set));
    filter_batch_clear(&batch);
    dp_order_apply_many(&set.order, b->values, b->count, batch.values);
    filter_batch_added(&batch, b->count);
    filter_batch_run(&batch);
    check_all(&batch, finder, a, b);
    finder_free(finder);
    filter_batch_free(&batch);
    prefilter_free(&filter);
    resident_free(&set);
    free(finder);
}

/* Half of the second set is near the first one. */
static void check_cuts(int bits, const filter_cut *cuts, size_t count) {
    for (size_t s = 0; s < SHAPES; s++) {
        uint64_t seed = 3;
        fingerprints a = make_prints(&shapes[s], bits, 300, 1), b = make_prints(&shapes[s], bits, 400, 2);
        for (size_t i = 0; i < b.count; i += 2)
            make_near(&b, print_at(&b, i), print_at(&a, random_below(&seed, a.count)), random_below(&seed, 12), &seed);
        for (size_t i = 0; i < count; i++)
            check_cut(&a, &b, &cuts[i]);
        free_prints(&a);
        free_prints(&b);
    }
}

static void maps_with_a_bit_a_key(void **state) {
    (void)state;
    static const filter_cut cuts[] = {{.distance = 0, .parts = 1, .bits = 12},
                                      {.distance = 3, .parts = 2, .bits = 14},
                                      {.distance = 3, .parts = 4, .bits = 16, .slice_bits = 3},
                                      {.distance = 5, .parts = 3, .bits = 16, .slice_bits = 2, .key_bits = 3},
                                      {.distance = 9, .parts = 4, .bits = 14}};
    check_cuts(64, cuts, 5);
    check_cuts(33, cuts + 1, 1);
    check_cuts(16, cuts + 1, 4);
    check_cuts(128, cuts, 3);
}

static void squeezed_maps(void **state) {
    (void)state;
    static const filter_cut cuts[] = {
        {.distance = 0, .parts = 1, .bits = 22, .squeeze = 4},
        {.distance = 3, .parts = 2, .bits = 18, .squeeze = 3},
        {.distance = 3, .parts = 2, .bits = 24, .squeeze = 3, .slice_bits = 4, .key_bits = 9},
        {.distance = 4, .parts = 2, .bits = 16, .squeeze = 1, .slice_bits = 2},
        {.distance = 7, .parts = 4, .bits = 16, .squeeze = 2, .slice_bits = 1, .key_bits = 1}};
    check_cuts(64, cuts, 5);
    check_cuts(128, cuts, 5);
    check_cuts(48, cuts, 4);
}

static bool is_near_any(const fingerprints *a, const uint64_t *value, int distance) {
    for (size_t i = 0; i < a->count; i++)
        if (plain_distance(print_at(a, i), value, a->words) <= distance)
            return true;
    return false;
}

static void slices_reject_most_and_lose_nothing(void **state) {
    (void)state;
    uint64_t seed = 24;
    size_t passed = 0;
    fingerprints a = make_prints(&shapes[0], 64, 3000, 22), b = make_prints(&shapes[0], 64, 100000, 23);
    for (size_t i = 0; i < b.count; i += 3)
        make_near(&b, print_at(&b, i), print_at(&a, random_below(&seed, a.count)), random_below(&seed, 6), &seed);
    resident_set set;
    filter_batch batch;
    prefilter filter = {.words = 1, .parts = 2, .sliced = true, .batch = b.count};
    hold(&set, &a, 3);
    for (int i = 0; i < 2; i++)
        filter.part[i] = (filter_part){.shift = 32 * i + 6, .bits = 26, .radius = 1, .slice_bits = 4};
    assert_true(prefilter_build(&filter, &set, 2));
    assert_true(filter_batch_init(&batch, &filter));
    filter_batch_clear(&batch);
    dp_order_apply_many(&set.order, b.values, b.count, batch.values);
    filter_batch_added(&batch, b.count);
    filter_batch_run(&batch);
    for (size_t j = 0; j < b.count; j++) {
        bool passes = (batch.passed[0][j / 64] | batch.passed[1][j / 64]) >> j % 64 & 1;
        assert_true(passes || !is_near_any(&a, print_at(&b, j), 3));
        passed += passes;
    }
    assert_true(passed < b.count / 2);
    filter_batch_free(&batch);
    prefilter_free(&filter);
    resident_free(&set);
    free_prints(&a);
    free_prints(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_with_a_bit_a_key),
        cmocka_unit_test(squeezed_maps),
        cmocka_unit_test(slices_reject_most_and_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
