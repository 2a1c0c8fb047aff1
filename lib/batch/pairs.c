/* pairs.c - every pair of near documents, in order.
 *
 * Documents are taken in blocks, each block's share by one thread, and what they find (pairs_find.c) is given out block
 * after block. */
#include "batch/pairs.h"

#include <stdlib.h>

/* Documents a thread takes at a time, at most; and the pairs after which it takes no more of them. */
enum { SHARE = 1024, MOST_PAIRS = 1 << 18 };

/* ---- blocks ---- */

static void run(void *user, size_t thread) {
    dp_pairing *p = user;
    dp_finding *f = &p->finding[thread];
    size_t to = p->from + (thread + 1) * p->share, count = p->batch->count;
    f->count = 0;
    for (f->next = to - p->share; f->next < to && f->next < count && f->count < MOST_PAIRS; f->next++) {
        f->status =
            dp_stopped(p->batch->input.stop) ? DOPPEL_ERROR_INTERRUPTED : dp_pairs_find(p, f, (uint32_t)f->next);
        if (f->status != DOPPEL_OK)
            return;
    }
}

/* Gives what the threads have found. A thread that took no more documents ends the block, and those behind it find
 * theirs once more, in smaller shares: memory stays within bounds whatever the documents are. */
static doppel_status give_block(dp_pairing *p, doppel_status (*pairs)(const doppel_near *, size_t, void *),
                                void *user) {
    size_t threads = p->batch->threads, end = p->from;
    for (size_t t = 0; t < threads && end < p->batch->count; t++) {
        dp_finding *f = &p->finding[t];
        doppel_status status = f->status;
        if (status == DOPPEL_OK && f->count)
            status = pairs(f->pair, f->count, user);
        if (status != DOPPEL_OK)
            return status;
        end += p->share;
        if (f->next < end && f->next < p->batch->count) {
            p->from = f->next;
            p->share -= p->share / 2;
            while (++t < threads) /* what they looked at, they have not seen */
                memset(p->finding[t].finder.stamp, 0, p->batch->count * sizeof *f->finder.stamp);
            return DOPPEL_OK;
        }
    }
    p->from = end;
    p->share = p->share < SHARE / 2 ? 2 * p->share : SHARE;
    return DOPPEL_OK;
}

/* Lists all that look at crowded buckets, if there are such. */
static doppel_status make_crowd(dp_pairing *p) {
    const doppel_batch *batch = p->batch;
    dp_crowd_finder *finder = &p->finding->finder;
    size_t b = 0;
    p->place = (dp_crowd_place){batch, &p->buckets, &p->looks};
    while (b < p->buckets.count && !dp_crowded(&p->place, (uint32_t)b))
        b++;
    if (!batch->has_sets || b == p->buckets.count)
        return DOPPEL_OK;
    doppel_status status = dp_crowd_create(&p->place, finder, batch->rows, batch->row_count, &p->crowd);
    for (size_t i = 0; i < batch->row_count && status == DOPPEL_OK; i++)
        if (dp_in_crowd(&p->place, batch->rows[i]))
            status = dp_crowd_add(p->crowd, finder, batch->rows[i]);
    return status;
}

static doppel_status give_all(dp_pairing *p, doppel_status (*pairs)(const doppel_near *, size_t, void *), void *user) {
    doppel_batch *batch = p->batch;
    doppel_status status = DOPPEL_OK;
    p->share = SHARE;
    status = make_crowd(p);
    while (p->from < batch->count && status == DOPPEL_OK) {
        dp_run_threads(batch->threads, run, p);
        dp_batch_tell(batch, "pairs", p->from, batch->count);
        status = give_block(p, pairs, user);
    }
    return status;
}

/* ---- beginning and end ---- */

/* next[d]: the next document of d's class. */
static bool make_chain(size_t count, uint32_t **next, uint32_t (*class_of)(const dp_pairing *, uint32_t),
                       const dp_pairing *p) {
    uint32_t *head = malloc((count + 1) * sizeof *head);
    *next = malloc((count + 1) * sizeof **next);
    bool made = head && *next;
    for (size_t i = 0; made && i < count; i++)
        head[i] = DP_NO_DOCUMENT;
    for (size_t d = count; made && d-- > 0;) {
        uint32_t class = class_of(p, (uint32_t)d);
        (*next)[d] = class == DP_NO_DOCUMENT ? DP_NO_DOCUMENT : head[class];
        if (class != DP_NO_DOCUMENT)
            head[class] = (uint32_t)d;
    }
    free(head);
    return made;
}

static uint32_t twin_of(const dp_pairing *p, uint32_t d) {
    return dp_doc_has_digest(&p->batch->docs[d]) ? p->batch->docs[d].twin : DP_NO_DOCUMENT;
}

static uint32_t url_of(const dp_pairing *p, uint32_t d) {
    return p->url_class[d];
}

static uint32_t title_of(const dp_pairing *p, uint32_t d) {
    return p->titles.of[d];
}

static bool start(dp_pairing *p) {
    doppel_batch *batch = p->batch;
    if (!make_chain(batch->count, &p->next_twin, twin_of, p))
        return false;
    if (batch->url && (!dp_url_classes(batch, &p->url_class) || !make_chain(batch->count, &p->next_url, url_of, p)))
        return false;
    if (p->titles.of && !make_chain(batch->count, &p->next_title, title_of, p))
        return false;
    if (!(p->finding = calloc(batch->threads, sizeof *p->finding)))
        return false;
    for (size_t t = 0; t < batch->threads; t++) {
        dp_finding *f = &p->finding[t];
        f->finder.verifier = dp_verifier_create(batch);
        f->finder.stamp = calloc(batch->count + 1, sizeof *f->finder.stamp);
        if (!f->finder.verifier || !f->finder.stamp)
            return false;
    }
    return true;
}

static void finish(dp_pairing *p) {
    doppel_batch *batch = p->batch;
    batch->stats.candidates = batch->stats.verified = 0;
    for (size_t t = 0; p->finding && t < batch->threads; t++) {
        dp_finding *f = &p->finding[t];
        batch->stats.candidates += f->candidates;
        batch->stats.verified += f->finder.verifier ? dp_verifier_count(f->finder.verifier) : 0;
        dp_verifier_free(f->finder.verifier);
        dp_crowd_finder_free(&f->finder);
        free(f->finder.stamp);
        free(f->pair);
    }
    dp_crowd_free(p->crowd);
    free(p->finding);
    free(p->next_twin);
    free(p->next_url);
    free(p->url_class);
    free(p->next_title);
    dp_titles_free(&p->titles);
    dp_buckets_free(&p->buckets);
    dp_looks_free(&p->looks);
}

doppel_status doppel_batch_pairs(doppel_batch *batch, bool collapse,
                                 doppel_status (*pairs)(const doppel_near *pairs, size_t count, void *user), void *user,
                                 doppel_error *error) {
    dp_pairing p = {.batch = batch, .rules = dp_batch_rules(batch), .collapse = collapse};
    if (batch->against || batch->finds.count)
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "an index tells originals, not all pairs: decide (doppel dedup) goes with one");
    doppel_status status = dp_batch_prepare(batch, error);
    if (status == DOPPEL_OK)
        status = dp_batch_candidates(batch, &p.buckets, &p.looks, error);
    double begun = dp_batch_clock();
    if (status == DOPPEL_OK && batch->by & DOPPEL_BY_TITLE)
        status = dp_titles_find(batch, &p.titles, error);
    if (status == DOPPEL_OK && !start(&p))
        status = dp_no_memory(error);
    else if (status == DOPPEL_OK && (status = give_all(&p, pairs, user)) != DOPPEL_OK)
        dp_fail(error, status, "%s", doppel_status_name(status));
    finish(&p);
    batch->stats.seconds_decide = dp_batch_clock() - begun;
    return status;
}
