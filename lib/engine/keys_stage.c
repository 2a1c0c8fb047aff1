/* keys_stage.c - many keys at once: entries are put aside by part, in pieces of memory that grow with what is there, so
 * that the unused end of the last is a small share of all. */
#include "engine/keys_segment.h"

#include <stdlib.h>

/* Pieces of 4 KiB to 1 MiB. */
enum { LEAST_PIECE = 4 << 10, MOST_PIECE = 1 << 20 };

dp_keys_stage *dp_keys_stage_create(dp_keys *keys) {
    dp_keys_stage *stage = calloc(1, sizeof *stage);
    if (!stage)
        return NULL;
    stage->keys = keys;
    stage->shift = keys->bits - DP_KEY_PART_BITS;
    return stage;
}

void dp_keys_stage_free(dp_keys_stage *stage) {
    if (!stage)
        return;
    for (size_t part = 0; part < DP_KEY_PARTS; part++)
        dp_keys_stage_drop(stage, part);
    free(stage);
}

void dp_keys_stage_drop(dp_keys_stage *stage, size_t part) {
    for (dp_staged *piece = stage->last[part], *before; piece; piece = before) {
        before = piece->before;
        dp_slots_free(piece, piece->bytes);
    }
    stage->last[part] = NULL;
    stage->next[part] = stage->end[part] = NULL;
    stage->count[part] = 0;
}

/* A piece more for a part, an eighth of what it has. */
static bool enlarge(dp_keys_stage *stage, size_t part) {
    size_t here = dp_staged_of_last(stage, part), bytes = LEAST_PIECE;
    while (bytes < MOST_PIECE && bytes < stage->count[part] + here)
        bytes *= 2;
    dp_staged *piece = dp_slots_get(bytes);
    if (!piece)
        return false;
    if (stage->last[part])
        stage->last[part]->count = here;
    stage->count[part] += here;
    piece->before = stage->last[part];
    piece->bytes = bytes;
    stage->last[part] = piece;
    stage->next[part] = piece->entry;
    stage->end[part] = piece->entry + (bytes - sizeof *piece) / sizeof *piece->entry;
    return true;
}

bool dp_keys_stage_add(dp_keys_stage *stage, uint64_t hash, uint64_t number) {
    dp_key_place place = dp_keys_place(stage->keys, hash);
    size_t which = (size_t)(place.segment - stage->keys->segment);
    size_t part = which >> stage->shift, within = which - (part << stage->shift);
    if (stage->next[part] == stage->end[part] && !enlarge(stage, part))
        return false;
    *stage->next[part]++ = (uint64_t)within << DP_ENTRY_BITS | dp_entry_make(place.tag, number);
    return true;
}
