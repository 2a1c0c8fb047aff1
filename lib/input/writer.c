/* writer.c - an output file: doppel_writer_open, doppel_writer_write ... or doppel_writer_put ..., doppel_writer_finish
 * (doppel.h).
 *
 * It is compressed by its name: .gz with gzip, .zst with zstd, else plain. A file appears under its name once it is
 * whole, and not at all if it does not get there; a pipe or a device is written to directly.
 *
 * Pieces come from many threads, in any order, and are moved in the order of their numbers by one thread at a time: the
 * mover, which is the one that brought the next piece. It moves its own piece and then those after it that wait. Plain
 * bytes it writes; those to be compressed it copies into blocks of a fixed size, so that a block depends on nothing but
 * its place in the output, and the bytes of the file not on the number of threads. Any thread compresses any full
 * block: those that put pieces do so before they return, the writer's own do nothing else. The mover writes finished
 * blocks in order when it needs room for the next one.
 *
 * One lock guards the states. Nothing is copied, compressed or written under it. A thread waits in here only for others
 * that are in here too, never for a piece that has not been put yet: so every wait ends, whatever the callers do. */
#include "input/input.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

typedef enum pack_codec { PACK_NONE, PACK_GZIP, PACK_ZSTD } pack_codec;

/* Bytes of a block. Those of gzip look back 32 KiB only, so 1 MiB loses little; zstd looks back farther. Both stay
 * below what a thread that reads them ahead holds. */
#define GZIP_BLOCK ((size_t)1 << 20)
#define ZSTD_BLOCK ((size_t)4 << 20)

/* libdeflate's 6 packs as well as zlib's 6, in less than half the time. */
#define GZIP_LEVEL 6
#define ZSTD_LEVEL 3

/* More threads would be idle, as one mover cannot keep them busy. */
#define MOST_THREADS 32

/* Plain bytes are gathered up to this many. */
#define GATHER ((size_t)256 << 10)

/* A thread that brings a piece while another one is moving waits when the pieces that wait have this many bytes for
 * each thread. */
#define HELD_BYTES ((size_t)2 << 20)

/* What a block is packed with. */
typedef struct pack_context {
    struct libdeflate_compressor *gzip;
    ZSTD_CCtx *zstd;
} pack_context;

enum { BLOCK_EMPTY, BLOCK_READY, BLOCK_BUSY, BLOCK_DONE };

/* It belongs to the mover when it is empty or done, to a thread when busy. */
typedef struct pack_block {
    int state;
    int reason; /* errno of what went wrong; 0: nothing */
    dp_buffer in, out;
    pack_context context;
} pack_block;

/* A piece that arrived before its turn. */
typedef struct early_piece {
    bool there;
    uint64_t number;
    dp_buffer bytes;
} early_piece;

struct doppel_writer {
    char *name; /* for messages, and where it goes */
    bool to_stdout;
    dp_newfile file; /* if `temporary` */
    int number;      /* to write to */
    bool temporary;  /* written to a temporary file and renamed into place; else written directly */
    int threads;     /* that compress or put pieces */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something of what `lock` guards has changed */
    int reason;             /* errno of what went wrong; 0: nothing */

    uint64_t next;      /* the piece that is moved next, or now */
    bool moving;        /* a thread is the mover */
    early_piece *early; /* by number modulo `early_room` */
    size_t early_room;
    size_t early_bytes;
    dp_buffer spares[MOST_THREADS]; /* memory of pieces that were moved, for the next ones */
    int spare_count;

    dp_buffer plain; /* the mover's: gathered */

    pack_codec codec;
    size_t block_size;
    pack_block *blocks; /* by number modulo their count */
    size_t block_count;
    uint64_t filled, taken; /* blocks that are full, and of these begun to be packed */
    uint64_t written;       /* the mover's: blocks written */
    pthread_t packers[MOST_THREADS];
    int packer_count;
    bool begun, ended; /* of the packers */

    bool ahead;   /* the file may be longer than what is written to it */
    char *memory; /* the file, mapped; NULL: it is not */
    size_t memory_size;
};

/* Writes all of it; gives 0 or an errno. */
static int write_out(const doppel_writer *writer, const char *bytes, size_t length) {
    while (length) {
        ssize_t written = write(writer->number, bytes, length);
        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0) {
            bytes += written;
            length -= (size_t)written;
        }
    }
    return 0;
}

/* ---- one block ---- */

static pack_block *block_of(const doppel_writer *writer, uint64_t number) {
    return &writer->blocks[number % writer->block_count];
}

/* What it packs with is kept for the next block in its place. */
static bool begin_context(pack_codec codec, pack_context *c) {
    if (codec == PACK_GZIP)
        return c->gzip || (c->gzip = libdeflate_alloc_compressor(GZIP_LEVEL));
    if (c->zstd)
        return true;
    c->zstd = ZSTD_createCCtx();
    return c->zstd && !ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1));
}

static void end_context(pack_context *c) {
    if (c->gzip)
        libdeflate_free_compressor(c->gzip);
    ZSTD_freeCCtx(c->zstd);
}

static int pack_gzip(pack_block *b) {
    size_t room = libdeflate_gzip_compress_bound(b->context.gzip, b->in.size);
    if (!dp_reserve(&b->out.data, &b->out.capacity, room, 1))
        return ENOMEM;
    b->out.size = libdeflate_gzip_compress(b->context.gzip, b->in.data, b->in.size, b->out.data, room);
    return b->out.size ? 0 : EIO;
}

static int pack_zstd(pack_block *b) {
    size_t room = ZSTD_compressBound(b->in.size);
    if (!dp_reserve(&b->out.data, &b->out.capacity, room, 1))
        return ENOMEM;
    b->out.size = ZSTD_compress2(b->context.zstd, b->out.data, room, b->in.data, b->in.size);
    return ZSTD_isError(b->out.size) ? ENOMEM : 0; /* with room enough, nothing else can be missing */
}

static int pack(pack_codec codec, pack_block *b) {
    if (!begin_context(codec, &b->context))
        return ENOMEM;
    return (codec == PACK_GZIP ? pack_gzip : pack_zstd)(b);
}

/* Packs a full block, if there is one: the lock is held at the start and at the end. */
static bool pack_next(doppel_writer *writer) {
    if (writer->taken == writer->filled)
        return false;
    pack_block *b = block_of(writer, writer->taken++);
    b->state = BLOCK_BUSY;
    pthread_mutex_unlock(&writer->lock);
    b->reason = pack(writer->codec, b);
    pthread_mutex_lock(&writer->lock);
    b->state = BLOCK_DONE;
    pthread_cond_broadcast(&writer->changed);
    return true;
}

/* Packs a block if there is one, else waits for a change. Under the lock. */
static void wait_or_pack(doppel_writer *writer) {
    if (!pack_next(writer))
        pthread_cond_wait(&writer->changed, &writer->lock);
}

/* ---- threads that only pack ---- */

static void *pack_blocks(void *user) {
    doppel_writer *writer = user;
    pthread_mutex_lock(&writer->lock);
    while (!writer->ended)
        wait_or_pack(writer);
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

/* For a caller that writes from one thread: it packs too, when it would wait. */
static void begin_packers(doppel_writer *writer) {
    writer->begun = true;
    while (writer->packer_count < writer->threads &&
           dp_thread_start(&writer->packers[writer->packer_count], pack_blocks, writer))
        writer->packer_count++;
}

static void end_packers(doppel_writer *writer) {
    pthread_mutex_lock(&writer->lock);
    writer->ended = true;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
    while (writer->packer_count)
        pthread_join(writer->packers[--writer->packer_count], NULL);
}

/* False: no memory. */
static bool create_blocks(doppel_writer *writer, pack_codec codec) {
    writer->codec = codec;
    writer->block_size = codec == PACK_GZIP ? GZIP_BLOCK : ZSTD_BLOCK;
    writer->block_count = (size_t)writer->threads + 2;
    writer->blocks = calloc(writer->block_count, sizeof *writer->blocks);
    return writer->blocks;
}

static void free_blocks(doppel_writer *writer) {
    for (size_t i = 0; writer->blocks && i < writer->block_count; i++) {
        end_context(&writer->blocks[i].context);
        dp_buffer_free(&writer->blocks[i].in);
        dp_buffer_free(&writer->blocks[i].out);
    }
    free(writer->blocks);
}

/* ---- what the mover does: each gives 0 or an errno, after which nothing more is moved ---- */

/* Waits for the block that comes next in order, and writes it. */
static int write_block(doppel_writer *writer) {
    pack_block *b = block_of(writer, writer->written++);
    pthread_mutex_lock(&writer->lock);
    while (b->state != BLOCK_DONE)
        wait_or_pack(writer);
    b->state = BLOCK_EMPTY;
    pthread_mutex_unlock(&writer->lock);
    b->in.size = 0;
    return b->reason ? b->reason : write_out(writer, b->out.data, b->out.size);
}

/* Hands over the block that was filled, and makes sure of an empty one. */
static int hand_over(doppel_writer *writer) {
    pack_block *b = block_of(writer, writer->filled);
    pthread_mutex_lock(&writer->lock);
    b->state = BLOCK_READY;
    writer->filled++;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
    return writer->filled - writer->written == writer->block_count ? write_block(writer) : 0;
}

static int move_packed(doppel_writer *writer, const char *bytes, size_t length) {
    int reason = 0;
    while (length && !reason) {
        pack_block *b = block_of(writer, writer->filled);
        size_t part = writer->block_size - b->in.size;
        if (part > length)
            part = length;
        if (!dp_buffer_add(&b->in, bytes, part))
            return ENOMEM;
        bytes += part;
        length -= part;
        if (b->in.size == writer->block_size)
            reason = hand_over(writer);
    }
    return reason;
}

/* Packs what is left. No bytes at all make a file with one empty block. */
static int finish_packed(doppel_writer *writer) {
    int reason = 0;
    if (!writer->filled || block_of(writer, writer->filled)->in.size)
        reason = hand_over(writer);
    while (!reason && writer->written < writer->filled)
        reason = write_block(writer);
    return reason;
}

static int finish_plain(doppel_writer *writer) {
    int reason = write_out(writer, writer->plain.data, writer->plain.size);
    writer->plain.size = 0;
    return reason;
}

/* Small pieces are gathered, large ones go straight out. */
static int move_plain(doppel_writer *writer, const char *bytes, size_t length) {
    int reason = writer->plain.size + length > GATHER ? finish_plain(writer) : 0;
    if (reason || !length)
        return reason;
    if (length >= GATHER)
        return write_out(writer, bytes, length);
    return dp_buffer_add(&writer->plain, bytes, length) ? 0 : ENOMEM;
}

/* ---- pieces, in order: all of it under the lock, which is released while one is moved ---- */

/* The piece, if it has come; NULL: not yet. */
static early_piece *find_early(const doppel_writer *writer, uint64_t number) {
    early_piece *piece = writer->early_room ? &writer->early[number % writer->early_room] : NULL;
    return piece && piece->there && piece->number == number ? piece : NULL;
}

/* The first failure counts. */
static void set_reason(doppel_writer *writer, int reason) {
    if (!writer->reason)
        writer->reason = reason;
}

/* Makes room for pieces up to this one; false: no memory. */
static bool reserve_early(doppel_writer *writer, uint64_t number) {
    size_t room = writer->early_room ? writer->early_room : 16;
    while (number - writer->next >= room)
        room *= 2;
    if (room == writer->early_room)
        return true;
    early_piece *early = calloc(room, sizeof *early);
    if (!early)
        return false;
    for (size_t i = 0; i < writer->early_room; i++) {
        const early_piece *piece = &writer->early[i];
        if (piece->there)
            early[piece->number % room] = *piece;
    }
    free(writer->early);
    writer->early = early;
    writer->early_room = room;
    return true;
}

/* Keeps a piece whose turn has not come; gives 0 or an errno. */
static int keep_early(doppel_writer *writer, uint64_t number, const dp_buffer *bytes) {
    if (!reserve_early(writer, number))
        return ENOMEM;
    writer->early[number % writer->early_room] = (early_piece){true, number, *bytes};
    writer->early_bytes += bytes->size;
    return 0;
}

static dp_buffer take_spare(doppel_writer *writer) {
    return writer->spare_count ? writer->spares[--writer->spare_count] : (dp_buffer){0};
}

static void give_spare(doppel_writer *writer, dp_buffer *bytes) {
    bytes->size = 0;
    if (writer->spare_count < MOST_THREADS)
        writer->spares[writer->spare_count++] = *bytes;
    else
        dp_buffer_free(bytes);
}

/* The next piece was moved. */
static void pass_piece(doppel_writer *writer) {
    early_piece *piece = find_early(writer, writer->next++);
    pthread_cond_broadcast(&writer->changed);
    if (!piece)
        return;
    piece->there = false;
    writer->early_bytes -= piece->bytes.size;
    give_spare(writer, &piece->bytes);
}

/* Whether this piece can be moved by the thread that brings it. */
static bool is_next(const doppel_writer *writer, uint64_t number) {
    return number == writer->next && !writer->moving;
}

/* Moves the next piece, and those after it that have come. */
static void move_pieces(doppel_writer *writer, doppel_slice bytes) {
    const early_piece *piece = NULL;
    writer->moving = true;
    do {
        pthread_mutex_unlock(&writer->lock);
        int reason = (writer->codec == PACK_NONE ? move_plain : move_packed)(writer, bytes.data, bytes.length);
        pthread_mutex_lock(&writer->lock);
        set_reason(writer, reason);
        pass_piece(writer);
        if ((piece = find_early(writer, writer->next)))
            bytes = (doppel_slice){piece->bytes.data, piece->bytes.size};
    } while (piece && !writer->reason);
    writer->moving = false;
}

/* Waits while the pieces that have come are too many for the mover. Where no thread moves, the next one has not arrived
 * yet, and the wait might never end. */
static void await_room(doppel_writer *writer, size_t length) {
    size_t most = (size_t)writer->threads * HELD_BYTES;
    while (writer->moving && !writer->reason && writer->early_bytes + length > most)
        wait_or_pack(writer);
}

/* Takes a piece: moves it, or keeps a copy. */
static void take_piece(doppel_writer *writer, uint64_t number, doppel_slice bytes) {
    if (is_next(writer, number)) {
        move_pieces(writer, bytes);
        return;
    }
    dp_buffer copy = take_spare(writer);
    pthread_mutex_unlock(&writer->lock);
    int reason = dp_buffer_add(&copy, bytes.data, bytes.length) ? 0 : ENOMEM;
    pthread_mutex_lock(&writer->lock);
    if (!reason && !is_next(writer, number) && !(reason = keep_early(writer, number, &copy)))
        return;
    give_spare(writer, &copy);
    set_reason(writer, reason);
    if (!reason)
        move_pieces(writer, bytes);
}

/* Whether pieces wait for one that has not come. */
static bool has_early(const doppel_writer *writer) {
    for (size_t i = 0; i < writer->early_room; i++)
        if (writer->early[i].there)
            return true;
    return false;
}

static void free_pieces(doppel_writer *writer) {
    for (size_t i = 0; i < writer->early_room; i++)
        if (writer->early[i].there)
            dp_buffer_free(&writer->early[i].bytes);
    free(writer->early);
    while (writer->spare_count)
        dp_buffer_free(&writer->spares[--writer->spare_count]);
}

/* ---- the file ---- */

static bool ends_in(const char *path, const char *ending) {
    size_t length = strlen(path), size = strlen(ending);
    return length > size && !strcasecmp(path + length - size, ending);
}

/* What a call gives, by an errno; 0 is fine. */
static doppel_status result(const doppel_writer *writer, int reason, doppel_error *error) {
    if (!reason)
        return DOPPEL_OK;
    if (reason == ENOMEM)
        return dp_no_memory(error);
    if (reason == EPIPE && writer->to_stdout)
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "stdout was closed by its reader");
    if (writer->to_stdout)
        return dp_fail(error, DOPPEL_ERROR_IO, "cannot write to stdout: %s", strerror(reason));
    return dp_fail_write(error, writer->name, reason);
}

/* A temporary file next to its path, unless the path is a pipe or a device, which is written to directly. */
static doppel_status open_file(doppel_writer *writer, doppel_error *error) {
    char *place;
    writer->reason = dp_output_find(writer->name, &place, &writer->number);
    if (writer->reason)
        return result(writer, writer->reason, error);
    free(place);
    if (writer->number >= 0)
        return DOPPEL_OK;
    doppel_status opened = dp_newfile_create(&writer->file, writer->name, error);
    writer->temporary = opened == DOPPEL_OK;
    writer->number = writer->temporary ? writer->file.number : -1;
    return opened;
}

static doppel_status open_place(doppel_writer *writer, const char *path, doppel_error *error) {
    writer->to_stdout = !path || !strcmp(path, "-");
    writer->number = -1;
    writer->name = strdup(writer->to_stdout ? "stdout" : path);
    if (!writer->name)
        return dp_no_memory(error);
    if (writer->to_stdout) {
        writer->number = dup(STDOUT_FILENO);
        writer->reason = writer->number < 0 ? errno : 0;
        return result(writer, writer->reason, error);
    }
    doppel_status opened = open_file(writer, error);
    bool gzip = ends_in(path, ".gz");
    if (opened != DOPPEL_OK || (!gzip && !ends_in(path, ".zst")))
        return opened;
    return create_blocks(writer, gzip ? PACK_GZIP : PACK_ZSTD) ? DOPPEL_OK : dp_no_memory(error);
}

doppel_status doppel_writer_open(doppel_writer **writer, const char *path, int threads, doppel_error *error) {
    *writer = calloc(1, sizeof **writer);
    if (!*writer)
        return dp_no_memory(error);
    size_t count = dp_thread_count(threads);
    (*writer)->threads = count < MOST_THREADS ? (int)count : MOST_THREADS;
    pthread_mutex_init(&(*writer)->lock, NULL);
    pthread_cond_init(&(*writer)->changed, NULL);
    doppel_status opened = open_place(*writer, path, error);
    if (opened != DOPPEL_OK) {
        doppel_writer_finish(*writer, false, NULL);
        *writer = NULL;
    }
    return opened;
}

doppel_status doppel_writer_write(doppel_writer *writer, doppel_slice bytes, doppel_error *error) {
    pthread_mutex_lock(&writer->lock);
    if (writer->codec != PACK_NONE && writer->threads > 1 && !writer->begun)
        begin_packers(writer);
    if (!writer->reason)
        move_pieces(writer, bytes);
    int reason = writer->reason;
    pthread_mutex_unlock(&writer->lock);
    return result(writer, reason, error);
}

doppel_status doppel_writer_put(doppel_writer *writer, uint64_t number, doppel_slice bytes, doppel_error *error) {
    pthread_mutex_lock(&writer->lock);
    bool again = number < writer->next;
    await_room(writer, bytes.length);
    if (!writer->reason && !again)
        take_piece(writer, number, bytes);
    while (!writer->reason && pack_next(writer))
        ;
    int reason = writer->reason;
    pthread_mutex_unlock(&writer->lock);
    if (again && !reason)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, writer->name, 0, "piece %llu was put twice",
                          (unsigned long long)number);
    return result(writer, reason, error);
}

/* Closes a file that was written directly. */
static doppel_status close_place(doppel_writer *writer, bool ok, doppel_error *error) {
    if (writer->number >= 0 && close(writer->number) && !writer->reason)
        writer->reason = errno;
    return ok ? result(writer, writer->reason, error) : DOPPEL_OK;
}

/* Writes what is left, and puts the file in its place. */
static doppel_status close_file(doppel_writer *writer, bool ok, doppel_error *error) {
    if (ok && !writer->reason)
        writer->reason = (writer->codec == PACK_NONE ? finish_plain : finish_packed)(writer);
    if (writer->ahead && !writer->memory && ftruncate(writer->number, lseek(writer->number, 0, SEEK_CUR)))
        set_reason(writer, errno);
    if (!writer->temporary)
        return close_place(writer, ok, error);
    doppel_status status = dp_newfile_finish(&writer->file, ok ? writer->reason : ECANCELED, ok ? error : NULL);
    return ok ? status : DOPPEL_OK;
}

/* ---- the file as memory ---- */

doppel_status dp_writer_map(doppel_writer *writer, uint64_t bytes, char **memory, doppel_error *error) {
    size_t size = (size_t)bytes;
    *memory = NULL;
    if (!writer->temporary || writer->codec != PACK_NONE || !bytes || fallocate(writer->number, 0, 0, 1))
        return DOPPEL_OK;
    if (ftruncate(writer->number, (off_t)bytes))
        return result(writer, writer->reason = errno, error);
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, writer->number, 0);
    if (mapped == MAP_FAILED)
        return ftruncate(writer->number, 0) ? result(writer, writer->reason = errno, error) : DOPPEL_OK;
    writer->memory = *memory = mapped;
    writer->memory_size = size;
    return DOPPEL_OK;
}

doppel_status dp_writer_allocate(doppel_writer *writer, uint64_t at, uint64_t length, doppel_error *error) {
    int reason = writer->temporary && writer->codec == PACK_NONE ? 0 : ENOTSUP;
    if (!reason && fallocate(writer->number, 0, (off_t)at, (off_t)length))
        reason = errno;
    writer->ahead |= !reason;
    return result(writer, reason, error);
}

doppel_status doppel_writer_finish(doppel_writer *writer, bool ok, doppel_error *error) {
    if (!writer)
        return DOPPEL_OK;
    /* Pieces that still wait are reported, not lost silently. */
    bool gap = ok && !writer->reason && has_early(writer);
    if (writer->memory)
        munmap(writer->memory, writer->memory_size);
    doppel_status status = close_file(writer, ok && !gap, error);
    if (gap)
        status = dp_fail_at(error, DOPPEL_ERROR_USAGE, writer->name, 0, "piece %llu was never put",
                            (unsigned long long)writer->next);
    end_packers(writer);
    free_blocks(writer);
    free_pieces(writer);
    dp_buffer_free(&writer->plain);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
    free(writer->name);
    free(writer);
    return status;
}
