/* keys.c - numbers by key: segments, each a table (keys_table.c) with a lock of its own.
 *
 * Many keys at once are put aside by part, in pieces of memory that grow with what is there, so that the unused end of
 * the last is a small share of all. Then the tables are built, part by part: the entries of a part are dealt out to its
 * segments, those of a segment are sorted by their tags, and the table is filled from its first slot to its last. A
 * segment's entries stay in the cache meanwhile. */
#include "known/keys_table.h"
#include "known/lock.h"

#include <stdlib.h>

/* ---- segments, and which of them a hash leads to ---- */

typedef struct dp_segment {
    _Alignas(64) pthread_rwlock_t lock;
    dp_table table;
} dp_segment;

struct dp_keys {
    int bits;
    uint64_t secret;
    dp_segment *segment;
    size_t count;
};

typedef struct dp_key_place {
    dp_segment *segment;
    uint64_t tag; /* not 0 */
} dp_key_place;

static inline dp_key_place dp_keys_place(const dp_keys *keys, uint64_t hash) {
    uint64_t x = hash ^ keys->secret;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    uint64_t tag = x & (((uint64_t)1 << DP_TAG_BITS) - 1);
    return (dp_key_place){keys->segment + (x >> (64 - keys->bits)), tag ? tag : 1};
}

/* Segments that stand together are a part. An entry that waits carries which segment of its part it belongs to, in the
 * 8 bits above its own: so there are 2^14 segments at most. */
typedef struct dp_staged {
    struct dp_staged *before;
    size_t count, bytes;
    uint64_t entry[];
} dp_staged;

struct dp_keys_stage {
    dp_keys *keys;
    int shift;                                        /* from segment to part */
    uint64_t *next[DP_KEY_PARTS], *end[DP_KEY_PARTS]; /* where the next entry goes, and the end of its memory */
    dp_staged *last[DP_KEY_PARTS];
    size_t count[DP_KEY_PARTS]; /* but for those of the last */
};

static inline size_t dp_staged_of_last(const dp_keys_stage *stage, size_t part) {
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
    keys->secret = dp_order_random();
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
        dp_table_free(&keys->segment[i].table);
    }
    free(keys->segment);
    free(keys);
}

bool dp_keys_add(dp_keys *keys, uint64_t hash, uint64_t number) {
    dp_key_place place = dp_keys_place(keys, hash);
    pthread_rwlock_wrlock(&place.segment->lock);
    bool added = dp_table_add(&place.segment->table, place.tag, number);
    pthread_rwlock_unlock(&place.segment->lock);
    return added;
}

void dp_keys_remove(dp_keys *keys, uint64_t hash, uint64_t number) {
    dp_key_place place = dp_keys_place(keys, hash);
    pthread_rwlock_wrlock(&place.segment->lock);
    dp_table_remove(&place.segment->table, place.tag, number);
    pthread_rwlock_unlock(&place.segment->lock);
}

bool dp_keys_find(dp_keys *keys, uint64_t hash, dp_numbers *numbers) {
    dp_key_place place = dp_keys_place(keys, hash);
    pthread_rwlock_rdlock(&place.segment->lock);
    bool found = dp_table_find(&place.segment->table, place.tag, numbers);
    pthread_rwlock_unlock(&place.segment->lock);
    return found;
}

/* Without the lock slots and homes may be of two tables, and what is fetched of no use: it is not looked at. */
void dp_keys_prefetch(dp_keys *keys, uint64_t hash) {
    dp_key_place place = dp_keys_place(keys, hash);
    const dp_table *table = &place.segment->table;
    uintptr_t first = (uintptr_t)dp_table_slots(table) + dp_table_home(table, place.tag) * DP_ENTRY_BYTES;
    __builtin_prefetch(
        (const void *)first); /* most finds end within 64 bytes, but these may begin anywhere in a line */
    __builtin_prefetch((const void *)(first + 64));
}

uint64_t dp_keys_bytes(dp_keys *keys) {
    uint64_t bytes = sizeof *keys + keys->count * sizeof *keys->segment;
    for (size_t i = 0; i < keys->count; i++) {
        pthread_rwlock_rdlock(&keys->segment[i].lock);
        bytes += dp_table_bytes(&keys->segment[i].table);
        pthread_rwlock_unlock(&keys->segment[i].lock);
    }
    return bytes;
}

/* ---- putting aside ---- */

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

void dp_keys_stage_free(dp_keys_stage *stage) {
    if (!stage)
        return;
    for (size_t part = 0; part < DP_KEY_PARTS; part++)
        dp_keys_stage_drop(stage, part);
    free(stage);
}

void dp_keys_stage_drop(dp_keys_stage *stage, size_t part) {
    for (dp_staged *piece = stage->last[part], *before; piece; piece = before) {
        before = piece->before;
        dp_slots_free(piece, piece->bytes);
    }
    stage->last[part] = NULL;
    stage->next[part] = stage->end[part] = NULL;
    stage->count[part] = 0;
}

/* A piece more for a part, an eighth of what it has. */
static bool add_piece(dp_keys_stage *stage, size_t part) {
    size_t here = dp_staged_of_last(stage, part), bytes = LEAST_PIECE;
    while (bytes < MOST_PIECE && bytes < stage->count[part] + here)
        bytes *= 2;
    dp_staged *piece = dp_slots_get(bytes);
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
    dp_key_place place = dp_keys_place(stage->keys, hash);
    size_t which = (size_t)(place.segment - stage->keys->segment);
    size_t part = which >> stage->shift, within = which - (part << stage->shift);
    if (stage->next[part] == stage->end[part] && !add_piece(stage, part))
        return false;
    *stage->next[part]++ = (uint64_t)within << DP_ENTRY_BITS | dp_entry_make(place.tag, number);
    return true;
}

/* ---- building ---- */

/* Tags are sorted by their two halves, of 11 and 12 bits: the places of each stay in the first cache. */
enum { LOW_BITS = 11, HIGH_BITS = DP_TAG_BITS - LOW_BITS, LOW = 1 << LOW_BITS, HIGH = 1 << HIGH_BITS };

/* Fewer than this are sorted faster without those places. */
enum { FEW = 256 };

/* As many as 8 bits can tell. */
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

/* Makes numbers of how many the places where each begins. */
static void begin_each(size_t *places, size_t count) {
    size_t next = 0;
    for (size_t i = 0; i < count; i++) {
        size_t here = places[i];
        places[i] = next;
        next += here;
    }
}

static void count_piece(const dp_staged *piece, size_t *places) {
    for (size_t i = 0; i < piece->count; i++)
        places[piece->entry[i] >> DP_ENTRY_BITS]++;
}

static void deal_piece(const dp_staged *piece, size_t *places, uint64_t *to) {
    const uint64_t entry_bits = ((uint64_t)1 << DP_ENTRY_BITS) - 1;
    for (size_t i = 0; i < piece->count; i++)
        to[places[piece->entry[i] >> DP_ENTRY_BITS]++] = piece->entry[i] & entry_bits;
}

/* Afterwards places[i] is the end of segment i, and what was staged is gone. */
static bool deal(dp_keys_stage *const *stages, size_t count, size_t part, dp_keys_scratch *scratch, size_t *places) {
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        if (!stages[i] || !stages[i]->last[part])
            continue;
        stages[i]->last[part]->count = dp_staged_of_last(stages[i], part);
        all += stages[i]->count[part] + stages[i]->last[part]->count;
        for (const dp_staged *piece = stages[i]->last[part]; piece; piece = piece->before)
            count_piece(piece, places);
    }
    if (!make_room(&scratch->dealt, &scratch->dealt_room, all))
        return false;
    begin_each(places, SEGMENTS_OF_PART);
    for (size_t i = 0; i < count; i++) {
        if (!stages[i])
            continue;
        for (const dp_staged *piece = stages[i]->last[part]; piece; piece = piece->before)
            deal_piece(piece, places, scratch->dealt);
        dp_keys_stage_drop(stages[i], part);
    }
    return true;
}

/* ---- a segment ---- */

static size_t low_of(uint64_t entry) {
    return entry >> DP_TAG_SHIFT & (LOW - 1);
}

static size_t high_of(uint64_t entry) {
    return entry >> (DP_TAG_SHIFT + LOW_BITS);
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

static bool build(dp_segment *segment, dp_keys_scratch *scratch, uint64_t *entries, size_t count) {
    if (!count)
        return true;
    if (!make_room(&scratch->spare, &scratch->spare_room, count))
        return false;
    sort_by_tag(entries, count, scratch->spare);
    pthread_rwlock_wrlock(&segment->lock);
    bool built = dp_table_build(&segment->table, entries, count);
    pthread_rwlock_unlock(&segment->lock);
    return built;
}

bool dp_keys_build(dp_keys *keys, dp_keys_stage *const *stages, size_t count, size_t part, dp_keys_scratch *scratch) {
    size_t places[SEGMENTS_OF_PART] = {0}, each = keys->count / DP_KEY_PARTS;
    bool built = deal(stages, count, part, scratch, places);
    /* A part without entries may have no memory. */
    for (size_t i = 0, from = 0; i < each && built && scratch->dealt; i++) {
        built = build(&keys->segment[part * each + i], scratch, scratch->dealt + from, places[i] - from);
        from = places[i];
    }
    return built;
}
