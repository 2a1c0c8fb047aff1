/* two_check.c - looks up what passed the sieve, and turns what is found into pairs in order of (b, a). */
#include "index/two.h"

#include <stdlib.h>

bool dp_two_worker_init(dp_two_worker *worker, dp_two *two) {
    *worker = (dp_two_worker){.two = two};
    bool made = dp_held_finder_init(&worker->finder, &two->held);
    made = dp_sifter_init(&worker->sifter, &two->sieve) && made;
    worker->queries = malloc(worker->finder.group * two->held.words * sizeof *worker->queries);
    worker->numbers = malloc(worker->finder.group * sizeof *worker->numbers);
    worker->parts = malloc(worker->finder.group);
    worker->room = malloc(DP_FEED_BATCH * two->held.words * sizeof *worker->room);
    return made && worker->queries && worker->numbers && worker->parts && worker->room;
}

void dp_two_worker_free(dp_two_worker *worker) {
    dp_held_finder_free(&worker->finder);
    dp_sifter_free(&worker->sifter);
    free(worker->queries);
    free(worker->numbers);
    free(worker->parts);
    free(worker->room);
    free(worker->keys);
    free(worker->scratch);
}

static bool no_memory(dp_two_worker *worker) {
    doppel_error error;
    dp_no_memory(&error);
    dp_two_fail(worker->two, DOPPEL_ERROR_MEMORY, &error);
    return false;
}

/* ---- pairs ---- */

static bool add_pair(dp_two_worker *worker, doppel_pair pair) {
    dp_two_result *result = worker->result;
    if (result->count == worker->two->most_pairs && !dp_two_flush(worker->two, result))
        return false;
    if (!dp_reserve(&result->pairs, &result->capacity, result->count + 1, sizeof pair))
        return no_memory(worker);
    result->pairs[result->count++] = pair;
    result->found++;
    return true;
}

/* The positions of one held fingerprint are in order as they stand. */
static bool add_one(dp_two_worker *worker, const dp_held_hit *hit, uint64_t b) {
    const dp_held *held = &worker->two->held;
    for (uint32_t at = held->starts[hit->id]; at < held->starts[hit->id + 1]; at++)
        if (!add_pair(worker, (doppel_pair){held->positions[at], b, (int)hit->distance}))
            return false;
    return true;
}

/* Those of several are sorted: a position and its distance, at most 128, as one number. */
static bool add_several(dp_two_worker *worker, const dp_held_hit *hits, size_t count, uint64_t b) {
    const dp_held *held = &worker->two->held;
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += held->starts[hits[i].id + 1] - held->starts[hits[i].id];
    if (!dp_reserve(&worker->keys, &worker->key_capacity, found, sizeof *worker->keys) ||
        !dp_reserve(&worker->scratch, &worker->scratch_capacity, found, sizeof *worker->scratch))
        return no_memory(worker);
    uint64_t *key = worker->keys;
    for (size_t i = 0; i < count; i++)
        for (uint32_t at = held->starts[hits[i].id]; at < held->starts[hits[i].id + 1]; at++)
            *key++ = (uint64_t)held->positions[at] << 8 | hits[i].distance;
    dp_sort64(worker->keys, found, worker->scratch);
    for (size_t i = 0; i < found; i++)
        if (!add_pair(worker, (doppel_pair){worker->keys[i] >> 8, b, (int)(worker->keys[i] & 255)}))
            return false;
    return true;
}

static void count_pairs(dp_two_worker *worker, const dp_held_hit *hits, size_t count) {
    const dp_held *held = &worker->two->held;
    for (size_t i = 0; i < count; i++)
        worker->result->found += held->starts[hits[i].id + 1] - held->starts[hits[i].id];
}

/* Adds the pairs of all hits of the last find. */
static bool add_hits(dp_two_worker *worker) {
    const dp_held_finder *finder = &worker->finder;
    bool only_count = worker->two->options.count_only || !worker->two->options.pairs;
    for (size_t from = 0, end; from < finder->hit_count; from = end) {
        const dp_held_hit *hits = finder->hits + from;
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

/* ---- looking up ---- */

static bool find_group(dp_two_worker *worker, size_t count) {
    dp_held_finder *finder = &worker->finder;
    if (atomic_load_explicit(&worker->two->over, memory_order_relaxed))
        return false;
    if (dp_stopped(worker->two->options.stop)) {
        dp_two_fail(worker->two, DOPPEL_ERROR_INTERRUPTED, NULL);
        return false;
    }
    if (!dp_held_finder_run(finder, worker->queries, worker->parts, count))
        return no_memory(worker);
    worker->result->candidates += finder->candidates;
    finder->candidates = 0;
    return !finder->hit_count || add_hits(worker);
}

/* Those of 64 fingerprints, from number `from` on, that passed some map. Without a sieve, all are taken to be near in
 * the first part. */
static uint64_t passed_any(const dp_sifter *sifter, size_t from) {
    uint64_t passed = sifter->sieve->parts ? 0 : ~(uint64_t)0;
    for (int i = 0; i < sifter->sieve->parts; i++)
        passed |= sifter->passed[i][from / 64];
    return sifter->count - from < 64 ? passed & (((uint64_t)1 << (sifter->count - from)) - 1) : passed;
}

static uint8_t parts_of(const dp_sifter *sifter, size_t number) {
    unsigned parts = !sifter->sieve->parts;
    for (int i = 0; i < sifter->sieve->parts; i++)
        parts |= (unsigned)(sifter->passed[i][number / 64] >> number % 64 & 1) << i;
    return (uint8_t)parts;
}

void dp_two_check(dp_two_worker *worker) {
    const dp_sifter *sifter = &worker->sifter;
    size_t words = worker->two->held.words, group = worker->finder.group, filled = 0;
    dp_sifter_run(&worker->sifter);
    for (size_t from = 0; from < sifter->count; from += 64)
        for (uint64_t passed = passed_any(sifter, from); passed; passed &= passed - 1) {
            size_t number = from + (size_t)__builtin_ctzll(passed);
            memcpy(worker->queries + filled * words, sifter->values + number * words, words * sizeof(uint64_t));
            worker->parts[filled] = parts_of(sifter, number);
            worker->numbers[filled++] = (uint32_t)number;
            if (filled == group && !find_group(worker, filled))
                return;
            filled %= group;
        }
    if (filled)
        find_group(worker, filled);
}
