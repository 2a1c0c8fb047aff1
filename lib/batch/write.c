/* write.c - documents out: doppel_batch_write gives each with what was decided, doppel_batch_write_kept writes those
 * that stay, doppel_batch_write_files to an output for each input.
 *
 * For the former the inputs are read once more: threads write records, a line each; take_records gives them out in
 * order, by number. For the latter, records whose positions are known are not read but copied, as many at a time as
 * stand together. */
#include "batch/batch.h"
#include "input/input.h"

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A document that is written. */
typedef struct written_document {
    uint64_t position, file; /* file: its number in the order of reading */
    doppel_slice record;     /* or row, if that is wanted */
    doppel_slice header;     /* of rows, with the first document of each file at least */
} written_document;

typedef struct batch_writing {
    doppel_batch *batch;
    bool rows; /* are given as they stand, where there are some */
    uint64_t position;
    bool too_many; /* more documents came than before */
    bool limit;    /* as many were given as were read, and no more are wanted */
    doppel_status (*take)(const written_document *document, void *user);
    void *user;
} batch_writing;

/* What comes before a record on its way; its header comes before it. */
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
        const written_document document = {.position = w->position++,
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

/* Reads the inputs once more, those not known, and gives every document in order; as rows, those that have one as it
 * stands in its file. */
static doppel_status write_again(doppel_batch *batch, bool rows,
                                 doppel_status (*take)(const written_document *document, void *user), void *user,
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

static doppel_status give_record(const written_document *document, void *user) {
    const record_giving *g = user;
    doppel_near near;
    doppel_batch_get(g->batch, document->position, &near);
    return g->document(document->record, &near, g->user);
}

doppel_status doppel_batch_write(doppel_batch *batch,
                                 doppel_status (*document)(doppel_slice record, const doppel_near *near, void *user),
                                 void *user, doppel_error *error) {
    return write_again(batch, false, give_record, &(record_giving){batch, document, user}, error);
}

/* ---- those that stay ---- */

typedef struct kept_writing {
    const doppel_batch *batch;
    doppel_writer *writer;
    doppel_error error;
} kept_writing;

static doppel_status write_if_kept(const written_document *document, void *user) {
    kept_writing *w = user;
    if (!doppel_batch_stays(w->batch, document->position))
        return DOPPEL_OK;
    DP_TRY(doppel_writer_write(w->writer, document->record, &w->error));
    return doppel_writer_write(w->writer, doppel_slice_of("\n"), &w->error);
}

static doppel_status write_by_reading(doppel_batch *batch, doppel_writer *writer, doppel_error *error) {
    kept_writing w = {.batch = batch, .writer = writer};
    doppel_status status = write_again(batch, false, write_if_kept, &w, error);
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
        if (!doppel_batch_stays(c->batch, i))
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
        if (!doppel_batch_stays(c->batch, *next))
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
        if (!doppel_batch_stays(batch, d)) {
            d++;
            continue;
        }
        const dp_doc *doc = batch->documents.doc;
        uint32_t i = d;
        uint64_t position = dp_doc_position(&doc[d]);
        size_t length = (size_t)find_stretch(c, &d, end);
        DP_TRY(dp_record_files_read(&batch->readings.files, position, to, length, error));
        for (; i < d; i++) /* what stands there may be the comma of an array */
            to[dp_doc_position(&doc[i]) + doc[i].record_length - position] = '\n';
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

/* ---- rows, and an output for each input ----
 *
 * What each input is, is looked up before anything is read, so that what cannot be written is refused at once. Outputs
 * of their own are written below a folder in the folder that was asked for, .doppel-PROCESS, and take their places
 * together in the end. */

/* ---- planning ---- */

typedef struct planning {
    doppel_batch *batch;
    dp_hashmap names;  /* of outputs: numbers of files, + 1, by hash */
    dp_hashmap inputs; /* by device and number */
    doppel_error *error;
} planning;

static bool ends_in(const char *name, size_t length, const char *ending) {
    size_t size = strlen(ending);
    return length > size && !strncasecmp(name + length - size, ending, size);
}

/* The name of an output: what is written as it stands keeps its name, but for a compression that is not written. */
static char *output_name(const dp_input_kind *input) {
    char *made;
    const char *name = input->name;
    size_t length = strlen(name);
    bool as_it_stands = !input->format || input->rows || input->records;
    size_t ending = ends_in(name, length, ".bz2") ? 4 : ends_in(name, length, ".xz") ? 3 : 0;
    int printed = !as_it_stands ? asprintf(&made, "%s.jsonl", name)
                  : ending      ? asprintf(&made, "%.*s.zst", (int)(length - ending), name)
                                : asprintf(&made, "%s", name);
    return printed < 0 ? NULL : made;
}

static uint64_t file_key(const struct stat *file) {
    const uint64_t both[2] = {file->st_dev, file->st_ino};
    return dp_murmur3(both, sizeof both, 0);
}

/* dp_input_list: adds a file. */
static doppel_status add_output(dp_input_kind *input, void *user) {
    planning *p = user;
    dp_output_files *files = &p->batch->files;
    struct stat there;
    if (!strcmp(input->path, "-") && files->folder)
        return dp_fail(p->error, DOPPEL_ERROR_USAGE, "stdin has no name for an output of its own: give files");
    if (!dp_reserve(&files->file, &files->room, files->count + 1, sizeof *files->file))
        return dp_no_memory(p->error);
    if (!stat(input->path, &there)) {
        uint64_t *number = dp_hashmap_add(&p->inputs, file_key(&there));
        if (!number)
            return dp_no_memory(p->error);
        *number = 1;
    }
    dp_output_file *file = &files->file[files->count++];
    *file = (dp_output_file){.input = strdup(input->path), .name = output_name(input), .header = input->header};
    input->header = (dp_buffer){0};
    if (!file->input || !file->name)
        return dp_no_memory(p->error);
    if (!files->folder && input->format && !input->rows)
        return dp_fail_at(p->error, DOPPEL_ERROR_USAGE, input->path, 0,
                          "is %s, whose documents are no rows: write JSONL, to a name that ends in .jsonl",
                          input->format);
    return DOPPEL_OK;
}

/* Whether two headers are the same, whatever their line ends. */
static bool same_header(doppel_slice a, doppel_slice b) {
    a.length -= a.length && a.data[a.length - 1] == '\r';
    b.length -= b.length && b.data[b.length - 1] == '\r';
    return a.length == b.length && (!a.length || !memcmp(a.data, b.data, a.length));
}

static doppel_slice header_of(const dp_output_file *file) {
    return (doppel_slice){file->header.data, file->header.size};
}

static doppel_status other_columns(const char *path, const char *first, doppel_status code, doppel_error *error) {
    return dp_fail_at(error, code, path, 0,
                      "has other columns than %s: write JSONL, or a file for each input (output-dir)", first);
}

/* All files that have a header have the same. */
static doppel_status check_headers(const dp_output_files *files, doppel_error *error) {
    const dp_output_file *first = NULL;
    for (size_t i = 0; i < files->count; i++) {
        const dp_output_file *file = &files->file[i];
        if (!file->header.size)
            continue;
        first = first ? first : file;
        if (!same_header(header_of(first), header_of(file)))
            return other_columns(file->input, first->input, DOPPEL_ERROR_USAGE, error);
    }
    return DOPPEL_OK;
}

typedef struct looked_name {
    const dp_output_files *files;
    const char *name;
} looked_name;

static bool is_name(const void *user, uint64_t number) {
    const looked_name *looked = user;
    return !strcmp(looked->files->file[number - 1].name, looked->name);
}

static uint64_t name_key(const char *name) {
    return dp_murmur3(name, strlen(name), 0);
}

/* Whether an output can take its place: that is no input and no folder, and no file stands in the way to it. */
static doppel_status check_place(const planning *p, const dp_output_file *file) {
    struct stat there;
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", p->batch->files.folder, file->name) >= (int)sizeof path)
        return dp_fail_at(p->error, DOPPEL_ERROR_USAGE, file->input, 0, "the name of its output is too long");
    if (stat(path, &there))
        return errno != ENOTDIR
                   ? DOPPEL_OK
                   : dp_fail_at(p->error, DOPPEL_ERROR_IO, path, 0, "cannot be written: %s", strerror(errno));
    if (dp_hashmap_find(&p->inputs, file_key(&there)))
        return dp_fail_at(p->error, DOPPEL_ERROR_USAGE, path, 0, "is an input: choose another folder");
    if (S_ISDIR(there.st_mode))
        return dp_fail_at(p->error, DOPPEL_ERROR_IO, path, 0, "cannot be written: %s", strerror(EISDIR));
    return DOPPEL_OK;
}

/* No output is a folder that another one is in. */
static doppel_status check_folders_of(const planning *p, const dp_output_file *file) {
    const dp_output_files *files = &p->batch->files;
    for (char *slash = strchr(file->name, '/'); slash; slash = strchr(slash + 1, '/')) {
        const looked_name looked = {files, file->name};
        *slash = 0;
        uint64_t number = dp_hashmap_find_if(&p->names, name_key(file->name), is_name, &looked);
        *slash = '/';
        if (number)
            return dp_fail_at(p->error, DOPPEL_ERROR_USAGE, file->input, 0,
                              "needs a folder of the name that the output of %s has, %s: run them apart",
                              files->file[number - 1].input, files->file[number - 1].name);
    }
    return DOPPEL_OK;
}

/* No two files have one output, and each can take its place: known before all the work, as outputs appear together. */
static doppel_status check_names(planning *p) {
    const dp_output_files *files = &p->batch->files;
    for (size_t i = 0; i < files->count; i++) {
        const dp_output_file *file = &files->file[i];
        const looked_name looked = {files, file->name};
        uint64_t *number = dp_hashmap_add_if(&p->names, name_key(file->name), is_name, &looked);
        if (!number)
            return dp_no_memory(p->error);
        if (*number)
            return dp_fail_at(p->error, DOPPEL_ERROR_USAGE, file->input, 0,
                              "would be written to the name that %s has, %s: give the folder that they are in, or run "
                              "them apart",
                              files->file[*number - 1].input, file->name);
        *number = i + 1;
        DP_TRY(check_place(p, file));
    }
    for (size_t i = 0; i < files->count; i++)
        DP_TRY(check_folders_of(p, &files->file[i]));
    return DOPPEL_OK;
}

/* Whether a folder can be written to or, as long as it is not there, made: known before all the work. */
static doppel_status check_folder(const char *folder, doppel_error *error) {
    char path[4096];
    struct stat there;
    if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path)
        return dp_fail_at(error, DOPPEL_ERROR_IO, folder, 0, "the name is too long");
    for (char *slash; strcmp(path, ".") != 0 && stat(path, &there) && errno == ENOENT;) {
        slash = strrchr(path, '/');
        if (!slash)
            strcpy(path, ".");
        else
            slash[slash == path] = 0;
    }
    int reason = stat(path, &there) ? errno : !S_ISDIR(there.st_mode) ? ENOTDIR : access(path, W_OK | X_OK) ? errno : 0;
    if (reason)
        return dp_fail_at(error, DOPPEL_ERROR_IO, folder, 0, "cannot be written: %s", strerror(reason));
    return DOPPEL_OK;
}

static doppel_status plan(doppel_batch *batch, const char *const *paths, size_t path_count, const char *folder,
                          doppel_error *error) {
    dp_output_files *files = &batch->files;
    doppel_error own = {0};
    planning p = {.batch = batch, .error = &own};
    const dp_input_paths list = {paths, path_count};
    dp_output_files_free(files);
    if (folder && !(files->folder = strdup(folder)))
        return dp_no_memory(error);
    files->rows = !folder;
    doppel_status status = dp_input_list(&list, &batch->settings.input, add_output, &p, &own);
    if (folder)
        DP_THEN(status, check_folder(folder, &own));
    DP_THEN(status, folder ? check_names(&p) : check_headers(files, &own));
    dp_hashmap_free(&p.names);
    dp_hashmap_free(&p.inputs);
    if (status != DOPPEL_OK && error)
        *error = own;
    return status;
}

doppel_status doppel_batch_plan_rows(doppel_batch *batch, const char *const *paths, size_t path_count,
                                     doppel_error *error) {
    return plan(batch, paths, path_count, NULL, error);
}

doppel_status doppel_batch_plan_files(doppel_batch *batch, const char *const *paths, size_t path_count,
                                      const char *folder, doppel_error *error) {
    return plan(batch, paths, path_count, folder, error);
}

/* ---- rows, to one file ---- */

typedef struct row_writing {
    doppel_batch *batch;
    doppel_writer *writer;
    dp_buffer header;
    bool begun; /* the header is written */
    uint64_t file;
    doppel_error *error;
} row_writing;

static doppel_status write_line(doppel_writer *writer, doppel_slice line, doppel_error *error) {
    DP_TRY(doppel_writer_write(writer, line, error));
    return doppel_writer_write(writer, doppel_slice_of("\n"), error);
}

static const char *file_name(const doppel_batch *batch, uint64_t file) {
    return file < batch->files.count ? batch->files.file[file].input : "-";
}

/* Writes the header, of the first file that has one; others must have the same. */
static doppel_status take_header(row_writing *w, doppel_slice header, uint64_t file) {
    if (w->begun)
        return same_header((doppel_slice){w->header.data, w->header.size}, header)
                   ? DOPPEL_OK
                   : other_columns(file_name(w->batch, file), file_name(w->batch, w->file), DOPPEL_ERROR_INPUT,
                                   w->error);
    w->begun = true;
    w->file = file;
    if (!dp_buffer_add(&w->header, header.data, header.length))
        return dp_no_memory(w->error);
    return write_line(w->writer, header, w->error);
}

static doppel_status write_row(const written_document *document, void *user) {
    row_writing *w = user;
    if (document->header.length)
        DP_TRY(take_header(w, document->header, document->file));
    return doppel_batch_stays(w->batch, document->position) ? write_line(w->writer, document->record, w->error)
                                                            : DOPPEL_OK;
}

static doppel_status write_rows(doppel_batch *batch, doppel_writer *writer, doppel_error *error) {
    doppel_error own = {0};
    row_writing w = {.batch = batch, .writer = writer, .error = &own};
    const dp_output_files *files = &batch->files;
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < files->count && !w.begun && status == DOPPEL_OK; i++)
        if (files->file[i].header.size)
            status = take_header(&w, header_of(&files->file[i]), i);
    DP_THEN(status, write_again(batch, true, write_row, &w, error));
    dp_buffer_free(&w.header);
    if (status != DOPPEL_OK && own.code != DOPPEL_OK && error)
        *error = own;
    return status;
}

/* ---- a file for each input ---- */

typedef struct file_writing {
    doppel_batch *batch;
    char staging[4096];
    size_t next;           /* the file that is begun next; the one before it is open */
    doppel_writer *writer; /* of it; NULL: none is */
    doppel_error error;
} file_writing;

static doppel_status fail_folder(const char *path, doppel_error *error) {
    return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be made: %s", strerror(errno));
}

/* Makes the folders that a path goes through. */
static doppel_status make_folders(char *path, doppel_error *error) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        bool made = !mkdir(path, 0777) || errno == EEXIST;
        if (!made)
            return fail_folder(path, error);
        *slash = '/';
    }
    return DOPPEL_OK;
}

/* The path of an output below a folder, whose folders are made. */
static doppel_status place_of(const char *folder, const char *name, char path[4096], doppel_error *error) {
    if (snprintf(path, 4096, "%s/%s", folder, name) >= 4096)
        return dp_fail_at(error, DOPPEL_ERROR_IO, name, 0, "the name of its output is too long");
    return make_folders(path, error);
}

static doppel_status end_output(file_writing *w, bool ok) {
    doppel_writer *writer = w->writer;
    w->writer = NULL;
    return doppel_writer_finish(writer, ok, ok ? &w->error : NULL);
}

/* Ends the files before this one, each with its header at least, and opens it. */
static doppel_status begin_files(file_writing *w, uint64_t file) {
    const dp_output_files *files = &w->batch->files;
    char path[4096];
    for (; w->next <= file; w->next++) {
        if (w->next >= files->count)
            return dp_inputs_changed(&w->error);
        const dp_output_file *f = &files->file[w->next];
        DP_TRY(end_output(w, true));
        DP_TRY(place_of(w->staging, f->name, path, &w->error));
        DP_TRY(doppel_writer_open(&w->writer, path, (int)w->batch->settings.threads, &w->error));
        if (f->header.size)
            DP_TRY(write_line(w->writer, header_of(f), &w->error));
    }
    return DOPPEL_OK;
}

static doppel_status write_to_file(const written_document *document, void *user) {
    file_writing *w = user;
    if (document->file >= w->next)
        DP_TRY(begin_files(w, document->file));
    return doppel_batch_stays(w->batch, document->position) ? write_line(w->writer, document->record, &w->error)
                                                            : DOPPEL_OK;
}

/* Puts all outputs into their places. */
static doppel_status move_files(file_writing *w) {
    const dp_output_files *files = &w->batch->files;
    char from[4096], to[4096];
    for (size_t i = 0; i < files->count; i++) {
        DP_TRY(place_of(files->folder, files->file[i].name, to, &w->error));
        DP_TRY(place_of(w->staging, files->file[i].name, from, &w->error));
        if (rename(from, to))
            return dp_fail_at(&w->error, DOPPEL_ERROR_IO, to, 0, "cannot be written: %s", strerror(errno));
    }
    return DOPPEL_OK;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    return remove(path) && errno != ENOENT;
}

doppel_status doppel_batch_write_files(doppel_batch *batch, doppel_error *error) {
    const dp_output_files *files = &batch->files;
    enum { OPEN_FOLDERS = 16 };
    file_writing w = {.batch = batch};
    if (!files->folder)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "outputs have to be planned before documents are read");
    char name[64];
    snprintf(name, sizeof name, ".doppel-%ld/", (long)getpid());
    doppel_status status = place_of(files->folder, name, w.staging, &w.error);
    DP_THEN(status, write_again(batch, true, write_to_file, &w, error));
    if (status == DOPPEL_OK && files->count)
        status = begin_files(&w, files->count - 1);
    doppel_status ended = end_output(&w, status == DOPPEL_OK);
    DP_THEN(status, ended);
    DP_THEN(status, move_files(&w));
    if (w.staging[0])
        nftw(w.staging, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
    if (status != DOPPEL_OK && w.error.code != DOPPEL_OK && error)
        *error = w.error;
    return status;
}

doppel_status doppel_batch_write_kept(doppel_batch *batch, doppel_writer *writer, doppel_error *error) {
    if (batch->files.rows)
        return write_rows(batch, writer, error);
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
