/* join_plan.h - what is decided about a join of one set beforehand: the join goes by it (join_make.c, join_table.c,
 * join_bucket.c), and its plan counts with it (plan_join.c). */
#ifndef DP_INDEX_JOIN_PLAN_H
#define DP_INDEX_JOIN_PLAN_H

#include "index/index.h"

/* Blocks there can be at most, and how many of them a pair is asked to share. */
enum { DP_JOIN_BLOCKS = 64, DP_JOIN_LEVELS = 8 };

/* ---- the first block: a pass over memory ---- */

/* A cell, what shares the first bits of a block, should hold about so many numbers: with its tables it stays in the
 * second cache, and tables of fewer would cost more than they compare. */
enum { DP_CELL_TARGET = 2048 };
/* More keys are too many lines to fill at once: 4096 of them are 256 KiB, with 8192 a pass takes half as long again.
 * That still pays where a cell would not fit the second cache. */
enum { DP_KEY_BITS = 12, DP_MOST_KEY_BITS = 13, DP_LARGE_CELL = 1 << 15 };

/* The first bits of a block that a set of `count` is sorted by. */
int dp_join_sorted_bits(uint64_t count);

/* ---- the other blocks: inside the cache ---- */

/* A cell is compared at once up to so many numbers a table that it would need: there the tables cost more. */
enum { DP_AT_ONCE = 24 };
/* The bits a cell is split by at once, when more blocks follow: what one array on the stack holds. */
enum { DP_SPLIT_BITS = 10 };
/* A bucket of the crowd kernel should hold so many: with 5 of 16 places taken on average, one in 10^5 is too small. */
enum { DP_BUCKET_LOAD = 5 };

/* Whether so many bits, which the blocks do not have, tell enough of a number to compare by them first: a false hit
 * costs a few times what a bucket does, so that there may be one in 16 buckets. */
bool dp_join_bits_tell(int bits, int distance);

/* ---- memory ---- */

typedef struct dp_join_size {
    uint64_t count;
    int bits, distance;
    size_t threads;
} dp_join_size;

/* Lines and pairs get at least so many bytes, half of them each: less is more trouble than memory. */
#define DP_JOIN_LEAST ((uint64_t)2 << 20)

/* What is held whatever the data: keys, open lines and batches of each thread, and a bit a fingerprint. */
double dp_join_fixed_bytes(const dp_join_size *size);
/* The lines of all. They get up to three quarters of what is not fixed, the pairs the rest; what does not fit is joined
 * in rounds. */
double dp_join_line_bytes(const dp_join_size *size);

#endif
