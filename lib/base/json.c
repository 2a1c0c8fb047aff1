/* json.c - JSON, written to a growing buffer or to memory of a fixed size: the one place that escapes strings.
 *
 * Set up a dp_json_writer (base.h), then write keys and values in order; braces, brackets and commas of arrays are the
 * caller's text. A failure is sticky and makes the remaining calls do nothing, so it is checked once, at the end. */
#include "base/base.h"

#include <math.h>
#include <stdio.h>

void dp_json_put(dp_json_writer *w, const char *bytes, size_t length) {
    if (!length)
        return;
    if (w->buffer)
        w->failed = w->failed || !dp_buffer_add(w->buffer, bytes, length);
    else if (w->length < w->room)
        memcpy(w->to + w->length, bytes, length < w->room - w->length ? length : w->room - w->length);
    w->length += length;
    w->last = bytes[length - 1];
}

void dp_json_text(dp_json_writer *w, const char *text) {
    dp_json_put(w, text, strlen(text));
}

void dp_json_key(dp_json_writer *w, const char *name) {
    dp_json_text(w, w->last == '{' ? "\"" : ",\"");
    dp_json_text(w, name);
    dp_json_text(w, "\":");
}

/* ---- strings ---- */

/* The end of the bytes that need no escape in a JSON string. DEL would be allowed, but is escaped for the sake of
 * terminals. */
static const char *plain_end(const char *p, const char *end) {
    while (p < end) {
        uint8_t c = (uint8_t)*p;
        bool whole = c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
        size_t length = c < 0x80 ? 1 : dp_utf8_extent((const uint8_t *)p, (size_t)(end - p), &whole);
        if (!whole)
            break;
        p += length;
    }
    return p;
}

static void put_escape(dp_json_writer *w, uint8_t c) {
    static const char letters[] = "btn?fr", digits[] = "0123456789abcdef"; /* letters of 0x08 to 0x0D */
    char escape[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
    bool has_letter = c >= 0x08 && c <= 0x0D && c != 0x0B, is_short = has_letter || c == '"' || c == '\\';
    if (is_short)
        escape[1] = has_letter ? letters[c - 0x08] : (char)c;
    dp_json_put(w, escape, is_short ? 2 : 6);
}

void dp_json_string(dp_json_writer *w, doppel_slice string) {
    if (!string.data) {
        dp_json_text(w, "null");
        return;
    }
    const char *p = string.data, *end = p + string.length;
    dp_json_text(w, "\"");
    for (;;) {
        const char *stop = plain_end(p, end);
        dp_json_put(w, p, (size_t)(stop - p));
        if (stop == end)
            break;
        bool whole;
        p = stop + dp_utf8_extent((const uint8_t *)stop, (size_t)(end - stop), &whole);
        if (whole)
            put_escape(w, (uint8_t)*stop);
        else
            dp_json_text(w, "\xEF\xBF\xBD");
    }
    dp_json_text(w, "\"");
}

bool dp_json_add(dp_buffer *out, const char *bytes, size_t length) {
    dp_json_writer w = {.buffer = out};
    dp_json_string(&w, (doppel_slice){bytes ? bytes : "", length});
    return !w.failed;
}

size_t doppel_json_string(doppel_slice bytes, char *to, size_t room) {
    dp_json_writer w = {.to = to, .room = room ? room - 1 : 0};
    dp_json_string(&w, bytes);
    if (room)
        to[w.length < w.room ? w.length : w.room] = 0;
    return w.length;
}

/* ---- other values ---- */

void dp_json_bool(dp_json_writer *w, bool value) {
    dp_json_text(w, value ? "true" : "false");
}

void dp_json_count(dp_json_writer *w, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    dp_json_text(w, text);
}

/* The locale's decimal point, which may be several bytes, becomes a point. */
void dp_json_share(dp_json_writer *w, double share) {
    char text[32];
    if (isnan(share)) {
        dp_json_text(w, "null");
        return;
    }
    snprintf(text, sizeof text, "%.6g", share);
    size_t digits = strspn(text, "-0123456789e");
    dp_json_put(w, text, digits);
    if (text[digits]) {
        dp_json_text(w, ".");
        dp_json_text(w, text + digits + strcspn(text + digits, "0123456789"));
    }
}
