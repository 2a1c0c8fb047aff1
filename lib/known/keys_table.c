/* keys_table.c - a segment of the keys: slots that are ascending by tag (keys_table.h), their memory, and lists of
 * numbers that share a tag. */
#include "known/keys_table.h"

#include <stdlib.h>
#include <sys/mman.h>

/* ---- memory of slots ----
 *
 * Segments grow at about the same time, each by a little: on a heap they would leave holes behind that are too small
 * for the next. What is large is mapped, and goes back as a whole. */

void *dp_slots_get(size_t bytes) {
    if (bytes < DP_SLOTS_MAPPED)
        return calloc(1, bytes);
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

void dp_slots_free(void *slots, size_t bytes) {
    if (bytes < DP_SLOTS_MAPPED)
        free(slots);
    else
        munmap(slots, bytes);
}

/* ---- numbers that share a tag ----
 *
 * They come ascending, and stay so when they pass 2^32, as they are compared by how far they are from the first. */

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

static void lists_free(dp_table *table) {
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

static bool lists_make(dp_table *table, const uint64_t *entries, size_t count, uint64_t *which) {
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

static bool lists_add(dp_table *table, uint64_t which, uint32_t number) {
    dp_keys_list **list = &table->lists[which - 1].list;
    size_t count = (*list)->count;
    if (count == (*list)->room && !enlarge(table, list, count + count / 2 + 1))
        return false;
    append(*list, number);
    return true;
}

static bool lists_copy(const dp_table *table, uint64_t which, dp_numbers *numbers) {
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

static size_t lists_remove(dp_table *table, uint64_t which, uint32_t number, uint32_t *last) {
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

/* ---- slots ---- */

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
    lists_free(table);
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
    if (!lists_make(table, entries, DP_SAME_TAG + 1, &which))
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
        return lists_add(table, dp_entry_number(entry), (uint32_t)number);
    return same < DP_SAME_TAG ? insert(table, tag, number) : make_list(table, at, tag, number);
}

void dp_table_remove(dp_table *table, uint64_t tag, uint64_t number) {
    uint8_t *slots = dp_table_slots(table);
    for (size_t at = slot_of(table, tag); holds(table, at, tag); at++) {
        uint64_t entry = dp_slot_get(slots, at);
        uint32_t last;
        if (entry & DP_ENTRY_LIST) {
            if (lists_remove(table, dp_entry_number(entry), (uint32_t)number, &last) == 1)
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
            return lists_copy(table, dp_entry_number(entry), numbers);
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
            if (!lists_make(table, entries + from, to - from, &which))
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
