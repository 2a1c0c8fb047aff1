/* source.h - reads a doppel_source: open, (settle,) read or next, close.
 *
 * An array is given as it stands, without a copy. A file is read in place, as often and by as many threads as one
 * likes. A callback (or a pipe) comes only once: `next` takes it in turn, `settle` keeps it, in memory, and then it is
 * like any array, or in a nameless file, and then it is like any file. */
#ifndef DP_INDEX_SOURCE_H
#define DP_INDEX_SOURCE_H

#include "base/base.h"

typedef struct dp_feed {
    doppel_source source;
    int bits;
    size_t words;     /* 64-bit numbers a fingerprint: 1, or 2 beyond 64 bits */
    bool settled;     /* can be read anywhere, and `count` is known */
    uint64_t count;   /* fingerprints, once settled */
    uint64_t taken;   /* by `next` */
    int fd;           /* of the file or pipe; -1: none */
    bool pipe;        /* the path is no plain file */
    bool ended;       /* the callback or pipe has no more */
    uint64_t *held;   /* what `settle` keeps in memory; then it is source.array, too */
    size_t held_room; /* in fingerprints */
    dp_scratch spool; /* what it wrote */
} dp_feed;

/* Bytes of a fingerprint. */
static inline size_t dp_feed_item(const dp_feed *feed) {
    return feed->words * sizeof(uint64_t);
}

/* How many fingerprints to ask for at once: 512 KiB (or twice that) keep the disk busy and stay in the cache. */
enum { DP_FEED_BATCH = 1 << 16 };

/* Errors: DOPPEL_ERROR_USAGE when not exactly one of array, path and callback is given (an array of none may be NULL),
 * or the bits cannot be; DOPPEL_ERROR_IO; DOPPEL_ERROR_INPUT when the size of the file does not divide. On an error
 * nothing is left open. `bits` is as the caller gave it, 0: 64. */
doppel_status dp_feed_open(dp_feed *feed, const doppel_source *source, int bits, doppel_error *error);
void dp_feed_close(dp_feed *feed);

typedef struct dp_feed_part {
    uint64_t from;
    size_t count;
} dp_feed_part;

/* The fingerprints from position `from` on, `count` of them, all within the count of a settled source. *got is the
 * array itself, or `room`, which has room for `count`. Any number of threads at once. Errors: DOPPEL_ERROR_IO,
 * DOPPEL_ERROR_INPUT for bits beyond the width (the message tells file and position). */
doppel_status dp_feed_read(const dp_feed *feed, dp_feed_part part, uint64_t *room, const uint64_t **got,
                           doppel_error *error);

/* The next fingerprints in turn, settled or not: *count comes in as how many there is room for and goes out as how many
 * there are, 0 at the end only. One thread at a time. */
doppel_status dp_feed_next(dp_feed *feed, uint64_t *room, size_t *count, const uint64_t **got, doppel_error *error);

/* ---- source_keep.c ---- */

/* Where a callback or pipe is kept: in a part of the memory, and past that in a file in `tmp`. */
typedef struct dp_feed_keeping {
    uint64_t memory; /* all there is, in bytes */
    const char *tmp;
    const volatile int *stop; /* may be NULL */
} dp_feed_keeping;

/* Makes it readable anywhere and its count known: at once for arrays and files. `spool.size` tells what was written. */
doppel_status dp_feed_settle(dp_feed *feed, const dp_feed_keeping *keeping, doppel_error *error);

/* Bytes of what is kept in memory. */
uint64_t dp_feed_held_bytes(const dp_feed *feed);

/* Moves what is kept in memory to a file in `tmp`. */
doppel_status dp_feed_spool(dp_feed *feed, const char *tmp, doppel_error *error);

#endif
