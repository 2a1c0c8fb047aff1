/* head.c - the newest entries of an index, before they go into a run. */
#include "index/versions.h"

#include <stdlib.h>

size_t dp_head_bytes(int bits) {
    size_t words = bits > 64 ? 2 : 1;
    return (sizeof(dp_head) + DP_HEAD_ROOM * words * 8 + 63) / 64 * 64;
}

dp_head *dp_head_create(int bits) {
    dp_head *head = aligned_alloc(64, dp_head_bytes(bits));
    if (!head)
        return NULL;
    atomic_init(&head->count, 0);
    head->bits = bits;
    head->versions = 0;
    return head;
}

static size_t hash(dp_bits value, uint64_t owner) {
    uint64_t x = (uint64_t)value ^ (uint64_t)(value >> 64) ^ owner * 0x9E3779B97F4A7C15;
    x = (x ^ x >> 32) * 0xBF58476D1CE4E5B9;
    return (size_t)(x ^ x >> 29) % DP_PLACES;
}

/* Where an entry stands among the places, or the free place where it would. */
static size_t find_place(const dp_head *head, const dp_places *places, dp_bits value, uint64_t owner) {
    size_t at = hash(value, owner);
    for (; places->place[at]; at = (at + 1) % DP_PLACES) {
        uint64_t i = places->place[at] - 1U;
        if (head->owners[i] == owner && dp_head_value(head, i) == value)
            break;
    }
    return at;
}

uint64_t dp_head_search(const dp_head *head, const dp_places *places, dp_bits value, uint64_t owner) {
    uint16_t number = places->place[find_place(head, places, value, owner)];
    return number ? number - 1U : DP_HEAD_ROOM;
}

void dp_head_add(dp_head *head, dp_places *places, dp_bits value, uint64_t owner, uint64_t expires) {
    uint64_t i = atomic_load_explicit(&head->count, memory_order_relaxed);
    places->place[find_place(head, places, value, owner)] = (uint16_t)(i + 1);
    uint64_t words[2];
    dp_bits_store(value, words);
    memcpy(head->values + (head->bits > 64 ? 2 * i : i), words, head->bits > 64 ? 16 : 8);
    head->filter[i] = (uint32_t)value;
    head->owners[i] = owner;
    atomic_init(&head->expires[i], expires);
    atomic_init(&head->dead[i], 0);
    atomic_store_explicit(&head->count, i + 1, memory_order_release);
}

/* What is alive, as items with times; whether any of them expires. */
static bool list_items(const dp_head *head, dp_items *items) {
    size_t words = items->bits > 64 ? 2 : 1;
    uint64_t count = atomic_load_explicit(&head->count, memory_order_acquire), *item = items->item, times = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (atomic_load_explicit(&head->dead[i], memory_order_acquire))
            continue;
        memcpy(item, head->values + i * words, words * 8);
        item += words;
        *item++ = head->owners[i];
        times |= *item++ = atomic_load_explicit(&head->expires[i], memory_order_relaxed);
        items->count++;
    }
    return times;
}

static void drop_times(dp_items *items) {
    size_t words = dp_item_words(items);
    for (uint64_t i = 1; i < items->count; i++)
        memmove(items->item + i * (words - 1), items->item + i * words, (words - 1) * 8);
    items->timed = false;
}

doppel_status dp_head_run(const dp_head *head, dp_run **run) {
    dp_items items = {.bits = head->bits, .timed = true};
    size_t room = DP_HEAD_ROOM * dp_item_words(&items);
    *run = NULL;
    if (!(items.item = malloc(2 * room * sizeof *items.item)))
        return DOPPEL_ERROR_MEMORY;
    if (!list_items(head, &items))
        drop_times(&items);
    dp_items_sort(&items, items.item + room);
    doppel_status status = items.count ? dp_run_from_items(&items, run) : DOPPEL_OK;
    free(items.item);
    return status;
}
