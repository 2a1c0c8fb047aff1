/* hashmap.h - the hash table: from 64-bit keys to nonzero values.
 *
 *     dp_hashmap map = {0};                                  zero is an empty map
 *     uint64_t *value = dp_hashmap_add(&map, key);           where the key's value stands; NULL: out of memory
 *     if (!*value)                                       the key is new: it gets its value now
 *         *value = ++count;
 *     uint64_t found = dp_hashmap_find(&map, key);           0: not there
 *     dp_hashmap_free(&map);
 *
 * Keys are numbers, or hashes long enough to identify what they are hashes of. For shorter hashes, dp_hashmap_add_if
 * and dp_hashmap_find_if take hashes that may collide, and a function that compares what the values refer to; make it
 * `static`, so that the compiler inlines it.
 *
 * Open addressing with linear probing: a key is at its home, the top bits of a product, or at the next free place after
 * it; at most two thirds of the places are used, so a lookup ends after two places on average if the key is present and
 * after five if it is not. */
#ifndef DP_HASHMAP_H
#define DP_HASHMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dp_hashmap_place {
    uint64_t key, value; /* value 0: free */
} dp_hashmap_place;

typedef struct dp_hashmap {
    dp_hashmap_place *places; /* a power of two of them, or none */
    size_t room, count;
    int shift; /* 64 - log2(room) */
} dp_hashmap;

/* Makes room for `count` keys in all; false when out of memory, with nothing changed. After it dp_hashmap_add does not
 * fail, and pointers to values stay valid, up to that count. */
bool dp_hashmap_reserve(dp_hashmap *map, size_t count);

void dp_hashmap_remove(dp_hashmap *map, uint64_t key);
/* Removes all keys; keeps the memory. */
void dp_hashmap_clear(dp_hashmap *map);
void dp_hashmap_free(dp_hashmap *map);

/* Bytes that a map of this many keys takes. */
size_t dp_hashmap_bytes(size_t count);

static inline size_t dp_hashmap_home(const dp_hashmap *map, uint64_t key) {
    return (size_t)((key ^ key >> 32) * 0x9E3779B97F4A7C15u >> map->shift);
}

/* Whether a value refers to what is looked up. */
typedef bool (*dp_hashmap_same)(const void *user, uint64_t value);

/* The place of a key for which `same` (NULL: any) holds, or the free one where it belongs. The map has room. */
static inline dp_hashmap_place *dp_hashmap_locate(const dp_hashmap *map, uint64_t key, dp_hashmap_same same,
                                                  const void *user) {
    size_t at = dp_hashmap_home(map, key);
    while (map->places[at].value && (map->places[at].key != key || (same && !same(user, map->places[at].value))))
        at = (at + 1) & (map->room - 1);
    return &map->places[at];
}

/* The value of a hash for which `same` holds; 0: not there. */
static inline uint64_t dp_hashmap_find_if(const dp_hashmap *map, uint64_t hash, dp_hashmap_same same,
                                          const void *user) {
    return map->room ? dp_hashmap_locate(map, hash, same, user)->value : 0;
}

static inline uint64_t dp_hashmap_find(const dp_hashmap *map, uint64_t key) {
    return dp_hashmap_find_if(map, key, NULL, NULL);
}

/* A pointer to the value of a hash for which `same` holds. The value is 0 if it is new, and must then be set before the
 * next call. NULL: it is new, and out of memory. The pointer is valid until the next call that adds, or as long as room
 * was reserved. */
static inline uint64_t *dp_hashmap_add_if(dp_hashmap *map, uint64_t hash, dp_hashmap_same same, const void *user) {
    bool full = map->count >= map->room / 3 * 2;
    dp_hashmap_place *place = map->room ? dp_hashmap_locate(map, hash, same, user) : NULL;
    if (full && !(place && place->value)) {
        if (!dp_hashmap_reserve(map, map->count + 1))
            return NULL;
        place = dp_hashmap_locate(map, hash, same, user);
    }
    if (!place->value) {
        place->key = hash;
        map->count++;
    }
    return &place->value;
}

static inline uint64_t *dp_hashmap_add(dp_hashmap *map, uint64_t key) {
    return dp_hashmap_add_if(map, key, NULL, NULL);
}

#endif
