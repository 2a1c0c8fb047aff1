/* pairs.h - pairs come in any order from several threads, and go out in order of (a, b): init, add ..., finish, free.
 *
 * Each thread adds to a buffer of its own, without a lock. A buffer that reaches its share of the memory is sorted and
 * written to a nameless file as a run; finish sorts what is left, on all threads, and merges the runs. */
#ifndef DP_INDEX_PAIRS_H
#define DP_INDEX_PAIRS_H

#include "base/base.h"

#include <pthread.h>

/* A pair as it is kept: 12 bytes. */
typedef struct dp_pair {
    uint32_t a, b, distance;
} dp_pair;

typedef struct dp_pairs_options {
    size_t threads;
    uint64_t memory;          /* bytes for all buffers, sorting included */
    const char *tmp;          /* as doppel_join_options has it */
    const volatile int *stop; /* may be NULL */
    bool unique;              /* a pair that was added several times goes out once */
} dp_pairs_options;

/* What one thread has added and not yet written. */
typedef struct dp_pair_buffer {
    struct dp_pairs *pairs;
    dp_pair *records;
    size_t count, capacity;
    dp_pair *scratch; /* to sort with */
    char apart[64];   /* keeps the next buffer off this one's cache line */
} dp_pair_buffer;

/* A sorted run in the file. */
typedef struct dp_pair_run {
    uint64_t at; /* in bytes */
    uint64_t count;
} dp_pair_run;

typedef struct dp_pairs {
    dp_pairs_options options;
    dp_pair_buffer *buffers; /* one a thread */
    size_t share;            /* pairs a buffer may hold */
    pthread_mutex_t lock;    /* of all below */
    dp_scratch file;         /* file.size is what was spilled */
    dp_pair_run *runs;
    size_t run_count, run_capacity;
    doppel_status status; /* the first failure */
    doppel_error error;
} dp_pairs;

/* On an error nothing is left to free. */
doppel_status dp_pairs_init(dp_pairs *pairs, const dp_pairs_options *options, doppel_error *error);
void dp_pairs_free(dp_pairs *pairs);

/* Makes room for one more, by growing or by writing; false on an error, which finish tells. */
bool dp_pairs_make_room(dp_pair_buffer *buffer);

/* Adds a pair to the buffer of one thread, pairs->buffers[thread]; false on an error, which finish tells. */
static inline bool dp_pairs_add(dp_pair_buffer *buffer, uint32_t a, uint32_t b, int distance) {
    if (buffer->count == buffer->capacity && !dp_pairs_make_room(buffer))
        return false;
    buffer->records[buffer->count++] = (dp_pair){a, b, (uint32_t)distance};
    return true;
}

/* Gives all pairs in order to `batch` (NULL: only counts them), several thousand at a time, from this thread; a status
 * other than DOPPEL_OK ends it. *given is how many, pairs->file.size how many bytes were written to `tmp`. Once. */
doppel_status dp_pairs_finish(dp_pairs *pairs, doppel_status (*batch)(const doppel_pair *, size_t, void *), void *user,
                              uint64_t *given, doppel_error *error);

/* pairs_merge.c: what finish does once every buffer is sorted, or all are written to the file. */
doppel_status dp_pairs_merge(dp_pairs *pairs, doppel_status (*batch)(const doppel_pair *, size_t, void *), void *user,
                             uint64_t *given, doppel_error *error);

/* pairs_sort.c: sorts by (a, b), in linear time; `scratch` has room for as many. */
void dp_pairs_sort(dp_pair *records, size_t count, dp_pair *scratch);

#endif
