/* many.c - many items in one call: queries are made on several threads. Checks are answered there, too; adds are
 * decided one after the other, in order (add.c), and become durable together.
 *
 * Concurrent calls share the threads of the engine. Adds of several calls are decided in the order of their turns
 * (doppel_turn): while one call decides, the next makes its queries, and the one before waits for the disk. */
#include "engine/internal.h"

#include <stdlib.h>

/* Queries held at a time, and how many a thread takes at once; of checks, at most LOOK_PIECE. */
enum { SLICE = 4096, PIECE = 8, LOOK_PIECE = 64 };

/* The arguments of a call, and the current slice of its items. */
typedef struct item_batch {
    doppel_engine *engine;
    const doppel_item *items;
    size_t count;
    doppel_verdict *verdicts;
    doppel_error *errors; /* the caller's, of each item; NULL: the first that fails ends the call */
    bool check;
    size_t piece;
    const doppel_turn *turn; /* of adds; NULL: no order */
    bool in_turn;            /* the turn has begun */
    dp_worker *adder;        /* its look has begun, to add; NULL: it has not */

    size_t from, size;     /* of the slice; the rest is about its items */
    doppel_status *status; /* of each */
    dp_query **queries;
    dp_title_ahead *ahead; /* of adds, what was looked up before their turn */
    _Atomic size_t next;
    pthread_mutex_t lock;
    size_t first_bad; /* the first that failed, and why */
    doppel_error why;
    /* Those that have not failed, by their order. */
    const dp_query **query;
    dp_add *add;
    size_t *item; /* that each is of */
    size_t added; /* in all slices */
} item_batch;

static void fail_item(item_batch *b, size_t i, doppel_status status, const doppel_error *why) {
    pthread_mutex_lock(&b->lock);
    b->status[i] = status;
    if (b->errors) {
        b->errors[b->from + i] = *why;
        b->errors[b->from + i].code = status;
    }
    if (i < b->first_bad) {
        b->first_bad = i;
        b->why = *why;
    }
    pthread_mutex_unlock(&b->lock);
}

/* An item as dp_engine_answer_all and dp_engine_add_queries take it. */
static dp_add add_of(const item_batch *b, size_t i) {
    return (dp_add){.verdict = &b->verdicts[b->from + i], .error = b->errors ? &b->errors[b->from + i] : NULL};
}

/* Records that one of those failed; `why` if it has no error of its own. */
static void fail_added(item_batch *b, size_t k, doppel_status status, const doppel_error *why) {
    fail_item(b, b->item[k], status, b->add[k].error ? b->add[k].error : why);
}

/* A query of an item that outlives its maker. */
static void ask_item(item_batch *b, dp_worker *worker, size_t i) {
    doppel_error why = {0};
    dp_query query;
    doppel_status status = dp_engine_ask(worker, &b->items[b->from + i], &query, &why);
    if (status == DOPPEL_OK && !b->check && !query.id.length)
        status = dp_fail(&why, DOPPEL_ERROR_INPUT, DP_NO_NAME);
    if (status == DOPPEL_OK && !(b->queries[i] = dp_query_copy(&query)))
        status = dp_no_memory(&why);
    b->status[i] = status;
    if (status != DOPPEL_OK)
        fail_item(b, i, status, &why);
}

/* Items whose queries are fetched together. */
static void check_together(item_batch *b, dp_worker *worker, size_t from, size_t to) {
    double began = dp_seconds();
    doppel_error why = {0};
    size_t count = 0;
    for (size_t i = from; i < to; i++) {
        ask_item(b, worker, i);
        if (b->status[i] == DOPPEL_OK)
            b->item[from + count++] = i;
    }
    for (size_t k = from; k < from + count; k++) {
        b->query[k] = b->queries[b->item[k]];
        b->add[k] = add_of(b, b->item[k]);
    }
    doppel_status status = dp_engine_answer_all(worker, b->query + from, b->add + from, count, &why);
    uint64_t each = count ? (uint64_t)((dp_seconds() - began) / (double)count * 1e6) : 0;
    for (size_t k = from; k < from + count; k++) {
        if (status != DOPPEL_OK)
            fail_item(b, b->item[k], status, &why);
        else if (b->add[k].status != DOPPEL_OK)
            fail_added(b, k, b->add[k].status, &why);
        dp_tally_add(&b->engine->counters.check_time, each);
    }
    atomic_fetch_add(&b->engine->counters.checks, count);
}

/* Looks up ahead what is worth it before the turn of an add. */
static void look_ahead(item_batch *b, dp_worker *worker, size_t i) {
    dp_query *query = b->queries[i];
    if (!worker->look->kind->look_ahead || query->restore)
        return;
    worker->look->kind->look_ahead(worker->look, query, &b->ahead[i]);
    query->title_ahead = &b->ahead[i];
}

static void do_piece(item_batch *b, dp_worker *worker, size_t from, size_t to) {
    if (b->check) {
        check_together(b, worker, from, to);
        return;
    }
    for (size_t i = from; i < to; i++) {
        ask_item(b, worker, i);
        if (b->status[i] == DOPPEL_OK)
            look_ahead(b, worker, i);
    }
}

/* Items of a slice, a piece at a time. */
static void work(void *user, size_t thread) {
    item_batch *b = user;
    doppel_error why = {0};
    dp_worker *worker;
    (void)thread;
    doppel_status status = dp_worker_take(b->engine, &worker, &why);
    for (size_t from; (from = atomic_fetch_add(&b->next, b->piece)) < b->size;) {
        size_t to = from + b->piece < b->size ? from + b->piece : b->size;
        if (status == DOPPEL_OK)
            do_piece(b, worker, from, to);
        for (size_t i = from; i < to && status != DOPPEL_OK; i++)
            fail_item(b, i, status, &why);
    }
    if (status == DOPPEL_OK)
        dp_worker_give(worker);
}

/* On this call's share of the threads. */
static void prepare(item_batch *b) {
    size_t calls = atomic_fetch_add(&b->engine->batches, 1) + 1;
    size_t threads = dp_thread_count(b->engine->options.threads) / calls, enough = b->size / (2 * b->piece) + 1;
    threads = threads < enough ? threads : enough;
    dp_run_threads(threads ? threads : 1, work, b);
    atomic_fetch_sub(&b->engine->batches, 1);
}

/* ---- adds ---- */

/* Waits for the turn, and begins the look, once. Nothing is locked while it waits: the thread that has the turn may
 * need it. */
static doppel_status begin_adding(item_batch *b, doppel_error *error) {
    if (b->turn && !b->in_turn)
        b->turn->wait(b->turn->user);
    b->in_turn = true;
    return b->adder ? DOPPEL_OK : dp_worker_begin(b->engine, DP_LOOK_ADD, &b->adder, error);
}

/* Lets the next call decide. Each call passes its turn, even on errors. */
static void pass_turn(item_batch *b) {
    if (!b->turn)
        return;
    if (!b->in_turn)
        b->turn->wait(b->turn->user);
    b->turn->pass(b->turn->user);
}

/* Adds a slice, in order. Stops at the first failure if the errors of each are not wanted. */
static doppel_status add_slice(item_batch *b, doppel_error *error) {
    bool stop = !b->errors;
    dp_adds adds = {.query = b->query, .add = b->add, .stop = stop};
    for (size_t i = 0; i < b->size && !(stop && i >= b->first_bad); i++) {
        if (b->status[i] != DOPPEL_OK)
            continue;
        b->query[adds.count] = b->queries[i];
        b->add[adds.count] = add_of(b, i);
        b->item[adds.count++] = i;
    }
    DP_TRY(begin_adding(b, error));
    doppel_status status = dp_engine_add_queries(b->adder, &adds, error);
    b->added += adds.done;
    for (size_t k = 0; k < adds.count; k++)
        if (b->add[k].status != DOPPEL_OK)
            fail_added(b, k, b->add[k].status, &adds.why);
    return status;
}

/* ---- slices ---- */

static void free_queries(item_batch *b) {
    for (size_t i = 0; i < b->size && b->queries && b->ahead; i++) {
        free(b->queries[i]);
        b->queries[i] = NULL;
        dp_title_ahead_free(&b->ahead[i]);
    }
}

/* Logs the results of a slice. Adds undone by a failed commit are logged by their own line. */
static void log_slice(const item_batch *b) {
    const char *what = b->check ? "CHECK" : "ADD";
    for (size_t i = 0; i < b->size && dp_engine_logs(b->engine, DOPPEL_LOG_INFO); i++) {
        doppel_error why = b->errors ? b->errors[b->from + i] : (doppel_error){.code = b->status[i]};
        dp_log_begin(b->engine, what, &b->items[b->from + i]);
        dp_log_end(b->engine, what, b->status[i], &why, &b->verdicts[b->from + i], 0, NULL);
    }
}

static doppel_status run_slice(item_batch *b, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    b->size = b->count - b->from < SLICE ? b->count - b->from : SLICE;
    b->next = 0;
    b->first_bad = SIZE_MAX;
    prepare(b);
    if (!b->check)
        status = add_slice(b, error);
    free_queries(b);
    log_slice(b);
    if (status != DOPPEL_OK || b->errors || b->first_bad == SIZE_MAX)
        return status;
    if (error)
        *error = b->why;
    return b->status[b->first_bad];
}

/* Fails the items from `from` on that have not failed, with the error that ended the call. */
static void fail_rest(item_batch *b, size_t from, doppel_status status, const doppel_error *why) {
    for (size_t i = from; i < b->count && b->errors; i++)
        if (b->errors[i].code == DOPPEL_OK) {
            b->errors[i] = why ? *why : (doppel_error){0};
            b->errors[i].code = status;
        }
}

static doppel_status run_slices(item_batch *b, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    pthread_mutex_init(&b->lock, NULL);
    size_t room = b->count < SLICE ? b->count + 1 : SLICE;
    b->status = calloc(room, sizeof *b->status);
    b->queries = calloc(room, sizeof *b->queries);
    b->query = calloc(room, sizeof *b->query);
    b->add = calloc(room, sizeof *b->add);
    b->item = calloc(room, sizeof *b->item);
    b->ahead = calloc(room, sizeof *b->ahead);
    if (!b->status || !b->queries || !b->ahead || !b->query || !b->add || !b->item)
        status = dp_no_memory(error);
    for (size_t i = 0; i < b->count && b->errors; i++)
        b->errors[i] = (doppel_error){0};
    for (; b->from < b->count && status == DOPPEL_OK; b->from += SLICE)
        status = run_slice(b, error);
    if (status != DOPPEL_OK)
        fail_rest(b, b->from, status, error);
    free(b->status);
    free(b->queries);
    free(b->query);
    free(b->add);
    free(b->item);
    free(b->ahead);
    pthread_mutex_destroy(&b->lock);
    return status;
}

/* Checks that are answered in one look: the fewer looks the better, but every thread should have some. */
static size_t piece_for(const doppel_engine *engine, size_t count) {
    size_t share = count / (4 * dp_thread_count(engine->options.threads)), fetches = engine->known->kind->fetches;
    size_t piece = share < PIECE ? PIECE : share < LOOK_PIECE ? share : LOOK_PIECE;
    return fetches > piece ? fetches : piece;
}

doppel_status doppel_engine_check_batch(doppel_engine *engine, const doppel_item *items, size_t count,
                                        doppel_verdict *verdicts, doppel_error *errors, doppel_error *error) {
    item_batch b = {engine, items, count, verdicts, errors, .check = true, .piece = piece_for(engine, count)};
    return run_slices(&b, error);
}

/* Commits that failed to become durable are all undone. */
static doppel_status end_adding(item_batch *b, doppel_status status, doppel_error *error) {
    doppel_error why = {0};
    if (!b->adder)
        return status;
    doppel_status written = b->adder->look->kind->end(b->adder->look, &why);
    dp_worker_give(b->adder);
    if (written == DOPPEL_OK)
        return status;
    fail_rest(b, 0, written, &why);
    if (status != DOPPEL_OK)
        return status;
    if (error)
        *error = why;
    return written;
}

doppel_status doppel_engine_add_in_turn(doppel_engine *engine, const doppel_item *items, size_t count,
                                        const doppel_turn *turn, doppel_verdict *verdicts, doppel_error *errors,
                                        doppel_error *error) {
    double began = dp_seconds();
    item_batch b = {engine, items, count, verdicts, errors, .piece = PIECE, .turn = turn};
    doppel_status status = dp_engine_may_write(engine, error);
    DP_THEN(status, run_slices(&b, error));
    pass_turn(&b);
    status = end_adding(&b, status, error);
    for (size_t i = 0; i < b.added; i++)
        dp_tally_add(&engine->counters.add_time, (uint64_t)((dp_seconds() - began) * 1e6));
    return status;
}

doppel_status doppel_engine_add_batch(doppel_engine *engine, const doppel_item *items, size_t count,
                                      doppel_verdict *verdicts, doppel_error *errors, doppel_error *error) {
    return doppel_engine_add_in_turn(engine, items, count, NULL, verdicts, errors, error);
}
