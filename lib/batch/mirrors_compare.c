/* mirrors_compare.c - the paths below two prefixes are compared.
 *
 * The pages below a prefix stand together in the table, in order of what follows the prefix. Those of the smaller side
 * are gone through, and each is looked for on the other side from where the last one was, in growing steps: so a small
 * mirror of a huge host costs little. */
#include "batch/mirrors.h"

#include <math.h>

static int order_prefix(const dp_mirror_page *page, const dp_mirror_page *prefix, unsigned depth) {
    if (page->host != prefix->host)
        return page->host < prefix->host ? -1 : 1;
    for (unsigned i = 0; i < depth; i++)
        if (page->segment[i] != prefix->segment[i])
            return page->segment[i] < prefix->segment[i] ? -1 : 1;
    return 0;
}

/* The first page that is not before the prefix or, with `behind`, that is behind all below it. */
static size_t edge_of(const dp_mirrors_work *work, const dp_mirror_page *prefix, unsigned depth, bool behind) {
    size_t low = 0, high = work->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order_prefix(&work->table[middle], prefix, depth) < (behind ? 1 : 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

dp_mirror_range dp_mirror_below(const dp_mirrors_work *work, const dp_mirror_page *page, unsigned depth) {
    return (dp_mirror_range){edge_of(work, page, depth, false), edge_of(work, page, depth, true)};
}

size_t dp_mirror_seek(const dp_mirrors_work *work, dp_mirror_range range, unsigned depth, const dp_mirror_page *page,
                      unsigned page_depth) {
    size_t low = range.start, high = range.end, step = 1;
    while (range.end - low > step && dp_mirror_order(&work->table[low + step], depth, page, page_depth) < 0) {
        low += step;
        step *= 2;
    }
    if (range.end - low > step)
        high = low + step + 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (dp_mirror_order(&work->table[middle], depth, page, page_depth) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- two prefixes ---- */

static doppel_status compare(dp_mirrors_work *work, const uint64_t *hit, doppel_error *error) {
    unsigned depth[2] = {hit[2] & 15, hit[3] & 15};
    dp_mirror_range range[2];
    dp_mirror_tree tree;
    for (int i = 0; i < 2; i++)
        range[i] = dp_mirror_below(work, &work->table[hit[2 + i] >> 4], depth[i]);
    int small = range[0].end - range[0].start <= range[1].end - range[1].start ? 0 : 1, large = !small;
    dp_mirror_tree_init(&tree, work, depth[0], depth[1]);
    bool done = true;
    for (size_t i = range[small].start; i < range[small].end && done; i++) {
        const dp_mirror_page *page = &work->table[i];
        size_t at = range[large].start = dp_mirror_seek(work, range[large], depth[large], page, depth[small]);
        if (at == range[large].end)
            break;
        if (dp_mirror_order(&work->table[at], depth[large], page, depth[small]) == 0)
            done =
                dp_mirror_tree_add(&tree, small ? at : i, small ? i : at, dp_mirror_near(work, page, &work->table[at]));
    }
    return done && dp_mirror_tree_end(&tree) ? DOPPEL_OK : dp_no_memory(error);
}

/* ---- all ---- */

/* Hits that make two prefixes worth comparing: as many as must match, but no more than 2, as some pages that match do
 * not meet. */
static uint64_t least_hits(const doppel_mirrors_options *options) {
    return ceil(options->min_score * (double)options->min_paths) > 1 ? 2 : 1;
}

static doppel_status end_hits(dp_mirrors_work *work, const uint64_t *hit, uint64_t count, doppel_error *error) {
    if (count < least_hits(&work->options))
        return DOPPEL_OK;
    if (dp_stopped(work->input.stop))
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    work->counts.candidates++;
    return compare(work, hit, error);
}

doppel_status dp_mirrors_compare(dp_mirrors_work *work, doppel_error *error) {
    uint64_t last[4] = {0}, count = 0;
    const uint64_t *hit;
    doppel_status status = DOPPEL_OK;
    while (status == DOPPEL_OK && (status = dp_sorter_next(&work->hits, &hit, error)) == DOPPEL_OK && hit) {
        bool same_prefixes = count && hit[0] == last[0] && hit[1] == last[1];
        if (same_prefixes && hit[2] == last[2] && hit[3] == last[3])
            continue;
        if (!same_prefixes) {
            status = end_hits(work, last, count, error);
            count = 0;
        }
        memcpy(last, hit, sizeof last);
        count++;
    }
    if (status == DOPPEL_OK)
        status = end_hits(work, last, count, error);
    work->counts.spilled_bytes += dp_sorter_spilled(&work->hits);
    return status;
}
