/* documents.c - what threads found out about documents, in order: twins are told by their digests, columns and the
 * journal grow. */
#include "batch/batch.h"

#include <stdlib.h>

/* ---- twins ---- */

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

/* ---- columns ---- */

static bool reserve_columns(doppel_batch *batch, size_t count) {
    size_t rules = batch->keep.count;
    return dp_reserve(&batch->docs, &batch->room, count, sizeof *batch->docs) &&
           dp_reserve(&batch->id_hash, &batch->id_hash_room, count, sizeof *batch->id_hash) &&
           (!batch->scope_kind || dp_reserve(&batch->scope, &batch->scope_room, count, sizeof *batch->scope)) &&
           (!(batch->by & DOPPEL_BY_URL) || dp_reserve(&batch->url, &batch->url_room, count, sizeof *batch->url)) &&
           (!(batch->by & DOPPEL_BY_TITLE) ||
            dp_reserve(&batch->title, &batch->title_room, count, sizeof *batch->title)) &&
           (!rules || dp_reserve(&batch->ranks, &batch->rank_room, count * rules, sizeof *batch->ranks));
}

/* Appends a document to the columns. One that an index has is known by its id alone. */
static bool note_document(doppel_batch *batch, const dp_sketched *s, bool found) {
    uint32_t document = (uint32_t)batch->count;
    if (!reserve_columns(batch, batch->count + 1))
        return false;
    dp_doc *doc = &batch->docs[document];
    *doc = s->doc;
    doc->twin = document;
    if (batch->scope)
        batch->scope[document] = s->scope;
    if (batch->url)
        memcpy(batch->url[document], found ? (uint64_t[2]){0} : s->url, sizeof s->url);
    if (batch->ranks)
        memcpy(batch->ranks + batch->count * batch->keep.count, s->rank, batch->keep.count * sizeof *s->rank);
    if (batch->by & DOPPEL_BY_TITLE)
        batch->title[document] = (dp_title){doc->id_at + doc->id_length, found ? 0 : s->title_length};
    batch->count++;
    batch->stats.empty += !dp_doc_has_words(doc);
    batch->stats.few_words += dp_doc_has_words(doc) && doc->words < batch->options.min_words;
    if (!(batch->by & DOPPEL_BY_CONTENT) || !dp_doc_has_digest(doc) || found)
        return true;
    return find_twin(batch, document);
}

/* Keeps the keys of a document that may be near others; the set stands in the journal. */
static doppel_status note_content(doppel_batch *batch, const char *packed_keys, bool found) {
    uint32_t document = (uint32_t)batch->count - 1, keys[DP_MOST_BANDS];
    dp_doc *doc = &batch->docs[document];
    bool first = doc->twin == document;
    batch->stats.copies += !first;
    if (!(batch->by & DOPPEL_BY_CONTENT) || !first || doc->words < batch->options.min_words || found)
        doc->set_count = 0;
    else if (batch->options.method == DOPPEL_METHOD_SIMHASH) {
        if (!dp_reserve(&batch->rows, &batch->row_room, batch->row_count + 1, sizeof *batch->rows))
            return dp_no_memory(batch->last_error);
        batch->rows[batch->row_count++] = document;
    }
    if (!doc->set_count)
        return DOPPEL_OK;
    memcpy(keys, packed_keys, (size_t)batch->stats.bands * sizeof *keys);
    return dp_bands_add(batch, document, keys, batch->last_error);
}

/* ---- entries ---- */

static dp_reading *last_reading(doppel_batch *batch) {
    return batch->reading_count ? &batch->readings[batch->reading_count - 1] : NULL;
}

/* The last document, whose original in an index has this id. */
static bool note_found(doppel_batch *batch, const dp_sketched *s, const char *id) {
    const dp_found_document document = {.document = (uint32_t)batch->count - 1, .found = s->found};
    return dp_finds_add(&batch->finds, &document, (doppel_slice){id, s->found.id_length},
                        s->doc.id_at + s->doc.id_length + s->title_length);
}

/* A document: `body` is its dp_sketched and what follows it. */
static doppel_status note_document_entry(doppel_batch *batch, const char *body, size_t length, uint64_t at) {
    dp_sketched s;
    memcpy(&s, body, sizeof s);
    const dp_reading *reading = last_reading(batch);
    size_t own = (size_t)s.doc.id_length + s.title_length, named = own + s.found.id_length;
    /* Known documents are all there, whatever another batch has found. */
    bool found = s.found.id_length && !(reading && reading->known);
    if (!batch->replaying)
        at = dp_spill_size(&batch->journal);
    if (batch->count >= DP_NO_DOCUMENT - 1)
        return dp_fail(batch->last_error, DOPPEL_ERROR_INPUT, "more than 2^32 - 2 documents: split the input");
    uint32_t bands = batch->has_sets ? (uint32_t)batch->stats.bands : 0;
    if (s.doc.set_count ? !bands || s.keys != bands : s.keys)
        return dp_fail(batch->last_error, DOPPEL_ERROR_STORE,
                       "sketches that are not whole: a document has %u keys of %u", s.keys, bands);
    s.doc.id_at = at + sizeof(dp_entry) + sizeof s;
    s.doc.set_at = s.doc.id_at + named + s.keys * sizeof(uint32_t);
    if (!note_document(batch, &s, found) || (found && !note_found(batch, &s, body + sizeof s + own)))
        return dp_no_memory(batch->last_error);
    batch->id_hash[batch->count - 1] = dp_murmur3(body + sizeof s, s.doc.id_length, 0);
    doppel_status status = note_content(batch, body + sizeof s + named, found);
    if (status != DOPPEL_OK || batch->replaying)
        return status;
    /* What is known by its twin needs no set of its own; what an index has may be wanted of a saved file. */
    if (!batch->docs[batch->count - 1].set_count && !found) {
        s.keys = s.doc.set_count = 0;
        length = sizeof s + named;
    }
    doppel_slice part[] = {{(const char *)&s, sizeof s}, {body + sizeof s, length - sizeof s}};
    return dp_journal_add(batch, DP_ENTRY_DOCUMENT, part, 2);
}

/* Whether a file that a stopped run has read is what it was. One that is gone is told when it is opened. */
static doppel_status check_file(doppel_batch *batch, const dp_seen_file *seen, const char *name) {
    dp_seen_file now;
    dp_seen_file_get(name, &now);
    if (!now.changed || (now.changed == seen->changed && now.bytes == seen->bytes))
        return DOPPEL_OK;
    return dp_fail_at(batch->last_error, DOPPEL_ERROR_INPUT, name, 0,
                      "has changed since it was read: begin again, with another folder");
}

/* A file, which is where reading is now. */
static doppel_status note_file(doppel_batch *batch, const char *body, size_t length) {
    dp_reading *reading = last_reading(batch);
    size_t head = sizeof(dp_seen_file);
    char *name = strndup(body + head, length - head);
    if (!reading || !name || !dp_reserve(&reading->seen, &reading->seen_room, reading->seen_count + 1, sizeof name)) {
        free(name);
        return dp_no_memory(batch->last_error);
    }
    bool again = reading->seen_count && !strcmp(reading->seen[reading->seen_count - 1], name);
    if (again) {
        free(name);
    } else {
        reading->seen[reading->seen_count++] = name;
        reading->last_line = DP_NO_LINE;
    }
    if (batch->replaying && !again) {
        dp_seen_file seen;
        memcpy(&seen, body, sizeof seen);
        return check_file(batch, &seen, name);
    }
    if (again || batch->replaying)
        return DOPPEL_OK;
    doppel_slice part[] = {{body, head}, {body + head, length - head}};
    return dp_journal_add(batch, DP_ENTRY_FILE, part, 2);
}

/* The beginning of a reading that is read back: whether it is of known documents, how many of its paths are index
 * folders, and the paths. */
static doppel_status note_reading(doppel_batch *batch, const char *body, size_t length) {
    uint64_t known;
    if (!dp_reserve(&batch->readings, &batch->reading_room, batch->reading_count + 1, sizeof *batch->readings))
        return dp_no_memory(batch->last_error);
    dp_reading *reading = &batch->readings[batch->reading_count++];
    memcpy(&known, body, sizeof known);
    *reading = (dp_reading){.known = known & 1, .indexes = known >> 1};
    for (const char *path = body + sizeof known; path < body + length; path += strlen(path) + 1) {
        char **more = realloc(reading->paths, (reading->count + 1) * sizeof *more);
        if (!more || !(more[reading->count] = strdup(path)))
            return dp_no_memory(batch->last_error);
        reading->paths = more;
        reading->count++;
    }
    return DOPPEL_OK;
}

/* The end of a reading that is read back. */
static void note_end(doppel_batch *batch, const char *body) {
    dp_reading *reading = last_reading(batch);
    if (!reading)
        return;
    memcpy(&reading->counts, body, sizeof reading->counts);
    reading->complete = true;
    if (reading->known)
        batch->known = batch->count;
}

static doppel_status note_entry(doppel_batch *batch, uint64_t kind, const char *body, size_t length, uint64_t at) {
    dp_reading *reading = last_reading(batch);
    dp_sketched s;
    switch (kind) {
    case DP_ENTRY_READING: return note_reading(batch, body, length);
    case DP_ENTRY_FILE: return note_file(batch, body, length);
    case DP_ENTRY_END: note_end(batch, body); return DOPPEL_OK;
    default: break;
    }
    memcpy(&s, body, sizeof s);
    if (reading)
        reading->last_line = s.line;
    return note_document_entry(batch, body, length, at);
}

doppel_status dp_note_entries(doppel_batch *batch, const char *bytes, size_t length, uint64_t at) {
    doppel_status status = DOPPEL_OK;
    for (size_t done = 0; done < length && status == DOPPEL_OK;) {
        dp_entry entry;
        memcpy(&entry, bytes + done, sizeof entry);
        if (batch->options.limit && entry.kind == DP_ENTRY_DOCUMENT &&
            batch->count - batch->known >= batch->options.limit) {
            batch->limit_reached = true;
            return DOPPEL_ERROR_INTERRUPTED;
        }
        status =
            note_entry(batch, entry.kind, bytes + done + sizeof entry, (size_t)entry.size - sizeof entry, at + done);
        done += (size_t)entry.size;
    }
    return status;
}
