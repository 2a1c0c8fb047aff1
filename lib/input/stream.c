/* stream.c - the bytes of one file, decompressed.
 *
 * Plain files are read straight into the caller's memory, but for the first bytes, which were looked at to tell the
 * format. Compressed ones go through `raw`. */
#include "input/stream.h"

#include "input/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { FORMAT_PLAIN, FORMAT_GZIP, FORMAT_ZSTD };

/* One read of compressed bytes: more than the 128 KiB that a zstd block can have. */
#define RAW_CAPACITY ((size_t)256 << 10)

/* How many bytes the longest magic number has. */
#define MAGIC 4

/* How often a wait for a pipe looks at the stop flag. */
#define WAIT_MS 100

static void fail(dp_stream *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void fail(dp_stream *stream, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(stream->failure, sizeof stream->failure, format, args);
    va_end(args);
    stream->failed = true;
}

void dp_stream_init(dp_stream *stream, const volatile int *stop) {
    memset(stream, 0, sizeof *stream);
    stream->fd = -1;
    stream->stop = stop;
}

static bool stopped(const dp_stream *stream) {
    return dp_stop_asked(stream->stop);
}

bool dp_stream_ready(const dp_stream *stream) {
    struct pollfd wait = {stream->fd, POLLIN, 0};
    return stream->regular || stream->raw_start < stream->raw_end || poll(&wait, 1, 0) > 0;
}

/* Waits until a pipe has something; false when asked to stop. */
static bool wait_readable(const dp_stream *stream) {
    struct pollfd wait = {stream->fd, POLLIN, 0};
    while (!stream->regular && !stopped(stream)) {
        int ready = poll(&wait, 1, WAIT_MS);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return true;
    }
    return !stopped(stream);
}

/* Reads from the file itself; 0 at its end, and after a failure. */
static size_t read_raw(dp_stream *stream, void *to, size_t room) {
    while (!stream->failed && !stream->raw_done && wait_readable(stream)) {
        ssize_t got = read(stream->fd, to, room);
        if (got > 0) {
            stream->raw_bytes += (size_t)got;
            return (size_t)got;
        }
        if (got == 0)
            stream->raw_done = true;
        else if (errno != EINTR && errno != EAGAIN)
            fail(stream, "cannot read: %s", strerror(errno));
    }
    return 0;
}

/* Makes at least `need` bytes stand in `raw`, unless the file ends first. */
static bool fill_raw(dp_stream *stream, size_t need) {
    size_t have = stream->raw_end - stream->raw_start;
    if (have >= need)
        return true;
    memmove(stream->raw, stream->raw + stream->raw_start, have);
    stream->raw_start = 0;
    stream->raw_end = have;
    while (stream->raw_end < need) {
        size_t got = read_raw(stream, stream->raw + stream->raw_end, RAW_CAPACITY - stream->raw_end);
        if (!got)
            return false;
        stream->raw_end += got;
    }
    return true;
}

/* What every zstd frame begins with: the magic number and a byte that tells the length of its header. */
#define ZSTD_FRAME_START 5

static bool at_gzip(const dp_stream *stream) {
    const uint8_t *p = stream->raw + stream->raw_start;
    return stream->raw_end - stream->raw_start >= 2 && p[0] == 0x1F && p[1] == 0x8B;
}

/* A frame, or a frame to be skipped (0x184D2A50 to 0x184D2A5F). */
static bool at_zstd(const dp_stream *stream) {
    if (stream->raw_end - stream->raw_start < MAGIC)
        return false;
    uint32_t magic = dp_load32(stream->raw + stream->raw_start);
    return magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static bool start_gzip(dp_stream *stream) {
    stream->format = FORMAT_GZIP;
    if (stream->gzip)
        return inflateReset(stream->gzip) == Z_OK;
    /* 15: the largest window; 16: a gzip header and no other */
    stream->gzip = calloc(1, sizeof *stream->gzip);
    return stream->gzip && inflateInit2(stream->gzip, 15 + 16) == Z_OK;
}

static bool start_zstd(dp_stream *stream) {
    stream->format = FORMAT_ZSTD;
    stream->zstd_hint = ZSTD_FRAME_START;
    stream->zstd_full = false;
    if (!stream->zstd)
        stream->zstd = ZSTD_createDCtx();
    return stream->zstd && !ZSTD_isError(ZSTD_DCtx_reset(stream->zstd, ZSTD_reset_session_only));
}

static bool open_file(dp_stream *stream, const char *path) {
    struct stat status;
    stream->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
    if (stream->fd < 0 || fstat(stream->fd, &status)) {
        fail(stream, "cannot open: %s", strerror(errno));
        return false;
    }
    stream->regular = S_ISREG(status.st_mode);
    stream->size = stream->regular ? (uint64_t)status.st_size : 0;
    if (!stream->raw && !(stream->raw = malloc(RAW_CAPACITY))) {
        fail(stream, "no memory");
        return false;
    }
    return true;
}

bool dp_stream_open(dp_stream *stream, const char *path) {
    stream->failed = stream->raw_done = stream->inside = false;
    stream->raw_start = stream->raw_end = 0;
    stream->raw_bytes = 0;
    stream->format = FORMAT_PLAIN;
    if (!open_file(stream, path))
        return false;
    fill_raw(stream, MAGIC);
    bool started = true;
    if (at_gzip(stream))
        started = start_gzip(stream);
    else if (at_zstd(stream))
        started = start_zstd(stream);
    if (!started)
        fail(stream, "no memory");
    return !stream->failed;
}

static size_t read_plain(dp_stream *stream, char *to, size_t room) {
    size_t have = stream->raw_end - stream->raw_start;
    if (!have)
        return read_raw(stream, to, room);
    if (have > room)
        have = room;
    memcpy(to, stream->raw + stream->raw_start, have);
    stream->raw_start += have;
    return have;
}

/* Between two members: true when another one starts. Zeros may fill up the end of the file; nothing else may. */
static bool next_member(dp_stream *stream) {
    fill_raw(stream, 2);
    if (at_gzip(stream))
        return inflateReset(stream->gzip) == Z_OK;
    while (fill_raw(stream, 1))
        if (stream->raw[stream->raw_start++]) {
            fail(stream, "there is something else behind the gzip data");
            break;
        }
    return false;
}

static size_t read_gzip(dp_stream *stream, char *to, size_t room) {
    z_stream *z = stream->gzip;
    size_t asked = room > UINT32_MAX ? UINT32_MAX : room;
    z->next_out = (uint8_t *)to;
    z->avail_out = (uInt)asked;
    while (z->avail_out == asked) {
        if (!stream->inside && !next_member(stream))
            break;
        stream->inside = true;
        if (!fill_raw(stream, 1)) {
            if (!stream->failed && !stopped(stream))
                fail(stream, "the gzip data is cut short");
            break;
        }
        z->next_in = stream->raw + stream->raw_start;
        z->avail_in = (uInt)(stream->raw_end - stream->raw_start);
        int result = inflate(z, Z_NO_FLUSH);
        stream->raw_start = stream->raw_end - z->avail_in;
        if (result == Z_STREAM_END)
            stream->inside = false;
        else if (result != Z_OK && result != Z_BUF_ERROR) {
            fail(stream, "the gzip data is damaged: %s", z->msg ? z->msg : zError(result));
            break;
        }
    }
    return asked - z->avail_out;
}

/* How much of the input the decoder gets: never more than the rest of a block. With more it would give nothing of a
 * whole block when what stands behind it is damaged. What it asks for includes the header of the next block, 3 bytes.
 * Nothing, while it may hold output.
 */
static size_t zstd_share(const dp_stream *stream) {
    size_t have = stream->raw_end - stream->raw_start, hint = stream->zstd_hint;
    size_t share = stream->zstd_full ? 0 : hint > 3 ? hint - 3 : hint;
    return have < share ? have : share;
}

static size_t read_zstd(dp_stream *stream, char *to, size_t room) {
    ZSTD_outBuffer out = {to, room, 0};
    while (!out.pos) {
        /* What the decoder still holds of its output comes without input. */
        if (!fill_raw(stream, 1) && !stream->inside)
            break;
        ZSTD_inBuffer in = {stream->raw + stream->raw_start, zstd_share(stream), 0};
        size_t result = ZSTD_decompressStream(stream->zstd, &out, &in);
        stream->raw_start += in.pos;
        bool was_full = stream->zstd_full;
        stream->zstd_full = out.pos == out.size;
        if (ZSTD_isError(result)) {
            fail(stream, "the zstd data is damaged: %s", ZSTD_getErrorName(result));
            break;
        }
        stream->inside = result != 0;
        stream->zstd_hint = result ? result : ZSTD_FRAME_START;
        if (!out.pos && !in.pos && stream->inside && !was_full) {
            if (!stream->failed && !stopped(stream))
                fail(stream, "the zstd data is cut short");
            break;
        }
    }
    return out.pos;
}

size_t dp_stream_read(dp_stream *stream, char *to, size_t room) {
    if (stream->failed)
        return 0;
    switch (stream->format) {
    case FORMAT_GZIP: return read_gzip(stream, to, room);
    case FORMAT_ZSTD: return read_zstd(stream, to, room);
    default: return read_plain(stream, to, room);
    }
}

void dp_stream_close(dp_stream *stream) {
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

void dp_stream_free(dp_stream *stream) {
    dp_stream_close(stream);
    free(stream->raw);
    stream->raw = NULL;
    if (stream->gzip)
        inflateEnd(stream->gzip);
    free(stream->gzip);
    stream->gzip = NULL;
    ZSTD_freeDCtx(stream->zstd);
    stream->zstd = NULL;
}
