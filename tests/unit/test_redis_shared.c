/* test_redis_shared.c - a memory inside a real Redis: what it keeps, how it finds, memories that go, and what is said
 * to bytes that are not its own. The rules themselves are tested with those of all engines (test_engine_*.c). */
#include "redis_memories.h"

#include <math.h>

static doppel_slice text_of(const char *text) {
    return (doppel_slice){text, text ? strlen(text) : 0};
}

static void check_text(doppel_slice slice, const char *text) {
    assert_int_equal(slice.length, strlen(text));
    assert_memory_equal(slice.data, text, slice.length);
}

static doppel_stored_list get(doppel_engine *engine, const char *name) {
    doppel_stored_list list = {0};
    doppel_error error = {0};
    if (doppel_engine_get(engine, doppel_slice_of(name), &list, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    return list;
}

/* ---- what it keeps ---- */

static const char words[] =
    "the mayor cut a ribbon at the northern ramp and a crowd of some four thousand people walked "
    "across before the first cars were let through";

static void documents_come_back_as_they_were(void **state) {
    (void)state;
    static const struct {
        const char *preset;
        doppel_near_by near;
    } ways[] = {
        {"crawl", DOPPEL_NEAR_DISTANCE}, {"crawl", DOPPEL_NEAR_SIMILARITY}, {"general", DOPPEL_NEAR_SIMILARITY}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        doppel_verdict verdict = {0};
        doppel_error error = {0};
        redis_do(&server, "FLUSHALL");
        doppel_engine *engine = open_memory((doppel_engine_options){
            .preset = ways[i].preset, .near = ways[i].near, .keep_text = DOPPEL_SWITCH_ON, .ttl = TTL});
        doppel_slice fields[] = {text_of("wire"), text_of("today")};
        doppel_item item = {.size = sizeof item, .origin = text_of("pages/1/7")};
        item.document = (doppel_document){.id.data = "one",
                                          .id.length = 3,
                                          .url.data = "http://www.a.example/b?utm_source=x",
                                          .url.length = 35,
                                          .title.data = "A title",
                                          .title.length = 7,
                                          .text.data = words,
                                          .text.length = strlen(words),
                                          .extra = fields};
        if (doppel_engine_add(engine, &item, &verdict, &error) != DOPPEL_OK)
            fail_msg("%s", error.message);
        assert_false(verdict.is_duplicate);
        doppel_stored_list list = get(engine, "one"), same = get(engine, "http://www.a.example/b?utm_source=x");
        assert_int_equal(list.count, 1);
        assert_int_equal(same.count, 1);
        const doppel_stored *d = &list.stored[0];
        assert_int_equal(d->number, 1);
        assert_int_equal(same.stored[0].number, 1);
        check_text(d->id, "one");
        check_text(d->url, "http://www.a.example/b?utm_source=x");
        check_text(d->title, "A title");
        check_text(d->text, words);
        check_text(d->origin, "pages/1/7");
        check_text(d->fields, "{\"source\":\"wire\",\"date\":\"today\"}");
        assert_int_equal(d->added, NOW);
        assert_int_equal(d->expires, NOW + TTL);
        assert_int_equal(d->words, 26);
        doppel_stored_list_free(&list);
        doppel_stored_list_free(&same);
        doppel_verdict_free(&verdict);
        doppel_engine_close(engine);
    }
}

static void a_second_process_finds_what_the_first_added(void **state) {
    (void)state;
    doppel_engine *first = open_memory(by_distance()), *second = open_memory(by_distance());
    assert_true(is_new(first, "a", 0xFF00FF00FF00FF00));
    answer a = add_page(second, (page){.id = "b", .fingerprint = {0xFF00FF00FF00FF07}});
    assert_true(a.duplicate);
    assert_string_equal(a.reason, "content_hash");
    assert_string_equal(a.original, "a");
    assert_int_equal(a.distance, 3);
    assert_true(is_new(second, "c", 0xFF00FF00FF00FF0F));
    doppel_engine_close(first);
    doppel_engine_close(second);
}

/* Whoever opens it later follows the settings that it was made with. */
static void a_second_process_follows_the_settings(void **state) {
    (void)state;
    doppel_engine_options options = by_distance();
    options.distance = 5;
    doppel_engine *first = open_memory(options);
    doppel_engine *second = open_memory((doppel_engine_options){0});
    assert_int_equal(doppel_engine_get_options(second)->distance, 5);
    assert_int_equal(doppel_engine_get_options(second)->near, DOPPEL_NEAR_DISTANCE);
    assert_true(is_new(first, "a", 0xFF00FF00FF00FF00));
    assert_false(is_new(second, "b", 0xFF00FF00FF00FF1F));
    options.distance = 4;
    open_fails(options, DOPPEL_ERROR_STORE, "distance");
    doppel_engine_close(first);
    doppel_engine_close(second);
}

/* What is put back may have the same words twice: the first counts. */
static void the_first_of_equals_is_the_original(void **state) {
    (void)state;
    static const char *const ids[] = {"a", "b", "c"};
    uint8_t digest[32];
    doppel_engine *engine = open_memory(by_distance());
    memset(digest, 7, sizeof digest);
    for (size_t i = 0; i < 3; i++) {
        const uint64_t fingerprint[2] = {0x1111111111111111 * (i + 1), 0};
        const doppel_stored restore = {.added = NOW, .expires = NOW + TTL};
        doppel_verdict verdict = {0};
        doppel_error error = {0};
        doppel_item item = {.size = sizeof item, .fingerprint = fingerprint, .digest = digest, .restore = &restore};
        item.document = (doppel_document){.id.data = ids[i], .id.length = 1};
        if (doppel_engine_add(engine, &item, &verdict, &error) != DOPPEL_OK)
            fail_msg("%s", error.message);
        assert_false(verdict.is_duplicate);
        doppel_verdict_free(&verdict);
    }
    assert_true(remove_one(engine, "a"));
    answer a = check_page(engine, (page){.id = "d", .fingerprint = {0xFFFF}, .digest = 7});
    assert_true(a.duplicate);
    assert_string_equal(a.original, "b");
    doppel_engine_close(engine);
}

typedef struct seeing {
    uint64_t seen, last;
} seeing;

static bool see(const doppel_stored *stored, void *user) {
    seeing *s = user;
    assert_true(stored->number > s->last);
    s->last = stored->number;
    s->seen++;
    return true;
}

static void all_are_given_one_after_the_other(void **state) {
    (void)state;
    enum { COUNT = 700 };
    doppel_engine *engine = open_memory(by_distance());
    uint64_t seed = 5;
    seeing s = {0};
    doppel_error error = {0};
    for (size_t i = 0; i < COUNT; i++) {
        char id[16];
        snprintf(id, sizeof id, "%zu", i);
        assert_true(is_new(engine, id, random_next(&seed)));
    }
    if (doppel_engine_each(engine, see, &s, NULL, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    assert_int_equal(s.seen, COUNT);
    doppel_engine_close(engine);
}

/* ---- plans ---- */

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
        int distance = doppel_distance128(kept[i], one);
        if (distance <= most && (best == COUNT || distance < doppel_distance128(kept[best], one)))
            best = i;
    }
    return best;
}

static void check_plan(int bits, int distance, uint64_t count) {
    char text[64];
    doppel_recipe *recipe;
    doppel_error error = {0};
    doppel_engine_options options = by_distance();
    snprintf(text, sizeof text, "simhash%d:words=5:hash=fast:weight=tf", bits);
    if (doppel_recipe_parse(text, NULL, &recipe, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    options.recipe = recipe;
    options.distance = distance;
    options.distance_zero = !distance;
    options.count = count;
    redis_do(&server, "FLUSHALL");
    doppel_engine *engine = open_memory(options);
    uint64_t kept[COUNT][2], seed = (uint64_t)(bits * 100 + distance);
    char names[COUNT][16];
    size_t keeps = 0;
    for (size_t i = 0; i < COUNT; i++) {
        page p = {.id = names[keeps]};
        pick_fingerprint(&seed, bits, distance, p.fingerprint);
        snprintf(names[keeps], sizeof *names, "%zu", i);
        size_t expected = nearest(kept, keeps, p.fingerprint, distance);
        answer a = add_page(engine, p);
        if ((expected == COUNT) != !a.duplicate || (expected < COUNT && strcmp(a.original, names[expected]) != 0))
            fail_msg("%d bits within %d, %llu documents: %zu is %s of `%s`", bits, distance, (unsigned long long)count,
                     i, a.duplicate ? "a copy" : "new", a.original);
        if (!a.duplicate)
            memcpy(kept[keeps++], p.fingerprint, sizeof p.fingerprint);
    }
    doppel_engine_close(engine);
    doppel_recipe_free(recipe);
}

/* test_redis_places.c has more of them, without a server. */
static void every_plan_is_exact(void **state) {
    static const int widths[] = {4, 30, 64, 128};
    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int distance = 0; distance <= 7 && distance < widths[i]; distance += 1 + distance / 3)
            check_plan(widths[i], distance, 1000);
    check_plan(64, 3, 100000000);
    check_plan(64, 3, 10);
    check_plan(64, 5, 10000000);
}

static void far_ones_are_found_by_comparing_all(void **state) {
    (void)state;
    doppel_engine *engine = open_memory(by_distance());
    uint64_t asked[2] = {0, 0};
    doppel_item item = {.size = sizeof item, .fingerprint = asked};
    doppel_similar_options options = {.size = sizeof options, .distance = 16};
    doppel_stored_list list = {0};
    assert_true(is_new(engine, "far", 0xFFFF));
    assert_true(is_new(engine, "near", 0xFF));
    assert_true(is_new(engine, "farthest", ~(uint64_t)0));
    assert_int_equal(doppel_engine_find_similar(engine, &item, &options, &list, NULL), DOPPEL_OK);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.stored[0].distance, 8);
    check_text(list.stored[1].id, "far");
    asked[0] = 0xFE;
    options.distance = 3;
    assert_int_equal(doppel_engine_find_similar(engine, &item, &options, &list, NULL), DOPPEL_OK);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.stored[0].distance, 1);
    doppel_stored_list_free(&list);
    doppel_engine_close(engine);
}

/* ---- memories that go ---- */

typedef struct told {
    char text[512];
    int errors;
} told;

static void note_log(doppel_log_level level, const char *line, void *user) {
    told *t = user;
    if (level != DOPPEL_LOG_ERROR)
        return;
    t->errors++;
    snprintf(t->text, sizeof t->text, "%s", line);
}

static void a_memory_that_is_lost_is_reported(void **state) {
    (void)state;
    told heard = {.errors = 0};
    doppel_engine_options options = by_distance();
    options.log = note_log;
    options.user = &heard;
    doppel_engine *engine = open_memory(options);
    assert_true(is_new(engine, "a", 99));
    redis_do(&server, "FLUSHALL");
    assert_true(is_new(engine, "b", 99));
    assert_int_equal(heard.errors, 1);
    assert_non_null(strstr(heard.text, "is gone: it starts anew"));
    assert_false(is_new(engine, "c", 99));
    assert_int_equal(heard.errors, 1);
    doppel_engine_close(engine);
}

/* What was removed, or has expired, is not lost. */
static void a_memory_that_ended_is_not_reported(void **state) {
    (void)state;
    told heard = {.errors = 0};
    doppel_engine_options options = by_distance();
    options.log = note_log;
    options.user = &heard;
    doppel_engine *engine = open_memory(options);
    assert_true(is_new(engine, "a", 99));
    assert_true(remove_one(engine, "a"));
    assert_true(is_new(engine, "b", 99));
    now += TTL;
    redis_do(&server, "FLUSHALL");
    assert_true(is_new(engine, "c", 99));
    assert_int_equal(heard.errors, 0);
    doppel_engine_close(engine);
}

static void another_memory_with_other_settings_is_refused(void **state) {
    (void)state;
    doppel_engine_options other = by_distance();
    other.distance = 5;
    doppel_engine *engine = open_memory(by_distance());
    assert_true(is_new(engine, "a", 99));
    redis_do(&server, "FLUSHALL");
    doppel_engine *second = open_memory(other);
    page_fails(engine, doppel_engine_add, (page){.id = "b", .fingerprint = {99}}, DOPPEL_ERROR_STORE, "other settings");
    page_fails(engine, doppel_engine_check, (page){.id = "b", .fingerprint = {99}}, DOPPEL_ERROR_STORE,
               "other settings");
    assert_true(is_new(second, "b", 99));
    doppel_engine_close(engine);
    doppel_engine_close(second);
}

static void what_is_not_there_is_reported(void **state) {
    (void)state;
    doppel_engine_options options = by_distance();
    options.must_exist = true;
    open_fails(options, DOPPEL_ERROR_STORE, "there is no such index");
    assert_int_equal(redis_number(&server, "DBSIZE"), 0);
}

/* A process that only reads makes nothing, and follows what others make. */
static void readers_make_nothing(void **state) {
    (void)state;
    doppel_engine_options options = by_distance();
    options.read_only = true;
    open_fails(options, DOPPEL_ERROR_STORE, "there is no such index");
    doppel_engine *writer = open_memory(by_distance());
    assert_true(is_new(writer, "a", 99));
    doppel_engine *reader = open_memory(options);
    assert_true(check_page(reader, (page){.fingerprint = {99}}).duplicate);
    redis_do(&server, "FLUSHALL");
    assert_false(check_page(reader, (page){.fingerprint = {99}}).duplicate);
    assert_int_equal(redis_number(&server, "DBSIZE"), 0);
    assert_true(is_new(writer, "b", 99));
    assert_string_equal(check_page(reader, (page){.fingerprint = {99}}).original, "b");
    assert_true(remove_one(writer, "b"));
    assert_false(check_page(reader, (page){.fingerprint = {99}}).duplicate);
    doppel_engine_close(reader);
    doppel_engine_close(writer);
}

static void memories_of_the_previous_format_are_refused(void **state) {
    (void)state;
    redis_do(&server, "HSET {t}m v 1 s recipe=page e 12345678 k 1234567812345678 p x n 7");
    open_fails(by_distance(), DOPPEL_ERROR_STORE, "doppel export");
    redis_do(&server, "HSET {t}m v 3");
    open_fails(by_distance(), DOPPEL_ERROR_STORE, "format 3");
    redis_do(&server, "DEL {t}m");
    redis_do(&server, "SET {t}m x");
    open_fails(by_distance(), DOPPEL_ERROR_STORE, "");
    redis_do(&server, "DEL {t}m");
    redis_do(&server, "HSET {t}m a b");
    open_fails(by_distance(), DOPPEL_ERROR_STORE, "not written by doppel");
}

/* Documents that a server has evicted, or somebody deleted, while places still lead to them. */
static void documents_that_are_gone_are_not_waited_for(void **state) {
    (void)state;
    const page one = {.id = "a", .url = "https://a.example/", .fingerprint = {99}, .digest = 3, .ttl = 10 * HOUR};
    doppel_engine *engine = open_memory(by_distance());
    add_page(engine, one);
    assert_true(is_new(engine, "other", ~(uint64_t)0));
    redisReply *keys = redis_say(&server, "KEYS {t}d*");
    assert_int_equal(keys->elements, 2);
    for (size_t i = 0; i < 2; i++)
        freeReplyObject(redis_say(&server, "DEL %b", keys->element[i]->str, keys->element[i]->len));
    freeReplyObject(keys);
    alarm(30); /* it does not end */
    assert_false(check_page(engine, one).duplicate);
    doppel_stored_list list = get(engine, "a");
    assert_int_equal(list.count, 0);
    doppel_stored_list_free(&list);
    assert_false(remove_one(engine, "a"));
    assert_false(add_page(engine, one).duplicate);
    list = get(engine, "https://a.example/");
    assert_int_equal(list.count, 1);
    alarm(0);
    doppel_stored_list_free(&list);
    doppel_engine_close(engine);
}

/* ---- bytes that nobody of us wrote ---- */

static void random_bytes(uint64_t *seed, char *to, size_t length) {
    for (size_t i = 0; i < length; i++)
        to[i] = (char)random_next(seed);
}

/* Overwrites a field of a hash, in part or whole. */
static void spoil_hash(uint64_t *seed, const redisReply *key) {
    char bytes[200];
    size_t length = random_below(seed, sizeof bytes);
    redisReply *field = redis_say(&server, "HRANDFIELD %b", key->str, key->len);
    random_bytes(seed, bytes, length);
    if (field->type == REDIS_REPLY_STRING) {
        redisReply *old = redis_say(&server, "HGET %b %b", key->str, key->len, field->str, field->len);
        size_t kept = random_below(seed, old->len + 1);
        freeReplyObject(redis_say(&server, "HSET %b %b %b%b", key->str, key->len, field->str, field->len, old->str,
                                  kept, bytes, length));
        freeReplyObject(old);
    }
    freeReplyObject(field);
}

/* Overwrites some key with random bytes, or with another kind of value. */
static void spoil(uint64_t *seed) {
    redisReply *key = redis_say(&server, "RANDOMKEY");
    if (key->type == REDIS_REPLY_STRING) {
        char bytes[200];
        size_t length = random_below(seed, sizeof bytes);
        redisReply *old = redis_say(&server, "GET %b", key->str, key->len);
        random_bytes(seed, bytes, length);
        if (random_below(seed, 5) == 0) {
            freeReplyObject(redis_say(&server, "DEL %b", key->str, key->len));
            freeReplyObject(redis_say(&server, "LPUSH %b v", key->str, key->len));
        } else if (old->type == REDIS_REPLY_STRING) {
            size_t kept = random_below(seed, old->len + 1);
            freeReplyObject(redis_say(&server, "SET %b %b%b", key->str, key->len, old->str, kept, bytes, length));
        } else {
            spoil_hash(seed, key);
        }
        freeReplyObject(old);
    }
    freeReplyObject(key);
}

/* Fields of the meta key that are not what was written: errors, and no end of trying. */
static void a_meta_key_that_is_spoilt_is_an_error(void **state) {
    (void)state;
    static const char *const spoilt[] = {"o x",      "o xxxxxxxxxxxxxxxxxxxxx", "n x", "x x", "e x", "k x", "p x",
                                         "p 4x16/99"};
    for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
        char command[64];
        answer a;
        doppel_error error = {0};
        bool removed;
        redis_do(&server, "FLUSHALL");
        doppel_engine *engine = open_memory(by_distance());
        fill(engine, TTL, 6);
        snprintf(command, sizeof command, "HSET {t}m %s", spoilt[i]);
        redis_do(&server, command);
        alarm(30); /* it does not end */
        const page p = {.id = "new", .fingerprint = {~(uint64_t)0}};
        doppel_status status[] = {try_page(engine, doppel_engine_check, &p, &a, &error),
                                  try_page(engine, doppel_engine_add, &p, &a, &error),
                                  doppel_engine_remove(engine, doppel_slice_of("id0"), &removed, &error)};
        for (size_t k = 0; k < sizeof status / sizeof *status; k++)
            if (status[k] != DOPPEL_OK && (status[k] != DOPPEL_ERROR_STORE || strstr(error.message, "user_function")))
                fail_msg("%s: %d, %s", command, (int)status[k], error.message);
        alarm(0);
        doppel_engine_close(engine);
    }
}

static bool pass(const doppel_stored *stored, void *user) {
    (void)stored, (void)user;
    return true;
}

/* Everything that an engine does, over what is spoilt; gives how often it failed. */
static size_t use_spoilt(doppel_engine *engine, uint64_t *seed) {
    size_t errors = 0;
    for (size_t i = 0; i < 20; i++) {
        char id[32], url[64];
        answer a;
        doppel_error error = {0};
        doppel_stored_list list = {0};
        bool removed;
        snprintf(id, sizeof id, "id%zu", i);
        snprintf(url, sizeof url, "https://a.example/%zu", i / 2);
        const page p = {
            .id = id, .url = url, .title = "the harbour bridge was opened", .fingerprint = {random_next(seed)}};
        doppel_status status = i % 4 == 0   ? doppel_engine_remove(engine, doppel_slice_of(id), &removed, &error)
                               : i % 4 == 1 ? doppel_engine_get(engine, doppel_slice_of(id), &list, &error)
                               : i % 4 == 2 ? try_page(engine, doppel_engine_check, &p, &a, &error)
                                            : try_page(engine, doppel_engine_add, &p, &a, &error);
        doppel_stored_list_free(&list);
        errors += status != DOPPEL_OK;
        if (status && (!error.message[0] || strstr(error.message, "user_function")))
            fail_msg("%zu: %s", i, error.message);
    }
    errors += doppel_engine_each(engine, pass, NULL, NULL, NULL) != DOPPEL_OK;
    errors += doppel_engine_verify(memory_url(), NULL, NULL, &(doppel_verified){0}, NULL) != DOPPEL_OK;
    errors += doppel_engine_compact(engine, NULL) != DOPPEL_OK;
    return errors;
}

static void hostile_bytes_are_errors(void **state) {
    (void)state;
    uint64_t seed = 4;
    size_t errors = 0;
    int rounds = full_suite() ? 600 : 100;
    for (int round = 0; round < rounds; round++) {
        redis_do(&server, "FLUSHALL");
        alarm(60); /* it does not end */
        doppel_engine_options options = with_titles();
        options.keep_text = DOPPEL_SWITCH_ON;
        doppel_engine *engine = open_memory(options);
        fill(engine, TTL, 12);
        for (int i = 0; i < 6; i++)
            spoil(&seed);
        errors += use_spoilt(engine, &seed);
        doppel_engine_close(engine);
        alarm(0);
    }
    assert_true(errors > 0);
}

/* What `verify` says of a memory that is whole, and of one of which something is gone. */
static void verify_finds_what_is_missing(void **state) {
    (void)state;
    doppel_verified verified = {0};
    doppel_error error = {0};
    now = (uint64_t)time(NULL); /* by which it is verified */
    doppel_engine *engine = open_memory(with_titles());
    fill(engine, TTL, 60);
    if (doppel_engine_verify(memory_url(), NULL, NULL, &verified, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    assert_int_equal(verified.documents, documents_of(engine));
    assert_true(verified.copies > 0);
    assert_int_equal(verified.damaged, 0);
    redisReply *keys = redis_say(&server, "KEYS {t}[bfs]*");
    for (size_t i = 0; i < keys->elements; i += 2)
        freeReplyObject(redis_say(&server, "DEL %b", keys->element[i]->str, keys->element[i]->len));
    freeReplyObject(keys);
    assert_int_equal(doppel_engine_verify(memory_url(), NULL, NULL, &verified, &error), DOPPEL_ERROR_STORE);
    assert_true(verified.damaged > 0);
    doppel_engine_close(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(documents_come_back_as_they_were, start_empty),
        cmocka_unit_test_setup(a_second_process_finds_what_the_first_added, start_empty),
        cmocka_unit_test_setup(a_second_process_follows_the_settings, start_empty),
        cmocka_unit_test_setup(the_first_of_equals_is_the_original, start_empty),
        cmocka_unit_test_setup(all_are_given_one_after_the_other, start_empty),
        cmocka_unit_test_setup(every_plan_is_exact, start_empty),
        cmocka_unit_test_setup(far_ones_are_found_by_comparing_all, start_empty),
        cmocka_unit_test_setup(a_memory_that_is_lost_is_reported, start_empty),
        cmocka_unit_test_setup(a_memory_that_ended_is_not_reported, start_empty),
        cmocka_unit_test_setup(another_memory_with_other_settings_is_refused, start_empty),
        cmocka_unit_test_setup(what_is_not_there_is_reported, start_empty),
        cmocka_unit_test_setup(readers_make_nothing, start_empty),
        cmocka_unit_test_setup(memories_of_the_previous_format_are_refused, start_empty),
        cmocka_unit_test_setup(verify_finds_what_is_missing, start_empty),
        cmocka_unit_test_setup(documents_that_are_gone_are_not_waited_for, start_empty),
        cmocka_unit_test_setup(a_meta_key_that_is_spoilt_is_an_error, start_empty),
        cmocka_unit_test_setup(hostile_bytes_are_errors, start_empty),
    };
    return run_with_redis("redis_shared", tests, sizeof tests / sizeof *tests);
}
