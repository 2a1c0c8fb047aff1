/* batch.c - the batch line, as its calls:
 *
 *     doppel_batch_read      documents -> text -> sketches, on threads; kept in columns and in the journal
 *     doppel_batch_decide    -> candidates -> verified -> groups: which one is kept?
 *     doppel_batch_find_pairs  -> candidates -> verified -> every pair
 *     doppel_batch_write     -> documents (write.c)
 *
 * Before that, the options are checked; in between, if asked for, boilerplate is left out. */
#include "batch/batch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the options, checked, as settings for the stages ---- */

#define DEFAULT_SIMILARITY 0.8
#define DEFAULT_DISTANCE 3
#define DEFAULT_MIN_WORDS 5

/* Containment is measured on features; a URL, a title or a chain says nothing about it. */
static doppel_status check_contained(const dp_batch_settings *s, doppel_error *error) {
    const doppel_batch_options *o = &s->options;
    const char *other = o->method == DOPPEL_METHOD_SIMHASH ? "method simhash"
                        : s->by != DOPPEL_BY_CONTENT       ? "by url or title"
                        : o->link_any                      ? "chains (link any)"
                                                           : NULL;
    if (!(o->only_contained >= 0 && o->only_contained <= 1))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "only_contained %g: must be a share from 0 to 1", o->only_contained);
    if (o->only_contained > 0 && other)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "only_contained cannot be combined with %s", other);
    return DOPPEL_OK;
}

static doppel_status check_numbers(dp_batch_settings *s, doppel_error *error) {
    doppel_batch_options *o = &s->options;
    o->similarity = o->similarity == 0 ? DEFAULT_SIMILARITY : o->similarity;
    o->min_words = o->min_words ? o->min_words : DEFAULT_MIN_WORDS;
    s->distance = o->distance = o->distance_zero ? 0 : o->distance ? o->distance : DEFAULT_DISTANCE;
    s->by = o->by = o->by ? o->by : DOPPEL_BY_CONTENT;
    if (!(o->similarity > 0 && o->similarity <= 1))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "similarity %g: must be above 0 and at most 1", o->similarity);
    if (s->distance < 0 || (o->method == DOPPEL_METHOD_SIMHASH && s->distance > s->bits))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "distance %d: must be 0 to %d with %d bits", s->distance, s->bits,
                       s->bits);
    if (!(o->boilerplate >= 0 && o->boilerplate < 1))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "boilerplate %g: must be a share from 0 to below 1", o->boilerplate);
    if (o->boilerplate > 0 && !s->has_sets)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "boilerplate needs method auto or minhash");
    return check_contained(s, error);
}

static doppel_status check_bands(dp_batch_settings *s, doppel_error *error) {
    const doppel_batch_options *o = &s->options;
    if (!s->has_sets)
        return DOPPEL_OK;
    if (o->method == DOPPEL_METHOD_MINHASH || o->resume) {
        s->bands = o->bands;
        s->rows = o->rows;
    }
    if (dp_bands_plan(o->similarity, &s->bands, &s->rows))
        return DOPPEL_OK;
    return dp_fail(error, DOPPEL_ERROR_USAGE,
                   "%d bands of %d rows: there can be at most %d bands, and at most %d slots in all", o->bands, o->rows,
                   DP_MOST_BANDS, DP_MOST_SLOTS);
}

doppel_status dp_scope_parse(const char *name, dp_scope_rule *rule, dp_fields *fields, doppel_error *error) {
    rule->kind = !strcmp(name, "host") ? DP_SCOPE_HOST : !strcmp(name, "domain") ? DP_SCOPE_DOMAIN : DP_SCOPE_FIELD;
    if (rule->kind == DP_SCOPE_FIELD && (rule->field = dp_fields_add(fields, name, strlen(name))) == DP_MOST_FIELDS)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "%s: the field's name is empty or too long", name);
    return DOPPEL_OK;
}

static doppel_status check_scope(dp_batch_settings *s, doppel_error *error) {
    const doppel_batch_options *o = &s->options;
    const char *name = o->within ? o->within : o->across;
    if (o->within && o->across)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "within and across cannot be combined");
    if (o->across && o->link_any)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "across and chains (link any) cannot be combined");
    s->scope.url_without = o->url_without;
    return name ? dp_scope_parse(name, &s->scope, &s->fields, error) : DOPPEL_OK;
}

/* How to read, with the fields needed in addition to the usual ones. */
static void set_input(const dp_batch_settings *s, const doppel_input_options *given, doppel_input_options *input) {
    if (given)
        dp_copy_options(input, given, sizeof *input);
    input->size = sizeof *input;
    input->extra_keys = s->fields.key;
    input->extra_count = s->fields.count;
}

static doppel_status init_settings(dp_batch_settings *s, const doppel_batch_options *given, doppel_error *error) {
    doppel_batch_options *o = &s->options;
    if (given)
        dp_copy_options(o, given, sizeof *o);
    s->recipe = o->recipe ? o->recipe : dp_recipe_default();
    s->bits = doppel_recipe_bits(s->recipe);
    s->large_bucket = DP_LARGE_BUCKET;
    s->most_documents = DP_NO_DOCUMENT - 1;
    s->has_sets = o->method == DOPPEL_METHOD_AUTO || o->method == DOPPEL_METHOD_MINHASH;
    DP_TRY(check_numbers(s, error));
    DP_TRY(check_bands(s, error));
    DP_TRY(check_scope(s, error));
    s->keep.ids = true;
    if (o->keep)
        DP_TRY(dp_keep_parse(o->keep, &s->keep, &s->fields, error));
    set_input(s, o->input, &s->input);
    s->known_input = s->input;
    set_input(s, o->known_input, &s->known_input);
    s->threads = dp_threads_within(dp_thread_count(s->input.threads), o->memory);
    s->input.threads = (int)s->threads;
    s->known_input.threads = (int)dp_threads_within(dp_thread_count(s->known_input.threads), o->memory);
    o->input = &s->input;
    o->known_input = &s->known_input;
    return DOPPEL_OK;
}

dp_rules dp_settings_rules(const dp_batch_settings *s) {
    return (dp_rules){.by_similarity = s->has_sets,
                      .similarity = s->options.similarity,
                      .distance = s->distance,
                      .bits = s->bits,
                      .titles = s->by & DOPPEL_BY_TITLE,
                      .title_similarity = DP_TITLE_SIMILARITY};
}

/* ---- boilerplate: features that many documents share because they share a frame: menus, licences, signatures.
 *
 * A feature counts once per group: it is counted on the kept documents of a grouping in which nothing is left out, so
 * that a page with a thousand copies is not taken for a frame. Features that more than a share of them have (and more
 * than LEAST, so that small sets keep theirs) are left out of every set, and bands are made anew. */

#define LEAST 8

/* The memory of the builder of the table. */
#define BUILDER_MEMORY ((size_t)1 << 28)

/* ---- counting ---- */

static doppel_status count_features(doppel_batch *batch, doppel_df_builder *builder, uint64_t *groups,
                                    doppel_error *error) {
    const dp_key_rows *rows = &batch->rows;
    dp_set_buffer set = {0};
    dp_set_maker *maker = dp_set_maker_create(batch);
    doppel_status status = maker ? DOPPEL_OK : dp_no_memory(error);
    for (size_t i = 0; i < rows->count && status == DOPPEL_OK; i++) {
        uint32_t d = rows->document[i];
        if (batch->decisions.original[d] != d)
            continue;
        status = dp_sets_status(&batch->sets, dp_set_make(maker, d, &set), error);
        DP_THEN(status, doppel_df_builder_add(builder, set.hash, set.count, error));
        ++*groups;
        if (dp_stopped(batch->settings.input.stop))
            status = dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        dp_report_progress(&batch->settings, "boilerplate", i, rows->count);
    }
    free(set.hash);
    dp_set_maker_free(maker);
    return status;
}

/* Writes the table of frequent features to a file, maps it, and removes its name. */
static doppel_status open_table(doppel_batch *batch, doppel_df_builder *builder, uint64_t groups, doppel_error *error) {
    const doppel_batch_options *o = &batch->settings.options;
    const char *tmp = o->tmp ? o->tmp : getenv("TMPDIR");
    char path[4096];
    double share = o->boilerplate * (double)groups;
    uint64_t most = share > LEAST ? (uint64_t)share : LEAST;
    snprintf(path, sizeof path, "%s/doppel-%ld-%p.df", tmp ? tmp : "/tmp", (long)getpid(), (void *)batch);
    doppel_status status =
        doppel_df_builder_save(builder, path, most < UINT32_MAX ? (uint32_t)most + 1 : UINT32_MAX, error);
    DP_THEN(status, doppel_df_open(path, &batch->boilerplate.frequent, error));
    unlink(path);
    if (status == DOPPEL_OK)
        batch->stats.frequent = doppel_df_features(batch->boilerplate.frequent);
    return status;
}

/* ---- bands anew ---- */

typedef struct rebanding {
    doppel_batch *batch;
    const uint32_t *document; /* the rows as they were */
    size_t from, count;       /* of the block at hand */
    uint32_t *keys;
    atomic_size_t next;
    _Atomic int status;
} rebanding;

static doppel_status band_row(rebanding *r, size_t i, dp_set_maker *maker, dp_set_buffer *set) {
    const dp_batch_settings *s = &r->batch->settings;
    uint32_t d = r->document[r->from + i];
    DP_TRY(dp_set_make(maker, d, set));
    r->batch->boilerplate.left[d] = (uint32_t)set->count;
    return set->count ? dp_bands_keys(set->hash, set->count, s->bands, s->rows, r->keys + i * (size_t)s->bands)
                      : DOPPEL_OK;
}

static void band_rows(void *user, size_t thread) {
    enum { SOME = 64 };
    rebanding *r = user;
    dp_set_buffer set = {0};
    dp_set_maker *maker = dp_set_maker_create(r->batch);
    size_t from;
    doppel_status status = maker ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    (void)thread;
    while (status == DOPPEL_OK && (from = atomic_fetch_add(&r->next, SOME)) < r->count)
        for (size_t i = from; i < from + SOME && i < r->count && status == DOPPEL_OK; i++)
            status = band_row(r, i, maker, &set);
    if (status != DOPPEL_OK)
        atomic_store(&r->status, (int)status);
    dp_set_maker_free(maker);
    free(set.hash);
}

static doppel_status band_block(rebanding *r, doppel_error *error) {
    doppel_batch *batch = r->batch;
    int bands = batch->settings.bands;
    atomic_store(&r->next, 0);
    dp_run_threads(batch->settings.threads, band_rows, r);
    doppel_status status = (doppel_status)atomic_load(&r->status);
    if (status != DOPPEL_OK) {
        dp_fail(error, status, "%s", doppel_status_name(status));
        return dp_sets_status(&batch->sets, status, error);
    }
    for (size_t i = 0; i < r->count; i++) {
        uint32_t d = r->document[r->from + i];
        if (batch->boilerplate.left[d])
            DP_TRY(dp_key_rows_add(&batch->rows, d, r->keys + i * (size_t)bands, bands, error));
    }
    dp_report_progress(&batch->settings, "bands", r->from, batch->rows.count);
    return DOPPEL_OK;
}

/* Makes the rows and their keys again, of what is left of the sets. */
static doppel_status band_again(doppel_batch *batch, doppel_error *error) {
    dp_key_rows *rows = &batch->rows;
    uint32_t *document = rows->document;
    size_t count = rows->count, bands = (size_t)batch->settings.bands;
    rebanding r = {.batch = batch, .document = document, .keys = malloc(DP_ROW_BLOCK * bands * sizeof *r.keys)};
    batch->boilerplate.left = calloc(batch->documents.count + 1, sizeof *batch->boilerplate.left);
    rows->document = NULL;
    rows->count = rows->room = 0;
    dp_append_file_close(&rows->keys);
    doppel_status status = r.keys && batch->boilerplate.left ? DOPPEL_OK : dp_no_memory(error);
    DP_THEN(status, dp_append_file_open(&rows->keys, NULL, NULL, batch->settings.options.tmp, error));
    for (; r.from < count && status == DOPPEL_OK; r.from += DP_ROW_BLOCK) {
        r.count = count - r.from < DP_ROW_BLOCK ? count - r.from : DP_ROW_BLOCK;
        status = band_block(&r, error);
    }
    free(r.keys);
    free(document);
    DP_THEN(status, dp_key_rows_flush(rows, batch->settings.bands, error));
    return status;
}

/* Finds the frequent features of the kept documents, and makes bands without them. */
static doppel_status find_boilerplate(doppel_batch *batch, doppel_error *error) {
    doppel_df_builder *builder = NULL;
    const dp_batch_settings *s = &batch->settings;
    uint64_t groups = 0;
    doppel_status status = doppel_df_builder_create(s->recipe, BUILDER_MEMORY, s->options.tmp, &builder, error);
    DP_THEN(status, count_features(batch, builder, &groups, error));
    DP_THEN(status, open_table(batch, builder, groups, error));
    doppel_df_builder_free(builder);
    DP_THEN(status, band_again(batch, error));
    return status;
}

/* With `boilerplate`, features are counted on groups of at least this similarity: at a low threshold the frame alone
 * would make one group of all documents, and count once. */
#define FRAMED 0.8

/* ---- create and free ---- */

doppel_status doppel_batch_create(const doppel_batch_options *options, doppel_batch **made, doppel_error *error) {
    doppel_batch *batch = calloc(1, sizeof *batch);
    *made = NULL;
    if (!batch)
        return dp_no_memory(error);
    pthread_mutex_init(&batch->sets.lock, NULL);
    doppel_status status = init_settings(&batch->settings, options, error);
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
    dp_group_counts_free(&batch->counts);
    dp_output_files_free(&batch->files);
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
        return dp_fail(error, DOPPEL_ERROR_USAGE, "documents cannot be read after pairs were requested");
    if (known && number && !readings->reading[number - 1].known)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "known documents must be read before all others");
    readings->error = &own;
    doppel_status status = dp_readings_read(batch, paths, path_count, known, error);
    if (own.code != DOPPEL_OK && status != DOPPEL_OK && error)
        *error = own;
    /* After a reading that is in the journal come the documents of the next one. */
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

/* Counts documents whose id an earlier one has, known ones aside. Ids are compared by 64 bits of their hash. */
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

/* With `boilerplate`, once: makes groups with nothing left out, then leaves out what the groups share. */
static doppel_status leave_out_boilerplate(doppel_batch *batch, doppel_error *error) {
    doppel_batch_options *o = &batch->settings.options;
    double asked = o->similarity;
    if (o->boilerplate <= 0 || batch->boilerplate.frequent)
        return DOPPEL_OK;
    o->similarity = asked > FRAMED ? asked : FRAMED;
    doppel_status status = decide(batch, error);
    o->similarity = asked;
    batch->decisions.made = false;
    DP_THEN(status, find_boilerplate(batch, error));
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
        return dp_fail(error, DOPPEL_ERROR_USAGE, "an index finds originals, not all pairs: use decide (doppel dedup)");
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
    near->reason = (doppel_reason)(decisions->reason[d] & ~DP_EXTRA_COPY);
    near->similarity = decisions->similarity[d] < 0 ? NAN : (double)decisions->similarity[d];
    near->distance = -1;
    if (dp_doc_has_words(&doc[d]) && dp_doc_has_words(&doc[original]))
        near->distance = dp_documents_distance(&batch->documents, original, d);
}

bool doppel_batch_stays(const doppel_batch *batch, uint64_t position) {
    const dp_decisions *decisions = &batch->decisions;
    uint32_t d = (uint32_t)position;
    return !decisions->made || decisions->reason[d] & DP_EXTRA_COPY ||
           (decisions->original[d] == d && !dp_matches_get(&batch->matches, d));
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
    stats->copied_bytes = batch->readings.stdin_copy.bytes;
}
