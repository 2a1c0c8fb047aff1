/* plan.c - plans: what is tried, what it costs, and which is chosen.
 *
 * doppel_plan_list -> doppel_plan_widen; dp_plan_run for a run of an index, dp_plan_join for a join.
 *
 * A layout is chosen by trying all that may be worth it (plans_find), each with the radii that make it exact (costs.c),
 * and taking the fastest that fits into the memory, else the smallest. layout.c knows what the names of layouts
 * mean. */
#include "hamming/hamming.h"
#include "kernel/kernel.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What is planned, and the callback that gets the plans. */
typedef struct plan_search {
    dp_question question;
    int bits;
    int most_tables; /* layouts for finding with more are skipped */
    void (*found)(void *user, const dp_layout *layout, const doppel_plan *plan); /* no layout: a join */
    void *user;
    dp_layout layout; /* the one being tried */
} plan_search;

/* ---- finding ----
 *
 * All layouts of layout.c that may be the best somewhere are tried: 1 to k + 1 blocks with a key each (with fewer,
 * radii make up for it), choices of c out of m blocks, two levels of k + 1 blocks, and the scan. Key bits lie around
 * the logarithm of the count, where a bucket has about one entry. */

/* Key bits are tried from LESS below the logarithm of the count to MORE above it: at LESS a bucket has 2^10 entries,
 * beyond which comparing costs more than another probe; at MORE most are empty, and the directory outweighs the
 * rest. */
enum { LESS = 10, MORE = 3 };

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
    bool probes = dp_layout_radii(question, layout, plan->radius);
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

/* What a layout costs a find: fills the whole plan, `fits` is true. */
static void plan_describe(const dp_question *question, const dp_layout *layout, doppel_plan *plan) {
    *plan = (doppel_plan){.bits = layout->bits, .blocks = layout->blocks, .tables = layout->tables};
    memcpy(plan->layout, layout->name, sizeof plan->layout);
    for (int t = 0; t < layout->tables; t++)
        plan->key_bits[t] = layout->table[t].key_bits;
    assess(question, layout, plan);
    plan->memory = dp_layout_bytes(layout, question->count);
    plan->bytes_per_entry = plan->memory / (double)(question->count ? question->count : 1);
    plan->fits = true;
}

static bool uses_all_tables(const doppel_plan *plan) {
    for (int t = 0; t < plan->tables; t++)
        if (plan->radius[t] < 0)
            return false;
    return true;
}

/* Offers a layout, unless it leaves a table unused: then another does as well with less. The classic ones are always
 * offered. */
static void try_layout(plan_search *search, const char *name, bool classic) {
    doppel_plan plan;
    if (dp_layout_parse(name, search->bits, &search->layout, NULL) != DOPPEL_OK)
        return;
    plan_describe(&search->question, &search->layout, &plan);
    if (classic || uses_all_tables(&plan))
        search->found(search->user, &search->layout, &plan);
}

/* Key bits worth trying, for keys of at most `width` bits. */
typedef struct key_range {
    int least, most;
} key_range;

static key_range key_bits_for(const plan_search *search, int width) {
    int log = 0;
    while (log < 63 && search->question.count >> (log + 1))
        log++;
    int cap = width < DP_MAX_KEY ? width : DP_MAX_KEY;
    int most = log + MORE < cap ? log + MORE : cap;
    int least = log - LESS > 1 ? log - LESS : 1;
    return (key_range){least < most ? least : most, most < 1 ? 1 : most};
}

/* Keys of m blocks: the range, and whole blocks (the classic) where they are enough by themselves. */
static void try_blocks(plan_search *search, int blocks) {
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
static void try_choices(plan_search *search, int blocks, int choose) {
    char name[64];
    key_range keys = key_bits_for(search, search->bits / blocks * choose);
    if (search->bits / blocks * (choose - 1) >= keys.most || dp_choices(blocks, choose) > search->most_tables)
        return;
    for (int key = keys.most - 4 > keys.least ? keys.most - 4 : keys.least; key <= keys.most; key++) {
        snprintf(name, sizeof name, "%dc%dx%d", blocks, choose, key);
        try_layout(search, name, false);
    }
}

static void try_levels(plan_search *search) {
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

/* Every layout worth trying for finding. */
static void plans_find(plan_search *search) {
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

/* ---- joining ----
 *
 * The bits are cut into m = k + s blocks. A pair within k bits differs in at most k of them, so at least s are equal:
 * the join brings together what agrees in a first block, then in a second after it, and so on for s blocks, or until
 * so few are together that they can be compared at once. Level l has C(k + l, l) choices of blocks, and every
 * fingerprint goes through each of them. For the first level that is a pass over memory (a move), for the others a
 * table inside the cache (a place); what is together at the end is compared (a pair):
 *
 *     (k + 2) * count * move  +  (choices of levels 2 and on) * count * place  +  candidates * pair
 *
 * The first pass counts twice: it reads, reorders and finds equal ones, too; for k = 0 that is all. Moves and places of
 * 128 bits cost twice. Narrower blocks, for a greater s, mean more choices and fewer candidates. Against them stands
 * the scan: all with all. It wins for few fingerprints, and for distances so wide that blocks do not help. */

/* Tables that compare while they are filled cost a place. Those that are sorted first cost ROWS of them, and NUMBERS
 * where 32 bits are too few and whole numbers are sorted; a split into cells costs CELLS. */
enum { ROWS = 2, NUMBERS = 4, CELLS = 2 };

static double smaller(double a, double b) {
    return a < b ? a : b;
}

/* The first bits of a block that a set of `count` is sorted by. */
static int sorted_bits(uint64_t count) {
    int bits = 1;
    while (bits < DP_KEY_BITS && count >> (bits + 1) >= DP_CELL_TARGET)
        bits++;
    while (bits < DP_MOST_KEY_BITS && count >> bits > DP_LARGE_CELL)
        bits++;
    return bits;
}

dp_join_memory dp_plan_join_memory(const dp_join_size *size) {
    const double batches = 2 << 20; /* of a thread */
    double keys = exp2(sorted_bits(size->count)), count = (double)size->count, threads = (double)size->threads;
    double open = keys * (sizeof(dp_line) + 8 + 4 * (size->distance + 1.0)), each = DP_LINE_NARROW;
    if (size->bits > 64)
        each = DP_LINE_WIDE;
    return (dp_join_memory){.sorted_bits = sorted_bits(size->count),
                            .fixed = threads * (open + batches) + count / 8,
                            .lines = (count / each + threads * keys) * sizeof(dp_line)};
}

typedef struct join_work {
    double moves, places, candidates;
} join_work;

/* Places that a table costs: small buckets are compared while they are filled, if 32 bits, about two of them in the
 * blocks, are enough. */
static double table_places(const dp_question *question, double cell, double width) {
    bool enough = dp_join_bits_suffice(30, question->distance);
    return !enough ? NUMBERS : cell / exp2(width) <= DP_BUCKET_LOAD ? 1 : ROWS;
}

/* Fingerprints per bucket of a table. */
static double table_load(double cell, double width) {
    double load = cell;
    for (int bits = 1; bits <= width && load >= DP_BUCKET_LOAD; bits++)
        load /= 2;
    return load;
}

/* The work of `shared` levels over blocks of `width` bits, for random fingerprints. */
static join_work blocks_work(const dp_question *question, double width, int shared) {
    double count = (double)question->count, k = question->distance, choices = k + 1;
    double cell = count / exp2(smaller(width, sorted_bits(question->count)));
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

/* One thread's. */
static dp_join_memory memory_of(const plan_search *search) {
    const dp_question *question = &search->question;
    return dp_plan_join_memory(&(dp_join_size){question->count, search->bits, question->distance, 1});
}

static double memory_for(const plan_search *search, double rounds) {
    dp_join_memory memory = memory_of(search);
    return memory.fixed + fmax(DP_JOIN_LEAST, memory.lines / rounds * 4 / 3);
}

/* Rounds in which the lines go through `memory`, or through the least there can be. */
static double rounds_in(const plan_search *search, double memory) {
    dp_join_memory need = memory_of(search);
    double room = fmax(DP_JOIN_LEAST, memory - need.fixed);
    return fmax(1, ceil(need.lines * 4 / 3 / room));
}

static doppel_plan begin_plan(const plan_search *search) {
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
static doppel_plan blocks_plan(const plan_search *search, int shared, double rounds) {
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

static doppel_plan scan_plan(const plan_search *search) {
    doppel_plan plan = begin_plan(search);
    strcpy(plan.layout, "scan");
    plan.blocks = plan.tables = 1;
    plan.candidates = all_pairs(plan.count);
    plan.microseconds = plan.candidates * search->question.costs->pair / 1000;
    /* Fingerprints with their positions, once. */
    set_memory(&plan, memory_of(search).fixed + DP_JOIN_LEAST + (double)plan.count * (search->bits > 64 ? 20 : 12));
    return plan;
}

/* Every way to join in `memory` bytes (0: no limit); only those of a layout when one is named.
 * Errors: DOPPEL_ERROR_USAGE when no join goes by that layout. */
static doppel_status plans_join(plan_search *search, const char *layout, uint64_t memory, doppel_error *error) {
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

/* Those that fit first, cheapest first; ties by name. */
static int compare_plans(const void *a, const void *b) {
    const doppel_plan *one = a, *other = b;
    if (one->fits != other->fits)
        return one->fits ? -1 : 1;
    int order = by_number(rank(one), rank(other));
    if (!order)
        order = one->blocks - other->blocks;
    return order ? order : strcmp(one->layout, other->layout);
}

/* If nothing fits, the smallest comes first: it shows the memory needed. */
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
static doppel_status add_named(plan_search *search, const char *name, doppel_error *error) {
    doppel_plan plan;
    DP_TRY(dp_layout_parse(name, search->bits, &search->layout, error));
    plan_describe(&search->question, &search->layout, &plan);
    search->found(search->user, &search->layout, &plan);
    return DOPPEL_OK;
}

static doppel_status find_plans(const doppel_plan_options *options, plan_search *search, doppel_error *error) {
    if (options->purpose == DOPPEL_FOR_JOIN)
        return plans_join(search, options->layout, options->memory, error);
    if (options->layout)
        return add_named(search, options->layout, error);
    plans_find(search);
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
    DP_TRY(check(distance, own.bits, error));
    plan_list list = {.memory = (double)own.memory};
    plan_search search = {.question = {&costs, count, distance}, .bits = own.bits, .most_tables = DP_MAX_TABLES};
    search.found = add_to_list;
    search.user = &list;
    doppel_status status = find_plans(&own, &search, error);
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
    DP_TRY(check(distance, plan->bits, error));
    DP_TRY(dp_layout_parse(plan->layout, plan->bits, &layout, error));
    bool fits = plan->fits;
    plan_describe(&(dp_question){&own, plan->count, distance}, &layout, wider);
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
    plan_search search = {.question = {&costs, count, distance}, .bits = bits, .found = choose_for_run};
    search.user = &choice;
    search.most_tables = tables_for(bits, bytes_per_entry);
    plans_find(&search);
}
