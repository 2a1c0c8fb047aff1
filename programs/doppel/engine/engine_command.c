/* engine_command.c - the index of a command line: its options, opening and closing it. */
#include "engine/engine_command.h"

#include "common/clock.h"
#include "common/message.h"
#include "shared/choices.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* ---- options ---- */

/* Seconds of "30d", "12h", "90m", "45s", "45" or "never". */
static bool read_ttl(const char *text, uint64_t *seconds) {
    static const struct {
        char unit;
        uint64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
    char digits[24];
    size_t length = strlen(text);
    uint64_t number, unit = 1;
    if (!strcmp(text, "never")) {
        *seconds = DOPPEL_NEVER;
        return true;
    }
    if (!length || length >= sizeof digits)
        return false;
    memcpy(digits, text, length + 1);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (text[length - 1] == units[i].unit) {
            unit = units[i].seconds;
            digits[length - 1] = 0;
        }
    if (!parse_number(digits, &number) || !number || number > UINT32_MAX / unit)
        return false;
    *seconds = number * unit;
    return true;
}

static bool ttl_option(const cli_args *args, uint64_t *seconds) {
    const char *given = args_text(args, "ttl");
    if (!given || read_ttl(given, seconds))
        return true;
    message("--ttl takes a time such as 30d, 12h, 90m or 3600 (seconds), or never, not %s", given);
    return false;
}

static bool settle_option(const cli_args *args, uint64_t *seconds) {
    const char *given = args_text(args, "clock-settle");
    if (given && !strcmp(given, "0"))
        *seconds = DOPPEL_CLOCK_TRUSTED;
    else if (given && (!read_ttl(given, seconds) || *seconds == DOPPEL_NEVER)) {
        message("--clock-settle takes a time such as 1h, 90m or 3600 (seconds), or 0, not %s", given);
        return false;
    }
    return true;
}

/* A distance or a similarity implies that kind of near. */
static bool near_option(const cli_args *args, unsigned *near) {
    const char *similarity = args_text(args, "similarity"), *distance = args_text(args, "distance");
    if (!choose_one(args, "near", near))
        return false;
    if (similarity && distance && !*near) {
        message("give --similarity or --distance, not both");
        return false;
    }
    if ((similarity && *near == DOPPEL_NEAR_DISTANCE) || (distance && *near == DOPPEL_NEAR_SIMILARITY)) {
        message("--%s cannot be used with --near %s", similarity ? "similarity" : "distance", args_text(args, "near"));
        return false;
    }
    if (!*near)
        *near = similarity ? DOPPEL_NEAR_SIMILARITY : distance ? DOPPEL_NEAR_DISTANCE : DOPPEL_NEAR_PRESET;
    return true;
}

/* A number of hashes, or all of them. */
static bool sample_option(const cli_args *args, uint64_t *sample) {
    const char *given = args_text(args, "sample");
    if (!given)
        return true;
    if (!strcmp(given, "all"))
        *sample = DOPPEL_SAMPLE_ALL;
    else if (!parse_number(given, sample) || !*sample) {
        message("--sample takes a number of hashes, or all, not %s", given);
        return false;
    }
    return true;
}

static bool log_options(engine_command *e) {
    unsigned level = DOPPEL_LOG_INFO, json = false;
    bool good = choose_one(e->args, "log-level", &level) && choose_one(e->args, "log-format", &json);
    e->options.log_level = (doppel_log_level)level;
    e->options.log_json = json;
    if (good && !args_text(e->args, "log") && (args_text(e->args, "log-level") || args_text(e->args, "log-format"))) {
        message("--log-%s needs --log FILE", args_text(e->args, "log-level") ? "level" : "format");
        return false;
    }
    return good;
}

/* `--keep-text on` is not an option with a value, but a file named on. */
static bool check_keep_text(const cli_args *args) {
    struct stat there;
    for (size_t i = 0; i < args->operand_count && args_flag(args, "keep-text"); i++) {
        const char *word = args->operands[i];
        if ((!strcmp(word, "on") || !strcmp(word, "off")) && stat(word, &there)) {
            message("there is no file %s; --keep-text takes no value: %s", word,
                    word[1] == 'n' ? "leave out \"on\"" : "leave out both, as texts are not kept by default");
            return false;
        }
    }
    return true;
}

/* Options that a folder is created with. */
static bool making_options(engine_command *e) {
    const cli_args *args = e->args;
    doppel_engine_options *o = &e->options;
    unsigned near = DOPPEL_NEAR_PRESET, titles = DOPPEL_SWITCH_PRESET, content = DOPPEL_CONTENT_MAIN;
    if (!check_keep_text(args) || !near_option(args, &near) || !choose_one(args, "titles", &titles) ||
        !choose_one(args, "content", &content) || !choose_some(args, "url-keep", &o->url_without) ||
        !sample_option(args, &o->sample) || !args_share(args, "similarity", &o->similarity) ||
        !args_share(args, "title-similarity", &o->title_similarity))
        return false;
    uint64_t distance = args_number(args, "distance", 0);
    o->preset = args_text(args, "preset");
    o->near = (doppel_near_by)near;
    o->distance = distance < INT_MAX ? (int)distance : INT_MAX;
    o->distance_zero = args_text(args, "distance") && !distance;
    if (args_text(args, "min-words")) {
        o->min_words = args_number(args, "min-words", 0);
        o->min_words = o->min_words ? o->min_words : 1;
    }
    o->titles = (doppel_switch)titles;
    o->keep_text = args_flag(args, "keep-text") ? DOPPEL_SWITCH_ON : DOPPEL_SWITCH_PRESET;
    o->content = (doppel_content)content;
    o->group_readable = args_flag(args, "group-readable");
    o->fields = args_text(args, "fields");
    return true;
}

/* Refuses options that only a folder has. */
static bool fits_place(const cli_args *args, const index_place *place) {
    static const char *const of_folders[] = {"durability", "memory", "group-readable", "clock-settle"};
    for (size_t i = 0; i < sizeof of_folders / sizeof *of_folders && !place->needs.folder; i++)
        if (args_text(args, of_folders[i])) {
            message(
                "--%s is for folders only: for a shared store the configuration of Redis decides this (docs/ENGINE.md)",
                of_folders[i]);
            return false;
        }
    return true;
}

/* Reads the options of the engine into e->options. False, with a message: one is invalid. */
static bool engine_options(engine_command *e) {
    const cli_args *args = e->args;
    doppel_engine_options *o = &e->options;
    unsigned duplicate = DOPPEL_DUPLICATE_PRESET, same_url = DOPPEL_SAME_URL_PRESET, durable = DOPPEL_DURABLE_PRESET,
             veto = DOPPEL_SWITCH_PRESET;
    if (!fits_place(args, &e->place) || (!o->must_exist && !making_options(e)) || !log_options(e) ||
        !choose_one(args, "on-duplicate", &duplicate) || !choose_one(args, "on-same-url", &same_url) ||
        !choose_one(args, "durability", &durable) || !ttl_option(args, &o->ttl) ||
        !settle_option(args, &o->clock_settle) || !args_share(args, "title-share", &o->title_share) ||
        !choose_one(args, "title-veto", &veto))
        return false;
    uint64_t threads = args_number(args, "threads", 0);
    o->on_duplicate = (doppel_on_duplicate)duplicate;
    o->on_same_url = (doppel_on_same_url)same_url;
    o->durability = (doppel_durability)durable;
    o->title_veto = (doppel_switch)veto;
    o->threads = threads < INT_MAX ? (int)threads : INT_MAX;
    o->count = args_number(args, "count", 0);
    o->memory = args_number(args, "memory", 0);
    if (o->memory && !o->count) {
        message("--memory needs --count N");
        return false;
    }
    return true;
}

/* ---- how it ended ---- */

int engine_ended(doppel_status status, const doppel_error *error) {
    if (status == DOPPEL_ERROR_INTERRUPTED)
        message("interrupted");
    else if (status != DOPPEL_OK && !failure_reported)
        message_error(error);
    return exit_code(status);
}

bool is_folder(const char *path) {
    struct stat there;
    if (stat(path, &there))
        message("%s: %s; make an index with doppel add --index %s INPUT...", path,
                errno == ENOENT ? "there is no such folder" : strerror(errno), path);
    else if (!S_ISDIR(there.st_mode))
        message("%s: not a folder; an index is a folder, made with doppel add --index DIR INPUT...", path);
    else
        return true;
    return false;
}

/* ---- the log ---- */

/* doppel_engine_options.log; a line is written in one call, so that lines of other threads do not mix with it. A text
 * line begins with the time. */
static void write_log(doppel_log_level level, const char *line, void *user) {
    const engine_command *e = user;
    char date[DATE_ROOM];
    (void)level;
    if (e->options.log_json)
        fprintf(e->log, "%s\n", line);
    else
        fprintf(e->log, "%s %s\n", format_date((uint64_t)time(NULL), date), line);
}

/* Without a log, warnings are reported; errors are returned by the calls, except for a store that lost its content:
 * there the calls continue. If the line is nothing but a message, only the message is printed. */
static void print_warning(doppel_log_level level, const char *line, void *user) {
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

static int open_log(engine_command *e) {
    e->log_path = args_text(e->args, "log");
    if (!e->log_path) {
        e->options.log = print_warning;
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

static int close_log(engine_command *e, int code) {
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

static int read_recipe(engine_command *e) {
    const char *text = args_text(e->args, "recipe");
    if (!text && (args_text(e->args, "stop-words") || args_text(e->args, "df"))) {
        message("--%s needs --recipe RECIPE", args_text(e->args, "df") ? "df" : "stop-words");
        return EXIT_USAGE;
    }
    int code = text ? load_recipe(e->args, text, &e->loaded) : EXIT_DONE;
    e->options.recipe = e->loaded.recipe;
    return code;
}

int engine_prepare(engine_command *e, const cli_args *args, engine_use use) {
    *e = (engine_command){.args = args};
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

/* Whether a message names the place: it contains the path, or begins with the address of the URL. */
static bool names_place(const char *text, const char *path) {
    const char *colon = strstr(text, ": ");
    return strstr(text, path) || (colon && memmem(path, strlen(path), text, (size_t)(colon - text)));
}

int engine_start(engine_command *e) {
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

int engine_open(engine_command *e, const cli_args *args, engine_use use) {
    int code = engine_prepare(e, args, use);
    return code == EXIT_DONE ? engine_start(e) : code;
}

/* Records that could not be read were skipped (`salvage`; without it the calls failed): that is an error of the index,
 * however the command ended. A store that does not answer is not waited for. */
static int report_damage(const engine_command *e, int code) {
    doppel_engine_stats stats = {0};
    doppel_engine_stop_waiting(e->engine);
    if (e->engine && e->options.salvage)
        doppel_engine_get_stats(e->engine, &stats);
    if (!stats.damaged)
        return code;
    const char *option = args_text(e->args, "store") ? "store" : "index";
    if (!e->damage_reported)
        message("%s: the index is damaged, and records that could not be read were skipped; `doppel verify --%s %s` "
                "reports what is lost, `doppel export --%s %s -o FILE` saves what can be read",
                e->path, option, e->path, option, e->path);
    return code == EXIT_INTERRUPTED || code == EXIT_USAGE ? code : EXIT_STORE;
}

int engine_close(engine_command *e, int code) {
    code = report_damage(e, code);
    doppel_engine_close(e->engine);
    free_recipe(&e->loaded);
    place_free(&e->place);
    code = close_log(e, code);
    *e = (engine_command){0};
    return code;
}
