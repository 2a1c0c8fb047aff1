/* two_emit.c - batches are done in any order, and their pairs are given out in the order of the stream.
 *
 * Whoever finishes a batch gives it out and those behind it that are done, unless another thread is at it. */
#include "index/two.h"

void dp_two_fail(dp_two *two, doppel_status status, const doppel_error *error) {
    pthread_mutex_lock(&two->order);
    if (two->status == DOPPEL_OK) {
        two->status = status;
        if (error)
            two->error = *error;
        else
            dp_fail(&two->error, status, "%s", doppel_status_name(status));
    }
    atomic_store(&two->over, true);
    pthread_cond_broadcast(&two->moved);
    pthread_mutex_unlock(&two->order);
}

/* Gives out what the result has; by the one thread that set `emitting`, without a lock. */
static bool emit(dp_two *two, dp_two_result *result) {
    const doppel_join_options *options = &two->options;
    doppel_status status = DOPPEL_OK;
    doppel_error error;
    if (result->count && options->pairs)
        status = options->pairs(result->pairs, result->count, options->user);
    if (status != DOPPEL_OK) {
        dp_fail(&error, status, "the callback that takes pairs says: %s", doppel_status_name(status));
        dp_two_fail(two, status, &error);
        return false;
    }
    two->counts.fingerprints += result->fingerprints;
    two->counts.pairs += result->found;
    two->counts.candidates += result->candidates;
    result->count = 0;
    result->fingerprints = result->found = result->candidates = 0;
    if (options->progress)
        options->progress(two->counts.fingerprints, two->total, options->user);
    return true;
}

dp_two_result *dp_two_begin(dp_two *two) {
    pthread_mutex_lock(&two->order);
    while (!two->over && two->next_read - two->next_emit >= two->result_count)
        pthread_cond_wait(&two->moved, &two->order);
    dp_two_result *result = two->over ? NULL : &two->results[two->next_read % two->result_count];
    if (result)
        result->sequence = two->next_read;
    pthread_mutex_unlock(&two->order);
    if (result && dp_stopped(two->options.stop)) {
        dp_two_fail(two, DOPPEL_ERROR_INTERRUPTED, NULL);
        return NULL;
    }
    return result;
}

bool dp_two_flush(dp_two *two, dp_two_result *result) {
    pthread_mutex_lock(&two->order);
    while (!two->over && (two->emitting || two->next_emit != result->sequence))
        pthread_cond_wait(&two->moved, &two->order);
    bool mine = !two->over;
    two->emitting = two->emitting || mine;
    pthread_mutex_unlock(&two->order);
    if (!mine)
        return false;
    bool given = emit(two, result);
    pthread_mutex_lock(&two->order);
    two->emitting = false;
    pthread_cond_broadcast(&two->moved);
    pthread_mutex_unlock(&two->order);
    return given;
}

/* The result whose turn it is, if it is done and all is well. Under `order`. */
static dp_two_result *next_done(const dp_two *two) {
    dp_two_result *next = &two->results[two->next_emit % two->result_count];
    return !two->over && next->done ? next : NULL;
}

void dp_two_finish(dp_two *two, dp_two_result *result) {
    pthread_mutex_lock(&two->order);
    result->done = true;
    if (!two->emitting) {
        two->emitting = true;
        for (dp_two_result *next; (next = next_done(two));) {
            pthread_mutex_unlock(&two->order);
            emit(two, next);
            pthread_mutex_lock(&two->order);
            next->done = false;
            two->next_emit++;
            pthread_cond_broadcast(&two->moved);
        }
        two->emitting = false;
        pthread_cond_broadcast(&two->moved);
    }
    pthread_mutex_unlock(&two->order);
}
