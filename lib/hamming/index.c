/* index.c - the calls that change an index.
 *
 * doppel_index_create -> doppel_index_add, doppel_index_add_batch, doppel_index_merge, doppel_index_remove,
 * doppel_index_expire, doppel_index_compact -> doppel_index_free. find.c reads, levels.c merges runs.
 *
 * New entries go into the head, and a full head becomes a run; once there are many, they go into the growing level
 * instead, which then becomes a run. An entry stands in one place at most, dead or alive: what is added again is
 * revived where it stands. One thread writes, any number read. */
#include "hamming/index.h"

#include <stdlib.h>

/* ---- the head: the newest entries, before they go into a run ---- */

dp_head *dp_head_create(int bits) {
    dp_head *head = aligned_alloc(64, dp_head_bytes(bits));
    if (!head)
        return NULL;
    atomic_init(&head->count, 0);
    head->bits = bits;
    head->versions = 0;
    return head;
}

static size_t hash(dp_bits value, uint64_t owner) {
    uint64_t x = (uint64_t)value ^ (uint64_t)(value >> 64) ^ owner * 0x9E3779B97F4A7C15;
    x = (x ^ x >> 32) * 0xBF58476D1CE4E5B9;
    return (size_t)(x ^ x >> 29) % DP_PLACES;
}

/* Where an entry stands among the places, or the free place where it would. */
static size_t find_place(const dp_head *head, const dp_places *places, dp_bits value, uint64_t owner) {
    size_t at = hash(value, owner);
    for (; places->place[at]; at = (at + 1) % DP_PLACES) {
        uint64_t i = places->place[at] - 1U;
        if (head->owners[i] == owner && dp_head_value(head, i) == value)
            break;
    }
    return at;
}

/* The number of an entry, dead or not, or DP_HEAD_ROOM. */
static uint64_t head_search(const dp_head *head, const dp_places *places, dp_bits value, uint64_t owner) {
    uint16_t number = places->place[find_place(head, places, value, owner)];
    return number ? number - 1U : DP_HEAD_ROOM;
}

/* Adds an entry that is not there, to a head that has room. */
static void head_add(dp_head *head, dp_places *places, dp_bits value, uint64_t owner, uint64_t expires) {
    uint64_t i = atomic_load_explicit(&head->count, memory_order_relaxed);
    places->place[find_place(head, places, value, owner)] = (uint16_t)(i + 1);
    uint64_t words[2];
    dp_bits_store(value, words);
    memcpy(head->values + (head->bits > 64 ? 2 * i : i), words, head->bits > 64 ? 16 : 8);
    head->filter[i] = (uint32_t)value;
    head->owners[i] = owner;
    atomic_init(&head->expires[i], expires);
    atomic_init(&head->dead[i], 0);
    atomic_store_explicit(&head->count, i + 1, memory_order_release);
}

/* What is alive, as items with times; whether any of them expires. */
static bool list_items(const dp_head *head, dp_items *items) {
    size_t words = items->bits > 64 ? 2 : 1;
    uint64_t count = atomic_load_explicit(&head->count, memory_order_acquire), *item = items->item, times = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (atomic_load_explicit(&head->dead[i], memory_order_acquire))
            continue;
        memcpy(item, head->values + i * words, words * 8);
        item += words;
        *item++ = head->owners[i];
        times |= *item++ = atomic_load_explicit(&head->expires[i], memory_order_relaxed);
        items->count++;
    }
    return times;
}

doppel_status dp_head_run(const dp_head *head, dp_run **run) {
    dp_items items = {.bits = head->bits, .timed = true};
    size_t room = DP_HEAD_ROOM * dp_item_words(&items);
    *run = NULL;
    if (!(items.item = malloc(2 * room * sizeof *items.item)))
        return DOPPEL_ERROR_MEMORY;
    if (!list_items(head, &items))
        dp_items_drop_times(&items);
    dp_items_sort(&items, items.item + room);
    doppel_status status = items.count ? dp_run_from_items(&items, run) : DOPPEL_OK;
    free(items.item);
    return status;
}

/* ---- creating and freeing ---- */

/* How many entries of a run are alive; 0 when a mapped run is damaged. Slots, without the dead ones, and for each list
 * without its position's slot and its number of owners. */
static uint64_t count_entries(const dp_run *run) {
    uint64_t lists = 0, words = run->shared ? dp_shared_bytes(run) / 8 : 0;
    if (words && dp_run_touch(run, run->shared, words * 8) != DOPPEL_OK)
        return 0;
    for (uint64_t i = 0; i < words; i++)
        lists += (uint64_t)__builtin_popcountll(run->shared[i]);
    return dp_run_slots(run) - 2 * lists - atomic_load_explicit(&run->dead_count, memory_order_relaxed);
}

doppel_status dp_index_create(const doppel_index_options *options, dp_run **runs, int count, doppel_index **created) {
    doppel_index *index = aligned_alloc(64, (sizeof *index + 63) / 64 * 64);
    if (!index)
        return DOPPEL_ERROR_MEMORY;
    memset(index, 0, sizeof *index);
    index->bits = options->bits ? options->bits : 64;
    index->distance = options->distance ? options->distance : 3;
    index->bytes_per_entry = DP_BYTES_PER_ENTRY;
    if (options->count && options->memory)
        index->bytes_per_entry = (double)options->memory / (double)options->count;
    if (options->layout)
        strncpy(index->layout_name, options->layout, sizeof index->layout_name - 1);
    index->secret = options->secret;
    dp_order_init(&index->order, index->bits, index->secret);
    dp_merger_init(&index->merger);
    dp_version content = {.runs = count, .head = dp_head_create(index->bits)};
    if (count)
        memcpy(content.run, runs, (size_t)count * sizeof *runs);
    if (!content.head || !dp_index_publish(index, &content)) {
        free(content.head);
        dp_index_release(index);
        free(index);
        return DOPPEL_ERROR_MEMORY;
    }
    uint64_t entries = 0;
    for (int i = 0; i < count; i++)
        entries += count_entries(runs[i]);
    atomic_init(&index->entries, entries);
    *created = index;
    return DOPPEL_OK;
}

void doppel_index_free(doppel_index *index) {
    if (!index)
        return;
    dp_index_release(index);
    free(index);
}

/* ---- creating ---- */

static doppel_status check_layout(const doppel_index_options *options, doppel_error *error) {
    dp_layout layout;
    if (options->layout && strlen(options->layout) >= sizeof(((doppel_index *)0)->layout_name))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a layout's name has at most 63 characters");
    return options->layout ? dp_layout_parse(options->layout, options->bits, &layout, error) : DOPPEL_OK;
}

static doppel_status check_memory(const doppel_index_options *options, doppel_error *error) {
    doppel_plan_options wanted = {.size = sizeof wanted,
                                  .purpose = DOPPEL_FOR_FIND,
                                  .bits = options->bits,
                                  .memory = options->memory,
                                  .layout = options->layout};
    doppel_plan plan;
    size_t found;
    if (!options->memory || !options->count)
        return DOPPEL_OK;
    doppel_status status = doppel_plan_list(options->count, options->distance, &wanted, &plan, 1, &found, error);
    if (status == DOPPEL_OK && !plan.fits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "%llu entries need at least %.0f bytes (layout %s), %llu are allowed",
                       (unsigned long long)options->count, plan.memory, plan.layout,
                       (unsigned long long)options->memory);
    return status;
}

static doppel_status check_options(const doppel_index_options *options, doppel_error *error) {
    if ((options->bits < 1 || options->bits > 64) && options->bits != 128)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "%d bits: 1 to 64 or 128 are possible", options->bits);
    if (options->distance < 0 || options->distance > options->bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "distance %d: 0 to %d is possible with %d bits", options->distance,
                       options->bits, options->bits);
    DP_TRY(check_layout(options, error));
    return check_memory(options, error);
}

doppel_status doppel_index_create(const doppel_index_options *given, doppel_index **index, doppel_error *error) {
    doppel_index_options options = {0};
    if (given)
        dp_copy_options(&options, given, sizeof options);
    options.bits = options.bits ? options.bits : 64;
    /* The default distance is 3, as far as there are bits for it. */
    if (!options.distance)
        options.distance = options.bits < 3 ? options.bits : 3;
    *index = NULL;
    DP_TRY(check_options(&options, error));
    options.secret = options.secret ? options.secret : dp_random_number();
    doppel_status status = dp_index_create(&options, NULL, 0, index);
    return status == DOPPEL_OK ? DOPPEL_OK : dp_no_memory(error);
}

/* ---- where an entry stands ---- */

/* Where an entry stands, for the writer: in the head or in a run; with neither, nowhere. */
typedef struct entry_place {
    dp_head *head;
    dp_growing *level;
    dp_run *run;
    uint64_t slot;
    dp_growing_entry entry; /* of a level */
    dp_bits value;
    uint64_t owner;
    int same; /* entries of the value in the growing level */
} entry_place;

typedef struct entry_state {
    uint64_t expires;
    bool dead;
} entry_state;

/* Where in the rest of table 0 a search begins. */
static const void *first_look(const dp_run *run, dp_range range, uint64_t rest) {
    const dp_run_table *table = &run->table[0];
    return table->rest + (range.from + (uint64_t)((dp_bits)rest * (range.to - range.from) >> table->rest_bits)) *
                             (uint64_t)table->rest_bytes;
}

/* Asks memory for what searches of a number in these runs will read first. Always inline: some compilers leave out a
 * call that only asks for memory. */
static inline __attribute__((always_inline)) void prefetch_runs(const dp_run *const *runs, int count, dp_bits value) {
    for (int i = 0; i < count; i++) {
        const dp_run_table *table = &runs[i]->table[0];
        __builtin_prefetch(table->directory +
                           (table->key_bits ? (uint64_t)(value >> (runs[i]->bits - table->key_bits)) : 0));
    }
    for (int i = 0; i < count; i++) {
        const dp_run *run = runs[i];
        const dp_run_table *table = &run->table[0];
        if (run->backing || !table->rest_bits)
            continue;
        uint64_t key = table->key_bits ? (uint64_t)(value >> (run->bits - table->key_bits)) : 0;
        uint64_t rest = (uint64_t)(value >> dp_filter_bits(run->bits)) & (UINT64_MAX >> (64 - table->rest_bits));
        __builtin_prefetch(first_look(run, (dp_range){table->directory[key], table->directory[key + 1]}, rest));
    }
}

/* Whether an entry stands in a level; gives how many of its value do. */
static int search_level(dp_growing *level, entry_place *place) {
    dp_growing_places found;
    dp_growing_search(level, place->value, &found);
    for (int i = 0; i < found.count && !place->level; i++) {
        place->entry = dp_growing_place(level, &found.chunk, found.place[i]);
        place->level = *place->entry.owner == place->owner ? level : NULL;
    }
    return found.count;
}

static bool is_there(const entry_place *place) {
    return place->head || place->level || place->run;
}

/* Finds an entry. Where it may be added next, `keys` gets the value's in the growing level; else it is NULL. */
static doppel_status locate(const doppel_index *index, dp_bits value, uint64_t owner, entry_place *place,
                            dp_growing_keys *keys) {
    const dp_version *version = atomic_load_explicit(&index->current, memory_order_relaxed);
    place->head = NULL;
    place->level = NULL;
    place->run = NULL;
    place->value = value;
    place->owner = owner;
    place->same = 0;
    if (version->growing && keys)
        dp_growing_prepare(version->growing, value, keys);
    prefetch_runs((const dp_run *const *)version->run, version->runs, value);
    if (version->growing && keys)
        dp_growing_prefetch(version->growing, keys);
    uint64_t i = head_search(version->head, &index->places, value, owner);
    if (i < DP_HEAD_ROOM) {
        place->head = version->head;
        place->slot = i;
        return DOPPEL_OK;
    }
    if (version->growing)
        place->same = search_level(version->growing, place);
    if (version->full && !place->level)
        search_level(version->full, place);
    if (place->level)
        return DOPPEL_OK;
    for (int r = 0; r < version->runs; r++) {
        bool found;
        uint64_t slot;
        DP_TRY(dp_run_slot(version->run[r], value, owner, &found, &slot));
        if (found) {
            place->run = version->run[r];
            place->slot = slot;
            return DOPPEL_OK;
        }
    }
    return DOPPEL_OK;
}

static entry_state place_state(const entry_place *place) {
    if (place->head)
        return (entry_state){atomic_load_explicit(&place->head->expires[place->slot], memory_order_relaxed),
                             atomic_load_explicit(&place->head->dead[place->slot], memory_order_relaxed)};
    if (place->level)
        return (entry_state){atomic_load_explicit(place->entry.expires, memory_order_relaxed),
                             atomic_load_explicit(place->entry.dead, memory_order_relaxed)};
    return (entry_state){dp_run_expires(place->run, place->slot), dp_run_is_dead(place->run, place->slot)};
}

/* Whether what changes at a place is noted. */
static bool is_merging(const entry_place *place) {
    return place->run ? place->run->merging : place->level && place->level->merging;
}

/* Makes sure that a state can be set: DOPPEL_OK, DOPPEL_ERROR_MEMORY, or DOPPEL_ERROR_STORE for a damaged file. */
static doppel_status place_prepare(doppel_index *index, const entry_place *place, entry_state state) {
    entry_state now = place_state(place);
    if (is_merging(place) && !dp_index_reserve_notes(index, 1))
        return DOPPEL_ERROR_MEMORY;
    if (!place->run)
        return DOPPEL_OK;
    if (state.expires != now.expires)
        DP_TRY(dp_run_prepare_expires(place->run));
    return state.dead != now.dead ? dp_run_prepare_dead(place->run) : DOPPEL_OK;
}

/* So many entries more, or fewer. */
static void count_more(doppel_index *index, int64_t more) {
    uint64_t entries = atomic_load_explicit(&index->entries, memory_order_relaxed);
    atomic_store_explicit(&index->entries, entries + (uint64_t)more, memory_order_relaxed);
}

/* Sets a state that was prepared, and counts the entry. The time first: who sees an entry alive again sees it. */
static void place_set(doppel_index *index, const entry_place *place, entry_state state) {
    entry_state now = place_state(place);
    if (place->run) {
        if (state.expires != now.expires)
            dp_run_set_expires(place->run, place->slot, state.expires);
        if (state.dead != now.dead)
            dp_run_set_dead(place->run, place->slot, state.dead);
    } else {
        _Atomic uint64_t *expires = place->level ? place->entry.expires : &place->head->expires[place->slot];
        _Atomic uint8_t *dead = place->level ? place->entry.dead : &place->head->dead[place->slot];
        atomic_store_explicit(expires, state.expires, memory_order_relaxed);
        atomic_store_explicit(dead, state.dead, memory_order_release);
    }
    if (is_merging(place))
        dp_index_note(index, &(dp_merge_note){place->value, place->owner, state.expires, state.dead, false});
    count_more(index, (int64_t)now.dead - (int64_t)state.dead);
}

/* ---- one entry ---- */

/* Adds an entry that is nowhere to the growing level; *taken is false where it goes into the head. */
static doppel_status add_to_level(doppel_index *index, entry_place *place, dp_growing_keys *keys, uint64_t expires,
                                  bool *taken) {
    dp_growing *level = atomic_load_explicit(&index->current, memory_order_relaxed)->growing;
    *taken = false;
    if (!level || place->same == DP_SAME_MOST)
        return DOPPEL_OK;
    if (atomic_load_explicit(&level->entries, memory_order_relaxed) >= level->planned) {
        DP_TRY(dp_index_grow(index));
        dp_growing *now = atomic_load_explicit(&index->current, memory_order_relaxed)->growing;
        if (!now)
            return DOPPEL_OK;
        if (now != level) {
            dp_growing_prepare(now, place->value, keys);
            place->same = 0;
        }
        level = now;
    }
    *taken = dp_growing_add(level, keys, place->same, place->owner, expires);
    return *taken ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static doppel_status add_entry(doppel_index *index, dp_bits value, uint64_t owner, uint64_t expires) {
    entry_place place;
    dp_growing_keys keys;
    DP_TRY(locate(index, value, owner, &place, &keys));
    if (is_there(&place)) {
        entry_state state = {expires, false};
        DP_TRY(place_prepare(index, &place, state));
        place_set(index, &place, state);
        return DOPPEL_OK;
    }
    bool taken;
    DP_TRY(add_to_level(index, &place, &keys, expires, &taken));
    if (!taken) {
        dp_head *head = atomic_load_explicit(&index->current, memory_order_relaxed)->head;
        if (atomic_load_explicit(&head->count, memory_order_relaxed) == DP_HEAD_ROOM) {
            DP_TRY(dp_index_flush(index, NULL));
            head = atomic_load_explicit(&index->current, memory_order_relaxed)->head;
        }
        head_add(head, &index->places, value, owner, expires);
    }
    count_more(index, 1);
    return DOPPEL_OK;
}

doppel_status doppel_index_add(doppel_index *index, const uint64_t *fingerprint, uint64_t owner, uint64_t expires) {
    if (!dp_index_has_width(index, fingerprint))
        return DOPPEL_ERROR_USAGE;
    dp_bits value = dp_order_apply(&index->order, dp_bits_load(fingerprint, index->bits));
    dp_writer_begin(index);
    doppel_status status = add_entry(index, value, owner, expires);
    dp_writer_end(index);
    return status;
}

static doppel_status remove_entry(doppel_index *index, dp_bits value, uint64_t owner, bool *removed) {
    entry_place place;
    DP_TRY(locate(index, value, owner, &place, NULL));
    if (!is_there(&place))
        return DOPPEL_OK;
    entry_state state = place_state(&place);
    if (state.dead)
        return DOPPEL_OK;
    state.dead = true;
    DP_TRY(place_prepare(index, &place, state));
    place_set(index, &place, state);
    *removed = true;
    if (place.run)
        dp_index_tidy(index);
    return DOPPEL_OK;
}

doppel_status doppel_index_remove(doppel_index *index, const uint64_t *fingerprint, uint64_t owner, bool *removed) {
    bool done = false;
    doppel_status status = DOPPEL_ERROR_USAGE;
    if (dp_index_has_width(index, fingerprint)) {
        dp_bits value = dp_order_apply(&index->order, dp_bits_load(fingerprint, index->bits));
        dp_writer_begin(index);
        status = remove_entry(index, value, owner, &done);
        dp_writer_end(index);
    }
    if (removed)
        *removed = done;
    return status;
}

/* ---- the whole index ---- */

static uint64_t expire_head(doppel_index *index, dp_head *head, uint64_t now) {
    uint64_t count = atomic_load_explicit(&head->count, memory_order_relaxed), expired = 0;
    for (uint64_t i = 0; i < count; i++) {
        entry_place place = {.head = head, .slot = i};
        entry_state state = place_state(&place);
        if (state.dead || !state.expires || state.expires > now)
            continue;
        place_set(index, &place, (entry_state){state.expires, true});
        expired++;
    }
    return expired;
}

static doppel_status expire_rest(doppel_index *index, const dp_version *version, uint64_t now, uint64_t *expired) {
    uint64_t before = *expired;
    doppel_status status = DOPPEL_OK;
    if (index->merger.busy && !dp_index_reserve_notes(index, 1))
        return DOPPEL_ERROR_MEMORY;
    bool merging = version->full && version->full->merging;
    *expired += version->growing ? dp_growing_expire(version->growing, now) : 0;
    *expired += version->full ? dp_growing_expire(version->full, now) : 0;
    for (int i = 0; i < version->runs && status == DOPPEL_OK; i++) {
        status = dp_run_expire(version->run[i], now, expired);
        merging |= version->run[i]->merging;
    }
    if (merging)
        dp_index_note(index, &(dp_merge_note){.expires = now, .expiry = true});
    count_more(index, (int64_t)before - (int64_t)*expired);
    return status;
}

doppel_status doppel_index_expire(doppel_index *index, uint64_t now, uint64_t *expired) {
    dp_writer_begin(index);
    const dp_version *version = atomic_load_explicit(&index->current, memory_order_relaxed);
    uint64_t count = expire_head(index, version->head, now);
    doppel_status status = expire_rest(index, version, now, &count);
    dp_index_tidy(index);
    dp_writer_end(index);
    if (expired)
        *expired = count;
    return status;
}

doppel_status doppel_index_compact(doppel_index *index, doppel_error *error) {
    dp_writer_begin(index);
    doppel_status status = dp_index_flush_all(index);
    dp_writer_end(index);
    return status == DOPPEL_OK ? status : dp_index_explain(index, status, error);
}

/* ---- many entries at once ----
 *
 * Entries become items, which are sorted. Those that are in the index already get their new times where they stand; the
 * others become a run, or, when they are few, go into the head. What was changed in place is noted and changed back
 * when memory runs out later, so that all are added or none. */

/* Up to FEW go into the head. More than MOST in one call may not fit one run together with the head. */
#define FEW ((uint64_t)DP_HEAD_ROOM / 4)
#define MOST (DP_RUN_MOST - DP_HEAD_ROOM)

enum { BATCH = 256 };

/* What the caller gave. */
typedef struct bulk_entries {
    const uint64_t *fingerprints, *owners, *expires;
    uint64_t count;
} bulk_entries;

/* An entry that was there, and how it was. */
typedef struct changed_entry {
    entry_place place;
    entry_state before;
} changed_entry;

typedef struct bulk_insert {
    doppel_index *index;
    dp_items items;
    dp_memory block; /* of the items */
    changed_entry *changed;
    size_t changes, room;
} bulk_insert;

/* ---- items ---- */

static void fill_items(bulk_insert *a, const bulk_entries *g) {
    size_t words = a->index->bits > 64 ? 2 : 1;
    uint64_t values[2 * BATCH], *item = a->items.item;
    for (uint64_t from = 0; from < g->count; from += BATCH) {
        size_t count = g->count - from < BATCH ? (size_t)(g->count - from) : BATCH;
        dp_order_apply_many(&a->index->order, g->fingerprints + from * words, count, values);
        for (size_t i = 0; i < count; i++) {
            for (size_t w = 0; w < words; w++)
                *item++ = values[i * words + w];
            *item++ = g->owners ? g->owners[from + i] : from + i;
            if (a->items.timed)
                *item++ = g->expires[from + i];
        }
    }
}

static doppel_status check_widths(const doppel_index *index, const bulk_entries *g) {
    uint64_t bits = 0;
    if (index->bits < 64)
        for (uint64_t i = 0; i < g->count; i++)
            bits |= g->fingerprints[i];
    return index->bits < 64 && bits >> index->bits ? DOPPEL_ERROR_USAGE : DOPPEL_OK;
}

static doppel_status make_items(bulk_insert *a, const bulk_entries *g) {
    a->items = (dp_items){.bits = a->index->bits, .count = g->count};
    for (uint64_t i = 0; g->expires && i < g->count && !a->items.timed; i++)
        a->items.timed = g->expires[i] != 0;
    size_t bytes = g->count * dp_item_words(&a->items) * 8;
    dp_memory scratch;
    if (!dp_memory_alloc(&a->block, bytes))
        return DOPPEL_ERROR_MEMORY;
    if (!dp_memory_alloc(&scratch, bytes))
        return DOPPEL_ERROR_MEMORY;
    a->items.item = a->block.data;
    fill_items(a, g);
    dp_items_sort(&a->items, scratch.data);
    dp_memory_free(&scratch);
    return DOPPEL_OK;
}

/* ---- entries that are there ---- */

static doppel_status change(bulk_insert *a, const entry_place *place, entry_state state) {
    entry_state before = place_state(place);
    if (before.expires == state.expires && before.dead == state.dead)
        return DOPPEL_OK;
    if (!dp_reserve(&a->changed, &a->room, a->changes + 1, sizeof *a->changed))
        return DOPPEL_ERROR_MEMORY;
    DP_TRY(place_prepare(a->index, place, state));
    /* For the change, and for changing all back. */
    if (is_merging(place) && !dp_index_reserve_notes(a->index, a->changes + 2))
        return DOPPEL_ERROR_MEMORY;
    a->changed[a->changes++] = (changed_entry){*place, before};
    place_set(a->index, place, state);
    return DOPPEL_OK;
}

/* Gives new times to those that are there, and leaves the others. */
static doppel_status take_out_known(bulk_insert *a) {
    size_t words = dp_item_words(&a->items), value_words = a->items.bits > 64 ? 2 : 1;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < a->items.count; i++) {
        const uint64_t *item = a->items.item + i * words;
        entry_place place;
        doppel_status status = locate(a->index, dp_bits_load(item, a->items.bits), item[value_words], &place, NULL);
        if (status == DOPPEL_OK && is_there(&place))
            status = change(a, &place, (entry_state){a->items.timed ? item[value_words + 1] : 0, false});
        else
            memmove(a->items.item + kept++ * words, item, words * 8);
        if (status != DOPPEL_OK)
            return status;
    }
    a->items.count = kept;
    return DOPPEL_OK;
}

static void change_back(bulk_insert *a) {
    while (a->changes) {
        const changed_entry *last = &a->changed[--a->changes];
        place_set(a->index, &last->place, last->before);
    }
}

/* ---- entries that are new ---- */

static doppel_status add_to_head(bulk_insert *a) {
    dp_head *head = atomic_load_explicit(&a->index->current, memory_order_relaxed)->head;
    if (atomic_load_explicit(&head->count, memory_order_relaxed) + a->items.count > DP_HEAD_ROOM) {
        DP_TRY(dp_index_flush(a->index, NULL));
        head = atomic_load_explicit(&a->index->current, memory_order_relaxed)->head;
    }
    size_t words = dp_item_words(&a->items), value_words = a->items.bits > 64 ? 2 : 1;
    for (uint64_t i = 0; i < a->items.count; i++) {
        const uint64_t *item = a->items.item + i * words;
        head_add(head, &a->index->places, dp_bits_load(item, a->items.bits), item[value_words],
                 a->items.timed ? item[value_words + 1] : 0);
    }
    return DOPPEL_OK;
}

static doppel_status add_run(bulk_insert *a) {
    dp_run *run;
    doppel_status status = dp_run_from_items(&a->items, &run);
    dp_memory_free(&a->block);
    return status == DOPPEL_OK ? dp_index_flush(a->index, run) : status;
}

static doppel_status add_all(bulk_insert *a, const bulk_entries *g) {
    doppel_status status = make_items(a, g);
    const dp_version *version = atomic_load_explicit(&a->index->current, memory_order_relaxed);
    if (status == DOPPEL_OK &&
        (version->runs || version->growing || atomic_load_explicit(&version->head->count, memory_order_relaxed)))
        status = take_out_known(a);
    uint64_t count = a->items.count;
    if (status == DOPPEL_OK && count)
        status = count <= FEW ? add_to_head(a) : add_run(a);
    if (status == DOPPEL_OK)
        count_more(a->index, (int64_t)count);
    else
        change_back(a);
    return status;
}

doppel_status doppel_index_add_batch(doppel_index *index, const uint64_t *fingerprints, const uint64_t *owners,
                                     const uint64_t *expires, uint64_t count) {
    bulk_entries g = {fingerprints, owners, expires, count};
    if (!count)
        return DOPPEL_OK;
    if (count > MOST)
        return DOPPEL_ERROR_USAGE;
    DP_TRY(check_widths(index, &g));
    bulk_insert a = {.index = index};
    dp_writer_begin(index);
    doppel_status status = add_all(&a, &g);
    dp_writer_end(index);
    dp_memory_free(&a.block);
    free(a.changed);
    return status;
}

/* ---- another index ---- */

/* The entries of an index, as insert_many takes them. */
typedef struct collecting {
    dp_buffer fingerprints, owners, expires;
    size_t fingerprint_bytes;
    bool full; /* no memory */
} collecting;

static bool collect(const doppel_match *entry, void *user) {
    collecting *c = user;
    c->full = !dp_buffer_add(&c->fingerprints, entry->fingerprint, c->fingerprint_bytes) ||
              !dp_buffer_add(&c->owners, &entry->owner, 8) || !dp_buffer_add(&c->expires, &entry->expires, 8);
    return !c->full;
}

doppel_status doppel_index_merge(doppel_index *index, const doppel_index *from, doppel_error *error) {
    if (index == from)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "an index cannot be merged into itself");
    if (index->bits != from->bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "an index of %d bits cannot take one of %d", index->bits, from->bits);
    collecting c = {.fingerprint_bytes = index->bits > 64 ? 16 : 8};
    const doppel_index *damaged = from;
    doppel_status status = doppel_index_each(from, collect, &c);
    uint64_t count = c.owners.size / 8;
    if (status == DOPPEL_OK && count > MOST) {
        status = dp_fail(error, DOPPEL_ERROR_USAGE, "%llu entries are too many to merge at once; the most is %llu",
                         (unsigned long long)count, (unsigned long long)MOST);
    } else if (status == DOPPEL_OK) {
        status = doppel_index_add_batch(index, (const void *)c.fingerprints.data, (const void *)c.owners.data,
                                        (const void *)c.expires.data, count);
        /* Bits beyond the width can only come from a file that was made to deceive. */
        damaged = status == DOPPEL_ERROR_USAGE ? from : index;
        status = status == DOPPEL_ERROR_USAGE ? DOPPEL_ERROR_STORE : status;
    }
    dp_buffer_free(&c.fingerprints);
    dp_buffer_free(&c.owners);
    dp_buffer_free(&c.expires);
    if (c.full)
        return dp_no_memory(error);
    return dp_index_explain(damaged, status, error);
}
