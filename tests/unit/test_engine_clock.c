/* test_engine_clock.c - clocks that jump: which times are trusted, when, and what happens to documents until then. */
#include "folders.h"

#include "known/local.h"

#include <lmdb.h>

enum { T = 1700000000, DAY = 86400, HOUR = 3600, MONTH = 30 * DAY };
#define IN_2046 ((uint64_t)2398291200)

/* ---- readings ---- */

/* A reading, and what the clock must be after it. */
typedef struct step {
    dp_clock_reading read;
    int event;
    uint64_t time, doubted, seen;
} step;

static void take_steps(const step *steps, size_t count, uint64_t settle) {
    dp_clock clock = {0};
    for (size_t i = 0; i < count; i++) {
        int event = (int)dp_clock_step(&clock, &steps[i].read, settle);
        if (event != steps[i].event || clock.time != steps[i].time || clock.doubted != steps[i].doubted ||
            clock.seen != steps[i].seen || clock.boot != steps[i].read.boot || clock.uptime != steps[i].read.uptime)
            fail_msg("step %zu: event %d, time T%+lld, doubted T%+lld, seen %llu", i, event,
                     (long long)(clock.time - T), (long long)(clock.doubted - T), (unsigned long long)clock.seen);
    }
}
#define STEPS(settle, ...)                                          \
    do {                                                            \
        const step steps_[] = {__VA_ARGS__};                        \
        take_steps(steps_, sizeof steps_ / sizeof *steps_, settle); \
    } while (0)

enum {
    FOLLOWED = DP_CLOCK_FOLLOWED,
    DOUBTED = DP_CLOCK_DOUBTED,
    RETURNED = DP_CLOCK_RETURNED,
    SETTLED = DP_CLOCK_SETTLED
};

static void time_that_passed_is_believed(void **state) {
    (void)state;
    /* However long it was, in one boot. */
    STEPS(HOUR, {{T, 7, 100}, FOLLOWED, T, 0, 0}, {{T + 10, 7, 110}, FOLLOWED, T + 10, 0, 0},
          {{T + 90 * DAY, 7, 100 + 90 * DAY}, FOLLOWED, T + 90 * DAY, 0, 0},
          {{T + 90 * DAY + 200, 7, 101 + 90 * DAY}, FOLLOWED, T + 90 * DAY + 200, 0, 0});
    /* A small step back is waited for. */
    STEPS(HOUR, {{T, 7, 100}, FOLLOWED, T, 0, 0}, {{T - 50, 7, 110}, FOLLOWED, T, 0, 0},
          {{T + 10, 7, 170}, FOLLOWED, T + 10, 0, 0});
    /* Where nothing is known of boots, up to a day. */
    STEPS(HOUR, {{T, 0, 0}, FOLLOWED, T, 0, 0}, {{T + DAY, 0, 0}, FOLLOWED, T + DAY, 0, 0},
          {{T + 5, 0, 0}, FOLLOWED, T + DAY, 0, 0});
}

static void one_wrong_reading_changes_nothing(void **state) {
    (void)state;
    STEPS(HOUR, {{T, 7, 100}, FOLLOWED, T, 0, 0}, {{IN_2046, 7, 160}, DOUBTED, T + 60, IN_2046, 0},
          {{IN_2046 + 90, 7, 250}, DOUBTED, T + 150, IN_2046 + 90, 90}, {{T + 200, 7, 300}, RETURNED, T + 200, 0, 0});
    /* Several, which do not agree. */
    STEPS(HOUR, {{T, 7, 100}, FOLLOWED, T, 0, 0}, {{IN_2046, 7, 160}, DOUBTED, T + 60, IN_2046, 0},
          {{5, 7, 5000}, DOUBTED, T + 4900, 5, 0}, {{IN_2046, 7, 9000}, DOUBTED, T + 8900, IN_2046, 0},
          {{T + 9000, 7, 9100}, RETURNED, T + 9000, 0, 0});
    /* In another boot, or by a clock that nothing else is known of. */
    STEPS(HOUR, {{T, 7, 100}, FOLLOWED, T, 0, 0}, {{IN_2046, 8, 10}, DOUBTED, T, IN_2046, 0},
          {{T + 100, 8, 60}, RETURNED, T + 100, 0, 0});
    STEPS(HOUR, {{T, 0, 0}, FOLLOWED, T, 0, 0}, {{IN_2046, 0, 0}, DOUBTED, T, IN_2046, 0},
          {{T + 100, 0, 0}, RETURNED, T + 100, 0, 0});
}

static void a_time_that_stays_is_followed(void **state) {
    (void)state;
    /* Forward, and back. */
    STEPS(HOUR, {{T, 7, 100}, FOLLOWED, T, 0, 0}, {{IN_2046, 7, 160}, DOUBTED, T + 60, IN_2046, 0},
          {{IN_2046 + 3599, 7, 3759}, DOUBTED, T + 3659, IN_2046 + 3599, 3599},
          {{IN_2046 + 3600, 7, 3760}, SETTLED, IN_2046 + 3600, 0, 0},
          {{T + 3700, 7, 3800}, DOUBTED, IN_2046 + 3640, T + 3700, 0}, {{T + 7300, 7, 7400}, SETTLED, T + 7300, 0, 0});
    /* Over boots, as far as the clock itself says. */
    STEPS(HOUR, {{T, 7, 100}, FOLLOWED, T, 0, 0}, {{T + 2 * DAY, 8, 10}, DOUBTED, T, T + 2 * DAY, 0},
          {{T + 2 * DAY + HOUR, 9, 10}, SETTLED, T + 2 * DAY + HOUR, 0, 0});
    /* A machine that is on for a minute a week is a week late. */
    STEPS(HOUR, {{T, 7, 100}, FOLLOWED, T, 0, 0}, {{T + 7 * DAY, 8, 10}, DOUBTED, T, T + 7 * DAY, 0},
          {{T + 14 * DAY, 9, 10}, SETTLED, T + 7 * DAY, T + 14 * DAY, 0},
          {{T + 21 * DAY, 10, 10}, SETTLED, T + 14 * DAY, T + 21 * DAY, 0},
          {{T + 21 * DAY + HOUR, 10, 10 + HOUR}, SETTLED, T + 21 * DAY + HOUR, 0, 0});
    /* At once, if that is asked for; less than a day back is waited for. */
    STEPS(DOPPEL_CLOCK_TRUSTED, {{T, 7, 100}, FOLLOWED, T, 0, 0}, {{IN_2046, 7, 160}, FOLLOWED, IN_2046, 0, 0},
          {{T, 7, 200}, FOLLOWED, T, 0, 0}, {{T - 1000, 7, 240}, FOLLOWED, T, 0, 0});
}

/* ---- documents ---- */

static uint64_t now;

static uint64_t tell_time(void *user) {
    (void)user;
    return now;
}

static char logged[4000];

static void keep_log(doppel_log_level level, const char *line, void *user) {
    (void)user;
    if (level <= DOPPEL_LOG_WARNING)
        strncat(logged, strcat(strcpy((char[1000]){0}, line), "\n"), sizeof logged - strlen(logged) - 1);
}

static size_t count_logged(const char *event) {
    size_t count = 0;
    for (const char *at = logged; (at = strstr(at, event)); at++)
        count++;
    return count;
}

static doppel_engine *open_month(const char *path, bool read_only) {
    const doppel_engine_options options = {.size = sizeof options,
                                           .preset = read_only ? NULL : "crawl",
                                           .near = read_only ? DOPPEL_NEAR_PRESET : DOPPEL_NEAR_DISTANCE,
                                           .read_only = read_only,
                                           .now = tell_time,
                                           .log = keep_log,
                                           .log_level = DOPPEL_LOG_WARNING};
    doppel_engine *engine;
    OK(doppel_engine_open(path, &options, &engine, error));
    return engine;
}

static doppel_item item_of(uint64_t number, char id[16], uint64_t *fingerprint) {
    *fingerprint = (number + 1) * 0x9E3779B97F4A7C15u;
    doppel_item item = {.size = sizeof item, .fingerprint = fingerprint};
    item.document = (doppel_document){.id.data = id, .id.length = (size_t)sprintf(id, "%d", (int)number)};
    return item;
}

/* Adds a number, and gives when it expires. */
static uint64_t add(doppel_engine *engine, uint64_t number) {
    char id[16];
    uint64_t fingerprint;
    doppel_item item = item_of(number, id, &fingerprint);
    doppel_verdict verdict = {0};
    doppel_stored_list list = {0};
    OK(doppel_engine_add(engine, &item, &verdict, error));
    assert_false(verdict.is_duplicate);
    doppel_verdict_free(&verdict);
    OK(doppel_engine_get(engine, doppel_slice_of(id), &list, error));
    assert_int_equal(list.count, 1);
    uint64_t expires = list.stored[0].expires;
    doppel_stored_list_free(&list);
    return expires;
}

/* How many of the first numbers are known. */
static uint64_t known_of(doppel_engine *engine, uint64_t last) {
    uint64_t known = 0;
    for (uint64_t number = 1; number <= last; number++) {
        char id[16];
        uint64_t fingerprint;
        doppel_item item = item_of(number, id, &fingerprint);
        doppel_verdict verdict = {0};
        OK(doppel_engine_check(engine, &item, &verdict, error));
        known += verdict.is_duplicate;
        doppel_verdict_free(&verdict);
    }
    return known;
}

static uint64_t purge(doppel_engine *engine) {
    uint64_t expired;
    OK(doppel_engine_expire(engine, &expired, error));
    OK(doppel_engine_compact(engine, error));
    return expired;
}

static void start_at(uint64_t time) {
    now = time;
    logged[0] = 0;
}

/* Documents 1 to 5, added at T, for a month. */
static const char *make_index(void **state) {
    const char *path = in(state, "index");
    start_at(T);
    doppel_engine *engine = open_month(path, false);
    for (uint64_t number = 1; number <= 5; number++)
        assert_int_equal(add(engine, number), T + MONTH);
    doppel_engine_close(engine);
    assert_string_equal(logged, "");
    return path;
}

/* One add under a clock that is wrong. */
static void nothing_is_lost_by_one_add_in_2046(void **state) {
    const char *path = make_index(state);
    now = IN_2046;
    doppel_engine *engine = open_month(path, false);
    assert_true(add(engine, 6) >= IN_2046 + MONTH);
    assert_int_equal(purge(engine), 0);
    assert_int_equal(known_of(engine, 6), 6);
    doppel_engine_close(engine);
    assert_int_equal(count_logged("CLOCK_JUMP"), 1);
    doppel_engine *reader = open_month(path, true);
    assert_int_equal(known_of(reader, 6), 6);
    doppel_engine_close(reader);
    assert_int_equal(count_logged("CLOCK_JUMP"), 1);

    start_at(T + 60);
    engine = open_month(path, false);
    assert_int_equal(add(engine, 7), T + 60 + MONTH);
    assert_int_equal(known_of(engine, 7), 7);
    assert_int_equal(purge(engine), 0);
    assert_int_equal(count_logged("CLOCK_RETURNED"), 1);
    assert_int_equal(count_logged("CLOCK_"), 1);
    doppel_engine_close(engine);
}

/* The same in one process that goes on. */
static void nothing_is_lost_while_a_clock_is_wrong(void **state) {
    const char *path = make_index(state);
    doppel_engine *engine = open_month(path, false);
    for (uint64_t i = 0; i < 50; i++) {
        now = IN_2046 + i * 70;
        assert_int_equal(known_of(engine, 5), 5);
        assert_int_equal(purge(engine), 0);
    }
    assert_int_equal(count_logged("CLOCK_"), 1);
    now = T + 100;
    assert_int_equal(known_of(engine, 5), 5);
    assert_int_equal(add(engine, 6), T + 100 + MONTH);
    assert_int_equal(count_logged("CLOCK_"), 2);
    doppel_engine_close(engine);
}

/* A time that stays counts after an hour, and the way back is as long. */
static void a_clock_that_stays_is_followed_both_ways(void **state) {
    const char *path = make_index(state);
    doppel_engine *engine = open_month(path, false);
    now = IN_2046;
    assert_int_equal(known_of(engine, 5), 5);
    now = IN_2046 + HOUR - 1;
    assert_int_equal(known_of(engine, 5), 5);
    assert_int_equal(purge(engine), 0);
    now = IN_2046 + HOUR;
    assert_int_equal(known_of(engine, 5), 0);
    assert_int_equal(count_logged("CLOCK_SETTLED"), 1);
    assert_int_equal(add(engine, 6), now + MONTH);
    doppel_engine_close(engine);
    /* Set right, it is doubted for an hour, and nothing is lost. */
    start_at(T + 2 * HOUR);
    engine = open_month(path, false);
    assert_true(add(engine, 7) > IN_2046);
    assert_int_equal(purge(engine), 0);
    assert_int_equal(known_of(engine, 7), 2);
    doppel_engine_close(engine);
    now = T + 3 * HOUR;
    engine = open_month(path, false);
    assert_int_equal(known_of(engine, 7), 2);
    assert_int_equal(add(engine, 8), T + 3 * HOUR + MONTH);
    assert_int_equal(count_logged("CLOCK_JUMP"), 1);
    assert_int_equal(count_logged("CLOCK_SETTLED"), 1);
    doppel_engine_close(engine);
}

/* Processes that only compact, each for a second, purge in the end what has expired. */
static void a_doubt_is_kept_when_nothing_is_written(void **state) {
    const char *path = make_index(state);
    for (int times = 0; times < 3; times++) {
        now = T + 2 * MONTH + (uint64_t)times * HOUR;
        doppel_engine *engine = open_month(path, false);
        assert_int_equal(purge(engine), times == 1 ? 5 : 0);
        doppel_engine_close(engine);
    }
    assert_int_equal(count_logged("CLOCK_JUMP"), 1);
    assert_int_equal(count_logged("CLOCK_SETTLED"), 1);
}

/* A reader that has left out what had expired reads it again. */
static void a_reader_goes_back_too(void **state) {
    const char *path = make_index(state);
    char id[16];
    uint64_t fingerprint;
    doppel_item item = item_of(6, id, &fingerprint);
    doppel_verdict verdict = {0};
    doppel_engine *writer = open_month(path, false);
    item.ttl = 30;
    OK(doppel_engine_add(writer, &item, &verdict, error));
    doppel_verdict_free(&verdict);
    now += 40; /* too soon for it to be purged */
    add(writer, 7);
    doppel_engine_close(writer);
    doppel_engine *reader = open_month(path, true);
    assert_int_equal(known_of(reader, 7), 6);
    now -= 2 * DAY;
    assert_int_equal(known_of(reader, 7), 6);
    now += HOUR;
    assert_int_equal(known_of(reader, 7), 7);
    doppel_engine_close(reader);
}

/* Folders that were written without what is known of the clock are read as ever. */
static void what_is_known_of_the_clock_may_be_missing(void **state) {
    const char *path = make_index(state);
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi meta;
    MDB_val key = {5, "clock"};
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_set_maxdbs(env, 8), 0);
    assert_int_equal(mdb_env_open(env, name_in(path, "documents-1.mdb"), MDB_NOSUBDIR, 0666), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, "meta", 0, &meta), 0);
    assert_int_equal(mdb_del(txn, meta, &key, NULL), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    now = IN_2046;
    doppel_engine *engine = open_month(path, false);
    assert_int_equal(known_of(engine, 5), 5);
    doppel_engine_close(engine);
    verified_clean(path, 5);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folders, teardown_folders)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_that_passed_is_believed),  cmocka_unit_test(one_wrong_reading_changes_nothing),
        cmocka_unit_test(a_time_that_stays_is_followed), TEST(nothing_is_lost_by_one_add_in_2046),
        TEST(nothing_is_lost_while_a_clock_is_wrong),    TEST(a_clock_that_stays_is_followed_both_ways),
        TEST(a_doubt_is_kept_when_nothing_is_written),   TEST(a_reader_goes_back_too),
        TEST(what_is_known_of_the_clock_may_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
