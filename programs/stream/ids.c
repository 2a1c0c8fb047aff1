/* ids.c - the pages of a part by their ids: open addressing. Whoever chooses ids that collide slows down a batch, and
 * no more, as a batch is small. */
#include "stream/ids.h"

#include <stdlib.h>
#include <string.h>

bool id_set_open(id_set *set, size_t count) {
    *set = (id_set){.room = 16};
    while (set->room < 2 * count)
        set->room *= 2;
    set->slots = calloc(set->room, sizeof *set->slots);
    return set->slots;
}

void id_set_clear(id_set *set) {
    memset(set->slots, 0, set->room * sizeof *set->slots);
}

void id_set_free(id_set *set) {
    free(set->slots);
    *set = (id_set){0};
}

/* FNV-1a, 64 bits. */
static uint64_t hash(const char *id, size_t length) {
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)id[i]) * 0x100000001b3;
    return h ^ h >> 32;
}

/* Where it is, or would be. */
static const doppel_document **find(const id_set *set, const char *id, size_t length) {
    for (size_t i = hash(id, length);; i++) {
        const doppel_document **slot = &set->slots[i & (set->room - 1)];
        if (!*slot || ((*slot)->id_length == length && !memcmp((*slot)->id, id, length)))
            return slot;
    }
}

bool id_set_has(const id_set *set, const char *id, size_t length) {
    return *find(set, id, length);
}

const doppel_document *id_set_add(id_set *set, const doppel_document *page) {
    const doppel_document **slot = find(set, page->id, page->id_length);
    if (*slot)
        return *slot;
    *slot = page;
    return NULL;
}
