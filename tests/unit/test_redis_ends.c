/* test_redis_ends.c - the keys of a shared memory in Redis: when each goes, and that nothing is left behind. */
#include "redis_memories.h"

static void nothing_is_left_when_all_are_removed(void **state) {
    (void)state;
    enum { FILL = 60 };
    dp_shared *shared = open_memory(with_titles());
    fill(shared, NOW, DOPPEL_NEVER, FILL);
    assert_true(redis_number(&server, "DBSIZE") > 10);
    for (size_t i = 0; i < FILL; i++) {
        char id[32];
        snprintf(id, sizeof id, "id%zu", FILL - 1 - i);
        remove_one(shared, id);
        assert_false(remove_one(shared, id));
    }
    assert_int_equal(redis_number(&server, "DBSIZE"), 0);
    /* It goes on. */
    assert_true(is_new(shared, "again", 77));
    assert_false(is_new(shared, "and again", 77));
    dp_shared_close(shared);
}

/* Times are rounded up by at most 1/256. */
static void check_ends(void) {
    redisReply *reply = redis_say(&server, "KEYS *");
    assert_true(reply->elements > 10);
    for (size_t i = 0; i < reply->elements; i++) {
        redisReply *left = redis_say(&server, "PTTL %b", reply->element[i]->str, reply->element[i]->len);
        if (left->integer <= 0 || left->integer > TTL * 1004)
            fail_msg("%s ends in %lld ms", reply->element[i]->str, left->integer);
        freeReplyObject(left);
    }
    freeReplyObject(reply);
}

static void every_key_has_an_end(void **state) {
    (void)state;
    dp_shared *shared = open_memory(with_titles());
    fill(shared, NOW, TTL, 60);
    check_ends();
    dp_shared_close(shared);
}

/* A document that stays for longer than the others comes, with a copy by its title, and is removed. */
static void check_trace_of(uint64_t ttl) {
    dp_shared *shared = open_memory(with_titles());
    fill(shared, NOW, TTL, 20);
    dp_shared_request r = request_of(DP_SHARED_ADD, "long", 0x0F0F0F0F0F0F0F0F);
    r.ttl = ttl;
    r.trace.title = text_of("a title that stays for long");
    assert_int_equal(ask_one(shared, r, NULL).reason, DP_UNIQUE);
    r.record.id = text_of("its copy");
    r.trace.fingerprint[0] = 0xF0F0F0F0F0F0F0F0;
    assert_int_equal(ask_one(shared, r, NULL).reason, DP_SAME_TITLE);
    assert_true(remove_one(shared, "long"));
    check_ends();
    /* The same title once more, for no longer than the others. */
    r.ttl = TTL;
    assert_int_equal(ask_one(shared, r, NULL).reason, DP_UNIQUE);
    r.record.id = text_of("a copy of that");
    r.trace.fingerprint[0] = 0x0F0F0F0F0F0F0F0F;
    assert_int_equal(ask_one(shared, r, NULL).reason, DP_SAME_TITLE);
    check_ends();
    dp_shared_close(shared);
}

static void what_never_ends_leaves_no_trace_when_it_is_removed(void **state) {
    (void)state;
    check_trace_of(DOPPEL_NEVER);
}

static void what_ends_late_leaves_no_trace_when_it_is_removed(void **state) {
    (void)state;
    check_trace_of(1000 * TTL);
}

/* That a bucket, and a list of copies, stays for as long as any of its entries. */
static void check_stays(void) {
    static const char kinds[] = "nbsa";
    static const size_t sizes[] = {13, 17, 16, 9};
    redisReply *keys = redis_say(&server, "KEYS *");
    size_t entries = 0, lists = 0;
    for (size_t i = 0; i < keys->elements; i++) {
        const redisReply *key = keys->element[i];
        const char *kind = strchr(kinds, key->str[3]);
        if (!kind)
            continue;
        size_t size = sizes[kind - kinds];
        redisReply *bucket = redis_say(&server, "GET %b", key->str, key->len);
        redisReply *left = redis_say(&server, "PTTL %b", key->str, key->len);
        for (size_t at = *kind == 'a' ? 0 : 8; at < bucket->len; at += size, entries++) {
            const uint8_t *time = (const uint8_t *)bucket->str + at + size - 4;
            long long expires = (long long)time[0] << 24 | time[1] << 16 | time[2] << 8 | time[3];
            if (left->integer < (expires - NOW) * 1000 - 60000)
                fail_msg("%s goes %lld ms from now, before an entry of it", key->str, left->integer);
        }
        lists += *kind == 'a';
        freeReplyObject(bucket);
        freeReplyObject(left);
    }
    assert_true(entries > 50 && lists > 0);
    freeReplyObject(keys);
}

static void no_key_ends_before_what_is_in_it(void **state) {
    (void)state;
    dp_shared *shared = open_memory(with_titles());
    for (uint64_t i = 0; i < 200; i++) {
        char id[16];
        uint64_t seed = i + 1;
        snprintf(id, sizeof id, "%d", (int)i);
        /* Of a hundred fingerprints near enough to share buckets, the times go up and down. */
        dp_shared_request r = request_of(DP_SHARED_ADD, id, random_next(&seed) & 0xFFFFFFFF);
        r.ttl = 100 + (i * 7919) % 10 * TTL;
        r.on_duplicate = DOPPEL_DUPLICATE_LINK;
        r.trace.title = text_of(i % 2 ? "the harbour bridge was opened" : "potters in the hill villages");
        ask_one(shared, r, NULL);
    }
    check_stays();
    dp_shared_close(shared);
}

/* The owners of a title that many have: each is there once, until it expires or is removed. */
static void owners_of_a_title_come_and_go(void **state) {
    (void)state;
    static const char title[] = "a title that is neither short nor rare";
    enum { OWNERS = 300, HEAD = 3 + sizeof title - 1 + 8 };
    dp_shared *shared = open_memory(with_titles());
    uint64_t seed = 3;
    dp_shared_request r;
    for (int i = 0; i < OWNERS; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        r = request_of(DP_SHARED_ADD, id, random_next(&seed));
        r.ttl = i % 3 ? TTL : 2 * TTL;
        r.title_share = 1e-9; /* more than eight are too many */
        r.trace.title = text_of(title);
        ask_one(shared, r, NULL);
    }
    redisReply *keys = redis_say(&server, "KEYS {t}t*");
    assert_int_equal(keys->elements, 1);
    redisReply *size = redis_say(&server, "STRLEN %b", keys->element[0]->str, keys->element[0]->len);
    long long owners = (size->integer - HEAD) / 9;
    freeReplyObject(size);
    assert_true(owners > OWNERS - 30);
    assert_true(remove_one(shared, "0"));
    r.now = NOW + TTL;
    r.record.id = text_of("late");
    r.trace.fingerprint[0] = random_next(&seed);
    assert_int_equal(ask_one(shared, r, NULL).reason, DP_UNIQUE);
    size = redis_say(&server, "STRLEN %b", keys->element[0]->str, keys->element[0]->len);
    assert_int_equal(size->integer % 9, HEAD % 9);
    assert_in_range((size->integer - HEAD) / 9, owners / 3 - 10, owners / 3 + 10);
    freeReplyObject(size);
    freeReplyObject(keys);
    dp_shared_close(shared);
}

static void the_memory_comes_back_in_time(void **state) {
    (void)state;
    dp_shared *shared = open_memory(with_titles());
    fill(shared, 0, 2, 60);
    assert_true(redis_number(&server, "DBSIZE") > 10);
    for (int i = 0; i < 60 && redis_number(&server, "DBSIZE"); i++)
        pause_for(0.1);
    assert_int_equal(redis_number(&server, "DBSIZE"), 0);
    dp_shared_request r = request_of(DP_SHARED_ADD, "new", 1);
    r.now = 0;
    assert_int_equal(ask_one(shared, r, NULL).reason, DP_UNIQUE);
    dp_shared_close(shared);
}

static void expired_ones_are_not_found_by_a_given_clock(void **state) {
    (void)state;
    dp_shared *shared = open_memory(usual);
    assert_true(is_new(shared, "a", 99));
    dp_shared_request r = request_of(DP_SHARED_CHECK, "b", 99);
    r.now = NOW + TTL - 1;
    assert_int_equal(ask_one(shared, r, NULL).reason, DP_SAME_CONTENT);
    r.now = NOW + TTL;
    assert_int_equal(ask_one(shared, r, NULL).reason, DP_UNIQUE);
    r.op = DP_SHARED_ADD;
    assert_int_equal(ask_one(shared, r, NULL).reason, DP_UNIQUE);
    dp_shared_info info;
    assert_int_equal(dp_shared_get_info(shared, r.now, &info, NULL), DOPPEL_OK);
    assert_int_equal(info.documents, 1);
    dp_shared_close(shared);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_is_left_when_all_are_removed, start_empty),
        cmocka_unit_test_setup(every_key_has_an_end, start_empty),
        cmocka_unit_test_setup(what_never_ends_leaves_no_trace_when_it_is_removed, start_empty),
        cmocka_unit_test_setup(what_ends_late_leaves_no_trace_when_it_is_removed, start_empty),
        cmocka_unit_test_setup(no_key_ends_before_what_is_in_it, start_empty),
        cmocka_unit_test_setup(owners_of_a_title_come_and_go, start_empty),
        cmocka_unit_test_setup(the_memory_comes_back_in_time, start_empty),
        cmocka_unit_test_setup(expired_ones_are_not_found_by_a_given_clock, start_empty),
    };
    return run_with_redis("redis_ends", tests, sizeof tests / sizeof *tests);
}
