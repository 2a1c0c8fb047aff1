/* join_bucket.c - puts the numbers of a cell into buckets by one more block, and compares what meets there.
 *
 * There are three ways. Small buckets: the crowd kernel compares while it fills them. Buckets of a dozen and more: 32
 * bits of each number are sorted by bucket, and the rows kernel compares. Where 32 bits tell too little, or buckets are
 * larger still, the numbers themselves are sorted, and each is compared with those behind it. */
#include "index/join.h"

#include <stdlib.h>

/* Hits of the rows kernel at a time. */
enum { ROW_HITS = 4096 };

/* A table that is made. */
typedef struct table {
    int b, bits; /* the block, and how many of its first bits are the key */
    uint64_t chosen;
    const dp_join_window *window;
} table;

/* ---- memory ---- */

bool dp_join_reserve(dp_joiner *joiner, size_t count) {
    if (count <= joiner->table_room)
        return true;
    size_t room = count + count / 2 + 1024, words = joiner->join->words;
    free(joiner->column);
    free(joiner->sorted);
    free(joiner->ids);
    free(joiner->hits);
    free(joiner->row_hits);
    joiner->table_room = 0;
    joiner->column = words == 2 ? malloc(room * sizeof(uint64_t)) : NULL;
    joiner->sorted = malloc((room + 8) * words * sizeof(uint64_t));
    joiner->ids = malloc(room * sizeof(uint32_t));
    joiner->hits = malloc((room + 64) * sizeof(uint32_t));
    joiner->row_hits = malloc((ROW_HITS + DP_ROWS_SLACK + 1) * sizeof(uint64_t));
    if ((words == 2 && !joiner->column) || !joiner->sorted || !joiner->ids || !joiner->hits || !joiner->row_hits)
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

/* ---- by the numbers themselves ---- */

static void add_up_bounds(const dp_join_sorting *s) {
    for (size_t key = 2; key <= (size_t)1 << s->bits; key++)
        s->bounds[key] += s->bounds[key - 1];
}

static void sort_narrow(const dp_cell *cell, const dp_join_sorting *s, int shift) {
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

static void sort_wide(const dp_cell *cell, const dp_join_sorting *s, int shift) {
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

void dp_join_sort(const dp_join *join, const dp_cell *cell, const dp_join_sorting *s) {
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
    dp_join_sort(join, cell, &(dp_join_sorting){b, bits, joiner->bounds, joiner->sorted, joiner->ids});
    for (size_t key = 0; key < (size_t)1 << bits; key++) {
        size_t from = joiner->bounds[key];
        dp_join_queue bucket = {joiner->sorted + from * words, joiner->ids + from, joiner->bounds[key + 1] - from};
        if (bucket.count > 1 && !dp_join_compare(joiner, cell, &bucket, chosen))
            return false;
    }
    return true;
}

/* ---- by 32 bits ---- */

/* The numbers as the crowd kernel has them: as they are, or 64 bits about the block. */
static const uint64_t *make_column(dp_joiner *joiner, const dp_cell *cell, int turn) {
    if (joiner->join->words == 1)
        return cell->values;
    for (size_t i = 0; i < cell->count; i++)
        joiner->column[i] = (uint64_t)dp_join_turn(dp_bits_load(cell->values + 2 * i, 128), turn);
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

/* Puts a number of the cell into the one that is sorted by the numbers themselves. */
static bool set_aside(dp_joiner *joiner, const dp_cell *cell, size_t i) {
    dp_cell *aside = &joiner->cells[DP_JOIN_LEVELS];
    size_t words = joiner->join->words;
    if (!dp_cell_reserve(joiner, aside, aside->count + 1))
        return false;
    memcpy(aside->values + aside->count * words, cell->values + i * words, words * sizeof *aside->values);
    aside->positions[aside->count++] = cell->positions[i];
    return true;
}

/* The numbers of all buckets that are over. */
static bool sort_over(dp_joiner *joiner, const dp_cell *cell, int b, uint64_t chosen) {
    dp_cell *aside = &joiner->cells[DP_JOIN_LEVELS];
    aside->count = 0;
    for (size_t i = 0; i < cell->count; i++)
        if (is_over(&joiner->crowd, i) && !set_aside(joiner, cell, i))
            return false;
    return table_by_sort(joiner, aside, b, chosen);
}

static bool table_by_crowd(dp_joiner *joiner, const dp_cell *cell, const table *t) {
    dp_crowd *crowd = &joiner->crowd;
    if (!reserve_crowd(joiner, (size_t)1 << t->bits))
        return false;
    crowd->numbers = make_column(joiner, cell, t->window->turn);
    crowd->count = cell->count;
    crowd->shift = t->window->top - t->bits;
    crowd->width = t->bits;
    crowd->rotate = t->window->rotate;
    crowd->distance = joiner->join->distance;
    crowd->hits = joiner->hits;
    crowd->room = cell->count;
    size_t found = dp_crowd_kernel()(crowd);
    if (found == DP_CROWDED)
        return table_by_sort(joiner, cell, t->b, t->chosen);
    joiner->candidates += count_compared(crowd);
    for (size_t hit = 0; hit < found; hit++) {
        size_t i = joiner->hits[hit] >> 16, j = joiner->hits[hit] & 0xFFFF;
        if (!(crowd->over && is_over(crowd, i)) && !dp_join_check(joiner, cell, i, j, t->chosen))
            return false;
    }
    return crowd->over == 0 || sort_over(joiner, cell, t->b, t->chosen);
}

/* 32 bits of each number and its place in the cell, sorted by bucket. */
static void sort_rows(dp_joiner *joiner, const dp_cell *cell, const dp_join_window *window, int bits) {
    const uint64_t mask = ((uint64_t)1 << bits) - 1, *column = make_column(joiner, cell, window->turn);
    const int shift = window->top - bits, rotate = window->rotate, back = -window->rotate & 63;
    uint32_t *bounds = joiner->bounds;
    uint64_t *rows = joiner->sorted;
    memset(bounds, 0, (mask + 3) * sizeof *bounds);
    for (size_t i = 0; i < cell->count; i++)
        bounds[(column[i] >> shift & mask) + 2]++;
    for (size_t key = 2; key <= mask + 1; key++)
        bounds[key] += bounds[key - 1];
    for (size_t i = 0; i < cell->count; i++) {
        uint32_t word = (uint32_t)(column[i] >> rotate | column[i] << back);
        rows[bounds[(column[i] >> shift & mask) + 1]++] = (uint64_t)word << 32 | i;
    }
}

/* Sets aside what the rows kernel passes over, and counts what it compares. */
static bool look_at_bounds(dp_joiner *joiner, const dp_cell *cell, size_t buckets) {
    joiner->cells[DP_JOIN_LEVELS].count = 0;
    for (size_t key = 0; key < buckets; key++) {
        size_t from = joiner->bounds[key], count = joiner->bounds[key + 1] - from;
        if (count <= DP_ROWS_MOST)
            joiner->candidates += count * (count - 1) / 2;
        else
            for (size_t i = 0; i < count; i++)
                if (!set_aside(joiner, cell, (uint32_t)joiner->sorted[from + i]))
                    return false;
    }
    return true;
}

static bool table_by_rows(dp_joiner *joiner, const dp_cell *cell, const table *t) {
    dp_cell *aside = &joiner->cells[DP_JOIN_LEVELS];
    size_t buckets = (size_t)1 << t->bits;
    if (!reserve_bounds(joiner, buckets + 2))
        return false;
    sort_rows(joiner, cell, t->window, t->bits);
    dp_rows rows = {joiner->sorted, joiner->bounds, buckets, joiner->join->distance, 0, joiner->row_hits, ROW_HITS};
    while (rows.next < buckets) {
        size_t found = dp_rows_kernel()(&rows);
        for (size_t hit = 0; hit < found; hit++)
            if (!dp_join_check(joiner, cell, joiner->row_hits[hit] >> 32, (uint32_t)joiner->row_hits[hit], t->chosen))
                return false;
    }
    return look_at_bounds(joiner, cell, buckets) &&
           (aside->count == 0 || table_by_sort(joiner, aside, t->b, t->chosen));
}

bool dp_join_table(dp_joiner *joiner, const dp_cell *cell, int last, int b, uint64_t chosen) {
    const dp_join *join = joiner->join;
    const dp_join_window *window = &join->window[last][b];
    int bits = 1;
    while (bits < join->block[b].width && cell->count >> bits >= DP_BUCKET_LOAD)
        bits++;
    if (!dp_join_reserve(joiner, cell->count))
        return false;
    if (!window->crowd || cell->count >> bits > DP_ROWS_MOST / 2)
        return table_by_sort(joiner, cell, b, chosen);
    bool small = cell->count <= DP_CROWD_MOST && cell->count >> bits <= DP_BUCKET_LOAD;
    table t = {b, bits, chosen, window};
    return small ? table_by_crowd(joiner, cell, &t) : table_by_rows(joiner, cell, &t);
}
