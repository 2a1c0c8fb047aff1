/* background.c - the thread that writes for DOPPEL_DURABLE_NONE: what is pending, four times a second. */
#include "engine/engine.h"

#include <time.h>

static void *write_now_and_then(void *user) {
    doppel_engine *engine = user;
    pthread_mutex_lock(&engine->order);
    while (!engine->closing) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until); /* as `settled` has it: the other may jump */
        until.tv_nsec += 250000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&engine->settled, &engine->order, &until);
        dp_commit_write(engine);
    }
    pthread_mutex_unlock(&engine->order);
    return NULL;
}

doppel_status dp_background_start(doppel_engine *engine, doppel_error *error) {
    if (engine->options.durability != DOPPEL_DURABLE_NONE || engine->options.read_only)
        return DOPPEL_OK;
    int failed = pthread_create(&engine->background, NULL, write_now_and_then, engine);
    if (failed)
        return dp_fail(error, DOPPEL_ERROR_IO, "no thread to write in the background: %s", strerror(failed));
    engine->has_background = true;
    return DOPPEL_OK;
}

void dp_background_stop(doppel_engine *engine) {
    if (!engine->has_background)
        return;
    pthread_mutex_lock(&engine->order);
    engine->closing = true;
    pthread_cond_broadcast(&engine->settled);
    pthread_mutex_unlock(&engine->order);
    pthread_join(engine->background, NULL);
    engine->has_background = false;
}
