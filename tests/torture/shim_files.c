/* shim_files.c - takes the place of the C library's functions on files. Each asks whether it is to fail, does what it
 * is for by a system call, and has that written down. */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- opening and closing ---- */

static int open_at(int folder, const char *path, int flags, va_list rest) {
    char whole[SHIM_PATH];
    struct stat about;
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    if (shim_refuses(FAULT_OPEN))
        return -1;
    shim_begin();
    const char *name = shim_below(folder, path, whole);
    bool there = name && !fstatat(folder, path, &about, 0);
    int number = (int)syscall(SYS_openat, folder, path, flags, mode);
    shim_closed(number);
    if (number >= 0 && name)
        shim_opened(number, name, flags, !there);
    return (int)shim_end(number);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int number = open_at(AT_FDCWD, path, flags, rest);
    va_end(rest);
    return number;
}

int openat(int folder, const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int number = open_at(folder, path, flags, rest);
    va_end(rest);
    return number;
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int folder, const char *path, int flags, ...) __attribute__((alias("openat")));

int close(int number) {
    shim_begin();
    shim_closed(number);
    return (int)shim_end(syscall(SYS_close, number));
}

/* ---- writing ---- */

/* How much of `length` is written: half of it, when that is what is to fail. */
static size_t shortened(size_t length) {
    return length > 1 && shim_refuses(FAULT_SHORT) ? length / 2 : length;
}

static ssize_t write_at(int number, const void *bytes, size_t length, off_t at) {
    long done = syscall(SYS_pwrite64, number, bytes, length, at);
    shim_wrote(number, bytes, done, at);
    return shim_end(done);
}

ssize_t pwrite(int number, const void *bytes, size_t length, off_t at) {
    if (shim_refuses(FAULT_WRITE))
        return -1;
    shim_begin();
    return write_at(number, bytes, shortened(length), at);
}

ssize_t pwrite64(int number, const void *bytes, size_t length, off_t at) __attribute__((alias("pwrite")));

ssize_t write(int number, const void *bytes, size_t length) {
    if (shim_refuses(FAULT_WRITE))
        return -1;
    shim_begin();
    long done = syscall(SYS_write, number, bytes, shortened(length));
    int reason = errno;
    off_t behind = lseek(number, 0, SEEK_CUR); /* also where it appends */
    if (behind >= 0)
        shim_wrote(number, bytes, done, behind - done);
    errno = reason;
    return shim_end(done);
}

/* Several pieces, as one. */
static ssize_t write_pieces(int number, const struct iovec *pieces, int count, off_t at) {
    size_t length = 0, filled = 0;
    if (shim_refuses(FAULT_WRITE))
        return -1;
    for (int i = 0; i < count; i++)
        length += pieces[i].iov_len;
    char *whole = mmap(NULL, length + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED)
        return -1;
    for (int i = 0; i < count; filled += pieces[i++].iov_len)
        memcpy(whole + filled, pieces[i].iov_base, pieces[i].iov_len);
    shim_begin();
    ssize_t done = write_at(number, whole, shortened(length), at);
    int reason = errno;
    munmap(whole, length + 1);
    errno = reason;
    return done;
}

ssize_t pwritev(int number, const struct iovec *pieces, int count, off_t at) {
    return write_pieces(number, pieces, count, at);
}

ssize_t pwritev64(int number, const struct iovec *pieces, int count, off_t at) __attribute__((alias("pwritev")));

ssize_t writev(int number, const struct iovec *pieces, int count) {
    off_t at = lseek(number, 0, SEEK_CUR);
    if (at < 0) /* a pipe */
        return syscall(SYS_writev, number, pieces, count);
    ssize_t done = write_pieces(number, pieces, count, at);
    if (done > 0)
        lseek(number, at + done, SEEK_SET);
    return done;
}

/* ---- sizes ---- */

int ftruncate(int number, off_t size) {
    if (shim_refuses(FAULT_SIZE))
        return -1;
    shim_begin();
    int done = (int)syscall(SYS_ftruncate, number, size);
    if (!done)
        shim_resized(number, size);
    return (int)shim_end(done);
}

int ftruncate64(int number, off_t size) __attribute__((alias("ftruncate")));

int fallocate(int number, int mode, off_t at, off_t length) {
    struct stat about;
    if (shim_refuses(FAULT_SIZE))
        return -1;
    shim_begin();
    int done = (int)syscall(SYS_fallocate, number, mode, at, length);
    if (!done && !fstat(number, &about))
        shim_resized(number, about.st_size);
    return (int)shim_end(done);
}

int posix_fallocate(int number, off_t at, off_t length) {
    return fallocate(number, 0, at, length) ? errno : 0;
}

/* ---- syncing ---- */

static int sync_by(long call, int number) {
    if (shim_refuses(FAULT_SYNC))
        return -1;
    shim_begin();
    int done = (int)syscall(call, number);
    if (!done)
        shim_synced(number);
    return (int)shim_end(done);
}

int fsync(int number) {
    return sync_by(SYS_fsync, number);
}

int fdatasync(int number) {
    return sync_by(SYS_fdatasync, number);
}

int msync(void *at, size_t length, int flags) {
    return shim_refuses(FAULT_SYNC) ? -1 : (int)syscall(SYS_msync, at, length, flags);
}

/* ---- names ---- */

static int change_name(log_type type, int folder, const char *path, int flags) {
    char whole[SHIM_PATH];
    if (shim_refuses(FAULT_NAME))
        return -1;
    shim_begin();
    const char *name = shim_below(folder, path, whole);
    int done = (int)(type == LOG_FOLDER ? syscall(SYS_mkdirat, folder, path, flags)
                                        : syscall(SYS_unlinkat, folder, path, flags));
    if (!done && name)
        shim_named(type, name, NULL);
    return (int)shim_end(done);
}

int unlink(const char *path) {
    return change_name(LOG_UNLINK, AT_FDCWD, path, 0);
}

int unlinkat(int folder, const char *path, int flags) {
    return change_name(LOG_UNLINK, folder, path, flags);
}

int rmdir(const char *path) {
    return change_name(LOG_UNLINK, AT_FDCWD, path, AT_REMOVEDIR);
}

int mkdir(const char *path, mode_t mode) {
    return change_name(LOG_FOLDER, AT_FDCWD, path, (int)mode);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    return change_name(LOG_FOLDER, folder, path, (int)mode);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    char whole_from[SHIM_PATH], whole_to[SHIM_PATH];
    if (shim_refuses(FAULT_NAME))
        return -1;
    shim_begin();
    const char *old_name = shim_below(from_folder, from, whole_from);
    const char *new_name = shim_below(to_folder, to, whole_to);
    int done = (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
    if (!done && old_name && new_name)
        shim_named(LOG_RENAME, old_name, new_name);
    return (int)shim_end(done);
}

int rename(const char *from, const char *to) {
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

/* ---- maps ---- */

void *mmap(void *at, size_t length, int protection, int flags, int number, off_t offset) {
    if (shim_refuses(flags & MAP_ANONYMOUS ? FAULT_MEMORY : FAULT_MAP))
        return MAP_FAILED;
    shim_begin();
    void *made = (void *)syscall(SYS_mmap, at, length, protection, flags, number, offset);
    if (made != MAP_FAILED && !(flags & MAP_ANONYMOUS))
        shim_mapped(number, protection, flags);
    shim_end(0);
    return made;
}

void *mmap64(void *at, size_t length, int protection, int flags, int number, off_t offset)
    __attribute__((alias("mmap")));
