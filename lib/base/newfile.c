/* newfile.c - files that are whole or absent: written beside their place, synced, then renamed into it.
 *
 * dp_newfile_create -> write to `number` -> dp_newfile_finish. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static doppel_status fail_write(doppel_error *error, const char *path, int reason) {
    if (reason == ENOMEM)
        return dp_no_memory(error);
    return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be written: %s", strerror(reason ? reason : EIO));
}

doppel_status dp_newfile_create(dp_newfile *file, const char *path, doppel_error *error) {
    dp_buffer beside = {0};
    *file = (dp_newfile){.number = -1, .path = path};
    /* The thread's number, so that two that write to the same path do not meet. */
    if (!dp_buffer_printf(&beside, "%s.%ld.tmp", path, (long)gettid()) || !dp_buffer_add(&beside, "", 1)) {
        dp_buffer_free(&beside);
        return dp_no_memory(error);
    }
    file->beside = beside.data;
    file->number = open(file->beside, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file->number >= 0)
        return DOPPEL_OK;
    int reason = errno;
    free(file->beside);
    return fail_write(error, path, reason);
}

/* A name is safe only once its folder is; gives what went wrong, or 0. */
static int sync_folder(char *path) {
    char *slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = 0;
    int folder = open(slash ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A folder that can be written but not read, and a file system that cannot sync folders, are no reason to fail. */
    if (folder < 0)
        return 0;
    int reason = fsync(folder) && errno != EINVAL ? errno : 0;
    close(folder);
    return reason;
}

doppel_status dp_newfile_finish(dp_newfile *file, int reason, doppel_error *error) {
    if (!reason && fsync(file->number))
        reason = errno ? errno : EIO;
    if (close(file->number) && !reason)
        reason = errno;
    if (!reason && rename(file->beside, file->path))
        reason = errno ? errno : EIO;
    if (reason)
        unlink(file->beside);
    else
        reason = sync_folder(file->beside);
    free(file->beside);
    return reason ? fail_write(error, file->path, reason) : DOPPEL_OK;
}
