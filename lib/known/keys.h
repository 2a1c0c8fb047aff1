/* keys.h - numbers by key: a map from the hash of a key to all numbers that were added under it.
 *
 * create; add and remove; find (append what may be there). Or many at once: each thread fills its own stage
 * (stage_create, stage_add), then all are built in (dp_keys_build) before any find.
 *
 * The hash is mixed with a secret, so that nobody can choose which keys collide. Its top bits name a segment, 23 others
 * are the tag, and the rest is dropped: so a find may give numbers of other keys, one for each 2^23 keys of a segment,
 * but always all of its own. Only the low 32 bits of a number are kept and given: the caller knows which numbers exist.
 *
 * Threads: any number may add, remove and find; they wait for each other only within a segment, for one call. */
#ifndef DP_KEYS_H
#define DP_KEYS_H

#include "known/known.h"

typedef struct dp_keys dp_keys;

/* 2^bits segments, bits 6 to 14; NULL: out of memory. */
dp_keys *dp_keys_create(int bits);
void dp_keys_free(dp_keys *keys);

/* Adds a number under a hash; repeats count. False: out of memory, with nothing changed. */
bool dp_keys_add(dp_keys *keys, uint64_t hash, uint64_t number);
/* Removes one addition. */
void dp_keys_remove(dp_keys *keys, uint64_t hash, uint64_t number);

/* Adds the numbers under a hash to *numbers, each modulo 2^32, in no order. False: out of memory. */
bool dp_keys_find(dp_keys *keys, uint64_t hash, dp_numbers *numbers);
/* Prefetches what a find of this hash will read. */
void dp_keys_prefetch(dp_keys *keys, uint64_t hash);

uint64_t dp_keys_bytes(dp_keys *keys);

/* ---- many at once ---- */

/* Segments are built in parts. */
enum { DP_KEY_PART_BITS = 6, DP_KEY_PARTS = 1 << DP_KEY_PART_BITS };

typedef struct dp_keys_stage dp_keys_stage;
dp_keys_stage *dp_keys_stage_create(dp_keys *keys);
void dp_keys_stage_free(dp_keys_stage *stage);
/* False: no memory; what was staged before stays. */
bool dp_keys_stage_add(dp_keys_stage *stage, uint64_t hash, uint64_t number);

/* Memory to build with, one for each thread, used again; zero is none. */
typedef struct dp_keys_scratch {
    uint64_t *dealt, *spare;
    size_t dealt_room, spare_room;
} dp_keys_scratch;
void dp_keys_scratch_free(dp_keys_scratch *scratch);

/* Builds a part of what is staged into the tables, which empties it; stages may be NULL. Parts may be built at the same
 * time. False: no memory. */
bool dp_keys_build(dp_keys *keys, dp_keys_stage *const *stages, size_t count, size_t part, dp_keys_scratch *scratch);

#endif
