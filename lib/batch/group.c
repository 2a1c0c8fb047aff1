/* group.c - which documents stay.
 *
 * In the order of keeping, a document stays unless it is near one that stays already. Only those that stay are looked
 * at again: a bucket lists them, so that a page with a million near copies costs one comparison a copy; where many
 * stay, the few that may be near are found otherwise (prefix_filter.c). Documents with the same URL, or the same words,
 * need no list: the first one that stays is what the others are copies of; with `across` also the first of another
 * host.
 *
 * Documents that no bucket, URL or text connects know nothing of each other, so connected ones (components) are decided
 * on different threads, and the outcome does not depend on who does it. */
#include "batch/batch.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* Of each class, by its first document: the first that stays, and (with `across`) the first of another scope. */
typedef struct dp_kept {
    uint32_t *first[2]; /* NULL: not needed */
} dp_kept;

typedef struct dp_deciding {
    doppel_batch *batch;
    dp_rules rules;
    dp_buckets buckets;
    uint32_t *listed; /* of each bucket, those that stay: fill[b] of them, with room for `width` a member */
    uint64_t width;
    dp_looks looks;
    uint32_t *fill;
    dp_keep_order order;
    uint32_t *url_class; /* NULL: not used */
    dp_titles titles;    /* of NULL: not used */
    dp_kept kept_url, kept_twin, kept_title;
    uint32_t *stamp; /* by document: who looked at it last, + 1 */
    uint32_t *chain; /* chains: sets of documents, by their first in the order of keeping; NULL: not used */
    bool *whole;     /* chains: by bucket, whether all its documents are of one group; NULL: not used */

    uint64_t *entry; /* component << 32 | rank, of documents that are connected with another */
    size_t entries, next;
    pthread_mutex_t lock; /* of `next` and `status` */
    doppel_status status;
    _Atomic uint64_t candidates, verified;
} dp_deciding;

static inline uint32_t dp_deciding_document(const dp_deciding *g, size_t entry) {
    uint32_t rank = (uint32_t)g->entry[entry];
    return g->order.document ? g->order.document[rank] : rank;
}

static inline uint32_t *dp_deciding_bucket(const dp_deciding *g, uint32_t b) {
    return g->listed + g->buckets.start[b] * g->width;
}

/* ---- what one thread decides with ---- */

typedef struct dp_decider {
    dp_deciding *g;
    dp_crowd_place place;
    dp_crowd_finder finder;
    dp_crowd *crowd; /* of those listed in crowded buckets; NULL: they are few */
    size_t from, to; /* the entries at hand, whole components */
} dp_decider;

/* Whether a bucket's documents are found through the crowd. */
static inline bool dp_decider_crowded(const dp_decider *w, uint32_t bucket) {
    return w->crowd && dp_crowded(&w->place, bucket);
}

/* Notes whose copy a document is, and why. */
static void deciding_settle(const dp_deciding *g, uint32_t d, uint32_t original, doppel_reason reason,
                            const doppel_evidence *evidence) {
    double similarity = dp_decide_similarity(reason, evidence);
    g->batch->original[d] = original;
    g->batch->reason[d] = (uint8_t)reason;
    g->batch->similarity[d] = isnan(similarity) ? -1 : (float)similarity;
}

/* ---- components: which documents are connected, by a bucket, a URL or the same words. ---- */

static void unite_buckets(const dp_deciding *g, uint32_t *parent) {
    for (size_t b = 0; b < g->buckets.count; b++)
        for (uint64_t i = g->buckets.start[b] + 1; i < g->buckets.start[b + 1]; i++)
            dp_unite(parent, g->buckets.member[i - 1], g->buckets.member[i]);
    /* Who looks at a bucket need not stand in it. */
    for (size_t d = 0; g->buckets.own_first && d < g->batch->count; d++)
        for (uint64_t i = g->looks.start[d]; i < g->looks.start[d + 1]; i++)
            dp_unite(parent, (uint32_t)d, g->buckets.member[g->buckets.start[g->looks.bucket[i]]]);
}

static void unite_all(const dp_deciding *g, uint32_t *parent) {
    const doppel_batch *batch = g->batch;
    for (size_t d = 0; d < batch->count; d++)
        parent[d] = (uint32_t)d;
    unite_buckets(g, parent);
    for (size_t d = 0; d < batch->count; d++) {
        dp_unite(parent, (uint32_t)d, batch->docs[d].twin);
        if (g->url_class && g->url_class[d] != DP_NO_DOCUMENT)
            dp_unite(parent, (uint32_t)d, g->url_class[d]);
        if (g->titles.of && g->titles.of[d] != DP_NO_DOCUMENT)
            dp_unite(parent, (uint32_t)d, g->titles.first[g->titles.of[d]]);
    }
    for (size_t c = 0; c < g->titles.count; c++)
        for (uint64_t i = g->titles.start[c]; i < g->titles.start[c + 1]; i++)
            dp_unite(parent, g->titles.first[c], g->titles.first[g->titles.near[i]]);
}

/* Lists the documents that are not alone, component by component, in the order of keeping. */
static bool list_entries(dp_deciding *g, uint32_t *parent, uint32_t *size) {
    size_t count = g->batch->count, listed = 0;
    for (size_t d = 0; d < count; d++)
        size[dp_root(parent, (uint32_t)d)]++;
    for (size_t d = 0; d < count; d++)
        g->entries += size[dp_root(parent, (uint32_t)d)] > 1;
    g->entry = malloc((g->entries + 1) * sizeof *g->entry);
    uint64_t *scratch = malloc((g->entries + 1) * sizeof *scratch);
    if (g->entry && scratch) {
        for (size_t d = 0; d < count; d++) {
            uint32_t root = dp_root(parent, (uint32_t)d);
            if (size[root] > 1)
                g->entry[listed++] = (uint64_t)root << 32 | dp_rank(&g->order, (uint32_t)d);
        }
        dp_sort64(g->entry, g->entries, scratch);
    }
    free(scratch);
    return g->entry && scratch;
}

static bool make_kept(const doppel_batch *batch, dp_kept *kept) {
    size_t bytes = (batch->count + 1) * sizeof **kept->first;
    bool made = true;
    for (int i = 0; i < (batch->options.across ? 2 : 1); i++) {
        if ((kept->first[i] = malloc(bytes)))
            memset(kept->first[i], 255, bytes); /* DP_NO_DOCUMENT */
        else
            made = false;
    }
    return made;
}

/* Who stands in a bucket is not needed any more: its place is that of those who stay. */
static bool make_lists(dp_deciding *g) {
    g->width = g->batch->options.across ? 2 : 1;
    g->listed = realloc(g->buckets.member, (g->buckets.member_count * g->width + 1) * sizeof *g->listed);
    if (g->listed)
        g->buckets.member = NULL;
    return g->listed;
}

/* Everything behind buckets and looks; false: no memory. Free it in any case. */
static bool deciding_init(dp_deciding *g) {
    doppel_batch *batch = g->batch;
    uint32_t *parent = malloc((batch->count + 1) * sizeof *parent), *size = calloc(batch->count + 1, sizeof *size);
    g->fill = calloc(g->buckets.count + 1, sizeof *g->fill);
    g->stamp = calloc(batch->count + 1, sizeof *g->stamp);
    bool made = parent && size && g->fill && g->stamp && dp_keep_order_make(batch, &g->order) &&
                make_kept(batch, &g->kept_twin);
    if (made && batch->url)
        made = dp_url_classes(batch, &g->url_class) && make_kept(batch, &g->kept_url);
    if (made && g->titles.of)
        made = make_kept(batch, &g->kept_title);
    if (made && batch->options.link_any)
        made =
            (g->chain = malloc((batch->count + 1) * sizeof *g->chain)) && (g->whole = calloc(g->buckets.count + 1, 1));
    if (made) {
        unite_all(g, parent);
        made = list_entries(g, parent, size) && make_lists(g);
    }
    free(parent);
    free(size);
    return made;
}

static void deciding_free(dp_deciding *g) {
    dp_buckets_free(&g->buckets);
    dp_looks_free(&g->looks);
    dp_keep_order_free(&g->order);
    free(g->listed);
    free(g->fill);
    free(g->url_class);
    dp_titles_free(&g->titles);
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

/* ---- those that stay, as one thread lists them: in their buckets, and in a crowd once a bucket lists too many
 * to be compared with each. ---- */

/* So many documents are passed over while one is compared. */
enum { CONNECTED = 16 };

/* False: no memory. Free it in any case. */
static bool decider_init(dp_decider *w, dp_deciding *g) {
    *w = (dp_decider){.g = g, .place = {g->batch, &g->buckets, &g->looks}};
    w->finder.stamp = g->stamp;
    w->finder.verifier = dp_verifier_create(g->batch);
    return w->finder.verifier;
}

static void decider_free(dp_decider *w) {
    if (w->finder.verifier)
        atomic_fetch_add(&w->g->verified, dp_verifier_count(w->finder.verifier));
    dp_verifier_free(w->finder.verifier);
    dp_crowd_finder_free(&w->finder);
    dp_crowd_free(w->crowd);
}

/* Goes on to other entries. */
static void decider_begin(dp_decider *w, size_t from, size_t to) {
    dp_crowd_free(w->crowd);
    w->crowd = NULL;
    w->from = from;
    w->to = to;
}

/* Whether a document has been listed: all the first of their twins with chains, else those that stay and were first. */
static bool is_listed(const dp_deciding *g, uint32_t d) {
    uint32_t twin = g->batch->docs[d].twin;
    if (g->chain)
        return twin == d;
    return g->kept_twin.first[0][twin] == d || (g->kept_twin.first[1] && g->kept_twin.first[1][twin] == d);
}

/* Makes a crowd of what is listed up to d. */
static doppel_status make_crowd(dp_decider *w, uint32_t d) {
    const dp_deciding *g = w->g;
    size_t count = w->to - w->from;
    uint32_t *documents = malloc((count + 1) * sizeof *documents);
    if (!documents)
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        documents[i] = dp_deciding_document(g, w->from + i);
    doppel_status status = dp_crowd_create(&w->place, &w->finder, documents, count, &w->crowd);
    for (size_t i = 0; i < count && status == DOPPEL_OK; i++) {
        if (is_listed(g, documents[i]) && dp_in_crowd(&w->place, documents[i]))
            status = dp_crowd_add(w->crowd, &w->finder, documents[i]);
        if (documents[i] == d)
            break;
    }
    free(documents);
    return status;
}

/* Lists d in the buckets it stands in, and in the crowd. */
static doppel_status decider_enter(dp_decider *w, uint32_t d) {
    dp_deciding *g = w->g;
    uint32_t of = dp_looks_of(&g->looks, g->batch->docs[d].twin);
    uint64_t from = g->looks.start[of], to = g->looks.start[of + 1];
    bool too_many = false;
    if (g->buckets.own_first && to > from)
        to = from + 1;
    for (; from < to; from++) {
        uint32_t b = g->looks.bucket[from];
        dp_deciding_bucket(g, b)[g->fill[b]++] = d;
        too_many |= g->fill[b] > g->batch->crowd && dp_crowded(&w->place, b) && !(g->whole && g->whole[b]);
    }
    if (!g->batch->has_sets)
        return DOPPEL_OK;
    if (w->crowd)
        return dp_in_crowd(&w->place, d) ? dp_crowd_add(w->crowd, &w->finder, d) : DOPPEL_OK;
    return too_many ? make_crowd(w, d) : DOPPEL_OK;
}

/* The documents in crowded buckets that d is compared with: finder.found, or, when *found is false, all of them. All
 * other buckets have been looked through. */
static doppel_status decider_find(dp_decider *w, uint32_t d, bool *found) {
    const dp_deciding *g = w->g;
    uint32_t of = dp_looks_of(&g->looks, g->batch->docs[d].twin);
    uint64_t members = 0;
    for (uint64_t i = g->looks.start[of]; i < g->looks.start[of + 1]; i++) {
        uint32_t b = g->looks.bucket[i];
        if (dp_crowded(&w->place, b))
            members += g->fill[b];
    }
    w->finder.found_count = 0;
    *found = true;
    if (!members)
        return DOPPEL_OK;
    /* With chains most of them are known to be connected, which costs next to nothing. */
    return dp_crowd_find(w->crowd, &w->finder, d, g->chain ? members / CONNECTED : members, found);
}

/* ---- chains: groups of everything that is near any of the group, so that chains are one group. ----
 *
 * Documents whose connection is known already are not compared. A bucket whose documents are all of one group is passed
 * over once a document belongs to that group. */

/* The group's first document in the order of keeping leads it. */
static void join_groups(const dp_deciding *g, uint32_t a, uint32_t b) {
    a = dp_root(g->chain, a);
    b = dp_root(g->chain, b);
    bool first = dp_rank(&g->order, a) < dp_rank(&g->order, b);
    g->chain[first ? b : a] = first ? a : b;
}

/* Compares d with some that came before it. Once it belongs to the group of all of them, if they are of one (`whole`),
 * there is nothing more to learn there. */
static doppel_status link_with(const dp_decider *w, uint32_t d, const uint32_t *others, size_t count, bool whole) {
    dp_deciding *g = w->g;
    for (size_t i = 0; i < count; i++) {
        uint32_t k = others[i];
        dp_candidate candidate;
        if (!dp_batch_allows(g->batch, k, d))
            continue;
        if (dp_root(g->chain, k) == dp_root(g->chain, d)) {
            if (whole)
                return DOPPEL_OK;
            continue;
        }
        atomic_fetch_add_explicit(&g->candidates, 1, memory_order_relaxed);
        doppel_status status = dp_verify(w->finder.verifier, k, d, &candidate);
        if (status != DOPPEL_OK)
            return status;
        if (dp_decide(&g->rules, &candidate) != DOPPEL_REASON_NONE)
            join_groups(g, k, d);
    }
    return DOPPEL_OK;
}

/* The same with the buckets that d looks at, either the crowded ones or the others. */
static doppel_status link_buckets(const dp_decider *w, uint32_t d, bool crowded) {
    const dp_deciding *g = w->g;
    uint32_t of = dp_looks_of(&g->looks, d);
    doppel_status status = DOPPEL_OK;
    for (uint64_t i = g->looks.start[of]; i < g->looks.start[of + 1] && status == DOPPEL_OK; i++) {
        uint32_t b = g->looks.bucket[i];
        if (dp_decider_crowded(w, b) == crowded)
            status = link_with(w, d, dp_deciding_bucket(g, b), g->fill[b], g->whole[b]);
    }
    return status;
}

static doppel_status link_near(dp_decider *w, uint32_t d) {
    bool found = true;
    doppel_status status = link_buckets(w, d, false);
    if (status != DOPPEL_OK || !w->crowd)
        return status;
    if ((status = decider_find(w, d, &found)) != DOPPEL_OK)
        return status;
    return found ? link_with(w, d, w->finder.found, w->finder.found_count, false) : link_buckets(w, d, true);
}

/* Lists d in its buckets, and notes in which of them all are of one group: groups only grow, so that stays true. */
static doppel_status enter(dp_decider *w, uint32_t d) {
    const dp_deciding *g = w->g;
    doppel_status status = decider_enter(w, d);
    uint32_t of = dp_looks_of(&g->looks, d);
    uint64_t from = g->looks.start[of], to = g->looks.start[of + 1];
    for (uint64_t i = from; i < to && (i == from || !g->buckets.own_first); i++) {
        uint32_t b = g->looks.bucket[i];
        bool same = dp_root(g->chain, dp_deciding_bucket(g, b)[0]) == dp_root(g->chain, d);
        g->whole[b] = g->fill[b] == 1 || (g->whole[b] && same);
    }
    return status;
}

/* Documents of one title, and of titles near it. */
static void link_title(const dp_deciding *g, uint32_t d) {
    uint32_t class = g->titles.of ? g->titles.of[d] : DP_NO_DOCUMENT;
    if (class == DP_NO_DOCUMENT)
        return;
    uint32_t first = g->titles.first[class];
    if (dp_batch_allows(g->batch, first, d))
        join_groups(g, first, d);
    for (uint64_t i = g->titles.start[class]; i < g->titles.start[class + 1]; i++)
        if (dp_batch_allows(g->batch, g->titles.first[g->titles.near[i]], d))
            join_groups(g, g->titles.first[g->titles.near[i]], d);
}

static doppel_status link_document(dp_decider *w, uint32_t d) {
    const dp_deciding *g = w->g;
    uint32_t twin = g->batch->docs[d].twin, url = g->url_class ? g->url_class[d] : DP_NO_DOCUMENT;
    if (url != DP_NO_DOCUMENT && url != d)
        join_groups(g, url, d);
    link_title(g, d);
    if (twin != d) {
        join_groups(g, twin, d); /* near whatever its twin is near */
        return DOPPEL_OK;
    }
    doppel_status status = link_near(w, d);
    return status == DOPPEL_OK ? enter(w, d) : status;
}

/* The leader is the original, and the evidence is theirs. It may be none, where only others connect the two. */
static doppel_status settle(const dp_decider *w, uint32_t d) {
    const dp_deciding *g = w->g;
    const doppel_batch *batch = g->batch;
    uint32_t leader = dp_root(g->chain, d);
    dp_candidate candidate;
    if (leader == d || d < batch->known)
        return DOPPEL_OK;
    doppel_status status = dp_verify_similarity(w->finder.verifier, leader, d, &candidate);
    if (status != DOPPEL_OK)
        return status;
    doppel_evidence *evidence = &candidate.evidence;
    evidence->same_url = g->url_class && g->url_class[d] != DP_NO_DOCUMENT && g->url_class[d] == g->url_class[leader];
    evidence->title_similarity = dp_titles_similarity(&g->titles, d, leader);
    candidate.title = true;
    doppel_reason reason = dp_decide(&g->rules, &candidate);
    if (reason == DOPPEL_REASON_NONE)
        reason = batch->by & DOPPEL_BY_CONTENT ? DOPPEL_REASON_CONTENT : DOPPEL_REASON_TITLE;
    deciding_settle(g, d, leader, reason, evidence);
    return DOPPEL_OK;
}

/* Makes groups of everything that is near, step by step, among the entries at hand. */
static doppel_status dp_link_any(dp_decider *w) {
    const dp_deciding *g = w->g;
    doppel_status status = DOPPEL_OK;
    for (size_t i = w->from; i < w->to; i++) {
        uint32_t d = dp_deciding_document(g, i);
        g->chain[d] = d;
    }
    for (size_t i = w->from; i < w->to && status == DOPPEL_OK; i++)
        status =
            dp_stopped(g->batch->input.stop) ? DOPPEL_ERROR_INTERRUPTED : link_document(w, dp_deciding_document(g, i));
    for (size_t i = w->from; i < w->to && status == DOPPEL_OK; i++)
        status = settle(w, dp_deciding_document(g, i));
    return status;
}

/* ---- one document ---- */

/* The best original so far; DOPPEL_REASON_NONE: none. */
typedef struct choice {
    uint32_t original;
    doppel_reason reason;
    dp_candidate candidate;
} choice;

/* Takes a document that stays for the original, if it is one and a better one than that before it. Of equally good
 * ones the first in the order of keeping is. */
static void consider(const dp_deciding *g, uint32_t original, dp_candidate *candidate, choice *best) {
    doppel_reason reason = dp_decide(&g->rules, candidate);
    candidate->number = dp_rank(&g->order, original);
    if (reason != DOPPEL_REASON_NONE &&
        dp_decide_stronger(&g->rules, candidate, reason, &best->candidate, best->reason))
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
    if ((status = decider_find(w, d, &found)) != DOPPEL_OK)
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
        return decider_enter(w, d);
    return DOPPEL_OK;
}

/* Kind after kind, until one answers. */
static doppel_status find_original(dp_decider *w, uint32_t d, choice *best) {
    doppel_status status = DOPPEL_OK;
    find_same(w->g, d, best);
    if (best->reason == DOPPEL_REASON_NONE)
        status = find_near(w, d, best);
    if (status == DOPPEL_OK && best->reason == DOPPEL_REASON_NONE)
        find_title(w->g, d, best);
    return status;
}

static doppel_status decide(dp_decider *w, uint32_t d) {
    doppel_batch *batch = w->g->batch;
    choice best = {.reason = DOPPEL_REASON_NONE};
    doppel_status status = d >= batch->known ? find_original(w, d, &best) : DOPPEL_OK;
    if (status != DOPPEL_OK)
        return status;
    if (best.reason == DOPPEL_REASON_NONE)
        return keep(w, d);
    deciding_settle(w->g, d, best.original, best.reason, &best.candidate.evidence);
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
    doppel_status status = decider_init(&w, g) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    size_t from, to;
    (void)thread;
    while (status == DOPPEL_OK && take(g, &from, &to)) {
        decider_begin(&w, from, to);
        if (g->batch->options.link_any)
            status = dp_link_any(&w);
        for (; from < to && status == DOPPEL_OK && !g->batch->options.link_any; from++)
            status =
                dp_stopped(g->batch->input.stop) ? DOPPEL_ERROR_INTERRUPTED : decide(&w, dp_deciding_document(g, from));
    }
    decider_free(&w);
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
            batch->reason[original] = DOPPEL_REASON_TITLE;
            stats->groups++;
        }
    }
    for (size_t i = 0; i < batch->count; i++)
        if (batch->original[i] == i)
            batch->reason[i] = DOPPEL_REASON_NONE;
}

static doppel_status decide_all(doppel_batch *batch, doppel_error *error) {
    dp_deciding g = {.batch = batch, .rules = dp_batch_rules(batch)};
    doppel_status status = dp_batch_candidates(batch, &g.buckets, &g.looks, error);
    double begun = dp_seconds();
    if (status == DOPPEL_OK && batch->by & DOPPEL_BY_TITLE)
        status = dp_titles_find(batch, &g.titles, error);
    if (status == DOPPEL_OK && (!start(batch) || !deciding_init(&g)))
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
    batch->stats.seconds_decide = dp_seconds() - begun;
    deciding_free(&g);
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
