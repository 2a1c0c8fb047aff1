/* embed.h - the command inside another program, such as the Python package: what that provides, and how it runs it.
 *
 * A program that can read and write tables (Parquet) calls embed_tables, then doppel_main. The plain command does not,
 * and its messages name the package that reads and writes Parquet. */
#ifndef COMMON_EMBED_H
#define COMMON_EMBED_H

#include <doppel.h>

/* How tables are written: to one file (`output`), or to a file for each input (below `folder`); the other is NULL. */
typedef struct table_output {
    const char *output, *folder;
    const char *const *inputs; /* as they were given */
    size_t input_count;
    const char *text;   /* the column that `trim` cuts; NULL: rows are written as they are */
    bool annotate;      /* all rows, with the decisions or the spans added; else the kept ones */
    bool counts;        /* with `annotate`: groupCounts, too (--count-by) */
    const char *prefix; /* of the names of added columns; NULL: none */
    const volatile int *stop;
    uint64_t memory; /* bytes; 0: the writer chooses */
    int threads;     /* 0: one for each CPU this process may use */
} table_output;

typedef struct embedded_tables {
    const doppel_tables *read;
    /* Opens the output, before the inputs are read; nothing appears under its name until it is finished. Errors:
     * DOPPEL_ERROR_USAGE for inputs that are not tables, or two that would be written to one file. */
    doppel_status (*create)(const table_output *output, void **writer, void *user, doppel_error *error);
    /* Writes the rows of one input, as the batch has decided; with `annotate` its groups are counted. */
    doppel_status (*write)(void *writer, const doppel_batch *batch, const doppel_batch_rows *rows, void *user,
                           doppel_error *error);
    /* Writes the row of one document, in the order of doppel_trim_write: cut (DOPPEL_TRIM_TEXTS), or with its spans
     * (`annotate`: DOPPEL_TRIM_SPANS and DOPPEL_TRIM_ORIGINALS). Rows that are dropped or missing are left
     * out. */
    doppel_status (*trim)(void *writer, const doppel_trimmed *document, void *user, doppel_error *error);
    /* Ends the output and frees the writer (may be NULL): with `ok` the output appears under its name, else it is
     * removed. */
    doppel_status (*finish)(void *writer, bool ok, void *user, doppel_error *error);
    void *user;
} embedded_tables;

/* Before doppel_main; must outlive it. */
void embed_tables(const embedded_tables *tables);
/* NULL: there are none. */
const embedded_tables *get_tables(void);

/* The end of messages of a command without tables. */
#define WHERE_PARQUET_IS "the command of the Python package has it: pip install libdoppel pyarrow"

/* Runs the command; returns the exit code. */
int doppel_main(int argc, char **argv);

#endif
