/* charset_decode.c - bytes of any charset to clean UTF-8.
 *
 * Most pages are clean UTF-8 already: one look at all bytes says so, and they are used where they are. */
#include "text/charset.h"
#include "text/utf8.h"

#include <errno.h>

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Control characters that stand for nothing in a page; tab, line feed and carriage return do. */
static inline bool is_control(uint8_t c) {
    return c < 0x20 && c != '\t' && c != '\n' && c != '\r';
}

typedef struct kinds {
    uint8_t high, control; /* not 0: there are bytes above 127; control characters */
} kinds;

/* One loop without branches, which compilers turn into vectors. */
static kinds kinds_of(const char *bytes, size_t length) {
    const uint8_t *p = (const uint8_t *)bytes;
    kinds found = {0, 0};
    for (size_t i = 0; i < length; i++) {
        found.high |= p[i] & 0x80;
        found.control |=
            (uint8_t)(p[i] < 0x20) & (uint8_t)(p[i] != '\t') & (uint8_t)(p[i] != '\n') & (uint8_t)(p[i] != '\r');
    }
    return found;
}

/* What stands in the text for a byte or sequence at p: appended to `out`. */
static bool add_sequence(dp_buffer *out, const uint8_t *p, size_t length, bool whole) {
    if (!whole)
        return dp_buffer_add(out, replacement, 3);
    if (length > 1 || !is_control(*p))
        return dp_buffer_add(out, p, length);
    return *p == '\f' || *p == '\v' ? dp_buffer_add(out, " ", 1) : true;
}

/* The first place from p on that has to change; `end`: none. Without control characters ASCII is passed in leaps. */
static const uint8_t *clean_until(const uint8_t *p, const uint8_t *end, bool controls) {
    while (p < end) {
        if (!controls && end - p >= 8 && !(dp_load64(p) & 0x8080808080808080u)) {
            p += 8;
            continue;
        }
        bool whole = !is_control(*p);
        size_t length = 1;
        if (*p >= 0x80)
            length = dp_utf8_extent(p, (size_t)(end - p), &whole);
        if (!whole)
            return p;
        p += length;
    }
    return end;
}

/* `text` with everything in it clean, in `out`; or as it is, when it was clean. */
static doppel_status clean(dp_buffer *out, doppel_slice *text) {
    const uint8_t *p = (const uint8_t *)text->data, *end = p + text->length, *dirty;
    kinds found = kinds_of(text->data, text->length);
    out->size = 0;
    if (!found.high && !found.control)
        return DOPPEL_OK;
    if ((dirty = clean_until(p, end, found.control)) == end)
        return DOPPEL_OK;
    while (p < end) {
        bool whole = true;
        if (!dp_buffer_add(out, p, (size_t)(dirty - p)))
            return DOPPEL_ERROR_MEMORY;
        p = dirty;
        if (p < end) {
            size_t length = dp_utf8_extent(p, (size_t)(end - p), &whole);
            if (!add_sequence(out, p, length, whole))
                return DOPPEL_ERROR_MEMORY;
            p += length;
        }
        dirty = clean_until(p, end, found.control);
    }
    *text = (doppel_slice){out->size ? out->data : "", out->size};
    return DOPPEL_OK;
}

/* ---- other charsets ---- */

static doppel_status open_converter(dp_decoder *decoder, const dp_charset *charset) {
    if (decoder->charset == charset) {
        iconv(decoder->converter, NULL, NULL, NULL, NULL);
        return DOPPEL_OK;
    }
    iconv_t made = iconv_open("UTF-8", charset->converter);
    if (made == (iconv_t)-1)
        return errno == ENOMEM ? DOPPEL_ERROR_MEMORY : DOPPEL_ERROR_INPUT;
    if (decoder->charset)
        iconv_close(decoder->converter);
    decoder->charset = charset;
    decoder->converter = made;
    return DOPPEL_OK;
}

/* What stopped the converter at `in`: room is made for more; what is invalid, or cut off at the end, is replaced. */
static bool go_on(const dp_decoder *decoder, int reason, char **in, size_t *left, dp_buffer *out) {
    size_t skip = reason == EINVAL ? *left : decoder->charset->unit;
    if (!dp_reserve(&out->data, &out->capacity, out->size + *left + 64, 1))
        return false;
    if (reason == E2BIG)
        return dp_reserve(&out->data, &out->capacity, out->capacity + 1, 1);
    skip = skip < *left ? skip : *left;
    *in += skip;
    *left -= skip;
    return dp_buffer_add(out, replacement, 3);
}

static doppel_status convert(dp_decoder *decoder, const char *bytes, size_t length, dp_buffer *out) {
    char *in = (char *)(uintptr_t)bytes;
    size_t left = length;
    out->size = 0;
    if (!dp_reserve(&out->data, &out->capacity, length + length / 8 + 64, 1))
        return DOPPEL_ERROR_MEMORY;
    for (bool done = false; !done;) {
        char *to = out->data + out->size;
        size_t room = out->capacity - out->size;
        bool last = !left; /* what the converter still holds */
        size_t failed = iconv(decoder->converter, last ? NULL : &in, last ? NULL : &left, &to, &room);
        out->size = (size_t)(to - out->data);
        int reason = failed == (size_t)-1 ? errno : 0;
        done = last && reason != E2BIG;
        if (reason && !done && !go_on(decoder, reason, &in, &left, out))
            return DOPPEL_ERROR_MEMORY;
    }
    return DOPPEL_OK;
}

/* Control characters out of valid UTF-8, in place. */
static void drop_controls(dp_buffer *text) {
    size_t kept = 0;
    for (size_t i = 0; i < text->size; i++) {
        char c = text->data[i];
        text->data[kept] = c == '\f' || c == '\v' ? ' ' : c;
        kept += !is_control((uint8_t)c) || c == '\f' || c == '\v';
    }
    text->size = kept;
}

doppel_status dp_decoder_run(dp_decoder *decoder, const dp_charset *charset, const char *bytes, size_t length,
                             doppel_slice *text) {
    *text = (doppel_slice){bytes, length};
    if (!charset->converter)
        return clean(&decoder->text, text);
    doppel_status status = open_converter(decoder, charset);
    if (status == DOPPEL_OK)
        status = convert(decoder, bytes, length, &decoder->text);
    if (status != DOPPEL_OK)
        return status;
    if (kinds_of(decoder->text.data, decoder->text.size).control)
        drop_controls(&decoder->text);
    *text = (doppel_slice){decoder->text.data, decoder->text.size};
    return DOPPEL_OK;
}

void dp_decoder_close(dp_decoder *decoder) {
    if (decoder->charset)
        iconv_close(decoder->converter);
    dp_buffer_free(&decoder->text);
    *decoder = (dp_decoder){0};
}
