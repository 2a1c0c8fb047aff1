/* sieve.c - chooses the parts and maps of a sieve by what they cost, and fills the maps. */
#include "index/sieve.h"

#include "index/costs.h"
#include "index/flips.h"

#include <math.h>
#include <stdlib.h>

/* A slice of 2^22 bits is 512 KiB: with the entries that stream by it stays in a second-level cache of 1 MiB. */
#define SLICE_BITS 22
/* Key bits: a number of 32 bits and the number of its fingerprint make an entry. */
#define MOST_BITS 32
#define LEAST_BITS 6

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

static uint64_t map_bytes(int bits) {
    return bits < 6 ? 8 : (uint64_t)1 << (bits - 3);
}

/* Part i of m, with keys of up to `bits` bits. */
static dp_sieve_part part_of(const dp_held *held, int m, int i, int bits) {
    int width = held->bits / m, sum = held->distance - m + 1;
    dp_sieve_part part = {.radius = sum / m + (i < sum % m), .bits = bits < width ? bits : width};
    int from = i * width + width - part.bits;
    part.word = from / 64;
    part.shift = from % 64;
    part.slice_bits = part.bits > SLICE_BITS ? part.bits - SLICE_BITS : 0;
    if (part.radius > part.bits)
        part.radius = part.bits;
    return part;
}

/* A thread's share of the stream in BATCHES, between bounds. */
static size_t batch_of(const dp_sieve_options *options, size_t least, size_t most) {
    uint64_t share = options->stream / options->threads / BATCHES + 1;
    return share < least ? least : share > most ? most : (size_t)share;
}

/* Cuts into m parts; sets the batch that the memory allows. False when it does not fit. */
static bool cut(dp_sieve *sieve, const dp_held *held, const dp_sieve_options *options, int m, int bits) {
    uint64_t maps = 0, fingerprint = held->words * 8 + 1;
    *sieve = (dp_sieve){.words = held->words, .parts = m};
    sieve->batch = batch_of(options, LEAST_BATCH, WHOLE_BATCH);
    for (int i = 0; i < m; i++) {
        sieve->part[i] = part_of(held, m, i, bits);
        sieve->sliced = sieve->sliced || sieve->part[i].slice_bits;
        maps += map_bytes(sieve->part[i].bits);
    }
    if (sieve->sliced) {
        fingerprint += 8;
        sieve->batch = batch_of(options, LEAST_SLICED_BATCH, SLICED_BATCH);
    }
    uint64_t room = maps < options->memory ? (options->memory - maps) / options->threads / fingerprint : 0;
    if (sieve->batch > room)
        sieve->batch = (size_t)room;
    return sieve->batch >= (sieve->sliced ? LEAST_SLICED_BATCH : LEAST_BATCH);
}

/* Nanoseconds that building and a stream take. */
static double cost_of(const dp_sieve *sieve, const dp_held *held, const dp_sieve_options *options) {
    double build = 0, test = 0, pass = 0;
    for (int i = 0; i < sieve->parts; i++) {
        const dp_sieve_part *part = &sieve->part[i];
        double bytes = (double)map_bytes(part->bits), set = held->distinct * dp_ball(part->bits, part->radius);
        build += set * (part->slice_bits ? SET_FAR : SET_NEAR) + bytes * FRESH_BYTE;
        test += part->slice_bits ? TEST_SLICED + bytes * LOAD_BYTE / (double)sieve->batch : TEST_WHOLE;
        pass += 1 - exp(-set / ldexp(1, part->bits));
    }
    double builders = (double)(options->threads < (size_t)sieve->parts ? options->threads : (size_t)sieve->parts);
    double each = test + (pass < 1 ? pass : 1) * held->nanoseconds;
    return build / builders + each * (double)options->stream / (double)options->threads;
}

void dp_sieve_plan(dp_sieve *sieve, const dp_held *held, const dp_sieve_options *options) {
    dp_sieve none = {.words = held->words, .batch = batch_of(options, LEAST_BATCH, WHOLE_BATCH)}, candidate;
    double best = held->nanoseconds * (double)options->stream / (double)options->threads;
    *sieve = none;
    for (int m = 1; m <= DP_SIEVE_PARTS && m <= held->distance + 1 && m <= held->bits; m++) {
        if (held->words == 2 && m == 3)
            continue; /* its parts would reach over two numbers */
        for (int bits = LEAST_BITS; bits <= MOST_BITS; bits++) {
            if (!cut(&candidate, held, options, m, bits))
                continue;
            double cost = cost_of(&candidate, held, options);
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

static void set_bits(dp_sieve_part *part, const uint64_t *keys, size_t count) {
    uint32_t flip = 0;
    for (double left = dp_ball(part->bits, part->radius); left > 0; left--) {
        for (size_t i = 0; i < count; i++) {
            uint64_t key = keys[i] ^ flip;
            part->map[key >> 6] |= (uint64_t)1 << (key & 63);
        }
        flip = dp_flip_after(flip, part->bits);
    }
}

static bool fill(const dp_held *held, dp_sieve_part *part) {
    uint64_t *keys = dp_big_alloc((size_t)held->distinct * sizeof *keys);
    uint64_t *scratch = dp_big_alloc((size_t)held->distinct * sizeof *scratch);
    part->map = dp_big_alloc(map_bytes(part->bits));
    bool made = keys && scratch && part->map;
    if (made) {
        memset(part->map, 0, map_bytes(part->bits));
        set_bits(part, keys, collect_keys(held, part, keys, scratch));
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
