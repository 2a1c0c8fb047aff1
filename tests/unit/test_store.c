/* test_store.c - every call of store.h, on every kind of store. */
#include "stores.h"

#include <pthread.h>

/* Each test runs once for each kind: what is opened is in memory, or in a folder. */
typedef struct kind {
    void *folder;
    bool on_disk;
} kind;

static int setup_memory(void **state) {
    static kind k;
    *state = &k;
    k.on_disk = false;
    return setup(&k.folder);
}

static int setup_disk(void **state) {
    int failed = setup_memory(state);
    ((kind *)*state)->on_disk = true;
    return failed;
}

static int teardown_kind(void **state) {
    kind *k = *state;
    entries(in(&k->folder, "index"), true);
    return teardown(&k->folder);
}

static int teardown_memory(void **state) {
    return teardown(&((kind *)*state)->folder);
}

static dp_store *open_kind(void **state) {
    kind *k = *state;
    return open_store(k->on_disk ? in(&k->folder, "index") : NULL, (dp_store_options){.settings = "a=1\nb=2\n"});
}

/* ---- writing and reading ---- */

static void parts_are_as_they_were_written(void **state) {
    dp_store *store = open_kind(state);
    dp_view *view = open_view(store);
    assert_string_equal(dp_store_settings(store), "a=1\nb=2\n");
    write_numbers(store, 1, 300, 20);
    write_numbers(store, 70000, 70010, 3000);
    OK(dp_view_begin(view, error));
    for (uint64_t i = 1; i <= 300; i++)
        check_number(view, i, 0, 20);
    for (uint64_t i = 70000; i <= 70010; i++)
        check_number(view, i, 0, 3000);
    assert_false(has_part(view, DP_PART_TRACE, 301));
    assert_false(has_part(view, DP_PART_TRACE, UINT64_MAX));
    dp_view_end(view);
    dp_view_free(view);
    dp_store_close(store);
}

static void settings_can_be_replaced(void **state) {
    kind *k = *state;
    dp_store *store = open_kind(state);
    OK(dp_store_set_settings(store, "c=3\n", AT(7), error));
    assert_string_equal(dp_store_settings(store), "c=3\n");
    dp_store_close(store);
    if (!k->on_disk)
        return;
    store = open_kind(state);
    assert_string_equal(dp_store_settings(store), "c=3\n");
    dp_store_close(store);
}

static void info_counts_what_is_there(void **state) {
    dp_store *store = open_kind(state);
    dp_view *view = open_view(store);
    dp_store_info info;
    dp_moment moment;
    write_numbers(store, 1, 10, 0);
    write_numbers(store, 11, 30, 2);
    const dp_clock clock = {77, 3, 5, 900, 60};
    OK(dp_store_write(store, NULL, 0, AT(177), error));
    OK(dp_store_write(store, NULL, 0, &clock, error));
    OK(dp_view_begin(view, error));
    dp_view_info(view, &info);
    dp_view_moment(view, &moment);
    assert_int_equal(info.last, 30);
    assert_memory_equal(&info.clock, &clock, sizeof clock);
    assert_int_equal(info.entries[DP_PART_TRACE], 30);
    assert_int_equal(info.entries[DP_PART_RECORD], 30);
    assert_int_equal(info.entries[DP_PART_SET], 20);
    assert_int_equal(info.entries[DP_PART_TEXT], 30);
    assert_true(info.disk_bytes + info.memory_bytes > 0);
    assert_int_equal(moment.last, info.last);
    assert_memory_equal(&moment.clock, &clock, sizeof clock);
    assert_int_equal(moment.generation, info.generation);
    dp_view_end(view);
    dp_view_free(view);
    dp_store_close(store);
}

static void a_view_shows_one_moment(void **state) {
    dp_store *store = open_kind(state);
    dp_view *before = open_view(store), *after = open_view(store);
    dp_moment moment;
    write_numbers(store, 1, 5, 4);
    OK(dp_view_begin(before, error));
    write_numbers(store, 6, 9, 4);
    write_one(store, make_removal(10, 2));
    dp_view_moment(before, &moment);
    assert_int_equal(moment.last, 5);
    check_number(before, 2, 0, 4);
    assert_false(has_part(before, DP_PART_TRACE, 6));
    dp_view_end(before);
    OK(dp_view_begin(after, error));
    dp_view_moment(after, &moment);
    assert_int_equal(moment.last, 10);
    assert_false(has_part(after, DP_PART_TRACE, 2));
    check_number(after, 6, 0, 4);
    dp_view_end(after);
    dp_view_free(before);
    dp_view_free(after);
    dp_store_close(store);
}

static void numbers_only_grow(void **state) {
    dp_store *store = open_kind(state);
    dp_view *view = open_view(store);
    write_numbers(store, 5, 6, 1);
    parts good = make_parts(7, 0, 1), bad = make_parts(6, 0, 1);
    dp_change changes[2] = {good.change, bad.change};
    REFUSED(dp_store_write(store, changes, 2, AT(0), error), DOPPEL_ERROR_USAGE, "number 6 is not above 7");
    /* All or nothing. */
    OK(dp_view_begin(view, error));
    assert_false(has_part(view, DP_PART_TRACE, 7));
    dp_view_end(view);
    dp_change odd = {.count = 5, .count_reason = 4};
    REFUSED(dp_store_write(store, &odd, 1, AT(0), error), DOPPEL_ERROR_USAGE, "no reason 4");
    free_parts(&good);
    free_parts(&bad);
    dp_view_free(view);
    dp_store_close(store);
}

/* ---- links, counts, removals ---- */

static void links_are_listed_under_their_original(void **state) {
    dp_store *store = open_kind(state);
    dp_view *view = open_view(store);
    uint64_t links[8];
    size_t found;
    write_numbers(store, 1, 2, 1);
    for (uint64_t i = 3; i < 8; i++)
        write_one(store, make_parts(i, 1, 0));
    write_one(store, make_parts(8, 2, 0));
    /* Of what is not there: no link. */
    write_one(store, make_parts(9, 99, 0));
    write_one(store, make_removal(10, 5));
    OK(dp_view_begin(view, error));
    OK(dp_view_links(view, 1, links, 8, &found, error));
    assert_int_equal(found, 4);
    const uint64_t want[4] = {3, 4, 6, 7};
    assert_memory_equal(links, want, sizeof want);
    OK(dp_view_links(view, 1, links, 2, &found, error));
    assert_int_equal(found, 4);
    assert_memory_equal(links, want, 16);
    OK(dp_view_links(view, 1, NULL, 0, &found, error));
    assert_int_equal(found, 4);
    OK(dp_view_links(view, 2, links, 8, &found, error));
    assert_int_equal(found, 1);
    OK(dp_view_links(view, 99, links, 8, &found, error));
    assert_int_equal(found, 0);
    check_number(view, 8, 2, 0);
    dp_view_end(view);
    write_one(store, make_removal(11, 1));
    OK(dp_view_begin(view, error));
    OK(dp_view_links(view, 1, links, 8, &found, error));
    assert_int_equal(found, 0);
    check_number(view, 3, 1, 0);
    dp_view_end(view);
    dp_view_free(view);
    dp_store_close(store);
}

static void count(dp_store *store, uint64_t number, uint8_t reason, uint64_t at) {
    dp_change change = {.count = number, .count_reason = reason, .count_at = at};
    OK(dp_store_write(store, &change, 1, AT(at), error));
}

static doppel_status sum_counts(uint64_t number, const dp_counts *counts, void *user) {
    uint64_t *sum = user;
    *sum = *sum * 1000 + number * 100 + counts->by[0] + counts->by[1] + counts->by[2];
    return DOPPEL_OK;
}

static doppel_status stop_counts(uint64_t number, const dp_counts *counts, void *user) {
    (void)number, (void)counts, (void)user;
    return DOPPEL_ERROR_INTERRUPTED;
}

static void duplicates_are_counted(void **state) {
    dp_store *store = open_kind(state);
    dp_view *view = open_view(store);
    dp_counts counts;
    dp_store_info info;
    uint64_t sum = 0;
    write_numbers(store, 1, 4, 1);
    count(store, 2, 1, 100);
    count(store, 2, 2, 300);
    count(store, 2, 2, 200);
    count(store, 4, 3, 50);
    count(store, 99, 3, 60);
    OK(dp_view_begin(view, error));
    OK(dp_view_counts(view, 2, &counts, error));
    assert_int_equal(counts.by[0], 1);
    assert_int_equal(counts.by[1], 2);
    assert_int_equal(counts.by[2], 0);
    assert_int_equal(counts.last, 300);
    OK(dp_view_counts(view, 1, &counts, error));
    assert_int_equal(counts.by[0] + counts.by[1] + counts.by[2] + counts.last, 0);
    OK(dp_view_each_count(view, sum_counts, &sum, error));
    assert_int_equal(sum, 203401);
    assert_int_equal(dp_view_each_count(view, stop_counts, NULL, NULL), DOPPEL_ERROR_INTERRUPTED);
    dp_view_info(view, &info);
    assert_int_equal(info.total.by[0], 1);
    assert_int_equal(info.total.by[1], 2);
    assert_int_equal(info.total.by[2], 2);
    assert_int_equal(info.total.last, 300);
    dp_view_end(view);
    write_one(store, make_removal(5, 2));
    OK(dp_view_begin(view, error));
    OK(dp_view_counts(view, 2, &counts, error));
    assert_int_equal(counts.by[1], 0);
    dp_view_info(view, &info);
    assert_int_equal(info.total.by[1], 2);
    dp_view_end(view);
    dp_view_free(view);
    dp_store_close(store);
}

static void several_duplicates_are_counted_at_once(void **state) {
    dp_store *store = open_kind(state);
    dp_view *view = open_view(store);
    dp_counts counts;
    write_numbers(store, 1, 1, 1);
    count(store, 1, 3, 5);
    dp_change change = {.count = 1, .count_reason = 3, .count_at = 4, .count_times = 41};
    OK(dp_store_write(store, &change, 1, AT(5), error));
    OK(dp_view_begin(view, error));
    OK(dp_view_counts(view, 1, &counts, error));
    assert_int_equal(counts.by[2], 42);
    assert_int_equal(counts.last, 5);
    dp_view_end(view);
    dp_view_free(view);
    dp_store_close(store);
}

static void one_change_may_be_several(void **state) {
    dp_store *store = open_kind(state);
    dp_view *view = open_view(store);
    write_numbers(store, 1, 3, 1);
    parts p = make_parts(4, 3, 0);
    p.change.remove = 1;
    p.change.count = 3;
    p.change.count_reason = 2;
    p.change.count_at = 9;
    write_one(store, p);
    OK(dp_view_begin(view, error));
    size_t found;
    uint64_t link;
    dp_counts counts;
    assert_false(has_part(view, DP_PART_RECORD, 1));
    OK(dp_view_links(view, 3, &link, 1, &found, error));
    assert_int_equal(link, 4);
    OK(dp_view_counts(view, 3, &counts, error));
    assert_int_equal(counts.by[1], 1);
    dp_view_end(view);
    dp_view_free(view);
    dp_store_close(store);
}

/* ---- all of a part ---- */

typedef struct seen {
    uint64_t count, sum, stop_at;
} seen;

static doppel_status see(uint64_t number, doppel_slice bytes, void *user) {
    seen *s = user;
    assert_true(bytes.length > 0);
    s->count++;
    s->sum = s->sum * 3 + number;
    return number == s->stop_at ? DOPPEL_ERROR_INTERRUPTED : DOPPEL_OK;
}

static void each_value_in_order(void **state) {
    dp_store *store = open_kind(state);
    dp_view *view = open_view(store);
    write_numbers(store, 1, 5, 2);
    write_numbers(store, 4096, 4099, 2);
    write_one(store, make_removal(4100, 3));
    OK(dp_view_begin(view, error));
    seen s = {0};
    dp_each each = {.part = DP_PART_SET, .from = 2, .to = 4098, .value = see, .user = &s};
    OK(dp_view_each(view, &each, error));
    const uint64_t want[] = {2, 4, 5, 4096, 4097, 4098};
    uint64_t sum = 0;
    for (size_t i = 0; i < 6; i++)
        sum = sum * 3 + want[i];
    assert_int_equal(s.count, 6);
    assert_int_equal(s.sum, sum);
    s = (seen){.stop_at = 4096};
    each = (dp_each){.part = DP_PART_TRACE, .from = 0, .to = UINT64_MAX, .value = see, .user = &s};
    assert_int_equal(dp_view_each(view, &each, NULL), DOPPEL_ERROR_INTERRUPTED);
    assert_int_equal(s.count, 5);
    s = (seen){0};
    each.from = 5000;
    OK(dp_view_each(view, &each, error));
    assert_int_equal(s.count, 0);
    dp_view_end(view);
    dp_view_free(view);
    dp_store_close(store);
}

/* ---- as a whole ---- */

static bool keep_even(const dp_trace *trace, void *user) {
    ++*(uint64_t *)user;
    return trace->number % 2 == 0;
}

static void compact_keeps_what_is_wanted(void **state) {
    dp_store *store = open_kind(state);
    dp_view *view = open_view(store);
    dp_store_info info;
    uint64_t asked = 0, links[8], sum = 0;
    size_t found;
    write_numbers(store, 1, 50, 30);
    write_one(store, make_parts(51, 2, 0));
    write_one(store, make_parts(52, 2, 0));
    write_one(store, make_parts(54, 3, 0));
    count(store, 2, 1, 7);
    count(store, 3, 1, 8);
    write_one(store, make_removal(56, 4));
    OK(dp_view_begin(view, error));
    dp_view_end(view);
    OK(dp_store_compact(store, keep_even, &asked, error));
    assert_int_equal(asked, 52);
    OK(dp_view_begin(view, error));
    dp_view_info(view, &info);
    assert_true(info.generation >= 1);
    assert_int_equal(info.last, 56);
    assert_int_equal(info.total.by[0], 2);
    assert_int_equal(info.entries[DP_PART_TRACE], 26);
    assert_int_equal(info.entries[DP_PART_SET], 24);
    check_number(view, 50, 0, 30);
    check_number(view, 54, 3, 0);
    assert_false(has_part(view, DP_PART_TRACE, 56));
    OK(dp_view_links(view, 2, links, 8, &found, error));
    assert_int_equal(found, 1);
    assert_int_equal(links[0], 52);
    OK(dp_view_links(view, 3, links, 8, &found, error));
    assert_int_equal(found, 0);
    OK(dp_view_each_count(view, sum_counts, &sum, error));
    assert_int_equal(sum, 201);
    dp_view_end(view);
    write_numbers(store, 57, 60, 3);
    OK(dp_view_begin(view, error));
    check_number(view, 60, 0, 3);
    dp_view_end(view);
    dp_view_free(view);
    dp_store_close(store);
}

/* ---- threads ---- */

typedef struct reading {
    dp_store *store;
    _Atomic bool *stop;
    _Atomic uint64_t reads;
} reading;

/* Numbers come in tens: a moment has all of ten or none, and what was removed was removed with the next ten. */
static void *read_along(void *given) {
    reading *r = given;
    dp_view *view = open_view(r->store);
    uint64_t last = 0;
    while (!atomic_load(r->stop)) {
        dp_moment moment;
        OK(dp_view_begin(view, error));
        dp_view_moment(view, &moment);
        MUST(moment.last >= last && moment.last % 10 == 0);
        last = moment.last;
        seen s = {0};
        dp_each each = {.part = DP_PART_TRACE, .from = 1, .to = UINT64_MAX, .value = see, .user = &s};
        OK(dp_view_each(view, &each, error));
        MUST(s.count == (last > 100 ? 100 : last));
        if (last)
            check_number(view, last, 0, 5);
        dp_view_end(view);
        r->reads++;
    }
    dp_view_free(view);
    return NULL;
}

static void readers_never_see_half_a_write(void **state) {
    dp_store *store = open_kind(state);
    _Atomic bool stop = false;
    reading readers[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        readers[i] = (reading){store, &stop, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, read_along, &readers[i]), 0);
    }
    for (uint64_t first = 1; first < 600; first += 10) {
        parts all[10];
        dp_change changes[10];
        for (uint64_t i = 0; i < 10; i++) {
            all[i] = make_parts(first + i, 0, 5);
            all[i].change.remove = first + i > 100 ? first + i - 100 : 0;
            changes[i] = all[i].change;
        }
        OK(dp_store_write(store, changes, 10, AT(first), error));
        for (int i = 0; i < 10; i++)
            free_parts(&all[i]);
    }
    while (!readers[0].reads || !readers[1].reads || !readers[2].reads)
        sched_yield();
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    dp_store_close(store);
}

#define BOTH(test)                                                    \
    {#test " (memory)", test, setup_memory, teardown_memory, NULL}, { \
#test " (lmdb)", test, setup_disk, teardown_kind, NULL        \
    }

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(parts_are_as_they_were_written),
        BOTH(settings_can_be_replaced),
        BOTH(info_counts_what_is_there),
        BOTH(a_view_shows_one_moment),
        BOTH(numbers_only_grow),
        BOTH(links_are_listed_under_their_original),
        BOTH(duplicates_are_counted),
        BOTH(several_duplicates_are_counted_at_once),
        BOTH(one_change_may_be_several),
        BOTH(each_value_in_order),
        BOTH(compact_keeps_what_is_wanted),
        BOTH(readers_never_see_half_a_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
