/* rows.c - numbers that share a bucket and are near each other, where the buckets are sorted rows.
 *
 * What the crowd kernel is to small buckets, this is to those of a dozen and more. Each number of a row is compared
 * with the whole row, itself and those before it too: so every number of a row takes the same steps, which the CPU
 * foresees. The half that is not wanted is only looked at when there is a hit. */
#include "kernel/kernel.h"

/* Writes the pairs i < j of a row for the mask of all j near i; bit j stands for number j. */
static inline size_t write_row(const uint64_t *row, size_t i, uint64_t mask, uint64_t *hits, size_t found) {
    for (mask &= ~(uint64_t)1 << i; mask; mask &= mask - 1)
        hits[found++] = row[i] << 32 | (uint32_t)row[__builtin_ctzll(mask)];
    return found;
}

/* Which of a row's numbers are near number i; i itself always is. */
typedef uint64_t (*row_fn)(const uint64_t *row, size_t count, size_t i, int distance);

static inline __attribute__((always_inline)) size_t rows_all(dp_rows *r, row_fn near_in_row) {
    const uint32_t *bounds = r->bounds;
    uint64_t *hits = r->hits;
    size_t found = 0, bucket = r->next;
    for (; bucket < r->buckets && found <= r->room; bucket++) {
        const uint64_t *row = r->numbers + bounds[bucket];
        size_t count = bounds[bucket + 1] - bounds[bucket];
        if (count > DP_ROWS_MOST)
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

static inline __attribute__((always_inline)) uint64_t row_plain(const uint64_t *row, size_t count, size_t i,
                                                                int distance) {
    uint64_t mask = 0;
    for (size_t j = 0; j < count; j++)
        mask |= (uint64_t)(__builtin_popcountll((row[i] ^ row[j]) >> 32) <= distance) << j;
    return mask;
}

static size_t rows_portable(dp_rows *rows) {
    return rows_all(rows, row_plain);
}

#if defined(__x86_64__)
#include <immintrin.h>

DP_TARGET_AVX512 static inline uint64_t row_avx512(const uint64_t *row, size_t count, size_t i, int distance) {
    __m512i number = _mm512_set1_epi64((long long)row[i]), limit = _mm512_set1_epi64(distance);
    uint64_t mask = 0;
    for (size_t j = 0; j < count; j += 8) {
        __m512i differ = _mm512_srli_epi64(_mm512_xor_si512(_mm512_loadu_si512(row + j), number), 32);
        mask |= (uint64_t)_mm512_cmple_epu64_mask(_mm512_popcnt_epi64(differ), limit) << j;
    }
    return _bzhi_u64(mask, (unsigned)count);
}

DP_TARGET_AVX512 static size_t rows_avx512(dp_rows *rows) {
    return rows_all(rows, row_avx512);
}

/* The plain loop, with an instruction to count bits. */
DP_TARGET_AVX2 static size_t rows_avx2(dp_rows *rows) {
    return rows_all(rows, row_plain);
}
#endif

const dp_rows_variant dp_rows_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, rows_avx512},
    {"avx2", DP_CPU_AVX2, rows_avx2},
#endif
    {"portable", DP_CPU_PORTABLE, rows_portable},
};

DP_KERNEL_CHOOSER(rows)
