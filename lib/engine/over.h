/* over.h - the engine over a store that several processes share (store/shared.h): item -> query -> request; there it is
 * found, decided and kept in one step -> answer -> verdict, with the evidence that an engine of a folder gives.
 *
 * Calls of doppel.h that find engine->shared go on here. Nothing is kept in this process but the settings and counters.
 */
#ifndef DP_OVER_H
#define DP_OVER_H

#include "engine/engine.h"

/* ---- over.c ---- */

/* Opens it, and agrees on the settings that it was made with. */
doppel_status dp_over_open(doppel_engine *engine, const char *url, const doppel_engine_options *given,
                           doppel_error *error);
/* The clock that counts: the caller's; 0: the store's own. */
uint64_t dp_over_now(doppel_engine *engine);
void dp_over_stats(doppel_engine *engine, doppel_engine_stats *stats);
/* What only a folder can do: DOPPEL_ERROR_USAGE, and what to do instead. */
doppel_status dp_over_refuse(const char *what, doppel_error *error);

/* ---- over_decide.c ---- */

/* Queries to be decided about, in order, in one pipeline. */
typedef struct dp_over_many {
    dp_shared_op op;    /* check or add */
    dp_query **queries; /* NULL: it is left out */
    size_t count;
    bool alone; /* a call for one, which counts checks and its time itself */
    doppel_verdict *verdicts;
    /* What became of one that was not left out; *why says more when it failed. */
    void (*done)(size_t i, doppel_status status, const doppel_error *why, void *user);
    void *user;
} dp_over_many;
/* On an error all that were asked about have it, too. */
doppel_status dp_over_decide_many(doppel_engine *engine, const dp_over_many *many, doppel_error *error);
doppel_status dp_over_decide(doppel_engine *engine, dp_shared_op op, dp_query *query, doppel_verdict *verdict,
                             doppel_error *error);
doppel_status dp_over_remove(doppel_engine *engine, doppel_slice id, bool *removed, doppel_error *error);

/* ---- over_lists.c, over_similar.c ---- */

doppel_status dp_over_get(doppel_engine *engine, doppel_slice name, doppel_stored_list *list, doppel_error *error);
doppel_status dp_over_each(doppel_engine *engine, bool (*document)(const doppel_stored *stored, void *user), void *user,
                           uint64_t *damaged, doppel_error *error);
doppel_status dp_over_groups(doppel_engine *engine, uint64_t limit, doppel_stored_list *list, doppel_error *error);
doppel_status dp_over_similar(doppel_engine *engine, const doppel_item *item, const doppel_similar_options *options,
                              doppel_stored_list *list, doppel_error *error);

/* The document of a name, an id or a URL: none or one. */
doppel_status dp_over_resolve(doppel_engine *engine, dp_worker *worker, doppel_slice name,
                              dp_shared_documents *documents, doppel_error *error);
/* Adds a document to a list; with `text` the kept text is unpacked. */
doppel_status dp_over_list(const dp_shared_document *document, bool text, doppel_stored_list *list,
                           doppel_error *error);

/* ---- groups.c ---- */

typedef struct dp_group_size {
    uint64_t number, duplicates;
} dp_group_size;

/* The largest groups so far, as a heap with the smallest on top; sorted, the largest first. */
typedef struct dp_largest {
    dp_group_size *group;
    size_t count, room;
} dp_largest;
bool dp_largest_init(dp_largest *largest, uint64_t limit); /* false: no memory */
void dp_largest_add(dp_largest *largest, uint64_t number, const dp_counts *counts);
void dp_largest_sort(dp_largest *largest);
void dp_largest_free(dp_largest *largest);

#endif
