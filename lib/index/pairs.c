/* pairs.c - the sink for pairs: buffers that grow, and spill as runs, which pairs_merge.c merges. */
#include "index/pairs.h"

#include <stdlib.h>

/* The first buffer of a thread, 48 KiB: a join that finds nothing pays nothing. */
#define FIRST_CAPACITY 4096
/* Offsets inside a buffer are 32 bits wide when it is sorted. */
#define MOST_SHARE ((size_t)1 << 31)

/* ---- init, add ---- */

doppel_status dp_pairs_init(dp_pairs *pairs, const dp_pairs_options *options, doppel_error *error) {
    *pairs = (dp_pairs){.options = *options};
    /* A buffer that is full stands twice in memory while it is sorted. */
    uint64_t share = options->memory / options->threads / (2 * sizeof(dp_pair));
    pairs->share = share < FIRST_CAPACITY ? FIRST_CAPACITY : share > MOST_SHARE ? MOST_SHARE : (size_t)share;
    pairs->buffers = calloc(options->threads, sizeof *pairs->buffers);
    if (!pairs->buffers) {
        pairs->options.threads = 0; /* a free does no harm */
        return dp_no_memory(error);
    }
    for (size_t i = 0; i < options->threads; i++)
        pairs->buffers[i].pairs = pairs;
    pthread_mutex_init(&pairs->lock, NULL);
    return DOPPEL_OK;
}

static void free_buffer(dp_pair_buffer *buffer) {
    free(buffer->records);
    free(buffer->scratch);
    buffer->records = buffer->scratch = NULL;
    buffer->count = buffer->capacity = 0;
}

void dp_pairs_free(dp_pairs *pairs) {
    for (size_t i = 0; i < pairs->options.threads; i++)
        free_buffer(&pairs->buffers[i]);
    free(pairs->buffers);
    free(pairs->runs);
    dp_scratch_close(&pairs->file);
    pthread_mutex_destroy(&pairs->lock);
}

/* Notes the first failure; gives false. */
static bool fail(dp_pairs *pairs, const doppel_error *error) {
    pthread_mutex_lock(&pairs->lock);
    if (pairs->status == DOPPEL_OK) {
        pairs->status = error->code;
        pairs->error = *error;
    }
    pthread_mutex_unlock(&pairs->lock);
    return false;
}

static bool fail_memory(dp_pairs *pairs) {
    doppel_error error;
    dp_no_memory(&error);
    return fail(pairs, &error);
}

/* The scratch is made once: a buffer is sorted when it has reached its share, and at last with what is left, which is
 * less or all there ever was. */
static bool sort_buffer(dp_pair_buffer *buffer) {
    if (buffer->count < 2)
        return true;
    if (!buffer->scratch)
        buffer->scratch = dp_big_alloc(buffer->count * sizeof *buffer->scratch);
    if (!buffer->scratch)
        return fail_memory(buffer->pairs);
    dp_pairs_sort(buffer->records, buffer->count, buffer->scratch);
    return true;
}

/* A place in the file for a run of so many; under the lock. */
static doppel_status place_run(dp_pairs *pairs, size_t count, dp_pair_run *run, doppel_error *error) {
    if (!pairs->file.open) {
        doppel_status status = dp_scratch_open(&pairs->file, pairs->options.tmp, error);
        if (status != DOPPEL_OK)
            return status;
    }
    if (!dp_reserve(&pairs->runs, &pairs->run_capacity, pairs->run_count + 1, sizeof *pairs->runs))
        return dp_no_memory(error);
    *run = (dp_pair_run){pairs->file.size, count};
    pairs->runs[pairs->run_count++] = *run;
    pairs->file.size += count * sizeof(dp_pair);
    return DOPPEL_OK;
}

static bool spill(dp_pair_buffer *buffer) {
    dp_pairs *pairs = buffer->pairs;
    doppel_error error;
    dp_pair_run run;
    if (!buffer->count)
        return true;
    if (dp_stopped(pairs->options.stop)) {
        dp_fail(&error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        return fail(pairs, &error);
    }
    if (!sort_buffer(buffer))
        return false;
    pthread_mutex_lock(&pairs->lock);
    doppel_status status = pairs->status == DOPPEL_OK ? place_run(pairs, buffer->count, &run, &error) : pairs->status;
    pthread_mutex_unlock(&pairs->lock);
    if (status == DOPPEL_OK)
        status = dp_scratch_write(&pairs->file, buffer->records, run.count * sizeof(dp_pair), run.at, &error);
    if (status != DOPPEL_OK)
        return fail(pairs, &error);
    buffer->count = 0;
    return true;
}

bool dp_pairs_make_room(dp_pair_buffer *buffer) {
    dp_pairs *pairs = buffer->pairs;
    if (buffer->capacity >= pairs->share)
        return spill(buffer);
    size_t more = buffer->capacity ? 2 * buffer->capacity : FIRST_CAPACITY;
    if (more > pairs->share)
        more = pairs->share;
    dp_pair *moved = realloc(buffer->records, more * sizeof *moved);
    if (!moved)
        return fail_memory(pairs);
    buffer->records = moved;
    buffer->capacity = more;
    return true;
}

/* ---- finish ---- */

static void settle_buffer(void *user, size_t thread) {
    dp_pairs *pairs = user;
    dp_pair_buffer *buffer = &pairs->buffers[thread];
    if (!pairs->file.open)
        sort_buffer(buffer);
    else if (spill(buffer))
        free_buffer(buffer);
}

doppel_status dp_pairs_finish(dp_pairs *pairs, doppel_status (*batch)(const doppel_pair *, size_t, void *), void *user,
                              uint64_t *given, doppel_error *error) {
    *given = 0;
    if (pairs->status == DOPPEL_OK)
        dp_run_threads(pairs->options.threads, settle_buffer, pairs);
    if (pairs->status == DOPPEL_OK)
        return dp_pairs_merge(pairs, batch, user, given, error);
    if (error)
        *error = pairs->error;
    return pairs->status;
}
