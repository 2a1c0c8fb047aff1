/* decompress.c - threads that decompress pieces of a file ahead of its reader.
 *
 * Pieces are begun in order, within a window that starts at the reader's piece, and only while the finished ones hold
 * less than sizes.held bytes. What the reader waits for was begun before all that is held, or is begun next, as nothing
 * is held then: so there is always an end to its wait. Everything is guarded by `lock`, but for a piece that is busy
 * (its thread's) or done (the reader's). */
#include "input/decompress.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

/* 256 KiB are some ms of work: enough that locks cost nothing, and what comes of them mostly stays in a cache. */
const dp_ahead_sizes dp_ahead_usual = {
    .piece = (size_t)256 << 10, .most = (size_t)16 << 20, .held = (size_t)32 << 20, .least = (size_t)1 << 20};

/* A member may span many pieces; those behind its first one have no start, and cost only the search. 64 pieces reach
 * over members of 16 MiB, which is what one piece may become. */
#define WINDOW 64

/* More threads than these find no more to do than a reader can use. */
#define MOST_THREADS 8

/* So many wrong guesses in a row, and there is no use. */
#define MOST_WRONG 4

/* Memory of so many pieces is kept for the next ones: fresh memory costs as much as copying does. */
#define SPARES 4

enum { PIECE_FREE, PIECE_BUSY, PIECE_DONE };

typedef struct worker {
    dp_ahead *ahead;
    dp_members *members;
    pthread_t thread;
} worker;

struct dp_ahead {
    dp_ahead_file file;
    dp_ahead_sizes sizes;
    pthread_mutex_t lock;
    pthread_cond_t moved; /* something of what `lock` guards has changed */
    bool ended;
    uint64_t first, next, count; /* pieces: the reader's, the next to be begun, all there are */
    size_t held;                 /* bytes of the pieces that are done */
    uint64_t wrong_piece;        /* the last that was guessed wrong, from 1; the reader's, as is `wrong` */
    int wrong;                   /* how many since a right guess */
    dp_ahead_piece pieces[WINDOW];
    dp_buffer spares[SPARES];
    int spare_count;
    worker workers[MOST_THREADS];
    int worker_count;
};

static dp_ahead_piece *piece_of(dp_ahead *ahead, uint64_t number) {
    return &ahead->pieces[number % WINDOW];
}

/* Forgets a piece. */
static void release(dp_ahead *ahead, dp_ahead_piece *piece) {
    ahead->held -= piece->out.size;
    if (piece->out.data && ahead->spare_count < SPARES)
        ahead->spares[ahead->spare_count++] = piece->out;
    else
        dp_buffer_free(&piece->out);
    piece->out = (dp_buffer){0};
    piece->state = PIECE_FREE;
}

/* ---- threads ---- */

/* Whether a piece can be begun now. */
static bool may_begin(dp_ahead *ahead) {
    return ahead->next < ahead->count && ahead->next < ahead->first + WINDOW && ahead->held < ahead->sizes.held &&
           piece_of(ahead, ahead->next)->state == PIECE_FREE;
}

/* Does one piece, the lock being held at the start and at the end. */
static void do_next(dp_ahead *ahead, dp_members *members) {
    uint64_t number = ahead->next++, from = ahead->file.from + number * ahead->sizes.piece;
    dp_ahead_piece *piece = piece_of(ahead, number);
    piece->state = PIECE_BUSY;
    if (ahead->spare_count)
        piece->out = ahead->spares[--ahead->spare_count];
    pthread_mutex_unlock(&ahead->lock);
    dp_members_read(members, from, from + ahead->sizes.piece, ahead->sizes.most, piece);
    pthread_mutex_lock(&ahead->lock);
    piece->state = PIECE_DONE;
    ahead->held += piece->out.size;
    if (number < ahead->first) /* the reader did not wait for it */
        release(ahead, piece);
    pthread_cond_broadcast(&ahead->moved);
}

static void *thread_main(void *user) {
    const worker *w = user;
    dp_ahead *ahead = w->ahead;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->ended)
        if (may_begin(ahead))
            do_next(ahead, w->members);
        else
            pthread_cond_wait(&ahead->moved, &ahead->lock);
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

/* Signals go to the caller's threads: these block them. */
static void start_threads(dp_ahead *ahead) {
    int threads = ahead->file.threads < MOST_THREADS ? ahead->file.threads : MOST_THREADS;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < threads; i++) {
        worker *w = &ahead->workers[i];
        *w = (worker){.ahead = ahead, .members = dp_members_create(&ahead->file)};
        if (!w->members || pthread_create(&w->thread, NULL, thread_main, w)) {
            dp_members_free(w->members);
            break;
        }
        ahead->worker_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- the calls ---- */

dp_ahead *dp_ahead_create(const dp_ahead_file *file, const dp_ahead_sizes *sizes) {
    dp_ahead *ahead = calloc(1, sizeof *ahead);
    if (!ahead)
        return NULL;
    ahead->file = *file;
    ahead->sizes = *sizes;
    ahead->count = (file->size - file->from + sizes->piece - 1) / sizes->piece;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->moved, NULL);
    start_threads(ahead);
    if (ahead->worker_count)
        return ahead;
    dp_ahead_free(ahead);
    return NULL;
}

/* The reader has come to this piece: those before it are forgotten. */
static void pass(dp_ahead *ahead, uint64_t number) {
    for (uint64_t i = ahead->first; i < number && i < ahead->next; i++)
        if (piece_of(ahead, i)->state == PIECE_DONE)
            release(ahead, piece_of(ahead, i));
    ahead->first = number;
    if (ahead->next < number)
        ahead->next = number;
    pthread_cond_broadcast(&ahead->moved);
}

const dp_ahead_piece *dp_ahead_take(dp_ahead *ahead, uint64_t at) {
    uint64_t number = (at - ahead->file.from) / ahead->sizes.piece;
    if (number >= ahead->count)
        return NULL;
    dp_ahead_piece *piece = piece_of(ahead, number);
    pthread_mutex_lock(&ahead->lock);
    if (number > ahead->first)
        pass(ahead, number);
    while (ahead->next <= number || piece->state == PIECE_BUSY)
        pthread_cond_wait(&ahead->moved, &ahead->lock);
    pthread_mutex_unlock(&ahead->lock);
    if (piece->start == at && piece->end > at) {
        ahead->wrong = 0;
        return piece;
    }
    if (ahead->wrong_piece != number + 1)
        ahead->wrong++;
    ahead->wrong_piece = number + 1;
    return NULL;
}

bool dp_ahead_useless(const dp_ahead *ahead) {
    return ahead->wrong >= MOST_WRONG;
}

void dp_ahead_free(dp_ahead *ahead) {
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->ended = true;
    pthread_cond_broadcast(&ahead->moved);
    pthread_mutex_unlock(&ahead->lock);
    for (int i = 0; i < ahead->worker_count; i++) {
        pthread_join(ahead->workers[i].thread, NULL);
        dp_members_free(ahead->workers[i].members);
    }
    for (size_t i = 0; i < WINDOW; i++)
        dp_buffer_free(&ahead->pieces[i].out);
    while (ahead->spare_count)
        dp_buffer_free(&ahead->spares[--ahead->spare_count]);
    pthread_cond_destroy(&ahead->moved);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}
