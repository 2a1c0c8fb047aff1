/* test_find_faults.c - overlap and mirrors without memory, or a system that works: a clear error or the same result, no
 * leak, and the same call works afterwards. */
#include "faults.h"

#include "base/base.h"
#include "batch/spill.h"

static char path[] = "/tmp/doppel-test-find-XXXXXX.jsonl";

/* Documents that overlap, at addresses that are mirrors. */
static int write_documents(void **state) {
    (void)state;
    static const char text[] = "of documents that contain much of one another it is told which passages they share";
    int file = mkstemps(path, 6);
    FILE *to = file < 0 ? NULL : fdopen(file, "w");
    if (!to)
        return -1;
    for (int host = 0; host < 3; host++)
        for (int page = 0; page < 4; page++)
            fprintf(to, "{\"id\":\"%d-%d\",\"url\":\"http://h%d.example/%d/x\",\"text\":\"%s p%d q%d r%d %s s%d\"}\n",
                    host, page, host, page, text, page, page, page, text + page, page);
    return fclose(to);
}

static int remove_documents(void **state) {
    (void)state;
    return unlink(path);
}

/* A file that cannot be opened, whatever the reason, is left out and counted. */
static doppel_status status_of(doppel_status status, const doppel_input_counts *counts) {
    if (status != DOPPEL_OK || !counts->unopened)
        return status;
    return faults.kinds & MEMORY ? DOPPEL_ERROR_MEMORY : DOPPEL_ERROR_IO;
}

static doppel_status count_pair(const doppel_overlap *pair, void *user) {
    uint64_t *result = user;
    *result = mixed(mixed(*result, pair->a << 32 | pair->b), pair->passage_count);
    return DOPPEL_OK;
}

static doppel_status run_overlap(uint64_t *result) {
    const char *input_path = path;
    doppel_input_options input = {.size = sizeof input, .threads = 1};
    doppel_overlap_options options = {.size = sizeof options,
                                      .words = 12,
                                      .containment = 0.3,
                                      .sample = 1,
                                      .input = &input,
                                      .pair = count_pair,
                                      .user = result};
    doppel_overlap_counts counts;
    doppel_status status = doppel_overlap_find(&input_path, 1, &options, &counts, NULL);
    return status_of(status, &counts.input);
}

static doppel_status count_mirror(const doppel_mirror *mirror, void *user) {
    uint64_t *result = user;
    *result = mixed(mixed(*result, mirror->shared), mirror->matching);
    return DOPPEL_OK;
}

static doppel_status run_mirrors(uint64_t *result) {
    const char *input_path = path;
    doppel_input_options input = {.size = sizeof input, .threads = 1};
    doppel_mirrors_options options = {.size = sizeof options,
                                      .page = "http://h1.example/2/x",
                                      .input = &input,
                                      .mirror = count_mirror,
                                      .user = result};
    doppel_mirrors_counts counts;
    doppel_status status = doppel_mirrors_find(&input_path, 1, &options, &counts, NULL);
    return status_of(status, &counts.input);
}

/* Many records through little memory: runs are written, merged in rounds, and read. */
static doppel_status run_sorter(uint64_t *result) {
    dp_sorter sorter;
    const uint64_t *record = NULL;
    uint64_t state = 1;
    doppel_status status = DOPPEL_OK;
    dp_sorter_init(&sorter, &(dp_sorter_options){.words = 2, .keys = 1});
    for (int i = 0; i < 37000 && status == DOPPEL_OK; i++) {
        uint64_t made[2] = {random_next(&state), state};
        status = dp_sorter_add(&sorter, made, NULL);
    }
    if (status == DOPPEL_OK)
        status = dp_sorter_finish(&sorter, NULL);
    while (status == DOPPEL_OK && (status = dp_sorter_next(&sorter, &record, NULL)) == DOPPEL_OK && record)
        *result = mixed(*result, record[0]);
    dp_sorter_free(&sorter);
    return status;
}

static void test_no_memory(void **state) {
    (void)state;
    fault_plan plan = {.kinds = MEMORY, .expected = DOPPEL_ERROR_MEMORY, .may_pass = true, .sparse = true};
    run_with(run_sorter, plan);
    run_with(run_overlap, plan);
    run_with(run_mirrors, plan);
}

static void test_no_files(void **state) {
    (void)state;
    fault_plan plan = {.kinds = FILES | SYSTEM, .expected = DOPPEL_ERROR_IO, .may_pass = true, .sparse = true};
    run_with(run_sorter, plan);
    run_with(run_overlap, plan);
    run_with(run_mirrors, plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_memory), cmocka_unit_test(test_no_files)};
    return cmocka_run_group_tests(tests, write_documents, remove_documents);
}
