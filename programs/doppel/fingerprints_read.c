/* fingerprints_read.c - fingerprints out of bytes: raw numbers, and lines of hexadecimal digits. */
#include "common/message.h"
#include "fingerprints.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes read at once; and the longest line. */
#define ROOM ((size_t)256 << 10)
#define LONGEST ((size_t)64 << 20)

/* ---- bytes ---- */

static doppel_status refuse(const fingerprint_file *f, uint64_t line, const char *why) {
    if (line)
        message("%s:%llu: %s", f->path, (unsigned long long)line, why);
    else
        message("%s: %s", f->path, why);
    failure_told = true;
    return DOPPEL_ERROR_INPUT;
}

/* Moves what is not yet used to the front, and makes the buffer larger when it is full. */
static bool make_way(fingerprint_file *f) {
    if (f->from) {
        memmove(f->bytes, f->bytes + f->from, f->filled - f->from);
        f->filled -= f->from;
        f->from = 0;
    }
    if (f->filled < f->room)
        return true;
    size_t room = f->room ? 2 * f->room : ROOM;
    char *bytes = realloc(f->bytes, room);
    if (!bytes)
        return false;
    f->bytes = bytes;
    f->room = room;
    return true;
}

doppel_status fingerprints_fill(fingerprint_file *f, size_t least) {
    while (!f->ended && f->filled - f->from < least) {
        if (!make_way(f))
            return DOPPEL_ERROR_MEMORY;
        ssize_t got = read(f->file, f->bytes + f->filled, f->room - f->filled);
        if (got < 0 && stop_asked)
            return DOPPEL_ERROR_INTERRUPTED;
        if (got < 0 && errno != EINTR)
            return refuse(f, 0, strerror(errno));
        f->ended = got == 0;
        f->filled += got > 0 ? (size_t)got : 0;
    }
    return DOPPEL_OK;
}

doppel_status read_raw(void *user, uint64_t *to, size_t room, size_t *count) {
    fingerprint_file *f = user;
    size_t words = f->bits > 64 ? 2 : 1, size = 8 * words;
    *count = 0;
    doppel_status status = fingerprints_fill(f, size);
    if (status != DOPPEL_OK)
        return status;
    size_t there = (f->filled - f->from) / size;
    if (!there && f->filled > f->from)
        return refuse(f, 0,
                      words == 1 ? "ends within a fingerprint of 8 bytes" : "ends within a fingerprint of 16 bytes");
    *count = there < room ? there : room;
    if (*count)
        memcpy(to, f->bytes + f->from, *count * size);
    for (size_t i = 0; i < *count * words; i++)
        to[i] = le64toh(to[i]);
    f->from += *count * size;
    f->count += *count;
    return DOPPEL_OK;
}

/* ---- digits ---- */

static bool is_digit(char c) {
    unsigned byte = (unsigned char)c;
    return (byte - '0' < 10) | ((byte | 32) - 'a' < 6); /* without a branch, which random digits would mislead */
}

size_t count_digits(const char *text, size_t length) {
    size_t count = 0;
    while (count < length && is_digit(text[count]))
        count++;
    return count;
}

/* Up to 16 digits as a number; false when one of them is none. */
static bool parse_word(const char *text, size_t length, uint64_t *value) {
    bool all = true;
    *value = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned byte = (unsigned char)text[i];
        all &= is_digit(text[i]);
        *value = *value << 4 | ((byte & 15) + 9 * (byte >> 6 & 1)); /* a letter has bit 6, and counts from 1 */
    }
    return all;
}

/* The number; false when there are no digits, too many of them, or something else. */
static bool parse_digits(const char *text, size_t length, uint64_t value[2]) {
    if (length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        text += 2;
        length -= 2;
    }
    size_t low = length < 16 ? length : 16, high = length - low;
    return length && length <= 32 && parse_word(text, high, &value[1]) && parse_word(text + high, low, &value[0]);
}

static bool add_name(const fingerprint_file *f, const fingerprint_text *text) {
    char position[24];
    if (text->name_length)
        return ids_add(f->names, text->name, text->name_length);
    int length = snprintf(position, sizeof position, "%llu", (unsigned long long)f->count);
    return ids_add(f->names, position, (size_t)length);
}

doppel_status fingerprints_take(fingerprint_file *f, const fingerprint_text *text, uint64_t *to) {
    uint64_t value[2];
    if (!parse_digits(text->digits, text->length, value))
        return refuse(f, text->line, "not a fingerprint: it takes 1 to 32 hexadecimal digits");
    if (!f->bits)
        f->bits = text->length > 16 ? 128 : 64;
    if (f->bits <= 64 && (value[1] || (f->bits < 64 && value[0] >> f->bits))) {
        char why[80];
        snprintf(why, sizeof why, "the fingerprint has bits beyond a width of %d: see --bits", f->bits);
        return refuse(f, text->line, why);
    }
    memcpy(to, value, f->bits > 64 ? 16 : 8);
    if (f->names && !add_name(f, text))
        return DOPPEL_ERROR_MEMORY;
    f->count++;
    return DOPPEL_OK;
}

/* ---- lines ---- */

/* The next line without its end; NULL at the end of the file, or when *status says why. */
static const char *next_line(fingerprint_file *f, size_t *length, doppel_status *status) {
    size_t looked = 0;
    for (*status = DOPPEL_OK; *status == DOPPEL_OK;) {
        const char *start = f->bytes + f->from;
        size_t there = f->filled - f->from;
        const char *end = there > looked ? memchr(start + looked, '\n', there - looked) : NULL;
        if (end || f->ended) {
            *length = end ? (size_t)(end - start) : there;
            f->from += *length + (end != NULL);
            f->line++;
            return end || there ? start : NULL;
        }
        looked = there;
        *status = there < LONGEST ? fingerprints_fill(f, there + 1) : refuse(f, f->line + 1, "the line is too long");
    }
    return NULL;
}

doppel_status read_lines(void *user, uint64_t *to, size_t room, size_t *count) {
    fingerprint_file *f = user;
    size_t length, words = f->bits > 64 ? 2 : 1;
    doppel_status status = fingerprints_fill(f, 1);
    const char *line;
    for (*count = 0; status == DOPPEL_OK && *count < room && (line = next_line(f, &length, &status));) {
        while (length && (line[length - 1] == '\r' || line[length - 1] == ' '))
            length--;
        const char *tab = memchr(line, '\t', length);
        fingerprint_text text = {f->line, line, tab ? (size_t)(tab - line) : length, NULL, 0};
        if (tab) {
            text.name = tab + 1;
            text.name_length = length - text.length - 1;
        }
        status = fingerprints_take(f, &text, to + *count * words);
        *count += status == DOPPEL_OK;
    }
    return status;
}
