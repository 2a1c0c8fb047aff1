/* pairs.c - every pair of near documents, in order.
 *
 * Threads take documents some at a time, and what they find is given out in order, by one of them while the others
 * continue. A document is compared with the firsts of the buckets it looks at, in large ones with those that the prefix
 * filter finds; their twins follow without a comparison. */
#include "batch/batch.h"

#include <math.h>
#include <stdlib.h>

/* Documents a thread takes at a time; and the pairs after which it gives out what it has, before the next document. */
enum { SHARE = 512, MOST_PAIRS = 1 << 16 };

/* The pairs of documents that were taken together. */
typedef struct pair_list {
    doppel_near *pair;
    size_t count, room;
} pair_list;

/* What one thread finds pairs with. */
typedef struct pair_thread {
    pair_list *list; /* of the documents at hand */
    dp_prefix_search search;
    uint64_t candidates;
} pair_thread;

typedef struct pair_search {
    doppel_batch *batch;
    dp_rules rules;
    const dp_candidates *candidates;
    const dp_pairs_wanted *wanted;
    dp_prefix_filter *filter;                    /* NULL: no bucket is large */
    uint32_t *next_twin, *next_url, *next_title; /* the next document with the same; DP_NO_DOCUMENT: none */
    pair_thread *thread;
    size_t threads;
    dp_ordered ordered;
    pair_list *list;      /* by slot */
    pthread_mutex_t lock; /* of `next` */
    size_t next;          /* the document to take next */
} pair_search;

/* ---- the pairs of one document ---- */

static bool add(const pair_search *p, pair_thread *t, const doppel_near *pair) {
    const dp_documents *d = &p->batch->documents;
    uint32_t a = (uint32_t)pair->a, b = (uint32_t)pair->b;
    pair_list *list = t->list;
    if (!dp_reserve(&list->pair, &list->room, list->count + 1, sizeof *list->pair))
        return false;
    bool have_words = dp_doc_has_words(&d->doc[a]) && dp_doc_has_words(&d->doc[b]);
    list->pair[list->count] = *pair;
    list->pair[list->count++].distance = have_words ? dp_documents_distance(d, a, b) : -1;
    return true;
}

/* Adds `from` and what follows it in a chain (NULL: nothing does), as far as it comes after a. Pairs of two known
 * documents are not wanted. */
static bool add_chain(const pair_search *p, pair_thread *t, doppel_near *pair, uint32_t from, const uint32_t *next) {
    bool added = true;
    for (; from != DP_NO_DOCUMENT && added; from = next ? next[from] : DP_NO_DOCUMENT) {
        if (from <= pair->a || from < p->batch->documents.known || !dp_batch_allows(p->batch, (uint32_t)pair->a, from))
            continue;
        pair->b = from;
        added = add(p, t, pair);
    }
    return added;
}

/* Of some firsts those that are near by content, each with its twins. */
static doppel_status compare(const pair_search *p, pair_thread *t, uint32_t a, const uint32_t *others, size_t count) {
    uint32_t twin = p->batch->documents.doc[a].twin;
    bool collapse = p->wanted->collapse;
    doppel_near pair = {.a = a};
    for (size_t i = 0; i < count; i++) {
        uint32_t k = others[i];
        dp_candidate candidate;
        if (k == twin || t->search.stamp[k] == a + 1 || (collapse && k < a))
            continue;
        t->search.stamp[k] = a + 1;
        t->candidates++;
        DP_TRY(dp_verify(t->search.verifier, twin, k, false, &candidate));
        doppel_reason reason = dp_decide(&p->rules, &candidate);
        pair.reason = reason;
        pair.similarity = (double)(float)candidate.evidence.similarity; /* as doppel_batch_get gives it */
        if (reason != DOPPEL_REASON_NONE && !add_chain(p, t, &pair, k, collapse ? NULL : p->next_twin))
            return DOPPEL_ERROR_MEMORY;
    }
    return DOPPEL_OK;
}

/* The same with the buckets that a looks at, either the large ones or the others. Counts the members of the buckets
 * that are left out. */
static doppel_status compare_buckets(const pair_search *p, pair_thread *t, uint32_t a, bool large, uint64_t *left) {
    const dp_candidates *c = p->candidates;
    dp_bucket_list list = dp_buckets_of(c, p->batch->documents.doc[a].twin);
    *left = 0;
    for (size_t i = 0; i < list.count; i++) {
        uint64_t start = c->start[list.bucket[i]], end = c->start[list.bucket[i] + 1];
        if ((p->filter && dp_bucket_is_large(p->batch, c, list.bucket[i])) == large)
            DP_TRY(compare(p, t, a, c->member + start, end - start));
        else
            *left += end - start;
    }
    return DOPPEL_OK;
}

static doppel_status add_near(const pair_search *p, pair_thread *t, uint32_t a) {
    uint64_t left;
    bool found = true;
    DP_TRY(compare_buckets(p, t, a, false, &left));
    if (!left)
        return DOPPEL_OK;
    DP_TRY(dp_prefix_filter_find(p->filter, &t->search, a, left, &found));
    return found ? compare(p, t, a, t->search.found, t->search.found_count) : compare_buckets(p, t, a, true, &left);
}

/* Those with the title, or one near it. */
static bool add_titles(const pair_search *p, pair_thread *t, uint32_t a) {
    const dp_titles *titles = &p->candidates->titles;
    doppel_near pair = {.a = a, .reason = DOPPEL_REASON_TITLE, .similarity = 1};
    uint32_t class = titles->of ? titles->of[a] : DP_NO_DOCUMENT;
    if (class == DP_NO_DOCUMENT)
        return true;
    bool added = add_chain(p, t, &pair, p->next_title[a], p->next_title);
    for (uint64_t i = titles->start[class]; i < titles->start[class + 1] && added; i++) {
        pair.similarity = (double)(float)titles->similarity[i];
        added = add_chain(p, t, &pair, titles->first[titles->near[i]], p->next_title);
    }
    return added;
}

/* By the other document; of the same one, the strongest reason first. */
static int compare_pairs(const void *x, const void *y) {
    const doppel_near *a = x, *b = y;
    if (a->b != b->b)
        return a->b < b->b ? -1 : 1;
    doppel_reason reason_a = a->reason, reason_b = b->reason;
    return dp_reason_stronger(reason_b, reason_a) - dp_reason_stronger(reason_a, reason_b);
}

/* Sorts the pairs of one document, and leaves out those that were found in two ways. */
static void sort_pairs(pair_list *list, size_t from) {
    size_t kept = from;
    doppel_near *pair = list->pair;
    if (list->count > from)
        qsort(pair + from, list->count - from, sizeof *pair, compare_pairs);
    for (size_t i = from; i < list->count; i++)
        if (i == from || pair[i].b != pair[kept - 1].b)
            pair[kept++] = pair[i];
        else if (isnan(pair[kept - 1].similarity) && pair[i].reason == DOPPEL_REASON_CONTENT)
            pair[kept - 1].similarity = pair[i].similarity;
    list->count = kept;
}

/* Adds the pairs of a document with those after it, in order. */
static doppel_status find_pairs(const pair_search *p, pair_thread *t, uint32_t a) {
    size_t from = t->list->count;
    bool is_collapsed = p->wanted->collapse && p->batch->documents.doc[a].twin != a;
    doppel_near same = {.a = a, .reason = DOPPEL_REASON_CONTENT, .similarity = 1};
    doppel_near url = {.a = a, .reason = DOPPEL_REASON_URL, .similarity = NAN};
    if (!is_collapsed && !add_chain(p, t, &same, p->next_twin[a], p->next_twin))
        return DOPPEL_ERROR_MEMORY;
    if (p->next_url && !add_chain(p, t, &url, p->next_url[a], p->next_url))
        return DOPPEL_ERROR_MEMORY;
    if (!add_titles(p, t, a))
        return DOPPEL_ERROR_MEMORY;
    if (!is_collapsed)
        DP_TRY(add_near(p, t, a));
    sort_pairs(t->list, from);
    return DOPPEL_OK;
}

/* ---- on threads, in order ---- */

/* Gives what was found of the documents in a slot (dp_emit). */
static doppel_status give(void *user, size_t slot, bool finished, doppel_error *error) {
    pair_search *p = user;
    pair_list *list = &p->list[slot];
    size_t count = list->count;
    (void)error;
    list->count = 0;
    if (finished)
        dp_report_progress(&p->batch->settings, "pairs", (p->ordered.emitted + 1) * SHARE, p->batch->documents.count);
    return count ? p->wanted->pairs(list->pair, count, p->wanted->user) : DOPPEL_OK;
}

/* Takes the next documents, up to *to. False: there are none, or the work is over. */
static bool take(pair_search *p, pair_thread *t, size_t *from, size_t *to, uint64_t *number) {
    size_t slot, count = p->batch->documents.count;
    pthread_mutex_lock(&p->lock);
    bool more = p->next < count && dp_ordered_wait(&p->ordered, &slot);
    if (more) {
        *number = dp_ordered_take(&p->ordered);
        *from = p->next;
        *to = p->next = count - p->next < SHARE ? count : p->next + SHARE;
        t->list = &p->list[slot];
    }
    pthread_mutex_unlock(&p->lock);
    return more;
}

static doppel_status find_some(pair_search *p, pair_thread *t, size_t from, size_t to, uint64_t number) {
    for (size_t a = from; a < to; a++) {
        if (dp_stopped(p->batch->settings.input.stop) || dp_ordered_over(&p->ordered))
            return DOPPEL_ERROR_INTERRUPTED;
        DP_TRY(find_pairs(p, t, (uint32_t)a));
        if (t->list->count >= MOST_PAIRS)
            DP_TRY(dp_ordered_flush(&p->ordered, number));
    }
    return DOPPEL_OK;
}

static void find_on_thread(void *user, size_t thread) {
    pair_search *p = user;
    pair_thread *t = &p->thread[thread];
    size_t from, to;
    uint64_t number;
    while (take(p, t, &from, &to, &number)) {
        doppel_status status = find_some(p, t, from, to, number);
        if (status == DOPPEL_OK)
            dp_ordered_finish(&p->ordered, number);
        else
            dp_ordered_fail(&p->ordered, status, NULL);
    }
}

/* Lists all that look at large buckets, if there are such. */
static doppel_status make_filter(pair_search *p) {
    const doppel_batch *batch = p->batch;
    const dp_key_rows *rows = &batch->rows;
    dp_prefix_search *search = &p->thread->search;
    uint32_t b = 0;
    while (b < p->candidates->count && !dp_bucket_is_large(batch, p->candidates, b))
        b++;
    if (!batch->settings.has_sets || b == p->candidates->count)
        return DOPPEL_OK;
    DP_TRY(dp_prefix_filter_create(batch, p->candidates, search, rows->document, rows->count, &p->filter));
    for (size_t i = 0; i < rows->count; i++)
        DP_TRY(dp_prefix_filter_add(p->filter, search, rows->document[i]));
    return DOPPEL_OK;
}

static doppel_status give_all(pair_search *p, doppel_error *error) {
    size_t slots = 2 * p->threads;
    doppel_status status = make_filter(p);
    if (status == DOPPEL_OK && !(p->list = calloc(slots, sizeof *p->list)))
        status = DOPPEL_ERROR_MEMORY;
    DP_THEN(status, dp_ordered_init(&p->ordered, slots, give, p));
    if (status != DOPPEL_OK)
        return dp_fail(error, status, "%s", doppel_status_name(status));
    pthread_mutex_init(&p->lock, NULL);
    dp_run_threads(p->threads, find_on_thread, p);
    pthread_mutex_destroy(&p->lock);
    return dp_ordered_end(&p->ordered, error);
}

/* ---- the whole ---- */

/* next[d]: the next document of d's class, where class_of[d] is below `count`; NULL: no memory. */
static uint32_t *make_chain(size_t count, const uint32_t *class_of) {
    uint32_t *head = malloc((count + 1) * sizeof *head), *next = malloc((count + 1) * sizeof *next);
    if (!head || !next) {
        free(head);
        free(next);
        return NULL;
    }
    memset(head, 255, count * sizeof *head); /* DP_NO_DOCUMENT */
    for (size_t d = count; d-- > 0;) {
        next[d] = class_of[d] == DP_NO_DOCUMENT ? DP_NO_DOCUMENT : head[class_of[d]];
        if (class_of[d] != DP_NO_DOCUMENT)
            head[class_of[d]] = (uint32_t)d;
    }
    free(head);
    return next;
}

static uint32_t *make_twin_chain(const dp_documents *d) {
    uint32_t *twin = malloc((d->count + 1) * sizeof *twin);
    for (size_t i = 0; twin && i < d->count; i++)
        twin[i] = dp_doc_has_digest(&d->doc[i]) ? d->doc[i].twin : DP_NO_DOCUMENT;
    uint32_t *next = twin ? make_chain(d->count, twin) : NULL;
    free(twin);
    return next;
}

/* Each thread has a stamp for every document: as many threads as fit into half of the memory that is left. */
static size_t thread_count(const doppel_batch *batch) {
    uint64_t most = dp_memory_left(batch) / 2 / (batch->documents.count * sizeof(uint32_t) + 1);
    size_t threads = batch->settings.threads;
    return threads <= most ? threads : most ? (size_t)most : 1;
}

static bool init(pair_search *p) {
    const dp_candidates *c = p->candidates;
    size_t count = p->batch->documents.count, threads = p->threads = thread_count(p->batch);
    if (!(p->next_twin = make_twin_chain(&p->batch->documents)) ||
        (c->url_class && !(p->next_url = make_chain(count, c->url_class))) ||
        (c->titles.of && !(p->next_title = make_chain(count, c->titles.of))) ||
        !(p->thread = calloc(threads, sizeof *p->thread)))
        return false;
    for (size_t t = 0; t < threads; t++) {
        dp_prefix_search *search = &p->thread[t].search;
        search->verifier = dp_verifier_create(p->batch);
        search->memory = dp_memory_left(p->batch);
        search->stamp = calloc(count + 1, sizeof *search->stamp);
        if (!search->verifier || !search->stamp)
            return false;
    }
    return true;
}

static void finish(pair_search *p) {
    doppel_batch_stats *stats = &p->batch->stats;
    stats->candidates = stats->verified = 0;
    for (size_t i = 0; p->thread && i < p->threads; i++) {
        pair_thread *t = &p->thread[i];
        stats->candidates += t->candidates;
        stats->verified += t->search.verifier ? dp_verifier_count(t->search.verifier) : 0;
        dp_verifier_free(t->search.verifier);
        dp_prefix_search_free(&t->search);
        free(t->search.stamp);
    }
    for (size_t i = 0; p->list && i < 2 * p->threads; i++)
        free(p->list[i].pair);
    free(p->list);
    dp_prefix_filter_free(p->filter);
    free(p->thread);
    free(p->next_twin);
    free(p->next_url);
    free(p->next_title);
}

doppel_status dp_pairs(doppel_batch *batch, const dp_candidates *candidates, const dp_pairs_wanted *wanted,
                       doppel_error *error) {
    pair_search p = {
        .batch = batch, .rules = dp_settings_rules(&batch->settings), .candidates = candidates, .wanted = wanted};
    doppel_status status = init(&p) ? give_all(&p, error) : dp_no_memory(error);
    finish(&p);
    return status;
}
