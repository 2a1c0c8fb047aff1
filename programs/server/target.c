/* target.c - the target of a request: path and query, percent-encoded. */
#include "server/target.h"

#include <string.h>

static int hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t target_decode(char *text, size_t length, bool query) {
    size_t to = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < length ? hex(text[i + 1]) : -1, low = i + 2 < length ? hex(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return SIZE_MAX;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && query) {
            c = ' ';
        }
        text[to++] = c;
    }
    return to;
}

static bool decode_string(char *text) {
    size_t length = target_decode(text, strlen(text), true);
    if (length == SIZE_MAX || memchr(text, 0, length))
        return false;
    text[length] = 0;
    return true;
}

bool target_next(char **query, char **name, char **value, bool *broken) {
    static char nothing[1];
    char *part = *query;
    *broken = false;
    if (!part || !*part)
        return false;
    char *end = strchr(part, '&');
    if (end)
        *end = 0;
    *query = end ? end + 1 : NULL;
    *name = part;
    *value = strchr(part, '=');
    if (*value)
        *(*value)++ = 0;
    else
        *value = nothing;
    *broken = !decode_string(*name) || !decode_string(*value);
    return true;
}
