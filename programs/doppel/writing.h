/* writing.h - where the output of a command goes: stdout, or a file that is whole or absent. */
#ifndef WRITING_H
#define WRITING_H

#include "common/args.h"
#include "doppel.h"

/* Writes to stdout: doppel_work.emit. A reader that has gone away ends the run quietly. */
doppel_status write_stdout(void *user, const char *bytes, size_t length);

/* Ends writing to stdout: `code`, or EXIT_STORE when it could not be written (not when the reader has gone away). */
int finish_stdout(int code);

/* Writes a document's id, with what would break a line escaped. */
doppel_status write_id(const doppel_document *document, doppel_output *output);

/* Whether the reader of the output has gone away. */
bool output_closed(void);

/* Lines on their way out, many at a time. */
typedef struct writer {
    doppel_writer *file; /* NULL: stdout */
    char *bytes;
    size_t used;
} writer;

/* Whether an output is stdout: NULL, - or a name of its descriptor. */
bool is_stdout(const char *path);

/* Opens a writer for a file (NULL: stdout). Complains and gives the exit code when that cannot be. Close it in any
 * case. */
int writer_open(writer *w, const char *path);

doppel_status writer_add(writer *w, const void *bytes, size_t length);

/* Writes what waits. */
doppel_status writer_flush(writer *w);

/* Room for a line of up to WRITER_LINE bytes, to be written there and then taken; NULL when what was before cannot be
 * written. */
enum { WRITER_LINE = 64 };
char *writer_line(writer *w);
static inline void writer_take(writer *w, size_t length) {
    w->used += length;
}

/* Ends writing, `code` being how the work went: unless it is EXIT_DONE, a file is left as it was before. Gives `code`,
 * or what went wrong here. */
int writer_close(writer *w, int code);

#endif
