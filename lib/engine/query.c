/* query.c - from an item to a query: dp_query_maker_create, dp_query_make for each item, dp_query_maker_free.
 *
 * Names first (id, address, title, fields; all have limits), then sketches: from the text, or as given. */
#include "engine/query.h"
#include "decide/decide.h"
#include "input/input.h"
#include "sketch/sketch.h"
#include "verify/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEX_DIGITS = 16 };

struct dp_query_maker {
    dp_query_settings sketching;
    doppel_sketcher *sketcher;
    doppel_sketcher *titles; /* NULL: titles are off */
    doppel_page_reader *pages;
    dp_buffer url, fields, sample;
    char hex[HEX_DIGITS + 1];
    uint32_t keys[DP_MOST_BANDS];
};

doppel_status dp_query_maker_create(const dp_query_settings *sketching, dp_query_maker **maker, doppel_error *error) {
    unsigned wants = DOPPEL_WANT_DIGEST | (sketching->by_similarity ? DOPPEL_WANT_SET : 0U);
    *maker = NULL;
    dp_query_maker *a = calloc(1, sizeof *a);
    if (!a)
        return dp_no_memory(error);
    a->sketching = *sketching;
    if (!a->sketching.recipe)
        a->sketching.recipe = dp_recipe_default();
    doppel_status status = doppel_sketcher_create(a->sketching.recipe, wants, &a->sketcher, error);
    if (status == DOPPEL_OK && sketching->titles)
        status = dp_title_sketcher_create(&a->titles, error);
    if (status == DOPPEL_OK && (status = doppel_page_reader_create(&a->pages)) != DOPPEL_OK)
        dp_no_memory(error);
    if (status == DOPPEL_OK)
        *maker = a;
    else
        dp_query_maker_free(a);
    return status;
}

void dp_query_maker_free(dp_query_maker *maker) {
    if (!maker)
        return;
    doppel_sketcher_free(maker->sketcher);
    doppel_sketcher_free(maker->titles);
    doppel_page_reader_free(maker->pages);
    dp_buffer_free(&maker->url);
    dp_buffer_free(&maker->fields);
    dp_buffer_free(&maker->sample);
    free(maker);
}

/* ---- names ---- */

static const char *file_of(const doppel_document *d) {
    return d->file ? d->file : "";
}

static doppel_status check_length(const doppel_document *d, const char *name, size_t length, doppel_error *error) {
    if (length <= DP_NAME_LIMIT)
        return DOPPEL_OK;
    return dp_fail_at(error, DOPPEL_ERROR_INPUT, file_of(d), d->line,
                      "%s of %zu bytes: at most %d are allowed; shorten it or leave it out", name, length,
                      (int)DP_NAME_LIMIT);
}

/* Checks the given names before anything is derived from them. */
static doppel_status check_names(const doppel_document *d, doppel_error *error) {
    DP_TRY(check_length(d, "an id", d->id.data ? d->id.length : 0, error));
    DP_TRY(check_length(d, "a URL", d->url.data ? d->url.length : 0, error));
    DP_TRY(check_length(d, "the target of a redirect", d->alias.data ? d->alias.length : 0, error));
    return check_length(d, "a title", d->title.data ? d->title.length : 0, error);
}

/* Where it comes from; an empty origin is none. */
static doppel_status ask_origin(const doppel_item *item, dp_query *q, doppel_error *error) {
    if (!item->origin.data || !item->origin.length)
        return DOPPEL_OK;
    q->origin = item->origin;
    if (item->origin.length <= DP_ORIGIN_LIMIT)
        return DOPPEL_OK;
    return dp_fail_at(error, DOPPEL_ERROR_INPUT, file_of(&item->document), item->document.line,
                      "an origin of %zu bytes: at most %d are allowed; shorten it or leave it out", item->origin.length,
                      (int)DP_ORIGIN_LIMIT);
}

/* Its URL, and its canonical address. */
static doppel_status ask_address(dp_query_maker *a, const doppel_document *d, const doppel_page *page, dp_query *q,
                                 doppel_error *error) {
    DP_TRY(check_length(d, "a page's canonical link", page->canonical.length, error));
    if (d->url.data && d->url.length)
        q->url = d->url;
    if (dp_document_address(d, page, a->sketching.url_without, &a->url) != DOPPEL_OK)
        return dp_no_memory(error);
    if (a->url.size)
        q->canonical = (doppel_slice){a->url.data, a->url.size};
    return check_length(d, "a canonical URL", a->url.size, error);
}

static doppel_status ask_title(dp_query_maker *a, const doppel_document *d, const doppel_page *page, dp_query *q,
                               doppel_error *error) {
    doppel_slice key = {NULL, 0};
    doppel_status status = check_length(d, "a page's title", page->title.length, error);
    if (status != DOPPEL_OK || !page->title.data)
        return status;
    q->title = page->title;
    if (!a->titles)
        return DOPPEL_OK;
    if (dp_title_normalise(a->titles, page->title.data, page->title.length, &key) != DOPPEL_OK)
        return dp_no_memory(error);
    if (dp_title_counts(key))
        q->title_key = key;
    return DOPPEL_OK;
}

/* Adds a field of the item after those before it. */
static bool add_field(dp_buffer *to, const char *name, doppel_slice value) {
    return dp_buffer_add(to, to->size ? "," : "{", 1) && dp_json_add(to, name, strlen(name)) &&
           dp_buffer_add(to, ":", 1) && dp_json_add(to, value.data, value.length);
}

static doppel_status ask_fields(dp_query_maker *a, const doppel_document *d, dp_query *q, doppel_error *error) {
    a->fields.size = 0;
    for (size_t i = 0; d->extra && i < a->sketching.field_count; i++) {
        char name[160];
        if (!d->extra[i].data)
            continue;
        snprintf(name, sizeof name, "a field `%s`", a->sketching.fields[i]);
        DP_TRY(check_length(d, name, d->extra[i].length, error));
        if (!add_field(&a->fields, a->sketching.fields[i], d->extra[i]))
            return dp_no_memory(error);
    }
    if (!a->fields.size)
        return DOPPEL_OK;
    if (!dp_buffer_add(&a->fields, "}", 1))
        return dp_no_memory(error);
    q->fields = (doppel_slice){a->fields.data, a->fields.size};
    return DOPPEL_OK;
}

/* Its id: the one given, else its canonical URL, else the beginning of its digest. */
static void ask_id(dp_query_maker *a, const doppel_document *d, dp_query *q) {
    if (d->id.data && d->id.length) {
        q->id = d->id;
        q->id_given = true;
    } else if (q->canonical.length) {
        q->id = q->canonical;
    } else if (q->has_digest) {
        for (int i = 0; i < HEX_DIGITS / 2; i++)
            snprintf(a->hex + 2 * i, 3, "%02x", q->digest[i]);
        q->id = (doppel_slice){a->hex, HEX_DIGITS};
    }
}

/* ---- sketches ---- */

doppel_status dp_query_take_sketch(dp_query_maker *a, const doppel_sketch *sketch, dp_query *q, doppel_error *error) {
    q->words = sketch->words;
    q->has_digest = dp_has_digest(sketch->digest);
    memcpy(q->digest, sketch->digest, sizeof q->digest);
    memcpy(q->fingerprint, sketch->fingerprint, sizeof q->fingerprint);
    if (!q->content || !a->sketching.by_similarity)
        return DOPPEL_OK;
    q->set = sketch->set;
    q->set_count = sketch->set_count;
    q->keys = a->keys;
    q->key_count = (size_t)a->sketching.bands;
    doppel_status status = dp_bands_keys(q->set, q->set_count, a->sketching.bands, a->sketching.rows, a->keys);
    if (status != DOPPEL_OK)
        return dp_fail(error, status, "%s", doppel_status_name(status));
    if (!a->sketching.sample || !q->set_count)
        return DOPPEL_OK;
    a->sample.size = 0;
    if (!dp_bottom_make(q->set, q->set_count, a->sketching.sample, &a->sample))
        return dp_no_memory(error);
    q->sample = (doppel_slice){a->sample.data, a->sample.size};
    return DOPPEL_OK;
}

/* A sample with the keys of its bands: their number (1 byte), each (4), the sample. */
static doppel_status take_sample(dp_query_maker *a, doppel_slice given, dp_query *q, doppel_error *error) {
    size_t keys = (size_t)a->sketching.bands, head = 1 + 4 * keys;
    doppel_slice sample = {given.data + head, given.length > head ? given.length - head : 0};
    if (!a->sketching.sample || given.length <= head || (uint8_t)given.data[0] != keys || !dp_bottom_is_valid(sample))
        return dp_fail(
            error, DOPPEL_ERROR_USAGE,
            "a sample of feature hashes that this index cannot use: it takes those of an index with the same "
            "similarity and sample");
    memcpy(a->keys, given.data + 1, 4 * keys);
    q->keys = a->keys;
    q->key_count = keys;
    q->sample = sample;
    q->set_count = dp_bottom_count(sample);
    return DOPPEL_OK;
}

static doppel_status ask_text(dp_query_maker *a, const doppel_document *d, const doppel_page *page, dp_query *q,
                              doppel_error *error) {
    doppel_sketch sketch;
    doppel_status status = doppel_sketcher_run(a->sketcher, page->text, &sketch);
    if (status == DOPPEL_ERROR_INPUT)
        return dp_fail_at(error, status, file_of(d), d->line, "a text with a word of over 2 GiB cannot be sketched");
    if (status != DOPPEL_OK)
        return dp_fail(error, status, "%s", doppel_status_name(status));
    if (a->sketching.keep_text)
        q->text = page->text;
    q->content = sketch.words && sketch.words >= a->sketching.min_words;
    return dp_query_take_sketch(a, &sketch, q, error);
}

static doppel_status check_sketches(const dp_query_maker *a, const doppel_item *item, doppel_error *error) {
    int bits = doppel_recipe_bits(a->sketching.recipe);
    if (!item->fingerprint)
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "an item with a digest or feature hashes but no fingerprint: give that, too");
    if (bits < 64 && item->fingerprint[0] >> bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a fingerprint of more than the %d bits of the recipe: %016" PRIx64,
                       bits, item->fingerprint[0]);
    for (size_t i = 1; item->set && i < item->set_count; i++)
        if (item->set[i - 1] >= item->set[i])
            return dp_fail(error, DOPPEL_ERROR_USAGE,
                           "feature hashes that are not ascending and distinct, at number %zu: give them as "
                           "DOPPEL_WANT_SET does",
                           i);
    return DOPPEL_OK;
}

static doppel_status ask_sketches(dp_query_maker *a, const doppel_item *item, dp_query *q, doppel_error *error) {
    doppel_sketch sketch = {.words = item->words, .set = item->set, .set_count = item->set ? item->set_count : 0};
    DP_TRY(check_sketches(a, item, error));
    if (item->digest && !dp_has_digest(item->digest))
        return DOPPEL_OK;
    q->content = !item->words || item->words >= a->sketching.min_words;
    bool sampled = item->sample.data && a->sketching.by_similarity;
    if (item->restore && item->restore->original_id.data && !sketch.set_count && !sampled)
        q->content = false; /* nothing is near a copy */
    if (a->sketching.by_similarity && q->content && !sketch.set_count && !sampled)
        return dp_fail(
            error, DOPPEL_ERROR_USAGE,
            "a fingerprint alone does not tell similarity: give the feature hashes (`set`) or the text, too");
    sketch.fingerprint[0] = item->fingerprint[0];
    sketch.fingerprint[1] = doppel_recipe_bits(a->sketching.recipe) > 64 ? item->fingerprint[1] : 0;
    if (item->digest)
        memcpy(sketch.digest, item->digest, sizeof sketch.digest);
    bool content = q->content;
    q->content = content && !sampled;
    DP_TRY(dp_query_take_sketch(a, &sketch, q, error));
    q->content = content;
    return content && sampled ? take_sample(a, item->sample, q, error) : DOPPEL_OK;
}

/* Whether the item's own sketches are used: by similarity a text is better than a fingerprint without a set, where one
 * is needed. */
static bool is_sketched(const dp_query_maker *a, const doppel_item *item, const doppel_page *page) {
    bool needs_set = a->sketching.by_similarity && (!item->words || item->words >= a->sketching.min_words);
    if (!item->fingerprint && !item->digest && !item->set)
        return false;
    if (item->digest && !dp_has_digest(item->digest))
        needs_set = false;
    return !item->fingerprint || item->set || item->sample.data || !needs_set || !page->text.length;
}

/* ---- items ---- */

static doppel_status read_text(dp_query_maker *a, const doppel_document *d, doppel_page *page, doppel_error *error) {
    doppel_status status = doppel_document_text(a->pages, d, a->sketching.content, page);
    if (status == DOPPEL_ERROR_INPUT)
        return dp_fail_at(error, status, file_of(d), d->line,
                          "a page that cannot be read: it is over 2 GiB, or the system has no converter (iconv) for "
                          "its charset");
    return status == DOPPEL_OK ? DOPPEL_OK : dp_fail(error, status, "%s", doppel_status_name(status));
}

doppel_status dp_query_make(dp_query_maker *maker, const doppel_item *given, dp_query *query, doppel_error *error) {
    doppel_item item = {0};
    doppel_page page;
    if (given->size < offsetof(doppel_item, fingerprint))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "an item without its size: set `size` to sizeof(doppel_item)");
    dp_copy_options(&item, given, sizeof item);
    const doppel_document *d = &item.document;
    *query = (dp_query){.ttl = item.ttl, .restore = item.restore, .merge = item.merge};
    DP_TRY(check_names(d, error));
    DP_TRY(ask_origin(&item, query, error));
    DP_TRY(read_text(maker, d, &page, error));
    DP_TRY(ask_address(maker, d, &page, query, error));
    DP_TRY(ask_title(maker, d, &page, query, error));
    DP_TRY(ask_fields(maker, d, query, error));
    DP_TRY(is_sketched(maker, &item, &page) ? ask_sketches(maker, &item, query, error)
                                            : ask_text(maker, d, &page, query, error));
    if (maker->sketching.keep_text && item.restore)
        query->text = page.text;
    ask_id(maker, d, query);
    return DOPPEL_OK;
}

/* ---- copies ---- */

/* Copies bytes to *at, which moves past them; returns the copy. NULL stays NULL. */
static const void *place(char **at, const void *bytes, size_t length) {
    char *to = *at;
    if (!bytes)
        return NULL;
    if (length)
        memcpy(to, bytes, length);
    *at += length;
    return to;
}

dp_query *dp_query_copy(const dp_query *query) {
    size_t set_bytes = query->set_count * sizeof *query->set, key_bytes = query->key_count * sizeof *query->keys;
    dp_query *copy = malloc(sizeof *copy + set_bytes + key_bytes + query->id.length + query->url.length +
                            query->canonical.length + query->title.length + query->title_key.length +
                            query->fields.length + query->text.length + query->origin.length + query->sample.length);
    if (!copy)
        return NULL;
    *copy = *query;
    /* The widest numbers come first, so that all are aligned. */
    char *at = (char *)(copy + 1);
    copy->set = place(&at, query->set, set_bytes);
    copy->keys = place(&at, query->keys, key_bytes);
    doppel_slice *slice[] = {&copy->id,     &copy->url,  &copy->canonical, &copy->title, &copy->title_key,
                             &copy->fields, &copy->text, &copy->origin,    &copy->sample};
    for (size_t i = 0; i < sizeof slice / sizeof *slice; i++)
        slice[i]->data = place(&at, slice[i]->data, slice[i]->length);
    return copy;
}
