/* bodies.c - the body of a request, decompressed as it arrives. */
#include "server/bodies.h"

#include <bzlib.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum {
    ROOM = 1 << 16,
    ANY_RATIO = 1 << 20, /* bytes that may come out at any ratio: small repetitive bodies do no harm */
    GZIP_ONLY = 16 + MAX_WBITS,
    WINDOW_LOG = 23,      /* 8 MiB at most for a zstd window, as RFC 8878 asks a server to allow */
    XZ_MEMORY = 66 << 20, /* bytes that a decoder of xz -9 takes, 64 MiB for its window, with a little to spare */
};

body_coding body_coding_of(const char *name) {
    if (!name || !strcasecmp(name, "identity"))
        return CODING_PLAIN;
    if (!strcasecmp(name, "gzip") || !strcasecmp(name, "x-gzip"))
        return CODING_GZIP;
    return strcasecmp(name, "zstd") != 0 ? CODING_UNKNOWN : CODING_ZSTD;
}

body_coding body_coding_at(const char *bytes, size_t length) {
    static const char skippable[] = "\x2a\x4d\x18"; /* after a byte of 0x50 to 0x5F */
    if (length >= 2 && !memcmp(bytes, "\x1f\x8b", 2))
        return CODING_GZIP;
    if (length >= 4 && (!memcmp(bytes, "\x28\xb5\x2f\xfd", 4) ||
                        (((unsigned char)*bytes & 0xF0) == 0x50 && !memcmp(bytes + 1, skippable, 3))))
        return CODING_ZSTD;
    if (length >= 6 && !memcmp(bytes, "\xfd\x37zXZ", 6))
        return CODING_XZ;
    bool bzip2 =
        length >= BODY_BEGINNING && !memcmp(bytes, "BZh", 3) &&
        (!memcmp(bytes + 4, "\x31\x41\x59\x26\x53\x59", 6) || !memcmp(bytes + 4, "\x17\x72\x45\x38\x50\x90", 6));
    return bzip2 ? CODING_BZIP2 : CODING_PLAIN;
}

uint64_t body_most_unpacked(uint64_t packed, uint64_t max_ratio) {
    if (!max_ratio || packed > (UINT64_MAX - ANY_RATIO) / max_ratio)
        return UINT64_MAX;
    return ANY_RATIO + max_ratio * packed;
}

static void *gzip_create(void) {
    z_stream *stream = calloc(1, sizeof *stream);
    if (stream && inflateInit2(stream, GZIP_ONLY) != Z_OK) {
        free(stream);
        return NULL;
    }
    return stream;
}

static void *zstd_create(void) {
    ZSTD_DStream *stream = ZSTD_createDStream();
    if (stream)
        ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, WINDOW_LOG);
    return stream;
}

static void *bzip2_create(void) {
    bz_stream *stream = calloc(1, sizeof *stream);
    if (stream && BZ2_bzDecompressInit(stream, 0, 0) != BZ_OK) {
        free(stream);
        return NULL;
    }
    return stream;
}

static void *xz_create(void) {
    lzma_stream *stream = calloc(1, sizeof *stream);
    if (stream && lzma_stream_decoder(stream, XZ_MEMORY, LZMA_CONCATENATED) != LZMA_OK) {
        free(stream);
        return NULL;
    }
    return stream;
}

body_result body_begin(body *b, body_coding coding) {
    static void *(*const create[])(void) = {[CODING_GZIP] = gzip_create,
                                            [CODING_ZSTD] = zstd_create,
                                            [CODING_BZIP2] = bzip2_create,
                                            [CODING_XZ] = xz_create};
    *b = (body){.coding = coding};
    if (coding == CODING_PLAIN)
        return BODY_FINE;
    b->room = malloc(ROOM);
    b->state = create[coding]();
    return b->room && b->state ? BODY_FINE : BODY_NO_MEMORY;
}

void body_free(body *b) {
    if (b->state && b->coding == CODING_ZSTD) {
        ZSTD_freeDStream(b->state);
    } else if (b->state) {
        if (b->coding == CODING_GZIP)
            inflateEnd(b->state);
        else if (b->coding == CODING_BZIP2)
            BZ2_bzDecompressEnd(b->state);
        else
            lzma_end(b->state);
        free(b->state);
    }
    free(b->room);
    *b = (body){0};
}

/* One step: decompresses from *bytes into b->room; *out is the number of bytes in it. */
static body_result gzip_step(body *b, const char **bytes, size_t *length, size_t *out) {
    z_stream *stream = b->state;
    if (b->ended && inflateReset(stream) != Z_OK) /* the next member */
        return BODY_BROKEN;
    b->ended = false;
    stream->next_in = (z_const Bytef *)*bytes;
    stream->avail_in = (uInt)*length;
    stream->next_out = (Bytef *)b->room;
    stream->avail_out = ROOM;
    int code = inflate(stream, Z_NO_FLUSH);
    *bytes = (const char *)stream->next_in;
    *length = stream->avail_in;
    *out = ROOM - stream->avail_out;
    b->ended = code == Z_STREAM_END;
    if (code == Z_MEM_ERROR)
        return BODY_NO_MEMORY;
    return code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR ? BODY_FINE : BODY_BROKEN;
}

static body_result zstd_step(body *b, const char **bytes, size_t *length, size_t *out) {
    ZSTD_inBuffer in = {*bytes, *length, 0};
    ZSTD_outBuffer to = {b->room, ROOM, 0};
    size_t code = ZSTD_decompressStream(b->state, &to, &in);
    *bytes += in.pos;
    *length -= in.pos;
    *out = to.pos;
    b->ended = !code;
    if (!ZSTD_isError(code))
        return BODY_FINE;
    return ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge ? BODY_LARGE_WINDOW : BODY_BROKEN;
}

static body_result bzip2_step(body *b, const char **bytes, size_t *length, size_t *out) {
    bz_stream *stream = b->state;
    if (b->ended) { /* the next stream */
        BZ2_bzDecompressEnd(stream);
        *stream = (bz_stream){0};
        if (BZ2_bzDecompressInit(stream, 0, 0) != BZ_OK)
            return BODY_NO_MEMORY;
    }
    b->ended = false;
    stream->next_in = (char *)(uintptr_t)*bytes;
    stream->avail_in = (unsigned)*length;
    stream->next_out = b->room;
    stream->avail_out = ROOM;
    int code = BZ2_bzDecompress(stream);
    *bytes += *length - stream->avail_in;
    *length = stream->avail_in;
    *out = ROOM - stream->avail_out;
    b->ended = code == BZ_STREAM_END;
    if (code == BZ_MEM_ERROR)
        return BODY_NO_MEMORY;
    return code == BZ_OK || code == BZ_STREAM_END ? BODY_FINE : BODY_BROKEN;
}

/* The decoder continues from one stream to the next; body_whole passes it the end of the last one. */
static body_result xz_step(body *b, const char **bytes, size_t *length, size_t *out) {
    lzma_stream *stream = b->state;
    stream->next_in = (const uint8_t *)*bytes;
    stream->avail_in = *length;
    stream->next_out = (uint8_t *)b->room;
    stream->avail_out = ROOM;
    lzma_ret code = lzma_code(stream, LZMA_RUN);
    *bytes += *length - stream->avail_in;
    *length = stream->avail_in;
    *out = ROOM - stream->avail_out;
    if (code == LZMA_MEMLIMIT_ERROR)
        return BODY_LARGE_WINDOW;
    if (code == LZMA_MEM_ERROR)
        return BODY_NO_MEMORY;
    return code == LZMA_OK || code == LZMA_BUF_ERROR ? BODY_FINE : BODY_BROKEN;
}

body_result body_add(body *b, const char *bytes, size_t length,
                     bool (*take)(void *user, const char *bytes, size_t length), void *user) {
    static body_result (*const step[])(body *, const char **, size_t *, size_t *) = {
        [CODING_GZIP] = gzip_step, [CODING_ZSTD] = zstd_step, [CODING_BZIP2] = bzip2_step, [CODING_XZ] = xz_step};
    size_t out = 0;
    b->started = b->started || length;
    if (b->coding == CODING_PLAIN)
        return take(user, bytes, length) ? BODY_FINE : BODY_STOPPED;
    /* The output may fill the buffer exactly, with more to come although all input is taken. */
    while (length || out == ROOM) {
        size_t before = length;
        body_result result = step[b->coding](b, &bytes, &length, &out);
        if (result != BODY_FINE)
            return result;
        b->packed += before - length;
        b->unpacked += out;
        if (b->unpacked > body_most_unpacked(b->packed, b->max_ratio))
            return BODY_TOO_DENSE;
        if (out && !take(user, b->room, out))
            return BODY_STOPPED;
    }
    return BODY_FINE;
}

static bool xz_whole(body *b) {
    lzma_stream *stream = b->state;
    stream->next_in = NULL;
    stream->avail_in = 0;
    stream->next_out = (uint8_t *)b->room;
    stream->avail_out = ROOM;
    return lzma_code(stream, LZMA_FINISH) == LZMA_STREAM_END;
}

bool body_whole(body *b) {
    if (b->coding == CODING_PLAIN || !b->started)
        return true;
    return b->coding == CODING_XZ ? xz_whole(b) : b->ended;
}
