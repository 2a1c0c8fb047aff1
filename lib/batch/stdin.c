/* stdin.c - what comes from stdin can be read but once, and a batch reads it twice: it is copied into a nameless file,
 * which then stands in its place. */
#include "batch/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static bool has_stdin(const dp_reading *reading) {
    for (size_t i = 0; i < reading->count; i++)
        if (!strcmp(reading->paths[i], "-"))
            return true;
    return false;
}

static doppel_status copy_stdin(doppel_batch *batch, dp_scratch *to, doppel_error *error) {
    enum { PIECE = 1 << 20 };
    char *piece = malloc(PIECE);
    doppel_status status = piece ? DOPPEL_OK : dp_no_memory(error);
    while (status == DOPPEL_OK) {
        ssize_t got = read(STDIN_FILENO, piece, PIECE);
        if (dp_stopped(batch->input.stop))
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

doppel_status dp_stdin_rewind(doppel_batch *batch, const dp_reading *reading, doppel_error *error) {
    dp_scratch copy;
    if (!has_stdin(reading))
        return DOPPEL_OK;
    if (batch->options.work)
        return dp_fail(
            error, DOPPEL_ERROR_USAGE,
            "a run that reads stdin cannot be gone on with: write it to a file, or do without a work folder");
    if (batch->stdin_kept && lseek(STDIN_FILENO, batch->stdin_start, SEEK_SET) < 0)
        return dp_fail_at(error, DOPPEL_ERROR_INPUT, "-", 0, "cannot be read again: %s", strerror(errno));
    if (batch->stdin_kept)
        return DOPPEL_OK;
    batch->stdin_kept = true;
    /* A plain file can be read again as it is. */
    if ((batch->stdin_start = lseek(STDIN_FILENO, 0, SEEK_CUR)) >= 0)
        return DOPPEL_OK;
    batch->stdin_start = 0;
    doppel_status status = dp_scratch_open(&copy, batch->options.tmp, error);
    if (status != DOPPEL_OK)
        return status;
    status = copy_stdin(batch, &copy, error);
    if (status == DOPPEL_OK && (lseek(copy.fd, 0, SEEK_SET) < 0 || dup2(copy.fd, STDIN_FILENO) < 0))
        status = dp_fail_at(error, DOPPEL_ERROR_IO, "-", 0, "its copy cannot be read: %s", strerror(errno));
    dp_scratch_close(&copy);
    return status;
}
