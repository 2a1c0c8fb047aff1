/* group.c - which documents stay.
 *
 * In the order of keeping, a document stays unless it is near one that stays already. Only those that stay are looked
 * at again: a bucket lists them, so that a page with a million near copies costs one comparison a copy; where many
 * stay, the few that may be near are found otherwise (crowd.h). Documents with the same URL, or the same words, need no
 * list: the first one that stays is what the others are copies of; with `across` also the first of another host.
 *
 * Documents that no bucket, URL or text connects know nothing of each other, so connected ones (components) are decided
 * on different threads, and the outcome does not depend on who does it. */
#include "batch/group.h"

#include <math.h>
#include <stdlib.h>

void dp_deciding_settle(const dp_deciding *g, uint32_t d, uint32_t original, dp_reason reason,
                        const doppel_evidence *evidence) {
    double similarity = dp_decide_similarity(reason, evidence);
    g->batch->original[d] = original;
    g->batch->reason[d] = (uint8_t)reason;
    g->batch->similarity[d] = isnan(similarity) ? -1 : (float)similarity;
}

/* ---- one document ---- */

/* The best original so far; DP_UNIQUE: none. */
typedef struct choice {
    uint32_t original;
    dp_reason reason;
    dp_candidate candidate;
} choice;

/* Takes a document that stays for the original, if it is one and a better one than that before it. Of equally good
 * ones the first in the order of keeping is. */
static void consider(const dp_deciding *g, uint32_t original, dp_candidate *candidate, choice *best) {
    dp_reason reason = dp_decide(&g->rules, candidate);
    candidate->number = dp_rank(&g->order, original);
    if (reason != DP_UNIQUE && dp_decide_stronger(&g->rules, candidate, reason, &best->candidate, best->reason))
        *best = (choice){original, reason, *candidate};
}

/* The first one that stays of a class, which d may be a copy of. */
static uint32_t kept_of(const dp_deciding *g, const dp_kept *kept, uint32_t class, uint32_t d) {
    for (int i = 0; i < 2 && kept->first[i]; i++) {
        uint32_t k = kept->first[i][class];
        if (k != DP_NO_DOCUMENT && dp_batch_allows(g->batch, k, d))
            return k;
    }
    return DP_NO_DOCUMENT;
}

/* Notes one that stays; false when its class needs no more of them. */
static bool keep_in(const dp_deciding *g, const dp_kept *kept, uint32_t class, uint32_t d) {
    int i = kept->first[0][class] == DP_NO_DOCUMENT ? 0 : 1;
    if (i && (!kept->first[1] || kept->first[1][class] != DP_NO_DOCUMENT ||
              !dp_batch_allows(g->batch, kept->first[0][class], d)))
        return false;
    kept->first[i][class] = d;
    return true;
}

/* By URL, else by words. */
static void find_same(const dp_deciding *g, uint32_t d, choice *best) {
    const doppel_batch *batch = g->batch;
    bool has_digest = dp_doc_has_digest(&batch->docs[d]);
    uint32_t twin = batch->docs[d].twin, class = g->url_class ? g->url_class[d] : DP_NO_DOCUMENT;
    uint32_t url = class != DP_NO_DOCUMENT ? kept_of(g, &g->kept_url, class, d) : DP_NO_DOCUMENT;
    uint32_t original = url == DP_NO_DOCUMENT && has_digest ? kept_of(g, &g->kept_twin, twin, d) : url;
    if (original == DP_NO_DOCUMENT)
        return;
    dp_candidate candidate = {.evidence = dp_evidence_none()};
    candidate.evidence.same_url = url != DP_NO_DOCUMENT;
    candidate.evidence.same_digest = has_digest && batch->docs[original].twin == twin;
    if (candidate.evidence.same_digest)
        candidate.evidence.similarity = 1;
    consider(g, original, &candidate, best);
}

/* Of some that stay, the nearest. */
static doppel_status compare(const dp_decider *w, uint32_t d, const uint32_t *kept, size_t count, choice *best) {
    dp_deciding *g = w->g;
    for (size_t i = 0; i < count; i++) {
        uint32_t k = kept[i];
        dp_candidate candidate;
        if (g->stamp[k] == d + 1 || !dp_batch_allows(g->batch, k, d))
            continue;
        g->stamp[k] = d + 1;
        atomic_fetch_add_explicit(&g->candidates, 1, memory_order_relaxed);
        doppel_status status = dp_verify(w->finder.verifier, k, d, &candidate);
        if (status != DOPPEL_OK)
            return status;
        consider(g, k, &candidate, best);
    }
    return DOPPEL_OK;
}

/* The same in the buckets that d looks at, either the crowded ones or the others. */
static doppel_status compare_buckets(const dp_decider *w, uint32_t d, bool crowded, choice *best) {
    const dp_deciding *g = w->g;
    uint32_t of = dp_looks_of(&g->looks, g->batch->docs[d].twin);
    doppel_status status = DOPPEL_OK;
    for (uint64_t i = g->looks.start[of]; i < g->looks.start[of + 1] && status == DOPPEL_OK; i++) {
        uint32_t b = g->looks.bucket[i];
        if (dp_decider_crowded(w, b) == crowded)
            status = compare(w, d, dp_deciding_bucket(g, b), g->fill[b], best);
    }
    return status;
}

/* By content: the nearest of those that stay. */
static doppel_status find_near(dp_decider *w, uint32_t d, choice *best) {
    bool found = true;
    doppel_status status = compare_buckets(w, d, false, best);
    if (status != DOPPEL_OK || !w->crowd)
        return status;
    if ((status = dp_decider_find(w, d, &found)) != DOPPEL_OK)
        return status;
    return found ? compare(w, d, w->finder.found, w->finder.found_count, best) : compare_buckets(w, d, true, best);
}

/* What stays and has a title of this class. */
static void consider_title(const dp_deciding *g, uint32_t d, uint32_t class, double similarity, choice *best) {
    uint32_t original = kept_of(g, &g->kept_title, class, d);
    dp_candidate candidate = {.evidence = dp_evidence_none(), .title = true};
    candidate.evidence.title_similarity = similarity;
    if (original != DP_NO_DOCUMENT)
        consider(g, original, &candidate, best);
}

/* By title: the most similar of those that stay. */
static void find_title(const dp_deciding *g, uint32_t d, choice *best) {
    uint32_t class = g->titles.of ? g->titles.of[d] : DP_NO_DOCUMENT;
    if (class == DP_NO_DOCUMENT)
        return;
    consider_title(g, d, class, 1, best);
    for (uint64_t i = g->titles.start[class]; i < g->titles.start[class + 1]; i++)
        consider_title(g, d, g->titles.near[i], g->titles.similarity[i], best);
}

/* Notes that d stays, where others will look. Of those with the same words one is enough, which is why a bucket has
 * room for them; with `across`, one more of another scope. */
static doppel_status keep(dp_decider *w, uint32_t d) {
    const dp_deciding *g = w->g;
    const doppel_batch *batch = g->batch;
    uint32_t twin = batch->docs[d].twin;
    if (g->url_class && g->url_class[d] != DP_NO_DOCUMENT)
        keep_in(g, &g->kept_url, g->url_class[d], d);
    if (g->titles.of && g->titles.of[d] != DP_NO_DOCUMENT)
        keep_in(g, &g->kept_title, g->titles.of[d], d);
    if (dp_doc_has_digest(&batch->docs[d]) && keep_in(g, &g->kept_twin, twin, d))
        return dp_decider_enter(w, d);
    return DOPPEL_OK;
}

/* Kind after kind, until one answers. */
static doppel_status find_original(dp_decider *w, uint32_t d, choice *best) {
    doppel_status status = DOPPEL_OK;
    find_same(w->g, d, best);
    if (best->reason == DP_UNIQUE)
        status = find_near(w, d, best);
    if (status == DOPPEL_OK && best->reason == DP_UNIQUE)
        find_title(w->g, d, best);
    return status;
}

static doppel_status decide(dp_decider *w, uint32_t d) {
    doppel_batch *batch = w->g->batch;
    choice best = {.reason = DP_UNIQUE};
    doppel_status status = d >= batch->known ? find_original(w, d, &best) : DOPPEL_OK;
    if (status != DOPPEL_OK)
        return status;
    if (best.reason == DP_UNIQUE)
        return keep(w, d);
    dp_deciding_settle(w->g, d, best.original, best.reason, &best.candidate.evidence);
    return DOPPEL_OK;
}

/* ---- components on threads ---- */

/* The next documents to decide: whole components, of some hundred documents together. */
static bool take(dp_deciding *g, size_t *from, size_t *to) {
    enum { SOME = 256 };
    pthread_mutex_lock(&g->lock);
    *from = *to = g->next;
    while (*to < g->entries && (*to - *from < SOME || g->entry[*to] >> 32 == g->entry[*to - 1] >> 32))
        ++*to;
    g->next = *to;
    bool more = *to > *from && g->status == DOPPEL_OK;
    if (more)
        dp_batch_tell(g->batch, "decide", g->next, g->entries);
    pthread_mutex_unlock(&g->lock);
    return more;
}

static void fail(dp_deciding *g, doppel_status status) {
    pthread_mutex_lock(&g->lock);
    g->status = status;
    pthread_mutex_unlock(&g->lock);
}

static void run(void *user, size_t thread) {
    dp_deciding *g = user;
    dp_decider w;
    doppel_status status = dp_decider_init(&w, g) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    size_t from, to;
    (void)thread;
    while (status == DOPPEL_OK && take(g, &from, &to)) {
        dp_decider_begin(&w, from, to);
        if (g->batch->options.link_any)
            status = dp_link_any(&w);
        for (; from < to && status == DOPPEL_OK && !g->batch->options.link_any; from++)
            status =
                dp_stopped(g->batch->input.stop) ? DOPPEL_ERROR_INTERRUPTED : decide(&w, dp_deciding_document(g, from));
    }
    dp_decider_free(&w);
    if (status != DOPPEL_OK)
        fail(g, status);
}

/* ---- the whole ---- */

static bool start(doppel_batch *batch) {
    size_t count = batch->count;
    free(batch->original);
    free(batch->similarity);
    free(batch->reason);
    batch->original = malloc((count + 1) * sizeof *batch->original);
    batch->similarity = malloc((count + 1) * sizeof *batch->similarity);
    batch->reason = calloc(count + 1, 1);
    if (!batch->original || !batch->similarity || !batch->reason)
        return false;
    for (size_t i = 0; i < count; i++) {
        batch->original[i] = (uint32_t)i;
        batch->similarity[i] = -1;
    }
    return true;
}

/* What stays, and the groups of more than one. */
static void count_groups(doppel_batch *batch) {
    doppel_batch_stats *stats = &batch->stats;
    stats->kept = stats->groups = 0;
    for (size_t i = batch->known; i < batch->count; i++) {
        uint32_t original = batch->original[i];
        stats->kept += original == i;
        /* The reason of one that stays serves to mark it as counted, and is cleared below. */
        if (original != i && !batch->reason[original]) {
            batch->reason[original] = DP_SAME_TITLE;
            stats->groups++;
        }
    }
    for (size_t i = 0; i < batch->count; i++)
        if (batch->original[i] == i)
            batch->reason[i] = DP_UNIQUE;
}

static doppel_status decide_all(doppel_batch *batch, doppel_error *error) {
    dp_deciding g = {.batch = batch, .rules = dp_batch_rules(batch)};
    doppel_status status = dp_batch_candidates(batch, &g.buckets, &g.looks, error);
    double begun = dp_batch_clock();
    if (status == DOPPEL_OK && batch->by & DOPPEL_BY_TITLE)
        status = dp_titles_find(batch, &g.titles, error);
    if (status == DOPPEL_OK && (!start(batch) || !dp_deciding_init(&g)))
        status = dp_no_memory(error);
    if (status == DOPPEL_OK) {
        pthread_mutex_init(&g.lock, NULL);
        dp_run_threads(batch->threads, run, &g);
        pthread_mutex_destroy(&g.lock);
        status = g.status == DOPPEL_OK ? DOPPEL_OK : dp_fail(error, g.status, "%s", doppel_status_name(g.status));
    }
    batch->decided = status == DOPPEL_OK;
    if (batch->decided)
        count_groups(batch);
    batch->stats.candidates = atomic_load(&g.candidates);
    batch->stats.verified = atomic_load(&g.verified);
    batch->stats.seconds_decide = dp_batch_clock() - begun;
    dp_deciding_free(&g);
    return status;
}

/* Groups that features are counted by are at least so alike. */
#define FRAMED 0.8

doppel_status dp_batch_prepare(doppel_batch *batch, doppel_error *error) {
    if (batch->options.boilerplate <= 0 || batch->frequent)
        return DOPPEL_OK;
    /* At a low threshold the frame alone would make one group of all, and count once. */
    double asked = batch->options.similarity;
    batch->options.similarity = asked > FRAMED ? asked : FRAMED;
    doppel_status status = decide_all(batch, error);
    batch->options.similarity = asked;
    batch->decided = false;
    return status == DOPPEL_OK ? dp_boilerplate_leave_out(batch, error) : status;
}

doppel_status doppel_batch_decide(doppel_batch *batch, doppel_error *error) {
    doppel_status status = dp_batch_prepare(batch, error);
    return status == DOPPEL_OK ? decide_all(batch, error) : status;
}
