/* stream.c - the bytes of one file, decompressed.
 *
 * Plain files are read straight into the caller's memory, but for the first bytes, which were read to detect the
 * format. Compressed ones go through `raw` and one of `codecs`, and what comes after the first member of a big file
 * through threads (ahead.c). */
#include "input/stream.h"

#include <bzlib.h>
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

/* ---- the file ---- */

/* One read of compressed bytes: more than the 128 KiB that a zstd block can have. */
#define RAW_CAPACITY ((size_t)256 << 10)

/* How often a wait for a pipe looks at the stop flag. */
#define WAIT_MS 100

__attribute__((format(printf, 2, 3))) static void fail(dp_stream *stream, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(stream->failure, sizeof stream->failure, format, args);
    va_end(args);
    stream->failed = true;
}

/* Waits until a pipe has something; false when asked to stop. */
static bool wait_readable(const dp_stream *stream) {
    struct pollfd wait = {stream->fd, POLLIN, 0};
    while (!stream->regular && !dp_stopped(stream->stop)) {
        int ready = poll(&wait, 1, WAIT_MS);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return true;
    }
    return !dp_stopped(stream->stop);
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

/* Fills `raw` to at least `need` bytes; false when the file ends first. */
static bool fill(dp_stream *stream, size_t need) {
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

/* ---- compressed data, in order ---- */

/* A way to compress. What it keeps from one file to the next is in the stream. */
typedef struct dp_codec {
    const char *name;
    bool (*at)(dp_stream *stream);    /* whether its data begins here; 4 bytes are in `raw`, if the file has them */
    bool (*start)(dp_stream *stream); /* prepares for a file; false when there is no memory */
    /* One step. Gives what it decompressed: it may be nothing though more is to come, unless `at_end` or `failed`. */
    size_t (*read)(dp_stream *stream, char *to, size_t room);
    void (*free)(dp_stream *stream); /* what was never started is fine */
} dp_codec;

/* The data has ended: zeros may fill up the end of the file, nothing else may. */
static bool pass_zeros(dp_stream *stream) {
    while (fill(stream, 1))
        if (stream->raw[stream->raw_start++]) {
            fail(stream, "unexpected bytes after the %s data", stream->codec->name);
            break;
        }
    return false;
}

/* The end, which is too early within a member. */
static size_t end(dp_stream *stream) {
    if (stream->inside && !stream->failed && !dp_stopped(stream->stop))
        fail(stream, "the %s data is cut short", stream->codec->name);
    stream->at_end = true;
    return 0;
}

/* ---- gzip ---- */

static bool at_gzip(dp_stream *stream) {
    const uint8_t *p = stream->raw + stream->raw_start;
    return stream->raw_end - stream->raw_start >= 2 && p[0] == 0x1F && p[1] == 0x8B;
}

static bool start_gzip(dp_stream *stream) {
    if (stream->gzip)
        return inflateReset(stream->gzip) == Z_OK;
    /* 15: the largest window; 16: a gzip header and no other */
    stream->gzip = calloc(1, sizeof *stream->gzip);
    return stream->gzip && inflateInit2(stream->gzip, 15 + 16) == Z_OK;
}

static void free_gzip(dp_stream *stream) {
    if (stream->gzip)
        inflateEnd(stream->gzip);
    free(stream->gzip);
    stream->gzip = NULL;
}

/* Between two members: true when another one starts. */
static bool next_gzip(dp_stream *stream) {
    fill(stream, 2);
    return at_gzip(stream) ? inflateReset(stream->gzip) == Z_OK : pass_zeros(stream);
}

static size_t read_gzip(dp_stream *stream, char *to, size_t room) {
    z_stream *z = stream->gzip;
    size_t asked = room > UINT32_MAX ? UINT32_MAX : room;
    if (!stream->inside && !next_gzip(stream))
        return end(stream);
    stream->inside = true;
    /* What the decoder still holds of its output comes without input. */
    if (!fill(stream, 1) && !stream->full)
        return end(stream);
    z->next_in = stream->raw + stream->raw_start;
    z->avail_in = (uInt)(stream->raw_end - stream->raw_start);
    z->next_out = (uint8_t *)to;
    z->avail_out = (uInt)asked;
    int result = inflate(z, Z_NO_FLUSH);
    stream->raw_start = stream->raw_end - z->avail_in;
    stream->full = !z->avail_out;
    if (result == Z_STREAM_END)
        stream->inside = false;
    else if (result != Z_OK && result != Z_BUF_ERROR)
        fail(stream, "the gzip data is damaged: %s", z->msg ? z->msg : zError(result));
    return asked - z->avail_out;
}

static const dp_codec gzip = {"gzip", at_gzip, start_gzip, read_gzip, free_gzip};

/* ---- zstd ---- */

/* What every zstd frame begins with: the magic number and a byte that gives the length of its header. */
#define ZSTD_FRAME_START 5

/* A frame, or a frame to be skipped (0x184D2A50 to 0x184D2A5F). */
static bool at_zstd(dp_stream *stream) {
    if (stream->raw_end - stream->raw_start < sizeof(uint32_t))
        return false;
    uint32_t magic = dp_load32(stream->raw + stream->raw_start);
    return magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static bool start_zstd(dp_stream *stream) {
    stream->zstd_hint = ZSTD_FRAME_START;
    if (!stream->zstd)
        stream->zstd = ZSTD_createDCtx();
    return stream->zstd && !ZSTD_isError(ZSTD_DCtx_reset(stream->zstd, ZSTD_reset_session_only));
}

static void free_zstd(dp_stream *stream) {
    ZSTD_freeDCtx(stream->zstd);
    stream->zstd = NULL;
}

/* How much of the input the decoder gets: never more than the rest of a block. With more it would give nothing of a
 * whole block when what stands after it is damaged. What it asks for includes the header of the next block, 3 bytes.
 * Nothing, while it may hold output.
 */
static size_t zstd_share(const dp_stream *stream) {
    size_t have = stream->raw_end - stream->raw_start, hint = stream->zstd_hint;
    size_t share = stream->full ? 0 : hint > 3 ? hint - 3 : hint;
    return have < share ? have : share;
}

/* The decoder makes its own room, by what the head of a frame says and by what it has from frames before. A block that
 * does not fit is damaged, as is one that fits but is longer than its frame: which of the two is found must not matter.
 */
static const char *zstd_reason(size_t result) {
    bool no_room = ZSTD_getErrorCode(result) == ZSTD_error_dstSize_tooSmall;
    return ZSTD_getErrorString(no_room ? ZSTD_error_corruption_detected : ZSTD_getErrorCode(result));
}

static size_t read_zstd(dp_stream *stream, char *to, size_t room) {
    ZSTD_outBuffer out = {to, room, 0};
    /* What the decoder still holds of its output comes without input. */
    if (!fill(stream, 1) && !stream->inside)
        return end(stream);
    ZSTD_inBuffer in = {stream->raw + stream->raw_start, zstd_share(stream), 0};
    size_t result = ZSTD_decompressStream(stream->zstd, &out, &in);
    stream->raw_start += in.pos;
    bool was_full = stream->full;
    stream->full = out.pos == out.size;
    if (ZSTD_isError(result)) { /* then out.pos says nothing: frames of old formats set it without writing anything */
        fail(stream, "the zstd data is damaged: %s", zstd_reason(result));
        return 0;
    }
    stream->inside = result != 0;
    stream->zstd_hint = result ? result : ZSTD_FRAME_START;
    return out.pos || in.pos || !stream->inside || was_full ? out.pos : end(stream);
}

static const dp_codec zstd = {"zstd", at_zstd, start_zstd, read_zstd, free_zstd};

/* ---- bzip2 ---- */

/* "BZh", the size of blocks, and then a block or the end of the data: text does not begin so. */
static bool at_bzip2(dp_stream *stream) {
    static const uint8_t block[] = {0x31, 0x41, 0x59, 0x26, 0x53, 0x59}, end[] = {0x17, 0x72, 0x45, 0x38, 0x50, 0x90};
    const uint8_t *p = stream->raw + stream->raw_start;
    if (stream->raw_end - stream->raw_start < 3 || memcmp(p, "BZh", 3) || !fill(stream, 4 + sizeof block))
        return false;
    p = stream->raw + stream->raw_start;
    return p[3] >= '1' && p[3] <= '9' && (!memcmp(p + 4, block, sizeof block) || !memcmp(p + 4, end, sizeof end));
}

static void free_bzip2(dp_stream *stream) {
    if (stream->bzip2)
        BZ2_bzDecompressEnd(stream->bzip2);
    free(stream->bzip2);
    stream->bzip2 = NULL;
}

/* Its decoder cannot be reset: a new one is made. */
static bool start_bzip2(dp_stream *stream) {
    free_bzip2(stream);
    stream->bzip2 = calloc(1, sizeof(bz_stream));
    return stream->bzip2 && BZ2_bzDecompressInit(stream->bzip2, 0, 0) == BZ_OK;
}

/* Between two streams: true if another one starts. The first was started when the file was opened. */
static bool next_bzip2(dp_stream *stream) {
    bz_stream *z = stream->bzip2;
    if (!z->total_in_lo32 && !z->total_in_hi32)
        return true;
    fill(stream, 3);
    if (!at_bzip2(stream))
        return pass_zeros(stream);
    if (!start_bzip2(stream))
        fail(stream, "no memory");
    return !stream->failed;
}

static size_t read_bzip2(dp_stream *stream, char *to, size_t room) {
    size_t asked = room > UINT32_MAX ? UINT32_MAX : room;
    if (!stream->inside && !next_bzip2(stream))
        return end(stream);
    stream->inside = true;
    if (!fill(stream, 1) && !stream->full)
        return end(stream);
    bz_stream *z = stream->bzip2;
    z->next_in = (char *)stream->raw + stream->raw_start;
    z->avail_in = (unsigned)(stream->raw_end - stream->raw_start);
    z->next_out = to;
    z->avail_out = (unsigned)asked;
    int result = BZ2_bzDecompress(z);
    stream->raw_start = stream->raw_end - z->avail_in;
    stream->full = !z->avail_out;
    if (result == BZ_STREAM_END)
        stream->inside = false;
    else if (result == BZ_MEM_ERROR)
        fail(stream, "no memory");
    else if (result != BZ_OK)
        fail(stream, "the bzip2 data is damaged");
    return asked - z->avail_out;
}

static const dp_codec bzip2 = {"bzip2", at_bzip2, start_bzip2, read_bzip2, free_bzip2};

/* ---- xz ---- */

static bool at_xz(dp_stream *stream) {
    static const uint8_t magic[] = {0xFD, '7', 'z', 'X', 'Z', 0};
    return stream->raw_end - stream->raw_start >= 4 && !memcmp(stream->raw + stream->raw_start, magic, 4) &&
           fill(stream, sizeof magic) && !memcmp(stream->raw + stream->raw_start, magic, sizeof magic);
}

/* Memory of the decoder: a dictionary of 128 MiB, as windows of zstd have it, and what comes with it. xz -9 needs half
 * of that; headers can ask for 4 GiB. */
#define XZ_MEMORY ((uint64_t)192 << 20)

static bool start_xz(dp_stream *stream) {
    if (!stream->xz && !(stream->xz = calloc(1, sizeof(lzma_stream))))
        return false;
    return lzma_stream_decoder(stream->xz, XZ_MEMORY, LZMA_CONCATENATED) == LZMA_OK;
}

static void free_xz(dp_stream *stream) {
    if (stream->xz)
        lzma_end(stream->xz);
    free(stream->xz);
    stream->xz = NULL;
}

static const char *xz_reason(lzma_ret result) {
    switch (result) {
    case LZMA_MEM_ERROR: return "no memory";
    case LZMA_MEMLIMIT_ERROR: return "the xz data needs more than 192 MiB of memory to be decompressed";
    case LZMA_OPTIONS_ERROR: return "the xz data uses a filter that is not supported";
    default: return "the xz data is damaged";
    }
}

/* The decoder continues from stream to stream, and over the padding between them, by itself. */
static size_t read_xz(dp_stream *stream, char *to, size_t room) {
    lzma_stream *z = stream->xz;
    stream->inside = true;
    bool more = fill(stream, 1);
    if (stream->failed || dp_stopped(stream->stop))
        return end(stream);
    z->next_in = stream->raw + stream->raw_start;
    z->avail_in = stream->raw_end - stream->raw_start;
    z->next_out = (uint8_t *)to;
    z->avail_out = room;
    lzma_ret result = lzma_code(z, more ? LZMA_RUN : LZMA_FINISH);
    stream->raw_start = stream->raw_end - z->avail_in;
    if (result == LZMA_STREAM_END) {
        stream->inside = false;
        stream->at_end = true;
    } else if (result == LZMA_BUF_ERROR && !more) {
        end(stream);
    } else if (result != LZMA_OK && result != LZMA_BUF_ERROR) {
        fail(stream, "%s", xz_reason(result));
    }
    return room - z->avail_out;
}

static const dp_codec xz = {"xz", at_xz, start_xz, read_xz, free_xz};

/* ---- which of them ---- */

static const dp_codec *const codecs[] = {&gzip, &zstd, &bzip2, &xz};

enum { CODECS = sizeof codecs / sizeof *codecs };

/* Recognises compressed data by its first bytes and prepares for it; false when there is no memory. */
static bool start_codec(dp_stream *stream) {
    fill(stream, sizeof(uint32_t));
    stream->codec = NULL;
    stream->full = false;
    for (size_t i = 0; i < CODECS && !stream->codec; i++)
        if (codecs[i]->at(stream))
            stream->codec = codecs[i];
    return !stream->codec || stream->codec->start(stream);
}

/* ---- members from the threads ---- */

static void end_ahead(dp_stream *stream) {
    dp_ahead_free(stream->ahead);
    stream->ahead = NULL;
    stream->piece = NULL;
}

/* At the start of a member: begins decompressing ahead, once, if what is left of the file is worth it. The first member
 * is always read alone: where it is the only one, there is nothing to gain. */
static void start_ahead(dp_stream *stream, uint64_t at) {
    dp_ahead_file file = {
        .fd = stream->fd, .zstd = stream->codec == &zstd, .from = at, .size = stream->size, .threads = stream->threads};
    bool from_start = lseek(stream->fd, 0, SEEK_CUR) == (off_t)stream->raw_bytes;
    if (from_start)
        stream->ahead = dp_ahead_create(&file, stream->ahead_sizes);
    stream->alone = !stream->ahead;
}

/* Takes the members that come next; the stream continues after them. */
static bool take_piece(dp_stream *stream) {
    uint64_t at = stream->raw_bytes - (stream->raw_end - stream->raw_start);
    if (!at)
        return false;
    if (!stream->ahead)
        start_ahead(stream, at);
    stream->piece = stream->ahead ? dp_ahead_take(stream->ahead, at) : NULL;
    if (!stream->piece) {
        stream->alone = stream->alone || dp_ahead_is_useless(stream->ahead);
        if (stream->alone)
            end_ahead(stream);
        return false;
    }
    stream->piece_used = 0;
    stream->raw_start = stream->raw_end = 0;
    stream->raw_done = false;
    stream->raw_bytes = stream->piece->end;
    if (lseek(stream->fd, (off_t)stream->raw_bytes, SEEK_SET) < 0)
        fail(stream, "cannot read: %s", strerror(errno));
    return !stream->failed;
}

/* Whether reading whole members pays off: with one thread, for gzip only. */
static bool may_read_ahead(const dp_stream *stream) {
    bool worth = stream->codec == &gzip || (stream->codec == &zstd && stream->threads > 1);
    return stream->regular && worth && !stream->inside && !stream->alone;
}

/* Whole members from the threads, as long as there are any; 0: continue without them. */
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

/* ---- the calls ---- */

static bool open_file(dp_stream *stream, const char *path) {
    struct stat status;
    stream->named = strcmp(path, "-") != 0;
    stream->fd = stream->named ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
    if (stream->fd < 0 || fstat(stream->fd, &status)) {
        fail(stream, "cannot open: %s", strerror(errno));
        return false;
    }
    stream->regular = S_ISREG(status.st_mode);
    stream->size = stream->regular ? (uint64_t)status.st_size : 0;
    stream->changed = status.st_mtim.tv_sec * 1000000000LL + status.st_mtim.tv_nsec;
    if (!stream->raw && !(stream->raw = malloc(RAW_CAPACITY))) {
        fail(stream, "no memory");
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
    if (!start_codec(stream))
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

bool dp_stream_ready(const dp_stream *stream) {
    struct pollfd wait = {stream->fd, POLLIN, 0};
    return stream->regular || stream->raw_start < stream->raw_end || poll(&wait, 1, 0) > 0;
}

size_t dp_stream_read(dp_stream *stream, char *to, size_t room) {
    size_t got = 0;
    if (!stream->codec)
        return stream->failed ? 0 : read_plain(stream, to, room);
    while (!got && !stream->failed && !stream->at_end) {
        if (may_read_ahead(stream))
            got = read_ahead(stream, to, room);
        if (!got && !stream->failed)
            got = stream->codec->read(stream, to, room);
    }
    return got;
}

bool dp_stream_has_positions(const dp_stream *stream) {
    return stream->regular && stream->named && !stream->codec;
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
    for (size_t i = 0; i < CODECS; i++)
        codecs[i]->free(stream);
}
