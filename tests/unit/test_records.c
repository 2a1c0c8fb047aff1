/* test_records.c - records that are read again by their positions: files one after the other, and files that change. */
#include "files.h"

#include "batch/batch.h"

static void add_file(dp_record_files *files, const char *path) {
    dp_file_state state = dp_file_state_get(path);
    assert_true(dp_file_is_regular(path));
    assert_true(dp_record_files_add(files, path, &state, false));
}

static void check_record(dp_record_files *files, uint64_t position, const char *expected) {
    char bytes[32];
    size_t length = strlen(expected);
    assert_int_equal(dp_record_files_read(files, position, bytes, length, NULL), DOPPEL_OK);
    assert_memory_equal(bytes, expected, length);
}

/* The last record of one file and the first of the next are told apart, also where no line end is between them. */
static void positions_tell_files(void **state) {
    const char *const paths[] = {in(state, "a"), in(state, "b"), in(state, "c")};
    dp_record_files files = {0};
    spit(paths[0], "one\ntwo", 7);
    spit(paths[1], "", 0);
    spit(paths[2], "three\nfour\n", 11);
    add_file(&files, paths[0]);
    uint64_t one = dp_record_files_position(&files, 0, 3), two = dp_record_files_position(&files, 4, 3);
    add_file(&files, paths[1]);
    add_file(&files, paths[2]);
    uint64_t three = dp_record_files_position(&files, 0, 5), four = dp_record_files_position(&files, 6, 4);
    assert_true(one < two && two + 3 < three && three < four);
    assert_string_equal(dp_record_files_find(&files, two)->path, paths[0]);
    assert_string_equal(dp_record_files_find(&files, three)->path, paths[2]);
    check_record(&files, one, "one");
    check_record(&files, four, "four");
    check_record(&files, two, "two");
    check_record(&files, three, "three");
    assert_int_equal(dp_record_files_check(&files, NULL), DOPPEL_OK);
    dp_record_files_free(&files);
}

/* A file that grew while it was read has records beyond its size; the next file begins after them. */
static void files_that_grow_do_not_overlap(void **state) {
    const char *const paths[] = {in(state, "a"), in(state, "b")};
    dp_record_files files = {0};
    spit(paths[0], "one\n", 4);
    spit(paths[1], "two\n", 4);
    add_file(&files, paths[0]);
    uint64_t beyond = dp_record_files_position(&files, 100, 50);
    add_file(&files, paths[1]);
    assert_true(dp_record_files_position(&files, 0, 3) > beyond + 50);
    dp_record_files_free(&files);
}

static void changed_files_are_told(void **state) {
    static const char *const after[] = {"one", "one\ntwo\nthree\n", NULL};
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        const char *path = in(state, "a");
        dp_record_files files = {0};
        doppel_error error = {0};
        char bytes[3];
        spit(path, "one\ntwo\n", 8);
        add_file(&files, path);
        uint64_t position = dp_record_files_position(&files, 4, 3);
        unlink(path);
        if (after[i])
            spit(path, after[i], strlen(after[i]));
        assert_int_equal(dp_record_files_check(&files, &error), DOPPEL_ERROR_INPUT);
        assert_int_equal(dp_record_files_read(&files, position, bytes, 3, &error), DOPPEL_ERROR_INPUT);
        assert_non_null(strstr(error.message, "changed"));
        dp_record_files_free(&files);
    }
}

/* More files than stay open are read all the same. */
static void many_files(void **state) {
    enum { FILES = 300 };
    dp_record_files files = {0};
    uint64_t position[FILES];
    char text[16];
    for (int i = 0; i < FILES; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        snprintf(text, sizeof text, "%09d\n", i);
        spit(in(state, name), text, 10);
        add_file(&files, in(state, name));
        position[i] = dp_record_files_position(&files, 0, 9);
    }
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < FILES; i++) {
            snprintf(text, sizeof text, "%09d", i);
            check_record(&files, position[i], text);
        }
    dp_record_files_free(&files);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(positions_tell_files),
        TEST(files_that_grow_do_not_overlap),
        TEST(changed_files_are_told),
        TEST(many_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
