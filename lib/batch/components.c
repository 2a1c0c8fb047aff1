/* components.c - which documents are connected, by a bucket, a URL or the same words. */
#include "batch/group.h"

#include <stdlib.h>

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

bool dp_deciding_init(dp_deciding *g) {
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

void dp_deciding_free(dp_deciding *g) {
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
