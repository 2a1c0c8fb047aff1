/* verify.c - how near two documents really are, by their sets of feature hashes (sets.c).
 *
 * Each thread keeps some of the sets that it has asked for, as a kept document is compared with many: as many as fit
 * into its share of the memory. */
#include "batch/batch.h"

#include <stdlib.h>

/* Sets that are kept, one for each remainder of document / KEPT, and how large they may be: 128 MiB a thread at most, a
 * tenth of it with documents of a page each; and no more than this share of the memory, for all threads together. */
enum { KEPT = 8192, KEPT_COUNT = 2048, MEMORY_SHARE = 8 };

typedef struct kept_set {
    uint32_t document;
    dp_set_buffer set;
} kept_set;

struct dp_verifier {
    const doppel_batch *batch;
    dp_set_maker *maker;
    kept_set kept[KEPT];
    uint64_t bytes, most; /* of the kept sets */
    size_t next;          /* the kept set that is freed next */
    kept_set large[2];    /* sets that are too large to be kept, of either side */
    uint64_t verified;
};

dp_verifier *dp_verifier_create(doppel_batch *batch) {
    dp_verifier *verifier = calloc(1, sizeof *verifier);
    if (!verifier || !(verifier->maker = dp_set_maker_create(batch))) {
        free(verifier);
        return NULL;
    }
    verifier->batch = batch;
    verifier->most = dp_memory_left(batch) / MEMORY_SHARE / batch->settings.threads;
    for (int i = 0; i < KEPT; i++)
        verifier->kept[i].document = DP_NO_DOCUMENT;
    verifier->large[0].document = verifier->large[1].document = DP_NO_DOCUMENT;
    return verifier;
}

void dp_verifier_free(dp_verifier *verifier) {
    if (!verifier)
        return;
    for (int i = 0; i < KEPT; i++)
        free(verifier->kept[i].set.hash);
    free(verifier->large[0].set.hash);
    free(verifier->large[1].set.hash);
    dp_set_maker_free(verifier->maker);
    free(verifier);
}

uint64_t dp_verifier_count(const dp_verifier *verifier) {
    return verifier->verified;
}

/* ---- sets ---- */

static uint64_t bytes_of(const kept_set *kept) {
    return kept->set.room * sizeof *kept->set.hash;
}

/* Frees kept sets until there is memory for more, except the one at `except`. */
static void make_room(dp_verifier *v, size_t except) {
    for (size_t seen = 0; v->bytes > v->most && seen < KEPT; seen++, v->next = (v->next + 1) % KEPT) {
        kept_set *kept = &v->kept[v->next];
        if (v->next == except)
            continue;
        v->bytes -= bytes_of(kept);
        free(kept->set.hash);
        *kept = (kept_set){.document = DP_NO_DOCUMENT};
    }
}

/* The set of a document, of one of the two sides that are compared; the other side's is not touched. */
static doppel_status get(dp_verifier *v, uint32_t document, int side, uint32_t other, const uint64_t **hash) {
    kept_set *kept = &v->kept[document % KEPT];
    bool large = dp_set_size(v->batch, document) > KEPT_COUNT || document % KEPT == other % KEPT;
    if (large)
        kept = &v->large[side];
    if (kept->document != document) {
        if (!large)
            make_room(v, other % KEPT);
        uint64_t before = bytes_of(kept);
        kept->document = DP_NO_DOCUMENT;
        DP_TRY(dp_set_make(v->maker, document, &kept->set));
        kept->document = document;
        v->bytes += large ? 0 : bytes_of(kept) - before;
    }
    *hash = kept->set.hash;
    return DOPPEL_OK;
}

doppel_status dp_verifier_get(dp_verifier *verifier, uint32_t document, const uint64_t **set) {
    return get(verifier, document, 0, document + 1, set);
}

/* ---- two documents ---- */

/* Whether there is a similarity and, unless `any` is wanted, it can reach the threshold: the smaller set may be all of
 * what they share. The size of a set that was not made yet is a bound, and rules out nothing where it is the larger. */
static bool is_worth_measuring(const doppel_batch *batch, uint32_t a, uint32_t b, bool any) {
    double x = dp_set_size(batch, a), y = dp_set_size(batch, b);
    uint32_t larger = x < y ? b : a;
    if (x <= 0 || y <= 0)
        return false;
    return any || !dp_set_is_known(batch, larger) || (x < y ? x / y : y / x) >= batch->settings.options.similarity;
}

static doppel_status measure(dp_verifier *v, uint32_t a, uint32_t b, bool any, doppel_evidence *evidence) {
    const uint64_t *a_hash, *b_hash;
    DP_TRY(get(v, a, 0, b, &a_hash));
    DP_TRY(get(v, b, 1, a, &b_hash));
    /* Now that their sizes are known. */
    if (!is_worth_measuring(v->batch, a, b, any))
        return DOPPEL_OK;
    v->verified++;
    size_t a_size = dp_set_size(v->batch, a), b_size = dp_set_size(v->batch, b);
    evidence->similarity = doppel_jaccard(a_hash, a_size, b_hash, b_size);
    if (v->batch->settings.options.only_contained > 0)
        evidence->containment = doppel_containment(b_hash, b_size, a_hash, a_size);
    return DOPPEL_OK;
}

/* Whether a document is looked for by content. */
static bool is_looked_for(const doppel_batch *batch, uint32_t document) {
    const dp_batch_settings *s = &batch->settings;
    const dp_doc *doc = &batch->documents.doc[document];
    return s->by & DOPPEL_BY_CONTENT && s->options.method != DOPPEL_METHOD_EXACT && dp_doc_has_words(doc) &&
           doc->words >= s->options.min_words;
}

doppel_status dp_verify(dp_verifier *verifier, uint32_t a, uint32_t b, bool any, dp_candidate *candidate) {
    const doppel_batch *batch = verifier->batch;
    doppel_evidence *evidence = &candidate->evidence;
    a = batch->documents.doc[a].twin;
    b = batch->documents.doc[b].twin;
    *candidate =
        (dp_candidate){.evidence = dp_evidence_none(), .content = is_looked_for(batch, a) && is_looked_for(batch, b)};
    evidence->same_digest = a == b;
    if (a == b)
        evidence->similarity = evidence->containment = 1;
    else if (candidate->content && !batch->settings.has_sets)
        evidence->distance = dp_documents_distance(&batch->documents, a, b);
    else if (is_worth_measuring(batch, a, b, any))
        return measure(verifier, a, b, any, evidence);
    return DOPPEL_OK;
}
