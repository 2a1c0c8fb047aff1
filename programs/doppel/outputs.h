/* outputs.h - whether what is written and what is read keep out of each other's way. */
#ifndef OUTPUTS_H
#define OUTPUTS_H

#include "commands.h"

/* Complains when --output, --removed or --save-sketches is an input, stands in a folder that is one, or when two of
 * them are the same. */
bool check_outputs(const cli_args *args);

/* The same for one path, the value of an option, and one input; both may be NULL. */
bool check_output(const char *option, const char *path, const char *input);

/* Complains when JSONL would go under the name of another format. */
bool check_jsonl_name(const char *path);

/* Opens --output, --removed and --save-sketches and leaves them as they were, so that one that cannot be written is
 * known before all the work. Gives an exit code, with a message unless it is EXIT_DONE. */
int try_outputs(const cli_args *args);

/* Whether inputs could not be opened, and no others gave a document: then the output stays as it was. With a message if
 * there is one. */
bool nothing_read(const cli_args *args, const doppel_input_counts *counts);

#endif
