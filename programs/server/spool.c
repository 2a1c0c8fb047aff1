/* spool.c - an answer that is made before it can be sent. */
#include "server/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

/* A file without a name, or one whose name is gone at once where the file system has no such files. */
static int open_file(const char *folder) {
    char path[4096];
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0 || snprintf(path, sizeof path, "%s/doppel-XXXXXX", folder) >= (int)sizeof path)
        return file;
    file = mkostemp(path, O_CLOEXEC);
    if (file >= 0)
        unlink(path);
    return file;
}

static bool write_file(spool *s, const char *bytes, size_t length) {
    if (s->file < 0 && (s->file = open_file(s->tmp)) < 0)
        return false;
    while (length) {
        ssize_t wrote = write(s->file, bytes, length);
        if (wrote < 0 && errno != EINTR)
            return false;
        bytes += wrote > 0 ? wrote : 0;
        length -= wrote > 0 ? (size_t)wrote : 0;
    }
    return true;
}

void spool_write(spool *s, const char *bytes, size_t length) {
    if (s->failed)
        return;
    if (s->file < 0 && s->head.length + length <= SPOOL_MEMORY) {
        text_add(&s->head, bytes, length);
        s->failed = s->head.failed;
    } else {
        s->failed = !write_file(s, bytes, length);
    }
    if (s->failed)
        return;
    s->length += length;
    if (s->total)
        atomic_fetch_add(s->total, length);
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
