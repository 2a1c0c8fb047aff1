/* stream.h - the bytes of one file, decompressed: open, read ..., close.
 *
 * gzip, zstd, bzip2 and xz are recognised by their first bytes, whatever the name; files made of several members,
 * frames or streams read as one. A stream keeps its buffers from one file to the next. */
#ifndef DP_STREAM_H
#define DP_STREAM_H

#include "base/base.h"

/* How the work of decompressing ahead is cut. Results do not depend on it. */
typedef struct dp_ahead_sizes {
    size_t piece; /* bytes of the file */
    size_t most;  /* bytes that one piece may become; members beyond are left to the reader */
    size_t held;  /* bytes of finished pieces for each thread: no other one is begun beyond */
    size_t least; /* bytes of the rest of a file that is worth threads */
} dp_ahead_sizes;

typedef struct dp_stream {
    int fd;       /* -1: closed */
    bool regular; /* a plain file, not a pipe or a terminal */
    bool failed;  /* `failure` says why reading ended */
    char failure[160];
    uint64_t raw_bytes;        /* read so far, as they stand in the file */
    uint64_t size;             /* of a regular file when it was opened, else 0 */
    int64_t changed;           /* when it was changed last by then, in nanoseconds since 1970 */
    const volatile int *stop;  /* ends a wait for a pipe; may be NULL */
    int format;                /* plain, or how it is compressed */
    uint8_t *raw;              /* read ahead of decompression */
    size_t raw_start, raw_end; /* what of it is unused */
    bool raw_done;             /* the file has no more */
    bool inside;               /* within a member or frame: an end here is too early */
    bool at_end;               /* of compressed data */
    struct z_stream_s *gzip;   /* kept for the next file */
    struct ZSTD_DCtx_s *zstd;  /* the same */
    void *bzip2, *xz;          /* the same: a bz_stream, an lzma_stream */
    bool full;                 /* the output filled all there was: the decoder may hold more */
    size_t zstd_hint;          /* how much input it asks for */

    /* This many threads may decompress the members or frames of big files ahead, from the next opening on: set by the
     * caller; with 0 or 1 the reader itself. The bytes and the failures are the same, but that of a damaged zstd block
     * more or less may come. gzip data of one member, and a zstd file of one frame, can only be read from start to end:
     * there threads do not help. */
    int threads;
    const dp_ahead_sizes *ahead_sizes; /* NULL: the usual */
    bool alone;                        /* there is nothing to be had from threads */
    struct dp_ahead *ahead;            /* NULL: not begun */
    const struct ahead_piece *piece;   /* given out next; NULL: none */
    size_t piece_used;
} dp_stream;

static inline void dp_stream_init(dp_stream *stream, const volatile int *stop) {
    *stream = (dp_stream){.fd = -1, .stop = stop};
}

/* Opens a path, or stdin for "-"; false, with `failure`, when that cannot be. */
bool dp_stream_open(dp_stream *stream, const char *path);

/* Reads up to `room` bytes (at least 1). Gives 0 at the end or after a failure; what came before it is good. */
size_t dp_stream_read(dp_stream *stream, char *to, size_t room);

/* Whether a read would give something at once. Always true for plain files. */
bool dp_stream_ready(const dp_stream *stream);

/* Whether it is a regular file that is not compressed: its bytes come as they stand in the file. */
bool dp_stream_is_plain(const dp_stream *stream);

/* Ends this file, keeps the buffers. */
void dp_stream_close(dp_stream *stream);

void dp_stream_free(dp_stream *stream);

#endif
