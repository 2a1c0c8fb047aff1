/* open.c - an engine from its folder: settings, store, and everything that must be in memory, read from the traces on
 * several threads; the pool of workers; and the end of all that. */
#include "engine/over.h"

#include <stdlib.h>
#include <time.h>

/* ---- workers ---- */

static void worker_free(dp_worker *worker) {
    if (!worker)
        return;
    dp_asker_free(worker->asker);
    dp_view_free(worker->view);
    doppel_matches_free(&worker->near);
    dp_title_matches_free(&worker->titles);
    free(worker->title_hits.hit);
    dp_numbers_free(&worker->keyed);
    dp_numbers_free(&worker->banded);
    free(worker->sift.bits);
    dp_buffer_free(&worker->packed);
    for (int i = 0; i < DP_PARTS; i++)
        dp_buffer_free(&worker->bytes[i]);
    free(worker->set);
    free(worker);
}

static dp_worker *worker_create(doppel_engine *engine, doppel_error *error) {
    dp_worker *worker = calloc(1, sizeof *worker);
    if (!worker) {
        dp_no_memory(error);
        return NULL;
    }
    doppel_status status = dp_asker_create(&engine->asking, &worker->asker, error);
    if (status == DOPPEL_OK && !engine->is_shared)
        status = dp_view_create(engine->store, &worker->view, error);
    if (status == DOPPEL_OK)
        return worker;
    worker_free(worker);
    return NULL;
}

dp_worker *dp_worker_take(doppel_engine *engine, doppel_error *error) {
    pthread_mutex_lock(&engine->pool_lock);
    dp_worker *worker = engine->pool;
    if (worker)
        engine->pool = worker->next;
    pthread_mutex_unlock(&engine->pool_lock);
    return worker ? worker : worker_create(engine, error);
}

void dp_worker_give(doppel_engine *engine, dp_worker *worker) {
    pthread_mutex_lock(&engine->pool_lock);
    worker->next = engine->pool;
    engine->pool = worker;
    pthread_mutex_unlock(&engine->pool_lock);
}

/* ---- loading ---- */

/* Numbers are read in pieces of so many, by whichever thread is free. */
enum { PIECE = 1 << 16 };

typedef struct loading {
    doppel_engine *engine;
    dp_known *known; /* that is being made */
    dp_known_load *load;
    uint64_t last, now, purge;
    dp_moment moment;
    _Atomic uint64_t next; /* number that is not read yet */
    pthread_mutex_t lock;
    uint64_t seen, live, bad, pages; /* as in a piece */
    bool moved;                      /* it was written to meanwhile: counts are of several moments */
    doppel_status status;
    doppel_error why;
} loading;

static void load_failed(loading *l, doppel_status status, const doppel_error *why) {
    pthread_mutex_lock(&l->lock);
    if (l->status == DOPPEL_OK) {
        l->status = status;
        l->why = *why;
        if (l->why.code == DOPPEL_OK)
            dp_fail(&l->why, status, "%s", doppel_status_name(status));
    }
    pthread_mutex_unlock(&l->lock);
}

/* What a thread reads, and counts: traces, those of documents and copies among them, those that are damaged, and pages
 * of them that cannot be read. */
typedef struct piece {
    loading *loading;
    uint64_t seen, live, bad, pages;
} piece;

static void on_damaged(uint64_t number, void *user) {
    piece *p = user;
    ++*(number ? &p->bad : &p->pages);
    dp_log_line(p->loading->engine, DOPPEL_LOG_ERROR, "OPEN_ERROR",
                number ? "document %llu is damaged; `doppel verify` tells more" : "a page of documents is damaged",
                (unsigned long long)number);
}

static doppel_status on_trace(uint64_t number, doppel_slice bytes, void *user) {
    piece *p = user;
    loading *l = p->loading;
    dp_trace trace;
    if (!dp_trace_decode(bytes, &trace) || trace.number != number) {
        on_damaged(number, user);
        return DOPPEL_OK;
    }
    p->seen++;
    p->live += dp_trace_is_kept(&trace);
    if (dp_trace_is_removal(&trace) || (trace.expires && trace.expires <= l->purge && l->engine->options.read_only))
        return DOPPEL_OK;
    dp_latest(&l->engine->newest, trace.added);
    return dp_known_load_add(l->load, &trace);
}

static void add_piece(loading *l, const piece *p, bool moved) {
    pthread_mutex_lock(&l->lock);
    l->seen += p->seen;
    l->live += p->live;
    l->bad += p->bad;
    l->pages += p->pages;
    l->moved = l->moved || moved;
    pthread_mutex_unlock(&l->lock);
}

static void load_pieces(void *user, size_t thread) {
    loading *l = user;
    doppel_error why = {0};
    dp_view *view = NULL;
    piece p = {.loading = l};
    bool moved = false;
    (void)thread;
    doppel_status status = dp_view_create(l->engine->store, &view, &why);
    for (uint64_t from; status == DOPPEL_OK && (from = atomic_fetch_add(&l->next, PIECE)) <= l->last;) {
        const dp_each each = {.part = DP_PART_TRACE,
                              .from = from,
                              .to = from + PIECE - 1 < l->last ? from + PIECE - 1 : l->last,
                              .value = on_trace,
                              .damaged = on_damaged,
                              .user = &p};
        status = dp_view_begin(view, &why);
        if (status == DOPPEL_OK) {
            dp_moment moment;
            dp_view_moment(view, &moment);
            moved = moved || moment.commit != l->moment.commit || moment.generation != l->moment.generation;
            status = dp_view_each(view, &each, &why);
            dp_view_end(view);
        }
    }
    dp_view_free(view);
    add_piece(l, &p, moved);
    if (status != DOPPEL_OK)
        load_failed(l, status, &why);
}

/* Titles that duplicates came with count as often as they came. */
static doppel_status on_count(uint64_t number, const dp_counts *counts, void *user) {
    loading *l = user;
    dp_worker *worker = l->engine->pool;
    dp_trace trace;
    bool found;
    const dp_look look = {.below = UINT64_MAX, .now = l->now};
    if (!counts->by[DP_SAME_TITLE - 1])
        return DOPPEL_OK;
    doppel_status status = dp_read_trace(l->engine, worker, &look, number, &trace, &found, NULL);
    if (status != DOPPEL_OK || !found)
        return status;
    return dp_known_title_seen(l->known, trace.title, counts->by[DP_SAME_TITLE - 1]);
}

static doppel_status load_titles(loading *l, doppel_error *error) {
    if (!l->engine->rules.titles)
        return DOPPEL_OK;
    dp_view *view = l->engine->pool->view;
    doppel_status status = dp_view_begin(view, error);
    if (status != DOPPEL_OK)
        return status;
    doppel_error why = {0};
    status = dp_view_each_count(view, on_count, l, &why);
    dp_view_end(view);
    if (status == DOPPEL_ERROR_STORE)
        return dp_engine_damage(l->engine, 1, &why, error);
    if (status != DOPPEL_OK && error)
        *error = why;
    return status;
}

static doppel_status make_known(const doppel_engine *engine, dp_known **known, doppel_error *error) {
    const dp_known_options options = {.bits = engine->rules.bits,
                                      .distance = engine->rules.distance,
                                      .by_similarity = engine->rules.by_similarity,
                                      .titles = engine->rules.titles,
                                      .title_similarity = engine->rules.title_similarity,
                                      .count = engine->options.count,
                                      .memory = engine->options.memory,
                                      .threads = engine->options.threads};
    return dp_known_create(&options, known, error);
}

/* What the store is like now, in the pool's first worker's view. */
static doppel_status read_moment(doppel_engine *engine, dp_moment *moment, doppel_error *error) {
    doppel_status status = dp_view_begin(engine->pool->view, error);
    if (status != DOPPEL_OK)
        return status;
    dp_view_moment(engine->pool->view, moment);
    dp_view_end(engine->pool->view);
    return DOPPEL_OK;
}

/* Reads all traces up to l->last. */
static doppel_status load_traces(loading *l, doppel_error *error) {
    doppel_status status = dp_known_load_begin(l->known, &l->load);
    if (status != DOPPEL_OK)
        return dp_no_memory(error);
    pthread_mutex_init(&l->lock, NULL);
    size_t threads = dp_thread_count(l->engine->options.threads), pieces = (size_t)(l->last / PIECE + 1);
    dp_run_threads(threads < pieces ? threads : pieces, load_pieces, l);
    doppel_status ended = dp_known_load_end(l->load);
    if (ended != DOPPEL_OK)
        load_failed(l, ended, &l->why);
    pthread_mutex_destroy(&l->lock);
    if (l->status != DOPPEL_OK && error)
        *error = l->why;
    return l->status;
}

static uint64_t apart(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

/* Whether what was read is what the store says it has: every trace, and a record for every document and copy. */
static doppel_status reconcile(const loading *l, doppel_error *error) {
    doppel_error why = {0};
    uint64_t lost = l->bad;
    if (!l->moved)
        lost += apart(l->moment.traces, l->seen + l->bad);
    if (!lost && !l->moved)
        lost = apart(l->moment.records, l->live);
    if (!lost && !l->pages)
        return DOPPEL_OK;
    dp_damaged(l->engine->path ? l->engine->path : "memory", &why, "%llu of %llu documents cannot be read",
               (unsigned long long)(lost ? lost : 1), (unsigned long long)l->moment.traces);
    return dp_engine_damage(l->engine, lost ? lost : 1, &why, error);
}

doppel_status dp_engine_load(doppel_engine *engine, doppel_error *error) {
    dp_moment moment;
    loading l = {.engine = engine, .next = 1};
    doppel_status status = make_known(engine, &l.known, error);
    if (status == DOPPEL_OK)
        status = read_moment(engine, &moment, error);
    if (status == DOPPEL_OK) {
        dp_engine_set_clock(engine, &moment.clock);
        l.last = moment.last;
        l.moment = moment;
        l.now = dp_engine_now(engine);
        l.purge = engine->loaded_by = dp_engine_purge_time(engine);
        status = load_traces(&l, error);
    }
    if (status == DOPPEL_OK)
        status = reconcile(&l, error);
    if (status == DOPPEL_OK && (status = load_titles(&l, error)) == DOPPEL_ERROR_MEMORY)
        dp_no_memory(error);
    if (status != DOPPEL_OK) {
        dp_known_free(l.known);
        return status;
    }
    dp_known_free(engine->known);
    engine->known = l.known;
    engine->names = moment.names;
    engine->next = moment.last + 1;
    engine->followed = moment.last;
    engine->loads++;
    engine->followed_generation = moment.generation;
    /* What was read while the writer compacted is of two generations, whose names may have other hashes. */
    dp_moment after;
    status = engine->options.read_only ? read_moment(engine, &after, error) : DOPPEL_OK;
    if (status != DOPPEL_OK || !engine->options.read_only || after.generation == moment.generation)
        return status;
    return dp_engine_load(engine, error);
}

/* ---- opening and closing ---- */

static void init_locks(doppel_engine *engine) {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&engine->shape, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    pthread_mutex_init(&engine->order, NULL);
    pthread_mutex_init(&engine->pool_lock, NULL);
    pthread_mutex_init(&engine->clock_lock, NULL);
    pthread_condattr_t by_monotonic;
    pthread_condattr_init(&by_monotonic);
    pthread_condattr_setclock(&by_monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&engine->settled, &by_monotonic);
    pthread_condattr_destroy(&by_monotonic);
}

static void on_warning(const char *message, void *user) {
    dp_log_line(user, DOPPEL_LOG_WARNING, "OPEN_WARNING", "%s", message);
}

static doppel_status open_store(doppel_engine *engine, const char *path, const doppel_engine_options *given,
                                doppel_error *error) {
    const dp_store_options options = {.read_only = given->read_only,
                                      .must_exist = given->must_exist || given->read_only,
                                      .group_readable = given->group_readable,
                                      .map = given->map,
                                      .settings = engine->settings.data,
                                      .warn = on_warning,
                                      .user = engine};
    if (engine->is_shared)
        return dp_over_open(engine, path, given, error);
    if (path && !(engine->path = strdup(path)))
        return dp_no_memory(error);
    doppel_status status = dp_store_open(path, &options, &engine->store, error);
    return status == DOPPEL_OK ? dp_engine_agree(engine, given, dp_store_settings(engine->store), error) : status;
}

static bool keep_all(const dp_trace *trace, void *user) {
    (void)trace, (void)user;
    return true;
}

/* A folder whose names have no secret gets one before anything is written to it. Killed on the way, it is as it was. */
static doppel_status convert(doppel_engine *engine, doppel_error *error) {
    dp_moment moment;
    doppel_status status = read_moment(engine, &moment, error);
    if (status != DOPPEL_OK || moment.names.keyed)
        return status;
    dp_log_line(engine, DOPPEL_LOG_INFO, "OPEN", "the index is of format 1: it is rewritten in format 2");
    return dp_store_compact(engine->store, keep_all, NULL, error);
}

doppel_status doppel_engine_open(const char *path, const doppel_engine_options *options, doppel_engine **engine,
                                 doppel_error *error) {
    double began = dp_engine_clock();
    doppel_engine_options given = {.size = sizeof given};
    if (options)
        dp_copy_options(&given, options, sizeof given);
    *engine = NULL;
    if (!path && given.read_only)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "an engine in memory that is only read has nothing to say");
    doppel_engine *made = calloc(1, sizeof *made);
    if (!made)
        return dp_no_memory(error);
    init_locks(made);
    made->crowd = DP_CROWD_LEAST;
    made->is_shared = path && dp_shared_takes(path);
    doppel_status status = dp_engine_set_up(made, &given, error);
    if (status == DOPPEL_OK)
        status = open_store(made, path, &given, error);
    if (status == DOPPEL_OK && !(made->pool = worker_create(made, error)))
        status = error && error->code ? error->code : DOPPEL_ERROR_MEMORY;
    if (status == DOPPEL_OK && !made->is_shared && !given.read_only)
        status = convert(made, error);
    if (status == DOPPEL_OK && !made->is_shared)
        status = dp_engine_load(made, error);
    if (status == DOPPEL_OK && !made->is_shared)
        status = dp_background_start(made, error);
    made->open_seconds = dp_engine_clock() - began;
    if (status == DOPPEL_OK)
        *engine = made;
    else
        doppel_engine_close(made);
    return status;
}

void doppel_engine_close(doppel_engine *engine) {
    if (!engine)
        return;
    if (engine->store && engine->known)
        dp_commit_stop(engine);
    for (dp_worker *worker = engine->pool, *next; worker; worker = next) {
        next = worker->next;
        worker_free(worker);
    }
    dp_leaving_free(&engine->leaving);
    dp_known_free(engine->known);
    dp_store_close(engine->store);
    dp_shared_close(engine->shared);
    doppel_recipe_free(engine->own_recipe);
    dp_buffer_free(&engine->settings);
    pthread_rwlock_destroy(&engine->shape);
    pthread_mutex_destroy(&engine->order);
    pthread_mutex_destroy(&engine->pool_lock);
    pthread_mutex_destroy(&engine->clock_lock);
    pthread_cond_destroy(&engine->settled);
    free(engine->path);
    free(engine->fields_text);
    free(engine->fields_copy);
    free(engine);
}

const doppel_engine_options *doppel_engine_get_options(const doppel_engine *engine) {
    return &engine->options;
}
