/* test_ordered.c - results of threads come in order, whole or in parts; failures end the work. */
#include "support.h"

#include "base/base.h"

#include <stdio.h>

enum { PIECES = 3000, SLOTS = 8, MOST_PARTS = 4 };

typedef struct slot {
    uint64_t number;
    size_t parts; /* that were not emitted */
} slot;

typedef struct work {
    dp_ordered ordered;
    pthread_mutex_t reading;
    uint64_t next;
    slot slot[SLOTS];
    uint64_t emitted; /* pieces that were finished */
    size_t parts;     /* of the piece whose turn it is */
    uint64_t fail_at; /* piece whose emission fails; PIECES: none */
    uint64_t bad;     /* piece that fails before it is emitted */
    atomic_bool emitting;
} work;

static size_t parts_of(uint64_t number) {
    return (size_t)(number * 7 % MOST_PARTS);
}

static doppel_status emit(void *user, size_t at, bool finished, doppel_error *error) {
    work *w = user;
    assert_false(atomic_exchange(&w->emitting, true));
    assert_int_equal(w->slot[at].number, w->emitted);
    w->parts += w->slot[at].parts;
    w->slot[at].parts = 0;
    bool fails = w->emitted == w->fail_at;
    if (finished) {
        assert_int_equal(w->parts, parts_of(w->emitted));
        w->parts = 0;
        w->emitted++;
    }
    atomic_store(&w->emitting, false);
    return fails ? dp_fail(error, DOPPEL_ERROR_IO, "no room for %llu", (unsigned long long)w->fail_at) : DOPPEL_OK;
}

/* One piece; false when there is none. */
static bool do_piece(work *w) {
    size_t at;
    uint64_t number = 0;
    pthread_mutex_lock(&w->reading);
    bool more = w->next < PIECES && dp_ordered_wait(&w->ordered, &at);
    if (more) {
        number = dp_ordered_take(&w->ordered);
        assert_int_equal(number, w->next++);
        assert_int_equal(number % SLOTS, at);
        w->slot[at] = (slot){.number = number};
    }
    pthread_mutex_unlock(&w->reading);
    if (!more)
        return false;
    for (size_t i = 0; i < parts_of(number); i++) {
        w->slot[at].parts++;
        if (number % 5 == 0 && dp_ordered_flush(&w->ordered, number) != DOPPEL_OK)
            return false;
    }
    if (number == w->bad)
        dp_ordered_fail(&w->ordered, DOPPEL_ERROR_INPUT, NULL);
    else
        dp_ordered_finish(&w->ordered, number);
    return true;
}

static void thread_main(void *user, size_t thread) {
    (void)thread;
    while (do_piece(user))
        ;
}

static work run(size_t threads, uint64_t fail_at, uint64_t bad, doppel_status expected, doppel_error *error) {
    work w = {.reading = PTHREAD_MUTEX_INITIALIZER, .fail_at = fail_at, .bad = bad};
    assert_int_equal(dp_ordered_init(&w.ordered, SLOTS, emit, &w), DOPPEL_OK);
    dp_run_threads(threads, thread_main, &w);
    assert_int_equal(dp_ordered_over(&w.ordered), expected != DOPPEL_OK);
    assert_int_equal(dp_ordered_end(&w.ordered, error), expected);
    return w;
}

static void results_come_in_order(void **state) {
    (void)state;
    for (size_t threads = 1; threads <= SLOTS; threads++)
        assert_int_equal(run(threads, PIECES, PIECES, DOPPEL_OK, NULL).emitted, PIECES);
}

static void a_failure_to_emit_ends_the_work(void **state) {
    (void)state;
    for (uint64_t at = 0; at < PIECES; at += 499) {
        doppel_error error = {0};
        work w = run(4, at, PIECES, DOPPEL_ERROR_IO, &error);
        char message[64];
        snprintf(message, sizeof message, "no room for %llu", (unsigned long long)at);
        assert_string_equal(error.message, message);
        assert_true(w.emitted <= at + 1);
    }
}

static void a_piece_that_fails_ends_the_work(void **state) {
    (void)state;
    for (uint64_t at = 1; at < PIECES; at += 499) {
        doppel_error error = {0};
        work w = run(4, PIECES, at, DOPPEL_ERROR_INPUT, &error);
        assert_string_equal(error.message, doppel_status_name(DOPPEL_ERROR_INPUT));
        assert_true(w.emitted <= at);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_come_in_order),
                                       cmocka_unit_test(a_failure_to_emit_ends_the_work),
                                       cmocka_unit_test(a_piece_that_fails_ends_the_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
