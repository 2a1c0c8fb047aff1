/* test_paths.c - the files that paths stand for, one by one: what is known of each before it is opened. */
#include "input_runs.h"

#include "input/reader.h"

#include <sys/stat.h>

/* Every file of a walk: its path, and its size or `?`. */
static void check_walk(const char *const *paths, size_t count, const doppel_tables *tables, const char *expected) {
    dp_path_walk walk;
    dp_walk_file file;
    dp_buffer found = {0};
    dp_walk_init(&walk, &(dp_input_paths){paths, count}, tables);
    while (dp_walk_next(&walk, &file))
        if (file.regular)
            dp_buffer_printf(&found, "%s %d\n", file.path, (int)file.size);
        else
            dp_buffer_printf(&found, "%s ?\n", file.path);
    assert_false(walk.no_memory);
    assert_false(dp_walk_next(&walk, &file));
    assert_true(dp_buffer_add(&found, "", 1));
    assert_string_equal(found.data, expected);
    dp_buffer_free(&found);
    dp_walk_free(&walk);
}

static void only_regular_files_have_a_size(void **state) {
    (void)state;
    const char *paths[] = {"-", "pipe", "missing", "empty", "a"};
    assert_int_equal(mkfifo("pipe", 0644), 0);
    write_text("empty", "");
    write_text("a", "123");
    check_walk(paths, 5, NULL, "- ?\npipe ?\nmissing ?\nempty 0\na 3\n");
    check_walk(paths, 0, NULL, "");
}

static void patterns_and_folders_give_their_files_in_byte_order(void **state) {
    (void)state;
    const char *paths[] = {"f/*", "f[1]", "none*", "f/a"};
    assert_int_equal(mkdir("f", 0755) | mkdir("f/b", 0755) | mkdir("f/b/deep", 0755) | mkdir("f/nothing", 0755), 0);
    write_text("f/c", "1");
    write_text("f/b/z", "22");
    write_text("f/b/deep/y", "333");
    write_text("f/a", "4444");
    write_text("f[1]", "55555"); /* what is there is taken as it is */
    check_walk(paths, 4, NULL, "f/a 4\nf/b/deep/y 3\nf/b/z 2\nf/c 1\nf[1] 5\nnone* ?\nf/a 4\n");
}

static bool is_table(const char *path, void *user) {
    (void)user;
    size_t length = strlen(path);
    return length > 6 && !strcmp(path + length - 6, ".table");
}

static void what_stands_beside_tables_is_left_out(void **state) {
    (void)state;
    const char *path = "f";
    doppel_tables tables = {.claims = is_table};
    assert_int_equal(mkdir("f", 0755) | mkdir("f/texts", 0755), 0);
    write_text("f/_SUCCESS", "");
    write_text("f/.part.crc", "1");
    write_text("f/part.table", "22");
    write_text("f/texts/_notes", "333");
    check_walk(&path, 1, &tables, "f/part.table 2\nf/texts/_notes 3\n");
    check_walk(&path, 1, NULL, "f/.part.crc 1\nf/_SUCCESS 0\nf/part.table 2\nf/texts/_notes 3\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(only_regular_files_have_a_size),
                                       TEST(patterns_and_folders_give_their_files_in_byte_order),
                                       TEST(what_stands_beside_tables_is_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
