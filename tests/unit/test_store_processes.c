/* test_store_processes.c - index folders with other processes: writers, readers that follow, ones that are killed; maps
 * that grow, files that are compacted and copied, and folders that can only be read. */
#include "folders.h"

#include <pthread.h>
#include <sys/select.h>

/* ---- other processes ---- */

static void hold_open(int from, int to, const char *path) {
    dp_store *store;
    MUST(!dp_store_open(path, &WRITING, &store, NULL));
    tell_byte(to);
    wait_byte(from);
}

static void another_writer_is_named(void **state) {
    const char *path = in(state, "index");
    char name[40];
    make_folder(path, 5, 5);
    other writer = start_other(hold_open, path);
    assert_true(wait_byte(writer.from));
    snprintf(name, sizeof name, "process %d (", (int)writer.process);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, name);
    check_folder(path, 5, 5);
    end_other(&writer, SIGKILL);
    dp_store *store = open_store(path, WRITING);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "this process has it open");
    OPEN_REFUSED(path, READING, DOPPEL_ERROR_STORE, "this process has it open");
    dp_store_close(store);
}

/* Says a byte for each number that is there. */
static void follow(int from, int to, const char *path) {
    dp_store *store;
    dp_view *view = NULL;
    dp_moment moment;
    uint64_t last = 0, generation = 0;
    MUST(!dp_store_open(path, &READING, &store, NULL) && !dp_view_create(store, &view, NULL));
    tell_byte(to);
    while (wait_byte(from)) {
        MUST(!dp_view_begin(view, NULL));
        dp_view_moment(view, &moment);
        MUST(moment.last >= last && moment.generation >= generation);
        last = moment.last;
        generation = moment.generation;
        doppel_slice bytes;
        MUST(!dp_view_get(view, DP_PART_RECORD, last, &bytes, NULL) && bytes.data);
        dp_view_end(view);
        uint64_t said[2] = {last, generation};
        MUST(write(to, said, sizeof said) == sizeof said);
    }
    dp_view_free(view);
    dp_store_close(store);
}

static void follower_is_at(other *reader, uint64_t last, uint64_t generation) {
    uint64_t said[2] = {0, 0};
    tell_byte(reader->to);
    assert_int_equal(read(reader->from, said, sizeof said), sizeof said);
    assert_int_equal(said[0], last);
    assert_int_equal(said[1], generation);
}

static void a_reader_process_follows(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 5, 5);
    other reader = start_other(follow, path);
    assert_true(wait_byte(reader.from));
    dp_store *store = open_store(path, (dp_store_options){.map = 1 << 20});
    follower_is_at(&reader, 5, 1);
    write_numbers(store, 6, 10, 5);
    follower_is_at(&reader, 10, 1);
    OK(dp_store_compact(store, keep_all, NULL, error));
    follower_is_at(&reader, 10, 2);
    write_numbers(store, 11, 20, 20000);
    follower_is_at(&reader, 20, 2);
    OK(dp_store_compact(store, keep_all, NULL, error));
    OK(dp_store_compact(store, keep_all, NULL, error));
    follower_is_at(&reader, 20, 4);
    assert_int_equal(entries(path, false), 4);
    assert_int_equal(end_other(&reader, 0), 0);
    dp_store_close(store);
    verified_clean(path, 20);
}

/* Opens and closes, while another writes. */
static void open_often(int from, int to, const char *path) {
    (void)from;
    for (int i = 0; i < 300; i++) {
        dp_store *store;
        dp_view *view = NULL;
        dp_moment moment;
        doppel_slice bytes;
        doppel_error error;
        if (dp_store_open(path, &READING, &store, &error)) {
            fprintf(stderr, "%s: %s\n", error.file, error.message);
            _exit(4);
        }
        MUST(!dp_view_create(store, &view, NULL) && !dp_view_begin(view, NULL));
        dp_view_moment(view, &moment);
        MUST(!dp_view_get(view, DP_PART_SET, moment.last, &bytes, NULL) && bytes.data);
        dp_view_end(view);
        dp_view_free(view);
        dp_store_close(store);
    }
    tell_byte(to);
}

static void a_folder_can_be_opened_while_it_is_written(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 1, 10);
    dp_store *store = open_store(path, WRITING);
    other reader = start_other(open_often, path);
    uint64_t seed = 9, number = 2;
    struct timeval none = {0, 0};
    fd_set wanted;
    do {
        parts p = make_parts(number, 0, 1 + random_below(&seed, random_below(&seed, 4) ? 250 : 7500));
        p.change.remove = number > 50 && random_below(&seed, 3) ? number - 1 - random_below(&seed, 40) : 0;
        write_one(store, p);
        if (number++ % 100 == 0)
            OK(dp_store_compact(store, keep_all, NULL, error));
        FD_ZERO(&wanted);
        FD_SET(reader.from, &wanted);
    } while (!select(reader.from + 1, &wanted, NULL, NULL, &none));
    assert_int_equal(end_other(&reader, 0), 0);
    dp_store_close(store);
}

/* What may be mapped is limited: so much more than now. */
static void open_small(int from, int to, const char *path) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    (void)from, (void)to;
    MUST(file && fscanf(file, "%llu", &pages) == 1);
    fclose(file);
    struct rlimit limit = {pages * 4096 + ((rlim_t)1 << 30), RLIM_INFINITY};
    MUST(!setrlimit(RLIMIT_AS, &limit));
    dp_store *store = NULL;
    MUST(!dp_store_open(path, &WRITING, &store, NULL));
    write_numbers(store, 3, 5, 10);
    dp_store_close(store);
}

static void less_address_space_is_enough(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 2, 10);
    other small = start_other(open_small, path);
    assert_int_equal(end_other(&small, 0), 0);
    check_folder(path, 5, 10);
}

/* A child of the writer that lives on does not keep others from writing. */
static void sleep_on(int from, int to, const char *path) {
    (void)to, (void)path;
    wait_byte(from);
}

static void the_lock_goes_with_the_store(void **state) {
    const char *path = in(state, "index");
    dp_store *store = open_store(path, WRITING);
    other child = start_other(sleep_on, path);
    dp_store_close(store);
    other writer = start_other(hold_open, path);
    assert_true(wait_byte(writer.from));
    end_other(&writer, SIGKILL);
    end_other(&child, 0);
}

/* A reader with a small map meets a file that has outgrown it. */
static void follow_small(int from, int to, const char *path) {
    dp_store *store;
    dp_view *view = NULL;
    MUST(!dp_store_open(path, &(dp_store_options){.read_only = true, .map = 1 << 20}, &store, NULL));
    MUST(!dp_view_create(store, &view, NULL) && !dp_view_begin(view, NULL));
    dp_view_end(view);
    tell_byte(to);
    wait_byte(from);
    for (int i = 0; i < 3; i++) {
        doppel_slice bytes;
        MUST(!dp_view_begin(view, NULL) && !dp_view_get(view, DP_PART_SET, 200, &bytes, NULL));
        MUST(bytes.length == 8 * 3000);
        dp_view_end(view);
    }
    dp_view_free(view);
    dp_store_close(store);
}

static void read_on(dp_store *store, dp_view *view, uint64_t *last) {
    dp_moment moment;
    (void)store;
    OK(dp_view_begin(view, error));
    dp_view_moment(view, &moment);
    assert_true(moment.last >= *last);
    *last = moment.last;
    if (*last)
        check_number(view, *last, 0, 3000);
    dp_view_end(view);
}

typedef struct reading {
    dp_store *store;
    _Atomic bool stop;
} reading;

static void *keep_reading(void *given) {
    reading *r = given;
    dp_view *view = open_view(r->store);
    uint64_t last = 0;
    while (!atomic_load(&r->stop))
        read_on(r->store, view, &last);
    dp_view_free(view);
    return NULL;
}

static void the_map_grows_under_views(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 1, 3000);
    other small = start_other(follow_small, path);
    assert_true(wait_byte(small.from));
    reading r = {.store = open_store(path, (dp_store_options){.map = 1 << 20})};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_reading, &r), 0);
    for (uint64_t first = 2; first < 400; first += 20)
        write_numbers(r.store, first, first + 19, 3000);
    atomic_store(&r.stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    tell_byte(small.to);
    assert_int_equal(end_other(&small, 0), 0);
    dp_store_close(r.store);
    check_folder(path, 401, 3000);
}

static void write_on(int from, int to, const char *path) {
    dp_store *store;
    (void)from;
    MUST(!dp_store_open(path, &WRITING, &store, NULL));
    dp_view *view = NULL;
    dp_moment moment;
    MUST(!dp_view_create(store, &view, NULL) && !dp_view_begin(view, NULL));
    dp_view_moment(view, &moment);
    dp_view_end(view);
    for (uint64_t number = moment.last + 1;; number++) {
        parts p = make_parts(number, 0, 100);
        MUST(!dp_store_write(store, &p.change, 1, number, NULL));
        if (number % 16 == 0)
            MUST(!dp_store_compact(store, keep_all, NULL, NULL));
        if (write(to, &number, sizeof number) != sizeof number)
            _exit(0);
        free_parts(&p);
    }
}

static void what_was_written_survives_a_kill(void **state) {
    const char *path = in(state, "index");
    uint64_t last = 0, said, seed = 5;
    for (int round = 0; round < 10; round++) {
        other writer = start_other(write_on, path);
        uint64_t until = last + 1 + random_below(&seed, 40);
        for (said = 0; said < until;)
            assert_int_equal(read(writer.from, &said, sizeof said), sizeof said);
        usleep((useconds_t)random_below(&seed, 2000));
        kill(writer.process, SIGKILL);
        while (read(writer.from, &said, sizeof said) == sizeof said)
            ;
        end_other(&writer, SIGKILL);
        dp_store *store = open_store(path, WRITING);
        dp_view *view = open_view(store);
        dp_moment moment;
        OK(dp_view_begin(view, error));
        dp_view_moment(view, &moment);
        assert_true(moment.last == said || moment.last == said + 1);
        for (uint64_t number = 1; number <= moment.last; number++)
            check_number(view, number, 0, 100);
        last = moment.last;
        dp_view_end(view);
        dp_view_free(view);
        dp_store_close(store);
        verified_clean(path, last);
    }
}

/* ---- copies ---- */

static void a_backup_is_made_while_writes_go_on(void **state) {
    const char *path = in(state, "index"), *copy = in(state, "copy");
    make_folder(path, 60, 400);
    reading r = {.store = open_store(path, WRITING)};
    write_numbers(r.store, 61, 70, 400);
    OK(dp_store_backup(r.store, copy, error));
    write_numbers(r.store, 71, 80, 400);
    REFUSED(dp_store_backup(r.store, copy, error), DOPPEL_ERROR_USAGE, "not empty");
    REFUSED(dp_store_backup(r.store, in(state, "no/copy"), error), DOPPEL_ERROR_IO, "there is no folder");
    dp_store_close(r.store);
    verified_clean(copy, 70);
    check_folder(copy, 70, 400);
    check_folder(path, 80, 400);
    assert_int_equal(entries(in(state, ""), false), 2);
}

static void compacting_shrinks_the_file(void **state) {
    const char *path = in(state, "index");
    dp_store *store = open_store(path, WRITING);
    dp_view *view = open_view(store);
    dp_store_info before, after;
    write_numbers(store, 1, 100, 1000);
    for (uint64_t number = 101; number < 191; number++)
        write_one(store, make_removal(number, number - 100));
    OK(dp_view_begin(view, error));
    dp_view_info(view, &before);
    dp_view_end(view);
    assert_true(before.free_bytes > 100000);
    assert_true(before.disk_bytes > 800000);
    OK(dp_store_compact(store, keep_all, NULL, error));
    OK(dp_view_begin(view, error));
    dp_view_info(view, &after);
    assert_int_equal(after.entries[DP_PART_TRACE], 10);
    assert_int_equal(after.generation, before.generation + 1);
    assert_int_equal(after.last, before.last);
    assert_true(after.disk_bytes < before.disk_bytes / 4);
    dp_view_end(view);
    dp_view_free(view);
    dp_store_close(store);
    verified_clean(path, 10);
}

/* ---- read-only ---- */

/* Root may write everywhere: another user tries. */
static void try_as_nobody(int from, int to, const char *path) {
    dp_store *store;
    dp_view *view = NULL;
    doppel_error error;
    doppel_slice bytes;
    (void)from, (void)to;
    if (!getuid())
        MUST(!setgid(65534) && !setuid(65534));
    MUST(dp_store_open(path, &WRITING, &store, &error) == DOPPEL_ERROR_IO);
    MUST(strstr(error.message, "only have to read it") != NULL);
    MUST(!dp_store_open(path, &READING, &store, NULL) && !dp_view_create(store, &view, NULL));
    MUST(!dp_view_begin(view, NULL) && !dp_view_get(view, DP_PART_SET, 7, &bytes, NULL));
    MUST(bytes.length == 80);
    dp_view_end(view);
    MUST(dp_store_write(store, NULL, 0, 1, &error) == DOPPEL_ERROR_USAGE);
    MUST(dp_store_compact(store, keep_all, NULL, &error) == DOPPEL_ERROR_USAGE);
    dp_view_free(view);
    dp_store_close(store);
    doppel_verified verified;
    MUST(!dp_store_verify(path, NULL, NULL, &verified, NULL) && verified.documents == 8);
}

static void a_folder_that_cannot_be_written_can_be_read(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 8, 10);
    const char *names[] = {"doppel.index", "documents-1.mdb", "documents-1.mdb-lock", "writer.lock"};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(chmod(name_in(path, names[i]), 0444), 0);
    assert_int_equal(chmod(path, 0555), 0);
    assert_int_equal(chmod(*state, 0755), 0);
    other nobody = start_other(try_as_nobody, path);
    assert_int_equal(end_other(&nobody, 0), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folders, teardown_folders)
    const struct CMUnitTest tests[] = {
        TEST(another_writer_is_named),
        TEST(a_reader_process_follows),
        TEST(a_folder_can_be_opened_while_it_is_written),
        TEST(less_address_space_is_enough),
        TEST(the_lock_goes_with_the_store),
        TEST(the_map_grows_under_views),
        TEST(what_was_written_survives_a_kill),
        TEST(a_backup_is_made_while_writes_go_on),
        TEST(compacting_shrinks_the_file),
        TEST(a_folder_that_cannot_be_written_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
