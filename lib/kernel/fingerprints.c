/* fingerprints.c - the kernels on columns of fingerprints: near32, near64 and near128 find what is near a query,
 * reorder permutes bits. */
#include "kernel/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- near: which numbers of a column differ from a query in few bits.
 *
 * Columns are buckets of an index or tiles of a join: hits are rare, so the variants first test whether a block of 64
 * numbers (near32; 32 for near64) has any, and write positions only then. They read no byte beyond the column. */

/* Bits set, without a table, so that the portable loops are vectorised. */
static inline uint32_t count32(uint32_t x) {
    x -= x >> 1 & 0x55555555;
    x = (x & 0x33333333) + (x >> 2 & 0x33333333);
    x = (x + (x >> 4)) & 0x0F0F0F0F;
    return x * 0x01010101 >> 24;
}

static inline uint64_t count64(uint64_t x) {
    x -= x >> 1 & 0x5555555555555555;
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F;
    return x * 0x0101010101010101 >> 56;
}

static size_t near32_portable(const uint32_t *column, size_t count, uint32_t query, int distance, uint32_t *hits) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        hits[found] = (uint32_t)i;
        found += count32(column[i] ^ query) <= (uint32_t)distance;
    }
    return found;
}

static size_t near64_portable(const uint64_t *column, size_t count, uint64_t query, int distance, uint32_t *hits) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        hits[found] = (uint32_t)i;
        found += count64(column[i] ^ query) <= (uint64_t)distance;
    }
    return found;
}

static size_t near128_portable(const uint64_t *column, size_t count, const uint64_t query[2], int distance,
                               uint32_t *hits) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        hits[found] = (uint32_t)i;
        uint64_t differ = count64(column[2 * i] ^ query[0]) + count64(column[2 * i + 1] ^ query[1]);
        found += differ <= (uint64_t)distance;
    }
    return found;
}

#if defined(__x86_64__)
/* Appends the positions base + i of the bits i set in the mask. */
static inline size_t write_hits(uint64_t mask, size_t base, uint32_t *hits, size_t found) {
    for (; mask; mask &= mask - 1)
        hits[found++] = (uint32_t)(base + (size_t)__builtin_ctzll(mask));
    return found;
}

/* Which numbers of a vector differ from the query in few bits; `size` is the bytes of a number. */
DP_TARGET_AVX512 static inline __attribute__((always_inline)) uint64_t mask_avx512(__m512i x, __m512i query,
                                                                                   __m512i limit, size_t size) {
    __m512i differ = _mm512_xor_si512(x, query);
    if (size == 4)
        return _mm512_cmple_epu32_mask(_mm512_popcnt_epi32(differ), limit);
    __m512i counts = _mm512_popcnt_epi64(differ);
    if (size == 8)
        return _mm512_cmple_epu64_mask(counts, limit);
    /* Four pairs of halves: the counts of both are added in both places, and one of the two answers is kept. */
    counts = _mm512_add_epi64(counts, _mm512_shuffle_epi32(counts, _MM_PERM_BADC));
    return _pext_u64(_mm512_cmple_epu64_mask(counts, limit), 0x55);
}

/* The loop of all three: four vectors of `lanes` numbers a step, then what is left, a vector a step. */
DP_TARGET_AVX512 static inline __attribute__((always_inline)) size_t
near_avx512(const void *column, size_t count, __m512i query, __m512i limit, size_t size, uint32_t *hits) {
    const char *bytes = column;
    size_t found = 0, i = 0, lanes = 64 / size;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
        const char *p = bytes + i * size;
        uint64_t mask = mask_avx512(_mm512_loadu_si512(p), query, limit, size);
        mask |= mask_avx512(_mm512_loadu_si512(p + 64), query, limit, size) << lanes;
        mask |= mask_avx512(_mm512_loadu_si512(p + 128), query, limit, size) << 2 * lanes;
        mask |= mask_avx512(_mm512_loadu_si512(p + 192), query, limit, size) << 3 * lanes;
        if (__builtin_expect(mask != 0, 0))
            found = write_hits(mask, i, hits, found);
    }
    for (; i < count; i += lanes) {
        size_t left = count - i < lanes ? count - i : lanes;
        __mmask16 part = (__mmask16)((1U << left * (size / 4)) - 1); /* a bit for each four bytes */
        __m512i x = _mm512_maskz_loadu_epi32(part, bytes + i * size);
        uint64_t mask = mask_avx512(x, query, limit, size) & ((1U << left) - 1);
        if (__builtin_expect(mask != 0, 0))
            found = write_hits(mask, i, hits, found);
    }
    return found;
}

DP_TARGET_AVX512 static size_t near32_avx512(const uint32_t *column, size_t count, uint32_t query, int distance,
                                             uint32_t *hits) {
    return near_avx512(column, count, _mm512_set1_epi32((int)query), _mm512_set1_epi32(distance), 4, hits);
}

DP_TARGET_AVX512 static size_t near64_avx512(const uint64_t *column, size_t count, uint64_t query, int distance,
                                             uint32_t *hits) {
    return near_avx512(column, count, _mm512_set1_epi64((long long)query), _mm512_set1_epi64(distance), 8, hits);
}

DP_TARGET_AVX512 static size_t near128_avx512(const uint64_t *column, size_t count, const uint64_t query[2],
                                              int distance, uint32_t *hits) {
    long long low = (long long)query[0], high = (long long)query[1];
    __m512i both = _mm512_set_epi64(high, low, high, low, high, low, high, low);
    return near_avx512(column, count, both, _mm512_set1_epi64(distance), 16, hits);
}

/* Bits set in each byte, by nibbles. */
DP_TARGET_AVX2 static inline __m256i count_bytes_avx2(__m256i x) {
    __m256i table = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    __m256i nibble = _mm256_set1_epi8(15);
    __m256i low = _mm256_shuffle_epi8(table, _mm256_and_si256(x, nibble));
    return _mm256_add_epi8(low, _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble)));
}

DP_TARGET_AVX2 static inline uint64_t mask32_avx2(const uint32_t *p, __m256i query, __m256i beyond) {
    __m256i bytes = count_bytes_avx2(_mm256_xor_si256(_mm256_loadu_si256((const __m256i *)p), query));
    __m256i counts = _mm256_madd_epi16(_mm256_maddubs_epi16(bytes, _mm256_set1_epi8(1)), _mm256_set1_epi16(1));
    return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(beyond, counts)));
}

DP_TARGET_AVX2 static size_t near32_avx2(const uint32_t *column, size_t count, uint32_t query, int distance,
                                         uint32_t *hits) {
    __m256i q = _mm256_set1_epi32((int)query), beyond = _mm256_set1_epi32(distance + 1);
    size_t found = 0, i = 0;
    for (; i + 32 <= count; i += 32) {
        const uint32_t *p = column + i;
        uint64_t mask = mask32_avx2(p, q, beyond) | mask32_avx2(p + 8, q, beyond) << 8;
        mask |= mask32_avx2(p + 16, q, beyond) << 16 | mask32_avx2(p + 24, q, beyond) << 24;
        if (__builtin_expect(mask != 0, 0))
            found = write_hits(mask, i, hits, found);
    }
    for (; i < count; i++) {
        hits[found] = (uint32_t)i;
        found += __builtin_popcount(column[i] ^ query) <= distance;
    }
    return found;
}

DP_TARGET_AVX2 static inline uint64_t mask64_avx2(const uint64_t *p, __m256i query, __m256i beyond) {
    __m256i bytes = count_bytes_avx2(_mm256_xor_si256(_mm256_loadu_si256((const __m256i *)p), query));
    __m256i counts = _mm256_sad_epu8(bytes, _mm256_setzero_si256());
    return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(beyond, counts)));
}

DP_TARGET_AVX2 static size_t near64_avx2(const uint64_t *column, size_t count, uint64_t query, int distance,
                                         uint32_t *hits) {
    __m256i q = _mm256_set1_epi64x((long long)query), beyond = _mm256_set1_epi64x(distance + 1);
    size_t found = 0, i = 0;
    for (; i + 16 <= count; i += 16) {
        const uint64_t *p = column + i;
        uint64_t mask = mask64_avx2(p, q, beyond) | mask64_avx2(p + 4, q, beyond) << 4;
        mask |= mask64_avx2(p + 8, q, beyond) << 8 | mask64_avx2(p + 12, q, beyond) << 12;
        if (__builtin_expect(mask != 0, 0))
            found = write_hits(mask, i, hits, found);
    }
    for (; i < count; i++) {
        hits[found] = (uint32_t)i;
        found += __builtin_popcountll(column[i] ^ query) <= distance;
    }
    return found;
}

DP_TARGET_AVX2 static size_t near128_avx2(const uint64_t *column, size_t count, const uint64_t query[2], int distance,
                                          uint32_t *hits) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        hits[found] = (uint32_t)i;
        found += __builtin_popcountll(column[2 * i] ^ query[0]) + __builtin_popcountll(column[2 * i + 1] ^ query[1]) <=
                 distance;
    }
    return found;
}
#endif

DP_KERNEL_LIST(near32, DP_AVX512(near32_avx512) DP_AVX2(near32_avx2) DP_PORTABLE(near32_portable))
DP_KERNEL_LIST(near64, DP_AVX512(near64_avx512) DP_AVX2(near64_avx2) DP_PORTABLE(near64_portable))
DP_KERNEL_LIST(near128, DP_AVX512(near128_avx512) DP_AVX2(near128_avx2) DP_PORTABLE(near128_portable))

/* ---- reorder: six exchanges of bits for many numbers: stage s swaps bit i with bit i + 2^s where the stage's mask
 * says so, from the widest stage to the narrowest.
 *
 * The loop has no branch and no table, so the compiler vectorises it: the variants are the same loop for other
 * targets. */

static inline __attribute__((always_inline)) void reorder_all(const uint64_t *from, size_t count,
                                                              const uint64_t masks[6], uint64_t *to) {
    uint64_t m0 = masks[0], m1 = masks[1], m2 = masks[2], m3 = masks[3], m4 = masks[4], m5 = masks[5];
    for (size_t i = 0; i < count; i++) {
        uint64_t x = from[i], t;
        t = (x ^ x >> 32) & m5, x ^= t ^ t << 32;
        t = (x ^ x >> 16) & m4, x ^= t ^ t << 16;
        t = (x ^ x >> 8) & m3, x ^= t ^ t << 8;
        t = (x ^ x >> 4) & m2, x ^= t ^ t << 4;
        t = (x ^ x >> 2) & m1, x ^= t ^ t << 2;
        t = (x ^ x >> 1) & m0, x ^= t ^ t << 1;
        to[i] = x;
    }
}

static void reorder_portable(const uint64_t *from, size_t count, const uint64_t masks[6], uint64_t *to) {
    reorder_all(from, count, masks, to);
}

#if defined(__x86_64__)
DP_TARGET_AVX512 static void reorder_avx512(const uint64_t *from, size_t count, const uint64_t masks[6], uint64_t *to) {
    reorder_all(from, count, masks, to);
}

DP_TARGET_AVX2 static void reorder_avx2(const uint64_t *from, size_t count, const uint64_t masks[6], uint64_t *to) {
    reorder_all(from, count, masks, to);
}
#endif

DP_KERNEL_LIST(reorder, DP_AVX512(reorder_avx512) DP_AVX2(reorder_avx2) DP_PORTABLE(reorder_portable))
