/* plan.h - where plans come from: plan_find.c and plan_join.c. */
#ifndef DP_PLAN_H
#define DP_PLAN_H

#include "index/costs.h"

/* What is planned, and who gets the plans. */
typedef struct dp_plan_search {
    dp_question question;
    int bits;
    int most_tables; /* layouts for finding that have more are passed over */
    void (*found)(void *user, const dp_layout *layout, const doppel_plan *plan); /* no layout: a join */
    void *user;
    dp_layout layout; /* the one being tried */
} dp_plan_search;

/* Every layout worth trying for finding. */
void dp_plans_find(dp_plan_search *search);

/* What a layout costs a find: fills the whole plan, `fits` is true. */
void dp_plan_describe(const dp_question *question, const dp_layout *layout, doppel_plan *plan);

/* Every way to join in `memory` bytes (0: as many as it takes); only those of a layout when one is named.
 * Errors: DOPPEL_ERROR_USAGE when no join goes by that layout. */
doppel_status dp_plans_join(dp_plan_search *search, const char *layout, uint64_t memory, doppel_error *error);

/* What a join by so many blocks (0: all with all) costs. */
double dp_join_nanoseconds(const dp_question *question, int bits, int blocks);

#endif
