/* test_join_exact.c - a join gives what a double loop gives, pair for pair, whatever the set looks like.
 *
 * The loop is run once for the widest distance; what a join has to give for a smaller one, or when identical
 * fingerprints are collapsed, is picked from its pairs. */
#include "join_runs.h"

/* ---- running a join ---- */

static doppel_status join(const fingerprints *set, const join_run *run, pair_list *found, doppel_join_counts *counts,
                          doppel_error *error) {
    rest left;
    doppel_source source = source_of(set, run->source, &left);
    doppel_join_options options = options_of(run, set->bits, found);
    *found = (pair_list){0};
    return doppel_join(&source, run->distance, &options, counts, error);
}

/* ---- what it has to give ---- */

typedef struct truth {
    const char *name;
    const fingerprints *set;
    pair_list pairs;
    size_t *first; /* of each fingerprint: the first one that equals it */
    uint64_t copies, groups;
} truth;

static truth find_truth(const char *name, const fingerprints *set, int most) {
    truth t = {.name = name, .set = set, .pairs = plain_pairs(set, most)};
    t.first = malloc((set->count + 1) * sizeof *t.first);
    assert_non_null(t.first);
    for (size_t i = 0; i < set->count; i++)
        t.first[i] = i;
    for (size_t i = 0; i < t.pairs.count; i++) {
        const doppel_pair *pair = &t.pairs.pairs[i];
        if (pair->distance || t.first[pair->a] != pair->a)
            continue;
        t.first[pair->b] = (size_t)pair->a;
        t.copies++;
    }
    bool *grouped = calloc(set->count + 1, 1);
    assert_non_null(grouped);
    for (size_t i = 0; i < set->count; i++)
        if (t.first[i] != i && !grouped[t.first[i]])
            t.groups += grouped[t.first[i]] = true;
    free(grouped);
    return t;
}

static void free_truth(truth *t) {
    free_pairs(&t->pairs);
    free(t->first);
}

/* Whether a pair is given when a fingerprint stands for all that equal it. */
static bool stands_for_all(const truth *t, const doppel_pair *pair) {
    return t->first[pair->b] == pair->b ? t->first[pair->a] == pair->a : t->first[pair->b] == pair->a;
}

static void wrong_pair(const truth *t, const join_run *run, const char *what, const doppel_pair *pair) {
    fail_msg("%s, %d bits, %zu of them, within %d, %d threads, source %d%s, memory %llu: %s pair %llu %llu at %d",
             t->name, t->set->bits, t->set->count, run->distance, run->threads, run->source, run->all ? ", all" : "",
             (unsigned long long)run->memory, what, (unsigned long long)pair->a, (unsigned long long)pair->b,
             pair->distance);
}

static void check_pairs(const truth *t, const join_run *run, const pair_list *found) {
    size_t at = 0;
    for (size_t i = 0; i < t->pairs.count; i++) {
        const doppel_pair *want = &t->pairs.pairs[i], *got = found->pairs + at;
        if (want->distance > run->distance || !(run->all || stands_for_all(t, want)))
            continue;
        if (at == found->count || got->a > want->a || (got->a == want->a && got->b > want->b))
            wrong_pair(t, run, "misses", want);
        if (got->a != want->a || got->b != want->b || got->distance != want->distance)
            wrong_pair(t, run, "should not have", got);
        at++;
    }
    if (at < found->count)
        wrong_pair(t, run, "has beyond the end", &found->pairs[at]);
}

static void check_counts(const truth *t, const join_run *run, const doppel_join_counts *counts, size_t pairs) {
    uint64_t all_pairs = 0;
    for (size_t i = 0; i < t->pairs.count; i++)
        all_pairs += t->pairs.pairs[i].distance <= run->distance;
    assert_int_equal(counts->fingerprints, t->set->count);
    assert_int_equal(counts->copies, t->copies);
    assert_int_equal(counts->groups, t->groups);
    assert_int_equal(counts->pairs, pairs);
    assert_int_equal(counts->all_pairs, all_pairs);
}

static void check_join(const truth *t, const join_run *run) {
    pair_list found;
    doppel_join_counts counts = {0};
    doppel_error error = {0};
    if (join(t->set, run, &found, &counts, &error))
        fail_msg("%s, %d bits, within %d: %s", t->name, t->set->bits, run->distance, error.message);
    check_pairs(t, run, &found);
    check_counts(t, run, &counts, found.count);
    free_pairs(&found);
}

/* ---- one set ---- */

static void check_every_distance(const set_shape *shape, int bits, size_t count) {
    fingerprints set = make_prints(shape, bits, count, (uint64_t)bits);
    truth t = find_truth(shape->name, &set, most_distance(bits));
    for (int k = 0; k <= most_distance(bits); k++)
        for (int all = 0; all < 2; all++)
            check_join(&t, &(join_run){.distance = k,
                                       .all = all,
                                       .threads = 1 + (k + all) % 2,
                                       .source = k % SOURCES,
                                       .secret = (uint64_t)k + 1});
    free_truth(&t);
    free_prints(&set);
}

static void check_every_shape(int bits, size_t count, size_t dense_count) {
    for (size_t i = 0; i < SHAPES; i++)
        check_every_distance(&shapes[i], bits, shapes[i].dense ? dense_count : count);
}

static void every_distance_at_64_bits(void **state) {
    (void)state;
    check_every_shape(64, full_suite() ? 200000 : 1500 / SMALLER, full_suite() ? 3000 : 250 / SMALLER);
}

static void every_distance_at_128_bits(void **state) {
    (void)state;
    check_every_shape(128, full_suite() ? 200000 : 1500 / SMALLER, full_suite() ? 3000 : 250 / SMALLER);
}

/* The narrower, the more equal ones. */
static void odd_widths(void **state) {
    (void)state;
    static const struct {
        int bits;
        size_t count;
    } widths[] = {{1, 100}, {7, 200}, {16, 300}, {33, 700}, {63, 700}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        check_every_shape(widths[i].bits, widths[i].count, widths[i].count < 250 ? widths[i].count : 250);
}

/* Buckets and parts that hold more than a few. */
static void larger_sets(void **state) {
    (void)state;
    for (int bits = 64; bits <= 128; bits += 64)
        for (size_t s = 0; s < 3; s++) {
            fingerprints set = make_prints(&shapes[s], bits, 8000 / SMALLER, s);
            truth t = find_truth(shapes[s].name, &set, 6);
            for (int k = 0; k <= 6; k++)
                check_join(&t, &(join_run){.distance = k, .all = k % 2, .threads = 1 + k % 2});
            free_truth(&t);
            free_prints(&set);
        }
}

static void no_thread_count_source_or_secret_changes_a_pair(void **state) {
    (void)state;
    for (size_t s = 1; s < 3; s++) {
        fingerprints set = make_prints(&shapes[s], 64, 5000 / SMALLER, 7);
        truth t = find_truth(shapes[s].name, &set, 6);
        for (int threads = 1; threads <= 4; threads++)
            for (int source = 0; source < SOURCES; source++)
                for (int k = 0; k <= 6; k += 3)
                    check_join(&t, &(join_run){.distance = k,
                                               .threads = threads,
                                               .source = source,
                                               .secret = (uint64_t)(threads * 10 + source)});
        free_truth(&t);
        free_prints(&set);
    }
}

/* How many MiB a message asks for. */
static uint64_t asked_for(const char *message) {
    const char *number = strpbrk(message, "0123456789");
    assert_true(number && strstr(number, " MiB"));
    return strtoull(number, NULL, 10);
}

/* Refused with a message; then with what the message asks for, and more: files are written, or not, and nothing else
 * changes. */
static void little_memory_changes_no_pair(void **state) {
    (void)state;
    enum { EQUAL = 1500 };
    fingerprints set = make_prints(&shapes[2], 64, 10000, 8);
    for (size_t i = 1; i < EQUAL; i++)
        set.values[i] = set.values[0];
    truth t = find_truth("skewed", &set, 3);
    join_run run = {.distance = 3, .threads = 2, .all = true, .memory = 1};
    doppel_error error = {0};
    pair_list found;
    assert_int_equal(join(&set, &run, &found, NULL, &error), DOPPEL_ERROR_USAGE);
    assert_int_equal(found.count, 0);
    run.memory = asked_for(error.message) << 20;
    for (bool spilled = true; spilled; run.memory *= 2) {
        doppel_join_counts counts = {0};
        assert_int_equal(join(&set, &run, &found, &counts, NULL), DOPPEL_OK);
        check_pairs(&t, &run, &found);
        check_counts(&t, &run, &counts, found.count);
        spilled = counts.spilled_bytes > 0;
        assert_true(spilled || run.memory > asked_for(error.message) << 20);
        free_pairs(&found);
    }
    free_truth(&t);
    free_prints(&set);
}

static void counting_gives_the_same_counts(void **state) {
    (void)state;
    fingerprints set = make_prints(&shapes[2], 64, 3000, 9);
    truth t = find_truth("skewed", &set, 8);
    for (int k = 0; k <= 8; k++) {
        doppel_join_counts given = {0}, counted = {0};
        pair_list found;
        join_run run = {.distance = k, .threads = 2};
        assert_int_equal(join(&set, &run, &found, &given, NULL), DOPPEL_OK);
        doppel_source source = {.size = sizeof source, .array = set.values, .count = set.count};
        doppel_join_options options = options_of(&run, 64, NULL);
        options.count_only = true;
        options.pairs = NULL;
        assert_int_equal(doppel_join(&source, k, &options, &counted, NULL), DOPPEL_OK);
        check_counts(&t, &run, &counted, given.pairs);
        free_pairs(&found);
    }
    free_truth(&t);
    free_prints(&set);
}

static void none_and_one_have_no_pairs(void **state) {
    (void)state;
    for (int bits = 64; bits <= 128; bits += 64)
        for (size_t count = 0; count < 2; count++) {
            fingerprints set = make_prints(&shapes[0], bits, count, 1);
            truth t = find_truth("few", &set, bits);
            for (int k = 0; k <= bits; k++)
                check_join(&t, &(join_run){.distance = k, .threads = 1, .source = k % SOURCES});
            free_truth(&t);
            free_prints(&set);
        }
}

static void a_distance_of_all_bits_takes_all(void **state) {
    (void)state;
    static const int widths[] = {1, 7, 64, 128};
    for (size_t i = 0; i < 4; i++) {
        fingerprints set = make_prints(&shapes[1], widths[i], 300, 3);
        truth t = find_truth("planted", &set, widths[i]);
        for (int k = widths[i] > 20 ? 20 : 0; k <= widths[i]; k++)
            check_join(&t, &(join_run){.distance = k, .threads = 2, .all = true});
        free_truth(&t);
        free_prints(&set);
    }
}

/* The published example of eight numbers of 16 bits. */
static void eight_published_numbers(void **state) {
    (void)state;
    uint64_t numbers[] = {37586, 50086, 2648, 934, 40957, 2650, 64475, 40955};
    fingerprints set = {.bits = 16, .count = 8, .words = 1, .values = numbers};
    pair_list found;
    join_run run = {.distance = 2, .threads = 1};
    assert_int_equal(join(&set, &run, &found, NULL, NULL), DOPPEL_OK);
    const doppel_pair want[] = {{1, 3, 2}, {2, 5, 1}, {4, 7, 2}};
    assert_int_equal(found.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(found.pairs[i].a == want[i].a && found.pairs[i].b == want[i].b &&
                    found.pairs[i].distance == want[i].distance);
    free_pairs(&found);
}

/* ---- planted truth ---- */

/* What is checked as the pairs come. */
typedef struct planted {
    const fingerprints *set;
    const uint32_t *original; /* of each one that is a near copy; else its own position */
    bool *found;
    doppel_pair last;
    uint64_t wrong;
} planted;

static doppel_status look_at_pairs(const doppel_pair *pairs, size_t count, void *user) {
    planted *p = user;
    for (size_t i = 0; i < count; i++) {
        const doppel_pair *pair = &pairs[i];
        bool in_order = p->last.a < pair->a || (p->last.a == pair->a && p->last.b < pair->b);
        int distance = plain_distance(print_at(p->set, pair->a), print_at(p->set, pair->b), p->set->words);
        p->wrong += pair->a >= pair->b || !in_order || pair->distance != distance || distance > 3;
        p->found[pair->b] |= p->original[pair->b] == pair->a;
        p->last = *pair;
    }
    return DOPPEL_OK;
}

/* One in a hundred is a copy of an earlier one with up to five bits changed. */
static void check_planted(int bits, size_t count, int threads) {
    uint64_t seed = 5;
    fingerprints set = make_prints(&shapes[0], bits, count, 4);
    uint32_t *original = malloc(count * sizeof *original);
    planted p = {.set = &set, .original = original, .found = calloc(count, 1)};
    assert_true(original && p.found);
    for (size_t i = 0; i < count; i++) {
        original[i] = (uint32_t)i;
        if (i % 100 != 99)
            continue;
        original[i] = (uint32_t)random_below(&seed, i);
        make_near(&set, print_at(&set, i), print_at(&set, original[i]), 1 + random_below(&seed, 5), &seed);
    }
    doppel_source source = {.size = sizeof source, .array = set.values, .count = count};
    doppel_join_options options = {
        .size = sizeof options, .bits = bits, .threads = threads, .all = true, .pairs = look_at_pairs, .user = &p};
    assert_int_equal(doppel_join(&source, 3, &options, NULL, NULL), DOPPEL_OK);
    assert_int_equal(p.wrong, 0);
    for (size_t i = 0; i < count; i++)
        if (original[i] != i && plain_distance(print_at(&set, i), print_at(&set, original[i]), set.words) <= 3)
            assert_true(p.found[i]);
    free(original);
    free(p.found);
    free_prints(&set);
}

static void every_planted_pair_is_found(void **state) {
    (void)state;
    size_t count = full_suite() ? 10000000 : 200000 / SMALLER;
    check_planted(64, count, 1);
    check_planted(64, count, 2);
    check_planted(128, count, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_distance_at_64_bits),
        cmocka_unit_test(every_distance_at_128_bits),
        cmocka_unit_test(odd_widths),
        cmocka_unit_test(larger_sets),
        cmocka_unit_test(no_thread_count_source_or_secret_changes_a_pair),
        cmocka_unit_test(little_memory_changes_no_pair),
        cmocka_unit_test(counting_gives_the_same_counts),
        cmocka_unit_test(none_and_one_have_no_pairs),
        cmocka_unit_test(a_distance_of_all_bits_takes_all),
        cmocka_unit_test(eight_published_numbers),
        cmocka_unit_test(every_planted_pair_is_found),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
