/* mime.h - mail messages: fields of their head, the part that is their text, and what it says in UTF-8.
 *
 * dp_mime_split -> dp_mime_field ..., dp_mime_find -> dp_mime_transfer -> dp_mime_utf8. Everything is best effort: what
 * is broken is taken as it is, and nothing is refused. Nothing is copied before dp_mime_transfer. */
#ifndef DP_MIME_H
#define DP_MIME_H

#include "base/base.h"

typedef struct dp_mime_part {
    doppel_slice head, body;
} dp_mime_part;

/* Cuts at the first empty line. */
dp_mime_part dp_mime_split(doppel_slice bytes);

/* The first field of this name, in any case: as it stands, perhaps over several lines, without white space at its ends.
 * data NULL: there is none. */
doppel_slice dp_mime_field(doppel_slice head, const char *name);

/* A part that is text; body.data NULL: there is none. */
typedef struct dp_mime_text {
    doppel_slice body, encoding;
    char charset[64]; /* empty: none is given */
} dp_mime_text;

/* The first plain text and the first page of a message that are not attachments. */
typedef struct dp_mime_content {
    dp_mime_text plain, html;
    size_t parts; /* looked at */
} dp_mime_content;

void dp_mime_find(dp_mime_part message, dp_mime_content *content);

/* Appends a body without its transfer encoding; false when there is no memory. */
bool dp_mime_transfer(doppel_slice body, doppel_slice encoding, dp_buffer *out);

typedef enum dp_mime_result {
    DP_MIME_CLEAN,
    DP_MIME_LOST,    /* some bytes became U+FFFD */
    DP_MIME_UNKNOWN, /* the charset is not known; windows-1252 was taken */
    DP_MIME_NO_MEMORY
} dp_mime_result;

/* Appends text in a charset as UTF-8. Text without a charset, or said to be ASCII or Latin-1, is UTF-8 if it is valid
 * UTF-8, else windows-1252. */
dp_mime_result dp_mime_utf8(doppel_slice text, const char *charset, dp_buffer *out);

/* Appends the text of a field as UTF-8: encoded words (RFC 2047) decoded, a space where lines or more white space were.
 * False when there is no memory. */
bool dp_mime_words(doppel_slice value, dp_buffer *out);

/* What iconv calls a charset; "UTF-8" for what needs no conversion, NULL for one that is not known. Only names of this
 * list reach iconv. */
const char *dp_mime_charset(const char *name);

#endif
