/* known_seen.c - how often each title came without being added: a table by hash. */
#include "engine/known_parts.h"

#include <stdlib.h>

/* Where a hash stands, or the empty slot where it belongs. */
static dp_seen_title *slot_of(dp_seen_title *slot, size_t room, uint64_t hash) {
    size_t at = (size_t)hash & (room - 1);
    while (slot[at].hash && slot[at].hash != hash)
        at = (at + 1) & (room - 1);
    return &slot[at];
}

static bool grow(dp_seen_titles *seen) {
    if (seen->count < seen->room / 4 * 3)
        return true;
    size_t room = seen->room ? 2 * seen->room : 64;
    dp_seen_title *slot = calloc(room, sizeof *slot);
    if (!slot)
        return false;
    for (size_t i = 0; i < seen->room; i++)
        if (seen->slot[i].hash)
            *slot_of(slot, room, seen->slot[i].hash) = seen->slot[i];
    free(seen->slot);
    seen->slot = slot;
    seen->room = room;
    return true;
}

bool dp_seen_add(dp_seen_titles *seen, uint64_t hash, uint64_t times) {
    pthread_rwlock_wrlock(&seen->lock);
    bool there = grow(seen);
    if (there) {
        dp_seen_title *slot = slot_of(seen->slot, seen->room, hash);
        seen->count += !slot->hash;
        slot->hash = hash;
        slot->times += times;
        atomic_fetch_add_explicit(&seen->times, times, memory_order_relaxed);
    }
    pthread_rwlock_unlock(&seen->lock);
    return there;
}

uint64_t dp_seen_times(dp_seen_titles *seen, uint64_t hash) {
    if (!atomic_load_explicit(&seen->times, memory_order_relaxed))
        return 0;
    pthread_rwlock_rdlock(&seen->lock);
    uint64_t times = seen->room ? slot_of(seen->slot, seen->room, hash)->times : 0;
    pthread_rwlock_unlock(&seen->lock);
    return times;
}
