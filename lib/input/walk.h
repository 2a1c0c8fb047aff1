/* walk.h - the files behind a list of paths, in order: each path itself, or all that is below a folder, by byte order
 * of names. A path with *, ? or [ that is not there stands for those that match it, in byte order.
 *
 * Below a folder, links to files are followed, links to folders are not (so there are no cycles); what is neither file
 * nor folder (devices, sockets, pipes, links that lead nowhere) is left out. A path that was given is taken as it is.
 * Memory: the names of the folders that are open, one below the other. */
#ifndef DP_WALK_H
#define DP_WALK_H

#include "base/base.h"

#include <glob.h>

/* One folder on the way down: its names, sorted, and how far it is done. */
typedef struct dp_walk_folder {
    char *names;   /* each: its type (see walk.c), its bytes, a NUL */
    char **sorted; /* into names */
    size_t count, next;
    size_t path_length; /* of the folder's own path */
} dp_walk_folder;

typedef struct dp_walk {
    const char *const *paths;
    size_t path_count, next_path;
    glob_t matches; /* of the pattern at hand */
    size_t next_match;
    dp_walk_folder *folders;
    size_t depth, capacity;
    dp_buffer path; /* of the file that was given last, NUL-ended */
    bool no_memory;
} dp_walk;

typedef struct dp_walk_file {
    const char *path; /* borrowed until the next call */
    bool regular;     /* its size is known */
    uint64_t size;
} dp_walk_file;

void dp_walk_init(dp_walk *walk, const char *const *paths, size_t path_count);

/* Whether a path that is not there is a pattern, which nothing matches. */
bool dp_walk_is_pattern(const char *path);

/* The next file; false at the end, or when there is no memory (`no_memory`). A folder that cannot be read is given like
 * a file, and opening it will tell why. */
bool dp_walk_next(dp_walk *walk, dp_walk_file *file);

void dp_walk_free(dp_walk *walk);

#endif
