/* find.h - one find under way: find.c looks, matches.c keeps what it finds. */
#ifndef DP_FIND_H
#define DP_FIND_H

#include "index/versions.h"

typedef struct dp_finder {
    const dp_order *order;
    dp_bits query; /* reordered */
    int distance;
    uint64_t now, limit;
    bool any, count_only;
    bool done; /* nothing more is wanted */
    doppel_matches *matches;
} dp_finder;

/* An entry that was found. */
typedef struct dp_hit {
    dp_bits value; /* reordered */
    uint64_t owner, expires;
    int distance;
} dp_hit;

/* Looks through a version: DOPPEL_OK, DOPPEL_ERROR_MEMORY, or DOPPEL_ERROR_STORE for a damaged file. */
doppel_status dp_finder_run(dp_finder *finder, const dp_version *version);

/* The numbers (one or two words each) within the distance of the query: places as the near kernels give them. */
size_t dp_finder_near(const dp_finder *finder, const uint64_t *values, size_t count, uint32_t *hits);

/* matches.c: keeps a hit, unless it has expired. False when there is no memory. */
bool dp_finder_take(dp_finder *finder, const dp_hit *hit);

#endif
