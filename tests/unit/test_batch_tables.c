/* test_batch_tables.c - batches of tables (tests/unit/tables.h): the decisions are those for the same documents as
 * JSONL, whether texts are kept in memory or read again; which rows of a table are which documents. */
#include "batches.h"
#include "tables.h"
#include "work_folder.h"

#include <unistd.h>

/* ---- documents: rows, and the same as JSONL ---- */

enum { DOCUMENTS = 60 };

static table_row rows[DOCUMENTS];

static const char *keep_text(char *memory, size_t *used, const char *text) {
    char *kept = memory + *used;
    *used += strlen(text) + 1;
    return strcpy(kept, text);
}

/* Copies, near copies, pages, short texts and none: every 13th row has neither text nor page, and is left out. */
static void make_rows(void) {
    static char memory[DOCUMENTS * 1000];
    dp_buffer words = {0};
    uint64_t random = 1;
    size_t used = 0;
    for (size_t i = 0; i < DOCUMENTS; i++) {
        char field[100];
        if (i % 5 == 0) {
            words.size = 0;
            add_words(&words, &random, 60);
            dp_buffer_add(&words, "", 1);
        }
        for (size_t k = 0; k < (i % 5 == 2 ? 1u : i % 5 == 3 ? 4u : 0u); k++)
            words.data[1 + random_below(&random, words.size - 3)] = 'x';
        rows[i] = (table_row){.text = i % 5 < 4     ? keep_text(memory, &used, words.data)
                                      : i % 10 == 4 ? ""
                                                    : "two words"};
        snprintf(field, sizeof field, "d%zu", i);
        rows[i].id = keep_text(memory, &used, field);
        snprintf(field, sizeof field, "http://host%zu.example/%zu", i % 3, i % 17);
        rows[i].url = i % 4 ? keep_text(memory, &used, field) : NULL;
        snprintf(field, sizeof field, "A title that is long enough %zu", i / 9);
        rows[i].title = i % 2 ? keep_text(memory, &used, field) : NULL;
        snprintf(field, sizeof field, "2024-01-%02zu", 1 + i * 7 % 28);
        rows[i].date = i % 6 ? keep_text(memory, &used, field) : NULL;
        if (i % 7 == 3) {
            rows[i].html = rows[i].text;
            rows[i].text = NULL;
        }
        if (i % 13 == 6)
            rows[i].html = rows[i].text = NULL;
    }
    assert_true(used <= sizeof memory);
    dp_buffer_free(&words);
}

static void save_rows(const char *path, size_t from, size_t to) {
    dp_buffer lines = {0};
    for (size_t i = from; i < to; i++) {
        for (int field = 0; field < ROW_FIELDS; field++) {
            const char *text = field_of(&rows[i], field);
            if (text)
                dp_buffer_printf(&lines, "%s\"%s\":\"%s\"", field ? "," : "{", row_fields[field], text);
        }
        dp_buffer_add(&lines, "}\n", 2);
    }
    spit(path, lines.data, lines.size);
    dp_buffer_free(&lines);
}

/* Two tables of all rows, and two files of the same. */
static const char *const table_paths[] = {"a.table", "b.table"}, *const file_paths[] = {"a.jsonl", "b.jsonl"};
enum { FIRST = 35 };

static void make_tables(test_table table[2], test_tables *tables) {
    make_rows();
    table[0] = (test_table){.path = table_paths[0], .rows = rows, .count = FIRST};
    table[1] = (test_table){.path = table_paths[1], .rows = rows + FIRST, .count = DOCUMENTS - FIRST};
    tables_begin(tables, table, 2);
}

static void cut_tables(test_table table[2], int i) {
    for (int k = 0; k < 2; k++) {
        table[k].in_memory = i & 1;
        table[k].large = i & 2;
        table[k].part_rows = i & 4 ? 9 : 0;
        table[k].batch_rows = i & 8 ? 4 : 0;
    }
}

static int threads_of(int i) {
    return 1 + i % 3;
}

/* ---- the same as JSONL ---- */

static doppel_status take_near(doppel_slice record, const doppel_near *near, void *user) {
    assert_int_equal(record.data[0], '{');
    assert_true(dp_buffer_printf(user, "%llu %llu\n", (unsigned long long)near->a, (unsigned long long)near->b));
    return DOPPEL_OK;
}

/* What is decided and written, or the pairs, as text. */
static dp_buffer run(doppel_batch_options options, const doppel_tables *tables, int threads, size_t known, bool pairs) {
    doppel_input_options input = {.size = sizeof input, .threads = threads, .tables = tables};
    doppel_error error;
    options.input = &input;
    doppel_batch *batch = read_batch(options, tables ? table_paths : file_paths, 2, known);
    dp_buffer lines;
    if (pairs) {
        lines = pair_lines(batch, false);
    } else {
        decide(batch);
        lines = decisions(batch);
        lines.size--; /* its NUL */
        assert_int_equal(doppel_batch_write(batch, take_near, &lines, &error), DOPPEL_OK);
        assert_true(dp_buffer_add(&lines, "", 1));
    }
    doppel_batch_free(batch);
    return lines;
}

static void expect_run_as_jsonl(test_table table[2], test_tables *tables, const doppel_batch_options *options,
                                bool pairs) {
    for (size_t known = 0; known < (pairs ? 1 : 2); known++) {
        dp_buffer expected = run(*options, NULL, 1, known, pairs);
        assert_true(expected.size > 100);
        for (int i = 0; i < 16; i++) {
            cut_tables(table, i);
            dp_buffer lines = run(*options, &tables->calls, threads_of(i), known, pairs);
            assert_string_equal(lines.data, expected.data);
            dp_buffer_free(&lines);
        }
        dp_buffer_free(&expected);
    }
}

static void expect_as_jsonl(const doppel_batch_options *runs, size_t count, bool pairs) {
    test_table table[2];
    test_tables tables;
    make_tables(table, &tables);
    save_rows(file_paths[0], 0, FIRST);
    save_rows(file_paths[1], FIRST, DOCUMENTS);
    for (size_t i = 0; i < count; i++)
        expect_run_as_jsonl(table, &tables, &runs[i], pairs);
    tables_end(&tables);
}

static void decisions_are_those_of_jsonl(void **state) {
    (void)state;
    static const doppel_batch_options runs[] = {
        {.similarity = 0.8},
        {.similarity = 0.3, .keep = "longest"},
        {.method = DOPPEL_METHOD_SIMHASH, .distance = 12, .keep = "last"},
        {.method = DOPPEL_METHOD_MINHASH, .bands = 10, .rows = 3},
        {.method = DOPPEL_METHOD_EXACT, .keep = "shortest-url"},
        {.similarity = 0.5, .by = 7, .keep = "newest:date,longest"},
        {.similarity = 0.5, .by = DOPPEL_BY_URL, .keep = "oldest:date"},
        {.similarity = 0.5, .within = "host"},
        {.similarity = 0.5, .within = "date"},
        {.similarity = 0.5, .across = "domain"},
        {.similarity = 0.5, .link_any = true, .by = DOPPEL_BY_CONTENT | DOPPEL_BY_TITLE},
        {.similarity = 0.3, .boilerplate = 0.2},
        {.similarity = 0.5, .min_words = 1, .content = DOPPEL_CONTENT_ALL},
    };
    expect_as_jsonl(runs, sizeof runs / sizeof *runs, false);
}

static void pairs_are_those_of_jsonl(void **state) {
    (void)state;
    static const doppel_batch_options runs[] = {{.similarity = 0.5, .by = 7},
                                                {.method = DOPPEL_METHOD_SIMHASH, .distance = 12}};
    expect_as_jsonl(runs, sizeof runs / sizeof *runs, true);
}

static void texts_are_read_again_unless_they_stay_in_memory(void **state) {
    (void)state;
    test_table table[2];
    test_tables tables;
    make_tables(table, &tables);
    for (size_t i = 0; i < DOCUMENTS; i++)
        if (rows[i].html)
            rows[i] = (table_row){.text = rows[i].html};
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        doppel_input_options input = {.size = sizeof input, .tables = &tables.calls};
        table[0].in_memory = table[1].in_memory = in_memory;
        table[0].opened = 0;
        doppel_batch *batch = read_batch((doppel_batch_options){.input = &input}, table_paths, 2, 0);
        decide(batch);
        assert_int_equal(table[0].opened, in_memory ? 1 : 2);
        doppel_batch_free(batch);
    }
    tables_end(&tables);
}

static void a_table_that_has_changed_is_an_error(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        test_table table[2];
        test_tables tables;
        doppel_input_options input = {.size = sizeof input, .threads = 1 + i, .tables = &tables.calls};
        doppel_error error = {0};
        make_tables(table, &tables);
        doppel_batch *batch = read_batch((doppel_batch_options){.input = &input}, table_paths, 2, 0);
        if (i == 0)
            table[1].count--;
        else if (i == 1)
            table[0].break_at = 20;
        else
            table[1].open_status = DOPPEL_ERROR_IO;
        assert_int_equal(doppel_batch_decide(batch, &error), DOPPEL_ERROR_INPUT);
        assert_non_null(strstr(error.message, "have changed since they were read"));
        doppel_batch_free(batch);
        tables_end(&tables);
    }
}

static void kept_rows_are_written_as_records(void **state) {
    (void)state;
    static const table_row some[] = {{.id = "1", .url = "http://a", .title = "T", .text = "the same words are here"},
                                     {.text = "the same words are here"},
                                     {.text = "other \"words\" than before"},
                                     {.id = "4", .html = "<title>P</title><p>a page of a few words"}};
    test_table table = {.path = "a.table", .rows = some, .count = 4};
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        test_tables tables;
        doppel_input_options input = {.size = sizeof input, .tables = &tables.calls};
        doppel_writer *writer;
        table.in_memory = in_memory;
        tables_begin(&tables, &table, 1);
        doppel_batch *batch = read_batch((doppel_batch_options){.input = &input}, &table.path, 1, 0);
        decide(batch);
        assert_int_equal(doppel_writer_open(&writer, "out", 1, NULL), DOPPEL_OK);
        doppel_batch_set_output(batch, writer);
        assert_int_equal(doppel_batch_write_kept(batch, writer, NULL), DOPPEL_OK);
        assert_int_equal(doppel_writer_finish(writer, true, NULL), DOPPEL_OK);
        dp_buffer written = slurp("out");
        dp_buffer_add(&written, "", 1);
        assert_string_equal(written.data,
                            "{\"id\":\"1\",\"url\":\"http://a\",\"title\":\"T\",\"text\":\"the same words are here\"}\n"
                            "{\"id\":\"a.table:3\",\"text\":\"other \\\"words\\\" than before\"}\n"
                            "{\"id\":\"4\",\"title\":\"P\",\"text\":\"a page of a few words\"}\n");
        dp_buffer_free(&written);
        doppel_batch_free(batch);
        tables_end(&tables);
    }
}

/* ---- which rows are which documents ---- */

/* A line for each file: its path, its count, and for a table the position of each row, - for one left out. */
static doppel_status take_rows(const doppel_batch_rows *given, void *user) {
    dp_buffer *lines = user;
    assert_true(dp_buffer_printf(lines, "%s %llu", given->path, (unsigned long long)given->count));
    for (uint64_t i = 0; given->positions && i < given->count; i++)
        if (given->positions[i] == DOPPEL_NO_POSITION)
            assert_true(dp_buffer_printf(lines, " -"));
        else
            assert_true(dp_buffer_printf(lines, " %llu", (unsigned long long)given->positions[i]));
    assert_true(dp_buffer_add(lines, "\n", 1));
    return DOPPEL_OK;
}

static dp_buffer row_lines(const doppel_batch *batch) {
    dp_buffer lines = {0};
    doppel_error error = {0};
    if (doppel_batch_each_table(batch, take_rows, &lines, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    assert_true(dp_buffer_add(&lines, "", 1));
    return lines;
}

static void expect_rows(const doppel_batch *batch, const char *expected) {
    dp_buffer lines = row_lines(batch);
    assert_string_equal(lines.data, expected);
    dp_buffer_free(&lines);
}

static const table_row eight[] = {{0},           {.text = "a"}, {.text = "b"}, {.id = "4"},
                                  {.text = "c"}, {.text = "d"}, {0},           {.text = "e"}},
                       two[] = {{.text = "x"}, {.text = "y"}}, bad[] = {{0}, {.url = "u"}};

static const char *const mixed[] = {"bad.table", "two.table", "a.jsonl", "eight.table", "b.txt", "none.table"};
enum { MIXED = 6 };

static void make_mixed(test_table table[4], test_tables *tables) {
    table[0] = (test_table){.path = mixed[0], .rows = bad, .count = 2};
    table[1] = (test_table){.path = mixed[1], .rows = two, .count = 2};
    table[2] = (test_table){.path = mixed[3], .rows = eight, .count = 8};
    table[3] = (test_table){.path = mixed[5]};
    tables_begin(tables, table, 4);
    spit(mixed[2], "{\"text\":\"j1\"}\nbad\n{\"text\":\"j2\"}\n", 33);
    spit(mixed[4], "plain", 5);
}

static void rows_have_positions_unless_they_are_left_out(void **state) {
    (void)state;
    test_table table[4];
    test_tables tables;
    make_mixed(table, &tables);
    for (int i = 0; i < 16; i++) {
        doppel_input_options input = {.size = sizeof input, .threads = threads_of(i), .tables = &tables.calls};
        cut_tables(table + 1, i);
        doppel_batch *batch = read_batch((doppel_batch_options){.input = &input}, mixed, MIXED, 0);
        expect_rows(batch, "bad.table 2 - -\ntwo.table 2 0 1\na.jsonl 2\neight.table 8 - 4 5 - 6 7 - 8\nb.txt 1\n"
                           "none.table 0\n");
        decide(batch);
        assert_int_equal(doppel_batch_count(batch), 10);
        doppel_batch_free(batch);
        /* Known documents come first, and are not given. */
        batch = read_batch((doppel_batch_options){.input = &input}, mixed, MIXED, 3);
        expect_rows(batch, "eight.table 8 - 4 5 - 6 7 - 8\nb.txt 1\nnone.table 0\n");
        assert_int_equal(doppel_batch_read(batch, mixed, 2, false, NULL, NULL), DOPPEL_OK);
        expect_rows(batch,
                    "eight.table 8 - 4 5 - 6 7 - 8\nb.txt 1\nnone.table 0\nbad.table 2 - -\ntwo.table 2 10 11\n");
        doppel_batch_free(batch);
    }
    tables_end(&tables);
}

static void a_limit_ends_the_rows(void **state) {
    (void)state;
    static const char *const expected[] = {NULL,
                                           "bad.table 2 - -\ntwo.table 1 0\n",
                                           "bad.table 2 - -\ntwo.table 2 0 1\na.jsonl 0\n",
                                           "bad.table 2 - -\ntwo.table 2 0 1\na.jsonl 1\n",
                                           "bad.table 2 - -\ntwo.table 2 0 1\na.jsonl 2\neight.table 1 -\n",
                                           "bad.table 2 - -\ntwo.table 2 0 1\na.jsonl 2\neight.table 2 - 4\n",
                                           "bad.table 2 - -\ntwo.table 2 0 1\na.jsonl 2\neight.table 4 - 4 5 -\n"};
    test_table table[4];
    test_tables tables;
    make_mixed(table, &tables);
    for (uint64_t limit = 1; limit <= 6; limit++)
        for (int threads = 1; threads <= 4; threads++) {
            doppel_input_options input = {.size = sizeof input, .threads = threads, .tables = &tables.calls};
            doppel_batch *batch = read_batch((doppel_batch_options){.input = &input, .limit = limit}, mixed, MIXED, 0);
            assert_int_equal(doppel_batch_count(batch), limit);
            expect_rows(batch, expected[limit]);
            decide(batch);
            doppel_batch_free(batch);
        }
    tables_end(&tables);
}

static void a_table_that_breaks_off_has_the_rows_before(void **state) {
    (void)state;
    test_table table[4];
    test_tables tables;
    make_mixed(table, &tables);
    table[2].break_at = 6;
    for (int i = 0; i < 16; i++) {
        doppel_input_options input = {.size = sizeof input, .threads = threads_of(i), .tables = &tables.calls};
        cut_tables(table + 1, i);
        table[2].batch_rows = 1;
        doppel_batch *batch = read_batch((doppel_batch_options){.input = &input}, mixed + 1, MIXED - 1, 0);
        expect_rows(batch, "two.table 2 0 1\na.jsonl 2\neight.table 5 - 4 5 - 6\nb.txt 1\nnone.table 0\n");
        decide(batch);
        doppel_batch_free(batch);
    }
    tables_end(&tables);
}

static doppel_status refuse_rows(const doppel_batch_rows *given, void *user) {
    ++*(int *)user;
    return !strcmp(given->path, "two.table") ? DOPPEL_ERROR_IO : DOPPEL_OK;
}

static void what_the_callback_gives_ends_it(void **state) {
    (void)state;
    test_table table[4];
    test_tables tables;
    int calls = 0;
    make_mixed(table, &tables);
    doppel_input_options input = {.size = sizeof input, .tables = &tables.calls};
    doppel_batch *batch = read_batch((doppel_batch_options){.input = &input}, mixed, MIXED, 0);
    assert_int_equal(doppel_batch_each_table(batch, refuse_rows, &calls, NULL), DOPPEL_ERROR_IO);
    assert_int_equal(calls, 2);
    doppel_batch_free(batch);
    tables_end(&tables);
}

static void without_a_reader_of_tables_there_are_none(void **state) {
    (void)state;
    const char *path = "b.txt";
    spit(path, "plain", 5);
    doppel_batch *batch = read_batch((doppel_batch_options){0}, &path, 1, 0);
    expect_rows(batch, "");
    doppel_batch_free(batch);
}

/* ---- runs that are kept ---- */

static void a_run_that_is_resumed_knows_the_rows(void **state) {
    (void)state;
    test_table table[4];
    test_tables tables;
    doppel_error error = {0};
    struct stat whole;
    make_mixed(table, &tables);
    doppel_input_options input = {.size = sizeof input, .threads = 2, .tables = &tables.calls};
    doppel_batch_options options = {.input = &input, .work = "work"};
    doppel_batch *batch = read_batch(options, mixed, MIXED, 0);
    dp_buffer expected = row_lines(batch);
    doppel_batch_free(batch);
    assert_int_equal(doppel_batch_open("work", &input, &batch, &error), DOPPEL_OK);
    expect_rows(batch, expected.data);
    table[1].count--;
    assert_int_equal(doppel_batch_each_table(batch, refuse_rows, &(int){0}, &error), DOPPEL_ERROR_INPUT);
    assert_non_null(strstr(error.message, "have changed since they were read"));
    table[1].count++;
    doppel_batch_free(batch);
    /* Stopped anywhere, it goes on. */
    options.resume = true;
    assert_int_equal(stat("work/sketches", &whole), 0);
    for (off_t cut = whole.st_size - 1; cut > 100; cut -= 97) {
        assert_int_equal(truncate("work/sketches", cut), 0);
        batch = read_batch(options, mixed, MIXED, 0);
        assert_int_equal(doppel_batch_count(batch), 10);
        expect_rows(batch, expected.data);
        doppel_batch_free(batch);
    }
    dp_buffer_free(&expected);
    tables_end(&tables);
}

static void sketches_of_tables_stand_for_them(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        test_table table[2];
        test_tables tables;
        make_tables(table, &tables);
        cut_tables(table, i & 1);
        doppel_input_options input = {.size = sizeof input, .tables = &tables.calls};
        const doppel_batch_options options = {.input = &input, .similarity = 0.5, .keep_sketches = i & 2};
        doppel_batch *batch = read_batch(options, table_paths, 1, 0);
        assert_int_equal(doppel_batch_save(batch, "saved", NULL), DOPPEL_OK);
        doppel_batch_free(batch);
        dp_buffer expected = run(options, &tables.calls, 1, 1, false);
        batch = read_batch(options, (const char *[]){"saved", table_paths[1]}, 2, 1);
        decide(batch);
        dp_buffer lines = decisions(batch);
        assert_memory_equal(lines.data, expected.data, lines.size - 1);
        dp_buffer_free(&lines);
        dp_buffer_free(&expected);
        doppel_batch_free(batch);
        tables_end(&tables);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(decisions_are_those_of_jsonl),
        TEST(pairs_are_those_of_jsonl),
        TEST(texts_are_read_again_unless_they_stay_in_memory),
        TEST(a_table_that_has_changed_is_an_error),
        TEST(kept_rows_are_written_as_records),
        TEST(rows_have_positions_unless_they_are_left_out),
        TEST(a_limit_ends_the_rows),
        TEST(a_table_that_breaks_off_has_the_rows_before),
        TEST(what_the_callback_gives_ends_it),
        TEST(without_a_reader_of_tables_there_are_none),
        TEST(a_run_that_is_resumed_knows_the_rows),
        TEST(sketches_of_tables_stand_for_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
