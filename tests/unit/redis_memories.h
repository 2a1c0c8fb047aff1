/* redis_memories.h - shared memories in a real Redis, for tests: opened, asked, filled. */
#ifndef TESTS_REDIS_MEMORIES_H
#define TESTS_REDIS_MEMORIES_H

#include "redis_server.h"

#include "store/redis_memory.h"

enum { NOW = 1700000000, TTL = 1000 };

static redis_server server;

static dp_shared_options usual = {.settings = "recipe=page\nttl=1000\n", .rules = {.distance = 3, .bits = 64}};

static inline dp_shared *open_memory(dp_shared_options options) {
    char url[160];
    doppel_error error = {0};
    dp_shared *shared;
    snprintf(url, sizeof url, "%s?prefix=t", server.url);
    if (dp_shared_open(url, &options, &shared, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    return shared;
}

static inline int start_empty(void **state) {
    (void)state;
    redis_do(&server, "FLUSHALL");
    return 0;
}

static inline doppel_slice text_of(const char *text) {
    return (doppel_slice){text, text ? strlen(text) : 0};
}

static inline dp_shared_request request_of(dp_shared_op op, const char *id, uint64_t fingerprint) {
    dp_shared_request r = {.op = op, .id_given = true, .on_duplicate = DOPPEL_DUPLICATE_SKIP, .now = NOW, .ttl = TTL};
    r.record.id = text_of(id);
    r.record.words = 100;
    r.title_share = 0.001;
    r.trace.content = true;
    r.trace.fingerprint[0] = fingerprint;
    return r;
}

/* One answer, of which what is borrowed is not used. */
static inline dp_shared_answer ask_one(dp_shared *shared, dp_shared_request request, char original[64]) {
    dp_shared_answers answers;
    doppel_error error = {0};
    if (dp_shared_ask(shared, &request, 1, &answers, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    dp_shared_answer answer = answers.answer[0];
    if (original)
        snprintf(original, 64, "%.*s", answer.reason ? (int)answer.record.id.length : 0, answer.record.id.data);
    dp_shared_answers_free(&answers);
    return answer;
}

static inline bool is_new(dp_shared *shared, const char *id, uint64_t fingerprint) {
    return ask_one(shared, request_of(DP_SHARED_ADD, id, fingerprint), NULL).reason == DP_UNIQUE;
}

static inline bool remove_one(dp_shared *shared, const char *id) {
    dp_shared_request r = {.op = DP_SHARED_REMOVE, .now = NOW, .record.id = text_of(id)};
    return ask_one(shared, r, NULL).found;
}

/* A document of every kind: with a title, a text, a copy that is linked. */
static inline void fill(dp_shared *shared, uint64_t now, uint64_t ttl, size_t count) {
    static const char *const titles[] = {"the harbour bridge was opened", "potters in the hill villages",
                                         "trams follow"};
    uint64_t seed = 9;
    for (size_t i = 0; i < count; i++) {
        char id[32], url[64];
        snprintf(id, sizeof id, "id%zu", i);
        snprintf(url, sizeof url, "https://a.example/%zu", i / 2);
        dp_shared_request r = request_of(DP_SHARED_ADD, id, random_next(&seed));
        r.on_duplicate = DOPPEL_DUPLICATE_LINK;
        r.now = now;
        r.ttl = ttl;
        r.record.url = r.record.canonical = text_of(url);
        r.trace.title = text_of(titles[i % 3]);
        r.text = text_of("text");
        r.record.text_length = 4;
        memcpy(r.trace.digest, &r.trace.fingerprint[0], 8);
        ask_one(shared, r, NULL);
    }
}

static inline dp_shared_options with_titles(void) {
    dp_shared_options options = usual;
    options.rules.titles = true;
    options.rules.title_similarity = 0.9;
    return options;
}

/* Runs the tests with a server. */
static inline int run_with_redis(const char *name, const struct CMUnitTest *tests, size_t count) {
    static const char *const settings[] = {"--save", "", NULL};
    if (!redis_installed())
        return 1;
    server = redis_start(settings);
    int failed = _cmocka_run_group_tests(name, tests, count, NULL, NULL);
    redis_remove(&server);
    return failed;
}

#endif
