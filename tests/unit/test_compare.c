/* test_compare.c - every measure on two texts, each as its own call gives it. */
#include "support.h"

#include "doppel.h"

#include <math.h>
#include <stdlib.h>

static const char fox[] = "The quick brown fox jumps over the lazy dog.";
static const char fast_fox[] = "The fast brown fox jumps over a lazy dog!";

static doppel_comparison compare(const char *recipe_text, const char *a, const char *b) {
    doppel_recipe *recipe = NULL;
    doppel_comparison out;
    if (recipe_text)
        assert_int_equal(doppel_recipe_parse(recipe_text, NULL, &recipe, NULL), DOPPEL_OK);
    assert_int_equal(doppel_compare(recipe, doppel_slice_of(a), doppel_slice_of(b), &out), DOPPEL_OK);
    doppel_recipe_free(recipe);
    return out;
}

static void a_text_with_itself(void **state) {
    (void)state;
    doppel_comparison out = compare(NULL, fox, "the QUICK brown fox, jumps over the lazy dog");
    assert_int_equal(out.distance, 0);
    assert_int_equal(out.bits, 64);
    assert_true(out.similarity == 1 && out.containment_ab == 1 && out.containment_ba == 1);
    assert_true(out.signature_similarity == 1 && out.cosine == 1 && out.angle == 0 && out.euclidean == 0);
    assert_int_equal(out.edit_distance, 0);
    assert_int_equal(out.indel_distance, 0);
    assert_true(out.edit_similarity == 1);
    assert_true(out.same_digest);
    assert_int_equal(out.words_a, 9);
}

static void fingerprints_are_those_of_the_simple_call(void **state) {
    (void)state;
    doppel_comparison out = compare(NULL, fox, fast_fox);
    uint64_t a, b;
    assert_int_equal(doppel_fingerprint(doppel_slice_of(fox), &a), DOPPEL_OK);
    assert_int_equal(doppel_fingerprint(doppel_slice_of(fast_fox), &b), DOPPEL_OK);
    assert_int_equal(out.fingerprint_a[0], a);
    assert_int_equal(out.fingerprint_b[0], b);
    assert_int_equal(out.distance, doppel_distance(a, b));
}

/* Single words: 8 distinct in the first, 9 in the second; brown fox jumps over lazy dog the are shared. */
static void sets_of_single_words(void **state) {
    (void)state;
    doppel_comparison out = compare("simhash64:words=1", fox, fast_fox);
    assert_int_equal(out.shingles_a, 8);
    assert_int_equal(out.shingles_b, 9);
    assert_int_equal(out.shingles_shared, 7);
    assert_true(out.similarity == 7.0 / 10.0);
    assert_true(out.containment_ab == 7.0 / 8.0);
    assert_true(out.containment_ba == 7.0 / 9.0);
    assert_true(fabs(out.signature_similarity - 0.7) < 0.2);
}

/* Counts: (the 2, quick 1, six more 1) and (the 1, fast 1, a 1, six more 1). */
static void word_counts(void **state) {
    (void)state;
    doppel_comparison out = compare(NULL, fox, fast_fox);
    double cosine = 8 / sqrt(11.0 * 9.0);
    assert_true(fabs(out.cosine - cosine) < 1e-12);
    assert_true(fabs(out.angle - acos(cosine) * 57.29577951308232) < 1e-9);
    assert_true(out.euclidean == 2);
}

/* "the quick ... the lazy dog" and "the fast ... a lazy dog": quick becomes fast, the becomes a. */
static void edits_on_the_normalised_text(void **state) {
    (void)state;
    doppel_comparison out = compare(NULL, fox, fast_fox);
    size_t distance;
    const char *a = "the quick brown fox jumps over the lazy dog", *b = "the fast brown fox jumps over a lazy dog";
    assert_int_equal(doppel_levenshtein(doppel_slice_of(a), doppel_slice_of(b), SIZE_MAX, &distance), DOPPEL_OK);
    assert_int_equal(out.edit_distance, distance);
    assert_true(out.edit_similarity == 1 - (double)distance / 43.0);
    assert_int_equal(doppel_indel(doppel_slice_of(a), doppel_slice_of(b), SIZE_MAX, &distance), DOPPEL_OK);
    assert_int_equal(out.indel_distance, distance);
    assert_false(out.same_digest);
}

static void wide_fingerprints(void **state) {
    (void)state;
    doppel_comparison out = compare("simhash128:words=2", fox, fast_fox);
    assert_int_equal(out.bits, 128);
    assert_int_equal(out.distance, doppel_distance128(out.fingerprint_a, out.fingerprint_b));
    assert_true(out.fingerprint_a[1] != 0);
    out = compare("simhash32:chars=2", "the cat sat on the mat", "the cat sat on a mat");
    assert_int_equal(out.bits, 32);
    assert_true(out.distance >= 0 && out.distance <= 32);
}

static void texts_without_words(void **state) {
    (void)state;
    const uint8_t none[32] = {0};
    doppel_comparison out = compare(NULL, "", " ... ");
    assert_int_equal(out.distance, -1);
    assert_true(out.similarity == 1);
    assert_true(isnan(out.containment_ab) && isnan(out.containment_ba) && isnan(out.signature_similarity));
    assert_int_equal(out.edit_distance, 0);
    assert_true(out.edit_similarity == 1);
    assert_false(out.same_digest);
    assert_memory_equal(out.digest_a, none, 32);
    out = compare(NULL, "", fox);
    assert_int_equal(out.distance, -1);
    assert_true(out.similarity == 0 && isnan(out.containment_ab) && out.containment_ba == 0 && out.cosine == 0);
    assert_int_equal(out.edit_distance, 43);
    assert_true(out.edit_similarity == 0);
}

/* 2^18 + 64 code points a side: 2^34 cells allow for about 2^16 edits. */
static void texts_too_long_to_edit(void **state) {
    (void)state;
    size_t length = (1 << 18) + 64;
    char *a = malloc(length + 1), *b = malloc(length + 1);
    memset(a, 'a', length);
    memset(b, 'b', length);
    a[length] = b[length] = 0;
    doppel_comparison out = compare(NULL, a, b);
    assert_int_equal(out.edit_distance, -1);
    assert_int_equal(out.indel_distance, -1);
    assert_true(isnan(out.edit_similarity));
    assert_true(out.similarity == 0);
    /* Against a short one they are within bounds. */
    out = compare(NULL, a, "aaaa");
    assert_int_equal(out.edit_distance, length - 4);
    free(a);
    free(b);
}

/* As long, but alike at both ends: only what stands between them counts. */
static void long_texts_that_differ_in_the_middle(void **state) {
    (void)state;
    const size_t length = 300000;
    char *a = malloc(length + 1), *b = malloc(length + 1);
    memset(a, 'a', length);
    memset(b, 'a', length);
    a[length] = b[length] = 0;
    memcpy(b + length / 2, "bcb", 3);
    doppel_comparison out = compare(NULL, a, b);
    assert_int_equal(out.edit_distance, 3);
    assert_int_equal(out.indel_distance, 6);
    free(a);
    free(b);
}

/* As long, and different at both ends and in the middle; but not by much. */
static void long_texts_with_few_edits(void **state) {
    (void)state;
    const size_t length = 300000;
    char *a = malloc(length + 1), *b = malloc(length + 1);
    for (size_t i = 0; i < length; i++)
        a[i] = b[i] = (char)('a' + i % 23);
    a[length] = b[length] = 0;
    b[0] = b[length / 2] = b[length - 1] = 'z';
    doppel_comparison out = compare(NULL, a, b);
    assert_int_equal(out.edit_distance, 3);
    assert_int_equal(out.indel_distance, 6);
    assert_true(fabs(out.edit_similarity - (1 - 3.0 / (double)length)) < 1e-12);
    free(a);
    free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_with_itself),
        cmocka_unit_test(fingerprints_are_those_of_the_simple_call),
        cmocka_unit_test(sets_of_single_words),
        cmocka_unit_test(word_counts),
        cmocka_unit_test(edits_on_the_normalised_text),
        cmocka_unit_test(wide_fingerprints),
        cmocka_unit_test(texts_without_words),
        cmocka_unit_test(texts_too_long_to_edit),
        cmocka_unit_test(long_texts_that_differ_in_the_middle),
        cmocka_unit_test(long_texts_with_few_edits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
