/* args.h - the command line. One table of commands and options makes the parsing, its checks, the help, the man page
 * and the shell completion (help.h). */
#ifndef COMMON_ARGS_H
#define COMMON_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit codes; 2 to 5 are the same numbers as in doppel_status. */
enum { EXIT_DONE = 0, EXIT_FOUND = 1, EXIT_USAGE = 2, EXIT_INPUT = 3, EXIT_STORE = 4, EXIT_INTERRUPTED = 5 };

typedef enum cli_kind {
    OPTION_FLAG,
    OPTION_TEXT,
    OPTION_FILE,   /* completed by the shell */
    OPTION_OUTPUT, /* a file that is written; one whose name promises what cannot be written is refused */
    OPTION_LINES,  /* the same, of JSON lines: names of other formats are refused */
    OPTION_TABLE,  /* the same as OUTPUT, and Parquet can be written where there are tables (embed.h) */
    OPTION_COUNT,  /* a whole number, checked */
    OPTION_MANY,   /* a whole number, with K, M, G or T (times 1000 each) after it; checked */
    OPTION_SIZE,   /* bytes: a whole number, with K, M, G, T (times 1024 each), KB, KiB and so on after it; checked */
    OPTION_MEMORY, /* the same, of memory: a small number without a unit is refused */
    /* All others are given once; these may be given several times: */
    OPTION_LIST,  /* texts (args_again) */
    OPTION_FILES, /* files (args_again) */
    OPTION_NAMES  /* names separated by commas: what is given later is added, with a comma (args_text) */
} cli_kind;

/* A word that an option takes, and what it stands for. */
typedef struct cli_choice {
    const char *name; /* NULL ends a list */
    unsigned value;
} cli_choice;

typedef struct cli_option {
    const char *name; /* without its dashes; NULL ends a list */
    char letter;      /* the short form, or 0 */
    cli_kind kind;
    const char *value; /* what help calls its value; NULL for a flag */
    const char *help;  /* a phrase, no full stop */
} cli_option;

/* Something a command's help explains beside its options; the man page has it as a section. */
typedef struct cli_row {
    const char *left, *right; /* a word, and what it is; left NULL ends a list */
} cli_row;

typedef struct cli_topic {
    const char *title;
    const char *notes; /* paragraphs, each a line */
    const cli_row *rows;
} cli_topic;

struct cli_args;

typedef struct cli_command {
    const char *name; /* NULL ends the list */
    const char *arguments;
    const char *summary;     /* one line */
    const char *description; /* paragraphs, each a line; may be NULL */
    const char *examples;    /* command lines, each a line */
    const cli_option *options;
    size_t min_operands, max_operands;
    const char *wants;                       /* the message for too few or too many operands: "takes two files" */
    const cli_topic *topic;                  /* may be NULL */
    int (*run)(const struct cli_args *args); /* returns the exit code */
    size_t common_from; /* its help leaves out the common options before this one, which do not apply to it */
    const char *usual;  /* names of options, separated by spaces, that help shows apart from the many others; or NULL */
} cli_command;

/* What was given: the values of options in the order of the table, and the rest. */
typedef struct cli_args {
    const cli_command *command;
    const cli_option *common; /* the options of every command */
    const char **values;      /* of the command's options and then the common ones; NULL: not given */
    const char **operands;
    size_t operand_count;
    const char **again; /* the values of LIST and FILES options, each after its option's name */
    size_t again_count;
    char **joined; /* of NAMES options, by option; NULL: given once or not at all */
    size_t option_count;
    char **listed; /* the operands that came from files */
    size_t listed_count;
    int failure; /* the exit code when parsing has failed */
} cli_args;

/* Parses what follows the command's name; the lines of --files-from FILE are operands after the others. Prints a
 * message and returns false when it is invalid. Free with args_free. */
bool args_parse(cli_args *args, const cli_command *command, const cli_option *common, int argc, char **argv);
void args_free(cli_args *args);

/* The value of an option; NULL when it was not given, or the command has no such option. */
const char *args_text(const cli_args *args, const char *name);
bool args_flag(const cli_args *args, const char *name);
/* The n-th value of a LIST or FILES option, from 0; NULL: there are fewer. */
const char *args_again(const cli_args *args, const char *name, size_t n);
/* All of them, an array to be freed; NULL: out of memory. */
const char **args_all(const cli_args *args, const char *name, size_t *count);
/* The value of a COUNT, MANY, SIZE or MEMORY option, or `otherwise`. */
uint64_t args_number(const cli_args *args, const char *name, uint64_t otherwise);
/* Whether such an option is not given, or not 0, for those of which 0 would mean the default. Else prints a message. */
bool args_positive(const cli_args *args, const char *name);

/* Whether the first `length` bytes of a name end so, in any case, and are longer. */
bool name_ends_in(const char *path, size_t length, const char *ending);

/* Whether a file for JSON lines, the value of an option, has no name of another format. Else prints a message. */
bool check_jsonl_name(const cli_args *args, const char *option, const char *path);

/* The value of an option that takes a share above 0 and up to 1; *share is unchanged if it is not given. Prints a
 * message and returns false for anything else. */
bool args_share(const cli_args *args, const char *name, double *share);

bool parse_number(const char *text, uint64_t *number);
/* Reads a number of bytes. It may be followed by B, K, M, G or T or KiB, MiB, GiB or TiB (times 1024 each), or KB, MB,
 * GB or TB (times 1000 each), ignoring case. */
bool parse_size(const char *text, uint64_t *number);
/* Reads a whole number, with K, M, G or T (times 1000 each) after it. */
bool parse_many(const char *text, uint64_t *number);

/* The name in a list that was probably meant, or NULL: at most a third of it differs. */
const char *nearest_name(const char *word, const char *const *names, size_t count);

#endif
