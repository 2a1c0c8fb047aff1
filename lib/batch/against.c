/* against.c - index folders of the engine that a batch is compared with: whether they go with it, opened to be read.
 *
 * An index finds what is at least as similar (or as near) as it was made for, so it must have been made for no more
 * than the batch asks. One that goes by distance keeps no features: its own distance counts for `auto`. */
#include "batch/against.h"
#include "sketch/sketch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

bool dp_is_index(const char *path) {
    char name[4096];
    struct stat found;
    int length = snprintf(name, sizeof name, "%s/doppel.index", path);
    return length > 0 && (size_t)length < sizeof name && !stat(name, &found) && S_ISREG(found.st_mode);
}

/* ---- what does not go together ---- */

/* "the index was made with similarity 0.9, and this run asks for 0.8" */
static doppel_status differ(const char *path, const char *what, double has, double asked, doppel_error *error) {
    return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0, "the index was made with %s %g, and this run has %g", what,
                      has, asked);
}

/* What no index can tell. */
static doppel_status check_batch(const doppel_batch *batch, const char *path, doppel_error *error) {
    const doppel_batch_options *o = &batch->options;
    const char *what = o->within            ? "within"
                       : o->across          ? "across"
                       : o->link_any        ? "chains (link any)"
                       : o->boilerplate > 0 ? "boilerplate"
                                            : NULL;
    if (!what)
        return DOPPEL_OK;
    return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                      "%s cannot be asked for against an index: leave it out, or give the documents themselves", what);
}

static doppel_status check_content(const doppel_batch *batch, const doppel_engine *engine, const char *path,
                                   doppel_error *error) {
    const doppel_batch_options *o = &batch->options;
    const dp_rules *rules = &engine->rules;
    if (!(batch->by & DOPPEL_BY_CONTENT) || o->method == DOPPEL_METHOD_EXACT)
        return DOPPEL_OK;
    if (o->min_words != engine->options.min_words)
        return differ(path, "min_words", (double)engine->options.min_words, (double)o->min_words, error);
    if (rules->by_similarity && o->method == DOPPEL_METHOD_SIMHASH)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "the index finds by similarity, not by distance: use another method than simhash");
    if (rules->by_similarity && o->similarity < rules->similarity)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "the index finds similarities of %g and more, and this run asks for %g: ask for no less",
                          rules->similarity, o->similarity);
    if (!rules->by_similarity && o->method == DOPPEL_METHOD_SIMHASH && batch->distance > rules->distance)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "the index finds distances of up to %d, and this run asks for %d: ask for no more",
                          rules->distance, batch->distance);
    return DOPPEL_OK;
}

static doppel_status check_names(const doppel_batch *batch, const doppel_engine *engine, const char *path,
                                 doppel_error *error) {
    static const char *const content[] = {"main", "all"};
    const doppel_batch_options *o = &batch->options;
    if (o->content != engine->options.content)
        return dp_fail_at(
            error, DOPPEL_ERROR_USAGE, path, 0, "the index was made with content %s of pages, and this run has %s",
            content[engine->options.content == DOPPEL_CONTENT_ALL], content[o->content == DOPPEL_CONTENT_ALL]);
    if (batch->by & DOPPEL_BY_URL && o->url_without != engine->options.url_without)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "the index was made with other rules of URLs left out (%#x) than this run has (%#x)",
                          engine->options.url_without, o->url_without);
    if (!(batch->by & DOPPEL_BY_TITLE))
        return DOPPEL_OK;
    if (!engine->rules.titles)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0, "the index does not go by titles: leave them out");
    if (engine->rules.title_similarity > DP_TITLE_SIMILARITY)
        return differ(path, "title_similarity", engine->rules.title_similarity, DP_TITLE_SIMILARITY, error);
    return DOPPEL_OK;
}

/* ---- opening ---- */

/* doppel_engine_options.log: keeps the first line, for whoever may tell it. */
static void on_line(doppel_log_level level, const char *line, void *user) {
    dp_against *against = user;
    (void)level;
    pthread_mutex_lock(&against->lock);
    if (!against->complaint[0])
        snprintf(against->complaint, sizeof against->complaint, "%s", line);
    pthread_mutex_unlock(&against->lock);
}

/* Gives the line to the caller, as what is left out of an input is told. */
static void tell_complaint(const doppel_batch *batch, const char *path) {
    dp_against *against = batch->against;
    doppel_error what;
    if (!against->complaint[0])
        return;
    dp_fail_at(&what, DOPPEL_ERROR_STORE, path, 0, "%s", against->complaint);
    against->complaint[0] = 0;
    if (batch->input.bad)
        batch->input.bad(&what, batch->input.user);
}

static doppel_status open_engine(const doppel_batch *batch, const char *path, doppel_engine **engine,
                                 doppel_error *error) {
    doppel_error why = {0};
    const doppel_engine_options options = {.size = sizeof options,
                                           .recipe =
                                               batch->options.recipe ? batch->options.recipe : dp_recipe_default(),
                                           .read_only = true,
                                           .must_exist = true,
                                           .threads = batch->input.threads,
                                           .log = on_line,
                                           .log_level = DOPPEL_LOG_WARNING,
                                           .user = batch->against};
    doppel_status status = doppel_engine_open(path, &options, engine, &why);
    if (status == DOPPEL_OK)
        return DOPPEL_OK;
    return dp_fail_at(error, status, why.file[0] ? why.file : path, why.line, "%s", why.message);
}

static doppel_status open_folder(doppel_batch *batch, const char *path, doppel_error *error) {
    dp_against *a = batch->against;
    for (size_t i = 0; i < a->count; i++)
        if (!strcmp(a->folder[i].path, path))
            return DOPPEL_OK;
    doppel_status status = check_batch(batch, path, error);
    if (status != DOPPEL_OK)
        return status;
    if (!dp_reserve(&a->folder, &a->room, a->count + 1, sizeof *a->folder))
        return dp_no_memory(error);
    dp_index_folder *f = &a->folder[a->count];
    *f = (dp_index_folder){.path = strdup(path)};
    if (!f->path)
        return dp_no_memory(error);
    a->count++;
    status = open_engine(batch, path, &f->engine, error);
    tell_complaint(batch, path);
    if (status == DOPPEL_OK)
        status = check_names(batch, f->engine, path, error);
    return status == DOPPEL_OK ? check_content(batch, f->engine, path, error) : status;
}

static doppel_status open_reading(doppel_batch *batch, const dp_reading *reading, doppel_error *error) {
    uint64_t found = 0;
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < reading->count && status == DOPPEL_OK; i++)
        if (dp_is_index(reading->paths[i])) {
            found++;
            status = open_folder(batch, reading->paths[i], error);
        }
    if (status == DOPPEL_OK && found != reading->indexes)
        status = dp_fail_at(error, DOPPEL_ERROR_STORE, reading->paths[0], 0,
                            "the run was begun against an index that is not there any more");
    return status;
}

doppel_status dp_against_open(doppel_batch *batch, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i <= batch->reading_at && i < batch->reading_count && status == DOPPEL_OK; i++) {
        const dp_reading *reading = &batch->readings[i];
        if (!reading->indexes)
            continue;
        if (!batch->against) {
            if (!(batch->against = calloc(1, sizeof *batch->against)))
                return dp_no_memory(error);
            pthread_mutex_init(&batch->against->lock, NULL);
        }
        status = open_reading(batch, reading, error);
    }
    return status;
}

void dp_against_close(dp_against *against) {
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
        tell_complaint(batch, against->folder[0].path);
    if (status != DOPPEL_OK && against->failed.code == status && error)
        *error = against->failed;
    against->failed = (doppel_error){0};
}
