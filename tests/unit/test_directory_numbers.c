/* test_directory_numbers.c - numbers beyond 32 bits: keys know only the low half of them, and yet all that were added
 * are found, and of those that share their low half only the ones that are there. */
#include "support.h"

#include "known/directory.h"

static const dp_directory_options by_similarity = {.bits = 64, .by_similarity = true, .threads = 2};

enum { EACH = 1000, HALVES = 3, COUNT = EACH * HALVES, BANDS = 4 };

/* Each low half three times; 2^32 itself is among them, number 0 is not. */
static uint64_t number_at(size_t i) {
    return (uint64_t)(i / EACH) << 32 | i % EACH;
}

typedef struct document {
    dp_trace trace;
    uint32_t keys[BANDS];
} document;

/* An id and bands of its own, but for one band and the URL. */
static void fill(document *d, size_t i) {
    uint64_t random = i;
    *d = (document){.trace = {.number = number_at(i), .kind = DP_TRACE_DOCUMENT, .content = true}};
    d->trace.id_hash = random_next(&random);
    d->trace.url_hash = 1 + i % 7;
    for (size_t b = 0; b < BANDS; b++)
        d->keys[b] = (uint32_t)(b ? random_next(&random) : i % 300);
    d->trace.keys = d->keys;
    d->trace.key_count = BANDS;
}

typedef struct scene {
    dp_directory *directory;
    bool there[COUNT];
    size_t more; /* numbers that were given and have neither the key nor the low half of one that has it */
} scene;

typedef bool (*has_key)(size_t i, size_t asked);

static bool has_id(size_t i, size_t asked) {
    return i == asked;
}

static bool has_url(size_t i, size_t asked) {
    return i % 7 == asked % 7;
}

static bool has_band(size_t i, size_t asked) {
    return i % 300 == asked % 300;
}

/* Whether one of those with this low half has the key, and is there. */
static bool may_have(const scene *s, has_key has, size_t i, size_t asked) {
    bool may = false;
    for (size_t other = i % EACH; other < COUNT; other += EACH)
        may |= s->there[other] && has(other, asked);
    return may;
}

static void check(scene *s, const dp_numbers *found, has_key has, size_t asked) {
    size_t at = 0;
    for (size_t i = 1; i < COUNT; i++) {
        bool given = at < found->count && found->number[at] == number_at(i);
        assert_true(given || !s->there[i] || !has(i, asked));
        assert_true(!given || s->there[i]);
        s->more += given && !may_have(s, has, i, asked);
        at += given;
    }
    assert_int_equal(at, found->count);
}

static void check_all(scene *s, size_t step) {
    dp_numbers found = {0};
    document d;
    for (size_t i = 1; i < COUNT; i += step) {
        fill(&d, i);
        assert_int_equal(dp_directory_find_key(s->directory, DP_KEY_ID, d.trace.id_hash, &found), DOPPEL_OK);
        check(s, &found, has_id, i);
        assert_int_equal(dp_directory_find_key(s->directory, DP_KEY_URL, d.trace.url_hash, &found), DOPPEL_OK);
        check(s, &found, has_url, i);
        assert_int_equal(dp_directory_find_bands(s->directory, d.keys, BANDS, &found), DOPPEL_OK);
        check(s, &found, has_band, i);
    }
    dp_numbers_free(&found);
    assert_true(s->more < 5);
}

static void take_out(scene *s, size_t i) {
    document d;
    fill(&d, i);
    assert_int_equal(dp_directory_remove(s->directory, &d.trace), DOPPEL_OK);
    s->there[i] = false;
}

static void put(scene *s, size_t i) {
    document d;
    fill(&d, i);
    assert_int_equal(dp_directory_add(s->directory, &d.trace), DOPPEL_OK);
    s->there[i] = true;
}

static void remove_all(scene *s) {
    for (size_t i = 1; i < COUNT; i += 2)
        take_out(s, i);
    check_all(s, 37);
    for (size_t i = 1; i < COUNT; i += 4)
        put(s, i);
    check_all(s, 37);
    for (size_t i = 1; i < COUNT; i++)
        if (s->there[i * 1787 % COUNT])
            take_out(s, i * 1787 % COUNT);
    check_all(s, 37);
    dp_directory_stats stats;
    dp_directory_get_stats(s->directory, &stats);
    assert_int_equal(stats.documents, 0);
}

static void all_are_found_that_were_added(void **state) {
    (void)state;
    scene s = {0};
    assert_int_equal(dp_directory_create(&by_similarity, &s.directory, NULL), DOPPEL_OK);
    for (size_t i = 1; i < COUNT; i++) {
        put(&s, i);
        if (i % 700 == 0)
            check_all(&s, 99);
    }
    check_all(&s, 7);
    remove_all(&s);
    dp_directory_free(s.directory);
}

static void all_are_found_that_were_loaded(void **state) {
    (void)state;
    scene s = {0};
    document d;
    dp_directory_load *load;
    assert_int_equal(dp_directory_create(&by_similarity, &s.directory, NULL), DOPPEL_OK);
    assert_int_equal(dp_directory_load_begin(s.directory, &load), DOPPEL_OK);
    for (size_t i = COUNT - 1; i > 0; i--) {
        fill(&d, i);
        assert_int_equal(dp_directory_load_add(load, &d.trace), DOPPEL_OK);
        s.there[i] = true;
    }
    assert_int_equal(dp_directory_load_end(load), DOPPEL_OK);
    check_all(&s, 7);
    remove_all(&s);
    dp_directory_free(s.directory);
}

/* One URL for all while numbers pass 2^32, the oldest taken out for each that comes: were the list brought into order
 * each time, this would take long. */
static void lists_stay_fast_when_numbers_pass_32_bits(void **state) {
    (void)state;
    enum { ALIVE = 20000 };
    const uint64_t first = ((uint64_t)1 << 32) - 3 * ALIVE / 2;
    dp_directory *directory;
    dp_numbers found = {0};
    assert_int_equal(dp_directory_create(&by_similarity, &directory, NULL), DOPPEL_OK);
    for (uint64_t n = 0; n < 3 * ALIVE; n++) {
        dp_trace trace = {.number = first + n, .kind = DP_TRACE_COPY, .id_hash = 1 + n, .url_hash = 5};
        assert_int_equal(dp_directory_add(directory, &trace), DOPPEL_OK);
        if (n < ALIVE)
            continue;
        trace.number -= ALIVE;
        trace.id_hash -= ALIVE;
        assert_int_equal(dp_directory_remove(directory, &trace), DOPPEL_OK);
    }
    assert_int_equal(dp_directory_find_key(directory, DP_KEY_URL, 5, &found), DOPPEL_OK);
    assert_int_equal(found.count, ALIVE);
    assert_int_equal(found.number[0], first + 2 * ALIVE);
    assert_int_equal(found.number[ALIVE - 1], first + 3 * ALIVE - 1);
    dp_numbers_free(&found);
    dp_directory_free(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_found_that_were_added),
        cmocka_unit_test(all_are_found_that_were_loaded),
        cmocka_unit_test(lists_stay_fast_when_numbers_pass_32_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
