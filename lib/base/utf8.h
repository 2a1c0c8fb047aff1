/* utf8.h - UTF-8 decoded and encoded, with invalid sequences cut as Unicode section 3.9 advises (maximal subparts). */
#ifndef DP_BASE_UTF8_H
#define DP_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes a sequence with this first byte has; 0 for a byte that starts none. */
static inline size_t dp_utf8_length(uint8_t first) {
    return first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
}

/* Whether `second` may follow `first`, which starts a sequence of more than one byte: no overlong forms, no surrogates,
 * nothing above U+10FFFF. */
static inline bool dp_utf8_second(uint8_t first, uint8_t second) {
    uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    return second >= low && second <= high;
}

/* How many of the bytes at p form a sequence or the beginning of one; *whole says which. At least 1: a byte that cannot
 * start a sequence counts by itself. */
static inline size_t dp_utf8_extent(const uint8_t *p, size_t left, bool *whole) {
    size_t length = dp_utf8_length(p[0]), have = 1;
    *whole = length == 1;
    if (length < 2 || left < 2 || !dp_utf8_second(p[0], p[1]))
        return 1;
    for (have = 2; have < length && have < left && (p[have] & 0xC0) == 0x80; have++)
        ;
    *whole = have == length;
    return have;
}

/* Decodes the sequence at p (p < end); returns its length. An invalid sequence is -1. */
static inline size_t dp_utf8_decode(const uint8_t *p, const uint8_t *end, int32_t *code_point) {
    bool whole;
    size_t length = dp_utf8_extent(p, (size_t)(end - p), &whole);
    if (!whole)
        *code_point = -1;
    else if (length == 1)
        *code_point = p[0];
    else if (length == 2)
        *code_point = (p[0] & 0x1F) << 6 | (p[1] & 0x3F);
    else if (length == 3)
        *code_point = (p[0] & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F);
    else
        *code_point = (p[0] & 0x07) << 18 | (p[1] & 0x3F) << 12 | (p[2] & 0x3F) << 6 | (p[3] & 0x3F);
    return length;
}

/* Whether these bytes are the beginning of a sequence that more bytes could complete. */
static inline bool dp_utf8_incomplete(const uint8_t *p, size_t left) {
    bool whole;
    return left && dp_utf8_length(p[0]) > 1 && dp_utf8_extent(p, left, &whole) == left && !whole;
}

/* Writes a code point as UTF-8, 1 to 4 bytes; returns how many. */
static inline size_t dp_utf8_encode(uint32_t c, uint8_t *out) {
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xC0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xE0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (c & 0x3F));
    return 4;
}

#endif
