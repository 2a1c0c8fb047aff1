/* store_watch.h - whether an engine answers. One that needs connections may not: a thread asks it every second, so that
 * requests need not find out one by one, as each call takes as long as the `retry` of its URL says. All other engines
 * always answer, and need no thread. */
#ifndef COMMON_STORE_WATCH_H
#define COMMON_STORE_WATCH_H

#include "doppel.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct store_watch {
    doppel_engine *engine; /* NULL: it is not open */
    const char *until;     /* what happens until it answers again, for a message */
    pthread_t thread;
    pthread_mutex_t lock; /* of the figures, and of who waits */
    pthread_cond_t more;
    bool runs; /* there is a thread: it may be away */
    bool stop;
    atomic_uint_fast64_t asked; /* microseconds: when the question in progress was asked; 0: there is none */
    atomic_bool failed;         /* the last question */
    atomic_bool told;           /* that it is away */
    doppel_engine_stats stats;  /* as of the last answer */
} store_watch;

/* `needs` are those of the engine's path. `until` is borrowed: what happens while it is away, such as "requests wait".
 * False: no threads. Close it in any case, before its engine. */
bool watch_open(store_watch *w, doppel_engine *engine, const doppel_engine_needs *needs, const char *until);
void watch_close(store_watch *w);

/* Whether it does not answer: the last question failed, or has been in progress for long. */
bool watch_is_away(store_watch *w);

/* The figures of the engine, without waiting: of one that may be away, those of the last answer. */
void watch_stats(store_watch *w, doppel_engine_stats *stats);

#endif
