/* group.h - deciding which documents stay: group.c leads, components.c finds what is connected, link.c makes chains one
 * group. */
#ifndef DP_BATCH_GROUP_H
#define DP_BATCH_GROUP_H

#include "batch/batch.h"

#include <pthread.h>

/* Of each class, by its first document: the first that stays, and (with `across`) the first of another scope. */
typedef struct dp_kept {
    uint32_t *first[2]; /* NULL: not needed */
} dp_kept;

typedef struct dp_deciding {
    doppel_batch *batch;
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

static inline uint32_t dp_deciding_document(const dp_deciding *g, size_t entry) {
    uint32_t rank = (uint32_t)g->entry[entry];
    return g->order.document ? g->order.document[rank] : rank;
}

static inline uint32_t *dp_deciding_bucket(const dp_deciding *g, uint32_t b) {
    return g->listed + g->buckets.start[b] * g->width;
}

/* Lists d in the buckets it stands in. */
static inline void dp_deciding_enter(dp_deciding *g, uint32_t d) {
    uint32_t of = dp_looks_of(&g->looks, g->batch->docs[d].twin);
    uint64_t from = g->looks.start[of], to = g->looks.start[of + 1];
    if (g->buckets.own_first && to > from)
        to = from + 1;
    for (; from < to; from++) {
        uint32_t b = g->looks.bucket[from];
        dp_deciding_bucket(g, b)[g->fill[b]++] = d;
    }
}

/* Makes groups of everything that is near, step by step, among entries from .. to - 1, which are whole components. */
doppel_status dp_link_any(dp_deciding *g, dp_verifier *verifier, size_t from, size_t to);

#endif
