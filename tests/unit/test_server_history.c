/* test_server_history.c - the minutes of a history: counters that restart, clocks that are set, gaps, and its text;
 * and which servers write it. */
#include "support.h"

#include "folders.h"
#include "server/service.h"

#include <stdlib.h>
#include <unistd.h>

enum { NOON = 60 * 30000000 }; /* seconds since 1970, where a minute begins */

static doppel_engine_stats counted(uint64_t checks, uint64_t adds) {
    return (doppel_engine_stats){
        .checks = checks, .adds = adds, .documents = adds, .verdicts_by = {[DOPPEL_REASON_NONE] = checks + adds}};
}

static void add(history *h, uint64_t now, uint64_t checks, uint64_t adds) {
    const doppel_engine_stats stats = counted(checks, adds);
    history_add(h, now, &stats);
}

static void expect(history *h, uint64_t minute, uint32_t seconds, uint32_t checks, uint32_t adds) {
    history_minute m;
    assert_true(history_sum(h, minute, minute + 1, &m));
    assert_int_equal(m.seconds, seconds);
    assert_int_equal(m.checks, checks);
    assert_int_equal(m.adds, adds);
    assert_int_equal(m.verdicts_by[DOPPEL_REASON_NONE], checks + adds);
}

static void test_minutes(void **state) {
    (void)state;
    history *h = history_create(NOON + 20);
    history_minute all;
    add(h, NOON + 30, 5, 1);
    add(h, NOON + 60, 7, 1); /* at the end of the minute: it belongs to that */
    add(h, NOON + 60, 7, 1);
    add(h, NOON + 120, 7, 4);
    expect(h, NOON / 60, 40, 7, 1);
    expect(h, NOON / 60 + 1, 60, 0, 3);
    assert_true(history_sum(h, NOON / 60, NOON / 60 + 3, &all));
    assert_int_equal(all.seconds, 100);
    assert_int_equal(all.checks, 7);
    assert_int_equal(all.documents, 4);
    /* The machine slept: what is not known is not 0. */
    add(h, NOON + 3600, 9, 4);
    expect(h, NOON / 60 + 2, 60, 2, 0);
    assert_false(history_sum(h, NOON / 60 + 3, NOON / 60 + 59, &all));
    /* A day later its place is another minute's. */
    add(h, NOON + 86400 + 1, 9, 4);
    add(h, NOON + 86400 + 2, 10, 4);
    expect(h, NOON / 60 + HISTORY_MINUTES, 1, 1, 0);
    assert_false(history_sum(h, NOON / 60, NOON / 60 + 1, &all));
    history_free(h);
}

static void test_counters_that_restart(void **state) {
    (void)state;
    history *h = history_create(NOON);
    add(h, NOON + 10, 1000, 100);
    add(h, NOON + 20, 3, 2); /* from 0 again: three more */
    expect(h, NOON / 60, 20, 1003, 102);
    history_free(h);
}

static void test_a_clock_that_is_set_back(void **state) {
    (void)state;
    history *h = history_create(NOON + 600);
    add(h, NOON + 610, 1, 0);
    add(h, NOON + 5, 3, 0);
    add(h, NOON + 15, 6, 0);
    expect(h, NOON / 60 + 10, 10, 1, 0);
    expect(h, NOON / 60, 10, 5, 0);
    history_free(h);
}

static void test_text(void **state) {
    (void)state;
    text_buffer out = {0}, again = {0};
    history *h = history_create(NOON), *copy = history_create(NOON + 300);
    for (uint64_t i = 1; i <= 2000; i++) /* more than a day */
        add(h, NOON + 60 * i, 3 * i, i);
    uint64_t now = NOON + 60 * 2000;
    assert_true(history_is_due(h, now));
    history_write(h, now, &out);
    assert_false(out.failed);
    assert_true(out.length < HISTORY_BYTES);
    assert_false(history_is_due(h, now + 599));
    assert_true(history_is_due(h, now + 600));
    add(h, now + 30, 6001, 2000);
    assert_true(history_is_due(h, now + 30));
    assert_true(history_read(copy, now, (doppel_slice){out.data, out.length}));
    history_write(copy, now, &again);
    assert_int_equal(out.length, again.length);
    assert_memory_equal(out.data, again.data, out.length);
    expect(copy, now / 60 - 1, 60, 3, 1);
    /* Every way to be cut, and a change anywhere in the beginning: refused, and nothing of it is taken. */
    history *empty = history_create(now);
    for (size_t length = 0; length < out.length; length += length < 200 ? 1 : 997)
        assert_false(history_read(empty, now, (doppel_slice){out.data, length}));
    for (size_t i = 0; i < 200; i++) {
        out.data[i] ^= 1;
        assert_false(history_read(empty, now, (doppel_slice){out.data, out.length}));
        out.data[i] ^= 1;
    }
    history_minute all;
    assert_false(history_sum(empty, now / 60 - HISTORY_MINUTES + 1, now / 60 + 1, &all));
    history_free(h);
    history_free(copy);
    history_free(empty);
    text_free(&out);
    text_free(&again);
}

/* Only the one writer of a folder writes its history. */
static void test_folders_opened_for_reading(void **state) {
    const char *file = name_in(*state, "seen/doppel.index-history");
    doppel_engine_options reads = {.size = sizeof reads, .read_only = true};
    service_options options = {
        .first = {.path = name_in(*state, "seen")}, .tmp = "/tmp", .max_body = 1 << 20, .threads = 2};
    static service s;
    for (int i = 0; i < 2; i++) {
        bool stored = !i;
        options.first.options = stored ? NULL : &reads;
        assert_int_equal(service_open(&s, &options), 0);
        index_entry *index = indexes_at(&s.indexes, 0);
        assert_int_equal(index->history_folder != NULL, stored);
        index_history_update(index, true);
        indexes_release(&s.indexes, index);
        service_close(&s);
        assert_int_equal(access(file, F_OK), stored ? 0 : -1);
        unlink(file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_minutes),
        cmocka_unit_test(test_counters_that_restart),
        cmocka_unit_test(test_a_clock_that_is_set_back),
        cmocka_unit_test(test_text),
        cmocka_unit_test_setup_teardown(test_folders_opened_for_reading, setup_folders, teardown_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
