/* test_limits.c - more documents than one run takes, or than fit into the memory limit: what a batch reports before it
 * comes to that, and when it does. */
#include "batches.h"

typedef struct heard {
    int count;
    char text[300];
} heard;

static void hear(const char *text, void *user) {
    heard *h = user;
    h->count++;
    snprintf(h->text, sizeof h->text, "%s", text);
}

typedef struct seen {
    int bad, progress, unseen;
} seen;

static void see_bad(const doppel_error *what, void *user) {
    (void)what;
    ((seen *)user)->bad++;
}

static void see_progress(uint64_t bytes, uint64_t total, uint64_t documents, void *user) {
    (void)bytes, (void)total, (void)documents;
    ((seen *)user)->progress++;
}

static void see_unseen(const char *key, void *user) {
    (void)key;
    ((seen *)user)->unseen++;
}

/* A batch that hears warnings. */
static doppel_batch *create(heard *h, uint64_t memory, const doppel_input_options *input) {
    doppel_batch_options options = {.size = sizeof options, .memory = memory, .warn = hear, .user = h, .input = input};
    doppel_batch *batch;
    assert_int_equal(doppel_batch_create(&options, &batch, NULL), DOPPEL_OK);
    return batch;
}

static const char *save(void **state, size_t count) {
    const char *path = in(state, "limits.jsonl");
    dp_buffer file = {0};
    for (size_t i = 0; i < count; i++) {
        char id[24];
        snprintf(id, sizeof id, "d%zu", 10000000 + i);
        add_record(&file, id, id, "");
    }
    save_records(&file, path);
    return path;
}

/* How many documents a warning speaks of. */
static unsigned long long said(const heard *h) {
    unsigned long long number = 0;
    sscanf(h->text, "judging by its first records, the input has about %llu documents", &number);
    return number;
}

static void more_documents_than_a_run_takes(void **state) {
    const char *path = save(state, 700000);
    heard h = {0};
    doppel_error error = {0};
    doppel_batch *batch = create(&h, 0, NULL);
    batch->settings.most_documents = 500000;
    assert_int_equal(doppel_batch_read(batch, &path, 1, false, NULL, &error), DOPPEL_ERROR_INPUT);
    assert_string_equal(error.message, "more than 500000 documents, the limit of one run: deduplicate parts of the "
                                       "input separately, then the kept documents together");
    assert_int_equal(doppel_batch_count(batch), 500000);
    assert_int_equal(h.count, 1);
    assert_true(said(&h) > 500000 && said(&h) < 750000);
    assert_non_null(strstr(h.text, "and the limit of one run is 500000: deduplicate parts of it separately"));
    doppel_batch_free(batch);
}

static void as_many_documents_as_a_run_takes(void **state) {
    const char *path = save(state, 500);
    heard h = {0};
    doppel_batch *batch = create(&h, 0, NULL);
    batch->settings.most_documents = 500;
    assert_int_equal(doppel_batch_read(batch, &path, 1, false, NULL, NULL), DOPPEL_OK);
    assert_int_equal(doppel_batch_count(batch), 500);
    assert_int_equal(h.count, 0);
    doppel_batch_free(batch);
}

/* Documents that were read before count. */
static void documents_of_all_readings_count(void **state) {
    const char *path = save(state, 300);
    heard h = {0};
    doppel_batch *batch = create(&h, 0, NULL);
    batch->settings.most_documents = 500;
    assert_int_equal(doppel_batch_read(batch, &path, 1, true, NULL, NULL), DOPPEL_OK);
    assert_int_equal(h.count, 0);
    assert_int_equal(doppel_batch_read(batch, &path, 1, false, NULL, NULL), DOPPEL_ERROR_INPUT);
    assert_int_equal(h.count, 1);
    assert_int_equal(said(&h), 600);
    doppel_batch_free(batch);
}

/* 32 MiB are not counted, so that a million bytes are enough for some 300,000 documents. */
static void more_documents_than_fit_into_the_memory(void **state) {
    const char *path = save(state, 700000);
    heard h = {0};
    doppel_error error = {0};
    doppel_batch *batch = create(&h, 1000000, NULL);
    assert_int_equal(batch->settings.threads, 1);
    assert_int_equal(doppel_batch_read(batch, &path, 1, false, NULL, &error), DOPPEL_ERROR_MEMORY);
    assert_non_null(strstr(error.message, "do not fit into the memory limit: they need at least 1 MiB"));
    assert_int_equal(h.count, 1);
    assert_true(said(&h) > 300000 && said(&h) < 750000);
    assert_non_null(strstr(h.text, "documents, which need at least"));
    doppel_batch_free(batch);
    batch = create(&h, 0, NULL);
    assert_int_equal(doppel_batch_read(batch, &path, 1, false, NULL, &error), DOPPEL_OK);
    doppel_batch_free(batch);
}

static void callers_hear_what_they_asked_for(void **state) {
    const char *path = in(state, "bad.jsonl");
    seen s = {0};
    heard h = {0};
    doppel_input_options input = {.size = sizeof input,
                                  .bad = see_bad,
                                  .progress = see_progress,
                                  .unseen = see_unseen,
                                  .title_key = "heading",
                                  .user = &s};
    spit(path, "{\"id\":\"a\",\"text\":\"b c\"}\n{\n", 26);
    doppel_batch *batch = create(&h, 0, &input);
    assert_int_equal(doppel_batch_read(batch, &path, 1, false, NULL, NULL), DOPPEL_OK);
    assert_int_equal(s.bad, 1);
    assert_true(s.progress > 0);
    assert_true(s.unseen > 0);
    assert_int_equal(h.count, 0);
    doppel_batch_free(batch);
}

static void threads_go_with_the_memory(void **state) {
    (void)state;
    assert_int_equal(dp_threads_within(16, 0), 16);
    assert_int_equal(dp_threads_within(16, 1), 1);
    assert_int_equal(dp_threads_within(16, (uint64_t)64 << 20), 4);
    assert_int_equal(dp_threads_within(16, (uint64_t)1 << 40), 16);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(more_documents_than_a_run_takes),  TEST(as_many_documents_as_a_run_takes),
        TEST(documents_of_all_readings_count),  TEST(more_documents_than_fit_into_the_memory),
        TEST(callers_hear_what_they_asked_for), TEST(threads_go_with_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
