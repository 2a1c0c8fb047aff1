/* murmur3.c - MurmurHash3 of overlapping runs of words, eight at a time.
 *
 * The runs of a group start close together, so that each block of 16 bytes of all eight lies in one window of 128
 * bytes, out of which a byte permutation takes it. A lane whose run is shorter than the others' keeps its state by
 * mask; the last, incomplete block is the same step with zeros behind the run and without the mixing, as multiplying
 * and rotating zero changes nothing. */
#include "kernel/kernel.h"

static inline uint32_t run_length(const dp_runs *runs, size_t i) {
    return runs->starts[i + runs->n] - runs->gap - runs->starts[i];
}

static void murmur3_runs_portable(const dp_runs *runs, uint32_t seed, uint64_t *hashes) {
    for (size_t i = 0; i < runs->count; i++)
        hashes[i] = dp_murmur3(runs->text + runs->starts[i], run_length(runs, i), seed);
}

#if defined(__x86_64__)
#include <immintrin.h>

#define C1 _mm512_set1_epi64((long long)0x87C37B91114253D5u)
#define C2 _mm512_set1_epi64((long long)0x4CF5AD432745937Fu)

/* Eight states. */
typedef struct lanes {
    __m512i h1, h2;
} lanes;

DP_TARGET_AVX512 static inline __m512i times5_plus(__m512i h, long long constant) {
    return _mm512_add_epi64(_mm512_add_epi64(_mm512_slli_epi64(h, 2), h), _mm512_set1_epi64(constant));
}

DP_TARGET_AVX512 static inline __m512i k1(__m512i k) {
    return _mm512_mullo_epi64(_mm512_rol_epi64(_mm512_mullo_epi64(k, C1), 31), C2);
}

DP_TARGET_AVX512 static inline __m512i k2(__m512i k) {
    return _mm512_mullo_epi64(_mm512_rol_epi64(_mm512_mullo_epi64(k, C2), 33), C1);
}

DP_TARGET_AVX512 static inline lanes mix_block(lanes s, __m512i first, __m512i second, __mmask8 active) {
    __m512i h1 = _mm512_rol_epi64(_mm512_xor_si512(s.h1, k1(first)), 27);
    h1 = times5_plus(_mm512_add_epi64(h1, s.h2), 0x52DCE729);
    __m512i h2 = _mm512_rol_epi64(_mm512_xor_si512(s.h2, k2(second)), 31);
    h2 = times5_plus(_mm512_add_epi64(h2, h1), 0x38495AB5);
    return (lanes){_mm512_mask_mov_epi64(s.h1, active, h1), _mm512_mask_mov_epi64(s.h2, active, h2)};
}

DP_TARGET_AVX512 static inline __m512i finish(__m512i h) {
    h = _mm512_xor_si512(h, _mm512_srli_epi64(h, 33));
    h = _mm512_mullo_epi64(h, _mm512_set1_epi64((long long)0xFF51AFD7ED558CCDu));
    h = _mm512_xor_si512(h, _mm512_srli_epi64(h, 33));
    h = _mm512_mullo_epi64(h, _mm512_set1_epi64((long long)0xC4CEB9FE1A85EC53u));
    return _mm512_xor_si512(h, _mm512_srli_epi64(h, 33));
}

/* Ones in as many low bytes as each lane says, at most 8; below 0 counts as 0. */
DP_TARGET_AVX512 static inline __m512i low_bytes(__m512i count) {
    const __m512i zero = _mm512_setzero_si512(), eight = _mm512_set1_epi64(8);
    __m512i bytes = _mm512_min_epi64(_mm512_max_epi64(count, zero), eight);
    __m512i shift = _mm512_slli_epi64(_mm512_sub_epi64(eight, bytes), 3);
    return _mm512_srlv_epi64(_mm512_set1_epi64(-1), shift);
}

/* Eight runs that start within 112 bytes of `window`; `index` takes the first 8 bytes of each out of it. */
DP_TARGET_AVX512 static inline __m512i hash_runs(const uint8_t *window, __m512i index, __m512i length, uint32_t seed) {
    const __m512i index2 = _mm512_add_epi8(index, _mm512_set1_epi8(8)), sixteen = _mm512_set1_epi64(16);
    lanes s = {_mm512_set1_epi64(seed), _mm512_set1_epi64(seed)};
    __m512i left = length, tail1 = _mm512_setzero_si512(), tail2 = tail1;
    __mmask8 open = 0xFF;
    for (;; window += 16) {
        __m512i low = _mm512_loadu_si512(window), high = _mm512_loadu_si512(window + 64);
        __m512i first = _mm512_permutex2var_epi8(low, index, high);
        __m512i second = _mm512_permutex2var_epi8(low, index2, high);
        __mmask8 active = _mm512_cmpge_epi64_mask(left, sixteen);
        __mmask8 ending = (__mmask8)(open & ~active);
        if (ending) {
            tail1 = _mm512_mask_and_epi64(tail1, ending, first, low_bytes(left));
            tail2 =
                _mm512_mask_and_epi64(tail2, ending, second, low_bytes(_mm512_sub_epi64(left, _mm512_set1_epi64(8))));
        }
        open = active;
        if (!open)
            break;
        s = mix_block(s, first, second, active);
        left = _mm512_mask_sub_epi64(left, active, left, sixteen);
    }
    __m512i h1 = _mm512_xor_si512(_mm512_xor_si512(s.h1, k1(tail1)), length);
    __m512i h2 = _mm512_xor_si512(_mm512_xor_si512(s.h2, k2(tail2)), length);
    h1 = _mm512_add_epi64(h1, h2);
    h2 = _mm512_add_epi64(h2, h1);
    return _mm512_add_epi64(finish(h1), finish(h2));
}

DP_TARGET_AVX512 static void murmur3_runs_avx512(const dp_runs *runs, uint32_t seed, uint64_t *hashes) {
    const __m512i spread =
        _mm512_set_epi64(0x0808080808080808, 0, 0x0808080808080808, 0, 0x0808080808080808, 0, 0x0808080808080808, 0);
    size_t i = 0;
    for (; i + 8 <= runs->count; i += 8) {
        const uint32_t *starts = runs->starts + i;
        __m256i start = _mm256_loadu_si256((const void *)starts);
        __m256i end = _mm256_loadu_si256((const void *)(starts + runs->n));
        __m256i place = _mm256_sub_epi32(start, _mm256_set1_epi32((int)starts[0]));
        __m256i length = _mm256_sub_epi32(_mm256_sub_epi32(end, start), _mm256_set1_epi32((int)runs->gap));
        if (starts[7] - starts[0] > 128 - 16) {
            dp_runs few = {runs->text, starts, 8, runs->n, runs->gap};
            murmur3_runs_portable(&few, seed, hashes + i);
            continue;
        }
        __m512i index = _mm512_shuffle_epi8(_mm512_cvtepu32_epi64(place), spread);
        index = _mm512_add_epi8(index, _mm512_set1_epi64(0x0706050403020100));
        _mm512_storeu_si512(hashes + i, hash_runs(runs->text + starts[0], index, _mm512_cvtepu32_epi64(length), seed));
    }
    dp_runs rest = {runs->text, runs->starts + i, runs->count - i, runs->n, runs->gap};
    murmur3_runs_portable(&rest, seed, hashes + i);
}
#endif

const dp_murmur3_runs_variant dp_murmur3_runs_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, murmur3_runs_avx512},
#endif
    {"portable", DP_CPU_PORTABLE, murmur3_runs_portable},
};
DP_KERNEL_CHOOSER(murmur3_runs)
