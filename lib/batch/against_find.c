/* against_find.c - a document of a batch, asked for in index folders with the sketches that the batch has made.
 *
 * What counts is what `by` says, by the thresholds of the batch where the index can tell; one that goes by distance
 * keeps no features, and there nothing is verified but that the words are the same. */
#include "batch/against.h"
#include "verify/verify.h"

static void ask_content(const doppel_batch *batch, const doppel_engine *engine, const doppel_sketch *sketch,
                        dp_query *q) {
    static const uint8_t none[32];
    q->words = sketch->words;
    q->has_digest = memcmp(sketch->digest, none, sizeof none) != 0;
    memcpy(q->digest, sketch->digest, sizeof q->digest);
    memcpy(q->fingerprint, sketch->fingerprint, sizeof q->fingerprint);
    q->content =
        batch->options.method != DOPPEL_METHOD_EXACT && sketch->words && sketch->words >= batch->options.min_words;
    if (!q->content || !engine->rules.by_similarity)
        return;
    q->set = sketch->set;
    q->set_count = sketch->set_count;
    q->key_count = (size_t)engine->asking.bands;
}

/* A document as the engine is asked about it. Names that no index takes cannot be found in one. */
static doppel_status make_query(const doppel_batch *batch, const doppel_engine *engine, const dp_asked *asked,
                                uint32_t keys[DP_MOST_BANDS], dp_buffer *sample, dp_query *q) {
    *q = (dp_query){0};
    if (asked->url.length && asked->url.length <= DP_NAME_LIMIT)
        q->canonical = asked->url;
    if (dp_title_counts(asked->title))
        q->title_key = asked->title;
    if (asked->sketch)
        ask_content(batch, engine, asked->sketch, q);
    if (!q->key_count)
        return DOPPEL_OK;
    q->keys = keys;
    if (engine->asking.sample) {
        if (!dp_bottom_make(q->set, q->set_count, engine->asking.sample, sample))
            return DOPPEL_ERROR_MEMORY;
        q->sample = (doppel_slice){sample->data, sample->size};
    }
    return dp_bands_keys(q->set, q->set_count, engine->asking.bands, engine->asking.rows, keys);
}

/* Whether a verdict is one by the thresholds of the batch, too. Of an index by distance, the batch has none unless it
 * goes by distance itself. */
static bool counts(const doppel_batch *batch, const doppel_engine *engine, const doppel_verdict *verdict) {
    dp_reason reason = dp_reason_of(verdict->reason);
    dp_rules rules = dp_batch_rules(batch);
    const dp_candidate candidate = {
        .evidence = verdict->evidence, .content = reason == DP_SAME_CONTENT, .title = reason == DP_SAME_TITLE};
    rules.by_similarity = engine->rules.by_similarity;
    if (batch->options.method != DOPPEL_METHOD_SIMHASH)
        rules.distance = engine->rules.distance;
    return dp_decide(&rules, &candidate) != DP_UNIQUE;
}

static doppel_status answer(doppel_engine *engine, const dp_query *query, doppel_verdict *verdict,
                            doppel_error *error) {
    dp_worker *worker;
    doppel_status status = dp_worker_take(engine, &worker, error);
    if (status != DOPPEL_OK)
        return status;
    status = dp_engine_answer(engine, worker, query, verdict, error);
    dp_worker_give(engine, worker);
    return status;
}

static doppel_status ask_with(const doppel_batch *batch, doppel_engine *engine, const dp_asked *asked,
                              dp_buffer *sample, doppel_verdict *verdict, doppel_error *error) {
    uint32_t keys[DP_MOST_BANDS];
    dp_query query;
    if (make_query(batch, engine, asked, keys, sample, &query) != DOPPEL_OK)
        return dp_no_memory(error);
    doppel_status status = answer(engine, &query, verdict, error);
    if (status != DOPPEL_OK || !verdict->is_duplicate || counts(batch, engine, verdict))
        return status;
    /* What is not near enough may still have the title. Without keys nothing is near: the set is there for the veto. */
    dp_query title = {.title_key = query.title_key};
    if (engine->rules.by_similarity) {
        title.content = query.content;
        title.set = query.set;
        title.set_count = query.set_count;
        title.sample = query.sample;
    }
    status = answer(engine, &title, verdict, error);
    if (status == DOPPEL_OK && verdict->is_duplicate)
        verdict->is_duplicate = counts(batch, engine, verdict);
    return status;
}

static doppel_status ask(const doppel_batch *batch, doppel_engine *engine, const dp_asked *asked,
                         doppel_verdict *verdict, doppel_error *error) {
    dp_buffer sample = {0};
    doppel_status status = ask_with(batch, engine, asked, &sample, verdict, error);
    dp_buffer_free(&sample);
    return status;
}

static void note(const doppel_engine *engine, const doppel_verdict *verdict, dp_found *found) {
    const doppel_evidence *e = &verdict->evidence;
    dp_reason reason = dp_reason_of(verdict->reason);
    double similarity = dp_decide_similarity(reason, e);
    found->id_length = (uint32_t)verdict->original_id.length;
    found->similarity = similarity >= 0 ? (float)similarity : -1;
    found->distance = (int16_t)e->distance;
    found->verified = e->verified || (engine->rules.by_similarity && !engine->asking.sample);
    found->kind = dp_found_kind(reason, e->same_digest);
}

doppel_status dp_against_find(const doppel_batch *batch, const dp_asked *asked, doppel_verdict *verdict,
                              dp_found *found) {
    dp_against *against = batch->against;
    doppel_error why = {0};
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < against->count && status == DOPPEL_OK && !found->id_length; i++) {
        status = ask(batch, against->folder[i].engine, asked, verdict, &why);
        if (status == DOPPEL_OK && verdict->is_duplicate)
            note(against->folder[i].engine, verdict, found);
        if (status == DOPPEL_OK)
            continue;
        pthread_mutex_lock(&against->lock);
        if (against->failed.code == DOPPEL_OK)
            dp_fail_at(&against->failed, status, why.file[0] ? why.file : against->folder[i].path, why.line, "%s",
                       why.message);
        pthread_mutex_unlock(&against->lock);
    }
    return status;
}
