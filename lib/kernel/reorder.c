/* reorder.c - six exchanges of bits for many numbers: stage s swaps bit i with bit i + 2^s where the stage's mask says
 * so, from the widest stage to the narrowest.
 *
 * The loop has no branch and no table, so that the compiler makes vectors of it: the variants are the same loop for
 * other targets. */
#include "kernel/kernel.h"

static inline __attribute__((always_inline)) void reorder_all(const uint64_t *from, size_t count,
                                                              const uint64_t masks[6], uint64_t *to) {
    uint64_t m0 = masks[0], m1 = masks[1], m2 = masks[2], m3 = masks[3], m4 = masks[4], m5 = masks[5];
    for (size_t i = 0; i < count; i++) {
        uint64_t x = from[i], t;
        t = (x ^ x >> 32) & m5, x ^= t ^ t << 32;
        t = (x ^ x >> 16) & m4, x ^= t ^ t << 16;
        t = (x ^ x >> 8) & m3, x ^= t ^ t << 8;
        t = (x ^ x >> 4) & m2, x ^= t ^ t << 4;
        t = (x ^ x >> 2) & m1, x ^= t ^ t << 2;
        t = (x ^ x >> 1) & m0, x ^= t ^ t << 1;
        to[i] = x;
    }
}

static void reorder_portable(const uint64_t *from, size_t count, const uint64_t masks[6], uint64_t *to) {
    reorder_all(from, count, masks, to);
}

#if defined(__x86_64__)
DP_TARGET_AVX512 static void reorder_avx512(const uint64_t *from, size_t count, const uint64_t masks[6], uint64_t *to) {
    reorder_all(from, count, masks, to);
}

DP_TARGET_AVX2 static void reorder_avx2(const uint64_t *from, size_t count, const uint64_t masks[6], uint64_t *to) {
    reorder_all(from, count, masks, to);
}
#endif

const dp_reorder_variant dp_reorder_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, reorder_avx512},
    {"avx2", DP_CPU_AVX2, reorder_avx2},
#endif
    {"portable", DP_CPU_PORTABLE, reorder_portable},
};

DP_KERNEL_CHOOSER(reorder)
