/* write.c - documents out: the inputs are read once more, and each document is given with what was decided.
 *
 * A thread writes records, a line each; in order, take_records gives them out by number. */
#include "batch/batch.h"

#include <stdlib.h>

typedef struct writing {
    doppel_batch *batch;
    uint64_t position;
    bool too_many; /* more documents came than before */
    bool limit;    /* as many were given as were read, and no more are wanted */
    doppel_status (*document)(doppel_slice record, const doppel_near *near, void *user);
    void *user;
} writing;

/* What a thread makes records with. */
typedef struct maker {
    doppel_page_reader *pages;
    doppel_content content;
} maker;

static void end(void *user, void *state) {
    maker *m = state;
    (void)user;
    doppel_page_reader_free(m->pages);
    free(m);
}

static doppel_status begin(void *user, void **state) {
    const writing *w = user;
    maker *m = calloc(1, sizeof *m);
    if (!m)
        return DOPPEL_ERROR_MEMORY;
    m->content = w->batch->options.content;
    doppel_status status = doppel_page_reader_create(&m->pages);
    if (status == DOPPEL_OK)
        *state = m;
    else
        end(NULL, m);
    return status;
}

static doppel_status write_member(doppel_output *output, const char *name, const char *value, size_t length) {
    doppel_status status = doppel_output_write(output, doppel_slice_of(name));
    return status == DOPPEL_OK ? doppel_output_json(output, (doppel_slice){value, length}) : status;
}

/* A record of a document that does not come as one. */
static doppel_status make_record(maker *m, const doppel_document *d, doppel_output *output) {
    doppel_page page;
    doppel_status status = doppel_document_text(m->pages, d, m->content, &page);
    if (status == DOPPEL_OK)
        status = write_member(output, "{\"id\":", d->id.data, d->id.length);
    if (status == DOPPEL_OK && d->url.data)
        status = write_member(output, ",\"url\":", d->url.data, d->url.length);
    if (status == DOPPEL_OK && page.title.data)
        status = write_member(output, ",\"title\":", page.title.data, page.title.length);
    if (status == DOPPEL_OK)
        status = write_member(output, ",\"text\":", page.text.data, page.text.length);
    return status == DOPPEL_OK ? doppel_output_write(output, doppel_slice_of("}\n")) : status;
}

static doppel_status write_record(void *state, const doppel_document *d, doppel_output *output) {
    if (!d->record.data)
        return make_record(state, d, output);
    /* Where lines end in CR LF, they do so in the output. */
    size_t length = d->record.length + (d->record.data[d->record.length] == '\r');
    doppel_status status = doppel_output_write(output, (doppel_slice){d->record.data, length});
    return status == DOPPEL_OK ? doppel_output_write(output, doppel_slice_of("\n")) : status;
}

/* doppel_work.emit */
static doppel_status take_records(void *user, doppel_slice bytes) {
    writing *w = user;
    const char *end_of_all = bytes.data + bytes.length;
    doppel_status status = DOPPEL_OK;
    while (bytes.data < end_of_all && status == DOPPEL_OK) {
        const char *line_end = memchr(bytes.data, '\n', (size_t)(end_of_all - bytes.data));
        doppel_near near;
        if (w->position >= w->batch->count) {
            w->limit = w->batch->limit_reached;
            w->too_many = !w->limit;
            return DOPPEL_ERROR_INTERRUPTED;
        }
        doppel_batch_get(w->batch, w->position++, &near);
        status = w->document((doppel_slice){bytes.data, (size_t)(line_end - bytes.data)}, &near, w->user);
        bytes.data = line_end + 1;
    }
    return status;
}

static doppel_status write_reading(writing *w, const dp_reading *reading, doppel_error *error) {
    doppel_input_options options = w->batch->input;
    doppel_input_counts counts;
    doppel_work work = {.user = w, .begin = begin, .document = write_record, .end = end, .emit = take_records};
    options.bad = NULL;
    options.unseen = NULL;
    options.strict = options.refuse_bad = false;
    doppel_status status = dp_stdin_rewind(w->batch, reading, error);
    if (status != DOPPEL_OK)
        return status;
    status = doppel_input_run((const char *const *)reading->paths, reading->count, &options, &work, &counts, error);
    if (w->limit)
        return DOPPEL_OK;
    if (w->too_many || (status == DOPPEL_OK &&
                        (counts.documents != reading->counts.documents || counts.bytes != reading->counts.bytes)))
        return dp_fail(error, DOPPEL_ERROR_INPUT, "the inputs have changed since they were read: start again");
    return status;
}

doppel_status doppel_batch_write(doppel_batch *batch,
                                 doppel_status (*document)(doppel_slice record, const doppel_near *near, void *user),
                                 void *user, doppel_error *error) {
    writing w = {.batch = batch, .document = document, .user = user, .position = batch->known};
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < batch->reading_count && status == DOPPEL_OK; i++)
        if (!batch->readings[i].known)
            status = write_reading(&w, &batch->readings[i], error);
    return status;
}
