/* walks.c - the banded edit distances of one prepared text and eight others, each ended when it is sure to be too
 * large.
 *
 * With at most `limit` edits a way through the table of distances keeps to limit + 1 diagonals. Up to 57 of them fit a
 * word that moves down one row with every column (Hyyro 2003): bit b of column j is row j - high + b, so that a bit is
 * a diagonal. A column is the bits `plus` and `minus`, the differences to the row above; `zero` marks cells that are
 * equal to their upper left neighbour. Outside the band nothing is looked at, which can only make values larger. Rows
 * above the first match nothing and start at 0, which makes row 0 come out as it should: cell (0, j) is j diagonal
 * steps of one from a 0.
 *
 * Values never fall along a diagonal. So the walk down the one that ends in the last cell stops as soon as it has
 * passed the limit: after a few columns, when two texts have nothing in common.
 *
 * Portable: one walk after the other. A walk is a chain of some ten dependent instructions a column; the variants do
 * several in the lanes of a vector. */
#include "kernel/kernel.h"

/* The bits of the rows from DP_WALK_AHEAD + j - high on, up to 7 too early. */
static inline uint64_t string_at(const dp_walks *walks, size_t i, size_t j) {
    const dp_walk *walk = &walks->walks[i];
    return dp_load64(walks->strings + walks->string_of[walk->text[j]] + (DP_WALK_AHEAD - walk->high + j) / 8);
}

/* Walk i, whose distance is that of column j, from there to its end. */
static void walk_on(dp_walks *walks, size_t i, size_t j, uint64_t plus, uint64_t minus) {
    dp_walk *walk = &walks->walks[i];
    uint64_t distance = walk->distance;
    for (; j < walk->columns && distance <= walk->limit; j++) {
        uint64_t equal = string_at(walks, i, j) >> (DP_WALK_AHEAD - walk->high + j) % 8;
        uint64_t zero = (((equal & plus) + plus) ^ plus) | equal | minus;
        distance += ~zero >> walk->last & 1;
        uint64_t right_plus = minus | ~(zero | plus), right_minus = zero & plus;
        plus = right_minus | ~(zero >> 1 | right_plus);
        minus = zero >> 1 & right_plus;
    }
    walk->distance = distance;
}

static void walks_portable(dp_walks *walks) {
    for (size_t i = 0; i < DP_WALKS; i++)
        walk_on(walks, i, 0, ~(uint64_t)0 << walks->walks[i].high, 0);
}

#if defined(__x86_64__)
#include <immintrin.h>

#define WALKS_NAME walks_avx512
#define WALKS_LANES 8
#define WALKS_TARGET DP_TARGET_AVX512
#define WALKS_OVER(distance, limit) (_mm512_cmpgt_epu64_mask((__m512i)(distance), (__m512i)(limit)) == 0xFF)
#include "kernel/walks_template.h"

#define WALKS_NAME walks_avx2
#define WALKS_LANES 4
#define WALKS_TARGET DP_TARGET_AVX2
#define WALKS_OVER(distance, limit) (_mm256_movemask_pd((__m256d)((limit) - (distance))) == 15)
#include "kernel/walks_template.h"
#endif

const dp_walks_variant dp_walks_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, walks_avx512},
    {"avx2", DP_CPU_AVX2, walks_avx2},
#endif
    {"portable", DP_CPU_PORTABLE, walks_portable},
};

DP_KERNEL_CHOOSER(walks)
