/* test_tables_faults.c - tables without memory, threads or files that work: a clear error or the same result, all that
 * a reader of tables gave is released, and the same call works afterwards. The reader itself may be what has no memory.
 */
#include "faults.h"
#include "tables.h"
#include "work_folder.h"

#include "input/input.h"

/* ---- tables ---- */

static const table_row rows[] = {
    {.id = "1", .text = "one two three four five six seven eight nine ten eleven twelve", .url = "http://a.example/1"},
    {.text = "one two three four five six seven eight nine ten eleven thirteen", .title = "A title that is long"},
    {.id = "3"},
    {.id = "4", .text = "not valid: \xFF"},
    {.id = "5", .html = "<p>a page of some words in <b>HTML</b> and so on", .date = "2024-01-01"},
    {.text = "one two three four five six seven eight nine ten eleven twelve"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char *const paths[] = {"mem://all/", "c.jsonl", "d.table"};
enum { PATHS = 3 };

/* A small table, one with large parts, and one in memory. */
static void begin(test_table table[3], test_tables *tables) {
    static const char *const listed[] = {"a.table", "b.table", NULL};
    table[0] = (test_table){.path = "a.table", .rows = rows, .count = ROWS, .part_rows = 4, .batch_rows = 2};
    table[1] = (test_table){.path = "b.table", .rows = rows, .count = ROWS, .part_rows = 3, .large = true};
    table[2] = (test_table){.path = "d.table", .rows = rows, .count = ROWS, .in_memory = true};
    tables_begin(tables, table, 3);
    tables->listed = listed;
}

static void save_lines(void) {
    FILE *file = fopen("c.jsonl", "wb");
    assert_non_null(file);
    for (int i = 0; i < 5; i++)
        fprintf(file, "{\"id\":%d,\"text\":\"one two three four five six seven eight nine ten eleven %d\"}\n", i, i);
    assert_int_equal(fclose(file), 0);
}

static uint64_t mixed_bytes(uint64_t result, doppel_slice bytes) {
    for (size_t i = 0; i < bytes.length; i++)
        result = mixed(result, (unsigned char)bytes.data[i]);
    return result;
}

/* ---- documents ---- */

static doppel_status take(void *state, const doppel_document *document, doppel_output *output) {
    (void)output;
    uint64_t *result = state;
    *result = mixed_bytes(*result, document->id);
    *result = mixed_bytes(*result, document->text);
    *result = mixed_bytes(*result, document->html);
    *result = mixed_bytes(*result, document->extra[0]);
    return DOPPEL_OK;
}

/* What a fault is expected to come to. */
static doppel_status expected;
static int threads;

/* A table that could not be read for want of memory counts as one that cannot be read. */
static doppel_status read_documents(uint64_t *result) {
    static const char *const extra[] = {"date"};
    test_table table[3];
    test_tables tables;
    begin(table, &tables);
    doppel_input_options options = {
        .size = sizeof options, .threads = threads, .extra_keys = extra, .extra_count = 1, .tables = &tables.calls};
    doppel_work work = {.user = result, .document = take};
    dp_input_units units = {0};
    dp_input_job job = {.paths = paths, .path_count = PATHS, .options = &options, .work = &work, .units = &units};
    doppel_input_counts counts = {0};
    doppel_error error = {0};
    doppel_status status = dp_input_run(&job, &counts, &error);
    if (status != DOPPEL_OK)
        assert_int_equal(error.code, status);
    for (size_t i = 0; i < units.file_count && status == DOPPEL_OK; i++)
        *result = mixed(*result, units.files[i].documents);
    for (size_t i = 0; i < units.left_out_count && status == DOPPEL_OK; i++)
        *result = mixed(*result, units.left_out[i]);
    dp_input_units_free(&units);
    tables_end(&tables);
    return status == DOPPEL_OK && counts.unopened ? expected : status;
}

static void documents(void **state) {
    (void)state;
    save_lines();
    threads = 1;
    for (int go_on = 0; go_on < 2; go_on++) {
        expected = DOPPEL_ERROR_MEMORY;
        run_with(read_documents, (fault_plan){.kinds = MEMORY, .go_on = go_on, .expected = expected, .may_pass = true});
        expected = DOPPEL_ERROR_IO;
        run_with(read_documents, (fault_plan){.kinds = FILES, .go_on = go_on, .expected = expected, .may_pass = true});
    }
}

/* ---- batches ---- */

static doppel_status take_rows(const doppel_batch_rows *given, void *user) {
    uint64_t *result = user;
    *result = mixed_bytes(mixed(*result, given->count), doppel_slice_of(given->path));
    for (uint64_t i = 0; given->positions && i < given->count; i++)
        *result = mixed(*result, given->positions[i]);
    return DOPPEL_OK;
}

static doppel_status take_document(doppel_slice record, const doppel_near *near, void *user) {
    uint64_t *result = user;
    *result = mixed(mixed(mixed_bytes(*result, record), near->a), near->b);
    return DOPPEL_OK;
}

static doppel_status run_steps(doppel_batch *batch, uint64_t *result, doppel_error *error) {
    doppel_input_counts counts = {0};
    doppel_status status = doppel_batch_read(batch, paths, PATHS, false, &counts, error);
    if (status == DOPPEL_OK && counts.unopened)
        return expected;
    if (status == DOPPEL_OK)
        status = doppel_batch_decide(batch, error);
    if (status == DOPPEL_OK)
        status = doppel_batch_each_table(batch, take_rows, result, error);
    if (status == DOPPEL_OK)
        status = doppel_batch_write(batch, take_document, result, error);
    return status == DOPPEL_ERROR_INPUT ? expected : status; /* what had been read could not be read again */
}

static doppel_status run_batch(uint64_t *result) {
    test_table table[3];
    test_tables tables;
    begin(table, &tables);
    doppel_input_options input = {.size = sizeof input, .threads = threads, .tables = &tables.calls};
    doppel_batch_options options = {
        .size = sizeof options, .similarity = 0.5, .keep = "newest:date,first", .input = &input, .tmp = work_folder};
    doppel_batch *batch = NULL;
    doppel_error error = {0};
    doppel_status status = doppel_batch_create(&options, &batch, &error);
    if (status == DOPPEL_OK)
        status = run_steps(batch, result, &error);
    doppel_batch_free(batch);
    tables_end(&tables);
    return status;
}

static void batches(void **state) {
    (void)state;
    static const struct {
        int kinds;
        doppel_status outcome;
    } faults_of[] = {{MEMORY, DOPPEL_ERROR_MEMORY}, {FILES, DOPPEL_ERROR_IO}, {THREADS, DOPPEL_ERROR_MEMORY}};
    save_lines();
    for (size_t i = 0; i < 3; i++) {
        threads = faults_of[i].kinds == THREADS ? 3 : 1;
        expected = faults_of[i].outcome;
        for (int go_on = 0; go_on < 2; go_on++)
            run_with(run_batch, (fault_plan){.kinds = faults_of[i].kinds,
                                             .go_on = go_on,
                                             .expected = expected,
                                             .may_pass = true,
                                             .sparse = true});
    }
}

/* ---- the parts of a batch ---- */

static doppel_status decide_edges(uint64_t *result) {
    doppel_edge edges[] = {{0, 1, 0.9f}, {1, 2, 0.8f}, {3, 1, 0.7f}};
    uint32_t original[4] = {0};
    doppel_error error = {0};
    doppel_status status = doppel_decide_edges(edges, 3, 4, false, original, NULL, &error);
    for (int i = 0; i < 4 && status == DOPPEL_OK; i++)
        *result = mixed(*result, original[i]);
    assert_int_equal(error.code, status);
    return status;
}

static doppel_status make_keys(uint64_t *result) {
    const uint64_t set[] = {1, 2, 3};
    uint32_t keys[64] = {0};
    doppel_status status = doppel_bands_keys(set, 3, 64, 16, keys);
    for (int i = 0; i < 64 && status == DOPPEL_OK; i++)
        *result = mixed(*result, keys[i]);
    return status;
}

static void parts_of_a_batch(void **state) {
    (void)state;
    run_with(decide_edges, (fault_plan){.kinds = MEMORY, .expected = DOPPEL_ERROR_MEMORY});
    run_with(make_keys, (fault_plan){.kinds = MEMORY, .expected = DOPPEL_ERROR_MEMORY});
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(documents), TEST(batches), TEST(parts_of_a_batch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
