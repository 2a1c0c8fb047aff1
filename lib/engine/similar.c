/* similar.c - the originals most similar to an item: by fingerprints or by feature sets, through the tables if they
 * suffice, else by comparing all.
 *
 * The Hamming index answers any distance. Bands answer a similarity as long as they find 99 % of the pairs at it; below
 * that every kept set is compared. */
#include "engine/internal.h"
#include "verify/verify.h"

#include <math.h>
#include <stdlib.h>

/* The least share of pairs that bands must find. */
#define RECALL 0.99
#define USUAL_SIMILARITY 0.85
enum { USUAL_LIMIT = 10 };

typedef struct hit {
    uint64_t number;
    double similarity, containment;
    int distance;
} hit;

typedef struct similar_search {
    doppel_engine *engine; /* the worker's, and so is the look */
    dp_worker *worker;
    dp_look *look;
    dp_query query;
    uint64_t copy;            /* the item is this copy, linked, of `original`; 0: it is not */
    uint64_t original;        /* whose feature hashes stand for it */
    doppel_evidence evidence; /* of the copy */
    uint64_t *set;            /* the query's, when it was read from the store */
    uint32_t keys[DP_MOST_BANDS];
    /* The criterion: a distance, or a similarity above this one. */
    bool by_distance;
    int distance;
    double above;
    uint64_t limit;
    hit *hits;
    size_t count, room;
    uint64_t damaged;
    doppel_error *error;
} similar_search;

/* ---- the query document ---- */

/* Whether an item is only the name of a document. */
static bool is_name(const doppel_item *item) {
    const doppel_document *d = &item->document;
    return !item->fingerprint && !item->set && !d->text.length && !d->html.data && !d->alias.data;
}

/* The sample of a number, and the keys of its bands. */
static doppel_status take_sample(similar_search *s, uint64_t number) {
    doppel_slice sample;
    dp_trace trace;
    bool found;
    DP_TRY(dp_look_trace(s->look, number, &trace, &found, s->error));
    if (!found || trace.key_count != (size_t)s->engine->sketching.bands)
        return DOPPEL_OK;
    memcpy(s->keys, trace.keys, trace.key_count * sizeof *s->keys);
    s->query.keys = s->keys;
    s->query.key_count = trace.key_count;
    DP_TRY(dp_read_sample(s->worker, number, &sample, s->error));
    if (!sample.data)
        return DOPPEL_OK;
    if (!(s->set = malloc(sample.length + sizeof *s->set)))
        return dp_no_memory(s->error);
    memcpy(s->set, sample.data, sample.length);
    s->query.sample = (doppel_slice){(char *)s->set, sample.length};
    s->query.set_count = dp_bottom_count(s->query.sample);
    return DOPPEL_OK;
}

static doppel_status take_set(similar_search *s, uint64_t number) {
    const dp_query_settings *sketching = &s->engine->sketching;
    const uint64_t *set;
    size_t count;
    if (sketching->sample)
        return take_sample(s, number);
    DP_TRY(dp_read_set(s->worker, number, &set, &count, s->error));
    if (!set)
        return DOPPEL_OK;
    if (!(s->set = malloc((count + 1) * sizeof *s->set)))
        return dp_no_memory(s->error);
    memcpy(s->set, set, count * sizeof *s->set);
    s->query.set = s->set;
    s->query.set_count = count;
    s->query.keys = s->keys;
    s->query.key_count = (size_t)sketching->bands;
    return dp_bands_keys(s->set, count, sketching->bands, sketching->rows, s->keys);
}

/* The evidence of a copy with the words of another copy does not say how similar it is to their original. */
static doppel_status take_evidence(similar_search *s, const dp_trace *copy, const doppel_evidence *evidence) {
    dp_trace original;
    bool found;
    s->evidence = *evidence;
    DP_TRY(dp_look_trace(s->look, copy->of, &original, &found, s->error));
    if (evidence->same_digest && (!found || memcmp(original.digest, copy->digest, sizeof copy->digest) != 0))
        s->evidence.similarity = s->evidence.containment = NAN;
    return DOPPEL_OK;
}

/* The query of a document that is remembered. */
static doppel_status ask_number(similar_search *s, uint64_t number) {
    dp_trace trace;
    dp_record record;
    bool found;
    DP_TRY(dp_read_document(s->look, number, &trace, &record, &found, s->error));
    if (!found)
        return dp_fail(s->error, DOPPEL_ERROR_STORE, "document %llu cannot be read", (unsigned long long)number);
    s->query = (dp_query){.content = trace.content, .has_digest = dp_has_digest(trace.digest)};
    memcpy(s->query.fingerprint, trace.fingerprint, sizeof trace.fingerprint);
    memcpy(s->query.digest, trace.digest, sizeof trace.digest);
    s->look->except[0] = number;
    s->original = number;
    if (trace.kind == DP_TRACE_COPY && !record.set_count) {
        s->copy = number;
        s->original = trace.of;
        DP_TRY(take_evidence(s, &trace, &record.evidence));
    }
    return s->engine->rules.by_similarity ? take_set(s, s->original) : DOPPEL_OK;
}

static doppel_status ask(similar_search *s, const doppel_item *item) {
    const doppel_document *d = &item->document;
    const doppel_slice name = d->id.length ? d->id : d->url;
    uint64_t number = 0;
    if (!is_name(item))
        return dp_engine_ask(s->worker, item, &s->query, s->error);
    if (d->id.length)
        DP_TRY(dp_find_id_or_url(s->worker, d->id, &number, s->error));
    if (!number && d->url.length)
        DP_TRY(dp_find_id_or_url(s->worker, d->url, &number, s->error));
    if (number)
        return ask_number(s, number);
    return dp_fail(s->error, DOPPEL_ERROR_INPUT, "no document has the id or URL `%.*s`",
                   (int)(name.length < 200 ? name.length : 200), name.data ? name.data : "");
}

/* ---- which are near ---- */

static doppel_status counts(const similar_search *s, uint64_t number, bool *does) {
    *does = number < s->look->below && number != s->look->except[0];
    return *does ? s->look->kind->alive(s->look, number, does, s->error) : DOPPEL_OK;
}

static doppel_status add_hit(similar_search *s, const hit *one) {
    if (!dp_reserve(&s->hits, &s->room, s->count + 1, sizeof *s->hits))
        return dp_no_memory(s->error);
    s->hits[s->count++] = *one;
    return DOPPEL_OK;
}

static doppel_status compare_number(similar_search *s, uint64_t number) {
    const dp_measuring m = {.query = &s->query};
    doppel_evidence e = dp_evidence_none();
    bool does;
    DP_TRY(counts(s, number, &does));
    if (does)
        DP_TRY(dp_measure(s->worker, &m, number, &e, s->error));
    if (isnan(e.similarity))
        return DOPPEL_OK;
    if (s->copy && number == s->original)
        e = s->evidence;
    const hit one = {.number = number, .similarity = e.similarity, .containment = e.containment, .distance = -1};
    return one.similarity > s->above ? add_hit(s, &one) : DOPPEL_OK;
}

static void on_damaged(uint64_t number, void *user) {
    similar_search *s = user;
    (void)number;
    s->damaged++;
}

/* All of a part. */
static doppel_status each_of(similar_search *s, dp_part part, doppel_status (*value)(uint64_t, doppel_slice, void *)) {
    const dp_each each = {.part = part, .from = 1, .to = UINT64_MAX, .value = value, .damaged = on_damaged, .user = s};
    DP_TRY(s->look->kind->each(s->look, &each, s->error));
    if (!s->damaged)
        return DOPPEL_OK;
    doppel_error why = {0};
    dp_damaged(s->engine->known->name, &why, "documents to compare with cannot be read");
    return dp_known_damage(s->engine->known, s->damaged, &why, s->error);
}

/* Copies that are stored have sets, too. */
static doppel_status on_set(uint64_t number, doppel_slice bytes, void *user) {
    similar_search *s = user;
    dp_trace trace;
    bool found;
    (void)bytes;
    DP_TRY(dp_look_trace(s->look, number, &trace, &found, s->error));
    return found && trace.kind == DP_TRACE_DOCUMENT ? compare_number(s, number) : DOPPEL_OK;
}

static doppel_status find_similar(similar_search *s) {
    const dp_query_settings *sketching = &s->engine->sketching;
    dp_numbers *banded = &s->worker->banded;
    if (!s->query.content || !s->query.set_count)
        return DOPPEL_OK;
    if (dp_bands_recall(s->above, sketching->bands, sketching->rows) < RECALL)
        return each_of(s, DP_PART_SET, on_set);
    DP_TRY(s->look->kind->find_bands(s->look, &s->query, banded, s->error));
    for (size_t i = 0; i < banded->count; i++)
        DP_TRY(compare_number(s, banded->number[i]));
    return DOPPEL_OK;
}

static doppel_status add_near(similar_search *s, uint64_t number, int distance) {
    const hit one = {.number = number, .similarity = NAN, .containment = NAN, .distance = distance};
    bool does;
    DP_TRY(counts(s, number, &does));
    return does ? add_hit(s, &one) : DOPPEL_OK;
}

static doppel_status on_trace(uint64_t number, doppel_slice bytes, void *user) {
    similar_search *s = user;
    dp_trace trace;
    if (!dp_trace_decode(bytes, &trace) || trace.kind != DP_TRACE_DOCUMENT || !trace.content)
        return DOPPEL_OK;
    int distance = doppel_distance128(trace.fingerprint, s->query.fingerprint);
    return distance <= s->distance ? add_near(s, number, distance) : DOPPEL_OK;
}

static doppel_status find_near(similar_search *s) {
    doppel_matches *near = &s->worker->near;
    if (!s->query.content || s->distance < 0)
        return DOPPEL_OK;
    if (s->engine->rules.by_similarity)
        return each_of(s, DP_PART_TRACE, on_trace);
    DP_TRY(s->look->kind->find_near(s->look, s->query.fingerprint, s->distance, near, s->error));
    for (size_t i = 0; i < near->count; i++)
        DP_TRY(add_near(s, near->match[i].owner, near->match[i].distance));
    return DOPPEL_OK;
}

/* Texts too short to be near others match if their words are the same. */
static doppel_status find_same(similar_search *s) {
    dp_numbers *keyed = &s->worker->keyed;
    if (s->query.content || !s->query.has_digest)
        return DOPPEL_OK;
    const doppel_slice digest = {(const char *)s->query.digest, sizeof s->query.digest};
    DP_TRY(s->look->kind->find_name(s->look, DP_KEY_DIGEST, digest, keyed, s->error));
    for (size_t i = 0; i < keyed->count; i++) {
        const hit one = {.number = keyed->number[i], .similarity = 1, .containment = 1, .distance = 0};
        dp_trace trace;
        bool found;
        DP_TRY(counts(s, one.number, &found));
        if (found)
            DP_TRY(dp_look_trace(s->look, one.number, &trace, &found, s->error));
        if (found && trace.kind == DP_TRACE_DOCUMENT && !memcmp(trace.digest, s->query.digest, sizeof trace.digest))
            DP_TRY(add_hit(s, &one));
    }
    return DOPPEL_OK;
}

/* ---- the list ---- */

static int compare_hits(const void *left, const void *right) {
    const hit *a = left, *b = right;
    bool known = !isnan(a->similarity) && !isnan(b->similarity);
    if (known && a->similarity != b->similarity)
        return a->similarity > b->similarity ? -1 : 1;
    if (!known && a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static doppel_status list_hits(similar_search *s, doppel_stored_list *list) {
    if (s->count)
        qsort(s->hits, s->count, sizeof *s->hits, compare_hits);
    for (size_t i = 0; i < s->count && list->count < s->limit; i++) {
        bool found;
        DP_TRY(dp_stored_add(s->worker, s->hits[i].number, (dp_wanted){.text = true}, list, &found, s->error));
        if (!found)
            continue;
        doppel_stored *to = &list->stored[list->count - 1];
        to->similarity = s->hits[i].similarity;
        to->containment = s->hits[i].containment;
        to->distance = doppel_distance128(to->fingerprint, s->query.fingerprint);
    }
    return DOPPEL_OK;
}

/* Reads the options, defaults filled in. */
static doppel_status read_options(similar_search *s, const doppel_similar_options *given) {
    doppel_similar_options o = {.size = sizeof o};
    int bits = s->engine->rules.bits;
    if (given)
        dp_copy_options(&o, given, sizeof o);
    if (!(o.similarity >= 0 && o.similarity <= 1))
        return dp_fail(s->error, DOPPEL_ERROR_USAGE, "a similarity is a number from 0 to 1");
    if (o.distance < 0 || o.distance > bits)
        return dp_fail(s->error, DOPPEL_ERROR_USAGE, "a distance of %d bits, in fingerprints of %d", o.distance, bits);
    s->limit = o.limit ? o.limit : USUAL_LIMIT;
    s->above = o.similarity > 0 ? o.similarity : USUAL_SIMILARITY;
    s->by_distance = o.distance || o.distance_zero || !s->engine->rules.by_similarity;
    /* 1 - distance/bits is to be more than the similarity. */
    int within = (int)ceil(bits * (1 - s->above) - 1e-9) - 1;
    s->distance = o.distance_zero ? 0 : o.distance ? o.distance : within;
    return DOPPEL_OK;
}

static doppel_status search(similar_search *s, const doppel_item *item, doppel_stored_list *list) {
    s->look = s->worker->look;
    DP_TRY(ask(s, item));
    DP_TRY(s->by_distance ? find_near(s) : find_similar(s));
    DP_TRY(find_same(s));
    return list_hits(s, list);
}

doppel_status doppel_engine_find_similar(doppel_engine *engine, const doppel_item *item,
                                         const doppel_similar_options *options, doppel_stored_list *list,
                                         doppel_error *error) {
    similar_search s = {.engine = engine, .error = error};
    dp_stored_list_clear(list);
    DP_TRY(read_options(&s, options));
    DP_TRY(dp_worker_begin(engine, DP_LOOK_READ, &s.worker, error));
    doppel_status status = search(&s, item, list);
    dp_worker_end(s.worker);
    free(s.set);
    free(s.hits);
    return status;
}
