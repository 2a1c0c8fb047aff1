/* keys_build.c - the tables of many entries at once, part by part: those of a part are dealt out to its segments, those
 * of a segment are sorted by their tags, and the table is filled from its first slot to its last. A segment's entries
 * stay in the cache meanwhile. */
#include "engine/keys_segment.h"

#include <stdlib.h>

/* Tags are sorted by their two halves, of 11 and 12 bits: the places of each stay in the first cache. */
enum { LOW_BITS = 11, HIGH_BITS = DP_TAG_BITS - LOW_BITS, LOW = 1 << LOW_BITS, HIGH = 1 << HIGH_BITS };

/* Fewer than this are sorted faster without those places. */
enum { FEW = 256 };

/* As many as 8 bits can tell. */
enum { SEGMENTS_OF_PART = 256 };

void dp_keys_scratch_free(dp_keys_scratch *scratch) {
    free(scratch->dealt);
    free(scratch->spare);
    *scratch = (dp_keys_scratch){0};
}

/* Large memory is not copied when it grows. */
static bool make_room(uint64_t **data, size_t *room, size_t need) {
    if (need <= *room)
        return true;
    free(*data);
    *room = 0;
    if ((*data = dp_big_alloc((need + need / 16) * sizeof **data)))
        *room = need + need / 16;
    return *data;
}

/* ---- a part into its segments ---- */

/* Makes numbers of how many the places where each begins. */
static void begin_each(size_t *places, size_t count) {
    size_t next = 0;
    for (size_t i = 0; i < count; i++) {
        size_t here = places[i];
        places[i] = next;
        next += here;
    }
}

static void count_piece(const dp_staged *piece, size_t *places) {
    for (size_t i = 0; i < piece->count; i++)
        places[piece->entry[i] >> DP_ENTRY_BITS]++;
}

static void deal_piece(const dp_staged *piece, size_t *places, uint64_t *to) {
    const uint64_t entry_bits = ((uint64_t)1 << DP_ENTRY_BITS) - 1;
    for (size_t i = 0; i < piece->count; i++)
        to[places[piece->entry[i] >> DP_ENTRY_BITS]++] = piece->entry[i] & entry_bits;
}

/* Afterwards places[i] is the end of segment i, and what was staged is gone. */
static bool deal(dp_keys_stage *const *stages, size_t count, size_t part, dp_keys_scratch *scratch, size_t *places) {
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        if (!stages[i] || !stages[i]->last[part])
            continue;
        stages[i]->last[part]->count = dp_staged_of_last(stages[i], part);
        all += stages[i]->count[part] + stages[i]->last[part]->count;
        for (const dp_staged *piece = stages[i]->last[part]; piece; piece = piece->before)
            count_piece(piece, places);
    }
    if (!make_room(&scratch->dealt, &scratch->dealt_room, all))
        return false;
    begin_each(places, SEGMENTS_OF_PART);
    for (size_t i = 0; i < count; i++) {
        if (!stages[i])
            continue;
        for (const dp_staged *piece = stages[i]->last[part]; piece; piece = piece->before)
            deal_piece(piece, places, scratch->dealt);
        dp_keys_stage_drop(stages[i], part);
    }
    return true;
}

/* ---- a segment ---- */

static size_t low_of(uint64_t entry) {
    return entry >> DP_TAG_SHIFT & (LOW - 1);
}

static size_t high_of(uint64_t entry) {
    return entry >> (DP_TAG_SHIFT + LOW_BITS);
}

/* Sorts entries by their tags; `other` has room for as many. */
static void sort_by_tag(uint64_t *entries, size_t count, uint64_t *other) {
    if (count < FEW) {
        dp_sort64(entries, count, other);
        return;
    }
    size_t low[LOW] = {0}, high[HIGH] = {0};
    for (size_t i = 0; i < count; i++) {
        low[low_of(entries[i])]++;
        high[high_of(entries[i])]++;
    }
    begin_each(low, LOW);
    begin_each(high, HIGH);
    for (size_t i = 0; i < count; i++)
        other[low[low_of(entries[i])]++] = entries[i];
    for (size_t i = 0; i < count; i++)
        entries[high[high_of(other[i])]++] = other[i];
}

static bool build(dp_segment *segment, dp_keys_scratch *scratch, uint64_t *entries, size_t count) {
    if (!count)
        return true;
    if (!make_room(&scratch->spare, &scratch->spare_room, count))
        return false;
    sort_by_tag(entries, count, scratch->spare);
    pthread_rwlock_wrlock(&segment->lock);
    bool built = dp_table_build(&segment->table, entries, count);
    pthread_rwlock_unlock(&segment->lock);
    return built;
}

bool dp_keys_build(dp_keys *keys, dp_keys_stage *const *stages, size_t count, size_t part, dp_keys_scratch *scratch) {
    size_t places[SEGMENTS_OF_PART] = {0}, each = keys->count / DP_KEY_PARTS;
    bool built = deal(stages, count, part, scratch, places);
    /* A part without entries may have no memory. */
    for (size_t i = 0, from = 0; i < each && built && scratch->dealt; i++) {
        built = build(&keys->segment[part * each + i], scratch, scratch->dealt + from, places[i] - from);
        from = places[i];
    }
    return built;
}
