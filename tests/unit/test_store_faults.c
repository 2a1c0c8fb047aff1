/* test_store_faults.c - stores without memory, with calls that fail, on a disk that is full: what was acknowledged is
 * there, what was not is not, and the next write works. LMDB's own calls are not wrapped; they fail by a limit of file
 * sizes, or by a file that takes nothing. */
#include "faults.h"
#include "folders.h"

#include <dirent.h>

static char folder[64], copy[64];
static const char *store_path;

static void clear_folder(const char *path) {
    DIR *open = opendir(path);
    if (!open)
        return;
    closedir(open);
    entries(path, true);
    assert_int_equal(rmdir(path), 0);
}

static void clear(void) {
    int kinds = pause_faults();
    clear_folder(folder);
    clear_folder(copy);
    resume_faults(kinds);
}

static bool keep_odd(const dp_trace *trace, void *user) {
    (void)user;
    return trace->number % 2;
}

static doppel_status sum_value(uint64_t number, doppel_slice bytes, void *user) {
    uint64_t *sum = user;
    *sum = mixed(mixed(*sum, number), bytes.length);
    return DOPPEL_OK;
}

/* Numbers `from` to `to` as one change each, all linked to the first of them. */
static doppel_status write_some(dp_store *store, uint64_t from, uint64_t to) {
    int kinds = pause_faults();
    parts all[10];
    dp_change changes[10] = {{0}};
    size_t count = 0;
    for (uint64_t number = from; number <= to; number++, count++) {
        all[count] = make_parts(number, number == from ? 0 : from, 30);
        changes[count] = all[count].change;
        changes[count].count = from;
        changes[count].count_reason = 1;
    }
    resume_faults(kinds);
    doppel_status status = dp_store_write(store, changes, count, AT(to), NULL);
    kinds = pause_faults();
    while (count)
        free_parts(&all[--count]);
    resume_faults(kinds);
    return status;
}

static doppel_status read_all(dp_store *store, uint64_t *result) {
    dp_view *view;
    doppel_status status = dp_view_create(store, &view, NULL);
    if (status)
        return status;
    for (int part = 0; part < DP_PARTS && !status; part++) {
        dp_each each = {(dp_part)part, 0, UINT64_MAX, sum_value, NULL, result};
        if (!(status = dp_view_begin(view, NULL))) {
            status = dp_view_each(view, &each, NULL);
            dp_view_end(view);
        }
    }
    dp_view_free(view);
    return status;
}

/* What a write said is what is found afterwards, by whoever opens it next. */
static void check_acknowledged(uint64_t last, bool compacted) {
    int kinds = pause_faults();
    dp_store *store = open_store(folder, (dp_store_options){0});
    dp_view *view = open_view(store);
    dp_moment moment;
    OK(dp_view_begin(view, error));
    dp_view_moment(view, &moment);
    assert_int_equal(moment.last, last);
    for (uint64_t number = 1; number <= last; number++)
        if (!compacted || number % 2)
            check_number(view, number, number <= 5 ? (number == 1 ? 0 : 1) : number == 6 ? 0 : 6, 30);
    dp_view_end(view);
    dp_view_free(view);
    dp_store_close(store);
    findings f;
    doppel_verified verified;
    assert_int_equal(verify_folder(folder, &f, &verified), DOPPEL_OK);
    dp_buffer_free(&f.text);
    resume_faults(kinds);
}

static doppel_status use_store(dp_store *store, uint64_t *last, bool *compacted, uint64_t *result) {
    doppel_status status = write_some(store, 1, 5);
    if (status)
        return status;
    *last = 5;
    if ((status = read_all(store, result)) || (status = write_some(store, 6, 10)))
        return status;
    *last = 10;
    if ((status = read_all(store, result)))
        return status;
    *compacted = true;
    if ((status = dp_store_compact(store, keep_odd, NULL, NULL)) || (status = read_all(store, result)))
        return status;
    return store_path ? dp_store_backup(store, copy, NULL) : DOPPEL_OK;
}

static doppel_status open_and_use(uint64_t *result) {
    dp_store *store;
    uint64_t last = 0;
    bool compacted = false;
    clear();
    doppel_status status = dp_store_open(store_path, &(dp_store_options){.settings = "s"}, &store, NULL);
    if (status)
        return status;
    status = use_store(store, &last, &compacted, result);
    dp_store_close(store);
    if (store_path)
        check_acknowledged(last, compacted);
    return status;
}

/* ---- faults ---- */

static void without_memory_nothing_is_lost(void **state) {
    (void)state;
    store_path = NULL;
    run_with(open_and_use, (fault_plan){MEMORY, false, DOPPEL_ERROR_MEMORY, false, false});
    store_path = folder;
    run_with(open_and_use, (fault_plan){MEMORY, false, DOPPEL_ERROR_MEMORY, true, false});
}

static void a_call_that_fails_loses_nothing(void **state) {
    (void)state;
    store_path = folder;
    run_with(open_and_use, (fault_plan){SYSTEM, false, DOPPEL_ERROR_IO, true, false});
    run_with(open_and_use, (fault_plan){FILES, false, DOPPEL_ERROR_IO, true, false});
}

/* ---- a full disk ---- */

static void a_full_disk_refuses_and_goes_on_when_there_is_room(void **state) {
    (void)state;
    clear();
    store_path = folder;
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t room = 0; room < 300000; room += 40961) {
        dp_store *store = open_store(folder, (dp_store_options){0});
        dp_view *view = open_view(store);
        dp_moment before, after;
        OK(dp_view_begin(view, error));
        dp_view_moment(view, &before);
        dp_view_end(view);
        limit_files(room);
        doppel_error why = {.code = DOPPEL_OK};
        doppel_status status = DOPPEL_OK;
        uint64_t last = before.last;
        while (!status) {
            parts p = make_parts(last + 1, 0, 500);
            status = dp_store_write(store, &p.change, 1, AT(1), &why);
            free_parts(&p);
            last += !status;
        }
        assert_int_equal(status, DOPPEL_ERROR_IO);
        assert_true(strstr(why.message, "ulimit -f") || strstr(why.message, "full"));
        /* These may need less than there is. */
        status = dp_store_compact(store, keep_all, NULL, NULL);
        assert_true(status == DOPPEL_ERROR_IO || (room && !status));
        status = dp_store_backup(store, copy, NULL);
        assert_true(status == DOPPEL_ERROR_IO || (room && !status));
        assert_int_equal(access(copy, F_OK), status ? -1 : 0);
        clear_folder(copy);
        limit_files(RLIM_INFINITY);
        OK(dp_view_begin(view, error));
        dp_view_moment(view, &after);
        assert_int_equal(after.last, last);
        for (uint64_t number = before.last + 1; number <= last; number++)
            check_number(view, number, 0, 500);
        dp_view_end(view);
        write_one(store, make_parts(last + 1, 0, 500));
        dp_view_free(view);
        dp_store_close(store);
        verified_clean(folder, last + 1);
    }
    clear();
}

/* Puts /dev/full in the place of the file that LMDB writes its meta pages to. */
static void break_meta(void) {
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC, 0), broken = 0;
    assert_true(full >= 0);
    for (int number = 3; number < 1024; number++) {
        char name[40], path[200] = "";
        snprintf(name, sizeof name, "/proc/self/fd/%d", number);
        int flags = fcntl(number, F_GETFL);
        if (flags < 0 || !(flags & O_DSYNC) || readlink(name, path, sizeof path - 1) < 0 || !strstr(path, "documents-"))
            continue;
        assert_int_equal(dup2(full, number), number);
        broken++;
    }
    close(full);
    assert_int_equal(broken, 1);
}

static void a_commit_that_fails_half_way_is_none(void **state) {
    (void)state;
    clear();
    dp_store *store = open_store(folder, (dp_store_options){0});
    dp_view *view = open_view(store), *other_view = open_view(store);
    dp_moment moment;
    write_numbers(store, 1, 5, 10);
    for (uint64_t number = 6; number < 9; number++) {
        OK(dp_view_begin(view, error));
        dp_view_end(view);
        break_meta();
        parts p = make_parts(number, 0, 10);
        REFUSED(dp_store_write(store, &p.change, 1, AT(1), error), DOPPEL_ERROR_IO, "make room");
        OK(dp_view_begin(other_view, error));
        dp_view_moment(other_view, &moment);
        assert_int_equal(moment.last, number - 1);
        assert_false(has_part(other_view, DP_PART_TRACE, number));
        dp_view_end(other_view);
        write_one(store, p);
        OK(dp_view_begin(view, error));
        check_number(view, number, 0, 10);
        dp_view_end(view);
    }
    dp_view_free(view);
    dp_view_free(other_view);
    dp_store_close(store);
    verified_clean(folder, 8);
    clear();
}

static int setup_group(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s/doppel-store-faults.%d", quick_folder(), (int)getpid());
    snprintf(copy, sizeof copy, "%s/doppel-store-copy.%d", quick_folder(), (int)getpid());
    return 0;
}

static int teardown_group(void **state) {
    (void)state;
    clear();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_nothing_is_lost),
        cmocka_unit_test(a_call_that_fails_loses_nothing),
        cmocka_unit_test(a_full_disk_refuses_and_goes_on_when_there_is_room),
        cmocka_unit_test(a_commit_that_fails_half_way_is_none),
    };
    return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
