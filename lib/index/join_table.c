/* join_table.c - compares the numbers of a cell: all that agree in the blocks chosen so far.
 *
 * For each block that may come next the numbers are put into buckets by it. Most often that is the last block there is
 * to choose, and the crowd kernel compares while it fills the buckets. Where it gives up, or 32 bits tell too little,
 * the numbers are sorted by bucket and each compared with those behind it. With more blocks to choose, each bucket is a
 * cell of its own. A cell that is small enough is compared at once: the rule of join.h holds for any number of blocks.
 */
#include "index/join.h"

#include <stdlib.h>

/* A bucket of the crowd kernel should hold so many: with 5 of 16 places taken on average, one in 10^5 is too small. */
enum { CROWD_LOAD = 5 };
/* The bits a cell is split by at once, when more blocks follow: what one array on the stack holds. */
enum { SPLIT_BITS = 10 };
/* A cell is compared at once up to so many numbers a table that it would need: there the tables cost more. */
enum { AT_ONCE = 24 };

/* ---- preparing ---- */

/* How often `bits` random bits are within the distance. */
static double chance_within(int bits, int distance) {
    double ways = 1, all = 1, size = 1;
    for (int i = 1; i <= bits; i++) {
        ways = ways * (bits - i + 1) / i;
        all += i <= distance ? ways : 0;
        size += ways;
    }
    return all / size;
}

static dp_bits rotate_right(dp_bits value, int turn) {
    return turn ? value >> turn | value << (128 - turn) : value;
}

static dp_join_window plan_window(const dp_join *join, int last, int b) {
    const dp_join_block *block = &join->block[b];
    dp_join_window window = {.top = block->shift + block->width};
    dp_bits known = join->block[last].mask | block->mask;
    if (join->bits > 64) {
        window.turn = (window.top + 64) % 128;
        window.top = 64;
        known = rotate_right(known, window.turn);
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
    /* A false hit costs a few times what a bucket does. */
    window.crowd = chance_within(32 - best, join->distance) * CROWD_LOAD < 1.0 / 16;
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

static bool reserve_tables(dp_joiner *joiner, size_t count) {
    if (count <= joiner->table_room)
        return true;
    size_t room = count + count / 2 + 1024, words = joiner->join->words;
    free(joiner->column);
    free(joiner->sorted);
    free(joiner->ids);
    free(joiner->hits);
    joiner->table_room = 0;
    joiner->column = words == 2 ? malloc(room * sizeof(uint64_t)) : NULL;
    joiner->sorted = malloc(room * words * sizeof(uint64_t));
    joiner->ids = malloc(room * sizeof(uint32_t));
    joiner->hits = malloc((room + 64) * sizeof(uint32_t));
    if ((words == 2 && !joiner->column) || !joiner->sorted || !joiner->ids || !joiner->hits)
        return dp_join_no_memory(joiner->join);
    joiner->table_room = room;
    return true;
}

static bool reserve_bounds(dp_joiner *joiner, size_t need) {
    return dp_reserve(&joiner->bounds, &joiner->bound_room, need, sizeof *joiner->bounds) ||
           dp_join_no_memory(joiner->join);
}

static bool reserve_crowd(dp_joiner *joiner, size_t keys) {
    if (keys <= joiner->crowd_keys)
        return true;
    dp_crowd *crowd = &joiner->crowd;
    free(crowd->fills);
    free(crowd->slots);
    free(crowd->ids);
    joiner->crowd_keys = 0;
    crowd->fills = malloc(keys);
    crowd->slots = aligned_alloc(64, keys * DP_CROWD_SLOTS * sizeof *crowd->slots);
    crowd->ids = malloc(keys * DP_CROWD_SLOTS * sizeof *crowd->ids);
    if (!crowd->fills || !crowd->slots || !crowd->ids)
        return dp_join_no_memory(joiner->join);
    joiner->crowd_keys = keys;
    return true;
}

/* ---- pairs ---- */

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

static bool tell(dp_joiner *joiner, uint32_t a, uint32_t b, int distance) {
    dp_join *join = joiner->join;
    joiner->near++;
    joiner->all_pairs = dp_add_sure(joiner->all_pairs, pairs_of_copies(joiner, a, b));
    if (!join->keeps_pairs ||
        dp_pairs_add(&join->pairs.buffers[joiner->number], a < b ? a : b, a < b ? b : a, distance))
        return true;
    return dp_join_fail(join, join->pairs.status, &join->pairs.error);
}

/* A candidate: numbers i and j of a cell. */
static inline bool check(dp_joiner *joiner, const dp_cell *cell, size_t i, size_t j, uint64_t chosen) {
    const dp_join *join = joiner->join;
    dp_bits differ;
    if (join->words == 1)
        differ = cell->values[i] ^ cell->values[j];
    else
        differ = dp_bits_load(cell->values + 2 * i, 128) ^ dp_bits_load(cell->values + 2 * j, 128);
    if (!agree_first(join, differ, chosen))
        return true;
    int distance = dp_bits_count(differ);
    return distance > join->distance || tell(joiner, cell->positions[i], cell->positions[j], distance);
}

/* ---- comparing ---- */

/* Each number of a queue with those behind it. They are those of the cell that `ids` says, NULL: as they stand. */
typedef struct queue {
    const uint64_t *values;
    const uint32_t *ids;
    size_t count;
} queue;

static bool compare_one(dp_joiner *joiner, const dp_cell *cell, const queue *these, size_t i, size_t from, size_t to,
                        uint64_t chosen) {
    const dp_join *join = joiner->join;
    const uint64_t *values = these->values;
    size_t found =
        join->words == 1
            ? dp_near64_kernel()(values + from, to - from, values[i], join->distance, joiner->hits)
            : dp_near128_kernel()(values + 2 * from, to - from, values + 2 * i, join->distance, joiner->hits);
    joiner->candidates += to - from;
    for (size_t hit = 0; hit < found; hit++) {
        size_t j = from + joiner->hits[hit];
        if (!check(joiner, cell, these->ids ? these->ids[i] : i, these->ids ? these->ids[j] : j, chosen))
            return false;
    }
    return true;
}

static bool compare_run(dp_joiner *joiner, const dp_cell *cell, const queue *these, uint64_t chosen) {
    for (size_t i = 0; i + 1 < these->count; i++)
        if (!compare_one(joiner, cell, these, i, i + 1, these->count, chosen))
            return false;
    return true;
}

/* Sorts the numbers of a cell by the first `bits` bits of a block: bucket k is bounds[k] .. bounds[k + 1] - 1 of
 * `values` and of `order`, which tells where they stood. */
typedef struct sorting {
    int b, bits;
    uint32_t *bounds; /* two more than buckets */
    uint64_t *values;
    uint32_t *order;
} sorting;

static void add_up_bounds(const sorting *s) {
    for (size_t key = 2; key <= (size_t)1 << s->bits; key++)
        s->bounds[key] += s->bounds[key - 1];
}

static void sort_narrow(const dp_cell *cell, const sorting *s, int shift) {
    const uint64_t mask = ((uint64_t)1 << s->bits) - 1, *from = cell->values;
    for (size_t i = 0; i < cell->count; i++)
        s->bounds[(from[i] >> shift & mask) + 2]++;
    add_up_bounds(s);
    for (size_t i = 0; i < cell->count; i++) {
        uint32_t at = s->bounds[(from[i] >> shift & mask) + 1]++;
        s->values[at] = from[i];
        s->order[at] = (uint32_t)i;
    }
}

static void sort_wide(const dp_cell *cell, const sorting *s, int shift) {
    const uint64_t mask = ((uint64_t)1 << s->bits) - 1, *from = cell->values;
    for (size_t i = 0; i < cell->count; i++)
        s->bounds[((uint64_t)(dp_bits_load(from + 2 * i, 128) >> shift) & mask) + 2]++;
    add_up_bounds(s);
    for (size_t i = 0; i < cell->count; i++) {
        uint32_t at = s->bounds[((uint64_t)(dp_bits_load(from + 2 * i, 128) >> shift) & mask) + 1]++;
        memcpy(s->values + 2 * (size_t)at, from + 2 * i, 2 * sizeof *from);
        s->order[at] = (uint32_t)i;
    }
}

static void sort_by_block(const dp_join *join, const dp_cell *cell, const sorting *s) {
    int shift = join->block[s->b].shift + join->block[s->b].width - s->bits;
    memset(s->bounds, 0, (((size_t)1 << s->bits) + 2) * sizeof *s->bounds);
    if (join->words == 1)
        sort_narrow(cell, s, shift);
    else
        sort_wide(cell, s, shift);
}

static bool table_by_sort(dp_joiner *joiner, const dp_cell *cell, int b, uint64_t chosen) {
    const dp_join *join = joiner->join;
    size_t words = join->words;
    int bits = 1;
    while (bits < join->block[b].width && cell->count >> bits > 2)
        bits++;
    if (!reserve_bounds(joiner, ((size_t)1 << bits) + 2))
        return false;
    sort_by_block(join, cell, &(sorting){b, bits, joiner->bounds, joiner->sorted, joiner->ids});
    for (size_t key = 0; key < (size_t)1 << bits; key++) {
        size_t from = joiner->bounds[key];
        queue bucket = {joiner->sorted + from * words, joiner->ids + from, joiner->bounds[key + 1] - from};
        if (bucket.count > 1 && !compare_run(joiner, cell, &bucket, chosen))
            return false;
    }
    return true;
}

/* The numbers as the crowd kernel has them: as they are, or 64 bits about the block. */
static const uint64_t *make_column(dp_joiner *joiner, const dp_cell *cell, int turn) {
    if (joiner->join->words == 1)
        return cell->values;
    for (size_t i = 0; i < cell->count; i++)
        joiner->column[i] = (uint64_t)rotate_right(dp_bits_load(cell->values + 2 * i, 128), turn);
    return joiner->column;
}

/* Pairs that were compared in the buckets that are not over. */
static uint64_t count_compared(const dp_crowd *crowd) {
    uint64_t compared = 0;
    for (size_t key = 0; key < (size_t)1 << crowd->width; key++) {
        uint32_t fill = crowd->fills[key] <= DP_CROWD_SLOTS ? crowd->fills[key] : 0;
        compared += fill * (fill - 1) / 2;
    }
    return compared;
}

static inline bool is_over(const dp_crowd *crowd, size_t i) {
    uint64_t mask = ((uint64_t)1 << crowd->width) - 1;
    return crowd->fills[crowd->numbers[i] >> crowd->shift & mask] == DP_CROWD_OVER;
}

/* The numbers of all buckets that are over, as a cell of their own. */
static bool sort_over(dp_joiner *joiner, const dp_cell *cell, int b, uint64_t chosen) {
    dp_cell *over = &joiner->cells[DP_JOIN_LEVELS];
    size_t words = joiner->join->words;
    over->count = 0;
    for (size_t i = 0; i < cell->count; i++)
        if (is_over(&joiner->crowd, i)) {
            if (!dp_cell_reserve(joiner, over, over->count + 1))
                return false;
            memcpy(over->values + over->count * words, cell->values + i * words, words * sizeof *over->values);
            over->positions[over->count++] = cell->positions[i];
        }
    return table_by_sort(joiner, over, b, chosen);
}

static bool run_crowd(dp_joiner *joiner, const dp_cell *cell, int b, uint64_t chosen) {
    dp_crowd *crowd = &joiner->crowd;
    size_t found = dp_crowd_kernel()(crowd);
    if (found == DP_CROWDED)
        return table_by_sort(joiner, cell, b, chosen);
    joiner->candidates += count_compared(crowd);
    for (size_t hit = 0; hit < found; hit++) {
        size_t i = joiner->hits[hit] >> 16, j = joiner->hits[hit] & 0xFFFF;
        if (!(crowd->over && is_over(crowd, i)) && !check(joiner, cell, i, j, chosen))
            return false;
    }
    return crowd->over == 0 || sort_over(joiner, cell, b, chosen);
}

static bool table(dp_joiner *joiner, const dp_cell *cell, int last, int b, uint64_t chosen) {
    const dp_join *join = joiner->join;
    const dp_join_window *window = &join->window[last][b];
    int bits = 1;
    while (bits < join->block[b].width && cell->count >> bits >= CROWD_LOAD)
        bits++;
    if (!reserve_tables(joiner, cell->count))
        return false;
    if (!window->crowd || cell->count > DP_CROWD_MOST || cell->count >> bits > CROWD_LOAD)
        return table_by_sort(joiner, cell, b, chosen);
    if (!reserve_crowd(joiner, (size_t)1 << bits))
        return false;
    dp_crowd *crowd = &joiner->crowd;
    crowd->numbers = make_column(joiner, cell, window->turn);
    crowd->count = cell->count;
    crowd->shift = window->top - bits;
    crowd->width = bits;
    crowd->rotate = window->rotate;
    crowd->distance = join->distance;
    crowd->hits = joiner->hits;
    crowd->room = cell->count;
    return run_crowd(joiner, cell, b, chosen);
}

/* ---- choosing blocks ---- */

static bool descend(dp_joiner *joiner, const dp_cell *cell, int level, uint64_t chosen);

/* Makes each bucket of a block a cell of its own. */
static bool split(dp_joiner *joiner, const dp_cell *cell, int level, int b, uint64_t chosen) {
    const dp_join *join = joiner->join;
    uint32_t bounds[(1 << SPLIT_BITS) + 2];
    size_t words = join->words;
    int bits = join->block[b].width < SPLIT_BITS ? join->block[b].width : SPLIT_BITS;
    dp_cell *sorted = &joiner->cells[level];
    if (!reserve_tables(joiner, cell->count) || !dp_cell_reserve(joiner, sorted, cell->count))
        return false;
    sort_by_block(join, cell, &(sorting){b, bits, bounds, sorted->values, joiner->ids});
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
    if (level == join->shared || cell->count <= (size_t)(AT_ONCE * (end - last))) {
        queue all = {cell->values, NULL, cell->count};
        return reserve_tables(joiner, cell->count) && compare_run(joiner, cell, &all, chosen);
    }
    for (int b = last + 1; b <= end; b++) {
        uint64_t choice = chosen | (uint64_t)1 << b;
        bool leaf = level + 1 == join->shared || cell->count >> join->block[b].width <= CROWD_LOAD;
        if (!(leaf ? table(joiner, cell, last, b, choice) : split(joiner, cell, level, b, choice)))
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
    queue all = {cell->values, NULL, cell->count};
    if (!reserve_tables(joiner, TILE))
        return false;
    for (size_t from = first; from < cell->count; from += TILE)
        for (size_t i = first; i < last; i++) {
            size_t start = from > i + 1 ? from : i + 1, end = from + TILE < cell->count ? from + TILE : cell->count;
            if (start < end && !compare_one(joiner, cell, &all, i, start, end, 0))
                return false;
        }
    return true;
}
