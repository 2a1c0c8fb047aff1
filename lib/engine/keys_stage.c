/* keys_stage.c - many keys at once: entries are collected by segment, and each segment is sorted and built at the end.
 *
 * A stage holds a few entries of each segment, so that a segment's lock, and the end of its memory, are visited once
 * for all of them. */
#include "engine/keys_segment.h"

#include <stdlib.h>

enum { STAGED = 32 };

struct dp_keys_stage {
    dp_keys *keys;
    uint8_t *count;  /* of each segment */
    uint64_t *entry; /* STAGED of each */
};

dp_keys_stage *dp_keys_stage_create(dp_keys *keys) {
    dp_keys_stage *stage = calloc(1, sizeof *stage);
    if (!stage)
        return NULL;
    stage->keys = keys;
    stage->count = calloc(keys->count, 1);
    stage->entry = dp_big_alloc(keys->count * STAGED * sizeof *stage->entry);
    if (!stage->count || !stage->entry) {
        dp_keys_stage_free(stage);
        return NULL;
    }
    return stage;
}

void dp_keys_stage_free(dp_keys_stage *stage) {
    if (!stage)
        return;
    free(stage->count);
    free(stage->entry);
    free(stage);
}

/* Grows by a half: what is staged may be most of the memory there is. */
static bool make_room(dp_segment *segment, size_t need) {
    if (need <= segment->staged_room)
        return true;
    size_t room = need + need / 2;
    uint64_t *staged = dp_slots_get(room);
    if (!staged)
        return false;
    if (segment->staged_count)
        memcpy(staged, segment->staged, segment->staged_count * sizeof *staged);
    dp_slots_free(segment->staged, segment->staged_room);
    segment->staged = staged;
    segment->staged_room = room;
    return true;
}

static bool flush(dp_keys_stage *stage, size_t which) {
    dp_segment *segment = stage->keys->segment + which;
    size_t count = stage->count[which];
    stage->count[which] = 0;
    pthread_rwlock_wrlock(&segment->lock);
    bool room = make_room(segment, segment->staged_count + count);
    if (room) {
        memcpy(segment->staged + segment->staged_count, stage->entry + which * STAGED, count * sizeof *stage->entry);
        segment->staged_count += count;
    }
    pthread_rwlock_unlock(&segment->lock);
    return room;
}

bool dp_keys_stage_add(dp_keys_stage *stage, uint64_t hash, uint64_t number) {
    dp_key_place place = dp_keys_place(stage->keys, hash);
    size_t which = (size_t)(place.segment - stage->keys->segment);
    stage->entry[which * STAGED + stage->count[which]] = dp_entry_make(place.tag, number);
    return ++stage->count[which] < STAGED || flush(stage, which);
}

bool dp_keys_stage_flush(dp_keys_stage *stage) {
    for (size_t i = 0; i < stage->keys->count; i++)
        if (stage->count[i] && !flush(stage, i))
            return false;
    return true;
}

/* ---- building ---- */

static bool build(dp_segment *segment, uint64_t **scratch, size_t *room) {
    size_t count = segment->staged_count;
    if (!count)
        return true;
    if (!dp_reserve(scratch, room, count, sizeof **scratch))
        return false;
    dp_sort64(segment->staged, count, *scratch);
    pthread_rwlock_wrlock(&segment->lock);
    bool built = dp_table_build(&segment->table, segment->staged, count);
    dp_slots_free(segment->staged, segment->staged_room);
    segment->staged = NULL;
    segment->staged_count = segment->staged_room = 0;
    pthread_rwlock_unlock(&segment->lock);
    return built;
}

bool dp_keys_build(dp_keys *keys, size_t part, size_t parts) {
    uint64_t *scratch = NULL;
    size_t room = 0;
    bool built = true;
    for (size_t i = part; i < keys->count && built; i += parts)
        built = build(&keys->segment[i], &scratch, &room);
    free(scratch);
    return built;
}
