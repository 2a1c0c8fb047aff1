/* test_join_two_exact.c - a join of two sets gives what a double loop gives, pair for pair. */
#include "join_runs.h"

/* Half of the second set is near the first one, at all distances. */
static fingerprints make_second(const set_shape *shape, const fingerprints *set, size_t count, uint64_t seed) {
    fingerprints second = make_prints(shape, set->bits, count, seed);
    for (size_t i = 0; i < second.count; i += 2)
        make_near(&second, print_at(&second, i), print_at(set, random_below(&seed, set->count)),
                  random_below(&seed, 1 + random_below(&seed, (size_t)set->bits / 3 + 1)), &seed);
    return second;
}

static void check_between(const fingerprints *a, const fingerprints *b, const pair_list *want, const join_run *run) {
    rest left_a, left_b;
    pair_list found = {0};
    doppel_source source_a = source_of(a, run->source == FROM_FILE ? FROM_ARRAY : FROM_FILE, &left_a);
    doppel_source source_b = source_of(b, run->source, &left_b);
    doppel_join_options options = options_of(run, a->bits, &found);
    doppel_join_counts counts = {0};
    doppel_error error = {0};
    if (doppel_join_sets(&source_a, &source_b, run->distance, &options, &counts, &error))
        fail_msg("%d bits, within %d: %s", a->bits, run->distance, error.message);
    size_t at = 0;
    for (size_t i = 0; i < want->count; i++) {
        if (want->pairs[i].distance > run->distance)
            continue;
        assert_true(at < found.count);
        assert_int_equal(found.pairs[at].b, want->pairs[i].b);
        assert_int_equal(found.pairs[at].a, want->pairs[i].a);
        assert_int_equal(found.pairs[at].distance, want->pairs[i].distance);
        at++;
    }
    assert_int_equal(at, found.count);
    assert_int_equal(counts.pairs, at);
    assert_int_equal(counts.fingerprints, b->count);
    free_pairs(&found);
}

static void check_between_shapes(int bits, size_t count_a, size_t count_b, int step) {
    for (size_t s = 0; s < SHAPES; s++) {
        size_t less = shapes[s].dense ? 8 : 1;
        fingerprints a = make_prints(&shapes[s], bits, count_a / less, 1);
        fingerprints b = make_second(&shapes[s], &a, count_b / less, 2);
        pair_list want = plain_pairs_between(&a, &b, most_distance(bits));
        for (int k = 0; k <= most_distance(bits); k += step)
            check_between(&a, &b, &want,
                          &(join_run){.distance = k, .threads = 1 + k / step % 2, .source = k / step % SOURCES});
        free_pairs(&want);
        free_prints(&a);
        free_prints(&b);
    }
}

static void every_distance_between_two_sets(void **state) {
    (void)state;
    check_between_shapes(64, full_suite() ? 20000 : 700, full_suite() ? 100000 : 1500, 1);
    check_between_shapes(128, full_suite() ? 20000 : 700, full_suite() ? 100000 : 1500, full_suite() ? 1 : 3);
}

static void odd_widths_between_two_sets(void **state) {
    (void)state;
    static const int widths[] = {1, 7, 16, 33, 63};
    for (size_t i = 0; i < 5; i++)
        check_between_shapes(widths[i], widths[i] < 20 ? 100 : 400, widths[i] < 20 ? 150 : 600, widths[i] < 20 ? 1 : 2);
}

/* ---- planted truth ---- */

/* The streamed side is made as it is read: one in a hundred is near a held one. */
typedef struct stream {
    const fingerprints *held;
    uint64_t count, at;
    bool *found; /* for each planted one */
    doppel_pair last;
    uint64_t wrong;
} stream;

/* Fingerprint b of the stream, and the held one it is near; held->count: none. */
static size_t streamed(const stream *s, uint64_t b, uint64_t *value) {
    uint64_t seed = b * 0x9E3779B97F4A7C15u;
    make_random(s->held, value, &seed);
    if (b % 100)
        return s->held->count;
    size_t a = random_below(&seed, s->held->count);
    make_near(s->held, value, print_at(s->held, a), random_below(&seed, 6), &seed);
    return a;
}

static doppel_status read_stream(void *user, uint64_t *to, size_t room, size_t *count) {
    stream *s = user;
    *count = s->count - s->at < room ? (size_t)(s->count - s->at) : room;
    for (size_t i = 0; i < *count; i++)
        streamed(s, s->at++, to + i * s->held->words);
    return DOPPEL_OK;
}

static doppel_status look_at_pairs(const doppel_pair *pairs, size_t count, void *user) {
    stream *s = user;
    for (size_t i = 0; i < count; i++) {
        const doppel_pair *pair = &pairs[i];
        uint64_t value[2];
        bool first = s->last.distance < 0;
        bool in_order = first || s->last.b < pair->b || (s->last.b == pair->b && s->last.a < pair->a);
        bool is_planted = streamed(s, pair->b, value) == pair->a;
        int distance = plain_distance(value, print_at(s->held, pair->a), s->held->words);
        s->wrong += !in_order || pair->distance != distance || distance > 3;
        if (is_planted)
            s->found[pair->b / 100] = true;
        s->last = *pair;
    }
    return DOPPEL_OK;
}

static void check_planted(int bits, size_t held_count, uint64_t count, int threads) {
    fingerprints held = make_prints(&shapes[0], bits, held_count, 4);
    stream s = {.held = &held, .count = count, .found = calloc(count / 100 + 1, 1), .last = {.distance = -1}};
    assert_non_null(s.found);
    doppel_source a = {.size = sizeof a, .array = held.values, .count = held.count};
    doppel_source b = {.size = sizeof b, .read = read_stream, .user = &s};
    doppel_join_options options = {
        .size = sizeof options, .bits = bits, .threads = threads, .pairs = look_at_pairs, .user = &s};
    assert_int_equal(doppel_join_sets(&a, &b, 3, &options, NULL, NULL), DOPPEL_OK);
    assert_int_equal(s.wrong, 0);
    for (uint64_t i = 0; i < count; i += 100) {
        uint64_t value[2];
        size_t near = streamed(&s, i, value);
        assert_int_equal(s.found[i / 100], plain_distance(value, print_at(&held, near), held.words) <= 3);
    }
    free(s.found);
    free_prints(&held);
}

static void every_planted_pair_is_found(void **state) {
    (void)state;
    size_t held = full_suite() ? 1000000 : 30000;
    uint64_t count = full_suite() ? 20000000 : 300000;
    check_planted(64, held, count, 1);
    check_planted(64, held, count, 2);
    check_planted(128, held, count, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_distance_between_two_sets),
        cmocka_unit_test(odd_widths_between_two_sets),
        cmocka_unit_test(every_planted_pair_is_found),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
