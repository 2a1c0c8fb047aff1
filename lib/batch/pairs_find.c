/* pairs_find.c - the pairs of one document.
 *
 * It is compared with the firsts of the buckets it looks at, in crowded ones with those that may be near (crowd.h);
 * their twins follow without a comparison. */
#include "batch/pairs.h"

#include <math.h>
#include <stdlib.h>

static bool add(dp_pairing *p, dp_finding *f, const doppel_near *pair) {
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
static bool add_chain(dp_pairing *p, dp_finding *f, doppel_near *pair, uint32_t from, const uint32_t *next) {
    bool added = true;
    for (; from != DP_NO_DOCUMENT && added; from = next ? next[from] : DP_NO_DOCUMENT) {
        if (from <= pair->a || from < p->batch->known || !dp_batch_allows(p->batch, (uint32_t)pair->a, from))
            continue;
        pair->b = from;
        added = add(p, f, pair);
    }
    return added;
}

/* Of some firsts those that are near by content, each with its twins. */
static doppel_status compare(dp_pairing *p, dp_finding *f, uint32_t a, const uint32_t *others, size_t count) {
    uint32_t twin = p->batch->docs[a].twin;
    doppel_near pair = {.a = a};
    for (size_t i = 0; i < count; i++) {
        uint32_t k = others[i];
        dp_candidate candidate;
        if (k == twin || f->finder.stamp[k] == a + 1 || (p->collapse && k < a))
            continue;
        f->finder.stamp[k] = a + 1;
        f->candidates++;
        doppel_status status = dp_verify(f->finder.verifier, twin, k, &candidate);
        if (status != DOPPEL_OK)
            return status;
        dp_reason reason = dp_decide(&p->rules, &candidate);
        pair.reason = dp_reason_name(reason);
        pair.similarity = (double)(float)candidate.evidence.similarity; /* as doppel_batch_get gives it */
        if (reason != DP_UNIQUE && !add_chain(p, f, &pair, k, p->collapse ? NULL : p->next_twin))
            return DOPPEL_ERROR_MEMORY;
    }
    return DOPPEL_OK;
}

/* The same with the buckets that a looks at, either the crowded ones or the others. Counts those of the
 * buckets that are left out. */
static doppel_status compare_buckets(dp_pairing *p, dp_finding *f, uint32_t a, bool crowded, uint64_t *left) {
    uint32_t of = dp_looks_of(&p->looks, p->batch->docs[a].twin);
    doppel_status status = DOPPEL_OK;
    *left = 0;
    for (uint64_t i = p->looks.start[of]; i < p->looks.start[of + 1] && status == DOPPEL_OK; i++) {
        uint64_t start = p->buckets.start[p->looks.bucket[i]], end = p->buckets.start[p->looks.bucket[i] + 1];
        if ((p->crowd && dp_crowded(&p->place, p->looks.bucket[i])) == crowded)
            status = compare(p, f, a, p->buckets.member + start, end - start);
        else
            *left += end - start;
    }
    return status;
}

static doppel_status add_near(dp_pairing *p, dp_finding *f, uint32_t a) {
    uint64_t crowd;
    bool found = true;
    doppel_status status = compare_buckets(p, f, a, false, &crowd);
    if (status != DOPPEL_OK || !crowd)
        return status;
    if ((status = dp_crowd_find(p->crowd, &f->finder, a, crowd, &found)) != DOPPEL_OK)
        return status;
    return found ? compare(p, f, a, f->finder.found, f->finder.found_count) : compare_buckets(p, f, a, true, &crowd);
}

/* By the other document; of the same one, the strongest reason first. */
static int compare_pairs(const void *x, const void *y) {
    const doppel_near *a = x, *b = y;
    if (a->b != b->b)
        return a->b < b->b ? -1 : 1;
    dp_reason reason_a = dp_reason_of(a->reason), reason_b = dp_reason_of(b->reason);
    return dp_reason_stronger(reason_b, reason_a) - dp_reason_stronger(reason_a, reason_b);
}

/* Sorts the pairs of one document, and leaves out those that were found in two ways. */
static void sort_pairs(dp_finding *f, size_t from) {
    size_t kept = from;
    if (f->count > from)
        qsort(f->pair + from, f->count - from, sizeof *f->pair, compare_pairs);
    for (size_t i = from; i < f->count; i++)
        if (i == from || f->pair[i].b != f->pair[kept - 1].b)
            f->pair[kept++] = f->pair[i];
        else if (isnan(f->pair[kept - 1].similarity) && dp_reason_of(f->pair[i].reason) == DP_SAME_CONTENT)
            f->pair[kept - 1].similarity = f->pair[i].similarity;
    f->count = kept;
}

/* Those with the title, or one near it. */
static bool add_titles(dp_pairing *p, dp_finding *f, uint32_t a) {
    const dp_titles *titles = &p->titles;
    doppel_near pair = {.a = a, .reason = dp_reason_name(DP_SAME_TITLE), .similarity = 1};
    uint32_t class = titles->of ? titles->of[a] : DP_NO_DOCUMENT;
    if (class == DP_NO_DOCUMENT)
        return true;
    bool added = add_chain(p, f, &pair, p->next_title[a], p->next_title);
    for (uint64_t i = titles->start[class]; i < titles->start[class + 1] && added; i++) {
        pair.similarity = (double)(float)titles->similarity[i];
        added = add_chain(p, f, &pair, titles->first[titles->near[i]], p->next_title);
    }
    return added;
}

doppel_status dp_pairs_find(dp_pairing *p, dp_finding *f, uint32_t a) {
    const doppel_batch *batch = p->batch;
    size_t from = f->count;
    bool copy = batch->docs[a].twin != a;
    doppel_near same = {.a = a, .reason = dp_reason_name(DP_SAME_CONTENT), .similarity = 1};
    doppel_near url = {.a = a, .reason = dp_reason_name(DP_SAME_URL), .similarity = NAN};
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
