/* test_redis_settling.c - commits that reach a memory in Redis a second time, as after a connection that broke: they
 * have the answer of the first time, are carried out if they were not, and change nothing when they come late. The
 * server's language is one that does not sort as bytes do, where the machine can make it. */
#include "redis_proxy.h"

#include "redis_memories.h"

#include "known/redis.h"

enum { COUNT = 300 }; /* more than a byte counts */

static char epoch[8];
static doppel_engine *engine;

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

static void read_epoch(void) {
    redisReply *reply = redis_say(&server, "HGET {t}m e");
    assert_int_equal(reply->len, sizeof epoch);
    memcpy(epoch, reply->str, sizeof epoch);
    freeReplyObject(reply);
}

/* A new memory. */
static int start_memory(void **state) {
    start_empty(state);
    engine = open_memory(by_distance());
    read_epoch();
    return 0;
}

static int stop_memory(void **state) {
    (void)state;
    doppel_engine_close(engine);
    return 0;
}

/* ---- commits as functions.lua takes them ---- */

typedef struct request {
    const char *link; /* 8 bytes */
    uint64_t number;
    doppel_slice stamp;   /* what it rests on; data NULL: what is there */
    uint64_t add, remove; /* the number of a document; 0: none */
} request;

static void put(uint8_t *to, uint64_t number, size_t bytes) {
    dp_bytes_store(to, number, bytes);
}

/* What it is answered with, in a buffer that the next call uses again; an error as it is. */
static const char *send_commit(const request *r) {
    static char said[256];
    char function[64], last[24];
    uint8_t number[8], document[6] = {'d'}, gone[5];
    redisReply *stamp = redis_say(&server, "HGET {t}m o");
    put(number, r->number, 8);
    put(document + 1, r->add, 5);
    put(gone, r->remove, 5);
    snprintf(function, sizeof function, "%s_%s", dp_redis_library_name, r->add ? "commit" : "remove");
    snprintf(last, sizeof last, "%llu", (unsigned long long)r->add);
    const struct {
        const void *bytes;
        size_t length;
    } head[] = {{"FCALL", 5},
                {function, strlen(function)},
                {"1", 1},
                {"{t}m", 4},
                {epoch, 8},
                {r->link, 8},
                {number, 8},
                {r->stamp.data ? r->stamp.data : stamp->str, r->stamp.data ? r->stamp.length : stamp->len},
                {"1700000000", 10}, /* now */
                {last, strlen(last)},
                {r->add ? "0" : "", r->add != 0}, /* when it expires: never */
                {"0", 1},                         /* and how long that is */
                {r->add ? "0" : "1", 1},          /* the memory may be empty then */
                {"120000", 6},                    /* the answer is kept for so long */
                {"", 0},                          /* places that it writes */
                {"0", 1},                         /* documents that have to be there */
                {"0", 1},                         /* what is removed with as many copies as were read */
                {"0", 1}};                        /* places */
    const char *words[64];
    size_t lengths[64], count = 0;
    for (; count < sizeof head / sizeof *head; count++) {
        words[count] = head[count].length ? head[count].bytes : "";
        lengths[count] = head[count].length;
    }
#define PUT(what, size) (words[count] = (const char *)(what), lengths[count++] = (size))
    PUT(r->add ? "1" : "0", 1); /* documents */
    if (r->add) {
        PUT(document, 6);
        PUT("document", 8);
        PUT("0", 1);
    }
    PUT("0", 1);                   /* counts */
    PUT("0", 1);                   /* links */
    PUT(r->remove ? "1" : "0", 1); /* removals */
    if (r->remove)
        PUT(gone, 5);
    PUT("1", 1); /* totals */
    PUT("d0", 2);
    PUT(r->add ? "1" : "-1", r->add ? 1 : 2);
    PUT("8", 1); /* bytes of a fingerprint */
    PUT("0", 1); /* sweeps */
#undef PUT
    redisContext *context = redisConnectUnix(server.socket);
    redisReply *reply = redisCommandArgv(context, (int)count, words, lengths);
    assert_non_null(reply);
    const redisReply *word = reply->type == REDIS_REPLY_ARRAY && reply->elements ? reply->element[0] : reply;
    snprintf(said, sizeof said, "%s", word->str ? word->str : "no answer");
    freeReplyObject(reply);
    freeReplyObject(stamp);
    redisFree(context);
    return said;
}

#define ANSWERS(expected, ...) assert_string_equal(send_commit(&(request){__VA_ARGS__}), expected)

/* How many documents there are, as they are counted and as they are. */
static long long documents(void) {
    redisReply *keys = redis_say(&server, "KEYS {t}d*");
    long long count = (long long)keys->elements, total = redis_number(&server, "HGET {t}m d0");
    freeReplyObject(keys);
    assert_int_equal(total < 0 ? 0 : total, count);
    return count;
}

static const char one[] = "link one", two[] = "link two";

static void what_was_carried_out_is_told_as_it_was(void **state) {
    (void)state;
    for (uint64_t i = 1; i <= COUNT; i++) {
        ANSWERS("done", one, i, .add = i);
        ANSWERS("done", one, i, .add = i);
        assert_int_equal(documents(), i);
    }
}

static void what_was_not_carried_out_is_done_now(void **state) {
    (void)state;
    ANSWERS("done", one, 1, .add = 1);
    ANSWERS("done", two, 7, .add = 2);
    ANSWERS("done", one, 5, .add = 3); /* those before it were refused */
    ANSWERS("done", two, 8, .add = 4);
    assert_int_equal(documents(), 4);
    ANSWERS("done", one, 6, .remove = 2);
    assert_int_equal(documents(), 3);
}

/* A connection that was given up may hold requests that the server reads after they were sent again on another one, and
 * after others that followed: they change nothing any more. */
static void requests_that_come_late_change_nothing(void **state) {
    (void)state;
    for (uint64_t i = 1; i <= COUNT; i++)
        ANSWERS("done", one, i, .add = i);
    for (uint64_t i = 1; i < COUNT; i++)
        ANSWERS("late", one, i, .add = COUNT + i);
    assert_int_equal(documents(), COUNT);
    assert_int_equal(redis_number(&server, "HGET {t}m n"), COUNT);
    /* Numbers of several bytes, of which a lower one is higher. */
    ANSWERS("done", two, 0x0100, .add = COUNT + 1);
    ANSWERS("late", two, 0xFF, .add = COUNT + 2);
    ANSWERS("done", two, 0x1FFFFFFFF, .add = COUNT + 3);
    ANSWERS("late", two, 0xFFFFFFFF, .add = COUNT + 4);
    ANSWERS("late", two, 0x100000000, .add = COUNT + 5);
    ANSWERS("done", two, 0x200000000, .add = COUNT + 6);
    assert_int_equal(documents(), COUNT + 3);
}

/* Answers are kept for two minutes. After that the commit itself is what others have done since, and what is there is
 * looked at again. */
static void what_was_added_long_ago_is_not_added_again(void **state) {
    (void)state;
    ANSWERS("done", one, 1, .add = 1);
    redisReply *before = redis_say(&server, "HGET {t}m o");
    const doppel_slice stamp = {before->str, before->len};
    assert_int_equal(stamp.length, 16);
    ANSWERS("done", one, 2, stamp, .add = 2);
    redisReply *keys = redis_say(&server, "KEYS {t}r*");
    assert_int_equal(keys->elements, 1);
    redisReply *left = redis_say(&server, "PTTL %b", keys->element[0]->str, keys->element[0]->len);
    assert_in_range(left->integer, 1, 120000);
    freeReplyObject(left);
    freeReplyObject(redis_say(&server, "DEL %b", keys->element[0]->str, keys->element[0]->len));
    freeReplyObject(keys);
    ANSWERS("busy", one, 2, stamp, .add = 2);
    assert_int_equal(documents(), 2);
    freeReplyObject(before);
}

/* However many links have used a memory, it does not grow: what is known of each goes after two minutes. */
static void any_number_of_links_may_have_used_it(void **state) {
    (void)state;
    enum { LINKS = 1000 };
    for (uint64_t i = 1; i <= LINKS; i++) {
        char name[9];
        snprintf(name, sizeof name, "%08u", (unsigned)i);
        ANSWERS("done", name, 1, .add = i);
    }
    assert_in_range(redis_number(&server, "HLEN {t}m"), 1, 20);
    redisReply *keys = redis_say(&server, "KEYS {t}r*");
    assert_int_equal(keys->elements, LINKS);
    for (size_t i = 0; i < LINKS; i++) {
        redisReply *left = redis_say(&server, "PTTL %b", keys->element[i]->str, keys->element[i]->len);
        assert_in_range(left->integer, 1, 120000);
        freeReplyObject(left);
    }
    freeReplyObject(keys);
}

static void removals_are_told_as_they_were(void **state) {
    (void)state;
    ANSWERS("done", one, 1, .add = 1);
    ANSWERS("done", one, 2, .add = 2);
    ANSWERS("done", one, 3, .remove = 2);
    ANSWERS("done", one, 3, .remove = 2);
    ANSWERS("done", two, 1, .add = 3);
    ANSWERS("done", one, 3, .remove = 2);
    assert_int_equal(documents(), 2);
}

static void removals_that_come_late_remove_nothing(void **state) {
    (void)state;
    ANSWERS("done", one, 1, .add = 1);
    ANSWERS("done", one, 2, .add = 2);
    ANSWERS("done", one, 4, .add = 3);
    ANSWERS("late", one, 3, .remove = 1);
    assert_int_equal(documents(), 3);
}

/* The last removal takes the memory with it; what is known of the request stays for a while. */
static void the_last_removal_is_told_as_it_was(void **state) {
    (void)state;
    ANSWERS("done", one, 1, .add = 1);
    ANSWERS("emptied", one, 2, .remove = 1);
    assert_int_equal(redis_number(&server, "EXISTS {t}m"), 0);
    ANSWERS("emptied", one, 2, .remove = 1);
    /* Also when there is another one by then. */
    assert_true(is_new(engine, "a", 99));
    ANSWERS("emptied", one, 2, .remove = 1);
    assert_int_equal(documents_of(engine), 1);
    assert_false(is_new(engine, "b", 99));
}

static void commits_to_another_memory_change_nothing(void **state) {
    (void)state;
    assert_true(is_new(engine, "a", 99));
    memset(epoch, 'x', sizeof epoch);
    ANSWERS("ANOTHER memory is there", one, 1, .add = 7);
    ANSWERS("ANOTHER memory is there", one, 1, .remove = 1);
    assert_int_equal(documents_of(engine), 1);
    redis_do(&server, "FLUSHALL");
    ANSWERS("ANOTHER memory is there", one, 1, .add = 7);
    assert_int_equal(redis_number(&server, "DBSIZE"), 0);
}

static void commits_wait_for_whose_turn_it_is(void **state) {
    (void)state;
    ANSWERS("done", one, 1, .add = 1);
    freeReplyObject(redis_say(&server, "SET {t}h %b PX 60000", one, (size_t)8));
    ANSWERS("wait", two, 1, .add = 2);
    assert_int_equal(documents(), 1);
    ANSWERS("done", one, 2, .add = 3);
    assert_int_equal(redis_number(&server, "EXISTS {t}h"), 0);
    ANSWERS("done", two, 1, .add = 2);
    assert_int_equal(documents(), 3);
    assert_int_equal(redis_number(&server, "HGET {t}m n"), 3); /* it never goes back */
}

/* ---- the engine, over connections that break ---- */

static redis_proxy proxy;

/* Pages are added while the connection is cut after n bytes, for all n, until an add is whole before its cut: each is
 * new, and there once. */
static void add_over_cuts(_Atomic long *direction, long step) {
    char url[128], id[32];
    size_t added = 0;
    uint64_t seed = (uint64_t)step;
    redis_do(&server, "FLUSHALL");
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?prefix=t&retry=20&timeout=2", proxy.port);
    doppel_engine *over = open_at(url, by_distance());
    proxy.cuts = 0;
    for (long n = 0, cuts = -1; proxy.cuts != cuts; n += step, added++) {
        const uint64_t fingerprint = random_next(&seed);
        cuts = proxy.cuts;
        snprintf(id, sizeof id, "cut%ld", n);
        *direction = n;
        answer a = add_page(over, (page){.id = id, .fingerprint = {fingerprint}});
        *direction = -1;
        pause_for(1.5 * proxy.late);
        if (a.duplicate || a.known || a.replaced)
            fail_msg("cut after %ld bytes: a duplicate of `%s`%s%s", n, a.original, a.known ? ", known" : "",
                     a.replaced ? ", replaced" : "");
        assert_string_equal(check_page(over, (page){.fingerprint = {fingerprint}}).original, id);
    }
    assert_true(proxy.cuts > 10);
    assert_int_equal(documents_of(over), added);
    doppel_engine_close(over);
}

static void adds_are_carried_out_once_whatever_is_cut(void **state) {
    (void)state;
    proxy_start(&proxy, &server);
    add_over_cuts(&proxy.up, full_suite() ? 1 : 47);
    add_over_cuts(&proxy.down, full_suite() ? 1 : 13);
    proxy.late = 0.04; /* what was sent before the cut arrives after what follows */
    add_over_cuts(&proxy.up, full_suite() ? 7 : 97);
    proxy_stop(&proxy);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, start_memory, stop_memory)

int main(void) {
    if (!redis_installed())
        return 1;
    const struct CMUnitTest tests[] = {
        CASE(what_was_carried_out_is_told_as_it_was),    CASE(what_was_not_carried_out_is_done_now),
        CASE(requests_that_come_late_change_nothing),    CASE(what_was_added_long_ago_is_not_added_again),
        CASE(any_number_of_links_may_have_used_it),      CASE(removals_are_told_as_they_were),
        CASE(removals_that_come_late_remove_nothing),    CASE(the_last_removal_is_told_as_it_was),
        CASE(commits_to_another_memory_change_nothing),  CASE(commits_wait_for_whose_turn_it_is),
        CASE(adds_are_carried_out_once_whatever_is_cut),
    };
    return cmocka_run_group_tests(tests, start_server, stop);
}
