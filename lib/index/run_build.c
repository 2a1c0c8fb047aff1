/* run_build.c - gives a run its tables.
 *
 * A table is made by counting: how many numbers have each key, where each bucket begins, then every number to the next
 * place of its bucket; or, when the run was merged from others, from their tables (run_copy.c). Table 0 comes last: it
 * has the order of the numbers, and its filter is written over the numbers it is made from, which are twice as wide, so
 * that no memory is needed for both. */
#include "index/run_build.h"

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

void dp_fill_arrange(const dp_filling *f, const uint64_t *from, size_t count, uint64_t *to) {
    if (f->run->bits <= 64) {
        arrange64(f->layout, f->run->bits, from, count, to);
        return;
    }
    for (size_t i = 0; i < count; i++)
        dp_bits_store(dp_layout_arrange(f->layout, dp_bits_load(from + 2 * i, 128)), to + 2 * i);
}

/* ---- counting and placing ---- */

/* While a table is filled, directory[k + 1] is how many numbers bucket k has, and then its next place. */
static void count_keys(const dp_filling *f, const uint64_t *arranged, size_t count) {
    size_t words = f->run->bits > 64 ? 2 : 1;
    for (size_t i = 0; i < count; i++)
        f->directory[dp_fill_key(f, arranged + i * words) + 1]++;
}

static void place_keys(const dp_filling *f, const uint64_t *arranged, size_t count) {
    size_t words = f->run->bits > 64 ? 2 : 1;
    for (size_t i = 0; i < count; i++, arranged += words)
        dp_fill_place(f, arranged, f->directory[dp_fill_key(f, arranged) + 1]++);
}

/* How many numbers each bucket has becomes where each begins. */
static void begin_buckets(const dp_filling *f) {
    uint32_t start = 0;
    uint32_t *directory = f->directory;
    for (size_t key = 0; key < (size_t)1 << f->table->key_bits; key++) {
        uint32_t count = directory[key + 1];
        directory[key + 1] = start;
        start += count;
    }
}

static void for_batches(const dp_filling *f, void (*each)(const dp_filling *, const uint64_t *, size_t)) {
    uint64_t arranged[2 * DP_BATCH];
    size_t words = f->run->bits > 64 ? 2 : 1;
    for (uint64_t i = 0; i < f->run->count; i += DP_BATCH) {
        size_t count = f->run->count - i < DP_BATCH ? (size_t)(f->run->count - i) : DP_BATCH;
        dp_fill_arrange(f, f->run->values + i * words, count, arranged);
        each(f, arranged, count);
    }
}

static void fill_by_counting(const dp_filling *f) {
    memset(f->directory, 0, dp_directory_bytes(f->table));
    for_batches(f, count_keys);
    begin_buckets(f);
    for_batches(f, place_keys);
}

/* Numbers of table 0 go to their own positions. Up to 64 bits, and always with a constant number of bytes, so that they
 * are written by plain stores. */
static inline __attribute__((always_inline)) void place_in_order(const dp_filling *f, uint64_t from, uint64_t to,
                                                                 int rest_bytes) {
    uint64_t mask = f->table->rest_bits ? UINT64_MAX >> (64 - f->table->rest_bits) : 0;
    for (uint64_t i = from; i < to; i++) {
        uint64_t number = f->run->values[i];
        uint32_t low = (uint32_t)number, rest = (uint32_t)(number >> 32 & mask);
        memcpy(f->filter + i * 4, &low, 4);
        for (int byte = 0; byte < rest_bytes; byte++)
            f->rest[i * (uint64_t)rest_bytes + (uint64_t)byte] = (uint8_t)(rest >> (8 * byte));
    }
}

static void place_all_in_order(const dp_filling *f) {
    uint64_t count = f->run->count;
    switch (f->run->bits > 64 ? -1 : f->table->rest_bytes) {
    case 0: place_in_order(f, 0, count, 0); return;
    case 1: place_in_order(f, 0, count, 1); return;
    case 2: place_in_order(f, 0, count, 2); return;
    case 3: place_in_order(f, 0, count, 3); return;
    case 4: place_in_order(f, 0, count, 4); return;
    default: break;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number[2] = {f->run->values[2 * i], f->run->values[2 * i + 1]};
        dp_fill_place(f, number, i);
    }
}

/* Table 0: what stands at position p goes to place p. */
static void fill_in_order(const dp_filling *f) {
    uint64_t key = 0;
    size_t words = f->run->bits > 64 ? 2 : 1;
    f->directory[0] = 0;
    for (uint64_t i = 0; i < f->run->count; i++)
        for (uint64_t own = dp_fill_key(f, f->run->values + i * words); key < own;)
            f->directory[++key] = (uint32_t)i;
    while (key < (uint64_t)1 << f->table->key_bits)
        f->directory[++key] = (uint32_t)f->run->count;
    place_all_in_order(f);
}

static doppel_status fill_table(const dp_filling *f, const dp_merging *merging) {
    if (f->number == 0) {
        fill_in_order(f);
        return DOPPEL_OK;
    }
    bool done = false;
    doppel_status status = merging ? dp_fill_by_copy(f, merging, &done) : DOPPEL_OK;
    if (status == DOPPEL_OK && !done)
        fill_by_counting(f);
    return status;
}

/* ---- memory ---- */

/* A section of an area; sections begin at cache lines. */
static size_t take(size_t *used, size_t size) {
    size_t at = *used;
    *used = (at + size + DP_COLUMN_SLACK + 63) / 64 * 64;
    return at;
}

/* Where the sections of a table begin in the area of tables. The filter of table 0 has an area of its own. */
typedef struct places {
    size_t directory, filter, rest;
} places;

static size_t lay_out(const dp_run *run, places *at) {
    size_t used = 0;
    for (int t = 0; t < run->layout.tables; t++) {
        at[t].directory = take(&used, dp_directory_bytes(&run->table[t]));
        at[t].filter = t ? take(&used, dp_filter_bytes(run)) : 0;
        at[t].rest = take(&used, dp_rest_bytes(run, &run->table[t]));
    }
    return used;
}

static dp_filling begin_table(dp_run *run, int t, const places *at) {
    uint8_t *memory = run->area[DP_AREA_TABLES].data;
    dp_filling f = {.run = run, .number = t, .layout = &run->layout.table[t], .table = &run->table[t]};
    f.directory = (uint32_t *)(void *)(memory + at->directory);
    f.filter = t ? memory + at->filter : run->area[DP_AREA_VALUES].data;
    f.rest = memory + at->rest;
    run->table[t].directory = f.directory;
    run->table[t].filter = f.filter;
    run->table[t].rest = f.rest;
    return f;
}

doppel_status dp_run_build(dp_run *run, const dp_layout *layout, const dp_merging *merging) {
    places at[DP_MAX_TABLES];
    dp_run_set_layout(run, layout);
    if (!dp_pool_get(run->pool, &run->area[DP_AREA_TABLES], lay_out(run, at)))
        return DOPPEL_ERROR_MEMORY;
    for (int t = layout->tables - 1; t >= 0; t--) {
        dp_filling f = begin_table(run, t, &at[t]);
        doppel_status status = fill_table(&f, merging);
        if (status != DOPPEL_OK)
            return status;
        memset(f.rest + run->count * (size_t)f.table->rest_bytes, 0, DP_REST_PADDING);
    }
    dp_pool_trim(run->pool, &run->area[DP_AREA_VALUES], dp_filter_bytes(run));
    run->values = NULL;
    return DOPPEL_OK;
}
