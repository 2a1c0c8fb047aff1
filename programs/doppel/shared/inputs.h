/* inputs.h - the inputs of a command: options, signals, messages about bad records, the exit code. */
#ifndef SHARED_INPUTS_H
#define SHARED_INPUTS_H

#include "common/args.h"
#include "common/text.h"

/* Not 0 after SIGINT or SIGTERM. */
extern volatile int stop_asked;

/* Lets SIGINT and SIGTERM set stop_asked, and makes a closed pipe an error instead of a signal. */
void catch_signals(void);

/* Runs the work over the command's operands, with its options, progress and messages. Returns the exit code; `counts`
 * may be NULL. */
int run_inputs(const cli_args *args, const doppel_work *work, doppel_input_counts *counts);

/* The same over other paths and with options of the caller's. */
int run_paths(const char *const *paths, size_t count, const doppel_input_options *options, const doppel_work *work,
              doppel_input_counts *counts);

/* What run_paths does once documents are read: messages, and the exit code. */
int reading_ended(doppel_status status, const doppel_input_options *options, const doppel_error *error,
                  const doppel_input_counts *counts);

/* What was read on both sides, for the messages. */
doppel_input_counts add_counts(const doppel_input_counts *a, const doppel_input_counts *b);

/* Whether the last run was not completed, or its inputs were refused: then nothing must be written. */
bool reading_failed(void);

/* doppel_input_options.unseen: warns that no record has the field that an option such as --url-key names; `args` is the
 * command line. */
void warn_unseen_option(const char *key, void *args);

/* Prints a message and returns false when an INPUT that is not there is a column, or member, of another one: several
 * keys of an option are one word. */
bool check_split_keys(const cli_args *args);

/* The options of the command line as doppel_input_run takes them. */
doppel_input_options reading_options(const cli_args *args);

/* The same for --against, whose records may have other keys. */
doppel_input_options against_options(const cli_args *args);

/* Of commands that have --against; only those that read URLs and titles have the last two. */
#define AGAINST_OPTIONS                                                                                 \
    {"against-text-key", 0, OPTION_TEXT, "KEY",                                                         \
     "the field with the text of records of --against (default: --text-key)"},                          \
        {"against-html-key", 0, OPTION_TEXT, "KEY", "the field with their page (default: --html-key)"}, \
        {"against-id-key", 0, OPTION_TEXT, "KEY", "the field with their id (default: --id-key)"}, {     \
        "against-format", 0, OPTION_TEXT, "FORMAT", "the format of --against (default: --format)"       \
    }
#define AGAINST_BATCH_OPTIONS                                                                                       \
    AGAINST_OPTIONS, {"against-url-key", 0, OPTION_TEXT, "KEY", "the field with their URL (default: --url-key)"}, { \
        "against-title-key", 0, OPTION_TEXT, "KEY", "the field with their title (default: --title-key)"             \
    }

/* Prints a message and returns false when an option of --against is given without it. */
bool check_against(const cli_args *args);

/* Reports how many bad records were not named, after a run with these options; run_inputs does it itself. */
void report_unnamed(void);

/* The counts as members of a JSON object. */
void text_counts(text_buffer *out, const doppel_input_counts *counts);

/* Whether this is the URL of a store rather than the path of anything. */
bool is_store_url(const char *text);

/* The values of --against, an array to be freed in any case. Returns an exit code, with a message unless it is
 * EXIT_DONE: a store cannot be read. */
int against_paths(const cli_args *args, const char ***paths, size_t *count);

#endif
