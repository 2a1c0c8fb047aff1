/* symbols.c - numbers the distinct code points of a text. */
#include "verify/symbols.h"

#include <stdlib.h>

bool dp_symbols_init(dp_symbols *symbols, dp_points text) {
    memset(symbols, 0, sizeof *symbols);
    size_t high = 0;
    for (size_t i = 0; i < text.count; i++)
        high += text.data[i] >= DP_SYMBOLS_LOW;
    if (high) {
        size_t size = 16;
        /* There are fewer than 2^21 code points, so that 2^22 places are always enough. */
        while (size < 2 * high && size < (size_t)1 << 22)
            size *= 2;
        symbols->places = calloc(size, sizeof *symbols->places);
        if (!symbols->places)
            return false;
        symbols->mask = size - 1;
    }
    for (size_t i = 0; i < text.count; i++) {
        uint32_t point = text.data[i];
        if (point < DP_SYMBOLS_LOW) {
            if (!symbols->low[point])
                symbols->low[point] = ++symbols->count;
            continue;
        }
        struct dp_symbol *place = dp_symbols_place(symbols, point);
        if (!place->number)
            *place = (struct dp_symbol){point, ++symbols->count};
    }
    return true;
}

void dp_symbols_free(dp_symbols *symbols) {
    free(symbols->places);
    symbols->places = NULL;
}
