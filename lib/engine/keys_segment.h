/* keys_segment.h - the segments of the keys, and which of them a hash leads to; for keys.c, keys_stage.c and
 * keys_build.c. */
#ifndef DP_KEYS_SEGMENT_H
#define DP_KEYS_SEGMENT_H

#include "engine/keys_table.h"
#include "engine/lock.h"

typedef struct dp_segment {
    _Alignas(64) pthread_rwlock_t lock;
    dp_table table;
} dp_segment;

struct dp_keys {
    int bits;
    uint64_t secret;
    dp_segment *segment;
    size_t count;
};

typedef struct dp_key_place {
    dp_segment *segment;
    uint64_t tag; /* not 0 */
} dp_key_place;

static inline dp_key_place dp_keys_place(const dp_keys *keys, uint64_t hash) {
    uint64_t x = hash ^ keys->secret;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    uint64_t tag = x & (((uint64_t)1 << DP_TAG_BITS) - 1);
    return (dp_key_place){keys->segment + (x >> (64 - keys->bits)), tag ? tag : 1};
}

/* ---- entries that wait to be built in ---- */

/* Segments that stand together are a part. An entry that waits carries which segment of its part it belongs to, in the
 * 8 bits above its own: so there are 2^14 segments at most. */
typedef struct dp_staged {
    struct dp_staged *before;
    size_t count, bytes;
    uint64_t entry[];
} dp_staged;

struct dp_keys_stage {
    dp_keys *keys;
    int shift;                                        /* from segment to part */
    uint64_t *next[DP_KEY_PARTS], *end[DP_KEY_PARTS]; /* where the next entry goes, and the end of its memory */
    dp_staged *last[DP_KEY_PARTS];
    size_t count[DP_KEY_PARTS]; /* but for those of the last */
};

static inline size_t dp_staged_of_last(const dp_keys_stage *stage, size_t part) {
    return stage->last[part] ? (size_t)(stage->next[part] - stage->last[part]->entry) : 0;
}

#endif
