/* similar.c - the originals most like an item: by fingerprints or by feature sets, through the tables where they can
 * answer, else by comparing all.
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

typedef struct similar_asked {
    bool by_distance;
    int distance;
    double above;
    uint64_t limit;
} similar_asked;

typedef struct hit {
    uint64_t number;
    double similarity, containment;
    int distance;
} hit;

typedef struct similar_search {
    doppel_engine *engine;
    dp_worker *worker;
    dp_query query;
    dp_look *look;            /* the worker's */
    uint64_t copy;            /* the item is this copy, linked, of `original`; 0: it is not */
    uint64_t original;        /* whose feature hashes stand for it */
    doppel_evidence evidence; /* of the copy */
    uint64_t *set;            /* the query's, when it was read from the store */
    uint32_t keys[DP_MOST_BANDS];
    similar_asked asked;
    hit *hits;
    size_t count, room;
    uint64_t damaged;
    doppel_error *error;
} similar_search;

/* ---- who is asked about ---- */

/* Whether an item is but the name of a document. */
static bool is_name(const doppel_item *item) {
    const doppel_document *d = &item->document;
    return !item->fingerprint && !item->set && !d->text_length && !d->html && !d->alias;
}

/* Nobody has that name. */
static doppel_status nobody(const doppel_item *item, doppel_error *error) {
    const doppel_document *d = &item->document;
    doppel_slice name = d->id_length ? (doppel_slice){d->id, d->id_length} : (doppel_slice){d->url, d->url_length};
    return dp_fail(error, DOPPEL_ERROR_INPUT, "no document has the id or URL `%.*s`",
                   (int)(name.length < 200 ? name.length : 200), name.data ? name.data : "");
}

/* The sample of a number, and the keys of its bands. */
static doppel_status take_sample(similar_search *s, uint64_t number) {
    doppel_slice sample;
    dp_trace trace;
    bool found;
    doppel_status status = dp_look_trace(s->look, number, &trace, &found, s->error);
    if (status == DOPPEL_OK && found && trace.key_count == (size_t)s->engine->sketching.bands) {
        memcpy(s->keys, trace.keys, trace.key_count * sizeof *s->keys);
        s->query.keys = s->keys;
        s->query.key_count = trace.key_count;
        status = dp_read_sample(s->worker, number, &sample, s->error);
    } else {
        sample = (doppel_slice){NULL, 0};
    }
    if (status != DOPPEL_OK || !sample.data)
        return status;
    if (!(s->set = malloc(sample.length + sizeof *s->set)))
        return dp_no_memory(s->error);
    memcpy(s->set, sample.data, sample.length);
    s->query.sample = (doppel_slice){(char *)s->set, sample.length};
    s->query.set_count = dp_bottom_count(s->query.sample);
    return DOPPEL_OK;
}

static doppel_status take_set(similar_search *s, uint64_t number) {
    const uint64_t *set;
    size_t count;
    if (s->engine->sketching.sample)
        return take_sample(s, number);
    doppel_status status = dp_read_set(s->worker, number, &set, &count, s->error);
    if (status != DOPPEL_OK || !set)
        return status;
    if (!(s->set = malloc((count + 1) * sizeof *s->set)))
        return dp_no_memory(s->error);
    memcpy(s->set, set, count * sizeof *s->set);
    s->query.set = s->set;
    s->query.set_count = count;
    s->query.keys = s->keys;
    s->query.key_count = (size_t)s->engine->sketching.bands;
    return dp_bands_keys(s->set, count, s->engine->sketching.bands, s->engine->sketching.rows, s->keys);
}

/* A copy that has the words of another copy says nothing of how similar it is to their original. */
static doppel_status take_evidence(similar_search *s, const dp_trace *copy, const doppel_evidence *evidence) {
    dp_trace original;
    bool found;
    s->evidence = *evidence;
    doppel_status status = dp_look_trace(s->look, copy->of, &original, &found, s->error);
    if (status == DOPPEL_OK && evidence->same_digest &&
        (!found || memcmp(original.digest, copy->digest, sizeof copy->digest) != 0))
        s->evidence.similarity = s->evidence.containment = NAN;
    return status;
}

/* The query of a document that is remembered. */
static doppel_status ask_number(similar_search *s, uint64_t number) {
    dp_trace trace;
    dp_record record;
    bool found;
    doppel_status status = dp_look_trace(s->look, number, &trace, &found, s->error);
    if (status == DOPPEL_OK && found)
        status = dp_look_record(s->look, number, &record, &found, s->error);
    if (status != DOPPEL_OK)
        return status;
    if (!found)
        return dp_fail(s->error, DOPPEL_ERROR_STORE, "document %llu cannot be read", (unsigned long long)number);
    static const uint8_t none[32];
    s->query = (dp_query){.content = trace.content};
    memcpy(s->query.fingerprint, trace.fingerprint, sizeof trace.fingerprint);
    memcpy(s->query.digest, trace.digest, sizeof trace.digest);
    s->query.has_digest = memcmp(trace.digest, none, sizeof none) != 0;
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
    uint64_t number = 0;
    doppel_status status = DOPPEL_OK;
    if (!is_name(item))
        return dp_engine_ask(s->engine, s->worker, item, &s->query, s->error);
    if (d->id_length)
        status = dp_engine_resolve(s->engine, s->worker, (doppel_slice){d->id, d->id_length}, &number, s->error);
    if (status == DOPPEL_OK && !number && d->url_length)
        status = dp_engine_resolve(s->engine, s->worker, (doppel_slice){d->url, d->url_length}, &number, s->error);
    if (status != DOPPEL_OK)
        return status;
    return number ? ask_number(s, number) : nobody(item, s->error);
}

/* ---- who is near ---- */

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

/* A document whose similarity was measured. */
static doppel_status add_measured(similar_search *s, hit one) {
    if (s->copy && one.number == s->original) {
        one.similarity = s->evidence.similarity;
        one.containment = s->evidence.containment;
    }
    return one.similarity > s->asked.above ? add_hit(s, &one) : DOPPEL_OK;
}

static doppel_status compare_set(similar_search *s, uint64_t number, const uint64_t *set, size_t count) {
    if (!count || !s->query.set_count)
        return DOPPEL_OK;
    size_t shared = doppel_set_shared(s->query.set, s->query.set_count, set, count);
    return add_measured(s, (hit){.number = number,
                                 .similarity = (double)shared / (double)(count + s->query.set_count - shared),
                                 .containment = (double)shared / (double)s->query.set_count,
                                 .distance = -1});
}

static doppel_status compare_sample(similar_search *s, uint64_t number) {
    doppel_slice sample;
    doppel_status status = dp_read_sample(s->worker, number, &sample, s->error);
    if (status != DOPPEL_OK || !sample.data || !s->query.sample.data)
        return status;
    double similarity = dp_bottom_similarity(s->query.sample, sample, s->engine->sketching.sample);
    return add_measured(s, (hit){.number = number,
                                 .similarity = similarity,
                                 .containment = dp_bottom_containment(s->query.sample, sample, similarity),
                                 .distance = -1});
}

static doppel_status compare_number(similar_search *s, uint64_t number) {
    const uint64_t *set;
    size_t count;
    bool does;
    doppel_status status = counts(s, number, &does);
    if (status != DOPPEL_OK || !does)
        return status;
    if (s->engine->sketching.sample)
        return compare_sample(s, number);
    status = dp_read_set(s->worker, number, &set, &count, s->error);
    if (status != DOPPEL_OK || !set)
        return status;
    return compare_set(s, number, set, count);
}

static void on_damaged(uint64_t number, void *user) {
    similar_search *s = user;
    (void)number;
    s->damaged++;
}

/* All of a part. */
static doppel_status each_of(similar_search *s, dp_part part, doppel_status (*value)(uint64_t, doppel_slice, void *)) {
    const dp_each each = {.part = part, .from = 1, .to = UINT64_MAX, .value = value, .damaged = on_damaged, .user = s};
    doppel_status status = s->look->kind->each(s->look, &each, s->error);
    if (status != DOPPEL_OK || !s->damaged)
        return status;
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
    doppel_status status = dp_look_trace(s->look, number, &trace, &found, s->error);
    return status == DOPPEL_OK && found && trace.kind == DP_TRACE_DOCUMENT ? compare_number(s, number) : status;
}

static doppel_status find_similar(similar_search *s) {
    const dp_query_settings *sketching = &s->engine->sketching;
    if (!s->query.content || !s->query.set_count)
        return DOPPEL_OK;
    if (dp_bands_recall(s->asked.above, sketching->bands, sketching->rows) < RECALL)
        return each_of(s, DP_PART_SET, on_set);
    dp_numbers *banded = &s->worker->banded;
    doppel_status status = s->look->kind->find_bands(s->look, &s->query, banded, s->error);
    for (size_t i = 0; status == DOPPEL_OK && i < banded->count; i++)
        status = compare_number(s, banded->number[i]);
    return status;
}

static doppel_status add_near(similar_search *s, uint64_t number, int distance) {
    hit one = {.number = number, .similarity = NAN, .containment = NAN, .distance = distance};
    bool does;
    doppel_status status = counts(s, number, &does);
    return status == DOPPEL_OK && does ? add_hit(s, &one) : status;
}

static doppel_status on_trace(uint64_t number, doppel_slice bytes, void *user) {
    similar_search *s = user;
    dp_trace trace;
    if (!dp_trace_decode(bytes, &trace) || trace.kind != DP_TRACE_DOCUMENT || !trace.content)
        return DOPPEL_OK;
    int distance = doppel_distance128(trace.fingerprint, s->query.fingerprint);
    return distance <= s->asked.distance ? add_near(s, number, distance) : DOPPEL_OK;
}

static doppel_status find_near(similar_search *s) {
    if (!s->query.content || s->asked.distance < 0)
        return DOPPEL_OK;
    if (s->engine->rules.by_similarity)
        return each_of(s, DP_PART_TRACE, on_trace);
    doppel_matches *near = &s->worker->near;
    doppel_status status = s->look->kind->find_near(s->look, s->query.fingerprint, s->asked.distance, near, s->error);
    for (size_t i = 0; status == DOPPEL_OK && i < near->count; i++)
        status = add_near(s, near->match[i].owner, near->match[i].distance);
    return status;
}

/* Texts too short to be near others are alike when their words are the same. */
static doppel_status find_same(similar_search *s) {
    dp_numbers *keyed = &s->worker->keyed;
    if (s->query.content || !s->query.has_digest)
        return DOPPEL_OK;
    const doppel_slice digest = {(const char *)s->query.digest, sizeof s->query.digest};
    doppel_status status = s->look->kind->find_name(s->look, DP_KEY_DIGEST, digest, keyed, s->error);
    for (size_t i = 0; status == DOPPEL_OK && i < keyed->count; i++) {
        dp_trace trace;
        bool found;
        status = counts(s, keyed->number[i], &found);
        if (status == DOPPEL_OK && found)
            status = dp_look_trace(s->look, keyed->number[i], &trace, &found, s->error);
        hit one = {.number = keyed->number[i], .similarity = 1, .containment = 1, .distance = 0};
        if (status == DOPPEL_OK && found && trace.kind == DP_TRACE_DOCUMENT &&
            !memcmp(trace.digest, s->query.digest, sizeof trace.digest))
            status = add_hit(s, &one);
    }
    return status;
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
    doppel_status status = DOPPEL_OK;
    if (s->count)
        qsort(s->hits, s->count, sizeof *s->hits, compare_hits);
    for (size_t i = 0; i < s->count && list->count < s->asked.limit && status == DOPPEL_OK; i++) {
        bool found;
        status = dp_stored_add(s->worker, s->hits[i].number, (dp_wanted){.text = true}, list, &found, s->error);
        if (status != DOPPEL_OK || !found)
            continue;
        doppel_stored *to = &list->stored[list->count - 1];
        to->similarity = s->hits[i].similarity;
        to->containment = s->hits[i].containment;
        to->distance = doppel_distance128(to->fingerprint, s->query.fingerprint);
    }
    return status;
}

/* What is asked for, defaults filled in. */
static doppel_status read_options(const doppel_engine *engine, const doppel_similar_options *given,
                                  similar_asked *asked, doppel_error *error) {
    doppel_similar_options o = {.size = sizeof o};
    int bits = engine->rules.bits;
    if (given)
        dp_copy_options(&o, given, sizeof o);
    if (!(o.similarity >= 0 && o.similarity <= 1))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a similarity is a number from 0 to 1");
    if (o.distance < -1 || o.distance > bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a distance of %d bits, in fingerprints of %d", o.distance, bits);
    asked->limit = o.limit ? o.limit : USUAL_LIMIT;
    asked->above = o.similarity > 0 ? o.similarity : USUAL_SIMILARITY;
    asked->by_distance = o.distance || !engine->rules.by_similarity;
    /* 1 - distance/bits is to be more than the similarity. */
    int within = (int)ceil(bits * (1 - asked->above) - 1e-9) - 1;
    asked->distance = o.distance > 0 ? o.distance : o.distance < 0 ? 0 : within;
    return DOPPEL_OK;
}

doppel_status doppel_engine_similar(doppel_engine *engine, const doppel_item *item,
                                    const doppel_similar_options *options, doppel_stored_list *list,
                                    doppel_error *error) {
    similar_search s = {.engine = engine, .error = error};
    dp_stored_list_clear(list);
    doppel_status status = read_options(engine, options, &s.asked, error);
    DP_THEN(status, dp_worker_take(engine, &s.worker, error));
    if (status != DOPPEL_OK)
        return status;
    s.look = s.worker->look;
    status = dp_look_begin(s.look, DP_LOOK_READ, error);
    if (status == DOPPEL_OK) {
        status = ask(&s, item);
        DP_THEN(status, s.asked.by_distance ? find_near(&s) : find_similar(&s));
        DP_THEN(status, find_same(&s));
        DP_THEN(status, list_hits(&s, list));
        (void)s.look->kind->end(s.look, NULL);
    }
    dp_worker_give(engine, s.worker);
    free(s.set);
    free(s.hits);
    return status;
}
