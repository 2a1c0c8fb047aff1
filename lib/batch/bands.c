/* bands.c - candidates by bands of signatures (lib/index/bands.h): documents with the same key in some band stand in
 * one bucket.
 *
 * Keys are kept in blocks of DP_BAND_BLOCK rows, band after band, so that a band can be read by itself. Each band is
 * sorted by key on its own, on as many threads as there are: 16 bytes a row and thread. */
#include "batch/batch.h"

#include <pthread.h>
#include <stdlib.h>

/* What a thread sorts a band with, a row: entry, scratch and member. */
#define ROW_BYTES 20

/* ---- keys in blocks ---- */

/* The last block may have fewer rows: then its bands move together. */
static doppel_status write_block(doppel_batch *batch, size_t count, doppel_error *error) {
    size_t bands = (size_t)batch->stats.bands;
    for (size_t b = 1; b < bands && count < DP_BAND_BLOCK; b++)
        memmove(batch->block + b * count, batch->block + b * DP_BAND_BLOCK, count * sizeof *batch->block);
    return dp_spill_add(&batch->keys, batch->block, bands * count * sizeof *batch->block, error);
}

doppel_status dp_bands_add(doppel_batch *batch, uint32_t document, const uint32_t *keys, doppel_error *error) {
    size_t bands = (size_t)batch->stats.bands, at = batch->row_count % DP_BAND_BLOCK;
    if (!batch->block && !(batch->block = malloc(bands * DP_BAND_BLOCK * sizeof *batch->block)))
        return dp_no_memory(error);
    if (!dp_reserve(&batch->rows, &batch->row_room, batch->row_count + 1, sizeof *batch->rows))
        return dp_no_memory(error);
    for (size_t b = 0; b < bands; b++)
        batch->block[b * DP_BAND_BLOCK + at] = keys[b];
    batch->rows[batch->row_count++] = document;
    return at == DP_BAND_BLOCK - 1 ? write_block(batch, DP_BAND_BLOCK, error) : DOPPEL_OK;
}

doppel_status dp_bands_flush(doppel_batch *batch, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    if (batch->row_count % DP_BAND_BLOCK)
        status = write_block(batch, batch->row_count % DP_BAND_BLOCK, error);
    return status == DOPPEL_OK ? dp_spill_flush(&batch->keys, error) : status;
}

/* ---- buckets ---- */

typedef struct banding {
    doppel_batch *batch;
    dp_buckets *buckets;
    atomic_int next;
    pthread_mutex_t lock; /* of all below, and of the buckets */
    int done;
    doppel_status status;
    doppel_error *error;
} banding;

/* What a thread sorts with. */
typedef struct sorting {
    uint64_t *entry, *scratch; /* key << 32 | row */
    uint32_t *column, *member;
} sorting;

static void fail(banding *b, doppel_status status, const doppel_error *error) {
    pthread_mutex_lock(&b->lock);
    if (b->status == DOPPEL_OK) {
        b->status = status;
        if (b->error)
            *b->error = *error;
    }
    pthread_mutex_unlock(&b->lock);
}

static doppel_status load_band(const doppel_batch *batch, size_t band, sorting *s, doppel_error *error) {
    size_t bands = (size_t)batch->stats.bands;
    for (size_t from = 0; from < batch->row_count; from += DP_BAND_BLOCK) {
        size_t count = batch->row_count - from < DP_BAND_BLOCK ? batch->row_count - from : DP_BAND_BLOCK;
        uint64_t at = (from * bands + band * count) * sizeof *s->column;
        doppel_status status = dp_spill_read(&batch->keys, at, s->column, count * sizeof *s->column, error);
        if (status != DOPPEL_OK)
            return status;
        for (size_t i = 0; i < count; i++)
            s->entry[from + i] = (uint64_t)s->column[i] << 32 | (from + i);
    }
    return DOPPEL_OK;
}

/* Adds the stretches of equal keys, under the lock. */
static bool add_stretches(banding *b, const sorting *s) {
    const doppel_batch *batch = b->batch;
    size_t count = batch->row_count;
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && s->entry[to] >> 32 == s->entry[from] >> 32;)
            to++;
        if (to - from < 2)
            continue;
        for (size_t i = from; i < to; i++)
            s->member[i - from] = batch->rows[(uint32_t)s->entry[i]];
        if (!dp_buckets_add(b->buckets, s->member, to - from))
            return false;
    }
    return true;
}

static bool sort_band(banding *b, size_t band, sorting *s) {
    doppel_error error = {0};
    doppel_status status = load_band(b->batch, band, s, &error);
    if (status == DOPPEL_OK) {
        dp_sort64(s->entry, b->batch->row_count, s->scratch);
        pthread_mutex_lock(&b->lock);
        bool added = add_stretches(b, s);
        dp_batch_tell(b->batch, "candidates", (uint64_t)++b->done, (uint64_t)b->batch->stats.bands);
        pthread_mutex_unlock(&b->lock);
        if (!added)
            status = dp_no_memory(&error);
    }
    if (status != DOPPEL_OK)
        fail(b, status, &error);
    return status == DOPPEL_OK;
}

static void run(void *user, size_t thread) {
    banding *b = user;
    size_t rows = b->batch->row_count;
    (void)thread;
    sorting s = {dp_big_alloc(rows * 8 + 8), dp_big_alloc(rows * 8 + 8), malloc(DP_BAND_BLOCK * 4),
                 malloc(rows * 4 + 4)};
    if (!s.entry || !s.scratch || !s.column || !s.member) {
        doppel_error error = {0};
        fail(b, dp_no_memory(&error), &error);
    } else {
        for (int band; (band = atomic_fetch_add(&b->next, 1)) < b->batch->stats.bands;)
            if (dp_stopped(b->batch->input.stop) || !sort_band(b, (size_t)band, &s))
                break;
    }
    free(s.entry);
    free(s.scratch);
    free(s.column);
    free(s.member);
}

/* As many threads as there are bands, and as the memory that is allowed has room for. */
static size_t thread_count(const doppel_batch *batch) {
    uint64_t memory = batch->options.memory ? batch->options.memory : dp_memory_default();
    uint64_t room = memory / (batch->row_count * ROW_BYTES + 1) + 1;
    size_t threads = batch->threads, bands = (size_t)batch->stats.bands;
    threads = threads < bands ? threads : bands;
    return threads < room ? threads : (size_t)room;
}

doppel_status dp_bands_buckets(doppel_batch *batch, dp_buckets *buckets, doppel_error *error) {
    banding b = {.batch = batch, .buckets = buckets, .error = error};
    pthread_mutex_init(&b.lock, NULL);
    if (batch->row_count)
        dp_run_threads(thread_count(batch), run, &b);
    pthread_mutex_destroy(&b.lock);
    if (b.status == DOPPEL_OK && dp_stopped(batch->input.stop))
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    return b.status;
}
