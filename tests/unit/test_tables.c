/* test_tables.c - tables as inputs (tests/unit/tables.h): rows to documents, parts and batches on threads, what is
 * wrong with rows and tables, which paths are tables, and the numbers of rows in a second run. */
#include "input_runs.h"
#include "tables.h"

#include "input/reader.h"

#define ROWS(of) .rows = (of), .count = sizeof(of) / sizeof *(of)

/* Runs over paths with tables; sizes may be NULL. */
static result run_tables(test_tables *tables, const char *const *paths, size_t count, doppel_input_options options,
                         const dp_input_sizes *sizes) {
    options.tables = &tables->calls;
    return run_job((dp_input_job){.paths = paths, .path_count = count, .sizes = sizes}, &options);
}

/* One table, alone: what comes out, what is reported. */
static void check_table(test_table table, doppel_input_options options, const char *output, const char *reports) {
    test_tables tables;
    table.path = "a.table";
    tables_begin(&tables, &table, 1);
    result r = run_tables(&tables, &table.path, 1, options, NULL);
    assert_int_equal(r.status, DOPPEL_OK);
    assert_string_equal(r.output.data, output);
    assert_string_equal(r.reports.data, reports);
    free_result(&r);
    tables_end(&tables);
}

/* The same however it is cut, and with any number of threads. */
static void check_cuts(test_table table, doppel_input_options options, const char *output, const char *reports) {
    for (int i = 0; i < 64; i++) {
        table.large = i & 1;
        table.empty_batches = i & 2;
        table.empty_parts = i & 4 ? 2 : 0;
        table.part_rows = (size_t)i % 5 * 2;
        table.batch_rows = (size_t)i / 8 % 4;
        options.threads = 1 + i % 3;
        check_table(table, options, output, reports);
    }
}

static const table_row few[] = {
    {.id = "1", .text = "one", .url = "http://a", .title = "A"},
    {.id = "2", .text = "the second text is longer than a view holds"},
    {.id = "3", .text = ""},
    {.id = "", .text = "four", .title = ""},
    {.id = "5", .text = "five", .url = "http://a/long/enough/for/a/buffer", .title = "another title, and a long one"},
};

static const char few_documents[] = "1|one|http://a|A\n2|the second text is longer than a view holds||\n3|||\n|four||\n"
                                    "5|five|http://a/long/enough/for/a/buffer|another title, and a long one\n";

/* ---- rows to documents ---- */

static void rows_are_documents_however_they_are_cut(void **state) {
    (void)state;
    check_cuts((test_table){ROWS(few)}, (doppel_input_options){0}, few_documents, "");
}

static void ids_that_are_missing_are_made_of_path_and_row(void **state) {
    (void)state;
    static const table_row rows[] = {{.text = "a"}, {.id = "x", .text = "b"}, {.text = "c"}, {.text = "d"}};
    static const doppel_input_options none = {.no_made_ids = true};
    check_cuts((test_table){ROWS(rows)}, (doppel_input_options){0},
               "a.table:1|a||\nx|b||\na.table:3|c||\na.table:4|d||\n", "");
    check_cuts((test_table){ROWS(rows), .without = "id"}, (doppel_input_options){0},
               "a.table:1|a||\na.table:2|b||\na.table:3|c||\na.table:4|d||\n", "");
    check_table((test_table){ROWS(rows)}, none, "|a||\nx|b||\n|c||\n|d||\n", "");
}

static void rows_without_text_are_bad(void **state) {
    (void)state;
    static const table_row rows[] = {
        {.id = "1"}, {.id = "2", .text = "a"}, {0}, {.id = "4", .html = "<p>"}, {.id = "5", .text = "b"}, {.id = "6"}};
    static const char documents[] = "2|a||\n4|||\n5|b||\n",
                      reports[] = "a.table:1: \"text\" is null\na.table:3: \"text\" is null\na.table:6: \"text\" is "
                                  "null\n";
    check_cuts((test_table){ROWS(rows)}, (doppel_input_options){0}, documents, reports);
}

static void rows_that_are_too_long_are_bad(void **state) {
    (void)state;
    static const table_row rows[] = {{.id = "1", .text = "1234567890"},
                                     {.id = "2", .text = "12345678901"},
                                     {.id = "3", .text = "123456", .html = "12345"},
                                     {.id = "4, and this is no part of the limit", .html = "1234567890"}};
    check_cuts((test_table){ROWS(rows)}, (doppel_input_options){.max_record = 10},
               "1|1234567890||\n4, and this is no part of the limit|||\n",
               "a.table:2: longer than the limit of 10 bytes; --max-record sets it\n"
               "a.table:3: longer than the limit of 10 bytes; --max-record sets it\n");
}

static void invalid_utf8_is_repaired_unless_it_stays_in_memory(void **state) {
    (void)state;
    static const table_row rows[] = {{.id = "1", .text = "a\xFFz"}, {.id = "2", .text = "b"}};
    check_table((test_table){ROWS(rows)}, (doppel_input_options){0}, "1|a\xEF\xBF\xBDz||\n2|b||\n",
                "a.table:1: repaired: invalid UTF-8 became U+FFFD\n");
    check_table((test_table){ROWS(rows), .in_memory = true}, (doppel_input_options){0}, "1|a\xFFz||\n2|b||\n", "");
}

static doppel_status write_fields(void *state, const doppel_document *d, doppel_output *output) {
    char line[40];
    (void)state;
    assert_true(d->from_table && !d->record.data && !d->alias.data && d->record_at == DOPPEL_NO_POSITION);
    assert_string_equal(d->charset ? d->charset : "none", d->html.data ? "utf-8" : "none");
    snprintf(line, sizeof line, "%s:%llu%s", d->file, (unsigned long long)d->line, d->html.data ? " html " : " ");
    doppel_output_write(output, doppel_slice_of(line));
    doppel_output_write(output, d->html);
    doppel_output_write(output, doppel_slice_of(d->extra[0].data ? " =" : " "));
    doppel_output_write(output, d->extra[0]);
    return doppel_output_write(output, doppel_slice_of("\n"));
}

static void note_unseen(const char *key, void *user) {
    dp_buffer_printf(&((result *)user)->reports, "unseen %s\n", key);
}

static void keys_and_more_fields_are_given_and_those_missing_are_named(void **state) {
    (void)state;
    static const table_row rows[] = {{.text = "a", .date = "2020"}, {.html = "<p>b"}, {.title = "", .date = ""}};
    static const char *const extra[] = {"date", "none"};
    const char *path = "a.table";
    test_table table = {.path = path, ROWS(rows), .part_rows = 2};
    test_tables tables;
    result kept = {0};
    doppel_work work = {.user = &kept, .document = write_fields, .emit = collect};
    doppel_input_options options = {.extra_keys = extra, .extra_count = 2, .unseen = note_unseen, .url_key = "link"};
    tables_begin(&tables, &table, 1);
    options.tables = &tables.calls;
    result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .work = &work}, &options);
    dp_buffer_add(&kept.output, "", 1);
    assert_string_equal(kept.output.data, "a.table:1  =2020\na.table:2 html <p>b \n");
    assert_string_equal(r.reports.data, "a.table:3: \"text\" is null\nunseen link\nunseen none\n");
    assert_int_equal(r.counts.bytes, 5);
    free_result(&r);
    free_result(&kept);
    tables_end(&tables);
}

static void a_column_of_another_name_is_the_text(void **state) {
    (void)state;
    static const table_row rows[] = {{.id = "1", .text = "no", .date = "2020"}, {.id = "2", .text = "no"}};
    check_cuts((test_table){ROWS(rows)}, (doppel_input_options){.text_key = "date"}, "1|2020||\n",
               "a.table:2: \"date\" is null\n");
}

/* ---- what stays in memory ---- */

static const char *first_text; /* of the first row */

static doppel_status note_text(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    (void)output;
    assert_true(d->stays);
    if (d->line == 1)
        first_text = d->text.data;
    return DOPPEL_OK;
}

static void texts_in_memory_stay_after_the_run(void **state) {
    (void)state;
    test_table table = {.path = "a.table", ROWS(few), .in_memory = true, .part_rows = 2};
    test_tables tables;
    doppel_work work = {.document = note_text};
    doppel_input_options options = {.size = sizeof options, .threads = 2};
    tables_begin(&tables, &table, 1);
    options.tables = &tables.calls;
    assert_int_equal(doppel_input_run(&table.path, 1, &options, &work, NULL, NULL), DOPPEL_OK);
    assert_memory_equal(first_text, "one", 3);
    tables_end(&tables);
    check_cuts((test_table){ROWS(few), .in_memory = true}, (doppel_input_options){0}, few_documents, "");
}

/* A table in memory whose texts are numbers, which are written out. */
static int64_t two_numbers[] = {17, 18};
static const void *number_buffers[] = {NULL, two_numbers}, *no_buffers[] = {NULL};
static struct ArrowSchema number_schema = {.format = "l", .name = "text"}, *number_schemas[] = {&number_schema};
static struct ArrowArray number_array = {.length = 2, .n_buffers = 2, .buffers = number_buffers},
                         *number_arrays[] = {&number_array};
static const uint64_t number_rows[] = {2};
static bool numbers_given;

static void drop_schema(struct ArrowSchema *schema) {
    schema->release = NULL;
}

static void drop_array(struct ArrowArray *array) {
    array->release = NULL;
}

static void drop_stream(struct ArrowArrayStream *stream) {
    stream->release = NULL;
}

static int give_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    (void)stream;
    *out = (struct ArrowSchema){.format = "+s", .n_children = 1, .children = number_schemas, .release = drop_schema};
    return 0;
}

static int give_numbers(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    (void)stream;
    *out = (struct ArrowArray){0};
    if (!numbers_given)
        *out = (struct ArrowArray){.length = 2,
                                   .n_buffers = 1,
                                   .buffers = no_buffers,
                                   .n_children = 1,
                                   .children = number_arrays,
                                   .release = drop_array};
    numbers_given = true;
    return 0;
}

static bool claims_all(const char *path, void *user) {
    (void)path, (void)user;
    return true;
}

static doppel_status open_numbers(const char *path, const char *const *columns, size_t column_count,
                                  doppel_table *table, void *user, doppel_error *error) {
    (void)path, (void)columns, (void)column_count, (void)user, (void)error;
    table->parts = 1;
    table->rows = number_rows;
    table->in_memory = true;
    return DOPPEL_OK;
}

static doppel_status read_numbers(const doppel_table *table, uint64_t part, struct ArrowArrayStream *stream, void *user,
                                  doppel_error *error) {
    (void)table, (void)part, (void)user, (void)error;
    *stream = (struct ArrowArrayStream){give_schema, give_numbers, NULL, drop_stream, NULL};
    return DOPPEL_OK;
}

static void close_numbers(doppel_table *table, void *user) {
    (void)table, (void)user;
}

static doppel_status check_number(void *state, const doppel_document *d, doppel_output *output) {
    (void)state, (void)output;
    assert_false(d->stays);
    assert_memory_equal(d->text.data, d->line == 1 ? "17" : "18", 2);
    return DOPPEL_OK;
}

static void texts_that_were_written_out_do_not_stay(void **state) {
    (void)state;
    const char *path = "numbers.table";
    const doppel_tables tables = {.size = sizeof tables,
                                  .claims = claims_all,
                                  .open = open_numbers,
                                  .read = read_numbers,
                                  .close = close_numbers};
    const doppel_work work = {.document = check_number};
    const doppel_input_options options = {.size = sizeof options, .threads = 1, .tables = &tables};
    doppel_input_counts counts;
    assert_int_equal(doppel_input_run(&path, 1, &options, &work, &counts, NULL), DOPPEL_OK);
    assert_int_equal(counts.documents, 2);
}

/* ---- tables that are wrong ---- */

/* A table that ends early, before a JSONL file that is read all the same. */
static void check_wrong(test_table table, doppel_input_options options, const char *documents, const char *why) {
    const char *paths[] = {"a.table", "b.jsonl"};
    dp_buffer output = {0}, reports = {0};
    test_tables tables;
    write_text(paths[1], "{\"id\":\"json\",\"text\":\"x\"}\n");
    dp_buffer_printf(&output, "%sjson|x||%c", documents, '\n');
    dp_buffer_printf(&reports, "a.table:0: %s\n", why);
    dp_buffer_add(&output, "", 1);
    dp_buffer_add(&reports, "", 1);
    table.path = paths[0];
    tables_begin(&tables, &table, 1);
    for (options.threads = 1; options.threads <= 4; options.threads++) {
        result r = run_tables(&tables, paths, 2, options, NULL);
        assert_int_equal(r.status, DOPPEL_OK);
        assert_string_equal(r.output.data, output.data);
        assert_string_equal(r.reports.data, reports.data);
        assert_int_equal(r.counts.unopened, 1);
        assert_int_equal(r.counts.bad, 0);
        free_result(&r);
    }
    tables_end(&tables);
    dp_buffer_free(&output);
    dp_buffer_free(&reports);
}

static void a_missing_text_is_told_once(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        test_table table = {ROWS(few), .part_rows = (size_t)i % 3, .batch_rows = i & 2 ? 1 : 0, .large = i & 4,
                            .without = "*"};
        check_wrong(table, (doppel_input_options){0}, "",
                    "has no column \"text\" or \"html\": name the one with the text; its columns are some, others");
        table.without = NULL;
        check_table(table, (doppel_input_options){.text_key = "body", .html_key = "page"}, "",
                    "a.table:0: has no column \"body\" or \"page\": name the one with the text\n");
    }
}

static void a_column_that_is_no_text_is_told_once(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        test_table table = {.rows = few, .count = i & 1 ? 3 : 5, .part_rows = i & 2 ? 1 : 0, .large = i & 4};
        table.unreadable = i & 1 ? "url" : "text";
        check_wrong(table, (doppel_input_options){0}, "",
                    i & 1 ? "the column \"url\" is of the Arrow type \"+l\", which is not text"
                          : "the column \"text\" is of the Arrow type \"+l\", which is not text");
    }
}

static const char three[] = "1|one|http://a|A\n2|the second text is longer than a view holds||\n3|||\n";

static void a_stream_that_breaks_off_ends_the_table(void **state) {
    (void)state;
    for (int i = 0; i < 12; i++) {
        static const size_t part_rows[] = {0, 3, 1};
        test_table table = {ROWS(few), .part_rows = part_rows[i % 3], .batch_rows = 1, .large = i & 4, .break_at = 4};
        check_wrong(table, (doppel_input_options){0}, three, "cannot be read: Input/output error");
        table.why = "the page at 7 is damaged";
        check_wrong(table, (doppel_input_options){0}, three, "cannot be read: the page at 7 is damaged");
        table.break_at = 1;
        check_wrong(table, (doppel_input_options){0}, "", "cannot be read: the page at 7 is damaged");
    }
}

static void a_part_that_cannot_be_read_ends_the_table(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        test_table table = {ROWS(few), .part_rows = 3, .batch_rows = i & 1, .large = i & 2, .break_at = 4};
        table.read_status = DOPPEL_ERROR_IO;
        check_wrong(table, (doppel_input_options){0}, three, "read or write failed");
        table.why = "is gone";
        check_wrong(table, (doppel_input_options){0}, three, "is gone");
    }
}

static void a_table_that_cannot_be_opened_is_told(void **state) {
    (void)state;
    check_wrong((test_table){.open_status = DOPPEL_ERROR_INPUT, .why = "is no Parquet"}, (doppel_input_options){0}, "",
                "is no Parquet");
    check_wrong((test_table){.open_status = DOPPEL_ERROR_IO}, (doppel_input_options){0}, "", "read or write failed");
}

static void parts_have_the_rows_that_the_table_says(void **state) {
    (void)state;
    static const char why[] = "a part does not have the number of rows that the table states";
    for (int i = 0; i < 16; i++) {
        test_table table = {.rows = few, .count = 3, .batch_rows = (size_t)i % 3, .large = i & 4};
        table.part_rows = i & 8 ? 2 : 0;
        table.promised = 1;
        check_wrong(table, (doppel_input_options){0}, three, why);
        table.promised = -1;
        table.part_rows = 0;
        table.batch_rows = 2;
        check_wrong(table, (doppel_input_options){0},
                    "1|one|http://a|A\n2|the second text is longer than a view holds||\n", why);
        table.batch_rows = 0;
        check_wrong(table, (doppel_input_options){0}, "", why);
    }
}

static void want_of_memory_and_interruptions_end_the_run(void **state) {
    (void)state;
    static const doppel_status ends[] = {DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_INTERRUPTED};
    const char *paths[] = {"a.table", "b.table"};
    for (int i = 0; i < 16; i++) {
        doppel_status status = ends[i % 2];
        test_table table[] = {{.path = paths[0], ROWS(few), .part_rows = 2, .large = i & 8},
                              {.path = paths[1], ROWS(few)}};
        test_tables tables;
        if (i & 4)
            table[0].open_status = status;
        else
            table[0].read_status = status;
        tables_begin(&tables, table, 2);
        result r = run_tables(&tables, paths, 2, (doppel_input_options){.threads = 1 + (i & 2)}, NULL);
        assert_int_equal(r.status, status);
        assert_int_equal(r.error.code, status);
        assert_string_equal(r.reports.data, "");
        free_result(&r);
        tables_end(&tables);
    }
}

static void a_bad_row_or_table_ends_a_strict_run(void **state) {
    (void)state;
    static const table_row rows[] = {{.id = "1", .text = "a"}, {.id = "2"}, {.id = "3", .text = "c"}};
    for (int i = 0; i < 8; i++) {
        test_table table = {.path = "a.table", ROWS(rows), .part_rows = (size_t)i % 2, .large = i & 2};
        test_tables tables;
        if (i & 4)
            table.without = "text", table.unreadable = "html";
        tables_begin(&tables, &table, 1);
        result r = run_tables(&tables, &table.path, 1, (doppel_input_options){.strict = true, .threads = 2}, NULL);
        assert_int_equal(r.status, DOPPEL_ERROR_INPUT);
        assert_string_equal(r.error.file, "a.table");
        assert_int_equal(r.error.line, i & 4 ? 0 : 2);
        assert_string_equal(r.output.data, i & 4 ? "" : "1|a||\n");
        free_result(&r);
        tables_end(&tables);
    }
}

static void tables_of_bad_rows_are_refused(void **state) {
    (void)state;
    static const table_row rows[] = {{.id = "1", .text = "a"}, {.id = "2"}, {.id = "3"}, {.id = "4"}};
    for (int i = 0; i < 4; i++) {
        test_table table = {.path = "a.table", ROWS(rows), .part_rows = i & 1, .large = i & 2};
        test_tables tables;
        tables_begin(&tables, &table, 1);
        result r = run_tables(&tables, &table.path, 1, (doppel_input_options){.refuse_bad = true}, NULL);
        assert_int_equal(r.status, DOPPEL_ERROR_INPUT);
        assert_string_equal(
            r.error.message,
            "3 of 4 records are bad; the first bad one, row 2: \"text\" is null; --allow-bad continues without them");
        free_result(&r);
        tables_end(&tables);
    }
}

static doppel_status stop_at_two(void *state, const doppel_document *d, doppel_output *output) {
    (void)output;
    if (d->line == 2)
        __atomic_store_n((int *)state, 1, __ATOMIC_RELAXED);
    return DOPPEL_OK;
}

static void a_run_that_is_stopped_releases_all(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        test_table table = {.path = "a.table", ROWS(few), .part_rows = i & 1, .batch_rows = 1, .large = i & 2};
        volatile int stop = 0;
        test_tables tables;
        doppel_work work = {.user = (void *)(uintptr_t)&stop, .document = stop_at_two};
        doppel_input_options options = {.size = sizeof options, .threads = 1 + i / 4, .stop = &stop};
        tables_begin(&tables, &table, 1);
        options.tables = &tables.calls;
        assert_int_equal(doppel_input_run(&table.path, 1, &options, &work, NULL, NULL), DOPPEL_ERROR_INTERRUPTED);
        tables_end(&tables);
    }
}

/* ---- paths ---- */

static void empty_tables_do_not_end_the_run(void **state) {
    (void)state;
    const char *paths[] = {"a.table", "b.table", "c.table", "d.table"};
    for (int i = 0; i < 8; i++) {
        test_table table[] = {
            {.path = paths[0]},
            {.path = paths[1], .empty_parts = 3, .large = i & 1, .empty_batches = i & 2},
            {.path = paths[2], .empty_parts = 1, .without = i & 4 ? "*" : NULL, .empty_batches = true},
            {.path = paths[3], ROWS(few), .large = i & 1, .part_rows = 2}};
        test_tables tables;
        tables_begin(&tables, table, 4);
        result r = run_tables(&tables, paths, 4, (doppel_input_options){.threads = 1 + i % 3}, NULL);
        assert_int_equal(r.status, DOPPEL_OK);
        assert_string_equal(r.output.data, few_documents);
        assert_int_equal(r.counts.unopened, i & 4 ? 1 : 0);
        for (int k = 0; k < 4; k++)
            assert_int_equal(table[k].opened, 1);
        free_result(&r);
        tables_end(&tables);
    }
}

static const table_row row_a[] = {{.id = "a", .text = "x"}}, row_b[] = {{.id = "b", .text = "x"}},
                       row_c[] = {{.id = "c", .text = "x"}};

/* What paths stand for, with tables of one row. */
static void check_paths(const char *const *paths, size_t count, const char *const *listed, doppel_status list_status,
                        const char *output, const char *reports) {
    test_table table[] = {{.path = "mem://all/a.table", ROWS(row_a)},
                          {.path = "mem://b.table", ROWS(row_b)},
                          {.path = "d/c.table", ROWS(row_c)},
                          {.path = "d/b.table", ROWS(row_b)}};
    for (int threads = 1; threads <= 3; threads++) {
        test_tables tables;
        tables_begin(&tables, table, 4);
        tables.listed = listed;
        tables.list_status = list_status;
        result r = run_tables(&tables, paths, count, (doppel_input_options){.threads = threads}, NULL);
        assert_int_equal(r.status, DOPPEL_OK);
        assert_string_equal(r.output.data, output);
        assert_string_equal(r.reports.data, reports);
        free_result(&r);
        tables_end(&tables);
    }
}

static void a_url_stands_for_what_is_listed(void **state) {
    (void)state;
    const char *paths[] = {"mem://all/", "mem://b.table", "d/c.table"};
    static const char *const two[] = {"mem://all/a.table", "mem://b.table", NULL}, *const none[] = {NULL};
    check_paths(paths, 3, two, DOPPEL_OK, "a|x||\nb|x||\nb|x||\nc|x||\n", "");
    /* One that lists nothing, or cannot, stands for itself. */
    check_paths(paths, 3, none, DOPPEL_OK, "b|x||\nc|x||\n", "mem://all/:0: cannot open: No such file or directory\n");
    check_paths(paths, 3, two, DOPPEL_ERROR_IO, "b|x||\nc|x||\n",
                "mem://all/:0: cannot open: No such file or directory\n");
}

static void hidden_files_beside_tables_are_left_out(void **state) {
    (void)state;
    const char *path = ".";
    assert_int_equal(system("mkdir d plain d/_more d/.git d/e"), 0);
    static const char *const names[] = {"d/c.table", "d/b.table", "d/_SUCCESS", "d/.b.table.crc", "d/_z.table",
                                        "d/_more/x", "d/.git/x",  "d/e/_x",     "plain/_y"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        write_text(names[i], "x");
    write_text("d/d.jsonl", "{\"id\":\"d\",\"text\":\"json\"}\n");
    check_paths(&path, 1, NULL, DOPPEL_OK, "d|json||\n./d/e/_x|x||\n./plain/_y|x||\n",
                "./d/b.table:0: there is no such table\n./d/c.table:0: there is no such table\n");
    path = "d";
    check_paths(&path, 1, NULL, DOPPEL_OK, "b|x||\nc|x||\nd|json||\nd/e/_x|x||\n", "");
    result r = run_path("d/_more");
    assert_string_equal(r.output.data, "d/_more/x|x||\n");
    free_result(&r);
    /* Above folders of partitions, too. */
    assert_int_equal(system("mkdir -p all/year=1"), 0);
    write_text("all/_SUCCESS", "x");
    write_text("all/year=1/a.jsonl", "{\"id\":\"a\",\"text\":\"json\"}\n");
    path = "all";
    check_paths(&path, 1, NULL, DOPPEL_OK, "a|json||\n", "");
}

static void a_pattern_may_match_tables(void **state) {
    (void)state;
    const char *path = "d/*.table";
    assert_int_equal(system("mkdir d && touch d/c.table d/b.table d/a.txt"), 0);
    check_paths(&path, 1, NULL, DOPPEL_OK, "b|x||\nc|x||\n", "");
}

/* ---- tables among other files ---- */

static const char *const mixed[] = {"a.table", "b.jsonl", "small", "c.table", "d.csv", "e.table"};
enum { MIXED = 6, SOME = 40 };

static table_row some[SOME + 1]; /* every fifth without a text */

static void make_mixed(test_table table[3]) {
    static char ids[SOME + 1][8];
    dp_buffer lines = {0};
    for (int i = 0; i <= SOME; i++) {
        snprintf(ids[i], sizeof ids[i], "t%d", i);
        some[i] = (table_row){.id = ids[i], .text = i % 5 == 3 ? NULL : "a text of a row"};
        if (i < SOME)
            dp_buffer_printf(&lines, "{\"id\":\"j%d\",\"text\":\"%*s\"}\n%s", i, i * 7, "x", i % 4 ? "" : "bad\n");
    }
    write_bytes(mixed[1], lines.data, lines.size);
    dp_buffer_free(&lines);
    assert_int_equal(system("mkdir -p small"), 0);
    write_text("small/1.jsonl", "{\"id\":\"s1\",\"text\":\"\"}\n");
    write_text("small/2.txt", "plain");
    write_text(mixed[4], "id,text\nc1,x\nc2,y\n");
    table[0] = (test_table){.path = mixed[0], .rows = some, .count = SOME, .part_rows = 7, .batch_rows = 3};
    table[1] =
        (test_table){.path = mixed[3], .rows = some, .count = SOME, .part_rows = 20, .batch_rows = 6, .large = true};
    table[2] = (test_table){.path = mixed[5], .rows = some, .count = 3};
}

/* Sizes and threads that cut the inputs in many ways. */
static dp_input_sizes sizes_of(int i) {
    return (dp_input_sizes){.block = 50 + (size_t)i * 97,
                            .small_file = i & 1 ? 2000 : 0,
                            .batch_files = 1 + (size_t)i % 4,
                            .pending = i & 2 ? 40 : 1 << 20};
}

static void output_does_not_depend_on_threads(void **state) {
    (void)state;
    test_table table[3];
    test_tables tables;
    make_mixed(table);
    tables_begin(&tables, table, 3);
    result first = run_tables(&tables, mixed, MIXED, (doppel_input_options){.threads = 1}, NULL);
    assert_int_equal(first.counts.documents, 32 + SOME + 2 + 32 + 2 + 3);
    assert_int_equal(first.counts.bad, 8 + 10 + 8);
    for (int i = 0; i < 24; i++) {
        dp_input_sizes sizes = sizes_of(i);
        result r = run_tables(&tables, mixed, MIXED, (doppel_input_options){.threads = 1 + i % 5}, &sizes);
        assert_int_equal(r.status, DOPPEL_OK);
        assert_string_equal(r.output.data, first.output.data);
        assert_string_equal(r.reports.data, first.reports.data);
        assert_memory_equal(&r.counts, &first.counts, sizeof r.counts);
        free_result(&r);
    }
    free_result(&first);
    tables_end(&tables);
}

/* ---- a second run ---- */

static doppel_status write_number(void *state, uint64_t number, const doppel_document *d, doppel_output *output) {
    char text[100];
    (void)state;
    snprintf(text, sizeof text, "%llu %.*s\n", (unsigned long long)number, (int)d->id.length, d->id.data);
    return doppel_output_write(output, doppel_slice_of(text));
}

static doppel_status write_id(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    doppel_output_write(output, d->id);
    return doppel_output_write(output, doppel_slice_of("\n"));
}

static result run_numbered(test_tables *tables, dp_input_job job, int threads, dp_buffer *output) {
    result kept = {0};
    doppel_input_options options = {.threads = threads, .tables = &tables->calls};
    doppel_work work = {.user = &kept, .document = write_id, .emit = collect};
    job.paths = mixed;
    job.path_count = MIXED;
    job.work = &work;
    result r = run_job(job, &options);
    dp_buffer_add(&kept.output, "", 1);
    *output = kept.output;
    return r;
}

/* What a second run should write of the ids of the first. */
static dp_buffer with_numbers(const char *ids) {
    dp_buffer to = {0};
    for (int number = 0; *ids; number++) {
        int length = (int)strcspn(ids, "\n");
        dp_buffer_printf(&to, "%d %.*s\n", number, length, ids);
        ids += length + 1;
    }
    dp_buffer_add(&to, "", 1);
    return to;
}

static void expect_numbers(test_tables *tables, int i) {
    dp_input_sizes sizes = sizes_of(i);
    dp_input_units units = {0};
    dp_input_numbered numbered = {&units, NULL, write_number};
    dp_buffer ids, numbers;
    result first = run_numbered(tables, (dp_input_job){.sizes = &sizes, .units = &units}, 1 + i % 4, &ids);
    result second = run_numbered(tables, (dp_input_job){.sizes = &sizes, .numbered = &numbered}, 1 + i / 4, &numbers);
    dp_buffer expected = with_numbers(ids.data);
    assert_int_equal(first.status, DOPPEL_OK);
    assert_int_equal(second.status, DOPPEL_OK);
    assert_int_equal(units.documents, first.counts.documents);
    assert_memory_equal(&first.counts, &second.counts, sizeof first.counts);
    assert_string_equal(numbers.data, expected.data);
    free_result(&first);
    free_result(&second);
    dp_buffer_free(&ids);
    dp_buffer_free(&numbers);
    dp_buffer_free(&expected);
    dp_input_units_free(&units);
}

static void a_second_run_knows_the_numbers(void **state) {
    (void)state;
    test_table table[3];
    test_tables tables;
    make_mixed(table);
    tables_begin(&tables, table, 3);
    for (int i = 0; i < 16; i++)
        expect_numbers(&tables, i);
    /* And of tables that break off at the same place. */
    table[0].break_at = 11;
    table[1].break_at = 27;
    for (int i = 0; i < 16; i++)
        expect_numbers(&tables, i);
    tables_end(&tables);
}

static void a_second_run_fails_when_a_table_has_changed(void **state) {
    (void)state;
    test_table table[3], changed[3];
    test_tables tables;
    dp_input_units units = {0};
    dp_input_numbered numbered = {&units, NULL, write_number};
    dp_buffer ids;
    make_mixed(table);
    make_mixed(changed);
    tables_begin(&tables, table, 3);
    result first = run_numbered(&tables, (dp_input_job){.units = &units}, 2, &ids);
    tables.table = changed;
    for (int i = 0; i < 12; i++) {
        make_mixed(changed);
        if (i % 3 == 0)
            changed[i / 3 % 2].rows++; /* so that others are bad */
        else if (i % 3 == 1)
            changed[i / 3 % 2].count--;
        else
            changed[i / 3 % 2].break_at = 5;
        dp_buffer numbers;
        result r = run_numbered(&tables, (dp_input_job){.numbered = &numbered}, 1 + i / 3, &numbers);
        assert_int_equal(r.status, DOPPEL_ERROR_INPUT);
        assert_string_equal(r.error.message, DP_WHY_CHANGED);
        free_result(&r);
        dp_buffer_free(&numbers);
    }
    free_result(&first);
    dp_buffer_free(&ids);
    dp_input_units_free(&units);
    tables_end(&tables);
}

static void files_and_rows_left_out_are_noted(void **state) {
    (void)state;
    static const char *const paths[] = {"a.table", "b.jsonl", "small/1.jsonl", "small/2.txt",
                                        "c.table", "d.csv",   "e.table"};
    static const uint64_t documents[] = {32, SOME, 1, 1, 21, 2, 3},
                          left_out[] = {3, 8, 13, 18, 23, 28, 33, 38, 3, 8, 13, 18, 23};
    test_table table[3];
    test_tables tables;
    make_mixed(table);
    table[1].break_at = 27; /* its second part has 20 rows from the 21st on, in batches of 6 */
    tables_begin(&tables, table, 3);
    for (int i = 0; i < 16; i++) {
        dp_input_sizes sizes = sizes_of(i);
        dp_input_units units = {0};
        dp_buffer ids;
        result r = run_numbered(&tables, (dp_input_job){.sizes = &sizes, .units = &units}, 1 + i % 4, &ids);
        assert_int_equal(units.file_count, 7);
        for (size_t k = 0; k < 7; k++) {
            const dp_input_file *file = &units.files[k];
            assert_string_equal(file->path, paths[k]);
            assert_int_equal(file->number, k);
            assert_int_equal(file->table, tables_claim(paths[k], NULL));
            assert_int_equal(file->documents, documents[k]);
            assert_int_equal(file->left_out, k == 0 ? 0 : k < 5 ? 8 : 13);
        }
        assert_int_equal(units.left_out_count, sizeof left_out / sizeof *left_out);
        assert_memory_equal(units.left_out, left_out, sizeof left_out);
        free_result(&r);
        dp_buffer_free(&ids);
        dp_input_units_free(&units);
    }
    tables_end(&tables);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(rows_are_documents_however_they_are_cut),
        TEST(ids_that_are_missing_are_made_of_path_and_row),
        TEST(rows_without_text_are_bad),
        TEST(rows_that_are_too_long_are_bad),
        TEST(invalid_utf8_is_repaired_unless_it_stays_in_memory),
        TEST(keys_and_more_fields_are_given_and_those_missing_are_named),
        TEST(a_column_of_another_name_is_the_text),
        TEST(texts_in_memory_stay_after_the_run),
        TEST(texts_that_were_written_out_do_not_stay),
        TEST(a_missing_text_is_told_once),
        TEST(a_column_that_is_no_text_is_told_once),
        TEST(a_stream_that_breaks_off_ends_the_table),
        TEST(a_part_that_cannot_be_read_ends_the_table),
        TEST(a_table_that_cannot_be_opened_is_told),
        TEST(parts_have_the_rows_that_the_table_says),
        TEST(want_of_memory_and_interruptions_end_the_run),
        TEST(a_bad_row_or_table_ends_a_strict_run),
        TEST(tables_of_bad_rows_are_refused),
        TEST(a_run_that_is_stopped_releases_all),
        TEST(empty_tables_do_not_end_the_run),
        TEST(a_url_stands_for_what_is_listed),
        TEST(hidden_files_beside_tables_are_left_out),
        TEST(a_pattern_may_match_tables),
        TEST(output_does_not_depend_on_threads),
        TEST(a_second_run_knows_the_numbers),
        TEST(a_second_run_fails_when_a_table_has_changed),
        TEST(files_and_rows_left_out_are_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
