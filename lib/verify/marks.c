/* marks.c - a set of numbers with a fast "next one": bits, bits about words of bits, and so on. */
#include "verify/marks.h"

#include <stdlib.h>

bool dp_marks_init(dp_marks *marks, size_t limit, bool full) {
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

void dp_marks_free(dp_marks *marks) {
    for (size_t level = 0; level < marks->depth; level++)
        free(marks->levels[level]);
    marks->depth = 0;
}

void dp_marks_add(dp_marks *marks, size_t number) {
    for (size_t level = 0; level < marks->depth; level++, number /= 64)
        marks->levels[level][number / 64] |= (uint64_t)1 << number % 64;
}

void dp_marks_remove(dp_marks *marks, size_t number) {
    for (size_t level = 0; level < marks->depth; level++, number /= 64)
        if (marks->levels[level][number / 64] &= ~((uint64_t)1 << number % 64))
            break;
}

size_t dp_marks_next(const dp_marks *marks, size_t number) {
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
