/* join.c - the kernels of joins: scatter64, scatter128 and partition move fingerprints to where their key belongs;
 * bucket_pairs and row_pairs find those that share a key and are near each other. */
#include "kernel/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- scatter: sorts fingerprints and their positions by a key into lines of memory, each key where it belongs.
 *
 * A line is filled in the cache, one line per key, and written to memory when it is full. The variants differ only in
 * that step: they use non-temporal stores, as the caches would only evict the line again. */

typedef void (*flush_line_fn)(dp_line *to, const dp_line *from);

static inline __attribute__((always_inline)) void scatter_narrow(const dp_scatter *s, const uint64_t *values,
                                                                 const uint32_t *positions, size_t count,
                                                                 flush_line_fn flush) {
    const uint32_t mask = (1U << s->width) - 1, first = s->first, keys = s->keys;
    const int shift = s->shift;
    dp_line *open = s->open, *lines = s->lines;
    uint32_t *next = s->next;
    for (size_t i = 0; i < count; i++) {
        uint32_t key = ((uint32_t)(values[i] >> shift) & mask) - first;
        if (key >= keys)
            continue;
        dp_line_narrow *line = &open[key].narrow;
        uint32_t fill = line->fill;
        line->value[fill] = values[i];
        line->position[fill] = positions[i];
        line->fill = ++fill;
        if (fill == DP_LINE_NARROW) {
            flush(&lines[next[key]++], &open[key]);
            line->fill = 0;
        }
    }
}

static inline __attribute__((always_inline)) void scatter_wide(const dp_scatter *s, const uint64_t *values,
                                                               const uint32_t *positions, size_t count,
                                                               flush_line_fn flush) {
    const uint32_t mask = (1U << s->width) - 1;
    for (size_t i = 0; i < count; i++) {
        unsigned __int128 value = (unsigned __int128)values[2 * i + 1] << 64 | values[2 * i];
        uint32_t key = ((uint32_t)(value >> s->shift) & mask) - s->first;
        if (key >= s->keys)
            continue;
        dp_line_wide *line = &s->open[key].wide;
        uint32_t fill = line->fill;
        line->value[fill][0] = values[2 * i];
        line->value[fill][1] = values[2 * i + 1];
        line->position[fill] = positions[i];
        line->fill = ++fill;
        if (fill == DP_LINE_WIDE) {
            flush(&s->lines[s->next[key]++], &s->open[key]);
            line->fill = 0;
        }
    }
}

static inline void flush_line_portable(dp_line *to, const dp_line *from) {
    *to = *from;
}

static void scatter64_portable(const dp_scatter *scatter, const uint64_t *values, const uint32_t *positions,
                               size_t count) {
    scatter_narrow(scatter, values, positions, count, flush_line_portable);
}

static void scatter128_portable(const dp_scatter *scatter, const uint64_t *values, const uint32_t *positions,
                                size_t count) {
    scatter_wide(scatter, values, positions, count, flush_line_portable);
}

#if defined(__x86_64__)
/* The fences make the lines visible to the thread that waits for this one. */

DP_TARGET_AVX512 static inline void flush_line_avx512(dp_line *to, const dp_line *from) {
    _mm512_stream_si512((void *)to, _mm512_load_si512(from));
}

DP_TARGET_AVX512 static void scatter64_avx512(const dp_scatter *scatter, const uint64_t *values,
                                              const uint32_t *positions, size_t count) {
    scatter_narrow(scatter, values, positions, count, flush_line_avx512);
    _mm_sfence();
}

DP_TARGET_AVX512 static void scatter128_avx512(const dp_scatter *scatter, const uint64_t *values,
                                               const uint32_t *positions, size_t count) {
    scatter_wide(scatter, values, positions, count, flush_line_avx512);
    _mm_sfence();
}

DP_TARGET_AVX2 static inline void flush_line_avx2(dp_line *to, const dp_line *from) {
    _mm256_stream_si256((__m256i *)to, _mm256_load_si256((const __m256i *)from));
    _mm256_stream_si256((__m256i *)to + 1, _mm256_load_si256((const __m256i *)from + 1));
}

DP_TARGET_AVX2 static void scatter64_avx2(const dp_scatter *scatter, const uint64_t *values, const uint32_t *positions,
                                          size_t count) {
    scatter_narrow(scatter, values, positions, count, flush_line_avx2);
    _mm_sfence();
}

DP_TARGET_AVX2 static void scatter128_avx2(const dp_scatter *scatter, const uint64_t *values, const uint32_t *positions,
                                           size_t count) {
    scatter_wide(scatter, values, positions, count, flush_line_avx2);
    _mm_sfence();
}
#endif

DP_KERNEL_LIST(scatter64, DP_AVX512(scatter64_avx512) DP_AVX2(scatter64_avx2) DP_PORTABLE(scatter64_portable))
DP_KERNEL_LIST(scatter128, DP_AVX512(scatter128_avx512) DP_AVX2(scatter128_avx2) DP_PORTABLE(scatter128_portable))

/* ---- partition: moves keys and their numbers into slices, by the top bits of the key.
 *
 * A line of a slice is filled in the cache and is written to memory when full: 256 bytes at once, as memory is slow to
 * switch rows, and several hundred slices alternate. The variants differ only in that step: they use non-temporal
 * stores. */

typedef void (*flush_slice_fn)(uint64_t *to, const uint64_t *from);

static inline __attribute__((always_inline)) void partition_all(const dp_partition *d, const uint64_t *values,
                                                                uint32_t first, uint32_t count, flush_slice_fn flush) {
    const uint64_t mask = ((uint64_t)1 << d->width) - 1;
    const int shift = d->shift, down = d->width - d->slice_bits;
    const size_t stride = d->stride;
    uint64_t *open = d->open, *entries = d->entries;
    uint32_t *fills = d->fills;
    const uint32_t *starts = d->starts;
    for (uint32_t i = first; i < first + count; i++) {
        uint64_t key = values[i * stride] >> shift & mask;
        size_t slice = key >> down;
        uint32_t fill = fills[slice]++, at = fill % DP_PARTITION_LINE;
        uint64_t *line = open + slice * DP_PARTITION_LINE;
        line[at] = key << 32 | i;
        if (at == DP_PARTITION_LINE - 1)
            flush(entries + starts[slice] + (fill - at), line);
    }
}

static inline void flush_slice_portable(uint64_t *to, const uint64_t *from) {
    memcpy(to, from, DP_PARTITION_LINE * sizeof *to);
}

static void partition_portable(const dp_partition *partition, const uint64_t *values, uint32_t first, uint32_t count) {
    partition_all(partition, values, first, count, flush_slice_portable);
}

#if defined(__x86_64__)
DP_TARGET_AVX512 static inline void flush_slice_avx512(uint64_t *to, const uint64_t *from) {
    for (int i = 0; i < DP_PARTITION_LINE; i += 8)
        _mm512_stream_si512((void *)(to + i), _mm512_load_si512(from + i));
}

DP_TARGET_AVX512 static void partition_avx512(const dp_partition *partition, const uint64_t *values, uint32_t first,
                                              uint32_t count) {
    partition_all(partition, values, first, count, flush_slice_avx512);
    _mm_sfence();
}

DP_TARGET_AVX2 static inline void flush_slice_avx2(uint64_t *to, const uint64_t *from) {
    for (int i = 0; i < DP_PARTITION_LINE; i += 4)
        _mm256_stream_si256((__m256i *)(to + i), _mm256_load_si256((const __m256i *)(from + i)));
}

DP_TARGET_AVX2 static void partition_avx2(const dp_partition *partition, const uint64_t *values, uint32_t first,
                                          uint32_t count) {
    partition_all(partition, values, first, count, flush_slice_avx2);
    _mm_sfence();
}
#endif

DP_KERNEL_LIST(partition, DP_AVX512(partition_avx512) DP_AVX2(partition_avx2) DP_PORTABLE(partition_portable))

/* ---- bucket_pairs: numbers that share a key and are near each other, found while they go into buckets.
 *
 * A bucket is one cache line of 16 words of 32 bits, one per number, so that a number is compared with all that came
 * before it by one load. It holds only 32 bits of each: a hit is a candidate, which the caller compares in full.
 * Numbers that find their bucket full are left out, and the bucket is marked. */

/* The slots of a line below `fill` that are within `distance` of the word. */
typedef uint32_t (*match_fn)(const uint32_t *line, uint32_t word, int distance, uint32_t fill);

/* How many keys are computed ahead, all at once. */
enum { AHEAD = 512 };

static inline __attribute__((always_inline)) void look_ahead(const dp_bucket_pairs *c, size_t from, size_t count,
                                                             uint32_t *keys, uint32_t *words) {
    const uint64_t *numbers = c->numbers + from, mask = ((uint64_t)1 << c->width) - 1;
    const int shift = c->shift, rotate = c->rotate & 63, back = -c->rotate & 63;
    for (size_t i = 0; i < count; i++) {
        keys[i] = (uint32_t)(numbers[i] >> shift & mask);
        words[i] = (uint32_t)(numbers[i] >> rotate | numbers[i] << back);
    }
}

/* Compares the numbers whose keys were computed ahead; returns the number of hits so far. */
static inline __attribute__((always_inline)) size_t place(dp_bucket_pairs *c, size_t from, size_t count,
                                                          const uint32_t *keys, const uint32_t *words, size_t found,
                                                          match_fn match) {
    uint8_t *fills = c->fills;
    uint32_t *slots = c->slots;
    uint16_t *ids = c->ids;
    const int distance = c->distance;
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)keys[i] * DP_BUCKET_SLOTS;
        uint32_t fill = fills[keys[i]];
        if (__builtin_expect(fill >= DP_BUCKET_SLOTS, 0)) {
            fills[keys[i]] = DP_BUCKET_OVERFLOW;
            c->overflow++;
            continue;
        }
        uint32_t matches = match(slots + at, words[i], distance, fill);
        if (__builtin_expect(matches, 0)) {
            if (found > c->room)
                return DP_BUCKET_HITS_FULL;
            for (; matches; matches &= matches - 1)
                c->hits[found++] = (uint32_t)ids[at + (uint32_t)__builtin_ctz(matches)] << 16 | (uint32_t)(from + i);
        }
        slots[at + fill] = words[i];
        ids[at + fill] = (uint16_t)(from + i);
        fills[keys[i]] = (uint8_t)(fill + 1);
    }
    return found;
}

static inline __attribute__((always_inline)) size_t bucket_pairs_all(dp_bucket_pairs *c, match_fn match) {
    uint32_t keys[AHEAD], words[AHEAD];
    size_t found = 0;
    c->overflow = 0;
    memset(c->fills, 0, (size_t)1 << c->width);
    for (size_t from = 0; from < c->count && found != DP_BUCKET_HITS_FULL; from += AHEAD) {
        size_t count = c->count - from < AHEAD ? c->count - from : AHEAD;
        look_ahead(c, from, count, keys, words);
        found = place(c, from, count, keys, words, found, match);
    }
    return found;
}

static inline uint32_t match_portable(const uint32_t *line, uint32_t word, int distance, uint32_t fill) {
    uint32_t matches = 0;
    for (uint32_t i = 0; i < fill; i++)
        matches |= (uint32_t)(__builtin_popcount(line[i] ^ word) <= distance) << i;
    return matches;
}

static size_t bucket_pairs_portable(dp_bucket_pairs *pairs) {
    return bucket_pairs_all(pairs, match_portable);
}

#if defined(__x86_64__)
DP_TARGET_AVX512 static inline uint32_t match_avx512(const uint32_t *line, uint32_t word, int distance, uint32_t fill) {
    __m512i differ = _mm512_xor_si512(_mm512_load_si512(line), _mm512_set1_epi32((int)word));
    return _bzhi_u32(_mm512_cmple_epu32_mask(_mm512_popcnt_epi32(differ), _mm512_set1_epi32(distance)), fill);
}

DP_TARGET_AVX512 static size_t bucket_pairs_avx512(dp_bucket_pairs *pairs) {
    return bucket_pairs_all(pairs, match_avx512);
}

/* Bits set in each word of 32, by nibbles. */
DP_TARGET_AVX2 static inline __m256i count_avx2(__m256i x) {
    __m256i table = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    __m256i nibble = _mm256_set1_epi8(15);
    __m256i bytes = _mm256_add_epi8(_mm256_shuffle_epi8(table, _mm256_and_si256(x, nibble)),
                                    _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble)));
    return _mm256_madd_epi16(_mm256_maddubs_epi16(bytes, _mm256_set1_epi8(1)), _mm256_set1_epi16(1));
}

DP_TARGET_AVX2 static inline uint32_t match_avx2(const uint32_t *line, uint32_t word, int distance, uint32_t fill) {
    __m256i query = _mm256_set1_epi32((int)word), beyond = _mm256_set1_epi32(distance + 1);
    __m256i low = count_avx2(_mm256_xor_si256(_mm256_load_si256((const __m256i *)line), query));
    __m256i high = count_avx2(_mm256_xor_si256(_mm256_load_si256((const __m256i *)line + 1), query));
    int low_mask = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(beyond, low)));
    int high_mask = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(beyond, high)));
    return _bzhi_u32((uint32_t)low_mask | (uint32_t)high_mask << 8, fill);
}

DP_TARGET_AVX2 static size_t bucket_pairs_avx2(dp_bucket_pairs *pairs) {
    return bucket_pairs_all(pairs, match_avx2);
}
#endif

DP_KERNEL_LIST(bucket_pairs,
               DP_AVX512(bucket_pairs_avx512) DP_AVX2(bucket_pairs_avx2) DP_PORTABLE(bucket_pairs_portable))

/* ---- row_pairs: numbers that share a bucket and are near each other, where the buckets are sorted rows.
 *
 * Like bucket_pairs, for buckets of a dozen or more. Each number of a row is compared with the whole row, including
 * itself and those before it: so every number takes the same steps, which the CPU predicts. The unwanted half is
 * examined only when there is a hit. */

/* Writes the pairs i < j of a row for the mask of all j near i; bit j stands for number j. */
static inline size_t write_row(const uint64_t *row, size_t i, uint64_t mask, uint64_t *hits, size_t found) {
    for (mask &= ~(uint64_t)1 << i; mask; mask &= mask - 1)
        hits[found++] = row[i] << 32 | (uint32_t)row[__builtin_ctzll(mask)];
    return found;
}

/* Which of a row's numbers are near number i; i itself always is. */
typedef uint64_t (*row_fn)(const uint64_t *row, size_t count, size_t i, int distance);

static inline __attribute__((always_inline)) size_t row_pairs_all(dp_row_pairs *r, row_fn near_in_row) {
    const uint32_t *bounds = r->bounds;
    uint64_t *hits = r->hits;
    size_t found = 0, bucket = r->next;
    for (; bucket < r->buckets && found <= r->room; bucket++) {
        const uint64_t *row = r->numbers + bounds[bucket];
        size_t count = bounds[bucket + 1] - bounds[bucket];
        if (count > DP_ROW_PAIRS_MOST)
            continue;
        for (size_t i = 0; i + 1 < count; i++) {
            uint64_t mask = near_in_row(row, count, i, r->distance);
            if (__builtin_expect((mask & (mask - 1)) != 0, 0))
                found = write_row(row, i, mask, hits, found);
        }
    }
    r->next = bucket;
    return found;
}

static inline __attribute__((always_inline)) uint64_t row_portable(const uint64_t *row, size_t count, size_t i,
                                                                   int distance) {
    uint64_t mask = 0;
    for (size_t j = 0; j < count; j++)
        mask |= (uint64_t)(__builtin_popcountll((row[i] ^ row[j]) >> 32) <= distance) << j;
    return mask;
}

static size_t row_pairs_portable(dp_row_pairs *pairs) {
    return row_pairs_all(pairs, row_portable);
}

#if defined(__x86_64__)
DP_TARGET_AVX512 static inline uint64_t row_avx512(const uint64_t *row, size_t count, size_t i, int distance) {
    __m512i number = _mm512_set1_epi64((long long)row[i]), limit = _mm512_set1_epi64(distance);
    uint64_t mask = 0;
    for (size_t j = 0; j < count; j += 8) {
        __m512i differ = _mm512_srli_epi64(_mm512_xor_si512(_mm512_loadu_si512(row + j), number), 32);
        mask |= (uint64_t)_mm512_cmple_epu64_mask(_mm512_popcnt_epi64(differ), limit) << j;
    }
    return _bzhi_u64(mask, (unsigned)count);
}

DP_TARGET_AVX512 static size_t row_pairs_avx512(dp_row_pairs *pairs) {
    return row_pairs_all(pairs, row_avx512);
}

/* The portable loop, with an instruction to count bits. */
DP_TARGET_AVX2 static size_t row_pairs_avx2(dp_row_pairs *pairs) {
    return row_pairs_all(pairs, row_portable);
}
#endif

DP_KERNEL_LIST(row_pairs, DP_AVX512(row_pairs_avx512) DP_AVX2(row_pairs_avx2) DP_PORTABLE(row_pairs_portable))
