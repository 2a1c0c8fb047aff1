/* test_redis_shared.c - the shared memory inside a real Redis: what it keeps, how it finds by every plan, and what it
 * says to bytes that are not its own. The rules themselves are tested with those of all engines (test_engine_*.c). */
#include "redis_memories.h"

#include <math.h>

/* ---- what it keeps ---- */

static void documents_come_back_as_they_were(void **state) {
    (void)state;
    dp_shared *shared = open_memory(usual);
    dp_shared_request r = request_of(DP_SHARED_ADD, "one", 0x123456789ABCDEF0);
    r.record.url = text_of("http://www.a.example/b?utm_source=x");
    r.record.canonical = text_of("https://a.example/b");
    r.record.title = text_of("A title");
    r.record.fields = text_of("{\"date\":\"today\"}");
    r.record.origin = text_of("pages/1/7");
    r.record.text_length = 9;
    r.text = text_of("packed");
    memset(r.trace.digest, 7, sizeof r.trace.digest);
    assert_int_equal(ask_one(shared, r, NULL).number, 1);
    dp_shared_documents found;
    assert_int_equal(dp_shared_get(shared, text_of("one"), text_of(NULL), NOW, &found, NULL), DOPPEL_OK);
    assert_int_equal(found.count, 1);
    const dp_shared_document *d = &found.document[0];
    assert_memory_equal(d->record.url.data, r.record.url.data, r.record.url.length);
    assert_int_equal(d->record.url.length, r.record.url.length);
    assert_memory_equal(d->record.title.data, "A title", 7);
    assert_memory_equal(d->record.origin.data, "pages/1/7", 9);
    assert_memory_equal(d->text.data, "packed", 6);
    assert_int_equal(d->record.text_length, 9);
    assert_int_equal(d->record.words, 100);
    assert_int_equal(d->trace.fingerprint[0], 0x123456789ABCDEF0);
    assert_memory_equal(d->trace.digest, r.trace.digest, 32);
    assert_int_equal(d->trace.expires, NOW + TTL);
    dp_shared_documents_free(&found);
    assert_int_equal(dp_shared_get(shared, text_of("x"), text_of("https://a.example/b"), NOW, &found, NULL), DOPPEL_OK);
    assert_int_equal(found.count, 1);
    dp_shared_documents_free(&found);
    dp_shared_close(shared);
}

static void a_second_process_finds_what_the_first_added(void **state) {
    (void)state;
    char original[64];
    dp_shared *first = open_memory(usual), *second = open_memory(usual);
    assert_true(is_new(first, "a", 0xFF00FF00FF00FF00));
    dp_shared_answer answer = ask_one(second, request_of(DP_SHARED_ADD, "b", 0xFF00FF00FF00FF07), original);
    assert_int_equal(answer.reason, DP_SAME_CONTENT);
    assert_string_equal(original, "a");
    assert_int_equal(answer.evidence.distance, 3);
    assert_true(is_new(second, "c", 0xFF00FF00FF00FF0F));
    dp_shared_close(first);
    dp_shared_close(second);
}

/* What is put back may have the same words twice: the first counts. */
static void the_first_of_equals_is_the_original(void **state) {
    (void)state;
    char original[64];
    dp_shared *shared = open_memory(usual);
    static const char *const ids[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++) {
        dp_shared_request r = request_of(DP_SHARED_RESTORE, ids[i], 0x1111111111111111 * (i + 1));
        memset(r.trace.digest, 7, sizeof r.trace.digest);
        r.trace.added = NOW;
        r.trace.expires = NOW + TTL;
        assert_int_equal(ask_one(shared, r, NULL).reason, DP_UNIQUE);
    }
    assert_true(remove_one(shared, "a"));
    dp_shared_request r = request_of(DP_SHARED_CHECK, "d", 0xFFFF);
    memset(r.trace.digest, 7, sizeof r.trace.digest);
    assert_int_equal(ask_one(shared, r, original).reason, DP_SAME_CONTENT);
    assert_string_equal(original, "b");
    dp_shared_close(shared);
}

static void all_are_given_one_after_the_other(void **state) {
    (void)state;
    enum { COUNT = 700 };
    dp_shared *shared = open_memory(usual);
    uint64_t seed = 5, from = 1, seen = 0;
    for (size_t i = 0; i < COUNT; i++) {
        char id[16];
        snprintf(id, sizeof id, "%zu", i);
        is_new(shared, id, random_next(&seed));
    }
    while (from) {
        dp_shared_documents found;
        assert_int_equal(dp_shared_each(shared, &from, NOW, &found, NULL), DOPPEL_OK);
        for (size_t i = 0; i < found.count; i++)
            assert_int_equal(found.document[i].trace.number, ++seen);
        dp_shared_documents_free(&found);
    }
    assert_int_equal(seen, COUNT);
    dp_shared_close(shared);
}

/* ---- plans ---- */

static int distance_of(const uint64_t a[2], const uint64_t b[2]) {
    return __builtin_popcountll(a[0] ^ b[0]) + __builtin_popcountll(a[1] ^ b[1]);
}

/* Fingerprints that lie near each other, of some width. */
static void pick_fingerprint(uint64_t *seed, int bits, int distance, uint64_t to[2]) {
    uint64_t pile = random_below(seed, 12) + 1;
    to[0] = random_next(&pile);
    to[1] = bits > 64 ? random_next(&pile) : 0;
    if (bits < 64)
        to[0] &= ((uint64_t)1 << bits) - 1;
    for (size_t flips = random_below(seed, 2 * (size_t)distance + 3); flips; flips--) {
        size_t bit = random_below(seed, (size_t)bits);
        to[bit / 64] ^= (uint64_t)1 << bit % 64;
    }
}

/* Whoever is nearest, then first, among what was kept; COUNT: nobody within the distance. */
enum { COUNT = 160 };
static size_t nearest(uint64_t kept[][2], size_t count, const uint64_t one[2], int most) {
    size_t best = COUNT;
    for (size_t i = 0; i < count; i++) {
        int distance = distance_of(kept[i], one);
        if (distance <= most && (best == COUNT || distance < distance_of(kept[best], one)))
            best = i;
    }
    return best;
}

static void check_plan(int bits, int distance, uint64_t count) {
    dp_shared_options options = usual;
    options.rules.bits = bits;
    options.rules.distance = distance;
    options.count = count;
    redis_do(&server, "FLUSHALL");
    dp_shared *shared = open_memory(options);
    uint64_t kept[COUNT][2], seed = (uint64_t)(bits * 100 + distance);
    char names[COUNT][16];
    size_t keeps = 0;
    for (size_t i = 0; i < COUNT; i++) {
        char id[16], original[64];
        uint64_t one[2];
        pick_fingerprint(&seed, bits, distance, one);
        snprintf(id, sizeof id, "%zu", i);
        dp_shared_request r = request_of(DP_SHARED_ADD, id, one[0]);
        r.trace.fingerprint[1] = one[1];
        size_t expected = nearest(kept, keeps, one, distance);
        dp_shared_answer answer = ask_one(shared, r, original);
        if ((expected == COUNT) != (answer.reason == DP_UNIQUE) ||
            (expected < COUNT && strcmp(original, names[expected])))
            fail_msg("%d bits within %d, %llu documents: %zu is %s of `%s`", bits, distance, (unsigned long long)count,
                     i, answer.reason ? "a copy" : "new", original);
        if (answer.reason == DP_UNIQUE) {
            memcpy(kept[keeps], one, sizeof one);
            snprintf(names[keeps++], 16, "%s", id);
        }
    }
    dp_shared_close(shared);
}

static void every_plan_is_exact(void **state) {
    static const int widths[] = {1, 4, 12, 32, 63, 64, 128};
    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int distance = 0; distance <= 8 && distance < widths[i]; distance += 1 + distance / 3)
            check_plan(widths[i], distance, 1000);
    check_plan(64, 3, 100000000);
    check_plan(64, 3, 10);
    check_plan(64, 5, 10000000);
}

static void plans_are_read_as_they_were_written(void **state) {
    (void)state;
    for (int bits = 1; bits <= 128; bits += bits == 64 ? 64 : 1) {
        for (int distance = 0; distance < 20 && distance <= bits; distance++) {
            dp_redis_plan plan, again;
            uint8_t bytes[DP_REDIS_GEOMETRY];
            const dp_rules rules = {.bits = bits, .distance = distance, .titles = true, .title_similarity = 0.9};
            dp_redis_plan_make(1000, &rules, &plan);
            size_t length = dp_redis_plan_encode(&plan, bytes);
            assert_true(dp_redis_plan_decode((doppel_slice){(char *)bytes, length}, bits, &again));
            assert_memory_equal(&plan, &again, sizeof plan);
            assert_false(dp_redis_plan_decode((doppel_slice){(char *)bytes, length - 1}, bits, &again));
        }
    }
}

static void far_ones_are_found_by_comparing_all(void **state) {
    (void)state;
    dp_shared *shared = open_memory(usual);
    uint64_t asked[2] = {0, 0};
    assert_true(is_new(shared, "far", 0xFFFF));
    assert_true(is_new(shared, "near", 0xFF));
    assert_true(is_new(shared, "farthest", ~(uint64_t)0));
    dp_shared_documents found;
    assert_int_equal(dp_shared_near(shared, asked, 16, 10, NOW, &found, NULL), DOPPEL_OK);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.document[0].distance, 8);
    assert_memory_equal(found.document[1].record.id.data, "far", 3);
    dp_shared_documents_free(&found);
    asked[0] = 0xFE;
    assert_int_equal(dp_shared_near(shared, asked, 3, 10, NOW, &found, NULL), DOPPEL_OK);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.document[0].distance, 1);
    dp_shared_documents_free(&found);
    dp_shared_close(shared);
}

/* ---- memories that go ---- */

typedef struct told {
    char text[512];
    int errors;
} told;

static void note_log(doppel_log_level level, const char *event, const char *line, void *user) {
    told *t = user;
    if (level != DOPPEL_LOG_ERROR)
        return;
    t->errors++;
    snprintf(t->text, sizeof t->text, "%s %s", event, line);
}

static void a_memory_that_is_lost_is_told_loudly(void **state) {
    (void)state;
    told heard = {.errors = 0};
    dp_shared_options options = usual;
    options.log = note_log;
    options.user = &heard;
    dp_shared *shared = open_memory(options);
    assert_true(is_new(shared, "a", 99));
    redis_do(&server, "FLUSHALL");
    assert_true(is_new(shared, "b", 99));
    assert_int_equal(heard.errors, 1);
    assert_non_null(strstr(heard.text, "is gone: it starts anew"));
    assert_false(is_new(shared, "c", 99));
    assert_int_equal(heard.errors, 1);
    dp_shared_close(shared);
}

static void another_memory_with_other_settings_is_refused(void **state) {
    (void)state;
    dp_shared_options other = usual;
    other.settings = "recipe=article\nttl=1000\n";
    dp_shared *shared = open_memory(usual);
    assert_true(is_new(shared, "a", 99));
    redis_do(&server, "FLUSHALL");
    dp_shared *second = open_memory(other);
    dp_shared_request r = request_of(DP_SHARED_ADD, "b", 99);
    dp_shared_answers answers;
    doppel_error error = {0};
    assert_int_equal(dp_shared_ask(shared, &r, 1, &answers, &error), DOPPEL_ERROR_STORE);
    assert_non_null(strstr(error.message, "other settings"));
    dp_shared_close(shared);
    dp_shared_close(second);
}

static void what_is_not_there_is_told(void **state) {
    (void)state;
    char url[160];
    dp_shared *shared;
    doppel_error error = {0};
    dp_shared_options options = usual;
    options.must_exist = true;
    snprintf(url, sizeof url, "%s?prefix=nobody", server.url);
    assert_int_equal(dp_shared_open(url, &options, &shared, &error), DOPPEL_ERROR_STORE);
    assert_int_equal(redis_number(&server, "DBSIZE"), 0);
    options = usual;
    options.rules.by_similarity = true;
    assert_int_equal(dp_shared_open(url, &options, &shared, &error), DOPPEL_ERROR_USAGE);
}

/* ---- bytes that nobody of us wrote ---- */

/* Overwrites some key that begins like this with random bytes, or with another kind of value. */
static void spoil(uint64_t *seed) {
    redisReply *key = redis_say(&server, "RANDOMKEY");
    if (key->type == REDIS_REPLY_STRING) {
        char bytes[200];
        size_t length = random_below(seed, sizeof bytes);
        for (size_t i = 0; i < length; i++)
            bytes[i] = (char)random_next(seed);
        redisReply *old = redis_say(&server, "GET %b", key->str, key->len);
        size_t kept = old->type == REDIS_REPLY_STRING ? random_below(seed, old->len + 1) : 0;
        freeReplyObject(redis_say(&server, "DEL %b", key->str, key->len));
        if (random_below(seed, 4) == 0)
            freeReplyObject(redis_say(&server, "HSET %b f v", key->str, key->len));
        else if (old->type == REDIS_REPLY_STRING)
            freeReplyObject(redis_say(&server, "SET %b %b%b", key->str, key->len, old->str, kept, bytes, length));
        freeReplyObject(old);
    }
    freeReplyObject(key);
}

static void hostile_bytes_are_errors(void **state) {
    (void)state;
    uint64_t seed = 4;
    size_t errors = 0;
    for (int round = 0; round < 150; round++) {
        redis_do(&server, "FLUSHALL");
        dp_shared *shared = open_memory(with_titles());
        fill(shared, NOW, TTL, 12);
        for (int i = 0; i < 6; i++)
            spoil(&seed);
        for (size_t i = 0; i < 20; i++) {
            char id[32];
            dp_shared_answers answers;
            doppel_error error = {0};
            snprintf(id, sizeof id, "id%zu", i);
            dp_shared_request r = request_of(i % 3 ? DP_SHARED_ADD : DP_SHARED_REMOVE, id, random_next(&seed));
            doppel_status status = dp_shared_ask(shared, &r, 1, &answers, &error);
            if (status == DOPPEL_OK)
                dp_shared_answers_free(&answers);
            errors += status != DOPPEL_OK;
            if (status && strstr(error.message, "user_function"))
                fail_msg("round %d: %s", round, error.message);
        }
        dp_shared_close(shared);
    }
    assert_true(errors > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(documents_come_back_as_they_were, start_empty),
        cmocka_unit_test_setup(a_second_process_finds_what_the_first_added, start_empty),
        cmocka_unit_test_setup(the_first_of_equals_is_the_original, start_empty),
        cmocka_unit_test_setup(all_are_given_one_after_the_other, start_empty),
        cmocka_unit_test_setup(every_plan_is_exact, start_empty),
        cmocka_unit_test_setup(plans_are_read_as_they_were_written, start_empty),
        cmocka_unit_test_setup(far_ones_are_found_by_comparing_all, start_empty),
        cmocka_unit_test_setup(a_memory_that_is_lost_is_told_loudly, start_empty),
        cmocka_unit_test_setup(another_memory_with_other_settings_is_refused, start_empty),
        cmocka_unit_test_setup(what_is_not_there_is_told, start_empty),
        cmocka_unit_test_setup(hostile_bytes_are_errors, start_empty),
    };
    return run_with_redis("redis_shared", tests, sizeof tests / sizeof *tests);
}
