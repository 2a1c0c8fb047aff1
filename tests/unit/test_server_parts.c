/* test_server_parts.c - parts of the server by themselves: targets, routes, bodies, tokens, limits, keys, spools. */
#include "support.h"

#include "common/message.h"
#include "server/service.h"

#include <bzlib.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

static void test_targets(void **state) {
    (void)state;
    char path[] = "a%2Fb%20+%C3%A4", broken[] = "a%2", worse[] = "%zz";
    assert_int_equal(target_decode(path, strlen(path), false), 7);
    assert_memory_equal(path, "a/b +\xC3\xA4", 7);
    assert_int_equal(target_decode(broken, strlen(broken), false), SIZE_MAX);
    assert_int_equal(target_decode(worse, strlen(worse), false), SIZE_MAX);
    char query[] = "a=1+2&b&=c&d=%3D", *at = query, *name, *value;
    static const char *const want[] = {"a", "1 2", "b", "", "", "c", "d", "="};
    bool bad;
    for (int i = 0; i < 4; i++) {
        assert_true(target_next(&at, &name, &value, &bad) && !bad);
        assert_string_equal(name, want[2 * i]);
        assert_string_equal(value, want[2 * i + 1]);
    }
    assert_false(target_next(&at, &name, &value, &bad));
}

static route_match find(const char *method, const char *path) {
    return route_find(method, (doppel_slice){path, strlen(path)});
}

static void test_routes(void **state) {
    (void)state;
    route_match m = find("GET", "/v1/documents/a%2Fb/similar");
    assert_string_equal(m.route->path, "/v1/documents/{id}/similar");
    assert_memory_equal(m.id.data, "a%2Fb", m.id.length);
    m = find("POST", "/v1/indexes/news/check");
    assert_string_equal(m.route->path, "/v1/check");
    assert_memory_equal(m.index.data, "news", m.index.length);
    m = find("HEAD", "/v1/indexes/news");
    assert_string_equal(m.route->path, "/v1/indexes/{name}");
    assert_null(find("GET", "/v1/check").route);
    assert_int_equal(find("GET", "/v1/check").other_methods, 2);
    static const char *const none[] = {"",  "/v1", "/v1/documents/", "/v1/documents//similar", "/v1/indexes/x/compare",
                                       "//"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_true(!find("GET", none[i]).route);
    assert_true(route_count() < METRIC_ROUTES - 1);
}

static bool collect(void *user, const char *bytes, size_t length) {
    text_add(user, bytes, length);
    return true;
}

enum { PLAIN_LENGTH = 200000 };

/* Decompresses in pieces of many sizes, and as a body with a byte less. */
static void read_body(body_coding coding, const char *packed, size_t length, const char *plain) {
    for (size_t piece = 1; piece < 100000; piece = piece * 7 + 1) {
        body b;
        text_buffer got = {0};
        assert_int_equal(body_begin(&b, coding), BODY_FINE);
        for (size_t at = 0; at < length; at += piece)
            assert_int_equal(body_add(&b, packed + at, length - at < piece ? length - at : piece, collect, &got),
                             BODY_FINE);
        assert_true(body_whole(&b));
        assert_int_equal(got.length, PLAIN_LENGTH);
        assert_memory_equal(got.data, plain, PLAIN_LENGTH);
        text_free(&got);
        body_free(&b);
    }
    body b;
    text_buffer got = {0};
    assert_int_equal(body_begin(&b, coding), BODY_FINE);
    assert_int_equal(body_add(&b, packed, length - 1, collect, &got), BODY_FINE);
    assert_false(body_whole(&b));
    text_free(&got);
    body_free(&b);
}

static size_t pack_gzip(char *plain, size_t length, char *to, size_t room) {
    z_stream z = {
        .next_in = (Bytef *)plain, .avail_in = (uInt)length, .next_out = (Bytef *)to, .avail_out = (uInt)room};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

static size_t pack_zstd(char *plain, size_t length, char *to, size_t room) {
    return ZSTD_compress(to, room, plain, length, 3);
}

static size_t pack_bzip2(char *plain, size_t length, char *to, size_t room) {
    unsigned packed = (unsigned)room;
    assert_int_equal(BZ2_bzBuffToBuffCompress(to, &packed, plain, (unsigned)length, 9, 0, 0), BZ_OK);
    return packed;
}

static size_t pack_xz(char *plain, size_t length, char *to, size_t room) {
    size_t packed = 0;
    assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, (const uint8_t *)plain, length, (uint8_t *)to,
                                             &packed, room),
                     LZMA_OK);
    return packed;
}

/* Of each coding, in one member and in two. */
static void test_bodies(void **state) {
    (void)state;
    static const struct {
        body_coding coding;
        size_t (*pack)(char *plain, size_t length, char *to, size_t room);
    } codings[] = {
        {CODING_GZIP, pack_gzip}, {CODING_ZSTD, pack_zstd}, {CODING_BZIP2, pack_bzip2}, {CODING_XZ, pack_xz}};
    enum { ROOM = PLAIN_LENGTH + 10000, HALF = PLAIN_LENGTH / 2 };
    char *plain = malloc(PLAIN_LENGTH), *packed = malloc(ROOM);
    for (size_t i = 0; i < PLAIN_LENGTH; i++)
        plain[i] = (char)('a' + i * i % 23);
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
        read_body(codings[i].coding, packed, codings[i].pack(plain, PLAIN_LENGTH, packed, ROOM), plain);
        size_t first = codings[i].pack(plain, HALF, packed, ROOM);
        size_t second = codings[i].pack(plain + HALF, PLAIN_LENGTH - HALF, packed + first, ROOM - first);
        read_body(codings[i].coding, packed, first + second, plain);
    }
    free(plain);
    free(packed);
}

static void write_file(const char *path, const char *bytes) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(bytes, file);
    fclose(file);
    chmod(path, 0600);
}

static void test_tokens(void **state) {
    (void)state;
    char path[] = "/tmp/doppel-tokens-XXXXXX", name[TOKEN_NAME];
    tokens t;
    bool unknown;
    close(mkstemp(path));
    tokens_init(&t);
    assert_int_equal(tokens_find(&t, NULL, name, &unknown), RIGHT_ADMIN);
    write_file(path, "# comment\n\nann read 0123456789abcdef\nbob admin fedcba9876543210\n");
    assert_true(tokens_load(&t, path));
    assert_int_equal(tokens_find(&t, "Bearer 0123456789abcdef", name, &unknown), RIGHT_READ);
    assert_string_equal(name, "ann");
    assert_int_equal(tokens_find(&t, "bearer fedcba9876543210", name, &unknown), RIGHT_ADMIN);
    static const char *const wrong[] = {
        NULL, "", "Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdefg", "Basic x", "0123456789abcdef"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(tokens_find(&t, wrong[i], name, &unknown), RIGHT_NONE);
        assert_int_equal(unknown, i == 3 || i == 4); /* a token, but none of these */
    }
    write_file(path, "ann read short\n");
    assert_false(tokens_load(&t, path));
    assert_int_equal(tokens_find(&t, "Bearer 0123456789abcdef", name, &unknown), RIGHT_READ);
    tokens_free(&t);
    unlink(path);
}

static void test_limits(void **state) {
    (void)state;
    limits l;
    unsigned wait;
    assert_true(limits_open(&l, 10));
    for (int i = 0; i < 10; i++)
        assert_true(limits_allow(&l, "a", 1000000, &wait));
    assert_false(limits_allow(&l, "a", 1000000, &wait));
    assert_int_equal(wait, 1);
    assert_true(limits_allow(&l, "b", 1000000, &wait));
    assert_true(limits_allow(&l, "a", 1100001, &wait));
    assert_false(limits_allow(&l, "a", 1100001, &wait));
    /* Any number of clients in the same memory. */
    for (int i = 0; i < 50000; i++) {
        char client[16];
        snprintf(client, sizeof client, "%d", i);
        assert_true(limits_allow(&l, client, 2000000 + (uint64_t)i, &wait));
    }
    limits_close(&l);
}

static idempotency_result begin(idempotency *i, int number, const char *sent, text_buffer *answer) {
    char name[16];
    int status;
    idempotency_key key;
    snprintf(name, sizeof name, "%d", number);
    const char *const parts[] = {name, "token", "index"};
    idempotency_make(i, parts, (doppel_slice){sent, strlen(sent)}, &key);
    idempotency_result result = idempotency_begin(i, &key, &status, answer);
    if (result == KEY_NEW && sent[0] != '-') {
        text_buffer given = {0};
        text_format(&given, "answer %d", number);
        idempotency_end(i, &key, 201, &given);
        text_free(&given);
    }
    return result;
}

static void test_keys(void **state) {
    (void)state;
    idempotency i;
    text_buffer answer = {0};
    assert_true(idempotency_open(&i));
    assert_int_equal(begin(&i, 1, "-under way", &answer), KEY_NEW);
    assert_int_equal(begin(&i, 1, "-under way", &answer), KEY_UNDER_WAY);
    assert_int_equal(begin(&i, 2, "body", &answer), KEY_NEW);
    assert_int_equal(begin(&i, 2, "other", &answer), KEY_OTHER_BODY);
    assert_int_equal(begin(&i, 2, "body", &answer), KEY_ANSWERED);
    assert_memory_equal(answer.data, "answer 2", 8);
    /* The oldest are forgotten, the newest are not. */
    for (int k = 3; k < 3 * IDEMPOTENCY_KEYS; k++)
        assert_int_equal(begin(&i, k, "body", &answer), KEY_NEW);
    assert_int_equal(begin(&i, 2, "other", &answer), KEY_NEW);
    assert_int_equal(begin(&i, 3 * IDEMPOTENCY_KEYS - 1, "body", &answer), KEY_ANSWERED);
    text_free(&answer);
    idempotency_close(&i);
}

/* However long the answers are, they have at most IDEMPOTENCY_BYTES together. */
static void test_keys_with_long_answers(void **state) {
    enum { LENGTH = 1 << 20, KEPT = IDEMPOTENCY_BYTES / LENGTH, COUNT = IDEMPOTENCY_KEYS + 5 * KEPT };
    (void)state;
    idempotency i;
    text_buffer answer = {0}, given = {0};
    assert_true(idempotency_open(&i));
    assert_true(text_reserve(&given, LENGTH));
    memset(given.data, 'a', LENGTH);
    for (int k = 0; k < COUNT; k++) {
        idempotency_key key;
        int status;
        char name[16];
        const char *const parts[] = {name, "", ""};
        snprintf(name, sizeof name, "%d", k);
        idempotency_make(&i, parts, (doppel_slice){"body", 4}, &key);
        assert_int_equal(idempotency_begin(&i, &key, &status, &answer), KEY_NEW);
        given.length = k % 100 ? 100 : LENGTH;
        idempotency_end(&i, &key, 201, &given);
        assert_true(i.bytes <= IDEMPOTENCY_BYTES);
        assert_true(k < 100 * KEPT || i.bytes > IDEMPOTENCY_BYTES - 2 * LENGTH);
    }
    assert_int_equal(begin(&i, COUNT, "body", &answer), KEY_NEW);
    assert_int_equal(begin(&i, COUNT, "body", &answer), KEY_ANSWERED);
    text_free(&given);
    text_free(&answer);
    idempotency_close(&i);
}

static void test_spools(void **state) {
    (void)state;
    char piece[1000], back[4096];
    spool *s = spool_create("/tmp");
    assert_non_null(s);
    for (uint32_t i = 0; i < 3000; i++) {
        memset(piece, (int)('a' + i % 26), sizeof piece);
        spool_write(s, piece, sizeof piece);
    }
    assert_false(s->failed);
    assert_int_equal(s->length, 3000000);
    uint64_t at = 0;
    for (long got; (got = spool_read(s, at, back, sizeof back)) > 0;)
        for (long k = 0; k < got; k++, at++)
            assert_int_equal(back[k], 'a' + at / 1000 % 26);
    assert_int_equal(at, 3000000);
    spool_free(s);
    s = spool_create("/nowhere");
    for (int i = 0; i < 2000; i++)
        spool_write(s, piece, sizeof piece);
    assert_true(s->failed);
    spool_free(s);
}

/* All of them together hold no more than they may, whatever each has. */
static void test_spools_that_are_counted(void **state) {
    (void)state;
    atomic_uint_fast64_t total = 0;
    char piece[1000] = {0};
    spool *all[3];
    for (int i = 0; i < 3; i++) {
        all[i] = spool_create("/tmp");
        all[i]->total = &total;
        all[i]->most = 4000;
    }
    for (int i = 0; i < 2; i++)
        spool_write(all[0], piece, sizeof piece);
    for (int i = 0; i < 3; i++)
        spool_write(all[1], piece, sizeof piece);
    assert_true(!all[0]->failed && all[1]->failed && all[1]->full);
    assert_int_equal(total, 4000);
    spool_free(all[1]);
    assert_int_equal(total, 2000);
    spool_write(all[2], piece, sizeof piece);
    assert_false(all[2]->failed);
    spool_free(all[0]);
    spool_free(all[2]);
    assert_int_equal(total, 0);
}

static void test_index_names(void **state) {
    (void)state;
    static const char *const wrong[] = {"", ".", "..", "a/b", "A", "a.b", "a b", "\xC3\xA4"};
    assert_true(index_name_allowed(doppel_slice_of("news-2024_x")));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(index_name_allowed(doppel_slice_of(wrong[i])));
}

/* Of an index that cannot be created the reason is the right one: its name is taken, or there are too many. */
static void test_the_most_indexes(void **state) {
    (void)state;
    static index_entry entry = {.name = "default"};
    static index_entry *list[INDEX_MOST];
    indexes all = {.folder = "/nowhere", .list = list, .count = INDEX_MOST};
    doppel_status status;
    doppel_error error;
    for (size_t i = 0; i < INDEX_MOST; i++)
        list[i] = &entry;
    pthread_mutex_init(&all.lock, NULL);
    pthread_mutex_init(&all.changes, NULL);
    assert_int_equal(indexes_create(&all, doppel_slice_of("default"), doppel_slice_of("{}"), &status, &error),
                     INDEX_EXISTS);
    assert_int_equal(indexes_create(&all, doppel_slice_of("another"), doppel_slice_of("{}"), &status, &error),
                     INDEX_FULL);
    pthread_mutex_destroy(&all.lock);
    pthread_mutex_destroy(&all.changes);
}

/* ---- errors of the engine ---- */

static void test_problems_of_errors(void **state) {
    static const struct {
        doppel_status status;
        const char *name;
        int answer, exit;
    } want[] = {
        {DOPPEL_ERROR_USAGE, "bad-document", 400, EXIT_USAGE}, {DOPPEL_ERROR_INPUT, "bad-document", 400, EXIT_INPUT},
        {DOPPEL_ERROR_STORE, "unavailable", 503, EXIT_STORE},  {DOPPEL_ERROR_MEMORY, "no-memory", 503, EXIT_STORE},
        {DOPPEL_ERROR_IO, "store", 500, EXIT_STORE},           {DOPPEL_ERROR_AWAY, "away", 503, EXIT_STORE},
    };
    const index_entry index = {.name = "default"};
    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        problem p;
        problem_of_error(&p, &index, want[i].status, NULL);
        assert_string_equal(problems[p.kind].name, want[i].name);
        assert_int_equal(problems[p.kind].status, want[i].answer);
        assert_int_equal(exit_code(want[i].status), want[i].exit);
    }
}

/* What needs no connections always answers: its figures are those of the engine, at once. */
static void test_an_engine_that_is_never_away(void **state) {
    doppel_engine *engine;
    doppel_engine_needs needs;
    doppel_engine_stats stats;
    store_watch watch;
    const doppel_item item = {.size = sizeof item, .document = {.text.data = "some words", .text.length = 10}};
    doppel_verdict verdict = {0};
    (void)state;
    assert_int_equal(doppel_engine_open(NULL, NULL, &engine, NULL), DOPPEL_OK);
    assert_int_equal(doppel_engine_get_needs(NULL, &needs, NULL), DOPPEL_OK);
    assert_true(watch_open(&watch, engine, &needs, "nothing happens"));
    assert_false(watch_is_away(&watch));
    assert_int_equal(doppel_engine_add(engine, &item, &verdict, NULL), DOPPEL_OK);
    watch_stats(&watch, &stats);
    assert_int_equal(stats.documents, 1);
    doppel_verdict_free(&verdict);
    watch_close(&watch);
    doppel_engine_close(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_keys_with_long_answers),
        cmocka_unit_test(test_spools),
        cmocka_unit_test(test_spools_that_are_counted),
        cmocka_unit_test(test_index_names),
        cmocka_unit_test(test_the_most_indexes),
        cmocka_unit_test(test_problems_of_errors),
        cmocka_unit_test(test_an_engine_that_is_never_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
