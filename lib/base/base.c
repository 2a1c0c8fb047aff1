/* base.c - errors, growing memory, sorting: the few things every stage needs. */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *doppel_version(void) {
    return DOPPEL_VERSION;
}

const char *doppel_status_name(doppel_status status) {
    switch (status) {
    case DOPPEL_OK: return "ok";
    case DOPPEL_ERROR_USAGE: return "bad usage";
    case DOPPEL_ERROR_INPUT: return "bad input";
    case DOPPEL_ERROR_STORE: return "bad index or table";
    case DOPPEL_ERROR_INTERRUPTED: return "interrupted";
    case DOPPEL_ERROR_MEMORY: return "no memory";
    case DOPPEL_ERROR_IO: return "read or write failed";
    case DOPPEL_ERROR_AWAY: return "no answer";
    }
    return "unknown";
}

/* Keeps the end of a path that is too long. */
static void copy_path(doppel_error *error, const char *path) {
    size_t length = strlen(path), room = sizeof error->file - 1;
    bool fits = length <= room;
    snprintf(error->file, sizeof error->file, "%s%s", fits ? "" : "...", fits ? path : path + length - (room - 3));
}

static void fill(doppel_error *error, doppel_status code, const char *file, uint64_t line, const char *format,
                 va_list args) {
    if (!error)
        return;
    memset(error, 0, sizeof *error);
    error->code = code;
    error->line = line;
    copy_path(error, file);
    vsnprintf(error->message, sizeof error->message, format, args);
}

doppel_status dp_fail(doppel_error *error, doppel_status code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fill(error, code, "", 0, format, args);
    va_end(args);
    return code;
}

doppel_status dp_fail_at(doppel_error *error, doppel_status code, const char *file, uint64_t line, const char *format,
                         ...) {
    va_list args;
    va_start(args, format);
    fill(error, code, file, line, format, args);
    va_end(args);
    return code;
}

doppel_status dp_no_memory(doppel_error *error) {
    return dp_fail(error, DOPPEL_ERROR_MEMORY, "no memory");
}

bool dp_reserve(void *data, size_t *capacity, size_t need, size_t size) {
    if (need <= *capacity)
        return true;
    size_t room = *capacity < 16 ? 16 : *capacity;
    while (room < need)
        room = room > SIZE_MAX / 2 ? need : room * 2;
    if (room > SIZE_MAX / size)
        return false;
    void *old, *moved;
    memcpy(&old, data, sizeof old);
    if (!(moved = realloc(old, room * size)))
        return false;
    memcpy(data, &moved, sizeof moved);
    *capacity = room;
    return true;
}

bool dp_buffer_add(dp_buffer *buffer, const void *bytes, size_t length) {
    if (!length)
        return true;
    if (!dp_reserve(&buffer->data, &buffer->capacity, buffer->size + length, 1))
        return false;
    memcpy(buffer->data + buffer->size, bytes, length);
    buffer->size += length;
    return true;
}

bool dp_buffer_printf(dp_buffer *buffer, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    /* One more byte than is kept, for vsnprintf's NUL. */
    if (length < 0 || !dp_reserve(&buffer->data, &buffer->capacity, buffer->size + (size_t)length + 1, 1))
        return false;
    va_start(args, format);
    vsnprintf(buffer->data + buffer->size, (size_t)length + 1, format, args);
    va_end(args);
    buffer->size += (size_t)length;
    return true;
}

void dp_buffer_free(dp_buffer *buffer) {
    free(buffer->data);
    *buffer = (dp_buffer){0};
}

/* ---- sorting ----
 *
 * Evenly distributed numbers, such as hashes, are placed by their top bits, about one per bucket, and each bucket is
 * sorted by insertion. Others are radix-sorted byte by byte. */

/* Below this many, insertion sort alone is fastest. */
#define SMALL_SORT 24

/* Bucket sort: at most this many numbers, and at most MOST_TOGETHER per bucket. */
enum { MOST_BUCKET_SORTED = 1 << 14, BUCKET_BITS = 12, MOST_PER_BUCKET = 16 };

/* Sorts `from` into `to`, which may be `from`; fast if each number is near its place. */
static void insertion_sort64(const uint64_t *from, size_t count, uint64_t *to) {
    for (size_t i = 0; i < count; i++) {
        uint64_t number = from[i];
        size_t at = i;
        for (; at && to[at - 1] > number; at--)
            to[at] = to[at - 1];
        to[at] = number;
    }
}

/* False, with nothing changed, if there are too many numbers or they are not evenly distributed. */
static bool bucket_sort64(uint64_t *numbers, size_t count, uint64_t *scratch) {
    uint16_t places[1 << BUCKET_BITS];
    int bits = 63 - __builtin_clzll(count), shift;
    if (count > MOST_BUCKET_SORTED)
        return false;
    bits = bits + 1 < BUCKET_BITS ? bits + 1 : BUCKET_BITS;
    shift = 64 - bits;
    memset(places, 0, sizeof *places << bits);
    for (size_t i = 0; i < count; i++)
        places[numbers[i] >> shift]++;
    unsigned next = 0, most = 0;
    for (size_t place = 0; place < (size_t)1 << bits; place++) {
        unsigned here = places[place];
        most = here > most ? here : most;
        places[place] = (uint16_t)next;
        next += here;
    }
    if (most > MOST_PER_BUCKET)
        return false;
    for (size_t i = 0; i < count; i++)
        scratch[places[numbers[i] >> shift]++] = numbers[i];
    insertion_sort64(scratch, count, numbers);
    return true;
}

static void scatter_byte(const uint64_t *from, uint64_t *to, size_t count, int shift, size_t *places) {
    size_t next = 0;
    for (int value = 0; value < 256; value++) {
        size_t here = places[value];
        places[value] = next;
        next += here;
    }
    for (size_t i = 0; i < count; i++)
        to[places[from[i] >> shift & 255]++] = from[i];
}

void dp_sort64(uint64_t *numbers, size_t count, uint64_t *scratch) {
    if (count < SMALL_SORT) {
        insertion_sort64(numbers, count, numbers);
        return;
    }
    if (bucket_sort64(numbers, count, scratch))
        return;
    size_t places[8][256] = {{0}};
    for (size_t i = 0; i < count; i++)
        for (int byte = 0; byte < 8; byte++)
            places[byte][numbers[i] >> (8 * byte) & 255]++;
    uint64_t *from = numbers, *to = scratch;
    for (int byte = 0; byte < 8; byte++) {
        /* A byte that is the same in all numbers sorts nothing. */
        if (places[byte][from[0] >> (8 * byte) & 255] == count)
            continue;
        scatter_byte(from, to, count, 8 * byte, places[byte]);
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != numbers)
        memcpy(numbers, from, count * sizeof *numbers);
}

size_t dp_unique64(uint64_t *sorted, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!kept || sorted[kept - 1] != sorted[i])
            sorted[kept++] = sorted[i];
    return kept;
}
