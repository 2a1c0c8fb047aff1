/* test_levenshtein.c - edit distances against the plain dynamic programme, and the strip kernels against each other. */
#include "support.h"

#include "doppel.h"
#include "kernel/kernel.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The textbook table, a row at a time. */
static size_t plain_distance(dp_points a, dp_points b, size_t substitution) {
    size_t *row = malloc((b.count + 1) * sizeof *row);
    for (size_t j = 0; j <= b.count; j++)
        row[j] = j;
    for (size_t i = 0; i < a.count; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < b.count; j++) {
            size_t best = diagonal + (a.data[i] == b.data[j] ? 0 : substitution);
            diagonal = row[j + 1];
            row[j + 1] = smaller(best, smaller(row[j], diagonal) + 1);
        }
    }
    size_t distance = row[b.count];
    free(row);
    return distance;
}

static size_t levenshtein(const char *a, const char *b) {
    size_t distance = 999;
    assert_int_equal(doppel_levenshtein(doppel_slice_of(a), doppel_slice_of(b), SIZE_MAX, &distance), DOPPEL_OK);
    return distance;
}

static size_t indel(const char *a, const char *b) {
    size_t distance = 999;
    assert_int_equal(doppel_indel(doppel_slice_of(a), doppel_slice_of(b), SIZE_MAX, &distance), DOPPEL_OK);
    return distance;
}

static void known_words(void **state) {
    (void)state;
    assert_int_equal(levenshtein("kitten", "sitting"), 3);
    assert_int_equal(indel("kitten", "sitting"), 5);
    assert_int_equal(levenshtein("intention", "execution"), 5);
    assert_int_equal(levenshtein("abc", "abc"), 0);
    assert_int_equal(indel("abc", "abd"), 2);
}

static void empty_texts(void **state) {
    (void)state;
    assert_int_equal(levenshtein("", ""), 0);
    assert_int_equal(levenshtein("", "abc"), 3);
    assert_int_equal(levenshtein("abc", ""), 3);
    assert_int_equal(indel("", "abc"), 3);
    double similarity = 0;
    assert_int_equal(doppel_edit_similarity((doppel_slice){NULL, 0}, (doppel_slice){NULL, 0}, 0.9, &similarity),
                     DOPPEL_OK);
    assert_true(similarity == 1);
}

static void code_points_not_bytes_are_counted(void **state) {
    (void)state;
    assert_int_equal(levenshtein("\xC3\xA9t\xC3\xA9", "ete"), 2);
    assert_int_equal(levenshtein("\xE5\x8C\x97\xE4\xBA\xAC", "\xE5\x8D\x97\xE4\xBA\xAC"), 1);
    assert_int_equal(levenshtein("\xF0\x9F\x98\x80x", "\xF0\x9F\x98\x81x"), 1);
    /* U+0141 and 'A' have the same low byte. */
    assert_int_equal(levenshtein("\xC5\x81", "A"), 1);
}

static void check_decoding(const char *bytes, size_t length, const uint32_t *want, size_t count) {
    uint32_t points[32];
    guarded room = guarded_create(length);
    assert_int_equal(dp_points_decode(guarded_copy(room, bytes, length), length, points), count);
    assert_memory_equal(points, want, count * sizeof *want);
    guarded_free(room);
}

static void each_maximal_invalid_sequence_is_one_replacement(void **state) {
    (void)state;
    /* The example of the Unicode standard, section 3.9, table 3-8 and those beside it. */
    check_decoding("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", 9, (const uint32_t[]){0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 'A'},
                   5);
    check_decoding("\xC0\xAF\xE0\x80\xBF\x41", 6, (const uint32_t[]){0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 'A'}, 6);
    check_decoding("\xED\xA0\x80\x41", 4, (const uint32_t[]){0xFFFD, 0xFFFD, 0xFFFD, 'A'}, 4);
    check_decoding("\xF4\x90\x80\x80\xF5", 5, (const uint32_t[]){0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD}, 5);
    check_decoding("\xF4\x8F\xBF\xBF\xEF\xBF\xBF\xC2\x80", 9, (const uint32_t[]){0x10FFFF, 0xFFFF, 0x80}, 3);
    check_decoding("abcdefghij\xF0\x9F\x98", 13,
                   (const uint32_t[]){'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 0xFFFD}, 11);
    check_decoding("\0\0", 2, (const uint32_t[]){0, 0}, 2);
}

/* ---- random texts ---- */

/* Random code points: few or many kinds, inside and outside the low table. */
static void random_points(uint64_t *seed, uint32_t *points, size_t count, size_t kinds) {
    uint32_t base = random_below(seed, 2) ? 'a' : random_below(seed, 2) ? 0xF0 : 0x1F600;
    for (size_t i = 0; i < count; i++)
        points[i] = base + (uint32_t)random_below(seed, kinds);
}

/* A copy with about one edit in `every`; gives its length, at most twice the original's. */
static size_t edit_points(uint64_t *seed, const uint32_t *from, size_t count, uint32_t *to, size_t every) {
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        size_t what = random_below(seed, every);
        if (what != 0)
            to[length++] = what == 1 ? from[i] + 1 : from[i];
        if (what == 2)
            to[length++] = from[random_below(seed, count)];
    }
    return length;
}

static void check_both(dp_points a, dp_points b, size_t max) {
    size_t distance, want = plain_distance(a, b, 1), apart = plain_distance(a, b, 2);
    assert_int_equal(dp_levenshtein(a, b, max, &distance), DOPPEL_OK);
    assert_int_equal(distance, want <= max ? want : max + 1);
    assert_int_equal(dp_indel(a, b, max, &distance), DOPPEL_OK);
    assert_int_equal(distance, apart <= max ? apart : max + 1);
}

static void random_texts_up_to(size_t most, int rounds, uint64_t seed) {
    uint32_t *a = malloc(most * sizeof *a), *b = malloc(2 * most * sizeof *b);
    for (int round = 0; round < rounds; round++) {
        size_t n = random_below(&seed, most + 1), m = random_below(&seed, most + 1);
        size_t kinds = 1 + random_below(&seed, 40);
        random_points(&seed, a, n, kinds);
        if (round % 2)
            random_points(&seed, b, m, kinds);
        else
            m = edit_points(&seed, a, n, b, 3 + random_below(&seed, 60));
        const size_t limits[] = {SIZE_MAX, n, n / 2, n / 10, 3, 0};
        check_both((dp_points){a, n}, (dp_points){b, m}, limits[random_below(&seed, 6)]);
    }
    free(a);
    free(b);
}

static void short_texts_as_the_plain_table_has_them(void **state) {
    (void)state;
    random_texts_up_to(12, 6000, 1);
    random_texts_up_to(70, 3000, 2);
}

static void texts_around_block_borders(void **state) {
    (void)state;
    uint64_t seed = 3;
    const size_t lengths[] = {63, 64, 65, 127, 128, 129, 511, 512, 513, 575, 576, 577, 1024, 1025};
    uint32_t a[1100], b[1100];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t j = 0; j <= i; j++) {
            random_points(&seed, a, lengths[i], 5);
            random_points(&seed, b, lengths[j], 5);
            check_both((dp_points){a, lengths[i]}, (dp_points){b, lengths[j]}, j % 2 ? SIZE_MAX : 40 * i);
        }
    }
}

static void long_texts_in_several_strips(void **state) {
    (void)state;
    random_texts_up_to(1500, 120, 4);
    random_texts_up_to(6000, 12, 5);
}

/* Every distinct code point needs a mask of its own. */
static void texts_of_all_different_code_points(void **state) {
    (void)state;
    uint32_t a[1300], b[1300];
    for (uint32_t i = 0; i < 1300; i++) {
        a[i] = 0x4E00 + i;
        b[i] = 0x4E00 + (i + 100) % 1300;
    }
    check_both((dp_points){a, 1300}, (dp_points){b, 1300}, SIZE_MAX);
    check_both((dp_points){a, 1300}, (dp_points){b, 1299}, 150);
}

/* Every cut-off around the true distance, including those that end early. */
static void any_cut_off_gives_the_distance_or_one_more(void **state) {
    (void)state;
    uint64_t seed = 6;
    uint32_t a[1200], b[2400];
    random_points(&seed, a, 1200, 26);
    size_t m = edit_points(&seed, a, 1200, b, 20), want = plain_distance((dp_points){a, 1200}, (dp_points){b, m}, 1);
    for (size_t max = 0; max < 2 * want; max += 1 + max / 16) {
        size_t distance;
        assert_int_equal(dp_levenshtein((dp_points){a, 1200}, (dp_points){b, m}, max, &distance), DOPPEL_OK);
        assert_int_equal(distance, want <= max ? want : max + 1);
    }
}

/* ---- similarity ---- */

static void similarity_is_decided_as_it_is_computed(void **state) {
    (void)state;
    for (size_t length = 1; length < 300; length++) {
        for (size_t distance = 0; distance <= length; distance++) {
            double min = 1 - (double)distance / (double)length;
            size_t allowed = SIZE_MAX;
            assert_true(dp_edit_allowed(length, min, &allowed));
            assert_int_equal(allowed, distance);
        }
        size_t allowed = SIZE_MAX;
        assert_true(dp_edit_allowed(length, 0.9, &allowed));
        assert_true(dp_edit_similarity(allowed, length) >= 0.9);
        assert_true(dp_edit_similarity(allowed + 1, length) < 0.9);
    }
}

static void impossible_thresholds(void **state) {
    (void)state;
    size_t allowed;
    assert_false(dp_edit_allowed(10, 1.5, &allowed));
    assert_false(dp_edit_allowed(10, __builtin_nan(""), &allowed));
    assert_true(dp_edit_allowed(10, -3, &allowed));
    assert_int_equal(allowed, 10);
    double similarity = 7;
    assert_int_equal(doppel_edit_similarity(doppel_slice_of("a"), doppel_slice_of("a"), 1.5, &similarity), DOPPEL_OK);
    assert_true(similarity == 0);
}

static void similarity_below_the_threshold_is_zero(void **state) {
    (void)state;
    double similarity = 7;
    assert_int_equal(doppel_edit_similarity(doppel_slice_of("kitten"), doppel_slice_of("sitting"), 0.5, &similarity),
                     DOPPEL_OK);
    assert_true(similarity == 1 - 3.0 / 7.0);
    assert_int_equal(doppel_edit_similarity(doppel_slice_of("kitten"), doppel_slice_of("sitting"), 0.6, &similarity),
                     DOPPEL_OK);
    assert_true(similarity == 0);
    assert_int_equal(doppel_edit_similarity(doppel_slice_of("abc"), doppel_slice_of("xyz"), 0, &similarity), DOPPEL_OK);
    assert_true(similarity == 0);
}

/* ---- the axioms of a metric ---- */

static void both_distances_are_metrics(void **state) {
    (void)state;
    uint64_t seed = 8;
    for (int round = 0; round < 20000; round++) {
        char a[9] = {0}, b[9] = {0}, c[9] = {0};
        char *texts[] = {a, b, c};
        for (int t = 0; t < 3; t++)
            for (size_t i = 0, n = random_below(&seed, 9); i < n; i++)
                texts[t][i] = (char)('a' + random_below(&seed, 2));
        size_t (*const measures[])(const char *, const char *) = {levenshtein, indel};
        for (int i = 0; i < 2; i++) {
            size_t ab = measures[i](a, b);
            assert_true((ab == 0) == !strcmp(a, b));
            assert_int_equal(ab, measures[i](b, a));
            assert_true(measures[i](a, c) <= ab + measures[i](b, c));
        }
    }
}

/* ---- kernels ---- */

/* A random strip, whose arrays end at guard pages. */
typedef struct strip_test {
    guarded masks, slots, steps;
    uint64_t masks_from[20 * DP_STRIP_WORDS];
    uint16_t slots_from[200];
    int8_t steps_from[200];
} strip_test;

static dp_strip fill_strip(strip_test *test, uint64_t *seed, int least) {
    size_t kinds = 1 + random_below(seed, 20), columns = random_below(seed, 201);
    uint64_t dense = random_below(seed, 2) ? UINT64_MAX : 0;
    for (size_t i = 0; i < kinds * DP_STRIP_WORDS; i++)
        test->masks_from[i] = random_next(seed) & (random_next(seed) | dense);
    for (size_t i = 0; i < columns; i++) {
        test->slots_from[i] = (uint16_t)(random_below(seed, kinds) * DP_STRIP_WORDS);
        test->steps_from[i] = (int8_t)(least + (int)random_below(seed, (size_t)(2 - least)));
    }
    dp_strip strip = {.columns = columns, .words = 1 + random_below(seed, DP_STRIP_WORDS)};
    strip.masks = guarded_copy(test->masks, test->masks_from, kinds * DP_STRIP_WORDS * sizeof(uint64_t));
    strip.slots = guarded_copy(test->slots, test->slots_from, columns * sizeof(uint16_t));
    strip.steps = guarded_copy(test->steps, test->steps_from, columns);
    for (size_t w = 0; w < DP_STRIP_WORDS; w++) {
        strip.plus[w] = random_next(seed);
        strip.minus[w] = least < 0 ? random_next(seed) & ~strip.plus[w] : 0;
    }
    return strip;
}

static void same_strip(const dp_strip *a, const int8_t *a_steps, const dp_strip *b, const int8_t *b_steps) {
    assert_memory_equal(a->plus, b->plus, a->words * sizeof *a->plus);
    assert_memory_equal(a->minus, b->minus, a->words * sizeof *a->minus);
    assert_memory_equal(a_steps, b_steps, a->columns);
}

static strip_test strip_test_create(void) {
    return (strip_test){.masks = guarded_create(sizeof(uint64_t) * 20 * DP_STRIP_WORDS),
                        .slots = guarded_create(400),
                        .steps = guarded_create(200)};
}

static void strip_test_free(strip_test *test) {
    guarded_free(test->masks);
    guarded_free(test->slots);
    guarded_free(test->steps);
}

static void every_levenshtein_kernel_is_the_portable_one(void **state) {
    (void)state;
    uint64_t seed = 9;
    strip_test test = strip_test_create();
    const dp_levenshtein_variant *portable = dp_levenshtein_variants;
    while (portable->needs)
        portable++;
    for (int round = 0; round < 3000; round++) {
        dp_strip given = fill_strip(&test, &seed, -1), want = given;
        int8_t want_steps[200];
        portable->run(&want);
        memcpy(want_steps, want.steps, want.columns);
        for (const dp_levenshtein_variant *variant = dp_levenshtein_variants; variant < portable; variant++) {
            if (variant->needs > dp_cpu_best())
                continue;
            dp_strip got = given;
            memcpy(got.steps, test.steps_from, got.columns);
            variant->run(&got);
            same_strip(&got, got.steps, &want, want_steps);
        }
    }
    strip_test_free(&test);
}

/* One variant only: against the definition, a row of one bit after the other. */
static void subsequence_kernel_is_the_plain_table(void **state) {
    (void)state;
    uint64_t seed = 10;
    strip_test test = strip_test_create();
    for (int round = 0; round < 300; round++) {
        dp_strip strip = fill_strip(&test, &seed, 0), want = strip;
        int8_t steps[200];
        memcpy(steps, test.steps_from, strip.columns);
        for (size_t c = 0; c < strip.columns; c++) {
            const uint64_t *masks = strip.masks + strip.slots[c];
            for (size_t r = 0; r < 64 * strip.words; r++) {
                uint64_t *plus = &want.plus[r / 64], bit = (uint64_t)1 << r % 64;
                /* From the cell above left: below it `down`, right of it steps[c]; the new cell is the best of three.
                 */
                int down = (*plus & bit) != 0, right = steps[c], match = (masks[r / 64] & bit) != 0;
                int here = match ? 1 : down > right ? down : right;
                *plus = here > right ? *plus | bit : *plus & ~bit;
                steps[c] = (int8_t)(here - down);
            }
        }
        dp_subsequence_kernel()(&strip);
        same_strip(&strip, strip.steps, &want, steps);
    }
    strip_test_free(&test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_words),
        cmocka_unit_test(empty_texts),
        cmocka_unit_test(code_points_not_bytes_are_counted),
        cmocka_unit_test(each_maximal_invalid_sequence_is_one_replacement),
        cmocka_unit_test(short_texts_as_the_plain_table_has_them),
        cmocka_unit_test(texts_around_block_borders),
        cmocka_unit_test(long_texts_in_several_strips),
        cmocka_unit_test(texts_of_all_different_code_points),
        cmocka_unit_test(any_cut_off_gives_the_distance_or_one_more),
        cmocka_unit_test(similarity_is_decided_as_it_is_computed),
        cmocka_unit_test(impossible_thresholds),
        cmocka_unit_test(similarity_below_the_threshold_is_zero),
        cmocka_unit_test(both_distances_are_metrics),
        cmocka_unit_test(every_levenshtein_kernel_is_the_portable_one),
        cmocka_unit_test(subsequence_kernel_is_the_plain_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
