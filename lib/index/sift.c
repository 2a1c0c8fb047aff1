/* sift.c - tests a batch of streamed fingerprints against the maps of a sieve. */
#include "index/sieve.h"

#include <stdlib.h>

/* Entries whose bit is asked for ahead of its test: what of the slice is not in the cache yet comes from memory. */
#define AHEAD 48
/* Entries tested between two looks at what passed. */
#define PIECE 1024

/* ---- memory ---- */

static size_t most_slices(const dp_sieve *sieve) {
    int bits = 0;
    for (int i = 0; i < sieve->parts; i++)
        if (sieve->part[i].slice_bits > bits)
            bits = sieve->part[i].slice_bits;
    return (size_t)1 << bits;
}

static bool init_slices(dp_sifter *sifter) {
    const dp_sieve *sieve = sifter->sieve;
    size_t slices = most_slices(sieve);
    bool made = true;
    for (int i = 0; i < sieve->parts; i++)
        made = (sifter->counts[i] = calloc(slices, sizeof(uint32_t))) && made;
    sifter->starts = calloc(slices, sizeof *sifter->starts);
    sifter->fills = calloc(slices, sizeof *sifter->fills);
    sifter->open = dp_big_alloc(slices * DP_DEAL_LINE * sizeof *sifter->open);
    /* Each slice begins on a line; behind the last one is looked ahead. */
    sifter->entries = dp_big_alloc((sieve->batch + slices * DP_DEAL_LINE + AHEAD) * sizeof *sifter->entries);
    return made && sifter->starts && sifter->fills && sifter->open && sifter->entries;
}

bool dp_sifter_init(dp_sifter *sifter, const dp_sieve *sieve) {
    *sifter = (dp_sifter){.sieve = sieve};
    sifter->values = dp_big_alloc(sieve->batch * sieve->words * sizeof *sifter->values);
    bool made = sifter->values;
    for (int i = 0; i < sieve->parts; i++)
        made = (sifter->passed[i] = dp_big_alloc((sieve->batch / 64 + 1) * sizeof(uint64_t))) && made;
    return made && (!sieve->sliced || init_slices(sifter));
}

void dp_sifter_free(dp_sifter *sifter) {
    free(sifter->values);
    free(sifter->entries);
    free(sifter->open);
    free(sifter->starts);
    free(sifter->fills);
    for (int i = 0; i < DP_SIEVE_PARTS; i++) {
        free(sifter->counts[i]);
        free(sifter->passed[i]);
    }
}

/* ---- loading ---- */

void dp_sifter_clear(dp_sifter *sifter) {
    const dp_sieve *sieve = sifter->sieve;
    sifter->count = 0;
    for (int i = 0; i < sieve->parts; i++)
        if (sieve->part[i].slice_bits)
            memset(sifter->counts[i], 0, sizeof(uint32_t) << sieve->part[i].slice_bits);
}

/* Counts what each slice will get, while the fingerprints are still in the cache. */
static void count_slices(dp_sifter *sifter, const dp_sieve_part *part, uint32_t *counts, size_t end) {
    int shift = part->shift + part->bits - part->slice_bits;
    size_t words = sifter->sieve->words;
    uint64_t mask = ((uint64_t)1 << part->slice_bits) - 1;
    const uint64_t *values = sifter->values + part->word;
    for (size_t i = sifter->count; i < end; i++)
        counts[values[i * words] >> shift & mask]++;
}

void dp_sifter_added(dp_sifter *sifter, size_t count) {
    const dp_sieve *sieve = sifter->sieve;
    for (int i = 0; i < sieve->parts; i++)
        if (sieve->part[i].slice_bits)
            count_slices(sifter, &sieve->part[i], sifter->counts[i], sifter->count + count);
    sifter->count += count;
}

/* ---- testing ---- */

/* A map that the cache holds as a whole. */
static void test_whole(dp_sifter *sifter, const dp_sieve_part *part, uint64_t *passed) {
    const uint64_t *values = sifter->values + part->word, *map = part->map;
    uint64_t mask = ((uint64_t)1 << part->bits) - 1;
    size_t words = sifter->sieve->words;
    for (size_t from = 0; from < sifter->count; from += 64) {
        size_t end = sifter->count - from < 64 ? sifter->count : from + 64;
        uint64_t bits = 0;
        for (size_t i = from; i < end; i++)
            bits |= dp_sieve_test(map, part->squeeze, (uint32_t)(values[i * words] >> part->shift & mask))
                    << (i - from);
        passed[from / 64] = bits;
    }
}

/* Some entries of a slice. */
typedef struct piece {
    const uint64_t *entries;
    size_t count;
} piece;

/* The numbers of those of up to PIECE entries whose mark is there; gives how many. What is behind the last entry of a
 * slice may be anything: a prefetch may miss. */
static inline size_t test_piece(const uint64_t *map, int squeeze, piece p, uint32_t *list) {
    size_t found = 0;
    for (size_t i = 0; i < p.count; i++) {
        __builtin_prefetch(&map[dp_sieve_word(squeeze, (uint32_t)(p.entries[i + AHEAD] >> 32))]);
        list[found] = (uint32_t)p.entries[i];
        found += dp_sieve_test(map, squeeze, (uint32_t)(p.entries[i] >> 32));
    }
    return found;
}

static void test_slice(const dp_sieve_part *part, piece slice, uint64_t *passed) {
    uint32_t list[PIECE];
    for (size_t from = 0; from < slice.count; from += PIECE) {
        piece p = {slice.entries + from, slice.count - from < PIECE ? slice.count - from : PIECE};
        size_t found =
            part->squeeze ? test_piece(part->map, part->squeeze, p, list) : test_piece(part->map, 0, p, list);
        for (size_t i = 0; i < found; i++)
            passed[list[i] / 64] |= (uint64_t)1 << list[i] % 64;
    }
}

/* Deals the keys of the batch into slices. */
static void deal(dp_sifter *sifter, const dp_sieve_part *part, const uint32_t *counts) {
    size_t slices = (size_t)1 << part->slice_bits;
    uint32_t next = 0;
    for (size_t s = 0; s < slices; s++) {
        sifter->starts[s] = next;
        next += (counts[s] + DP_DEAL_LINE - 1) / DP_DEAL_LINE * DP_DEAL_LINE;
    }
    memset(sifter->fills, 0, slices * sizeof *sifter->fills);
    dp_deal d = {.stride = sifter->sieve->words, .shift = part->shift, .width = part->bits};
    d.slice_bits = part->slice_bits;
    d.open = sifter->open;
    d.fills = sifter->fills;
    d.starts = sifter->starts;
    d.entries = sifter->entries;
    dp_deal_kernel()(&d, sifter->values + part->word, 0, (uint32_t)sifter->count);
    for (size_t s = 0; s < slices; s++) {
        uint32_t left = counts[s] % DP_DEAL_LINE;
        memcpy(sifter->entries + sifter->starts[s] + (counts[s] - left), sifter->open + s * DP_DEAL_LINE,
               left * sizeof(uint64_t));
    }
}

void dp_sifter_run(dp_sifter *sifter) {
    const dp_sieve *sieve = sifter->sieve;
    for (int i = 0; i < sieve->parts; i++) {
        const dp_sieve_part *part = &sieve->part[i];
        uint64_t *passed = sifter->passed[i];
        if (!part->slice_bits) {
            test_whole(sifter, part, passed);
            continue;
        }
        memset(passed, 0, (sifter->count / 64 + 1) * sizeof *passed);
        deal(sifter, part, sifter->counts[i]);
        for (size_t s = 0; s < (size_t)1 << part->slice_bits; s++)
            test_slice(part, (piece){sifter->entries + sifter->starts[s], sifter->counts[i][s]}, passed);
    }
}
