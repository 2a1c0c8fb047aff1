/* batch.c - the batch line, as its calls:
 *
 *     doppel_batch_read      documents -> text -> sketches, on threads; kept in columns and in the journal
 *     doppel_batch_decide    -> candidates -> verified -> groups: which one stays?
 *     doppel_batch_find_pairs  -> candidates -> verified -> every pair
 *     doppel_batch_write     -> documents (write.c)
 */
#include "batch/batch.h"

#include <math.h>
#include <stdlib.h>

/* With `boilerplate`, groups that features are counted by are at least so similar: at a low threshold the frame alone
 * would make one group of all, and count once. */
#define FRAMED 0.8

/* ---- create and free ---- */

doppel_status doppel_batch_create(const doppel_batch_options *options, doppel_batch **made, doppel_error *error) {
    doppel_batch *batch = calloc(1, sizeof *batch);
    *made = NULL;
    if (!batch)
        return dp_no_memory(error);
    pthread_mutex_init(&batch->sets.lock, NULL);
    doppel_status status = dp_settings_init(&batch->settings, options, error);
    DP_THEN(status, dp_append_file_open(&batch->rows.keys, NULL, NULL, batch->settings.options.tmp, error));
    DP_THEN(status, dp_journal_open(batch, error));
    if (status == DOPPEL_OK)
        *made = batch;
    else
        doppel_batch_free(batch);
    return status;
}

static void free_strings(char **strings, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(strings[i]);
    free(strings);
}

static void free_readings(dp_readings *readings) {
    for (size_t i = 0; i < readings->count; i++) {
        dp_reading *reading = &readings->reading[i];
        free_strings(reading->paths, reading->count);
        free_strings(reading->seen, reading->seen_count);
        dp_hashmap_free(&reading->by_name);
        free(reading->inputs);
        dp_input_units_free(&reading->units);
    }
    free(readings->reading);
    dp_record_files_free(&readings->files);
}

static void free_documents(dp_documents *d) {
    free(d->doc);
    free(d->scope);
    free(d->url);
    free(d->ranks);
    free(d->title);
    free(d->id_hash);
    free(d->firsts);
}

void doppel_batch_free(doppel_batch *batch) {
    if (!batch)
        return;
    free_readings(&batch->readings);
    dp_against_close(batch);
    dp_append_file_close(&batch->journal.file);
    dp_buffer_free(&batch->journal.entry);
    free_documents(&batch->documents);
    free(batch->rows.document);
    free(batch->rows.block);
    dp_append_file_close(&batch->rows.keys);
    dp_sets_free(&batch->sets);
    doppel_df_close(batch->boilerplate.frequent);
    free(batch->boilerplate.left);
    free(batch->decisions.original);
    free(batch->decisions.similarity);
    free(batch->decisions.reason);
    doppel_recipe_free(batch->own_recipe);
    dp_buffer_free(&batch->own_text);
    free(batch);
}

/* ---- the batch line ---- */

doppel_status doppel_batch_read(doppel_batch *batch, const char *const *paths, size_t path_count, bool known,
                                doppel_input_counts *counts, doppel_error *error) {
    dp_readings *readings = &batch->readings;
    doppel_error own = {0};
    double begun = dp_seconds();
    size_t number = readings->at;
    if (batch->ended)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "documents cannot be read once pairs were asked for");
    if (known && number && !readings->reading[number - 1].known)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "known documents have to be read before all others");
    readings->error = &own;
    doppel_status status = dp_readings_read(batch, paths, path_count, known, error);
    if (own.code != DOPPEL_OK && status != DOPPEL_OK && error)
        *error = own;
    /* After a reading that the journal has stand the documents of the next one. */
    if (known && readings->at == readings->count)
        batch->documents.known = batch->documents.count;
    if (counts)
        *counts = number < readings->at ? readings->reading[number].counts : (doppel_input_counts){0};
    /* What was read is kept, whatever happens next. */
    doppel_status kept = DOPPEL_OK;
    if (batch->settings.options.work)
        kept = dp_append_file_flush(&batch->journal.file, status == DOPPEL_OK ? error : NULL);
    batch->stats.seconds_read += dp_seconds() - begun;
    return status == DOPPEL_OK ? kept : status;
}

/* Counts documents whose id an earlier one has, known ones aside. Ids are told by 64 bits of their hash. */
static bool count_same_ids(const dp_documents *d, size_t threads, uint64_t *same) {
    size_t count = d->id_hash ? d->count - d->known : 0;
    uint64_t *scratch = malloc((count + 1) * sizeof *scratch);
    if (scratch && count) {
        dp_sort64_on(threads, d->id_hash + d->known, count, scratch);
        *same = count - dp_unique64(d->id_hash + d->known, count);
    }
    free(scratch);
    return scratch;
}

/* All documents have been read. */
static doppel_status end_reading(doppel_batch *batch, doppel_error *error) {
    dp_documents *d = &batch->documents;
    if (batch->ended)
        return DOPPEL_OK;
    free(d->firsts);
    d->firsts = NULL;
    d->first_count = d->first_places = 0;
    DP_TRY(dp_append_file_flush(&batch->journal.file, error));
    DP_TRY(dp_key_rows_flush(&batch->rows, batch->settings.bands, error));
    if (!count_same_ids(d, batch->settings.threads, &batch->stats.same_ids))
        return dp_no_memory(error);
    free(d->id_hash);
    d->id_hash = NULL;
    DP_TRY(dp_sets_begin(batch, error));
    batch->ended = true;
    return DOPPEL_OK;
}

static doppel_status decide(doppel_batch *batch, doppel_error *error) {
    dp_candidates candidates = {0};
    double begun = dp_seconds();
    batch->decisions.made = false;
    doppel_status status = end_reading(batch, error);
    DP_THEN(status, dp_candidates_find(batch, &candidates, error));
    DP_THEN(status, dp_sets_read_texts(batch, &candidates, error));
    if (status == DOPPEL_OK)
        dp_output_room_begin(batch, &candidates);
    DP_THEN(status, dp_sets_status(&batch->sets, dp_group(batch, &candidates, error), error));
    dp_output_room_end(&batch->room);
    dp_candidates_free(&candidates);
    batch->stats.seconds_decide = dp_seconds() - begun - batch->stats.seconds_candidates;
    return status;
}

/* With `boilerplate`, once: groups as they are when nothing is left out, then what the groups share is left out. */
static doppel_status leave_out_boilerplate(doppel_batch *batch, doppel_error *error) {
    doppel_batch_options *o = &batch->settings.options;
    double asked = o->similarity;
    if (o->boilerplate <= 0 || batch->boilerplate.frequent)
        return DOPPEL_OK;
    o->similarity = asked > FRAMED ? asked : FRAMED;
    doppel_status status = decide(batch, error);
    o->similarity = asked;
    batch->decisions.made = false;
    DP_THEN(status, dp_boilerplate_find(batch, error));
    return status;
}

doppel_status doppel_batch_decide(doppel_batch *batch, doppel_error *error) {
    DP_TRY(leave_out_boilerplate(batch, error));
    return decide(batch, error);
}

doppel_status doppel_batch_find_pairs(doppel_batch *batch, bool collapse,
                                      doppel_status (*pairs)(const doppel_near *pairs, size_t count, void *user),
                                      void *user, doppel_error *error) {
    dp_candidates candidates = {0};
    const dp_pairs_wanted wanted = {collapse, pairs, user};
    if (batch->against || batch->matches.count)
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "an index tells originals, not all pairs: decide (doppel dedup) goes with one");
    DP_TRY(leave_out_boilerplate(batch, error));
    double begun = dp_seconds();
    doppel_status status = end_reading(batch, error);
    DP_THEN(status, dp_candidates_find(batch, &candidates, error));
    DP_THEN(status, dp_sets_read_texts(batch, &candidates, error));
    DP_THEN(status, dp_sets_status(&batch->sets, dp_pairs(batch, &candidates, &wanted, error), error));
    dp_candidates_free(&candidates);
    batch->stats.seconds_decide = dp_seconds() - begun - batch->stats.seconds_candidates;
    return status;
}

/* ---- what is known ---- */

const doppel_batch_options *doppel_batch_get_options(const doppel_batch *batch) {
    return &batch->settings.options;
}

uint64_t doppel_batch_count(const doppel_batch *batch) {
    return batch->documents.count;
}

size_t doppel_batch_id(const doppel_batch *batch, uint64_t position, char *buffer, size_t room) {
    const dp_documents *d = &batch->documents;
    bool own = position < d->count;
    const dp_matched_original *original = own ? NULL : &batch->matches.original[position - d->count];
    size_t whole = own ? d->doc[position].id_length : original->id_length;
    uint64_t at = own ? d->doc[position].id_at : original->id_at;
    doppel_status status = dp_append_file_read(&batch->journal.file, at, buffer, whole < room ? whole : room, NULL);
    return status == DOPPEL_OK ? whole : 0;
}

/* A document that an index has. */
static void get_match(const doppel_batch *batch, const dp_index_match *match, doppel_near *near) {
    near->a = batch->documents.count + match->original;
    near->reason = dp_match_reason(match->kind);
    near->similarity = match->similarity < 0 ? NAN : (double)match->similarity;
    near->distance = match->distance;
    near->verified = match->verified;
}

void doppel_batch_get(const doppel_batch *batch, uint64_t position, doppel_near *near) {
    const dp_decisions *decisions = &batch->decisions;
    const dp_doc *doc = batch->documents.doc;
    uint32_t d = (uint32_t)position, original = decisions->made ? decisions->original[d] : d;
    const dp_index_match *match = decisions->made ? dp_matches_get(&batch->matches, d) : NULL;
    *near = (doppel_near){.a = original, .b = d, .similarity = NAN, .verified = true};
    if (match)
        get_match(batch, match, near);
    if (original == d)
        return;
    near->reason = (doppel_reason)decisions->reason[d];
    near->similarity = decisions->similarity[d] < 0 ? NAN : (double)decisions->similarity[d];
    near->distance = -1;
    if (dp_doc_has_words(&doc[d]) && dp_doc_has_words(&doc[original]))
        near->distance = dp_documents_distance(&batch->documents, original, d);
}

void doppel_batch_get_stats(const doppel_batch *batch, doppel_batch_stats *stats) {
    const dp_batch_settings *s = &batch->settings;
    *stats = batch->stats;
    stats->documents = batch->documents.count;
    stats->known = batch->documents.known;
    stats->in_index = batch->matches.count;
    stats->bands = s->bands;
    stats->rows = s->rows;
    stats->recall = s->has_sets ? dp_bands_recall(s->options.similarity, s->bands, s->rows) : 0;
    if (batch->decisions.made) {
        stats->kept -= batch->matches.count;
        stats->groups += batch->matches.original_count;
    }
    uint64_t journal = batch->journal.file.scratch.size;
    stats->spilled_bytes += (batch->journal.kept ? 0 : journal) + batch->rows.keys.scratch.size + batch->sets.size +
                            batch->sets.texts.scratch.size;
    stats->kept_bytes = batch->journal.kept ? journal : 0;
    stats->copied_bytes = batch->readings.stdin_bytes;
}
