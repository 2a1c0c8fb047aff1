/* test_directory_threads.c - one thread changes what is known while others ask. `Lasting` documents are never removed,
 * so that every reader finds each of them by each of its keys at all times; `passing` ones come and go around them,
 * share some of their keys, and make every table grow and shrink. Run under the thread sanitizer too. */
#include "best_title.h"
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { READERS = 4, LASTING = 2000, PASSING = 3000, BANDS = 6, TITLE = 64 };

typedef struct scene {
    dp_directory *directory;
    bool by_similarity;
    atomic_bool done;
    _Atomic(const char *) wrong;
    _Atomic uint64_t rounds;
} scene;

/* What a document has follows from its number. */
typedef struct document {
    dp_trace trace;
    uint32_t keys[BANDS];
    char title[TITLE];
} document;

static void fill(document *d, uint64_t number) {
    uint64_t random = number, shared = number % 50;
    *d = (document){.trace = {.number = number, .kind = DP_TRACE_DOCUMENT, .content = true}};
    d->trace.id_hash = random_next(&random);
    d->trace.url_hash = 1 + shared; /* long lists */
    memcpy(d->trace.digest, &random, sizeof random);
    d->trace.fingerprint[0] = random_next(&random);
    for (size_t b = 0; b < BANDS; b++)
        d->keys[b] = (uint32_t)(b ? random_next(&random) : shared);
    d->trace.keys = d->keys;
    d->trace.key_count = BANDS;
    int length = snprintf(d->title, sizeof d->title, "%016llx is what it is called", (unsigned long long)random);
    d->trace.title = (doppel_slice){d->title, (size_t)length};
}

/* ---- readers ---- */

typedef struct answers {
    dp_numbers numbers;
    doppel_matches near;
    dp_title_matches titles;
} answers;

static bool holds(const dp_numbers *numbers, uint64_t number) {
    bool found = false;
    for (size_t i = 0; i < numbers->count; i++)
        found |= numbers->number[i] == number;
    return found;
}

static void expect_content(scene *s, const document *d, answers *a) {
    uint64_t number = d->trace.number;
    if (s->by_similarity) {
        EXPECT(s, !dp_directory_find_bands(s->directory, d->keys, BANDS, &a->numbers) && holds(&a->numbers, number));
        return;
    }
    bool found = false;
    EXPECT(s, !dp_directory_find_near(s->directory, d->trace.fingerprint, 2, &a->near, NULL));
    for (size_t i = 0; i < a->near.count; i++)
        found |= a->near.match[i].owner == number;
    EXPECT(s, found);
    dp_title_search query = {.title = d->trace.title, .below = UINT64_MAX, .share = 0.1};
    dp_title_hit hit;
    EXPECT(s, !find_best_title(s->directory, &query, &a->titles, &hit));
    EXPECT(s, hit.number == number && hit.similarity == 1);
}

static void expect_document(scene *s, const document *d, answers *a) {
    uint64_t number = d->trace.number, hash = dp_digest_hash(d->trace.digest);
    EXPECT(s, dp_directory_alive(s->directory, number, 5));
    EXPECT(s, !dp_directory_find_key(s->directory, DP_KEY_ID, d->trace.id_hash, &a->numbers) &&
                  holds(&a->numbers, number));
    EXPECT(s, !dp_directory_find_key(s->directory, DP_KEY_URL, d->trace.url_hash, &a->numbers) &&
                  holds(&a->numbers, number));
    EXPECT(s, !dp_directory_find_key(s->directory, DP_KEY_DIGEST, hash, &a->numbers) && holds(&a->numbers, number));
    expect_content(s, d, a);
}

static void *read_on(void *user) {
    scene *s = user;
    answers a = {0};
    document d;
    uint64_t random = (uint64_t)(uintptr_t)&a, ended[8];
    while (!atomic_load(&s->done)) {
        /* Lasting ones have even numbers, so that they share pages and lists with the others. */
        fill(&d, 2 * (1 + random_below(&random, LASTING)));
        expect_document(s, &d, &a);
        if (random_below(&random, 50) == 0) {
            dp_directory_stats stats;
            dp_directory_get_stats(s->directory, &stats);
            EXPECT(s, stats.documents >= LASTING && stats.documents <= LASTING + PASSING);
            dp_directory_expired(s->directory, 100, ended, 8);
        }
        atomic_fetch_add(&s->rounds, 1);
    }
    dp_numbers_free(&a.numbers);
    doppel_matches_free(&a.near);
    dp_title_matches_free(&a.titles);
    return NULL;
}

/* ---- the writer ---- */

static void write_on(scene *s) {
    document d;
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < PASSING; i++) {
            fill(&d, round * 200000 + 2 * i + 1); /* other pages each time */
            d.trace.expires = i % 2 ? 50 : 0;
            EXPECT(s, !dp_directory_add(s->directory, &d.trace));
            if (i % 10 == 0)
                EXPECT(s, !dp_directory_title_seen(s->directory, d.trace.number, 1));
        }
        for (uint64_t i = 0; i < PASSING; i++) {
            fill(&d, round * 200000 + 2 * ((i * 1787) % PASSING) + 1);
            EXPECT(s, !dp_directory_remove(s->directory, &d.trace));
        }
    }
}

static void run(bool by_similarity) {
    const dp_directory_options options = {
        .bits = 64, .distance = 3, .by_similarity = by_similarity, .titles = !by_similarity, .title_similarity = 0.9};
    scene s = {.by_similarity = by_similarity};
    pthread_t reader[READERS];
    document d;
    assert_int_equal(dp_directory_create(&options, &s.directory, NULL), DOPPEL_OK);
    for (uint64_t i = 0; i < LASTING; i++) {
        fill(&d, 2 * (i + 1));
        assert_int_equal(dp_directory_add(s.directory, &d.trace), DOPPEL_OK);
    }
    for (size_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&reader[i], NULL, read_on, &s), 0);
    while (atomic_load(&s.rounds) < READERS)
        sched_yield();
    write_on(&s);
    atomic_store(&s.done, true);
    for (size_t i = 0; i < READERS; i++)
        pthread_join(reader[i], NULL);
    if (atomic_load(&s.wrong))
        fail_msg("%s", atomic_load(&s.wrong));
    dp_directory_free(s.directory);
}

static void readers_miss_nothing_by_distance(void **state) {
    (void)state;
    run(false);
}

static void readers_miss_nothing_by_similarity(void **state) {
    (void)state;
    run(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_miss_nothing_by_distance),
        cmocka_unit_test(readers_miss_nothing_by_similarity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
