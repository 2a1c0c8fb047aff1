/* leaving.c - what is to be removed by a commit that is not durable yet: a set of numbers, at most half full, with
 * linear probing. */
#include "known/leaving.h"

#include <stdlib.h>

enum { LEAST_ROOM = 64 };

/* Where a number stands, or would stand. */
static size_t place_of(const dp_leaving *leaving, uint64_t number) {
    size_t at = (size_t)(number * 0x9E3779B97F4A7C15u >> 20) & (leaving->room - 1);
    while (leaving->slot[at] && leaving->slot[at] != number)
        at = (at + 1) & (leaving->room - 1);
    return at;
}

bool dp_leaving_reserve(dp_leaving *leaving) {
    if (leaving->count < leaving->room / 2)
        return true;
    dp_leaving larger = {.room = leaving->room ? 2 * leaving->room : LEAST_ROOM};
    if (!(larger.slot = calloc(larger.room, sizeof *larger.slot)))
        return false;
    for (size_t i = 0; i < leaving->room; i++)
        if (leaving->slot[i])
            dp_leaving_add(&larger, leaving->slot[i]);
    free(leaving->slot);
    *leaving = larger;
    return true;
}

void dp_leaving_add(dp_leaving *leaving, uint64_t number) {
    size_t at = place_of(leaving, number);
    leaving->count += !leaving->slot[at];
    leaving->slot[at] = number;
}

bool dp_leaving_has(const dp_leaving *leaving, uint64_t number) {
    return leaving->count && leaving->slot[place_of(leaving, number)];
}

void dp_leaving_clear(dp_leaving *leaving) {
    if (leaving->count)
        memset(leaving->slot, 0, leaving->room * sizeof *leaving->slot);
    leaving->count = 0;
}

void dp_leaving_free(dp_leaving *leaving) {
    free(leaving->slot);
    *leaving = (dp_leaving){0};
}
