/* add.c - adding a document: looks up what exists (the document itself, the holder of its id, the holder of its URL,
 * its original), and does what follows from the verdict (a new document, a copy that is linked or stored, a count at
 * its original, a new version that replaces an old one); and adds queries, one or many, by the calls of known.h in
 * their order. */
#include "engine/internal.h"

/* A document being decided. */
typedef struct decision {
    doppel_engine *engine; /* the worker's, and so is the look */
    dp_worker *worker;
    dp_look *look;
    const dp_query *query;
    dp_original found;
    dp_trace gone[2]; /* that this one replaces */
    size_t gone_count;
    uint64_t holder; /* what has the same id and stays if this is a duplicate; 0: nothing has */
    doppel_error *error;
} decision;

static decision begin_decision(dp_worker *worker, const dp_query *query, doppel_error *error) {
    return (decision){.engine = worker->engine, .worker = worker, .look = worker->look, .query = query, .error = error};
}

static bool same_bytes(doppel_slice a, doppel_slice b) {
    return a.length == b.length && (!a.length || !memcmp(a.data, b.data, a.length));
}

/* ---- documents of an export, restored unchanged: nothing is decided ---- */

/* Whether it is put back as it was. In a merge only copies are. */
static bool is_restored(const dp_query *query) {
    return query->restore && (!query->merge || query->restore->original_id.data);
}

/* Instead of dp_find: the original named by the export or, where that is a copy here, its original. */
static doppel_status restore_find(decision *d) {
    const dp_query *q = d->query;
    const doppel_stored *stored = q->restore;
    uint64_t number;
    dp_trace trace;
    dp_record record;
    bool found = false;
    d->found = (dp_original){.reason = DOPPEL_REASON_NONE, .best.evidence = dp_evidence_none()};
    if (!stored->original_id.data)
        return DOPPEL_OK;
    DP_TRY(dp_find_name(d->worker, DP_KEY_ID, stored->original_id, &number, d->error));
    if (number)
        DP_TRY(dp_read_document(d->look, number, &trace, &record, &found, d->error));
    if (found && trace.kind == DP_TRACE_COPY)
        DP_TRY(dp_read_document(d->look, number = trace.of, &trace, &record, &found, d->error));
    if (!found)
        return dp_fail(d->error, DOPPEL_ERROR_INPUT, "a copy whose original is not there");
    d->found = (dp_original){.reason = stored->reason,
                             .best = {.number = number, .evidence = stored->evidence},
                             .expires = trace.expires,
                             .has_url = q->canonical.length && same_bytes(q->canonical, record.canonical),
                             .original_id = record.id};
    if (d->found.reason == DOPPEL_REASON_NONE || (unsigned)d->found.reason >= DOPPEL_REASONS)
        return dp_fail(d->error, DOPPEL_ERROR_INPUT, "a copy for a reason that is not known");
    return DOPPEL_OK;
}

/* Queues its counts of duplicates at a number. In a merge its copies are counted as they come. */
static doppel_status restore_counts(decision *d, uint64_t number) {
    const doppel_stored *stored = d->query->restore;
    for (int i = DOPPEL_REASON_URL; i < DOPPEL_REASONS; i++) {
        uint64_t times = stored->duplicates_by[i], copies = d->query->merge ? stored->copies_by[i] : 0;
        const dp_pending p = {.change = {.count = number,
                                         .count_at = stored->last_duplicate,
                                         .count_reason = (uint8_t)i,
                                         .count_times = times - copies}};
        if (times > copies)
            DP_TRY(d->look->kind->queue(d->look, &p, d->error));
    }
    return DOPPEL_OK;
}

/* ---- what exists ---- */

/* Whether a document has the same words or, if neither has a digest, the same fingerprint, URL and title. */
static bool same_words(const dp_query *query, const dp_trace *trace, const dp_record *record) {
    bool has = dp_has_digest(trace->digest);
    if (query->has_digest || has)
        return query->has_digest && has && !memcmp(query->digest, trace->digest, sizeof trace->digest);
    return same_bytes(query->canonical, record->canonical) && same_bytes(query->title, record->title) &&
           query->fingerprint[0] == trace->fingerprint[0] && query->fingerprint[1] == trace->fingerprint[1];
}

/* Whether what has a derived id also has what that was derived from, and is so found as any other: its URL, or else its
 * words. */
static bool is_found_anyway(const dp_query *query, const dp_trace *trace, const dp_record *record) {
    return query->canonical.length ? same_bytes(query->canonical, record->canonical)
                                   : !memcmp(query->digest, trace->digest, sizeof trace->digest);
}

/* Whether a document with this origin is the query's document itself. A restored document is identified by its id
 * alone. */
static bool is_from(const dp_query *query, doppel_slice origin) {
    return query->origin.data && !is_restored(query) && origin.data && same_bytes(origin, query->origin);
}

/* Looks up the id. If its holder has the same origin, or, if the query names none, the same words, *again is its
 * number. If it has different words it is replaced. */
static doppel_status look_up_id(decision *d, uint64_t *again) {
    const dp_query *q = d->query;
    dp_trace *trace = &d->gone[d->gone_count];
    dp_record record;
    uint64_t number;
    bool found = false;
    *again = 0;
    DP_TRY(dp_find_name(d->worker, DP_KEY_ID, q->id, &number, d->error));
    if (number)
        DP_TRY(dp_read_document(d->look, number, trace, &record, &found, d->error));
    if (!found)
        return DOPPEL_OK;
    if (is_from(q, record.origin))
        *again = number;
    else if (!q->id_given && is_found_anyway(q, trace, &record))
        d->holder = number;
    else if (!same_words(q, trace, &record))
        d->look->except[d->gone_count++] = number;
    else if (q->origin.data && !is_restored(q))
        d->holder = number;
    else
        *again = number;
    return DOPPEL_OK;
}

/* Different text at a known URL: the old document is replaced, and the search begins again. */
static doppel_status refresh(decision *d) {
    uint64_t number;
    dp_record record;
    bool found;
    DP_TRY(dp_find_name(d->worker, DP_KEY_URL, d->query->canonical, &number, d->error));
    if (!number || d->gone_count == 2)
        return DOPPEL_OK;
    dp_trace *trace = &d->gone[d->gone_count];
    DP_TRY(dp_read_document(d->look, number, trace, &record, &found, d->error));
    if (!found || same_words(d->query, trace, &record))
        return DOPPEL_OK;
    d->look->except[d->gone_count++] = number;
    if (d->holder)
        DP_TRY(dp_find_name(d->worker, DP_KEY_ID, d->query->id, &d->holder, d->error));
    return dp_find(d->worker, d->query, &d->found, d->error);
}

static bool may_refresh(const decision *d) {
    return d->found.reason == DOPPEL_REASON_URL && d->engine->options.on_same_url == DOPPEL_SAME_URL_REFRESH;
}

doppel_status dp_find_refreshed(dp_worker *worker, const dp_query *query, dp_original *found, doppel_error *error) {
    decision d = begin_decision(worker, query, error);
    doppel_status status = dp_find(worker, query, &d.found, error);
    if (status == DOPPEL_OK && may_refresh(&d))
        status = refresh(&d);
    *found = d.found;
    return status;
}

/* The found number if it is the document itself; else 0. */
static uint64_t itself(const decision *d) {
    return d->found.reason != DOPPEL_REASON_NONE && is_from(d->query, d->found.origin) ? d->found.best.number : 0;
}

/* What it is a copy of. *again: of itself. */
static doppel_status look_up_rest(decision *d, uint64_t *again) {
    if (is_restored(d->query))
        return restore_find(d);
    DP_TRY(dp_find(d->worker, d->query, &d->found, d->error));
    if (!itself(d) && may_refresh(d))
        DP_TRY(refresh(d));
    *again = itself(d);
    return DOPPEL_OK;
}

/* Looks up the holder of the id and what it is a copy of. *again: it is the document of this number itself; 0: it is
 * new, or replaces `gone`. */
static doppel_status look_up(decision *d, uint64_t *again) {
    DP_TRY(look_up_id(d, again));
    if (!*again)
        DP_TRY(look_up_rest(d, again));
    if (*again || !d->holder || d->found.reason != DOPPEL_REASON_NONE)
        return DOPPEL_OK;
    /* Only the id is the same: it replaces its holder. */
    bool found;
    DP_TRY(dp_look_trace(d->look, d->holder, &d->gone[d->gone_count], &found, d->error));
    d->gone_count += found;
    return DOPPEL_OK;
}

/* ---- what is stored ---- */

/* Whether all parts are stored: of a copy that is restored, all that it has. */
static bool is_whole(const decision *d) {
    return d->found.reason == DOPPEL_REASON_NONE || is_restored(d->query) ||
           d->engine->options.on_duplicate == DOPPEL_DUPLICATE_STORE;
}

static bool encode_set(const dp_query *q, dp_buffer *to) {
    if (q->sample.data)
        return dp_buffer_add(to, q->sample.data, q->sample.length);
    size_t size = q->set_count * sizeof *q->set;
    if (!dp_reserve(&to->data, &to->capacity, to->size + size + 1, 1))
        return false;
    char *at = to->data + to->size;
    for (size_t i = 0; i < q->set_count; i++, at += 8) {
        uint8_t number[8];
        for (int b = 0; b < 8; b++)
            number[b] = (uint8_t)(q->set[i] >> (8 * b));
        memcpy(at, number, sizeof number);
    }
    to->size += size;
    return true;
}

static bool encode(decision *d, dp_pending *p, const dp_record *record) {
    const dp_query *q = d->query;
    dp_buffer *bytes = d->worker->bytes;
    for (int i = 0; i < DP_PARTS; i++)
        bytes[i].size = 0;
    if (!dp_trace_encode(&p->trace, &bytes[DP_PART_TRACE]) || !dp_record_encode(record, &bytes[DP_PART_RECORD]) ||
        (is_whole(d) && p->trace.content && !encode_set(q, &bytes[DP_PART_SET])) ||
        (record->text_length && !dp_buffer_add(&bytes[DP_PART_TEXT], q->text.data, q->text.length)))
        return false;
    for (int i = 0; i < DP_PARTS; i++)
        if (bytes[i].size)
            p->change.part[i] = (doppel_slice){bytes[i].data, bytes[i].size};
    return true;
}

/* Whether it is a copy by its URL or title whose words are not its original's. */
static bool has_own_words(const decision *d) {
    return (d->found.reason == DOPPEL_REASON_URL || d->found.reason == DOPPEL_REASON_TITLE) && d->query->has_digest &&
           !d->found.best.evidence.same_digest;
}

/* The earlier of two times of expiry; 0: never. */
static uint64_t earlier(uint64_t a, uint64_t b) {
    return !a || (b && b < a) ? b : a;
}

static dp_trace make_trace(const decision *d, uint64_t number) {
    const dp_query *q = d->query;
    uint64_t ttl = q->ttl ? q->ttl : d->engine->options.ttl, from = d->look->latest;
    dp_trace trace = {.number = number,
                      .kind = DP_TRACE_DOCUMENT,
                      .added = d->look->now,
                      .expires = ttl >= UINT64_MAX - from ? 0 : from + ttl,
                      .id_hash = d->look->kind->hash(d->look, q->id),
                      .url_hash = q->canonical.length ? d->look->kind->hash(d->look, q->canonical) : 0,
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
    if (d->found.reason == DOPPEL_REASON_NONE)
        return trace;
    /* Its original is found by that URL for as long as it is there; a copy would only make the list longer. */
    if (d->found.has_url)
        trace.url_hash = 0;
    trace.kind = DP_TRACE_COPY;
    trace.of = d->found.best.number;
    trace.expires = earlier(trace.expires, d->found.expires);
    trace.own_words = has_own_words(d);
    trace.key_count = 0;
    trace.title = (doppel_slice){NULL, 0};
    return trace;
}

static doppel_status queue_document(decision *d, dp_pending *p) {
    const dp_query *q = d->query;
    bool whole = is_whole(d);
    uint64_t number;
    DP_TRY(d->look->kind->number(d->look, &number, d->error));
    p->trace = make_trace(d, number);
    dp_record record = {.id = q->id,
                        .url = q->url,
                        .canonical = q->canonical,
                        .title = q->title,
                        .fields = q->fields,
                        .original_id = d->found.original_id,
                        .origin = q->origin,
                        .words = q->words,
                        .set_count = whole && q->content ? q->set_count : 0,
                        .text_length = whole ? q->text_length : 0,
                        .reason = (uint8_t)d->found.reason,
                        .evidence = d->found.best.evidence};
    record.sampled = record.set_count && q->sample.data;
    if (!encode(d, p, &record))
        return dp_no_memory(d->error);
    p->added = true;
    p->change.number = number;
    p->change.link = d->found.reason != DOPPEL_REASON_NONE ? p->trace.of : 0;
    return d->look->kind->queue(d->look, p, d->error);
}

/* For a copy that is not kept: stores its words, unless they are known, so that they are found when seen again. */
static doppel_status add_text(decision *d, dp_pending *p) {
    uint64_t number;
    dp_buffer *bytes = &d->worker->bytes[DP_PART_TRACE];
    if (!has_own_words(d))
        return DOPPEL_OK;
    DP_TRY(dp_find_words(d->worker, d->query, &number, d->error));
    if (number)
        return DOPPEL_OK;
    DP_TRY(d->look->kind->number(d->look, &number, d->error));
    dp_trace copy = make_trace(d, number);
    p->trace = (dp_trace){
        .number = copy.number, .kind = DP_TRACE_TEXT, .of = copy.of, .added = copy.added, .expires = copy.expires};
    memcpy(p->trace.digest, copy.digest, sizeof copy.digest);
    bytes->size = 0;
    if (!dp_trace_encode(&p->trace, bytes))
        return dp_no_memory(d->error);
    p->change.part[DP_PART_TRACE] = (doppel_slice){bytes->data, bytes->size};
    p->change.number = copy.number;
    p->added = true;
    return DOPPEL_OK;
}

doppel_status dp_queue_removal(dp_look *look, const dp_trace *trace, doppel_error *error) {
    const dp_pending p = {.removed = true, .trace = *trace, .change = {.remove = trace->number}};
    return look->kind->queue(look, &p, error);
}

/* Whether the document itself is stored. A copy whose id is there has nothing to add. */
static bool is_kept(const decision *d) {
    bool links = is_restored(d->query) || d->engine->options.on_duplicate != DOPPEL_DUPLICATE_SKIP;
    return d->found.reason == DOPPEL_REASON_NONE || (links && !d->holder);
}

static doppel_status queue_changes(decision *d) {
    dp_pending p = {.added = false};
    if (d->found.reason != DOPPEL_REASON_NONE && (!d->query->restore || d->query->merge)) {
        p.change.count = d->found.best.number;
        p.change.count_at = d->query->restore ? d->query->restore->added : d->look->now;
        p.change.count_reason = (uint8_t)d->found.reason;
    }
    if (is_kept(d)) {
        DP_TRY(queue_document(d, &p));
    } else if (p.change.count) {
        DP_TRY(add_text(d, &p));
        DP_TRY(d->look->kind->queue(d->look, &p, d->error));
    }
    for (size_t i = 0; i < d->gone_count; i++)
        DP_TRY(dp_queue_removal(d->look, &d->gone[i], d->error));
    if (!d->query->restore)
        return DOPPEL_OK;
    bool merged = d->found.reason != DOPPEL_REASON_NONE && !is_restored(d->query);
    return restore_counts(d, merged ? d->found.best.number : p.trace.number);
}

/* ---- one query ---- */

/* The verdict a number got when it was added. */
static doppel_status give_again(decision *d, uint64_t number, doppel_verdict *verdict) {
    dp_record record;
    bool found;
    DP_TRY(dp_look_record(d->look, number, &record, &found, d->error));
    if (!found)
        return dp_fail(d->error, DOPPEL_ERROR_STORE, "document %llu cannot be read", (unsigned long long)number);
    const doppel_slice ids[2] = {record.id, record.original_id};
    d->found.reason = (doppel_reason)record.reason;
    doppel_evidence evidence = record.reason ? record.evidence : dp_evidence_none();
    if (dp_verdict_set(verdict, &d->engine->rules, d->found.reason, &evidence, ids) != DOPPEL_OK)
        return dp_no_memory(d->error);
    verdict->known = true;
    return DOPPEL_OK;
}

static doppel_status decide(decision *d, doppel_verdict *verdict) {
    uint64_t again;
    DP_TRY(look_up(d, &again));
    if (again)
        return give_again(d, again, verdict);
    const doppel_slice ids[2] = {d->query->id, d->found.original_id};
    if (dp_verdict_set(verdict, &d->engine->rules, d->found.reason, &d->found.best.evidence, ids) != DOPPEL_OK)
        return dp_no_memory(d->error);
    verdict->replaced = d->gone_count > 0;
    verdict->id_known = verdict->is_duplicate && d->holder && !same_bytes(verdict->id, verdict->original_id);
    size_t mark = d->look->kind->mark(d->look);
    doppel_status status = queue_changes(d);
    if (status != DOPPEL_OK)
        d->look->kind->back(d->look, mark);
    return status;
}

/* Looks up, decides and queues what follows. On an error nothing has changed. */
static doppel_status decide_query(dp_worker *worker, const dp_query *query, dp_add *add, doppel_error *error) {
    decision d = begin_decision(worker, query, error);
    d.look->except[0] = d.look->except[1] = 0;
    doppel_status status = decide(&d, add->verdict);
    add->outcome = (dp_outcome){d.found.reason, d.found.candidates, d.found.best.evidence.distance};
    return status;
}

/* ---- queries, one or many ---- */

/* Decisions that may have to be made again. */
typedef struct attempt {
    size_t count; /* that were decided */
    size_t first; /* the first that failed, and why; SIZE_MAX: none did */
    doppel_error why;
} attempt;

/* Decides the ready ones in order; with adds->stop, up to the first that fails. */
static attempt decide_ready(dp_worker *worker, const dp_adds *adds, size_t ready) {
    attempt made = {.first = SIZE_MAX};
    while (made.count < ready && !(adds->stop && made.first != SIZE_MAX)) {
        doppel_error why = {0};
        size_t i = adds->done + made.count++;
        adds->add[i].status = decide_query(worker, adds->query[i], &adds->add[i], &why);
        if (adds->add[i].error)
            *adds->add[i].error = why;
        if (adds->add[i].status == DOPPEL_OK || made.first != SIZE_MAX)
            continue;
        made.first = i;
        made.why = why;
    }
    return made;
}

static void note_failure(dp_adds *adds, size_t i, const doppel_error *why) {
    if (i >= adds->first_bad)
        return;
    adds->first_bad = i;
    adds->why = *why;
}

static void fail_from(dp_adds *adds, size_t from, size_t to, doppel_status status, const doppel_error *why) {
    for (size_t i = from; i < to; i++) {
        if (adds->add[i].status != DOPPEL_OK)
            continue;
        adds->add[i].status = status;
        if (adds->add[i].error)
            *adds->add[i].error = *why;
        note_failure(adds, i, why);
    }
}

/* Decides the ready ones until the commit stands, and counts them. On an error nothing was done, as far as is known. */
static doppel_status add_ready(dp_worker *worker, dp_adds *adds, size_t ready, doppel_error *why) {
    doppel_engine *engine = worker->engine;
    doppel_status status;
    attempt made;
    bool stands;
    do {
        made = decide_ready(worker, adds, ready);
        status = worker->look->kind->commit(worker->look, &stands, why);
    } while (status == DOPPEL_OK && !stands);
    size_t end = adds->done + made.count;
    note_failure(adds, made.first, &made.why);
    if (status != DOPPEL_OK)
        fail_from(adds, adds->done, end, status, why);
    for (size_t i = adds->done; i < end; i++)
        if (adds->add[i].status == DOPPEL_OK)
            dp_engine_count(engine, &adds->add[i].outcome);
    atomic_fetch_add(&engine->counters.adds, made.count);
    adds->done = end;
    return status;
}

doppel_status dp_engine_add_queries(dp_worker *worker, dp_adds *adds, doppel_error *error) {
    adds->done = 0;
    adds->first_bad = SIZE_MAX;
    while (adds->done < adds->count && !(adds->stop && adds->first_bad != SIZE_MAX)) {
        doppel_error why = {0};
        size_t ready;
        doppel_status status =
            worker->look->kind->fetch(worker->look, adds->query + adds->done, adds->count - adds->done, &ready, &why);
        DP_THEN(status, add_ready(worker, adds, ready, &why));
        if (status != DOPPEL_OK) {
            fail_from(adds, adds->done, adds->count, status, &why);
            if (error)
                *error = why;
            return status;
        }
    }
    return DOPPEL_OK;
}
