/* text.c - a text that grows, and JSON written to it. */
#include "common/text.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void text_free(text *t) {
    free(t->data);
    *t = (text){0};
}

bool text_reserve(text *t, size_t more) {
    if (t->failed)
        return false;
    if (more <= t->room - t->length)
        return true;
    size_t room = t->room ? t->room : 256;
    while (room - t->length < more && room <= SIZE_MAX / 4)
        room *= 2;
    char *grown = room - t->length < more ? NULL : realloc(t->data, room);
    if (!grown) {
        t->failed = true;
        return false;
    }
    t->data = grown;
    t->room = room;
    return true;
}

void text_add(text *t, const char *bytes, size_t length) {
    if (!length || !text_reserve(t, length))
        return;
    memcpy(t->data + t->length, bytes, length);
    t->length += length;
}

void text_put(text *t, const char *string) {
    text_add(t, string, strlen(string));
}

void text_format(text *t, const char *format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    if (length > 0 && text_reserve(t, (size_t)length + 1)) {
        vsnprintf(t->data + t->length, (size_t)length + 1, format, again);
        t->length += (size_t)length;
    }
    va_end(again);
    va_end(list);
}

/* How many bytes at p are one valid character, or 0. */
static size_t character(const unsigned char *p, size_t left) {
    static const unsigned char first_low[] = {0xA0, 0x90}; /* of E0 and F0: no longer form than is needed */
    size_t more = p[0] >= 0xC2 && p[0] < 0xE0   ? 1
                  : p[0] >= 0xE0 && p[0] < 0xF0 ? 2
                  : p[0] >= 0xF0 && p[0] < 0xF5 ? 3
                                                : 0;
    if (p[0] < 0x80)
        return 1;
    if (!more || left <= more)
        return 0;
    if ((p[0] == 0xE0 && p[1] < first_low[0]) || (p[0] == 0xED && p[1] >= 0xA0) ||
        (p[0] == 0xF0 && p[1] < first_low[1]) || (p[0] == 0xF4 && p[1] >= 0x90))
        return 0;
    for (size_t i = 1; i <= more; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return more + 1;
}

static void escape(text *t, unsigned char c) {
    static const char letters[] = "btn\0fr";
    if (c == '"' || c == '\\')
        text_format(t, "\\%c", c);
    else if (c >= 8 && c <= 13 && letters[c - 8])
        text_format(t, "\\%c", letters[c - 8]);
    else
        text_format(t, "\\u%04x", c);
}

void text_json(text *t, const char *bytes, size_t length) {
    if (!bytes) {
        text_put(t, "null");
        return;
    }
    const unsigned char *p = (const unsigned char *)bytes, *end = p + length, *plain = p;
    text_put(t, "\"");
    while (p < end) {
        size_t size = *p < 0x20 || *p == '"' || *p == '\\' || *p == 0x7F ? 0 : character(p, (size_t)(end - p));
        if (size) {
            p += size;
            continue;
        }
        text_add(t, (const char *)plain, (size_t)(p - plain));
        if (*p < 0x80)
            escape(t, *p);
        else
            text_put(t, "\xEF\xBF\xBD");
        plain = ++p;
    }
    text_add(t, (const char *)plain, (size_t)(p - plain));
    text_put(t, "\"");
}

void text_number(text *t, double value) {
    char digits[40] = "null";
    for (int precision = 6; precision <= 17 && isfinite(value); precision += precision == 6 ? 9 : 1) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    for (char *p = digits; *p; p++)
        if (*p == *localeconv()->decimal_point)
            *p = '.';
    text_put(t, digits);
}

void text_member(text *t, const char *name) {
    bool first = t->length && t->data[t->length - 1] == '{';
    text_put(t, first ? "\"" : ",\"");
    text_put(t, name);
    text_put(t, "\":");
}

void text_member_string(text *t, const char *name, doppel_slice value) {
    text_member(t, name);
    text_json(t, value.data, value.length);
}

void text_member_count(text *t, const char *name, uint64_t value) {
    text_member(t, name);
    text_format(t, "%llu", (unsigned long long)value);
}

void text_member_number(text *t, const char *name, double value) {
    text_member(t, name);
    text_number(t, value);
}

void text_member_bool(text *t, const char *name, bool value) {
    text_member(t, name);
    text_put(t, value ? "true" : "false");
}

void text_member_time(text *t, const char *name, uint64_t seconds) {
    struct tm parts;
    time_t when = (time_t)seconds;
    char out[40];
    text_member(t, name);
    if (!seconds || !gmtime_r(&when, &parts) || !strftime(out, sizeof out, "\"%Y-%m-%dT%H:%M:%SZ\"", &parts))
        text_put(t, "null");
    else
        text_put(t, out);
}

void text_hex(text *t, const uint8_t *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        text_format(t, "%02x", bytes[i]);
}

doppel_slice slice_of(const char *string) {
    return (doppel_slice){string, string ? strlen(string) : 0};
}
