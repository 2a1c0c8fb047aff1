/* known.c - what is known, whatever its kind: which kind a path has, looks, what is damaged, what the owner is told. */
#include "known/known.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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

doppel_status dp_known_verify(const char *path, void (*finding)(const char *what, void *user), void *user,
                              doppel_verified *verified, doppel_error *error) {
    const dp_known_kind *kind = kind_of(path);
    return kind ? kind->verify(path, finding, user, verified, error) : without_redis(error);
}

bool dp_known_is_inspected(const char *path) {
    const dp_known_kind *kind = kind_of(path);
    return kind && kind->inspect;
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
    if (look->kind->shared)
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
    made->kind = known->kind;
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
    look->kind->look_free(look);
    free(look);
}

doppel_status dp_look_begin(dp_look *look, dp_purpose purpose, doppel_error *error) {
    look->purpose = purpose;
    look->except[0] = look->except[1] = 0;
    look->salvage = false;
    return look->kind->begin(look, error);
}

/* ---- reading ---- */

doppel_status dp_look_read(dp_look *look, dp_part part, uint64_t number, doppel_slice *bytes, doppel_error *error) {
    atomic_fetch_add_explicit(&look->known->options.counters->reads[part], 1, memory_order_relaxed);
    return look->kind->read(look, part, number, bytes, error);
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
