/* batch_command.h - what the commands on many documents share: options, reading, how it ended. */
#ifndef BATCH_BATCH_COMMAND_H
#define BATCH_BATCH_COMMAND_H

#include "shared/inputs.h"
#include "shared/outputs.h"
#include "shared/recipes.h"

/* A batch of a command line: open, read, (the command's own work,) close. */
typedef struct batch_command {
    const cli_args *args;
    loaded_recipe loaded;
    doppel_input_options input, known_input;
    doppel_batch_options options;
    doppel_batch *batch;
    doppel_input_counts counts, known_counts; /* of the inputs, and of --against */
    const doppel_pipeline *preset;            /* of --preset; NULL: none */
    bool all_pairs;                           /* the command lists every pair, which an index cannot give */
    char *id;                                 /* of the document of the last call */
    size_t id_room;
    text_buffer line; /* the current line of output */
} batch_command;

/* Options that define near. */
#define BATCH_OPTIONS                                                                                                  \
    {"method", 'm', OPTION_TEXT, "METHOD",                                                                             \
     "auto (the default): similarity of at least --similarity, verified; minhash: the same, by --bands and --rows; "   \
     "simhash: fingerprints within --distance bits; exact: the same words"},                                           \
        {"similarity", 's', OPTION_TEXT, "T",                                                                          \
         "near: the Jaccard similarity of their shingles is at least T (default 0.8)"},                                \
        {"preset", 'p', OPTION_TEXT, "NAME",                                                                           \
         "search as a published pipeline does, with its shingles, bands and similarity: fineweb (5 words, 14 x 8), "   \
         "slimpajama (13 words, 9 x 13), nemo-curator (24 characters, 20 x 13), duplodocus (5 words, 26 x 11); they "  \
         "find fewer pairs than the default, see docs/BATCH.md"},                                                      \
        {"distance", 'd', OPTION_COUNT, "K", "near, for simhash: fingerprints differ in at most K bits (default 3)"},  \
        {"bands", 0, OPTION_COUNT, "B", "for minhash: candidates share one of B bands"},                               \
        {"rows", 0, OPTION_COUNT, "R", "for minhash: a band is R slots of the signature"},                             \
        {"min-words", 0, OPTION_COUNT, "N",                                                                            \
         "documents with fewer words are near only if their words are the same (default 5)"},                          \
        {"boilerplate", 0, OPTION_TEXT, "SHARE",                                                                       \
         "ignore shingles found in more than SHARE of all groups, e.g. 0.005: menus and frames (default: none)"},      \
        {"by", 0, OPTION_NAMES, "LIST", "what makes copies: content (the default), url, title, separated by commas"},  \
        {"url-key", 0, OPTION_TEXT, "KEY", "the field with a record's URL (default url)"},                             \
        {"title-key", 0, OPTION_TEXT, "KEY", "the field with its title (default title)"},                              \
        {"within", 0, OPTION_TEXT, "FIELD", "only documents of one host, domain or value of FIELD are near"},          \
        {"across", 0, OPTION_TEXT, "FIELD", "only documents of different hosts, domains or values of FIELD are near"}, \
        {"content", 0, OPTION_TEXT, "PART",                                                                            \
         "which part of HTML counts: main (the default), without menus, headers and banners; all: everything "         \
         "visible"},                                                                                                   \
        {"url-keep", 0, OPTION_NAMES, "RULES",                                                                         \
         "rules not applied to URLs, separated by commas: scheme, www, port, dots, escapes, index, "                   \
         "fragment, "                                                                                                  \
         "query, tracking, idn, slash"},                                                                               \
        RECIPE_OPTIONS,                                                                                                \
        {"bits", 'b', OPTION_COUNT, "N", "the width of the fingerprint, 1 to 64 or 128, overriding the recipe"},       \
        {"df", 0, OPTION_FILE, "TABLE", "the table for weight=tfidf, made by doppel df"},                              \
        {"limit", 0, OPTION_COUNT, "N", "read the first N documents only"},                                            \
        {"verbose", 0, OPTION_FLAG, NULL,                                                                              \
         "report how pairs are searched for, and the share of them expected to be found"},                             \
        MEMORY_OPTION, TMP_OPTION, SUMMARY_OPTION

/* Options that store what was read. */
#define WORK_OPTIONS                                                                                         \
    {"work", 0, OPTION_FILE, "DIR", "keep what was read in this folder, for --resume and doppel report"}, {  \
        "resume", 0, OPTION_FLAG, NULL, "continue the run of --work where it stopped; give the same options" \
    }
#define SAVE_OPTION                                                                                           \
    {                                                                                                         \
        "save-sketches", 0, OPTION_OUTPUT, "FILE",                                                            \
            "save the sketches of the documents to this file, which --against takes instead of the documents" \
    }

/* Options that say which document of a group is kept. */
#define KEEP_OPTIONS                                                                                                  \
    {"keep", 0, OPTION_NAMES, "RULES",                                                                                \
     "which document of a group is kept: rules in order of precedence, separated by commas: first (the default), "    \
     "last, longest, "                                                                                                \
     "shortest, https, shortest-url, id (the smallest, by its bytes), newest:FIELD, oldest:FIELD, largest:FIELD, "    \
     "smallest:FIELD"},                                                                                               \
        {"link", 0, OPTION_TEXT, "HOW",                                                                               \
         "what a document must be near to belong to a group: kept (the default): its kept document; any: any of its " \
         "documents, so that chains become one group"},                                                               \
    {                                                                                                                 \
        "only-contained", 0, OPTION_TEXT, "S",                                                                        \
            "remove a copy only if the kept document has at least this share of its shingles, e.g. 0.95; with 1 no "  \
            "shingle is lost. A longer version beside a shorter kept one stays, unless --keep longest keeps it "      \
            "instead"                                                                                                 \
    }

/* Prints a message and returns false when options that these commands have in common contradict each other or the
 * inputs: --json, outputs, --against, --resume. batch_open does it itself. */
bool batch_check(const cli_args *args);

/* The value of --min-words; documents and units have words, so that 0 means the same as 1. */
uint64_t batch_min_words(const cli_args *args);

/* Creates a batch from the options. Returns an exit code, with a message unless it is EXIT_DONE. Close it in any case.
 */
int batch_open(batch_command *b, const cli_args *args);

void batch_close(batch_command *b);

/* Reads the documents of --against, then those of the operands. */
int batch_read_all(batch_command *b, bool *usable);

/* The exit code of a call on the batch, with a message where it failed. */
int batch_end(doppel_status status, const doppel_error *error);

/* Of a command that writes_tables: opens the writer of tables, before anything is read, since it refuses inputs that
 * cannot become its output; `text` is the field that is cut, or NULL. Closes it, if it is open: the tables are kept if
 * the code so far is EXIT_DONE. Both return an exit code, with a message where they failed. */
int batch_open_tables(const cli_args *args, const char *text, void **tables);
int batch_close_tables(void **tables, int code);

/* Says how to continue an interrupted run that has a work folder. */
void batch_hint_resume(const cli_args *args, int code);

/* Reports how many documents have the id of an earlier one, if any. */
void batch_warn_ids(const batch_command *b);

/* Decides, with progress. Returns an exit code. */
int batch_decide(batch_command *b);

/* The id of a document, borrowed until the next call. No memory marks b->line as failed. */
doppel_slice batch_get_id(batch_command *b, uint64_t position);

/* The id of a document as a member of the line. */
void batch_put_id(batch_command *b, const char *name, uint64_t position);

/* Writes the line, and begins the next. */
doppel_status batch_write_line(batch_command *b, writer *w);

/* With --verbose: reports how pairs are searched for, and the expected recall. */
void batch_print_plan(const batch_command *b);

/* The beginning of a summary: `{`, method, recipe, counts, figures. */
void batch_summary(const batch_command *b, text_buffer *out);

#endif
