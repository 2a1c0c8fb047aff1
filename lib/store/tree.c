/* tree.c - trees by number whose changes share what they do not touch.
 *
 * A node has 64 places, by six bits of the number, the highest first; the lowest nodes hold entries. Before anything is
 * changed the nodes on its path are made the tree's own: one that others hold too is copied first, and the copy holds
 * all that was below it. */
#include "store/tree.h"

#include <stdlib.h>

enum { BITS = 6, PLACES = 1 << BITS };

typedef struct dp_node {
    _Atomic uint64_t holders;
    void *place[PLACES]; /* nodes, or entries at the lowest level */
} dp_node;

/* ---- memory that counts its holders ---- */

static void *make(const dp_tree *tree, size_t size) {
    void *made = calloc(1, size);
    if (!made)
        return NULL;
    atomic_store_explicit((_Atomic uint64_t *)made, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(tree->used, size, memory_order_relaxed);
    return made;
}

static void hold(void *held) {
    if (held)
        atomic_fetch_add_explicit((_Atomic uint64_t *)held, 1, memory_order_relaxed);
}

/* Whether that was the last. */
static bool let_go(void *held) {
    return held && atomic_fetch_sub_explicit((_Atomic uint64_t *)held, 1, memory_order_acq_rel) == 1;
}

static bool is_own(void *held) {
    return atomic_load_explicit((_Atomic uint64_t *)held, memory_order_acquire) == 1;
}

static void give_back(const dp_tree *tree, void *made, size_t size) {
    atomic_fetch_sub_explicit(tree->used, size, memory_order_relaxed);
    free(made);
}

static void release_block(const dp_tree *tree, dp_block *block) {
    if (let_go(block))
        give_back(tree, block, sizeof *block + block->length);
}

static void release_links(const dp_tree *tree, dp_link *link) {
    while (let_go(link)) {
        dp_link *before = link->before;
        give_back(tree, link, sizeof *link);
        link = before;
    }
}

static void release_entry(const dp_tree *tree, dp_entry *entry) {
    if (!let_go(entry))
        return;
    for (int part = 0; part < DP_PARTS; part++)
        release_block(tree, entry->has.part[part]);
    release_links(tree, entry->has.links);
    give_back(tree, entry, sizeof *entry);
}

static void release_node(const dp_tree *tree, dp_node *node, int height) {
    if (!let_go(node))
        return;
    for (int i = 0; i < PLACES; i++) {
        if (height > 1)
            release_node(tree, node->place[i], height - 1);
        else
            release_entry(tree, node->place[i]);
    }
    give_back(tree, node, sizeof *node);
}

dp_tree dp_tree_hold(const dp_tree *tree) {
    hold(tree->root);
    return *tree;
}

void dp_tree_release(dp_tree *tree) {
    release_node(tree, tree->root, tree->height);
    *tree = (dp_tree){.used = tree->used};
}

/* ---- reading ---- */

static bool fits(const dp_tree *tree, uint64_t number) {
    return tree->height * BITS >= 64 || !(number >> (tree->height * BITS));
}

static unsigned place_of(uint64_t number, int height) {
    return (unsigned)(number >> ((height - 1) * BITS)) % PLACES;
}

const dp_entry *dp_tree_get(const dp_tree *tree, uint64_t number) {
    const void *at = fits(tree, number) ? tree->root : NULL;
    for (int height = tree->height; at && height; height--)
        at = ((const dp_node *)at)->place[place_of(number, height)];
    return at;
}

typedef struct walk {
    uint64_t from, to;
    dp_tree_visit *visit;
    void *user;
} walk;

/* The node has numbers from `first` on. */
static doppel_status walk_node(const walk *w, const dp_node *node, int height, uint64_t first) {
    int shift = (height - 1) * BITS;
    for (uint64_t i = 0; i < PLACES; i++) {
        uint64_t low = first + (i << shift), high = low + (((uint64_t)1 << shift) - 1);
        if (!node->place[i] || high < w->from)
            continue;
        if (low > w->to)
            break;
        doppel_status status =
            height > 1 ? walk_node(w, node->place[i], height - 1, low) : w->visit(low, node->place[i], w->user);
        if (status)
            return status;
    }
    return DOPPEL_OK;
}

doppel_status dp_tree_each(const dp_tree *tree, uint64_t from, uint64_t to, dp_tree_visit *visit, void *user) {
    walk w = {from, to, visit, user};
    return tree->root ? walk_node(&w, tree->root, tree->height, 0) : DOPPEL_OK;
}

/* ---- changing ---- */

/* Makes what is at *at the tree's own: the copy holds what the original holds. */
static dp_node *own_node(const dp_tree *tree, void **at) {
    dp_node *old = *at;
    if (old && is_own(old))
        return old;
    dp_node *node = make(tree, sizeof *node);
    if (!node)
        return NULL;
    if (old)
        memcpy(node->place, old->place, sizeof node->place);
    for (int i = 0; i < PLACES; i++)
        hold(node->place[i]);
    return *at = node;
}

static dp_entry *own_entry(const dp_tree *tree, void **at) {
    dp_entry *old = *at;
    if (old && is_own(old))
        return old;
    dp_entry *entry = make(tree, sizeof *entry);
    if (!entry)
        return NULL;
    if (old)
        entry->has = old->has;
    for (int part = 0; part < DP_PARTS; part++)
        hold(entry->has.part[part]);
    hold(entry->has.links);
    return *at = entry;
}

/* A new top, for as long as the number does not fit. */
static bool grow(dp_tree *tree, uint64_t number) {
    while (!fits(tree, number) || !tree->height) {
        dp_node *top = make(tree, sizeof *top);
        if (!top)
            return false;
        top->place[0] = tree->root;
        tree->root = top;
        tree->height++;
    }
    return true;
}

/* The place of a number, on a path that is the tree's own; NULL: no memory. */
static void **own_place(dp_tree *tree, uint64_t number) {
    if (!grow(tree, number))
        return NULL;
    void **at = &tree->root;
    for (int height = tree->height; height; height--) {
        void *before = *at;
        dp_node *node = own_node(tree, at);
        if (!node)
            return NULL;
        /* What is no longer this tree's is held by others: it cannot go now, but may if they let go meanwhile. */
        if (before && before != node)
            release_node(tree, before, height);
        at = &node->place[place_of(number, height)];
    }
    return at;
}

static dp_entry *own_number(dp_tree *tree, uint64_t number) {
    void **at = own_place(tree, number);
    if (!at)
        return NULL;
    dp_entry *before = *at, *entry = own_entry(tree, at);
    if (entry && before && before != entry)
        release_entry(tree, before);
    return entry;
}

/* ---- changes ---- */

static bool add_link(dp_tree *tree, uint64_t original, uint64_t number) {
    dp_entry *entry = own_number(tree, original);
    dp_link *link = entry ? make(tree, sizeof *link) : NULL;
    if (!link)
        return false;
    link->number = number;
    link->before = entry->has.links;
    entry->has.links = link;
    entry->has.link_count++;
    return true;
}

/* The links without one: those in front of it are made again. */
static bool remove_link(dp_tree *tree, uint64_t original, uint64_t number) {
    if (!dp_tree_get(tree, original))
        return true;
    dp_entry *entry = own_number(tree, original);
    if (!entry)
        return false;
    dp_link *gone = entry->has.links, *kept = NULL, **end = &kept;
    while (gone && gone->number != number)
        gone = gone->before;
    if (!gone)
        return true;
    for (dp_link *link = entry->has.links; link != gone; link = link->before, end = &(*end)->before) {
        if (!(*end = make(tree, sizeof **end))) {
            release_links(tree, kept);
            return false;
        }
        (*end)->number = link->number;
    }
    hold(*end = gone->before);
    release_links(tree, entry->has.links);
    entry->has.links = kept;
    entry->has.link_count--;
    return true;
}

static bool remove_number(dp_tree *tree, uint64_t number) {
    const dp_entry *entry = dp_tree_get(tree, number);
    dp_trace trace;
    if (!entry)
        return true;
    const dp_block *block = entry->has.part[DP_PART_TRACE];
    bool copy =
        block && dp_trace_decode((doppel_slice){block->bytes, block->length}, &trace) && trace.kind == DP_TRACE_COPY;
    for (int part = 0; part < DP_PARTS; part++)
        tree->entries[part] -= entry->has.part[part] != NULL;
    if (copy && !remove_link(tree, trace.of, number))
        return false;
    void **at = own_place(tree, number);
    if (!at)
        return false;
    release_entry(tree, *at);
    *at = NULL;
    return true;
}

static bool add_parts(dp_tree *tree, const dp_change *change) {
    dp_entry *entry = own_number(tree, change->number);
    if (!entry)
        return false;
    for (int part = 0; part < DP_PARTS; part++) {
        doppel_slice bytes = change->part[part];
        if (!bytes.data)
            continue;
        dp_block *block = make(tree, sizeof *block + bytes.length);
        if (!block)
            return false;
        block->length = bytes.length;
        memcpy(block->bytes, bytes.data, bytes.length);
        entry->has.part[part] = block;
        tree->entries[part]++;
    }
    tree->last = change->number;
    return true;
}

bool dp_tree_change(dp_tree *tree, const dp_change *change) {
    if (change->remove && !remove_number(tree, change->remove))
        return false;
    if (change->number && !add_parts(tree, change))
        return false;
    if (change->number && change->link && dp_tree_get(tree, change->link) &&
        !add_link(tree, change->link, change->number))
        return false;
    if (!change->count)
        return true;
    dp_counts_add(&tree->total, change);
    if (!dp_tree_get(tree, change->count))
        return true;
    dp_entry *entry = own_number(tree, change->count);
    if (entry)
        dp_counts_add(&entry->has.counts, change);
    return entry != NULL;
}
