/* write.c - documents out: doppel_batch_write gives each with what was decided, doppel_batch_write_kept writes those
 * that stay.
 *
 * For the former the inputs are read once more: threads write records, a line each; take_records gives them out in
 * order, by number. For the latter, records whose positions are known are not read but copied, as many at a time as
 * stand together. */
#include "batch/batch.h"
#include "input/input.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
    dp_buffer record;
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

static doppel_status make_record(record_maker *m, const doppel_document *d, doppel_output *output) {
    doppel_page page;
    DP_TRY(doppel_document_text(m->pages, d, m->content, &page));
    m->record.size = 0;
    if (!dp_record_make(d, page.title, page.text, &m->record) || !dp_buffer_add(&m->record, "\n", 1))
        return DOPPEL_ERROR_MEMORY;
    return doppel_output_write(output, (doppel_slice){m->record.data, m->record.size});
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

doppel_status doppel_batch_write(doppel_batch *batch,
                                 doppel_status (*document)(doppel_slice record, const doppel_near *near, void *user),
                                 void *user, doppel_error *error) {
    batch_writing w = {.batch = batch, .document = document, .user = user, .position = batch->documents.known};
    for (size_t i = 0; i < batch->readings.count; i++)
        if (!batch->readings.reading[i].known)
            DP_TRY(write_reading(&w, &batch->readings.reading[i], error));
    return DOPPEL_OK;
}

/* ---- those that stay ---- */

static bool stays(const doppel_batch *batch, uint32_t document) {
    const dp_decisions *decisions = &batch->decisions;
    return !decisions->made ||
           (decisions->original[document] == document && !dp_matches_get(&batch->matches, document));
}

typedef struct kept_writing {
    const doppel_batch *batch;
    doppel_writer *writer;
    doppel_error error;
} kept_writing;

/* doppel_batch_write */
static doppel_status write_if_kept(doppel_slice record, const doppel_near *near, void *user) {
    kept_writing *w = user;
    if (near->a != near->b)
        return DOPPEL_OK;
    DP_TRY(doppel_writer_write(w->writer, record, &w->error));
    return doppel_writer_write(w->writer, doppel_slice_of("\n"), &w->error);
}

static doppel_status write_by_reading(doppel_batch *batch, doppel_writer *writer, doppel_error *error) {
    kept_writing w = {.batch = batch, .writer = writer};
    doppel_status status = doppel_batch_write(batch, write_if_kept, &w, error);
    if (status != DOPPEL_OK && w.error.code != DOPPEL_OK && error)
        *error = w.error;
    return status;
}

/* ---- by copying ----
 *
 * The output is cut into pieces of whole records, and threads take piece after piece. Into a plain file they copy all
 * at once, as it is mapped into memory: the kernel lets only one thread at a time write to a file. One thread goes
 * ahead and allocates the file's blocks, so that a full disk is an error and not a signal. Where there is no such file
 * (compressed, a pipe) or but few threads, pieces are handed to the writer, which has them in order. */

/* Bytes of a piece, but for a record that is longer; and what is allocated at a time. */
enum { PIECE = 1 << 20, ALLOCATED = 64 << 20 };
/* From so many threads on the file is mapped: a page that is written through a mapping costs more than one that is
 * written by a call. More threads than the second number hinder each other in the kernel. */
enum { LEAST_MAPPING = 4, MOST_MAPPING = 8 };

/* Whether every document that may stay can be copied. */
static bool have_positions(const doppel_batch *batch) {
    for (size_t d = batch->documents.known; d < batch->documents.count; d++)
        if (!dp_doc_has_position(&batch->documents.doc[d]))
            return false;
    return true;
}

/* ---- room ahead ---- */

void doppel_batch_set_output(doppel_batch *batch, doppel_writer *writer) {
    batch->room = (dp_output_room){.writer = writer};
}

static bool has_candidates(const dp_candidates *candidates, const dp_doc *doc, uint32_t document) {
    return doc->twin != document || dp_buckets_of(candidates, document).count;
}

/* The bytes of documents that will stay. Should they be fewer in the end, the file is cut off. */
static uint64_t count_staying(const doppel_batch *batch, const dp_candidates *candidates) {
    const dp_documents *d = &batch->documents;
    uint64_t bytes = 0;
    for (size_t i = d->known; i < d->count; i++)
        if (!has_candidates(candidates, &d->doc[i], (uint32_t)i))
            bytes += (uint64_t)d->doc[i].record_length + 1;
    return bytes;
}

static void *allocate_room(void *user) {
    dp_output_room *room = user;
    while (room->allocated < room->wanted && !atomic_load_explicit(&room->ended, memory_order_relaxed)) {
        uint64_t left = room->wanted - room->allocated, length = left < ALLOCATED ? left : ALLOCATED;
        if (dp_writer_allocate(room->writer, room->allocated, length, NULL) != DOPPEL_OK)
            break;
        room->allocated += length;
    }
    return NULL;
}

void dp_output_room_begin(doppel_batch *batch, const dp_candidates *candidates) {
    dp_output_room *room = &batch->room;
    if (!room->writer || batch->settings.threads < LEAST_MAPPING || !candidates->looked_start || !have_positions(batch))
        return;
    room->wanted = count_staying(batch, candidates);
    atomic_store(&room->ended, false);
    room->begun = dp_thread_start(&room->thread, allocate_room, room);
}

void dp_output_room_end(dp_output_room *room) {
    atomic_store(&room->ended, true);
    if (room->begun)
        pthread_join(room->thread, NULL);
    room->begun = false;
}

/* ---- pieces ---- */

typedef struct copy_piece {
    uint64_t at; /* in the output */
    uint32_t first;
} copy_piece;

typedef struct record_copying {
    doppel_batch *batch;
    doppel_writer *writer;
    copy_piece *piece; /* count + 1 of them: the last one is where the output ends */
    size_t count, room;
    char *memory;         /* the file; NULL: it is not mapped */
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t moved;
    size_t next;
    uint64_t allocated, copied;
    doppel_status status;
    doppel_error error;
} record_copying;

static bool add_piece(record_copying *c, uint64_t at, size_t first) {
    if (!dp_reserve(&c->piece, &c->room, c->count + 1, sizeof *c->piece))
        return false;
    c->piece[c->count++] = (copy_piece){at, (uint32_t)first};
    return true;
}

static bool cut_pieces(record_copying *c) {
    const dp_documents *d = &c->batch->documents;
    uint64_t at = 0, cut = 0;
    if (!add_piece(c, 0, d->known))
        return false;
    for (size_t i = d->known; i < d->count; i++) {
        if (!stays(c->batch, (uint32_t)i))
            continue;
        if (at - cut >= PIECE) {
            cut = at;
            if (!add_piece(c, at, i))
                return false;
        }
        at += (uint64_t)d->doc[i].record_length + 1;
    }
    bool added = add_piece(c, at, d->count);
    c->count--;
    return added;
}

/* The number of bytes that can be read at once from a document that stays on: its record, and those after it that stay
 * and stand where it ends, in the same file. *next is the document after them. */
static uint64_t find_stretch(const record_copying *c, uint32_t *next, uint32_t end) {
    const dp_doc *doc = c->batch->documents.doc;
    uint64_t from = dp_doc_position(&doc[*next]), to = from + doc[*next].record_length;
    const dp_record_file *file = dp_record_files_find(&c->batch->readings.files, from);
    uint64_t file_end = file->base + file->state.bytes;
    for (++*next; *next < end && dp_doc_position(&doc[*next]) == to + 1 && to + 1 < file_end; ++*next) {
        if (!stays(c->batch, *next))
            break;
        to = dp_doc_position(&doc[*next]) + doc[*next].record_length;
    }
    return to - from;
}

/* Copies the records of a piece, each with its line end. */
static doppel_status copy_piece_to(record_copying *c, size_t piece, char *to, doppel_error *error) {
    doppel_batch *batch = c->batch;
    uint32_t end = c->piece[piece + 1].first;
    for (uint32_t d = c->piece[piece].first; d < end;) {
        if (!stays(batch, d)) {
            d++;
            continue;
        }
        uint64_t position = dp_doc_position(&batch->documents.doc[d]);
        size_t length = (size_t)find_stretch(c, &d, end);
        DP_TRY(dp_record_files_read(&batch->readings.files, position, to, length, error));
        to[length] = '\n';
        to += length + 1;
    }
    return DOPPEL_OK;
}

static void fail_copying(record_copying *c, doppel_status status, const doppel_error *error) {
    pthread_mutex_lock(&c->lock);
    if (c->status == DOPPEL_OK) {
        c->status = status;
        c->error = *error;
    }
    pthread_cond_broadcast(&c->moved);
    pthread_mutex_unlock(&c->lock);
}

/* Takes a piece, once the file has room for it; false when there is none left, or something has failed. */
static bool take_piece(record_copying *c, size_t *piece) {
    pthread_mutex_lock(&c->lock);
    *piece = c->next++;
    while (*piece < c->count && c->status == DOPPEL_OK && c->memory && c->allocated < c->piece[*piece + 1].at)
        pthread_cond_wait(&c->moved, &c->lock);
    bool taken = *piece < c->count && c->status == DOPPEL_OK;
    pthread_mutex_unlock(&c->lock);
    return taken;
}

/* These bytes are complete: they are the kernel's to write, and count no longer as memory of this process. */
static void release(char *memory, uint64_t at, size_t length) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t from = (at + page - 1) / page * page, to = (at + length) / page * page;
    if (from < to)
        madvise(memory + from, (size_t)(to - from), MADV_DONTNEED);
}

static doppel_status write_piece(record_copying *c, size_t piece, dp_buffer *buffer, doppel_error *error) {
    uint64_t at = c->piece[piece].at;
    size_t length = (size_t)(c->piece[piece + 1].at - at);
    if (dp_stopped(c->batch->settings.input.stop))
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    if (c->memory) {
        DP_TRY(copy_piece_to(c, piece, c->memory + at, error));
        release(c->memory, at, length);
        return DOPPEL_OK;
    }
    if (!dp_reserve(&buffer->data, &buffer->capacity, length + 1, 1))
        return dp_no_memory(error);
    DP_TRY(copy_piece_to(c, piece, buffer->data, error));
    return doppel_writer_put(c->writer, piece, (doppel_slice){buffer->data, length}, error);
}

static void tell_copied(record_copying *c, size_t piece) {
    const doppel_input_options *input = &c->batch->settings.input;
    pthread_mutex_lock(&c->lock);
    c->copied += c->piece[piece + 1].at - c->piece[piece].at;
    if (input->progress)
        input->progress(c->copied, c->piece[c->count].at, c->piece[piece + 1].first, input->user);
    pthread_mutex_unlock(&c->lock);
}

/* How much of the file has room; false when something has failed. */
static bool tell_allocated(record_copying *c, uint64_t allocated) {
    pthread_mutex_lock(&c->lock);
    c->allocated = allocated;
    pthread_cond_broadcast(&c->moved);
    bool goes_on = c->status == DOPPEL_OK;
    pthread_mutex_unlock(&c->lock);
    return goes_on;
}

static void allocate_file(record_copying *c) {
    doppel_error error = {0};
    doppel_status status = DOPPEL_OK;
    uint64_t at = c->allocated, end = c->piece[c->count].at;
    while (at < end && status == DOPPEL_OK && tell_allocated(c, at)) {
        uint64_t length = end - at < ALLOCATED ? end - at : ALLOCATED;
        status = dp_writer_allocate(c->writer, at, length, &error);
        at += length;
    }
    if (status == DOPPEL_OK)
        tell_allocated(c, at);
    else
        fail_copying(c, status, &error);
}

static void copy_pieces(void *user, size_t thread) {
    record_copying *c = user;
    dp_buffer buffer = {0};
    size_t piece;
    if (c->memory && !thread)
        allocate_file(c);
    while (take_piece(c, &piece)) {
        doppel_error error = {0};
        doppel_status status = write_piece(c, piece, &buffer, &error);
        if (status != DOPPEL_OK)
            fail_copying(c, status, &error);
        tell_copied(c, piece);
    }
    dp_buffer_free(&buffer);
}

static doppel_status write_by_copying(doppel_batch *batch, doppel_writer *writer, doppel_error *error) {
    record_copying c = {.batch = batch, .writer = writer};
    size_t threads = batch->settings.threads;
    doppel_status status = dp_record_files_check(&batch->readings.files, error);
    if (status == DOPPEL_OK && !cut_pieces(&c))
        status = dp_no_memory(error);
    if (status == DOPPEL_OK && threads >= LEAST_MAPPING)
        status = dp_writer_map(writer, c.piece[c.count].at, &c.memory, error);
    if (c.memory && threads > MOST_MAPPING)
        threads = MOST_MAPPING;
    if (c.memory && batch->room.writer == writer)
        c.allocated = batch->room.allocated;
    if (status == DOPPEL_OK) {
        pthread_mutex_init(&c.lock, NULL);
        pthread_cond_init(&c.moved, NULL);
        dp_run_threads(threads, copy_pieces, &c);
        pthread_cond_destroy(&c.moved);
        pthread_mutex_destroy(&c.lock);
        status = c.status;
        if (status != DOPPEL_OK && error)
            *error = c.error;
    }
    free(c.piece);
    /* Files that have changed meanwhile may have been copied half old, half new. */
    DP_THEN(status, dp_record_files_check(&batch->readings.files, error));
    return status;
}

doppel_status doppel_batch_write_kept(doppel_batch *batch, doppel_writer *writer, doppel_error *error) {
    return have_positions(batch) ? write_by_copying(batch, writer, error) : write_by_reading(batch, writer, error);
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
