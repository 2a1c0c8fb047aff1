/* text.h - a text that grows, and JSON written to it. A call that finds no memory marks the text as failed, and all
 * later ones do nothing: one look at `failed` at the end is enough. */
#ifndef COMMON_TEXT_H
#define COMMON_TEXT_H

#include "doppel.h"

/* Zero is empty. */
typedef struct text {
    char *data;
    size_t length, room;
    bool failed;
} text;

void text_free(text *t);

/* Makes place for `more` bytes; false when there is no memory. */
bool text_reserve(text *t, size_t more);

void text_add(text *t, const char *bytes, size_t length);
void text_put(text *t, const char *string);
void text_format(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A JSON string, quotes included; null for data NULL. Invalid UTF-8 becomes U+FFFD. */
void text_json(text *t, const char *bytes, size_t length);

/* The shortest digits that read back as the same number, with a point in any locale; null for what is not finite. */
void text_number(text *t, double value);

/* Members of an object: "name":value with a comma ahead, unless the object is still empty. */
void text_member(text *t, const char *name);
void text_member_string(text *t, const char *name, doppel_slice value);
void text_member_count(text *t, const char *name, uint64_t value);
void text_member_number(text *t, const char *name, double value);
void text_member_bool(text *t, const char *name, bool value);

/* A time as ISO 8601 in UTC, or null for 0. */
void text_member_time(text *t, const char *name, uint64_t seconds);

void text_hex(text *t, const uint8_t *bytes, size_t length);

/* A string of C as a slice. */
doppel_slice slice_of(const char *string);

#endif
