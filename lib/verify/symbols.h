/* symbols.h - numbers the distinct code points of a text from 1, so that tables about them can be plain arrays. Inside
 * lib/verify only. */
#ifndef DP_SYMBOLS_H
#define DP_SYMBOLS_H

#include "verify/verify.h"

/* Code points below this have a table of their own; most texts need nothing else. */
#define DP_SYMBOLS_LOW 256

typedef struct dp_symbols {
    uint32_t low[DP_SYMBOLS_LOW];
    dp_hashmap high; /* of the others */
    uint32_t count;  /* of distinct code points */
} dp_symbols;

/* Numbers the code points of `text` in order of appearance; false when there is no memory. */
bool dp_symbols_init(dp_symbols *symbols, dp_points text);
void dp_symbols_free(dp_symbols *symbols);

/* The number of a code point; 0 when the text does not have it. */
static inline uint32_t dp_symbols_find(const dp_symbols *symbols, uint32_t point) {
    return point < DP_SYMBOLS_LOW ? symbols->low[point] : (uint32_t)dp_hashmap_find(&symbols->high, point);
}

#endif
