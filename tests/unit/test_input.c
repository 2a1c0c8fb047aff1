/* test_input.c - documents from files: formats, bad input, order, threads.
 *
 * Each test makes files in a folder of its own, runs over them, and compares what the work wrote and what was reported
 * with what it should be. The work writes a line for each document: id|text|url|title. */
#include "input/input.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

/* ---- files ---- */

static char folder[] = "/tmp/doppel-test-input-XXXXXX";

static int enter_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/doppel-test-input-XXXXXX");
    return !mkdtemp(folder) || chdir(folder);
}

static int leave_folder(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "chmod -R u+rwx %s && rm -rf %s", folder, folder);
    return chdir("/") || system(command);
}

static void write_bytes(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void write_text(const char *path, const char *text) {
    write_bytes(path, text, strlen(text));
}

static void add_gzip(dp_buffer *to, const char *text) {
    z_stream z = {0};
    char out[1 << 16];
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)strlen(text);
    z.next_out = (Bytef *)out;
    z.avail_out = sizeof out;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_true(dp_buffer_add(to, out, sizeof out - z.avail_out));
    deflateEnd(&z);
}

static void add_zstd(dp_buffer *to, const char *text) {
    char out[1 << 16];
    size_t size = ZSTD_compress(out, sizeof out, text, strlen(text), 3);
    assert_false(ZSTD_isError(size));
    assert_true(dp_buffer_add(to, out, size));
}

/* ---- runs ---- */

typedef struct result {
    dp_buffer output, reports;
    doppel_input_counts counts;
    doppel_status status;
    doppel_error error;
} result;

static doppel_status write_document(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    doppel_output_write(output, d->id, d->id_length);
    doppel_output_write(output, "|", 1);
    doppel_output_write(output, d->text, d->text_length);
    doppel_output_write(output, "|", 1);
    doppel_output_write(output, d->url, d->url_length);
    doppel_output_write(output, "|", 1);
    doppel_output_write(output, d->title, d->title_length);
    return doppel_output_write(output, "\n", 1);
}

static doppel_status collect(void *user, const char *bytes, size_t length) {
    return dp_buffer_add(&((result *)user)->output, bytes, length) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static void report(const doppel_error *what, void *user) {
    dp_buffer_printf(&((result *)user)->reports, "%s:%llu: %s%s\n", what->file, (unsigned long long)what->line,
                     what->code == DOPPEL_OK ? "repaired: " : "", what->message);
}

static result run_job(dp_input_job job, const doppel_input_options *given) {
    result r = {0};
    doppel_input_options options = given ? *given : (doppel_input_options){0};
    doppel_work work = {.user = &r, .document = write_document, .emit = collect};
    options.size = sizeof options;
    options.bad = report;
    options.user = &r;
    job.options = &options;
    if (!job.work)
        job.work = &work;
    r.status = dp_input_run(&job, &r.counts, &r.error);
    dp_buffer_add(&r.output, "", 1);
    dp_buffer_add(&r.reports, "", 1);
    return r;
}

static result run_paths(const char *const *paths, size_t count, const doppel_input_options *options) {
    return run_job((dp_input_job){.paths = paths, .path_count = count}, options);
}

static result run_path(const char *path) {
    return run_paths(&path, 1, NULL);
}

static void free_result(result *r) {
    dp_buffer_free(&r->output);
    dp_buffer_free(&r->reports);
}

/* Runs over one path, and compares output and reports. */
static void check(const char *path, const char *output, const char *reports) {
    result r = run_path(path);
    assert_int_equal(r.status, DOPPEL_OK);
    assert_string_equal(r.output.data, output);
    assert_string_equal(r.reports.data, reports);
    free_result(&r);
}

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
    doppel_output_write(output, d->record, d->record_length);
    return doppel_output_write(output, "\n", 1);
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
          "a.jsonl:1: not JSON: does not start with {\na.jsonl:2: has no field \"text\"\n"
          "a.jsonl:3: field \"text\" is a number, not a string\na.jsonl:4: field \"text\" is null, not a string\n"
          "a.jsonl:5: not a JSON object\na.jsonl:7: field \"id\" is neither a string nor a number\n"
          "a.jsonl:8: not JSON: an escape in a string that JSON does not have\n"
          "a.jsonl:9: not JSON: an object or array without its end\n");
    result r = run_path("a.jsonl");
    assert_int_equal(r.counts.documents, 1);
    assert_int_equal(r.counts.bad, 8);
    free_result(&r);
}

static void a_json_document_is_told_from_jsonl(void **state) {
    (void)state;
    write_text("a.json", "[\n[{\"text\":\"a\"}]\n");
    check("a.json", "",
          "a.json:1: looks like one JSON document over several lines, not JSONL; convert it with jq -c '.[]'\n"
          "a.json:2: a JSON array, where JSONL has an object in each line; convert it with jq -c '.[]'\n");
    write_text("a.json", " { \n\"text\":\"a\"\n");
    check("a.json", "",
          "a.json:1: looks like one JSON document over several lines, not JSONL; convert it with jq -c .\n"
          "a.json:2: not a JSON object\n");
}

static void what_stands_behind_an_object_is_named(void **state) {
    (void)state;
    write_text("a.jsonl", "{\"text\":\"}\\\"\"} garbage\n{\"text\":\"b\"}}\n");
    check("a.jsonl", "",
          "a.jsonl:1: not JSON: more behind the end of the object\n"
          "a.jsonl:2: not JSON: more behind the end of the object\n");
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

/* ---- blocks ---- */

/* A sample with lines of all kinds; the fourth one is longer than 60 bytes. */
static const char sample[] =
    "\xEF\xBB\xBF{\"id\":\"a\",\"text\":\"x\"}\r\n\n{\"text\":\"y\\n\"}\n"
    "{\"id\":\"long\",\"text\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}\n"
    "broken\n{\"id\":\"\xFF\",\"text\":\"z\"}\n{\"id\":\"last\",\"text\":\"w\"}";

static result run_cut(const char *path, size_t block, size_t small_file, int threads) {
    dp_input_sizes sizes = {.block = block, .small_file = small_file, .batch_files = 2, .pending = 1 << 20};
    doppel_input_options options = {.threads = threads, .max_record = 60};
    return run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes}, &options);
}

static void check_every_cut(const char *path) {
    result whole = run_cut(path, 1 << 20, 1 << 20, 1);
    assert_int_equal(whole.counts.documents, 4);
    assert_int_equal(whole.counts.bad, 2);
    for (size_t block = 1; block < sizeof sample + 2; block++)
        for (int variant = 0; variant < 4; variant++) {
            result r = run_cut(path, block, variant & 1 ? 1 << 20 : 0, variant & 2 ? 4 : 1);
            assert_string_equal(r.output.data, whole.output.data);
            assert_string_equal(r.reports.data, whole.reports.data);
            assert_int_equal(r.counts.documents, whole.counts.documents);
            free_result(&r);
        }
    free_result(&whole);
}

static void blocks_may_be_cut_anywhere(void **state) {
    (void)state;
    write_text("a.jsonl", sample);
    check_every_cut("a.jsonl");
}

static void compressed_blocks_may_be_cut_anywhere(void **state) {
    (void)state;
    dp_buffer gz = {0}, zst = {0};
    add_gzip(&gz, sample);
    add_zstd(&zst, sample);
    write_bytes("a.jsonl", gz.data, gz.size);
    check_every_cut("a.jsonl");
    write_bytes("a.jsonl", zst.data, zst.size);
    check_every_cut("a.jsonl");
    dp_buffer_free(&gz);
    dp_buffer_free(&zst);
}

static void long_lines_are_passed_over_without_being_held(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    dp_input_sizes sizes = {.block = 4096, .small_file = 0, .batch_files = 1, .pending = 1 << 20};
    doppel_input_options options = {.threads = 1, .max_record = 10000};
    FILE *file = fopen(path, "wb");
    fputs("{\"text\":\"a\"}\n{\"text\":\"", file);
    for (int i = 0; i < 1000000; i++)
        fputs("long ", file);
    fputs("\"}\n{\"text\":\"b\"}\n", file);
    fclose(file);
    result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes}, &options);
    assert_string_equal(r.output.data, "a.jsonl:1|a||\na.jsonl:3|b||\n");
    assert_string_equal(r.reports.data, "a.jsonl:2: longer than the limit of 10000 bytes; --max-record sets it\n");
    free_result(&r);
}

/* ---- compression ---- */

static void members_and_frames_read_as_one(void **state) {
    (void)state;
    dp_buffer gz = {0}, zst = {0};
    add_gzip(&gz, "{\"text\":\"a\"}\n{\"te");
    add_gzip(&gz, "");
    add_gzip(&gz, "xt\":\"b\"}\n");
    dp_buffer_add(&gz, "\0\0\0", 3);
    write_bytes("a.jsonl.gz", gz.data, gz.size);
    check("a.jsonl.gz", "a.jsonl.gz:1|a||\na.jsonl.gz:2|b||\n", "");
    dp_buffer_add(&zst, "\x52\x2A\x4D\x18\x03\0\0\0abc", 11);
    add_zstd(&zst, "{\"text\":\"a\"}\n{\"te");
    add_zstd(&zst, "xt\":\"b\"}\n");
    write_bytes("a.jsonl.zst", zst.data, zst.size);
    check("a.jsonl.zst", "a.jsonl.zst:1|a||\na.jsonl.zst:2|b||\n", "");
    dp_buffer_free(&gz);
    dp_buffer_free(&zst);
}

static void compression_is_told_by_content(void **state) {
    (void)state;
    dp_buffer gz = {0};
    add_gzip(&gz, "plain text");
    write_bytes("a.txt", gz.data, gz.size);
    check("a.txt", "a.txt|plain text||\n", "");
    write_text("b.txt.gz", "not compressed");
    check("b.txt.gz", "b.txt.gz|not compressed||\n", "");
    dp_buffer_free(&gz);
}

/* A file cut short gives its whole lines, and is counted; at no length is it taken as whole. */
static void check_every_length(const char *path, const dp_buffer *file, const char *all) {
    for (size_t length = 6; length < file->size; length++) {
        write_bytes(path, file->data, length);
        result r = run_cut(path, 64, length & 1 ? 1 << 20 : 0, 1);
        assert_int_equal(r.status, DOPPEL_OK);
        assert_int_equal(r.counts.unopened, 1);
        assert_non_null(strstr(r.reports.data, "data is"));
        assert_memory_equal(r.output.data, all, strlen(r.output.data));
        free_result(&r);
    }
}

static void truncated_files_give_their_whole_lines(void **state) {
    (void)state;
    char text[4000] = "", all[4000] = "";
    uint32_t noise = 1;
    for (int i = 1; i <= 30; i++) {
        noise = noise * 1664525 + 1013904223;
        sprintf(text + strlen(text), "{\"id\":\"%d\",\"text\":\"%08x%08x\"}\n", i, noise, noise * 77);
        sprintf(all + strlen(all), "%d|%08x%08x||\n", i, noise, noise * 77);
    }
    dp_buffer gz = {0}, zst = {0};
    add_gzip(&gz, text);
    add_zstd(&zst, text);
    check_every_length("a.jsonl", &gz, all);
    check_every_length("a.jsonl", &zst, all);
    dp_buffer_free(&gz);
    dp_buffer_free(&zst);
}

static void a_partial_last_line_is_reported(void **state) {
    (void)state;
    dp_buffer file = {0};
    char text[3000];
    strcpy(text, "{\"text\":\"a\"}\n{\"text\":\"");
    uint32_t noise = 1;
    for (size_t i = strlen(text); i < 2900; i++, noise = noise * 1664525 + 1013904223)
        text[i] = (char)('a' + (noise >> 24) % 26);
    strcpy(text + 2900, "\"}\n");
    add_gzip(&file, text);
    write_bytes("a.jsonl.gz", file.data, file.size / 2);
    check("a.jsonl.gz", "a.jsonl.gz:1|a||\n",
          "a.jsonl.gz:2: the file breaks off within this line\na.jsonl.gz:0: the gzip data is cut short\n");
    dp_buffer_free(&file);
}

static void a_truncated_plain_file_is_left_out(void **state) {
    (void)state;
    dp_buffer file = {0};
    add_gzip(&file, "some text that is compressed");
    write_bytes("a.txt.gz", file.data, file.size - 10);
    check("a.txt.gz", "", "a.txt.gz:0: the gzip data is cut short\n");
    dp_buffer_free(&file);
}

static void garbage_behind_gzip_data_is_reported(void **state) {
    (void)state;
    dp_buffer file = {0};
    add_gzip(&file, "{\"text\":\"a\"}\n");
    dp_buffer_add(&file, "garbage", 7);
    write_bytes("a.jsonl.gz", file.data, file.size);
    check("a.jsonl.gz", "a.jsonl.gz:1|a||\n", "a.jsonl.gz:0: there is something else behind the gzip data\n");
    dp_buffer_free(&file);
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
    assert_int_equal(mkdir("f", 0755) | mkdir("f/closed", 0) | chmod(folder, 0755), 0);
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

/* ---- threads, order, ends ---- */

/* 20,000 records, every 37th bad, in one file. */
static void write_corpus(const char *path) {
    FILE *file = fopen(path, "wb");
    for (int i = 1; i <= 20000; i++) {
        if (i % 37)
            fprintf(file, "{\"id\":%d,\"text\":\"%*s\"}\n", i, i % 300, "x");
        else
            fprintf(file, "{\"id\":%d}\n", i);
    }
    fclose(file);
}

static void every_thread_count_gives_the_same(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    dp_input_sizes sizes = {.block = 5000, .small_file = 0, .batch_files = 1, .pending = 1 << 20};
    write_corpus(path);
    result first = {0};
    for (int threads = 1; threads <= 8; threads++) {
        doppel_input_options options = {.threads = threads};
        /* Some with so little room that units have to wait for their turn in between. */
        sizes.pending = threads % 2 ? 1000 : 1 << 20;
        result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes}, &options);
        assert_int_equal(r.counts.documents, 20000 - 20000 / 37);
        assert_int_equal(r.counts.bad, 20000 / 37);
        if (threads == 1) {
            first = r;
            continue;
        }
        assert_string_equal(r.output.data, first.output.data);
        assert_string_equal(r.reports.data, first.reports.data);
        free_result(&r);
    }
    free_result(&first);
}

static void strict_stops_at_the_first_bad_record(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    dp_input_sizes sizes = {.block = 500, .small_file = 0, .batch_files = 1, .pending = 1 << 20};
    write_corpus(path);
    for (int threads = 1; threads <= 4; threads += 3) {
        doppel_input_options options = {.threads = threads, .strict = true};
        result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes}, &options);
        assert_int_equal(r.status, DOPPEL_ERROR_INPUT);
        assert_int_equal(r.error.line, 37);
        assert_string_equal(r.error.file, path);
        assert_string_equal(r.reports.data, "a.jsonl:37: has no field \"text\"\n");
        assert_int_equal(r.counts.documents, 36);
        free_result(&r);
    }
}

static void strict_stops_at_a_missing_file(void **state) {
    (void)state;
    const char *paths[] = {"missing", "a"};
    doppel_input_options options = {.strict = true};
    write_text("a", "1");
    result r = run_paths(paths, 2, &options);
    assert_int_equal(r.status, DOPPEL_ERROR_INPUT);
    assert_string_equal(r.output.data, "");
    free_result(&r);
}

static doppel_status fail_at_100(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    if (d->line == 100)
        return DOPPEL_ERROR_STORE;
    doppel_output_write(output, d->id, d->id_length);
    return doppel_output_write(output, "\n", 1);
}

static void a_failing_document_ends_the_run_in_its_turn(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    dp_input_sizes sizes = {.block = 500, .small_file = 0, .batch_files = 1, .pending = 1 << 20};
    write_corpus(path);
    for (int threads = 1; threads <= 4; threads += 3) {
        result kept = {0};
        doppel_input_options options = {.threads = threads};
        doppel_work work = {.user = &kept, .document = fail_at_100, .emit = collect};
        result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes, .work = &work}, &options);
        dp_buffer_add(&kept.output, "", 1);
        assert_int_equal(r.status, DOPPEL_ERROR_STORE);
        assert_int_equal(r.error.line, 100);
        const char *last = strstr(kept.output.data, "\n99\n");
        assert_true(last && !last[4]);
        free_result(&r);
        free_result(&kept);
    }
}

static doppel_status refuse(void *user, const char *bytes, size_t length) {
    (void)user;
    (void)bytes;
    (void)length;
    return DOPPEL_ERROR_IO;
}

static void a_failing_emit_ends_the_run(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    dp_input_sizes sizes = {.block = 500, .small_file = 0, .batch_files = 1, .pending = 100};
    write_corpus(path);
    for (int threads = 1; threads <= 4; threads += 3) {
        doppel_input_options options = {.threads = threads};
        doppel_work work = {.document = write_document, .emit = refuse};
        result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes, .work = &work}, &options);
        assert_int_equal(r.status, DOPPEL_ERROR_IO);
        free_result(&r);
    }
}

static volatile int stop;

static doppel_status stop_at_50(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    (void)output;
    if (d->line == 50)
        stop = 1;
    return DOPPEL_OK;
}

static void the_stop_flag_interrupts(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    doppel_input_options options = {.threads = 1, .stop = &stop};
    doppel_work work = {.document = stop_at_50};
    stop = 0;
    write_corpus(path);
    result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .work = &work}, &options);
    assert_int_equal(r.status, DOPPEL_ERROR_INTERRUPTED);
    assert_true(r.counts.documents < 20000);
    free_result(&r);
}

static doppel_status begin(void *user, void **state) {
    *state = calloc(1, 1);
    (void)user;
    return *state ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static void end(void *user, void *state) {
    (void)user;
    free(state);
}

static doppel_status check_state(void *state, const doppel_document *d, doppel_output *output) {
    (void)d;
    (void)output;
    *(char *)state = 1;
    return DOPPEL_OK;
}

static void every_thread_has_a_state_of_its_own(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    doppel_input_options options = {.size = sizeof options, .threads = 4};
    doppel_work work = {.begin = begin, .document = check_state, .end = end};
    doppel_input_counts counts;
    write_corpus(path);
    assert_int_equal(doppel_input_run(&path, 1, &options, &work, &counts, NULL), DOPPEL_OK);
    assert_int_equal(counts.documents, 20000 - 20000 / 37);
}

static uint64_t shown_bytes, shown_total;

static void show(uint64_t bytes, uint64_t total, uint64_t documents, void *user) {
    (void)documents;
    (void)user;
    shown_bytes = bytes;
    shown_total = total;
}

static void progress_ends_at_the_total(void **state) {
    (void)state;
    const char *paths[] = {"a.jsonl", "b.txt", "f"};
    doppel_input_options options = {.threads = 2, .progress = show};
    struct stat status;
    write_corpus("a.jsonl");
    write_text("b.txt", "text");
    assert_int_equal(mkdir("f", 0755), 0);
    write_text("f/c.txt", "more text");
    result r = run_paths(paths, 3, &options);
    assert_int_equal(stat("a.jsonl", &status), 0);
    assert_int_equal(shown_total, status.st_size + 4 + 9);
    assert_int_equal(shown_bytes, shown_total);
    free_result(&r);
}

static doppel_status write_json(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    return doppel_output_json(output, d->text, d->text_length);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)

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
        TEST(blocks_may_be_cut_anywhere),
        TEST(compressed_blocks_may_be_cut_anywhere),
        TEST(long_lines_are_passed_over_without_being_held),
        TEST(members_and_frames_read_as_one),
        TEST(compression_is_told_by_content),
        TEST(truncated_files_give_their_whole_lines),
        TEST(a_partial_last_line_is_reported),
        TEST(a_truncated_plain_file_is_left_out),
        TEST(garbage_behind_gzip_data_is_reported),
        TEST(a_plain_file_is_one_document),
        TEST(a_binary_file_is_left_out),
        TEST(plain_files_have_a_limit_too),
        TEST(big_plain_files_come_whole),
        TEST(folders_are_walked_in_byte_order),
        TEST(links_to_files_are_followed_but_not_to_folders),
        TEST(a_missing_file_does_not_stop_the_rest),
        TEST(a_folder_that_cannot_be_read_is_reported),
        TEST(many_small_files_keep_their_order),
        TEST(every_thread_count_gives_the_same),
        TEST(strict_stops_at_the_first_bad_record),
        TEST(strict_stops_at_a_missing_file),
        TEST(a_failing_document_ends_the_run_in_its_turn),
        TEST(a_failing_emit_ends_the_run),
        TEST(the_stop_flag_interrupts),
        TEST(every_thread_has_a_state_of_its_own),
        TEST(progress_ends_at_the_total),
        TEST(json_output_is_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
