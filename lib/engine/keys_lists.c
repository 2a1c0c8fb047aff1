/* keys_lists.c - numbers that share a tag. */
#include "engine/keys_table.h"

#include <stdlib.h>

static size_t list_size(size_t room) {
    return sizeof(dp_keys_list) + room * sizeof(uint64_t);
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

bool dp_lists_make(dp_table *table, const uint64_t *numbers, size_t count, uint64_t *which) {
    uint64_t place = count < UINT32_MAX ? take_place(table) : 0;
    if (!place)
        return false;
    dp_keys_list *list = malloc(list_size(count));
    if (!list) {
        give_place(table, place);
        return false;
    }
    *list = (dp_keys_list){.count = (uint32_t)count, .room = (uint32_t)count};
    memcpy(list->number, numbers, count * sizeof *numbers);
    for (size_t i = 1; i < count; i++)
        list->mixed |= numbers[i] < numbers[i - 1];
    table->list_bytes += list_size(count);
    table->lists[place - 1].list = list;
    *which = place;
    return true;
}

/* Makes room for so many; false: no memory. */
static bool resize(dp_table *table, dp_keys_list **list, size_t room) {
    dp_keys_list *other = room < UINT32_MAX ? realloc(*list, list_size(room)) : NULL;
    if (!other)
        return false;
    table->list_bytes += (room - other->room) * sizeof *other->number;
    other->room = (uint32_t)room;
    *list = other;
    return true;
}

bool dp_lists_add(dp_table *table, uint64_t which, uint64_t number) {
    dp_keys_list **list = &table->lists[which - 1].list;
    size_t count = (*list)->count;
    if (count == (*list)->room && !resize(table, list, count + count / 2 + 1))
        return false;
    (*list)->mixed |= ((*list)->number[count - 1] & ~DP_NUMBER_GONE) > number;
    (*list)->number[(*list)->count++] = number;
    return true;
}

bool dp_lists_copy(const dp_table *table, uint64_t which, dp_numbers *numbers) {
    const dp_keys_list *list = table->lists[which - 1].list;
    if (!dp_reserve(&numbers->number, &numbers->room, numbers->count + list->count - list->gone,
                    sizeof *numbers->number))
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (!(list->number[i] & DP_NUMBER_GONE))
            numbers->number[numbers->count++] = list->number[i];
    return true;
}

/* ---- removing ---- */

/* By number; those that are gone, by the number they were. */
static int compare_numbers(const void *first, const void *second) {
    uint64_t a = *(const uint64_t *)first & ~DP_NUMBER_GONE, b = *(const uint64_t *)second & ~DP_NUMBER_GONE;
    return a < b ? -1 : a > b;
}

/* Where a number stands that is not gone; the count: nowhere. */
static size_t place_of(dp_keys_list *list, uint64_t number) {
    if (list->mixed)
        qsort(list->number, list->count, sizeof *list->number, compare_numbers);
    list->mixed = false;
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((list->number[middle] & ~DP_NUMBER_GONE) < number)
            low = middle + 1;
        else
            high = middle;
    }
    while (low < list->count && list->number[low] == (number | DP_NUMBER_GONE))
        low++;
    return low < list->count && list->number[low] == number ? low : list->count;
}

static void sweep(dp_table *table, dp_keys_list **list) {
    size_t kept = 0;
    for (size_t i = 0; i < (*list)->count; i++)
        if (!((*list)->number[i] & DP_NUMBER_GONE))
            (*list)->number[kept++] = (*list)->number[i];
    (*list)->count = (uint32_t)kept;
    (*list)->gone = 0;
    (void)resize(table, list, kept); /* without the memory to make it smaller it stays as it is */
}

size_t dp_lists_remove(dp_table *table, uint64_t which, uint64_t number, uint64_t *last) {
    dp_keys_list **list = &table->lists[which - 1].list;
    size_t at = place_of(*list, number);
    if (at < (*list)->count) {
        (*list)->number[at] |= DP_NUMBER_GONE;
        if (++(*list)->gone > (*list)->count / 2 || (*list)->count - (*list)->gone == 1)
            sweep(table, list);
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
