/* shared.c - how many numbers two ascending arrays of distinct numbers share.
 *
 * The portable loop merges without a branch on the data. The variants compare a block of each side, all against all by
 * rotating one of them, and then leave the block with the smaller last number behind: nothing in it can occur further
 * on in the other side. Each number stands in one block of a side, and two blocks meet once, so no match counts twice.
 */
#include "kernel/kernel.h"

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
#include <immintrin.h>

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

const dp_shared_variant dp_shared_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, shared_avx512},
    {"avx2", DP_CPU_AVX2, shared_avx2},
#endif
    {"portable", DP_CPU_PORTABLE, shared_portable},
};

DP_KERNEL_CHOOSER(shared)
