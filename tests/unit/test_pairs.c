/* test_pairs.c - the sink for pairs: whatever order, threads and memory they come with, they go out in order. */
#include "support.h"

#include "join/join.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

/* ---- what goes out ---- */

typedef struct list {
    doppel_pair *pairs;
    size_t count, capacity;
    size_t stop_at; /* calls; 0: never */
    size_t calls;
} list;

static doppel_status take(const doppel_pair *pairs, size_t count, void *user) {
    list *l = user;
    if (l->stop_at && ++l->calls == l->stop_at)
        return DOPPEL_ERROR_STORE;
    assert_true(count > 0);
    assert_true(dp_reserve(&l->pairs, &l->capacity, l->count + count, sizeof *pairs));
    memcpy(l->pairs + l->count, pairs, count * sizeof *pairs);
    l->count += count;
    return DOPPEL_OK;
}

static int compare(const void *left, const void *right) {
    const dp_pair *l = left, *r = right;
    if (l->a != r->a)
        return l->a < r->a ? -1 : 1;
    return l->b < r->b ? -1 : l->b > r->b;
}

/* ---- what comes in ---- */

typedef struct work {
    dp_pairs *pairs;
    const dp_pair *given;
    size_t count, threads;
} work;

static void add_share(void *user, size_t thread) {
    const work *w = user;
    for (size_t i = thread; i < w->count; i += w->threads)
        if (!dp_pairs_add(&w->pairs->buffers[thread], w->given[i].a, w->given[i].b, (int)w->given[i].distance))
            return;
}

/* Random pairs; positions below `positions`, the distance follows from them. */
static dp_pair *random_pairs(size_t count, uint32_t positions, uint64_t seed) {
    dp_pair *made = malloc((count + 1) * sizeof *made);
    for (size_t i = 0; i < count; i++) {
        uint32_t a = (uint32_t)random_below(&seed, positions), b = (uint32_t)random_below(&seed, positions);
        made[i] = (dp_pair){a, b, (a ^ b) % 129};
    }
    return made;
}

/* Runs the sink over `given`; gives the spilled bytes, and in *out what went out. */
static uint64_t run(const dp_pair *given, size_t count, dp_pairs_options options, list *out) {
    dp_pairs pairs;
    uint64_t all = 0;
    assert_int_equal(dp_pairs_init(&pairs, &options, NULL), DOPPEL_OK);
    work w = {&pairs, given, count, options.threads};
    dp_run_threads(options.threads, add_share, &w);
    assert_int_equal(dp_pairs_finish(&pairs, take, out, &all, NULL), DOPPEL_OK);
    assert_int_equal(all, out->count);
    uint64_t spilled = pairs.file.size;
    dp_pairs_free(&pairs);
    return spilled;
}

/* The sink's pairs are the given ones, sorted. */
static void check(const dp_pair *given, size_t count, const list *out, bool unique) {
    dp_pair *sorted = malloc((count + 1) * sizeof *sorted);
    memcpy(sorted, given, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare);
    size_t want = 0;
    for (size_t i = 0; i < count; i++) {
        if (unique && i && !compare(&sorted[i - 1], &sorted[i]))
            continue;
        assert_true(want < out->count);
        assert_int_equal(out->pairs[want].a, sorted[i].a);
        assert_int_equal(out->pairs[want].b, sorted[i].b);
        assert_int_equal(out->pairs[want].distance, sorted[i].distance);
        want++;
    }
    assert_int_equal(want, out->count);
    free(sorted);
}

static uint64_t check_run(const dp_pair *given, size_t count, dp_pairs_options options) {
    list out = {0};
    uint64_t spilled = run(given, count, options, &out);
    check(given, count, &out, options.unique);
    free(out.pairs);
    return spilled;
}

/* ---- tests ---- */

static void pairs_go_out_in_order(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 2, 31, 32, 33, 5000, 100000};
    static const uint32_t positions[] = {1, 3, 1000, 1 << 20, UINT32_MAX};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t p = 0; p < sizeof positions / sizeof *positions; p++) {
            dp_pair *given = random_pairs(counts[c], positions[p], c + p);
            assert_int_equal(check_run(given, counts[c], (dp_pairs_options){.threads = 1, .memory = 1 << 30}), 0);
            free(given);
        }
}

static void threads_do_not_show(void **state) {
    (void)state;
    dp_pair *given = random_pairs(50000, 5000, 7);
    for (size_t threads = 1; threads <= 5; threads++)
        assert_int_equal(check_run(given, 50000, (dp_pairs_options){.threads = threads, .memory = 1 << 30}), 0);
    free(given);
}

static void little_memory_spills_and_changes_nothing(void **state) {
    (void)state;
    dp_pair *given = random_pairs(200000, 30000, 8);
    for (size_t threads = 1; threads <= 3; threads++)
        assert_int_equal(check_run(given, 200000, (dp_pairs_options){.threads = threads, .memory = 1 << 18}),
                         200000 * sizeof(dp_pair));
    free(given);
}

static void repeats_go_out_once_when_asked(void **state) {
    (void)state;
    dp_pair *given = random_pairs(100000, 100, 9);
    check_run(given, 100000, (dp_pairs_options){.threads = 2, .memory = 1 << 30, .unique = true});
    check_run(given, 100000, (dp_pairs_options){.threads = 2, .memory = 1, .unique = true});
    free(given);
}

static void one_position_with_very_many(void **state) {
    (void)state;
    dp_pair *given = random_pairs(300000, UINT32_MAX, 10);
    for (size_t i = 0; i < 300000; i++) {
        given[i].a = 77;
        given[i].distance = 0;
    }
    check_run(given, 300000, (dp_pairs_options){.threads = 1, .memory = 1 << 30});
    free(given);
}

static void counting_gives_no_pairs(void **state) {
    (void)state;
    dp_pairs pairs;
    uint64_t given;
    dp_pairs_options options = {.threads = 1, .memory = 1 << 20};
    assert_int_equal(dp_pairs_init(&pairs, &options, NULL), DOPPEL_OK);
    for (uint32_t i = 0; i < 10000; i++)
        assert_true(dp_pairs_add(&pairs.buffers[0], i % 7, i, 1));
    assert_int_equal(dp_pairs_finish(&pairs, NULL, NULL, &given, NULL), DOPPEL_OK);
    assert_int_equal(given, 10000);
    dp_pairs_free(&pairs);
}

static doppel_status finish_with(dp_pairs_options options, list *out, doppel_error *error) {
    dp_pairs pairs;
    uint64_t given;
    assert_int_equal(dp_pairs_init(&pairs, &options, NULL), DOPPEL_OK);
    for (uint32_t i = 0; i < 50000; i++)
        if (!dp_pairs_add(&pairs.buffers[0], 50000 - i, i, 1))
            break;
    doppel_status status = dp_pairs_finish(&pairs, take, out, &given, error);
    dp_pairs_free(&pairs);
    return status;
}

static void a_callback_ends_it(void **state) {
    (void)state;
    doppel_error error;
    list out = {.stop_at = 3};
    assert_int_equal(finish_with((dp_pairs_options){.threads = 1, .memory = 1 << 30}, &out, &error),
                     DOPPEL_ERROR_STORE);
    assert_non_null(strstr(error.message, "callback"));
    assert_true(out.count > 0 && out.count < 50000);
    free(out.pairs);
}

static void stop_ends_it(void **state) {
    (void)state;
    volatile int stop = 1;
    list out = {0};
    assert_int_equal(finish_with((dp_pairs_options){.threads = 1, .memory = 1 << 30, .stop = &stop}, &out, NULL),
                     DOPPEL_ERROR_INTERRUPTED);
    assert_int_equal(out.count, 0);
}

static void a_folder_that_is_not_there_is_named(void **state) {
    (void)state;
    doppel_error error;
    list out = {0};
    assert_int_equal(finish_with((dp_pairs_options){.threads = 1, .memory = 1, .tmp = "/nowhere/at/all"}, &out, &error),
                     DOPPEL_ERROR_IO);
    assert_string_equal(error.file, "/nowhere/at/all");
    assert_non_null(strstr(error.message, "temporary file"));
    assert_int_equal(out.count, 0);
}

/* A limit on the size of files stands in for a full disk. */
static void a_full_disk_is_an_error(void **state) {
    (void)state;
    doppel_error error;
    list out = {0};
    struct rlimit before, small;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 100000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    doppel_status status = finish_with((dp_pairs_options){.threads = 1, .memory = 1}, &out, &error);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, DOPPEL_ERROR_IO);
    assert_non_null(strstr(error.message, "cannot write a temporary file"));
    assert_int_equal(out.count, 0);
}

static void stop_ends_it_before_more_is_written(void **state) {
    (void)state;
    int stop = 0;
    dp_pairs pairs;
    doppel_error error = {0};
    uint64_t given;
    dp_pairs_options options = {.threads = 1, .memory = 1, .stop = &stop};
    assert_int_equal(dp_pairs_init(&pairs, &options, &error), DOPPEL_OK);
    size_t added = 0;
    for (; added < 1000000 && dp_pairs_add(&pairs.buffers[0], 1, 2, 0); added++)
        stop = added >= 10000;
    assert_in_range(added, 10000, 20000);
    assert_int_equal(dp_pairs_finish(&pairs, NULL, NULL, &given, &error), DOPPEL_ERROR_INTERRUPTED);
    dp_pairs_free(&pairs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_go_out_in_order),
        cmocka_unit_test(threads_do_not_show),
        cmocka_unit_test(little_memory_spills_and_changes_nothing),
        cmocka_unit_test(repeats_go_out_once_when_asked),
        cmocka_unit_test(one_position_with_very_many),
        cmocka_unit_test(counting_gives_no_pairs),
        cmocka_unit_test(a_callback_ends_it),
        cmocka_unit_test(stop_ends_it),
        cmocka_unit_test(stop_ends_it_before_more_is_written),
        cmocka_unit_test(a_folder_that_is_not_there_is_named),
        cmocka_unit_test(a_full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
