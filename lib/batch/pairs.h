/* pairs.h - all pairs: pairs.c leads, pairs_find.c finds those of one document. */
#ifndef DP_BATCH_PAIRS_H
#define DP_BATCH_PAIRS_H

#include "batch/crowd.h"

/* What one thread finds. */
typedef struct dp_finding {
    doppel_near *pair;
    size_t count, room;
    dp_crowd_finder finder;
    uint64_t candidates;
    size_t next; /* the document after the last whose pairs were found */
    doppel_status status;
} dp_finding;

typedef struct dp_pairing {
    doppel_batch *batch;
    dp_rules rules;
    dp_buckets buckets;
    dp_looks looks;
    dp_crowd_place place;
    dp_crowd *crowd;                /* NULL: no bucket is crowded */
    uint32_t *next_twin, *next_url; /* the next document with the same; DP_NO_DOCUMENT: none */
    uint32_t *url_class;
    dp_titles titles;
    uint32_t *next_title;
    bool collapse;
    dp_finding *finding; /* one a thread */
    size_t from;         /* of the block at hand */
    size_t share;        /* documents of it for each thread */
} dp_pairing;

/* Adds the pairs of a document with those behind it, in order. */
doppel_status dp_pairs_find(dp_pairing *p, dp_finding *f, uint32_t a);

#endif
