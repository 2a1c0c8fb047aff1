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
        const char *bucket = table->filter ? (const char *)(table->filter + directory[0])
                                           : (const char *)(table->column + directory[0] * held->words);
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

/* Adds those that the last comparison found: entries of a bucket, or (ids NULL) of all from `first` on. */
static bool add_hits(dp_held_finder *finder, const dp_held_probe *probe, const uint32_t *ids, uint32_t first,
                     size_t near) {
    const dp_held *held = finder->held;
    dp_bits value = dp_bits_load(finder->queries + probe->query * held->words, held->bits);
    if (!dp_reserve(&finder->hits, &finder->hit_capacity, finder->hit_count + near, sizeof *finder->hits))
        return false;
    for (size_t i = 0; i < near; i++) {
        uint32_t at = first + finder->near[i], id = ids ? ids[at] : at;
        dp_bits differ = value ^ dp_bits_load(held->values + id * held->words, held->bits);
        int distance = dp_bits_count(differ);
        if (distance <= held->distance && !found_before(held, probe->table, differ))
            finder->hits[finder->hit_count++] = (dp_held_hit){probe->query, id, (uint32_t)distance};
    }
    return true;
}

/* Compares a part of a column; gives how many are near. */
static size_t compare(dp_held_finder *finder, const uint64_t *column, size_t count, const uint64_t *value) {
    int distance = finder->held->distance;
    return finder->held->words == 1 ? dp_near64_kernel()(column, count, value[0], distance, finder->near)
                                    : dp_near128_kernel()(column, count, value, distance, finder->near);
}

static bool compare_bucket(dp_held_finder *finder, const dp_held_probe *probe) {
    const dp_held *held = finder->held;
    const dp_held_table *table = &held->table[probe->table];
    const uint64_t *value = finder->queries + probe->query * held->words;
    finder->candidates += probe->end - probe->key;
    for (uint32_t at = probe->key, count; at < probe->end; at += count) {
        count = probe->end - at < DP_HELD_PIECE ? probe->end - at : DP_HELD_PIECE;
        size_t near = table->filter ? dp_near32_kernel()(table->filter + at, count, (uint32_t)(*value >> table->from),
                                                         held->distance, finder->near)
                                    : compare(finder, table->column + at * held->words, count, value);
        if (near && !add_hits(finder, probe, table->ids, at, near))
            return false;
    }
    return true;
}

/* Without tables. */
static bool compare_all(dp_held_finder *finder, uint32_t query) {
    const dp_held *held = finder->held;
    const uint64_t *value = finder->queries + query * held->words;
    dp_held_probe probe = {.query = query};
    finder->candidates += held->distinct;
    for (uint32_t at = 0, count; at < held->distinct; at += count) {
        count = held->distinct - at < DP_HELD_PIECE ? held->distinct - at : DP_HELD_PIECE;
        size_t near = compare(finder, held->values + at * held->words, count, value);
        if (near && !add_hits(finder, &probe, NULL, at, near))
            return false;
    }
    return true;
}

bool dp_held_finder_run(dp_held_finder *finder, const uint64_t *queries, size_t count) {
    const dp_held *held = finder->held;
    size_t probes = 0;
    finder->hit_count = 0;
    finder->queries = queries;
    for (uint32_t q = 0; q < count && !held->tables; q++)
        if (!compare_all(finder, q))
            return false;
    for (uint32_t q = 0; q < count && held->tables; q++)
        probes += write_probes(held, dp_bits_load(queries + q * held->words, held->bits), q, finder->probes + probes);
    find_buckets(held, finder->probes, probes);
    for (size_t i = 0; i < probes; i++)
        if (!compare_bucket(finder, &finder->probes[i]))
            return false;
    return true;
}
