/* engine_places.h - where the engine of a test lives, and with which preset: the same tests run in all places.
 *
 *     static void a_test(void **state) {
 *         doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
 *
 *     return run_everywhere("name", tests, sizeof tests / sizeof *tests);
 *
 * Each test has a folder of its own, of which the engines' folders are part; in the one Redis of a test program, the
 * test's folder is part of the prefix. Where there is no Redis, that place is left out. */
#ifndef TESTS_ENGINE_PLACES_H
#define TESTS_ENGINE_PLACES_H

#include "folders.h"
#ifdef WITH_REDIS
#include "redis_server.h"
#endif

#define EVERYWHERE(test) cmocka_unit_test_setup_teardown(test, setup_place, teardown_folders)

typedef enum place { IN_MEMORY, IN_FOLDER, IN_REDIS } place;

/* What an engine is opened with where a test says nothing else. */
typedef struct home {
    const char *name, *preset;
    place place;
} home;

static const home homes[] = {
    {"in memory, general", "general", IN_MEMORY},   {"in memory, article", "article", IN_MEMORY},
    {"in a folder, general", "general", IN_FOLDER}, {"in a folder, article", "article", IN_FOLDER},
    {"in Redis, general", "general", IN_REDIS},     {"in Redis, article", "article", IN_REDIS},
};
static const home *here = &homes[0];

/* ---- Redis ---- */

#ifdef WITH_REDIS
static redis_server redis;

static inline bool start_redis(void) {
    static const char *const settings[] = {"--save", "", NULL};
    if (!redis_installed())
        return false;
    redis = redis_start(settings);
    return true;
}

static inline void stop_redis(void) {
    redis_remove(&redis);
}

static inline const char *redis_path(const char *name) {
    static char urls[4][600];
    static int next;
    char *url = urls[next++ % 4];
    snprintf(url, sizeof urls[0], "%s?prefix=%s", redis.url, name);
    return url;
}
#else
static inline bool start_redis(void) {
    return false;
}

static inline void stop_redis(void) {
}

static inline const char *redis_path(const char *name) {
    return name;
}
#endif

/* ---- opening ---- */

/* The path of an engine that the test calls so. */
static inline const char *path_of(void **state, const char *name) {
    switch (here->place) {
    case IN_MEMORY: return NULL;
    case IN_FOLDER: return in(state, name);
    case IN_REDIS: return redis_path(in(state, name));
    }
    return NULL;
}

static uint64_t now;

static inline uint64_t clock_now(void *user) {
    (void)user;
    return now;
}

static inline int setup_place(void **state) {
    now = 1700000000;
    return setup_folders(state);
}

static inline doppel_engine *open_at(void **state, const char *name, doppel_engine_options options) {
    doppel_engine *engine;
    doppel_error error = {0};
    options.size = sizeof options;
    options.now = clock_now;
    if (!options.preset)
        options.preset = here->preset;
    if (doppel_engine_open(path_of(state, name), &options, &engine, &error) != DOPPEL_OK)
        fail_msg("%s: %s", here->name, error.message);
    return engine;
}

/* ---- items and verdicts ---- */

static inline doppel_item item_of(const char *id, const char *url, const char *text) {
    doppel_item item = {.size = sizeof item};
    item.document = (doppel_document){.id.data = id, .url.data = url, .text.data = text};
    item.document.id.length = id ? strlen(id) : 0;
    item.document.url.length = url ? strlen(url) : 0;
    item.document.text.length = text ? strlen(text) : 0;
    return item;
}

/* What a verdict says: reason, original and flags, e.g. "content_hash a known". */
static inline const char *say(const doppel_verdict *v) {
    static char said[200];
    snprintf(said, sizeof said, "%s%s%.*s%s%s", v->is_duplicate ? doppel_reason_name(v->reason) : "unique",
             v->is_duplicate ? " " : "", (int)v->original_id.length, v->original_id.data ? v->original_id.data : "",
             v->known ? " known" : "", v->replaced ? " replaced" : "");
    return said;
}

#define adding_says(engine, item, expected) verdict_says(engine, item, expected, doppel_engine_add, __LINE__)
#define checking_says(engine, item, expected) verdict_says(engine, item, expected, doppel_engine_check, __LINE__)

static inline void
verdict_says(doppel_engine *engine, doppel_item item, const char *expected,
             doppel_status (*ask)(doppel_engine *, const doppel_item *, doppel_verdict *, doppel_error *), int line) {
    doppel_verdict v = {0};
    doppel_error error = {0};
    if (ask(engine, &item, &v, &error) != DOPPEL_OK)
        fail_msg("%s, line %d: %s", here->name, line, error.message);
    if (strcmp(say(&v), expected))
        fail_msg("%s, line %d: `%s` in place of `%s`", here->name, line, say(&v), expected);
    doppel_verdict_free(&v);
}

static inline int run_everywhere(const char *name, const struct CMUnitTest *tests, size_t count) {
    int failed = 0;
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) {
        char title[100];
        here = &homes[i];
        if (here->place == IN_REDIS && !start_redis())
            continue;
        snprintf(title, sizeof title, "%s, %s", name, here->name);
        failed += _cmocka_run_group_tests(title, tests, count, NULL, NULL);
        if (here->place == IN_REDIS)
            stop_redis();
    }
    return failed;
}

#endif
