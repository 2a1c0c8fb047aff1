/* decompress.h - members of gzip files and frames of zstd files, decompressed ahead of the reader by threads.
 *
 * A file is cut into pieces of equal size from the place where the reader stands, which is the start of a member. For
 * each piece a thread looks for the first place that may be a start, and decompresses from there all members that start
 * in the piece. That is a guess: the reader takes the bytes only if it stands exactly where they start, and every
 * member before was decompressed to its end. Otherwise it does the work itself, in order. So the bytes are the same as
 * without threads, and so are the errors: threads keep whole members only, what is damaged is left to the reader.
 *
 * dp_ahead_create, then at the start of a member dp_ahead_take until it gives NULL; dp_ahead_free. */
#ifndef DP_DECOMPRESS_H
#define DP_DECOMPRESS_H

#include "base/base.h"

/* How the work is cut. Results do not depend on it. */
typedef struct dp_ahead_sizes {
    size_t piece; /* bytes of the file */
    size_t most;  /* bytes that one piece may become; members beyond are left to the reader */
    size_t held;  /* bytes of finished pieces: no other one is begun beyond */
    size_t least; /* bytes of the rest of a file that is worth threads */
} dp_ahead_sizes;

extern const dp_ahead_sizes dp_ahead_usual;

typedef struct dp_ahead_file {
    int fd;        /* a regular file, read at places, so that its own position stays */
    bool zstd;     /* else gzip */
    uint64_t from; /* where a member starts */
    uint64_t size; /* of the file */
    int threads;
} dp_ahead_file;

/* Whole members. */
typedef struct dp_ahead_piece {
    uint64_t start, end; /* where they stand in the file; equal: none were found */
    dp_buffer out;
    int state;
} dp_ahead_piece;

typedef struct dp_ahead dp_ahead;

/* Starts the threads; NULL when there is no memory, or none starts: then there is just no help. */
dp_ahead *dp_ahead_create(const dp_ahead_file *file, const dp_ahead_sizes *sizes);

/* The members from `at` on, or NULL when they are not known. They stay until the next call. `at` never goes back. */
const dp_ahead_piece *dp_ahead_take(dp_ahead *ahead, uint64_t at);

/* Whether the guesses were wrong so often that there is no use in going on. */
bool dp_ahead_useless(const dp_ahead *ahead);

/* Ends the threads. NULL is fine. */
void dp_ahead_free(dp_ahead *ahead);

/* ---- what a thread does: decompress_members.c ---- */

typedef struct dp_members dp_members;

/* For one thread; NULL when there is no memory. */
dp_members *dp_members_create(const dp_ahead_file *file);
void dp_members_free(dp_members *members);

/* Fills the piece with the members that start in the file from `from` up to, not including, `to`: with as many as fit
 * into `most` bytes. */
void dp_members_read(dp_members *members, uint64_t from, uint64_t to, size_t most, dp_ahead_piece *piece);

#endif
