/* symbols.h - numbers the distinct code points of a text from 1, so that tables about them can be plain arrays. Inside
 * lib/verify only. */
#ifndef DP_SYMBOLS_H
#define DP_SYMBOLS_H

#include "verify/verify.h"

/* Code points below this have a table of their own; most texts need nothing else. */
#define DP_SYMBOLS_LOW 256

/* Others stand in a hash table with open addressing, at most half full. A zero number marks a free place. */
typedef struct dp_symbols {
    uint32_t low[DP_SYMBOLS_LOW];
    struct dp_symbol {
        uint32_t point, number;
    } * places;
    size_t mask;
    uint32_t count; /* of distinct code points */
} dp_symbols;

/* Numbers the code points of `text` in order of appearance; false when there is no memory. */
bool dp_symbols_init(dp_symbols *symbols, dp_points text);
void dp_symbols_free(dp_symbols *symbols);

/* Where a code point from DP_SYMBOLS_LOW on stands, or the free place where it would. */
static inline struct dp_symbol *dp_symbols_place(const dp_symbols *symbols, uint32_t point) {
    /* 2^32 divided by the golden ratio spreads neighbours; the high bits are the mixed ones. */
    size_t at = (size_t)((point * 0x9E3779B1u) >> 7) & symbols->mask;
    while (symbols->places[at].number && symbols->places[at].point != point)
        at = (at + 1) & symbols->mask;
    return &symbols->places[at];
}

/* The number of a code point; 0 when the text does not have it. */
static inline uint32_t dp_symbols_find(const dp_symbols *symbols, uint32_t point) {
    if (point < DP_SYMBOLS_LOW)
        return symbols->low[point];
    return symbols->places ? dp_symbols_place(symbols, point)->number : 0;
}

#endif
