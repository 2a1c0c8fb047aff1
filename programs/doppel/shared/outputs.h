/* outputs.h - where the output of a command goes: stdout, or a file that is whole or absent; and which outputs are
 * refused. */
#ifndef SHARED_OUTPUTS_H
#define SHARED_OUTPUTS_H

#include "common/args.h"
#include "common/text.h"

#include <stdatomic.h>

/* ---- writing ---- */

/* Options of commands that write to a file or stdout, and of those that use temporary files. */
#define OUTPUT_OPTION \
    { "output", 'o', OPTION_OUTPUT, "FILE", "write to this file instead of stdout; it appears once it is complete" }
#define SUMMARY_OPTION \
    { "json", 0, OPTION_FLAG, NULL, "with --output: print a summary as one JSON object" }
#define TMP_OPTION \
    { "tmp", 0, OPTION_FILE, "DIR", "where temporary files go (default: $TMPDIR, else /tmp)" }
#define MEMORY_OPTION                                                                             \
    {                                                                                             \
        "memory", 0, OPTION_MEMORY, "BYTES",                                                      \
            "use about this much memory, then temporary files (default: half of the free memory)" \
    }

/* Says that an output whose name ends in .json has lines, and that one of tables lacks columns if it is not a table. */
void tell_jsonl(const cli_args *args);

/* Writes to stdout: doppel_work.emit. If the reader has closed it, the run ends quietly. */
doppel_status write_stdout(void *user, doppel_slice bytes);

/* Ends writing to stdout: `code`, or EXIT_STORE when it could not be written (not when the reader has closed it). */
int finish_stdout(int code);

/* Prints a text to stdout and frees it. Returns `code`, or EXIT_STORE when there was no memory for the text. */
int print_text(text_buffer *t, int code);
/* The same, and ends writing to stdout. */
int finish_text(text_buffer *t, int code);

/* Writes a document's id, with what would break a line escaped. */
doppel_status write_id(const doppel_document *document, doppel_output *output);

/* Whether the reader of stdout has closed it. */
bool output_closed(void);

/* Buffered lines of output. */
typedef struct writer {
    doppel_writer *file; /* NULL: stdout */
    char *bytes;
    size_t used;
    bool terminal;        /* pieces go to one */
    atomic_bool reported; /* a failure of a piece */
} writer;

/* Whether an output is stdout: NULL, - or a name of its descriptor. */
bool is_stdout(const char *path);

/* The value of --threads; 0: one for each CPU. */
int output_threads(const cli_args *args);

/* Opens a writer for a file (NULL: stdout), which is compressed on `threads` threads (0: one for each CPU). Prints a
 * message and returns the exit code on failure. Close it in any case. */
int writer_open(writer *w, const char *path, int threads);

doppel_status writer_add(writer *w, const void *bytes, size_t length);

/* The same for a text, which is empty then; DOPPEL_ERROR_MEMORY when it has failed. */
doppel_status writer_add_text(writer *w, text_buffer *text);

/* Writes what is buffered. */
doppel_status writer_flush(writer *w);

/* Room for a line of up to WRITER_LINE bytes: fill it, then call writer_take. NULL when earlier lines cannot be
 * written. */
enum { WRITER_LINE = 64 };
char *writer_line(writer *w);
static inline void writer_take(writer *w, size_t length) {
    w->used += length;
}

/* The same for pieces that come from several threads, which the file has in the order of their numbers, from 0 on
 * (doppel_writer_put): open, put ..., close. threads 0: one for each CPU. */
int writer_open_pieces(writer *w, const char *path, int threads);
doppel_status writer_put(writer *w, uint64_t number, doppel_slice bytes);
/* Takes the result of a library call that wrote to w->file: notes that stdout was closed (output_closed). */
doppel_status writer_result(doppel_status status);

/* Ends writing, `code` being how the work went: unless it is EXIT_DONE, a file is left as it was before. Returns
 * `code`, or what went wrong here. */
int writer_close(writer *w, int code);

/* ---- which outputs are refused ---- */

/* Prints a message and returns false when --output, or another option that writes a file, is an input, is in a folder
 * that is one, or when two of them are the same. */
bool check_outputs(const cli_args *args);

/* The same for one path, the value of an option, and one input; both may be NULL. */
bool check_output(const char *option, const char *path, const char *input);

/* Prints a message and returns false when --json, which prints a summary, is given without --output FILE. */
bool check_json(const cli_args *args);

/* Prints a message and returns false when JSONL would go under the name of another format. */
bool check_jsonl_name(const char *path);
/* Whether it is a name of a table, and tables can be written. */
bool is_table_name(const char *path);

/* Of a command that writes documents: whether they go to tables, by the name that --output has; with --output-dir, by
 * those of the inputs. */
bool writes_tables(const cli_args *args);
/* Prints a message and returns false when such a command has no output (nor --dry-run, --removed or
 * --removed-documents), has two, or one that is a folder or has a name of another format. `rows`: it can write rows of
 * CSV and lines unchanged, and files of all formats to a folder. */
bool check_documents_output(const cli_args *args, bool rows);
/* Whether such a command writes rows, by --format and the names of its inputs and its output. */
bool writes_rows(const cli_args *args);

/* Opens --output (except with --dry-run) and the other files that are written, and leaves them unchanged, so that one
 * that cannot be written is reported before the work begins. Returns an exit code, with a message unless it is
 * EXIT_DONE. */
int try_outputs(const cli_args *args);

/* Whether inputs could not be opened, and no others gave a document: then the output is left unchanged, with a message
 * if there is one. */
bool nothing_read(const cli_args *args, const doppel_input_counts *counts);

#endif
