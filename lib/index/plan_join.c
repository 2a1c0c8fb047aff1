/* plan_join.c - how all pairs of a set are found, and what that costs.
 *
 * The bits are cut into m = k + s blocks. A pair within k bits differs in at most k of them, so at least s are equal:
 * the join brings together what agrees in a first block, then in a second behind it, and so on for s blocks, or until
 * so few are together that they can be compared at once. Level l has C(k + l, l) choices of blocks, and every
 * fingerprint goes through each of them. For the first level that is a pass over memory (a move), for the others a
 * table inside the cache (a place); what is together at the end is compared (a pair):
 *
 *     (k + 2) * count * move  +  (choices of levels 2 and on) * count * place  +  candidates * pair
 *
 * The first pass counts twice: it reads, reorders and finds equal ones, too; for k = 0 that is all. Moves and places of
 * 128 bits cost twice. Narrower blocks, for a greater s, mean more choices and fewer candidates. Against them stands
 * the scan: all with all. It wins for few fingerprints, and for distances so wide that no blocks tell them apart. */
#include "index/join_plan.h"
#include "index/plan.h"
#include "kernel/kernel.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

/* Tables that compare while they are filled cost a place. Those that are sorted first cost ROWS of them, and NUMBERS
 * where 32 bits tell too little and whole numbers are sorted; a split into cells costs CELLS. */
enum { ROWS = 2, NUMBERS = 4, CELLS = 2 };

static double smaller(double a, double b) {
    return a < b ? a : b;
}

/* ---- what the join goes by, too ---- */

int dp_join_sorted_bits(uint64_t count) {
    int bits = 1;
    while (bits < DP_KEY_BITS && count >> (bits + 1) >= DP_CELL_TARGET)
        bits++;
    while (bits < DP_MOST_KEY_BITS && count >> bits > DP_LARGE_CELL)
        bits++;
    return bits;
}

bool dp_join_bits_tell(int bits, int distance) {
    return dp_ball(bits, distance) / exp2(bits) * DP_BUCKET_LOAD < 1.0 / 16;
}

double dp_join_fixed_bytes(const dp_join_size *size) {
    const double batches = 2 << 20; /* of a thread */
    double keys = exp2(dp_join_sorted_bits(size->count)), passes = size->distance + 1;
    return (double)size->threads * (keys * (sizeof(dp_line) + 8 + 4 * passes) + batches) + (double)size->count / 8;
}

double dp_join_line_bytes(const dp_join_size *size) {
    double keys = exp2(dp_join_sorted_bits(size->count)), each = size->bits > 64 ? DP_LINE_WIDE : DP_LINE_NARROW;
    return ((double)size->count / each + (double)size->threads * keys) * sizeof(dp_line);
}

/* ---- work ---- */

typedef struct join_work {
    double moves, places, candidates;
} join_work;

/* Places that a table costs: small buckets are compared while they are filled, if 32 bits, about two of them in the
 * blocks, tell enough. */
static double table_places(const dp_question *question, double cell, double width) {
    bool tells = dp_join_bits_tell(30, question->distance);
    return !tells ? NUMBERS : cell / exp2(width) <= DP_BUCKET_LOAD ? 1 : ROWS;
}

/* Fingerprints that stand together in a bucket of a table. */
static double table_load(double cell, double width) {
    double load = cell;
    for (int bits = 1; bits <= width && load >= DP_BUCKET_LOAD; bits++)
        load /= 2;
    return load;
}

/* The work of `shared` levels over blocks of `width` bits, for random fingerprints. */
static join_work blocks_work(const dp_question *question, double width, int shared) {
    double count = (double)question->count, k = question->distance, choices = k + 1;
    double cell = count / exp2(smaller(width, dp_join_sorted_bits(question->count)));
    join_work work = {(choices + 1) * count, 0, 0};
    if (!question->distance)
        return work;
    for (int level = 1;; level++) {
        double next = choices * (k + level + 1) / (level + 1);
        if (level == shared || cell <= DP_AT_ONCE * next / choices) {
            work.places += choices * count;
            work.candidates = choices * count * cell / 2;
            return work;
        }
        choices = next;
        bool leaf = level + 1 == shared || cell / exp2(width) <= DP_BUCKET_LOAD;
        work.places += choices * count * (leaf ? table_places(question, cell, width) : CELLS);
        if (leaf) {
            work.candidates = choices * count * table_load(cell, width) / 2;
            return work;
        }
        cell /= exp2(smaller(width, DP_SPLIT_BITS));
    }
}

static double blocks_microseconds(const dp_question *question, int bits, join_work work, double rounds) {
    const doppel_costs *costs = question->costs;
    /* A round that is not a fingerprint's own only reads it: about a third of a move. */
    double moves = work.moves * (1 + (rounds - 1) / 3), words = bits > 64 ? 2 : 1;
    return (words * (moves * costs->move + work.places * costs->place) + work.candidates * costs->pair) / 1000;
}

/* The number of equal blocks to go by that costs least; 0: there are fewer than k + 2 bits. */
static int best_shared(const dp_question *question, int bits) {
    int best = 0;
    double least = 0;
    for (int shared = 2; shared <= DP_JOIN_LEVELS; shared++) {
        int blocks = question->distance + shared;
        if (blocks > bits || blocks > DP_JOIN_BLOCKS)
            break;
        double cost = blocks_microseconds(question, bits, blocks_work(question, (double)bits / blocks, shared), 1);
        if (!best || cost < least) {
            best = shared;
            least = cost;
        }
    }
    return best;
}

/* Pairs that are compared when all are compared with all. */
static double all_pairs(uint64_t count) {
    return count ? (double)count * ((double)count - 1) / 2 : 0;
}

/* ---- memory ---- */

/* One thread's. */
static dp_join_size size_of(const dp_plan_search *search) {
    return (dp_join_size){search->question.count, search->bits, search->question.distance, 1};
}

static double memory_for(const dp_plan_search *search, double rounds) {
    dp_join_size size = size_of(search);
    return dp_join_fixed_bytes(&size) + fmax(DP_JOIN_LEAST, dp_join_line_bytes(&size) / rounds * 4 / 3);
}

/* Rounds in which the lines go through `memory`, or through the least there can be. */
static double rounds_in(const dp_plan_search *search, double memory) {
    dp_join_size size = size_of(search);
    double room = fmax(DP_JOIN_LEAST, memory - dp_join_fixed_bytes(&size));
    return fmax(1, ceil(dp_join_line_bytes(&size) * 4 / 3 / room));
}

/* ---- plans ---- */

static doppel_plan begin_plan(const dp_plan_search *search) {
    doppel_plan plan = {.bits = search->bits, .distance = search->question.distance, .count = search->question.count};
    plan.fits = true;
    return plan;
}

static void set_memory(doppel_plan *plan, double bytes) {
    plan->memory = bytes;
    plan->bytes_per_entry = bytes / (double)(plan->count ? plan->count : 1);
}

/* Bits of the widest and of `shared` blocks. */
static int width_of(int bits, int blocks, int shared) {
    int wide = bits % blocks;
    return bits / blocks * shared + (shared < wide ? shared : wide);
}

static int choices_of(int blocks, int choose) {
    double count = 1;
    for (int i = 1; i <= choose; i++)
        count = count * (blocks - choose + i) / i;
    return count < INT_MAX ? (int)(count + 0.5) : INT_MAX;
}

/* A plan in `rounds` rounds, each of which reads all and joins what falls to it. */
static doppel_plan blocks_plan(const dp_plan_search *search, int shared, double rounds) {
    const dp_question *question = &search->question;
    doppel_plan plan = begin_plan(search);
    plan.blocks = question->distance + shared;
    join_work work = blocks_work(question, (double)search->bits / plan.blocks, shared);
    plan.tables = choices_of(question->distance + shared, shared);
    int key = width_of(search->bits, plan.blocks, shared);
    for (int t = 0; t < DOPPEL_PLAN_TABLES; t++)
        plan.key_bits[t] = t < plan.tables ? key : 0;
    snprintf(plan.layout, sizeof plan.layout, "%dc%dx%d", plan.blocks, shared, key);
    plan.probes = work.moves + work.places;
    plan.candidates = work.candidates;
    plan.microseconds = blocks_microseconds(question, search->bits, work, rounds);
    set_memory(&plan, memory_for(search, rounds));
    return plan;
}

static doppel_plan scan_plan(const dp_plan_search *search) {
    doppel_plan plan = begin_plan(search);
    dp_join_size size = size_of(search);
    strcpy(plan.layout, "scan");
    plan.blocks = plan.tables = 1;
    plan.candidates = all_pairs(plan.count);
    plan.microseconds = plan.candidates * search->question.costs->pair / 1000;
    /* Fingerprints with their positions, once. */
    set_memory(&plan, dp_join_fixed_bytes(&size) + DP_JOIN_LEAST + (double)plan.count * (search->bits > 64 ? 20 : 12));
    return plan;
}

doppel_status dp_plans_join(dp_plan_search *search, const char *layout, uint64_t memory, doppel_error *error) {
    doppel_plan plans[2 * DP_JOIN_LEVELS + 1] = {scan_plan(search)};
    int count = 1, given = 0, best = best_shared(&search->question, search->bits);
    double rounds = memory ? rounds_in(search, (double)memory) : 1;
    for (int shared = 2; best && shared <= DP_JOIN_LEVELS; shared++) {
        int blocks = search->question.distance + shared;
        if (blocks > search->bits || blocks > DP_JOIN_BLOCKS)
            break;
        plans[count++] = blocks_plan(search, shared, 1);
        if (rounds > 1)
            plans[count++] = blocks_plan(search, shared, rounds);
    }
    for (int i = 0; i < count; i++)
        if (!layout || !strcmp(layout, plans[i].layout)) {
            search->found(search->user, NULL, &plans[i]);
            given++;
        }
    if (!given)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a join within %d of %d bits goes by layouts such as %s, not \"%s\"",
                       search->question.distance, search->bits, plans[count > 1].layout, layout);
    return DOPPEL_OK;
}

double dp_join_nanoseconds(const dp_question *question, int bits, int blocks) {
    if (!blocks)
        return all_pairs(question->count) * question->costs->pair;
    join_work work = blocks_work(question, (double)bits / blocks, blocks - question->distance);
    return 1000 * blocks_microseconds(question, bits, work, 1);
}

int dp_plan_join(uint64_t count, int distance, int bits) {
    doppel_costs costs;
    doppel_costs_get(&costs);
    dp_question question = {&costs, count, distance};
    int shared = best_shared(&question, bits), blocks = distance + shared;
    if (!shared)
        return 0;
    return dp_join_nanoseconds(&question, bits, blocks) < dp_join_nanoseconds(&question, bits, 0) ? blocks : 0;
}
