/* differing.c - how many bits differ between two bitmaps. */
#include "kernel/kernel.h"

static size_t differing_portable(const uint64_t *a, const uint64_t *b, size_t words) {
    size_t bits = 0;
    for (size_t i = 0; i < words; i++)
        bits += (size_t)__builtin_popcountll(a[i] ^ b[i]);
    return bits;
}

#if defined(__x86_64__)
#include <immintrin.h>

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

DP_TARGET_AVX2 static size_t differing_avx2(const uint64_t *a, const uint64_t *b, size_t words) {
    size_t bits = 0;
    for (size_t i = 0; i < words; i++)
        bits += (size_t)__builtin_popcountll(a[i] ^ b[i]);
    return bits;
}
#endif

const dp_differing_variant dp_differing_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, differing_avx512},
    {"avx2", DP_CPU_AVX2, differing_avx2},
#endif
    {"portable", DP_CPU_PORTABLE, differing_portable},
};

DP_KERNEL_CHOOSER(differing)
