/* disk.h - a disk that is played from a log (log.h), and what is left on it after a power loss.
 *
 * disk_create -> disk_apply each record; in between disk_write makes files of what may be left at that moment. */
#ifndef TORTURE_DISK_H
#define TORTURE_DISK_H

#include "log.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tt_disk tt_disk;

tt_disk *disk_create(void);
void disk_free(tt_disk *disk);

/* Takes in a record; `bytes` must stay. */
void disk_apply(tt_disk *disk, const log_record *record, const char *bytes);

/* What is left of what was not synced. */
typedef enum disk_left {
    LEFT_NOTHING,
    LEFT_NAMES, /* names only: files are as they were last synced */
    LEFT_BYTES, /* bytes only: names are as they were last synced */
    LEFT_SOME,  /* some of the first names, and any of the sectors of 512 bytes */
    LEFT_ALL,   /* as after a kill */
    LEFT_KINDS
} disk_left;

/* Makes the files in an empty folder; `seed` says which, where only some are left. */
void disk_write(const tt_disk *disk, const char *folder, disk_left left, uint64_t seed);

/* Ends the process unless the files of a folder, but for locks, are those of the disk when all is left. */
void disk_compare(const tt_disk *disk, const char *folder);

#endif
