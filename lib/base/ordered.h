/* ordered.h - threads finish pieces of work in any order; their results are emitted in the order they were taken.
 *
 * Pieces are numbered from 0, and have a slot each, number modulo `slots`, for the caller's data of the piece. There
 * are more slots than threads (twice as many are enough), so that one slow piece does not stop the rest, and memory
 * stays bounded. A thread's loop; reading is the caller's, under its own lock:
 *
 *     lock(reading);
 *     bool more = dp_ordered_wait(&ordered, &slot) && read_next(&piece[slot]);
 *     if (more)
 *         number = dp_ordered_take(&ordered);
 *     unlock(reading);
 *     if (!more)
 *         return;
 *     work_on(&piece[slot]);                      dp_ordered_flush(&ordered, number) when it holds too much
 *     dp_ordered_finish(&ordered, number);        emits it and those after it that are finished
 *
 * `emit` is called by one thread at a time, in order, and without a lock. The first failure, of emit or given to
 * dp_ordered_fail, ends the work: nothing more is emitted, waits end. When all threads have returned, dp_ordered_end
 * returns the outcome. */
#ifndef DP_ORDERED_H
#define DP_ORDERED_H

#include "doppel.h"

#include <pthread.h>
#include <stdatomic.h>

/* Emits what the piece in a slot has; `finished`: all of it, so that the slot is free afterwards. A failure may fill
 * *error, which is cleared before; otherwise the status's name is the message. */
typedef doppel_status (*dp_emit)(void *user, size_t slot, bool finished, doppel_error *error);

typedef struct dp_ordered {
    dp_emit emit;
    void *user;
    size_t slots;
    pthread_mutex_t lock; /* protects what follows; never held while emitting */
    pthread_cond_t moved; /* some of it has changed */
    bool *finished;       /* by slot: waits to be emitted */
    uint64_t taken, emitted;
    bool emitting;
    doppel_status status; /* the first failure */
    doppel_error error;
    atomic_bool failed; /* there was a failure: for threads that work without the lock */
} dp_ordered;

/* Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_ordered_init(dp_ordered *ordered, size_t slots, dp_emit emit, void *user);

/* Waits until the slot of the next piece is free; false when the work is over. Until dp_ordered_take, no other thread
 * may call it. */
bool dp_ordered_wait(dp_ordered *ordered, size_t *slot);

/* Takes the piece whose slot was waited for; returns its number. */
uint64_t dp_ordered_take(dp_ordered *ordered);

/* Waits for the turn of a piece that is not finished, and emits what it has. Errors: what emit gives;
 * DOPPEL_ERROR_INTERRUPTED when the work was over before. */
doppel_status dp_ordered_flush(dp_ordered *ordered, uint64_t number);

/* The piece is finished: emits all that can be, unless another thread is emitting. */
void dp_ordered_finish(dp_ordered *ordered, uint64_t number);

/* Ends the work; the first failure counts. `error` may be NULL. */
void dp_ordered_fail(dp_ordered *ordered, doppel_status status, const doppel_error *error);

/* The first failure, if there was one; frees what `ordered` holds. */
doppel_status dp_ordered_end(dp_ordered *ordered, doppel_error *error);

static inline bool dp_ordered_over(const dp_ordered *ordered) {
    return atomic_load_explicit(&ordered->failed, memory_order_relaxed);
}

#endif
