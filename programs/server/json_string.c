/* json_string.c - strings of JSON: valid UTF-8, escapes undone. */
#include "server/json_reader.h"

#include <stdlib.h>
#include <string.h>

/* The length of the character at p, which begins with a byte of 0x80 or more; 0: it is not valid UTF-8. */
static size_t long_character(const unsigned char *p, const unsigned char *end) {
    size_t more = p[0] >= 0xF0 ? 3 : p[0] >= 0xE0 ? 2 : 1;
    if (p[0] < 0xC2 || p[0] > 0xF4 || (size_t)(end - p) <= more)
        return 0;
    for (size_t i = 1; i <= more; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    bool too_long = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
    bool no_character = (p[0] == 0xED && p[1] >= 0xA0) || (p[0] == 0xF4 && p[1] >= 0x90);
    return too_long || no_character ? 0 : more + 1;
}

static int32_t hex4(const json_reader *r, const unsigned char *p) {
    int32_t value = 0;
    if (r->end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        unsigned char c = p[i], lower = c | 32;
        if (c >= '0' && c <= '9')
            value = value * 16 + c - '0';
        else if (lower >= 'a' && lower <= 'f')
            value = value * 16 + lower - 'a' + 10;
        else
            return -1;
    }
    return value;
}

static char *put_utf8(char *to, int32_t c) {
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xE0 | c >> 12);
        } else {
            *to++ = (char)(0xF0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 63));
        }
        *to++ = (char)(0x80 | (c >> 6 & 63));
    }
    *to++ = (char)(0x80 | (c & 63));
    return to;
}

/* \uXXXX, and the second half of a pair. r->p stands on the u. */
static char *unicode_escape(json_reader *r, char *to) {
    int32_t c = hex4(r, r->p + 1);
    if (c < 0) {
        json_fail(r, "\\u needs four hexadecimal digits");
        return NULL;
    }
    r->p += 5;
    if (c >= 0xD800 && c < 0xE000) {
        int32_t low = r->end - r->p > 2 && r->p[0] == '\\' && r->p[1] == 'u' ? hex4(r, r->p + 2) : -1;
        if (c >= 0xDC00 || low < 0xDC00 || low >= 0xE000) {
            json_fail(r, "a surrogate without its other half");
            return NULL;
        }
        r->p += 6;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    return put_utf8(to, c);
}

/* An escape; r->p stands behind its backslash. Gives where the text goes on, or NULL. */
static char *one_escape(json_reader *r, char *to) {
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char *found = r->p < r->end && *r->p ? strchr(from, *r->p) : NULL;
    if (found) {
        *to++ = into[found - from];
        r->p++;
        return to;
    }
    if (r->p < r->end && *r->p == 'u')
        return unicode_escape(r, to);
    json_fail(r, "an escape that JSON does not have");
    return NULL;
}

/* Moves over characters that stand for themselves; false with a reason when one may not stand there. */
static bool plain_run(json_reader *r) {
    while (r->p < r->end && *r->p != '"' && *r->p != '\\') {
        if (*r->p < 0x20)
            return json_fail(r, "a control character in a string has to be escaped");
        size_t size = *r->p < 0x80 ? 1 : long_character(r->p, r->end);
        if (!size)
            return json_fail(r, "not valid UTF-8");
        r->p += size;
    }
    return r->p < r->end || json_fail(r, "the string does not end");
}

/* The rest of a string that has an escape; `from` is where it begins. Unescaped text is never longer than it was. */
static bool escaped_string(json_reader *r, const unsigned char *from, doppel_slice *text) {
    json *j = r->j;
    if (!j->held || j->held_room < (size_t)(r->end - r->start)) {
        if (j->held_length)
            return json_no_memory(r); /* not reached: the first escape makes place for all of them */
        char *grown = realloc(j->held, (size_t)(r->end - r->start));
        if (!grown)
            return json_no_memory(r);
        j->held = grown;
        j->held_room = (size_t)(r->end - r->start);
    }
    char *to = j->held + j->held_length;
    text->data = to;
    for (;;) {
        memcpy(to, from, (size_t)(r->p - from));
        to += r->p - from;
        if (*r->p++ == '"')
            break;
        if (!(to = one_escape(r, to)))
            return false;
        from = r->p;
        if (!plain_run(r))
            return false;
    }
    text->length = (size_t)(to - text->data);
    j->held_length += text->length;
    return true;
}

bool json_string(json_reader *r, doppel_slice *text) {
    const unsigned char *from = ++r->p;
    if (!plain_run(r))
        return false;
    if (*r->p == '\\')
        return escaped_string(r, from, text);
    *text = (doppel_slice){(const char *)from, (size_t)(r->p - from)};
    r->p++;
    return true;
}
