/* keys_table.c - a segment of the keys: slots that are ascending by tag (keys_table.h). */
#include "engine/keys_table.h"

#include <stdlib.h>

/* A table is at most 8/9 full and grows by a twelfth to a twentieth, so that it is 0.86 full on the average: 8.1 bytes
 * a number. Fuller ones cost more to add to than they save: the next empty slot is 40 away at 8/9, and 130 at 15/16. */
static size_t most_used(size_t homes) {
    return homes - homes / 9;
}

/* 0 to 15, another for each table: all tables get about as many numbers, and shall not all grow at the same time. */
static size_t kind_of(const dp_table *table) {
    return (size_t)((uint64_t)(uintptr_t)table / 64 * 0x9E3779B97F4A7C15u >> 60);
}

/* Slots behind the last home. How far an entry stands from its home falls off like e^-0.23k at 8/9: 72 slots are
 * enough but once in 10^7 tables. Small tables have fewer, and grow sooner. */
static size_t slots_behind(size_t homes) {
    return homes < 544 ? homes / 8 + 4 : 72;
}

/* Bytes of so many slots, none of which is none. */
static size_t slot_bytes(size_t room) {
    return room ? room * DP_ENTRY_BYTES + 8 : 0;
}

/* As many homes, or some more when that fills the last page. */
static size_t fill_pages(size_t homes) {
    size_t behind = slots_behind(homes), bytes = slot_bytes(homes + behind);
    if (bytes < DP_SLOTS_MAPPED)
        return homes;
    bytes = (bytes + DP_SLOTS_PAGE - 1) / DP_SLOTS_PAGE * DP_SLOTS_PAGE;
    return (bytes - 8) / DP_ENTRY_BYTES - behind;
}

/* Those that are mapped are whole pages. */
static size_t memory_of(size_t room) {
    size_t bytes = slot_bytes(room);
    return bytes < DP_SLOTS_MAPPED ? bytes : (bytes + DP_SLOTS_PAGE - 1) / DP_SLOTS_PAGE * DP_SLOTS_PAGE;
}

uint64_t dp_table_bytes(const dp_table *table) {
    return memory_of(table->room) + table->list_room * sizeof *table->lists + table->list_bytes;
}

void dp_table_free(dp_table *table) {
    dp_lists_free(table);
    dp_slots_free(dp_table_slots(table), memory_of(table->room));
}

/* ---- the size ---- */

/* Slots that are being filled from the first to the last. */
typedef struct filling {
    uint8_t *slots;
    size_t homes, room, next;
} filling;

/* False: there is no slot left. */
static inline bool put(filling *to, uint64_t entry) {
    size_t home = (size_t)(dp_entry_tag(entry) * to->homes >> DP_TAG_BITS);
    to->next = to->next > home ? to->next : home;
    if (to->next == to->room)
        return false;
    dp_slot_set(to->slots, to->next++, entry);
    return true;
}

/* Entries of a table, or of an array. */
static bool fill_from_table(filling *to, const dp_table *from) {
    const uint8_t *slots = dp_table_slots(from);
    for (size_t i = 0; i < from->room; i++) {
        uint64_t entry = dp_slot_get(slots, i);
        if (entry && !put(to, entry))
            return false;
    }
    return true;
}

static bool fill_from_array(filling *to, const uint64_t *entries, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!put(to, entries[i]))
            return false;
    return true;
}

/* Makes slots of these entries, NULL: of those it has, with so many homes or, when they find no place, more. False: no
 * memory, and nothing has changed. */
static bool rebuild(dp_table *table, const uint64_t *entries, size_t count, size_t homes) {
    filling to;
    for (bool filled = false; !filled; homes += homes / 16 + 1) {
        homes = fill_pages(homes);
        to = (filling){.homes = homes, .room = homes + slots_behind(homes)};
        if (!(to.slots = dp_slots_get(memory_of(to.room))))
            return false;
        filled = entries ? fill_from_array(&to, entries, count) : fill_from_table(&to, table);
        if (!filled)
            dp_slots_free(to.slots, memory_of(to.room));
    }
    dp_slots_free(dp_table_slots(table), memory_of(table->room));
    atomic_store_explicit(&table->slots, to.slots, memory_order_relaxed);
    atomic_store_explicit(&table->homes, to.homes, memory_order_relaxed);
    table->room = to.room;
    return true;
}

static bool grow(dp_table *table) {
    size_t homes = atomic_load_explicit(&table->homes, memory_order_relaxed);
    return rebuild(table, NULL, 0, homes ? homes + homes / (12 + kind_of(table) / 2) + 2 : 4);
}

static void shrink(dp_table *table) {
    size_t homes = atomic_load_explicit(&table->homes, memory_order_relaxed);
    if (homes > 16 && table->used < homes / 2)
        (void)rebuild(table, NULL, 0, table->used + table->used / 8 + 4); /* without memory it stays as it is */
}

/* ---- one at a time ---- */

/* The first slot of a tag, or where it belongs. */
static size_t slot_of(const dp_table *table, uint64_t tag) {
    const uint8_t *slots = dp_table_slots(table);
    uint64_t least = dp_entry_make(tag, 0);
    size_t at = dp_table_home(table, tag);
    while (at < table->room && dp_slot_get(slots, at) - 1 < least - 1) /* not empty, and a smaller tag */
        at++;
    return at;
}

static bool holds(const dp_table *table, size_t at, uint64_t tag) {
    return at < table->room && dp_entry_tag(dp_slot_get(dp_table_slots(table), at)) == tag;
}

/* How many slots from `at` on hold a tag. */
static size_t same_from(const dp_table *table, size_t at, uint64_t tag) {
    size_t same = 0;
    while (holds(table, at + same, tag))
        same++;
    return same;
}

/* The first empty slot from `at` on; the room: there is none. */
static size_t empty_from(const dp_table *table, size_t at) {
    const uint8_t *slots = dp_table_slots(table);
    while (at < table->room && dp_slot_get(slots, at))
        at++;
    return at;
}

static void move(dp_table *table, size_t to, size_t from, size_t count) {
    uint8_t *slots = dp_table_slots(table);
    memmove(slots + to * DP_ENTRY_BYTES, slots + from * DP_ENTRY_BYTES, count * DP_ENTRY_BYTES);
}

/* Empties a slot, and moves those behind it back that are not at home. */
static void close_gap(dp_table *table, size_t at) {
    uint8_t *slots = dp_table_slots(table);
    size_t end = at + 1;
    for (uint64_t entry; end < table->room && (entry = dp_slot_get(slots, end)); end++)
        if (dp_table_home(table, dp_entry_tag(entry)) == end)
            break;
    move(table, at, at + 1, end - at - 1);
    dp_slot_set(slots, end - 1, 0);
    table->used--;
}

/* One more than can stand side by side: all of them become a list. */
static bool make_list(dp_table *table, size_t at, uint64_t tag, uint64_t number) {
    uint8_t *slots = dp_table_slots(table);
    uint64_t entries[DP_SAME_TAG + 1] = {[DP_SAME_TAG] = number}, which;
    for (size_t i = 0; i < DP_SAME_TAG; i++)
        entries[i] = dp_slot_get(slots, at + i);
    if (!dp_lists_make(table, entries, DP_SAME_TAG + 1, &which))
        return false;
    dp_slot_set(slots, at, dp_entry_make(tag, which) | DP_ENTRY_LIST);
    for (size_t i = 1; i < DP_SAME_TAG; i++)
        close_gap(table, at + 1);
    return true;
}

/* A slot more, behind those of the same tag. */
static bool insert(dp_table *table, uint64_t tag, uint64_t number) {
    size_t homes = atomic_load_explicit(&table->homes, memory_order_relaxed), at, empty;
    if (table->used >= most_used(homes) && !grow(table))
        return false;
    while (at = slot_of(table, tag), (empty = empty_from(table, at)) == table->room)
        if (!grow(table))
            return false;
    at += same_from(table, at, tag);
    move(table, at + 1, at, empty - at);
    dp_slot_set(dp_table_slots(table), at, dp_entry_make(tag, number));
    table->used++;
    return true;
}

bool dp_table_add(dp_table *table, uint64_t tag, uint64_t number) {
    size_t at = slot_of(table, tag), same = same_from(table, at, tag);
    uint64_t entry = same ? dp_slot_get(dp_table_slots(table), at) : 0;
    if (entry & DP_ENTRY_LIST)
        return dp_lists_add(table, dp_entry_number(entry), (uint32_t)number);
    return same < DP_SAME_TAG ? insert(table, tag, number) : make_list(table, at, tag, number);
}

void dp_table_remove(dp_table *table, uint64_t tag, uint64_t number) {
    uint8_t *slots = dp_table_slots(table);
    for (size_t at = slot_of(table, tag); holds(table, at, tag); at++) {
        uint64_t entry = dp_slot_get(slots, at);
        uint32_t last;
        if (entry & DP_ENTRY_LIST) {
            if (dp_lists_remove(table, dp_entry_number(entry), (uint32_t)number, &last) == 1)
                dp_slot_set(slots, at, dp_entry_make(tag, last));
            return;
        }
        if (dp_entry_number(entry) == (uint32_t)number) {
            close_gap(table, at);
            shrink(table);
            return;
        }
    }
}

bool dp_table_find(const dp_table *table, uint64_t tag, dp_numbers *numbers) {
    for (size_t at = slot_of(table, tag); holds(table, at, tag); at++) {
        uint64_t entry = dp_slot_get(dp_table_slots(table), at);
        if (entry & DP_ENTRY_LIST)
            return dp_lists_copy(table, dp_entry_number(entry), numbers);
        if (!dp_reserve(&numbers->number, &numbers->room, numbers->count + 1, sizeof *numbers->number))
            return false;
        numbers->number[numbers->count++] = dp_entry_number(entry);
    }
    return true;
}

/* ---- many at once ---- */

/* Leaves as many entries of each tag as can stand side by side, or that of a list; false: no memory. */
static bool pack(dp_table *table, uint64_t *entries, size_t *count) {
    size_t kept = 0;
    for (size_t from = 0, to; from < *count; from = to) {
        uint64_t tag = dp_entry_tag(entries[from]), which;
        for (to = from + 1; to < *count && dp_entry_tag(entries[to]) == tag;)
            to++;
        if (to - from > DP_SAME_TAG) {
            if (!dp_lists_make(table, entries + from, to - from, &which))
                return false;
            entries[kept++] = dp_entry_make(tag, which) | DP_ENTRY_LIST;
            continue;
        }
        for (size_t i = from; i < to; i++)
            entries[kept++] = entries[i];
    }
    *count = kept;
    return true;
}

/* Whether more of one tag than can stand side by side are among sorted entries. */
static bool is_crowded(const uint64_t *entries, size_t count) {
    bool crowded = false;
    for (size_t i = DP_SAME_TAG; i < count; i++)
        crowded |= dp_entry_tag(entries[i]) == dp_entry_tag(entries[i - DP_SAME_TAG]);
    return crowded;
}

bool dp_table_build(dp_table *table, uint64_t *entries, size_t count) {
    if (!table->used) {
        if ((is_crowded(entries, count) && !pack(table, entries, &count)) ||
            !rebuild(table, entries, count, count + count / 8 + count / 256 * kind_of(table) + 4))
            return false;
        table->used = count;
        return true;
    }
    for (size_t i = 0; i < count; i++)
        if (!dp_table_add(table, dp_entry_tag(entries[i]), dp_entry_number(entries[i])))
            return false;
    return true;
}
