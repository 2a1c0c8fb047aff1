/* leaving.c - what is to be removed by a commit that is not durable yet: a set of numbers, at most half full, with
 * linear probing; and the end of it, when they go. */
#include "engine/engine.h"

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

/* ---- what is pending ---- */

bool dp_is_leaving(const dp_pending *pending) {
    return pending->removed && pending->change.number;
}

void dp_leaving_go(doppel_engine *engine, const dp_group *group) {
    bool told = false;
    for (size_t i = 0; i < group->count; i++) {
        const dp_pending *p = &group->pending[i];
        if (!dp_is_leaving(p))
            continue;
        if (!told)
            atomic_fetch_add(&engine->removals, 1);
        told = true;
        if (dp_known_remove(engine->known, &p->trace) != DOPPEL_OK)
            dp_log_line(engine, DOPPEL_LOG_ERROR, "COMMIT_ERROR",
                        "no memory to forget document %llu before the next opening",
                        (unsigned long long)p->trace.number);
    }
}

static void add_leaving(doppel_engine *engine, const dp_group *group) {
    for (size_t i = 0; group && i < group->count; i++)
        if (dp_is_leaving(&group->pending[i]))
            dp_leaving_add(&engine->leaving, group->pending[i].trace.number);
}

void dp_leaving_again(doppel_engine *engine) {
    dp_leaving_clear(&engine->leaving);
    add_leaving(engine, engine->writing);
    add_leaving(engine, engine->current);
}
