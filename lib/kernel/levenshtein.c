/* levenshtein.c - a strip of the edit-distance table, 64 cells a step.
 *
 * Neighbours in the table differ by at most one, so that a column is two bits a row: plus where a row is one more than
 * the row above, minus where it is one less (Myers 1999; block by block as Hyyro 2003 has it). A block of 64 rows takes
 * the step along the row above it and gives the step along its last row, which the block below takes at the same
 * column.
 *
 * Portable: the blocks of a column one after the other, each of which waits for the one above it. The variants (see
 * levenshtein_template.h) have the blocks of a strip in the lanes of a vector, each a column behind the one above it.
 */
#include "kernel/kernel.h"

/* One block, one column. `step` is -1, 0 or 1 above and then below it. */
static inline void block(uint64_t *plus, uint64_t *minus, uint64_t equal, int64_t *step) {
    uint64_t p = *plus, m = *minus, down = (uint64_t)*step >> 63, up = (uint64_t)(*step > 0);
    uint64_t vertical = equal | m;
    equal |= down;
    uint64_t zero = (((equal & p) + p) ^ p) | equal;
    uint64_t right_plus = m | ~(zero | p), right_minus = p & zero;
    *step = (int64_t)(right_plus >> 63) - (int64_t)(right_minus >> 63);
    right_plus = right_plus << 1 | up;
    right_minus = right_minus << 1 | down;
    *plus = right_minus | ~(vertical | right_plus);
    *minus = right_plus & vertical;
}

/* `count` blocks from `word` on. With a constant count their state stays in registers. */
static inline __attribute__((always_inline)) void blocks(dp_strip *strip, size_t word, size_t count) {
    uint64_t plus[DP_STRIP_WORDS], minus[DP_STRIP_WORDS];
    memcpy(plus, strip->plus + word, count * sizeof *plus);
    memcpy(minus, strip->minus + word, count * sizeof *minus);
    for (size_t column = 0; column < strip->columns; column++) {
        const uint64_t *masks = strip->masks + strip->slots[column] + word;
        int64_t step = strip->steps[column];
        for (size_t i = 0; i < count; i++)
            block(&plus[i], &minus[i], masks[i], &step);
        strip->steps[column] = (int8_t)step;
    }
    memcpy(strip->plus + word, plus, count * sizeof *plus);
    memcpy(strip->minus + word, minus, count * sizeof *minus);
}

/* The blocks from `word` on. */
static void run_blocks(dp_strip *strip, size_t word) {
    size_t left = strip->words - word;
    if (left == 1)
        blocks(strip, word, 1);
    else if (left == 2)
        blocks(strip, word, 2);
    else if (left)
        blocks(strip, word, left);
}

static void levenshtein_portable(dp_strip *strip) {
    run_blocks(strip, 0);
}

#if defined(__x86_64__)
#include <immintrin.h>

/* Each lane by itself from another row: loads that leave the other lanes alone, which beat a gather. */
DP_TARGET_AVX512 static inline __m512i rows_avx512(const uint64_t *masks, const uint16_t *slots) {
    __m512i rows = _mm512_loadu_si512(masks + slots[0]);
    rows = _mm512_mask_loadu_epi64(rows, 0x02, masks + slots[-1]);
    rows = _mm512_mask_loadu_epi64(rows, 0x04, masks + slots[-2]);
    rows = _mm512_mask_loadu_epi64(rows, 0x08, masks + slots[-3]);
    __m512i high = _mm512_loadu_si512(masks + slots[-4]);
    high = _mm512_mask_loadu_epi64(high, 0x20, masks + slots[-5]);
    high = _mm512_mask_loadu_epi64(high, 0x40, masks + slots[-6]);
    high = _mm512_mask_loadu_epi64(high, 0x80, masks + slots[-7]);
    return _mm512_mask_blend_epi64(0xF0, rows, high);
}

#define STRIP_NAME levenshtein_avx512
#define STRIP_LANES 8
#define STRIP_TARGET DP_TARGET_AVX512
#define STRIP_ROWS(masks, slots) (strip_vector) rows_avx512(masks, slots)
#include "kernel/levenshtein_template.h"

DP_TARGET_AVX2 static inline __m256i rows_avx2(const uint64_t *masks, const uint16_t *slots) {
    __m256i rows = _mm256_loadu_si256((const __m256i *)(masks + slots[0]));
    rows = _mm256_blend_epi32(rows, _mm256_loadu_si256((const __m256i *)(masks + slots[-1])), 0x0C);
    rows = _mm256_blend_epi32(rows, _mm256_loadu_si256((const __m256i *)(masks + slots[-2])), 0x30);
    return _mm256_blend_epi32(rows, _mm256_loadu_si256((const __m256i *)(masks + slots[-3])), 0xC0);
}

#define STRIP_NAME levenshtein_avx2
#define STRIP_LANES 4
#define STRIP_TARGET DP_TARGET_AVX2
#define STRIP_ROWS(masks, slots) (strip_vector) rows_avx2(masks, slots)
#include "kernel/levenshtein_template.h"
#endif

const dp_levenshtein_variant dp_levenshtein_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, levenshtein_avx512},
    {"avx2", DP_CPU_AVX2, levenshtein_avx2},
#endif
    {"portable", DP_CPU_PORTABLE, levenshtein_portable},
};

DP_KERNEL_CHOOSER(levenshtein)
