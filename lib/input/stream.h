/* stream.h - the bytes of one file, decompressed: open, read ..., close.
 *
 * gzip, zstd, bzip2 and xz are recognised by their first bytes, whatever the name; files made of several members,
 * frames or streams read as one. A stream keeps its buffers from one file to the next. */
#ifndef DP_STREAM_H
#define DP_STREAM_H

#include "base/base.h"

/* ---- members decompressed ahead of the reader: ahead.c ---- */

/* How the work of decompressing ahead is cut. Results do not depend on it. */
typedef struct dp_ahead_sizes {
    size_t piece; /* bytes of the file */
    size_t most;  /* bytes that one piece may become; members beyond are left to the reader */
    size_t held;  /* bytes of finished pieces for each thread: no other one is begun beyond */
    size_t least; /* bytes of the rest of a file that is worth threads */
} dp_ahead_sizes;

/* What is to be decompressed ahead. */
typedef struct dp_ahead_file {
    int fd;        /* a regular file, read by pread, so that its own position is unchanged */
    bool zstd;     /* else gzip */
    uint64_t from; /* where a member starts */
    uint64_t size; /* of the file */
    int threads;
} dp_ahead_file;

/* Whole members. */
typedef struct dp_ahead_piece {
    uint64_t start, end; /* where they stand in the file; equal: none were found */
    dp_buffer out;
    int state; /* for ahead.c alone */
} dp_ahead_piece;

typedef struct dp_ahead dp_ahead;

/* Starts the threads; without any the caller's own does their work. `sizes` NULL: the usual. NULL when too little of
 * the file is left, or there is no memory: then the reader works alone. The calls are for one thread. */
dp_ahead *dp_ahead_create(const dp_ahead_file *file, const dp_ahead_sizes *sizes);
/* The members from `at` on, or NULL when they are not known. They are valid until the next call. `at` never goes back.
 */
const dp_ahead_piece *dp_ahead_take(dp_ahead *ahead, uint64_t at);
/* Whether the guesses were wrong so often that it is not worth continuing. */
bool dp_ahead_is_useless(const dp_ahead *ahead);
/* Ends the threads. NULL is fine. */
void dp_ahead_free(dp_ahead *ahead);

/* ---- the stream: stream.c ---- */

typedef struct dp_stream {
    int fd;       /* -1: closed */
    bool regular; /* a plain file, not a pipe or a terminal */
    bool named;   /* not stdin */
    bool failed;  /* `failure` says why reading ended */
    char failure[160];
    uint64_t raw_bytes;           /* read so far, as they stand in the file */
    uint64_t size;                /* of a regular file when it was opened, else 0 */
    int64_t changed;              /* when it was changed last by then, in nanoseconds since 1970 */
    const volatile int *stop;     /* ends a wait for a pipe; may be NULL */
    const struct dp_codec *codec; /* how it is compressed; NULL: it is not */
    uint8_t *raw;                 /* read ahead of decompression */
    size_t raw_start, raw_end;    /* what of it is unused */
    bool raw_done;                /* the file has no more */
    bool inside;                  /* within a member or frame: an end here is too early */
    bool at_end;                  /* of compressed data */
    struct z_stream_s *gzip;      /* kept for the next file */
    struct ZSTD_DCtx_s *zstd;     /* the same */
    void *bzip2, *xz;             /* the same: a bz_stream, an lzma_stream */
    bool full;                    /* the output filled all there was: the decoder may hold more */
    size_t zstd_hint;             /* how much input it asks for */

    /* This many threads may decompress the members or frames of big files ahead, from the next opening on: set by the
     * caller; with 0 or 1 the reader itself. The bytes and the failures are the same, except that more or less of a
     * damaged zstd block may be given. gzip data of one member, and a zstd file of one frame, can only be read from
     * start to end: there threads do not help. */
    int threads;
    const dp_ahead_sizes *ahead_sizes; /* NULL: the usual */
    bool alone;                        /* threads do not help with this file */
    dp_ahead *ahead;                   /* NULL: not begun */
    const dp_ahead_piece *piece;       /* given out next; NULL: none */
    size_t piece_used;
} dp_stream;

static inline void dp_stream_init(dp_stream *stream, const volatile int *stop) {
    *stream = (dp_stream){.fd = -1, .stop = stop};
}

/* Opens a path, or stdin for "-"; false, with `failure`, on failure. */
bool dp_stream_open(dp_stream *stream, const char *path);

/* Reads up to `room` bytes (at least 1). Gives 0 at the end or after a failure; what came before it is good. */
size_t dp_stream_read(dp_stream *stream, char *to, size_t room);

/* Whether a read would give something at once. Always true for plain files. */
bool dp_stream_ready(const dp_stream *stream);

/* Whether the file can be read at any position, by its name: a regular file, not compressed, and not stdin, which
 * cannot be opened again, nor has it been read from its start for certain. */
bool dp_stream_has_positions(const dp_stream *stream);

/* Ends this file, keeps the buffers. */
void dp_stream_close(dp_stream *stream);

void dp_stream_free(dp_stream *stream);

#endif
