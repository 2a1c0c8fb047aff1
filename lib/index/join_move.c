/* join_move.c - sorts a set by the first bits of one block into lines of memory.
 *
 * Each thread has a slice of the positions. How many of each key a slice has is counted once, for all passes; so every
 * thread knows where its lines of a key go, and the lines of a key stand in the order of the positions, slice by slice.
 * What does not fit into memory at once is moved in rounds, each for a range of keys. */
#include "index/join.h"

static void slice_of(const dp_join *join, size_t thread, uint64_t *from, uint64_t *to) {
    *from = join->count * thread / join->threads;
    *to = join->count * (thread + 1) / join->threads;
}

static void count_batch(const dp_join *join, const dp_batch *batch, int pass, uint32_t *counts) {
    int bits = dp_join_key_bits(join, pass), shift = join->block[pass].shift + join->block[pass].width - bits;
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    if (join->words == 1)
        for (size_t i = 0; i < batch->count; i++)
            counts[batch->values[i] >> shift & mask]++;
    else
        for (size_t i = 0; i < batch->count; i++)
            counts[(uint64_t)(dp_bits_load(batch->values + 2 * i, 128) >> shift) & mask]++;
}

void dp_join_count(void *given, size_t thread) {
    dp_join *join = given;
    dp_joiner *joiner = &join->joiners[thread];
    uint64_t from, to;
    slice_of(join, thread, &from, &to);
    dp_batch_start(&joiner->batch, from, to);
    while (dp_batch_next(joiner)) {
        for (int pass = 0; pass <= join->distance; pass++)
            count_batch(join, &joiner->batch, pass, dp_join_counts_of(join, thread, pass));
        if (!dp_join_advance(joiner, joiner->batch.count))
            return;
    }
}

void dp_join_plan_round(dp_join *join) {
    uint32_t all = (uint32_t)1 << dp_join_key_bits(join, join->pass), keys = 0;
    size_t lines = 0, per_line = join->words == 1 ? DP_LINE_NARROW : DP_LINE_WIDE;
    for (; join->first_key + keys < all; keys++) {
        size_t before = lines;
        for (size_t thread = 0; thread < join->threads; thread++) {
            join->starts[(thread << join->key_bits) + keys] = (uint32_t)lines;
            size_t count = dp_join_counts_of(join, thread, join->pass)[join->first_key + keys];
            lines += (count + per_line - 1) / per_line;
        }
        if (lines > join->line_room) {
            lines = before;
            break;
        }
    }
    join->keys = keys;
}

/* What the open lines still hold goes to memory too. */
static void flush_open(const dp_scatter *scatter, bool wide) {
    for (uint32_t key = 0; key < scatter->keys; key++) {
        dp_line *line = &scatter->open[key];
        if (wide ? line->wide.fill : line->narrow.fill)
            scatter->lines[scatter->next[key]++] = *line;
    }
}

void dp_join_move(void *given, size_t thread) {
    dp_join *join = given;
    dp_joiner *joiner = &join->joiners[thread];
    const dp_join_block *block = &join->block[join->pass];
    int bits = dp_join_key_bits(join, join->pass);
    uint32_t *next = join->ends + (thread << join->key_bits);
    memcpy(next, join->starts + (thread << join->key_bits), join->keys * sizeof *next);
    dp_scatter scatter = {
        block->shift + block->width - bits, bits, join->first_key, join->keys, joiner->open, next, join->lines};
    memset(joiner->open, 0, join->keys * sizeof *joiner->open);
    uint64_t from, to;
    slice_of(join, thread, &from, &to);
    dp_batch_start(&joiner->batch, from, to);
    dp_scatter64_fn move = join->words == 1 ? dp_scatter64_kernel() : dp_scatter128_kernel();
    while (dp_batch_next(joiner)) {
        move(&scatter, joiner->batch.values, joiner->batch.positions, joiner->batch.count);
        if (!dp_join_advance(joiner, joiner->batch.count * join->keys >> bits))
            return;
    }
    flush_open(&scatter, join->words == 2);
}
