/* index.h - near fingerprints: plans, the Hamming index, joins.
 *
 * Inside this stage a fingerprint is first put into a secret order of bits (order.c), and everything below works on the
 * reordered number. A layout (layout.c) cuts those bits into the keys of tables; a plan (plan.c) is a layout with its
 * radii and its cost. The index (index.c) keeps runs (run.c), each with tables by its own layout; the joins (join.c,
 * join_two.c) cut by the same pigeonhole, but keep no table. */
#ifndef DP_INDEX_H
#define DP_INDEX_H

#include "base/base.h"
#include "index/bands.h"
#include "index/titles.h"

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

/* A butterfly of exchanges: stage s swaps bit i with bit i + 2^s where bit i of the stage's mask says so. Whoever does
 * not know the masks cannot choose which bits share a block. Distances do not change. */
enum { DP_ORDER_STAGES = 7 };
typedef struct dp_order {
    int bits;
    uint64_t mask[DP_ORDER_STAGES][2]; /* low half, high half; stage 6 (bits 64 apart) only for 128 */
} dp_order;

/* The order a seed stands for; seed 0 is the order that changes nothing. */
void dp_order_init(dp_order *order, int bits, uint64_t seed);
/* A seed that nobody can guess, never 0. */
uint64_t dp_order_random(void);
dp_bits dp_order_apply(const dp_order *order, dp_bits value);
dp_bits dp_order_undo(const dp_order *order, dp_bits value);
/* The same as apply for many, one or two words each; `to` may be `from`. */
void dp_order_apply_many(const dp_order *order, const uint64_t *from, size_t count, uint64_t *to);

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

/* Brings a number into a table's order, and back. */
dp_bits dp_layout_arrange(const dp_table_layout *table, dp_bits value);
dp_bits dp_layout_restore(const dp_table_layout *table, dp_bits arranged);

/* The cheapest radii that make the layout exact for a distance, with `count` entries: keys of table t within radius[t]
 * bits are probed, -1: table t is not used. False when comparing all entries is cheaper than any radii (or nothing else
 * is exact). */
bool dp_layout_radii(const dp_layout *layout, int distance, uint64_t count, int radius[DP_MAX_TABLES]);

/* ---- plans: plan.c ---- */

/* The layout for a run of `count` entries planned for `distance`: the cheapest that takes at most `bytes_per_entry`
 * (owners included), or, when none does, the smallest. Key bits follow the count. */
void dp_plan_run(uint64_t count, int distance, int bits, double bytes_per_entry, dp_layout *layout);

/* How a join cuts: `blocks` blocks of which any pair within the distance shares two; 0: compare all with all. */
int dp_plan_join(uint64_t count, int distance, int bits);

#endif
