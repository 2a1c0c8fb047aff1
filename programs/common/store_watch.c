/* store_watch.c - whether an engine answers. */
#include "common/store_watch.h"

#include "common/clock.h"
#include "common/message.h"

enum {
    AWAY_AFTER = 2000000,     /* microseconds without an answer */
    PAUSE = 1000,             /* milliseconds between questions, */
    PAUSE_AFTER_FAILURE = 100 /* and when the last one failed: the store itself waits between its attempts */
};

/* ---- asking ---- */

/* Asks for a document that no index has. */
static bool answers(store_watch *w) {
    static const char name[] = "doppel:is-it-there";
    doppel_stored_list list = {0};
    doppel_error error = {0};
    doppel_status status = doppel_engine_get(w->engine, (doppel_slice){name, sizeof name - 1}, &list, &error);
    doppel_stored_list_free(&list);
    return status == DOPPEL_OK;
}

static bool ask(store_watch *w) {
    doppel_engine_stats stats;
    atomic_store(&w->asked, now_microseconds());
    bool there = answers(w);
    if (there) {
        doppel_engine_get_stats(w->engine, &stats);
        pthread_mutex_lock(&w->lock);
        w->stats = stats;
        pthread_mutex_unlock(&w->lock);
    }
    atomic_store(&w->failed, !there);
    atomic_store(&w->asked, 0);
    if (there && atomic_exchange(&w->told, false))
        message("the store answers again");
    return there;
}

/* Waits until the next question is due; false: there is none. */
static bool wait_for_next(store_watch *w, long milliseconds) {
    struct timespec until = milliseconds_from_now(milliseconds);
    pthread_mutex_lock(&w->lock);
    int code = 0;
    while (!w->stop && !code)
        code = pthread_cond_timedwait(&w->more, &w->lock, &until);
    bool go_on = !w->stop;
    pthread_mutex_unlock(&w->lock);
    return go_on;
}

static void *run(void *user) {
    store_watch *w = user;
    bool there = true;
    while (wait_for_next(w, there ? PAUSE : PAUSE_AFTER_FAILURE))
        there = ask(w);
    return NULL;
}

/* ---- for others ---- */

bool watch_open(store_watch *w, doppel_engine *engine, const doppel_engine_needs *needs, const char *until) {
    *w = (store_watch){.engine = engine, .until = until};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    if (!needs->connects)
        return true;
    ask(w);
    w->runs = !pthread_create(&w->thread, NULL, run, w);
    return w->runs;
}

void watch_close(store_watch *w) {
    if (!w->engine)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
    if (w->runs)
        pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->more);
    *w = (store_watch){0};
}

bool watch_is_away(store_watch *w) {
    if (!w->runs)
        return false;
    uint64_t asked = atomic_load(&w->asked), now = now_microseconds();
    bool away = atomic_load(&w->failed) || (asked && now > asked + AWAY_AFTER);
    if (away && !atomic_exchange(&w->told, true))
        message("the store does not answer: %s until it does", w->until);
    return away;
}

void watch_stats(store_watch *w, doppel_engine_stats *stats) {
    if (!w->runs) {
        doppel_engine_get_stats(w->engine, stats);
        return;
    }
    pthread_mutex_lock(&w->lock);
    *stats = w->stats;
    pthread_mutex_unlock(&w->lock);
}
