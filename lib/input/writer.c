/* writer.c - an output file: doppel_writer_open, doppel_writer_write ..., doppel_writer_finish (doppel.h).
 *
 * It is compressed by its name: .gz with gzip, .zst with zstd, else plain. Compressed files are made of blocks that are
 * compressed each by itself, by several threads, so that they can be read by several threads too; their bytes do not
 * depend on the number of threads. A file appears under its name once it is whole, and not at all if it does not get
 * there; what is not a plain file, a pipe or a device, is written as it comes. */
#include "base/base.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* ---- bytes packed in blocks: gzip members or zstd frames, several at a time, written in order ----
 *
 * There is a ring of blocks. The caller fills one, hands it to the threads and goes on with the next; when it comes
 * round to a block that is still in use, it waits for it, and writes it. Without threads it packs the block itself.
 * What `lock` guards are the states; a block belongs to the caller when it is empty or done, to a thread when busy. */

typedef enum pack_codec { PACK_GZIP, PACK_ZSTD } pack_codec;

/* Takes packed bytes, in order, in the thread that calls the packer; gives 0 or an errno. */
typedef int (*pack_sink)(void *user, const char *bytes, size_t length);

/* Bytes of a block. Those of gzip look back 32 KiB only, so 1 MiB loses little; zstd looks back farther. Both stay
 * below what a thread that reads them ahead holds. */
#define GZIP_BLOCK ((size_t)1 << 20)
#define ZSTD_BLOCK ((size_t)4 << 20)

#define GZIP_LEVEL 6
#define ZSTD_LEVEL 3

/* More find nothing to do, as one caller cannot give them enough. */
#define MOST_THREADS 16

enum { BLOCK_EMPTY, BLOCK_READY, BLOCK_BUSY, BLOCK_DONE };

typedef struct pack_block {
    int state;
    int reason; /* errno of what went wrong; 0: nothing */
    dp_buffer in, out;
} pack_block;

/* What a thread packs with. */
typedef struct pack_context {
    bool begun;
    z_stream gzip;
    ZSTD_CCtx *zstd;
} pack_context;

typedef struct block_packer {
    pack_codec codec;
    pack_sink sink;
    void *user;
    size_t block_size;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool ended;
    uint64_t filled, taken; /* blocks handed over, and of these begun */
    uint64_t written;       /* the caller's: blocks written */
    pack_block *blocks;     /* by number modulo their count */
    size_t block_count;
    pack_context own; /* the caller's */
    pthread_t threads[MOST_THREADS];
    int thread_count;
} block_packer;

static pack_block *block_of(const block_packer *packer, uint64_t number) {
    return &packer->blocks[number % packer->block_count];
}

static bool begin_context(const block_packer *packer, pack_context *c) {
    if (c->begun)
        return true;
    if (packer->codec == PACK_GZIP) {
        /* 15: the largest window; 16: with a gzip header; 8: the usual memory */
        c->begun = deflateInit2(&c->gzip, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    } else if ((c->zstd = ZSTD_createCCtx())) {
        c->begun = !ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) &&
                   !ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1));
    }
    return c->begun;
}

static void end_context(const block_packer *packer, pack_context *c) {
    if (packer->codec == PACK_ZSTD)
        ZSTD_freeCCtx(c->zstd);
    else if (c->begun)
        deflateEnd(&c->gzip);
}

static int pack_gzip(pack_context *c, pack_block *b) {
    if (deflateReset(&c->gzip) != Z_OK)
        return EIO;
    size_t room = deflateBound(&c->gzip, (uLong)b->in.size);
    if (!dp_reserve(&b->out.data, &b->out.capacity, room, 1))
        return ENOMEM;
    c->gzip.next_in = (uint8_t *)b->in.data;
    c->gzip.avail_in = (uInt)b->in.size;
    c->gzip.next_out = (uint8_t *)b->out.data;
    c->gzip.avail_out = (uInt)room;
    if (deflate(&c->gzip, Z_FINISH) != Z_STREAM_END)
        return EIO;
    b->out.size = room - c->gzip.avail_out;
    return 0;
}

static int pack_zstd(pack_context *c, pack_block *b) {
    size_t room = ZSTD_compressBound(b->in.size);
    if (!dp_reserve(&b->out.data, &b->out.capacity, room, 1))
        return ENOMEM;
    b->out.size = ZSTD_compress2(c->zstd, b->out.data, room, b->in.data, b->in.size);
    return ZSTD_isError(b->out.size) ? ENOMEM : 0; /* with room enough, nothing else can be missing */
}

static void pack(const block_packer *packer, pack_context *c, pack_block *b) {
    if (!begin_context(packer, c))
        b->reason = ENOMEM;
    else
        b->reason = (packer->codec == PACK_GZIP ? pack_gzip : pack_zstd)(c, b);
}

static void *pack_blocks(void *user) {
    block_packer *packer = user;
    pack_context c = {0};
    pthread_mutex_lock(&packer->lock);
    while (!packer->ended) {
        if (packer->taken == packer->filled) {
            pthread_cond_wait(&packer->moved, &packer->lock);
            continue;
        }
        pack_block *b = block_of(packer, packer->taken++);
        b->state = BLOCK_BUSY;
        pthread_mutex_unlock(&packer->lock);
        pack(packer, &c, b);
        pthread_mutex_lock(&packer->lock);
        b->state = BLOCK_DONE;
        pthread_cond_broadcast(&packer->moved);
    }
    pthread_mutex_unlock(&packer->lock);
    end_context(packer, &c);
    return NULL;
}

/* Ends the threads. NULL is fine. */
static void free_packer(block_packer *packer) {
    if (!packer)
        return;
    pthread_mutex_lock(&packer->lock);
    packer->ended = true;
    pthread_cond_broadcast(&packer->moved);
    pthread_mutex_unlock(&packer->lock);
    while (packer->thread_count)
        pthread_join(packer->threads[--packer->thread_count], NULL);
    end_context(packer, &packer->own);
    for (size_t i = 0; packer->blocks && i < packer->block_count; i++) {
        dp_buffer_free(&packer->blocks[i].in);
        dp_buffer_free(&packer->blocks[i].out);
    }
    free(packer->blocks);
    pthread_cond_destroy(&packer->moved);
    pthread_mutex_destroy(&packer->lock);
    free(packer);
}

/* NULL when there is no memory. */
static block_packer *create_packer(pack_codec codec, int threads, pack_sink sink, void *user) {
    block_packer *packer = calloc(1, sizeof *packer);
    if (!packer)
        return NULL;
    *packer = (block_packer){.codec = codec, .sink = sink, .user = user};
    packer->block_size = codec == PACK_GZIP ? GZIP_BLOCK : ZSTD_BLOCK;
    pthread_mutex_init(&packer->lock, NULL);
    pthread_cond_init(&packer->moved, NULL);
    threads = threads < 2 ? 0 : threads < MOST_THREADS ? threads : MOST_THREADS;
    packer->block_count = (size_t)threads + 2;
    packer->blocks = calloc(packer->block_count, sizeof *packer->blocks);
    if (!packer->blocks) {
        free_packer(packer);
        return NULL;
    }
    while (packer->thread_count < threads &&
           dp_thread_start(&packer->threads[packer->thread_count], pack_blocks, packer))
        packer->thread_count++;
    return packer;
}

/* Waits for the block that comes next in order, and writes it. */
static int write_next(block_packer *packer) {
    pack_block *b = block_of(packer, packer->written++);
    pthread_mutex_lock(&packer->lock);
    while (b->state != BLOCK_DONE)
        pthread_cond_wait(&packer->moved, &packer->lock);
    b->state = BLOCK_EMPTY;
    pthread_mutex_unlock(&packer->lock);
    b->in.size = 0;
    return b->reason ? b->reason : packer->sink(packer->user, b->out.data, b->out.size);
}

/* Hands over the block that was filled, and makes sure of an empty one. */
static int hand_over(block_packer *packer) {
    pack_block *b = block_of(packer, packer->filled);
    if (!packer->thread_count)
        pack(packer, &packer->own, b);
    pthread_mutex_lock(&packer->lock);
    b->state = packer->thread_count ? BLOCK_READY : BLOCK_DONE;
    packer->filled++;
    pthread_cond_broadcast(&packer->moved);
    pthread_mutex_unlock(&packer->lock);
    return packer->filled - packer->written == packer->block_count ? write_next(packer) : 0;
}

/* Packs bytes; gives 0 or an errno, after which only free is left to be called. */
static int add_packed(block_packer *packer, const char *bytes, size_t length) {
    int reason = 0;
    while (length && !reason) {
        pack_block *b = block_of(packer, packer->filled);
        size_t part = packer->block_size - b->in.size;
        if (part > length)
            part = length;
        if (!dp_buffer_add(&b->in, bytes, part))
            return ENOMEM;
        bytes += part;
        length -= part;
        if (b->in.size == packer->block_size)
            reason = hand_over(packer);
    }
    return reason;
}

/* Packs what is left. No bytes at all make a file with one empty block. */
static int finish_packer(block_packer *packer) {
    int reason = 0;
    if (!packer->filled || block_of(packer, packer->filled)->in.size)
        reason = hand_over(packer);
    while (!reason && packer->written < packer->filled)
        reason = write_next(packer);
    return reason;
}

/* ---- the file ---- */

/* Plain bytes are gathered up to this many. */
#define GATHER ((size_t)256 << 10)

struct doppel_writer {
    char *name;      /* for messages, and where it goes */
    dp_newfile file; /* if `beside` */
    int number;      /* to write to */
    bool beside;     /* written beside its place; else straight to it */
    int reason;      /* errno of what went wrong; 0: nothing */
    block_packer *packer;
    dp_buffer plain;
};

static bool ends_in(const char *path, const char *ending) {
    size_t length = strlen(path), size = strlen(ending);
    return length > size && !strcasecmp(path + length - size, ending);
}

static doppel_status fail(const doppel_writer *writer, doppel_error *error) {
    if (writer->reason == ENOMEM)
        return dp_no_memory(error);
    return dp_fail_at(error, DOPPEL_ERROR_IO, writer->name, 0, "cannot be written: %s", strerror(writer->reason));
}

/* Writes all of it; gives 0 or an errno. */
static int put(void *user, const char *bytes, size_t length) {
    const doppel_writer *writer = user;
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

/* A new file beside its place, unless what stands there is to be written to as it is. */
static doppel_status open_file(doppel_writer *writer, doppel_error *error) {
    char *place;
    writer->reason = dp_output_find(writer->name, &place, &writer->number);
    if (writer->reason)
        return fail(writer, error);
    free(place);
    if (writer->number >= 0)
        return DOPPEL_OK;
    doppel_status opened = dp_newfile_create(&writer->file, writer->name, error);
    writer->beside = opened == DOPPEL_OK;
    writer->number = writer->beside ? writer->file.number : -1;
    return opened;
}

static doppel_status open_place(doppel_writer *writer, const char *path, int threads, doppel_error *error) {
    bool to_stdout = !path || !strcmp(path, "-");
    writer->number = -1;
    writer->name = strdup(to_stdout ? "stdout" : path);
    if (!writer->name)
        return dp_no_memory(error);
    if (to_stdout) {
        writer->number = dup(STDOUT_FILENO);
        writer->reason = writer->number < 0 ? errno : 0;
        return writer->reason ? fail(writer, error) : DOPPEL_OK;
    }
    doppel_status opened = open_file(writer, error);
    bool gzip = ends_in(path, ".gz");
    if (opened != DOPPEL_OK || (!gzip && !ends_in(path, ".zst")))
        return opened;
    writer->packer = create_packer(gzip ? PACK_GZIP : PACK_ZSTD, threads, put, writer);
    return writer->packer ? DOPPEL_OK : dp_no_memory(error);
}

doppel_status doppel_writer_open(doppel_writer **writer, const char *path, int threads, doppel_error *error) {
    *writer = calloc(1, sizeof **writer);
    if (!*writer)
        return dp_no_memory(error);
    doppel_status opened = open_place(*writer, path, threads, error);
    if (opened != DOPPEL_OK) {
        doppel_writer_finish(*writer, false, NULL);
        *writer = NULL;
    }
    return opened;
}

static int flush_plain(doppel_writer *writer) {
    int reason = put(writer, writer->plain.data, writer->plain.size);
    writer->plain.size = 0;
    return reason;
}

/* Small pieces are gathered, large ones go straight out. */
static int write_plain(doppel_writer *writer, const char *bytes, size_t length) {
    int reason = writer->plain.size + length > GATHER ? flush_plain(writer) : 0;
    if (reason || !length)
        return reason;
    if (length >= GATHER)
        return put(writer, bytes, length);
    return dp_buffer_add(&writer->plain, bytes, length) ? 0 : ENOMEM;
}

doppel_status doppel_writer_write(doppel_writer *writer, doppel_slice bytes, doppel_error *error) {
    if (!writer->reason)
        writer->reason = writer->packer ? add_packed(writer->packer, bytes.data, bytes.length)
                                        : write_plain(writer, bytes.data, bytes.length);
    return writer->reason ? fail(writer, error) : DOPPEL_OK;
}

/* What was written straight to its place. */
static doppel_status close_place(doppel_writer *writer, bool ok, doppel_error *error) {
    if (writer->number >= 0 && close(writer->number) && !writer->reason)
        writer->reason = errno;
    return ok && writer->reason ? fail(writer, error) : DOPPEL_OK;
}

doppel_status doppel_writer_finish(doppel_writer *writer, bool ok, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    if (!writer)
        return DOPPEL_OK;
    if (ok && !writer->reason)
        writer->reason = writer->packer ? finish_packer(writer->packer) : flush_plain(writer);
    if (!writer->beside)
        status = close_place(writer, ok, error);
    else if (ok)
        status = dp_newfile_finish(&writer->file, writer->reason, error);
    else
        dp_newfile_finish(&writer->file, ECANCELED, NULL);
    free_packer(writer->packer);
    dp_buffer_free(&writer->plain);
    free(writer->name);
    free(writer);
    return status;
}
