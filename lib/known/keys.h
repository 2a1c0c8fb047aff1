/* keys.h - numbers by key: a map from the hash of a key to all numbers that were added under it.
 *
 * create; add and remove; find (append what may be there). Or many at once: each thread fills a stage of its own
 * (stage_create, stage_add), then all are built in (dp_keys_build) before anybody finds.
 *
 * The hash is mixed with a secret, so that nobody can choose which keys meet. Its top bits name a segment, 23 others
 * are the tag, and the rest is dropped: so a find may give numbers of other keys, one for each 2^23 keys of a segment,
 * but always all of its own. Of a number the low 32 bits are kept, and given: the caller knows which numbers there are.
 *
 * Threads: any number may add, remove and find; they meet in one segment only, for as long as one call is at work
 * there. */
#ifndef DP_KEYS_H
#define DP_KEYS_H

#include "known/known.h"

typedef struct dp_keys dp_keys;

/* 2^bits segments, bits 6 to 14; NULL: no memory. */
dp_keys *dp_keys_create(int bits);
void dp_keys_free(dp_keys *keys);

/* A number under a hash; as often as it is added. False: no memory, and nothing has changed. */
bool dp_keys_add(dp_keys *keys, uint64_t hash, uint64_t number);
/* Takes out once what was added. */
void dp_keys_remove(dp_keys *keys, uint64_t hash, uint64_t number);

/* Adds what is there under a hash to *numbers, each modulo 2^32, in no order. False: no memory. */
bool dp_keys_find(dp_keys *keys, uint64_t hash, dp_numbers *numbers);
/* Begins to bring near what a find of this hash will look at. */
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

/* Builds in a part of what is staged, which is gone then; stages may be NULL. Parts may be built at the same time.
 * False: no memory. */
bool dp_keys_build(dp_keys *keys, dp_keys_stage *const *stages, size_t count, size_t part, dp_keys_scratch *scratch);

#endif
