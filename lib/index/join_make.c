/* join_make.c - what a join of one set works with: how it cuts, which part of the memory is for what, and all of it
 * made and freed. */
#include "index/join.h"

#include <stdlib.h>

/* ---- what to do ---- */

static void cut_blocks(dp_join *join) {
    int from = join->bits;
    for (int b = 0; b < join->blocks; b++) {
        int width = (from + join->blocks - b - 1) / (join->blocks - b);
        from -= width;
        join->block[b] = (dp_join_block){from, width, (((dp_bits)1 << width) - 1) << from};
    }
}

static void plan(dp_join *join) {
    int blocks = dp_plan_join(join->count, join->distance, join->bits);
    if (blocks <= join->distance + 1 || blocks > join->bits || blocks > DP_JOIN_BLOCKS)
        blocks = 0;
    if (blocks > join->distance + DP_JOIN_LEVELS)
        blocks = join->distance + DP_JOIN_LEVELS;
    join->blocks = blocks;
    join->shared = blocks ? blocks - join->distance : 0;
    cut_blocks(join);
    join->key_bits = dp_join_sorted_bits(join->count);
    join->total = join->count * (blocks ? 1 : 2);
    for (int pass = 0; blocks && pass <= join->distance; pass++)
        join->total += join->count * (uint64_t)(1 + blocks - pass);
}

static dp_join_size size_of(const dp_join *join) {
    return (dp_join_size){join->count, join->bits, join->distance, join->threads};
}

/* What a callback gave is held while there is room for it; where there is not even the least, it goes to a file. */
static doppel_status make_room(dp_join *join, doppel_error *error) {
    dp_join_size size = size_of(join);
    uint64_t held = dp_feed_held_bytes(&join->feed), need = (uint64_t)dp_join_fixed_bytes(&size) + DP_JOIN_LEAST;
    if (join->memory < need)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "too little memory: this join needs at least %llu MiB",
                       (unsigned long long)(need >> 20) + 1);
    if (join->memory - need < held)
        return dp_feed_spool(&join->feed, join->options.tmp, error);
    join->memory -= held;
    return DOPPEL_OK;
}

/* Shares the memory: what is fixed, lines for as many as fit, the rest for pairs, which is given. */
static uint64_t share_memory(dp_join *join) {
    dp_join_size size = size_of(join);
    uint64_t rest = join->memory - (uint64_t)dp_join_fixed_bytes(&size), most = rest / 4 * 3;
    uint64_t want = join->blocks ? (uint64_t)dp_join_line_bytes(&size) : 0, lines = want < most ? want : most;
    join->line_room = lines / sizeof(dp_line);
    return rest - lines;
}

/* ---- making and freeing ---- */

/* Lines begin where cache lines do. */
static dp_line *alloc_lines(size_t count) {
    const size_t big = (size_t)4 << 20; /* bytes: from there dp_big_alloc gives whole pages */
    size_t bytes = count * sizeof(dp_line);
    return bytes < big ? aligned_alloc(sizeof(dp_line), bytes) : dp_big_alloc(bytes);
}

static doppel_status make_pairs(dp_join *join, uint64_t memory, doppel_error *error) {
    bool twice = join->options.all; /* pairs of copies are sorted again */
    dp_pairs_options options = {join->threads, twice ? memory / 2 : memory, join->options.tmp, join->options.stop,
                                false};
    return join->keeps_pairs ? dp_pairs_init(&join->pairs, &options, error) : DOPPEL_OK;
}

static bool make_joiner(dp_join *join, size_t thread) {
    dp_joiner *joiner = &join->joiners[thread];
    *joiner = (dp_joiner){.join = join, .number = thread};
    joiner->open = alloc_lines((size_t)1 << join->key_bits);
    return joiner->open && dp_batch_init(joiner);
}

static doppel_status make_work(dp_join *join, doppel_error *error) {
    size_t keys = (size_t)1 << join->key_bits, passes = (size_t)join->distance + 1;
    join->joiners = calloc(join->threads, sizeof *join->joiners);
    join->marks = calloc((size_t)join->count / 64 + 1, sizeof *join->marks);
    join->counts = calloc(join->blocks ? join->threads * passes * keys : 1, sizeof *join->counts);
    join->starts = calloc(join->threads * keys, sizeof *join->starts);
    join->ends = calloc(join->threads * keys, sizeof *join->ends);
    join->lines = alloc_lines(join->line_room + 1);
    if (!join->joiners || !join->marks || !join->counts || !join->starts || !join->ends || !join->lines)
        return dp_no_memory(error);
    for (size_t thread = 0; thread < join->threads; thread++)
        if (!make_joiner(join, thread))
            return dp_no_memory(error);
    return DOPPEL_OK;
}

doppel_status dp_join_make(dp_join *join, doppel_error *error) {
    plan(join);
    doppel_status status = make_room(join, error);
    if (!status)
        status = make_pairs(join, share_memory(join), error);
    return status ? status : make_work(join, error);
}

static void free_joiner(dp_joiner *joiner) {
    dp_batch_free(&joiner->batch);
    free(joiner->open);
    for (int level = 0; level <= DP_JOIN_LEVELS; level++) {
        free(joiner->cells[level].values);
        free(joiner->cells[level].positions);
    }
    free(joiner->extra);
    free(joiner->heads);
    free(joiner->groups);
    free(joiner->cell_groups.entries);
    free(joiner->members);
    free(joiner->crowd.fills);
    free(joiner->crowd.slots);
    free(joiner->crowd.ids);
    free(joiner->column);
    free(joiner->sorted);
    free(joiner->ids);
    free(joiner->bounds);
    free(joiner->hits);
    free(joiner->row_hits);
}

void dp_join_free_work(dp_join *join) {
    for (size_t thread = 0; join->joiners && thread < join->threads; thread++)
        free_joiner(&join->joiners[thread]);
    free(join->joiners);
    free(join->window);
    free(join->counts);
    free(join->starts);
    free(join->ends);
    free(join->lines);
    free(join->marks);
    join->joiners = NULL;
    join->window = NULL;
    join->counts = join->starts = join->ends = NULL;
    join->lines = NULL;
    join->marks = NULL;
}
