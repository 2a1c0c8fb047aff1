/* hashmap.c - how the hash table of hashmap.h grows. */
#include "base/base.h"

#include <stdlib.h>

enum { LEAST_BITS = 4 };

/* The number of bits of the least power of two of which `count` are at most two thirds, rounded down as dp_hashmap_add
 * does it. */
static int bits_for(size_t count) {
    int bits = LEAST_BITS;
    while (bits < 63 && ((size_t)1 << bits) / 3 * 2 < count)
        bits++;
    return bits;
}

size_t dp_hashmap_bytes(size_t count) {
    return sizeof(dp_hashmap_place) << bits_for(count);
}

bool dp_hashmap_reserve(dp_hashmap *map, size_t count) {
    if (map->room && map->room / 3 * 2 >= count)
        return true;
    int bits = bits_for(count);
    if (bits >= 60)
        return false;
    dp_hashmap larger = {.room = (size_t)1 << bits, .count = map->count, .shift = 64 - bits};
    if (!(larger.places = calloc(larger.room, sizeof *larger.places)))
        return false;
    for (size_t i = 0; i < map->room; i++) {
        if (!map->places[i].value)
            continue;
        size_t at = dp_hashmap_home(&larger, map->places[i].key);
        while (larger.places[at].value)
            at = (at + 1) & (larger.room - 1);
        larger.places[at] = map->places[i];
    }
    free(map->places);
    *map = larger;
    return true;
}

/* What comes after the key, up to a free place, moves up if its way from home leads past the place that gets free. */
void dp_hashmap_remove(dp_hashmap *map, uint64_t key) {
    dp_hashmap_place *gone = map->room ? dp_hashmap_locate(map, key, NULL, NULL) : NULL;
    if (!gone || !gone->value)
        return;
    size_t mask = map->room - 1, at = (size_t)(gone - map->places);
    for (size_t next = (at + 1) & mask; map->places[next].value; next = (next + 1) & mask) {
        size_t home = dp_hashmap_home(map, map->places[next].key);
        if (((next - home) & mask) < ((next - at) & mask))
            continue;
        map->places[at] = map->places[next];
        at = next;
    }
    map->places[at].value = 0;
    map->count--;
}

void dp_hashmap_clear(dp_hashmap *map) {
    if (map->count)
        memset(map->places, 0, map->room * sizeof *map->places);
    map->count = 0;
}

void dp_hashmap_free(dp_hashmap *map) {
    free(map->places);
    *map = (dp_hashmap){0};
}
