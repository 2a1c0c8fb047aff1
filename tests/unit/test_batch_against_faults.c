/* test_batch_against_faults.c - batches against an index, without memory, files or threads: a clear error or the same
 * result, no leak, and the same call works afterwards. */
#include "faults.h"
#include "work_folder.h"

#include "against.h"

/* Of the second file, a half is in the first: by the address, the words, content or the title. */
static void save_documents(void) {
    for (int f = 0; f < 2; f++) {
        FILE *file = fopen(f ? "new.jsonl" : "old.jsonl", "wb");
        assert_non_null(file);
        for (int i = 0; i < 12; i++) {
            int about = i % 2 ? i : i + 100 * f;
            fprintf(file,
                    "{\"id\":\"%d\",\"url\":\"http://host.com/%d\",\"title\":\"About number %d of those\",\"text\":\"",
                    i, i % 4 == 1 ? about : i + 500 * f, i % 4 == 3 ? about * 7919 : (i + 500 * f) * 104729);
            for (int j = 0; j < 40; j++)
                fprintf(file, "%s%d_%d ", j == i && f ? "x" : "w", about, j);
            fprintf(file, "\"}\n");
        }
        assert_int_equal(fclose(file), 0);
    }
}

/* What a fault is expected to come to. */
static doppel_status outcome;

static doppel_status run_batch(const char *index, uint64_t *result) {
    const char *new = "new.jsonl";
    doppel_input_options input = {.size = sizeof input, .threads = 1};
    doppel_batch_options options = {.size = sizeof options, .by = 7, .input = &input, .tmp = work_folder};
    doppel_input_counts counts = {0};
    doppel_batch *batch = NULL;
    doppel_error error = {0};
    doppel_status status = doppel_batch_create(&options, &batch, &error);
    if (status == DOPPEL_OK)
        status = doppel_batch_read(batch, &index, 1, true, NULL, &error);
    if (status == DOPPEL_OK)
        status = doppel_batch_read(batch, &new, 1, false, &counts, &error);
    if (status == DOPPEL_OK && counts.unopened) /* the file that could not be read is left out */
        status = outcome;
    if (status == DOPPEL_OK)
        status = doppel_batch_decide(batch, &error);
    for (uint64_t i = 0; status == DOPPEL_OK && i < doppel_batch_count(batch); i++) {
        doppel_near near;
        doppel_batch_get(batch, i, &near);
        *result = mixed(mixed(*result, near.a), near.reason);
    }
    assert_true(status == DOPPEL_OK || counts.unopened || error.message[0]);
    doppel_batch_free(batch);
    return status;
}

static doppel_status against_similarity(uint64_t *result) {
    return run_batch("similarity", result);
}

static doppel_status against_distance(uint64_t *result) {
    return run_batch("distance", result);
}

static void run_all(int kinds, doppel_status expected) {
    outcome = expected;
    save_documents();
    make_index("similarity", (doppel_engine_options){.near = DOPPEL_NEAR_SIMILARITY}, "old.jsonl");
    make_index("distance", (doppel_engine_options){.near = DOPPEL_NEAR_DISTANCE}, "old.jsonl");
    for (int i = 0; i < 4; i++)
        run_with(i % 2 ? against_similarity : against_distance,
                 (fault_plan){.kinds = kinds, .go_on = i / 2, .expected = expected, .may_pass = true, .sparse = true});
}

static void without_memory(void **state) {
    (void)state;
    run_all(MEMORY, DOPPEL_ERROR_MEMORY);
}

static void without_files(void **state) {
    (void)state;
    run_all(FILES, DOPPEL_ERROR_IO);
}

static void without_threads(void **state) {
    (void)state;
    run_all(THREADS, DOPPEL_ERROR_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(without_memory), TEST(without_files), TEST(without_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
