/* costs.h - what a find costs, by arithmetic: the model that plan.c and radii.c choose by. */
#ifndef DP_COSTS_H
#define DP_COSTS_H

#include "index/index.h"

/* Fingerprints within so many bits of one of `bits` bits: the sum of the binomials. */
double dp_ball(int bits, int radius);

/* Choices of `choose` out of `blocks` (layout.c); DP_MAX_TABLES + 1 stands for any more than DP_MAX_TABLES. */
int dp_choices(int blocks, int choose);

/* An owner, and a bit that says whether there are more: what an entry takes besides its tables. */
#define DP_OWNER_BYTES 8.125

/* What is asked of a layout. */
typedef struct dp_question {
    const doppel_costs *costs;
    uint64_t count;
    int distance;
} dp_question;

/* What a find is expected to do in one table, or in all. */
typedef struct dp_effort {
    double probes, candidates, nanoseconds;
} dp_effort;

/* In one table probed at a radius (-1: nothing). */
dp_effort dp_effort_table(const dp_question *question, const dp_layout *layout, int table, int radius);

/* In all tables, and what a query costs besides. */
dp_effort dp_effort_find(const dp_question *question, const dp_layout *layout, const int *radius);

/* Comparing all entries. */
dp_effort dp_effort_scan(const dp_question *question, const dp_layout *layout);

/* Bytes that a run of `count` entries, all distinct, takes. */
double dp_layout_bytes(const dp_layout *layout, uint64_t count);

/* dp_layout_radii with other costs. */
bool dp_radii_choose(const dp_question *question, const dp_layout *layout, int radius[DP_MAX_TABLES]);

#endif
