/* prefix_filter.c - which documents of large buckets may be near each other, without comparing all pairs: create, add
 * ..., find ..., free.
 *
 * Put the features of all sets in one order. If A and B are near, at similarity t or more, they share at least
 * t / (1 + t) * (|A| + |B|) features; so the first feature that they share stands at i in A and at j in B where neither
 * |A| - i nor |B| - j is less. It follows that
 *   - it is among the first (1 - t) |A| + 1 features of A, its prefix, and likewise of B;
 *   - in one of the two it is even among the first (1 - t) / (1 + t) |A| + 1, the short prefix.
 * So documents are listed by the features of their prefix, those of the short prefix apart, and documents are compared
 * only if a short prefix of one shares a feature with the prefix of the other. That holds for every order; with the
 * rare features in front, lists are short: what all pages of a template share comes last. Nothing is missed and nothing
 * is added: candidates are those of the large buckets, less some that are not near.
 *
 * The order: how often a feature occurs is counted by hash, on a sample of the documents; the order has to be one and
 * the same for all, but need not be exact. Counts are taken in steps of a quarter of an octave, and features of one
 * step by hash, so that a set, which is ascending, is put in order by counting.
 *
 * Lists: a list is a chain of entries from a slot, by hash of the feature; features of short prefixes and the others
 * have slots of their own. An entry carries some bits of the hash, the size of its set and where in it the feature
 * stands: what cannot be near by these is passed over. A feature that no other document has in its prefix (or that is
 * in no short prefix) is not listed; two bits a cell of `marks` tell, in which two features that fall together
 * count as one, which lists more than need be. When the memory for entries is used up, further documents are not
 * listed, and are compared with all. */
#include "batch/batch.h"

#include <stdlib.h>

/* Documents that are counted; cells of counts (32 MiB at most). */
enum { SAMPLE = 1 << 16, LEAST_BITS = 12, MOST_COUNT_BITS = 24 };
/* Cells of marks a feature, which leaves one in eight listed for nothing; and at most (256 MiB). */
enum { CELLS = 8, MOST_MARK_BITS = 30 };
/* Steps of counts up to UINT16_MAX. */
enum { LEVELS = 64 };
/* Slots: a quarter of the features of all prefixes, since most are not listed; 128 MiB at most. */
enum { LEAST_SLOT_BITS = 10, MOST_SLOT_BITS = 24 };
/* Walking this many entries costs as much as comparing one document. */
enum { WALK = 32 };
/* Slack for rounding, so that pairs exactly at the threshold are not missed. */
#define SLACK 1e-9
/* Distinguishes features that are not in the short prefix from those that are. */
#define NOT_SHORT 0xA0761D6478BD642Fu
#define NO_ENTRY UINT32_MAX

/* Which documents have a feature in the prefix: none, one document in the short prefix, documents beyond it, or
 * documents that have to find each other. */
enum { MARK_NONE, MARK_SHORT, MARK_BEYOND, MARK_SHARED };

typedef struct prefix_slot {
    uint32_t first, count;
} prefix_slot;

typedef struct prefix_entry {
    uint32_t document, next, set_count;
    uint16_t tag, position; /* UINT16_MAX: that or beyond it */
} prefix_entry;

struct dp_prefix_filter {
    const doppel_batch *batch;
    const dp_candidates *candidates;
    uint16_t *counts; /* how often features were seen, by hash; at most UINT16_MAX */
    int count_bits;
    uint8_t *marks; /* two bits a cell */
    int mark_bits;
    prefix_slot *slots;
    int slot_bits;
    prefix_entry *entries;
    size_t count, room, most;
    uint32_t *unlisted;
    size_t unlisted_count, unlisted_room;
};

void dp_prefix_search_free(dp_prefix_search *search) {
    free(search->prefix);
    free(search->level);
    free(search->found);
}

static uint64_t mix(uint64_t hash) {
    hash = (hash ^ hash >> 32) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9u;
    return hash ^ hash >> 32;
}

/* Whether a document looks at a large bucket. */
static bool is_in_large_bucket(const doppel_batch *batch, const dp_candidates *candidates, uint32_t document) {
    dp_bucket_list list = dp_buckets_of(candidates, batch->documents.doc[document].twin);
    for (size_t i = 0; i < list.count; i++)
        if (dp_bucket_is_large(batch, candidates, list.bucket[i]))
            return true;
    return false;
}

/* ---- prefixes ---- */

static size_t share_of(size_t count, double share) {
    size_t features = (size_t)((double)count * (share + SLACK)) + 1;
    return features < count ? features : count;
}

static size_t prefix_length(const doppel_batch *batch, size_t set_count) {
    return share_of(set_count, 1 - batch->settings.options.similarity);
}

static size_t short_length(const doppel_batch *batch, size_t set_count) {
    double t = batch->settings.options.similarity;
    return share_of(set_count, (1 - t) / (1 + t));
}

/* 0, 1, 2, 3, and four steps for each further power of two. */
static uint8_t level_of(uint32_t count) {
    if (count < 4)
        return (uint8_t)count;
    int top = 31 - __builtin_clz(count);
    return (uint8_t)(4 * top - 4 + (int)(count >> (top - 2) & 3));
}

/* Fills search->prefix. */
static doppel_status find_prefix(const dp_prefix_filter *filter, dp_prefix_search *search, uint32_t document) {
    size_t next[LEVELS + 1] = {0};
    const uint64_t *set;
    DP_TRY(dp_verifier_get(search->verifier, document, &set));
    size_t count = dp_set_size(filter->batch, document);
    search->prefix_count = prefix_length(filter->batch, count);
    search->short_count = short_length(filter->batch, count);
    if (!dp_reserve(&search->prefix, &search->prefix_room, search->prefix_count, sizeof *search->prefix) ||
        !dp_reserve(&search->level, &search->level_room, count, 1))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        search->level[i] = level_of(filter->counts[mix(set[i]) >> (64 - filter->count_bits)]);
        next[search->level[i] + 1]++;
    }
    for (size_t level = 1; level < LEVELS; level++)
        next[level] += next[level - 1];
    for (size_t i = 0; i < count; i++) {
        size_t at = next[search->level[i]]++;
        if (at < search->prefix_count)
            search->prefix[at] = set[i];
    }
    return DOPPEL_OK;
}

/* ---- create and free ---- */

/* The bits of a number of cells, at least as many as asked for if there can be. */
static int bits_for(uint64_t cells, int least, int most) {
    int bits = least;
    while (bits < most && (uint64_t)1 << bits < cells)
        bits++;
    return bits;
}

static doppel_status count_features(dp_prefix_filter *filter, dp_prefix_search *search, const uint32_t *documents,
                                    size_t count) {
    const doppel_batch *batch = filter->batch;
    size_t step = count / SAMPLE + 1;
    uint64_t features = 0;
    for (size_t i = 0; i < count; i += step)
        features += dp_set_size(batch, documents[i]);
    filter->count_bits = bits_for(2 * features, LEAST_BITS, MOST_COUNT_BITS);
    if (!(filter->counts = calloc((size_t)1 << filter->count_bits, sizeof *filter->counts)))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < count; i += step) {
        const uint64_t *set;
        DP_TRY(dp_verifier_get(search->verifier, documents[i], &set));
        if (dp_stopped(batch->settings.input.stop))
            return DOPPEL_ERROR_INTERRUPTED;
        for (size_t k = dp_set_size(batch, documents[i]); k-- > 0;) {
            uint16_t *seen = &filter->counts[mix(set[k]) >> (64 - filter->count_bits)];
            *seen = (uint16_t)(*seen + (*seen < UINT16_MAX));
        }
    }
    return DOPPEL_OK;
}

static void mark(dp_prefix_filter *filter, uint64_t feature, bool in_short) {
    uint64_t cell = mix(feature) >> (64 - filter->mark_bits);
    unsigned shift = 2 * (cell & 3), was = filter->marks[cell >> 2] >> shift & 3, is;
    if (was == MARK_NONE)
        is = in_short ? MARK_SHORT : MARK_BEYOND;
    else
        is = was == MARK_BEYOND && !in_short ? MARK_BEYOND : MARK_SHARED;
    filter->marks[cell >> 2] |= (uint8_t)(is << shift);
}

/* Whether another document has a feature where it counts. */
static bool is_shared(const dp_prefix_filter *filter, uint64_t feature) {
    uint64_t cell = mix(feature) >> (64 - filter->mark_bits);
    return (filter->marks[cell >> 2] >> 2 * (cell & 3) & 3) == MARK_SHARED;
}

static doppel_status mark_prefixes(dp_prefix_filter *filter, dp_prefix_search *search, const uint32_t *documents,
                                   size_t count, uint64_t features) {
    const dp_batch_settings *settings = &filter->batch->settings;
    uint64_t most = search->memory; /* four cells a byte: a quarter of the memory */
    filter->mark_bits = bits_for(features * CELLS < most ? features * CELLS : most, LEAST_BITS, MOST_MARK_BITS);
    if (!(filter->marks = calloc((size_t)1 << (filter->mark_bits - 2), 1)))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        DP_TRY(find_prefix(filter, search, documents[i]));
        if (dp_stopped(settings->input.stop))
            return DOPPEL_ERROR_INTERRUPTED;
        for (size_t k = 0; k < search->prefix_count; k++)
            mark(filter, search->prefix[k], k < search->short_count);
    }
    return DOPPEL_OK;
}

static doppel_status make_slots(dp_prefix_filter *filter, uint64_t memory, uint64_t features) {
    uint64_t most = memory / 2 / sizeof *filter->entries;
    filter->most = most < NO_ENTRY ? (size_t)most : NO_ENTRY;
    uint64_t slots = memory / 8 / sizeof *filter->slots;
    filter->slot_bits = bits_for(features / 4 < slots ? features / 4 : slots, LEAST_SLOT_BITS, MOST_SLOT_BITS);
    if (!(filter->slots = malloc(sizeof *filter->slots << filter->slot_bits)))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < (size_t)1 << filter->slot_bits; i++)
        filter->slots[i] = (prefix_slot){NO_ENTRY, 0};
    return DOPPEL_OK;
}

/* Of twins the first counts, which has the set. */
static size_t select_documents(const dp_prefix_filter *filter, const uint32_t *documents, size_t count,
                               uint32_t *chosen) {
    const doppel_batch *batch = filter->batch;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (batch->documents.doc[documents[i]].twin == documents[i] && dp_set_size(batch, documents[i]) &&
            is_in_large_bucket(batch, filter->candidates, documents[i]))
            chosen[kept++] = documents[i];
    return kept;
}

static doppel_status init(dp_prefix_filter *filter, dp_prefix_search *search, const uint32_t *documents, size_t count) {
    uint64_t features = 0;
    for (size_t i = 0; i < count; i++)
        features += prefix_length(filter->batch, dp_set_size(filter->batch, documents[i]));
    DP_TRY(count_features(filter, search, documents, count));
    DP_TRY(mark_prefixes(filter, search, documents, count, features));
    return make_slots(filter, search->memory, features);
}

doppel_status dp_prefix_filter_create(const doppel_batch *batch, const dp_candidates *candidates,
                                      dp_prefix_search *search, const uint32_t *documents, size_t count,
                                      dp_prefix_filter **made) {
    dp_prefix_filter *filter = calloc(1, sizeof *filter);
    uint32_t *chosen = malloc((count + 1) * sizeof *chosen);
    doppel_status status = filter && chosen ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    if (status == DOPPEL_OK) {
        filter->batch = batch;
        filter->candidates = candidates;
        status = init(filter, search, chosen, select_documents(filter, documents, count, chosen));
    }
    free(chosen);
    if (status != DOPPEL_OK) {
        dp_prefix_filter_free(filter);
        filter = NULL;
    }
    *made = filter;
    return status;
}

void dp_prefix_filter_free(dp_prefix_filter *filter) {
    if (!filter)
        return;
    free(filter->counts);
    free(filter->marks);
    free(filter->slots);
    free(filter->entries);
    free(filter->unlisted);
    free(filter);
}

/* ---- listing ---- */

static prefix_slot *slot_of(const dp_prefix_filter *filter, uint64_t feature, bool in_short, uint16_t *tag) {
    uint64_t hash = mix(in_short ? feature : feature ^ NOT_SHORT);
    *tag = (uint16_t)(hash >> 8);
    return &filter->slots[hash >> (64 - filter->slot_bits)];
}

static doppel_status add_unlisted(dp_prefix_filter *filter, uint32_t document) {
    if (!dp_reserve(&filter->unlisted, &filter->unlisted_room, filter->unlisted_count + 1, sizeof *filter->unlisted))
        return DOPPEL_ERROR_MEMORY;
    filter->unlisted[filter->unlisted_count++] = document;
    return DOPPEL_OK;
}

doppel_status dp_prefix_filter_add(dp_prefix_filter *filter, dp_prefix_search *search, uint32_t document) {
    const doppel_batch *batch = filter->batch;
    uint32_t first = batch->documents.doc[document].twin;
    /* Without features it is near none. */
    if (!dp_set_size(batch, first) || !is_in_large_bucket(batch, filter->candidates, document))
        return DOPPEL_OK;
    DP_TRY(find_prefix(filter, search, first));
    uint32_t set_count = dp_set_size(batch, first);
    if (filter->count + search->prefix_count > filter->most)
        return add_unlisted(filter, document);
    if (!dp_reserve(&filter->entries, &filter->room, filter->count + search->prefix_count, sizeof *filter->entries))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < search->prefix_count; i++) {
        if (!is_shared(filter, search->prefix[i]))
            continue;
        uint16_t tag, position = (uint16_t)(i < UINT16_MAX ? i : UINT16_MAX);
        prefix_slot *slot = slot_of(filter, search->prefix[i], i < search->short_count, &tag);
        filter->entries[filter->count] = (prefix_entry){document, slot->first, set_count, tag, position};
        slot->first = (uint32_t)filter->count++;
        slot->count++;
    }
    return DOPPEL_OK;
}

/* ---- finding ---- */

/* Whether two documents look at one large bucket. The buckets of a document are ascending. */
static bool share_bucket(const dp_prefix_filter *filter, uint32_t a, uint32_t b) {
    dp_bucket_list x = dp_buckets_of(filter->candidates, a), y = dp_buckets_of(filter->candidates, b);
    for (size_t i = 0, j = 0; i < x.count && j < y.count;) {
        uint32_t p = x.bucket[i], q = y.bucket[j];
        if (p == q && dp_bucket_is_large(filter->batch, filter->candidates, p))
            return true;
        i += p <= q;
        j += q <= p;
    }
    return false;
}

/* The document that searches, and the first of its twins. */
typedef struct prefix_query {
    uint32_t document, first;
    size_t set_count;
} prefix_query;

static doppel_status add_found(const dp_prefix_filter *filter, dp_prefix_search *search, const prefix_query *query,
                               uint32_t other) {
    uint32_t first = filter->batch->documents.doc[other].twin;
    if (search->stamp[other] == query->document + 1)
        return DOPPEL_OK;
    search->stamp[other] = query->document + 1;
    if (first == query->first || !share_bucket(filter, first, query->first))
        return DOPPEL_OK;
    if (!dp_reserve(&search->found, &search->found_room, search->found_count + 1, sizeof *search->found))
        return DOPPEL_ERROR_MEMORY;
    search->found[search->found_count++] = other;
    return DOPPEL_OK;
}

/* Walks a list. An entry that has the tag by chance may be passed over here and be right further on: it is stamped only
 * when it may be near. */
static doppel_status walk(const dp_prefix_filter *filter, dp_prefix_search *search, const prefix_query *query,
                          size_t position, bool in_short) {
    double t = filter->batch->settings.options.similarity;
    size_t rest = query->set_count - position;
    doppel_status status = DOPPEL_OK;
    uint16_t tag;
    uint32_t next = slot_of(filter, search->prefix[position], in_short, &tag)->first;
    for (; next != NO_ENTRY && status == DOPPEL_OK; next = filter->entries[next].next) {
        const prefix_entry *e = &filter->entries[next];
        size_t other_rest = e->set_count - e->position, most = rest < other_rest ? rest : other_rest;
        double all = (double)query->set_count + (double)e->set_count;
        if (e->tag == tag && (double)most * (1 + t) >= t * all * (1 - SLACK))
            status = add_found(filter, search, query, e->document);
    }
    return status;
}

/* How many entries there are to walk. */
static uint64_t count_entries(const dp_prefix_filter *filter, const dp_prefix_search *search) {
    uint64_t entries = filter->unlisted_count;
    uint16_t tag;
    for (size_t i = 0; i < search->prefix_count; i++)
        if (is_shared(filter, search->prefix[i])) {
            entries += slot_of(filter, search->prefix[i], true, &tag)->count;
            if (i < search->short_count)
                entries += slot_of(filter, search->prefix[i], false, &tag)->count;
        }
    return entries;
}

static doppel_status walk_all(const dp_prefix_filter *filter, dp_prefix_search *search, const prefix_query *query) {
    for (size_t i = 0; i < search->prefix_count; i++) {
        if (!is_shared(filter, search->prefix[i]))
            continue;
        DP_TRY(walk(filter, search, query, i, true));
        if (i < search->short_count)
            DP_TRY(walk(filter, search, query, i, false));
    }
    for (size_t i = 0; i < filter->unlisted_count; i++)
        DP_TRY(add_found(filter, search, query, filter->unlisted[i]));
    return DOPPEL_OK;
}

doppel_status dp_prefix_filter_find(const dp_prefix_filter *filter, dp_prefix_search *search, uint32_t document,
                                    uint64_t members, bool *found) {
    const doppel_batch *batch = filter->batch;
    prefix_query query = {document, batch->documents.doc[document].twin, 0};
    search->found_count = 0;
    *found = true;
    if (!dp_set_size(batch, query.first))
        return DOPPEL_OK;
    DP_TRY(find_prefix(filter, search, query.first));
    query.set_count = dp_set_size(batch, query.first);
    if (count_entries(filter, search) > WALK * members) {
        *found = false;
        return DOPPEL_OK;
    }
    doppel_status status = walk_all(filter, search, &query);
    for (size_t i = 0; i < search->found_count; i++)
        search->stamp[search->found[i]] = 0;
    return status;
}
