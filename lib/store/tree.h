/* tree.h - what a store in memory holds: a tree by number that is never changed but made anew along the path of what
 * changes, so that whoever holds a tree sees one moment, for as long as he holds it.
 *
 * Everything in it counts who holds it and goes with the last; a change shares all it does not touch. A tree is changed
 * by one thread at a time, and can be let go of by any. */
#ifndef DP_STORE_TREE_H
#define DP_STORE_TREE_H

#include "store/kind.h"

/* Bytes of one part. */
typedef struct dp_block {
    _Atomic uint64_t holders;
    size_t length;
    char bytes[];
} dp_block;

/* Numbers that are linked, the latest first. */
typedef struct dp_link {
    _Atomic uint64_t holders;
    uint64_t number;
    struct dp_link *before;
} dp_link;

/* All of one number. */
typedef struct dp_entry {
    _Atomic uint64_t holders;
    struct {
        dp_block *part[DP_PARTS];
        dp_link *links;
        uint64_t link_count;
        dp_counts counts;
    } has;
} dp_entry;

/* `used` is what all trees that share something have together. */
typedef struct dp_tree {
    void *root; /* a node; none is there without numbers */
    int height; /* levels of nodes: numbers below 64^height */
    uint64_t last;
    dp_clock clock;
    dp_counts total;
    uint64_t entries[DP_PARTS];
    _Atomic uint64_t *used;
} dp_tree;

/* One more that holds the same, and one less. */
dp_tree dp_tree_hold(const dp_tree *tree);
void dp_tree_release(dp_tree *tree);

/* What a number has; NULL: nothing. */
const dp_entry *dp_tree_get(const dp_tree *tree, uint64_t number);

/* Calls `entry` for each number from `from` to `to`, ascending, until it gives something else than DOPPEL_OK. */
typedef doppel_status dp_tree_visit(uint64_t number, const dp_entry *entry, void *user);
doppel_status dp_tree_each(const dp_tree *tree, uint64_t from, uint64_t to, dp_tree_visit *visit, void *user);

/* Makes a change, in a tree of its own (dp_tree_hold); false: no memory, and the tree is fit only to be released. */
bool dp_tree_change(dp_tree *tree, const dp_change *change);

#endif
