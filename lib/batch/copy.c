/* copy.c - kept or removed records, copied unchanged from their files: doppel_batch_write_kept and
 * doppel_batch_write_removed where the positions of all records are known (dp_has_positions), so that none is parsed
 * again; adjacent records are copied together.
 *
 * The output is cut into pieces of whole records, and threads take piece after piece. A plain file is mapped into
 * memory, and they all copy into it at the same time: the kernel lets only one thread at a time write to a file. One
 * thread allocates the file's blocks ahead of them, so that a full disk is an error and not a signal. Where there is no
 * such file (compressed, a pipe), or there are few threads, pieces are handed to the writer, which puts them in order.
 */
#include "batch/batch.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes of a piece, but for a record that is longer; and what is allocated at a time. */
enum { PIECE = 1 << 20, ALLOCATED = 64 << 20 };
/* From this many threads on the file is mapped: a page that is written through a mapping costs more than one that is
 * written by a call. More threads than the second number hinder each other in the kernel. */
enum { LEAST_MAPPING = 4, MOST_MAPPING = 8 };

/* ---- room ahead ---- */

void doppel_batch_set_output(doppel_batch *batch, doppel_writer *writer) {
    batch->room = (dp_output_room){.writer = writer};
}

static bool has_candidates(const dp_candidates *candidates, const dp_doc *doc, uint32_t document) {
    return doc->twin != document || dp_buckets_of(candidates, document).count;
}

/* The bytes of documents that will be kept, at most: the file is truncated at the end. */
static uint64_t count_kept_bytes(const doppel_batch *batch, const dp_candidates *candidates) {
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
    if (!room->writer || batch->settings.threads < LEAST_MAPPING || !candidates->looked_start ||
        !dp_has_positions(batch))
        return;
    room->wanted = count_kept_bytes(batch, candidates);
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
    bool removed; /* removed documents are copied */
    doppel_writer *writer;
    copy_piece *piece; /* count + 1 of them: the last one is where the output ends */
    size_t count, room;
    char *memory;         /* the file; NULL: it is not mapped */
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    size_t next;
    uint64_t allocated, copied;
    doppel_status status;
    doppel_error error;
} record_copying;

static bool is_copied(const record_copying *c, size_t document) {
    return doppel_batch_stays(c->batch, document) != c->removed;
}

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
        if (!is_copied(c, i))
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

/* The number of bytes that can be read at once, starting with a document that is copied: its record, and those that are
 * copied and follow it directly in the same file. *next is the document after them. */
static uint64_t find_stretch(const record_copying *c, uint32_t *next, uint32_t end) {
    const dp_doc *doc = c->batch->documents.doc;
    uint64_t from = dp_doc_position(&doc[*next]), to = from + doc[*next].record_length;
    const dp_record_file *file = dp_record_files_find(&c->batch->readings.files, from);
    uint64_t file_end = file->base + file->state.bytes;
    for (++*next; *next < end && dp_doc_position(&doc[*next]) == to + 1 && to + 1 < file_end; ++*next) {
        if (!is_copied(c, *next))
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
        if (!is_copied(c, d)) {
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
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* Takes a piece, once the file has room for it; false when there is none left, or something has failed. */
static bool take_piece(record_copying *c, size_t *piece) {
    pthread_mutex_lock(&c->lock);
    *piece = c->next++;
    while (*piece < c->count && c->status == DOPPEL_OK && c->memory && c->allocated < c->piece[*piece + 1].at)
        pthread_cond_wait(&c->changed, &c->lock);
    bool taken = *piece < c->count && c->status == DOPPEL_OK;
    pthread_mutex_unlock(&c->lock);
    return taken;
}

/* Releases complete pages of the mapping: the kernel writes them, and they no longer count as memory of this process.
 */
static void release_pages(char *memory, uint64_t at, size_t length) {
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
        release_pages(c->memory, at, length);
        return DOPPEL_OK;
    }
    if (!dp_reserve(&buffer->data, &buffer->capacity, length + 1, 1))
        return dp_no_memory(error);
    DP_TRY(copy_piece_to(c, piece, buffer->data, error));
    return doppel_writer_put(c->writer, piece, (doppel_slice){buffer->data, length}, error);
}

static void note_copied(record_copying *c, size_t piece) {
    const doppel_input_options *input = &c->batch->settings.input;
    pthread_mutex_lock(&c->lock);
    c->copied += c->piece[piece + 1].at - c->piece[piece].at;
    if (input->progress)
        input->progress(c->copied, c->piece[c->count].at, c->piece[piece + 1].first, input->user);
    pthread_mutex_unlock(&c->lock);
}

/* How much of the file has room; false when something has failed. */
static bool note_allocated(record_copying *c, uint64_t allocated) {
    pthread_mutex_lock(&c->lock);
    c->allocated = allocated;
    pthread_cond_broadcast(&c->changed);
    bool goes_on = c->status == DOPPEL_OK;
    pthread_mutex_unlock(&c->lock);
    return goes_on;
}

static void allocate_file(record_copying *c) {
    doppel_error error = {0};
    doppel_status status = DOPPEL_OK;
    uint64_t at = c->allocated, end = c->piece[c->count].at;
    while (at < end && status == DOPPEL_OK && note_allocated(c, at)) {
        uint64_t length = end - at < ALLOCATED ? end - at : ALLOCATED;
        status = dp_writer_allocate(c->writer, at, length, &error);
        at += length;
    }
    if (status == DOPPEL_OK)
        note_allocated(c, at);
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
        note_copied(c, piece);
    }
    dp_buffer_free(&buffer);
}

doppel_status dp_copy_records(doppel_batch *batch, bool removed, doppel_writer *writer, doppel_error *error) {
    record_copying c = {.batch = batch, .removed = removed, .writer = writer};
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
        pthread_cond_init(&c.changed, NULL);
        dp_run_threads(threads, copy_pieces, &c);
        pthread_cond_destroy(&c.changed);
        pthread_mutex_destroy(&c.lock);
        status = c.status;
        if (status != DOPPEL_OK && error)
            *error = c.error;
    }
    free(c.piece);
    /* Files that changed during copying may have been copied half old, half new. */
    DP_THEN(status, dp_record_files_check(&batch->readings.files, error));
    return status;
}
