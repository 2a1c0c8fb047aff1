/* join_check.c - compares numbers of a cell in full, and tells the pairs that are near. */
#include "index/join.h"

/* Whether the chosen blocks are the first in which two numbers agree, given where they differ. */
static inline bool agree_first(const dp_join *join, dp_bits differ, uint64_t chosen) {
    for (int b = 0; chosen; b++, chosen >>= 1)
        if (((differ & join->block[b].mask) == 0) != (chosen & 1))
            return false;
    return true;
}

/* How many pairs a pair stands for when every copy counts. */
static uint64_t pairs_of_copies(const dp_joiner *joiner, uint32_t a, uint32_t b) {
    const dp_groups *groups = joiner->join->groups.entries ? &joiner->join->groups : &joiner->cell_groups;
    return groups->count ? dp_group_size(groups, a) * dp_group_size(groups, b) : 1;
}

bool dp_join_tell(dp_joiner *joiner, uint32_t a, uint32_t b, int distance) {
    dp_join *join = joiner->join;
    if (!join->keeps_pairs ||
        dp_pairs_add(&join->pairs.buffers[joiner->number], a < b ? a : b, a < b ? b : a, distance))
        return true;
    return dp_join_fail(join, join->pairs.status, &join->pairs.error);
}

static bool tell_near(dp_joiner *joiner, uint32_t a, uint32_t b, int distance) {
    joiner->near++;
    joiner->all_pairs = dp_add_sure(joiner->all_pairs, pairs_of_copies(joiner, a, b));
    return dp_join_tell(joiner, a, b, distance);
}

/* A candidate: numbers i and j of a cell. */
bool dp_join_check(dp_joiner *joiner, const dp_cell *cell, size_t i, size_t j, uint64_t chosen) {
    const dp_join *join = joiner->join;
    dp_bits differ;
    if (join->words == 1)
        differ = cell->values[i] ^ cell->values[j];
    else
        differ = dp_bits_load(cell->values + 2 * i, 128) ^ dp_bits_load(cell->values + 2 * j, 128);
    if (!agree_first(join, differ, chosen))
        return true;
    int distance = dp_bits_count(differ);
    return distance > join->distance || tell_near(joiner, cell->positions[i], cell->positions[j], distance);
}

bool dp_join_compare_one(dp_joiner *joiner, const dp_cell *cell, const dp_join_queue *these, dp_join_row row,
                         uint64_t chosen) {
    const dp_join *join = joiner->join;
    const uint64_t *values = these->values;
    size_t i = row.one, count = row.to - row.from;
    size_t found =
        join->words == 1
            ? dp_near64_kernel()(values + row.from, count, values[i], join->distance, joiner->hits)
            : dp_near128_kernel()(values + 2 * row.from, count, values + 2 * i, join->distance, joiner->hits);
    joiner->candidates += count;
    for (size_t hit = 0; hit < found; hit++) {
        size_t j = row.from + joiner->hits[hit];
        if (!dp_join_check(joiner, cell, these->ids ? these->ids[i] : i, these->ids ? these->ids[j] : j, chosen))
            return false;
    }
    return true;
}

bool dp_join_compare(dp_joiner *joiner, const dp_cell *cell, const dp_join_queue *these, uint64_t chosen) {
    for (size_t i = 0; i + 1 < these->count; i++)
        if (!dp_join_compare_one(joiner, cell, these, (dp_join_row){i, i + 1, these->count}, chosen))
            return false;
    return true;
}
