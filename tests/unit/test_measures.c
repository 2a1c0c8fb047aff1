/* test_measures.c - sets, signatures, term vectors, fingerprints: values, edges, kernels, the axioms of a metric. */
#include "support.h"

#include "doppel.h"
#include "kernel/kernel.h"

#include <math.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- sets ---- */

static void jaccard_of_two_small_sets(void **state) {
    (void)state;
    const uint64_t a[] = {0, 1, 2, 5, 6}, b[] = {0, 2, 3, 5, 7, 9};
    assert_int_equal(doppel_set_shared(a, COUNT(a), b, COUNT(b)), 3);
    assert_true(doppel_jaccard(a, COUNT(a), b, COUNT(b)) == 3.0 / 8.0);
}

/* Every number stands for its whole cluster: A covers {0,1,2} {5,6}, B covers all four. */
static size_t expand(const uint64_t *set, size_t count, uint64_t *all) {
    const uint64_t cluster_of[10] = {0, 0, 0, 1, 1, 2, 2, 3, 3, 3};
    size_t filled = 0;
    for (uint64_t number = 0; number < 10; number++) {
        bool covered = false;
        for (size_t i = 0; i < count; i++)
            covered |= cluster_of[set[i]] == cluster_of[number];
        if (covered)
            all[filled++] = number;
    }
    return filled;
}

static void jaccard_after_mapping_to_clusters(void **state) {
    (void)state;
    const uint64_t a[] = {0, 1, 2, 5, 6}, b[] = {0, 2, 3, 5, 7, 9};
    uint64_t all_a[10], all_b[10];
    size_t a_count = expand(a, COUNT(a), all_a), b_count = expand(b, COUNT(b), all_b);
    assert_int_equal(a_count, 5);
    assert_int_equal(b_count, 10);
    assert_true(doppel_jaccard(all_a, a_count, all_b, b_count) == 5.0 / 10.0);
}

static void empty_sets(void **state) {
    (void)state;
    const uint64_t a[] = {7};
    assert_true(doppel_jaccard(NULL, 0, NULL, 0) == 1);
    assert_true(doppel_jaccard(a, 1, NULL, 0) == 0);
    assert_true(doppel_containment(NULL, 0, a, 1) == 1);
    assert_true(doppel_containment(a, 1, NULL, 0) == 0);
    assert_int_equal(doppel_set_shared(NULL, 0, a, 1), 0);
}

static void containment_is_the_share_of_the_first(void **state) {
    (void)state;
    const uint64_t a[] = {1, 2, 3, 4}, b[] = {2, 3, 10};
    assert_true(doppel_containment(a, 4, b, 3) == 0.5);
    assert_true(doppel_containment(b, 3, a, 4) == 2.0 / 3.0);
}

/* `count` distinct ascending numbers with gaps of at most `gap`. */
static void random_set(uint64_t *seed, uint64_t *set, size_t count, size_t gap) {
    uint64_t last = random_below(seed, gap);
    for (size_t i = 0; i < count; i++) {
        set[i] = last;
        last += 1 + random_below(seed, gap);
    }
}

/* By looking up each number on its own. */
static size_t plain_shared(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count) {
    size_t shared = 0;
    for (size_t i = 0; i < a_count; i++)
        for (size_t j = 0; j < b_count; j++)
            shared += a[i] == b[j];
    return shared;
}

static void shared_counts_for_all_sizes_and_ratios(void **state) {
    (void)state;
    uint64_t seed = 1, a[40], b[3000];
    for (int round = 0; round < 400; round++) {
        size_t a_count = random_below(&seed, COUNT(a) + 1), b_count = random_below(&seed, COUNT(b) + 1);
        random_set(&seed, a, a_count, 1 + b_count / 10);
        random_set(&seed, b, b_count, 1 + random_below(&seed, 4));
        size_t want = plain_shared(a, a_count, b, b_count);
        assert_int_equal(doppel_set_shared(a, a_count, b, b_count), want);
        assert_int_equal(doppel_set_shared(b, b_count, a, a_count), want);
    }
}

static void shared_finds_the_last_and_the_largest_number(void **state) {
    (void)state;
    uint64_t large[1000], last[1] = {UINT64_MAX};
    for (size_t i = 0; i < 1000; i++)
        large[i] = i < 999 ? i * 2 : UINT64_MAX;
    assert_int_equal(doppel_set_shared(last, 1, large, 1000), 1);
    last[0] = UINT64_MAX - 1;
    assert_int_equal(doppel_set_shared(last, 1, large, 1000), 0);
}

static void every_shared_kernel_is_the_portable_one(void **state) {
    (void)state;
    uint64_t seed = 2, a[130], b[130];
    guarded room_a = guarded_create(sizeof a), room_b = guarded_create(sizeof b);
    for (int round = 0; round < 3000; round++) {
        size_t a_count = random_below(&seed, COUNT(a) + 1), b_count = random_below(&seed, COUNT(b) + 1);
        random_set(&seed, a, a_count, 1 + random_below(&seed, 4));
        random_set(&seed, b, b_count, 1 + random_below(&seed, 4));
        const uint64_t *at_a = guarded_copy(room_a, a, a_count * 8), *at_b = guarded_copy(room_b, b, b_count * 8);
        size_t want = plain_shared(a, a_count, b, b_count);
        for (const dp_shared_variant *variant = dp_shared_variants;; variant++) {
            if (variant->needs <= dp_cpu_best())
                assert_int_equal(variant->run(at_a, a_count, at_b, b_count), want);
            if (!variant->needs)
                break;
        }
    }
    guarded_free(room_a);
    guarded_free(room_b);
}

/* ---- signatures ---- */

static void signature_measures(void **state) {
    (void)state;
    const uint32_t a[] = {1, 2, 3, 4}, b[] = {1, 2, 3, 5};
    assert_true(doppel_signature_jaccard(a, b, 4) == 0.75);
    assert_true(doppel_signature_jaccard(a, b, 0) == 1);
    /* J = 0.75 of 70 and 70: 60 shared. */
    assert_true(fabs(doppel_signature_containment(a, 70, b, 70, 4) - 60.0 / 70.0) < 1e-12);
    assert_true(doppel_signature_containment(a, 0, b, 70, 4) == 1);
    /* Never more than the smaller set has. */
    assert_true(doppel_signature_containment(a, 100, b, 10, 4) == 0.1);
    assert_true(doppel_signature_containment(b, 10, a, 100, 4) == 1);
}

/* ---- fingerprints ---- */

static void published_fingerprints_are_4_16_and_12_apart(void **state) {
    (void)state;
    assert_int_equal(doppel_distance(851459198, 847263864), 4);
    assert_int_equal(doppel_distance(851459198, 984968088), 16);
    assert_int_equal(doppel_distance(847263864, 984968088), 12);
}

static void distance_of_all_bits(void **state) {
    (void)state;
    const uint64_t none[2] = {0, 0}, all[2] = {UINT64_MAX, UINT64_MAX}, high[2] = {0, UINT64_MAX};
    assert_int_equal(doppel_distance(0, UINT64_MAX), 64);
    assert_int_equal(doppel_distance128(none, all), 128);
    assert_int_equal(doppel_distance128(none, high), 64);
}

/* ---- term vectors ---- */

static void terms_are_sorted_and_counted(void **state) {
    (void)state;
    const uint64_t hashes[] = {9, 3, 9, UINT64_MAX, 3, 9, 0};
    doppel_term terms[COUNT(hashes)];
    assert_int_equal(doppel_terms(hashes, COUNT(hashes), terms), 4);
    const doppel_term want[] = {{0, 1}, {3, 2}, {9, 3}, {UINT64_MAX, 1}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(terms[i].term, want[i].term);
        assert_true(terms[i].weight == want[i].weight);
    }
    assert_int_equal(doppel_terms(NULL, 0, NULL), 0);
}

static void terms_of_many_random_hashes_add_up(void **state) {
    (void)state;
    uint64_t seed = 3;
    for (size_t count = 1; count < 3000; count += 1 + count / 7) {
        uint64_t *hashes = malloc(count * sizeof *hashes), kinds = 1 + random_below(&seed, 2 * count);
        doppel_term *terms = malloc(count * sizeof *terms);
        for (size_t i = 0; i < count; i++)
            hashes[i] = (random_next(&seed) % kinds) * 0x9E3779B97F4A7C15u;
        size_t filled = doppel_terms(hashes, count, terms);
        double sum = 0;
        for (size_t i = 0; i < filled; i++) {
            assert_true(!i || terms[i - 1].term < terms[i].term);
            size_t times = 0;
            for (size_t j = 0; j < count; j++)
                times += hashes[j] == terms[i].term;
            assert_true(terms[i].weight == (double)times);
            sum += terms[i].weight;
        }
        assert_true(sum == (double)count);
        free(hashes);
        free(terms);
    }
}

static void vectors_with_known_angles(void **state) {
    (void)state;
    const doppel_term x[] = {{1, 3}}, y[] = {{2, 4}}, both[] = {{1, 1}, {2, 1}};
    assert_true(doppel_cosine(x, 1, y, 1) == 0);
    assert_true(fabs(doppel_angle(x, 1, y, 1) - 90) < 1e-12);
    assert_true(fabs(doppel_angle(x, 1, both, 2) - 45) < 1e-12);
    assert_true(doppel_euclidean(x, 1, y, 1) == 5);
    assert_true(doppel_cosine(x, 1, x, 1) == 1);
    assert_true(doppel_angle(both, 2, both, 2) == 0);
}

static void empty_and_zero_vectors(void **state) {
    (void)state;
    const doppel_term x[] = {{1, 3}}, zero[] = {{1, 0}};
    assert_true(doppel_cosine(NULL, 0, NULL, 0) == 1);
    assert_true(doppel_cosine(x, 1, NULL, 0) == 0);
    assert_true(doppel_cosine(x, 1, zero, 1) == 0);
    assert_true(doppel_euclidean(x, 1, NULL, 0) == 3);
    assert_true(doppel_euclidean(NULL, 0, NULL, 0) == 0);
}

/* ---- the axioms of a metric: never negative, 0 for the same only, symmetric, no detour is shorter ---- */

static void hamming_is_a_metric(void **state) {
    (void)state;
    uint64_t seed = 4;
    for (int round = 0; round < 20000; round++) {
        uint64_t a = random_next(&seed), b = a ^ (random_next(&seed) & random_next(&seed)), c = random_next(&seed);
        assert_true(doppel_distance(a, b) >= 0);
        assert_true((doppel_distance(a, b) == 0) == (a == b));
        assert_int_equal(doppel_distance(a, a), 0);
        assert_int_equal(doppel_distance(a, b), doppel_distance(b, a));
        assert_true(doppel_distance(a, c) <= doppel_distance(a, b) + doppel_distance(b, c));
    }
}

static double jaccard_distance(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count) {
    return 1 - doppel_jaccard(a, a_count, b, b_count);
}

static void jaccard_distance_is_a_metric(void **state) {
    (void)state;
    uint64_t seed = 5, sets[3][12];
    for (int round = 0; round < 20000; round++) {
        size_t n[3];
        for (int i = 0; i < 3; i++) {
            n[i] = random_below(&seed, 13);
            random_set(&seed, sets[i], n[i], 2);
        }
        double ab = jaccard_distance(sets[0], n[0], sets[1], n[1]), ba = jaccard_distance(sets[1], n[1], sets[0], n[0]);
        double bc = jaccard_distance(sets[1], n[1], sets[2], n[2]), ac = jaccard_distance(sets[0], n[0], sets[2], n[2]);
        bool same = n[0] == n[1] && !memcmp(sets[0], sets[1], n[0] * sizeof **sets);
        assert_true(ab >= 0 && ab <= 1);
        assert_true((ab == 0) == same);
        assert_true(ab == ba);
        assert_true(ac <= ab + bc + 1e-15);
    }
}

/* Up to 6 terms with counts from 1 to 5. */
static size_t random_vector(uint64_t *seed, doppel_term *terms) {
    size_t count = 0;
    for (uint64_t term = 0; term < 6; term++)
        if (random_below(seed, 2))
            terms[count++] = (doppel_term){term, 1 + (double)random_below(seed, 5)};
    return count;
}

static bool same_vector(const doppel_term *a, size_t a_count, const doppel_term *b, size_t b_count) {
    bool same = a_count == b_count;
    for (size_t i = 0; same && i < a_count; i++)
        same = a[i].term == b[i].term && a[i].weight == b[i].weight;
    return same;
}

static void euclidean_is_a_metric(void **state) {
    (void)state;
    uint64_t seed = 6;
    for (int round = 0; round < 20000; round++) {
        doppel_term a[6], b[6], c[6];
        size_t na = random_vector(&seed, a), nb = random_vector(&seed, b), nc = random_vector(&seed, c);
        double ab = doppel_euclidean(a, na, b, nb), bc = doppel_euclidean(b, nb, c, nc);
        assert_true(ab >= 0);
        assert_true((ab == 0) == same_vector(a, na, b, nb));
        assert_true(ab == doppel_euclidean(b, nb, a, na));
        assert_true(doppel_euclidean(a, na, c, nc) <= ab + bc + 1e-12);
    }
}

/* Of directions: a vector and its multiple are the same. The arc cosine is good to about 1e-6 degrees near 0. */
static void angle_is_a_metric_of_directions(void **state) {
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < 20000; round++) {
        doppel_term a[6], b[6], c[6], twice[6];
        size_t na = random_vector(&seed, a), nb = random_vector(&seed, b), nc = random_vector(&seed, c);
        if (!na || !nb || !nc)
            continue;
        for (size_t i = 0; i < na; i++)
            twice[i] = (doppel_term){a[i].term, 2 * a[i].weight};
        double ab = doppel_angle(a, na, b, nb), bc = doppel_angle(b, nb, c, nc);
        assert_true(ab >= 0 && ab <= 90);
        assert_true(doppel_angle(a, na, a, na) == 0);
        assert_true(doppel_angle(a, na, twice, na) < 1e-5);
        assert_true(ab == doppel_angle(b, nb, a, na));
        assert_true(doppel_angle(a, na, c, nc) <= ab + bc + 1e-5);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jaccard_of_two_small_sets),
        cmocka_unit_test(jaccard_after_mapping_to_clusters),
        cmocka_unit_test(empty_sets),
        cmocka_unit_test(containment_is_the_share_of_the_first),
        cmocka_unit_test(shared_counts_for_all_sizes_and_ratios),
        cmocka_unit_test(shared_finds_the_last_and_the_largest_number),
        cmocka_unit_test(every_shared_kernel_is_the_portable_one),
        cmocka_unit_test(signature_measures),
        cmocka_unit_test(published_fingerprints_are_4_16_and_12_apart),
        cmocka_unit_test(distance_of_all_bits),
        cmocka_unit_test(terms_are_sorted_and_counted),
        cmocka_unit_test(terms_of_many_random_hashes_add_up),
        cmocka_unit_test(vectors_with_known_angles),
        cmocka_unit_test(empty_and_zero_vectors),
        cmocka_unit_test(hamming_is_a_metric),
        cmocka_unit_test(jaccard_distance_is_a_metric),
        cmocka_unit_test(euclidean_is_a_metric),
        cmocka_unit_test(angle_is_a_metric_of_directions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
