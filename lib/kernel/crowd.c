/* crowd.c - numbers that share a key and are near each other, found while they go into buckets.
 *
 * A bucket is one cache line of 16 words of 32 bits, one a number, so that a number is compared with all that came
 * before it by one load. It holds 32 bits of each only: a hit is a candidate, which the caller compares in full. Where
 * a bucket is too small the kernel gives up; the caller then sorts. */
#include "kernel/kernel.h"

/* The slots of a line below `fill` that are within `distance` of the word. */
typedef uint32_t (*match_fn)(const uint32_t *line, uint32_t word, int distance, uint32_t fill);

static inline __attribute__((always_inline)) size_t crowd_all(dp_crowd *c, match_fn match) {
    const uint64_t *numbers = c->numbers;
    const uint64_t mask = ((uint64_t)1 << c->width) - 1;
    const int shift = c->shift, rotate = c->rotate & 63, back = -c->rotate & 63, distance = c->distance;
    uint8_t *fills = c->fills;
    uint32_t *slots = c->slots;
    uint16_t *ids = c->ids;
    size_t found = 0, count = c->count;
    uint64_t compared = 0;
    memset(fills, 0, (size_t)1 << c->width);
    for (size_t i = 0; i < count; i++) {
        uint64_t number = numbers[i];
        size_t key = number >> shift & mask;
        uint32_t word = (uint32_t)(number >> rotate | number << back), fill = fills[key];
        uint32_t *line = slots + key * DP_CROWD_SLOTS;
        uint32_t matches = match(line, word, distance, fill);
        if (__builtin_expect(matches | (fill & DP_CROWD_SLOTS), 0)) {
            if (fill == DP_CROWD_SLOTS || found > c->room)
                return DP_CROWDED;
            for (; matches; matches &= matches - 1) {
                uint32_t slot = (uint32_t)__builtin_ctz(matches);
                c->hits[found++] = (uint32_t)ids[key * DP_CROWD_SLOTS + slot] << 16 | (uint32_t)i;
            }
        }
        line[fill] = word;
        ids[key * DP_CROWD_SLOTS + fill] = (uint16_t)i;
        fills[key] = (uint8_t)(fill + 1);
        compared += fill;
    }
    c->compared = compared;
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
