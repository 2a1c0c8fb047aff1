/* results.c - search results folded: an in-memory engine gets them one after the other, each identified by its
 * position, and names the position that a near-copy folds under. */
#include "decide/decide.h"

#include <stdio.h>

/* The place of a result, as the engine knows it. */
typedef struct result_place {
    char text[24];
    size_t length;
} result_place;

static result_place place_of(size_t number) {
    result_place p;
    p.length = (size_t)snprintf(p.text, sizeof p.text, "%zu", number);
    return p;
}

/* The place that an id of the engine stands for. */
static size_t number_of(doppel_slice id) {
    size_t number = 0;
    for (size_t i = 0; i < id.length; i++)
        number = number * 10 + (size_t)(id.data[i] - '0');
    return number;
}

/* What the caller calls a result: its id, else its URL, else its place. */
static doppel_slice name_of(const doppel_item *result, const result_place *at) {
    const doppel_document *d = &result->document;
    if (d->id.data && d->id.length)
        return d->id;
    if (d->url.data && d->url.length)
        return d->url;
    return (doppel_slice){at->text, at->length};
}

/* The caller's options, except those that would let a result disappear or replace another. */
static doppel_engine_options folding_options(const doppel_engine_options *given, size_t count) {
    doppel_engine_options options = {0};
    if (given)
        dp_copy_options(&options, given, sizeof options);
    options.size = sizeof options;
    options.on_duplicate = DOPPEL_DUPLICATE_SKIP;
    options.on_same_url = DOPPEL_SAME_URL_DUPLICATE;
    options.ttl = DOPPEL_NEVER;
    options.read_only = options.must_exist = false;
    options.count = count;
    return options;
}

/* What is folded. */
typedef struct folding {
    const doppel_item *results;
    size_t *fold;
    doppel_engine *engine;
    doppel_error *error;
} folding;

/* Says which result was at fault. */
static doppel_status blame(doppel_error *error, doppel_status status, size_t i) {
    if (!error || status == DOPPEL_ERROR_MEMORY)
        return status;
    doppel_error cause = *error;
    return dp_fail_at(error, status, cause.file, cause.line, "result %zu: %.460s", i, cause.message);
}

/* Adds result `i` to the engine, and records where it folds. */
static doppel_status fold_one(const folding *f, size_t i, doppel_verdict *verdict) {
    doppel_item item = {0};
    result_place at = place_of(i);
    dp_copy_options(&item, &f->results[i], sizeof item);
    item.document.id.data = at.text;
    item.document.id.length = at.length;
    item.ttl = DOPPEL_NEVER;
    doppel_status status = doppel_engine_add(f->engine, &item, verdict, f->error);
    if (status != DOPPEL_OK)
        return blame(f->error, status, i);
    f->fold[i] = verdict->is_duplicate ? number_of(verdict->original_id) : i;
    return DOPPEL_OK;
}

/* Puts the caller's names instead of the engine's. */
static doppel_status name_verdict(const folding *f, size_t i, doppel_verdict *verdict) {
    result_place own = place_of(i), other = place_of(f->fold[i]);
    doppel_slice ids[] = {name_of(&f->results[i], &own), {NULL, 0}};
    if (f->fold[i] != i)
        ids[1] = name_of(&f->results[f->fold[i]], &other);
    return dp_verdict_name(verdict, ids) == DOPPEL_OK ? DOPPEL_OK : dp_no_memory(f->error);
}

doppel_status doppel_dedupe_results(const doppel_item *results, size_t count, const doppel_engine_options *options,
                                    size_t *fold, doppel_verdict *verdicts, doppel_error *error) {
    doppel_engine_options used = folding_options(options, count);
    folding f = {.results = results, .fold = fold, .error = error};
    doppel_verdict own = {0};
    doppel_status status = doppel_engine_open(NULL, &used, &f.engine, error);
    for (size_t i = 0; i < count && status == DOPPEL_OK; i++) {
        status = fold_one(&f, i, verdicts ? &verdicts[i] : &own);
        if (status == DOPPEL_OK && verdicts)
            status = name_verdict(&f, i, &verdicts[i]);
    }
    doppel_verdict_free(&own);
    doppel_engine_close(f.engine);
    return status;
}
