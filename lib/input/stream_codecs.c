/* stream_codecs.c - gzip and zstd of a stream, decompressed in order. */
#include "input/stream.h"

#include "input/input.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

/* What every zstd frame begins with: the magic number and a byte that tells the length of its header. */
#define ZSTD_FRAME_START 5

static bool at_gzip(const dp_stream *stream) {
    const uint8_t *p = stream->raw + stream->raw_start;
    return stream->raw_end - stream->raw_start >= 2 && p[0] == 0x1F && p[1] == 0x8B;
}

/* A frame, or a frame to be skipped (0x184D2A50 to 0x184D2A5F). */
static bool at_zstd(const dp_stream *stream) {
    if (stream->raw_end - stream->raw_start < sizeof(uint32_t))
        return false;
    uint32_t magic = dp_load32(stream->raw + stream->raw_start);
    return magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static bool start_gzip(dp_stream *stream) {
    stream->format = DP_STREAM_GZIP;
    if (stream->gzip)
        return inflateReset(stream->gzip) == Z_OK;
    /* 15: the largest window; 16: a gzip header and no other */
    stream->gzip = calloc(1, sizeof *stream->gzip);
    return stream->gzip && inflateInit2(stream->gzip, 15 + 16) == Z_OK;
}

static bool start_zstd(dp_stream *stream) {
    stream->format = DP_STREAM_ZSTD;
    stream->zstd_hint = ZSTD_FRAME_START;
    if (!stream->zstd)
        stream->zstd = ZSTD_createDCtx();
    return stream->zstd && !ZSTD_isError(ZSTD_DCtx_reset(stream->zstd, ZSTD_reset_session_only));
}

bool dp_stream_start_codec(dp_stream *stream) {
    dp_stream_fill(stream, sizeof(uint32_t));
    stream->format = DP_STREAM_PLAIN;
    stream->full = false;
    if (at_gzip(stream))
        return start_gzip(stream);
    return !at_zstd(stream) || start_zstd(stream);
}

void dp_stream_free_codecs(dp_stream *stream) {
    if (stream->gzip)
        inflateEnd(stream->gzip);
    free(stream->gzip);
    stream->gzip = NULL;
    ZSTD_freeDCtx(stream->zstd);
    stream->zstd = NULL;
}

/* Between two members: true when another one starts. Zeros may fill up the end of the file; nothing else may. */
static bool next_member(dp_stream *stream) {
    dp_stream_fill(stream, 2);
    if (at_gzip(stream))
        return inflateReset(stream->gzip) == Z_OK;
    while (dp_stream_fill(stream, 1))
        if (stream->raw[stream->raw_start++]) {
            dp_stream_fail(stream, "there is something else behind the gzip data");
            break;
        }
    return false;
}

/* The end, which is too early within a member. */
static size_t end(dp_stream *stream, const char *format) {
    if (stream->inside && !stream->failed && !dp_stop_asked(stream->stop))
        dp_stream_fail(stream, "the %s data is cut short", format);
    stream->at_end = true;
    return 0;
}

size_t dp_stream_read_gzip(dp_stream *stream, char *to, size_t room) {
    z_stream *z = stream->gzip;
    size_t asked = room > UINT32_MAX ? UINT32_MAX : room;
    if (!stream->inside && !next_member(stream))
        return end(stream, "gzip");
    stream->inside = true;
    /* What the decoder still holds of its output comes without input. */
    if (!dp_stream_fill(stream, 1) && !stream->full)
        return end(stream, "gzip");
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
        dp_stream_fail(stream, "the gzip data is damaged: %s", z->msg ? z->msg : zError(result));
    return asked - z->avail_out;
}

/* How much of the input the decoder gets: never more than the rest of a block. With more it would give nothing of a
 * whole block when what stands behind it is damaged. What it asks for includes the header of the next block, 3 bytes.
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

size_t dp_stream_read_zstd(dp_stream *stream, char *to, size_t room) {
    ZSTD_outBuffer out = {to, room, 0};
    /* What the decoder still holds of its output comes without input. */
    if (!dp_stream_fill(stream, 1) && !stream->inside)
        return end(stream, "zstd");
    ZSTD_inBuffer in = {stream->raw + stream->raw_start, zstd_share(stream), 0};
    size_t result = ZSTD_decompressStream(stream->zstd, &out, &in);
    stream->raw_start += in.pos;
    bool was_full = stream->full;
    stream->full = out.pos == out.size;
    if (ZSTD_isError(result)) {
        dp_stream_fail(stream, "the zstd data is damaged: %s", zstd_reason(result));
        return out.pos;
    }
    stream->inside = result != 0;
    stream->zstd_hint = result ? result : ZSTD_FRAME_START;
    return out.pos || in.pos || !stream->inside || was_full ? out.pos : end(stream, "zstd");
}
