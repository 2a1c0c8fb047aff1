/* stream.c - the bytes of one file, decompressed.
 *
 * Plain files are read straight into the caller's memory, but for the first bytes, which were looked at to tell the
 * format. Compressed ones go through `raw` (stream_codecs.c), and what comes behind the first member of a big file
 * through threads (decompress.c). */
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

/* One read of compressed bytes: more than the 128 KiB that a zstd block can have. */
#define RAW_CAPACITY ((size_t)256 << 10)

/* How often a wait for a pipe looks at the stop flag. */
#define WAIT_MS 100

void dp_stream_fail(dp_stream *stream, const char *format, ...) {
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
            dp_stream_fail(stream, "cannot read: %s", strerror(errno));
    }
    return 0;
}

bool dp_stream_fill(dp_stream *stream, size_t need) {
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

static bool open_file(dp_stream *stream, const char *path) {
    struct stat status;
    stream->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
    if (stream->fd < 0 || fstat(stream->fd, &status)) {
        dp_stream_fail(stream, "cannot open: %s", strerror(errno));
        return false;
    }
    stream->regular = S_ISREG(status.st_mode);
    stream->size = stream->regular ? (uint64_t)status.st_size : 0;
    if (!stream->raw && !(stream->raw = malloc(RAW_CAPACITY))) {
        dp_stream_fail(stream, "no memory");
        return false;
    }
    return true;
}

bool dp_stream_open(dp_stream *stream, const char *path) {
    stream->failed = stream->raw_done = stream->inside = stream->at_end = stream->alone = false;
    stream->raw_start = stream->raw_end = 0;
    stream->raw_bytes = 0;
    if (!open_file(stream, path))
        return false;
    if (!dp_stream_start_codec(stream))
        dp_stream_fail(stream, "no memory");
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

/* ---- ahead ---- */

static void end_ahead(dp_stream *stream) {
    dp_ahead_free(stream->ahead);
    stream->ahead = NULL;
    stream->piece = NULL;
}

/* At the start of a member: begins decompressing ahead, once, if what is left of the file is worth it. The first member
 * is always read alone: where it is the only one, there is nothing to gain. */
static void start_ahead(dp_stream *stream, uint64_t at) {
    const dp_ahead_sizes *sizes = stream->ahead_sizes ? stream->ahead_sizes : &dp_ahead_usual;
    dp_ahead_file file = {.fd = stream->fd,
                          .zstd = stream->format == DP_STREAM_ZSTD,
                          .from = at,
                          .size = stream->size,
                          .threads = stream->threads};
    bool from_start = lseek(stream->fd, 0, SEEK_CUR) == (off_t)stream->raw_bytes;
    if (from_start && at < stream->size && stream->size - at >= sizes->least)
        stream->ahead = dp_ahead_create(&file, sizes);
    stream->alone = !stream->ahead;
}

/* Takes the members that come next; the stream goes on behind them. */
static bool take_piece(dp_stream *stream) {
    uint64_t at = stream->raw_bytes - (stream->raw_end - stream->raw_start);
    if (!at)
        return false;
    if (!stream->ahead)
        start_ahead(stream, at);
    stream->piece = stream->ahead ? dp_ahead_take(stream->ahead, at) : NULL;
    if (!stream->piece) {
        stream->alone = stream->alone || dp_ahead_useless(stream->ahead);
        if (stream->alone)
            end_ahead(stream);
        return false;
    }
    stream->piece_used = 0;
    stream->raw_start = stream->raw_end = 0;
    stream->raw_done = false;
    stream->raw_bytes = stream->piece->end;
    if (lseek(stream->fd, (off_t)stream->raw_bytes, SEEK_SET) < 0)
        dp_stream_fail(stream, "cannot read: %s", strerror(errno));
    return !stream->failed;
}

/* Whole members from the threads, as long as they come; 0: go on alone. */
static size_t read_ahead(dp_stream *stream, char *to, size_t room) {
    while (stream->piece || take_piece(stream)) {
        const dp_buffer *out = &stream->piece->out;
        size_t got = out->size - stream->piece_used;
        if (got > room)
            got = room;
        if (got)
            memcpy(to, out->data + stream->piece_used, got);
        stream->piece_used += got;
        if (stream->piece_used == out->size)
            stream->piece = NULL;
        if (got)
            return got;
    }
    return 0;
}

size_t dp_stream_read(dp_stream *stream, char *to, size_t room) {
    size_t got = 0;
    if (stream->format == DP_STREAM_PLAIN)
        return stream->failed ? 0 : read_plain(stream, to, room);
    while (!got && !stream->failed && !stream->at_end) {
        if (stream->regular && stream->threads > 1 && !stream->inside && !stream->alone)
            got = read_ahead(stream, to, room);
        if (!got && !stream->failed)
            got = (stream->format == DP_STREAM_GZIP ? dp_stream_read_gzip : dp_stream_read_zstd)(stream, to, room);
    }
    return got;
}

void dp_stream_set_threads(dp_stream *stream, int threads) {
    stream->threads = threads;
}

void dp_stream_close(dp_stream *stream) {
    end_ahead(stream);
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

void dp_stream_free(dp_stream *stream) {
    dp_stream_close(stream);
    free(stream->raw);
    stream->raw = NULL;
    dp_stream_free_codecs(stream);
}
