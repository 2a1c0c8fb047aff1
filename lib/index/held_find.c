/* held_find.c - looks queries up in the held side, several at once.
 *
 * Three rounds over all probes of a group of queries, so that memory is asked for long before it is needed: the keys,
 * the places of the buckets, the buckets. What several tables find counts in the first of them. */
#include "index/held.h"
#include "kernel/kernel.h"

#include <stdlib.h>

/* Probes under way at once: memory answers within 100 to 200 ns, and a probe takes about 5. */
#define PROBES 128

bool dp_held_finder_init(dp_held_finder *finder, const dp_held *held) {
    memset(finder, 0, sizeof *finder);
    finder->held = held;
    finder->group = held->probes && held->probes < PROBES ? PROBES / held->probes : 1;
    finder->probes = malloc((finder->group * held->probes + 1) * sizeof *finder->probes);
    return finder->probes != NULL;
}

void dp_held_finder_free(dp_held_finder *finder) {
    free(finder->probes);
    free(finder->hits);
}

/* Writes the probes of one query; gives how many. */
static size_t write_probes(const dp_held *held, dp_bits value, uint32_t query, dp_held_probe *probes) {
    size_t count = 0;
    for (int t = 0; t < held->tables; t++) {
        const dp_held_table *table = &held->table[t];
        uint32_t key = dp_held_key(table, value);
        for (size_t i = 0; i < table->flip_count; i++) {
            probes[count] = (dp_held_probe){query, (uint32_t)t, key ^ table->flips[i], 0};
            __builtin_prefetch(&table->directory[probes[count++].key]);
        }
    }
    return count;
}

/* Turns keys into places, and asks for them. */
static void find_buckets(const dp_held *held, dp_held_probe *probes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const dp_held_table *table = &held->table[probes[i].table];
        const uint32_t *directory = table->directory + probes[i].key;
        probes[i].key = directory[0];
        probes[i].end = directory[1];
        const char *bucket = (const char *)(table->column + directory[0] * held->words);
        __builtin_prefetch(bucket);
        __builtin_prefetch(bucket + 64);
    }
}

/* Whether an earlier table finds the two as well. */
static bool found_before(const dp_held *held, uint32_t table, dp_bits differ) {
    for (uint32_t t = 0; t < table; t++)
        if (dp_bits_count(differ & held->table[t].key_mask) <= held->table[t].radius)
            return true;
    return false;
}

/* What is compared: a part of a column. */
typedef struct part {
    const uint64_t *column;
    const uint32_t *ids; /* NULL: they count from `first` */
    uint32_t first, count;
    uint32_t query, table;
} part;

static bool add_hits(dp_held_finder *finder, const part *p, const uint64_t *value, size_t near) {
    const dp_held *held = finder->held;
    if (!dp_reserve(&finder->hits, &finder->hit_capacity, finder->hit_count + near, sizeof *finder->hits))
        return false;
    for (size_t i = 0; i < near; i++) {
        uint32_t at = finder->near[i];
        dp_bits differ =
            dp_bits_load(value, held->bits) ^ dp_bits_load(p->column + (size_t)at * held->words, held->bits);
        if (!found_before(held, p->table, differ))
            finder->hits[finder->hit_count++] =
                (dp_held_hit){p->query, p->ids ? p->ids[at] : p->first + at, (uint32_t)dp_bits_count(differ)};
    }
    return true;
}

static bool compare_part(dp_held_finder *finder, const part *p, const uint64_t *value) {
    const dp_held *held = finder->held;
    size_t near = held->words == 1 ? dp_near64_kernel()(p->column, p->count, value[0], held->distance, finder->near)
                                   : dp_near128_kernel()(p->column, p->count, value, held->distance, finder->near);
    finder->candidates += p->count;
    return !near || add_hits(finder, p, value, near);
}

static bool compare_bucket(dp_held_finder *finder, const dp_held_probe *probe, const uint64_t *value) {
    const dp_held *held = finder->held;
    const dp_held_table *table = &held->table[probe->table];
    for (uint32_t at = probe->key, count; at < probe->end; at += count) {
        count = probe->end - at < DP_HELD_PIECE ? probe->end - at : DP_HELD_PIECE;
        part p = {.column = table->column + (size_t)at * held->words, .ids = table->ids + at, .count = count};
        p.query = probe->query;
        p.table = probe->table;
        if (!compare_part(finder, &p, value))
            return false;
    }
    return true;
}

/* Without tables. */
static bool compare_all(dp_held_finder *finder, const uint64_t *value, uint32_t query) {
    const dp_held *held = finder->held;
    for (uint32_t at = 0, count; at < held->distinct; at += count) {
        count = held->distinct - at < DP_HELD_PIECE ? held->distinct - at : DP_HELD_PIECE;
        part p = {.column = held->values + (size_t)at * held->words, .first = at, .count = count, .query = query};
        if (!compare_part(finder, &p, value))
            return false;
    }
    return true;
}

bool dp_held_finder_run(dp_held_finder *finder, const uint64_t *queries, size_t count) {
    const dp_held *held = finder->held;
    finder->hit_count = 0;
    if (!held->tables) {
        for (uint32_t q = 0; q < count; q++)
            if (!compare_all(finder, queries + q * held->words, q))
                return false;
        return true;
    }
    size_t probes = 0;
    for (uint32_t q = 0; q < count; q++)
        probes += write_probes(held, dp_bits_load(queries + q * held->words, held->bits), q, finder->probes + probes);
    find_buckets(held, finder->probes, probes);
    for (size_t i = 0; i < probes; i++)
        if (!compare_bucket(finder, &finder->probes[i], queries + finder->probes[i].query * held->words))
            return false;
    return true;
}
