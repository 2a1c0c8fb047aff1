/* shim.h - the parts of the library loaded between a program and the system (LD_PRELOAD): shim_files.c has the
 * functions that take the place of the C library's, shim_log.c writes down what they do, shim_faults.c makes them fail
 * (and has those that give memory), shim_clock.c has a clock that is wrong. */
#ifndef TORTURE_SHIM_H
#define TORTURE_SHIM_H

#include "log.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* ---- for the program, which finds them by their names (dlsym) ---- */

/* Kinds of calls that can fail; or them together. */
enum {
    FAULT_WRITE = 1, /* write, pwrite, writev, pwritev */
    FAULT_SHORT = 2, /* the same, which write half */
    FAULT_SYNC = 4,  /* fsync, fdatasync, msync */
    FAULT_SIZE = 8,  /* ftruncate, fallocate */
    FAULT_OPEN = 16,
    FAULT_MAP = 32,
    FAULT_NAME = 64, /* rename, unlink, mkdir, rmdir */
    FAULT_MEMORY = 128,
    FAULT_THREAD = 256
};

typedef enum fault_when {
    FAULT_ONCE, /* the n-th call */
    FAULT_FROM, /* and all after it */
    FAULT_EVERY /* each n-th */
} fault_when;

/* From now on calls of these kinds fail with `reason`. n = 0: none. */
void shim_arm(int kinds, uint64_t n, int reason, fault_when when);
/* Nothing fails in this thread until it is told otherwise. */
void shim_pause(bool paused);
/* Nothing fails any more; gives how many calls of these kinds there were. */
uint64_t shim_disarm(void);
/* From now on time() is wrong by so many seconds. */
void shim_clock(long seconds);
/* Writes a note into the log. */
void shim_note(const void *bytes, size_t length);

/* ---- between the parts ---- */

/* Whether this call fails; errno says why. */
bool shim_refuses(int kind);

/* Everything that is done to files is between begin and end, one thread at a time, if there is a log; end gives what it
 * is given. */
void shim_begin(void);
long shim_end(long result);

/* The path below the root, in `to`, which has SHIM_PATH places; NULL: it is not below it, or there is no log. */
enum { SHIM_PATH = 8192 };
const char *shim_below(int folder, const char *path, char *to);
/* What was done to a descriptor; nothing is written down where it is none of the root's. */
void shim_opened(int number, const char *path, int flags, bool made);
void shim_closed(int number);
void shim_wrote(int number, const void *bytes, long length, off_t at);
void shim_resized(int number, off_t size);
void shim_synced(int number);
void shim_mapped(int number, int protection, int flags);
/* What was done to a name, or two. */
void shim_named(log_type type, const char *path, const char *to);

#endif
