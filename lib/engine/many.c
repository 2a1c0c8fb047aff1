/* many.c - many items in one call: queries are made on several threads. Checks are answered there, too; adds come one
 * after the other, in order (add.c), and become durable together. */
#include "engine/internal.h"

#include <stdlib.h>

/* Queries that are held at a time, and those of them that a thread takes at once. */
enum { SLICE = 4096, PIECE = 8 };

/* A slice of the items. */
typedef struct item_slice {
    doppel_engine *engine;
    const doppel_item *items;
    size_t count;
    doppel_verdict *verdicts;
    doppel_status *status; /* of each */
    bool check;
    dp_query **queries; /* of adds */
    size_t piece;
    _Atomic size_t next;
    pthread_mutex_t lock;
    size_t first_bad; /* the first item that failed, and why */
    doppel_error why;
    /* Adds: those that are not bad. */
    const dp_query **query;
    dp_add *add;
    size_t *item; /* that each is of */
    size_t added; /* in all slices */
} item_slice;

static void fail_item(item_slice *m, size_t i, doppel_status status, const doppel_error *why) {
    pthread_mutex_lock(&m->lock);
    m->status[i] = status;
    if (i < m->first_bad) {
        m->first_bad = i;
        m->why = *why;
    }
    pthread_mutex_unlock(&m->lock);
}

static void check_item(item_slice *m, dp_worker *worker, size_t i) {
    doppel_error why = {0};
    dp_query query;
    double began = dp_seconds();
    doppel_status status = dp_engine_ask(m->engine, worker, &m->items[i], &query, &why);
    if (status == DOPPEL_OK) {
        status = dp_engine_answer(m->engine, worker, &query, &m->verdicts[i], &why);
        atomic_fetch_add(&m->engine->counters.checks, 1);
        dp_tally_add(&m->engine->counters.check_time, (uint64_t)((dp_seconds() - began) * 1e6));
    }
    m->status[i] = status;
    if (status != DOPPEL_OK)
        fail_item(m, i, status, &why);
}

/* A query of an item that outlives its maker. */
static void ask_item(item_slice *m, dp_worker *worker, size_t i) {
    doppel_error why = {0};
    dp_query query;
    doppel_status status = dp_engine_ask(m->engine, worker, &m->items[i], &query, &why);
    if (status == DOPPEL_OK && !m->check && !query.id.length)
        status = dp_fail(&why, DOPPEL_ERROR_INPUT, DP_NO_NAME);
    if (status == DOPPEL_OK && !(m->queries[i] = dp_query_copy(&query)))
        status = dp_no_memory(&why);
    m->status[i] = status;
    if (status != DOPPEL_OK)
        fail_item(m, i, status, &why);
}

/* Items whose queries are fetched together. */
static void check_together(item_slice *m, dp_worker *worker, size_t from, size_t to) {
    double began = dp_seconds();
    doppel_error why = {0};
    size_t count = 0;
    for (size_t i = from; i < to; i++) {
        ask_item(m, worker, i);
        if (m->status[i] == DOPPEL_OK)
            m->item[from + count++] = i;
    }
    for (size_t k = from; k < from + count; k++) {
        m->query[k] = m->queries[m->item[k]];
        m->add[k] = (dp_add){.verdict = &m->verdicts[m->item[k]]};
    }
    doppel_status status = dp_engine_answer_all(m->engine, worker, m->query + from, m->add + from, count, &why);
    for (size_t k = from; k < from + count; k++) {
        doppel_status one = status == DOPPEL_OK ? m->add[k].status : status;
        if (one != DOPPEL_OK)
            fail_item(m, m->item[k], one, &why);
        dp_tally_add(&m->engine->counters.check_time, (uint64_t)((dp_seconds() - began) * 1e6));
    }
    atomic_fetch_add(&m->engine->counters.checks, count);
}

static void do_piece(item_slice *m, dp_worker *worker, size_t from, size_t to) {
    if (m->check && m->piece > PIECE) {
        check_together(m, worker, from, to);
        return;
    }
    for (size_t i = from; i < to; i++)
        (m->check ? check_item : ask_item)(m, worker, i);
}

/* Items of a slice, a piece at a time. */
static void work(void *user, size_t thread) {
    item_slice *m = user;
    doppel_error why = {0};
    dp_worker *worker;
    (void)thread;
    doppel_status status = dp_worker_take(m->engine, &worker, &why);
    for (size_t from; (from = atomic_fetch_add(&m->next, m->piece)) < m->count;) {
        size_t to = from + m->piece < m->count ? from + m->piece : m->count;
        if (status == DOPPEL_OK)
            do_piece(m, worker, from, to);
        for (size_t i = from; i < to && status != DOPPEL_OK; i++)
            fail_item(m, i, status, &why);
    }
    if (status == DOPPEL_OK)
        dp_worker_give(m->engine, worker);
}

static void prepare(item_slice *m) {
    size_t threads = dp_thread_count(m->engine->options.threads), enough = m->count / (2 * m->piece) + 1;
    dp_run_threads(threads < enough ? threads : enough, work, m);
}

/* Adds a slice, in order, in a look that has begun. Stops at the first that fails when nobody asks for each status. */
static doppel_status add_slice(item_slice *m, dp_worker *worker, bool stop, doppel_error *error) {
    dp_adds adds = {.query = m->query, .add = m->add, .stop = stop};
    for (size_t i = 0; i < m->count && !(stop && i >= m->first_bad); i++) {
        if (m->status[i] != DOPPEL_OK)
            continue;
        m->query[adds.count] = m->queries[i];
        m->add[adds.count] = (dp_add){.verdict = &m->verdicts[i]};
        m->item[adds.count++] = i;
    }
    doppel_status status = dp_engine_add_queries(m->engine, worker, &adds, error);
    m->added += adds.done;
    for (size_t k = 0; k < adds.count; k++)
        if (m->add[k].status != DOPPEL_OK)
            fail_item(m, m->item[k], m->add[k].status, &adds.why);
    return status;
}

static void free_queries(item_slice *m) {
    for (size_t i = 0; i < m->count && m->queries; i++) {
        free(m->queries[i]);
        m->queries[i] = NULL;
    }
}

/* What of a call is told as a whole: the first failure, unless each has a status of its own. */
static doppel_status told(const item_slice *m, bool each, doppel_error *error) {
    if (each || m->first_bad == SIZE_MAX)
        return DOPPEL_OK;
    if (error)
        *error = m->why;
    return m->status[m->first_bad];
}

typedef struct item_batch {
    doppel_engine *engine;
    const doppel_item *items;
    size_t count;
    doppel_verdict *verdicts;
    doppel_status *status;
    bool check;
} item_batch;

/* What a slice has come to. Of adds, what a commit takes back afterwards is told by its own line. */
static void log_slice(const item_batch *b, const item_slice *m, size_t from) {
    for (size_t i = 0; i < m->count && dp_engine_logs(b->engine, DOPPEL_LOG_INFO); i++) {
        doppel_error why = {.code = m->status[i]};
        dp_log_begin(b->engine, b->check ? "CHECK" : "ADD", &b->items[from + i]);
        dp_log_end(b->engine, b->check ? "CHECK" : "ADD", m->status[i], &why, &m->verdicts[i], 0, NULL);
    }
}

static doppel_status run_slice(const item_batch *b, item_slice *m, dp_worker *worker, size_t from,
                               doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    m->items = b->items + from;
    m->verdicts = b->verdicts + from;
    m->count = b->count - from < SLICE ? b->count - from : SLICE;
    m->next = 0;
    m->first_bad = SIZE_MAX;
    prepare(m);
    if (!b->check)
        status = add_slice(m, worker, !b->status, error);
    free_queries(m);
    if (b->status)
        memcpy(b->status + from, m->status, m->count * sizeof *m->status);
    log_slice(b, m, from);
    for (size_t i = from + m->count; i < b->count && b->status && status != DOPPEL_OK; i++)
        b->status[i] = status;
    return status == DOPPEL_OK ? told(m, b->status != NULL, error) : status;
}

static doppel_status run_slices(const item_batch *b, item_slice *m, dp_worker *worker, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    pthread_mutex_init(&m->lock, NULL);
    m->status = calloc(SLICE, sizeof *m->status);
    m->queries = calloc(SLICE, sizeof *m->queries);
    m->query = calloc(SLICE, sizeof *m->query);
    m->add = calloc(SLICE, sizeof *m->add);
    m->item = calloc(SLICE, sizeof *m->item);
    if (!m->status || !m->queries || !m->query || !m->add || !m->item)
        status = dp_no_memory(error);
    for (size_t from = 0; from < b->count && status == DOPPEL_OK; from += SLICE)
        status = run_slice(b, m, worker, from, error);
    free(m->status);
    free(m->queries);
    free(m->query);
    free(m->add);
    free(m->item);
    pthread_mutex_destroy(&m->lock);
    return status;
}

static doppel_status check_batch(const item_batch *b, item_slice *m, doppel_error *error) {
    size_t fetches = b->engine->known->kind->fetches;
    m->piece = fetches > PIECE ? fetches : PIECE;
    return run_slices(b, m, NULL, error);
}

/* Adds, and waits until all is durable. What was committed and then failed to become durable is all taken back. */
static doppel_status add_batch(const item_batch *b, item_slice *m, doppel_error *error) {
    double began = dp_seconds();
    doppel_error why = {0};
    dp_worker *worker;
    m->piece = PIECE;
    doppel_status status = dp_engine_may_write(b->engine, error);
    DP_THEN(status, dp_worker_take(b->engine, &worker, error));
    if (status != DOPPEL_OK)
        return status;
    status = dp_look_begin(worker->look, DP_LOOK_ADD, error);
    if (status == DOPPEL_OK) {
        status = run_slices(b, m, worker, error);
        doppel_status written = worker->look->kind->end(worker->look, &why);
        for (size_t i = 0; i < b->count && written != DOPPEL_OK && b->status; i++)
            if (b->status[i] == DOPPEL_OK)
                b->status[i] = written;
        if (written != DOPPEL_OK && status == DOPPEL_OK && error)
            *error = why;
        status = status == DOPPEL_OK ? written : status;
    }
    dp_worker_give(b->engine, worker);
    for (size_t i = 0; i < m->added; i++)
        dp_tally_add(&b->engine->counters.add_time, (uint64_t)((dp_seconds() - began) * 1e6));
    return status;
}

doppel_status doppel_engine_check_batch(doppel_engine *engine, const doppel_item *items, size_t count,
                                        doppel_verdict *verdicts, doppel_status *status, doppel_error *error) {
    const item_batch b = {engine, items, count, verdicts, status, true};
    item_slice m = {.engine = engine, .check = true};
    return check_batch(&b, &m, error);
}

doppel_status doppel_engine_add_batch(doppel_engine *engine, const doppel_item *items, size_t count,
                                      doppel_verdict *verdicts, doppel_status *status, doppel_error *error) {
    const item_batch b = {engine, items, count, verdicts, status, false};
    item_slice m = {.engine = engine};
    return add_batch(&b, &m, error);
}
