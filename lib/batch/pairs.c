/* pairs.c - every pair of near documents, in order.
 *
 * Documents are taken in blocks, each block's share by one thread, and what they find is given out block after block. A
 * document is compared with the firsts of the buckets it looks at; their twins follow without a comparison. */
#include "batch/batch.h"

#include <math.h>
#include <stdlib.h>

/* Documents a thread takes at a time, at most; and the pairs after which it takes no more of them. */
enum { SHARE = 1024, MOST_PAIRS = 1 << 18 };

typedef struct finding {
    doppel_near *pair;
    size_t count, room;
    dp_verifier *verifier;
    uint32_t *stamp; /* by document: who looked at it last, + 1 */
    uint64_t candidates;
    size_t next; /* the document after the last whose pairs were found */
    doppel_status status;
} finding;

typedef struct pairing {
    doppel_batch *batch;
    dp_buckets buckets;
    dp_looks looks;
    uint32_t *next_twin, *next_url; /* the next document with the same; DP_NO_DOCUMENT: none */
    uint32_t *url_class;
    dp_titles titles;
    uint32_t *next_title;
    bool collapse;
    finding *finding; /* one a thread */
    size_t from;      /* of the block at hand */
    size_t share;     /* documents of it for each thread */
} pairing;

/* ---- one document ---- */

static bool add(pairing *p, finding *f, const doppel_near *pair) {
    if (!dp_reserve(&f->pair, &f->room, f->count + 1, sizeof *f->pair))
        return false;
    const doppel_batch *batch = p->batch;
    uint32_t a = (uint32_t)pair->a, b = (uint32_t)pair->b;
    bool have_words = dp_doc_has_words(&batch->docs[a]) && dp_doc_has_words(&batch->docs[b]);
    f->pair[f->count] = *pair;
    f->pair[f->count++].distance = have_words ? dp_batch_distance(batch, a, b) : -1;
    return true;
}

/* Adds `from` and what follows it in a chain (NULL: nothing does), as far as it stands behind a. A pair of two known
 * documents is nobody's business. */
static bool add_chain(pairing *p, finding *f, doppel_near *pair, uint32_t from, const uint32_t *next) {
    bool added = true;
    for (; from != DP_NO_DOCUMENT && added; from = next ? next[from] : DP_NO_DOCUMENT) {
        if (from <= pair->a || from < p->batch->known || !dp_batch_allows(p->batch, (uint32_t)pair->a, from))
            continue;
        pair->b = from;
        added = add(p, f, pair);
    }
    return added;
}

/* Those that are near by content, each with its twins. */
static doppel_status add_near(pairing *p, finding *f, uint32_t a) {
    const doppel_batch *batch = p->batch;
    uint32_t twin = batch->docs[a].twin;
    doppel_near pair = {.a = a, .reason = "content_hash"};
    uint32_t of = dp_looks_of(&p->looks, twin);
    for (uint64_t i = p->looks.start[of]; i < p->looks.start[of + 1]; i++) {
        uint32_t b = p->looks.bucket[i];
        for (uint64_t m = p->buckets.start[b]; m < p->buckets.start[b + 1]; m++) {
            uint32_t k = p->buckets.member[m];
            bool near = false;
            float similarity;
            if (k == twin || f->stamp[k] == a + 1 || (p->collapse && k < a))
                continue;
            f->stamp[k] = a + 1;
            f->candidates++;
            doppel_status status = dp_verify(f->verifier, twin, k, &near, &similarity);
            if (status != DOPPEL_OK)
                return status;
            pair.similarity = similarity < 0 ? NAN : (double)similarity;
            if (near && !add_chain(p, f, &pair, k, p->collapse ? NULL : p->next_twin))
                return DOPPEL_ERROR_MEMORY;
        }
    }
    return DOPPEL_OK;
}

/* What says more stands first: the URL, then the content, then the title. */
static int strength(const char *reason) {
    return *reason == 'e' ? 0 : *reason == 'c' ? 1 : 2;
}

static int compare_pairs(const void *x, const void *y) {
    const doppel_near *a = x, *b = y;
    if (a->b != b->b)
        return a->b < b->b ? -1 : 1;
    return strength(a->reason) - strength(b->reason);
}

/* Sorts the pairs of one document, and leaves out those that were found in two ways. */
static void sort_pairs(finding *f, size_t from) {
    size_t kept = from;
    if (f->count > from)
        qsort(f->pair + from, f->count - from, sizeof *f->pair, compare_pairs);
    for (size_t i = from; i < f->count; i++)
        if (i == from || f->pair[i].b != f->pair[kept - 1].b)
            f->pair[kept++] = f->pair[i];
        else if (isnan(f->pair[kept - 1].similarity) && strength(f->pair[i].reason) == 1)
            f->pair[kept - 1].similarity = f->pair[i].similarity;
    f->count = kept;
}

/* Those with the title, or one near it. */
static bool add_titles(pairing *p, finding *f, uint32_t a) {
    const dp_titles *titles = &p->titles;
    doppel_near pair = {.a = a, .reason = "title_similarity", .similarity = 1};
    uint32_t class = titles->of ? titles->of[a] : DP_NO_DOCUMENT;
    if (class == DP_NO_DOCUMENT)
        return true;
    bool added = add_chain(p, f, &pair, p->next_title[a], p->next_title);
    for (uint64_t i = titles->start[class]; i < titles->start[class + 1] && added; i++) {
        pair.similarity = (double)titles->similarity[i];
        added = add_chain(p, f, &pair, titles->first[titles->near[i]], p->next_title);
    }
    return added;
}

static doppel_status find_pairs(pairing *p, finding *f, uint32_t a) {
    const doppel_batch *batch = p->batch;
    size_t from = f->count;
    bool copy = batch->docs[a].twin != a;
    doppel_near same = {.a = a, .reason = "content_hash", .similarity = 1};
    doppel_near url = {.a = a, .reason = "exact_url", .similarity = NAN};
    if (!(p->collapse && copy) && !add_chain(p, f, &same, p->next_twin[a], p->next_twin))
        return DOPPEL_ERROR_MEMORY;
    if (p->next_url && !add_chain(p, f, &url, p->next_url[a], p->next_url))
        return DOPPEL_ERROR_MEMORY;
    if (!add_titles(p, f, a))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = p->collapse && copy ? DOPPEL_OK : add_near(p, f, a);
    sort_pairs(f, from);
    return status;
}

/* ---- blocks ---- */

static void run(void *user, size_t thread) {
    pairing *p = user;
    finding *f = &p->finding[thread];
    size_t to = p->from + (thread + 1) * p->share, count = p->batch->count;
    f->count = 0;
    for (f->next = to - p->share; f->next < to && f->next < count && f->count < MOST_PAIRS; f->next++) {
        f->status = dp_stopped(p->batch->input.stop) ? DOPPEL_ERROR_INTERRUPTED : find_pairs(p, f, (uint32_t)f->next);
        if (f->status != DOPPEL_OK)
            return;
    }
}

/* Gives what the threads have found. A thread that took no more documents ends the block, and those behind it find
 * theirs once more, in smaller shares: memory stays within bounds whatever the documents are. */
static doppel_status give_block(pairing *p, doppel_status (*pairs)(const doppel_near *, size_t, void *), void *user) {
    size_t threads = p->batch->threads, end = p->from;
    for (size_t t = 0; t < threads && end < p->batch->count; t++) {
        finding *f = &p->finding[t];
        doppel_status status = f->status;
        if (status == DOPPEL_OK && f->count)
            status = pairs(f->pair, f->count, user);
        if (status != DOPPEL_OK)
            return status;
        end += p->share;
        if (f->next < end && f->next < p->batch->count) {
            p->from = f->next;
            p->share -= p->share / 2;
            return DOPPEL_OK;
        }
    }
    p->from = end;
    p->share = p->share < SHARE / 2 ? 2 * p->share : SHARE;
    return DOPPEL_OK;
}

static doppel_status give_all(pairing *p, doppel_status (*pairs)(const doppel_near *, size_t, void *), void *user) {
    doppel_batch *batch = p->batch;
    doppel_status status = DOPPEL_OK;
    p->share = SHARE;
    while (p->from < batch->count && status == DOPPEL_OK) {
        dp_run_threads(batch->threads, run, p);
        dp_batch_tell(batch, "pairs", p->from, batch->count);
        status = give_block(p, pairs, user);
    }
    return status;
}

/* ---- beginning and end ---- */

/* next[d]: the next document of d's class. */
static bool make_chain(size_t count, uint32_t **next, uint32_t (*class_of)(const pairing *, uint32_t),
                       const pairing *p) {
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

static uint32_t twin_of(const pairing *p, uint32_t d) {
    return dp_doc_has_words(&p->batch->docs[d]) ? p->batch->docs[d].twin : DP_NO_DOCUMENT;
}

static uint32_t url_of(const pairing *p, uint32_t d) {
    return p->url_class[d];
}

static uint32_t title_of(const pairing *p, uint32_t d) {
    return p->titles.of[d];
}

static bool start(pairing *p) {
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
        finding *f = &p->finding[t];
        f->verifier = dp_verifier_create(batch);
        f->stamp = calloc(batch->count + 1, sizeof *f->stamp);
        if (!f->verifier || !f->stamp)
            return false;
    }
    return true;
}

static void finish(pairing *p) {
    doppel_batch *batch = p->batch;
    batch->stats.candidates = batch->stats.verified = 0;
    for (size_t t = 0; p->finding && t < batch->threads; t++) {
        finding *f = &p->finding[t];
        batch->stats.candidates += f->candidates;
        batch->stats.verified += f->verifier ? dp_verifier_count(f->verifier) : 0;
        dp_verifier_free(f->verifier);
        free(f->stamp);
        free(f->pair);
    }
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
    pairing p = {.batch = batch, .collapse = collapse};
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
