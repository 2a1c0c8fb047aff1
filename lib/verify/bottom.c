/* bottom.c - a bounded sample of a set of feature hashes, and the similarity of two sets by their samples.
 *
 * A sample holds the k smallest of the set's hashes, once they are mixed (docs/FORMAT.md section 13), of each its first
 * 16 bits below the leading zeros of the largest. The k smallest of a union are a sample of it without replacement, and
 * both samples say of each of these whether it is in its set: so the share that is in both estimates the Jaccard
 * similarity, with a standard error of sqrt(J (1 - J) / k) and less for sets that are hardly larger than k. Of two
 * numbers that differ, at most one in 160 meets another by being cut to 16 bits (k <= 200). */
#include "verify/verify.h"

#include <math.h>
#include <stdlib.h>

enum { HEAD = 5, VALUE_BITS = 16 };

/* The finaliser of splitmix64: hashes of any kind become evenly spread. */
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static bool put(dp_buffer *to, uint64_t value, size_t bytes) {
    uint8_t raw[8];
    for (size_t i = 0; i < bytes; i++)
        raw[i] = (uint8_t)(value >> 8 * i);
    return dp_buffer_add(to, raw, bytes);
}

bool dp_bottom_make(const uint64_t *set, size_t count, size_t most, dp_buffer *to) {
    uint64_t *mixed = malloc((2 * count + 1) * sizeof *mixed);
    if (!mixed)
        return false;
    for (size_t i = 0; i < count; i++)
        mixed[i] = mix(set[i]);
    if (count)
        dp_sort64(mixed, count, mixed + count);
    size_t kept = count < most ? count : most;
    int bits = kept && mixed[kept - 1] ? 64 - __builtin_clzll(mixed[kept - 1]) : 0;
    int shift = bits > VALUE_BITS ? bits - VALUE_BITS : 0;
    bool added = put(to, (uint64_t)shift, 1) && put(to, count < UINT32_MAX ? count : UINT32_MAX, 4);
    for (size_t i = 0; i < kept && added; i++)
        if (!i || mixed[i] >> shift != mixed[i - 1] >> shift)
            added = put(to, mixed[i] >> shift, 2);
    free(mixed);
    return added;
}

static unsigned value_at(doppel_slice sample, size_t i) {
    const uint8_t *at = (const uint8_t *)sample.data + HEAD + 2 * i;
    return at[0] | (unsigned)at[1] << 8;
}

size_t dp_bottom_count(doppel_slice sample) {
    const uint8_t *at = (const uint8_t *)sample.data;
    return sample.length < HEAD ? 0 : at[1] | (size_t)at[2] << 8 | (size_t)at[3] << 16 | (size_t)at[4] << 24;
}

bool dp_bottom_is_valid(doppel_slice sample) {
    if (sample.length < HEAD + 2 || (sample.length - HEAD) % 2 || (uint8_t)sample.data[0] > 64 - VALUE_BITS)
        return false;
    size_t values = (sample.length - HEAD) / 2;
    for (size_t i = 1; i < values; i++)
        if (value_at(sample, i) <= value_at(sample, i - 1))
            return false;
    return values <= dp_bottom_count(sample);
}

/* A place in a sample, whose values are taken at the scale of both. */
typedef struct sample_cursor {
    doppel_slice sample;
    size_t at, values;
    int down;
} sample_cursor;

static sample_cursor cursor_of(doppel_slice sample, int shift) {
    return (sample_cursor){sample, 0, (sample.length - HEAD) / 2, shift - (uint8_t)sample.data[0]};
}

static unsigned current(const sample_cursor *c) {
    return value_at(c->sample, c->at) >> c->down;
}

static void next(sample_cursor *c) {
    unsigned before = current(c);
    while (c->at < c->values && current(c) == before)
        c->at++;
}

/* How many values it has at this scale; writes them to `to`, unless that is NULL. */
static size_t distinct(sample_cursor c, uint64_t *to) {
    size_t count = 0;
    for (; c.at < c.values; next(&c), count++)
        if (to)
            to[count] = current(&c);
    return count;
}

int dp_bottom_scale(doppel_slice sample) {
    return (uint8_t)sample.data[0];
}

size_t dp_bottom_values(doppel_slice sample, int lost, uint64_t *to) {
    return distinct(cursor_of(sample, dp_bottom_scale(sample) + lost), to);
}

double dp_bottom_similarity(doppel_slice a, doppel_slice b, size_t most) {
    int shift_a = (uint8_t)a.data[0], shift_b = (uint8_t)b.data[0], shift = shift_a > shift_b ? shift_a : shift_b;
    size_t count_a = dp_bottom_count(a), count_b = dp_bottom_count(b), limit = SIZE_MAX, all = 0, shared = 0;
    sample_cursor x = cursor_of(a, shift), y = cursor_of(b, shift);
    if (count_a > most)
        limit = distinct(x, NULL);
    if (count_b > most && distinct(y, NULL) < limit)
        limit = distinct(y, NULL);
    for (; all < limit && (x.at < x.values || y.at < y.values); all++) {
        bool has_x = x.at < x.values && (y.at >= y.values || current(&x) <= current(&y));
        bool has_y = y.at < y.values && (x.at >= x.values || current(&y) <= current(&x));
        if (has_x)
            next(&x);
        if (has_y)
            next(&y);
        shared += has_x && has_y;
    }
    double ratio = count_a < count_b ? (double)count_a / (double)count_b : (double)count_b / (double)count_a;
    double similarity = all ? (double)shared / (double)all : 0;
    return similarity < ratio ? similarity : ratio;
}

double dp_bottom_containment(doppel_slice a, doppel_slice b, double similarity) {
    double in_a = (double)dp_bottom_count(a), in_b = (double)dp_bottom_count(b);
    double shared = similarity * (in_a + in_b) / (1 + similarity);
    return shared < in_a ? shared / in_a : 1;
}
