/* URLs of shared stores: what they mean, what they are called in messages, and what is refused. */
#include "support.h"

#include "known/known.h"

#include "known/redis_link.h"

static dp_redis_url parsed(const char *text) {
    dp_redis_url url;
    doppel_error error = {0};
    if (dp_redis_url_parse(text, &url, &error))
        fail_msg("%s: %s", text, error.message);
    return url;
}

static void check_name(const char *text, const char *name) {
    dp_redis_url url = parsed(text);
    assert_string_equal(url.name, name);
    dp_redis_url_free(&url);
}

static void one_server(void **state) {
    (void)state;
    dp_redis_url url = parsed("redis://example.org");
    assert_int_equal(url.kind, DP_REDIS_TCP);
    assert_int_equal(url.addresses, 1);
    assert_string_equal(url.address[0].host, "example.org");
    assert_int_equal(url.address[0].port, 6379);
    assert_null(url.user);
    assert_null(url.password);
    assert_null(url.service);
    assert_string_equal(url.prefix, "doppel");
    assert_int_equal(url.db, 0);
    assert_int_equal(url.replicas, 0);
    assert_true(url.timeout == 5 && url.retry == 30 && url.count == 0);
    dp_redis_url_free(&url);

    url = parsed(
        "redis://crawler:p%40%3a%2F@[::1]:7000/12?prefix=news%20&replicas=2&timeout=0.25&retry=90&count=10000000");
    assert_string_equal(url.user, "crawler");
    assert_string_equal(url.password, "p@:/");
    assert_string_equal(url.address[0].host, "::1");
    assert_int_equal(url.address[0].port, 7000);
    assert_int_equal(url.db, 12);
    assert_string_equal(url.prefix, "news ");
    assert_int_equal(url.replicas, 2);
    assert_true(url.timeout == 0.25 && url.retry == 90 && url.count == 10000000);
    dp_redis_url_free(&url);
}

static void a_unix_socket(void **state) {
    (void)state;
    dp_redis_url url = parsed("redis+unix://:secret@/run/redis/a%20b.sock?db=3");
    assert_int_equal(url.kind, DP_REDIS_UNIX);
    assert_string_equal(url.address[0].host, "/run/redis/a b.sock");
    assert_int_equal(url.address[0].port, 0);
    assert_string_equal(url.password, "secret");
    assert_null(url.user);
    assert_int_equal(url.db, 3);
    dp_redis_url_free(&url);
}

static void sentinels_and_a_cluster(void **state) {
    (void)state;
    dp_redis_url url = parsed("redis+sentinel://a,b:26000,[fe80::1]:1/pages/4?sentinel_password=x");
    assert_int_equal(url.kind, DP_REDIS_SENTINEL);
    assert_int_equal(url.addresses, 3);
    assert_int_equal(url.address[0].port, 26379);
    assert_int_equal(url.address[1].port, 26000);
    assert_string_equal(url.address[2].host, "fe80::1");
    assert_string_equal(url.service, "pages");
    assert_string_equal(url.sentinel_password, "x");
    assert_int_equal(url.db, 4);
    dp_redis_url_free(&url);
    url = parsed("redis+cluster://u:p@a:7000,b:7001/?prefix=x");
    assert_int_equal(url.kind, DP_REDIS_CLUSTER);
    assert_int_equal(url.addresses, 2);
    assert_int_equal(url.address[1].port, 7001);
    assert_string_equal(url.password, "p");
    dp_redis_url_free(&url);
}

static void names_have_no_password(void **state) {
    (void)state;
    check_name("redis://u:secret@h/2?timeout=3", "redis://u@h:6379/2?prefix=doppel");
    check_name("redis://:secret@h", "redis://h:6379?prefix=doppel");
    check_name("redis://[::1]:1?prefix=a", "redis://[::1]:1?prefix=a");
    check_name("redis+unix:///s?db=1", "redis+unix:///s?db=1&prefix=doppel");
    check_name("redis+sentinel://a,b/m?sentinel_password=secret", "redis+sentinel://a:26379,b:26379/m?prefix=doppel");
}

static void the_environment_has_the_password_that_is_not_in_the_url(void **state) {
    (void)state;
    setenv("DOPPEL_REDIS_PASSWORD", "hidden", 1);
    dp_redis_url url = parsed("redis://user@h");
    assert_string_equal(url.password, "hidden");
    assert_string_equal(url.user, "user");
    dp_redis_url_free(&url);
    url = parsed("redis://user:own@h");
    assert_string_equal(url.password, "own");
    dp_redis_url_free(&url);
    unsetenv("DOPPEL_REDIS_PASSWORD");
}

static void what_makes_no_sense_is_told(void **state) {
    (void)state;
    static const struct {
        const char *url, *words;
    } cases[] = {
        {"", "begins with redis://"},
        {"http://h", "begins with redis://"},
        {"redis:/h", "begins with redis://"},
        {"redis://", "a host is missing"},
        {"redis://:secret@", "a host is missing"},
        {"redis://h:", "a port is missing"},
        {"redis://h:0", "a port that is not"},
        {"redis://h:65536", "a port that is not"},
        {"redis://h:99999999999999999999", "a port that is not"},
        {"redis://h:1:2", "more than one colon"},
        {"redis://[::1", "in brackets"},
        {"redis://[::1]7", "in brackets"},
        {"redis://a,b", "several hosts"},
        {"redis://h/x", "a db that is not a number"},
        {"redis://h/-1", "a db that is not a number"},
        {"redis://h/1/2", "a db that is not a number"},
        {"redis://user@h", "a user without a password"},
        {"redis://h?prefix=", "prefix="},
        {"redis://h?prefix=%7Bx", "prefix="},
        {"redis://h?prefix=a%00b", "control character"},
        {"redis://h%0a", "control character"},
        {"redis://h%4", "two hexadecimal digits"},
        {"redis://h%zz", "two hexadecimal digits"},
        {"redis://h?replicas=-1", "replicas="},
        {"redis://h?timeout=0", "timeout="},
        {"redis://h?timeout=nan", "timeout="},
        {"redis://h?timeout=.", "timeout="},
        {"redis://h?retry=1e9", "retry="},
        {"redis://h?count=x", "count="},
        {"redis://h?unknown=1", "no other option"},
        {"redis+unix://", "the path of the socket"},
        {"redis+unix://h/path", "a host before the path"},
        {"redis+sentinel://h", "the name of the service"},
        {"redis+cluster://a,,b", "a host is missing"},
        {"redis+cluster://a/1", "db 0 only"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dp_redis_url url;
        doppel_error error = {0};
        assert_int_equal(dp_redis_url_parse(cases[i].url, &url, &error), DOPPEL_ERROR_USAGE);
        if (!strstr(error.message, cases[i].words))
            fail_msg("%s: %s", cases[i].url, error.message);
        assert_null(strstr(error.message, "secret"));
        assert_int_equal(dp_redis_url_parse(cases[i].url, &url, NULL), DOPPEL_ERROR_USAGE);
    }
}

static void paths_that_are_urls_of_a_shared_store(void **state) {
    (void)state;
    assert_true(dp_known_is_shared_path("redis://h"));
    assert_true(dp_known_is_shared_path("redis+unix:///s"));
    assert_true(dp_known_is_shared_path("redis+sentinel://h/s"));
    assert_true(dp_known_is_shared_path("redis+cluster://h"));
    assert_false(dp_known_is_shared_path("redis:/h"));
    assert_false(dp_known_is_shared_path("redis"));
    assert_false(dp_known_is_shared_path("/var/lib/redis://"));
    assert_false(dp_known_is_shared_path(""));
}

int main(void) {
    unsetenv("DOPPEL_REDIS_PASSWORD");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_server),
        cmocka_unit_test(a_unix_socket),
        cmocka_unit_test(sentinels_and_a_cluster),
        cmocka_unit_test(names_have_no_password),
        cmocka_unit_test(the_environment_has_the_password_that_is_not_in_the_url),
        cmocka_unit_test(what_makes_no_sense_is_told),
        cmocka_unit_test(paths_that_are_urls_of_a_shared_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
