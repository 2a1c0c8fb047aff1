/* writing.c - output: to stdout, or to a file that is whole or absent. */
#include "writing.h"

#include "common/message.h"
#include "common/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
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

/* Threads that compress: more than so many wait for one another. */
enum { PACKERS = 4 };

bool is_stdout(const char *path) {
    static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    for (size_t i = 0; path && i < sizeof names / sizeof *names; i++)
        if (!strcmp(path, names[i]))
            return true;
    return !path;
}

int writer_open(writer *w, const char *path) {
    doppel_error error = {0};
    *w = (writer){.bytes = malloc(ROOM)};
    if (!w->bytes) {
        message("no memory");
        return EXIT_STORE;
    }
    if (is_stdout(path) || doppel_writer_open(&w->file, path, PACKERS, &error) == DOPPEL_OK)
        return EXIT_DONE;
    message_error(&error);
    return EXIT_STORE;
}

doppel_status writer_flush(writer *w) {
    doppel_error error = {0};
    size_t length = w->used;
    w->used = 0;
    if (!length)
        return DOPPEL_OK;
    if (!w->file)
        return write_stdout(NULL, w->bytes, length);
    doppel_status status = doppel_writer_write(w->file, w->bytes, length, &error);
    if (status == DOPPEL_OK)
        return DOPPEL_OK;
    message_error(&error);
    failure_told = true;
    return DOPPEL_ERROR_STORE;
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
            status = writer_flush(w);
    }
    return status;
}

char *writer_line(writer *w) {
    if (ROOM - w->used < WRITER_LINE && writer_flush(w) != DOPPEL_OK)
        return NULL;
    return w->bytes + w->used;
}

int writer_close(writer *w, int code) {
    doppel_error error = {0};
    if (code == EXIT_DONE && w->bytes) {
        doppel_status status = writer_flush(w);
        if (status != DOPPEL_OK && !closed)
            code = exit_code(status);
    }
    if (doppel_writer_finish(w->file, code == EXIT_DONE, &error) != DOPPEL_OK && code == EXIT_DONE) {
        message_error(&error);
        code = EXIT_STORE;
    }
    free(w->bytes);
    *w = (writer){0};
    return code;
}
