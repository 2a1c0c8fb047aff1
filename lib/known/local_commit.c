/* local_commit.c - from decided to durable: one commit for all that wait.
 *
 * Changes gather in the current group. Of those that wait for one, the first that finds no commit under way becomes the
 * writer: it takes the group, lets `order` go, writes, and wakes everybody. Meanwhile the next group gathers, and it
 * may rest on what is being written: if that fails, both are taken back, the last change first. */
#include "known/local.h"

#include <stdlib.h>
#include <time.h>

/* A group of so many bytes is written before more is taken, also when nobody has to wait for it. */
#define GROUP_BYTES (64U << 20)

/* ---- groups ---- */

static void group_free(dp_group *group) {
    if (!group)
        return;
    for (size_t i = 0; i < group->count; i++)
        free(group->pending[i].bytes);
    free(group->pending);
    free(group);
}

static void group_let_go(dp_group *group) {
    if (!--group->holders)
        group_free(group);
}

/* The first change that stands at a number is that number's own. */
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

const dp_pending *dp_local_find(const dp_local *local, uint64_t number) {
    const dp_pending *found = group_find(local->current, number);
    return found ? found : group_find(local->writing, number);
}

/* Whether a change removes what is found until it is durable. */
static bool removes_when_durable(const dp_pending *p) {
    return p->removed && p->change.number;
}

/* What a group removes goes out of the directory. */
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
            dp_number_set_add(&local->removing, group->pending[i].is.trace.number);
}

/* The set of what is to be removed, from what is pending. */
static void collect_removals(dp_local *local) {
    dp_number_set_clear(&local->removing);
    add_removals(local, local->writing);
    add_removals(local, local->current);
}

/* Takes back what a change did to the directory. */
static void undo(dp_local *local, const dp_pending *p) {
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

/* ---- queueing ---- */

/* Copies all that a change points to into one block. */
static bool take_bytes(dp_pending *p, char **bytes) {
    size_t size = p->trace.key_count * sizeof *p->trace.keys + p->trace.title.length, at = 0;
    for (int i = 0; i < DP_PARTS; i++)
        size += p->change.part[i].length;
    char *block = *bytes = malloc(size + 1);
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
    if (p->added)
        return dp_directory_add(local->directory, &p->trace);
    if (removes_when_durable(p))
        return dp_number_set_reserve(&local->removing) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    return p->removed ? dp_directory_remove(local->directory, &p->trace) : DOPPEL_OK;
}

static bool counts_title(const dp_pending *p) {
    return p->change.count && p->change.count_reason == DOPPEL_REASON_TITLE;
}

static uint64_t group_titles(const dp_group *group, uint64_t number) {
    uint64_t times = 0;
    for (size_t i = 0; group && group->titles && i < group->count; i++) {
        const dp_pending *p = &group->pending[i].is;
        if (counts_title(p) && p->change.count == number)
            times += p->change.count_times ? p->change.count_times : 1;
    }
    return times;
}

uint64_t dp_local_queued_titles(const dp_local *local, uint64_t number) {
    return group_titles(local->writing, number) + group_titles(local->current, number);
}

doppel_status dp_local_queue(dp_local *local, const dp_pending *pending, doppel_error *error) {
    dp_group *group = current_group(local);
    if (!group || !dp_reserve(&group->pending, &group->room, group->count + 1, sizeof *group->pending))
        return dp_no_memory(error);
    dp_local_pending *queued = &group->pending[group->count];
    *queued = (dp_local_pending){.is = *pending};
    dp_pending *p = &queued->is;
    if (!take_bytes(p, &queued->bytes))
        return dp_no_memory(error);
    queued->at = p->change.number || !group->count ? p->change.number : group->pending[group->count - 1].at;
    doppel_status status = take_in(local, p);
    if (status != DOPPEL_OK) {
        free(queued->bytes);
        return dp_fail(error, status, "%s", doppel_status_name(status));
    }
    if (removes_when_durable(p))
        dp_number_set_add(&local->removing, p->trace.number);
    group->count++;
    group->titles += counts_title(p);
    for (int i = 0; i < DP_PARTS; i++)
        group->bytes += p->change.part[i].length;
    group->bytes += sizeof *queued;
    return DOPPEL_OK;
}

size_t dp_local_mark(const dp_local *local) {
    return local->current ? local->current->count : 0;
}

void dp_local_back(dp_local *local, size_t mark) {
    dp_group *group = local->current;
    while (group && group->count > mark) {
        undo(local, &group->pending[--group->count].is);
        free(group->pending[group->count].bytes);
    }
    collect_removals(local);
}

/* ---- writing ---- */

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

/* Whether a commit that failed is there all the same: the system may refuse the very last step. Then nothing is
 * acknowledged, but what is there must be known. */
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

/* Ends the commit that was under way: numbers become visible, or all that is pending goes. `order` is held. */
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

/* Writes the current group. `order` is held, and let go while the disk is busy unless `hold`. */
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

/* Until the group is done: writes it, or waits for who does. */
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

doppel_status dp_local_write_now(dp_local *local, doppel_error *error) {
    dp_group *group = last_group(local);
    return group ? await(local, group, true, error) : DOPPEL_OK;
}

/* What a commit in the background ended with, once. */
static doppel_status tell_failure(dp_local *local, doppel_error *error) {
    doppel_status status = local->failed;
    local->failed = DOPPEL_OK;
    if (status != DOPPEL_OK && error)
        *error = local->failed_error;
    return status;
}

doppel_status dp_local_wait(dp_local *local, doppel_error *error) {
    dp_group *group = last_group(local);
    if (local->has_background && (!group || group->bytes < GROUP_BYTES))
        return tell_failure(local, error);
    doppel_status status = group ? await(local, group, false, error) : DOPPEL_OK;
    local->failed = DOPPEL_OK;
    return status;
}

/* Of groups that follow each other the later one fails when the earlier one does, unless that was over before it
 * began. */
void dp_local_hold(dp_local *local, dp_local_look *own) {
    dp_group *group = last_group(local), *before = own->group;
    if (before && before->done && before->status != DOPPEL_OK)
        own->failed = before->error;
    if (group)
        group->holders++;
    own->group = group;
    if (before)
        group_let_go(before);
}

doppel_status dp_local_wait_held(dp_local *local, dp_local_look *own, doppel_error *error) {
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

/* ---- in the background: what is pending, four times a second ---- */

static void *write_now_and_then(void *user) {
    dp_local *local = user;
    pthread_mutex_lock(&local->order);
    while (!local->closing) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until); /* as `settled` has it: the other may jump */
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

doppel_status dp_local_start(dp_local *local, doppel_error *error) {
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

/* ---- the end ---- */

/* A clock that was doubted, or is no more, is kept also when there was nothing to write: the next process goes on from
 * there. */
static doppel_status write_clock(dp_local *local, doppel_error *error) {
    bool news;
    const dp_clock clock = dp_local_get_clock(local, &news);
    return news && !local->known.options.read_only ? dp_store_write(local->store, NULL, 0, &clock, error) : DOPPEL_OK;
}

void dp_local_stop(dp_local *local) {
    doppel_error error = {0};
    stop_background(local);
    pthread_mutex_lock(&local->order);
    if (dp_local_write_now(local, &error) != DOPPEL_OK || write_clock(local, &error) != DOPPEL_OK)
        dp_known_log_error(&local->known, "CLOSE", &error);
    pthread_mutex_unlock(&local->order);
    group_free(local->current);
    local->current = NULL;
}
