/* held_parts.c - tables for queries of which it is known in which parts of the bits they may be near.
 *
 * A sieve cuts the bits into parts, and two fingerprints within the distance differ by at most r in some part, whose
 * map then lets the streamed one pass. So one that passed the map of a part has to be compared only with those that
 * differ from it by at most r in this part. The part is cut into b blocks with radii whose sum is r + 1 - b: two that
 * differ by more than its radius in every block differ by at least r + 1 - b + b in the part. Hence one of the b
 * tables, with keys in these blocks, has the other fingerprint within its radius. A key that takes less than its block
 * differs no more than the block does.
 *
 * A query that passed several maps is looked up in the tables of each, and a pair counts in the first of those tables
 * that finds it: whatever the maps let pass by chance, nothing is missed and nothing is told twice. */
#include "index/costs.h"
#include "index/held.h"

#include <math.h>

/* Blocks a part: all parts together have at most DP_MAX_TABLES. */
enum { MOST_PARTS = 4, MOST_BLOCKS = DP_MAX_TABLES / MOST_PARTS };

/* ---- planning ---- */

static int radius_of(const dp_held_part *part, int block) {
    int sum = part->radius + 1 - part->blocks;
    return sum / part->blocks + (block < sum % part->blocks);
}

static dp_cut block_of(const dp_held_part *part, int block) {
    int from = block * part->width / part->blocks, end = (block + 1) * part->width / part->blocks;
    return (dp_cut){(uint8_t)(part->from + from), (uint8_t)(end - from)};
}

static int key_bits(const dp_held_part *part, int block) {
    int width = block_of(part, block).width;
    return part->key_bits < width ? part->key_bits : width;
}

/* What looking a query up in all tables of the part costs. */
static double cost_of(const dp_held *held, const dp_held_part *part) {
    doppel_costs costs;
    dp_layout layout;
    doppel_costs_get(&costs);
    dp_question question = {&costs, held->distinct, held->distance};
    double sum = 0;
    layout.bits = held->bits;
    for (int i = 0; i < part->blocks; i++) {
        layout.table[0].key_bits = key_bits(part, i);
        sum += dp_effort_table(&question, &layout, 0, radius_of(part, i)).nanoseconds;
    }
    return sum;
}

/* The widest key worth a try: about one entry a bucket. */
static int widest_key(const dp_held *held) {
    int bits = 1;
    while (bits < DP_MAX_KEY && held->distinct >> bits)
        bits++;
    return bits;
}

void dp_held_plan_part(const dp_held *held, dp_held_part *part) {
    dp_held_part tried = *part;
    int widest = widest_key(held);
    part->nanoseconds = HUGE_VAL;
    for (int blocks = 1; blocks <= MOST_BLOCKS && blocks <= part->radius + 1 && blocks <= part->width; blocks++)
        for (int bits = 1; bits <= widest && bits <= (part->width + blocks - 1) / blocks; bits++) {
            tried.blocks = blocks;
            tried.key_bits = bits;
            tried.nanoseconds = cost_of(held, &tried);
            if (tried.nanoseconds < part->nanoseconds)
                *part = tried;
        }
}

/* ---- tables ---- */

void dp_held_use_parts(dp_held *held, const dp_held_part *parts, int count) {
    held->tables = 0;
    held->probes = 0;
    for (int p = 0; p < count; p++)
        for (int i = 0; i < parts[p].blocks; i++) {
            dp_held_table table = {.radius = radius_of(&parts[p], i), .parts = 1U << p};
            dp_held_add_piece(&table, block_of(&parts[p], i), parts[p].key_bits);
            dp_held_add_table(held, &table);
        }
}

uint64_t dp_held_parts_bytes(const dp_held *held, const dp_held_part *parts, int count) {
    uint64_t bytes = 0;
    for (int p = 0; p < count; p++)
        for (int i = 0; i < parts[p].blocks; i++) {
            int bits = key_bits(&parts[p], i);
            bytes += (uint64_t)held->distinct * (held->words * 8 + 4) + ((uint64_t)4 << bits);
            bytes += 4 * (uint64_t)dp_ball(bits, radius_of(&parts[p], i));
        }
    return bytes;
}
