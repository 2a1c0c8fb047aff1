/* words.c - the hash of each word, and the hash of each run of n words, as docs/FORMAT.md section 3 defines `fast`.
 *
 * A word of up to 8 bytes costs one multiplication, up to 16 bytes two. AVX-512 takes eight words at a time out of a
 * window of 128 bytes by one byte permutation; words that reach beyond their window are hashed one by one. */
#include "kernel/kernel.h"

#define GOLDEN 0x9E3779B97F4A7C15u
#define MIX1 0xBF58476D1CE4E5B9u
#define MIX2 0x94D049BB133111EBu

uint64_t dp_hash_word(const uint8_t *bytes, size_t length) {
    uint64_t w = 0;
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        w = (w ^ dp_load64(bytes + i)) * GOLDEN;
        w ^= w >> 32;
    }
    if (i < length) {
        w = (w ^ dp_load_tail(bytes + i, length - i)) * GOLDEN;
        w ^= w >> 32;
    }
    return w + length;
}

uint64_t dp_hash_mix(uint64_t x) {
    x = (x ^ x >> 32) * MIX1;
    x = (x ^ x >> 29) * MIX2;
    return x ^ x >> 32;
}

/* As dp_hash_word, for text that can be read 8 bytes beyond its end. */
static inline uint64_t hash_word_padded(const uint8_t *bytes, size_t length) {
    uint64_t w = 0;
    size_t left = length;
    for (; left > 8; left -= 8, bytes += 8) {
        w = (w ^ dp_load64(bytes)) * GOLDEN;
        w ^= w >> 32;
    }
    if (left) {
        w = (w ^ (dp_load64(bytes) & ~(uint64_t)0 >> (64 - 8 * left))) * GOLDEN;
        w ^= w >> 32;
    }
    return w + length;
}

static void hash_words_portable(const uint8_t *text, const uint32_t *starts, size_t count, uint32_t gap,
                                uint64_t *hashes) {
    for (size_t i = 0; i < count; i++)
        hashes[i] = hash_word_padded(text + starts[i], starts[i + 1] - gap - starts[i]);
}

static inline uint64_t shingle(const uint64_t *words, size_t n, uint64_t offset) {
    uint64_t s = words[0];
    for (size_t i = 1; i < n; i++)
        s = dp_rotl64(s, 23) + words[i];
    return dp_hash_mix(s + offset);
}

static void shingles_portable(const uint64_t *words, size_t count, size_t n, uint64_t seed, uint64_t *hashes) {
    for (size_t i = 0; i < count; i++)
        hashes[i] = shingle(words + i, n, seed * GOLDEN);
}

#if defined(__x86_64__)
#include <immintrin.h>

DP_TARGET_AVX2 static void hash_words_avx2(const uint8_t *text, const uint32_t *starts, size_t count, uint32_t gap,
                                           uint64_t *hashes) {
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes = text + starts[i];
        uint32_t length = starts[i + 1] - gap - starts[i];
        /* Both parts are worked out always: whether a word is longer than 8 bytes is not to be guessed. */
        uint32_t second = length > 8 ? length - 8 : 0;
        uint64_t w = _bzhi_u64(dp_load64(bytes), length < 8 ? 8 * length : 64) * GOLDEN;
        w ^= w >> 32;
        uint64_t v = (w ^ _bzhi_u64(dp_load64(bytes + 8), second < 8 ? 8 * second : 64)) * GOLDEN;
        v ^= v >> 32;
        w = second ? v : w;
        hashes[i] = w + length;
        if (__builtin_expect(length > 16, 0))
            hashes[i] = hash_word_padded(bytes, length);
    }
}

DP_TARGET_AVX2 static inline __m256i multiply_avx2(__m256i x, uint64_t constant) {
    __m256i low = _mm256_set1_epi64x((long long)constant), high = _mm256_set1_epi64x((long long)(constant >> 32));
    __m256i cross = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), low), _mm256_mul_epu32(x, high));
    return _mm256_add_epi64(_mm256_mul_epu32(x, low), _mm256_slli_epi64(cross, 32));
}

DP_TARGET_AVX2 static void shingles_avx2(const uint64_t *words, size_t count, size_t n, uint64_t seed,
                                         uint64_t *hashes) {
    const __m256i offset = _mm256_set1_epi64x((long long)(seed * GOLDEN));
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        __m256i s = _mm256_loadu_si256((const void *)(words + i));
        for (size_t k = 1; k < n; k++) {
            s = _mm256_or_si256(_mm256_slli_epi64(s, 23), _mm256_srli_epi64(s, 41));
            s = _mm256_add_epi64(s, _mm256_loadu_si256((const void *)(words + i + k)));
        }
        s = _mm256_add_epi64(s, offset);
        s = multiply_avx2(_mm256_xor_si256(s, _mm256_srli_epi64(s, 32)), MIX1);
        s = multiply_avx2(_mm256_xor_si256(s, _mm256_srli_epi64(s, 29)), MIX2);
        _mm256_storeu_si256((void *)(hashes + i), _mm256_xor_si256(s, _mm256_srli_epi64(s, 32)));
    }
    shingles_portable(words + i, count - i, n, seed, hashes + i);
}

DP_TARGET_AVX512 static inline __m512i step_avx512(__m512i w, __m512i bytes) {
    w = _mm512_mullo_epi64(_mm512_xor_si512(w, bytes), _mm512_set1_epi64((long long)GOLDEN));
    return _mm512_xor_si512(w, _mm512_srli_epi64(w, 32));
}

/* Eight words whose first 16 bytes lie in the 128 bytes from `window` on; longer ones come out wrong. */
DP_TARGET_AVX512 static inline __m512i hash_eight(const uint8_t *window, __m512i place, __m512i length) {
    const __m512i spread =
        _mm512_set_epi64(0x0808080808080808, 0, 0x0808080808080808, 0, 0x0808080808080808, 0, 0x0808080808080808, 0);
    const __m512i order = _mm512_set1_epi64(0x0706050403020100);
    const __m512i ones = _mm512_set1_epi64(-1), full = _mm512_set1_epi64(64);
    __m512i low = _mm512_loadu_si512(window), high = _mm512_loadu_si512(window + 64);
    __m512i index = _mm512_add_epi8(_mm512_shuffle_epi8(place, spread), order);
    __m512i first = _mm512_permutex2var_epi8(low, index, high);
    __m512i second = _mm512_permutex2var_epi8(low, _mm512_add_epi8(index, _mm512_set1_epi8(8)), high);
    /* Bytes behind the word are cleared: shifting ones by 64 less the bits of the word. A shift of 64 or more gives 0.
     */
    __m512i bits = _mm512_slli_epi64(length, 3);
    __m512i shift = _mm512_sub_epi64(full, _mm512_min_epu64(bits, full));
    __m512i w = step_avx512(_mm512_setzero_si512(), _mm512_and_si512(first, _mm512_srlv_epi64(ones, shift)));
    __mmask8 longer = _mm512_cmpgt_epu64_mask(bits, full);
    __m512i shift2 = _mm512_sub_epi64(_mm512_set1_epi64(128), _mm512_min_epu64(bits, _mm512_set1_epi64(128)));
    __m512i w2 = step_avx512(w, _mm512_and_si512(second, _mm512_srlv_epi64(ones, shift2)));
    return _mm512_add_epi64(_mm512_mask_mov_epi64(w, longer, w2), length);
}

DP_TARGET_AVX512 static void hash_words_avx512(const uint8_t *text, const uint32_t *starts, size_t count, uint32_t gap,
                                               uint64_t *hashes) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256i start = _mm256_loadu_si256((const void *)(starts + i));
        __m256i next = _mm256_loadu_si256((const void *)(starts + i + 1));
        __m256i place = _mm256_sub_epi32(start, _mm256_set1_epi32((int)starts[i]));
        __m256i length = _mm256_sub_epi32(_mm256_sub_epi32(next, start), _mm256_set1_epi32((int)gap));
        __m512i w = hash_eight(text + starts[i], _mm512_cvtepu32_epi64(place), _mm512_cvtepu32_epi64(length));
        _mm512_storeu_si512(hashes + i, w);
        /* A word that is too long, or starts too far into the window, is done again. */
        uint32_t wrong = _mm256_cmpgt_epu32_mask(length, _mm256_set1_epi32(16)) |
                         _mm256_cmpgt_epu32_mask(place, _mm256_set1_epi32(128 - 16));
        for (; __builtin_expect(wrong != 0, 0); wrong = _blsr_u32(wrong)) {
            size_t k = i + _tzcnt_u32(wrong);
            hashes[k] = hash_word_padded(text + starts[k], starts[k + 1] - gap - starts[k]);
        }
    }
    hash_words_avx2(text, starts + i, count - i, gap, hashes + i);
}

DP_TARGET_AVX512 static inline __m512i shingle_avx512(const uint64_t *words, size_t n, __m512i offset) {
    __m512i s = _mm512_loadu_si512(words);
    for (size_t k = 1; k < n; k++)
        s = _mm512_add_epi64(_mm512_rol_epi64(s, 23), _mm512_loadu_si512(words + k));
    s = _mm512_add_epi64(s, offset);
    s = _mm512_mullo_epi64(_mm512_xor_si512(s, _mm512_srli_epi64(s, 32)), _mm512_set1_epi64((long long)MIX1));
    s = _mm512_mullo_epi64(_mm512_xor_si512(s, _mm512_srli_epi64(s, 29)), _mm512_set1_epi64((long long)MIX2));
    return _mm512_xor_si512(s, _mm512_srli_epi64(s, 32));
}

DP_TARGET_AVX512 static void shingles_avx512(const uint64_t *words, size_t count, size_t n, uint64_t seed,
                                             uint64_t *hashes) {
    const __m512i offset = _mm512_set1_epi64((long long)(seed * GOLDEN));
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm512_storeu_si512(hashes + i, shingle_avx512(words + i, n, offset));
    shingles_portable(words + i, count - i, n, seed, hashes + i);
}
#endif

const dp_hash_words_variant dp_hash_words_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, hash_words_avx512},
    {"avx2", DP_CPU_AVX2, hash_words_avx2},
#endif
    {"portable", DP_CPU_PORTABLE, hash_words_portable},
};
DP_KERNEL_CHOOSER(hash_words)

const dp_shingles_variant dp_shingles_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, shingles_avx512},
    {"avx2", DP_CPU_AVX2, shingles_avx2},
#endif
    {"portable", DP_CPU_PORTABLE, shingles_portable},
};
DP_KERNEL_CHOOSER(shingles)
