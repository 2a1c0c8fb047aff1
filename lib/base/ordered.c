/* ordered.c - results of threads, emitted in order (ordered.h).
 *
 * The thread that finishes a piece emits it and the finished ones after it, unless another thread is emitting: that one
 * will emit it. The lock is released while something is emitted; `emitting` keeps others out. */
#include "base/base.h"

#include <stdlib.h>

doppel_status dp_ordered_init(dp_ordered *ordered, size_t slots, dp_emit emit, void *user) {
    *ordered = (dp_ordered){.emit = emit, .user = user, .slots = slots};
    if (!(ordered->finished = calloc(slots, sizeof *ordered->finished)))
        return DOPPEL_ERROR_MEMORY;
    pthread_mutex_init(&ordered->lock, NULL);
    pthread_cond_init(&ordered->moved, NULL);
    return DOPPEL_OK;
}

doppel_status dp_ordered_end(dp_ordered *ordered, doppel_error *error) {
    if (!ordered->finished)
        return DOPPEL_OK;
    pthread_cond_destroy(&ordered->moved);
    pthread_mutex_destroy(&ordered->lock);
    free(ordered->finished);
    ordered->finished = NULL;
    if (ordered->status != DOPPEL_OK && error)
        *error = ordered->error;
    return ordered->status;
}

/* Records the first failure. Called under the lock. */
static void set_status(dp_ordered *ordered, doppel_status status, const doppel_error *error) {
    if (status == DOPPEL_OK || ordered->status != DOPPEL_OK)
        return;
    ordered->status = status;
    if (error && error->code != DOPPEL_OK)
        ordered->error = *error;
    else
        dp_fail(&ordered->error, status, "%s", doppel_status_name(status));
    atomic_store(&ordered->failed, true);
}

void dp_ordered_fail(dp_ordered *ordered, doppel_status status, const doppel_error *error) {
    pthread_mutex_lock(&ordered->lock);
    set_status(ordered, status, error);
    pthread_cond_broadcast(&ordered->moved);
    pthread_mutex_unlock(&ordered->lock);
}

bool dp_ordered_wait(dp_ordered *ordered, size_t *slot) {
    pthread_mutex_lock(&ordered->lock);
    while (ordered->status == DOPPEL_OK && ordered->taken - ordered->emitted >= ordered->slots)
        pthread_cond_wait(&ordered->moved, &ordered->lock);
    *slot = (size_t)(ordered->taken % ordered->slots);
    bool free = ordered->status == DOPPEL_OK;
    pthread_mutex_unlock(&ordered->lock);
    return free;
}

uint64_t dp_ordered_take(dp_ordered *ordered) {
    pthread_mutex_lock(&ordered->lock);
    uint64_t number = ordered->taken++;
    pthread_mutex_unlock(&ordered->lock);
    return number;
}

/* Emits what the next piece has. Called and left under the lock, with `emitting` set. */
static doppel_status emit_next(dp_ordered *ordered, bool finished) {
    doppel_error error = {0};
    size_t slot = (size_t)(ordered->emitted % ordered->slots);
    pthread_mutex_unlock(&ordered->lock);
    doppel_status status = ordered->emit(ordered->user, slot, finished, &error);
    pthread_mutex_lock(&ordered->lock);
    set_status(ordered, status, &error);
    return status;
}

doppel_status dp_ordered_flush(dp_ordered *ordered, uint64_t number) {
    pthread_mutex_lock(&ordered->lock);
    while (ordered->status == DOPPEL_OK && (ordered->emitting || ordered->emitted != number))
        pthread_cond_wait(&ordered->moved, &ordered->lock);
    doppel_status status = DOPPEL_ERROR_INTERRUPTED;
    if (ordered->status == DOPPEL_OK) {
        ordered->emitting = true;
        status = emit_next(ordered, false);
        ordered->emitting = false;
        pthread_cond_broadcast(&ordered->moved);
    }
    pthread_mutex_unlock(&ordered->lock);
    return status;
}

void dp_ordered_finish(dp_ordered *ordered, uint64_t number) {
    pthread_mutex_lock(&ordered->lock);
    ordered->finished[number % ordered->slots] = true;
    if (!ordered->emitting) {
        ordered->emitting = true;
        while (ordered->status == DOPPEL_OK && ordered->finished[ordered->emitted % ordered->slots]) {
            emit_next(ordered, true);
            ordered->finished[ordered->emitted++ % ordered->slots] = false;
            pthread_cond_broadcast(&ordered->moved);
        }
        ordered->emitting = false;
        pthread_cond_broadcast(&ordered->moved);
    }
    pthread_mutex_unlock(&ordered->lock);
}
