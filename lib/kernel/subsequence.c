/* subsequence.c - a strip of the table of longest common subsequences, 64 cells an addition.
 *
 * Bit r of V is set where row r of the column at hand holds the same length as the row above. A column with matches M
 * turns V into (V + (V & M)) | (V & ~M) (Crochemore, Iliopoulos, Pinzon and Reid 2001, as Hyyro 2004 writes it); the
 * carry into the lowest bit is the step along the row above the strip, the carry out of the highest one the step along
 * its last row. One variant: the additions of a column are a chain of carries, which scalar code does best. */
#include "kernel/kernel.h"

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

const dp_subsequence_variant dp_subsequence_variants[] = {
    {"portable", DP_CPU_PORTABLE, subsequence_portable},
};

DP_KERNEL_CHOOSER(subsequence)
