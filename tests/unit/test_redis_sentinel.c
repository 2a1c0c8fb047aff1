/* A master with a replica, watched by Sentinels: the master is found, and its successor after it was killed. */
#include "redis_links.h"

static redis_server servers[2], sentinels[3];
static size_t watching;
static char url[256];

static void start_sentinel(redis_server *sentinel) {
    memset(sentinel, 0, sizeof *sentinel);
    strcpy(sentinel->folder, "/tmp/doppel-redis-XXXXXX");
    assert_non_null(mkdtemp(sentinel->folder));
    sentinel->port = free_port();
    snprintf(sentinel->socket, sizeof sentinel->socket, "%s/socket", sentinel->folder);
    snprintf(sentinel->host, sizeof sentinel->host, "127.0.0.1:%d", sentinel->port);
    char path[96];
    snprintf(path, sizeof path, "%s/conf", sentinel->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "port %d\nbind 127.0.0.1\nunixsocket %s\ndir %s\n", sentinel->port, sentinel->socket,
            sentinel->folder);
    fprintf(file, "sentinel monitor pages 127.0.0.1 %d %d\n", servers[0].port, (int)watching / 2 + 1);
    fprintf(file, "sentinel down-after-milliseconds pages 500\nsentinel failover-timeout pages 3000\n");
    fclose(file);
    const char *words[] = {"redis-server", path, "--sentinel", NULL};
    redis_run(sentinel, words);
    assert_true(redis_answers(sentinel, 20));
}

/* Waits until the Sentinels say this of the service. */
static void wait_for(const redis_server *sentinel, const char *field, const char *value) {
    for (int tries = 0; tries < 1000; tries++, pause_for(0.02)) {
        redisReply *reply = redis_say(sentinel, "SENTINEL MASTER pages");
        bool says = false;
        for (size_t i = 0; reply && i + 1 < reply->elements; i += 2)
            says = says || (!strcmp(reply->element[i]->str, field) && !strcmp(reply->element[i + 1]->str, value));
        freeReplyObject(reply);
        if (says)
            return;
    }
    fail_msg("the Sentinel does not say %s %s", field, value);
}

static int start(void **state) {
    (void)state;
    static const char *const settings[] = {"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0", NULL};
    char words[64];
    watching = full_suite() ? 3 : 1;
    for (size_t i = 0; i < 2; i++)
        servers[i] = redis_start(settings);
    snprintf(words, sizeof words, "REPLICAOF 127.0.0.1 %d", servers[0].port);
    redis_do(&servers[1], words);
    for (int tries = 0; !redis_tells(&servers[1], "INFO replication", "master_link_status:up");
         tries++, pause_for(0.02))
        assert_true(tries < 500);
    for (size_t i = 0; i < watching; i++)
        start_sentinel(&sentinels[i]);
    for (size_t i = 0; i < watching; i++) {
        wait_for(&sentinels[i], "num-slaves", "1");
        wait_for(&sentinels[i], "num-other-sentinels", full_suite() ? "2" : "0");
    }
    int length = snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d", free_port());
    for (size_t i = 0; i < watching; i++)
        length += snprintf(url + length, sizeof url - (size_t)length, ",%s", sentinels[i].host);
    return 0;
}

static int stop(void **state) {
    (void)state;
    for (size_t i = 0; i < watching; i++)
        redis_remove(&sentinels[i]);
    for (size_t i = 0; i < 2; i++)
        redis_remove(&servers[i]);
    return 0;
}

static void what_sentinels_do_not_know(void **state) {
    (void)state;
    char where[300];
    snprintf(where, sizeof where, "%s/unknown", url);
    links_refuse(where, DOPPEL_ERROR_AWAY, "knows no service unknown");
    snprintf(where, sizeof where, "redis+sentinel://%s/pages", servers[0].host);
    links_refuse(where, DOPPEL_ERROR_STORE, "unknown command");
}

static void the_successor_of_a_killed_master_is_found(void **state) {
    (void)state;
    char where[300];
    redis_links links;
    snprintf(where, sizeof where, "%s/pages?replicas=1", url);
    links_open(&links, where);
    dp_redis_link *link = take_link(&links);
    call_counts(link, 100, true);
    dp_redis_give(links.pool, link);
    links_close(&links);
    assert_int_equal(redis_number(&servers[0], "HGET {doppel}m all"), 100);
    assert_int_equal(redis_number(&servers[1], "HGET {doppel}m all"), 100);
    snprintf(where, sizeof where, "%s/pages?retry=30&timeout=1", url);
    links_open(&links, where);
    link = take_link(&links);
    redis_end(&servers[0], SIGKILL);
    call_counts(link, 100, false);
    assert_int_equal(redis_number(&servers[1], "HGET {doppel}m all"), 200);
    assert_true(dp_redis_get_counters(links.pool)->reconnects >= 1);
    dp_redis_give(links.pool, link);
    links_close(&links);
}

int main(void) {
    if (!redis_installed())
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_sentinels_do_not_know),
        cmocka_unit_test(the_successor_of_a_killed_master_is_found),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
