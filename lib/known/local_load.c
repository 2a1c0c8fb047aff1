/* local_load.c - the directory of a store: everything that must be in memory, read from the traces on several threads;
 * and a reader process that follows its writer.
 *
 * A reader reads the traces after the last one it knows. A removal record holds the trace of the removed document.
 * After a compaction removals may be missing: then everything is reread. */
#include "known/local.h"

#include <stdlib.h>

/* ---- loading ---- */

/* Numbers per piece; pieces are read by whichever thread is free. */
enum { PIECE = 1 << 16 };

typedef struct loading {
    dp_local *local;
    dp_directory *directory; /* that is being made */
    dp_directory_load *load;
    uint64_t last, now, purge;
    dp_moment moment;
    _Atomic uint64_t next; /* number that is not read yet */
    pthread_mutex_t lock;
    uint64_t seen, live, bad, pages; /* as in a piece */
    bool moved;                      /* it was written to during the load: counts are of several moments */
    doppel_status status;
    doppel_error why;
} loading;

static void load_failed(loading *l, doppel_status status, const doppel_error *why) {
    pthread_mutex_lock(&l->lock);
    if (l->status == DOPPEL_OK) {
        l->status = status;
        l->why = *why;
        if (l->why.code == DOPPEL_OK)
            dp_fail(&l->why, status, "%s", doppel_status_name(status));
    }
    pthread_mutex_unlock(&l->lock);
}

/* What a thread reads, and counts: traces, those of documents and copies among them, those that are damaged, and pages
 * of them that cannot be read. */
typedef struct load_piece {
    loading *loading;
    uint64_t seen, live, bad, pages;
} load_piece;

static void on_damaged(uint64_t number, void *user) {
    load_piece *p = user;
    ++*(number ? &p->bad : &p->pages);
    dp_known_log(&p->loading->local->known, DOPPEL_LOG_ERROR, "OPEN_ERROR",
                 number ? "document %llu is damaged; `doppel verify` tells more" : "a page of documents is damaged",
                 (unsigned long long)number);
}

static doppel_status on_trace(uint64_t number, doppel_slice bytes, void *user) {
    load_piece *p = user;
    loading *l = p->loading;
    dp_trace trace;
    if (!dp_trace_decode(bytes, &trace) || trace.number != number) {
        on_damaged(number, user);
        return DOPPEL_OK;
    }
    p->seen++;
    p->live += dp_trace_is_kept(&trace);
    if (dp_trace_is_removal(&trace) ||
        (trace.expires && trace.expires <= l->purge && l->local->known.options.read_only))
        return DOPPEL_OK;
    dp_latest(&l->local->newest, trace.added);
    return dp_directory_load_add(l->load, &trace);
}

static void add_piece(loading *l, const load_piece *p, bool moved) {
    pthread_mutex_lock(&l->lock);
    l->seen += p->seen;
    l->live += p->live;
    l->bad += p->bad;
    l->pages += p->pages;
    l->moved = l->moved || moved;
    pthread_mutex_unlock(&l->lock);
}

static void load_pieces(void *user, size_t thread) {
    loading *l = user;
    doppel_error why = {0};
    dp_view *view = NULL;
    load_piece p = {.loading = l};
    bool moved = false;
    (void)thread;
    doppel_status status = dp_view_create(l->local->store, &view, &why);
    for (uint64_t from; status == DOPPEL_OK && (from = atomic_fetch_add(&l->next, PIECE)) <= l->last;) {
        const dp_each each = {.part = DP_PART_TRACE,
                              .from = from,
                              .to = from + PIECE - 1 < l->last ? from + PIECE - 1 : l->last,
                              .value = on_trace,
                              .damaged = on_damaged,
                              .user = &p};
        status = dp_view_begin(view, &why);
        if (status == DOPPEL_OK) {
            dp_moment moment;
            dp_view_moment(view, &moment);
            moved = moved || moment.commit != l->moment.commit || moment.generation != l->moment.generation;
            status = dp_view_each(view, &each, &why);
            dp_view_end(view);
        }
    }
    dp_view_free(view);
    add_piece(l, &p, moved);
    if (status != DOPPEL_OK)
        load_failed(l, status, &why);
}

/* Titles of duplicates count once per duplicate. */
static doppel_status on_count(uint64_t number, const dp_counts *counts, void *user) {
    const loading *l = user;
    return dp_directory_title_seen(l->directory, number, counts->by[dp_reason_counter(DOPPEL_REASON_TITLE)]);
}

static doppel_status load_titles(loading *l, doppel_error *error) {
    if (!l->local->known.options.rules.titles || l->local->known.options.read_only)
        return DOPPEL_OK;
    dp_view *view = l->local->view;
    DP_TRY(dp_view_begin(view, error));
    doppel_error why = {0};
    doppel_status status = dp_view_each_count(view, on_count, l, &why);
    dp_view_end(view);
    if (status == DOPPEL_ERROR_STORE)
        return dp_known_damage(&l->local->known, 1, &why, error);
    if (status != DOPPEL_OK && error)
        *error = why;
    return status;
}

static doppel_status make_directory(const dp_local *local, dp_directory **directory, doppel_error *error) {
    const dp_known_options *o = &local->known.options;
    const dp_rules *rules = &o->rules;
    const dp_directory_options options = {.bits = rules->bits,
                                          .distance = rules->distance,
                                          .by_similarity = rules->by_similarity,
                                          .titles = rules->titles,
                                          .title_similarity = rules->title_similarity,
                                          .count = o->count,
                                          .memory = o->memory,
                                          .threads = o->threads,
                                          .read_only = o->read_only};
    return dp_directory_create(&options, directory, error);
}

doppel_status dp_local_moment(dp_local *local, dp_moment *moment, doppel_error *error) {
    DP_TRY(dp_view_begin(local->view, error));
    dp_view_moment(local->view, moment);
    dp_view_end(local->view);
    return DOPPEL_OK;
}

/* Reads all traces up to l->last. */
static doppel_status load_traces(loading *l, doppel_error *error) {
    doppel_status status = dp_directory_load_begin(l->directory, &l->load);
    if (status != DOPPEL_OK)
        return dp_no_memory(error);
    pthread_mutex_init(&l->lock, NULL);
    size_t threads = dp_thread_count(l->local->known.options.threads), pieces = (size_t)(l->last / PIECE + 1);
    dp_run_threads(threads < pieces ? threads : pieces, load_pieces, l);
    doppel_status ended = dp_directory_load_end(l->load);
    if (ended != DOPPEL_OK)
        load_failed(l, ended, &l->why);
    pthread_mutex_destroy(&l->lock);
    if (l->status != DOPPEL_OK && error)
        *error = l->why;
    return l->status;
}

static uint64_t apart(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

/* Checks that what was read is what the store says it has: every trace, and a record for every document and copy. */
static doppel_status reconcile(const loading *l, doppel_error *error) {
    doppel_error why = {0};
    uint64_t lost = l->bad;
    if (!l->moved)
        lost += apart(l->moment.traces, l->seen + l->bad);
    if (!lost && !l->moved)
        lost = apart(l->moment.records, l->live);
    if (!lost && !l->pages)
        return DOPPEL_OK;
    dp_damaged(l->local->known.name, &why, "%llu of %llu documents cannot be read",
               (unsigned long long)(lost ? lost : 1), (unsigned long long)l->moment.traces);
    return dp_known_damage(&l->local->known, lost ? lost : 1, &why, error);
}

doppel_status dp_local_load(dp_local *local, doppel_error *error) {
    dp_moment moment;
    loading l = {.local = local, .next = 1};
    doppel_status status = make_directory(local, &l.directory, error);
    DP_THEN(status, dp_local_moment(local, &moment, error));
    if (status == DOPPEL_OK) {
        dp_local_set_clock(local, &moment.clock);
        l.last = moment.last;
        l.moment = moment;
        l.now = dp_local_now(local);
        l.purge = local->loaded_by = dp_local_purge_time(local);
        status = load_traces(&l, error);
    }
    DP_THEN(status, reconcile(&l, error));
    if (status == DOPPEL_OK && (status = load_titles(&l, error)) == DOPPEL_ERROR_MEMORY)
        dp_no_memory(error);
    if (status != DOPPEL_OK) {
        dp_directory_free(l.directory);
        return status;
    }
    dp_directory_free(local->directory);
    local->directory = l.directory;
    local->names = moment.names;
    local->titles = moment.titles;
    local->next = moment.last + 1;
    local->followed = moment.last;
    local->loads++;
    local->followed_generation = moment.generation;
    /* Data read while the writer compacted is of two generations, whose name hashes may differ. */
    dp_moment after;
    status = local->known.options.read_only ? dp_local_moment(local, &after, error) : DOPPEL_OK;
    if (status != DOPPEL_OK || !local->known.options.read_only || after.generation == moment.generation)
        return status;
    return dp_local_load(local, error);
}

/* ---- following ---- */

/* Seconds between counts of what has expired, and the number that does not matter. */
enum { EXPIRE_EVERY = 600, EXPIRE_FEW = 4096 };

typedef struct following {
    dp_local *local;
    uint64_t damaged;
} following;

static doppel_status on_new_trace(uint64_t number, doppel_slice bytes, void *user) {
    following *f = user;
    dp_local *local = f->local;
    dp_trace trace;
    uint32_t keys[DP_MOST_BANDS];
    if (!dp_trace_decode(bytes, &trace) || trace.key_count > DP_MOST_BANDS) {
        f->damaged++;
        return DOPPEL_OK;
    }
    if (trace.key_count)
        memcpy(keys, trace.keys, trace.key_count * sizeof *keys);
    trace.keys = keys;
    dp_latest(&local->newest, trace.added);
    doppel_status status;
    if (!dp_trace_is_removal(&trace)) {
        status = dp_directory_add(local->directory, &trace);
    } else {
        /* A new version precedes the removal of the old one. */
        atomic_fetch_add(&local->removals, 1);
        trace.number = trace.of;
        trace.kind = trace.kind == DP_TRACE_COPY_REMOVAL ? DP_TRACE_COPY : DP_TRACE_DOCUMENT;
        status = dp_directory_remove(local->directory, &trace);
    }
    if (status == DOPPEL_OK)
        local->followed = number;
    return status;
}

static void on_new_damage(uint64_t number, void *user) {
    following *f = user;
    (void)number;
    f->damaged++;
}

/* Reads what is new in a view that has begun; `order` is held. */
static doppel_status take_in(dp_local *local, dp_view *view, const dp_moment *moment, doppel_error *error) {
    following f = {.local = local};
    const dp_each each = {.part = DP_PART_TRACE,
                          .from = local->followed + 1,
                          .to = moment->last,
                          .value = on_new_trace,
                          .damaged = on_new_damage,
                          .user = &f};
    doppel_status status = dp_view_each(view, &each, error);
    if (status != DOPPEL_OK)
        return status == DOPPEL_ERROR_MEMORY ? dp_no_memory(error) : status;
    if (f.damaged) {
        doppel_error why = {0};
        dp_damaged(local->known.name, &why, "documents that were added lately cannot be read");
        DP_TRY(dp_known_damage(&local->known, f.damaged, &why, error));
    }
    local->followed = moment->last;
    dp_local_set_clock(local, &moment->clock);
    return DOPPEL_OK;
}

doppel_status dp_local_catch_up(dp_look *look, dp_moment *moment, doppel_error *error) {
    dp_local *local = dp_local_of(look);
    dp_view *view = ((dp_local_look *)look->own)->view;
    if (moment->last <= atomic_load(&local->followed))
        return DOPPEL_OK;
    /* `order` is taken before a view begins, here as everywhere. */
    dp_view_end(view);
    pthread_mutex_lock(&local->order);
    doppel_status status = dp_view_begin(view, error);
    if (status == DOPPEL_OK) {
        dp_view_moment(view, moment);
        if (moment->generation == local->followed_generation && moment->last > local->followed)
            status = take_in(local, view, moment, error);
        if (status != DOPPEL_OK)
            dp_view_end(view);
    }
    look->removals = atomic_load(&local->removals);
    pthread_mutex_unlock(&local->order);
    return status;
}

/* Whether so much has expired that everything is better reread: expiry leaves no removal. `order` is held. */
static bool is_stale(dp_local *local) {
    dp_directory_stats stats;
    uint64_t now = dp_local_purge_time(local);
    /* The clock has gone back, and what was left out has not expired yet. */
    if (now < local->loaded_by)
        return true;
    if (now >= local->expired_at && now < local->expired_at + EXPIRE_EVERY)
        return false;
    local->expired_at = now;
    dp_directory_get_stats(local->directory, &stats);
    size_t enough = (size_t)((stats.documents + stats.copies) / 2 + EXPIRE_FEW);
    uint64_t *numbers = malloc(enough * sizeof *numbers);
    bool stale = numbers && dp_directory_expired(local->directory, now, numbers, enough) == enough;
    free(numbers);
    return stale;
}

/* Reads what is new, in `view`; *anew: everything must be reread. `order` is held. */
static doppel_status take_news(dp_local *local, bool *anew, doppel_error *error) {
    dp_moment moment;
    doppel_status status = dp_view_begin(local->view, error);
    if (status != DOPPEL_OK)
        return status;
    dp_view_moment(local->view, &moment);
    dp_local_set_clock(local, &moment.clock);
    *anew = moment.generation != local->followed_generation;
    if (!*anew && moment.last > local->followed)
        status = take_in(local, local->view, &moment, error);
    dp_view_end(local->view);
    *anew = *anew || is_stale(local);
    return status;
}

doppel_status dp_local_follow(dp_local *local, doppel_error *error) {
    bool anew = false;
    doppel_status status = DOPPEL_OK;
    pthread_rwlock_rdlock(&local->shape);
    uint64_t loads = local->loads;
    /* If another thread is doing it, this one continues with the current state. */
    if (!pthread_mutex_trylock(&local->order)) {
        status = take_news(local, &anew, error);
        pthread_mutex_unlock(&local->order);
    }
    pthread_rwlock_unlock(&local->shape);
    if (status != DOPPEL_OK || !anew)
        return status;
    pthread_rwlock_wrlock(&local->shape);
    if (local->loads == loads)
        status = dp_local_load(local, error);
    pthread_rwlock_unlock(&local->shape);
    return status;
}
