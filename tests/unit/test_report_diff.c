/* test_report_diff.c - the differences a report shows: the shortest way from one text to another. The file under test
 * belongs to the command, so it is taken in whole. */
#include "../../programs/doppel/report/diff.c"

#include "support.h"

enum { MOST = 48 };

/* The length of the longest common subsequence, by the whole table. */
static size_t common(const diff_text *a, const diff_text *b) {
    static size_t length[MOST + 1][MOST + 1];
    for (size_t i = 0; i <= a->words; i++)
        for (size_t j = 0; j <= b->words; j++) {
            size_t up = i ? length[i - 1][j] : 0, left = j ? length[i][j - 1] : 0;
            length[i][j] = !i || !j                           ? 0
                           : a->hash[i - 1] == b->hash[j - 1] ? length[i - 1][j - 1] + 1
                           : up > left                        ? up
                                                              : left;
        }
    return length[a->words][b->words];
}

/* Whether the runs lead from A to B, and are in order; gives how many words stay. */
static size_t walk(const diff_text *a, const diff_text *b, const diff *d) {
    size_t i = 0, j = 0, same = 0;
    for (size_t n = 0; n < d->count; n++) {
        const diff_run *run = &d->run[n];
        assert_true(run->count > 0);
        assert_true(!n || run->kind != d->run[n - 1].kind);
        assert_false(n && run->kind == DIFF_REMOVED && d->run[n - 1].kind == DIFF_ADDED);
        assert_int_equal(run->first, run->kind == DIFF_ADDED ? j : i);
        if (run->kind == DIFF_SAME) {
            assert_memory_equal(a->hash + i, b->hash + j, run->count * sizeof *a->hash);
            same += run->count;
        }
        i += run->kind != DIFF_ADDED ? run->count : 0;
        j += run->kind != DIFF_REMOVED ? run->count : 0;
    }
    assert_int_equal(i, a->words);
    assert_int_equal(j, b->words);
    return same;
}

static void the_way_is_the_shortest(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int n = 0; n < 20000; n++) {
        uint64_t x[MOST], y[MOST], kinds = 1 + random_below(&seed, 8);
        diff_text a = {.hash = x, .words = random_below(&seed, MOST)};
        diff_text b = {.hash = y, .words = random_below(&seed, MOST)};
        diff d;
        for (size_t i = 0; i < MOST; i++) {
            x[i] = random_below(&seed, kinds);
            y[i] = random_below(&seed, kinds);
        }
        assert_int_equal(diff_words(&a, &b, &d), DOPPEL_OK);
        assert_int_equal(walk(&a, &b, &d), common(&a, &b));
        assert_false(d.unaligned);
        diff_free(&d);
    }
}

static void too_much_is_taken_as_replaced(void **state) {
    (void)state;
    enum { WORDS = 3000 };
    static uint64_t x[WORDS], y[WORDS];
    for (size_t i = 0; i < WORDS; i++) {
        x[i] = i;
        y[i] = i < 10 || i >= WORDS - 5 ? i : WORDS + i;
    }
    diff_text a = {.hash = x, .words = WORDS}, b = {.hash = y, .words = WORDS};
    diff d;
    assert_int_equal(diff_words(&a, &b, &d), DOPPEL_OK);
    assert_true(d.unaligned);
    assert_int_equal(walk(&a, &b, &d), 15);
    assert_int_equal(d.count, 4);
    diff_free(&d);
}

static void words_are_normalised_and_placed(void **state) {
    (void)state;
    static const char one[] = "The  Quick, brown!", two[] = "the quick \xE7\x8B\x97 brown";
    diff_text a, b;
    diff d;
    assert_int_equal(diff_split(&a, one, sizeof one - 1), DOPPEL_OK);
    assert_int_equal(diff_split(&b, two, sizeof two - 1), DOPPEL_OK);
    assert_int_equal(a.words, 3);
    assert_int_equal(b.words, 4);
    assert_int_equal(a.ranges.range[1].start, 5);
    assert_int_equal(diff_words(&a, &b, &d), DOPPEL_OK);
    assert_int_equal(d.count, 3);
    assert_int_equal(d.run[1].kind, DIFF_ADDED);
    assert_int_equal(b.ranges.range[d.run[1].first].start, 10);
    diff_free(&d);
    diff_text_free(&a);
    diff_text_free(&b);
}

static void texts_without_words_have_no_runs(void **state) {
    (void)state;
    diff_text a;
    diff d;
    assert_int_equal(diff_split(&a, "", 0), DOPPEL_OK);
    assert_int_equal(diff_words(&a, &a, &d), DOPPEL_OK);
    assert_int_equal(d.count, 0);
    diff_free(&d);
    diff_text_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_is_the_shortest),
        cmocka_unit_test(too_much_is_taken_as_replaced),
        cmocka_unit_test(words_are_normalised_and_placed),
        cmocka_unit_test(texts_without_words_have_no_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
