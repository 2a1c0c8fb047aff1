/* buckets.c - documents that may be near, in buckets, and who looks at which.
 *
 * Near copies share most of their bands, and so the same documents come together again and again: a bucket that holds
 * just what another one holds is not kept. It is told by a hash of 64 bits of its numbers. */
#include "batch/batch.h"

#include <stdlib.h>

void dp_buckets_free(dp_buckets *buckets) {
    free(buckets->member);
    free(buckets->start);
    free(buckets->seen);
    *buckets = (dp_buckets){0};
}

static uint64_t hash_members(const uint32_t *members, size_t count) {
    uint64_t hash = count * 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ members[i]) * 0xBF58476D1CE4E5B9u;
        hash ^= hash >> 29;
    }
    return hash ? hash : 1;
}

static void put_hash(uint64_t *table, size_t room, uint64_t hash) {
    size_t at = (hash * 0x94D049BB133111EBu) >> 20 & (room - 1);
    while (table[at])
        at = (at + 1) & (room - 1);
    table[at] = hash;
}

static bool grow_seen(dp_buckets *buckets) {
    size_t room = buckets->seen_room ? 2 * buckets->seen_room : 1024;
    uint64_t *table = calloc(room, sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < buckets->seen_room; i++)
        if (buckets->seen[i])
            put_hash(table, room, buckets->seen[i]);
    free(buckets->seen);
    buckets->seen = table;
    buckets->seen_room = room;
    return true;
}

static bool was_seen(const dp_buckets *buckets, uint64_t hash) {
    size_t at = (hash * 0x94D049BB133111EBu) >> 20 & (buckets->seen_room - 1);
    for (; buckets->seen[at]; at = (at + 1) & (buckets->seen_room - 1))
        if (buckets->seen[at] == hash)
            return true;
    return false;
}

bool dp_buckets_add(dp_buckets *buckets, const uint32_t *members, size_t count) {
    uint64_t hash = hash_members(members, count);
    if (2 * buckets->seen_count >= buckets->seen_room && !grow_seen(buckets))
        return false;
    if (was_seen(buckets, hash))
        return true;
    if (!dp_reserve(&buckets->member, &buckets->member_room, buckets->member_count + count, sizeof *buckets->member) ||
        !dp_reserve(&buckets->start, &buckets->start_room, buckets->count + 2, sizeof *buckets->start))
        return false;
    put_hash(buckets->seen, buckets->seen_room, hash);
    buckets->seen_count++;
    buckets->start[buckets->count++] = buckets->member_count;
    memcpy(buckets->member + buckets->member_count, members, count * sizeof *members);
    buckets->member_count += count;
    buckets->start[buckets->count] = buckets->member_count;
    return true;
}

bool dp_looks_make(dp_looks *looks, const dp_buckets *buckets, size_t documents) {
    looks->start = calloc(documents + 2, sizeof *looks->start);
    looks->bucket = malloc((buckets->member_count + 1) * sizeof *looks->bucket);
    if (!looks->start || !looks->bucket)
        return false;
    /* Two ahead: once the buckets are placed, start[d + 1] has moved to where those of d end. */
    for (size_t i = 0; i < buckets->member_count; i++)
        looks->start[buckets->member[i] + 2]++;
    for (size_t d = 2; d < documents + 2; d++)
        looks->start[d] += looks->start[d - 1];
    for (size_t b = 0; b < buckets->count; b++)
        for (uint64_t i = buckets->start[b]; i < buckets->start[b + 1]; i++)
            looks->bucket[looks->start[buckets->member[i] + 1]++] = (uint32_t)b;
    return true;
}

void dp_looks_free(dp_looks *looks) {
    free(looks->start);
    free(looks->bucket);
    free(looks->of);
    *looks = (dp_looks){0};
}
