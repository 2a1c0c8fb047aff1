/* test_directory_parity.c - what is dropped by its parity is never near; what is far is dropped; what is removed leaves
 * nothing. */
#include "support.h"

#include "kernel/kernel.h"
#include "known/directory.h"
#include "verify/verify.h"

enum { MOST = 3000 };

static int compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* A set of `count` numbers, of which about `shared` are of another. */
static size_t make_set(uint64_t *random, const uint64_t *other, size_t shared, size_t count, uint64_t *set) {
    for (size_t i = 0; i < count; i++)
        set[i] = i < shared ? other[i] : random_next(random);
    qsort(set, count, sizeof *set, compare_numbers);
    return dp_unique64(set, count);
}

static bool left_over(dp_directory *p, dp_sift sift, uint64_t number) {
    dp_sift_scratch scratch = {0};
    dp_numbers numbers = {malloc(sizeof(uint64_t)), 1, 1};
    numbers.number[0] = number;
    sift.scratch = &scratch;
    dp_directory_sift(p, &sift, &numbers);
    bool left = numbers.count;
    dp_numbers_free(&numbers);
    free(scratch.bits);
    return left;
}

static bool stays(dp_directory *p, const uint64_t *set, size_t count, double least, uint64_t number) {
    return left_over(p, (dp_sift){.features = {.set = set, .count = count}, .least = least}, number);
}

static dp_directory *create(void) {
    dp_directory *made;
    const dp_directory_options options = {.bits = 64, .by_similarity = true, .threads = 1};
    assert_int_equal(dp_directory_create(&options, &made, NULL), DOPPEL_OK);
    return made;
}

static uint64_t parity_bytes(dp_directory *p) {
    dp_directory_stats stats;
    dp_directory_get_stats(p, &stats);
    return stats.parity_bytes;
}

static void keep(dp_directory *p, uint64_t number, const uint64_t *set, size_t count) {
    dp_directory_keep_parity(p, number, &(dp_features){.set = set, .count = count});
}

static dp_trace trace_of(uint64_t number) {
    return (dp_trace){.number = number, .kind = DP_TRACE_DOCUMENT, .id_hash = number};
}

static void set_alive(dp_directory *p, uint64_t number) {
    const dp_trace trace = trace_of(number);
    assert_int_equal(dp_directory_add(p, &trace), DOPPEL_OK);
}

static void every_differing_kernel_is_the_portable_one(void **state) {
    (void)state;
    uint64_t seed = 3, a[70], b[70];
    guarded room_a = guarded_create(sizeof a), room_b = guarded_create(sizeof b);
    for (int round = 0; round < 2000; round++) {
        size_t words = random_below(&seed, 71), want = 0;
        for (size_t i = 0; i < words; i++) {
            a[i] = random_next(&seed);
            b[i] = round % 3 ? random_next(&seed) : a[i] ^ (uint64_t)1 << i % 64;
            for (int bit = 0; bit < 64; bit++)
                want += (a[i] ^ b[i]) >> bit & 1;
        }
        const uint64_t *at_a = guarded_copy(room_a, a, words * 8), *at_b = guarded_copy(room_b, b, words * 8);
        EACH_VARIANT(differing, variant)
        assert_int_equal(variant->run(at_a, at_b, words), want);
    }
    guarded_free(room_a);
    guarded_free(room_b);
}

/* All sizes and thresholds, and similarities on both sides of them. */
static void nothing_that_is_near_is_dropped(void **state) {
    (void)state;
    static uint64_t a[MOST], b[MOST];
    uint64_t random = 7, near = 0, far = 0;
    dp_directory *p = create();
    int rounds = full_suite() ? 60000 : 6000;
    for (int round = 1; round <= rounds; round++) {
        size_t most = round % 10 ? 1 + random_below(&random, 400) : MOST;
        size_t a_count = make_set(&random, NULL, 0, 1 + random_below(&random, most), a);
        size_t b_count = 1 + random_below(&random, most), shared = a_count * (70 + random_below(&random, 31)) / 100;
        b_count = random_below(&random, 4) ? a_count : b_count;
        b_count = make_set(&random, a, shared < b_count ? shared : b_count, b_count, b);
        const double thresholds[] = {0.8, 0.9, 0.5, 0.05, 1};
        double least = thresholds[random_below(&random, 5)];
        set_alive(p, (uint64_t)round);
        keep(p, (uint64_t)round, b, b_count);
        size_t both = doppel_set_shared(a, a_count, b, b_count);
        double similarity = (double)both / (double)(a_count + b_count - both);
        bool left = stays(p, a, a_count, least, (uint64_t)round);
        near += similarity >= least;
        far += !left;
        assert_true(left || similarity < least);
    }
    assert_true(near > (uint64_t)rounds / 5 && far > (uint64_t)rounds / 5);
    dp_directory_free(p);
}

enum { SAMPLE = 100 };

typedef struct sample {
    dp_buffer bytes;
    uint64_t values[2][SAMPLE];
} sample;

/* The sample of a set, and what is sifted of it. */
static dp_features take_sample(sample *to, const uint64_t *set, size_t count) {
    to->bytes.size = 0;
    assert_true(dp_bottom_make(set, count, SAMPLE, &to->bytes));
    doppel_slice bytes = {to->bytes.data, to->bytes.size};
    return (dp_features){.set = to->values[0],
                         .count = dp_bottom_values(bytes, 0, to->values[0]),
                         .coarser = to->values[1],
                         .coarser_count = dp_bottom_values(bytes, 1, to->values[1]),
                         .scale = dp_bottom_scale(bytes)};
}

/* Samples of one scale, of the next finer and coarser one, and of others; similarities on both sides of 0.8. */
static void no_sample_that_is_near_is_dropped(void **state) {
    (void)state;
    static uint64_t a[MOST], b[MOST];
    static sample of_a, of_b;
    uint64_t random = 8, near = 0, far = 0, far_aside = 0;
    dp_directory *p = create();
    for (uint64_t round = 1; round <= 4000; round++) {
        size_t a_count = make_set(&random, NULL, 0, 1 + random_below(&random, 1200), a);
        size_t b_count = a_count * (50 + random_below(&random, 101)) / 100 + 1;
        size_t shared = (a_count < b_count ? a_count : b_count) * (50 + random_below(&random, 51)) / 100;
        b_count = make_set(&random, a, shared, b_count, b);
        dp_features mine = take_sample(&of_a, a, a_count), theirs = take_sample(&of_b, b, b_count);
        double similarity = dp_bottom_similarity((doppel_slice){of_a.bytes.data, of_a.bytes.size},
                                                 (doppel_slice){of_b.bytes.data, of_b.bytes.size}, SAMPLE);
        set_alive(p, round);
        dp_directory_keep_parity(p, round, &theirs);
        bool left = left_over(p, (dp_sift){.features = mine, .least = 0.8}, round);
        near += similarity >= 0.8;
        far += !left && mine.scale == theirs.scale;
        far_aside += !left && mine.scale != theirs.scale;
        assert_true(left || similarity < 0.8);
    }
    if (near < 150 || far < 500 || far_aside < 200)
        fail_msg("%llu %llu %llu", (unsigned long long)near, (unsigned long long)far, (unsigned long long)far_aside);
    dp_buffer_free(&of_a.bytes);
    dp_buffer_free(&of_b.bytes);
    dp_directory_free(p);
}

/* 0.5 and 0.7 where 0.8 is asked for. */
static void what_is_far_is_dropped(void **state) {
    (void)state;
    static uint64_t a[MOST], b[MOST];
    uint64_t random = 9;
    const size_t sizes[] = {300, MOST};
    const struct {
        double common; /* of each */
        int least, rounds;
    } cases[] = {{2.0 / 3, 999, 1000}, {0.8235, 950, 1000}};
    dp_directory *p = create();
    uint64_t number = 1;
    for (size_t i = 0; i < 2; i++)
        for (size_t c = 0; c < 2; c++) {
            int dropped = 0;
            for (int round = 0; round < cases[c].rounds; round++, number++) {
                size_t count = make_set(&random, NULL, 0, sizes[i], a);
                make_set(&random, a, (size_t)((double)count * cases[c].common), count, b);
                set_alive(p, number);
                keep(p, number, b, count);
                dropped += !stays(p, a, count, 0.8, number);
            }
            assert_true(dropped >= cases[c].least);
        }
    /* 2 to 4 bits a hash, 16 bytes, and in the pages 77 and a little. */
    assert_true(parity_bytes(p) < number * (16 + 80 + (300 + MOST) / 2 * 4 / 8));
    dp_directory_free(p);
}

static void what_is_gone_leaves_nothing(void **state) {
    (void)state;
    uint64_t random = 4, a[300], b[300];
    dp_directory *p = create();
    size_t a_count = make_set(&random, NULL, 0, 300, a), b_count = make_set(&random, NULL, 0, 300, b);
    uint64_t before = parity_bytes(p), highest = ((uint64_t)1 << 20) + 3;
    /* One that is not alive is not kept. */
    keep(p, 5, b, b_count);
    assert_true(stays(p, a, a_count, 0.8, 5));
    const uint64_t numbers[] = {5, 6, 31, 32, 70000, highest};
    for (size_t i = 0; i < 6; i++) {
        set_alive(p, numbers[i]);
        keep(p, numbers[i], b, b_count);
        keep(p, numbers[i], b, b_count);
        assert_false(stays(p, a, a_count, 0.8, numbers[i]));
    }
    assert_true(stays(p, a, a_count, 0.8, highest + 1));
    for (size_t i = 0; i < 6; i++) {
        const dp_trace trace = trace_of(numbers[i]);
        for (int times = 0; times < 2; times++)
            assert_int_equal(dp_directory_remove(p, &trace), DOPPEL_OK);
        assert_true(stays(p, a, a_count, 0.8, numbers[i]));
        for (size_t j = i + 1; j < 6; j++)
            assert_false(stays(p, a, a_count, 0.8, numbers[j]));
    }
    /* The directory stays: 8 bytes for 32 numbers, and as many in reserve. */
    assert_true(parity_bytes(p) <= before + 2 * 8 * (highest / 32 + 1));
    dp_directory_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_differing_kernel_is_the_portable_one),
        cmocka_unit_test(nothing_that_is_near_is_dropped),
        cmocka_unit_test(no_sample_that_is_near_is_dropped),
        cmocka_unit_test(what_is_far_is_dropped),
        cmocka_unit_test(what_is_gone_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
