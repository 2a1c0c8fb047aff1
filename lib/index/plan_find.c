/* plan_find.c - the layouts there are for finding, and what each costs.
 *
 * All layouts of layout.c that may be the best somewhere are tried: 1 to k + 1 blocks with a key each (with fewer,
 * radii make up for it), choices of c out of m blocks, two levels of k + 1 blocks, and the scan. Key bits lie around
 * the logarithm of the count, where a bucket has about one entry. */
#include "index/plan.h"

#include <math.h>
#include <stdio.h>

/* Key bits are tried from LESS below the logarithm of the count to MORE above it: at LESS a bucket has 2^10 entries,
 * beyond which comparing costs more than another look; at MORE most are empty, and the directory outweighs the rest. */
enum { LESS = 10, MORE = 3 };

/* ---- one plan ---- */

/* 2^key bits / product of (blocks x bits) over the levels, where one exact key a table is enough: how many times fewer
 * than all are compared, each bit of each block counted as work. */
static double classic_reduction(const dp_layout *layout, int distance) {
    int first = layout->blocks, second = layout->tables / layout->blocks;
    int key = layout->table[0].key_bits, width = layout->bits / first;
    for (int t = 1; t < layout->tables; t++)
        if (layout->table[t].key_bits != key)
            return 0;
    if (layout->choose > 1 || key == 0 || distance >= first || (second > 1 && (distance >= second || key <= width)))
        return 0;
    if (second == 1)
        return ldexp(1, key) / ((double)first * key);
    return ldexp(1, key) / ((double)first * width * second * (key - width));
}

/* What a layout costs; radii are the cheapest that are exact, none when a scan is cheaper. */
static void assess(const dp_question *question, const dp_layout *layout, doppel_plan *plan) {
    bool probes = dp_radii_choose(question, layout, plan->radius);
    bool scan = !layout->table[0].key_bits;
    if (!probes)
        for (int t = 0; t < layout->tables; t++)
            plan->radius[t] = -1;
    if (scan)
        plan->radius[0] = 0;
    dp_effort effort = probes ? dp_effort_find(question, layout, plan->radius) : dp_effort_scan(question, layout);
    plan->count = question->count;
    plan->distance = question->distance;
    plan->probes = effort.probes;
    plan->candidates = effort.candidates;
    plan->microseconds = effort.nanoseconds / 1000;
    plan->reduction = classic_reduction(layout, question->distance);
}

void dp_plan_describe(const dp_question *question, const dp_layout *layout, doppel_plan *plan) {
    *plan = (doppel_plan){.bits = layout->bits, .blocks = layout->blocks, .tables = layout->tables};
    memcpy(plan->layout, layout->name, sizeof plan->layout);
    for (int t = 0; t < layout->tables; t++)
        plan->key_bits[t] = layout->table[t].key_bits;
    assess(question, layout, plan);
    plan->memory = dp_layout_bytes(layout, question->count);
    plan->bytes_per_entry = plan->memory / (double)(question->count ? question->count : 1);
    plan->fits = true;
}

/* ---- all plans ---- */

static bool uses_all_tables(const doppel_plan *plan) {
    for (int t = 0; t < plan->tables; t++)
        if (plan->radius[t] < 0)
            return false;
    return true;
}

/* Offers a layout, unless it is one of those that another does as well as with less: it leaves a table unused. The
 * classic ones are offered in any case. */
static void try_layout(dp_plan_search *search, const char *name, bool classic) {
    doppel_plan plan;
    if (dp_layout_parse(name, search->bits, &search->layout, NULL) != DOPPEL_OK)
        return;
    dp_plan_describe(&search->question, &search->layout, &plan);
    if (classic || uses_all_tables(&plan))
        search->found(search->user, &search->layout, &plan);
}

/* Key bits worth trying, for keys of at most `width` bits. */
typedef struct key_range {
    int least, most;
} key_range;

static key_range key_bits_for(const dp_plan_search *search, int width) {
    int log = 0;
    while (log < 63 && search->question.count >> (log + 1))
        log++;
    int cap = width < DP_MAX_KEY ? width : DP_MAX_KEY;
    int most = log + MORE < cap ? log + MORE : cap;
    int least = log - LESS > 1 ? log - LESS : 1;
    return (key_range){least < most ? least : most, most < 1 ? 1 : most};
}

/* Keys of m blocks: the range, and whole blocks (the classic) where they are enough by themselves. */
static void try_blocks(dp_plan_search *search, int blocks) {
    char name[64];
    int width = search->bits / blocks < DP_MAX_KEY ? search->bits / blocks : DP_MAX_KEY;
    key_range keys = key_bits_for(search, width);
    for (int key = keys.least; key <= width; key++) {
        bool classic = key == width && blocks > search->question.distance;
        snprintf(name, sizeof name, "%dx%d", blocks, key);
        if (classic || key <= keys.most)
            try_layout(search, name, classic);
    }
}

/* Choices of c of m blocks: no more of them than the longest key takes. */
static void try_choices(dp_plan_search *search, int blocks, int choose) {
    char name[64];
    key_range keys = key_bits_for(search, search->bits / blocks * choose);
    if (search->bits / blocks * (choose - 1) >= keys.most || dp_choices(blocks, choose) > search->most_tables)
        return;
    for (int key = keys.most - 4 > keys.least ? keys.most - 4 : keys.least; key <= keys.most; key++) {
        snprintf(name, sizeof name, "%dc%dx%d", blocks, choose, key);
        try_layout(search, name, false);
    }
}

static void try_levels(dp_plan_search *search) {
    int blocks = search->question.distance + 1;
    char name[64];
    if (blocks < 2 || blocks * blocks > search->most_tables || search->bits < blocks * (blocks + 1))
        return;
    int first = search->bits / blocks;
    int second = (search->bits - first) / blocks;
    if (first >= DP_MAX_KEY)
        return;
    if (first + second > DP_MAX_KEY)
        second = DP_MAX_KEY - first;
    snprintf(name, sizeof name, "%dx%d+%dx%d", blocks, first, blocks, second);
    try_layout(search, name, true);
}

/* Choices of more blocks than these have too many tables, or keys that fewer blocks give as well. */
enum { MOST_CHOICE_BLOCKS = 11 };

void dp_plans_find(dp_plan_search *search) {
    int most = search->question.distance + 1 < search->bits ? search->question.distance + 1 : search->bits;
    try_layout(search, "scan", true);
    for (int blocks = 1; blocks <= most && blocks <= search->most_tables; blocks++)
        try_blocks(search, blocks);
    for (int blocks = 3; blocks <= MOST_CHOICE_BLOCKS && blocks <= search->bits; blocks++)
        for (int choose = 2; choose < blocks; choose++)
            if (blocks - choose <= search->question.distance)
                try_choices(search, blocks, choose);
    try_levels(search);
}
