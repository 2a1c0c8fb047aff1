/* held_tables.c - the tables of the held side: planned as those of an index are, filled by counting. */
#include "index/costs.h"
#include "index/flips.h"
#include "index/held.h"

#include <math.h>
#include <stdlib.h>

/* Comparing so many takes less than looking into a few tables: some 30 ns. */
#define FEW 256

/* ---- planning ---- */

void dp_held_add_piece(dp_held_table *table, dp_cut cut, int left) {
    int width = cut.width < left ? cut.width : left, from = cut.from + cut.width - width;
    table->piece[table->pieces++] = (dp_cut){(uint8_t)from, (uint8_t)width};
    table->key_bits += width;
    table->key_mask |= (((dp_bits)1 << width) - 1) << from;
}

/* The key is made of the first cuts, the last of them by its top. */
static void set_key(const dp_table_layout *layout, dp_held_table *table) {
    for (int i = 0; i < layout->cuts && table->key_bits < layout->key_bits; i++)
        dp_held_add_piece(table, layout->cut[i], layout->key_bits - table->key_bits);
}

/* Up to this share of a bucket may pass its filter and be looked at in full. */
#define FILTER_SHARE (1.0 / 64)

/* Filters by the 32 low or high bits, whichever have fewer bits of the key; unless too many would pass. */
static void set_filter(const dp_held *held, dp_held_table *table) {
    int high = held->bits > 32 ? held->bits - 32 : 0;
    uint32_t in_low = (uint32_t)table->key_mask, in_high = (uint32_t)(table->key_mask >> high);
    table->from = __builtin_popcount(in_high) < __builtin_popcount(in_low) ? high : 0;
    int tell = (held->bits < 32 ? held->bits : 32) - __builtin_popcount(table->from ? in_high : in_low);
    if (held->words > 1 || dp_ball(tell, held->distance) > ldexp(FILTER_SHARE, tell))
        table->from = -1;
}

void dp_held_add_table(dp_held *held, const dp_held_table *made) {
    dp_held_table *table = &held->table[held->tables++];
    *table = *made;
    set_filter(held, table);
    table->flip_count = (size_t)dp_ball(table->key_bits, table->radius);
    held->probes += table->flip_count;
}

/* Chooses the tables. An entry takes its fingerprint and its id in each; the plans of an index count a little less, so
 * that they are given two thirds of the memory. */
static void plan(dp_held *held, uint64_t memory) {
    dp_layout layout;
    doppel_costs costs;
    int radius[DP_MAX_TABLES];
    doppel_costs_get(&costs);
    dp_question question = {&costs, held->distinct, held->distance};
    dp_plan_run(held->distinct, held->distance, held->bits, (double)memory / held->distinct / 1.5, &layout);
    if (!dp_layout_radii(&layout, held->distance, held->distinct, radius)) {
        held->nanoseconds = dp_effort_scan(&question, &layout).nanoseconds;
        return;
    }
    dp_effort effort = dp_effort_find(&question, &layout, radius);
    held->nanoseconds = effort.nanoseconds;
    for (int t = 0; t < layout.tables; t++)
        if (radius[t] >= 0) {
            dp_held_table table = {.radius = radius[t], .parts = ~0U};
            set_key(&layout.table[t], &table);
            dp_held_add_table(held, &table);
        }
}

static uint64_t table_bytes(const dp_held *held, const dp_held_table *table) {
    uint64_t each = table->from < 0 ? held->words * 8 + 4 : 8;
    return held->distinct * each + ((uint64_t)4 << table->key_bits) + 4 * table->flip_count;
}

uint64_t dp_held_table_bytes(const dp_held *held) {
    uint64_t bytes = 0;
    for (int t = 0; t < held->tables; t++)
        bytes += table_bytes(held, &held->table[t]);
    return bytes;
}

uint64_t dp_held_bytes(const dp_held *held) {
    return held->count * 4 + (uint64_t)held->distinct * (held->words * 8 + 4) + dp_held_table_bytes(held);
}

/* ---- filling ---- */

static bool allocate(const dp_held *held, dp_held_table *table) {
    table->flips = malloc(table->flip_count * sizeof *table->flips);
    table->directory = dp_big_alloc((((size_t)1 << table->key_bits) + 2) * sizeof *table->directory);
    table->ids = dp_big_alloc(((size_t)held->distinct + 1) * sizeof *table->ids);
    if (table->from < 0)
        table->column = dp_big_alloc(((size_t)held->distinct + 1) * held->words * sizeof *table->column);
    else
        table->filter = dp_big_alloc(((size_t)held->distinct + 1) * sizeof *table->filter);
    return table->flips && table->directory && table->ids && (table->column || table->filter);
}

static void set_flips(dp_held_table *table) {
    uint32_t flip = 0;
    for (size_t i = 0; i < table->flip_count; i++) {
        table->flips[i] = flip;
        flip = dp_flip_after(flip, table->key_bits);
    }
}

/* Sorts ids by key: counts of a key stand at key + 2, their sums say at key + 1 where it begins, and are moved on from
 * there to where it ends, which is where the next begins. */
static void fill(const dp_held *held, dp_held_table *table) {
    size_t entries = ((size_t)1 << table->key_bits) + 2, words = held->words;
    uint32_t *directory = table->directory;
    memset(directory, 0, entries * sizeof *directory);
    for (uint32_t id = 0; id < held->distinct; id++)
        directory[dp_held_key(table, dp_bits_load(held->values + id * words, held->bits)) + 2]++;
    for (size_t i = 1; i < entries; i++)
        directory[i] += directory[i - 1];
    for (uint32_t id = 0; id < held->distinct; id++) {
        const uint64_t *value = held->values + id * words;
        uint32_t at = directory[dp_held_key(table, dp_bits_load(value, held->bits)) + 1]++;
        table->ids[at] = id;
        if (table->filter)
            table->filter[at] = (uint32_t)(*value >> table->from);
        else
            memcpy(table->column + at * words, value, words * sizeof *value);
    }
}

typedef struct filling {
    dp_held *held;
    atomic_int next;
    atomic_bool failed;
} filling;

static void fill_tables(void *user, size_t thread) {
    filling *f = user;
    (void)thread;
    for (int t; (t = atomic_fetch_add(&f->next, 1)) < f->held->tables;) {
        dp_held_table *table = &f->held->table[t];
        if (!allocate(f->held, table)) {
            atomic_store(&f->failed, true);
            return;
        }
        set_flips(table);
        fill(f->held, table);
    }
}

bool dp_held_fill(dp_held *held, size_t threads) {
    filling f = {.held = held};
    if (held->tables)
        dp_run_threads(threads, fill_tables, &f);
    return !atomic_load(&f.failed);
}

doppel_status dp_held_plan_tables(dp_held *held, const dp_held_options *options, doppel_error *error) {
    uint64_t lists = dp_held_bytes(held);
    held->nanoseconds = FEW / 10.0;
    if (held->distinct > FEW)
        plan(held, options->memory > lists ? options->memory - lists : 0);
    if (dp_held_bytes(held) > options->memory)
        return dp_held_too_little(held->count, dp_held_bytes(held), error);
    return DOPPEL_OK;
}
