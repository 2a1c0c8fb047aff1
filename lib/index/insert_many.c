/* insert_many.c - many entries at once: doppel_index_insert_many, doppel_index_merge.
 *
 * Entries become items, which are sorted. Those that are in the index already get their new times where they stand; the
 * others become a run, or, when they are few, go into the head. What was changed in place is noted and changed back
 * when memory runs out later, so that all are added or none. */
#include "index/file.h"

#include <stdlib.h>

/* So few go into the head. More than so many in one call may not fit one run together with the head. */
#define FEW ((uint64_t)DP_HEAD_ROOM / 4)
#define MOST (DP_RUN_MOST - DP_HEAD_ROOM)

enum { BATCH = 256 };

/* What the caller gave. */
typedef struct given {
    const uint64_t *fingerprints, *owners, *expires;
    uint64_t count;
} given;

/* An entry that was there, and how it was. */
typedef struct changed {
    dp_place place;
    dp_state before;
} changed;

typedef struct adding {
    doppel_index *index;
    dp_items items;
    dp_area area; /* of the items */
    changed *changed;
    size_t changes, room;
} adding;

/* ---- items ---- */

static void fill_items(adding *a, const given *g) {
    size_t words = a->index->bits > 64 ? 2 : 1;
    uint64_t values[2 * BATCH], *item = a->items.item;
    for (uint64_t from = 0; from < g->count; from += BATCH) {
        size_t count = g->count - from < BATCH ? (size_t)(g->count - from) : BATCH;
        dp_order_apply_many(&a->index->order, g->fingerprints + from * words, count, values);
        for (size_t i = 0; i < count; i++) {
            for (size_t w = 0; w < words; w++)
                *item++ = values[i * words + w];
            *item++ = g->owners ? g->owners[from + i] : from + i;
            if (a->items.timed)
                *item++ = g->expires[from + i];
        }
    }
}

static doppel_status check_widths(const doppel_index *index, const given *g) {
    uint64_t bits = 0;
    if (index->bits < 64)
        for (uint64_t i = 0; i < g->count; i++)
            bits |= g->fingerprints[i];
    return index->bits < 64 && bits >> index->bits ? DOPPEL_ERROR_USAGE : DOPPEL_OK;
}

static doppel_status make_items(adding *a, const given *g) {
    a->items = (dp_items){.bits = a->index->bits, .count = g->count};
    for (uint64_t i = 0; g->expires && i < g->count && !a->items.timed; i++)
        a->items.timed = g->expires[i] != 0;
    size_t bytes = g->count * dp_item_words(&a->items) * 8;
    dp_area scratch;
    if (!dp_area_get(&a->area, bytes))
        return DOPPEL_ERROR_MEMORY;
    if (!dp_area_get(&scratch, bytes))
        return DOPPEL_ERROR_MEMORY;
    a->items.item = a->area.data;
    fill_items(a, g);
    dp_items_sort(&a->items, scratch.data);
    dp_area_free(&scratch);
    return DOPPEL_OK;
}

/* ---- entries that are there ---- */

static doppel_status change(adding *a, const dp_place *place, dp_state state) {
    dp_state before = dp_place_state(place);
    if (before.expires == state.expires && before.dead == state.dead)
        return DOPPEL_OK;
    if (!dp_reserve(&a->changed, &a->room, a->changes + 1, sizeof *a->changed))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = dp_place_prepare(place, state);
    if (status != DOPPEL_OK)
        return status;
    a->changed[a->changes++] = (changed){*place, before};
    dp_place_set(a->index, place, state);
    return DOPPEL_OK;
}

/* Gives new times to those that are there, and leaves the others. */
static doppel_status take_out_known(adding *a) {
    size_t words = dp_item_words(&a->items), value_words = a->items.bits > 64 ? 2 : 1;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < a->items.count; i++) {
        const uint64_t *item = a->items.item + i * words;
        dp_place place;
        doppel_status status = dp_index_locate(a->index, dp_bits_load(item, a->items.bits), item[value_words], &place);
        if (status == DOPPEL_OK && (place.head || place.run))
            status = change(a, &place, (dp_state){a->items.timed ? item[value_words + 1] : 0, false});
        else
            memmove(a->items.item + kept++ * words, item, words * 8);
        if (status != DOPPEL_OK)
            return status;
    }
    a->items.count = kept;
    return DOPPEL_OK;
}

static void change_back(adding *a) {
    while (a->changes) {
        const changed *last = &a->changed[--a->changes];
        dp_place_set(a->index, &last->place, last->before);
    }
}

/* ---- entries that are new ---- */

static doppel_status add_to_head(adding *a) {
    dp_head *head = atomic_load_explicit(&a->index->current, memory_order_relaxed)->head;
    if (atomic_load_explicit(&head->count, memory_order_relaxed) + a->items.count > DP_HEAD_ROOM) {
        doppel_status status = dp_index_flush(a->index, NULL, false);
        if (status != DOPPEL_OK)
            return status;
        head = atomic_load_explicit(&a->index->current, memory_order_relaxed)->head;
    }
    size_t words = dp_item_words(&a->items), value_words = a->items.bits > 64 ? 2 : 1;
    for (uint64_t i = 0; i < a->items.count; i++) {
        const uint64_t *item = a->items.item + i * words;
        dp_head_add(head, &a->index->places, dp_bits_load(item, a->items.bits), item[value_words],
                    a->items.timed ? item[value_words + 1] : 0);
    }
    return DOPPEL_OK;
}

static doppel_status add_run(adding *a) {
    dp_run *run;
    doppel_status status = dp_run_from_items(&a->items, &run);
    dp_area_free(&a->area);
    return status == DOPPEL_OK ? dp_index_flush(a->index, run, false) : status;
}

static doppel_status add_all(adding *a, const given *g) {
    doppel_status status = make_items(a, g);
    const dp_version *version = atomic_load_explicit(&a->index->current, memory_order_relaxed);
    if (status == DOPPEL_OK && (version->runs || atomic_load_explicit(&version->head->count, memory_order_relaxed)))
        status = take_out_known(a);
    uint64_t count = a->items.count;
    if (status == DOPPEL_OK && count)
        status = count <= FEW ? add_to_head(a) : add_run(a);
    if (status == DOPPEL_OK)
        dp_index_count(a->index, (int64_t)count);
    else
        change_back(a);
    return status;
}

doppel_status doppel_index_insert_many(doppel_index *index, const uint64_t *fingerprints, const uint64_t *owners,
                                       const uint64_t *expires, uint64_t count) {
    given g = {fingerprints, owners, expires, count};
    if (!count)
        return DOPPEL_OK;
    if (count > MOST)
        return DOPPEL_ERROR_USAGE;
    doppel_status status = check_widths(index, &g);
    if (status != DOPPEL_OK)
        return status;
    adding a = {.index = index};
    status = add_all(&a, &g);
    dp_area_free(&a.area);
    free(a.changed);
    return status;
}

/* ---- another index ---- */

/* The entries of an index, as insert_many takes them. */
typedef struct collecting {
    dp_buffer fingerprints, owners, expires;
    size_t fingerprint_bytes;
    bool full; /* no memory */
} collecting;

static bool collect(const doppel_match *entry, void *user) {
    collecting *c = user;
    c->full = !dp_buffer_add(&c->fingerprints, entry->fingerprint, c->fingerprint_bytes) ||
              !dp_buffer_add(&c->owners, &entry->owner, 8) || !dp_buffer_add(&c->expires, &entry->expires, 8);
    return !c->full;
}

doppel_status doppel_index_merge(doppel_index *index, const doppel_index *from, doppel_error *error) {
    if (index == from)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "an index cannot be merged into itself");
    if (index->bits != from->bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "an index of %d bits cannot take one of %d", index->bits, from->bits);
    collecting c = {.fingerprint_bytes = index->bits > 64 ? 16 : 8};
    const doppel_index *damaged = from;
    doppel_status status = doppel_index_each(from, collect, &c);
    uint64_t count = c.owners.size / 8;
    if (status == DOPPEL_OK && count > MOST) {
        status = dp_fail(error, DOPPEL_ERROR_USAGE, "%llu entries are too many to merge at once; the most is %llu",
                         (unsigned long long)count, (unsigned long long)MOST);
    } else if (status == DOPPEL_OK) {
        status = doppel_index_insert_many(index, (const void *)c.fingerprints.data, (const void *)c.owners.data,
                                          (const void *)c.expires.data, count);
        /* Bits beyond the width can only come from a file that was made to deceive. */
        damaged = status == DOPPEL_ERROR_USAGE ? from : index;
        status = status == DOPPEL_ERROR_USAGE ? DOPPEL_ERROR_STORE : status;
    }
    dp_buffer_free(&c.fingerprints);
    dp_buffer_free(&c.owners);
    dp_buffer_free(&c.expires);
    if (c.full)
        return dp_no_memory(error);
    return dp_index_explain(damaged, status, error);
}
