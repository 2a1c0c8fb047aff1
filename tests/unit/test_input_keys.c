/* test_input_keys.c - keys that are paths and several, arrays of JSON, lines, formats that are asked for, bzip2 and xz,
 * and what will be read. */
#include "input_runs.h"

#include "input/reader.h"

#include <bzlib.h>
#include <lzma.h>
#include <sys/stat.h>

static void expect(const char *path, doppel_input_options options, const char *output, const char *reports) {
    result r = run_paths(&path, 1, &options);
    assert_int_equal(r.status, DOPPEL_OK);
    assert_string_equal(r.output.data, output);
    assert_string_equal(r.reports.data, reports);
    free_result(&r);
}

/* ---- keys ---- */

static void a_path_leads_into_objects(void **state) {
    (void)state;
    write_text("a.jsonl", "{\"meta\":{\"text\":\"one\",\"id\":7,\"deep\":{\"url\":\"u\"}}}\n"
                          "{\"meta\":{\"text\":\"tw\\u006f\"},\"deep\":{}}\n"
                          "{\"meta\":\"no object\"}\n{\"meta\":{\"text\":[1]}}\n");
    expect("a.jsonl", (doppel_input_options){.text_key = "meta.text", .id_key = "meta.id", .url_key = "meta.deep.url"},
           "7|one|u|\na.jsonl:2|two||\n",
           "a.jsonl:3: has no field \"meta.text\" or \"html\"; --text-key KEY names the field with the text\n"
           "a.jsonl:4: field \"meta.text\" is an array, not a string\n");
}

static void a_key_as_it_stands_comes_before_a_path(void **state) {
    (void)state;
    write_text("a.jsonl", "{\"meta.text\":\"literal\",\"meta\":{\"text\":\"path\"}}\n"
                          "{\"m\":{\"a.b\":\"inner\",\"a\":{\"b\":\"path\"}},\"meta\":{\"text\":\"x\"}}\n"
                          "{\"q,a\":\"literal\",\"q\":\"1\",\"a\":\"2\"}\n");
    expect("a.jsonl", (doppel_input_options){.text_key = "meta.text,m.a.b,q,a"},
           "a.jsonl:1|literal||\na.jsonl:2|x\ninner||\na.jsonl:3|1\n2||\n", "");
    expect("a.jsonl", (doppel_input_options){.text_key = "q,a", .html_key = "meta.text"},
           "a.jsonl:1|||\na.jsonl:2|||\na.jsonl:3|literal||\n", "");
}

static void several_are_joined_with_a_line_end(void **state) {
    (void)state;
    write_text("a.jsonl", "{\"q\":\"a \\\"b\\\"\",\"a\":\"c\",\"n\":5}\n{\"q\":\"alone\",\"a\":null}\n"
                          "{\"q\":\"x\",\"a\":{}}\n{\"z\":1}\n");
    expect("a.jsonl", (doppel_input_options){.text_key = "q,a", .id_key = "n,q"},
           "5\na \"b\"|a \"b\"\nc||\nalone|alone||\n",
           "a.jsonl:3: field \"q,a\" is an object, not a string\n"
           "a.jsonl:4: has no field \"q,a\" or \"html\"; --text-key KEY names the field with the text\n");
    write_text("a.csv", "q,a,id\none,two,1\n,\"th,ree\",2\n,,3\n");
    expect("a.csv", (doppel_input_options){.text_key = "q,a"}, "1|one\ntwo||\n2|th,ree||\n3|||\n", "");
}

/* A longer string may be the text, unless it is a field that is asked for. */
static void a_text_is_optional_next_to_a_name(void **state) {
    (void)state;
    static const char *const extra[] = {"note"};
    const doppel_input_options options = {.text_optional = true, .extra_keys = extra, .extra_count = 1};
    write_text("a.jsonl", "{\"url\":\"u://1\"}\n{\"title\":\"t\",\"text\":null,\"html\":null}\n"
                          "{\"id\":5,\"url\":\"u://2\",\"note\":\"longer than that\",\"x\":{\"y\":[\"u://2\"]}}\n"
                          "{\"url\":\"u://3\",\"x\":{\"y\":\"u://34\"}}\n{\"id\":\"5\",\"url\":\"\"}\n"
                          "{\"url\":\"u://4\",\"text\":5}\n{\"url\":7}\n");
    expect("a.jsonl", options, "a.jsonl:1||u://1|\na.jsonl:2|||t\n5||u://2|\n",
           "a.jsonl:4: has no field \"text\" or \"html\"; --text-key KEY names the field with the text\n"
           "a.jsonl:5: has no field \"text\" or \"html\"; --text-key KEY names the field with the text\n"
           "a.jsonl:6: field \"text\" is a number, not a string\n"
           "a.jsonl:7: has no field \"text\" or \"html\"; --text-key KEY names the field with the text\n");
    write_text("a.csv", "url,note,id\nu://1,longer than that,1\n,none,2\n");
    expect("a.csv", options, "1||u://1|\n", "a.csv:3: has no text, no URL and no title\n");
    write_text("a.csv", "url,body\nu://1,b\n");
    expect("a.csv", options, "", "a.csv:0: the header has no column \"text\" or \"html\"; it has: url, body\n");
    write_text("a.csv", "note,id\nn,1\n");
    expect("a.csv", options, "", "a.csv:0: the header has no column \"text\" or \"html\"; it has: note, id\n");
}

static void too_many_names_are_refused(void **state) {
    (void)state;
    char key[3 * DP_PARTS + 10] = "";
    for (int i = 0; i <= DP_PARTS; i++)
        strcat(key, "a.,");
    const char *path = "a.jsonl";
    result r = run_paths(&path, 1, &(doppel_input_options){.text_key = key});
    assert_int_equal(r.status, DOPPEL_ERROR_USAGE);
    assert_string_equal(r.error.message, DP_WHY_NAMES);
    free_result(&r);
}

/* ---- arrays ---- */

static void an_array_is_read_element_by_element(void **state) {
    (void)state;
    write_text("a.json", "[{\"text\":\"a ]},[ \\\\\\\"\",\"id\":\"x\"} , {\"text\":\"b\"}]");
    check("a.json", "x|a ]},[ \\\"||\na.json:2|b||\n", "");
    write_text("b", "\xEF\xBB\xBF\n [\n{\"text\":\"a\"}\n]\n");
    check("b", "b:1|a||\n", "");
    write_text("a.json", " [ ] ");
    check("a.json", "", "");
    write_text("a.json", "{\"text\":\"still JSONL\"}\n");
    check("a.json", "a.json:1|still JSONL||\n", "");
}

/* A word ends with the comma after it, which is part of the next element: that this one breaks off must not matter. */
static void what_comes_before_a_break_in_an_array_does_not_depend_on_blocks(void **state) {
    (void)state;
    static const char text[] = "[{\"text\":\"a\"},123,{\"text\":\"b";
    const char *path = "a.json";
    dp_buffer file = {0};
    add_gzip(&file, text);
    write_bytes(path, file.data, file.size - 8); /* without the checksum and the length at its end */
    result whole = run_job((dp_input_job){.paths = &path, .path_count = 1}, &(doppel_input_options){0});
    assert_string_equal(whole.output.data, "a.json:1|a||\n");
    assert_string_equal(whole.reports.data, "a.json:2: not a JSON object\na.json:3: the file ends within this "
                                            "element\na.json:0: the gzip data is cut short\n");
    check_every_cut(path, strlen(text), &(doppel_input_options){0}, &whole);
    free_result(&whole);
    dp_buffer_free(&file);
}

/* A word ends before the comma, which may be the first byte that is not skipped. It is longer than what is read of a
 * file to detect its format. */
static void after_a_word_that_is_too_long_an_array_goes_on(void **state) {
    (void)state;
    enum { LENGTH = 9000 };
    const char *path = "a.json";
    char *text;
    assert_true(asprintf(&text, "[{\"text\":\"a\"},%0*d,{\"text\":\"b\"}]", LENGTH, 1) > 0);
    write_text(path, text);
    free(text);
    for (size_t block = 1; block < 20; block++) {
        const dp_input_sizes sizes = {block, 0, 2, 1 << 20};
        result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes},
                           &(doppel_input_options){.max_record = 20});
        assert_string_equal(r.output.data, "a.json:1|a||\na.json:3|b||\n");
        assert_string_equal(r.reports.data, "a.json:2: longer than the limit of 20 bytes; --max-record sets it\n");
        free_result(&r);
    }
}

static void what_is_wrong_with_an_array_is_named(void **state) {
    (void)state;
    write_text("a.json", "[{\"text\":\"a\"}{\"text\":\"b\"},,{\"text\":\"c\"},5,[{\"text\":\"d\"}],{\"text\":},"
                         "{\"text\":\"e\"}] x");
    check("a.json", "a.json:1|a||\na.json:7|e||\n",
          "a.json:2: a comma is missing before this element\n"
          "a.json:3: more than one comma before this element\n"
          "a.json:4: not a JSON object\na.json:5: not a JSON object\n"
          "a.json:6: not JSON: a value that is neither a string, a number, true, false, null, an object nor an array\n"
          "a.json:8: unexpected text after the array\n");
    write_text("a.json", "[{\"text\":\"a\"},\n]");
    check("a.json", "a.json:1|a||\n", "a.json:2: an element is missing after the last comma\n");
    write_text("a.json", "[{\"text\":\"a\"},{\"text\":\"b");
    check("a.json", "a.json:1|a||\n",
          "a.json:2: the file ends within this element\na.json:0: cut short: the array is not closed with ]\n");
    write_text("a.json", "[{\"text\":\"a\"},");
    check("a.json", "a.json:1|a||\n", "a.json:0: cut short: the array is not closed with ]\n");
    write_text("a.txt", "word");
    expect("a.txt", (doppel_input_options){.format = "json"}, "",
           "a.txt:1: does not begin with [, as an array of objects does\n");
    write_text("a.json", "[{\"text\":\"long long long\"},{\"text\":\"b\"}]");
    expect("a.json", (doppel_input_options){.max_record = 16}, "a.json:2|b||\n",
           "a.json:1: longer than the limit of 16 bytes; --max-record sets it\n");
}

static doppel_status write_raw(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    char place[32];
    snprintf(place, sizeof place, "%lld ", d->record_at == DOPPEL_NO_POSITION ? -1LL : (long long)d->record_at);
    doppel_output_write(output, doppel_slice_of(place));
    doppel_output_write(output, d->record.data ? d->record : d->row);
    doppel_output_write(output, doppel_slice_of("|"));
    doppel_output_write(output, d->header.data ? d->header : doppel_slice_of("-"));
    return doppel_output_write(output, doppel_slice_of("\n"));
}

static void expect_raw(const char *path, doppel_input_options options, const char *output) {
    result kept = {0};
    doppel_work work = {.user = &kept, .document = write_raw, .emit = collect};
    result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .work = &work}, &options);
    dp_buffer_add(&kept.output, "", 1);
    assert_string_equal(kept.output.data, output);
    free_result(&r);
    free_result(&kept);
}

static void an_element_is_given_in_one_line(void **state) {
    (void)state;
    write_text("a.json", "[{\"text\": \"as it stands\"},\n {\r\n  \"text\" : \"a  b\", \"n\" : 1\n }\n]");
    expect_raw("a.json", (doppel_input_options){0},
               "1 {\"text\": \"as it stands\"}|-\n-1 {\"text\":\"a  b\",\"n\":1}|-\n");
}

static void rows_and_lines_are_given_as_they_stand(void **state) {
    (void)state;
    write_text("a.csv", "id,text\r\n1,\"a \"\"b\"\"\nc\"\r\n2,d");
    expect_raw("a.csv", (doppel_input_options){0}, "-1 1,\"a \"\"b\"\"\nc\"\r|id,text\r\n-1 2,d|id,text\r\n");
    write_text("a.txt", "one \r\n\n  \ntwo");
    expect_raw("a.txt", (doppel_input_options){.format = "lines"}, "-1 one \r|-\n-1 two|-\n");
}

/* ---- formats that are asked for ---- */

static void a_format_that_is_asked_for_counts_before_names(void **state) {
    (void)state;
    write_text("a.jsonl", "{\"text\":\"a\"}\nsecond\n");
    expect("a.jsonl", (doppel_input_options){.format = "lines"}, "a.jsonl:1|{\"text\":\"a\"}||\na.jsonl:2|second||\n",
           "");
    expect("a.jsonl", (doppel_input_options){.format = "text"}, "a.jsonl|{\"text\":\"a\"}\nsecond\n||\n", "");
    write_text("a.dat", "text\tid\nx,y\t1\n");
    expect("a.dat", (doppel_input_options){.format = "tsv"}, "1|x,y||\n", "");
    const char *path = "a.dat";
    result r = run_paths(&path, 1, &(doppel_input_options){.format = "xml"});
    assert_int_equal(r.status, DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(r.error.message, "unknown format \"xml\""));
    free_result(&r);
}

/* ---- bzip2 and xz ---- */

static dp_buffer pack(bool xz, const char *text) {
    dp_buffer packed = {0};
    assert_true(dp_reserve(&packed.data, &packed.capacity, strlen(text) + 1000, 1));
    if (xz) {
        assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, (const uint8_t *)text, strlen(text),
                                                 (uint8_t *)packed.data, &packed.size, packed.capacity),
                         LZMA_OK);
    } else {
        unsigned size = (unsigned)packed.capacity;
        assert_int_equal(
            BZ2_bzBuffToBuffCompress(packed.data, &size, (char *)(uintptr_t)text, (unsigned)strlen(text), 9, 0, 0),
            BZ_OK);
        packed.size = size;
    }
    return packed;
}

static void check_packed(bool xz) {
    const char *name = xz ? "a.jsonl.xz" : "a.jsonl.bz2", *what = xz ? "xz" : "bzip2";
    char expected[200];
    dp_buffer one = pack(xz, "{\"id\":1,\"text\":\"a\"}\n"), two = pack(xz, "{\"id\":2,\"text\":\"b\"}\n");
    assert_true(dp_buffer_add(&one, two.data, two.size));
    write_bytes(name, one.data, one.size);
    check(name, "1|a||\n2|b||\n", "");
    for (size_t cut = one.size - two.size + 12; cut < one.size; cut++) {
        write_bytes(name, one.data, cut);
        result r = run_path(name);
        snprintf(expected, sizeof expected, "%s:0: the %s data is cut short\n", name, what);
        assert_int_equal(r.counts.unopened, 1);
        assert_non_null(strstr(r.reports.data, expected));
        free_result(&r);
    }
    one.data[one.size - two.size + 30] ^= 1;
    write_bytes(name, one.data, one.size);
    result r = run_path(name);
    snprintf(expected, sizeof expected, "%s:0: the %s data is damaged\n", name, what);
    assert_memory_equal(r.output.data, "1|a||\n", 6);
    assert_non_null(strstr(r.reports.data, expected));
    free_result(&r);
    dp_buffer_free(&one);
    dp_buffer_free(&two);
}

static void bzip2_is_read(void **state) {
    (void)state;
    check_packed(false);
    dp_buffer one = pack(false, "words");
    assert_true(dp_buffer_add(&one, "rest", 4));
    write_bytes("a.bz2", one.data, one.size);
    check("a.bz2", "", "a.bz2:0: unexpected bytes after the bzip2 data\n");
    write_text("b.txt", "BZh9 is how it begins");
    check("b.txt", "b.txt|BZh9 is how it begins||\n", "");
    dp_buffer_free(&one);
}

/* A header may ask for 4 GiB. */
static void xz_is_read_in_bounded_memory(void **state) {
    (void)state;
    check_packed(true);
    lzma_options_lzma large;
    lzma_lzma_preset(&large, 0);
    large.dict_size = (uint32_t)1 << 30;
    lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &large}, {LZMA_VLI_UNKNOWN, NULL}};
    lzma_stream stream = LZMA_STREAM_INIT;
    char out[1000];
    assert_int_equal(lzma_stream_encoder(&stream, filters, LZMA_CHECK_CRC32), LZMA_OK);
    stream.next_in = (const uint8_t *)"words";
    stream.avail_in = 5;
    stream.next_out = (uint8_t *)out;
    stream.avail_out = sizeof out;
    assert_int_equal(lzma_code(&stream, LZMA_FINISH), LZMA_STREAM_END);
    write_bytes("a.xz", out, sizeof out - stream.avail_out);
    lzma_end(&stream);
    check("a.xz", "", "a.xz:0: the xz data needs more than 192 MiB of memory to be decompressed\n");
}

/* ---- what will be read ---- */

static doppel_status list_file(dp_input_kind *file, void *user) {
    return dp_buffer_printf(user, "%s %s %s%s%s %.*s\n", file->path, file->name, file->format ? file->format : "-",
                            file->rows ? " rows" : "", file->records ? " records" : "", (int)file->header.size,
                            file->header.data ? file->header.data : "")
               ? DOPPEL_OK
               : DOPPEL_ERROR_MEMORY;
}

static void files_are_listed_with_their_names_and_formats(void **state) {
    (void)state;
    assert_int_equal(mkdir("f", 0700), 0);
    assert_int_equal(mkdir("f/g", 0700), 0);
    write_text("f/b.csv", "id,text\r\n1,a\n");
    write_text("f/g/a", "{\"text\":\"a\"}\n");
    write_text("f/g/b.json", "[]");
    const char *const paths[] = {"f", "f/g/*", "none.tsv", "-"};
    const doppel_input_options options = {.size = sizeof options};
    dp_buffer listed = {0};
    doppel_error error;
    assert_int_equal(dp_input_list(&(dp_input_paths){paths, 4}, &options, list_file, &listed, &error), DOPPEL_OK);
    dp_buffer_add(&listed, "", 1);
    assert_string_equal(listed.data, "f/b.csv b.csv CSV rows id,text\r\nf/g/a g/a JSONL records \n"
                                     "f/g/b.json g/b.json JSON \nf/g/a a JSONL records \nf/g/b.json b.json JSON \n"
                                     "none.tsv none.tsv TSV rows \n- - - \n");
    dp_buffer_free(&listed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_path_leads_into_objects),
        TEST(a_key_as_it_stands_comes_before_a_path),
        TEST(several_are_joined_with_a_line_end),
        TEST(a_text_is_optional_next_to_a_name),
        TEST(too_many_names_are_refused),
        TEST(an_array_is_read_element_by_element),
        TEST(what_comes_before_a_break_in_an_array_does_not_depend_on_blocks),
        TEST(after_a_word_that_is_too_long_an_array_goes_on),
        TEST(what_is_wrong_with_an_array_is_named),
        TEST(an_element_is_given_in_one_line),
        TEST(rows_and_lines_are_given_as_they_stand),
        TEST(a_format_that_is_asked_for_counts_before_names),
        TEST(bzip2_is_read),
        TEST(xz_is_read_in_bounded_memory),
        TEST(files_are_listed_with_their_names_and_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
