/* over.c - the engine over a shared store: opening, counting, and what such a store leaves to others. */
#include "engine/over.h"

#include <stdio.h>

/* What the store has to tell, as a line of the engine's log. */
static void on_log(doppel_log_level level, const char *event, const char *line, void *user) {
    dp_log_line(user, level, event, "%s", line);
}

static doppel_status open_with(doppel_engine *engine, const char *url, const doppel_engine_options *given,
                               doppel_error *error) {
    const dp_shared_options options = {.read_only = given->read_only,
                                       .must_exist = given->must_exist || given->read_only,
                                       .settings = engine->settings.data,
                                       .rules = engine->rules,
                                       .count = given->count,
                                       .log = on_log,
                                       .user = engine};
    return dp_shared_open(url, &options, &engine->shared, error);
}

static bool same_rules(const dp_rules *a, const dp_rules *b) {
    return a->distance == b->distance && a->bits == b->bits && a->titles == b->titles &&
           !(a->title_similarity < b->title_similarity) && !(a->title_similarity > b->title_similarity);
}

/* The store goes by the rules that it is opened with: where it was made with others, it is opened again with those. */
doppel_status dp_over_open(doppel_engine *engine, const char *url, const doppel_engine_options *given,
                           doppel_error *error) {
    dp_rules rules = engine->rules;
    doppel_status status = open_with(engine, url, given, error);
    if (status == DOPPEL_OK)
        status = dp_engine_agree(engine, given, dp_shared_settings(engine->shared), error);
    if (status != DOPPEL_OK || same_rules(&rules, &engine->rules))
        return status;
    dp_shared_close(engine->shared);
    engine->shared = NULL;
    return open_with(engine, url, given, error);
}

uint64_t dp_over_now(doppel_engine *engine) {
    return engine->options.now ? dp_engine_now(engine) : 0;
}

void dp_over_stats(doppel_engine *engine, doppel_engine_stats *stats) {
    dp_shared_info info;
    doppel_error why = {0};
    if (dp_shared_get_info(engine->shared, &info, &why) != DOPPEL_OK) {
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
