/* spaces.c - where words begin in normalised text: one past each space. */
#include "kernel/kernel.h"

static size_t spaces_portable(const uint8_t *text, size_t length, uint32_t base, uint32_t *starts) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        starts[count] = base + (uint32_t)i + 1;
        count += text[i] == ' ';
    }
    return count;
}

#if defined(__x86_64__)
#include <immintrin.h>

DP_TARGET_AVX512 static size_t spaces_avx512(const uint8_t *text, size_t length, uint32_t base, uint32_t *starts) {
    static const uint8_t numbers[64] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                                        17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
                                        33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48,
                                        49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64};
    const __m512i places = _mm512_loadu_si512(numbers), blank = _mm512_set1_epi8(' ');
    size_t count = 0;
    for (size_t i = 0; i < length; i += 64) {
        size_t left = length - i;
        __mmask64 valid = left < 64 ? ((uint64_t)1 << left) - 1 : ~(uint64_t)0;
        uint64_t found = _mm512_mask_cmpeq_epi8_mask(valid, _mm512_maskz_loadu_epi8(valid, text + i), blank);
        __m512i here = _mm512_maskz_compress_epi8(found, places);
        __m512i offset = _mm512_set1_epi32((int)(base + (uint32_t)i));
        /* Sixteen places at a time; more than 32 spaces among 64 bytes do not occur, as no two stand together. */
        _mm512_storeu_si512(starts + count,
                            _mm512_add_epi32(offset, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(here))));
        size_t more = (size_t)__builtin_popcountll(found);
        if (more > 16)
            _mm512_storeu_si512(starts + count + 16,
                                _mm512_add_epi32(offset, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(here, 1))));
        count += more;
    }
    return count;
}

DP_TARGET_AVX2 static size_t spaces_avx2(const uint8_t *text, size_t length, uint32_t base, uint32_t *starts) {
    const __m256i blank = _mm256_set1_epi8(' ');
    size_t count = 0, i = 0;
    for (; i + 64 <= length; i += 64) {
        __m256i first = _mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)(text + i)), blank);
        __m256i second = _mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)(text + i + 32)), blank);
        uint64_t found = (uint32_t)_mm256_movemask_epi8(first) | (uint64_t)(uint32_t)_mm256_movemask_epi8(second) << 32;
        size_t more = (size_t)__builtin_popcountll(found);
        uint32_t *to = starts + count, first_place = base + (uint32_t)i + 1;
        /* Twelve without a branch, as most blocks have fewer; places past the last are written over by the next block.
         */
        for (size_t k = 0; k < 12; k++, found = _blsr_u64(found))
            to[k] = first_place + (uint32_t)_tzcnt_u64(found);
        for (size_t k = 12; k < more; k++, found = _blsr_u64(found))
            to[k] = first_place + (uint32_t)_tzcnt_u64(found);
        count += more;
    }
    return count + spaces_portable(text + i, length - i, base + (uint32_t)i, starts + count);
}
#endif

const dp_spaces_variant dp_spaces_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, spaces_avx512},
    {"avx2", DP_CPU_AVX2, spaces_avx2},
#endif
    {"portable", DP_CPU_PORTABLE, spaces_portable},
};
DP_KERNEL_CHOOSER(spaces)
