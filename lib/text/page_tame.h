/* page_tame.h - what the parts of page_tame.c share. */
#ifndef DP_PAGE_TAME_H
#define DP_PAGE_TAME_H

#include "base/base.h"

/* A page on its way: `out` has what comes before `from`, as far as something had to change. */
typedef struct dp_taming {
    const char *from, *end;
    dp_buffer *out;
    unsigned missing; /* ends that do not come any more, and need not be looked for again */
    bool failed;      /* no memory */
} dp_taming;

/* Leaves out what stands from `start` to `stop`. */
void dp_taming_cut(dp_taming *t, const char *start, const char *stop);

/* Puts text in before `place`. */
void dp_taming_insert(dp_taming *t, const char *place, const char *text, size_t length);

/* ---- page_nest.c ---- */

/* More open sections than any page has. */
#define DP_NEST_DEPTH 64

/* The open sections, each with its div elements that are open. */
typedef struct dp_nest {
    struct {
        const char *name;
        size_t length, divs;
    } open[DP_NEST_DEPTH];
    size_t depth;
} dp_nest;

/* A tag that opens an element. */
void dp_nest_start(dp_nest *nest, const char *name, size_t length);

/* A tag at `place` that closes one: what is still open in it is closed first. */
void dp_nest_end(dp_nest *nest, dp_taming *t, const char *place, const char *name, size_t length);

#endif
