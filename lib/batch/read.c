/* read.c - documents in: text to sketches, on threads; the results, in order.
 *
 * A reading is what one call of doppel_batch_read reads. Threads make an entry of the journal of each document (text,
 * sketches, address, title); the entries are taken in input order (documents.c). Where the journal is not kept, an
 * entry has no set if the record can be read again (records.c), and only the names in it are written.
 *
 * A run that was stopped is resumed: a reading that the journal has to its end is not read again; of one that it has a
 * part of, the documents it has are skipped. */
#include "batch/batch.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- text to sketch ---- */

doppel_status dp_text_sketcher_init(dp_text_sketcher *text, const doppel_recipe *recipe, unsigned wants,
                                    doppel_content content) {
    *text = (dp_text_sketcher){.content = content};
    DP_TRY(doppel_sketcher_create(recipe, wants, &text->sketcher, NULL));
    return doppel_page_reader_create(&text->pages);
}

void dp_text_sketcher_free(dp_text_sketcher *text) {
    doppel_sketcher_free(text->sketcher);
    doppel_page_reader_free(text->pages);
}

doppel_status dp_text_sketcher_run(const dp_text_sketcher *text, const doppel_document *document, doppel_page *page,
                                   doppel_sketch *sketch) {
    DP_TRY(doppel_document_text(text->pages, document, text->content, page));
    return doppel_sketcher_run(text->sketcher, page->text, sketch);
}

/* ---- stdin ---- */

doppel_status dp_readings_rewind(doppel_batch *batch, const dp_reading *reading, doppel_error *error) {
    const doppel_batch_options *o = &batch->settings.options;
    const dp_input_paths paths = {(const char *const *)reading->paths, reading->count};
    if (o->work && dp_has_stdin(&paths))
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "a run that reads stdin cannot be resumed: write it to a file, or do without a work folder");
    return dp_stdin_rewind(&batch->readings.stdin_copy, &paths, o->tmp, batch->settings.input.stop, error);
}

/* ---- readings ---- */

bool doppel_batch_get_reading(const doppel_batch *batch, size_t number, doppel_batch_reading *reading) {
    if (number >= batch->readings.count)
        return false;
    const dp_reading *r = &batch->readings.reading[number];
    *reading = (doppel_batch_reading){.paths = (const char *const *)r->paths,
                                      .path_count = r->count,
                                      .known = r->known,
                                      .counts = r->counts,
                                      .indexes = r->indexes};
    return true;
}

static dp_reading *last_reading(dp_readings *readings) {
    return readings->count ? &readings->reading[readings->count - 1] : NULL;
}

/* A new reading of `count` paths; NULL: no memory. */
static dp_reading *add_reading(dp_readings *readings, size_t count, bool known) {
    if (!dp_reserve(&readings->reading, &readings->room, readings->count + 1, sizeof *readings->reading))
        return NULL;
    dp_reading *reading = &readings->reading[readings->count];
    *reading = (dp_reading){.paths = calloc(count + 1, sizeof *reading->paths), .known = known};
    if (!reading->paths)
        return NULL;
    readings->count++;
    return reading;
}

static bool add_path(dp_reading *reading, const char *path) {
    if (!(reading->paths[reading->count] = strdup(path)))
        return false;
    reading->count++;
    return true;
}

/* Writes to the journal what is read now: whether it is known documents, how many of its paths are index folders, and
 * the paths. */
static doppel_status begin_reading(doppel_batch *batch, const char *const *paths, size_t count, bool known) {
    dp_buffer body = {0};
    dp_reading *reading = add_reading(&batch->readings, count, known);
    bool made = reading;
    for (size_t i = 0; i < count && made; i++) {
        made = add_path(reading, paths[i]);
        reading->indexes += known && dp_is_index(paths[i]);
    }
    uint64_t flag = made ? known | reading->indexes << 1 : 0;
    made = made && dp_buffer_add(&body, &flag, sizeof flag);
    for (size_t i = 0; i < count && made; i++)
        made = dp_buffer_add(&body, paths[i], strlen(paths[i]) + 1);
    if (made && !count)
        made = dp_buffer_add(&body, "", 1);
    doppel_status status = made ? DOPPEL_OK : dp_no_memory(batch->readings.error);
    if (batch->journal.kept)
        DP_THEN(status, dp_journal_add(&batch->journal, DP_ENTRY_READING, (doppel_slice){body.data, body.size},
                                       (doppel_slice){NULL, 0}, batch->readings.error));
    dp_buffer_free(&body);
    return status;
}

static doppel_status end_reading(doppel_batch *batch, dp_reading *reading) {
    doppel_slice counts = dp_bytes(&reading->counts, sizeof reading->counts);
    reading->complete = true;
    if (!batch->journal.kept)
        return DOPPEL_OK;
    return dp_journal_add(&batch->journal, DP_ENTRY_END, counts, (doppel_slice){NULL, 0}, batch->readings.error);
}

/* Whether a reading that the journal has is the one that is asked for. */
static doppel_status check_reading(const dp_reading *reading, const char *const *paths, size_t count, bool known,
                                   doppel_error *error) {
    bool same = reading->count == count && reading->known == known;
    for (size_t i = 0; i < count && same; i++)
        same = !strcmp(reading->paths[i], paths[i]);
    if (same)
        return DOPPEL_OK;
    return dp_fail(error, DOPPEL_ERROR_USAGE, "the run that was stopped read other inputs (%s%s): give the same",
                   reading->count ? reading->paths[0] : "none", reading->count > 1 ? ", ..." : "");
}

/* ---- entries, taken in order ---- */

/* Whether a file that a stopped run has read is unchanged. A missing one is reported when it is opened. */
static doppel_status check_file(const dp_readings *readings, const dp_file_state *was, const char *name) {
    dp_file_state now = dp_file_state_get(name);
    if (!now.changed || (now.changed == was->changed && now.bytes == was->bytes))
        return DOPPEL_OK;
    return dp_fail_at(readings->error, DOPPEL_ERROR_INPUT, name, 0,
                      "has changed since it was read: start again with another folder");
}

/* A file whose records can be read again, without a journal: their positions are in it from now on. */
static doppel_status take_record_file(doppel_batch *batch, const dp_file_state *state, const char *name) {
    dp_record_files *files = &batch->readings.files;
    const dp_record_file *last = files->count ? &files->file[files->count - 1] : NULL;
    bool known = last_reading(&batch->readings)->known;
    if (last && last->known == known && !strcmp(last->path, name))
        return DOPPEL_OK;
    return dp_record_files_add(files, name, state, known) ? DOPPEL_OK : dp_no_memory(batch->readings.error);
}

/* The file that is being read. Each thread that comes to it adds an entry. */
static doppel_status take_file(doppel_batch *batch, const char *entry, size_t length) {
    dp_file_state was;
    dp_reading *reading = last_reading(&batch->readings);
    const char *body = entry + sizeof(dp_entry_prefix);
    char *name = strndup(body + sizeof was, length - sizeof(dp_entry_prefix) - sizeof was);
    if (!reading || !name || !dp_reserve(&reading->seen, &reading->seen_room, reading->seen_count + 1, sizeof name)) {
        free(name);
        return dp_no_memory(batch->readings.error);
    }
    memcpy(&was, body, sizeof was);
    bool again = reading->seen_count && !strcmp(reading->seen[reading->seen_count - 1], name);
    if (again || !batch->journal.kept) {
        doppel_status status = again ? DOPPEL_OK : take_record_file(batch, &was, name);
        free(name);
        return status;
    }
    reading->seen[reading->seen_count++] = name;
    reading->last_line = DP_NO_LINE;
    if (!batch->journal.replaying)
        return dp_append_file_add(&batch->journal.file, entry, length, batch->readings.error);
    return check_file(&batch->readings, &was, name);
}

/* The beginning of a reading that is read back. */
static doppel_status take_reading(doppel_batch *batch, const char *body, size_t length) {
    uint64_t flag;
    size_t count = 0;
    memcpy(&flag, body, sizeof flag);
    for (const char *path = body + sizeof flag; path < body + length; path += strlen(path) + 1)
        count++;
    dp_reading *reading = add_reading(&batch->readings, count, flag & 1);
    if (!reading)
        return dp_no_memory(batch->readings.error);
    reading->indexes = flag >> 1;
    for (const char *path = body + sizeof flag; path < body + length; path += strlen(path) + 1)
        if (!add_path(reading, path))
            return dp_no_memory(batch->readings.error);
    return DOPPEL_OK;
}

/* The end of a reading that is read back. */
static void take_end(doppel_batch *batch, const char *body) {
    dp_reading *reading = last_reading(&batch->readings);
    if (!reading)
        return;
    memcpy(&reading->counts, body, sizeof reading->counts);
    reading->complete = true;
    if (reading->known)
        batch->documents.known = batch->documents.count;
}

static doppel_status take_document(doppel_batch *batch, const char *entry, size_t length, uint64_t at) {
    dp_readings *readings = &batch->readings;
    dp_document_head h;
    uint64_t limit = batch->settings.options.limit;
    if (limit && batch->documents.count - batch->documents.known >= limit) {
        readings->limit_reached = true;
        return DOPPEL_ERROR_INTERRUPTED;
    }
    memcpy(&h, entry + sizeof(dp_entry_prefix), sizeof h);
    if (readings->count)
        last_reading(readings)->last_line = h.line;
    return dp_documents_take(batch, entry, length, at);
}

static doppel_status take_entry(doppel_batch *batch, const char *entry, const dp_entry_prefix *prefix, uint64_t at) {
    const char *body = entry + sizeof *prefix;
    size_t length = (size_t)prefix->size;
    switch (prefix->kind) {
    case DP_ENTRY_READING: return take_reading(batch, body, length - sizeof *prefix);
    case DP_ENTRY_FILE: return take_file(batch, entry, length);
    case DP_ENTRY_END: take_end(batch, body); return DOPPEL_OK;
    default: return take_document(batch, entry, length, at);
    }
}

doppel_status dp_readings_take(doppel_batch *batch, const char *bytes, size_t length, uint64_t at) {
    dp_entry_prefix prefix;
    size_t fetched = 0;
    for (size_t done = 0; done < length; done += (size_t)prefix.size) {
        if (done == fetched)
            fetched += dp_documents_fetch(batch, bytes + done, length - done);
        memcpy(&prefix, bytes + done, sizeof prefix);
        DP_TRY(take_entry(batch, bytes + done, &prefix, at + done));
    }
    return DOPPEL_OK;
}

/* ---- sketching: what a thread does with a document ---- */

typedef struct sketch_thread {
    doppel_batch *batch;
    dp_text_sketcher text;
    doppel_sketcher *titles; /* normalises titles; NULL: not needed */
    dp_buffer url;
    doppel_verdict verdict; /* of an index */
    dp_set_buffer set;      /* of the document at hand, if it is made */
    uint64_t *scratch;      /* to sort it with */
    size_t scratch_room;
    dp_buffer entry;      /* that is being packed */
    uint64_t record_file; /* the number + 1 of the file that was reported last */
    uint64_t read_file;   /* that of the file without positions that was looked at last, */
    bool read_again;      /* and whether it can be read again */
    dp_buffer file;       /* the name of the file at hand, with its NUL */
    bool file_seen;       /* a stopped run had read all of it, or (file_last) some */
    bool file_last;
    bool file_written; /* to the journal */
} sketch_thread;

static void end(void *user, void *state) {
    sketch_thread *t = state;
    (void)user;
    if (!t)
        return;
    dp_text_sketcher_free(&t->text);
    doppel_sketcher_free(t->titles);
    dp_buffer_free(&t->url);
    doppel_verdict_free(&t->verdict);
    free(t->set.hash);
    free(t->scratch);
    dp_buffer_free(&t->entry);
    dp_buffer_free(&t->file);
    free(t);
}

static doppel_status begin(void *user, void **state) {
    doppel_batch *batch = user;
    const dp_batch_settings *s = &batch->settings;
    unsigned wants = DOPPEL_WANT_DIGEST | (s->has_sets ? DOPPEL_WANT_FEATURES : 0U);
    sketch_thread *t = calloc(1, sizeof *t);
    if (!t)
        return DOPPEL_ERROR_MEMORY;
    t->batch = batch;
    doppel_status status = dp_text_sketcher_init(&t->text, s->recipe, wants, s->options.content);
    if (s->by & DOPPEL_BY_TITLE)
        DP_THEN(status, dp_title_sketcher_create(&t->titles, NULL));
    if (status == DOPPEL_OK)
        *state = t;
    else
        end(NULL, t);
    return status;
}

static uint64_t hash_scope(doppel_slice scope) {
    return scope.length ? dp_murmur3(scope.data, scope.length, 0) : 0;
}

doppel_status dp_scope_find(const dp_scope_rule *rule, const doppel_document *d, dp_buffer *url, uint64_t *scope) {
    doppel_url_parts parts;
    *scope = 0;
    if (rule->kind == DP_SCOPE_FIELD)
        *scope = hash_scope(d->extra[rule->field]);
    if (rule->kind == DP_SCOPE_FIELD || rule->kind == DP_SCOPE_NONE)
        return DOPPEL_OK;
    DP_TRY(dp_url_make(d->url, NULL, rule->url_without, url));
    doppel_url_split((doppel_slice){url->data, url->size}, &parts);
    *scope = hash_scope(rule->kind == DP_SCOPE_HOST ? parts.host : parts.domain);
    return DOPPEL_OK;
}

/* By the page's own canonical link, or where a redirect leads; leaves the address in t->url. */
static doppel_status find_address(sketch_thread *t, const doppel_document *d, const doppel_page *page,
                                  dp_document_head *h) {
    const dp_batch_settings *s = &t->batch->settings;
    t->url.size = 0;
    if (!(s->by & DOPPEL_BY_URL))
        return DOPPEL_OK;
    DP_TRY(dp_document_address(d, page, s->options.url_without, &t->url));
    for (uint32_t i = 0; i < 2 && t->url.size; i++)
        h->url[i] = dp_murmur3(t->url.data, t->url.size, i);
    return DOPPEL_OK;
}

/* Without words, the bytes say what is the same: those of the text, or of the page that it is taken from. */
static doppel_status digest_bytes(const doppel_document *d, dp_document_head *h) {
    uint8_t digest[EVP_MAX_MD_SIZE];
    doppel_slice bytes = d->html.data && !d->text.length ? d->html : d->text;
    if (!EVP_Digest(bytes.data, bytes.length, digest, NULL, EVP_sha256(), NULL))
        return DOPPEL_ERROR_MEMORY;
    memcpy(h->digest, digest, sizeof h->digest);
    return DOPPEL_OK;
}

static void set_sketch(const dp_batch_settings *s, const doppel_sketch *sketch, dp_document_head *h) {
    memcpy(h->digest, sketch->digest, sizeof h->digest);
    memcpy(h->fingerprint, sketch->fingerprint, sizeof h->fingerprint);
    h->words = sketch->words < UINT32_MAX ? (uint32_t)sketch->words : UINT32_MAX;
    if (s->has_sets && sketch->words >= s->options.min_words)
        h->keys = (uint32_t)s->bands;
}

/* Makes the set of the features, which are in the order of the text. */
static doppel_status make_set(sketch_thread *t, doppel_sketch *sketch) {
    size_t count = (size_t)sketch->features;
    if (!dp_reserve(&t->set.hash, &t->set.room, count, sizeof *t->set.hash) ||
        !dp_reserve(&t->scratch, &t->scratch_room, count, sizeof *t->scratch))
        return DOPPEL_ERROR_MEMORY;
    if (count)
        memcpy(t->set.hash, sketch->feature_hashes, count * sizeof *t->set.hash);
    dp_sort64(t->set.hash, count, t->scratch);
    sketch->set = t->set.hash;
    sketch->set_count = dp_unique64(t->set.hash, count);
    return DOPPEL_OK;
}

/* Makes the keys of the bands; where they are kept instead of the set, the wide ones become it. */
static doppel_status make_keys(sketch_thread *t, doppel_sketch *sketch, uint32_t *keys) {
    const dp_batch_settings *s = &t->batch->settings;
    size_t bands = (size_t)s->bands;
    if (!s->options.keys_for_sets)
        return dp_bands_keys(sketch->feature_hashes, sketch->features, s->bands, s->rows, keys);
    if (!dp_reserve(&t->set.hash, &t->set.room, bands, sizeof *t->set.hash))
        return DOPPEL_ERROR_MEMORY;
    DP_TRY(doppel_bands_wide_keys(sketch->feature_hashes, sketch->features, s->bands, s->rows, t->set.hash));
    for (size_t b = 0; b < bands; b++)
        keys[b] = dp_narrow_key(t->set.hash[b]);
    sketch->set = t->set.hash;
    sketch->set_count = bands;
    return DOPPEL_OK;
}

/* Whether the set of a document can be made later: a journal that is kept has the set, and what boilerplate leaves of
 * sets is needed of all. Sets how: from the record at its position, from the text where it is in memory, or else
 * from the text in a second pass. A pipe has none (stdin was copied), and a reading that ends at a limit is not cut the
 * same way twice. */
static bool is_made_later(sketch_thread *t, const doppel_document *d, dp_document_head *h) {
    const dp_batch_settings *s = &t->batch->settings;
    if (t->batch->journal.kept || s->options.boilerplate > 0)
        return false;
    if (d->record_at != DOPPEL_NO_POSITION && d->record.length < UINT32_MAX - 1) {
        h->record_at = d->record_at;
        h->record_length = (uint32_t)(d->record.length + (d->record.data[d->record.length] == '\r'));
        return true;
    }
    if (d->stays && d->text.length && d->text.length < UINT32_MAX) {
        h->in_memory = true;
        h->record_at = (uint64_t)(uintptr_t)d->text.data;
        h->record_length = (uint32_t)d->text.length;
        return true;
    }
    if (t->read_file != d->file_number + 1) {
        t->read_file = d->file_number + 1;
        t->read_again = d->from_table || dp_file_is_regular(d->file);
    }
    return t->read_again && !s->options.limit;
}

/* Whether an index has the document, whose address was found last. */
static doppel_status ask_indexes(sketch_thread *t, const doppel_sketch *sketch, doppel_slice title,
                                 dp_index_match *match) {
    const doppel_batch *batch = t->batch;
    const dp_asked asked = {.url = {t->url.data, t->url.size},
                            .title = title,
                            .sketch = batch->settings.by & DOPPEL_BY_CONTENT ? sketch : NULL};
    if (!batch->against || batch->readings.reading[batch->readings.at].known)
        return DOPPEL_OK;
    return dp_against_find(batch, &asked, &t->verdict, match);
}

static doppel_status write_entry(sketch_thread *t, dp_entry_kind kind, doppel_slice head, const doppel_slice *rest,
                                 size_t parts, doppel_output *output) {
    t->entry.size = 0;
    if (!dp_entry_pack(&t->entry, kind, head, rest, parts, t->batch->journal.kept))
        return DOPPEL_ERROR_MEMORY;
    return doppel_output_write(output, (doppel_slice){t->entry.data, t->entry.size});
}

static doppel_status sketch_document(sketch_thread *t, const doppel_document *d, doppel_output *output) {
    const dp_batch_settings *s = &t->batch->settings;
    uint32_t keys[DP_MOST_BANDS];
    dp_document_head h;
    doppel_sketch sketch;
    doppel_page page;
    doppel_slice title = {NULL, 0};
    memset(&h, 0, sizeof h); /* its padding goes to a file, too */
    h.id_length = (uint32_t)d->id.length;
    h.line = d->line;
    bool later = is_made_later(t, d, &h);
    DP_TRY(dp_text_sketcher_run(&t->text, d, &page, &sketch));
    if (t->titles)
        DP_TRY(dp_title_normalise(t->titles, page.title.data, page.title.length, &title));
    h.title_length = (uint32_t)title.length;
    set_sketch(s, &sketch, &h);
    if (!sketch.words)
        DP_TRY(digest_bytes(d, &h));
    dp_keep_rank(&s->keep, &(dp_keep_document){d->url, page.text.length, d->extra}, h.rank);
    if (h.keys)
        DP_TRY(make_keys(t, &sketch, keys));
    /* An index is queried with sets. */
    if (s->has_sets && (t->batch->against || (h.keys && !later && !s->options.keys_for_sets)))
        DP_TRY(make_set(t, &sketch));
    if (h.keys)
        h.set_count = later ? DP_SET_UNKNOWN : (uint32_t)sketch.set_count;
    DP_TRY(dp_scope_find(&s->scope, d, &t->url, &h.scope));
    DP_TRY(find_address(t, d, &page, &h));
    DP_TRY(ask_indexes(t, &sketch, title, &h.match));
    const doppel_slice rest[] = {d->id,
                                 title,
                                 {t->verdict.original_id.data, h.match.id_length},
                                 {(const char *)keys, h.keys * sizeof *keys},
                                 {(const char *)sketch.set, later ? 0 : h.set_count * sizeof *sketch.set}};
    return write_entry(t, DP_ENTRY_DOCUMENT, dp_bytes(&h, sizeof h), rest, sizeof rest / sizeof *rest, output);
}

/* ---- resuming: where a stopped run was ---- */

typedef struct named_file {
    const dp_reading *reading;
    const char *name;
} named_file;

static bool has_name(const void *user, uint64_t number) {
    const named_file *file = user;
    return !strcmp(file->reading->seen[number - 1], file->name);
}

/* The number of a file that a stopped run had begun, from 1; 0: it had not. */
static size_t find_file(const dp_reading *reading, const char *name) {
    uint64_t hash = dp_murmur3(name, strlen(name), 0);
    return (size_t)dp_hashmap_find_if(&reading->by_name, hash, has_name, &(named_file){reading, name});
}

/* Resumes after what the journal has. */
static bool resume(dp_reading *reading) {
    reading->resumed = reading->seen_count;
    reading->resumed_line = reading->last_line;
    for (size_t i = 0; i < reading->resumed; i++) {
        const named_file file = {reading, reading->seen[i]};
        uint64_t hash = dp_murmur3(file.name, strlen(file.name), 0);
        uint64_t *number = dp_hashmap_add_if(&reading->by_name, hash, has_name, &file);
        if (!number)
            return false;
        if (!*number)
            *number = i + 1;
    }
    return true;
}

/* Notes which file is at hand; whether a stopped run had it, and whether it was its last. */
static doppel_status enter_file(sketch_thread *t, const char *name) {
    const dp_readings *readings = &t->batch->readings;
    const dp_reading *reading = &readings->reading[readings->at];
    /* Only a run that can be resumed needs it. */
    if (!t->batch->settings.options.work || (t->file.size && !strcmp(t->file.data, name)))
        return DOPPEL_OK;
    t->file.size = 0;
    if (!dp_buffer_add(&t->file, name, strlen(name) + 1))
        return DOPPEL_ERROR_MEMORY;
    size_t number = find_file(reading, name);
    t->file_written = false;
    t->file_seen = number;
    t->file_last = number && number == reading->resumed;
    return DOPPEL_OK;
}

/* Writes the file to the journal, ahead of its first document there. */
static doppel_status write_file_entry(sketch_thread *t, doppel_output *output) {
    if (!t->file.size || t->file_written)
        return DOPPEL_OK;
    dp_file_state state = dp_file_state_get(t->file.data);
    const doppel_slice name = {t->file.data, t->file.size - 1};
    DP_TRY(write_entry(t, DP_ENTRY_FILE, dp_bytes(&state, sizeof state), &name, 1, output));
    t->file_written = true;
    return DOPPEL_OK;
}

/* Writes which file the next records are from, when they can be read again. */
static doppel_status write_record_file(sketch_thread *t, const doppel_document *d, doppel_output *output) {
    if (t->batch->journal.kept || d->record_at == DOPPEL_NO_POSITION || t->record_file == d->file_number + 1)
        return DOPPEL_OK;
    const dp_file_state state = {d->file_bytes, d->file_changed};
    const doppel_slice name = doppel_slice_of(d->file);
    DP_TRY(write_entry(t, DP_ENTRY_FILE, dp_bytes(&state, sizeof state), &name, 1, output));
    t->record_file = d->file_number + 1;
    return DOPPEL_OK;
}

/* Whether the journal of a stopped run has the document. */
static bool is_in_journal(const sketch_thread *t, const doppel_document *d) {
    const dp_reading *reading = &t->batch->readings.reading[t->batch->readings.at];
    if (!t->file_last)
        return t->file_seen;
    return reading->resumed_line != DP_NO_LINE && d->line <= reading->resumed_line;
}

/* ---- the work ---- */

/* doppel_work.document */
static doppel_status sketch_next(void *state, const doppel_document *d, doppel_output *output) {
    sketch_thread *t = state;
    DP_TRY(enter_file(t, d->file));
    if (is_in_journal(t, d))
        return DOPPEL_OK;
    DP_TRY(write_file_entry(t, output));
    DP_TRY(write_record_file(t, d, output));
    return sketch_document(t, d, output);
}

/* doppel_work.emit */
static doppel_status take_entries(void *user, doppel_slice bytes) {
    return dp_readings_take(user, bytes.data, bytes.length, 0);
}

/* ---- reading ---- */

/* Whether a path is the folder that this run itself is kept in. */
static bool is_own_folder(const char *work, const char *path) {
    struct stat theirs, own;
    return work && !stat(path, &theirs) && !stat(work, &own) && theirs.st_dev == own.st_dev &&
           theirs.st_ino == own.st_ino;
}

doppel_status dp_check_compared(const char *const *paths, size_t path_count, const doppel_input_counts *counts,
                                bool others, doppel_error *error) {
    if (counts->unopened)
        return dp_fail(error, DOPPEL_ERROR_INPUT,
                       "not everything to compare with could be read; --allow-bad continues without it");
    for (size_t i = 0; i < path_count; i++)
        if (dp_input_is_empty_folder(paths[i]))
            return dp_fail_at(error, DOPPEL_ERROR_INPUT, paths[i], 0,
                              "is an empty folder: there is nothing to compare with");
    if (!others && !counts->documents && counts->bytes)
        return dp_fail_at(error, DOPPEL_ERROR_INPUT, paths[0], 0, "has no document: there is nothing to compare with");
    return DOPPEL_OK;
}

/* Files of sketches among known paths are taken as they are, index folders are queried while others are read: `rest`
 * gets the paths that are left. */
static doppel_status take_known(doppel_batch *batch, const dp_reading *reading, const char **rest, size_t *left,
                                doppel_error *error) {
    char file[4096];
    for (size_t i = 0; i < reading->count; i++) {
        const char *path = reading->paths[i];
        if (reading->indexes && dp_is_index(path))
            continue;
        if (reading->known && is_own_folder(batch->settings.options.work, path))
            return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                              "is the folder of this run, which cannot be compared with itself");
        if (reading->known && dp_is_journal(path))
            DP_TRY(dp_journal_import(batch, path, error));
        else if (reading->known && dp_is_work(path, file))
            DP_TRY(dp_journal_import(batch, file, error));
        else
            rest[(*left)++] = path;
    }
    return DOPPEL_OK;
}

static doppel_status read_paths(doppel_batch *batch, dp_reading *reading, doppel_error *error) {
    const dp_batch_settings *s = &batch->settings;
    const doppel_input_options *input = reading->known ? &s->known_input : &s->input;
    dp_limit_watch watch;
    const doppel_input_options watched = dp_limit_watch_begin(&watch, batch, input);
    const doppel_work work = {.user = batch, .begin = begin, .document = sketch_next, .end = end, .emit = take_entries};
    dp_input_job job = {.options = &watched, .work = &work, .units = &reading->units};
    if (!(job.paths = reading->inputs = malloc((reading->count + 1) * sizeof *reading->inputs)))
        return dp_no_memory(error);
    doppel_status status = dp_against_open(batch, error);
    DP_THEN(status, take_known(batch, reading, reading->inputs, &reading->input_count, error));
    DP_THEN(status, dp_readings_rewind(batch, reading, error));
    size_t left = job.path_count = reading->input_count;
    reading->first = batch->documents.count;
    if (left)
        DP_THEN(status, dp_input_run(&job, &reading->counts, error));
    if (reading->known && input->refuse_bad)
        DP_THEN(status, dp_check_compared((const char *const *)reading->paths, reading->count, &reading->counts,
                                          left < reading->count, error));
    dp_against_end(batch, status, error);
    return status;
}

doppel_status dp_readings_run_again(doppel_batch *batch, const dp_reading *reading, const dp_input_numbered *numbered,
                                    const doppel_work *work, doppel_error *error) {
    doppel_input_options options = reading->known ? batch->settings.known_input : batch->settings.input;
    doppel_input_counts counts;
    options.bad = NULL; /* it was reported */
    options.unseen = NULL;
    options.strict = options.refuse_bad = false;
    const dp_input_job job = {.paths = reading->inputs,
                              .path_count = reading->input_count,
                              .options = &options,
                              .work = work,
                              .numbered = numbered};
    DP_TRY(dp_readings_rewind(batch, reading, error));
    DP_TRY(dp_input_run(&job, &counts, error));
    bool same = counts.documents == reading->counts.documents && counts.bytes == reading->counts.bytes;
    return same ? DOPPEL_OK : dp_inputs_changed(error);
}

/* What a reading has left to read. */
static doppel_status read_rest(doppel_batch *batch, dp_reading *reading, doppel_error *error) {
    if (reading->complete)
        return DOPPEL_OK;
    if (!resume(reading))
        return dp_no_memory(error);
    doppel_status status = read_paths(batch, reading, error);
    return status == DOPPEL_OK || batch->readings.limit_reached ? end_reading(batch, reading) : status;
}

doppel_status dp_readings_read(doppel_batch *batch, const char *const *paths, size_t count, bool known,
                               doppel_error *error) {
    dp_readings *readings = &batch->readings;
    if (readings->at < readings->count)
        DP_TRY(check_reading(&readings->reading[readings->at], paths, count, known, error));
    else
        DP_TRY(begin_reading(batch, paths, count, known));
    doppel_status status = read_rest(batch, &readings->reading[readings->at], error);
    readings->at++;
    return status;
}

/* ---- documents as entries ---- */

static doppel_status take_all(doppel_batch *batch, doppel_slice entries, doppel_error *error) {
    size_t length;
    for (size_t done = 0; done < entries.length; done += length) {
        if (!dp_entry_is_document((doppel_slice){entries.data + done, entries.length - done}, &length))
            return dp_fail(error, DOPPEL_ERROR_STORE, "no sketch of a document, or a damaged one, at byte %zu", done);
        DP_TRY(dp_readings_take(batch, entries.data + done, length, 0));
    }
    return DOPPEL_OK;
}

doppel_status doppel_batch_add_sketches(doppel_batch *batch, doppel_slice entries, bool known, doppel_error *error) {
    static const char *const paths[] = {"sketches"};
    dp_readings *readings = &batch->readings;
    if (batch->ended)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "documents cannot be added after pairs were requested");
    if (known && readings->at && !readings->reading[readings->at - 1].known)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "known documents must be added before all others");
    readings->error = error;
    DP_TRY(begin_reading(batch, paths, 1, known));
    DP_TRY(take_all(batch, entries, error));
    DP_TRY(end_reading(batch, last_reading(readings)));
    readings->at++;
    if (known)
        batch->documents.known = batch->documents.count;
    return DOPPEL_OK;
}
