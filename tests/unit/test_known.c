/* test_known.c - what the engine knows, against a plain list of traces: after any adds and removals each look-up gives
 * all it must, and what it gives too much is rare. */
#include "support.h"

#include "engine/keys.h"
#include "sketch/sketch.h"

#include <stdio.h>

/* ---- documents ---- */

enum { MOST = 4000, BANDS = 8 };

/* A trace and what it points to. */
typedef struct document {
    dp_trace trace;
    uint32_t keys[BANDS];
    char title[96];
    bool there;
} document;

typedef struct scene {
    dp_known *known;
    document *document; /* number n at n - 1 */
    size_t count;
    uint64_t random;
    bool by_similarity;
} scene;

static const dp_known_options by_distance = {.bits = 64, .distance = 3, .titles = true, .title_similarity = 0.9};
static const dp_known_options by_similarity = {.bits = 64, .by_similarity = true};

static scene begin(const dp_known_options *options, uint64_t seed) {
    scene s = {.random = seed, .by_similarity = options->by_similarity, .document = calloc(MOST, sizeof *s.document)};
    assert_non_null(s.document);
    assert_int_equal(dp_known_create(options, &s.known, NULL), DOPPEL_OK);
    return s;
}

static void end(scene *s) {
    dp_known_free(s->known);
    free(s->document);
}

/* A document that shares much with others: few ids, URLs, digests, fingerprints and titles. */
static document *make(scene *s) {
    document *d = &s->document[s->count++];
    uint64_t *random = &s->random;
    dp_trace *t = &d->trace;
    *t = (dp_trace){.number = s->count, .kind = random_below(random, 5) ? DP_TRACE_DOCUMENT : DP_TRACE_COPY};
    t->expires = random_below(random, 3) ? 0 : 1000 + random_below(random, 1000);
    t->id_hash = random_below(random, 500) * 0x9E3779B97F4A7C15u;
    t->url_hash = random_below(random, 4) ? (1 + random_below(random, 300)) * 0xD6E8FEB86659FD93u : 0;
    if (random_below(random, 4))
        t->digest[random_below(random, 4)] = (uint8_t)(1 + random_below(random, 200));
    t->content = random_below(random, 4);
    uint64_t group = random_below(random, 100);
    t->fingerprint[0] = random_next(&group) ^ (uint64_t)1 << random_below(random, 64);
    for (size_t b = 0; b < BANDS; b++)
        d->keys[b] = (uint32_t)random_below(random, 400) * 77777;
    t->keys = d->keys;
    t->key_count = BANDS;
    int length = snprintf(d->title, sizeof d->title, "a title about number %03zu, which is rather long",
                          random_below(random, 200) * 5 + random_below(random, 2));
    if (random_below(random, 2))
        t->title = (doppel_slice){d->title, (size_t)length};
    return d;
}

static void add(scene *s) {
    document *d = make(s);
    assert_int_equal(dp_known_add(s->known, &d->trace), DOPPEL_OK);
    d->there = true;
}

/* ---- the model ---- */

typedef bool (*has_key)(const document *d, const document *asked);

/* Numbers are ascending and hold all documents that `has` says; gives how many there are too many. */
static size_t check_numbers(const scene *s, const dp_numbers *found, has_key has, const document *asked) {
    size_t at = 0, more = 0;
    for (size_t i = 1; i < found->count; i++)
        assert_true(found->number[i - 1] < found->number[i]);
    for (size_t i = 0; i < s->count; i++) {
        const document *d = &s->document[i];
        bool given = at < found->count && found->number[at] == i + 1, must = d->there && has(d, asked);
        assert_true(given || !must);
        more += given && !must;
        at += given;
    }
    assert_int_equal(at, found->count);
    return more;
}

static bool has_id(const document *d, const document *asked) {
    return d->trace.id_hash == asked->trace.id_hash;
}

static bool has_url(const document *d, const document *asked) {
    return d->trace.url_hash == asked->trace.url_hash;
}

static bool has_digest(const document *d, const document *asked) {
    return d->trace.kind == DP_TRACE_DOCUMENT && !memcmp(d->trace.digest, asked->trace.digest, 32);
}

static bool has_band(const document *d, const document *asked) {
    bool shares = false;
    for (size_t b = 0; b < BANDS; b++)
        shares |= d->keys[b] == asked->keys[b];
    return shares && d->trace.kind == DP_TRACE_DOCUMENT && d->trace.content;
}

static const uint8_t no_digest[32];

static size_t check_keys(scene *s, const document *asked, dp_numbers *found) {
    assert_int_equal(dp_known_find_key(s->known, DP_KEY_ID, asked->trace.id_hash, found), DOPPEL_OK);
    size_t more = check_numbers(s, found, has_id, asked);
    if (asked->trace.url_hash) {
        assert_int_equal(dp_known_find_key(s->known, DP_KEY_URL, asked->trace.url_hash, found), DOPPEL_OK);
        more += check_numbers(s, found, has_url, asked);
    }
    if (memcmp(asked->trace.digest, no_digest, 32)) {
        uint64_t hash = dp_digest_hash(asked->trace.digest);
        assert_int_equal(dp_known_find_key(s->known, DP_KEY_DIGEST, hash, found), DOPPEL_OK);
        more += check_numbers(s, found, has_digest, asked);
    }
    return more;
}

static void check_near(scene *s, const document *asked, doppel_matches *matches) {
    size_t must = 0;
    assert_int_equal(dp_known_find_near(s->known, asked->trace.fingerprint, 3, matches, NULL), DOPPEL_OK);
    for (size_t i = 0; i < s->count; i++) {
        const document *d = &s->document[i];
        must += d->there && d->trace.kind == DP_TRACE_DOCUMENT && d->trace.content &&
                doppel_distance(d->trace.fingerprint[0], asked->trace.fingerprint[0]) <= 3;
    }
    assert_int_equal(matches->count, must);
    for (size_t i = 0; i < matches->count; i++)
        assert_true(s->document[matches->match[i].owner - 1].there);
}

static void check_alive(scene *s) {
    uint64_t ended[MOST];
    size_t found = dp_known_expired(s->known, 1500, ended, MOST), at = 0;
    for (size_t i = 0; i < s->count; i++) {
        const document *d = &s->document[i];
        bool over = d->trace.expires && d->trace.expires <= 1500;
        assert_int_equal(dp_known_alive(s->known, i + 1, 1500), d->there && !over);
        if (d->there && over)
            assert_int_equal(ended[at++], i + 1);
    }
    assert_int_equal(at, found);
    assert_int_equal(dp_known_expired(s->known, 1500, ended, 3), found < 3 ? found : 3);
    assert_false(dp_known_alive(s->known, 0, 0));
    assert_false(dp_known_alive(s->known, s->count + 1, 0));
    assert_false(dp_known_alive(s->known, UINT64_MAX, 0));
}

/* The owner with the most similar title, as comparing all of them tells. */
static dp_title_hit best_title(const scene *s, const dp_title_query *query) {
    dp_title_hit best = {0};
    for (size_t i = 0; i < s->count; i++) {
        const document *d = &s->document[i];
        doppel_slice title = d->trace.title;
        size_t distance;
        if (!d->there || d->trace.kind != DP_TRACE_DOCUMENT || !title.length || i + 1 == query->except[0] ||
            i + 1 >= query->below || (d->trace.expires && d->trace.expires <= query->now))
            continue;
        assert_int_equal(
            doppel_levenshtein(title.data, title.length, query->title.data, query->title.length, SIZE_MAX, &distance),
            DOPPEL_OK);
        size_t longer = title.length > query->title.length ? title.length : query->title.length;
        double similarity = 1 - (double)distance / (double)longer;
        if (similarity >= 0.9 && similarity > best.similarity)
            best = (dp_title_hit){i + 1, similarity};
    }
    return best;
}

static void check_title(scene *s, const document *asked, dp_title_matches *matches) {
    dp_title_query query = {.title = {asked->title, strlen(asked->title)},
                            .now = 1500,
                            .below = 1 + random_below(&s->random, MOST),
                            .except = {random_below(&s->random, 2) ? asked->trace.number : 0},
                            .share = 1};
    dp_title_hit hit, best = best_title(s, &query);
    assert_int_equal(dp_known_find_title(s->known, &query, matches, &hit), DOPPEL_OK);
    assert_int_equal(hit.number, best.number);
    assert_true(hit.similarity > best.similarity - 1e-9 && hit.similarity < best.similarity + 1e-9);
}

static void check_stats(scene *s) {
    dp_known_stats stats;
    size_t documents = 0, copies = 0;
    for (size_t i = 0; i < s->count; i++) {
        documents += s->document[i].there && s->document[i].trace.kind == DP_TRACE_DOCUMENT;
        copies += s->document[i].there && s->document[i].trace.kind == DP_TRACE_COPY;
    }
    dp_known_get_stats(s->known, &stats);
    assert_int_equal(stats.documents, documents);
    assert_int_equal(stats.copies, copies);
    assert_true(stats.keys_bytes > 0 && stats.near_bytes > 0);
}

/* What was asked and what came, for all kinds of look-ups. */
typedef struct answers {
    dp_numbers numbers;
    doppel_matches near;
    dp_title_matches titles;
} answers;

static void check_all(scene *s, size_t questions) {
    answers a = {0};
    size_t more = 0;
    for (size_t q = 0; q < questions; q++) {
        const document *asked = &s->document[random_below(&s->random, s->count)];
        more += check_keys(s, asked, &a.numbers);
        if (s->by_similarity) {
            assert_int_equal(dp_known_find_bands(s->known, asked->keys, BANDS, &a.numbers), DOPPEL_OK);
            more += check_numbers(s, &a.numbers, has_band, asked);
        } else {
            check_near(s, asked, &a.near);
            check_title(s, asked, &a.titles);
        }
    }
    assert_true(more < 3);
    check_alive(s);
    check_stats(s);
    dp_numbers_free(&a.numbers);
    doppel_matches_free(&a.near);
    dp_title_matches_free(&a.titles);
}

/* ---- adding and removing ---- */

static void change_at_random(const dp_known_options *options) {
    scene s = begin(options, 11);
    while (s.count < MOST) {
        if (s.count < 300 || random_below(&s.random, 5) < 3) {
            add(&s);
        } else {
            document *d = &s.document[random_below(&s.random, s.count)];
            assert_int_equal(dp_known_remove(s.known, &d->trace), DOPPEL_OK);
            d->there = false;
        }
        if (s.count % 500 == 0)
            check_all(&s, 20);
    }
    check_all(&s, 100);
    for (size_t i = 0; i < s.count; i++) {
        assert_int_equal(dp_known_remove(s.known, &s.document[i].trace), DOPPEL_OK);
        s.document[i].there = false;
    }
    check_all(&s, 20);
    end(&s);
}

static void all_is_found_by_distance(void **state) {
    (void)state;
    change_at_random(&by_distance);
}

static void all_is_found_by_similarity(void **state) {
    (void)state;
    change_at_random(&by_similarity);
}

/* What is there is not added twice, and removals have no trace of their own. */
static void a_number_is_there_once(void **state) {
    (void)state;
    scene s = begin(&by_distance, 3);
    for (size_t i = 0; i < 50; i++)
        add(&s);
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(dp_known_add(s.known, &s.document[i].trace), DOPPEL_OK);
    dp_trace removal = {.number = 51, .kind = DP_TRACE_REMOVAL, .of = 3};
    assert_int_equal(dp_known_add(s.known, &removal), DOPPEL_OK);
    check_all(&s, 50);
    for (size_t i = 0; i < 50; i += 2) {
        assert_int_equal(dp_known_remove(s.known, &s.document[i].trace), DOPPEL_OK);
        assert_int_equal(dp_known_remove(s.known, &s.document[i].trace), DOPPEL_OK);
        s.document[i].there = false;
    }
    check_all(&s, 50);
    end(&s);
}

static void numbers_that_cannot_be_are_refused(void **state) {
    (void)state;
    scene s = begin(&by_distance, 3);
    dp_trace trace = {.kind = DP_TRACE_DOCUMENT, .id_hash = 5, .content = true};
    assert_int_equal(dp_known_add(s.known, &trace), DOPPEL_ERROR_USAGE);
    trace.number = DP_KNOWN_NUMBERS + 1;
    assert_int_equal(dp_known_add(s.known, &trace), DOPPEL_ERROR_STORE);
    trace.number = 7;
    trace.key_count = DP_MOST_BANDS + 1;
    assert_int_equal(dp_known_add(s.known, &trace), DOPPEL_ERROR_USAGE);
    trace.key_count = 0;
    trace.number = (uint64_t)1 << 33; /* far from the others */
    assert_int_equal(dp_known_add(s.known, &trace), DOPPEL_OK);
    dp_numbers found = {0};
    assert_int_equal(dp_known_find_key(s.known, DP_KEY_ID, 5, &found), DOPPEL_OK);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.number[0], trace.number);
    assert_true(dp_known_alive(s.known, trace.number, 1));
    dp_numbers_free(&found);
    end(&s);
}

/* ---- loading ---- */

typedef struct loading {
    scene *scene;
    dp_known_load *load;
    _Atomic size_t next;
} loading;

/* Numbers come out of order, and each thread has some of all. */
static void load_some(void *user, size_t thread) {
    loading *l = user;
    (void)thread;
    for (size_t i; (i = atomic_fetch_add(&l->next, 1)) < l->scene->count;) {
        document *d = &l->scene->document[(i * 1787) % l->scene->count];
        if (dp_known_load_add(l->load, &d->trace) == DOPPEL_OK)
            d->there = true;
    }
}

static void load_all(const dp_known_options *options, int threads) {
    dp_known_options all = *options;
    all.threads = threads;
    scene s = begin(&all, 5);
    while (s.count < MOST)
        make(&s);
    loading l = {.scene = &s};
    assert_int_equal(dp_known_load_begin(s.known, &l.load), DOPPEL_OK);
    dp_run_threads(3, load_some, &l);
    assert_int_equal(dp_known_load_end(l.load), DOPPEL_OK);
    check_all(&s, 50);
    for (size_t i = 0; i < MOST; i += 3) {
        assert_int_equal(dp_known_remove(s.known, &s.document[i].trace), DOPPEL_OK);
        s.document[i].there = false;
    }
    check_all(&s, 50);
    end(&s);
}

static void what_is_loaded_is_as_if_added(void **state) {
    (void)state;
    for (int threads = 1; threads <= 4; threads += 3) {
        load_all(&by_distance, threads);
        load_all(&by_similarity, threads);
    }
}

static void a_load_joins_what_is_there(void **state) {
    (void)state;
    scene s = begin(&by_distance, 5);
    for (size_t i = 0; i < 1000; i++)
        add(&s);
    for (int round = 0; round < 3; round++) {
        dp_known_load *load;
        assert_int_equal(dp_known_load_begin(s.known, &load), DOPPEL_OK);
        for (size_t i = 0; i < (round ? 500 : 0); i++) {
            document *d = make(&s);
            assert_int_equal(dp_known_load_add(load, &d->trace), DOPPEL_OK);
            d->there = true;
        }
        assert_int_equal(dp_known_load_end(load), DOPPEL_OK);
        check_all(&s, 30);
    }
    end(&s);
}

static void a_bad_trace_ends_a_load(void **state) {
    (void)state;
    scene s = begin(&by_distance, 5);
    dp_known_load *load;
    dp_trace trace = {.kind = DP_TRACE_DOCUMENT};
    assert_int_equal(dp_known_load_begin(s.known, &load), DOPPEL_OK);
    assert_int_equal(dp_known_load_add(load, &trace), DOPPEL_ERROR_USAGE);
    assert_int_equal(dp_known_load_end(load), DOPPEL_ERROR_USAGE);
    end(&s);
}

/* ---- keys that everybody has ---- */

/* A hundred thousand documents with one id, one digest and one title, added and loaded from both ends, and removed in
 * three orders: were any of it quadratic, this would take minutes. */
static dp_trace hot_trace(uint64_t number) {
    static const char title[] = "the same title for all of them";
    dp_trace trace = {.number = number, .kind = DP_TRACE_DOCUMENT, .id_hash = 1, .url_hash = 2, .content = true};
    trace.digest[0] = 3;
    trace.title = (doppel_slice){title, sizeof title - 1};
    return trace;
}

static void expect_hot(dp_known *known, dp_key key, uint64_t hash, size_t count) {
    dp_numbers found = {0};
    assert_int_equal(dp_known_find_key(known, key, hash, &found), DOPPEL_OK);
    assert_int_equal(found.count, count);
    for (size_t i = 1; i < found.count; i++)
        assert_true(found.number[i - 1] < found.number[i]);
    dp_numbers_free(&found);
}

/* Takes out number after number; `order` 0: the first first, 1: the last first, 2: all over. */
static void remove_hot(dp_known *known, size_t count, int order) {
    for (size_t i = 0; i < count; i++) {
        size_t at = order == 0 ? i : order == 1 ? count - 1 - i : (i * 7919) % count;
        dp_trace trace = hot_trace(at + 1);
        assert_int_equal(dp_known_remove(known, &trace), DOPPEL_OK);
        if (i == count / 3)
            expect_hot(known, DP_KEY_URL, 2, count - i - 1);
    }
    expect_hot(known, DP_KEY_ID, 1, 0);
    expect_hot(known, DP_KEY_DIGEST, 3, 0);
}

static void keys_of_all_stay_fast(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    for (int order = 0; order < 3; order++) {
        dp_known *known;
        dp_known_load *load;
        assert_int_equal(dp_known_create(&by_distance, &known, NULL), DOPPEL_OK);
        assert_int_equal(dp_known_load_begin(known, &load), DOPPEL_OK);
        for (size_t i = COUNT / 2; i > 0; i--) {
            dp_trace trace = hot_trace(i);
            assert_int_equal(dp_known_load_add(load, &trace), DOPPEL_OK);
        }
        assert_int_equal(dp_known_load_end(load), DOPPEL_OK);
        for (size_t i = COUNT / 2; i < COUNT; i++) {
            dp_trace trace = hot_trace(i + 1);
            assert_int_equal(dp_known_add(known, &trace), DOPPEL_OK);
        }
        expect_hot(known, DP_KEY_URL, 2, COUNT);
        remove_hot(known, COUNT, order);
        dp_known_free(known);
    }
}

/* ---- numbers that end ---- */

/* Pages of numbers that are over are used again: memory stays, and old numbers do not come back to life. */
static void pages_are_used_again(void **state) {
    (void)state;
    dp_known *known;
    dp_known_stats stats;
    uint64_t most = 0;
    assert_int_equal(dp_known_create(&by_similarity, &known, NULL), DOPPEL_OK);
    for (uint64_t n = 1; n < 1000000; n++) {
        dp_trace trace = {.number = n, .kind = DP_TRACE_COPY, .id_hash = n, .expires = n};
        assert_int_equal(dp_known_add(known, &trace), DOPPEL_OK);
        if (n > 1000) {
            trace = (dp_trace){.number = n - 1000, .kind = DP_TRACE_COPY, .id_hash = n - 1000, .expires = n - 1000};
            assert_int_equal(dp_known_remove(known, &trace), DOPPEL_OK);
            assert_false(dp_known_alive(known, n - 1000, 0));
        }
        if (n % 100000 == 0) {
            dp_known_get_stats(known, &stats);
            assert_true(!most || stats.keys_bytes < most + most / 4);
            most = most ? most : stats.keys_bytes;
            assert_int_equal(stats.copies, 1000);
        }
    }
    dp_known_free(known);
}

static void times_beyond_32_bits_are_held(void **state) {
    (void)state;
    dp_known *known;
    assert_int_equal(dp_known_create(&by_similarity, &known, NULL), DOPPEL_OK);
    dp_trace trace = {.number = 1, .kind = DP_TRACE_COPY, .expires = UINT64_MAX};
    assert_int_equal(dp_known_add(known, &trace), DOPPEL_OK);
    assert_true(dp_known_alive(known, 1, UINT32_MAX - 2U));
    assert_false(dp_known_alive(known, 1, UINT32_MAX));
    trace = (dp_trace){.number = 2, .kind = DP_TRACE_COPY};
    assert_int_equal(dp_known_add(known, &trace), DOPPEL_OK);
    assert_true(dp_known_alive(known, 2, UINT64_MAX));
    uint64_t ended[2];
    assert_int_equal(dp_known_expired(known, UINT64_MAX, ended, 2), 1);
    dp_known_free(known);
}

/* ---- titles ---- */

static dp_title_hit ask(dp_known *known, const char *title, double share) {
    dp_title_matches matches = {0};
    dp_title_hit hit;
    dp_title_query query = {.title = {title, strlen(title)}, .below = UINT64_MAX, .share = share};
    assert_int_equal(dp_known_find_title(known, &query, &matches, &hit), DOPPEL_OK);
    dp_title_matches_free(&matches);
    return hit;
}

static void put(dp_known *known, uint64_t number, const char *title) {
    dp_trace trace = {.number = number, .kind = DP_TRACE_DOCUMENT, .id_hash = number, .title = {title, strlen(title)}};
    assert_int_equal(dp_known_add(known, &trace), DOPPEL_OK);
}

static const char common[] = "a title that is everywhere", rare[] = "a title that has one owner";

static void titles_that_are_everywhere_do_not_count(void **state) {
    (void)state;
    dp_known *known;
    assert_int_equal(dp_known_create(&by_distance, &known, NULL), DOPPEL_OK);
    put(known, 1, rare);
    for (uint64_t n = 2; n < 10; n++)
        put(known, n, common);
    assert_int_equal(ask(known, common, 0.01).number, 2); /* eight are few */
    put(known, 10, common);
    assert_int_equal(ask(known, common, 0.01).number, 0);
    assert_int_equal(ask(known, common, 0.95).number, 2); /* but not more than this share */
    assert_int_equal(ask(known, "a title that is everywhare", 0.01).number, 0);
    assert_int_equal(ask(known, rare, 0.01).number, 1);
    dp_known_free(known);
}

/* Duplicates are not added, but their title counts as often as it came. */
static void titles_that_came_often_do_not_count(void **state) {
    (void)state;
    dp_known *known;
    const char *typo = "a title that has one owmer";
    assert_int_equal(dp_known_create(&by_distance, &known, NULL), DOPPEL_OK);
    put(known, 1, rare);
    put(known, 2, common);
    doppel_slice seen = {rare, sizeof rare - 1};
    assert_int_equal(dp_known_title_seen(known, seen, 7), DOPPEL_OK);
    assert_int_equal(ask(known, rare, 0.1).number, 1);
    assert_int_equal(ask(known, typo, 0.1).number, 1);
    assert_int_equal(dp_known_title_seen(known, seen, 1), DOPPEL_OK);
    assert_int_equal(ask(known, rare, 0.1).number, 0);
    assert_int_equal(ask(known, typo, 0.1).number, 0);
    assert_int_equal(ask(known, common, 0.1).number, 2);
    /* One that came often in another spelling. */
    seen = (doppel_slice){"a title that is everywhera", sizeof common - 1};
    assert_int_equal(dp_known_title_seen(known, seen, 9), DOPPEL_OK);
    assert_int_equal(ask(known, seen.data, 0.1).number, 0);
    assert_int_equal(ask(known, common, 0.1).number, 2);
    for (int i = 0; i < 500; i++) {
        char title[64];
        seen = (doppel_slice){title, (size_t)snprintf(title, sizeof title, "another title, number %d", i)};
        assert_int_equal(dp_known_title_seen(known, seen, 1), DOPPEL_OK);
    }
    assert_int_equal(ask(known, rare, 0.01).number, 0);
    assert_int_equal(ask(known, rare, 0.5).number, 1);
    dp_known_free(known);
}

/* Titles of all widths of code points have the hash of their text. */
static void hashes_of_titles_and_entries_agree(void **state) {
    (void)state;
    static const char *const titles[] = {"a plain title of letters", "ein Titel mit Ümläuten darin",
                                         "заголовок из букв", "一个只有汉字的标题在这里",
                                         "a title with \U0001F600 in it"};
    dp_titles_index *index;
    dp_title_matches found = {0};
    assert_int_equal(dp_titles_index_create(0.9, &index), DOPPEL_OK);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        assert_int_equal(dp_titles_index_add(index, titles[i], strlen(titles[i]), i), DOPPEL_OK);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        uint64_t hash;
        assert_int_equal(dp_titles_index_find(index, titles[i], strlen(titles[i]), &found), DOPPEL_OK);
        assert_int_equal(found.count, 1);
        assert_int_equal(dp_titles_index_hash(index, titles[i], strlen(titles[i]), &hash), DOPPEL_OK);
        assert_int_equal(dp_titles_index_hash_of(index, &found.match[0]), hash);
    }
    dp_title_matches_free(&found);
    dp_titles_index_free(index);
}

/* The list of empty titles is in the form that normalising gives. */
static void empty_titles_do_not_count(void **state) {
    (void)state;
    static const char *const empty[] = {"Breaking News!",
                                        "404 - Page not found",
                                        "Just a moment...",
                                        "Untitled Document",
                                        "ページが見つかりません",
                                        "Страница не найдена",
                                        "Página no encontrada",
                                        "Short one",
                                        "",
                                        "Datenschutzerklärung",
                                        "페이지를 찾을 수 없습니다"};
    static const char *const full[] = {"Breaking news: man bites dog", "Ten letter",
                                       "A page that was not found in Rome"};
    doppel_sketcher *sketcher;
    doppel_slice title;
    assert_int_equal(dp_title_sketcher_create(&sketcher, NULL), DOPPEL_OK);
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        assert_int_equal(dp_title_normalise(sketcher, empty[i], strlen(empty[i]), &title), DOPPEL_OK);
        if (dp_title_counts(title))
            fail_msg("%s", empty[i]);
    }
    for (size_t i = 0; i < sizeof full / sizeof *full; i++) {
        assert_int_equal(dp_title_normalise(sketcher, full[i], strlen(full[i]), &title), DOPPEL_OK);
        assert_true(dp_title_counts(title));
    }
    doppel_sketcher_free(sketcher);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_found_by_distance),
        cmocka_unit_test(all_is_found_by_similarity),
        cmocka_unit_test(a_number_is_there_once),
        cmocka_unit_test(numbers_that_cannot_be_are_refused),
        cmocka_unit_test(what_is_loaded_is_as_if_added),
        cmocka_unit_test(a_load_joins_what_is_there),
        cmocka_unit_test(a_bad_trace_ends_a_load),
        cmocka_unit_test(keys_of_all_stay_fast),
        cmocka_unit_test(pages_are_used_again),
        cmocka_unit_test(times_beyond_32_bits_are_held),
        cmocka_unit_test(titles_that_are_everywhere_do_not_count),
        cmocka_unit_test(titles_that_came_often_do_not_count),
        cmocka_unit_test(hashes_of_titles_and_entries_agree),
        cmocka_unit_test(empty_titles_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
