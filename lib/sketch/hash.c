/* hash.c - the hashes that recipes name (hash=): the fast one, the published ones (lib/base/hash.c), and every digest
 * of libcrypto. A new one is a row of `functions`. lib/kernel/hash.c has faster ways to the same values. */
#include "kernel/kernel.h"
#include "sketch/sketch.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <strings.h>
#include <xxhash.h>

#define GOLDEN 0x9E3779B97F4A7C15u

static uint64_t run_fast(const void *bytes, size_t length, uint64_t seed) {
    return dp_hash_mix(dp_hash_word(bytes, length) + seed * GOLDEN);
}

static uint64_t run_xxh3(const void *bytes, size_t length, uint64_t seed) {
    return XXH3_64bits_withSeed(bytes, length, seed);
}

static uint64_t run_murmur3(const void *bytes, size_t length, uint64_t seed) {
    return dp_murmur3(bytes, length, (uint32_t)seed);
}

/* The named hashes. A new one is a line here, its name in dp_hash_names, and vectors in docs/FORMAT.md. */
static const struct {
    const char *name;
    uint64_t (*function)(const void *bytes, size_t length, uint64_t seed);
} functions[] = {
    {"fast", run_fast}, {"xxh3", run_xxh3}, {"murmur3", run_murmur3}, {"jenkins", dp_jenkins}, {"djb2", dp_djb2},
};

const char dp_hash_names[] = "fast, xxh3, murmur3, jenkins, djb2, md5, sha1, sha256 or another digest that "
                             "`openssl list -digest-algorithms` names";

/* libcrypto knows most digests by several names; one of them is used. */
static void name_digest(dp_hasher *hasher) {
    static const struct {
        const char *theirs, *ours;
    } renamed[] = {{"SHA2-224", "sha224"},     {"SHA2-256", "sha256"},        {"SHA2-384", "sha384"},
                   {"SHA2-512", "sha512"},     {"BLAKE2B-512", "blake2b512"}, {"BLAKE2S-256", "blake2s256"},
                   {"RIPEMD-160", "ripemd160"}};
    const char *name = EVP_MD_get0_name(hasher->digest);
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (!strcasecmp(name, renamed[i].theirs))
            name = renamed[i].ours;
    size_t length = 0;
    for (; name[length] && length < sizeof hasher->name - 1; length++)
        hasher->name[length] = (char)(name[length] | (name[length] >= 'A' && name[length] <= 'Z' ? 32 : 0));
    hasher->name[length] = 0;
}

/* A name that libcrypto does not know leaves nothing in its queue of errors. */
static doppel_status open_digest(const char *name, dp_hasher *hasher) {
    ERR_set_mark();
    EVP_MD *digest = EVP_MD_fetch(NULL, name, NULL);
    ERR_pop_to_mark();
    /* A hash is the first 8 bytes; digests with fewer, or without a fixed length, are refused. */
    if (!digest || EVP_MD_get_size(digest) < 8 || EVP_MD_get_flags(digest) & EVP_MD_FLAG_XOF) {
        EVP_MD_free(digest);
        return DOPPEL_ERROR_USAGE;
    }
    hasher->digest = digest;
    hasher->context = EVP_MD_CTX_new();
    name_digest(hasher);
    if (hasher->context)
        return DOPPEL_OK;
    dp_hasher_close(hasher);
    return DOPPEL_ERROR_MEMORY;
}

doppel_status dp_hasher_open(const char *name, dp_hasher *hasher) {
    *hasher = (dp_hasher){0};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcasecmp(name, functions[i].name)) {
            strcpy(hasher->name, functions[i].name);
            hasher->function = functions[i].function;
            hasher->is_fast = hasher->function == run_fast;
            hasher->is_murmur3 = hasher->function == run_murmur3;
            return DOPPEL_OK;
        }
    return open_digest(name, hasher);
}

void dp_hasher_close(dp_hasher *hasher) {
    EVP_MD_CTX_free(hasher->context);
    EVP_MD_free(hasher->digest);
    *hasher = (dp_hasher){0};
}

static uint64_t run_digest(dp_hasher *hasher, const void *bytes, size_t length, uint64_t seed) {
    unsigned char out[EVP_MAX_MD_SIZE] = {0}, ahead[8];
    for (int i = 0; i < 8; i++)
        ahead[i] = (unsigned char)(seed >> (8 * i));
    if (!EVP_DigestInit_ex2(hasher->context, hasher->digest, NULL) ||
        !EVP_DigestUpdate(hasher->context, ahead, seed ? sizeof ahead : 0) ||
        !EVP_DigestUpdate(hasher->context, bytes, length) || !EVP_DigestFinal_ex(hasher->context, out, NULL))
        hasher->failed = true;
    return __builtin_bswap64(dp_load64(out));
}

uint64_t dp_hasher_run(dp_hasher *hasher, const void *bytes, size_t length, uint64_t seed) {
    return hasher->function ? hasher->function(bytes, length, seed) : run_digest(hasher, bytes, length, seed);
}

doppel_status doppel_hash(const char *name, doppel_slice bytes, uint64_t seed, uint64_t *hash) {
    dp_hasher hasher;
    DP_TRY(dp_hasher_open(name, &hasher));
    uint64_t made = dp_hasher_run(&hasher, bytes.data, bytes.length, seed);
    doppel_status status = hasher.failed ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
    *hash = status ? *hash : made;
    dp_hasher_close(&hasher);
    return status;
}
