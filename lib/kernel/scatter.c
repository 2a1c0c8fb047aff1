/* scatter.c - sorts fingerprints and their positions by a key into lines of memory, each key where it belongs.
 *
 * A line is filled in the cache, one line a key, and goes to memory whole when it is full. The variants differ in that
 * last step alone: they write past the caches, which would only throw the line out again. */
#include "kernel/kernel.h"

typedef void (*flush_fn)(dp_line *to, const dp_line *from);

static inline __attribute__((always_inline)) void
scatter_narrow(const dp_scatter *s, const uint64_t *values, const uint32_t *positions, size_t count, flush_fn flush) {
    const uint32_t mask = (1U << s->width) - 1, first = s->first, keys = s->keys;
    const int shift = s->shift;
    dp_line *open = s->open, *lines = s->lines;
    uint32_t *next = s->next;
    for (size_t i = 0; i < count; i++) {
        uint32_t key = ((uint32_t)(values[i] >> shift) & mask) - first;
        if (key >= keys)
            continue;
        dp_line_narrow *line = &open[key].narrow;
        uint32_t fill = line->fill;
        line->value[fill] = values[i];
        line->position[fill] = positions[i];
        line->fill = ++fill;
        if (fill == DP_LINE_NARROW) {
            flush(&lines[next[key]++], &open[key]);
            line->fill = 0;
        }
    }
}

static inline __attribute__((always_inline)) void
scatter_wide(const dp_scatter *s, const uint64_t *values, const uint32_t *positions, size_t count, flush_fn flush) {
    const uint32_t mask = (1U << s->width) - 1;
    for (size_t i = 0; i < count; i++) {
        unsigned __int128 value = (unsigned __int128)values[2 * i + 1] << 64 | values[2 * i];
        uint32_t key = ((uint32_t)(value >> s->shift) & mask) - s->first;
        if (key >= s->keys)
            continue;
        dp_line_wide *line = &s->open[key].wide;
        uint32_t fill = line->fill;
        line->value[fill][0] = values[2 * i];
        line->value[fill][1] = values[2 * i + 1];
        line->position[fill] = positions[i];
        line->fill = ++fill;
        if (fill == DP_LINE_WIDE) {
            flush(&s->lines[s->next[key]++], &s->open[key]);
            line->fill = 0;
        }
    }
}

static inline void flush_portable(dp_line *to, const dp_line *from) {
    *to = *from;
}

static void scatter64_portable(const dp_scatter *scatter, const uint64_t *values, const uint32_t *positions,
                               size_t count) {
    scatter_narrow(scatter, values, positions, count, flush_portable);
}

static void scatter128_portable(const dp_scatter *scatter, const uint64_t *values, const uint32_t *positions,
                                size_t count) {
    scatter_wide(scatter, values, positions, count, flush_portable);
}

#if defined(__x86_64__)
#include <immintrin.h>

/* The fences make the lines visible to whoever waits for the thread. */

DP_TARGET_AVX512 static inline void flush_avx512(dp_line *to, const dp_line *from) {
    _mm512_stream_si512((void *)to, _mm512_load_si512(from));
}

DP_TARGET_AVX512 static void scatter64_avx512(const dp_scatter *scatter, const uint64_t *values,
                                              const uint32_t *positions, size_t count) {
    scatter_narrow(scatter, values, positions, count, flush_avx512);
    _mm_sfence();
}

DP_TARGET_AVX512 static void scatter128_avx512(const dp_scatter *scatter, const uint64_t *values,
                                               const uint32_t *positions, size_t count) {
    scatter_wide(scatter, values, positions, count, flush_avx512);
    _mm_sfence();
}

DP_TARGET_AVX2 static inline void flush_avx2(dp_line *to, const dp_line *from) {
    _mm256_stream_si256((__m256i *)to, _mm256_load_si256((const __m256i *)from));
    _mm256_stream_si256((__m256i *)to + 1, _mm256_load_si256((const __m256i *)from + 1));
}

DP_TARGET_AVX2 static void scatter64_avx2(const dp_scatter *scatter, const uint64_t *values, const uint32_t *positions,
                                          size_t count) {
    scatter_narrow(scatter, values, positions, count, flush_avx2);
    _mm_sfence();
}

DP_TARGET_AVX2 static void scatter128_avx2(const dp_scatter *scatter, const uint64_t *values, const uint32_t *positions,
                                           size_t count) {
    scatter_wide(scatter, values, positions, count, flush_avx2);
    _mm_sfence();
}
#endif

const dp_scatter64_variant dp_scatter64_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, scatter64_avx512},
    {"avx2", DP_CPU_AVX2, scatter64_avx2},
#endif
    {"portable", DP_CPU_PORTABLE, scatter64_portable},
};

const dp_scatter128_variant dp_scatter128_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, scatter128_avx512},
    {"avx2", DP_CPU_AVX2, scatter128_avx2},
#endif
    {"portable", DP_CPU_PORTABLE, scatter128_portable},
};

DP_KERNEL_CHOOSER(scatter64)
DP_KERNEL_CHOOSER(scatter128)
