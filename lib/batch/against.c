/* against.c - index folders of the engine that a batch is compared with: opened, if they are compatible with the batch;
 * queried for each document; their answers, kept.
 *
 * An index finds documents at or above the similarity (or within the distance) it was made for, so that must be no
 * stricter than the batch's. An index by distance keeps no features: with `auto` its own distance counts, and only
 * identical words are verified. */
#include "batch/batch.h"
#include "engine/engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct index_folder {
    char *path;
    doppel_engine *engine;
} index_folder;

struct dp_against {
    index_folder *folder;
    size_t count, room;
    pthread_mutex_t lock; /* of what follows */
    doppel_error failed;  /* what ended a search */
    char log_line[512];   /* the first line of the log since one was reported; empty: none */
};

bool dp_is_index(const char *path) {
    char name[4096];
    struct stat found;
    int length = snprintf(name, sizeof name, "%s/doppel.index", path);
    return length > 0 && (size_t)length < sizeof name && !stat(name, &found) && S_ISREG(found.st_mode);
}

/* ---- queries, with the sketches that the batch has made ---- */

/* The rules of the batch; an index by distance has its own, unless the batch goes by distance. */
static dp_rules rules_for(const dp_batch_settings *s, const doppel_engine *engine) {
    dp_rules rules = dp_settings_rules(s);
    rules.by_similarity = dp_engine_rules(engine)->by_similarity;
    if (s->options.method != DOPPEL_METHOD_SIMHASH)
        rules.distance = dp_engine_rules(engine)->distance;
    return rules;
}

static doppel_status ask(const dp_batch_settings *s, doppel_engine *engine, const dp_asked *asked,
                         doppel_verdict *verdict, doppel_error *error) {
    const doppel_sketch *sketch = asked->sketch;
    const dp_engine_document document = {.url = asked->url,
                                         .title = asked->title,
                                         .sketch = sketch,
                                         .near = sketch && s->options.method != DOPPEL_METHOD_EXACT && sketch->words &&
                                                 sketch->words >= s->options.min_words,
                                         .rules = rules_for(s, engine)};
    return dp_engine_check_sketched(engine, &document, verdict, error);
}

static void set_match(const doppel_engine *engine, const doppel_verdict *verdict, dp_index_match *match) {
    const doppel_evidence *e = &verdict->evidence;
    doppel_reason reason = verdict->reason;
    double similarity = dp_decide_similarity(reason, e);
    match->id_length = (uint32_t)verdict->original_id.length;
    match->similarity = similarity >= 0 ? (float)similarity : -1;
    match->distance = (int16_t)e->distance;
    match->verified = e->verified || (dp_engine_rules(engine)->by_similarity &&
                                      doppel_engine_get_options(engine)->sample == DOPPEL_SAMPLE_ALL);
    match->kind = dp_match_kind(reason, e->same_digest);
}

static void keep_failure(dp_against *against, const char *path, doppel_status status, const doppel_error *why) {
    pthread_mutex_lock(&against->lock);
    if (against->failed.code == DOPPEL_OK)
        dp_fail_at(&against->failed, status, why->file[0] ? why->file : path, why->line, "%s", why->message);
    pthread_mutex_unlock(&against->lock);
}

doppel_status dp_against_find(const doppel_batch *batch, const dp_asked *asked, doppel_verdict *verdict,
                              dp_index_match *match) {
    dp_against *against = batch->against;
    doppel_error why = {0};
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < against->count && status == DOPPEL_OK && !match->id_length; i++) {
        const index_folder *folder = &against->folder[i];
        status = ask(&batch->settings, folder->engine, asked, verdict, &why);
        if (status != DOPPEL_OK)
            keep_failure(against, folder->path, status, &why);
        else if (verdict->is_duplicate)
            set_match(folder->engine, verdict, match);
    }
    return status;
}

/* ---- incompatible settings ---- */

/* "the index was made with similarity 0.9, and this run asks for 0.8" */
static doppel_status differ(const char *path, const char *what, double has, double asked, doppel_error *error) {
    return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0, "the index was made with %s %g, and this run has %g", what,
                      has, asked);
}

/* Options that no index supports. */
static doppel_status check_options(const doppel_batch_options *o, const char *path, doppel_error *error) {
    const char *what = o->within               ? "within"
                       : o->across             ? "across"
                       : o->link_any           ? "chains (link any)"
                       : o->boilerplate > 0    ? "boilerplate"
                       : o->only_contained > 0 ? "only_contained"
                                               : NULL;
    if (!what)
        return DOPPEL_OK;
    return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                      "%s cannot be combined with an index: leave it out, or give the documents themselves", what);
}

static doppel_status check_content(const dp_batch_settings *s, const doppel_engine *engine, const char *path,
                                   doppel_error *error) {
    const doppel_batch_options *o = &s->options;
    const dp_rules *rules = dp_engine_rules(engine);
    uint64_t min_words = doppel_engine_get_options(engine)->min_words;
    if (!(s->by & DOPPEL_BY_CONTENT) || o->method == DOPPEL_METHOD_EXACT)
        return DOPPEL_OK;
    if (o->min_words != min_words)
        return differ(path, "min_words", (double)min_words, (double)o->min_words, error);
    if (rules->by_similarity && o->method == DOPPEL_METHOD_SIMHASH)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "the index finds by similarity, not by distance: use a method other than simhash");
    if (rules->by_similarity && o->similarity < rules->similarity)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "the index finds similarities of at least %g, and this run asks for %g: raise it to that",
                          rules->similarity, o->similarity);
    if (!rules->by_similarity && o->method == DOPPEL_METHOD_SIMHASH && s->distance > rules->distance)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "the index finds distances of up to %d, and this run asks for %d: lower it to that",
                          rules->distance, s->distance);
    return DOPPEL_OK;
}

static doppel_status check_names(const dp_batch_settings *s, const doppel_engine *engine, const char *path,
                                 doppel_error *error) {
    static const char *const content[] = {"main", "all"};
    const doppel_batch_options *o = &s->options;
    const doppel_engine_options *has = doppel_engine_get_options(engine);
    const dp_rules *rules = dp_engine_rules(engine);
    if (o->content != has->content)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "the index was made with content %s of pages, and this run has %s",
                          content[has->content == DOPPEL_CONTENT_ALL], content[o->content == DOPPEL_CONTENT_ALL]);
    if (s->by & DOPPEL_BY_URL && o->url_without != has->url_without)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "the index was made without the URL rules %#x, and this run without %#x", has->url_without,
                          o->url_without);
    if (!(s->by & DOPPEL_BY_TITLE))
        return DOPPEL_OK;
    if (!rules->titles)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0, "the index does not compare titles: leave them out");
    if (rules->title_similarity > DP_TITLE_SIMILARITY)
        return differ(path, "title_similarity", rules->title_similarity, DP_TITLE_SIMILARITY, error);
    return DOPPEL_OK;
}

/* ---- opening ---- */

/* doppel_engine_options.log: keeps the first line. */
static void on_line(doppel_log_level level, const char *line, void *user) {
    dp_against *against = user;
    (void)level;
    pthread_mutex_lock(&against->lock);
    if (!against->log_line[0])
        snprintf(against->log_line, sizeof against->log_line, "%s", line);
    pthread_mutex_unlock(&against->lock);
}

/* Reports the line to the caller, as what is left out of an input is reported. */
static void report_line(const doppel_batch *batch, const char *path) {
    const doppel_input_options *input = &batch->settings.input;
    dp_against *against = batch->against;
    doppel_error what;
    if (!against->log_line[0])
        return;
    dp_fail_at(&what, DOPPEL_ERROR_STORE, path, 0, "%s", against->log_line);
    against->log_line[0] = 0;
    if (input->bad)
        input->bad(&what, input->user);
}

static doppel_status open_engine(const doppel_batch *batch, const char *path, doppel_engine **engine,
                                 doppel_error *error) {
    doppel_error why = {0};
    const doppel_engine_options options = {.size = sizeof options,
                                           .recipe = batch->settings.recipe,
                                           .read_only = true,
                                           .must_exist = true,
                                           .threads = batch->settings.input.threads,
                                           .log = on_line,
                                           .log_level = DOPPEL_LOG_WARNING,
                                           .user = batch->against};
    doppel_status status = doppel_engine_open(path, &options, engine, &why);
    report_line(batch, path);
    if (status == DOPPEL_OK)
        return DOPPEL_OK;
    return dp_fail_at(error, status, why.file[0] ? why.file : path, why.line, "%s", why.message);
}

static doppel_status open_folder(doppel_batch *batch, const char *path, doppel_error *error) {
    const dp_batch_settings *s = &batch->settings;
    dp_against *a = batch->against;
    for (size_t i = 0; i < a->count; i++)
        if (!strcmp(a->folder[i].path, path))
            return DOPPEL_OK;
    DP_TRY(check_options(&s->options, path, error));
    if (!dp_reserve(&a->folder, &a->room, a->count + 1, sizeof *a->folder))
        return dp_no_memory(error);
    index_folder *folder = &a->folder[a->count];
    *folder = (index_folder){.path = strdup(path)};
    if (!folder->path)
        return dp_no_memory(error);
    a->count++;
    DP_TRY(open_engine(batch, path, &folder->engine, error));
    DP_TRY(check_names(s, folder->engine, path, error));
    return check_content(s, folder->engine, path, error);
}

static doppel_status open_reading(doppel_batch *batch, const dp_reading *reading, doppel_error *error) {
    uint64_t found = 0;
    for (size_t i = 0; i < reading->count; i++)
        if (dp_is_index(reading->paths[i])) {
            found++;
            DP_TRY(open_folder(batch, reading->paths[i], error));
        }
    if (found != reading->indexes)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, reading->paths[0], 0,
                          "the run was started against an index that no longer exists");
    return DOPPEL_OK;
}

doppel_status dp_against_open(doppel_batch *batch, doppel_error *error) {
    const dp_readings *readings = &batch->readings;
    for (size_t i = 0; i <= readings->at && i < readings->count; i++) {
        const dp_reading *reading = &readings->reading[i];
        if (!reading->indexes)
            continue;
        if (!batch->against) {
            if (!(batch->against = calloc(1, sizeof *batch->against)))
                return dp_no_memory(error);
            pthread_mutex_init(&batch->against->lock, NULL);
        }
        DP_TRY(open_reading(batch, reading, error));
    }
    return DOPPEL_OK;
}

void dp_against_close(doppel_batch *batch) {
    dp_against *against = batch->against;
    free(batch->matches.document);
    free(batch->matches.original);
    dp_hashmap_free(&batch->matches.numbers);
    if (!against)
        return;
    for (size_t i = 0; i < against->count; i++) {
        doppel_engine_close(against->folder[i].engine);
        free(against->folder[i].path);
    }
    pthread_mutex_destroy(&against->lock);
    free(against->folder);
    free(against);
}

void dp_against_end(const doppel_batch *batch, doppel_status status, doppel_error *error) {
    dp_against *against = batch->against;
    if (!against)
        return;
    if (against->count)
        report_line(batch, against->folder[0].path);
    if (status != DOPPEL_OK && against->failed.code == status && error)
        *error = against->failed;
    against->failed = (doppel_error){0};
}
