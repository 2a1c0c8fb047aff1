/* test_batch_resume.c - runs that were stopped anywhere are resumed with the same result; sketches that were saved
 * stand for their documents. */
#include "batches.h"
#include "work_folder.h"

#include <unistd.h>

static const char *const inputs[] = {"one.jsonl", "plain", "two.jsonl"};
enum { INPUTS = 3, DOCUMENTS = 20 + 4 + 10 };

/* ---- runs ---- */

/* Two files of records, and a folder of plain files, which have no lines. */
static void save_inputs(void) {
    save_mixture("one.jsonl", 20, 30);
    save_mixture("two.jsonl", 10, 20);
    assert_int_equal(mkdir("plain", 0777), 0);
    for (int i = 0; i < 4; i++) {
        char path[32];
        dp_buffer text = {0};
        uint64_t state = 7;
        snprintf(path, sizeof path, "plain/%d.txt", i);
        add_words(&text, &state, 40);
        spit(path, text.data, text.size);
        dp_buffer_free(&text);
    }
}

/* What a run in the folder `work` decides, going on with what is there. */
static dp_buffer run(bool resume) {
    doppel_batch_options options = {.work = "work", .resume = resume};
    doppel_batch *batch = read_batch(options, inputs, INPUTS, 0);
    assert_int_equal(doppel_batch_count(batch), DOCUMENTS);
    decide(batch);
    dp_buffer lines = decisions(batch);
    doppel_batch_free(batch);
    return lines;
}

static off_t journal_size(void) {
    struct stat known;
    assert_int_equal(stat("work/sketches", &known), 0);
    return known.st_size;
}

static void a_run_that_was_stopped_anywhere_goes_on(void **state) {
    (void)state;
    save_inputs();
    dp_buffer whole = run(false);
    off_t size = journal_size();
    for (off_t cut = 0; cut <= size; cut += 131) {
        assert_int_equal(truncate("work/sketches", cut), 0);
        dp_buffer again = run(true);
        assert_string_equal(again.data, whole.data);
        dp_buffer_free(&again);
    }
    dp_buffer_free(&whole);
}

static void what_is_damaged_is_read_again(void **state) {
    (void)state;
    save_inputs();
    dp_buffer whole = run(false);
    dp_buffer file = slurp("work/sketches");
    for (size_t at = file.size / 2; at < file.size; at += 997) {
        file.data[at] ^= 1;
        spit("work/sketches", file.data, file.size);
        dp_buffer again = run(true);
        assert_string_equal(again.data, whole.data);
        dp_buffer_free(&again);
        file.data[at] ^= 1;
    }
    dp_buffer_free(&file);
    dp_buffer_free(&whole);
}

static doppel_status try_to_go_on(doppel_batch_options options, doppel_error *error) {
    doppel_batch *batch = NULL;
    options.size = sizeof options;
    options.work = "work";
    options.resume = true;
    doppel_status status = doppel_batch_create(&options, &batch, error);
    if (status == DOPPEL_OK)
        status = doppel_batch_read(batch, inputs, 1, false, NULL, error);
    doppel_batch_free(batch);
    return status;
}

static void another_run_is_refused(void **state) {
    (void)state;
    doppel_error error = {0};
    save_inputs();
    dp_buffer whole = run(false);
    dp_buffer_free(&whole);
    assert_int_equal(try_to_go_on((doppel_batch_options){0}, &error), DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(error.message, "other inputs"));
    assert_int_equal(try_to_go_on((doppel_batch_options){.similarity = 0.9}, &error), DOPPEL_ERROR_USAGE);
    if (!strstr(error.message, "follow from the similarity"))
        fail_msg("%s", error.message);
    spit("one.jsonl", "", 0);
    assert_int_equal(try_to_go_on((doppel_batch_options){0}, &error), DOPPEL_ERROR_INPUT);
    assert_non_null(strstr(error.message, "has changed"));
    doppel_batch *batch = NULL;
    doppel_batch_options options = {.size = sizeof options, .work = "work"};
    assert_int_equal(doppel_batch_create(&options, &batch, &error), DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(error.message, "already contains a run"));
}

static void a_finished_run_can_be_opened(void **state) {
    (void)state;
    doppel_batch *batch = NULL;
    doppel_error error = {0};
    save_inputs();
    dp_buffer whole = run(false);
    assert_int_equal(doppel_batch_open("work", NULL, &batch, &error), DOPPEL_OK);
    decide(batch);
    dp_buffer again = decisions(batch);
    assert_string_equal(again.data, whole.data);
    doppel_batch_free(batch);
    dp_buffer_free(&again);
    dp_buffer_free(&whole);
    assert_int_equal(truncate("work/sketches", journal_size() - 1), 0);
    assert_int_equal(doppel_batch_open("work", NULL, &batch, &error), DOPPEL_ERROR_STORE);
    assert_non_null(strstr(error.message, "not finished"));
    assert_int_equal(doppel_batch_open("plain", NULL, &batch, &error), DOPPEL_ERROR_STORE);
}

static void saved_sketches_stand_for_their_documents(void **state) {
    (void)state;
    doppel_error error = {0};
    const char *paths[] = {"one.jsonl", "two.jsonl", "one.jsonl"}, *saved[] = {"old", "two.jsonl", "one.jsonl"};
    save_inputs();
    doppel_batch *batch = read_batch((doppel_batch_options){0}, paths, 1, 0);
    assert_int_equal(doppel_batch_save(batch, "old", &error), DOPPEL_OK);
    doppel_batch_free(batch);
    dp_buffer lines[2];
    for (int i = 0; i < 2; i++) {
        batch = read_batch((doppel_batch_options){0}, i ? saved : paths, 3, 1);
        decide(batch);
        lines[i] = decisions(batch);
        doppel_batch_free(batch);
    }
    assert_string_equal(lines[0].data, lines[1].data);
    dp_buffer_free(&lines[0]);
    dp_buffer_free(&lines[1]);
}

/* Cut or altered sketches are refused, wherever that is. */
static void damaged_sketches_are_refused(void **state) {
    (void)state;
    const char *path = "old";
    doppel_error error = {0};
    save_inputs();
    doppel_batch *batch = read_batch((doppel_batch_options){0}, inputs, INPUTS, 0);
    assert_int_equal(doppel_batch_save(batch, path, &error), DOPPEL_OK);
    doppel_batch_free(batch);
    dp_buffer file = slurp(path);
    for (size_t at = 8; at < file.size; at += 211) {
        file.data[at] ^= 4;
        spit(path, file.data, file.size);
        file.data[at] ^= 4;
        assert_int_equal(doppel_batch_create(NULL, &batch, &error), DOPPEL_OK);
        doppel_status status = doppel_batch_read(batch, &path, 1, true, NULL, &error);
        assert_true(status == DOPPEL_ERROR_STORE || status == DOPPEL_ERROR_USAGE);
        doppel_batch_free(batch);
    }
    dp_buffer_free(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_run_that_was_stopped_anywhere_goes_on),
        TEST(what_is_damaged_is_read_again),
        TEST(another_run_is_refused),
        TEST(a_finished_run_can_be_opened),
        TEST(saved_sketches_stand_for_their_documents),
        TEST(damaged_sketches_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
