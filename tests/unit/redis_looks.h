/* redis_looks.h - a memory in a real Redis by its looks, for tests of what two of them do at the same time. */
#ifndef TESTS_REDIS_LOOKS_H
#define TESTS_REDIS_LOOKS_H

#include "redis_one.h"

#include "known/redis.h"

enum { NOW = 1700000000, TTL = 100000, BANDS = 4 };

static dp_known *known;
static dp_known_counters counters;

static inline uint64_t clock_now(void *user) {
    (void)user;
    return NOW;
}

/* For an expected number of documents; 0: not known. */
static inline dp_known *open_known_for(const dp_rules *rules, uint64_t count) {
    char url[160];
    dp_known *opened;
    doppel_error error = {0};
    const dp_known_options options = {
        .settings = "recipe=page\n", .rules = *rules, .count = count, .now = clock_now, .counters = &counters};
    snprintf(url, sizeof url, "%s?prefix=t", server.url);
    if (dp_known_open(url, &options, &opened, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    return opened;
}

static inline dp_known *open_known(const dp_rules *rules) {
    return open_known_for(rules, 0);
}

static inline dp_redis *redis_of(dp_known *of) {
    return (dp_redis *)of;
}

/* What a function of Redis was called how often. */
static inline long long calls(void) {
    redisReply *reply = redis_say(&server, "INFO commandstats");
    const char *at = strstr(reply->str, "cmdstat_fcall:calls=");
    long long count = at ? atoll(at + strlen("cmdstat_fcall:calls=")) : 0;
    freeReplyObject(reply);
    return count;
}

/* ---- pages ---- */

/* A page and where it is found; what is zero it does not have. */
typedef struct page {
    const char *id, *url, *title;
    uint8_t digest;
    uint64_t fingerprint; /* by distance */
    uint32_t keys[BANDS]; /* by similarity */
} page;

static inline doppel_slice text_of(const char *text) {
    return (doppel_slice){text, text ? strlen(text) : 0};
}

static inline bool by_similarity(const dp_look *look) {
    return look->known->options.rules.by_similarity;
}

static inline dp_query query_of(const dp_look *look, const page *p) {
    dp_query q = {.id = text_of(p->id), .id_given = true, .url = text_of(p->url), .canonical = text_of(p->url)};
    q.title = q.title_key = text_of(p->title);
    q.has_digest = p->digest;
    memset(q.digest, p->digest, sizeof q.digest);
    q.fingerprint[0] = p->fingerprint;
    q.words = 100;
    q.content = by_similarity(look) ? p->keys[0] : p->fingerprint;
    q.keys = p->keys;
    q.key_count = by_similarity(look) ? BANDS : 0;
    return q;
}

#define MUST(call)                          \
    do {                                    \
        doppel_error error_ = {0};          \
        doppel_error *error = &error_;      \
        if ((call) != DOPPEL_OK)            \
            fail_msg("%s", error_.message); \
    } while (0)

/* ---- a look at work ---- */

/* A look that adds a page: fetched, decided, committed, each when the test says so. */
typedef struct adding {
    dp_look *look;
    const page *page;
    dp_query query;
    const dp_query *queries[1];
    uint64_t number; /* that the page got */
} adding;

static inline void begin_adding(adding *a, const page *p) {
    size_t ready;
    *a = (adding){.page = p};
    MUST(dp_look_create(known, &a->look, error));
    MUST(dp_look_begin(a->look, DP_LOOK_ADD, error));
    a->query = query_of(a->look, p);
    a->queries[0] = &a->query;
    MUST(a->look->kind->fetch(a->look, a->queries, 1, &ready, error));
    assert_int_equal(ready, 1);
}

static inline void end_adding(adding *a) {
    MUST(a->look->kind->end(a->look, error));
    dp_look_free(a->look);
}

/* Queues the page as a new document. */
static inline void queue_page(adding *a) {
    const dp_query *q = &a->query;
    dp_buffer bytes[2] = {{0}, {0}};
    MUST(a->look->kind->number(a->look, &a->number, error));
    dp_record record = {.id = q->id, .url = q->url, .canonical = q->canonical, .title = q->title, .words = q->words};
    dp_pending p = {.change = {.number = a->number}, .added = true};
    p.trace = (dp_trace){.number = a->number,
                         .kind = DP_TRACE_DOCUMENT,
                         .expires = a->look->now + TTL,
                         .added = a->look->now,
                         .id_hash = a->look->kind->hash(a->look, q->id),
                         .url_hash = q->canonical.length ? a->look->kind->hash(a->look, q->canonical) : 0,
                         .fingerprint = {q->fingerprint[0]},
                         .content = q->content,
                         .keys = q->keys,
                         .key_count = q->key_count,
                         .title = q->title_key};
    memcpy(p.trace.digest, q->digest, sizeof q->digest);
    assert_true(dp_trace_encode(&p.trace, &bytes[0]) && dp_record_encode(&record, &bytes[1]));
    for (int i = 0; i < 2; i++)
        p.change.part[i] = (doppel_slice){bytes[i].data, bytes[i].size};
    MUST(a->look->kind->queue(a->look, &p, error));
    dp_buffer_free(&bytes[0]);
    dp_buffer_free(&bytes[1]);
}

/* Queues a duplicate at a number. */
static inline void queue_count(adding *a, uint64_t number) {
    const dp_pending p = {.change = {.count = number, .count_at = NOW, .count_reason = DOPPEL_REASON_CONTENT}};
    MUST(a->look->kind->queue(a->look, &p, error));
}

/* Queues the removal of a number. */
static inline void queue_removal(adding *a, uint64_t number) {
    dp_pending p = {.change = {.remove = number}, .removed = true};
    bool found;
    MUST(dp_look_trace(a->look, number, &p.trace, &found, error));
    assert_true(found);
    MUST(a->look->kind->queue(a->look, &p, error));
}

static inline bool commit(adding *a) {
    bool stands;
    MUST(a->look->kind->commit(a->look, &stands, error));
    return stands;
}

/* Adds a page whatever else is there, and gives its number. */
static inline uint64_t add_now(const page *p) {
    adding a;
    begin_adding(&a, p);
    do
        queue_page(&a);
    while (!commit(&a));
    end_adding(&a);
    return a.number;
}

static inline void remove_now(uint64_t number) {
    adding a;
    begin_adding(&a, &(page){.id = "nobody"});
    do
        queue_removal(&a, number);
    while (!commit(&a));
    end_adding(&a);
}

#endif
