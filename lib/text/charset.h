/* charset.h - the charset of a page, and its bytes as clean UTF-8.
 *
 * dp_charset_of (which charset?), then dp_decoder_run (its text). */
#ifndef DP_CHARSET_H
#define DP_CHARSET_H

#include "base/base.h"

#include <iconv.h>

typedef struct dp_charset {
    const char *name;      /* as browsers name it */
    const char *converter; /* what iconv calls it; NULL: UTF-8, which needs none */
    size_t unit;           /* bytes to skip where they are invalid */
    const char *labels;    /* other names, in lower case, separated by spaces */
} dp_charset;

/* The charset of a page, in this order: byte-order mark (*mark is its length, else 0), the container's label (may be
 * NULL), the page's declaration, valid UTF-8, a guess, windows-1252. NULL: out of memory. */
const dp_charset *dp_charset_of(const char *bytes, size_t length, const char *carrier, size_t *mark);

/* Turns bytes into UTF-8. Zero is a new one. */
typedef struct dp_decoder {
    const dp_charset *charset; /* the charset `converter` is open for; NULL: none */
    iconv_t converter;
    dp_buffer text;
} dp_decoder;

/* The text of some bytes: valid UTF-8 without control characters other than white space. Invalid sequences become
 * U+FFFD, form feeds and vertical tabs spaces, other control characters are dropped. Borrowed from `bytes` if nothing
 * has to change, else from the decoder. Errors: DOPPEL_ERROR_MEMORY; DOPPEL_ERROR_INPUT when the system has no
 * converter for the charset. */
doppel_status dp_decoder_run(dp_decoder *decoder, const dp_charset *charset, const char *bytes, size_t length,
                             doppel_slice *text);
void dp_decoder_close(dp_decoder *decoder);

#endif
