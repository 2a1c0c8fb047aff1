/* http.c - the head of an archived response. */
#include "input/http.h"

#include <strings.h>

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

doppel_slice dp_slice_trim(doppel_slice slice) {
    while (slice.length && is_space(*slice.data)) {
        slice.data++;
        slice.length--;
    }
    while (slice.length && is_space(slice.data[slice.length - 1]))
        slice.length--;
    return slice;
}

bool dp_slice_is(doppel_slice slice, const char *word) {
    return slice.length == strlen(word) && !strncasecmp(slice.data, word, slice.length);
}

/* Takes the first line off; gives it with its line end. */
static doppel_slice take_line(doppel_slice *rest) {
    const char *end = rest->length ? memchr(rest->data, '\n', rest->length) : NULL;
    doppel_slice line = {rest->data, end ? (size_t)(end + 1 - rest->data) : rest->length};
    rest->data += line.length;
    rest->length -= line.length;
    return line;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 OK": the three digits, or -1. */
static int status_of(doppel_slice line) {
    if (line.length < 5 || strncasecmp(line.data, "HTTP/", 5))
        return -1;
    const char *p = memchr(line.data, ' ', line.length), *end = line.data + line.length;
    while (p && p < end && *p == ' ')
        p++;
    if (!p || end - p < 3 || !is_digit(p[0]) || !is_digit(p[1]) || !is_digit(p[2]) || (end - p > 3 && is_digit(p[3])))
        return -1;
    return (p[0] - '0') * 100 + (p[1] - '0') * 10 + (p[2] - '0');
}

bool dp_http_parse(const char *bytes, size_t length, dp_http *http) {
    doppel_slice rest = {bytes, length};
    http->status = status_of(take_line(&rest));
    if (http->status < 0)
        return false;
    http->fields.data = rest.data;
    while (rest.length) {
        doppel_slice line = take_line(&rest);
        if (!dp_slice_trim(line).length)
            break;
    }
    http->fields.length = (size_t)(rest.data - http->fields.data);
    http->body = rest;
    return true;
}

doppel_slice dp_http_field(doppel_slice fields, const char *name) {
    size_t length = strlen(name);
    while (fields.length) {
        doppel_slice line = take_line(&fields);
        if (line.length <= length || strncasecmp(line.data, name, length))
            continue;
        doppel_slice value = dp_slice_trim((doppel_slice){line.data + length, line.length - length});
        if (!value.length || *value.data != ':')
            continue;
        return dp_slice_trim((doppel_slice){value.data + 1, value.length - 1});
    }
    return (doppel_slice){0};
}

/* Takes what stands before the first ; off. */
static doppel_slice take_parameter(doppel_slice *rest) {
    const char *end = rest->length ? memchr(rest->data, ';', rest->length) : NULL;
    size_t length = end ? (size_t)(end - rest->data) : rest->length, used = length + (end ? 1 : 0);
    doppel_slice taken = dp_slice_trim((doppel_slice){rest->data, length});
    rest->data += used;
    rest->length -= used;
    return taken;
}

doppel_slice dp_http_media_type(doppel_slice value) {
    return value.data ? take_parameter(&value) : value;
}

doppel_slice dp_http_charset(doppel_slice value) {
    if (value.data)
        take_parameter(&value);
    while (value.length) {
        doppel_slice parameter = take_parameter(&value);
        if (parameter.length < 8 || strncasecmp(parameter.data, "charset", 7))
            continue;
        doppel_slice after = dp_slice_trim((doppel_slice){parameter.data + 7, parameter.length - 7});
        if (!after.length || *after.data != '=')
            continue;
        after = dp_slice_trim((doppel_slice){after.data + 1, after.length - 1});
        while (after.length && (*after.data == '"' || *after.data == '\'')) {
            after.data++;
            after.length--;
        }
        while (after.length && (after.data[after.length - 1] == '"' || after.data[after.length - 1] == '\''))
            after.length--;
        if (after.length)
            return after;
    }
    return (doppel_slice){0};
}
