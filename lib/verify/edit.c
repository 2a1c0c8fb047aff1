/* edit.c - edit distances and the similarity 1 - d / max(length), on code points.
 *
 * Equal beginnings and ends cost nothing and are cut off first. A low cut-off goes to banded.c, which stops soon when
 * two texts are unlike; strips.c does the rest. */
#include "verify/banded.h"
#include "verify/strips.h"
#include "verify/verify.h"

#include <stdlib.h>

/* Cuts off what both texts begin and end with, and puts the shorter one first. */
static void trim(dp_points *a, dp_points *b) {
    if (a->count > b->count) {
        dp_points swap = *a;
        *a = *b;
        *b = swap;
    }
    size_t same = 0;
    while (same < a->count && a->data[same] == b->data[same])
        same++;
    *a = (dp_points){a->data + same, a->count - same};
    *b = (dp_points){b->data + same, b->count - same};
    while (a->count && a->data[a->count - 1] == b->data[b->count - 1]) {
        a->count--;
        b->count--;
    }
}

static doppel_status measure(dp_edits edits, dp_points a, dp_points b, size_t max, size_t *distance) {
    trim(&a, &b);
    /* No distance is larger than this; it also keeps max + 1 from wrapping around. */
    size_t most = edits == DP_EDITS_ALL ? b.count : a.count + b.count;
    size_t limit = max < most ? max : most, found = b.count;
    if (b.count - a.count > limit) {
        *distance = limit + 1;
        return DOPPEL_OK;
    }
    doppel_status status = DOPPEL_OK;
    if (a.count && edits == DP_EDITS_ALL && dp_banded_suits(a, limit))
        status = dp_banded_pair(a, b, limit, &found);
    else if (a.count)
        status = dp_strips_distance(edits, a, b, limit, &found);
    if (!status)
        *distance = found <= limit ? found : limit + 1;
    return status;
}

doppel_status dp_levenshtein(dp_points a, dp_points b, size_t max, size_t *distance) {
    return measure(DP_EDITS_ALL, a, b, max, distance);
}

doppel_status dp_indel(dp_points a, dp_points b, size_t max, size_t *distance) {
    return measure(DP_EDITS_INDEL, a, b, max, distance);
}

double dp_edit_similarity(size_t distance, size_t length) {
    return length ? 1 - (double)distance / (double)length : 1;
}

/* Division and subtraction round monotonically, so that the similarity never grows with the distance; the first guess
 * is off by rounding only. */
bool dp_edit_allowed(size_t length, double min, size_t *distance) {
    if (!(dp_edit_similarity(0, length) >= min))
        return false;
    double guess = (1 - min) * (double)length;
    size_t allowed = guess < (double)length ? (size_t)guess : length;
    while (allowed < length && dp_edit_similarity(allowed + 1, length) >= min)
        allowed++;
    while (allowed && dp_edit_similarity(allowed, length) < min)
        allowed--;
    *distance = allowed;
    return true;
}

/* ---- on UTF-8 ---- */

/* Two decoded texts. Short ones need no allocation. */
struct pair {
    dp_points a, b;
    uint32_t *room, here[512];
};

static bool pair_init(struct pair *pair, const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t need = a_length + b_length;
    pair->room = pair->here;
    if (need > sizeof pair->here / sizeof *pair->here)
        pair->room = need < a_length || need > SIZE_MAX / sizeof *pair->room ? NULL : malloc(need * sizeof *pair->room);
    if (!pair->room)
        return false;
    pair->a = (dp_points){pair->room, dp_points_decode(a, a_length, pair->room)};
    uint32_t *rest = pair->room + pair->a.count;
    pair->b = (dp_points){rest, dp_points_decode(b, b_length, rest)};
    return true;
}

static void pair_free(struct pair *pair) {
    if (pair->room != pair->here)
        free(pair->room);
}

doppel_status doppel_levenshtein(const char *a, size_t a_length, const char *b, size_t b_length, size_t max,
                                 size_t *distance) {
    struct pair pair;
    if (!pair_init(&pair, a, a_length, b, b_length))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = dp_levenshtein(pair.a, pair.b, max, distance);
    pair_free(&pair);
    return status;
}

doppel_status doppel_indel(const char *a, size_t a_length, const char *b, size_t b_length, size_t max,
                           size_t *distance) {
    struct pair pair;
    if (!pair_init(&pair, a, a_length, b, b_length))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = dp_indel(pair.a, pair.b, max, distance);
    pair_free(&pair);
    return status;
}

doppel_status doppel_edit_similarity(const char *a, size_t a_length, const char *b, size_t b_length, double min,
                                     double *similarity) {
    struct pair pair;
    if (!pair_init(&pair, a, a_length, b, b_length))
        return DOPPEL_ERROR_MEMORY;
    size_t length = pair.a.count > pair.b.count ? pair.a.count : pair.b.count, allowed, distance;
    doppel_status status = DOPPEL_OK;
    if (!dp_edit_allowed(length, min, &allowed))
        *similarity = 0;
    else if (!(status = dp_levenshtein(pair.a, pair.b, allowed, &distance)))
        *similarity = distance <= allowed ? dp_edit_similarity(distance, length) : 0;
    pair_free(&pair);
    return status;
}
