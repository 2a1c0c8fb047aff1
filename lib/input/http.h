/* http.h - a response of HTTP as it was archived: its head, and its body without what wrapped it on the way. */
#ifndef DP_HTTP_H
#define DP_HTTP_H

#include "base/base.h"

typedef struct dp_http {
    int status;          /* e.g. 200 */
    doppel_slice fields; /* the lines of the head behind the first */
    doppel_slice body;   /* as it stands */
} dp_http;

/* Takes a response apart, all borrowed; false when it has no status line. */
bool dp_http_parse(const char *bytes, size_t length, dp_http *http);

/* The value of a field, by lines of `Name: value`, names in any case; data NULL: it is not there. The first counts. */
doppel_slice dp_http_field(doppel_slice fields, const char *name);

/* A value up to its first ; without white space at its ends. */
doppel_slice dp_http_media_type(doppel_slice value);
/* The value of the parameter `charset` of a media type, without quotes; data NULL: none. */
doppel_slice dp_http_charset(doppel_slice value);

/* Whether the bytes are this word, in letters of any case. */
bool dp_slice_is(doppel_slice slice, const char *word);
doppel_slice dp_slice_trim(doppel_slice slice);

/* ---- bodies ---- */

typedef enum dp_decoded {
    DP_DECODED_ALL,
    DP_DECODED_PART, /* it breaks off or is damaged: this is what comes before that */
    DP_DECODED_TOO_LONG,
    DP_DECODED_UNKNOWN, /* a coding that is not known */
    DP_DECODED_NO_MEMORY
} dp_decoded;

/* What one thread decodes with. Zero is a fresh one. */
typedef struct dp_http_decoder {
    dp_buffer bytes[2];      /* steps of decoding go from one to the other */
    struct z_stream_s *zlib; /* kept for the next body */
    struct ZSTD_DCtx_s *zstd;
    size_t limit; /* bytes that a body may come to */
} dp_http_decoder;

void dp_http_decoder_free(dp_http_decoder *decoder);

/* The body without chunks (Transfer-Encoding) and without gzip, deflate, br and zstd (both). A body that does not begin
 * as its coding does was unwrapped before it was archived, as is common: it is given as it stands. So is text with a
 * coding that is not known, as names of charsets and the like are found there. `body` is borrowed from the response or
 * the decoder. */
dp_decoded dp_http_decode(dp_http_decoder *decoder, const dp_http *http, doppel_slice *body);

#endif
