/* edit.c - the kernels of edit distances: levenshtein and subsequence do a strip of the table of two texts of any
 * length, banded_edits the band around the diagonal for one prepared text and eight others. */
#include "kernel/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- levenshtein: a strip of the edit-distance table, 64 cells a step.
 *
 * Neighbours in the table differ by at most one, so that a column is two bits per row: plus where a row is one more
 * than the row above, minus where it is one less (Myers 1999; block by block as Hyyro 2003 has it). A block of 64 rows
 * takes the step along the row above it and gives the step along its last row, which the block below takes at the same
 * column.
 *
 * Portable: the blocks of a column one after the other, each of which waits for the one above it. The variants (see
 * levenshtein_template.h) have the blocks of a strip in the lanes of a vector, each a column behind the one above
 * it. */

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
/* Each lane is loaded separately, from its own row, by masked loads, which are faster than a gather. */
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

DP_KERNEL_LIST(levenshtein, DP_AVX512(levenshtein_avx512) DP_AVX2(levenshtein_avx2) DP_PORTABLE(levenshtein_portable))

/* ---- subsequence: a strip of the table of longest common subsequences, 64 cells an addition.
 *
 * Bit r of V is set where row r of the current column has the same length as the row above. A column with matches M
 * turns V into (V + (V & M)) | (V & ~M) (Crochemore, Iliopoulos, Pinzon and Reid 2001, as Hyyro 2004 writes it); the
 * carry into the lowest bit is the step along the row above the strip, the carry out of the highest one the step along
 * its last row. One variant: the additions of a column are a chain of carries, which scalar code does best. */

static void subsequence_portable(dp_strip *strip) {
    uint64_t same[DP_STRIP_WORDS];
    size_t words = strip->words;
    for (size_t w = 0; w < words; w++)
        same[w] = ~strip->plus[w];
    for (size_t column = 0; column < strip->columns; column++) {
        const uint64_t *masks = strip->masks + strip->slots[column];
        uint64_t carry = (uint64_t)strip->steps[column];
        for (size_t w = 0; w < words; w++) {
            uint64_t v = same[w], hits = v & masks[w], sum = v + hits, whole = sum + carry;
            carry = (uint64_t)(sum < v) | (uint64_t)(whole < sum);
            same[w] = whole | (v & ~masks[w]);
        }
        strip->steps[column] = (int8_t)carry;
    }
    for (size_t w = 0; w < words; w++)
        strip->plus[w] = ~same[w];
}

DP_KERNEL_LIST(subsequence, DP_PORTABLE(subsequence_portable))

/* ---- banded_edits: the edit distances of one prepared text and eight others, each ended when it is sure to be too
 * large.
 *
 * With at most `limit` edits a way through the table of distances keeps to limit + 1 diagonals. Up to 57 of them fit a
 * word that moves down one row with every column (Hyyro 2003): bit b of column j is row j - high + b, so that a bit is
 * a diagonal. A column is the bits `plus` and `minus`, the differences to the row above; `zero` marks cells that are
 * equal to their upper left neighbour. Cells outside the band are ignored, which can only make values larger. Rows
 * above the first match nothing and start at 0, which makes row 0 come out as it should: cell (0, j) is j diagonal
 * steps of one from a 0.
 *
 * Values never fall along a diagonal. So following the one that ends in the last cell can stop as soon as it exceeds
 * the limit: after a few columns, if two texts have nothing in common.
 *
 * Portable: one text after the other. Each is a chain of about ten dependent instructions per column; the variants do
 * several in the lanes of a vector. */

/* The bits of the rows from DP_BAND_AHEAD + j - high on, up to 7 too early. */
static inline uint64_t string_at(const dp_banded_edits *edits, size_t i, size_t j) {
    const dp_banded_edit *edit = &edits->edits[i];
    return dp_load64(edits->strings + edits->string_of[edit->text[j]] + (DP_BAND_AHEAD - edit->high + j) / 8);
}

/* Edit distance i, from column j, whose value it has, to its end. */
static void finish_edit(dp_banded_edits *edits, size_t i, size_t j, uint64_t plus, uint64_t minus) {
    dp_banded_edit *edit = &edits->edits[i];
    uint64_t distance = edit->distance;
    for (; j < edit->columns && distance <= edit->limit; j++) {
        uint64_t equal = string_at(edits, i, j) >> (DP_BAND_AHEAD - edit->high + j) % 8;
        uint64_t zero = (((equal & plus) + plus) ^ plus) | equal | minus;
        distance += ~zero >> edit->last & 1;
        uint64_t right_plus = minus | ~(zero | plus), right_minus = zero & plus;
        plus = right_minus | ~(zero >> 1 | right_plus);
        minus = zero >> 1 & right_plus;
    }
    edit->distance = distance;
}

static void banded_edits_portable(dp_banded_edits *edits) {
    for (size_t i = 0; i < DP_BANDED_EDITS; i++)
        finish_edit(edits, i, 0, ~(uint64_t)0 << edits->edits[i].high, 0);
}

#if defined(__x86_64__)
#define BANDED_NAME banded_edits_avx512
#define BANDED_LANES 8
#define BANDED_TARGET DP_TARGET_AVX512
#define BANDED_OVER(distance, limit) (_mm512_cmpgt_epu64_mask((__m512i)(distance), (__m512i)(limit)) == 0xFF)
#include "kernel/banded_template.h"

#define BANDED_NAME banded_edits_avx2
#define BANDED_LANES 4
#define BANDED_TARGET DP_TARGET_AVX2
#define BANDED_OVER(distance, limit) (_mm256_movemask_pd((__m256d)((limit) - (distance))) == 15)
#include "kernel/banded_template.h"
#endif

DP_KERNEL_LIST(banded_edits,
               DP_AVX512(banded_edits_avx512) DP_AVX2(banded_edits_avx2) DP_PORTABLE(banded_edits_portable))
