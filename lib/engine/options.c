/* options.c - what an engine is told, what its preset says and what its folder keeps: one table of settings
 * (settings.c) for all three.
 *
 * A folder keeps a text of lines "name=value", all settings of it. Those that shape what is stored are fixed: whoever
 * opens the folder with others is refused, and a message names both. The others are what the folder was made with
 * unless the caller says otherwise. */
#include "engine/engine.h"
#include "engine/settings.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- presets ---- */

typedef struct preset {
    const char *name;
    const char *recipe, *classic; /* near by similarity, and by distance */
    doppel_switch titles, title_veto;
    uint64_t sample, ttl;
} preset; /* titles apart, what is said of near by similarity */

/* 192 hashes of 2 bytes, so that a page takes less than 1 KB in all (docs/ENGINE.md). */
enum { CRAWL_SAMPLE = 192, LEAST_SAMPLE = 16, MOST_SAMPLE = 4096 };

/* Pairs of words: as near as single words are, and as precise as 5-word shingles (docs/ACCURACY.md). */
#define ARTICLE_RECIPE "simhash64:words=2:hash=fast:weight=tf:first=5000"

static const preset presets[] = {
    {"general", "page", "page", DOPPEL_SWITCH_ON, DOPPEL_SWITCH_ON, DOPPEL_SAMPLE_ALL, DOPPEL_NEVER},
    {"crawl", "page", "page", DOPPEL_SWITCH_OFF, DOPPEL_SWITCH_ON, CRAWL_SAMPLE, 30 * 86400},
    {"article", ARTICLE_RECIPE, "article", DOPPEL_SWITCH_ON, DOPPEL_SWITCH_OFF, DOPPEL_SAMPLE_ALL, DOPPEL_NEVER},
};

/* What a shared store keeps, it keeps for 30 days unless it is told otherwise. */
enum { SHARED_TTL = 30 * 86400 };

/* All presets are near by similarity, unless a distance is named. */
static doppel_near_by near_of(const doppel_engine_options *o) {
    if (o->near)
        return o->near;
    return o->distance && !(o->similarity > 0) ? DOPPEL_NEAR_DISTANCE : DOPPEL_NEAR_SIMILARITY;
}

static const preset *find_preset(const char *name) {
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (!strcmp(presets[i].name, name))
            return &presets[i];
    return NULL;
}

/* ---- what is given, and what follows ---- */

static doppel_status check_given(const doppel_engine_options *o, doppel_error *error) {
    if (o->preset && !find_preset(o->preset))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "no preset `%s`: there are general, crawl and article", o->preset);
    if (o->near > DOPPEL_NEAR_SIMILARITY || o->titles > DOPPEL_SWITCH_OFF || o->keep_text > DOPPEL_SWITCH_OFF ||
        o->title_veto > DOPPEL_SWITCH_OFF || o->on_duplicate > DOPPEL_DUPLICATE_STORE ||
        o->on_same_url > DOPPEL_SAME_URL_REFRESH || o->durability > DOPPEL_DURABLE_EACH ||
        o->content > DOPPEL_CONTENT_ALL)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "an engine option has a value that does not exist");
    if (!(o->similarity >= 0 && o->similarity <= 1) || !(o->title_similarity >= 0 && o->title_similarity <= 1) ||
        !(o->title_share >= 0 && o->title_share <= 1))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a similarity or share is a number from 0 to 1");
    if (o->distance < -1)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a distance of %d bits: it is at least 0", o->distance);
    return DOPPEL_OK;
}

/* Longer than it takes to set a clock by the network after a boot, shorter than anybody would miss. */
enum { CLOCK_SETTLE = 3600 };

static void fill_defaults(doppel_engine_options *o, const preset *p) {
    o->similarity = o->similarity > 0 ? o->similarity : 0.8;
    o->distance = o->distance ? o->distance : 3;
    o->min_words = o->min_words ? o->min_words : 5;
    o->titles = o->titles ? o->titles : p->titles;
    o->title_similarity = o->title_similarity > 0 ? o->title_similarity : 0.9;
    if (!o->title_veto)
        o->title_veto = o->near == DOPPEL_NEAR_SIMILARITY ? p->title_veto : DOPPEL_SWITCH_OFF;
    if (!o->sample)
        o->sample = o->near == DOPPEL_NEAR_SIMILARITY ? p->sample : DOPPEL_SAMPLE_ALL;
    o->keep_text = o->keep_text ? o->keep_text : DOPPEL_SWITCH_OFF;
    o->on_duplicate = o->on_duplicate ? o->on_duplicate : DOPPEL_DUPLICATE_SKIP;
    o->on_same_url = o->on_same_url ? o->on_same_url : DOPPEL_SAME_URL_DUPLICATE;
    o->ttl = o->ttl ? o->ttl : p->ttl;
    o->title_share = o->title_share > 0 ? o->title_share : 0.001;
    o->durability = o->durability ? o->durability : DOPPEL_DURABLE_BATCH;
    o->clock_settle = o->clock_settle ? o->clock_settle : CLOCK_SETTLE;
    o->fields = o->fields ? o->fields : "source,date";
}

/* All names of fields together have fewer bytes, as they are kept. */
enum { FIELDS = 1024 };

/* Keeps the names of the fields: the caller's may go. */
static doppel_status own_fields(doppel_engine *engine, const char *fields, doppel_error *error) {
    if (strchr(fields, '\n'))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a field's name with a line break");
    if (strlen(fields) >= FIELDS)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "names of fields of %zu bytes: %d are possible", strlen(fields),
                       FIELDS - 1);
    free(engine->fields_text);
    engine->options.fields = engine->fields_text = strdup(fields);
    return engine->fields_text ? DOPPEL_OK : dp_no_memory(error);
}

/* The names of the fields, cut out of a copy. */
static doppel_status cut_fields(doppel_engine *engine, const char *fields, doppel_error *error) {
    free(engine->fields_copy);
    if (!(engine->fields_copy = strdup(fields)))
        return dp_no_memory(error);
    engine->asking.field_count = 0;
    char *rest = engine->fields_copy;
    for (char *name; (name = strsep(&rest, ",")) != NULL;) {
        if (!*name)
            continue;
        if (engine->asking.field_count == sizeof engine->field_names / sizeof *engine->field_names)
            return dp_fail(error, DOPPEL_ERROR_USAGE, "more than 16 fields: `%s`", fields);
        engine->field_names[engine->asking.field_count++] = name;
    }
    engine->asking.fields = engine->field_names;
    return DOPPEL_OK;
}

/* What the stages below go by. */
static doppel_status derive(doppel_engine *engine, doppel_error *error) {
    const doppel_engine_options *o = &engine->options;
    int bits = doppel_recipe_bits(o->recipe);
    dp_asking *a = &engine->asking;
    a->recipe = o->recipe;
    a->by_similarity = o->near == DOPPEL_NEAR_SIMILARITY;
    if (o->title_veto == DOPPEL_SWITCH_ON && !a->by_similarity)
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "title_veto=on needs near=similarity, as it compares the contents: this index is "
                       "near=distance; leave title_veto out");
    if (o->sample != DOPPEL_SAMPLE_ALL && (!a->by_similarity || o->sample < LEAST_SAMPLE || o->sample > MOST_SAMPLE))
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       a->by_similarity ? "a sample of %llu hashes: from %d to %d are possible, or all"
                                        : "a sample of %llu hashes (%d to %d) needs near=similarity: leave it out",
                       (unsigned long long)o->sample, LEAST_SAMPLE, MOST_SAMPLE);
    a->sample = o->sample != DOPPEL_SAMPLE_ALL ? (size_t)o->sample : 0;
    a->min_words = o->min_words;
    a->titles = o->titles == DOPPEL_SWITCH_ON;
    a->keep_text = o->keep_text == DOPPEL_SWITCH_ON;
    a->content = o->content;
    a->url_without = o->url_without;
    a->bands = a->rows = 0;
    if (!dp_bands_plan(o->similarity, &a->bands, &a->rows))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "no bands for a similarity of %g", o->similarity);
    engine->rules = (dp_rules){.by_similarity = a->by_similarity,
                               .similarity = o->similarity,
                               .distance = o->distance < 0 ? 0 : o->distance,
                               .bits = bits,
                               .titles = a->titles,
                               .title_similarity = o->title_similarity,
                               .title_veto = o->title_veto == DOPPEL_SWITCH_ON};
    if (engine->rules.distance > bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a distance of %d bits, in fingerprints of %d", o->distance, bits);
    return cut_fields(engine, o->fields, error);
}

/* The recipe by its text, unless the caller gave one. */
static doppel_status own_recipe(doppel_engine *engine, const char *text, doppel_error *error) {
    if (engine->options.recipe)
        return DOPPEL_OK;
    doppel_status status = doppel_recipe_parse(text, NULL, &engine->own_recipe, error);
    engine->options.recipe = engine->own_recipe;
    return status;
}

static doppel_status write_settings(doppel_engine *engine, doppel_error *error) {
    dp_buffer *to = &engine->settings;
    char value[DP_SETTING_VALUE];
    to->size = 0;
    bool added =
        dp_buffer_printf(to, "preset=%s\nrecipe=%s\nunicode=%s\nfields=%s\n", engine->preset,
                         doppel_recipe_text(engine->options.recipe), doppel_unicode_version(), engine->options.fields);
    for (int i = 0; i < DP_SETTINGS && added; i++) {
        dp_setting_print(&dp_settings[i], &engine->options, value);
        if (!dp_settings[i].absent || strcmp(dp_settings[i].absent, value) != 0)
            added = dp_buffer_printf(to, "%s=%s\n", dp_settings[i].name, value);
    }
    return added && dp_buffer_add(to, "", 1) ? DOPPEL_OK : dp_no_memory(error);
}

doppel_status dp_engine_set_up(doppel_engine *engine, const char *path, const doppel_engine_options *given,
                               doppel_error *error) {
    engine->options = *given;
    doppel_status status = check_given(given, error);
    if (status != DOPPEL_OK)
        return status;
    /* What several crawlers share is a crawl. */
    bool shared = dp_known_is_shared_path(path);
    const preset *p = find_preset(given->preset ? given->preset : shared ? "crawl" : "general");
    engine->options.near = near_of(given);
    snprintf(engine->preset, sizeof engine->preset, "%s", p->name);
    if (shared && !given->ttl)
        engine->options.ttl = SHARED_TTL;
    fill_defaults(&engine->options, p);
    engine->options.preset = engine->preset;
    status = own_fields(engine, engine->options.fields, error);
    if (status == DOPPEL_OK)
        status = own_recipe(engine, engine->options.near == DOPPEL_NEAR_DISTANCE ? p->classic : p->recipe, error);
    if (status == DOPPEL_OK)
        status = derive(engine, error);
    return status == DOPPEL_OK ? write_settings(engine, error) : status;
}

/* ---- a folder that is there ---- */

static doppel_status refuse(const char *name, const char *has, const char *given, doppel_error *error) {
    return dp_fail(
        error, DOPPEL_ERROR_STORE,
        "the index was made with %s %s and cannot be used with %s %s: give the same or nothing, or make another index",
        name, has, name, given);
}

static doppel_status agree_on_texts(doppel_engine *engine, const doppel_engine_options *given, const char *text,
                                    char **recipe, doppel_error *error) {
    char name[DP_SETTING_VALUE], fields[FIELDS], unicode[DP_SETTING_VALUE];
    size_t room = strlen(text) + 1;
    if (!(*recipe = malloc(room)))
        return dp_no_memory(error);
    if (!dp_settings_line(text, "preset", name, sizeof name) || !find_preset(name) ||
        !dp_settings_line(text, "recipe", *recipe, room) || !dp_settings_line(text, "fields", fields, sizeof fields) ||
        !dp_settings_line(text, "unicode", unicode, sizeof unicode))
        return dp_fail(error, DOPPEL_ERROR_STORE, "the settings of the index cannot be read");
    if (given->preset && strcmp(given->preset, name) != 0)
        return refuse("preset", name, given->preset, error);
    if (given->recipe && strcmp(doppel_recipe_text(given->recipe), *recipe) != 0)
        return refuse("recipe", *recipe, doppel_recipe_text(given->recipe), error);
    if (given->fields && strcmp(given->fields, fields) != 0)
        return refuse("fields", fields, given->fields, error);
    if (strcmp(unicode, doppel_unicode_version()) != 0)
        dp_log_line(engine, DOPPEL_LOG_WARNING, "OPEN_WARNING",
                    "the index was made with Unicode %s, this is %s: words may be cut otherwise", unicode,
                    doppel_unicode_version());
    snprintf(engine->preset, sizeof engine->preset, "%s", name);
    engine->options.preset = engine->preset;
    return own_fields(engine, fields, error);
}

static doppel_status agree_on(const dp_setting *s, const doppel_engine_options *given, const char *text,
                              doppel_engine_options *options, doppel_error *error) {
    char has[DP_SETTING_VALUE], says[DP_SETTING_VALUE];
    bool there = dp_settings_line(text, s->name, has, sizeof has);
    if (!there && s->absent)
        there = snprintf(has, sizeof has, "%s", s->absent) > 0;
    if (!there || !dp_setting_parse(s, has, options))
        return dp_fail(error, DOPPEL_ERROR_STORE, "the settings of the index cannot be read: %s", s->name);
    if (!dp_setting_is_given(s, given))
        return DOPPEL_OK;
    dp_setting_print(s, given, says);
    if (s->fixed && strcmp(has, says) != 0)
        return refuse(s->name, has, says, error);
    dp_setting_parse(s, says, options);
    return DOPPEL_OK;
}

doppel_status dp_engine_agree(doppel_engine *engine, const doppel_engine_options *given, const char *text,
                              doppel_error *error) {
    char *recipe = NULL;
    if (!strcmp(text, engine->settings.data))
        return DOPPEL_OK;
    doppel_status status = agree_on_texts(engine, given, text, &recipe, error);
    for (int i = 0; i < DP_SETTINGS && status == DOPPEL_OK; i++)
        status = agree_on(&dp_settings[i], given, text, &engine->options, error);
    if (status == DOPPEL_OK) {
        doppel_recipe_free(engine->own_recipe);
        engine->own_recipe = NULL;
        engine->options.recipe = given->recipe;
        status = own_recipe(engine, recipe, error);
    }
    if (status == DOPPEL_OK)
        status = derive(engine, error);
    free(recipe);
    return status == DOPPEL_OK ? write_settings(engine, error) : status;
}
