/* spool.h - an answer that is made before it can be sent: its first SPOOL_MEMORY bytes in memory, the rest in a file
 * without a name. Written by one thread, then read by one. */
#ifndef SERVER_SPOOL_H
#define SERVER_SPOOL_H

#include "common/text.h"

#include <stdatomic.h>

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
