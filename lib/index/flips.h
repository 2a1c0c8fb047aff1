/* flips.h - the numbers with few bits set, those with fewer first: what a key is exclusive-or'ed with to give the keys
 * near it. */
#ifndef DP_INDEX_FLIPS_H
#define DP_INDEX_FLIPS_H

#include <stdint.h>

/* The number behind `flip` among those of `bits` bits (at most 32), the first being 0. */
static inline uint32_t dp_flip_after(uint32_t flip, int bits) {
    uint64_t wide = flip;
    if (flip) {
        /* The next one with as many bits: the lowest run of ones carries, and what is left of it goes to the bottom. */
        uint64_t lowest = wide & (0 - wide), raised = wide + lowest;
        uint64_t next = raised | ((wide ^ raised) >> 2) / lowest;
        if (!(next >> bits))
            return (uint32_t)next;
    }
    return (uint32_t)(((uint64_t)2 << __builtin_popcount(flip)) - 1);
}

#endif
