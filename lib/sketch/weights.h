/* weights.h - SimHash of features that do not all count alike. */
#ifndef DP_WEIGHTS_H
#define DP_WEIGHTS_H

#include "sketch/sketch.h"

/* Real weights count in units of 1/65536. */
#define DP_WEIGHT_ONE 65536

/* Sums of weights, for one half of a fingerprint. Zero starts it. */
typedef struct dp_sums {
    int64_t ones[64]; /* the weights of the features whose hash has this bit */
    int64_t total;    /* all weights */
} dp_sums;

/* The bits whose sum of +-weights is above 0. */
uint64_t dp_sums_bits(const dp_sums *sums, int bits);

/* The weight of a feature that occurs `count` times, in units of 1/65536 (with tf2, where all are whole, in
 * ones). */
int64_t dp_weight_of(const doppel_recipe *recipe, uint64_t feature_hash, uint64_t count);

/* The fingerprint of the features, `high` being their second hashes or NULL. Sorts `low` (and `high` with it);
 * errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_weighted_fingerprint(const doppel_recipe *recipe, uint64_t *low, uint64_t *high, size_t count,
                                      uint64_t fingerprint[2]);

#endif
