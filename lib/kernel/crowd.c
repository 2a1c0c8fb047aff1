/* crowd.c - numbers that share a key and are near each other, found while they go into buckets.
 *
 * A bucket is one cache line of 16 words of 32 bits, one a number, so that a number is compared with all that came
 * before it by one load. It holds 32 bits of each only: a hit is a candidate, which the caller compares in full. What
 * finds its bucket full is left out, and the bucket says so. */
#include "kernel/kernel.h"

/* The slots of a line below `fill` that are within `distance` of the word. */
typedef uint32_t (*match_fn)(const uint32_t *line, uint32_t word, int distance, uint32_t fill);

/* How many keys are worked out ahead, all at once. */
enum { AHEAD = 512 };

static inline __attribute__((always_inline)) void look_ahead(const dp_crowd *c, size_t from, size_t count,
                                                             uint32_t *keys, uint32_t *words) {
    const uint64_t *numbers = c->numbers + from, mask = ((uint64_t)1 << c->width) - 1;
    const int shift = c->shift, rotate = c->rotate & 63, back = -c->rotate & 63;
    for (size_t i = 0; i < count; i++) {
        keys[i] = (uint32_t)(numbers[i] >> shift & mask);
        words[i] = (uint32_t)(numbers[i] >> rotate | numbers[i] << back);
    }
}

/* Compares what was looked at ahead; gives the hits there are then. */
static inline __attribute__((always_inline)) size_t place(dp_crowd *c, size_t from, size_t count, const uint32_t *keys,
                                                          const uint32_t *words, size_t found, match_fn match) {
    uint8_t *fills = c->fills;
    uint32_t *slots = c->slots;
    uint16_t *ids = c->ids;
    const int distance = c->distance;
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)keys[i] * DP_CROWD_SLOTS;
        uint32_t fill = fills[keys[i]];
        if (__builtin_expect(fill >= DP_CROWD_SLOTS, 0)) {
            fills[keys[i]] = DP_CROWD_OVER;
            c->over++;
            continue;
        }
        uint32_t matches = match(slots + at, words[i], distance, fill);
        if (__builtin_expect(matches, 0)) {
            if (found > c->room)
                return DP_CROWDED;
            for (; matches; matches &= matches - 1)
                c->hits[found++] = (uint32_t)ids[at + (uint32_t)__builtin_ctz(matches)] << 16 | (uint32_t)(from + i);
        }
        slots[at + fill] = words[i];
        ids[at + fill] = (uint16_t)(from + i);
        fills[keys[i]] = (uint8_t)(fill + 1);
    }
    return found;
}

static inline __attribute__((always_inline)) size_t crowd_all(dp_crowd *c, match_fn match) {
    uint32_t keys[AHEAD], words[AHEAD];
    size_t found = 0;
    c->over = 0;
    memset(c->fills, 0, (size_t)1 << c->width);
    for (size_t from = 0; from < c->count && found != DP_CROWDED; from += AHEAD) {
        size_t count = c->count - from < AHEAD ? c->count - from : AHEAD;
        look_ahead(c, from, count, keys, words);
        found = place(c, from, count, keys, words, found, match);
    }
    return found;
}

static inline uint32_t match_portable(const uint32_t *line, uint32_t word, int distance, uint32_t fill) {
    uint32_t matches = 0;
    for (uint32_t i = 0; i < fill; i++)
        matches |= (uint32_t)(__builtin_popcount(line[i] ^ word) <= distance) << i;
    return matches;
}

static size_t crowd_portable(dp_crowd *crowd) {
    return crowd_all(crowd, match_portable);
}

#if defined(__x86_64__)
#include <immintrin.h>

DP_TARGET_AVX512 static inline uint32_t match_avx512(const uint32_t *line, uint32_t word, int distance, uint32_t fill) {
    __m512i differ = _mm512_xor_si512(_mm512_load_si512(line), _mm512_set1_epi32((int)word));
    return _bzhi_u32(_mm512_cmple_epu32_mask(_mm512_popcnt_epi32(differ), _mm512_set1_epi32(distance)), fill);
}

DP_TARGET_AVX512 static size_t crowd_avx512(dp_crowd *crowd) {
    return crowd_all(crowd, match_avx512);
}

/* Bits set in each word of 32, by nibbles. */
DP_TARGET_AVX2 static inline __m256i count_avx2(__m256i x) {
    __m256i table = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    __m256i nibble = _mm256_set1_epi8(15);
    __m256i bytes = _mm256_add_epi8(_mm256_shuffle_epi8(table, _mm256_and_si256(x, nibble)),
                                    _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble)));
    return _mm256_madd_epi16(_mm256_maddubs_epi16(bytes, _mm256_set1_epi8(1)), _mm256_set1_epi16(1));
}

DP_TARGET_AVX2 static inline uint32_t match_avx2(const uint32_t *line, uint32_t word, int distance, uint32_t fill) {
    __m256i query = _mm256_set1_epi32((int)word), beyond = _mm256_set1_epi32(distance + 1);
    __m256i low = count_avx2(_mm256_xor_si256(_mm256_load_si256((const __m256i *)line), query));
    __m256i high = count_avx2(_mm256_xor_si256(_mm256_load_si256((const __m256i *)line + 1), query));
    int low_mask = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(beyond, low)));
    int high_mask = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(beyond, high)));
    return _bzhi_u32((uint32_t)low_mask | (uint32_t)high_mask << 8, fill);
}

DP_TARGET_AVX2 static size_t crowd_avx2(dp_crowd *crowd) {
    return crowd_all(crowd, match_avx2);
}
#endif

const dp_crowd_variant dp_crowd_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, crowd_avx512},
    {"avx2", DP_CPU_AVX2, crowd_avx2},
#endif
    {"portable", DP_CPU_PORTABLE, crowd_portable},
};

DP_KERNEL_CHOOSER(crowd)
