/* output_files.c - documents to files: the kept ones to one file (doppel_batch_write_kept), the removed ones to another
 * (doppel_batch_write_removed), or the kept ones to a file for each input (doppel_batch_plan_files, then
 * doppel_batch_write_files).
 *
 * To one file go records: copied, where all positions are known (copy.c), else read once more (write.c); or, after
 * doppel_batch_plan_rows, rows of CSV and lines, unchanged.
 *
 * The format of each input is detected before anything is read, so that what cannot be written is refused at once.
 * Files for each input are written below a folder of the run inside the output folder, .doppel-XXXXXX, and renamed into
 * place together at the end. */
#include "batch/batch.h"
#include "input/input.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- planning ---- */

typedef struct planning {
    doppel_batch *batch;
    dp_hashmap names;  /* of outputs: numbers of files, + 1, by hash */
    dp_hashmap inputs; /* by device and number */
    dev_t device;      /* of the folder of all outputs */
    doppel_error *error;
} planning;

static bool ends_in(const char *name, size_t length, const char *ending) {
    size_t size = strlen(ending);
    return length > size && !strncasecmp(name + length - size, ending, size);
}

/* The name of an output: unchanged records keep the input's name, except for a compression that cannot be written. */
static char *output_name(const dp_input_kind *input) {
    char *made;
    const char *name = input->name;
    size_t length = strlen(name);
    bool as_it_stands = !input->format || input->rows || input->records;
    size_t ending = ends_in(name, length, ".bz2") ? 4 : ends_in(name, length, ".xz") ? 3 : 0;
    int printed = !as_it_stands ? asprintf(&made, "%s.jsonl", name)
                  : ending      ? asprintf(&made, "%.*s.zst", (int)(length - ending), name)
                                : asprintf(&made, "%s", name);
    return printed < 0 ? NULL : made;
}

static uint64_t file_key(const struct stat *file) {
    const uint64_t both[2] = {file->st_dev, file->st_ino};
    return dp_murmur3(both, sizeof both, 0);
}

/* dp_input_list: adds a file. */
static doppel_status add_output(dp_input_kind *input, void *user) {
    planning *p = user;
    dp_output_files *files = &p->batch->files;
    struct stat there;
    if (!strcmp(input->path, "-") && files->folder)
        return dp_fail(p->error, DOPPEL_ERROR_USAGE, "stdin has no name for its output: give files");
    if (!dp_reserve(&files->file, &files->room, files->count + 1, sizeof *files->file))
        return dp_no_memory(p->error);
    bool absent = stat(input->path, &there);
    if (!absent) {
        uint64_t *number = dp_hashmap_add(&p->inputs, file_key(&there));
        if (!number)
            return dp_no_memory(p->error);
        *number = 1;
    }
    dp_output_file *file = &files->file[files->count++];
    *file = (dp_output_file){.input = strdup(input->path),
                             .name = output_name(input),
                             .format = input->format,
                             .header = input->header,
                             .absent = absent && strcmp(input->path, "-") != 0};
    input->header = (dp_buffer){0};
    if (!file->input || !file->name)
        return dp_no_memory(p->error);
    if (!files->folder && input->spreadsheet)
        return dp_fail_at(p->error, DOPPEL_ERROR_INPUT, input->path, 0, DP_WHY_SPREADSHEET);
    if (!files->folder && input->format && !input->rows && !strcmp(input->format, "text"))
        return dp_fail_at(
            p->error, DOPPEL_ERROR_USAGE, input->path, 0,
            "is plain text, not rows: if it is a table, say which (--format csv or tsv), else write JSONL, "
            "to a name that ends in .jsonl");
    if (!files->folder && input->format && !input->rows)
        return dp_fail_at(p->error, DOPPEL_ERROR_USAGE, input->path, 0,
                          "is %s, whose documents are not rows: write JSONL, to a name that ends in .jsonl",
                          input->format);
    return DOPPEL_OK;
}

/* Whether two headers are the same, whatever their line ends. */
static bool same_header(doppel_slice a, doppel_slice b) {
    a.length -= a.length && a.data[a.length - 1] == '\r';
    b.length -= b.length && b.data[b.length - 1] == '\r';
    return a.length == b.length && (!a.length || !memcmp(a.data, b.data, a.length));
}

static doppel_slice header_of(const dp_output_file *file) {
    return (doppel_slice){file->header.data, file->header.size};
}

static doppel_status other_columns(const char *path, const char *first, doppel_status code, doppel_error *error) {
    return dp_fail_at(error, code, path, 0, "has other columns than %s: write JSONL, or one file for each input",
                      first);
}

/* The first file whose format is known; NULL: there is none. */
static const dp_output_file *first_of_format(const dp_output_files *files) {
    for (size_t i = 0; i < files->count; i++)
        if (files->file[i].format)
            return &files->file[i];
    return NULL;
}

const char *doppel_batch_row_format(const doppel_batch *batch) {
    const dp_output_file *first = batch->files.rows ? first_of_format(&batch->files) : NULL;
    return first ? first->format : NULL;
}

/* All files have one format: the delimiter of rows depends on it. */
static doppel_status check_formats(const dp_output_files *files, doppel_error *error) {
    const dp_output_file *first = first_of_format(files);
    for (size_t i = 0; i < files->count; i++) {
        const dp_output_file *file = &files->file[i];
        if (file->format && strcmp(file->format, first->format) != 0)
            return dp_fail_at(error, DOPPEL_ERROR_USAGE, file->input, 0,
                              "is read as %s, but %s as %s: write JSONL, or one file for each input", file->format,
                              first->input, first->format);
    }
    return DOPPEL_OK;
}

/* All files that have a header have the same. */
static doppel_status check_headers(const dp_output_files *files, doppel_error *error) {
    const dp_output_file *first = NULL;
    DP_TRY(check_formats(files, error));
    for (size_t i = 0; i < files->count; i++) {
        const dp_output_file *file = &files->file[i];
        if (!file->header.size)
            continue;
        first = first ? first : file;
        if (!same_header(header_of(first), header_of(file)))
            return other_columns(file->input, first->input, DOPPEL_ERROR_USAGE, error);
    }
    return DOPPEL_OK;
}

typedef struct looked_name {
    const dp_output_files *files;
    const char *name;
} looked_name;

static bool is_name(const void *user, uint64_t number) {
    const looked_name *looked = user;
    return !strcmp(looked->files->file[number - 1].name, looked->name);
}

static uint64_t name_key(const char *name) {
    return dp_murmur3(name, strlen(name), 0);
}

/* Whether a folder can be written to or, if it does not exist, created: checked before the work begins. *device is the
 * file system it is on, or will be. */
static doppel_status check_folder(const char *folder, dev_t *device, doppel_error *error) {
    char path[4096];
    struct stat there;
    if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path)
        return dp_fail_at(error, DOPPEL_ERROR_IO, folder, 0, "the name is too long");
    for (char *slash; strcmp(path, ".") != 0 && stat(path, &there) && errno == ENOENT;) {
        slash = strrchr(path, '/');
        if (!slash)
            strcpy(path, ".");
        else
            slash[slash == path] = 0;
    }
    int reason = stat(path, &there) ? errno : !S_ISDIR(there.st_mode) ? ENOTDIR : access(path, W_OK | X_OK) ? errno : 0;
    if (reason)
        return dp_fail_at(error, DOPPEL_ERROR_IO, folder, 0, "cannot be written: %s", strerror(reason));
    *device = there.st_dev;
    return DOPPEL_OK;
}

/* Whether outputs can be moved to the folder of this path, which is below the folder of all. */
static doppel_status check_folder_below(const planning *p, char *path) {
    dev_t device;
    char *slash = strrchr(path, '/');
    *slash = 0;
    doppel_status status = check_folder(path, &device, p->error);
    if (status == DOPPEL_OK && device != p->device)
        status = dp_fail_at(p->error, DOPPEL_ERROR_IO, path, 0,
                            "is on another file system than %s, where outputs are written before they are moved "
                            "into place: choose another folder",
                            p->batch->files.folder);
    *slash = '/';
    return status;
}

/* Whether an output can be put in place: its path is neither an input nor a folder, no file is where a folder is
 * needed, and its folder can be written to. */
static doppel_status check_place(const planning *p, const dp_output_file *file) {
    struct stat there;
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", p->batch->files.folder, file->name) >= (int)sizeof path)
        return dp_fail_at(p->error, DOPPEL_ERROR_USAGE, file->input, 0, "the name of its output is too long");
    int reason = stat(path, &there) ? errno : 0;
    if (reason == ENOTDIR)
        return dp_fail_at(p->error, DOPPEL_ERROR_IO, path, 0, "cannot be written: %s", strerror(reason));
    if (!reason && dp_hashmap_find(&p->inputs, file_key(&there)))
        return dp_fail_at(p->error, DOPPEL_ERROR_USAGE, path, 0, "is an input: choose another folder");
    if (!reason && S_ISDIR(there.st_mode))
        return dp_fail_at(p->error, DOPPEL_ERROR_IO, path, 0, "cannot be written: %s", strerror(EISDIR));
    return strchr(file->name, '/') ? check_folder_below(p, path) : DOPPEL_OK;
}

/* No output is a folder that another one is in. */
static doppel_status check_folders_of(const planning *p, const dp_output_file *file) {
    const dp_output_files *files = &p->batch->files;
    for (char *slash = strchr(file->name, '/'); slash; slash = strchr(slash + 1, '/')) {
        const looked_name looked = {files, file->name};
        *slash = 0;
        uint64_t number = dp_hashmap_find_if(&p->names, name_key(file->name), is_name, &looked);
        *slash = '/';
        if (number)
            return dp_fail_at(p->error, DOPPEL_ERROR_USAGE, file->input, 0,
                              "needs a folder with the name of the output of %s, %s: run them separately",
                              files->file[number - 1].input, files->file[number - 1].name);
    }
    return DOPPEL_OK;
}

static const char *last_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Files of the same name come from different folders; those of different names may be in the same one. */
static doppel_status fail_same(const planning *p, const dp_output_file *file, const dp_output_file *other) {
    bool same = !strcmp(last_name(file->input), last_name(other->input));
    if (!strcmp(file->input, other->input))
        return dp_fail_at(p->error, DOPPEL_ERROR_USAGE, file->input, 0,
                          "is given twice, and would have one output: give it once");
    return dp_fail_at(p->error, DOPPEL_ERROR_USAGE, file->input, 0,
                      "would have the same output as %s, %s: %s, or run them separately", other->input, file->name,
                      same ? "give the folder that contains both" : "rename one of them");
}

/* No two files have one output, and each can take its place: known before all the work, as outputs appear together. */
static doppel_status check_names(planning *p) {
    const dp_output_files *files = &p->batch->files;
    for (size_t i = 0; i < files->count; i++) {
        const dp_output_file *file = &files->file[i];
        const looked_name looked = {files, file->name};
        uint64_t *number = dp_hashmap_add_if(&p->names, name_key(file->name), is_name, &looked);
        if (!number)
            return dp_no_memory(p->error);
        if (*number)
            return fail_same(p, file, &files->file[*number - 1]);
        *number = i + 1;
        DP_TRY(check_place(p, file));
    }
    for (size_t i = 0; i < files->count; i++)
        DP_TRY(check_folders_of(p, &files->file[i]));
    return DOPPEL_OK;
}

static doppel_status plan(doppel_batch *batch, const char *const *paths, size_t path_count, const char *folder,
                          doppel_error *error) {
    dp_output_files *files = &batch->files;
    doppel_error own = {0};
    planning p = {.batch = batch, .error = &own};
    const dp_input_paths list = {paths, path_count};
    dp_output_files_free(files);
    if (folder && !*folder)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "the name of the folder of outputs is empty");
    if (folder && !(files->folder = strdup(folder)))
        return dp_no_memory(error);
    files->rows = !folder;
    doppel_status status = dp_input_list(&list, &batch->settings.input, add_output, &p, &own);
    if (folder)
        DP_THEN(status, check_folder(folder, &p.device, &own));
    DP_THEN(status, folder ? check_names(&p) : check_headers(files, &own));
    dp_hashmap_free(&p.names);
    dp_hashmap_free(&p.inputs);
    if (status != DOPPEL_OK && error)
        *error = own;
    return status;
}

doppel_status doppel_batch_plan_rows(doppel_batch *batch, const char *const *paths, size_t path_count,
                                     doppel_error *error) {
    return plan(batch, paths, path_count, NULL, error);
}

doppel_status doppel_batch_plan_files(doppel_batch *batch, const char *const *paths, size_t path_count,
                                      const char *folder, doppel_error *error) {
    return plan(batch, paths, path_count, folder, error);
}

/* ---- whether another file has the place of an output ---- */

/* Whether a folder, and a name of `length` bytes in it, are those of the path. */
static bool is_place(const char *path, const char *folder, const char *name, size_t length) {
    struct stat a, b;
    char parent[4096];
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    int printed = slash ? snprintf(parent, sizeof parent, "%.*s/", (int)(slash - path), path)
                        : snprintf(parent, sizeof parent, ".");
    return strlen(last) == length && !memcmp(last, name, length) && printed < (int)sizeof parent && !stat(parent, &a) &&
           !stat(folder, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool doppel_batch_is_output(const doppel_batch *batch, const char *path) {
    const dp_output_files *files = &batch->files;
    for (size_t i = 0; files->folder && i < files->count; i++) {
        struct stat a, b;
        char output[4096];
        const char *name = files->file[i].name;
        if (snprintf(output, sizeof output, "%s/%s", files->folder, name) >= (int)sizeof output)
            continue;
        if (!stat(path, &a) && !stat(output, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
            return true;
        /* The output, and each folder below that of all outputs that it is in. */
        for (char *at = output + strlen(files->folder); at; at = strchr(at + 1, '/')) {
            *at = 0;
            bool same = is_place(path, output, at + 1, strcspn(at + 1, "/"));
            *at = '/';
            if (same)
                return true;
        }
    }
    return false;
}

/* ---- records, to one file ---- */

static doppel_status write_line(doppel_writer *writer, doppel_slice line, doppel_error *error) {
    DP_TRY(doppel_writer_write(writer, line, error));
    return doppel_writer_write(writer, doppel_slice_of("\n"), error);
}

typedef struct some_writing {
    const doppel_batch *batch;
    bool removed; /* those that do not stay are written */
    doppel_writer *writer;
    doppel_error error;
} some_writing;

static doppel_status write_if_wanted(const dp_written_document *document, void *user) {
    some_writing *w = user;
    if (doppel_batch_stays(w->batch, document->position) == w->removed)
        return DOPPEL_OK;
    return write_line(w->writer, document->record, &w->error);
}

static doppel_status write_by_reading(doppel_batch *batch, bool removed, doppel_writer *writer, doppel_error *error) {
    some_writing w = {.batch = batch, .removed = removed, .writer = writer};
    doppel_status status = dp_write_again(batch, false, write_if_wanted, &w, error);
    if (status != DOPPEL_OK && w.error.code != DOPPEL_OK && error)
        *error = w.error;
    return status;
}

/* ---- rows, to one file ---- */

typedef struct row_writing {
    doppel_batch *batch;
    doppel_status (*row)(doppel_slice row, const doppel_near *near, void *user);
    void *user;
    dp_buffer header;
    bool begun; /* the header is given */
    uint64_t file;
    doppel_error *error;
} row_writing;

static const char *file_name(const doppel_batch *batch, uint64_t file) {
    return file < batch->files.count ? batch->files.file[file].input : "-";
}

/* Gives the header, of the first file that has one; others must have the same. */
static doppel_status take_header(row_writing *w, doppel_slice header, uint64_t file) {
    if (w->begun)
        return same_header((doppel_slice){w->header.data, w->header.size}, header)
                   ? DOPPEL_OK
                   : other_columns(file_name(w->batch, file), file_name(w->batch, w->file), DOPPEL_ERROR_INPUT,
                                   w->error);
    w->begun = true;
    w->file = file;
    if (!dp_buffer_add(&w->header, header.data, header.length))
        return dp_no_memory(w->error);
    return w->row(header, NULL, w->user);
}

static doppel_status give_row(const dp_written_document *document, void *user) {
    row_writing *w = user;
    if (document->header.length)
        DP_TRY(take_header(w, document->header, document->file));
    doppel_near near;
    doppel_batch_get(w->batch, document->position, &near);
    return w->row(document->record, &near, w->user);
}

doppel_slice doppel_batch_row_header(const doppel_batch *batch) {
    const dp_output_files *files = &batch->files;
    for (size_t i = 0; i < files->count; i++)
        if (files->file[i].header.size)
            return header_of(&files->file[i]);
    return (doppel_slice){"", 0};
}

doppel_status doppel_batch_write_rows(doppel_batch *batch,
                                      doppel_status (*row)(doppel_slice row, const doppel_near *near, void *user),
                                      void *user, doppel_error *error) {
    doppel_error own = {0};
    row_writing w = {.batch = batch, .row = row, .user = user, .error = &own};
    const dp_output_files *files = &batch->files;
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < files->count && !w.begun && status == DOPPEL_OK; i++)
        if (files->file[i].header.size)
            status = take_header(&w, header_of(&files->file[i]), i);
    DP_THEN(status, dp_write_again(batch, true, give_row, &w, error));
    dp_buffer_free(&w.header);
    if (status != DOPPEL_OK && own.code != DOPPEL_OK && error)
        *error = own;
    return status;
}

static doppel_status write_row(doppel_slice row, const doppel_near *near, void *user) {
    some_writing *w = user;
    if (near && doppel_batch_stays(w->batch, near->b) == w->removed)
        return DOPPEL_OK;
    return write_line(w->writer, row, &w->error);
}

static doppel_status write_rows(doppel_batch *batch, bool removed, doppel_writer *writer, doppel_error *error) {
    some_writing w = {.batch = batch, .removed = removed, .writer = writer};
    doppel_status status = doppel_batch_write_rows(batch, write_row, &w, error);
    if (status != DOPPEL_OK && w.error.code != DOPPEL_OK && error)
        *error = w.error;
    return status;
}

/* ---- either, to one file ---- */

static doppel_status write_some(doppel_batch *batch, bool removed, doppel_writer *writer, doppel_error *error) {
    if (batch->files.rows)
        return write_rows(batch, removed, writer, error);
    return dp_has_positions(batch) ? dp_copy_records(batch, removed, writer, error)
                                   : write_by_reading(batch, removed, writer, error);
}

doppel_status doppel_batch_write_kept(doppel_batch *batch, doppel_writer *writer, doppel_error *error) {
    return write_some(batch, false, writer, error);
}

doppel_status doppel_batch_write_removed(doppel_batch *batch, doppel_writer *writer, doppel_error *error) {
    return write_some(batch, true, writer, error);
}

/* ---- the folder of a run ----
 *
 * .doppel-XXXXXX has a folder `outputs`, and a file `lock`, which is locked as long as the run lasts: a run that was
 * killed leaves a folder whose lock is free, and the next run to the same place removes it. Nothing but these two is
 * removed. */

#define RUN_PREFIX ".doppel-"

typedef struct run_folder {
    char path[4096]; /* empty: there is none */
    int lock;        /* -1: there is none. On file systems without locks, no run counts as dead */
} run_folder;

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    return remove(path) && errno != ENOENT;
}

/* Removes the folder of a run; the lock is removed last, so that a partly removed folder is still recognised. */
static void remove_run_folder(const char *path) {
    enum { OPEN_FOLDERS = 16 };
    char inside[4096];
    if (snprintf(inside, sizeof inside, "%s/outputs", path) < (int)sizeof inside)
        nftw(inside, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
    if (snprintf(inside, sizeof inside, "%s/lock", path) < (int)sizeof inside)
        unlink(inside);
    rmdir(path);
}

/* Whether a folder is this user's own, and its lock free; then *lock has it. */
static bool is_dead_run(int folder, const char *name, int *lock) {
    struct stat there;
    char path[300];
    if (strncmp(name, RUN_PREFIX, strlen(RUN_PREFIX)) != 0 || fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) ||
        !S_ISDIR(there.st_mode) || there.st_uid != geteuid() ||
        snprintf(path, sizeof path, "%s/lock", name) >= (int)sizeof path)
        return false;
    *lock = openat(folder, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*lock < 0)
        return false;
    if (!fstat(*lock, &there) && S_ISREG(there.st_mode) && !flock(*lock, LOCK_EX | LOCK_NB))
        return true;
    close(*lock);
    return false;
}

/* Removes the folders of runs that were killed. */
static void remove_dead_runs(const char *path) {
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        char dead[4096];
        int lock;
        if (!is_dead_run(dirfd(folder), entry->d_name, &lock))
            continue;
        if (snprintf(dead, sizeof dead, "%s/%s", path, entry->d_name) < (int)sizeof dead)
            remove_run_folder(dead);
        close(lock);
    }
    if (folder)
        closedir(folder);
}

/* Locks the folder of a run. False: another run considered it dead before it was locked, and removes it. */
static bool lock_run(run_folder *run) {
    char path[4096];
    struct stat held, there;
    if (snprintf(path, sizeof path, "%s/lock", run->path) >= (int)sizeof path)
        return true;
    run->lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (run->lock < 0)
        return errno != ENOENT;
    bool locked = !flock(run->lock, LOCK_EX | LOCK_NB);
    if (!locked && errno != EWOULDBLOCK)
        return true;
    if (locked && !fstat(run->lock, &held) && !stat(path, &there) && held.st_dev == there.st_dev &&
        held.st_ino == there.st_ino)
        return true;
    close(run->lock);
    run->lock = -1;
    return false;
}

static void end_run(run_folder *run) {
    if (run->path[0])
        remove_run_folder(run->path);
    if (run->lock >= 0)
        close(run->lock);
}

/* Creates the folder of a run in an existing folder. */
static doppel_status begin_run(run_folder *run, const char *folder, doppel_error *error) {
    remove_dead_runs(folder);
    do {
        if (snprintf(run->path, sizeof run->path, "%s/" RUN_PREFIX "XXXXXX", folder) >= (int)sizeof run->path) {
            run->path[0] = 0;
            return dp_fail_at(error, DOPPEL_ERROR_IO, folder, 0, "the name is too long");
        }
        if (!mkdtemp(run->path)) {
            run->path[0] = 0;
            return dp_fail_at(error, DOPPEL_ERROR_IO, folder, 0, "cannot be written: %s", strerror(errno));
        }
    } while (!lock_run(run));
    return DOPPEL_OK;
}

/* ---- a file for each input ---- */

typedef struct file_writing {
    doppel_batch *batch;
    run_folder run;
    size_t next;           /* the file that is begun next; the one before it is open */
    doppel_writer *writer; /* of it; NULL: none is */
    doppel_error error;
} file_writing;

static doppel_status fail_folder(const char *path, doppel_error *error) {
    return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be created: %s", strerror(errno));
}

/* Makes the folders that a path goes through. */
static doppel_status make_folders(char *path, doppel_error *error) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        bool made = !mkdir(path, 0777) || errno == EEXIST;
        if (!made)
            return fail_folder(path, error);
        *slash = '/';
    }
    return DOPPEL_OK;
}

/* The path of an output below a folder, whose folders are made. */
static doppel_status place_of(const char *folder, const char *name, char path[4096], doppel_error *error) {
    if (snprintf(path, 4096, "%s/%s", folder, name) >= 4096)
        return dp_fail_at(error, DOPPEL_ERROR_IO, name, 0, "the name of its output is too long");
    return make_folders(path, error);
}

/* Where an output is until all are complete: a number, as its own name may leave no room for what the writer adds to
 * it, and the ending that says how it is compressed. */
static doppel_status staged_path(const file_writing *w, size_t i, char path[4096], doppel_error *error) {
    const char *name = w->batch->files.file[i].name;
    size_t length = strlen(name);
    const char *ending = ends_in(name, length, ".gz") ? ".gz" : ends_in(name, length, ".zst") ? ".zst" : "";
    if (snprintf(path, 4096, "%s/outputs/%zu%s", w->run.path, i, ending) >= 4096)
        return dp_fail_at(error, DOPPEL_ERROR_IO, name, 0, "the name of its output is too long");
    return DOPPEL_OK;
}

/* An error in writing the open output names the place it is meant for. */
static doppel_status name_output(file_writing *w, doppel_status status) {
    const dp_output_files *files = &w->batch->files;
    char path[4096], message[sizeof w->error.message];
    if (status != DOPPEL_ERROR_IO || !w->next || w->next > files->count)
        return status;
    memcpy(message, w->error.message, sizeof message);
    snprintf(path, sizeof path, "%s/%s", files->folder, files->file[w->next - 1].name);
    return dp_fail_at(&w->error, status, path, 0, "%s", message);
}

static doppel_status end_output(file_writing *w, bool ok) {
    doppel_writer *writer = w->writer;
    w->writer = NULL;
    return name_output(w, doppel_writer_finish(writer, ok, ok ? &w->error : NULL));
}

/* Opens the next output, with its header. */
static doppel_status begin_output(file_writing *w) {
    const dp_output_file *file = &w->batch->files.file[w->next];
    char path[4096];
    DP_TRY(staged_path(w, w->next++, path, &w->error));
    DP_TRY(doppel_writer_open(&w->writer, path, (int)w->batch->settings.threads, &w->error));
    return file->header.size ? write_line(w->writer, header_of(file), &w->error) : DOPPEL_OK;
}

/* Ends the files before this one, each with its header at least, and opens it. */
static doppel_status begin_files(file_writing *w, uint64_t file) {
    const dp_output_files *files = &w->batch->files;
    while (w->next <= file) {
        if (w->next >= files->count)
            return dp_inputs_changed(&w->error);
        DP_TRY(end_output(w, true));
        if (files->file[w->next].absent)
            w->next++;
        else
            DP_TRY(name_output(w, begin_output(w)));
    }
    return DOPPEL_OK;
}

static doppel_status write_to_file(const dp_written_document *document, void *user) {
    file_writing *w = user;
    if (document->file >= w->next)
        DP_TRY(begin_files(w, document->file));
    if (!w->writer)
        return dp_inputs_changed(&w->error);
    if (!doppel_batch_stays(w->batch, document->position))
        return DOPPEL_OK;
    return name_output(w, write_line(w->writer, document->record, &w->error));
}

/* Renames all outputs into place. */
static doppel_status move_files(file_writing *w) {
    const dp_output_files *files = &w->batch->files;
    char from[4096], to[4096];
    for (size_t i = 0; i < files->count; i++) {
        if (files->file[i].absent)
            continue;
        DP_TRY(place_of(files->folder, files->file[i].name, to, &w->error));
        DP_TRY(staged_path(w, i, from, &w->error));
        if (rename(from, to))
            return dp_fail_at(&w->error, DOPPEL_ERROR_IO, to, 0, "cannot be written: %s", strerror(errno));
    }
    return DOPPEL_OK;
}

/* Makes the folder of all outputs, and in it the one of this run. */
static doppel_status begin_staging(file_writing *w) {
    char folder[4096];
    DP_TRY(place_of(w->batch->files.folder, "", folder, &w->error));
    DP_TRY(begin_run(&w->run, w->batch->files.folder, &w->error));
    return place_of(w->run.path, "outputs/", folder, &w->error);
}

doppel_status doppel_batch_write_files(doppel_batch *batch, doppel_error *error) {
    const dp_output_files *files = &batch->files;
    file_writing w = {.batch = batch, .run = {.lock = -1}};
    if (!files->folder)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "outputs have to be planned before documents are read");
    doppel_status status = begin_staging(&w);
    DP_THEN(status, dp_write_again(batch, true, write_to_file, &w, error));
    if (status == DOPPEL_OK && files->count)
        status = begin_files(&w, files->count - 1);
    doppel_status ended = end_output(&w, status == DOPPEL_OK);
    DP_THEN(status, ended);
    DP_THEN(status, move_files(&w));
    end_run(&w.run);
    if (status != DOPPEL_OK && w.error.code != DOPPEL_OK && error)
        *error = w.error;
    return status;
}
