/* test_redis_settling.c - requests that reach a shared memory a second time, as after a connection that broke: they
 * have the answer of the first time, or are carried out if they were not. The server's language is one that does not
 * sort as bytes do, where the machine can make it. */
#include "redis_server.h"

#include "store/redis_memory.h"

enum { COUNT = 300 }; /* more than a byte counts */

static redis_server server;
static dp_shared *shared;
static dp_redis_link *link_of;
static dp_arena arena;
static dp_redis_memory memory;
static dp_redis_command command[COUNT];

static int start_server(void **state) {
    (void)state;
    static const char *const settings[] = {"--save", "", "--appendonly", "no", NULL};
    static char folder[] = "/tmp/doppel-locale-XXXXXX", make[160];
    assert_non_null(mkdtemp(folder));
    snprintf(make, sizeof make, "localedef -i en_US -f UTF-8 %s/en_US.UTF-8 >%s/log 2>&1", folder, folder);
    if (!system(make)) {
        setenv("LOCPATH", folder, 1);
        setenv("LC_ALL", "en_US.UTF-8", 1);
    } else {
        print_message("there is no localedef, or no en_US: the server sorts as bytes do\n");
    }
    server = redis_start(settings);
    snprintf(make, sizeof make, "rm -r %s", folder);
    return system(make);
}

static int stop_server(void **state) {
    (void)state;
    redis_remove(&server);
    return 0;
}

/* A new memory, and a link to it whose first request is number 1. */
static int start_empty(void **state) {
    (void)state;
    const dp_shared_options options = {.settings = "recipe=page\n", .rules = {.distance = 3, .bits = 64}};
    doppel_error error = {0};
    redis_do(&server, "FLUSHALL");
    if (dp_shared_open(server.url, &options, &shared, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    memory = dp_shared_memory(shared);
    link_of = dp_redis_take(shared->pool, &error);
    return !link_of;
}

static int stop(void **state) {
    (void)state;
    dp_redis_give(shared->pool, link_of);
    dp_shared_close(shared);
    dp_arena_free(&arena);
    return 0;
}

static doppel_slice slice_of(const char *text) {
    return (doppel_slice){text, strlen(text)};
}

static bool given; /* whether ids are, or derived */

/* Makes request number i + 1: to add, or to remove, a page with a URL and words of its own. */
static void make_request(size_t i, dp_shared_op op, const char *id) {
    uint64_t seed = i + 1;
    dp_shared_request r = {.op = op, .id_given = given, .on_duplicate = DOPPEL_DUPLICATE_LINK, .ttl = 1000};
    r.record.id = r.record.canonical = r.record.url = slice_of(id);
    r.trace.content = true;
    r.trace.fingerprint[0] = random_next(&seed);
    dp_redis_writer w = {.arena = &arena, .memory = &memory};
    dp_redis_put_request(&w, shared, &r, link_of);
    assert_false(w.failed);
    command[i] = w.command;
}

/* The answer to a request: its flags, its reason in `reason`. */
static unsigned send_request(size_t i, bool again, unsigned *reason) {
    redisReply *reply;
    doppel_error error = {0};
    command[i].argv[command[i].again] = again ? "1" : "0";
    if (dp_redis_call(link_of, &command[i], 1, false, &reply, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    if (reply->type != REDIS_REPLY_ARRAY)
        fail_msg("%zu: %s", i, reply->str);
    *reason = (unsigned char)reply->element[0]->str[1];
    unsigned flags = (unsigned char)reply->element[0]->str[2];
    freeReplyObject(reply);
    return flags;
}

static long long documents(void) {
    dp_shared_info info;
    assert_int_equal(dp_shared_get_info(shared, 0, &info, NULL), DOPPEL_OK);
    return (long long)info.documents;
}

static void name(size_t i, char id[24]) {
    snprintf(id, 24, "https://a.example/%zu", i);
}

static void what_was_carried_out_is_told_as_it_was(void **state) {
    (void)state;
    unsigned reason;
    static char ids[COUNT][24];
    for (size_t i = 0; i < COUNT; i++) {
        name(i, ids[i]);
        make_request(i, DP_SHARED_ADD, ids[i]);
        send_request(i, false, &reason);
        assert_int_equal(reason, DP_UNIQUE);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(send_request(i, true, &reason), 0);
        if (reason != DP_UNIQUE)
            fail_msg("request %zu was told that it is a duplicate of itself", i + 1);
    }
    assert_int_equal(documents(), COUNT);
}

static void what_was_not_carried_out_is_done_now(void **state) {
    (void)state;
    unsigned reason;
    make_request(0, DP_SHARED_ADD, "https://a.example/0");
    make_request(1, DP_SHARED_ADD, "https://a.example/1");
    make_request(2, DP_SHARED_REMOVE, "https://a.example/1");
    make_request(3, DP_SHARED_ADD, "https://a.example/3");
    send_request(1, false, &reason);
    send_request(3, false, &reason); /* those before it were refused */
    send_request(0, true, &reason);
    assert_int_equal(reason, DP_UNIQUE);
    assert_int_equal(documents(), 3);
    assert_int_equal(send_request(2, true, &reason) & 4, 4);
    assert_int_equal(documents(), 2);
}

/* Answers are kept for two minutes; what was added tells after that. */
static void what_was_added_long_ago_is_told_as_it_was(void **state) {
    (void)state;
    unsigned reason;
    make_request(0, DP_SHARED_ADD, "https://a.example/0");
    send_request(0, false, &reason);
    redisReply *keys = redis_say(&server, "KEYS {doppel}o*");
    assert_int_equal(keys->elements, 1);
    freeReplyObject(redis_say(&server, "DEL %b", keys->element[0]->str, keys->element[0]->len));
    freeReplyObject(keys);
    assert_int_equal(send_request(0, true, &reason), 0);
    assert_int_equal(reason, DP_UNIQUE);
    assert_int_equal(documents(), 1);
}

/* A memory that more links have used than a call of Redis takes arguments: those of long ago go with the next new one,
 * the others with the memory. */
static void any_number_of_links_may_have_used_it(void **state) {
    (void)state;
    static const char fill[] =
        "for i = 1, 9000 do redis.call('HSET', '{doppel}m', string.format('r%08d', i), ARGV[1]) end";
    unsigned reason;
    for (int round = 0; round < 2; round++) {
        const char *seen = round ? "12345678\x7F\0\0\0\1" : "12345678\0\0\0\0\1";
        freeReplyObject(redis_say(&server, "EVAL %s 0 %b", fill, seen, (size_t)13));
        make_request((size_t)round, round ? DP_SHARED_REMOVE : DP_SHARED_ADD, "https://a.example/0");
        send_request((size_t)round, false, &reason);
        if (!round)
            assert_in_range(redis_number(&server, "HLEN {doppel}m"), 1, 20);
    }
    assert_int_equal(redis_number(&server, "EXISTS {doppel}m"), 0);
}

/* A new version of a page takes the place of the old one then, too. */
static void versions_that_were_not_added_are_added_now(void **state) {
    (void)state;
    unsigned reason;
    given = true;
    for (size_t i = 0; i < 3; i++)
        make_request(i, DP_SHARED_ADD, i < 2 ? "https://a.example/0" : "https://a.example/2");
    given = false;
    send_request(0, false, &reason);
    send_request(2, false, &reason);
    assert_int_equal(send_request(1, true, &reason), 2);
    assert_int_equal(reason, DP_UNIQUE);
    assert_int_equal(documents(), 2);
    assert_int_equal(send_request(1, true, &reason), 2);
    assert_int_equal(documents(), 2);
}

static void removals_are_told_as_they_were(void **state) {
    (void)state;
    unsigned reason;
    make_request(0, DP_SHARED_ADD, "https://a.example/0");
    make_request(1, DP_SHARED_ADD, "https://a.example/1");
    make_request(2, DP_SHARED_REMOVE, "https://a.example/1");
    make_request(3, DP_SHARED_REMOVE, "https://a.example/nobody");
    for (size_t i = 0; i < 4; i++)
        send_request(i, false, &reason);
    assert_int_equal(send_request(2, true, &reason) & 4, 4);
    assert_int_equal(send_request(3, true, &reason) & 4, 0);
    assert_int_equal(documents(), 1);
}

/* The last removal takes the memory with it; what is known of the requests before it stays for a while. */
static void the_last_removal_is_told_as_it_was(void **state) {
    (void)state;
    unsigned reason;
    make_request(0, DP_SHARED_ADD, "https://a.example/0");
    make_request(1, DP_SHARED_REMOVE, "https://a.example/0");
    send_request(0, false, &reason);
    assert_int_equal(send_request(1, false, &reason) & 4, 4);
    send_request(0, true, &reason);
    assert_int_equal(reason, DP_UNIQUE);
    assert_int_equal(send_request(1, true, &reason) & 4, 4);
    assert_int_equal(documents(), 0);
}

/* A connection that was given up may hold requests that the server reads after they were sent again on another one, and
 * after others that followed: they change nothing any more. */
static void requests_that_come_late_change_nothing(void **state) {
    (void)state;
    unsigned reason;
    given = true;
    make_request(0, DP_SHARED_ADD, "https://a.example/0");
    make_request(1, DP_SHARED_ADD, "https://a.example/0");
    given = false;
    send_request(0, true, &reason);
    assert_int_equal(send_request(1, false, &reason), 2); /* a new version takes its place */
    assert_int_equal(send_request(0, false, &reason), 0); /* and keeps it */
    assert_int_equal(send_request(1, true, &reason), 2);
    assert_int_equal(documents(), 1);
}

static void removals_that_come_late_remove_nothing(void **state) {
    (void)state;
    unsigned reason;
    const char *ids[] = {"https://a.example/0", "https://a.example/1"};
    make_request(0, DP_SHARED_ADD, ids[0]);
    make_request(1, DP_SHARED_REMOVE, ids[1]); /* finds nothing */
    make_request(2, DP_SHARED_ADD, ids[1]);
    make_request(3, DP_SHARED_REMOVE, ids[0]);
    make_request(4, DP_SHARED_ADD, ids[0]);
    send_request(0, false, &reason);
    send_request(1, true, &reason);
    send_request(2, false, &reason);
    send_request(1, false, &reason);
    assert_int_equal(documents(), 2);
    assert_int_equal(send_request(3, true, &reason) & 4, 4);
    send_request(4, false, &reason);
    send_request(3, false, &reason);
    assert_int_equal(documents(), 2);
}

int main(void) {
    if (!redis_installed())
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_carried_out_is_told_as_it_was, start_empty, stop),
        cmocka_unit_test_setup_teardown(what_was_not_carried_out_is_done_now, start_empty, stop),
        cmocka_unit_test_setup_teardown(what_was_added_long_ago_is_told_as_it_was, start_empty, stop),
        cmocka_unit_test_setup_teardown(any_number_of_links_may_have_used_it, start_empty, stop),
        cmocka_unit_test_setup_teardown(versions_that_were_not_added_are_added_now, start_empty, stop),
        cmocka_unit_test_setup_teardown(removals_are_told_as_they_were, start_empty, stop),
        cmocka_unit_test_setup_teardown(the_last_removal_is_told_as_it_was, start_empty, stop),
        cmocka_unit_test_setup_teardown(requests_that_come_late_change_nothing, start_empty, stop),
        cmocka_unit_test_setup_teardown(removals_that_come_late_remove_nothing, start_empty, stop),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
