/* growing.c - a level of new entries whose buckets grow in place (growing.h).
 *
 * dp_growing_create -> dp_growing_search, dp_growing_add -> dp_growing_run -> dp_growing_free. Before anything is
 * written every bucket that gets the entry has room, so that nothing is half there when memory runs out. Table 0 is
 * written last: a reader that finds a number in another table but not yet in table 0 treats it as absent. */
#include "hamming/growing.h"
#include "kernel/kernel.h"

#include <stdlib.h>

/* ---- creating ---- */

/* Limit of buckets in all tables: their memory is taken before the first entry. */
#define MOST_BUCKETS ((uint64_t)1 << 20)
/* A bucket should reach about this many entries: fewer waste space, more take longer to compare. */
enum { BUCKET_LOAD = 8 };

static bool is_fit(const dp_layout *layout, uint64_t planned) {
    uint64_t buckets = 0, most = 1;
    for (int t = 0; t < layout->tables; t++) {
        uint64_t own = (uint64_t)1 << layout->table[t].key_bits;
        buckets += own;
        most = own > most ? own : most;
    }
    return most > 1 && buckets <= MOST_BUCKETS && most * BUCKET_LOAD <= planned;
}

/* A forced layout, or the cheapest for the number of entries, or for fewer, with fewer buckets. */
static bool choose_layout(const dp_growing_options *options, dp_layout *layout) {
    if (options->layout[0])
        return dp_layout_parse(options->layout, options->bits, layout, NULL) == DOPPEL_OK &&
               is_fit(layout, options->planned);
    for (uint64_t count = options->planned; count >= 1 << 8; count /= 2) {
        dp_plan_run(count, options->distance, options->bits, options->bytes_per_entry, layout);
        if (is_fit(layout, options->planned))
            return true;
    }
    return false;
}

static void set_widths(dp_growing *g) {
    for (int t = 0; t < g->layout.tables; t++) {
        dp_run_table *table = &g->table[t];
        table->key_bits = g->layout.table[t].key_bits;
        table->rest_bits = dp_rest_bits(g->bits, table->key_bits);
        table->rest_bytes = (table->rest_bits + 7) / 8;
    }
}

static bool make_buckets(dp_growing *g) {
    size_t count = 0;
    for (int t = 0; t < g->layout.tables; t++)
        count += (size_t)1 << g->table[t].key_bits;
    /* Accessed at random: huge pages pay even if half of them stays unused. */
    size_t bytes = count * sizeof(uint64_t), huge = (size_t)4 << 20;
    if (!dp_memory_alloc(&g->buckets, bytes >= huge / 4 && bytes < huge ? huge : bytes))
        return false;
    memset(g->buckets.data, 0, count * sizeof(uint64_t));
    _Atomic uint64_t *bucket = g->buckets.data;
    for (int t = 0; t < g->layout.tables; t++) {
        g->bucket[t] = bucket;
        bucket += (size_t)1 << g->table[t].key_bits;
    }
    atomic_init(&g->bytes, sizeof *g + count * sizeof(uint64_t));
    return true;
}

doppel_status dp_growing_create(const dp_growing_options *options, dp_growing **made) {
    dp_layout layout;
    *made = NULL;
    if (!choose_layout(options, &layout))
        return DOPPEL_OK;
    dp_growing *g = calloc(1, sizeof *g);
    if (!g)
        return DOPPEL_ERROR_MEMORY;
    g->bits = options->bits;
    g->layout = layout;
    g->planned = options->planned;
    set_widths(g);
    if (!make_buckets(g)) {
        dp_growing_free(g);
        return DOPPEL_ERROR_MEMORY;
    }
    *made = g;
    return DOPPEL_OK;
}

void dp_growing_free(dp_growing *g) {
    if (!g)
        return;
    for (uint32_t i = 0; i < g->blocks; i++)
        dp_memory_free(&g->block[i]);
    for (int i = 0; i <= DP_MAX_BITS; i++)
        free(atomic_load_explicit(&g->schedule[i], memory_order_relaxed));
    dp_memory_free(&g->buckets);
    free(g);
}

/* ---- chunks ---- */

static uint64_t entry_bytes(const dp_growing *g, int table) {
    uint64_t bytes = (g->bits > 64 ? 8U : 4U) + (uint64_t)g->table[table].rest_bytes;
    return table ? bytes : bytes + 17; /* owner, time, whether dead */
}

/* Where a new chunk lies, in units; UINT32_MAX when out of memory. One larger than a block gets its own block. */
static uint32_t new_chunk(dp_growing *g, int table, unsigned size) {
    uint64_t bytes = dp_chunk_capacity(size) * entry_bytes(g, table);
    uint64_t units = (bytes + DP_CHUNK_UNIT - 1) / DP_CHUNK_UNIT;
    if (!g->blocks || g->used + units > DP_BLOCK_UNITS) {
        uint64_t whole = units > DP_BLOCK_UNITS ? units : DP_BLOCK_UNITS;
        if (g->blocks == DP_MOST_BLOCKS || !dp_memory_alloc(&g->block[g->blocks], whole * DP_CHUNK_UNIT))
            return UINT32_MAX;
        g->used = g->blocks++ == 0; /* unit 0 stays free: a bucket whose number is 0 has no chunk */
        atomic_fetch_add_explicit(&g->bytes, whole * DP_CHUNK_UNIT, memory_order_relaxed);
    }
    uint32_t at = (g->blocks - 1) * DP_BLOCK_UNITS + g->used;
    g->used = units > DP_BLOCK_UNITS ? DP_BLOCK_UNITS : g->used + (uint32_t)units;
    return at;
}

/* Times and dead bytes are atomic, but only the writer changes them: it may copy them as bytes, and nobody reads the
 * copy yet. */
static void copy_chunk(const dp_growing *g, int table, const dp_chunk *from, dp_chunk *to) {
    size_t filter = g->bits > 64 ? 8 : 4, rest = (size_t)g->table[table].rest_bytes;
    memcpy((uint8_t *)(uintptr_t)to->filter, from->filter, from->count * filter);
    memcpy((uint8_t *)(uintptr_t)to->rest, from->rest, from->count * rest);
    if (table)
        return;
    const uint8_t *old = from->rest + from->capacity * rest;
    uint8_t *new = (uint8_t *)(uintptr_t)(to->rest + to->capacity * rest);
    memcpy(new, old, from->count * 8);
    memcpy(new + to->capacity * 8, old + from->capacity * 8, from->count * 8);
    memcpy(new + to->capacity * 16, old + from->capacity * 16, from->count);
}

/* Makes sure that a bucket has room for one more. */
static bool reserve_place(dp_growing *g, int table, uint64_t key) {
    uint64_t word = atomic_load_explicit(&g->bucket[table][key], memory_order_relaxed), count = word & DP_GROWING_MOST;
    unsigned size = (unsigned)(word >> 24 & 255);
    if (word && count < dp_chunk_capacity(size))
        return true;
    unsigned larger = word ? size + 1 : 0;
    uint32_t at = new_chunk(g, table, larger);
    if (at == UINT32_MAX)
        return false;
    dp_chunk old = dp_growing_chunk(g, table, key);
    uint64_t moved = (uint64_t)at << 32 | (uint64_t)larger << 24 | count;
    if (count) {
        const uint8_t *data = (const uint8_t *)g->block[at / DP_BLOCK_UNITS].data;
        dp_chunk new = {.filter = data + (size_t)(at % DP_BLOCK_UNITS) * DP_CHUNK_UNIT,
                        .capacity = dp_chunk_capacity(larger)};
        new.rest = new.filter + new.capacity *(g->bits > 64 ? 8 : 4);
        copy_chunk(g, table, &old, &new);
    }
    atomic_store_explicit(&g->bucket[table][key], moved, memory_order_release);
    return true;
}

/* ---- adding ---- */

static inline uint64_t key_of(const dp_growing *g, int table, dp_bits arranged) {
    int key_bits = g->table[table].key_bits;
    return key_bits ? (uint64_t)(arranged >> (g->bits - key_bits)) : 0;
}

/* Writes a number, without its key, to the next place of its bucket, which has room; the caller publishes it. */
static dp_chunk write_number(dp_growing *g, int table, uint64_t key, const uint64_t *arranged) {
    dp_chunk chunk = dp_growing_chunk(g, table, key);
    uint8_t *filter = (uint8_t *)(uintptr_t)chunk.filter, *rest = (uint8_t *)(uintptr_t)chunk.rest;
    const dp_run_table *widths = &g->table[table];
    uint64_t above = g->bits > 64 ? arranged[1] : arranged[0] >> 32;
    uint32_t half = (uint32_t)arranged[0];
    if (g->bits > 64)
        memcpy(filter + chunk.count * 8, arranged, 8);
    else
        memcpy(filter + chunk.count * 4, &half, 4);
    above = widths->rest_bits ? above & (UINT64_MAX >> (64 - widths->rest_bits)) : 0;
    for (int i = 0; i < widths->rest_bytes; i++)
        rest[chunk.count * (uint64_t)widths->rest_bytes + (uint64_t)i] = (uint8_t)(above >> (8 * i));
    return chunk;
}

static void publish_place(dp_growing *g, int table, uint64_t key) {
    uint64_t word = atomic_load_explicit(&g->bucket[table][key], memory_order_relaxed);
    atomic_store_explicit(&g->bucket[table][key], word + 1, memory_order_release);
}

static void write_entry(dp_growing *g, const dp_chunk *chunk, uint64_t owner, uint64_t expires) {
    dp_growing_entry entry = dp_growing_place(g, chunk, chunk->count);
    *entry.owner = owner;
    atomic_init(entry.expires, expires);
    atomic_init(entry.dead, 0);
}

static void count_one(_Atomic uint64_t *count) {
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
}

bool dp_growing_add(dp_growing *g, const dp_growing_keys *keys, int same, uint64_t owner, uint64_t expires) {
    int tables = same ? 1 : g->layout.tables;
    for (int t = 0; t < tables; t++)
        if (!reserve_place(g, t, keys->key[t]))
            return false;
    for (int t = tables - 1; t >= 0; t--) {
        dp_chunk chunk = write_number(g, t, keys->key[t], keys->arranged[t]);
        if (t == 0)
            write_entry(g, &chunk, owner, expires);
        publish_place(g, t, keys->key[t]);
    }
    count_one(&g->entries);
    if (!same)
        count_one(&g->fingerprints);
    return true;
}

void dp_growing_prepare(const dp_growing *g, dp_bits value, dp_growing_keys *keys) {
    for (int t = 0; t < g->layout.tables; t++) {
        const dp_table_layout *layout = &g->layout.table[t];
        dp_bits arranged =
            g->bits > 64 ? dp_layout_arrange(layout, value) : dp_layout_arrange64(layout, g->bits, (uint64_t)value);
        keys->key[t] = key_of(g, t, arranged);
        dp_bits_store(arranged, keys->arranged[t]);
        __builtin_prefetch((const void *)&g->bucket[t][keys->key[t]]);
    }
}

void dp_growing_prefetch(const dp_growing *g, const dp_growing_keys *keys) {
    size_t size = g->bits > 64 ? 8 : 4;
    for (int t = 0; t < g->layout.tables; t++) {
        dp_chunk chunk = dp_growing_chunk(g, t, keys->key[t]);
        if (!chunk.filter)
            continue;
        __builtin_prefetch(chunk.filter);
        __builtin_prefetch(chunk.filter + chunk.count * size);
        __builtin_prefetch(chunk.rest + chunk.count * (size_t)g->table[t].rest_bytes);
        if (t)
            continue;
        dp_growing_entry entry = dp_growing_place(g, &chunk, chunk.count);
        __builtin_prefetch(entry.owner);
        __builtin_prefetch((const void *)entry.expires);
        __builtin_prefetch((const void *)entry.dead);
    }
}

/* ---- looking up ---- */

void dp_growing_search(const dp_growing *g, dp_bits value, dp_growing_places *places) {
    enum { STEP = 512 };
    uint32_t hits[STEP + 16];
    uint64_t key = key_of(g, 0, value);
    size_t size = g->bits > 64 ? 8 : 4;
    dp_chunk chunk = dp_growing_chunk(g, 0, key);
    places->chunk = chunk;
    places->count = 0;
    for (uint64_t from = 0; from < chunk.count; from += STEP) {
        size_t count = chunk.count - from < STEP ? (size_t)(chunk.count - from) : STEP;
        const void *column = chunk.filter + from * size;
        size_t found = size == 8 ? dp_near64_kernel()(column, count, (uint64_t)value, 0, hits)
                                 : dp_near32_kernel()(column, count, (uint32_t)value, 0, hits);
        for (size_t i = 0; i < found && places->count < DP_SAME_MOST; i++)
            if (dp_growing_arranged(g, 0, key, &chunk, from + hits[i]) == value)
                places->place[places->count++] = (uint32_t)(from + hits[i]);
    }
}

/* ---- expiry ---- */

uint64_t dp_growing_expire(dp_growing *g, uint64_t now) {
    uint64_t expired = 0;
    for (uint64_t key = 0; key < (uint64_t)1 << g->table[0].key_bits; key++) {
        dp_chunk chunk = dp_growing_chunk(g, 0, key);
        for (uint64_t i = 0; i < chunk.count; i++) {
            dp_growing_entry entry = dp_growing_place(g, &chunk, i);
            uint64_t expires = atomic_load_explicit(entry.expires, memory_order_relaxed);
            if (!expires || expires > now || atomic_load_explicit(entry.dead, memory_order_relaxed))
                continue;
            atomic_store_explicit(entry.dead, 1, memory_order_release);
            expired++;
        }
    }
    return expired;
}

/* ---- a run of it ---- */

/* What was read so far, with times, and room to sort a bucket. */
typedef struct listing {
    dp_items items;
    uint64_t *scratch, times; /* times: all of them, or-ed */
    size_t room, scratch_room;
} listing;

/* Adds what is alive of a bucket of table 0, sorted. False when out of memory. */
static bool list_bucket(const dp_growing *g, uint64_t key, listing *l) {
    dp_chunk chunk = dp_growing_chunk(g, 0, key);
    size_t words = dp_item_words(&l->items), need = chunk.count * words;
    if (!dp_reserve(&l->items.item, &l->room, l->items.count * words + need, sizeof(uint64_t)) ||
        !dp_reserve(&l->scratch, &l->scratch_room, need, sizeof(uint64_t)))
        return false;
    dp_items part = {.item = l->items.item + l->items.count * words, .bits = g->bits, .timed = true};
    for (uint64_t i = 0; i < chunk.count; i++) {
        dp_growing_entry entry = dp_growing_place(g, &chunk, i);
        if (atomic_load_explicit(entry.dead, memory_order_acquire))
            continue;
        uint64_t *item = part.item + part.count++ * words, value[2];
        dp_bits_store(dp_growing_arranged(g, 0, key, &chunk, i), value);
        for (int w = 0; w < (g->bits > 64 ? 2 : 1); w++)
            *item++ = value[w];
        *item++ = *entry.owner;
        l->times |= *item = atomic_load_explicit(entry.expires, memory_order_relaxed);
    }
    if (part.count > 1)
        dp_items_sort(&part, l->scratch);
    l->items.count += part.count;
    return true;
}

/* Table 0 has the order of the numbers: bucket by bucket they ascend. */
doppel_status dp_growing_run(const dp_growing *g, dp_run **run) {
    listing l = {.items = {.bits = g->bits, .timed = true}};
    doppel_status status = DOPPEL_OK;
    *run = NULL;
    for (uint64_t key = 0; key < (uint64_t)1 << g->table[0].key_bits && status == DOPPEL_OK; key++)
        if (dp_growing_chunk(g, 0, key).count && !list_bucket(g, key, &l))
            status = DOPPEL_ERROR_MEMORY;
    free(l.scratch);
    if (!l.times)
        dp_items_drop_times(&l.items);
    if (status == DOPPEL_OK && l.items.count)
        status = dp_run_from_items(&l.items, run);
    free(l.items.item);
    return status;
}
