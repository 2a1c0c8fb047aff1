/* over_decide.c - check, add and remove in a shared store: queries become requests, which go there together; answers
 * become verdicts. */
#include "engine/over.h"

#include <stdlib.h>

/* Requests that are under way. */
typedef struct asking {
    doppel_engine *engine;
    const dp_over_many *many;
    dp_shared_request *requests;
    size_t *places; /* of each request in `many` */
    size_t count;
} asking;

/* ---- requests ---- */

static dp_shared_request request_of(doppel_engine *engine, dp_shared_op op, const dp_query *q) {
    const doppel_engine_options *o = &engine->options;
    dp_shared_request r = {.op = op,
                           .id_given = q->id_given,
                           .refresh = o->on_same_url == DOPPEL_SAME_URL_REFRESH,
                           .on_duplicate = (int)o->on_duplicate,
                           .title_share = o->title_share,
                           .now = dp_over_now(engine),
                           .ttl = q->ttl ? q->ttl : o->ttl,
                           .trace = {.kind = DP_TRACE_DOCUMENT,
                                     .fingerprint = {q->fingerprint[0], q->fingerprint[1]},
                                     .content = q->content,
                                     .title = q->title_key},
                           .record = {.id = q->id,
                                      .url = q->url,
                                      .canonical = q->canonical,
                                      .title = q->title,
                                      .fields = q->fields,
                                      .origin = q->origin,
                                      .words = q->words,
                                      .text_length = q->text_length,
                                      .evidence = dp_evidence_none()}};
    if (q->has_digest)
        memcpy(r.trace.digest, q->digest, sizeof r.trace.digest);
    if (q->text_length)
        r.text = q->text;
    return r;
}

/* What is put back is taken as it was. */
static doppel_status restore(dp_shared_request *r, const doppel_stored *stored, doppel_error *error) {
    r->op = DP_SHARED_RESTORE;
    r->trace.added = stored->added;
    r->trace.expires = stored->expires;
    memcpy(r->counts.by, stored->duplicates_by, sizeof r->counts.by);
    r->counts.last = stored->last_duplicate;
    if (!stored->original_id.data)
        return DOPPEL_OK;
    dp_reason reason = dp_reason_of(stored->reason);
    if (reason == DP_UNIQUE)
        return dp_fail(error, DOPPEL_ERROR_INPUT, "a copy for a reason that is not known");
    r->trace.kind = DP_TRACE_COPY;
    r->record.reason = (uint8_t)reason;
    r->record.original_id = stored->original_id;
    r->record.evidence = stored->evidence;
    return DOPPEL_OK;
}

static doppel_status make_request(asking *a, size_t i) {
    const dp_query *q = a->many->queries[i];
    doppel_error why = {0};
    doppel_status status = DOPPEL_OK;
    dp_shared_request *r = &a->requests[a->count];
    *r = request_of(a->engine, a->many->op, q);
    if (r->op == DP_SHARED_ADD && !q->id.length)
        status = dp_fail(&why, DOPPEL_ERROR_INPUT, DP_NO_NAME);
    else if (r->op == DP_SHARED_ADD && q->restore)
        status = restore(r, q->restore, &why);
    if (status != DOPPEL_OK)
        a->many->done(i, status, &why, a->many->user);
    else
        a->places[a->count++] = i;
    return status;
}

/* ---- answers ---- */

static doppel_status refused(const dp_shared_answer *answer, const dp_query *q, doppel_error *why) {
    if (answer->status == DOPPEL_ERROR_INPUT && q->restore)
        return dp_fail(why, answer->status, "a copy whose original is not there");
    return dp_fail(why, answer->status, "%s", doppel_status_name(answer->status));
}

static doppel_status take_answer(asking *a, size_t i, const dp_shared_answer *answer, doppel_error *why) {
    const dp_query *q = a->many->queries[i];
    dp_finding finding = {
        .reason = answer->reason, .candidates = answer->candidates, .best.evidence = answer->evidence};
    doppel_verdict *verdict = &a->many->verdicts[i];
    if (answer->status != DOPPEL_OK)
        return refused(answer, q, why);
    const doppel_slice ids[2] = {answer->id, answer->record.id};
    if (dp_verdict_set(verdict, &a->engine->rules, finding.reason, &finding.best.evidence, ids) != DOPPEL_OK)
        return dp_no_memory(why);
    verdict->known = answer->known;
    verdict->replaced = answer->replaced;
    dp_engine_note(a->engine, &finding);
    return DOPPEL_OK;
}

static void take_answers(asking *a, const dp_shared_answers *answers) {
    for (size_t k = 0; k < a->count; k++) {
        doppel_error why = {0};
        doppel_status status = take_answer(a, a->places[k], &answers->answer[k], &why);
        a->many->done(a->places[k], status, &why, a->many->user);
    }
}

/* ---- all together ---- */

static void count_calls(asking *a, double began) {
    dp_engine_counters *c = &a->engine->counters;
    bool check = a->many->op == DP_SHARED_CHECK;
    double took = (dp_engine_clock() - began) * 1e6;
    if (!check) {
        atomic_fetch_add(&c->adds, a->count);
        atomic_fetch_add(&c->commits, 1);
        dp_tally_add(&c->commit_time, (uint64_t)took);
    } else if (!a->many->alone) {
        atomic_fetch_add(&c->checks, a->count);
    }
    for (size_t k = 0; k < a->count && !a->many->alone; k++)
        dp_tally_add(check ? &c->check_time : &c->add_time, (uint64_t)(took / (double)a->count));
}

/* All that were asked about failed; places NULL: all that were to be. */
static void fail_all(const dp_over_many *many, const size_t *places, size_t count, const doppel_error *why) {
    for (size_t k = 0; k < count; k++) {
        size_t i = places ? places[k] : k;
        if (many->queries[i])
            many->done(i, why->code, why, many->user);
    }
}

static doppel_status ask_all(asking *a, doppel_error *error) {
    dp_shared_answers answers = {0};
    doppel_error why = {0};
    double began = dp_engine_clock();
    for (size_t i = 0; i < a->many->count; i++)
        if (a->many->queries[i])
            make_request(a, i);
    if (!a->count)
        return DOPPEL_OK;
    doppel_status status = dp_shared_ask(a->engine->shared, a->requests, a->count, &answers, &why);
    if (status == DOPPEL_OK)
        take_answers(a, &answers);
    else
        fail_all(a->many, a->places, a->count, &why);
    dp_shared_answers_free(&answers);
    count_calls(a, began);
    if (status != DOPPEL_OK && a->many->op != DP_SHARED_CHECK)
        atomic_fetch_add(&a->engine->counters.failed_commits, 1);
    if (status != DOPPEL_OK && error)
        *error = why;
    return status;
}

doppel_status dp_over_decide_many(doppel_engine *engine, const dp_over_many *many, doppel_error *error) {
    asking a = {.engine = engine, .many = many};
    a.requests = calloc(many->count + 1, sizeof *a.requests);
    a.places = calloc(many->count + 1, sizeof *a.places);
    doppel_status status;
    if (a.requests && a.places) {
        status = ask_all(&a, error);
    } else {
        doppel_error why = {0};
        status = dp_no_memory(&why);
        fail_all(many, NULL, many->count, &why);
        dp_no_memory(error);
    }
    free(a.requests);
    free(a.places);
    return status;
}

/* What became of the only one. */
typedef struct only {
    doppel_status status;
    doppel_error why;
} only;

static void only_done(size_t i, doppel_status status, const doppel_error *why, void *user) {
    only *o = user;
    (void)i;
    o->status = status;
    o->why = *why;
}

doppel_status dp_over_decide(doppel_engine *engine, dp_shared_op op, dp_query *query, doppel_verdict *verdict,
                             doppel_error *error) {
    only o = {.status = DOPPEL_OK};
    const dp_over_many many = {
        .op = op, .queries = &query, .count = 1, .alone = true, .verdicts = verdict, .done = only_done, .user = &o};
    doppel_status status = dp_over_decide_many(engine, &many, error);
    if (status != DOPPEL_OK || o.status == DOPPEL_OK)
        return status;
    if (error)
        *error = o.why;
    return o.status;
}

doppel_status dp_over_remove(doppel_engine *engine, doppel_slice id, bool *removed, doppel_error *error) {
    const dp_shared_request request = {.op = DP_SHARED_REMOVE, .now = dp_over_now(engine), .record.id = id};
    dp_shared_answers answers = {0};
    doppel_status status = dp_shared_ask(engine->shared, &request, 1, &answers, error);
    if (status == DOPPEL_OK && answers.answer[0].status != DOPPEL_OK)
        status = dp_fail(error, answers.answer[0].status, "%s", doppel_status_name(answers.answer[0].status));
    bool found = status == DOPPEL_OK && answers.answer[0].found;
    dp_shared_answers_free(&answers);
    if (found)
        atomic_fetch_add(&engine->counters.removes, 1);
    if (removed)
        *removed = found;
    return status;
}
