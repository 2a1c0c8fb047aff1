/* compared_pair.h - the two documents of doppel compare: files, or documents of files or of an index. */
#ifndef COMPARED_PAIR_H
#define COMPARED_PAIR_H

#include "common/args.h"
#include "engine/engine_command.h"

typedef struct compared_side {
    char *id, *text, *title; /* title NULL: there is none */
    size_t id_length, length;
    bool more; /* the file has another document */
    doppel_content content;
    doppel_page_reader *reader;
} compared_side;

/* Zero, with `given` and `content` set, is a pair that was not read yet. */
typedef struct compared_pair {
    compared_side a, b;
    const char *given[2]; /* A and B: paths, or ids. B is `original` with --removed */
    char *original;       /* with --removed: the id of B */
    char *reason;         /* with --removed: why A was removed for B, as the list has it, */
    double similarity;    /* and how similar their texts are, or their titles if these are the reason; NAN: unknown */
    engine_command index; /* with --index: open until the end */
} compared_pair;

/* Reads both documents, by the options of args; returns an exit code. */
int compared_pair_read(const cli_args *args, compared_pair *c);

/* Closes the index, too; returns `code`, or what is wrong with the index. */
int compared_pair_free(compared_pair *c, int code);

#endif
