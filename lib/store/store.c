/* store.c - the kinds of stores, and the calls of store.h that pass on to them. */
#include "store/kind.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <xxhash.h>

/* The first that takes a path has it. */
static const dp_store_kind *const kinds[] = {&dp_store_memory, &dp_store_lmdb};

/* ---- what all kinds share ---- */

doppel_status dp_names_create(dp_names *names, doppel_error *error) {
    names->keyed = true;
    return dp_random_bytes(names->secret, sizeof names->secret, error);
}

uint64_t dp_name_hash(const dp_names *names, doppel_slice name) {
    uint64_t hash =
        names->keyed ? dp_siphash(name.data, name.length, names->secret) : XXH3_64bits(name.data, name.length);
    return hash ? hash : 1;
}

/* A file of an index folder is told by its folder. */
static int folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    bool file = slash && !strncmp(slash, "/documents-", 11);
    return (int)(file ? (size_t)(slash - path) : strlen(path));
}

doppel_status dp_damaged(const char *path, doppel_error *error, const char *format, ...) {
    char what[300];
    int length = folder_length(path);
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return dp_fail_at(
        error, DOPPEL_ERROR_STORE, path, 0,
        "%s: the index is damaged. `doppel verify --index %.*s` says what is lost, `doppel export --index "
        "%.*s -o FILE` saves what can be read; or put back a copy of the folder",
        what, length, path, length, path);
}

const char *dp_part_name(dp_part part) {
    static const char *const names[DP_PARTS] = {"trace", "record", "set", "text"};
    return names[part];
}

static doppel_status check_change(const dp_change *change, uint64_t last, doppel_error *error) {
    if (change->number && change->number <= last)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "number %" PRIu64 " is not above %" PRIu64 ", the last",
                       change->number, last);
    if (change->count && (change->count_reason == DOPPEL_REASON_NONE || change->count_reason >= DOPPEL_REASONS))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "there is no reason %d for a duplicate", change->count_reason);
    for (int part = 0; part < DP_PARTS; part++)
        if (change->part[part].data && change->part[part].length > DP_PART_LIMIT)
            return dp_fail(error, DOPPEL_ERROR_USAGE, "the %s of number %" PRIu64 " has %zu bytes; 4 GiB is the limit",
                           dp_part_name((dp_part)part), change->number, change->part[part].length);
    return DOPPEL_OK;
}

doppel_status dp_changes_check(const dp_change *changes, size_t count, uint64_t *last, doppel_error *error) {
    for (size_t i = 0; i < count; i++) {
        DP_TRY(check_change(&changes[i], *last, error));
        if (changes[i].number)
            *last = changes[i].number;
    }
    return DOPPEL_OK;
}

void dp_counts_add(dp_counts *counts, const dp_change *change) {
    counts->by[dp_reason_counter((doppel_reason)change->count_reason)] += change->count_times ? change->count_times : 1;
    if (change->count_at > counts->last)
        counts->last = change->count_at;
}

/* ---- passing on ---- */

doppel_status dp_store_open(const char *path, const dp_store_options *options, dp_store **store, doppel_error *error) {
    const dp_store_options none = {0};
    *store = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i]->takes(path))
            return kinds[i]->open(path, options ? options : &none, store, error);
    return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0, "no kind of store has such a path");
}

void dp_store_close(dp_store *store) {
    if (store)
        store->kind->close(store);
}

const char *dp_store_settings(const dp_store *store) {
    return store->kind->settings(store);
}

doppel_status dp_store_write(dp_store *store, const dp_change *changes, size_t count, const dp_clock *clock,
                             doppel_error *error) {
    return store->kind->write(store, changes, count, clock, error);
}

doppel_status dp_view_create(dp_store *store, dp_view **view, doppel_error *error) {
    *view = NULL;
    return store->kind->view_create(store, view, error);
}

void dp_view_free(dp_view *view) {
    if (view)
        view->store->kind->view_free(view);
}

doppel_status dp_view_begin(dp_view *view, doppel_error *error) {
    return view->store->kind->view_begin(view, error);
}

void dp_view_end(dp_view *view) {
    view->store->kind->view_end(view);
}

void dp_view_moment(dp_view *view, dp_moment *moment) {
    view->store->kind->view_moment(view, moment);
}

void dp_view_info(dp_view *view, dp_store_info *info) {
    *info = (dp_store_info){0};
    view->store->kind->view_info(view, info);
}

doppel_status dp_view_get(dp_view *view, dp_part part, uint64_t number, doppel_slice *bytes, doppel_error *error) {
    *bytes = (doppel_slice){0};
    return view->store->kind->view_get(view, part, number, bytes, error);
}

doppel_status dp_view_counts(dp_view *view, uint64_t number, dp_counts *counts, doppel_error *error) {
    *counts = (dp_counts){0};
    return view->store->kind->view_counts(view, number, counts, error);
}

doppel_status dp_view_links(dp_view *view, uint64_t number, uint64_t *links, size_t room, size_t *found,
                            doppel_error *error) {
    *found = 0;
    return view->store->kind->view_links(view, number, links, room, found, error);
}

doppel_status dp_view_each(dp_view *view, const dp_each *each, doppel_error *error) {
    return view->store->kind->view_each(view, each, error);
}

doppel_status dp_view_each_count(dp_view *view,
                                 doppel_status (*counted)(uint64_t number, const dp_counts *counts, void *user),
                                 void *user, doppel_error *error) {
    return view->store->kind->view_each_count(view, counted, user, error);
}

doppel_status dp_store_compact(dp_store *store, bool (*keep)(const dp_trace *trace, void *user), void *user,
                               doppel_error *error) {
    return store->kind->compact(store, keep, user, error);
}

doppel_status dp_store_backup(dp_store *store, const char *path, doppel_error *error) {
    return store->kind->backup(store, path, error);
}
