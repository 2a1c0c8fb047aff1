/* test_embed.c - the command inside a program that has tables (programs/common/embed.h): dedup reads them, and writes
 * them through the program's writer, which learns whether to keep what it wrote.
 *
 * Each command runs in a process of its own; what the writer is asked for goes to the file `calls`. */
#include "files.h"
#include "tables.h"
#include "work_folder.h"

#include "common/embed.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- a writer of tables ---- */

static FILE *calls;

/* Which of its calls fails. */
static const char *failing;

static doppel_status end_call(const char *name, doppel_error *error) {
    fflush(calls);
    if (!failing || strcmp(failing, name) != 0)
        return DOPPEL_OK;
    char why[40];
    snprintf(why, sizeof why, "cannot %s tables", name);
    return fail_with(error, DOPPEL_ERROR_IO, why);
}

static doppel_status create_tables(const table_output *output, void **writer, void *user, doppel_error *error) {
    (void)user;
    fprintf(calls, "create %s %s%s:", output->output ? output->output : "-", output->folder ? output->folder : "-",
            output->annotate ? " annotate" : "");
    for (size_t i = 0; i < output->input_count; i++)
        fprintf(calls, " %s", output->inputs[i]);
    fprintf(calls, "\n");
    assert_non_null(output->stop);
    doppel_status status = end_call("create", error);
    *writer = status == DOPPEL_OK ? calls : NULL;
    return status;
}

/* The rows that stay. */
static doppel_status write_table(void *writer, const doppel_batch *batch, const doppel_batch_rows *rows, void *user,
                                 doppel_error *error) {
    (void)user;
    fprintf(writer, "write %s%s", rows->path, rows->positions ? "" : " which is no table");
    for (uint64_t i = 0; rows->positions && i < rows->count; i++) {
        doppel_near near = {0};
        if (rows->positions[i] != DOPPEL_NO_POSITION)
            doppel_batch_get(batch, rows->positions[i], &near);
        if (rows->positions[i] != DOPPEL_NO_POSITION && near.a == near.b)
            fprintf(writer, " %llu", (unsigned long long)i);
    }
    fprintf(writer, "\n");
    return end_call("write", error);
}

static doppel_status finish_tables(void *writer, bool ok, void *user, doppel_error *error) {
    (void)user;
    fprintf(calls, "finish%s %s\n", writer ? "" : " nothing", ok ? "well" : "badly");
    return end_call("finish", error);
}

/* ---- runs ---- */

static const table_row rows[] = {{.id = "a0", .text = "the first of some words"},
                                 {.id = "a1"},
                                 {.id = "a2", .text = "the first of some words"},
                                 {.id = "a3", .text = "quite other words than those"}},
                       more[] = {{.id = "b0", .text = "quite other words than those"}, {.id = "b1", .text = "last"}};

/* Runs doppel dedup with these arguments, NULL at the end; gives its exit code. */
static int run_command(bool with_tables, const char *const *arguments) {
    test_table table[] = {{.path = "a.table", .rows = rows, .count = 4}, {.path = "b.table", .rows = more, .count = 2}};
    test_tables tables;
    tables_begin(&tables, table, 2);
    const embedded_tables embedded = {
        .read = &tables.calls, .create = create_tables, .write = write_table, .finish = finish_tables};
    const char *argv[16] = {"doppel", "dedup", "--method", "exact"};
    int argc = 4, status = 0;
    for (; *arguments; arguments++)
        argv[argc++] = *arguments;
    pid_t child = fork();
    if (!child) {
        calls = fopen("calls", "w");
        if (!calls || !freopen("stderr", "w", stderr) || !freopen("stdout", "w", stdout))
            _exit(99);
        embed_tables(with_tables ? &embedded : NULL);
        int code = doppel_main(argc, (char **)(uintptr_t)argv);
        fflush(NULL);
        _exit(code);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    tables_end(&tables);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_file(const char *path, const char *expected) {
    dp_buffer bytes = slurp(path);
    dp_buffer_add(&bytes, "", 1);
    assert_string_equal(bytes.data, expected);
    dp_buffer_free(&bytes);
}

#define RUN(with_tables, ...) run_command(with_tables, (const char *const[]){__VA_ARGS__, NULL})

#define SAID "doppel: a.table:2: \"text\" is null\ndoppel: 1 record left out\n"
#define DONE "doppel: 5 documents: 3 kept, 2 removed (40.0 %) in 2 groups\n"

static void rows_that_stay_are_written_as_tables(void **state) {
    (void)state;
    assert_int_equal(RUN(true, "a.table", "b.table", "-o", "out.table", "--threads", "2"), 0);
    expect_file("calls", "create out.table -: a.table b.table\nwrite a.table 0 3\nwrite b.table 1\nfinish well\n");
    expect_file("stderr", SAID DONE);
    expect_file("stdout", "");
}

static void all_rows_or_one_table_for_each_are_asked_for(void **state) {
    (void)state;
    assert_int_equal(RUN(true, "b.table", "--output-dir", "out", "--annotate", "--removed", "removed"), 0);
    expect_file("calls", "create - out annotate: b.table\nwrite b.table 0 1\nfinish well\n");
    expect_file("removed", "");
    assert_int_equal(RUN(true, "a.table", "b.table", "-o", "out.table", "--removed", "removed"), 0);
    expect_file("removed", "{\"id\":\"a2\",\"originalId\":\"a0\",\"reason\":\"content_hash\",\"similarity\":1,"
                           "\"distance\":0}\n{\"id\":\"b0\",\"originalId\":\"a3\",\"reason\":\"content_hash\","
                           "\"similarity\":1,\"distance\":0}\n");
}

static void other_files_come_to_the_writer_too(void **state) {
    (void)state;
    spit("c.jsonl", "{\"text\":\"of a line\"}\n", 21);
    assert_int_equal(RUN(true, "b.table", "c.jsonl", "-o", "out.table"), 0);
    expect_file(
        "calls",
        "create out.table -: b.table c.jsonl\nwrite b.table 0 1\nwrite c.jsonl which is no table\nfinish well\n");
}

static void a_limit_ends_the_rows(void **state) {
    (void)state;
    assert_int_equal(RUN(true, "a.table", "b.table", "-o", "out.table", "--limit", "1"), 0);
    expect_file("calls", "create out.table -: a.table b.table\nwrite a.table 0\nfinish well\n");
}

static void tables_are_written_as_jsonl_too(void **state) {
    (void)state;
    assert_int_equal(RUN(true, "a.table", "b.table", "-o", "out.jsonl"), 0);
    expect_file("calls", "");
    expect_file("out.jsonl", "{\"id\":\"a0\",\"text\":\"the first of some words\"}\n"
                             "{\"id\":\"a3\",\"text\":\"quite other words than those\"}\n"
                             "{\"id\":\"b1\",\"text\":\"last\"}\n");
    expect_file("stderr", SAID DONE "doppel: rows of Parquet become JSONL with id, url, title and text only; -o "
                                    "NAME.parquet keeps all columns\n");
    assert_int_equal(RUN(true, "b.table", "-o", "out.table", "--dry-run"), 0);
    expect_file("calls", "");
}

static void a_writer_that_fails_ends_the_command(void **state) {
    (void)state;
    static const char *const names[] = {"create", "write", "finish"}, *const ends[] = {
                                                                          "", "write b.table 0 1\nfinish badly\n",
                                                                          "write b.table 0 1\nfinish well\n"};
    for (int i = 0; i < 3; i++) {
        char text[100];
        failing = names[i];
        assert_int_equal(RUN(true, "b.table", "-o", "out.table", "--removed", "removed"), 4);
        snprintf(text, sizeof text, "create out.table -: b.table\n%s", ends[i]);
        expect_file("calls", text);
        snprintf(text, sizeof text, "doppel: cannot %s tables\n", names[i]);
        expect_file("stderr", text);
        assert_int_equal(access("removed", F_OK), -1);
    }
    failing = NULL;
}

static void outputs_that_cannot_be_are_refused(void **state) {
    (void)state;
    assert_int_equal(RUN(true, "b.table", "-o", "out.table", "--output-dir", "out"), 2);
    expect_file("stderr", "doppel: --output and --output-dir: give one of them\n");
    assert_int_equal(RUN(true, "b.table"), 2);
    expect_file("stderr",
                "doppel: dedup needs an output: -o OUT (- for stdout), --removed FILE for a list of the removed "
                "documents, or --dry-run\n");
    expect_file("calls", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(rows_that_stay_are_written_as_tables), TEST(all_rows_or_one_table_for_each_are_asked_for),
        TEST(other_files_come_to_the_writer_too),   TEST(a_limit_ends_the_rows),
        TEST(tables_are_written_as_jsonl_too),      TEST(a_writer_that_fails_ends_the_command),
        TEST(outputs_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
