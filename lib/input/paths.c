/* paths.c - the files that a list of paths stands for.
 *
 * dp_walk_init, dp_walk_next ..., dp_walk_free give them one by one; dp_input_list also says what each of them is.
 * Preparing paths to be read more than once is at the end.
 *
 * In order: each path itself, or all that is below a folder, by byte order of names. A path with *, ? or [ that does
 * not exist stands for those that match it, in byte order.
 *
 * Below a folder, links to files are followed, links to folders are not (so there are no cycles); what is neither file
 * nor folder (devices, sockets, pipes, links that lead nowhere) is left out. A path that was given is taken as it is.
 *
 * A stack of folders, each with its names sorted; the top one gives the next name, and a name that is a folder becomes
 * the new top. Memory: the names of the folders that are open, one below the other. */
#include "input/reader.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the walk ---- */

/* One folder on the way down: its names, sorted, and how far it is done. */
struct dp_walk_folder {
    struct dirent **names;
    size_t count, next;
    size_t path_length; /* of the folder's own path */
};

void dp_walk_init(dp_path_walk *walk, const dp_input_paths *paths, const doppel_tables *tables) {
    *walk = (dp_path_walk){.paths = *paths, .tables = tables};
}

static void free_folder(dp_walk_folder *folder) {
    for (size_t i = 0; i < folder->count; i++)
        free(folder->names[i]);
    free(folder->names);
}

static void free_matches(dp_path_walk *walk) {
    if (walk->matches.gl_pathv)
        globfree(&walk->matches);
    walk->matches = (glob_t){0};
    walk->next_match = 0;
}

void dp_walk_free(dp_path_walk *walk) {
    free_matches(walk);
    while (walk->depth)
        free_folder(&walk->folders[--walk->depth]);
    free(walk->folders);
    dp_buffer_free(&walk->listed);
    dp_buffer_free(&walk->path);
}

static int is_name(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Whether a name marks a file as not part of the data: _SUCCESS, ._part.crc. */
static bool is_marker_file(const struct dirent *entry) {
    return entry->d_name[0] == '_' || entry->d_name[0] == '.';
}

/* Whether a folder holds tables, or nothing but folders: then files whose names begin with _ or . are not data. */
static bool holds_tables(const dp_path_walk *walk, const dp_walk_folder *folder) {
    bool folders = false, others = false;
    for (size_t i = 0; i < folder->count; i++) {
        const struct dirent *entry = folder->names[i];
        if (entry->d_type == DT_DIR)
            folders = true;
        else if (walk->tables->claims(entry->d_name, walk->tables->user))
            return true;
        else
            others = others || !is_marker_file(entry);
    }
    return folders && !others;
}

static void drop_marker_files(const dp_path_walk *walk, dp_walk_folder *folder) {
    size_t left = 0;
    if (!walk->tables || !holds_tables(walk, folder))
        return;
    for (size_t i = 0; i < folder->count; i++)
        if (is_marker_file(folder->names[i]))
            free(folder->names[i]);
        else
            folder->names[left++] = folder->names[i];
    folder->count = left;
}

/* Makes the folder at walk->path the top of the stack; false when it cannot be read, or there is no memory (no_memory).
 */
static bool enter(dp_path_walk *walk) {
    dp_walk_folder folder = {.path_length = strlen(walk->path.data)};
    int count = scandir(walk->path.data, &folder.names, is_name, by_name);
    if (count < 0) {
        walk->no_memory = errno == ENOMEM;
        return false;
    }
    folder.count = (size_t)count;
    drop_marker_files(walk, &folder);
    if (!dp_reserve(&walk->folders, &walk->capacity, walk->depth + 1, sizeof *walk->folders)) {
        free_folder(&folder);
        walk->no_memory = true;
        return false;
    }
    walk->folders[walk->depth++] = folder;
    return true;
}

/* Sets walk->path to its first `length` bytes and then `name`. */
static bool set_path(dp_path_walk *walk, size_t length, const char *name) {
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

static bool give_file(dp_path_walk *walk, dp_walk_file *file, const struct stat *status) {
    file->path = walk->path.data;
    file->regular = S_ISREG(status->st_mode);
    file->size = file->regular ? (uint64_t)status->st_size : 0;
    return true;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Finds what matches a pattern; false when nothing does. */
static bool expand(dp_path_walk *walk, const char *pattern) {
    free_matches(walk);
    int result = glob(pattern, GLOB_NOSORT, NULL, &walk->matches);
    walk->no_memory = result == GLOB_NOSPACE;
    if (result)
        return false;
    qsort(walk->matches.gl_pathv, walk->matches.gl_pathc, sizeof *walk->matches.gl_pathv, by_bytes);
    return true;
}

/* One path, given or matched: true when it is a file (or cannot be opened as anything else). */
static bool take_path(dp_path_walk *walk, const char *path, dp_walk_file *file) {
    struct stat status = {0};
    if (!set_path(walk, 0, path)) {
        walk->no_memory = true;
        return false;
    }
    bool is_stdin = !strcmp(path, "-");
    bool there = !is_stdin && !stat(path, &status);
    if (there && S_ISDIR(status.st_mode) && (enter(walk) || walk->no_memory))
        return false;
    return give_file(walk, file, &status);
}

/* doppel_tables.list */
static doppel_status add_listed(const char *path, void *to) {
    dp_path_walk *walk = to;
    walk->no_memory = !dp_buffer_add(&walk->listed, path, strlen(path) + 1);
    return walk->no_memory ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
}

/* Lists the tables that a URL stands for; false: it stands for itself, and opening it will report what is wrong. */
static bool list_url(dp_path_walk *walk, const char *path) {
    walk->listed.size = walk->next_listed = 0;
    if (!walk->tables || !walk->tables->list || !strstr(path, "://"))
        return false;
    if (walk->tables->list(path, add_listed, walk, walk->tables->user, NULL) != DOPPEL_OK)
        walk->listed.size = 0;
    return walk->listed.size;
}

/* The next table of a URL. */
static bool next_listed(dp_path_walk *walk, dp_walk_file *file) {
    const char *path = walk->listed.data + walk->next_listed;
    walk->next_listed += strlen(path) + 1;
    if (!set_path(walk, 0, path)) {
        walk->no_memory = true;
        return false;
    }
    return give_file(walk, file, &(struct stat){0});
}

/* The next given path, or the next that matches it. */
static bool next_path(dp_path_walk *walk, dp_walk_file *file) {
    struct stat status;
    if (walk->next_listed < walk->listed.size)
        return next_listed(walk, file);
    if (walk->next_match < walk->matches.gl_pathc)
        return take_path(walk, walk->matches.gl_pathv[walk->next_match++], file);
    const char *path = walk->paths.path[walk->next_path++];
    if (list_url(walk, path) || walk->no_memory)
        return false;
    if (strpbrk(path, "*?[") && lstat(path, &status) && (expand(walk, path) || walk->no_memory))
        return false;
    return take_path(walk, path, file);
}

/* The next name of the top folder: true when it is a file. */
static bool next_name(dp_path_walk *walk, dp_walk_file *file) {
    dp_walk_folder *top = &walk->folders[walk->depth - 1];
    if (top->next == top->count) {
        free_folder(top);
        walk->depth--;
        return false;
    }
    const struct dirent *entry = top->names[top->next++];
    struct stat status = {0};
    if (!set_path(walk, top->path_length, entry->d_name)) {
        walk->no_memory = true;
        return false;
    }
    mode_t kind = kind_of(walk->path.data, entry->d_type, &status);
    if (kind == S_IFDIR && (enter(walk) || walk->no_memory))
        return false;
    return kind && give_file(walk, file, &status);
}

bool dp_walk_next(dp_path_walk *walk, dp_walk_file *file) {
    while (!walk->no_memory && (walk->depth || walk->next_match < walk->matches.gl_pathc ||
                                walk->next_listed < walk->listed.size || walk->next_path < walk->paths.count))
        if (walk->depth ? next_name(walk, file) : next_path(walk, file))
            return true;
    return false;
}

bool dp_input_is_empty_folder(const char *path) {
    struct stat there;
    dp_path_walk walk;
    dp_walk_file file;
    if (stat(path, &there) || !S_ISDIR(there.st_mode))
        return false;
    dp_walk_init(&walk, &(dp_input_paths){&path, 1}, NULL);
    bool empty = !dp_walk_next(&walk, &file) && !walk.no_memory;
    dp_walk_free(&walk);
    return empty;
}

/* ---- what each file is ---- */

/* The name of the file that was given last, below the folder it was found in. */
static const char *name_below(const dp_path_walk *walk) {
    const char *path = walk->path.data, *slash = strrchr(path, '/');
    if (!walk->depth)
        return slash ? slash + 1 : path;
    path += walk->folders[0].path_length;
    return path + (*path == '/');
}

/* What is read of a file to have its header, if that is no longer. */
#define HEADER ((size_t)64 << 10)

/* Opens a file to see what it is; false: no memory. */
static bool detect_kind(const doppel_input_options *options, const dp_format *asked, dp_input_kind *kind) {
    dp_stream stream;
    dp_record_cutter cutter = {.target = HEADER, .max_record = DP_USUAL_MAX_RECORD};
    dp_record_block block = {0};
    bool whole = true;
    dp_stream_init(&stream, options->stop);
    if (dp_stream_open(&stream, kind->path)) {
        const dp_format *format = dp_format_read(&stream, kind->path, asked, options, &cutter.rest);
        kind->spreadsheet =
            format && !strcmp(format->name, "text") && dp_is_spreadsheet(cutter.rest.data, cutter.rest.size);
        dp_cutter_begin(&cutter, format, &stream);
        whole = format && (!format->headed || dp_cutter_next(&cutter, &block));
        kind->format = format ? format->name : NULL;
        kind->rows = format && (format->headed || format == &dp_format_lines);
        kind->records = format == &dp_format_jsonl;
        kind->header = cutter.header;
        kind->header.size -= kind->header.size && kind->header.data[kind->header.size - 1] == '\n';
        cutter.header = (dp_buffer){0};
    }
    free(block.data);
    dp_cutter_free(&cutter);
    dp_stream_free(&stream);
    return whole;
}

doppel_status dp_input_list(const dp_input_paths *paths, const doppel_input_options *options,
                            doppel_status (*found)(dp_input_kind *file, void *user), void *user, doppel_error *error) {
    dp_path_walk walk;
    dp_walk_file file;
    const dp_format *asked;
    DP_TRY(dp_format_find(options, &asked, error));
    doppel_status status = DOPPEL_OK;
    dp_walk_init(&walk, paths, NULL);
    while (status == DOPPEL_OK && dp_walk_next(&walk, &file)) {
        dp_input_kind kind = {.path = file.path,
                              .name = name_below(&walk),
                              .format = asked ? asked->name : doppel_input_format(file.path)};
        kind.rows = kind.format &&
                    (!strcmp(kind.format, "CSV") || !strcmp(kind.format, "TSV") || !strcmp(kind.format, "lines"));
        kind.records = kind.format && !strcmp(kind.format, "JSONL");
        if (file.regular && !detect_kind(options, asked, &kind))
            walk.no_memory = true;
        else
            status = found(&kind, user);
        dp_buffer_free(&kind.header);
    }
    bool no_memory = walk.no_memory;
    dp_walk_free(&walk);
    return no_memory ? dp_no_memory(error) : status;
}

/* ---- inputs that are read more than once: stdin, which is copied unless it is a plain file, and named pipes, which
 * are refused ---- */

bool dp_has_stdin(const dp_input_paths *paths) {
    for (size_t i = 0; i < paths->count; i++)
        if (!strcmp(paths->path[i], "-"))
            return true;
    return false;
}

doppel_status dp_check_pipes(const dp_input_paths *paths, doppel_error *error) {
    struct stat there;
    for (size_t i = 0; i < paths->count; i++)
        if (strcmp(paths->path[i], "-") != 0 && !stat(paths->path[i], &there) && S_ISFIFO(there.st_mode))
            return dp_fail_at(error, DOPPEL_ERROR_USAGE, paths->path[i], 0,
                              "is a pipe, which can be read only once: give it as stdin, -");
    return DOPPEL_OK;
}

static doppel_status copy_stdin(dp_scratch *to, const volatile int *stop, doppel_error *error) {
    enum { PIECE = 1 << 20 };
    char *piece = malloc(PIECE);
    doppel_status status = piece ? DOPPEL_OK : dp_no_memory(error);
    while (status == DOPPEL_OK) {
        ssize_t got = read(STDIN_FILENO, piece, PIECE);
        if (dp_stopped(stop))
            status = dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        else if (got < 0 && errno != EINTR)
            status = dp_fail_at(error, DOPPEL_ERROR_INPUT, "-", 0, "cannot be read: %s", strerror(errno));
        else if (got > 0)
            status = dp_scratch_write(to, piece, (size_t)got, to->size, error);
        if (!got)
            break;
        to->size += status == DOPPEL_OK && got > 0 ? (uint64_t)got : 0;
    }
    free(piece);
    return status;
}

doppel_status dp_stdin_rewind(dp_stdin_copy *copy, const dp_input_paths *paths, const char *tmp,
                              const volatile int *stop, doppel_error *error) {
    dp_scratch file;
    if (!dp_has_stdin(paths))
        return DOPPEL_OK;
    if (copy->kept && lseek(STDIN_FILENO, copy->start, SEEK_SET) < 0)
        return dp_fail_at(error, DOPPEL_ERROR_INPUT, "-", 0, "cannot be read again: %s", strerror(errno));
    if (copy->kept)
        return DOPPEL_OK;
    copy->kept = true;
    /* A plain file can be read again as it is. */
    if ((copy->start = lseek(STDIN_FILENO, 0, SEEK_CUR)) >= 0)
        return DOPPEL_OK;
    copy->start = 0;
    DP_TRY(dp_scratch_open(&file, tmp, error));
    doppel_status status = copy_stdin(&file, stop, error);
    copy->bytes = file.size;
    if (status == DOPPEL_OK && (lseek(file.fd, 0, SEEK_SET) < 0 || dup2(file.fd, STDIN_FILENO) < 0))
        status = dp_fail_at(error, DOPPEL_ERROR_IO, "-", 0, "its copy cannot be read: %s", strerror(errno));
    dp_scratch_close(&file);
    return status;
}
