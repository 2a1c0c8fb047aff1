/* test_input_stream.c - blocks cut anywhere, long lines, compressed files that are whole, cut short or damaged. */
#include "input_runs.h"

#include "input/stream.h"

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

static void check_sample(const char *path) {
    result whole = run_cut(path, 1 << 20, 1 << 20, 1);
    assert_int_equal(whole.counts.documents, 4);
    assert_int_equal(whole.counts.bad, 2);
    check_every_cut(path, strlen(sample), &(doppel_input_options){.max_record = 60}, &whole);
    free_result(&whole);
}

static void blocks_may_be_cut_anywhere(void **state) {
    (void)state;
    write_text("a.jsonl", sample);
    check_sample("a.jsonl");
}

static void compressed_blocks_may_be_cut_anywhere(void **state) {
    (void)state;
    dp_buffer gz = {0}, zst = {0};
    add_gzip(&gz, sample);
    add_zstd(&zst, sample);
    write_bytes("a.jsonl", gz.data, gz.size);
    check_sample("a.jsonl");
    write_bytes("a.jsonl", zst.data, zst.size);
    check_sample("a.jsonl");
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
          "a.jsonl.gz:2: the file ends within this line\na.jsonl.gz:0: the gzip data is cut short\n");
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
    check("a.jsonl.gz", "a.jsonl.gz:1|a||\n", "a.jsonl.gz:0: unexpected bytes after the gzip data\n");
    dp_buffer_free(&file);
}

/* A line truncated to `bytes` bytes at the end of the file, after a whole one. */
static result run_broken_line(size_t bytes, size_t max_record) {
    const char *path = "a.jsonl.gz";
    doppel_input_options options = {.max_record = max_record};
    char text[300] = "{\"text\":\"a\"}\n", out[1000];
    size_t whole = strlen(text);
    memset(text + whole, 'x', bytes);
    z_stream z = {.next_in = (Bytef *)text, .avail_in = (uInt)(whole + bytes), .next_out = (Bytef *)out};
    z.avail_out = sizeof out;
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_SYNC_FLUSH), Z_OK); /* all of it can be read back, but there is no end */
    deflateEnd(&z);
    write_bytes(path, out, sizeof out - z.avail_out);
    return run_paths(&path, 1, &options);
}

static void a_line_that_is_too_long_already_is_not_called_broken(void **state) {
    (void)state;
    for (size_t bytes = 48; bytes <= 56; bytes++) {
        result r = run_broken_line(bytes, 50);
        assert_string_equal(r.output.data, "a.jsonl.gz:1|a||\n");
        assert_string_equal(r.reports.data, bytes > 50 ? "a.jsonl.gz:2: longer than the limit of 50 bytes; "
                                                         "--max-record sets it\n"
                                                         "a.jsonl.gz:0: the gzip data is cut short\n"
                                                       : "a.jsonl.gz:2: the file ends within this line\n"
                                                         "a.jsonl.gz:0: the gzip data is cut short\n");
        free_result(&r);
    }
}

/* ---- damaged zstd ---- */

enum { ZSTD_BLOCKS = 4 };

/* A frame of blocks with `size` bytes of text each; where[i] is where block i begins in it. */
static dp_buffer zstd_blocks(const char *text, size_t size, size_t where[ZSTD_BLOCKS]) {
    dp_buffer frame = {0};
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_outBuffer out = {malloc(1 << 20), 1 << 20, 0};
    /* The header alone comes with the first block: it has 6 bytes, as neither size nor checksum are given. */
    for (size_t i = 0; i < ZSTD_BLOCKS; i++) {
        ZSTD_inBuffer in = {text + i * size, size, 0};
        where[i] = i ? out.pos : 6;
        assert_int_equal(ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush), 0);
    }
    assert_true(dp_buffer_add(&frame, out.dst, out.pos));
    ZSTD_freeCCtx(context);
    free(out.dst);
    return frame;
}

/* All that a file gives when at most `room` bytes are asked at a time. */
static dp_buffer read_all(const char *path, size_t room) {
    dp_buffer all = {0};
    dp_stream stream;
    char *some = malloc(room);
    dp_stream_init(&stream, NULL);
    assert_true(dp_stream_open(&stream, path));
    for (size_t got; (got = dp_stream_read(&stream, some, room));)
        assert_true(dp_buffer_add(&all, some, got));
    assert_true(stream.failed);
    assert_non_null(strstr(stream.failure, "the zstd data is "));
    dp_stream_free(&stream);
    free(some);
    return all;
}

static void check_whole_blocks(const char *text, size_t size) {
    size_t where[ZSTD_BLOCKS];
    dp_buffer frame = zstd_blocks(text, size, where);
    const size_t rooms[] = {1, 7, size - 1, size, size + 1, 3 * size, 1 << 20};
    for (size_t bad = 0; bad < ZSTD_BLOCKS; bad++) {
        frame.data[where[bad]] |= 6; /* type 3 is none */
        write_bytes("a.zst", frame.data, frame.size);
        frame.data[where[bad]] &= ~2; /* type 2: compressed */
        for (size_t i = size > 10000 ? 1 : 0; i < sizeof rooms / sizeof *rooms; i++) {
            dp_buffer all = read_all("a.zst", rooms[i]);
            assert_int_equal(all.size, bad * size);
            assert_true(!bad || !memcmp(all.data, text, all.size));
            dp_buffer_free(&all);
        }
    }
    dp_buffer_free(&frame);
}

static void damaged_zstd_gives_every_whole_block(void **state) {
    (void)state;
    enum { MOST = 100000 };
    char *text = malloc(ZSTD_BLOCKS * MOST);
    uint64_t seed = 1;
    for (size_t i = 0; i < ZSTD_BLOCKS * MOST; i++)
        text[i] = (char)('a' + random_below(&seed, 5));
    check_whole_blocks(text, 1000);
    check_whole_blocks(text, MOST);
    free(text);
}

/* A frame with a wrong head, in which the magic number of an old format stands where the decoder looks for one: it says
 * then that it has filled all the room, and has written nothing. */
static void a_damaged_zstd_head_gives_nothing(void **state) {
    (void)state;
    static const char head[] = "\x28\xB5\x2F\xFD\x5B\x7B\x27\xB5\x2F\xFD:\"xt\":\"c\",}, and more bytes after it";
    write_bytes("a.zst", head, sizeof head - 1);
    for (size_t room = 1; room < 10000; room *= 10) {
        dp_buffer all = read_all("a.zst", room);
        assert_int_equal(all.size, 0);
        dp_buffer_free(&all);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(blocks_may_be_cut_anywhere),
        TEST(compressed_blocks_may_be_cut_anywhere),
        TEST(long_lines_are_passed_over_without_being_held),
        TEST(members_and_frames_read_as_one),
        TEST(compression_is_told_by_content),
        TEST(truncated_files_give_their_whole_lines),
        TEST(a_partial_last_line_is_reported),
        TEST(a_truncated_plain_file_is_left_out),
        TEST(garbage_behind_gzip_data_is_reported),
        TEST(a_line_that_is_too_long_already_is_not_called_broken),
        TEST(damaged_zstd_gives_every_whole_block),
        TEST(a_damaged_zstd_head_gives_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
