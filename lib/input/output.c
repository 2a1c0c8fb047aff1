/* output.c - what the work writes: bytes, and strings as JSON. */
#include "input/unit.h"
#include "input/utf8.h"

doppel_status doppel_output_write(doppel_output *output, const void *bytes, size_t length) {
    return dp_buffer_add(&output->bytes, bytes, length) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* Bytes that a JSON string holds as they are. */
static bool is_plain(char c) {
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x7F && c != '"' && c != '\\';
}

/* Writes what stands at p, which is not plain; gives where it ends, or NULL when there is no memory. */
static const char *write_special(dp_buffer *out, const char *p, const char *end) {
    static const char names[] = "btn?fr"; /* of 0x08 to 0x0D */
    unsigned char c = (unsigned char)*p;
    bool valid, added;
    if (c == '"' || c == '\\')
        added = dp_buffer_printf(out, "\\%c", c);
    else if (c >= 0x08 && c <= 0x0D && c != 0x0B)
        added = dp_buffer_printf(out, "\\%c", names[c - 0x08]);
    else if (c < 0x20 || c == 0x7F)
        added = dp_buffer_printf(out, "\\u%04x", c);
    else {
        size_t size = dp_utf8_sequence(p, end, &valid);
        added = valid ? dp_buffer_add(out, p, size) : dp_buffer_add(out, "\xEF\xBF\xBD", 3);
        return added ? p + size : NULL;
    }
    return added ? p + 1 : NULL;
}

doppel_status doppel_output_json(doppel_output *output, const char *bytes, size_t length) {
    dp_buffer *out = &output->bytes;
    const char *p = bytes, *end = bytes + length;
    if (!dp_buffer_add(out, "\"", 1))
        return DOPPEL_ERROR_MEMORY;
    while (p < end) {
        const char *start = p;
        while (p < end && is_plain(*p))
            p++;
        if (!dp_buffer_add(out, start, (size_t)(p - start)))
            return DOPPEL_ERROR_MEMORY;
        if (p < end && !(p = write_special(out, p, end)))
            return DOPPEL_ERROR_MEMORY;
    }
    return dp_buffer_add(out, "\"", 1) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}
