/* newfile.c - files that are complete or absent: written beside their path, synced, then renamed into place.
 *
 * dp_newfile_create -> write to `number` -> dp_newfile_finish. dp_output_find resolves a path: links are followed, so
 * that a link's target is replaced and the link stays; a device, a pipe or a socket is never replaced but written to.
 * So are this process's own descriptors (/dev/stdout, /dev/fd/N), whatever they refer to: what was written to them
 * before stays. For those, dp_newfile writes to an unnamed file, as its callers seek and read back, and copies it at
 * the end. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Links followed at most, as in the kernel. */
enum { MOST_LINKS = 40 };

/* ---- where a path leads ---- */

/* The bytes of the folder part of a path, its last slash included. */
static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

doppel_status dp_fail_write(doppel_error *error, const char *path, int reason) {
    char folder[PATH_MAX];
    struct stat there;
    size_t length = folder_length(path);
    if (reason == ENOMEM)
        return dp_no_memory(error);
    if (reason == ENOENT && length > 1 && length < sizeof folder) {
        memcpy(folder, path, length - 1);
        folder[length - 1] = 0;
        if (stat(folder, &there) && errno == ENOENT)
            return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be written: the folder %s does not exist",
                              folder);
    }
    return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be written: %s", strerror(reason ? reason : EIO));
}

/* The number of the descriptor of this process that a path names, as /proc/self/fd/1 does; -1: none. */
static int own_descriptor(const char *path) {
    size_t length = folder_length(path);
    const char *name = path + length;
    char folder[PATH_MAX], *end;
    struct stat there, own;
    long number = strtol(name, &end, 10);
    if (!length || length >= sizeof folder || *name < '0' || *name > '9' || *end || number > INT_MAX)
        return -1;
    memcpy(folder, path, length);
    folder[length] = 0;
    if (stat(folder, &there) || stat("/proc/self/fd", &own))
        return -1;
    return there.st_dev == own.st_dev && there.st_ino == own.st_ino ? (int)number : -1;
}

/* What a link points to, as a path; NULL, and errno. */
static char *follow(const char *link) {
    char target[PATH_MAX];
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0)
        return NULL;
    size_t folder = *target == '/' ? 0 : folder_length(link);
    char *path = malloc(folder + (size_t)length + 1);
    if (!path)
        return NULL;
    memcpy(path, link, folder);
    memcpy(path + folder, target, (size_t)length);
    path[folder + (size_t)length] = 0;
    return path;
}

int dp_output_find(const char *path, char **place, int *number) {
    struct stat status;
    char *at = strdup(path);
    *place = NULL;
    *number = -1;
    for (int links = 0; at; links++) {
        int own = own_descriptor(at);
        bool there = !lstat(at, &status);
        if (own >= 0 || (there && !S_ISLNK(status.st_mode) && !S_ISREG(status.st_mode))) {
            *number = own >= 0 ? fcntl(own, F_DUPFD_CLOEXEC, 0) : open(at, O_WRONLY | O_CLOEXEC);
            int reason = *number < 0 ? errno : 0;
            free(at);
            return reason;
        }
        if (!there || !S_ISLNK(status.st_mode)) {
            *place = at;
            return 0;
        }
        char *next = links < MOST_LINKS ? follow(at) : NULL;
        int reason = links < MOST_LINKS ? errno : ELOOP;
        free(at);
        at = next;
        if (!at)
            return reason;
    }
    return ENOMEM;
}

/* ---- the file ---- */

/* Opens the file to write to; returns 0 or an errno. */
static int open_beside(dp_newfile *file) {
    dp_buffer beside = {0};
    /* The thread id, so that two threads writing to the same path do not collide. */
    if (!dp_buffer_printf(&beside, "%s.%ld.tmp", file->place, (long)gettid()) || !dp_buffer_add(&beside, "", 1)) {
        dp_buffer_free(&beside);
        return ENOMEM;
    }
    file->beside = beside.data;
    /* What has that name was left by a process that was killed, or is a link that must not be written through. */
    unlink(file->beside);
    file->number = open(file->beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return file->number < 0 ? errno : 0;
}

/* An unnamed file, to be copied at the end. */
static int open_nameless(dp_newfile *file) {
    FILE *nameless = tmpfile();
    if (!nameless)
        return errno;
    file->number = fcntl(fileno(nameless), F_DUPFD_CLOEXEC, 0);
    int reason = file->number < 0 ? errno : 0;
    fclose(nameless);
    return reason;
}

static void free_file(dp_newfile *file) {
    if (file->straight >= 0)
        close(file->straight);
    free(file->place);
    free(file->beside);
}

doppel_status dp_newfile_create(dp_newfile *file, const char *path, doppel_error *error) {
    *file = (dp_newfile){.number = -1, .straight = -1, .path = path};
    int reason = dp_output_find(path, &file->place, &file->straight);
    if (!reason)
        reason = file->place ? open_beside(file) : open_nameless(file);
    if (!reason)
        return DOPPEL_OK;
    free_file(file);
    return dp_fail_write(error, path, reason);
}

/* Copies the unnamed file to its destination; returns 0 or an errno. */
static int copy_out(const dp_newfile *file) {
    char piece[1 << 16];
    off_t at = 0;
    for (ssize_t got; (got = pread(file->number, piece, sizeof piece, at)) != 0;) {
        if (got < 0)
            return errno;
        at += got;
        for (ssize_t done = 0, part; done<got; done += part> 0 ? part : 0)
            if ((part = write(file->straight, piece + done, (size_t)(got - done))) < 0 && errno != EINTR)
                return errno;
    }
    return 0;
}

/* A name is durable only once its folder is synced; returns an errno, or 0. */
static int sync_folder(char *path) {
    char *slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = 0;
    int folder = open(slash ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A folder that can be written but not read, and a file system that cannot sync folders, are not errors. */
    if (folder < 0)
        return 0;
    int reason = fsync(folder) && errno != EINVAL ? errno : 0;
    close(folder);
    return reason;
}

doppel_status dp_newfile_finish(dp_newfile *file, int reason, doppel_error *error) {
    if (!reason && file->straight >= 0)
        reason = copy_out(file);
    else if (!reason && !file->synced && fsync(file->number))
        reason = errno ? errno : EIO;
    if (close(file->number) && !reason)
        reason = errno;
    if (!reason && file->beside && rename(file->beside, file->place))
        reason = errno ? errno : EIO;
    if (reason && file->beside)
        unlink(file->beside);
    else if (file->beside)
        reason = sync_folder(file->beside);
    doppel_status status = reason ? dp_fail_write(error, file->path, reason) : DOPPEL_OK;
    free_file(file);
    return status;
}
