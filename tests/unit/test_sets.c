/* test_sets.c - sets made of records when they are needed: the same decisions as with sets that were kept, few
 * temporary bytes, and inputs that change between the passes. */
#include "batches.h"

#include <unistd.h>

enum { WORDS = 300, LONG = 500 };

/* ---- inputs ---- */

static int enter_folder(void **state) {
    return setup(state) || chdir(*state);
}

static int leave_folder(void **state) {
    return chdir("/") || teardown(state);
}

/* Documents of which one in `rate` is a near copy of the one before it. */
static uint64_t save_copies(const char *path, size_t count, size_t rate) {
    dp_buffer file = {0}, text = {0};
    uint64_t state = 5;
    for (size_t i = 0; i < count; i++) {
        char id[32];
        snprintf(id, sizeof id, "d%zu", i);
        if (i % rate != rate - 1 || !i) {
            text.size = 0;
            add_words(&text, &state, LONG);
            assert_true(dp_buffer_add(&text, "", 1));
        } else {
            text.data[text.size / 2] = 'x';
        }
        add_record(&file, id, text.data, "");
    }
    uint64_t bytes = file.size;
    save_records(&file, path);
    dp_buffer_free(&text);
    return bytes;
}

/* Near copies of one document: each is compared with many, and all stand in one large bucket. */
static uint64_t save_template(const char *path, size_t count) {
    dp_buffer file = {0}, frame = {0};
    uint64_t state = 3;
    add_words(&frame, &state, WORDS);
    assert_true(dp_buffer_add(&frame, "", 1));
    for (size_t i = 0; i < count; i++) {
        char id[32];
        dp_buffer text = {0};
        snprintf(id, sizeof id, "t%zu", i);
        assert_true(dp_buffer_printf(&text, "%s", frame.data));
        add_words(&text, &state, 20 + random_below(&state, 60));
        assert_true(dp_buffer_add(&text, "", 1));
        add_record(&file, id, text.data, "");
        dp_buffer_free(&text);
    }
    uint64_t bytes = file.size;
    save_records(&file, path);
    dp_buffer_free(&frame);
    return bytes;
}

/* A compressed copy, whose records have no positions. */
static void compress(const char *path, const char *to) {
    doppel_writer *writer;
    dp_buffer bytes = slurp(path);
    assert_int_equal(doppel_writer_open(&writer, to, 1, NULL), DOPPEL_OK);
    assert_int_equal(doppel_writer_write(writer, (doppel_slice){bytes.data, bytes.size}, NULL), DOPPEL_OK);
    assert_int_equal(doppel_writer_finish(writer, true, NULL), DOPPEL_OK);
    dp_buffer_free(&bytes);
}

/* ---- outcomes ---- */

static const char *const plain[] = {"known.jsonl", "mixture.jsonl", "template.jsonl"};
static const char *const mixed[] = {"known.jsonl.gz", "mixture.jsonl", "template.jsonl.zst"};
static const char *const compressed[] = {"known.jsonl.gz", "mixture.jsonl.zst", "template.jsonl.gz"};

static void save_all(void) {
    save_mixture("known.jsonl", 40, 60);
    save_mixture("mixture.jsonl", 100, 80);
    save_template("template.jsonl", 280);
    compress("known.jsonl", "known.jsonl.gz");
    compress("mixture.jsonl", "mixture.jsonl.zst");
    compress("template.jsonl", "template.jsonl.gz");
    compress("template.jsonl", "template.jsonl.zst");
}

/* What is decided, and then all pairs. */
static dp_buffer outcome(doppel_batch_options options, const char *const *paths, int threads,
                         doppel_batch_stats *stats) {
    const doppel_input_options input = {.size = sizeof input, .threads = threads};
    options.input = &input;
    doppel_batch *batch = read_batch(options, paths, 3, 1);
    decide(batch);
    dp_buffer lines = decisions(batch);
    doppel_batch_get_stats(batch, stats);
    dp_buffer pairs = pair_lines(batch, false);
    assert_true(dp_buffer_add(&lines, pairs.data, pairs.size));
    dp_buffer_free(&pairs);
    doppel_batch_free(batch);
    return lines;
}

static void sets_of_records_decide_as_kept_ones_do(void **state) {
    (void)state;
    static const doppel_batch_options ways[] = {
        {.tmp = NULL}, {.memory = 1 << 20}, {.similarity = 0.9, .link_any = true}};
    static const char *const *const inputs[] = {plain, mixed, compressed};
    save_all();
    for (size_t w = 0; w<sizeof ways / sizeof *ways; w += SMALLER> 1 ? 2 : 1) {
        doppel_batch_options options = ways[w];
        doppel_batch_stats kept, made;
        options.keep_sketches = true;
        dp_buffer expected = outcome(options, plain, 1, &kept);
        options.keep_sketches = false;
        for (size_t i = SMALLER > 1; i<2 * sizeof inputs / sizeof *inputs; i += SMALLER> 1 ? 2 : 1) {
            dp_buffer lines = outcome(options, inputs[i / 2], i % 2 ? 4 : 1, &made);
            assert_string_equal(lines.data, expected.data);
            assert_int_equal(made.verified, kept.verified);
            assert_true(!made.kept_bytes && kept.kept_bytes && made.spilled_bytes < kept.kept_bytes);
            dp_buffer_free(&lines);
        }
        dp_buffer_free(&expected);
    }
}

static uint64_t spilled_by(const char *path) {
    doppel_batch_stats stats;
    doppel_batch *batch = read_batch((doppel_batch_options){.memory = 1 << 20}, &path, 1, 0);
    decide(batch);
    doppel_batch_get_stats(batch, &stats);
    doppel_batch_free(batch);
    return stats.spilled_bytes;
}

static void temporary_bytes_are_few(void **state) {
    (void)state;
    uint64_t some = save_copies("some.jsonl", 600, 10), all = save_copies("all.jsonl", 600, 2);
    uint64_t one = save_template("one.jsonl", 400);
    assert_true(spilled_by("some.jsonl") <= some / 4);
    assert_true(spilled_by("all.jsonl") <= all);
    assert_true(spilled_by("one.jsonl") <= one);
    compress("some.jsonl", "some.jsonl.gz");
    compress("all.jsonl", "all.jsonl.zst");
    compress("one.jsonl", "one.jsonl.gz");
    assert_true(spilled_by("some.jsonl.gz") <= some / 4);
    assert_true(spilled_by("all.jsonl.zst") <= all);
    assert_true(spilled_by("one.jsonl.gz") <= one);
}

static void sketches_are_saved_the_same_without_being_kept(void **state) {
    (void)state;
    const char *path = "mixture.jsonl";
    doppel_error error = {0};
    save_mixture(path, 200, 50);
    for (int kept = 0; kept < 2; kept++) {
        doppel_batch *batch = read_batch((doppel_batch_options){.keep_sketches = kept}, &path, 1, 0);
        assert_int_equal(doppel_batch_save(batch, kept ? "kept" : "made", &error), DOPPEL_OK);
        doppel_batch_free(batch);
    }
    same_files("kept", "made");
}

/* ---- inputs that change ---- */

static void shrink(void) {
    assert_int_equal(truncate("mixture.jsonl", 1000), 0);
}

static void vanish(void) {
    assert_int_equal(unlink("mixture.jsonl"), 0);
}

static void be_replaced(void) {
    save_template("mixture.jsonl", 50);
}

static void inputs_that_change_are_noticed(void **state) {
    (void)state;
    static void (*const changes[])(void) = {shrink, vanish, be_replaced};
    const char *path = "mixture.jsonl";
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        doppel_error error = {0};
        save_mixture(path, 200, 50);
        doppel_batch *batch = read_batch((doppel_batch_options){0}, &path, 1, 0);
        changes[i]();
        assert_int_equal(doppel_batch_decide(batch, &error), DOPPEL_ERROR_INPUT);
        assert_string_equal(error.message, "the inputs have changed since they were read: start again");
        assert_int_not_equal(doppel_batch_save(batch, "saved", &error), DOPPEL_OK);
        assert_int_not_equal(access("saved", F_OK), 0);
        doppel_batch_free(batch);
    }
}

static void compressed_inputs_that_change_are_noticed(void **state) {
    (void)state;
    const char *path = "mixture.jsonl.gz";
    for (int gone = 0; gone < 2; gone++) {
        doppel_error error = {0};
        save_mixture("mixture.jsonl", 200, 50);
        compress("mixture.jsonl", path);
        doppel_batch *batch = read_batch((doppel_batch_options){0}, &path, 1, 0);
        save_mixture("mixture.jsonl", 199, 50);
        compress("mixture.jsonl", path);
        assert_true(!gone || !unlink(path));
        assert_int_equal(doppel_batch_decide(batch, &error), DOPPEL_ERROR_INPUT);
        assert_string_equal(error.message, "the inputs have changed since they were read: start again");
        doppel_batch_free(batch);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sets_of_records_decide_as_kept_ones_do, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(temporary_bytes_are_few, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(sketches_are_saved_the_same_without_being_kept, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(inputs_that_change_are_noticed, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(compressed_inputs_that_change_are_noticed, enter_folder, leave_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
