/* unescape.c - the inner loop of unescaping JSON strings.
 *
 * Text has an escape every few dozen bytes, so a loop that branches on each is bound by mispredictions; copying the
 * text between them in whole vectors is all there is to gain. The AVX-512 variant has no branch on them: of 64 bytes,
 * the backslashes that start an escape are squeezed out, and the letters after them are looked up in a table. */
#include "kernel/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* The character a one-letter escape stands for; 0: there is no such escape. */
static const char letters[128] = {
    ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t',
};

/* Copies up to the next backslash or the end; returns how many bytes. The first backslash among eight bytes is found by
 * the usual zero-byte test, which is exact for the lowest one. */
static size_t copy_run(const char *p, size_t length, char *to) {
    const uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
    size_t i = 0;
    for (; length - i >= 8; i += 8) {
        uint64_t x = dp_load64(p + i) ^ ones * '\\';
        uint64_t found = (x - ones) & ~x & tops;
        memcpy(to + i, p + i, 8);
        if (found)
            return i + (size_t)(__builtin_ctzll(found) / 8);
    }
    for (; i < length && p[i] != '\\'; i++)
        to[i] = p[i];
    return i;
}

typedef size_t (*copy_run_fn)(const char *p, size_t length, char *to);

__attribute__((always_inline)) static inline size_t unescape_by(copy_run_fn copy, const char *raw, size_t length,
                                                                char *to, size_t *written) {
    size_t i = 0, o = 0;
    for (;;) {
        size_t run = copy(raw + i, length - i, to + o);
        i += run;
        o += run;
        if (length - i < 2)
            break;
        unsigned char c = (unsigned char)raw[i + 1];
        if (c >= 128 || !letters[c])
            break;
        to[o++] = letters[c];
        i += 2;
    }
    *written = o;
    return i;
}

static size_t unescape_portable(const char *raw, size_t length, char *to, size_t *written) {
    return unescape_by(copy_run, raw, length, to, written);
}

#if defined(__x86_64__)
/* As copy_run, 32 bytes at a time. The room is that of the raw bytes, so that a whole vector may be written. */
DP_TARGET_AVX2 static size_t copy_run_avx2(const char *p, size_t length, char *to) {
    const __m256i slash = _mm256_set1_epi8('\\');
    size_t i = 0;
    for (; length - i >= 32; i += 32) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(p + i));
        uint32_t found = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, slash));
        _mm256_storeu_si256((__m256i *)(void *)(to + i), v);
        if (found)
            return i + (size_t)__builtin_ctz(found);
    }
    return i + copy_run(p + i, length - i, to + i);
}

DP_TARGET_AVX2 static size_t unescape_avx2(const char *raw, size_t length, char *to, size_t *written) {
    return unescape_by(copy_run_avx2, raw, length, to, written);
}

/* The backslashes that start an escape: in a run of them, every other one. */
DP_TARGET_AVX512 static uint64_t starts_of(uint64_t slashes) {
    uint64_t starts = 0;
    if (!(slashes & slashes << 1))
        return slashes;
    while (slashes) {
        uint64_t first = _blsi_u64(slashes);
        starts |= first;
        slashes &= ~(first | first << 1);
    }
    return starts;
}

DP_TARGET_AVX512 static size_t unescape_avx512(const char *raw, size_t length, char *to, size_t *written) {
    const __m512i low = _mm512_loadu_si512(letters), high = _mm512_loadu_si512(letters + 64);
    size_t i = 0, o = 0;
    while (i < length) {
        size_t n = length - i < 64 ? length - i : 64;
        __mmask64 all = _bzhi_u64(UINT64_MAX, (unsigned)n);
        __m512i v = _mm512_maskz_loadu_epi8(all, raw + i);
        uint64_t starts = starts_of(_mm512_mask_cmpeq_epi8_mask(all, v, _mm512_set1_epi8('\\')));
        /* An escape that the end of the piece cuts in two is left for the next one. */
        if (starts >> (n - 1) & 1)
            starts = _bzhi_u64(starts, (unsigned)--n);
        __mmask64 escaped = starts << 1;
        __m512i looked_up = _mm512_permutex2var_epi8(low, v, high);
        uint64_t stop = escaped & (_mm512_testn_epi8_mask(looked_up, looked_up) | _mm512_movepi8_mask(v));
        if (stop)
            n = (size_t)_tzcnt_u64(stop) - 1;
        if (!n)
            break;
        uint64_t keep = _bzhi_u64(~starts, (unsigned)n);
        __m512i text = _mm512_mask_mov_epi8(v, escaped, looked_up);
        size_t kept = (size_t)_mm_popcnt_u64(keep);
        /* The room is that of the raw bytes, of which `n` are left at least. */
        _mm512_mask_storeu_epi8(to + o, _bzhi_u64(UINT64_MAX, (unsigned)kept), _mm512_maskz_compress_epi8(keep, text));
        o += kept;
        i += n;
        if (stop)
            break;
    }
    *written = o;
    return i;
}
#endif

DP_KERNEL_LIST(unescape, DP_AVX512(unescape_avx512) DP_AVX2(unescape_avx2) DP_PORTABLE(unescape_portable))
