/* test_title_index.c - the title index finds what comparing all titles finds: near, far, short, long, empty, equal and
 * removed ones, in any script, at any threshold. */
#include "support.h"

#include "title/title.h"

#include <stdio.h>

enum { LONGEST = 400 };

/* Titles as the test knows them. Owner i owns title i. */
typedef struct model {
    dp_titles_index *index;
    char **titles;
    size_t *lengths;
    bool *there;
    size_t count, room;
} model;

static model model_create(double min, size_t room) {
    model made = {.room = room};
    assert_int_equal(dp_titles_index_create(min, &made.index), DOPPEL_OK);
    made.titles = calloc(room, sizeof *made.titles);
    made.lengths = calloc(room, sizeof *made.lengths);
    made.there = calloc(room, sizeof *made.there);
    assert_true(made.titles && made.lengths && made.there);
    return made;
}

static void model_free(model *what) {
    for (size_t i = 0; i < what->count; i++)
        free(what->titles[i]);
    free(what->titles);
    free(what->lengths);
    free(what->there);
    dp_titles_index_free(what->index);
}

static void model_add(model *to, const char *title, size_t length) {
    assert_true(to->count < to->room);
    char *copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, title, length);
    copy[length] = 0;
    to->titles[to->count] = copy;
    to->lengths[to->count] = length;
    to->there[to->count] = true;
    assert_int_equal(dp_titles_index_add(to->index, title, length, to->count), DOPPEL_OK);
    to->count++;
}

static void model_remove(model *from, size_t i) {
    bool removed;
    assert_int_equal(dp_titles_index_remove(from->index, from->titles[i], from->lengths[i], i, &removed), DOPPEL_OK);
    assert_int_equal(removed, from->there[i]);
    from->there[i] = false;
}

/* What comparing all gives: the similarity of each, -1 for none. */
typedef struct expected {
    double *similarities;
    size_t count;
} expected;

static bool note(size_t number, double similarity, void *user) {
    expected *to = user;
    to->similarities[number] = similarity;
    to->count++;
    return true;
}

static void check_find(const model *in, const doppel_titles *all, double min, const char *title, size_t length) {
    expected want = {calloc(in->count + 1, sizeof(double)), 0};
    assert_non_null(want.similarities);
    for (size_t i = 0; i < in->count; i++)
        want.similarities[i] = -1;
    assert_int_equal(doppel_titles_find(all, (doppel_slice){title, length}, min, note, &want), DOPPEL_OK);
    dp_title_matches found = {0};
    assert_int_equal(dp_titles_index_find(in->index, title, length, &found), DOPPEL_OK);
    size_t owners = 0;
    for (size_t i = 0; i < found.count; i++) {
        assert_true(!i || found.match[i - 1].similarity >= found.match[i].similarity);
        for (size_t j = 0; j < found.match[i].owner_count; j++) {
            uint64_t owner = found.match[i].owners[j];
            assert_true(owner < in->count && in->there[owner]);
            assert_true(want.similarities[owner] == found.match[i].similarity);
            want.similarities[owner] = -1;
            owners++;
        }
    }
    for (size_t i = 0; i < in->count; i++)
        assert_true(want.similarities[i] < 0 || !in->there[i]);
    assert_true(owners <= want.count);
    dp_title_matches_free(&found);
    free(want.similarities);
}

/* Queries: the titles themselves, every `step`-th. */
static void check_all(const model *in, double min, size_t step) {
    doppel_titles *all;
    assert_int_equal(doppel_titles_create(&all), DOPPEL_OK);
    for (size_t i = 0; i < in->count; i++)
        assert_int_equal(doppel_titles_add(all, (doppel_slice){in->titles[i], in->lengths[i]}), DOPPEL_OK);
    for (size_t i = 0; i < in->count; i += step)
        check_find(in, all, min, in->titles[i], in->lengths[i]);
    doppel_titles_free(all);
}

/* ---- random titles ---- */

static const char *const latin[] = {"a", "b", "e", "n", " ", "t", "o", "r", "s", "i"};
static const char *const mixed[] = {"a", "\xC3\xA9", "\xD0\xB6", "\xE6\x9D\xB1", "\xF0\x9F\x98\x80", " ", "z", "\xFF"};

typedef struct letters {
    const char *const *from;
    size_t count;
} letters;

static size_t put_letter(uint64_t *random, letters of, char *to) {
    const char *letter = of.from[random_below(random, of.count)];
    memcpy(to, letter, strlen(letter));
    return strlen(letter);
}

static size_t random_title(uint64_t *random, letters of, size_t count, char *to) {
    size_t length = 0;
    while (count--)
        length += put_letter(random, of, to + length);
    return length;
}

/* A copy with some edits, at places of their own or close together. */
static size_t edit_title(uint64_t *random, letters of, const char *from, size_t length, char *to) {
    size_t edits = random_below(random, length / 7 + 2), made = length;
    memcpy(to, from, length);
    while (edits--) {
        size_t at = random_below(random, made + 1), kind = random_below(random, 3);
        char letter[8];
        size_t size = kind == 0 ? 0 : put_letter(random, of, letter), drop = kind == 2 || at == made ? 0 : 1;
        memmove(to + at + size, to + at + drop, made - at - drop);
        memcpy(to + at, letter, size);
        made = made + size - drop;
    }
    return made;
}

static void fill(model *to, uint64_t *random, letters of, size_t most, size_t families) {
    char title[4 * LONGEST + 64], copy[8 * LONGEST + 512];
    size_t each = to->room / families;
    for (size_t family = 0; family < families; family++) {
        size_t length = random_title(random, of, random_below(random, most + 1), title);
        for (size_t i = 0; i < each; i++)
            model_add(to, copy, edit_title(random, of, title, length, copy));
    }
}

static void near_titles_are_found(void **state) {
    (void)state;
    static const double mins[] = {0.9, 0.9, 0.8, 0.95, 0.5, 1, 0};
    static const size_t most[] = {100, 30, 60, LONGEST, 40, 40, 20};
    uint64_t random = 7;
    for (size_t i = 0; i < 2 * sizeof mins / sizeof *mins; i++) {
        size_t at = i / 2, size = full_suite() ? 20000 : at == 6 ? 400 : 3000;
        model titles = model_create(mins[at], size);
        fill(&titles, &random, i % 2 ? (letters){mixed, 8} : (letters){latin, 10}, most[at], 5 + 20 * (i % 2));
        check_all(&titles, mins[at], full_suite() ? 40 : 25);
        model_free(&titles);
    }
}

/* All of one length and nearly one wording: every segment is shared by many. */
static void titles_of_one_form(void **state) {
    (void)state;
    model titles = model_create(0.9, 4000);
    char title[128];
    for (size_t i = 0; i < 4000; i++)
        model_add(&titles, title,
                  (size_t)sprintf(title, "product number %06zu of the winter catalogue", i * 7919 % 1000000));
    check_all(&titles, 0.9, 100);
    model_free(&titles);
}

/* Titles with the ends of a few sites: the segments are cut anew as they come. */
static void titles_of_sites(void **state) {
    (void)state;
    static const char *const ends[] = {" the free encyclopedia", " daily news of the world and more", " forum"};
    uint64_t random = 17;
    model titles = model_create(0.9, 6000);
    char title[256], copy[256];
    for (size_t i = 0; i < titles.room; i++) {
        size_t length = random_title(&random, (letters){latin, 10}, 20 + random_below(&random, 2), title);
        const char *end = ends[random_below(&random, 3)];
        memcpy(title + length, end, strlen(end));
        length += strlen(end);
        model_add(&titles, title, length);
        if (i % 10 == 0 && ++i < titles.room)
            model_add(&titles, copy, edit_title(&random, (letters){latin, 10}, title, length, copy));
    }
    check_all(&titles, 0.9, 10);
    model_free(&titles);
}

static void removed_titles_are_gone(void **state) {
    (void)state;
    uint64_t random = 11;
    size_t size = 6000;
    model titles = model_create(0.9, size);
    fill(&titles, &random, (letters){latin, 10}, 60, 10);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < size; i++)
            if (random_below(&random, 10) < 7)
                model_remove(&titles, i);
        check_all(&titles, 0.9, 60);
        for (size_t i = 0; i < size; i++) {
            if (titles.there[i] || random_below(&random, 2))
                continue;
            assert_int_equal(dp_titles_index_add(titles.index, titles.titles[i], titles.lengths[i], i), DOPPEL_OK);
            titles.there[i] = true;
        }
        check_all(&titles, 0.9, 60);
    }
    for (size_t i = 0; i < size; i++)
        model_remove(&titles, i);
    dp_titles_stats stats;
    dp_titles_index_get_stats(titles.index, &stats);
    assert_int_equal(stats.titles, 0);
    assert_int_equal(stats.owners, 0);
    check_all(&titles, 0.9, 600);
    model_free(&titles);
}

static void empty_titles(void **state) {
    (void)state;
    model titles = model_create(0.9, 8);
    check_all(&titles, 0.9, 1);
    model_add(&titles, "", 0);
    model_add(&titles, "", 0);
    model_add(&titles, "a", 1);
    check_all(&titles, 0.9, 1);
    model_free(&titles);
}

static void long_titles(void **state) {
    (void)state;
    enum { POINTS = 10000 };
    uint64_t random = 13;
    char *title = malloc(POINTS * 4), *copy = malloc(POINTS * 8);
    assert_true(title && copy);
    model titles = model_create(0.9, 60);
    for (size_t i = 0; i < 60; i++) {
        if (i % 20 == 0)
            random_title(&random, (letters){latin, 10}, POINTS, title);
        model_add(&titles, copy, edit_title(&random, (letters){latin, 10}, title, POINTS, copy));
    }
    check_all(&titles, 0.9, 5);
    free(title);
    free(copy);
    model_free(&titles);
}

static void a_million_equal_titles_are_one(void **state) {
    (void)state;
    static const char title[] = "the very same title for all of them";
    size_t count = full_suite() ? 1000000 : 200000 / SMALLER;
    dp_titles_index *index;
    assert_int_equal(dp_titles_index_create(0.9, &index), DOPPEL_OK);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(dp_titles_index_add(index, title, sizeof title - 1, i), DOPPEL_OK);
    assert_int_equal(dp_titles_index_add(index, title, sizeof title - 1, 5), DOPPEL_OK); /* again: nothing new */
    dp_title_matches found = {0};
    assert_int_equal(dp_titles_index_find(index, title, sizeof title - 2, &found), DOPPEL_OK);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.match[0].owner_count, count);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(found.match[0].owners[i], i);
    dp_titles_stats stats;
    dp_titles_index_get_stats(index, &stats);
    assert_int_equal(stats.titles, 1);
    assert_int_equal(stats.owners, count);
    bool removed;
    for (uint64_t i = count; i-- > 0;)
        assert_int_equal(dp_titles_index_remove(index, title, sizeof title - 1, i, &removed), DOPPEL_OK);
    assert_int_equal(dp_titles_index_remove(index, title, sizeof title - 1, 0, &removed), DOPPEL_OK);
    assert_false(removed);
    assert_int_equal(dp_titles_index_find(index, title, sizeof title - 1, &found), DOPPEL_OK);
    assert_int_equal(found.count, 0);
    dp_title_matches_free(&found);
    dp_titles_index_free(index);
}

static void owners_in_any_order(void **state) {
    (void)state;
    static const uint64_t order[] = {5, 2, UINT64_MAX, 0, 9, 2, 5, 1};
    static const uint64_t sorted[] = {0, 1, 2, 5, 9, UINT64_MAX};
    dp_titles_index *index;
    assert_int_equal(dp_titles_index_create(0.9, &index), DOPPEL_OK);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(dp_titles_index_add(index, "some title", 10, order[i]), DOPPEL_OK);
    dp_title_matches found = {0};
    for (size_t left = 6; left; left--) {
        assert_int_equal(dp_titles_index_find(index, "some title", 10, &found), DOPPEL_OK);
        assert_int_equal(found.match[0].owner_count, left);
        assert_memory_equal(found.match[0].owners, sorted + 6 - left, left * sizeof *sorted);
        assert_int_equal(dp_titles_index_remove(index, "some title", 10, sorted[6 - left], NULL), DOPPEL_OK);
    }
    dp_title_matches_free(&found);
    dp_titles_index_free(index);
}

/* Short descriptions of Debian's packages and lines of the long ones, then lines with names of languages, countries and
 * the like, up to the room there is. */
static void add_descriptions(model *to, FILE *from) {
    char *line = NULL;
    size_t room = 0;
    for (ssize_t got; to->count < to->room && (got = getline(&line, &room, from)) > 0;) {
        size_t skip = !strncmp(line, "Description: ", 13) ? 13 : line[0] == ' ' ? 1 : (size_t)got;
        if ((size_t)got > skip + 10)
            model_add(to, line + skip, (size_t)got - skip - 1);
    }
    free(line);
}

static void real_titles_are_found(void **state) {
    (void)state;
    static const double mins[] = {0.8, 0.9, 0.95};
    for (size_t i = 0; i < 3; i++) {
        model titles = model_create(mins[i], full_suite() ? 100000 : 4000);
        FILE *from = popen("{ apt-cache dumpavail; cat /usr/share/iso-codes/json/*.json; } 2>/dev/null", "r");
        if (from) {
            add_descriptions(&titles, from);
            pclose(from);
        }
        print_message("%zu titles at %g\n", titles.count, mins[i]);
        check_all(&titles, mins[i], full_suite() ? 4 : 10);
        model_free(&titles);
    }
}

static void thresholds_that_make_no_sense(void **state) {
    (void)state;
    static const double mins[] = {-0.1, 1.1, 0.0 / 0.0};
    for (size_t i = 0; i < 3; i++) {
        dp_titles_index *index;
        assert_int_equal(dp_titles_index_create(mins[i], &index), DOPPEL_ERROR_USAGE);
        assert_null(index);
    }
    dp_titles_index_free(NULL);
}

/* ---- titles that were made to meet ---- */

/* Powers of an odd base, less 1, are even the more often the more even the exponent is: the product of (x^a - 1) over
 * these exponents is 0 modulo 2^64 for the base that titles were once hashed with. Added to the letters of a title, at
 * any place, its coefficients (-6 to 6) give another title of the same length and sum. */
enum { PRODUCT = 349, PLACES = 150, MADE = PRODUCT + PLACES };
#define ONCE_BASE 0x9E3779B97F4A7C15u

static void make_product(int product[PRODUCT]) {
    static const int exponents[] = {1, 2, 4, 8, 16, 32, 64, 128, 3, 6, 12, 24, 48};
    memset(product, 0, PRODUCT * sizeof *product);
    product[0] = 1;
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++)
        for (int at = PRODUCT - 1; at >= 0; at--)
            product[at] = (at >= exponents[i] ? product[at - exponents[i]] : 0) - product[at];
}

static void make_title(const int product[PRODUCT], size_t first, size_t second, char title[MADE]) {
    memset(title, 'm', MADE);
    for (size_t i = 0; i < PRODUCT; i++) {
        title[first + i] = (char)(title[first + i] + product[i]);
        title[second + i] = (char)(title[second + i] - product[i]);
    }
}

static uint64_t sum_of(const char title[MADE]) {
    uint64_t sum = 0;
    for (size_t i = 0; i < MADE; i++)
        sum = sum * ONCE_BASE + (uint64_t)title[i] + 1;
    return sum;
}

static void titles_with_one_sum_are_told_apart(void **state) {
    (void)state;
    enum { TITLES = 1000 };
    int product[PRODUCT];
    uint64_t once = 0;
    dp_titles_index *index;
    make_product(product);
    assert_int_equal(dp_titles_index_create(0.9, &index), DOPPEL_OK);
    size_t count = 0;
    for (size_t first = 0; first < PLACES && count < TITLES; first++)
        for (size_t second = first + 1; second < PLACES && count < TITLES; second++, count++) {
            char title[MADE];
            make_title(product, first, second, title);
            once = count ? once : sum_of(title);
            assert_int_equal(sum_of(title), once);
            assert_int_equal(dp_titles_index_add(index, title, MADE, count + 1), DOPPEL_OK);
        }
    dp_titles_stats stats;
    dp_titles_index_get_stats(index, &stats);
    assert_int_equal(stats.titles, TITLES);
    dp_titles_index_free(index);
}

/* ---- looking ahead ---- */

enum { WAITING = 40 };

/* Both give the same titles, similarities and owners. */
static void same_matches(const dp_title_matches *a, const dp_title_matches *b) {
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_true(a->match[i].similarity == b->match[i].similarity);
        assert_int_equal(a->match[i].entry, b->match[i].entry);
        assert_int_equal(a->match[i].owner_count, b->match[i].owner_count);
        assert_ptr_equal(a->match[i].owners, b->match[i].owners);
    }
}

static void check_after(const model *in, size_t i, const dp_titles_ahead *ahead) {
    dp_title_matches plain = {0}, after = {0};
    assert_int_equal(dp_titles_index_find(in->index, in->titles[i], in->lengths[i], &plain), DOPPEL_OK);
    assert_int_equal(dp_titles_index_find_after(in->index, in->titles[i], in->lengths[i], ahead, &after), DOPPEL_OK);
    same_matches(&plain, &after);
    dp_title_matches_free(&plain);
    dp_title_matches_free(&after);
}

/* One step more of those that are looked up. */
static void step_all(const model *in, dp_title_matches *matches, dp_titles_ahead *ahead, bool *more) {
    for (size_t i = 0; i < WAITING; i++)
        more[i] = more[i] && dp_titles_ahead_step(in->index, &matches[i], &ahead[i]);
}

/* Titles come and go, get their owners back and are all built anew between the steps of a look ahead, and after it. */
static void what_was_looked_up_ahead_changes_nothing(void **state) {
    uint64_t random = 77;
    letters of = {latin, sizeof latin / sizeof *latin};
    static char title[4 * LONGEST];
    dp_title_matches matches[WAITING] = {0};
    dp_titles_ahead ahead[WAITING];
    bool more[WAITING];
    (void)state;
    for (int round = 0; round < 6; round++) {
        model in = model_create(0.9, 20000);
        size_t first = round < 2 ? 20 : 4000;
        while (in.count < first)
            model_add(&in, title, random_title(&random, of, 20 + random_below(&random, round % 2 ? 3 : 60), title));
        for (size_t i = 0; i < WAITING; i++) {
            size_t which = i * in.count / WAITING;
            assert_int_equal(
                dp_titles_ahead_begin(in.index, in.titles[which], in.lengths[which], &matches[i], &ahead[i]),
                DOPPEL_OK);
            more[i] = true;
        }
        for (int k = 0; k < 400; k++) {
            size_t which = (size_t)random_below(&random, in.count), length = in.lengths[which];
            memcpy(title, in.titles[which], length);
            title[random_below(&random, length)] = 'q';
            model_add(&in, title, k % 3 ? length : length - 1);
            if (in.there[which] && k % 4 == 0)
                model_remove(&in, which);
            if (k % 40 == 0)
                step_all(&in, matches, ahead, more);
        }
        for (size_t k = 0; k < 100; k++)
            step_all(&in, matches, ahead, more);
        for (size_t i = 0; round == 5 && i < first; i++)
            if (in.there[i])
                model_remove(&in, i);
        for (size_t i = 0; i < WAITING; i++) {
            assert_false(more[i]);
            dp_titles_ahead_end(&matches[i], &ahead[i]);
            size_t which = i * first / WAITING;
            check_after(&in, which, &ahead[i]);
            if (!in.there[which]) {
                assert_int_equal(dp_titles_index_add(in.index, in.titles[which], in.lengths[which], which), DOPPEL_OK);
                in.there[which] = true;
                check_after(&in, which, &ahead[i]);
            }
            dp_titles_ahead_free(&ahead[i]);
            check_after(&in, which, &ahead[i]);
        }
        model_free(&in);
    }
    for (size_t i = 0; i < WAITING; i++)
        dp_title_matches_free(&matches[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_titles_are_found),
        cmocka_unit_test(real_titles_are_found),
        cmocka_unit_test(titles_of_one_form),
        cmocka_unit_test(titles_of_sites),
        cmocka_unit_test(removed_titles_are_gone),
        cmocka_unit_test(what_was_looked_up_ahead_changes_nothing),
        cmocka_unit_test(empty_titles),
        cmocka_unit_test(long_titles),
        cmocka_unit_test(a_million_equal_titles_are_one),
        cmocka_unit_test(owners_in_any_order),
        cmocka_unit_test(thresholds_that_make_no_sense),
        cmocka_unit_test(titles_with_one_sum_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
