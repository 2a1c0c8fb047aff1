/* log.h - the log of what was done to files, written by shim_powerloss.c and read by disk.c: records one after the
 * other, each followed by `length` bytes. Paths are below the root, "" is the root itself. */
#ifndef TORTURE_LOG_H
#define TORTURE_LOG_H

#include <stdint.h>

typedef enum log_type {
    LOG_CREATE = 1,  /* a new file `object`; its path */
    LOG_FOLDER,      /* a new folder; its path */
    LOG_RENAME,      /* a path, NUL, the new one */
    LOG_UNLINK,      /* a path, of a file or folder */
    LOG_WRITE,       /* bytes of `object` at `offset`; `synced`: they were on the disk when the call returned */
    LOG_TRUNCATE,    /* `object` has `offset` bytes from now on */
    LOG_SYNC,        /* all of `object` is on the disk */
    LOG_SYNC_FOLDER, /* all names in the folder are on the disk; its path */
    LOG_NOTE,        /* what the program had to say */
    LOG_UNKNOWN      /* something that cannot be replayed; what it was */
} log_type;

typedef struct log_record {
    uint32_t type;
    uint32_t synced;
    uint64_t object;
    uint64_t offset;
    uint64_t length;
} log_record;

#endif
