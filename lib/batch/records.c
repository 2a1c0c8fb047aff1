/* records.c - records that are read again, by their positions: dp_record_files_add when a file is begun,
 * dp_record_files_position for each of its records, then dp_record_files_read from any thread.
 *
 * A position is the base of the file plus the offset in it. The next file begins after all that is known of the one
 * before it, even if that grew while it was read, so no two files overlap and a position identifies its file. Files are
 * opened when they are first needed and kept open, up to a number of them; further ones are opened for each read. */
#include "batch/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* At most this many files are kept open, and at most this fraction of those that the process may have open. */
enum { MOST_OPEN = 256, SHARE_OPEN = 4 };

static bool is_stdin(const char *name) {
    return !strcmp(name, "-");
}

static dp_file_state state_of(const struct stat *known) {
    return (dp_file_state){(uint64_t)known->st_size, known->st_mtim.tv_sec * 1000000000LL + known->st_mtim.tv_nsec};
}

dp_file_state dp_file_state_get(const char *name) {
    struct stat known;
    bool there = is_stdin(name) ? !fstat(STDIN_FILENO, &known) : !stat(name, &known);
    return there ? state_of(&known) : (dp_file_state){0};
}

bool dp_file_is_regular(const char *name) {
    struct stat known;
    return (is_stdin(name) ? !fstat(STDIN_FILENO, &known) : !stat(name, &known)) && S_ISREG(known.st_mode);
}

static bool is_same(const dp_file_state *a, const dp_file_state *b) {
    return a->bytes == b->bytes && a->changed == b->changed;
}

doppel_status dp_inputs_changed(doppel_error *error) {
    return dp_fail(error, DOPPEL_ERROR_INPUT, "the inputs have changed since they were read: start again");
}

/* ---- positions ---- */

bool dp_record_files_add(dp_record_files *files, const char *path, const dp_file_state *state, bool known) {
    if (!dp_reserve(&files->file, &files->room, files->count + 1, sizeof *files->file))
        return false;
    dp_record_file *file = &files->file[files->count];
    *file = (dp_record_file){.path = strdup(path), .base = files->end, .state = *state, .known = known};
    if (!file->path)
        return false;
    files->count++;
    files->end += state->bytes + 1;
    return true;
}

uint64_t dp_record_files_position(dp_record_files *files, uint64_t record_at, uint32_t length) {
    uint64_t position = files->file[files->count - 1].base + record_at;
    if (files->end <= position + length)
        files->end = position + length + 1;
    return position;
}

static dp_record_file *find(const dp_record_files *files, uint64_t position) {
    size_t low = 0, high = files->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (files->file[middle].base <= position)
            low = middle;
        else
            high = middle;
    }
    return &files->file[low];
}

const dp_record_file *dp_record_files_find(const dp_record_files *files, uint64_t position) {
    return find(files, position);
}

/* ---- reading ---- */

/* Opens a file if it is unchanged; -1, and a reason, if not. */
static int open_same(const dp_record_file *file, doppel_error *error) {
    struct stat now;
    int fd = is_stdin(file->path) ? dup(STDIN_FILENO) : open(file->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
        dp_fail_at(error, DOPPEL_ERROR_IO, file->path, 0, "cannot be opened: %s", strerror(errno));
        return -1;
    }
    if (fd >= 0 && !fstat(fd, &now)) {
        dp_file_state state = state_of(&now);
        if (is_same(&state, &file->state))
            return fd;
    }
    if (fd >= 0)
        close(fd);
    dp_inputs_changed(error);
    return -1;
}

static int most_open(void) {
    struct rlimit limit;
    bool known = !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur != RLIM_INFINITY;
    return known && limit.rlim_cur / SHARE_OPEN < MOST_OPEN ? (int)(limit.rlim_cur / SHARE_OPEN) : MOST_OPEN;
}

/* The file, open; *own: the caller is to close it. */
static int get_open(dp_record_files *files, dp_record_file *file, bool *own, doppel_error *error) {
    int known = atomic_load_explicit(&file->fd, memory_order_acquire);
    *own = false;
    if (known)
        return known - 1;
    int fd = open_same(file, error);
    if (fd < 0)
        return fd;
    if (atomic_fetch_add(&files->open, 1) < most_open() && atomic_compare_exchange_strong(&file->fd, &known, fd + 1))
        return fd;
    /* There are too many, or another thread was faster. */
    atomic_fetch_sub(&files->open, 1);
    *own = true;
    return fd;
}

static doppel_status read_all(int fd, uint64_t at, char *to, size_t length, doppel_error *error) {
    while (length) {
        ssize_t got = pread(fd, to, length, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return dp_fail(error, DOPPEL_ERROR_IO, "an input cannot be read again: %s", strerror(errno));
        if (!got)
            return dp_inputs_changed(error);
        to += got;
        at += (uint64_t)got;
        length -= (size_t)got;
    }
    return DOPPEL_OK;
}

doppel_status dp_record_files_read(dp_record_files *files, uint64_t position, void *bytes, size_t length,
                                   doppel_error *error) {
    bool own;
    doppel_error reason = {0};
    dp_record_file *file = find(files, position);
    int fd = get_open(files, file, &own, &reason);
    doppel_status status = fd < 0 ? reason.code : read_all(fd, position - file->base, bytes, length, &reason);
    if (own && fd >= 0)
        close(fd);
    if (status != DOPPEL_OK && error)
        *error = reason;
    return status;
}

doppel_status dp_record_files_check(const dp_record_files *files, doppel_error *error) {
    for (size_t i = 0; i < files->count; i++) {
        dp_file_state now = dp_file_state_get(files->file[i].path);
        if (!is_same(&now, &files->file[i].state))
            return dp_inputs_changed(error);
    }
    return DOPPEL_OK;
}

void dp_record_files_free(dp_record_files *files) {
    for (size_t i = 0; i < files->count; i++) {
        int fd = atomic_load(&files->file[i].fd);
        if (fd)
            close(fd - 1);
        free(files->file[i].path);
    }
    free(files->file);
    *files = (dp_record_files){0};
}
