/* trim.c - text that documents repeat from each other: calls and stages:
 *
 *     doppel_trim_find     options -> documents counted and ranked (for passages: sampled) -> windows (windows.c) ->
 *                          marks -> spans (repeats.c)
 *     doppel_trim_write    -> documents (write.c)
 *
 * The inputs are read once to know how many documents there are and in which order they are kept; from then on a thread
 * knows the number of the document it reads. */
#include "trim/trim.h"

#include <stdlib.h>

/* ---- the options, checked ---- */

#define DEFAULT_WORDS 50
#define DEFAULT_MIN_WORDS 5

static doppel_status refuse(doppel_error *error, const char *why) {
    return dp_fail(error, DOPPEL_ERROR_USAGE, "%s", why);
}

static doppel_status check_numbers(dp_trim_settings *s, doppel_error *error) {
    doppel_trim_options *o = &s->options;
    if (o->unit > DOPPEL_UNIT_PASSAGE)
        return refuse(error, "unit is line, sentence, paragraph or passage");
    if (s->passages && o->run)
        return refuse(error, "run counts lines, sentences or paragraphs; the length of passages is words");
    if (!s->passages && o->words)
        return refuse(error, "words is the length of passages: it needs unit passage");
    if (o->run > UINT32_MAX / 2 || o->words > UINT32_MAX / 2)
        return refuse(error, "run and words: at most 2147483647");
    if (o->min_count == 1)
        return refuse(error, "min-count: what occurs once is no repeat; 2 is the least");
    if (!(o->drop_share >= 0 && o->drop_share <= 1))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "drop-share %g: give a share from 0 to 1", o->drop_share);
    if (s->recipe->text.chars || s->recipe->text.first)
        return refuse(error, "texts are trimmed by whole words: a recipe with chars= or first= cannot be used");
    return DOPPEL_OK;
}

static void set_defaults(dp_trim_settings *s) {
    doppel_trim_options *o = &s->options;
    if (s->passages)
        o->words = o->words ? o->words : DEFAULT_WORDS;
    else
        o->run = o->run ? o->run : 1;
    o->min_words = o->min_words ? o->min_words : DEFAULT_MIN_WORDS;
    o->min_count = o->min_count ? o->min_count : 2;
    s->n = (size_t)(s->passages ? o->words : o->run);
    s->window = dp_winnow_window(s->n);
    s->gram = s->n - s->window + 1;
}

static doppel_status check_order(dp_trim_settings *s, doppel_error *error) {
    const doppel_trim_options *o = &s->options;
    const char *scope = o->within ? o->within : o->across;
    if (o->against_count && (o->keep || o->min_count || o->cut_first || scope))
        return refuse(error,
                      "with against, all that those documents contain is cut: keep, min-count, keep-first, within and "
                      "across cannot be given");
    if (o->within && o->across)
        return refuse(error, "within and across cannot be given together");
    s->by_document = scope && !strcmp(scope, "document");
    if (scope && !s->by_document)
        DP_TRY(dp_scope_parse(scope, &s->scope, &s->fields, error));
    return o->keep ? dp_keep_parse(o->keep, &s->keep, &s->fields, error) : DOPPEL_OK;
}

/* How to read, with additional fields if needed. */
static void set_input(const dp_trim_settings *s, const doppel_input_options *given, doppel_input_options *input) {
    if (given)
        dp_copy_options(input, given, sizeof *input);
    input->size = sizeof *input;
    input->extra_keys = s->fields.key;
    input->extra_count = s->fields.count;
    input->threads = (int)dp_threads_within(dp_thread_count(input->threads), s->options.memory);
}

static doppel_status init_settings(dp_trim_settings *s, const doppel_trim_options *given, doppel_error *error) {
    doppel_trim_options *o = &s->options;
    if (given)
        dp_copy_options(o, given, sizeof *o);
    s->recipe = o->recipe ? o->recipe : dp_recipe_default();
    s->passages = o->unit == DOPPEL_UNIT_PASSAGE;
    DP_TRY(check_numbers(s, error));
    DP_TRY(check_order(s, error));
    set_defaults(s);
    set_input(s, o->input, &s->input);
    s->against_input = s->input;
    set_input(s, o->against_input, &s->against_input);
    o->input = &s->input;
    o->against_input = &s->against_input;
    s->threads = (size_t)s->input.threads;
    s->memory = o->memory ? o->memory : dp_memory_default();
    for (size_t i = 0; i < sizeof s->secret / sizeof *s->secret; i++)
        s->secret[i] = dp_random_number();
    return DOPPEL_OK;
}

/* ---- failures of threads ---- */

void dp_trim_fail(doppel_trim *trim, doppel_status status, const doppel_error *error) {
    if (status == DOPPEL_OK)
        return;
    pthread_mutex_lock(&trim->lock);
    if (trim->failure.code == DOPPEL_OK && error->code != DOPPEL_OK)
        trim->failure = *error;
    else if (trim->failure.code == DOPPEL_OK)
        dp_fail(&trim->failure, status, "%s", doppel_status_name(status));
    pthread_mutex_unlock(&trim->lock);
}

bool dp_trim_failed(doppel_trim *trim) {
    pthread_mutex_lock(&trim->lock);
    bool failed = trim->failure.code != DOPPEL_OK;
    pthread_mutex_unlock(&trim->lock);
    return failed;
}

/* The status of a stage, with the failure of its threads if there was one. */
static doppel_status end_stage(const doppel_trim *trim, doppel_status status, doppel_error *error) {
    if (trim->failure.code == DOPPEL_OK)
        return status;
    if (error)
        *error = trim->failure;
    return trim->failure.code;
}

/* ---- the first reading ---- */

/* What one thread collects about documents, and writes for each: its scope and its rank by each rule. */
typedef struct first_reader {
    doppel_trim *trim;
    dp_trim_text text;
    dp_sampler sampler;
    doppel_error error;
    dp_buffer url;
} first_reader;

typedef struct first_reading {
    doppel_trim *trim;
    dp_trim_parts *samples; /* NULL: none are taken */
} first_reading;

typedef struct first_entry {
    uint64_t scope;
    double rank[DP_KEEP_RULES];
} first_entry;

static bool needs_entries(const dp_trim_settings *s) {
    return s->scope.kind != DP_SCOPE_NONE || s->keep.count;
}

static bool needs_text(const dp_trim_settings *s) {
    for (size_t i = 0; i < s->keep.count; i++)
        if (s->keep.rule[i].kind == DP_KEEP_LONGEST || s->keep.rule[i].kind == DP_KEEP_SHORTEST)
            return true;
    return s->passages;
}

static doppel_status read_first(first_reader *r, const doppel_document *d, doppel_output *output) {
    const dp_trim_settings *s = &r->trim->settings;
    doppel_page page = {.text = d->text};
    first_entry entry;
    bool is_page;
    memset(&entry, 0, sizeof entry);
    if (needs_text(s))
        DP_TRY(dp_trim_text_of(&r->text, d, &page, &is_page));
    if (r->sampler.adder.records) {
        DP_TRY(dp_trim_text_read(&r->text, page.text, is_page));
        DP_TRY(dp_sampler_add(&r->sampler));
    } else if (r->trim->shared.word) {
        DP_TRY(dp_trim_text_read(&r->text, page.text, is_page));
        DP_TRY(dp_sampler_share(&r->sampler, &r->trim->filter, &r->trim->shared));
    }
    if (!needs_entries(s))
        return DOPPEL_OK;
    DP_TRY(dp_scope_find(&s->scope, d, &r->url, &entry.scope));
    dp_keep_rank(&s->keep, &(dp_keep_document){d->url, page.text.length, d->extra}, entry.rank);
    return doppel_output_write(output, dp_bytes(&entry, sizeof entry));
}

/* doppel_work.document */
static doppel_status read_first_document(void *state, const doppel_document *d, doppel_output *output) {
    first_reader *r = state;
    doppel_status status = read_first(r, d, output);
    if (status == DOPPEL_ERROR_INPUT)
        dp_trim_too_long(d, &r->error);
    dp_trim_fail(r->trim, status, &r->error);
    return status;
}

static void end_first(void *user, void *state) {
    first_reader *r = state;
    doppel_trim *trim = r->trim;
    (void)user;
    if (r->sampler.adder.records)
        dp_trim_fail(trim, dp_trim_adder_flush(&r->sampler.adder), &r->error);
    pthread_mutex_lock(&trim->lock);
    trim->samples += r->sampler.samples;
    trim->sampled_windows += r->sampler.windows;
    trim->repeated_windows += r->sampler.repeated;
    pthread_mutex_unlock(&trim->lock);
    dp_sampler_free(&r->sampler);
    dp_trim_text_free(&r->text);
    dp_buffer_free(&r->url);
    free(r);
}

static doppel_status begin_first(void *user, void **state) {
    const first_reading *reading = user;
    first_reader *r = calloc(1, sizeof *r);
    if (!r)
        return DOPPEL_ERROR_MEMORY;
    r->trim = reading->trim;
    doppel_status status = dp_trim_text_init(&r->text, &reading->trim->settings);
    if (status == DOPPEL_OK && !dp_sampler_init(&r->sampler, &r->text, reading->samples))
        status = DOPPEL_ERROR_MEMORY;
    r->sampler.adder.error = &r->error;
    if (status == DOPPEL_OK)
        *state = r;
    else
        end_first(NULL, r);
    return status;
}

/* doppel_work.emit */
static doppel_status take_entries(void *user, doppel_slice bytes) {
    const first_reading *reading = user;
    const dp_trim_settings *s = &reading->trim->settings;
    dp_trim_documents *d = &reading->trim->documents;
    size_t rules = s->keep.count;
    for (size_t at = 0; at < bytes.length; at += sizeof(first_entry), d->count++) {
        first_entry entry;
        memcpy(&entry, bytes.data + at, sizeof entry);
        if (!dp_reserve(&d->scope, &d->scope_room, d->count + 1, sizeof *d->scope) ||
            (rules && !dp_reserve(&d->ranks, &d->rank_room, (d->count + 1) * rules, sizeof *d->ranks)))
            return DOPPEL_ERROR_MEMORY;
        d->scope[d->count] = entry.scope;
        if (rules)
            memcpy(d->ranks + d->count * rules, entry.rank, rules * sizeof *entry.rank);
    }
    return DOPPEL_OK;
}

static doppel_status read_paths(doppel_trim *trim, dp_trim_reading *reading, dp_trim_parts *samples,
                                doppel_error *error) {
    bool against = reading == &trim->reading[0];
    first_reading first = {.trim = trim, .samples = samples};
    const doppel_work work = {
        .user = &first, .begin = begin_first, .document = read_first_document, .end = end_first, .emit = take_entries};
    const dp_input_paths paths = {(const char *const *)reading->paths, reading->count};
    dp_input_job job = {.paths = paths.path,
                        .path_count = paths.count,
                        .options = reading->input,
                        .work = &work,
                        .units = &reading->units};
    reading->first = trim->documents.count;
    DP_TRY(dp_check_pipes(&paths, error));
    DP_TRY(dp_stdin_rewind(&trim->stdin_copy, &paths, trim->settings.options.tmp, trim->settings.input.stop, error));
    DP_TRY(end_stage(trim, dp_input_run(&job, &reading->counts, error), error));
    trim->documents.count = reading->first + reading->counts.documents;
    if (trim->documents.count > UINT32_MAX - 1)
        return dp_fail(error, DOPPEL_ERROR_INPUT,
                       "more than %u documents, the most of one run: trim parts of the input", UINT32_MAX - 1);
    if (against && reading->input->refuse_bad)
        DP_TRY(dp_check_compared(paths.path, paths.count, &reading->counts, false, error));
    return DOPPEL_OK;
}

/* Reads all; for passages, unless the cuts are already known, the samples that repeat go into a filter: with `against`
 * those of the inputs that are among those of `against`. */
static doppel_status read_all(doppel_trim *trim, bool found, doppel_error *error) {
    const dp_trim_settings *s = &trim->settings;
    bool against = s->options.against_count, sample = s->passages && !found;
    dp_trim_parts samples = {.open = false};
    doppel_status status = DOPPEL_OK;
    if (sample)
        dp_trim_parts_open(&samples, trim, 1, 0x1p64, s->memory / 2);
    for (size_t i = !against; i < 2 && status == DOPPEL_OK; i++) {
        status = read_paths(trim, &trim->reading[i], samples.open ? &samples : NULL, error);
        if (!i)
            trim->documents.against = trim->documents.count;
        if (samples.open)
            DP_THEN(status, end_stage(trim, dp_filter_make(trim, &samples, error), error));
        dp_trim_parts_close(&samples);
        if (sample && !i)
            DP_THEN(status, dp_filter_begin_shared(trim, error));
    }
    if (trim->shared.word)
        dp_filter_end_shared(trim);
    return status;
}

doppel_status dp_trim_read_again(doppel_trim *trim, const dp_trim_reading *reading, const dp_input_numbered *numbered,
                                 const doppel_work *work, doppel_error *error) {
    doppel_input_options options = *reading->input;
    doppel_input_counts counts;
    options.bad = NULL; /* it was reported */
    options.unseen = NULL;
    options.strict = options.refuse_bad = false;
    options.row_records = true;
    const dp_input_paths paths = {(const char *const *)reading->paths, reading->count};
    const dp_input_job job = {
        .paths = paths.path, .path_count = paths.count, .options = &options, .work = work, .numbered = numbered};
    DP_TRY(dp_stdin_rewind(&trim->stdin_copy, &paths, trim->settings.options.tmp, options.stop, error));
    DP_TRY(end_stage(trim, dp_input_run(&job, &counts, error), error));
    bool same = counts.documents == reading->counts.documents && counts.bytes == reading->counts.bytes;
    return same ? DOPPEL_OK : dp_inputs_changed(error);
}

void dp_trim_too_long(const doppel_document *document, doppel_error *error) {
    dp_fail_at(error, DOPPEL_ERROR_INPUT, document->file, document->line, "a text of 4 GiB or more cannot be trimmed");
}

/* ---- keep order ---- */

static int compare_kept(const void *x, const void *y, void *user) {
    const doppel_trim *trim = user;
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    const dp_keep_policy *keep = &trim->settings.keep;
    const double *ranks = trim->documents.ranks;
    return dp_keep_compare(keep, &(dp_keep_place){ranks + (size_t)a * keep->count, a},
                           &(dp_keep_place){ranks + (size_t)b * keep->count, b});
}

static doppel_status rank_documents(doppel_trim *trim, doppel_error *error) {
    dp_trim_documents *d = &trim->documents;
    size_t count = (size_t)d->count;
    if (!trim->settings.keep.count || !count)
        return DOPPEL_OK;
    uint32_t *scratch = malloc(count * sizeof *scratch);
    d->by_rank = malloc(count * sizeof *d->by_rank);
    d->rank = malloc(count * sizeof *d->rank);
    bool made = scratch && d->by_rank && d->rank;
    for (size_t i = 0; i < count && made; i++)
        d->by_rank[i] = (uint32_t)i;
    if (made)
        dp_sort_by(trim->settings.threads, d->by_rank, count, scratch, compare_kept, trim);
    for (size_t i = 0; i < count && made; i++)
        d->rank[d->by_rank[i]] = (uint32_t)i;
    free(scratch);
    free(d->ranks);
    d->ranks = NULL;
    return made ? DOPPEL_OK : dp_no_memory(error);
}

/* ---- find ---- */

static bool copy_paths(dp_trim_reading *reading, const char *const *paths, size_t count,
                       const doppel_input_options *input) {
    reading->input = input;
    reading->paths = calloc(count + 1, sizeof *reading->paths);
    for (; reading->paths && reading->count < count; reading->count++)
        if (!(reading->paths[reading->count] = strdup(paths[reading->count])))
            return false;
    return reading->paths;
}

static doppel_status reserve_columns(doppel_trim *trim, doppel_error *error) {
    dp_trim_documents *d = &trim->documents;
    d->words = calloc((size_t)d->count + 1, sizeof *d->words);
    d->check = calloc((size_t)d->count + 1, sizeof *d->check);
    d->cuts_at = calloc((size_t)d->count + 1, sizeof *d->cuts_at);
    return d->words && d->check && d->cuts_at ? DOPPEL_OK : dp_no_memory(error);
}

/* Finds what to cut, or takes the result of the run in `work`. */
static doppel_status find(doppel_trim *trim, bool found, doppel_error *error) {
    double begun = dp_seconds();
    DP_TRY(read_all(trim, found, error));
    DP_TRY(rank_documents(trim, error));
    DP_TRY(reserve_columns(trim, error));
    trim->stats.seconds_read = dp_seconds() - begun;
    if (found)
        return dp_trim_work_load(trim, error);
    DP_TRY(end_stage(trim, dp_windows_find(trim, error), error));
    DP_TRY(end_stage(trim, dp_repeats_join(trim), error));
    DP_TRY(dp_append_file_flush(&trim->spans, error));
    trim->stats.seconds_decide = dp_seconds() - begun - trim->stats.seconds_read;
    free(trim->filter.word);
    trim->filter.word = NULL;
    return dp_trim_work_save(trim, error);
}

doppel_status dp_trim_start(doppel_trim *trim, const char *const *paths, size_t path_count,
                            const doppel_trim_options *options, doppel_error *error) {
    const doppel_trim_options *o = &trim->settings.options;
    bool found = false;
    DP_TRY(init_settings(&trim->settings, options, error));
    if (trim->settings.input.text_key && strchr(trim->settings.input.text_key, ','))
        return refuse(error, "the text key names several fields: trim cuts one");
    if (!copy_paths(&trim->reading[0], o->against, o->against_count, &trim->settings.against_input) ||
        !copy_paths(&trim->reading[1], paths, path_count, &trim->settings.input))
        return dp_no_memory(error);
    trim->settings.options.against = (const char *const *)trim->reading[0].paths;
    DP_TRY(dp_trim_work_open(trim, &found, error));
    return find(trim, found, error);
}

doppel_status doppel_trim_find(const char *const *paths, size_t path_count, const doppel_trim_options *options,
                               doppel_trim **made, doppel_error *error) {
    doppel_trim *trim = calloc(1, sizeof *trim);
    *made = NULL;
    if (!trim)
        return dp_no_memory(error);
    pthread_mutex_init(&trim->lock, NULL);
    doppel_status status = dp_trim_start(trim, paths, path_count, options, error);
    if (status == DOPPEL_OK)
        *made = trim;
    else
        doppel_trim_free(trim);
    return status;
}

static void free_reading(dp_trim_reading *reading) {
    for (size_t i = 0; i < reading->count; i++)
        free(reading->paths[i]);
    free(reading->paths);
    dp_input_units_free(&reading->units);
}

void doppel_trim_free(doppel_trim *trim) {
    if (!trim)
        return;
    dp_trim_documents *d = &trim->documents;
    free_reading(&trim->reading[0]);
    free_reading(&trim->reading[1]);
    free(d->scope);
    free(d->ranks);
    free(d->rank);
    free(d->by_rank);
    free(d->words);
    free(d->check);
    free(d->cuts_at);
    dp_short_texts_free(&trim->shorts);
    free(trim->filter.word);
    free(trim->shared.word);
    free(trim->hot);
    dp_trim_parts_close(&trim->marks);
    dp_append_file_close(&trim->spans);
    dp_trim_originals_free(&trim->originals);
    dp_tops_free(trim);
    doppel_recipe_free(trim->own_recipe);
    dp_buffer_free(&trim->own_text);
    pthread_mutex_destroy(&trim->lock);
    free(trim);
}

const doppel_trim_options *doppel_trim_get_options(const doppel_trim *trim) {
    return &trim->settings.options;
}

void doppel_trim_get_stats(const doppel_trim *trim, doppel_trim_stats *stats) {
    *stats = trim->stats;
    stats->against = trim->reading[0].counts;
    stats->input = trim->reading[1].counts;
    stats->copied_bytes = trim->stdin_copy.bytes;
    uint64_t own = dp_append_file_size(&trim->spans) + dp_append_file_size(&trim->originals.file);
    stats->spilled_bytes += own;
    stats->temporary_bytes = trim->disk.most > own ? trim->disk.most : own;
}
