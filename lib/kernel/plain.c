/* plain.c - normalises text of any script, as long as each code point has up to three bytes, becomes one such, and
 * joins nothing.
 *
 * The plain way goes from state to state: behind a space, in a word, behind a word that stands alone. AVX-512 takes up
 * to 16 code points at a time and finds all states at once, by carries: a space counts when the last code point that
 * did not vanish was no space, and what stands alone cuts off the next letter, marks and vanishing ones between them or
 * not. */
#include "kernel/kernel.h"

void dp_plain_prepare(dp_plain_state *s) {
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

static inline int32_t entry_of(const dp_plain_state *s, int32_t c) {
    return s->entries[s->rows[c / DP_TABLE_BLOCK] * DP_TABLE_BLOCK + c % DP_TABLE_BLOCK];
}

/* The plain way does so much at a time, so that ASCII behind it goes back to its own kernel. */
#define PLAIN_RUN 256

static size_t plain_portable(const uint8_t *in, size_t length, uint8_t *out, dp_plain_state *given) {
    const dp_plain_state s = *given;
    const uint8_t *p = in, *end = in + (length < PLAIN_RUN ? length : PLAIN_RUN);
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
            written = dp_encode(becomes, to);
        to += step & DP_WRITE_IT ? written : 0;
        state = step >> DP_STEP_STATE;
        p += taken;
    }
    given->state = state;
    given->used = (size_t)(p - in);
    return (size_t)(to - out);
}

#if defined(__x86_64__)
#include <immintrin.h>

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
    /* Behind E0 the second byte is at least A0 (else overlong), behind ED below A0 (else a surrogate). */
    uint64_t e0 = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8((char)0xE0));
    uint64_t ed = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8((char)0xED));
    uint64_t from_a0 = follows & _mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8((char)0xA0));
    uint64_t wrong = follows ^ (*two << 1 | *three << 1 | *three << 2);
    wrong |= (high & ~follows & ~*two & ~*three) | (e0 << 1 & ~from_a0) | (ed << 1 & from_a0);
    /* A sequence whose end is not seen, or that has a wrong byte, is not started: it began at most two bytes earlier.
     */
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

/* A space and the UTF-8 of each code point, in four bytes; *two and *three say which have so many bytes and more. */
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
DP_TARGET_AVX512 static inline uint32_t in_set(uint8_t set, __m512i classes) {
    return _mm512_test_epi32_mask(_mm512_srlv_epi32(_mm512_set1_epi32(set), classes), _mm512_set1_epi32(1));
}

/* Those not in `skipped` whose last predecessor not in it is in `marked` (`before`: what preceded bit 0 was); *after is
 * the same for what comes next. */
static inline uint32_t following(uint32_t marked, uint32_t skipped, bool before, bool *after) {
    uint32_t next = (marked << 1 | before) & 0x1FFFF, sum = (next & skipped) + skipped;
    *after = (next >> 16 | sum >> 16) & 1;
    return (next | sum) & ~skipped & 0xFFFF;
}

/* The entry of each code point of one block, by its place in it: four look-ups of 32 entries, and a choice by the high
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
DP_TARGET_AVX512 static inline __m512i find_entries(__m512i c, uint32_t valid, const dp_plain_state *s) {
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

/* Writes a group; gives the end of the output; g->count is lowered to the code points that are plain. */
DP_TARGET_AVX512 static inline uint8_t *write_group(group *g, uint8_t *to, dp_plain_state *s) {
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
    uint32_t letters = in_set(s->letters, classes) & valid, alones = in_set(s->alones, classes) & valid;
    uint32_t marks = in_set(s->marks, classes) & valid, spaces = in_set(s->spaces, classes) & valid;
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

/* 64 bytes, all of them readable; gives how many were used, fewer than 62 when something is not plain. */
DP_TARGET_AVX512 static inline size_t plain_block(const uint8_t *p, uint8_t **to, dp_plain_state *s) {
    __m512i bytes = _mm512_loadu_si512(p);
    if (!_mm512_movepi8_mask(bytes))
        return 0; /* ASCII has its own kernel */
    uint64_t two, three, starts = find_starts(bytes, &two, &three);
    unsigned count = (unsigned)__builtin_popcountll(starts);
    __m512i first = _mm512_maskz_compress_epi8(starts, bytes);
    /* The bytes behind the starts; those beyond the block belong to no whole sequence. */
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

DP_TARGET_AVX512 static size_t plain_avx512(const uint8_t *in, size_t length, uint8_t *out, dp_plain_state *given) {
    dp_plain_state s = *given;
    uint8_t *to = out;
    size_t used = 0, more = 64;
    /* A block that is used up leaves at most two bytes of a sequence that goes on. */
    while (used + 64 <= length && more >= 62) {
        more = plain_block(in + used, &to, &s);
        used += more;
    }
    given->state = s.state;
    given->used = used;
    if (more < 62)
        return (size_t)(to - out);
    size_t made = (size_t)(to - out) + plain_portable(in + used, length - used, to, given);
    given->used += used;
    return made;
}
#endif

const dp_plain_variant dp_plain_variants[] = {
#if defined(__x86_64__)
    {"avx512", DP_CPU_AVX512, plain_avx512},
#endif
    {"portable", DP_CPU_PORTABLE, plain_portable},
};
DP_KERNEL_CHOOSER(plain)
