/* test_kernel_hash.c - the kernels that hash words and runs of words, each variant against docs/FORMAT.md section 3. */
#include "support.h"

#include "base/base.h"
#include "kernel/kernel.h"

#include <stdlib.h>

enum { MOST_WORDS = 1400, LONGEST_WORD = 300, TEXT_ROOM = MOST_WORDS * (LONGEST_WORD + 1) + DP_TEXT_SLACK };

/* ---- the definitions ---- */

static uint64_t plain_word(const uint8_t *bytes, size_t length) {
    uint64_t w = 0;
    for (size_t i = 0; i < length; i += 8) {
        uint64_t eight = 0;
        for (size_t k = 0; k < 8 && i + k < length; k++)
            eight |= (uint64_t)bytes[i + k] << (8 * k);
        w = (w ^ eight) * 0x9E3779B97F4A7C15u;
        w ^= w >> 32;
    }
    return w + length;
}

static uint64_t plain_shingle(const uint64_t *words, size_t n, uint64_t seed) {
    uint64_t s = 0;
    for (size_t i = 0; i < n; i++)
        s = (s << 23 | s >> 41) + words[i];
    uint64_t x = s + seed * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 32) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 29) * 0x94D049BB133111EBu;
    return x ^ x >> 32;
}

/* ---- random words ---- */

typedef struct room {
    guarded text, starts, hashes, words;
    uint8_t *bytes; /* TEXT_ROOM of them, unguarded */
    uint32_t *places;
} room;

static int setup(void **state) {
    room *r = malloc(sizeof *r);
    *r = (room){guarded_create(TEXT_ROOM),
                guarded_create((MOST_WORDS + 1) * 4),
                guarded_create(MOST_WORDS * 8),
                guarded_create(MOST_WORDS * 8),
                malloc(TEXT_ROOM),
                malloc((MOST_WORDS + 1) * sizeof(uint32_t))};
    *state = r;
    return 0;
}

static int teardown(void **state) {
    room *r = *state;
    guarded_free(r->text);
    guarded_free(r->starts);
    guarded_free(r->hashes);
    guarded_free(r->words);
    free(r->bytes);
    free(r->places);
    free(r);
    return 0;
}

/* Fills the room with `units` words of `shortest` to `longest` bytes; the slack behind them holds anything. */
static dp_runs fill(const room *r, uint64_t *seed, size_t units, size_t shortest, size_t longest, uint32_t gap) {
    uint32_t end = 0;
    for (size_t i = 0; i < units; i++) {
        r->places[i] = end;
        end += (uint32_t)(shortest + random_below(seed, longest - shortest + 1)) + gap;
    }
    r->places[units] = end;
    size_t length = (units ? end - gap : 0) + DP_TEXT_SLACK;
    for (size_t i = 0; i < length; i++)
        r->bytes[i] = (uint8_t)random_next(seed);
    return (dp_runs){guarded_copy(r->text, r->bytes, length), guarded_copy(r->starts, r->places, (units + 1) * 4),
                     units, 1, gap};
}

/* ---- words ---- */

static void check_words(const room *r, const dp_runs *words) {
    uint64_t *hashes = guarded_copy(r->hashes, NULL, words->count * 8);
    EACH_VARIANT(hash_words, variant) {
        memset(hashes, 0xAA, words->count * 8);
        variant->run(words, hashes);
        for (size_t i = 0; i < words->count; i++) {
            uint32_t start = words->starts[i], length = words->starts[i + 1] - words->gap - start;
            assert_int_equal(hashes[i], plain_word(words->text + start, length));
        }
    }
}

static void words_of_every_length(void **state) {
    const room *r = *state;
    uint64_t seed = 1;
    for (size_t length = 1; length <= LONGEST_WORD; length += length < 140 ? 1 : 17)
        for (size_t count = 1; count <= 33; count += 4)
            for (uint32_t gap = 0; gap < 2; gap++) {
                dp_runs words = fill(r, &seed, count, length, length, gap);
                check_words(r, &words);
            }
}

static void words_of_every_count(void **state) {
    static const size_t longest[] = {1, 4, 8, 9, 16, 17, 24, 100, 300};
    const room *r = *state;
    uint64_t seed = 2;
    for (size_t count = 0; count <= 70; count++)
        for (size_t k = 0; k < sizeof longest / sizeof *longest; k++) {
            dp_runs words = fill(r, &seed, count, 1, longest[k], (uint32_t)(count + k) % 2);
            check_words(r, &words);
        }
}

static void more_words_than_a_chunk(void **state) {
    static const size_t counts[] = {511, 512, 513, 519, 520, 1024, 1025, MOST_WORDS};
    const room *r = *state;
    uint64_t seed = 3;
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        dp_runs usual = fill(r, &seed, counts[k], 1, 12, 1);
        check_words(r, &usual);
        dp_runs all_long = fill(r, &seed, counts[k], 17, 40, 1);
        check_words(r, &all_long);
    }
}

static void one_word_by_itself(void **state) {
    const room *r = *state;
    uint64_t seed = 4;
    for (size_t length = 1; length <= 100; length++) {
        dp_runs words = fill(r, &seed, 1, length, length, 1);
        /* Without slack: it reads nothing behind the word. */
        const uint8_t *alone = guarded_copy(r->text, r->bytes, length);
        assert_int_equal(dp_hash_word(alone, length), plain_word(r->bytes, length));
        (void)words;
    }
    assert_int_equal(dp_hash_word((const uint8_t *)"", 0), 0);
}

/* ---- shingles ---- */

static void check_shingles(const room *r, const uint64_t *given, size_t count, size_t n, uint64_t seed) {
    size_t units = count ? count + n - 1 : 0;
    uint64_t *hashes = guarded_copy(r->hashes, NULL, count * 8);
    EACH_VARIANT(shingles, variant) {
        const uint64_t *words = guarded_copy(r->words, given, units * 8);
        memset(hashes, 0xAA, count * 8);
        variant->run(words, count, n, seed, hashes);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(hashes[i], plain_shingle(given + i, n, seed));
        uint64_t *in_place = guarded_copy(r->words, given, units * 8);
        variant->run(in_place, count, n, seed, in_place);
        assert_memory_equal(in_place, hashes, count * 8);
    }
}

static void shingles_of_every_count_and_n(void **state) {
    const room *r = *state;
    uint64_t words[120], seed = 5;
    for (size_t count = 0; count <= 70; count++)
        for (size_t n = 1; n <= 20; n++) {
            for (size_t i = 0; i < 120; i++)
                words[i] = random_next(&seed);
            check_shingles(r, words, count, n, n % 3 == 2 ? random_next(&seed) : n % 3);
        }
}

static void shingles_of_a_thousand_words(void **state) {
    const room *r = *state;
    static uint64_t words[1100];
    uint64_t seed = 6;
    for (size_t i = 0; i < 1100; i++)
        words[i] = random_next(&seed);
    check_shingles(r, words, 30, 1000, 1);
}

/* ---- murmur3 ---- */

static void check_murmur3(const room *r, dp_runs runs, uint32_t seed) {
    uint64_t *hashes = guarded_copy(r->hashes, NULL, runs.count * 8);
    EACH_VARIANT(murmur3_runs, variant) {
        memset(hashes, 0xAA, runs.count * 8);
        variant->run(&runs, seed, hashes);
        for (size_t i = 0; i < runs.count; i++) {
            uint32_t start = runs.starts[i], length = runs.starts[i + runs.n] - runs.gap - start;
            assert_int_equal(hashes[i], dp_murmur3(runs.text + start, length, seed));
        }
    }
}

static void murmur3_of_every_count_and_n(void **state) {
    static const size_t longest[] = {1, 2, 4, 9, 16, 30, 300};
    const room *r = *state;
    uint64_t seed = 7;
    for (size_t count = 0; count <= 70; count += count < 20 ? 1 : 5)
        for (size_t n = 1; n <= 20; n++)
            for (size_t k = 0; k < sizeof longest / sizeof *longest; k++) {
                dp_runs runs = fill(r, &seed, count + n - 1, 1, longest[k], (uint32_t)(n + k) % 2);
                runs.count = count;
                runs.n = n;
                check_murmur3(r, runs, count % 3 ? (uint32_t)count % 3 - 1 : (uint32_t)random_next(&seed));
            }
}

static void murmur3_of_words_of_every_length(void **state) {
    const room *r = *state;
    uint64_t seed = 8;
    for (size_t length = 1; length <= 140; length++)
        for (size_t n = 1; n <= 3; n++) {
            dp_runs runs = fill(r, &seed, 16 + n - 1, length, length, 1);
            runs.count = 16;
            runs.n = n;
            check_murmur3(r, runs, 0);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(words_of_every_length),         TEST(words_of_every_count),
        TEST(more_words_than_a_chunk),       TEST(one_word_by_itself),
        TEST(shingles_of_every_count_and_n), TEST(shingles_of_a_thousand_words),
        TEST(murmur3_of_every_count_and_n),  TEST(murmur3_of_words_of_every_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
