/* keys.h - numbers by key: a map from the hash of a key to all numbers that were added under it.
 *
 * create; add and remove; find (append what may be there). Or many at once: each thread fills a stage of its own
 * (stage_create, stage_add, stage_flush), then all are built in (dp_keys_build) before anybody finds.
 *
 * The hash is mixed with a secret, so that nobody can choose which keys meet. Its top bits name a segment, 23 others
 * are the tag, and the rest is dropped: so a find may give numbers of other keys, one for each 2^23 keys of a segment,
 * but always all of its own.
 *
 * Threads: any number may add, remove and find; they meet in one segment only, for as long as one call is at work
 * there. */
#ifndef DP_KEYS_H
#define DP_KEYS_H

#include "engine/known.h"

/* The largest number there can be: 40 bits of an entry. */
#define DP_MOST_NUMBER DP_KNOWN_NUMBERS

typedef struct dp_keys dp_keys;

/* 2^bits segments; NULL: no memory. */
dp_keys *dp_keys_create(int bits);
void dp_keys_free(dp_keys *keys);

/* A number, 1 to DP_MOST_NUMBER, under a hash; as often as it is added. False: no memory, and nothing has changed. */
bool dp_keys_add(dp_keys *keys, uint64_t hash, uint64_t number);
/* Takes it out once; nothing happens when it is not there. */
void dp_keys_remove(dp_keys *keys, uint64_t hash, uint64_t number);

/* Adds what is there under a hash to *numbers, in no order. False: no memory. */
bool dp_keys_find(dp_keys *keys, uint64_t hash, dp_numbers *numbers);
/* Begins to bring near what a find of this hash will look at. */
void dp_keys_prefetch(dp_keys *keys, uint64_t hash);

uint64_t dp_keys_bytes(dp_keys *keys);

/* ---- many at once ---- */

typedef struct dp_keys_stage dp_keys_stage;
dp_keys_stage *dp_keys_stage_create(dp_keys *keys);
void dp_keys_stage_free(dp_keys_stage *stage);
/* False: no memory; then not all that was staged can be built in. */
bool dp_keys_stage_add(dp_keys_stage *stage, uint64_t hash, uint64_t number);
bool dp_keys_stage_flush(dp_keys_stage *stage);

/* Builds in what was staged: share `part` of `parts`, each of which may be another thread's. False: no memory. */
bool dp_keys_build(dp_keys *keys, size_t part, size_t parts);

#endif
