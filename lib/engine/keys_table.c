/* keys_table.c - a segment of the keys: slots that are ascending by tag (keys_table.h). */
#include "engine/keys_table.h"

#include <stdlib.h>

/* A table is at most 7/8 full and grows by a quarter, so that it is 0.7 full at least. */
static size_t most_used(size_t homes) {
    return homes - homes / 8;
}

/* Slots behind the last home. How far an entry stands from its home falls off like e^-0.27k at 7/8: 64 slots are
 * enough but once in 10^7 tables. Small tables have fewer, and grow sooner. */
static size_t room_for(size_t homes) {
    return homes + (homes < 480 ? homes / 8 + 4 : 64);
}

void dp_table_free(dp_table *table) {
    dp_lists_free(table);
    dp_slots_free(dp_table_slots(table), table->room);
}

/* ---- the size ---- */

/* Puts entries, zeros between them, where they stand with so many homes; false: some found no slot. */
static bool spread(const uint64_t *entries, size_t count, uint64_t *to, size_t homes) {
    size_t next = 0, room = room_for(homes);
    for (size_t i = 0; i < count; i++) {
        if (!entries[i])
            continue;
        size_t home = (size_t)(dp_entry_tag(entries[i]) * homes >> DP_TAG_BITS);
        next = next > home ? next : home;
        if (next == room)
            return false;
        to[next++] = entries[i];
    }
    return true;
}

/* Makes slots of these entries, with so many homes or, when they find no place, more. False: no memory, and nothing has
 * changed. */
static bool rebuild(dp_table *table, const uint64_t *entries, size_t count, size_t homes) {
    uint64_t *slots;
    while ((slots = dp_slots_get(room_for(homes))) && !spread(entries, count, slots, homes)) {
        dp_slots_free(slots, room_for(homes));
        homes += homes / 4 + 1;
    }
    if (!slots)
        return false;
    dp_slots_free(dp_table_slots(table), table->room);
    atomic_store_explicit(&table->slots, slots, memory_order_relaxed);
    atomic_store_explicit(&table->homes, homes, memory_order_relaxed);
    table->room = room_for(homes);
    return true;
}

static bool resize(dp_table *table, size_t homes) {
    return rebuild(table, dp_table_slots(table), table->room, homes);
}

static bool grow(dp_table *table) {
    size_t homes = atomic_load_explicit(&table->homes, memory_order_relaxed);
    return resize(table, homes ? homes + homes / 4 + 2 : 4);
}

/* ---- one at a time ---- */

/* The slot of a tag, or where it belongs. */
static size_t slot_of(const dp_table *table, uint64_t tag) {
    const uint64_t *slots = dp_table_slots(table);
    size_t at = dp_table_home(table, tag);
    while (at < table->room && slots[at] && dp_entry_tag(slots[at]) < tag)
        at++;
    return at;
}

static bool holds(const dp_table *table, size_t at, uint64_t tag) {
    const uint64_t *slots = dp_table_slots(table);
    return at < table->room && slots[at] && dp_entry_tag(slots[at]) == tag;
}

/* Another number for an entry that is there. */
static bool add_to(dp_table *table, uint64_t *entry, uint64_t number) {
    uint64_t which = dp_entry_number(*entry), both[2] = {which, number};
    if (*entry & DP_ENTRY_LIST)
        return dp_lists_add(table, which, number);
    if (!dp_lists_make(table, both, 2, &which))
        return false;
    *entry = dp_entry_make(dp_entry_tag(*entry), which) | DP_ENTRY_LIST;
    return true;
}

/* The first empty slot from `at` on; the room: there is none. */
static size_t empty_from(const dp_table *table, size_t at) {
    const uint64_t *slots = dp_table_slots(table);
    while (at < table->room && slots[at])
        at++;
    return at;
}

bool dp_table_add(dp_table *table, uint64_t tag, uint64_t number) {
    size_t at = slot_of(table, tag);
    if (holds(table, at, tag))
        return add_to(table, dp_table_slots(table) + at, number);
    size_t homes = atomic_load_explicit(&table->homes, memory_order_relaxed), empty;
    if (table->used >= most_used(homes) && !grow(table))
        return false;
    while ((empty = empty_from(table, at = slot_of(table, tag))) == table->room)
        if (!grow(table))
            return false;
    uint64_t *slots = dp_table_slots(table);
    memmove(slots + at + 1, slots + at, (empty - at) * sizeof *slots);
    slots[at] = dp_entry_make(tag, number);
    table->used++;
    return true;
}

/* Empties a slot, and moves those behind it back that are not at home. */
static void close_gap(dp_table *table, size_t at) {
    uint64_t *slots = dp_table_slots(table);
    size_t end = at + 1;
    while (end < table->room && slots[end] && dp_table_home(table, dp_entry_tag(slots[end])) < end)
        end++;
    memmove(slots + at, slots + at + 1, (end - at - 1) * sizeof *slots);
    slots[end - 1] = 0;
    table->used--;
    size_t homes = atomic_load_explicit(&table->homes, memory_order_relaxed);
    if (homes > 16 && table->used < homes / 2)
        (void)resize(table, table->used + table->used / 4 + 4); /* without memory it stays as it is */
}

void dp_table_remove(dp_table *table, uint64_t tag, uint64_t number) {
    size_t at = slot_of(table, tag);
    if (!holds(table, at, tag))
        return;
    uint64_t *entry = dp_table_slots(table) + at, last;
    if (!(*entry & DP_ENTRY_LIST)) {
        if (dp_entry_number(*entry) == number)
            close_gap(table, at);
    } else if (dp_lists_remove(table, dp_entry_number(*entry), number, &last) == 1) {
        *entry = dp_entry_make(tag, last);
    }
}

bool dp_table_find(const dp_table *table, uint64_t tag, dp_numbers *numbers) {
    size_t at = slot_of(table, tag);
    if (!holds(table, at, tag))
        return true;
    uint64_t entry = dp_table_slots(table)[at];
    if (entry & DP_ENTRY_LIST)
        return dp_lists_copy(table, dp_entry_number(entry), numbers);
    if (!dp_reserve(&numbers->number, &numbers->room, numbers->count + 1, sizeof *numbers->number))
        return false;
    numbers->number[numbers->count++] = dp_entry_number(entry);
    return true;
}

/* ---- many at once ---- */

/* A list of the numbers of some entries of one tag, which are lost; gives its entry, 0: no memory. */
static uint64_t pack_list(dp_table *table, uint64_t *entries, size_t count) {
    uint64_t tag = dp_entry_tag(entries[0]), which;
    for (size_t i = 0; i < count; i++)
        entries[i] = dp_entry_number(entries[i]);
    return dp_lists_make(table, entries, count, &which) ? dp_entry_make(tag, which) | DP_ENTRY_LIST : 0;
}

/* Leaves one entry of each tag; false: no memory. */
static bool pack(dp_table *table, uint64_t *entries, size_t *count) {
    size_t kept = 0;
    for (size_t from = 0, to; from < *count; from = to) {
        for (to = from + 1; to < *count && dp_entry_tag(entries[to]) == dp_entry_tag(entries[from]);)
            to++;
        uint64_t entry = to - from > 1 ? pack_list(table, entries + from, to - from) : entries[from];
        if (!entry)
            return false;
        entries[kept++] = entry;
    }
    *count = kept;
    return true;
}

bool dp_table_build(dp_table *table, uint64_t *entries, size_t count) {
    if (!table->used) {
        if (!pack(table, entries, &count) || !rebuild(table, entries, count, count + count / 5 + 4))
            return false;
        table->used = count;
        return true;
    }
    for (size_t i = 0; i < count; i++)
        if (!dp_table_add(table, dp_entry_tag(entries[i]), dp_entry_number(entries[i])))
            return false;
    return true;
}
