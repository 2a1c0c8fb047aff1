/* commands.h - what the commands of doppel share: the options of all, reading inputs, recipes. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "common/args.h"
#include "doppel.h"
#include "writing.h"

#include <stdio.h>

/* ---- commands (cmd_NAME.c): each is an entry of the table in table.c ---- */

extern const struct cli_manual doppel_manual;

extern const cli_option fingerprint_options[], compare_options[], df_options[], pairs_options[], cluster_options[],
    dedup_options[], overlap_options[], mirrors_options[], join_options[], plan_options[], report_options[],
    serve_options[], add_options[], check_options[], remove_options[], similar_options[], get_options[],
    stream_options[], stats_options[], compact_options[], prepare_options[], backup_options[], verify_options[],
    export_options[], import_options[];
extern const cli_topic join_topic; /* the files that join takes */
int cmd_fingerprint(const cli_args *args);
int cmd_compare(const cli_args *args);
int cmd_df(const cli_args *args);
int cmd_pairs(const cli_args *args);
int cmd_cluster(const cli_args *args);
int cmd_dedup(const cli_args *args);
int cmd_overlap(const cli_args *args);
int cmd_mirrors(const cli_args *args);
int cmd_join(const cli_args *args);
int cmd_plan(const cli_args *args);
int cmd_report(const cli_args *args);
int cmd_add(const cli_args *args);
int cmd_serve(const cli_args *args);
int cmd_check(const cli_args *args);
int cmd_remove(const cli_args *args);
int cmd_stream(const cli_args *args);
int cmd_similar(const cli_args *args);
int cmd_get(const cli_args *args);
int cmd_stats(const cli_args *args);
int cmd_compact(const cli_args *args);
int cmd_prepare(const cli_args *args);
int cmd_backup(const cli_args *args);
int cmd_verify(const cli_args *args);
int cmd_export(const cli_args *args);
int cmd_import(const cli_args *args);

/* ---- reading inputs (reading.c) ---- */

/* Not 0 once the user has asked to stop. */
extern volatile int stop_asked;

/* Lets SIGINT and SIGTERM set stop_asked, and makes a closed pipe an error instead of a signal. */
void catch_signals(void);

/* Runs the work over the command's operands, with its options, progress and messages. Gives the exit code; `counts` may
 * be NULL. */
int run_inputs(const cli_args *args, const doppel_work *work, doppel_input_counts *counts);

/* The same over other paths and with options of the caller's. */
int run_paths(const char *const *paths, size_t count, const doppel_input_options *options, const doppel_work *work,
              doppel_input_counts *counts);

/* What run_paths does once documents are read: messages, and the exit code. */
int reading_ended(doppel_status status, const doppel_input_options *options, const doppel_error *error,
                  const doppel_input_counts *counts);

/* Whether the last run did not come to its end, or its inputs were refused: then nothing is to be written. */
bool reading_failed(void);

/* doppel_input_options.unseen: warns that no record has the field that an option such as --url-key names; `args` is the
 * command line. */
void warn_unseen_option(const char *key, void *args);

/* The options of the command line as doppel_input_run takes them. */
doppel_input_options reading_options(const cli_args *args);

/* The same for --against, whose records may have other keys. */
doppel_input_options against_options(const cli_args *args);

/* Of commands that have --against; only those that read URLs and titles have the last two. */
#define AGAINST_OPTIONS                                                                                   \
    {"against-text-key", 0, OPTION_TEXT, "KEY",                                                           \
     "the field with the text of records of --against (default: --text-key)"},                            \
        {"against-html-key", 0, OPTION_TEXT, "KEY", "the field with their page (default: --html-key)"}, { \
        "against-id-key", 0, OPTION_TEXT, "KEY", "the field with their id (default: --id-key)"            \
    }
#define AGAINST_BATCH_OPTIONS                                                                                       \
    AGAINST_OPTIONS, {"against-url-key", 0, OPTION_TEXT, "KEY", "the field with their URL (default: --url-key)"}, { \
        "against-title-key", 0, OPTION_TEXT, "KEY", "the field with their title (default: --title-key)"             \
    }

/* Complains when an option of --against is given without it. */
bool check_against(const cli_args *args);

/* Says how many bad records were not named, once a run with these options has ended; run_inputs does it itself. */
void tell_unnamed(void);

/* Prints the counts as members of a JSON object, each with a comma ahead. */
void print_counts(FILE *file, const doppel_input_counts *counts);

/* ---- recipes (recipe.c) ---- */

/* What a recipe is, for the help. */
extern const cli_topic recipe_topic;

typedef struct loaded_recipe {
    doppel_recipe *recipe;
    doppel_df *df;
    char *stop_words;
} loaded_recipe;

/* The recipe `text` (NULL: page), with --bits, --stop-words and --df where the command has them. Complains and gives
 * the exit code when there is something wrong. Free it in any case. */
int load_recipe(const cli_args *args, const char *text, loaded_recipe *loaded);
void free_recipe(loaded_recipe *loaded);

/* Commands that sketch each document: their job begins with a sketch_job, begin_sketching and end_sketching are the
 * begin and end of their doppel_work, and each thread's state is a sketch_worker. */
typedef struct sketch_job {
    const doppel_recipe *recipe;
    unsigned wants;
} sketch_job;

typedef struct sketch_worker {
    void *job;
    doppel_sketcher *sketcher;
} sketch_worker;

doppel_status begin_sketching(void *job, void **worker);
void end_sketching(void *job, void *worker);

/* Options that every command with a recipe has. */
#define RECIPE_OPTIONS                                                                               \
    {"recipe", 'r', OPTION_TEXT, "RECIPE",                                                           \
     "how text becomes a fingerprint: page (the default), article, literal, or a text form such as " \
     "simhash64:words=5:hash=fast:weight=tf; `doppel fingerprint --help` lists its parts"},          \
    {                                                                                                \
        "stop-words", 0, OPTION_FILE, "FILE", "leave out the words of this file"                     \
    }

/* ---- showing passages (show.c) ---- */

/* One side of a comparison: a text, and the passages of it that the other side has too. */
typedef struct shown_text {
    const char *text;
    size_t length;
    const doppel_passage *passages; /* numbered in this order */
    size_t count;
    bool is_b;
} shown_text;

/* Prints the text shortened, with its passages in colour, or numbered in brackets. */
void show_text(FILE *file, const shown_text *shown, bool colour);

/* Whether the file is a terminal that takes colours, and the user has not said NO_COLOR. */
bool use_colour(FILE *file);

#endif
