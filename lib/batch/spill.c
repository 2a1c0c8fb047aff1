/* spill.c - files that only grow, in pieces: open, add ..., flush, read ..., close. */
#include "batch/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Written at once. */
#define PIECE ((size_t)1 << 20)

static doppel_status open_named(dp_spill *spill, const char *folder, const char *name, doppel_error *error) {
    char path[4096];
    struct stat known;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return dp_fail(error, DOPPEL_ERROR_IO, "%s: the name is too long", folder);
    spill->file.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (spill->file.fd < 0 || fstat(spill->file.fd, &known))
        return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be opened: %s", strerror(errno));
    spill->file.open = true;
    spill->file.size = (uint64_t)known.st_size;
    snprintf(spill->file.folder, sizeof spill->file.folder, "%.200s", folder);
    return DOPPEL_OK;
}

doppel_status dp_spill_open(dp_spill *spill, const char *folder, const char *name, const char *tmp,
                            doppel_error *error) {
    *spill = (dp_spill){.file = {.fd = -1}};
    return folder ? open_named(spill, folder, name, error) : dp_scratch_open(&spill->file, tmp, error);
}

void dp_spill_close(dp_spill *spill) {
    if (spill->file.open)
        dp_scratch_close(&spill->file);
    dp_buffer_free(&spill->pending);
}

doppel_status dp_spill_flush(dp_spill *spill, doppel_error *error) {
    size_t length = spill->pending.size;
    if (!length)
        return DOPPEL_OK;
    doppel_status status = dp_scratch_write(&spill->file, spill->pending.data, length, spill->file.size, error);
    if (status == DOPPEL_OK) {
        spill->file.size += length;
        spill->pending.size = 0;
    }
    return status;
}

doppel_status dp_spill_add(dp_spill *spill, const void *bytes, size_t length, doppel_error *error) {
    if (!length)
        return DOPPEL_OK;
    if (!dp_buffer_add(&spill->pending, bytes, length))
        return dp_no_memory(error);
    return spill->pending.size < PIECE ? DOPPEL_OK : dp_spill_flush(spill, error);
}

doppel_status dp_spill_read(const dp_spill *spill, uint64_t at, void *bytes, size_t length, doppel_error *error) {
    return length ? dp_scratch_read(&spill->file, bytes, length, at, error) : DOPPEL_OK;
}
