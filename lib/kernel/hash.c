/* hash.c - the kernels that hash runs of words: hash_words and shingles (`fast`), murmur3_runs. docs/FORMAT.md section
 * 3 defines what they compute; lib/sketch/hash.c has the hashes by name. */
#include "kernel/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- hash_words and shingles: the `fast` hash of each word, and of each run of n words.
 *
 * A word of up to 8 bytes costs one multiplication, up to 16 bytes two. AVX-512 takes eight words at a time out of a
 * window of 128 bytes by one byte permutation; words that reach beyond their window are hashed one by one. */

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

static void hash_words_portable(const dp_runs *words, uint64_t *hashes) {
    for (size_t i = 0; i < words->count; i++) {
        const uint32_t *start = words->starts + i;
        hashes[i] = hash_word_padded(words->text + start[0], start[1] - words->gap - start[0]);
    }
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
/* Words are hashed in chunks, so that long ones can be listed without a branch and hashed at the end. */
#define CHUNK 512

typedef struct long_words {
    uint32_t at[CHUNK + 8];
    size_t count;
} long_words;

static void hash_long(const dp_runs *words, const long_words *list, uint64_t *hashes) {
    for (size_t i = 0; i < list->count; i++) {
        const uint32_t *start = words->starts + list->at[i];
        hashes[list->at[i]] = hash_word_padded(words->text + start[0], start[1] - words->gap - start[0]);
    }
}

DP_TARGET_AVX2 static inline __m256i multiply_avx2(__m256i x, uint64_t constant) {
    __m256i low = _mm256_set1_epi64x((long long)constant), high = _mm256_set1_epi64x((long long)(constant >> 32));
    __m256i cross = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), low), _mm256_mul_epu32(x, high));
    return _mm256_add_epi64(_mm256_mul_epu32(x, low), _mm256_slli_epi64(cross, 32));
}

/* Moves the marked ones of four numbers to the front. */
static const uint8_t fronts[16][16] = {
#define FRONT(a) 4 * (a), 4 * (a) + 1, 4 * (a) + 2, 4 * (a) + 3
    {0},
    {FRONT(0)},
    {FRONT(1)},
    {FRONT(0), FRONT(1)},
    {FRONT(2)},
    {FRONT(0), FRONT(2)},
    {FRONT(1), FRONT(2)},
    {FRONT(0), FRONT(1), FRONT(2)},
    {FRONT(3)},
    {FRONT(0), FRONT(3)},
    {FRONT(1), FRONT(3)},
    {FRONT(0), FRONT(1), FRONT(3)},
    {FRONT(2), FRONT(3)},
    {FRONT(0), FRONT(2), FRONT(3)},
    {FRONT(1), FRONT(2), FRONT(3)},
    {FRONT(0), FRONT(1), FRONT(2), FRONT(3)},
#undef FRONT
};

/* Four words from i on; those of more than 8 bytes come out wrong and are listed. */
DP_TARGET_AVX2 static inline void hash_four(const dp_runs *words, size_t i, long_words *list, uint64_t *hashes) {
    const uint32_t *starts = words->starts + i;
    const uint8_t *text = words->text;
    __m128i start = _mm_loadu_si128((const void *)starts), next = _mm_loadu_si128((const void *)(starts + 1));
    __m128i length = _mm_sub_epi32(_mm_sub_epi32(next, start), _mm_set1_epi32((int)words->gap));
    __m256i bytes = _mm256_set_epi64x((long long)dp_load64(text + starts[3]), (long long)dp_load64(text + starts[2]),
                                      (long long)dp_load64(text + starts[1]), (long long)dp_load64(text + starts[0]));
    __m256i wide = _mm256_cvtepu32_epi64(length);
    /* Ones shifted by 64 less the bits of the word clear what comes after it. */
    __m256i shift = _mm256_sub_epi64(_mm256_set1_epi64x(64), _mm256_slli_epi64(wide, 3));
    bytes = _mm256_and_si256(bytes, _mm256_srlv_epi64(_mm256_set1_epi64x(-1), shift));
    __m256i w = multiply_avx2(bytes, GOLDEN);
    w = _mm256_add_epi64(_mm256_xor_si256(w, _mm256_srli_epi64(w, 32)), wide);
    _mm256_storeu_si256((void *)(hashes + i), w);
    unsigned noted = (unsigned)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpgt_epi32(length, _mm_set1_epi32(8))));
    __m128i numbers = _mm_add_epi32(_mm_set1_epi32((int)i), _mm_set_epi32(3, 2, 1, 0));
    numbers = _mm_shuffle_epi8(numbers, _mm_loadu_si128((const void *)fronts[noted]));
    _mm_storeu_si128((void *)(list->at + list->count), numbers);
    list->count += (size_t)__builtin_popcount(noted);
}

/* The words of the list that have up to 16 bytes; the list keeps the longer ones. */
DP_TARGET_AVX2 static inline void hash_middling(const dp_runs *words, long_words *list, uint64_t *hashes) {
    size_t longer = 0;
    for (size_t i = 0; i < list->count; i++) {
        uint32_t at = list->at[i], start = words->starts[at], length = words->starts[at + 1] - words->gap - start;
        uint64_t w = dp_load64(words->text + start) * GOLDEN;
        w ^= w >> 32;
        w = (w ^ _bzhi_u64(dp_load64(words->text + start + 8), 8 * length - 64)) * GOLDEN;
        hashes[at] = (w ^ w >> 32) + length;
        list->at[longer] = at;
        longer += length > 16;
    }
    list->count = longer;
}

DP_TARGET_AVX2 static void hash_words_avx2(const dp_runs *words, uint64_t *hashes) {
    size_t i = 0;
    while (i + 4 <= words->count) {
        size_t end = words->count - i < CHUNK ? words->count : i + CHUNK;
        long_words list;
        list.count = 0;
        for (; i + 4 <= end; i += 4)
            hash_four(words, i, &list, hashes);
        hash_middling(words, &list, hashes);
        hash_long(words, &list, hashes);
    }
    dp_runs rest = {words->text, words->starts + i, words->count - i, 1, words->gap};
    hash_words_portable(&rest, hashes + i);
}

DP_TARGET_AVX2 static inline __m256i mix_avx2(__m256i s) {
    s = multiply_avx2(_mm256_xor_si256(s, _mm256_srli_epi64(s, 32)), MIX1);
    s = multiply_avx2(_mm256_xor_si256(s, _mm256_srli_epi64(s, 29)), MIX2);
    return _mm256_xor_si256(s, _mm256_srli_epi64(s, 32));
}

DP_TARGET_AVX2 static inline __m256i combine_avx2(const uint64_t *words, size_t n) {
    __m256i s = _mm256_loadu_si256((const void *)words);
    for (size_t k = 1; k < n; k++) {
        s = _mm256_or_si256(_mm256_slli_epi64(s, 23), _mm256_srli_epi64(s, 41));
        s = _mm256_add_epi64(s, _mm256_loadu_si256((const void *)(words + k)));
    }
    return s;
}

DP_TARGET_AVX2 static void shingles_avx2(const uint64_t *words, size_t count, size_t n, uint64_t seed,
                                         uint64_t *hashes) {
    const __m256i offset = _mm256_set1_epi64x((long long)(seed * GOLDEN));
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        /* A constant for the usual length. */
        __m256i s = n == 5 ? combine_avx2(words + i, 5) : combine_avx2(words + i, n);
        _mm256_storeu_si256((void *)(hashes + i), mix_avx2(_mm256_add_epi64(s, offset)));
    }
    shingles_portable(words + i, count - i, n, seed, hashes + i);
}

/* Eight words whose first 16 bytes lie in the 128 bytes from `window` on; longer ones come out wrong. */
DP_TARGET_AVX512 static inline __m512i hash_eight(const uint8_t *window, __m512i place, __m512i length) {
    const __m512i spread =
        _mm512_set_epi64(0x0808080808080808, 0, 0x0808080808080808, 0, 0x0808080808080808, 0, 0x0808080808080808, 0);
    const __m512i order = _mm512_set1_epi64(0x0706050403020100), order2 = _mm512_set1_epi64(0x0F0E0D0C0B0A0908);
    const __m512i golden = _mm512_set1_epi64((long long)GOLDEN);
    __m512i low = _mm512_loadu_si512(window), high = _mm512_loadu_si512(window + 64);
    __m512i from = _mm512_shuffle_epi8(place, spread), bytes = _mm512_shuffle_epi8(length, spread);
    __m512i index = _mm512_add_epi8(from, order), index2 = _mm512_add_epi8(from, order2);
    /* Bytes after the word are left zero. */
    __m512i first = _mm512_maskz_permutex2var_epi8(_mm512_cmplt_epu8_mask(order, bytes), low, index, high);
    __m512i second = _mm512_maskz_permutex2var_epi8(_mm512_cmplt_epu8_mask(order2, bytes), low, index2, high);
    __m512i w = _mm512_mullo_epi64(first, golden);
    w = _mm512_xor_si512(w, _mm512_srli_epi64(w, 32));
    __mmask8 longer = _mm512_cmpgt_epu64_mask(length, _mm512_set1_epi64(8));
    __m512i v = _mm512_mullo_epi64(_mm512_xor_si512(w, second), golden);
    w = _mm512_mask_xor_epi64(w, longer, v, _mm512_srli_epi64(v, 32));
    return _mm512_add_epi64(w, length);
}

/* Eight words from i on; those that are too long, or start too far into the window, are listed. */
DP_TARGET_AVX512 static inline void hash_group(const dp_runs *words, size_t i, long_words *list, uint64_t *hashes) {
    const uint32_t *starts = words->starts + i;
    __m256i start = _mm256_loadu_si256((const void *)starts), next = _mm256_loadu_si256((const void *)(starts + 1));
    __m256i place = _mm256_sub_epi32(start, _mm256_set1_epi32((int)starts[0]));
    __m256i length = _mm256_sub_epi32(_mm256_sub_epi32(next, start), _mm256_set1_epi32((int)words->gap));
    __m512i w = hash_eight(words->text + starts[0], _mm512_cvtepu32_epi64(place), _mm512_cvtepu32_epi64(length));
    _mm512_storeu_si512(hashes + i, w);
    __mmask8 noted = _mm256_cmpgt_epu32_mask(length, _mm256_set1_epi32(16)) |
                     _mm256_cmpgt_epu32_mask(place, _mm256_set1_epi32(128 - 16));
    __m256i numbers = _mm256_add_epi32(_mm256_set1_epi32((int)i), _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0));
    _mm256_storeu_si256((void *)(list->at + list->count), _mm256_maskz_compress_epi32(noted, numbers));
    list->count += (size_t)__builtin_popcount(noted);
}

DP_TARGET_AVX512 static void hash_words_avx512(const dp_runs *words, uint64_t *hashes) {
    size_t i = 0;
    while (i + 8 <= words->count) {
        size_t end = words->count - i < CHUNK ? words->count : i + CHUNK;
        long_words list;
        list.count = 0;
        for (; i + 8 <= end; i += 8)
            hash_group(words, i, &list, hashes);
        hash_long(words, &list, hashes);
    }
    dp_runs rest = {words->text, words->starts + i, words->count - i, 1, words->gap};
    hash_words_avx2(&rest, hashes + i);
}

DP_TARGET_AVX512 static inline __m512i combine_avx512(const uint64_t *words, size_t n) {
    __m512i s = _mm512_loadu_si512(words);
    for (size_t k = 1; k < n; k++)
        s = _mm512_add_epi64(_mm512_rol_epi64(s, 23), _mm512_loadu_si512(words + k));
    return s;
}

DP_TARGET_AVX512 static inline __m512i mix_avx512(__m512i s) {
    s = _mm512_mullo_epi64(_mm512_xor_si512(s, _mm512_srli_epi64(s, 32)), _mm512_set1_epi64((long long)MIX1));
    s = _mm512_mullo_epi64(_mm512_xor_si512(s, _mm512_srli_epi64(s, 29)), _mm512_set1_epi64((long long)MIX2));
    return _mm512_xor_si512(s, _mm512_srli_epi64(s, 32));
}

DP_TARGET_AVX512 static void shingles_avx512(const uint64_t *words, size_t count, size_t n, uint64_t seed,
                                             uint64_t *hashes) {
    const __m512i offset = _mm512_set1_epi64((long long)(seed * GOLDEN));
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m512i s = n == 5 ? combine_avx512(words + i, 5) : combine_avx512(words + i, n);
        _mm512_storeu_si512(hashes + i, mix_avx512(_mm512_add_epi64(s, offset)));
    }
    shingles_portable(words + i, count - i, n, seed, hashes + i);
}
#endif

DP_KERNEL_LIST(hash_words, DP_AVX512(hash_words_avx512) DP_AVX2(hash_words_avx2) DP_PORTABLE(hash_words_portable))
DP_KERNEL_LIST(shingles, DP_AVX512(shingles_avx512) DP_AVX2(shingles_avx2) DP_PORTABLE(shingles_portable))

/* ---- murmur3_runs: MurmurHash3 of overlapping runs of words, eight at a time.
 *
 * The runs of a group start close together, so that each block of 16 bytes of all eight lies in one window of 128
 * bytes, out of which a byte permutation takes it. A lane whose run is shorter than the others' keeps its state by
 * mask; the last, incomplete block is the same step with zeros after the run and without the mixing, as multiplying
 * and rotating zero changes nothing. */

static inline uint32_t run_length(const dp_runs *runs, size_t i) {
    return runs->starts[i + runs->n] - runs->gap - runs->starts[i];
}

static void murmur3_runs_portable(const dp_runs *runs, uint32_t seed, uint64_t *hashes) {
    for (size_t i = 0; i < runs->count; i++)
        hashes[i] = dp_murmur3(runs->text + runs->starts[i], run_length(runs, i), seed);
}

#if defined(__x86_64__)
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

DP_KERNEL_LIST(murmur3_runs, DP_AVX512(murmur3_runs_avx512) DP_PORTABLE(murmur3_runs_portable))
