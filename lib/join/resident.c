/* resident.c - the set of a join that is kept in memory: read, sorted, with tables that many queries at once are looked
 * up in.
 *
 * dp_resident_build -> (dp_resident_use_parts) -> dp_resident_fill -> dp_resident_finder_run by many threads ->
 * dp_resident_free. */
#include "hamming/hamming.h"
#include "join/two_sets.h"
#include "kernel/kernel.h"

#include <math.h>
#include <stdlib.h>

/* Positions and ids are 32 bits wide. */
#define MOST_RESIDENT (((uint64_t)1 << 32) - 2)

/* ---- reading ---- */

/* The memory is too little for `count` fingerprints, which need `bytes`. */
static doppel_status too_little_memory(uint64_t count, uint64_t bytes, doppel_error *error) {
    return dp_fail(error, DOPPEL_ERROR_USAGE,
                   "too little memory: %llu fingerprints to hold need at least %llu MiB; hold the smaller side",
                   (unsigned long long)count, (unsigned long long)(bytes >> 20) + 1);
}

/* Building takes the fingerprints with their positions, and room to sort them. */
static doppel_status check_memory(const dp_resident *set, uint64_t count, const dp_resident_options *options,
                                  doppel_error *error) {
    uint64_t need = count * 2 * (set->words + 1) * sizeof(uint64_t);
    if (count > MOST_RESIDENT)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "%llu fingerprints to hold are too many; the most is %llu",
                       (unsigned long long)count, (unsigned long long)MOST_RESIDENT);
    return need <= options->memory ? DOPPEL_OK : too_little_memory(count, need, error);
}

/* The items of a set that is read: fingerprints in secret order, owned by their positions. */
typedef struct resident_items {
    dp_items items;
    size_t capacity;
    uint64_t *room; /* for a batch */
} resident_items;

static doppel_status reserve_items(const dp_resident *set, resident_items *to, uint64_t count,
                                   const dp_resident_options *options, doppel_error *error) {
    DP_TRY(check_memory(set, count, options, error));
    bool made = dp_reserve(&to->items.item, &to->capacity, count, (set->words + 1) * sizeof(uint64_t));
    return made ? DOPPEL_OK : dp_no_memory(error);
}

static void add_items(const dp_resident *set, dp_items *items, const uint64_t *values, size_t count) {
    uint64_t *item = items->item + items->count * (set->words + 1);
    for (size_t i = 0; i < count; i++) {
        for (size_t word = 0; word < set->words; word++)
            *item++ = *values++;
        *item++ = items->count++;
    }
}

/* Reads all. */
static doppel_status read_items(const dp_resident *set, dp_fingerprints *source, const dp_resident_options *options,
                                resident_items *to, doppel_error *error) {
    if (source->settled)
        DP_TRY(reserve_items(set, to, source->count, options, error));
    for (size_t count = 1; count;) {
        const uint64_t *got;
        count = DP_FINGERPRINTS_BATCH;
        if (dp_stopped(options->stop))
            return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        DP_TRY(dp_fingerprints_next(source, to->room, &count, &got, error));
        DP_TRY(reserve_items(set, to, to->items.count + count, options, error));
        dp_order_apply_many(&set->order, got, count, to->room);
        add_items(set, &to->items, to->room, count);
    }
    return DOPPEL_OK;
}

static bool sort_items(dp_items *items) {
    uint64_t *scratch = dp_big_alloc((size_t)items->count * dp_item_words(items) * sizeof *scratch + 1);
    if (scratch)
        dp_items_sort(items, scratch);
    free(scratch);
    return scratch != NULL;
}

/* Distinct fingerprints, ascending, and the positions of each, from sorted items. */
static bool take_items(dp_resident *set, const dp_items *items) {
    size_t count = (size_t)items->count, words = set->words, step = words + 1;
    set->count = items->count;
    set->values = dp_big_alloc((count + 8) * words * sizeof *set->values);
    set->starts = dp_big_alloc((count + 1) * sizeof *set->starts);
    set->positions = dp_big_alloc((count + 1) * sizeof *set->positions);
    if (!set->values || !set->starts || !set->positions)
        return false;
    for (size_t i = 0; i < count; i++) {
        const uint64_t *item = items->item + i * step;
        if (!i || memcmp(item - step, item, words * sizeof *item)) {
            memcpy(set->values + set->distinct * words, item, words * sizeof *item);
            set->starts[set->distinct++] = (uint32_t)i;
        }
        set->positions[i] = (uint32_t)item[words];
    }
    set->starts[set->distinct] = (uint32_t)count;
    return true;
}

static doppel_status read_set(dp_resident *set, dp_fingerprints *source, const dp_resident_options *options,
                              doppel_error *error) {
    resident_items read = {.items = {.bits = set->bits}};
    read.room = malloc(DP_FINGERPRINTS_BATCH * set->words * sizeof *read.room);
    doppel_status status = read.room ? read_items(set, source, options, &read, error) : dp_no_memory(error);
    free(read.room);
    if (status == DOPPEL_OK && !(sort_items(&read.items) && take_items(set, &read.items)))
        status = dp_no_memory(error);
    free(read.items.item);
    return status;
}

/* ---- tables: planned as those of an index are, filled by counting ---- */

/* Comparing FEW takes less than looking into a few tables: some 30 ns. */
#define FEW 256

/* The bits of a table's key, of which `left` are wanted: from a piece of the number, its top. */
static void add_piece(dp_resident_table *table, dp_cut cut, int left) {
    int width = cut.width < left ? cut.width : left, from = cut.from + cut.width - width;
    table->piece[table->pieces++] = (dp_cut){(uint8_t)from, (uint8_t)width};
    table->key_bits += width;
    table->key_mask |= (((dp_bits)1 << width) - 1) << from;
}

/* The key is made of the first cuts, the last of them by its top. */
static void set_key(const dp_table_layout *layout, dp_resident_table *table) {
    for (int i = 0; i < layout->cuts && table->key_bits < layout->key_bits; i++)
        add_piece(table, layout->cut[i], layout->key_bits - table->key_bits);
}

/* Up to this share of a bucket may pass its filter and be looked at in full. */
#define FILTER_SHARE (1.0 / 64)

/* Filters by the 32 low or high bits, whichever have fewer bits of the key; unless too many would pass. */
static void set_filter(const dp_resident *set, dp_resident_table *table) {
    int high = set->bits > 32 ? set->bits - 32 : 0;
    uint32_t in_low = (uint32_t)table->key_mask, in_high = (uint32_t)(table->key_mask >> high);
    table->from = __builtin_popcount(in_high) < __builtin_popcount(in_low) ? high : 0;
    int free_bits = (set->bits < 32 ? set->bits : 32) - __builtin_popcount(table->from ? in_high : in_low);
    if (set->words > 1 || dp_ball(free_bits, set->distance) > ldexp(FILTER_SHARE, free_bits))
        table->from = -1;
}

/* Sets all that follows from the key and the radius, and adds the table. */
static void add_table(dp_resident *set, const dp_resident_table *made) {
    dp_resident_table *table = &set->table[set->tables++];
    *table = *made;
    set_filter(set, table);
    table->flip_count = (size_t)dp_ball(table->key_bits, table->radius);
    set->probes += table->flip_count;
}

/* Chooses the tables. An entry takes its fingerprint and its id in each; the plans of an index count a little less, so
 * that they are given two thirds of the memory. */
static void plan(dp_resident *set, uint64_t memory) {
    dp_layout layout;
    doppel_costs costs;
    int radius[DP_MAX_TABLES];
    doppel_costs_get(&costs);
    dp_question question = {&costs, set->distinct, set->distance};
    dp_plan_run(set->distinct, set->distance, set->bits, (double)memory / set->distinct / 1.5, &layout);
    if (!dp_layout_radii(&question, &layout, radius)) {
        set->nanoseconds = dp_effort_scan(&question, &layout).nanoseconds;
        return;
    }
    dp_effort effort = dp_effort_find(&question, &layout, radius);
    set->nanoseconds = effort.nanoseconds;
    for (int t = 0; t < layout.tables; t++)
        if (radius[t] >= 0) {
            dp_resident_table table = {.radius = radius[t], .parts = ~0U};
            set_key(&layout.table[t], &table);
            add_table(set, &table);
        }
}

static uint64_t table_bytes(const dp_resident *set, const dp_resident_table *table) {
    uint64_t each = table->from < 0 ? set->words * 8 + 4 : 8;
    return set->distinct * each + ((uint64_t)4 << table->key_bits) + 4 * table->flip_count;
}

uint64_t dp_resident_table_bytes(const dp_resident *set) {
    uint64_t bytes = 0;
    for (int t = 0; t < set->tables; t++)
        bytes += table_bytes(set, &set->table[t]);
    return bytes;
}

uint64_t dp_resident_bytes(const dp_resident *set) {
    return set->count * 4 + (uint64_t)set->distinct * (set->words * 8 + 4) + dp_resident_table_bytes(set);
}

static bool allocate(const dp_resident *set, dp_resident_table *table) {
    table->flips = malloc(table->flip_count * sizeof *table->flips);
    table->directory = dp_big_alloc((((size_t)1 << table->key_bits) + 2) * sizeof *table->directory);
    table->ids = dp_big_alloc(((size_t)set->distinct + 1) * sizeof *table->ids);
    if (table->from < 0)
        table->column = dp_big_alloc(((size_t)set->distinct + 1) * set->words * sizeof *table->column);
    else
        table->filter = dp_big_alloc(((size_t)set->distinct + 1) * sizeof *table->filter);
    return table->flips && table->directory && table->ids && (table->column || table->filter);
}

static void set_flips(dp_resident_table *table) {
    uint32_t flip = 0;
    for (size_t i = 0; i < table->flip_count; i++) {
        table->flips[i] = flip;
        flip = dp_flip_after(flip, table->key_bits);
    }
}

/* Sorts ids by key: counts of a key stand at key + 2, their sums say at key + 1 where it begins, and are moved on from
 * there to where it ends, which is where the next begins. */
static void fill(const dp_resident *set, dp_resident_table *table) {
    size_t entries = ((size_t)1 << table->key_bits) + 2, words = set->words;
    uint32_t *directory = table->directory;
    memset(directory, 0, entries * sizeof *directory);
    for (uint32_t id = 0; id < set->distinct; id++)
        directory[dp_resident_key(table, dp_bits_load(set->values + id * words, set->bits)) + 2]++;
    for (size_t i = 1; i < entries; i++)
        directory[i] += directory[i - 1];
    for (uint32_t id = 0; id < set->distinct; id++) {
        const uint64_t *value = set->values + id * words;
        uint32_t at = directory[dp_resident_key(table, dp_bits_load(value, set->bits)) + 1]++;
        table->ids[at] = id;
        if (table->filter)
            table->filter[at] = (uint32_t)(*value >> table->from);
        else
            memcpy(table->column + at * words, value, words * sizeof *value);
    }
}

typedef struct table_fill {
    dp_resident *set;
    atomic_int next;
    atomic_bool failed;
} table_fill;

static void fill_tables(void *user, size_t thread) {
    table_fill *f = user;
    (void)thread;
    for (int t; (t = atomic_fetch_add(&f->next, 1)) < f->set->tables;) {
        dp_resident_table *table = &f->set->table[t];
        if (!allocate(f->set, table)) {
            atomic_store(&f->failed, true);
            return;
        }
        set_flips(table);
        fill(f->set, table);
    }
}

bool dp_resident_fill(dp_resident *set, size_t threads) {
    table_fill f = {.set = set};
    if (set->tables)
        dp_run_threads(threads, fill_tables, &f);
    return !atomic_load(&f.failed);
}

/* Plans tables over the values. */
static doppel_status plan_tables(dp_resident *set, const dp_resident_options *options, doppel_error *error) {
    uint64_t lists = dp_resident_bytes(set);
    set->nanoseconds = FEW / 10.0;
    if (set->distinct > FEW)
        plan(set, options->memory > lists ? options->memory - lists : 0);
    if (dp_resident_bytes(set) > options->memory)
        return too_little_memory(set->count, dp_resident_bytes(set), error);
    return DOPPEL_OK;
}

/* ---- tables inside of parts: for queries of which it is known in which parts of the bits they may be near ----
 *
 * A prefilter cuts the bits into parts, and two fingerprints within the distance differ by at most r in some part,
 * whose map then lets the streamed one pass. So one that passed the map of a part has to be compared only with those
 * that differ from it by at most r in this part. The part is cut into b blocks with radii whose sum is r + 1 - b: two
 * that differ by more than its radius in every block differ by at least r + 1 - b + b in the part. Hence one of the b
 * tables, with keys in these blocks, has the other fingerprint within its radius. A key that takes less than its block
 * differs no more than the block does.
 *
 * A query that passed several maps is looked up in the tables of each, and a pair counts in the first of those tables
 * that finds it: whatever the maps let pass by chance, nothing is missed and nothing is reported twice. */

/* Blocks a part: all parts together have at most DP_MAX_TABLES. */
enum { MOST_PARTS = 4, MOST_BLOCKS = DP_MAX_TABLES / MOST_PARTS };

static int radius_of(const dp_resident_part *part, int block) {
    int sum = part->radius + 1 - part->blocks;
    return sum / part->blocks + (block < sum % part->blocks);
}

static dp_cut block_of(const dp_resident_part *part, int block) {
    int from = block * part->width / part->blocks, end = (block + 1) * part->width / part->blocks;
    return (dp_cut){(uint8_t)(part->from + from), (uint8_t)(end - from)};
}

static int key_bits(const dp_resident_part *part, int block) {
    int width = block_of(part, block).width;
    return part->key_bits < width ? part->key_bits : width;
}

/* What looking a query up in all tables of the part costs. */
static double cost_of(const dp_resident *set, const dp_resident_part *part) {
    doppel_costs costs;
    dp_layout layout;
    doppel_costs_get(&costs);
    dp_question question = {&costs, set->distinct, set->distance};
    double sum = 0;
    layout.bits = set->bits;
    for (int i = 0; i < part->blocks; i++) {
        layout.table[0].key_bits = key_bits(part, i);
        sum += dp_effort_table(&question, &layout, 0, radius_of(part, i)).nanoseconds;
    }
    return sum;
}

/* The widest key worth a try: about one entry a bucket. */
static int widest_key(const dp_resident *set) {
    int bits = 1;
    while (bits < DP_MAX_KEY && set->distinct >> bits)
        bits++;
    return bits;
}

void dp_resident_plan_part(const dp_resident *set, dp_resident_part *part) {
    dp_resident_part tried = *part;
    int widest = widest_key(set);
    part->nanoseconds = HUGE_VAL;
    for (int blocks = 1; blocks <= MOST_BLOCKS && blocks <= part->radius + 1 && blocks <= part->width; blocks++)
        for (int bits = 1; bits <= widest && bits <= (part->width + blocks - 1) / blocks; bits++) {
            tried.blocks = blocks;
            tried.key_bits = bits;
            tried.nanoseconds = cost_of(set, &tried);
            if (tried.nanoseconds < part->nanoseconds)
                *part = tried;
        }
}

void dp_resident_use_parts(dp_resident *set, const dp_resident_part *parts, int count) {
    set->tables = 0;
    set->probes = 0;
    for (int p = 0; p < count; p++)
        for (int i = 0; i < parts[p].blocks; i++) {
            dp_resident_table table = {.radius = radius_of(&parts[p], i), .parts = 1U << p};
            add_piece(&table, block_of(&parts[p], i), parts[p].key_bits);
            add_table(set, &table);
        }
}

uint64_t dp_resident_parts_bytes(const dp_resident *set, const dp_resident_part *parts, int count) {
    uint64_t bytes = 0;
    for (int p = 0; p < count; p++)
        for (int i = 0; i < parts[p].blocks; i++) {
            int bits = key_bits(&parts[p], i);
            bytes += (uint64_t)set->distinct * (set->words * 8 + 4) + ((uint64_t)4 << bits);
            bytes += 4 * (uint64_t)dp_ball(bits, radius_of(&parts[p], i));
        }
    return bytes;
}

/* ---- all of it ---- */

void dp_resident_free(dp_resident *set) {
    for (int t = 0; t < set->tables; t++) {
        free(set->table[t].flips);
        free(set->table[t].directory);
        free(set->table[t].column);
        free(set->table[t].filter);
        free(set->table[t].ids);
    }
    free(set->values);
    free(set->starts);
    free(set->positions);
    memset(set, 0, sizeof *set);
}

doppel_status dp_resident_build(dp_resident *set, dp_fingerprints *source, const dp_resident_options *options,
                                doppel_error *error) {
    memset(set, 0, sizeof *set);
    set->bits = source->bits;
    set->words = source->words;
    set->distance = options->distance;
    dp_order_init(&set->order, set->bits, options->secret);
    doppel_status status = read_set(set, source, options, error);
    DP_THEN(status, plan_tables(set, options, error));
    if (status != DOPPEL_OK)
        dp_resident_free(set);
    return status;
}

/* ---- looking queries up, several at once ----
 *
 * Rounds over all probes of a group of queries, so that memory is asked for long before it is needed: the keys, the
 * places of the buckets, the buckets, the ids of what is near in them, and the fingerprints of those. What several
 * tables find counts in the first of them that the query is looked up in. */

/* Probes under way at once: memory answers within 100 to 200 ns, and a probe takes about 5. Where tables are inside of
 * parts, about half of them are made. */
#define PROBES 256

bool dp_resident_finder_init(dp_resident_finder *finder, const dp_resident *set) {
    memset(finder, 0, sizeof *finder);
    finder->set = set;
    finder->group = set->probes && set->probes < PROBES ? PROBES / set->probes : 1;
    finder->probes = malloc((finder->group * set->probes + 1) * sizeof *finder->probes);
    return finder->probes != NULL;
}

void dp_resident_finder_free(dp_resident_finder *finder) {
    free(finder->probes);
    free(finder->hits);
}

/* Writes the probes of one query; gives how many. */
static size_t write_probes(const dp_resident_finder *finder, uint32_t query, dp_resident_probe *probes) {
    const dp_resident *set = finder->set;
    dp_bits value = dp_bits_load(finder->queries + query * set->words, set->bits);
    size_t count = 0;
    for (int t = 0; t < set->tables; t++) {
        const dp_resident_table *table = &set->table[t];
        if (!(table->parts & finder->parts[query]))
            continue;
        uint32_t key = dp_resident_key(table, value);
        for (size_t i = 0; i < table->flip_count; i++) {
            probes[count] = (dp_resident_probe){query, (uint32_t)t, key ^ table->flips[i], 0};
            __builtin_prefetch(&table->directory[probes[count++].key]);
        }
    }
    return count;
}

/* Turns keys into places, and asks for them. */
static void find_buckets(const dp_resident *set, dp_resident_probe *probes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const dp_resident_table *table = &set->table[probes[i].table];
        const uint32_t *directory = table->directory + probes[i].key;
        probes[i].key = directory[0];
        probes[i].end = directory[1];
        const char *bucket = table->filter ? (const char *)(table->filter + directory[0])
                                           : (const char *)(table->column + directory[0] * set->words);
        __builtin_prefetch(bucket);
        __builtin_prefetch(bucket + 64);
    }
}

/* Whether an earlier table that the query is looked up in finds the two as well. */
static bool found_before(const dp_resident_finder *finder, const dp_resident_near *near, dp_bits differ) {
    const dp_resident *set = finder->set;
    for (uint32_t t = 0; t < near->table; t++)
        if (set->table[t].parts & finder->parts[near->query] &&
            dp_bits_count(differ & set->table[t].key_mask) <= set->table[t].radius)
            return true;
    return false;
}

/* Looks at what waits: adds those that are near and not found before. */
static bool settle(dp_resident_finder *finder) {
    const dp_resident *set = finder->set;
    dp_resident_near *waiting = finder->waiting;
    size_t count = finder->waiting_count;
    if (!dp_reserve(&finder->hits, &finder->hit_capacity, finder->hit_count + count, sizeof *finder->hits))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (set->tables)
            waiting[i].at = set->table[waiting[i].table].ids[waiting[i].at];
        __builtin_prefetch(set->values + waiting[i].at * set->words);
    }
    for (size_t i = 0; i < count; i++) {
        dp_bits differ = dp_bits_load(finder->queries + waiting[i].query * set->words, set->bits) ^
                         dp_bits_load(set->values + waiting[i].at * set->words, set->bits);
        int distance = dp_bits_count(differ);
        if (distance <= set->distance && !found_before(finder, &waiting[i], differ))
            finder->hits[finder->hit_count++] = (dp_resident_hit){waiting[i].query, waiting[i].at, (uint32_t)distance};
    }
    finder->waiting_count = 0;
    return true;
}

/* Keeps what the last comparison found, entries from `first` on, and asks for their ids. */
static bool add_near(dp_resident_finder *finder, const dp_resident_probe *probe, uint32_t first, size_t near) {
    const dp_resident *set = finder->set;
    if (finder->waiting_count > DP_RESIDENT_PIECE && !settle(finder))
        return false;
    for (size_t i = 0; i < near; i++) {
        uint32_t at = first + finder->near[i];
        finder->waiting[finder->waiting_count++] = (dp_resident_near){probe->query, probe->table, at};
        if (set->tables)
            __builtin_prefetch(&set->table[probe->table].ids[at]);
    }
    return true;
}

/* Compares a part of a column; gives how many are near. */
static size_t compare(dp_resident_finder *finder, const uint64_t *column, size_t count, const uint64_t *value) {
    int distance = finder->set->distance;
    return finder->set->words == 1 ? dp_near64_kernel()(column, count, value[0], distance, finder->near)
                                   : dp_near128_kernel()(column, count, value, distance, finder->near);
}

static bool compare_bucket(dp_resident_finder *finder, const dp_resident_probe *probe) {
    const dp_resident *set = finder->set;
    const dp_resident_table *table = &set->table[probe->table];
    const uint64_t *value = finder->queries + probe->query * set->words;
    finder->candidates += probe->end - probe->key;
    for (uint32_t at = probe->key, count; at < probe->end; at += count) {
        count = probe->end - at < DP_RESIDENT_PIECE ? probe->end - at : DP_RESIDENT_PIECE;
        size_t near = table->filter ? dp_near32_kernel()(table->filter + at, count, (uint32_t)(*value >> table->from),
                                                         set->distance, finder->near)
                                    : compare(finder, table->column + at * set->words, count, value);
        if (near && !add_near(finder, probe, at, near))
            return false;
    }
    return true;
}

/* Without tables. */
static bool compare_all(dp_resident_finder *finder, uint32_t query) {
    const dp_resident *set = finder->set;
    const uint64_t *value = finder->queries + query * set->words;
    dp_resident_probe probe = {.query = query};
    finder->candidates += set->distinct;
    for (uint32_t at = 0, count; at < set->distinct; at += count) {
        count = set->distinct - at < DP_RESIDENT_PIECE ? set->distinct - at : DP_RESIDENT_PIECE;
        size_t near = compare(finder, set->values + at * set->words, count, value);
        if (near && !add_near(finder, &probe, at, near))
            return false;
    }
    return true;
}

bool dp_resident_finder_run(dp_resident_finder *finder, const uint64_t *queries, const uint8_t *parts, size_t count) {
    const dp_resident *set = finder->set;
    size_t probes = 0;
    finder->hit_count = finder->waiting_count = 0;
    finder->queries = queries;
    finder->parts = parts;
    for (uint32_t q = 0; q < count && !set->tables; q++)
        if (!compare_all(finder, q))
            return false;
    for (uint32_t q = 0; q < count && set->tables; q++)
        probes += write_probes(finder, q, finder->probes + probes);
    find_buckets(set, finder->probes, probes);
    for (size_t i = 0; i < probes; i++)
        if (!compare_bucket(finder, &finder->probes[i]))
            return false;
    return settle(finder);
}
