/* known.c - what is common to all kinds: the kind of a path, looks, damage, what is reported to the owner. */
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

/* ---- what is reported to the owner ---- */

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
    *found = false;
    DP_TRY(dp_look_read(look, DP_PART_TRACE, number, &bytes, error));
    *found = bytes.data && dp_trace_decode(bytes, trace);
    return *found || !bytes.data ? DOPPEL_OK : dp_look_nonsense(look, "trace", number, "is malformed", error);
}

doppel_status dp_look_record(dp_look *look, uint64_t number, dp_record *record, bool *found, doppel_error *error) {
    doppel_slice bytes;
    *found = false;
    DP_TRY(dp_look_read(look, DP_PART_RECORD, number, &bytes, error));
    *found = bytes.data && dp_record_decode(bytes, record);
    return *found || !bytes.data ? DOPPEL_OK : dp_look_nonsense(look, "record", number, "is malformed", error);
}

/* ---- numbers ---- */

void dp_numbers_free(dp_numbers *numbers) {
    free(numbers->number);
    *numbers = (dp_numbers){0};
}

/* From this many on a bitmap is tried, and used if it takes at most 64 bits per number. */
enum { MANY_NUMBERS = 256 };

/* Dense numbers are sorted by setting a bit for each, and reading the bits. False: they are not dense, or out of
 * memory. */
static bool arrange_dense(dp_numbers *numbers) {
    uint64_t *number = numbers->number, lowest = number[0], highest = number[0];
    for (size_t i = 1; i < numbers->count; i++) {
        lowest = number[i] < lowest ? number[i] : lowest;
        highest = number[i] > highest ? number[i] : highest;
    }
    uint64_t words = (highest - lowest) / 64 + 1;
    uint64_t *bits = words <= numbers->count ? calloc(words, sizeof *bits) : NULL;
    if (!bits)
        return false;
    for (size_t i = 0; i < numbers->count; i++)
        bits[(number[i] - lowest) / 64] |= (uint64_t)1 << (number[i] - lowest) % 64;
    numbers->count = 0;
    for (uint64_t i = 0; i < words; i++)
        for (uint64_t left = bits[i]; left; left &= left - 1)
            number[numbers->count++] = lowest + 64 * i + (uint64_t)__builtin_ctzll(left);
    free(bits);
    return true;
}

doppel_status dp_numbers_arrange(dp_numbers *numbers) {
    uint64_t few[64], *scratch = few, *number = numbers->number;
    size_t sorted = 1, count = numbers->count;
    while (sorted < count && number[sorted - 1] < number[sorted])
        sorted++;
    if (sorted >= count || (count >= MANY_NUMBERS && arrange_dense(numbers)))
        return DOPPEL_OK;
    if (count > sizeof few / sizeof *few && !(scratch = malloc(count * sizeof *scratch)))
        return DOPPEL_ERROR_MEMORY;
    dp_sort64(number, count, scratch);
    numbers->count = dp_unique64(number, count);
    if (scratch != few)
        free(scratch);
    return DOPPEL_OK;
}

/* ---- locks ---- */

bool dp_lock_init(pthread_rwlock_t *lock) {
    pthread_rwlockattr_t attributes;
    if (pthread_rwlockattr_init(&attributes))
        return false;
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    bool made = !pthread_rwlock_init(lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    return made;
}

void dp_title_ahead_free(dp_title_ahead *ahead) {
    for (size_t i = 0; i < DP_AHEAD_SHARDS; i++)
        dp_titles_ahead_free(&ahead->shard[i]);
}
