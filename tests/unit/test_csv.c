/* test_csv.c - CSV and TSV: headers, quotes, line ends, rows that are wrong, blocks cut anywhere, rows as records. */
#include "input_runs.h"

#include "input/reader.h"

/* Compares what a file of this text gives. */
static void check_text(const char *path, const char *text, const char *output, const char *reports) {
    write_text(path, text);
    check(path, output, reports);
}

/* ---- cells ---- */

static void columns_are_found_by_the_header(void **state) {
    (void)state;
    check_text("a.csv", "title,other,text,id,url\nT,o,some text,1,http://a\n,,more,2,\n",
               "1|some text|http://a|T\n2|more||\n", "");
    check_text("a.csv", "id, text ,more\n1,a b,c", "1|a b||\n", "");
}

static void quotes_hold_delimiters_line_ends_and_quotes(void **state) {
    (void)state;
    check_text("a.csv",
               "\"id\",\"text\"\n1,\"a,b\"\n\"2\",\"two\nlines\"\n3,\"he said \"\"no\"\"\"\n4,\"\"\n5,\"\"\"\"\n",
               "1|a,b||\n2|two\nlines||\n3|he said \"no\"||\n4|||\n5|\"||\n", "");
}

static void quotes_elsewhere_are_text(void **state) {
    (void)state;
    check_text("a.csv", "id,text\n1,5\" disk\n2,a \"b\" c\n3,\"b\" and c\n4,\"a\"\"b\"c\"d\n",
               "1|5\" disk||\n2|a \"b\" c||\n3|b and c||\n4|a\"bc\"d||\n", "");
}

static void lines_may_end_in_crlf_and_a_mark_may_stand_ahead(void **state) {
    (void)state;
    check_text("a.csv", "\xEF\xBB\xBF\"id\",text\r\n1,a\r\n2,\"b\r\nc\"\r\n\r\n3,d", "1|a||\n2|b\r\nc||\n3|d||\n", "");
}

static void a_mark_in_a_later_row_is_text(void **state) {
    (void)state;
    check_text("a.csv", "text,id\n\xEF\xBB\xBF\"a,1\nb,2\n\"c\",3\n", "1|\xEF\xBB\xBF\"a||\n2|b||\n3|c||\n", "");
    check_text("a.tsv", "\xEF\xBB\xBF\"text\"\tid\n\xEF\xBB\xBF\"a\t1\nb\t2\n\"c\"\t3\n",
               "1|\xEF\xBB\xBF\"a||\n2|b||\n3|c||\n", "");
}

static void tabs_divide_by_name_or_header(void **state) {
    (void)state;
    check_text("a.tsv", "id\ttext\n1\ta, b\n2\t\"c\td\"\n3\tx ,\"y\n", "1|a, b||\n2|c\td||\n3|x ,\"y||\n", "");
    check_text("a.csv", "id\ttext\n1\ta, b\n2\t\"c\td\"\n", "1|a, b||\n2|c\td||\n", "");
    check_text("a.tsv", "text\na, b\n", "a.tsv:2|a, b||\n", "");
}

static void semicolons_and_bars_divide_where_the_header_has_no_comma(void **state) {
    (void)state;
    check_text("a.csv", "\xEF\xBB\xBFid;text;url\r\n1;a, b;http://a\r\n2;\"c;\nd\";\r\n",
               "1|a, b|http://a|\n2|c;\nd||\n", "");
    check_text("a.csv", "id|text\n1|a; b, c\n", "1|a; b, c||\n", "");
    check_text("a.csv", "\"id\";\"a,b\";\"text\"\n1;x;\"c;d\"\n", "1|c;d||\n", "");
    check_text("a.csv", "id,a;b|c,text\n1,x,\"y;z\"\n", "1|y;z||\n", "");
    check_text("a.csv", "id|a;b|text\n1|x;y|z;c\n", "",
               "a.csv:0: the header has no column \"text\" or \"html\"; it has: "
               "id|a, b|text\n");
    check_text("a", "id;text\n1;a\n", "1|a||\n", "");
}

static void the_delimiter_is_that_of_the_header_outside_of_quotes(void **state) {
    (void)state;
    static const struct {
        const char *header;
        char delimiter;
    } cases[] = {{"", ','},
                 {"text", ','},
                 {"a;b", ';'},
                 {"a|b", '|'},
                 {"a|b;c", ';'},
                 {"a;b,c", ','},
                 {"a,b\tc", '\t'},
                 {"\"a,b\";c", ';'},
                 {"\"a\"\",b\"|c", '|'},
                 {"5\" disk;b", ';'},
                 {"\xEF\xBB\xBF\"a,b\";c", ';'},
                 {"\"a;b", ','}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(doppel_csv_delimiter(doppel_slice_of(cases[i].header)), cases[i].delimiter);
}

static void files_without_a_name_are_told_by_their_header(void **state) {
    (void)state;
    check_text("a", "id,text\n1,a\n", "1|a||\n", "");
    check_text("a", "id\ttext\n1\ta\n", "1|a||\n", "");
    check_text("a", "some text, words\nmore\n", "a|some text, words\nmore\n||\n", "");
    check_text("a", "text\nmore\n", "a|text\nmore\n||\n", "");
}

static void ids_that_are_missing_name_the_first_line(void **state) {
    (void)state;
    check_text("a.csv", "text\na\n\"b\nb\"\n\nc\n", "a.csv:2|a||\na.csv:3|b\nb||\na.csv:6|c||\n", "");
    check_text("a.csv", "id,text\n,a\n7,b\n", "a.csv:2|a||\n7|b||\n", "");
}

static void compressed_files_are_read_too(void **state) {
    (void)state;
    dp_buffer file = {0};
    add_gzip(&file, "id,text\n1,\"a\n");
    add_gzip(&file, "b\"\n2,c\n");
    write_bytes("a.csv.gz", file.data, file.size);
    check("a.csv.gz", "1|a\nb||\n2|c||\n", "");
    dp_buffer_free(&file);
}

/* ---- fields ---- */

static doppel_status write_fields(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    doppel_output_write(output, d->id);
    doppel_output_write(output, doppel_slice_of("|"));
    doppel_output_write(output, d->text);
    doppel_output_write(output, (doppel_slice){d->html.data ? "|html:" : "|", d->html.data ? 6 : 1});
    assert_string_equal(d->charset ? d->charset : "none", d->html.data ? "utf-8" : "none");
    doppel_output_write(output, d->html);
    for (int i = 0; i < 2; i++) {
        doppel_output_write(output, (doppel_slice){d->extra[i].data ? "|=" : "|", d->extra[i].data ? 2 : 1});
        doppel_output_write(output, d->extra[i]);
    }
    return doppel_output_write(output, doppel_slice_of("\n"));
}

static void check_fields(const char *text, const doppel_input_options *options, const char *output) {
    const char *path = "a.csv";
    result r = {0};
    doppel_work work = {.user = &r, .document = write_fields, .emit = collect};
    doppel_input_counts counts;
    write_text(path, text);
    assert_int_equal(doppel_input_run(&path, 1, options, &work, &counts, NULL), DOPPEL_OK);
    dp_buffer_add(&r.output, "", 1);
    assert_string_equal(r.output.data, output);
    free_result(&r);
}

static void keys_and_more_fields_are_given(void **state) {
    (void)state;
    const char *extra[] = {"date", "none"};
    doppel_input_options options = {
        .size = sizeof options, .extra_keys = extra, .extra_count = 2, .id_key = "key", .text_key = "body"};
    check_fields("key,body,html,date\n1,a,,2020\n2,,<p>b,\n3,\"x\"\"y\",<i>,\"1\"\"2\"\n", &options,
                 "1|a||=2020|\n2||html:<p>b|=|\n3|x\"y|html:<i>|=1\"2|\n");
    check_fields("html,none\n,\n<b>,z\n", &options, "a.csv:2||html:||=\na.csv:3||html:<b>||=z\n");
}

/* ---- what is wrong ---- */

static void rows_of_another_length_are_bad(void **state) {
    (void)state;
    check_text("a.csv", "id,text,x\n1,a,\n2,b\n\"3\n3\",c,d,e\n4\n5,f,g\n", "1|a||\n5|f||\n",
               "a.csv:3: has 2 columns, where the header has 3\na.csv:4: has 4 columns, where the header has 3\n"
               "a.csv:6: has 1 column, where the header has 3\n");
}

static void a_header_without_text_names_what_it_has(void **state) {
    (void)state;
    write_text("a.csv", "id,\"bo,dy\",date\n1,a,b\n2,c,d\n");
    result r = run_path("a.csv");
    assert_string_equal(r.reports.data, "a.csv:0: the header has no column \"text\" or \"html\"; it has: id, bo,dy, "
                                        "date\n");
    assert_int_equal(r.counts.unopened, 1);
    assert_int_equal(r.counts.documents, 0);
    free_result(&r);
    /* Names that are unescaped, ahead of a row that is shorter than them. */
    check_text(
        "f.csv", "\"i\"\"d\",\"the \"\"bo\"\"dy of it\"\n1,a b\n", "",
        "f.csv:0: the header has no column \"text\" or \"html\"; it has: i\"d, the \"bo\"dy of it. Use --text-key the "
        "\"bo\"dy of it\n");
    check_text("b.csv", "\nid,text\n1,a\n", "", "b.csv:0: the first line, which names the columns, is empty\n");
    check_text("c.csv", "", "", "");
    check_text("d.csv", "id,text", "", "");
    write_bytes("e.csv", "\xFF\xFEi\0d\0", 6);
    check("e.csv", "", "e.csv:0: UTF-16, not UTF-8; convert it with iconv -f utf-16 -t utf-8\n");
}

static void an_open_quote_is_reported_where_it_begins(void **state) {
    (void)state;
    check_text("a.csv", "id,text,x\n1,a,b\n\"2\n2\",\"b\nb\",\"c\n3,d,e\n4,f,g\n", "1|a||\n",
               "a.csv:5: a quote that opens a field here is not closed before the end of the file\n");
}

static void invalid_utf8_is_repaired(void **state) {
    (void)state;
    check_text("a.csv", "id,text\n1,a\xFFz\n2,b\n", "1|a\xEF\xBF\xBDz||\n2|b||\n",
               "a.csv:2: repaired: invalid UTF-8 became U+FFFD\n");
}

static void rows_that_are_too_long_are_passed_over(void **state) {
    (void)state;
    const char *path = "a.csv";
    for (size_t block = 16; block < 200; block += 61) {
        dp_input_sizes sizes = {.block = block, .small_file = 0, .batch_files = 1, .pending = 1 << 20};
        doppel_input_options options = {.threads = 1, .max_record = 40};
        write_text(
            path,
            "id,text\n1,a\n2,\"a text that is too long to be\ntaken, and has lines,\n\n and \"\"quotes\"\"\"\n3,b\n");
        result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes}, &options);
        assert_string_equal(r.output.data, "1|a||\n3|b||\n");
        assert_string_equal(r.reports.data, "a.csv:3: longer than the limit of 40 bytes; --max-record sets it\n");
        free_result(&r);
    }
}

static void a_header_that_is_too_long_is_told_once(void **state) {
    (void)state;
    const char *path = "a.csv";
    dp_input_sizes sizes = {.block = 16, .small_file = 0, .batch_files = 1, .pending = 1 << 20};
    doppel_input_options options = {.threads = 1, .max_record = 40};
    write_text(path, "id,text,and_more_columns_than_anyone_could_ever_want_to_have,other\n1,a,b,c\n2,d,e,f\n");
    result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes}, &options);
    assert_string_equal(r.output.data, "");
    assert_string_equal(r.reports.data, "a.csv:0: the first line, which names the columns, is longer than the limit\n"
                                        "a.csv:1: longer than the limit of 40 bytes; --max-record sets it\n");
    assert_int_equal(r.counts.unopened, 1);
    free_result(&r);
}

/* The first row gives a guess, unless it is too long: in blocks of any size. */
static void rows_after_a_header_without_use_are_not_told(void **state) {
    (void)state;
    const char *path = "a.csv";
    const size_t limits[] = {20, 100};
    const char *const told[] = {"a.csv:0: the header has no column \"text\" or \"html\"; it has: id, body\n",
                                "a.csv:0: the header has no column \"text\" or \"html\"; it has: id, body. Use "
                                "--text-key body\n"};
    write_text(path, "id,body\n1,a row that is longer than the limit of bytes\n2,b\n3,\"open quotes, and so on");
    for (size_t i = 0; i < 2 * 200; i += 3) {
        size_t block = 1 + i / 2;
        dp_input_sizes sizes = {.block = block, .small_file = block % 2 ? 0 : 1000, .batch_files = 1, .pending = 1000};
        doppel_input_options options = {.threads = 2, .max_record = limits[i % 2]};
        result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes}, &options);
        assert_string_equal(r.output.data, "");
        assert_string_equal(r.reports.data, told[i % 2]);
        assert_int_equal(r.counts.bad, 0);
        free_result(&r);
    }
}

/* ---- cutting ---- */

static const char sample[] =
    "\xEF\xBB\xBF\"id\",\"text\",\"x\"\r\n1,\"a,\r\nb\",\r\n2,\"c\"\"\nd\"\"\",\"\"\n\n3,e\"\nf,5\" g,\"h\ni\"\nshort\n"
    "4,\"\n\n\n\",\"\"\"\"\n5,\",\",\"\n\"\n6,last,\"open\n";

static void blocks_may_be_cut_anywhere(void **state) {
    (void)state;
    const char *path = "a.csv";
    char text[sizeof sample];
    for (const char *delimiter = ",;|\t"; *delimiter; delimiter++) {
        for (size_t i = 0; i < sizeof sample; i++)
            text[i] = sample[i] == ',' ? *delimiter : sample[i];
        write_text(path, text);
        result whole = run_path(path);
        assert_int_equal(whole.counts.documents, 5);
        assert_int_equal(whole.counts.bad, 3);
        check_every_cut(path, strlen(text), &(doppel_input_options){0}, &whole);
        free_result(&whole);
    }
}

/* However the bytes of a row come, its end is the same; also where what was seen is dropped. */
static void ends_do_not_depend_on_how_bytes_come(void **state) {
    (void)state;
    const char *p = sample;
    for (size_t size = sizeof sample - 1, length; size; p += length, size -= length) {
        length = dp_format_csv.end(&(dp_mark){0}, p, size);
        if (!length)
            break;
        for (size_t first = 0; first < length; first++) {
            dp_mark mark = {0};
            assert_int_equal(dp_format_csv.end(&mark, p, first), 0);
            dp_mark dropped = {.state = mark.state};
            assert_int_equal(dp_format_csv.end(&dropped, p + mark.seen, size - mark.seen), length - mark.seen);
            assert_int_equal(dp_format_csv.end(&mark, p, size), length);
        }
    }
    assert_string_equal(p, "6,last,\"open\n");
}

/* ---- rows as records ---- */

/* id|text, then the record. */
static doppel_status write_row_record(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    assert_non_null(d->record.data);
    assert_int_equal(d->record.data[d->record.length], '\n');
    assert_non_null(d->row.data);
    doppel_output_write(output, d->id);
    doppel_output_write(output, doppel_slice_of("|"));
    doppel_output_write(output, d->text);
    doppel_output_write(output, doppel_slice_of("|"));
    doppel_output_write(output, d->record);
    return doppel_output_write(output, doppel_slice_of("\n"));
}

static result run_records(const char *path, const dp_input_sizes *sizes, doppel_input_options options) {
    result r = {0};
    doppel_work work = {.user = &r, .document = write_row_record, .emit = collect};
    options.size = sizeof options;
    options.row_records = true;
    options.bad = report;
    options.user = &r;
    const dp_input_job job = {.paths = &path, .path_count = 1, .options = &options, .work = &work, .sizes = sizes};
    r.status = dp_input_run(&job, &r.counts, &r.error);
    dp_buffer_add(&r.output, "", 1);
    dp_buffer_add(&r.reports, "", 1);
    return r;
}

static void check_records(const char *path, const char *text, const char *output, const char *reports) {
    write_text(path, text);
    result r = run_records(path, NULL, (doppel_input_options){0});
    assert_string_equal(r.output.data, output);
    assert_string_equal(r.reports.data, reports);
    free_result(&r);
}

static void rows_become_records_with_all_columns(void **state) {
    (void)state;
    check_records("a.csv", "\xEF\xBB\xBF\"lang\", text ,id,url\r\nen,\"a, \"\"b\"\"\nc\",1,\r\n,d,\"2\",http://x\r\n",
                  "1|a, \"b\"\nc|{\"lang\":\"en\",\"text\":\"a, \\\"b\\\"\\nc\",\"id\":\"1\",\"url\":\"\"}\n"
                  "2|d|{\"lang\":\"\",\"text\":\"d\",\"id\":\"2\",\"url\":\"http://x\"}\n",
                  "");
    check_records("a.tsv", "text\tn, m\na\t\"b\tc\"\n",
                  "a.tsv:2|a|{\"id\":\"a.tsv:2\",\"text\":\"a\",\"n, m\":\"b\\tc\"}\n", "");
}

/* A row without an id has that of its document, unless it has something else by that name. */
static void records_have_the_ids_of_their_documents(void **state) {
    (void)state;
    check_records("a.csv", "x,id,text\n1,,a\n2,7,b\n",
                  "a.csv:2|a|{\"x\":\"1\",\"id\":\"a.csv:2\",\"text\":\"a\"}\n"
                  "7|b|{\"x\":\"2\",\"id\":\"7\",\"text\":\"b\"}\n",
                  "");
    write_text("b.csv", "key,id,text\nk,7,a\n,8,b\n,,c\n");
    result r = run_records("b.csv", NULL, (doppel_input_options){.id_key = "key"});
    assert_string_equal(r.output.data, "k|a|{\"key\":\"k\",\"id\":\"7\",\"text\":\"a\"}\n"
                                       "b.csv:3|b|{\"key\":\"\",\"id\":\"8\",\"text\":\"b\"}\n"
                                       "b.csv:4|c|{\"key\":\"\",\"id\":\"b.csv:4\",\"text\":\"c\"}\n");
    free_result(&r);
    write_text("c.csv", "text\na\n");
    r = run_records("c.csv", NULL, (doppel_input_options){.no_made_ids = true});
    assert_string_equal(r.output.data, "|a|{\"text\":\"a\"}\n");
    free_result(&r);
}

/* The last of equal names is the one that is read, and has the name. */
static void members_of_a_record_have_different_names(void **state) {
    (void)state;
    check_records("a.csv", "text,id,text,text_1,,text,id\na,b,c,d,e,f,g\n",
                  "g|f|{\"text_2\":\"a\",\"id_1\":\"b\",\"text_3\":\"c\",\"text_1\":\"d\",\"column_5\":\"e\",\"text\":"
                  "\"f\",\"id\":\"g\"}"
                  "\n",
                  "");
    check_records(
        "a.csv", "column_2, ,column_2,column_2_1,id,text,\na,b,c,d,1,t,e\n",
        "1|t|{\"column_2_3\":\"a\",\"column_2_2\":\"b\",\"column_2\":\"c\",\"column_2_1\":\"d\",\"id\":\"1\",\"text\":"
        "\"t\",\"column_7\":\"e\"}\n",
        "");
    /* Names that differ in what is no UTF-8 are the same once that is replaced. */
    check_records("a.csv", "id,text,a\xFF,a\xFE\n1,t,x,\xFF\n",
                  "1|t|{\"id\":\"1\",\"text\":\"t\",\"a\uFFFD_1\":\"x\",\"a\uFFFD\":\"\uFFFD\"}\n",
                  "a.csv:2: repaired: invalid UTF-8 became U+FFFD\n");
    check_records("a.csv", "id,text,\"a\"\"\n\\\"\n1,t,\x01\n",
                  "1|t|{\"id\":\"1\",\"text\":\"t\",\"a\\\"\\n\\\\\":\"\\u0001\"}\n", "");
    check_records("a.csv", "id,text,x\n1,t\n2,t,x,y\n", "",
                  "a.csv:2: has 2 columns, where the header has 3\na.csv:3: has 4 columns, where the header has 3\n");
}

/* A header of this many columns, the first of them text, all others with one name, or none. */
static void write_wide(size_t columns, const char *name) {
    FILE *file = fopen("wide.csv", "wb");
    assert_non_null(file);
    for (int row = 0; row < 2; row++) {
        fputs("text", file);
        for (size_t i = 1; i < columns; i++)
            fprintf(file, ",%s", name);
        fputs("\n", file);
    }
    assert_int_equal(fclose(file), 0);
}

static void there_may_be_many_columns_but_not_more(void **state) {
    (void)state;
    for (int named = 0; named < 2; named++) {
        write_wide(65536, named ? "x" : "");
        result r = run_records("wide.csv", NULL, (doppel_input_options){0});
        assert_int_equal(r.counts.documents, 1);
        assert_non_null(
            strstr(r.output.data, named ? ",\"x_65534\":\"x\",\"x\":\"x\"}\n" : ",\"column_65536\":\"\"}\n"));
        free_result(&r);
    }
    write_wide(65537, "");
    result r = run_records("wide.csv", NULL, (doppel_input_options){0});
    assert_int_equal(r.counts.documents, 0);
    assert_string_equal(r.reports.data, "wide.csv:0: the first line names more than 65536 columns\n");
    free_result(&r);
}

static void records_do_not_depend_on_blocks(void **state) {
    (void)state;
    write_text("a.csv", "text,,text,more\n\"a\nb\",1,\"x \"\"y\"\"\",\"\"\n,,c,\"\"\"\"\nd,2,e\xFF,f\n");
    result whole = run_records("a.csv", NULL, (doppel_input_options){0});
    assert_int_equal(whole.counts.documents, 3);
    for (size_t block = 1; block < 80; block++)
        for (int variant = 0; variant < 4; variant++) {
            dp_input_sizes sizes = {block, variant & 1 ? 1 << 20 : 0, 2, 1 << 20};
            result r = run_records("a.csv", &sizes, (doppel_input_options){.threads = variant & 2 ? 3 : 1});
            assert_string_equal(r.output.data, whole.output.data);
            assert_string_equal(r.reports.data, whole.reports.data);
            free_result(&r);
        }
    free_result(&whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(columns_are_found_by_the_header),
        TEST(quotes_hold_delimiters_line_ends_and_quotes),
        TEST(quotes_elsewhere_are_text),
        TEST(lines_may_end_in_crlf_and_a_mark_may_stand_ahead),
        TEST(a_mark_in_a_later_row_is_text),
        TEST(tabs_divide_by_name_or_header),
        TEST(semicolons_and_bars_divide_where_the_header_has_no_comma),
        TEST(the_delimiter_is_that_of_the_header_outside_of_quotes),
        TEST(files_without_a_name_are_told_by_their_header),
        TEST(ids_that_are_missing_name_the_first_line),
        TEST(compressed_files_are_read_too),
        TEST(keys_and_more_fields_are_given),
        TEST(rows_of_another_length_are_bad),
        TEST(a_header_without_text_names_what_it_has),
        TEST(an_open_quote_is_reported_where_it_begins),
        TEST(invalid_utf8_is_repaired),
        TEST(rows_that_are_too_long_are_passed_over),
        TEST(a_header_that_is_too_long_is_told_once),
        TEST(rows_after_a_header_without_use_are_not_told),
        TEST(blocks_may_be_cut_anywhere),
        TEST(ends_do_not_depend_on_how_bytes_come),
        TEST(rows_become_records_with_all_columns),
        TEST(records_have_the_ids_of_their_documents),
        TEST(members_of_a_record_have_different_names),
        TEST(there_may_be_many_columns_but_not_more),
        TEST(records_do_not_depend_on_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
