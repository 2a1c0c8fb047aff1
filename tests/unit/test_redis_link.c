/* Links to one real Redis: commands in order, users, what is said about its settings. */
#include "redis_one.h"

static int start(void **state) {
    (void)state;
    static const char *const settings[] = {"--save", "", "--appendonly", "no", NULL};
    server = redis_start(settings);
    return 0;
}

static void answers_come_in_order_over_a_unix_socket(void **state) {
    (void)state;
    redis_links links;
    links_open(&links, server.url);
    dp_redis_link *link = take_link(&links);
    assert_int_equal(call_counts(link, 1, false), 0);
    assert_int_equal(call_counts(link, 5000, false), 0);
    dp_redis_give(links.pool, link);
    assert_int_equal(counted(), 5001);
    assert_string_equal(links.log, "");
    links_close(&links);
}

static void tcp_and_a_db_of_its_own(void **state) {
    (void)state;
    redis_links links;
    char url[128];
    snprintf(url, sizeof url, "redis://%s/3", server.host);
    links_open(&links, url);
    dp_redis_link *link = take_link(&links);
    call_counts(link, 10, false);
    dp_redis_give(links.pool, link);
    links_close(&links);
    assert_int_equal(counted(), -1);
    assert_int_equal(redis_number(&server, "DBSIZE"), 0);
}

/* Commands and replies of 1 MB each fill both sides' buffers many times over. */
static void buffers_full_on_both_sides_do_not_stop_it(void **state) {
    (void)state;
    enum { COUNT = 40, SIZE = 1 << 20 };
    redis_links links;
    links_open(&links, server.url);
    dp_redis_link *link = take_link(&links);
    char *bytes = malloc(SIZE);
    memset(bytes, 'x', SIZE);
    dp_redis_batch batch = {0};
    for (size_t i = 0; i < COUNT; i++) {
        dp_redis_command_begin(&batch, "ECHO");
        dp_redis_put(&batch, bytes, SIZE);
    }
    assert_int_equal(dp_redis_call(link, &batch, false, NULL), DOPPEL_OK);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(batch.reply[i]->len, SIZE);
        assert_memory_equal(batch.reply[i]->str, bytes, SIZE);
    }
    dp_redis_batch_free(&batch);
    free(bytes);
    dp_redis_give(links.pool, link);
    links_close(&links);
}

static void functions_come_back_after_a_flush(void **state) {
    (void)state;
    redis_links links;
    links_open(&links, server.url);
    dp_redis_link *link = take_link(&links);
    for (int i = 0; i < 5; i++) {
        call_counts(link, 50, false);
        redis_do(&server, "FUNCTION FLUSH");
    }
    call_counts(link, 50, false);
    assert_int_equal(counted(), 300);
    assert_non_null(strstr(links.log, "REDIS_FUNCTIONS"));
    dp_redis_give(links.pool, link);
    links_close(&links);
}

static void a_command_s_own_error_is_its_reply(void **state) {
    (void)state;
    redis_links links;
    links_open(&links, server.url);
    dp_redis_link *link = take_link(&links);
    dp_redis_batch batch = {0};
    dp_redis_command_begin(&batch, "LPUSH");
    dp_redis_put_text(&batch, "{doppel}list");
    dp_redis_put_text(&batch, "1");
    dp_redis_command_begin(&batch, "GET");
    dp_redis_put_text(&batch, "{doppel}list");
    dp_redis_command_begin(&batch, "STRLEN");
    dp_redis_put_text(&batch, "{doppel}none");
    assert_int_equal(dp_redis_call(link, &batch, false, NULL), DOPPEL_OK);
    assert_int_equal(batch.reply[0]->integer, 1);
    assert_int_equal(batch.reply[1]->type, REDIS_REPLY_ERROR);
    assert_int_equal(strncmp(batch.reply[1]->str, "WRONGTYPE", 9), 0);
    assert_int_equal(batch.reply[2]->type, REDIS_REPLY_INTEGER);
    dp_redis_batch_free(&batch);
    dp_redis_give(links.pool, link);
    links_close(&links);
}

static void a_connection_that_was_closed_meanwhile_is_made_again(void **state) {
    (void)state;
    redis_links links;
    links_open(&links, server.url);
    dp_redis_link *link = take_link(&links);
    for (int i = 0; i < 3; i++) {
        call_counts(link, 10, false);
        redis_do(&server, "CLIENT KILL TYPE normal SKIPME yes");
    }
    call_counts(link, 10, false);
    assert_int_equal(counted(), 40);
    assert_int_equal(dp_redis_get_counters(links.pool)->reconnects, 3);
    assert_int_equal(dp_redis_get_counters(links.pool)->resent, 0);
    dp_redis_give(links.pool, link);
    links_close(&links);
}

static void eviction_is_warned_of(void **state) {
    (void)state;
    redis_do(&server, "CONFIG SET maxmemory 1000000000");
    redis_do(&server, "CONFIG SET maxmemory-policy allkeys-lru");
    redis_links links;
    links_open(&links, server.url);
    assert_non_null(strstr(links.log, "1 REDIS_EVICTS"));
    assert_non_null(strstr(links.log, "maxmemory-policy is allkeys-lru"));
    links_close(&links);
    redis_do(&server, "CONFIG SET maxmemory-policy noeviction");
    links_open(&links, server.url);
    assert_string_equal(links.log, "");
    links_close(&links);
}

static void users_and_passwords(void **state) {
    (void)state;
    char url[160];
    redis_do(&server, "ACL SETUSER crawler on >pa@ss ~{doppel}* +@read +@write +@connection +@scripting +time");
    redis_do(&server, "ACL SETUSER reader on >secret ~{doppel}* +@read");
    snprintf(url, sizeof url, "redis://crawler:pa%%40ss@%s", server.host);
    redis_links links;
    links_open(&links, url);
    dp_redis_link *link = take_link(&links);
    call_counts(link, 10, false);
    dp_redis_give(links.pool, link);
    links_close(&links);
    snprintf(url, sizeof url, "redis://crawler:wrong@%s", server.host);
    links_refuse(url, DOPPEL_ERROR_STORE, "the user name or the password is wrong");
    snprintf(url, sizeof url, "redis://reader:secret@%s", server.host);
    links_open(&links, url);
    link = take_link(&links);
    call_fails(link, 10, DOPPEL_ERROR_STORE, "NOPERM");
    dp_redis_give(links.pool, link);
    links_close(&links);
    redis_do(&server, "ACL SETUSER default resetpass >master");
    snprintf(url, sizeof url, "redis://%s", server.host);
    links_refuse(url, DOPPEL_ERROR_STORE, "it asks for a password");
    setenv("DOPPEL_REDIS_PASSWORD", "master", 1);
    links_open(&links, url);
    links_close(&links);
    unsetenv("DOPPEL_REDIS_PASSWORD");
    redisContext *context = redisConnectUnix(server.socket);
    freeReplyObject(redisCommand(context, "AUTH master"));
    freeReplyObject(redisCommand(context, "ACL SETUSER default nopass"));
    redisFree(context);
}

static void a_db_that_is_not_there(void **state) {
    (void)state;
    char url[160];
    snprintf(url, sizeof url, "redis://%s/99", server.host);
    links_refuse(url, DOPPEL_ERROR_STORE, "it does not have that db");
}

int main(void) {
    if (!redis_installed())
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(answers_come_in_order_over_a_unix_socket, empty),
        cmocka_unit_test_setup(tcp_and_a_db_of_its_own, empty),
        cmocka_unit_test_setup(buffers_full_on_both_sides_do_not_stop_it, empty),
        cmocka_unit_test_setup(functions_come_back_after_a_flush, empty),
        cmocka_unit_test_setup(a_command_s_own_error_is_its_reply, empty),
        cmocka_unit_test_setup(a_connection_that_was_closed_meanwhile_is_made_again, empty),
        cmocka_unit_test_setup(eviction_is_warned_of, empty),
        cmocka_unit_test_setup(users_and_passwords, empty),
        cmocka_unit_test_setup(a_db_that_is_not_there, empty),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
