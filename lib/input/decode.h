/* decode.h - archived HTTP bodies without their transfer and content codings. */
#ifndef DP_DECODE_H
#define DP_DECODE_H

#include "base/base.h"

#include <strings.h>

/* A body as it was archived, with the values of the fields that name its codings; data NULL: there is no such field.
 */
typedef struct dp_encoded_body {
    doppel_slice bytes, content_encoding, transfer_encoding;
} dp_encoded_body;

typedef enum dp_decoded {
    DP_DECODED_ALL,
    DP_DECODED_PART, /* it is truncated or damaged: this is the part before that */
    DP_DECODED_TOO_LONG,
    DP_DECODED_UNKNOWN, /* a coding that is not known */
    DP_DECODED_NO_MEMORY
} dp_decoded;

/* What one thread decodes with. Zero is a fresh one. */
typedef struct dp_body_decoder {
    dp_buffer bytes[2];      /* steps of decoding go from one to the other */
    struct z_stream_s *zlib; /* kept for the next body */
    struct ZSTD_DCtx_s *zstd;
    size_t limit; /* bytes that a body may come to */
} dp_body_decoder;

void dp_body_decoder_free(dp_body_decoder *decoder);

/* The body without chunks (Transfer-Encoding) and without gzip, deflate, br and zstd (both). A body that does not begin
 * as its coding does was decoded before it was archived, as is common: it is given unchanged. So is text with an
 * unknown coding, as names of charsets and the like are found there. `body` is borrowed from the response or the
 * decoder. */
dp_decoded dp_body_decode(dp_body_decoder *decoder, const dp_encoded_body *encoded, doppel_slice *body);

/* ---- slices ---- */

static inline bool dp_is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Without the white space at both ends. */
static inline doppel_slice dp_slice_trim(doppel_slice slice) {
    while (slice.length && dp_is_space(*slice.data)) {
        slice.data++;
        slice.length--;
    }
    while (slice.length && dp_is_space(slice.data[slice.length - 1]))
        slice.length--;
    return slice;
}

/* Whether the bytes are this word, in letters of any case. */
static inline bool dp_slice_is(doppel_slice slice, const char *word) {
    return slice.length == strlen(word) && !strncasecmp(slice.data, word, slice.length);
}

#endif
