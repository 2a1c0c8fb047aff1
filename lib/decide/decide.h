/* decide.h - evidence to verdict: pure arithmetic, no store and no document.
 *
 * For each document that came up: dp_decide says by which kind of evidence it counts, dp_decide_stronger which of two
 * is the better original. doppel_verdict_json (doppel.h) prints what came out. */
#ifndef DP_DECIDE_H
#define DP_DECIDE_H

#include "base/base.h"

/* In the order of their strength; also the order of `duplicates_by` and `verdicts_by`. */
typedef enum dp_reason { DP_UNIQUE, DP_SAME_URL, DP_SAME_CONTENT, DP_SAME_TITLE } dp_reason;
enum { DP_REASONS = 4 };

/* "exact_url", "content_hash", "title_similarity"; NULL for DP_UNIQUE. */
const char *dp_reason_name(dp_reason reason);
/* And back; DP_UNIQUE: it is none of them. */
dp_reason dp_reason_of(const char *name);

typedef struct dp_rules {
    bool by_similarity; /* else by distance */
    double similarity;
    int distance, bits;
    bool titles;
    double title_similarity;
    bool title_veto; /* by similarity: a content similarity below half of `similarity` outweighs a title */
} dp_rules;

/* One document that came up, and what was measured. */
typedef struct dp_candidate {
    uint64_t number;
    doppel_evidence evidence;
    bool content; /* fingerprints or sets may be compared: both have words enough */
    bool title;   /* the title may be compared: long enough, not everywhere */
} dp_candidate;

/* Evidence about which nothing is known. */
doppel_evidence dp_evidence_none(void);

/* By what it is an original of the new document; DP_UNIQUE: it is not. */
dp_reason dp_decide(const dp_rules *rules, const dp_candidate *candidate);

/* 1 for the URL and the same words; the similarity, else 1 - distance/bits; the title similarity, or its mean with the
 * content similarity where that was measured. */
double dp_decide_confidence(const dp_rules *rules, dp_reason reason, const doppel_evidence *evidence);

/* Whether `a` (that counts by `reason_a`) is a better original than `b`: the stronger kind, the same words before near
 * ones, the more similar (or less distant), the lower number. */
bool dp_decide_stronger(const dp_rules *rules, const dp_candidate *a, dp_reason reason_a, const dp_candidate *b,
                        dp_reason reason_b);

/* Fills a verdict: flags (known and replaced are cleared), reason, confidence, evidence (NULL: none) and copies of both
 * ids (the document's own, the original's; data NULL: none), which may not be the verdict's own. Memory that the
 * verdict holds is used again. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_verdict_set(doppel_verdict *verdict, const dp_rules *rules, dp_reason reason,
                             const doppel_evidence *evidence, const doppel_slice ids[2]);
/* Only the ids. */
doppel_status dp_verdict_name(doppel_verdict *verdict, const doppel_slice ids[2]);

#endif
