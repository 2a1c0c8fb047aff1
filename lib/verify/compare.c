/* compare.c - every measure on two texts: sketch both, then measure their fingerprints, sets, signatures, word counts
 * and normalised texts. */
#include "kernel/kernel.h"
#include "sketch/sketch.h"
#include "verify/verify.h"

#include <math.h>
#include <stdlib.h>

/* Slots of the signatures: a standard deviation of the estimate of at most sqrt(1/4 / 128) = 0.044. */
#define SLOTS 128

/* Cells of the table of an edit distance that are computed at most: both distances take about a second. Longer texts
 * are measured as long as they need no more edits than a band of that size allows. */
#define MOST_CELLS ((uint64_t)1 << 34)

/* One text, sketched. */
struct sketched_text {
    doppel_sketcher *sketcher;
    doppel_sketch sketch;
    uint32_t signature[SLOTS];
    doppel_term *terms;
    size_t term_count;
    uint32_t *points;
    size_t point_count;
};

/* Counts the words of the normalised text. */
static bool count_words(struct sketched_text *side) {
    const char *text = side->sketch.text.length ? side->sketch.text.data : "", *end = text + side->sketch.text.length;
    uint64_t *hashes = NULL;
    size_t count = 0, capacity = 0;
    while (text < end) {
        const char *space = memchr(text, ' ', (size_t)(end - text)), *stop = space ? space : end;
        if (!dp_reserve(&hashes, &capacity, count + 1, sizeof *hashes))
            break;
        hashes[count++] = dp_hash_mix(dp_hash_word((const uint8_t *)text, (size_t)(stop - text)));
        text = space ? space + 1 : end;
    }
    if (text == end && (side->terms = malloc((count + 1) * sizeof *side->terms)))
        side->term_count = doppel_terms(hashes, count, side->terms);
    free(hashes);
    return side->terms != NULL;
}

static bool decode(struct sketched_text *side) {
    side->points = malloc((side->sketch.text.length + 1) * sizeof *side->points);
    if (side->points)
        side->point_count = dp_points_decode(side->sketch.text.data, side->sketch.text.length, side->points);
    return side->points != NULL;
}

static doppel_status side_init(struct sketched_text *side, const doppel_recipe *recipe, const char *text,
                               size_t length) {
    unsigned wants = DOPPEL_WANT_DIGEST | DOPPEL_WANT_SET | DOPPEL_WANT_TEXT;
    doppel_status status = doppel_sketcher_create(recipe, wants, &side->sketcher, NULL);
    DP_THEN(status, doppel_sketcher_run(side->sketcher, (doppel_slice){text, length}, &side->sketch));
    DP_THEN(status, doppel_minhash(side->sketch.set, side->sketch.set_count, SLOTS, side->signature));
    if (!status && (!count_words(side) || !decode(side)))
        status = DOPPEL_ERROR_MEMORY;
    return status;
}

static void side_free(struct sketched_text *side) {
    doppel_sketcher_free(side->sketcher);
    free(side->terms);
    free(side->points);
}

/* ---- measures ---- */

static void compare_fingerprints(const doppel_sketch *a, const doppel_sketch *b, doppel_comparison *out) {
    memcpy(out->fingerprint_a, a->fingerprint, sizeof out->fingerprint_a);
    memcpy(out->fingerprint_b, b->fingerprint, sizeof out->fingerprint_b);
    out->distance = a->words && b->words ? doppel_distance128(a->fingerprint, b->fingerprint) : -1;
    out->words_a = a->words;
    out->words_b = b->words;
    memcpy(out->digest_a, a->digest, sizeof out->digest_a);
    memcpy(out->digest_b, b->digest, sizeof out->digest_b);
    out->same_digest = a->words && b->words && !memcmp(a->digest, b->digest, sizeof a->digest);
}

static void compare_sets(const struct sketched_text *a, const struct sketched_text *b, doppel_comparison *out) {
    size_t in_a = a->sketch.set_count, in_b = b->sketch.set_count;
    size_t shared = doppel_set_shared(a->sketch.set, in_a, b->sketch.set, in_b), all = in_a + in_b - shared;
    out->shingles_a = in_a;
    out->shingles_b = in_b;
    out->shingles_shared = shared;
    out->similarity = all ? (double)shared / (double)all : 1;
    out->containment_ab = in_a ? (double)shared / (double)in_a : (double)NAN;
    out->containment_ba = in_b ? (double)shared / (double)in_b : (double)NAN;
    out->signature_similarity =
        in_a && in_b ? doppel_signature_jaccard(a->signature, b->signature, SLOTS) : (double)NAN;
}

static void compare_counts(const struct sketched_text *a, const struct sketched_text *b, doppel_comparison *out) {
    out->cosine = doppel_cosine(a->terms, a->term_count, b->terms, b->term_count);
    out->angle = doppel_angle(a->terms, a->term_count, b->terms, b->term_count);
    out->euclidean = doppel_euclidean(a->terms, a->term_count, b->terms, b->term_count);
}

/* How many code points two texts have at their start, and then at their end, that cost no edits. */
static size_t common_ends(const struct sketched_text *a, const struct sketched_text *b) {
    size_t shorter = a->point_count < b->point_count ? a->point_count : b->point_count, start = 0, end = 0;
    while (start < shorter && a->points[start] == b->points[start])
        start++;
    while (end < shorter - start && a->points[a->point_count - 1 - end] == b->points[b->point_count - 1 - end])
        end++;
    return start + end;
}

/* How many edits are measured: a table of this many columns around its diagonal has no more than MOST_CELLS. */
static size_t most_edits(const struct sketched_text *a, const struct sketched_text *b) {
    size_t common = common_ends(a, b);
    size_t shorter = (a->point_count < b->point_count ? a->point_count : b->point_count) - common;
    size_t longer = (a->point_count < b->point_count ? b->point_count : a->point_count) - common;
    return shorter && longer > MOST_CELLS / shorter ? MOST_CELLS / shorter : SIZE_MAX;
}

static doppel_status compare_edits(const struct sketched_text *a, const struct sketched_text *b,
                                   doppel_comparison *out) {
    out->edit_distance = out->indel_distance = -1;
    out->edit_similarity = (double)NAN;
    dp_points points_a = {a->points, a->point_count}, points_b = {b->points, b->point_count};
    size_t distance, indel, longer = a->point_count > b->point_count ? a->point_count : b->point_count;
    size_t most = most_edits(a, b);
    doppel_status status = dp_indel(points_a, points_b, most, &indel);
    if (status || indel > most)
        return status;
    status = dp_levenshtein(points_a, points_b, indel, &distance); /* it is no larger */
    if (status)
        return status;
    out->edit_distance = (int64_t)distance;
    out->indel_distance = (int64_t)indel;
    out->edit_similarity = dp_edit_similarity(distance, longer);
    return DOPPEL_OK;
}

doppel_status doppel_compare(const doppel_recipe *recipe, doppel_slice a, doppel_slice b, doppel_comparison *out) {
    struct sketched_text side_a = {0}, side_b = {0};
    if (!recipe)
        recipe = dp_recipe_default();
    doppel_status status = side_init(&side_a, recipe, a.data, a.length);
    DP_THEN(status, side_init(&side_b, recipe, b.data, b.length));
    if (!status) {
        *out = (doppel_comparison){.bits = recipe->bits};
        compare_fingerprints(&side_a.sketch, &side_b.sketch, out);
        compare_sets(&side_a, &side_b, out);
        compare_counts(&side_a, &side_b, out);
        status = compare_edits(&side_a, &side_b, out);
    }
    side_free(&side_a);
    side_free(&side_b);
    return status;
}
