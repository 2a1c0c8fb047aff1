/* ascii.c - normalises ASCII text: map each byte, drop what vanishes, keep one space of each run.
 *
 * A byte maps to itself, its lower case, a space, or 0 (it vanishes). A space stays only when the last byte that did
 * not vanish was not a space. In a block of 64 bytes with masks W (white space) and D (vanishing), the bytes whose last
 * staying predecessor is a space are found by carry propagation: S = W << 1 marks what follows a space; adding S & D to
 * D sends a carry through each run of vanishing bytes that follows a space, out to the first byte behind the run. */
#include "kernel/kernel.h"

void dp_ascii_prepare(dp_ascii_state *state) {
    memset(state->rows, 0, sizeof state->rows);
    for (int c = 0; c < 128; c++) {
        uint8_t bit = (uint8_t)(1 << (c >> 4)), becomes = state->map[c];
        state->rows[DP_ASCII_STAYS][c & 15] |= becomes ? bit : 0;
        state->rows[DP_ASCII_SPACE][c & 15] |= becomes == ' ' ? bit : 0;
        state->rows[DP_ASCII_UPPER][c & 15] |= becomes == c + 32 ? bit : 0;
    }
}

/* One byte, without a branch: what text does next is not to be guessed. */
static inline size_t put_byte(uint8_t c, uint8_t *out, unsigned *at_space) {
    unsigned space = c == ' ', vanishes = c == 0, stays = (vanishes | (space & *at_space)) ^ 1;
    *out = c;
    *at_space = space | (*at_space & vanishes);
    return stays;
}

static size_t ascii_portable(const uint8_t *in, size_t length, uint8_t *out, dp_ascii_state *state) {
    const uint8_t *map = state->map;
    size_t made = 0, used = 0;
    unsigned at_space = state->at_space;
    for (; used + 8 <= length && !(dp_load64(in + used) & 0x8080808080808080); used += 8)
        for (size_t i = 0; i < 8; i++)
            made += put_byte(map[in[used + i]], out + made, &at_space);
    for (; used < length && in[used] < 128; used++)
        made += put_byte(map[in[used]], out + made, &at_space);
    state->at_space = at_space;
    state->used = used;
    return made;
}

/* Text streams from memory, and the CPU's own prefetching stops at the end of a page. */
#define AHEAD 2048

/* The masks of one block, and which of its bytes stay; *at_space is carried from block to block. */
static inline uint64_t staying(uint64_t space, uint64_t vanishing, bool *at_space) {
    uint64_t after = space << 1 | *at_space, sum;
    bool carry = __builtin_add_overflow(after & vanishing, vanishing, &sum);
    uint64_t follows = (after | sum) & ~vanishing;
    /* The state after the block: the last staying byte was a space, or all vanished behind one. */
    *at_space = carry || space >> 63;
    return ~vanishing & ~(space & follows);
}

#if defined(__x86_64__) || defined(__aarch64__)
/* For each mask of 8 bytes the places of its staying bytes, in order, for a byte shuffle; 128 takes none. The n-th
 * place is the lowest bit once the n lowest are cleared. 2 KiB, made by the compiler. */
#define CLEAR(m) ((m) & ((m)-1))
#define LOW(m) ((uint8_t)((m) ? __builtin_ctz(m) + BASE : 128))
#define PLACES(m)                                                                                                     \
    {                                                                                                                 \
        LOW(m), LOW(CLEAR(m)), LOW(CLEAR(CLEAR(m))), LOW(CLEAR(CLEAR(CLEAR(m)))), LOW(CLEAR(CLEAR(CLEAR(CLEAR(m))))), \
            LOW(CLEAR(CLEAR(CLEAR(CLEAR(CLEAR(m)))))), LOW(CLEAR(CLEAR(CLEAR(CLEAR(CLEAR(CLEAR(m))))))),              \
            LOW(CLEAR(CLEAR(CLEAR(CLEAR(CLEAR(CLEAR(CLEAR(m))))))))                                                   \
    }
#define PLACES4(m) PLACES(m), PLACES((m) + 1), PLACES((m) + 2), PLACES((m) + 3)
#define PLACES16(m) PLACES4(m), PLACES4((m) + 4), PLACES4((m) + 8), PLACES4((m) + 12)
#define PLACES64(m) PLACES16(m), PLACES16((m) + 16), PLACES16((m) + 32), PLACES16((m) + 48)
#define BASE 0
static const uint8_t places[256][8] = {PLACES64(0), PLACES64(64), PLACES64(128), PLACES64(192)};
#undef BASE
#if defined(__x86_64__)
/* The same for the high half of 16 bytes. */
#define BASE 8
static const uint8_t places_high[256][8] = {PLACES64(0), PLACES64(64), PLACES64(128), PLACES64(192)};
#undef BASE
#endif

#endif

#if defined(__x86_64__)
#include <immintrin.h>

/* The bytes of a block that are valid; gives the end of the output. */
DP_TARGET_AVX512 static inline uint8_t *block_avx512(__m512i bytes, uint64_t valid, uint8_t *end,
                                                     dp_ascii_state *state) {
    const __m512i low = _mm512_loadu_si512(state->map), high = _mm512_loadu_si512(state->map + 64);
    __m512i mapped = _mm512_permutex2var_epi8(low, bytes, high);
    uint64_t space = _mm512_mask_cmpeq_epi8_mask(valid, mapped, _mm512_set1_epi8(' '));
    uint64_t vanishing = _mm512_testn_epi8_mask(mapped, mapped) | ~valid;
    uint64_t keep = staying(space, vanishing, &state->at_space);
    _mm512_storeu_si512(end, _mm512_maskz_compress_epi8(keep, mapped));
    return end + __builtin_popcountll(keep);
}

DP_TARGET_AVX512 static size_t ascii_avx512(const uint8_t *in, size_t length, uint8_t *out, dp_ascii_state *given) {
    dp_ascii_state state = *given;
    uint8_t *end = out;
    size_t used = 0, count = 64;
    for (; used + 64 <= length; used += 64) {
        __m512i bytes = _mm512_loadu_si512(in + used);
        __builtin_prefetch(in + used + AHEAD);
        if (__builtin_expect(_mm512_movepi8_mask(bytes) != 0, 0))
            break;
        end = block_avx512(bytes, ~(uint64_t)0, end, &state);
    }
    /* The last block is short, or has a foreign byte. */
    count = length - used < 64 ? length - used : 64;
    if (count) {
        uint64_t valid = ~(uint64_t)0 >> (64 - count);
        __m512i bytes = _mm512_maskz_loadu_epi8(valid, in + used);
        uint64_t foreign = _mm512_movepi8_mask(bytes);
        valid = foreign ? (foreign & -foreign) - 1 : valid;
        end = block_avx512(bytes, valid, end, &state);
        used += (size_t)__builtin_popcountll(valid);
    }
    given->at_space = state.at_space;
    given->used = used;
    return (size_t)(end - out);
}

/* 0xFF for each byte in a set: the row of the low nibble has the bit of the high nibble. */
DP_TARGET_AVX2 static inline __m256i in_set(__m256i row, __m256i low, __m256i bit) {
    return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(row, low), bit), bit);
}

/* 32 mapped bytes, and which of them are spaces and which vanish. */
typedef struct block32 {
    __m256i mapped, space, vanishing;
} block32;

DP_TARGET_AVX2 static inline block32 map_avx2(const __m256i *rows, __m256i bytes) {
    const __m256i nibble = _mm256_set1_epi8(15), bits = _mm256_set1_epi64x((long long)0x8040201008040201);
    __m256i low = _mm256_and_si256(bytes, nibble);
    __m256i bit = _mm256_shuffle_epi8(bits, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble));
    __m256i upper = _mm256_and_si256(in_set(rows[DP_ASCII_UPPER], low, bit), _mm256_set1_epi8(32));
    __m256i space = in_set(rows[DP_ASCII_SPACE], low, bit), stays = in_set(rows[DP_ASCII_STAYS], low, bit);
    __m256i mapped = _mm256_blendv_epi8(_mm256_add_epi8(bytes, upper), _mm256_set1_epi8(' '), space);
    return (block32){mapped, space, _mm256_xor_si256(stays, _mm256_set1_epi8(-1))};
}

DP_TARGET_AVX2 static inline uint64_t mask_avx2(__m256i a, __m256i b) {
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

/* The 16 bytes at once, from places in both halves; each half is stored behind the other's staying bytes. */
DP_TARGET_AVX2 static inline uint8_t *compress16(__m128i bytes, unsigned low, unsigned high, uint8_t *end) {
    __m128i shuffle = _mm_loadl_epi64((const void *)places[low]);
    shuffle = _mm_castps_si128(_mm_loadh_pi(_mm_castsi128_ps(shuffle), (const void *)places_high[high]));
    __m128i packed = _mm_shuffle_epi8(bytes, shuffle);
    _mm_storel_epi64((void *)end, packed);
    end += __builtin_popcount(low);
    _mm_storeh_pi((void *)end, _mm_castsi128_ps(packed));
    return end + __builtin_popcount(high);
}

DP_TARGET_AVX2 static inline uint8_t *compress_avx2(__m256i first, __m256i second, uint64_t keep, uint8_t *end) {
    end = compress16(_mm256_castsi256_si128(first), keep & 255, keep >> 8 & 255, end);
    end = compress16(_mm256_extracti128_si256(first, 1), keep >> 16 & 255, keep >> 24 & 255, end);
    end = compress16(_mm256_castsi256_si128(second), keep >> 32 & 255, keep >> 40 & 255, end);
    return compress16(_mm256_extracti128_si256(second, 1), keep >> 48 & 255, (unsigned)(keep >> 56), end);
}

DP_TARGET_AVX2 static size_t ascii_avx2(const uint8_t *in, size_t length, uint8_t *out, dp_ascii_state *state) {
    __m256i rows[3];
    for (int i = 0; i < 3; i++)
        rows[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)state->rows[i]));
    uint8_t *end = out;
    size_t used = 0;
    bool at_space = state->at_space;
    for (; used + 64 <= length; used += 64) {
        __m256i low = _mm256_loadu_si256((const void *)(in + used));
        __m256i high = _mm256_loadu_si256((const void *)(in + used + 32));
        __builtin_prefetch(in + used + AHEAD);
        if (_mm256_movemask_epi8(_mm256_or_si256(low, high)))
            break;
        block32 first = map_avx2(rows, low), second = map_avx2(rows, high);
        uint64_t space = mask_avx2(first.space, second.space);
        uint64_t vanishing = mask_avx2(first.vanishing, second.vanishing);
        end = compress_avx2(first.mapped, second.mapped, staying(space, vanishing, &at_space), end);
    }
    /* What is left is short, or has a foreign byte in its first 64. */
    state->at_space = at_space;
    size_t made = ascii_portable(in + used, length - used, end, state);
    state->used += used;
    return (size_t)(end - out) + made;
}
#elif defined(__aarch64__)
#include <arm_neon.h>

/* 16 mapped bytes. */
static inline uint8x16_t map_neon(const uint8x16x4_t *map, uint8x16_t bytes) {
    /* Each look-up covers 64 entries; an index beyond gives 0, or leaves what was there. */
    uint8x16_t mapped = vqtbl4q_u8(map[0], bytes);
    return vqtbx4q_u8(mapped, map[1], veorq_u8(bytes, vdupq_n_u8(64)));
}

/* A bit for each byte that is 0xFF. */
static inline uint64_t mask_neon(uint8x16_t bytes) {
    const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    uint8x16_t set = vandq_u8(bytes, bits);
    return vaddv_u8(vget_low_u8(set)) | (uint64_t)vaddv_u8(vget_high_u8(set)) << 8;
}

static inline uint8_t *compress_neon(uint8x16_t bytes, uint64_t keep, uint8_t *end) {
    vst1_u8(end, vtbl1_u8(vget_low_u8(bytes), vld1_u8(places[keep & 255])));
    end += __builtin_popcountll(keep & 255);
    vst1_u8(end, vtbl1_u8(vget_high_u8(bytes), vld1_u8(places[keep >> 8 & 255])));
    return end + __builtin_popcountll(keep >> 8 & 255);
}

static size_t ascii_neon(const uint8_t *in, size_t length, uint8_t *out, dp_ascii_state *state) {
    uint8x16x4_t map[2] = {vld1q_u8_x4(state->map), vld1q_u8_x4(state->map + 64)};
    uint8_t *end = out;
    size_t used = 0;
    for (; used + 64 <= length; used += 64) {
        uint8x16x4_t bytes = vld1q_u8_x4(in + used);
        uint8x16_t all = vorrq_u8(vorrq_u8(bytes.val[0], bytes.val[1]), vorrq_u8(bytes.val[2], bytes.val[3]));
        if (vmaxvq_u8(all) >= 128)
            break;
        uint64_t space = 0, vanishing = 0;
        for (int i = 0; i < 4; i++) {
            bytes.val[i] = map_neon(map, bytes.val[i]);
            space |= mask_neon(vceqq_u8(bytes.val[i], vdupq_n_u8(' '))) << (16 * i);
            vanishing |= mask_neon(vceqzq_u8(bytes.val[i])) << (16 * i);
        }
        uint64_t keep = staying(space, vanishing, &state->at_space);
        for (int i = 0; i < 4; i++)
            end = compress_neon(bytes.val[i], keep >> (16 * i), end);
    }
    size_t made = ascii_portable(in + used, length - used, end, state);
    state->used += used;
    return (size_t)(end - out) + made;
}
#endif

const dp_ascii_variant dp_ascii_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, ascii_avx512},
    {"avx2", DP_CPU_AVX2, ascii_avx2},
#elif defined(__aarch64__)
    {"neon", DP_CPU_NEON, ascii_neon},
#endif
    {"portable", DP_CPU_PORTABLE, ascii_portable},
};
DP_KERNEL_CHOOSER(ascii)
