/* edges.c - which documents are kept, given all near pairs: doppel_decide_edges.
 *
 * Documents are numbers in keep order. Edges are sorted by their later document, so that all earlier documents are
 * decided when a document's edges are read: one pass is enough. With link_any a union-find joins connected documents
 * into sets, each represented by its smallest number. */
#include "decide/decide.h"

#include <math.h>
#include <stdlib.h>

static int compare_edges(const void *x, const void *y) {
    const doppel_edge *a = x, *b = y;
    if (a->b != b->b)
        return a->b < b->b ? -1 : 1;
    return a->a < b->a ? -1 : a->a > b->a;
}

static doppel_status check_edges(doppel_edge *edges, size_t edge_count, uint32_t count, doppel_error *error) {
    for (size_t i = 0; i < edge_count; i++) {
        doppel_edge *e = &edges[i];
        if (e->a >= count || e->b >= count)
            return dp_fail(error, DOPPEL_ERROR_USAGE, "edge %zu: there is no document %u among %u", i,
                           e->a >= count ? e->a : e->b, count);
        if (e->a == e->b)
            return dp_fail(error, DOPPEL_ERROR_USAGE, "edge %zu: document %u cannot be near itself", i, e->a);
        if (e->a > e->b)
            *e = (doppel_edge){.a = e->b, .b = e->a, .similarity = e->similarity};
    }
    return DOPPEL_OK;
}

/* Whether a is greater than b; NaN, which is not known, is less than every number. */
static bool is_greater(float a, float b) {
    return a > b || (isnan(b) && !isnan(a));
}

/* Each document by its edges to earlier kept ones: the most similar, then the first. */
static void decide_greedily(const doppel_edge *edges, size_t edge_count, uint32_t *original, float *similarity) {
    for (size_t i = 0; i < edge_count; i++) {
        const doppel_edge *e = &edges[i];
        bool copy = original[e->b] != e->b;
        if (original[e->a] == e->a && (!copy || is_greater(e->similarity, similarity[e->b]))) {
            original[e->b] = e->a;
            similarity[e->b] = e->similarity;
        }
    }
}

static uint32_t leader_of(uint32_t *original, uint32_t document) {
    while (original[document] != document)
        document = original[document] = original[original[document]];
    return document;
}

static void note_best(float *best, float similarity) {
    if (is_greater(similarity, *best))
        *best = similarity;
}

static void decide_by_links(const doppel_edge *edges, size_t edge_count, uint32_t count, uint32_t *original,
                            float *similarity) {
    for (size_t i = 0; i < edge_count; i++) {
        uint32_t a = leader_of(original, edges[i].a), b = leader_of(original, edges[i].b);
        original[a > b ? a : b] = a > b ? b : a;
        note_best(&similarity[edges[i].a], edges[i].similarity);
        note_best(&similarity[edges[i].b], edges[i].similarity);
    }
    for (uint32_t d = 0; d < count; d++) {
        original[d] = leader_of(original, d);
        if (original[d] == d)
            similarity[d] = NAN;
    }
}

doppel_status doppel_decide_edges(doppel_edge *edges, size_t edge_count, uint32_t count, bool link_any,
                                  uint32_t *original, float *similarity, doppel_error *error) {
    DP_TRY(check_edges(edges, edge_count, count, error));
    float *own = similarity ? similarity : malloc(((size_t)count + 1) * sizeof *own);
    if (!own)
        return dp_no_memory(error);
    for (uint32_t d = 0; d < count; d++) {
        original[d] = d;
        own[d] = NAN;
    }
    if (!link_any && edge_count)
        qsort(edges, edge_count, sizeof *edges, compare_edges);
    if (link_any)
        decide_by_links(edges, edge_count, count, original, own);
    else
        decide_greedily(edges, edge_count, original, own);
    if (!similarity)
        free(own);
    return DOPPEL_OK;
}
