/* joining.h - what the commands that join fingerprints share: options, progress, counts, how it ended. */
#ifndef JOINING_H
#define JOINING_H

#include "commands.h"

/* Options that every command with a join has. */
#define JOIN_OPTIONS                                                                                                 \
    {"output", 'o', OPTION_OUTPUT, "FILE", "write to this file, which is whole or absent, in place of stdout"},      \
        {"memory", 0, OPTION_SIZE, "BYTES",                                                                          \
         "use about this much memory to join, then files in --tmp (default: half of what is free)"},                 \
    {                                                                                                                \
        "tmp", 0, OPTION_FILE, "DIR", "where files go that do not outlive the command (default: $TMPDIR, else /tmp)" \
    }

/* The command's --distance (3 when not given), which must be within the width. False, with a message, when it is not.
 */
bool joining_distance(const cli_args *args, int bits, int *distance);

/* The options of the command line as a join takes them. */
doppel_join_options joining_options(const cli_args *args, int bits);

/* The exit code of a join, with a message where it failed. `error` may be NULL. */
int end_join(doppel_status status, const doppel_error *error);

/* Writes a number in decimal digits; gives where it ends. Room for 20. */
char *put_number(char *to, uint64_t number);

/* Prints counts as members of a JSON object, each with a comma ahead. `one_set`: those that only one set has, too. */
void print_join_counts(FILE *file, const doppel_join_counts *counts, bool one_set);

#endif
