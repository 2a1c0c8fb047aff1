/* body.h - a request's body as it comes: plain, gzip or zstd, unpacked a piece at a time. */
#ifndef SERVER_BODY_H
#define SERVER_BODY_H

#include "doppel.h"

typedef enum body_coding { CODING_PLAIN, CODING_GZIP, CODING_ZSTD, CODING_UNKNOWN } body_coding;

/* Zero is a plain body. */
typedef struct body {
    body_coding coding;
    void *state;
    char *room;                /* what was unpacked last */
    bool started;              /* something has come */
    bool ended;                /* the packed data is whole */
    uint64_t packed, unpacked; /* bytes so far */
    uint64_t max_ratio;        /* of them; 0: any. The first MiB that is unpacked does not count */
} body;

typedef enum body_result { BODY_FINE, BODY_BROKEN, BODY_TOO_DENSE, BODY_NO_MEMORY, BODY_STOPPED } body_result;

/* The coding of a Content-Encoding header; NULL: plain. */
body_coding body_coding_of(const char *name);

/* BODY_NO_MEMORY, or BODY_FINE. Free it in any case. */
body_result body_begin(body *b, body_coding coding);

/* Unpacks a piece, and gives what it holds to `take`, 64 KiB at a time at most; BODY_STOPPED when that gives false,
 * BODY_TOO_DENSE when more comes out than max_ratio allows. */
body_result body_add(body *b, const char *bytes, size_t length,
                     bool (*take)(void *user, const char *bytes, size_t length), void *user);

/* Whether packed data is whole at the end of the body. */
bool body_whole(const body *b);

void body_free(body *b);

#endif
