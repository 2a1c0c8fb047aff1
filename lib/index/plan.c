/* plan.c - plans: listed, widened, and chosen for a run of an index.
 *
 * doppel_plan_list -> doppel_plan_widen; dp_plan_run. The plans themselves come from plan_find.c and plan_join.c. */
#include "index/plan.h"

#include <math.h>
#include <stdlib.h>

/* ---- the list ---- */

/* Plans as they are found; those that are wanted are copied at the end. */
typedef struct plan_list {
    doppel_plan *plan;
    size_t count, capacity;
    double memory; /* 0: no limit */
    bool failed;
} plan_list;

static void add_to_list(void *user, const dp_layout *layout, const doppel_plan *plan) {
    plan_list *list = user;
    (void)layout;
    if (list->failed || !dp_reserve(&list->plan, &list->capacity, list->count + 1, sizeof *list->plan)) {
        list->failed = true;
        return;
    }
    list->plan[list->count] = *plan;
    list->plan[list->count++].fits = !(list->memory > 0) || plan->memory <= list->memory;
}

/* What plans are ranked by: the time, where half the memory is worth a tenth of it (2^0.15 is 1.11), so that no plan
 * takes ten times the memory for a nanosecond. */
static double rank(const doppel_plan *plan) {
    return log2(plan->microseconds) + 0.15 * log2(plan->memory + 1);
}

static int by_number(double a, double b) {
    return (a > b) - (a < b);
}

/* Those that fit first, each part cheapest first; names decide what is left. */
static int compare_plans(const void *a, const void *b) {
    const doppel_plan *one = a, *other = b;
    if (one->fits != other->fits)
        return one->fits ? -1 : 1;
    int order = by_number(rank(one), rank(other));
    if (!order)
        order = one->blocks - other->blocks;
    return order ? order : strcmp(one->layout, other->layout);
}

/* Where nothing fits, the smallest comes first: it says what memory is needed. */
static void put_smallest_first(plan_list *list) {
    size_t smallest = 0;
    for (size_t i = 1; i < list->count; i++)
        if (list->plan[i].memory < list->plan[smallest].memory)
            smallest = i;
    doppel_plan first = list->plan[smallest];
    memmove(list->plan + 1, list->plan, smallest * sizeof *list->plan);
    list->plan[0] = first;
}

static doppel_status check(int distance, int bits, doppel_error *error) {
    if (bits < 1 || (bits > 64 && bits != 128))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "fingerprints have 1 to 64 or 128 bits, not %d", bits);
    if (distance < 0 || distance > bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "fingerprints of %d bits are 0 to %d bits apart, not %d", bits, bits,
                       distance);
    return DOPPEL_OK;
}

/* One layout by name, for finding. */
static doppel_status add_named(dp_plan_search *search, const char *name, doppel_error *error) {
    doppel_plan plan;
    doppel_status status = dp_layout_parse(name, search->bits, &search->layout, error);
    if (status != DOPPEL_OK)
        return status;
    dp_plan_describe(&search->question, &search->layout, &plan);
    search->found(search->user, &search->layout, &plan);
    return DOPPEL_OK;
}

static doppel_status find_plans(const doppel_plan_options *options, dp_plan_search *search, doppel_error *error) {
    if (options->purpose == DOPPEL_FOR_JOIN)
        return dp_plans_join(search, options->layout, options->memory, error);
    if (options->layout)
        return add_named(search, options->layout, error);
    dp_plans_find(search);
    return DOPPEL_OK;
}

static void copy_costs(const doppel_costs *from, doppel_costs *to) {
    doppel_costs_get(to);
    if (from)
        dp_copy_options(to, from, sizeof *to);
}

doppel_status doppel_plan_list(uint64_t count, int distance, const doppel_plan_options *options, doppel_plan *plans,
                               size_t room, size_t *found, doppel_error *error) {
    doppel_plan_options own = {0};
    doppel_costs costs;
    if (options)
        dp_copy_options(&own, options, sizeof own);
    own.bits = own.bits ? own.bits : 64;
    copy_costs(own.costs, &costs);
    *found = 0;
    doppel_status status = check(distance, own.bits, error);
    if (status != DOPPEL_OK)
        return status;
    plan_list list = {.memory = (double)own.memory};
    dp_plan_search search = {.question = {&costs, count, distance}, .bits = own.bits, .most_tables = DP_MAX_TABLES};
    search.found = add_to_list;
    search.user = &list;
    status = find_plans(&own, &search, error);
    if (status == DOPPEL_OK && list.failed)
        status = dp_no_memory(error);
    if (status == DOPPEL_OK) {
        qsort(list.plan, list.count, sizeof *list.plan, compare_plans);
        if (!list.plan[0].fits)
            put_smallest_first(&list);
        *found = list.count;
        for (size_t i = 0; i < list.count && i < room; i++)
            plans[i] = list.plan[i];
    }
    free(list.plan);
    return status;
}

doppel_status doppel_plan_widen(const doppel_plan *plan, int distance, const doppel_costs *costs, doppel_plan *wider,
                                doppel_error *error) {
    doppel_costs own;
    dp_layout layout;
    copy_costs(costs, &own);
    doppel_status status = check(distance, plan->bits, error);
    if (status == DOPPEL_OK)
        status = dp_layout_parse(plan->layout, plan->bits, &layout, error);
    if (status != DOPPEL_OK)
        return status;
    bool fits = plan->fits;
    dp_plan_describe(&(dp_question){&own, plan->count, distance}, &layout, wider);
    wider->fits = fits;
    return DOPPEL_OK;
}

/* ---- a run of an index ---- */

typedef struct run_choice {
    dp_layout *layout;
    double limit, rank, bytes; /* rank of the best so far, and bytes an entry it takes */
    bool any;
} run_choice;

static void choose_for_run(void *user, const dp_layout *layout, const doppel_plan *plan) {
    run_choice *choice = user;
    bool fits = plan->bytes_per_entry <= choice->limit;
    bool had = choice->any && choice->bytes <= choice->limit;
    bool better = !choice->any || (fits && !had) ||
                  (fits == had && (fits ? rank(plan) < choice->rank : plan->bytes_per_entry < choice->bytes));
    if (!better)
        return;
    choice->any = true;
    choice->rank = rank(plan);
    choice->bytes = plan->bytes_per_entry;
    *choice->layout = *layout;
}

/* Tables that can fit: each takes at least a filter an entry. */
static int tables_for(int bits, double bytes_per_entry) {
    double tables = (bytes_per_entry - DP_OWNER_BYTES) / (bits > 64 ? 8 : 4);
    return tables < 1 ? 1 : tables > DP_MAX_TABLES ? DP_MAX_TABLES : (int)tables;
}

void dp_plan_run(uint64_t count, int distance, int bits, double bytes_per_entry, dp_layout *layout) {
    doppel_costs costs;
    doppel_costs_get(&costs);
    run_choice choice = {.layout = layout, .limit = bytes_per_entry};
    dp_plan_search search = {.question = {&costs, count, distance}, .bits = bits, .found = choose_for_run};
    search.user = &choice;
    search.most_tables = tables_for(bits, bytes_per_entry);
    dp_plans_find(&search);
}
