/* writing.c - output: to stdout, or to a file that is written beside its place and renamed once it is whole. What is no
 * plain file, such as a device or a pipe, is written in its place. */
#include "writing.h"

#include "common/message.h"
#include "common/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As much as is written at once: a system call costs nothing beside filling it. */
#define ROOM ((size_t)256 << 10)

static bool closed;

bool output_closed(void) {
    return closed;
}

/* Writes all of it; `name` is what a message calls the file. */
static doppel_status write_all(int file, const char *name, const char *bytes, size_t length) {
    while (length) {
        ssize_t written = write(file, bytes, length);
        if (written >= 0) {
            bytes += written;
            length -= (size_t)written;
        } else if (errno == EPIPE) {
            closed = true;
            return DOPPEL_ERROR_INTERRUPTED;
        } else if (errno != EINTR) {
            message("cannot write to %s: %s", name, strerror(errno));
            failure_told = true;
            return DOPPEL_ERROR_STORE;
        }
    }
    return DOPPEL_OK;
}

doppel_status write_stdout(void *user, const char *bytes, size_t length) {
    (void)user;
    if (isatty(STDOUT_FILENO))
        progress_clear();
    return write_all(STDOUT_FILENO, "stdout", bytes, length);
}

int finish_stdout(int code) {
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout))
        return code;
    if (errno == EPIPE)
        return code;
    message("cannot write to stdout: %s", strerror(errno));
    return code ? code : EXIT_STORE;
}

doppel_status write_id(const doppel_document *document, doppel_output *output) {
    const char *p = document->id;
    size_t left = document->id_length;
    doppel_status status = DOPPEL_OK;
    while (left && status == DOPPEL_OK) {
        safe_escape escape;
        size_t run = safe_run(p, left, true, &escape), taken = run ? run : escape.taken;
        status =
            run ? doppel_output_write(output, p, run) : doppel_output_write(output, escape.text, strlen(escape.text));
        p += taken;
        left -= taken;
    }
    return status;
}

/* ---- writers ---- */

/* Opens a file beside the path, with the rights a new file gets. */
static int open_beside(writer *w) {
    size_t room = strlen(w->path) + sizeof ".XXXXXX";
    mode_t mask = umask(0);
    umask(mask);
    w->beside = malloc(room);
    if (!w->beside)
        return -1;
    snprintf(w->beside, room, "%s.XXXXXX", w->path);
    int file = mkstemp(w->beside);
    if (file >= 0 && !fchmod(file, 0666 & ~mask))
        return file;
    int kept = errno;
    if (file >= 0) {
        close(file);
        unlink(w->beside);
    }
    free(w->beside);
    w->beside = NULL;
    errno = kept;
    return -1;
}

int writer_open(writer *w, const char *path) {
    struct stat there;
    *w = (writer){.file = -1, .path = path, .bytes = malloc(ROOM)};
    if (!w->bytes) {
        message("no memory");
        return EXIT_STORE;
    }
    if (!path)
        return EXIT_DONE;
    bool in_place = !stat(path, &there) && !S_ISREG(there.st_mode);
    w->file = in_place ? open(path, O_WRONLY | O_CLOEXEC) : open_beside(w);
    if (w->file >= 0)
        return EXIT_DONE;
    message("%s: cannot be written: %s", path, strerror(errno));
    return EXIT_STORE;
}

static doppel_status flush(writer *w) {
    size_t length = w->used;
    w->used = 0;
    return w->path ? write_all(w->file, w->path, w->bytes, length) : write_stdout(NULL, w->bytes, length);
}

doppel_status writer_add(writer *w, const void *bytes, size_t length) {
    doppel_status status = DOPPEL_OK;
    while (length && status == DOPPEL_OK) {
        size_t part = length < ROOM - w->used ? length : ROOM - w->used;
        memcpy(w->bytes + w->used, bytes, part);
        w->used += part;
        bytes = (const char *)bytes + part;
        length -= part;
        if (w->used == ROOM)
            status = flush(w);
    }
    return status;
}

char *writer_line(writer *w) {
    if (ROOM - w->used < WRITER_LINE && flush(w) != DOPPEL_OK)
        return NULL;
    return w->bytes + w->used;
}

/* Puts the file into its place. */
static int settle(writer *w) {
    bool whole = !close(w->file);
    w->file = -1;
    if (whole && (!w->beside || !rename(w->beside, w->path)))
        return EXIT_DONE;
    message("cannot write to %s: %s", w->path, strerror(errno));
    return EXIT_STORE;
}

int writer_close(writer *w, int code) {
    if (code == EXIT_DONE) {
        doppel_status status = flush(w);
        if (status != DOPPEL_OK && !closed)
            code = exit_code(status);
        else if (w->file >= 0)
            code = settle(w);
    }
    if (w->file >= 0)
        close(w->file);
    if (code != EXIT_DONE && w->beside)
        unlink(w->beside);
    free(w->beside);
    free(w->bytes);
    *w = (writer){.file = -1};
    return code;
}
