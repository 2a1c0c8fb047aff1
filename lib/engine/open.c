/* open.c - an engine over what is known at a path: settings, and the pool of workers; and the end of all that. */
#include "engine/engine.h"

#include <stdlib.h>

/* ---- workers ---- */

static void worker_free(dp_worker *worker) {
    if (!worker)
        return;
    dp_asker_free(worker->asker);
    dp_look_free(worker->look);
    doppel_matches_free(&worker->near);
    free(worker->title_hits.hit);
    dp_numbers_free(&worker->keyed);
    dp_numbers_free(&worker->banded);
    dp_buffer_free(&worker->packed);
    for (int i = 0; i < DP_PARTS; i++)
        dp_buffer_free(&worker->bytes[i]);
    free(worker->set);
    free(worker);
}

static doppel_status worker_create(doppel_engine *engine, dp_worker **worker, doppel_error *error) {
    dp_worker *made = calloc(1, sizeof *made);
    *worker = NULL;
    if (!made)
        return dp_no_memory(error);
    doppel_status status = dp_asker_create(&engine->asking, &made->asker, error);
    if (status == DOPPEL_OK)
        status = dp_look_create(engine->known, &made->look, error);
    if (status == DOPPEL_OK)
        *worker = made;
    else
        worker_free(made);
    return status;
}

doppel_status dp_worker_take(doppel_engine *engine, dp_worker **worker, doppel_error *error) {
    pthread_mutex_lock(&engine->pool_lock);
    *worker = engine->pool;
    if (*worker)
        engine->pool = (*worker)->next;
    pthread_mutex_unlock(&engine->pool_lock);
    return *worker ? DOPPEL_OK : worker_create(engine, worker, error);
}

void dp_worker_give(doppel_engine *engine, dp_worker *worker) {
    pthread_mutex_lock(&engine->pool_lock);
    worker->next = engine->pool;
    engine->pool = worker;
    pthread_mutex_unlock(&engine->pool_lock);
}

/* ---- opening and closing ---- */

static void on_log(doppel_log_level level, const char *event, const char *line, void *user) {
    dp_log_line(user, level, event, "%s", line);
}

/* One that is there goes by its own settings. */
static doppel_status agree(const char *settings, dp_rules *rules, void *user, doppel_error *error) {
    doppel_engine *engine = user;
    doppel_status status = dp_engine_agree(engine, engine->given, settings, error);
    *rules = engine->rules;
    return status;
}

static doppel_status open_known(doppel_engine *engine, const char *path, doppel_error *error) {
    const doppel_engine_options *given = engine->given, *o = &engine->options;
    const dp_known_options options = {.read_only = given->read_only,
                                      .must_exist = given->must_exist || given->read_only,
                                      .group_readable = given->group_readable,
                                      .salvage = o->salvage,
                                      .map = given->map,
                                      .count = o->count,
                                      .memory = o->memory,
                                      .threads = o->threads,
                                      .durability = o->durability,
                                      .clock_settle = o->clock_settle,
                                      .settings = engine->settings.data,
                                      .rules = engine->rules,
                                      .now = o->now,
                                      .now_user = o->user,
                                      .agree = agree,
                                      .log = on_log,
                                      .user = engine,
                                      .counters = &engine->counters.known};
    return dp_known_open(path, &options, &engine->known, error);
}

doppel_status doppel_engine_open(const char *path, const doppel_engine_options *options, doppel_engine **engine,
                                 doppel_error *error) {
    double began = dp_seconds();
    doppel_engine_options given = {.size = sizeof given};
    if (options)
        dp_copy_options(&given, options, sizeof given);
    *engine = NULL;
    if (!path && given.read_only)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "an engine in memory that is only read has nothing to say");
    doppel_engine *made = calloc(1, sizeof *made);
    if (!made)
        return dp_no_memory(error);
    pthread_mutex_init(&made->pool_lock, NULL);
    made->crowd = DP_CROWD_LEAST;
    made->given = &given;
    doppel_status status = dp_engine_set_up(made, path, &given, error);
    if (status == DOPPEL_OK)
        status = open_known(made, path, error);
    if (status == DOPPEL_OK)
        status = worker_create(made, &made->pool, error);
    made->given = NULL;
    made->open_seconds = dp_seconds() - began;
    if (status == DOPPEL_OK)
        *engine = made;
    else
        doppel_engine_close(made);
    return status;
}

void doppel_engine_close(doppel_engine *engine) {
    if (!engine)
        return;
    for (dp_worker *worker = engine->pool, *next; worker; worker = next) {
        next = worker->next;
        worker_free(worker);
    }
    dp_known_close(engine->known);
    doppel_recipe_free(engine->own_recipe);
    dp_buffer_free(&engine->settings);
    pthread_mutex_destroy(&engine->pool_lock);
    free(engine->fields_text);
    free(engine->fields_copy);
    free(engine);
}

void doppel_engine_stop_waiting(doppel_engine *engine) {
    if (engine)
        dp_known_stop_waiting(engine->known);
}

const doppel_engine_options *doppel_engine_get_options(const doppel_engine *engine) {
    return &engine->options;
}
