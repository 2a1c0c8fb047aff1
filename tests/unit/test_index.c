/* The index in memory: what one entry, many entries, owners, times and merges come to. Exactness over all distances and
 * shapes is tested in test_index_exact.c, long random histories in test_index_model.c. */
#include "support.h"

#include "doppel.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- helpers ---- */

static doppel_index *create(int bits) {
    doppel_index_options options = {.size = sizeof options, .bits = bits, .secret = 5};
    doppel_index *index;
    assert_int_equal(doppel_index_create(&options, &index, NULL), DOPPEL_OK);
    return index;
}

static void insert(doppel_index *index, uint64_t fingerprint, uint64_t owner, uint64_t expires) {
    uint64_t wide[2] = {fingerprint, 0};
    assert_int_equal(doppel_index_add(index, wide, owner, expires), DOPPEL_OK);
}

static size_t count_near(const doppel_index *index, uint64_t fingerprint, int distance,
                         const doppel_find_options *options) {
    doppel_matches near = {0};
    uint64_t wide[2] = {fingerprint, 0};
    assert_int_equal(doppel_index_find(index, wide, distance, options, &near, NULL), DOPPEL_OK);
    size_t count = near.count;
    doppel_matches_free(&near);
    return count;
}

static uint64_t entries(const doppel_index *index) {
    doppel_index_stats stats;
    doppel_index_get_stats(index, &stats);
    return stats.entries;
}

/* A number that looks random and is always the same. */
static uint64_t number(uint64_t i) {
    return random_next(&i);
}

/* Inserts number(from) .. number(to - 1), each owned by its own i. */
static void insert_numbers(doppel_index *index, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++)
        insert(index, number(i), i, 0);
}

/* Whether exactly those of number(0) .. number(count - 1) are there for which `there` says so. */
static void assert_numbers(const doppel_index *index, uint64_t count, bool (*there)(uint64_t i)) {
    uint64_t expected = 0;
    for (uint64_t i = 0; i < count; i++) {
        bool contains;
        uint64_t wide[2] = {number(i), 0};
        assert_int_equal(doppel_index_contains(index, wide, i, &contains), DOPPEL_OK);
        assert_int_equal(contains, there(i));
        assert_int_equal(count_near(index, number(i) ^ 0x8001, 2, NULL), there(i));
        expected += there(i);
    }
    assert_int_equal(entries(index), expected);
}

static bool all_of_them(uint64_t i) {
    (void)i;
    return true;
}

static bool not_every_third(uint64_t i) {
    return i % 3 != 0;
}

/* ---- one entry ---- */

static void the_published_example(void **state) {
    (void)state;
    doppel_index *index = create(64);
    insert(index, 0x0, 1, 0);
    insert(index, 0x78, 2, 0);
    assert_int_equal(count_near(index, 0x70, 3, NULL), 2);
    assert_int_equal(count_near(index, 0x0, 3, NULL), 1);
    doppel_index_free(index);
}

static void an_entry_inserted_twice_is_one_with_the_new_time(void **state) {
    (void)state;
    doppel_index *index = create(64);
    insert(index, 7, 1, 0);
    insert(index, 7, 1, 100);
    assert_int_equal(entries(index), 1);
    doppel_find_options late = {.size = sizeof late, .now = 100};
    assert_int_equal(count_near(index, 7, 0, &late), 0);
    insert(index, 7, 1, 0);
    assert_int_equal(count_near(index, 7, 0, &late), 1);
    doppel_index_free(index);
}

static void a_removed_entry_is_gone_until_it_is_inserted_again(void **state) {
    (void)state;
    doppel_index *index = create(64);
    insert(index, 7, 1, 0);
    bool removed;
    assert_int_equal(doppel_index_remove(index, &(uint64_t){7}, 2, &removed), DOPPEL_OK);
    assert_false(removed);
    assert_int_equal(doppel_index_remove(index, &(uint64_t){7}, 1, &removed), DOPPEL_OK);
    assert_true(removed);
    assert_int_equal(doppel_index_remove(index, &(uint64_t){7}, 1, &removed), DOPPEL_OK);
    assert_false(removed);
    assert_int_equal(count_near(index, 7, 3, NULL), 0);
    insert(index, 7, 1, 0);
    assert_int_equal(count_near(index, 7, 3, NULL), 1);
    assert_int_equal(entries(index), 1);
    doppel_index_free(index);
}

/* The same in a run: what was compacted is no longer in the head. */
static void entries_of_a_run_are_refreshed_and_revived_in_place(void **state) {
    (void)state;
    doppel_index *index = create(64);
    insert_numbers(index, 0, 1000);
    assert_int_equal(doppel_index_compact(index, NULL), DOPPEL_OK);
    insert(index, number(5), 5, 50);
    assert_int_equal(doppel_index_remove(index, &(uint64_t){number(6)}, 6, NULL), DOPPEL_OK);
    assert_int_equal(entries(index), 999);
    insert(index, number(6), 6, 60);
    assert_int_equal(entries(index), 1000);
    doppel_find_options at_55 = {.size = sizeof at_55, .now = 55};
    assert_int_equal(count_near(index, number(5), 0, &at_55), 0);
    assert_int_equal(count_near(index, number(6), 0, &at_55), 1);
    assert_int_equal(count_near(index, number(7), 0, &at_55), 1);
    doppel_index_free(index);
}

static void bits_beyond_the_width_are_refused(void **state) {
    (void)state;
    doppel_index *index = create(16);
    bool contains;
    doppel_matches near = {0};
    uint64_t wide[] = {1, 0x10000};
    assert_int_equal(doppel_index_add(index, wide + 1, 1, 0), DOPPEL_ERROR_USAGE);
    assert_int_equal(doppel_index_add_batch(index, wide, NULL, NULL, 2), DOPPEL_ERROR_USAGE);
    assert_int_equal(doppel_index_remove(index, wide + 1, 1, NULL), DOPPEL_ERROR_USAGE);
    assert_int_equal(doppel_index_contains(index, wide + 1, 1, &contains), DOPPEL_ERROR_USAGE);
    assert_int_equal(doppel_index_find(index, wide + 1, 1, NULL, &near, NULL), DOPPEL_ERROR_USAGE);
    assert_int_equal(doppel_index_find(index, wide, 17, NULL, &near, NULL), DOPPEL_ERROR_USAGE);
    assert_int_equal(doppel_index_find(index, wide, -1, NULL, &near, NULL), DOPPEL_ERROR_USAGE);
    assert_int_equal(entries(index), 0);
    doppel_index_free(index);
}

/* ---- options ---- */

static void impossible_options_say_what_is_possible(void **state) {
    (void)state;
    static const struct {
        doppel_index_options options;
        const char *says;
    } cases[] = {{{.bits = 65}, "1 to 64, or 128"},      {{.bits = -1}, "1 to 64, or 128"},
                 {{.bits = 8, .distance = 9}, "0 to 8"}, {{.distance = -1}, "0 to 64"},
                 {{.layout = "4y16"}, "4y16"},           {{.count = 1000000, .memory = 1000}, "at least"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        doppel_index_options options = cases[i].options;
        options.size = sizeof options;
        doppel_index *index;
        doppel_error error;
        assert_int_equal(doppel_index_create(&options, &index, &error), DOPPEL_ERROR_USAGE);
        assert_null(index);
        if (!strstr(error.message, cases[i].says))
            fail_msg("`%s` does not say `%s`", error.message, cases[i].says);
    }
}

static void a_forced_layout_is_used(void **state) {
    (void)state;
    doppel_index_options options = {.size = sizeof options, .layout = "4x16"};
    doppel_index *index;
    assert_int_equal(doppel_index_create(&options, &index, NULL), DOPPEL_OK);
    insert_numbers(index, 0, 300);
    assert_int_equal(doppel_index_compact(index, NULL), DOPPEL_OK);
    doppel_index_stats stats;
    doppel_index_get_stats(index, &stats);
    assert_string_equal(stats.layout, "4x16");
    assert_int_equal(stats.runs, 1);
    assert_numbers(index, 300, all_of_them);
    doppel_index_free(index);
}

/* ---- what a find gives ---- */

static void matches_are_ordered_by_distance_fingerprint_owner(void **state) {
    (void)state;
    doppel_index *index = create(64);
    insert(index, 0xF0, 9, 0);
    insert(index, 0xF1, 2, 0);
    insert(index, 0x70, 5, 0);
    insert(index, 0xF1, 1, 0);
    insert(index, 0x30, 4, 0);
    static const uint64_t prints[] = {0xF0, 0x70, 0xF1, 0xF1, 0x30}, owners[] = {9, 5, 1, 2, 4};
    static const int distances[] = {0, 1, 1, 1, 2};
    for (int round = 0; round < 2; round++) {
        doppel_matches near = {0};
        assert_int_equal(doppel_index_find(index, &(uint64_t){0xF0}, 3, NULL, &near, NULL), DOPPEL_OK);
        assert_int_equal(near.count, 5);
        for (size_t i = 0; i < 5; i++) {
            assert_int_equal(near.match[i].fingerprint[0], prints[i]);
            assert_int_equal(near.match[i].owner, owners[i]);
            assert_int_equal(near.match[i].distance, distances[i]);
        }
        doppel_matches_free(&near);
        assert_int_equal(doppel_index_compact(index, NULL), DOPPEL_OK); /* then the same from a run */
    }
    doppel_index_free(index);
}

static void a_limit_keeps_the_nearest(void **state) {
    (void)state;
    doppel_index *index = create(64);
    for (uint64_t i = 0; i < 2000; i++)
        insert(index, i % 500, i, 0);
    for (uint64_t limit = 1; limit <= 300; limit += 23) {
        doppel_find_options options = {.size = sizeof options, .limit = limit};
        doppel_matches all = {0}, some = {0};
        assert_int_equal(doppel_index_find(index, &(uint64_t){77}, 6, NULL, &all, NULL), DOPPEL_OK);
        assert_int_equal(doppel_index_find(index, &(uint64_t){77}, 6, &options, &some, NULL), DOPPEL_OK);
        assert_int_equal(some.count, limit);
        assert_memory_equal(all.match, some.match, limit * sizeof *all.match);
        doppel_matches_free(&all);
        doppel_matches_free(&some);
    }
    doppel_index_free(index);
}

static void any_stops_at_one_and_count_only_counts(void **state) {
    (void)state;
    doppel_index *index = create(64);
    for (uint64_t i = 0; i < 100; i++)
        insert(index, 1, i, 0);
    doppel_find_options any = {.size = sizeof any, .any = true}, count = {.size = sizeof count, .count_only = true};
    doppel_matches near = {0};
    assert_int_equal(count_near(index, 0, 1, &any), 1);
    assert_int_equal(doppel_index_find(index, &(uint64_t){0}, 1, &count, &near, NULL), DOPPEL_OK);
    assert_int_equal(near.count, 100);
    assert_null(near.match);
    assert_int_equal(count_near(index, 6, 1, &any), 0);
    doppel_index_free(index);
}

/* ---- many entries ---- */

static void many_at_once_are_as_one_by_one(void **state) {
    (void)state;
    enum { MANY = 20000 };
    uint64_t *prints = malloc(MANY * sizeof *prints);
    for (uint64_t i = 0; i < MANY; i++)
        prints[i] = number(i);
    doppel_index *index = create(64);
    insert_numbers(index, 0, 700); /* some are there already, in the head */
    assert_int_equal(doppel_index_add_batch(index, prints, NULL, NULL, MANY), DOPPEL_OK);
    assert_numbers(index, MANY, all_of_them);
    assert_int_equal(doppel_index_add_batch(index, prints, NULL, NULL, MANY), DOPPEL_OK); /* or in a run */
    assert_numbers(index, MANY, all_of_them);
    doppel_index_free(index);
    free(prints);
}

static void of_many_alike_the_last_time_counts(void **state) {
    (void)state;
    const uint64_t prints[] = {5, 6, 5, 5}, owners[] = {1, 1, 1, 1}, expires[] = {10, 10, 0, 30};
    doppel_index *index = create(64);
    assert_int_equal(doppel_index_add_batch(index, prints, owners, expires, 4), DOPPEL_OK);
    assert_int_equal(entries(index), 2);
    doppel_find_options at_20 = {.size = sizeof at_20, .now = 20}, at_30 = {.size = sizeof at_30, .now = 30};
    assert_int_equal(count_near(index, 5, 0, &at_20), 1);
    assert_int_equal(count_near(index, 5, 0, &at_30), 0);
    assert_int_equal(count_near(index, 6, 0, &at_20), 0);
    doppel_index_free(index);
}

static void many_owners_of_one_fingerprint(void **state) {
    (void)state;
    enum { OWNERS = 30000 };
    doppel_index *index = create(64);
    for (uint64_t i = 0; i < OWNERS; i++)
        insert(index, 42, number(i), i % 2 ? 0 : 9); /* through the head and several merges */
    doppel_find_options late = {.size = sizeof late, .now = 9, .count_only = true};
    assert_int_equal(entries(index), OWNERS);
    assert_int_equal(count_near(index, 43, 1, &(doppel_find_options){.size = sizeof late, .count_only = true}), OWNERS);
    assert_int_equal(count_near(index, 43, 1, &late), OWNERS / 2);
    for (uint64_t i = 0; i < OWNERS; i += 1000) {
        bool removed;
        assert_int_equal(doppel_index_remove(index, &(uint64_t){42}, number(i), &removed), DOPPEL_OK);
        assert_true(removed);
    }
    assert_int_equal(doppel_index_compact(index, NULL), DOPPEL_OK);
    assert_int_equal(count_near(index, 42, 0, NULL), OWNERS - 30);
    doppel_index_stats stats;
    doppel_index_get_stats(index, &stats);
    assert_int_equal(stats.fingerprints, 1);
    doppel_index_free(index);
}

/* ---- merges ---- */

/* Removes every third, then goes on inserting, so that merges copy buckets in which some are gone. */
static void merges_drop_what_was_removed(void **state) {
    (void)state;
    static const int widths[] = {64, 128};
    for (size_t w = 0; w < COUNT(widths); w++) {
        doppel_index *index = create(widths[w]);
        insert_numbers(index, 0, 13000);
        for (uint64_t i = 0; i < 30000; i += 3) {
            if (i >= 13000)
                insert(index, number(i), i, 0);
            uint64_t wide[2] = {number(i), 0};
            assert_int_equal(doppel_index_remove(index, wide, i, NULL), DOPPEL_OK);
        }
        for (uint64_t i = 13000; i < 30000; i++)
            if (i % 3)
                insert(index, number(i), i, 0);
        assert_numbers(index, 30000, not_every_third);
        assert_int_equal(doppel_index_compact(index, NULL), DOPPEL_OK);
        assert_numbers(index, 30000, not_every_third);
        doppel_index_free(index);
    }
}

/* The same fingerprints in several runs and in the head: merges put them together. */
static void merges_collapse_equal_fingerprints(void **state) {
    (void)state;
    enum { PRINTS = 3000, ROUNDS = 10 };
    doppel_index *index = create(64);
    for (uint64_t round = 0; round < ROUNDS; round++)
        for (uint64_t i = 0; i < PRINTS; i++)
            insert(index, number(i), ROUNDS - round, 0);
    assert_int_equal(doppel_index_compact(index, NULL), DOPPEL_OK);
    doppel_index_stats stats;
    doppel_index_get_stats(index, &stats);
    assert_int_equal(stats.entries, PRINTS * ROUNDS);
    assert_int_equal(stats.fingerprints, PRINTS);
    doppel_matches near = {0};
    assert_int_equal(doppel_index_find(index, &(uint64_t){number(17) ^ 4}, 3, NULL, &near, NULL), DOPPEL_OK);
    assert_int_equal(near.count, ROUNDS);
    for (size_t i = 0; i < near.count; i++)
        assert_int_equal(near.match[i].owner, i + 1);
    doppel_matches_free(&near);
    doppel_index_free(index);
}

static void purge_removes_what_has_expired(void **state) {
    (void)state;
    doppel_index *index = create(64);
    for (uint64_t i = 0; i < 30000; i++)
        insert(index, number(i), i, i % 3 ? 0 : 1 + i);
    uint64_t purged;
    assert_int_equal(doppel_index_expire(index, 0, &purged), DOPPEL_OK);
    assert_int_equal(purged, 0);
    assert_int_equal(doppel_index_expire(index, 40000, &purged), DOPPEL_OK);
    assert_int_equal(purged, 10000);
    assert_numbers(index, 30000, not_every_third);
    doppel_index_free(index);
}

static void removing_all_leaves_nothing(void **state) {
    (void)state;
    doppel_index *index = create(64);
    insert_numbers(index, 0, 20000);
    for (uint64_t i = 0; i < 20000; i++)
        assert_int_equal(doppel_index_remove(index, &(uint64_t){number(i)}, i, NULL), DOPPEL_OK);
    assert_int_equal(entries(index), 0);
    assert_int_equal(doppel_index_compact(index, NULL), DOPPEL_OK);
    doppel_index_stats stats;
    doppel_index_get_stats(index, &stats);
    assert_int_equal(stats.runs, 0);
    assert_int_equal(stats.fingerprints, 0);
    doppel_index_free(index);
}

static void another_index_is_added(void **state) {
    (void)state;
    doppel_index *index = create(64), *other = create(64), *narrow = create(32);
    doppel_error error;
    insert_numbers(index, 0, 3000);
    insert_numbers(other, 2000, 9000);
    insert(other, number(1), 1, 77); /* an entry that is there gets the new time */
    assert_int_equal(doppel_index_merge(index, other, &error), DOPPEL_OK);
    assert_numbers(index, 9000, all_of_them);
    doppel_find_options late = {.size = sizeof late, .now = 77};
    assert_int_equal(count_near(index, number(1), 0, &late), 0);
    assert_int_equal(doppel_index_merge(index, index, &error), DOPPEL_ERROR_USAGE);
    assert_int_equal(doppel_index_merge(index, narrow, &error), DOPPEL_ERROR_USAGE);
    doppel_index_free(index);
    doppel_index_free(other);
    doppel_index_free(narrow);
}

/* ---- reading all ---- */

typedef struct each_state {
    doppel_index *index;
    uint64_t seen, stop_after, sum;
} each_state;

static bool see(const doppel_match *entry, void *user) {
    each_state *s = user;
    assert_int_equal(entry->fingerprint[0], number(entry->owner));
    s->sum += entry->owner;
    if (s->seen % 1000 == 0) /* a find inside works */
        assert_int_equal(count_near(s->index, entry->fingerprint[0], 0, NULL), 1);
    return ++s->seen != s->stop_after;
}

static void each_gives_every_entry_once_or_stops(void **state) {
    (void)state;
    doppel_index *index = create(64);
    insert_numbers(index, 0, 10000);
    each_state all = {.index = index}, some = {.index = index, .stop_after = 10};
    assert_int_equal(doppel_index_each(index, see, &all), DOPPEL_OK);
    assert_int_equal(all.seen, 10000);
    assert_int_equal(all.sum, 9999 * 5000);
    assert_int_equal(doppel_index_each(index, see, &some), DOPPEL_ERROR_INTERRUPTED);
    assert_int_equal(some.seen, 10);
    doppel_index_free(index);
}

static void an_empty_index_answers(void **state) {
    (void)state;
    doppel_index *index = create(128);
    assert_int_equal(count_near(index, 0, 128, NULL), 0);
    assert_int_equal(doppel_index_compact(index, NULL), DOPPEL_OK);
    assert_int_equal(doppel_index_expire(index, 5, NULL), DOPPEL_OK);
    assert_int_equal(doppel_index_add_batch(index, NULL, NULL, NULL, 0), DOPPEL_OK);
    assert_int_equal(entries(index), 0);
    doppel_index_free(index);
    doppel_index_free(NULL);
    doppel_matches_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_example),
        cmocka_unit_test(an_entry_inserted_twice_is_one_with_the_new_time),
        cmocka_unit_test(a_removed_entry_is_gone_until_it_is_inserted_again),
        cmocka_unit_test(entries_of_a_run_are_refreshed_and_revived_in_place),
        cmocka_unit_test(bits_beyond_the_width_are_refused),
        cmocka_unit_test(impossible_options_say_what_is_possible),
        cmocka_unit_test(a_forced_layout_is_used),
        cmocka_unit_test(matches_are_ordered_by_distance_fingerprint_owner),
        cmocka_unit_test(a_limit_keeps_the_nearest),
        cmocka_unit_test(any_stops_at_one_and_count_only_counts),
        cmocka_unit_test(many_at_once_are_as_one_by_one),
        cmocka_unit_test(of_many_alike_the_last_time_counts),
        cmocka_unit_test(many_owners_of_one_fingerprint),
        cmocka_unit_test(merges_drop_what_was_removed),
        cmocka_unit_test(merges_collapse_equal_fingerprints),
        cmocka_unit_test(purge_removes_what_has_expired),
        cmocka_unit_test(removing_all_leaves_nothing),
        cmocka_unit_test(another_index_is_added),
        cmocka_unit_test(each_gives_every_entry_once_or_stops),
        cmocka_unit_test(an_empty_index_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
