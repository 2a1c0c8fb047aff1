/* points.c - UTF-8 to code points, for measures on texts as they are. */
#include "verify/verify.h"

#define REPLACEMENT 0xFFFD

/* What may follow a lead byte: how many more bytes, and the range of the first of them (the Unicode standard's table of
 * well-formed sequences; further ones are 80 to BF). */
struct lead {
    uint8_t more, low, high;
};

static struct lead lead_of(uint8_t byte) {
    if (byte >= 0xC2 && byte <= 0xDF)
        return (struct lead){1, 0x80, 0xBF};
    if (byte >= 0xE0 && byte <= 0xEF)
        return (struct lead){2, byte == 0xE0 ? 0xA0 : 0x80, byte == 0xED ? 0x9F : 0xBF};
    if (byte >= 0xF0 && byte <= 0xF4)
        return (struct lead){3, byte == 0xF0 ? 0x90 : 0x80, byte == 0xF4 ? 0x8F : 0xBF};
    return (struct lead){0, 0, 0};
}

/* Decodes one sequence that starts with a byte above 7F; gives the bytes it took. */
static size_t decode_one(const uint8_t *bytes, size_t length, uint32_t *point) {
    struct lead lead = lead_of(bytes[0]);
    uint32_t value = bytes[0] & (0x3Fu >> lead.more);
    *point = REPLACEMENT;
    if (!lead.more)
        return 1;
    for (size_t i = 1; i <= lead.more; i++) {
        if (i == length || bytes[i] < lead.low || bytes[i] > lead.high)
            return i;
        value = value << 6 | (bytes[i] & 0x3Fu);
        lead.low = 0x80;
        lead.high = 0xBF;
    }
    *point = value;
    return lead.more + 1u;
}

size_t dp_points_decode(const char *text, size_t length, uint32_t *points) {
    const uint8_t *bytes = (const uint8_t *)text;
    size_t at = 0, count = 0;
    while (at < length) {
        while (length - at >= 8 && !(dp_load64(bytes + at) & 0x8080808080808080u)) {
            for (int i = 0; i < 8; i++)
                points[count++] = bytes[at++];
        }
        if (at == length)
            break;
        if (bytes[at] < 0x80)
            points[count++] = bytes[at++];
        else
            at += decode_one(bytes + at, length - at, &points[count++]);
    }
    return count;
}
