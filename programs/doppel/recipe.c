/* recipe.c - the recipe of the command line, with the list and the table that go with it. */
#include "commands.h"
#include "common/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Whether the command has this option at all. */
static const char *value_if_any(const cli_args *args, const char *name) {
    for (const cli_option *option = args->command->options; option->name; option++)
        if (!strcmp(option->name, name))
            return args_text(args, name);
    return NULL;
}

/* Reads a whole file; the caller frees it. NULL, with a message, when it cannot be read. */
static char *read_whole(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    size_t room = 0, got = 0;
    char *text = NULL;
    *length = 0;
    while (file && !ferror(file) && !feof(file)) {
        room = room ? room * 2 : 4096;
        char *grown = realloc(text, room);
        if (!grown)
            break;
        text = grown;
        got = fread(text + *length, 1, room - *length, file);
        *length += got;
    }
    bool whole = file && feof(file) && !ferror(file);
    if (!whole)
        message("%s: cannot read: %s", path, strerror(errno));
    if (file)
        fclose(file);
    if (whole)
        return text;
    free(text);
    return NULL;
}

/* Fetches what the recipe refers to. */
static int load_parts(const cli_args *args, loaded_recipe *loaded, doppel_recipe_parts *parts) {
    const char *stop_words = value_if_any(args, "stop-words"), *table = value_if_any(args, "df");
    doppel_error error;
    *parts = (doppel_recipe_parts){.size = sizeof *parts};
    if (stop_words && !(loaded->stop_words = read_whole(stop_words, &parts->stop_words_length)))
        return EXIT_INPUT;
    parts->stop_words = loaded->stop_words;
    if (table && doppel_df_open(table, &loaded->df, &error) != DOPPEL_OK) {
        message_error(&error);
        return EXIT_STORE;
    }
    parts->df = loaded->df;
    return EXIT_DONE;
}

static int parse(const char *text, const doppel_recipe_parts *parts, loaded_recipe *loaded) {
    doppel_error error;
    doppel_recipe *recipe = NULL;
    doppel_status status = doppel_recipe_parse(text, parts, &recipe, &error);
    if (status != DOPPEL_OK) {
        message_error(&error);
        return exit_code(status);
    }
    doppel_recipe_free(loaded->recipe);
    loaded->recipe = recipe;
    return EXIT_DONE;
}

/* Parses the recipe again with another width: its canonical text leads with simhashB. */
static int set_bits(const char *bits, const doppel_recipe_parts *parts, loaded_recipe *loaded) {
    const char *text = doppel_recipe_text(loaded->recipe);
    const char *rest = text + strcspn(text, ":");
    uint64_t width;
    if (!parse_number(bits, false, &width) || !width || (width > 64 && width != 128)) {
        message("--bits takes a width from 1 to 64, or 128, not %s", bits);
        return EXIT_USAGE;
    }
    size_t room = strlen(rest) + strlen(bits) + sizeof "simhash";
    char *changed = malloc(room);
    if (!changed) {
        message("no memory");
        return EXIT_STORE;
    }
    snprintf(changed, room, "simhash%s%s", bits, rest);
    int code = parse(changed, parts, loaded);
    free(changed);
    return code;
}

int load_recipe(const cli_args *args, const char *text, loaded_recipe *loaded) {
    const char *bits = value_if_any(args, "bits");
    doppel_recipe_parts parts;
    *loaded = (loaded_recipe){0};
    int code = load_parts(args, loaded, &parts);
    if (code == EXIT_DONE)
        code = parse(text ? text : "page", &parts, loaded);
    if (code == EXIT_DONE && bits)
        code = set_bits(bits, &parts, loaded);
    if (code == EXIT_DONE && doppel_recipe_warning(loaded->recipe))
        message("warning: %s", doppel_recipe_warning(loaded->recipe));
    return code;
}

void free_recipe(loaded_recipe *loaded) {
    doppel_recipe_free(loaded->recipe);
    doppel_df_close(loaded->df);
    free(loaded->stop_words);
}

doppel_status begin_sketching(void *user, void **state) {
    const sketch_job *job = user;
    sketch_worker *made = calloc(1, sizeof *made);
    if (!made)
        return DOPPEL_ERROR_MEMORY;
    made->job = user;
    doppel_status status = doppel_sketcher_create(job->recipe, job->wants, &made->sketcher, NULL);
    if (status == DOPPEL_OK)
        *state = made;
    else
        free(made);
    return status;
}

void end_sketching(void *user, void *state) {
    (void)user;
    sketch_worker *worker = state;
    doppel_sketcher_free(worker->sketcher);
    free(worker);
}
