/* local.c - what is known in this process: opening, expiry, looks; the store as a whole (local.h).
 *
 * A look of an add holds `order` from fetch to commit: what it finds is the store as its view shows it, and all that is
 * pending. Then it lets `order` go, and waits for the commit at its end. Other looks see what their view shows, up to
 * its last number, and never wait for the disk; but where nobody waits for the disk (DOPPEL_DURABLE_NONE), they hold
 * `order`, too, and see all that was acknowledged. */
#include "known/local.h"

#include <stdio.h>
#include <stdlib.h>

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

static doppel_status open_store(dp_local *local, const char *path, const char *settings, doppel_error *error) {
    dp_known_options *o = &local->known.options;
    const dp_store_options options = {.read_only = o->read_only,
                                      .must_exist = o->must_exist,
                                      .group_readable = o->group_readable,
                                      .map = o->map,
                                      .settings = settings,
                                      .warn = on_warning,
                                      .user = &local->known};
    doppel_status status = dp_store_open(path, &options, &local->store, error);
    if (status == DOPPEL_OK && o->agree)
        status = o->agree(dp_store_settings(local->store), &o->rules, o->user, error);
    return status == DOPPEL_OK ? dp_view_create(local->store, &local->view, error) : status;
}

static bool keep_all(const dp_trace *trace, void *user) {
    (void)trace, (void)user;
    return true;
}

/* A folder whose names have no secret gets one before anything is written to it. Killed on the way, it is as it was. */
static doppel_status convert(dp_local *local, doppel_error *error) {
    dp_moment moment;
    doppel_status status = dp_local_moment(local, &moment, error);
    if (status != DOPPEL_OK || moment.names.keyed)
        return status;
    dp_known_log(&local->known, DOPPEL_LOG_INFO, "OPEN", "the index is of format 1: it is rewritten in format 2");
    return dp_store_compact(local->store, keep_all, NULL, error);
}

static void close_local(dp_known *known) {
    dp_local *local = (dp_local *)known;
    if (local->store && local->directory)
        dp_local_stop(local);
    dp_view_free(local->view);
    dp_number_set_free(&local->removing);
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
    if (status == DOPPEL_OK)
        status = open_store(local, path, options->settings, error);
    if (status == DOPPEL_OK && !options->read_only)
        status = convert(local, error);
    if (status == DOPPEL_OK)
        status = dp_local_load(local, error);
    if (status == DOPPEL_OK)
        status = dp_local_start(local, error);
    if (status == DOPPEL_OK)
        *known = &local->known;
    else
        close_local(&local->known);
    return status;
}

/* ---- expiry ---- */

/* Expired documents are looked for so often, in seconds, and so many are removed at a time. */
enum { EXPIRE_EVERY = 60, EXPIRE_MANY = 4096 };

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
    return look->kind->queue(look, &gone, error);
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

/* Now and then, what has expired goes: as much of it as is due for some adds. `order` is held, in no view. What goes
 * wrong is told by the commit. */
static void expire_due(dp_local *local, size_t adds) {
    uint64_t now = dp_local_purge_time(local), expired = EXPIRE_MANY;
    if (now >= local->expired_at && now < local->expired_at + EXPIRE_EVERY)
        return;
    for (size_t i = 0; i < adds && expired == EXPIRE_MANY; i++)
        if (expire_some(local, EXPIRE_MANY, &expired, NULL) != DOPPEL_OK || expired < EXPIRE_MANY) {
            local->expired_at = now;
            return;
        }
}

static doppel_status expire(dp_known *known, uint64_t *expired, doppel_error *error) {
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
 * border. Documents leave the directory after the store. */
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
    doppel_status status = local->known.options.read_only ? dp_local_follow(local, error) : DOPPEL_OK;
    if (status != DOPPEL_OK)
        return status;
    pthread_rwlock_rdlock(&local->shape);
    own->decided = false;
    if (look->purpose == DP_LOOK_ADD) {
        look->below = UINT64_MAX;
        look->deciding = true;
        return DOPPEL_OK;
    }
    status = begin_reading(look, error);
    if (status != DOPPEL_OK)
        pthread_rwlock_unlock(&local->shape);
    return status;
}

/* With DOPPEL_DURABLE_EACH every query has a commit of its own. */
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
        status = dp_local_write_now(local, error);
    else if (!local->has_background)
        dp_local_hold(local, own);
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
        status = dp_local_wait(local, error);
    else
        status = dp_local_wait_held(local, own, error);
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

static doppel_status find_titles(dp_look *look, const dp_title_query *query, dp_title_hits *hits, doppel_error *error) {
    dp_local *local = dp_local_of(look);
    dp_local_look *own = look->own;
    const dp_title_search search = {.title = query->title,
                                    .now = look->now,
                                    .below = look->below,
                                    .except = {look->except[0], look->except[1]},
                                    .removing = look->deciding ? &local->removing : NULL,
                                    .share = query->share,
                                    .best = query->best};
    doppel_status status = dp_directory_find_titles(local->directory, &search, &own->titles, hits);
    return status == DOPPEL_OK ? status : dp_no_memory(error);
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
             !(look->deciding && dp_number_set_has(&local->removing, number));
    return DOPPEL_OK;
}

/* ---- reading ---- */

static uint64_t hash(const dp_look *look, doppel_slice name) {
    return dp_name_hash(&dp_local_of(look)->names, name);
}

/* What the store says is damaged. */
static doppel_status damage(dp_look *look, const doppel_error *why, doppel_error *error) {
    doppel_status status = dp_known_damage(look->known, 1, why, error);
    return look->salvage ? DOPPEL_OK : status;
}

/* What came of reading the store: damage is passed over where everything else is to be saved. */
static doppel_status read_ended(dp_look *look, doppel_status status, const doppel_error *why, doppel_error *error) {
    if (status == DOPPEL_ERROR_STORE)
        return damage(look, why, error);
    if (status != DOPPEL_OK && error)
        *error = *why;
    return status;
}

/* Whether a part that is not there ought to be: a view shows one moment, in which a document has its record, and what
 * that speaks of. */
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
    const dp_pending *pending = look->deciding ? dp_local_find(dp_local_of(look), number) : NULL;
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

static doppel_status read_counts(dp_look *look, uint64_t number, dp_counts *counts, doppel_error *error) {
    doppel_error why = {0};
    doppel_status status = dp_view_counts(((dp_local_look *)look->own)->view, number, counts, &why);
    if (status != DOPPEL_OK)
        *counts = (dp_counts){0};
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

/* The duplicates that came by the title of a document that goes do not count any more. */
static doppel_status forget_titles(dp_look *look, const dp_trace *trace, doppel_error *error) {
    dp_local *local = dp_local_of(look);
    dp_counts counts;
    if (!local->known.options.rules.titles || !trace->title.length)
        return DOPPEL_OK;
    doppel_status status = read_counts(look, trace->number, &counts, error);
    if (status != DOPPEL_OK)
        return status;
    uint64_t times = counts.by[DOPPEL_REASON_TITLE - 1] + dp_local_queued_titles(local, trace->number);
    return failed(dp_directory_title_forgotten(local->directory, trace->title, times), error);
}

static doppel_status queue(dp_look *look, const dp_pending *pending, doppel_error *error) {
    dp_local *local = dp_local_of(look);
    doppel_status status = pending->removed ? forget_titles(look, &pending->trace, error) : DOPPEL_OK;
    if (status == DOPPEL_OK)
        status = dp_local_queue(local, pending, error);
    if (status == DOPPEL_OK && pending->added && dp_trace_is_kept(&pending->trace))
        dp_latest(&local->newest, look->now);
    return status;
}

static size_t mark(const dp_look *look) {
    return dp_local_mark(dp_local_of(look));
}

static void back(dp_look *look, size_t mark) {
    dp_local_back(dp_local_of(look), mark);
}

static doppel_status title_seen(dp_look *look, doppel_slice title, uint64_t times, doppel_error *error) {
    return failed(dp_directory_title_seen(dp_local_of(look)->directory, title, times), error);
}

/* ---- the store as a whole ---- */

static doppel_status flush(dp_known *known, doppel_error *error) {
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

static doppel_status compact(dp_known *known, doppel_error *error) {
    dp_local *local = (dp_local *)known;
    uint64_t expired;
    doppel_status status = expire(known, &expired, error);
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

static doppel_status backup(dp_known *known, const char *path, doppel_error *error) {
    dp_local *local = (dp_local *)known;
    doppel_status status = flush(known, error);
    if (status != DOPPEL_OK)
        return status;
    pthread_rwlock_rdlock(&local->shape);
    status = dp_store_backup(local->store, path, error);
    pthread_rwlock_unlock(&local->shape);
    return status;
}

/* It never waits for a server. */
static void stop_waiting(dp_known *known) {
    (void)known;
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
    .title_seen = title_seen,
    .commit = commit,
    .flush = flush,
    .expire = expire,
    .compact = compact,
    .backup = backup,
    .get_stats = get_stats,
    .stop_waiting = stop_waiting,
};
