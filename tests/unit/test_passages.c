/* test_passages.c - the matching passages of two texts. */
#include "support.h"

#include "doppel.h"
#include "verify/marks.h"

#include <stdio.h>
#include <stdlib.h>

static doppel_passages find_passages(const char *a, const char *b, size_t min_words) {
    doppel_passages result = {0};
    assert_int_equal(doppel_passages_find(NULL, doppel_slice_of(a), doppel_slice_of(b), min_words, &result), DOPPEL_OK);
    return result;
}

/* The bytes of passage i in both texts. */
static void check_passage(doppel_passages result, size_t i, const char *a, const char *in_a, const char *b,
                          const char *in_b) {
    assert_true(i < result.count);
    doppel_passage passage = result.passage[i];
    assert_int_equal(passage.a_end - passage.a_start, strlen(in_a));
    assert_memory_equal(a + passage.a_start, in_a, strlen(in_a));
    assert_int_equal(passage.b_end - passage.b_start, strlen(in_b));
    assert_memory_equal(b + passage.b_start, in_b, strlen(in_b));
}

static void the_same_text_is_one_passage(void **state) {
    (void)state;
    const char *text = "  The quick, brown fox -- jumps over the lazy dog!\n";
    doppel_passages result = find_passages(text, text, 5);
    assert_int_equal(result.count, 1);
    check_passage(result, 0, text, "The quick, brown fox -- jumps over the lazy dog", text,
                  "The quick, brown fox -- jumps over the lazy dog");
    assert_int_equal(result.passage[0].words, 9);
    doppel_passages_free(&result);
}

static void passages_come_in_the_order_of_a(void **state) {
    (void)state;
    const char *a = "one two three four, and then alpha beta gamma delta epsilon";
    const char *b = "Alpha Beta GAMMA delta epsilon came before one; two; three; four";
    doppel_passages result = find_passages(a, b, 3);
    assert_int_equal(result.count, 2);
    check_passage(result, 0, a, "one two three four", b, "one; two; three; four");
    check_passage(result, 1, a, "alpha beta gamma delta epsilon", b, "Alpha Beta GAMMA delta epsilon");
    doppel_passages_free(&result);
}

static void the_longest_run_is_taken_first(void **state) {
    (void)state;
    /* "c d" could belong to "a b c d" or to "c d e f g", which is longer. */
    const char *a = "a b c d e f g";
    const char *b = "a b c d x c d e f g";
    doppel_passages result = find_passages(a, b, 2);
    assert_int_equal(result.count, 2);
    check_passage(result, 0, a, "a b", b, "a b");
    check_passage(result, 1, a, "c d e f g", b, "c d e f g");
    doppel_passages_free(&result);
}

static void a_passage_that_stands_twice_matches_twice(void **state) {
    (void)state;
    const char *a = "red green blue yellow one red green blue yellow";
    const char *b = "red green blue yellow two red green blue yellow";
    doppel_passages result = find_passages(a, b, 4);
    assert_int_equal(result.count, 2);
    assert_int_equal(result.passage[0].b_start, 0);
    assert_int_equal(result.passage[1].b_start, 26);
    doppel_passages_free(&result);
}

static void but_not_more_often_than_it_stands_in_either(void **state) {
    (void)state;
    const char *a = "red green blue one red green blue two red green blue";
    const char *b = "red green blue";
    doppel_passages result = find_passages(a, b, 3);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.passage[0].a_start, 0);
    doppel_passages_free(&result);
}

static void shorter_runs_are_left_out(void **state) {
    (void)state;
    doppel_passages result = find_passages("a b c x y z", "x y z a b c", 4);
    assert_int_equal(result.count, 0);
    assert_null(result.passage);
    result = find_passages("a b c x y z", "x y z a b c", 3);
    assert_int_equal(result.count, 2);
    doppel_passages_free(&result);
}

static void empty_texts_have_none(void **state) {
    (void)state;
    assert_int_equal(find_passages("", "", 1).count, 0);
    assert_int_equal(find_passages("", "a b c", 1).count, 0);
    assert_int_equal(find_passages("a b c", " ... ", 1).count, 0);
}

static void zero_words_make_no_sense(void **state) {
    (void)state;
    doppel_passages passages = {0};
    const doppel_slice a = doppel_slice_of("a");
    assert_int_equal(doppel_passages_find(NULL, a, a, 0, &passages), DOPPEL_ERROR_USAGE);
}

static void scripts_without_spaces(void **state) {
    (void)state;
    const char *a = "\xE5\x8C\x97\xE4\xBA\xAC\xE6\x98\xAF\xE9\xA6\x96\xE9\x83\xBD"; /* five characters */
    const char *b = "x \xE4\xBA\xAC\xE6\x98\xAF\xE9\xA6\x96 y";
    doppel_passages result = find_passages(a, b, 3);
    assert_int_equal(result.count, 1);
    check_passage(result, 0, a, "\xE4\xBA\xAC\xE6\x98\xAF\xE9\xA6\x96", b, "\xE4\xBA\xAC\xE6\x98\xAF\xE9\xA6\x96");
    doppel_passages_free(&result);
}

/* ---- random texts: against greedy tiling by the book ---- */

enum { MOST = 60 };

struct tile {
    size_t a, b, length;
};

/* Takes the longest common run of unspent words, the first in a, then in b, again and again. */
static size_t plain_tiles(const int *a, size_t n, const int *b, size_t m, size_t min_words, struct tile *tiles) {
    bool spent_a[MOST] = {0}, spent_b[MOST] = {0};
    size_t count = 0;
    for (;; count++) {
        struct tile best = {0, 0, 0};
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < m; j++) {
                size_t k = 0;
                while (i + k < n && j + k < m && a[i + k] == b[j + k] && !spent_a[i + k] && !spent_b[j + k])
                    k++;
                if (k > best.length)
                    best = (struct tile){i, j, k};
            }
        if (best.length < min_words)
            return count;
        for (size_t k = 0; k < best.length; k++)
            spent_a[best.a + k] = spent_b[best.b + k] = true;
        size_t at = count;
        for (; at && tiles[at - 1].a > best.a; at--)
            tiles[at] = tiles[at - 1];
        tiles[at] = best;
    }
}

/* Words of one letter, so that word i is byte 2 i. */
static void write_words(const int *words, size_t count, char *text) {
    for (size_t i = 0; i < count; i++) {
        text[2 * i] = (char)('a' + words[i]);
        text[2 * i + 1] = ' ';
    }
    text[2 * count] = 0;
}

static size_t most_copies(const int *words, size_t count) {
    size_t copies[64] = {0}, most = 0;
    for (size_t i = 0; i < count; i++)
        most = ++copies[words[i]] > most ? copies[words[i]] : most;
    return most;
}

static void random_texts_are_tiled_by_the_book(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        int a[MOST], b[MOST];
        char text_a[2 * MOST + 1], text_b[2 * MOST + 1];
        struct tile tiles[MOST];
        size_t n = random_below(&seed, MOST + 1), m = random_below(&seed, 31), kinds = 1 + random_below(&seed, 26);
        size_t min_words = 1 + random_below(&seed, 4);
        for (size_t i = 0; i < n; i++)
            a[i] = (int)random_below(&seed, kinds);
        for (size_t i = 0; i < m; i++)
            b[i] = i % 10 && n ? a[(i + (size_t)round) % n] : (int)random_below(&seed, kinds);
        /* Beyond four places of a word, runs may be left out. */
        if (most_copies(b, m) > 4)
            continue;
        write_words(a, n, text_a);
        write_words(b, m, text_b);
        size_t count = plain_tiles(a, n, b, m, min_words, tiles);
        doppel_passages result = find_passages(text_a, text_b, min_words);
        assert_int_equal(result.count, count);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(result.passage[i].a_start, 2 * tiles[i].a);
            assert_int_equal(result.passage[i].b_start, 2 * tiles[i].b);
            assert_int_equal(result.passage[i].words, tiles[i].length);
            assert_int_equal(result.passage[i].a_end, 2 * (tiles[i].a + tiles[i].length) - 1);
        }
        doppel_passages_free(&result);
    }
}

/* ---- long and hostile texts ---- */

/* `count` words of `period` different kinds in turn, from `first` on. */
static char *repeat_words(size_t count, size_t period, size_t first) {
    char *text = malloc(10 * count + 1), *at = text;
    for (size_t i = 0; i < count; i++)
        at += sprintf(at, "w%zu ", (i + first) % period);
    *at = 0;
    return text;
}

static void check_covered(const char *a, const char *b, size_t least) {
    doppel_passages result = find_passages(a, b, 5);
    size_t words = 0, end = 0;
    for (size_t i = 0; i < result.count; i++) {
        assert_true(result.passage[i].a_start >= end && result.passage[i].words >= 5);
        end = result.passage[i].a_end;
        words += result.passage[i].words;
    }
    assert_true(words >= least);
    doppel_passages_free(&result);
}

static void texts_that_repeat_themselves(void **state) {
    (void)state;
    enum { WORDS = 100000 };
    const size_t periods[] = {1, 2, 3, 7, 100, 5000};
    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++) {
        char *a = repeat_words(WORDS, periods[i], 0), *b = repeat_words(WORDS - 10, periods[i], 1);
        check_covered(a, b, WORDS - 20);
        free(a);
        free(b);
    }
}

/* The shared part begins with a line that stands in B many times before. */
static void a_passage_behind_many_copies_of_its_beginning(void **state) {
    (void)state;
    char *head = repeat_words(3000, 6, 0), *tail = repeat_words(2000, 1000000, 100);
    char *a = malloc(strlen(head) + strlen(tail) + 100), *b = malloc(strlen(head) + strlen(tail) + 100);
    sprintf(a, "something else w0 w1 w2 w3 w4 w5 w0 w1 w2 w3 w4 w5 %s", tail);
    sprintf(b, "%s%s", head, tail);
    doppel_passages result = find_passages(a, b, 5);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.passage[0].words, 2012);
    doppel_passages_free(&result);
    free(head);
    free(tail);
    free(a);
    free(b);
}

/* The same, and the shared part begins far before the first word whose places in B are all tried. */
static void a_passage_that_is_found_from_its_middle(void **state) {
    (void)state;
    char *head = repeat_words(3000, 6, 0), *tail = repeat_words(2000, 1000000, 100);
    for (size_t before = 30; before <= 270; before += 6) {
        char *own = repeat_words(before, 6, 0);
        char *a = malloc(strlen(own) + strlen(tail) + 100), *b = malloc(strlen(head) + strlen(tail) + 100);
        sprintf(a, "something else %s%s", own, tail);
        sprintf(b, "%s%s", head, tail);
        doppel_passages result = find_passages(a, b, 5);
        assert_int_equal(result.count, 1);
        assert_int_equal(result.passage[0].words, 2000 + before);
        doppel_passages_free(&result);
        free(own);
        free(a);
        free(b);
    }
    free(head);
    free(tail);
}

/* ---- marks ---- */

static void marks_find_the_next_number(void **state) {
    (void)state;
    uint64_t seed = 2;
    const size_t limits[] = {0, 1, 63, 64, 65, 4095, 4096, 4097, 300000};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        size_t limit = limits[i];
        bool *in = calloc(limit + 1, 1);
        dp_marks some = {0}, rest = {0};
        assert_true(dp_marks_init(&some, limit, false) && dp_marks_init(&rest, limit, true));
        for (size_t k = 0; limit && k < limit / 50 + 2; k++) {
            size_t number = random_below(&seed, limit);
            in[number] = true;
            dp_marks_add(&some, number);
            dp_marks_remove(&rest, number);
        }
        size_t next = limit, next_rest = limit;
        assert_int_equal(dp_marks_next(&some, limit), limit);
        for (size_t at = limit; at--;) {
            if (in[at])
                next = at;
            else
                next_rest = at;
            assert_int_equal(dp_marks_next(&some, at), next);
            assert_int_equal(dp_marks_next(&rest, at), next_rest);
        }
        dp_marks_free(&some);
        dp_marks_free(&rest);
        free(in);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_text_is_one_passage),
        cmocka_unit_test(passages_come_in_the_order_of_a),
        cmocka_unit_test(the_longest_run_is_taken_first),
        cmocka_unit_test(a_passage_that_stands_twice_matches_twice),
        cmocka_unit_test(but_not_more_often_than_it_stands_in_either),
        cmocka_unit_test(shorter_runs_are_left_out),
        cmocka_unit_test(empty_texts_have_none),
        cmocka_unit_test(zero_words_make_no_sense),
        cmocka_unit_test(scripts_without_spaces),
        cmocka_unit_test(random_texts_are_tiled_by_the_book),
        cmocka_unit_test(texts_that_repeat_themselves),
        cmocka_unit_test(a_passage_behind_many_copies_of_its_beginning),
        cmocka_unit_test(marks_find_the_next_number),
        cmocka_unit_test(a_passage_that_is_found_from_its_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
