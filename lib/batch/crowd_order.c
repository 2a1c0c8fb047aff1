/* crowd_order.c - the order of features in a crowd, rare ones first, and which leads more than one document has.
 *
 * How often a feature occurs is counted by hash, on a sample of the documents: the order has to be one and the same for
 * all, but need not be exact. Counts are taken in steps of a quarter of an octave, and features of one step by hash, so
 * that a set, which is ascending, is put in order by counting.
 *
 * Marks, by hash of the lead: who has it. Two leads that fall together count as one, which lists more than need be. */
#include "batch/crowd.h"

#include <stdlib.h>

/* Documents that are counted; cells of counts (32 MiB at most). */
enum { SAMPLE = 1 << 16, LEAST_BITS = 12, MOST_COUNT_BITS = 24 };
/* Cells of marks a lead, which leaves one lead in eight listed for nothing; and at most (256 MiB). */
enum { CELLS = 8, MOST_MARK_BITS = 30 };
/* Steps of counts up to UINT16_MAX. */
enum { LEVELS = 64 };
/* What is computed with rounding must not leave out what is near by a hair. */
#define SLACK 1e-9

enum { MARK_NONE, MARK_EARLY, MARK_LATE, MARK_SHARED };

void dp_crowd_order_free(dp_crowd_order *order) {
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

size_t dp_crowd_lead_count(const doppel_batch *batch, size_t set_count) {
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

doppel_status dp_crowd_leads(const dp_crowd_order *order, const doppel_batch *batch, dp_crowd_finder *finder,
                             uint32_t document) {
    size_t count = dp_set_size(batch, document), next[LEVELS + 1] = {0};
    const uint64_t *set;
    finder->lead_count = dp_crowd_lead_count(batch, count);
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

bool dp_crowd_shared(const dp_crowd_order *order, uint64_t lead) {
    uint64_t cell = dp_crowd_mix(lead) >> (64 - order->mark_bits);
    return (order->marks[cell >> 2] >> 2 * (cell & 3) & 3) == MARK_SHARED;
}

static doppel_status mark_leads(dp_crowd_order *order, const doppel_batch *batch, dp_crowd_finder *finder,
                                const uint32_t *documents, size_t count) {
    uint64_t leads = 0, memory = batch->options.memory ? batch->options.memory : dp_memory_default();
    for (size_t i = 0; i < count; i++)
        leads += dp_crowd_lead_count(batch, dp_set_size(batch, documents[i]));
    uint64_t cells = leads * CELLS < memory / 2 ? leads * CELLS : memory / 2; /* four a byte: an eighth of it */
    order->mark_bits = bits_for(cells, MOST_MARK_BITS);
    if (!(order->marks = calloc((size_t)1 << (order->mark_bits - 2), 1)))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        doppel_status status = dp_crowd_leads(order, batch, finder, documents[i]);
        if (status == DOPPEL_OK && dp_stopped(batch->input.stop))
            status = DOPPEL_ERROR_INTERRUPTED;
        if (status != DOPPEL_OK)
            return status;
        for (size_t k = 0; k < finder->lead_count; k++)
            mark(order, finder->lead[k], k < finder->early_count);
    }
    return DOPPEL_OK;
}

doppel_status dp_crowd_order_make(dp_crowd_order *order, const doppel_batch *batch, dp_crowd_finder *finder,
                                  const uint32_t *documents, size_t count) {
    doppel_status status = count_features(order, batch, finder, documents, count);
    return status == DOPPEL_OK ? mark_leads(order, batch, finder, documents, count) : status;
}
