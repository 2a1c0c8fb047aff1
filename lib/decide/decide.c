/* decide.c - evidence to verdict: which kind of evidence counts, how sure it makes, and which of two documents is the
 * better original. */
#include "decide/decide.h"

#include <math.h>

/* ---- reasons ---- */

static const struct {
    const char *name;
    int rank; /* less is stronger */
    size_t counter;
} reasons[DP_REASONS] = {
    [DP_SAME_URL] = {"exact_url", 0, 0},
    [DP_SAME_CONTENT] = {"content_hash", 1, 1},
    [DP_SAME_TITLE] = {"title_similarity", 2, 2},
    [DP_UNIQUE] = {NULL, 3, DP_COUNTERS},
};

const char *dp_reason_name(dp_reason reason) {
    return reasons[reason].name;
}

dp_reason dp_reason_of(const char *name) {
    for (int i = DP_SAME_URL; i < DP_REASONS; i++)
        if (name && !strcmp(name, dp_reason_name((dp_reason)i)))
            return (dp_reason)i;
    return DP_UNIQUE;
}

bool dp_reason_stronger(dp_reason a, dp_reason b) {
    return reasons[a].rank < reasons[b].rank;
}

size_t dp_reason_counter(dp_reason reason) {
    return reasons[reason].counter;
}

/* ---- one document against another ---- */

doppel_evidence dp_evidence_none(void) {
    return (doppel_evidence){.distance = -1, .similarity = NAN, .containment = NAN, .title_similarity = NAN};
}

/* What is not known, NaN or -1, is never near. */
static bool is_near(const dp_rules *rules, const doppel_evidence *evidence) {
    if (rules->by_similarity)
        return evidence->similarity >= rules->similarity;
    return evidence->distance >= 0 && evidence->distance <= rules->distance;
}

/* Whether the contents are so unlike that a similar title says nothing. What was not measured (NaN) vetoes nothing. */
static bool is_vetoed(const dp_rules *rules, const doppel_evidence *evidence) {
    return rules->title_veto && rules->by_similarity && evidence->similarity < rules->similarity / 2;
}

dp_reason dp_decide(const dp_rules *rules, const dp_candidate *candidate) {
    const doppel_evidence *evidence = &candidate->evidence;
    if (evidence->same_url)
        return DP_SAME_URL;
    if (evidence->same_digest || (candidate->content && is_near(rules, evidence)))
        return DP_SAME_CONTENT;
    if (rules->titles && candidate->title && evidence->title_similarity >= rules->title_similarity &&
        !is_vetoed(rules, evidence))
        return DP_SAME_TITLE;
    return DP_UNIQUE;
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

double dp_decide_confidence(const dp_rules *rules, dp_reason reason, const doppel_evidence *evidence) {
    switch (reason) {
    case DP_UNIQUE: return 0;
    case DP_SAME_URL: return 1;
    case DP_SAME_CONTENT: return evidence->same_digest ? 1 : content_confidence(rules, evidence);
    case DP_SAME_TITLE: return title_confidence(evidence);
    }
    return 0;
}

double dp_decide_similarity(dp_reason reason, const doppel_evidence *evidence) {
    return reason == DP_SAME_TITLE ? evidence->title_similarity : evidence->similarity;
}

/* Less is nearer; what is not known is farthest. */
static double farness(const dp_rules *rules, dp_reason reason, const doppel_evidence *evidence) {
    double similarity = dp_decide_similarity(reason, evidence);
    if (reason != DP_SAME_TITLE && !rules->by_similarity)
        return evidence->distance < 0 ? INFINITY : (double)evidence->distance;
    return isnan(similarity) ? INFINITY : -similarity;
}

bool dp_decide_stronger(const dp_rules *rules, const dp_candidate *a, dp_reason reason_a, const dp_candidate *b,
                        dp_reason reason_b) {
    if (reason_a != reason_b)
        return dp_reason_stronger(reason_a, reason_b);
    if (a->evidence.same_digest != b->evidence.same_digest)
        return a->evidence.same_digest;
    double far_a = farness(rules, reason_a, &a->evidence), far_b = farness(rules, reason_b, &b->evidence);
    return far_a != far_b ? far_a < far_b : a->number < b->number;
}
