/* redis_memories.h - engines over a memory in a real Redis, for tests: opened, asked, filled. Their clock is `now`. */
#ifndef TESTS_REDIS_MEMORIES_H
#define TESTS_REDIS_MEMORIES_H

#include "redis_one.h"

#include "doppel.h"

enum { NOW = 1700000000, TTL = 1000, HOUR = 3600 };

static uint64_t now = NOW;

static inline uint64_t clock_now(void *user) {
    (void)user;
    return now;
}

static inline int start_empty(void **state) {
    now = NOW;
    return empty(state);
}

static inline const char *memory_url(void) {
    static char url[160];
    snprintf(url, sizeof url, "%s?prefix=t", server.url);
    return url;
}

/* ---- engines ---- */

static inline doppel_engine_options by_distance(void) {
    return (doppel_engine_options){.near = DOPPEL_NEAR_DISTANCE, .ttl = TTL};
}

static inline doppel_engine_options with_titles(void) {
    doppel_engine_options options = by_distance();
    options.titles = DOPPEL_SWITCH_ON;
    options.on_duplicate = DOPPEL_DUPLICATE_LINK;
    return options;
}

/* By the clock of the tests, unless they have another one. */
static inline doppel_engine *open_at(const char *url, doppel_engine_options options) {
    doppel_engine *engine;
    doppel_error error = {0};
    options.size = sizeof options;
    if (!options.now)
        options.now = clock_now;
    if (doppel_engine_open(url, &options, &engine, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    return engine;
}

static inline doppel_engine *open_memory(doppel_engine_options options) {
    return open_at(memory_url(), options);
}

/* That opening fails with this status, and a message that has these words. */
static inline void open_fails(doppel_engine_options options, doppel_status expected, const char *words) {
    doppel_engine *engine;
    doppel_error error = {0};
    options.size = sizeof options;
    doppel_status status = doppel_engine_open(memory_url(), &options, &engine, &error);
    if (status != expected || !strstr(error.message, words))
        fail_msg("%d, %s", (int)status, error.message);
}

/* ---- pages ---- */

/* A page that is given by its sketches. */
typedef struct page {
    const char *id, *url, *title;
    uint64_t fingerprint[2];
    uint8_t digest; /* 32 of it; 0: it has none */
    uint64_t ttl;   /* 0: the engine's */
} page;

typedef struct answer {
    bool duplicate, known, replaced;
    char reason[32], original[64];
    int distance;
} answer;

typedef doppel_status ask(doppel_engine *engine, const doppel_item *item, doppel_verdict *verdict, doppel_error *error);

static inline doppel_status try_page(doppel_engine *engine, ask *how, const page *p, answer *a, doppel_error *error) {
    uint8_t digest[32];
    doppel_verdict verdict = {0};
    doppel_item item = {.size = sizeof item, .fingerprint = p->fingerprint, .words = 100, .ttl = p->ttl};
    memset(digest, p->digest, sizeof digest);
    item.digest = p->digest ? digest : NULL;
    item.document = (doppel_document){.id.data = p->id, .url.data = p->url, .title.data = p->title};
    item.document.id.length = p->id ? strlen(p->id) : 0;
    item.document.url.length = p->url ? strlen(p->url) : 0;
    item.document.title.length = p->title ? strlen(p->title) : 0;
    *a = (answer){0};
    doppel_status status = how(engine, &item, &verdict, error);
    if (status == DOPPEL_OK) {
        *a = (answer){verdict.is_duplicate, verdict.known, verdict.replaced, "", "", verdict.evidence.distance};
        snprintf(a->reason, sizeof a->reason, "%s", verdict.reason ? doppel_reason_name(verdict.reason) : "");
        snprintf(a->original, sizeof a->original, "%.*s", (int)verdict.original_id.length,
                 verdict.original_id.data ? verdict.original_id.data : "");
    }
    doppel_verdict_free(&verdict);
    return status;
}

static inline answer ask_page(doppel_engine *engine, ask *how, page p) {
    answer a;
    doppel_error error = {0};
    if (try_page(engine, how, &p, &a, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    return a;
}

static inline answer add_page(doppel_engine *engine, page p) {
    return ask_page(engine, doppel_engine_add, p);
}

static inline answer check_page(doppel_engine *engine, page p) {
    return ask_page(engine, doppel_engine_check, p);
}

static inline bool is_new(doppel_engine *engine, const char *id, uint64_t fingerprint) {
    return !add_page(engine, (page){.id = id, .fingerprint = {fingerprint}}).duplicate;
}

/* That a page is refused with this status, and a message that has these words. */
static inline void page_fails(doppel_engine *engine, ask *how, page p, doppel_status expected, const char *words) {
    answer a;
    doppel_error error = {0};
    doppel_status status = try_page(engine, how, &p, &a, &error);
    if (status != expected || !strstr(error.message, words))
        fail_msg("%d, %s", (int)status, error.message);
}

static inline bool remove_one(doppel_engine *engine, const char *id) {
    bool removed = false;
    doppel_error error = {0};
    if (doppel_engine_remove(engine, doppel_slice_of(id), &removed, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    return removed;
}

static inline uint64_t documents_of(doppel_engine *engine) {
    doppel_engine_stats stats;
    doppel_engine_get_stats(engine, &stats);
    return stats.documents;
}

/* Pages with an id each; every second one has the URL of the one before it, and there are three titles. */
static inline void fill(doppel_engine *engine, uint64_t ttl, size_t count) {
    static const char *const titles[] = {"the harbour bridge was opened", "potters in the hill villages",
                                         "trams follow"};
    uint64_t seed = 9;
    for (size_t i = 0; i < count; i++) {
        char id[32], url[64];
        snprintf(id, sizeof id, "id%zu", i);
        snprintf(url, sizeof url, "https://a.example/%zu", i / 2);
        add_page(engine, (page){.id = id,
                                .url = url,
                                .title = titles[i % 3],
                                .fingerprint = {random_next(&seed)},
                                .digest = (uint8_t)(i + 1),
                                .ttl = ttl});
    }
}

/* ---- keys ---- */

/* Calls `one` with each key of the server, its kind (the letter behind the prefix), and how long it stays, in
 * milliseconds; -1: for ever. Gives how many there are. */
static inline size_t each_key(void (*one)(const redisReply *key, char kind, long long left)) {
    redisReply *keys = redis_say(&server, "KEYS *");
    size_t count = keys->elements;
    for (size_t i = 0; i < count; i++) {
        const redisReply *key = keys->element[i];
        redisReply *left = redis_say(&server, "PTTL %b", key->str, key->len);
        assert_true(key->len > 3 && !strncmp(key->str, "{t}", 3));
        one(key, key->str[3], left->integer);
        freeReplyObject(left);
    }
    freeReplyObject(keys);
    return count;
}

/* Runs the tests with a server. */
static inline int run_with_redis(const char *name, const struct CMUnitTest *tests, size_t count) {
    static const char *const settings[] = {"--save", "", "--appendonly", "no", NULL};
    if (!redis_installed())
        return 1;
    server = redis_start(settings);
    int failed = _cmocka_run_group_tests(name, tests, count, NULL, NULL);
    redis_remove(&server);
    return failed;
}

#endif
