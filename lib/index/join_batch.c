/* join_batch.c - the fingerprints of a slice in batches that stay in the cache: read, reordered, without known copies.
 */
#include "index/join.h"

#include <stdlib.h>

bool dp_batch_init(dp_joiner *joiner) {
    size_t words = joiner->join->words;
    dp_batch *batch = &joiner->batch;
    batch->room = joiner->join->feed.source.array ? NULL : dp_big_alloc(DP_FEED_BATCH * words * sizeof(uint64_t));
    batch->values = malloc(DP_BATCH * words * sizeof(uint64_t));
    batch->positions = malloc(DP_BATCH * sizeof(uint32_t));
    return (batch->room || joiner->join->feed.source.array) && batch->values && batch->positions;
}

void dp_batch_free(dp_batch *batch) {
    free(batch->room);
    free(batch->values);
    free(batch->positions);
}

void dp_batch_start(dp_batch *batch, uint64_t from, uint64_t to) {
    batch->at = from;
    batch->end = to;
    batch->left = 0;
}

/* Moves fingerprints from .. to - 1 of the batch down to `at`. */
static void keep(const dp_join *join, dp_batch *batch, size_t at, size_t from, size_t to) {
    size_t words = join->words;
    if (at == from)
        return;
    memmove(batch->values + at * words, batch->values + from * words, (to - from) * words * sizeof *batch->values);
    memmove(batch->positions + at, batch->positions + from, (to - from) * sizeof *batch->positions);
}

/* Leaves out what is marked as a copy: what stands between two copies moves as one. */
static void drop_copies(const dp_join *join, dp_batch *batch, uint64_t first) {
    size_t kept = 0, start = 0;
    uint64_t end = first + batch->count;
    for (uint64_t at = first / 64 * 64; at < end; at += 64) {
        uint64_t marks = atomic_load_explicit(&join->marks[at / 64], memory_order_relaxed);
        for (; marks; marks &= marks - 1) {
            uint64_t copy = at + (uint64_t)__builtin_ctzll(marks);
            if (copy < first || copy >= end)
                continue;
            keep(join, batch, kept, start, (size_t)(copy - first));
            kept += (size_t)(copy - first) - start;
            start = (size_t)(copy - first) + 1;
        }
    }
    keep(join, batch, kept, start, batch->count);
    batch->count = kept + batch->count - start;
}

bool dp_batch_next(dp_joiner *joiner) {
    dp_join *join = joiner->join;
    dp_batch *batch = &joiner->batch;
    if (batch->at == batch->end && !batch->left)
        return false;
    if (!batch->left) {
        doppel_error error;
        uint64_t rest = batch->end - batch->at;
        size_t count = rest < DP_FEED_BATCH ? (size_t)rest : DP_FEED_BATCH;
        doppel_status status =
            dp_feed_read(&join->feed, (dp_feed_part){batch->at, count}, batch->room, &batch->got, &error);
        if (status)
            return dp_join_fail(join, status, &error);
        batch->left = count;
        batch->at += count;
    }
    uint64_t from = batch->at - batch->left;
    batch->count = batch->left < DP_BATCH ? batch->left : DP_BATCH;
    dp_order_apply_many(&join->order, batch->got, batch->count, batch->values);
    batch->got += batch->count * join->words;
    batch->left -= batch->count;
    for (size_t i = 0; i < batch->count; i++)
        batch->positions[i] = (uint32_t)(from + i);
    if (join->has_copies)
        drop_copies(join, batch, from);
    return true;
}
