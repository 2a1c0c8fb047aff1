/* levenshtein.c - a strip of the edit-distance table, 64 cells a step.
 *
 * Neighbours in the table differ by at most one, so that a column is two bits a row: plus where a row is one more than
 * the row above, minus where it is one less (Myers 1999; block by block as Hyyro 2003 has it). A block of 64 rows takes
 * the step along the row above it and gives the step along its last row, which the block below takes at the same
 * column.
 *
 * Portable: the blocks of a column one after the other; the next column's first blocks overlap with this one's last. */
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

static void levenshtein_portable(dp_strip *strip) {
    uint64_t plus[DP_STRIP_WORDS], minus[DP_STRIP_WORDS];
    memcpy(plus, strip->plus, sizeof plus);
    memcpy(minus, strip->minus, sizeof minus);
    for (size_t column = 0; column < strip->columns; column++) {
        const uint64_t *masks = strip->masks + (size_t)strip->slots[column] * DP_STRIP_WORDS;
        int64_t step = strip->steps[column];
        for (size_t w = 0; w < strip->words; w++)
            block(&plus[w], &minus[w], masks[w], &step);
        strip->steps[column] = (int8_t)step;
    }
    memcpy(strip->plus, plus, sizeof plus);
    memcpy(strip->minus, minus, sizeof minus);
}

const dp_levenshtein_variant dp_levenshtein_variants[] = {
    {"portable", DP_CPU_PORTABLE, levenshtein_portable},
};

DP_KERNEL_CHOOSER(levenshtein)
