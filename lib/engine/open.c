/* open.c - opening an engine at a path, and closing it: its settings, and the pool of workers.
 *
 * The caller's options, those of a preset and those stored in a folder are one table of settings. A folder stores all
 * its settings as lines "name=value". Those that shape what is stored are fixed: opening the folder with others is
 * refused, and a message names both. The rest are as the folder was made with unless the caller overrides them. A
 * folder in which nothing was ever stored takes whatever the caller gives. */
#include "engine/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the table of settings, and their values as text ---- */

/* A distance of 0 is kept as -1. */
typedef enum setting_kind { SETTING_CHOICE, SETTING_COUNT, SETTING_DISTANCE, SETTING_REAL, SETTING_BITS } setting_kind;

typedef struct setting {
    const char *name;
    setting_kind kind;
    size_t offset;            /* in the options */
    const char *const *names; /* of choices, from 0 on; NULL ends them */
    bool fixed;               /* it shapes what is stored */
    const char *absent;       /* the value for an index without such a line; NULL: every index has one */
} setting;

enum { SETTING_VALUE = 64 };

static const char *const near_names[] = {"preset", "distance", "similarity", NULL};
static const char *const switch_names[] = {"preset", "on", "off", NULL};
static const char *const content_names[] = {"main", "all", NULL};
static const char *const duplicate_names[] = {"preset", "skip", "link", "store", NULL};
static const char *const url_names[] = {"preset", "duplicate", "refresh", NULL};

#define AT(member) offsetof(doppel_engine_options, member)
static const setting settings[] = {
    {"near", SETTING_CHOICE, AT(near), near_names, true, NULL},
    {"similarity", SETTING_REAL, AT(similarity), NULL, true, NULL},
    {"distance", SETTING_DISTANCE, AT(distance), NULL, true, NULL},
    {"min_words", SETTING_COUNT, AT(min_words), NULL, true, NULL},
    {"titles", SETTING_CHOICE, AT(titles), switch_names, true, NULL},
    {"title_similarity", SETTING_REAL, AT(title_similarity), NULL, true, NULL},
    {"keep_text", SETTING_CHOICE, AT(keep_text), switch_names, true, NULL},
    {"content", SETTING_CHOICE, AT(content), content_names, true, NULL},
    {"url_without", SETTING_BITS, AT(url_without), NULL, true, NULL},
    {"on_duplicate", SETTING_CHOICE, AT(on_duplicate), duplicate_names, false, NULL},
    {"on_same_url", SETTING_CHOICE, AT(on_same_url), url_names, false, NULL},
    {"ttl", SETTING_COUNT, AT(ttl), NULL, false, NULL},
    {"title_share", SETTING_REAL, AT(title_share), NULL, false, NULL},
    {"title_veto", SETTING_CHOICE, AT(title_veto), switch_names, false, "off"},
    {"sample", SETTING_COUNT, AT(sample), NULL, true, "18446744073709551615"},
};

enum { SETTINGS = sizeof settings / sizeof *settings };

/* Whether the caller has set it. */
static bool is_given(const setting *s, const doppel_engine_options *options) {
    const char *at = (const char *)options + s->offset;
    switch (s->kind) {
    case SETTING_CHOICE:
    case SETTING_BITS: return *(const int *)(const void *)at != 0;
    case SETTING_DISTANCE: return options->distance != 0 || options->distance_zero;
    case SETTING_COUNT: return *(const uint64_t *)(const void *)at != 0;
    case SETTING_REAL: return *(const double *)(const void *)at != 0;
    }
    return false;
}

/* Real numbers from 0 to 1 with twelve digits and a point, whatever the locale. */
#define REAL_DIGITS 12
#define REAL_UNIT 1000000000000ULL

static void print_real(double real, char value[SETTING_VALUE]) {
    unsigned long long units = (unsigned long long)(real * (double)REAL_UNIT + 0.5);
    snprintf(value, SETTING_VALUE, "%llu.%0*llu", units / REAL_UNIT, REAL_DIGITS, units % REAL_UNIT);
}

static double parse_real(const char *value, char **end) {
    unsigned long long whole = strtoull(value, end, 10);
    if (**end != '.' || strlen(*end) != REAL_DIGITS + 1)
        return 0;
    return (double)(whole * REAL_UNIT + strtoull(*end + 1, end, 10)) / (double)REAL_UNIT;
}

static void print_setting(const setting *s, const doppel_engine_options *options, char value[SETTING_VALUE]) {
    const char *at = (const char *)options + s->offset;
    switch (s->kind) {
    case SETTING_CHOICE: snprintf(value, SETTING_VALUE, "%s", s->names[*(const unsigned *)(const void *)at]); break;
    case SETTING_DISTANCE: snprintf(value, SETTING_VALUE, "%d", options->distance_zero ? -1 : options->distance); break;
    case SETTING_BITS: snprintf(value, SETTING_VALUE, "%u", *(const unsigned *)(const void *)at); break;
    case SETTING_COUNT: snprintf(value, SETTING_VALUE, "%" PRIu64, *(const uint64_t *)(const void *)at); break;
    case SETTING_REAL: print_real(*(const double *)(const void *)at, value); break;
    }
}

/* False: the text is not a valid value. */
static bool parse_setting(const setting *s, const char *value, doppel_engine_options *options) {
    char *at = (char *)options + s->offset, *end = NULL;
    switch (s->kind) {
    case SETTING_CHOICE:
        for (unsigned i = 0; s->names[i]; i++)
            if (!strcmp(s->names[i], value)) {
                *(unsigned *)(void *)at = i;
                return true;
            }
        return false;
    case SETTING_DISTANCE:
        options->distance = (int)strtol(value, &end, 10);
        options->distance_zero = options->distance == -1;
        options->distance = options->distance_zero ? 0 : options->distance;
        break;
    case SETTING_BITS: *(unsigned *)(void *)at = (unsigned)strtoul(value, &end, 10); break;
    case SETTING_COUNT: *(uint64_t *)(void *)at = strtoull(value, &end, 10); break;
    case SETTING_REAL: *(double *)(void *)at = parse_real(value, &end); break;
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

/* ---- presets ---- */

typedef struct preset {
    const char *name;
    const char *recipe, *classic; /* near by similarity, and by distance */
    doppel_switch titles, title_veto;
    uint64_t sample, ttl;
} preset; /* except `classic` and `titles`, for near by similarity */

/* 192 hashes of 2 bytes, so that a page takes less than 1 KB in all (docs/ENGINE.md). */
enum { CRAWL_SAMPLE = 192, LEAST_SAMPLE = 16, MOST_SAMPLE = 4096 };

/* Pairs of words: as tolerant as single words, and as precise as 5-word shingles (docs/ACCURACY.md). */
#define ARTICLE_RECIPE "simhash64:words=2:hash=fast:weight=tf:first=5000"

static const preset presets[] = {
    {"general", "page", "page", DOPPEL_SWITCH_ON, DOPPEL_SWITCH_ON, DOPPEL_SAMPLE_ALL, DOPPEL_NEVER},
    {"crawl", "page", "page", DOPPEL_SWITCH_OFF, DOPPEL_SWITCH_ON, CRAWL_SAMPLE, 30 * 86400},
    {"article", ARTICLE_RECIPE, "article", DOPPEL_SWITCH_ON, DOPPEL_SWITCH_OFF, DOPPEL_SAMPLE_ALL, DOPPEL_NEVER},
};

/* The default of a shared store: 30 days. */
enum { SHARED_TTL = 30 * 86400 };

/* All presets are near by similarity, unless a distance is named. */
static doppel_near_by near_of(const doppel_engine_options *o) {
    if (o->near)
        return o->near;
    return (o->distance || o->distance_zero) && !(o->similarity > 0) ? DOPPEL_NEAR_DISTANCE : DOPPEL_NEAR_SIMILARITY;
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
        return dp_fail(error, DOPPEL_ERROR_USAGE, "unknown preset `%s`; the presets are general, crawl and article",
                       o->preset);
    if (o->near > DOPPEL_NEAR_SIMILARITY || o->titles > DOPPEL_SWITCH_OFF || o->keep_text > DOPPEL_SWITCH_OFF ||
        o->title_veto > DOPPEL_SWITCH_OFF || o->on_duplicate > DOPPEL_DUPLICATE_STORE ||
        o->on_same_url > DOPPEL_SAME_URL_REFRESH || o->durability > DOPPEL_DURABLE_EACH ||
        o->content > DOPPEL_CONTENT_ALL)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "an engine option has a value that does not exist");
    if (!(o->similarity >= 0 && o->similarity <= 1) || !(o->title_similarity >= 0 && o->title_similarity <= 1) ||
        !(o->title_share >= 0 && o->title_share <= 1))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a similarity or share is a number from 0 to 1");
    if (o->distance < 0)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a distance of %d bits: it is at least 0", o->distance);
    return DOPPEL_OK;
}

/* Longer than setting a clock by the network after a boot takes, and short enough not to matter. */
enum { CLOCK_SETTLE = 3600 };

static void fill_defaults(doppel_engine_options *o, const preset *p) {
    o->similarity = o->similarity > 0 ? o->similarity : 0.8;
    o->distance = o->distance_zero ? 0 : o->distance ? o->distance : 3;
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

/* Copies the names of the fields: the caller's may be freed. */
static doppel_status own_fields(doppel_engine *engine, const char *fields, doppel_error *error) {
    if (strchr(fields, '\n'))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a field's name with a line break");
    if (strlen(fields) >= FIELDS)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "the names of fields have %zu bytes; at most %d are allowed",
                       strlen(fields), FIELDS - 1);
    free(engine->fields_text);
    engine->options.fields = engine->fields_text = strdup(fields);
    return engine->fields_text ? DOPPEL_OK : dp_no_memory(error);
}

/* The names of the fields, cut out of a copy. */
static doppel_status cut_fields(doppel_engine *engine, const char *fields, doppel_error *error) {
    free(engine->fields_copy);
    if (!(engine->fields_copy = strdup(fields)))
        return dp_no_memory(error);
    engine->sketching.field_count = 0;
    char *rest = engine->fields_copy;
    for (char *name; (name = strsep(&rest, ",")) != NULL;) {
        if (!*name)
            continue;
        if (engine->sketching.field_count == sizeof engine->field_names / sizeof *engine->field_names)
            return dp_fail(error, DOPPEL_ERROR_USAGE, "more than 16 fields: `%s`", fields);
        engine->field_names[engine->sketching.field_count++] = name;
    }
    engine->sketching.fields = engine->field_names;
    return DOPPEL_OK;
}

/* Fills in what the other files of the engine use. */
static doppel_status derive(doppel_engine *engine, doppel_error *error) {
    const doppel_engine_options *o = &engine->options;
    int bits = doppel_recipe_bits(o->recipe);
    dp_query_settings *a = &engine->sketching;
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
                               .distance = o->distance,
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
    char value[SETTING_VALUE];
    to->size = 0;
    bool added =
        dp_buffer_printf(to, "preset=%s\nrecipe=%s\nunicode=%s\nfields=%s\n", engine->preset,
                         doppel_recipe_text(engine->options.recipe), doppel_unicode_version(), engine->options.fields);
    for (size_t i = 0; i < SETTINGS && added; i++) {
        print_setting(&settings[i], &engine->options, value);
        if (!settings[i].absent || strcmp(settings[i].absent, value) != 0)
            added = dp_buffer_printf(to, "%s=%s\n", settings[i].name, value);
    }
    return added && dp_buffer_add(to, "", 1) ? DOPPEL_OK : dp_no_memory(error);
}

/* Fills engine->options, sketching and rules from what was given for the index at a path. */
static doppel_status set_up(doppel_engine *engine, const char *path, const doppel_engine_options *given,
                            doppel_error *error) {
    engine->options = *given;
    doppel_recipe_free(engine->own_recipe);
    engine->own_recipe = NULL;
    DP_TRY(check_given(given, error));
    /* A shared store defaults to the preset crawl. */
    bool shared = dp_known_is_shared_path(path);
    const preset *p = find_preset(given->preset ? given->preset : shared ? "crawl" : "general");
    engine->options.near = near_of(given);
    snprintf(engine->preset, sizeof engine->preset, "%s", p->name);
    if (shared && !given->ttl)
        engine->options.ttl = SHARED_TTL;
    fill_defaults(&engine->options, p);
    engine->options.preset = engine->preset;
    DP_TRY(own_fields(engine, engine->options.fields, error));
    DP_TRY(own_recipe(engine, engine->options.near == DOPPEL_NEAR_DISTANCE ? p->classic : p->recipe, error));
    DP_TRY(derive(engine, error));
    return write_settings(engine, error);
}

/* ---- an existing folder ---- */

static doppel_status refuse(doppel_engine *engine, const char *name, const char *has, const char *given,
                            doppel_error *error) {
    engine->given_differs = true;
    return dp_fail(
        error, DOPPEL_ERROR_STORE,
        "the index was made with %s %s and cannot be used with %s %s: give the same or nothing, or make another index",
        name, has, name, given);
}

static doppel_status agree_on_texts(doppel_engine *engine, const doppel_engine_options *given, const char *text,
                                    char **recipe, doppel_error *error) {
    char name[SETTING_VALUE], fields[FIELDS], unicode[SETTING_VALUE];
    size_t room = strlen(text) + 1;
    if (!(*recipe = malloc(room)))
        return dp_no_memory(error);
    if (!find_line(text, "preset", name, sizeof name) || !find_preset(name) ||
        !find_line(text, "recipe", *recipe, room) || !find_line(text, "fields", fields, sizeof fields) ||
        !find_line(text, "unicode", unicode, sizeof unicode))
        return dp_fail(error, DOPPEL_ERROR_STORE, "the settings of the index cannot be read");
    if (given->preset && strcmp(given->preset, name) != 0)
        return refuse(engine, "preset", name, given->preset, error);
    if (given->recipe && strcmp(doppel_recipe_text(given->recipe), *recipe) != 0)
        return refuse(engine, "recipe", *recipe, doppel_recipe_text(given->recipe), error);
    if (given->fields && strcmp(given->fields, fields) != 0)
        return refuse(engine, "fields", fields, given->fields, error);
    if (strcmp(unicode, doppel_unicode_version()) != 0)
        dp_log_line(engine, DOPPEL_LOG_WARNING, "OPEN_WARNING",
                    "the index was made with Unicode %s, this is %s: words may be cut otherwise", unicode,
                    doppel_unicode_version());
    snprintf(engine->preset, sizeof engine->preset, "%s", name);
    engine->options.preset = engine->preset;
    return own_fields(engine, fields, error);
}

static doppel_status agree_on(doppel_engine *engine, const setting *s, const char *text, doppel_error *error) {
    doppel_engine_options *options = &engine->options;
    char has[SETTING_VALUE], says[SETTING_VALUE];
    bool there = find_line(text, s->name, has, sizeof has);
    if (!there && s->absent)
        there = snprintf(has, sizeof has, "%s", s->absent) > 0;
    if (!there || !parse_setting(s, has, options))
        return dp_fail(error, DOPPEL_ERROR_STORE, "the settings of the index cannot be read: %s", s->name);
    if (!is_given(s, engine->given))
        return DOPPEL_OK;
    print_setting(s, engine->given, says);
    bool differs = strcmp(has, says) != 0;
    if (s->fixed && differs)
        return refuse(engine, s->name, has, says, error);
    engine->given_differs = engine->given_differs || differs;
    parse_setting(s, says, options);
    return DOPPEL_OK;
}

/* The same against the settings of an existing one: refuses what does not fit. */
static doppel_status agree_with(doppel_engine *engine, const doppel_engine_options *given, const char *text,
                                doppel_error *error) {
    char *recipe = NULL;
    if (!strcmp(text, engine->settings.data))
        return DOPPEL_OK;
    doppel_status status = agree_on_texts(engine, given, text, &recipe, error);
    for (size_t i = 0; i < SETTINGS && status == DOPPEL_OK; i++)
        status = agree_on(engine, &settings[i], text, error);
    if (status == DOPPEL_OK) {
        doppel_recipe_free(engine->own_recipe);
        engine->own_recipe = NULL;
        engine->options.recipe = given->recipe;
        status = own_recipe(engine, recipe, error);
    }
    DP_THEN(status, derive(engine, error));
    free(recipe);
    return status == DOPPEL_OK ? write_settings(engine, error) : status;
}

/* ---- workers ---- */

static void worker_free(dp_worker *worker) {
    if (!worker)
        return;
    dp_query_maker_free(worker->maker);
    dp_look_free(worker->look);
    doppel_matches_free(&worker->near);
    free(worker->title_hits.hit);
    dp_numbers_free(&worker->keyed);
    dp_numbers_free(&worker->banded);
    dp_buffer_free(&worker->packed);
    for (int i = 0; i < DP_PARTS; i++)
        dp_buffer_free(&worker->bytes[i]);
    free(worker->set);
    free(worker);
}

static doppel_status worker_create(doppel_engine *engine, dp_worker **worker, doppel_error *error) {
    dp_worker *made = calloc(1, sizeof *made);
    *worker = NULL;
    if (!made)
        return dp_no_memory(error);
    made->engine = engine;
    doppel_status status = dp_query_maker_create(&engine->sketching, &made->maker, error);
    DP_THEN(status, dp_look_create(engine->known, &made->look, error));
    if (status == DOPPEL_OK)
        *worker = made;
    else
        worker_free(made);
    return status;
}

doppel_status dp_worker_take(doppel_engine *engine, dp_worker **worker, doppel_error *error) {
    pthread_mutex_lock(&engine->pool_lock);
    *worker = engine->pool;
    if (*worker)
        engine->pool = (*worker)->next;
    pthread_mutex_unlock(&engine->pool_lock);
    return *worker ? DOPPEL_OK : worker_create(engine, worker, error);
}

void dp_worker_give(dp_worker *worker) {
    doppel_engine *engine = worker->engine;
    pthread_mutex_lock(&engine->pool_lock);
    worker->next = engine->pool;
    engine->pool = worker;
    pthread_mutex_unlock(&engine->pool_lock);
}

doppel_status dp_worker_begin(doppel_engine *engine, dp_purpose purpose, dp_worker **worker, doppel_error *error) {
    DP_TRY(dp_worker_take(engine, worker, error));
    doppel_status status = dp_look_begin((*worker)->look, purpose, error);
    if (status != DOPPEL_OK)
        dp_worker_give(*worker);
    return status;
}

void dp_worker_end(dp_worker *worker) {
    (void)worker->look->kind->end(worker->look, NULL);
    dp_worker_give(worker);
}

/* ---- opening and closing ---- */

static void on_log(doppel_log_level level, const char *event, const char *line, void *user) {
    dp_log_line(user, level, event, "%s", line);
}

/* An existing index has its own settings. One in which nothing was ever stored gets what is given: in place of its own
 * settings if these refuse it, else with them. */
static doppel_status agree(const char *text, const char **instead, dp_rules *rules, void *user, doppel_error *error) {
    doppel_engine *engine = user;
    doppel_error why = {0};
    doppel_status status = agree_with(engine, engine->given, text, &why);
    if (instead && engine->given_differs && status != DOPPEL_OK) {
        why = (doppel_error){0};
        status = set_up(engine, engine->path, engine->given, &why);
    }
    if (instead && engine->given_differs && status == DOPPEL_OK)
        *instead = engine->settings.data;
    if (status != DOPPEL_OK && error)
        *error = why;
    *rules = engine->rules;
    return status;
}

static doppel_status open_known(doppel_engine *engine, const char *path, doppel_error *error) {
    const doppel_engine_options *given = engine->given, *o = &engine->options;
    const dp_known_options options = {.read_only = given->read_only,
                                      .must_exist = given->must_exist || given->read_only,
                                      .group_readable = given->group_readable,
                                      .salvage = o->salvage,
                                      .map = given->map,
                                      .count = o->count,
                                      .memory = o->memory,
                                      .threads = o->threads,
                                      .durability = o->durability,
                                      .clock_settle = o->clock_settle,
                                      .settings = engine->settings.data,
                                      .rules = engine->rules,
                                      .now = o->now,
                                      .now_user = o->user,
                                      .agree = agree,
                                      .log = on_log,
                                      .user = engine,
                                      .counters = &engine->counters.known};
    return dp_known_open(path, &options, &engine->known, error);
}

doppel_status doppel_engine_open(const char *path, const doppel_engine_options *options, doppel_engine **engine,
                                 doppel_error *error) {
    double began = dp_seconds();
    doppel_engine_options given = {.size = sizeof given};
    if (options)
        dp_copy_options(&given, options, sizeof given);
    *engine = NULL;
    if (!path && given.read_only)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "an engine in memory cannot be read-only: it starts empty");
    doppel_engine *made = calloc(1, sizeof *made);
    if (!made)
        return dp_no_memory(error);
    pthread_mutex_init(&made->pool_lock, NULL);
    made->filter_above = DP_FILTER_ABOVE;
    made->given = &given;
    made->path = path;
    doppel_status status = set_up(made, path, &given, error);
    DP_THEN(status, open_known(made, path, error));
    DP_THEN(status, worker_create(made, &made->pool, error));
    made->given = NULL;
    made->path = NULL;
    made->open_seconds = dp_seconds() - began;
    if (status == DOPPEL_OK)
        *engine = made;
    else
        doppel_engine_close(made);
    return status;
}

void doppel_engine_close(doppel_engine *engine) {
    if (!engine)
        return;
    for (dp_worker *worker = engine->pool, *next; worker; worker = next) {
        next = worker->next;
        worker_free(worker);
    }
    dp_known_close(engine->known);
    doppel_recipe_free(engine->own_recipe);
    dp_buffer_free(&engine->settings);
    pthread_mutex_destroy(&engine->pool_lock);
    free(engine->fields_text);
    free(engine->fields_copy);
    free(engine);
}

void doppel_engine_stop_waiting(doppel_engine *engine) {
    if (engine)
        engine->known->kind->stop_waiting(engine->known);
}

const doppel_engine_options *doppel_engine_get_options(const doppel_engine *engine) {
    return &engine->options;
}

/* ---- what an engine needs of its process and machine ---- */

doppel_status doppel_engine_get_needs(const char *path, doppel_engine_needs *needs, doppel_error *error) {
    *needs = (doppel_engine_needs){0};
    if (path && !*path)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "the path of the index is empty");
    needs->connects = path && dp_known_is_shared_path(path);
    needs->folder = path && !needs->connects;
    needs->one_writer = !needs->connects;
    return DOPPEL_OK;
}
