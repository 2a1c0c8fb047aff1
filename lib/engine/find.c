/* find.c - the original of a query: whoever has its URL, else its words, else near content, else a similar title.
 *
 * What is known (lib/known) gives numbers that may have what is asked; what is stored of them says whether they do. The
 * first kind of evidence that finds someone decides (lib/decide), and only then is the rest measured on that one. */
#include "engine/internal.h"
#include "verify/verify.h"

#include <math.h>

/* Numbers that came up but could not be read: removed meanwhile, or damaged. More than a few at once would be odd. */
enum { LOST = 8 };

typedef struct original_search {
    doppel_engine *engine;
    dp_worker *worker;
    const dp_query *query;
    dp_look *look; /* the worker's */
    dp_original *finding;
    doppel_error *error;
    bool filtering; /* many share its bands: their sets are not read again and again */
    uint64_t lost[LOST];
    int lost_count;
} original_search;

static doppel_status counts(const original_search *s, uint64_t number, bool *does) {
    const dp_look *look = s->look;
    *does = number && number < look->below && number != look->except[0] && number != look->except[1];
    for (int i = 0; i < s->lost_count && *does; i++)
        *does = s->lost[i] != number;
    return *does ? s->look->kind->alive(s->look, number, does, s->error) : DOPPEL_OK;
}

static void consider(original_search *s, const dp_candidate *candidate) {
    dp_original *f = s->finding;
    const dp_rules *rules = &s->engine->rules;
    dp_reason reason = dp_decide(rules, candidate);
    if (reason == DP_UNIQUE)
        return;
    if (f->reason == DP_UNIQUE || dp_decide_stronger(rules, candidate, reason, &f->best, f->reason)) {
        f->reason = reason;
        f->best = *candidate;
    }
}

/* ---- ids and URLs ---- */

static bool is_name(doppel_slice has, doppel_slice name) {
    return has.length == name.length && !memcmp(has.data, name.data, name.length);
}

/* Whether a number has this very name, and what it left. A copy of what is gone does not have its URL any more. */
static doppel_status has_name(const original_search *s, dp_key key, doppel_slice name, uint64_t number, dp_trace *trace,
                              bool *has) {
    dp_record record;
    doppel_status status = counts(s, number, has);
    if (status == DOPPEL_OK && *has)
        status = dp_look_record(s->look, number, &record, has, s->error);
    if (status != DOPPEL_OK || !*has)
        return status;
    *has = is_name(key == DP_KEY_ID ? record.id : record.canonical, name);
    if (*has)
        status = dp_look_trace(s->look, number, trace, has, s->error);
    if (status == DOPPEL_OK && *has && key == DP_KEY_URL && trace->kind == DP_TRACE_COPY)
        status = counts(s, trace->of, has);
    return status;
}

/* Who has this very name: the lowest number. */
static doppel_status find_name(original_search *s, dp_key key, doppel_slice name, uint64_t *number, dp_trace *trace) {
    dp_numbers *keyed = &s->worker->keyed;
    doppel_status status = s->look->kind->find_name(s->look, key, name, keyed, s->error);
    bool has = false;
    *number = 0;
    for (size_t i = 0; status == DOPPEL_OK && i < keyed->count && !has; i++) {
        status = has_name(s, key, name, keyed->number[i], trace, &has);
        if (status == DOPPEL_OK && has)
            *number = keyed->number[i];
    }
    return status;
}

doppel_status dp_find_id(dp_worker *worker, doppel_slice id, uint64_t *number, doppel_error *error) {
    original_search s = {.worker = worker, .look = worker->look, .error = error};
    dp_trace trace;
    return find_name(&s, DP_KEY_ID, id, number, &trace);
}

doppel_status dp_find_url(dp_worker *worker, doppel_slice url, uint64_t *number, doppel_error *error) {
    original_search s = {.worker = worker, .look = worker->look, .error = error};
    dp_trace trace;
    return find_name(&s, DP_KEY_URL, url, number, &trace);
}

static doppel_status find_same_url(original_search *s) {
    uint64_t number;
    dp_trace trace;
    if (!s->query->canonical.length)
        return DOPPEL_OK;
    doppel_status status = find_name(s, DP_KEY_URL, s->query->canonical, &number, &trace);
    if (status != DOPPEL_OK || !number)
        return status;
    if (trace.kind == DP_TRACE_COPY)
        number = trace.of;
    dp_candidate candidate = {.number = number, .evidence = dp_evidence_none()};
    candidate.evidence.same_url = true;
    s->finding->candidates++;
    consider(s, &candidate);
    return DOPPEL_OK;
}

/* ---- content ---- */

/* Whether a number has the query's words; *original: its own number, or that of which it is a copy. Copies of what is
 * gone do not count. */
static doppel_status has_words(const original_search *s, uint64_t number, uint64_t *original, bool *by_copy,
                               bool *has) {
    dp_trace trace;
    doppel_status status = counts(s, number, has);
    if (status == DOPPEL_OK && *has)
        status = dp_look_trace(s->look, number, &trace, has, s->error);
    if (status != DOPPEL_OK || !*has)
        return status;
    *has = !memcmp(trace.digest, s->query->digest, sizeof trace.digest);
    *by_copy = trace.kind != DP_TRACE_DOCUMENT;
    *original = *by_copy ? trace.of : number;
    return *has && *by_copy ? counts(s, trace.of, has) : DOPPEL_OK;
}

/* Who has the query's words: the first document, else the original of the first copy that has them; 0: nobody does. */
static doppel_status find_words(original_search *s, uint64_t *number, bool *by_copy) {
    dp_numbers *keyed = &s->worker->keyed;
    const doppel_slice digest = {(const char *)s->query->digest, sizeof s->query->digest};
    *number = 0;
    *by_copy = false;
    if (!s->query->has_digest)
        return DOPPEL_OK;
    doppel_status status = s->look->kind->find_name(s->look, DP_KEY_DIGEST, digest, keyed, s->error);
    for (size_t i = 0; status == DOPPEL_OK && i < keyed->count && (!*number || *by_copy); i++) {
        uint64_t original = 0;
        bool copy = false, has;
        status = has_words(s, keyed->number[i], &original, &copy, &has);
        if (status != DOPPEL_OK || !has || (copy && *number))
            continue;
        *number = original;
        *by_copy = copy;
    }
    return status;
}

doppel_status dp_find_words(dp_worker *worker, const dp_query *query, uint64_t *number, doppel_error *error) {
    original_search s = {.worker = worker, .query = query, .look = worker->look, .error = error};
    bool by_copy;
    return find_words(&s, number, &by_copy);
}

static doppel_status find_same_words(original_search *s) {
    dp_candidate candidate = {.evidence = dp_evidence_none()};
    doppel_status status = find_words(s, &candidate.number, &s->finding->by_copy);
    if (status != DOPPEL_OK || !candidate.number)
        return status;
    candidate.evidence.same_digest = true;
    s->finding->candidates++;
    consider(s, &candidate);
    return DOPPEL_OK;
}

static doppel_status find_by_distance(original_search *s) {
    doppel_matches *near = &s->worker->near;
    doppel_status status =
        s->look->kind->find_near(s->look, s->query->fingerprint, s->engine->rules.distance, near, s->error);
    if (status != DOPPEL_OK)
        return status;
    s->finding->candidates += near->candidates;
    for (size_t i = 0; i < near->count && status == DOPPEL_OK; i++) {
        bool does;
        if (s->finding->reason != DP_UNIQUE && near->match[i].distance > s->finding->best.evidence.distance)
            break;
        status = counts(s, near->match[i].owner, &does);
        if (status != DOPPEL_OK || !does)
            continue;
        dp_candidate candidate = {.number = near->match[i].owner, .evidence = dp_evidence_none(), .content = true};
        candidate.evidence.distance = near->match[i].distance;
        consider(s, &candidate);
    }
    return status;
}

/* ---- sets and samples ---- */

doppel_status dp_read_set(dp_worker *worker, uint64_t number, const uint64_t **set, size_t *count,
                          doppel_error *error) {
    doppel_slice bytes;
    doppel_status status = dp_look_read(worker->look, DP_PART_SET, number, &bytes, error);
    *set = NULL;
    *count = 0;
    if (status != DOPPEL_OK || !bytes.data)
        return status;
    *count = bytes.length / sizeof **set;
    if (!dp_reserve(&worker->set, &worker->set_room, *count + 1, sizeof *worker->set))
        return dp_no_memory(error);
    for (size_t i = 0; i < *count; i++)
        worker->set[i] = dp_load64(bytes.data + 8 * i);
    *set = worker->set;
    return DOPPEL_OK;
}

doppel_status dp_read_sample(dp_worker *worker, uint64_t number, doppel_slice *sample, doppel_error *error) {
    doppel_status status = dp_look_read(worker->look, DP_PART_SET, number, sample, error);
    if (status != DOPPEL_OK || !sample->data || dp_bottom_is_valid(*sample))
        return status;
    *sample = (doppel_slice){NULL, 0};
    return dp_look_nonsense(worker->look, "sample", number, "makes no sense", error);
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

/* The same by samples, where samples are kept. */
static doppel_status measure_samples(original_search *s, uint64_t number, double least, doppel_evidence *evidence) {
    doppel_slice mine = s->query->sample, sample;
    doppel_status status = dp_read_sample(s->worker, number, &sample, s->error);
    if (status != DOPPEL_OK || !mine.data || !sample.data)
        return status;
    dp_features features;
    if (s->filtering && read_features(s->worker, sample, &features))
        s->look->kind->keep_features(s->look, number, &features);
    double x = (double)dp_bottom_count(sample), y = (double)dp_bottom_count(mine);
    if ((x < y ? x / y : y / x) < least)
        return DOPPEL_OK;
    evidence->similarity = dp_bottom_similarity(mine, sample, s->engine->sketching.sample);
    evidence->containment = dp_bottom_containment(mine, sample, evidence->similarity);
    return DOPPEL_OK;
}

/* The similarity of the query's set and a stored one; NaN members stay when it has none. */
static doppel_status measure_sets(original_search *s, uint64_t number, double least, doppel_evidence *evidence) {
    const dp_query *q = s->query;
    const uint64_t *set;
    size_t count;
    if (s->engine->sketching.sample)
        return measure_samples(s, number, least, evidence);
    doppel_status status = dp_read_set(s->worker, number, &set, &count, s->error);
    if (status != DOPPEL_OK || !set || !count || !q->set_count)
        return status;
    if (s->filtering)
        s->look->kind->keep_features(s->look, number, &(dp_features){.set = set, .count = count});
    double x = (double)count, y = (double)q->set_count;
    if ((x < y ? x / y : y / x) < least)
        return DOPPEL_OK;
    size_t shared = doppel_set_shared(q->set, q->set_count, set, count);
    evidence->similarity = (double)shared / (double)(count + q->set_count - shared);
    evidence->containment = (double)shared / y;
    evidence->verified = true;
    return DOPPEL_OK;
}

/* Drops those that cannot be near, by what is kept of them. */
static void drop_far(original_search *s, dp_numbers *banded) {
    const dp_query *q = s->query;
    dp_features features = {.set = q->set, .count = q->set_count};
    bool sampled = s->engine->sketching.sample;
    if (sampled ? q->sample.data && read_features(s->worker, q->sample, &features) : q->set_count > 0)
        s->look->kind->sift(s->look, &features, s->engine->rules.similarity, banded);
}

/* Of many that share a band, such as the pages of one template, each set is read once: what is kept of it in memory
 * then rules most of them out. */
static doppel_status find_by_similarity(original_search *s) {
    dp_numbers *banded = &s->worker->banded;
    doppel_status status = s->look->kind->find_bands(s->look, s->query, banded, s->error);
    s->filtering = status == DOPPEL_OK && banded->count > s->engine->filter_above && s->look->kind->sift;
    if (s->filtering)
        drop_far(s, banded);
    for (size_t i = 0; status == DOPPEL_OK && i < banded->count; i++) {
        bool does;
        status = counts(s, banded->number[i], &does);
        if (status != DOPPEL_OK || !does)
            continue;
        dp_candidate candidate = {.number = banded->number[i], .evidence = dp_evidence_none(), .content = true};
        s->finding->candidates++;
        status = measure_sets(s, candidate.number, s->engine->rules.similarity, &candidate.evidence);
        if (status == DOPPEL_OK && !isnan(candidate.evidence.similarity))
            consider(s, &candidate);
    }
    return status;
}

/* ---- titles ---- */

/* The best title; where contents can veto, the best whose document is not too unlike: so those that are similar enough
 * are tried in order. A document with too few words has no set: nothing is measured, and nothing vetoed. */
static doppel_status find_same_title(original_search *s) {
    const dp_rules *rules = &s->engine->rules;
    bool veto = rules->title_veto && s->query->content;
    dp_title_hits *hits = &s->worker->title_hits;
    const dp_title_query query = {.title = s->query->title_key, .share = s->engine->options.title_share, .best = !veto};
    if (!rules->titles || !s->query->title_key.length)
        return DOPPEL_OK;
    doppel_status status = s->look->kind->find_titles(s->look, &query, hits, s->error);
    if (status != DOPPEL_OK)
        return status;
    s->finding->candidates += hits->candidates;
    for (size_t i = 0; i < hits->count && status == DOPPEL_OK && s->finding->reason == DP_UNIQUE; i++) {
        dp_candidate candidate = {.number = hits->hit[i].number, .evidence = dp_evidence_none(), .title = true};
        bool does;
        candidate.evidence.title_similarity = hits->hit[i].similarity;
        status = counts(s, candidate.number, &does);
        if (status == DOPPEL_OK && does && veto)
            status = measure_sets(s, candidate.number, 0, &candidate.evidence);
        if (status == DOPPEL_OK && does)
            consider(s, &candidate);
    }
    return status;
}

/* ---- all together ---- */

static bool same_name(doppel_slice a, doppel_slice b) {
    return a.length && a.length == b.length && !memcmp(a.data, b.data, a.length);
}

/* What can be measured by the original's trace alone; by_copy: the content is that of a copy of it, word for word. */
static doppel_status measure_trace(const dp_query *q, const dp_trace *trace, bool by_copy, doppel_evidence *e) {
    static const uint8_t none[32];
    bool words = memcmp(trace->digest, none, sizeof none) != 0;
    e->same_digest = by_copy || (q->has_digest && !memcmp(q->digest, trace->digest, sizeof trace->digest));
    if ((q->has_digest || q->content) && (words || trace->content))
        e->distance = by_copy ? 0 : doppel_distance128(q->fingerprint, trace->fingerprint);
    if (e->same_digest) {
        e->similarity = e->containment = 1;
        e->verified = true;
    }
    if (!q->title_key.length || !trace->title.length || e->title_similarity == e->title_similarity)
        return DOPPEL_OK;
    return doppel_edit_similarity(q->title_key.data, q->title_key.length, trace->title.data, trace->title.length, 0,
                                  &e->title_similarity);
}

/* Measures on the original what has not been yet; false in *found: it is gone. */
static doppel_status complete(original_search *s, bool *found) {
    const dp_query *q = s->query;
    doppel_evidence *e = &s->finding->best.evidence;
    dp_trace trace;
    dp_record record;
    uint64_t number = s->finding->best.number;
    doppel_status status = dp_look_trace(s->look, number, &trace, found, s->error);
    if (status == DOPPEL_OK && *found)
        status = dp_look_record(s->look, number, &record, found, s->error);
    if (status != DOPPEL_OK || !*found)
        return status;
    s->finding->original_id = record.id;
    s->finding->origin = record.origin;
    e->same_url = e->same_url || same_name(q->canonical, record.canonical);
    status = measure_trace(q, &trace, s->finding->by_copy, e);
    if (status == DOPPEL_OK && s->engine->rules.by_similarity && isnan(e->similarity) && q->content && trace.content)
        status = measure_sets(s, number, 0, e);
    return status == DOPPEL_ERROR_MEMORY ? dp_no_memory(s->error) : status;
}

static doppel_status find_once(original_search *s) {
    const dp_query *q = s->query;
    dp_original *f = s->finding;
    f->reason = DP_UNIQUE;
    f->by_copy = false;
    doppel_status status = find_same_url(s);
    if (status == DOPPEL_OK && f->reason == DP_UNIQUE)
        status = find_same_words(s);
    if (status == DOPPEL_OK && f->reason == DP_UNIQUE && q->content)
        status = s->engine->rules.by_similarity ? find_by_similarity(s) : find_by_distance(s);
    if (status == DOPPEL_OK && f->reason == DP_UNIQUE)
        status = find_same_title(s);
    return status;
}

doppel_status dp_find(doppel_engine *engine, dp_worker *worker, const dp_query *query, dp_original *finding,
                      doppel_error *error) {
    original_search s = {
        .engine = engine, .worker = worker, .query = query, .look = worker->look, .finding = finding, .error = error};
    *finding = (dp_original){.reason = DP_UNIQUE};
    finding->best.evidence = dp_evidence_none();
    doppel_status status;
    bool found;
    do {
        found = true;
        status = find_once(&s);
        if (status == DOPPEL_OK && finding->reason != DP_UNIQUE)
            status = complete(&s, &found);
        if (!found)
            s.lost[s.lost_count++] = finding->best.number;
    } while (status == DOPPEL_OK && !found && s.lost_count < LOST);
    if (!found) {
        finding->reason = DP_UNIQUE;
        finding->best.evidence = dp_evidence_none();
    }
    return status;
}
