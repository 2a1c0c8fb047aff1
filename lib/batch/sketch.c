/* sketch.c - what a thread does with a document: text, sketches, address, title, packed as entries of the journal. */
#include "sketch/sketch.h"
#include "batch/batch.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct worker {
    doppel_batch *batch;
    doppel_sketcher *sketcher;
    doppel_sketcher *titles; /* normalises titles; NULL: not needed */
    doppel_page_reader *pages;
    dp_buffer url;
    doppel_verdict verdict; /* of an index */
    dp_buffer file;         /* the name of the file at hand, with its NUL */
    bool file_seen;         /* a stopped run had read all of it, or (file_last) some */
    bool file_last;
    bool file_told; /* to the journal */
} worker;

static void end(void *user, void *state) {
    worker *w = state;
    (void)user;
    if (!w)
        return;
    doppel_sketcher_free(w->sketcher);
    doppel_sketcher_free(w->titles);
    doppel_page_reader_free(w->pages);
    dp_buffer_free(&w->url);
    doppel_verdict_free(&w->verdict);
    dp_buffer_free(&w->file);
    free(w);
}

static doppel_status begin(void *user, void **state) {
    doppel_batch *batch = user;
    worker *w = calloc(1, sizeof *w);
    if (!w)
        return DOPPEL_ERROR_MEMORY;
    w->batch = batch;
    unsigned wants = DOPPEL_WANT_DIGEST | (batch->has_sets ? DOPPEL_WANT_SET : 0U);
    const doppel_recipe *recipe = batch->options.recipe ? batch->options.recipe : dp_recipe_default();
    doppel_status status = doppel_sketcher_create(recipe, wants, &w->sketcher, NULL);
    if (status == DOPPEL_OK && batch->by & DOPPEL_BY_TITLE)
        status = dp_title_sketcher_create(&w->titles, NULL);
    if (status == DOPPEL_OK)
        status = doppel_page_reader_create(&w->pages);
    if (status == DOPPEL_OK)
        *state = w;
    else
        end(NULL, w);
    return status;
}

/* What of the address counts: the URL itself for scopes; the page's own canonical link, or where a redirect leads, for
 * what is the same. */
static doppel_status note_address(worker *w, const doppel_document *d, const doppel_page *page, dp_sketched *s) {
    const doppel_batch *batch = w->batch;
    unsigned without = batch->options.url_without;
    doppel_url_parts parts;
    doppel_status status = DOPPEL_OK;
    if (batch->scope_kind == DP_SCOPE_HOST || batch->scope_kind == DP_SCOPE_DOMAIN) {
        if ((status = dp_url_make(d->url, NULL, without, &w->url)) != DOPPEL_OK)
            return status;
        doppel_url_split((doppel_slice){w->url.data, w->url.size}, &parts);
        const doppel_slice *part = batch->scope_kind == DP_SCOPE_HOST ? &parts.host : &parts.domain;
        s->scope = part->length ? dp_murmur3(part->data, part->length, 0) : 0;
    } else if (batch->scope_kind == DP_SCOPE_FIELD) {
        doppel_slice value = d->extra[batch->scope_field];
        s->scope = value.length ? dp_murmur3(value.data, value.length, 0) : 0;
    }
    w->url.size = 0;
    if (!(batch->by & DOPPEL_BY_URL))
        return status;
    status = dp_document_address(d, page, without, &w->url);
    if (status == DOPPEL_OK && w->url.size) {
        s->url[0] = dp_murmur3(w->url.data, w->url.size, 0);
        s->url[1] = dp_murmur3(w->url.data, w->url.size, 1);
    }
    return status;
}

/* Without words, the bytes say what is the same: those of the text, or of the page that it is taken from. */
static doppel_status note_bytes(const doppel_document *d, dp_sketched *s) {
    uint8_t digest[EVP_MAX_MD_SIZE];
    bool page = d->html.data && !d->text.length;
    if (!EVP_Digest(page ? d->html.data : d->text.data, page ? d->html.length : d->text.length, digest, NULL,
                    EVP_sha256(), NULL))
        return DOPPEL_ERROR_MEMORY;
    memcpy(s->doc.digest, digest, sizeof s->doc.digest);
    return DOPPEL_OK;
}

static void note_sketch(const doppel_batch *batch, const doppel_sketch *sketch, dp_sketched *s) {
    memcpy(s->doc.digest, sketch->digest, sizeof s->doc.digest);
    memcpy(s->doc.fingerprint, sketch->fingerprint, sizeof s->doc.fingerprint);
    s->doc.words = sketch->words < UINT32_MAX ? (uint32_t)sketch->words : UINT32_MAX;
    if (batch->has_sets && sketch->words >= batch->options.min_words) {
        s->doc.set_count = (uint32_t)sketch->set_count;
        s->keys = (uint32_t)batch->stats.bands;
    }
}

/* Whether an index has the document, whose address was noted last. */
static doppel_status look_up(worker *w, const doppel_sketch *sketch, doppel_slice title, dp_found *found) {
    const doppel_batch *batch = w->batch;
    const dp_asked asked = {
        .url = {w->url.data, w->url.size}, .title = title, .sketch = batch->by & DOPPEL_BY_CONTENT ? sketch : NULL};
    if (!batch->against || batch->readings[batch->reading_at].known)
        return DOPPEL_OK;
    return dp_against_find(batch, &asked, &w->verdict, found);
}

/* ---- where reading is ---- */

/* Whether a stopped run had the file, and whether it was its last. */
static void look_up_file(worker *w) {
    const dp_reading *reading = &w->batch->readings[w->batch->reading_at];
    size_t number = dp_reading_find(reading, w->file.data);
    w->file_seen = number < reading->resumed;
    w->file_last = w->file_seen && number == reading->resumed - 1;
}

void dp_seen_file_get(const char *name, dp_seen_file *seen) {
    struct stat known;
    *seen = (dp_seen_file){0};
    if (!stat(name, &known))
        *seen = (dp_seen_file){(uint64_t)known.st_size, known.st_mtim.tv_sec * 1000000000LL + known.st_mtim.tv_nsec};
}

/* Notes which file is at hand. */
static doppel_status enter_file(worker *w, const char *name) {
    /* Only a run that may be stopped needs to know. */
    if (!w->batch->options.work || (w->file.size && !strcmp(w->file.data, name)))
        return DOPPEL_OK;
    w->file.size = 0;
    if (!dp_buffer_add(&w->file, name, strlen(name) + 1))
        return DOPPEL_ERROR_MEMORY;
    w->file_told = false;
    look_up_file(w);
    return DOPPEL_OK;
}

/* Tells the journal, ahead of the first document that it gets of the file. */
static doppel_status tell_file(worker *w, doppel_output *output) {
    if (!w->file.size || w->file_told)
        return DOPPEL_OK;
    dp_seen_file seen;
    size_t length = w->file.size - 1;
    dp_seen_file_get(w->file.data, &seen);
    dp_entry entry = {.size = sizeof entry + sizeof seen + length, .kind = DP_ENTRY_FILE};
    doppel_status status = doppel_output_write(output, dp_bytes(&entry, sizeof entry));
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, dp_bytes(&seen, sizeof seen));
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, (doppel_slice){w->file.data, length});
    w->file_told = status == DOPPEL_OK;
    return status;
}

/* Whether the journal of a stopped run has the document. */
static bool is_known(const worker *w, const doppel_document *d) {
    const dp_reading *reading = &w->batch->readings[w->batch->reading_at];
    if (!w->file_last)
        return w->file_seen;
    return reading->resumed_line != DP_NO_LINE && d->line <= reading->resumed_line;
}

/* ---- a document ---- */

static doppel_status pack(const dp_sketched *s, const doppel_slice *part, size_t parts, doppel_output *output) {
    dp_entry entry = {.size = sizeof entry + sizeof *s, .kind = DP_ENTRY_DOCUMENT};
    for (size_t i = 0; i < parts; i++)
        entry.size += part[i].length;
    doppel_status status = doppel_output_write(output, dp_bytes(&entry, sizeof entry));
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, dp_bytes(s, sizeof *s));
    for (size_t i = 0; i < parts && status == DOPPEL_OK; i++)
        status = doppel_output_write(output, part[i]);
    return status;
}

static doppel_status sketch_document(worker *w, const doppel_document *d, doppel_output *output) {
    const doppel_batch *batch = w->batch;
    uint32_t keys[DP_MOST_BANDS];
    dp_sketched s;
    doppel_sketch sketch;
    doppel_page page;
    doppel_slice title = {NULL, 0};
    memset(&s, 0, sizeof s); /* what lies between its members goes to a file, too */
    s.doc.id_length = (uint32_t)d->id.length;
    s.line = d->line;
    doppel_status status = doppel_document_text(w->pages, d, batch->options.content, &page);
    if (status == DOPPEL_OK && w->titles)
        status = dp_title_normalise(w->titles, page.title.data, page.title.length, &title);
    if (status == DOPPEL_OK)
        status = doppel_sketcher_run(w->sketcher, page.text, &sketch);
    if (status != DOPPEL_OK)
        return status;
    note_sketch(batch, &sketch, &s);
    if (!sketch.words && (status = note_bytes(d, &s)) != DOPPEL_OK)
        return status;
    s.title_length = (uint32_t)title.length;
    const dp_keep_document kept_by = {{d->url.data, d->url.length}, page.text.length, d->extra};
    dp_keep_rank(&batch->keep, &kept_by, s.rank);
    if (s.keys)
        status = dp_bands_keys(sketch.set, sketch.set_count, batch->stats.bands, batch->stats.rows, keys);
    if (status == DOPPEL_OK)
        status = note_address(w, d, &page, &s);
    if (status == DOPPEL_OK)
        status = look_up(w, &sketch, title, &s.found);
    doppel_slice part[] = {{d->id.data, d->id.length},
                           title,
                           {w->verdict.original_id.data, s.found.id_length},
                           {(const char *)keys, s.keys * sizeof *keys},
                           {(const char *)sketch.set, s.doc.set_count * sizeof *sketch.set}};
    return status == DOPPEL_OK ? pack(&s, part, sizeof part / sizeof *part, output) : status;
}

/* doppel_work.document */
static doppel_status take_document(void *state, const doppel_document *d, doppel_output *output) {
    worker *w = state;
    doppel_status status = enter_file(w, d->file);
    if (status != DOPPEL_OK || is_known(w, d))
        return status;
    if ((status = tell_file(w, output)) != DOPPEL_OK)
        return status;
    return sketch_document(w, d, output);
}

/* doppel_work.emit */
static doppel_status take_entries(void *user, doppel_slice bytes) {
    return dp_note_entries(user, bytes.data, bytes.length, 0);
}

doppel_work dp_sketch_work(doppel_batch *batch) {
    return (doppel_work){.user = batch, .begin = begin, .document = take_document, .end = end, .emit = take_entries};
}
