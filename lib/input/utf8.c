/* utf8.c - repairing UTF-8: valid sequences stay, each maximal invalid one becomes U+FFFD.
 *
 * A sequence is valid by its first two bytes (which exclude overlong forms, surrogates and values above U+10FFFF) and
 * by continuation bytes thereafter. */
#include "input/utf8.h"

/* The allowed range of the second byte, by the first; length 0: the first byte starts nothing. */
typedef struct lead {
    uint8_t length, low, high;
} lead;

static lead lead_of(uint8_t first) {
    if (first < 0x80)
        return (lead){1, 0, 0};
    if (first < 0xC2 || first > 0xF4)
        return (lead){0, 0, 0};
    if (first < 0xE0)
        return (lead){2, 0x80, 0xBF};
    if (first < 0xF0)
        return (lead){3, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF};
    return (lead){4, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF};
}

size_t dp_utf8_sequence(const char *p, const char *end, bool *valid) {
    const uint8_t *bytes = (const uint8_t *)p;
    size_t room = (size_t)(end - p), have = 1;
    lead l = lead_of(bytes[0]);
    *valid = l.length == 1;
    if (l.length < 2)
        return 1;
    if (room < 2 || bytes[1] < l.low || bytes[1] > l.high)
        return 1;
    for (have = 2; have < l.length; have++)
        if (have >= room || bytes[have] < 0x80 || bytes[have] > 0xBF)
            return have;
    *valid = true;
    return have;
}

bool dp_utf8_repair(const char *text, size_t length, dp_buffer *out) {
    const char *p = text, *end = text + length, *start = text;
    while (p < end) {
        bool valid;
        size_t size = dp_utf8_sequence(p, end, &valid);
        if (!valid) {
            if (!dp_buffer_add(out, start, (size_t)(p - start)) || !dp_buffer_add(out, "\xEF\xBF\xBD", 3))
                return false;
            start = p + size;
        }
        p += size;
    }
    return dp_buffer_add(out, start, (size_t)(end - start));
}
