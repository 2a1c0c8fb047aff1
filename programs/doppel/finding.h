/* finding.h - what overlap and mirrors share: options, reading and finding in one call, lines of output. */
#ifndef FINDING_H
#define FINDING_H

#include "commands.h"
#include "pages.h"

/* A command line at work: open, find (the command's own call), end, close. */
typedef struct finding {
    const cli_args *args;
    loaded_recipe loaded;
    doppel_input_options input;
    doppel_content content;
    uint64_t memory;
    const char *tmp;
    writer out;
    FILE *line; /* what is printed here goes out with finding_line */
    char *text;
    size_t length;
} finding;

#define FINDING_OPTIONS                                                                                             \
    CONTENT_OPTION, RECIPE_OPTIONS,                                                                                 \
        {"output", 'o', OPTION_OUTPUT, "FILE", "write to this file, which is whole or absent, in place of stdout"}, \
        {"memory", 0, OPTION_SIZE, "BYTES",                                                                         \
         "use about this much memory, then files in --tmp (default: half of what is free)"},                        \
        {"tmp", 0, OPTION_FILE, "DIR",                                                                              \
         "where files go that do not outlive the command (default: $TMPDIR, else /tmp)"},                           \
    {                                                                                                               \
        "json", 0, OPTION_FLAG, NULL, "with --output: print a summary as one JSON object"                           \
    }

/* Gives an exit code, with a message unless it is EXIT_DONE. Close it in any case. */
int finding_open(finding *f, const cli_args *args);
void finding_close(finding *f);

/* Writes the line that was printed to f->line. */
doppel_status finding_line(finding *f);

/* Once all was found: messages, the end of the output, and the exit code. *whole: the output is. */
int finding_end(finding *f, doppel_status status, const doppel_error *error, const doppel_input_counts *counts,
                bool *whole);

#endif
