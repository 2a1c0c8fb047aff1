/* local_whole.c - what is done to a store and its directory as a whole: what has expired goes, the smallest form, a
 * copy, and what there is. */
#include "known/local.h"

#include <stdio.h>
#include <stdlib.h>

/* Expired documents are looked for so often, in seconds, and so many are removed at a time. */
enum { EXPIRE_EVERY = 60, EXPIRE_MANY = 4096 };

/* ---- expiry ---- */

/* Queues that a number goes by its time: it leaves no removal behind. What is damaged goes, too, by what is left of
 * it. */
static doppel_status expire_number(dp_look *look, uint64_t number, doppel_error *error) {
    dp_trace trace;
    bool found;
    doppel_status status = dp_look_trace(look, number, &trace, &found, error);
    if (status != DOPPEL_OK)
        return status;
    if (!found)
        trace = (dp_trace){.number = number, .kind = DP_TRACE_COPY};
    const dp_pending gone = {.removed = true, .trace = trace, .change = {.remove = number}};
    return dp_look_queue(look, &gone, error);
}

/* Removes up to `most` of what has expired. `order` is held. */
static doppel_status expire_some(dp_local *local, size_t most, uint64_t *expired, doppel_error *error) {
    dp_local_look own = {.view = local->view};
    dp_look look = {.known = &local->known,
                    .below = UINT64_MAX,
                    .now = dp_local_now(local),
                    .deciding = true,
                    .salvage = true,
                    .own = &own};
    uint64_t *numbers = malloc(most * sizeof *numbers);
    *expired = 0;
    if (!numbers)
        return dp_no_memory(error);
    size_t count = dp_directory_expired(local->directory, dp_local_purge_time(local), numbers, most);
    doppel_status status = count ? dp_view_begin(local->view, error) : DOPPEL_OK;
    if (count && status == DOPPEL_OK) {
        for (size_t i = 0; i < count && status == DOPPEL_OK; i++) {
            status = expire_number(&look, numbers[i], error);
            *expired += status == DOPPEL_OK;
        }
        dp_view_end(local->view);
    }
    free(numbers);
    atomic_fetch_add(&local->known.options.counters->expired, *expired);
    return status;
}

void dp_local_expire_due(dp_local *local, size_t adds) {
    uint64_t now = dp_local_purge_time(local), expired = EXPIRE_MANY;
    if (now >= local->expired_at && now < local->expired_at + EXPIRE_EVERY)
        return;
    for (size_t i = 0; i < adds && expired == EXPIRE_MANY; i++)
        if (expire_some(local, EXPIRE_MANY, &expired, NULL) != DOPPEL_OK || expired < EXPIRE_MANY) {
            local->expired_at = now;
            return;
        }
}

doppel_status dp_local_expire(dp_known *known, uint64_t *expired, doppel_error *error) {
    dp_local *local = (dp_local *)known;
    uint64_t some = 0, all = 0;
    doppel_status status;
    pthread_rwlock_rdlock(&local->shape);
    pthread_mutex_lock(&local->order);
    do {
        status = expire_some(local, EXPIRE_MANY, &some, error);
        if (status == DOPPEL_OK)
            status = dp_local_wait(local, error);
        all += some;
    } while (status == DOPPEL_OK && some == EXPIRE_MANY);
    pthread_mutex_unlock(&local->order);
    pthread_rwlock_unlock(&local->shape);
    *expired = status == DOPPEL_OK ? all : 0;
    return status;
}

/* ---- the store as a whole ---- */

doppel_status dp_local_flush(dp_known *known, doppel_error *error) {
    dp_local *local = (dp_local *)known;
    if (!local->has_background)
        return DOPPEL_OK;
    pthread_rwlock_rdlock(&local->shape);
    pthread_mutex_lock(&local->order);
    doppel_status status = dp_local_write_now(local, error);
    pthread_mutex_unlock(&local->order);
    pthread_rwlock_unlock(&local->shape);
    return status;
}

typedef struct keeping {
    dp_local *local;
    uint64_t now;
    dp_trace *orphans; /* copies and texts that are there, but whose original is gone */
    size_t count, room;
} keeping;

/* Documents that are there, and copies of such. An orphan that there is no memory for stays until the next time. */
static bool is_kept(const dp_trace *trace, void *user) {
    keeping *k = user;
    dp_directory *directory = k->local->directory;
    if (dp_trace_is_removal(trace) || !dp_directory_alive(directory, trace->number, k->now))
        return false;
    if (trace->kind == DP_TRACE_DOCUMENT || dp_directory_alive(directory, trace->of, k->now) ||
        !dp_reserve(&k->orphans, &k->room, k->count + 1, sizeof *k->orphans))
        return true;
    dp_trace *orphan = &k->orphans[k->count++];
    *orphan = *trace;
    orphan->keys = NULL;
    orphan->key_count = 0;
    orphan->title = (doppel_slice){NULL, 0};
    return false;
}

/* What has left the store leaves the directory, too. */
static void forget_orphans(const keeping *k) {
    for (size_t i = 0; i < k->count; i++)
        if (dp_directory_remove(k->local->directory, &k->orphans[i]) != DOPPEL_OK)
            dp_known_log(&k->local->known, DOPPEL_LOG_ERROR, "COMPACT_ERROR",
                         "no memory to forget copy %llu before the next opening",
                         (unsigned long long)k->orphans[i].number);
}

doppel_status dp_local_compact(dp_known *known, doppel_error *error) {
    dp_local *local = (dp_local *)known;
    uint64_t expired;
    doppel_status status = dp_local_expire(known, &expired, error);
    if (status != DOPPEL_OK)
        return status;
    /* Nobody is inside: no view, nothing that waits for a commit. */
    pthread_rwlock_wrlock(&local->shape);
    pthread_mutex_lock(&local->order);
    status = dp_local_write_now(local, error);
    if (status == DOPPEL_OK) {
        keeping k = {.local = local, .now = dp_local_purge_time(local)};
        status = dp_store_compact(local->store, is_kept, &k, error);
        if (status == DOPPEL_OK)
            forget_orphans(&k);
        free(k.orphans);
    }
    pthread_mutex_unlock(&local->order);
    pthread_rwlock_unlock(&local->shape);
    return status;
}

doppel_status dp_local_backup(dp_known *known, const char *path, doppel_error *error) {
    dp_local *local = (dp_local *)known;
    doppel_status status = dp_local_flush(known, error);
    if (status != DOPPEL_OK)
        return status;
    pthread_rwlock_rdlock(&local->shape);
    status = dp_store_backup(local->store, path, error);
    pthread_rwlock_unlock(&local->shape);
    return status;
}

/* ---- what there is ---- */

typedef struct oldest {
    dp_look *look;
    uint64_t added;
} oldest;

static doppel_status on_trace(uint64_t number, doppel_slice bytes, void *user) {
    oldest *o = user;
    dp_trace trace;
    if (!dp_directory_alive(dp_local_of(o->look)->directory, number, o->look->now) || !dp_trace_decode(bytes, &trace))
        return DOPPEL_OK;
    o->added = trace.added;
    return DOPPEL_ERROR_INTERRUPTED;
}

static void read_store(dp_look *look, doppel_engine_stats *stats) {
    dp_store_info info;
    oldest o = {.look = look};
    const dp_each each = {.part = DP_PART_TRACE, .from = 1, .to = UINT64_MAX, .value = on_trace, .user = &o};
    dp_view_info(((dp_local_look *)look->own)->view, &info);
    (void)dp_look_each(look, &each, NULL);
    stats->oldest = o.added;
    stats->last = info.last;
    stats->disk_bytes = info.disk_bytes;
    stats->free_bytes = info.free_bytes;
    stats->memory_bytes = info.memory_bytes;
    for (int i = 0; i < 3; i++)
        stats->duplicates_by[i] = info.total.by[i];
}

static void read_directory(dp_local *local, doppel_engine_stats *stats) {
    dp_directory_stats found;
    dp_directory_get_stats(local->directory, &found);
    stats->documents = found.documents;
    stats->copies = found.copies;
    stats->titles = found.titles;
    stats->newest = found.documents || found.copies ? atomic_load(&local->newest) : 0;
    stats->keys_bytes = found.keys_bytes;
    stats->near_bytes = found.near_bytes;
    stats->title_bytes = found.title_bytes;
    stats->memory_bytes += found.keys_bytes + found.near_bytes + found.title_bytes;
    snprintf(stats->plan, sizeof stats->plan, "%s", found.plan);
}

void dp_local_get_stats(dp_known *known, doppel_engine_stats *stats) {
    dp_local *local = (dp_local *)known;
    dp_look *look;
    if (dp_look_create(known, &look, NULL) != DOPPEL_OK)
        return;
    if (dp_look_begin(look, DP_LOOK_LIST, NULL) == DOPPEL_OK) {
        read_store(look, stats);
        (void)dp_look_end(look, NULL);
    }
    dp_look_free(look);
    pthread_rwlock_rdlock(&local->shape);
    read_directory(local, stats);
    pthread_rwlock_unlock(&local->shape);
}
