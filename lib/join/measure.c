/* measure.c - the constants of the cost model, measured on this machine: doppel_costs_measure.
 *
 * What the model says is linear in its constants. So a few finds and joins are timed, the model gives the share of each
 * constant in each of them, and the constants are fitted to all times at once: least squares of the relative errors. */

#include "hamming/hamming.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* Entries of the large index and of the joins: their tables fit no cache. The small index fits all of them. */
#define MANY 8000000
#define FEW 8192
/* What MANY entries take while they are measured, fingerprints and building included. */
#define BYTES_EACH 128

/* How long each find is repeated, in seconds. */
#define LONG_ENOUGH 0.1

/* ---- least squares ---- */

enum { CONSTANTS = 7, MOST_SAMPLES = 16 };

/* The constants as an array; in the order of doppel_costs. */
static double *constant(doppel_costs *costs, int i) {
    double *const all[CONSTANTS] = {&costs->probe_cached, &costs->probe, &costs->candidate, &costs->query,
                                    &costs->move,         &costs->place, &costs->pair};
    return all[i];
}

typedef struct cost_sample {
    double share[CONSTANTS]; /* how much of each constant is in it */
    double nanoseconds;
} cost_sample;

typedef struct cost_samples {
    cost_sample sample[MOST_SAMPLES];
    int count;
} cost_samples;

/* The sum of squared relative errors is least where its slope is 0 for every constant. Coordinate descent: one constant
 * at a time, the others fixed; it converges to the minimum, and no constant becomes negative. */
static void fit(const cost_samples *samples, doppel_costs *costs) {
    enum { ROUNDS = 2000 };
    for (int round = 0; round < ROUNDS; round++)
        for (int c = 0; c < CONSTANTS; c++) {
            double up = 0, down = 0;
            for (int s = 0; s < samples->count; s++) {
                const cost_sample *one = &samples->sample[s];
                double others = 0, weight = 1 / (one->nanoseconds * one->nanoseconds);
                for (int i = 0; i < CONSTANTS; i++)
                    others += i == c ? 0 : one->share[i] * *constant(costs, i);
                up += weight * one->share[c] * (one->nanoseconds - others);
                down += weight * one->share[c] * one->share[c];
            }
            if (down > 0)
                *constant(costs, c) = fmax(up / down, 0.001);
        }
}

/* ---- time and numbers ---- */

/* CPU time: other processes do not count. */
static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* SplitMix64. */
static uint64_t next_number(uint64_t *state) {
    uint64_t x = *state += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* ---- finds ---- */

/* Fills a sample's shares: what the model says when one constant is 1 and the others are 0. */
static void share_find(const dp_layout *layout, uint64_t count, int distance, cost_sample *sample) {
    int radius[DP_MAX_TABLES];
    doppel_costs costs;
    doppel_costs_get(&costs);
    bool probes = dp_layout_radii(&(dp_question){&costs, count, distance}, layout, radius);
    for (int c = 0; c < CONSTANTS; c++) {
        doppel_costs unit = {.size = sizeof unit};
        *constant(&unit, c) = 1;
        dp_question question = {&unit, count, distance};
        dp_effort effort = probes ? dp_effort_find(&question, layout, radius) : dp_effort_scan(&question, layout);
        sample->share[c] = effort.nanoseconds;
    }
}

static doppel_status time_find(const doppel_index *index, int distance, double *nanoseconds, doppel_error *error) {
    enum { BATCH = 64 };
    uint64_t state = 77, count = 0;
    doppel_matches matches = {0};
    doppel_status status = DOPPEL_OK;
    double begin = seconds(), took = 0;
    while (took < LONG_ENOUGH && status == DOPPEL_OK) {
        for (int i = 0; i < BATCH && status == DOPPEL_OK; i++, count++) {
            uint64_t query = next_number(&state);
            status = doppel_index_find(index, &query, distance, NULL, &matches, error);
        }
        took = seconds() - begin;
    }
    *nanoseconds = took * 1e9 / (double)count;
    doppel_matches_free(&matches);
    return status;
}

static doppel_status find_samples(const doppel_index *index, const dp_layout *layout, uint64_t count,
                                  cost_samples *samples, doppel_error *error) {
    static const int distances[] = {3, 6};
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < 2 && status == DOPPEL_OK; i++) {
        cost_sample *next = &samples->sample[samples->count++];
        share_find(layout, count, distances[i], next);
        status = time_find(index, distances[i], &next->nanoseconds, error);
    }
    return status;
}

/* Builds an index of `count` entries by a layout and queries it. */
static doppel_status measure_finds(const uint64_t *numbers, uint64_t count, const char *name, cost_samples *samples,
                                   doppel_error *error) {
    doppel_index_options options = {.size = sizeof options, .count = count, .layout = name, .secret = 1};
    doppel_index *index = NULL;
    dp_layout layout;
    doppel_status status = dp_layout_parse(name, 64, &layout, error);
    DP_THEN(status, doppel_index_create(&options, &index, error));
    if (status == DOPPEL_OK && doppel_index_add_batch(index, numbers, NULL, NULL, count) != DOPPEL_OK)
        status = dp_no_memory(error);
    DP_THEN(status, doppel_index_compact(index, error));
    DP_THEN(status, find_samples(index, &layout, count, samples, error));
    doppel_index_free(index);
    return status;
}

/* ---- joins ---- */

static void share_join(uint64_t count, int distance, cost_sample *sample) {
    for (int c = 0; c < CONSTANTS; c++) {
        doppel_costs unit = {.size = sizeof unit};
        *constant(&unit, c) = 1;
        dp_question question = {&unit, count, distance};
        sample->share[c] = dp_join_nanoseconds(&question, 64, dp_plan_join(count, distance, 64));
    }
}

/* Times the second of two, as the first touches fresh memory. */
static doppel_status measure_join(const uint64_t *numbers, uint64_t count, int distance, cost_samples *samples,
                                  doppel_error *error) {
    doppel_source source = {.size = sizeof source, .array = numbers, .count = count};
    doppel_join_options options = {.size = sizeof options, .threads = 1, .count_only = true, .secret = 1};
    cost_sample *next = &samples->sample[samples->count++];
    share_join(count, distance, next);
    for (int i = 0; i < 2; i++) {
        double begin = seconds();
        doppel_status status = doppel_join(&source, distance, &options, NULL, error);
        next->nanoseconds = (seconds() - begin) * 1e9;
        if (status != DOPPEL_OK)
            return status;
    }
    return DOPPEL_OK;
}

/* ---- all ---- */

/* Small keys make long buckets, long ones many probes; wide distances make the blocks of a join meet often. */
static doppel_status measure_all(const uint64_t *numbers, uint64_t count, cost_samples *samples, doppel_error *error) {
    static const struct {
        const char *layout;
        bool few;
    } finds[] = {{"2x10", true}, {"4x10", true}, {"3x20", false}, {"4x13", false}};
    static const struct {
        uint64_t most;
        int distance;
    } joins[] = {{MANY, 0}, {MANY, 1}, {MANY, 3}, {100000, 16}};
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < 4 && status == DOPPEL_OK; i++)
        status = measure_finds(numbers, finds[i].few ? FEW : count, finds[i].layout, samples, error);
    for (int i = 0; i < 4 && status == DOPPEL_OK; i++)
        status =
            measure_join(numbers, joins[i].most < count ? joins[i].most : count, joins[i].distance, samples, error);
    return status;
}

doppel_status doppel_costs_measure(uint64_t memory, doppel_costs *costs, doppel_error *error) {
    cost_samples samples = {.count = 0};
    uint64_t count = (memory ? memory : (uint64_t)1 << 30) / BYTES_EACH, state = 5;
    count = count > MANY ? MANY : count < FEW ? FEW : count;
    uint64_t *numbers = malloc(count * sizeof *numbers);
    if (!numbers)
        return dp_no_memory(error);
    for (uint64_t i = 0; i < count; i++)
        numbers[i] = next_number(&state);
    doppel_costs_get(costs);
    doppel_status status = measure_all(numbers, count, &samples, error);
    if (status == DOPPEL_OK)
        fit(&samples, costs);
    free(numbers);
    return status;
}
