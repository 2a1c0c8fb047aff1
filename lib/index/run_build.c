/* run_build.c - gives a run its tables.
 *
 * Each table is made by counting: how many numbers have each key, where each bucket begins, then every number to the
 * next place of its bucket. Table 0 comes last: its filter is written over the numbers it is made from, which are twice
 * as wide, so that no memory is needed for both. */
#include "index/run.h"

/* Numbers are arranged so many at a time: two arrays of them fit the first cache. */
enum { BATCH = 512 };

/* A table that is being filled. */
typedef struct filling {
    dp_run *run;
    const dp_table_layout *layout;
    const dp_table *table;
    uint32_t *directory; /* while it is filled, directory[k + 1] is the next place of bucket k */
    void *filter;
    uint8_t *rest;
} filling;

/* ---- arranging ---- */

static void arrange64(const dp_table_layout *layout, int bits, const uint64_t *from, size_t count, uint64_t *to) {
    memset(to, 0, count * sizeof *to);
    int shift = bits;
    for (int c = 0; c < layout->cuts; c++) {
        int down = layout->cut[c].from;
        shift -= layout->cut[c].width;
        uint64_t mask = UINT64_MAX >> (64 - layout->cut[c].width);
        for (size_t i = 0; i < count; i++)
            to[i] |= (from[i] >> down & mask) << shift;
    }
}

static void arrange(const filling *f, const uint64_t *from, size_t count, uint64_t *to) {
    if (f->run->bits <= 64) {
        arrange64(f->layout, f->run->bits, from, count, to);
        return;
    }
    for (size_t i = 0; i < count; i++)
        dp_bits_store(dp_layout_arrange(f->layout, dp_bits_load(from + 2 * i, 128)), to + 2 * i);
}

/* ---- counting and placing ---- */

/* The keys of arranged numbers. A key has at most 30 bits, so those of 128-bit numbers lie in the high word. */
static inline uint64_t key_of(const filling *f, const uint64_t *arranged) {
    int bits = f->run->bits, key_bits = f->table->key_bits;
    if (!key_bits)
        return 0;
    return bits > 64 ? arranged[1] >> (64 - key_bits) : arranged[0] >> (bits - key_bits);
}

static void count_keys(const filling *f, const uint64_t *arranged, size_t count) {
    size_t words = f->run->bits > 64 ? 2 : 1;
    for (size_t i = 0; i < count; i++)
        f->directory[key_of(f, arranged + i * words) + 1]++;
}

/* Writes `bytes` low bytes; up to 8 may be overwritten when what follows is written later, so exactly those. */
static inline void store_rest(uint8_t *to, uint64_t rest, int bytes) {
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(rest >> (8 * i));
}

static inline uint64_t rest_of(const filling *f, const uint64_t *arranged) {
    uint64_t above = f->run->bits > 64 ? arranged[1] : arranged[0] >> 32;
    return above & (UINT64_MAX >> (64 - f->table->rest_bits));
}

static inline __attribute__((always_inline)) void place_keys64(const filling *f, const uint64_t *arranged, size_t count,
                                                               int rest_bytes) {
    for (size_t i = 0; i < count; i++) {
        uint32_t place = f->directory[key_of(f, arranged + i) + 1]++, filter = (uint32_t)arranged[i];
        memcpy((char *)f->filter + (size_t)place * sizeof filter, &filter, sizeof filter);
        if (rest_bytes)
            store_rest(f->rest + (size_t)place * (size_t)rest_bytes, rest_of(f, arranged + i), rest_bytes);
    }
}

static void place_keys128(const filling *f, const uint64_t *arranged, size_t count) {
    uint64_t *filter = f->filter;
    size_t rest_bytes = (size_t)f->table->rest_bytes;
    for (size_t i = 0; i < count; i++) {
        uint32_t place = f->directory[key_of(f, arranged + 2 * i) + 1]++;
        filter[place] = arranged[2 * i];
        if (rest_bytes)
            store_rest(f->rest + place * rest_bytes, rest_of(f, arranged + 2 * i), (int)rest_bytes);
    }
}

static void place_keys(const filling *f, const uint64_t *arranged, size_t count) {
    if (f->run->bits > 64) {
        place_keys128(f, arranged, count);
        return;
    }
    switch (f->table->rest_bytes) {
    case 0: place_keys64(f, arranged, count, 0); return;
    case 1: place_keys64(f, arranged, count, 1); return;
    case 2: place_keys64(f, arranged, count, 2); return;
    case 3: place_keys64(f, arranged, count, 3); return;
    default: place_keys64(f, arranged, count, 4); return;
    }
}

/* How many numbers each bucket has becomes where each begins. */
static void begin_buckets(const filling *f) {
    uint32_t start = 0;
    uint32_t *directory = f->directory;
    for (size_t key = 0; key < (size_t)1 << f->table->key_bits; key++) {
        uint32_t count = directory[key + 1];
        directory[key + 1] = start;
        start += count;
    }
}

static void for_batches(const filling *f, void (*each)(const filling *, const uint64_t *, size_t)) {
    uint64_t arranged[2 * BATCH];
    size_t words = f->run->bits > 64 ? 2 : 1;
    for (uint64_t i = 0; i < f->run->count; i += BATCH) {
        size_t count = f->run->count - i < BATCH ? (size_t)(f->run->count - i) : BATCH;
        arrange(f, f->run->values + i * words, count, arranged);
        each(f, arranged, count);
    }
}

static void fill_table(const filling *f) {
    memset(f->directory, 0, dp_directory_bytes(f->table));
    for_batches(f, count_keys);
    begin_buckets(f);
    for_batches(f, place_keys);
}

/* ---- memory ---- */

/* A section of a block; sections begin at cache lines. */
static size_t take(size_t *used, size_t size) {
    size_t at = *used;
    *used = (at + size + 63) / 64 * 64;
    return at;
}

/* Where the sections of the tables begin in their block; gives its size. */
static size_t lay_out(const dp_run *run, size_t (*at)[3]) {
    size_t used = 0;
    for (int t = 0; t < run->layout.tables; t++) {
        at[t][0] = take(&used, dp_directory_bytes(&run->table[t]));
        at[t][1] = t ? take(&used, dp_filter_bytes(run)) : 0;
        at[t][2] = take(&used, dp_rest_bytes(run, &run->table[t]));
    }
    return used;
}

static void end_table(dp_run *run, int t, char *memory, const size_t at[3]) {
    dp_table *table = &run->table[t];
    table->directory = (uint32_t *)(void *)(memory + at[0]);
    table->filter = t ? (void *)(memory + at[1]) : run->area[DP_AREA_VALUES].data;
    table->rest = (uint8_t *)memory + at[2];
}

doppel_status dp_run_build(dp_run *run, const dp_layout *layout, const dp_merging *merging) {
    size_t at[DP_MAX_TABLES][3];
    (void)merging;
    dp_run_set_layout(run, layout);
    if (!dp_area_get(&run->area[DP_AREA_TABLES], lay_out(run, at)))
        return DOPPEL_ERROR_MEMORY;
    char *memory = run->area[DP_AREA_TABLES].data;
    for (int t = layout->tables - 1; t >= 0; t--) {
        end_table(run, t, memory, at[t]);
        const dp_table *table = &run->table[t];
        filling f = {run,
                     &layout->table[t],
                     table,
                     (uint32_t *)(void *)(memory + at[t][0]),
                     t ? (void *)(memory + at[t][1]) : run->area[DP_AREA_VALUES].data,
                     (uint8_t *)memory + at[t][2]};
        fill_table(&f);
        memset(f.rest + run->count * (size_t)table->rest_bytes, 0, DP_REST_PADDING);
    }
    dp_area_trim(&run->area[DP_AREA_VALUES], dp_filter_bytes(run));
    run->values = NULL;
    return DOPPEL_OK;
}
