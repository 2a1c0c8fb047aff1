/* search_command.h - what overlap and mirrors share: options, reading and finding in one call, lines of output. */
#ifndef BATCH_SEARCH_COMMAND_H
#define BATCH_SEARCH_COMMAND_H

#include "shared/choices.h"
#include "shared/inputs.h"
#include "shared/outputs.h"
#include "shared/recipes.h"

/* A search of a command line: open, the command's own call, end, close. */
typedef struct search_command {
    const cli_args *args;
    loaded_recipe loaded;
    doppel_input_options input;
    doppel_content content;
    uint64_t memory;
    const char *tmp;
    writer out;
    text_buffer line; /* search_write_line writes what is put here */
} search_command;

#define SEARCH_OPTIONS CONTENT_OPTION, RECIPE_OPTIONS, OUTPUT_OPTION, MEMORY_OPTION, TMP_OPTION, SUMMARY_OPTION

/* Returns an exit code, with a message unless it is EXIT_DONE. Close it in any case. */
int search_open(search_command *f, const cli_args *args);
void search_close(search_command *f);

/* Writes f->line, and begins the next. */
doppel_status search_write_line(search_command *f);

/* After the search: messages, the end of the output, and the exit code. *whole: the output is complete. */
int search_end(search_command *f, doppel_status status, const doppel_error *error, const doppel_input_counts *counts,
               bool *whole);

#endif
