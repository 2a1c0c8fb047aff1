/* keys.c - numbers by key: segments, each a table (keys_table.c) with a lock of its own. */
#include "engine/keys_segment.h"

#include <stdlib.h>

dp_keys *dp_keys_create(int bits) {
    size_t count = (size_t)1 << bits;
    dp_keys *keys = calloc(1, sizeof *keys);
    if (!keys || !(keys->segment = aligned_alloc(64, count * sizeof *keys->segment))) {
        free(keys);
        return NULL;
    }
    keys->bits = bits;
    keys->secret = dp_order_random();
    memset(keys->segment, 0, count * sizeof *keys->segment);
    for (; keys->count < count; keys->count++) {
        if (!dp_lock_init(&keys->segment[keys->count].lock)) {
            dp_keys_free(keys);
            return NULL;
        }
    }
    return keys;
}

void dp_keys_free(dp_keys *keys) {
    if (!keys)
        return;
    for (size_t i = 0; i < keys->count; i++) {
        pthread_rwlock_destroy(&keys->segment[i].lock);
        dp_table_free(&keys->segment[i].table);
    }
    free(keys->segment);
    free(keys);
}

bool dp_keys_add(dp_keys *keys, uint64_t hash, uint64_t number) {
    dp_key_place place = dp_keys_place(keys, hash);
    pthread_rwlock_wrlock(&place.segment->lock);
    bool added = dp_table_add(&place.segment->table, place.tag, number);
    pthread_rwlock_unlock(&place.segment->lock);
    return added;
}

void dp_keys_remove(dp_keys *keys, uint64_t hash, uint64_t number) {
    dp_key_place place = dp_keys_place(keys, hash);
    pthread_rwlock_wrlock(&place.segment->lock);
    dp_table_remove(&place.segment->table, place.tag, number);
    pthread_rwlock_unlock(&place.segment->lock);
}

bool dp_keys_find(dp_keys *keys, uint64_t hash, dp_numbers *numbers) {
    dp_key_place place = dp_keys_place(keys, hash);
    pthread_rwlock_rdlock(&place.segment->lock);
    bool found = dp_table_find(&place.segment->table, place.tag, numbers);
    pthread_rwlock_unlock(&place.segment->lock);
    return found;
}

/* Without the lock slots and homes may be of two tables, and what is fetched of no use: it is not looked at. */
void dp_keys_prefetch(dp_keys *keys, uint64_t hash) {
    dp_key_place place = dp_keys_place(keys, hash);
    const dp_table *table = &place.segment->table;
    uintptr_t first = (uintptr_t)dp_table_slots(table) + dp_table_home(table, place.tag) * DP_ENTRY_BYTES;
    __builtin_prefetch(
        (const void *)first); /* most finds end within 64 bytes, but these may begin anywhere in a line */
    __builtin_prefetch((const void *)(first + 64));
}

uint64_t dp_keys_bytes(dp_keys *keys) {
    uint64_t bytes = sizeof *keys + keys->count * sizeof *keys->segment;
    for (size_t i = 0; i < keys->count; i++) {
        pthread_rwlock_rdlock(&keys->segment[i].lock);
        bytes += dp_table_bytes(&keys->segment[i].table);
        pthread_rwlock_unlock(&keys->segment[i].lock);
    }
    return bytes;
}
