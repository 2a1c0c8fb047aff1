/* read.c - documents in: each is sketched on some thread, and noted in order.
 *
 * A thread packs what it finds out into its output: a `sketched`, then the id, the keys of the bands and the set.
 * Outputs come in order to take_documents, which tells twins by their digests and appends to the columns. */
#include "batch/batch.h"

#include <stdlib.h>

typedef struct sketched {
    dp_doc doc;
    uint64_t scope, url[2];
    double rank[DP_KEEP_RULES];
    uint32_t keys;
} sketched;

/* ---- on each thread ---- */

typedef struct worker {
    doppel_batch *batch;
    doppel_sketcher *sketcher;
    doppel_page_reader *pages;
    dp_buffer url;
} worker;

static void end(void *user, void *state) {
    worker *w = state;
    (void)user;
    if (!w)
        return;
    doppel_sketcher_free(w->sketcher);
    doppel_page_reader_free(w->pages);
    dp_buffer_free(&w->url);
    free(w);
}

static doppel_status begin(void *user, void **state) {
    doppel_batch *batch = user;
    worker *w = calloc(1, sizeof *w);
    if (!w)
        return DOPPEL_ERROR_MEMORY;
    w->batch = batch;
    unsigned wants = DOPPEL_WANT_DIGEST | (batch->has_sets ? DOPPEL_WANT_SET : 0U);
    doppel_status status = doppel_sketcher_create(batch->options.recipe, wants, &w->sketcher, NULL);
    if (status == DOPPEL_OK)
        status = doppel_page_reader_create(&w->pages);
    if (status == DOPPEL_OK)
        *state = w;
    else
        end(NULL, w);
    return status;
}

/* The canonical form of a URL, in w->url; empty when there is none. */
static doppel_status canonical(worker *w, const char *url, size_t length, const doppel_slice *base) {
    size_t room = 3 * (length + (base ? base->length : 0)) + 64;
    w->url.size = 0;
    if (!url || !length)
        return DOPPEL_OK;
    if (!dp_reserve(&w->url.data, &w->url.capacity, room, 1))
        return DOPPEL_ERROR_MEMORY;
    return doppel_url_canonical(url, length, base, w->batch->options.url_without, w->url.data, w->url.capacity,
                                &w->url.size);
}

/* What of the address counts: the URL itself for scopes; the page's own canonical link, or where a redirect leads, for
 * what is the same. */
static doppel_status note_address(worker *w, const doppel_document *d, const doppel_page *page, sketched *s) {
    const doppel_batch *batch = w->batch;
    doppel_slice base = {d->url, d->url_length};
    doppel_url_parts parts;
    doppel_status status = DOPPEL_OK;
    if (batch->scope_kind == DP_SCOPE_HOST || batch->scope_kind == DP_SCOPE_DOMAIN) {
        if ((status = canonical(w, d->url, d->url_length, NULL)) != DOPPEL_OK)
            return status;
        doppel_url_split(w->url.data, w->url.size, &parts);
        const doppel_slice *part = batch->scope_kind == DP_SCOPE_HOST ? &parts.host : &parts.domain;
        s->scope = part->length ? dp_murmur3(part->data, part->length, 0) : 0;
    } else if (batch->scope_kind == DP_SCOPE_FIELD) {
        doppel_slice value = d->extra[batch->scope_field];
        s->scope = value.length ? dp_murmur3(value.data, value.length, 0) : 0;
    }
    if (!(batch->by & DOPPEL_BY_URL))
        return status;
    if (d->alias)
        status = canonical(w, d->alias, d->alias_length, d->url ? &base : NULL);
    else if (page->canonical_length)
        status = canonical(w, page->canonical, page->canonical_length, d->url ? &base : NULL);
    else
        status = canonical(w, d->url, d->url_length, NULL);
    if (status == DOPPEL_OK && w->url.size) {
        s->url[0] = dp_murmur3(w->url.data, w->url.size, 0);
        s->url[1] = dp_murmur3(w->url.data, w->url.size, 1);
    }
    return status;
}

static void note_sketch(const doppel_batch *batch, const doppel_sketch *sketch, sketched *s) {
    memcpy(s->doc.digest, sketch->digest, sizeof s->doc.digest);
    memcpy(s->doc.fingerprint, sketch->fingerprint, sizeof s->doc.fingerprint);
    s->doc.words = sketch->words < UINT32_MAX ? (uint32_t)sketch->words : UINT32_MAX;
    if (batch->has_sets && sketch->words >= batch->options.min_words) {
        s->doc.set_count = (uint32_t)sketch->set_count;
        s->keys = (uint32_t)batch->stats.bands;
    }
}

static doppel_status pack(const sketched *s, const doppel_document *d, const doppel_sketch *sketch,
                          const uint32_t *keys, doppel_output *output) {
    doppel_status status = doppel_output_write(output, s, sizeof *s);
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, d->id, s->doc.id_length);
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, keys, s->keys * sizeof *keys);
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, sketch->set, s->doc.set_count * sizeof *sketch->set);
    return status;
}

static doppel_status sketch_document(void *state, const doppel_document *d, doppel_output *output) {
    worker *w = state;
    const doppel_batch *batch = w->batch;
    uint32_t keys[DP_MOST_BANDS];
    sketched s = {.doc = {.id_length = (uint32_t)d->id_length}};
    doppel_sketch sketch;
    doppel_page page;
    doppel_status status = doppel_document_text(w->pages, d, batch->options.content, &page);
    if (status == DOPPEL_OK)
        status = doppel_sketcher_run(w->sketcher, page.text, page.text_length, &sketch);
    if (status != DOPPEL_OK)
        return status;
    note_sketch(batch, &sketch, &s);
    dp_keep_rank(&batch->keep, d, page.text_length, s.rank);
    if (s.keys)
        status = dp_bands_keys(batch, sketch.set, sketch.set_count, keys);
    if (status == DOPPEL_OK)
        status = note_address(w, d, &page, &s);
    return status == DOPPEL_OK ? pack(&s, d, &sketch, keys, output) : status;
}

/* ---- in order ---- */

static bool same_words(const doppel_batch *batch, uint32_t a, uint32_t b) {
    return !memcmp(batch->docs[a].digest, batch->docs[b].digest, sizeof batch->docs[a].digest) &&
           (!batch->options.within || batch->scope[a] == batch->scope[b]);
}

static size_t place_of(const doppel_batch *batch, uint32_t document) {
    uint64_t scope = batch->options.within ? batch->scope[document] * 0x9E3779B97F4A7C15u : 0;
    return (size_t)((dp_load64(batch->docs[document].digest) ^ scope) & (batch->firsts_room - 1));
}

static bool grow_firsts(doppel_batch *batch) {
    size_t before = batch->firsts_room;
    uint32_t *old = batch->firsts, *table = calloc(before ? 2 * before : 4096, sizeof *table);
    if (!table)
        return false;
    batch->firsts = table;
    batch->firsts_room = before ? 2 * before : 4096;
    for (size_t i = 0; i < before; i++) {
        if (!old[i])
            continue;
        size_t at = place_of(batch, old[i] - 1);
        while (table[at])
            at = (at + 1) & (batch->firsts_room - 1);
        table[at] = old[i];
    }
    free(old);
    return true;
}

/* Finds the first document with the words of the last one, or makes this one the first. */
static bool find_twin(doppel_batch *batch, uint32_t document) {
    if (batch->firsts_count * 3 >= batch->firsts_room * 2 && !grow_firsts(batch))
        return false;
    size_t at = place_of(batch, document);
    for (; batch->firsts[at]; at = (at + 1) & (batch->firsts_room - 1))
        if (same_words(batch, batch->firsts[at] - 1, document)) {
            batch->docs[document].twin = batch->firsts[at] - 1;
            return true;
        }
    batch->firsts[at] = document + 1;
    batch->firsts_count++;
    return true;
}

static bool reserve_columns(doppel_batch *batch, size_t count) {
    size_t rules = batch->keep.count;
    return dp_reserve(&batch->docs, &batch->room, count, sizeof *batch->docs) &&
           (!batch->scope_kind || dp_reserve(&batch->scope, &batch->scope_room, count, sizeof *batch->scope)) &&
           (!(batch->by & DOPPEL_BY_URL) || dp_reserve(&batch->url, &batch->url_room, count, sizeof *batch->url)) &&
           (!rules || dp_reserve(&batch->ranks, &batch->rank_room, count * rules, sizeof *batch->ranks));
}

/* Appends a document to the columns. */
static bool note_document(doppel_batch *batch, const sketched *s) {
    uint32_t document = (uint32_t)batch->count;
    if (!reserve_columns(batch, batch->count + 1))
        return false;
    dp_doc *doc = &batch->docs[document];
    *doc = s->doc;
    doc->twin = document;
    doc->id_at = dp_spill_size(&batch->ids);
    if (batch->scope)
        batch->scope[document] = s->scope;
    if (batch->url)
        memcpy(batch->url[document], s->url, sizeof s->url);
    if (batch->ranks)
        memcpy(batch->ranks + batch->count * batch->keep.count, s->rank, batch->keep.count * sizeof *s->rank);
    batch->count++;
    batch->stats.empty += !dp_doc_has_words(doc);
    batch->stats.few_words += dp_doc_has_words(doc) && doc->words < batch->options.min_words;
    if (!(batch->by & DOPPEL_BY_CONTENT) || !dp_doc_has_words(doc))
        return true;
    return find_twin(batch, document);
}

/* Keeps the set and the keys of a document that may be near others. */
static doppel_status note_content(doppel_batch *batch, const uint32_t *keys, const char *set, doppel_error *error) {
    uint32_t document = (uint32_t)batch->count - 1;
    dp_doc *doc = &batch->docs[document];
    bool first = doc->twin == document;
    batch->stats.copies += !first;
    if (!(batch->by & DOPPEL_BY_CONTENT) || !first || doc->words < batch->options.min_words)
        doc->set_count = 0;
    else if (batch->options.method == DOPPEL_METHOD_SIMHASH) {
        if (!dp_reserve(&batch->rows, &batch->row_room, batch->row_count + 1, sizeof *batch->rows))
            return dp_no_memory(error);
        batch->rows[batch->row_count++] = document;
    }
    if (!doc->set_count)
        return DOPPEL_OK;
    doc->set_at = dp_spill_size(&batch->sets) / sizeof(uint64_t);
    doppel_status status = dp_spill_add(&batch->sets, set, doc->set_count * sizeof(uint64_t), error);
    return status == DOPPEL_OK ? dp_bands_add(batch, document, keys, error) : status;
}

/* doppel_work.emit */
static doppel_status take_documents(void *user, const char *bytes, size_t length) {
    doppel_batch *batch = user;
    const char *end_of_all = bytes + length;
    uint32_t keys[DP_MOST_BANDS];
    sketched s;
    while (bytes < end_of_all) {
        memcpy(&s, bytes, sizeof s);
        const char *id = bytes + sizeof s;
        const char *packed_keys = id + s.doc.id_length, *set = packed_keys + s.keys * sizeof *keys;
        memcpy(keys, packed_keys, s.keys * sizeof *keys);
        bytes = set + s.doc.set_count * sizeof(uint64_t);
        if (batch->count >= DP_NO_DOCUMENT - 1)
            return dp_fail(batch->last_error, DOPPEL_ERROR_INPUT, "more than 2^32 - 2 documents: split the input");
        if (!note_document(batch, &s))
            return dp_no_memory(batch->last_error);
        doppel_status status = dp_spill_add(&batch->ids, id, s.doc.id_length, batch->last_error);
        if (status == DOPPEL_OK)
            status = note_content(batch, keys, set, batch->last_error);
        if (status != DOPPEL_OK)
            return status;
    }
    return DOPPEL_OK;
}

/* ---- the call ---- */

static dp_reading *note_reading(doppel_batch *batch, const char *const *paths, size_t count, bool known) {
    if (!dp_reserve(&batch->readings, &batch->reading_room, batch->reading_count + 1, sizeof *batch->readings))
        return NULL;
    dp_reading *reading = &batch->readings[batch->reading_count];
    *reading = (dp_reading){.paths = calloc(count + 1, sizeof *reading->paths), .known = known};
    if (!reading->paths)
        return NULL;
    batch->reading_count++;
    for (; reading->count < count; reading->count++)
        if (!(reading->paths[reading->count] = strdup(paths[reading->count])))
            return NULL;
    return reading;
}

doppel_status doppel_batch_read(doppel_batch *batch, const char *const *paths, size_t path_count, bool known,
                                doppel_input_counts *counts, doppel_error *error) {
    doppel_work work = {.user = batch, .begin = begin, .document = sketch_document, .end = end, .emit = take_documents};
    doppel_error own = {0};
    double begun = dp_batch_clock();
    if (batch->ended)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "documents cannot be read once pairs were asked for");
    if (known && batch->count > batch->known)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "known documents have to be read before all others");
    dp_reading *reading = note_reading(batch, paths, path_count, known);
    if (!reading)
        return dp_no_memory(error);
    batch->last_error = &own;
    doppel_status status = doppel_input_run(paths, path_count, &batch->input, &work, &reading->counts, error);
    if (own.code != DOPPEL_OK && error)
        *error = own;
    if (known)
        batch->known = batch->count;
    if (counts)
        *counts = reading->counts;
    batch->stats.seconds_read += dp_batch_clock() - begun;
    return status;
}

doppel_status dp_batch_end_reading(doppel_batch *batch, doppel_error *error) {
    if (batch->ended)
        return DOPPEL_OK;
    free(batch->firsts);
    batch->firsts = NULL;
    batch->firsts_room = batch->firsts_count = 0;
    doppel_status status = dp_spill_flush(&batch->ids, error);
    if (status == DOPPEL_OK)
        status = dp_spill_flush(&batch->sets, error);
    if (status == DOPPEL_OK && batch->has_sets)
        status = dp_bands_flush(batch, error);
    batch->ended = status == DOPPEL_OK;
    return status;
}
