/* verify.c - how near two documents really are: their sets of feature hashes, read back from the file.
 *
 * Each thread keeps some sets that it has read: a document that stays is compared with many. */
#include "batch/batch.h"

#include <stdlib.h>

/* Sets that are kept, by document modulo so many, and how large they may be: 128 MiB a thread at most, a tenth of it
 * with documents of a page each. */
enum { KEPT = 8192, KEPT_COUNT = 2048 };

typedef struct kept_set {
    uint32_t document;
    uint64_t *hash;
    size_t room;
} kept_set;

struct dp_verifier {
    const doppel_batch *batch;
    kept_set kept[KEPT];
    kept_set large[2]; /* sets that are too large to be kept, of either side */
    uint64_t verified;
};

dp_verifier *dp_verifier_create(const doppel_batch *batch) {
    dp_verifier *verifier = calloc(1, sizeof *verifier);
    if (!verifier)
        return NULL;
    verifier->batch = batch;
    for (int i = 0; i < KEPT; i++)
        verifier->kept[i].document = DP_NO_DOCUMENT;
    verifier->large[0].document = verifier->large[1].document = DP_NO_DOCUMENT;
    return verifier;
}

void dp_verifier_free(dp_verifier *verifier) {
    if (!verifier)
        return;
    for (int i = 0; i < KEPT; i++)
        free(verifier->kept[i].hash);
    free(verifier->large[0].hash);
    free(verifier->large[1].hash);
    free(verifier);
}

uint64_t dp_verifier_count(const dp_verifier *verifier) {
    return verifier->verified;
}

static doppel_status load(const doppel_batch *batch, kept_set *set, uint32_t document) {
    const dp_doc *doc = &batch->docs[document];
    set->document = DP_NO_DOCUMENT;
    if (!dp_reserve(&set->hash, &set->room, doc->set_count, sizeof *set->hash))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status =
        dp_spill_read(&batch->journal, doc->set_at, set->hash, doc->set_count * sizeof *set->hash, NULL);
    if (status == DOPPEL_OK) {
        dp_boilerplate_drop(batch, set->hash, doc->set_count);
        set->document = document;
    }
    return status;
}

/* The set of a document, of one of the two sides that are compared; the other side's is not touched. */
static doppel_status get(dp_verifier *v, uint32_t document, int side, uint32_t other, const uint64_t **hash) {
    kept_set *set = &v->kept[document % KEPT];
    if (v->batch->docs[document].set_count > KEPT_COUNT || document % KEPT == other % KEPT)
        set = &v->large[side];
    doppel_status status = set->document == document ? DOPPEL_OK : load(v->batch, set, document);
    *hash = set->hash;
    return status;
}

doppel_status dp_verifier_get(dp_verifier *verifier, uint32_t document, const uint64_t **set) {
    return get(verifier, document, 0, document + 1, set);
}

static doppel_status measure(dp_verifier *v, uint32_t a, uint32_t b, double *jaccard) {
    const doppel_batch *batch = v->batch;
    const uint64_t *a_hash, *b_hash;
    doppel_status status = get(v, a, 0, b, &a_hash);
    if (status == DOPPEL_OK)
        status = get(v, b, 1, a, &b_hash);
    if (status == DOPPEL_OK)
        *jaccard = doppel_jaccard(a_hash, dp_set_size(batch, a), b_hash, dp_set_size(batch, b));
    v->verified++;
    return status;
}

/* Whether the similarity can be so great: the smaller set may be all of what they share. */
static bool can_be(const doppel_batch *batch, uint32_t a, uint32_t b) {
    double x = dp_set_size(batch, a), y = dp_set_size(batch, b);
    return x > 0 && y > 0 && (x < y ? x / y : y / x) >= batch->options.similarity;
}

doppel_status dp_verify(dp_verifier *verifier, uint32_t a, uint32_t b, dp_candidate *candidate) {
    const doppel_batch *batch = verifier->batch;
    doppel_evidence *evidence = &candidate->evidence;
    a = batch->docs[a].twin;
    b = batch->docs[b].twin;
    *candidate = (dp_candidate){.evidence = dp_evidence_none(), .content = true};
    evidence->same_digest = a == b;
    if (a == b)
        evidence->similarity = 1;
    else if (!batch->has_sets)
        evidence->distance = dp_batch_distance(batch, a, b);
    else if (can_be(batch, a, b))
        return measure(verifier, a, b, &evidence->similarity);
    return DOPPEL_OK;
}

/* Whether a document is looked for by content. */
static bool is_looked_for(const doppel_batch *batch, uint32_t document) {
    const dp_doc *doc = &batch->docs[document];
    return batch->by & DOPPEL_BY_CONTENT && batch->options.method != DOPPEL_METHOD_EXACT && dp_doc_has_words(doc) &&
           doc->words >= batch->options.min_words;
}

doppel_status dp_verify_similarity(dp_verifier *verifier, uint32_t a, uint32_t b, dp_candidate *candidate) {
    const doppel_batch *batch = verifier->batch;
    doppel_evidence *evidence = &candidate->evidence;
    a = batch->docs[a].twin;
    b = batch->docs[b].twin;
    *candidate =
        (dp_candidate){.evidence = dp_evidence_none(), .content = is_looked_for(batch, a) && is_looked_for(batch, b)};
    evidence->same_digest = a == b;
    if (a == b)
        evidence->similarity = 1;
    else if (candidate->content && !batch->has_sets)
        evidence->distance = dp_batch_distance(batch, a, b);
    else if (dp_set_size(batch, a) && dp_set_size(batch, b))
        return measure(verifier, a, b, &evidence->similarity);
    return DOPPEL_OK;
}
