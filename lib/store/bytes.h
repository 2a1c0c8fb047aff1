/* bytes.h - how traces and records are put together: numbers of one to eight bytes, the lowest first; varints (seven
 * bits a byte, the lowest first); slices led by their length. A writer that has no memory and a reader that has no
 * bytes left, or finds others than a writer makes, are failed and stay so. */
#ifndef DP_STORE_BYTES_H
#define DP_STORE_BYTES_H

#include "base/base.h"

#include <math.h>

/* ---- writing ---- */

typedef struct writer {
    dp_buffer *to;
    bool failed;
} writer;

static inline void put_bytes(writer *w, const void *bytes, size_t length) {
    w->failed = w->failed || !dp_buffer_add(w->to, bytes, length);
}

/* The lowest `bytes` bytes of a number, the lowest first. */
static inline void put_fixed(writer *w, uint64_t number, size_t bytes) {
    uint8_t out[8];
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(number >> (8 * i));
    put_bytes(w, out, bytes);
}

static inline void put_varint(writer *w, uint64_t number) {
    uint8_t out[10];
    size_t length = 0;
    for (; number >= 128; number >>= 7)
        out[length++] = (uint8_t)(number | 128);
    out[length++] = (uint8_t)number;
    put_bytes(w, out, length);
}

static inline void put_slice(writer *w, doppel_slice slice) {
    put_varint(w, slice.length);
    put_bytes(w, slice.data, slice.length);
}

static inline void put_double(writer *w, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_fixed(w, bits, 8);
}

/* Takes back what was written when not all of it could be. */
static inline bool finish(writer *w, size_t before) {
    if (w->failed)
        w->to->size = before;
    return !w->failed;
}

/* ---- reading ---- */

typedef struct reader {
    const uint8_t *at, *end;
    bool failed;
} reader;

static inline const uint8_t *take_bytes(reader *r, uint64_t length) {
    if (r->failed || length > (uint64_t)(r->end - r->at)) {
        r->failed = true;
        return NULL;
    }
    r->at += length;
    return r->at - length;
}

static inline uint64_t take_fixed(reader *r, size_t bytes) {
    const uint8_t *from = take_bytes(r, bytes);
    return from ? dp_load_tail(from, bytes) : 0;
}

/* Only the shortest form is one, and only what fits 64 bits. */
static inline uint64_t take_varint(reader *r) {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const uint8_t *byte = take_bytes(r, 1);
        if (!byte)
            return 0;
        uint64_t seven = *byte & 127;
        number |= seven << shift;
        if (*byte < 128) {
            r->failed = (shift && !seven) || seven << shift >> shift != seven;
            return number;
        }
    }
    r->failed = true;
    return 0;
}

/* A number that is there only if it is not 0. */
static inline uint64_t take_nonzero(reader *r, uint64_t number) {
    r->failed = r->failed || !number;
    return number;
}

static inline doppel_slice take_slice(reader *r) {
    uint64_t length = take_varint(r);
    const uint8_t *from = take_bytes(r, length);
    return (doppel_slice){(const char *)from, from ? (size_t)length : 0};
}

static inline double take_double(reader *r) {
    uint64_t bits = take_fixed(r, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    r->failed = r->failed || isnan(value);
    return value;
}

#endif
