/* test_decide.c - evidence to verdict: which kind counts, how sure it makes, which document is the better original. */
#include "support.h"

#include "decide/decide.h"

#include <math.h>

static const dp_rules by_similarity = {
    .by_similarity = true, .similarity = 0.8, .distance = 3, .bits = 64, .titles = true, .title_similarity = 0.9};
static const dp_rules with_veto = {
    .by_similarity = true, .similarity = 0.8, .bits = 64, .titles = true, .title_similarity = 0.9, .title_veto = true};
static const dp_rules by_distance = {.distance = 3, .bits = 64, .titles = true, .title_similarity = 0.9};
static const dp_rules no_titles = {.distance = 3, .bits = 64, .title_similarity = 0.9};

/* Evidence as a row of a table: what is NOT_KNOWN is NaN or -1. */
#define NOT_KNOWN (-1)
typedef struct row {
    const dp_rules *rules;
    bool same_url, same_digest;
    int distance;
    double similarity, title_similarity;
    bool content, title;
    doppel_reason reason;
    double confidence;
} row;

static double or_nan(double share) {
    return share < 0 ? (double)NAN : share;
}

static dp_candidate candidate_of(const row *r) {
    dp_candidate c = {.number = 1, .evidence = dp_evidence_none(), .content = r->content, .title = r->title};
    c.evidence.same_url = r->same_url;
    c.evidence.same_digest = r->same_digest;
    c.evidence.distance = r->distance;
    c.evidence.similarity = or_nan(r->similarity);
    c.evidence.title_similarity = or_nan(r->title_similarity);
    c.evidence.verified = r->similarity >= 0;
    return c;
}

static const row rows[] = {
    /* rules, URL, digest, distance, similarity, title; comparable content, title; reason, confidence */
    {&by_similarity, 0, 0, NOT_KNOWN, NOT_KNOWN, NOT_KNOWN, 1, 1, DOPPEL_REASON_NONE, 0},
    {&by_similarity, 1, 0, NOT_KNOWN, NOT_KNOWN, NOT_KNOWN, 0, 0, DOPPEL_REASON_URL, 1},
    {&by_similarity, 1, 1, 0, 1, 1, 1, 1, DOPPEL_REASON_URL, 1},
    {&by_similarity, 0, 1, NOT_KNOWN, NOT_KNOWN, NOT_KNOWN, 0, 0, DOPPEL_REASON_CONTENT, 1},
    {&by_similarity, 0, 1, 0, 1, 0.95, 1, 1, DOPPEL_REASON_CONTENT, 1},
    {&by_similarity, 0, 0, 9, 0.8, 0.99, 1, 1, DOPPEL_REASON_CONTENT, 0.8},
    {&by_similarity, 0, 0, 9, 0.85, NOT_KNOWN, 1, 0, DOPPEL_REASON_CONTENT, 0.85},
    {&by_similarity, 0, 0, 0, 0.79999, NOT_KNOWN, 1, 1, DOPPEL_REASON_NONE, 0},
    {&by_similarity, 0, 0, 9, 0.95, NOT_KNOWN, 0, 1, DOPPEL_REASON_NONE, 0},
    {&by_similarity, 0, 0, 0, NOT_KNOWN, NOT_KNOWN, 1, 1, DOPPEL_REASON_NONE, 0},
    {&by_similarity, 0, 0, 30, 0.1, 0.9, 1, 1, DOPPEL_REASON_TITLE, 0.5},
    {&by_similarity, 0, 0, 30, 0.1, 0.93, 0, 1, DOPPEL_REASON_TITLE, 0.515},
    {&by_similarity, 0, 0, 30, NOT_KNOWN, 0.93, 1, 1, DOPPEL_REASON_TITLE, 0.93},
    {&by_similarity, 0, 0, 30, 0.1, 0.93, 1, 0, DOPPEL_REASON_NONE, 0},
    {&by_similarity, 0, 0, 30, 0.1, 0.89999, 1, 1, DOPPEL_REASON_NONE, 0},
    {&with_veto, 0, 0, 30, 0.39999, 1, 1, 1, DOPPEL_REASON_NONE, 0},
    {&with_veto, 0, 0, 30, 0.39999, 1, 0, 1, DOPPEL_REASON_NONE, 0},
    {&with_veto, 0, 0, 30, 0, 1, 1, 1, DOPPEL_REASON_NONE, 0},
    {&with_veto, 0, 0, 30, 0.4, 1, 1, 1, DOPPEL_REASON_TITLE, 0.7},
    {&with_veto, 0, 0, 30, NOT_KNOWN, 1, 1, 1, DOPPEL_REASON_TITLE, 1},
    {&with_veto, 1, 0, 30, 0.1, 1, 1, 1, DOPPEL_REASON_URL, 1},
    {&with_veto, 0, 1, 0, 0, 1, 1, 1, DOPPEL_REASON_CONTENT, 1},
    {&by_distance, 0, 0, 3, NOT_KNOWN, NOT_KNOWN, 1, 1, DOPPEL_REASON_CONTENT, 61. / 64},
    {&by_distance, 0, 0, 0, NOT_KNOWN, NOT_KNOWN, 1, 1, DOPPEL_REASON_CONTENT, 1},
    {&by_distance, 0, 0, 4, NOT_KNOWN, NOT_KNOWN, 1, 1, DOPPEL_REASON_NONE, 0},
    {&by_distance, 0, 0, 4, 0.99, NOT_KNOWN, 1, 1, DOPPEL_REASON_NONE, 0},
    {&by_distance, 0, 0, 2, NOT_KNOWN, NOT_KNOWN, 0, 1, DOPPEL_REASON_NONE, 0},
    {&by_distance, 0, 0, 2, 0.97, NOT_KNOWN, 1, 1, DOPPEL_REASON_CONTENT, 0.97},
    {&by_distance, 0, 0, 20, NOT_KNOWN, 1, 1, 1, DOPPEL_REASON_TITLE, 1},
    {&no_titles, 0, 0, 20, NOT_KNOWN, 1, 1, 1, DOPPEL_REASON_NONE, 0},
};

static void each_row_has_its_reason(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dp_candidate c = candidate_of(&rows[i]);
        doppel_reason reason = dp_decide(rows[i].rules, &c);
        if (reason != rows[i].reason)
            fail_msg("row %zu: reason %d in place of %d", i, (int)reason, (int)rows[i].reason);
        double confidence = dp_decide_confidence(rows[i].rules, reason, &c.evidence);
        if (fabs(confidence - rows[i].confidence) > 1e-12)
            fail_msg("row %zu: confidence %g in place of %g", i, confidence, rows[i].confidence);
    }
}

/* Confidence is what near content was decided by: the similarity, estimated or verified, or the distance, unless a
 * verified similarity tells more than that. */
static void confidence_is_what_was_decided_by(void **state) {
    (void)state;
    doppel_evidence e = dp_evidence_none();
    assert_true(dp_decide_confidence(&by_similarity, DOPPEL_REASON_CONTENT, &e) == 0);
    e.similarity = 0.9;
    assert_true(dp_decide_confidence(&by_similarity, DOPPEL_REASON_CONTENT, &e) == 0.9);
    e.distance = 16;
    assert_true(dp_decide_confidence(&by_similarity, DOPPEL_REASON_CONTENT, &e) == 0.9);
    assert_true(dp_decide_confidence(&by_distance, DOPPEL_REASON_CONTENT, &e) == 0.75);
    e.verified = true;
    assert_true(dp_decide_confidence(&by_distance, DOPPEL_REASON_CONTENT, &e) == 0.9);
}

/* The similarity that goes with a verdict is that of what was decided by. */
static void similarity_is_of_what_was_decided_by(void **state) {
    (void)state;
    doppel_evidence e = dp_evidence_none();
    e.similarity = 0.25;
    e.title_similarity = 0.95;
    assert_true(dp_decide_similarity(DOPPEL_REASON_TITLE, &e) == 0.95);
    assert_true(dp_decide_similarity(DOPPEL_REASON_CONTENT, &e) == 0.25);
    assert_true(dp_decide_similarity(DOPPEL_REASON_URL, &e) == 0.25);
    e = dp_evidence_none();
    assert_true(isnan(dp_decide_similarity(DOPPEL_REASON_CONTENT, &e)));
}

static void reasons_have_names(void **state) {
    (void)state;
    assert_null(doppel_reason_name(DOPPEL_REASON_NONE));
    assert_string_equal(doppel_reason_name(DOPPEL_REASON_URL), "exact_url");
    assert_string_equal(doppel_reason_name(DOPPEL_REASON_CONTENT), "content_hash");
    assert_string_equal(doppel_reason_name(DOPPEL_REASON_TITLE), "title_similarity");
    assert_null(doppel_reason_name(DOPPEL_REASONS));
}

static void reasons_have_an_order(void **state) {
    (void)state;
    static const doppel_reason order[DOPPEL_REASONS] = {DOPPEL_REASON_URL, DOPPEL_REASON_CONTENT, DOPPEL_REASON_TITLE,
                                                        DOPPEL_REASON_NONE};
    for (int i = 0; i < DOPPEL_REASONS; i++)
        for (int j = 0; j < DOPPEL_REASONS; j++)
            assert_int_equal(dp_reason_stronger(order[i], order[j]), i < j);
}

static void reasons_have_counters(void **state) {
    (void)state;
    assert_int_equal(dp_reason_counter(DOPPEL_REASON_URL), 0);
    assert_int_equal(dp_reason_counter(DOPPEL_REASON_CONTENT), 1);
    assert_int_equal(dp_reason_counter(DOPPEL_REASON_TITLE), 2);
}

/* ---- which is the better original ---- */

/* From the best on: each is stronger than all behind it. */
static void check_order(const dp_rules *rules, const dp_candidate *order, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            doppel_reason a = dp_decide(rules, &order[i]), b = dp_decide(rules, &order[j]);
            if (dp_decide_stronger(rules, &order[i], a, &order[j], b) != (i < j))
                fail_msg("%zu against %zu", i, j);
        }
}

static dp_candidate near_by(uint64_t number, int distance, double similarity) {
    dp_candidate c = {.number = number, .evidence = dp_evidence_none(), .content = true, .title = true};
    c.evidence.distance = distance;
    c.evidence.similarity = or_nan(similarity);
    c.evidence.verified = similarity >= 0;
    return c;
}

static dp_candidate with(dp_candidate c, bool same_url, bool same_digest, double title) {
    c.evidence.same_url = same_url;
    c.evidence.same_digest = same_digest;
    c.evidence.title_similarity = or_nan(title);
    return c;
}

static void kinds_are_ordered_by_strength(void **state) {
    (void)state;
    dp_candidate order[] = {
        with(near_by(90, 30, 0.1), true, false, NOT_KNOWN),  /* the URL, whatever the text */
        with(near_by(80, 0, 1), false, true, NOT_KNOWN),     /* the same words */
        with(near_by(70, 2, 0.95), false, false, NOT_KNOWN), /* near */
        with(near_by(60, 30, 0.1), false, false, 1),         /* the title */
        near_by(10, 30, 0.1),                                /* nothing */
    };
    check_order(&by_similarity, order, sizeof order / sizeof *order);
    check_order(&by_distance, order, sizeof order / sizeof *order);
}

static void the_nearer_is_stronger_then_the_earlier(void **state) {
    (void)state;
    dp_candidate by_set[] = {near_by(9, 9, 0.99), near_by(2, 3, 0.9), near_by(5, 1, 0.9), near_by(1, 0, 0.85)};
    check_order(&by_similarity, by_set, sizeof by_set / sizeof *by_set);
    dp_candidate by_bits[] = {near_by(9, 0, 0.5), near_by(2, 2, NOT_KNOWN), near_by(5, 2, NOT_KNOWN),
                              near_by(1, 3, NOT_KNOWN)};
    check_order(&by_distance, by_bits, sizeof by_bits / sizeof *by_bits);
    dp_candidate far = near_by(0, 30, 0.1);
    dp_candidate by_title[] = {with(far, 0, 0, 1), with(far, 0, 0, 0.95), with(far, 0, 0, 0.95)};
    by_title[0].number = 8, by_title[1].number = 3, by_title[2].number = 4;
    check_order(&by_distance, by_title, sizeof by_title / sizeof *by_title);
}

/* The same words are nearer than the same features; of the same words the first counts. */
static void the_same_words_are_nearest(void **state) {
    (void)state;
    dp_candidate order[] = {with(near_by(7, 0, 1), false, true, NOT_KNOWN),
                            with(near_by(8, NOT_KNOWN, NOT_KNOWN), false, true, NOT_KNOWN), near_by(1, 0, 1)};
    check_order(&by_similarity, order, sizeof order / sizeof *order);
    check_order(&by_distance, order, sizeof order / sizeof *order);
}

/* Of several with the same URL, the nearest; what is not known is farthest. */
static void unknown_is_farthest(void **state) {
    (void)state;
    dp_candidate order[] = {with(near_by(7, 20, 0.3), true, false, NOT_KNOWN),
                            with(near_by(2, NOT_KNOWN, NOT_KNOWN), true, false, NOT_KNOWN),
                            with(near_by(3, NOT_KNOWN, NOT_KNOWN), true, false, NOT_KNOWN)};
    check_order(&by_similarity, order, sizeof order / sizeof *order);
    check_order(&by_distance, order, sizeof order / sizeof *order);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_has_its_reason),
        cmocka_unit_test(confidence_is_what_was_decided_by),
        cmocka_unit_test(similarity_is_of_what_was_decided_by),
        cmocka_unit_test(reasons_have_names),
        cmocka_unit_test(reasons_have_an_order),
        cmocka_unit_test(reasons_have_counters),
        cmocka_unit_test(kinds_are_ordered_by_strength),
        cmocka_unit_test(the_nearer_is_stronger_then_the_earlier),
        cmocka_unit_test(the_same_words_are_nearest),
        cmocka_unit_test(unknown_is_farthest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
