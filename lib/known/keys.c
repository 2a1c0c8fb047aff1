/* keys.c - numbers by key: segments, each a table with its own lock.
 *
 * A table leads from tags to numbers. Its slots are ascending by tag, with empty ones between them: an entry is at its
 * home, tag * homes / 2^23, or as close after it as earlier entries allow. So a search ends at the first larger tag,
 * after 5 slots on average in a table that is 8/9 full; growing and shrinking need only the entries; and removing one
 * moves those after it back. Numbers that share a tag are adjacent, up to SAME_TAG of them; more form a list, which one
 * entry names. After the last home there are some extra slots; when they are used up, the table grows.
 *
 * Many keys at once are staged by part, in pieces of memory that grow with the total, so that the unused end of the
 * last is a small share. Then the tables are built, part by part: the entries of a part are distributed to its
 * segments, those of a segment are sorted by their tags, and the table is filled from its first slot to its last.
 * During this a segment's entries stay in the cache. */
#include "known/keys.h"

#include <stdlib.h>
#include <sys/mman.h>

/* ---- entries, lists and tables ---- */

/* An entry, 7 bytes: 23 bits of tag, whether it is a list, and 32 bits: the number, or which list, from 1 on. An empty
 * slot is 0, and no entry is, as no tag is 0. */
enum { TAG_BITS = 23, TAG_SHIFT = 33, ENTRY_BITS = 56, ENTRY_BYTES = 7, SAME_TAG = 4 };
#define ENTRY_LIST ((uint64_t)1 << 32)

static inline uint64_t entry_make(uint64_t tag, uint64_t number) {
    return tag << TAG_SHIFT | (uint32_t)number;
}
static inline uint64_t entry_tag(uint64_t entry) {
    return entry >> TAG_SHIFT;
}
static inline uint32_t entry_number(uint64_t entry) {
    return (uint32_t)entry;
}

/* Reads a byte more than the slot: there are 8 bytes after the last. */
static inline uint64_t slot_get(const uint8_t *slots, size_t at) {
    return dp_load64(slots + at * ENTRY_BYTES) & (((uint64_t)1 << ENTRY_BITS) - 1);
}
static inline void slot_set(uint8_t *slots, size_t at, uint64_t entry) {
    for (int i = 0; i < ENTRY_BYTES; i++)
        slots[at * ENTRY_BYTES + (size_t)i] = (uint8_t)(entry >> (8 * i));
}

/* Numbers of one tag, in order of adding. A removed one stays, marked, until half of them are: so removing from a list
 * of millions is cheap. */
typedef struct number_list {
    uint32_t count, gone, room;
    bool mixed;        /* they are not ascending from the first on, modulo 2^32 */
    uint32_t number[]; /* followed by a bit for each: whether it is removed */
} number_list;

/* A place for a list: its own, or, with the lowest bit, twice the number of the next free place, from 1 on. */
typedef union list_place {
    number_list *list;
    uintptr_t next;
} list_place;

typedef struct key_table {
    _Atomic(uint8_t *) slots; /* atomic for threads that only prefetch */
    _Atomic uint64_t homes;
    size_t room, used; /* in slots */
    list_place *lists;
    size_t list_count, list_room, list_free;
    uint64_t list_bytes;
} key_table;

static inline uint8_t *table_slots(const key_table *table) {
    return atomic_load_explicit(&table->slots, memory_order_relaxed);
}

static inline size_t table_home(const key_table *table, uint64_t tag) {
    return (size_t)(tag * atomic_load_explicit(&table->homes, memory_order_relaxed) >> TAG_BITS);
}

/* ---- memory of slots ----
 *
 * Segments grow at about the same time, each by a little: on a heap they would leave holes too small for the next.
 * Large ones are mapped, and returned as a whole. */

/* From this many bytes on, sizes should be multiples of SLOTS_PAGE. */
enum { SLOTS_MAPPED = 8 << 10, SLOTS_PAGE = 4 << 10 };

/* Zeroed memory; NULL: out of memory. */
static void *slots_get(size_t bytes) {
    if (bytes < SLOTS_MAPPED)
        return calloc(1, bytes);
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static void slots_free(void *slots, size_t bytes) {
    if (bytes < SLOTS_MAPPED)
        free(slots);
    else
        munmap(slots, bytes);
}

/* ---- numbers that share a tag ----
 *
 * They are added in ascending order, and remain so beyond 2^32, as they are compared by their distance from the
 * first. */

static size_t bit_bytes(size_t room) {
    return (room + 31) / 32 * sizeof(uint32_t);
}

static size_t list_size(size_t room) {
    return sizeof(number_list) + room * sizeof(uint32_t) + bit_bytes(room);
}

static uint32_t *bits_of(number_list *list) {
    return list->number + list->room;
}

static bool is_gone(const number_list *list, size_t at) {
    return list->number[list->room + at / 32] >> at % 32 & 1;
}

/* A place for one more list; 0: no memory. */
static uint64_t take_place(key_table *table) {
    size_t place = table->list_free;
    if (place) {
        table->list_free = table->lists[place - 1].next >> 1;
        return place;
    }
    if (!dp_reserve(&table->lists, &table->list_room, table->list_count + 1, sizeof *table->lists))
        return 0;
    return ++table->list_count;
}

static void give_place(key_table *table, uint64_t place) {
    table->lists[place - 1].next = table->list_free << 1 | 1;
    table->list_free = place;
}

static void lists_free(key_table *table) {
    for (size_t i = 0; i < table->list_count; i++)
        if (!(table->lists[i].next & 1))
            free(table->lists[i].list);
    free(table->lists);
}

/* ---- adding ---- */

/* Appends a number; there is room. */
static void append(number_list *list, uint32_t number) {
    uint32_t count = list->count++;
    list->number[count] = number;
    list->mixed |= count && number - list->number[0] < list->number[count - 1] - list->number[0];
}

static bool lists_make(key_table *table, const uint64_t *entries, size_t count, uint64_t *which) {
    uint64_t place = count < UINT32_MAX ? take_place(table) : 0;
    if (!place)
        return false;
    number_list *list = calloc(1, list_size(count));
    if (!list) {
        give_place(table, place);
        return false;
    }
    list->room = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        append(list, entry_number(entries[i]));
    table->list_bytes += list_size(count);
    table->lists[place - 1].list = list;
    *which = place;
    return true;
}

/* Makes room for `room` numbers; false: out of memory. */
static bool enlarge(key_table *table, number_list **list, size_t room) {
    size_t before = (*list)->room;
    number_list *other = room < UINT32_MAX ? realloc(*list, list_size(room)) : NULL;
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

static bool lists_add(key_table *table, uint64_t which, uint32_t number) {
    number_list **list = &table->lists[which - 1].list;
    size_t count = (*list)->count;
    if (count == (*list)->room && !enlarge(table, list, count + count / 2 + 1))
        return false;
    append(*list, number);
    return true;
}

static bool lists_copy(const key_table *table, uint64_t which, dp_numbers *numbers) {
    const number_list *list = table->lists[which - 1].list;
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

/* Drops the removed ones; keeps the room. */
static void sweep(number_list *list) {
    uint32_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (!is_gone(list, i))
            list->number[kept++] = list->number[i];
    list->count = kept;
    list->gone = 0;
    memset(bits_of(list), 0, bit_bytes(list->room));
}

/* Frees unused room. */
static void trim(key_table *table, number_list **list) {
    size_t before = (*list)->room;
    (*list)->room = (*list)->count;
    memset(bits_of(*list), 0, bit_bytes((*list)->room));
    number_list *other = realloc(*list, list_size((*list)->room));
    if (other)
        *list = other; /* else the memory is kept, without accounting for it */
    table->list_bytes -= list_size(before) - list_size((*list)->room);
}

static int compare_numbers(const void *first, const void *second) {
    uint32_t a = *(const uint32_t *)first, b = *(const uint32_t *)second;
    return a < b ? -1 : a > b;
}

/* Sorts them such that the last added, which was the largest before truncation, is the last again, so that the next one
 * need not be sorted. */
static void arrange(number_list *list) {
    uint32_t first = list->number[list->count - 1] + 1;
    sweep(list);
    for (size_t i = 0; i < list->count; i++)
        list->number[i] -= first;
    qsort(list->number, list->count, sizeof *list->number, compare_numbers);
    for (size_t i = 0; i < list->count; i++)
        list->number[i] += first;
    list->mixed = false;
}

/* The position of a number that is not removed; the count: none. */
static size_t place_of(number_list *list, uint32_t number) {
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

static size_t lists_remove(key_table *table, uint64_t which, uint32_t number, uint32_t *last) {
    number_list **list = &table->lists[which - 1].list;
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

/* A table is at most 8/9 full and grows by a twelfth to a twentieth, so that it is 0.86 full on average: 8.1 bytes per
 * number. Fuller ones cost more time than they save memory: the next empty slot is 40 away at 8/9, and 130 at 15/16. */
static size_t most_used(size_t homes) {
    return homes - homes / 9;
}

/* 0 to 15, different for each table: all tables get about as many numbers, and must not all grow at the same time. */
static size_t kind_of(const key_table *table) {
    return (size_t)((uint64_t)(uintptr_t)table / 64 * 0x9E3779B97F4A7C15u >> 60);
}

/* Slots after the last home. The probability that an entry is k slots from its home falls like e^-0.23k at 8/9: 72
 * slots are enough except once in 10^7 tables. Small tables have fewer, and grow sooner. */
static size_t slots_behind(size_t homes) {
    return homes < 544 ? homes / 8 + 4 : 72;
}

/* Bytes of `room` slots; 0 of none. */
static size_t slot_bytes(size_t room) {
    return room ? room * ENTRY_BYTES + 8 : 0;
}

/* At least `homes`, rounded up to fill the last page. */
static size_t fill_pages(size_t homes) {
    size_t behind = slots_behind(homes), bytes = slot_bytes(homes + behind);
    if (bytes < SLOTS_MAPPED)
        return homes;
    bytes = (bytes + SLOTS_PAGE - 1) / SLOTS_PAGE * SLOTS_PAGE;
    return (bytes - 8) / ENTRY_BYTES - behind;
}

/* Those that are mapped are whole pages. */
static size_t memory_of(size_t room) {
    size_t bytes = slot_bytes(room);
    return bytes < SLOTS_MAPPED ? bytes : (bytes + SLOTS_PAGE - 1) / SLOTS_PAGE * SLOTS_PAGE;
}

static uint64_t table_bytes(const key_table *table) {
    return memory_of(table->room) + table->list_room * sizeof *table->lists + table->list_bytes;
}

static void table_free(key_table *table) {
    lists_free(table);
    slots_free(table_slots(table), memory_of(table->room));
}

/* ---- the size ---- */

/* Slots that are being filled from the first to the last. */
typedef struct slot_filling {
    uint8_t *slots;
    size_t homes, room, next;
} slot_filling;

/* False: there is no slot left. */
static inline bool put(slot_filling *to, uint64_t entry) {
    size_t home = (size_t)(entry_tag(entry) * to->homes >> TAG_BITS);
    to->next = to->next > home ? to->next : home;
    if (to->next == to->room)
        return false;
    slot_set(to->slots, to->next++, entry);
    return true;
}

/* Entries of a table, or of an array. */
static bool fill_from_table(slot_filling *to, const key_table *from) {
    const uint8_t *slots = table_slots(from);
    for (size_t i = 0; i < from->room; i++) {
        uint64_t entry = slot_get(slots, i);
        if (entry && !put(to, entry))
            return false;
    }
    return true;
}

static bool fill_from_array(slot_filling *to, const uint64_t *entries, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!put(to, entries[i]))
            return false;
    return true;
}

/* Rebuilds the slots from these entries, NULL: from its own, with `homes` homes or, if they do not fit, more. False:
 * out of memory, with nothing changed. */
static bool rebuild(key_table *table, const uint64_t *entries, size_t count, size_t homes) {
    slot_filling to;
    for (bool filled = false; !filled; homes += homes / 16 + 1) {
        homes = fill_pages(homes);
        to = (slot_filling){.homes = homes, .room = homes + slots_behind(homes)};
        if (!(to.slots = slots_get(memory_of(to.room))))
            return false;
        filled = entries ? fill_from_array(&to, entries, count) : fill_from_table(&to, table);
        if (!filled)
            slots_free(to.slots, memory_of(to.room));
    }
    slots_free(table_slots(table), memory_of(table->room));
    atomic_store_explicit(&table->slots, to.slots, memory_order_relaxed);
    atomic_store_explicit(&table->homes, to.homes, memory_order_relaxed);
    table->room = to.room;
    return true;
}

static bool grow(key_table *table) {
    size_t homes = atomic_load_explicit(&table->homes, memory_order_relaxed);
    return rebuild(table, NULL, 0, homes ? homes + homes / (12 + kind_of(table) / 2) + 2 : 4);
}

static void shrink(key_table *table) {
    size_t homes = atomic_load_explicit(&table->homes, memory_order_relaxed);
    if (homes > 16 && table->used < homes / 2)
        (void)rebuild(table, NULL, 0, table->used + table->used / 8 + 4); /* without memory it does not change */
}

/* ---- one at a time ---- */

/* The first slot of a tag, or where it belongs. */
static size_t slot_of(const key_table *table, uint64_t tag) {
    const uint8_t *slots = table_slots(table);
    uint64_t least = entry_make(tag, 0);
    size_t at = table_home(table, tag);
    while (at < table->room && slot_get(slots, at) - 1 < least - 1) /* not empty, and a smaller tag */
        at++;
    return at;
}

static bool holds(const key_table *table, size_t at, uint64_t tag) {
    return at < table->room && entry_tag(slot_get(table_slots(table), at)) == tag;
}

/* How many slots from `at` on hold a tag. */
static size_t same_from(const key_table *table, size_t at, uint64_t tag) {
    size_t same = 0;
    while (holds(table, at + same, tag))
        same++;
    return same;
}

/* The first empty slot from `at` on; the room: there is none. */
static size_t empty_from(const key_table *table, size_t at) {
    const uint8_t *slots = table_slots(table);
    while (at < table->room && slot_get(slots, at))
        at++;
    return at;
}

static void move(key_table *table, size_t to, size_t from, size_t count) {
    uint8_t *slots = table_slots(table);
    memmove(slots + to * ENTRY_BYTES, slots + from * ENTRY_BYTES, count * ENTRY_BYTES);
}

/* Empties a slot, and moves later entries back that are not at home. */
static void close_gap(key_table *table, size_t at) {
    uint8_t *slots = table_slots(table);
    size_t end = at + 1;
    for (uint64_t entry; end < table->room && (entry = slot_get(slots, end)); end++)
        if (table_home(table, entry_tag(entry)) == end)
            break;
    move(table, at, at + 1, end - at - 1);
    slot_set(slots, end - 1, 0);
    table->used--;
}

/* One more than can be adjacent: all of them become a list. */
static bool make_list(key_table *table, size_t at, uint64_t tag, uint64_t number) {
    uint8_t *slots = table_slots(table);
    uint64_t entries[SAME_TAG + 1] = {[SAME_TAG] = number}, which;
    for (size_t i = 0; i < SAME_TAG; i++)
        entries[i] = slot_get(slots, at + i);
    if (!lists_make(table, entries, SAME_TAG + 1, &which))
        return false;
    slot_set(slots, at, entry_make(tag, which) | ENTRY_LIST);
    for (size_t i = 1; i < SAME_TAG; i++)
        close_gap(table, at + 1);
    return true;
}

/* One more slot, after those of the same tag. */
static bool insert(key_table *table, uint64_t tag, uint64_t number) {
    size_t homes = atomic_load_explicit(&table->homes, memory_order_relaxed), at, empty;
    if (table->used >= most_used(homes) && !grow(table))
        return false;
    while (at = slot_of(table, tag), (empty = empty_from(table, at)) == table->room)
        if (!grow(table))
            return false;
    at += same_from(table, at, tag);
    move(table, at + 1, at, empty - at);
    slot_set(table_slots(table), at, entry_make(tag, number));
    table->used++;
    return true;
}

static bool table_add(key_table *table, uint64_t tag, uint64_t number) {
    size_t at = slot_of(table, tag), same = same_from(table, at, tag);
    uint64_t entry = same ? slot_get(table_slots(table), at) : 0;
    if (entry & ENTRY_LIST)
        return lists_add(table, entry_number(entry), (uint32_t)number);
    return same < SAME_TAG ? insert(table, tag, number) : make_list(table, at, tag, number);
}

static void table_remove(key_table *table, uint64_t tag, uint64_t number) {
    uint8_t *slots = table_slots(table);
    for (size_t at = slot_of(table, tag); holds(table, at, tag); at++) {
        uint64_t entry = slot_get(slots, at);
        uint32_t last;
        if (entry & ENTRY_LIST) {
            if (lists_remove(table, entry_number(entry), (uint32_t)number, &last) == 1)
                slot_set(slots, at, entry_make(tag, last));
            return;
        }
        if (entry_number(entry) == (uint32_t)number) {
            close_gap(table, at);
            shrink(table);
            return;
        }
    }
}

static bool table_find(const key_table *table, uint64_t tag, dp_numbers *numbers) {
    for (size_t at = slot_of(table, tag); holds(table, at, tag); at++) {
        uint64_t entry = slot_get(table_slots(table), at);
        if (entry & ENTRY_LIST)
            return lists_copy(table, entry_number(entry), numbers);
        if (!dp_reserve(&numbers->number, &numbers->room, numbers->count + 1, sizeof *numbers->number))
            return false;
        numbers->number[numbers->count++] = entry_number(entry);
    }
    return true;
}

/* ---- many at once ---- */

/* Leaves at most SAME_TAG entries of each tag, or that of a list; false: out of memory. */
static bool pack(key_table *table, uint64_t *entries, size_t *count) {
    size_t kept = 0;
    for (size_t from = 0, to; from < *count; from = to) {
        uint64_t tag = entry_tag(entries[from]), which;
        for (to = from + 1; to < *count && entry_tag(entries[to]) == tag;)
            to++;
        if (to - from > SAME_TAG) {
            if (!lists_make(table, entries + from, to - from, &which))
                return false;
            entries[kept++] = entry_make(tag, which) | ENTRY_LIST;
            continue;
        }
        for (size_t i = from; i < to; i++)
            entries[kept++] = entries[i];
    }
    *count = kept;
    return true;
}

/* Whether sorted entries have more of one tag than can be adjacent. */
static bool is_crowded(const uint64_t *entries, size_t count) {
    bool crowded = false;
    for (size_t i = SAME_TAG; i < count; i++)
        crowded |= entry_tag(entries[i]) == entry_tag(entries[i - SAME_TAG]);
    return crowded;
}

/* Adds many sorted entries, each of one number; the array is overwritten. False: out of memory; some may have been
 * added. */
static bool table_build(key_table *table, uint64_t *entries, size_t count) {
    if (!table->used) {
        if ((is_crowded(entries, count) && !pack(table, entries, &count)) ||
            !rebuild(table, entries, count, count + count / 8 + count / 256 * kind_of(table) + 4))
            return false;
        table->used = count;
        return true;
    }
    for (size_t i = 0; i < count; i++)
        if (!table_add(table, entry_tag(entries[i]), entry_number(entries[i])))
            return false;
    return true;
}

/* ---- segments, and which of them a hash leads to ---- */

typedef struct key_segment {
    _Alignas(64) pthread_rwlock_t lock;
    key_table table;
} key_segment;

struct dp_keys {
    int bits;
    uint64_t secret;
    key_segment *segment;
    size_t count;
};

typedef struct key_place {
    key_segment *segment;
    uint64_t tag; /* not 0 */
} key_place;

static inline key_place find_place(const dp_keys *keys, uint64_t hash) {
    uint64_t x = hash ^ keys->secret;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    uint64_t tag = x & (((uint64_t)1 << TAG_BITS) - 1);
    return (key_place){keys->segment + (x >> (64 - keys->bits)), tag ? tag : 1};
}

/* Adjacent segments form a part. A staged entry has its segment within the part in the 8 bits above its own: so there
 * are at most 2^14 segments. */
typedef struct staged_piece {
    struct staged_piece *before;
    size_t count, bytes;
    uint64_t entry[];
} staged_piece;

struct dp_keys_stage {
    dp_keys *keys;
    int shift;                                        /* from segment to part */
    uint64_t *next[DP_KEY_PARTS], *end[DP_KEY_PARTS]; /* where the next entry goes, and the end of its memory */
    staged_piece *last[DP_KEY_PARTS];
    size_t count[DP_KEY_PARTS]; /* except those of the last */
};

static inline size_t count_last(const dp_keys_stage *stage, size_t part) {
    return stage->last[part] ? (size_t)(stage->next[part] - stage->last[part]->entry) : 0;
}

dp_keys *dp_keys_create(int bits) {
    size_t count = (size_t)1 << bits;
    dp_keys *keys = calloc(1, sizeof *keys);
    if (!keys || !(keys->segment = aligned_alloc(64, count * sizeof *keys->segment))) {
        free(keys);
        return NULL;
    }
    keys->bits = bits;
    keys->secret = dp_random_number();
    memset(keys->segment, 0, count * sizeof *keys->segment);
    for (; keys->count < count; keys->count++) {
        if (!dp_lock_init(&keys->segment[keys->count].lock)) {
            dp_keys_free(keys);
            return NULL;
        }
    }
    return keys;
}

void dp_keys_free(dp_keys *keys) {
    if (!keys)
        return;
    for (size_t i = 0; i < keys->count; i++) {
        pthread_rwlock_destroy(&keys->segment[i].lock);
        table_free(&keys->segment[i].table);
    }
    free(keys->segment);
    free(keys);
}

bool dp_keys_add(dp_keys *keys, uint64_t hash, uint64_t number) {
    key_place place = find_place(keys, hash);
    pthread_rwlock_wrlock(&place.segment->lock);
    bool added = table_add(&place.segment->table, place.tag, number);
    pthread_rwlock_unlock(&place.segment->lock);
    return added;
}

void dp_keys_remove(dp_keys *keys, uint64_t hash, uint64_t number) {
    key_place place = find_place(keys, hash);
    pthread_rwlock_wrlock(&place.segment->lock);
    table_remove(&place.segment->table, place.tag, number);
    pthread_rwlock_unlock(&place.segment->lock);
}

bool dp_keys_find(dp_keys *keys, uint64_t hash, dp_numbers *numbers) {
    key_place place = find_place(keys, hash);
    pthread_rwlock_rdlock(&place.segment->lock);
    bool found = table_find(&place.segment->table, place.tag, numbers);
    pthread_rwlock_unlock(&place.segment->lock);
    return found;
}

/* Without the lock slots and homes may be from two tables, and the prefetch useless: nothing is read. */
void dp_keys_prefetch(dp_keys *keys, uint64_t hash) {
    key_place place = find_place(keys, hash);
    const key_table *table = &place.segment->table;
    uintptr_t first = (uintptr_t)table_slots(table) + table_home(table, place.tag) * ENTRY_BYTES;
    __builtin_prefetch(
        (const void *)first); /* most finds end within 64 bytes, but these may begin anywhere in a line */
    __builtin_prefetch((const void *)(first + 64));
}

uint64_t dp_keys_bytes(dp_keys *keys) {
    uint64_t bytes = sizeof *keys + keys->count * sizeof *keys->segment;
    for (size_t i = 0; i < keys->count; i++) {
        pthread_rwlock_rdlock(&keys->segment[i].lock);
        bytes += table_bytes(&keys->segment[i].table);
        pthread_rwlock_unlock(&keys->segment[i].lock);
    }
    return bytes;
}

/* ---- staging ---- */

/* Pieces of 4 KiB to 1 MiB. */
enum { LEAST_PIECE = 4 << 10, MOST_PIECE = 1 << 20 };

dp_keys_stage *dp_keys_stage_create(dp_keys *keys) {
    dp_keys_stage *stage = calloc(1, sizeof *stage);
    if (!stage)
        return NULL;
    stage->keys = keys;
    stage->shift = keys->bits - DP_KEY_PART_BITS;
    return stage;
}

/* Drops what is staged for a part. */
static void drop_part(dp_keys_stage *stage, size_t part) {
    for (staged_piece *piece = stage->last[part], *before; piece; piece = before) {
        before = piece->before;
        slots_free(piece, piece->bytes);
    }
    stage->last[part] = NULL;
    stage->next[part] = stage->end[part] = NULL;
    stage->count[part] = 0;
}

void dp_keys_stage_free(dp_keys_stage *stage) {
    if (!stage)
        return;
    for (size_t part = 0; part < DP_KEY_PARTS; part++)
        drop_part(stage, part);
    free(stage);
}

/* One more piece for a part, an eighth of what it has. */
static bool add_piece(dp_keys_stage *stage, size_t part) {
    size_t here = count_last(stage, part), bytes = LEAST_PIECE;
    while (bytes < MOST_PIECE && bytes < stage->count[part] + here)
        bytes *= 2;
    staged_piece *piece = slots_get(bytes);
    if (!piece)
        return false;
    if (stage->last[part])
        stage->last[part]->count = here;
    stage->count[part] += here;
    piece->before = stage->last[part];
    piece->bytes = bytes;
    stage->last[part] = piece;
    stage->next[part] = piece->entry;
    stage->end[part] = piece->entry + (bytes - sizeof *piece) / sizeof *piece->entry;
    return true;
}

bool dp_keys_stage_add(dp_keys_stage *stage, uint64_t hash, uint64_t number) {
    key_place place = find_place(stage->keys, hash);
    size_t which = (size_t)(place.segment - stage->keys->segment);
    size_t part = which >> stage->shift, within = which - (part << stage->shift);
    if (stage->next[part] == stage->end[part] && !add_piece(stage, part))
        return false;
    *stage->next[part]++ = (uint64_t)within << ENTRY_BITS | entry_make(place.tag, number);
    return true;
}

/* ---- building ---- */

/* Tags are sorted by their two halves, of 11 and 12 bits: the places of each stay in the first cache. */
enum { LOW_BITS = 11, HIGH_BITS = TAG_BITS - LOW_BITS, LOW = 1 << LOW_BITS, HIGH = 1 << HIGH_BITS };

/* Fewer than this are sorted faster without those places. */
enum { FEW = 256 };

/* What 8 bits can number. */
enum { SEGMENTS_OF_PART = 256 };

void dp_keys_scratch_free(dp_keys_scratch *scratch) {
    free(scratch->dealt);
    free(scratch->spare);
    *scratch = (dp_keys_scratch){0};
}

/* Large memory is not copied when it grows. */
static bool make_room(uint64_t **data, size_t *room, size_t need) {
    if (need <= *room)
        return true;
    free(*data);
    *room = 0;
    if ((*data = dp_big_alloc((need + need / 16) * sizeof **data)))
        *room = need + need / 16;
    return *data;
}

/* ---- a part into its segments ---- */

/* Turns counts into start positions. */
static void begin_each(size_t *places, size_t count) {
    size_t next = 0;
    for (size_t i = 0; i < count; i++) {
        size_t here = places[i];
        places[i] = next;
        next += here;
    }
}

static void count_piece(const staged_piece *piece, size_t *places) {
    for (size_t i = 0; i < piece->count; i++)
        places[piece->entry[i] >> ENTRY_BITS]++;
}

static void deal_piece(const staged_piece *piece, size_t *places, uint64_t *to) {
    const uint64_t entry_bits = ((uint64_t)1 << ENTRY_BITS) - 1;
    for (size_t i = 0; i < piece->count; i++)
        to[places[piece->entry[i] >> ENTRY_BITS]++] = piece->entry[i] & entry_bits;
}

/* Afterwards places[i] is the end of segment i, and the stages are empty. */
static bool distribute(dp_keys_stage *const *stages, size_t count, size_t part, dp_keys_scratch *scratch,
                       size_t *places) {
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        if (!stages[i] || !stages[i]->last[part])
            continue;
        stages[i]->last[part]->count = count_last(stages[i], part);
        all += stages[i]->count[part] + stages[i]->last[part]->count;
        for (const staged_piece *piece = stages[i]->last[part]; piece; piece = piece->before)
            count_piece(piece, places);
    }
    if (!make_room(&scratch->dealt, &scratch->dealt_room, all))
        return false;
    begin_each(places, SEGMENTS_OF_PART);
    for (size_t i = 0; i < count; i++) {
        if (!stages[i])
            continue;
        for (const staged_piece *piece = stages[i]->last[part]; piece; piece = piece->before)
            deal_piece(piece, places, scratch->dealt);
        drop_part(stages[i], part);
    }
    return true;
}

/* ---- a segment ---- */

static size_t low_of(uint64_t entry) {
    return entry >> TAG_SHIFT & (LOW - 1);
}

static size_t high_of(uint64_t entry) {
    return entry >> (TAG_SHIFT + LOW_BITS);
}

/* Sorts entries by their tags; `other` has room for as many. */
static void sort_by_tag(uint64_t *entries, size_t count, uint64_t *other) {
    if (count < FEW) {
        dp_sort64(entries, count, other);
        return;
    }
    size_t low[LOW] = {0}, high[HIGH] = {0};
    for (size_t i = 0; i < count; i++) {
        low[low_of(entries[i])]++;
        high[high_of(entries[i])]++;
    }
    begin_each(low, LOW);
    begin_each(high, HIGH);
    for (size_t i = 0; i < count; i++)
        other[low[low_of(entries[i])]++] = entries[i];
    for (size_t i = 0; i < count; i++)
        entries[high[high_of(other[i])]++] = other[i];
}

static bool build(key_segment *segment, dp_keys_scratch *scratch, uint64_t *entries, size_t count) {
    if (!count)
        return true;
    if (!make_room(&scratch->spare, &scratch->spare_room, count))
        return false;
    sort_by_tag(entries, count, scratch->spare);
    pthread_rwlock_wrlock(&segment->lock);
    bool built = table_build(&segment->table, entries, count);
    pthread_rwlock_unlock(&segment->lock);
    return built;
}

bool dp_keys_build(dp_keys *keys, dp_keys_stage *const *stages, size_t count, size_t part, dp_keys_scratch *scratch) {
    size_t places[SEGMENTS_OF_PART] = {0}, each = keys->count / DP_KEY_PARTS;
    bool built = distribute(stages, count, part, scratch, places);
    /* A part without entries may have no memory. */
    for (size_t i = 0, from = 0; i < each && built && scratch->dealt; i++) {
        built = build(&keys->segment[part * each + i], scratch, scratch->dealt + from, places[i] - from);
        from = places[i];
    }
    return built;
}
