/* workers.c - threads that work on requests. */
#include "server/service.h"

#include <stdlib.h>

/* Takes the first request and those behind it that are of the same index, where several are asked for. */
static size_t take(workers *w, request **list) {
    size_t count = 0;
    request **at = &w->first, *last = NULL;
    index_entry *index = w->first ? w->first->index : NULL;
    while (*at && count < w->most) {
        request *r = *at;
        if (r->index == index) {
            list[count++] = r;
            *at = r->next;
        } else {
            last = r;
            at = &r->next;
        }
    }
    if (!*at)
        w->last = last;
    return count;
}

static void *run(void *user) {
    workers *w = user;
    request *list[WORKERS_MOST];
    for (;;) {
        pthread_mutex_lock(&w->lock);
        while (!w->first && !w->stop)
            pthread_cond_wait(&w->more, &w->lock);
        size_t count = take(w, list);
        pthread_mutex_unlock(&w->lock);
        if (!count)
            return NULL;
        w->work(list, count);
    }
}

bool workers_open(workers *w, int threads, size_t most, void (*work)(struct request **list, size_t count)) {
    *w = (workers){.most = most < WORKERS_MOST ? most : WORKERS_MOST, .work = work};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    w->threads = calloc((size_t)threads, sizeof *w->threads);
    while (w->threads && w->count < threads && !pthread_create(&w->threads[w->count], NULL, run, w))
        w->count++;
    return w->count == threads;
}

void workers_close(workers *w) {
    if (!w->work)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->count; i++)
        pthread_join(w->threads[i], NULL);
    free(w->threads);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->more);
    *w = (workers){0};
}

void workers_add(workers *w, request *r) {
    pthread_mutex_lock(&w->lock);
    r->next = NULL;
    if (w->first)
        w->last->next = r;
    else
        w->first = r;
    w->last = r;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
}
