/* memory.c - a store in memory, gone when it is closed: a tree by number that is never changed in place. A change
 * copies the path to what changes and shares the rest, so that a view, which holds a tree, sees one snapshot for as
 * long as it lasts, and never waits.
 *
 * A node has 64 places, by six bits of the number, the highest first; the lowest nodes hold entries. Nodes, entries,
 * links and the bytes of parts are reference-counted. Before anything is changed the nodes on its path are made the
 * tree's own: one that others hold too is copied first, and the copy holds all that was below it. A tree is changed by
 * one thread at a time, and can be released by any.
 *
 * A write works on a tree of its own and puts it into the store's place when all of it is done. Compacting looks
 * through one tree for what goes, and removes that in writes of its own, a few numbers each. */
#include "store/store.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- the tree ---- */

/* Bytes of one part. */
typedef struct part_bytes {
    _Atomic uint64_t holders;
    size_t length;
    char bytes[];
} part_bytes;

/* Numbers that are linked, the latest first. */
typedef struct copy_link {
    _Atomic uint64_t holders;
    uint64_t number;
    struct copy_link *before;
} copy_link;

/* All of one number. */
typedef struct tree_entry {
    _Atomic uint64_t holders;
    struct {
        part_bytes *part[DP_PARTS];
        copy_link *links;
        uint64_t link_count;
        dp_counts counts;
    } has;
} tree_entry;

/* `used`: the bytes that all trees of a store have together. */
typedef struct number_tree {
    void *root; /* a node; none is there without numbers */
    int height; /* levels of nodes: numbers below 64^height */
    uint64_t last;
    dp_clock clock;
    dp_counts total;
    uint64_t entries[DP_PARTS];
    _Atomic uint64_t *used;
} number_tree;

enum { BITS = 6, PLACES = 1 << BITS };

typedef struct tree_node {
    _Atomic uint64_t holders;
    void *place[PLACES]; /* nodes, or entries at the lowest level */
} tree_node;

/* ---- reference-counted memory ---- */

static void *make(const number_tree *tree, size_t size) {
    void *made = calloc(1, size);
    if (!made)
        return NULL;
    atomic_store_explicit((_Atomic uint64_t *)made, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(tree->used, size, memory_order_relaxed);
    return made;
}

static void add_reference(void *object) {
    if (object)
        atomic_fetch_add_explicit((_Atomic uint64_t *)object, 1, memory_order_relaxed);
}

/* True: that was the last reference. */
static bool drop_reference(void *object) {
    return object && atomic_fetch_sub_explicit((_Atomic uint64_t *)object, 1, memory_order_acq_rel) == 1;
}

static bool is_own(void *object) {
    return atomic_load_explicit((_Atomic uint64_t *)object, memory_order_acquire) == 1;
}

static void give_back(const number_tree *tree, void *made, size_t size) {
    atomic_fetch_sub_explicit(tree->used, size, memory_order_relaxed);
    free(made);
}

static void release_block(const number_tree *tree, part_bytes *block) {
    if (drop_reference(block))
        give_back(tree, block, sizeof *block + block->length);
}

static void release_links(const number_tree *tree, copy_link *link) {
    while (drop_reference(link)) {
        copy_link *before = link->before;
        give_back(tree, link, sizeof *link);
        link = before;
    }
}

static void release_entry(const number_tree *tree, tree_entry *entry) {
    if (!drop_reference(entry))
        return;
    for (int part = 0; part < DP_PARTS; part++)
        release_block(tree, entry->has.part[part]);
    release_links(tree, entry->has.links);
    give_back(tree, entry, sizeof *entry);
}

static void release_node(const number_tree *tree, tree_node *node, int height) {
    if (!drop_reference(node))
        return;
    for (int i = 0; i < PLACES; i++) {
        if (height > 1)
            release_node(tree, node->place[i], height - 1);
        else
            release_entry(tree, node->place[i]);
    }
    give_back(tree, node, sizeof *node);
}

/* Another reference to the same tree. */
static number_tree tree_hold(const number_tree *tree) {
    add_reference(tree->root);
    return *tree;
}

/* Releases a reference. */
static void tree_release(number_tree *tree) {
    release_node(tree, tree->root, tree->height);
    *tree = (number_tree){.used = tree->used};
}

/* ---- reading ---- */

static bool fits(const number_tree *tree, uint64_t number) {
    return tree->height * BITS >= 64 || !(number >> (tree->height * BITS));
}

static unsigned place_of(uint64_t number, int height) {
    return (unsigned)(number >> ((height - 1) * BITS)) % PLACES;
}

/* What a number has; NULL: nothing. */
static const tree_entry *tree_get(const number_tree *tree, uint64_t number) {
    const void *at = fits(tree, number) ? tree->root : NULL;
    for (int height = tree->height; at && height; height--)
        at = ((const tree_node *)at)->place[place_of(number, height)];
    return at;
}

/* Called for each number, ascending, until it returns something other than DOPPEL_OK. */
typedef doppel_status tree_visit(uint64_t number, const tree_entry *entry, void *user);

typedef struct tree_walk {
    uint64_t from, to;
    tree_visit *visit;
    void *user;
} tree_walk;

/* The node has numbers from `first` on. */
static doppel_status walk_node(const tree_walk *w, const tree_node *node, int height, uint64_t first) {
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

/* Visits each number from `from` to `to`. */
static doppel_status tree_each(const number_tree *tree, uint64_t from, uint64_t to, tree_visit *visit, void *user) {
    tree_walk w = {from, to, visit, user};
    return tree->root ? walk_node(&w, tree->root, tree->height, 0) : DOPPEL_OK;
}

/* ---- changing ---- */

/* Makes what is at *at the tree's own: the copy holds what the original holds. */
static tree_node *own_node(const number_tree *tree, void **at) {
    tree_node *old = *at;
    if (old && is_own(old))
        return old;
    tree_node *node = make(tree, sizeof *node);
    if (!node)
        return NULL;
    if (old)
        memcpy(node->place, old->place, sizeof node->place);
    for (int i = 0; i < PLACES; i++)
        add_reference(node->place[i]);
    return *at = node;
}

static tree_entry *own_entry(const number_tree *tree, void **at) {
    tree_entry *old = *at;
    if (old && is_own(old))
        return old;
    tree_entry *entry = make(tree, sizeof *entry);
    if (!entry)
        return NULL;
    if (old)
        entry->has = old->has;
    for (int part = 0; part < DP_PARTS; part++)
        add_reference(entry->has.part[part]);
    add_reference(entry->has.links);
    return *at = entry;
}

/* Adds levels until the number fits. */
static bool grow(number_tree *tree, uint64_t number) {
    while (!fits(tree, number) || !tree->height) {
        tree_node *top = make(tree, sizeof *top);
        if (!top)
            return false;
        top->place[0] = tree->root;
        tree->root = top;
        tree->height++;
    }
    return true;
}

/* The place of a number, on a path that is the tree's own; NULL: out of memory. */
static void **own_place(number_tree *tree, uint64_t number) {
    if (!grow(tree, number))
        return NULL;
    void **at = &tree->root;
    for (int height = tree->height; height; height--) {
        void *before = *at;
        tree_node *node = own_node(tree, at);
        if (!node)
            return NULL;
        /* Others held the old node when it was copied; they may have released it since, and this is the last. */
        if (before && before != node)
            release_node(tree, before, height);
        at = &node->place[place_of(number, height)];
    }
    return at;
}

static tree_entry *own_number(number_tree *tree, uint64_t number) {
    void **at = own_place(tree, number);
    if (!at)
        return NULL;
    tree_entry *before = *at, *entry = own_entry(tree, at);
    if (entry && before && before != entry)
        release_entry(tree, before);
    return entry;
}

/* ---- changes ---- */

static bool add_link(number_tree *tree, uint64_t original, uint64_t number) {
    tree_entry *entry = own_number(tree, original);
    copy_link *link = entry ? make(tree, sizeof *link) : NULL;
    if (!link)
        return false;
    link->number = number;
    link->before = entry->has.links;
    entry->has.links = link;
    entry->has.link_count++;
    return true;
}

/* The links without one: those before it are copied. */
static bool remove_link(number_tree *tree, uint64_t original, uint64_t number) {
    if (!tree_get(tree, original))
        return true;
    tree_entry *entry = own_number(tree, original);
    if (!entry)
        return false;
    copy_link *gone = entry->has.links, *kept = NULL, **end = &kept;
    while (gone && gone->number != number)
        gone = gone->before;
    if (!gone)
        return true;
    for (copy_link *link = entry->has.links; link != gone; link = link->before, end = &(*end)->before) {
        if (!(*end = make(tree, sizeof **end))) {
            release_links(tree, kept);
            return false;
        }
        (*end)->number = link->number;
    }
    add_reference(*end = gone->before);
    release_links(tree, entry->has.links);
    entry->has.links = kept;
    entry->has.link_count--;
    return true;
}

static bool remove_number(number_tree *tree, uint64_t number) {
    const tree_entry *entry = tree_get(tree, number);
    dp_trace trace;
    if (!entry)
        return true;
    const part_bytes *block = entry->has.part[DP_PART_TRACE];
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

static bool add_parts(number_tree *tree, const dp_change *change) {
    tree_entry *entry = own_number(tree, change->number);
    if (!entry)
        return false;
    for (int part = 0; part < DP_PARTS; part++) {
        doppel_slice bytes = change->part[part];
        if (!bytes.data)
            continue;
        part_bytes *block = make(tree, sizeof *block + bytes.length);
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

/* Makes a change, in a separate tree (tree_hold); false: out of memory, and the tree can only be released. */
static bool tree_change(number_tree *tree, const dp_change *change) {
    if (change->remove && !remove_number(tree, change->remove))
        return false;
    if (change->number && !add_parts(tree, change))
        return false;
    if (change->number && change->link && tree_get(tree, change->link) && !add_link(tree, change->link, change->number))
        return false;
    if (!change->count)
        return true;
    dp_counts_add(&tree->total, change);
    if (!tree_get(tree, change->count))
        return true;
    tree_entry *entry = own_number(tree, change->count);
    if (entry)
        dp_counts_add(&entry->has.counts, change);
    return entry != NULL;
}

/* ---- the store ---- */

typedef struct memory_store {
    dp_store store;
    pthread_mutex_t writing; /* held while a tree is changed; taken before the other */
    pthread_mutex_t mutex;   /* protects `tree`: held only while taking a reference */
    number_tree tree;
    _Atomic uint64_t used;
    uint64_t generation;
    char *settings;
    dp_names names;
} memory_store;

typedef struct memory_view {
    dp_view view;
    number_tree tree;
    uint64_t generation;
} memory_view;

static memory_store *of_store(const dp_store *store) {
    return (memory_store *)(uintptr_t)store;
}

static memory_view *of_view(dp_view *view) {
    return (memory_view *)view;
}

/* ---- opening ---- */

static bool takes(const char *path) {
    return !path;
}

static doppel_status open_store(const char *path, const dp_store_options *options, dp_store **store,
                                doppel_error *error) {
    (void)path;
    if (options->read_only || options->must_exist)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a store in memory is always new: it cannot be read-only");
    memory_store *made = calloc(1, sizeof *made);
    if (!made || !(made->settings = strdup(options->settings ? options->settings : ""))) {
        free(made);
        return dp_no_memory(error);
    }
    doppel_status status = dp_names_create(&made->names, error);
    if (status) {
        free(made->settings);
        free(made);
        return status;
    }
    made->store.kind = &dp_store_memory;
    made->tree.used = &made->used;
    pthread_mutex_init(&made->writing, NULL);
    pthread_mutex_init(&made->mutex, NULL);
    *store = &made->store;
    return DOPPEL_OK;
}

static void close_store(dp_store *store) {
    memory_store *s = of_store(store);
    tree_release(&s->tree);
    pthread_mutex_destroy(&s->writing);
    pthread_mutex_destroy(&s->mutex);
    free(s->settings);
    free(s);
}

static const char *settings(const dp_store *store) {
    return of_store(store)->settings;
}

static doppel_status set_settings(dp_store *store, const char *settings, const dp_clock *clock, doppel_error *error) {
    memory_store *s = of_store(store);
    char *copy = strdup(settings);
    (void)clock;
    if (!copy)
        return dp_no_memory(error);
    free(s->settings);
    s->settings = copy;
    return DOPPEL_OK;
}

/* ---- writing ---- */

static number_tree hold_tree(memory_store *s, uint64_t *generation) {
    pthread_mutex_lock(&s->mutex);
    number_tree tree = tree_hold(&s->tree);
    if (generation)
        *generation = s->generation;
    pthread_mutex_unlock(&s->mutex);
    return tree;
}

static void publish(memory_store *s, const number_tree *tree, bool compacted) {
    pthread_mutex_lock(&s->mutex);
    number_tree before = s->tree;
    s->tree = *tree;
    s->generation += compacted;
    pthread_mutex_unlock(&s->mutex);
    tree_release(&before);
}

/* `writing` is held. */
static doppel_status change_tree(memory_store *s, const dp_change *changes, size_t count, const dp_clock *clock,
                                 doppel_error *error) {
    number_tree tree = hold_tree(s, NULL);
    uint64_t last = tree.last;
    doppel_status status = dp_changes_check(changes, count, &last, error);
    for (size_t i = 0; !status && i < count; i++)
        if (!tree_change(&tree, &changes[i]))
            status = dp_no_memory(error);
    if (status) {
        tree_release(&tree);
        return status;
    }
    if (clock)
        tree.clock = *clock;
    publish(s, &tree, !clock);
    return DOPPEL_OK;
}

static doppel_status write_changes(dp_store *store, const dp_change *changes, size_t count, const dp_clock *clock,
                                   doppel_error *error) {
    memory_store *s = of_store(store);
    pthread_mutex_lock(&s->writing);
    doppel_status status = change_tree(s, changes, count, clock, error);
    pthread_mutex_unlock(&s->writing);
    return status;
}

/* ---- views ---- */

static doppel_status view_create(dp_store *store, dp_view **view, doppel_error *error) {
    memory_view *made = calloc(1, sizeof *made);
    if (!made)
        return dp_no_memory(error);
    made->view.store = store;
    made->tree.used = &of_store(store)->used;
    *view = &made->view;
    return DOPPEL_OK;
}

static void view_end(dp_view *view) {
    tree_release(&of_view(view)->tree);
}

static void view_free(dp_view *view) {
    view_end(view);
    free(view);
}

static doppel_status view_begin(dp_view *view, doppel_error *error) {
    (void)error;
    of_view(view)->tree = hold_tree(of_store(view->store), &of_view(view)->generation);
    return DOPPEL_OK;
}

static void view_moment(dp_view *view, dp_moment *moment) {
    const memory_view *v = of_view(view);
    *moment = (dp_moment){.last = v->tree.last,
                          .clock = v->tree.clock,
                          .generation = v->generation,
                          .names = of_store(view->store)->names,
                          .traces = v->tree.entries[DP_PART_TRACE],
                          .records = v->tree.entries[DP_PART_RECORD],
                          .titles = v->tree.total.by[dp_reason_counter(DOPPEL_REASON_TITLE)]};
}

static void view_info(dp_view *view, dp_store_info *info) {
    const memory_view *v = of_view(view);
    info->last = v->tree.last;
    info->clock = v->tree.clock;
    info->generation = v->generation;
    info->total = v->tree.total;
    memcpy(info->entries, v->tree.entries, sizeof info->entries);
    info->memory_bytes = atomic_load_explicit(v->tree.used, memory_order_relaxed);
}

static doppel_status view_get(dp_view *view, dp_part part, uint64_t number, doppel_slice *bytes, doppel_error *error) {
    const tree_entry *entry = tree_get(&of_view(view)->tree, number);
    const part_bytes *block = entry ? entry->has.part[part] : NULL;
    (void)error;
    if (block)
        *bytes = (doppel_slice){block->bytes, block->length};
    return DOPPEL_OK;
}

static doppel_status view_counts(dp_view *view, uint64_t number, dp_counts *counts, doppel_error *error) {
    const tree_entry *entry = tree_get(&of_view(view)->tree, number);
    (void)error;
    if (entry)
        *counts = entry->has.counts;
    return DOPPEL_OK;
}

static doppel_status view_links(dp_view *view, uint64_t number, uint64_t *links, size_t room, size_t *found,
                                doppel_error *error) {
    const tree_entry *entry = tree_get(&of_view(view)->tree, number);
    (void)error;
    if (!entry)
        return DOPPEL_OK;
    size_t place = *found = entry->has.link_count;
    for (const copy_link *link = entry->has.links; link; link = link->before)
        if (--place < room)
            links[place] = link->number;
    return DOPPEL_OK;
}

static doppel_status visit_part(uint64_t number, const tree_entry *entry, void *user) {
    const dp_each *each = user;
    const part_bytes *block = entry->has.part[each->part];
    return block ? each->value(number, (doppel_slice){block->bytes, block->length}, each->user) : DOPPEL_OK;
}

static doppel_status view_each(dp_view *view, const dp_each *each, doppel_error *error) {
    dp_each copy = *each;
    (void)error;
    return tree_each(&of_view(view)->tree, each->from, each->to, visit_part, &copy);
}

typedef struct count_visit {
    dp_count_visit *counted;
    void *user;
} count_visit;

static doppel_status visit_counts(uint64_t number, const tree_entry *entry, void *user) {
    const count_visit *c = user;
    const uint64_t *by = entry->has.counts.by;
    return by[0] || by[1] || by[2] ? c->counted(number, &entry->has.counts, c->user) : DOPPEL_OK;
}

static doppel_status view_each_count(dp_view *view, dp_count_visit *counted, void *user, doppel_error *error) {
    count_visit c = {counted, user};
    (void)error;
    return tree_each(&of_view(view)->tree, 0, UINT64_MAX, visit_counts, &c);
}

/* ---- as a whole ---- */

/* How many numbers are removed at a time. */
enum { COMPACT_MANY = 256 };

typedef struct compaction {
    memory_store *store;
    dp_trace_filter *keep;
    void *user;
    dp_change gone[COMPACT_MANY];
    size_t count;
} compaction;

/* A step is not a write: the clock is unchanged, and the generation changes. */
static doppel_status remove_gone(compaction *c) {
    pthread_mutex_lock(&c->store->writing);
    doppel_status status = change_tree(c->store, c->gone, c->count, NULL, NULL);
    pthread_mutex_unlock(&c->store->writing);
    c->count = 0;
    return status;
}

static doppel_status visit_compact(uint64_t number, const tree_entry *entry, void *user) {
    compaction *c = user;
    const part_bytes *block = entry->has.part[DP_PART_TRACE];
    dp_trace trace;
    if (block && dp_trace_decode((doppel_slice){block->bytes, block->length}, &trace) && !dp_trace_is_removal(&trace) &&
        c->keep(&trace, c->user))
        return DOPPEL_OK;
    c->gone[c->count++] = (dp_change){.remove = number};
    return c->count < COMPACT_MANY ? DOPPEL_OK : remove_gone(c);
}

static doppel_status compact(dp_store *store, dp_trace_filter *keep, void *user, doppel_error *error) {
    memory_store *s = of_store(store);
    compaction c = {.store = s, .keep = keep, .user = user};
    number_tree before = hold_tree(s, NULL);
    doppel_status status = tree_each(&before, 0, UINT64_MAX, visit_compact, &c);
    tree_release(&before);
    DP_THEN(status, remove_gone(&c));
    return status ? dp_no_memory(error) : DOPPEL_OK;
}

static doppel_status backup(dp_store *store, const char *path, doppel_error *error) {
    (void)store;
    return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0, "a store in memory has no backup: export its documents");
}

const dp_store_kind dp_store_memory = {
    .name = "memory",
    .takes = takes,
    .open = open_store,
    .close = close_store,
    .settings = settings,
    .set_settings = set_settings,
    .write = write_changes,
    .view_create = view_create,
    .view_free = view_free,
    .view_begin = view_begin,
    .view_end = view_end,
    .view_moment = view_moment,
    .view_info = view_info,
    .view_get = view_get,
    .view_counts = view_counts,
    .view_links = view_links,
    .view_each = view_each,
    .view_each_count = view_each_count,
    .compact = compact,
    .backup = backup,
};
