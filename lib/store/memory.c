/* memory.c - a store that is gone when it is closed: the tree of tree.h, and one more for each view that is inside.
 *
 * A write works on a tree of its own and puts it into the store's place when all of it is done. */
#include "store/tree.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct memory_store {
    dp_store store;
    pthread_mutex_t mutex; /* of `tree`: held for as long as it takes to hold it */
    dp_tree tree;
    _Atomic uint64_t used;
    uint64_t generation;
    char *settings;
    dp_names names;
} memory_store;

typedef struct memory_view {
    dp_view view;
    dp_tree tree;
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
    pthread_mutex_init(&made->mutex, NULL);
    *store = &made->store;
    return DOPPEL_OK;
}

static void close_store(dp_store *store) {
    memory_store *s = of_store(store);
    dp_tree_release(&s->tree);
    pthread_mutex_destroy(&s->mutex);
    free(s->settings);
    free(s);
}

static const char *settings(const dp_store *store) {
    return of_store(store)->settings;
}

/* ---- writing ---- */

static dp_tree hold_tree(memory_store *s, uint64_t *generation) {
    pthread_mutex_lock(&s->mutex);
    dp_tree tree = dp_tree_hold(&s->tree);
    if (generation)
        *generation = s->generation;
    pthread_mutex_unlock(&s->mutex);
    return tree;
}

static void publish(memory_store *s, const dp_tree *tree, bool compacted) {
    pthread_mutex_lock(&s->mutex);
    dp_tree before = s->tree;
    s->tree = *tree;
    s->generation += compacted;
    pthread_mutex_unlock(&s->mutex);
    dp_tree_release(&before);
}

static doppel_status write_changes(dp_store *store, const dp_change *changes, size_t count, const dp_clock *clock,
                                   doppel_error *error) {
    memory_store *s = of_store(store);
    dp_tree tree = hold_tree(s, NULL);
    uint64_t last = tree.last;
    doppel_status status = dp_changes_check(changes, count, &last, error);
    for (size_t i = 0; !status && i < count; i++)
        if (!dp_tree_change(&tree, &changes[i]))
            status = dp_no_memory(error);
    if (status) {
        dp_tree_release(&tree);
        return status;
    }
    tree.clock = *clock;
    publish(s, &tree, false);
    return DOPPEL_OK;
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
    dp_tree_release(&of_view(view)->tree);
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
                          .records = v->tree.entries[DP_PART_RECORD]};
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
    const dp_entry *entry = dp_tree_get(&of_view(view)->tree, number);
    const dp_block *block = entry ? entry->has.part[part] : NULL;
    (void)error;
    if (block)
        *bytes = (doppel_slice){block->bytes, block->length};
    return DOPPEL_OK;
}

static doppel_status view_counts(dp_view *view, uint64_t number, dp_counts *counts, doppel_error *error) {
    const dp_entry *entry = dp_tree_get(&of_view(view)->tree, number);
    (void)error;
    if (entry)
        *counts = entry->has.counts;
    return DOPPEL_OK;
}

static doppel_status view_links(dp_view *view, uint64_t number, uint64_t *links, size_t room, size_t *found,
                                doppel_error *error) {
    const dp_entry *entry = dp_tree_get(&of_view(view)->tree, number);
    (void)error;
    if (!entry)
        return DOPPEL_OK;
    size_t place = *found = entry->has.link_count;
    for (const dp_link *link = entry->has.links; link; link = link->before)
        if (--place < room)
            links[place] = link->number;
    return DOPPEL_OK;
}

static doppel_status visit_part(uint64_t number, const dp_entry *entry, void *user) {
    const dp_each *each = user;
    const dp_block *block = entry->has.part[each->part];
    return block ? each->value(number, (doppel_slice){block->bytes, block->length}, each->user) : DOPPEL_OK;
}

static doppel_status view_each(dp_view *view, const dp_each *each, doppel_error *error) {
    dp_each copy = *each;
    (void)error;
    return dp_tree_each(&of_view(view)->tree, each->from, each->to, visit_part, &copy);
}

typedef struct counting {
    dp_counted *counted;
    void *user;
} counting;

static doppel_status visit_counts(uint64_t number, const dp_entry *entry, void *user) {
    const counting *c = user;
    const uint64_t *by = entry->has.counts.by;
    return by[0] || by[1] || by[2] ? c->counted(number, &entry->has.counts, c->user) : DOPPEL_OK;
}

static doppel_status view_each_count(dp_view *view, dp_counted *counted, void *user, doppel_error *error) {
    counting c = {counted, user};
    (void)error;
    return dp_tree_each(&of_view(view)->tree, 0, UINT64_MAX, visit_counts, &c);
}

/* ---- as a whole ---- */

typedef struct compaction {
    dp_tree *tree;
    dp_keep *keep;
    void *user;
} compaction;

static doppel_status visit_compact(uint64_t number, const dp_entry *entry, void *user) {
    const compaction *c = user;
    const dp_block *block = entry->has.part[DP_PART_TRACE];
    dp_trace trace;
    if (block && dp_trace_decode((doppel_slice){block->bytes, block->length}, &trace) && !dp_trace_is_removal(&trace) &&
        c->keep(&trace, c->user))
        return DOPPEL_OK;
    return dp_tree_change(c->tree, &(dp_change){.remove = number}) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static doppel_status compact(dp_store *store, dp_keep *keep, void *user, doppel_error *error) {
    memory_store *s = of_store(store);
    dp_tree before = hold_tree(s, NULL), after = hold_tree(s, NULL);
    compaction c = {&after, keep, user};
    doppel_status status = dp_tree_each(&before, 0, UINT64_MAX, visit_compact, &c);
    dp_tree_release(&before);
    if (!status) {
        publish(s, &after, true);
        return DOPPEL_OK;
    }
    dp_tree_release(&after);
    return dp_no_memory(error);
}

static doppel_status backup(dp_store *store, const char *path, doppel_error *error) {
    (void)store;
    return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0, "a store in memory has no backup: export its documents");
}

const dp_store_kind dp_store_memory = {
    .version = DP_STORE_KIND_VERSION,
    .name = "memory",
    .takes = takes,
    .open = open_store,
    .close = close_store,
    .settings = settings,
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
