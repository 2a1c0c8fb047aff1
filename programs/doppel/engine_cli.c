/* engine_cli.c - an index of a command line: opening and closing it. */
#include "engine_cli.h"

#include "common/message.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

int engine_ended(doppel_status status, const doppel_error *error) {
    if (status == DOPPEL_ERROR_INTERRUPTED)
        message("interrupted");
    else if (status != DOPPEL_OK && !failure_told)
        message_error(error);
    return exit_code(status);
}

bool is_folder(const char *path) {
    struct stat there;
    if (stat(path, &there))
        message("%s: %s; make an index with doppel add --index %s INPUT...", path,
                errno == ENOENT ? "there is no such folder" : strerror(errno), path);
    else if (!S_ISDIR(there.st_mode))
        message("%s: not a folder; an index is one, made with doppel add --index DIR INPUT...", path);
    else
        return true;
    return false;
}

/* ---- the log ---- */

/* doppel_engine_options.log; a line in one call is whole, whatever other threads write. Text begins with the time. */
static void write_log(doppel_log_level level, const char *line, void *user) {
    const engine_cli *e = user;
    char when[40] = "";
    time_t now = time(NULL);
    struct tm utc;
    (void)level;
    if (!e->options.log_json && gmtime_r(&now, &utc))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ ", &utc);
    fprintf(e->log, "%s%s\n", when, line);
}

/* Without a log: warnings are told, errors come back from the calls; but for a memory that was lost, as then the calls
 * go on. Of a line that is all message, the message. */
static void tell_warning(doppel_log_level level, const char *line, void *user) {
    static const char mark[] = " message=\"";
    const char *text = strstr(line, mark);
    size_t length = text ? strlen(text += sizeof mark - 1) : 0;
    (void)user;
    if (level != DOPPEL_LOG_WARNING && !strstr(line, "] MEMORY_LOST "))
        return;
    if (length && text[length - 1] == '"')
        message("%.*s", (int)length - 1, text);
    else
        message("%s", line);
}

static int open_log(engine_cli *e) {
    e->log_path = args_text(e->args, "log");
    if (!e->log_path) {
        e->options.log = tell_warning;
        e->options.log_level = DOPPEL_LOG_WARNING;
        return EXIT_DONE;
    }
    e->log = strcmp(e->log_path, "-") != 0 ? fopen(e->log_path, "a") : stderr;
    if (!e->log) {
        message("%s: cannot open: %s", e->log_path, strerror(errno));
        return EXIT_STORE;
    }
    if (e->log != stderr)
        setvbuf(e->log, NULL, _IOLBF, 0);
    e->options.log = write_log;
    e->options.user = e;
    return EXIT_DONE;
}

static int close_log(engine_cli *e, int code) {
    if (!e->log || e->log == stderr)
        return code;
    bool failed = ferror(e->log);
    failed = fclose(e->log) || failed;
    if (!failed)
        return code;
    message("%s: cannot write all of the log", e->log_path);
    return code == EXIT_DONE || code == EXIT_FOUND ? EXIT_STORE : code;
}

/* ---- opening ---- */

static int read_recipe(engine_cli *e) {
    const char *text = args_text(e->args, "recipe");
    if (!text && (args_text(e->args, "stop-words") || args_text(e->args, "df"))) {
        message("--%s goes with --recipe RECIPE", args_text(e->args, "df") ? "df" : "stop-words");
        return EXIT_USAGE;
    }
    int code = text ? load_recipe(e->args, text, &e->loaded) : EXIT_DONE;
    e->options.recipe = e->loaded.recipe;
    return code;
}

int engine_prepare(engine_cli *e, const cli_args *args, engine_use use) {
    *e = (engine_cli){.args = args};
    bool found = place_find(&e->place, args);
    e->path = e->place.name;
    e->options = (doppel_engine_options){.size = sizeof e->options,
                                         .read_only = use == ENGINE_READ || use == ENGINE_COPY,
                                         .salvage = use == ENGINE_READ,
                                         .must_exist = use != ENGINE_MAKE};
    if (!found || !engine_options(e))
        return EXIT_USAGE;
    if (use != ENGINE_MAKE && e->place.needs.folder && !is_folder(e->path))
        return EXIT_STORE;
    int code = read_recipe(e);
    return code == EXIT_DONE ? open_log(e) : code;
}

/* Whether a message says where: it has the path in it, or begins with the address that the URL has. */
static bool names_place(const char *text, const char *path) {
    const char *colon = strstr(text, ": ");
    return strstr(text, path) || (colon && memmem(path, strlen(path), text, (size_t)(colon - text)));
}

int engine_start(engine_cli *e) {
    doppel_error error = {0};
    doppel_status status = doppel_engine_open(e->place.path, &e->options, &e->engine, &error);
    if (status == DOPPEL_ERROR_STORE && !error.file[0] && !names_place(error.message, e->path))
        snprintf(error.file, sizeof error.file, "%s", e->path);
    if (status != DOPPEL_OK)
        return engine_ended(status, &error);
    const doppel_recipe *recipe = doppel_engine_get_options(e->engine)->recipe;
    if (!e->loaded.recipe && doppel_recipe_warning(recipe))
        message("warning: %s: %s", e->path, doppel_recipe_warning(recipe));
    return EXIT_DONE;
}

int engine_open(engine_cli *e, const cli_args *args, engine_use use) {
    int code = engine_prepare(e, args, use);
    return code == EXIT_DONE ? engine_start(e) : code;
}

/* What could not be read of an index was passed over (`salvage`; else whatever met it has failed): whatever else came
 * of it, that is an error of the index. One that is away is not waited for. */
static int tell_damage(const engine_cli *e, int code) {
    doppel_engine_stats stats = {0};
    doppel_engine_stop_waiting(e->engine);
    if (e->engine && e->options.salvage)
        doppel_engine_get_stats(e->engine, &stats);
    if (!stats.damaged)
        return code;
    const char *option = args_text(e->args, "store") ? "store" : "index";
    if (!e->damage_told)
        message("%s: the index is damaged, and what could not be read was passed over; `doppel verify --%s %s` says "
                "what is lost, `doppel export --%s %s -o FILE` saves what can be read",
                e->path, option, e->path, option, e->path);
    return code == EXIT_INTERRUPTED || code == EXIT_USAGE ? code : EXIT_STORE;
}

int engine_close(engine_cli *e, int code) {
    code = tell_damage(e, code);
    doppel_engine_close(e->engine);
    free_recipe(&e->loaded);
    place_free(&e->place);
    code = close_log(e, code);
    *e = (engine_cli){0};
    return code;
}
