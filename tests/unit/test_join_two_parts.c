/* test_join_two_parts.c - sieves of any shape, squeezed or not, whole or in slices, with tables inside of their parts:
 * what passes and is looked up in the parts that let it pass is what a double loop finds, each pair once. */
#include "join_runs.h"

#include "index/sieve.h"

/* A cut into `parts` parts, with keys of `bits` bits. */
typedef struct cut {
    int distance, parts, bits, squeeze, slice_bits;
    int key_bits; /* of the tables; 0: as planned */
} cut;

static void cut_sieve(dp_sieve *sieve, const dp_held *held, const cut *c) {
    int width = held->bits / c->parts, sum = c->distance - c->parts + 1;
    *sieve = (dp_sieve){.words = held->words, .parts = c->parts, .sliced = c->slice_bits > 0, .nested = true};
    for (int i = 0; i < c->parts; i++) {
        int radius = sum / c->parts + (i < sum % c->parts), bits = c->bits < width ? c->bits : width;
        int from = i * width + width - bits;
        sieve->found[i] = (dp_held_part){.from = i * width, .width = width, .radius = radius};
        dp_held_plan_part(held, &sieve->found[i]);
        if (c->key_bits)
            sieve->found[i].key_bits = c->key_bits;
        sieve->part[i] = (dp_sieve_part){
            .word = from / 64, .shift = from % 64, .bits = bits, .squeeze = c->squeeze, .slice_bits = c->slice_bits};
        sieve->part[i].radius = radius < bits ? radius : bits;
    }
}

static void hold(dp_held *held, const fingerprints *a, int distance) {
    doppel_source source = {.size = sizeof source, .array = a->values, .count = a->count};
    dp_held_options options = {.distance = distance, .threads = 1, .memory = 1 << 30, .secret = 7};
    dp_feed feed;
    assert_int_equal(dp_feed_open(&feed, &source, a->bits, NULL), DOPPEL_OK);
    assert_int_equal(dp_held_build(held, &feed, &options, NULL), DOPPEL_OK);
    dp_feed_close(&feed);
}

/* Looks one up that passed the maps of some parts, and marks what is found; gives how many pairs. */
static size_t find_one(dp_held_finder *finder, const uint64_t *value, uint8_t parts, bool *found) {
    const dp_held *held = finder->held;
    size_t pairs = 0;
    assert_true(dp_held_finder_run(finder, value, &parts, 1));
    for (size_t i = 0; i < finder->hit_count; i++)
        for (uint32_t at = held->starts[finder->hits[i].id]; at < held->starts[finder->hits[i].id + 1]; at++) {
            assert_false(found[held->positions[at]]);
            found[held->positions[at]] = true;
            pairs++;
        }
    return pairs;
}

static void check_all(dp_sifter *sifter, dp_held_finder *finder, const fingerprints *a, const fingerprints *b) {
    int distance = finder->held->distance;
    for (size_t j = 0; j < b->count; j++) {
        bool *found = calloc(a->count, 1);
        size_t pairs = 0, want = 0;
        unsigned parts = 0;
        for (int i = 0; i < sifter->sieve->parts; i++)
            parts |= (unsigned)(sifter->passed[i][j / 64] >> j % 64 & 1) << i;
        if (parts)
            pairs = find_one(finder, sifter->values + j * a->words, (uint8_t)parts, found);
        for (size_t i = 0; i < a->count; i++)
            if (plain_distance(print_at(a, i), print_at(b, j), a->words) <= distance) {
                assert_true(found[i]);
                want++;
            }
        assert_int_equal(pairs, want);
        free(found);
    }
}

static void check_cut(const fingerprints *a, const fingerprints *b, const cut *c) {
    dp_held held;
    dp_sieve sieve;
    dp_sifter sifter;
    dp_held_finder *finder = malloc(sizeof *finder);
    hold(&held, a, c->distance);
    cut_sieve(&sieve, &held, c);
    sieve.batch = b->count;
    dp_held_use_parts(&held, sieve.found, sieve.parts);
    assert_true(dp_held_table_bytes(&held) <= dp_held_parts_bytes(&held, sieve.found, sieve.parts));
    assert_true(dp_held_fill(&held, 2));
    assert_true(dp_sieve_build(&sieve, &held, 2));
    assert_true(dp_sifter_init(&sifter, &sieve));
    assert_true(finder && dp_held_finder_init(finder, &held));
    dp_sifter_clear(&sifter);
    dp_order_apply_many(&held.order, b->values, b->count, sifter.values);
    dp_sifter_added(&sifter, b->count);
    dp_sifter_run(&sifter);
    check_all(&sifter, finder, a, b);
    dp_held_finder_free(finder);
    dp_sifter_free(&sifter);
    dp_sieve_free(&sieve);
    dp_held_free(&held);
    free(finder);
}

/* Half of the second set is near the first one. */
static void check_cuts(int bits, const cut *cuts, size_t count) {
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
    static const cut cuts[] = {{.distance = 0, .parts = 1, .bits = 12},
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
    static const cut cuts[] = {{.distance = 0, .parts = 1, .bits = 22, .squeeze = 4},
                               {.distance = 3, .parts = 2, .bits = 18, .squeeze = 3},
                               {.distance = 3, .parts = 2, .bits = 24, .squeeze = 3, .slice_bits = 4, .key_bits = 9},
                               {.distance = 4, .parts = 2, .bits = 16, .squeeze = 1, .slice_bits = 2},
                               {.distance = 7, .parts = 4, .bits = 16, .squeeze = 2, .slice_bits = 1, .key_bits = 1}};
    check_cuts(64, cuts, 5);
    check_cuts(128, cuts, 5);
    check_cuts(48, cuts, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_with_a_bit_a_key),
        cmocka_unit_test(squeezed_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
