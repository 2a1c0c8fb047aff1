/* banded.h - Levenshtein of one prepared text with others, near ones only. Inside lib/verify and for title indexes. */
#ifndef DP_BANDED_H
#define DP_BANDED_H

#include "kernel/kernel.h"
#include "verify/symbols.h"
#include "verify/verify.h"

/* Code points of 1, 2 or 4 bytes each. */
typedef struct dp_packed {
    const char *data;
    size_t count;
    unsigned width;
} dp_packed;

/* Lengths up to this many above the prepared text's have their allowed distance in a table. */
#define DP_BANDED_AHEAD 64

typedef struct dp_banded {
    dp_points text; /* borrowed */
    double min;
    size_t allowed[DP_BANDED_AHEAD]; /* at each length from text.count on */
    dp_symbols symbols;
    uint8_t *strings; /* of bits, for each symbol: where it stands in the text (kernel.h); NULL: the text is too long */
    size_t stride;    /* bytes from one string to the next */
    uint32_t string_of[DP_SYMBOLS_LOW];
    uint32_t *room;
    size_t room_capacity;
} dp_banded;

/* `min` is at most 1. Errors: DOPPEL_ERROR_MEMORY (free it even then). */
doppel_status dp_banded_init(dp_banded *banded, dp_points text, double min);
void dp_banded_free(dp_banded *banded);

/* Whether a text of this length can be similar enough. */
bool dp_banded_fits(const dp_banded *banded, size_t length);

/* The distance of two texts, or k + 1 when it is above k, for pairs that suit: k is at least the difference of the
 * lengths and not large, and the first text is not long. Errors: DOPPEL_ERROR_MEMORY. */
bool dp_banded_suits(dp_points rows, size_t k);
doppel_status dp_banded_pair(dp_points rows, dp_points columns, size_t k, size_t *distance);

/* The similarity to each of up to DP_WALKS texts, whose lengths fit; -1 when it is below min.
 * Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_banded_measure(dp_banded *banded, const dp_packed *texts, size_t count, double *similarities);

#endif
