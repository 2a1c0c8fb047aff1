/* winnow.c - hashes by which shared runs of words are found.
 *
 * A run of N features holds `window` grams in a row, a gram being N - window + 1 of them. Of every `window` grams in a
 * row the one with the least hash is chosen (winnowing). Which one that is depends on the run alone, so wherever the
 * run stands, the same one is chosen: no shared run is missed. Long grams make few false candidates, wide windows few
 * hashes (2 of window + 1). */
#include "kernel/kernel.h"
#include "sketch/sketch.h"

/* Wider windows save little: at 32 one gram of 16 is chosen. */
#define WIDEST 32

/* Multiplies hashes of features into those of grams; odd, so that nothing is lost. */
#define MULTIPLIER 0x9E3779B97F4A7C15u

size_t dp_winnow_window(size_t run) {
    size_t window = (run + 2) / 3;
    return window < WIDEST ? window : WIDEST;
}

void dp_grams_make(const uint64_t *features, size_t grams, size_t gram, uint64_t *to) {
    uint64_t sum = 0, power = 1;
    for (size_t i = 0; i < gram; i++) {
        sum = sum * MULTIPLIER + features[i];
        power *= MULTIPLIER;
    }
    to[0] = dp_hash_mix(sum) | 1;
    for (size_t i = 1; i < grams; i++) {
        sum = sum * MULTIPLIER + features[i + gram - 1] - features[i - 1] * power;
        to[i] = dp_hash_mix(sum) | 1;
    }
}

/* The place of the least of some grams, the last of equal ones. */
static size_t least_of(const uint64_t *grams, size_t from, size_t end) {
    size_t least = from;
    for (size_t i = from + 1; i < end; i++)
        if (grams[i] <= grams[least])
            least = i;
    return least;
}

size_t dp_winnow(const uint64_t *grams, size_t count, size_t window, dp_winnowed *chosen) {
    size_t least = least_of(grams, 0, window), found = 0;
    for (size_t end = window;; end++) {
        if (!found || chosen[found - 1].gram != least)
            chosen[found++] = (dp_winnowed){(uint32_t)least, (uint32_t)(end - window)};
        if (end == count)
            return found;
        if (least + window == end)
            least = least_of(grams, end - window + 1, end + 1);
        else if (grams[end] <= grams[least])
            least = end;
    }
}
