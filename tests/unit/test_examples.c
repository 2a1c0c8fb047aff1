/* test_examples.c - worked examples from the literature on near-duplicates, unchanged. */
#include "doppel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* ---- helpers ---- */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A sketcher with its recipe. */
typedef struct maker {
    doppel_recipe *recipe;
    doppel_sketcher *sketcher;
} maker;

static maker make(const char *recipe, unsigned wants) {
    maker m = {0};
    assert_int_equal(doppel_recipe_parse(recipe, NULL, &m.recipe, NULL), DOPPEL_OK);
    assert_int_equal(doppel_sketcher_create(m.recipe, wants, &m.sketcher, NULL), DOPPEL_OK);
    return m;
}

static void unmake(maker m) {
    doppel_sketcher_free(m.sketcher);
    doppel_recipe_free(m.recipe);
}

static doppel_sketch sketch(maker m, const char *text) {
    doppel_sketch out;
    assert_int_equal(doppel_sketcher_run(m.sketcher, doppel_slice_of(text), &out), DOPPEL_OK);
    return out;
}

/* The features of `text` are `shingles`, in this order: each hash is that of the shingle as a string. */
static void assert_shingles(const char *recipe, const char *text, const char *const *shingles, size_t count) {
    maker m = make(recipe, DOPPEL_WANT_FEATURES);
    doppel_sketch out = sketch(m, text);
    assert_int_equal(out.features, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t hash;
        assert_int_equal(doppel_hash("xxh3", doppel_slice_of(shingles[i]), 0, &hash), DOPPEL_OK);
        assert_int_equal(out.feature_hashes[i], hash);
    }
    unmake(m);
}

/* ---- SimHash of four bits ---- */

/* The ten given word hashes, most significant bit first. */
static uint64_t fox_hash(doppel_slice bytes, uint64_t seed, void *user) {
    static const struct {
        const char *word;
        uint64_t hash;
    } given[] = {{"the", 13},  {"quick", 10}, {"brown", 9}, {"fox", 15}, {"jumps", 6},
                 {"over", 11}, {"lazy", 12},  {"dog", 5},   {"fast", 3}, {"a", 7}};
    (void)seed;
    (void)user;
    for (size_t i = 0; i < COUNT(given); i++)
        if (strlen(given[i].word) == bytes.length && memcmp(given[i].word, bytes.data, bytes.length) == 0)
            return given[i].hash;
    fail_msg("a word without a given hash");
    return 0;
}

/* A feature whose one byte is its hash. */
static uint64_t byte_hash(doppel_slice bytes, uint64_t seed, void *user) {
    (void)seed;
    (void)user;
    return (unsigned char)*bytes.data;
}

static uint64_t four_bits(const doppel_feature *features, size_t count, doppel_hash_function function,
                          int64_t sums[4]) {
    doppel_simhash_options options = {.size = sizeof(options), .bits = 4, .function = function, .sums = sums};
    uint64_t fingerprint[2];
    assert_int_equal(doppel_simhash(features, count, &options, fingerprint, NULL), DOPPEL_OK);
    assert_int_equal(fingerprint[1], 0);
    return fingerprint[0];
}

/* Sums in units of 1/65536 and bit 0 first, against whole sums written most significant bit first. */
static void assert_sums(const int64_t sums[4], int bit3, int bit2, int bit1, int bit0) {
    assert_int_equal(sums[3], bit3 * 65536);
    assert_int_equal(sums[2], bit2 * 65536);
    assert_int_equal(sums[1], bit1 * 65536);
    assert_int_equal(sums[0], bit0 * 65536);
}

/* The two sentences by the ten given hashes. The first gives the published 1101. Published are the sums (5,3,-1,2) and
 * (0,3,1,4), but nine words give nine terms of +-1 and so an odd sum in each column: the last column is 3 and 5, and
 * the first of the second sentence is 1, which makes it 1111. */
static void the_fox_sentences_in_four_bits(void **state) {
    (void)state;
    static const char *const quick[] = {"the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"};
    static const char *const fast[] = {"the", "fast", "brown", "fox", "jumps", "over", "a", "lazy", "dog"};
    doppel_feature a[9], b[9];
    int64_t sums[4];
    for (size_t i = 0; i < 9; i++) {
        a[i] = (doppel_feature){doppel_slice_of(quick[i]), 1};
        b[i] = (doppel_feature){doppel_slice_of(fast[i]), 1};
    }
    assert_int_equal(four_bits(a, 9, fox_hash, sums), 13);
    assert_sums(sums, 5, 3, -1, 3);
    assert_int_equal(four_bits(b, 9, fox_hash, sums), 15);
    assert_sums(sums, 1, 3, 1, 5);
}

/* The sums as published, (5,3,-1,2) and (0,3,1,4), give 1101 and 0111, at distance 2: a bit is 1 when its sum is above
 * 0, so a sum of 0 gives 0. The sums are reached by one feature a bit, with hash 2^i and weight a_i: the sum of bit i
 * is 2 a_i - A with A the total, so A is minus half the sum of the four, and a_i = (sum + A) / 2. */
static void the_published_fox_sums_give_the_published_fingerprints(void **state) {
    (void)state;
    const doppel_feature a[] = {{{"\x08", 1}, 0.25}, {{"\x04", 1}, -0.75}, {{"\x02", 1}, -2.75}, {{"\x01", 1}, -1.25}};
    const doppel_feature b[] = {{{"\x08", 1}, -2}, {{"\x04", 1}, -0.5}, {{"\x02", 1}, -1.5}, {{"\x01", 1}, 0}};
    int64_t sums[4];
    uint64_t first = four_bits(a, 4, byte_hash, sums);
    assert_sums(sums, 5, 3, -1, 2);
    assert_int_equal(first, 13);
    uint64_t second = four_bits(b, 4, byte_hash, sums);
    assert_sums(sums, 0, 3, 1, 4);
    assert_int_equal(second, 7);
    assert_int_equal(doppel_distance(first, second), 2);
}

/* ---- shingles ---- */

static void the_fox_has_seven_shingles_of_three_words(void **state) {
    (void)state;
    static const char *const shingles[] = {"the quick brown", "quick brown fox", "brown fox jumps", "fox jumps over",
                                           "jumps over the",  "over the lazy",   "the lazy dog"};
    assert_shingles("simhash64:words=3:hash=xxh3", "The quick brown fox jumps over the lazy dog", shingles,
                    COUNT(shingles));
}

/* Case and the comma leave no trace. */
static void tropical_fish_has_sixteen_shingles_of_three_words(void **state) {
    (void)state;
    static const char *const shingles[] = {
        "tropical fish include",
        "fish include fish",
        "include fish found",
        "fish found in",
        "found in tropical",
        "in tropical environments",
        "tropical environments around",
        "environments around the",
        "around the world",
        "the world including",
        "world including both",
        "including both freshwater",
        "both freshwater and",
        "freshwater and salt",
        "and salt water",
        "salt water species",
    };
    assert_shingles("simhash64:words=3:hash=xxh3",
                    "Tropical fish include fish found in tropical environments around the world, including both "
                    "freshwater and salt water species",
                    shingles, COUNT(shingles));
}

/* As a bag there are five 4-shingles, as a set three: repeats count for weight=tf, not for weight=set. */
static void a_rose_is_a_bag_of_five_and_a_set_of_three(void **state) {
    (void)state;
    static const char *const shingles[] = {"a rose is a", "rose is a rose", "is a rose is", "a rose is a",
                                           "rose is a rose"};
    static const char rose[] = "a rose is a rose is a rose";
    assert_shingles("simhash64:words=4:hash=xxh3", rose, shingles, COUNT(shingles));
    maker m = make("simhash64:words=4:hash=xxh3", DOPPEL_WANT_SET);
    doppel_sketch out = sketch(m, rose);
    assert_int_equal(out.features, 5);
    assert_int_equal(out.set_count, 3);
    unmake(m);
}

/* ---- the caller's weights ---- */

/* Three cities with weights 1.0, 2.0 and 4.3, hashed by lookup3. 4.3 outweighs the other two together, so the
 * fingerprint is the hash of that city; the sums are those of tests/reference. */
static void weighted_cities_with_jenkins(void **state) {
    (void)state;
    const doppel_feature cities[] = {{{"北京", 6}, 1.0}, {{"上海", 6}, 2.0}, {{"成都", 6}, 4.3}};
    static const int64_t first_sums[] = {-216269, 478413, 347341, 216269, 85197, -347341, 347341, 85197};
    int64_t sums[64];
    doppel_simhash_options options = {.size = sizeof(options), .hash = "jenkins", .sums = sums};
    uint64_t fingerprint[2], chengdu;
    assert_int_equal(doppel_simhash(cities, 3, &options, fingerprint, NULL), DOPPEL_OK);
    assert_int_equal(doppel_hash("jenkins", doppel_slice_of("成都"), 0, &chengdu), DOPPEL_OK);
    assert_int_equal(fingerprint[0], chengdu);
    assert_int_equal(fingerprint[0], 0x84ea1afb2892f9de);
    assert_int_equal(fingerprint[1], 0);
    assert_memory_equal(sums, first_sums, sizeof(first_sums));
}

/* ---- near and far ---- */

/* Character bigrams, 32 bits: the two sentences about the cat are nearer to each other than either is to the third,
 * with each hash that mixes its bits (djb2 of two letters does not). */
static void the_cats_are_nearer_to_each_other_than_to_the_ice_cream(void **state) {
    (void)state;
    static const char *const recipes[] = {
        "simhash32:chars=2:hash=fast",    "simhash32:chars=2:hash=xxh3", "simhash32:chars=2:hash=murmur3",
        "simhash32:chars=2:hash=jenkins", "simhash32:chars=2:hash=md5",  "simhash32:chars=2:hash=sha1",
        "simhash32:chars=2:hash=sha256",
    };
    for (size_t i = 0; i < COUNT(recipes); i++) {
        maker m = make(recipes[i], 0);
        uint64_t the_mat = sketch(m, "the cat sat on the mat").fingerprint[0];
        uint64_t a_mat = sketch(m, "the cat sat on a mat").fingerprint[0];
        uint64_t cream = sketch(m, "we all scream for ice cream").fingerprint[0];
        assert_in_range(the_mat | a_mat | cream, 0, UINT32_MAX);
        assert_true(doppel_distance(the_mat, a_mat) < doppel_distance(the_mat, cream));
        assert_true(doppel_distance(the_mat, a_mat) < doppel_distance(a_mat, cream));
        unmake(m);
    }
}

/* ---- samples ---- */

/* The hashes of the sixteen shingles above, as published; 0 mod 4 keeps four of them, in order. */
static void zero_mod_four_keeps_four_of_sixteen_shingles(void **state) {
    (void)state;
    uint64_t hashes[] = {938, 664, 463, 822, 492, 798, 78, 969, 143, 236, 913, 908, 694, 553, 870, 779};
    static const uint64_t kept[] = {664, 492, 236, 908};
    assert_int_equal(doppel_sample(hashes, COUNT(hashes), 4), 4);
    assert_memory_equal(hashes, kept, sizeof(kept));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fox_sentences_in_four_bits),
        cmocka_unit_test(the_published_fox_sums_give_the_published_fingerprints),
        cmocka_unit_test(the_fox_has_seven_shingles_of_three_words),
        cmocka_unit_test(tropical_fish_has_sixteen_shingles_of_three_words),
        cmocka_unit_test(a_rose_is_a_bag_of_five_and_a_set_of_three),
        cmocka_unit_test(weighted_cities_with_jenkins),
        cmocka_unit_test(the_cats_are_nearer_to_each_other_than_to_the_ice_cream),
        cmocka_unit_test(zero_mod_four_keeps_four_of_sixteen_shingles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
