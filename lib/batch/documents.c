/* documents.c - documents, taken in input order: the columns and the rows of keys grow by an entry at a time
 * (dp_documents_take), twins are found by their digests, and the names go to the journal's file; if the journal is
 * kept, the whole entry does. */
#include "batch/batch.h"

#include <stdlib.h>

/* ---- twins ---- */

static bool have_same_words(const doppel_batch *batch, uint32_t a, uint32_t b) {
    const dp_documents *d = &batch->documents;
    return !memcmp(d->doc[a].digest, d->doc[b].digest, sizeof d->doc[a].digest) &&
           (!batch->settings.options.within || d->scope[a] == d->scope[b]);
}

/* Where a document with these words is looked for first: the digest says it, and the scope where that counts. */
static size_t place_of(const doppel_batch *batch, const uint8_t *digest, uint64_t scope) {
    uint64_t hash = dp_load64(digest) ^ (batch->settings.options.within ? scope * 0x9E3779B97F4A7C15u : 0);
    return (size_t)hash & (batch->documents.first_places - 1);
}

static size_t place_of_document(const doppel_batch *batch, uint32_t document) {
    const dp_documents *d = &batch->documents;
    return place_of(batch, d->doc[document].digest, d->scope ? d->scope[document] : 0);
}

/* The place of the first document with the words of this one, or the free one where it belongs. */
static uint32_t *locate_first(const doppel_batch *batch, uint32_t document) {
    const dp_documents *d = &batch->documents;
    size_t at = place_of_document(batch, document);
    while (d->firsts[at] && !have_same_words(batch, d->firsts[at] - 1, document))
        at = (at + 1) & (d->first_places - 1);
    return &d->firsts[at];
}

/* Places documents, no two of which have the same words. Where they stand in memory has no order: all are fetched
 * ahead. */
static void place_firsts(const doppel_batch *batch, const uint32_t *numbers, size_t count) {
    const dp_documents *d = &batch->documents;
    for (size_t i = 0; i < count; i++)
        if (numbers[i])
            __builtin_prefetch(&d->doc[numbers[i] - 1]);
    for (size_t i = 0; i < count; i++) {
        size_t at = numbers[i] ? place_of_document(batch, numbers[i] - 1) : 0;
        while (numbers[i] && d->firsts[at])
            at = (at + 1) & (d->first_places - 1);
        if (numbers[i])
            d->firsts[at] = numbers[i];
    }
}

static bool grow_firsts(doppel_batch *batch) {
    enum { LEAST_PLACES = 4096, AT_A_TIME = 64 };
    dp_documents *d = &batch->documents;
    size_t before = d->first_places, places = before ? 2 * before : LEAST_PLACES;
    uint32_t *old = d->firsts, *larger = calloc(places, sizeof *larger);
    if (!larger)
        return false;
    d->firsts = larger;
    d->first_places = places;
    for (size_t i = 0; i < before; i += AT_A_TIME)
        place_firsts(batch, old + i, AT_A_TIME);
    free(old);
    return true;
}

/* Finds the first document with the words of the last one, or makes this one the first. */
static bool find_twin(doppel_batch *batch) {
    dp_documents *d = &batch->documents;
    uint32_t last = (uint32_t)d->count - 1;
    if (d->first_count * 3 >= d->first_places * 2 && !grow_firsts(batch))
        return false;
    uint32_t *first = locate_first(batch, last);
    d->first_count += !*first;
    *first = *first ? *first : last + 1;
    d->doc[last].twin = *first - 1;
    return true;
}

/* ---- columns ---- */

static bool reserve_columns(const dp_batch_settings *s, dp_documents *d, size_t count) {
    size_t rules = s->keep.count;
    return dp_reserve(&d->doc, &d->doc_room, count, sizeof *d->doc) &&
           dp_reserve(&d->id_hash, &d->id_hash_room, count, sizeof *d->id_hash) &&
           (!s->scope.kind || dp_reserve(&d->scope, &d->scope_room, count, sizeof *d->scope)) &&
           (!(s->by & DOPPEL_BY_URL) || dp_reserve(&d->url, &d->url_room, count, sizeof *d->url)) &&
           (!(s->by & DOPPEL_BY_TITLE) || dp_reserve(&d->title, &d->title_room, count, sizeof *d->title)) &&
           (!rules || dp_reserve(&d->ranks, &d->rank_room, count * rules, sizeof *d->ranks));
}

/* Where what there is of a document stands in the journal's file. */
typedef struct entry_places {
    uint64_t id, set;
} entry_places;

static void set_doc(doppel_batch *batch, const dp_document_head *h, const entry_places *at, dp_doc *doc) {
    *doc = (dp_doc){.fingerprint = {h->fingerprint[0], h->fingerprint[1]},
                    .id_at = at->id,
                    .set_at = at->set,
                    .id_length = h->id_length,
                    .set_count = h->set_count,
                    .words = h->words,
                    .record_length = h->record_length};
    memcpy(doc->digest, h->digest, sizeof doc->digest);
    if (h->in_memory)
        doc->set_at = (uint64_t)DP_SET_OF_MEMORY << 62 | h->record_at;
    else if (h->record_length)
        doc->set_at = (uint64_t)DP_SET_OF_RECORD << 62 |
                      dp_record_files_position(&batch->readings.files, h->record_at, h->record_length);
    else if (h->set_count == DP_SET_UNKNOWN)
        doc->set_at = (uint64_t)DP_SET_OF_TEXT << 62;
}

/* Appends a document to the columns. One that an index has (`matched`) is known by its id alone. */
static bool add_to_columns(doppel_batch *batch, const dp_document_head *h, const entry_places *at, const char *id,
                           bool matched) {
    const dp_batch_settings *s = &batch->settings;
    dp_documents *d = &batch->documents;
    uint32_t document = (uint32_t)d->count;
    if (!reserve_columns(s, d, d->count + 1))
        return false;
    dp_doc *doc = &d->doc[document];
    set_doc(batch, h, at, doc);
    doc->twin = document;
    d->id_hash[document] = dp_murmur3(id, doc->id_length, 0);
    if (d->scope)
        d->scope[document] = h->scope;
    if (d->url)
        memcpy(d->url[document], matched ? (uint64_t[2]){0} : h->url, sizeof h->url);
    if (d->ranks)
        memcpy(d->ranks + d->count * s->keep.count, h->rank, s->keep.count * sizeof *h->rank);
    if (d->title)
        d->title[document] = (dp_title){doc->id_at + doc->id_length, matched ? 0 : h->title_length};
    d->count++;
    batch->stats.empty += !dp_doc_has_words(doc);
    batch->stats.few_words += dp_doc_has_words(doc) && doc->words < s->options.min_words;
    return !(s->by & DOPPEL_BY_CONTENT) || !dp_doc_has_digest(doc) || matched || find_twin(batch);
}

/* Makes the last document a row, if it may be near others by content. */
static doppel_status add_to_rows(doppel_batch *batch, const char *packed_keys, bool matched) {
    const dp_batch_settings *s = &batch->settings;
    uint32_t document = (uint32_t)batch->documents.count - 1, keys[DP_MOST_BANDS];
    dp_doc *doc = &batch->documents.doc[document];
    bool first = doc->twin == document;
    batch->stats.copies += !first;
    if (!(s->by & DOPPEL_BY_CONTENT) || !first || doc->words < s->options.min_words || matched) {
        doc->set_count = 0;
        return DOPPEL_OK;
    }
    if (!doc->set_count && s->options.method != DOPPEL_METHOD_SIMHASH)
        return DOPPEL_OK;
    memcpy(keys, packed_keys, (size_t)s->bands * sizeof *keys);
    return dp_key_rows_add(&batch->rows, document, keys, s->bands, batch->readings.error);
}

/* ---- documents that an index has: a list by document, and the originals by id ---- */

typedef struct hashed_id {
    const dp_index_matches *matches;
    uint64_t hash[2];
} hashed_id;

static bool has_hash(const void *user, uint64_t number) {
    const hashed_id *id = user;
    return !memcmp(id->matches->original[number - 1].hash, id->hash, sizeof id->hash);
}

/* The number of the original with this id. Ids are compared by 128 bits of their hash. */
static bool number_of(dp_index_matches *m, doppel_slice id, uint64_t id_at, uint32_t *number) {
    if (!m->key[0])
        m->key[0] = dp_random_number(), m->key[1] = dp_random_number();
    const uint64_t other_key[2] = {m->key[1], m->key[0]};
    hashed_id hashed = {m, {dp_siphash(id.data, id.length, m->key), dp_siphash(id.data, id.length, other_key)}};
    if (!dp_reserve(&m->original, &m->original_room, m->original_count + 1, sizeof *m->original))
        return false;
    uint64_t *known = dp_hashmap_add_if(&m->numbers, hashed.hash[0], has_hash, &hashed);
    if (!known)
        return false;
    if (!*known) {
        m->original[m->original_count++] =
            (dp_matched_original){{hashed.hash[0], hashed.hash[1]}, id_at, (uint32_t)id.length};
        *known = m->original_count;
    }
    *number = (uint32_t)*known - 1;
    return true;
}

/* Adds a document, which comes after all before it; `id` is that of its original, as it stands at `id_at` in the
 * journal. False: no memory. */
static bool add_match(dp_index_matches *m, const dp_matched_document *document, doppel_slice id, uint64_t id_at) {
    if (!dp_reserve(&m->document, &m->room, m->count + 1, sizeof *m->document))
        return false;
    dp_matched_document *added = &m->document[m->count];
    *added = *document;
    if (!number_of(m, id, id_at, &added->match.original))
        return false;
    m->count++;
    return true;
}

static int compare_documents(const void *key, const void *element) {
    uint32_t a = *(const uint32_t *)key, b = ((const dp_matched_document *)element)->document;
    return a < b ? -1 : a > b;
}

const dp_index_match *dp_matches_get(const dp_index_matches *m, uint32_t document) {
    if (!m->count)
        return NULL;
    const dp_matched_document *found =
        bsearch(&document, m->document, m->count, sizeof *m->document, compare_documents);
    return found ? &found->match : NULL;
}

/* ---- a document, taken in order ---- */

/* The last document, whose original in an index has this id. */
static bool add_to_matches(doppel_batch *batch, const dp_document_head *h, const entry_places *at, const char *id) {
    const dp_matched_document document = {.document = (uint32_t)batch->documents.count - 1, .match = h->match};
    return add_match(&batch->matches, &document, (doppel_slice){id, h->match.id_length},
                     at->id + h->id_length + h->title_length);
}

static doppel_status check_document(const doppel_batch *batch, const dp_document_head *h) {
    doppel_error *error = batch->readings.error;
    uint32_t bands = (uint32_t)batch->settings.bands;
    DP_TRY(dp_limits_check(batch, error));
    if (h->set_count ? !bands || h->keys != bands : h->keys)
        return dp_fail(error, DOPPEL_ERROR_STORE, "incomplete sketches: a document has %u keys of %u", h->keys, bands);
    return DOPPEL_OK;
}

/* Keeps the entry as it was packed; a document with a twin needs no set of its own. */
static doppel_status keep_entry(doppel_batch *batch, const char *entry, size_t length, bool without_set) {
    dp_journal *journal = &batch->journal;
    dp_document_head h;
    const char *body = entry + sizeof(dp_entry_prefix);
    if (journal->replaying)
        return DOPPEL_OK;
    memcpy(&h, body, sizeof h);
    if (!without_set || !h.keys)
        return dp_append_file_add(&journal->file, entry, length, batch->readings.error);
    h.keys = h.set_count = 0;
    size_t names = (size_t)h.id_length + h.title_length + h.match.id_length;
    return dp_journal_add(journal, DP_ENTRY_DOCUMENT, dp_bytes(&h, sizeof h), (doppel_slice){body + sizeof h, names},
                          batch->readings.error);
}

/* The names of an entry, and its set if it is there and needed. */
static doppel_status keep_names(doppel_batch *batch, const dp_document_head *h, const char *id, bool without_set) {
    dp_append_file *file = &batch->journal.file;
    size_t names = (size_t)h->id_length + h->title_length + h->match.id_length;
    DP_TRY(dp_append_file_add(file, id, names, batch->readings.error));
    if (without_set || h->set_count == DP_SET_UNKNOWN)
        return DOPPEL_OK;
    return dp_append_file_add(file, id + names + h->keys * sizeof(uint32_t), h->set_count * sizeof(uint64_t),
                              batch->readings.error);
}

doppel_status dp_documents_take(doppel_batch *batch, const char *entry, size_t length, uint64_t at) {
    const dp_readings *readings = &batch->readings;
    const dp_journal *journal = &batch->journal;
    const char *id = entry + sizeof(dp_entry_prefix) + sizeof(dp_document_head);
    dp_document_head h;
    memcpy(&h, entry + sizeof(dp_entry_prefix), sizeof h);
    size_t own = (size_t)h.id_length + h.title_length, names = own + h.match.id_length;
    /* All known documents are taken, whatever another batch found in an index. */
    bool matched = h.match.id_length && !(readings->count && readings->reading[readings->count - 1].known);
    DP_TRY(check_document(batch, &h));
    if (!journal->replaying)
        at = dp_append_file_size(&journal->file);
    entry_places places = {.id = journal->kept ? at + (uint64_t)(id - entry) : at};
    places.set = places.id + names + (journal->kept ? h.keys * sizeof(uint32_t) : 0);
    if (!add_to_columns(batch, &h, &places, id, matched) || (matched && !add_to_matches(batch, &h, &places, id + own)))
        return dp_no_memory(readings->error);
    DP_TRY(add_to_rows(batch, id + names, matched));
    const dp_doc *doc = &batch->documents.doc[batch->documents.count - 1];
    if (!journal->kept)
        return keep_names(batch, &h, id, !doc->set_count);
    /* What an index has may be wanted of a saved file, with its set. Of documents with the same words and one value of
     * `across`, which are no copies, any may come first where entries are added again. */
    bool any_first = batch->settings.options.across && batch->settings.by & DOPPEL_BY_CONTENT;
    return keep_entry(batch, entry, length, !doc->set_count && !matched && !any_first);
}

/* ---- entries that come next ---- */

/* At most this many entries are fetched together before they are taken. */
enum { FETCHED_TOGETHER = 256 };

size_t dp_documents_fetch(const doppel_batch *batch, const char *bytes, size_t length) {
    const dp_documents *d = &batch->documents;
    const uint32_t *place[FETCHED_TOGETHER];
    size_t done = 0, count = 0;
    dp_entry_prefix prefix;
    for (size_t entries = 0; done < length && entries < FETCHED_TOGETHER; entries++, done += (size_t)prefix.size) {
        dp_document_head h;
        memcpy(&prefix, bytes + done, sizeof prefix);
        if (prefix.kind != DP_ENTRY_DOCUMENT || !d->first_places)
            continue;
        memcpy(&h, bytes + done + sizeof prefix, sizeof h);
        place[count] = &d->firsts[place_of(batch, h.digest, h.scope)];
        __builtin_prefetch(place[count++], 1);
    }
    for (size_t i = 0; i < count; i++)
        if (*place[i])
            __builtin_prefetch(&d->doc[*place[i] - 1]);
    return done;
}
