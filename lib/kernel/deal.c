/* deal.c - deals keys and their numbers into slices, by the top bits of the key.
 *
 * A line of a slice is filled in the cache and goes to memory whole: 256 bytes at once, as memory is slow at changing
 * from place to place, and several hundred slices take turns. The variants differ in that last step alone: they write
 * past the caches. */
#include "kernel/kernel.h"

typedef void (*flush_fn)(uint64_t *to, const uint64_t *from);

static inline __attribute__((always_inline)) void deal_all(const dp_deal *d, const uint64_t *values, uint32_t first,
                                                           uint32_t count, flush_fn flush) {
    const uint64_t mask = ((uint64_t)1 << d->width) - 1;
    const int shift = d->shift, down = d->width - d->slice_bits;
    const size_t stride = d->stride;
    uint64_t *open = d->open, *entries = d->entries;
    uint32_t *fills = d->fills;
    const uint32_t *starts = d->starts;
    for (uint32_t i = first; i < first + count; i++) {
        uint64_t key = values[i * stride] >> shift & mask;
        size_t slice = key >> down;
        uint32_t fill = fills[slice]++, at = fill % DP_DEAL_LINE;
        uint64_t *line = open + slice * DP_DEAL_LINE;
        line[at] = key << 32 | i;
        if (at == DP_DEAL_LINE - 1)
            flush(entries + starts[slice] + (fill - at), line);
    }
}

static inline void flush_portable(uint64_t *to, const uint64_t *from) {
    memcpy(to, from, DP_DEAL_LINE * sizeof *to);
}

static void deal_portable(const dp_deal *deal, const uint64_t *values, uint32_t first, uint32_t count) {
    deal_all(deal, values, first, count, flush_portable);
}

#if defined(__x86_64__)
#include <immintrin.h>

/* The fences make the lines visible to whoever waits for the thread. */

DP_TARGET_AVX512 static inline void flush_avx512(uint64_t *to, const uint64_t *from) {
    for (int i = 0; i < DP_DEAL_LINE; i += 8)
        _mm512_stream_si512((void *)(to + i), _mm512_load_si512(from + i));
}

DP_TARGET_AVX512 static void deal_avx512(const dp_deal *deal, const uint64_t *values, uint32_t first, uint32_t count) {
    deal_all(deal, values, first, count, flush_avx512);
    _mm_sfence();
}

DP_TARGET_AVX2 static inline void flush_avx2(uint64_t *to, const uint64_t *from) {
    for (int i = 0; i < DP_DEAL_LINE; i += 4)
        _mm256_stream_si256((__m256i *)(to + i), _mm256_load_si256((const __m256i *)(from + i)));
}

DP_TARGET_AVX2 static void deal_avx2(const dp_deal *deal, const uint64_t *values, uint32_t first, uint32_t count) {
    deal_all(deal, values, first, count, flush_avx2);
    _mm_sfence();
}
#endif

const dp_deal_variant dp_deal_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, deal_avx512},
    {"avx2", DP_CPU_AVX2, deal_avx2},
#endif
    {"portable", DP_CPU_PORTABLE, deal_portable},
};

DP_KERNEL_CHOOSER(deal)
