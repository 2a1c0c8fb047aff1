/* spool.c - an answer that is made before it can be sent. */
#include "server/spool.h"

#include "server/files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

spool *spool_create(const char *tmp) {
    spool *s = calloc(1, sizeof *s);
    if (s) {
        s->file = -1;
        s->tmp = tmp;
    }
    return s;
}

void spool_free(spool *s) {
    if (!s)
        return;
    if (s->file >= 0)
        close(s->file);
    if (s->total)
        atomic_fetch_sub(s->total, s->length);
    text_free(&s->head);
    free(s);
}

static bool write_file(spool *s, const char *bytes, size_t length) {
    if (s->file < 0 && (s->file = file_open_unnamed(s->tmp)) < 0)
        return false;
    return file_write(s->file, bytes, length);
}

/* Adds to the bytes that all spools hold; false: that would exceed their limit. */
static bool count(spool *s, size_t length) {
    if (!s->total || atomic_fetch_add(s->total, length) + length <= s->most || !s->most)
        return true;
    atomic_fetch_sub(s->total, length);
    return false;
}

void spool_write(spool *s, const char *bytes, size_t length) {
    if (s->failed)
        return;
    s->failed = s->full = !count(s, length);
    if (s->failed)
        return;
    s->length += length; /* what was counted is subtracted by spool_free, written or not */
    if (s->file < 0 && s->head.length + length <= SPOOL_MEMORY) {
        text_add(&s->head, bytes, length);
        s->failed = s->head.failed;
    } else {
        s->failed = !write_file(s, bytes, length);
    }
}

long spool_read(spool *s, uint64_t from, char *to, size_t length) {
    if (from < s->head.length) {
        size_t left = s->head.length - (size_t)from;
        length = length < left ? length : left;
        memcpy(to, s->head.data + from, length);
        return (long)length;
    }
    if (from >= s->length)
        return 0;
    return (long)pread(s->file, to, length, (off_t)(from - s->head.length));
}
