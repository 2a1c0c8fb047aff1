/* two.h - a join of two sets at work: join_two.c sets it up and reads, two_check.c looks batches up, two_emit.c gives
 * the pairs out in the order of the stream. */
#ifndef DP_INDEX_TWO_H
#define DP_INDEX_TWO_H

#include "index/held.h"
#include "index/sieve.h"

#include <pthread.h>

/* What came of a batch and is not given out yet. */
typedef struct dp_two_result {
    uint64_t sequence; /* number of the batch */
    doppel_pair *pairs;
    size_t count, capacity;
    uint64_t fingerprints, found, candidates; /* to be counted */
    bool done;
} dp_two_result;

typedef struct dp_two {
    doppel_join_options options;
    size_t threads;
    dp_held held;
    dp_sieve sieve;
    dp_feed stream;
    uint64_t *ahead; /* what was read of a stream to see how long it is, and how much of that was used */
    size_t ahead_count, ahead_used;
    uint64_t total;        /* fingerprints in the stream; 0: not known */
    size_t most_pairs;     /* in a result */
    atomic_bool over;      /* there was a failure */
    pthread_mutex_t order; /* of what follows; nothing is read, looked up or given out under it */
    pthread_cond_t moved;
    dp_two_result *results; /* by sequence modulo their count */
    size_t result_count;
    uint64_t next_read, next_emit; /* sequences */
    bool emitting;
    doppel_status status; /* the first failure */
    doppel_error error;
    pthread_mutex_t reading;   /* before `order`: of the stream, `position` and next_read */
    uint64_t position;         /* of the next fingerprint to read */
    doppel_join_counts counts; /* by whoever is emitting */
} dp_two;

/* ---- two_emit.c ---- */

void dp_two_fail(dp_two *two, doppel_status status, const doppel_error *error);

/* Waits until there is a result for the next batch to read; NULL when it is over. Under `reading`. */
dp_two_result *dp_two_begin(dp_two *two);

/* A batch that has too many pairs gives out what it has, in its turn; false when it is over. */
bool dp_two_flush(dp_two *two, dp_two_result *result);

/* The batch is done; gives out all that can be. */
void dp_two_finish(dp_two *two, dp_two_result *result);

/* ---- two_check.c ---- */

/* What a thread works with. */
typedef struct dp_two_worker {
    dp_two *two;
    dp_sifter sifter;
    dp_held_finder finder;
    uint64_t *queries; /* finder.group of them, their numbers in the batch, and the parts in which they may be near */
    uint32_t *numbers;
    uint8_t *parts;
    uint64_t *keys, *scratch; /* to sort the pairs of one fingerprint */
    size_t key_capacity, scratch_capacity;
    uint64_t *room; /* for reading */
    dp_two_result *result;
    uint64_t first; /* position of the batch */
} dp_two_worker;

bool dp_two_worker_init(dp_two_worker *worker, dp_two *two);
void dp_two_worker_free(dp_two_worker *worker);

/* Looks the loaded batch up and adds its pairs to the result. */
void dp_two_check(dp_two_worker *worker);

#endif
