/* join.h - what the joins share: sources of fingerprints, and pairs in order.
 *
 * The joins themselves are in doppel.h: doppel_join (one_set.c), doppel_join_sets (two_sets.c), doppel_rotate
 * (rotate.c).
 *
 * A source: open, (settle,) read or next, close. An array is used without a copy. A file is read in place, any number
 * of times and by any number of threads. A callback (or a pipe) can be read only once: `next` reads it in order,
 * `settle` keeps it in memory, like an array, or in an unnamed file. */
#ifndef DP_JOIN_H
#define DP_JOIN_H

#include "hamming/hamming.h"

#include <pthread.h>

typedef struct dp_fingerprints {
    doppel_source given;
    int bits;
    size_t words;     /* 64-bit numbers per fingerprint: 1, or 2 beyond 64 bits */
    bool settled;     /* can be read anywhere, and `count` is known */
    uint64_t count;   /* fingerprints, once settled */
    uint64_t taken;   /* by `next` */
    int fd;           /* of the file or pipe; -1: none */
    bool pipe;        /* the path is no plain file */
    bool ended;       /* the callback or pipe has no more */
    uint64_t *kept;   /* what `settle` keeps in memory; then it is given.array, too */
    size_t kept_room; /* in fingerprints */
    dp_scratch spool; /* what it wrote */
} dp_fingerprints;

/* Bytes of a fingerprint. */
static inline size_t dp_fingerprints_item(const dp_fingerprints *source) {
    return source->words * sizeof(uint64_t);
}

/* How many fingerprints to read at once: 512 KiB (or twice that) keep the disk busy and stay in the cache. */
enum { DP_FINGERPRINTS_BATCH = 1 << 16 };

/* Errors: DOPPEL_ERROR_USAGE when not exactly one of array, path and callback is given (an array of none may be NULL),
 * or the bits are invalid; DOPPEL_ERROR_IO; DOPPEL_ERROR_INPUT when the size of the file is not a multiple. On an error
 * nothing is left open. `bits` is as the caller gave it, 0: 64. */
doppel_status dp_fingerprints_open(dp_fingerprints *source, const doppel_source *given, int bits, doppel_error *error);
void dp_fingerprints_close(dp_fingerprints *source);

typedef struct dp_fingerprints_part {
    uint64_t from;
    size_t count;
} dp_fingerprints_part;

/* The fingerprints from position `from` on, `count` of them, all within the count of a settled source. *got is the
 * array itself, or `room`, which has space for `count`. Any number of threads at once. Errors: DOPPEL_ERROR_IO,
 * DOPPEL_ERROR_INPUT for bits beyond the width (the message has the file and the position). */
doppel_status dp_fingerprints_read(const dp_fingerprints *source, dp_fingerprints_part part, uint64_t *room,
                                   const uint64_t **got, doppel_error *error);

/* The next fingerprints in turn, settled or not: *count is the room on input and the number read on output, 0 at the
 * end only. One thread at a time. */
doppel_status dp_fingerprints_next(dp_fingerprints *source, uint64_t *room, size_t *count, const uint64_t **got,
                                   doppel_error *error);

/* Where a callback or pipe is kept: in a part of the memory, and past that in a file in `tmp`. */
typedef struct dp_fingerprints_keeping {
    uint64_t memory; /* all there is, in bytes */
    const char *tmp;
    const volatile int *stop; /* may be NULL */
} dp_fingerprints_keeping;

/* Makes it readable anywhere and its count known: at once for arrays and files. `spool.size` says how many bytes were
 * written. */
doppel_status dp_fingerprints_settle(dp_fingerprints *source, const dp_fingerprints_keeping *keeping,
                                     doppel_error *error);

/* Bytes of what is kept in memory. */
uint64_t dp_fingerprints_kept_bytes(const dp_fingerprints *source);

/* Moves what is kept in memory to a file in `tmp`. */
doppel_status dp_fingerprints_spool(dp_fingerprints *source, const char *tmp, doppel_error *error);

/* ---- pairs: pairs.c ----
 *
 * Pairs are added in any order from several threads, and given out in order of (a, b): init, add ..., finish, free.
 *
 * Each thread adds to a buffer of its own, without a lock. A buffer that reaches its share of the memory is sorted and
 * written to an unnamed file as a run; finish sorts what is left, on all threads, and merges the runs. */

/* A pair as it is kept: 12 bytes. */
typedef struct dp_pair {
    uint32_t a, b, distance;
} dp_pair;

typedef struct dp_pairs_options {
    size_t threads;
    uint64_t memory;          /* bytes for all buffers, sorting included */
    const char *tmp;          /* as doppel_join_options has it */
    const volatile int *stop; /* may be NULL */
    bool unique;              /* a pair added several times is given once */
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
    dp_pair_buffer *buffers; /* one per thread */
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

/* Makes room for one more, by growing or by writing; false on an error, which finish reports. */
bool dp_pairs_make_room(dp_pair_buffer *buffer);

/* Adds a pair to the buffer of one thread, pairs->buffers[thread]; false on an error, which finish reports. */
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

#endif
