/* verify.h - how near two things really are: measures on sets, signatures, term vectors and texts (doppel.h, section
 * 6), and what later stages need of their inner parts: code points, edit distances on them, prepared titles. */
#ifndef DP_VERIFY_H
#define DP_VERIFY_H

#include "base/base.h"

/* ---- code points ---- */

typedef struct dp_points {
    const uint32_t *data;
    size_t count;
} dp_points;

/* Decodes UTF-8 into `points`, which has space for `length` of them; returns how many there are. Each maximal invalid
 * sequence (Unicode section 3.9) becomes one U+FFFD. */
size_t dp_points_decode(const char *text, size_t length, uint32_t *points);

/* ---- edit distances ---- */

/* The distance of two texts, or max + 1 when it is above `max`. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_levenshtein(dp_points a, dp_points b, size_t max, size_t *distance);
doppel_status dp_indel(dp_points a, dp_points b, size_t max, size_t *distance);

/* 1 - distance / length, as every comparison with a threshold computes it; 1 for length 0. */
double dp_edit_similarity(size_t distance, size_t length);

/* Sets *distance to the largest distance whose similarity, at this length of the longer text, is at least `min`; false
 * when there is none. */
bool dp_edit_allowed(size_t length, double min, size_t *distance);

/* ---- one title against many ---- */

/* The letter counts of a text: 31 counters of letters and one of the length, cut off at 255. The sum of absolute
 * differences of two texts' counts is at most twice their Levenshtein distance (edit.c). */
void dp_title_letters(dp_points text, uint8_t letters[32]);

/* ---- samples of sets: bottom.c ---- */

/* Adds the sample of at most `most` of a set's hashes (ascending, distinct) to a buffer; false: out of memory. */
bool dp_bottom_make(const uint64_t *set, size_t count, size_t most, dp_buffer *to);
/* Whether bytes are a sample: the calls below take no others. */
bool dp_bottom_is_valid(doppel_slice sample);
/* How many hashes the whole set has. */
size_t dp_bottom_count(doppel_slice sample);
/* How many bits its values have lost. Two samples are compared at the coarser of their scales. */
int dp_bottom_scale(doppel_slice sample);
/* Its distinct values, ascending, with `lost` further bits lost; returns how many there are. `to` may be NULL. */
size_t dp_bottom_values(doppel_slice sample, int lost, uint64_t *to);
/* The estimated Jaccard similarity of two sets by their samples, made with the same `most`. */
double dp_bottom_similarity(doppel_slice a, doppel_slice b, size_t most);
/* And from that, the share of a's hashes that b has. */
double dp_bottom_containment(doppel_slice a, doppel_slice b, double similarity);

#endif
