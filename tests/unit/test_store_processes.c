/* test_store_processes.c - index folders with other processes: writers, readers that follow, ones that are killed; maps
 * that grow, files that are compacted and copied, and folders that can only be read. */
#include "folders.h"

#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
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
    assert_int_equal(entries(path, false), 5);
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
        MUST(!dp_store_write(store, &p.change, 1, AT(number), NULL));
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

/* ---- other users ---- */

enum { NOBODY = 65534 };

/* Root may write everywhere: another user tries. */
static void become_nobody(void) {
    if (!getuid())
        MUST(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
}

/* Without the lock a writer would not know what is being read: nobody reads beside it. */
static void be_refused(int from, int to, const char *path) {
    dp_store *store;
    doppel_error error;
    doppel_verified verified;
    (void)from, (void)to;
    become_nobody();
    MUST(dp_store_open(path, &WRITING, &store, &error) == DOPPEL_ERROR_IO);
    MUST(strstr(error.message, "Permission denied") != NULL);
    MUST(dp_store_open(path, &READING, &store, &error) == DOPPEL_ERROR_IO);
    MUST(strstr(error.file, "documents-1.mdb-lock") != NULL);
    MUST(strstr(error.message, "chgrp -R GROUP") && strstr(error.message, "chmod g+w documents-1.mdb-lock"));
    MUST(dp_store_check(path, NULL, NULL, &verified, &error) && strstr(error.message, "mdb-lock"));
}

/* The number of the generation goes up by one each time the parent says so. */
static void read_as_nobody(int from, int to, const char *path) {
    dp_store *store;
    dp_view *view = NULL;
    doppel_error error = {0};
    doppel_slice bytes;
    char copy[400];
    snprintf(copy, sizeof copy, "%s-copy", path);
    become_nobody();
    MUST(dp_store_open(path, &WRITING, &store, &error) == DOPPEL_ERROR_IO);
    MUST(!dp_store_open(path, &READING, &store, NULL) && !dp_view_create(store, &view, NULL));
    for (uint64_t generation = 1; generation < 4; generation++) {
        dp_moment moment;
        MUST(!dp_view_begin(view, NULL) && !dp_view_get(view, DP_PART_SET, 7, &bytes, NULL));
        dp_view_moment(view, &moment);
        MUST(bytes.length == 80 && moment.generation == generation);
        dp_view_end(view);
        MUST(write(to, "x", 1) == 1 && wait_byte(from));
    }
    MUST(!dp_store_backup(store, copy, &error));
    MUST(dp_store_write(store, NULL, 0, AT(1), &error) == DOPPEL_ERROR_USAGE);
    MUST(dp_store_compact(store, keep_all, NULL, &error) == DOPPEL_ERROR_USAGE);
    dp_view_free(view);
    dp_store_close(store);
    doppel_verified verified;
    MUST(!dp_store_check(path, NULL, NULL, &verified, NULL) && verified.documents == 8);
}

static void who_may_not_write_to_the_lock_may_not_read(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 8, 10);
    const char *names[] = {"doppel.index", "documents-1.mdb", "documents-1.mdb-lock", "writer.lock"};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(chmod(name_in(path, names[i]), 0444), 0);
    assert_int_equal(chmod(path, 0555), 0);
    assert_int_equal(chmod(*state, 0755), 0);
    other nobody = start_other(be_refused, path);
    assert_int_equal(end_other(&nobody, 0), 0);
}

static void check_mode(const char *path, unsigned mode, gid_t group) {
    struct stat is;
    assert_int_equal(stat(path, &is), 0);
    assert_int_equal(is.st_mode & 07777, mode);
    assert_int_equal(is.st_gid, group);
}

static void check_modes(const char *path, uint64_t generation) {
    char data[64], lock[64];
    snprintf(data, sizeof data, "documents-%llu.mdb", (unsigned long long)generation);
    snprintf(lock, sizeof lock, "documents-%llu.mdb-lock", (unsigned long long)generation);
    check_mode(path, 02750, NOBODY);
    check_mode(name_in(path, "doppel.index"), 0640, NOBODY);
    check_mode(name_in(path, data), 0640, NOBODY);
    check_mode(name_in(path, lock), 0660, NOBODY);
}

/* The group of the folder reads, whatever the umask, and goes on when it is compacted. */
static void a_group_can_read(void **state) {
    const char *path = in(state, "index");
    mode_t before = umask(0077);
    if (getuid()) {
        printf("SKIPPED: only root can become another user\n");
        skip();
    }
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chown(path, 0, NOBODY), 0);
    assert_int_equal(chmod(*state, 0777), 0);
    dp_store *store = open_store(path, (dp_store_options){.settings = "x=1\n", .group_readable = true});
    write_numbers(store, 1, 8, 10);
    check_modes(path, 1);
    other nobody = start_other(read_as_nobody, path);
    for (uint64_t generation = 2; generation < 4; generation++) {
        assert_true(wait_byte(nobody.from));
        OK(dp_store_compact(store, keep_all, NULL, error));
        check_modes(path, generation);
        tell_byte(nobody.to);
    }
    assert_true(wait_byte(nobody.from));
    tell_byte(nobody.to);
    assert_int_equal(end_other(&nobody, 0), 0);
    dp_store_close(store);
    verified_clean(in(state, "index-copy"), 8);
    /* A lock that is made anew is for the group, too. */
    unlink(name_in(path, "documents-3.mdb-lock"));
    dp_store_close(open_store(path, WRITING));
    check_modes(path, 3);
    umask(before);
}

/* An index that was not made so: what its owner did by hand stays, and the option does the same. */
static void access_that_was_granted_stays(void **state) {
    const char *path = in(state, "index");
    mode_t before = umask(0077);
    make_folder(path, 8, 10);
    assert_int_equal(chmod(name_in(path, "doppel.index"), 0644), 0);
    assert_int_equal(chmod(name_in(path, "documents-1.mdb"), 0640), 0);
    assert_int_equal(chmod(name_in(path, "documents-1.mdb-lock"), 0666), 0);
    dp_store *store = open_store(path, WRITING);
    OK(dp_store_compact(store, keep_all, NULL, error));
    dp_store_close(store);
    check_mode(name_in(path, "doppel.index"), 0644, getgid());
    check_mode(name_in(path, "documents-2.mdb"), 0640, getgid());
    check_mode(name_in(path, "documents-2.mdb-lock"), 0666, getgid());
    dp_store_close(open_store(path, (dp_store_options){.group_readable = true}));
    check_mode(path, 02750, getgid());
    umask(before);
}

/* ---- read-only mounts ---- */

enum { NOT_PERMITTED = 77 };

/* In a child, so that its mounts end with it: the folder once more, read-only. */
static void read_by_mount(int from, int to, const char *path) {
    char mounted[400];
    dp_store *store, *writer;
    doppel_error error;
    (void)from, (void)to;
    snprintf(mounted, sizeof mounted, "%s-mounted", path);
    MUST(!mkdir(mounted, 0777));
    if (unshare(CLONE_NEWNS) || mount("", "/", "", MS_REC | MS_PRIVATE, "") || mount(path, mounted, "", MS_BIND, "") ||
        mount("", mounted, "", MS_REMOUNT | MS_BIND | MS_RDONLY, ""))
        _exit(NOT_PERMITTED);
    /* A process that writes through the other mount. */
    MUST(!dp_store_open(path, &WRITING, &writer, NULL));
    pid_t reader = fork();
    if (!reader) {
        MUST(dp_store_open(mounted, &READING, &store, &error) == DOPPEL_ERROR_IO);
        MUST(strstr(error.message, "read-only mount") != NULL);
        _exit(0);
    }
    int ended;
    MUST(waitpid(reader, &ended, 0) == reader && !ended);
    dp_store_close(writer);
    /* And one that comes while it is read. */
    MUST(!dp_store_open(mounted, &READING, &store, NULL));
    pid_t late = fork();
    if (!late) {
        MUST(dp_store_open(path, &WRITING, &writer, &error) == DOPPEL_ERROR_IO);
        MUST(strstr(error.message, "read-only mount") != NULL);
        _exit(0);
    }
    MUST(waitpid(late, &ended, 0) == late && !ended);
    dp_store_close(store);
    MUST(!dp_store_open(path, &WRITING, &writer, NULL));
    dp_store_close(writer);
}

static void a_read_only_mount_is_read_while_nobody_writes(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 8, 10);
    other process = start_other(read_by_mount, path);
    int ended = end_other(&process, 0);
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == NOT_PERMITTED) {
        printf("SKIPPED: this user may not mount a folder here\n");
        skip();
    }
    assert_int_equal(ended, 0);
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
        TEST(who_may_not_write_to_the_lock_may_not_read),
        TEST(a_group_can_read),
        TEST(access_that_was_granted_stays),
        TEST(a_read_only_mount_is_read_while_nobody_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
