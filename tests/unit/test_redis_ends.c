/* test_redis_ends.c - the keys of a memory in Redis: when each is removed, and that none is left. */
#include "redis_memories.h"

/* The answers of the last commits stay for two minutes at most; a memory that is empty has nothing else. */
static void check_rest(const redisReply *key, char kind, long long left) {
    if (kind != 'r' || left <= 0 || left > 120000)
        fail_msg("%s is left, for %lld ms", key->str, left);
}

static void nothing_is_left_when_all_are_removed(void **state) {
    (void)state;
    enum { FILL = 60 };
    static const doppel_on_duplicate ways[] = {DOPPEL_DUPLICATE_SKIP, DOPPEL_DUPLICATE_LINK, DOPPEL_DUPLICATE_STORE};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        redis_do(&server, "FLUSHALL");
        doppel_engine_options options = with_titles();
        options.on_duplicate = ways[way];
        doppel_engine *engine = open_memory(options);
        fill(engine, DOPPEL_NEVER, FILL);
        assert_true(redis_number(&server, "DBSIZE") > 10);
        for (size_t i = 0; i < FILL; i++) {
            char id[32];
            snprintf(id, sizeof id, "id%zu", FILL - 1 - i);
            remove_one(engine, id);
            if (i < FILL / 2) /* while there is a memory: asking makes a new one */
                assert_false(remove_one(engine, id));
        }
        each_key(check_rest);
        /* It goes on. */
        assert_true(is_new(engine, "again", 77));
        assert_false(is_new(engine, "and again", 77));
        doppel_engine_close(engine);
    }
}

/* A bucket stays a 16th longer than what is in it. */
static void check_end(const redisReply *key, char kind, long long left) {
    (void)kind;
    if (left <= 0 || left > TTL * 1000 / 16 * 17 + 2000)
        fail_msg("%s ends in %lld ms", key->str, left);
}

static void every_key_has_an_end(void **state) {
    (void)state;
    doppel_engine_options options = with_titles();
    options.keep_text = DOPPEL_SWITCH_ON;
    doppel_engine *engine = open_memory(options);
    fill(engine, TTL, 60);
    assert_true(each_key(check_end) > 10);
    doppel_engine_close(engine);
}

/* A document that stays for longer than the others comes, with a copy by its title, and is removed. */
static void check_trace_of(uint64_t ttl) {
    doppel_engine *engine = open_memory(with_titles());
    fill(engine, TTL, 20);
    page p = {.id = "long", .title = "a title that stays for long", .fingerprint = {0x0F0F0F0F0F0F0F0F}, .ttl = ttl};
    assert_false(add_page(engine, p).duplicate);
    p.id = "its copy";
    p.fingerprint[0] = 0xF0F0F0F0F0F0F0F0;
    assert_string_equal(add_page(engine, p).reason, "title_similarity");
    assert_true(remove_one(engine, "its copy"));
    assert_true(remove_one(engine, "long"));
    assert_true(each_key(check_end) > 10);
    /* The same title once more, for no longer than the others. */
    p.ttl = TTL;
    assert_false(add_page(engine, p).duplicate);
    p.id = "a copy of that";
    p.fingerprint[0] = 0x0F0F0F0F0F0F0F0F;
    assert_string_equal(add_page(engine, p).reason, "title_similarity");
    assert_true(each_key(check_end) > 10);
    doppel_engine_close(engine);
}

static void what_never_ends_leaves_no_trace_when_it_is_removed(void **state) {
    (void)state;
    check_trace_of(DOPPEL_NEVER);
}

static void what_ends_late_leaves_no_trace_when_it_is_removed(void **state) {
    (void)state;
    check_trace_of(1000 * TTL);
}

/* ---- entries ---- */

enum { CLASSES = 3 };
static size_t entries[CLASSES];

static uint64_t load(const char *from, size_t bytes) {
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | (uint8_t)from[i];
    return number;
}

/* The entries of a field: their size and where their hours stand, by the letter of their bucket. */
static void check_field(const redisReply *key, size_t class, const redisReply *value, long long left) {
    static const size_t sizes[CLASSES] = {8, 16, 21}, times[CLASSES] = {5, 5, 8};
    assert_true(value->len && value->len % sizes[class] == 0);
    for (size_t at = 0; at < value->len; at += sizes[class], entries[class]++) {
        /* The hour in which it ends has passed by then. */
        long long hours = (long long)load(value->str + at + times[class], 3);
        if (left < ((hours - 1) * HOUR - NOW) * 1000 - 60000)
            fail_msg("%s goes %lld ms from now, before an entry of it", key->str, left);
    }
}

/* That a bucket stays for as long as any of its entries, and goes when it says so. */
static void check_bucket(const redisReply *key, char kind, long long left) {
    static const char letters[] = "bfs";
    const char *letter = strchr(letters, kind);
    if (!letter)
        return;
    redisReply *fields = redis_say(&server, "HGETALL %b", key->str, key->len);
    assert_true(fields->elements > 2); /* the time, and what is in it */
    for (size_t i = 0; i + 1 < fields->elements; i += 2) {
        const redisReply *field = fields->element[i], *value = fields->element[i + 1];
        if (field->len > 1) {
            assert_int_equal(field->len, 3);
            check_field(key, (size_t)(letter - letters), value, left);
        } else {
            assert_int_equal(field->str[0], 'x');
            uint64_t goes = NOW * 1000ULL + (uint64_t)left;
            assert_in_range(load(value->str, 5) * 1000, goes, goes + 60000);
        }
    }
    freeReplyObject(fields);
}

/* That counts and lists of copies stay for exactly as long as their document. */
static void check_document_keys(const redisReply *key, char kind, long long left) {
    if (!strchr("tca", kind))
        return;
    char document[32];
    assert_true(key->len < sizeof document);
    memcpy(document, key->str, key->len);
    document[3] = 'd';
    redisReply *its = redis_say(&server, "PTTL %b", document, key->len);
    if (its->integer < left - 2000 || its->integer > left + 2000)
        fail_msg("a key of a document that goes in %lld ms goes in %lld", its->integer, left);
    freeReplyObject(its);
}

static void no_key_ends_before_what_is_in_it(void **state) {
    (void)state;
    doppel_engine_options options = with_titles();
    options.count = 100; /* few buckets */
    doppel_engine *engine = open_memory(options);
    memset(entries, 0, sizeof entries);
    for (uint64_t i = 0; i < 200; i++) {
        char id[16];
        uint64_t seed = i + 1;
        snprintf(id, sizeof id, "%d", (int)i);
        /* The times go up and down. */
        add_page(engine, (page){.id = id,
                                .title = i % 2 ? "the harbour bridge was opened" : "potters in the hill villages",
                                .fingerprint = {random_next(&seed) & 0xFFFFFFFF},
                                .digest = (uint8_t)(i / 2 + 1),
                                .ttl = 100 + (i * 7919) % 10 * 100 * TTL});
    }
    each_key(check_bucket);
    each_key(check_document_keys);
    for (int i = 0; i < CLASSES; i++)
        if (entries[i] < 4)
            fail_msg("%zu entries of class %d", entries[i], i);
    doppel_engine_close(engine);
}

/* ---- titles ---- */

/* Entries of the largest field of a class: the owners of the title that most have. */
static size_t largest;

static void note_largest(const redisReply *key, char kind, long long left) {
    (void)left;
    if (kind != 'b')
        return;
    redisReply *fields = redis_say(&server, "HGETALL %b", key->str, key->len);
    for (size_t i = 0; i + 1 < fields->elements; i += 2) {
        const redisReply *field = fields->element[i], *value = fields->element[i + 1];
        if (field->len > 1 && value->len / 8 > largest)
            largest = value->len / 8;
    }
    freeReplyObject(fields);
}

static size_t owners(void) {
    largest = 0;
    each_key(note_largest);
    return largest;
}

/* The owners of a title that many have: each is there once, until it is removed; one that has expired goes with the
 * next sweep. */
static void owners_of_a_title_come_and_go(void **state) {
    (void)state;
    static const char title[] = "a title that is neither short nor rare";
    enum { OWNERS = 300 };
    doppel_engine_options options = with_titles();
    options.title_share = 1e-9; /* more than eight are too many */
    options.ttl = DOPPEL_NEVER;
    doppel_engine *engine = open_memory(options);
    uint64_t seed = 3;
    for (int i = 0; i < OWNERS; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        add_page(
            engine,
            (page){.id = id, .title = title, .fingerprint = {random_next(&seed)}, .ttl = i % 3 ? 2 * HOUR : 8 * HOUR});
    }
    size_t before = owners();
    assert_true(before > OWNERS - 30 && before <= OWNERS);
    assert_true(remove_one(engine, "0"));
    assert_int_equal(owners(), before - 1);
    now += 4 * HOUR;
    assert_false(add_page(engine, (page){.id = "late", .title = title, .fingerprint = {random_next(&seed)}}).duplicate);
    doppel_error error = {0};
    if (doppel_engine_compact(engine, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    assert_in_range(owners(), before / 3 - 10, before / 3 + 10);
    doppel_engine_close(engine);
}

/* ---- times ---- */

static void the_memory_goes_and_comes_back(void **state) {
    (void)state;
    doppel_engine_options options = with_titles();
    options.size = sizeof options; /* the clock of the server: Redis ends keys by it */
    doppel_engine *engine;
    assert_int_equal(doppel_engine_open(memory_url(), &options, &engine, NULL), DOPPEL_OK);
    fill(engine, 2, 60);
    assert_true(redis_number(&server, "DBSIZE") > 10);
    for (int i = 0; i < 80 && redis_number(&server, "DBSIZE"); i++)
        pause_for(0.1);
    assert_int_equal(redis_number(&server, "DBSIZE"), 0);
    assert_true(is_new(engine, "new", 1));
    assert_int_equal(documents_of(engine), 1);
    doppel_engine_close(engine);
}

static void expired_ones_are_not_found_by_a_given_clock(void **state) {
    (void)state;
    doppel_engine *engine = open_memory(by_distance());
    const page other = {.id = "b", .fingerprint = {99}};
    assert_true(is_new(engine, "a", 99));
    now = NOW + TTL - 1;
    assert_true(check_page(engine, other).duplicate);
    now = NOW + TTL;
    assert_false(check_page(engine, other).duplicate);
    assert_false(add_page(engine, other).duplicate);
    assert_int_equal(documents_of(engine), 1);
    doppel_engine_close(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_is_left_when_all_are_removed, start_empty),
        cmocka_unit_test_setup(every_key_has_an_end, start_empty),
        cmocka_unit_test_setup(what_never_ends_leaves_no_trace_when_it_is_removed, start_empty),
        cmocka_unit_test_setup(what_ends_late_leaves_no_trace_when_it_is_removed, start_empty),
        cmocka_unit_test_setup(no_key_ends_before_what_is_in_it, start_empty),
        cmocka_unit_test_setup(owners_of_a_title_come_and_go, start_empty),
        cmocka_unit_test_setup(the_memory_goes_and_comes_back, start_empty),
        cmocka_unit_test_setup(expired_ones_are_not_found_by_a_given_clock, start_empty),
    };
    return run_with_redis("redis_ends", tests, sizeof tests / sizeof *tests);
}
