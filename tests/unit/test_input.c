/* test_input.c - documents from files: JSONL, plain files, folders. */
#include "input_runs.h"

#include <sys/stat.h>

/* ---- JSONL ---- */

static void records_give_id_text_url_and_title(void **state) {
    (void)state;
    write_text("a.jsonl", "{\"id\":\"1\",\"text\":\"one\\ntwo\",\"url\":\"u\",\"title\":\"t\\u00e9\"}\n"
                          "{\"id\":2.50,\"text\":\"\"}\n{\"text\":\"no id\"}\n{\"id\":null,\"text\":\"x\",\"url\":3}");
    check("a.jsonl", "1|one\ntwo|u|t\u00e9\n2.50|||\na.jsonl:3|no id||\na.jsonl:4|x||\n", "");
}

static void keys_can_be_named(void **state) {
    (void)state;
    doppel_input_options options = {.id_key = "k", .text_key = "body", .url_key = "l", .title_key = "h"};
    const char *path = "a.jsonl";
    write_text(path, "{\"k\":\"1\",\"body\":\"b\",\"l\":\"u\",\"h\":\"t\",\"id\":\"no\",\"text\":\"no\"}\n");
    result r = run_paths(&path, 1, &options);
    assert_string_equal(r.output.data, "1|b|u|t\n");
    free_result(&r);
}

static void one_key_may_serve_twice(void **state) {
    (void)state;
    doppel_input_options options = {.id_key = "url", .title_key = "text"};
    const char *path = "a.jsonl";
    write_text(path, "{\"url\":\"\\u0041\\tB\",\"text\":\"long\\ntext\"}\n");
    result r = run_paths(&path, 1, &options);
    assert_string_equal(r.output.data, "A\tB|long\ntext|A\tB|long\ntext\n");
    free_result(&r);
}

static void no_limit_is_fine(void **state) {
    (void)state;
    doppel_input_options options = {.max_record = SIZE_MAX};
    const char *paths[] = {"a.jsonl", "b.txt"};
    write_text("a.jsonl", "{\"text\":\"a\"}");
    write_text("b.txt", "b");
    result r = run_paths(paths, 2, &options);
    assert_string_equal(r.output.data, "a.jsonl:1|a||\nb.txt|b||\n");
    free_result(&r);
}

static doppel_status write_record(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    doppel_output_write(output, d->record);
    return doppel_output_write(output, doppel_slice_of("\n"));
}

static void the_record_is_kept_byte_for_byte(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    result kept = {0};
    doppel_work work = {.user = &kept, .document = write_record, .emit = collect};
    write_text(path, " {\"text\":\"a\\u0041\xFF\",  \"other\":[1, 2]} \r\n{\"text\":\"b\"}\n");
    result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .work = &work}, NULL);
    dp_buffer_add(&kept.output, "", 1);
    assert_string_equal(kept.output.data, " {\"text\":\"a\\u0041\xFF\",  \"other\":[1, 2]} \n{\"text\":\"b\"}\n");
    free_result(&r);
    free_result(&kept);
}

static void bom_crlf_and_blank_lines_are_fine(void **state) {
    (void)state;
    write_text("a.ndjson", "\xEF\xBB\xBF{\"text\":\"a\"}\r\n\r\n  \t\n\n{\"text\":\"b\"}\r\n");
    check("a.ndjson", "a.ndjson:1|a||\na.ndjson:5|b||\n", "");
}

static void jsonl_is_told_by_its_first_byte(void **state) {
    (void)state;
    write_text("a", "{\"text\":\"a\"}\n");
    write_text("b", "\xEF\xBB\xBF{\"text\":\"b\"}\n");
    write_text("c.txt", " {\"text\":\"c\"}");
    check("a", "a:1|a||\n", "");
    check("b", "b:1|b||\n", "");
    check("c.txt", "c.txt| {\"text\":\"c\"}||\n", "");
}

static void bad_records_are_named_and_left_out(void **state) {
    (void)state;
    write_text("a.jsonl", "not json\n{\"id\":\"1\"}\n{\"text\":5}\n{\"text\":null}\n17\n{\"text\":\"ok\"}\n"
                          "{\"text\":\"a\",\"id\":[1]}\n{\"text\":\"\\x\"}\n{\"text\":\"a\"");
    check("a.jsonl", "a.jsonl:6|ok||\n",
          "a.jsonl:1: not JSON: does not start with {\na.jsonl:2: has no field \"text\" or \"html\"; --text-key KEY "
          "names the field with the text\n"
          "a.jsonl:3: field \"text\" is a number, not a string\na.jsonl:4: field \"text\" is null, not a string\n"
          "a.jsonl:5: not a JSON object\na.jsonl:7: field \"id\" is neither a string nor a number\n"
          "a.jsonl:8: not JSON: an escape in a string that JSON does not allow\n"
          "a.jsonl:9: not JSON: an object or array without its end\n");
    result r = run_path("a.jsonl");
    assert_int_equal(r.counts.documents, 1);
    assert_int_equal(r.counts.bad, 8);
    free_result(&r);
}

static void a_json_document_is_told_from_jsonl(void **state) {
    (void)state;
    write_text("a.jsonl", "[\n[{\"text\":\"a\"}]\n");
    check("a.jsonl", "",
          "a.jsonl:1: looks like a JSON array over several lines, not JSONL: --format json reads it\n"
          "a.jsonl:2: a JSON array, where JSONL has an object in each line; a file that is one array: --format json\n");
    write_text("a.json", " { \n\"text\":\"a\"\n");
    check("a.json", "",
          "a.json:1: looks like one JSON document over several lines, not JSONL; convert it with jq -c .\n"
          "a.json:2: not a JSON object\n");
}

static void what_stands_behind_an_object_is_named(void **state) {
    (void)state;
    write_text("a.jsonl", "{\"text\":\"}\\\"\"} garbage\n{\"text\":\"b\"}}\n");
    check("a.jsonl", "",
          "a.jsonl:1: not JSON: unexpected text after the end of the object\n"
          "a.jsonl:2: not JSON: unexpected text after the end of the object\n");
}

static void invalid_utf8_is_repaired_and_counted(void **state) {
    (void)state;
    write_text("a.jsonl", "{\"text\":\"a\xFF\xE2\x82z\"}\n{\"text\":\"b\\ud800\"}\n{\"text\":\"c\"}\n");
    check("a.jsonl", "a.jsonl:1|a\uFFFD\uFFFDz||\na.jsonl:2|b\uFFFD||\na.jsonl:3|c||\n",
          "a.jsonl:1: repaired: invalid UTF-8 became U+FFFD\na.jsonl:2: repaired: a lone surrogate became U+FFFD\n");
    result r = run_path("a.jsonl");
    assert_int_equal(r.counts.repaired, 2);
    assert_int_equal(r.counts.bad, 0);
    free_result(&r);
}

static void a_plain_file_with_invalid_utf8_is_given_as_it_is_and_counted(void **state) {
    (void)state;
    write_text("a.txt", "caf\xE9 au lait");
    check("a.txt", "a.txt|caf\xE9 au lait||\n",
          "a.txt:0: repaired: invalid UTF-8 separates words; is it Latin-1? iconv -f latin1 -t utf8\n");
    result r = run_path("a.txt");
    assert_int_equal(r.counts.repaired, 1);
    free_result(&r);
}

static void utf16_is_named_and_left_out(void **state) {
    (void)state;
    write_text("a.txt", "\xFF\xFE\x41\x42");
    check("a.txt", "", "a.txt:0: UTF-16, not UTF-8; convert it with iconv -f utf-16 -t utf-8\n");
    write_text("a.jsonl", "\xFE\xFF\x41\x42");
    check("a.jsonl", "", "a.jsonl:1: UTF-16, not UTF-8; convert it with iconv -f utf-16 -t utf-8\n");
}

/* ---- plain files ---- */

static void a_plain_file_is_one_document(void **state) {
    (void)state;
    write_text("a.txt", "one\ntwo\n");
    write_text("empty", "");
    check("a.txt", "a.txt|one\ntwo\n||\n", "");
    check("empty", "empty|||\n", "");
    check("./a.txt", "./a.txt|one\ntwo\n||\n", "");
}

static void a_binary_file_is_left_out(void **state) {
    (void)state;
    write_bytes("a.bin", "ab\0cd", 5);
    check("a.bin", "", "a.bin:0: binary, not text: byte 3 is NUL\n");
}

static void plain_files_have_a_limit_too(void **state) {
    (void)state;
    doppel_input_options options = {.max_record = 10000};
    const char *path = "a.txt";
    char *text = calloc(1, 20001);
    memset(text, 'x', 20000);
    for (size_t size = 9999; size <= 20000; size += size == 10001 ? 9999 : 1) {
        write_bytes(path, text, size);
        result r = run_paths(&path, 1, &options);
        assert_int_equal(r.counts.documents, size <= 10000);
        assert_int_equal(r.counts.bad, size > 10000);
        free_result(&r);
    }
    free(text);
}

static void big_plain_files_come_whole(void **state) {
    (void)state;
    const char *path = "a.txt";
    size_t size = 3000001;
    char *text = calloc(1, size + 1);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + i % 23);
    write_bytes(path, text, size);
    result r = run_path(path);
    assert_int_equal(r.output.size, strlen(path) + 1 + size + 3 + 1);
    assert_memory_equal(r.output.data + strlen(path) + 1, text, size);
    free_result(&r);
    free(text);
}

/* ---- folders and paths ---- */

static void folders_are_walked_in_byte_order(void **state) {
    (void)state;
    assert_int_equal(mkdir("f", 0755) | mkdir("f/b", 0755) | mkdir("f/empty", 0755), 0);
    write_text("f/a", "1");
    write_text("f/b/x", "2");
    write_text("f/b.txt", "3");
    write_text("f/B", "4");
    write_text("f/.hidden", "5");
    write_text("f/\xC3\xA9", "6");
    check("f", "f/.hidden|5||\nf/B|4||\nf/a|1||\nf/b/x|2||\nf/b.txt|3||\nf/\xC3\xA9|6||\n", "");
    check("f/", "f/.hidden|5||\nf/B|4||\nf/a|1||\nf/b/x|2||\nf/b.txt|3||\nf/\xC3\xA9|6||\n", "");
}

static void links_to_files_are_followed_but_not_to_folders(void **state) {
    (void)state;
    assert_int_equal(mkdir("f", 0755), 0);
    write_text("f/a", "1");
    assert_int_equal(symlink("a", "f/link") | symlink("..", "f/loop") | symlink("nowhere", "f/dead"), 0);
    assert_int_equal(mkfifo("f/pipe", 0644), 0);
    assert_int_equal(symlink("f", "g"), 0);
    check("f", "f/a|1||\nf/link|1||\n", "");
    check("g", "g/a|1||\ng/link|1||\n", "");
}

static void a_missing_file_does_not_stop_the_rest(void **state) {
    (void)state;
    const char *paths[] = {"a", "missing", "b"};
    write_text("a", "1");
    write_text("b", "2");
    result r = run_paths(paths, 3, NULL);
    assert_int_equal(r.status, DOPPEL_OK);
    assert_string_equal(r.output.data, "a|1||\nb|2||\n");
    assert_string_equal(r.reports.data, "missing:0: cannot open: No such file or directory\n");
    assert_int_equal(r.counts.unopened, 1);
    free_result(&r);
}

static void a_folder_that_cannot_be_read_is_reported(void **state) {
    (void)state;
    assert_int_equal(mkdir("f", 0755) | mkdir("f/closed", 0) | chmod(work_folder, 0755), 0);
    write_text("f/z", "1");
    /* Root could read it, so be someone else. */
    bool root = geteuid() == 0;
    assert_int_equal(root ? seteuid(65534) : 0, 0);
    result r = run_path("f");
    assert_int_equal(root ? seteuid(0) : 0, 0);
    assert_string_equal(r.output.data, "f/z|1||\n");
    assert_string_equal(r.reports.data, "f/closed:0: cannot open: Permission denied\n");
    free_result(&r);
}

static void many_small_files_keep_their_order(void **state) {
    (void)state;
    dp_buffer expected = {0};
    const char *path = "f";
    assert_int_equal(mkdir("f", 0755), 0);
    for (int i = 0; i < 1000; i++) {
        char name[32];
        sprintf(name, "f/%04d", i);
        write_text(name, name + 2);
        dp_buffer_printf(&expected, "%s|%s||\n", name, name + 2);
    }
    for (int threads = 1; threads <= 4; threads += 3) {
        doppel_input_options options = {.threads = threads};
        result r = run_paths(&path, 1, &options);
        assert_int_equal(r.output.size, expected.size + 1);
        assert_memory_equal(r.output.data, expected.data, expected.size);
        free_result(&r);
    }
    dp_buffer_free(&expected);
}

static doppel_status write_json(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    return doppel_output_json(output, d->text);
}

static void json_output_is_escaped(void **state) {
    (void)state;
    const char *path = "a";
    result kept = {0};
    doppel_work work = {.user = &kept, .document = write_json, .emit = collect};
    write_text(path, "q\" b\\ n\n t\t r\r \b\f\v\x7F \u00e9\u20ac \xFF\xE2\x82.");
    result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .work = &work}, NULL);
    dp_buffer_add(&kept.output, "", 1);
    assert_string_equal(kept.output.data,
                        "\"q\\\" b\\\\ n\\n t\\t r\\r \\b\\f\\u000b\\u007f \u00e9\u20ac \uFFFD\uFFFD.\"");
    free_result(&r);
    free_result(&kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(records_give_id_text_url_and_title),
        TEST(keys_can_be_named),
        TEST(one_key_may_serve_twice),
        TEST(no_limit_is_fine),
        TEST(the_record_is_kept_byte_for_byte),
        TEST(bom_crlf_and_blank_lines_are_fine),
        TEST(jsonl_is_told_by_its_first_byte),
        TEST(bad_records_are_named_and_left_out),
        TEST(a_json_document_is_told_from_jsonl),
        TEST(what_stands_behind_an_object_is_named),
        TEST(invalid_utf8_is_repaired_and_counted),
        TEST(a_plain_file_with_invalid_utf8_is_given_as_it_is_and_counted),
        TEST(utf16_is_named_and_left_out),
        TEST(a_plain_file_is_one_document),
        TEST(a_binary_file_is_left_out),
        TEST(plain_files_have_a_limit_too),
        TEST(big_plain_files_come_whole),
        TEST(folders_are_walked_in_byte_order),
        TEST(links_to_files_are_followed_but_not_to_folders),
        TEST(a_missing_file_does_not_stop_the_rest),
        TEST(a_folder_that_cannot_be_read_is_reported),
        TEST(many_small_files_keep_their_order),
        TEST(json_output_is_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
