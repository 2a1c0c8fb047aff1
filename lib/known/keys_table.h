/* keys_table.h - a segment of the keys: a table from tags to numbers; inside keys*.c.
 *
 * The slots are ascending by tag, with empty ones between them: an entry stands at its home, tag * homes / 2^23, or as
 * near behind it as those before it allow. So a search ends at the first larger tag, after 5 slots on the average of a
 * table that is 8/9 full; growing and shrinking need nothing but the entries; and removing moves those behind it
 * back. Numbers that share a tag stand side by side, up to DP_SAME_TAG of them; more are a list, which one entry names.
 * Behind the last home there are some slots more; who finds none left makes the table larger. */
#ifndef DP_KEYS_TABLE_H
#define DP_KEYS_TABLE_H

#include "known/keys.h"

/* An entry, 7 bytes: 23 bits of tag, whether it is a list, and 32 bits: the number, or which list, from 1 on. An empty
 * slot is 0, and no entry is, as no tag is 0. */
enum { DP_TAG_BITS = 23, DP_TAG_SHIFT = 33, DP_ENTRY_BITS = 56, DP_ENTRY_BYTES = 7, DP_SAME_TAG = 4 };
#define DP_ENTRY_LIST ((uint64_t)1 << 32)

static inline uint64_t dp_entry_make(uint64_t tag, uint64_t number) {
    return tag << DP_TAG_SHIFT | (uint32_t)number;
}
static inline uint64_t dp_entry_tag(uint64_t entry) {
    return entry >> DP_TAG_SHIFT;
}
static inline uint32_t dp_entry_number(uint64_t entry) {
    return (uint32_t)entry;
}

/* Reads a byte more than the slot: there are 8 bytes behind the last. */
static inline uint64_t dp_slot_get(const uint8_t *slots, size_t at) {
    return dp_load64(slots + at * DP_ENTRY_BYTES) & (((uint64_t)1 << DP_ENTRY_BITS) - 1);
}
static inline void dp_slot_set(uint8_t *slots, size_t at, uint64_t entry) {
    for (int i = 0; i < DP_ENTRY_BYTES; i++)
        slots[at * DP_ENTRY_BYTES + (size_t)i] = (uint8_t)(entry >> (8 * i));
}

/* Numbers of one tag, in the order they came. One that was taken out stays, marked, until half of them are such: so a
 * list of millions can lose them one by one. */
typedef struct dp_keys_list {
    uint32_t count, gone, room;
    bool mixed;        /* they are not ascending from the first on, modulo 2^32 */
    uint32_t number[]; /* and behind them a bit for each: whether it is gone */
} dp_keys_list;

/* A place for a list: its own, or, with the lowest bit, twice the number of the next free place, from 1 on. */
typedef union dp_list_place {
    dp_keys_list *list;
    uintptr_t next;
} dp_list_place;

typedef struct dp_table {
    _Atomic(uint8_t *) slots; /* atomic for who only prefetches */
    _Atomic uint64_t homes;
    size_t room, used; /* in slots */
    dp_list_place *lists;
    size_t list_count, list_room, list_free;
    uint64_t list_bytes;
} dp_table;

void dp_table_free(dp_table *table);
bool dp_table_add(dp_table *table, uint64_t tag, uint64_t number);
void dp_table_remove(dp_table *table, uint64_t tag, uint64_t number);
bool dp_table_find(const dp_table *table, uint64_t tag, dp_numbers *numbers);
/* Adds many entries, sorted, each of one number; they are lost. False: no memory; some may be there then. */
bool dp_table_build(dp_table *table, uint64_t *entries, size_t count);
uint64_t dp_table_bytes(const dp_table *table);

static inline uint8_t *dp_table_slots(const dp_table *table) {
    return atomic_load_explicit(&table->slots, memory_order_relaxed);
}

static inline size_t dp_table_home(const dp_table *table, uint64_t tag) {
    return (size_t)(tag * atomic_load_explicit(&table->homes, memory_order_relaxed) >> DP_TAG_BITS);
}

/* ---- memory of slots ---- */

/* From this many bytes on, what is asked for should be whole pages of DP_SLOTS_PAGE. */
enum { DP_SLOTS_MAPPED = 8 << 10, DP_SLOTS_PAGE = 4 << 10 };

/* So many bytes, all 0; NULL: no memory. */
void *dp_slots_get(size_t bytes);
void dp_slots_free(void *slots, size_t bytes);

#endif
