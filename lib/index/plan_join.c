/* plan_join.c - how all pairs of a set are found, and what that costs.
 *
 * The bits are cut into k + 2 blocks. A pair within k bits differs in at most k of them, so two blocks are equal. For
 * each block a but the last, one pass over memory brings together the fingerprints that agree in (up to
 * PARTITION_BITS of) block a; inside each such part, a table by block b for each b behind a brings the rest together,
 * and what meets there is compared. Cost, for m blocks:
 *
 *     (m - 1) * count * move  +  C(m, 2) * count * place  +  candidates * pair
 *
 * Against it stands the scan: all with all. It wins for few fingerprints, and for distances so wide that two blocks
 * hardly tell them apart. */
#include "index/plan.h"

#include <math.h>
#include <stdio.h>

/* A finer partition overflows the lines that are being written at once: passes take twice as long. */
enum { PARTITION_BITS = 13 };

/* What a fingerprint takes while it is joined: itself and its position, once. */
#define JOIN_BYTES(bits) ((bits) > 64 ? 20.0 : 12.0)

/* Buffers of the passes, whatever the count. */
#define JOIN_BUFFERS (16 << 20)

/* Bits of the table by block b: about one bucket a fingerprint of the part, never more than the block has. */
static int table_bits(uint64_t count, int width) {
    int bits = 1;
    while (bits < width && count >> (PARTITION_BITS + bits - 1))
        bits++;
    return bits;
}

static int block_width(int bits, int blocks, int i) {
    return bits / blocks + (i < bits % blocks);
}

static int smaller(int a, int b) {
    return a < b ? a : b;
}

/* The key bits of a table, a < b. */
static int join_key(const dp_plan_search *search, int blocks, int a, int b) {
    return smaller(block_width(search->bits, blocks, a), PARTITION_BITS) +
           table_bits(search->question.count, block_width(search->bits, blocks, b));
}

/* Pairs that are compared when all are compared. */
static double all_pairs(uint64_t count) {
    return (double)count * ((double)count - 1) / 2;
}

static void fill_keys(const dp_plan_search *search, doppel_plan *plan) {
    int t = 0;
    plan->candidates = 0;
    for (int a = 0; a < plan->blocks; a++)
        for (int b = a + 1; b < plan->blocks; b++, t++) {
            int key = join_key(search, plan->blocks, a, b);
            plan->candidates += all_pairs(search->question.count) / ldexp(1, key);
            if (t < DOPPEL_PLAN_TABLES)
                plan->key_bits[t] = key;
        }
}

/* A plan in `rounds` rounds, each of which reads all and joins what falls to it. */
static doppel_plan blocks_plan(const dp_plan_search *search, double rounds) {
    const dp_question *question = &search->question;
    int blocks = question->distance + 2;
    double count = (double)question->count, tables = blocks * (blocks - 1) / 2;
    doppel_plan plan = {.bits = search->bits, .distance = question->distance, .count = question->count};
    plan.blocks = blocks;
    plan.tables = (int)tables;
    snprintf(plan.layout, sizeof plan.layout, "%dc2x%d", blocks,
             block_width(search->bits, blocks, 0) + block_width(search->bits, blocks, 1));
    fill_keys(search, &plan);
    plan.probes = tables * count;
    plan.bytes_per_entry = JOIN_BYTES(search->bits) / rounds;
    plan.memory = plan.bytes_per_entry * count + JOIN_BUFFERS;
    plan.microseconds = ((blocks - 1) * count * question->costs->move * rounds +
                         tables * count * question->costs->place + plan.candidates * question->costs->pair) /
                        1000;
    plan.fits = true;
    return plan;
}

static doppel_plan scan_plan(const dp_plan_search *search) {
    const dp_question *question = &search->question;
    double count = (double)question->count;
    doppel_plan plan = {.layout = "scan", .bits = search->bits, .distance = question->distance, .blocks = 1};
    plan.count = question->count;
    plan.tables = 1;
    plan.candidates = all_pairs(question->count);
    plan.bytes_per_entry = JOIN_BYTES(search->bits);
    plan.memory = plan.bytes_per_entry * count + JOIN_BUFFERS;
    plan.microseconds = plan.candidates * question->costs->pair / 1000;
    plan.fits = true;
    return plan;
}

/* Blocks have at least one bit. */
static bool can_cut(const dp_plan_search *search) {
    return search->question.distance + 2 <= search->bits;
}

doppel_status dp_plans_join(dp_plan_search *search, const char *layout, uint64_t memory, doppel_error *error) {
    doppel_plan plans[3] = {scan_plan(search)};
    int count = 1, given = 0;
    if (can_cut(search)) {
        plans[count++] = blocks_plan(search, 1);
        double rounds = memory > JOIN_BUFFERS
                            ? ceil(plans[1].bytes_per_entry * (double)plans[1].count / ((double)memory - JOIN_BUFFERS))
                            : 1;
        if (memory && rounds > 1)
            plans[count++] = blocks_plan(search, rounds);
    }
    for (int i = 0; i < count; i++)
        if (!layout || !strcmp(layout, plans[i].layout)) {
            search->found(search->user, NULL, &plans[i]);
            given++;
        }
    if (!given)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a join within %d of %d bits goes by %s%s, not \"%s\"",
                       search->question.distance, search->bits, count > 1 ? plans[1].layout : "scan",
                       count > 1 ? " or scan" : "", layout);
    return DOPPEL_OK;
}

int dp_plan_join(uint64_t count, int distance, int bits) {
    doppel_costs costs;
    doppel_costs_get(&costs);
    dp_plan_search search = {.question = {&costs, count, distance}, .bits = bits};
    if (!can_cut(&search))
        return 0;
    return blocks_plan(&search, 1).microseconds < scan_plan(&search).microseconds ? distance + 2 : 0;
}
