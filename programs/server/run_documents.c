/* run_documents.c - what is kept of the documents of a run, in a file without a name: a row for each document, then a
 * record, with id, title and text, for each one that is in a group or an example.
 *
 * A row has a hash of the document's id, by which it is found, and the place of its record. Rows are 16 bytes each; the
 * texts have at most RUN_TEXT bytes each, so that the file is about as large as that of the run at most. */
#include "server/files.h"
#include "server/runs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WRITE_BYTES = 1 << 20, /* records that are written at a time */
    ROWS = 4096            /* that are read at a time */
};

typedef struct row {
    uint64_t id_hash;
    uint64_t at; /* of its record; 0: it has none */
} row;

/* Its id, title and text follow. */
typedef struct record_head {
    uint32_t id_length, title_length, text_length, cut;
} record_head;

/* FNV-1a, of the whole id. */
static uint64_t hash_of(doppel_slice id) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < id.length; i++)
        hash = (hash ^ (unsigned char)id.data[i]) * 0x100000001b3;
    return hash;
}

/* ---- writing ---- */

typedef struct document_writing {
    const run_input *input;
    const uint8_t *wanted; /* of each document: whether it gets a record */
    row *rows;
    uint64_t count, position; /* of all documents; of the next one */
    int file;
    uint64_t at;         /* of what is in `records` */
    text_buffer records; /* not written yet */
    text_buffer id;
    doppel_page_reader *pages;
} document_writing;

static doppel_status flush(document_writing *w) {
    if (w->records.failed)
        return DOPPEL_ERROR_MEMORY;
    if (!file_write_at(w->file, w->records.data, w->records.length, w->at))
        return DOPPEL_ERROR_IO;
    w->at += w->records.length;
    w->records.length = 0;
    return DOPPEL_OK;
}

/* At most `most` bytes of a text, which end between characters. */
static doppel_slice cut(doppel_slice text, size_t most) {
    size_t length = text.length < most ? text.length : most;
    while (length && length < text.length && ((unsigned char)text.data[length] & 0xC0) == 0x80)
        length--;
    return (doppel_slice){text.data, length};
}

static doppel_status add_record(document_writing *w, const doppel_document *document, doppel_slice id) {
    doppel_page page = {0};
    if (doppel_document_text(w->pages, document, DOPPEL_CONTENT_MAIN, &page) != DOPPEL_OK)
        page.text = document->text;
    const doppel_slice parts[] = {cut(id, RUN_ID_SHOWN), cut(page.title.length ? page.title : page.text, RUN_TITLE),
                                  cut(page.text, RUN_TEXT)};
    const record_head head = {(uint32_t)parts[0].length, (uint32_t)parts[1].length, (uint32_t)parts[2].length,
                              parts[2].length < page.text.length};
    text_add(&w->records, (const char *)&head, sizeof head);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        text_add(&w->records, parts[i].data, parts[i].length);
    return w->records.length < WRITE_BYTES ? DOPPEL_OK : flush(w);
}

/* doppel_work.document */
static doppel_status take_document(void *state, const doppel_document *document, doppel_output *output) {
    document_writing *w = state;
    (void)output;
    if (w->position == w->count)
        return DOPPEL_ERROR_INTERRUPTED;
    doppel_slice id =
        run_replace_path(document->id, doppel_slice_of(w->input->path), doppel_slice_of(w->input->name), &w->id);
    if (w->id.failed)
        return DOPPEL_ERROR_MEMORY;
    row *r = &w->rows[w->position];
    r->id_hash = hash_of(id);
    if (!w->wanted[w->position++])
        return DOPPEL_OK;
    r->at = w->at + w->records.length;
    return add_record(w, document, id);
}

static doppel_status begin(void *user, void **state) {
    *state = user;
    return DOPPEL_OK;
}

static doppel_status write_documents(document_writing *w, doppel_error *error) {
    const run_input *input = w->input;
    const doppel_input_options reads = {
        .size = sizeof reads, .threads = 1, .text_key = input->text_key, .id_key = input->id_key, .stop = input->stop};
    const doppel_work work = {.user = w, .begin = begin, .document = take_document};
    doppel_status status = w->count ? doppel_input_run(&input->path, 1, &reads, &work, NULL, error) : DOPPEL_OK;
    if (status == DOPPEL_ERROR_INTERRUPTED && w->position == w->count)
        status = DOPPEL_OK;
    if (status == DOPPEL_OK && w->position < w->count) {
        *error = (doppel_error){.code = DOPPEL_ERROR_INPUT, .message = "the file changed while it was read"};
        return DOPPEL_ERROR_INPUT;
    }
    if (status == DOPPEL_OK)
        status = flush(w);
    if (status == DOPPEL_OK && !file_write_at(w->file, w->rows, w->count * sizeof *w->rows, 0))
        status = DOPPEL_ERROR_IO;
    return status;
}

doppel_status run_documents_write(const run_input *input, run_result *result, const uint8_t *wanted,
                                  doppel_error *error) {
    document_writing w = {.input = input, .wanted = wanted, .count = result->documents};
    w.at = w.count * sizeof *w.rows;
    w.rows = calloc((size_t)w.count + 1, sizeof *w.rows);
    w.file = result->kept = file_open_unnamed(input->tmp);
    doppel_status status = w.file < 0                                                   ? DOPPEL_ERROR_IO
                           : w.rows && doppel_page_reader_create(&w.pages) == DOPPEL_OK ? DOPPEL_OK
                                                                                        : DOPPEL_ERROR_MEMORY;
    if (status == DOPPEL_OK)
        status = write_documents(&w, error);
    doppel_page_reader_free(w.pages);
    text_free(&w.records);
    text_free(&w.id);
    free(w.rows);
    return status;
}

/* ---- reading ---- */

void run_document_free(run_document *d) {
    free(d->bytes);
    *d = (run_document){0};
}

static bool read_row(const run_result *result, uint32_t position, row *to) {
    return position < result->documents && result->kept >= 0 &&
           file_read_at(result->kept, to, sizeof *to, (uint64_t)position * sizeof *to);
}

bool run_document_read(const run_result *result, uint32_t position, bool with_text, run_document *to) {
    row r;
    record_head head;
    *to = (run_document){0};
    if (!read_row(result, position, &r) || !r.at || !file_read_at(result->kept, &head, sizeof head, r.at))
        return false;
    size_t length = (size_t)head.id_length + head.title_length + (with_text ? head.text_length : 0);
    to->bytes = malloc(length + 1);
    if (!to->bytes || !file_read_at(result->kept, to->bytes, length, r.at + sizeof head)) {
        run_document_free(to);
        return false;
    }
    to->id = (doppel_slice){to->bytes, head.id_length};
    to->title = (doppel_slice){to->bytes + head.id_length, head.title_length};
    to->text = (doppel_slice){to->title.data + head.title_length, with_text ? head.text_length : 0};
    to->cut = head.cut;
    return true;
}

/* Whether a document whose id has the same hash has this id. One without a record cannot be compared: that another id
 * of 64 bits has the same hash is very unlikely. */
static bool has_id(const run_result *result, uint32_t position, const row *r, doppel_slice id) {
    run_document d;
    if (!r->at || id.length > RUN_ID_SHOWN || !run_document_read(result, position, false, &d))
        return true;
    bool same = d.id.length == id.length && !memcmp(d.id.data, id.data, id.length);
    run_document_free(&d);
    return same;
}

uint64_t run_document_find(const run_result *result, const run_decisions *d, doppel_slice id) {
    uint64_t hash = hash_of(id), found = RUN_NO_DOCUMENT;
    row rows[ROWS];
    for (uint64_t from = 0; from < result->documents; from += ROWS) {
        uint64_t left = result->documents - from;
        size_t count = left < ROWS ? (size_t)left : ROWS;
        if (!file_read_at(result->kept, rows, count * sizeof *rows, from * sizeof *rows))
            return found;
        for (size_t i = 0; i < count; i++) {
            uint32_t position = (uint32_t)(from + i);
            bool removed = d->original[position] != position;
            if (rows[i].id_hash != hash || (!removed && found != RUN_NO_DOCUMENT) ||
                !has_id(result, position, &rows[i], id))
                continue;
            if (removed)
                return position;
            found = position;
        }
    }
    return found;
}
