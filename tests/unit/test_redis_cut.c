/* Connections that are cut at every byte of a batch, in both directions: each command is carried out once and in order,
 * and each has its answer. */
#include "redis_links.h"
#include "redis_proxy.h"

static redis_server server;
static redis_proxy proxy;

static int start(void **state) {
    (void)state;
    static const char *const settings[] = {"--save", "", "--appendonly", "no", NULL};
    server = redis_start(settings);
    proxy_start(&proxy, &server);
    return 0;
}

static int stop(void **state) {
    (void)state;
    proxy_stop(&proxy);
    redis_remove(&server);
    return 0;
}

enum { BATCH = 6 };

/* Cuts after n bytes of one batch, for all n, until a batch is whole before its cut. */
static void cut_everywhere(_Atomic long *direction, long step) {
    redis_do(&server, "FLUSHALL");
    char url[96];
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", proxy.port);
    redis_links links;
    links_open(&links, url);
    dp_redis_link *link = take_link(&links);
    long long expected = 0;
    size_t settled = 0;
    proxy.cuts = 0;
    for (long n = 0, cuts = -1; proxy.cuts != cuts; n += step) {
        cuts = proxy.cuts;
        *direction = n;
        settled += call_counts(link, BATCH, false);
        *direction = -1;
        pause_for(1.5 * proxy.late);
        expected += BATCH;
    }
    assert_true(proxy.cuts > 10 && (settled > 0 || proxy.late > 0));
    assert_int_equal(redis_number(&server, "HGET {doppel}m all"), expected);
    assert_int_equal(redis_number(&server, "HGET {doppel}m disorder"), -1);
    assert_true(dp_redis_get_counters(links.pool)->resent >= settled);
    dp_redis_give(links.pool, link);
    links_close(&links);
}

static void requests_are_cut_at_every_byte(void **state) {
    (void)state;
    cut_everywhere(&proxy.up, full_suite() ? 1 : 11);
}

static void replies_are_cut_at_every_byte(void **state) {
    (void)state;
    cut_everywhere(&proxy.down, full_suite() ? 1 : 5);
}

static void requests_that_arrive_after_their_connection_do_not_count_twice(void **state) {
    (void)state;
    proxy.late = 0.04;
    cut_everywhere(&proxy.up, full_suite() ? 5 : 53);
    proxy.late = 0;
}

/* One command goes ahead on a new connection: where it is refused, those behind it are not carried out before it. */
static void a_server_that_changes_its_mind_keeps_the_order(void **state) {
    (void)state;
    redis_do(&server, "FLUSHALL");
    char url[96];
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", proxy.port);
    redis_links links;
    links_open(&links, url);
    dp_redis_link *link = take_link(&links);
    redis_do(&server, "SET {doppel}refuse 1");
    proxy.up = 0;
    call_counts(link, BATCH, false);
    assert_int_equal(redis_number(&server, "EXISTS {doppel}refuse"), 0);
    assert_int_equal(redis_number(&server, "HGET {doppel}m all"), BATCH);
    assert_int_equal(redis_number(&server, "HGET {doppel}m disorder"), -1);
    dp_redis_give(links.pool, link);
    links_close(&links);
}

/* A server without replicas answers and is lost before a WAIT has confirmed it: whoever is there then gets it all. */
static void answers_that_no_replica_has_are_in_question(void **state) {
    (void)state;
    static const char *const settings[] = {"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0", NULL};
    enum { REPLY = sizeof "*2\r\n:1\r\n$7\r\ncounted\r\n" - 1 };
    redis_server master = redis_start(settings), replica = redis_start(settings);
    redis_links links;
    char url[96], follow[64];
    redis_do(&server, "FLUSHALL");
    snprintf(follow, sizeof follow, "REPLICAOF 127.0.0.1 %d", master.port);
    redis_do(&replica, follow);
    for (int i = 0; i < 1000 && !redis_tells(&replica, "INFO replication", "master_link_status:up"); i++)
        pause_for(0.01);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?replicas=1&timeout=2", proxy.port);
    links_open(&links, url);
    dp_redis_link *link = take_link(&links);
    proxy.server = &master; /* of the next connection */
    proxy.down = BATCH * REPLY + 1;
    call_counts(link, BATCH, true);
    assert_int_equal(redis_number(&server, "HGET {doppel}m all"), BATCH);
    assert_int_equal(redis_number(&master, "HGET {doppel}m all"), BATCH);
    assert_int_equal(redis_number(&replica, "HGET {doppel}m all"), BATCH);
    dp_redis_give(links.pool, link);
    links_close(&links);
    redis_remove(&replica);
    redis_remove(&master);
    proxy.server = &server;
}

int main(void) {
    if (!redis_installed())
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_cut_at_every_byte),
        cmocka_unit_test(replies_are_cut_at_every_byte),
        cmocka_unit_test(requests_that_arrive_after_their_connection_do_not_count_twice),
        cmocka_unit_test(a_server_that_changes_its_mind_keeps_the_order),
        cmocka_unit_test(answers_that_no_replica_has_are_in_question),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
