/* two_sets.c - doppel_join_sets: one set is kept in memory, the other is streamed past it.
 *
 * The first set becomes resident: sorted, with tables that many queries at once are looked up in. A prefilter discards
 * most of the stream without a table lookup. Threads take batches of the stream in turn, filter and look up each on
 * their own, and give the pairs out in the order of the stream. */
#include "join/join.h"
#include "kernel/kernel.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* ---- the resident set ----
 *
 * Equal fingerprints are stored once, with the list of their positions. A table keeps the fingerprints, or 32 bits of
 * them where those are enough, sorted by its key, so that a bucket is one piece of memory and is compared by one
 * kernel. */

/* A key is put together from pieces of the number, the first at the top. */
typedef struct resident_table {
    int key_bits, radius;
    unsigned parts; /* a query is looked up here when it may be near in one of these parts; all bits: always */
    int pieces;
    dp_cut piece[DP_MAX_CUTS];
    dp_bits key_mask;
    uint32_t *flips; /* exclusive-or'ed to a key, they give all keys within the radius */
    size_t flip_count;
    uint32_t *directory; /* where the bucket of each key begins, and at last the count */
    uint32_t *ids;       /* by key, which of the distinct ones they are */
    uint64_t *column;    /* by key, the fingerprints; or NULL: there is a filter, */
    uint32_t *filter;    /* by key, 32 bits of the fingerprints, from bit `from` on */
    int from;
} resident_table;

typedef struct resident_set {
    int bits, distance;
    size_t words; /* 64-bit numbers per fingerprint */
    dp_order order;
    uint64_t count;      /* positions */
    uint32_t distinct;   /* fingerprints: their number is an id */
    uint64_t *values;    /* of each id, in secret order, ascending */
    uint32_t *starts;    /* of each id, and at last the count: where its positions begin */
    uint32_t *positions; /* ascending for each id */
    int tables;          /* 0: all are compared */
    resident_table table[DP_MAX_TABLES];
    size_t probes;      /* of all tables, a query */
    double nanoseconds; /* that a query is expected to take */
} resident_set;

typedef struct resident_options {
    int distance;
    size_t threads;
    uint64_t memory; /* allowed, including the tables */
    uint64_t secret; /* not 0 */
    const volatile int *stop;
} resident_options;

/* The key of a fingerprint in secret order. */
static inline uint32_t table_key(const resident_table *table, dp_bits value) {
    uint32_t key = 0;
    for (int i = 0; i < table->pieces; i++) {
        dp_cut piece = table->piece[i];
        key = key << piece.width | ((uint32_t)(value >> piece.from) & ((1U << piece.width) - 1));
    }
    return key;
}

/* Positions and ids are 32 bits wide. */
#define MOST_RESIDENT (((uint64_t)1 << 32) - 2)

/* ---- the resident set: reading and sorting ---- */

/* The memory is too little for `count` fingerprints, which need `bytes`. */
static doppel_status too_little_memory(uint64_t count, uint64_t bytes, doppel_error *error) {
    return dp_fail(error, DOPPEL_ERROR_USAGE,
                   "too little memory: %llu fingerprints to hold need at least %llu MiB; hold the smaller side",
                   (unsigned long long)count, (unsigned long long)(bytes >> 20) + 1);
}

/* Building takes the fingerprints with their positions, and room to sort them. */
static doppel_status check_memory(const resident_set *set, uint64_t count, const resident_options *options,
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

static doppel_status reserve_items(const resident_set *set, resident_items *to, uint64_t count,
                                   const resident_options *options, doppel_error *error) {
    DP_TRY(check_memory(set, count, options, error));
    bool made = dp_reserve(&to->items.item, &to->capacity, count, (set->words + 1) * sizeof(uint64_t));
    return made ? DOPPEL_OK : dp_no_memory(error);
}

static void add_items(const resident_set *set, dp_items *items, const uint64_t *values, size_t count) {
    uint64_t *item = items->item + items->count * (set->words + 1);
    for (size_t i = 0; i < count; i++) {
        for (size_t word = 0; word < set->words; word++)
            *item++ = *values++;
        *item++ = items->count++;
    }
}

/* Reads all. */
static doppel_status read_items(const resident_set *set, dp_fingerprints *source, const resident_options *options,
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
static bool take_items(resident_set *set, const dp_items *items) {
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

static doppel_status read_set(resident_set *set, dp_fingerprints *source, const resident_options *options,
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

/* ---- the resident set: tables, planned as those of an index are, filled by counting ---- */

/* Comparing FEW_RESIDENT is faster than a few table lookups: about 30 ns. */
#define FEW_RESIDENT 256

/* The bits of a table's key, of which `left` are wanted: from a piece of the number, its top. */
static void add_piece(resident_table *table, dp_cut cut, int left) {
    int width = cut.width < left ? cut.width : left, from = cut.from + cut.width - width;
    table->piece[table->pieces++] = (dp_cut){(uint8_t)from, (uint8_t)width};
    table->key_bits += width;
    table->key_mask |= (((dp_bits)1 << width) - 1) << from;
}

/* The key is made of the first cuts, the last of them by its top. */
static void set_key(const dp_table_layout *layout, resident_table *table) {
    for (int i = 0; i < layout->cuts && table->key_bits < layout->key_bits; i++)
        add_piece(table, layout->cut[i], layout->key_bits - table->key_bits);
}

/* Up to this share of a bucket may pass its filter and be looked at in full. */
#define FILTER_SHARE (1.0 / 64)

/* Filters by the 32 low or high bits, whichever have fewer bits of the key; unless too many would pass. */
static void set_filter(const resident_set *set, resident_table *table) {
    int high = set->bits > 32 ? set->bits - 32 : 0;
    uint32_t in_low = (uint32_t)table->key_mask, in_high = (uint32_t)(table->key_mask >> high);
    table->from = __builtin_popcount(in_high) < __builtin_popcount(in_low) ? high : 0;
    int free_bits = (set->bits < 32 ? set->bits : 32) - __builtin_popcount(table->from ? in_high : in_low);
    if (set->words > 1 || dp_ball(free_bits, set->distance) > ldexp(FILTER_SHARE, free_bits))
        table->from = -1;
}

/* Sets all that follows from the key and the radius, and adds the table. */
static void add_table(resident_set *set, const resident_table *made) {
    resident_table *table = &set->table[set->tables++];
    *table = *made;
    set_filter(set, table);
    table->flip_count = (size_t)dp_ball(table->key_bits, table->radius);
    set->probes += table->flip_count;
}

/* Chooses the tables. An entry takes its fingerprint and its id in each; the plans of an index count a little less, so
 * that they are given two thirds of the memory. */
static void choose_tables(resident_set *set, uint64_t memory) {
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
            resident_table table = {.radius = radius[t], .parts = ~0U};
            set_key(&layout.table[t], &table);
            add_table(set, &table);
        }
}

static uint64_t table_bytes(const resident_set *set, const resident_table *table) {
    uint64_t each = table->from < 0 ? set->words * 8 + 4 : 8;
    return set->distinct * each + ((uint64_t)4 << table->key_bits) + 4 * table->flip_count;
}

static uint64_t all_table_bytes(const resident_set *set) {
    uint64_t bytes = 0;
    for (int t = 0; t < set->tables; t++)
        bytes += table_bytes(set, &set->table[t]);
    return bytes;
}

/* Bytes it takes, and those of them that its tables take. */
static uint64_t resident_bytes(const resident_set *set) {
    return set->count * 4 + (uint64_t)set->distinct * (set->words * 8 + 4) + all_table_bytes(set);
}

static bool allocate(const resident_set *set, resident_table *table) {
    table->flips = malloc(table->flip_count * sizeof *table->flips);
    table->directory = dp_big_alloc((((size_t)1 << table->key_bits) + 2) * sizeof *table->directory);
    table->ids = dp_big_alloc(((size_t)set->distinct + 1) * sizeof *table->ids);
    if (table->from < 0)
        table->column = dp_big_alloc(((size_t)set->distinct + 1) * set->words * sizeof *table->column);
    else
        table->filter = dp_big_alloc(((size_t)set->distinct + 1) * sizeof *table->filter);
    return table->flips && table->directory && table->ids && (table->column || table->filter);
}

static void set_flips(resident_table *table) {
    uint32_t flip = 0;
    for (size_t i = 0; i < table->flip_count; i++) {
        table->flips[i] = flip;
        flip = dp_flip_after(flip, table->key_bits);
    }
}

/* Sorts ids by key: counts of a key stand at key + 2, their sums say at key + 1 where it begins, and are moved on from
 * there to where it ends, which is where the next begins. */
static void fill_table(const resident_set *set, resident_table *table) {
    size_t entries = ((size_t)1 << table->key_bits) + 2, words = set->words;
    uint32_t *directory = table->directory;
    memset(directory, 0, entries * sizeof *directory);
    for (uint32_t id = 0; id < set->distinct; id++)
        directory[table_key(table, dp_bits_load(set->values + id * words, set->bits)) + 2]++;
    for (size_t i = 1; i < entries; i++)
        directory[i] += directory[i - 1];
    for (uint32_t id = 0; id < set->distinct; id++) {
        const uint64_t *value = set->values + id * words;
        uint32_t at = directory[table_key(table, dp_bits_load(value, set->bits)) + 1]++;
        table->ids[at] = id;
        if (table->filter)
            table->filter[at] = (uint32_t)(*value >> table->from);
        else
            memcpy(table->column + at * words, value, words * sizeof *value);
    }
}

typedef struct table_fill {
    resident_set *set;
    atomic_int next;
    atomic_bool failed;
} table_fill;

static void fill_tables(void *user, size_t thread) {
    table_fill *f = user;
    (void)thread;
    for (int t; (t = atomic_fetch_add(&f->next, 1)) < f->set->tables;) {
        resident_table *table = &f->set->table[t];
        if (!allocate(f->set, table)) {
            atomic_store(&f->failed, true);
            return;
        }
        set_flips(table);
        fill_table(f->set, table);
    }
}

/* Fills the tables that are planned. False when out of memory. */
static bool resident_fill(resident_set *set, size_t threads) {
    table_fill f = {.set = set};
    if (set->tables)
        dp_run_threads(threads, fill_tables, &f);
    return !atomic_load(&f.failed);
}

/* Plans tables over the values. */
static doppel_status plan_tables(resident_set *set, const resident_options *options, doppel_error *error) {
    uint64_t lists = resident_bytes(set);
    set->nanoseconds = FEW_RESIDENT / 10.0;
    if (set->distinct > FEW_RESIDENT)
        choose_tables(set, options->memory > lists ? options->memory - lists : 0);
    if (resident_bytes(set) > options->memory)
        return too_little_memory(set->count, resident_bytes(set), error);
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

/* A part of the bits, and how those that differ in at most `radius` bits of it are found: by a table for each block. */
typedef struct resident_part {
    int from, width, radius;
    int blocks, key_bits; /* of each block: the key of its table is no wider */
    double nanoseconds;   /* that a query is expected to take; infinite: there is no such table */
} resident_part;

/* Blocks a part: all parts together have at most DP_MAX_TABLES. */
enum { MOST_PARTS = 4, MOST_BLOCKS = DP_MAX_TABLES / MOST_PARTS };

static int radius_of(const resident_part *part, int block) {
    int sum = part->radius + 1 - part->blocks;
    return sum / part->blocks + (block < sum % part->blocks);
}

static dp_cut block_of(const resident_part *part, int block) {
    int from = block * part->width / part->blocks, end = (block + 1) * part->width / part->blocks;
    return (dp_cut){(uint8_t)(part->from + from), (uint8_t)(end - from)};
}

static int key_bits(const resident_part *part, int block) {
    int width = block_of(part, block).width;
    return part->key_bits < width ? part->key_bits : width;
}

/* What looking a query up in all tables of the part costs. */
static double part_cost(const resident_set *set, const resident_part *part) {
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
static int widest_key(const resident_set *set) {
    int bits = 1;
    while (bits < DP_MAX_KEY && set->distinct >> bits)
        bits++;
    return bits;
}

/* The cheapest blocks for a part. */
static void plan_part(const resident_set *set, resident_part *part) {
    resident_part tried = *part;
    int widest = widest_key(set);
    part->nanoseconds = HUGE_VAL;
    for (int blocks = 1; blocks <= MOST_BLOCKS && blocks <= part->radius + 1 && blocks <= part->width; blocks++)
        for (int bits = 1; bits <= widest && bits <= (part->width + blocks - 1) / blocks; bits++) {
            tried.blocks = blocks;
            tried.key_bits = bits;
            tried.nanoseconds = part_cost(set, &tried);
            if (tried.nanoseconds < part->nanoseconds)
                *part = tried;
        }
}

/* Replaces the planned tables by those of parts, at most 4. */
static void use_parts(resident_set *set, const resident_part *parts, int count) {
    set->tables = 0;
    set->probes = 0;
    for (int p = 0; p < count; p++)
        for (int i = 0; i < parts[p].blocks; i++) {
            resident_table table = {.radius = radius_of(&parts[p], i), .parts = 1U << p};
            add_piece(&table, block_of(&parts[p], i), parts[p].key_bits);
            add_table(set, &table);
        }
}

/* Bytes that they would take. */
static uint64_t parts_bytes(const resident_set *set, const resident_part *parts, int count) {
    uint64_t bytes = 0;
    for (int p = 0; p < count; p++)
        for (int i = 0; i < parts[p].blocks; i++) {
            int bits = key_bits(&parts[p], i);
            bytes += (uint64_t)set->distinct * (set->words * 8 + 4) + ((uint64_t)4 << bits);
            bytes += 4 * (uint64_t)dp_ball(bits, radius_of(&parts[p], i));
        }
    return bytes;
}

/* ---- the resident set: all of it ---- */

static void resident_free(resident_set *set) {
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

/* Reads all of a source and plans tables. Errors: DOPPEL_ERROR_USAGE when the memory is too little (the message says
 * what is needed) or there are more than 2^32 - 2 fingerprints, those of the source, DOPPEL_ERROR_MEMORY. On an error
 * it is empty. */
static doppel_status resident_build(resident_set *set, dp_fingerprints *source, const resident_options *options,
                                    doppel_error *error) {
    memset(set, 0, sizeof *set);
    set->bits = source->bits;
    set->words = source->words;
    set->distance = options->distance;
    dp_order_init(&set->order, set->bits, options->secret);
    doppel_status status = read_set(set, source, options, error);
    DP_THEN(status, plan_tables(set, options, error));
    if (status != DOPPEL_OK)
        resident_free(set);
    return status;
}

/* ---- looking queries up, several at once ----
 *
 * Rounds over all probes of a group of queries, so that memory is prefetched long before it is needed: the keys, the
 * places of the buckets, the buckets, the ids of what is near in them, and the fingerprints of those. What several
 * tables find counts in the first of them that the query is looked up in. */

typedef struct resident_hit {
    uint32_t query, id, distance;
} resident_hit;

typedef struct resident_probe {
    uint32_t query, table;
    uint32_t key; /* of the bucket; then where it begins */
    uint32_t end;
} resident_probe;

/* What a comparison found, and is to be looked at in full: an entry of a table, then its id. */
typedef struct resident_near {
    uint32_t query, table, at;
} resident_near;

/* Pieces of a bucket that are compared at once. */
enum { BUCKET_PIECE = 4096 };

/* What one thread finds with. */
typedef struct resident_finder {
    const resident_set *set;
    resident_probe *probes;
    size_t group; /* queries at once */
    const uint64_t *queries;
    const uint8_t *parts; /* of each query: those in which it may be near, a bit each */
    resident_hit *hits;   /* of the last find, in order of the queries */
    size_t hit_count, hit_capacity;
    uint64_t candidates; /* compared so far */
    uint32_t near[BUCKET_PIECE + 16];
    resident_near waiting[2 * BUCKET_PIECE];
    size_t waiting_count;
} resident_finder;

/* Probes in progress at once: memory answers within 100 to 200 ns, and a probe takes about 5. Where tables are inside
 * of parts, about half of them are made. */
#define PROBES 256

/* False when out of memory. */
static bool finder_init(resident_finder *finder, const resident_set *set) {
    memset(finder, 0, sizeof *finder);
    finder->set = set;
    finder->group = set->probes && set->probes < PROBES ? PROBES / set->probes : 1;
    finder->probes = malloc((finder->group * set->probes + 1) * sizeof *finder->probes);
    return finder->probes != NULL;
}

static void finder_free(resident_finder *finder) {
    free(finder->probes);
    free(finder->hits);
}

/* Writes the probes of one query; returns how many. */
static size_t write_probes(const resident_finder *finder, uint32_t query, resident_probe *probes) {
    const resident_set *set = finder->set;
    dp_bits value = dp_bits_load(finder->queries + query * set->words, set->bits);
    size_t count = 0;
    for (int t = 0; t < set->tables; t++) {
        const resident_table *table = &set->table[t];
        if (!(table->parts & finder->parts[query]))
            continue;
        uint32_t key = table_key(table, value);
        for (size_t i = 0; i < table->flip_count; i++) {
            probes[count] = (resident_probe){query, (uint32_t)t, key ^ table->flips[i], 0};
            __builtin_prefetch(&table->directory[probes[count++].key]);
        }
    }
    return count;
}

/* Turns keys into places, and prefetches them. */
static void find_buckets(const resident_set *set, resident_probe *probes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const resident_table *table = &set->table[probes[i].table];
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
static bool found_before(const resident_finder *finder, const resident_near *near, dp_bits differ) {
    const resident_set *set = finder->set;
    for (uint32_t t = 0; t < near->table; t++)
        if (set->table[t].parts & finder->parts[near->query] &&
            dp_bits_count(differ & set->table[t].key_mask) <= set->table[t].radius)
            return true;
    return false;
}

/* Checks the waiting candidates: adds those that are near and not found before. */
static bool settle(resident_finder *finder) {
    const resident_set *set = finder->set;
    resident_near *waiting = finder->waiting;
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
            finder->hits[finder->hit_count++] = (resident_hit){waiting[i].query, waiting[i].at, (uint32_t)distance};
    }
    finder->waiting_count = 0;
    return true;
}

/* Keeps what the last comparison found, entries from `first` on, and prefetches their ids. */
static bool add_near(resident_finder *finder, const resident_probe *probe, uint32_t first, size_t near) {
    const resident_set *set = finder->set;
    if (finder->waiting_count > BUCKET_PIECE && !settle(finder))
        return false;
    for (size_t i = 0; i < near; i++) {
        uint32_t at = first + finder->near[i];
        finder->waiting[finder->waiting_count++] = (resident_near){probe->query, probe->table, at};
        if (set->tables)
            __builtin_prefetch(&set->table[probe->table].ids[at]);
    }
    return true;
}

/* Compares a part of a column; returns how many are near. */
static size_t compare(resident_finder *finder, const uint64_t *column, size_t count, const uint64_t *value) {
    int distance = finder->set->distance;
    return finder->set->words == 1 ? dp_near64_kernel()(column, count, value[0], distance, finder->near)
                                   : dp_near128_kernel()(column, count, value, distance, finder->near);
}

static bool compare_bucket(resident_finder *finder, const resident_probe *probe) {
    const resident_set *set = finder->set;
    const resident_table *table = &set->table[probe->table];
    const uint64_t *value = finder->queries + probe->query * set->words;
    finder->candidates += probe->end - probe->key;
    for (uint32_t at = probe->key, count; at < probe->end; at += count) {
        count = probe->end - at < BUCKET_PIECE ? probe->end - at : BUCKET_PIECE;
        size_t near = table->filter ? dp_near32_kernel()(table->filter + at, count, (uint32_t)(*value >> table->from),
                                                         set->distance, finder->near)
                                    : compare(finder, table->column + at * set->words, count, value);
        if (near && !add_near(finder, probe, at, near))
            return false;
    }
    return true;
}

/* Without tables. */
static bool compare_all(resident_finder *finder, uint32_t query) {
    const resident_set *set = finder->set;
    const uint64_t *value = finder->queries + query * set->words;
    resident_probe probe = {.query = query};
    finder->candidates += set->distinct;
    for (uint32_t at = 0, count; at < set->distinct; at += count) {
        count = set->distinct - at < BUCKET_PIECE ? set->distinct - at : BUCKET_PIECE;
        size_t near = compare(finder, set->values + at * set->words, count, value);
        if (near && !add_near(finder, &probe, at, near))
            return false;
    }
    return true;
}

/* Finds all within the distance of each query (in secret order), at most `group` of them, each once; of tables inside
 * of parts, those of the query's parts. False when out of memory. */
static bool finder_run(resident_finder *finder, const uint64_t *queries, const uint8_t *parts, size_t count) {
    const resident_set *set = finder->set;
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

/* ---- the prefilter: shows, mostly without reading the resident set, that a fingerprint is near none of it ----
 *
 * The bits are cut into m parts. Two fingerprints within k differ by at most r_i in some part i, when the r_i + 1 sum
 * up to more than k. A map for each part has a mark for every key that is within r_i of the key of a resident
 * fingerprint; keys are the part, or less of it. A streamed fingerprint whose mark is in no map is near none; one whose
 * mark is in some maps can be near only in their parts.
 *
 * A map has a bit for each key, which is its mark; or it is squeezed: 2^(6 + squeeze) keys share a word of 64 bits, and
 * a mark is two bits of the word and two of another one beside it. Then some keys pass that have no mark, but the map
 * is that much smaller, and memory brings it into the cache that much faster.
 *
 * A large map is tested slice by slice: the keys of a whole batch are dealt into slices first, so that the slice of the
 * map stays in the cache while its keys are looked up. */

enum { FILTER_PARTS = 4 };

typedef struct filter_part {
    int word, shift, bits; /* the key: `bits` bits (at most 32) from bit `shift` of number `word` on */
    int radius;
    int squeeze;    /* log2 of the keys for each bit of the map */
    int slice_bits; /* log2 of the number of slices; 0: tested as a whole */
    uint64_t *map;
} filter_part;

typedef struct prefilter {
    size_t words; /* 64-bit numbers per fingerprint */
    int parts;    /* 0: lets everything through */
    filter_part part[FILTER_PARTS];
    bool sliced;  /* some part is */
    size_t batch; /* fingerprints to test together */
    bool nested;  /* the resident set is to have tables inside of the parts: */
    resident_part found[FILTER_PARTS];
} prefilter;

typedef struct prefilter_options {
    size_t threads;
    uint64_t memory; /* for the maps and the batches of all threads, besides the tables that the resident set plans */
    uint64_t stream; /* fingerprints that will be tested, or a guess */
} prefilter_options;

/* A slice of 2^21 bits is 256 KiB: with the entries that stream by it stays in a second-level cache of 1 MiB, and what
 * a squeezed map moves a word by (6 + MOST_SQUEEZE bits) is less than a slice has (15). */
#define SLICE_BITS 21
/* Key bits: a number of 32 bits and the number of its fingerprint make an entry. */
#define MOST_BITS 32
#define LEAST_BITS 6
/* From 16 keys for each bit on, no map is both small and sparse. */
#define MOST_SQUEEZE 4

/* Fingerprints tested together: enough for a slice to be used by many while it is in the cache (the time falls until
 * about there), or, without slices, few enough to stay in the cache themselves. */
#define SLICED_BATCH ((size_t)1 << 24)
#define WHOLE_BATCH ((size_t)1 << 14)
#define LEAST_SLICED_BATCH ((size_t)1 << 16)
#define LEAST_BATCH ((size_t)64)
/* The least number of batches of a stream for a thread: the memory of a batch is slow while it is fresh. */
#define BATCHES 4

/* Nanoseconds, measured on one thread: a test in a map inside the cache; counting, dealing and testing in slices;
 * bringing a byte of a map into the cache, once a batch; setting a bit in the cache and beyond; a byte of fresh
 * memory. */
#define TEST_WHOLE 1.3
#define TEST_SLICED 5.5
#define LOAD_BYTE 0.1
#define SET_NEAR 1.5
#define SET_FAR 6.0
#define FRESH_BYTE 0.4

/* ---- the prefilter: planning ---- */

/* The key of a map: its bits, and how much it is squeezed. */
typedef struct map_shape {
    int bits, squeeze;
} map_shape;

static uint64_t map_bytes(const filter_part *part) {
    int bits = part->bits - part->squeeze;
    return bits < 6 ? 8 : (uint64_t)1 << (bits - 3);
}

/* Keys of up to key.bits bits, the top of a part. */
static filter_part part_of(const resident_part *found, map_shape key) {
    filter_part part = {.radius = found->radius, .squeeze = key.squeeze};
    part.bits = key.bits < found->width ? key.bits : found->width;
    int from = found->from + found->width - part.bits, map_bits = part.bits - part.squeeze;
    part.word = from / 64;
    part.shift = from % 64;
    part.slice_bits = map_bits > SLICE_BITS ? map_bits - SLICE_BITS : 0;
    if (part.radius > part.bits)
        part.radius = part.bits;
    return part;
}

/* A thread's share of the stream in BATCHES, between bounds. */
static size_t batch_of(const prefilter_options *options, size_t least, size_t most) {
    uint64_t share = options->stream / options->threads / BATCHES + 1;
    return share < least ? least : share > most ? most : (size_t)share;
}

/* Cuts into m parts. Those near in a part are found by tables inside it, unless all tables of the set side cost less,
 * or fit the memory when the others do not. */
static prefilter divide(const resident_set *set, const prefilter_options *options, int m) {
    prefilter filter = {.words = set->words, .parts = m, .nested = set->tables > 0};
    int width = set->bits / m, sum = set->distance - m + 1;
    for (int i = 0; i < m; i++) {
        resident_part *found = &filter.found[i];
        *found = (resident_part){.from = i * width, .width = width, .radius = sum / m + (i < sum % m)};
        plan_part(set, found);
        filter.nested = filter.nested && found->nanoseconds <= set->nanoseconds;
    }
    uint64_t room = all_table_bytes(set) + options->memory / 2;
    filter.nested = filter.nested && parts_bytes(set, filter.found, m) <= room;
    for (int i = 0; i < m && !filter.nested; i++)
        filter.found[i].nanoseconds = set->nanoseconds;
    return filter;
}

/* Bytes for maps and batches. */
static uint64_t memory_of(const prefilter *filter, const resident_set *set, const prefilter_options *options) {
    uint64_t all = options->memory + all_table_bytes(set);
    uint64_t tables = filter->nested ? parts_bytes(set, filter->found, filter->parts) : all_table_bytes(set);
    return all > tables ? all - tables : 0;
}

/* Sets the keys, and the batch that the memory allows. False when it does not fit, or words would be too few. */
static bool cut(prefilter *filter, const resident_set *set, const prefilter_options *options, map_shape key) {
    uint64_t maps = 0, fingerprint = set->words * 8 + 1, memory = memory_of(filter, set, options);
    filter->batch = batch_of(options, LEAST_BATCH, WHOLE_BATCH);
    for (int i = 0; i < filter->parts; i++) {
        filter_part *part = &filter->part[i];
        *part = part_of(&filter->found[i], key);
        if (part->squeeze && 2 * (6 + part->squeeze) > part->bits)
            return false;
        filter->sliced = filter->sliced || part->slice_bits;
        maps += map_bytes(part);
    }
    if (filter->sliced) {
        fingerprint += 8;
        filter->batch = batch_of(options, LEAST_SLICED_BATCH, SLICED_BATCH);
    }
    uint64_t room = maps < memory ? (memory - maps) / options->threads / fingerprint : 0;
    if (filter->batch > room)
        filter->batch = (size_t)room;
    return filter->batch >= (filter->sliced ? LEAST_SLICED_BATCH : LEAST_BATCH);
}

/* The share of keys that pass a map where `marked` are set. In a squeezed map the n keys of a word, and those that have
 * it beside theirs, set two bits each: two random bits are set with probability (1 - q^n)^2, q = (63/64)^2, and n is
 * spread as a Poisson number is. */
static double share_passed(const filter_part *part, double marked) {
    double passed = 1 - exp(-marked / ldexp(1, part->bits)), q = 63.0 * 63 / (64 * 64);
    if (!part->squeeze)
        return passed;
    double keys = 2 * 8 * marked / (double)map_bytes(part);
    double by_chance = 1 - 2 * exp(keys * (q - 1)) + exp(keys * (q * q - 1));
    return passed + (1 - passed) * by_chance * by_chance;
}

/* Nanoseconds that building and a stream take. */
static double filter_cost(const prefilter *filter, const resident_set *set, const prefilter_options *options) {
    double build = 0, test = 0, find = 0;
    for (int i = 0; i < filter->parts; i++) {
        const filter_part *part = &filter->part[i];
        double bytes = (double)map_bytes(part), marked = set->distinct * dp_ball(part->bits, part->radius);
        build += marked * (part->slice_bits ? SET_FAR : SET_NEAR) + bytes * FRESH_BYTE;
        test += part->slice_bits ? TEST_SLICED + bytes * LOAD_BYTE / (double)filter->batch : TEST_WHOLE;
        find += share_passed(part, marked) * filter->found[i].nanoseconds;
    }
    double builders = (double)(options->threads < (size_t)filter->parts ? options->threads : (size_t)filter->parts);
    return build / builders + (test + find) * (double)options->stream / (double)options->threads;
}

/* The cheapest prefilter for a resident set; none when it would not pay. */
static void prefilter_plan(prefilter *filter, const resident_set *set, const prefilter_options *options) {
    prefilter none = {.words = set->words, .batch = batch_of(options, LEAST_BATCH, WHOLE_BATCH)}, candidate;
    double best = set->nanoseconds * (double)options->stream / (double)options->threads;
    *filter = none;
    for (int m = 1; m <= FILTER_PARTS && m <= set->distance + 1 && m <= set->bits; m++) {
        if (set->words == 2 && m == 3)
            continue; /* its parts would reach over two numbers */
        prefilter divided = divide(set, options, m);
        for (map_shape key = {.bits = LEAST_BITS}; key.bits <= MOST_BITS; key.bits++)
            for (key.squeeze = 0; key.squeeze <= MOST_SQUEEZE; key.squeeze++) {
                candidate = divided;
                double cost = cut(&candidate, set, options, key) ? filter_cost(&candidate, set, options) : HUGE_VAL;
                if (cost < best) {
                    best = cost;
                    *filter = candidate;
                }
            }
    }
}

/* ---- the prefilter: marks ---- */

/* The word of a key. The low bits, which a squeezed map has no room for, are exclusive-or'ed to its number, so that the
 * keys around one resident fingerprint do not crowd one word; what they move it by is less than a slice. */
static inline size_t mark_word(int squeeze, uint32_t key) {
    return squeeze ? key >> (6 + squeeze) ^ (key & ((64U << squeeze) - 1)) : key >> 6;
}

/* The mark in a squeezed map: by the top of a product that all bits of the key have a part in, two bits of the word and
 * two of a word in the same line of 64 bytes. */
typedef struct filter_mark {
    size_t word, beside;
    uint64_t first, second, third, fourth;
} filter_mark;

static inline filter_mark mark_of(int squeeze, uint32_t key) {
    uint64_t mixed = key * 0x9E3779B97F4A7C15u;
    size_t word = mark_word(squeeze, key);
    return (filter_mark){
        word, word ^ (mixed >> 37 & 7), mixed >> 58, mixed >> 52 & 63, mixed >> 46 & 63, mixed >> 40 & 63};
}

static inline void set_mark(uint64_t *map, int squeeze, uint32_t key) {
    filter_mark m = mark_of(squeeze, key);
    if (!squeeze) {
        map[key >> 6] |= (uint64_t)1 << (key & 63);
        return;
    }
    map[m.word] |= (uint64_t)1 << m.first | (uint64_t)1 << m.second;
    map[m.beside] |= (uint64_t)1 << m.third | (uint64_t)1 << m.fourth;
}

/* ---- the prefilter: filling the maps ---- */

/* Whether the map has the mark of a key: 1 or 0. */
static inline uint64_t has_mark(const uint64_t *map, int squeeze, uint32_t key) {
    filter_mark m = mark_of(squeeze, key);
    if (!squeeze)
        return map[key >> 6] >> (key & 63) & 1;
    uint64_t here = map[m.word], beside = map[m.beside];
    return here >> m.first & here >> m.second & beside >> m.third & beside >> m.fourth & 1;
}
/* The distinct keys of the set side, ascending, so that the bits of one flip are set in nearly ascending order. */
static size_t collect_keys(const resident_set *set, const filter_part *part, uint64_t *keys, uint64_t *scratch) {
    uint64_t mask = ((uint64_t)1 << part->bits) - 1;
    for (size_t i = 0; i < set->distinct; i++)
        keys[i] = set->values[i * set->words + (size_t)part->word] >> part->shift & mask;
    dp_sort64(keys, set->distinct, scratch);
    return dp_unique64(keys, set->distinct);
}

/* Sets the marks of some keys, their slice exchanged by `high`, with all flips of up to `radius` bits inside a
 * slice. */
static void set_marks(const filter_part *part, const uint64_t *keys, size_t count, uint32_t high) {
    int bits = part->bits - part->slice_bits, radius = part->radius - __builtin_popcount(high);
    uint32_t flip = 0;
    for (double left = dp_ball(bits, radius); left > 0; left--) {
        for (size_t i = 0; i < count; i++)
            set_mark(part->map, part->squeeze, (uint32_t)keys[i] ^ flip ^ (uint32_t)((uint64_t)high << bits));
        flip = dp_flip_after(flip, bits);
    }
}

/* Slice by slice, so that a slice of the map stays in the cache for all flips inside it. */
static void set_all(const filter_part *part, const uint64_t *keys, size_t count) {
    int bits = part->bits - part->slice_bits;
    uint32_t high = 0;
    for (double left = dp_ball(part->slice_bits, part->radius); left > 0; left--) {
        for (size_t from = 0, end; from < count; from = end) {
            for (end = from + 1; end < count && keys[end] >> bits == keys[from] >> bits; end++)
                ;
            set_marks(part, keys + from, end - from, high);
        }
        high = dp_flip_after(high, part->slice_bits);
    }
}

static bool fill_map(const resident_set *set, filter_part *part) {
    uint64_t *keys = dp_big_alloc((size_t)set->distinct * sizeof *keys);
    uint64_t *scratch = dp_big_alloc((size_t)set->distinct * sizeof *scratch);
    part->map = dp_big_alloc(map_bytes(part));
    bool made = keys && scratch && part->map;
    if (made) {
        memset(part->map, 0, map_bytes(part));
        set_all(part, keys, collect_keys(set, part, keys, scratch));
    }
    free(keys);
    free(scratch);
    return made;
}

typedef struct map_filling {
    prefilter *filter;
    const resident_set *set;
    atomic_int next;
    atomic_bool failed;
} map_filling;

static void fill_parts(void *user, size_t thread) {
    map_filling *f = user;
    (void)thread;
    for (int i; (i = atomic_fetch_add(&f->next, 1)) < f->filter->parts;)
        if (!fill_map(f->set, &f->filter->part[i]))
            atomic_store(&f->failed, true);
}

/* Fills the maps. False when out of memory. */
static bool prefilter_build(prefilter *filter, const resident_set *set, size_t threads) {
    map_filling f = {.filter = filter, .set = set};
    if (filter->parts)
        dp_run_threads(threads < (size_t)filter->parts ? threads : (size_t)filter->parts, fill_parts, &f);
    return !atomic_load(&f.failed);
}

static void prefilter_free(prefilter *filter) {
    for (int i = 0; i < filter->parts; i++)
        free(filter->part[i].map);
    filter->parts = 0;
}

/* Entries whose bit is prefetched ahead of its test, for the parts of the slice not in the cache yet. */
#define PREFETCHED 48
/* Entries tested between two collections of those that passed. */
#define PIECE 1024

/* ---- the prefilter: testing a batch ---- */

/* What one thread tests a batch with. */
typedef struct filter_batch {
    const prefilter *filter;
    uint64_t *values;               /* room for a batch, in secret order */
    uint64_t *passed[FILTER_PARTS]; /* a bit for each of the batch: it may be near one in this part */
    size_t count;                   /* in the batch */
    uint64_t *entries, *open;
    uint32_t *counts[FILTER_PARTS]; /* of each slice */
    uint32_t *starts, *fills;
} filter_batch;

static size_t most_slices(const prefilter *filter) {
    int bits = 0;
    for (int i = 0; i < filter->parts; i++)
        if (filter->part[i].slice_bits > bits)
            bits = filter->part[i].slice_bits;
    return (size_t)1 << bits;
}

static bool init_slices(filter_batch *batch) {
    const prefilter *filter = batch->filter;
    size_t slices = most_slices(filter);
    bool made = true;
    for (int i = 0; i < filter->parts; i++)
        made = (batch->counts[i] = calloc(slices, sizeof(uint32_t))) && made;
    batch->starts = calloc(slices, sizeof *batch->starts);
    batch->fills = calloc(slices, sizeof *batch->fills);
    batch->open = dp_big_alloc(slices * DP_PARTITION_LINE * sizeof *batch->open);
    /* Each slice begins on a line; entries after the last one are read ahead. */
    batch->entries = dp_big_alloc((filter->batch + slices * DP_PARTITION_LINE + PREFETCHED) * sizeof *batch->entries);
    return made && batch->starts && batch->fills && batch->open && batch->entries;
}

/* False when out of memory. */
static bool filter_batch_init(filter_batch *batch, const prefilter *filter) {
    *batch = (filter_batch){.filter = filter};
    batch->values = dp_big_alloc(filter->batch * filter->words * sizeof *batch->values);
    bool made = batch->values;
    for (int i = 0; i < filter->parts; i++)
        made = (batch->passed[i] = dp_big_alloc((filter->batch / 64 + 1) * sizeof(uint64_t))) && made;
    return made && (!filter->sliced || init_slices(batch));
}

static void filter_batch_free(filter_batch *batch) {
    free(batch->values);
    free(batch->entries);
    free(batch->open);
    free(batch->starts);
    free(batch->fills);
    for (int i = 0; i < FILTER_PARTS; i++) {
        free(batch->counts[i]);
        free(batch->passed[i]);
    }
}

/* Begins a batch. */
static void filter_batch_clear(filter_batch *batch) {
    const prefilter *filter = batch->filter;
    batch->count = 0;
    for (int i = 0; i < filter->parts; i++)
        if (filter->part[i].slice_bits)
            memset(batch->counts[i], 0, sizeof(uint32_t) << filter->part[i].slice_bits);
}

/* Counts what each slice will get, while the fingerprints are still in the cache. */
static void count_slices(filter_batch *batch, const filter_part *part, uint32_t *counts, size_t end) {
    int shift = part->shift + part->bits - part->slice_bits;
    size_t words = batch->filter->words;
    uint64_t mask = ((uint64_t)1 << part->slice_bits) - 1;
    const uint64_t *values = batch->values + part->word;
    for (size_t i = batch->count; i < end; i++)
        counts[values[i * words] >> shift & mask]++;
}

/* `count` more fingerprints were put after those of the batch; there is room for filter->batch. */
static void filter_batch_added(filter_batch *batch, size_t count) {
    const prefilter *filter = batch->filter;
    for (int i = 0; i < filter->parts; i++)
        if (filter->part[i].slice_bits)
            count_slices(batch, &filter->part[i], batch->counts[i], batch->count + count);
    batch->count += count;
}

/* A map that the cache holds as a whole. */
static void test_whole(filter_batch *batch, const filter_part *part, uint64_t *passed) {
    const uint64_t *values = batch->values + part->word, *map = part->map;
    uint64_t mask = ((uint64_t)1 << part->bits) - 1;
    size_t words = batch->filter->words;
    for (size_t from = 0; from < batch->count; from += 64) {
        size_t end = batch->count - from < 64 ? batch->count : from + 64;
        uint64_t bits = 0;
        for (size_t i = from; i < end; i++)
            bits |= has_mark(map, part->squeeze, (uint32_t)(values[i * words] >> part->shift & mask)) << (i - from);
        passed[from / 64] = bits;
    }
}

/* Some entries of a slice. */
typedef struct slice_entries {
    const uint64_t *entries;
    size_t count;
} slice_entries;

/* The numbers of those of up to PIECE entries whose mark is there; returns how many. What follows the last entry of a
 * slice may be anything: a prefetch may miss. */
static inline size_t test_piece(const uint64_t *map, int squeeze, slice_entries p, uint32_t *list) {
    size_t found = 0;
    for (size_t i = 0; i < p.count; i++) {
        __builtin_prefetch(&map[mark_word(squeeze, (uint32_t)(p.entries[i + PREFETCHED] >> 32))]);
        list[found] = (uint32_t)p.entries[i];
        found += has_mark(map, squeeze, (uint32_t)(p.entries[i] >> 32));
    }
    return found;
}

static void test_slice(const filter_part *part, slice_entries slice, uint64_t *passed) {
    uint32_t list[PIECE];
    for (size_t from = 0; from < slice.count; from += PIECE) {
        slice_entries p = {slice.entries + from, slice.count - from < PIECE ? slice.count - from : PIECE};
        size_t found =
            part->squeeze ? test_piece(part->map, part->squeeze, p, list) : test_piece(part->map, 0, p, list);
        for (size_t i = 0; i < found; i++)
            passed[list[i] / 64] |= (uint64_t)1 << list[i] % 64;
    }
}

/* Deals the keys of the batch into slices. */
static void deal(filter_batch *batch, const filter_part *part, const uint32_t *counts) {
    size_t slices = (size_t)1 << part->slice_bits;
    uint32_t next = 0;
    for (size_t s = 0; s < slices; s++) {
        batch->starts[s] = next;
        next += (counts[s] + DP_PARTITION_LINE - 1) / DP_PARTITION_LINE * DP_PARTITION_LINE;
    }
    memset(batch->fills, 0, slices * sizeof *batch->fills);
    dp_partition d = {.stride = batch->filter->words, .shift = part->shift, .width = part->bits};
    d.slice_bits = part->slice_bits;
    d.open = batch->open;
    d.fills = batch->fills;
    d.starts = batch->starts;
    d.entries = batch->entries;
    dp_partition_kernel()(&d, batch->values + part->word, 0, (uint32_t)batch->count);
    for (size_t s = 0; s < slices; s++) {
        uint32_t left = counts[s] % DP_PARTITION_LINE;
        memcpy(batch->entries + batch->starts[s] + (counts[s] - left), batch->open + s * DP_PARTITION_LINE,
               left * sizeof(uint64_t));
    }
}

/* Sets `passed`. */
static void filter_batch_run(filter_batch *batch) {
    const prefilter *filter = batch->filter;
    for (int i = 0; i < filter->parts; i++) {
        const filter_part *part = &filter->part[i];
        uint64_t *passed = batch->passed[i];
        if (!part->slice_bits) {
            test_whole(batch, part, passed);
            continue;
        }
        memset(passed, 0, (batch->count / 64 + 1) * sizeof *passed);
        deal(batch, part, batch->counts[i]);
        for (size_t s = 0; s < (size_t)1 << part->slice_bits; s++)
            test_slice(part, (slice_entries){batch->entries + batch->starts[s], batch->counts[i][s]}, passed);
    }
}

/* ---- the stream ---- */

/* What came of a batch and is not given out yet. */
typedef struct batch_result {
    doppel_pair *pairs;
    size_t count, capacity;
    uint64_t fingerprints, found, candidates; /* to be counted */
} batch_result;

typedef struct stream_join {
    doppel_join_options options;
    size_t threads;
    resident_set set;
    prefilter filter;
    dp_fingerprints stream;
    uint64_t *ahead; /* what was read of a stream to see how long it is, and how much of that was used */
    size_t ahead_count, ahead_used;
    uint64_t total;        /* fingerprints in the stream; 0: not known */
    size_t most_pairs;     /* in a result */
    batch_result *results; /* by slot */
    size_t result_count;
    dp_ordered ordered;        /* of batches */
    pthread_mutex_t reading;   /* of the stream and `position` */
    uint64_t position;         /* of the next fingerprint to read */
    doppel_join_counts counts; /* of the thread that emits */
} stream_join;

/* What a thread works with. */
typedef struct stream_worker {
    stream_join *join;
    filter_batch batch;
    resident_finder finder;
    uint64_t *queries; /* finder.group of them, their numbers in the batch, and the parts in which they may be near */
    uint32_t *numbers;
    uint8_t *parts;
    uint64_t *keys, *scratch; /* to sort the pairs of one fingerprint */
    size_t key_capacity, scratch_capacity;
    uint64_t *room;  /* for reading */
    uint64_t number; /* of the batch */
    batch_result *result;
    uint64_t first; /* position of the batch */
} stream_worker;

/* ---- giving out: batches are done in any order, their pairs go out in the order of the stream ---- */

/* Gives out what the result of a slot has; dp_emit. */
static doppel_status emit(void *user, size_t slot, bool finished, doppel_error *error) {
    stream_join *join = user;
    batch_result *result = &join->results[slot];
    const doppel_join_options *options = &join->options;
    (void)finished; /* both times the same: the result is empty afterwards */
    doppel_status status = DOPPEL_OK;
    if (result->count && options->pairs)
        status = options->pairs(result->pairs, result->count, options->user);
    if (status != DOPPEL_OK)
        return dp_fail(error, status, "the callback that takes pairs says: %s", doppel_status_name(status));
    join->counts.fingerprints += result->fingerprints;
    join->counts.pairs += result->found;
    join->counts.candidates += result->candidates;
    result->count = 0;
    result->fingerprints = result->found = result->candidates = 0;
    if (options->progress)
        options->progress(join->counts.fingerprints, join->total, options->user);
    return DOPPEL_OK;
}

/* ---- looking up what passed the prefilter: pairs in order of (b, a) ---- */

static bool worker_init(stream_worker *worker, stream_join *join) {
    *worker = (stream_worker){.join = join};
    bool made = finder_init(&worker->finder, &join->set);
    made = filter_batch_init(&worker->batch, &join->filter) && made;
    worker->queries = malloc(worker->finder.group * join->set.words * sizeof *worker->queries);
    worker->numbers = malloc(worker->finder.group * sizeof *worker->numbers);
    worker->parts = malloc(worker->finder.group);
    worker->room = malloc(DP_FINGERPRINTS_BATCH * join->set.words * sizeof *worker->room);
    return made && worker->queries && worker->numbers && worker->parts && worker->room;
}

static void worker_free(stream_worker *worker) {
    finder_free(&worker->finder);
    filter_batch_free(&worker->batch);
    free(worker->queries);
    free(worker->numbers);
    free(worker->parts);
    free(worker->room);
    free(worker->keys);
    free(worker->scratch);
}

static bool no_memory(stream_worker *worker) {
    doppel_error error;
    dp_no_memory(&error);
    dp_ordered_fail(&worker->join->ordered, DOPPEL_ERROR_MEMORY, &error);
    return false;
}

static bool keep_pair(stream_worker *worker, doppel_pair pair) {
    batch_result *result = worker->result;
    if (result->count == worker->join->most_pairs &&
        dp_ordered_flush(&worker->join->ordered, worker->number) != DOPPEL_OK)
        return false;
    if (!dp_reserve(&result->pairs, &result->capacity, result->count + 1, sizeof pair))
        return no_memory(worker);
    result->pairs[result->count++] = pair;
    result->found++;
    return true;
}

/* The positions of one resident fingerprint are in order as they stand. */
static bool add_one(stream_worker *worker, const resident_hit *hit, uint64_t b) {
    const resident_set *set = &worker->join->set;
    for (uint32_t at = set->starts[hit->id]; at < set->starts[hit->id + 1]; at++)
        if (!keep_pair(worker, (doppel_pair){set->positions[at], b, (int)hit->distance}))
            return false;
    return true;
}

/* Those of several are sorted: a position and its distance, at most 128, as one number. */
static bool add_several(stream_worker *worker, const resident_hit *hits, size_t count, uint64_t b) {
    const resident_set *set = &worker->join->set;
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += set->starts[hits[i].id + 1] - set->starts[hits[i].id];
    if (!dp_reserve(&worker->keys, &worker->key_capacity, found, sizeof *worker->keys) ||
        !dp_reserve(&worker->scratch, &worker->scratch_capacity, found, sizeof *worker->scratch))
        return no_memory(worker);
    uint64_t *key = worker->keys;
    for (size_t i = 0; i < count; i++)
        for (uint32_t at = set->starts[hits[i].id]; at < set->starts[hits[i].id + 1]; at++)
            *key++ = (uint64_t)set->positions[at] << 8 | hits[i].distance;
    dp_sort64(worker->keys, found, worker->scratch);
    for (size_t i = 0; i < found; i++)
        if (!keep_pair(worker, (doppel_pair){worker->keys[i] >> 8, b, (int)(worker->keys[i] & 255)}))
            return false;
    return true;
}

static void count_pairs(stream_worker *worker, const resident_hit *hits, size_t count) {
    const resident_set *set = &worker->join->set;
    for (size_t i = 0; i < count; i++)
        worker->result->found += set->starts[hits[i].id + 1] - set->starts[hits[i].id];
}

/* Adds the pairs of all hits of the last find. */
static bool add_hits(stream_worker *worker) {
    const resident_finder *finder = &worker->finder;
    bool only_count = worker->join->options.count_only || !worker->join->options.pairs;
    for (size_t from = 0, end; from < finder->hit_count; from = end) {
        const resident_hit *hits = finder->hits + from;
        for (end = from + 1; end < finder->hit_count && finder->hits[end].query == hits->query; end++)
            ;
        uint64_t b = worker->first + worker->numbers[hits->query];
        if (only_count)
            count_pairs(worker, hits, end - from);
        else if (!(end - from == 1 ? add_one(worker, hits, b) : add_several(worker, hits, end - from, b)))
            return false;
    }
    return true;
}

static bool find_group(stream_worker *worker, size_t count) {
    resident_finder *finder = &worker->finder;
    if (dp_ordered_over(&worker->join->ordered))
        return false;
    if (dp_stopped(worker->join->options.stop)) {
        dp_ordered_fail(&worker->join->ordered, DOPPEL_ERROR_INTERRUPTED, NULL);
        return false;
    }
    if (!finder_run(finder, worker->queries, worker->parts, count))
        return no_memory(worker);
    worker->result->candidates += finder->candidates;
    finder->candidates = 0;
    return !finder->hit_count || add_hits(worker);
}

/* Those of 64 fingerprints, from number `from` on, that passed some map. Without a prefilter, all are taken to be near
 * in the first part. */
static uint64_t passed_any(const filter_batch *batch, size_t from) {
    uint64_t passed = batch->filter->parts ? 0 : ~(uint64_t)0;
    for (int i = 0; i < batch->filter->parts; i++)
        passed |= batch->passed[i][from / 64];
    return batch->count - from < 64 ? passed & (((uint64_t)1 << (batch->count - from)) - 1) : passed;
}

static uint8_t parts_of(const filter_batch *batch, size_t number) {
    unsigned parts = !batch->filter->parts;
    for (int i = 0; i < batch->filter->parts; i++)
        parts |= (unsigned)(batch->passed[i][number / 64] >> number % 64 & 1) << i;
    return (uint8_t)parts;
}

/* Looks the loaded batch up and adds its pairs to the result. */
static void look_up_batch(stream_worker *worker) {
    const filter_batch *batch = &worker->batch;
    size_t words = worker->join->set.words, group = worker->finder.group, filled = 0;
    filter_batch_run(&worker->batch);
    for (size_t from = 0; from < batch->count; from += 64)
        for (uint64_t passed = passed_any(batch, from); passed; passed &= passed - 1) {
            size_t number = from + (size_t)__builtin_ctzll(passed);
            memcpy(worker->queries + filled * words, batch->values + number * words, words * sizeof(uint64_t));
            worker->parts[filled] = parts_of(batch, number);
            worker->numbers[filled++] = (uint32_t)number;
            if (filled == group && !find_group(worker, filled))
                return;
            filled %= group;
        }
    if (filled)
        find_group(worker, filled);
}

/* How much of a stream of unknown length is read to see whether it is short: READ_AHEAD fingerprints, or what an eighth
 * of the memory holds. */
#define READ_AHEAD ((uint64_t)1 << 20)
#define LEAST_READ_AHEAD ((uint64_t)1 << 12)
/* A stream that goes on after that is taken to be this long: its prefilter pays from about there on. */
#define LONG_STREAM ((uint64_t)1 << 26)
/* Pairs a batch keeps before it waits for its turn: 1.5 MiB. */
#define MOST_PAIRS 65536

static size_t item_size(const stream_join *join) {
    return join->set.words * sizeof(uint64_t);
}

/* ---- reading the stream ---- */

/* The next of the stream, at most `room`, into worker->room or in place; *count is 0 at the end. */
static doppel_status read_next(stream_worker *worker, size_t room, const uint64_t **got, size_t *count,
                               doppel_error *error) {
    stream_join *join = worker->join;
    size_t left = join->ahead_count - join->ahead_used;
    *count = room;
    if (!left)
        return dp_fingerprints_next(&join->stream, worker->room, count, got, error);
    *count = left < room ? left : room;
    *got = join->ahead + join->ahead_used * join->set.words;
    join->ahead_used += *count;
    return DOPPEL_OK;
}

/* Adds fingerprints to the batch. */
static void load(stream_worker *worker, const uint64_t *values, size_t count) {
    filter_batch *batch = &worker->batch;
    const resident_set *set = &worker->join->set;
    dp_order_apply_many(&set->order, values, count, batch->values + batch->count * set->words);
    filter_batch_added(batch, count);
}

/* Loads a batch from what can only be read in turn; under `reading`. */
static doppel_status load_in_turn(stream_worker *worker, doppel_error *error) {
    size_t batch = worker->join->filter.batch, count = 1;
    doppel_status status = DOPPEL_OK;
    while (status == DOPPEL_OK && count && worker->batch.count < batch) {
        size_t room = batch - worker->batch.count;
        const uint64_t *got;
        if (dp_stopped(worker->join->options.stop))
            return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        status = read_next(worker, room < DP_FINGERPRINTS_BATCH ? room : DP_FINGERPRINTS_BATCH, &got, &count, error);
        if (status == DOPPEL_OK && count)
            load(worker, got, count);
    }
    return status;
}

/* Loads `count` fingerprints of what can be read anywhere. */
static doppel_status load_anywhere(stream_worker *worker, size_t count, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    while (status == DOPPEL_OK && worker->batch.count < count) {
        size_t left = count - worker->batch.count, piece = left < DP_FINGERPRINTS_BATCH ? left : DP_FINGERPRINTS_BATCH;
        const uint64_t *got;
        dp_fingerprints_part part = {worker->first + worker->batch.count, piece};
        status = dp_fingerprints_read(&worker->join->stream, part, worker->room, &got, error);
        if (status == DOPPEL_OK)
            load(worker, got, piece);
    }
    return status;
}

/* Takes the next batch, and if it can only be read in turn, reads it; *count is how many are left to read, false at the
 * end. Under `reading`. */
static bool take(stream_worker *worker, size_t *count) {
    stream_join *join = worker->join;
    doppel_error error;
    size_t slot;
    filter_batch_clear(&worker->batch);
    worker->first = join->position;
    if (!dp_ordered_wait(&join->ordered, &slot))
        return false;
    worker->result = &join->results[slot];
    if (dp_stopped(join->options.stop)) {
        dp_ordered_fail(&join->ordered, DOPPEL_ERROR_INTERRUPTED, NULL);
        return false;
    }
    if (join->stream.settled) {
        uint64_t left = join->stream.count - join->position;
        *count = left < join->filter.batch ? (size_t)left : join->filter.batch;
    } else {
        doppel_status status = load_in_turn(worker, &error);
        if (status != DOPPEL_OK) {
            dp_ordered_fail(&join->ordered, status, &error);
            return false;
        }
        *count = worker->batch.count;
    }
    join->position += *count;
    if (*count)
        worker->number = dp_ordered_take(&join->ordered);
    return *count != 0;
}

static void work(stream_worker *worker) {
    stream_join *join = worker->join;
    doppel_error error;
    for (;;) {
        size_t count = 0;
        pthread_mutex_lock(&join->reading);
        bool taken = take(worker, &count);
        pthread_mutex_unlock(&join->reading);
        if (!taken)
            return;
        doppel_status status = load_anywhere(worker, count, &error);
        if (status != DOPPEL_OK) {
            dp_ordered_fail(&join->ordered, status, &error);
            return;
        }
        worker->result->fingerprints += count;
        look_up_batch(worker);
        dp_ordered_finish(&join->ordered, worker->number);
    }
}

static void thread_main(void *user, size_t thread) {
    stream_join *join = user;
    stream_worker *worker = malloc(sizeof *worker);
    (void)thread;
    if (worker && worker_init(worker, join))
        work(worker);
    else
        dp_ordered_fail(&join->ordered, DOPPEL_ERROR_MEMORY, NULL);
    if (worker)
        worker_free(worker);
    free(worker);
}

/* ---- setting up ---- */

/* Finds out how long the stream is, or reads ahead to see whether it is short; returns what to plan for. What that
 * takes of the memory is taken off. */
static doppel_status look_ahead(stream_join *join, uint64_t *memory, uint64_t *expected, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    uint64_t room = *memory / 8 / item_size(join);
    size_t count = 1, most = (size_t)(room < LEAST_READ_AHEAD ? LEAST_READ_AHEAD
                                      : room < READ_AHEAD     ? room
                                                              : READ_AHEAD);
    *expected = join->total = join->stream.count;
    if (join->stream.settled)
        return DOPPEL_OK;
    join->ahead = malloc(most * item_size(join));
    if (!join->ahead)
        return dp_no_memory(error);
    *memory -= most * item_size(join) < *memory ? most * item_size(join) : *memory;
    while (status == DOPPEL_OK && count && join->ahead_count < most) {
        const uint64_t *got;
        count = most - join->ahead_count;
        if (dp_stopped(join->options.stop))
            return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        status =
            dp_fingerprints_next(&join->stream, join->ahead + join->ahead_count * join->set.words, &count, &got, error);
        if (status == DOPPEL_OK)
            join->ahead_count += count;
    }
    *expected = count ? LONG_STREAM : join->ahead_count;
    join->total = count ? 0 : join->ahead_count;
    return status;
}

static doppel_status create_results(stream_join *join, uint64_t memory, doppel_error *error) {
    size_t count = 4 * join->threads;
    uint64_t share = memory / count / sizeof(doppel_pair);
    join->most_pairs = share < 256 ? 256 : share > MOST_PAIRS ? MOST_PAIRS : (size_t)share;
    join->results = calloc(count, sizeof *join->results);
    if (!join->results || dp_ordered_init(&join->ordered, count, emit, join) != DOPPEL_OK)
        return dp_no_memory(error);
    join->result_count = count;
    return DOPPEL_OK;
}

/* Shares the memory: the resident set takes what it needs, of the rest an eighth is for pairs. */
static doppel_status set_up(stream_join *join, const doppel_source *a, int distance, doppel_error *error) {
    const doppel_join_options *o = &join->options;
    uint64_t memory = o->memory ? o->memory : dp_memory_default(), expected;
    resident_options set = {.distance = distance, .threads = join->threads, .memory = memory, .stop = o->stop};
    set.secret = o->secret ? o->secret : dp_random_number();
    dp_fingerprints source;
    DP_TRY(dp_fingerprints_open(&source, a, o->bits, error));
    doppel_status status = resident_build(&join->set, &source, &set, error);
    dp_fingerprints_close(&source);
    uint64_t used = resident_bytes(&join->set), rest = memory > used ? memory - used : 0;
    DP_THEN(status, look_ahead(join, &rest, &expected, error));
    if (status != DOPPEL_OK)
        return status;
    prefilter_options filter = {.threads = join->threads, .memory = rest / 8 * 7, .stream = expected};
    prefilter_plan(&join->filter, &join->set, &filter);
    if (join->filter.nested)
        use_parts(&join->set, join->filter.found, join->filter.parts);
    if (!resident_fill(&join->set, join->threads) || !prefilter_build(&join->filter, &join->set, join->threads))
        return dp_no_memory(error);
    if (join->total && join->total / join->filter.batch < join->threads)
        join->threads = (size_t)(join->total / join->filter.batch) + 1; /* no more than there are batches */
    return create_results(join, rest / 8, error);
}

static void free_all(stream_join *join) {
    for (size_t i = 0; join->results && i < join->result_count; i++)
        free(join->results[i].pairs);
    free(join->results);
    free(join->ahead);
    prefilter_free(&join->filter);
    resident_free(&join->set);
    dp_fingerprints_close(&join->stream);
    pthread_mutex_destroy(&join->reading);
}

/* ---- the call ---- */

static doppel_status run(stream_join *join, const doppel_source *a, int distance, doppel_error *error) {
    if (distance < 0 || distance > join->stream.bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a distance of %d: fingerprints have %d bits", distance,
                       join->stream.bits);
    DP_TRY(set_up(join, a, distance, error));
    dp_run_threads(join->threads, thread_main, join);
    return dp_ordered_end(&join->ordered, error);
}

doppel_status doppel_join_sets(const doppel_source *a, const doppel_source *b, int distance,
                               const doppel_join_options *options, doppel_join_counts *counts, doppel_error *error) {
    stream_join join = {0};
    if (counts)
        memset(counts, 0, sizeof *counts);
    if (options)
        dp_copy_options(&join.options, options, sizeof join.options);
    DP_TRY(dp_fingerprints_open(&join.stream, b, join.options.bits, error));
    join.threads = dp_thread_count(join.options.threads);
    pthread_mutex_init(&join.reading, NULL);
    doppel_status status = run(&join, a, distance, error);
    join.counts.all_pairs = join.counts.pairs;
    if (counts)
        *counts = join.counts;
    free_all(&join);
    return status;
}
