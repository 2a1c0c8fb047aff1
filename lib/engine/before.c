/* before.c - what was there before a document that is added: itself, who has its id, who has its URL, its original. */
#include "engine/adding.h"

/* Whether what left this trace had the same words (or, where digests are not known, the same fingerprint and URL). */
static bool same_words(const dp_adding *a, const dp_trace *trace) {
    const dp_query *query = a->query;
    static const uint8_t none[32];
    bool has = memcmp(trace->digest, none, sizeof none) != 0;
    if (query->has_digest || has)
        return query->has_digest && has && !memcmp(query->digest, trace->digest, sizeof trace->digest);
    uint64_t url_hash = query->canonical.length ? dp_look_hash(a->look, query->canonical) : 0;
    return url_hash == trace->url_hash && query->fingerprint[0] == trace->fingerprint[0] &&
           query->fingerprint[1] == trace->fingerprint[1];
}

/* Whether what comes from there is the query's document itself. What is put back is known by its id alone. */
static bool is_from(const dp_query *query, doppel_slice origin) {
    return query->origin.data && !query->restore && origin.data && origin.length == query->origin.length &&
           !memcmp(origin.data, query->origin.data, origin.length);
}

/* Who has the query's id, and how it left its trace and record. */
static doppel_status read_holder(dp_adding *a, uint64_t *number, dp_trace *trace, dp_record *record) {
    bool found;
    doppel_status status = dp_find_id(a->worker, a->query->id, number, a->error);
    if (status != DOPPEL_OK || !*number)
        return status;
    status = dp_look_trace(a->look, *number, trace, &found, a->error);
    if (status == DOPPEL_OK && found)
        status = dp_look_record(a->look, *number, record, &found, a->error);
    if (!found)
        *number = 0;
    return status;
}

/* Whether the id is there: from the same place, or with the same words when no place is said, *again is its number;
 * with other words, or when it is a copy of what is gone, it goes. An id that was derived says only the first. */
static doppel_status look_up_id(dp_adding *a, uint64_t *again) {
    const dp_query *q = a->query;
    dp_trace *trace = &a->gone[a->gone_count];
    dp_record record;
    uint64_t number;
    *again = 0;
    if (!q->id_given && !q->origin.data)
        return DOPPEL_OK;
    doppel_status status = read_holder(a, &number, trace, &record);
    if (status != DOPPEL_OK || !number)
        return status;
    bool there = true;
    if (trace->kind == DP_TRACE_COPY)
        status = dp_look_alive(a->look, trace->of, &there, a->error);
    if (status != DOPPEL_OK)
        return status;
    bool orphan = !there;
    if (!orphan && is_from(q, record.origin))
        *again = number;
    else if (!q->id_given)
        return DOPPEL_OK;
    else if (orphan || !same_words(a, trace))
        a->look->except[a->gone_count++] = number;
    else if (q->origin.data && !q->restore)
        a->holder = number;
    else
        *again = number;
    return DOPPEL_OK;
}

/* Other text at a URL that is there: what was there goes, and the search begins anew. */
static doppel_status refresh(dp_adding *a) {
    uint64_t number;
    bool found;
    doppel_status status = dp_find_url(a->worker, a->query->canonical, &number, a->error);
    if (status != DOPPEL_OK || !number || a->gone_count == 2)
        return status;
    dp_trace *trace = &a->gone[a->gone_count];
    status = dp_look_trace(a->look, number, trace, &found, a->error);
    if (status != DOPPEL_OK || !found || same_words(a, trace))
        return status;
    a->look->except[a->gone_count++] = number;
    return dp_find(a->engine, a->worker, a->query, &a->finding, a->error);
}

static bool may_refresh(const dp_adding *a) {
    return a->finding.reason == DP_SAME_URL && a->engine->options.on_same_url == DOPPEL_SAME_URL_REFRESH;
}

doppel_status dp_find_refreshed(doppel_engine *engine, dp_worker *worker, const dp_query *query, dp_finding *finding,
                                doppel_error *error) {
    dp_adding a = {.engine = engine, .worker = worker, .look = worker->look, .query = query, .error = error};
    doppel_status status = dp_find(engine, worker, query, &a.finding, error);
    if (status == DOPPEL_OK && may_refresh(&a))
        status = refresh(&a);
    *finding = a.finding;
    return status;
}

/* ---- all together ---- */

/* The number of what was found when that is the document itself; else 0. */
static uint64_t itself(const dp_adding *a) {
    return a->finding.reason != DP_UNIQUE && is_from(a->query, a->finding.origin) ? a->finding.best.number : 0;
}

/* What it is a copy of. *again: of itself. */
static doppel_status look_up_rest(dp_adding *a, uint64_t *again) {
    if (a->query->restore)
        return dp_restore_find(a->worker, a->query, &a->finding, a->error);
    doppel_status status = dp_find(a->engine, a->worker, a->query, &a->finding, a->error);
    if (status == DOPPEL_OK && !itself(a) && may_refresh(a))
        status = refresh(a);
    *again = status == DOPPEL_OK ? itself(a) : 0;
    return status;
}

/* Nothing but its id is like who has that: it takes the place. */
static doppel_status replace_holder(dp_adding *a) {
    bool found;
    dp_trace *trace = &a->gone[a->gone_count];
    doppel_status status = dp_look_trace(a->look, a->holder, trace, &found, a->error);
    a->gone_count += status == DOPPEL_OK && found;
    return status;
}

doppel_status dp_adding_look_up(dp_adding *a, uint64_t *again) {
    doppel_status status = look_up_id(a, again);
    if (status != DOPPEL_OK || *again)
        return status;
    status = look_up_rest(a, again);
    if (status == DOPPEL_OK && !*again && a->holder && a->finding.reason == DP_UNIQUE)
        status = replace_holder(a);
    return status;
}
