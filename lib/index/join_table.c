/* join_table.c - chooses the blocks by which the numbers of a cell are compared: all of them agree in the first.
 *
 * For each block that may come next the numbers are put into buckets by it (join_bucket.c). Most often that is the last
 * block there is to choose. With more to choose, each bucket is a cell of its own. A cell that is small enough is
 * compared at once: the rule of join.h holds for any number of blocks. */
#include "index/join.h"

#include <stdlib.h>

/* ---- preparing ---- */

static dp_join_window plan_window(const dp_join *join, int last, int b) {
    const dp_join_block *block = &join->block[b];
    dp_join_window window = {.top = block->shift + block->width};
    dp_bits known = join->block[last].mask | block->mask;
    if (join->bits > 64) {
        window.turn = (window.top + 64) % 128;
        window.top = 64;
        known = dp_join_turn(known, window.turn);
    }
    uint64_t same = (uint64_t)known | (join->bits < 64 ? ~(((uint64_t)1 << join->bits) - 1) : 0);
    int best = 33;
    for (int rotate = 0; rotate < 64; rotate++) {
        int overlap = __builtin_popcountll(same & (rotate ? dp_rotl64(UINT32_MAX, rotate) : UINT32_MAX));
        if (overlap < best) {
            best = overlap;
            window.rotate = rotate;
        }
    }
    window.crowd = dp_join_bits_tell(32 - best, join->distance);
    return window;
}

bool dp_tables_init(dp_join *join) {
    join->window = calloc((size_t)join->blocks + 1, sizeof *join->window);
    if (!join->window)
        return dp_join_no_memory(join);
    for (int last = 0; last < join->blocks; last++)
        for (int b = last + 1; b < join->blocks; b++)
            join->window[last][b] = plan_window(join, last, b);
    return true;
}

/* ---- choosing blocks ---- */

static bool descend(dp_joiner *joiner, const dp_cell *cell, int level, uint64_t chosen);

/* Makes each bucket of a block a cell of its own. */
static bool split(dp_joiner *joiner, const dp_cell *cell, int level, int b, uint64_t chosen) {
    const dp_join *join = joiner->join;
    uint32_t bounds[(1 << DP_SPLIT_BITS) + 2];
    size_t words = join->words;
    int bits = join->block[b].width < DP_SPLIT_BITS ? join->block[b].width : DP_SPLIT_BITS;
    dp_cell *sorted = &joiner->cells[level];
    if (!dp_join_reserve(joiner, cell->count) || !dp_cell_reserve(joiner, sorted, cell->count))
        return false;
    dp_join_sort(join, cell, &(dp_join_sorting){b, bits, bounds, sorted->values, joiner->ids});
    for (size_t i = 0; i < cell->count; i++)
        sorted->positions[i] = cell->positions[joiner->ids[i]];
    for (size_t key = 0; key < (size_t)1 << bits; key++) {
        size_t from = bounds[key];
        dp_cell part = {sorted->values + from * words, sorted->positions + from, bounds[key + 1] - from, 0};
        if (part.count > 1 && !descend(joiner, &part, level + 1, chosen))
            return false;
    }
    return true;
}

/* `level` blocks are chosen, and all numbers of the cell agree in them. */
static bool descend(dp_joiner *joiner, const dp_cell *cell, int level, uint64_t chosen) {
    const dp_join *join = joiner->join;
    int last = 63 - __builtin_clzll(chosen), end = join->blocks - join->shared + level;
    if (level == join->shared || cell->count <= (size_t)(DP_AT_ONCE * (end - last))) {
        dp_join_queue all = {cell->values, NULL, cell->count};
        return dp_join_reserve(joiner, cell->count) && dp_join_compare(joiner, cell, &all, chosen);
    }
    for (int b = last + 1; b <= end; b++) {
        uint64_t choice = chosen | (uint64_t)1 << b;
        bool leaf = level + 1 == join->shared || cell->count >> join->block[b].width <= DP_BUCKET_LOAD;
        if (!(leaf ? dp_join_table(joiner, cell, last, b, choice) : split(joiner, cell, level, b, choice)))
            return false;
    }
    return true;
}

bool dp_tables_run(dp_joiner *joiner) {
    /* Copies are told already, and nothing else is within 0. */
    return joiner->cells[0].count < 2 || joiner->join->distance == 0 ||
           descend(joiner, &joiner->cells[0], 1, (uint64_t)1 << joiner->join->pass);
}

bool dp_tables_all(dp_joiner *joiner, const dp_cell *cell, size_t first, size_t last) {
    enum { TILE = 2048 }; /* numbers behind: 16 or 32 KiB, which stay in the first cache while all rows go over them */
    dp_join_queue all = {cell->values, NULL, cell->count};
    if (!dp_join_reserve(joiner, TILE))
        return false;
    for (size_t from = first; from < cell->count; from += TILE)
        for (size_t i = first; i < last; i++) {
            size_t start = from > i + 1 ? from : i + 1, end = from + TILE < cell->count ? from + TILE : cell->count;
            if (start < end && !dp_join_compare_one(joiner, cell, &all, (dp_join_row){i, start, end}, 0))
                return false;
        }
    return true;
}
