/* found.c - documents that an index has, and the originals it named: a list by document, a table of ids. */
#include "batch/found.h"
#include "index/index.h"

#include <stdlib.h>

void dp_finds_free(dp_finds *finds) {
    free(finds->document);
    free(finds->original);
    free(finds->table);
    *finds = (dp_finds){0};
}

/* ---- kinds ---- */

static const struct {
    dp_reason reason;
    bool same_digest;
} kinds[DP_FOUND_KINDS] = {
    {DP_UNIQUE, false}, {DP_SAME_URL, false}, {DP_SAME_CONTENT, true}, {DP_SAME_CONTENT, false}, {DP_SAME_TITLE, false},
};

uint8_t dp_found_kind(dp_reason reason, bool same_digest) {
    uint8_t kind = 0;
    while (kinds[kind].reason != reason || (reason == DP_SAME_CONTENT && kinds[kind].same_digest != same_digest))
        kind++;
    return kind;
}

dp_reason dp_found_reason(uint8_t kind) {
    return kinds[kind].reason;
}

/* ---- originals ---- */

static size_t place_of(const dp_finds *finds, const uint64_t hash[2]) {
    size_t at = (size_t)hash[0] & (finds->table_room - 1);
    while (finds->table[at] && memcmp(finds->original[finds->table[at] - 1].hash, hash, 2 * sizeof *hash) != 0)
        at = (at + 1) & (finds->table_room - 1);
    return at;
}

/* Room for one original more; the table is never more than half full. */
static bool make_room(dp_finds *finds) {
    size_t count = finds->original_count;
    if (!dp_reserve(&finds->original, &finds->original_room, count + 1, sizeof *finds->original))
        return false;
    if (2 * (count + 1) <= finds->table_room)
        return true;
    if (!finds->table_room)
        finds->key[0] = dp_order_random(), finds->key[1] = dp_order_random();
    size_t room = finds->table_room ? 2 * finds->table_room : 1024;
    uint32_t *table = calloc(room, sizeof *table);
    if (!table)
        return false;
    free(finds->table);
    finds->table = table;
    finds->table_room = room;
    for (size_t i = 0; i < count; i++)
        table[place_of(finds, finds->original[i].hash)] = (uint32_t)i + 1;
    return true;
}

/* The number of the original with this id. Ids are told by 128 bits of their hash. */
static bool number_of(dp_finds *finds, doppel_slice id, uint64_t id_at, uint32_t *number) {
    if (!make_room(finds))
        return false;
    const uint64_t other_key[2] = {finds->key[1], finds->key[0]};
    dp_found_original original = {
        .hash = {dp_siphash(id.data, id.length, finds->key), dp_siphash(id.data, id.length, other_key)},
        .id_at = id_at,
        .id_length = (uint32_t)id.length};
    uint32_t *place = &finds->table[place_of(finds, original.hash)];
    if (!*place) {
        finds->original[finds->original_count++] = original;
        *place = (uint32_t)finds->original_count;
    }
    *number = *place - 1;
    return true;
}

/* ---- documents ---- */

bool dp_finds_add(dp_finds *finds, const dp_found_document *document, doppel_slice id, uint64_t id_at) {
    if (!dp_reserve(&finds->document, &finds->room, finds->count + 1, sizeof *finds->document))
        return false;
    dp_found_document *added = &finds->document[finds->count];
    *added = *document;
    if (!number_of(finds, id, id_at, &added->found.original))
        return false;
    finds->count++;
    return true;
}

static int compare(const void *key, const void *element) {
    uint32_t a = *(const uint32_t *)key, b = ((const dp_found_document *)element)->document;
    return a < b ? -1 : a > b;
}

const dp_found *dp_finds_get(const dp_finds *finds, uint32_t document) {
    if (!finds->count)
        return NULL;
    const dp_found_document *found =
        bsearch(&document, finds->document, finds->count, sizeof *finds->document, compare);
    return found ? &found->found : NULL;
}
