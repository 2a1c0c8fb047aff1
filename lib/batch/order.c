/* order.c - in which order documents are asked whether they stay, and which have the same URL. */
#include "batch/batch.h"

#include <stdlib.h>

/* ---- the order of keeping ---- */

static int compare_ranks(const void *x, const void *y, void *user) {
    const doppel_batch *batch = user;
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    bool a_known = a < batch->known, b_known = b < batch->known;
    if (a_known != b_known)
        return a_known ? -1 : 1;
    if (a_known)
        return a < b ? -1 : 1;
    size_t rules = batch->keep.count;
    return dp_keep_compare(&batch->keep, &(dp_keep_place){batch->ranks + a * rules, a},
                           &(dp_keep_place){batch->ranks + b * rules, b});
}

bool dp_keep_order_make(const doppel_batch *batch, dp_keep_order *order) {
    *order = (dp_keep_order){0};
    if (!batch->keep.count)
        return true;
    order->document = malloc((batch->count + 1) * sizeof *order->document);
    order->rank = malloc((batch->count + 1) * sizeof *order->rank);
    if (!order->document || !order->rank)
        return false;
    for (size_t i = 0; i < batch->count; i++)
        order->document[i] = (uint32_t)i;
    qsort_r(order->document, batch->count, sizeof *order->document, compare_ranks, (void *)batch);
    for (size_t i = 0; i < batch->count; i++)
        order->rank[order->document[i]] = (uint32_t)i;
    return true;
}

void dp_keep_order_free(dp_keep_order *order) {
    free(order->document);
    free(order->rank);
}

/* ---- the same URL ---- */

static bool same_url(const doppel_batch *batch, uint32_t a, uint32_t b) {
    return !memcmp(batch->url[a], batch->url[b], sizeof batch->url[a]) &&
           (!batch->options.within || batch->scope[a] == batch->scope[b]);
}

/* Those with one hash, of which `entry` has the numbers in its low half: each gets the first that is the same. */
static void find_firsts(const doppel_batch *batch, const uint64_t *entry, size_t count, uint32_t *of) {
    for (size_t i = 0; i < count; i++) {
        uint32_t document = (uint32_t)entry[i];
        for (size_t j = 0; j < i && of[document] == DP_NO_DOCUMENT; j++)
            if (of[(uint32_t)entry[j]] == (uint32_t)entry[j] && same_url(batch, (uint32_t)entry[j], document))
                of[document] = (uint32_t)entry[j];
        if (of[document] == DP_NO_DOCUMENT)
            of[document] = document;
    }
}

/* 32 bits of a document's URL, and of its scope where that counts; the key keeps anybody from choosing URLs that meet.
 */
static uint64_t url_entry(const doppel_batch *batch, uint32_t document, const uint64_t key[2]) {
    const uint64_t names[3] = {batch->url[document][0], batch->url[document][1],
                               batch->options.within ? batch->scope[document] : 0};
    return dp_siphash(names, sizeof names, key) << 32 | document;
}

bool dp_url_classes(const doppel_batch *batch, uint32_t **of) {
    const uint64_t key[2] = {dp_order_random(), dp_order_random()};
    size_t count = 0;
    uint64_t *entry = malloc((batch->count + 1) * sizeof *entry), *scratch = malloc((batch->count + 1) * sizeof *entry);
    *of = malloc((batch->count + 1) * sizeof **of);
    bool made = entry && scratch && *of;
    for (size_t i = 0; made && i < batch->count; i++) {
        (*of)[i] = DP_NO_DOCUMENT;
        if (batch->url[i][0] || batch->url[i][1])
            entry[count++] = url_entry(batch, (uint32_t)i, key);
    }
    if (made)
        dp_sort64(entry, count, scratch);
    for (size_t from = 0, to; made && from < count; from = to) {
        for (to = from + 1; to < count && entry[to] >> 32 == entry[from] >> 32;)
            to++;
        find_firsts(batch, entry + from, to - from, *of);
    }
    free(entry);
    free(scratch);
    return made;
}
