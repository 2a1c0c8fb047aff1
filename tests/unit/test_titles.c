/* test_titles.c - scanning many titles finds exactly those that comparing one by one finds; the filters lose none. */
#include "support.h"

#include "doppel.h"
#include "kernel/kernel.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 700 };

struct found {
    size_t numbers[20000], count, stop_at;
    double similarities[20000];
};

static bool note(size_t number, double similarity, void *user) {
    struct found *found = user;
    found->numbers[found->count] = number;
    found->similarities[found->count++] = similarity;
    return found->count != found->stop_at;
}

/* Writes code points as UTF-8; gives the length. */
static size_t encode(const uint32_t *points, size_t count, char *text) {
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t p = points[i];
        if (p < 0x80) {
            text[length++] = (char)p;
        } else if (p < 0x800) {
            text[length++] = (char)(0xC0 | p >> 6);
            text[length++] = (char)(0x80 | (p & 63));
        } else {
            if (p < 0x10000) {
                text[length++] = (char)(0xE0 | p >> 12);
            } else {
                text[length++] = (char)(0xF0 | p >> 18);
                text[length++] = (char)(0x80 | (p >> 12 & 63));
            }
            text[length++] = (char)(0x80 | (p >> 6 & 63));
            text[length++] = (char)(0x80 | (p & 63));
        }
    }
    return length;
}

/* A title of `kind`: 0 letters, 1 Latin with accents, 2 Han, 3 emoji among letters. */
static size_t random_title(uint64_t *seed, uint32_t *points, size_t count, int kind) {
    for (size_t i = 0; i < count; i++) {
        uint32_t letter = 'a' + (uint32_t)random_below(seed, 6);
        points[i] = kind == 1 && i % 5 == 0   ? 0xE0 + (uint32_t)random_below(seed, 0x40)
                    : kind == 2               ? 0x4E00 + (uint32_t)random_below(seed, 8)
                    : kind == 3 && i % 7 == 0 ? 0x1F600 + (uint32_t)random_below(seed, 3)
                                              : letter;
    }
    return count;
}

/* `edits` random edits in place; gives the new length. */
static size_t edit_title(uint64_t *seed, uint32_t *points, size_t count, size_t edits) {
    for (; edits; edits--) {
        size_t at = random_below(seed, count + 1), what = random_below(seed, 3);
        if (what == 0 && count < MOST) {
            memmove(points + at + 1, points + at, (count - at) * sizeof *points);
            points[at] = 'x';
            count++;
        } else if (what == 1 && at < count) {
            memmove(points + at, points + at + 1, (count - at - 1) * sizeof *points);
            count--;
        } else if (at < count) {
            points[at] = 'y';
        }
    }
    return count;
}

/* A base title and many at 0 to 2 * spread edits from it; scans for the base at `min` and compares with one by one. */
static void check_family(uint64_t *seed, size_t length, int kind, double min, size_t spread) {
    enum { FAMILY = 60 };
    uint32_t base[MOST + 1] = {0}, points[MOST + 1];
    char query[4 * MOST + 4], texts[FAMILY][4 * MOST + 4];
    size_t lengths[FAMILY], count = random_title(seed, base, length, kind);
    size_t query_length = encode(base, count, query);
    doppel_titles *titles;
    assert_int_equal(doppel_titles_create(&titles), DOPPEL_OK);
    for (size_t i = 0; i < FAMILY; i++) {
        memcpy(points, base, count * sizeof *base);
        size_t other = edit_title(seed, points, count, random_below(seed, 2 * spread + 1));
        if (i % 10 == 9)
            other = random_title(seed, points, length, kind);
        lengths[i] = encode(points, other, texts[i]);
        assert_int_equal(doppel_titles_add(titles, (doppel_slice){texts[i], lengths[i]}), DOPPEL_OK);
    }
    struct found *found = calloc(1, sizeof *found);
    assert_int_equal(doppel_titles_find(titles, (doppel_slice){query, query_length}, min, note, found), DOPPEL_OK);
    size_t next = 0;
    for (size_t i = 0; i < FAMILY; i++) {
        double similarity;
        assert_int_equal(doppel_edit_similarity((doppel_slice){query, query_length},
                                                (doppel_slice){texts[i], lengths[i]}, 0, &similarity),
                         DOPPEL_OK);
        if (!(similarity >= min))
            continue;
        assert_true(next < found->count);
        assert_int_equal(found->numbers[next], i);
        assert_true(found->similarities[next++] == similarity);
    }
    assert_int_equal(next, found->count);
    free(found);
    doppel_titles_free(titles);
}

static void titles_of_every_script_and_length(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int kind = 0; kind < 4; kind++)
        for (size_t length = 0; length < 140; length += 1 + length / 8)
            for (int round = 0; round < 8; round++)
                check_family(&seed, length, kind, 0.9, length / 10 + 1);
}

/* Thresholds where the band is wide, wider than a word, nothing or everything. */
static void any_threshold(void **state) {
    (void)state;
    uint64_t seed = 2;
    const double thresholds[] = {1, 0.99, 0.95, 0.8, 2.0 / 3.0, 0.5, 0.25, 0.1, 0, -1};
    for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds; i++) {
        check_family(&seed, 0, 0, thresholds[i], 3);
        check_family(&seed, 20, 0, thresholds[i], 10);
        check_family(&seed, 90, 1, thresholds[i], 40);
        check_family(&seed, 300, 2, thresholds[i], 100);
    }
}

/* Letters beyond 255 of a kind, more edits than a word holds. */
static void long_titles(void **state) {
    (void)state;
    uint64_t seed = 3;
    for (size_t length = 500; length < 690; length += 10)
        check_family(&seed, length, (int)(length / 10 % 4), 0.9, length / 10);
}

static void thresholds_above_one_find_nothing(void **state) {
    (void)state;
    doppel_titles *titles;
    struct found *found = calloc(1, sizeof *found);
    assert_int_equal(doppel_titles_create(&titles), DOPPEL_OK);
    assert_int_equal(doppel_titles_add(titles, doppel_slice_of("same")), DOPPEL_OK);
    assert_int_equal(doppel_titles_find(titles, doppel_slice_of("same"), 1.01, note, found), DOPPEL_OK);
    assert_int_equal(doppel_titles_find(titles, doppel_slice_of("same"), __builtin_nan(""), note, found), DOPPEL_OK);
    assert_int_equal(found->count, 0);
    assert_int_equal(doppel_titles_find(titles, doppel_slice_of("same"), 1, note, found), DOPPEL_OK);
    assert_int_equal(found->count, 1);
    doppel_titles_free(titles);
    doppel_titles_free(NULL);
    free(found);
}

/* More than one chunk, and a count that ends inside a group of eight. */
static doppel_titles *numbered_titles(size_t count) {
    doppel_titles *titles;
    assert_int_equal(doppel_titles_create(&titles), DOPPEL_OK);
    for (size_t i = 0; i < count; i++) {
        char text[64];
        int length = snprintf(text, sizeof text, "the title of the document with number %06zu", i);
        assert_int_equal(doppel_titles_add(titles, (doppel_slice){text, (size_t)length}), DOPPEL_OK);
    }
    assert_int_equal(doppel_titles_count(titles), count);
    return titles;
}

static void many_titles_in_order(void **state) {
    (void)state;
    doppel_titles *titles = numbered_titles(9003);
    struct found *found = calloc(1, sizeof *found);
    const char *query = "the title of the document with number 004567";
    assert_int_equal(doppel_titles_find(titles, doppel_slice_of(query), 0.5, note, found), DOPPEL_OK);
    assert_int_equal(found->count, 9003);
    for (size_t i = 0; i < found->count; i++)
        assert_int_equal(found->numbers[i], i);
    found->count = 0;
    assert_int_equal(doppel_titles_find(titles, doppel_slice_of(query), 1, note, found), DOPPEL_OK);
    assert_int_equal(found->count, 1);
    assert_int_equal(found->numbers[0], 4567);
    free(found);
    doppel_titles_free(titles);
}

static void a_scan_ends_when_the_caller_says_so(void **state) {
    (void)state;
    doppel_titles *titles = numbered_titles(100);
    struct found *found = calloc(1, sizeof *found);
    found->stop_at = 3;
    const char *query = "the title of the document with number 000000";
    assert_int_equal(doppel_titles_find(titles, doppel_slice_of(query), 0.5, note, found), DOPPEL_ERROR_INTERRUPTED);
    assert_int_equal(found->count, 3);
    free(found);
    doppel_titles_free(titles);
}

/* ---- the bags ---- */

static void bags_differ_by_at_most_two_an_edit(void **state) {
    (void)state;
    uint64_t seed = 4;
    for (int round = 0; round < 20000; round++) {
        uint32_t a[MOST + 1], b[MOST + 1];
        size_t count = random_title(&seed, a, random_below(&seed, round % 10 ? 60 : MOST), round % 4);
        size_t edits = random_below(&seed, 9), other;
        memcpy(b, a, count * sizeof *a);
        other = edit_title(&seed, b, count, edits);
        uint8_t bag_a[32], bag_b[32];
        dp_title_letters((dp_points){a, count}, bag_a);
        dp_title_letters((dp_points){b, other}, bag_b);
        size_t sum = 0;
        for (int i = 0; i < 32; i++)
            sum += (size_t)abs(bag_a[i] - bag_b[i]);
        assert_true(sum <= 2 * edits);
    }
}

static void every_bags_kernel_is_the_portable_one(void **state) {
    (void)state;
    uint64_t seed = 5;
    enum { GROUPS = 9, GROUP = DP_LETTER_COUNTS * DP_LETTER_GROUP };
    uint8_t groups[GROUPS * GROUP], bag[DP_LETTER_COUNTS], want[GROUPS], got[GROUPS];
    guarded room = guarded_create(sizeof groups), bag_room = guarded_create(sizeof bag);
    const dp_letter_counts_variant *portable = dp_letter_counts_variants;
    while (portable->needs)
        portable++;
    for (int round = 0; round < 3000; round++) {
        size_t count = random_below(&seed, GROUPS + 1);
        unsigned range = round % 3 ? 4 : 256;
        for (size_t i = 0; i < sizeof groups; i++)
            groups[i] = (uint8_t)(random_below(&seed, range) * (round % 7 ? 1 : 255));
        for (size_t i = 0; i < sizeof bag; i++)
            bag[i] = (uint8_t)random_below(&seed, range);
        const uint8_t *at = guarded_copy(room, groups, count * GROUP),
                      *bag_at = guarded_copy(bag_room, bag, sizeof bag);
        unsigned limit = (unsigned)random_below(&seed, range * 32);
        portable->run(at, count, bag_at, limit, want);
        for (const dp_letter_counts_variant *variant = dp_letter_counts_variants; variant < portable; variant++) {
            if (variant->needs > dp_cpu_best())
                continue;
            variant->run(at, count, bag_at, limit, got);
            assert_memory_equal(got, want, count);
        }
    }
    guarded_free(room);
    guarded_free(bag_room);
}

/* ---- the band ---- */

/* Strings of bits for texts over "abcd", and eight texts, all ending at guard pages. */
struct edits_test {
    guarded strings, texts[DP_BANDED_EDITS];
    uint32_t string_of[256];
    uint8_t rows[120];
};

/* Prepares `rows` letters; gives the strings. */
static const uint8_t *fill_strings(struct edits_test *test, uint64_t *seed, size_t rows) {
    size_t stride = (DP_BAND_AHEAD + rows + DP_BAND_BEHIND) / 8 + 8;
    uint8_t *strings = guarded_copy(test->strings, NULL, 5 * stride);
    memset(strings, 0, 5 * stride);
    for (uint32_t i = 0; i < 4; i++)
        test->string_of['a' + i] = (i + 1) * (uint32_t)stride;
    for (size_t i = 0; i < rows; i++) {
        test->rows[i] = (uint8_t)('a' + random_below(seed, 4));
        size_t bit = DP_BAND_AHEAD + i;
        strings[test->string_of[test->rows[i]] + bit / 8] |= (uint8_t)(1u << bit % 8);
    }
    return strings;
}

/* A text of nearly as many letters, half of the time nearly the same. */
static dp_banded_edit fill_edit(struct edits_test *test, uint64_t *seed, size_t rows, size_t i) {
    size_t limit = random_below(seed, DP_BAND_LIMIT + 1), apart = random_below(seed, limit + 1);
    size_t columns = random_below(seed, 2) ? rows + apart : rows - (apart < rows ? apart : rows);
    uint8_t text[200];
    for (size_t c = 0; c < columns; c++)
        text[c] = c < rows && i % 2 && random_below(seed, 9) ? test->rows[c] : (uint8_t)('a' + random_below(seed, 5));
    apart = columns > rows ? columns - rows : rows - columns;
    size_t high = (limit - apart) / 2 + (columns > rows ? apart : 0);
    return (dp_banded_edit){.text = guarded_copy(test->texts[i], text, columns),
                            .columns = columns,
                            .high = high,
                            .last = high + rows - columns,
                            .limit = limit,
                            .distance = rows > columns ? apart : 0};
}

static void check_edits(const dp_banded_edits *given, const uint8_t *rows, size_t row_count) {
    for (const dp_banded_edits_variant *variant = dp_banded_edits_variants;; variant++) {
        dp_banded_edits got = *given;
        if (variant->needs <= dp_cpu_best())
            variant->run(&got);
        for (size_t i = 0; i < DP_BANDED_EDITS && variant->needs <= dp_cpu_best(); i++) {
            size_t limit = given->edits[i].limit, want, distance = got.edits[i].distance;
            const char *text = (const char *)given->edits[i].text;
            assert_int_equal(doppel_levenshtein((doppel_slice){(const char *)rows, row_count},
                                                (doppel_slice){text, given->edits[i].columns}, SIZE_MAX, &want),
                             DOPPEL_OK);
            assert_int_equal(distance <= limit ? distance : limit + 1, want <= limit ? want : limit + 1);
        }
        if (!variant->needs)
            return;
    }
}

static void every_banded_kernel_gives_the_distance(void **state) {
    (void)state;
    uint64_t seed = 6;
    struct edits_test test = {.strings = guarded_create(1000)};
    for (size_t i = 0; i < DP_BANDED_EDITS; i++)
        test.texts[i] = guarded_create(200);
    for (int round = 0; round < 2000; round++) {
        size_t rows = random_below(&seed, sizeof test.rows + 1);
        dp_banded_edits edits = {.strings = fill_strings(&test, &seed, rows), .string_of = test.string_of};
        for (size_t i = 0; i < DP_BANDED_EDITS; i++)
            edits.edits[i] = fill_edit(&test, &seed, rows, i);
        check_edits(&edits, test.rows, rows);
    }
    guarded_free(test.strings);
    for (size_t i = 0; i < DP_BANDED_EDITS; i++)
        guarded_free(test.texts[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(titles_of_every_script_and_length),
        cmocka_unit_test(any_threshold),
        cmocka_unit_test(long_titles),
        cmocka_unit_test(thresholds_above_one_find_nothing),
        cmocka_unit_test(many_titles_in_order),
        cmocka_unit_test(a_scan_ends_when_the_caller_says_so),
        cmocka_unit_test(bags_differ_by_at_most_two_an_edit),
        cmocka_unit_test(every_bags_kernel_is_the_portable_one),
        cmocka_unit_test(every_banded_kernel_gives_the_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
