/* test_index_merges.c - merges in the background change no answer: entries come, go, expire and come back while the
 * runs and levels they stand in are merged, and every find is compared with a plain array.
 *
 * Growing levels are small, and the writer leaves every merge to the thread, so that some merge is under way nearly all
 * the time. Run under the thread sanitizer too. */
#include "support.h"

#include "hamming/index.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { PRINTS = 6000, OWNERS = 3, ENTRIES = PRINTS * OWNERS, BATCH = 1500, LEVEL = 1024 };

/* Entry e has fingerprint e / OWNERS and owner e % OWNERS. */
typedef struct scene {
    doppel_index *index;
    int bits;
    uint64_t random, clock;
    uint64_t print[PRINTS][2];
    bool there[ENTRIES];
    uint64_t expires[ENTRIES];
    doppel_matches matches;
} scene;

static int apart(const uint64_t *a, const uint64_t *b) {
    return __builtin_popcountll(a[0] ^ b[0]) + __builtin_popcountll(a[1] ^ b[1]);
}

/* One in three lies near another. */
static scene *make_scene(int bits, uint64_t seed) {
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->bits = bits;
    s->random = seed;
    s->clock = 1;
    for (size_t i = 0; i < PRINTS; i++) {
        s->print[i][0] = random_next(&s->random);
        s->print[i][1] = bits > 64 ? random_next(&s->random) : 0;
        if (i && i % 3 == 0) {
            memcpy(s->print[i], s->print[random_below(&s->random, i)], sizeof s->print[i]);
            s->print[i][0] ^= (uint64_t)1 << random_below(&s->random, 64);
        }
        for (size_t j = 0; j < i; j++) /* every entry has a fingerprint of its own */
            if (!apart(s->print[i], s->print[j]))
                s->print[i][0] = random_next(&s->random), j = 0;
    }
    doppel_index_options options = {.size = sizeof options, .bits = bits, .secret = seed};
    assert_int_equal(doppel_index_create(&options, &s->index, NULL), DOPPEL_OK);
    dp_merger *limits = &s->index->merger;
    limits->writer_most = limits->growing_from = 0;
    limits->growing_least = limits->growing_most = LEVEL;
    return s;
}

static void free_scene(scene *s) {
    doppel_matches_free(&s->matches);
    doppel_index_free(s->index);
    free(s);
}

/* ---- one operation each ---- */

static uint64_t random_time(scene *s) {
    return random_below(&s->random, 3) ? 0 : s->clock + random_below(&s->random, 2000);
}

static void do_add(scene *s) {
    size_t e = random_below(&s->random, ENTRIES);
    s->expires[e] = random_time(s);
    s->there[e] = true;
    assert_int_equal(doppel_index_add(s->index, s->print[e / OWNERS], e % OWNERS, s->expires[e]), DOPPEL_OK);
}

static void do_remove(scene *s) {
    size_t e = random_below(&s->random, ENTRIES);
    bool removed;
    assert_int_equal(doppel_index_remove(s->index, s->print[e / OWNERS], e % OWNERS, &removed), DOPPEL_OK);
    assert_int_equal(removed, s->there[e]);
    s->there[e] = false;
}

static void do_batch(scene *s) {
    static uint64_t prints[2 * BATCH], owners[BATCH], times[BATCH];
    size_t words = s->bits > 64 ? 2 : 1;
    for (size_t i = 0; i < BATCH; i++) {
        size_t e = random_below(&s->random, ENTRIES);
        memcpy(prints + i * words, s->print[e / OWNERS], words * 8);
        owners[i] = e % OWNERS;
        times[i] = s->expires[e] = random_time(s);
        s->there[e] = true;
    }
    assert_int_equal(doppel_index_add_batch(s->index, prints, owners, times, BATCH), DOPPEL_OK);
}

static void do_expire(scene *s) {
    uint64_t expired, count = 0;
    assert_int_equal(doppel_index_expire(s->index, s->clock, &expired), DOPPEL_OK);
    for (size_t e = 0; e < ENTRIES; e++)
        if (s->there[e] && s->expires[e] && s->expires[e] <= s->clock) {
            s->there[e] = false;
            count++;
        }
    assert_int_equal(expired, count);
}

/* Each match is an entry that is there, at its time; and there are as many as the array has. */
static void do_find(scene *s) {
    uint64_t query[2];
    size_t want = 0;
    int distance = (int)random_below(&s->random, 5);
    memcpy(query, s->print[random_below(&s->random, PRINTS)], sizeof query);
    query[0] ^= (uint64_t)1 << random_below(&s->random, 64);
    assert_int_equal(doppel_index_find(s->index, query, distance, NULL, &s->matches, NULL), DOPPEL_OK);
    for (size_t i = 0; i < PRINTS; i++)
        for (size_t o = 0; o < OWNERS && apart(query, s->print[i]) <= distance; o++)
            want += s->there[i * OWNERS + o];
    assert_int_equal(s->matches.count, want);
    for (size_t m = 0; m < want; m++) {
        const doppel_match *match = &s->matches.match[m];
        size_t i = 0;
        while (i < PRINTS && apart(match->fingerprint, s->print[i]))
            i++;
        assert_true(i < PRINTS && match->owner < OWNERS && s->there[i * OWNERS + match->owner]);
        assert_int_equal(match->expires, s->expires[i * OWNERS + match->owner]);
        assert_int_equal(match->distance, apart(query, s->print[i]));
    }
}

static void do_contains(scene *s) {
    size_t e = random_below(&s->random, ENTRIES);
    bool contains;
    assert_int_equal(doppel_index_contains(s->index, s->print[e / OWNERS], e % OWNERS, &contains), DOPPEL_OK);
    assert_int_equal(contains, s->there[e]);
}

static void check_all(scene *s) {
    doppel_error reason = {0};
    doppel_index_stats stats;
    uint64_t count = 0;
    if (doppel_index_validate(s->index, &reason))
        fail_msg("%s", reason.message);
    for (size_t e = 0; e < ENTRIES; e++) {
        bool contains;
        assert_int_equal(doppel_index_contains(s->index, s->print[e / OWNERS], e % OWNERS, &contains), DOPPEL_OK);
        assert_int_equal(contains, s->there[e]);
        count += contains;
    }
    doppel_index_get_stats(s->index, &stats);
    assert_int_equal(stats.entries, count);
}

/* ---- all of them ---- */

static void one_operation(scene *s) {
    size_t turn = random_below(&s->random, 10000);
    if (turn < 5000)
        do_add(s);
    else if (turn < 8000)
        do_remove(s);
    else if (turn < 8060)
        do_batch(s);
    else if (turn < 8100)
        do_expire(s);
    else if (turn < 9000)
        do_contains(s);
    else if (turn < 9990)
        do_find(s);
    else if (turn < 9994)
        check_all(s);
    else if (turn < 9995)
        assert_int_equal(doppel_index_compact(s->index, NULL), DOPPEL_OK);
    s->clock += turn % 4 == 0;
}

static size_t steps(void) {
    const char *suite = getenv("DOPPEL_SUITE"); /* set by scripts/test */
    return suite && !strcmp(suite, "full") ? 500000 : 40000 / SMALLER;
}

static void *read_on(void *argument) {
    scene *s = argument;
    doppel_matches matches = {0};
    uint64_t random = 7;
    for (int i = 0; i < 20000 / SMALLER; i++)
        if (doppel_index_find(s->index, s->print[random_below(&random, PRINTS)], 2, NULL, &matches, NULL))
            return (void *)"a find failed";
    doppel_matches_free(&matches);
    return NULL;
}

static void run_scene(int bits, uint64_t seed) {
    scene *s = make_scene(bits, seed);
    pthread_t reader;
    void *wrong;
    assert_int_equal(pthread_create(&reader, NULL, read_on, s), 0);
    for (size_t i = 0; i < steps(); i++)
        one_operation(s);
    assert_int_equal(pthread_join(reader, &wrong), 0);
    assert_null(wrong);
    check_all(s);
    assert_true(s->index->merger.started);
    free_scene(s);
}

static void entries_change_while_their_runs_are_merged(void **state) {
    (void)state;
    run_scene(64, 11);
}

static void entries_of_128_bits_change_while_their_runs_are_merged(void **state) {
    (void)state;
    run_scene(128, 12);
}

/* ---- owners ---- */

enum { MANY_OWNERS = 30000 };

/* A level takes a few owners of one fingerprint; the others go another way, and all are found. */
static void one_fingerprint_has_many_owners(void **state) {
    (void)state;
    scene *s = make_scene(64, 15);
    do_batch(s);
    const uint64_t print = 0x123456789abcdef, near = print ^ 1;
    doppel_matches matches = {0};
    size_t there = 0;
    for (uint64_t owner = 0; owner < MANY_OWNERS; owner++) {
        assert_int_equal(doppel_index_add(s->index, &print, owner * 3, 0), DOPPEL_OK);
        there++;
        if (owner % 2) {
            bool removed;
            assert_int_equal(doppel_index_remove(s->index, &print, owner / 2 * 3, &removed), DOPPEL_OK);
            assert_true(removed);
            there--;
        }
        if (owner % 1000 == 0) {
            assert_int_equal(doppel_index_find(s->index, &near, 1, NULL, &matches, NULL), DOPPEL_OK);
            assert_int_equal(matches.count, there);
        }
    }
    doppel_error reason = {0};
    if (doppel_index_validate(s->index, &reason))
        fail_msg("%s", reason.message);
    doppel_matches_free(&matches);
    free_scene(s);
}

/* ---- a saved index ---- */

static bool count_entry(const doppel_match *entry, void *user) {
    (void)entry;
    ++*(size_t *)user;
    return true;
}

/* What is in levels goes into the file, too. */
static void levels_are_saved(void **state) {
    (void)state;
    scene *s = make_scene(64, 16);
    char path[80];
    snprintf(path, sizeof path, "/tmp/doppel-merges.%ld", (long)getpid());
    do_batch(s);
    assert_non_null(atomic_load(&s->index->current)->growing);
    for (int i = 0; i < 3000; i++)
        do_add(s);
    for (int i = 0; i < 500; i++)
        do_remove(s);
    doppel_index *copy, *own = s->index;
    doppel_error error = {0};
    assert_int_equal(doppel_index_save(s->index, path, &error), DOPPEL_OK);
    assert_int_equal(doppel_index_open(path, &copy, &error), DOPPEL_OK);
    unlink(path);
    size_t entries = 0, copied = 0;
    assert_int_equal(doppel_index_each(own, count_entry, &entries), DOPPEL_OK);
    assert_int_equal(doppel_index_each(copy, count_entry, &copied), DOPPEL_OK);
    assert_int_equal(entries, copied);
    s->index = copy;
    check_all(s);
    for (int i = 0; i < 300; i++)
        do_find(s);
    s->index = own;
    doppel_index_free(copy);
    free_scene(s);
}

/* ---- a merge at every moment ---- */

/* Nothing but what the thread does: an index that is left alone comes to have few runs, and holds what it held. */
static void an_index_left_alone_is_merged(void **state) {
    (void)state;
    scene *s = make_scene(64, 13);
    for (int i = 0; i < 12; i++)
        do_batch(s);
    dp_merger *merger = &s->index->merger;
    doppel_index_stats stats;
    do {
        doppel_index_get_stats(s->index, &stats);
    } while (stats.runs > 1);
    pthread_mutex_lock(&merger->lock);
    assert_false(merger->failed);
    pthread_mutex_unlock(&merger->lock);
    check_all(s);
    free_scene(s);
}

/* Freed with a merge under way or about to begin, nothing is lost or left behind. */
static void an_index_is_freed_while_it_merges(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20 / SMALLER; seed++) {
        scene *s = make_scene(64, 20 + seed);
        for (uint64_t i = 0; i <= seed % 5; i++)
            do_batch(s);
        free_scene(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_change_while_their_runs_are_merged),
        cmocka_unit_test(entries_of_128_bits_change_while_their_runs_are_merged),
        cmocka_unit_test(one_fingerprint_has_many_owners),
        cmocka_unit_test(levels_are_saved),
        cmocka_unit_test(an_index_left_alone_is_merged),
        cmocka_unit_test(an_index_is_freed_while_it_merges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
