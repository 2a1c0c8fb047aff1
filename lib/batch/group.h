/* group.h - deciding which documents stay: group.c leads, components.c finds what is connected, decider.c lists those
 * that stay, link.c makes chains one group. */
#ifndef DP_BATCH_GROUP_H
#define DP_BATCH_GROUP_H

#include "batch/crowd.h"

#include <pthread.h>

/* Of each class, by its first document: the first that stays, and (with `across`) the first of another scope. */
typedef struct dp_kept {
    uint32_t *first[2]; /* NULL: not needed */
} dp_kept;

typedef struct dp_deciding {
    doppel_batch *batch;
    dp_rules rules;
    dp_buckets buckets;
    uint32_t *listed; /* of each bucket, those that stay: fill[b] of them, with room for `width` a member */
    uint64_t width;
    dp_looks looks;
    uint32_t *fill;
    dp_keep_order order;
    uint32_t *url_class; /* NULL: not used */
    dp_titles titles;    /* of NULL: not used */
    dp_kept kept_url, kept_twin, kept_title;
    uint32_t *stamp; /* by document: who looked at it last, + 1 */
    uint32_t *chain; /* link.c: sets of documents, by their first in the order of keeping; NULL: not used */
    bool *whole;     /* link.c: by bucket, whether all its documents are of one group; NULL: not used */

    uint64_t *entry; /* component << 32 | rank, of documents that are connected with another */
    size_t entries, next;
    pthread_mutex_t lock; /* of `next` and `status` */
    doppel_status status;
    _Atomic uint64_t candidates, verified;
} dp_deciding;

/* Everything behind buckets and looks; false: no memory. Free it in any case. */
bool dp_deciding_init(dp_deciding *g);
void dp_deciding_free(dp_deciding *g);

/* Notes whose copy a document is, and why. */
void dp_deciding_settle(const dp_deciding *g, uint32_t d, uint32_t original, dp_reason reason,
                        const doppel_evidence *evidence);

static inline uint32_t dp_deciding_document(const dp_deciding *g, size_t entry) {
    uint32_t rank = (uint32_t)g->entry[entry];
    return g->order.document ? g->order.document[rank] : rank;
}

static inline uint32_t *dp_deciding_bucket(const dp_deciding *g, uint32_t b) {
    return g->listed + g->buckets.start[b] * g->width;
}

/* ---- what one thread decides with: decider.c ---- */

typedef struct dp_decider {
    dp_deciding *g;
    dp_crowd_place place;
    dp_crowd_finder finder;
    dp_crowd *crowd; /* of those listed in crowded buckets; NULL: they are few */
    size_t from, to; /* the entries at hand, whole components */
} dp_decider;

/* False: no memory. Free it in any case. */
bool dp_decider_init(dp_decider *w, dp_deciding *g);
void dp_decider_free(dp_decider *w);
/* Goes on to other entries. */
void dp_decider_begin(dp_decider *w, size_t from, size_t to);

/* Lists d in the buckets it stands in, and in the crowd. */
doppel_status dp_decider_enter(dp_decider *w, uint32_t d);

/* Whether a bucket's documents are found through the crowd. */
static inline bool dp_decider_crowded(const dp_decider *w, uint32_t bucket) {
    return w->crowd && dp_crowded(&w->place, bucket);
}
/* The documents in crowded buckets that d is compared with: finder.found, or, when *found is false, all of them. All
 * other buckets have been looked through. */
doppel_status dp_decider_find(dp_decider *w, uint32_t d, bool *found);

/* ---- link.c ---- */

/* Makes groups of everything that is near, step by step, among the entries at hand. */
doppel_status dp_link_any(dp_decider *w);

#endif
