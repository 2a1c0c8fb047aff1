/* local.c - the kind of one process: opening, commits, expiry, looks; the store as a whole (local.h).
 *
 * A look of an add holds `order` from fetch to commit: it finds the store as its view shows it, and all that is
 * pending. Then it releases `order`, and waits for the commit at its end. Other looks see what their view shows, up to
 * its last number, and never wait for the disk; but with DOPPEL_DURABLE_NONE they hold `order`, too, and see all that
 * was acknowledged.
 *
 * From decided to durable: one commit for all that wait. Changes gather in the current group. Of the threads that wait
 * for one, the first that finds no commit in progress becomes the writer: it takes the group, releases `order`, writes,
 * and wakes the others. At the same time the next group gathers, and may depend on what is being written: if that
 * fails, both are undone, the last change first. */
#include "known/local.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- changes that are not durable yet ---- */

/* A group of this many bytes is written before more is added, even if no thread waits for it. */
#define GROUP_BYTES (64U << 20)

/* Memory of a group, in pieces: a change takes what it needs from the last one, and all is freed with the group. */
typedef struct dp_group_piece {
    struct dp_group_piece *before;
    size_t used, room;
    _Alignas(16) char bytes[];
} dp_group_piece;

enum { PIECE_BYTES = 64 << 10 };

/* Aligned for any number; NULL: out of memory. */
static char *group_alloc(dp_group *group, size_t size) {
    dp_group_piece *piece = group->last_piece;
    size = (size + 15) / 16 * 16;
    if (!piece || piece->room - piece->used < size) {
        size_t room = size > PIECE_BYTES ? size : PIECE_BYTES;
        if (!(piece = malloc(sizeof *piece + room)))
            return NULL;
        *piece = (dp_group_piece){.before = group->last_piece, .room = room};
        group->last_piece = piece;
    }
    char *bytes = piece->bytes + piece->used;
    piece->used += size;
    return bytes;
}

static void group_free(dp_group *group) {
    if (!group)
        return;
    for (dp_group_piece *piece = group->last_piece, *before; piece; piece = before) {
        before = piece->before;
        free(piece);
    }
    free(group->pending);
    free(group);
}

static void group_let_go(dp_group *group) {
    if (!--group->holders)
        group_free(group);
}

/* The first change at a number is that number's own. */
static const dp_pending *group_find(const dp_group *group, uint64_t number) {
    size_t low = 0, high = group ? group->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (group->pending[middle].at < number)
            low = middle + 1;
        else
            high = middle;
    }
    bool there = group && low < group->count && group->pending[low].is.change.number == number;
    return there ? &group->pending[low].is : NULL;
}

/* The pending change with this number; NULL: none. */
static const dp_pending *find_pending(const dp_local *local, uint64_t number) {
    const dp_pending *found = group_find(local->current, number);
    return found ? found : group_find(local->writing, number);
}

/* Whether a change removes something that is still found until it is durable. */
static bool removes_when_durable(const dp_pending *p) {
    return p->removed && p->change.number;
}

/* Removes what a group removes from the directory. */
static void apply_removals(dp_local *local, const dp_group *group) {
    bool told = false;
    for (size_t i = 0; i < group->count; i++) {
        const dp_pending *p = &group->pending[i].is;
        if (!removes_when_durable(p))
            continue;
        if (!told)
            atomic_fetch_add(&local->removals, 1);
        told = true;
        if (dp_directory_remove(local->directory, &p->trace) != DOPPEL_OK)
            dp_known_log(&local->known, DOPPEL_LOG_ERROR, "COMMIT_ERROR",
                         "no memory to forget document %llu before the next opening",
                         (unsigned long long)p->trace.number);
    }
}

static void add_removals(dp_local *local, const dp_group *group) {
    for (size_t i = 0; group && i < group->count; i++)
        if (removes_when_durable(&group->pending[i].is))
            *dp_hashmap_add(&local->removing, group->pending[i].is.trace.number) = 1;
}

/* The set of what is to be removed, from what is pending. */
static void collect_removals(dp_local *local) {
    dp_hashmap_clear(&local->removing);
    add_removals(local, local->writing);
    add_removals(local, local->current);
}

/* Takes in the duplicates by a title that a change counts (1), or undoes that (-1). */
static doppel_status count_titles(dp_local *local, const dp_pending *p, int change) {
    uint64_t number = p->change.count, times = p->change.count_times ? p->change.count_times : 1;
    if (!number || p->change.count_reason != DOPPEL_REASON_TITLE)
        return DOPPEL_OK;
    if (change > 0)
        DP_TRY(dp_directory_title_seen(local->directory, number, times));
    else
        dp_directory_title_unseen(local->directory, number, times);
    atomic_fetch_add(&local->titles, change > 0 ? times : -times);
    return DOPPEL_OK;
}

/* Undoes what a change did to the directory. */
static void undo(dp_local *local, const dp_pending *p) {
    count_titles(local, p, -1);
    if (p->added)
        dp_directory_remove(local->directory, &p->trace);
    if (p->removed && !removes_when_durable(p) && dp_directory_add(local->directory, &p->trace) != DOPPEL_OK)
        dp_known_log(&local->known, DOPPEL_LOG_ERROR, "COMMIT_ERROR",
                     "document %llu is not found until the next opening", (unsigned long long)p->trace.number);
}

static void group_undo(dp_local *local, const dp_group *group) {
    for (size_t i = group ? group->count : 0; i-- > 0;)
        undo(local, &group->pending[i].is);
}

static void group_end(dp_group *group, doppel_status status, const doppel_error *error) {
    group->done = true;
    group->status = status;
    group->error = *error;
}

/* ---- commits: queueing ---- */

/* Copies everything a change points to into memory of its group. */
static bool take_bytes(dp_group *group, dp_pending *p) {
    size_t size = p->trace.key_count * sizeof *p->trace.keys + p->trace.title.length, at = 0;
    for (int i = 0; i < DP_PARTS; i++)
        size += p->change.part[i].length;
    char *block = group_alloc(group, size + 1);
    if (!block)
        return false;
    if (p->trace.key_count) {
        at = p->trace.key_count * sizeof *p->trace.keys;
        memcpy(block, p->trace.keys, at);
        p->trace.keys = (const uint32_t *)(void *)block;
    }
    doppel_slice *slices[DP_PARTS + 1] = {&p->trace.title};
    for (int i = 0; i < DP_PARTS; i++)
        slices[i + 1] = &p->change.part[i];
    for (int i = 0; i <= DP_PARTS; i++) {
        if (!slices[i]->data)
            continue;
        memcpy(block + at, slices[i]->data, slices[i]->length);
        slices[i]->data = block + at;
        at += slices[i]->length;
    }
    return true;
}

static dp_group *current_group(dp_local *local) {
    if (!local->current && (local->current = calloc(1, sizeof *local->current)))
        local->current->holders = 1;
    return local->current;
}

/* What a change does to the directory until it is durable. */
static doppel_status take_in(dp_local *local, const dp_pending *p) {
    doppel_status status = DOPPEL_OK;
    if (p->added)
        status = dp_directory_add(local->directory, &p->trace);
    else if (removes_when_durable(p))
        status = dp_hashmap_reserve(&local->removing, local->removing.count + 1) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    else if (p->removed)
        status = dp_directory_remove(local->directory, &p->trace);
    DP_TRY(status);
    status = count_titles(local, p, 1);
    if (status != DOPPEL_OK && p->added)
        dp_directory_remove(local->directory, &p->trace);
    return status;
}

/* Copies everything a change points to, adds the change to the next commit and applies it to the directory as the flags
 * say. On an error nothing has changed. */
static doppel_status queue_change(dp_local *local, const dp_pending *pending, doppel_error *error) {
    dp_group *group = current_group(local);
    if (!group || !dp_reserve(&group->pending, &group->room, group->count + 1, sizeof *group->pending))
        return dp_no_memory(error);
    dp_local_pending *queued = &group->pending[group->count];
    *queued = (dp_local_pending){.is = *pending};
    dp_pending *p = &queued->is;
    if (!take_bytes(group, p))
        return dp_no_memory(error);
    queued->at = p->change.number || !group->count ? p->change.number : group->pending[group->count - 1].at;
    doppel_status status = take_in(local, p);
    if (status != DOPPEL_OK)
        return dp_fail(error, status, "%s", doppel_status_name(status));
    if (removes_when_durable(p))
        *dp_hashmap_add(&local->removing, p->trace.number) = 1;
    group->count++;
    group->links += p->change.link != 0;
    for (int i = 0; i < DP_PARTS; i++)
        group->bytes += p->change.part[i].length;
    group->bytes += sizeof *queued;
    return DOPPEL_OK;
}

/* ---- commits: writing ---- */

static doppel_status write_group(dp_local *local, const dp_group *group, doppel_error *error) {
    double began = dp_seconds();
    doppel_status status = DOPPEL_OK;
    dp_change *changes = malloc(group->count * sizeof *changes);
    if (!changes)
        status = dp_no_memory(error);
    for (size_t i = 0; i < group->count && changes; i++)
        changes[i] = group->pending[i].is.change;
    bool news;
    const dp_clock clock = dp_local_get_clock(local, &news);
    if (changes)
        status = dp_store_write(local->store, changes, group->count, &clock, error);
    free(changes);
    atomic_fetch_add(status == DOPPEL_OK ? &local->known.options.counters->commits
                                         : &local->known.options.counters->failed_commits,
                     1);
    dp_tally_add(&local->known.options.counters->commit_time, (uint64_t)((dp_seconds() - began) * 1e6));
    if (status != DOPPEL_OK)
        dp_known_log_error(&local->known, "COMMIT", error);
    return status;
}

/* Whether a failed commit was written nevertheless: the system may refuse the last step. Then nothing is acknowledged,
 * but what was written must be known. */
static bool is_written(dp_local *local, uint64_t last) {
    dp_view *view = NULL;
    dp_moment moment = {0};
    if (dp_view_create(local->store, &view, NULL) == DOPPEL_OK && dp_view_begin(view, NULL) == DOPPEL_OK) {
        dp_view_moment(view, &moment);
        dp_view_end(view);
    }
    dp_view_free(view);
    return last && moment.last >= last;
}

/* Ends the commit in progress: numbers become visible, or everything pending is dropped. `order` is held. */
static void settle(dp_local *local, doppel_status status, const doppel_error *error) {
    dp_group *group = local->writing;
    bool written = status == DOPPEL_OK || is_written(local, group->pending[group->count - 1].at);
    local->writing = NULL;
    if (written)
        apply_removals(local, group);
    if (status != DOPPEL_OK) {
        group_undo(local, local->current);
        if (!written)
            group_undo(local, group);
        if (local->current) {
            group_end(local->current, status, error);
            group_let_go(local->current);
            local->current = NULL;
        }
        local->failed = status;
        local->failed_error = *error;
    }
    collect_removals(local);
    group_end(group, status, error);
    group_let_go(group);
    pthread_cond_broadcast(&local->settled);
}

/* Writes the current group. `order` is held, and released during the write unless `hold`. */
static void write_current(dp_local *local, bool hold) {
    doppel_error error = {0};
    local->writing = local->current;
    local->current = NULL;
    if (!hold)
        pthread_mutex_unlock(&local->order);
    doppel_status status = write_group(local, local->writing, &error);
    if (!hold)
        pthread_mutex_lock(&local->order);
    settle(local, status, &error);
}

/* Writes the group, or waits for the thread that does, until it is done. */
static doppel_status await(dp_local *local, dp_group *group, bool hold, doppel_error *error) {
    group->holders++;
    while (!group->done) {
        if (!local->writing)
            write_current(local, hold);
        else
            pthread_cond_wait(&local->settled, &local->order);
    }
    doppel_status status = group->status;
    if (status != DOPPEL_OK && error)
        *error = group->error;
    group_let_go(group);
    return status;
}

/* The last group that has something in it. */
static dp_group *last_group(const dp_local *local) {
    return local->current && local->current->count ? local->current : local->writing;
}

/* Writes what is pending without releasing `order`. */
static doppel_status write_now(dp_local *local, doppel_error *error) {
    dp_group *group = last_group(local);
    return group ? await(local, group, true, error) : DOPPEL_OK;
}

/* The error of a background commit, once. */
static doppel_status take_background_failure(dp_local *local, doppel_error *error) {
    doppel_status status = local->failed;
    local->failed = DOPPEL_OK;
    if (status != DOPPEL_OK && error)
        *error = local->failed_error;
    return status;
}

/* Waits until all that is pending now is durable. `order` is released during the wait. */
static doppel_status wait_for_all(dp_local *local, doppel_error *error) {
    dp_group *group = last_group(local);
    if (local->has_background && (!group || group->bytes < GROUP_BYTES))
        return take_background_failure(local, error);
    doppel_status status = group ? await(local, group, false, error) : DOPPEL_OK;
    local->failed = DOPPEL_OK;
    return status;
}

/* What a look has to wait for so far. Of successive groups the later fails if the earlier does, unless that ended
 * before it began. */
static void hold_last(dp_local *local, dp_local_look *own) {
    dp_group *group = last_group(local), *before = own->group;
    if (before && before->done && before->status != DOPPEL_OK)
        own->failed = before->error;
    if (group)
        group->holders++;
    own->group = group;
    if (before)
        group_let_go(before);
}

static doppel_status wait_held(dp_local *local, dp_local_look *own, doppel_error *error) {
    doppel_status status = own->group ? await(local, own->group, false, error) : DOPPEL_OK;
    if (own->group)
        group_let_go(own->group);
    own->group = NULL;
    if (status == DOPPEL_OK && own->failed.code != DOPPEL_OK) {
        status = own->failed.code;
        if (error)
            *error = own->failed;
    }
    own->failed.code = DOPPEL_OK;
    return status;
}

/* ---- commits in the background: what is pending, four times a second ---- */

static void *write_now_and_then(void *user) {
    dp_local *local = user;
    pthread_mutex_lock(&local->order);
    while (!local->closing) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until); /* the clock of `settled`: the other may jump */
        until.tv_nsec += 250000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&local->settled, &local->order, &until);
        if (local->current && local->current->count && !local->writing)
            write_current(local, false);
    }
    pthread_mutex_unlock(&local->order);
    return NULL;
}

/* Starts the thread that writes for DOPPEL_DURABLE_NONE; otherwise does nothing. `order` is not held. */
static doppel_status start_background(dp_local *local, doppel_error *error) {
    if (local->known.options.durability != DOPPEL_DURABLE_NONE || local->known.options.read_only)
        return DOPPEL_OK;
    int failed = pthread_create(&local->background, NULL, write_now_and_then, local);
    if (failed)
        return dp_fail(error, DOPPEL_ERROR_IO, "no thread to write in the background: %s", strerror(failed));
    local->has_background = true;
    return DOPPEL_OK;
}

static void stop_background(dp_local *local) {
    if (!local->has_background)
        return;
    pthread_mutex_lock(&local->order);
    local->closing = true;
    pthread_cond_broadcast(&local->settled);
    pthread_mutex_unlock(&local->order);
    pthread_join(local->background, NULL);
    local->has_background = false;
}

/* ---- commits: the end ---- */

/* The state of a doubted clock, or that it is no longer doubted, is stored even if there is nothing else to write: the
 * next process continues from it. */
static doppel_status write_clock(dp_local *local, doppel_error *error) {
    bool news;
    const dp_clock clock = dp_local_get_clock(local, &news);
    return news && !local->known.options.read_only ? dp_store_write(local->store, NULL, 0, &clock, error) : DOPPEL_OK;
}

/* At the end, without `order`: makes everything pending durable. */
static void finish(dp_local *local) {
    doppel_error error = {0};
    stop_background(local);
    pthread_mutex_lock(&local->order);
    if (write_now(local, &error) != DOPPEL_OK || write_clock(local, &error) != DOPPEL_OK)
        dp_known_log_error(&local->known, "CLOSE", &error);
    pthread_mutex_unlock(&local->order);
    group_free(local->current);
    local->current = NULL;
}

/* ---- opening and closing ---- */

static bool takes(const char *path) {
    return !dp_known_is_redis_url(path);
}

static void on_warning(const char *message, void *user) {
    dp_known_log(user, DOPPEL_LOG_WARNING, "OPEN_WARNING", "%s", message);
}

static void init_locks(dp_local *local) {
    (void)dp_lock_init(&local->shape);
    pthread_mutex_init(&local->order, NULL);
    pthread_mutex_init(&local->clock_lock, NULL);
    pthread_condattr_t by_monotonic;
    pthread_condattr_init(&by_monotonic);
    pthread_condattr_setclock(&by_monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&local->settled, &by_monotonic);
    pthread_condattr_destroy(&by_monotonic);
}

/* The settings of the store, which the opener must agree to. A store that a writer may create, and in which nothing was
 * ever stored, is as good as new: it takes others. (A reader that has it open keeps to those that it has read.) */
static doppel_status agree(dp_local *local, doppel_error *error) {
    dp_known_options *o = &local->known.options;
    const char *instead = NULL;
    dp_moment moment = {0};
    bool makes = !o->read_only && !o->must_exist;
    if (!o->agree)
        return DOPPEL_OK;
    if (makes)
        DP_TRY(dp_local_moment(local, &moment, error));
    DP_TRY(
        o->agree(dp_store_settings(local->store), makes && !moment.last ? &instead : NULL, &o->rules, o->user, error));
    return instead ? dp_store_set_settings(local->store, instead, &moment.clock, error) : DOPPEL_OK;
}

static doppel_status open_store(dp_local *local, const char *path, const char *settings, doppel_error *error) {
    dp_known_options *o = &local->known.options;
    const dp_store_options options = {.read_only = o->read_only,
                                      .must_exist = o->must_exist,
                                      .group_readable = o->group_readable,
                                      .map = o->map,
                                      .settings = settings,
                                      .warn = on_warning,
                                      .user = &local->known};
    DP_TRY(dp_store_open(path, &options, &local->store, error));
    DP_TRY(dp_view_create(local->store, &local->view, error));
    return agree(local, error);
}

static bool keep_all(const dp_trace *trace, void *user) {
    (void)trace, (void)user;
    return true;
}

/* A folder whose names have no secret gets one before anything is written to it. If killed in between, it is
 * unchanged. */
static doppel_status convert(dp_local *local, doppel_error *error) {
    dp_moment moment;
    DP_TRY(dp_local_moment(local, &moment, error));
    if (moment.names.keyed)
        return DOPPEL_OK;
    dp_known_log(&local->known, DOPPEL_LOG_INFO, "OPEN", "the index is of format 1: it is rewritten in format 2");
    return dp_store_compact(local->store, keep_all, NULL, error);
}

static void close_local(dp_known *known) {
    dp_local *local = (dp_local *)known;
    if (local->store && local->directory)
        finish(local);
    dp_view_free(local->view);
    dp_hashmap_free(&local->removing);
    dp_directory_free(local->directory);
    dp_store_close(local->store);
    pthread_rwlock_destroy(&local->shape);
    pthread_mutex_destroy(&local->order);
    pthread_mutex_destroy(&local->clock_lock);
    pthread_cond_destroy(&local->settled);
    dp_known_clear(known);
    free(local);
}

static doppel_status open_local(const char *path, const dp_known_options *options, dp_known **known,
                                doppel_error *error) {
    dp_local *local = calloc(1, sizeof *local);
    if (!local)
        return dp_no_memory(error);
    init_locks(local);
    doppel_status status = DOPPEL_OK;
    if (!dp_known_init(&local->known, &dp_known_local, options, path ? path : "memory"))
        status = dp_no_memory(error);
    DP_THEN(status, open_store(local, path, options->settings, error));
    if (status == DOPPEL_OK && !options->read_only)
        status = convert(local, error);
    DP_THEN(status, dp_local_load(local, error));
    DP_THEN(status, start_background(local, error));
    if (status == DOPPEL_OK)
        *known = &local->known;
    else
        close_local(&local->known);
    return status;
}

/* ---- expiry ---- */

/* Seconds between searches for expired documents, and how many are removed at a time: calls wait for the removal of
 * these, about 10 us each, and for the commit that makes it durable. */
enum { EXPIRE_EVERY = 60, EXPIRE_MANY = 512 };

/* Queues the expiry of a number: it leaves no removal record. A damaged one expires, too, by what is left of it. */
static doppel_status expire_number(dp_look *look, uint64_t number, doppel_error *error) {
    dp_trace trace;
    bool found;
    DP_TRY(dp_look_trace(look, number, &trace, &found, error));
    if (!found)
        trace = (dp_trace){.number = number, .kind = DP_TRACE_COPY};
    const dp_pending gone = {.removed = true, .trace = trace, .change = {.remove = number}};
    return queue_change(dp_local_of(look), &gone, error);
}

/* Removes up to `most` of what has expired. `order` is held. */
static doppel_status expire_some(dp_local *local, size_t most, uint64_t *expired, doppel_error *error) {
    dp_local_look own = {.view = local->view};
    dp_look look = {.known = &local->known,
                    .kind = &dp_known_local,
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

/* Now and then removes expired documents: some with each add, and more than are added. `order` is held, without a view.
 * The commit reports errors. */
static void expire_due(dp_local *local, size_t adds) {
    uint64_t now = dp_local_purge_time(local), expired;
    size_t most = adds < EXPIRE_MANY ? EXPIRE_MANY : adds;
    if (now >= local->expired_at && now < local->expired_at + EXPIRE_EVERY)
        return;
    if (expire_some(local, most, &expired, NULL) != DOPPEL_OK || expired < most)
        local->expired_at = now;
}

static doppel_status expire(dp_known *known, uint64_t *expired, doppel_error *error) {
    dp_local *local = (dp_local *)known;
    uint64_t some = 0, all = 0;
    doppel_status status;
    pthread_rwlock_rdlock(&local->shape);
    pthread_mutex_lock(&local->order);
    do {
        status = expire_some(local, EXPIRE_MANY, &some, error);
        DP_THEN(status, wait_for_all(local, error));
        all += some;
    } while (status == DOPPEL_OK && some == EXPIRE_MANY);
    pthread_mutex_unlock(&local->order);
    pthread_rwlock_unlock(&local->shape);
    *expired = status == DOPPEL_OK ? all : 0;
    return status;
}

/* ---- looks ---- */

static doppel_status look_create(dp_look *look, doppel_error *error) {
    dp_local_look *own = calloc(1, sizeof *own);
    if (!own)
        return dp_no_memory(error);
    doppel_status status = dp_view_create(dp_local_of(look)->store, &own->view, error);
    if (status == DOPPEL_OK)
        look->own = own;
    else
        free(own);
    return status;
}

static void look_free(dp_look *look) {
    dp_local_look *own = look->own;
    dp_view_free(own->view);
    dp_title_matches_free(&own->titles);
    free(own->sift.bits);
    free(own);
}

static void take_order(dp_look *look) {
    dp_local_look *own = look->own;
    pthread_mutex_lock(&dp_local_of(look)->order);
    own->ordered = true;
}

static void leave_order(dp_look *look) {
    dp_local_look *own = look->own;
    if (own->ordered)
        pthread_mutex_unlock(&dp_local_of(look)->order);
    own->ordered = false;
}

/* `order` is taken before a view begins, here as everywhere. What the view shows is durable: its last number is the
 * limit. Documents are removed from the directory after the store. */
static doppel_status begin_reading(dp_look *look, doppel_error *error) {
    dp_local *local = dp_local_of(look);
    dp_local_look *own = look->own;
    dp_moment moment;
    look->below = UINT64_MAX;
    look->deciding = local->has_background && look->purpose != DP_LOOK_LIST;
    look->now = dp_local_now(local);
    look->latest = look->now;
    if (look->deciding || (look->purpose == DP_LOOK_STILL && !local->known.options.read_only))
        take_order(look);
    look->removals = atomic_load(&local->removals);
    doppel_status status = dp_view_begin(own->view, error);
    if (status == DOPPEL_OK && look->purpose != DP_LOOK_LIST) {
        dp_view_moment(own->view, &moment);
        if (local->known.options.read_only)
            status = dp_local_catch_up(look, &moment, error);
        if (!look->deciding)
            look->below = moment.last + 1;
    }
    if (status != DOPPEL_OK)
        leave_order(look);
    return status;
}

static doppel_status begin(dp_look *look, doppel_error *error) {
    dp_local *local = dp_local_of(look);
    dp_local_look *own = look->own;
    DP_TRY(local->known.options.read_only ? dp_local_follow(local, error) : DOPPEL_OK);
    pthread_rwlock_rdlock(&local->shape);
    own->decided = false;
    if (look->purpose == DP_LOOK_ADD) {
        look->below = UINT64_MAX;
        look->deciding = true;
        return DOPPEL_OK;
    }
    doppel_status status = begin_reading(look, error);
    if (status != DOPPEL_OK)
        pthread_rwlock_unlock(&local->shape);
    return status;
}

/* With DOPPEL_DURABLE_EACH every query has its own commit. */
static doppel_status fetch(dp_look *look, const dp_query *const *queries, size_t count, size_t *ready,
                           doppel_error *error) {
    dp_local *local = dp_local_of(look);
    dp_local_look *own = look->own;
    (void)queries;
    *ready = count;
    if (look->purpose != DP_LOOK_ADD)
        return DOPPEL_OK;
    if (local->known.options.durability == DOPPEL_DURABLE_EACH && count > 1)
        *ready = 1;
    take_order(look);
    expire_due(local, *ready);
    look->now = dp_local_now(local);
    look->latest = dp_local_latest(local);
    doppel_status status = dp_view_begin(own->view, error);
    if (status == DOPPEL_OK)
        own->decided = true;
    else
        leave_order(look);
    return status;
}

static doppel_status commit(dp_look *look, bool *stands, doppel_error *error) {
    dp_local *local = dp_local_of(look);
    dp_local_look *own = look->own;
    doppel_status status = DOPPEL_OK;
    *stands = true;
    dp_view_end(own->view);
    if (local->known.options.durability == DOPPEL_DURABLE_EACH)
        status = write_now(local, error);
    else if (!local->has_background)
        hold_last(local, own);
    leave_order(look);
    return status;
}

static doppel_status end_adding(dp_look *look, doppel_error *error) {
    dp_local *local = dp_local_of(look);
    dp_local_look *own = look->own;
    doppel_status status = DOPPEL_OK;
    if (own->ordered)
        dp_view_end(own->view);
    else
        take_order(look);
    if (local->has_background)
        status = wait_for_all(local, error);
    else
        status = wait_held(local, own, error);
    leave_order(look);
    return status;
}

static doppel_status end(dp_look *look, doppel_error *error) {
    dp_local *local = dp_local_of(look);
    dp_local_look *own = look->own;
    doppel_status status = DOPPEL_OK;
    if (look->purpose != DP_LOOK_ADD) {
        dp_view_end(own->view);
        leave_order(look);
    } else if (own->decided) {
        status = end_adding(look, error);
    }
    pthread_rwlock_unlock(&local->shape);
    return status;
}

static bool again(const dp_look *look) {
    return !look->deciding && look->purpose != DP_LOOK_STILL &&
           look->removals != atomic_load(&dp_local_of(look)->removals);
}

/* ---- finding ---- */

static doppel_status failed(doppel_status status, doppel_error *error) {
    return status == DOPPEL_ERROR_MEMORY ? dp_no_memory(error) : status;
}

static doppel_status find_name(dp_look *look, dp_key key, doppel_slice name, dp_numbers *numbers, doppel_error *error) {
    dp_local *local = dp_local_of(look);
    uint64_t hash =
        key == DP_KEY_DIGEST ? dp_digest_hash((const uint8_t *)name.data) : dp_name_hash(&local->names, name);
    return failed(dp_directory_find_key(local->directory, key, hash, numbers), error);
}

static doppel_status find_bands(dp_look *look, const dp_query *query, dp_numbers *numbers, doppel_error *error) {
    return failed(dp_directory_find_bands(dp_local_of(look)->directory, query->keys, query->key_count, numbers), error);
}

static doppel_status find_near(dp_look *look, const uint64_t fingerprint[2], int distance, doppel_matches *matches,
                               doppel_error *error) {
    return dp_directory_find_near(dp_local_of(look)->directory, fingerprint, distance, matches, error);
}

/* What the store says is damaged. */
static doppel_status damage(dp_look *look, const doppel_error *why, doppel_error *error) {
    doppel_status status = dp_known_damage(look->known, 1, why, error);
    return look->salvage ? DOPPEL_OK : status;
}

/* The outcome of reading the store: damage is skipped in salvage mode. */
static doppel_status read_ended(dp_look *look, doppel_status status, const doppel_error *why, doppel_error *error) {
    if (status == DOPPEL_ERROR_STORE)
        return damage(look, why, error);
    if (status != DOPPEL_OK && error)
        *error = *why;
    return status;
}

static doppel_status read_counts(dp_look *look, uint64_t number, dp_counts *counts, doppel_error *error) {
    doppel_error why = {0};
    doppel_status status = dp_view_counts(((dp_local_look *)look->own)->view, number, counts, &why);
    if (status != DOPPEL_OK)
        *counts = (dp_counts){0};
    return read_ended(look, status, &why, error);
}

/* The duplicates by its title that are stored for a number. */
typedef struct stored_titles {
    dp_look *look;
    doppel_status status; /* the first error */
    doppel_error *error;
} stored_titles;

static uint64_t read_titles(void *user, uint64_t number) {
    stored_titles *t = user;
    dp_counts counts = {0};
    if (t->status == DOPPEL_OK)
        t->status = read_counts(t->look, number, &counts, t->error);
    return counts.by[dp_reason_counter(DOPPEL_REASON_TITLE)];
}

/* What a writer counts is not among the traces that a reader process follows: that reads it where it is needed. */
static doppel_status find_titles(dp_look *look, const dp_title_query *query, dp_title_hits *hits, doppel_error *error) {
    dp_local *local = dp_local_of(look);
    dp_local_look *own = look->own;
    bool reads = local->known.options.read_only;
    stored_titles stored = {.look = look, .error = error};
    dp_moment moment = {0};
    if (reads)
        dp_view_moment(own->view, &moment);
    const dp_title_search search = {.title = query->title,
                                    .now = look->now,
                                    .below = look->below,
                                    .except = {look->except[0], look->except[1]},
                                    .removing = look->deciding ? &local->removing : NULL,
                                    .share = query->share,
                                    .seen = reads ? moment.titles : atomic_load(&local->titles),
                                    .times = reads ? read_titles : NULL,
                                    .user = &stored,
                                    .best = query->best,
                                    .ahead = query->ahead};
    doppel_status status = dp_directory_find_titles(local->directory, &search, &own->titles, hits);
    return status != DOPPEL_OK ? dp_no_memory(error) : stored.status;
}

/* Does not wait for a thread that replaces the directory: that one may wait for a look that waits for this. */
static void look_ahead(dp_look *look, const dp_query *query, dp_title_ahead *ahead) {
    dp_local *local = dp_local_of(look);
    dp_local_look *own = look->own;
    if (!query->title_key.length || pthread_rwlock_tryrdlock(&local->shape))
        return;
    dp_directory_look_ahead(local->directory, query->title_key, &own->titles, ahead);
    pthread_rwlock_unlock(&local->shape);
}

static void sift(dp_look *look, const dp_features *features, double least, dp_numbers *numbers) {
    dp_local_look *own = look->own;
    const dp_sift how = {.features = *features, .least = least, .scratch = &own->sift};
    dp_directory_sift(dp_local_of(look)->directory, &how, numbers);
}

static void keep_features(dp_look *look, uint64_t number, const dp_features *features) {
    dp_directory_keep_parity(dp_local_of(look)->directory, number, features);
}

static doppel_status alive(dp_look *look, uint64_t number, bool *alive, doppel_error *error) {
    dp_local *local = dp_local_of(look);
    (void)error;
    *alive = dp_directory_alive(local->directory, number, look->now) &&
             !(look->deciding && dp_hashmap_find(&local->removing, number));
    return DOPPEL_OK;
}

/* ---- reading ---- */

static uint64_t hash(const dp_look *look, doppel_slice name) {
    return dp_name_hash(&dp_local_of(look)->names, name);
}

/* Whether a missing part ought to exist: a view is a snapshot, in which a document has its record, and the parts it
 * mentions. */
static bool is_missing(dp_view *view, dp_part part, uint64_t number) {
    doppel_slice bytes;
    dp_trace trace;
    dp_record record;
    if (part == DP_PART_TRACE ||
        dp_view_get(view, part == DP_PART_RECORD ? DP_PART_TRACE : DP_PART_RECORD, number, &bytes, NULL) || !bytes.data)
        return false;
    if (part == DP_PART_RECORD)
        return dp_trace_decode(bytes, &trace) && dp_trace_is_kept(&trace);
    return dp_record_decode(bytes, &record) && (part == DP_PART_SET ? record.set_count : record.text_length);
}

static doppel_status read_part(dp_look *look, dp_part part, uint64_t number, doppel_slice *bytes, doppel_error *error) {
    static const char *const names[DP_PARTS] = {"trace", "record", "set", "text"};
    dp_view *view = ((dp_local_look *)look->own)->view;
    const dp_pending *pending = look->deciding ? find_pending(dp_local_of(look), number) : NULL;
    if (pending) {
        *bytes = pending->change.part[part];
        return DOPPEL_OK;
    }
    doppel_error why = {0};
    doppel_status status = dp_view_get(view, part, number, bytes, &why);
    if (status == DOPPEL_ERROR_STORE)
        *bytes = (doppel_slice){NULL, 0};
    if (status == DOPPEL_OK && !bytes->data && is_missing(view, part, number))
        return dp_look_nonsense(look, names[part], number, "is missing", error);
    return read_ended(look, status, &why, error);
}

static doppel_status read_links(dp_look *look, uint64_t number, uint64_t *links, size_t room, size_t *found,
                                doppel_error *error) {
    doppel_error why = {0};
    *found = 0;
    doppel_status status = dp_view_links(((dp_local_look *)look->own)->view, number, links, room, found, &why);
    if (status != DOPPEL_OK)
        *found = 0;
    return read_ended(look, status, &why, error);
}

static doppel_status each(dp_look *look, const dp_each *what, doppel_error *error) {
    return dp_view_each(((dp_local_look *)look->own)->view, what, error);
}

static doppel_status each_count(dp_look *look,
                                doppel_status (*counted)(uint64_t number, const dp_counts *counts, void *user),
                                void *user, doppel_error *error) {
    doppel_error why = {0};
    doppel_status status = dp_view_each_count(((dp_local_look *)look->own)->view, counted, user, &why);
    return read_ended(look, status, &why, error);
}

/* ---- changing ---- */

static doppel_status number(dp_look *look, uint64_t *number, doppel_error *error) {
    (void)error;
    *number = dp_local_of(look)->next++;
    return DOPPEL_OK;
}

static bool add_number(dp_numbers *numbers, uint64_t number) {
    if (!dp_reserve(&numbers->number, &numbers->room, numbers->count + 1, sizeof *numbers->number))
        return false;
    numbers->number[numbers->count++] = number;
    return true;
}

/* The copies of a document that are durable, and those that are queued. */
static doppel_status find_copies(dp_look *look, uint64_t number, dp_numbers *copies, doppel_error *error) {
    const dp_local *local = dp_local_of(look);
    const dp_group *groups[] = {local->writing, local->current};
    do {
        if (!dp_reserve(&copies->number, &copies->room, copies->count + 1, sizeof *copies->number))
            return dp_no_memory(error);
        DP_TRY(read_links(look, number, copies->number, copies->room, &copies->count, error));
    } while (copies->count > copies->room);
    for (size_t g = 0; g < 2; g++)
        for (size_t i = 0; groups[g] && groups[g]->links && i < groups[g]->count; i++)
            if (groups[g]->pending[i].is.change.link == number &&
                !add_number(copies, groups[g]->pending[i].is.change.number))
                return dp_no_memory(error);
    return DOPPEL_OK;
}

/* The removal of a number is a number of its own, with the trace of what is gone: so readers find it. */
static doppel_status queue_removal(dp_local *local, const dp_trace *trace, doppel_error *error) {
    dp_buffer bytes = {0};
    dp_trace removal = *trace;
    removal.number = local->next++;
    removal.kind = trace->kind == DP_TRACE_COPY ? DP_TRACE_COPY_REMOVAL : DP_TRACE_REMOVAL;
    removal.of = trace->number;
    doppel_status status = dp_trace_encode(&removal, &bytes) ? DOPPEL_OK : dp_no_memory(error);
    const dp_pending p = {
        .removed = true,
        .trace = *trace,
        .change = {.number = removal.number, .remove = trace->number, .part[DP_PART_TRACE] = {bytes.data, bytes.size}}};
    DP_THEN(status, queue_change(local, &p, error));
    dp_buffer_free(&bytes);
    return status;
}

/* Copies go with their original; some may be about to go by themselves. */
static doppel_status queue_removals(dp_look *look, const dp_trace *trace, doppel_error *error) {
    dp_local *local = dp_local_of(look);
    dp_numbers copies = {0};
    doppel_status status = DOPPEL_OK;
    if (trace->kind == DP_TRACE_DOCUMENT)
        status = find_copies(look, trace->number, &copies, error);
    for (size_t i = 0; i < copies.count && status == DOPPEL_OK; i++) {
        dp_trace copy;
        bool there = false;
        if (!dp_hashmap_find(&local->removing, copies.number[i]))
            status = dp_look_trace(look, copies.number[i], &copy, &there, error);
        if (there)
            status = queue_removal(local, &copy, error);
    }
    DP_THEN(status, queue_removal(local, trace, error));
    dp_numbers_free(&copies);
    return status;
}

static size_t mark(const dp_look *look) {
    const dp_local *local = dp_local_of(look);
    return local->current ? local->current->count : 0;
}

static void back(dp_look *look, size_t mark) {
    dp_local *local = dp_local_of(look);
    dp_group *group = local->current;
    while (group && group->count > mark)
        undo(local, &group->pending[--group->count].is);
    collect_removals(local);
}

static doppel_status queue(dp_look *look, const dp_pending *pending, doppel_error *error) {
    dp_local *local = dp_local_of(look);
    size_t before = mark(look);
    doppel_status status =
        pending->removed ? queue_removals(look, &pending->trace, error) : queue_change(local, pending, error);
    if (status != DOPPEL_OK)
        back(look, before);
    else if (pending->added && dp_trace_is_kept(&pending->trace))
        dp_latest(&local->newest, look->now);
    return status;
}

/* ---- the store as a whole ---- */

static doppel_status flush(dp_known *known, doppel_error *error) {
    dp_local *local = (dp_local *)known;
    if (!local->has_background)
        return DOPPEL_OK;
    pthread_rwlock_rdlock(&local->shape);
    pthread_mutex_lock(&local->order);
    dp_group *group = last_group(local);
    doppel_status status = group ? await(local, group, false, error) : DOPPEL_OK;
    pthread_mutex_unlock(&local->order);
    pthread_rwlock_unlock(&local->shape);
    return status;
}

typedef struct keeping {
    dp_local *local;
    uint64_t now;
    dp_trace *orphans; /* existing copies and texts whose original is gone */
    size_t count, room;
} keeping;

/* Existing documents, and their copies. An orphan is kept until the next time if out of memory. */
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

/* How many are removed from the directory while `order` is held. */
enum { FORGET_MANY = 64 };

static void forget_some(dp_local *local, const dp_trace *orphans, size_t count) {
    pthread_mutex_lock(&local->order);
    atomic_fetch_add(&local->removals, 1);
    for (size_t i = 0; i < count; i++)
        if (dp_directory_remove(local->directory, &orphans[i]) != DOPPEL_OK)
            dp_known_log(&local->known, DOPPEL_LOG_ERROR, "COMPACT_ERROR",
                         "no memory to forget copy %llu before the next opening",
                         (unsigned long long)orphans[i].number);
    pthread_mutex_unlock(&local->order);
}

/* Removes from the directory what was removed from the store. Until then it is found there, but reading it finds
 * nothing. */
static void forget_orphans(const keeping *k) {
    for (size_t i = 0; i < k->count; i += FORGET_MANY)
        forget_some(k->local, k->orphans + i, k->count - i < FORGET_MANY ? k->count - i : FORGET_MANY);
}

/* Runs concurrently with all other calls. What expires after the first line stays: it is removed from the directory
 * when it is purged. */
static doppel_status compact(dp_known *known, doppel_error *error) {
    dp_local *local = (dp_local *)known;
    keeping k = {.local = local, .now = dp_local_purge_time(local)};
    uint64_t expired;
    DP_TRY(expire(known, &expired, error));
    DP_TRY(flush(known, error));
    pthread_rwlock_rdlock(&local->shape);
    doppel_status status = dp_store_compact(local->store, is_kept, &k, error);
    if (status == DOPPEL_OK)
        forget_orphans(&k);
    pthread_rwlock_unlock(&local->shape);
    free(k.orphans);
    return status;
}

static doppel_status backup(dp_known *known, const char *path, doppel_error *error) {
    dp_local *local = (dp_local *)known;
    DP_TRY(flush(known, error));
    pthread_rwlock_rdlock(&local->shape);
    doppel_status status = dp_store_backup(local->store, path, error);
    pthread_rwlock_unlock(&local->shape);
    return status;
}

/* It never waits for a server. */
static void stop_waiting(dp_known *known) {
    (void)known;
}

/* ---- statistics ---- */

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
    (void)look->kind->each(look, &each, NULL);
    stats->oldest = o.added;
    stats->last = info.last;
    stats->disk_bytes = info.disk_bytes;
    stats->free_bytes = info.free_bytes;
    stats->memory_bytes = info.memory_bytes;
    for (doppel_reason i = DOPPEL_REASON_URL; i < DOPPEL_REASONS; i++)
        stats->duplicates_by[i] = info.total.by[dp_reason_counter(i)];
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

static void get_stats(dp_known *known, doppel_engine_stats *stats) {
    dp_local *local = (dp_local *)known;
    dp_look *look;
    if (dp_look_create(known, &look, NULL) != DOPPEL_OK)
        return;
    if (dp_look_begin(look, DP_LOOK_LIST, NULL) == DOPPEL_OK) {
        read_store(look, stats);
        (void)look->kind->end(look, NULL);
    }
    dp_look_free(look);
    pthread_rwlock_rdlock(&local->shape);
    read_directory(local, stats);
    pthread_rwlock_unlock(&local->shape);
}

const dp_known_kind dp_known_local = {
    .name = "local",
    .fetches = 1,
    .takes = takes,
    .open = open_local,
    .close = close_local,
    .verify = dp_store_check,
    .look_create = look_create,
    .look_free = look_free,
    .begin = begin,
    .end = end,
    .again = again,
    .fetch = fetch,
    .find_name = find_name,
    .find_bands = find_bands,
    .find_near = find_near,
    .find_titles = find_titles,
    .look_ahead = look_ahead,
    .sift = sift,
    .keep_features = keep_features,
    .alive = alive,
    .hash = hash,
    .read = read_part,
    .counts = read_counts,
    .links = read_links,
    .each = each,
    .each_count = each_count,
    .number = number,
    .queue = queue,
    .mark = mark,
    .back = back,
    .commit = commit,
    .flush = flush,
    .expire = expire,
    .compact = compact,
    .backup = backup,
    .get_stats = get_stats,
    .stop_waiting = stop_waiting,
};
