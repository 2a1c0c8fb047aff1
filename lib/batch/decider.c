/* decider.c - those that stay, as one thread lists them: in their buckets, and in a crowd once a bucket lists too many
 * to be compared with each. */
#include "batch/group.h"

#include <stdlib.h>

/* So many documents are passed over while one is compared. */
enum { CONNECTED = 16 };

bool dp_decider_init(dp_decider *w, dp_deciding *g) {
    *w = (dp_decider){.g = g, .place = {g->batch, &g->buckets, &g->looks}};
    w->finder.stamp = g->stamp;
    w->finder.verifier = dp_verifier_create(g->batch);
    return w->finder.verifier;
}

void dp_decider_free(dp_decider *w) {
    if (w->finder.verifier)
        atomic_fetch_add(&w->g->verified, dp_verifier_count(w->finder.verifier));
    dp_verifier_free(w->finder.verifier);
    dp_crowd_finder_free(&w->finder);
    dp_crowd_free(w->crowd);
}

void dp_decider_begin(dp_decider *w, size_t from, size_t to) {
    dp_crowd_free(w->crowd);
    w->crowd = NULL;
    w->from = from;
    w->to = to;
}

/* Whether a document has been listed: all the first of their twins with chains, else those that stay and were first. */
static bool is_listed(const dp_deciding *g, uint32_t d) {
    uint32_t twin = g->batch->docs[d].twin;
    if (g->chain)
        return twin == d;
    return g->kept_twin.first[0][twin] == d || (g->kept_twin.first[1] && g->kept_twin.first[1][twin] == d);
}

/* Makes a crowd of what is listed up to d. */
static doppel_status make_crowd(dp_decider *w, uint32_t d) {
    const dp_deciding *g = w->g;
    size_t count = w->to - w->from;
    uint32_t *documents = malloc((count + 1) * sizeof *documents);
    if (!documents)
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        documents[i] = dp_deciding_document(g, w->from + i);
    doppel_status status = dp_crowd_create(&w->place, &w->finder, documents, count, &w->crowd);
    for (size_t i = 0; i < count && status == DOPPEL_OK; i++) {
        if (is_listed(g, documents[i]) && dp_in_crowd(&w->place, documents[i]))
            status = dp_crowd_add(w->crowd, &w->finder, documents[i]);
        if (documents[i] == d)
            break;
    }
    free(documents);
    return status;
}

doppel_status dp_decider_enter(dp_decider *w, uint32_t d) {
    dp_deciding *g = w->g;
    uint32_t of = dp_looks_of(&g->looks, g->batch->docs[d].twin);
    uint64_t from = g->looks.start[of], to = g->looks.start[of + 1];
    bool too_many = false;
    if (g->buckets.own_first && to > from)
        to = from + 1;
    for (; from < to; from++) {
        uint32_t b = g->looks.bucket[from];
        dp_deciding_bucket(g, b)[g->fill[b]++] = d;
        too_many |= g->fill[b] > g->batch->crowd && dp_crowded(&w->place, b) && !(g->whole && g->whole[b]);
    }
    if (!g->batch->has_sets)
        return DOPPEL_OK;
    if (w->crowd)
        return dp_in_crowd(&w->place, d) ? dp_crowd_add(w->crowd, &w->finder, d) : DOPPEL_OK;
    return too_many ? make_crowd(w, d) : DOPPEL_OK;
}

doppel_status dp_decider_find(dp_decider *w, uint32_t d, bool *found) {
    const dp_deciding *g = w->g;
    uint32_t of = dp_looks_of(&g->looks, g->batch->docs[d].twin);
    uint64_t members = 0;
    for (uint64_t i = g->looks.start[of]; i < g->looks.start[of + 1]; i++) {
        uint32_t b = g->looks.bucket[i];
        if (dp_crowded(&w->place, b))
            members += g->fill[b];
    }
    w->finder.found_count = 0;
    *found = true;
    if (!members)
        return DOPPEL_OK;
    /* With chains most of them are known to be connected, which costs next to nothing. */
    return dp_crowd_find(w->crowd, &w->finder, d, g->chain ? members / CONNECTED : members, found);
}
