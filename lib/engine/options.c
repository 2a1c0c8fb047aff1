/* options.c - what an engine is told, what its preset says and what its folder keeps: one table of settings for all
 * three.
 *
 * A folder keeps a text of lines "name=value", all settings of it. Those that shape what is stored are fixed: whoever
 * opens the folder with others is refused, and a message names both. The others are what the folder was made with
 * unless the caller says otherwise. */
#include "engine/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- presets ---- */

typedef struct preset {
    const char *name, *recipe;
    doppel_near_by near;
    doppel_switch titles;
    uint64_t ttl;
} preset;

static const preset presets[] = {
    {"general", "page", DOPPEL_NEAR_SIMILARITY, DOPPEL_SWITCH_ON, DOPPEL_NEVER},
    {"crawl", "page", DOPPEL_NEAR_DISTANCE, DOPPEL_SWITCH_OFF, 30 * 86400},
    {"article", "article", DOPPEL_NEAR_DISTANCE, DOPPEL_SWITCH_ON, DOPPEL_NEVER},
};

/* What a shared store keeps, it keeps for so long unless it is told otherwise. */
enum { SHARED_TTL = 30 * 86400 };

static const preset *find_preset(const doppel_engine *engine, const char *name) {
    if (!name)
        name = engine->is_shared ? "crawl" : "general";
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (!strcmp(presets[i].name, name))
            return &presets[i];
    return NULL;
}

/* ---- settings ---- */

typedef enum kind { CHOICE, COUNT, INTEGER, REAL, BITS } kind;

typedef struct setting {
    const char *name;
    kind kind;
    size_t offset;            /* in the options */
    const char *const *names; /* of choices, from 0 on; NULL ends them */
    bool fixed;
} setting;

static const char *const near_names[] = {"preset", "distance", "similarity", NULL};
static const char *const switch_names[] = {"preset", "on", "off", NULL};
static const char *const content_names[] = {"main", "all", NULL};
static const char *const duplicate_names[] = {"preset", "skip", "link", "store", NULL};
static const char *const url_names[] = {"preset", "duplicate", "refresh", NULL};

#define AT(member) offsetof(doppel_engine_options, member)
static const setting settings[] = {
    {"near", CHOICE, AT(near), near_names, true},
    {"similarity", REAL, AT(similarity), NULL, true},
    {"distance", INTEGER, AT(distance), NULL, true},
    {"min_words", COUNT, AT(min_words), NULL, true},
    {"titles", CHOICE, AT(titles), switch_names, true},
    {"title_similarity", REAL, AT(title_similarity), NULL, true},
    {"keep_text", CHOICE, AT(keep_text), switch_names, true},
    {"content", CHOICE, AT(content), content_names, true},
    {"url_without", BITS, AT(url_without), NULL, true},
    {"on_duplicate", CHOICE, AT(on_duplicate), duplicate_names, false},
    {"on_same_url", CHOICE, AT(on_same_url), url_names, false},
    {"ttl", COUNT, AT(ttl), NULL, false},
    {"title_share", REAL, AT(title_share), NULL, false},
};
enum { SETTINGS = sizeof settings / sizeof *settings, VALUE = 64 };

static bool is_given(const setting *s, const doppel_engine_options *options) {
    const char *at = (const char *)options + s->offset;
    switch (s->kind) {
    case CHOICE:
    case INTEGER:
    case BITS: return *(const int *)(const void *)at != 0;
    case COUNT: return *(const uint64_t *)(const void *)at != 0;
    case REAL: return *(const double *)(const void *)at != 0;
    }
    return false;
}

/* Real numbers from 0 to 1 with twelve digits, whatever the locale says of points. */
#define REAL_DIGITS 12
#define REAL_UNIT 1000000000000ULL

static void print_real(double real, char value[VALUE]) {
    unsigned long long units = (unsigned long long)(real * (double)REAL_UNIT + 0.5);
    snprintf(value, VALUE, "%llu.%0*llu", units / REAL_UNIT, REAL_DIGITS, units % REAL_UNIT);
}

static double parse_real(const char *value, char **end) {
    unsigned long long whole = strtoull(value, end, 10);
    if (**end != '.' || strlen(*end) != REAL_DIGITS + 1)
        return 0;
    return (double)(whole * REAL_UNIT + strtoull(*end + 1, end, 10)) / (double)REAL_UNIT;
}

static void print_setting(const setting *s, const doppel_engine_options *options, char value[VALUE]) {
    const char *at = (const char *)options + s->offset;
    switch (s->kind) {
    case CHOICE: snprintf(value, VALUE, "%s", s->names[*(const unsigned *)(const void *)at]); break;
    case INTEGER: snprintf(value, VALUE, "%d", *(const int *)(const void *)at); break;
    case BITS: snprintf(value, VALUE, "%u", *(const unsigned *)(const void *)at); break;
    case COUNT: snprintf(value, VALUE, "%" PRIu64, *(const uint64_t *)(const void *)at); break;
    case REAL: print_real(*(const double *)(const void *)at, value); break;
    }
}

static bool parse_setting(const setting *s, const char *value, doppel_engine_options *options) {
    char *at = (char *)options + s->offset, *end = NULL;
    switch (s->kind) {
    case CHOICE:
        for (unsigned i = 0; s->names[i]; i++)
            if (!strcmp(s->names[i], value)) {
                *(unsigned *)(void *)at = i;
                return true;
            }
        return false;
    case INTEGER: *(int *)(void *)at = (int)strtol(value, &end, 10); break;
    case BITS: *(unsigned *)(void *)at = (unsigned)strtoul(value, &end, 10); break;
    case COUNT: *(uint64_t *)(void *)at = strtoull(value, &end, 10); break;
    case REAL: *(double *)(void *)at = parse_real(value, &end); break;
    }
    return end && end != value && !*end;
}

/* The value of a line "name=value", copied; false: there is none, or it is too long. */
static bool find_line(const char *text, const char *name, char *value, size_t room) {
    size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, name, length) != 0 || line[length] != '=')
            continue;
        size_t size = strcspn(line + length + 1, "\n");
        if (size >= room)
            return false;
        memcpy(value, line + length + 1, size);
        value[size] = 0;
        return true;
    }
    return false;
}

/* ---- what is given, and what follows ---- */

static doppel_status check_given(const doppel_engine *engine, const doppel_engine_options *o, doppel_error *error) {
    if (!find_preset(engine, o->preset))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "no preset `%s`: there are general, crawl and article", o->preset);
    if (o->near > DOPPEL_NEAR_SIMILARITY || o->titles > DOPPEL_SWITCH_OFF || o->keep_text > DOPPEL_SWITCH_OFF ||
        o->on_duplicate > DOPPEL_DUPLICATE_STORE || o->on_same_url > DOPPEL_SAME_URL_REFRESH ||
        o->durability > DOPPEL_DURABLE_EACH || o->content > DOPPEL_CONTENT_ALL)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "an engine option has a value that does not exist");
    if (!(o->similarity >= 0 && o->similarity <= 1) || !(o->title_similarity >= 0 && o->title_similarity <= 1) ||
        !(o->title_share >= 0 && o->title_share <= 1))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a similarity or share is a number from 0 to 1");
    if (o->distance < -1)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a distance of %d bits: it is at least 0", o->distance);
    return DOPPEL_OK;
}

static void fill_defaults(doppel_engine_options *o, const preset *p) {
    o->near = o->near ? o->near : p->near;
    o->similarity = o->similarity > 0 ? o->similarity : 0.8;
    o->distance = o->distance ? o->distance : 3;
    o->min_words = o->min_words ? o->min_words : 5;
    o->titles = o->titles ? o->titles : p->titles;
    o->title_similarity = o->title_similarity > 0 ? o->title_similarity : 0.9;
    o->keep_text = o->keep_text ? o->keep_text : DOPPEL_SWITCH_OFF;
    o->on_duplicate = o->on_duplicate ? o->on_duplicate : DOPPEL_DUPLICATE_SKIP;
    o->on_same_url = o->on_same_url ? o->on_same_url : DOPPEL_SAME_URL_DUPLICATE;
    o->ttl = o->ttl ? o->ttl : p->ttl;
    o->title_share = o->title_share > 0 ? o->title_share : 0.001;
    o->durability = o->durability ? o->durability : DOPPEL_DURABLE_BATCH;
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

static doppel_status refuse_similarity(const doppel_engine *engine, doppel_error *error) {
    return dp_fail(
        error, DOPPEL_ERROR_USAGE,
        "near=similarity (preset %s) does not work in a shared store, which keeps no feature hashes: it works "
        "in an index folder and in memory; here use near=distance, or the presets crawl and article",
        engine->preset);
}

/* What the stages below go by. */
static doppel_status derive(doppel_engine *engine, doppel_error *error) {
    const doppel_engine_options *o = &engine->options;
    int bits = doppel_recipe_bits(o->recipe);
    dp_asking *a = &engine->asking;
    a->recipe = o->recipe;
    a->by_similarity = o->near == DOPPEL_NEAR_SIMILARITY;
    if (engine->is_shared && a->by_similarity)
        return refuse_similarity(engine, error);
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
                               .title_similarity = o->title_similarity};
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
    char value[VALUE];
    to->size = 0;
    bool added =
        dp_buffer_printf(to, "preset=%s\nrecipe=%s\nunicode=%s\nfields=%s\n", engine->preset,
                         doppel_recipe_text(engine->options.recipe), doppel_unicode_version(), engine->options.fields);
    for (int i = 0; i < SETTINGS && added; i++) {
        print_setting(&settings[i], &engine->options, value);
        added = dp_buffer_printf(to, "%s=%s\n", settings[i].name, value);
    }
    return added && dp_buffer_add(to, "", 1) ? DOPPEL_OK : dp_no_memory(error);
}

doppel_status dp_engine_set_up(doppel_engine *engine, const doppel_engine_options *given, doppel_error *error) {
    engine->options = *given;
    doppel_status status = check_given(engine, given, error);
    if (status != DOPPEL_OK)
        return status;
    preset p = *find_preset(engine, given->preset);
    if (engine->is_shared)
        p.ttl = SHARED_TTL;
    snprintf(engine->preset, sizeof engine->preset, "%s", p.name);
    fill_defaults(&engine->options, &p);
    engine->options.preset = engine->preset;
    status = own_fields(engine, engine->options.fields, error);
    if (status == DOPPEL_OK)
        status = own_recipe(engine, p.recipe, error);
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
    char name[VALUE], fields[FIELDS], unicode[VALUE];
    size_t room = strlen(text) + 1;
    if (!(*recipe = malloc(room)))
        return dp_no_memory(error);
    if (!find_line(text, "preset", name, sizeof name) || !find_preset(engine, name) ||
        !find_line(text, "recipe", *recipe, room) || !find_line(text, "fields", fields, sizeof fields) ||
        !find_line(text, "unicode", unicode, sizeof unicode))
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

static doppel_status agree_on(const setting *s, const doppel_engine_options *given, const char *text,
                              doppel_engine_options *options, doppel_error *error) {
    char has[VALUE], says[VALUE];
    if (!find_line(text, s->name, has, sizeof has) || !parse_setting(s, has, options))
        return dp_fail(error, DOPPEL_ERROR_STORE, "the settings of the index cannot be read: %s", s->name);
    if (!is_given(s, given))
        return DOPPEL_OK;
    print_setting(s, given, says);
    if (s->fixed && strcmp(has, says) != 0)
        return refuse(s->name, has, says, error);
    parse_setting(s, says, options);
    return DOPPEL_OK;
}

doppel_status dp_engine_agree(doppel_engine *engine, const doppel_engine_options *given, const char *text,
                              doppel_error *error) {
    char *recipe = NULL;
    if (!strcmp(text, engine->settings.data))
        return DOPPEL_OK;
    doppel_status status = agree_on_texts(engine, given, text, &recipe, error);
    for (int i = 0; i < SETTINGS && status == DOPPEL_OK; i++)
        status = agree_on(&settings[i], given, text, &engine->options, error);
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
