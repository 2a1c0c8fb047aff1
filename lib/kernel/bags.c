/* bags.c - which texts have nearly the same letters: the sums of absolute differences of letter bags, eight texts at a
 * time. The layout (kernel.h) puts the same eight counters of eight texts side by side, so that one instruction sums
 * them for every text and nothing is added across. A sum is at most 32 * 255. */
#include "kernel/kernel.h"

enum { ROWS = DP_BAG_SIZE / 8, ROW = 8 * DP_BAG_GROUP, GROUP = ROWS * ROW };

/* Adds the differences of one row to eight texts' sums. A sum is kept as four 16-bit numbers, each of two counters of
 * four rows, at most 2040. The loops are plain enough for a compiler to use what vectors it has. */
static void add_row(const uint8_t *restrict row, const uint8_t *restrict bag, uint64_t *restrict sums) {
    const uint64_t low = 0x00FF00FF00FF00FFu;
    uint8_t apart[ROW];
    for (int i = 0; i < ROW; i++)
        apart[i] = (uint8_t)(row[i] > bag[i] ? row[i] - bag[i] : bag[i] - row[i]);
    for (int text = 0; text < DP_BAG_GROUP; text++) {
        uint64_t eight = dp_load64(apart + 8 * text);
        sums[text] += (eight & low) + (eight >> 8 & low);
    }
}

static void bags_portable(const uint8_t *groups, size_t count, const uint8_t *bag, unsigned limit, uint8_t *near) {
    uint8_t wide[ROWS][ROW]; /* the bag, repeated for each text of a row */
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < ROW; i++)
            wide[row][i] = bag[row * 8 + i % 8];
    for (size_t g = 0; g < count; g++, groups += GROUP) {
        uint64_t sums[DP_BAG_GROUP] = {0};
        for (int row = 0; row < ROWS; row++)
            add_row(groups + row * ROW, wide[row], sums);
        unsigned hits = 0;
        for (unsigned text = 0; text < DP_BAG_GROUP; text++) {
            /* The product's highest 16 bits are the sum of the four numbers. */
            uint64_t sum = sums[text] * 0x0001000100010001u >> 48;
            hits |= (unsigned)(sum <= limit) << text;
        }
        near[g] = (uint8_t)hits;
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

DP_TARGET_AVX512 static void bags_avx512(const uint8_t *groups, size_t count, const uint8_t *bag, unsigned limit,
                                         uint8_t *near) {
    const __m512i most = _mm512_set1_epi64(limit);
    __m512i rows[ROWS];
    for (int row = 0; row < ROWS; row++)
        rows[row] = _mm512_set1_epi64((long long)dp_load64(bag + row * 8));
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

DP_TARGET_AVX2 static void bags_avx2(const uint8_t *groups, size_t count, const uint8_t *bag, unsigned limit,
                                     uint8_t *near) {
    const __m256i most = _mm256_set1_epi64x(limit);
    __m256i rows[ROWS];
    for (int row = 0; row < ROWS; row++)
        rows[row] = _mm256_set1_epi64x((long long)dp_load64(bag + row * 8));
    for (size_t g = 0; g < count; g++, groups += GROUP)
        near[g] = (uint8_t)(half_avx2(groups, rows, most) | half_avx2(groups + ROW / 2, rows, most) << 4);
}
#elif defined(__aarch64__)
#include <arm_neon.h>

/* Two texts: 16 counters of each row. A 16-bit lane adds up two counters of four rows, at most 2040. */
static unsigned pair_neon(const uint8_t *pair, const uint8x16_t *rows, unsigned limit) {
    uint16x8_t sum = vdupq_n_u16(0);
    for (int row = 0; row < ROWS; row++)
        sum = vpadalq_u8(sum, vabdq_u8(vld1q_u8(pair + row * ROW), rows[row]));
    uint64x2_t whole = vpaddlq_u32(vpaddlq_u16(sum));
    return (unsigned)(vgetq_lane_u64(whole, 0) <= limit) | (unsigned)(vgetq_lane_u64(whole, 1) <= limit) << 1;
}

static void bags_neon(const uint8_t *groups, size_t count, const uint8_t *bag, unsigned limit, uint8_t *near) {
    uint8x16_t rows[ROWS];
    for (int row = 0; row < ROWS; row++)
        rows[row] = vcombine_u8(vld1_u8(bag + row * 8), vld1_u8(bag + row * 8));
    for (size_t g = 0; g < count; g++, groups += GROUP) {
        unsigned hits = 0;
        for (unsigned pair = 0; pair < 4; pair++)
            hits |= pair_neon(groups + pair * 16, rows, limit) << (2 * pair);
        near[g] = (uint8_t)hits;
    }
}
#endif

const dp_bags_variant dp_bags_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, bags_avx512},
    {"avx2", DP_CPU_AVX2, bags_avx2},
#elif defined(__aarch64__)
    {"neon", DP_CPU_NEON, bags_neon},
#endif
    {"portable", DP_CPU_PORTABLE, bags_portable},
};

DP_KERNEL_CHOOSER(bags)
