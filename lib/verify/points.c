/* points.c - UTF-8 to code points, for measures on texts as they are. */
#include "text/text.h"
#include "verify/verify.h"

#define REPLACEMENT 0xFFFD

size_t dp_points_decode(const char *text, size_t length, uint32_t *points) {
    const uint8_t *bytes = (const uint8_t *)text;
    size_t at = 0, count = 0;
    while (at < length) {
        while (length - at >= 8 && !(dp_load64(bytes + at) & 0x8080808080808080u))
            for (int i = 0; i < 8; i++)
                points[count++] = bytes[at++];
        if (at == length)
            break;
        int32_t point;
        at += dp_utf8_decode(bytes + at, bytes + length, &point);
        points[count++] = point < 0 ? REPLACEMENT : (uint32_t)point;
    }
    return count;
}
