/* test_input_faults.c - reading and writing files without memory, threads or a system that works: a clear error or the
 * same result, no leak, no part of a file, and the same call works afterwards. */
#include "faults.h"
#include "work_folder.h"

#include "input/input.h"
#include "input/stream.h"

#include <sys/stat.h>
#include <zlib.h>

static void put_file(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static uint64_t mixed_bytes(uint64_t result, const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        result = mixed(result, (unsigned char)bytes[i]);
    return result;
}

/* ---- documents ---- */

static doppel_status take(void *state, const doppel_document *document, doppel_output *output) {
    (void)output;
    uint64_t *result = state;
    *result = mixed_bytes(*result, document->id.data, document->id.length);
    *result = mixed_bytes(*result, document->text.data, document->text.length);
    *result = mixed_bytes(*result, document->title.data, document->title.length);
    *result = mixed_bytes(*result, document->html.data, document->html.length);
    *result = mixed_bytes(*result, document->record.data, document->record.length);
    *result = mixed_bytes(*result, document->extra->data, document->extra->length);
    return DOPPEL_OK;
}

/* A file that could not be read for want of memory counts as one that cannot be read. */
static doppel_status read_documents(const char *path, uint64_t *result) {
    static const char *const extra[] = {"date"};
    doppel_input_options options = {
        .size = sizeof options, .threads = 1, .extra_keys = extra, .extra_count = 1, .row_records = true};
    doppel_work work = {.user = result, .document = take};
    doppel_input_counts counts = {0};
    doppel_error error;
    doppel_status status = doppel_input_run(&path, 1, &options, &work, &counts, &error);
    if (status != DOPPEL_OK)
        assert_int_equal(error.code, status);
    return status == DOPPEL_OK && counts.unopened ? DOPPEL_ERROR_MEMORY : status;
}

static doppel_status read_csv(uint64_t *result) {
    return read_documents("a.csv", result);
}

static doppel_status read_mbox(uint64_t *result) {
    return read_documents("a.mbox", result);
}

static doppel_status read_warc(uint64_t *result) {
    return read_documents("a.w*c", result);
}

/* A page in chunks, in gzip, and in gzip and chunks, and a text without an id. */
static void put_warc(void) {
    static const char *const codings[] = {"", "Transfer-Encoding: chunked\r\n", "Content-Encoding: gzip\r\n",
                                          "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"};
    char page[600], packed[600];
    dp_buffer warc = {0};
    for (int i = 0; i < 4; i++) {
        z_stream z = {.next_in = (Bytef *)page, .next_out = (Bytef *)packed, .avail_out = sizeof packed};
        z.avail_in = (uInt)snprintf(page, sizeof page, "<p>page %d", i);
        assert_int_equal(deflateInit2(&z, i > 1 ? 6 : 0, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        deflateEnd(&z);
        dp_buffer body = {0};
        size_t size = i > 1 ? z.total_out : strlen(page);
        bool chunked = i % 2;
        dp_buffer_printf(&body, "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n%s\r\n", codings[i]);
        if (chunked)
            dp_buffer_printf(&body, "%zx\r\n", size);
        dp_buffer_add(&body, i > 1 ? packed : page, size);
        if (chunked)
            dp_buffer_printf(&body, "\r\n0\r\n\r\n");
        dp_buffer_printf(&warc, "WARC/1.0\r\nWARC-Type: response\r\nContent-Length: %zu\r\n\r\n", body.size);
        dp_buffer_add(&warc, body.data, body.size);
        dp_buffer_printf(&warc, "\r\n\r\n");
        dp_buffer_free(&body);
    }
    put_file("a.warc", warc.data, warc.size);
    dp_buffer_free(&warc);
}

static void documents(void **state) {
    (void)state;
    put_warc();
    static const char csv[] = "id,text,title,date,,x\xFF,x\xFE\n1,\"a \"\"b\"\" c\",T,2020,,x,y\n,bad\n"
                              "2,inva\xFFlid,,,,,\n,b,,,,,\n3,\"open\n";
    static const char mbox[] =
        "From a@b Thu Jan  1 00:00:00 1970\nMessage-ID: <1>\nDate: today\n"
        "Subject: =?koi8-r?B?8NI=?= and =?utf-8?Q?=C3=A9?=\n"
        "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain; charset=koi8-r\n"
        "Content-Transfer-Encoding: base64\n\n8NLJ18XU\n--b--\n\n"
        "From a@b Thu Jan  1 00:00:00 1970\n\n>From here\n";
    put_file("a.csv", csv, sizeof csv - 1);
    put_file("a.mbox", mbox, sizeof mbox - 1);
    for (int go_on = 0; go_on < 2; go_on++) {
        fault_plan plan = {.kinds = MEMORY, .go_on = go_on, .expected = DOPPEL_ERROR_MEMORY, .may_pass = true};
        run_with(read_csv, plan);
        run_with(read_mbox, plan);
        run_with(read_warc, plan);
    }
}

/* ---- a big file of lines ---- */

static const dp_input_sizes range_sizes = {.block = 300, .small_file = 0, .batch_files = 1, .pending = 1 << 20};

static void put_lines(void) {
    dp_buffer lines = {0};
    for (int i = 0; i < 100; i++)
        dp_buffer_printf(&lines, "{\"id\":%d,\"text\":\"%*s\"}\n", i, i * 7 % 50, "x");
    put_file("a.jsonl", lines.data, lines.size);
    dp_buffer_free(&lines);
}

static doppel_status take_line(void *state, const doppel_document *document, doppel_output *output) {
    (void)state;
    doppel_status status = doppel_output_write(output, document->id);
    return status == DOPPEL_OK ? doppel_output_write(output, doppel_slice_of(" ")) : status;
}

/* Lines of the file come in order and one after the other, from the first on. */
static doppel_status take_ids(void *user, doppel_slice bytes) {
    uint64_t *next = user;
    const char *p = bytes.data, *end = p + bytes.length;
    for (; p < end; p = (const char *)memchr(p, ' ', (size_t)(end - p)) + 1)
        assert_int_equal(strtoull(p, NULL, 10), (*next)++);
    return DOPPEL_OK;
}

static int range_threads;
static uint64_t failures; /* that were reported */

static void count_failure(const doppel_error *what, void *user) {
    (void)user;
    failures += what->code == DOPPEL_ERROR_IO;
}

static doppel_status read_ranges(uint64_t *result) {
    const char *path = "a.jsonl";
    doppel_input_options options = {.size = sizeof options, .threads = range_threads, .bad = count_failure};
    doppel_work work = {.user = result, .document = take_line, .emit = take_ids};
    dp_input_job job = {.paths = &path, .path_count = 1, .options = &options, .work = &work, .sizes = &range_sizes};
    doppel_input_counts counts = {0};
    doppel_error error;
    failures = 0;
    doppel_status status = dp_input_run(&job, &counts, &error);
    if (status == DOPPEL_OK) {
        assert_int_equal(failures, counts.unopened);
        assert_in_range(counts.unopened, 0, 1);
        assert_int_equal(counts.documents, *result);
    }
    return status == DOPPEL_OK && counts.unopened ? DOPPEL_ERROR_IO : status;
}

/* What could not be read ends the file: nothing after it is given, and it is reported once. */
static void ranges(void **state) {
    (void)state;
    put_lines();
    for (int i = 0; i < 8; i++) {
        range_threads = 1 + i % 4;
        fault_plan plan = {.go_on = i / 4, .may_pass = true};
        plan.kinds = FILES;
        plan.expected = DOPPEL_ERROR_IO;
        run_with(read_ranges, plan);
    }
}

static doppel_status read_ranges_alone(uint64_t *result) {
    range_threads = 1;
    doppel_status status = read_ranges(result);
    return status == DOPPEL_ERROR_IO ? DOPPEL_ERROR_MEMORY : status; /* the file could not be opened for want of it */
}

static void ranges_without_memory(void **state) {
    (void)state;
    put_lines();
    for (int go_on = 0; go_on < 2; go_on++)
        run_with(read_ranges_alone,
                 (fault_plan){.kinds = MEMORY, .go_on = go_on, .expected = DOPPEL_ERROR_MEMORY, .may_pass = true});
}

/* ---- writing ---- */

static const char *target;
static int target_lines; /* enough for several blocks */

static doppel_status write_file(uint64_t *result) {
    doppel_writer *writer;
    doppel_error error;
    char line[1000];
    doppel_status status = doppel_writer_open(&writer, target, 3, &error);
    memset(line, 'a', sizeof line);
    for (int i = 0; status == DOPPEL_OK && i < target_lines; i++) {
        line[i % 1000] = (char)('a' + i % 26);
        status = doppel_writer_write(writer, (doppel_slice){line, sizeof line}, &error);
    }
    doppel_status finished = doppel_writer_finish(writer, status == DOPPEL_OK, &error);
    status = status != DOPPEL_OK ? status : finished;
    if (status != DOPPEL_OK)
        assert_int_equal(error.code, status);
    int kinds = pause_faults();
    /* A file whose folder could not be synced is there, as it is whole. */
    struct stat stat_of;
    if (!stat(target, &stat_of) && status == DOPPEL_OK)
        *result = mixed(*result, (uint64_t)stat_of.st_size);
    unlink(target);
    assert_int_equal(rmdir(work_folder), 0); /* nothing else was left in it */
    assert_int_equal(mkdir(work_folder, 0777) || chdir(work_folder), 0);
    resume_faults(kinds);
    return status;
}

static void output_files(void **state) {
    (void)state;
    static const char *const names[] = {"out", "out.gz", "out.zst"};
    static const int lines[] = {600, 2500, 5000};
    for (int i = 0; i < 3; i++) {
        target = names[i];
        target_lines = lines[i];
        run_with(write_file, (fault_plan){.kinds = MEMORY, .expected = DOPPEL_ERROR_MEMORY, .may_pass = true});
        run_with(write_file, (fault_plan){.kinds = SYSTEM | FILES, .expected = DOPPEL_ERROR_IO, .may_pass = true});
        run_with(write_file, (fault_plan){.kinds = THREADS, .expected = DOPPEL_ERROR_IO, .may_pass = true});
        run_with(write_file, (fault_plan){.kinds = THREADS, .go_on = true, .may_pass = true});
    }
}

/* ---- decompressing ahead ---- */

static doppel_status read_stream(uint64_t *result) {
    static const dp_ahead_sizes tiny = {.piece = 300, .most = 5000, .held = 8000, .least = 1};
    dp_stream stream;
    char some[777];
    dp_stream_init(&stream, NULL);
    stream.threads = 3;
    stream.ahead_sizes = &tiny;
    bool opened = dp_stream_open(&stream, "members");
    for (size_t got; opened && (got = dp_stream_read(&stream, some, sizeof some));)
        *result = mixed_bytes(*result, some, got);
    doppel_status status = stream.failed ? DOPPEL_ERROR_IO : DOPPEL_OK;
    dp_stream_free(&stream);
    return status;
}

static void make_members(void) {
    dp_buffer file = {0};
    uint64_t seed = 1;
    for (int i = 0; i < 60; i++) {
        char text[400], out[1000];
        size_t size = random_below(&seed, sizeof text);
        for (size_t k = 0; k < size; k++)
            text[k] = (char)('a' + random_below(&seed, 9));
        z_stream z = {.next_in = (Bytef *)text, .avail_in = (uInt)size, .next_out = (Bytef *)out};
        z.avail_out = sizeof out;
        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        assert_true(dp_buffer_add(&file, out, sizeof out - z.avail_out));
        deflateEnd(&z);
    }
    put_file("members", file.data, file.size);
    dp_buffer_free(&file);
}

static void streams(void **state) {
    (void)state;
    make_members();
    static const int kinds[] = {MEMORY, FILES, THREADS};
    for (int i = 0; i < 6; i++)
        run_with(
            read_stream,
            (fault_plan){
                .kinds = kinds[i / 2], .go_on = i % 2, .expected = DOPPEL_ERROR_IO, .may_pass = true, .sparse = true});
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(documents), TEST(ranges), TEST(ranges_without_memory), TEST(output_files),
                                       TEST(streams)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
