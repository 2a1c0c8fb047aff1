/* text.c - the kernels of normalising text: ascii, unicode (any script, where it is simple), spaces (where words
 * begin). */
#include "kernel/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* ---- ascii: normalises ASCII text: map each byte, drop what vanishes, keep one space of each run.
 *
 * A byte maps to itself, its lower case, a space, or 0 (it vanishes). A space stays only when the last byte that did
 * not vanish was not a space. In a block of 64 bytes with masks W (white space) and D (vanishing), the bytes whose last
 * staying predecessor is a space are found by carry propagation: S = W << 1 marks what follows a space; adding S & D to
 * D sends a carry through each run of vanishing bytes that follows a space, out to the first byte after the run. */

void dp_ascii_prepare(dp_ascii_state *state) {
    memset(state->rows, 0, sizeof state->rows);
    for (int c = 0; c < 128; c++) {
        uint8_t bit = (uint8_t)(1 << (c >> 4)), becomes = state->map[c];
        state->rows[DP_ASCII_STAYS][c & 15] |= becomes ? bit : 0;
        state->rows[DP_ASCII_SPACE][c & 15] |= becomes == ' ' ? bit : 0;
        state->rows[DP_ASCII_UPPER][c & 15] |= becomes == c + 32 ? bit : 0;
    }
}

/* One byte, without a branch: text is unpredictable. */
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
    /* The state after the block: the last staying byte was a space, or all after one vanished. */
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
/* The bytes of a block that are valid; returns the end of the output. */
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
    /* The last block is short, or has a non-ASCII byte. */
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

/* The 16 bytes at once, from places in both halves; each half is stored after the other's staying bytes. */
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
    /* The rest is short, or has a non-ASCII byte in its first 64. */
    state->at_space = at_space;
    size_t made = ascii_portable(in + used, length - used, end, state);
    state->used += used;
    return (size_t)(end - out) + made;
}
#elif defined(__aarch64__)
/* 16 mapped bytes. */
static inline uint8x16_t map_neon(const uint8x16x4_t *map, uint8x16_t bytes) {
    /* Each lookup covers 64 entries; an index beyond gives 0, or leaves the old value. */
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

DP_KERNEL_LIST(ascii, DP_AVX512(ascii_avx512) DP_AVX2(ascii_avx2) DP_NEON(ascii_neon) DP_PORTABLE(ascii_portable))

/* ---- unicode: normalises text of any script, as long as each code point has up to three bytes, becomes one such, and
 * joins nothing.
 *
 * The portable way goes from state to state: after a space, in a word, after a word that stands alone. AVX-512 takes
 * up to 16 code points at a time and finds all states at once, by carries: a space counts when the last code point that
 * did not vanish was no space, and what stands alone cuts off the next letter, marks and vanishing ones between them or
 * not. */

void dp_unicode_prepare(dp_unicode_state *s) {
    for (unsigned state = 0; state < DP_STATES; state++)
        for (unsigned class = 0; class < 8; class ++) {
            unsigned apart = state == DP_AT_SPACE ? 0 : DP_WRITE_SPACE, step = state << DP_STEP_STATE;
            if (s->letters >> class & 1)
                step = (state == DP_ALONE ? DP_WRITE_SPACE : 0) | DP_WRITE_IT | DP_IN_WORD << DP_STEP_STATE;
            if (s->alones >> class & 1)
                step = apart | DP_WRITE_IT | DP_ALONE << DP_STEP_STATE;
            if (s->marks >> class & 1)
                step = DP_WRITE_IT | (state == DP_ALONE ? state : (unsigned)DP_IN_WORD) << DP_STEP_STATE;
            if (s->spaces >> class & 1)
                step = apart | DP_AT_SPACE << DP_STEP_STATE;
            s->steps[state][class] = (uint8_t)step;
        }
}

/* A sequence of up to three bytes, of which four can be read; 0 for all else. */
static inline size_t decode(const uint8_t *p, int32_t *code_point) {
    *code_point = p[0];
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xE0) {
        *code_point = (p[0] & 0x1F) << 6 | (p[1] & 0x3F);
        return p[0] < 0xC2 || (p[1] & 0xC0) != 0x80 ? 0 : 2;
    }
    int32_t c = (p[0] & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F);
    *code_point = c;
    return (dp_load32(p) & 0xC0C0F0) != 0x8080E0 || c < 0x800 || c >> 11 == 0x1B ? 0 : 3;
}

static inline int32_t entry_of(const dp_unicode_state *s, int32_t c) {
    return s->entries[s->rows[c / DP_TABLE_BLOCK] * DP_TABLE_BLOCK + c % DP_TABLE_BLOCK];
}

/* Bytes that the portable way takes at a time, so that ASCII after them goes back to its own kernel. */
#define UNICODE_RUN 256

static size_t unicode_portable(const uint8_t *in, size_t length, uint8_t *out, dp_unicode_state *given) {
    const dp_unicode_state s = *given;
    const uint8_t *p = in, *end = in + (length < UNICODE_RUN ? length : UNICODE_RUN);
    uint8_t *to = out;
    unsigned state = s.state;
    while (end - p >= 4) {
        int32_t c;
        size_t taken = decode(p, &c), written = taken;
        int32_t entry = entry_of(&s, c);
        uint32_t becomes = (uint32_t)(c + (entry >> DP_ENTRY_SHIFT));
        if (!taken || entry & (DP_ENTRY_SLOW | DP_ENTRY_JOINS) || becomes >= 0x10000)
            break;
        uint8_t step = s.steps[state][entry & DP_CLASS_BITS];
        *to = ' ';
        to += step & DP_WRITE_SPACE;
        memcpy(to, p, 4);
        if (entry >> DP_ENTRY_SHIFT)
            written = dp_utf8_encode(becomes, to);
        to += step & DP_WRITE_IT ? written : 0;
        state = step >> DP_STEP_STATE;
        p += taken;
    }
    given->state = state;
    given->used = (size_t)(p - in);
    return (size_t)(to - out);
}

#if defined(__x86_64__)
/* Up to 16 code points, and how many. */
typedef struct group {
    __m512i code_points;
    unsigned count;
} group;

/* Where sequences start in 64 bytes, those that are whole and valid before the first that is not. A block begins with a
 * start. */
DP_TARGET_AVX512 static inline uint64_t find_starts(__m512i bytes, uint64_t *two, uint64_t *three) {
    uint64_t high = _mm512_movepi8_mask(bytes);
    uint64_t follows = high & ~_mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8((char)0xC0));
    *two = _mm512_cmplt_epu8_mask(_mm512_sub_epi8(bytes, _mm512_set1_epi8((char)0xC2)), _mm512_set1_epi8(0xE0 - 0xC2));
    *three =
        _mm512_cmpeq_epi8_mask(_mm512_and_si512(bytes, _mm512_set1_epi8((char)0xF0)), _mm512_set1_epi8((char)0xE0));
    /* After E0 the second byte is at least A0 (else overlong), after ED below A0 (else a surrogate). */
    uint64_t e0 = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8((char)0xE0));
    uint64_t ed = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8((char)0xED));
    uint64_t from_a0 = follows & _mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8((char)0xA0));
    uint64_t wrong = follows ^ (*two << 1 | *three << 1 | *three << 2);
    wrong |= (high & ~follows & ~*two & ~*three) | (e0 << 1 & ~from_a0) | (ed << 1 & from_a0);
    /* A sequence whose end is not seen, or that has a wrong byte, is not started: it began at most two bytes
     * earlier. */
    uint64_t starts = (~high | *two | *three) & ~(*two & (uint64_t)1 << 63) & ~(*three & (uint64_t)3 << 62);
    if (__builtin_expect(wrong != 0, 0)) {
        uint64_t before = (wrong & -wrong) - 1;
        starts &= before & ~(*two & ~(before >> 1)) & ~(*three & ~(before >> 2));
    }
    return starts;
}

/* The code points whose first, second and third bytes are given. */
DP_TARGET_AVX512 static inline __m512i decode_group(__m128i first, __m128i second, __m128i third) {
    const __m512i low = _mm512_set1_epi32(0x3F);
    __m512i a = _mm512_cvtepu8_epi32(first), b = _mm512_and_si512(_mm512_cvtepu8_epi32(second), low);
    __m512i c = _mm512_and_si512(_mm512_cvtepu8_epi32(third), low);
    __mmask16 two = _mm512_cmpge_epu32_mask(a, _mm512_set1_epi32(0xC0));
    __mmask16 three = _mm512_cmpge_epu32_mask(a, _mm512_set1_epi32(0xE0));
    __m512i of_two = _mm512_or_si512(_mm512_slli_epi32(_mm512_and_si512(a, _mm512_set1_epi32(0x1F)), 6), b);
    __m512i high = _mm512_slli_epi32(_mm512_and_si512(a, _mm512_set1_epi32(0x0F)), 12);
    __m512i of_three = _mm512_or_si512(_mm512_or_si512(high, _mm512_slli_epi32(b, 6)), c);
    return _mm512_mask_mov_epi32(_mm512_mask_mov_epi32(a, two, of_two), three, of_three);
}

/* A space and the UTF-8 of each code point, in four bytes; *two and *three say which have at least two and three
 * bytes. */
DP_TARGET_AVX512 static inline __m512i encode_group(__m512i c, __mmask16 *two, __mmask16 *three) {
    const __m512i low = _mm512_set1_epi32(0x3F);
    __m512i last = _mm512_or_si512(_mm512_and_si512(c, low), _mm512_set1_epi32(0x80));
    __m512i above = _mm512_srli_epi32(c, 6);
    __m512i middle = _mm512_or_si512(_mm512_and_si512(above, low), _mm512_set1_epi32(0x80));
    *two = _mm512_cmpge_epu32_mask(c, _mm512_set1_epi32(0x80));
    *three = _mm512_cmpge_epu32_mask(c, _mm512_set1_epi32(0x800));
    __m512i of_two = _mm512_or_si512(_mm512_or_si512(above, _mm512_set1_epi32(0xC0)), _mm512_slli_epi32(last, 8));
    __m512i of_three = _mm512_or_si512(_mm512_srli_epi32(c, 12), _mm512_set1_epi32(0xE0));
    of_three = _mm512_or_si512(of_three, _mm512_slli_epi32(middle, 8));
    of_three = _mm512_or_si512(of_three, _mm512_slli_epi32(last, 16));
    __m512i bytes = _mm512_mask_mov_epi32(_mm512_mask_mov_epi32(c, *two, of_two), *three, of_three);
    return _mm512_or_si512(_mm512_slli_epi32(bytes, 8), _mm512_set1_epi32(' '));
}

/* Which code points are of a set of classes. */
DP_TARGET_AVX512 static inline uint32_t class_in_set(uint8_t set, __m512i classes) {
    return _mm512_test_epi32_mask(_mm512_srlv_epi32(_mm512_set1_epi32(set), classes), _mm512_set1_epi32(1));
}

/* Those not in `skipped` whose last predecessor not in it is in `marked` (`before`: what preceded bit 0 was); *after is
 * the same for what comes next. */
static inline uint32_t following(uint32_t marked, uint32_t skipped, bool before, bool *after) {
    uint32_t next = (marked << 1 | before) & 0x1FFFF, sum = (next & skipped) + skipped;
    *after = (next >> 16 | sum >> 16) & 1;
    return (next | sum) & ~skipped & 0xFFFF;
}

/* The entry of each code point of one block, by its place in it: four lookups of 32 entries, and a choice by the high
 * bits. */
DP_TARGET_AVX512 static inline __m512i look_up_block(const int32_t *row, __m512i place) {
    __m512i part[4];
    for (int i = 0; i < 4; i++)
        part[i] =
            _mm512_permutex2var_epi32(_mm512_loadu_si512(row + 32 * i), place, _mm512_loadu_si512(row + 32 * i + 16));
    __mmask16 odd = _mm512_test_epi32_mask(place, _mm512_set1_epi32(32));
    __m512i low = _mm512_mask_mov_epi32(part[0], odd, part[1]), high = _mm512_mask_mov_epi32(part[2], odd, part[3]);
    return _mm512_mask_mov_epi32(low, _mm512_test_epi32_mask(place, _mm512_set1_epi32(64)), high);
}

/* Which code points lie in a range. */
DP_TARGET_AVX512 static inline uint32_t in_range(__m512i c, int32_t first, int32_t last) {
    return _mm512_cmple_epu32_mask(_mm512_sub_epi32(c, _mm512_set1_epi32(first)), _mm512_set1_epi32(last - first));
}

/* The entries of all code points, block by block: text has few blocks at a time, its own and ASCII's. (A gather takes
 * longer: some forty cycles.) Han and Hangul, which come from many blocks, have one entry each. */
DP_TARGET_AVX512 static inline __m512i find_entries(__m512i c, uint32_t valid, const dp_unicode_state *s) {
    const __m512i block = _mm512_srli_epi32(c, 7), place = _mm512_and_si512(c, _mm512_set1_epi32(DP_TABLE_BLOCK - 1));
    uint32_t han = in_range(c, DP_HAN_FIRST, DP_HAN_LAST), hangul = in_range(c, DP_HANGUL_FIRST, DP_HANGUL_LAST);
    __m512i entries = _mm512_maskz_set1_epi32((__mmask16)han, entry_of(s, DP_HAN_FIRST));
    entries = _mm512_mask_set1_epi32(entries, (__mmask16)hangul, entry_of(s, DP_HANGUL_FIRST));
    for (uint32_t left = valid & ~han & ~hangul; left;) {
        __m512i first = _mm512_maskz_compress_epi32((__mmask16)left, block);
        int32_t one = _mm_cvtsi128_si32(_mm512_castsi512_si128(first));
        uint32_t same = _mm512_mask_cmpeq_epi32_mask((__mmask16)left, block, _mm512_set1_epi32(one));
        __m512i found = look_up_block(s->entries + s->rows[one] * DP_TABLE_BLOCK, place);
        entries = _mm512_mask_mov_epi32(entries, (__mmask16)same, found);
        left &= ~same;
    }
    return entries;
}

/* Writes a group; returns the end of the output; g->count is lowered to the code points that are plain. */
DP_TARGET_AVX512 static inline uint8_t *write_group(group *g, uint8_t *to, dp_unicode_state *s) {
    __mmask16 valid = (__mmask16)((1u << g->count) - 1);
    __m512i entry = find_entries(g->code_points, valid, s);
    __m512i becomes = _mm512_add_epi32(g->code_points, _mm512_srai_epi32(entry, DP_ENTRY_SHIFT));
    uint32_t other = _mm512_test_epi32_mask(entry, _mm512_set1_epi32(DP_ENTRY_SLOW | DP_ENTRY_JOINS)) |
                     _mm512_cmpge_epu32_mask(becomes, _mm512_set1_epi32(0x10000));
    if ((other &= valid)) {
        g->count = (unsigned)__builtin_ctz(other);
        valid = (__mmask16)((1u << g->count) - 1);
    }
    __m512i classes = _mm512_and_si512(entry, _mm512_set1_epi32(DP_CLASS_BITS));
    uint32_t letters = class_in_set(s->letters, classes) & valid, alones = class_in_set(s->alones, classes) & valid;
    uint32_t marks = class_in_set(s->marks, classes) & valid, spaces = class_in_set(s->spaces, classes) & valid;
    uint32_t written = letters | alones | marks, vanishing = ~(written | spaces) & 0xFFFF;
    bool at_space, alone;
    uint32_t behind_space = following(spaces, vanishing, s->state == DP_AT_SPACE, &at_space);
    uint32_t behind_alone = following(alones, vanishing | marks, s->state == DP_ALONE, &alone);
    uint64_t spaced = ((spaces | alones) & ~behind_space) | (letters & behind_alone);
    s->state = at_space ? DP_AT_SPACE : alone ? DP_ALONE : DP_IN_WORD;
    __mmask16 two, three;
    __m512i bytes = encode_group(becomes, &two, &three);
    uint64_t keep = _pdep_u64(spaced, 0x1111111111111111) | _pdep_u64(written, 0x2222222222222222) |
                    _pdep_u64(written & two, 0x4444444444444444) | _pdep_u64(written & three, 0x8888888888888888);
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(keep, bytes));
    return to + __builtin_popcountll(keep);
}

/* Bytes 16 i to 16 i + 15. */
DP_TARGET_AVX512 static inline __m128i quarter(__m512i bytes, unsigned i) {
    return _mm512_castsi512_si128(_mm512_permutexvar_epi64(
        _mm512_add_epi64(_mm512_set1_epi64(2 * i), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0)), bytes));
}

/* 64 bytes, all of them readable; returns how many were used, fewer than 62 when something is not plain. */
DP_TARGET_AVX512 static inline size_t unicode_block(const uint8_t *p, uint8_t **to, dp_unicode_state *s) {
    __m512i bytes = _mm512_loadu_si512(p);
    if (!_mm512_movepi8_mask(bytes))
        return 0; /* ASCII has its own kernel */
    uint64_t two, three, starts = find_starts(bytes, &two, &three);
    unsigned count = (unsigned)__builtin_popcountll(starts);
    __m512i first = _mm512_maskz_compress_epi8(starts, bytes);
    /* The bytes after the starts; those beyond the block belong to no whole sequence. */
    __m512i second = _mm512_maskz_compress_epi8(starts << 1, bytes),
            third = _mm512_maskz_compress_epi8(starts << 2, bytes);
    for (unsigned done = 0; done < count; done += 16) {
        group g = {decode_group(quarter(first, done / 16), quarter(second, done / 16), quarter(third, done / 16)),
                   count - done < 16 ? count - done : 16};
        unsigned wanted = g.count;
        *to = write_group(&g, *to, s);
        if (g.count < wanted)
            return (size_t)__builtin_ctzll(_pdep_u64((uint64_t)1 << (done + g.count), starts));
    }
    if (!starts)
        return 0;
    unsigned last = 63 - (unsigned)__builtin_clzll(starts);
    return last + 1 + (two >> last & 1) + 2 * (three >> last & 1);
}

DP_TARGET_AVX512 static size_t unicode_avx512(const uint8_t *in, size_t length, uint8_t *out, dp_unicode_state *given) {
    dp_unicode_state s = *given;
    uint8_t *to = out;
    size_t used = 0, more = 64;
    /* A finished block leaves at most two bytes of an unfinished sequence. */
    while (used + 64 <= length && more >= 62) {
        more = unicode_block(in + used, &to, &s);
        used += more;
    }
    given->state = s.state;
    given->used = used;
    if (more < 62)
        return (size_t)(to - out);
    size_t made = (size_t)(to - out) + unicode_portable(in + used, length - used, to, given);
    given->used += used;
    return made;
}
#endif

DP_KERNEL_LIST(unicode, DP_AVX512(unicode_avx512) DP_PORTABLE(unicode_portable))

/* ---- spaces: where words begin in normalised text, one past each space ---- */

static size_t spaces_portable(const uint8_t *text, size_t length, uint32_t base, uint32_t *starts) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        starts[count] = base + (uint32_t)i + 1;
        count += text[i] == ' ';
    }
    return count;
}

#if defined(__x86_64__)
DP_TARGET_AVX512 static size_t spaces_avx512(const uint8_t *text, size_t length, uint32_t base, uint32_t *starts) {
    static const uint8_t numbers[64] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                                        17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
                                        33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48,
                                        49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64};
    const __m512i ahead = _mm512_loadu_si512(numbers), blank = _mm512_set1_epi8(' ');
    size_t count = 0;
    for (size_t i = 0; i < length; i += 64) {
        size_t left = length - i;
        __mmask64 valid = left < 64 ? ((uint64_t)1 << left) - 1 : ~(uint64_t)0;
        uint64_t found = _mm512_mask_cmpeq_epi8_mask(valid, _mm512_maskz_loadu_epi8(valid, text + i), blank);
        __m512i here = _mm512_maskz_compress_epi8(found, ahead);
        __m512i offset = _mm512_set1_epi32((int)(base + (uint32_t)i));
        /* Sixteen places at a time; more than 32 spaces among 64 bytes do not occur, as no two are adjacent. */
        _mm512_storeu_si512(starts + count,
                            _mm512_add_epi32(offset, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(here))));
        size_t more = (size_t)__builtin_popcountll(found);
        if (more > 16)
            _mm512_storeu_si512(starts + count + 16,
                                _mm512_add_epi32(offset, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(here, 1))));
        count += more;
    }
    return count;
}

DP_TARGET_AVX2 static size_t spaces_avx2(const uint8_t *text, size_t length, uint32_t base, uint32_t *starts) {
    const __m256i blank = _mm256_set1_epi8(' ');
    size_t count = 0, i = 0;
    for (; i + 64 <= length; i += 64) {
        __m256i first = _mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)(text + i)), blank);
        __m256i second = _mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)(text + i + 32)), blank);
        uint64_t found = (uint32_t)_mm256_movemask_epi8(first) | (uint64_t)(uint32_t)_mm256_movemask_epi8(second) << 32;
        size_t more = (size_t)__builtin_popcountll(found);
        uint32_t *to = starts + count, first_place = base + (uint32_t)i + 1;
        /* Twelve without a branch, as most blocks have fewer; places past the last are written over by the next
         * block. */
        for (size_t k = 0; k < 12; k++, found = _blsr_u64(found))
            to[k] = first_place + (uint32_t)_tzcnt_u64(found);
        for (size_t k = 12; k < more; k++, found = _blsr_u64(found))
            to[k] = first_place + (uint32_t)_tzcnt_u64(found);
        count += more;
    }
    return count + spaces_portable(text + i, length - i, base + (uint32_t)i, starts + count);
}
#endif

DP_KERNEL_LIST(spaces, DP_AVX512(spaces_avx512) DP_AVX2(spaces_avx2) DP_PORTABLE(spaces_portable))
