/* kind.h - what a kind of store brings: one table of functions, with one line in the list of store.c.
 *
 * Every function does what the dp_ call of its name in store.h says; store.c passes the calls on. A store begins with a
 * dp_store, a view with a dp_view. */
#ifndef DP_STORE_KIND_H
#define DP_STORE_KIND_H

#include "store/store.h"

enum { DP_STORE_KIND_VERSION = 1 };

typedef doppel_status dp_count_visit(uint64_t number, const dp_counts *counts, void *user);
typedef bool dp_trace_filter(const dp_trace *trace, void *user);

/* Grows only at its end. */
typedef struct dp_store_kind {
    int version; /* DP_STORE_KIND_VERSION */
    const char *name;
    bool (*takes)(const char *path); /* whether a path is one of this kind's */
    doppel_status (*open)(const char *path, const dp_store_options *options, dp_store **store, doppel_error *error);
    void (*close)(dp_store *store);
    const char *(*settings)(const dp_store *store);
    doppel_status (*write)(dp_store *store, const dp_change *changes, size_t count, const dp_clock *clock,
                           doppel_error *error);
    doppel_status (*view_create)(dp_store *store, dp_view **view, doppel_error *error);
    void (*view_free)(dp_view *view);
    doppel_status (*view_begin)(dp_view *view, doppel_error *error);
    void (*view_end)(dp_view *view);
    void (*view_moment)(dp_view *view, dp_moment *moment);
    void (*view_info)(dp_view *view, dp_store_info *info);
    doppel_status (*view_get)(dp_view *view, dp_part part, uint64_t number, doppel_slice *bytes, doppel_error *error);
    doppel_status (*view_counts)(dp_view *view, uint64_t number, dp_counts *counts, doppel_error *error);
    doppel_status (*view_links)(dp_view *view, uint64_t number, uint64_t *links, size_t room, size_t *found,
                                doppel_error *error);
    doppel_status (*view_each)(dp_view *view, const dp_each *each, doppel_error *error);
    doppel_status (*view_each_count)(dp_view *view, dp_count_visit *counted, void *user, doppel_error *error);
    doppel_status (*compact)(dp_store *store, dp_trace_filter *keep, void *user, doppel_error *error);
    doppel_status (*backup)(dp_store *store, const char *path, doppel_error *error);
} dp_store_kind;

extern const dp_store_kind dp_store_memory, dp_store_lmdb;

struct dp_store {
    const dp_store_kind *kind;
};

struct dp_view {
    dp_store *store;
};

/* Whether the changes can be made to a store whose last number is `last`: numbers grow, parts are not too long, reasons
 * are 1 to 3. Gives the last number after them. */
doppel_status dp_changes_check(const dp_change *changes, size_t count, uint64_t *last, doppel_error *error);

/* Counts one duplicate. */
void dp_counts_add(dp_counts *counts, const dp_change *change);

/* "trace", "record", "set", "text" */
const char *dp_part_name(dp_part part);

/* The most bytes of a part: LMDB's own limit, less the checksum. */
#define DP_PART_LIMIT ((uint64_t)UINT32_MAX - 4096)

#endif
