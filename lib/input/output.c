/* output.c - what the work writes: bytes, and strings as JSON. */
#include "input/reader.h"
#include "input/utf8.h"

#include <stdio.h>

doppel_status doppel_output_write(doppel_output *output, const void *bytes, size_t length) {
    return dp_buffer_add(&output->bytes, bytes, length) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* Bytes that a JSON string holds as they are. */
static bool is_plain(char c) {
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x7F && c != '"' && c != '\\';
}

/* What stands at p, which is not plain. */
static doppel_slice special_piece(const char **p, const char *end, char escape[DP_JSON_ESCAPE]) {
    static const char names[] = "btn?fr"; /* of 0x08 to 0x0D */
    const char *start = *p;
    unsigned char c = (unsigned char)*start;
    if (c > 0x7F) {
        bool valid;
        size_t size = dp_utf8_sequence(start, end, &valid);
        *p += size;
        return valid ? (doppel_slice){start, size} : (doppel_slice){"\xEF\xBF\xBD", 3};
    }
    int length;
    ++*p;
    if (c == '"' || c == '\\')
        length = snprintf(escape, DP_JSON_ESCAPE, "\\%c", c);
    else if (c >= 0x08 && c <= 0x0D && c != 0x0B)
        length = snprintf(escape, DP_JSON_ESCAPE, "\\%c", names[c - 0x08]);
    else
        length = snprintf(escape, DP_JSON_ESCAPE, "\\u%04x", c);
    return (doppel_slice){escape, (size_t)length};
}

doppel_slice dp_json_piece(const char **p, const char *end, char escape[DP_JSON_ESCAPE]) {
    const char *start = *p;
    if (!is_plain(*start))
        return special_piece(p, end, escape);
    while (*p < end && is_plain(**p))
        ++*p;
    return (doppel_slice){start, (size_t)(*p - start)};
}

bool dp_json_add(dp_buffer *out, const char *bytes, size_t length) {
    char escape[DP_JSON_ESCAPE];
    bool added = dp_buffer_add(out, "\"", 1);
    for (const char *p = bytes, *end = bytes + length; p < end && added;) {
        doppel_slice piece = dp_json_piece(&p, end, escape);
        added = dp_buffer_add(out, piece.data, piece.length);
    }
    return added && dp_buffer_add(out, "\"", 1);
}

doppel_status doppel_output_json(doppel_output *output, const char *bytes, size_t length) {
    return dp_json_add(&output->bytes, bytes, length) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}
