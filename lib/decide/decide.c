/* decide.c - evidence to verdict: which kind of evidence counts, its confidence, and which of two documents is the
 * better original. */
#include "decide/decide.h"

#include <math.h>

/* ---- reasons ---- */

static const struct {
    const char *name;
    int rank; /* less is stronger */
    size_t counter;
} reasons[DOPPEL_REASONS] = {
    [DOPPEL_REASON_URL] = {"exact_url", 0, 0},
    [DOPPEL_REASON_CONTENT] = {"content_hash", 1, 1},
    [DOPPEL_REASON_TITLE] = {"title_similarity", 2, 2},
    [DOPPEL_REASON_NONE] = {NULL, 3, DP_COUNTERS},
};

const char *doppel_reason_name(doppel_reason reason) {
    return (unsigned)reason < DOPPEL_REASONS ? reasons[reason].name : NULL;
}

bool dp_reason_stronger(doppel_reason a, doppel_reason b) {
    return reasons[a].rank < reasons[b].rank;
}

size_t dp_reason_counter(doppel_reason reason) {
    return reasons[reason].counter;
}

/* ---- one document against another ---- */

doppel_evidence dp_evidence_none(void) {
    return (doppel_evidence){.distance = -1, .similarity = NAN, .containment = NAN, .title_similarity = NAN};
}

/* Unknown values, NaN or -1, are never near. */
static bool is_near(const dp_rules *rules, const doppel_evidence *evidence) {
    if (rules->by_similarity)
        return evidence->similarity >= rules->similarity;
    return evidence->distance >= 0 && evidence->distance <= rules->distance;
}

/* Whether the contents are so different that a similar title does not count. Unmeasured contents (NaN) veto nothing. */
static bool is_vetoed(const dp_rules *rules, const doppel_evidence *evidence) {
    return rules->title_veto && rules->by_similarity && evidence->similarity < rules->similarity / 2;
}

doppel_reason dp_decide(const dp_rules *rules, const dp_candidate *candidate) {
    const doppel_evidence *evidence = &candidate->evidence;
    if (evidence->same_url)
        return DOPPEL_REASON_URL;
    if (evidence->same_digest || (candidate->content && is_near(rules, evidence)))
        return DOPPEL_REASON_CONTENT;
    if (rules->titles && candidate->title && evidence->title_similarity >= rules->title_similarity &&
        !is_vetoed(rules, evidence))
        return DOPPEL_REASON_TITLE;
    return DOPPEL_REASON_NONE;
}

/* Of content that is near but not the same. */
static double content_confidence(const dp_rules *rules, const doppel_evidence *evidence) {
    if (!isnan(evidence->similarity) && (rules->by_similarity || evidence->verified || evidence->distance < 0))
        return evidence->similarity;
    return evidence->distance < 0 ? 0 : 1 - (double)evidence->distance / rules->bits;
}

/* Of a similar title. By distance nothing is measured on the contents that would be comparable. */
static double title_confidence(const doppel_evidence *evidence) {
    if (isnan(evidence->similarity))
        return evidence->title_similarity;
    return (evidence->title_similarity + evidence->similarity) / 2;
}

double dp_decide_confidence(const dp_rules *rules, doppel_reason reason, const doppel_evidence *evidence) {
    switch (reason) {
    case DOPPEL_REASON_NONE:
    case DOPPEL_REASONS: return 0;
    case DOPPEL_REASON_URL: return 1;
    case DOPPEL_REASON_CONTENT: return evidence->same_digest ? 1 : content_confidence(rules, evidence);
    case DOPPEL_REASON_TITLE: return title_confidence(evidence);
    }
    return 0;
}

double dp_decide_similarity(doppel_reason reason, const doppel_evidence *evidence) {
    return reason == DOPPEL_REASON_TITLE ? evidence->title_similarity : evidence->similarity;
}

/* Less is nearer; unknown is farthest. */
static double farness(const dp_rules *rules, doppel_reason reason, const doppel_evidence *evidence) {
    double similarity = dp_decide_similarity(reason, evidence);
    if (reason != DOPPEL_REASON_TITLE && !rules->by_similarity)
        return evidence->distance < 0 ? INFINITY : (double)evidence->distance;
    return isnan(similarity) ? INFINITY : -similarity;
}

bool dp_decide_stronger(const dp_rules *rules, const dp_candidate *a, doppel_reason reason_a, const dp_candidate *b,
                        doppel_reason reason_b) {
    if (reason_a != reason_b)
        return dp_reason_stronger(reason_a, reason_b);
    if (a->evidence.same_digest != b->evidence.same_digest)
        return a->evidence.same_digest;
    double far_a = farness(rules, reason_a, &a->evidence), far_b = farness(rules, reason_b, &b->evidence);
    return far_a != far_b ? far_a < far_b : a->number < b->number;
}
