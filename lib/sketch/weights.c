/* weights.c - SimHash of weighted features: those of a document, counted, and the caller's own.
 *
 * Weights are integers in units of 1/65536, so that sums do not depend on order. Bit i is set when the weights of the
 * features that have it outweigh the others: ones[i] - (total - ones[i]) > 0. */
#include "sketch/weights.h"

#include "kernel/kernel.h"

#include <math.h>
#include <stdlib.h>

uint64_t dp_sums_bits(const dp_sums *sums, int bits) {
    uint64_t set = 0;
    for (int i = 0; i < bits && i < 64; i++)
        set |= (uint64_t)(sums->ones[i] > sums->total - sums->ones[i]) << i;
    return set;
}

int64_t dp_weight_of(const doppel_recipe *recipe, uint64_t feature_hash, uint64_t count) {
    switch (recipe->weight) {
    case DP_WEIGHT_TF: return (int64_t)count * DP_WEIGHT_ONE;
    case DP_WEIGHT_SET: return DP_WEIGHT_ONE;
    case DP_WEIGHT_SQRT: return llrint(sqrt((double)count) * DP_WEIGHT_ONE);
    /* Whole, so that the units do not matter: even the square of 2^31 fits. */
    case DP_WEIGHT_TF2: return (int64_t)(count * count);
    case DP_WEIGHT_TFIDF: return (int64_t)count * dp_df_weight(recipe->df, feature_hash);
    }
    return 0;
}

/* ---- the features of a document ---- */

typedef struct pair {
    uint64_t low, high;
} pair;

static int compare_pairs(const void *a, const void *b) {
    uint64_t x = ((const pair *)a)->low, y = ((const pair *)b)->low;
    return (x > y) - (x < y);
}

/* Sorts both arrays by the first. */
static bool sort_features(uint64_t *low, uint64_t *high, size_t count) {
    if (!high) {
        uint64_t *scratch = malloc(count * sizeof *scratch + 1);
        if (scratch)
            dp_sort64(low, count, scratch);
        free(scratch);
        return scratch;
    }
    pair *pairs = malloc(count * sizeof *pairs + 1);
    if (!pairs)
        return false;
    for (size_t i = 0; i < count; i++)
        pairs[i] = (pair){low[i], high[i]};
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < count; i++) {
        low[i] = pairs[i].low;
        high[i] = pairs[i].high;
    }
    free(pairs);
    return true;
}

/* Distinct features move to the front of the arrays, with their weights; gives how many. */
static size_t weigh_distinct(const doppel_recipe *recipe, uint64_t *low, uint64_t *high, size_t count,
                             int64_t *weights) {
    size_t distinct = 0;
    for (size_t i = 0, next; i < count; i = next, distinct++) {
        for (next = i + 1; next < count && low[next] == low[i]; next++)
            ;
        weights[distinct] = dp_weight_of(recipe, low[i], next - i);
        low[distinct] = low[i];
        if (high)
            high[distinct] = high[i];
    }
    return distinct;
}

static uint64_t half(const uint64_t *hashes, const int64_t *weights, size_t count, int bits) {
    dp_sums sums = {0};
    dp_weigh_kernel()(hashes, weights, count, sums.ones);
    for (size_t i = 0; i < count; i++)
        sums.total += weights[i];
    return dp_sums_bits(&sums, bits);
}

doppel_status dp_weighted_fingerprint(const doppel_recipe *recipe, uint64_t *low, uint64_t *high, size_t count,
                                      uint64_t fingerprint[2]) {
    int64_t *weights = malloc(count * sizeof *weights + 1);
    if (!weights || !sort_features(low, high, count)) {
        free(weights);
        return DOPPEL_ERROR_MEMORY;
    }
    size_t distinct = weigh_distinct(recipe, low, high, count, weights);
    fingerprint[0] = half(low, weights, distinct, recipe->bits);
    fingerprint[1] = high ? half(high, weights, distinct, 64) : 0;
    free(weights);
    return DOPPEL_OK;
}

/* ---- the caller's own features ---- */

/* A single weight is at most 2^31, that is 2^47 units; the sum of all sizes is at most 2^62, so that what is for a
 * bit less what is against it fits. */
#define MAX_WEIGHT 0x1p31
#define MAX_TOTAL ((int64_t)1 << 62)

static doppel_status read_weight(double weight, size_t number, int64_t *units, int64_t *size, doppel_error *error) {
    if (!isfinite(weight) || fabs(weight) > MAX_WEIGHT)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "feature %zu: the weight %g is not a number from -2^31 to 2^31",
                       number + 1, weight);
    *units = llrint(weight * DP_WEIGHT_ONE);
    if (__builtin_add_overflow(*size, llabs(*units), size) || *size > MAX_TOTAL)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "feature %zu: the weights add up to more than 2^46", number + 1);
    return DOPPEL_OK;
}

typedef struct own_hash {
    const doppel_simhash_options *options;
    dp_hasher hasher;
} own_hash;

static uint64_t hash_own(own_hash *own, const doppel_feature *feature, uint64_t seed) {
    if (own->options->function)
        return own->options->function(feature->bytes, feature->length, seed, own->options->user);
    return dp_hasher_run(&own->hasher, feature->bytes, feature->length, seed);
}

static doppel_status sum_own(own_hash *own, const doppel_feature *features, size_t count, dp_sums sums[2],
                             doppel_error *error) {
    int64_t size = 0;
    int halves = own->options->bits == 128 ? 2 : 1;
    for (size_t i = 0; i < count; i++) {
        int64_t units;
        doppel_status status = read_weight(features[i].weight, i, &units, &size, error);
        if (status)
            return status;
        for (int k = 0; k < halves; k++) {
            uint64_t hash = hash_own(own, &features[i], (uint64_t)k);
            dp_weigh_kernel()(&hash, &units, 1, sums[k].ones);
            sums[k].total += units;
        }
    }
    return own->hasher.failed ? dp_no_memory(error) : DOPPEL_OK;
}

/* Fills what was left at 0, and opens the hash. */
static doppel_status open_own(const doppel_simhash_options *given, doppel_simhash_options *options, own_hash *own,
                              doppel_error *error) {
    if (given)
        dp_copy_options(options, given, sizeof *options);
    options->bits = options->bits ? options->bits : 64;
    own->options = options;
    if (options->bits < 1 || (options->bits > 64 && options->bits != 128))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a fingerprint has 1 to 64 or 128 bits, not %d", options->bits);
    const char *name = options->hash ? options->hash : "fast";
    doppel_status status = options->function ? DOPPEL_OK : dp_hasher_open(name, &own->hasher);
    if (status == DOPPEL_ERROR_USAGE)
        return dp_fail(error, status, "there is no hash `%s`: take %s", name, dp_hash_names);
    return status ? dp_no_memory(error) : DOPPEL_OK;
}

doppel_status doppel_simhash(const doppel_feature *features, size_t count, const doppel_simhash_options *given,
                             uint64_t fingerprint[2], doppel_error *error) {
    doppel_simhash_options options = {0};
    own_hash own = {0};
    dp_sums sums[2] = {{{0}, 0}, {{0}, 0}};
    doppel_status status = open_own(given, &options, &own, error);
    if (!status)
        status = sum_own(&own, features, count, sums, error);
    dp_hasher_close(&own.hasher);
    if (status)
        return status;
    fingerprint[0] = dp_sums_bits(&sums[0], options.bits);
    fingerprint[1] = options.bits == 128 ? dp_sums_bits(&sums[1], 64) : 0;
    for (int i = 0; options.sums && i < options.bits; i++)
        options.sums[i] = sums[i / 64].ones[i % 64] - (sums[i / 64].total - sums[i / 64].ones[i % 64]);
    return DOPPEL_OK;
}
