/* jsontext.c - strings and numbers of JSON, as text. */
#include "input/json.h"

#include <string.h>

/* The value of four hexadecimal digits, or -1. */
static int32_t hex4(const char *p) {
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            digit = (c | 32) - 'a' + 10;
        else
            return -1;
        value = value * 16 + digit;
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

/* What stands behind \u: one or two escapes, the first of which is at p. Gives the code point, or -1, and where it
 * ends. A half of a pair without the other is U+FFFD. */
static int32_t code_point(const char **p, const char *end, bool *repaired) {
    if (end - *p < 6)
        return -1;
    int32_t c = hex4(*p + 2);
    *p += 6;
    if (c < 0xD800 || c > 0xDFFF)
        return c;
    if (c < 0xDC00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        int32_t low = hex4(*p + 2);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *p += 6;
            return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    *repaired = true;
    return 0xFFFD;
}

/* The character a one-letter escape stands for, or -1. */
static int32_t simple_escape(char c) {
    switch (c) {
    case '"': return '"';
    case '\\': return '\\';
    case '/': return '/';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return -1;
    }
}

size_t dp_json_unescape(const char *raw, size_t length, char *to, bool *repaired) {
    const char *p = raw, *end = raw + length;
    char *start = to;
    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        size_t run = (size_t)((slash ? slash : end) - p);
        memcpy(to, p, run);
        to += run;
        p += run;
        if (!slash)
            break;
        if (end - p < 2)
            return SIZE_MAX;
        int32_t c;
        if (p[1] == 'u') {
            c = code_point(&p, end, repaired);
        } else {
            c = simple_escape(p[1]);
            p += 2;
        }
        if (c < 0)
            return SIZE_MAX;
        to = put_utf8(to, c);
    }
    return (size_t)(to - start);
}

static const char *digits(const char *p, const char *end) {
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

bool dp_json_is_number(const char *raw, size_t length) {
    const char *p = raw, *end = raw + length, *start;
    if (p < end && *p == '-')
        p++;
    start = p;
    p = digits(p, end);
    if (p == start || (*start == '0' && p - start > 1))
        return false;
    if (p < end && *p == '.') {
        start = ++p;
        if ((p = digits(p, end)) == start)
            return false;
    }
    if (p < end && (*p | 32) == 'e') {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        start = p;
        if ((p = digits(p, end)) == start)
            return false;
    }
    return p == end;
}
