/* sieve.c - chooses the parts and maps of a sieve by what they cost, and fills the maps. */
#include "index/sieve.h"

#include "index/costs.h"
#include "index/flips.h"

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
/* A thread gets at least so many batches of a stream: the memory of a batch is slow when it is fresh. */
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

static uint64_t map_bytes(const dp_sieve_part *part) {
    int bits = part->bits - part->squeeze;
    return bits < 6 ? 8 : (uint64_t)1 << (bits - 3);
}

/* Keys of up to so many bits, the top of a part. */
static dp_sieve_part part_of(const dp_held_part *found, shape key) {
    dp_sieve_part part = {.radius = found->radius, .squeeze = key.squeeze};
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
static size_t batch_of(const dp_sieve_options *options, size_t least, size_t most) {
    uint64_t share = options->stream / options->threads / BATCHES + 1;
    return share < least ? least : share > most ? most : (size_t)share;
}

/* Cuts into m parts. Those near in a part are found by tables inside it, unless all tables of the held side cost less,
 * or fit the memory when the others do not. */
static dp_sieve divide(const dp_held *held, const dp_sieve_options *options, int m) {
    dp_sieve sieve = {.words = held->words, .parts = m, .nested = held->tables > 0};
    int width = held->bits / m, sum = held->distance - m + 1;
    for (int i = 0; i < m; i++) {
        dp_held_part *found = &sieve.found[i];
        *found = (dp_held_part){.from = i * width, .width = width, .radius = sum / m + (i < sum % m)};
        dp_held_plan_part(held, found);
        sieve.nested = sieve.nested && found->nanoseconds <= held->nanoseconds;
    }
    uint64_t room = dp_held_table_bytes(held) + options->memory / 2;
    sieve.nested = sieve.nested && dp_held_parts_bytes(held, sieve.found, m) <= room;
    for (int i = 0; i < m && !sieve.nested; i++)
        sieve.found[i].nanoseconds = held->nanoseconds;
    return sieve;
}

/* Bytes for maps and batches. */
static uint64_t memory_of(const dp_sieve *sieve, const dp_held *held, const dp_sieve_options *options) {
    uint64_t all = options->memory + dp_held_table_bytes(held);
    uint64_t tables = sieve->nested ? dp_held_parts_bytes(held, sieve->found, sieve->parts) : dp_held_table_bytes(held);
    return all > tables ? all - tables : 0;
}

/* Sets the keys, and the batch that the memory allows. False when it does not fit, or words would be too few. */
static bool cut(dp_sieve *sieve, const dp_held *held, const dp_sieve_options *options, shape key) {
    uint64_t maps = 0, fingerprint = held->words * 8 + 1, memory = memory_of(sieve, held, options);
    sieve->batch = batch_of(options, LEAST_BATCH, WHOLE_BATCH);
    for (int i = 0; i < sieve->parts; i++) {
        dp_sieve_part *part = &sieve->part[i];
        *part = part_of(&sieve->found[i], key);
        if (part->squeeze && 2 * (6 + part->squeeze) > part->bits)
            return false;
        sieve->sliced = sieve->sliced || part->slice_bits;
        maps += map_bytes(part);
    }
    if (sieve->sliced) {
        fingerprint += 8;
        sieve->batch = batch_of(options, LEAST_SLICED_BATCH, SLICED_BATCH);
    }
    uint64_t room = maps < memory ? (memory - maps) / options->threads / fingerprint : 0;
    if (sieve->batch > room)
        sieve->batch = (size_t)room;
    return sieve->batch >= (sieve->sliced ? LEAST_SLICED_BATCH : LEAST_BATCH);
}

/* The share of keys that pass a map where so many are set. In a squeezed map the n keys of a word, and those that have
 * it beside theirs, set two bits each: two random bits are set with probability (1 - q^n)^2, q = (63/64)^2, and n is
 * spread as a Poisson number is. */
static double share_passed(const dp_sieve_part *part, double set) {
    double passed = 1 - exp(-set / ldexp(1, part->bits)), q = 63.0 * 63 / (64 * 64);
    if (!part->squeeze)
        return passed;
    double keys = 2 * 8 * set / (double)map_bytes(part);
    double by_chance = 1 - 2 * exp(keys * (q - 1)) + exp(keys * (q * q - 1));
    return passed + (1 - passed) * by_chance * by_chance;
}

/* Nanoseconds that building and a stream take. */
static double cost_of(const dp_sieve *sieve, const dp_held *held, const dp_sieve_options *options) {
    double build = 0, test = 0, find = 0;
    for (int i = 0; i < sieve->parts; i++) {
        const dp_sieve_part *part = &sieve->part[i];
        double bytes = (double)map_bytes(part), set = held->distinct * dp_ball(part->bits, part->radius);
        build += set * (part->slice_bits ? SET_FAR : SET_NEAR) + bytes * FRESH_BYTE;
        test += part->slice_bits ? TEST_SLICED + bytes * LOAD_BYTE / (double)sieve->batch : TEST_WHOLE;
        find += share_passed(part, set) * sieve->found[i].nanoseconds;
    }
    double builders = (double)(options->threads < (size_t)sieve->parts ? options->threads : (size_t)sieve->parts);
    return build / builders + (test + find) * (double)options->stream / (double)options->threads;
}

void dp_sieve_plan(dp_sieve *sieve, const dp_held *held, const dp_sieve_options *options) {
    dp_sieve none = {.words = held->words, .batch = batch_of(options, LEAST_BATCH, WHOLE_BATCH)}, candidate;
    double best = held->nanoseconds * (double)options->stream / (double)options->threads;
    *sieve = none;
    for (int m = 1; m <= DP_SIEVE_PARTS && m <= held->distance + 1 && m <= held->bits; m++) {
        if (held->words == 2 && m == 3)
            continue; /* its parts would reach over two numbers */
        dp_sieve divided = divide(held, options, m);
        for (shape key = {.bits = LEAST_BITS}; key.bits <= MOST_BITS; key.bits++)
            for (key.squeeze = 0; key.squeeze <= MOST_SQUEEZE; key.squeeze++) {
                candidate = divided;
                double cost = cut(&candidate, held, options, key) ? cost_of(&candidate, held, options) : HUGE_VAL;
                if (cost < best) {
                    best = cost;
                    *sieve = candidate;
                }
            }
    }
}

/* ---- building ---- */

/* The distinct keys of the held side, ascending, so that the bits of one flip are set in nearly ascending order. */
static size_t collect_keys(const dp_held *held, const dp_sieve_part *part, uint64_t *keys, uint64_t *scratch) {
    uint64_t mask = ((uint64_t)1 << part->bits) - 1;
    for (size_t i = 0; i < held->distinct; i++)
        keys[i] = held->values[i * held->words + (size_t)part->word] >> part->shift & mask;
    dp_sort64(keys, held->distinct, scratch);
    return dp_unique64(keys, held->distinct);
}

/* Sets the marks of some keys, their slice exchanged by `high`, with all flips of up to `radius` bits inside a slice.
 */
static void set_marks(const dp_sieve_part *part, const uint64_t *keys, size_t count, uint32_t high) {
    int bits = part->bits - part->slice_bits, radius = part->radius - __builtin_popcount(high);
    uint32_t flip = 0;
    for (double left = dp_ball(bits, radius); left > 0; left--) {
        for (size_t i = 0; i < count; i++)
            dp_sieve_set(part->map, part->squeeze, (uint32_t)keys[i] ^ flip ^ (uint32_t)((uint64_t)high << bits));
        flip = dp_flip_after(flip, bits);
    }
}

/* Slice by slice, so that a slice of the map stays in the cache for all flips inside it. */
static void set_all(const dp_sieve_part *part, const uint64_t *keys, size_t count) {
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

static bool fill(const dp_held *held, dp_sieve_part *part) {
    uint64_t *keys = dp_big_alloc((size_t)held->distinct * sizeof *keys);
    uint64_t *scratch = dp_big_alloc((size_t)held->distinct * sizeof *scratch);
    part->map = dp_big_alloc(map_bytes(part));
    bool made = keys && scratch && part->map;
    if (made) {
        memset(part->map, 0, map_bytes(part));
        set_all(part, keys, collect_keys(held, part, keys, scratch));
    }
    free(keys);
    free(scratch);
    return made;
}

typedef struct filling {
    dp_sieve *sieve;
    const dp_held *held;
    atomic_int next;
    atomic_bool failed;
} filling;

static void fill_parts(void *user, size_t thread) {
    filling *f = user;
    (void)thread;
    for (int i; (i = atomic_fetch_add(&f->next, 1)) < f->sieve->parts;)
        if (!fill(f->held, &f->sieve->part[i]))
            atomic_store(&f->failed, true);
}

bool dp_sieve_build(dp_sieve *sieve, const dp_held *held, size_t threads) {
    filling f = {.sieve = sieve, .held = held};
    if (sieve->parts)
        dp_run_threads(threads < (size_t)sieve->parts ? threads : (size_t)sieve->parts, fill_parts, &f);
    return !atomic_load(&f.failed);
}

void dp_sieve_free(dp_sieve *sieve) {
    for (int i = 0; i < sieve->parts; i++)
        free(sieve->part[i].map);
    sieve->parts = 0;
}
