/* titles_store.c - titles as they come, and the entries that the title index makes of them. */
#include "index/titles_store.h"

#include <stdlib.h>

enum { BLOCK = 1 << 20 };

#define LONGEST 0x80000000u

/* ---- titles as they come ---- */

bool dp_titles_text_room(dp_titles_text *text, const dp_titles_index *index, size_t length) {
    text->base = index->base;
    size_t bytes = (length + 1) * (sizeof *text->sums + sizeof *text->data);
    text->room = bytes <= sizeof text->here ? NULL : malloc(bytes);
    text->sums = bytes <= sizeof text->here ? text->here : text->room;
    if (!text->sums)
        return false;
    text->data = (uint32_t *)(text->sums + length + 1);
    return true;
}

static void set_points(dp_titles_text *text, size_t count) {
    text->points = (dp_points){text->data, count};
    text->sums[0] = 0;
    for (size_t i = 0; i < count; i++)
        text->sums[i + 1] = dp_titles_next(text->base, text->sums[i], text->data[i]);
}

doppel_status dp_titles_text_init(dp_titles_text *text, const dp_titles_index *index, const char *title,
                                  size_t length) {
    if (length >= LONGEST)
        return DOPPEL_ERROR_INPUT;
    if (!dp_titles_text_room(text, index, length))
        return DOPPEL_ERROR_MEMORY;
    set_points(text, dp_points_decode(title, length, text->data));
    return DOPPEL_OK;
}

void dp_titles_text_load(dp_titles_text *text, const dp_titles_entry *entry) {
    dp_titles_unpack(entry, text->data);
    set_points(text, entry->length);
}

void dp_titles_text_free(dp_titles_text *text) {
    free(text->room);
}

uint32_t dp_titles_whole(const dp_titles_index *index, const uint64_t *sums, size_t length) {
    return dp_titles_hash(sums, 0, length, 0, dp_titles_seed(index, length, 0, DP_TITLES_WHOLE));
}

/* ---- entries ---- */

static uint8_t width_of(dp_points text) {
    uint32_t all = 0;
    for (size_t i = 0; i < text.count; i++)
        all |= text.data[i];
    return all < 256 ? 1 : all < 65536 ? 2 : 4;
}

/* Room for the code points of a title, aligned to four; NULL: no memory. */
static char *take_room(dp_titles_index *index, size_t size) {
    size = size / 4 * 4 + 4;
    if (size > index->room_left) {
        size_t block = size > BLOCK ? size : BLOCK;
        if (!dp_reserve(&index->blocks, &index->block_capacity, index->block_count + 1, sizeof *index->blocks))
            return NULL;
        char *room = malloc(block);
        if (!room)
            return NULL;
        index->blocks[index->block_count++] = room;
        index->room = room;
        index->room_left = block;
        index->bytes += block;
    }
    char *at = index->room;
    index->room += size;
    index->room_left -= size;
    return at;
}

static void pack(char *to, dp_points text, uint8_t width) {
    for (size_t i = 0; i < text.count; i++) {
        uint16_t half = (uint16_t)text.data[i];
        if (width == 1)
            to[i] = (char)text.data[i];
        else if (width == 2)
            memcpy(to + 2 * i, &half, 2);
        else
            memcpy(to + 4 * i, &text.data[i], 4);
    }
}

static inline uint32_t point_at(const char *points, size_t i, uint8_t width) {
    uint16_t half;
    uint32_t whole;
    if (width == 1)
        return (uint8_t)points[i];
    if (width == 2) {
        memcpy(&half, points + 2 * i, 2);
        return half;
    }
    memcpy(&whole, points + 4 * i, 4);
    return whole;
}

void dp_titles_unpack(const dp_titles_entry *entry, uint32_t *to) {
    const char *points = entry->points;
    size_t length = entry->length;
    if (entry->width == 1)
        for (size_t i = 0; i < length; i++)
            to[i] = point_at(points, i, 1);
    else
        for (size_t i = 0; i < length; i++)
            to[i] = point_at(points, i, entry->width);
}

static bool is_title(const dp_titles_entry *entry, dp_points text) {
    if (entry->length != text.count)
        return false;
    for (size_t i = 0; i < text.count; i++)
        if (point_at(entry->points, i, entry->width) != text.data[i])
            return false;
    return true;
}

dp_titles_entry *dp_titles_entry_get(const dp_titles_index *index, dp_points text, const uint64_t *sums) {
    uint32_t one;
    size_t count;
    const uint32_t *found = dp_titles_table_get(&index->table, dp_titles_whole(index, sums, text.count), &one, &count);
    for (size_t i = 0; i < count; i++)
        if (is_title(&index->entries[found[i]], text))
            return &index->entries[found[i]];
    return NULL;
}

/* All places are asked of memory first: most are far, and come the faster for it. */
bool dp_titles_add_segments(dp_titles_index *index, const dp_titles_group *group, const dp_titles_cuts *cuts,
                            uint32_t number, const uint64_t *sums) {
    uint32_t hash[DP_TITLES_SEGMENTS];
    for (size_t i = 0; i < group->segments; i++) {
        size_t start = cuts->at[i], end = cuts->at[i + 1];
        uint64_t seed = dp_titles_seed(index, group->length, cuts->version, i);
        hash[i] = dp_titles_hash(sums, start, end, dp_titles_power(index->base, end - start), seed);
        __builtin_prefetch(index->table.slots + dp_titles_home(&index->table, hash[i]));
    }
    for (size_t i = 0; i < group->segments; i++)
        if (!dp_titles_table_add(&index->table, hash[i], number))
            return false;
    return true;
}

/* An entry that fails half-way has no owner and is not found as a whole, so that nobody comes to own it. */
dp_titles_entry *dp_titles_entry_add(dp_titles_index *index, dp_points text, const uint64_t *sums) {
    uint8_t width = width_of(text);
    dp_titles_group *group = dp_titles_group_for(index, text.count);
    if (!group || !dp_titles_table_reserve(&index->table, (size_t)group->segments + 1) ||
        !dp_reserve(&index->entries, &index->capacity, index->count + 1, sizeof *index->entries))
        return NULL;
    char *points = take_room(index, text.count * width);
    if (!points)
        return NULL;
    pack(points, text, width);
    uint32_t number = (uint32_t)index->count++;
    dp_titles_entry *entry = &index->entries[number];
    *entry = (dp_titles_entry){.points = points, .length = (uint32_t)text.count, .width = width};
    dp_title_bag(text, entry->bag);
    group->entries[group->count++] = number;
    if (!dp_titles_add_segments(index, group, &group->cuts, number, sums) ||
        !dp_titles_table_add(&index->table, dp_titles_whole(index, sums, text.count), number))
        return NULL;
    if (group->count >= group->recut_at)
        dp_titles_group_recut(index, group);
    return entry;
}
