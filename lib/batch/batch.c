/* batch.c - a batch as a whole: create, free, what was decided, figures. read.c comes next. */
#include "batch/batch.h"

#include <math.h>
#include <stdlib.h>

#define USUAL_SIMILARITY 0.8
#define USUAL_DISTANCE 3
#define USUAL_MIN_WORDS 5

/* ---- options ---- */

static doppel_status check_numbers(doppel_batch *batch, doppel_error *error) {
    doppel_batch_options *o = &batch->options;
    o->similarity = o->similarity == 0 ? USUAL_SIMILARITY : o->similarity;
    o->min_words = o->min_words ? o->min_words : USUAL_MIN_WORDS;
    batch->distance = o->distance = o->distance_zero ? 0 : o->distance ? o->distance : USUAL_DISTANCE;
    batch->by = o->by = o->by ? o->by : DOPPEL_BY_CONTENT;
    if (!(o->similarity > 0 && o->similarity <= 1))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "similarity %g: above 0 and up to 1 is possible", o->similarity);
    if (o->method == DOPPEL_METHOD_SIMHASH && batch->distance > batch->bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "distance %d: 0 to %d is possible with %d bits", batch->distance,
                       batch->bits, batch->bits);
    if (!(o->boilerplate >= 0 && o->boilerplate < 1))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "boilerplate %g: a share from 0 to below 1 is possible",
                       o->boilerplate);
    if (o->boilerplate > 0 && !batch->has_sets)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "boilerplate needs method auto or minhash");
    return DOPPEL_OK;
}

static doppel_status check_bands(doppel_batch *batch, doppel_error *error) {
    const doppel_batch_options *o = &batch->options;
    bool given = o->method == DOPPEL_METHOD_MINHASH || o->resume;
    int bands = given ? o->bands : 0, rows = given ? o->rows : 0;
    if (!batch->has_sets)
        return DOPPEL_OK;
    if (!dp_bands_plan(o->similarity, &bands, &rows))
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "%d bands of %d rows: up to %d bands and %d slots in all are possible", o->bands, o->rows,
                       DP_MOST_BANDS, DP_MOST_SLOTS);
    batch->stats.bands = bands;
    batch->stats.rows = rows;
    batch->stats.recall = dp_bands_recall(o->similarity, bands, rows);
    return DOPPEL_OK;
}

static doppel_status check_scope(doppel_batch *batch, doppel_error *error) {
    const doppel_batch_options *o = &batch->options;
    const char *name = o->within ? o->within : o->across;
    if (o->within && o->across)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "within and across cannot be asked for together");
    if (o->across && o->link_any)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "across and chains (link any) cannot be asked for together");
    if (!name)
        return DOPPEL_OK;
    batch->scope_kind = !strcmp(name, "host")     ? DP_SCOPE_HOST
                        : !strcmp(name, "domain") ? DP_SCOPE_DOMAIN
                                                  : DP_SCOPE_FIELD;
    if (batch->scope_kind == DP_SCOPE_FIELD &&
        (batch->scope_field = dp_fields_add(&batch->fields, name, strlen(name))) == DP_MOST_FIELDS)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "%s: the field's name is empty or too long", name);
    return DOPPEL_OK;
}

static doppel_status set_options(doppel_batch *batch, const doppel_batch_options *given, doppel_error *error) {
    doppel_batch_options *o = &batch->options;
    doppel_status status = DOPPEL_OK;
    if (given)
        dp_copy_options(o, given, sizeof *o);
    if (o->input)
        dp_copy_options(&batch->input, o->input, sizeof batch->input);
    batch->input.size = sizeof batch->input;
    batch->threads = dp_thread_count(batch->input.threads);
    batch->bits = o->recipe ? doppel_recipe_bits(o->recipe) : 64;
    batch->crowd = DP_CROWD;
    batch->has_sets = o->method == DOPPEL_METHOD_AUTO || o->method == DOPPEL_METHOD_MINHASH;
    if ((status = check_numbers(batch, error)) != DOPPEL_OK || (status = check_bands(batch, error)) != DOPPEL_OK ||
        (status = check_scope(batch, error)) != DOPPEL_OK)
        return status;
    status = o->keep ? dp_keep_parse(o->keep, &batch->keep, &batch->fields, error) : DOPPEL_OK;
    batch->input.extra_keys = batch->fields.key;
    batch->input.extra_count = batch->fields.count;
    batch->known_input = batch->input;
    if (o->known_input)
        dp_copy_options(&batch->known_input, o->known_input, sizeof batch->known_input);
    batch->known_input.size = sizeof batch->known_input;
    batch->known_input.extra_keys = batch->fields.key;
    batch->known_input.extra_count = batch->fields.count;
    o->input = &batch->input;
    o->known_input = &batch->known_input;
    return status;
}

dp_rules dp_batch_rules(const doppel_batch *batch) {
    return (dp_rules){.by_similarity = batch->has_sets,
                      .similarity = batch->options.similarity,
                      .distance = batch->distance,
                      .bits = batch->bits,
                      .titles = batch->by & DOPPEL_BY_TITLE,
                      .title_similarity = DP_TITLE_SIMILARITY};
}

/* ---- create and free ---- */

doppel_status doppel_batch_create(const doppel_batch_options *options, doppel_batch **made, doppel_error *error) {
    doppel_batch *batch = calloc(1, sizeof *batch);
    *made = NULL;
    if (!batch)
        return dp_no_memory(error);
    doppel_status status = set_options(batch, options, error);
    if (status == DOPPEL_OK)
        status = dp_spill_open(&batch->keys, NULL, NULL, batch->options.tmp, error);
    if (status == DOPPEL_OK)
        status = dp_journal_open(batch, error);
    if (status == DOPPEL_OK)
        *made = batch;
    else
        doppel_batch_free(batch);
    return status;
}

/* Whether everything was read; goes behind it. */
static doppel_status check_complete(doppel_batch *batch, doppel_error *error) {
    for (; batch->reading_at < batch->reading_count; batch->reading_at++)
        if (!batch->readings[batch->reading_at].complete)
            break;
    if (batch->reading_at && batch->reading_at == batch->reading_count)
        return DOPPEL_OK;
    return dp_fail_at(error, DOPPEL_ERROR_STORE, batch->options.work, 0,
                      "the run was not finished: go on with it first (--resume)");
}

doppel_status doppel_batch_open(const char *work, const doppel_input_options *input, doppel_batch **opened,
                                doppel_error *error) {
    dp_buffer text = {0};
    doppel_input_options reading = {.size = sizeof reading}, known = {.size = sizeof known};
    doppel_batch_options options = {.size = sizeof options, .work = work, .resume = true, .input = &reading};
    doppel_recipe *recipe = NULL;
    const char *recipe_text;
    *opened = NULL;
    if (input)
        dp_copy_options(&reading, input, sizeof reading);
    reading.size = sizeof reading;
    doppel_status status = dp_journal_options(work, &text, error);
    if (status == DOPPEL_OK) {
        known = reading;
        if (dp_options_parse(text.data, &options, &recipe_text, &reading, &known))
            options.known_input = &known;
        status = doppel_recipe_parse(recipe_text, NULL, &recipe, error);
    }
    options.recipe = recipe;
    if (status == DOPPEL_OK)
        status = doppel_batch_create(&options, opened, error);
    if (status != DOPPEL_OK) {
        doppel_recipe_free(recipe);
        dp_buffer_free(&text);
        return status;
    }
    (*opened)->own_recipe = recipe;
    (*opened)->own_text = text;
    if ((status = check_complete(*opened, error)) != DOPPEL_OK) {
        doppel_batch_free(*opened);
        *opened = NULL;
    }
    return status;
}

static void free_readings(doppel_batch *batch) {
    for (size_t i = 0; i < batch->reading_count; i++) {
        for (size_t j = 0; j < batch->readings[i].count; j++)
            free(batch->readings[i].paths[j]);
        free(batch->readings[i].paths);
        for (size_t j = 0; j < batch->readings[i].seen_count; j++)
            free(batch->readings[i].seen[j]);
        free(batch->readings[i].seen);
        free(batch->readings[i].by_name);
    }
    free(batch->readings);
}

void doppel_batch_free(doppel_batch *batch) {
    if (!batch)
        return;
    free_readings(batch);
    dp_against_close(batch->against);
    dp_finds_free(&batch->finds);
    dp_spill_close(&batch->journal);
    dp_spill_close(&batch->keys);
    free(batch->docs);
    free(batch->scope);
    free(batch->url);
    free(batch->ranks);
    free(batch->title);
    free(batch->firsts);
    free(batch->id_hash);
    free(batch->rows);
    free(batch->block);
    doppel_df_close(batch->frequent);
    free(batch->left);
    free(batch->original);
    free(batch->similarity);
    free(batch->reason);
    doppel_recipe_free(batch->own_recipe);
    dp_buffer_free(&batch->own_text);
    free(batch);
}

/* ---- what is known ---- */

const doppel_batch_options *doppel_batch_get_options(const doppel_batch *batch) {
    return &batch->options;
}

uint64_t doppel_batch_count(const doppel_batch *batch) {
    return batch->count;
}

size_t doppel_batch_id(const doppel_batch *batch, uint64_t position, char *buffer, size_t room) {
    bool own = position < batch->count;
    const dp_found_original *original = own ? NULL : &batch->finds.original[position - batch->count];
    size_t whole = own ? batch->docs[position].id_length : original->id_length;
    uint64_t at = own ? batch->docs[position].id_at : original->id_at;
    return dp_spill_read(&batch->journal, at, buffer, whole < room ? whole : room, NULL) == DOPPEL_OK ? whole : 0;
}

/* A document that an index has. */
static void get_found(const doppel_batch *batch, const dp_found *found, doppel_near *near) {
    near->a = batch->count + found->original;
    near->reason = dp_found_reason(found->kind);
    near->similarity = found->similarity < 0 ? NAN : (double)found->similarity;
    near->distance = found->distance;
    near->verified = found->verified;
}

void doppel_batch_get(const doppel_batch *batch, uint64_t position, doppel_near *near) {
    uint32_t d = (uint32_t)position, original = batch->decided ? batch->original[d] : d;
    const dp_found *found = batch->decided ? dp_finds_get(&batch->finds, d) : NULL;
    *near = (doppel_near){.a = original, .b = d, .similarity = NAN, .verified = true};
    if (found)
        get_found(batch, found, near);
    if (original == d)
        return;
    near->reason = (doppel_reason)batch->reason[d];
    near->similarity = batch->similarity[d] < 0 ? NAN : (double)batch->similarity[d];
    near->distance = -1;
    if (dp_doc_has_words(&batch->docs[d]) && dp_doc_has_words(&batch->docs[original]))
        near->distance = dp_batch_distance(batch, original, d);
}

void doppel_batch_get_stats(const doppel_batch *batch, doppel_batch_stats *stats) {
    *stats = batch->stats;
    stats->documents = batch->count;
    stats->known = batch->known;
    stats->in_index = batch->finds.count;
    if (batch->decided) {
        stats->kept -= batch->finds.count;
        stats->groups += batch->finds.original_count;
    }
    stats->spilled_bytes += batch->journal.file.size + batch->keys.file.size;
}

/* ---- candidates ---- */

doppel_status dp_batch_candidates(doppel_batch *batch, dp_buckets *buckets, dp_looks *looks, doppel_error *error) {
    double begun = dp_seconds();
    doppel_status status = dp_batch_end_reading(batch, error);
    if (status != DOPPEL_OK)
        return status;
    if (batch->options.method == DOPPEL_METHOD_SIMHASH) {
        status = dp_near_buckets(batch, buckets, looks, error);
    } else {
        if (batch->has_sets)
            status = dp_bands_buckets(batch, buckets, error);
        free(buckets->seen);
        buckets->seen = NULL;
        if (status == DOPPEL_OK && !dp_looks_make(looks, buckets, batch->count))
            status = dp_no_memory(error);
    }
    batch->stats.seconds_candidates = dp_seconds() - begun;
    return status;
}
