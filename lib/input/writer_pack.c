/* writer_pack.c - bytes packed in blocks: gzip members or zstd frames, several at a time, written in order.
 *
 * There is a ring of blocks. The caller fills one, hands it to the threads and goes on with the next; when it comes
 * round to a block that is still in use, it waits for it, and writes it. Without threads it packs the block itself.
 * What `lock` guards are the states; a block belongs to the caller when it is empty or done, to a thread when busy. */
#include "input/writer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

/* Bytes of a block. Those of gzip look back 32 KiB only, so 1 MiB loses little; zstd looks back farther. Both stay
 * below what a thread that reads them ahead holds. */
#define GZIP_BLOCK ((size_t)1 << 20)
#define ZSTD_BLOCK ((size_t)4 << 20)

#define GZIP_LEVEL 6
#define ZSTD_LEVEL 3

/* More find nothing to do, as one caller cannot give them enough. */
#define MOST_THREADS 16

enum { BLOCK_EMPTY, BLOCK_READY, BLOCK_BUSY, BLOCK_DONE };

typedef struct block {
    int state;
    int reason; /* errno of what went wrong; 0: nothing */
    dp_buffer in, out;
} block;

/* What a thread packs with. */
typedef struct context {
    bool begun;
    z_stream gzip;
    ZSTD_CCtx *zstd;
} context;

struct dp_packer {
    dp_pack_codec codec;
    dp_pack_sink sink;
    void *user;
    size_t block_size;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool ended;
    uint64_t filled, taken; /* blocks handed over, and of these begun */
    uint64_t written;       /* the caller's: blocks written */
    block *blocks;          /* by number modulo their count */
    size_t block_count;
    context own; /* the caller's */
    pthread_t threads[MOST_THREADS];
    int thread_count;
};

static block *block_of(const dp_packer *packer, uint64_t number) {
    return &packer->blocks[number % packer->block_count];
}

/* ---- packing ---- */

static bool begin_context(const dp_packer *packer, context *c) {
    if (c->begun)
        return true;
    if (packer->codec == DP_PACK_GZIP) {
        /* 15: the largest window; 16: with a gzip header; 8: the usual memory */
        c->begun = deflateInit2(&c->gzip, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    } else if ((c->zstd = ZSTD_createCCtx())) {
        c->begun = !ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) &&
                   !ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1));
    }
    return c->begun;
}

static void end_context(const dp_packer *packer, context *c) {
    if (packer->codec == DP_PACK_ZSTD)
        ZSTD_freeCCtx(c->zstd);
    else if (c->begun)
        deflateEnd(&c->gzip);
}

static int pack_gzip(context *c, block *b) {
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

static int pack_zstd(context *c, block *b) {
    size_t room = ZSTD_compressBound(b->in.size);
    if (!dp_reserve(&b->out.data, &b->out.capacity, room, 1))
        return ENOMEM;
    b->out.size = ZSTD_compress2(c->zstd, b->out.data, room, b->in.data, b->in.size);
    return ZSTD_isError(b->out.size) ? ENOMEM : 0; /* with room enough, nothing else can be missing */
}

static void pack(const dp_packer *packer, context *c, block *b) {
    if (!begin_context(packer, c))
        b->reason = ENOMEM;
    else
        b->reason = (packer->codec == DP_PACK_GZIP ? pack_gzip : pack_zstd)(c, b);
}

/* ---- threads ---- */

static void *thread_main(void *user) {
    dp_packer *packer = user;
    context c = {0};
    pthread_mutex_lock(&packer->lock);
    while (!packer->ended) {
        if (packer->taken == packer->filled) {
            pthread_cond_wait(&packer->moved, &packer->lock);
            continue;
        }
        block *b = block_of(packer, packer->taken++);
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

/* Signals go to the caller's threads: these block them. */
static void start_threads(dp_packer *packer, int threads) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (packer->thread_count < threads &&
           !pthread_create(&packer->threads[packer->thread_count], NULL, thread_main, packer))
        packer->thread_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- the calls ---- */

dp_packer *dp_packer_create(dp_pack_codec codec, int threads, dp_pack_sink sink, void *user) {
    dp_packer *packer = calloc(1, sizeof *packer);
    if (!packer)
        return NULL;
    *packer = (dp_packer){.codec = codec, .sink = sink, .user = user};
    packer->block_size = codec == DP_PACK_GZIP ? GZIP_BLOCK : ZSTD_BLOCK;
    pthread_mutex_init(&packer->lock, NULL);
    pthread_cond_init(&packer->moved, NULL);
    threads = threads < 2 ? 0 : threads < MOST_THREADS ? threads : MOST_THREADS;
    packer->block_count = (size_t)threads + 2;
    packer->blocks = calloc(packer->block_count, sizeof *packer->blocks);
    if (!packer->blocks) {
        dp_packer_free(packer);
        return NULL;
    }
    start_threads(packer, threads);
    return packer;
}

/* Waits for the block that comes next in order, and writes it. */
static int write_next(dp_packer *packer) {
    block *b = block_of(packer, packer->written++);
    pthread_mutex_lock(&packer->lock);
    while (b->state != BLOCK_DONE)
        pthread_cond_wait(&packer->moved, &packer->lock);
    b->state = BLOCK_EMPTY;
    pthread_mutex_unlock(&packer->lock);
    b->in.size = 0;
    return b->reason ? b->reason : packer->sink(packer->user, b->out.data, b->out.size);
}

/* Hands over the block that was filled, and makes sure of an empty one. */
static int hand_over(dp_packer *packer) {
    block *b = block_of(packer, packer->filled);
    if (!packer->thread_count)
        pack(packer, &packer->own, b);
    pthread_mutex_lock(&packer->lock);
    b->state = packer->thread_count ? BLOCK_READY : BLOCK_DONE;
    packer->filled++;
    pthread_cond_broadcast(&packer->moved);
    pthread_mutex_unlock(&packer->lock);
    return packer->filled - packer->written == packer->block_count ? write_next(packer) : 0;
}

int dp_packer_add(dp_packer *packer, const char *bytes, size_t length) {
    int reason = 0;
    while (length && !reason) {
        block *b = block_of(packer, packer->filled);
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

int dp_packer_finish(dp_packer *packer) {
    int reason = 0;
    if (!packer->filled || block_of(packer, packer->filled)->in.size)
        reason = hand_over(packer);
    while (!reason && packer->written < packer->filled)
        reason = write_next(packer);
    return reason;
}

void dp_packer_free(dp_packer *packer) {
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
