/* text.h - a text that grows, and JSON written to it. A call that finds no memory marks the text as failed, and all
 * later ones do nothing: one look at `failed` at the end is enough. */
#ifndef COMMON_TEXT_H
#define COMMON_TEXT_H

#include "doppel.h"

/* Zero is empty. */
typedef struct text_buffer {
    char *data;
    size_t length, room;
    bool failed;
} text_buffer;

void text_free(text_buffer *t);

/* Makes place for `more` bytes; false when out of memory. */
bool text_reserve(text_buffer *t, size_t more);

void text_add(text_buffer *t, const char *bytes, size_t length);
void text_put(text_buffer *t, const char *string);
void text_format(text_buffer *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text from outside, for lines that people read: white space becomes one space, control characters become escapes
 * (message.h). */
void text_safe(text_buffer *t, const char *text, size_t length);

/* A JSON string, quotes included; null for data NULL. Invalid UTF-8 becomes U+FFFD. */
void text_string(text_buffer *t, doppel_slice value);

/* The shortest digits that read back as the same number, with a point in any locale; null for what is not finite. */
void text_number(text_buffer *t, double value);

/* Members of an object: "name":value, after a comma unless the object is still empty. */
void text_member(text_buffer *t, const char *name);
void text_member_string(text_buffer *t, const char *name, doppel_slice value);
void text_member_count(text_buffer *t, const char *name, uint64_t value);
void text_member_number(text_buffer *t, const char *name, double value);
void text_member_bool(text_buffer *t, const char *name, bool value);

/* A similarity or another share in six digits; null for NaN. A distance; null below 0. */
void text_member_share(text_buffer *t, const char *name, double share);
void text_member_distance(text_buffer *t, const char *name, int64_t distance);

/* A time as ISO 8601 in UTC, or null for 0. */
void text_member_time(text_buffer *t, const char *name, uint64_t seconds);

/* A fingerprint in hexadecimal, as many digits as its bits need. A SHA-256 of words; null when there are none. */
void text_member_fingerprint(text_buffer *t, const char *name, const uint64_t fingerprint[2], int bits);
void text_member_digest(text_buffer *t, const char *name, const uint8_t digest[32]);

void text_hex(text_buffer *t, const uint8_t *bytes, size_t length);

/* Names separated by commas, at most 16 of them, as an array; `text` is to be freed. False: no memory. */
typedef struct name_list {
    char *text;
    const char *names[16];
    size_t count;
} name_list;
bool split_names(name_list *list, const char *names);

#endif
