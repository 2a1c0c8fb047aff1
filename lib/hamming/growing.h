/* growing.h - a growing level: new entries with tables whose buckets grow in place, between the head and the runs.
 *
 * It has tables by a layout, like a run, but every bucket is a separate chunk with room for more: an entry is written
 * once to each table, and moved only when its bucket gets a larger chunk. When the level is full the thread that merges
 * makes a run of it. One thread adds and changes, any number read.
 *
 * A bucket is one number, read and published as a whole: where its chunk lies, how large that is, how many entries can
 * be read. A chunk replaced by a larger one is kept until the level is freed, so a reader that still uses it sees what
 * was there when it began.
 *
 * Table 0 has a place for every entry: owner, time of expiry, whether it is dead. The other tables have each
 * fingerprint once. Up to DP_SAME_MOST entries may have the same fingerprint: more of them are not taken, so that a
 * flood of copies does not make one bucket long (runs keep owners in lists). */
#ifndef DP_HAMMING_GROWING_H
#define DP_HAMMING_GROWING_H

#include "hamming/run.h"

/* Blocks that chunks are cut from. A chunk begins at a unit; 2^16 units are a block. */
enum { DP_CHUNK_UNIT = 64, DP_BLOCK_UNITS = 1 << 16, DP_MOST_BLOCKS = 1 << 13 };
enum { DP_SAME_MOST = 16 };
/* The most entries a bucket's number can count. */
#define DP_GROWING_MOST ((uint64_t)(1 << 24) - 1)

typedef struct dp_growing {
    int bits;
    dp_layout layout;
    dp_run_table table[DP_MAX_TABLES];       /* widths alone */
    _Atomic uint64_t *bucket[DP_MAX_TABLES]; /* by key; from the top: where (32 bits), size (8), count (24) */
    uint64_t planned;                        /* entries it was made for */
    _Atomic uint64_t fingerprints;           /* distinct ones */
    _Atomic uint64_t entries;                /* dead ones, too */
    _Atomic(dp_schedule *) schedule[DP_MAX_BITS + 1];

    dp_memory buckets;     /* of all tables */
    uint32_t blocks, used; /* units of the last block */
    _Atomic uint64_t bytes;
    dp_memory block[DP_MOST_BLOCKS];

    /* The index's, under its lock. */
    uint64_t holders; /* versions that hold it, and a merge that reads it */
    bool merging;     /* changes in it are logged */
    struct dp_growing *next;
} dp_growing;

/* A bucket as it was at a moment. */
typedef struct dp_chunk {
    const uint8_t *filter;
    const uint8_t *rest;
    uint64_t count, capacity;
} dp_chunk;

/* Chunks have room for 8, 16, 24, 32 and from there alternately a half and a third more: 48, 64, 96, 128, ... */
static inline uint64_t dp_chunk_capacity(unsigned size) {
    return size < 4 ? 8 * (size + 1) : (uint64_t)(size % 2 ? 64 : 48) << ((size - 4) / 2);
}

static inline dp_chunk dp_growing_chunk(const dp_growing *g, int table, uint64_t key) {
    uint64_t word = atomic_load_explicit(&g->bucket[table][key], memory_order_acquire);
    dp_chunk chunk = {.count = word & DP_GROWING_MOST};
    if (!word)
        return chunk;
    uint32_t at = (uint32_t)(word >> 32);
    chunk.capacity = dp_chunk_capacity((unsigned)(word >> 24 & 255));
    chunk.filter = (const uint8_t *)g->block[at / DP_BLOCK_UNITS].data + (size_t)(at % DP_BLOCK_UNITS) * DP_CHUNK_UNIT;
    chunk.rest = chunk.filter + chunk.capacity * (g->bits > 64 ? 8 : 4);
    return chunk;
}

/* The number at a place of a chunk. No byte beyond the rest is read: the next one may be being written. */
static inline dp_bits dp_growing_arranged(const dp_growing *g, int table, uint64_t key, const dp_chunk *chunk,
                                          uint64_t place) {
    const dp_run_table *widths = &g->table[table];
    dp_bits top = widths->key_bits ? (dp_bits)key << (g->bits - widths->key_bits) : 0;
    uint64_t rest = 0;
    for (int i = 0; i < widths->rest_bytes; i++)
        rest |= (uint64_t)chunk->rest[place * (uint64_t)widths->rest_bytes + (uint64_t)i] << (8 * i);
    if (g->bits > 64)
        return top | (dp_bits)rest << 64 | ((const uint64_t *)(const void *)chunk->filter)[place];
    return top | rest << 32 | ((const uint32_t *)(const void *)chunk->filter)[place];
}

/* What table 0 has besides, at a place of a chunk. */
typedef struct dp_growing_entry {
    uint64_t *owner;
    _Atomic uint64_t *expires;
    _Atomic uint8_t *dead;
} dp_growing_entry;

/* Capacities are multiples of 8, so that every column is aligned. */
static inline dp_growing_entry dp_growing_place(const dp_growing *g, const dp_chunk *chunk, uint64_t place) {
    uintptr_t owners = (uintptr_t)(chunk->rest + chunk->capacity * (size_t)g->table[0].rest_bytes);
    uintptr_t expires = owners + chunk->capacity * 8, dead = expires + chunk->capacity * 8;
    return (dp_growing_entry){(uint64_t *)owners + place, (_Atomic uint64_t *)expires + place,
                              (_Atomic uint8_t *)dead + place};
}

/* An empty level for `planned` entries by the index's distance; NULL in *made when there is none worth it (few bits, a
 * distance at which everything is compared). `layout`: forced, or "". */
typedef struct dp_growing_options {
    int bits, distance;
    double bytes_per_entry;
    const char *layout;
    uint64_t planned;
} dp_growing_options;
doppel_status dp_growing_create(const dp_growing_options *options, dp_growing **made);
void dp_growing_free(dp_growing *growing);

/* A number as each table has it. */
typedef struct dp_growing_keys {
    uint64_t arranged[DP_MAX_TABLES][2]; /* low word, high word */
    uint64_t key[DP_MAX_TABLES];
} dp_growing_keys;

/* Fills `keys`, and prefetches the buckets that a number will be looked up in and added to; then the places in them. */
void dp_growing_prepare(const dp_growing *growing, dp_bits value, dp_growing_keys *keys);
void dp_growing_prefetch(const dp_growing *growing, const dp_growing_keys *keys);

/* The entries of a number: their chunk, and up to DP_SAME_MOST places in it. */
typedef struct dp_growing_places {
    dp_chunk chunk;
    int count;
    uint32_t place[DP_SAME_MOST];
} dp_growing_places;
void dp_growing_search(const dp_growing *growing, dp_bits value, dp_growing_places *places);

/* Adds an absent entry. `same`: the number of entries with this value, fewer than DP_SAME_MOST. False: out of memory,
 * with nothing changed. */
bool dp_growing_add(dp_growing *growing, const dp_growing_keys *keys, int same, uint64_t owner, uint64_t expires);

/* Marks entries that expire at or before `now` as dead; returns how many. For the writer. */
uint64_t dp_growing_expire(dp_growing *growing, uint64_t now);

/* A run without tables of all live entries; NULL in *run if there are none. Any thread may call it, while entries are
 * added. */
doppel_status dp_growing_run(const dp_growing *growing, dp_run **run);

#endif
