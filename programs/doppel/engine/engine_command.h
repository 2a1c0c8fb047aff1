/* engine_command.h - what the commands on an index share: options, opening and closing it, messages. */
#ifndef ENGINE_ENGINE_COMMAND_H
#define ENGINE_ENGINE_COMMAND_H

#include "engine/index_place.h"
#include "shared/inputs.h"
#include "shared/outputs.h"
#include "shared/recipes.h"

#include <stdio.h>

/* An engine of a command line: prepare, (other options,) start, the command's own work, close. */
typedef struct engine_command {
    const cli_args *args;
    index_place place;
    const char *path; /* of the folder, or the URL of the store without passwords: for messages */
    loaded_recipe loaded;
    doppel_engine_options options;
    doppel_engine *engine;
    FILE *log;
    const char *log_path;
    bool damage_reported; /* the command has already reported what could not be read */
} engine_command;

typedef enum engine_use {
    ENGINE_READ,  /* an existing index, while another process may write to it; damaged records are skipped */
    ENGINE_COPY,  /* the same, but a damaged one is refused */
    ENGINE_WRITE, /* an existing index, as a writer */
    ENGINE_MAKE   /* as a writer; created if it does not exist */
} engine_use;

#define FOLDER_OPTION \
    { "index", 'i', OPTION_FILE, "DIR", "the folder of the index" }

#define INDEX_OPTION FOLDER_OPTION, STORE_OPTION, STORE_PASSWORD_OPTION

/* Options of commands that sketch documents, for folders whose recipe needs them. */
#define ENGINE_RECIPE_OPTIONS                                                                                         \
    {"recipe", 'r', OPTION_TEXT, "RECIPE",                                                                            \
     "how text becomes a fingerprint: page, article, literal, or a text form; `doppel fingerprint --help` lists its " \
     "parts (default: that of the preset or folder)"},                                                                \
        {"stop-words", 0, OPTION_FILE, "FILE", "with --recipe: ignore the words of this file"}, {                     \
        "df", 0, OPTION_FILE, "TABLE", "with --recipe: the table for weight=tfidf, made by doppel df"                 \
    }

/* Options that a folder is created with. */
#define MAKE_OPTIONS                                                                                                   \
    {"preset", 'p', OPTION_TEXT, "NAME",                                                                               \
     "what a new index is for: general (the default; with --store: crawl): similarity 0.8, titles, no expiry; crawl: " \
     "similarity 0.8 estimated from 192 hashes per page, no titles, 30 days; article: pairs of words of the first "    \
     "5000 "                                                                                                           \
     "characters, similarity 0.8, titles"},                                                                            \
        ENGINE_RECIPE_OPTIONS,                                                                                         \
        {"near", 0, OPTION_TEXT, "BY",                                                                                 \
         "how near content is defined: similarity (verified, of at least --similarity) or distance (of fingerprints, " \
         "at "                                                                                                         \
         "most --distance)"},                                                                                          \
        {"similarity", 's', OPTION_TEXT, "T",                                                                          \
         "near: the Jaccard similarity of the shingles is at least T (default 0.8)"},                                  \
        {"sample", 0, OPTION_TEXT, "N",                                                                                \
         "with --near similarity: keep N hashes per document, 16 to 4096, and estimate the similarity from them; or "  \
         "all (the default; 192 with --preset crawl), and compute it exactly"},                                        \
        {"distance", 'd', OPTION_COUNT, "K", "near: fingerprints differ in at most K bits (default 3)"},               \
        {"min-words", 0, OPTION_COUNT, "N",                                                                            \
         "documents with fewer words are near only if their words are the same (default 5)"},                          \
        {"titles", 0, OPTION_TEXT, "ON", "on or off: whether a similar title makes a duplicate"},                      \
        {"title-similarity", 0, OPTION_TEXT, "T",                                                                      \
         "how similar titles must be: 1 - edits / length is at least T (default 0.9)"},                                \
        {"keep-text", 0, OPTION_FLAG, NULL,                                                                            \
         "keep the texts, compressed: the console and doppel compare --index need them to show differences; those of " \
         "copies are kept with --on-duplicate store only"},                                                            \
        {"fields", 0, OPTION_NAMES, "NAMES",                                                                           \
         "fields of a record that are kept with it, separated by commas (default source,date)"},                       \
        {"content", 0, OPTION_TEXT, "PART",                                                                            \
         "which part of HTML counts: main (the default), without menus, headers and banners; all: everything "         \
         "visible"},                                                                                                   \
        {"group-readable", 0, OPTION_FLAG, NULL,                                                                       \
         "let the group of the folder read the index, whatever the umask: docs/ENGINE.md, \"Who may read\""},          \
    {                                                                                                                  \
        "url-keep", 0, OPTION_NAMES, "RULES",                                                                          \
            "rules not applied to URLs, separated by commas: scheme, www, port, dots, escapes, index, "                \
            "fragment, "                                                                                               \
            "query, tracking, idn, slash"                                                                              \
    }

/* Options of commands that write, for each run. */
#define WRITE_OPTIONS                                                                                                  \
    {"ttl", 0, OPTION_TEXT, "TIME",                                                                                    \
     "how long a document is remembered: 30d (the default with --store), 12h, 90m, seconds, or never"},                \
        {"clock-settle", 0, OPTION_TEXT, "TIME",                                                                       \
         "after the system clock has jumped, how long until the index trusts it (default 1h); 0: at once"},            \
        {"durability", 0, OPTION_TEXT, "WHEN",                                                                         \
         "when a line is printed: batch (the default): once the documents of its batch are on disk, in one commit; "   \
         "each: the same, with a commit for each document; none: at once, and on disk within a second"},               \
        {"count", 0, OPTION_MANY, "N", "the expected number of documents, for planning the index: 1000000, or 10M"}, { \
        "memory", 0, OPTION_MEMORY, "BYTES",                                                                           \
            "with --count: memory for their fingerprints (default: about 40 bytes each)"                               \
    }

#define DUPLICATE_OPTION                                                                                              \
    {                                                                                                                 \
        "on-duplicate", 0, OPTION_TEXT, "DO",                                                                         \
            "what happens to a duplicate: skip (the default): it is counted with its original; link: its id, URL, "   \
            "title and fields are remembered there; store: it is kept like any other, but never as an original; "     \
            "groups (in the console, doppel get --copies) need link or store, and the texts of copies (--keep-text) " \
            "store"                                                                                                   \
    }

#define DECIDE_OPTIONS                                                                                            \
    {"on-same-url", 0, OPTION_TEXT, "DO",                                                                         \
     "other text at a known URL: duplicate (the default), or refresh: it replaces the stored document"},          \
        {"title-share", 0, OPTION_TEXT, "SHARE",                                                                  \
         "ignore titles that more than SHARE of the documents have, and more than 8 (default 0.001)"},            \
    {                                                                                                             \
        "title-veto", 0, OPTION_TEXT, "ON",                                                                       \
            "on or off: whether a content similarity below half of --similarity overrides a similar title; with " \
            "--near similarity only (default: that of the preset or folder)"                                      \
    }

/* Of commands whose operands are ids. */
#define IDS_OPTION \
    { "files-from", 0, OPTION_FILES, "FILE", "read more IDs from FILE, one per line; - is stdin" }

#define LOG_OPTIONS                                                                            \
    {"log", 0, OPTION_FILE, "FILE", "append requests and verdicts to this file; - is stderr"}, \
        {"log-level", 0, OPTION_TEXT, "LEVEL", "error, warning or info (the default)"}, {      \
        "log-format", 0, OPTION_TEXT, "FORM", "text (the default) or json"                     \
    }

/* Reads the options. Returns an exit code, with a message unless it is EXIT_DONE. Close it in any case. */
int engine_prepare(engine_command *e, const cli_args *args, engine_use use);
/* Opens the engine. */
int engine_start(engine_command *e);
/* Both. */
int engine_open(engine_command *e, const cli_args *args, engine_use use);
/* Returns `code`, or what went wrong here. */
int engine_close(engine_command *e, int code);

/* The exit code of a call on the engine, with a message where it failed. */
int engine_ended(doppel_status status, const doppel_error *error);

/* Whether there is a folder at this path; prints a message when there is not. */
bool is_folder(const char *path);

#endif
