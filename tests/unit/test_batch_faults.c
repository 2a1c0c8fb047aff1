/* test_batch_faults.c - batches without memory, files or threads: a clear error or the same result, no leak, and the
 * same call works afterwards. */
#include "faults.h"
#include "work_folder.h"

#include "batch/batch.h"

#include <math.h>

/* ---- documents ---- */

/* Copies, near copies, pages and URLs in two files. */
static void save_documents(void) {
    for (int f = 0; f < 2; f++) {
        FILE *file = fopen(f ? "new.jsonl" : "known.jsonl", "wb");
        assert_non_null(file);
        for (int i = 0; i < 24; i++) {
            fprintf(file, "{\"id\":\"%d\",\"url\":\"http://host%d.com/p%d\",\"title\":\"A title that is long %d\",", i,
                    i % 3, i % 7, i / 4);
            fprintf(file, "\"date\":\"2024-01-%02d\",", i + 1);
            fprintf(file,
                    i % 6 == 5 ? "\"html\":\"<p>a page of some words in <b>HTML</b> and so on %d\"}\n"
                               : "\"text\":\"one two three four five six seven eight nine ten %d eleven\"}\n",
                    i % 4);
        }
        assert_int_equal(fclose(file), 0);
    }
}

/* ---- scenarios ---- */

static uint64_t mixed_near(uint64_t result, const doppel_near *near) {
    result = mixed(mixed(result, near->a), near->b);
    return mixed(result, isnan(near->similarity) ? 7 : (uint64_t)(near->similarity * 1e6));
}

static doppel_status take_pairs(const doppel_near *pairs, size_t count, void *user) {
    uint64_t *result = user;
    for (size_t i = 0; i < count; i++)
        *result = mixed_near(*result, &pairs[i]);
    return DOPPEL_OK;
}

static doppel_status take_document(doppel_slice record, const doppel_near *near, void *user) {
    uint64_t *result = user;
    *result = mixed(mixed_near(*result, near), record.length);
    return DOPPEL_OK;
}

/* What a fault is expected to come to. */
static doppel_status expected;

/* A batch goes on without a file that cannot be read, and says so in the counts. */
static doppel_status read_all(doppel_batch *batch, doppel_error *error) {
    const char *known = "known.jsonl", *new = "new.jsonl";
    doppel_input_counts counts = {0};
    doppel_status status = doppel_batch_read(batch, &known, 1, true, &counts, error);
    if (status == DOPPEL_OK && (counts.unopened || counts.bad))
        return expected;
    if (status == DOPPEL_OK)
        status = doppel_batch_read(batch, &new, 1, false, &counts, error);
    return status == DOPPEL_OK && (counts.unopened || counts.bad) ? expected : status;
}

static doppel_status run_batch(doppel_batch_options options, bool pairs, uint64_t *result) {
    doppel_input_options input = {.size = sizeof input, .threads = 1};
    doppel_batch *batch = NULL;
    doppel_error error = {0};
    options.size = sizeof options;
    options.input = &input;
    options.tmp = work_folder;
    doppel_status status = doppel_batch_create(&options, &batch, &error);
    if (status == DOPPEL_OK) {
        batch->settings.large_bucket = 0; /* every bucket is large: so more can fail */
        status = read_all(batch, &error);
    }
    if (status == DOPPEL_OK && pairs)
        status = doppel_batch_find_pairs(batch, false, take_pairs, result, &error);
    if (status == DOPPEL_OK && !pairs)
        status = doppel_batch_decide(batch, &error);
    if (status == DOPPEL_OK && !pairs)
        status = doppel_batch_write(batch, take_document, result, &error);
    if (status == DOPPEL_ERROR_INPUT) /* the second reading could not read what the first had read */
        status = expected;
    doppel_batch_free(batch);
    return status;
}

static doppel_status decide_by_similarity(uint64_t *result) {
    return run_batch((doppel_batch_options){.similarity = 0.5}, false, result);
}

static doppel_status decide_by_distance(uint64_t *result) {
    return run_batch((doppel_batch_options){.method = DOPPEL_METHOD_SIMHASH, .distance = 20}, false, result);
}

static doppel_status decide_by_all(uint64_t *result) {
    return run_batch((doppel_batch_options){.by = 7, .keep = "newest:date,longest", .across = "host"}, false, result);
}

static doppel_status decide_chains(uint64_t *result) {
    return run_batch((doppel_batch_options){.by = 3, .link_any = true, .within = "domain"}, false, result);
}

static doppel_status decide_without_frames(uint64_t *result) {
    return run_batch((doppel_batch_options){.similarity = 0.3, .boilerplate = 0.1}, false, result);
}

static doppel_status pairs_by_similarity(uint64_t *result) {
    return run_batch((doppel_batch_options){.similarity = 0.5, .by = 7}, true, result);
}

static doppel_status pairs_by_distance(uint64_t *result) {
    return run_batch((doppel_batch_options){.method = DOPPEL_METHOD_SIMHASH, .distance = 20}, true, result);
}

/* ---- faults ---- */

static void run_all(int kinds, doppel_status outcome, bool go_on) {
    static const scenario scenarios[] = {decide_by_similarity,  decide_by_distance,  decide_by_all,    decide_chains,
                                         decide_without_frames, pairs_by_similarity, pairs_by_distance};
    expected = outcome;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        run_with(scenarios[i],
                 (fault_plan){.kinds = kinds, .go_on = go_on, .expected = outcome, .may_pass = true, .sparse = true});
}

static void without_memory(void **state) {
    (void)state;
    save_documents();
    run_all(MEMORY, DOPPEL_ERROR_MEMORY, false);
    run_all(MEMORY, DOPPEL_ERROR_MEMORY, true);
}

static void without_files(void **state) {
    (void)state;
    save_documents();
    run_all(FILES, DOPPEL_ERROR_IO, false);
    run_all(FILES, DOPPEL_ERROR_IO, true);
}

static void without_threads(void **state) {
    (void)state;
    save_documents();
    run_all(THREADS, DOPPEL_ERROR_MEMORY, false);
    run_all(THREADS, DOPPEL_ERROR_MEMORY, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(without_memory), TEST(without_files), TEST(without_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
