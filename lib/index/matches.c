/* matches.c - what a find gives: collected, ordered, cut to a limit. */
#include "index/file.h"
#include "index/find.h"
#include "kernel/kernel.h"

#include <stdlib.h>

size_t dp_finder_near(const dp_finder *finder, const uint64_t *values, size_t count, uint32_t *hits) {
    if (finder->order->bits <= 64)
        return dp_near64_kernel()(values, count, (uint64_t)finder->query, finder->distance, hits);
    uint64_t query[2];
    dp_bits_store(finder->query, query);
    return dp_near128_kernel()(values, count, query, finder->distance, hits);
}

/* ---- order ---- */

static int compare_matches(const void *left, const void *right) {
    const doppel_match *a = left, *b = right;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    for (int i = 1; i >= 0; i--)
        if (a->fingerprint[i] != b->fingerprint[i])
            return a->fingerprint[i] < b->fingerprint[i] ? -1 : 1;
    return a->owner < b->owner ? -1 : a->owner > b->owner;
}

/* Most finds give a handful. */
enum { FEW = 16 };

static void sort_matches(doppel_matches *matches) {
    if (matches->count > FEW) {
        qsort(matches->match, matches->count, sizeof *matches->match, compare_matches);
        return;
    }
    for (size_t i = 1; i < matches->count; i++) {
        doppel_match match = matches->match[i];
        size_t at = i;
        for (; at && compare_matches(&matches->match[at - 1], &match) > 0; at--)
            matches->match[at] = matches->match[at - 1];
        matches->match[at] = match;
    }
}

/* ---- collecting ---- */

/* More than the limit is kept until it is twice as many, so that sorting costs little an entry. */
static void cut(dp_finder *finder) {
    sort_matches(finder->matches);
    if (finder->matches->count > finder->limit)
        finder->matches->count = finder->limit;
}

bool dp_finder_take(dp_finder *finder, const dp_hit *hit) {
    doppel_matches *matches = finder->matches;
    if (finder->now && hit->expires && hit->expires <= finder->now)
        return true;
    finder->done = finder->any;
    if (finder->count_only) {
        matches->count++;
        return true;
    }
    if (!dp_reserve(&matches->match, &matches->capacity, matches->count + 1, sizeof *matches->match))
        return false;
    doppel_match *match = &matches->match[matches->count++];
    *match = (doppel_match){.owner = hit->owner, .expires = hit->expires, .distance = hit->distance};
    dp_bits_store(dp_order_undo(finder->order, hit->value), match->fingerprint);
    if (finder->limit && matches->count >= 64 && matches->count / 2 >= finder->limit)
        cut(finder);
    return true;
}

void doppel_matches_free(doppel_matches *matches) {
    if (!matches)
        return;
    free(matches->match);
    *matches = (doppel_matches){0};
}

/* ---- the call ---- */

doppel_status doppel_index_find(const doppel_index *index, const uint64_t *fingerprint, int distance,
                                const doppel_find_options *given, doppel_matches *matches, doppel_error *error) {
    doppel_find_options options = {0};
    if (given)
        dp_copy_options(&options, given, sizeof options);
    matches->count = 0;
    matches->candidates = 0;
    if (distance < 0 || distance > index->bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "distance %d: 0 to %d is possible with %d bits", distance,
                       index->bits, index->bits);
    if (!dp_index_has_width(index, fingerprint))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "the fingerprint has bits beyond the %d of the index", index->bits);
    dp_finder finder = {.order = &index->order,
                        .query = dp_order_apply(&index->order, dp_bits_load(fingerprint, index->bits)),
                        .distance = distance,
                        .now = options.now,
                        .limit = options.limit,
                        .any = options.any,
                        .count_only = options.count_only,
                        .matches = matches};
    dp_pinned pinned = dp_index_pin(index);
    doppel_status status = dp_finder_run(&finder, pinned.version);
    dp_index_unpin(pinned);
    if (status != DOPPEL_OK)
        return dp_index_explain(index, status, error);
    if (!options.count_only) {
        sort_matches(matches);
        if (options.limit && matches->count > options.limit)
            matches->count = options.limit;
    }
    return status;
}
