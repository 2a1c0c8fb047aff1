/* mime_decode.c - transfer encodings and charsets of mail. */
#include "input/mime.h"

#include "input/json.h"
#include "input/utf8.h"

#include <errno.h>
#include <iconv.h>
#include <strings.h>

/* What stands for bytes that cannot be read. */
#define REPLACEMENT "\xEF\xBF\xBD"

/* ---- transfer encodings ---- */

/* The value of a base64 digit; -1: it is none. */
static int digit64(char c) {
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* All else than digits is passed over; padding ends a group, and another may follow. */
static bool decode_base64(doppel_slice body, dp_buffer *out) {
    uint32_t bits = 0;
    int count = 0;
    if (!dp_reserve(&out->data, &out->capacity, out->size + body.length, 1))
        return false;
    for (size_t i = 0; i < body.length; i++) {
        int digit = digit64(body.data[i]);
        if (body.data[i] == '=')
            count = 0;
        if (digit < 0)
            continue;
        bits = bits << 6 | (uint32_t)digit;
        count += 6;
        if (count >= 8) {
            count -= 8;
            out->data[out->size++] = (char)(bits >> count);
        }
    }
    return true;
}

static int digit16(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What stands at an equals sign in quoted-printable: gives how long it is, and the byte, or -1 for none. An equals sign
 * that is neither ahead of two digits nor of a line end stands for itself. */
static size_t decode_equals(const char *p, const char *end, int *byte) {
    const char *line = p + 1;
    *byte = -1;
    while (line < end && (*line == ' ' || *line == '\t' || *line == '\r'))
        line++;
    if (line == end || *line == '\n')
        return (size_t)(line - p) + (line < end);
    *byte = '=';
    if (end - p < 3 || digit16(p[1]) < 0 || digit16(p[2]) < 0)
        return 1;
    *byte = digit16(p[1]) << 4 | digit16(p[2]);
    return 3;
}

/* `underscore` is what an underscore stands for: itself, or in encoded words a space. */
static bool decode_quoted(doppel_slice body, char underscore, dp_buffer *out) {
    if (!dp_reserve(&out->data, &out->capacity, out->size + body.length, 1))
        return false;
    for (const char *p = body.data, *end = p + body.length; p < end;) {
        int byte = *p == '_' ? underscore : (unsigned char)*p;
        p += *p == '=' ? decode_equals(p, end, &byte) : 1;
        if (byte >= 0)
            out->data[out->size++] = (char)byte;
    }
    return true;
}

static bool is(doppel_slice value, const char *word) {
    size_t length = strlen(word);
    return value.length >= length && !strncasecmp(value.data, word, length);
}

bool dp_mime_transfer(doppel_slice body, doppel_slice encoding, dp_buffer *out) {
    if (is(encoding, "base64"))
        return decode_base64(body, out);
    if (is(encoding, "quoted-printable"))
        return decode_quoted(body, '_', out);
    return dp_buffer_add(out, body.data, body.length);
}

bool dp_mime_word(doppel_slice text, char encoding, dp_buffer *out) {
    return (encoding | 0x20) == 'b' ? decode_base64(text, out) : decode_quoted(text, ' ', out);
}

/* ---- charsets ---- */

/* Goes over what iconv stopped at; false when there is no memory. */
static bool step_over(char **in, size_t *left, int reason, dp_buffer *out) {
    if (reason == E2BIG)
        return dp_reserve(&out->data, &out->capacity, out->size + *left + 64, 1);
    *in += 1;
    *left = reason == EINVAL ? 0 : *left - 1; /* a character that breaks off at the end */
    return dp_buffer_add(out, REPLACEMENT, 3);
}

static dp_mime_result convert(doppel_slice text, const char *charset, dp_buffer *out) {
    iconv_t converter = iconv_open("UTF-8", charset);
    char *in = (char *)(uintptr_t)text.data;
    size_t left = text.length;
    dp_mime_result result = DP_MIME_CLEAN;
    if (converter == (iconv_t)-1)
        return errno == ENOMEM ? DP_MIME_NO_MEMORY : DP_MIME_UNKNOWN;
    if (!dp_reserve(&out->data, &out->capacity, out->size + left + left / 2 + 64, 1))
        result = DP_MIME_NO_MEMORY;
    for (bool done = result == DP_MIME_NO_MEMORY; !done;) {
        char *to = out->data + out->size;
        size_t room = out->capacity - out->size;
        bool last = !left; /* what the converter still holds */
        size_t failed = iconv(converter, last ? NULL : &in, last ? NULL : &left, &to, &room);
        int reason = failed == (size_t)-1 ? errno : 0;
        out->size = (size_t)(to - out->data);
        done = last && reason != E2BIG;
        if (reason && reason != E2BIG)
            result = DP_MIME_LOST;
        if (reason && !done && !step_over(&in, &left, reason, out)) {
            result = DP_MIME_NO_MEMORY;
            done = true;
        }
    }
    iconv_close(converter);
    return result;
}

dp_mime_result dp_mime_utf8(doppel_slice text, const char *charset, dp_buffer *out) {
    const char *known = *charset ? dp_mime_charset(charset) : "WINDOWS-1252";
    bool utf8 = known && !strcmp(known, "UTF-8"), ascii = known && !strcmp(known, "WINDOWS-1252");
    if ((utf8 || ascii || !known) && dp_json_is_utf8(text.data, text.length))
        return dp_buffer_add(out, text.data, text.length) ? known ? DP_MIME_CLEAN : DP_MIME_UNKNOWN : DP_MIME_NO_MEMORY;
    if (utf8)
        return dp_utf8_repair(text.data, text.length, out) ? DP_MIME_LOST : DP_MIME_NO_MEMORY;
    dp_mime_result result = convert(text, known ? known : "WINDOWS-1252", out);
    if (result != DP_MIME_UNKNOWN)
        return known || result == DP_MIME_NO_MEMORY ? result : DP_MIME_UNKNOWN;
    /* iconv of this system does not have it. */
    return dp_utf8_repair(text.data, text.length, out) ? DP_MIME_UNKNOWN : DP_MIME_NO_MEMORY;
}
