/* add.c - what becomes of a document that is added: what was there before it (itself, who has its id, who has its URL,
 * its original), and what follows from the verdict (a new document, a copy that is linked or stored, a count at its
 * original, a new version in the place of an old one); and queries that are added, one or many, by the calls of known.h
 * in their order. */
#include "engine/internal.h"

/* A document that is being decided about. */
typedef struct decision {
    doppel_engine *engine;
    dp_worker *worker;
    const dp_query *query;
    dp_look *look; /* the worker's */
    dp_original finding;
    dp_trace gone[2]; /* that this one takes the place of */
    size_t gone_count;
    uint64_t holder; /* has the id and the words, but comes from elsewhere; 0: nobody does */
    doppel_error *error;
} decision;

/* ---- what an engine remembered, put back as it was: nothing is decided anew ---- */

/* In place of dp_find: what it was found to be. */
static doppel_status restore_find(dp_worker *worker, const dp_query *query, dp_original *finding, doppel_error *error) {
    const doppel_stored *stored = query->restore;
    uint64_t number;
    dp_trace trace;
    bool found = false;
    *finding = (dp_original){.reason = DP_UNIQUE, .best.evidence = dp_evidence_none()};
    if (!stored->original_id.data)
        return DOPPEL_OK;
    doppel_status status = dp_find_id(worker, stored->original_id, &number, error);
    if (status == DOPPEL_OK && number)
        status = dp_look_trace(worker->look, number, &trace, &found, error);
    if (status != DOPPEL_OK)
        return status;
    if (!found || trace.kind != DP_TRACE_DOCUMENT)
        return dp_fail(error, DOPPEL_ERROR_INPUT, "a copy whose original is not there");
    *finding = (dp_original){.reason = dp_reason_of(stored->reason),
                             .best = {.number = number, .evidence = stored->evidence},
                             .original_id = stored->original_id};
    if (finding->reason == DP_UNIQUE)
        return dp_fail(error, DOPPEL_ERROR_INPUT, "a copy for a reason that is not known");
    return DOPPEL_OK;
}

/* Queues how often it was met again; `trace` is what it leaves now. */
static doppel_status restore_counts(dp_look *look, const dp_query *query, const dp_trace *trace, doppel_error *error) {
    const doppel_stored *stored = query->restore;
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < DP_REASONS - 1 && status == DOPPEL_OK; i++) {
        dp_pending p = {.change = {.count = trace->number,
                                   .count_at = stored->last_duplicate,
                                   .count_reason = (uint8_t)(i + 1),
                                   .count_times = stored->duplicates_by[i]}};
        if (stored->duplicates_by[i])
            status = look->kind->queue(look, &p, error);
    }
    uint64_t titles = stored->duplicates_by[DP_SAME_TITLE - 1];
    if (status == DOPPEL_OK && titles && trace->title.length)
        status = look->kind->title_seen(look, trace->title, titles, error);
    return status;
}

/* ---- what was there before ---- */

/* Whether what left this trace had the same words (or, where digests are not known, the same fingerprint and URL). */
static bool same_words(const decision *a, const dp_trace *trace) {
    const dp_query *query = a->query;
    static const uint8_t none[32];
    bool has = memcmp(trace->digest, none, sizeof none) != 0;
    if (query->has_digest || has)
        return query->has_digest && has && !memcmp(query->digest, trace->digest, sizeof trace->digest);
    uint64_t url_hash = query->canonical.length ? a->look->kind->hash(a->look, query->canonical) : 0;
    return url_hash == trace->url_hash && query->fingerprint[0] == trace->fingerprint[0] &&
           query->fingerprint[1] == trace->fingerprint[1];
}

/* Whether what comes from there is the query's document itself. What is put back is known by its id alone. */
static bool is_from(const dp_query *query, doppel_slice origin) {
    return query->origin.data && !query->restore && origin.data && origin.length == query->origin.length &&
           !memcmp(origin.data, query->origin.data, origin.length);
}

/* Who has the query's id, and how it left its trace and record. */
static doppel_status read_holder(decision *a, uint64_t *number, dp_trace *trace, dp_record *record) {
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
static doppel_status look_up_id(decision *a, uint64_t *again) {
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
        status = a->look->kind->alive(a->look, trace->of, &there, a->error);
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
static doppel_status refresh(decision *a) {
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

static bool may_refresh(const decision *a) {
    return a->finding.reason == DP_SAME_URL && a->engine->options.on_same_url == DOPPEL_SAME_URL_REFRESH;
}

doppel_status dp_find_refreshed(doppel_engine *engine, dp_worker *worker, const dp_query *query, dp_original *finding,
                                doppel_error *error) {
    decision a = {.engine = engine, .worker = worker, .look = worker->look, .query = query, .error = error};
    doppel_status status = dp_find(engine, worker, query, &a.finding, error);
    if (status == DOPPEL_OK && may_refresh(&a))
        status = refresh(&a);
    *finding = a.finding;
    return status;
}

/* The number of what was found when that is the document itself; else 0. */
static uint64_t itself(const decision *a) {
    return a->finding.reason != DP_UNIQUE && is_from(a->query, a->finding.origin) ? a->finding.best.number : 0;
}

/* What it is a copy of. *again: of itself. */
static doppel_status look_up_rest(decision *a, uint64_t *again) {
    if (a->query->restore)
        return restore_find(a->worker, a->query, &a->finding, a->error);
    doppel_status status = dp_find(a->engine, a->worker, a->query, &a->finding, a->error);
    if (status == DOPPEL_OK && !itself(a) && may_refresh(a))
        status = refresh(a);
    *again = status == DOPPEL_OK ? itself(a) : 0;
    return status;
}

/* Nothing but its id is like who has that: it takes the place. */
static doppel_status replace_holder(decision *a) {
    bool found;
    dp_trace *trace = &a->gone[a->gone_count];
    doppel_status status = dp_look_trace(a->look, a->holder, trace, &found, a->error);
    a->gone_count += status == DOPPEL_OK && found;
    return status;
}

/* Looks up who has the id and what it is a copy of. *again: it is the document of this number itself; 0: it is new, or
 * takes the place of `gone`. */
static doppel_status look_up(decision *a, uint64_t *again) {
    doppel_status status = look_up_id(a, again);
    if (status != DOPPEL_OK || *again)
        return status;
    status = look_up_rest(a, again);
    if (status == DOPPEL_OK && !*again && a->holder && a->finding.reason == DP_UNIQUE)
        status = replace_holder(a);
    return status;
}

/* ---- what is stored ---- */

/* Whether all of it is stored: of a copy that is put back, all that there is. */
static bool is_whole(const decision *a) {
    return a->finding.reason == DP_UNIQUE || a->query->restore ||
           a->engine->options.on_duplicate == DOPPEL_DUPLICATE_STORE;
}

static bool encode(decision *a, dp_pending *p, const dp_trace *trace, const dp_record *record) {
    const dp_query *q = a->query;
    dp_buffer *bytes = a->worker->bytes;
    for (int i = 0; i < DP_PARTS; i++)
        bytes[i].size = 0;
    if (!dp_trace_encode(trace, &bytes[DP_PART_TRACE]) || !dp_record_encode(record, &bytes[DP_PART_RECORD]))
        return false;
    bool whole = is_whole(a);
    bool sampled = q->sample.data && whole && trace->content;
    if (sampled && !dp_buffer_add(&bytes[DP_PART_SET], q->sample.data, q->sample.length))
        return false;
    for (size_t i = 0; i < q->set_count && whole && trace->content && !sampled; i++) {
        uint8_t number[8];
        for (int b = 0; b < 8; b++)
            number[b] = (uint8_t)(q->set[i] >> (8 * b));
        if (!dp_buffer_add(&bytes[DP_PART_SET], number, sizeof number))
            return false;
    }
    if (whole && q->text_length && !dp_buffer_add(&bytes[DP_PART_TEXT], q->text.data, q->text.length))
        return false;
    for (int i = 0; i < DP_PARTS; i++)
        if (bytes[i].size)
            p->change.part[i] = (doppel_slice){bytes[i].data, bytes[i].size};
    return true;
}

/* Whether it is a copy by its URL or title whose words are not its original's. */
static bool has_own_words(const decision *a) {
    return (a->finding.reason == DP_SAME_URL || a->finding.reason == DP_SAME_TITLE) && a->query->has_digest &&
           !a->finding.best.evidence.same_digest;
}

static dp_trace make_trace(const decision *a, uint64_t number) {
    const dp_query *q = a->query;
    const doppel_engine_options *options = &a->engine->options;
    uint64_t ttl = q->ttl ? q->ttl : options->ttl, from = a->look->latest;
    dp_trace trace = {.number = number,
                      .kind = DP_TRACE_DOCUMENT,
                      .added = a->look->now,
                      .expires = ttl >= UINT64_MAX - from ? 0 : from + ttl,
                      .id_hash = a->look->kind->hash(a->look, q->id),
                      .url_hash = q->canonical.length ? a->look->kind->hash(a->look, q->canonical) : 0,
                      .fingerprint = {q->fingerprint[0], q->fingerprint[1]},
                      .content = q->content,
                      .keys = q->keys,
                      .key_count = q->key_count,
                      .title = q->title_key};
    if (q->restore) {
        trace.added = q->restore->added;
        trace.expires = q->restore->expires;
    }
    if (q->has_digest)
        memcpy(trace.digest, q->digest, sizeof trace.digest);
    if (a->finding.reason != DP_UNIQUE) {
        /* Whoever has the URL already is found by it; a second one would only make its list longer. */
        if (a->finding.reason == DP_SAME_URL)
            trace.url_hash = 0;
        trace.kind = DP_TRACE_COPY;
        trace.of = a->finding.best.number;
        trace.own_words = has_own_words(a);
        trace.key_count = 0;
        trace.title = (doppel_slice){NULL, 0};
    }
    return trace;
}

static doppel_status queue_document(decision *a, dp_pending *p) {
    const dp_query *q = a->query;
    bool copy = a->finding.reason != DP_UNIQUE;
    uint64_t number;
    DP_TRY(a->look->kind->number(a->look, &number, a->error));
    p->trace = make_trace(a, number);
    dp_record record = {.id = q->id,
                        .url = q->url,
                        .canonical = q->canonical,
                        .title = q->title,
                        .fields = q->fields,
                        .original_id = a->finding.original_id,
                        .origin = q->origin,
                        .words = q->words,
                        .reason = (uint8_t)a->finding.reason,
                        .evidence = a->finding.best.evidence};
    bool whole = is_whole(a);
    record.set_count = whole && q->content ? q->set_count : 0;
    record.text_length = whole ? q->text_length : 0;
    record.sampled = record.set_count && q->sample.data;
    if (!encode(a, p, &p->trace, &record))
        return dp_no_memory(a->error);
    p->added = true;
    p->change.number = p->trace.number;
    p->change.link = copy ? p->trace.of : 0;
    return a->look->kind->queue(a->look, p, a->error);
}

/* Of a copy that is not kept: its words, if nobody has them yet, so that they are known when they come again. */
static doppel_status add_text(decision *a, dp_pending *p) {
    uint64_t number;
    dp_buffer *bytes = &a->worker->bytes[DP_PART_TRACE];
    if (!has_own_words(a))
        return DOPPEL_OK;
    doppel_status status = dp_find_words(a->worker, a->query, &number, a->error);
    if (status != DOPPEL_OK || number)
        return status;
    if ((status = a->look->kind->number(a->look, &number, a->error)) != DOPPEL_OK)
        return status;
    dp_trace copy = make_trace(a, number);
    p->trace = (dp_trace){
        .number = copy.number, .kind = DP_TRACE_TEXT, .of = copy.of, .added = copy.added, .expires = copy.expires};
    memcpy(p->trace.digest, copy.digest, sizeof copy.digest);
    bytes->size = 0;
    if (!dp_trace_encode(&p->trace, bytes))
        return dp_no_memory(a->error);
    p->change.part[DP_PART_TRACE] = (doppel_slice){bytes->data, bytes->size};
    p->change.number = copy.number;
    p->added = true;
    return DOPPEL_OK;
}

doppel_status dp_engine_forget(dp_look *look, const dp_trace *trace, doppel_error *error) {
    dp_buffer bytes = {0};
    dp_pending p = {.removed = true, .trace = *trace, .change = {.remove = trace->number}};
    dp_trace removal = *trace;
    removal.kind = trace->kind == DP_TRACE_COPY ? DP_TRACE_COPY_REMOVAL : DP_TRACE_REMOVAL;
    removal.of = trace->number;
    doppel_status status = look->kind->number(look, &removal.number, error);
    if (status == DOPPEL_OK && !dp_trace_encode(&removal, &bytes))
        status = dp_no_memory(error);
    p.change.number = removal.number;
    p.change.part[DP_PART_TRACE] = (doppel_slice){bytes.data, bytes.size};
    DP_THEN(status, look->kind->queue(look, &p, error));
    dp_buffer_free(&bytes);
    return status;
}

/* A title that many have says nothing in the end: what came with it is counted. */
static doppel_status count_title(decision *a) {
    dp_trace trace;
    bool found;
    doppel_status status = dp_look_trace(a->look, a->finding.best.number, &trace, &found, a->error);
    if (status == DOPPEL_OK && found)
        status = a->look->kind->title_seen(a->look, trace.title, 1, a->error);
    return status;
}

/* Whether the document itself is to be remembered. A copy without a name of its own has nothing to add. */
static doppel_status is_kept(decision *a, bool *kept) {
    uint64_t number = 0;
    doppel_status status = DOPPEL_OK;
    bool copy = a->finding.reason != DP_UNIQUE;
    *kept = !copy || a->query->restore || a->engine->options.on_duplicate != DOPPEL_DUPLICATE_SKIP;
    if (*kept && copy && !a->query->id_given)
        status = dp_find_id(a->worker, a->query->id, &number, a->error);
    *kept = *kept && !number && !(copy && a->holder);
    return status;
}

static doppel_status queue_all(decision *a) {
    dp_pending p = {.added = false};
    bool kept;
    size_t mark = a->look->kind->mark(a->look);
    doppel_status status = is_kept(a, &kept);
    if (a->finding.reason != DP_UNIQUE && !a->query->restore) {
        p.change.count = a->finding.best.number;
        p.change.count_at = a->look->now;
        p.change.count_reason = (uint8_t)a->finding.reason;
    }
    if (status == DOPPEL_OK && kept)
        status = queue_document(a, &p);
    else if (status == DOPPEL_OK && p.change.count && (status = add_text(a, &p)) == DOPPEL_OK)
        status = a->look->kind->queue(a->look, &p, a->error);
    for (size_t i = 0; i < a->gone_count && status == DOPPEL_OK; i++)
        status = dp_engine_forget(a->look, &a->gone[i], a->error);
    if (status == DOPPEL_OK && a->query->restore)
        status = restore_counts(a->look, a->query, &p.trace, a->error);
    else if (status == DOPPEL_OK && a->finding.reason == DP_SAME_TITLE)
        status = count_title(a);
    if (status != DOPPEL_OK)
        a->look->kind->back(a->look, mark);
    return status;
}

/* ---- one query ---- */

/* The verdict that a number had when it came. */
static doppel_status give_again(decision *a, uint64_t number, doppel_verdict *verdict) {
    dp_record record;
    bool found;
    doppel_status status = dp_look_record(a->look, number, &record, &found, a->error);
    if (status == DOPPEL_OK && !found)
        status = dp_fail(a->error, DOPPEL_ERROR_STORE, "document %llu cannot be read", (unsigned long long)number);
    if (status != DOPPEL_OK)
        return status;
    const doppel_slice ids[2] = {record.id, record.original_id};
    a->finding.reason = (dp_reason)record.reason;
    doppel_evidence evidence = record.reason ? record.evidence : dp_evidence_none();
    status = dp_verdict_set(verdict, &a->engine->rules, a->finding.reason, &evidence, ids);
    verdict->known = status == DOPPEL_OK;
    return status == DOPPEL_OK ? status : dp_no_memory(a->error);
}

static doppel_status decide(decision *a, doppel_verdict *verdict) {
    uint64_t again;
    doppel_status status = look_up(a, &again);
    if (status != DOPPEL_OK || again)
        return status == DOPPEL_OK ? give_again(a, again, verdict) : status;
    const doppel_slice ids[2] = {a->query->id, a->finding.original_id};
    status = dp_verdict_set(verdict, &a->engine->rules, a->finding.reason, &a->finding.best.evidence, ids);
    if (status != DOPPEL_OK)
        return dp_no_memory(a->error);
    verdict->replaced = a->gone_count > 0;
    return queue_all(a);
}

/* Looks up, decides and queues what follows. On an error nothing has changed. */
static doppel_status decide_query(doppel_engine *engine, dp_worker *worker, const dp_query *query, dp_add *add,
                                  doppel_error *error) {
    decision a = {.engine = engine, .worker = worker, .look = worker->look, .query = query, .error = error};
    a.look->except[0] = a.look->except[1] = 0;
    doppel_status status = decide(&a, add->verdict);
    add->counted = (dp_outcome){a.finding.reason, a.finding.candidates, a.finding.best.evidence.distance};
    return status;
}

/* ---- queries, one or many ---- */

/* Decisions that may have to be made again. */
typedef struct attempt {
    size_t count; /* that were decided */
    size_t first; /* the first that failed, and why; SIZE_MAX: none did */
    doppel_error why;
} attempt;

/* Decides about those that are ready, in order; stops at the first that fails when adds->stop says so. */
static attempt decide_ready(doppel_engine *engine, dp_worker *worker, const dp_adds *adds, size_t ready) {
    attempt made = {.first = SIZE_MAX};
    while (made.count < ready && !(adds->stop && made.first != SIZE_MAX)) {
        doppel_error why = {0};
        size_t i = adds->done + made.count++;
        adds->add[i].status = decide_query(engine, worker, adds->query[i], &adds->add[i], &why);
        if (adds->add[i].status == DOPPEL_OK || made.first != SIZE_MAX)
            continue;
        made.first = i;
        made.why = why;
    }
    return made;
}

static void fail_from(dp_adds *adds, size_t from, size_t to, doppel_status status, const doppel_error *why) {
    for (size_t i = from; i < to; i++) {
        if (adds->add[i].status != DOPPEL_OK)
            continue;
        adds->add[i].status = status;
        if (i < adds->first_bad) {
            adds->first_bad = i;
            adds->why = *why;
        }
    }
}

/* Decides about those that are ready until it stands, and counts them. On an error nothing of it was done as far as is
 * known. */
static doppel_status add_ready(doppel_engine *engine, dp_worker *worker, dp_adds *adds, size_t ready,
                               doppel_error *why) {
    doppel_status status;
    attempt made;
    bool stands;
    do {
        made = decide_ready(engine, worker, adds, ready);
        status = worker->look->kind->commit(worker->look, &stands, why);
    } while (status == DOPPEL_OK && !stands);
    size_t end = adds->done + made.count;
    if (made.first < adds->first_bad) {
        adds->first_bad = made.first;
        adds->why = made.why;
    }
    if (status != DOPPEL_OK)
        fail_from(adds, adds->done, end, status, why);
    for (size_t i = adds->done; i < end; i++)
        if (adds->add[i].status == DOPPEL_OK)
            dp_engine_note(engine, &adds->add[i].counted);
    atomic_fetch_add(&engine->counters.adds, made.count);
    adds->done = end;
    return status;
}

doppel_status dp_engine_add_queries(doppel_engine *engine, dp_worker *worker, dp_adds *adds, doppel_error *error) {
    adds->done = 0;
    adds->first_bad = SIZE_MAX;
    while (adds->done < adds->count && !(adds->stop && adds->first_bad != SIZE_MAX)) {
        doppel_error why = {0};
        size_t ready;
        doppel_status status =
            worker->look->kind->fetch(worker->look, adds->query + adds->done, adds->count - adds->done, &ready, &why);
        DP_THEN(status, add_ready(engine, worker, adds, ready, &why));
        if (status != DOPPEL_OK) {
            fail_from(adds, adds->done, adds->count, status, &why);
            if (error)
                *error = why;
            return status;
        }
    }
    return DOPPEL_OK;
}
