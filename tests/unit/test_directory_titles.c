/* test_directory_titles.c - titles as evidence: which of them count. */
#include "best_title.h"
#include "support.h"

#include "known/directory.h"

#include <stdio.h>

static const dp_directory_options by_distance = {.bits = 64, .distance = 3, .titles = true, .title_similarity = 0.9};

static uint64_t seen; /* duplicates that were ever found by their titles */

static dp_title_hit ask(dp_directory *directory, const char *title, double share) {
    dp_title_matches matches = {0};
    dp_title_hit hit;
    dp_title_search query = {.title = {title, strlen(title)}, .below = UINT64_MAX, .share = share, .seen = seen};
    assert_int_equal(find_best_title(directory, &query, &matches, &hit), DOPPEL_OK);
    dp_title_matches_free(&matches);
    return hit;
}

static void put(dp_directory *directory, uint64_t number, const char *title) {
    dp_trace trace = {.number = number, .kind = DP_TRACE_DOCUMENT, .id_hash = number, .title = {title, strlen(title)}};
    assert_int_equal(dp_directory_add(directory, &trace), DOPPEL_OK);
}

static const char common[] = "a title that is everywhere", rare[] = "a title that has one owner";

static void titles_that_are_everywhere_do_not_count(void **state) {
    (void)state;
    dp_directory *directory;
    assert_int_equal(dp_directory_create(&by_distance, &directory, NULL), DOPPEL_OK);
    put(directory, 1, rare);
    for (uint64_t n = 2; n < 10; n++)
        put(directory, n, common);
    assert_int_equal(ask(directory, common, 0.01).number, 2); /* eight are few */
    put(directory, 10, common);
    assert_int_equal(ask(directory, common, 0.01).number, 0);
    assert_int_equal(ask(directory, common, 0.95).number, 2); /* but not more than this share */
    assert_int_equal(ask(directory, "a title that is everywhare", 0.01).number, 0);
    assert_int_equal(ask(directory, rare, 0.01).number, 1);
    dp_directory_free(directory);
}

static void came(dp_directory *directory, uint64_t number, uint64_t times) {
    assert_int_equal(dp_directory_title_seen(directory, number, times), DOPPEL_OK);
    seen += times;
}

/* Duplicates are not added, but the title they were found by counts as often as it came, as long as its owner is there.
 */
static void titles_that_came_often_do_not_count(void **state) {
    (void)state;
    dp_directory *directory;
    const char *typo = "a title that has one owmer";
    dp_trace gone = {.number = 1, .kind = DP_TRACE_DOCUMENT, .id_hash = 1, .title = {rare, sizeof rare - 1}};
    assert_int_equal(dp_directory_create(&by_distance, &directory, NULL), DOPPEL_OK);
    put(directory, 1, rare);
    put(directory, 2, common);
    came(directory, 1, 7);
    assert_int_equal(ask(directory, rare, 0.1).number, 1);
    assert_int_equal(ask(directory, typo, 0.1).number, 1);
    came(directory, 1, 1);
    assert_int_equal(ask(directory, rare, 0.1).number, 0);
    assert_int_equal(ask(directory, typo, 0.1).number, 0);
    assert_int_equal(ask(directory, common, 0.1).number, 2);
    dp_directory_title_unseen(directory, 1, 1);
    assert_int_equal(ask(directory, rare, 0.1).number, 1);
    came(directory, 1, 1);
    for (uint64_t number = 3; number < 503; number++)
        came(directory, number, 1);
    assert_int_equal(ask(directory, rare, 0.01).number, 0);
    assert_int_equal(ask(directory, rare, 0.5).number, 1);
    assert_int_equal(dp_directory_remove(directory, &gone), DOPPEL_OK);
    put(directory, 600, rare);
    assert_int_equal(ask(directory, rare, 0.01).number, 600);
    seen = 0;
    dp_directory_free(directory);
}

/* Titles of all lengths, each a few edits from an earlier one: the best is found, whatever their lengths are. */
static size_t edited(char *to, const char *from, size_t length, uint64_t *random) {
    size_t size = 0, edits = length / 8 + 1;
    for (size_t i = 0; i < length; i++) {
        size_t what = random_below(random, length / edits * 6);
        if (what != 0)
            to[size++] = what == 1 ? 'x' : from[i];
        if (what == 2)
            to[size++] = 'y';
    }
    return size;
}

enum { TITLES = 300, LONGEST = 400 };
typedef struct text {
    char title[LONGEST];
    size_t length;
} text;

/* The first of the most similar titles before number `i`, as comparing all tells. */
static dp_title_hit best_before(const text *all, size_t i, double least) {
    dp_title_hit best = {0};
    for (size_t j = 0; j < i; j++) {
        size_t distance, longer = all[i].length > all[j].length ? all[i].length : all[j].length;
        assert_int_equal(doppel_levenshtein((doppel_slice){all[i].title, all[i].length},
                                            (doppel_slice){all[j].title, all[j].length}, SIZE_MAX, &distance),
                         DOPPEL_OK);
        double similarity = 1 - (double)distance / (double)longer;
        if (similarity >= least && similarity > best.similarity)
            best = (dp_title_hit){j + 1, similarity};
    }
    return best;
}

static void make_text(text *all, size_t i, uint64_t *random) {
    const text *near = &all[i - i % 3];
    if (i % 3) {
        all[i].length = edited(all[i].title, near->title, near->length, random);
        return;
    }
    all[i].length = 10 + random_below(random, 180);
    for (size_t j = 0; j < all[i].length; j++)
        all[i].title[j] = (char)('a' + random_below(random, 20));
}

static size_t compare_all(double least) {
    static text all[TITLES];
    dp_directory_options options = by_distance;
    dp_directory *directory;
    dp_title_matches matches = {0};
    uint64_t random = 9;
    size_t hits = 0;
    options.title_similarity = least;
    assert_int_equal(dp_directory_create(&options, &directory, NULL), DOPPEL_OK);
    for (size_t i = 0; i < TITLES; i++) {
        make_text(all, i, &random);
        dp_title_search query = {.title = {all[i].title, all[i].length}, .below = UINT64_MAX, .share = 1};
        dp_title_hit hit, best = best_before(all, i, least);
        assert_int_equal(find_best_title(directory, &query, &matches, &hit), DOPPEL_OK);
        assert_int_equal(hit.number, best.number);
        hits += best.number != 0;
        dp_trace trace = {.number = i + 1, .kind = DP_TRACE_DOCUMENT, .id_hash = i, .title = query.title};
        assert_int_equal(dp_directory_add(directory, &trace), DOPPEL_OK);
    }
    dp_title_matches_free(&matches);
    dp_directory_free(directory);
    return hits;
}

static void the_best_is_found_at_all_lengths(void **state) {
    (void)state;
    assert_true(compare_all(0.5) > TITLES / 3);
    assert_true(compare_all(0.7) > TITLES / 3);
    assert_true(compare_all(0.9) > TITLES / 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(titles_that_are_everywhere_do_not_count),
        cmocka_unit_test(titles_that_came_often_do_not_count),
        cmocka_unit_test(the_best_is_found_at_all_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
