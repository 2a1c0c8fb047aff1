/* test_hash.c - the named hashes give their published values, through doppel_hash. */
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct vector {
    const char *text;
    uint64_t seed;
    uint64_t hash;
} vector;

static uint64_t hash_of(const char *name, const void *bytes, size_t length, uint64_t seed) {
    uint64_t hash = 0;
    assert_int_equal(doppel_hash(name, (doppel_slice){bytes, length}, seed, &hash), DOPPEL_OK);
    return hash;
}

static void check(const char *name, const vector *vectors, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_int_equal(hash_of(name, vectors[i].text, strlen(vectors[i].text), vectors[i].seed), vectors[i].hash);
}

#define CHECK(name, vectors) check(name, vectors, sizeof(vectors) / sizeof((vectors)[0]))

#define FOX "The quick brown fox jumps over the lazy dog"
#define GETTYSBURG "Four score and seven years ago"

/* h1 of MurmurHash3_x64_128, as published with other programs that took it from the C++ of SMHasher: seeds 0 to 5 in
 * the tests of Elasticsearch (Murmur3HasherTests), seed 0x9747b28c in those of NHasher (MurmurHash128X64V3Tests), and
 * each kind of tail (longer than 8 bytes, shorter, 8 and none) in those of DataSketches (MurmurHash3Test). */
static void murmur3_gives_the_published_values(void **state) {
    (void)state;
    static const vector vectors[] = {
        {"", 0, 0},
        {"hell", 0, 0x629942693e10f867},
        {"hello", 1, 0xa78ddff5adae8d10},
        {"hello ", 2, 0x8a486b23f422e826},
        {"hello w", 3, 0x2ea59f466f6bed8c},
        {"hello wo", 4, 0x79f6305a386c572c},
        {"hello wor", 5, 0xc2219d213ec1f1b5},
        {FOX, 0, 0xe34bbc7bbc071b6c},
        {FOX, 0x9747b28c, 0x738a7f3bd2633121},
        {"The quick brown fox jumps over the lazy cog", 0, 0x658ca970ff85269a},
        {"The quick brown fox jumps over the lazy eog", 0, 0x362108102c62d1c9},
        {"The quick brown fox jumps over the lazy dogdogdog", 0, 0x9c8205300e612fc4},
        {"The quick brown fox jumps over the lazy1", 0, 0xe3301a827e5cdfe3},
        {"The quick brown fox jumps over t", 0, 0xdf6af91bb29bdacf},
    };
    CHECK("murmur3", vectors);
}

typedef struct xxh3_vector {
    size_t length;
    uint64_t hash, seeded;
} xxh3_vector;

/* XXH3_64bits of the self-test of xxHash (cli/xsum_sanity_check.c): the first `length` bytes of a generated buffer,
 * with seed 0 and with PRIME64. */
static void xxh3_gives_the_values_of_its_own_self_test(void **state) {
    (void)state;
    static const xxh3_vector vectors[] = {
        {0, 0x2D06800538D394C2, 0xA8A6B918B2F0364A},    {1, 0xC44BDFF4074EECDB, 0x032BE332DD766EF8},
        {6, 0x27B56A84CD2D7325, 0x84589C116AB59AB9},    {12, 0xA713DAF0DFBB77E7, 0xE7303E1B2336DE0E},
        {24, 0xA3FE70BF9D3510EB, 0x850E80FC35BDD690},   {48, 0x397DA259ECBA1F11, 0xADC2CBAA44ACC616},
        {80, 0xBCDEFBBB2C47C90A, 0xC6DD0CB699532E73},   {195, 0xCD94217EE362EC3A, 0xBA68003D370CB3D9},
        {403, 0xCDEB804D65C6DEA4, 0x6259F6ECFD6443FD},  {512, 0x617E49599013CB6B, 0x3CE457DE14C27708},
        {2048, 0xDD59E2C3A5F038E0, 0x66F81670669ABABC}, {2099, 0xC6B9D9B3FC9AC765, 0x184F316843663974},
        {2240, 0x6E73A90539CF2948, 0x757BA8487D1B5247}, {2367, 0xCB37AEB9E5D361ED, 0xD2DB3415B942B42A},
    };
    const uint64_t prime32 = 2654435761U, prime64 = 11400714785074694797U;
    unsigned char buffer[2367];
    uint64_t generator = prime32;
    for (size_t i = 0; i < sizeof(buffer); i++, generator *= prime64)
        buffer[i] = (unsigned char)(generator >> 56);
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        assert_int_equal(hash_of("xxh3", buffer, vectors[i].length, 0), vectors[i].hash);
        assert_int_equal(hash_of("xxh3", buffer, vectors[i].length, prime64), vectors[i].seeded);
    }
}

/* The comments of driver5() in lookup3.c: c and b of hashlittle2 as they go in and come out. Here the seed and the hash
 * are c + b * 2^32. */
static void jenkins_gives_the_values_in_lookup3(void **state) {
    (void)state;
    static const vector vectors[] = {
        {"", 0, 0xdeadbeefdeadbeef},
        {"", 0xdeadbeef00000000, 0xdeadbeefbd5b7dde},
        {"", 0xdeadbeefdeadbeef, 0xbd5b7dde9c093ccd},
        {GETTYSBURG, 0, 0xce7226e617770551},
        {GETTYSBURG, 0x0000000100000000, 0xbd371de4e3607cae},
        {GETTYSBURG, 0x0000000000000001, 0x6cbea4b3cd628161},
    };
    CHECK("jenkins", vectors);
}

/* The test suite of RFC 1321, appendix A.5; the first 8 bytes of each digest. */
static void md5_gives_the_values_of_its_rfc(void **state) {
    (void)state;
    static const vector vectors[] = {
        {"", 0, 0xd41d8cd98f00b204},
        {"a", 0, 0x0cc175b9c0f1b6a8},
        {"abc", 0, 0x900150983cd24fb0},
        {"message digest", 0, 0xf96b697d7cb7938d},
        {"abcdefghijklmnopqrstuvwxyz", 0, 0xc3fcd3d76192e400},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 0, 0xd174ab98d277d9f5},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890", 0, 0x57edf4a22be3c955},
    };
    CHECK("md5", vectors);
}

/* The worked examples of FIPS 180: one block, and a message of two blocks. */
static void sha1_and_sha256_give_the_values_of_fips_180(void **state) {
    (void)state;
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    const vector sha1[] = {{"abc", 0, 0xa9993e364706816a}, {two_blocks, 0, 0x84983e441c3bd26e}};
    const vector sha256[] = {{"abc", 0, 0xba7816bf8f01cfea}, {two_blocks, 0, 0x248d6a61d20638b8}};
    CHECK("sha1", sha1);
    CHECK("sha256", sha256);
}

/* FIPS 180's and FIPS 202's examples of "abc": names that the library does not list, but libcrypto knows. */
static void any_digest_of_libcrypto_is_a_hash(void **state) {
    (void)state;
    assert_int_equal(hash_of("sha512", "abc", 3, 0), 0xddaf35a193617aba);
    assert_int_equal(hash_of("sha3-256", "abc", 3, 0), 0x3a985da74fe225b2);
}

/* A seed that is not 0 is hashed ahead of the bytes, 8 bytes little-endian. */
static void the_seed_of_a_digest_goes_ahead_of_the_bytes(void **state) {
    (void)state;
    const char seeded[] = "\x01\x02\0\0\0\0\0\0abc";
    assert_int_equal(hash_of("sha256", "abc", 3, 0x0201), hash_of("sha256", seeded, 11, 0));
}

/* The 64-bit values in the examples of the language Lys (index-selector-hash); "test" is that of the game Boken's tests
 * (djb2_hash), whose low 32 bits are 2090756197; the one with a seed is by hand: a start of 5382 adds 33. */
static void djb2_gives_the_published_values(void **state) {
    (void)state;
    static const vector vectors[] = {
        {"", 0, 5381}, {"A", 0, 177638}, {"Ac", 0, 5862153}, {"tes", 0, 193506769}, {"A", 1, 177638 + 33},
    };
    CHECK("djb2", vectors);
    static const char long_key[256] = "Ac";
    assert_int_equal(hash_of("djb2", long_key, sizeof(long_key), 0), 0xC831703075A63CC9);
    assert_int_equal(hash_of("djb2", "test", 4, 0) & UINT32_MAX, 2090756197);
}

/* The definition of docs/FORMAT.md; the values are those of tests/reference/hashes.py. */
static void fast_gives_the_values_of_the_reference(void **state) {
    (void)state;
    static const vector vectors[] = {
        {"", 0, 0x0000000000000000},       {"a", 0, 0xe39930bcfc9b06a0},        {"a", 1, 0xf6ee7738b76ebb1b},
        {"doppel", 0, 0xd61f32f7553f0ace}, {"12345678", 0, 0x4edf218e40fba0fa}, {"123456789", 0, 0xa72d27740655ddb3},
        {FOX, 0, 0x1a509a791f292ccd},      {FOX, 1, 0x595c896c8ce77629},
    };
    CHECK("fast", vectors);
}

/* Of the reference implementation (vectors.h): the key is 00 01 .. 0f, the input 00 01 .. n-1. */
static void siphash_gives_the_published_values(void **state) {
    (void)state;
    static const struct {
        size_t length;
        uint64_t hash;
    } vectors[] = {{0, 0x726fdb47dd0e0e31},  {1, 0x74f839c593dc67fd},  {7, 0xab0200f58b01d137},
                   {8, 0x93f5f5799a932462},  {9, 0x9e0082df0ba9e4b0},  {15, 0xa129ca6149be45e5},
                   {16, 0x3f2acc7f57c29bdb}, {31, 0x32d892fad841c342}, {63, 0x958a324ceb064572}};
    const uint64_t key[2] = {0x0706050403020100, 0x0F0E0D0C0B0A0908};
    uint8_t bytes[64];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
        assert_int_equal(dp_siphash(bytes, vectors[i].length, key), vectors[i].hash);
}

static void bytes_may_hold_nul(void **state) {
    (void)state;
    static const char *const names[] = {"fast", "xxh3", "murmur3", "jenkins", "djb2", "md5", "sha1", "sha256"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_not_equal(hash_of(names[i], "a\0b", 3, 0), hash_of(names[i], "a\0c", 3, 0));
}

static void an_unknown_name_is_refused(void **state) {
    (void)state;
    uint64_t hash = 0;
    assert_int_equal(doppel_hash("no-such-hash", doppel_slice_of("a"), 0, &hash), DOPPEL_ERROR_USAGE);
    assert_int_equal(doppel_hash("", doppel_slice_of("a"), 0, &hash), DOPPEL_ERROR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(murmur3_gives_the_published_values),
        cmocka_unit_test(xxh3_gives_the_values_of_its_own_self_test),
        cmocka_unit_test(jenkins_gives_the_values_in_lookup3),
        cmocka_unit_test(md5_gives_the_values_of_its_rfc),
        cmocka_unit_test(sha1_and_sha256_give_the_values_of_fips_180),
        cmocka_unit_test(any_digest_of_libcrypto_is_a_hash),
        cmocka_unit_test(the_seed_of_a_digest_goes_ahead_of_the_bytes),
        cmocka_unit_test(djb2_gives_the_published_values),
        cmocka_unit_test(fast_gives_the_values_of_the_reference),
        cmocka_unit_test(siphash_gives_the_published_values),
        cmocka_unit_test(bytes_may_hold_nul),
        cmocka_unit_test(an_unknown_name_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
