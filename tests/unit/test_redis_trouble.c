/* One real Redis that restarts, stops, is full, or loses its functions: a command sent at that time is carried out
 * once, or the caller gets an error. First the link, then the engine over it. */
#include "redis_memories.h"

#include "known/redis_link.h"

static int start(void **state) {
    (void)state;
    /* Reading its data takes a while: 20 ms a key. */
    static const char *const settings[] = {
        "--save", "",  "--appendonly", "no", "--key-load-delay", "20000", "--loading-process-events-interval-bytes",
        "1024",   NULL};
    server = redis_start(settings);
    return 0;
}

/* A batch on a thread of its own, while the test does something to the server. */
typedef struct aside {
    dp_redis_link *link;
    count_batch made;
    doppel_error error;
    doppel_status status;
    pthread_t thread;
} aside;

static void *call_aside(void *given) {
    aside *it = given;
    it->status = dp_redis_call(it->link, &it->made.batch, true, &it->error);
    return NULL;
}

/* Links that load and use the functions while somebody removes them again and again. */
static void functions_that_vanish_under_load(void **state) {
    (void)state;
    enum { THREADS = 4, BATCH = 300, ROUNDS = 10 };
    redis_links links;
    links_open(&links, server.url);
    aside them[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        them[i] = (aside){.link = take_link(&links)};
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < THREADS; i++) {
            them[i].made = make_batch(them[i].link, BATCH);
            assert_int_equal(pthread_create(&them[i].thread, NULL, call_aside, &them[i]), 0);
        }
        redis_do(&server, "FUNCTION FLUSH");
        for (size_t i = 0; i < THREADS; i++) {
            pthread_join(them[i].thread, NULL);
            assert_int_equal(them[i].status, DOPPEL_OK);
            for (size_t n = 0; n < BATCH; n++)
                assert_int_equal(them[i].made.batch.reply[n]->type, REDIS_REPLY_ARRAY);
            dp_redis_batch_free(&them[i].made.batch);
        }
    }
    assert_int_equal(counted(), THREADS * BATCH * ROUNDS);
    for (size_t i = 0; i < THREADS; i++)
        dp_redis_give(links.pool, them[i].link);
    links_close(&links);
}

static void a_server_that_restarts_is_waited_for(void **state) {
    (void)state;
    redis_links links;
    links_open(&links, server.url);
    aside it = {.link = take_link(&links)};
    call_counts(it.link, 10, false);
    redis_end(&server, SIGKILL);
    it.made = make_batch(it.link, 10);
    assert_int_equal(pthread_create(&it.thread, NULL, call_aside, &it), 0);
    pause_for(0.2);
    redis_again(&server);
    pthread_join(it.thread, NULL);
    assert_int_equal(it.status, DOPPEL_OK);
    /* It came back empty, and without the functions. */
    assert_int_equal(counted(), 10);
    assert_int_equal(dp_redis_get_counters(links.pool)->reconnects, 1);
    dp_redis_batch_free(&it.made.batch);
    dp_redis_give(links.pool, it.link);
    links_close(&links);
}

static void a_server_that_reads_its_data_is_waited_for(void **state) {
    (void)state;
    redis_links links;
    links_open(&links, server.url);
    aside it = {.link = take_link(&links)};
    call_counts(it.link, 10, false);
    redisReply *reply = redis_say(&server, "EVAL %s 0",
                                  "for i = 1, 15 do redis.call('SET', i, redis.sha1hex(i) .. "
                                  "string.rep(redis.sha1hex(i + 1), 99)) end");
    assert_non_null(reply);
    freeReplyObject(reply);
    redis_do(&server, "CONFIG SET rdbcompression no");
    redis_do(&server, "SAVE");
    redis_end(&server, SIGKILL);
    it.made = make_batch(it.link, 10);
    assert_int_equal(pthread_create(&it.thread, NULL, call_aside, &it), 0);
    redis_again(&server);
    pthread_join(it.thread, NULL);
    assert_int_equal(it.status, DOPPEL_OK);
    assert_int_equal(counted(), 20);
    dp_redis_batch_free(&it.made.batch);
    dp_redis_give(links.pool, it.link);
    links_close(&links);
}

static void a_server_that_stays_away_is_given_up(void **state) {
    (void)state;
    char url[160];
    snprintf(url, sizeof url, "%s?retry=0.3&timeout=0.5", server.url);
    redis_links links;
    links_open(&links, url);
    dp_redis_link *link = take_link(&links);
    call_counts(link, 10, false);
    kill(server.pid, SIGSTOP);
    double before = (double)clock();
    call_fails(link, 10, DOPPEL_ERROR_AWAY, "what became of the last 10 commands is not known");
    assert_true((double)clock() - before < 0.2 * CLOCKS_PER_SEC);
    kill(server.pid, SIGCONT);
    dp_redis_give(links.pool, link);
    links_close(&links);
    links_refuse("redis+unix:///nowhere/socket", DOPPEL_ERROR_AWAY, "No such file");
    links_refuse("redis://no.such.host.invalid", DOPPEL_ERROR_AWAY, "no.such.host.invalid:6379");
}

static void what_arrives_late_is_not_carried_out_twice(void **state) {
    (void)state;
    char url[160];
    snprintf(url, sizeof url, "%s?retry=20&timeout=0.5", server.url);
    redis_links links;
    links_open(&links, url);
    dp_redis_link *link = take_link(&links);
    call_counts(link, 10, false);
    int rounds = full_suite() ? 10 : 1;
    for (int round = 0; round < rounds; round++) {
        kill(server.pid, SIGSTOP);
        pid_t waker = fork();
        if (!waker) {
            pause_for(1);
            kill(server.pid, SIGCONT);
            _exit(0);
        }
        call_counts(link, 100, false);
        waitpid(waker, NULL, 0);
    }
    assert_int_equal(counted(), 10 + 100 * rounds);
    assert_int_equal(redis_number(&server, "HGET {doppel}m disorder"), -1);
    assert_true(dp_redis_get_counters(links.pool)->resent >= 100);
    dp_redis_give(links.pool, link);
    links_close(&links);
}

static void a_full_server_says_what_to_do(void **state) {
    (void)state;
    redis_links links;
    links_open(&links, server.url);
    dp_redis_link *link = take_link(&links);
    call_counts(link, 10, false);
    redis_do(&server, "CONFIG SET maxmemory 1");
    call_fails(link, 10, DOPPEL_ERROR_AWAY, "it is full: raise its maxmemory");
    redis_do(&server, "FUNCTION FLUSH");
    links_refuse(server.url, DOPPEL_ERROR_AWAY, "it is full: raise its maxmemory");
    redis_do(&server, "CONFIG SET maxmemory 0");
    dp_redis_give(links.pool, link);
    links_close(&links);
}

static void a_replica_is_not_a_place_to_write(void **state) {
    (void)state;
    char url[160];
    snprintf(url, sizeof url, "%s?retry=0.1", server.url);
    redis_links links;
    links_open(&links, url);
    dp_redis_link *link = take_link(&links);
    call_counts(link, 10, false);
    char words[64];
    snprintf(words, sizeof words, "REPLICAOF 127.0.0.1 %d", free_port());
    redis_do(&server, words);
    call_fails(link, 10, DOPPEL_ERROR_AWAY, "name its master");
    redis_do(&server, "REPLICAOF NO ONE");
    dp_redis_give(links.pool, link);
    links_close(&links);
}

static void replicas_that_are_not_there_are_an_error(void **state) {
    (void)state;
    char url[160];
    snprintf(url, sizeof url, "%s?replicas=1&retry=0.2&timeout=1", server.url);
    redis_links links;
    links_open(&links, url);
    dp_redis_link *link = take_link(&links);
    call_fails(link, 10, DOPPEL_ERROR_AWAY, "0 of the 1 replicas");
    dp_redis_give(links.pool, link);
    links_close(&links);
}

/* ---- the engine ---- */

static const page other = {.id = "b", .fingerprint = {0xF0F0F0F0F0F0F0F0}};

static void an_engine_goes_on_without_its_functions(void **state) {
    (void)state;
    doppel_engine *engine = open_memory(by_distance());
    for (uint64_t i = 1; i <= 20; i++) {
        char id[16];
        uint64_t seed = i;
        snprintf(id, sizeof id, "%d", (int)i);
        if (i % 3 == 0)
            redis_do(&server, "FUNCTION FLUSH");
        assert_true(is_new(engine, id, random_next(&seed)));
    }
    redis_do(&server, "FUNCTION FLUSH");
    assert_true(remove_one(engine, "7"));
    assert_int_equal(documents_of(engine), 19);
    doppel_engine_close(engine);
}

/* What an engine does while the server is restarted. */
typedef struct engine_aside {
    doppel_engine *engine;
    pthread_t thread;
    answer answer;
    doppel_error error;
    doppel_status status;
} engine_aside;

static void *add_aside(void *given) {
    engine_aside *it = given;
    it->status = try_page(it->engine, doppel_engine_add, &other, &it->answer, &it->error);
    return NULL;
}

/* It comes back with what it had: what was added is there. */
static void an_engine_waits_for_a_server_that_restarts(void **state) {
    (void)state;
    engine_aside it = {.engine = open_memory(by_distance())};
    assert_true(is_new(it.engine, "a", 99));
    redis_do(&server, "SAVE");
    redis_end(&server, SIGKILL);
    assert_int_equal(pthread_create(&it.thread, NULL, add_aside, &it), 0);
    pause_for(0.2);
    redis_again(&server);
    pthread_join(it.thread, NULL);
    if (it.status)
        fail_msg("%s", it.error.message);
    assert_false(it.answer.duplicate);
    assert_string_equal(check_page(it.engine, (page){.fingerprint = {99}}).original, "a");
    assert_true(check_page(it.engine, other).duplicate);
    doppel_engine_stats stats;
    doppel_engine_get_stats(it.engine, &stats);
    assert_true(stats.reconnects >= 1);
    assert_int_equal(stats.documents, 2);
    doppel_engine_close(it.engine);
}

static void an_engine_gives_up_a_server_that_stays_away(void **state) {
    (void)state;
    char url[200];
    snprintf(url, sizeof url, "%s?prefix=t&retry=0.3&timeout=0.5", server.url);
    doppel_engine *engine = open_at(url, by_distance());
    assert_true(is_new(engine, "a", 99));
    kill(server.pid, SIGSTOP);
    page_fails(engine, doppel_engine_add, other, DOPPEL_ERROR_AWAY, "");
    page_fails(engine, doppel_engine_check, other, DOPPEL_ERROR_AWAY, "");
    kill(server.pid, SIGCONT);
    assert_false(add_page(engine, other).duplicate);
    assert_int_equal(documents_of(engine), 2);
    doppel_engine_close(engine);
    redis_end(&server, SIGKILL);
    open_fails(by_distance(), DOPPEL_ERROR_AWAY, "");
    redis_again(&server);
}

/* A process that is asked to end does not wait for `retry`. */
static void an_engine_that_is_told_to_stops_waiting(void **state) {
    (void)state;
    engine_aside it = {.engine = open_memory(by_distance())};
    assert_true(is_new(it.engine, "a", 99));
    kill(server.pid, SIGSTOP);
    double before = dp_seconds();
    assert_int_equal(pthread_create(&it.thread, NULL, add_aside, &it), 0);
    pause_for(0.2);
    doppel_engine_stop_waiting(it.engine);
    pthread_join(it.thread, NULL);
    kill(server.pid, SIGCONT);
    assert_int_equal(it.status, DOPPEL_ERROR_AWAY);
    assert_true(dp_seconds() - before < 3);
    doppel_engine_close(it.engine);
}

/* What is there is found and can be removed; nothing is added until there is room. */
static void an_engine_over_a_full_server_reads_and_removes(void **state) {
    (void)state;
    doppel_engine *engine = open_memory(by_distance());
    assert_true(is_new(engine, "a", 99));
    assert_true(is_new(engine, "c", ~(uint64_t)0));
    redis_do(&server, "CONFIG SET maxmemory 1");
    page_fails(engine, doppel_engine_add, other, DOPPEL_ERROR_AWAY, "it is full: raise its maxmemory");
    assert_string_equal(check_page(engine, (page){.fingerprint = {99}}).original, "a");
    assert_false(check_page(engine, other).duplicate);
    assert_true(remove_one(engine, "a"));
    assert_false(check_page(engine, (page){.fingerprint = {99}}).duplicate);
    redis_do(&server, "CONFIG SET maxmemory 0");
    assert_false(add_page(engine, other).duplicate);
    assert_int_equal(documents_of(engine), 2);
    doppel_engine_close(engine);
}

static void an_engine_over_a_replica_says_so(void **state) {
    (void)state;
    char url[200], words[64];
    snprintf(url, sizeof url, "%s?prefix=t&retry=0.1", server.url);
    doppel_engine *engine = open_at(url, by_distance());
    assert_true(is_new(engine, "a", 99));
    snprintf(words, sizeof words, "REPLICAOF 127.0.0.1 %d", free_port());
    redis_do(&server, words);
    page_fails(engine, doppel_engine_add, other, DOPPEL_ERROR_AWAY, "name its master");
    redis_do(&server, "REPLICAOF NO ONE");
    assert_false(add_page(engine, other).duplicate);
    doppel_engine_close(engine);
}

int main(void) {
    if (!redis_installed())
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(functions_that_vanish_under_load, empty),
        cmocka_unit_test_setup(a_server_that_restarts_is_waited_for, empty),
        cmocka_unit_test_setup(a_server_that_reads_its_data_is_waited_for, empty),
        cmocka_unit_test_setup(a_server_that_stays_away_is_given_up, empty),
        cmocka_unit_test_setup(what_arrives_late_is_not_carried_out_twice, empty),
        cmocka_unit_test_setup(a_full_server_says_what_to_do, empty),
        cmocka_unit_test_setup(a_replica_is_not_a_place_to_write, empty),
        cmocka_unit_test_setup(replicas_that_are_not_there_are_an_error, empty),
        cmocka_unit_test_setup(an_engine_goes_on_without_its_functions, start_empty),
        cmocka_unit_test_setup(an_engine_waits_for_a_server_that_restarts, start_empty),
        cmocka_unit_test_setup(an_engine_gives_up_a_server_that_stays_away, start_empty),
        cmocka_unit_test_setup(an_engine_that_is_told_to_stops_waiting, start_empty),
        cmocka_unit_test_setup(an_engine_over_a_full_server_reads_and_removes, start_empty),
        cmocka_unit_test_setup(an_engine_over_a_replica_says_so, start_empty),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
