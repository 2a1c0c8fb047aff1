/* bands.h - bands of signatures: how many for a threshold, and the keys of a document's bands.
 *
 * A signature of bands * rows slots (docs/FORMAT.md section 5) agrees in a slot with probability J, the similarity, so
 * two documents share some band with probability 1 - (1 - J^rows)^bands. A band's rows are hashed to 32 bits: documents
 * that share a key by chance are told apart when they are verified. */
#ifndef DP_BANDS_H
#define DP_BANDS_H

#include "base/base.h"

enum { DP_MOST_BANDS = 64, DP_MOST_SLOTS = 1024 };

/* Rows and bands for a threshold, where they are 0; false when they were given and make no sense. */
bool dp_bands_plan(double similarity, int *bands, int *rows);
/* The share of pairs of a similarity that so many bands find. */
double dp_bands_recall(double similarity, int bands, int rows);
/* The keys of a document's bands, `bands` of them, from its features. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_bands_keys(const uint64_t *set, size_t count, int bands, int rows, uint32_t *keys);

#endif
