/* run_build.h - a table that is being filled: run_build.c from numbers, run_copy.c from the tables of other runs. */
#ifndef DP_RUN_BUILD_H
#define DP_RUN_BUILD_H

#include "index/run.h"

/* Numbers are arranged so many at a time: two arrays of them fit the first cache. */
enum { DP_BATCH = 512 };

/* Columns can be read and written so many bytes beyond their end: buckets are copied by whole cache lines. */
enum { DP_COLUMN_SLACK = 64 };

typedef struct dp_filling {
    const dp_run *run;
    int number; /* of the table */
    const dp_table_layout *layout;
    const dp_table *table;
    uint32_t *directory;
    uint8_t *filter, *rest;
} dp_filling;

/* Brings numbers (one or two words each) into the table's order. */
void dp_fill_arrange(const dp_filling *filling, const uint64_t *from, size_t count, uint64_t *to);

/* The key of an arranged number. A key has at most 30 bits, so that of 128-bit numbers lies in the high word. */
static inline uint64_t dp_fill_key(const dp_filling *filling, const uint64_t *arranged) {
    int bits = filling->run->bits, key_bits = filling->table->key_bits;
    if (!key_bits)
        return 0;
    return bits > 64 ? arranged[1] >> (64 - key_bits) : arranged[0] >> (bits - key_bits);
}

/* Writes an arranged number, but for its key, to a place. */
static inline void dp_fill_place(const dp_filling *filling, const uint64_t *arranged, uint64_t place) {
    bool wide = filling->run->bits > 64;
    uint64_t above = wide ? arranged[1] : arranged[0] >> 32;
    uint32_t low = (uint32_t)arranged[0];
    if (wide)
        memcpy(filling->filter + place * 8, arranged, 8);
    else
        memcpy(filling->filter + place * 4, &low, 4);
    if (!filling->table->rest_bits)
        return;
    above &= UINT64_MAX >> (64 - filling->table->rest_bits);
    int bytes = filling->table->rest_bytes;
    uint8_t *to = filling->rest + place * (uint64_t)bytes;
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(above >> (8 * i));
}

/* run_copy.c: fills a table of a merged run bucket by bucket from the same tables of the runs it was merged from.
 * *done is false when too little can be copied: then the table is to be filled from the numbers. */
doppel_status dp_fill_by_copy(const dp_filling *filling, const dp_merging *merging, bool *done);

#endif
