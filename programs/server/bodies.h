/* bodies.h - the body of a request as it comes (plain or compressed, decompressed a piece at a time), and an answer
 * that is made before it can be sent (a spool: the first part in memory, the rest in a file that has no name). */
#ifndef SERVER_BODIES_H
#define SERVER_BODIES_H

#include "common/text.h"
#include "doppel.h"

#include <stdatomic.h>

/* ---- the body of a request ---- */

/* CODING_BZIP2 and CODING_XZ are for files only: no Content-Encoding has them. */
typedef enum body_coding {
    CODING_PLAIN,
    CODING_GZIP,
    CODING_ZSTD,
    CODING_BZIP2,
    CODING_XZ,
    CODING_UNKNOWN
} body_coding;

/* Zero is a plain body. */
typedef struct body {
    body_coding coding;
    void *state;               /* of the decoder */
    char *room;                /* what was decompressed last */
    bool started;              /* something has come */
    bool ended;                /* the packed data is whole */
    uint64_t packed, unpacked; /* bytes so far */
    uint64_t max_ratio;        /* decompressed / compressed; 0: any. The first MiB of output does not count */
} body;

/* BODY_LARGE_WINDOW: decompressing it takes more memory than a body gets, 8 MiB for zstd and 66 MiB for xz. */
typedef enum body_result {
    BODY_FINE,
    BODY_BROKEN,
    BODY_TOO_DENSE,
    BODY_LARGE_WINDOW,
    BODY_NO_MEMORY,
    BODY_STOPPED
} body_result;

/* The coding of a Content-Encoding header; NULL: plain. */
body_coding body_coding_of(const char *name);

/* BODY_NO_MEMORY, or BODY_FINE. Free it in any case. */
body_result body_begin(body *b, body_coding coding);

/* Decompresses a piece, and gives what it holds to `take`, 64 KiB at a time at most; BODY_STOPPED when that returns
 * false, BODY_TOO_DENSE when more comes out than max_ratio allows. */
body_result body_add(body *b, const char *bytes, size_t length,
                     bool (*take)(void *user, const char *bytes, size_t length), void *user);

/* Whether compressed data is complete at the end of the body. Nothing can be added afterwards. */
bool body_whole(body *b);

void body_free(body *b);

/* ---- spools: written by one thread, then read by one ---- */

enum { SPOOL_MEMORY = 1 << 20 };

typedef struct spool {
    text_buffer head;
    int file; /* -1: none yet */
    uint64_t length;
    bool failed, full; /* full: it failed because all spools together would hold more than `most` bytes */
    const char *tmp;
    atomic_uint_fast64_t *total; /* bytes that all spools hold together; NULL: not counted */
    uint64_t most;               /* that they may; 0: any number, or `total` is checked by the caller */
} spool;

/* NULL: no memory. `tmp`: where the file goes; borrowed. */
spool *spool_create(const char *tmp);
void spool_free(spool *s);

/* After a failure nothing more is written, and `failed` is set. */
void spool_write(spool *s, const char *bytes, size_t length);

/* Reads up to `length` bytes from a place on; 0 at the end, -1 on failure. */
long spool_read(spool *s, uint64_t from, char *to, size_t length);

#endif
