/* redis_words.c - pieces of a URL: marks, escapes, numbers; see redis_url.c. */
#include "known/redis_words.h"

#include <stdlib.h>

doppel_status dp_redis_no_sense(doppel_error *error, const char *what) {
    return dp_fail(error, DOPPEL_ERROR_USAGE, "this URL of Redis makes no sense: %s", what);
}

static int digit_of(char letter) {
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    letter |= 0x20;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

doppel_status dp_redis_copy_part(doppel_slice part, char **copy, doppel_error *error) {
    char *out = malloc(part.length + 1);
    if (!out)
        return dp_no_memory(error);
    free(*copy);
    *copy = out;
    for (size_t i = 0; i < part.length; i++, out++) {
        *out = part.data[i];
        if (*out == '%') {
            int high = i + 2 < part.length ? digit_of(part.data[i + 1]) : -1;
            int low = i + 2 < part.length ? digit_of(part.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return dp_redis_no_sense(error, "a % that is not followed by two hexadecimal digits (%25 is a %)");
            *out = (char)(high << 4 | low);
            i += 2;
        }
        if ((unsigned char)*out < 0x20 || *out == 0x7F)
            return dp_redis_no_sense(error, "a control character");
    }
    *out = 0;
    return DOPPEL_OK;
}

bool dp_redis_read_number(doppel_slice text, uint64_t most, uint64_t *number) {
    uint64_t value = 0;
    for (size_t i = 0; i < text.length; i++) {
        unsigned digit = (unsigned char)text.data[i] - (unsigned)'0';
        if (digit > 9 || value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *number = value;
    return text.length > 0;
}

bool dp_redis_read_seconds(doppel_slice text, double least, double most, double *seconds) {
    double value = 0, unit = 1;
    size_t digits = 0, points = 0;
    for (size_t i = 0; i < text.length; i++) {
        unsigned digit = (unsigned char)text.data[i] - (unsigned)'0';
        if (text.data[i] == '.' && !points++)
            continue;
        if (digit > 9 || ++digits > 15)
            return false;
        value = value * 10 + digit;
        unit = points ? unit * 10 : unit;
    }
    *seconds = value / unit;
    return digits && *seconds >= least && *seconds <= most;
}

doppel_slice dp_redis_cut(doppel_slice *text, char mark, bool *found) {
    const char *at = text->length ? memchr(text->data, mark, text->length) : NULL;
    doppel_slice before = {text->data, at ? (size_t)(at - text->data) : text->length};
    size_t skip = before.length + (at != NULL);
    *text = (doppel_slice){text->data + skip, text->length - skip};
    if (found)
        *found = at != NULL;
    return before;
}
