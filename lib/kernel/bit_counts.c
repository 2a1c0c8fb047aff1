/* bit_counts.c - how often each of 64 bits is set among many numbers: the sums of a SimHash whose features have equal
 * weight.
 *
 * dp_bit_counts_kernel() adds a batch to bit-sliced counters, dp_bit_counts_above() compares all 64 counters with a
 * number at once. For weights that differ, dp_weigh_kernel() keeps 64 plain sums. */
#include "kernel/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define BITS_NAME bit_counts_portable
#define BITS_LANES 2
#define BITS_TARGET
#include "kernel/bit_counts_template.h"

#if defined(__x86_64__)
#define BITS_NAME bit_counts_avx2
#define BITS_LANES 4
#define BITS_TARGET DP_TARGET_AVX2
#include "kernel/bit_counts_template.h"

#define BITS_NAME bit_counts_avx512
#define BITS_LANES 8
#define BITS_TARGET DP_TARGET_AVX512
#include "kernel/bit_counts_template.h"
#endif

DP_KERNEL_LIST(bit_counts, DP_AVX512(bit_counts_avx512) DP_AVX2(bit_counts_avx2) DP_PORTABLE(bit_counts_portable))

uint64_t dp_bit_counts_above(const uint64_t *planes, uint64_t limit) {
    uint64_t above = 0, equal = ~(uint64_t)0;
    /* No counter is above 2 * limit + 1: SimHash needs more than half. */
    for (int p = 64 - __builtin_clzll(2 * limit + 1) - 1; p >= 0; p--) {
        uint64_t bit = limit >> p & 1 ? ~(uint64_t)0 : 0;
        above |= equal & planes[p] & ~bit;
        equal &= ~(planes[p] ^ bit);
    }
    return above;
}

static void weigh_portable(const uint64_t *hashes, const int64_t *weights, size_t count, int64_t *sums) {
    for (size_t i = 0; i < count; i++)
        for (int bit = 0; bit < 64; bit++)
            sums[bit] += weights[i] & -(int64_t)(hashes[i] >> bit & 1);
}

#if defined(__x86_64__)
DP_TARGET_AVX512 static void weigh_avx512(const uint64_t *hashes, const int64_t *weights, size_t count, int64_t *sums) {
    __m512i sum[8];
    for (int k = 0; k < 8; k++)
        sum[k] = _mm512_loadu_si512(sums + 8 * k);
    for (size_t i = 0; i < count; i++) {
        __m512i weight = _mm512_set1_epi64(weights[i]);
        for (int k = 0; k < 8; k++)
            sum[k] = _mm512_mask_add_epi64(sum[k], (__mmask8)(hashes[i] >> (8 * k)), sum[k], weight);
    }
    for (int k = 0; k < 8; k++)
        _mm512_storeu_si512(sums + 8 * k, sum[k]);
}

DP_TARGET_AVX2 static void weigh_avx2(const uint64_t *hashes, const int64_t *weights, size_t count, int64_t *sums) {
    const __m256i bits = _mm256_set_epi64x(8, 4, 2, 1);
    for (size_t i = 0; i < count; i++) {
        __m256i weight = _mm256_set1_epi64x(weights[i]);
        for (int k = 0; k < 16; k++) {
            __m256i hash = _mm256_set1_epi64x((long long)(hashes[i] >> (4 * k)));
            __m256i set = _mm256_cmpeq_epi64(_mm256_and_si256(hash, bits), bits);
            __m256i *sum = (__m256i *)(void *)(sums + 4 * k);
            _mm256_storeu_si256(sum, _mm256_add_epi64(_mm256_loadu_si256(sum), _mm256_and_si256(set, weight)));
        }
    }
}
#endif

DP_KERNEL_LIST(weigh, DP_AVX512(weigh_avx512) DP_AVX2(weigh_avx2) DP_PORTABLE(weigh_portable))
