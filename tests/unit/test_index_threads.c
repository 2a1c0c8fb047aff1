/* test_index_threads.c - one thread writes an index while eight read it.
 *
 * Entries are identified by their owner: fingerprint_of() gives the one fingerprint an owner has. `Lasting` entries are
 * never removed, so that every reader finds each of them at all times; `passing` ones come and go. Run under the thread
 * sanitizer too. */
#include "support.h"

#include "doppel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { READERS = 8, LASTING = 6000, PASSING = 3000, FIRST_PASSING = 1 << 20 };

/* What all threads share. A reader that sees something wrong says so here; the main thread fails. */
typedef struct scene {
    doppel_index *index;
    int bits;
    size_t steps; /* of the writer */
    atomic_bool done;
    _Atomic(const char *) wrong;
    atomic_uint started;
} scene;

typedef struct reader {
    scene *scene;
    unsigned number;
    uint64_t random;
    uint64_t rounds;
} reader;

/* Eight owners lie near each other. */
static void fingerprint_of(int bits, uint64_t owner, uint64_t fingerprint[2]) {
    uint64_t group = owner / 8;
    fingerprint[0] = random_next(&group);
    fingerprint[1] = bits > 64 ? random_next(&group) : 0;
    fingerprint[0] ^= (uint64_t)1 << (owner % 8 * 7);
}

static int apart(const uint64_t *a, const uint64_t *b) {
    return __builtin_popcountll(a[0] ^ b[0]) + __builtin_popcountll(a[1] ^ b[1]);
}

/* ---- readers ---- */

/* A match is an entry that the writer can have put there, at the distance it says. */
static void check_match(scene *s, const doppel_match *match, const uint64_t *query, int distance) {
    uint64_t fingerprint[2];
    fingerprint_of(s->bits, match->owner, fingerprint);
    EXPECT(s, match->owner < LASTING ||
                  (match->owner >= FIRST_PASSING && match->owner < FIRST_PASSING + (uint64_t)PASSING));
    EXPECT(s, !apart(fingerprint, match->fingerprint));
    EXPECT(s, match->distance == apart(query, match->fingerprint) && match->distance <= distance);
}

static void find_one(reader *r, const doppel_index *index, doppel_matches *matches) {
    scene *s = r->scene;
    uint64_t owner = random_below(&r->random, LASTING), query[2];
    fingerprint_of(s->bits, owner, query);
    int distance = 1 + (int)random_below(&r->random, 4);
    for (int flips = (int)random_below(&r->random, (size_t)distance + 1); flips; flips--) {
        size_t bit = random_below(&r->random, (size_t)s->bits);
        query[bit / 64] ^= (uint64_t)1 << bit % 64;
    }
    doppel_error error;
    EXPECT(s, !doppel_index_find(index, query, distance, NULL, matches, &error));
    unsigned found = 0;
    for (size_t i = 0; i < matches->count; i++) {
        check_match(s, &matches->match[i], query, distance);
        found += matches->match[i].owner == owner;
    }
    EXPECT(s, found == 1);
    bool contains;
    fingerprint_of(s->bits, owner, query);
    EXPECT(s, !doppel_index_contains(index, query, owner, &contains) && contains);
}

/* Which lasting entries one walk came by. */
typedef struct walk {
    reader *reader;
    uint64_t lasting;
    uint8_t seen[LASTING];
} walk;

static bool come_by(const doppel_match *entry, void *user) {
    walk *w = user;
    check_match(w->reader->scene, entry, entry->fingerprint, 0);
    if (entry->owner < LASTING && !w->seen[entry->owner]) {
        w->seen[entry->owner] = 1;
        w->lasting++;
    }
    return true;
}

static void walk_all(reader *r, const doppel_index *index) {
    walk w = {.reader = r};
    EXPECT(r->scene, !doppel_index_each(index, come_by, &w));
    EXPECT(r->scene, w.lasting == LASTING);
}

/* A file saved meanwhile is whole, and holds all that lasts. */
static void save_and_open(reader *r) {
    char path[80];
    snprintf(path, sizeof path, "/tmp/doppel-threads.%ld.%u", (long)getpid(), r->number);
    doppel_error error;
    doppel_index *copy = NULL;
    EXPECT(r->scene, !doppel_index_save(r->scene->index, path, &error));
    EXPECT(r->scene, !doppel_index_open(path, &copy, &error));
    if (copy) {
        EXPECT(r->scene, !doppel_index_validate(copy, &error));
        walk_all(r, copy);
        doppel_matches matches = {0};
        for (int i = 0; i < 20; i++)
            find_one(r, copy, &matches);
        doppel_matches_free(&matches);
        doppel_index_free(copy);
    }
    unlink(path);
}

static void *read_on(void *argument) {
    reader *r = argument;
    scene *s = r->scene;
    doppel_matches matches = {0};
    while (!atomic_load(&s->done) && !atomic_load(&s->wrong)) {
        for (int i = 0; i < 50; i++)
            find_one(r, s->index, &matches);
        if (r->number % 4 == 1)
            walk_all(r, s->index);
        if (r->number == 2)
            save_and_open(r);
        doppel_index_stats stats;
        doppel_index_get_stats(s->index, &stats);
        EXPECT(s, stats.entries >= LASTING && stats.entries <= LASTING + PASSING);
        if (!r->rounds++)
            atomic_fetch_add(&s->started, 1);
    }
    doppel_matches_free(&matches);
    return NULL;
}

/* ---- times of what comes and goes ---- */

enum { BESIDE = 200000 }; /* entries that give a save something to do */

/* One entry is removed and inserted again, each time with a later time. */
typedef struct reviving {
    doppel_index *index;
    atomic_bool done;
    _Atomic uint64_t removed; /* the time it had when it was removed last */
} reviving;

static void *revive(void *argument) {
    reviving *r = argument;
    uint64_t fingerprint = 0;
    for (uint64_t time = 2; !atomic_load(&r->done); time++) {
        doppel_index_remove(r->index, &fingerprint, 0, NULL);
        atomic_store(&r->removed, time - 1);
        doppel_index_add(r->index, &fingerprint, 0, time);
    }
    return NULL;
}

/* What was gone when a save began is not saved. */
static void check_saved_time(reviving *r, const char *path) {
    doppel_index *copy;
    doppel_matches matches = {0};
    uint64_t fingerprint = 0, removed = atomic_load(&r->removed);
    assert_int_equal(doppel_index_save(r->index, path, NULL), DOPPEL_OK);
    assert_int_equal(doppel_index_open(path, &copy, NULL), DOPPEL_OK);
    assert_int_equal(doppel_index_find(copy, &fingerprint, 0, NULL, &matches, NULL), DOPPEL_OK);
    assert_true(matches.count <= 1);
    assert_true(!matches.count || matches.match[0].expires > removed);
    doppel_matches_free(&matches);
    doppel_index_free(copy);
}

static void a_save_mixes_no_times(void **state) {
    (void)state;
    reviving r = {0};
    uint64_t *fingerprints = calloc(BESIDE, sizeof *fingerprints), random = 5;
    char path[80];
    pthread_t writer;
    assert_non_null(fingerprints);
    for (size_t i = 1; i < BESIDE; i++)
        fingerprints[i] = random_next(&random);
    snprintf(path, sizeof path, "/tmp/doppel-times.%ld", (long)getpid());
    assert_int_equal(doppel_index_create(NULL, &r.index, NULL), DOPPEL_OK);
    assert_int_equal(doppel_index_add_batch(r.index, fingerprints, NULL, NULL, BESIDE), DOPPEL_OK);
    assert_int_equal(doppel_index_add(r.index, fingerprints, 0, 1), DOPPEL_OK);
    assert_int_equal(pthread_create(&writer, NULL, revive, &r), 0);
    for (int i = 0; i < 30; i++)
        check_saved_time(&r, path);
    atomic_store(&r.done, true);
    pthread_join(writer, NULL);
    unlink(path);
    doppel_index_free(r.index);
    free(fingerprints);
}

/* ---- the writer ---- */

static void insert_many(scene *s, uint64_t first, size_t count) {
    size_t words = s->bits > 64 ? 2 : 1;
    uint64_t *fingerprints = malloc(count * 16), *owners = malloc(count * 8);
    assert_true(fingerprints && owners);
    for (size_t i = 0; i < count; i++) {
        uint64_t fingerprint[2];
        owners[i] = first + i;
        fingerprint_of(s->bits, owners[i], fingerprint);
        memcpy(fingerprints + i * words, fingerprint, words * 8);
    }
    EXPECT(s, !doppel_index_add_batch(s->index, fingerprints, owners, NULL, count));
    free(fingerprints);
    free(owners);
}

static void insert(scene *s, uint64_t owner, uint64_t expires) {
    uint64_t fingerprint[2];
    fingerprint_of(s->bits, owner, fingerprint);
    EXPECT(s, !doppel_index_add(s->index, fingerprint, owner, expires));
}

static void remove_passing(scene *s, uint64_t owner) {
    uint64_t fingerprint[2];
    fingerprint_of(s->bits, owner, fingerprint);
    EXPECT(s, !doppel_index_remove(s->index, fingerprint, owner, NULL));
}

static void write_once(scene *s, uint64_t *random) {
    uint64_t owner = FIRST_PASSING + random_below(random, PASSING);
    size_t turn = random_below(random, 1000);
    doppel_error error;
    if (turn < 500)
        insert(s, owner, random_below(random, 2) ? 0 : 1 + random_below(random, 5));
    else if (turn < 900)
        remove_passing(s, owner);
    else if (turn < 980) /* an entry that lasts gets another time: it is there before, meanwhile and afterwards */
        insert(s, random_below(random, LASTING), random_below(random, 2) ? 0 : 1000 + random_below(random, 5));
    else if (turn < 990)
        insert_many(s, FIRST_PASSING + random_below(random, PASSING - 100), 1 + random_below(random, 100));
    else if (turn < 995)
        EXPECT(s, !doppel_index_expire(s->index, 2, NULL));
    else if (turn < 996)
        EXPECT(s, !doppel_index_compact(s->index, &error));
}

/* Writes until enough is done and every reader has read something. */
static void write_on(scene *s) {
    uint64_t random = 99;
    for (size_t i = 0; !atomic_load(&s->wrong); i++) {
        if (i >= s->steps && atomic_load(&s->started) == READERS)
            break;
        write_once(s, &random);
    }
    atomic_store(&s->done, true);
}

static size_t steps(void) {
    const char *suite = getenv("DOPPEL_SUITE"); /* set by scripts/test */
    return suite && !strcmp(suite, "full") ? 400000 : 12000;
}

/* Saves the index and goes on with the file, some times of expiry in it. */
static void reopen(scene *s) {
    char path[80];
    doppel_error error;
    for (uint64_t owner = 0; owner < LASTING; owner += 3)
        insert(s, owner, 1000);
    snprintf(path, sizeof path, "/tmp/doppel-threads.%ld", (long)getpid());
    assert_int_equal(doppel_index_save(s->index, path, &error), DOPPEL_OK);
    doppel_index_free(s->index);
    assert_int_equal(doppel_index_open(path, &s->index, &error), DOPPEL_OK);
    unlink(path);
}

static void run_scene(int bits, bool mapped) {
    scene s = {.bits = bits, .steps = steps()};
    doppel_index_options options = {.size = sizeof options, .bits = bits};
    doppel_error error;
    assert_int_equal(doppel_index_create(&options, &s.index, &error), DOPPEL_OK);
    insert_many(&s, 0, LASTING / 2);
    for (uint64_t owner = LASTING / 2; owner < LASTING; owner++)
        insert(&s, owner, 0);
    if (mapped)
        reopen(&s);
    pthread_t threads[READERS];
    reader readers[READERS];
    for (unsigned i = 0; i < READERS; i++) {
        readers[i] = (reader){.scene = &s, .number = i, .random = i};
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &readers[i]), 0);
    }
    write_on(&s);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    if (s.wrong)
        print_error("%s\n", s.wrong);
    assert_null(s.wrong);
    assert_int_equal(doppel_index_validate(s.index, &error), DOPPEL_OK);
    doppel_index_free(s.index);
}

static void eight_read_while_one_writes(void **state) {
    (void)state;
    run_scene(64, false);
}

static void eight_read_while_one_writes_128_bits(void **state) {
    (void)state;
    run_scene(128, false);
}

/* ---- a mapped file ---- */

static void eight_read_while_one_writes_to_an_opened_file(void **state) {
    (void)state;
    run_scene(64, true);
}

static void *read_mapped(void *argument) {
    reader *r = argument;
    doppel_matches matches = {0};
    for (int i = 0; i < 300; i++)
        find_one(r, r->scene->index, &matches);
    walk_all(r, r->scene->index);
    doppel_matches_free(&matches);
    return NULL;
}

/* Blocks are touched for the first time by eight at once. */
static void eight_read_a_file_that_was_just_opened(void **state) {
    (void)state;
    char path[80];
    scene s = {.bits = 64};
    snprintf(path, sizeof path, "/tmp/doppel-threads.%ld", (long)getpid());
    doppel_error error;
    assert_int_equal(doppel_index_create(NULL, &s.index, &error), DOPPEL_OK);
    insert_many(&s, 0, LASTING);
    assert_int_equal(doppel_index_save(s.index, path, &error), DOPPEL_OK);
    doppel_index_free(s.index);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(doppel_index_open(path, &s.index, &error), DOPPEL_OK);
        pthread_t threads[READERS];
        reader readers[READERS];
        for (unsigned i = 0; i < READERS; i++) {
            readers[i] = (reader){.scene = &s, .number = i, .random = i};
            assert_int_equal(pthread_create(&threads[i], NULL, read_mapped, &readers[i]), 0);
        }
        for (unsigned i = 0; i < READERS; i++)
            pthread_join(threads[i], NULL);
        if (s.wrong)
            print_error("%s\n", s.wrong);
        assert_null(s.wrong);
        doppel_index_free(s.index);
    }
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_read_while_one_writes),
        cmocka_unit_test(eight_read_while_one_writes_128_bits),
        cmocka_unit_test(eight_read_while_one_writes_to_an_opened_file),
        cmocka_unit_test(eight_read_a_file_that_was_just_opened),
        cmocka_unit_test(a_save_mixes_no_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
