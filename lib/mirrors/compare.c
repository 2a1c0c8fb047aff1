/* compare.c - which prefixes have a page in common, and the paths below two such prefixes compared.
 *
 * The pages below a prefix stand together in the table, in order of what follows the prefix. Those of the smaller side
 * are gone through, and each is looked for on the other side from where the last one was, in growing steps: so a small
 * mirror of a huge host costs little. */
#include "kernel/kernel.h"
#include "mirrors/mirrors.h"

#include <math.h>

/* A node of the tree of the shared paths of two prefixes. */
typedef struct dp_mirror_node {
    uint64_t shared, matching;
    uint64_t a, b;    /* a page below it */
    size_t parts;     /* children with matching paths, and 1 if its own page matches */
    bool own;         /* its own page matches */
    size_t found_at;  /* pairs found below it start here in work->pairs */
    uint64_t child_a; /* pages below the last child with matching paths */
    uint64_t child_b;
} dp_mirror_node;

typedef struct dp_mirror_tree {
    dp_mirrors_work *work;
    unsigned a_depth, b_depth; /* of the prefixes */
    unsigned depth;            /* of the last path */
    uint64_t last;             /* the page of A that came last; UINT64_MAX: none */
    dp_mirror_node node[DP_MIRROR_SEGMENTS + 1];
} dp_mirror_tree;

/* ---- which prefixes have a page in common: pages whose paths end alike and whose content is near meet.
 *
 * Each page stands under a few keys, of the last segment of its path and one band of its signature each; pages under
 * one key meet. How far two paths agree from their ends says which prefixes they speak for: a page of each below a
 * mirror and its original has the same two prefixes as all others, so these are counted. Where more than
 * DP_MIRROR_CROWD pages have a key, only those meet whose last but one segments agree too; where these still are more,
 * each meets the first. */

/* Pages under one key, or of those, with one last but one segment. */
typedef struct crowd {
    uint64_t key;
    uint64_t held[DP_MIRROR_CROWD], parent[DP_MIRROR_CROWD];
    size_t count;
    bool split; /* there were too many: those held have one parent */
    bool star;  /* there still were: each meets the first */
} crowd;

/* ---- two pages ---- */

static uint64_t hash_prefix(const dp_mirror_page *page, unsigned depth) {
    uint64_t hash = dp_hash_mix(page->host + depth);
    for (unsigned i = 0; i < depth; i++)
        hash = dp_hash_mix(hash ^ page->segment[i]) + i;
    return hash;
}

/* How many segments agree from the end. */
static unsigned common_end(const dp_mirror_page *a, const dp_mirror_page *b) {
    unsigned common = 0;
    while (common < a->depth && common < b->depth &&
           a->segment[a->depth - 1 - common] == b->segment[b->depth - 1 - common])
        common++;
    return common;
}

/* Whether one prefix is below the other. */
static bool nested(const dp_mirror_page *a, unsigned a_depth, const dp_mirror_page *b, unsigned b_depth) {
    unsigned least = a_depth < b_depth ? a_depth : b_depth;
    return a->host == b->host && !memcmp(a->segment, b->segment, least * sizeof *a->segment);
}

static doppel_status meet(dp_mirrors_work *work, uint64_t x, uint64_t y, doppel_error *error) {
    const dp_mirror_page *a = &work->table[x], *b = &work->table[y];
    if (!dp_mirror_near(work, a, b))
        return DOPPEL_OK;
    unsigned common = common_end(a, b), a_depth = (unsigned)a->depth - common, b_depth = (unsigned)b->depth - common;
    if (nested(a, a_depth, b, b_depth))
        return DOPPEL_OK;
    uint64_t a_prefix = hash_prefix(a, a_depth), b_prefix = hash_prefix(b, b_depth);
    uint64_t hit[4] = {a_prefix, b_prefix, x << 4 | a_depth, y << 4 | b_depth};
    if (a_prefix > b_prefix) {
        uint64_t turned[4] = {b_prefix, a_prefix, hit[3], hit[2]};
        memcpy(hit, turned, sizeof hit);
    }
    return dp_sorter_add(&work->hits, hit, error);
}

/* ---- crowds ---- */

/* Those held from `from` on meet each other. */
static doppel_status meet_all(dp_mirrors_work *work, const crowd *c, size_t from, size_t end, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = from; i < end; i++)
        for (size_t j = i + 1; j < end && status == DOPPEL_OK; j++)
            status = meet(work, c->held[i], c->held[j], error);
    return status;
}

/* Ends those that are held. */
static doppel_status end_held(dp_mirrors_work *work, crowd *c, doppel_error *error) {
    doppel_status status = c->star ? DOPPEL_OK : meet_all(work, c, 0, c->count, error);
    c->count = 0;
    c->star = false;
    return status;
}

/* From here on only pages with one parent meet; those with the last parent stay held. */
static doppel_status split(dp_mirrors_work *work, crowd *c, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    size_t from = 0, end = 0;
    for (; end < c->count && status == DOPPEL_OK; end++)
        if (c->parent[end] != c->parent[from]) {
            status = meet_all(work, c, from, end, error);
            from = end;
        }
    memmove(c->held, c->held + from, (c->count - from) * sizeof *c->held);
    memmove(c->parent, c->parent + from, (c->count - from) * sizeof *c->parent);
    c->count -= from;
    c->split = true;
    work->counts.frequent++;
    return status;
}

/* From here on each meets the first. */
static doppel_status make_star(dp_mirrors_work *work, crowd *c, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 1; i < c->count && status == DOPPEL_OK; i++)
        status = meet(work, c->held[0], c->held[i], error);
    c->star = true;
    return status;
}

static doppel_status add_page(dp_mirrors_work *work, crowd *c, uint64_t parent, uint64_t page, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    if (c->count == DP_MIRROR_CROWD && !c->split)
        status = split(work, c, error);
    if (status == DOPPEL_OK && c->split && c->count && c->parent[0] != parent)
        status = end_held(work, c, error);
    if (status != DOPPEL_OK)
        return status;
    if (c->count < DP_MIRROR_CROWD) {
        c->held[c->count] = page;
        c->parent[c->count++] = parent;
        return DOPPEL_OK;
    }
    if (!c->star)
        status = make_star(work, c, error);
    return status == DOPPEL_OK ? meet(work, c->held[0], page, error) : status;
}

/* ---- keys ---- */

static doppel_status add_keys(dp_mirrors_work *work, dp_sorter *keys, uint64_t number, doppel_error *error) {
    const dp_mirror_page *page = &work->table[number];
    doppel_status status = DOPPEL_OK;
    uint64_t last = page->depth ? page->segment[page->depth - 1] : 0;
    uint64_t parent = page->depth > 1 ? page->segment[page->depth - 2] : 0;
    for (size_t band = 0; band < DP_MIRROR_BANDS && status == DOPPEL_OK; band++) {
        uint64_t slots = dp_load_tail(page->slot + band * DP_MIRROR_ROWS, DP_MIRROR_ROWS);
        uint64_t record[3] = {dp_hash_mix(dp_hash_mix(last) ^ (slots << 8 | band)), parent, number};
        status = dp_sorter_add(keys, record, error);
    }
    return status;
}

static doppel_status meet_by_key(dp_mirrors_work *work, dp_sorter *keys, doppel_error *error) {
    crowd c = {.count = 0};
    const uint64_t *record;
    doppel_status status = dp_sorter_finish(keys, error);
    while (status == DOPPEL_OK && (status = dp_sorter_next(keys, &record, error)) == DOPPEL_OK && record) {
        if (record[0] != c.key) {
            status = end_held(work, &c, error);
            c.split = false;
            c.key = record[0];
        }
        if (status == DOPPEL_OK)
            status = add_page(work, &c, record[1], record[2], error);
    }
    return status == DOPPEL_OK ? end_held(work, &c, error) : status;
}

doppel_status dp_mirrors_meet(dp_mirrors_work *work, doppel_error *error) {
    dp_sorter keys;
    dp_sorter_options options = {
        .words = 3, .keys = 2, .memory = work->memory / 2, .tmp = work->options.tmp, .stop = work->input.stop};
    doppel_status status = DOPPEL_OK;
    dp_sorter_init(&keys, &options);
    options.words = options.keys = 4;
    dp_sorter_init(&work->hits, &options);
    for (uint64_t i = 0; i < work->count && status == DOPPEL_OK; i++)
        status = add_keys(work, &keys, i, error);
    if (status == DOPPEL_OK)
        status = meet_by_key(work, &keys, error);
    work->counts.spilled_bytes += dp_sorter_spilled(&keys);
    dp_sorter_free(&keys);
    return status == DOPPEL_OK ? dp_sorter_finish(&work->hits, error) : status;
}

/* ---- the shared paths of two prefixes, as a tree: where does the mirror begin?
 *
 * init, add each shared path in order, end. Only the nodes from the root to the last path are held. A node that is left
 * settles what is told of it: where all matching paths are below one child, the child's word stands, and moves up to
 * the node if the child holds all pages of both sides anyway; else the node is a mirror if it shares and matches
 * enough, in place of what was found below it; else what was found below it stands. */

static void mirror_tree_init(dp_mirror_tree *tree, dp_mirrors_work *work, unsigned a_depth, unsigned b_depth) {
    *tree = (dp_mirror_tree){.work = work, .a_depth = a_depth, .b_depth = b_depth, .last = UINT64_MAX};
    tree->node[0].found_at = work->pair_count;
}

static bool is_mirror(const dp_mirror_tree *tree, const dp_mirror_node *node) {
    const doppel_mirrors_options *options = &tree->work->options;
    return node->shared >= options->min_paths && (double)node->matching >= options->min_score * (double)node->shared;
}

/* Whether the child with all matching paths has every page of both sides that the node has. */
static bool child_is_all(const dp_mirror_tree *tree, const dp_mirror_node *node, unsigned depth) {
    const uint64_t page[2] = {node->child_a, node->child_b};
    const unsigned above[2] = {tree->a_depth + depth, tree->b_depth + depth};
    for (int i = 0; i < 2; i++) {
        const dp_mirror_page *below = &tree->work->table[page[i]];
        dp_mirror_range all = dp_mirror_below(tree->work, below, above[i]);
        dp_mirror_range part = dp_mirror_below(tree->work, below, above[i] + 1);
        if (all.start != part.start || all.end != part.end)
            return false;
    }
    return true;
}

static bool push(dp_mirror_tree *tree, const dp_mirror_node *node, unsigned depth) {
    dp_mirrors_work *work = tree->work;
    if (!dp_reserve(&work->pairs, &work->pair_room, work->pair_count + 1, sizeof *work->pairs))
        return false;
    work->pairs[work->pair_count++] = (dp_mirror_pair){.a = node->a,
                                                       .b = node->b,
                                                       .a_depth = tree->a_depth + depth,
                                                       .b_depth = tree->b_depth + depth,
                                                       .shared = node->shared,
                                                       .matching = node->matching};
    return true;
}

/* All matching paths are below one child. */
static bool settle_by_child(dp_mirror_tree *tree, const dp_mirror_node *node, unsigned depth) {
    dp_mirrors_work *work = tree->work;
    size_t found = work->pair_count - node->found_at;
    dp_mirror_pair *pair = found ? &work->pairs[node->found_at] : NULL;
    if (!found)
        return !is_mirror(tree, node) || push(tree, node, depth);
    if (found == 1 && pair->a_depth == tree->a_depth + depth + 1 && child_is_all(tree, node, depth)) {
        pair->a_depth--;
        pair->b_depth--;
    }
    return true;
}

/* What is told of a node that is left. */
static bool settle(dp_mirror_tree *tree, unsigned depth) {
    const dp_mirror_node *node = &tree->node[depth];
    if (node->parts == 1 && !node->own)
        return settle_by_child(tree, node, depth);
    if (!node->parts || !is_mirror(tree, node))
        return true;
    tree->work->pair_count = node->found_at;
    return push(tree, node, depth);
}

/* Leaves all nodes deeper than `depth`. */
static bool leave(dp_mirror_tree *tree, unsigned depth) {
    for (; tree->depth > depth; tree->depth--) {
        const dp_mirror_node *node = &tree->node[tree->depth];
        dp_mirror_node *above = &tree->node[tree->depth - 1];
        if (!settle(tree, tree->depth))
            return false;
        above->shared += node->shared;
        above->matching += node->matching;
        if (node->matching) {
            above->parts++;
            above->child_a = node->a;
            above->child_b = node->b;
        }
    }
    return true;
}

/* How many segments behind the prefix a page has in common with the last one. */
static unsigned common_start(const dp_mirror_tree *tree, const dp_mirror_page *page, unsigned depth) {
    const dp_mirror_page *last = &tree->work->table[tree->last];
    unsigned common = 0;
    while (common < depth && common < tree->depth &&
           page->segment[tree->a_depth + common] == last->segment[tree->a_depth + common])
        common++;
    return common;
}

/* A path that both have, in order. False: no memory. */
static bool mirror_tree_add(dp_mirror_tree *tree, uint64_t a, uint64_t b, bool matches) {
    const dp_mirror_page *page = &tree->work->table[a];
    unsigned depth = (unsigned)page->depth - tree->a_depth;
    if (tree->last == UINT64_MAX)
        tree->node[0].a = a, tree->node[0].b = b;
    else if (!leave(tree, common_start(tree, page, depth)))
        return false;
    for (; tree->depth < depth; tree->depth++)
        tree->node[tree->depth + 1] = (dp_mirror_node){.a = a, .b = b, .found_at = tree->work->pair_count};
    dp_mirror_node *node = &tree->node[depth];
    node->shared++;
    node->matching += matches;
    node->parts += matches;
    node->own |= matches;
    tree->last = a;
    return true;
}

/* Adds the mirrors to work->pairs. */
static bool mirror_tree_end(dp_mirror_tree *tree) {
    return leave(tree, 0) && settle(tree, 0);
}

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
    mirror_tree_init(&tree, work, depth[0], depth[1]);
    bool done = true;
    for (size_t i = range[small].start; i < range[small].end && done; i++) {
        const dp_mirror_page *page = &work->table[i];
        size_t at = range[large].start = dp_mirror_seek(work, range[large], depth[large], page, depth[small]);
        if (at == range[large].end)
            break;
        if (dp_mirror_order(&work->table[at], depth[large], page, depth[small]) == 0)
            done = mirror_tree_add(&tree, small ? at : i, small ? i : at, dp_mirror_near(work, page, &work->table[at]));
    }
    return done && mirror_tree_end(&tree) ? DOPPEL_OK : dp_no_memory(error);
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
