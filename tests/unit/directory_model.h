/* directory_model.h - a directory, against a plain list of traces: each look-up gives all it must, and what it
 * gives too much is rare. */
#ifndef TESTS_DIRECTORY_MODEL_H
#define TESTS_DIRECTORY_MODEL_H

#include "best_title.h"
#include "support.h"

#include <stdio.h>

/* ---- documents ---- */

enum { MOST = 2000, BANDS = 8 };

/* A trace and what it points to. */
typedef struct document {
    dp_trace trace;
    uint32_t keys[BANDS];
    char title[96];
    bool there;
} document;

typedef struct scene {
    dp_directory *directory;
    document *document; /* number n at n - 1 */
    size_t count;
    uint64_t random;
    bool by_similarity;
} scene;

static const dp_directory_options by_distance = {.bits = 64, .distance = 3, .titles = true, .title_similarity = 0.9};
static const dp_directory_options by_similarity = {.bits = 64, .by_similarity = true};

static inline scene begin(const dp_directory_options *options, uint64_t seed) {
    scene s = {.random = seed, .by_similarity = options->by_similarity, .document = calloc(MOST, sizeof *s.document)};
    assert_non_null(s.document);
    assert_int_equal(dp_directory_create(options, &s.directory, NULL), DOPPEL_OK);
    return s;
}

static inline void end(scene *s) {
    dp_directory_free(s->directory);
    free(s->document);
}

/* A document that shares much with others: few ids, URLs, digests, fingerprints and titles. */
static inline document *make(scene *s) {
    document *d = &s->document[s->count++];
    uint64_t *random = &s->random;
    dp_trace *t = &d->trace;
    *t = (dp_trace){.number = s->count, .kind = random_below(random, 5) ? DP_TRACE_DOCUMENT : DP_TRACE_COPY};
    for (t->of = 1 + random_below(random, s->count); s->document[t->of - 1].trace.kind == DP_TRACE_COPY && t->of;
         t->of--)
        ;
    if (!t->of || t->kind == DP_TRACE_DOCUMENT)
        *t = (dp_trace){.number = s->count, .kind = DP_TRACE_DOCUMENT};
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

static inline void add(scene *s) {
    document *d = make(s);
    assert_int_equal(dp_directory_add(s->directory, &d->trace), DOPPEL_OK);
    d->there = true;
}

/* ---- the model ---- */

typedef bool (*has_key)(const document *d, const document *asked);

/* Numbers are ascending and hold all documents that `has` says; gives how many there are too many. */
static inline size_t check_numbers(const scene *s, const dp_numbers *found, has_key has, const document *asked) {
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

static inline bool has_id(const document *d, const document *asked) {
    return d->trace.id_hash == asked->trace.id_hash;
}

static inline bool has_url(const document *d, const document *asked) {
    return d->trace.url_hash == asked->trace.url_hash;
}

static inline bool has_digest(const document *d, const document *asked) {
    return d->trace.kind == DP_TRACE_DOCUMENT && !memcmp(d->trace.digest, asked->trace.digest, 32);
}

static inline bool has_band(const document *d, const document *asked) {
    bool shares = false;
    for (size_t b = 0; b < BANDS; b++)
        shares |= d->keys[b] == asked->keys[b];
    return shares && d->trace.kind == DP_TRACE_DOCUMENT && d->trace.content;
}

static const uint8_t no_digest[32];

static inline size_t check_keys(scene *s, const document *asked, dp_numbers *found) {
    assert_int_equal(dp_directory_find_key(s->directory, DP_KEY_ID, asked->trace.id_hash, found), DOPPEL_OK);
    size_t more = check_numbers(s, found, has_id, asked);
    if (asked->trace.url_hash) {
        assert_int_equal(dp_directory_find_key(s->directory, DP_KEY_URL, asked->trace.url_hash, found), DOPPEL_OK);
        more += check_numbers(s, found, has_url, asked);
    }
    if (memcmp(asked->trace.digest, no_digest, 32)) {
        uint64_t hash = dp_digest_hash(asked->trace.digest);
        assert_int_equal(dp_directory_find_key(s->directory, DP_KEY_DIGEST, hash, found), DOPPEL_OK);
        more += check_numbers(s, found, has_digest, asked);
    }
    return more;
}

static inline void check_near(scene *s, const document *asked, doppel_matches *matches) {
    size_t must = 0;
    assert_int_equal(dp_directory_find_near(s->directory, asked->trace.fingerprint, 3, matches, NULL), DOPPEL_OK);
    for (size_t i = 0; i < s->count; i++) {
        const document *d = &s->document[i];
        must += d->there && d->trace.kind == DP_TRACE_DOCUMENT && d->trace.content &&
                doppel_distance(d->trace.fingerprint[0], asked->trace.fingerprint[0]) <= 3;
    }
    assert_int_equal(matches->count, must);
    for (size_t i = 0; i < matches->count; i++)
        assert_true(s->document[matches->match[i].owner - 1].there);
}

static inline void check_alive(scene *s) {
    uint64_t ended[MOST];
    size_t found = dp_directory_expired(s->directory, 1500, ended, MOST), at = 0;
    for (size_t i = 0; i < s->count; i++) {
        const document *d = &s->document[i];
        bool over = d->trace.expires && d->trace.expires <= 1500;
        assert_int_equal(dp_directory_alive(s->directory, i + 1, 1500), d->there && !over);
        if (d->there && over)
            assert_int_equal(ended[at++], i + 1);
    }
    assert_int_equal(at, found);
    assert_int_equal(dp_directory_expired(s->directory, 1500, ended, 3), found < 3 ? found : 3);
    assert_false(dp_directory_alive(s->directory, 0, 0));
    assert_false(dp_directory_alive(s->directory, s->count + 1, 0));
    assert_false(dp_directory_alive(s->directory, UINT64_MAX, 0));
}

/* The owner with the most similar title, as comparing all of them tells. */
static inline dp_title_hit best_title(const scene *s, const dp_title_search *query) {
    dp_title_hit best = {0};
    for (size_t i = 0; i < s->count; i++) {
        const document *d = &s->document[i];
        doppel_slice title = d->trace.title;
        size_t distance;
        if (!d->there || d->trace.kind != DP_TRACE_DOCUMENT || !title.length || i + 1 == query->except[0] ||
            i + 1 >= query->below || (d->trace.expires && d->trace.expires <= query->now))
            continue;
        assert_int_equal(doppel_levenshtein(title, query->title, SIZE_MAX, &distance), DOPPEL_OK);
        size_t longer = title.length > query->title.length ? title.length : query->title.length;
        double similarity = 1 - (double)distance / (double)longer;
        if (similarity >= 0.9 && similarity > best.similarity)
            best = (dp_title_hit){i + 1, similarity};
    }
    return best;
}

static inline void check_title(scene *s, const document *asked, dp_title_matches *matches) {
    dp_title_search query = {.title = {asked->title, strlen(asked->title)},
                             .now = 1500,
                             .below = 1 + random_below(&s->random, MOST),
                             .except = {random_below(&s->random, 2) ? asked->trace.number : 0},
                             .share = 1};
    dp_title_hit hit, best = best_title(s, &query);
    assert_int_equal(find_best_title(s->directory, &query, matches, &hit), DOPPEL_OK);
    assert_int_equal(hit.number, best.number);
    assert_true(hit.similarity > best.similarity - 1e-9 && hit.similarity < best.similarity + 1e-9);
}

static inline void check_stats(scene *s) {
    dp_directory_stats stats;
    size_t documents = 0, copies = 0;
    for (size_t i = 0; i < s->count; i++) {
        documents += s->document[i].there && s->document[i].trace.kind == DP_TRACE_DOCUMENT;
        copies += s->document[i].there && s->document[i].trace.kind == DP_TRACE_COPY;
    }
    dp_directory_get_stats(s->directory, &stats);
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

static inline void check_all(scene *s, size_t questions) {
    answers a = {0};
    size_t more = 0;
    for (size_t q = 0; q < questions; q++) {
        const document *asked = &s->document[random_below(&s->random, s->count)];
        more += check_keys(s, asked, &a.numbers);
        if (s->by_similarity) {
            assert_int_equal(dp_directory_find_bands(s->directory, asked->keys, BANDS, &a.numbers), DOPPEL_OK);
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

#endif
