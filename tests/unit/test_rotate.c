/* test_rotate.c - rotate, sort, compare neighbours: the published example, plain code that does the same, recall. */
#include "support.h"

#include "doppel.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* ---- what goes out ---- */

typedef struct list {
    doppel_pair *pairs;
    size_t count, capacity;
    bool failing;
} list;

static doppel_status take(const doppel_pair *pairs, size_t count, void *user) {
    list *l = user;
    if (l->failing)
        return DOPPEL_ERROR_STORE;
    if (l->count + count > l->capacity) {
        l->capacity = 2 * (l->count + count);
        l->pairs = realloc(l->pairs, l->capacity * sizeof *pairs);
    }
    memcpy(l->pairs + l->count, pairs, count * sizeof *pairs);
    l->count += count;
    return DOPPEL_OK;
}

static void check_pair(const list *l, size_t at, uint64_t a, uint64_t b, int distance) {
    assert_true(at < l->count);
    assert_int_equal(l->pairs[at].a, a);
    assert_int_equal(l->pairs[at].b, b);
    assert_int_equal(l->pairs[at].distance, distance);
}

static doppel_source source_of(const uint64_t *numbers, size_t count) {
    return (doppel_source){.size = sizeof(doppel_source), .array = numbers, .count = count};
}

/* ---- the published example ---- */

static const uint64_t published[8] = {37586, 50086, 2648, 934, 40957, 2650, 64475, 40955};

static list rotate_published(const int *steps, int count, int window, double *recall) {
    list got = {0};
    doppel_source source = source_of(published, 8);
    doppel_rotation rotation = {.size = sizeof rotation, .steps = steps, .count = count, .window = window};
    doppel_join_options options = {.size = sizeof options, .bits = 16, .pairs = take, .user = &got};
    assert_int_equal(doppel_join_rotate(&source, 2, &rotation, &options, recall, NULL, NULL), DOPPEL_OK);
    return got;
}

static void sorting_alone_finds_two_of_three(void **state) {
    (void)state;
    double recall;
    list got = rotate_published((const int[]){0}, 1, 1, &recall);
    assert_int_equal(got.count, 2);
    check_pair(&got, 0, 2, 5, 1); /* 2648, 2650 */
    check_pair(&got, 1, 4, 7, 2); /* 40957, 40955 */
    assert_true(fabs(recall - 2.0 / 3) < 1e-9);
    free(got.pairs);
}

static void rotated_by_two_934_meets_50086(void **state) {
    (void)state;
    list got = rotate_published((const int[]){2}, 1, 1, NULL);
    bool met = false;
    for (size_t i = 0; i < got.count; i++)
        met = met || (got.pairs[i].a == 1 && got.pairs[i].b == 3 && got.pairs[i].distance == 2);
    assert_true(met);
    free(got.pairs);
}

static void three_rotations_find_all(void **state) {
    (void)state;
    double recall;
    list got = rotate_published(NULL, 3, 1, &recall);
    assert_int_equal(got.count, 3);
    check_pair(&got, 0, 1, 3, 2);
    check_pair(&got, 1, 2, 5, 1);
    check_pair(&got, 2, 4, 7, 2);
    assert_true(recall == 1);
    free(got.pairs);
}

static void the_exact_join_finds_all(void **state) {
    (void)state;
    list got = {0};
    doppel_source source = source_of(published, 8);
    doppel_join_options options = {.size = sizeof options, .bits = 16, .pairs = take, .user = &got};
    assert_int_equal(doppel_join(&source, 2, &options, NULL, NULL), DOPPEL_OK);
    assert_int_equal(got.count, 3);
    check_pair(&got, 0, 1, 3, 2);
    check_pair(&got, 1, 2, 5, 1);
    check_pair(&got, 2, 4, 7, 2);
    free(got.pairs);
}

static void the_last_is_compared_with_the_first(void **state) {
    (void)state;
    static const uint64_t numbers[4] = {0x8000, 0x0000, 0x0F0F, 0x70F0};
    list got = {0};
    doppel_source source = source_of(numbers, 4);
    doppel_rotation rotation = {.size = sizeof rotation, .steps = (const int[]){0}, .count = 1};
    doppel_join_options options = {.size = sizeof options, .bits = 16, .pairs = take, .user = &got};
    assert_int_equal(doppel_join_rotate(&source, 1, &rotation, &options, NULL, NULL, NULL), DOPPEL_OK);
    assert_int_equal(got.count, 1);
    check_pair(&got, 0, 0, 1, 1);
    free(got.pairs);
}

/* ---- the same as plain code ---- */

typedef unsigned __int128 wide;

typedef struct plain_item {
    wide value;
    uint64_t position;
} plain_item;

static int by_value(const void *left, const void *right) {
    const plain_item *l = left, *r = right;
    if (l->value != r->value)
        return l->value < r->value ? -1 : 1;
    return l->position < r->position ? -1 : 1;
}

static wide load(const uint64_t *numbers, size_t at, int bits) {
    return bits > 64 ? (wide)numbers[2 * at + 1] << 64 | numbers[2 * at] : numbers[at];
}

static wide turn(wide value, int bits) {
    wide top = value >> (bits - 1) & 1, mask = bits == 128 ? ~(wide)0 : ((wide)1 << bits) - 1;
    return (value << 1 | top) & mask;
}

static int count_bits(wide value) {
    return __builtin_popcountll((uint64_t)value) + __builtin_popcountll((uint64_t)(value >> 64));
}

/* found[a * count + b] is 1 when they meet within k in one of `rotations`, rotated by one more bit each time. */
static char *plain_rotate(const uint64_t *numbers, size_t count, int bits, int k, const doppel_rotation *rotation) {
    plain_item *items = malloc(count * sizeof *items);
    char *found = calloc(count * count, 1);
    for (int r = 0; r < rotation->count; r++) {
        for (size_t i = 0; i < count; i++) {
            items[i] = (plain_item){load(numbers, i, bits), i};
            for (int step = 0; step < r; step++)
                items[i].value = turn(items[i].value, bits);
        }
        qsort(items, count, sizeof *items, by_value);
        for (size_t i = 0; i < count; i++)
            for (size_t w = 1; w <= (size_t)rotation->window && w < count; w++) {
                const plain_item *one = &items[i], *other = &items[(i + w) % count];
                size_t a = one->position < other->position ? one->position : other->position;
                size_t b = one->position + other->position - a;
                if (count_bits(one->value ^ other->value) <= k)
                    found[a * count + b] = 1;
            }
    }
    free(items);
    return found;
}

static uint64_t *random_numbers(size_t count, int bits) {
    uint64_t seed = (uint64_t)bits, *numbers = malloc(count * 16);
    for (size_t i = 0; i < 2 * count; i++)
        numbers[i] = bits >= 64 ? random_next(&seed) : random_next(&seed) & (((uint64_t)1 << bits) - 1);
    /* Every third is near the one before it. */
    size_t words = bits > 64 ? 2 : 1;
    for (size_t i = 1; i < count; i += 3) {
        memcpy(numbers + i * words, numbers + (i - 1) * words, words * 8);
        for (size_t change = i % 4; change; change--)
            numbers[i * words] ^= (uint64_t)1 << random_below(&seed, bits < 64 ? (size_t)bits : 64);
    }
    return numbers;
}

static void check_rotation(size_t count, int bits, int threads, uint64_t memory) {
    uint64_t *numbers = random_numbers(count, bits);
    list got = {0};
    doppel_source source = source_of(numbers, count);
    doppel_rotation rotation = {.size = sizeof rotation, .count = bits < 9 ? bits : 9, .window = 3};
    doppel_join_options options = {.size = sizeof options, .bits = bits, .pairs = take, .user = &got};
    options.threads = threads;
    options.memory = memory;
    assert_int_equal(doppel_join_rotate(&source, 3, &rotation, &options, NULL, NULL, NULL), DOPPEL_OK);
    char *found = plain_rotate(numbers, count, bits, 3, &rotation);
    size_t at = 0;
    for (size_t a = 0; a < count; a++)
        for (size_t b = 0; b < count; b++)
            if (found[a * count + b]) {
                wide differ = load(numbers, a, bits) ^ load(numbers, b, bits);
                check_pair(&got, at++, a, b, count_bits(differ));
            }
    assert_int_equal(at, got.count);
    free(found);
    free(numbers);
    free(got.pairs);
}

static void every_width(void **state) {
    (void)state;
    for (int bits = 3; bits <= 64; bits++)
        check_rotation(bits < 6 ? 7 : 120, bits, 1, 0);
    check_rotation(300, 128, 1, 0);
}

static void threads_and_memory_do_not_show(void **state) {
    (void)state;
    for (int threads = 1; threads <= 4; threads++)
        check_rotation(500, 64, threads, threads & 1 ? 0 : (uint64_t)2 << 20);
    check_rotation(400, 128, 3, (uint64_t)2 << 20);
}

static void few_and_none(void **state) {
    (void)state;
    for (size_t count = 0; count < 5; count++) {
        static const uint64_t same[5] = {9, 9, 9, 9, 9};
        doppel_source source = source_of(same, count);
        doppel_join_options options = {.size = sizeof options};
        doppel_join_counts counts;
        double recall = 0;
        doppel_rotation wide_window = {.size = sizeof wide_window, .window = 100};
        assert_int_equal(doppel_join_rotate(&source, 0, &wide_window, &options, &recall, &counts, NULL), DOPPEL_OK);
        assert_int_equal(counts.pairs, count * (count - 1) / 2 * (count > 0));
        assert_int_equal(counts.copies, count ? count - 1 : 0);
        assert_int_equal(counts.groups, count > 1);
        assert_int_equal(counts.fingerprints, count);
        assert_true(recall == 1);
    }
}

static void all_rotations_find_most_of_what_the_exact_join_finds(void **state) {
    (void)state;
    enum { COUNT = 3000 };
    uint64_t *numbers = random_numbers(COUNT, 64);
    doppel_source source = source_of(numbers, COUNT);
    doppel_join_options options = {.size = sizeof options};
    doppel_join_counts counts;
    double one = 0, all = 0;
    doppel_rotation first = {.size = sizeof first, .count = 1};
    assert_int_equal(doppel_join_rotate(&source, 3, &first, &options, &one, NULL, NULL), DOPPEL_OK);
    assert_int_equal(doppel_join_rotate(&source, 3, NULL, &options, &all, &counts, NULL), DOPPEL_OK);
    assert_true(one > 0.5 && one < 0.95);
    assert_true(all > 0.99 && all <= 1);
    assert_int_equal(counts.candidates, 64 * COUNT);
    free(numbers);
}

/* ---- callbacks, bad usage, what ends it ---- */

static doppel_status read_published(void *user, uint64_t *to, size_t room, size_t *count) {
    size_t *at = user;
    *count = *at < 8 && room ? 1 : 0;
    if (*count)
        *to = published[(*at)++];
    return DOPPEL_OK;
}

static void a_callback_is_held_in_memory(void **state) {
    (void)state;
    size_t at = 0;
    double recall;
    doppel_join_counts counts;
    doppel_source source = {.size = sizeof source, .read = read_published, .user = &at};
    doppel_join_options options = {.size = sizeof options, .bits = 16};
    assert_int_equal(doppel_join_rotate(&source, 2, NULL, &options, &recall, &counts, NULL), DOPPEL_OK);
    assert_int_equal(counts.pairs, 3);
    assert_int_equal(counts.spilled_bytes, 0);
    assert_true(recall == 1);
}

static doppel_status try(const doppel_rotation *rotation, int distance, doppel_join_options options) {
    doppel_error error = {0};
    doppel_source source = source_of(published, 8);
    options.size = sizeof options;
    doppel_status status = doppel_join_rotate(&source, distance, rotation, &options, NULL, NULL, &error);
    assert_true(status == DOPPEL_OK || strlen(error.message) > 5);
    return status;
}

static void bad_usage(void **state) {
    (void)state;
    doppel_rotation negative = {.size = sizeof negative, .count = -1}, window = {.size = sizeof window, .window = -1};
    doppel_rotation uncounted = {.size = sizeof uncounted, .steps = (const int[]){0}};
    doppel_join_options options = {.bits = 16};
    assert_int_equal(try(&negative, 2, options), DOPPEL_ERROR_USAGE);
    assert_int_equal(try(&window, 2, options), DOPPEL_ERROR_USAGE);
    assert_int_equal(try(&uncounted, 2, options), DOPPEL_ERROR_USAGE);
    assert_int_equal(try(NULL, -1, options), DOPPEL_ERROR_USAGE);
    assert_int_equal(try(NULL, 17, options), DOPPEL_ERROR_USAGE);
    assert_int_equal(try(NULL, 2, (doppel_join_options){.bits = 200}), DOPPEL_ERROR_USAGE);
    assert_int_equal(try(NULL, 2, (doppel_join_options){.bits = 8}), DOPPEL_ERROR_INPUT);
    assert_int_equal(try(NULL, 2, (doppel_join_options){.bits = 16, .memory = 1000}), DOPPEL_ERROR_USAGE);
}

static void steps_are_taken_within_the_width(void **state) {
    (void)state;
    list plain = rotate_published((const int[]){2}, 1, 1, NULL),
         around = rotate_published((const int[]){18}, 1, 1, NULL),
         back = rotate_published((const int[]){-14}, 1, 1, NULL);
    assert_int_equal(plain.count, around.count);
    assert_int_equal(plain.count, back.count);
    for (size_t i = 0; i < plain.count; i++) {
        check_pair(&around, i, plain.pairs[i].a, plain.pairs[i].b, plain.pairs[i].distance);
        check_pair(&back, i, plain.pairs[i].a, plain.pairs[i].b, plain.pairs[i].distance);
    }
    free(plain.pairs);
    free(around.pairs);
    free(back.pairs);
}

static void stop_and_callbacks_end_it(void **state) {
    (void)state;
    volatile int stop = 1;
    list failing = {.failing = true};
    assert_int_equal(try(NULL, 2, (doppel_join_options){.bits = 16, .stop = &stop}), DOPPEL_ERROR_INTERRUPTED);
    assert_int_equal(try(NULL, 2, (doppel_join_options){.bits = 16, .pairs = take, .user = &failing}),
                     DOPPEL_ERROR_STORE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorting_alone_finds_two_of_three),
        cmocka_unit_test(rotated_by_two_934_meets_50086),
        cmocka_unit_test(three_rotations_find_all),
        cmocka_unit_test(the_exact_join_finds_all),
        cmocka_unit_test(the_last_is_compared_with_the_first),
        cmocka_unit_test(every_width),
        cmocka_unit_test(threads_and_memory_do_not_show),
        cmocka_unit_test(few_and_none),
        cmocka_unit_test(all_rotations_find_most_of_what_the_exact_join_finds),
        cmocka_unit_test(a_callback_is_held_in_memory),
        cmocka_unit_test(bad_usage),
        cmocka_unit_test(steps_are_taken_within_the_width),
        cmocka_unit_test(stop_and_callbacks_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
