/* measures.c - the kernels of lib/verify's measures: shared (sets), differing (bitmaps), letter_counts (titles). Those
 * of edit distances are in edit.c. */
#include "kernel/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* ---- shared: how many numbers two ascending arrays of distinct numbers share.
 *
 * The portable loop merges without a branch on the data. The variants compare a block of each side, all against all by
 * rotating one of them, and then advance past the block with the smaller last number: nothing in it can occur later in
 * the other side. Each number is in one block of a side, and two blocks are compared once, so no match counts
 * twice. */

static size_t shared_portable(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count) {
    size_t i = 0, j = 0, shared = 0;
    while (i < a_count && j < b_count) {
        uint64_t x = a[i], y = b[j];
        shared += x == y;
        i += x <= y;
        j += y <= x;
    }
    return shared;
}

#if defined(__x86_64__)
DP_TARGET_AVX512 static size_t shared_avx512(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count) {
    size_t i = 0, j = 0, shared = 0;
    while (i + 8 <= a_count && j + 8 <= b_count) {
        __m512i x = _mm512_loadu_si512(a + i), y = _mm512_loadu_si512(b + j);
        __m512i z = _mm512_shuffle_i64x2(y, y, 0x4E); /* the halves of y swapped: four rotations more */
        __mmask8 hits = _mm512_cmpeq_epi64_mask(x, y) | _mm512_cmpeq_epi64_mask(x, z);
        hits |= _mm512_cmpeq_epi64_mask(x, _mm512_alignr_epi64(y, y, 1));
        hits |= _mm512_cmpeq_epi64_mask(x, _mm512_alignr_epi64(z, z, 1));
        hits |= _mm512_cmpeq_epi64_mask(x, _mm512_alignr_epi64(y, y, 2));
        hits |= _mm512_cmpeq_epi64_mask(x, _mm512_alignr_epi64(z, z, 2));
        hits |= _mm512_cmpeq_epi64_mask(x, _mm512_alignr_epi64(y, y, 3));
        hits |= _mm512_cmpeq_epi64_mask(x, _mm512_alignr_epi64(z, z, 3));
        shared += (size_t)__builtin_popcount(hits);
        uint64_t last_x = a[i + 7], last_y = b[j + 7];
        i += last_x <= last_y ? 8 : 0;
        j += last_y <= last_x ? 8 : 0;
    }
    return shared + shared_portable(a + i, a_count - i, b + j, b_count - j);
}

DP_TARGET_AVX2 static size_t shared_avx2(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count) {
    size_t i = 0, j = 0, shared = 0;
    while (i + 4 <= a_count && j + 4 <= b_count) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(a + i)), y = _mm256_loadu_si256((const __m256i *)(b + j));
        __m256i hits = _mm256_cmpeq_epi64(x, y);
        hits = _mm256_or_si256(hits, _mm256_cmpeq_epi64(x, _mm256_permute4x64_epi64(y, 0x39)));
        hits = _mm256_or_si256(hits, _mm256_cmpeq_epi64(x, _mm256_permute4x64_epi64(y, 0x4E)));
        hits = _mm256_or_si256(hits, _mm256_cmpeq_epi64(x, _mm256_permute4x64_epi64(y, 0x93)));
        shared += (size_t)__builtin_popcount((unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(hits)));
        uint64_t last_x = a[i + 3], last_y = b[j + 3];
        i += last_x <= last_y ? 4 : 0;
        j += last_y <= last_x ? 4 : 0;
    }
    return shared + shared_portable(a + i, a_count - i, b + j, b_count - j);
}
#endif

DP_KERNEL_LIST(shared, DP_AVX512(shared_avx512) DP_AVX2(shared_avx2) DP_PORTABLE(shared_portable))

/* ---- differing: how many bits differ between two bitmaps ---- */

static inline __attribute__((always_inline)) size_t count_differing(const uint64_t *a, const uint64_t *b,
                                                                    size_t words) {
    size_t bits = 0;
    for (size_t i = 0; i < words; i++)
        bits += (size_t)__builtin_popcountll(a[i] ^ b[i]);
    return bits;
}

static size_t differing_portable(const uint64_t *a, const uint64_t *b, size_t words) {
    return count_differing(a, b, words);
}

#if defined(__x86_64__)
DP_TARGET_AVX512 static size_t differing_avx512(const uint64_t *a, const uint64_t *b, size_t words) {
    __m512i sums = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 8 <= words; i += 8) {
        __m512i other = _mm512_xor_si512(_mm512_loadu_si512(a + i), _mm512_loadu_si512(b + i));
        sums = _mm512_add_epi64(sums, _mm512_popcnt_epi64(other));
    }
    __mmask8 rest = (__mmask8)((1U << (words - i)) - 1);
    __m512i other = _mm512_xor_si512(_mm512_maskz_loadu_epi64(rest, a + i), _mm512_maskz_loadu_epi64(rest, b + i));
    return (size_t)_mm512_reduce_add_epi64(_mm512_add_epi64(sums, _mm512_popcnt_epi64(other)));
}

/* The same loop, with an instruction to count bits. */
DP_TARGET_AVX2 static size_t differing_avx2(const uint64_t *a, const uint64_t *b, size_t words) {
    return count_differing(a, b, words);
}
#endif

DP_KERNEL_LIST(differing, DP_AVX512(differing_avx512) DP_AVX2(differing_avx2) DP_PORTABLE(differing_portable))

/* ---- letter_counts: which texts have nearly the same letters.
 *
 * The sums of absolute differences of letter counts, eight texts at a time. The layout (kernel.h) puts the same eight
 * counters of eight texts side by side, so that one instruction sums them for every text and nothing is added across. A
 * sum is at most 32 * 255. */

enum { ROWS = DP_LETTER_COUNTS / 8, ROW = 8 * DP_LETTER_GROUP, GROUP = ROWS * ROW };

/* Adds the differences of one row to eight texts' sums. A sum is kept as four 16-bit numbers, each of two counters of
 * four rows, at most 2040. The loops are simple enough for the compiler to vectorise. */
static void add_row(const uint8_t *restrict row, const uint8_t *restrict letters, uint64_t *restrict sums) {
    const uint64_t low = 0x00FF00FF00FF00FFu;
    uint8_t apart[ROW];
    for (int i = 0; i < ROW; i++)
        apart[i] = (uint8_t)(row[i] > letters[i] ? row[i] - letters[i] : letters[i] - row[i]);
    for (int text = 0; text < DP_LETTER_GROUP; text++) {
        uint64_t eight = dp_load64(apart + 8 * text);
        sums[text] += (eight & low) + (eight >> 8 & low);
    }
}

static void letter_counts_portable(const uint8_t *groups, size_t count, const uint8_t *letters, unsigned limit,
                                   uint8_t *near) {
    uint8_t wide[ROWS][ROW]; /* the counts, repeated for each text of a row */
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < ROW; i++)
            wide[row][i] = letters[row * 8 + i % 8];
    for (size_t g = 0; g < count; g++, groups += GROUP) {
        uint64_t sums[DP_LETTER_GROUP] = {0};
        for (int row = 0; row < ROWS; row++)
            add_row(groups + row * ROW, wide[row], sums);
        unsigned hits = 0;
        for (unsigned text = 0; text < DP_LETTER_GROUP; text++) {
            /* The product's highest 16 bits are the sum of the four numbers. */
            uint64_t sum = sums[text] * 0x0001000100010001u >> 48;
            hits |= (unsigned)(sum <= limit) << text;
        }
        near[g] = (uint8_t)hits;
    }
}

#if defined(__x86_64__)
DP_TARGET_AVX512 static void letter_counts_avx512(const uint8_t *groups, size_t count, const uint8_t *letters,
                                                  unsigned limit, uint8_t *near) {
    const __m512i most = _mm512_set1_epi64(limit);
    __m512i rows[ROWS];
    for (int row = 0; row < ROWS; row++)
        rows[row] = _mm512_set1_epi64((long long)dp_load64(letters + row * 8));
    for (size_t g = 0; g < count; g++, groups += GROUP) {
        __m512i sum = _mm512_sad_epu8(_mm512_loadu_si512(groups), rows[0]);
        for (int row = 1; row < ROWS; row++)
            sum = _mm512_add_epi64(sum, _mm512_sad_epu8(_mm512_loadu_si512(groups + row * ROW), rows[row]));
        near[g] = _mm512_cmple_epu64_mask(sum, most);
    }
}

DP_TARGET_AVX2 static unsigned half_avx2(const uint8_t *half, const __m256i *rows, __m256i most) {
    __m256i sum = _mm256_setzero_si256();
    for (int row = 0; row < ROWS; row++) {
        __m256i counters = _mm256_loadu_si256((const __m256i *)(half + row * ROW));
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(counters, rows[row]));
    }
    return ~(unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(sum, most))) & 15;
}

DP_TARGET_AVX2 static void letter_counts_avx2(const uint8_t *groups, size_t count, const uint8_t *letters,
                                              unsigned limit, uint8_t *near) {
    const __m256i most = _mm256_set1_epi64x(limit);
    __m256i rows[ROWS];
    for (int row = 0; row < ROWS; row++)
        rows[row] = _mm256_set1_epi64x((long long)dp_load64(letters + row * 8));
    for (size_t g = 0; g < count; g++, groups += GROUP)
        near[g] = (uint8_t)(half_avx2(groups, rows, most) | half_avx2(groups + ROW / 2, rows, most) << 4);
}
#elif defined(__aarch64__)
/* Two texts: 16 counters of each row. A 16-bit lane adds up two counters of four rows, at most 2040. */
static unsigned pair_neon(const uint8_t *pair, const uint8x16_t *rows, unsigned limit) {
    uint16x8_t sum = vdupq_n_u16(0);
    for (int row = 0; row < ROWS; row++)
        sum = vpadalq_u8(sum, vabdq_u8(vld1q_u8(pair + row * ROW), rows[row]));
    uint64x2_t whole = vpaddlq_u32(vpaddlq_u16(sum));
    return (unsigned)(vgetq_lane_u64(whole, 0) <= limit) | (unsigned)(vgetq_lane_u64(whole, 1) <= limit) << 1;
}

static void letter_counts_neon(const uint8_t *groups, size_t count, const uint8_t *letters, unsigned limit,
                               uint8_t *near) {
    uint8x16_t rows[ROWS];
    for (int row = 0; row < ROWS; row++)
        rows[row] = vcombine_u8(vld1_u8(letters + row * 8), vld1_u8(letters + row * 8));
    for (size_t g = 0; g < count; g++, groups += GROUP) {
        unsigned hits = 0;
        for (unsigned pair = 0; pair < 4; pair++)
            hits |= pair_neon(groups + pair * 16, rows, limit) << (2 * pair);
        near[g] = (uint8_t)hits;
    }
}
#endif

DP_KERNEL_LIST(letter_counts, DP_AVX512(letter_counts_avx512) DP_AVX2(letter_counts_avx2) DP_NEON(letter_counts_neon)
                                  DP_PORTABLE(letter_counts_portable))
