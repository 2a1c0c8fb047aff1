/* link.c - groups of everything that is near any of the group, so that chains are one group.
 *
 * Documents whose connection is known already are not compared. A bucket whose documents are all of one group is passed
 * over once a document belongs to that group. */
#include "batch/group.h"

/* The group's first document in the order of keeping leads it. */
static void join_groups(const dp_deciding *g, uint32_t a, uint32_t b) {
    a = dp_root(g->chain, a);
    b = dp_root(g->chain, b);
    bool first = dp_rank(&g->order, a) < dp_rank(&g->order, b);
    g->chain[first ? b : a] = first ? a : b;
}

/* Compares d with some that came before it. Once it belongs to the group of all of them, if they are of one (`whole`),
 * there is nothing more to learn there. */
static doppel_status link_with(const dp_decider *w, uint32_t d, const uint32_t *others, size_t count, bool whole) {
    dp_deciding *g = w->g;
    for (size_t i = 0; i < count; i++) {
        uint32_t k = others[i];
        dp_candidate candidate;
        if (!dp_batch_allows(g->batch, k, d))
            continue;
        if (dp_root(g->chain, k) == dp_root(g->chain, d)) {
            if (whole)
                return DOPPEL_OK;
            continue;
        }
        atomic_fetch_add_explicit(&g->candidates, 1, memory_order_relaxed);
        doppel_status status = dp_verify(w->finder.verifier, k, d, &candidate);
        if (status != DOPPEL_OK)
            return status;
        if (dp_decide(&g->rules, &candidate) != DP_UNIQUE)
            join_groups(g, k, d);
    }
    return DOPPEL_OK;
}

/* The same with the buckets that d looks at, either the crowded ones or the others. */
static doppel_status link_buckets(const dp_decider *w, uint32_t d, bool crowded) {
    const dp_deciding *g = w->g;
    uint32_t of = dp_looks_of(&g->looks, d);
    doppel_status status = DOPPEL_OK;
    for (uint64_t i = g->looks.start[of]; i < g->looks.start[of + 1] && status == DOPPEL_OK; i++) {
        uint32_t b = g->looks.bucket[i];
        if (dp_decider_crowded(w, b) == crowded)
            status = link_with(w, d, dp_deciding_bucket(g, b), g->fill[b], g->whole[b]);
    }
    return status;
}

static doppel_status link_near(dp_decider *w, uint32_t d) {
    bool found = true;
    doppel_status status = link_buckets(w, d, false);
    if (status != DOPPEL_OK || !w->crowd)
        return status;
    if ((status = dp_decider_find(w, d, &found)) != DOPPEL_OK)
        return status;
    return found ? link_with(w, d, w->finder.found, w->finder.found_count, false) : link_buckets(w, d, true);
}

/* Lists d in its buckets, and notes in which of them all are of one group: groups only grow, so that stays true. */
static doppel_status enter(dp_decider *w, uint32_t d) {
    const dp_deciding *g = w->g;
    doppel_status status = dp_decider_enter(w, d);
    uint32_t of = dp_looks_of(&g->looks, d);
    uint64_t from = g->looks.start[of], to = g->looks.start[of + 1];
    for (uint64_t i = from; i < to && (i == from || !g->buckets.own_first); i++) {
        uint32_t b = g->looks.bucket[i];
        bool same = dp_root(g->chain, dp_deciding_bucket(g, b)[0]) == dp_root(g->chain, d);
        g->whole[b] = g->fill[b] == 1 || (g->whole[b] && same);
    }
    return status;
}

/* Documents of one title, and of titles near it. */
static void link_title(const dp_deciding *g, uint32_t d) {
    uint32_t class = g->titles.of ? g->titles.of[d] : DP_NO_DOCUMENT;
    if (class == DP_NO_DOCUMENT)
        return;
    uint32_t first = g->titles.first[class];
    if (dp_batch_allows(g->batch, first, d))
        join_groups(g, first, d);
    for (uint64_t i = g->titles.start[class]; i < g->titles.start[class + 1]; i++)
        if (dp_batch_allows(g->batch, g->titles.first[g->titles.near[i]], d))
            join_groups(g, g->titles.first[g->titles.near[i]], d);
}

static doppel_status link_document(dp_decider *w, uint32_t d) {
    const dp_deciding *g = w->g;
    uint32_t twin = g->batch->docs[d].twin, url = g->url_class ? g->url_class[d] : DP_NO_DOCUMENT;
    if (url != DP_NO_DOCUMENT && url != d)
        join_groups(g, url, d);
    link_title(g, d);
    if (twin != d) {
        join_groups(g, twin, d); /* near whatever its twin is near */
        return DOPPEL_OK;
    }
    doppel_status status = link_near(w, d);
    return status == DOPPEL_OK ? enter(w, d) : status;
}

/* The leader is the original, and the evidence is theirs. It may be none, where only others connect the two. */
static doppel_status settle(const dp_decider *w, uint32_t d) {
    const dp_deciding *g = w->g;
    const doppel_batch *batch = g->batch;
    uint32_t leader = dp_root(g->chain, d);
    dp_candidate candidate;
    if (leader == d || d < batch->known)
        return DOPPEL_OK;
    doppel_status status = dp_verify_similarity(w->finder.verifier, leader, d, &candidate);
    if (status != DOPPEL_OK)
        return status;
    doppel_evidence *evidence = &candidate.evidence;
    evidence->same_url = g->url_class && g->url_class[d] != DP_NO_DOCUMENT && g->url_class[d] == g->url_class[leader];
    evidence->title_similarity = dp_titles_similarity(&g->titles, d, leader);
    candidate.title = true;
    dp_reason reason = dp_decide(&g->rules, &candidate);
    if (reason == DP_UNIQUE)
        reason = batch->by & DOPPEL_BY_CONTENT ? DP_SAME_CONTENT : DP_SAME_TITLE;
    dp_deciding_settle(g, d, leader, reason, evidence);
    return DOPPEL_OK;
}

doppel_status dp_link_any(dp_decider *w) {
    const dp_deciding *g = w->g;
    doppel_status status = DOPPEL_OK;
    for (size_t i = w->from; i < w->to; i++) {
        uint32_t d = dp_deciding_document(g, i);
        g->chain[d] = d;
    }
    for (size_t i = w->from; i < w->to && status == DOPPEL_OK; i++)
        status =
            dp_stopped(g->batch->input.stop) ? DOPPEL_ERROR_INTERRUPTED : link_document(w, dp_deciding_document(g, i));
    for (size_t i = w->from; i < w->to && status == DOPPEL_OK; i++)
        status = settle(w, dp_deciding_document(g, i));
    return status;
}
