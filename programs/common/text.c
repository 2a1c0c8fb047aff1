/* text.c - a text that grows, and JSON written to it. */
#include "common/text.h"

#include "common/message.h"

#include "common/clock.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_free(text_buffer *t) {
    free(t->data);
    *t = (text_buffer){0};
}

bool text_reserve(text_buffer *t, size_t more) {
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

void text_add(text_buffer *t, const char *bytes, size_t length) {
    if (!length || !text_reserve(t, length))
        return;
    memcpy(t->data + t->length, bytes, length);
    t->length += length;
}

void text_put(text_buffer *t, const char *string) {
    text_add(t, string, strlen(string));
}

void text_format(text_buffer *t, const char *format, ...) {
    enum { USUAL = 64 };
    va_list list, again;
    if (!text_reserve(t, USUAL))
        return;
    va_start(list, format);
    va_copy(again, list);
    int length = vsnprintf(t->data + t->length, t->room - t->length, format, list);
    if ((size_t)length >= t->room - t->length && text_reserve(t, (size_t)length + 1))
        vsnprintf(t->data + t->length, t->room - t->length, format, again);
    if (!t->failed)
        t->length += (size_t)length;
    va_end(again);
    va_end(list);
}

/* ---- JSON ---- */

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void text_safe(text_buffer *t, const char *p, size_t length) {
    for (size_t taken; length; p += taken, length -= taken) {
        safe_escape escape;
        size_t safe = is_space(*p) ? 0 : safe_run(p, length, false, &escape);
        for (taken = 0; taken < (is_space(*p) ? length : safe) && is_space(p[taken]) == is_space(*p);)
            taken++;
        if (is_space(*p)) {
            text_put(t, " ");
        } else if (taken) {
            text_add(t, p, taken);
        } else {
            text_put(t, escape.text);
            taken = escape.taken;
        }
    }
}

void text_string(text_buffer *t, doppel_slice value) {
    size_t guess = value.length + value.length / 16 + 16; /* most strings have few characters to escape */
    for (int i = 0; i < 2 && text_reserve(t, guess + 1); i++) {
        size_t length = doppel_json_string(value, t->data + t->length, guess + 1);
        if (length <= guess) {
            t->length += length;
            return;
        }
        guess = length;
    }
}

void text_number(text_buffer *t, double value) {
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

void text_member(text_buffer *t, const char *name) {
    bool first = t->length && t->data[t->length - 1] == '{';
    text_put(t, first ? "\"" : ",\"");
    text_put(t, name);
    text_put(t, "\":");
}

void text_member_string(text_buffer *t, const char *name, doppel_slice value) {
    text_member(t, name);
    text_string(t, value);
}

void text_member_count(text_buffer *t, const char *name, uint64_t value) {
    text_member(t, name);
    text_format(t, "%llu", (unsigned long long)value);
}

void text_member_number(text_buffer *t, const char *name, double value) {
    text_member(t, name);
    text_number(t, value);
}

void text_member_bool(text_buffer *t, const char *name, bool value) {
    text_member(t, name);
    text_put(t, value ? "true" : "false");
}

void text_member_share(text_buffer *t, const char *name, double share) {
    text_member(t, name);
    if (isnan(share))
        text_put(t, "null");
    else
        text_format(t, "%.6g", share);
}

void text_member_distance(text_buffer *t, const char *name, int64_t distance) {
    text_member(t, name);
    if (distance < 0)
        text_put(t, "null");
    else
        text_format(t, "%lld", (long long)distance);
}

void text_member_time(text_buffer *t, const char *name, uint64_t seconds) {
    char date[DATE_ROOM];
    text_member(t, name);
    if (seconds)
        text_format(t, "\"%s\"", format_date(seconds, date));
    else
        text_put(t, "null");
}

void text_member_fingerprint(text_buffer *t, const char *name, const uint64_t fingerprint[2], int bits) {
    unsigned long long low = fingerprint[0], high = fingerprint[1];
    text_member(t, name);
    if (bits > 64)
        text_format(t, "\"%016llx%016llx\"", high, low);
    else
        text_format(t, "\"%0*llx\"", (bits + 3) / 4, low);
}

void text_member_digest(text_buffer *t, const char *name, const uint8_t digest[32]) {
    uint8_t any = 0;
    for (size_t i = 0; i < 32; i++)
        any |= digest[i];
    text_member(t, name);
    text_put(t, any ? "\"" : "null");
    if (!any)
        return;
    text_hex(t, digest, 32);
    text_put(t, "\"");
}

void text_hex(text_buffer *t, const uint8_t *bytes, size_t length) {
    static const char digits[] = "0123456789abcdef";
    if (!text_reserve(t, 2 * length))
        return;
    for (size_t i = 0; i < length; i++) {
        t->data[t->length++] = digits[bytes[i] >> 4];
        t->data[t->length++] = digits[bytes[i] & 15];
    }
}

bool split_names(name_list *list, const char *names) {
    *list = (name_list){.text = strdup(names)};
    char *rest = list->text;
    for (char *name; rest && list->count < sizeof list->names / sizeof *list->names && (name = strsep(&rest, ","));)
        if (*name)
            list->names[list->count++] = name;
    return list->text != NULL;
}
