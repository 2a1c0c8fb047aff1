/* fuzz_stream.c - compressed files: with threads that decompress ahead, or a reader that decompresses whole members,
 * the bytes and the failure are those of reading in order; but for the bytes of a damaged zstd block, where the
 * decoder may find the damage sooner or later, and for deflate data that only zlib refuses (lib/input/ahead.c). The
 * first byte chooses the sizes and what the rest is: the file as it is, or text that is compressed in members, with
 * one byte of the file changed. */
#include "fuzz.h"

#include "input/stream.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* What a file gives. */
typedef struct contents {
    dp_buffer bytes;
    char failure[160];
} contents;

/* Small, so that few bytes are many pieces; and never ahead. */
static const dp_ahead_sizes tiny = {.piece = 64, .most = 2000, .held = 1000, .least = 1};
static const dp_ahead_sizes in_order = {.least = SIZE_MAX};

static contents read_file(const char *path, int threads, const dp_ahead_sizes *sizes, size_t room) {
    contents c = {0};
    dp_stream stream;
    char some[5000];
    dp_stream_init(&stream, NULL);
    stream.threads = threads;
    stream.ahead_sizes = sizes;
    CHECK(dp_stream_open(&stream, path));
    for (size_t got; (got = dp_stream_read(&stream, some, room));)
        CHECK(dp_buffer_add(&c.bytes, some, got));
    if (stream.failed)
        memcpy(c.failure, stream.failure, sizeof c.failure);
    dp_stream_free(&stream);
    return c;
}

static void add_member(dp_buffer *to, bool zstd, const uint8_t *text, size_t size) {
    uint8_t out[1000];
    if (zstd) {
        size_t made = ZSTD_compress(out, sizeof out, text, size, 1);
        CHECK(!ZSTD_isError(made) && dp_buffer_add(to, out, made));
        return;
    }
    z_stream z = {.next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)size, .next_out = out};
    z.avail_out = sizeof out;
    CHECK(deflateInit2(&z, size % 2, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    CHECK(dp_buffer_add(to, out, sizeof out - z.avail_out));
    deflateEnd(&z);
}

/* Members of the lengths that single bytes of the text give. */
static dp_buffer compress_text(bool zstd, const uint8_t *text, size_t size) {
    dp_buffer made = {0};
    size_t flip = size > 3 ? (size_t)text[0] << 8 | text[1] : 0;
    uint8_t with = size > 3 ? text[2] : 0;
    for (size_t at = size > 3 ? 3 : 0; at < size;) {
        size_t length = text[at] < size - at ? text[at] : size - at;
        add_member(&made, zstd, text + at, length);
        at += length ? length : 1;
    }
    if (flip < made.size)
        made.data[flip] ^= (char)with;
    return made;
}

static void check_same(const contents *plain, contents ahead) {
    size_t common = plain->bytes.size < ahead.bytes.size ? plain->bytes.size : ahead.bytes.size;
    bool refused = strstr(plain->failure, "too many length or distance symbols");
    CHECK(!strcmp(plain->failure, ahead.failure) || refused);
    CHECK(plain->bytes.size == ahead.bytes.size || refused || strstr(plain->failure, "zstd data is damaged"));
    CHECK(!common || !memcmp(plain->bytes.data, ahead.bytes.data, common));
    dp_buffer_free(&ahead.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char path[40];
    static int file;
    if (!path[0]) {
        file = memfd_create("stream", 0);
        CHECK(file >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (size < 2 || size > 8000)
        return 0;
    dp_buffer made = {0};
    if (data[0] & 1)
        made = compress_text(data[0] & 2, data + 1, size - 1);
    else
        CHECK(dp_buffer_add(&made, data + 1, size - 1));
    CHECK(!ftruncate(file, 0) && pwrite(file, made.data, made.size, 0) == (ssize_t)made.size);
    contents plain = read_file(path, 1, &in_order, 5000);
    for (int threads = 1; threads <= 2; threads++)
        check_same(&plain, read_file(path, threads, &tiny, data[0] & 4 ? 5000 : 17));
    dp_buffer_free(&plain.bytes);
    dp_buffer_free(&made);
    return 0;
}
