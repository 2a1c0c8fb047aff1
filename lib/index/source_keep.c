/* source_keep.c - keeps what can be read once only, a callback or a pipe: in memory, or past its part of the memory in
 * a nameless file. */
#include "index/source.h"

#include <stdlib.h>

/* The part of the memory for it. Behind 8 bytes of a fingerprint a join has 17 of lines and pairs (29 behind 16), so
 * that what is left still holds all lines at once; rotate copies it once, and has 24 for each thread. */
enum { HELD_PART = 4 };

uint64_t dp_feed_held_bytes(const dp_feed *feed) {
    return feed->held ? feed->count * dp_feed_item(feed) : 0;
}

/* The next batch, into `room`; *count is 0 at the end. */
static doppel_status take_batch(dp_feed *feed, const volatile int *stop, uint64_t *room, size_t *count,
                                doppel_error *error) {
    const uint64_t *got;
    *count = DP_FEED_BATCH;
    if (dp_stopped(stop))
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    return dp_feed_next(feed, room, count, &got, error);
}

/* Takes what there is into memory, as far as it may. */
static doppel_status hold(dp_feed *feed, const dp_feed_keeping *keeping, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    while (status == DOPPEL_OK && !feed->ended) {
        uint64_t need = feed->taken + DP_FEED_BATCH;
        size_t count;
        if (need > keeping->memory / HELD_PART / dp_feed_item(feed))
            return DOPPEL_OK;
        if (!dp_reserve(&feed->held, &feed->held_room, need, dp_feed_item(feed)))
            return dp_no_memory(error);
        status = take_batch(feed, keeping->stop, feed->held + feed->taken * feed->words, &count, error);
    }
    return status;
}

static doppel_status write_on(dp_feed *feed, const uint64_t *fingerprints, uint64_t count, doppel_error *error) {
    size_t bytes = (size_t)count * dp_feed_item(feed);
    doppel_status status = dp_scratch_write(&feed->spool, fingerprints, bytes, feed->spool.size, error);
    if (status == DOPPEL_OK)
        feed->spool.size += bytes;
    return status;
}

doppel_status dp_feed_spool(dp_feed *feed, const char *tmp, doppel_error *error) {
    uint64_t count = feed->settled ? feed->count : feed->taken;
    doppel_status status = dp_scratch_open(&feed->spool, tmp, error);
    if (status == DOPPEL_OK && feed->held)
        status = write_on(feed, feed->held, count, error);
    feed->source.array = NULL;
    free(feed->held);
    feed->held = NULL;
    return status;
}

/* What is left, into the file. */
static doppel_status spool_rest(dp_feed *feed, const dp_feed_keeping *keeping, doppel_error *error) {
    uint64_t *room = malloc(DP_FEED_BATCH * dp_feed_item(feed));
    doppel_status status = room ? DOPPEL_OK : dp_no_memory(error);
    while (status == DOPPEL_OK && !feed->ended) {
        size_t count;
        status = take_batch(feed, keeping->stop, room, &count, error);
        if (status == DOPPEL_OK)
            status = write_on(feed, room, count, error);
    }
    free(room);
    return status;
}

doppel_status dp_feed_settle(dp_feed *feed, const dp_feed_keeping *keeping, doppel_error *error) {
    if (feed->settled)
        return DOPPEL_OK;
    doppel_status status = hold(feed, keeping, error);
    if (status == DOPPEL_OK && !feed->ended) {
        status = dp_feed_spool(feed, keeping->tmp, error);
        if (status == DOPPEL_OK)
            status = spool_rest(feed, keeping, error);
    }
    if (status != DOPPEL_OK)
        return status;
    feed->source.array = feed->held;
    feed->count = feed->taken;
    feed->taken = 0;
    feed->settled = true;
    return DOPPEL_OK;
}
