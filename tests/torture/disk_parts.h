/* disk_parts.h - the inside of a disk, for disk.c and disk_left.c. */
#ifndef TORTURE_DISK_PARTS_H
#define TORTURE_DISK_PARTS_H

#include "disk.h"

#include "torture.h"

enum { SECTOR = 512, MOST_PATH = 500 };

typedef struct tt_change {
    bool resize;
    bool synced;         /* it is safe, and stands here for what it is written over */
    uint64_t at, length; /* at: the new size, of a resize */
    const char *bytes;
} tt_change;

typedef struct tt_file {
    uint64_t object;
    char *bytes; /* as synced */
    uint64_t size;
    tt_change *pending;
    size_t count, room;
} tt_file;

typedef struct tt_name {
    char path[MOST_PATH];
    uint64_t object; /* 0: a folder */
} tt_name;

typedef struct tt_naming {
    log_type type;
    tt_name name;
    char to[MOST_PATH];
} tt_naming;

typedef struct tt_names {
    tt_name *name;
    size_t count;
} tt_names;

struct tt_disk {
    tt_file *files;
    size_t file_count;
    tt_names safe;
    tt_naming *pending;
    size_t pending_count;
};

/* Memory, or the end of the process. */
void *disk_grown(void *old, size_t count, size_t size);
tt_file *disk_file(const tt_disk *disk, uint64_t object);
void disk_resize(tt_file *file, uint64_t size);
void disk_put(tt_file *to, uint64_t at, const char *bytes, uint64_t length);
void disk_change(tt_file *to, const tt_change *change);
void disk_name(tt_names *names, const tt_naming *naming);
/* Whether a path is directly in a folder. */
bool disk_stands_in(const char *path, const char *folder);

#endif
