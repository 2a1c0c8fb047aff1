/* bodies.h - the body of a request, plain or compressed: decompressed as it arrives, a piece at a time, within limits.
 */
#ifndef SERVER_BODIES_H
#define SERVER_BODIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    bool started;              /* something has arrived */
    bool ended;                /* the compressed data is complete */
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

/* How a file is compressed, by its first BODY_BEGINNING bytes (all, where it has fewer), as dp_stream_open detects it.
 */
enum { BODY_BEGINNING = 10 };
body_coding body_coding_at(const char *bytes, size_t length);

/* How many bytes `packed` ones may decompress to, as body.max_ratio says. */
uint64_t body_most_unpacked(uint64_t packed, uint64_t max_ratio);

/* BODY_NO_MEMORY, or BODY_FINE. Free it in any case. */
body_result body_begin(body *b, body_coding coding);

/* Decompresses a piece, and gives the result to `take`, at most 64 KiB at a time; BODY_STOPPED if that returns false,
 * BODY_TOO_DENSE if the result is larger than max_ratio allows. */
body_result body_add(body *b, const char *bytes, size_t length,
                     bool (*take)(void *user, const char *bytes, size_t length), void *user);

/* Whether compressed data is complete at the end of the body. Nothing can be added afterwards. */
bool body_whole(body *b);

void body_free(body *b);

#endif
