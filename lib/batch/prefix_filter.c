/* prefix_filter.c - documents of crowded buckets listed by their leads, and those that may be near one of them (batch.h
 * says why nothing is missed).
 *
 * A list is a chain of entries from a slot, by hash of the lead; early and late leads have slots of their own. An entry
 * carries some bits of the hash, the size of its set and where in it the lead stands: what cannot be near by these is
 * passed over. When the memory for entries is used up, further documents are not listed, and found by everyone. */
#include "batch/batch.h"

#include <stdlib.h>

/* ---- the order of features in a crowd, rare ones first, and which leads more than one document has.
 *
 * How often a feature occurs is counted by hash, on a sample of the documents: the order has to be one and the same for
 * all, but need not be exact. Counts are taken in steps of a quarter of an octave, and features of one step by hash, so
 * that a set, which is ascending, is put in order by counting.
 *
 * Marks, by hash of the lead: who has it. Two leads that fall together count as one, which lists more than need be. */

typedef struct dp_crowd_order {
    uint16_t *counts; /* how often features were seen, by hash; at most UINT16_MAX */
    int count_bits;
    uint8_t *marks; /* two bits a cell: who has a lead */
    int mark_bits;
} dp_crowd_order;

static inline uint64_t dp_crowd_mix(uint64_t hash) {
    hash = (hash ^ hash >> 32) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9u;
    return hash ^ hash >> 32;
}

/* Documents that are counted; cells of counts (32 MiB at most). */
enum { SAMPLE = 1 << 16, LEAST_BITS = 12, MOST_COUNT_BITS = 24 };
/* Cells of marks a lead, which leaves one lead in eight listed for nothing; and at most (256 MiB). */
enum { CELLS = 8, MOST_MARK_BITS = 30 };
/* Steps of counts up to UINT16_MAX. */
enum { LEVELS = 64 };
/* What is computed with rounding must not leave out what is near by a hair. */
#define SLACK 1e-9

enum { MARK_NONE, MARK_EARLY, MARK_LATE, MARK_SHARED };

static void crowd_order_free(dp_crowd_order *order) {
    free(order->counts);
    free(order->marks);
}

void dp_crowd_finder_free(dp_crowd_finder *finder) {
    free(finder->lead);
    free(finder->level);
    free(finder->found);
}

/* ---- leads ---- */

static size_t share_of(size_t count, double share) {
    size_t leads = (size_t)((double)count * (share + SLACK)) + 1;
    return leads < count ? leads : count;
}

/* The number of leads of a set. */
static size_t crowd_lead_count(const doppel_batch *batch, size_t set_count) {
    return share_of(set_count, 1 - batch->options.similarity);
}

static size_t early_count(const doppel_batch *batch, size_t set_count) {
    double t = batch->options.similarity;
    return share_of(set_count, (1 - t) / (1 + t));
}

/* 0, 1, 2, 3, and four steps for each further power of two. */
static uint8_t level_of(uint32_t count) {
    if (count < 4)
        return (uint8_t)count;
    int top = 31 - __builtin_clz(count);
    return (uint8_t)(4 * top - 4 + (int)(count >> (top - 2) & 3));
}

/* Fills finder->lead. */
static doppel_status crowd_leads(const dp_crowd_order *order, const doppel_batch *batch, dp_crowd_finder *finder,
                                 uint32_t document) {
    size_t count = dp_set_size(batch, document), next[LEVELS + 1] = {0};
    const uint64_t *set;
    finder->lead_count = crowd_lead_count(batch, count);
    finder->early_count = early_count(batch, count);
    if (!dp_reserve(&finder->lead, &finder->lead_room, finder->lead_count, sizeof *finder->lead) ||
        !dp_reserve(&finder->level, &finder->level_room, count, 1))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = dp_verifier_get(finder->verifier, document, &set);
    if (status != DOPPEL_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        finder->level[i] = level_of(order->counts[dp_crowd_mix(set[i]) >> (64 - order->count_bits)]);
        next[finder->level[i] + 1]++;
    }
    for (size_t level = 1; level < LEVELS; level++)
        next[level] += next[level - 1];
    for (size_t i = 0; i < count; i++) {
        size_t at = next[finder->level[i]]++;
        if (at < finder->lead_count)
            finder->lead[at] = set[i];
    }
    return DOPPEL_OK;
}

/* ---- learning ---- */

/* The bits of a number of cells, at least as many as asked for if there can be. */
static int bits_for(uint64_t cells, int most) {
    int bits = LEAST_BITS;
    while (bits < most && (uint64_t)1 << bits < cells)
        bits++;
    return bits;
}

static doppel_status count_features(dp_crowd_order *order, const doppel_batch *batch, dp_crowd_finder *finder,
                                    const uint32_t *documents, size_t count) {
    size_t step = count / SAMPLE + 1;
    uint64_t features = 0;
    for (size_t i = 0; i < count; i += step)
        features += dp_set_size(batch, documents[i]);
    order->count_bits = bits_for(2 * features, MOST_COUNT_BITS);
    if (!(order->counts = calloc((size_t)1 << order->count_bits, sizeof *order->counts)))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < count; i += step) {
        const uint64_t *set;
        doppel_status status = dp_verifier_get(finder->verifier, documents[i], &set);
        if (status == DOPPEL_OK && dp_stopped(batch->input.stop))
            status = DOPPEL_ERROR_INTERRUPTED;
        if (status != DOPPEL_OK)
            return status;
        for (size_t k = dp_set_size(batch, documents[i]); k-- > 0;) {
            uint16_t *seen = &order->counts[dp_crowd_mix(set[k]) >> (64 - order->count_bits)];
            *seen = (uint16_t)(*seen + (*seen < UINT16_MAX));
        }
    }
    return DOPPEL_OK;
}

static void mark(dp_crowd_order *order, uint64_t lead, bool early) {
    uint64_t cell = dp_crowd_mix(lead) >> (64 - order->mark_bits);
    unsigned shift = 2 * (cell & 3), was = order->marks[cell >> 2] >> shift & 3, is;
    if (was == MARK_NONE)
        is = early ? MARK_EARLY : MARK_LATE;
    else
        is = was == MARK_LATE && !early ? MARK_LATE : MARK_SHARED;
    order->marks[cell >> 2] |= (uint8_t)(is << shift);
}

/* Whether another document has a lead where it counts. */
static bool crowd_shared(const dp_crowd_order *order, uint64_t lead) {
    uint64_t cell = dp_crowd_mix(lead) >> (64 - order->mark_bits);
    return (order->marks[cell >> 2] >> 2 * (cell & 3) & 3) == MARK_SHARED;
}

static doppel_status mark_leads(dp_crowd_order *order, const doppel_batch *batch, dp_crowd_finder *finder,
                                const uint32_t *documents, size_t count) {
    uint64_t leads = 0, memory = batch->options.memory ? batch->options.memory : dp_memory_default();
    for (size_t i = 0; i < count; i++)
        leads += crowd_lead_count(batch, dp_set_size(batch, documents[i]));
    uint64_t cells = leads * CELLS < memory / 2 ? leads * CELLS : memory / 2; /* four a byte: an eighth of it */
    order->mark_bits = bits_for(cells, MOST_MARK_BITS);
    if (!(order->marks = calloc((size_t)1 << (order->mark_bits - 2), 1)))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        doppel_status status = crowd_leads(order, batch, finder, documents[i]);
        if (status == DOPPEL_OK && dp_stopped(batch->input.stop))
            status = DOPPEL_ERROR_INTERRUPTED;
        if (status != DOPPEL_OK)
            return status;
        for (size_t k = 0; k < finder->lead_count; k++)
            mark(order, finder->lead[k], k < finder->early_count);
    }
    return DOPPEL_OK;
}

/* Learns from the sets of the documents. Errors: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_IO, DOPPEL_ERROR_INTERRUPTED. */
static doppel_status crowd_order_make(dp_crowd_order *order, const doppel_batch *batch, dp_crowd_finder *finder,
                                      const uint32_t *documents, size_t count) {
    doppel_status status = count_features(order, batch, finder, documents, count);
    return status == DOPPEL_OK ? mark_leads(order, batch, finder, documents, count) : status;
}

/* Slots: as many as a quarter of all leads, since most are not listed; 128 MiB at most. */
enum { LEAST_SLOT_BITS = 10, MOST_SLOT_BITS = 24 };
/* So many entries are walked rather than one document compared. */
enum { WALK = 32 };
#define SLACK 1e-9
#define LATE 0xA0761D6478BD642Fu
#define NO_ENTRY UINT32_MAX

typedef struct slot {
    uint32_t first, count;
} slot;

typedef struct entry {
    uint32_t document, next, set_count;
    uint16_t tag, position; /* UINT16_MAX: that or behind it */
} entry;

struct dp_crowd {
    dp_crowd_place place;
    dp_crowd_order order;
    slot *slots;
    int slot_bits;
    entry *entries;
    size_t count, room, most;
    uint32_t *outside;
    size_t outside_count, outside_room;
};

bool dp_in_crowd(const dp_crowd_place *place, uint32_t document) {
    const dp_looks *looks = place->looks;
    uint32_t of = dp_looks_of(looks, place->batch->docs[document].twin);
    for (uint64_t i = looks->start[of]; i < looks->start[of + 1]; i++)
        if (dp_crowded(place, looks->bucket[i]))
            return true;
    return false;
}

/* ---- create and free ---- */

static doppel_status make_slots(dp_crowd *crowd, const uint32_t *documents, size_t count) {
    const doppel_batch *batch = crowd->place.batch;
    uint64_t leads = 0, memory = batch->options.memory ? batch->options.memory : dp_memory_default();
    for (size_t i = 0; i < count; i++)
        leads += crowd_lead_count(batch, dp_set_size(batch, documents[i]));
    crowd->slot_bits = LEAST_SLOT_BITS;
    while (crowd->slot_bits < MOST_SLOT_BITS && (uint64_t)1 << crowd->slot_bits < leads / 4)
        crowd->slot_bits++;
    crowd->most = memory / 4 / sizeof *crowd->entries;
    if (crowd->most > NO_ENTRY)
        crowd->most = NO_ENTRY;
    if (!(crowd->slots = malloc(sizeof *crowd->slots << crowd->slot_bits)))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < (size_t)1 << crowd->slot_bits; i++)
        crowd->slots[i] = (slot){NO_ENTRY, 0};
    return DOPPEL_OK;
}

/* Those that the crowd is made of: of twins the first, which has the set. */
static size_t select_documents(const dp_crowd_place *place, const uint32_t *documents, size_t count, uint32_t *chosen) {
    const doppel_batch *batch = place->batch;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (batch->docs[documents[i]].twin == documents[i] && dp_set_size(batch, documents[i]) &&
            dp_in_crowd(place, documents[i]))
            chosen[kept++] = documents[i];
    return kept;
}

doppel_status dp_crowd_create(const dp_crowd_place *place, dp_crowd_finder *finder, const uint32_t *documents,
                              size_t count, dp_crowd **made) {
    dp_crowd *crowd = calloc(1, sizeof *crowd);
    uint32_t *chosen = malloc((count + 1) * sizeof *chosen);
    doppel_status status = crowd && chosen ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    if (status == DOPPEL_OK) {
        crowd->place = *place;
        count = select_documents(place, documents, count, chosen);
        status = crowd_order_make(&crowd->order, place->batch, finder, chosen, count);
    }
    if (status == DOPPEL_OK)
        status = make_slots(crowd, chosen, count);
    free(chosen);
    if (status != DOPPEL_OK) {
        dp_crowd_free(crowd);
        crowd = NULL;
    }
    *made = crowd;
    return status;
}

void dp_crowd_free(dp_crowd *crowd) {
    if (!crowd)
        return;
    crowd_order_free(&crowd->order);
    free(crowd->slots);
    free(crowd->entries);
    free(crowd->outside);
    free(crowd);
}

/* ---- listing ---- */

static slot *slot_of(const dp_crowd *crowd, uint64_t lead, bool early, uint16_t *tag) {
    uint64_t hash = dp_crowd_mix(early ? lead : lead ^ LATE);
    *tag = (uint16_t)(hash >> 8);
    return &crowd->slots[hash >> (64 - crowd->slot_bits)];
}

static doppel_status add_outside(dp_crowd *crowd, uint32_t document) {
    if (!dp_reserve(&crowd->outside, &crowd->outside_room, crowd->outside_count + 1, sizeof *crowd->outside))
        return DOPPEL_ERROR_MEMORY;
    crowd->outside[crowd->outside_count++] = document;
    return DOPPEL_OK;
}

doppel_status dp_crowd_add(dp_crowd *crowd, dp_crowd_finder *finder, uint32_t document) {
    const doppel_batch *batch = crowd->place.batch;
    uint32_t first = batch->docs[document].twin, set_count = dp_set_size(batch, first);
    if (!set_count)
        return DOPPEL_OK; /* near none */
    doppel_status status = crowd_leads(&crowd->order, batch, finder, first);
    if (status != DOPPEL_OK)
        return status;
    if (crowd->count + finder->lead_count > crowd->most)
        return add_outside(crowd, document);
    if (!dp_reserve(&crowd->entries, &crowd->room, crowd->count + finder->lead_count, sizeof *crowd->entries))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < finder->lead_count; i++) {
        if (!crowd_shared(&crowd->order, finder->lead[i]))
            continue;
        uint16_t tag, position = (uint16_t)(i < UINT16_MAX ? i : UINT16_MAX);
        slot *s = slot_of(crowd, finder->lead[i], i < finder->early_count, &tag);
        crowd->entries[crowd->count] = (entry){document, s->first, set_count, tag, position};
        s->first = (uint32_t)crowd->count++;
        s->count++;
    }
    return DOPPEL_OK;
}

/* ---- finding ---- */

/* Whether two documents look at one crowded bucket. Looks are ascending. */
static bool share_bucket(const dp_crowd_place *place, uint32_t a, uint32_t b) {
    const dp_looks *looks = place->looks;
    uint32_t a_of = dp_looks_of(looks, a), b_of = dp_looks_of(looks, b);
    uint64_t i = looks->start[a_of], j = looks->start[b_of];
    while (i < looks->start[a_of + 1] && j < looks->start[b_of + 1]) {
        uint32_t x = looks->bucket[i], y = looks->bucket[j];
        if (x == y && dp_crowded(place, x))
            return true;
        i += x <= y;
        j += y <= x;
    }
    return false;
}

/* What looks: a document, and the first of its twins. */
typedef struct looker {
    uint32_t document, first;
    size_t set_count;
} looker;

static doppel_status find_one(const dp_crowd *crowd, dp_crowd_finder *finder, const looker *l, uint32_t other) {
    uint32_t first = crowd->place.batch->docs[other].twin;
    if (finder->stamp[other] == l->document + 1)
        return DOPPEL_OK;
    finder->stamp[other] = l->document + 1;
    if (first == l->first || !share_bucket(&crowd->place, first, l->first))
        return DOPPEL_OK;
    if (!dp_reserve(&finder->found, &finder->found_room, finder->found_count + 1, sizeof *finder->found))
        return DOPPEL_ERROR_MEMORY;
    finder->found[finder->found_count++] = other;
    return DOPPEL_OK;
}

/* Walks a list. An entry that has the tag by chance may be passed over here and be right further on: it is stamped only
 * when it may be near. */
static doppel_status walk(const dp_crowd *crowd, dp_crowd_finder *finder, const looker *l, size_t lead, bool early) {
    double t = crowd->place.batch->options.similarity;
    size_t rest = l->set_count - lead;
    doppel_status status = DOPPEL_OK;
    uint16_t tag;
    uint32_t next = slot_of(crowd, finder->lead[lead], early, &tag)->first;
    for (; next != NO_ENTRY && status == DOPPEL_OK; next = crowd->entries[next].next) {
        const entry *e = &crowd->entries[next];
        size_t other_rest = e->set_count - e->position, most = rest < other_rest ? rest : other_rest;
        double all = (double)l->set_count + (double)e->set_count;
        if (e->tag == tag && (double)most * (1 + t) >= t * all * (1 - SLACK))
            status = find_one(crowd, finder, l, e->document);
    }
    return status;
}

/* How many entries there are to walk. */
static uint64_t entries_ahead(const dp_crowd *crowd, const dp_crowd_finder *finder) {
    uint64_t ahead = crowd->outside_count;
    uint16_t tag;
    for (size_t i = 0; i < finder->lead_count; i++)
        if (crowd_shared(&crowd->order, finder->lead[i])) {
            ahead += slot_of(crowd, finder->lead[i], true, &tag)->count;
            if (i < finder->early_count)
                ahead += slot_of(crowd, finder->lead[i], false, &tag)->count;
        }
    return ahead;
}

doppel_status dp_crowd_find(const dp_crowd *crowd, dp_crowd_finder *finder, uint32_t document, uint64_t members,
                            bool *found) {
    const doppel_batch *batch = crowd->place.batch;
    looker l = {document, batch->docs[document].twin, 0};
    l.set_count = dp_set_size(batch, l.first);
    finder->found_count = 0;
    *found = true;
    doppel_status status = l.set_count ? crowd_leads(&crowd->order, batch, finder, l.first) : DOPPEL_OK;
    if (!l.set_count || status != DOPPEL_OK)
        return status;
    if (entries_ahead(crowd, finder) > WALK * members) {
        *found = false;
        return DOPPEL_OK;
    }
    for (size_t i = 0; i < finder->lead_count && status == DOPPEL_OK; i++) {
        if (!crowd_shared(&crowd->order, finder->lead[i]))
            continue;
        status = walk(crowd, finder, &l, i, true);
        if (status == DOPPEL_OK && i < finder->early_count)
            status = walk(crowd, finder, &l, i, false);
    }
    for (size_t i = 0; i < crowd->outside_count && status == DOPPEL_OK; i++)
        status = find_one(crowd, finder, &l, crowd->outside[i]);
    for (size_t i = 0; i < finder->found_count; i++)
        finder->stamp[finder->found[i]] = 0;
    return status;
}
