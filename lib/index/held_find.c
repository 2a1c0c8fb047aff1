/* held_find.c - looks queries up in the held side, several at once.
 *
 * Rounds over all probes of a group of queries, so that memory is asked for long before it is needed: the keys, the
 * places of the buckets, the buckets, the ids of what is near in them, and the fingerprints of those. What several
 * tables find counts in the first of them that the query is looked up in. */
#include "index/held.h"
#include "kernel/kernel.h"

#include <stdlib.h>

/* Probes under way at once: memory answers within 100 to 200 ns, and a probe takes about 5. Where tables are inside of
 * parts, about half of them are made. */
#define PROBES 256

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
static size_t write_probes(const dp_held_finder *finder, uint32_t query, dp_held_probe *probes) {
    const dp_held *held = finder->held;
    dp_bits value = dp_bits_load(finder->queries + query * held->words, held->bits);
    size_t count = 0;
    for (int t = 0; t < held->tables; t++) {
        const dp_held_table *table = &held->table[t];
        if (!(table->parts & finder->parts[query]))
            continue;
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

/* Whether an earlier table that the query is looked up in finds the two as well. */
static bool found_before(const dp_held_finder *finder, const dp_held_near *near, dp_bits differ) {
    const dp_held *held = finder->held;
    for (uint32_t t = 0; t < near->table; t++)
        if (held->table[t].parts & finder->parts[near->query] &&
            dp_bits_count(differ & held->table[t].key_mask) <= held->table[t].radius)
            return true;
    return false;
}

/* Looks at what waits: adds those that are near and not found before. */
static bool settle(dp_held_finder *finder) {
    const dp_held *held = finder->held;
    dp_held_near *waiting = finder->waiting;
    size_t count = finder->waiting_count;
    if (!dp_reserve(&finder->hits, &finder->hit_capacity, finder->hit_count + count, sizeof *finder->hits))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (held->tables)
            waiting[i].at = held->table[waiting[i].table].ids[waiting[i].at];
        __builtin_prefetch(held->values + waiting[i].at * held->words);
    }
    for (size_t i = 0; i < count; i++) {
        dp_bits differ = dp_bits_load(finder->queries + waiting[i].query * held->words, held->bits) ^
                         dp_bits_load(held->values + waiting[i].at * held->words, held->bits);
        int distance = dp_bits_count(differ);
        if (distance <= held->distance && !found_before(finder, &waiting[i], differ))
            finder->hits[finder->hit_count++] = (dp_held_hit){waiting[i].query, waiting[i].at, (uint32_t)distance};
    }
    finder->waiting_count = 0;
    return true;
}

/* Keeps what the last comparison found, entries from `first` on, and asks for their ids. */
static bool add_near(dp_held_finder *finder, const dp_held_probe *probe, uint32_t first, size_t near) {
    const dp_held *held = finder->held;
    if (finder->waiting_count > DP_HELD_PIECE && !settle(finder))
        return false;
    for (size_t i = 0; i < near; i++) {
        uint32_t at = first + finder->near[i];
        finder->waiting[finder->waiting_count++] = (dp_held_near){probe->query, probe->table, at};
        if (held->tables)
            __builtin_prefetch(&held->table[probe->table].ids[at]);
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
        if (near && !add_near(finder, probe, at, near))
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
        if (near && !add_near(finder, &probe, at, near))
            return false;
    }
    return true;
}

bool dp_held_finder_run(dp_held_finder *finder, const uint64_t *queries, const uint8_t *parts, size_t count) {
    const dp_held *held = finder->held;
    size_t probes = 0;
    finder->hit_count = finder->waiting_count = 0;
    finder->queries = queries;
    finder->parts = parts;
    for (uint32_t q = 0; q < count && !held->tables; q++)
        if (!compare_all(finder, q))
            return false;
    for (uint32_t q = 0; q < count && held->tables; q++)
        probes += write_probes(finder, q, finder->probes + probes);
    find_buckets(held, finder->probes, probes);
    for (size_t i = 0; i < probes; i++)
        if (!compare_bucket(finder, &finder->probes[i]))
            return false;
    return settle(finder);
}
