/* verdict_member.c - a member added to a JSON object: before its last brace, after a comma unless it is the only
 * one. */
#include "stream/verdict_member.h"

#include <string.h>

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool object_with(text_buffer *to, doppel_slice object, const char *key, doppel_slice value) {
    const char *begin = object.length ? memchr(object.data, '{', object.length) : NULL;
    const char *end = object.data + object.length;
    while (begin && end > begin && is_space(end[-1]))
        end--;
    if (!begin || end - begin < 2 || end[-1] != '}')
        return false;
    const char *last = end - 1; /* after the last member, or the first brace */
    while (is_space(last[-1]))
        last--;
    text_reserve(to, object.length + strlen(key) + value.length + 8);
    text_add(to, object.data, (size_t)(last - object.data));
    if (last != begin + 1)
        text_put(to, ",");
    text_string(to, doppel_slice_of(key));
    text_put(to, ":");
    text_add(to, value.data, value.length);
    text_add(to, last, (size_t)(object.data + object.length - last));
    return true;
}
