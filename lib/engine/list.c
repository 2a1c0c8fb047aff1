/* list.c - lists of documents: blocks that belong to the list, and what traces and records say, copied into them. */
#include "engine/list.h"
#include "decide/decide.h"

#include <math.h>
#include <stdlib.h>
#include <zstd.h>

/* Blocks of so many bytes, or of what is needed at once. */
enum { BLOCK = 16384 };

typedef struct block {
    struct block *next;
    size_t used, room;
    char bytes[];
} block;

typedef struct held {
    block *blocks;
    size_t stored_room;
} held;

void *dp_stored_take(doppel_stored_list *list, size_t length) {
    held *h = list->held;
    if (!h && !(list->held = h = calloc(1, sizeof *h)))
        return NULL;
    length = (length + 8) & ~(size_t)7;
    if (!h->blocks || h->blocks->room - h->blocks->used < length) {
        size_t room = length > BLOCK ? length : BLOCK;
        block *made = malloc(sizeof *made + room);
        if (!made)
            return NULL;
        *made = (block){.next = h->blocks, .room = room};
        h->blocks = made;
    }
    h->blocks->used += length;
    return h->blocks->bytes + h->blocks->used - length;
}

bool dp_stored_copy(doppel_stored_list *list, doppel_slice from, doppel_slice *to) {
    *to = (doppel_slice){NULL, 0};
    if (!from.data)
        return true;
    char *bytes = dp_stored_take(list, from.length);
    if (!bytes)
        return false;
    memcpy(bytes, from.data, from.length);
    *to = (doppel_slice){bytes, from.length};
    return true;
}

doppel_stored *dp_stored_next(doppel_stored_list *list) {
    if (!list->held && !dp_stored_take(list, 0))
        return NULL;
    held *h = list->held;
    if (!dp_reserve(&list->stored, &h->stored_room, list->count + 1, sizeof *list->stored))
        return NULL;
    return &list->stored[list->count];
}

bool dp_stored_unpack(doppel_stored_list *list, doppel_slice packed, uint64_t length, doppel_slice *text) {
    char *to = dp_stored_take(list, length);
    if (!to)
        return false;
    size_t size = ZSTD_decompress(to, length, packed.data, packed.length);
    if (!ZSTD_isError(size))
        *text = (doppel_slice){to, size};
    return true;
}

static void free_blocks(held *h, block *until) {
    for (block *b = h->blocks, *next; b && b != until; b = next) {
        next = b->next;
        free(b);
    }
    h->blocks = until;
}

void dp_stored_list_clear(doppel_stored_list *list) {
    list->count = 0;
    if (list->held)
        free_blocks(list->held, NULL);
}

void doppel_stored_list_free(doppel_stored_list *list) {
    if (!list)
        return;
    dp_stored_list_clear(list);
    free(list->held);
    free(list->stored);
    *list = (doppel_stored_list){0};
}

/* ---- what is filled in ---- */

doppel_stored dp_stored_of(const dp_trace *trace, const dp_record *record) {
    doppel_stored stored = {.number = trace->number,
                            .reason = dp_reason_name((dp_reason)record->reason),
                            .evidence = record->reason ? record->evidence : dp_evidence_none(),
                            .added = trace->added,
                            .expires = trace->expires,
                            .words = record->words,
                            .fingerprint = {trace->fingerprint[0], trace->fingerprint[1]},
                            .similarity = NAN,
                            .containment = NAN,
                            .distance = -1};
    memcpy(stored.digest, trace->digest, sizeof stored.digest);
    return stored;
}

bool dp_stored_name(doppel_stored_list *list, const dp_record *record, doppel_stored *to) {
    return dp_stored_copy(list, record->id, &to->id) && dp_stored_copy(list, record->url, &to->url) &&
           dp_stored_copy(list, record->canonical, &to->canonical) && dp_stored_copy(list, record->title, &to->title) &&
           dp_stored_copy(list, record->fields, &to->fields) && dp_stored_copy(list, record->origin, &to->origin) &&
           (!record->reason || dp_stored_copy(list, record->original_id, &to->original_id));
}

void dp_stored_count(const dp_counts *counts, doppel_stored *to) {
    for (int i = 0; i < 3; i++) {
        to->duplicates_by[i] = counts->by[i];
        to->duplicates += counts->by[i];
    }
    to->last_duplicate = counts->last;
}
