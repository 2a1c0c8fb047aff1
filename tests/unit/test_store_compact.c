/* test_store_compact.c - compaction while others read and write: in the end the store is what it would be without. */
#include "compactions.h"
#include "folders.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

/* A compaction copies 4 MiB a step: this history has more than two of them. */
enum { BEFORE = 1500, MEANWHILE = 1500, MOST = 3000 };

/* ---- writes at chosen moments ---- */

typedef struct interleaving {
    dp_store *compacted, *plain;
    _Atomic uint64_t wanted, written; /* steps */
    _Atomic bool end;
    uint64_t every; /* numbers that are copied between two steps */
    uint64_t drop;  /* numbers that this divides are dropped; 0: none */
    uint64_t asked, last_asked;
} interleaving;

static void *write_wanted(void *user) {
    interleaving *w = user;
    while (!atomic_load(&w->end) || w->written < w->wanted) {
        if (w->written == w->wanted) {
            usleep(10);
            continue;
        }
        uint64_t i = w->written + 1;
        MUST(!write_step(w->compacted, i, MOST, NULL) && !write_step(w->plain, i, MOST, NULL));
        w->written = i;
    }
    return NULL;
}

/* Called for each number that is copied: now and then the next step is written, and waited for: for a second at
 * most, as in the last round it cannot be written. */
static bool write_meanwhile(const dp_trace *trace, void *user) {
    interleaving *w = user;
    assert_true(trace->number > w->last_asked);
    w->last_asked = trace->number;
    if (++w->asked % w->every == 0 && w->written == w->wanted && w->wanted < BEFORE + MEANWHILE) {
        w->wanted++;
        for (int i = 0; i < 20000 && w->written < w->wanted; i++)
            usleep(10);
    }
    return !w->drop || trace->number % w->drop;
}

/* What is dropped is gone as if it had been removed. */
static void drop_plain(interleaving *w) {
    for (uint64_t number = w->drop; w->drop && number <= w->last_asked; number += w->drop)
        if (step_kind_of(number) <= ADD_COPY)
            OK(dp_store_write(w->plain, &(dp_change){.remove = number}, 1, AT(w->written), error));
}

static void compact_interleaved(const char *path, uint64_t every, uint64_t drop) {
    dp_store *compacted = open_store(path, WRITING), *plain = open_store(NULL, WRITING);
    interleaving w = {
        .compacted = compacted, .plain = plain, .wanted = BEFORE, .written = BEFORE, .every = every, .drop = drop};
    pthread_t writer;
    write_steps(compacted, 1, BEFORE, MOST);
    write_steps(plain, 1, BEFORE, MOST);
    assert_int_equal(pthread_create(&writer, NULL, write_wanted, &w), 0);
    OK(dp_store_compact(compacted, write_meanwhile, &w, error));
    w.end = true;
    pthread_join(writer, NULL);
    drop_plain(&w);
    assert_true(w.written > BEFORE + 50);
    assert_int_equal(first_difference(compacted, plain, w.written), 0);
    /* And it goes on. */
    write_steps(compacted, w.written + 1, w.written + 50, MOST);
    write_steps(plain, w.written + 1, w.written + 50, MOST);
    assert_int_equal(first_difference(compacted, plain, w.written + 50), 0);
    dp_store_close(plain);
    dp_store_close(compacted);
}

static void what_is_written_meanwhile_is_in_the_folder(void **state) {
    for (uint64_t every = 1; every <= 10; every += 3) {
        const char *path = name_in(*state, every == 1 ? "a" : every == 4 ? "b" : every == 7 ? "c" : "d");
        findings f;
        doppel_verified verified;
        compact_interleaved(path, every, every == 4 ? 7 : 0);
        assert_int_equal(verify_folder(path, &f, &verified), DOPPEL_OK);
        dp_buffer_free(&f.text);
    }
}

static void what_is_written_meanwhile_is_in_memory(void **state) {
    (void)state;
    compact_interleaved(NULL, 1, 0);
    compact_interleaved(NULL, 2, 0);
}

/* ---- threads ---- */

typedef struct company {
    dp_store *compacted, *plain;
    _Atomic uint64_t written;
    _Atomic bool end;
} company;

static void *write_all(void *user) {
    company *w = user;
    for (uint64_t i = BEFORE + 1; !atomic_load(&w->end); i++) {
        MUST(!write_step(w->compacted, i, 100, NULL) && !write_step(w->plain, i, 100, NULL));
        atomic_store(&w->written, i);
    }
    return NULL;
}

/* A view shows one moment, whatever is compacted: as many traces as it says. */
static doppel_status count_trace(uint64_t number, doppel_slice bytes, void *user) {
    (void)number, (void)bytes;
    ++*(uint64_t *)user;
    return DOPPEL_OK;
}

static void *read_all(void *user) {
    company *w = user;
    dp_view *view;
    MUST(!dp_view_create(w->compacted, &view, NULL));
    while (!atomic_load(&w->end)) {
        dp_moment moment;
        uint64_t seen = 0;
        const dp_each each = {.part = DP_PART_TRACE, .to = UINT64_MAX, .value = count_trace, .user = &seen};
        MUST(!dp_view_begin(view, NULL));
        dp_view_moment(view, &moment);
        MUST(!dp_view_each(view, &each, NULL) && seen == moment.traces);
        dp_view_end(view);
    }
    dp_view_free(view);
    return NULL;
}

static void compact_in_company(const char *path) {
    company w = {.compacted = open_store(path, WRITING), .plain = open_store(NULL, WRITING)};
    pthread_t threads[3];
    write_steps(w.compacted, 1, BEFORE, 100);
    write_steps(w.plain, 1, BEFORE, 100);
    w.written = BEFORE;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i ? read_all : write_all, &w), 0);
    for (int i = 0; i < 6; i++)
        OK(dp_store_compact(w.compacted, keep_all, NULL, error));
    w.end = true;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(first_difference(w.compacted, w.plain, w.written), 0);
    dp_store_close(w.compacted);
    dp_store_close(w.plain);
}

static void threads_read_and_write_on(void **state) {
    compact_in_company(NULL);
    compact_in_company(name_in(*state, "index"));
}

/* ---- views ---- */

static void a_view_reads_on_in_the_file_it_began_in(void **state) {
    char path[100];
    snprintf(path, sizeof path, "%s/index", (const char *)*state);
    dp_store *store = open_store(path, WRITING);
    dp_view *old = open_view(store), *now = open_view(store);
    struct stat known;
    write_numbers(store, 1, 20, 30);
    OK(dp_view_begin(old, error));
    for (int i = 0; i < 3; i++) {
        OK(dp_store_compact(store, keep_all, NULL, error));
        write_one(store, make_parts(21 + (uint64_t)i, 0, 30));
    }
    assert_int_equal(stat(name_in(path, "documents-1.mdb"), &known), -1);
    assert_int_equal(stat(name_in(path, "documents-4.mdb"), &known), 0);
    check_number(old, 20, 0, 30);
    assert_false(has_part(old, DP_PART_TRACE, 21));
    dp_moment moment;
    dp_view_moment(old, &moment);
    assert_int_equal(moment.generation, 1);
    OK(dp_view_begin(now, error));
    check_number(now, 23, 0, 30);
    dp_view_end(now);
    dp_view_end(old);
    OK(dp_view_begin(old, error));
    check_number(old, 23, 0, 30);
    dp_view_end(old);
    dp_view_free(old);
    dp_view_free(now);
    dp_store_close(store);
}

/* The map grows while a view is open. */
static void a_view_reads_on_while_the_map_grows(void **state) {
    dp_store *store = open_store(name_in(*state, "index"), (dp_store_options){.map = 1 << 20});
    dp_view *view = open_view(store);
    write_numbers(store, 1, 20, 30);
    OK(dp_view_begin(view, error));
    for (uint64_t i = 0; i < 10; i++)
        write_numbers(store, 100 + 100 * i, 199 + 100 * i, 1000);
    for (uint64_t number = 1; number <= 20; number++)
        check_number(view, number, 0, 30);
    assert_false(has_part(view, DP_PART_TRACE, 100));
    dp_view_end(view);
    OK(dp_view_begin(view, error));
    check_number(view, 1099, 0, 1000);
    dp_view_end(view);
    dp_view_free(view);
    dp_store_close(store);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folders, teardown_folders)
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_meanwhile_is_in_the_folder),
        TEST(what_is_written_meanwhile_is_in_memory),
        TEST(threads_read_and_write_on),
        TEST(a_view_reads_on_in_the_file_it_began_in),
        TEST(a_view_reads_on_while_the_map_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
