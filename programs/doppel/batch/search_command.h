/* search_command.h - what overlap and mirrors share: options, reading and finding in one call, lines of output. */
#ifndef BATCH_SEARCH_COMMAND_H
#define BATCH_SEARCH_COMMAND_H

#include "shared/choices.h"
#include "shared/inputs.h"
#include "shared/outputs.h"
#include "shared/recipes.h"

/* A command line at work: open, find (the command's own call), end, close. */
typedef struct search_command {
    const cli_args *args;
    loaded_recipe loaded;
    doppel_input_options input;
    doppel_content content;
    uint64_t memory;
    const char *tmp;
    writer out;
    FILE *line; /* what is printed here goes out with search_write_line */
    char *text;
    size_t length;
} search_command;

#define SEARCH_OPTIONS                                                                                              \
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
int search_open(search_command *f, const cli_args *args);
void search_close(search_command *f);

/* Writes the line that was printed to f->line. */
doppel_status search_write_line(search_command *f);

/* Once all was found: messages, the end of the output, and the exit code. *whole: the output is. */
int search_end(search_command *f, doppel_status status, const doppel_error *error, const doppel_input_counts *counts,
               bool *whole);

#endif
