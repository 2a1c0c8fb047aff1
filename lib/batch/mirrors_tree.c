/* mirrors_tree.c - the shared paths of two prefixes, as a tree: where does the mirror begin?
 *
 * init, add each shared path in order, end. Only the nodes from the root to the last path are held. A node that is left
 * settles what is told of it: where all matching paths are below one child, the child's word stands, and moves up to
 * the node if the child holds all pages of both sides anyway; else the node is a mirror if it shares and matches
 * enough, in place of what was found below it; else what was found below it stands. */
#include "batch/mirrors.h"

void dp_mirror_tree_init(dp_mirror_tree *tree, dp_mirrors_work *work, unsigned a_depth, unsigned b_depth) {
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

bool dp_mirror_tree_add(dp_mirror_tree *tree, uint64_t a, uint64_t b, bool matches) {
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

bool dp_mirror_tree_end(dp_mirror_tree *tree) {
    return leave(tree, 0) && settle(tree, 0);
}
