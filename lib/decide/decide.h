/* decide.h - evidence to verdict, for the engine and for batches: pure arithmetic, no store and no batch.
 *
 * For each candidate: dp_decide says by which kind of evidence it counts, dp_decide_stronger which of two is the better
 * original. doppel_verdict_json (doppel.h) prints the verdict. titles.c says which titles are evidence at all, keep.c
 * which document of a group is kept. */
#ifndef DP_DECIDE_H
#define DP_DECIDE_H

#include "base/base.h"

/* ---- reasons: decide.c ---- */

/* Files have the numbers of doppel_reason. */
enum { DP_COUNTERS = 3 };

/* Whether one reason is stronger evidence than another: the URL, then the content, then the title, then none. */
bool dp_reason_stronger(doppel_reason a, doppel_reason b);
/* Where the duplicates of a reason are counted in a store, which has DP_COUNTERS counters; not for
 * DOPPEL_REASON_NONE. */
size_t dp_reason_counter(doppel_reason reason);

/* ---- one document against another: decide.c ---- */

typedef struct dp_rules {
    bool by_similarity; /* else by distance */
    double similarity;
    int distance, bits;
    bool titles;
    double title_similarity;
    bool title_veto; /* by similarity: a content similarity below half of `similarity` overrides a title */
} dp_rules;

/* A candidate, and what was measured. */
typedef struct dp_candidate {
    uint64_t number;
    doppel_evidence evidence;
    bool content; /* fingerprints or sets may be compared: both have enough words */
    bool title;   /* the title may be compared: long enough, not too frequent */
} dp_candidate;

/* Evidence with nothing measured. */
doppel_evidence dp_evidence_none(void);

/* Why it is an original of the new document; DOPPEL_REASON_NONE: it is not. */
doppel_reason dp_decide(const dp_rules *rules, const dp_candidate *candidate);

/* 1 for the URL and the same words; the similarity, else 1 - distance/bits; the title similarity, or its mean with the
 * content similarity where that was measured. */
double dp_decide_confidence(const dp_rules *rules, doppel_reason reason, const doppel_evidence *evidence);

/* How similar the two are in what counts for a reason: their titles, else their contents; NaN: not known. */
double dp_decide_similarity(doppel_reason reason, const doppel_evidence *evidence);

/* Whether `a` (that counts by `reason_a`) is a better original than `b`: the stronger kind, the same words before near
 * ones, the more similar (or less distant), the lower number. */
bool dp_decide_stronger(const dp_rules *rules, const dp_candidate *a, doppel_reason reason_a, const dp_candidate *b,
                        doppel_reason reason_b);

/* ---- verdicts: verdict.c ---- */

/* Fills a verdict: flags (known and replaced are cleared), reason, confidence, evidence (NULL: none) and copies of both
 * ids (the document's own, the original's; data NULL: none), which may not be the verdict's own. The verdict's memory
 * is reused. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_verdict_set(doppel_verdict *verdict, const dp_rules *rules, doppel_reason reason,
                             const doppel_evidence *evidence, const doppel_slice ids[2]);
/* Only the ids. */
doppel_status dp_verdict_name(doppel_verdict *verdict, const doppel_slice ids[2]);

/* ---- titles: titles.c ---- */

/* Titles are similar from here on, unless a caller says otherwise. */
#define DP_TITLE_SIMILARITY 0.9

/* Whether a normalised title can be evidence at all: 10 code points, and not a generic one ("breaking news", "page not
 * found", ...). */
bool dp_title_counts(doppel_slice title);
/* Whether a title seen `times` times among `documents` documents is too frequent to be evidence: more than 8 times, and
 * by more than this share of the documents. */
bool dp_title_is_frequent(uint64_t times, uint64_t documents, double share);

/* ---- which one is kept: keep.c ---- */

/* Fields needed from documents, by name. */
enum { DP_MOST_FIELDS = 16, DP_FIELD_NAME = 128 };
typedef struct dp_fields {
    size_t count;
    char name[DP_MOST_FIELDS][DP_FIELD_NAME];
    const char *key[DP_MOST_FIELDS];
} dp_fields;

/* The number of a field, which is added if missing; DP_MOST_FIELDS when there are too many or its name is too long. */
size_t dp_fields_add(dp_fields *fields, const char *name, size_t length);

typedef enum dp_keep_kind {
    DP_KEEP_FIRST,
    DP_KEEP_LAST,
    DP_KEEP_LONGEST,
    DP_KEEP_SHORTEST,
    DP_KEEP_HTTPS,
    DP_KEEP_SHORTEST_URL,
    DP_KEEP_NEWEST,
    DP_KEEP_OLDEST,
    DP_KEEP_LARGEST,
    DP_KEEP_SMALLEST,
    DP_KEEP_ID
} dp_keep_kind;

typedef struct dp_keep_rule {
    dp_keep_kind kind;
    size_t field; /* of dp_fields, for the four that have one */
} dp_keep_rule;

enum { DP_KEEP_RULES = 8 };
typedef struct dp_keep_policy {
    size_t count;
    dp_keep_rule rule[DP_KEEP_RULES];
    bool ids; /* the caller ranks documents by their ids: without it, the rule `id` is refused */
} dp_keep_policy;

/* Rules separated by commas; adds the fields they need. policy->ids is the caller's. Errors: DOPPEL_ERROR_USAGE. */
doppel_status dp_keep_parse(const char *text, dp_keep_policy *policy, dp_fields *fields, doppel_error *error);

/* What a policy looks at in a document. */
typedef struct dp_keep_document {
    doppel_slice url; /* as given; data NULL: none */
    uint64_t text_length;
    const doppel_slice *field; /* by their numbers in dp_fields */
} dp_keep_document;

/* The rank of a document by each rule, policy->count of them: less is better. That of `id` is 0 until all ids are
 * known: the caller fills it in. */
void dp_keep_rank(const dp_keep_policy *policy, const dp_keep_document *document, double *rank);

/* Two documents of a batch: the numbers from dp_keep_rank, and their places in the order of reading. */
typedef struct dp_keep_place {
    const double *rank;
    uint64_t position;
} dp_keep_place;

/* Below 0 when `a` is to be kept rather than `b`, else above 0; positions differ. */
int dp_keep_compare(const dp_keep_policy *policy, const dp_keep_place *a, const dp_keep_place *b);

#endif
