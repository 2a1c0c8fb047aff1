/* sets.c - the sets of feature hashes, of the documents that are compared: dp_sets_begin, then dp_set_make on any
 * number of threads, each with a dp_set_maker of its own.
 *
 * Only documents that share a band with another are ever compared, and few do. So a set is not made while documents are
 * read, but when it is first asked for, from the record as it stands in its file. One that is made a second time will
 * be wanted again and again, as others are compared with it: it goes to a nameless file, as long as all temporary files
 * together stay below the size of the input. Documents whose records cannot be read again have their sets in the
 * journal's file, and so have all when the journal is kept. */
#include "batch/batch.h"
#include "input/input.h"

#include <stdlib.h>

struct dp_set_maker {
    doppel_batch *batch;
    dp_text_sketcher text;       /* created when it is first needed, as are the parsers */
    dp_record_parser *parser[2]; /* for records of the batch, and for known ones */
    dp_buffer record;
};

dp_set_maker *dp_set_maker_create(doppel_batch *batch) {
    dp_set_maker *maker = calloc(1, sizeof *maker);
    if (maker)
        maker->batch = batch;
    return maker;
}

void dp_set_maker_free(dp_set_maker *maker) {
    if (!maker)
        return;
    dp_text_sketcher_free(&maker->text);
    dp_record_parser_free(maker->parser[0]);
    dp_record_parser_free(maker->parser[1]);
    dp_buffer_free(&maker->record);
    free(maker);
}

/* ---- sets that were made more than once ---- */

void dp_sets_begin(doppel_batch *batch) {
    dp_sets *sets = &batch->sets;
    uint64_t bytes = 0, used = dp_append_file_size(&batch->journal.file) + dp_append_file_size(&batch->rows.keys);
    for (size_t i = 0; i < batch->readings.count; i++)
        bytes += batch->readings.reading[i].counts.bytes;
    sets->most = bytes > used ? bytes - used : 0;
}

void dp_sets_free(dp_sets *sets) {
    if (sets->file.open)
        dp_scratch_close(&sets->file);
    dp_hashmap_free(&sets->at);
    pthread_mutex_destroy(&sets->lock);
}

/* Where the set of a document stands in the file, + 1; 0: it does not. */
static uint64_t find_kept(dp_sets *sets, uint32_t document) {
    pthread_mutex_lock(&sets->lock);
    uint64_t at = dp_hashmap_find(&sets->at, document);
    pthread_mutex_unlock(&sets->lock);
    return at;
}

/* Takes room in the file: where, + 1; 0: there is no more. */
static doppel_status take_room(doppel_batch *batch, uint64_t bytes, uint64_t *at, doppel_error *error) {
    dp_sets *sets = &batch->sets;
    doppel_status status = DOPPEL_OK;
    pthread_mutex_lock(&sets->lock);
    *at = 0;
    if (bytes <= sets->most && sets->size <= sets->most - bytes) {
        if (!sets->file.open)
            status = dp_scratch_open(&sets->file, batch->settings.options.tmp, error);
        *at = sets->size + 1;
        sets->size += status == DOPPEL_OK ? bytes : 0;
    }
    pthread_mutex_unlock(&sets->lock);
    return status;
}

/* Keeps a set in the file, if there is room. */
static doppel_status keep(doppel_batch *batch, uint32_t document, const dp_set_buffer *set, doppel_error *error) {
    dp_sets *sets = &batch->sets;
    uint64_t at, bytes = set->count * sizeof *set->hash;
    DP_TRY(take_room(batch, bytes, &at, error));
    if (!at)
        return DOPPEL_OK;
    DP_TRY(dp_scratch_write(&sets->file, set->hash, (size_t)bytes, at - 1, error));
    pthread_mutex_lock(&sets->lock);
    uint64_t *kept = dp_hashmap_add(&sets->at, document);
    if (kept)
        *kept = at;
    pthread_mutex_unlock(&sets->lock);
    return kept ? DOPPEL_OK : dp_no_memory(error);
}

/* ---- from a record ---- */

static doppel_status get_parser(dp_set_maker *maker, bool known, dp_record_parser **parser) {
    const dp_batch_settings *s = &maker->batch->settings;
    if (!maker->text.sketcher)
        DP_TRY(dp_text_sketcher_init(&maker->text, s->recipe, DOPPEL_WANT_SET, s->options.content));
    if (!maker->parser[known])
        DP_TRY(dp_record_parser_create(known ? &s->known_input : &s->input, &maker->parser[known]));
    *parser = maker->parser[known];
    return DOPPEL_OK;
}

static doppel_status make_of_record(dp_set_maker *maker, const dp_doc *doc, dp_set_buffer *set, doppel_error *error) {
    dp_record_files *files = &maker->batch->readings.files;
    uint64_t position = dp_doc_position(doc);
    dp_record_parser *parser;
    doppel_document document;
    doppel_page page;
    doppel_sketch sketch;
    if (get_parser(maker, dp_record_files_find(files, position)->known, &parser) != DOPPEL_OK ||
        !dp_reserve(&maker->record.data, &maker->record.capacity, doc->record_length, 1))
        return dp_no_memory(error);
    DP_TRY(dp_record_files_read(files, position, maker->record.data, doc->record_length, error));
    const doppel_slice record = {maker->record.data, doc->record_length};
    doppel_status status = dp_record_parser_run(parser, record, &document);
    if (status == DOPPEL_ERROR_INPUT)
        return dp_inputs_changed(error);
    DP_THEN(status, dp_text_sketcher_run(&maker->text, &document, &page, &sketch));
    if (status != DOPPEL_OK || !dp_reserve(&set->hash, &set->room, sketch.set_count, sizeof *set->hash))
        return dp_no_memory(error);
    if (!sketch.set_count)
        return dp_inputs_changed(error);
    set->count = sketch.set_count;
    memcpy(set->hash, sketch.set, set->count * sizeof *set->hash);
    return DOPPEL_OK;
}

/* ---- any ---- */

static doppel_status read_stored(const dp_scratch *file, uint64_t at, dp_set_buffer *set, doppel_error *error) {
    if (!dp_reserve(&set->hash, &set->room, set->count, sizeof *set->hash))
        return dp_no_memory(error);
    return dp_scratch_read(file, set->hash, set->count * sizeof *set->hash, at, error);
}

static doppel_status get(dp_set_maker *maker, uint32_t document, dp_set_buffer *set, doppel_error *error) {
    doppel_batch *batch = maker->batch;
    dp_doc *doc = &batch->documents.doc[document];
    uint32_t count = dp_set_count(doc);
    set->count = count;
    if (!dp_doc_has_position(doc))
        return read_stored(&batch->journal.file.scratch, doc->set_at, set, error);
    uint64_t kept = count == DP_SET_UNKNOWN ? 0 : find_kept(&batch->sets, document);
    if (kept)
        return read_stored(&batch->sets.file, kept - 1, set, error);
    DP_TRY(make_of_record(maker, doc, set, error));
    if (count != DP_SET_UNKNOWN && set->count != count)
        return dp_inputs_changed(error);
    if (count != DP_SET_UNKNOWN)
        return keep(batch, document, set, error);
    __atomic_store_n(&doc->set_count, (uint32_t)set->count, __ATOMIC_RELAXED);
    return DOPPEL_OK;
}

static void note_failure(dp_sets *sets, const doppel_error *error) {
    pthread_mutex_lock(&sets->lock);
    if (sets->failure.code == DOPPEL_OK)
        sets->failure = *error;
    pthread_mutex_unlock(&sets->lock);
}

doppel_status dp_set_make(dp_set_maker *maker, uint32_t document, dp_set_buffer *set) {
    const doppel_df *frequent = maker->batch->boilerplate.frequent;
    doppel_error error = {0};
    doppel_status status = get(maker, document, set, &error);
    if (status != DOPPEL_OK) {
        note_failure(&maker->batch->sets, &error);
        return status;
    }
    if (!frequent)
        return DOPPEL_OK;
    size_t left = 0;
    for (size_t i = 0; i < set->count; i++)
        if (!doppel_df_get(frequent, set->hash[i]))
            set->hash[left++] = set->hash[i];
    set->count = left;
    return DOPPEL_OK;
}

doppel_status dp_sets_status(const dp_sets *sets, doppel_status status, doppel_error *error) {
    if (status != DOPPEL_OK && sets->failure.code == status && error)
        *error = sets->failure;
    return status;
}
