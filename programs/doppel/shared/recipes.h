/* recipes.h - the recipe of the command line, with the list and the table that go with it. */
#ifndef SHARED_RECIPES_H
#define SHARED_RECIPES_H

#include "common/args.h"
#include "doppel.h"

/* What a recipe is, for the help. */
extern const cli_topic recipe_topic;

typedef struct loaded_recipe {
    doppel_recipe *recipe;
    doppel_df *df;
    char *stop_words;
} loaded_recipe;

/* The recipe `text` (NULL: page), with --bits, --stop-words and --df where the command has them. Prints a message and
 * returns the exit code on failure. Free it in any case. */
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
        "stop-words", 0, OPTION_FILE, "FILE", "ignore the words of this file"                        \
    }

#endif
