/* watch.h - whether a store that several processes share answers. A thread asks it every second, so that requests need
 * not find out one by one: a call on a store that is away takes as long as the store's `retry` says. */
#ifndef COMMON_WATCH_H
#define COMMON_WATCH_H

#include "doppel.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct store_watch {
    doppel_engine *engine;
    const char *until; /* what happens until it answers again, for a message */
    pthread_t thread;
    pthread_mutex_t lock; /* of the figures, and of who waits */
    pthread_cond_t more;
    bool runs, stop;
    atomic_uint_fast64_t asked; /* microseconds: when the question was asked that is under way; 0: none is */
    atomic_bool failed;         /* the last question */
    atomic_bool told;           /* that it is away */
    doppel_engine_stats stats;  /* as of the last answer */
} store_watch;

/* `until` is borrowed: what happens while the store is away, such as "requests wait". False: no threads. Close it in
 * any case, before its engine. */
bool watch_open(store_watch *w, doppel_engine *engine, const char *until);
void watch_close(store_watch *w);

/* Whether it does not answer: the last question failed, or has been under way for long. */
bool watch_is_away(store_watch *w);

/* The figures of the engine as of the last answer, without asking. */
void watch_stats(store_watch *w, doppel_engine_stats *stats);

#endif
