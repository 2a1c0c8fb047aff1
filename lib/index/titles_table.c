/* titles_table.c - from a hash to the entries of titles that have it.
 *
 * Slots are ascending by hash, with empty ones between them: a hash's home is its share of the table's size, so that
 * order by home is order by hash, and a look-up ends at the first slot that is empty or has a larger hash. A table
 * grows by copying in order. One entry stands in its slot; more of them in a list: a block of 2^class words, the count
 * and then the entries, that moves to a larger block when it is full. Different segments with equal hashes share a
 * list. */
#include "index/titles_store.h"

#include <stdlib.h>

/* Slots behind the last home, for what does not fit at the end, and one more that stays empty. A table that needs more
 * grows; the secret in the hashes keeps anybody from aiming there. At least the keys of two titles. */
enum { SLACK = 256, FIRST_SIZE = 1024, FIRST_CLASS = 2 };
#define LIST 0x80000000u

void dp_titles_table_free(dp_titles_table *table) {
    free(table->slots);
    free(table->words);
}

/* ---- slots ---- */

/* The slot of a hash, or the place where it belongs. */
static size_t locate(const dp_titles_table *table, uint32_t hash) {
    size_t at = dp_titles_home(table, hash);
    while (table->slots[at].value && table->slots[at].hash < hash)
        at++;
    return at;
}

/* Copies all slots into a table of a larger size; false when it does not fit, or there is no memory. */
static bool copy_slots(const dp_titles_table *from, dp_titles_table *to, bool *full) {
    *full = false;
    to->slots = calloc(to->size + SLACK + 1, sizeof *to->slots);
    if (!to->slots)
        return false;
    size_t at = 0;
    for (size_t i = 0; from->slots && i < from->size + SLACK; i++) {
        if (!from->slots[i].value)
            continue;
        size_t home = dp_titles_home(to, from->slots[i].hash);
        at = home > at ? home : at;
        if (at == to->size + SLACK) {
            *full = true;
            free(to->slots);
            return false;
        }
        to->slots[at++] = from->slots[i];
    }
    return true;
}

static bool grow(dp_titles_table *table, size_t least) {
    dp_titles_table larger = *table;
    bool full = true;
    larger.size = table->size ? table->size : FIRST_SIZE;
    while (larger.size / 4 * 3 < least)
        larger.size += larger.size / 2;
    while (full) {
        if (!copy_slots(table, &larger, &full) && !full)
            return false;
        if (full)
            larger.size += larger.size / 2;
    }
    free(table->slots);
    *table = larger;
    return true;
}

/* How many slots at the very end are empty, as far as `wanted`. */
static size_t room_behind(const dp_titles_table *table, size_t wanted) {
    size_t room = 0;
    while (room < wanted && room < SLACK && !table->slots[table->size + SLACK - 1 - room].value)
        room++;
    return room;
}

bool dp_titles_table_reserve(dp_titles_table *table, size_t count) {
    size_t need = table->used + count;
    if (need / 3 * 4 + 4 > table->size && !grow(table, need + need / 4))
        return false;
    /* All of them could belong at the end. */
    while (room_behind(table, count) < count)
        if (!grow(table, table->size))
            return false;
    return true;
}

/* Puts a new slot in its place, moving those behind it up to the next empty one. */
static void insert_slot(dp_titles_table *table, size_t at, dp_titles_slot slot) {
    size_t end = at;
    while (table->slots[end].value)
        end++;
    memmove(&table->slots[at + 1], &table->slots[at], (end - at) * sizeof slot);
    table->slots[at] = slot;
    table->used++;
}

/* ---- lists ---- */

/* The class of a list of `count` entries. */
static int class_of(size_t count) {
    int size = FIRST_CLASS;
    while ((size_t)1 << size < count + 1)
        size++;
    return size;
}

/* A block of 2^class words; 0: no memory. Word 0 is never used. */
static uint32_t take_block(dp_titles_table *table, int size) {
    if (size >= DP_TITLES_CLASSES)
        return 0;
    uint32_t block = table->free[size];
    if (block) {
        table->free[size] = table->words[block];
        return block;
    }
    size_t start = table->word_count ? table->word_count : 1, end = start + ((size_t)1 << size);
    if (end > LIST || !dp_reserve(&table->words, &table->word_capacity, end, sizeof *table->words))
        return 0;
    table->word_count = end;
    return (uint32_t)start;
}

static bool list_add(dp_titles_table *table, uint32_t *value, uint32_t entry) {
    uint32_t old = *value & ~LIST, block = old, count = *value & LIST ? table->words[old] : 1;
    int size = class_of(count), wanted = class_of((size_t)count + 1);
    if (!(*value & LIST) || wanted != size) {
        block = take_block(table, wanted);
        if (!block)
            return false;
        if (*value & LIST) {
            memcpy(table->words + block, table->words + old, ((size_t)count + 1) * sizeof *table->words);
            table->words[old] = table->free[size];
            table->free[size] = old;
        } else {
            table->words[block + 1] = *value - 1;
        }
    }
    table->words[block] = count + 1;
    table->words[block + 1 + count] = entry;
    *value = block | LIST;
    return true;
}

bool dp_titles_table_add(dp_titles_table *table, uint32_t hash, uint32_t entry) {
    size_t at = locate(table, hash);
    if (table->slots[at].value && table->slots[at].hash == hash)
        return list_add(table, &table->slots[at].value, entry);
    insert_slot(table, at, (dp_titles_slot){hash, entry + 1});
    return true;
}

const uint32_t *dp_titles_table_get(const dp_titles_table *table, uint32_t hash, uint32_t *one, size_t *count) {
    *count = 0;
    if (!table->size)
        return one;
    dp_titles_slot slot = table->slots[locate(table, hash)];
    if (!slot.value || slot.hash != hash)
        return one;
    if (slot.value & LIST) {
        const uint32_t *list = table->words + (slot.value & ~LIST);
        *count = list[0];
        return list + 1;
    }
    *one = slot.value - 1;
    *count = 1;
    return one;
}
