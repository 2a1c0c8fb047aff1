/* store.c - the kinds of stores, opening one, and what all kinds share. */
#include "store/store.h"

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

/* A file of an index folder is named by its folder. */
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

/* ---- opening ---- */

doppel_status dp_store_open(const char *path, const dp_store_options *options, dp_store **store, doppel_error *error) {
    const dp_store_options none = {0};
    *store = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i]->takes(path))
            return kinds[i]->open(path, options ? options : &none, store, error);
    return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0, "is not the path or URL of an index");
}
