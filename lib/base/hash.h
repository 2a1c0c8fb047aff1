/* hash.h - published hashes of bytes, written from their descriptions (docs/FORMAT.md section 3 names the variants). */
#ifndef DP_HASH_H
#define DP_HASH_H

#include "base/base.h"

/* MurmurHash3 x64_128, the first half. */
uint64_t dp_murmur3(const void *bytes, size_t length, uint32_t seed);

/* lookup3 hashlittle2: c in the low half, b in the high half. */
uint64_t dp_jenkins(const void *bytes, size_t length, uint64_t seed);

uint64_t dp_djb2(const void *bytes, size_t length, uint64_t seed);

#endif
