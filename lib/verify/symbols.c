/* symbols.c - numbers the distinct code points of a text. */
#include "verify/symbols.h"

bool dp_symbols_init(dp_symbols *symbols, dp_points text) {
    memset(symbols, 0, sizeof *symbols);
    for (size_t i = 0; i < text.count; i++) {
        uint32_t point = text.data[i];
        if (point < DP_SYMBOLS_LOW) {
            if (!symbols->low[point])
                symbols->low[point] = ++symbols->count;
            continue;
        }
        uint64_t *number = dp_hashmap_add(&symbols->high, point);
        if (!number)
            return false;
        if (!*number)
            *number = ++symbols->count;
    }
    return true;
}

void dp_symbols_free(dp_symbols *symbols) {
    dp_hashmap_free(&symbols->high);
}
