/* walk.c - the files behind a list of paths. A stack of folders, each with its names sorted; the top one gives the next
 * name, and a name that is a folder becomes the new top. */
#include "input/walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

void dp_walk_init(dp_walk *walk, const char *const *paths, size_t path_count) {
    memset(walk, 0, sizeof *walk);
    walk->paths = paths;
    walk->path_count = path_count;
}

static void free_folder(dp_walk_folder *folder) {
    free(folder->names);
    free(folder->sorted);
}

static void free_matches(dp_walk *walk) {
    if (walk->matches.gl_pathv)
        globfree(&walk->matches);
    walk->matches = (glob_t){0};
    walk->next_match = 0;
}

void dp_walk_free(dp_walk *walk) {
    free_matches(walk);
    while (walk->depth)
        free_folder(&walk->folders[--walk->depth]);
    free(walk->folders);
    dp_buffer_free(&walk->path);
}

/* The first byte of an entry is its d_type, so that most files need no stat to be told from folders. */
static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a + 1, *(char *const *)b + 1);
}

static bool add_name(dp_buffer *names, const struct dirent *entry) {
    char type = (char)entry->d_type;
    return dp_buffer_add(names, &type, 1) && dp_buffer_add(names, entry->d_name, strlen(entry->d_name) + 1);
}

/* Reads all names of a folder; gives how many, or -1 and errno. */
static int64_t read_names(const char *path, dp_buffer *names) {
    DIR *folder = opendir(path);
    if (!folder)
        return -1;
    int64_t count = 0;
    for (struct dirent *entry; errno = 0, (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (!add_name(names, entry)) {
            errno = ENOMEM;
            break;
        }
        count++;
    }
    int trouble = errno;
    closedir(folder);
    errno = trouble;
    return trouble ? -1 : count;
}

static bool sort_names(dp_walk_folder *folder, size_t count) {
    folder->count = count;
    folder->sorted = malloc((count ? count : 1) * sizeof *folder->sorted);
    if (!folder->sorted)
        return false;
    char *name = folder->names;
    for (size_t i = 0; i < count; i++) {
        folder->sorted[i] = name;
        name += 1 + strlen(name + 1) + 1;
    }
    qsort(folder->sorted, count, sizeof *folder->sorted, by_name);
    return true;
}

/* Makes the folder at walk->path the top of the stack; false when it cannot be read, or (no_memory) held. */
static bool enter(dp_walk *walk) {
    dp_buffer names = {0};
    int64_t count = read_names(walk->path.data, &names);
    if (count < 0 && errno != ENOMEM) {
        dp_buffer_free(&names);
        return false;
    }
    dp_walk_folder folder = {.names = names.data, .path_length = strlen(walk->path.data)};
    if (count < 0 || !sort_names(&folder, (size_t)count) ||
        !dp_reserve(&walk->folders, &walk->capacity, walk->depth + 1, sizeof *walk->folders)) {
        free_folder(&folder);
        walk->no_memory = true;
        return false;
    }
    walk->folders[walk->depth++] = folder;
    return true;
}

/* Sets walk->path to its first `length` bytes and then `name`. */
static bool set_path(dp_walk *walk, size_t length, const char *name) {
    walk->path.size = length;
    if (length && walk->path.data[length - 1] != '/' && !dp_buffer_add(&walk->path, "/", 1))
        return false;
    return dp_buffer_add(&walk->path, name, strlen(name) + 1);
}

/* What a name below a folder is: a file to give, a folder to enter, or neither. */
static mode_t kind_of(const char *path, unsigned char type, struct stat *status) {
    if (type == DT_DIR)
        return S_IFDIR;
    if (type != DT_REG && type != DT_LNK && type != DT_UNKNOWN)
        return 0;
    if (stat(path, status))
        return type == DT_REG ? S_IFREG : 0;
    if (S_ISREG(status->st_mode))
        return S_IFREG;
    return S_ISDIR(status->st_mode) && type == DT_UNKNOWN && !lstat(path, status) ? status->st_mode & S_IFDIR : 0;
}

static bool give(dp_walk *walk, dp_walk_file *file, const struct stat *status) {
    file->path = walk->path.data;
    file->regular = S_ISREG(status->st_mode);
    file->size = file->regular ? (uint64_t)status->st_size : 0;
    return true;
}

bool dp_walk_is_pattern(const char *path) {
    return strpbrk(path, "*?[") != NULL;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Finds what matches a pattern; false when nothing does. */
static bool expand(dp_walk *walk, const char *pattern) {
    free_matches(walk);
    int result = glob(pattern, GLOB_NOSORT, NULL, &walk->matches);
    walk->no_memory = result == GLOB_NOSPACE;
    if (result)
        return false;
    qsort(walk->matches.gl_pathv, walk->matches.gl_pathc, sizeof *walk->matches.gl_pathv, by_bytes);
    return true;
}

/* One path, given or matched: true when it is a file (or cannot be opened as anything else). */
static bool take_path(dp_walk *walk, const char *path, dp_walk_file *file) {
    struct stat status = {0};
    if (!set_path(walk, 0, path)) {
        walk->no_memory = true;
        return false;
    }
    bool is_stdin = !strcmp(path, "-");
    bool there = !is_stdin && !stat(path, &status);
    if (there && S_ISDIR(status.st_mode) && (enter(walk) || walk->no_memory))
        return false;
    return give(walk, file, &status);
}

/* The next given path, or the next that matches it. */
static bool next_path(dp_walk *walk, dp_walk_file *file) {
    struct stat status;
    if (walk->next_match < walk->matches.gl_pathc)
        return take_path(walk, walk->matches.gl_pathv[walk->next_match++], file);
    const char *path = walk->paths[walk->next_path++];
    if (dp_walk_is_pattern(path) && lstat(path, &status) && (expand(walk, path) || walk->no_memory))
        return false;
    return take_path(walk, path, file);
}

/* The next name of the top folder: true when it is a file. */
static bool next_name(dp_walk *walk, dp_walk_file *file) {
    dp_walk_folder *top = &walk->folders[walk->depth - 1];
    if (top->next == top->count) {
        free_folder(top);
        walk->depth--;
        return false;
    }
    const char *entry = top->sorted[top->next++];
    struct stat status = {0};
    if (!set_path(walk, top->path_length, entry + 1)) {
        walk->no_memory = true;
        return false;
    }
    mode_t kind = kind_of(walk->path.data, (unsigned char)entry[0], &status);
    if (kind == S_IFDIR && (enter(walk) || walk->no_memory))
        return false;
    return kind && give(walk, file, &status);
}

bool dp_walk_next(dp_walk *walk, dp_walk_file *file) {
    while (!walk->no_memory &&
           (walk->depth || walk->next_match < walk->matches.gl_pathc || walk->next_path < walk->path_count))
        if (walk->depth ? next_name(walk, file) : next_path(walk, file))
            return true;
    return false;
}
