/* help.h - help, man page and shell completion, all from the table of commands. */
#ifndef COMMON_HELP_H
#define COMMON_HELP_H

#include "common/args.h"

#include <stdio.h>

/* The whole command. */
typedef struct cli_manual {
    const char *summary; /* one line */
    const cli_command *commands;
    const cli_option *common;
    const char *tasks; /* lines: what people want to do, and the command for it */
    const char *first; /* lines: commands to begin with */
    const char *notes; /* paragraphs, each a line: what holds for every command */
    const cli_choice *(*choices)(const char *command, const char *option); /* the words it takes; NULL: anything */
} cli_manual;

/* doppel alone: at most a screen. */
void help_short(FILE *file, const cli_manual *manual);

/* doppel --help */
void help_overview(FILE *file, const cli_manual *manual);

/* doppel COMMAND --help */
void help_command(FILE *file, const cli_manual *manual, const cli_command *command);

/* The man page in roff, the completion for bash or zsh: `what` is man, bash or zsh. False: it is none of them. */
bool help_generate(FILE *file, const cli_manual *manual, const char *what);

#endif
