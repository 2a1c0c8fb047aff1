/* sets.c - the sets of feature hashes, of the documents that are compared: dp_sets_begin, then dp_set_make on any
 * number of threads, each with a dp_set_maker of its own.
 *
 * Only documents that share a band with another are ever compared, and few do. So a set is not made while documents are
 * read, but when it is first asked for, from the record in its file. One that is made a second time will be needed many
 * more times, as others are compared with it: it is written to a nameless file, as long as all temporary files together
 * are smaller than the input.
 *
 * Documents of other inputs (compressed, or of other formats) have no position. Once the candidates are known, a second
 * pass over these inputs copies the texts of those among them to a nameless file (dp_sets_read_texts), of which sets
 * are made in the same way; the texts of a table in memory are there already. What comes from a pipe has its sets in
 * the journal's file, and so have all documents when the journal is kept. */
#include "batch/batch.h"

#include <stdlib.h>
#include <zstd.h>

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

doppel_status dp_sets_begin(doppel_batch *batch, doppel_error *error) {
    dp_sets *sets = &batch->sets;
    uint64_t bytes = 0, used = dp_append_file_size(&batch->journal.file) + dp_append_file_size(&batch->rows.keys);
    for (size_t i = 0; i < batch->readings.count; i++)
        bytes += batch->readings.reading[i].counts.bytes;
    sets->most = bytes > used ? bytes - used : 0;
    return dp_append_file_open(&sets->texts, NULL, NULL, batch->settings.options.tmp, error);
}

void dp_sets_free(dp_sets *sets) {
    if (sets->file.open)
        dp_scratch_close(&sets->file);
    dp_append_file_close(&sets->texts);
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

/* ---- texts, in a second pass ---- */

typedef struct text_reading {
    doppel_batch *batch;
    const dp_reading *reading;
    const uint8_t *wanted; /* a bit a document of the batch */
} text_reading;

/* What a thread takes texts out of pages with, and packs them. */
typedef struct text_taker {
    const text_reading *r;
    doppel_page_reader *pages;
    ZSTD_CCtx *zstd;
    dp_buffer packed;
} text_taker;

/* Bytes of a text, packed by zstd and whole. It comes before the text in the file. */
typedef struct text_lengths {
    uint64_t packed, whole;
} text_lengths;

/* What comes before a text on its way there. */
typedef struct text_head {
    uint64_t document;
    text_lengths length;
} text_head;

static void end_taker(void *user, void *state) {
    text_taker *t = state;
    (void)user;
    doppel_page_reader_free(t->pages);
    ZSTD_freeCCtx(t->zstd);
    dp_buffer_free(&t->packed);
    free(t);
}

static doppel_status begin_taker(void *user, void **state) {
    text_taker *t = calloc(1, sizeof *t);
    if (!t)
        return DOPPEL_ERROR_MEMORY;
    t->r = user;
    t->zstd = ZSTD_createCCtx();
    doppel_status status = t->zstd ? doppel_page_reader_create(&t->pages) : DOPPEL_ERROR_MEMORY;
    if (status == DOPPEL_OK)
        *state = t;
    else
        end_taker(NULL, t);
    return status;
}

/* dp_input_numbered.wanted */
static bool is_wanted(void *state, uint64_t number) {
    const text_reading *r = ((const text_taker *)state)->r;
    uint64_t d = r->reading->first + number;
    return r->wanted[d / 8] >> d % 8 & 1;
}

/* dp_input_numbered.document */
static doppel_status take_text(void *state, uint64_t number, const doppel_document *d, doppel_output *output) {
    enum { LEVEL = 1 };
    text_taker *t = state;
    doppel_page page;
    DP_TRY(doppel_document_text(t->pages, d, t->r->batch->settings.options.content, &page));
    size_t whole = page.text.length, room = ZSTD_compressBound(whole);
    if (!dp_reserve(&t->packed.data, &t->packed.capacity, room, 1))
        return DOPPEL_ERROR_MEMORY;
    size_t packed = ZSTD_compressCCtx(t->zstd, t->packed.data, room, page.text.data, whole, LEVEL);
    if (ZSTD_isError(packed))
        return DOPPEL_ERROR_MEMORY;
    const text_head head = {t->r->reading->first + number, {packed, whole}};
    DP_TRY(doppel_output_write(output, dp_bytes(&head, sizeof head)));
    return doppel_output_write(output, (doppel_slice){t->packed.data, packed});
}

/* doppel_work.emit */
static doppel_status keep_texts(void *user, doppel_slice bytes) {
    const text_reading *r = user;
    dp_append_file *texts = &r->batch->sets.texts;
    text_head head;
    for (size_t at = 0; at < bytes.length; at += sizeof head + (size_t)head.length.packed) {
        memcpy(&head, bytes.data + at, sizeof head);
        dp_doc *doc = &r->batch->documents.doc[head.document];
        doc->set_at = (uint64_t)DP_SET_OF_TEXT << 62 | (dp_append_file_size(texts) + sizeof head.length);
        DP_TRY(dp_append_file_add(texts, &head.length, sizeof head.length, NULL));
        DP_TRY(dp_append_file_add(texts, bytes.data + at + sizeof head, (size_t)head.length.packed, NULL));
    }
    return DOPPEL_OK;
}

/* Marks those of some documents whose texts were not read yet; whether there are any. */
static bool mark_wanted(const doppel_batch *batch, const uint32_t *documents, size_t count, uint8_t *wanted) {
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        uint32_t d = documents[i];
        if (batch->documents.doc[d].set_at == (uint64_t)DP_SET_OF_TEXT << 62) {
            wanted[d / 8] |= (uint8_t)(1 << d % 8);
            any = true;
        }
    }
    return any;
}

/* Whether a reading has a document that is wanted; `end` is the number after its last. */
static bool has_wanted(const dp_reading *reading, uint64_t end, const uint8_t *wanted) {
    for (uint64_t d = reading->first; d < end; d++)
        if (wanted[d / 8] >> d % 8 & 1)
            return true;
    return false;
}

static doppel_status read_texts(doppel_batch *batch, const uint8_t *wanted, doppel_error *error) {
    for (size_t i = 0; i < batch->readings.count; i++) {
        const dp_reading *reading = &batch->readings.reading[i];
        text_reading r = {batch, reading, wanted};
        const dp_input_numbered numbered = {&reading->units, is_wanted, take_text};
        const doppel_work work = {.user = &r, .begin = begin_taker, .end = end_taker, .emit = keep_texts};
        if (has_wanted(reading, reading->first + reading->units.documents, wanted))
            DP_TRY(dp_readings_run_again(batch, reading, &numbered, &work, error));
    }
    return dp_append_file_flush(&batch->sets.texts, error);
}

doppel_status dp_sets_read_texts(doppel_batch *batch, const dp_candidates *candidates, doppel_error *error) {
    dp_sets *sets = &batch->sets;
    uint64_t before = dp_append_file_size(&sets->texts);
    uint8_t *wanted = calloc(batch->documents.count / 8 + 1, 1);
    doppel_status status = wanted ? DOPPEL_OK : dp_no_memory(error);
    if (wanted && mark_wanted(batch, candidates->member, candidates->member_count, wanted))
        status = read_texts(batch, wanted, error);
    uint64_t added = dp_append_file_size(&sets->texts) - before;
    sets->most -= added < sets->most ? added : sets->most;
    free(wanted);
    return status;
}

/* ---- from a record, or a text ---- */

static doppel_status get_sketcher(dp_set_maker *maker) {
    const dp_batch_settings *s = &maker->batch->settings;
    if (maker->text.sketcher)
        return DOPPEL_OK;
    return dp_text_sketcher_init(&maker->text, s->recipe, DOPPEL_WANT_SET, s->options.content);
}

static doppel_status get_parser(dp_set_maker *maker, bool known, dp_record_parser **parser) {
    const dp_batch_settings *s = &maker->batch->settings;
    if (!maker->parser[known])
        DP_TRY(dp_record_parser_create(known ? &s->known_input : &s->input, &maker->parser[known]));
    *parser = maker->parser[known];
    return DOPPEL_OK;
}

static bool reserve_record(dp_set_maker *maker, size_t length) {
    return dp_reserve(&maker->record.data, &maker->record.capacity, length, 1);
}

static doppel_status sketch_record(dp_set_maker *maker, const dp_doc *doc, doppel_sketch *sketch, doppel_error *error) {
    dp_record_files *files = &maker->batch->readings.files;
    uint64_t position = dp_doc_position(doc);
    dp_record_parser *parser;
    doppel_document document;
    doppel_page page;
    if (get_parser(maker, dp_record_files_find(files, position)->known, &parser) != DOPPEL_OK ||
        !reserve_record(maker, doc->record_length))
        return dp_no_memory(error);
    DP_TRY(dp_record_files_read(files, position, maker->record.data, doc->record_length, error));
    const doppel_slice record = {maker->record.data, doc->record_length};
    doppel_status status = dp_record_parser_run(parser, record, &document);
    if (status == DOPPEL_ERROR_INPUT)
        return dp_inputs_changed(error);
    DP_THEN(status, dp_text_sketcher_run(&maker->text, &document, &page, sketch));
    return status == DOPPEL_OK ? status : dp_no_memory(error);
}

static doppel_status sketch_text(dp_set_maker *maker, const dp_doc *doc, doppel_sketch *sketch, doppel_error *error) {
    const dp_append_file *texts = &maker->batch->sets.texts;
    uint64_t position = dp_doc_position(doc);
    text_lengths length;
    DP_TRY(dp_append_file_read(texts, position - sizeof length, &length, sizeof length, error));
    size_t packed = (size_t)length.packed, whole = (size_t)length.whole;
    if (!reserve_record(maker, whole + packed + 1))
        return dp_no_memory(error);
    char *text = maker->record.data;
    DP_TRY(dp_append_file_read(texts, position, text + whole, packed, error));
    if (ZSTD_decompress(text, whole, text + whole, packed) != whole)
        return dp_fail(error, DOPPEL_ERROR_IO, "a temporary file was changed by another program");
    doppel_status status = doppel_sketcher_run(maker->text.sketcher, (doppel_slice){text, whole}, sketch);
    return status == DOPPEL_OK ? status : dp_no_memory(error);
}

static doppel_status sketch_memory(dp_set_maker *maker, const dp_doc *doc, doppel_sketch *sketch, doppel_error *error) {
    const doppel_slice text = {(const char *)(uintptr_t)dp_doc_position(doc), doc->record_length};
    doppel_status status = doppel_sketcher_run(maker->text.sketcher, text, sketch);
    return status == DOPPEL_OK ? status : dp_no_memory(error);
}

static doppel_status sketch_again(dp_set_maker *maker, const dp_doc *doc, doppel_sketch *sketch, doppel_error *error) {
    switch (dp_doc_set_kind(doc)) {
    case DP_SET_OF_RECORD: return sketch_record(maker, doc, sketch, error);
    case DP_SET_OF_MEMORY: return sketch_memory(maker, doc, sketch, error);
    default: return sketch_text(maker, doc, sketch, error);
    }
}

static doppel_status make(dp_set_maker *maker, const dp_doc *doc, dp_set_buffer *set, doppel_error *error) {
    doppel_sketch sketch;
    if (get_sketcher(maker) != DOPPEL_OK)
        return dp_no_memory(error);
    DP_TRY(sketch_again(maker, doc, &sketch, error));
    if (!sketch.set_count)
        return dp_inputs_changed(error);
    if (!dp_reserve(&set->hash, &set->room, sketch.set_count, sizeof *set->hash))
        return dp_no_memory(error);
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
    if (dp_doc_set_kind(doc) == DP_SET_STORED)
        return read_stored(&batch->journal.file.scratch, doc->set_at, set, error);
    uint64_t kept = count == DP_SET_UNKNOWN ? 0 : find_kept(&batch->sets, document);
    if (kept)
        return read_stored(&batch->sets.file, kept - 1, set, error);
    DP_TRY(make(maker, doc, set, error));
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
