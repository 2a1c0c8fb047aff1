/* over_similar.c - the originals of a shared store that are most like an item: the store finds fingerprints within any
 * distance, the nearest first. */
#include "engine/over.h"

typedef struct search {
    doppel_engine *engine;
    dp_worker *worker;
    dp_query query;
    dp_similar_asked asked;
    uint64_t except; /* the item's own number; 0: it has none */
    doppel_stored_list *list;
    doppel_error *error;
} search;

/* ---- who is asked about ---- */

static void take_document(search *s, const dp_shared_document *document) {
    static const uint8_t none[32];
    const dp_trace *trace = &document->trace;
    s->query = (dp_query){.content = trace->content};
    memcpy(s->query.fingerprint, trace->fingerprint, sizeof trace->fingerprint);
    memcpy(s->query.digest, trace->digest, sizeof trace->digest);
    s->query.has_digest = memcmp(trace->digest, none, sizeof none) != 0;
    s->except = trace->number;
}

static doppel_status ask(search *s, const doppel_item *item) {
    const doppel_document *d = &item->document;
    const doppel_slice names[2] = {{d->id, d->id_length}, {d->url, d->url_length}};
    doppel_status status = DOPPEL_OK;
    if (!dp_similar_by_name(item))
        return dp_engine_ask(s->engine, s->worker, item, &s->query, s->error);
    for (int i = 0; i < 2 && !s->except && status == DOPPEL_OK; i++) {
        dp_shared_documents found = {0};
        if (!names[i].length)
            continue;
        status = dp_over_resolve(s->engine, s->worker, names[i], &found, s->error);
        if (status == DOPPEL_OK && found.count)
            take_document(s, &found.document[0]);
        dp_shared_documents_free(&found);
    }
    return status == DOPPEL_OK && !s->except ? dp_similar_nobody(item, s->error) : status;
}

/* ---- who is near ---- */

static doppel_status list_found(search *s, const dp_shared_documents *found, double similarity) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < found->count && s->list->count < s->asked.limit && status == DOPPEL_OK; i++) {
        if (found->document[i].trace.number == s->except)
            continue;
        status = dp_over_list(&found->document[i], true, s->list, s->error);
        if (status != DOPPEL_OK)
            break;
        doppel_stored *to = &s->list->stored[s->list->count - 1];
        to->similarity = to->containment = similarity;
        to->distance = doppel_distance128(to->fingerprint, s->query.fingerprint);
    }
    return status;
}

static doppel_status find_near(search *s) {
    dp_shared_documents found = {0};
    size_t limit = s->asked.limit < UINT32_MAX ? (size_t)s->asked.limit + 1 : UINT32_MAX;
    if (s->asked.distance < 0)
        return DOPPEL_OK;
    doppel_status status = dp_shared_near(s->engine->shared, s->query.fingerprint, s->asked.distance, limit,
                                          dp_over_now(s->engine), &found, s->error);
    if (status == DOPPEL_OK)
        status = list_found(s, &found, dp_evidence_none().similarity);
    dp_shared_documents_free(&found);
    return status;
}

/* Texts too short to be near others are alike when their words are the same: whoever is found by them alone. */
static doppel_status find_same(search *s) {
    dp_shared_request request = {.op = DP_SHARED_CHECK, .now = dp_over_now(s->engine), .ttl = DOPPEL_NEVER};
    dp_shared_answers answers = {0};
    dp_shared_documents found = {0};
    memcpy(request.trace.digest, s->query.digest, sizeof request.trace.digest);
    doppel_status status = dp_shared_ask(s->engine->shared, &request, 1, &answers, s->error);
    if (status == DOPPEL_OK && answers.answer[0].status == DOPPEL_OK && answers.answer[0].reason != DP_UNIQUE)
        status =
            dp_shared_get_numbers(s->engine->shared, &answers.answer[0].trace.number, 1, request.now, &found, s->error);
    if (status == DOPPEL_OK)
        status = list_found(s, &found, 1);
    dp_shared_documents_free(&found);
    dp_shared_answers_free(&answers);
    return status;
}

doppel_status dp_over_similar(doppel_engine *engine, const doppel_item *item, const doppel_similar_options *options,
                              doppel_stored_list *list, doppel_error *error) {
    search s = {.engine = engine, .list = list, .error = error};
    dp_stored_list_clear(list);
    doppel_status status = dp_similar_ask(engine, options, &s.asked, error);
    if (status == DOPPEL_OK)
        status = dp_engine_enter(engine, &s.worker, error);
    if (status != DOPPEL_OK)
        return status;
    status = ask(&s, item);
    if (status == DOPPEL_OK && s.query.content)
        status = find_near(&s);
    else if (status == DOPPEL_OK && s.query.has_digest)
        status = find_same(&s);
    dp_engine_leave(engine, s.worker);
    return status;
}
