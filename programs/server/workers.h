/* workers.h - threads that work on requests, so that those that serve connections never wait: for a large document, a
 * commit, a backup. Requests stand in one queue, linked by `next`; each thread takes one, or as many as there are. */
#ifndef SERVER_WORKERS_H
#define SERVER_WORKERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct request;

typedef struct workers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct request *first, *last;
    bool stop;
    pthread_t *threads;
    int count;
    size_t most; /* requests that are taken at once */
    /* Works on requests, all of one index if there are several, and lets them go on. */
    void (*work)(struct request **list, size_t count);
} workers;

enum { WORKERS_MOST = 256 };

/* False: no memory, or no threads. Close it in any case. */
bool workers_open(workers *w, int threads, size_t most, void (*work)(struct request **list, size_t count));

/* Once all that waits is done. */
void workers_close(workers *w);

void workers_add(workers *w, struct request *request);

#endif
