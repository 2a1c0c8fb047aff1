/* again.c - inputs that are read more than once: stdin, which is copied unless it is a plain file, and named pipes,
 * which are refused. */
#include "input/input.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
