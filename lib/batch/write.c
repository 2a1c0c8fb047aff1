/* write.c - documents out: the inputs are read once more, and each document is given with what was decided.
 *
 * Threads write records, a line each; take_records gives them out in order, by number. */
#include "batch/batch.h"

#include <stdlib.h>

typedef struct batch_writing {
    doppel_batch *batch;
    uint64_t position;
    bool too_many; /* more documents came than before */
    bool limit;    /* as many were given as were read, and no more are wanted */
    doppel_status (*document)(doppel_slice record, const doppel_near *near, void *user);
    void *user;
} batch_writing;

/* What a thread makes records with. */
typedef struct record_maker {
    doppel_page_reader *pages;
    doppel_content content;
} record_maker;

static void end(void *user, void *state) {
    record_maker *m = state;
    (void)user;
    doppel_page_reader_free(m->pages);
    free(m);
}

static doppel_status begin(void *user, void **state) {
    const batch_writing *w = user;
    record_maker *m = calloc(1, sizeof *m);
    if (!m)
        return DOPPEL_ERROR_MEMORY;
    m->content = w->batch->settings.options.content;
    doppel_status status = doppel_page_reader_create(&m->pages);
    if (status == DOPPEL_OK)
        *state = m;
    else
        end(NULL, m);
    return status;
}

static doppel_status write_member(doppel_output *output, const char *name, doppel_slice value) {
    DP_TRY(doppel_output_write(output, doppel_slice_of(name)));
    return doppel_output_json(output, value);
}

/* A record of a document that does not come as one. */
static doppel_status make_record(const record_maker *m, const doppel_document *d, doppel_output *output) {
    doppel_page page;
    DP_TRY(doppel_document_text(m->pages, d, m->content, &page));
    DP_TRY(write_member(output, "{\"id\":", d->id));
    if (d->url.data)
        DP_TRY(write_member(output, ",\"url\":", d->url));
    if (page.title.data)
        DP_TRY(write_member(output, ",\"title\":", page.title));
    DP_TRY(write_member(output, ",\"text\":", page.text));
    return doppel_output_write(output, doppel_slice_of("}\n"));
}

/* doppel_work.document */
static doppel_status write_record(void *state, const doppel_document *d, doppel_output *output) {
    if (!d->record.data)
        return make_record(state, d, output);
    /* Where lines end in CR LF, they do so in the output. */
    size_t length = d->record.length + (d->record.data[d->record.length] == '\r');
    DP_TRY(doppel_output_write(output, (doppel_slice){d->record.data, length}));
    return doppel_output_write(output, doppel_slice_of("\n"));
}

/* doppel_work.emit */
static doppel_status take_records(void *user, doppel_slice records) {
    batch_writing *w = user;
    const char *bytes = records.data, *end_of_all = bytes + records.length;
    while (bytes < end_of_all) {
        const char *line_end = memchr(bytes, '\n', (size_t)(end_of_all - bytes));
        doppel_near near;
        if (w->position >= w->batch->documents.count) {
            w->limit = w->batch->readings.limit_reached;
            w->too_many = !w->limit;
            return DOPPEL_ERROR_INTERRUPTED;
        }
        doppel_batch_get(w->batch, w->position++, &near);
        DP_TRY(w->document((doppel_slice){bytes, (size_t)(line_end - bytes)}, &near, w->user));
        bytes = line_end + 1;
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
    DP_TRY(dp_stdin_rewind(w->batch, reading, error));
    doppel_status status =
        doppel_input_run((const char *const *)reading->paths, reading->count, &options, &work, &counts, error);
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
    batch_writing w = {.batch = batch, .document = document, .user = user, .position = batch->documents.known};
    for (size_t i = 0; i < batch->readings.count; i++)
        if (!batch->readings.reading[i].known)
            DP_TRY(write_reading(&w, &batch->readings.reading[i], error));
    return DOPPEL_OK;
}
