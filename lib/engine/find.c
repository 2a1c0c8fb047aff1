/* find.c - the original of a query: the document that has its URL, else its words, else near content, else a similar
 * title.
 *
 * lib/known gives numbers that may match; their stored parts show whether they do. The first kind of evidence that
 * finds a document decides (lib/decide), and only then is the rest measured on that one. */
#include "engine/internal.h"
#include "verify/verify.h"

#include <math.h>

/* Candidates that could not be read: removed since, or damaged. More than a few in one search are unlikely. */
enum { LOST = 8 };

typedef struct original_search {
    doppel_engine *engine; /* the worker's, and so is the look */
    dp_worker *worker;
    dp_look *look;
    const dp_query *query;
    dp_original *found;
    doppel_error *error;
    bool filtering; /* many share its bands: their parities in memory rule most of them out */
    uint64_t lost[LOST];
    int lost_count;
} original_search;

static original_search begin_search(dp_worker *worker, const dp_query *query, dp_original *found, doppel_error *error) {
    return (original_search){.engine = worker->engine,
                             .worker = worker,
                             .look = worker->look,
                             .query = query,
                             .found = found,
                             .error = error};
}

static doppel_status counts(const original_search *s, uint64_t number, bool *does) {
    const dp_look *look = s->look;
    *does = number && number < look->below && number != look->except[0] && number != look->except[1];
    for (int i = 0; i < s->lost_count && *does; i++)
        *does = s->lost[i] != number;
    return *does ? s->look->kind->alive(s->look, number, does, s->error) : DOPPEL_OK;
}

static void consider(original_search *s, const dp_candidate *candidate) {
    dp_original *f = s->found;
    const dp_rules *rules = &s->engine->rules;
    doppel_reason reason = dp_decide(rules, candidate);
    if (reason == DOPPEL_REASON_NONE)
        return;
    if (f->reason == DOPPEL_REASON_NONE || dp_decide_stronger(rules, candidate, reason, &f->best, f->reason)) {
        f->reason = reason;
        f->best = *candidate;
    }
}

doppel_status dp_read_document(dp_look *look, uint64_t number, dp_trace *trace, dp_record *record, bool *found,
                               doppel_error *error) {
    DP_TRY(dp_look_trace(look, number, trace, found, error));
    return *found ? dp_look_record(look, number, record, found, error) : DOPPEL_OK;
}

/* ---- ids and URLs ---- */

/* Whether a number has exactly this name, and its trace. A copy of a document that does not count has none. */
static doppel_status has_name(const original_search *s, dp_key key, doppel_slice name, uint64_t number, dp_trace *trace,
                              bool *has) {
    dp_record record;
    DP_TRY(counts(s, number, has));
    if (*has)
        DP_TRY(dp_look_record(s->look, number, &record, has, s->error));
    if (*has) {
        doppel_slice own = key == DP_KEY_ID ? record.id : record.canonical;
        *has = own.length == name.length && !memcmp(own.data, name.data, name.length);
    }
    if (*has)
        DP_TRY(dp_look_trace(s->look, number, trace, has, s->error));
    return *has && trace->kind == DP_TRACE_COPY ? counts(s, trace->of, has) : DOPPEL_OK;
}

/* The lowest number with exactly this name; 0: none. */
static doppel_status find_name(original_search *s, dp_key key, doppel_slice name, uint64_t *number, dp_trace *trace) {
    dp_numbers *keyed = &s->worker->keyed;
    bool has = false;
    *number = 0;
    DP_TRY(s->look->kind->find_name(s->look, key, name, keyed, s->error));
    for (size_t i = 0; i < keyed->count && !has; i++) {
        DP_TRY(has_name(s, key, name, keyed->number[i], trace, &has));
        *number = has ? keyed->number[i] : 0;
    }
    return DOPPEL_OK;
}

doppel_status dp_find_name(dp_worker *worker, dp_key key, doppel_slice name, uint64_t *number, doppel_error *error) {
    original_search s = begin_search(worker, NULL, NULL, error);
    dp_trace trace;
    return find_name(&s, key, name, number, &trace);
}

static doppel_status find_same_url(original_search *s) {
    uint64_t number;
    dp_trace trace;
    if (!s->query->canonical.length)
        return DOPPEL_OK;
    DP_TRY(find_name(s, DP_KEY_URL, s->query->canonical, &number, &trace));
    if (!number)
        return DOPPEL_OK;
    dp_candidate candidate = {.number = trace.kind == DP_TRACE_COPY ? trace.of : number,
                              .evidence = dp_evidence_none()};
    candidate.evidence.same_url = true;
    s->found->candidates++;
    consider(s, &candidate);
    return DOPPEL_OK;
}

/* ---- the same words ---- */

/* Whether a number has the query's words; *original: its own number, or that of its original. Copies of a document that
 * does not count do not, either. */
static doppel_status has_words(const original_search *s, uint64_t number, uint64_t *original, bool *by_copy,
                               bool *has) {
    dp_trace trace;
    DP_TRY(counts(s, number, has));
    if (*has)
        DP_TRY(dp_look_trace(s->look, number, &trace, has, s->error));
    if (!*has)
        return DOPPEL_OK;
    *has = !memcmp(trace.digest, s->query->digest, sizeof trace.digest);
    *by_copy = trace.kind != DP_TRACE_DOCUMENT;
    *original = *by_copy ? trace.of : number;
    return *has && *by_copy ? counts(s, trace.of, has) : DOPPEL_OK;
}

/* The first document with the query's words, else the original of the first copy that has them; 0: none has. */
static doppel_status find_words(original_search *s, uint64_t *number, bool *by_copy) {
    dp_numbers *keyed = &s->worker->keyed;
    const doppel_slice digest = {(const char *)s->query->digest, sizeof s->query->digest};
    *number = 0;
    *by_copy = false;
    if (!s->query->has_digest)
        return DOPPEL_OK;
    DP_TRY(s->look->kind->find_name(s->look, DP_KEY_DIGEST, digest, keyed, s->error));
    for (size_t i = 0; i < keyed->count && (!*number || *by_copy); i++) {
        uint64_t original = 0;
        bool copy = false, has;
        DP_TRY(has_words(s, keyed->number[i], &original, &copy, &has));
        if (!has || (copy && *number))
            continue;
        *number = original;
        *by_copy = copy;
    }
    return DOPPEL_OK;
}

doppel_status dp_find_words(dp_worker *worker, const dp_query *query, uint64_t *number, doppel_error *error) {
    original_search s = begin_search(worker, query, NULL, error);
    bool by_copy;
    return find_words(&s, number, &by_copy);
}

static doppel_status find_same_words(original_search *s) {
    dp_candidate candidate = {.evidence = dp_evidence_none()};
    DP_TRY(find_words(s, &candidate.number, &s->found->by_copy));
    if (!candidate.number)
        return DOPPEL_OK;
    candidate.evidence.same_digest = true;
    s->found->candidates++;
    consider(s, &candidate);
    return DOPPEL_OK;
}

/* ---- near content ---- */

static doppel_status find_by_distance(original_search *s) {
    doppel_matches *near = &s->worker->near;
    DP_TRY(s->look->kind->find_near(s->look, s->query->fingerprint, s->engine->rules.distance, near, s->error));
    s->found->candidates += near->candidates;
    for (size_t i = 0; i < near->count; i++) {
        bool does;
        if (s->found->reason != DOPPEL_REASON_NONE && near->match[i].distance > s->found->best.evidence.distance)
            break;
        DP_TRY(counts(s, near->match[i].owner, &does));
        if (!does)
            continue;
        dp_candidate candidate = {.number = near->match[i].owner, .evidence = dp_evidence_none(), .content = true};
        candidate.evidence.distance = near->match[i].distance;
        consider(s, &candidate);
    }
    return DOPPEL_OK;
}

doppel_status dp_read_set(dp_worker *worker, uint64_t number, const uint64_t **set, size_t *count,
                          doppel_error *error) {
    doppel_slice bytes;
    *set = NULL;
    *count = 0;
    DP_TRY(dp_look_read(worker->look, DP_PART_SET, number, &bytes, error));
    if (!bytes.data)
        return DOPPEL_OK;
    *count = bytes.length / sizeof **set;
    if (!dp_reserve(&worker->set, &worker->set_room, *count + 1, sizeof *worker->set))
        return dp_no_memory(error);
    for (size_t i = 0; i < *count; i++)
        worker->set[i] = dp_load64(bytes.data + 8 * i);
    *set = worker->set;
    return DOPPEL_OK;
}

doppel_status dp_read_sample(dp_worker *worker, uint64_t number, doppel_slice *sample, doppel_error *error) {
    DP_TRY(dp_look_read(worker->look, DP_PART_SET, number, sample, error));
    if (!sample->data || dp_bottom_is_valid(*sample))
        return DOPPEL_OK;
    *sample = (doppel_slice){NULL, 0};
    return dp_look_nonsense(worker->look, "sample", number, "is malformed", error);
}

/* The values of a sample, in the worker's memory: until the next call. False: no memory. */
static bool read_features(dp_worker *worker, doppel_slice sample, dp_features *features) {
    size_t most = dp_bottom_values(sample, 0, NULL);
    if (!dp_reserve(&worker->set, &worker->set_room, 2 * most, sizeof *worker->set))
        return false;
    *features = (dp_features){.set = worker->set, .coarser = worker->set + most, .scale = dp_bottom_scale(sample)};
    features->count = dp_bottom_values(sample, 0, worker->set);
    features->coarser_count = dp_bottom_values(sample, 1, worker->set + most);
    return true;
}

/* Whether sets of these sizes cannot be as similar as `least`: the ratio of the sizes is an upper bound. */
static bool sizes_differ(size_t a, size_t b, double least) {
    double x = (double)a, y = (double)b;
    return (x < y ? x / y : y / x) < least;
}

/* The same by samples, where samples are kept. */
static doppel_status measure_samples(dp_worker *worker, const dp_measuring *m, uint64_t number, doppel_evidence *e,
                                     doppel_error *error) {
    doppel_slice mine = m->query->sample, sample;
    dp_features features;
    DP_TRY(dp_read_sample(worker, number, &sample, error));
    if (!mine.data || !sample.data)
        return DOPPEL_OK;
    if (m->keep && read_features(worker, sample, &features))
        worker->look->kind->keep_features(worker->look, number, &features);
    if (sizes_differ(dp_bottom_count(sample), dp_bottom_count(mine), m->least))
        return DOPPEL_OK;
    e->similarity = dp_bottom_similarity(mine, sample, worker->engine->sketching.sample);
    e->containment = dp_bottom_containment(mine, sample, e->similarity);
    return DOPPEL_OK;
}

doppel_status dp_measure(dp_worker *worker, const dp_measuring *m, uint64_t number, doppel_evidence *e,
                         doppel_error *error) {
    const dp_query *q = m->query;
    const uint64_t *set;
    size_t count;
    if (worker->engine->sketching.sample)
        return measure_samples(worker, m, number, e, error);
    DP_TRY(dp_read_set(worker, number, &set, &count, error));
    if (!set || !count || !q->set_count)
        return DOPPEL_OK;
    if (m->keep)
        worker->look->kind->keep_features(worker->look, number, &(dp_features){.set = set, .count = count});
    if (sizes_differ(count, q->set_count, m->least))
        return DOPPEL_OK;
    size_t shared = doppel_set_shared(q->set, q->set_count, set, count);
    e->similarity = (double)shared / (double)(count + q->set_count - shared);
    e->containment = (double)shared / (double)q->set_count;
    e->verified = true;
    return DOPPEL_OK;
}

static doppel_status measure(const original_search *s, uint64_t number, double least, doppel_evidence *e) {
    const dp_measuring m = {.query = s->query, .least = least, .keep = s->filtering};
    return dp_measure(s->worker, &m, number, e, s->error);
}

/* Drops those that cannot be near, by their parities. */
static void drop_far(original_search *s, dp_numbers *banded) {
    const dp_query *q = s->query;
    dp_features features = {.set = q->set, .count = q->set_count};
    bool sampled = s->engine->sketching.sample;
    if (sampled ? q->sample.data && read_features(s->worker, q->sample, &features) : q->set_count > 0)
        s->look->kind->sift(s->look, &features, s->engine->rules.similarity, banded);
}

/* Of many that share a band, such as the pages of one template, each set is read once: its parity in memory then rules
 * most of them out. */
static doppel_status find_by_similarity(original_search *s) {
    dp_numbers *banded = &s->worker->banded;
    double least = s->engine->rules.similarity;
    DP_TRY(s->look->kind->find_bands(s->look, s->query, banded, s->error));
    s->filtering = banded->count > s->engine->filter_above && s->look->kind->sift;
    if (s->filtering)
        drop_far(s, banded);
    for (size_t i = 0; i < banded->count; i++) {
        dp_candidate candidate = {.number = banded->number[i], .evidence = dp_evidence_none(), .content = true};
        bool does;
        DP_TRY(counts(s, candidate.number, &does));
        if (!does)
            continue;
        s->found->candidates++;
        DP_TRY(measure(s, candidate.number, least, &candidate.evidence));
        if (!isnan(candidate.evidence.similarity))
            consider(s, &candidate);
    }
    return DOPPEL_OK;
}

/* ---- titles ---- */

/* The best title; if contents can veto, the best whose document is not too different: so similar titles are tried in
 * order. A document with too few words has no set: nothing is measured, and nothing vetoed. */
static doppel_status find_same_title(original_search *s) {
    const dp_rules *rules = &s->engine->rules;
    bool veto = rules->title_veto && s->query->content, does;
    dp_title_hits *hits = &s->worker->title_hits;
    const dp_title_query query = {.title = s->query->title_key,
                                  .share = s->engine->options.title_share,
                                  .best = !veto,
                                  .ahead = s->query->title_ahead};
    if (!rules->titles || !s->query->title_key.length)
        return DOPPEL_OK;
    DP_TRY(s->look->kind->find_titles(s->look, &query, hits, s->error));
    s->found->candidates += hits->candidates;
    for (size_t i = 0; i < hits->count && s->found->reason == DOPPEL_REASON_NONE; i++) {
        dp_candidate candidate = {.number = hits->hit[i].number, .evidence = dp_evidence_none(), .title = true};
        candidate.evidence.title_similarity = hits->hit[i].similarity;
        DP_TRY(counts(s, candidate.number, &does));
        if (does && veto)
            DP_TRY(measure(s, candidate.number, 0, &candidate.evidence));
        if (does)
            consider(s, &candidate);
    }
    return DOPPEL_OK;
}

/* ---- all together ---- */

static bool same_name(doppel_slice a, doppel_slice b) {
    return a.length && a.length == b.length && !memcmp(a.data, b.data, a.length);
}

/* Measures what the original's trace alone allows; by_copy: the content is that of a copy of it, word for word. */
static doppel_status measure_trace(const dp_query *q, const dp_trace *trace, bool by_copy, doppel_evidence *e) {
    bool words = dp_has_digest(trace->digest);
    e->same_digest = by_copy || (q->has_digest && !memcmp(q->digest, trace->digest, sizeof trace->digest));
    if ((q->has_digest || q->content) && (words || trace->content))
        e->distance = by_copy ? 0 : doppel_distance128(q->fingerprint, trace->fingerprint);
    if (e->same_digest) {
        e->similarity = e->containment = 1;
        e->verified = true;
    }
    if (!q->title_key.length || !trace->title.length || !isnan(e->title_similarity))
        return DOPPEL_OK;
    return doppel_edit_similarity(q->title_key, trace->title, 0, &e->title_similarity);
}

/* Measures what is still missing on the original; false in *there: it is gone. */
static doppel_status complete(original_search *s, bool *there) {
    const dp_query *q = s->query;
    doppel_evidence *e = &s->found->best.evidence;
    dp_trace trace;
    dp_record record;
    uint64_t number = s->found->best.number;
    DP_TRY(dp_read_document(s->look, number, &trace, &record, there, s->error));
    if (!*there)
        return DOPPEL_OK;
    s->found->original_id = record.id;
    s->found->origin = record.origin;
    s->found->expires = trace.expires;
    s->found->has_url = same_name(q->canonical, record.canonical);
    e->same_url = e->same_url || s->found->has_url;
    doppel_status status = measure_trace(q, &trace, s->found->by_copy, e);
    if (status == DOPPEL_OK && s->engine->rules.by_similarity && isnan(e->similarity) && q->content && trace.content)
        status = measure(s, number, 0, e);
    return status == DOPPEL_ERROR_MEMORY ? dp_no_memory(s->error) : status;
}

static doppel_status find_once(original_search *s) {
    dp_original *f = s->found;
    f->reason = DOPPEL_REASON_NONE;
    f->by_copy = false;
    DP_TRY(find_same_url(s));
    if (f->reason == DOPPEL_REASON_NONE)
        DP_TRY(find_same_words(s));
    if (f->reason == DOPPEL_REASON_NONE && s->query->content)
        DP_TRY(s->engine->rules.by_similarity ? find_by_similarity(s) : find_by_distance(s));
    return f->reason == DOPPEL_REASON_NONE ? find_same_title(s) : DOPPEL_OK;
}

doppel_status dp_find(dp_worker *worker, const dp_query *query, dp_original *found, doppel_error *error) {
    original_search s = begin_search(worker, query, found, error);
    *found = (dp_original){.reason = DOPPEL_REASON_NONE, .best.evidence = dp_evidence_none()};
    for (bool there = false; !there && s.lost_count < LOST;) {
        there = true;
        DP_TRY(find_once(&s));
        if (found->reason != DOPPEL_REASON_NONE)
            DP_TRY(complete(&s, &there));
        if (!there)
            s.lost[s.lost_count++] = found->best.number;
    }
    if (s.lost_count == LOST)
        *found = (dp_original){.best.evidence = dp_evidence_none(), .candidates = found->candidates};
    return DOPPEL_OK;
}
