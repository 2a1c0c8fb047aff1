/* index_settings.c - the settings of an index, as JSON and back. */
#include "engine/index_settings.h"

#include "common/message.h"
#include "shared/choices.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The members, in the order they are written in. */
enum {
    SET_PRESET,
    SET_RECIPE,
    SET_NEAR,
    SET_SIMILARITY,
    SET_DISTANCE,
    SET_MIN_WORDS,
    SET_TITLES,
    SET_TITLE_SIMILARITY,
    SET_KEEP_TEXT,
    SET_CONTENT,
    SET_URL_KEEP,
    SET_FIELDS,
    SET_ON_DUPLICATE,
    SET_ON_SAME_URL,
    SET_TTL,
    SET_TITLE_SHARE,
    SET_TITLE_VETO,
    SET_SAMPLE,
    SETTINGS
};

static const char *const names[SETTINGS] = {
    "preset",  "recipe",  "near",   "similarity",  "distance",  "minWords", "titles",     "titleSimilarity", "keepText",
    "content", "urlKeep", "fields", "onDuplicate", "onSameUrl", "ttl",      "titleShare", "titleVeto",       "sample"};

/* ---- writing ---- */

static void put_text(text_buffer *out, const char *value) {
    text_string(out, doppel_slice_of(value ? value : ""));
}

/* Rules separated by commas, as --url-keep takes them. */
static void put_url_rules(text_buffer *out, unsigned without) {
    bool first = true;
    text_put(out, "\"");
    for (const cli_choice *c = url_rule_choices; c->name; c++)
        if (without & c->value) {
            text_format(out, "%s%s", first ? "" : ",", c->name);
            first = false;
        }
    text_put(out, "\"");
}

/* A number that has a word for one of its values. */
static void put_count(text_buffer *out, uint64_t count, uint64_t special, const char *word) {
    if (count == special)
        put_text(out, word);
    else
        text_format(out, "%llu", (unsigned long long)count);
}

static void put_switch(text_buffer *out, doppel_switch value) {
    text_put(out, value == DOPPEL_SWITCH_ON ? "true" : "false");
}

static void put_setting(text_buffer *out, const doppel_engine_options *o, int which) {
    switch (which) {
    case SET_PRESET: put_text(out, o->preset ? o->preset : "general"); break;
    case SET_RECIPE: put_text(out, doppel_recipe_text(o->recipe)); break;
    case SET_NEAR: put_text(out, o->near == DOPPEL_NEAR_DISTANCE ? "distance" : "similarity"); break;
    case SET_SIMILARITY: text_format(out, "%.15g", o->similarity); break;
    case SET_DISTANCE: text_format(out, "%d", o->distance); break;
    case SET_MIN_WORDS: text_format(out, "%llu", (unsigned long long)o->min_words); break;
    case SET_TITLES: put_switch(out, o->titles); break;
    case SET_TITLE_SIMILARITY: text_format(out, "%.15g", o->title_similarity); break;
    case SET_KEEP_TEXT: put_switch(out, o->keep_text); break;
    case SET_CONTENT: put_text(out, choice_name(content_choices, o->content)); break;
    case SET_URL_KEEP: put_url_rules(out, o->url_without); break;
    case SET_FIELDS: put_text(out, o->fields); break;
    case SET_ON_DUPLICATE: put_text(out, choice_name(duplicate_choices, o->on_duplicate)); break;
    case SET_ON_SAME_URL: put_text(out, choice_name(same_url_choices, o->on_same_url)); break;
    case SET_TTL: put_count(out, o->ttl, DOPPEL_NEVER, "never"); break;
    case SET_TITLE_SHARE: text_format(out, "%.15g", o->title_share); break;
    case SET_TITLE_VETO: put_switch(out, o->title_veto); break;
    default: put_count(out, o->sample, DOPPEL_SAMPLE_ALL, "all");
    }
}

void text_settings(text_buffer *out, const doppel_engine_options *options, const char *between) {
    for (int i = 0; i < SETTINGS; i++) {
        text_format(out, "%s%s\"%s\":", i ? "," : "", i ? between : "", names[i]);
        put_setting(out, options, i);
    }
}

/* ---- reading ---- */

static bool is_value(doppel_slice value, const char *text) {
    return value.data && value.length == strlen(text) && !memcmp(value.data, text, value.length);
}

static doppel_switch read_switch(doppel_slice value) {
    return is_value(value, "true")    ? DOPPEL_SWITCH_ON
           : is_value(value, "false") ? DOPPEL_SWITCH_OFF
                                      : DOPPEL_SWITCH_PRESET;
}

static double read_number(doppel_slice value) {
    char text[40] = "";
    if (value.data && value.length < sizeof text)
        memcpy(text, value.data, value.length);
    return strtod(text, NULL);
}

/* 0 for what is not a whole number, or out of range. */
static int read_count(doppel_slice value) {
    double number = read_number(value);
    return number >= 0 && number <= INT_MAX ? (int)number : 0;
}

static unsigned read_url_rules(doppel_slice value) {
    unsigned without = 0;
    for (const cli_choice *c = url_rule_choices; value.data && c->name; c++) {
        size_t length = strlen(c->name);
        for (const char *p = value.data, *end = p + value.length; p < end; p++) {
            const char *comma = memchr(p, ',', (size_t)(end - p));
            size_t part = (size_t)((comma ? comma : end) - p);
            if (part == length && !memcmp(p, c->name, length))
                without |= c->value;
            p += part;
        }
    }
    return without;
}

/* 0 for what is none of them. */
static unsigned read_choice(doppel_slice value, const cli_choice *choices) {
    for (; choices->name; choices++)
        if (is_value(value, choices->name))
            return choices->value;
    return 0;
}

static char *copy(doppel_slice value) {
    return value.data ? strndup(value.data, value.length) : NULL;
}

static void set_options(doppel_engine_options *o, const doppel_slice *value) {
    *o = (doppel_engine_options){
        .size = sizeof *o,
        .near = is_value(value[SET_NEAR], "distance") ? DOPPEL_NEAR_DISTANCE : DOPPEL_NEAR_SIMILARITY,
        .similarity = read_number(value[SET_SIMILARITY]),
        .distance = read_count(value[SET_DISTANCE]),
        .distance_zero = is_value(value[SET_DISTANCE], "0"),
        .min_words = (uint64_t)read_count(value[SET_MIN_WORDS]),
        .titles = read_switch(value[SET_TITLES]),
        .title_similarity = read_number(value[SET_TITLE_SIMILARITY]),
        .keep_text = read_switch(value[SET_KEEP_TEXT]),
        .content = is_value(value[SET_CONTENT], "all") ? DOPPEL_CONTENT_ALL : DOPPEL_CONTENT_MAIN,
        .url_without = read_url_rules(value[SET_URL_KEEP]),
        .on_duplicate = (doppel_on_duplicate)read_choice(value[SET_ON_DUPLICATE], duplicate_choices),
        .on_same_url = (doppel_on_same_url)read_choice(value[SET_ON_SAME_URL], same_url_choices),
        .ttl = is_value(value[SET_TTL], "never") ? DOPPEL_NEVER : (uint64_t)read_count(value[SET_TTL]),
        .title_share = read_number(value[SET_TITLE_SHARE]),
        .sample = read_count(value[SET_SAMPLE]) ? (uint64_t)read_count(value[SET_SAMPLE]) : DOPPEL_SAMPLE_ALL,
        .title_veto = is_value(value[SET_TITLE_VETO], "true") ? DOPPEL_SWITCH_ON : DOPPEL_SWITCH_OFF,
    };
}

bool read_settings(settings *s, const char *record, size_t length) {
    doppel_input_options options = {.size = sizeof options, .extra_keys = names, .extra_count = SETTINGS};
    doppel_document *parsed = NULL;
    doppel_error error = {0};
    *s = (settings){0};
    if (doppel_document_parse((doppel_slice){record, length}, &options, &parsed, &error) != DOPPEL_OK) {
        message_error(&error);
        return false;
    }
    const doppel_slice *value = parsed->extra;
    set_options(&s->options, value);
    s->preset = copy(value[SET_PRESET]);
    s->fields = copy(value[SET_FIELDS]);
    s->recipe = copy(value[SET_RECIPE]);
    doppel_document_free(parsed);
    if (!s->recipe)
        message("the first line of the export names no recipe");
    return s->recipe;
}

int use_settings(const settings *s, engine_command *e) {
    doppel_engine_options *o = &e->options;
    const doppel_engine_options *from = &s->options;
    o->preset = o->preset ? o->preset : s->preset;
    o->fields = o->fields ? o->fields : s->fields;
    /* With another kind of near than the export has, the preset decides. */
    if (!o->title_veto && (!o->near || o->near == from->near))
        o->title_veto = from->title_veto;
    if (o->near == DOPPEL_NEAR_PRESET) {
        o->near = from->near;
        o->similarity = from->near == DOPPEL_NEAR_SIMILARITY ? from->similarity : 0;
        o->distance = from->near == DOPPEL_NEAR_DISTANCE ? from->distance : 0;
        o->distance_zero = from->near == DOPPEL_NEAR_DISTANCE && from->distance_zero;
        o->sample = o->sample ? o->sample : from->sample;
    }
    o->min_words = o->min_words ? o->min_words : from->min_words;
    o->titles = o->titles ? o->titles : from->titles;
    o->title_similarity = o->title_similarity > 0 ? o->title_similarity : from->title_similarity;
    o->keep_text = o->keep_text ? o->keep_text : from->keep_text;
    o->content = args_text(e->args, "content") ? o->content : from->content;
    o->url_without = args_text(e->args, "url-keep") ? o->url_without : from->url_without;
    o->on_duplicate = o->on_duplicate ? o->on_duplicate : from->on_duplicate;
    o->on_same_url = o->on_same_url ? o->on_same_url : from->on_same_url;
    o->ttl = o->ttl ? o->ttl : from->ttl;
    o->title_share = o->title_share > 0 ? o->title_share : from->title_share;
    int code = e->loaded.recipe ? EXIT_DONE : load_recipe(e->args, s->recipe, &e->loaded);
    o->recipe = e->loaded.recipe;
    return code;
}

void settings_free(settings *s) {
    free(s->preset);
    free(s->fields);
    free(s->recipe);
}
