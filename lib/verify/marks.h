/* marks.h - a set of numbers below a limit that answers "the next one from here on" in a few steps, however many there
 * are. Inside lib/verify only. */
#ifndef DP_MARKS_H
#define DP_MARKS_H

#include "base/base.h"

/* Level 0 has a bit for each number; a bit of a higher level says that the 64 below it are not all zero. Six levels of
 * 64 reach 2^36 numbers. */
#define DP_MARKS_LEVELS 6
typedef struct dp_marks {
    uint64_t *levels[DP_MARKS_LEVELS];
    size_t limit, depth;
} dp_marks;

/* An empty set, or one of all numbers below the limit. Gives false when there is no memory (free it even then). */
bool dp_marks_init(dp_marks *marks, size_t limit, bool full);
void dp_marks_free(dp_marks *marks);

void dp_marks_add(dp_marks *marks, size_t number);
void dp_marks_remove(dp_marks *marks, size_t number);

/* The smallest number in the set that is not below `number`; the limit when there is none. */
size_t dp_marks_next(const dp_marks *marks, size_t number);

#endif
