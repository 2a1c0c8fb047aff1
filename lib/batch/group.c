/* group.c - which documents are kept.
 *
 * In the order of keeping, a document is kept unless it is near one that is kept already. Only kept documents are
 * compared with: a bucket lists them, so that a page with a million near copies costs one comparison per copy; where a
 * bucket has many kept documents, the prefix filter finds the few that may be near. Documents with the same URL, or the
 * same words, need no list: the others are copies of the first kept one; with `across` also of the first of another
 * host.
 *
 * With `link_any`, everything that is near any document of a group belongs to it, so that chains are one group.
 *
 * Documents that no bucket, URL, title or text connects do not affect each other, so components of connected ones are
 * decided on different threads, and the outcome does not depend on which thread does it. */
#include "batch/batch.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* The order of keeping. Both NULL: by number. */
typedef struct keep_order {
    uint32_t *document; /* by rank */
    uint32_t *rank;     /* by document */
} keep_order;

/* Of each class, by its first document: the first that is kept, and (with `across`) the first of another scope. */
typedef struct kept_of_class {
    uint32_t *first[2]; /* NULL: not needed */
} kept_of_class;

typedef struct grouping {
    doppel_batch *batch;
    dp_rules rules;
    dp_candidates *candidates;
    uint32_t *listed; /* of each bucket, the kept ones: fill[b] of them, with room for `width` a member */
    uint64_t width;
    uint32_t *fill;
    keep_order order;
    kept_of_class kept_url, kept_twin, kept_title;
    uint32_t *stamp; /* by document: the document that looked at it last, + 1 */
    /* With link_any, else NULL: a document of the same group, which is led by its first in the order of keeping. */
    uint32_t *chain;
    bool *whole; /* with link_any: by bucket, whether all its documents are of one group */

    uint64_t *entry; /* component << 32 | rank, of documents that are connected with another */
    size_t entries, next;
    pthread_mutex_t lock; /* of `next` and `status` */
    doppel_status status;
    _Atomic uint64_t compared, verified;
} grouping;

/* What one thread decides with. */
typedef struct group_thread {
    grouping *g;
    dp_prefix_search search;
    dp_prefix_filter *filter; /* of those listed in large buckets; NULL: they are few */
    size_t from, to;          /* the entries at hand, whole components */
} group_thread;

static uint32_t rank_of(const grouping *g, uint32_t document) {
    return g->order.rank ? g->order.rank[document] : document;
}

static uint32_t document_at(const grouping *g, size_t entry) {
    uint32_t rank = (uint32_t)g->entry[entry];
    return g->order.document ? g->order.document[rank] : rank;
}

static uint32_t *listed_in(const grouping *g, uint32_t bucket) {
    return g->listed + g->candidates->start[bucket] * g->width;
}

static uint32_t twin_of(const grouping *g, uint32_t document) {
    return g->batch->documents.doc[document].twin;
}

static uint32_t url_class_of(const grouping *g, uint32_t document) {
    return g->candidates->url_class ? g->candidates->url_class[document] : DP_NO_DOCUMENT;
}

static uint32_t title_class_of(const grouping *g, uint32_t document) {
    return g->candidates->titles.of ? g->candidates->titles.of[document] : DP_NO_DOCUMENT;
}

/* Notes whose copy a document is, and why. */
static void set_original(const grouping *g, uint32_t d, uint32_t original, doppel_reason reason,
                         const doppel_evidence *evidence) {
    dp_decisions *decisions = &g->batch->decisions;
    double similarity = dp_decide_similarity(reason, evidence);
    decisions->original[d] = original;
    decisions->reason[d] = (uint8_t)reason;
    decisions->similarity[d] = isnan(similarity) ? -1 : (float)similarity;
}

/* ---- the order of keeping ---- */

static int compare_ranks(const void *x, const void *y, void *user) {
    const doppel_batch *batch = user;
    const dp_documents *d = &batch->documents;
    const dp_keep_policy *keep = &batch->settings.keep;
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    bool a_known = a < d->known, b_known = b < d->known;
    if (a_known != b_known)
        return a_known ? -1 : 1;
    if (a_known)
        return a < b ? -1 : 1;
    return dp_keep_compare(keep, &(dp_keep_place){d->ranks + a * keep->count, a},
                           &(dp_keep_place){d->ranks + b * keep->count, b});
}

static void number_documents(void *user, size_t from, size_t to) {
    const keep_order *order = user;
    for (size_t i = from; i < to; i++)
        order->document[i] = (uint32_t)i;
}

static void number_ranks(void *user, size_t from, size_t to) {
    const keep_order *order = user;
    for (size_t i = from; i < to; i++)
        order->rank[order->document[i]] = (uint32_t)i;
}

/* All ids, which are in memory while documents are ranked by them. */
typedef struct id_list {
    char *bytes;
    uint64_t *start; /* by document, and where the last one ends */
} id_list;

static doppel_slice id_of(const id_list *ids, uint32_t document) {
    return (doppel_slice){ids->bytes + ids->start[document], ids->start[document + 1] - ids->start[document]};
}

/* By their bytes: a beginning of another comes before it. */
static int compare_slices(doppel_slice a, doppel_slice b) {
    size_t shorter = a.length < b.length ? a.length : b.length;
    int order = shorter ? memcmp(a.data, b.data, shorter) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int compare_ids(const void *x, const void *y, void *user) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    int order = compare_slices(id_of(user, a), id_of(user, b));
    return order ? order : a < b ? -1 : 1;
}

static doppel_status read_ids(const doppel_batch *batch, id_list *ids) {
    const dp_documents *d = &batch->documents;
    uint64_t bytes = 0;
    if (!(ids->start = malloc((d->count + 1) * sizeof *ids->start)))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < d->count; bytes += d->doc[i++].id_length)
        ids->start[i] = bytes;
    ids->start[d->count] = bytes;
    if (!(ids->bytes = malloc(bytes + 1)))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < d->count; i++)
        DP_TRY(dp_append_file_read(&batch->journal.file, d->doc[i].id_at, ids->bytes + ids->start[i],
                                   d->doc[i].id_length, NULL));
    return DOPPEL_OK;
}

/* Gives each document the rank of its id among all ids, as its rank by `rule`; equal ids have one rank. */
static void set_id_ranks(const doppel_batch *batch, const id_list *ids, const keep_order *order, size_t rule) {
    size_t rules = batch->settings.keep.count;
    double place = 0;
    for (size_t i = 0; i < batch->documents.count; i++) {
        uint32_t document = order->document[i];
        if (i && compare_slices(id_of(ids, order->document[i - 1]), id_of(ids, document)))
            place = (double)i;
        batch->documents.ranks[document * rules + rule] = place;
    }
}

/* Ranks documents by their ids, if the policy asks for it. `order` is memory to sort in. */
static doppel_status rank_by_ids(const doppel_batch *batch, keep_order *order) {
    const dp_keep_policy *keep = &batch->settings.keep;
    size_t count = batch->documents.count, threads = batch->settings.threads, rule = 0;
    id_list ids = {0};
    while (rule < keep->count && keep->rule[rule].kind != DP_KEEP_ID)
        rule++;
    if (rule == keep->count)
        return DOPPEL_OK;
    doppel_status status = read_ids(batch, &ids);
    if (status == DOPPEL_OK) {
        dp_run_pieces(threads, count, DP_PIECE, number_documents, order);
        dp_sort_by(threads, order->document, count, order->rank, compare_ids, &ids);
        for (; rule < keep->count; rule++)
            if (keep->rule[rule].kind == DP_KEEP_ID)
                set_id_ranks(batch, &ids, order, rule);
    }
    free(ids.bytes);
    free(ids.start);
    return status;
}

static bool make_order(doppel_batch *batch, keep_order *order) {
    size_t count = batch->documents.count, threads = batch->settings.threads;
    if (!batch->settings.keep.count)
        return true;
    order->document = malloc((count + 1) * sizeof *order->document);
    order->rank = malloc((count + 1) * sizeof *order->rank);
    if (!order->document || !order->rank || rank_by_ids(batch, order) != DOPPEL_OK)
        return false;
    dp_run_pieces(threads, count, DP_PIECE, number_documents, order);
    dp_sort_by(threads, order->document, count, order->rank, compare_ranks, batch);
    dp_run_pieces(threads, count, DP_PIECE, number_ranks, order);
    return true;
}

/* ---- components: which documents are connected ----
 *
 * Sets that grow together: parent[d] is a document of the same set, of a smaller number; itself: the set is known by
 * it. Threads unite sets at the same time. What is not a root never becomes one again, and only roots get a parent, by
 * compare and exchange; so in the end every set is known by its smallest number, whatever came first. */

typedef struct components {
    grouping *g;
    _Atomic uint32_t *parent;
    atomic_uchar *connected; /* by document, whether another one is of its set */
    uint64_t *listed;        /* by piece of documents, how many are */
} components;

static uint32_t load(const _Atomic uint32_t *number) {
    return atomic_load_explicit(number, memory_order_relaxed);
}

/* Shortens paths as it goes. A parent that another thread has changed in between is as good. */
static uint32_t set_of(_Atomic uint32_t *parent, uint32_t d) {
    for (uint32_t up; (up = load(&parent[d])) != d;) {
        uint32_t next = load(&parent[up]);
        if (next != up)
            atomic_compare_exchange_weak_explicit(&parent[d], &up, next, memory_order_relaxed, memory_order_relaxed);
        d = next;
    }
    return d;
}

static void unite(_Atomic uint32_t *parent, uint32_t a, uint32_t b) {
    uint32_t high;
    do {
        a = set_of(parent, a);
        b = set_of(parent, b);
        if (a == b)
            return;
        if (a > b) {
            uint32_t swap = a;
            a = b;
            b = swap;
        }
        high = b;
    } while (
        !atomic_compare_exchange_strong_explicit(&parent[b], &high, a, memory_order_relaxed, memory_order_relaxed));
}

static void begin_sets(void *user, size_t from, size_t to) {
    const components *s = user;
    for (size_t d = from; d < to; d++)
        atomic_store_explicit(&s->parent[d], (uint32_t)d, memory_order_relaxed);
}

/* Members of buckets, each with the one before it. */
static void unite_members(void *user, size_t from, size_t to) {
    const components *s = user;
    const dp_candidates *c = s->g->candidates;
    for (size_t b = dp_bucket_at(c, from), i = from; i < to; i++) {
        while (c->start[b + 1] <= i)
            b++;
        if (c->start[b] < i)
            unite(s->parent, c->member[i - 1], c->member[i]);
    }
}

/* What a document has in common with the first of its twins, of its URL and of its title; and, where a document need
 * not be in a bucket to look at it, with the buckets it looks at. */
static void unite_documents(void *user, size_t from, size_t to) {
    const components *s = user;
    const grouping *g = s->g;
    const dp_candidates *c = g->candidates;
    for (uint32_t d = (uint32_t)from; d < to; d++) {
        uint32_t url = url_class_of(g, d), title = title_class_of(g, d);
        if (twin_of(g, d) != d)
            unite(s->parent, d, twin_of(g, d));
        if (url != DP_NO_DOCUMENT && url != d)
            unite(s->parent, d, url);
        if (title != DP_NO_DOCUMENT)
            unite(s->parent, d, c->titles.first[title]);
        for (uint64_t i = c->looked_start[d]; c->own_first && i < c->looked_start[d + 1]; i++)
            unite(s->parent, d, c->member[c->start[c->looked[i]]]);
    }
}

static void unite_titles(void *user, size_t from, size_t to) {
    const components *s = user;
    const dp_titles *titles = &s->g->candidates->titles;
    for (size_t c = from; c < to; c++)
        for (uint64_t i = titles->start[c]; i < titles->start[c + 1]; i++)
            unite(s->parent, titles->first[c], titles->first[titles->near[i]]);
}

static void unite_all(components *s) {
    const grouping *g = s->g;
    size_t threads = g->batch->settings.threads, count = g->batch->documents.count;
    dp_run_pieces(threads, count, DP_PIECE, begin_sets, s);
    dp_run_pieces(threads, g->candidates->member_count, DP_PIECE, unite_members, s);
    dp_run_pieces(threads, count, DP_PIECE, unite_documents, s);
    dp_run_pieces(threads, g->candidates->titles.count, DP_PIECE, unite_titles, s);
}

static void mark_connected(void *user, size_t from, size_t to) {
    const components *s = user;
    for (uint32_t d = (uint32_t)from; d < to; d++) {
        uint32_t set = set_of(s->parent, d);
        if (set == d)
            continue;
        atomic_store_explicit(&s->connected[d], 1, memory_order_relaxed);
        atomic_store_explicit(&s->connected[set], 1, memory_order_relaxed);
    }
}

static bool is_connected(const components *s, size_t d) {
    return atomic_load_explicit(&s->connected[d], memory_order_relaxed);
}

static void count_connected(void *user, size_t from, size_t to) {
    const components *s = user;
    for (size_t d = from; d < to; d++)
        s->listed[from / DP_PIECE] += is_connected(s, d);
}

static void list_connected(void *user, size_t from, size_t to) {
    const components *s = user;
    const grouping *g = s->g;
    uint64_t at = from ? s->listed[from / DP_PIECE - 1] : 0;
    for (uint32_t d = (uint32_t)from; d < to; d++)
        if (is_connected(s, d))
            g->entry[at++] = (uint64_t)set_of(s->parent, d) << 32 | rank_of(g, d);
}

/* Lists the documents that are not alone, component by component, in the order of keeping. */
static bool list_entries(components *s) {
    grouping *g = s->g;
    size_t threads = g->batch->settings.threads, count = g->batch->documents.count;
    dp_run_pieces(threads, count, DP_PIECE, mark_connected, s);
    dp_run_pieces(threads, count, DP_PIECE, count_connected, s);
    g->entries = (size_t)dp_add_up(threads, s->listed, count / DP_PIECE + 1);
    g->entry = malloc((g->entries + 1) * sizeof *g->entry);
    uint64_t *scratch = malloc((g->entries + 1) * sizeof *scratch);
    if (g->entry && scratch) {
        dp_run_pieces(threads, count, DP_PIECE, list_connected, s);
        dp_sort64_on(threads, g->entry, g->entries, scratch);
    }
    free(scratch);
    return g->entry && scratch;
}

static bool find_components(grouping *g) {
    size_t count = g->batch->documents.count;
    components s = {.g = g,
                    .parent = malloc((count + 1) * sizeof *s.parent),
                    .connected = calloc(count + 1, sizeof *s.connected),
                    .listed = calloc(count / DP_PIECE + 1, sizeof *s.listed)};
    bool found = s.parent && s.connected && s.listed;
    if (found) {
        unite_all(&s);
        found = list_entries(&s);
    }
    free(s.parent);
    free(s.connected);
    free(s.listed);
    return found;
}

/* ---- beginning and end ---- */

static void set_none(void *user, size_t from, size_t to) {
    memset((uint32_t *)user + from, 255, (to - from) * sizeof(uint32_t)); /* DP_NO_DOCUMENT */
}

static bool make_kept(const doppel_batch *batch, kept_of_class *kept) {
    size_t count = batch->documents.count;
    for (int i = 0; i < (batch->settings.options.across ? 2 : 1); i++) {
        if (!(kept->first[i] = malloc((count + 1) * sizeof **kept->first)))
            return false;
        dp_run_pieces(batch->settings.threads, count, DP_PIECE, set_none, kept->first[i]);
    }
    return true;
}

/* The members of a bucket are no longer needed: their memory is used for the kept ones. */
static bool make_lists(grouping *g) {
    dp_candidates *c = g->candidates;
    g->width = g->batch->settings.options.across ? 2 : 1;
    g->listed = realloc(c->member, (c->member_count * g->width + 1) * sizeof *g->listed);
    if (g->listed)
        c->member = NULL;
    return g->listed;
}

static void set_own(void *user, size_t from, size_t to) {
    const dp_decisions *d = user;
    for (size_t i = from; i < to; i++) {
        d->original[i] = (uint32_t)i;
        d->similarity[i] = -1;
    }
}

/* Every document is its own original at first. */
static bool init_decisions(dp_decisions *d, size_t count, size_t threads) {
    free(d->original);
    free(d->similarity);
    free(d->reason);
    d->original = malloc((count + 1) * sizeof *d->original);
    d->similarity = malloc((count + 1) * sizeof *d->similarity);
    d->reason = calloc(count + 1, 1);
    if (!d->original || !d->similarity || !d->reason)
        return false;
    dp_run_pieces(threads, count, DP_PIECE, set_own, d);
    return true;
}

static bool init_grouping(grouping *g) {
    doppel_batch *batch = g->batch;
    const dp_candidates *c = g->candidates;
    size_t count = batch->documents.count;
    /* Components first: the memory they are found with is freed before the rest is allocated. */
    if (!make_order(batch, &g->order) || !find_components(g) ||
        !init_decisions(&batch->decisions, count, batch->settings.threads))
        return false;
    g->fill = calloc(c->count + 1, sizeof *g->fill);
    g->stamp = calloc(count + 1, sizeof *g->stamp);
    if (!g->fill || !g->stamp || !make_kept(batch, &g->kept_twin) ||
        (c->url_class && !make_kept(batch, &g->kept_url)) || (c->titles.of && !make_kept(batch, &g->kept_title)))
        return false;
    if (batch->settings.options.link_any &&
        (!(g->chain = malloc((count + 1) * sizeof *g->chain)) || !(g->whole = calloc(c->count + 1, 1))))
        return false;
    return make_lists(g);
}

static void free_grouping(grouping *g) {
    free(g->order.document);
    free(g->order.rank);
    free(g->listed);
    free(g->fill);
    for (int i = 0; i < 2; i++) {
        free(g->kept_url.first[i]);
        free(g->kept_twin.first[i]);
        free(g->kept_title.first[i]);
    }
    free(g->stamp);
    free(g->chain);
    free(g->whole);
    free(g->entry);
}

/* ---- kept documents, as one thread lists them ---- */

/* With chains, this many documents of a large bucket cost as much as one comparison: most of them are known to be
 * connected. */
enum { CONNECTED = 16 };

static bool init_thread(group_thread *t, grouping *g) {
    *t = (group_thread){.g = g,
                        .search = {.verifier = dp_verifier_create(g->batch),
                                   .stamp = g->stamp,
                                   .memory = dp_memory_left(g->batch) / g->batch->settings.threads}};
    return t->search.verifier;
}

static void free_thread(group_thread *t) {
    if (t->search.verifier)
        atomic_fetch_add(&t->g->verified, dp_verifier_count(t->search.verifier));
    dp_verifier_free(t->search.verifier);
    dp_prefix_search_free(&t->search);
    dp_prefix_filter_free(t->filter);
}

/* Whether a document has been listed: with chains all firsts of their twins, else the kept ones that were first. */
static bool is_listed(const grouping *g, uint32_t d) {
    uint32_t twin = twin_of(g, d);
    if (g->chain)
        return twin == d;
    return g->kept_twin.first[0][twin] == d || (g->kept_twin.first[1] && g->kept_twin.first[1][twin] == d);
}

/* Makes a filter of what is listed up to d. */
static doppel_status make_filter(group_thread *t, uint32_t d) {
    const grouping *g = t->g;
    size_t count = t->to - t->from;
    uint32_t *documents = malloc((count + 1) * sizeof *documents);
    if (!documents)
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        documents[i] = document_at(g, t->from + i);
    doppel_status status = dp_prefix_filter_create(g->batch, g->candidates, &t->search, documents, count, &t->filter);
    for (size_t i = 0; i < count && status == DOPPEL_OK; i++) {
        if (is_listed(g, documents[i]))
            status = dp_prefix_filter_add(t->filter, &t->search, documents[i]);
        if (documents[i] == d)
            break;
    }
    free(documents);
    return status;
}

/* Lists d in the buckets it is in, and in the filter, which is made once a large bucket lists too many. */
static doppel_status list(group_thread *t, uint32_t d) {
    const grouping *g = t->g;
    dp_bucket_list buckets = dp_buckets_of(g->candidates, twin_of(g, d));
    size_t count = g->candidates->own_first && buckets.count ? 1 : buckets.count;
    bool too_many = false;
    for (size_t i = 0; i < count; i++) {
        uint32_t b = buckets.bucket[i];
        listed_in(g, b)[g->fill[b]++] = d;
        too_many |= g->fill[b] > g->batch->settings.large_bucket && dp_bucket_is_large(g->batch, g->candidates, b) &&
                    !(g->whole && g->whole[b]);
    }
    if (!g->batch->settings.has_sets)
        return DOPPEL_OK;
    if (t->filter)
        return dp_prefix_filter_add(t->filter, &t->search, d);
    return too_many ? make_filter(t, d) : DOPPEL_OK;
}

/* Whether a bucket's documents are found through the filter. */
static bool is_filtered(const group_thread *t, uint32_t bucket) {
    return t->filter && dp_bucket_is_large(t->g->batch, t->g->candidates, bucket);
}

/* The documents in large buckets that d is compared with: search.found, or, when *found is false, all of them. All
 * other buckets have been searched. */
static doppel_status find_in_large(group_thread *t, uint32_t d, bool *found) {
    const grouping *g = t->g;
    dp_bucket_list buckets = dp_buckets_of(g->candidates, twin_of(g, d));
    uint64_t members = 0;
    for (size_t i = 0; i < buckets.count; i++)
        if (is_filtered(t, buckets.bucket[i]))
            members += g->fill[buckets.bucket[i]];
    t->search.found_count = 0;
    *found = true;
    if (!members)
        return DOPPEL_OK;
    return dp_prefix_filter_find(t->filter, &t->search, d, g->chain ? members / CONNECTED : members, found);
}

/* ---- one document ---- */

/* The best original so far; DOPPEL_REASON_NONE: none. */
typedef struct choice {
    uint32_t original;
    doppel_reason reason;
    dp_candidate candidate;
} choice;

/* Makes a kept document the original, if it qualifies and is better than the best so far; of equally good ones, the
 * first in the order of keeping. With only_contained, one that lacks too much of the copy does not qualify. */
static void consider(const grouping *g, uint32_t original, dp_candidate *candidate, choice *best) {
    doppel_reason reason = dp_decide(&g->rules, candidate);
    double least = g->batch->settings.options.only_contained;
    candidate->number = rank_of(g, original);
    if (reason != DOPPEL_REASON_NONE && (least <= 0 || candidate->evidence.containment >= least) &&
        dp_decide_stronger(&g->rules, candidate, reason, &best->candidate, best->reason))
        *best = (choice){original, reason, *candidate};
}

/* The first kept document of a class that d may be a copy of. */
static uint32_t kept_of(const grouping *g, const kept_of_class *kept, uint32_t class, uint32_t d) {
    for (int i = 0; i < 2 && kept->first[i] && class != DP_NO_DOCUMENT; i++) {
        uint32_t k = kept->first[i][class];
        if (k != DP_NO_DOCUMENT && dp_batch_allows(g->batch, k, d))
            return k;
    }
    return DP_NO_DOCUMENT;
}

/* Notes a kept document; false when its class, if it has one, needs no more of them. */
static bool keep_in(const grouping *g, const kept_of_class *kept, uint32_t class, uint32_t d) {
    if (class == DP_NO_DOCUMENT)
        return false;
    int i = kept->first[0][class] == DP_NO_DOCUMENT ? 0 : 1;
    if (i && (!kept->first[1] || kept->first[1][class] != DP_NO_DOCUMENT ||
              !dp_batch_allows(g->batch, kept->first[0][class], d)))
        return false;
    kept->first[i][class] = d;
    return true;
}

/* The class of those with the words of a document. */
static uint32_t words_class_of(const grouping *g, uint32_t d) {
    return dp_doc_has_digest(&g->batch->documents.doc[d]) ? twin_of(g, d) : DP_NO_DOCUMENT;
}

/* By URL, else by words. */
static void find_same(const grouping *g, uint32_t d, choice *best) {
    uint32_t words = words_class_of(g, d), url = kept_of(g, &g->kept_url, url_class_of(g, d), d);
    uint32_t original = url == DP_NO_DOCUMENT ? kept_of(g, &g->kept_twin, words, d) : url;
    if (original == DP_NO_DOCUMENT)
        return;
    dp_candidate candidate = {.evidence = dp_evidence_none()};
    candidate.evidence.same_url = url != DP_NO_DOCUMENT;
    candidate.evidence.same_digest = words != DP_NO_DOCUMENT && twin_of(g, original) == words;
    if (candidate.evidence.same_digest)
        candidate.evidence.similarity = candidate.evidence.containment = 1;
    consider(g, original, &candidate, best);
}

/* The nearest of some kept documents. */
static doppel_status compare(const group_thread *t, uint32_t d, const uint32_t *kept, size_t count, choice *best) {
    grouping *g = t->g;
    for (size_t i = 0; i < count; i++) {
        uint32_t k = kept[i];
        dp_candidate candidate;
        if (g->stamp[k] == d + 1 || !dp_batch_allows(g->batch, k, d))
            continue;
        g->stamp[k] = d + 1;
        atomic_fetch_add_explicit(&g->compared, 1, memory_order_relaxed);
        DP_TRY(dp_verify(t->search.verifier, k, d, false, &candidate));
        consider(g, k, &candidate, best);
    }
    return DOPPEL_OK;
}

/* The same in the buckets that d looks at, either the large ones or the others. */
static doppel_status compare_buckets(const group_thread *t, uint32_t d, bool large, choice *best) {
    const grouping *g = t->g;
    dp_bucket_list buckets = dp_buckets_of(g->candidates, twin_of(g, d));
    for (size_t i = 0; i < buckets.count; i++) {
        uint32_t b = buckets.bucket[i];
        if (is_filtered(t, b) == large)
            DP_TRY(compare(t, d, listed_in(g, b), g->fill[b], best));
    }
    return DOPPEL_OK;
}

/* By content: the nearest kept document. */
static doppel_status find_near(group_thread *t, uint32_t d, choice *best) {
    bool found = true;
    DP_TRY(compare_buckets(t, d, false, best));
    if (!t->filter)
        return DOPPEL_OK;
    DP_TRY(find_in_large(t, d, &found));
    return found ? compare(t, d, t->search.found, t->search.found_count, best) : compare_buckets(t, d, true, best);
}

/* Kept documents with a title of this class. */
static void consider_title(const grouping *g, uint32_t d, uint32_t class, double similarity, choice *best) {
    uint32_t original = kept_of(g, &g->kept_title, class, d);
    dp_candidate candidate = {.evidence = dp_evidence_none(), .title = true};
    candidate.evidence.title_similarity = similarity;
    if (original != DP_NO_DOCUMENT)
        consider(g, original, &candidate, best);
}

/* By title: the most similar kept document. */
static void find_title(const grouping *g, uint32_t d, choice *best) {
    const dp_titles *titles = &g->candidates->titles;
    uint32_t class = title_class_of(g, d);
    if (class == DP_NO_DOCUMENT)
        return;
    consider_title(g, d, class, 1, best);
    for (uint64_t i = titles->start[class]; i < titles->start[class + 1]; i++)
        consider_title(g, d, titles->near[i], titles->similarity[i], best);
}

/* Tries each kind of evidence in order, until one finds an original. */
static doppel_status find_original(group_thread *t, uint32_t d, choice *best) {
    find_same(t->g, d, best);
    if (best->reason == DOPPEL_REASON_NONE)
        DP_TRY(find_near(t, d, best));
    if (best->reason == DOPPEL_REASON_NONE)
        find_title(t->g, d, best);
    return DOPPEL_OK;
}

/* Lists d as kept, where others will look. Of those with the same words one is enough, so a bucket has room for all;
 * with `across`, one more of another scope. */
static doppel_status keep(group_thread *t, uint32_t d) {
    const grouping *g = t->g;
    keep_in(g, &g->kept_url, url_class_of(g, d), d);
    keep_in(g, &g->kept_title, title_class_of(g, d), d);
    return keep_in(g, &g->kept_twin, words_class_of(g, d), d) ? list(t, d) : DOPPEL_OK;
}

static doppel_status decide(group_thread *t, uint32_t d) {
    choice best = {.reason = DOPPEL_REASON_NONE};
    if (d >= t->g->batch->documents.known)
        DP_TRY(find_original(t, d, &best));
    if (best.reason == DOPPEL_REASON_NONE)
        return keep(t, d);
    set_original(t->g, d, best.original, best.reason, &best.candidate.evidence);
    return DOPPEL_OK;
}

/* ---- chains ----
 *
 * Documents whose connection is known already are not compared. A bucket whose documents are all of one group is
 * skipped once a document belongs to that group. */

static uint32_t root_of(uint32_t *parent, uint32_t d) {
    while (parent[d] != d)
        d = parent[d] = parent[parent[d]];
    return d;
}

/* The group's first document in the order of keeping leads it. */
static void join_groups(const grouping *g, uint32_t a, uint32_t b) {
    a = root_of(g->chain, a);
    b = root_of(g->chain, b);
    bool first = rank_of(g, a) < rank_of(g, b);
    g->chain[first ? b : a] = first ? a : b;
}

static void join_if_allowed(const grouping *g, uint32_t a, uint32_t b) {
    if (dp_batch_allows(g->batch, a, b))
        join_groups(g, a, b);
}

/* Compares d with some that came before it. Once it belongs to the group of all of them, if they are of one (`whole`),
 * there is nothing more to learn there. */
static doppel_status link_with(const group_thread *t, uint32_t d, const uint32_t *others, size_t count, bool whole) {
    grouping *g = t->g;
    for (size_t i = 0; i < count; i++) {
        uint32_t k = others[i];
        dp_candidate candidate;
        if (!dp_batch_allows(g->batch, k, d))
            continue;
        if (root_of(g->chain, k) == root_of(g->chain, d)) {
            if (whole)
                return DOPPEL_OK;
            continue;
        }
        atomic_fetch_add_explicit(&g->compared, 1, memory_order_relaxed);
        DP_TRY(dp_verify(t->search.verifier, k, d, false, &candidate));
        if (dp_decide(&g->rules, &candidate) != DOPPEL_REASON_NONE)
            join_groups(g, k, d);
    }
    return DOPPEL_OK;
}

/* The same with the buckets that d looks at, either the large ones or the others. */
static doppel_status link_buckets(const group_thread *t, uint32_t d, bool large) {
    const grouping *g = t->g;
    dp_bucket_list buckets = dp_buckets_of(g->candidates, d);
    for (size_t i = 0; i < buckets.count; i++) {
        uint32_t b = buckets.bucket[i];
        if (is_filtered(t, b) == large)
            DP_TRY(link_with(t, d, listed_in(g, b), g->fill[b], g->whole[b]));
    }
    return DOPPEL_OK;
}

static doppel_status link_near(group_thread *t, uint32_t d) {
    bool found = true;
    DP_TRY(link_buckets(t, d, false));
    if (!t->filter)
        return DOPPEL_OK;
    DP_TRY(find_in_large(t, d, &found));
    return found ? link_with(t, d, t->search.found, t->search.found_count, false) : link_buckets(t, d, true);
}

/* Lists d in its buckets, and notes in which of them all are of one group: groups only grow, so that stays true. */
static doppel_status list_linked(group_thread *t, uint32_t d) {
    const grouping *g = t->g;
    dp_bucket_list buckets = dp_buckets_of(g->candidates, d);
    doppel_status status = list(t, d);
    for (size_t i = 0; i < buckets.count && (!i || !g->candidates->own_first); i++) {
        uint32_t b = buckets.bucket[i];
        bool same = root_of(g->chain, listed_in(g, b)[0]) == root_of(g->chain, d);
        g->whole[b] = g->fill[b] == 1 || (g->whole[b] && same);
    }
    return status;
}

/* Documents of one title, and of titles near it. */
static void link_title(const grouping *g, uint32_t d) {
    const dp_titles *titles = &g->candidates->titles;
    uint32_t class = title_class_of(g, d);
    if (class == DP_NO_DOCUMENT)
        return;
    join_if_allowed(g, titles->first[class], d);
    for (uint64_t i = titles->start[class]; i < titles->start[class + 1]; i++)
        join_if_allowed(g, titles->first[titles->near[i]], d);
}

static doppel_status link_document(group_thread *t, uint32_t d) {
    const grouping *g = t->g;
    uint32_t twin = twin_of(g, d), url = url_class_of(g, d);
    if (url != DP_NO_DOCUMENT && url != d)
        join_groups(g, url, d);
    link_title(g, d);
    if (twin != d) {
        join_groups(g, twin, d); /* near whatever its twin is near */
        return DOPPEL_OK;
    }
    DP_TRY(link_near(t, d));
    return list_linked(t, d);
}

/* How similar the titles of two documents are; NaN: they are not, or one has none that counts. */
static double title_similarity(const grouping *g, uint32_t a, uint32_t b) {
    const dp_titles *titles = &g->candidates->titles;
    uint32_t class_a = title_class_of(g, a), class_b = title_class_of(g, b);
    if (class_a == DP_NO_DOCUMENT || class_b == DP_NO_DOCUMENT)
        return NAN;
    if (class_a == class_b)
        return 1;
    for (uint64_t i = titles->start[class_a]; i < titles->start[class_a + 1]; i++)
        if (titles->near[i] == class_b)
            return titles->similarity[i];
    return NAN;
}

/* Makes the leader of the group the original, with the evidence of these two. There may be none, where only other
 * documents connect them. */
static doppel_status set_linked_original(const group_thread *t, uint32_t d) {
    const grouping *g = t->g;
    uint32_t leader = root_of(g->chain, d), url = url_class_of(g, d);
    dp_candidate candidate;
    if (leader == d || d < g->batch->documents.known)
        return DOPPEL_OK;
    DP_TRY(dp_verify(t->search.verifier, leader, d, true, &candidate));
    candidate.evidence.same_url = url != DP_NO_DOCUMENT && url == url_class_of(g, leader);
    candidate.evidence.title_similarity = title_similarity(g, d, leader);
    candidate.title = true;
    doppel_reason reason = dp_decide(&g->rules, &candidate);
    if (reason == DOPPEL_REASON_NONE)
        reason = g->batch->settings.by & DOPPEL_BY_CONTENT ? DOPPEL_REASON_CONTENT : DOPPEL_REASON_TITLE;
    set_original(g, d, leader, reason, &candidate.evidence);
    return DOPPEL_OK;
}

/* ---- components on threads ---- */

/* Decides the entries at hand, step by step. */
static doppel_status decide_entries(group_thread *t, doppel_status (*step)(group_thread *, uint32_t)) {
    for (size_t i = t->from; i < t->to; i++) {
        if (dp_stopped(t->g->batch->settings.input.stop))
            return DOPPEL_ERROR_INTERRUPTED;
        DP_TRY(step(t, document_at(t->g, i)));
    }
    return DOPPEL_OK;
}

static doppel_status link_entries(group_thread *t) {
    const grouping *g = t->g;
    for (size_t i = t->from; i < t->to; i++)
        g->chain[document_at(g, i)] = document_at(g, i);
    DP_TRY(decide_entries(t, link_document));
    for (size_t i = t->from; i < t->to; i++)
        DP_TRY(set_linked_original(t, document_at(g, i)));
    return DOPPEL_OK;
}

/* Takes the next documents to decide: whole components, of some hundred documents together. */
static bool take_entries(group_thread *t) {
    enum { SOME = 256 };
    grouping *g = t->g;
    pthread_mutex_lock(&g->lock);
    t->from = t->to = g->next;
    while (t->to < g->entries && (t->to - t->from < SOME || g->entry[t->to] >> 32 == g->entry[t->to - 1] >> 32))
        t->to++;
    g->next = t->to;
    bool more = t->to > t->from && g->status == DOPPEL_OK;
    if (more)
        dp_report_progress(&g->batch->settings, "decide", g->next, g->entries);
    pthread_mutex_unlock(&g->lock);
    dp_prefix_filter_free(t->filter);
    t->filter = NULL;
    return more;
}

static void decide_components(void *user, size_t thread) {
    grouping *g = user;
    group_thread t;
    doppel_status status = init_thread(&t, g) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    (void)thread;
    while (status == DOPPEL_OK && take_entries(&t))
        status = g->chain ? link_entries(&t) : decide_entries(&t, decide);
    free_thread(&t);
    if (status == DOPPEL_OK)
        return;
    pthread_mutex_lock(&g->lock);
    g->status = status;
    pthread_mutex_unlock(&g->lock);
}

/* ---- the whole ---- */

typedef struct group_counts {
    const doppel_batch *batch;
    _Atomic uint64_t kept, groups;
} group_counts;

/* Counts the kept documents, and the groups of more than one. The reason of a kept document marks it as counted, and is
 * cleared afterwards. */
static void count_piece(void *user, size_t from, size_t to) {
    group_counts *counts = user;
    const dp_decisions *d = &counts->batch->decisions;
    uint64_t kept = 0, groups = 0;
    for (size_t i = from; i < to; i++) {
        uint32_t original = d->original[i];
        if (i < counts->batch->documents.known)
            continue;
        kept += original == i;
        groups += original != i && !__atomic_exchange_n(&d->reason[original], DOPPEL_REASON_TITLE, __ATOMIC_RELAXED);
    }
    atomic_fetch_add(&counts->kept, kept);
    atomic_fetch_add(&counts->groups, groups);
}

static void clear_marks(void *user, size_t from, size_t to) {
    const dp_decisions *d = &((const group_counts *)user)->batch->decisions;
    for (size_t i = from; i < to; i++)
        if (d->original[i] == i)
            d->reason[i] = DOPPEL_REASON_NONE;
}

static void count_groups(doppel_batch *batch) {
    size_t threads = batch->settings.threads, count = batch->documents.count;
    group_counts counts = {.batch = batch};
    dp_run_pieces(threads, count, DP_PIECE, count_piece, &counts);
    dp_run_pieces(threads, count, DP_PIECE, clear_marks, &counts);
    batch->stats.kept = atomic_load(&counts.kept);
    batch->stats.groups = atomic_load(&counts.groups);
}

/* With keep_copies, marks the copies that are kept in addition to their originals: the first of each group. Entries of
 * a component are in the order of keeping, and groups lie within components. */
static doppel_status keep_extra_copies(grouping *g) {
    doppel_batch *batch = g->batch;
    const dp_decisions *decisions = &batch->decisions;
    uint64_t most = batch->settings.options.keep_copies;
    if (most < 2)
        return DOPPEL_OK;
    uint32_t *extra = calloc(batch->documents.count + 1, sizeof *extra); /* by original */
    if (!extra)
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < g->entries; i++) {
        uint32_t d = document_at(g, i), original = decisions->original[d];
        if (original == d || original < batch->documents.known || dp_matches_get(&batch->matches, d) ||
            extra[original] + 1 >= most)
            continue;
        extra[original]++;
        decisions->reason[d] |= DP_EXTRA_COPY;
        batch->stats.kept++;
    }
    free(extra);
    return DOPPEL_OK;
}

doppel_status dp_group(doppel_batch *batch, dp_candidates *candidates, doppel_error *error) {
    grouping g = {.batch = batch, .rules = dp_settings_rules(&batch->settings), .candidates = candidates};
    if (init_grouping(&g)) {
        pthread_mutex_init(&g.lock, NULL);
        dp_run_threads(batch->settings.threads, decide_components, &g);
        pthread_mutex_destroy(&g.lock);
    } else {
        g.status = DOPPEL_ERROR_MEMORY;
    }
    if (g.status == DOPPEL_OK) {
        count_groups(batch);
        g.status = keep_extra_copies(&g);
    }
    batch->decisions.made = g.status == DOPPEL_OK;
    batch->stats.candidates = atomic_load(&g.compared);
    batch->stats.verified = atomic_load(&g.verified);
    free_grouping(&g);
    return g.status == DOPPEL_OK ? DOPPEL_OK : dp_fail(error, g.status, "%s", doppel_status_name(g.status));
}
