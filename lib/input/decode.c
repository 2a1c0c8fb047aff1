/* decode.c - archived HTTP bodies without their transfer and content codings: chunks, gzip, deflate, br, zstd.
 *
 * The codings are taken off from the outside in: those of the transfer, last one first, then those of the content. Each
 * step goes from one buffer of the decoder to the other. */
#include "input/decode.h"

#include <brotli/decode.h>
#include <stdlib.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

/* More codings on top of each other than anyone uses. */
#define MOST_CODINGS 8

/* Buffers above this are given back after use. */
#define KEEP ((size_t)16 << 20)

/* Bytes of a body by which text is recognised. */
#define TEXT_LOOK 512

void dp_body_decoder_free(dp_body_decoder *decoder) {
    dp_buffer_free(&decoder->bytes[0]);
    dp_buffer_free(&decoder->bytes[1]);
    if (decoder->zlib)
        inflateEnd(decoder->zlib);
    free(decoder->zlib);
    ZSTD_freeDCtx(decoder->zstd);
    decoder->zlib = NULL;
    decoder->zstd = NULL;
}

/* One step: from `in` to `out`, which is empty. */
typedef struct step {
    dp_body_decoder *decoder;
    doppel_slice in;
    dp_buffer *out;
} step;

/* Makes room for more output. */
static dp_decoded grow(const step *s) {
    size_t want = s->out->size ? s->out->size * 2 : s->in.length * 4 + 4096, most = s->decoder->limit + 1;
    if (s->out->size > s->decoder->limit)
        return DP_DECODED_TOO_LONG;
    want = want > most ? most : want;
    return dp_reserve(&s->out->data, &s->out->capacity, want, 1) ? DP_DECODED_ALL : DP_DECODED_NO_MEMORY;
}

/* Free room in the output buffer. */
static size_t room(const step *s) {
    size_t most = s->decoder->limit + 1, end = s->out->capacity < most ? s->out->capacity : most;
    size_t left = end - s->out->size;
    return left < UINT32_MAX ? left : UINT32_MAX;
}

/* The line before a chunk: its size in hex, then anything after white space or a semicolon. False: it is none. */
static bool take_chunk_size(doppel_slice *in, uint64_t *size) {
    const char *end = in->length ? memchr(in->data, '\n', in->length) : NULL, *p = in->data;
    if (!end)
        return false;
    *size = 0;
    for (int digit; (digit = dp_hex_digit(*p)) >= 0; p++) {
        if (*size >> 56)
            return false;
        *size = *size * 16 + (uint64_t)digit;
    }
    if (p == in->data || (*p != '\n' && *p != '\r' && *p != ' ' && *p != '\t' && *p != ';'))
        return false;
    in->length -= (size_t)(end + 1 - in->data);
    in->data = end + 1;
    return true;
}

static dp_decoded take_chunks(step *s) {
    doppel_slice in = s->in;
    uint64_t size;
    for (;;) {
        if (!take_chunk_size(&in, &size))
            return DP_DECODED_PART;
        if (!size)
            return DP_DECODED_ALL;
        size_t have = size < in.length ? (size_t)size : in.length;
        if (s->out->size + have > s->decoder->limit)
            return DP_DECODED_TOO_LONG;
        if (!dp_buffer_add(s->out, in.data, have))
            return DP_DECODED_NO_MEMORY;
        in.data += have;
        in.length -= have;
        if (have < size)
            return DP_DECODED_PART;
        for (int i = 0; i < 2 && in.length && (*in.data == '\r' || *in.data == '\n'); i++) {
            bool ends = *in.data == '\n';
            in.data++;
            in.length--;
            if (ends)
                break;
        }
    }
}

static bool start_zlib(dp_body_decoder *decoder, int window) {
    if (decoder->zlib)
        return inflateReset2(decoder->zlib, window) == Z_OK;
    decoder->zlib = calloc(1, sizeof *decoder->zlib);
    if (decoder->zlib && inflateInit2(decoder->zlib, window) == Z_OK)
        return true;
    free(decoder->zlib);
    decoder->zlib = NULL;
    return false;
}

static dp_decoded inflate_all(step *s, int window) {
    dp_decoded result;
    if (!start_zlib(s->decoder, window))
        return DP_DECODED_NO_MEMORY;
    z_stream *z = s->decoder->zlib;
    const Bytef *in = (const Bytef *)s->in.data, *end = in + s->in.length;
    while ((result = grow(s)) == DP_DECODED_ALL) {
        size_t before = room(s), input = (size_t)(end - in) < UINT32_MAX ? (size_t)(end - in) : UINT32_MAX;
        z->next_in = (Bytef *)(uintptr_t)in;
        z->avail_in = (uInt)input;
        z->next_out = (Bytef *)s->out->data + s->out->size;
        z->avail_out = (uInt)before;
        int done = inflate(z, Z_NO_FLUSH);
        in = z->next_in;
        s->out->size += before - z->avail_out;
        /* Members of gzip may follow each other. */
        bool again = done == Z_STREAM_END && window > 15 && end - in >= 2 && in[0] == 0x1F && in[1] == 0x8B;
        if (again)
            inflateReset(z);
        else if (done == Z_STREAM_END)
            return DP_DECODED_ALL;
        else if (done == Z_MEM_ERROR)
            return DP_DECODED_NO_MEMORY;
        else if (done != Z_OK && (done != Z_BUF_ERROR || z->avail_out))
            return DP_DECODED_PART;
        else if (in == end && z->avail_out)
            return DP_DECODED_PART;
    }
    return result;
}

static dp_decoded take_gzip(step *s) {
    return inflate_all(s, 15 + 16);
}

/* What is called deflate should have the head of zlib, but some servers leave it out. */
static dp_decoded take_deflate(step *s) {
    const uint8_t *p = (const uint8_t *)s->in.data;
    bool head = s->in.length >= 2 && (p[0] & 15) == 8 && (p[0] * 256 + p[1]) % 31 == 0;
    return inflate_all(s, head ? 15 : -15);
}

static dp_decoded take_brotli(step *s) {
    BrotliDecoderState *brotli = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    const uint8_t *in = (const uint8_t *)s->in.data;
    size_t left = s->in.length;
    dp_decoded result = brotli ? DP_DECODED_ALL : DP_DECODED_NO_MEMORY;
    BrotliDecoderResult done = BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
    while (result == DP_DECODED_ALL && done == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT) {
        if ((result = grow(s)) != DP_DECODED_ALL)
            break;
        size_t free_bytes = room(s), before = free_bytes;
        uint8_t *out = (uint8_t *)s->out->data + s->out->size;
        done = BrotliDecoderDecompressStream(brotli, &left, &in, &free_bytes, &out, NULL);
        s->out->size += before - free_bytes;
    }
    if (result == DP_DECODED_ALL && done != BROTLI_DECODER_RESULT_SUCCESS)
        result = DP_DECODED_PART;
    BrotliDecoderDestroyInstance(brotli);
    return result;
}

static dp_decoded take_zstd(step *s) {
    dp_body_decoder *decoder = s->decoder;
    if (!decoder->zstd && !(decoder->zstd = ZSTD_createDCtx()))
        return DP_DECODED_NO_MEMORY;
    ZSTD_DCtx_reset(decoder->zstd, ZSTD_reset_session_only);
    ZSTD_inBuffer in = {s->in.data, s->in.length, 0};
    dp_decoded result;
    while ((result = grow(s)) == DP_DECODED_ALL) {
        ZSTD_outBuffer out = {s->out->data + s->out->size, room(s), 0};
        size_t hint = ZSTD_decompressStream(decoder->zstd, &out, &in);
        if (ZSTD_isError(hint)) /* then out.pos says nothing: frames of old formats set it without writing anything */
            return DP_DECODED_PART;
        s->out->size += out.pos;
        if (in.pos == in.size && (!hint || out.pos < out.size))
            return hint ? DP_DECODED_PART : DP_DECODED_ALL;
    }
    return result;
}

static const struct coding {
    const char *name;
    dp_decoded (*take)(step *s);
    const char *magic; /* what it begins with, if anything */
} codings[] = {{"identity", NULL, ""},
               {"chunked", take_chunks, ""},
               {"gzip", take_gzip, "\x1F\x8B"},
               {"x-gzip", take_gzip, "\x1F\x8B"},
               {"deflate", take_deflate, ""},
               {"br", take_brotli, ""},
               {"zstd", take_zstd, "\x28\xB5\x2F\xFD"}};

static const struct coding *find_coding(doppel_slice name) {
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++)
        if (dp_slice_is(name, codings[i].name))
            return &codings[i];
    return NULL;
}

/* Whether a body begins as text does: in that many bytes, packed data has control characters. */
static bool is_text(doppel_slice body) {
    size_t look = body.length < TEXT_LOOK ? body.length : TEXT_LOOK;
    for (size_t i = 0; i < look; i++)
        if ((unsigned char)body.data[i] < ' ' && !memchr("\t\n\f\r\x1B", body.data[i], 5))
            return false;
    return true;
}

/* Takes one coding off. A body that does not begin as the coding does is unchanged, and so is text that cannot be
 * decoded; but chunks are text themselves. */
static dp_decoded take_coding(dp_body_decoder *decoder, doppel_slice name, doppel_slice *body) {
    dp_buffer *out = &decoder->bytes[body->data && body->data == decoder->bytes[0].data];
    const struct coding *coding = find_coding(name);
    if (!coding)
        return is_text(*body) ? DP_DECODED_ALL : DP_DECODED_UNKNOWN;
    size_t magic = strlen(coding->magic);
    if (!coding->take || body->length <= magic || memcmp(body->data, coding->magic, magic) != 0)
        return DP_DECODED_ALL;
    out->size = 0;
    dp_decoded result = coding->take(&(step){decoder, *body, out});
    if (out->size > decoder->limit)
        return DP_DECODED_TOO_LONG;
    if (result == DP_DECODED_PART && !magic && (!out->size || (coding->take != take_chunks && is_text(*body))))
        return DP_DECODED_ALL;
    *body = (doppel_slice){out->size ? out->data : "", out->size};
    return result;
}

/* Adds the names of a list with commas; false: too many. */
static bool add_codings(doppel_slice list, doppel_slice *names, size_t *count) {
    const char *p = list.data, *end = p ? p + list.length : NULL;
    while (p < end) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        doppel_slice name = dp_slice_trim((doppel_slice){p, (size_t)((comma ? comma : end) - p)});
        if (name.length && *count == MOST_CODINGS)
            return false;
        if (name.length)
            names[(*count)++] = name;
        p = comma ? comma + 1 : end;
    }
    return true;
}

dp_decoded dp_body_decode(dp_body_decoder *decoder, const dp_encoded_body *encoded, doppel_slice *body) {
    doppel_slice names[MOST_CODINGS];
    size_t count = 0;
    bool part = false;
    for (int i = 0; i < 2; i++)
        if (decoder->bytes[i].capacity > KEEP)
            dp_buffer_free(&decoder->bytes[i]);
    if (!add_codings(encoded->content_encoding, names, &count) ||
        !add_codings(encoded->transfer_encoding, names, &count))
        return DP_DECODED_UNKNOWN;
    *body = encoded->bytes;
    while (count) {
        dp_decoded result = take_coding(decoder, names[--count], body);
        part |= result == DP_DECODED_PART;
        if (result != DP_DECODED_ALL && result != DP_DECODED_PART)
            return result;
    }
    return part ? DP_DECODED_PART : DP_DECODED_ALL;
}
