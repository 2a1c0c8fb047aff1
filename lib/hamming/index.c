/* index.c - the calls that change an index, and what it publishes to readers.
 *
 * doppel_index_create -> doppel_index_add, doppel_index_add_batch, doppel_index_merge, doppel_index_remove,
 * doppel_index_expire, doppel_index_compact -> doppel_index_free. find.c reads.
 *
 * New entries go into the head; a full head becomes a run. An entry stands in one place at most, dead or alive, in the
 * head or in a run: what is inserted again is revived where it stands. One thread writes, any number read. */
#include "hamming/index.h"

#include <sched.h>
#include <stdlib.h>

/* ---- the head: the newest entries, before they go into a run ---- */

static dp_head *head_create(int bits) {
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

static void drop_times(dp_items *items) {
    size_t words = dp_item_words(items);
    for (uint64_t i = 1; i < items->count; i++)
        memmove(items->item + i * (words - 1), items->item + i * words, (words - 1) * 8);
    items->timed = false;
}

doppel_status dp_head_run(const dp_head *head, dp_run **run) {
    dp_items items = {.bits = head->bits, .timed = true};
    size_t room = DP_HEAD_ROOM * dp_item_words(&items);
    *run = NULL;
    if (!(items.item = malloc(2 * room * sizeof *items.item)))
        return DOPPEL_ERROR_MEMORY;
    if (!list_items(head, &items))
        drop_times(&items);
    dp_items_sort(&items, items.item + room);
    doppel_status status = items.count ? dp_run_from_items(&items, run) : DOPPEL_OK;
    free(items.item);
    return status;
}

/* ---- versions: what readers see, and when it is freed ----
 *
 * A reader announces the version it is going to read in a free slot, then looks whether it is still the published one:
 * if so, the writer, which publishes first and looks at the slots after, sees the announcement and keeps it. Both sides
 * use sequentially consistent operations, so one of the two always sees the other. A run or a head is freed with the
 * last version that holds it. */

/* Where this thread found a free slot last: it is free most likely, and its line is in this core's cache. */
static _Thread_local unsigned own_slot = UINT32_MAX;

static unsigned first_slot(void) {
    static _Atomic unsigned next;
    if (own_slot == UINT32_MAX)
        own_slot = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % DP_PINS;
    return own_slot;
}

dp_pinned dp_index_pin(const doppel_index *index) {
    doppel_index *shared = (doppel_index *)index; /* the slots are the readers' to write */
    for (unsigned slot = first_slot(), tried = 1;; slot = (slot + 1) % DP_PINS, tried++) {
        dp_version *version = atomic_load(&shared->current), *none = NULL;
        dp_pin *pin = &shared->pin[slot];
        if (atomic_compare_exchange_strong(&pin->version, &none, version)) {
            if (atomic_load(&shared->current) == version) {
                own_slot = slot;
                return (dp_pinned){version, pin};
            }
            atomic_store(&pin->version, NULL);
        }
        if (tried % DP_PINS == 0)
            sched_yield(); /* more readers at once than slots */
    }
}

void dp_index_unpin(dp_pinned pinned) {
    atomic_store_explicit(&pinned.pin->version, NULL, memory_order_release);
}

static void let_go(dp_version *version) {
    for (int i = 0; i < version->runs; i++)
        if (--version->run[i]->versions == 0)
            dp_run_free(version->run[i]);
    if (version->head && --version->head->versions == 0)
        free(version->head);
    free(version);
}

static bool is_pinned(const doppel_index *index, const dp_version *version) {
    for (int i = 0; i < DP_PINS; i++)
        if (atomic_load(&index->pin[i].version) == version)
            return true;
    return false;
}

/* Frees the retired versions that no reader has pinned. */
static void free_retired(doppel_index *index) {
    for (dp_version **link = &index->retired; *link;) {
        dp_version *version = *link;
        if (is_pinned(index, version)) {
            link = &version->next;
        } else {
            *link = version->next;
            let_go(version);
        }
    }
}

/* Publishes the runs (largest first) and a head, and frees what no reader holds any more. Takes over the runs that the
 * version before does not hold. False when there is no memory: nothing has changed, and the runs stay the caller's. */
static bool publish_version(doppel_index *index, dp_run *const *runs, int count, dp_head *head) {
    dp_version *version = calloc(1, sizeof *version),
               *before = atomic_load_explicit(&index->current, memory_order_relaxed);
    if (!version)
        return false;
    version->runs = count;
    for (int i = 0; i < count; i++) {
        version->run[i] = runs[i];
        runs[i]->versions++;
    }
    version->head = head;
    head->versions++;
    atomic_store(&index->current, version);
    if (before) {
        before->next = index->retired;
        index->retired = before;
    }
    free_retired(index);
    return true;
}

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
    dp_head *head = head_create(index->bits);
    if (!head || !publish_version(index, runs, count, head)) {
        free(head);
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
    while (index->retired) {
        dp_version *version = index->retired;
        index->retired = version->next;
        let_go(version);
    }
    let_go(atomic_load_explicit(&index->current, memory_order_relaxed));
    dp_memory_pool_free(&index->pool);
    free(index);
}

/* ---- levels: when runs are merged ----
 *
 * Level i has runs of up to DP_HEAD_ROOM * RATIO^i entries, one at a time: what comes from the head is merged with the
 * run of level 1; when that becomes too large for its level, with the run of the next one too, all in one merge. An
 * entry is so moved about RATIO / 2 times a level. Runs of which half is dead are merged with whatever comes. */

/* Reads look at one run a level, writes move an entry RATIO / 2 times a level. */
enum { RATIO = 16 };

static int level_of(uint64_t count) {
    int level = 1;
    for (uint64_t most = DP_HEAD_ROOM * RATIO; most < count && level < 16; most *= RATIO)
        level++;
    return level;
}

static bool is_mostly_dead(const dp_run *run) {
    uint64_t dead = atomic_load_explicit(&run->dead_count, memory_order_relaxed);
    return dead >= DP_HEAD_ROOM && dead > dp_run_slots(run) / 2;
}

/* Whether some run is mostly dead: flush_head makes it anew. */
static bool is_untidy(const doppel_index *index) {
    const dp_version *version = atomic_load_explicit(&index->current, memory_order_relaxed);
    for (int i = 0; i < version->runs; i++)
        if (is_mostly_dead(version->run[i]))
            return true;
    return false;
}

/* What a flush works on. */
typedef struct run_flush {
    doppel_index *index;
    const dp_version *version;
    dp_run *more, *head_run; /* without tables; NULL: none */
    bool chosen[DP_MAX_RUNS];
    dp_merging merging;
    dp_run *made;
    uint64_t total; /* positions that are merged, at most */
} run_flush;

_Static_assert(DP_MERGE_MOST == DP_MAX_RUNS + 2, "all runs, what comes, and the head");

static bool choose(run_flush *f, int i) {
    uint64_t count = f->version->run[i]->count;
    if (f->chosen[i] || f->total + count > DP_RUN_MOST)
        return false;
    f->chosen[i] = true;
    f->total += count;
    return true;
}

/* Marks the runs that are merged with what comes: from the smallest up, while the sum is of their level. */
static void choose_runs(run_flush *f, bool all) {
    const dp_version *version = f->version;
    f->total = (f->more ? f->more->count : 0) + (f->head_run ? f->head_run->count : 0);
    for (int i = 0; i < version->runs; i++)
        if (all || is_mostly_dead(version->run[i]))
            choose(f, i);
    for (int i = version->runs - 1; i >= 0; i--)
        if (level_of(version->run[i]->count) <= level_of(f->total) || i >= DP_MAX_RUNS - 2)
            choose(f, i);
}

static void list_sources(run_flush *f) {
    for (int i = 0; i < f->version->runs; i++)
        if (f->chosen[i])
            f->merging.run[f->merging.count++] = f->version->run[i];
    if (f->more)
        f->merging.run[f->merging.count++] = f->more;
    if (f->head_run)
        f->merging.run[f->merging.count++] = f->head_run;
}

/* The runs become one, without tables. A single one that has none is taken as it is. */
static doppel_status merge_sources(run_flush *f) {
    if (f->merging.count == 1 && f->merging.run[0]->values) {
        f->made = f->more ? f->more : f->head_run;
        f->more = f->head_run = NULL;
        f->merging.count = 0;
        return DOPPEL_OK;
    }
    return dp_run_merge(&f->merging, &f->made);
}

doppel_status dp_index_build(const doppel_index *index, dp_run *run, const dp_merging *merging) {
    dp_layout layout;
    if (index->layout_name[0]) {
        DP_TRY(dp_layout_parse(index->layout_name, index->bits, &layout, NULL));
    } else {
        dp_plan_run(run->count, index->distance, index->bits, index->bytes_per_entry, &layout);
    }
    return dp_run_build(run, &layout, merging);
}

/* The runs that were not chosen, and the new one, largest first. */
static doppel_status publish(run_flush *f) {
    dp_run *runs[DP_MAX_RUNS + 1];
    int count = 0;
    dp_run *made = f->made && f->made->count ? f->made : NULL;
    bool placed = !made;
    for (int i = 0; i < f->version->runs; i++) {
        dp_run *run = f->version->run[i];
        if (!placed && made->count > run->count && (placed = true))
            runs[count++] = made;
        if (!f->chosen[i])
            runs[count++] = run;
    }
    if (!placed)
        runs[count++] = made;
    dp_head *head = head_create(f->index->bits);
    if (!head || !publish_version(f->index, runs, count, head)) {
        free(head);
        return DOPPEL_ERROR_MEMORY;
    }
    memset(&f->index->places, 0, sizeof f->index->places);
    if (made)
        f->made = NULL;
    return DOPPEL_OK;
}

static doppel_status merge_runs(run_flush *f, bool all) {
    doppel_status status = dp_head_run(f->version->head, &f->head_run);
    if (status != DOPPEL_OK)
        return status;
    choose_runs(f, all);
    list_sources(f);
    if (f->merging.count)
        status = merge_sources(f);
    if (status == DOPPEL_OK && f->made && f->made->count)
        status = dp_index_build(f->index, f->made, f->merging.count ? &f->merging : NULL);
    return status == DOPPEL_OK ? publish(f) : status;
}

/* Whether everything is in one run already, and all of it alive. */
static bool is_compact(const dp_version *version) {
    return version->runs <= 1 && !atomic_load_explicit(&version->head->count, memory_order_relaxed) &&
           (!version->runs || !atomic_load_explicit(&version->run[0]->dead_count, memory_order_relaxed));
}

/* Puts what stands in the head, in `more` (may be NULL; a run without tables, taken over in any case) and in runs that
 * are not much larger into one run; with `all`, all runs. */
static doppel_status flush_head(doppel_index *index, dp_run *more, bool all) {
    if (!more && all && is_compact(atomic_load_explicit(&index->current, memory_order_relaxed)))
        return DOPPEL_OK;
    run_flush *f = calloc(1, sizeof *f);
    if (!f) {
        dp_run_free(more);
        return DOPPEL_ERROR_MEMORY;
    }
    f->index = index;
    f->version = atomic_load_explicit(&index->current, memory_order_relaxed);
    f->more = more;
    f->merging.pool = &index->pool;
    doppel_status status = merge_runs(f, all);
    dp_merging_free(&f->merging);
    dp_run_free(f->more);
    dp_run_free(f->head_run);
    dp_run_free(f->made);
    free(f);
    return status;
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

/* ---- what changes in a run ---- */

/* Makes room for times, so that setting them cannot fail: DOPPEL_OK, DOPPEL_ERROR_MEMORY, or DOPPEL_ERROR_STORE where
 * the times of a file are damaged. */
static doppel_status prepare_expires(dp_run *run) {
    _Atomic uint64_t *there = atomic_load_explicit(&run->expires, memory_order_relaxed);
    if (there && (!run->backing || (void *)there == run->expires_memory))
        return DOPPEL_OK;
    uint64_t slots = dp_run_slots(run);
    /* What a file holds was written as plain numbers, and has been checked before it is copied. */
    doppel_status status = there ? dp_run_touch(run, (const void *)there, slots * sizeof(uint64_t)) : DOPPEL_OK;
    if (status != DOPPEL_OK)
        return status;
    _Atomic uint64_t *column = calloc(slots ? slots : 1, sizeof *column);
    if (!column)
        return DOPPEL_ERROR_MEMORY;
    for (uint64_t i = 0; there && i < slots; i++)
        atomic_init(&column[i], atomic_load_explicit(&there[i], memory_order_relaxed));
    run->expires_memory = column;
    atomic_store_explicit(&run->expires, column, memory_order_release);
    return DOPPEL_OK;
}

static void set_expires(dp_run *run, uint64_t slot, uint64_t expires) {
    _Atomic uint64_t *column = atomic_load_explicit(&run->expires, memory_order_relaxed);
    atomic_store_explicit(&column[slot], expires, memory_order_relaxed);
}

static void set_dead(dp_run *run, uint64_t slot, bool dead) {
    _Atomic uint64_t *words = atomic_load_explicit(&run->dead, memory_order_relaxed);
    uint64_t bit = (uint64_t)1 << (slot % 64), word = atomic_load_explicit(&words[slot / 64], memory_order_relaxed);
    if (!(word & bit) == !dead)
        return;
    /* There is one writer, so reading and storing need not be one step. Release: a reader that sees an entry alive
     * again sees its new time. */
    atomic_store_explicit(&words[slot / 64], word ^ bit, memory_order_release);
    uint64_t count = atomic_load_explicit(&run->dead_count, memory_order_relaxed);
    atomic_store_explicit(&run->dead_count, dead ? count + 1 : count - 1, memory_order_relaxed);
}

/* ---- where an entry stands ---- */

/* Where an entry stands, for the writer: in the head or in a run; with neither, nowhere. */
typedef struct entry_place {
    dp_head *head;
    dp_run *run;
    uint64_t slot;
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

static doppel_status locate(const doppel_index *index, dp_bits value, uint64_t owner, entry_place *place) {
    const dp_version *version = atomic_load_explicit(&index->current, memory_order_relaxed);
    *place = (entry_place){0};
    prefetch_runs((const dp_run *const *)version->run, version->runs, value);
    uint64_t i = head_search(version->head, &index->places, value, owner);
    if (i < DP_HEAD_ROOM) {
        *place = (entry_place){.head = version->head, .slot = i};
        return DOPPEL_OK;
    }
    for (int r = 0; r < version->runs; r++) {
        bool found;
        uint64_t slot;
        DP_TRY(dp_run_slot(version->run[r], value, owner, &found, &slot));
        if (found) {
            *place = (entry_place){.run = version->run[r], .slot = slot};
            return DOPPEL_OK;
        }
    }
    return DOPPEL_OK;
}

static entry_state place_state(const entry_place *place) {
    if (place->head)
        return (entry_state){atomic_load_explicit(&place->head->expires[place->slot], memory_order_relaxed),
                             atomic_load_explicit(&place->head->dead[place->slot], memory_order_relaxed)};
    return (entry_state){dp_run_expires(place->run, place->slot), dp_run_is_dead(place->run, place->slot)};
}

/* Makes sure that a state can be set: DOPPEL_OK, DOPPEL_ERROR_MEMORY, or DOPPEL_ERROR_STORE for a damaged file. */
static doppel_status place_prepare(const entry_place *place, entry_state state) {
    if (place->head)
        return DOPPEL_OK;
    entry_state now = place_state(place);
    doppel_status status = state.expires != now.expires ? prepare_expires(place->run) : DOPPEL_OK;
    return status == DOPPEL_OK && state.dead != now.dead ? dp_run_prepare_dead(place->run) : status;
}

/* So many entries more, or fewer. */
static void count_more(doppel_index *index, int64_t more) {
    uint64_t entries = atomic_load_explicit(&index->entries, memory_order_relaxed);
    atomic_store_explicit(&index->entries, entries + (uint64_t)more, memory_order_relaxed);
}

/* Sets a state that was prepared, and counts the entry. */
static void place_set(doppel_index *index, const entry_place *place, entry_state state) {
    entry_state now = place_state(place);
    if (place->head) {
        atomic_store_explicit(&place->head->expires[place->slot], state.expires, memory_order_relaxed);
        atomic_store_explicit(&place->head->dead[place->slot], state.dead, memory_order_release);
    } else {
        if (state.expires != now.expires)
            set_expires(place->run, place->slot, state.expires);
        if (state.dead != now.dead)
            set_dead(place->run, place->slot, state.dead);
    }
    count_more(index, (int64_t)now.dead - (int64_t)state.dead);
}

/* ---- one entry ---- */

doppel_status doppel_index_add(doppel_index *index, const uint64_t *fingerprint, uint64_t owner, uint64_t expires) {
    if (!dp_index_has_width(index, fingerprint))
        return DOPPEL_ERROR_USAGE;
    dp_bits value = dp_order_apply(&index->order, dp_bits_load(fingerprint, index->bits));
    entry_place place;
    doppel_status status = locate(index, value, owner, &place);
    if (status != DOPPEL_OK)
        return status;
    if (place.head || place.run) {
        entry_state state = {expires, false};
        if ((status = place_prepare(&place, state)) == DOPPEL_OK)
            place_set(index, &place, state);
        return status;
    }
    dp_head *head = atomic_load_explicit(&index->current, memory_order_relaxed)->head;
    if (atomic_load_explicit(&head->count, memory_order_relaxed) == DP_HEAD_ROOM) {
        DP_TRY(flush_head(index, NULL, false));
        head = atomic_load_explicit(&index->current, memory_order_relaxed)->head;
    }
    head_add(head, &index->places, value, owner, expires);
    count_more(index, 1);
    return DOPPEL_OK;
}

/* Rewrites runs of which most is dead. When there is no memory for it now, a later change will do it. */
static void tidy(doppel_index *index) {
    if (is_untidy(index))
        (void)flush_head(index, NULL, false);
}

doppel_status doppel_index_remove(doppel_index *index, const uint64_t *fingerprint, uint64_t owner, bool *removed) {
    if (removed)
        *removed = false;
    if (!dp_index_has_width(index, fingerprint))
        return DOPPEL_ERROR_USAGE;
    dp_bits value = dp_order_apply(&index->order, dp_bits_load(fingerprint, index->bits));
    entry_place place;
    doppel_status status = locate(index, value, owner, &place);
    if (status != DOPPEL_OK || (!place.head && !place.run))
        return status;
    entry_state state = place_state(&place);
    if (state.dead)
        return DOPPEL_OK;
    state.dead = true;
    DP_TRY(place_prepare(&place, state));
    place_set(index, &place, state);
    if (removed)
        *removed = true;
    tidy(index);
    return DOPPEL_OK;
}

/* ---- the whole index ---- */

static uint64_t purge_head(doppel_index *index, dp_head *head, uint64_t now) {
    uint64_t count = atomic_load_explicit(&head->count, memory_order_relaxed), purged = 0;
    for (uint64_t i = 0; i < count; i++) {
        entry_place place = {.head = head, .slot = i};
        entry_state state = place_state(&place);
        if (state.dead || !state.expires || state.expires > now)
            continue;
        place_set(index, &place, (entry_state){state.expires, true});
        purged++;
    }
    return purged;
}

static doppel_status purge_run(doppel_index *index, dp_run *run, uint64_t now, uint64_t *purged) {
    const void *column = (const void *)atomic_load_explicit(&run->expires, memory_order_relaxed);
    uint64_t slots = dp_run_slots(run);
    if (!column)
        return DOPPEL_OK;
    doppel_status status = column == run->expires_memory ? DOPPEL_OK : dp_run_touch(run, column, slots * 8);
    if (status != DOPPEL_OK)
        return status;
    DP_TRY(dp_run_prepare_dead(run));
    /* Slots that hold no entry, but where a list begins or how long it is, have no time. */
    for (uint64_t slot = 0; slot < slots; slot++) {
        uint64_t expires = dp_run_expires(run, slot);
        if (!expires || expires > now || dp_run_is_dead(run, slot))
            continue;
        set_dead(run, slot, true);
        count_more(index, -1);
        ++*purged;
    }
    return DOPPEL_OK;
}

doppel_status doppel_index_expire(doppel_index *index, uint64_t now, uint64_t *purged) {
    const dp_version *version = atomic_load_explicit(&index->current, memory_order_relaxed);
    uint64_t count = purge_head(index, version->head, now);
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < version->runs && status == DOPPEL_OK; i++)
        status = purge_run(index, version->run[i], now, &count);
    if (purged)
        *purged = count;
    tidy(index);
    return status;
}

doppel_status doppel_index_compact(doppel_index *index, doppel_error *error) {
    doppel_status status = flush_head(index, NULL, true);
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
    DP_TRY(place_prepare(place, state));
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
        doppel_status status = locate(a->index, dp_bits_load(item, a->items.bits), item[value_words], &place);
        if (status == DOPPEL_OK && (place.head || place.run))
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
        DP_TRY(flush_head(a->index, NULL, false));
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
    return status == DOPPEL_OK ? flush_head(a->index, run, false) : status;
}

static doppel_status add_all(bulk_insert *a, const bulk_entries *g) {
    doppel_status status = make_items(a, g);
    const dp_version *version = atomic_load_explicit(&a->index->current, memory_order_relaxed);
    if (status == DOPPEL_OK && (version->runs || atomic_load_explicit(&version->head->count, memory_order_relaxed)))
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
    doppel_status status = add_all(&a, &g);
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
