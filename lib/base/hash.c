/* hash.c - MurmurHash3 (Austin Appleby), lookup3 (Bob Jenkins), djb2 (Dan Bernstein) and SipHash (Jean-Philippe
 * Aumasson, Daniel J. Bernstein), all in the public domain. lib/sketch/hash.c gives them the names that recipes use. */
#include "base/base.h"

/* ---- MurmurHash3 x64_128 ---- */

#define MURMUR_C1 0x87C37B91114253D5u
#define MURMUR_C2 0x4CF5AD432745937Fu

static inline uint64_t murmur_k1(uint64_t k) {
    return dp_rotl64(k * MURMUR_C1, 31) * MURMUR_C2;
}

static inline uint64_t murmur_k2(uint64_t k) {
    return dp_rotl64(k * MURMUR_C2, 33) * MURMUR_C1;
}

static inline uint64_t murmur_finish(uint64_t h) {
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCDu;
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53u;
    return h ^ h >> 33;
}

uint64_t dp_murmur3(const void *bytes, size_t length, uint32_t seed) {
    const uint8_t *p = bytes;
    uint64_t h1 = seed, h2 = seed;
    size_t left = length;
    for (; left >= 16; left -= 16, p += 16) {
        h1 = (dp_rotl64(h1 ^ murmur_k1(dp_load64(p)), 27) + h2) * 5 + 0x52DCE729;
        h2 = (dp_rotl64(h2 ^ murmur_k2(dp_load64(p + 8)), 31) + h1) * 5 + 0x38495AB5;
    }
    if (left > 8)
        h2 ^= murmur_k2(dp_load_tail(p + 8, left - 8));
    h1 ^= murmur_k1(left >= 8 ? dp_load64(p) : dp_load_tail(p, left));
    h1 ^= length;
    h2 ^= length;
    h1 += h2;
    h2 += h1;
    h1 = murmur_finish(h1);
    h2 = murmur_finish(h2);
    return h1 + h2;
}

/* ---- lookup3 ---- */

typedef struct jenkins {
    uint32_t a, b, c;
} jenkins;

static inline uint32_t rotl32(uint32_t x, int r) {
    return x << r | x >> (32 - r);
}

static inline jenkins jenkins_mix(jenkins s) {
    s.a = (s.a - s.c) ^ rotl32(s.c, 4), s.c += s.b;
    s.b = (s.b - s.a) ^ rotl32(s.a, 6), s.a += s.c;
    s.c = (s.c - s.b) ^ rotl32(s.b, 8), s.b += s.a;
    s.a = (s.a - s.c) ^ rotl32(s.c, 16), s.c += s.b;
    s.b = (s.b - s.a) ^ rotl32(s.a, 19), s.a += s.c;
    s.c = (s.c - s.b) ^ rotl32(s.b, 4), s.b += s.a;
    return s;
}

static inline jenkins jenkins_finish(jenkins s) {
    s.c = (s.c ^ s.b) - rotl32(s.b, 14);
    s.a = (s.a ^ s.c) - rotl32(s.c, 11);
    s.b = (s.b ^ s.a) - rotl32(s.a, 25);
    s.c = (s.c ^ s.b) - rotl32(s.b, 16);
    s.a = (s.a ^ s.c) - rotl32(s.c, 4);
    s.b = (s.b ^ s.a) - rotl32(s.a, 14);
    s.c = (s.c ^ s.b) - rotl32(s.b, 24);
    return s;
}

uint64_t dp_jenkins(const void *bytes, size_t length, uint64_t seed) {
    const uint8_t *p = bytes;
    uint32_t start = 0xDEADBEEF + (uint32_t)length + (uint32_t)seed;
    jenkins s = {start, start, start + (uint32_t)(seed >> 32)};
    size_t left = length;
    for (; left > 12; left -= 12, p += 12) {
        s.a += dp_load32(p);
        s.b += dp_load32(p + 4);
        s.c += dp_load32(p + 8);
        s = jenkins_mix(s);
    }
    if (left) {
        uint8_t last[12] = {0};
        memcpy(last, p, left);
        s.a += dp_load32(last);
        s.b += dp_load32(last + 4);
        s.c += dp_load32(last + 8);
        s = jenkins_finish(s);
    }
    return (uint64_t)s.b << 32 | s.c;
}

/* ---- djb2 ---- */

uint64_t dp_djb2(const void *bytes, size_t length, uint64_t seed) {
    const uint8_t *p = bytes;
    uint64_t h = 5381 + seed;
    for (size_t i = 0; i < length; i++)
        h = h * 33 + p[i];
    return h;
}

/* ---- SipHash-2-4 ---- */

typedef struct sip {
    uint64_t v0, v1, v2, v3;
} sip;

static inline sip sip_round(sip s) {
    s.v0 += s.v1;
    s.v2 += s.v3;
    s.v1 = dp_rotl64(s.v1, 13) ^ s.v0;
    s.v3 = dp_rotl64(s.v3, 16) ^ s.v2;
    s.v0 = dp_rotl64(s.v0, 32) + s.v3;
    s.v2 += s.v1;
    s.v3 = dp_rotl64(s.v3, 21) ^ s.v0;
    s.v1 = dp_rotl64(s.v1, 17) ^ s.v2;
    s.v2 = dp_rotl64(s.v2, 32);
    return s;
}

static inline sip sip_take(sip s, uint64_t word) {
    s.v3 ^= word;
    s = sip_round(sip_round(s));
    s.v0 ^= word;
    return s;
}

uint64_t dp_siphash(const void *bytes, size_t length, const uint64_t key[2]) {
    const uint8_t *p = bytes;
    sip s = {key[0] ^ 0x736F6D6570736575u, key[1] ^ 0x646F72616E646F6Du, key[0] ^ 0x6C7967656E657261u,
             key[1] ^ 0x7465646279746573u};
    size_t left = length;
    for (; left >= 8; left -= 8, p += 8)
        s = sip_take(s, dp_load64(p));
    s = sip_take(s, (uint64_t)length << 56 | dp_load_tail(p, left));
    s.v2 ^= 0xFF;
    s = sip_round(sip_round(sip_round(sip_round(s))));
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
