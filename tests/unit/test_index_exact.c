/* test_index_exact.c - the index finds what a plain loop finds, entry for entry, whatever the set looks like.
 *
 * The loop is run once a query for the widest distance; as matches come nearest first, what has to be found within a
 * smaller distance is the beginning of the same list. */
#include "fingerprints.h"

#include <unistd.h>

/* ---- the plain loop ---- */

typedef struct entries {
    const char *name;
    const fingerprints *set;
    const bool *gone; /* was removed again; NULL: none */
} entries;

/* Owners in another order than positions. */
static uint64_t owner_of(size_t i) {
    return (i + 1) * 0x9E3779B97F4A7C15u;
}

static int compare_numbers(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

static int compare_matches(const void *a, const void *b) {
    const doppel_match *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance - y->distance;
    for (int w = 1; w >= 0; w--)
        if (x->fingerprint[w] != y->fingerprint[w])
            return compare_numbers(x->fingerprint[w], y->fingerprint[w]);
    return compare_numbers(x->owner, y->owner);
}

/* Every entry within `most`, nearest first; gives how many. */
static size_t plain_find(const entries *all, const uint64_t *query, int most, doppel_match *found) {
    const fingerprints *set = all->set;
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        int distance = plain_distance(query, print_at(set, i), set->words);
        if (distance > most || (all->gone && all->gone[i]))
            continue;
        found[count] = (doppel_match){.owner = owner_of(i), .distance = distance};
        memcpy(found[count++].fingerprint, print_at(set, i), set->words * sizeof(uint64_t));
    }
    qsort(found, count, sizeof *found, compare_matches);
    return count;
}

/* ---- one query ---- */

static bool same_match(const doppel_match *a, const doppel_match *b) {
    return !compare_matches(a, b) && a->expires == b->expires;
}

static void check_options(const doppel_index *index, const uint64_t *query, int distance, const doppel_match *want,
                          size_t count) {
    doppel_matches found = {0};
    doppel_find_options options = {.size = sizeof options, .count_only = true};
    assert_int_equal(doppel_index_find(index, query, distance, &options, &found, NULL), DOPPEL_OK);
    assert_int_equal(found.count, count);
    options = (doppel_find_options){.size = sizeof options, .limit = 3};
    assert_int_equal(doppel_index_find(index, query, distance, &options, &found, NULL), DOPPEL_OK);
    assert_int_equal(found.count, count < 3 ? count : 3);
    for (size_t i = 0; i < found.count; i++)
        assert_true(same_match(&found.match[i], &want[i]));
    options = (doppel_find_options){.size = sizeof options, .any = true};
    assert_int_equal(doppel_index_find(index, query, distance, &options, &found, NULL), DOPPEL_OK);
    assert_int_equal(found.count, count > 0);
    if (count)
        assert_non_null(bsearch(found.match, want, count, sizeof *want, compare_matches));
    doppel_matches_free(&found);
}

static void check_query(const doppel_index *index, const entries *all, const uint64_t *query, int most) {
    doppel_match *want = malloc((all->set->count + 1) * sizeof *want);
    assert_non_null(want);
    size_t total = plain_find(all, query, most, want), count = 0;
    doppel_matches found = {0};
    for (int k = 0; k <= most; k++) {
        while (count < total && want[count].distance <= k)
            count++;
        assert_int_equal(doppel_index_find(index, query, k, NULL, &found, NULL), DOPPEL_OK);
        size_t same = 0;
        while (same < count && same < found.count && same_match(&found.match[same], &want[same]))
            same++;
        if (same < count || found.count != count)
            fail_msg("%s, %d bits, %zu of them, within %d: %zu found, not %zu; the first difference is at %zu",
                     all->name, all->set->bits, all->set->count, k, found.count, count, same);
        if (k == most / 3)
            check_options(index, query, k, want, count);
    }
    doppel_matches_free(&found);
    free(want);
}

/* Entries themselves, near ones, and random ones. */
static void check_queries(const doppel_index *index, const entries *all, size_t queries) {
    const fingerprints *set = all->set;
    uint64_t seed = 77, query[2] = {0};
    for (size_t q = 0; q < queries; q++) {
        if (q % 4 == 3 || !set->count)
            make_random(set, query, &seed);
        else
            make_near(set, query, print_at(set, random_below(&seed, set->count)), q % 4 * 2, &seed);
        check_query(index, all, query, most_distance(set->bits));
    }
}

/* ---- making an index ---- */

static uint64_t *make_owners(const fingerprints *set) {
    uint64_t *owners = malloc((set->count + 1) * sizeof *owners);
    assert_non_null(owners);
    for (size_t i = 0; i < set->count; i++)
        owners[i] = owner_of(i);
    return owners;
}

static doppel_index *create(const fingerprints *set, int distance, const char *layout) {
    doppel_index *index;
    doppel_error error;
    doppel_index_options options = {
        .size = sizeof options, .bits = set->bits, .distance = distance, .layout = layout, .secret = 12345};
    if (doppel_index_create(&options, &index, &error))
        fail_msg("%d bits, %s: %s", set->bits, layout ? layout : "any layout", error.message);
    return index;
}

/* Entries from..to at once, or one by one. */
static void add_range(doppel_index *index, const fingerprints *set, size_t from, size_t to, bool at_once) {
    uint64_t *owners = make_owners(set);
    if (at_once)
        assert_int_equal(doppel_index_add_batch(index, print_at(set, from), owners + from, NULL, (uint64_t)(to - from)),
                         DOPPEL_OK);
    else
        for (size_t i = from; i < to; i++)
            assert_int_equal(doppel_index_add(index, print_at(set, i), owners[i], 0), DOPPEL_OK);
    free(owners);
}

static void check_valid(const doppel_index *index, uint64_t entries_there) {
    doppel_error reason = {0};
    doppel_index_stats stats;
    doppel_index_get_stats(index, &stats);
    assert_int_equal(stats.entries, entries_there);
    if (doppel_index_validate(index, &reason))
        fail_msg("%s", reason.message);
}

/* ---- every way to make it ---- */

static void built_at_once(const entries *all, int distance, const char *layout, size_t queries) {
    doppel_index *index = create(all->set, distance, layout);
    add_range(index, all->set, 0, all->set->count, true);
    assert_int_equal(doppel_index_compact(index, NULL), DOPPEL_OK);
    check_valid(index, all->set->count);
    check_queries(index, all, queries);
    doppel_index_free(index);
}

static void built_one_by_one(const entries *all, int distance, const char *layout, size_t queries) {
    doppel_index *index = create(all->set, distance, layout);
    add_range(index, all->set, 0, all->set->count, false);
    check_valid(index, all->set->count);
    check_queries(index, all, queries);
    doppel_index_free(index);
}

/* Two indexes with secrets of their own, one with runs and a head, one of which every third entry is removed. */
static void merged_and_thinned(const entries *all, int distance, const char *layout, size_t queries) {
    const fingerprints *set = all->set;
    bool *gone = calloc(set->count + 1, 1);
    doppel_index *index = create(set, distance, layout), *other;
    doppel_index_options options = {
        .size = sizeof options, .bits = set->bits, .distance = set->bits < 5 ? 1 : 5, .secret = 999};
    uint64_t left = 0;
    assert_int_equal(doppel_index_create(&options, &other, NULL), DOPPEL_OK);
    add_range(index, set, 0, set->count / 2, true);
    add_range(index, set, set->count / 2, set->count * 2 / 3, false);
    add_range(other, set, set->count * 2 / 3, set->count, true);
    assert_int_equal(doppel_index_merge(index, other, NULL), DOPPEL_OK);
    doppel_index_free(other);
    for (size_t i = 0; i < set->count; i++) {
        if (i % 3 == 0) {
            assert_int_equal(doppel_index_remove(index, print_at(set, i), owner_of(i), &gone[i]), DOPPEL_OK);
            assert_true(gone[i]);
        }
        left += !gone[i];
    }
    entries rest = {all->name, set, gone};
    check_valid(index, left);
    check_queries(index, &rest, queries);
    assert_int_equal(doppel_index_compact(index, NULL), DOPPEL_OK);
    check_valid(index, left);
    check_queries(index, &rest, queries);
    doppel_index_free(index);
    free(gone);
}

/* Saved, mapped again, and added to. */
static void saved_and_opened(const entries *all, int distance, const char *layout, size_t queries) {
    const fingerprints *set = all->set;
    char path[] = "/tmp/doppel-test-exact-XXXXXX";
    doppel_index *index = create(set, distance, layout);
    int file = mkstemp(path);
    assert_true(file >= 0 && !close(file));
    add_range(index, set, 0, set->count / 2, true);
    add_range(index, set, set->count / 2, set->count * 3 / 4, false);
    assert_int_equal(doppel_index_save(index, path, NULL), DOPPEL_OK);
    doppel_index_free(index);
    assert_int_equal(doppel_index_open(path, &index, NULL), DOPPEL_OK);
    add_range(index, set, set->count * 3 / 4, set->count, false);
    check_queries(index, all, queries);
    check_valid(index, set->count);
    doppel_index_free(index);
    unlink(path);
}

typedef void (*way)(const entries *all, int distance, const char *layout, size_t queries);
static const way ways[] = {built_at_once, built_one_by_one, merged_and_thinned, saved_and_opened};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- the tests ---- */

/* Every shape in every way; the distances it is planned for take turns. */
static void check_every_shape(int bits, size_t count, size_t dense_count, size_t queries) {
    static const int planned[] = {3, 0, 6, 1, 10};
    size_t turn = 0;
    for (size_t s = 0; s < SHAPES; s++) {
        fingerprints set = make_prints(&shapes[s], bits, shapes[s].dense ? dense_count : count, (uint64_t)bits);
        entries all = {shapes[s].name, &set, NULL};
        for (size_t w = 0; w < WAYS; w++) {
            int distance = planned[turn++ % 5];
            ways[w](&all, distance < bits ? distance : bits, NULL, queries);
        }
        free_prints(&set);
    }
}

static void every_distance_at_64_bits(void **state) {
    (void)state;
    check_every_shape(64, full_suite() ? 200000 : 3000 / SMALLER, full_suite() ? 20000 : 600 / SMALLER,
                      full_suite() ? 100 : 8);
}

static void every_distance_at_128_bits(void **state) {
    (void)state;
    check_every_shape(128, full_suite() ? 200000 : 3000 / SMALLER, full_suite() ? 20000 : 600 / SMALLER,
                      full_suite() ? 100 : 8);
}

static void odd_widths(void **state) {
    (void)state;
    static const int widths[] = {1, 7, 16, 33, 63};
    for (size_t i = 0; i < 5; i++)
        check_every_shape(widths[i], widths[i] < 20 ? 300 : 2000, 300, 4);
}

static void layouts_that_are_forced(void **state) {
    (void)state;
    static const struct {
        int bits;
        const char *layout;
    } forced[] = {{64, "4x16"},  {64, "2x17"},     {64, "5c2x14"}, {64, "6c3x12"}, {64, "4x10+4x4"}, {64, "scan"},
                  {64, "8x8"},   {64, "3x9"},      {128, "4x16"},  {128, "8x16"},  {128, "5c2x13"},  {128, "scan"},
                  {128, "9x14"}, {128, "4x8+3x6"}, {33, "2x16"},   {33, "3c2x12"}, {63, "4x15"},     {63, "7x9"},
                  {7, "2x3"},    {16, "4x4"},      {1, "1x1"},     {1, "scan"}};
    for (size_t i = 0; i < sizeof forced / sizeof *forced; i++)
        for (size_t s = 0; s < SHAPES; s += s == 2 ? 3 : 1) {
            fingerprints set = make_prints(&shapes[s], forced[i].bits, shapes[s].dense ? 200 : 1000, i);
            entries all = {forced[i].layout, &set, NULL};
            ways[(i + s) % WAYS](&all, 3 < forced[i].bits ? 3 : forced[i].bits, forced[i].layout, 6);
            free_prints(&set);
        }
}

/* Enough that keys and levels of runs come into play. */
static void larger_sets(void **state) {
    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (int bits = 64; bits <= 128; bits += 64) {
            fingerprints set = make_prints(&shapes[s], bits, 50000, s);
            entries all = {shapes[s].name, &set, NULL};
            ways[s](&all, 3, NULL, 8);
            free_prints(&set);
        }
}

static void a_distance_of_all_bits_finds_all(void **state) {
    (void)state;
    static const int widths[] = {1, 7, 64, 128};
    for (size_t i = 0; i < 4; i++) {
        fingerprints set = make_prints(&shapes[1], widths[i], 500, i);
        entries all = {"all bits", &set, NULL};
        doppel_index *index = create(&set, 1, NULL);
        add_range(index, &set, 0, set.count, true);
        for (size_t q = 0; q < 3; q++)
            check_query(index, &all, print_at(&set, q), widths[i]);
        doppel_index_free(index);
        free_prints(&set);
    }
}

static void nothing_is_near_in_an_empty_index(void **state) {
    (void)state;
    for (int bits = 1; bits <= 128; bits *= 2) {
        fingerprints set = make_prints(&shapes[0], bits, 0, 1);
        entries all = {"empty", &set, NULL};
        for (size_t w = 0; w < WAYS; w++)
            ways[w](&all, 1, NULL, 4);
        free_prints(&set);
    }
}

/* The published example. */
static void numbers_0_and_78(void **state) {
    (void)state;
    static const char *const layouts[] = {NULL, "4x16", "scan"};
    const uint64_t zero = 0, other = 0x78, query = 0x70;
    for (size_t i = 0; i < 3; i++) {
        doppel_index *index;
        doppel_matches found = {0};
        doppel_index_options options = {.size = sizeof options, .layout = layouts[i]};
        assert_int_equal(doppel_index_create(&options, &index, NULL), DOPPEL_OK);
        assert_int_equal(doppel_index_add(index, &zero, 1, 0), DOPPEL_OK);
        assert_int_equal(doppel_index_add(index, &other, 2, 0), DOPPEL_OK);
        assert_int_equal(doppel_index_find(index, &query, 3, NULL, &found, NULL), DOPPEL_OK);
        assert_int_equal(found.count, 2);
        assert_true(found.match[0].owner == 2 && found.match[0].distance == 1);
        assert_true(found.match[1].owner == 1 && found.match[1].distance == 3);
        assert_int_equal(doppel_index_find(index, &zero, 3, NULL, &found, NULL), DOPPEL_OK);
        assert_int_equal(found.count, 1);
        assert_true(found.match[0].owner == 1 && found.match[0].distance == 0);
        doppel_matches_free(&found);
        doppel_index_free(index);
    }
}

/* One query in a hundred is near an entry: it is found, and nothing farther is. */
static void every_planted_entry_is_found(void **state) {
    (void)state;
    size_t count = full_suite() ? 10000000 : 100000 / SMALLER;
    fingerprints set = make_prints(&shapes[0], 64, count, 3);
    doppel_index *index = create(&set, 3, NULL);
    doppel_matches found = {0};
    uint64_t seed = 4, query = 0;
    add_range(index, &set, 0, count, true);
    for (size_t q = 0; q < count / 100; q++) {
        size_t i = random_below(&seed, count);
        bool there = false;
        make_near(&set, &query, print_at(&set, i), random_below(&seed, 6), &seed);
        int distance = plain_distance(&query, print_at(&set, i), 1);
        assert_int_equal(doppel_index_find(index, &query, 3, NULL, &found, NULL), DOPPEL_OK);
        for (size_t m = 0; m < found.count; m++) {
            const doppel_match *match = &found.match[m];
            assert_true(match->distance <= 3 && match->distance == plain_distance(&query, match->fingerprint, 1));
            there |= match->owner == owner_of(i) && match->fingerprint[0] == *print_at(&set, i);
        }
        assert_int_equal(there, distance <= 3);
    }
    doppel_matches_free(&found);
    doppel_index_free(index);
    free_prints(&set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_distance_at_64_bits),
        cmocka_unit_test(every_distance_at_128_bits),
        cmocka_unit_test(odd_widths),
        cmocka_unit_test(layouts_that_are_forced),
        cmocka_unit_test(larger_sets),
        cmocka_unit_test(a_distance_of_all_bits_finds_all),
        cmocka_unit_test(nothing_is_near_in_an_empty_index),
        cmocka_unit_test(numbers_0_and_78),
        cmocka_unit_test(every_planted_entry_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
