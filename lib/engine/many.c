/* many.c - many items in one call: queries are made on several threads; answers of adds come one after the other, in
 * order, under one hold of `order`, and become durable in one commit. */
#include "engine/over.h"

#include <stdlib.h>

/* So many queries are held at a time. */
enum { SLICE = 4096 };

typedef struct many {
    doppel_engine *engine;
    const doppel_item *items;
    size_t count;
    doppel_verdict *verdicts;
    doppel_status *status; /* of each */
    bool check;
    dp_query **queries;  /* of adds, and in a shared store of checks */
    uint64_t taken_back; /* the engine's, before the first was decided */
    _Atomic size_t next;
    pthread_mutex_t lock;
    size_t first_bad; /* the first item that failed, and why */
    doppel_error why;
} many;

static void fail_item(many *m, size_t i, doppel_status status, const doppel_error *why) {
    pthread_mutex_lock(&m->lock);
    m->status[i] = status;
    if (i < m->first_bad) {
        m->first_bad = i;
        m->why = *why;
    }
    pthread_mutex_unlock(&m->lock);
}

static void one_item(many *m, dp_worker *worker, size_t i) {
    doppel_error why = {0};
    dp_query query;
    double began = dp_engine_clock();
    doppel_status status = dp_engine_ask(m->engine, worker, &m->items[i], &query, &why);
    if (status == DOPPEL_OK && m->check && !m->engine->shared) {
        status = dp_engine_answer(m->engine, worker, &query, &m->verdicts[i], &why);
        atomic_fetch_add(&m->engine->counters.checks, 1);
        dp_tally_add(&m->engine->counters.check_time, (uint64_t)((dp_engine_clock() - began) * 1e6));
    } else if (status == DOPPEL_OK && !(m->queries[i] = dp_query_copy(&query))) {
        status = dp_no_memory(&why);
    }
    m->status[i] = status;
    if (status != DOPPEL_OK)
        fail_item(m, i, status, &why);
}

/* Items of a slice, a few at a time. */
static void work(void *user, size_t thread) {
    many *m = user;
    doppel_error why = {0};
    (void)thread;
    dp_worker *worker = dp_worker_take(m->engine, &why);
    for (size_t from; (from = atomic_fetch_add(&m->next, 8)) < m->count;)
        for (size_t i = from; i < from + 8 && i < m->count; i++) {
            if (worker)
                one_item(m, worker, i);
            else
                fail_item(m, i, why.code ? why.code : DOPPEL_ERROR_MEMORY, &why);
        }
    if (worker)
        dp_worker_give(m->engine, worker);
}

static void prepare(many *m) {
    size_t threads = dp_thread_count(m->engine->options.threads), enough = m->count / 16 + 1;
    dp_run_threads(threads < enough ? threads : enough, work, m);
}

/* Decides about a slice, in order; `order` is held. Stops at the first that fails when nobody asks for each status. */
static void decide_slice(many *m, dp_worker *worker, bool stop_at_bad) {
    for (size_t i = 0; i < m->count && !(stop_at_bad && i >= m->first_bad); i++) {
        doppel_error why = {0};
        if (m->status[i] != DOPPEL_OK)
            continue;
        double began = dp_engine_clock();
        doppel_status status = dp_engine_add_query(m->engine, worker, m->queries[i], &m->verdicts[i], &why);
        dp_tally_add(&m->engine->counters.add_time, (uint64_t)((dp_engine_clock() - began) * 1e6));
        if (status != DOPPEL_OK)
            fail_item(m, i, status, &why);
    }
}

/* For dp_over_decide_many. */
static void item_done(size_t i, doppel_status status, const doppel_error *why, void *user) {
    many *m = user;
    if (status != DOPPEL_OK)
        fail_item(m, i, status, why);
}

/* The same in a shared store, of checks, too: up to the first that failed, when nobody asks for each status. */
static doppel_status decide_shared(many *m, bool stop_at_bad, doppel_error *error) {
    const dp_over_many over = {.op = m->check ? DP_SHARED_CHECK : DP_SHARED_ADD,
                               .queries = m->queries,
                               .count = stop_at_bad && m->first_bad < m->count ? m->first_bad : m->count,
                               .verdicts = m->verdicts,
                               .done = item_done,
                               .user = m};
    return dp_over_decide_many(m->engine, &over, error);
}

static void free_queries(many *m) {
    for (size_t i = 0; i < m->count && m->queries; i++) {
        free(m->queries[i]);
        m->queries[i] = NULL;
    }
}

/* What of a call is told as a whole: the first failure, unless each has a status of its own. */
static doppel_status told(const many *m, bool each, doppel_error *error) {
    if (each || m->first_bad == SIZE_MAX)
        return DOPPEL_OK;
    if (error)
        *error = m->why;
    return m->status[m->first_bad];
}

typedef struct batch {
    doppel_engine *engine;
    const doppel_item *items;
    size_t count;
    doppel_verdict *verdicts;
    doppel_status *status;
    bool check;
} batch;

/* What a slice has come to. Of adds, what a commit takes back afterwards is told by its own line. */
static void log_slice(const batch *b, const many *m, size_t from) {
    for (size_t i = 0; i < m->count && dp_engine_logs(b->engine, DOPPEL_LOG_INFO); i++) {
        doppel_error why = {.code = m->status[i]};
        dp_log_begin(b->engine, b->check ? "CHECK" : "ADD", &b->items[from + i]);
        dp_log_end(b->engine, b->check ? "CHECK" : "ADD", m->status[i], &why, &m->verdicts[i], 0, NULL);
    }
}

static doppel_status run_slice(const batch *b, many *m, dp_worker *worker, size_t from, doppel_error *error) {
    m->items = b->items + from;
    m->verdicts = b->verdicts + from;
    m->count = b->count - from < SLICE ? b->count - from : SLICE;
    m->next = 0;
    m->first_bad = SIZE_MAX;
    prepare(m);
    doppel_status status = DOPPEL_OK;
    if (b->engine->shared) {
        status = decide_shared(m, !b->status, error);
        free_queries(m);
    } else if (!b->check) {
        pthread_mutex_lock(&b->engine->order);
        if (!from)
            m->taken_back = b->engine->taken_back;
        decide_slice(m, worker, !b->status);
        pthread_mutex_unlock(&b->engine->order);
        free_queries(m);
    }
    if (b->status)
        memcpy(b->status + from, m->status, m->count * sizeof *m->status);
    log_slice(b, m, from);
    for (size_t i = from + m->count; i < b->count && b->status && status != DOPPEL_OK; i++)
        b->status[i] = status;
    return status == DOPPEL_OK ? told(m, b->status != NULL, error) : status;
}

/* Waits until all is durable. Between slices another thread may have written what is pending: if that failed, some of
 * this batch is gone. With DOPPEL_DURABLE_EACH every item knows for itself, and without durability nobody waits. */
static doppel_status wait_for_all(const batch *b, const many *m, doppel_error *why) {
    doppel_engine *engine = b->engine;
    pthread_mutex_lock(&engine->order);
    doppel_status written = dp_commit_wait(engine, why);
    bool batched = engine->options.durability == DOPPEL_DURABLE_BATCH;
    if (written == DOPPEL_OK && batched && m->count && m->taken_back != engine->taken_back) {
        *why = engine->failed_error;
        written = why->code;
    }
    pthread_mutex_unlock(&engine->order);
    return written;
}

/* A commit that failed takes back all that was decided. */
static doppel_status end_batch(const batch *b, const many *m, doppel_status status, doppel_error *error) {
    doppel_error why = {0};
    doppel_status written = wait_for_all(b, m, &why);
    for (size_t i = 0; i < b->count && written != DOPPEL_OK && b->status; i++)
        if (b->status[i] == DOPPEL_OK)
            b->status[i] = written;
    if (written != DOPPEL_OK && status == DOPPEL_OK && error)
        *error = why;
    return status == DOPPEL_OK ? written : status;
}

static doppel_status run_batch(const batch *b, doppel_error *error) {
    dp_worker *worker;
    many m = {.engine = b->engine, .check = b->check};
    doppel_status status = b->check ? DOPPEL_OK : dp_engine_may_write(b->engine, error);
    if (status == DOPPEL_OK)
        status = dp_engine_enter(b->engine, &worker, error);
    if (status != DOPPEL_OK)
        return status;
    pthread_mutex_init(&m.lock, NULL);
    m.status = calloc(SLICE, sizeof *m.status);
    m.queries = calloc(SLICE, sizeof *m.queries);
    if (!m.status || !m.queries)
        status = dp_no_memory(error);
    for (size_t from = 0; from < b->count && status == DOPPEL_OK; from += SLICE)
        status = run_slice(b, &m, worker, from, error);
    if (!b->check && !b->engine->shared)
        status = end_batch(b, &m, status, error);
    free(m.status);
    free(m.queries);
    pthread_mutex_destroy(&m.lock);
    dp_engine_leave(b->engine, worker);
    return status;
}

doppel_status doppel_engine_check_batch(doppel_engine *engine, const doppel_item *items, size_t count,
                                        doppel_verdict *verdicts, doppel_status *status, doppel_error *error) {
    const batch b = {engine, items, count, verdicts, status, true};
    return run_batch(&b, error);
}

doppel_status doppel_engine_add_batch(doppel_engine *engine, const doppel_item *items, size_t count,
                                      doppel_verdict *verdicts, doppel_status *status, doppel_error *error) {
    const batch b = {engine, items, count, verdicts, status, false};
    return run_batch(&b, error);
}
