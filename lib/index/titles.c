/* titles.c - the title index: what is in it. titles_find.c finds.
 *
 * A title without owners stays until half of the titles are such; then all is built anew from the others. */
#include "index/index.h"
#include "index/titles_store.h"

#include <stdlib.h>

enum { FEW_REMOVED = 1024 };
#define MOST_TITLES 0x7FFFFFFEu

/* Larger than any code point. */
#define LEAST_BASE ((uint64_t)1 << 32)

doppel_status dp_titles_index_create(double min, dp_titles_index **index) {
    *index = NULL;
    if (!(min >= 0 && min <= 1))
        return DOPPEL_ERROR_USAGE;
    *index = calloc(1, sizeof **index);
    if (!*index)
        return DOPPEL_ERROR_MEMORY;
    (*index)->min = min;
    (*index)->secret = dp_order_random();
    (*index)->base = dp_order_random() % (DP_TITLES_PRIME - LEAST_BASE) + LEAST_BASE;
    return DOPPEL_OK;
}

/* All but the lists of owners. */
static void free_parts(dp_titles_index *index) {
    dp_titles_table_free(&index->table);
    for (size_t i = 0; i < index->group_count; i++)
        dp_titles_group_free(index->groups[i]);
    for (size_t i = 0; i < index->block_count; i++)
        free(index->blocks[i]);
    free(index->entries);
    free(index->groups);
    free(index->blocks);
}

void dp_titles_index_free(dp_titles_index *index) {
    if (!index)
        return;
    for (size_t i = 0; i < index->count; i++)
        if (index->entries[i].owner_count > 1)
            free(index->entries[i].owners.many);
    free_parts(index);
    free(index);
}

/* Lists of owners, those skipped included, have room for the next power of two. */
static size_t owner_room(const dp_titles_entry *entry) {
    size_t count = (size_t)entry->skipped + entry->owner_count;
    return (size_t)1 << (64 - __builtin_clzll(count - 1));
}

void dp_titles_index_get_stats(const dp_titles_index *index, dp_titles_stats *stats) {
    stats->titles = index->live;
    stats->owners = index->owners;
    stats->bytes = index->bytes + index->capacity * sizeof *index->entries +
                   index->table.size * sizeof *index->table.slots +
                   index->table.word_capacity * sizeof *index->table.words;
    for (size_t i = 0; i < index->count; i++)
        if (index->entries[i].owner_count > 1)
            stats->bytes += sizeof(uint64_t) * owner_room(&index->entries[i]);
    for (size_t i = 0; i < index->group_count; i++)
        stats->bytes += sizeof **index->groups + index->groups[i]->capacity * sizeof *index->groups[i]->entries;
}

/* ---- owners ---- */

const uint64_t *dp_titles_owners(const dp_titles_entry *entry) {
    return entry->owner_count == 1 ? &entry->owners.one : entry->owners.many + entry->skipped;
}

/* Where an owner stands (*there) or belongs. */
static size_t owner_at(const dp_titles_entry *entry, uint64_t owner, bool *there) {
    const uint64_t *owners = dp_titles_owners(entry);
    size_t low = 0, high = entry->owner_count;
    if (high && owners[high - 1] < owner)
        low = high; /* as they mostly come */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (owners[middle] < owner)
            low = middle + 1;
        else
            high = middle;
    }
    *there = low < entry->owner_count && owners[low] == owner;
    return low;
}

/* Moves the owners to the beginning of their list. Without the memory to make it smaller it stays larger. */
static void close_up(dp_titles_entry *entry) {
    uint64_t *many = entry->owners.many;
    memmove(many, many + entry->skipped, entry->owner_count * sizeof *many);
    entry->skipped = 0;
    uint64_t *smaller = realloc(many, owner_room(entry) * sizeof *many);
    entry->owners.many = smaller ? smaller : many;
}

/* Makes room for one more: a list is full when it has a power of two. */
static bool owner_reserve(dp_titles_entry *entry) {
    size_t count = entry->owner_count;
    if (count > 1 && entry->skipped >= count)
        close_up(entry);
    count += entry->skipped;
    if (count & (count - 1))
        return true;
    uint64_t one = entry->owners.one, *many = count > 1 ? entry->owners.many : NULL;
    if (!(many = realloc(many, 2 * count * sizeof *many)))
        return false;
    if (count == 1)
        many[0] = one;
    entry->owners.many = many;
    return true;
}

static bool owner_add(dp_titles_entry *entry, size_t at, uint64_t owner) {
    size_t count = entry->owner_count;
    if (!count) {
        entry->owners.one = owner;
    } else {
        if (!owner_reserve(entry))
            return false;
        uint64_t *many = entry->owners.many + entry->skipped;
        memmove(many + at + 1, many + at, (count - at) * sizeof *many);
        many[at] = owner;
    }
    entry->owner_count++;
    return true;
}

/* The first is mostly the one to go: it is skipped, until half of the list is such. */
static void owner_remove(dp_titles_entry *entry, size_t at) {
    size_t count = --entry->owner_count;
    if (!count)
        return;
    uint64_t *many = entry->owners.many, *first = many + entry->skipped;
    if (count == 1) {
        entry->owners.one = first[!at];
        entry->skipped = 0;
        free(many);
    } else if (!at) {
        entry->skipped++;
        if (entry->skipped > count)
            close_up(entry);
    } else {
        memmove(first + at, first + at + 1, (count - at) * sizeof *first);
        count += entry->skipped;
        uint64_t *smaller = count & (count - 1) ? many : realloc(many, count * sizeof *many);
        entry->owners.many = smaller ? smaller : many;
    }
}

/* ---- adding and removing ---- */

doppel_status dp_titles_index_add(dp_titles_index *index, const char *title, size_t length, uint64_t owner) {
    dp_titles_text text;
    doppel_status status = dp_titles_text_init(&text, index, title, length);
    if (status)
        return status;
    dp_titles_entry *entry = dp_titles_entry_get(index, text.points, text.sums);
    bool there = false;
    size_t at = entry ? owner_at(entry, owner, &there) : 0;
    if (!there && (entry ? entry->owner_count == UINT32_MAX : index->count > MOST_TITLES)) {
        status = DOPPEL_ERROR_INPUT;
    } else if (!there) {
        if (!entry)
            entry = dp_titles_entry_add(index, text.points, text.sums);
        if (entry && owner_add(entry, at, owner)) {
            index->live += entry->owner_count == 1;
            index->owners++;
        } else {
            status = DOPPEL_ERROR_MEMORY;
        }
    }
    dp_titles_text_free(&text);
    return status;
}

/* Moves an entry and its owners to another index. */
static bool move_entry(const dp_titles_entry *from, dp_titles_index *to) {
    dp_titles_text text;
    if (!dp_titles_text_room(&text, to, from->length))
        return false;
    dp_titles_text_load(&text, from);
    dp_titles_entry *entry = dp_titles_entry_add(to, text.points, text.sums);
    dp_titles_text_free(&text);
    if (!entry)
        return false;
    entry->owners = from->owners;
    entry->owner_count = from->owner_count;
    entry->skipped = from->skipped;
    return true;
}

/* Builds all anew without the titles that nobody owns. Without the memory for that, all stays as it is. */
static void rebuild(dp_titles_index *index) {
    dp_titles_index fresh = {
        .min = index->min, .secret = index->secret, .base = index->base, .live = index->live, .owners = index->owners};
    for (size_t i = 0; i < index->count; i++) {
        if (index->entries[i].owner_count && !move_entry(&index->entries[i], &fresh)) {
            free_parts(&fresh);
            return;
        }
    }
    free_parts(index);
    *index = fresh;
}

doppel_status dp_titles_index_remove(dp_titles_index *index, const char *title, size_t length, uint64_t owner,
                                     bool *removed) {
    dp_titles_text text;
    doppel_status status = dp_titles_text_init(&text, index, title, length);
    if (status)
        return status;
    dp_titles_entry *entry = dp_titles_entry_get(index, text.points, text.sums);
    bool there = false;
    size_t at = entry ? owner_at(entry, owner, &there) : 0;
    dp_titles_text_free(&text);
    if (removed)
        *removed = there;
    if (!there)
        return DOPPEL_OK;
    owner_remove(entry, at);
    index->owners--;
    index->live -= !entry->owner_count;
    if (index->count > 2 * index->live + FEW_REMOVED)
        rebuild(index);
    return DOPPEL_OK;
}
