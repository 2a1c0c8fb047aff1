/* keys_lists.c - numbers that share a tag.
 *
 * They come ascending, and stay so when they pass 2^32, as they are compared by how far they are from the first. */
#include "engine/keys_table.h"

#include <stdlib.h>

static size_t bit_bytes(size_t room) {
    return (room + 31) / 32 * sizeof(uint32_t);
}

static size_t list_size(size_t room) {
    return sizeof(dp_keys_list) + room * sizeof(uint32_t) + bit_bytes(room);
}

static uint32_t *bits_of(dp_keys_list *list) {
    return list->number + list->room;
}

static bool is_gone(const dp_keys_list *list, size_t at) {
    return list->number[list->room + at / 32] >> at % 32 & 1;
}

/* A place for one more list; 0: no memory. */
static uint64_t take_place(dp_table *table) {
    size_t place = table->list_free;
    if (place) {
        table->list_free = table->lists[place - 1].next >> 1;
        return place;
    }
    if (!dp_reserve(&table->lists, &table->list_room, table->list_count + 1, sizeof *table->lists))
        return 0;
    return ++table->list_count;
}

static void give_place(dp_table *table, uint64_t place) {
    table->lists[place - 1].next = table->list_free << 1 | 1;
    table->list_free = place;
}

void dp_lists_free(dp_table *table) {
    for (size_t i = 0; i < table->list_count; i++)
        if (!(table->lists[i].next & 1))
            free(table->lists[i].list);
    free(table->lists);
}

/* ---- adding ---- */

/* Puts a number behind the last; there is room. */
static void append(dp_keys_list *list, uint32_t number) {
    uint32_t count = list->count++;
    list->number[count] = number;
    list->mixed |= count && number - list->number[0] < list->number[count - 1] - list->number[0];
}

bool dp_lists_make(dp_table *table, const uint64_t *entries, size_t count, uint64_t *which) {
    uint64_t place = count < UINT32_MAX ? take_place(table) : 0;
    if (!place)
        return false;
    dp_keys_list *list = calloc(1, list_size(count));
    if (!list) {
        give_place(table, place);
        return false;
    }
    list->room = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        append(list, dp_entry_number(entries[i]));
    table->list_bytes += list_size(count);
    table->lists[place - 1].list = list;
    *which = place;
    return true;
}

/* Makes room for so many; false: no memory. */
static bool enlarge(dp_table *table, dp_keys_list **list, size_t room) {
    size_t before = (*list)->room;
    dp_keys_list *other = room < UINT32_MAX ? realloc(*list, list_size(room)) : NULL;
    if (!other)
        return false;
    *list = other;
    uint32_t *old = bits_of(other);
    other->room = (uint32_t)room;
    memmove(bits_of(other), old, bit_bytes(before));
    memset((uint8_t *)bits_of(other) + bit_bytes(before), 0, bit_bytes(room) - bit_bytes(before));
    table->list_bytes += list_size(room) - list_size(before);
    return true;
}

bool dp_lists_add(dp_table *table, uint64_t which, uint32_t number) {
    dp_keys_list **list = &table->lists[which - 1].list;
    size_t count = (*list)->count;
    if (count == (*list)->room && !enlarge(table, list, count + count / 2 + 1))
        return false;
    append(*list, number);
    return true;
}

bool dp_lists_copy(const dp_table *table, uint64_t which, dp_numbers *numbers) {
    const dp_keys_list *list = table->lists[which - 1].list;
    if (!dp_reserve(&numbers->number, &numbers->room, numbers->count + list->count - list->gone,
                    sizeof *numbers->number))
        return false;
    for (size_t i = 0; i < list->count && !list->gone; i++)
        numbers->number[numbers->count + i] = list->number[i];
    numbers->count += list->gone ? 0 : list->count;
    for (size_t i = 0; i < list->count && list->gone; i++)
        if (!is_gone(list, i))
            numbers->number[numbers->count++] = list->number[i];
    return true;
}

/* ---- removing ---- */

/* Leaves those that are not gone; the room stays. */
static void sweep(dp_keys_list *list) {
    uint32_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (!is_gone(list, i))
            list->number[kept++] = list->number[i];
    list->count = kept;
    list->gone = 0;
    memset(bits_of(list), 0, bit_bytes(list->room));
}

/* Gives back the room that is not used. */
static void trim(dp_table *table, dp_keys_list **list) {
    size_t before = (*list)->room;
    (*list)->room = (*list)->count;
    memset(bits_of(*list), 0, bit_bytes((*list)->room));
    dp_keys_list *other = realloc(*list, list_size((*list)->room));
    if (other)
        *list = other; /* else the memory stays, and is no longer known of */
    table->list_bytes -= list_size(before) - list_size((*list)->room);
}

static int compare_numbers(const void *first, const void *second) {
    uint32_t a = *(const uint32_t *)first, b = *(const uint32_t *)second;
    return a < b ? -1 : a > b;
}

/* Brings them into order such that the last to come, which is the largest before it was cut, is the last again, and
 * what comes next need not be brought into order. */
static void arrange(dp_keys_list *list) {
    uint32_t first = list->number[list->count - 1] + 1;
    sweep(list);
    for (size_t i = 0; i < list->count; i++)
        list->number[i] -= first;
    qsort(list->number, list->count, sizeof *list->number, compare_numbers);
    for (size_t i = 0; i < list->count; i++)
        list->number[i] += first;
    list->mixed = false;
}

/* Where a number stands that is not gone; the count: nowhere. */
static size_t place_of(dp_keys_list *list, uint32_t number) {
    if (list->mixed)
        arrange(list);
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (list->number[middle] - list->number[0] < number - list->number[0])
            low = middle + 1;
        else
            high = middle;
    }
    while (low < list->count && list->number[low] == number && is_gone(list, low))
        low++;
    return low < list->count && list->number[low] == number ? low : list->count;
}

size_t dp_lists_remove(dp_table *table, uint64_t which, uint32_t number, uint32_t *last) {
    dp_keys_list **list = &table->lists[which - 1].list;
    size_t at = place_of(*list, number);
    if (at < (*list)->count) {
        bits_of(*list)[at / 32] |= (uint32_t)1 << at % 32;
        if (++(*list)->gone > (*list)->count / 2 || (*list)->count - (*list)->gone == 1) {
            sweep(*list);
            trim(table, list);
        }
    }
    size_t left = (*list)->count - (*list)->gone;
    if (left == 1) {
        *last = (*list)->number[0];
        table->list_bytes -= list_size((*list)->room);
        free(*list);
        give_place(table, which);
    }
    return left;
}
