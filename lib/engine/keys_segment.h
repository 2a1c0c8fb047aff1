/* keys_segment.h - the segments of the keys, and which of them a hash leads to; for keys.c and keys_stage.c. */
#ifndef DP_KEYS_SEGMENT_H
#define DP_KEYS_SEGMENT_H

#include "engine/keys_table.h"
#include "engine/lock.h"

typedef struct dp_segment {
    _Alignas(64) pthread_rwlock_t lock;
    dp_table table;
    uint64_t *staged; /* entries that are not yet built in */
    size_t staged_count, staged_room;
} dp_segment;

struct dp_keys {
    int bits;
    uint64_t secret;
    dp_segment *segment;
    size_t count;
};

typedef struct dp_key_place {
    dp_segment *segment;
    uint64_t tag;
} dp_key_place;

static inline dp_key_place dp_keys_place(const dp_keys *keys, uint64_t hash) {
    uint64_t x = hash ^ keys->secret;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    return (dp_key_place){keys->segment + (x >> (64 - keys->bits)), x & (((uint64_t)1 << DP_TAG_BITS) - 1)};
}

#endif
