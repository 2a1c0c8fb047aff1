/* known.c - what is known, whatever its kind: which kind a path has, and each call handed on to it; what is damaged;
 * what the owner is told. */
#include "known/kind.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- kinds ---- */

/* The first that takes a path has it. */
static const dp_known_kind *const kinds[] = {
#ifdef DOPPEL_WITH_REDIS
    &dp_known_redis,
#endif
    &dp_known_local,
};

bool dp_known_is_redis_url(const char *path) {
    static const char *const schemes[] = {"redis://", "redis+unix://", "redis+sentinel://", "redis+cluster://"};
    for (size_t i = 0; path && i < sizeof schemes / sizeof *schemes; i++)
        if (!strncmp(path, schemes[i], strlen(schemes[i])))
            return true;
    return false;
}

/* NULL: this build has none for it. */
static const dp_known_kind *kind_of(const char *path) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i]->takes(path))
            return kinds[i];
    return NULL;
}

static doppel_status without_redis(doppel_error *error) {
    return dp_fail(error, DOPPEL_ERROR_USAGE,
                   "this doppel was built without Redis: hiredis is needed to build it (-DDOPPEL_REDIS=ON)");
}

bool dp_known_is_shared_path(const char *path) {
    const dp_known_kind *kind = kind_of(path);
    return kind ? kind->shared : dp_known_is_redis_url(path);
}

doppel_status dp_known_open(const char *path, const dp_known_options *options, dp_known **known, doppel_error *error) {
    const dp_known_kind *kind = kind_of(path);
    *known = NULL;
    return kind ? kind->open(path, options, known, error) : without_redis(error);
}

void dp_known_close(dp_known *known) {
    if (known)
        known->kind->close(known);
}

bool dp_known_init(dp_known *known, const dp_known_kind *kind, const dp_known_options *options, const char *name) {
    known->kind = kind;
    known->options = *options;
    known->options.settings = NULL;
    return (known->name = strdup(name)) != NULL;
}

void dp_known_clear(dp_known *known) {
    free(known->name);
    known->name = NULL;
}

const char *dp_known_name(const dp_known *known) {
    return known->name;
}

doppel_status dp_known_verify(const char *path, void (*finding)(const char *what, void *user), void *user,
                              doppel_verified *verified, doppel_error *error) {
    const dp_known_kind *kind = kind_of(path);
    return kind ? kind->verify(path, finding, user, verified, error) : without_redis(error);
}

bool dp_known_is_inspected(const char *path) {
    const dp_known_kind *kind = kind_of(path);
    return kind && kind->inspect;
}

doppel_status dp_known_inspect(dp_known *known, void (*finding)(const char *what, void *user), void *user,
                               doppel_verified *verified, doppel_error *error) {
    return known->kind->inspect(known, finding, user, verified, error);
}

doppel_status dp_known_prepare(const char *url,
                               void (*server)(const char *server, const char *library, const char *state, void *user),
                               void *user, doppel_error *error) {
    const dp_known_kind *kind = kind_of(url);
    if (!kind)
        return without_redis(error);
    if (!kind->prepare)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "this is not the URL of a shared store (redis://HOST:PORT/DB)");
    return kind->prepare(url, server, user, error);
}

/* ---- what the owner is told ---- */

double dp_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void dp_tally_add(dp_tally *tally, uint64_t value) {
    int bucket = value ? 64 - __builtin_clzll(value) : 0;
    if (bucket >= DOPPEL_BUCKETS)
        bucket = DOPPEL_BUCKETS - 1;
    atomic_fetch_add_explicit(&tally->bucket[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tally->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tally->sum, value, memory_order_relaxed);
}

void dp_known_log(const dp_known *known, doppel_log_level level, const char *event, const char *format, ...) {
    char line[512];
    va_list arguments;
    if (!known->options.log)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    known->options.log(level, event, line, known->options.user);
}

void dp_known_log_error(const dp_known *known, const char *what, const doppel_error *error) {
    char event[64];
    snprintf(event, sizeof event, "%s_ERROR", what);
    dp_known_log(known, DOPPEL_LOG_ERROR, event, "%s",
                 error->message[0] ? error->message : doppel_status_name(error->code));
}

doppel_status dp_known_damage(dp_known *known, uint64_t documents, const doppel_error *why, doppel_error *error) {
    atomic_fetch_add(&known->options.counters->damaged, documents);
    dp_known_log_error(known, "READ", why);
    if (known->options.salvage)
        return DOPPEL_OK;
    if (error)
        *error = *why;
    return DOPPEL_ERROR_STORE;
}

doppel_status dp_look_nonsense(dp_look *look, const char *what, uint64_t number, const char *how, doppel_error *error) {
    doppel_error why = {0};
    const char *name = look->known->name;
    if (look->known->kind->shared)
        dp_fail_at(
            &why, DOPPEL_ERROR_STORE, name, 0,
            "the %s of number %llu %s: the memory is damaged. `doppel verify --store %s` says what is lost, `doppel "
            "export --store %s -o FILE` saves what can be read",
            what, (unsigned long long)number, how, name, name);
    else
        dp_damaged(name, &why, "the %s of number %llu %s", what, (unsigned long long)number, how);
    doppel_status status = dp_known_damage(look->known, 1, &why, error);
    return look->salvage ? DOPPEL_OK : status;
}

/* ---- looks ---- */

doppel_status dp_look_create(dp_known *known, dp_look **look, doppel_error *error) {
    dp_look *made = calloc(1, sizeof *made);
    *look = NULL;
    if (!made)
        return dp_no_memory(error);
    made->known = known;
    doppel_status status = known->kind->look_create(made, error);
    if (status == DOPPEL_OK)
        *look = made;
    else
        free(made);
    return status;
}

void dp_look_free(dp_look *look) {
    if (!look)
        return;
    look->known->kind->look_free(look);
    free(look);
}

doppel_status dp_look_begin(dp_look *look, dp_purpose purpose, doppel_error *error) {
    look->purpose = purpose;
    look->except[0] = look->except[1] = 0;
    look->salvage = false;
    return look->known->kind->begin(look, error);
}

doppel_status dp_look_end(dp_look *look, doppel_error *error) {
    return look->known->kind->end(look, error);
}

bool dp_look_again(const dp_look *look) {
    return look->known->kind->again && look->known->kind->again(look);
}

doppel_status dp_look_fetch(dp_look *look, const dp_query *const *queries, size_t count, size_t *ready,
                            doppel_error *error) {
    return look->known->kind->fetch(look, queries, count, ready, error);
}

size_t dp_known_fetches(const dp_known *known) {
    return known->kind->fetches;
}

/* ---- finding ---- */

doppel_status dp_look_find_name(dp_look *look, dp_key key, doppel_slice name, dp_numbers *numbers,
                                doppel_error *error) {
    return look->known->kind->find_name(look, key, name, numbers, error);
}

doppel_status dp_look_find_bands(dp_look *look, const dp_query *query, dp_numbers *numbers, doppel_error *error) {
    return look->known->kind->find_bands(look, query, numbers, error);
}

doppel_status dp_look_find_near(dp_look *look, const uint64_t fingerprint[2], int distance, doppel_matches *matches,
                                doppel_error *error) {
    return look->known->kind->find_near(look, fingerprint, distance, matches, error);
}

doppel_status dp_look_find_titles(dp_look *look, const dp_title_query *query, dp_title_hits *hits,
                                  doppel_error *error) {
    return look->known->kind->find_titles(look, query, hits, error);
}

bool dp_look_sifts(const dp_look *look) {
    return look->known->kind->sift != NULL;
}

void dp_look_sift(dp_look *look, const dp_features *features, double least, dp_numbers *numbers) {
    if (look->known->kind->sift)
        look->known->kind->sift(look, features, least, numbers);
}

void dp_look_keep_features(dp_look *look, uint64_t number, const dp_features *features) {
    if (look->known->kind->keep_features)
        look->known->kind->keep_features(look, number, features);
}

doppel_status dp_look_alive(dp_look *look, uint64_t number, bool *alive, doppel_error *error) {
    return look->known->kind->alive(look, number, alive, error);
}

/* ---- reading ---- */

uint64_t dp_look_hash(const dp_look *look, doppel_slice name) {
    return look->known->kind->hash(look, name);
}

doppel_status dp_look_read(dp_look *look, dp_part part, uint64_t number, doppel_slice *bytes, doppel_error *error) {
    atomic_fetch_add_explicit(&look->known->options.counters->reads[part], 1, memory_order_relaxed);
    return look->known->kind->read(look, part, number, bytes, error);
}

doppel_status dp_look_trace(dp_look *look, uint64_t number, dp_trace *trace, bool *found, doppel_error *error) {
    doppel_slice bytes;
    doppel_status status = dp_look_read(look, DP_PART_TRACE, number, &bytes, error);
    *found = status == DOPPEL_OK && bytes.data && dp_trace_decode(bytes, trace);
    if (status == DOPPEL_OK && bytes.data && !*found)
        status = dp_look_nonsense(look, "trace", number, "makes no sense", error);
    return status;
}

doppel_status dp_look_record(dp_look *look, uint64_t number, dp_record *record, bool *found, doppel_error *error) {
    doppel_slice bytes;
    doppel_status status = dp_look_read(look, DP_PART_RECORD, number, &bytes, error);
    *found = status == DOPPEL_OK && bytes.data && dp_record_decode(bytes, record);
    if (status == DOPPEL_OK && bytes.data && !*found)
        status = dp_look_nonsense(look, "record", number, "makes no sense", error);
    return status;
}

doppel_status dp_look_counts(dp_look *look, uint64_t number, dp_counts *counts, doppel_error *error) {
    return look->known->kind->counts(look, number, counts, error);
}

doppel_status dp_look_links(dp_look *look, uint64_t number, uint64_t *links, size_t room, size_t *found,
                            doppel_error *error) {
    return look->known->kind->links(look, number, links, room, found, error);
}

doppel_status dp_look_each(dp_look *look, const dp_each *each, doppel_error *error) {
    return look->known->kind->each(look, each, error);
}

doppel_status dp_look_each_count(dp_look *look,
                                 doppel_status (*counted)(uint64_t number, const dp_counts *counts, void *user),
                                 void *user, doppel_error *error) {
    return look->known->kind->each_count(look, counted, user, error);
}

/* ---- changing ---- */

doppel_status dp_look_number(dp_look *look, uint64_t *number, doppel_error *error) {
    return look->known->kind->number(look, number, error);
}

doppel_status dp_look_queue(dp_look *look, const dp_pending *pending, doppel_error *error) {
    return look->known->kind->queue(look, pending, error);
}

size_t dp_look_mark(const dp_look *look) {
    return look->known->kind->mark(look);
}

void dp_look_back(dp_look *look, size_t mark) {
    look->known->kind->back(look, mark);
}

doppel_status dp_look_title_seen(dp_look *look, doppel_slice title, uint64_t times, doppel_error *error) {
    return look->known->kind->title_seen(look, title, times, error);
}

doppel_status dp_look_commit(dp_look *look, bool *stands, doppel_error *error) {
    *stands = true;
    return look->known->kind->commit(look, stands, error);
}

/* ---- as a whole ---- */

doppel_status dp_known_flush(dp_known *known, doppel_error *error) {
    return known->kind->flush ? known->kind->flush(known, error) : DOPPEL_OK;
}

doppel_status dp_known_expire(dp_known *known, uint64_t *expired, doppel_error *error) {
    *expired = 0;
    return known->kind->expire ? known->kind->expire(known, expired, error) : DOPPEL_OK;
}

doppel_status dp_known_compact(dp_known *known, doppel_error *error) {
    return known->kind->compact(known, error);
}

doppel_status dp_known_backup(dp_known *known, const char *path, doppel_error *error) {
    return known->kind->backup(known, path, error);
}

void dp_known_get_stats(dp_known *known, doppel_engine_stats *stats) {
    known->kind->get_stats(known, stats);
}

void dp_known_stop_waiting(dp_known *known) {
    if (known->kind->stop_waiting)
        known->kind->stop_waiting(known);
}
