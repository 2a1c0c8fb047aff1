/* add.c - what follows from a verdict: a new document, a copy that is linked or stored, a count at its original, a new
 * version in the place of an old one; and queries that are added, one or many (known.h has the calls in their order).
 */
#include "engine/adding.h"

/* ---- what is stored ---- */

/* Whether all of it is stored: of a copy that is put back, all that there is. */
static bool is_whole(const dp_adding *a) {
    return a->finding.reason == DP_UNIQUE || a->query->restore ||
           a->engine->options.on_duplicate == DOPPEL_DUPLICATE_STORE;
}

static bool encode(dp_adding *a, dp_pending *p, const dp_trace *trace, const dp_record *record) {
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
static bool has_own_words(const dp_adding *a) {
    return (a->finding.reason == DP_SAME_URL || a->finding.reason == DP_SAME_TITLE) && a->query->has_digest &&
           !a->finding.best.evidence.same_digest;
}

static dp_trace make_trace(const dp_adding *a, uint64_t number) {
    const dp_query *q = a->query;
    const doppel_engine_options *options = &a->engine->options;
    uint64_t ttl = q->ttl ? q->ttl : options->ttl, from = a->look->latest;
    dp_trace trace = {.number = number,
                      .kind = DP_TRACE_DOCUMENT,
                      .added = a->look->now,
                      .expires = ttl >= UINT64_MAX - from ? 0 : from + ttl,
                      .id_hash = dp_look_hash(a->look, q->id),
                      .url_hash = q->canonical.length ? dp_look_hash(a->look, q->canonical) : 0,
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

static doppel_status queue_document(dp_adding *a, dp_pending *p) {
    const dp_query *q = a->query;
    bool copy = a->finding.reason != DP_UNIQUE;
    uint64_t number;
    doppel_status status = dp_look_number(a->look, &number, a->error);
    if (status != DOPPEL_OK)
        return status;
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
    return dp_look_queue(a->look, p, a->error);
}

/* Of a copy that is not kept: its words, if nobody has them yet, so that they are known when they come again. */
static doppel_status add_text(dp_adding *a, dp_pending *p) {
    uint64_t number;
    dp_buffer *bytes = &a->worker->bytes[DP_PART_TRACE];
    if (!has_own_words(a))
        return DOPPEL_OK;
    doppel_status status = dp_find_words(a->worker, a->query, &number, a->error);
    if (status != DOPPEL_OK || number)
        return status;
    if ((status = dp_look_number(a->look, &number, a->error)) != DOPPEL_OK)
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
    doppel_status status = dp_look_number(look, &removal.number, error);
    if (status == DOPPEL_OK && !dp_trace_encode(&removal, &bytes))
        status = dp_no_memory(error);
    p.change.number = removal.number;
    p.change.part[DP_PART_TRACE] = (doppel_slice){bytes.data, bytes.size};
    if (status == DOPPEL_OK)
        status = dp_look_queue(look, &p, error);
    dp_buffer_free(&bytes);
    return status;
}

/* A title that many have says nothing in the end: what came with it is counted. */
static doppel_status count_title(dp_adding *a) {
    dp_trace trace;
    bool found;
    doppel_status status = dp_look_trace(a->look, a->finding.best.number, &trace, &found, a->error);
    if (status == DOPPEL_OK && found)
        status = dp_look_title_seen(a->look, trace.title, 1, a->error);
    return status;
}

/* Whether the document itself is to be remembered. A copy without a name of its own has nothing to add. */
static doppel_status is_kept(dp_adding *a, bool *kept) {
    uint64_t number = 0;
    doppel_status status = DOPPEL_OK;
    bool copy = a->finding.reason != DP_UNIQUE;
    *kept = !copy || a->query->restore || a->engine->options.on_duplicate != DOPPEL_DUPLICATE_SKIP;
    if (*kept && copy && !a->query->id_given)
        status = dp_find_id(a->worker, a->query->id, &number, a->error);
    *kept = *kept && !number && !(copy && a->holder);
    return status;
}

static doppel_status queue_all(dp_adding *a) {
    dp_pending p = {.added = false};
    bool kept;
    size_t mark = dp_look_mark(a->look);
    doppel_status status = is_kept(a, &kept);
    if (a->finding.reason != DP_UNIQUE && !a->query->restore) {
        p.change.count = a->finding.best.number;
        p.change.count_at = a->look->now;
        p.change.count_reason = (uint8_t)a->finding.reason;
    }
    if (status == DOPPEL_OK && kept)
        status = queue_document(a, &p);
    else if (status == DOPPEL_OK && p.change.count && (status = add_text(a, &p)) == DOPPEL_OK)
        status = dp_look_queue(a->look, &p, a->error);
    for (size_t i = 0; i < a->gone_count && status == DOPPEL_OK; i++)
        status = dp_engine_forget(a->look, &a->gone[i], a->error);
    if (status == DOPPEL_OK && a->query->restore)
        status = dp_restore_counts(a->look, a->query, &p.trace, a->error);
    else if (status == DOPPEL_OK && a->finding.reason == DP_SAME_TITLE)
        status = count_title(a);
    if (status != DOPPEL_OK)
        dp_look_back(a->look, mark);
    return status;
}

/* ---- one query ---- */

/* The verdict that a number had when it came. */
static doppel_status give_again(dp_adding *a, uint64_t number, doppel_verdict *verdict) {
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

static doppel_status decide(dp_adding *a, doppel_verdict *verdict) {
    uint64_t again;
    doppel_status status = dp_adding_look_up(a, &again);
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
    dp_adding a = {.engine = engine, .worker = worker, .look = worker->look, .query = query, .error = error};
    a.look->except[0] = a.look->except[1] = 0;
    doppel_status status = decide(&a, add->verdict);
    add->counted = (dp_counted){a.finding.reason, a.finding.candidates, a.finding.best.evidence.distance};
    return status;
}

/* ---- queries, one or many ---- */

/* Decides about some, in order; *first is the first that failed, and *why. Stops there when `stop` says so; gives how
 * many were decided. */
static size_t decide_some(doppel_engine *engine, dp_worker *worker, const dp_adds *adds, size_t from, size_t count,
                          size_t *first, doppel_error *why) {
    *first = SIZE_MAX;
    for (size_t i = from; i < from + count; i++) {
        doppel_error one = {0};
        adds->add[i].status = decide_query(engine, worker, adds->query[i], &adds->add[i], &one);
        if (adds->add[i].status == DOPPEL_OK || *first != SIZE_MAX)
            continue;
        *first = i;
        *why = one;
        if (adds->stop)
            return i + 1 - from;
    }
    return count;
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

/* Decides about those that are ready until it stands, and counts them. */
static void add_ready(doppel_engine *engine, dp_worker *worker, dp_adds *adds, size_t ready) {
    doppel_error why = {0}, unkept = {0};
    size_t from = adds->done, count, first;
    doppel_status status;
    bool stands;
    do {
        count = decide_some(engine, worker, adds, from, ready, &first, &why);
        status = dp_look_commit(worker->look, &stands, &unkept);
    } while (status == DOPPEL_OK && !stands);
    if (first < adds->first_bad) {
        adds->first_bad = first;
        adds->why = why;
    }
    if (status != DOPPEL_OK)
        fail_from(adds, from, from + count, status, &unkept);
    for (size_t i = from; i < from + count; i++)
        if (adds->add[i].status == DOPPEL_OK)
            dp_engine_note(engine, &adds->add[i].counted);
    atomic_fetch_add(&engine->counters.adds, count);
    adds->done += count;
}

doppel_status dp_engine_add_queries(doppel_engine *engine, dp_worker *worker, dp_adds *adds, doppel_error *error) {
    adds->done = 0;
    adds->first_bad = SIZE_MAX;
    while (adds->done < adds->count && !(adds->stop && adds->first_bad != SIZE_MAX)) {
        doppel_error why = {0};
        size_t ready;
        doppel_status status =
            dp_look_fetch(worker->look, adds->query + adds->done, adds->count - adds->done, &ready, &why);
        if (status != DOPPEL_OK) {
            fail_from(adds, adds->done, adds->count, status, &why);
            if (error)
                *error = why;
            return status;
        }
        add_ready(engine, worker, adds, ready);
    }
    return DOPPEL_OK;
}
