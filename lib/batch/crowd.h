/* crowd.h - who may be near in crowded buckets, without comparing each with each: create, add ..., find ..., free.
 *
 * Put the features of all sets in one order. If A and B are near, at similarity t or more, they share at least
 * t / (1 + t) * (|A| + |B|) features; so the first feature that they share stands at i in A and at j in B where neither
 * |A| - i nor |B| - j is less. It follows that
 *   - it is among the first (1 - t) |A| + 1 features of A, its leads, and likewise of B;
 *   - in one of the two it is even among the first (1 - t) / (1 + t) |A| + 1, the early leads.
 * So documents are listed by their leads, early ones apart, and who has no early lead in common with a lead of the
 * other is not compared. That holds for every order; with the rare features in front, lists are short: what a crowd has
 * in common comes last. A lead that nobody else has (or all have late) is not listed, told by two bits a lead.
 *
 * Nothing is missed and nothing is added: candidates are those of the crowded buckets, less some that are not near. */
#ifndef DP_BATCH_CROWD_H
#define DP_BATCH_CROWD_H

#include "batch/batch.h"

/* More documents in a bucket than that are a crowd: from some 60 on, comparing each with each takes longer. */
enum { DP_CROWD = 256 };

/* Where the documents stand. */
typedef struct dp_crowd_place {
    const doppel_batch *batch;
    const dp_buckets *buckets;
    const dp_looks *looks;
} dp_crowd_place;

static inline bool dp_crowded(const dp_crowd_place *place, uint32_t bucket) {
    return place->buckets->start[bucket + 1] - place->buckets->start[bucket] > place->batch->crowd;
}

/* Whether a document looks at a crowded bucket. */
bool dp_in_crowd(const dp_crowd_place *place, uint32_t document);

/* What one thread looks with. Zeroed but for the first two, which are its caller's. */
typedef struct dp_crowd_finder {
    dp_verifier *verifier;
    uint32_t *stamp; /* by document: who looked at it last, + 1 */
    uint64_t *lead;  /* the leads of the document at hand, in order */
    uint8_t *level;
    size_t lead_count, early_count, lead_room, level_room;
    uint32_t *found;
    size_t found_count, found_room;
} dp_crowd_finder;
void dp_crowd_finder_free(dp_crowd_finder *finder);

/* ---- crowd_order.c: the order of features, and which leads are worth listing ---- */

typedef struct dp_crowd_order {
    uint16_t *counts; /* how often features were seen, by hash; at most UINT16_MAX */
    int count_bits;
    uint8_t *marks; /* two bits a cell: who has a lead */
    int mark_bits;
} dp_crowd_order;

/* Learns from the sets of the documents. Errors: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_IO, DOPPEL_ERROR_INTERRUPTED. */
doppel_status dp_crowd_order_make(dp_crowd_order *order, const doppel_batch *batch, dp_crowd_finder *finder,
                                  const uint32_t *documents, size_t count);
void dp_crowd_order_free(dp_crowd_order *order);
/* Fills finder->lead. */
doppel_status dp_crowd_leads(const dp_crowd_order *order, const doppel_batch *batch, dp_crowd_finder *finder,
                             uint32_t document);
/* Whether another document has a lead where it counts. */
bool dp_crowd_shared(const dp_crowd_order *order, uint64_t lead);
/* The number of leads of a set. */
size_t dp_crowd_lead_count(const doppel_batch *batch, size_t set_count);

static inline uint64_t dp_crowd_mix(uint64_t hash) {
    hash = (hash ^ hash >> 32) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9u;
    return hash ^ hash >> 32;
}

/* ---- crowd.c ---- */

typedef struct dp_crowd dp_crowd;

/* A crowd of the documents that look at crowded buckets, of those given; none is listed yet. */
doppel_status dp_crowd_create(const dp_crowd_place *place, dp_crowd_finder *finder, const uint32_t *documents,
                              size_t count, dp_crowd **made);
void dp_crowd_free(dp_crowd *crowd);

/* Lists a document. */
doppel_status dp_crowd_add(dp_crowd *crowd, dp_crowd_finder *finder, uint32_t document);

/* Fills finder->found with those listed that share a crowded bucket with the document and may be near it, but for those
 * that it stamped before; what it meets beside them is stamped. *found is false, and nothing is done, when a look
 * through its crowded buckets, which list `members` together, costs less. Any number of threads may look at a
 * time. */
doppel_status dp_crowd_find(const dp_crowd *crowd, dp_crowd_finder *finder, uint32_t document, uint64_t members,
                            bool *found);

#endif
