/* shim_log.c - writes down what is done to files below a folder: the environment variable TORTURE_ROOT names it,
 * TORTURE_LOG the log (log.h). Without them nothing is written.
 *
 * What goes past the functions of shim_files.c (streams, for one) is missing in the log; the replay of all of it is
 * compared with the files at the end. */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_FILES = 4096 };

/* What a descriptor is: a file (its object, from 1), a folder, or none of ours. */
static struct {
    uint64_t object;
    bool folder, synced, lock;
} descriptors[MOST_FILES];

/* Objects of inodes that are there. */
static struct { uint64_t inode, object; } objects[MOST_FILES];
static size_t object_count;
static uint64_t last_object;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_file = -1; /* -2: there is no log */
static char root[PATH_MAX];
static size_t root_length;

static void set_up(void) {
    const char *path = getenv("TORTURE_LOG"), *given = getenv("TORTURE_ROOT");
    log_file = -2;
    if (!path || !given || !realpath(given, root))
        return;
    root_length = strlen(root);
    log_file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log_file < 0)
        abort();
}

void shim_begin(void) {
    if (__atomic_load_n(&log_file, __ATOMIC_ACQUIRE) == -2)
        return;
    pthread_mutex_lock(&lock);
    if (log_file == -1)
        set_up();
    if (log_file < 0)
        pthread_mutex_unlock(&lock);
}

long shim_end(long result) {
    if (log_file >= 0) {
        int reason = errno;
        pthread_mutex_unlock(&lock);
        errno = reason;
    }
    return result;
}

static void put(log_record record, const void *bytes) {
    struct iovec parts[2] = {{&record, sizeof record}, {(void *)(uintptr_t)bytes, record.length}};
    int reason = errno;
    if (syscall(SYS_writev, log_file, parts, 2) != (long)(sizeof record + record.length))
        abort();
    errno = reason;
}

void shim_note(const void *bytes, size_t length) {
    shim_begin();
    if (log_file >= 0)
        put((log_record){.type = LOG_NOTE, .length = length}, bytes);
    shim_end(0);
}

/* ---- names ---- */

const char *shim_below(int folder, const char *path, char *to) {
    char link[64];
    size_t at = 0;
    if (log_file < 0)
        return NULL;
    if (path[0] != '/') {
        if (folder == AT_FDCWD)
            snprintf(link, sizeof link, "/proc/self/cwd");
        else
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, to, PATH_MAX - 1);
        if (length < 0)
            return NULL;
        at = (size_t)length;
        to[at++] = '/';
    }
    at += (size_t)snprintf(to + at, SHIM_PATH - at, "%s", path);
    while (at > 1 && to[at - 1] == '/')
        to[--at] = 0;
    if (strncmp(to, root, root_length) || (to[root_length] && to[root_length] != '/'))
        return NULL;
    return to[root_length] ? to + root_length + 1 : to + root_length;
}

void shim_named(log_type type, const char *path, const char *to) {
    char both[2 * SHIM_PATH];
    int length = to ? snprintf(both, sizeof both, "%s%c%s", path, 0, to) : snprintf(both, sizeof both, "%s", path);
    put((log_record){.type = type, .length = (uint64_t)length}, both);
}

/* ---- descriptors ---- */

static uint64_t object_of(uint64_t inode, bool made) {
    size_t i = 0;
    while (i < object_count && objects[i].inode != inode)
        i++;
    if (i == MOST_FILES)
        abort();
    if (i == object_count) {
        object_count++;
        made = true;
    }
    objects[i].inode = inode;
    if (made) /* the number of an inode that is gone is used again */
        objects[i].object = ++last_object;
    return objects[i].object;
}

static bool is_file(int number) {
    return log_file >= 0 && number >= 0 && number < MOST_FILES && descriptors[number].object &&
           !descriptors[number].folder;
}

void shim_opened(int number, const char *path, int flags, bool made) {
    struct stat about;
    if (number >= MOST_FILES || fstat(number, &about))
        abort();
    size_t length = strlen(path);
    descriptors[number].folder = S_ISDIR(about.st_mode);
    descriptors[number].synced = (flags & O_DSYNC) != 0; /* O_SYNC has that bit */
    descriptors[number].lock = length > 4 && !strcmp(path + length - 4, "lock");
    descriptors[number].object = descriptors[number].folder ? UINT64_MAX : object_of(about.st_ino, made);
    if (made)
        put((log_record){.type = LOG_CREATE, .object = descriptors[number].object, .length = length}, path);
    else if (flags & O_TRUNC)
        shim_resized(number, 0);
}

void shim_closed(int number) {
    if (log_file >= 0 && number >= 0 && number < MOST_FILES)
        descriptors[number].object = 0;
}

void shim_wrote(int number, const void *bytes, long length, off_t at) {
    if (!is_file(number) || length <= 0)
        return;
    put((log_record){.type = LOG_WRITE,
                     .synced = descriptors[number].synced,
                     .object = descriptors[number].object,
                     .offset = (uint64_t)at,
                     .length = (uint64_t)length},
        bytes);
}

void shim_resized(int number, off_t size) {
    if (is_file(number))
        put((log_record){.type = LOG_TRUNCATE, .object = descriptors[number].object, .offset = (uint64_t)size}, "");
}

void shim_synced(int number) {
    char whole[SHIM_PATH];
    if (is_file(number)) {
        put((log_record){.type = LOG_SYNC, .object = descriptors[number].object}, "");
    } else if (log_file >= 0 && number >= 0 && number < MOST_FILES && descriptors[number].object) {
        const char *path = shim_below(number, "", whole);
        if (path)
            shim_named(LOG_SYNC_FOLDER, path, NULL);
    }
}

/* A file that is written through a map cannot be followed. Locks may: they say nothing about what is stored. */
void shim_mapped(int number, int protection, int flags) {
    if (is_file(number) && !descriptors[number].lock && (protection & PROT_WRITE) && (flags & MAP_SHARED))
        put((log_record){.type = LOG_UNKNOWN, .length = 3}, "map");
}
