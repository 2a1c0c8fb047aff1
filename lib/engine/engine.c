/* engine.c - the online line: check, add, remove, and operations on a whole index. Each call takes a worker from the
 * pool, makes a query from its item, and searches lib/known: a check sees what is durable, an add decides (add.c), and
 * returns its verdict once that is durable. */
#include "engine/engine.h"
#include "engine/internal.h"

#include <stdio.h>
#include <zstd.h>

/* Compression level of kept texts: the usual one, 300 MB/s and more. */
#define PACKING 3

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

doppel_status dp_engine_ask(dp_worker *worker, const doppel_item *item, dp_query *query, doppel_error *error) {
    DP_TRY(dp_query_make(worker->maker, item, query, error));
    query->text_length = 0;
    return worker->engine->sketching.keep_text && query->text.length ? pack_text(worker, query, error) : DOPPEL_OK;
}

/* ---- check ---- */

void dp_engine_count(doppel_engine *engine, const dp_outcome *outcome) {
    dp_engine_counters *c = &engine->counters;
    atomic_fetch_add_explicit(&c->verdicts_by[outcome->reason], 1, memory_order_relaxed);
    dp_tally_add(&c->candidates, outcome->candidates);
    if (outcome->reason == DOPPEL_REASON_CONTENT && outcome->distance >= 0)
        dp_tally_add(&c->distances, (uint64_t)outcome->distance);
}

/* How often a check is repeated because documents were removed while it ran; then it blocks removals. */
enum { MOST_TRIES = 8 };

/* Answers a query in a look that has begun. *again: documents were removed during the search, and there is no
 * answer. */
static doppel_status answer_in_look(dp_worker *worker, const dp_query *query, dp_add *answer, bool *again,
                                    doppel_error *error) {
    dp_original found;
    worker->look->except[0] = worker->look->except[1] = 0;
    DP_TRY(dp_find_refreshed(worker, query, &found, error));
    answer->outcome = (dp_outcome){found.reason, found.candidates, found.best.evidence.distance};
    *again = worker->look->kind->again(worker->look);
    if (*again)
        return DOPPEL_OK;
    const doppel_slice ids[2] = {query->id, found.original_id};
    doppel_status status =
        dp_verdict_set(answer->verdict, &worker->engine->rules, found.reason, &found.best.evidence, ids);
    return status == DOPPEL_OK ? status : dp_no_memory(error);
}

/* Checks a query. */
static doppel_status answer_query(dp_worker *worker, const dp_query *query, doppel_verdict *verdict,
                                  doppel_error *error) {
    dp_look *look = worker->look;
    dp_add answer = {.verdict = verdict};
    bool again = true;
    for (int tries = 0; again; tries++) {
        size_t ready;
        again = false;
        DP_TRY(dp_look_begin(look, tries < MOST_TRIES ? DP_LOOK_READ : DP_LOOK_STILL, error));
        doppel_status status = look->kind->fetch(look, &query, 1, &ready, error);
        DP_THEN(status, answer_in_look(worker, query, &answer, &again, error));
        (void)look->kind->end(look, NULL);
        DP_TRY(status);
    }
    dp_engine_count(worker->engine, &answer.outcome);
    return DOPPEL_OK;
}

/* Sets the result of one of several; *error is that of the first failure. */
static void set_answer(dp_worker *worker, dp_add *answer, doppel_status status, const doppel_error *why,
                       doppel_error *error) {
    answer->status = status;
    if (answer->error)
        *answer->error = *why;
    if (status == DOPPEL_OK)
        dp_engine_count(worker->engine, &answer->outcome);
    else if (error->code == DOPPEL_OK)
        *error = *why;
}

/* Answers queries from *done on, until one has to be repeated or all are answered. */
static doppel_status answer_some(dp_worker *worker, const dp_query *const *queries, dp_add *answers, size_t count,
                                 size_t *done, doppel_error *error) {
    dp_look *look = worker->look;
    bool again = false;
    while (*done < count && !again) {
        size_t ready, end;
        DP_TRY(look->kind->fetch(look, queries + *done, count - *done, &ready, error));
        for (end = *done + ready; *done < end && !again;) {
            doppel_error why = {0};
            doppel_status status = answer_in_look(worker, queries[*done], &answers[*done], &again, &why);
            if (!again)
                set_answer(worker, &answers[(*done)++], status, &why, error);
        }
    }
    return DOPPEL_OK;
}

doppel_status dp_engine_answer_all(dp_worker *worker, const dp_query *const *queries, dp_add *answers, size_t count,
                                   doppel_error *error) {
    size_t done = 0;
    while (done < count) {
        size_t before = done;
        DP_TRY(dp_look_begin(worker->look, DP_LOOK_READ, error));
        doppel_status status = answer_some(worker, queries, answers, count, &done, error);
        (void)worker->look->kind->end(worker->look, NULL);
        DP_TRY(status);
        if (done > before || done == count)
            continue;
        /* Not even the first: alone it blocks removals. */
        doppel_error why = {0};
        doppel_status alone = answer_query(worker, queries[done], answers[done].verdict, &why);
        answers[done].status = alone;
        if (answers[done].error)
            *answers[done].error = why;
        if (alone != DOPPEL_OK && error->code == DOPPEL_OK)
            *error = why;
        done++;
    }
    return DOPPEL_OK;
}

/* ---- one item: the line as a whole ---- */

static uint64_t microseconds_since(double began) {
    return (uint64_t)((dp_seconds() - began) * 1e6);
}

/* What is done with the query of an item. */
typedef doppel_status (*query_work)(dp_worker *worker, const dp_query *query, doppel_verdict *verdict,
                                    doppel_error *error);

static doppel_status run_item(doppel_engine *engine, const doppel_item *item, query_work work, doppel_verdict *verdict,
                              doppel_error *error) {
    dp_worker *worker;
    dp_query query;
    DP_TRY(dp_worker_take(engine, &worker, error));
    doppel_status status = dp_engine_ask(worker, item, &query, error);
    DP_THEN(status, work(worker, &query, verdict, error));
    dp_worker_give(worker);
    return status;
}

doppel_status doppel_engine_check(doppel_engine *engine, const doppel_item *item, doppel_verdict *verdict,
                                  doppel_error *error) {
    double began = dp_seconds();
    doppel_error why = {0};
    dp_log_begin(engine, "CHECK", item);
    doppel_status status = run_item(engine, item, answer_query, verdict, &why);
    atomic_fetch_add(&engine->counters.checks, 1);
    dp_tally_add(&engine->counters.check_time, microseconds_since(began));
    return dp_log_end(engine, "CHECK", status, &why, verdict, began, error);
}

doppel_status dp_engine_may_write(const doppel_engine *engine, doppel_error *error) {
    if (!engine->options.read_only)
        return DOPPEL_OK;
    return dp_fail(error, DOPPEL_ERROR_USAGE, "the index was opened to be read only");
}

static doppel_status add_query(dp_worker *worker, const dp_query *query, doppel_verdict *verdict, doppel_error *error) {
    dp_add add = {.verdict = verdict};
    dp_adds adds = {.query = &query, .add = &add, .count = 1};
    if (!query->id.length)
        return dp_fail(error, DOPPEL_ERROR_INPUT, DP_NO_NAME);
    DP_TRY(dp_look_begin(worker->look, DP_LOOK_ADD, error));
    (void)dp_engine_add_queries(worker, &adds, NULL);
    doppel_status status = worker->look->kind->end(worker->look, error);
    if (add.status != DOPPEL_OK && error)
        *error = adds.why;
    return add.status != DOPPEL_OK ? add.status : status;
}

doppel_status doppel_engine_add(doppel_engine *engine, const doppel_item *item, doppel_verdict *verdict,
                                doppel_error *error) {
    double began = dp_seconds();
    doppel_error why = {0};
    dp_log_begin(engine, "ADD", item);
    doppel_status status = dp_engine_may_write(engine, &why);
    DP_THEN(status, run_item(engine, item, add_query, verdict, &why));
    dp_tally_add(&engine->counters.add_time, microseconds_since(began));
    return dp_log_end(engine, "ADD", status, &why, verdict, began, error);
}

/* ---- check of a document that is sketched ---- */

const dp_rules *dp_engine_rules(const doppel_engine *engine) {
    return &engine->rules;
}

/* A document as a query, in memory of the worker. Names that no index accepts cannot be found in one. */
static doppel_status ask_sketched(dp_worker *worker, const dp_engine_document *document, dp_query *query,
                                  doppel_error *error) {
    *query = (dp_query){0};
    if (document->url.length <= DP_NAME_LIMIT)
        query->canonical = document->url;
    if (dp_title_counts(document->title))
        query->title_key = document->title;
    if (!document->sketch)
        return DOPPEL_OK;
    query->content = document->near;
    return dp_query_take_sketch(worker->maker, document->sketch, query, error);
}

/* Whether the result is a duplicate by the caller's rules, too. */
static bool counts_for(const dp_engine_document *document, const doppel_verdict *verdict) {
    doppel_reason reason = verdict->reason;
    const dp_candidate candidate = {.evidence = verdict->evidence,
                                    .content = reason == DOPPEL_REASON_CONTENT,
                                    .title = reason == DOPPEL_REASON_TITLE};
    return dp_decide(&document->rules, &candidate) != DOPPEL_REASON_NONE;
}

static doppel_status check_sketched(dp_worker *worker, const dp_engine_document *document, doppel_verdict *verdict,
                                    doppel_error *error) {
    dp_query query;
    DP_TRY(ask_sketched(worker, document, &query, error));
    DP_TRY(answer_query(worker, &query, verdict, error));
    if (!verdict->is_duplicate || counts_for(document, verdict))
        return DOPPEL_OK;
    /* Without keys nothing is near: the set, or the sample, is used for the veto. */
    dp_query title = {.title_key = query.title_key};
    if (worker->engine->rules.by_similarity) {
        title.content = query.content;
        title.set = query.set;
        title.set_count = query.set_count;
        title.sample = query.sample;
    }
    DP_TRY(answer_query(worker, &title, verdict, error));
    verdict->is_duplicate = verdict->is_duplicate && counts_for(document, verdict);
    return DOPPEL_OK;
}

doppel_status dp_engine_check_sketched(doppel_engine *engine, const dp_engine_document *document,
                                       doppel_verdict *verdict, doppel_error *error) {
    dp_worker *worker;
    DP_TRY(dp_worker_take(engine, &worker, error));
    doppel_status status = check_sketched(worker, document, verdict, error);
    dp_worker_give(worker);
    return status;
}

/* ---- remove ---- */

/* Queues the removal of the document with an id; false in *found: there is none. */
static doppel_status queue_removal(dp_worker *worker, doppel_slice id, bool *found, doppel_error *error) {
    uint64_t number = 0;
    dp_trace trace;
    *found = false;
    DP_TRY(dp_find_name(worker, DP_KEY_ID, id, &number, error));
    if (number)
        DP_TRY(dp_look_trace(worker->look, number, &trace, found, error));
    return *found ? dp_queue_removal(worker->look, &trace, error) : DOPPEL_OK;
}

static doppel_status remove_in_look(dp_worker *worker, doppel_slice id, bool *found, doppel_error *error) {
    const dp_query query = {.id = id, .id_given = true}, *queries = &query;
    dp_look *look = worker->look;
    size_t ready;
    bool stands = false;
    DP_TRY(look->kind->fetch(look, &queries, 1, &ready, error));
    while (!stands) {
        doppel_error unkept = {0};
        doppel_status status = queue_removal(worker, id, found, error);
        doppel_status kept = look->kind->commit(look, &stands, &unkept);
        DP_TRY(status);
        if (kept != DOPPEL_OK && error)
            *error = unkept;
        DP_TRY(kept);
    }
    return DOPPEL_OK;
}

doppel_status doppel_engine_remove(doppel_engine *engine, doppel_slice id, bool *removed, doppel_error *error) {
    dp_worker *worker;
    bool found = false;
    DP_TRY(dp_engine_may_write(engine, error));
    DP_TRY(dp_worker_take(engine, &worker, error));
    doppel_status status = dp_look_begin(worker->look, DP_LOOK_ADD, error);
    if (status == DOPPEL_OK) {
        status = remove_in_look(worker, id, &found, error);
        doppel_status written = worker->look->kind->end(worker->look, status == DOPPEL_OK ? error : NULL);
        status = status == DOPPEL_OK ? written : status;
    }
    dp_worker_give(worker);
    found = found && status == DOPPEL_OK;
    if (found)
        atomic_fetch_add(&engine->counters.removes, 1);
    if (removed)
        *removed = found;
    return status;
}

/* ---- as a whole ---- */

doppel_status doppel_engine_expire(doppel_engine *engine, uint64_t *expired, doppel_error *error) {
    uint64_t count = 0;
    doppel_status status = dp_engine_may_write(engine, error);
    DP_THEN(status, engine->known->kind->expire(engine->known, &count, error));
    if (expired)
        *expired = count;
    return status;
}

doppel_status doppel_engine_compact(doppel_engine *engine, doppel_error *error) {
    DP_TRY(dp_engine_may_write(engine, error));
    return engine->known->kind->compact(engine->known, error);
}

doppel_status doppel_engine_backup(doppel_engine *engine, const char *path, doppel_error *error) {
    return engine->known->kind->backup(engine->known, path, error);
}

doppel_status doppel_engine_verify(const char *path, void (*finding)(const char *what, void *user), void *user,
                                   doppel_verified *verified, doppel_error *error) {
    const doppel_engine_options reads = {.size = sizeof reads, .read_only = true, .must_exist = true};
    doppel_engine *engine = NULL;
    if (!dp_known_is_inspected(path))
        return dp_known_verify(path, finding, user, verified, error);
    doppel_status status = doppel_engine_open(path, &reads, &engine, error);
    DP_THEN(status, engine->known->kind->inspect(engine->known, finding, user, verified, error));
    doppel_engine_close(engine);
    return status;
}

doppel_status doppel_store_prepare(const char *url,
                                   void (*server)(const char *server, const char *library, const char *state,
                                                  void *user),
                                   void *user, doppel_error *error) {
    return dp_known_prepare(url, server, user, error);
}

/* ---- counters ---- */

static void read_tally(const dp_tally *tally, doppel_histogram *to) {
    for (int i = 0; i < DOPPEL_BUCKETS; i++)
        to->bucket[i] = atomic_load(&tally->bucket[i]);
    to->count = atomic_load(&tally->count);
    to->sum = atomic_load(&tally->sum);
}

static void read_counters(const doppel_engine *engine, doppel_engine_stats *stats) {
    const dp_engine_counters *c = &engine->counters;
    stats->open_seconds = engine->open_seconds;
    stats->checks = atomic_load(&c->checks);
    stats->adds = atomic_load(&c->adds);
    stats->removes = atomic_load(&c->removes);
    stats->expired = atomic_load(&c->known.expired);
    stats->damaged = atomic_load(&c->known.damaged);
    stats->commits = atomic_load(&c->known.commits);
    stats->failed_commits = atomic_load(&c->known.failed_commits);
    for (int i = 0; i < DOPPEL_REASONS; i++)
        stats->verdicts_by[i] = atomic_load(&c->verdicts_by[i]);
    read_tally(&c->check_time, &stats->check_time);
    read_tally(&c->add_time, &stats->add_time);
    read_tally(&c->known.commit_time, &stats->commit_time);
    read_tally(&c->candidates, &stats->candidates);
    read_tally(&c->distances, &stats->distances);
}

void doppel_engine_get_stats(doppel_engine *engine, doppel_engine_stats *stats) {
    memset(stats, 0, sizeof *stats);
    read_counters(engine, stats);
    engine->known->kind->get_stats(engine->known, stats);
    if (engine->rules.by_similarity)
        snprintf(stats->plan, sizeof stats->plan, "%dx%d", engine->sketching.bands, engine->sketching.rows);
}
