/* options.c - the options of a batch, checked: what they come to for its stages. */
#include "batch/batch.h"

#define DEFAULT_SIMILARITY 0.8
#define DEFAULT_DISTANCE 3
#define DEFAULT_MIN_WORDS 5

/* ---- checked ---- */

static doppel_status check_numbers(dp_batch_settings *s, doppel_error *error) {
    doppel_batch_options *o = &s->options;
    o->similarity = o->similarity == 0 ? DEFAULT_SIMILARITY : o->similarity;
    o->min_words = o->min_words ? o->min_words : DEFAULT_MIN_WORDS;
    s->distance = o->distance = o->distance_zero ? 0 : o->distance ? o->distance : DEFAULT_DISTANCE;
    s->by = o->by = o->by ? o->by : DOPPEL_BY_CONTENT;
    if (!(o->similarity > 0 && o->similarity <= 1))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "similarity %g: above 0 and up to 1 is possible", o->similarity);
    if (s->distance < 0 || (o->method == DOPPEL_METHOD_SIMHASH && s->distance > s->bits))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "distance %d: 0 to %d is possible with %d bits", s->distance, s->bits,
                       s->bits);
    if (!(o->boilerplate >= 0 && o->boilerplate < 1))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "boilerplate %g: a share from 0 to below 1 is possible",
                       o->boilerplate);
    if (o->boilerplate > 0 && !s->has_sets)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "boilerplate needs method auto or minhash");
    return DOPPEL_OK;
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
    return dp_fail(error, DOPPEL_ERROR_USAGE, "%d bands of %d rows: up to %d bands and %d slots in all are possible",
                   o->bands, o->rows, DP_MOST_BANDS, DP_MOST_SLOTS);
}

static doppel_status check_scope(dp_batch_settings *s, doppel_error *error) {
    const doppel_batch_options *o = &s->options;
    const char *name = o->within ? o->within : o->across;
    if (o->within && o->across)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "within and across cannot be asked for together");
    if (o->across && o->link_any)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "across and chains (link any) cannot be asked for together");
    if (!name)
        return DOPPEL_OK;
    s->scope_kind = !strcmp(name, "host") ? DP_SCOPE_HOST : !strcmp(name, "domain") ? DP_SCOPE_DOMAIN : DP_SCOPE_FIELD;
    if (s->scope_kind == DP_SCOPE_FIELD &&
        (s->scope_field = dp_fields_add(&s->fields, name, strlen(name))) == DP_MOST_FIELDS)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "%s: the field's name is empty or too long", name);
    return DOPPEL_OK;
}

/* How to read, with the fields that are needed beside the usual ones. */
static void set_input(const dp_batch_settings *s, const doppel_input_options *given, doppel_input_options *input) {
    if (given)
        dp_copy_options(input, given, sizeof *input);
    input->size = sizeof *input;
    input->extra_keys = s->fields.key;
    input->extra_count = s->fields.count;
}

doppel_status dp_settings_init(dp_batch_settings *s, const doppel_batch_options *given, doppel_error *error) {
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
