/* input.h - documents from files: what the rest of the library sees of lib/input.
 *
 * doppel_input_run (doppel.h) is dp_input_run with the usual sizes. How a document comes in:
 * paths -> paths.c (files) -> input.c (units of work, threads, order) -> stream.c (bytes) -> blocks.c (whole records)
 * -> format.c (which format?) -> reader.c (results) -> jsonl.c, csv.c, warc.c, mbox.c, arrow.c (documents); refusal.c
 * says whether the inputs could be read, all in all. */
#ifndef DP_INPUT_H
#define DP_INPUT_H

#include "base/base.h"

/* How the work is cut. Results do not depend on it. */
typedef struct dp_input_sizes {
    size_t block;       /* bytes of records given to a thread at a time */
    size_t small_file;  /* files up to this are given out several at a time */
    size_t batch_files; /* at most this many at a time */
    size_t pending;     /* bytes of output, and 1/1000 of it of reports, that a unit may hold until its turn */
} dp_input_sizes;

/* A file that was read. */
typedef struct dp_input_file {
    uint64_t number; /* in the order of the input, from 0 */
    char *path;
    bool table;
    uint64_t documents;
    size_t left_out; /* of a table: where its rows begin in dp_input_units.left_out; they end where the next begin */
} dp_input_file;

/* Which documents each unit of work has: a run notes them, so that a later run over the same paths, with the same
 * options and sizes, knows the number of each document on the thread that reads it. Starts as all zero. */
typedef struct dp_input_units {
    uint64_t *first; /* the number of the first document of each unit; documents count from 0 */
    size_t count, capacity;
    uint64_t documents; /* of all units */
    /* If the options have `tables`: the files, and the rows of tables that are not documents. */
    dp_input_file *files;
    size_t file_count, file_capacity;
    uint64_t *left_out;
    size_t left_out_count, left_out_capacity;
} dp_input_units;

void dp_input_units_free(dp_input_units *units);

/* Work on documents whose numbers are known, instead of doppel_work.document. */
typedef struct dp_input_numbered {
    const dp_input_units *units; /* as the run before noted them */
    /* Whether there is work for a document; by any of the threads. NULL: there is for all. Only the work is skipped:
     * the document counts as read. */
    bool (*wanted)(void *state, uint64_t number);
    doppel_status (*document)(void *state, uint64_t number, const doppel_document *document, doppel_output *output);
} dp_input_numbered;

typedef struct dp_input_job {
    const char *const *paths;
    size_t path_count;
    const doppel_input_options *options; /* may be NULL */
    const doppel_work *work;
    const dp_input_sizes *sizes; /* NULL: the usual */
    dp_input_units *units;       /* where the run notes them; NULL: nowhere */
    /* NULL: the numbers are not known. If not, units that are not as they were end the run with DOPPEL_ERROR_INPUT and
     * DP_WHY_CHANGED. */
    const dp_input_numbered *numbered;
} dp_input_job;

#define DP_WHY_SPREADSHEET "a spreadsheet, not text: save it as CSV"
#define DP_WHY_CHANGED "the inputs have changed since they were read: start again"

doppel_status dp_input_run(const dp_input_job *job, doppel_input_counts *counts, doppel_error *error);

/* ---- inputs that are read more than once: paths.c ---- */

typedef struct dp_input_paths {
    const char *const *path;
    size_t count;
} dp_input_paths;

bool dp_has_stdin(const dp_input_paths *paths);
/* Refuses named pipes: reading them a second time would wait for ever. */
doppel_status dp_check_pipes(const dp_input_paths *paths, doppel_error *error);

/* How stdin can be read again. Starts as all zero. */
typedef struct dp_stdin_copy {
    bool kept; /* it can, from `start` on */
    int64_t start;
    uint64_t bytes; /* of the copy of it, a nameless file in `tmp`; 0: it needed none */
} dp_stdin_copy;

/* Makes stdin readable from its beginning, if the paths have it. */
doppel_status dp_stdin_rewind(dp_stdin_copy *copy, const dp_input_paths *paths, const char *tmp,
                              const volatile int *stop, doppel_error *error);

/* ---- a writer's file as memory: writer.c ----
 *
 * Instead of writing to a writer: all `bytes` of its file, to which any thread may write what dp_writer_allocate has
 * given room; until doppel_writer_finish. *memory is NULL, and nothing has happened, when the writer has no such file:
 * it is compressed, a pipe, or on a file system that cannot allocate. Errors: DOPPEL_ERROR_IO. */
doppel_status dp_writer_map(doppel_writer *writer, uint64_t bytes, char **memory, doppel_error *error);
/* Makes room, from one thread at a time; also ahead of dp_writer_map, as long as nothing is written to the writer.
 * Errors: DOPPEL_ERROR_IO, when there is none, or no such file. */
doppel_status dp_writer_allocate(doppel_writer *writer, uint64_t at, uint64_t length, doppel_error *error);

/* ---- what will be read: paths.c ---- */

/* A file that will be read. */
typedef struct dp_input_kind {
    const char *path;
    const char *name; /* below the folder that was given; of a path that was given itself, that without its folders */
    /* By its name and how it begins, as doppel_input_format names it, "JSON", "text" or "lines"; by its name alone if
     * it cannot be opened, and for stdin; NULL: not known. */
    const char *format;
    bool spreadsheet; /* of the format "text", it begins as one */
    bool rows;        /* documents have doppel_document.row */
    bool records;     /* a record is a line */
    dp_buffer header; /* the row that names the columns, without the \n at its end; `found` may take it */
} dp_input_kind;

/* Calls `found` for every file that some paths stand for, in the order in which they are read, and what it is. Errors:
 * those of `found`, DOPPEL_ERROR_USAGE for an unknown options->format, DOPPEL_ERROR_MEMORY. */
doppel_status dp_input_list(const dp_input_paths *paths, const doppel_input_options *options,
                            doppel_status (*found)(dp_input_kind *file, void *user), void *user, doppel_error *error);

/* Whether a path is a folder without a single file below it. */
bool dp_input_is_empty_folder(const char *path);

/* What reads one record of JSONL after the other, for one thread: gives the fields that doppel_input_run gave of it. */
typedef struct dp_record_parser dp_record_parser;
/* What the options point to must outlive it. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_record_parser_create(const doppel_input_options *options, dp_record_parser **parser);
void dp_record_parser_free(dp_record_parser *parser);
/* The document is borrowed until the next call. Errors: DOPPEL_ERROR_INPUT for what is no record, DOPPEL_ERROR_MEMORY.
 */
doppel_status dp_record_parser_run(dp_record_parser *parser, doppel_slice record, doppel_document *document);

/* ---- records, edited in place: record.c ---- */

/* Appends a string of JSON, still escaped and without its quotes, but for parts of its text, ascending. False: no
 * memory.
 */
bool dp_json_string_cut(doppel_slice raw, const doppel_range *cuts, size_t count, dp_buffer *to);

/* Appends bytes as UTF-8, by an open converter of iconv. Where they are invalid, `unit` of them become
 * U+FFFD, and *lost is set. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_iconv_utf8(void *converter, size_t unit, doppel_slice bytes, dp_buffer *out, bool *lost);

#endif
