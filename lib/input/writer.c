/* writer.c - an output file: plain or packed, under its name once it is whole. */
#include "input/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

/* Plain bytes are written when so many are there. */
#define GATHER ((size_t)256 << 10)

struct doppel_writer {
    char *name;      /* for messages, and where it goes */
    dp_newfile file; /* if `beside` */
    int number;      /* to write to */
    bool beside;     /* written beside its place; else straight to it */
    int reason;      /* errno of what went wrong; 0: nothing */
    dp_packer *packer;
    dp_buffer plain;
};

static bool ends_in(const char *path, const char *ending) {
    size_t length = strlen(path), size = strlen(ending);
    return length > size && !strcasecmp(path + length - size, ending);
}

static doppel_status fail(const doppel_writer *writer, doppel_error *error) {
    if (writer->reason == ENOMEM)
        return dp_no_memory(error);
    return dp_fail_at(error, DOPPEL_ERROR_IO, writer->name, 0, "cannot be written: %s", strerror(writer->reason));
}

/* Writes all of it; gives 0 or an errno. */
static int put(void *user, const char *bytes, size_t length) {
    const doppel_writer *writer = user;
    while (length) {
        ssize_t written = write(writer->number, bytes, length);
        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0) {
            bytes += written;
            length -= (size_t)written;
        }
    }
    return 0;
}

/* ---- opening ---- */

/* A new file beside its place, unless what stands there is to be written to as it is. */
static doppel_status open_file(doppel_writer *writer, doppel_error *error) {
    char *place;
    writer->reason = dp_output_find(writer->name, &place, &writer->number);
    if (writer->reason)
        return fail(writer, error);
    free(place);
    if (writer->number >= 0)
        return DOPPEL_OK;
    doppel_status opened = dp_newfile_create(&writer->file, writer->name, error);
    writer->beside = opened == DOPPEL_OK;
    writer->number = writer->beside ? writer->file.number : -1;
    return opened;
}

static doppel_status open_place(doppel_writer *writer, const char *path, int threads, doppel_error *error) {
    bool to_stdout = !path || !strcmp(path, "-");
    writer->number = -1;
    writer->name = strdup(to_stdout ? "stdout" : path);
    if (!writer->name)
        return dp_no_memory(error);
    if (to_stdout) {
        writer->number = dup(STDOUT_FILENO);
        writer->reason = writer->number < 0 ? errno : 0;
        return writer->reason ? fail(writer, error) : DOPPEL_OK;
    }
    doppel_status opened = open_file(writer, error);
    bool gzip = ends_in(path, ".gz");
    if (opened != DOPPEL_OK || (!gzip && !ends_in(path, ".zst")))
        return opened;
    writer->packer = dp_packer_create(gzip ? DP_PACK_GZIP : DP_PACK_ZSTD, threads, put, writer);
    return writer->packer ? DOPPEL_OK : dp_no_memory(error);
}

doppel_status doppel_writer_open(doppel_writer **writer, const char *path, int threads, doppel_error *error) {
    *writer = calloc(1, sizeof **writer);
    if (!*writer)
        return dp_no_memory(error);
    doppel_status opened = open_place(*writer, path, threads, error);
    if (opened != DOPPEL_OK) {
        doppel_writer_finish(*writer, false, NULL);
        *writer = NULL;
    }
    return opened;
}

/* ---- writing ---- */

static int flush_plain(doppel_writer *writer) {
    int reason = put(writer, writer->plain.data, writer->plain.size);
    writer->plain.size = 0;
    return reason;
}

/* Small pieces are gathered, large ones go straight out. */
static int write_plain(doppel_writer *writer, const char *bytes, size_t length) {
    int reason = writer->plain.size + length > GATHER ? flush_plain(writer) : 0;
    if (reason || !length)
        return reason;
    if (length >= GATHER)
        return put(writer, bytes, length);
    return dp_buffer_add(&writer->plain, bytes, length) ? 0 : ENOMEM;
}

doppel_status doppel_writer_write(doppel_writer *writer, const void *bytes, size_t length, doppel_error *error) {
    if (!writer->reason)
        writer->reason =
            writer->packer ? dp_packer_add(writer->packer, bytes, length) : write_plain(writer, bytes, length);
    return writer->reason ? fail(writer, error) : DOPPEL_OK;
}

/* ---- the end ---- */

/* What was written straight to its place. */
static doppel_status close_place(doppel_writer *writer, bool ok, doppel_error *error) {
    if (writer->number >= 0 && close(writer->number) && !writer->reason)
        writer->reason = errno;
    return ok && writer->reason ? fail(writer, error) : DOPPEL_OK;
}

doppel_status doppel_writer_finish(doppel_writer *writer, bool ok, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    if (!writer)
        return DOPPEL_OK;
    if (ok && !writer->reason)
        writer->reason = writer->packer ? dp_packer_finish(writer->packer) : flush_plain(writer);
    if (!writer->beside)
        status = close_place(writer, ok, error);
    else if (ok)
        status = dp_newfile_finish(&writer->file, writer->reason, error);
    else
        dp_newfile_finish(&writer->file, ECANCELED, NULL);
    dp_packer_free(writer->packer);
    dp_buffer_free(&writer->plain);
    free(writer->name);
    free(writer);
    return status;
}
