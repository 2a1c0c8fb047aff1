/* hamming.h - near fingerprints: orders of bits, layouts, costs, plans, the Hamming index.
 *
 * Inside this stage a fingerprint is first put into a secret order of bits (order.c), and everything below works on the
 * reordered number. A layout (layout.c) cuts those bits into the keys of tables; a plan (plan.c) is a layout with its
 * radii and its cost (costs.c). The index (index.c, find.c, file.c) keeps runs (run.h), each with tables by its own
 * layout; lib/join cuts by the same pigeonhole, but keeps no index. */
#ifndef DP_HAMMING_H
#define DP_HAMMING_H

#include "base/base.h"

#include <math.h>

/* A fingerprint of any width as one number. */
typedef unsigned __int128 dp_bits;

static inline dp_bits dp_bits_load(const uint64_t *words, int bits) {
    return bits > 64 ? (dp_bits)words[1] << 64 | words[0] : words[0];
}

static inline void dp_bits_store(dp_bits value, uint64_t words[2]) {
    words[0] = (uint64_t)value;
    words[1] = (uint64_t)(value >> 64);
}

static inline int dp_bits_count(dp_bits value) {
    return __builtin_popcountll((uint64_t)value) + __builtin_popcountll((uint64_t)(value >> 64));
}

/* ---- the secret order of bits: order.c ---- */

/* A butterfly of exchanges: stage s swaps bit i with bit i + 2^s where bit i of the stage's mask says so. Without
 * knowing the masks nobody can choose which bits share a block. Distances do not change. */
enum { DP_ORDER_STAGES = 7 };
typedef struct dp_order {
    int bits;
    uint64_t mask[DP_ORDER_STAGES][2]; /* low half, high half; stage 6 (bits 64 apart) only for 128 */
} dp_order;

/* The order a seed stands for; seed 0 is the order that changes nothing. */
void dp_order_init(dp_order *order, int bits, uint64_t seed);
dp_bits dp_order_apply(const dp_order *order, dp_bits value);
dp_bits dp_order_undo(const dp_order *order, dp_bits value);
/* The same as apply for many, one or two words each; `to` may be `from`. */
void dp_order_apply_many(const dp_order *order, const uint64_t *from, size_t count, uint64_t *to);

/* ---- entries to be sorted ---- */

/* Entries as numbers one after the other: the value (low half first, two words for 128 bits), the owner and, with
 * `timed`, the time of expiry. */
typedef struct dp_items {
    uint64_t *item;
    uint64_t count;
    int bits;
    bool timed;
} dp_items;

static inline size_t dp_item_words(const dp_items *items) {
    return (items->bits > 64 ? 3U : 2U) + (items->timed ? 1U : 0U);
}

/* run_build.c: sorts by value, then owner; of equal ones the last is kept. `scratch` has space for all of them. */
void dp_items_sort(dp_items *items, uint64_t *scratch);
/* Makes items without times of those that have them. */
void dp_items_drop_times(dp_items *items);

/* ---- layouts: layout.c ---- */

enum { DP_MAX_TABLES = DOPPEL_PLAN_TABLES, DP_MAX_CUTS = 40, DP_MAX_KEY = 30 };

/* A table sees the bits in its own order: the cuts one after the other, the first at the top. All cuts together hold
 * every bit once. The key is the top `key_bits`; the first table's cuts change nothing, so that its order is the order
 * of the numbers themselves. */
typedef struct dp_cut {
    uint8_t from, width; /* bits from .. from + width - 1 */
} dp_cut;

typedef struct dp_table_layout {
    int key_bits; /* 0 (a scan) to DP_MAX_KEY */
    int cuts;
    dp_cut cut[DP_MAX_CUTS];
    dp_bits key_mask; /* the bits of the reordered number that are the key */
} dp_table_layout;

typedef struct dp_layout {
    char name[64];
    int bits, blocks, choose, tables;
    dp_table_layout table[DP_MAX_TABLES];
} dp_layout;

/* A layout by its name, as doppel_plan names them. Errors: DOPPEL_ERROR_USAGE with a message that says what can be. */
doppel_status dp_layout_parse(const char *name, int bits, dp_layout *layout, doppel_error *error);

/* Choices of `choose` out of `blocks`; DP_MAX_TABLES + 1 stands for any more than DP_MAX_TABLES. */
static inline int dp_choices(int blocks, int choose) {
    int64_t count = 1;
    for (int i = 1; i <= choose && count <= 1 << 20; i++)
        count = count * (blocks - choose + i) / i;
    return count > DP_MAX_TABLES ? DP_MAX_TABLES + 1 : (int)count;
}

/* Arranges a number for a table, and back. */
dp_bits dp_layout_arrange(const dp_table_layout *table, dp_bits value);
dp_bits dp_layout_restore(const dp_table_layout *table, dp_bits arranged);
/* The first of the two in half the work, for up to 64 bits. */
static inline uint64_t dp_layout_arrange64(const dp_table_layout *table, int bits, uint64_t value) {
    uint64_t arranged = 0;
    for (int i = 0, shift = bits; i < table->cuts; i++) {
        shift -= table->cut[i].width;
        arranged |= (value >> table->cut[i].from & UINT64_MAX >> (64 - table->cut[i].width)) << shift;
    }
    return arranged;
}

/* ---- plans: plan.c ---- */

/* The layout for a run of `count` entries planned for `distance`: the cheapest that takes at most `bytes_per_entry`
 * (owners included), or, when none does, the smallest. Key bits follow the count. */
void dp_plan_run(uint64_t count, int distance, int bits, double bytes_per_entry, dp_layout *layout);

/* How a join cuts: `blocks` blocks of which any pair within the distance shares two; 0: compare all with all. */
int dp_plan_join(uint64_t count, int distance, int bits);

/* ---- costs: what a find costs, by arithmetic (costs.c) ---- */

/* The number of fingerprints of `bits` bits within `radius` bits of one of them: the sum of the binomials. */
double dp_ball(int bits, int radius);

/* An owner, and a bit that says whether there are more: what an entry takes besides its tables. */
#define DP_OWNER_BYTES 8.125

/* The query a layout is assessed for. */
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

/* In all tables, plus a query's fixed cost. */
dp_effort dp_effort_find(const dp_question *question, const dp_layout *layout, const int *radius);

/* Comparing all entries. */
dp_effort dp_effort_scan(const dp_question *question, const dp_layout *layout);

/* The cheapest radii that make the layout exact for the distance: keys of table t within radius[t] bits are probed, -1:
 * table t is not used. False when comparing all entries is cheaper than any radii (or nothing else is exact). */
bool dp_layout_radii(const dp_question *question, const dp_layout *layout, int radius[DP_MAX_TABLES]);

/* Bytes that a run of `count` entries, all distinct, takes. */
double dp_layout_bytes(const dp_layout *layout, uint64_t count);

/* ---- keys near a key ---- */

/* The number after `flip` among those of `bits` bits (at most 32), the first being 0. */
static inline uint32_t dp_flip_after(uint32_t flip, int bits) {
    uint64_t wide = flip;
    if (flip) {
        /* The next one with the same number of bits: the lowest run of ones carries, and what is left of it goes to the
         * bottom. */
        uint64_t lowest = wide & (0 - wide), raised = wide + lowest;
        uint64_t next = raised | ((wide ^ raised) >> 2) / lowest;
        if (!(next >> bits))
            return (uint32_t)next;
    }
    return (uint32_t)(((uint64_t)2 << __builtin_popcount(flip)) - 1);
}

/* ---- joins of one set: planned in plan.c, used by lib/join/one_set.c ---- */

/* Blocks there can be at most, and how many of them a pair is asked to share. */
enum { DP_JOIN_BLOCKS = 64, DP_JOIN_LEVELS = 8 };

/* ---- the first block: a pass over memory ---- */

/* A cell, what shares the first bits of a block, should hold about this many numbers: with its tables it stays in the
 * L2 cache, and tables of fewer would cost more than they save. */
enum { DP_CELL_TARGET = 2048 };
/* More keys are too many lines to fill at once: 4096 of them are 256 KiB, with 8192 a pass takes half as long again.
 * That still pays if a cell would not fit the L2 cache. */
enum { DP_KEY_BITS = 12, DP_MOST_KEY_BITS = 13, DP_LARGE_CELL = 1 << 15 };

/* ---- the other blocks: inside the cache ---- */

/* Up to this many numbers for each table that it would need, a cell is compared at once: tables would cost more. */
enum { DP_AT_ONCE = 24 };
/* The bits a cell is split by at once, when more blocks follow: what one array on the stack holds. */
enum { DP_SPLIT_BITS = 10 };
/* A bucket of the bucket_pairs kernel should hold this many: with 5 of 16 places used on average, one in 10^5
 * overflows. */
enum { DP_BUCKET_LOAD = 5 };

/* Whether `bits` bits outside of the blocks are enough to compare numbers by first: a false hit costs a few times what
 * a bucket does, so that one in 16 buckets may have one. */
static inline bool dp_join_bits_suffice(int bits, int distance) {
    return dp_ball(bits, distance) / ldexp(1, bits) * DP_BUCKET_LOAD < 1.0 / 16;
}

/* ---- memory ---- */

typedef struct dp_join_size {
    uint64_t count;
    int bits, distance;
    size_t threads;
} dp_join_size;

/* The first bits of a block that the set is sorted by, and bytes. `fixed` is kept whatever the data: keys, open lines
 * and batches of each thread, and a bit per fingerprint. `lines` are those of all: they get up to three quarters of
 * what is not fixed, the pairs the rest; what does not fit is joined in rounds. */
typedef struct dp_join_memory {
    int sorted_bits;
    double fixed, lines;
} dp_join_memory;
dp_join_memory dp_plan_join_memory(const dp_join_size *size);

/* The least that lines and pairs get, in bytes, half of it each. */
#define DP_JOIN_LEAST ((uint64_t)2 << 20)

/* What a join by `blocks` blocks (0: all with all) costs. */
double dp_join_nanoseconds(const dp_question *question, int bits, int blocks);

#endif
