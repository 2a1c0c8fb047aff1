/* adding.h - a document that is being decided about: what was there before it (before.c), and what follows (add.c). */
#ifndef DP_ADDING_H
#define DP_ADDING_H

#include "engine/engine.h"

typedef struct dp_adding {
    doppel_engine *engine;
    dp_worker *worker;
    const dp_query *query;
    dp_look *look; /* the worker's */
    dp_finding finding;
    dp_trace gone[2]; /* that this one takes the place of */
    size_t gone_count;
    uint64_t holder; /* has the id and the words, but comes from elsewhere; 0: nobody does */
    doppel_error *error;
} dp_adding;

/* Looks up who has the id and what it is a copy of. *again: it is the document of this number itself; 0: it is new, or
 * takes the place of `gone`. */
doppel_status dp_adding_look_up(dp_adding *a, uint64_t *again);

#endif
