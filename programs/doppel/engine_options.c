/* engine_options.c - the options that say what an engine does, as it takes them. */
#include "choices.h"
#include "common/message.h"
#include "engine_cli.h"

#include <limits.h>
#include <string.h>

static const choice nears[] = {{"similarity", DOPPEL_NEAR_SIMILARITY}, {"distance", DOPPEL_NEAR_DISTANCE}, {NULL, 0}};
static const choice switches[] = {{"on", DOPPEL_SWITCH_ON}, {"off", DOPPEL_SWITCH_OFF}, {NULL, 0}};
static const choice durabilities[] = {
    {"none", DOPPEL_DURABLE_NONE}, {"batch", DOPPEL_DURABLE_BATCH}, {"each", DOPPEL_DURABLE_EACH}, {NULL, 0}};
static const choice levels[] = {
    {"error", DOPPEL_LOG_ERROR}, {"warning", DOPPEL_LOG_WARNING}, {"info", DOPPEL_LOG_INFO}, {NULL, 0}};
static const choice forms[] = {{"text", false}, {"json", true}, {NULL, 0}};

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
    if (!parse_number(digits, false, &number) || !number || number > UINT32_MAX / unit)
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

/* Who names a distance or a similarity means that kind of near. */
static bool near_option(const cli_args *args, unsigned *near) {
    const char *similarity = args_text(args, "similarity"), *distance = args_text(args, "distance");
    if (!choose_one(args, "near", nears, near))
        return false;
    if (similarity && distance && !*near) {
        message("--similarity or --distance: near content is one of them");
        return false;
    }
    if ((similarity && *near == DOPPEL_NEAR_DISTANCE) || (distance && *near == DOPPEL_NEAR_SIMILARITY)) {
        message("--%s does not go with --near %s", similarity ? "similarity" : "distance", args_text(args, "near"));
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
    else if (!parse_number(given, false, sample) || !*sample) {
        message("--sample takes a number of hashes, or all, not %s", given);
        return false;
    }
    return true;
}

static bool log_options(engine_cli *e) {
    unsigned level = DOPPEL_LOG_INFO, json = false;
    bool good = choose_one(e->args, "log-level", levels, &level) && choose_one(e->args, "log-format", forms, &json);
    e->options.log_level = (doppel_log_level)level;
    e->options.log_json = json;
    if (good && !args_text(e->args, "log") && (args_text(e->args, "log-level") || args_text(e->args, "log-format"))) {
        message("--log-%s goes with --log FILE", args_text(e->args, "log-level") ? "level" : "format");
        return false;
    }
    return good;
}

/* What a folder is made with. */
static bool making_options(engine_cli *e) {
    const cli_args *args = e->args;
    doppel_engine_options *o = &e->options;
    unsigned near = DOPPEL_NEAR_PRESET, titles = DOPPEL_SWITCH_PRESET, content = DOPPEL_CONTENT_MAIN;
    if (!near_option(args, &near) || !choose_one(args, "titles", switches, &titles) ||
        !choose_one(args, "content", content_choices, &content) ||
        !choose_some(args, "url-keep", url_rule_choices, &o->url_without) || !sample_option(args, &o->sample) ||
        !args_share(args, "similarity", &o->similarity) || !args_share(args, "title-similarity", &o->title_similarity))
        return false;
    uint64_t distance = args_number(args, "distance", 0);
    o->preset = args_text(args, "preset");
    o->near = (doppel_near_by)near;
    o->distance = distance < INT_MAX ? (int)distance : INT_MAX;
    if (args_text(args, "distance") && !distance)
        o->distance = -1;
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

/* What only a folder has. */
static bool fits_place(const cli_args *args, const index_place *place) {
    static const char *const of_folders[] = {"durability", "memory", "group-readable", "clock-settle"};
    for (size_t i = 0; i < sizeof of_folders / sizeof *of_folders && !place->needs.folder; i++)
        if (args_text(args, of_folders[i])) {
            message("--%s is for folders: what Redis keeps, and how safely, its own configuration says "
                    "(docs/ENGINE.md)",
                    of_folders[i]);
            return false;
        }
    return true;
}

bool engine_options(engine_cli *e) {
    const cli_args *args = e->args;
    doppel_engine_options *o = &e->options;
    unsigned duplicate = DOPPEL_DUPLICATE_PRESET, same_url = DOPPEL_SAME_URL_PRESET, durable = DOPPEL_DURABLE_PRESET,
             veto = DOPPEL_SWITCH_PRESET;
    if (!fits_place(args, &e->place) || (!o->must_exist && !making_options(e)) || !log_options(e) ||
        !choose_one(args, "on-duplicate", duplicate_choices, &duplicate) ||
        !choose_one(args, "on-same-url", same_url_choices, &same_url) ||
        !choose_one(args, "durability", durabilities, &durable) || !ttl_option(args, &o->ttl) ||
        !settle_option(args, &o->clock_settle) || !args_share(args, "title-share", &o->title_share) ||
        !choose_one(args, "title-veto", switches, &veto))
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
        message("--memory goes with --count N");
        return false;
    }
    return true;
}
