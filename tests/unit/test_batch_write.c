/* test_batch_write.c - the kept and the removed documents as files: copied by many threads, the same as
 * read and given one by one. */
#include "batches.h"

/* ---- the plain way ---- */

typedef struct both_parts {
    dp_buffer kept, removed;
} both_parts;

static doppel_status add_to_part(doppel_slice record, const doppel_near *near, void *user) {
    both_parts *parts = user;
    dp_buffer *to = near->a == near->b ? &parts->kept : &parts->removed;
    assert_true(dp_buffer_add(to, record.data, record.length) && dp_buffer_add(to, "\n", 1));
    return DOPPEL_OK;
}

typedef doppel_status (*part_writer)(doppel_batch *batch, doppel_writer *writer, doppel_error *error);

static void check_file(doppel_batch *batch, part_writer write, const char *path, int threads,
                       const dp_buffer *expected) {
    doppel_writer *writer;
    doppel_error error = {0};
    assert_int_equal(doppel_writer_open(&writer, path, threads, &error), DOPPEL_OK);
    if (write(batch, writer, &error) != DOPPEL_OK)
        fail_msg("%s: %s", error.file, error.message);
    assert_int_equal(doppel_writer_finish(writer, true, &error), DOPPEL_OK);
    dp_buffer bytes = slurp(path);
    assert_int_equal(bytes.size, expected->size);
    if (bytes.size)
        assert_memory_equal(bytes.data, expected->data, bytes.size);
    dp_buffer_free(&bytes);
}

/* Reads files, decides, and writes what stays and what does not with every number of threads. */
static void check_files(void **state, const char *const *paths, size_t count, size_t known) {
    char out[200]; /* not of in(), which the paths are of: it keeps but four */
    snprintf(out, sizeof out, "%s/out.jsonl", (const char *)*state);
    for (int threads = 1; threads <= 8; threads += threads < 4 ? 1 : 4) {
        doppel_input_options input = {.size = sizeof input, .threads = threads};
        doppel_batch *batch = read_batch((doppel_batch_options){.input = &input}, paths, count, known);
        both_parts expected = {{0}, {0}};
        decide(batch);
        assert_int_equal(doppel_batch_write(batch, add_to_part, &expected, NULL), DOPPEL_OK);
        check_file(batch, doppel_batch_write_kept, out, threads, &expected.kept);
        check_file(batch, doppel_batch_write_removed, out, threads, &expected.removed);
        dp_buffer_free(&expected.kept);
        dp_buffer_free(&expected.removed);
        doppel_batch_free(batch);
    }
}

/* ---- files ---- */

static void one_file_of_several_pieces(void **state) {
    const char *path = in(state, "a.jsonl");
    save_mixture(path, 8000, 60);
    check_files(state, &path, 1, 0);
}

static void nothing_at_all(void **state) {
    const char *path = in(state, "a.jsonl");
    spit(path, "", 0);
    check_files(state, &path, 1, 0);
}

/* Blank lines, CR LF, bad records, a last line without an end; and a file that goes on after such a line. */
static void odd_lines(void **state) {
    const char *const paths[] = {in(state, "a.jsonl"), in(state, "b.jsonl"), in(state, "c.jsonl")};
    static const char a[] = "{\"id\":1,\"text\":\"one two three four five six\"}\n\n\n"
                            "{\"id\":2,\"text\":\"one two three four five six\"}\n"
                            "{\"id\":3,\"text\":\"a b c d e f g h i\"}\r\n"
                            "{\"id\":4,\"text\":\"j k l m n o p q r\"}\r\n"
                            "\r\n"
                            "{\"id\":5,\"text\":\"bad\n"
                            "  {\"id\":6,\"text\":\"indented, with a space at its end\"} \n"
                            "{\"id\":7,\"text\":\"the last line has no end\"}";
    static const char b[] = "\xEF\xBB\xBF{\"id\":8,\"text\":\"after a byte order mark\"}\n";
    static const char c[] = "{\"id\":9,\"text\":\"the last of all ends in CR\"}\r";
    spit(paths[0], a, sizeof a - 1);
    spit(paths[1], b, sizeof b - 1);
    spit(paths[2], c, sizeof c - 1);
    check_files(state, paths, 3, 0);
    check_files(state, paths, 3, 1);
    /* Where the first has no line end, the next begins just where its next line would. */
    check_files(state, (const char *[]){paths[0], paths[2], paths[1]}, 3, 0);
}

/* Records that cannot be copied: the inputs are read again. */
static void compressed_and_other_formats(void **state) {
    const char *const paths[] = {in(state, "a.jsonl"), in(state, "b.jsonl.gz"), in(state, "c.csv")};
    static const char csv[] = "id,text\n1,one two three four five\n2,one two three four five\n3,\"six, seven\"\n";
    doppel_writer *writer;
    save_mixture(paths[0], 200, 30);
    dp_buffer bytes = slurp(paths[0]);
    assert_int_equal(doppel_writer_open(&writer, paths[1], 1, NULL), DOPPEL_OK);
    assert_int_equal(doppel_writer_write(writer, (doppel_slice){bytes.data, bytes.size}, NULL), DOPPEL_OK);
    assert_int_equal(doppel_writer_finish(writer, true, NULL), DOPPEL_OK);
    dp_buffer_free(&bytes);
    spit(paths[2], csv, sizeof csv - 1);
    check_files(state, paths, 3, 0);
}

/* ---- what goes wrong ---- */

static void changed_inputs_are_told(void **state) {
    const char *path = in(state, "a.jsonl"), *out = in(state, "none.jsonl");
    for (int threads = 1; threads <= 8; threads += 7) {
        doppel_input_options input = {.size = sizeof input, .threads = threads};
        doppel_error error = {0};
        doppel_writer *writer;
        save_mixture(path, 50, 20);
        doppel_batch *batch = read_batch((doppel_batch_options){.input = &input}, &path, 1, 0);
        decide(batch);
        save_mixture(path, 40, 20);
        assert_int_equal(doppel_writer_open(&writer, out, threads, &error), DOPPEL_OK);
        assert_int_equal(doppel_batch_write_kept(batch, writer, &error), DOPPEL_ERROR_INPUT);
        assert_non_null(strstr(error.message, "changed"));
        doppel_writer_finish(writer, false, NULL);
        assert_int_not_equal(access(out, F_OK), 0);
        doppel_batch_free(batch);
    }
}

static void a_full_disk_and_a_stop_are_told(void **state) {
    const char *path = in(state, "a.jsonl");
    volatile int stop = 0;
    save_mixture(path, 500, 20);
    for (int threads = 1; threads <= 8; threads += 7) {
        doppel_input_options input = {.size = sizeof input, .threads = threads, .stop = &stop};
        doppel_writer *writer;
        stop = 0;
        doppel_batch *batch = read_batch((doppel_batch_options){.input = &input}, &path, 1, 0);
        decide(batch);
        assert_int_equal(doppel_writer_open(&writer, "/dev/full", threads, NULL), DOPPEL_OK);
        doppel_status status = doppel_batch_write_kept(batch, writer, NULL);
        if (status == DOPPEL_OK)
            status = doppel_writer_finish(writer, true, NULL);
        else
            doppel_writer_finish(writer, false, NULL);
        assert_int_equal(status, DOPPEL_ERROR_IO);
        stop = 1;
        assert_int_equal(doppel_writer_open(&writer, in(state, "out.jsonl"), threads, NULL), DOPPEL_OK);
        assert_int_equal(doppel_batch_write_kept(batch, writer, NULL), DOPPEL_ERROR_INTERRUPTED);
        doppel_writer_finish(writer, false, NULL);
        doppel_batch_free(batch);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_file_of_several_pieces),   TEST(nothing_at_all),          TEST(odd_lines),
        TEST(compressed_and_other_formats), TEST(changed_inputs_are_told), TEST(a_full_disk_and_a_stop_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
