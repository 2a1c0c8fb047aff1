/* base.h - what every stage uses: errors, growing buffers, hash tables, JSON, unaligned loads, bits, the CPU level,
 * threads and ordered results, the clock, files.
 *
 * Names that start with `dp_` are the library's own: they have no public symbol. */
#ifndef DP_BASE_H
#define DP_BASE_H

#include "doppel.h"

#include <stdatomic.h>
#include <string.h>

/* ---- errors ---- */

/* Returns the status of `expression` from the calling function, unless it is DOPPEL_OK. For functions with nothing to
 * clean up. */
#define DP_TRY(expression)                          \
    do {                                            \
        doppel_status dp_try_status = (expression); \
        if (dp_try_status != DOPPEL_OK)             \
            return dp_try_status;                   \
    } while (0)

/* Evaluates `expression` into `status` if that is DOPPEL_OK so far. For functions that clean up at their end:
 *     doppel_status status = open_it(&it);
 *     DP_THEN(status, read_it(&it));
 *     close_it(&it);
 *     return status; */
#define DP_THEN(status, expression)  \
    do {                             \
        if ((status) == DOPPEL_OK)   \
            (status) = (expression); \
    } while (0)

/* Fills *error (may be NULL) and returns the code, so that `return dp_fail(...)` is one line. */
doppel_status dp_fail(doppel_error *error, doppel_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a place in a file; line and position may be 0. */
doppel_status dp_fail_at(doppel_error *error, doppel_status code, const char *file, uint64_t line, const char *format,
                         ...) __attribute__((format(printf, 5, 6)));

/* "no memory" */
doppel_status dp_no_memory(doppel_error *error);

/* ---- memory ---- */

/* Makes room for `need` items of `size` bytes in *data, at least doubling; false when out of memory, and then
 * nothing has changed. dp_reserve(&array, &capacity, count + 1, sizeof *array) */
bool dp_reserve(void *data, size_t *capacity, size_t need, size_t size);

/* Copies options that begin with their own size, up to the smaller of the caller's and the library's size. */
static inline void dp_copy_options(void *to, const void *from, size_t size) {
    size_t given;
    memcpy(&given, from, sizeof given);
    memcpy(to, from, given < size ? given : size);
}

/* Any bytes as a slice. */
static inline doppel_slice dp_bytes(const void *bytes, size_t length) {
    return (doppel_slice){(const char *)bytes, length};
}

/* Bytes that grow. Zero is an empty buffer. */
typedef struct dp_buffer {
    char *data;
    size_t size, capacity;
} dp_buffer;

bool dp_buffer_add(dp_buffer *buffer, const void *bytes, size_t length);
bool dp_buffer_printf(dp_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void dp_buffer_free(dp_buffer *buffer);

/* ---- one hash table: hashmap.c; UTF-8 ---- */

#include "base/hashmap.h"
#include "base/utf8.h"

/* ---- JSON: json.c ---- */

/* Writes JSON: set `buffer` to append to it, or `to` and `room` to write as far as there is room and count the rest.
 *     dp_json_writer w = {.buffer = &buffer};
 *     dp_json_text(&w, "{");
 *     dp_json_key(&w, "id");
 *     dp_json_string(&w, id);
 *     dp_json_text(&w, "}");
 *     if (w.failed) ... no memory: the buffer holds a part only */
typedef struct dp_json_writer {
    dp_buffer *buffer;
    char *to;
    size_t room;
    size_t length; /* written so far, including what did not fit into `room` */
    bool failed;
    char last; /* byte written */
} dp_json_writer;

/* Bytes as they are. */
void dp_json_put(dp_json_writer *w, const char *bytes, size_t length);
void dp_json_text(dp_json_writer *w, const char *text);
/* "name":, after a comma unless an object was just opened; the name needs no escapes. */
void dp_json_key(dp_json_writer *w, const char *name);
/* A quoted string, or null where its data is NULL; each invalid sequence of UTF-8 becomes U+FFFD. */
void dp_json_string(dp_json_writer *w, doppel_slice string);
void dp_json_bool(dp_json_writer *w, bool value);
void dp_json_count(dp_json_writer *w, uint64_t value);
/* A number with six significant digits, whatever the locale; NaN is null. */
void dp_json_share(dp_json_writer *w, double share);

/* Appends a string as JSON, quotes included; false when out of memory. */
bool dp_json_add(dp_buffer *out, const char *bytes, size_t length);

/* ---- files that are complete or absent: newfile.c ---- */

/* The error of a file that could not be written, by errno; a folder that does not exist is named. */
doppel_status dp_fail_write(doppel_error *error, const char *path, int reason);

/* Where an output goes: links are followed. *place is the existing or future file (to be freed), or else NULL, and
 * *number the descriptor to write to: a device, a pipe, a socket, or a descriptor of this process that the path names.
 * Returns 0 or an errno. */
int dp_output_find(const char *path, char **place, int *number);

/* A file that is written beside its path and renamed into place when complete; what is never replaced (see
 * dp_output_find) gets the bytes at the end. */
typedef struct dp_newfile {
    int number;       /* to write to, and to read from */
    const char *path; /* as it was given; borrowed */
    char *place, *beside;
    int straight; /* descriptor to copy to at the end; -1: it is renamed into place */
    bool synced;  /* by the caller, after the last byte */
} dp_newfile;

doppel_status dp_newfile_create(dp_newfile *file, const char *path, doppel_error *error);

/* Syncs the file, unless it is synced, and renames it into place; or removes it, if `reason` is not 0 but the errno of
 * a failed write. Frees what `file` holds either way. */
doppel_status dp_newfile_finish(dp_newfile *file, int reason, doppel_error *error);

/* ---- bits and bytes ---- */

static inline uint64_t dp_load64(const void *p) {
    uint64_t v;
    memcpy(&v, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

static inline uint32_t dp_load32(const void *p) {
    uint32_t v;
    memcpy(&v, p, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    return v;
}

static inline uint64_t dp_rotl64(uint64_t x, int r) {
    return x << r | x >> (64 - r);
}

/* The value of a hexadecimal digit, 0 to 15, or -1. */
static inline int dp_hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    int letter = (c | 32) - 'a';
    return letter >= 0 && letter < 6 ? letter + 10 : -1;
}

/* 1 to 8 bytes as a little-endian number, without reading past them. */
static inline uint64_t dp_load_tail(const void *p, size_t length) {
    uint64_t v = 0;
    for (size_t i = 0; i < length; i++)
        v |= (uint64_t)((const uint8_t *)p)[i] << (8 * i);
    return v;
}

/* Sorts 64-bit numbers ascending (by bytes, in linear time); `scratch` has space for `count`. */
void dp_sort64(uint64_t *numbers, size_t count, uint64_t *scratch);

/* Removes repeats from a sorted array; returns how many are left. */
size_t dp_unique64(uint64_t *sorted, size_t count);

/* ---- published hashes of bytes (docs/FORMAT.md section 3 names the variants) ---- */

/* MurmurHash3 x64_128, the first half. */
uint64_t dp_murmur3(const void *bytes, size_t length, uint32_t seed);

/* lookup3 hashlittle2: c in the low half, b in the high half. */
uint64_t dp_jenkins(const void *bytes, size_t length, uint64_t seed);

uint64_t dp_djb2(const void *bytes, size_t length, uint64_t seed);

/* SipHash-2-4: without the key, collisions cannot be constructed. The key is as in the paper, its first 8 bytes as a
 * little-endian number and its last 8. */
uint64_t dp_siphash(const void *bytes, size_t length, const uint64_t key[2]);

/* ---- the CPU ---- */

enum { DP_CPU_PORTABLE = 0, DP_CPU_AVX2 = 1, DP_CPU_NEON = 1, DP_CPU_AVX512 = 2 };

/* The level of this machine, lowered by DOPPEL_CPU. Determined once, at the first call. */
int dp_cpu_level(void);

/* The level of this machine, ignoring DOPPEL_CPU: for tests of the variants. */
int dp_cpu_best(void);

/* ---- threads, the clock, memory, temporary files: machine.c; ordered results of threads: ordered.c; large arrays
 * shared by threads: parallel.c ---- */

#include "base/machine.h"
#include "base/ordered.h"
#include "base/parallel.h"

#endif
