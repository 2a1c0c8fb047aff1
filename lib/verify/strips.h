/* strips.h - an edit distance of two texts of any length, by strips of the table. Inside lib/verify only. */
#ifndef DP_STRIPS_H
#define DP_STRIPS_H

#include "verify/verify.h"

typedef enum dp_edits { DP_EDITS_ALL, DP_EDITS_INDEL } dp_edits;

/* The distance, or any number above `max` when it is above that. `rows` is not empty and not longer than `columns`, and
 * `max` is at least the difference of the two lengths, at most their sum. */
doppel_status dp_strips_distance(dp_edits edits, dp_points rows, dp_points columns, size_t max, size_t *distance);

#endif
