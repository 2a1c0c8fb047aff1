/* files.c - what the server has on disk. */
#include "server/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

bool file_write(int file, const char *bytes, size_t length) {
    while (length) {
        ssize_t wrote = write(file, bytes, length);
        if (wrote < 0 && errno != EINTR)
            return false;
        bytes += wrote > 0 ? wrote : 0;
        length -= wrote > 0 ? (size_t)wrote : 0;
    }
    return true;
}

bool file_write_at(int file, const void *bytes, size_t length, uint64_t at) {
    const char *from = bytes;
    while (length) {
        ssize_t wrote = pwrite(file, from, length, (off_t)at);
        if (wrote < 0 && errno != EINTR)
            return false;
        size_t done = wrote > 0 ? (size_t)wrote : 0;
        from += done;
        at += done;
        length -= done;
    }
    return true;
}

bool file_read_at(int file, void *bytes, size_t length, uint64_t at) {
    char *to = bytes;
    while (length) {
        ssize_t got = pread(file, to, length, (off_t)at);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        size_t done = got > 0 ? (size_t)got : 0;
        to += done;
        at += done;
        length -= done;
    }
    return true;
}

/* Where the file system has no such files (O_TMPFILE), it is one whose name is removed at once. */
int file_open_unnamed(const char *folder) {
    char *path;
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0 || asprintf(&path, "%s/doppel-XXXXXX", folder) < 0)
        return file;
    file = mkostemp(path, O_CLOEXEC);
    if (file >= 0)
        unlink(path);
    free(path);
    return file;
}
