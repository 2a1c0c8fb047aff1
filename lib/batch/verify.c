/* verify.c - how near two documents really are: their sets of feature hashes, read back from the journal.
 *
 * Each thread keeps some sets that it has read: a document that stays is compared with many. */
#include "batch/batch.h"

#include <stdlib.h>

/* Sets that are kept, one for each remainder of document / KEPT, and how large they may be: 128 MiB a thread at most, a
 * tenth of it with documents of a page each. */
enum { KEPT = 8192, KEPT_COUNT = 2048 };

typedef struct kept_set {
    uint32_t document;
    dp_set_buffer set;
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
        free(verifier->kept[i].set.hash);
    free(verifier->large[0].set.hash);
    free(verifier->large[1].set.hash);
    free(verifier);
}

uint64_t dp_verifier_count(const dp_verifier *verifier) {
    return verifier->verified;
}

/* ---- sets ---- */

doppel_status dp_set_read(const doppel_batch *batch, uint32_t document, dp_set_buffer *set, doppel_error *error) {
    const dp_doc *doc = &batch->documents.doc[document];
    const doppel_df *frequent = batch->boilerplate.frequent;
    set->count = doc->set_count;
    if (!dp_reserve(&set->hash, &set->room, set->count, sizeof *set->hash))
        return dp_no_memory(error);
    DP_TRY(dp_append_file_read(&batch->journal.file, doc->set_at, set->hash, set->count * sizeof *set->hash, error));
    if (!frequent)
        return DOPPEL_OK;
    size_t left = 0;
    for (size_t i = 0; i < set->count; i++)
        if (!doppel_df_get(frequent, set->hash[i]))
            set->hash[left++] = set->hash[i];
    set->count = left;
    return DOPPEL_OK;
}

/* The set of a document, of one of the two sides that are compared; the other side's is not touched. */
static doppel_status get(dp_verifier *v, uint32_t document, int side, uint32_t other, const uint64_t **hash) {
    kept_set *kept = &v->kept[document % KEPT];
    if (v->batch->documents.doc[document].set_count > KEPT_COUNT || document % KEPT == other % KEPT)
        kept = &v->large[side];
    if (kept->document != document) {
        kept->document = DP_NO_DOCUMENT;
        DP_TRY(dp_set_read(v->batch, document, &kept->set, NULL));
        kept->document = document;
    }
    *hash = kept->set.hash;
    return DOPPEL_OK;
}

doppel_status dp_verifier_get(dp_verifier *verifier, uint32_t document, const uint64_t **set) {
    return get(verifier, document, 0, document + 1, set);
}

/* ---- two documents ---- */

static doppel_status measure(dp_verifier *v, uint32_t a, uint32_t b, double *jaccard) {
    const uint64_t *a_hash, *b_hash;
    v->verified++;
    DP_TRY(get(v, a, 0, b, &a_hash));
    DP_TRY(get(v, b, 1, a, &b_hash));
    *jaccard = doppel_jaccard(a_hash, dp_set_size(v->batch, a), b_hash, dp_set_size(v->batch, b));
    return DOPPEL_OK;
}

/* Whether there is a similarity and, unless `any` is wanted, it can reach the threshold: the smaller set may be all of
 * what they share. */
static bool is_worth_measuring(const doppel_batch *batch, uint32_t a, uint32_t b, bool any) {
    double x = dp_set_size(batch, a), y = dp_set_size(batch, b);
    return x > 0 && y > 0 && (any || (x < y ? x / y : y / x) >= batch->settings.options.similarity);
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
        evidence->similarity = 1;
    else if (candidate->content && !batch->settings.has_sets)
        evidence->distance = dp_documents_distance(&batch->documents, a, b);
    else if (is_worth_measuring(batch, a, b, any))
        return measure(verifier, a, b, &evidence->similarity);
    return DOPPEL_OK;
}
