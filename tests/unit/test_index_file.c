/* test_index_file.c - an index saved and opened again, and files that cannot be written (docs/FORMAT.md). */
#include "index_files.h"

#include <signal.h>

/* ---- there and back ---- */

static const struct {
    int bits;
    const char *layout;
} shapes[] = {{64, NULL},    {64, "4x16"}, {64, "scan"}, {64, "5c2x12"}, {128, NULL},
              {128, "8x10"}, {16, NULL},   {33, "3x8"},  {7, NULL}};

static void what_was_saved_is_what_opens(void **state) {
    const char *path = in(state, "index");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        doppel_index *index = make_rich(shapes[i].bits, shapes[i].layout);
        valid(index);
        save(index, path);
        doppel_index *opened = open_index(path);
        valid(opened);
        same_indexes(index, opened);
        doppel_index_stats was, is;
        doppel_index_get_stats(index, &was);
        doppel_index_get_stats(opened, &is);
        assert_int_equal(is.entries, was.entries);
        assert_int_equal(is.bits, shapes[i].bits);
        assert_int_equal(is.distance, was.distance);
        doppel_index_free(index);
        doppel_index_free(opened);
    }
    assert_int_equal(entries(*state, false), 1);
}

static void same_finds(const doppel_index *a, const doppel_index *b, int bits) {
    doppel_matches x = {0}, y = {0};
    for (uint64_t i = 0; i < 200; i++)
        for (int distance = 0; distance <= bits && distance < 12; distance += 3) {
            uint64_t query[2];
            fingerprint(bits, i, query);
            query[0] ^= i % 2;
            doppel_find_options options = {.size = sizeof options, .now = i % 3 ? 0 : 1050};
            assert_int_equal(doppel_index_find(a, query, distance, &options, &x, NULL), DOPPEL_OK);
            assert_int_equal(doppel_index_find(b, query, distance, &options, &y, NULL), DOPPEL_OK);
            assert_true(same_entries(&x, &y));
        }
    doppel_matches_free(&x);
    doppel_matches_free(&y);
}

static void an_opened_index_finds_the_same(void **state) {
    const char *path = in(state, "index");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        doppel_index *index = make_rich(shapes[i].bits, shapes[i].layout);
        save(index, path);
        doppel_index *opened = open_index(path);
        same_finds(index, opened, shapes[i].bits);
        doppel_index_free(index);
        doppel_index_free(opened);
    }
}

static void an_index_of_nothing_and_of_one(void **state) {
    const char *path = in(state, "index");
    for (uint64_t count = 0; count < 2; count++)
        for (int many = 0; many < 2; many++) {
            doppel_index *index = make(64, NULL);
            if (count && many)
                add_many(index, 64, 5, 6);
            else if (count)
                add_one(index, 64, 5, 0);
            save(index, path);
            doppel_index *opened = open_index(path);
            valid(opened);
            same_indexes(index, opened);
            same_finds(index, opened, 64);
            doppel_index_stats stats;
            doppel_index_get_stats(opened, &stats);
            assert_int_equal(stats.entries, count);
            add_one(opened, 64, 9, 0);
            valid(opened);
            doppel_index_free(index);
            doppel_index_free(opened);
        }
}

static void a_layout_that_was_forced_stays_forced(void **state) {
    const char *path = in(state, "index");
    doppel_index *index = make(64, "4x16");
    add_many(index, 64, 0, 50);
    save(index, path);
    doppel_index *opened = open_index(path);
    add_many(opened, 64, 50, 5000);
    compact(opened);
    doppel_index_stats stats;
    doppel_index_get_stats(opened, &stats);
    assert_string_equal(stats.layout, "4x16");
    doppel_index_free(index);
    doppel_index_free(opened);
}

static void an_opened_index_can_be_changed_and_the_file_stays(void **state) {
    const char *path = in(state, "index"), *before = in(state, "before");
    doppel_index *index = make_rich(64, NULL);
    save(index, path);
    save(index, before);
    doppel_index *opened = open_index(path);
    for (int i = 0; i < 2; i++) {
        doppel_index *each = i ? opened : index;
        for (uint64_t k = 0; k < 130; k += 5)
            remove_one(each, 64, k);
        for (uint64_t k = 2; k < 130; k += 5)
            add_one(each, 64, k, 5000 + k);
        for (uint64_t k = 200; k < 9000; k++)
            add_one(each, 64, k, 0);
        valid(each);
    }
    same_indexes(index, opened);
    same_files(path, before);
    compact(opened);
    valid(opened);
    same_indexes(index, opened);
    same_files(path, before);
    doppel_index_free(index);
    doppel_index_free(opened);
}

static void a_mapped_index_saves_the_same_bytes(void **state) {
    const char *path = in(state, "index"), *again = in(state, "again");
    doppel_index *index = make_rich(64, NULL);
    save(index, path);
    doppel_index *opened = open_index(path);
    save(opened, again);
    same_files(path, again);
    /* Over the very file it is mapped from. */
    remove_one(opened, 64, 2);
    add_one(opened, 64, 700, 3);
    save(opened, path);
    doppel_index *next = open_index(path);
    valid(next);
    same_indexes(next, opened);
    doppel_index_free(index);
    doppel_index_free(opened);
    doppel_index_free(next);
}

static void a_file_may_go_while_it_is_open(void **state) {
    const char *path = in(state, "index");
    doppel_index *index = make_rich(64, NULL);
    save(index, path);
    doppel_index *opened = open_index(path);
    assert_int_equal(unlink(path), 0);
    same_indexes(index, opened);
    doppel_index_free(index);
    doppel_index_free(opened);
}

/* ---- files that cannot be written ---- */

static void cannot_save(const doppel_index *index, const char *path, const char *reason) {
    doppel_error error;
    assert_int_equal(doppel_index_save(index, path, &error), DOPPEL_ERROR_IO);
    assert_string_equal(error.file, path);
    if (!strstr(error.message, reason)) {
        print_error("`%s` lacks `%s`\n", error.message, reason);
        fail();
    }
}

static void a_path_that_cannot_be_written(void **state) {
    doppel_index *index = make_rich(64, NULL);
    cannot_save(index, in(state, "missing/index"), "/missing does not exist");
    cannot_save(index, "/proc/index", "");
    const char *folder = in(state, "folder");
    assert_int_equal(mkdir(folder, 0700), 0);
    cannot_save(index, folder, "directory");
    assert_int_equal(entries(*state, false), 1);
    doppel_index_free(index);
}

static void a_full_disk_leaves_the_old_file(void **state) {
    const char *path = in(state, "index"), *old = in(state, "old");
    doppel_index *index = make_rich(64, NULL);
    save(index, path);
    save(index, old);
    add_many(index, 64, 0, 5000);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t most = 0; most < 100000; most += 9973) {
        limit_files(most);
        cannot_save(index, path, "File too large");
        limit_files(RLIM_INFINITY);
        same_files(path, old);
        assert_int_equal(entries(*state, false), 2);
    }
    save(index, path);
    doppel_index *opened = open_index(path);
    same_indexes(index, opened);
    doppel_index_free(index);
    doppel_index_free(opened);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_saved_is_what_opens, setup, teardown),
        cmocka_unit_test_setup_teardown(an_opened_index_finds_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(an_index_of_nothing_and_of_one, setup, teardown),
        cmocka_unit_test_setup_teardown(a_layout_that_was_forced_stays_forced, setup, teardown),
        cmocka_unit_test_setup_teardown(an_opened_index_can_be_changed_and_the_file_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(a_mapped_index_saves_the_same_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_may_go_while_it_is_open, setup, teardown),
        cmocka_unit_test_setup_teardown(a_path_that_cannot_be_written, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_disk_leaves_the_old_file, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
