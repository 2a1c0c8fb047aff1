/* minhash.c - the kernel minhash_round: one round of hashes over the slots of a signature (docs/FORMAT.md section 5).
 *
 * The first round fills most slots. A later one can only fill those that were empty when it began, since a value of an
 * earlier round is always smaller: with AVX-512 eight hashes at a time are tested for falling into one of these, by one
 * byte permutation of a bitmap, and the few that do are handled one by one. */
#include "kernel/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define GOLDEN 0x9E3779B97F4A7C15u

/* Hashes whose values in a round are computed together; with fewer than FEW that does not pay. */
enum { CHUNK = 256, FEW = 20 };

/* Values of a round below `t`; returns how many slots they filled that were empty. No branch: which of them are the
 * smallest so far is unpredictable. */
static size_t fill_slots(const uint64_t *values, size_t count, uint64_t round, uint64_t *slots, size_t t) {
    size_t filled = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t *slot = &slots[(values[i] >> 32) * t >> 32], value = round << 32 | (values[i] & UINT32_MAX);
        uint64_t old = *slot;
        filled += old == DP_SLOT_EMPTY;
        *slot = value < old ? value : old;
    }
    return filled;
}

/* The values in a round from 1 on of up to CHUNK hashes that fall into a slot which no earlier round filled; returns
 * how many. */
static size_t find_values_portable(const uint64_t *hashes, size_t count, uint64_t round, const uint64_t *slots,
                                   size_t t, uint64_t *values) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t y = dp_hash_mix(hashes[i] + round * GOLDEN);
        values[found] = y;
        found += slots[(y >> 32) * t >> 32] >> 32 >= round;
    }
    return found;
}

/* Few hashes, one by one. */
static size_t fill_few(const uint64_t *hashes, size_t count, uint64_t round, uint64_t *slots, size_t t) {
    size_t filled = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t y = dp_hash_mix(hashes[i] + round * GOLDEN), value = round << 32 | (y & UINT32_MAX);
        uint64_t *slot = &slots[(y >> 32) * t >> 32];
        filled += *slot == DP_SLOT_EMPTY;
        *slot = value < *slot ? value : *slot;
    }
    return filled;
}

/* A round from `t` on fills one slot. */
static size_t fill_one(const uint64_t *hashes, size_t count, uint64_t round, uint64_t *slot) {
    size_t filled = *slot == DP_SLOT_EMPTY;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = round << 32 | (dp_hash_mix(hashes[i] + round * GOLDEN) & UINT32_MAX);
        *slot = value < *slot ? value : *slot;
    }
    return filled;
}

static size_t minhash_round_portable(const uint64_t *hashes, size_t count, uint64_t round, uint64_t *slots, size_t t) {
    uint64_t values[CHUNK];
    size_t filled = 0;
    if (round >= t)
        return fill_one(hashes, count, round, &slots[round - t]);
    if (!round)
        return fill_slots(hashes, count, round, slots, t);
    if (count < FEW)
        return fill_few(hashes, count, round, slots, t);
    for (size_t i = 0; i < count; i += CHUNK) {
        size_t chunk = count - i < CHUNK ? count - i : CHUNK;
        size_t found = find_values_portable(hashes + i, chunk, round, slots, t, values);
        filled += fill_slots(values, found, round, slots, t);
    }
    return filled;
}

#if defined(__x86_64__)
/* Slots in a bitmap of one register. */
enum { MOST_BITS = 512 };

/* With fewer hashes, looking for the empty slots would cost more than it saves. */
enum { LEAST_HASHES = 64 };

/* Bit i: slot i is empty. */
DP_TARGET_AVX512 static __m512i find_empty(const uint64_t *slots, size_t t) {
    uint8_t bitmap[MOST_BITS / 8] = {0};
    for (size_t i = 0; i < t; i += 8) {
        __mmask8 there = (__mmask8)(t - i < 8 ? (1U << (t - i)) - 1 : 0xFF);
        __m512i eight = _mm512_maskz_loadu_epi64(there, slots + i);
        bitmap[i / 8] = _mm512_mask_cmpeq_epi64_mask(there, eight, _mm512_set1_epi64(-1));
    }
    return _mm512_loadu_si512(bitmap);
}

DP_TARGET_AVX512 static inline __m512i mix(__m512i x) {
    x = _mm512_xor_si512(x, _mm512_srli_epi64(x, 32));
    x = _mm512_mullo_epi64(x, _mm512_set1_epi64((long long)0xBF58476D1CE4E5B9u));
    x = _mm512_xor_si512(x, _mm512_srli_epi64(x, 29));
    x = _mm512_mullo_epi64(x, _mm512_set1_epi64((long long)0x94D049BB133111EBu));
    return _mm512_xor_si512(x, _mm512_srli_epi64(x, 32));
}

/* Which of eight values of a round fall into a slot of the bitmap. */
DP_TARGET_AVX512 static inline __mmask8 fall_into(__m512i bitmap, __m512i y, __m512i slots) {
    __m512i slot = _mm512_srli_epi64(_mm512_mul_epu32(_mm512_srli_epi64(y, 32), slots), 32);
    __m512i byte = _mm512_permutexvar_epi8(_mm512_srli_epi64(slot, 3), bitmap);
    __m512i bit = _mm512_srlv_epi64(byte, _mm512_and_si512(slot, _mm512_set1_epi64(7)));
    return _mm512_test_epi64_mask(bit, _mm512_set1_epi64(1));
}

/* The values in this round of up to CHUNK hashes that fall into a slot of the bitmap; returns how many. */
DP_TARGET_AVX512 static size_t find_values(const uint64_t *hashes, size_t count, uint64_t round, __m512i bitmap,
                                           size_t t, uint64_t *values) {
    const __m512i offset = _mm512_set1_epi64((long long)(round * GOLDEN)), slots = _mm512_set1_epi64((long long)t);
    size_t found = 0;
    for (size_t i = 0; i < count; i += 8) {
        __mmask8 there = (__mmask8)(count - i < 8 ? (1U << (count - i)) - 1 : 0xFF);
        __m512i y = mix(_mm512_add_epi64(_mm512_maskz_loadu_epi64(there, hashes + i), offset));
        __mmask8 some = fall_into(bitmap, y, slots) & there;
        _mm512_storeu_si512(values + found, _mm512_maskz_compress_epi64(some, y));
        found += (size_t)__builtin_popcount(some);
    }
    return found;
}

DP_TARGET_AVX512 static size_t minhash_round_avx512(const uint64_t *hashes, size_t count, uint64_t round,
                                                    uint64_t *slots, size_t t) {
    uint64_t values[CHUNK + 8];
    size_t filled = 0;
    if (!round || round >= t || t > MOST_BITS || count < LEAST_HASHES)
        return minhash_round_portable(hashes, count, round, slots, t);
    const __m512i empty = find_empty(slots, t);
    for (size_t i = 0; i < count; i += CHUNK) {
        size_t chunk = count - i < CHUNK ? count - i : CHUNK;
        size_t found = find_values(hashes + i, chunk, round, empty, t, values);
        filled += fill_slots(values, found, round, slots, t);
    }
    return filled;
}
#endif

DP_KERNEL_LIST(minhash_round, DP_AVX512(minhash_round_avx512) DP_PORTABLE(minhash_round_portable))
