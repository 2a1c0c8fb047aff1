/* over.c - the engine over a shared store: opening, counting, and what such a store leaves to others. */
#include "engine/over.h"

#include <stdio.h>

/* What the store has to tell, as a line of the engine's log. */
static void on_log(doppel_log_level level, const char *event, const char *line, void *user) {
    dp_log_line(user, level, event, "%s", line);
}

/* Who opens it, and what was asked for. */
typedef struct opening {
    doppel_engine *engine;
    const doppel_engine_options *given;
} opening;

/* One that is there goes by its own settings. */
static doppel_status agree(const char *settings, dp_rules *rules, void *agreeing, doppel_error *error) {
    const opening *o = agreeing;
    doppel_status status = dp_engine_agree(o->engine, o->given, settings, error);
    *rules = o->engine->rules;
    return status;
}

doppel_status dp_over_open(doppel_engine *engine, const char *url, const doppel_engine_options *given,
                           doppel_error *error) {
    opening o = {engine, given};
    const dp_shared_options options = {.read_only = given->read_only,
                                       .must_exist = given->must_exist || given->read_only,
                                       .settings = engine->settings.data,
                                       .rules = engine->rules,
                                       .count = given->count,
                                       .agree = agree,
                                       .agreeing = &o,
                                       .log = on_log,
                                       .user = engine};
    return dp_shared_open(url, &options, &engine->shared, error);
}

doppel_status doppel_store_prepare(const char *url,
                                   void (*server)(const char *server, const char *library, const char *state,
                                                  void *user),
                                   void *user, doppel_error *error) {
    if (!url || !dp_shared_takes(url))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "this is not the URL of a shared store (redis://HOST:PORT/DB)");
    return dp_shared_prepare(url, server, user, error);
}

void doppel_engine_stop_waiting(doppel_engine *engine) {
    if (engine && engine->shared)
        dp_shared_stop_waiting(engine->shared);
}

uint64_t dp_over_now(doppel_engine *engine) {
    return engine->options.now ? dp_engine_now(engine) : 0;
}

void dp_over_stats(doppel_engine *engine, doppel_engine_stats *stats) {
    dp_shared_info info;
    doppel_error why = {0};
    if (dp_shared_get_info(engine->shared, dp_over_now(engine), &info, &why) != DOPPEL_OK) {
        dp_log_error(engine, "STATS", &why);
        return;
    }
    stats->documents = info.documents;
    stats->copies = info.copies;
    stats->last = info.last;
    stats->memory_bytes = info.memory_bytes;
    stats->reconnects = info.reconnects;
    stats->resent = info.resent;
    stats->moved = info.moved;
    for (int i = 0; i < 3; i++)
        stats->duplicates_by[i] = info.total.by[i];
    memcpy(stats->plan, info.plan, sizeof stats->plan);
}

doppel_status dp_over_refuse(const char *what, doppel_error *error) {
    return dp_fail(error, DOPPEL_ERROR_USAGE,
                   "%s is for an index folder: a shared store lets go of what has expired by itself, and is kept and "
                   "backed up by Redis's own persistence (appendonly, SAVE); `doppel export` copies what is in it",
                   what);
}
