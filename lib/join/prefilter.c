/* prefilter.c - rejects most streamed fingerprints without a look at the resident set: chooses the parts and maps by
 * what they cost, fills the maps, and tests batches. two_sets.h says how it works. */
#include "hamming/hamming.h"
#include "join/two_sets.h"

#include <math.h>
#include <stdlib.h>

/* A slice of 2^21 bits is 256 KiB: with the entries that stream by it stays in a second-level cache of 1 MiB, and what
 * a squeezed map moves a word by (6 + MOST_SQUEEZE bits) is less than a slice has (15). */
#define SLICE_BITS 21
/* Key bits: a number of 32 bits and the number of its fingerprint make an entry. */
#define MOST_BITS 32
#define LEAST_BITS 6
/* From 16 keys for each bit on, no map is both small and sparse. */
#define MOST_SQUEEZE 4

/* Fingerprints tested together: enough for a slice to be used by many while it is in the cache (the time goes down
 * until about there), or, without slices, few enough to stay in the cache themselves. */
#define SLICED_BATCH ((size_t)1 << 24)
#define WHOLE_BATCH ((size_t)1 << 14)
#define LEAST_SLICED_BATCH ((size_t)1 << 16)
#define LEAST_BATCH ((size_t)64)
/* The least number of batches of a stream for a thread: the memory of a batch is slow while it is fresh. */
#define BATCHES 4

/* Nanoseconds, measured on one thread: a test in a map inside the cache; counting, dealing and testing in slices;
 * bringing a byte of a map into the cache, once a batch; setting a bit in the cache and beyond; a byte of fresh memory.
 */
#define TEST_WHOLE 1.3
#define TEST_SLICED 5.5
#define LOAD_BYTE 0.1
#define SET_NEAR 1.5
#define SET_FAR 6.0
#define FRESH_BYTE 0.4

/* ---- planning ---- */

/* The key of a map: its bits, and how much it is squeezed. */
typedef struct shape {
    int bits, squeeze;
} shape;

static uint64_t map_bytes(const dp_prefilter_part *part) {
    int bits = part->bits - part->squeeze;
    return bits < 6 ? 8 : (uint64_t)1 << (bits - 3);
}

/* Keys of up to key.bits bits, the top of a part. */
static dp_prefilter_part part_of(const dp_resident_part *found, shape key) {
    dp_prefilter_part part = {.radius = found->radius, .squeeze = key.squeeze};
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
static size_t batch_of(const dp_prefilter_options *options, size_t least, size_t most) {
    uint64_t share = options->stream / options->threads / BATCHES + 1;
    return share < least ? least : share > most ? most : (size_t)share;
}

/* Cuts into m parts. Those near in a part are found by tables inside it, unless all tables of the set side cost less,
 * or fit the memory when the others do not. */
static dp_prefilter divide(const dp_resident *set, const dp_prefilter_options *options, int m) {
    dp_prefilter filter = {.words = set->words, .parts = m, .nested = set->tables > 0};
    int width = set->bits / m, sum = set->distance - m + 1;
    for (int i = 0; i < m; i++) {
        dp_resident_part *found = &filter.found[i];
        *found = (dp_resident_part){.from = i * width, .width = width, .radius = sum / m + (i < sum % m)};
        dp_resident_plan_part(set, found);
        filter.nested = filter.nested && found->nanoseconds <= set->nanoseconds;
    }
    uint64_t room = dp_resident_table_bytes(set) + options->memory / 2;
    filter.nested = filter.nested && dp_resident_parts_bytes(set, filter.found, m) <= room;
    for (int i = 0; i < m && !filter.nested; i++)
        filter.found[i].nanoseconds = set->nanoseconds;
    return filter;
}

/* Bytes for maps and batches. */
static uint64_t memory_of(const dp_prefilter *filter, const dp_resident *set, const dp_prefilter_options *options) {
    uint64_t all = options->memory + dp_resident_table_bytes(set);
    uint64_t tables =
        filter->nested ? dp_resident_parts_bytes(set, filter->found, filter->parts) : dp_resident_table_bytes(set);
    return all > tables ? all - tables : 0;
}

/* Sets the keys, and the batch that the memory allows. False when it does not fit, or words would be too few. */
static bool cut(dp_prefilter *filter, const dp_resident *set, const dp_prefilter_options *options, shape key) {
    uint64_t maps = 0, fingerprint = set->words * 8 + 1, memory = memory_of(filter, set, options);
    filter->batch = batch_of(options, LEAST_BATCH, WHOLE_BATCH);
    for (int i = 0; i < filter->parts; i++) {
        dp_prefilter_part *part = &filter->part[i];
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
static double share_passed(const dp_prefilter_part *part, double marked) {
    double passed = 1 - exp(-marked / ldexp(1, part->bits)), q = 63.0 * 63 / (64 * 64);
    if (!part->squeeze)
        return passed;
    double keys = 2 * 8 * marked / (double)map_bytes(part);
    double by_chance = 1 - 2 * exp(keys * (q - 1)) + exp(keys * (q * q - 1));
    return passed + (1 - passed) * by_chance * by_chance;
}

/* Nanoseconds that building and a stream take. */
static double cost_of(const dp_prefilter *filter, const dp_resident *set, const dp_prefilter_options *options) {
    double build = 0, test = 0, find = 0;
    for (int i = 0; i < filter->parts; i++) {
        const dp_prefilter_part *part = &filter->part[i];
        double bytes = (double)map_bytes(part), marked = set->distinct * dp_ball(part->bits, part->radius);
        build += marked * (part->slice_bits ? SET_FAR : SET_NEAR) + bytes * FRESH_BYTE;
        test += part->slice_bits ? TEST_SLICED + bytes * LOAD_BYTE / (double)filter->batch : TEST_WHOLE;
        find += share_passed(part, marked) * filter->found[i].nanoseconds;
    }
    double builders = (double)(options->threads < (size_t)filter->parts ? options->threads : (size_t)filter->parts);
    return build / builders + (test + find) * (double)options->stream / (double)options->threads;
}

void dp_prefilter_plan(dp_prefilter *filter, const dp_resident *set, const dp_prefilter_options *options) {
    dp_prefilter none = {.words = set->words, .batch = batch_of(options, LEAST_BATCH, WHOLE_BATCH)}, candidate;
    double best = set->nanoseconds * (double)options->stream / (double)options->threads;
    *filter = none;
    for (int m = 1; m <= DP_PREFILTER_PARTS && m <= set->distance + 1 && m <= set->bits; m++) {
        if (set->words == 2 && m == 3)
            continue; /* its parts would reach over two numbers */
        dp_prefilter divided = divide(set, options, m);
        for (shape key = {.bits = LEAST_BITS}; key.bits <= MOST_BITS; key.bits++)
            for (key.squeeze = 0; key.squeeze <= MOST_SQUEEZE; key.squeeze++) {
                candidate = divided;
                double cost = cut(&candidate, set, options, key) ? cost_of(&candidate, set, options) : HUGE_VAL;
                if (cost < best) {
                    best = cost;
                    *filter = candidate;
                }
            }
    }
}

/* ---- building ---- */

/* The distinct keys of the set side, ascending, so that the bits of one flip are set in nearly ascending order. */
static size_t collect_keys(const dp_resident *set, const dp_prefilter_part *part, uint64_t *keys, uint64_t *scratch) {
    uint64_t mask = ((uint64_t)1 << part->bits) - 1;
    for (size_t i = 0; i < set->distinct; i++)
        keys[i] = set->values[i * set->words + (size_t)part->word] >> part->shift & mask;
    dp_sort64(keys, set->distinct, scratch);
    return dp_unique64(keys, set->distinct);
}

/* Sets the marks of some keys, their slice exchanged by `high`, with all flips of up to `radius` bits inside a slice.
 */
static void set_marks(const dp_prefilter_part *part, const uint64_t *keys, size_t count, uint32_t high) {
    int bits = part->bits - part->slice_bits, radius = part->radius - __builtin_popcount(high);
    uint32_t flip = 0;
    for (double left = dp_ball(bits, radius); left > 0; left--) {
        for (size_t i = 0; i < count; i++)
            dp_prefilter_set(part->map, part->squeeze, (uint32_t)keys[i] ^ flip ^ (uint32_t)((uint64_t)high << bits));
        flip = dp_flip_after(flip, bits);
    }
}

/* Slice by slice, so that a slice of the map stays in the cache for all flips inside it. */
static void set_all(const dp_prefilter_part *part, const uint64_t *keys, size_t count) {
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

static bool fill(const dp_resident *set, dp_prefilter_part *part) {
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
    dp_prefilter *filter;
    const dp_resident *set;
    atomic_int next;
    atomic_bool failed;
} map_filling;

static void fill_parts(void *user, size_t thread) {
    map_filling *f = user;
    (void)thread;
    for (int i; (i = atomic_fetch_add(&f->next, 1)) < f->filter->parts;)
        if (!fill(f->set, &f->filter->part[i]))
            atomic_store(&f->failed, true);
}

bool dp_prefilter_build(dp_prefilter *filter, const dp_resident *set, size_t threads) {
    map_filling f = {.filter = filter, .set = set};
    if (filter->parts)
        dp_run_threads(threads < (size_t)filter->parts ? threads : (size_t)filter->parts, fill_parts, &f);
    return !atomic_load(&f.failed);
}

void dp_prefilter_free(dp_prefilter *filter) {
    for (int i = 0; i < filter->parts; i++)
        free(filter->part[i].map);
    filter->parts = 0;
}

/* Entries whose bit is asked for ahead of its test: what of the slice is not in the cache yet comes from memory. */
#define AHEAD 48
/* Entries tested between two looks at what passed. */
#define PIECE 1024

/* ---- memory ---- */

static size_t most_slices(const dp_prefilter *filter) {
    int bits = 0;
    for (int i = 0; i < filter->parts; i++)
        if (filter->part[i].slice_bits > bits)
            bits = filter->part[i].slice_bits;
    return (size_t)1 << bits;
}

static bool init_slices(dp_filter_batch *batch) {
    const dp_prefilter *filter = batch->filter;
    size_t slices = most_slices(filter);
    bool made = true;
    for (int i = 0; i < filter->parts; i++)
        made = (batch->counts[i] = calloc(slices, sizeof(uint32_t))) && made;
    batch->starts = calloc(slices, sizeof *batch->starts);
    batch->fills = calloc(slices, sizeof *batch->fills);
    batch->open = dp_big_alloc(slices * DP_PARTITION_LINE * sizeof *batch->open);
    /* Each slice begins on a line; entries after the last one are read ahead. */
    batch->entries = dp_big_alloc((filter->batch + slices * DP_PARTITION_LINE + AHEAD) * sizeof *batch->entries);
    return made && batch->starts && batch->fills && batch->open && batch->entries;
}

bool dp_filter_batch_init(dp_filter_batch *batch, const dp_prefilter *filter) {
    *batch = (dp_filter_batch){.filter = filter};
    batch->values = dp_big_alloc(filter->batch * filter->words * sizeof *batch->values);
    bool made = batch->values;
    for (int i = 0; i < filter->parts; i++)
        made = (batch->passed[i] = dp_big_alloc((filter->batch / 64 + 1) * sizeof(uint64_t))) && made;
    return made && (!filter->sliced || init_slices(batch));
}

void dp_filter_batch_free(dp_filter_batch *batch) {
    free(batch->values);
    free(batch->entries);
    free(batch->open);
    free(batch->starts);
    free(batch->fills);
    for (int i = 0; i < DP_PREFILTER_PARTS; i++) {
        free(batch->counts[i]);
        free(batch->passed[i]);
    }
}

/* ---- loading ---- */

void dp_filter_batch_clear(dp_filter_batch *batch) {
    const dp_prefilter *filter = batch->filter;
    batch->count = 0;
    for (int i = 0; i < filter->parts; i++)
        if (filter->part[i].slice_bits)
            memset(batch->counts[i], 0, sizeof(uint32_t) << filter->part[i].slice_bits);
}

/* Counts what each slice will get, while the fingerprints are still in the cache. */
static void count_slices(dp_filter_batch *batch, const dp_prefilter_part *part, uint32_t *counts, size_t end) {
    int shift = part->shift + part->bits - part->slice_bits;
    size_t words = batch->filter->words;
    uint64_t mask = ((uint64_t)1 << part->slice_bits) - 1;
    const uint64_t *values = batch->values + part->word;
    for (size_t i = batch->count; i < end; i++)
        counts[values[i * words] >> shift & mask]++;
}

void dp_filter_batch_added(dp_filter_batch *batch, size_t count) {
    const dp_prefilter *filter = batch->filter;
    for (int i = 0; i < filter->parts; i++)
        if (filter->part[i].slice_bits)
            count_slices(batch, &filter->part[i], batch->counts[i], batch->count + count);
    batch->count += count;
}

/* ---- testing ---- */

/* A map that the cache holds as a whole. */
static void test_whole(dp_filter_batch *batch, const dp_prefilter_part *part, uint64_t *passed) {
    const uint64_t *values = batch->values + part->word, *map = part->map;
    uint64_t mask = ((uint64_t)1 << part->bits) - 1;
    size_t words = batch->filter->words;
    for (size_t from = 0; from < batch->count; from += 64) {
        size_t end = batch->count - from < 64 ? batch->count : from + 64;
        uint64_t bits = 0;
        for (size_t i = from; i < end; i++)
            bits |= dp_prefilter_test(map, part->squeeze, (uint32_t)(values[i * words] >> part->shift & mask))
                    << (i - from);
        passed[from / 64] = bits;
    }
}

/* Some entries of a slice. */
typedef struct slice_entries {
    const uint64_t *entries;
    size_t count;
} slice_entries;

/* The numbers of those of up to PIECE entries whose mark is there; gives how many. What follows the last entry of a
 * slice may be anything: a prefetch may miss. */
static inline size_t test_piece(const uint64_t *map, int squeeze, slice_entries p, uint32_t *list) {
    size_t found = 0;
    for (size_t i = 0; i < p.count; i++) {
        __builtin_prefetch(&map[dp_prefilter_word(squeeze, (uint32_t)(p.entries[i + AHEAD] >> 32))]);
        list[found] = (uint32_t)p.entries[i];
        found += dp_prefilter_test(map, squeeze, (uint32_t)(p.entries[i] >> 32));
    }
    return found;
}

static void test_slice(const dp_prefilter_part *part, slice_entries slice, uint64_t *passed) {
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
static void deal(dp_filter_batch *batch, const dp_prefilter_part *part, const uint32_t *counts) {
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

void dp_filter_batch_run(dp_filter_batch *batch) {
    const dp_prefilter *filter = batch->filter;
    for (int i = 0; i < filter->parts; i++) {
        const dp_prefilter_part *part = &filter->part[i];
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
