/* test_trim_faults.c - trims without memory, files or threads: a clear error or the same result, no leak, and the same
 * call works afterwards. */
#include "faults.h"
#include "work_folder.h"

#include "trim/trim.h"

/* ---- documents ---- */

static const char *const input = "input.jsonl", *const known = "known.jsonl";

/* Lines, sentences and passages that repeat; pages, and records that are repaired. */
static void save_documents(void) {
    FILE *file = fopen(input, "wb"), *other = fopen(known, "wb");
    assert_true(file && other);
    for (int i = 0; i < 12; i++) {
        fprintf(file, "{\"id\":\"%d\",\"url\":\"http://host%d.com/%d\",\"date\":\"2024-01-%02d\",", i, i % 3, i, i + 1);
        fprintf(file,
                i % 6 == 5 ? "\"html\":\"<p>one two three four five six seven</p><p>page %d</p>\"}\n"
                : i % 6 == 4
                    ? "\"text\":\"\xFF %d\\nOne two three four five six, seven.\"}\n"
                    : "\"text\":\"Number %d has this.\\nOne two three four five six seven! eight nine ten\\n\"}\n",
                i % 4);
    }
    fprintf(other, "{\"id\":\"q1\",\"text\":\"two three four five six seven\"}\n{\"id\":\"q2\",\"text\":\"number 1 has "
                   "this\"}\n{\"id\":\"q3\",\"text\":\"six seven\"}\n");
    assert_true(!fclose(file) && !fclose(other));
}

static uint64_t mixed_bytes(uint64_t result, doppel_slice bytes) {
    for (size_t i = 0; i < bytes.length; i++)
        result = mixed(result, (unsigned char)bytes.data[i]);
    return result;
}

static doppel_status take_document(const doppel_trimmed *d, void *user) {
    uint64_t *result = user;
    *result = mixed(mixed(mixed_bytes(*result, d->record), d->words_cut), d->dropped);
    *result = mixed_bytes(mixed_bytes(*result, d->text), d->id);
    for (size_t i = 0; i < d->span_count; i++)
        *result = mixed(mixed_bytes(*result, d->spans[i].original_id), d->spans[i].original_start);
    for (size_t i = 0; i < d->cut_count; i++)
        *result = mixed(mixed(*result, d->cuts[i].start), d->cuts[i].end);
    return DOPPEL_OK;
}

/* ---- scenarios ---- */

/* What a fault is expected to come to. */
static doppel_status expected;
static int threads = 1;

static doppel_status take_repeats(doppel_trim *trim, uint64_t *result, doppel_error *error) {
    const doppel_repeat *repeats;
    size_t count;
    doppel_status status = doppel_trim_get_repeats(trim, &repeats, &count, error);
    for (size_t i = 0; i < count && status == DOPPEL_OK; i++)
        *result = mixed_bytes(mixed_bytes(mixed(*result, repeats[i].count), repeats[i].text), repeats[i].id);
    return status;
}

static doppel_status write_all(doppel_trim *trim, unsigned wanted, uint64_t *result, doppel_error *error) {
    doppel_trim_stats stats;
    doppel_trim_get_stats(trim, &stats);
    if (stats.input.unopened || stats.against.unopened || stats.input.bad || stats.against.bad)
        /* It goes on without a file that cannot be read, and says so in the counts. */
        return dp_fail(error, expected, "a file that cannot be read");
    doppel_status status = doppel_trim_write(trim, wanted, take_document, result, error);
    return status == DOPPEL_OK ? take_repeats(trim, result, error) : status;
}

/* An error has a message. What had been read and could not be read again is an input that has changed, and a work
 * folder that cannot be read is one that is not there. */
static doppel_status outcome(doppel_status status, const doppel_error *error) {
    if (status != DOPPEL_OK && (error->code != status || !error->message[0]))
        fail_msg("status %d without a message", (int)status);
    bool away = status == DOPPEL_ERROR_INPUT || (status == DOPPEL_ERROR_STORE && expected == DOPPEL_ERROR_IO);
    return away ? expected : status;
}

static doppel_status run_trim(doppel_trim_options options, unsigned wanted, uint64_t *result) {
    doppel_input_options reading = {.size = sizeof reading, .threads = threads};
    doppel_trim *trim = NULL;
    doppel_error error = {0};
    options.size = sizeof options;
    options.input = &reading;
    options.tmp = work_folder;
    doppel_status status = doppel_trim_find(&input, 1, &options, &trim, &error);
    assert_true((status == DOPPEL_OK) == (trim != NULL));
    if (trim)
        status = write_all(trim, wanted, result, &error);
    doppel_trim_free(trim);
    return outcome(status, &error);
}

static doppel_status trim_lines(uint64_t *result) {
    return run_trim((doppel_trim_options){.keep = "newest:date,longest", .within = "host"},
                    DOPPEL_TRIM_RECORDS | DOPPEL_TRIM_SPANS | DOPPEL_TRIM_TEXTS, result);
}

static doppel_status trim_sentences(uint64_t *result) {
    return run_trim(
        (doppel_trim_options){.unit = DOPPEL_UNIT_SENTENCE, .cut_first = true, .across = "document", .min_count = 3},
        DOPPEL_TRIM_ANNOTATE, result);
}

static doppel_status trim_passages(uint64_t *result) {
    return run_trim((doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 4, .drop_share = 0.5, .memory = 1},
                    DOPPEL_TRIM_RECORDS, result);
}

static doppel_status trim_against(uint64_t *result) {
    return run_trim(
        (doppel_trim_options){
            .unit = DOPPEL_UNIT_PASSAGE, .words = 6, .min_words = 3, .against = &known, .against_count = 1},
        DOPPEL_TRIM_SPANS | DOPPEL_TRIM_ORIGINALS, result);
}

/* A run that keeps what it found, is resumed, and opened. */
static doppel_status trim_in_folder(uint64_t *result) {
    static const doppel_trim_options options = {.work = "work", .min_words = 4};
    doppel_trim_options again = options;
    doppel_trim *trim = NULL;
    doppel_error error = {0};
    again.resume = true;
    doppel_status status = run_trim(options, DOPPEL_TRIM_RECORDS, result);
    if (status == DOPPEL_OK)
        status = run_trim(again, DOPPEL_TRIM_RECORDS, result);
    if (status == DOPPEL_OK) {
        doppel_input_options reading = {.size = sizeof reading, .threads = threads};
        status = doppel_trim_open("work", &reading, &trim, &error);
        if (trim)
            status = write_all(trim, DOPPEL_TRIM_SPANS, result, &error);
        doppel_trim_free(trim);
        status = outcome(status, &error);
    }
    int kinds = pause_faults();
    unlink("work/trim");
    unlink("work/trim-spans");
    rmdir("work");
    resume_faults(kinds);
    return status;
}

/* A run that failed to keep what it found leaves a folder in which the next one starts over. */
static doppel_status start_over(uint64_t *result) {
    static const doppel_trim_options options = {.work = "work", .min_words = 4, .resume = true};
    doppel_status status = run_trim(options, DOPPEL_TRIM_SPANS, result);
    int kinds = pause_faults();
    if (status != DOPPEL_OK) {
        uint64_t truth = 0, again = 0;
        assert_int_equal(run_trim(options, DOPPEL_TRIM_SPANS, &again), DOPPEL_OK);
        assert_int_equal(run_trim((doppel_trim_options){.min_words = 4}, DOPPEL_TRIM_SPANS, &truth), DOPPEL_OK);
        assert_int_equal(again, truth);
    }
    unlink("work/trim");
    unlink("work/trim-spans");
    rmdir("work");
    resume_faults(kinds);
    return status;
}

/* ---- faults ---- */

static const scenario scenarios[] = {trim_lines,   trim_sentences, trim_passages,
                                     trim_against, trim_in_folder, start_over};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

/* One fault, then one after which all calls fail; under a sanitizer one or the other. */
static void run_first(size_t count, int kinds, doppel_status status) {
    expected = status;
    for (size_t i = 0; i<2 * count; i += SMALLER> 1 ? 3 : 1)
        run_with(scenarios[i / 2],
                 (fault_plan){.kinds = kinds, .go_on = i % 2, .expected = status, .may_pass = true, .sparse = true});
}

static void without_memory(void **state) {
    (void)state;
    save_documents();
    run_first(SCENARIOS, MEMORY, DOPPEL_ERROR_MEMORY);
}

static void without_files(void **state) {
    (void)state;
    save_documents();
    run_first(SCENARIOS, FILES | SYSTEM, DOPPEL_ERROR_IO);
}

static void without_threads(void **state) {
    (void)state;
    save_documents();
    threads = 3;
    run_first(full_suite() ? SCENARIOS : 3, THREADS, DOPPEL_ERROR_MEMORY);
    threads = 1;
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(without_memory), TEST(without_files), TEST(without_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
