/* config.c - options from the environment and from a file of INI, for what the command line does not say. */
#include "server/serve.h"

#include "common/message.h"

#include <ini.h>
#include <stdlib.h>
#include <string.h>

/* The option of a name in the table, or NULL; *place is that of its value. */
static const cli_option *find(const cli_args *args, const char *name, const char ***place) {
    size_t number = 0;
    for (const cli_option *o = args->command->options; o->name; o++, number++)
        if (!strcmp(o->name, name)) {
            *place = &args->values[number];
            return o;
        }
    return NULL;
}

static const char *const yes[] = {"on", "yes", "true", "1", NULL}, *const no[] = {"off", "no", "false", "0", NULL};

static bool is_word(const char *value, const char *const *words) {
    for (; *words; words++)
        if (!strcmp(value, *words))
            return true;
    return false;
}

/* A copy that the configuration holds. */
static const char *hold(serve_config *config, const char *value) {
    char **grown = realloc(config->held, (config->count + 1) * sizeof *grown);
    char *copy = grown ? strdup(value) : NULL;
    if (grown)
        config->held = grown;
    if (copy)
        grown[config->count++] = copy;
    else
        message("no memory");
    return copy;
}

void serve_config_free(serve_config *config) {
    for (size_t i = 0; i < config->count; i++)
        free(config->held[i]);
    free(config->held);
    *config = (serve_config){0};
}

/* Whether an option can have this value; complains when it cannot. */
static bool fits(const cli_option *option, const char *value, const char *where) {
    uint64_t number;
    bool checked = option->kind == OPTION_COUNT || option->kind == OPTION_SIZE;
    if ((checked && !parse_number(value, option->kind == OPTION_SIZE, &number)) ||
        (option->kind == OPTION_MANY && !parse_many(value, &number))) {
        message("%s: %s is a number, not %s", where, option->name, value);
        return false;
    }
    if (option->kind == OPTION_FLAG && !is_word(value, yes) && !is_word(value, no)) {
        message("%s: %s is on or off, not %s", where, option->name, value);
        return false;
    }
    return true;
}

/* Sets an option that was not set yet; false, with a message: it has no such value. */
static bool set(serve_config *config, const cli_option *option, const char **place, const char *value,
                const char *where) {
    if (!fits(option, value, where))
        return false;
    if (*place || (option->kind == OPTION_FLAG && is_word(value, no)))
        return true;
    *place = hold(config, value);
    return *place;
}

/* Whether a place of the index was given, by whoever goes before. */
static bool has_place(const cli_args *args) {
    return args_text(args, "index") || args_text(args, "store");
}

static bool is_place(const char *name) {
    return !strcmp(name, "index") || !strcmp(name, "store");
}

/* ---- the environment ---- */

static bool from_environment(serve_config *config, const cli_args *args) {
    size_t number = 0;
    bool placed = has_place(args);
    for (const cli_option *o = args->command->options; o->name; o++, number++) {
        char name[64];
        snprintf(name, sizeof name, "DOPPEL_%s", o->name);
        for (char *p = name; *p; p++)
            *p = *p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p;
        const char *value = getenv(name);
        if (value && !(placed && is_place(o->name)) && !set(config, o, &args->values[number], value, name))
            return false;
    }
    return true;
}

/* ---- the file ---- */

typedef struct reading {
    serve_config *config;
    const cli_args *args;
    const char *path;
    bool told, placed;
    bool *named; /* by option: the file has it already */
} reading;

/* Gives 0 for what makes no sense; the parser tells the line. */
static int take(void *user, const char *section, const char *name, const char *value) {
    reading *r = user;
    const char **place;
    const cli_option *option = find(r->args, name, &place);
    r->told = true;
    if (*section && strcmp(section, "serve") != 0)
        message("%s: there is no section [%s]; all stands in [serve]", r->path, section);
    else if (!option || !strcmp(name, "config"))
        message("%s: there is no option %s; `doppel serve --help` lists them", r->path, name);
    else if (r->named[place - r->args->values])
        message("%s: %s is given twice; give it once", r->path, name);
    else {
        r->named[place - r->args->values] = true;
        r->told = !((r->placed && is_place(name)) || set(r->config, option, place, value, r->path));
    }
    return !r->told;
}

static int from_file(serve_config *config, const cli_args *args, const char *path) {
    reading r = {config, args, path, false, has_place(args), calloc(args->option_count, sizeof(bool))};
    if (!r.named) {
        message("no memory");
        return EXIT_STORE;
    }
    int code = ini_parse(path, take, &r);
    free(r.named);
    if (code > 0)
        message("%s:%d: %s", path, code, r.told ? "this line" : "this is not NAME = VALUE");
    else if (code < 0)
        message("%s: cannot read it", path);
    return code ? EXIT_USAGE : EXIT_DONE;
}

int serve_configure(serve_config *config, const cli_args *args) {
    const char **place;
    if (!from_environment(config, args))
        return EXIT_USAGE;
    return find(args, "config", &place) && *place ? from_file(config, args, *place) : EXIT_DONE;
}
