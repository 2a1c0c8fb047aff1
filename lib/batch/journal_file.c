/* journal_file.c - journals as files of sketches: saved by one batch, taken by another. */
#include "batch/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Copied at once. */
#define PIECE ((size_t)4 << 20)

bool dp_is_journal(const char *path) {
    char magic[8] = {0};
    struct stat known;
    if (stat(path, &known) || !S_ISREG(known.st_mode))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is = fd >= 0 && read(fd, magic, sizeof magic) == (ssize_t)sizeof magic &&
              !memcmp(magic, DP_JOURNAL_MAGIC, sizeof magic);
    if (fd >= 0)
        close(fd);
    return is;
}

bool dp_is_work(const char *path, char *file) {
    return snprintf(file, 4096, "%s/sketches", path) < 4096 && dp_is_journal(file);
}

/* Documents alone: they are this batch's own from now on. */
static doppel_status take_foreign(doppel_batch *batch, const char *entry, size_t length, uint64_t at) {
    dp_entry head;
    (void)at;
    memcpy(&head, entry, sizeof head);
    if (head.kind == DP_ENTRY_READING || head.kind == DP_ENTRY_END)
        batch->foreign_open = head.kind == DP_ENTRY_READING;
    return head.kind == DP_ENTRY_DOCUMENT ? dp_note_entries(batch, entry, length, 0) : DOPPEL_OK;
}

doppel_status dp_journal_take(doppel_batch *batch, const char *path, doppel_error *error) {
    batch->foreign_open = false;
    dp_spill file = {.file = {.open = true, .fd = open(path, O_RDONLY | O_CLOEXEC)}};
    struct stat known;
    if (file.file.fd < 0 || fstat(file.file.fd, &known)) {
        doppel_status failed = dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be opened: %s", strerror(errno));
        if (file.file.fd >= 0)
            close(file.file.fd);
        return failed;
    }
    file.file.size = (uint64_t)known.st_size;
    snprintf(file.file.folder, sizeof file.file.folder, "%.200s", path);
    dp_replay r = {.batch = batch, .file = &file, .end = file.file.size, .take = take_foreign};
    doppel_status status = dp_replay_check(&r, path, false, error);
    if (status == DOPPEL_OK && (status = dp_replay_run(&r)) == DOPPEL_OK && r.at != r.end)
        status = dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "is cut short or was altered at byte %llu",
                            (unsigned long long)r.at);
    if (status == DOPPEL_OK && batch->foreign_open)
        status = dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0,
                            "is of a run that was not finished: go on with it first (--resume)");
    dp_spill_close(&file);
    return status;
}

doppel_status doppel_batch_save(doppel_batch *batch, const char *path, doppel_error *error) {
    dp_newfile to;
    char *piece = malloc(PIECE);
    doppel_status status = dp_spill_flush(&batch->journal, error);
    if (status != DOPPEL_OK || !piece || (status = dp_newfile_create(&to, path, error)) != DOPPEL_OK) {
        free(piece);
        return status == DOPPEL_OK ? dp_no_memory(error) : status;
    }
    int reason = 0;
    for (uint64_t at = 0; at < batch->journal.file.size && !reason && status == DOPPEL_OK;) {
        uint64_t left = batch->journal.file.size - at;
        size_t length = left < PIECE ? (size_t)left : PIECE;
        status = dp_spill_read(&batch->journal, at, piece, length, error);
        ssize_t done = status == DOPPEL_OK ? write(to.number, piece, length) : 0;
        if (done < 0 && errno != EINTR)
            reason = errno;
        at += done > 0 ? (uint64_t)done : 0;
    }
    free(piece);
    doppel_status finished = dp_newfile_finish(&to, status == DOPPEL_OK ? reason : EIO, error);
    return status == DOPPEL_OK ? finished : status;
}
