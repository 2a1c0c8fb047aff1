/* marks.h - a set of numbers below a limit that answers "the next one from here on" in a few steps, however many there
 * are. Inside lib/verify only. */
#ifndef DP_MARKS_H
#define DP_MARKS_H

#include "base/base.h"

#include <stdlib.h>

/* Level 0 has a bit for each number; a bit of a higher level says that the 64 below it are not all zero. Six levels of
 * 64 reach 2^36 numbers. */
#define DP_MARKS_LEVELS 6
typedef struct dp_marks {
    uint64_t *levels[DP_MARKS_LEVELS];
    size_t limit, depth;
} dp_marks;

/* An empty set, or one of all numbers below the limit. Returns false when out of memory (free it even then). */
static inline bool dp_marks_init(dp_marks *marks, size_t limit, bool full) {
    *marks = (dp_marks){.limit = limit};
    for (size_t bits = limit; marks->depth < DP_MARKS_LEVELS; bits = (bits + 63) / 64) {
        /* One word more than there must be, so that a step past the last bit still reads a zero. */
        uint64_t *level = calloc(bits / 64 + 1, sizeof *level);
        if (!level)
            return false;
        marks->levels[marks->depth++] = level;
        for (size_t i = 0; full && i < bits; i += 64)
            level[i / 64] = bits - i < 64 ? ((uint64_t)1 << (bits - i)) - 1 : ~(uint64_t)0;
        if (bits <= 64)
            break;
    }
    return true;
}

static inline void dp_marks_free(dp_marks *marks) {
    for (size_t level = 0; level < marks->depth; level++)
        free(marks->levels[level]);
    marks->depth = 0;
}

static inline void dp_marks_add(dp_marks *marks, size_t number) {
    for (size_t level = 0; level < marks->depth; level++, number /= 64)
        marks->levels[level][number / 64] |= (uint64_t)1 << number % 64;
}

static inline void dp_marks_remove(dp_marks *marks, size_t number) {
    for (size_t level = 0; level < marks->depth; level++, number /= 64)
        if (marks->levels[level][number / 64] &= ~((uint64_t)1 << number % 64))
            break;
}

/* The smallest number in the set that is not below `number`; the limit when there is none. */
static inline size_t dp_marks_next(const dp_marks *marks, size_t number) {
    size_t bits = marks->limit;
    for (size_t level = 0; level < marks->depth && number < bits; level++, bits = (bits + 63) / 64) {
        uint64_t rest = marks->levels[level][number / 64] & ~(uint64_t)0 << number % 64;
        if (!rest) {
            number = number / 64 + 1;
            continue;
        }
        number = number / 64 * 64 + (size_t)__builtin_ctzll(rest);
        while (level--)
            number = number * 64 + (size_t)__builtin_ctzll(marks->levels[level][number]);
        return number;
    }
    return marks->limit;
}

#endif
