/* engine.c - the online line: check, add, remove. Each call takes a worker of the pool, makes a query of its item
 * outside all locks, and looks it up: against what is durable for a check, under `order` for an add (add.c), which then
 * waits for its commit (commit.c). */
#include "engine/over.h"

#include <stdlib.h>
#include <zstd.h>

/* How well a kept text is packed: the usual level, 300 MB/s and more. */
#define PACKING 3
/* Expired documents are looked for so often, in seconds, and so many are removed at a time. */
enum { EXPIRE_EVERY = 60, EXPIRE_MANY = 4096 };

doppel_status dp_engine_enter(doppel_engine *engine, dp_worker **worker, doppel_error *error) {
    bool follows = engine->options.read_only && !engine->shared;
    doppel_status status = follows ? dp_engine_follow(engine, error) : DOPPEL_OK;
    if (status != DOPPEL_OK)
        return status;
    pthread_rwlock_rdlock(&engine->shape);
    if (!(*worker = dp_worker_take(engine, error))) {
        pthread_rwlock_unlock(&engine->shape);
        return error && error->code != DOPPEL_OK ? error->code : DOPPEL_ERROR_MEMORY;
    }
    return DOPPEL_OK;
}

void dp_engine_leave(doppel_engine *engine, dp_worker *worker) {
    dp_worker_give(engine, worker);
    pthread_rwlock_unlock(&engine->shape);
}

static doppel_status pack_text(dp_worker *worker, dp_query *query, doppel_error *error) {
    size_t bound = ZSTD_compressBound(query->text.length);
    if (!dp_reserve(&worker->packed.data, &worker->packed.capacity, bound, 1))
        return dp_no_memory(error);
    size_t size = ZSTD_compress(worker->packed.data, bound, query->text.data, query->text.length, PACKING);
    if (ZSTD_isError(size))
        return dp_no_memory(error);
    query->text_length = query->text.length;
    query->text = (doppel_slice){worker->packed.data, size};
    return DOPPEL_OK;
}

doppel_status dp_engine_ask(doppel_engine *engine, dp_worker *worker, const doppel_item *item, dp_query *query,
                            doppel_error *error) {
    doppel_status status = dp_ask(worker->asker, item, query, error);
    if (status != DOPPEL_OK)
        return status;
    query->text_length = 0;
    if (engine->asking.keep_text && query->text.length)
        return pack_text(worker, query, error);
    return DOPPEL_OK;
}

/* ---- check ---- */

/* So often a check is made again when documents went meanwhile; then it waits until none can. */
enum { MOST_TRIES = 8 };

doppel_status dp_engine_answer(doppel_engine *engine, dp_worker *worker, const dp_query *query, doppel_verdict *verdict,
                               doppel_error *error) {
    dp_finding finding;
    doppel_status status = DOPPEL_OK;
    bool again = true;
    for (int tries = 0; again && status == DOPPEL_OK; tries++) {
        dp_look look;
        bool hold = tries == MOST_TRIES && !engine->options.read_only;
        if (hold)
            pthread_mutex_lock(&engine->order);
        status = dp_look_begin(engine, worker, &look, error);
        if (status == DOPPEL_OK) {
            status = dp_find_refreshed(engine, worker, query, &look, &finding, error);
            again = dp_look_again(engine, &look);
            const doppel_slice ids[2] = {query->id, finding.original_id};
            if (status == DOPPEL_OK && !again &&
                dp_verdict_set(verdict, &engine->rules, finding.reason, &finding.best.evidence, ids) != DOPPEL_OK)
                status = dp_no_memory(error);
            dp_look_end(engine, worker, &look);
        }
        if (hold)
            pthread_mutex_unlock(&engine->order);
    }
    if (status == DOPPEL_OK)
        dp_engine_note(engine, &finding);
    return status;
}

doppel_status doppel_engine_check(doppel_engine *engine, const doppel_item *item, doppel_verdict *verdict,
                                  doppel_error *error) {
    double began = dp_engine_clock();
    dp_worker *worker;
    dp_query query;
    doppel_error why = {0};
    dp_log_begin(engine, "CHECK", item);
    doppel_status status = dp_engine_enter(engine, &worker, &why);
    if (status == DOPPEL_OK) {
        status = dp_engine_ask(engine, worker, item, &query, &why);
        if (status == DOPPEL_OK)
            status = engine->shared ? dp_over_decide(engine, DP_SHARED_CHECK, &query, verdict, &why)
                                    : dp_engine_answer(engine, worker, &query, verdict, &why);
        dp_engine_leave(engine, worker);
    }
    atomic_fetch_add(&engine->counters.checks, 1);
    dp_tally_add(&engine->counters.check_time, (uint64_t)((dp_engine_clock() - began) * 1e6));
    return dp_log_end(engine, "CHECK", status, &why, verdict, began, error);
}

/* ---- add ---- */

doppel_status dp_engine_may_write(const doppel_engine *engine, doppel_error *error) {
    if (!engine->options.read_only)
        return DOPPEL_OK;
    return dp_fail(error, DOPPEL_ERROR_USAGE, "the index was opened to be read only");
}

/* Now and then, what has expired goes. What goes wrong is told by the commit. */
static void expire_now_and_then(doppel_engine *engine, dp_worker *worker) {
    uint64_t now = dp_engine_purge_time(engine), expired = 0;
    if (now >= engine->expired_at && now < engine->expired_at + EXPIRE_EVERY)
        return;
    if (dp_engine_expire_some(engine, worker, EXPIRE_MANY, &expired, NULL) != DOPPEL_OK || expired < EXPIRE_MANY)
        engine->expired_at = now;
}

doppel_status dp_engine_add_query(doppel_engine *engine, dp_worker *worker, const dp_query *query,
                                  doppel_verdict *verdict, doppel_error *error) {
    expire_now_and_then(engine, worker);
    if (!query->id.length)
        return dp_fail(error, DOPPEL_ERROR_INPUT, DP_NO_NAME);
    doppel_status status = dp_engine_decide(engine, worker, query, verdict, error);
    if (status == DOPPEL_OK && engine->options.durability == DOPPEL_DURABLE_EACH)
        status = dp_commit_now(engine, error);
    atomic_fetch_add(&engine->counters.adds, 1);
    return status;
}

doppel_status doppel_engine_add(doppel_engine *engine, const doppel_item *item, doppel_verdict *verdict,
                                doppel_error *error) {
    double began = dp_engine_clock();
    dp_worker *worker;
    dp_query query;
    doppel_error why = {0};
    dp_log_begin(engine, "ADD", item);
    doppel_status status = dp_engine_may_write(engine, &why);
    if (status == DOPPEL_OK)
        status = dp_engine_enter(engine, &worker, &why);
    if (status == DOPPEL_OK) {
        status = dp_engine_ask(engine, worker, item, &query, &why);
        if (status == DOPPEL_OK && engine->shared) {
            status = dp_over_decide(engine, DP_SHARED_ADD, &query, verdict, &why);
        } else if (status == DOPPEL_OK) {
            pthread_mutex_lock(&engine->order);
            status = dp_engine_add_query(engine, worker, &query, verdict, &why);
            if (status == DOPPEL_OK)
                status = dp_commit_wait(engine, &why);
            pthread_mutex_unlock(&engine->order);
        }
        dp_engine_leave(engine, worker);
    }
    dp_tally_add(&engine->counters.add_time, (uint64_t)((dp_engine_clock() - began) * 1e6));
    return dp_log_end(engine, "ADD", status, &why, verdict, began, error);
}

/* ---- remove ---- */

static doppel_status remove_id(doppel_engine *engine, dp_worker *worker, doppel_slice id, bool *removed,
                               doppel_error *error) {
    const dp_look look = {.below = UINT64_MAX, .now = dp_engine_now(engine), .deciding = true};
    uint64_t number = 0;
    dp_trace trace;
    doppel_status status = dp_view_begin(worker->view, error);
    if (status != DOPPEL_OK)
        return status;
    status = dp_find_id(engine, worker, id, &look, &number, error);
    if (status == DOPPEL_OK && number)
        status = dp_read_trace(engine, worker, &look, number, &trace, removed, error);
    if (status == DOPPEL_OK && *removed)
        status = dp_engine_forget(engine, &trace, false, error);
    dp_view_end(worker->view);
    return status;
}

doppel_status doppel_engine_remove(doppel_engine *engine, const char *id, size_t length, bool *removed,
                                   doppel_error *error) {
    dp_worker *worker;
    bool found = false;
    doppel_status status = dp_engine_may_write(engine, error);
    if (status == DOPPEL_OK && engine->shared)
        return dp_over_remove(engine, (doppel_slice){id, length}, removed, error);
    if (status == DOPPEL_OK)
        status = dp_engine_enter(engine, &worker, error);
    if (status != DOPPEL_OK)
        return status;
    pthread_mutex_lock(&engine->order);
    status = remove_id(engine, worker, (doppel_slice){id, length}, &found, error);
    if (status == DOPPEL_OK && engine->options.durability == DOPPEL_DURABLE_EACH)
        status = dp_commit_now(engine, error);
    if (status == DOPPEL_OK)
        status = dp_commit_wait(engine, error);
    pthread_mutex_unlock(&engine->order);
    dp_engine_leave(engine, worker);
    if (status == DOPPEL_OK && found)
        atomic_fetch_add(&engine->counters.removes, 1);
    if (removed)
        *removed = status == DOPPEL_OK && found;
    return status;
}

/* ---- expiry ---- */

doppel_status dp_engine_expire_some(doppel_engine *engine, dp_worker *worker, size_t most, uint64_t *expired,
                                    doppel_error *error) {
    const dp_look look = {.below = UINT64_MAX, .now = dp_engine_now(engine), .deciding = true, .salvage = true};
    uint64_t *numbers = malloc(most * sizeof *numbers);
    *expired = 0;
    if (!numbers)
        return dp_no_memory(error);
    size_t count = dp_known_expired(engine->known, dp_engine_purge_time(engine), numbers, most);
    doppel_status status = count ? dp_view_begin(worker->view, error) : DOPPEL_OK;
    for (size_t i = 0; i < count && status == DOPPEL_OK; i++) {
        dp_trace trace;
        bool found;
        status = dp_read_trace(engine, worker, &look, numbers[i], &trace, &found, error);
        if (status == DOPPEL_OK && !found) /* damaged: what is left of it goes, too */
            trace = (dp_trace){.number = numbers[i], .kind = DP_TRACE_COPY};
        if (status == DOPPEL_OK)
            status = dp_engine_forget(engine, &trace, true, error);
        *expired += status == DOPPEL_OK;
    }
    if (count)
        dp_view_end(worker->view);
    free(numbers);
    atomic_fetch_add(&engine->counters.expired, *expired);
    return status;
}

doppel_status doppel_engine_expire(doppel_engine *engine, uint64_t *expired, doppel_error *error) {
    dp_worker *worker;
    uint64_t some = 0, all = 0;
    doppel_status status = dp_engine_may_write(engine, error);
    if (expired)
        *expired = 0;
    if (status != DOPPEL_OK || engine->shared) /* which lets go by itself */
        return status;
    status = dp_engine_enter(engine, &worker, error);
    if (status != DOPPEL_OK)
        return status;
    pthread_mutex_lock(&engine->order);
    do {
        status = dp_engine_expire_some(engine, worker, EXPIRE_MANY, &some, error);
        if (status == DOPPEL_OK)
            status = dp_commit_wait(engine, error);
        all += some;
    } while (status == DOPPEL_OK && some == EXPIRE_MANY);
    pthread_mutex_unlock(&engine->order);
    dp_engine_leave(engine, worker);
    if (expired)
        *expired = status == DOPPEL_OK ? all : 0;
    return status;
}
