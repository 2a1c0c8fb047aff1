/* jsontext.c - strings and numbers of JSON, as text. */
#include "input/json.h"

#include "kernel/kernel.h"

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

/* The code point of one \u escape, or of two that make a pair, of which the first is whole; -1 when its digits are
 * none. A half of a pair without the other is U+FFFD. */
static int32_t code_point(const char **p, const char *end, bool *repaired) {
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

size_t dp_json_unescape(const char *raw, size_t length, char *to, bool *repaired) {
    dp_unescape_fn unescape = dp_unescape_kernel();
    const char *p = raw, *end = raw + length;
    char *start = to;
    for (;;) {
        size_t written;
        p += unescape(p, (size_t)(end - p), to, &written);
        to += written;
        if (p == end)
            return (size_t)(to - start);
        do {
            int32_t c = end - p >= 6 && p[1] == 'u' ? code_point(&p, end, repaired) : -1;
            if (c < 0)
                return SIZE_MAX;
            to = put_utf8(to, c);
        } while (end - p >= 2 && p[0] == '\\' && p[1] == 'u');
    }
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
