/* write.c - a second pass over the documents, once they are decided: doppel_batch_write gives each with its decision,
 * doppel_batch_each_table says which rows of tables are which documents, and dp_write_again is what files are written
 * by (output_files.c).
 *
 * The inputs are read again: threads write records, a line each; take_records passes them on in order, by number.
 */
#include "batch/batch.h"
#include "input/input.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct batch_writing {
    doppel_batch *batch;
    bool rows; /* rows, if there are any, are given unchanged */
    uint64_t position;
    bool too_many; /* more documents came than before */
    bool limit;    /* all documents that were read have been given, and the limit ended the reading */
    doppel_status (*take)(const dp_written_document *document, void *user);
    void *user;
} batch_writing;

/* Precedes a header and a record on their way from a thread to take_records. */
typedef struct written_head {
    uint64_t file, header_length, length;
} written_head;

/* What a thread makes records with. */
typedef struct record_maker {
    doppel_page_reader *pages;
    doppel_content content;
    dp_buffer record;
    bool rows;
    uint64_t file; /* whose header was given last, + 1 */
} record_maker;

static void end(void *user, void *state) {
    record_maker *m = state;
    (void)user;
    doppel_page_reader_free(m->pages);
    dp_buffer_free(&m->record);
    free(m);
}

static doppel_status begin(void *user, void **state) {
    const batch_writing *w = user;
    record_maker *m = calloc(1, sizeof *m);
    if (!m)
        return DOPPEL_ERROR_MEMORY;
    m->content = w->batch->settings.options.content;
    m->rows = w->rows;
    doppel_status status = doppel_page_reader_create(&m->pages);
    if (status == DOPPEL_OK)
        *state = m;
    else
        end(NULL, m);
    return status;
}

bool dp_record_make(const doppel_document *d, doppel_slice title, doppel_slice text, dp_buffer *to) {
    dp_json_writer json = {.buffer = to};
    dp_json_text(&json, "{");
    dp_json_key(&json, "id");
    dp_json_string(&json, d->id);
    if (d->url.data) {
        dp_json_key(&json, "url");
        dp_json_string(&json, d->url);
    }
    if (title.data) {
        dp_json_key(&json, "title");
        dp_json_string(&json, title);
    }
    dp_json_key(&json, "text");
    dp_json_string(&json, text);
    dp_json_text(&json, "}");
    return !json.failed;
}

/* A record of a document that does not come as one. */
static doppel_status make_record(record_maker *m, const doppel_document *d, doppel_slice *record) {
    doppel_page page;
    DP_TRY(doppel_document_text(m->pages, d, m->content, &page));
    m->record.size = 0;
    if (!dp_record_make(d, page.title, page.text, &m->record))
        return DOPPEL_ERROR_MEMORY;
    *record = (doppel_slice){m->record.data, m->record.size};
    return DOPPEL_OK;
}

/* doppel_work.document */
static doppel_status write_record(void *state, const doppel_document *d, doppel_output *output) {
    record_maker *m = state;
    doppel_slice record = d->row, header = {"", 0};
    if (m->rows && d->row.data && m->file != d->file_number + 1) {
        header = d->header.data ? d->header : header;
        m->file = d->file_number + 1;
    }
    if (d->record.data) /* where lines end in CR LF, they do so in the output */
        record = (doppel_slice){d->record.data, d->record.length + (d->record.data[d->record.length] == '\r')};
    else if (!m->rows || !d->row.data)
        DP_TRY(make_record(m, d, &record));
    const written_head head = {d->file_number, header.length, record.length};
    DP_TRY(doppel_output_write(output, dp_bytes(&head, sizeof head)));
    DP_TRY(doppel_output_write(output, header));
    return doppel_output_write(output, record);
}

/* doppel_work.emit */
static doppel_status take_records(void *user, doppel_slice records) {
    batch_writing *w = user;
    written_head head;
    for (const char *at = records.data, *end_of_all = at + records.length; at < end_of_all;) {
        memcpy(&head, at, sizeof head);
        at += sizeof head;
        if (w->position >= w->batch->documents.count) {
            w->limit = w->batch->readings.limit_reached;
            w->too_many = !w->limit;
            return DOPPEL_ERROR_INTERRUPTED;
        }
        const dp_written_document document = {.position = w->position++,
                                              .file = head.file,
                                              .header = {at, (size_t)head.header_length},
                                              .record = {at + head.header_length, (size_t)head.length}};
        DP_TRY(w->take(&document, w->user));
        at += head.header_length + head.length;
    }
    return DOPPEL_OK;
}

static doppel_status write_reading(batch_writing *w, const dp_reading *reading, doppel_error *error) {
    doppel_input_options options = w->batch->settings.input;
    doppel_input_counts counts;
    doppel_work work = {.user = w, .begin = begin, .document = write_record, .end = end, .emit = take_records};
    options.bad = NULL;
    options.unseen = NULL;
    options.strict = options.refuse_bad = false;
    options.row_records = !w->rows;
    const dp_input_paths paths = {(const char *const *)reading->paths, reading->count};
    DP_TRY(dp_check_pipes(&paths, error));
    DP_TRY(dp_readings_rewind(w->batch, reading, error));
    doppel_status status =
        doppel_input_run((const char *const *)reading->paths, reading->count, &options, &work, &counts, error);
    if (w->limit)
        return DOPPEL_OK;
    if (w->too_many || (status == DOPPEL_OK &&
                        (counts.documents != reading->counts.documents || counts.bytes != reading->counts.bytes)))
        return dp_fail(error, DOPPEL_ERROR_INPUT, "the inputs have changed since they were read: start again");
    return status;
}

doppel_status dp_write_again(doppel_batch *batch, bool rows,
                             doppel_status (*take)(const dp_written_document *document, void *user), void *user,
                             doppel_error *error) {
    batch_writing w = {.batch = batch, .rows = rows, .take = take, .user = user, .position = batch->documents.known};
    for (size_t i = 0; i < batch->readings.count; i++)
        if (!batch->readings.reading[i].known)
            DP_TRY(write_reading(&w, &batch->readings.reading[i], error));
    return DOPPEL_OK;
}

typedef struct record_giving {
    const doppel_batch *batch;
    doppel_status (*document)(doppel_slice record, const doppel_near *near, void *user);
    void *user;
} record_giving;

static doppel_status give_record(const dp_written_document *document, void *user) {
    const record_giving *g = user;
    doppel_near near;
    doppel_batch_get(g->batch, document->position, &near);
    return g->document(document->record, &near, g->user);
}

doppel_status doppel_batch_write(doppel_batch *batch,
                                 doppel_status (*document)(doppel_slice record, const doppel_near *near, void *user),
                                 void *user, doppel_error *error) {
    return dp_write_again(batch, false, give_record, &(record_giving){batch, document, user}, error);
}

/* ---- as tables ---- */

static doppel_status take_nothing(void *state, const doppel_document *document, doppel_output *output) {
    (void)state, (void)document, (void)output;
    return DOPPEL_OK;
}

/* Reads the inputs of a reading that came from a journal again, to learn its files and rows. */
static doppel_status note_files(const doppel_batch *batch, const dp_reading *reading, dp_input_units *units,
                                doppel_error *error) {
    doppel_input_options options = batch->settings.input;
    const doppel_work work = {.document = take_nothing};
    const dp_input_job job = {.paths = (const char *const *)reading->paths,
                              .path_count = reading->count,
                              .options = &options,
                              .work = &work,
                              .units = units};
    options.bad = NULL;
    options.unseen = NULL;
    options.strict = options.refuse_bad = false;
    return dp_input_run(&job, NULL, error);
}

typedef struct table_giving {
    const doppel_batch *batch;
    uint64_t position; /* of the next document */
    doppel_status (*table)(const doppel_batch_rows *rows, void *user);
    void *user;
} table_giving;

/* Fills the positions of the rows of a table; gives their number. A limit ends it where it ended the reading. */
static uint64_t place_rows(table_giving *g, const dp_input_units *units, size_t file, uint64_t *positions) {
    const dp_input_file *f = &units->files[file];
    size_t next = f->left_out;
    size_t end = file + 1 < units->file_count ? units->files[file + 1].left_out : units->left_out_count;
    uint64_t row = 0, rows = f->documents + (end - next), documents = g->batch->documents.count;
    for (; row < rows; row++) {
        bool out = next < end && units->left_out[next] == row;
        if (!out && g->position == documents)
            break;
        positions[row] = out ? DOPPEL_NO_POSITION : g->position++;
        next += out;
    }
    return row;
}

static doppel_status give_file(table_giving *g, const dp_input_units *units, size_t file, doppel_error *error) {
    const dp_input_file *f = &units->files[file];
    uint64_t left = g->batch->documents.count - g->position;
    doppel_batch_rows rows = {.path = f->path, .count = f->documents < left ? f->documents : left};
    uint64_t *positions = NULL;
    if (f->table) {
        positions = malloc(((size_t)f->documents + units->left_out_count + 1) * sizeof *positions);
        if (!positions)
            return dp_no_memory(error);
        rows.count = place_rows(g, units, file, positions);
        rows.positions = positions;
    } else {
        g->position += rows.count;
    }
    doppel_status status = g->table(&rows, g->user);
    free(positions);
    return status;
}

static doppel_status give_reading(table_giving *g, const dp_reading *reading, doppel_error *error) {
    dp_input_units own = {0};
    const dp_input_units *units = &reading->units;
    doppel_status status = DOPPEL_OK;
    if (!units->count && reading->counts.documents) {
        status = note_files(g->batch, reading, &own, error);
        if (status == DOPPEL_OK && !g->batch->settings.options.limit && own.documents != reading->counts.documents)
            status = dp_inputs_changed(error);
        units = &own;
    }
    for (size_t i = 0; i < units->file_count && status == DOPPEL_OK; i++)
        status = give_file(g, units, i, error);
    dp_input_units_free(&own);
    return status;
}

doppel_status doppel_batch_each_table(const doppel_batch *batch,
                                      doppel_status (*table)(const doppel_batch_rows *rows, void *user), void *user,
                                      doppel_error *error) {
    table_giving g = {.batch = batch, .position = batch->documents.known, .table = table, .user = user};
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < batch->readings.count && status == DOPPEL_OK; i++)
        if (!batch->readings.reading[i].known)
            status = give_reading(&g, &batch->readings.reading[i], error);
    return status;
}
