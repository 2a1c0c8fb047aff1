/* input.c - doppel_input_run: threads take units of work, and what comes of them is emitted in input order.
 *
 * Each thread reads its next unit itself, one at a time under `reading`, while the others compute: there is read-ahead
 * without a thread for it. A unit has a number and a slot; there are twice as many slots as threads, so that one slow
 * unit does not stop the rest, and memory stays bounded. Whoever finishes a unit emits it and those behind it that are
 * done, unless another thread is at it. A unit that holds too much waits for its turn and emits what it has.
 *
 * Lock order: `reading`, then `order`. Nothing is read, computed or emitted under `order`. */
#include "input/input.h"

#include "input/reader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

/* 1 MiB of lines is some 200 documents, so that locks cost nothing, and with the text taken out of it still fits into
 * the second-level cache. Files up to a quarter of that come several at a time. */
static const dp_input_sizes usual_sizes = {
    .block = (size_t)1 << 20, .small_file = (size_t)256 << 10, .batch_files = 128, .pending = (size_t)4 << 20};

#define USUAL_MAX_RECORD ((size_t)64 << 20)
/* Sums with it do not overflow. */
#define MOST_MAX_RECORD (SIZE_MAX / 4)

typedef struct run {
    dp_input_job job;
    doppel_input_options options;
    pthread_mutex_t reading, order;
    pthread_cond_t moved; /* something of what `order` guards has changed */
    dp_source source;
    bool source_ended; /* by `reading` */

    dp_unit *units; /* by number modulo their count */
    size_t unit_count;
    uint64_t next_read, next_emit; /* numbers of units; by `order` */
    bool emitting;                 /* by `order` */
    doppel_status status;          /* by `order`; not DOPPEL_OK: end */
    doppel_error error;            /* by `order` */

    doppel_input_counts counts; /* by whoever is emitting */
    dp_judge judge;             /* by whoever is emitting */
    dp_buffer held;             /* what is emitted once the first records were judged; by whoever is emitting */
    uint64_t seen;              /* of dp_reader, of all threads; by `order` */
    uint64_t raw_bytes, total;
} run;

static bool asked_to_stop(const run *r) {
    return dp_stop_asked(r->options.stop);
}

/* Notes the first failure. Called under `order`. */
static void set_status(run *r, doppel_status status, const doppel_error *error) {
    if (r->status != DOPPEL_OK)
        return;
    if (r->judge.against)
        error = &r->judge.error;
    r->status = status;
    if (error)
        r->error = *error;
    else
        dp_fail(&r->error, status, "%s", doppel_status_name(status));
}

static void fail_run(run *r, doppel_status status) {
    pthread_mutex_lock(&r->order);
    set_status(r, status, NULL);
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->order);
}

/* ---- emitting ---- */

/* Adds what the unit counted to the whole and clears it. */
static void add_counts(run *r, dp_unit *unit) {
    r->counts.documents += unit->counts.documents;
    r->counts.bytes += unit->counts.bytes;
    r->counts.bad += unit->counts.bad;
    r->counts.repaired += unit->counts.repaired;
    r->counts.unopened += unit->counts.unopened;
    r->raw_bytes += unit->raw_bytes;
    unit->raw_bytes = 0;
    memset(&unit->counts, 0, sizeof unit->counts);
}

/* Gives the caller what was written. */
static doppel_status give(run *r, dp_buffer *bytes) {
    doppel_status status = DOPPEL_OK;
    if (bytes->size && r->job.work->emit)
        status = r->job.work->emit(r->job.work->user, bytes->data, bytes->size);
    bytes->size = 0;
    return status;
}

/* Judges the first records, or all of them; what was held goes out if they are good. */
static doppel_status judge(run *r, bool all) {
    doppel_status status = all ? dp_judge_end(&r->judge) : dp_judge_first(&r->judge);
    return status == DOPPEL_OK ? give(r, &r->held) : status;
}

/* Gives what the unit has, or holds it until the first records are judged. */
static doppel_status give_unit(run *r, dp_unit *unit) {
    bool first = r->options.refuse_bad && r->options.judge_first && !r->judge.first;
    dp_buffer *bytes = &unit->output.bytes;
    doppel_status status = DOPPEL_OK;
    if (!first || !r->options.judge_holds)
        status = give(r, bytes);
    else if (bytes->size && !dp_buffer_add(&r->held, bytes->data, bytes->size))
        status = DOPPEL_ERROR_MEMORY;
    bytes->size = 0;
    dp_judge_take(&r->judge, unit->tallies, &unit->tally_count, &unit->first);
    return status == DOPPEL_OK && first && dp_judge_ready(&r->judge, r->held.size) ? judge(r, false) : status;
}

/* Emits what the unit has; by the one thread that set `emitting`, without a lock. */
static doppel_status emit(run *r, dp_unit *unit) {
    doppel_status status = give_unit(r, unit);
    bool told = status == DOPPEL_OK || r->judge.against;
    for (size_t i = 0; i < unit->report_count && told && r->options.bad; i++)
        r->options.bad(&unit->reports[i], r->options.user);
    unit->report_count = 0;
    add_counts(r, unit);
    if (r->options.progress)
        r->options.progress(r->raw_bytes, r->total, r->counts.documents, r->options.user);
    return status;
}

/* A unit that is still being worked on emits what it has so far, in its turn. */
static void flush(void *user, dp_unit *unit) {
    run *r = user;
    pthread_mutex_lock(&r->order);
    while (r->status == DOPPEL_OK && (r->emitting || r->next_emit != unit->sequence))
        pthread_cond_wait(&r->moved, &r->order);
    bool mine = r->status == DOPPEL_OK;
    r->emitting = r->emitting || mine;
    pthread_mutex_unlock(&r->order);
    if (!mine) {
        dp_unit_fail(unit, DOPPEL_ERROR_INTERRUPTED, "", 0, "interrupted");
        return;
    }
    doppel_status status = emit(r, unit);
    if (status != DOPPEL_OK)
        dp_unit_fail(unit, status, "", 0, doppel_status_name(status));
    pthread_mutex_lock(&r->order);
    r->emitting = false;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->order);
}

/* Emits one unit, `order` being held at the start and at the end. */
static void emit_next(run *r, dp_unit *unit) {
    pthread_mutex_unlock(&r->order);
    doppel_status status = emit(r, unit);
    pthread_mutex_lock(&r->order);
    if (status != DOPPEL_OK)
        set_status(r, status, NULL);
    if (unit->status != DOPPEL_OK)
        set_status(r, unit->status, &unit->error);
    unit->done = false;
    r->next_emit++;
    pthread_cond_broadcast(&r->moved);
}

/* The unit is done; emits all that can be. */
static void finish(run *r, dp_unit *unit) {
    pthread_mutex_lock(&r->order);
    unit->done = true;
    if (!r->emitting) {
        r->emitting = true;
        for (dp_unit *next; r->status == DOPPEL_OK; emit_next(r, next)) {
            next = &r->units[r->next_emit % r->unit_count];
            if (!next->done)
                break;
        }
        r->emitting = false;
        pthread_cond_broadcast(&r->moved);
    }
    pthread_mutex_unlock(&r->order);
}

/* ---- reading ---- */

/* Waits for a free slot; NULL when the run is over. */
static dp_unit *free_unit(run *r) {
    pthread_mutex_lock(&r->order);
    while (r->status == DOPPEL_OK && r->next_read - r->next_emit >= r->unit_count)
        pthread_cond_wait(&r->moved, &r->order);
    if (asked_to_stop(r))
        set_status(r, DOPPEL_ERROR_INTERRUPTED, NULL);
    dp_unit *unit = r->status == DOPPEL_OK ? &r->units[r->next_read % r->unit_count] : NULL;
    pthread_mutex_unlock(&r->order);
    return unit;
}

/* The next unit of work, read; NULL when there is none. */
static dp_unit *take(run *r) {
    pthread_mutex_lock(&r->reading);
    dp_unit *unit = r->source_ended ? NULL : free_unit(r);
    if (unit) {
        dp_unit_reset(unit, r->job.sizes->block);
        if (!dp_source_next(&r->source, unit))
            r->source_ended = true;
        if (r->source_ended && unit->status == DOPPEL_OK) {
            unit = NULL;
        } else {
            pthread_mutex_lock(&r->order);
            unit->sequence = r->next_read++;
            pthread_mutex_unlock(&r->order);
        }
    }
    pthread_mutex_unlock(&r->reading);
    return unit;
}

/* ---- threads ---- */

static void work(run *r, dp_reader *reader) {
    for (dp_unit *unit; (unit = take(r));) {
        if (unit->status == DOPPEL_OK)
            dp_reader_run(reader, unit);
        finish(r, unit);
    }
}

static void *thread_main(void *user) {
    run *r = user;
    const doppel_work *w = r->job.work;
    dp_reader reader = {.options = &r->options, .work = w, .sizes = r->job.sizes, .flush = flush, .run = r};
    doppel_status status = dp_reader_init(&reader) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    bool begun = false;
    if (status == DOPPEL_OK && w->begin) {
        status = w->begin(w->user, &reader.state);
        begun = status == DOPPEL_OK;
    } else {
        reader.state = w->user;
    }
    if (status == DOPPEL_OK)
        work(r, &reader);
    else
        fail_run(r, status);
    if (begun && w->end)
        w->end(w->user, reader.state);
    pthread_mutex_lock(&r->order);
    r->seen |= reader.seen;
    pthread_mutex_unlock(&r->order);
    dp_reader_free(&reader);
    return NULL;
}

/* Runs on `threads` threads, this one among them. Signals go to this one: the others block them. */
static void run_threads(run *r, size_t threads) {
    pthread_t *others = threads > 1 ? malloc((threads - 1) * sizeof *others) : NULL;
    size_t started = 0;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (others && started < threads - 1 && !pthread_create(&others[started], NULL, thread_main, r))
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    thread_main(r);
    while (started)
        pthread_join(others[--started], NULL);
    free(others);
}

/* ---- the call ---- */

/* Copies as much of the options as the caller knows of, and sets defaults. */
static void set_options(run *r, const doppel_input_options *given) {
    if (given)
        dp_copy_options(&r->options, given, sizeof r->options);
    if (!r->options.max_record)
        r->options.max_record = USUAL_MAX_RECORD;
    if (r->options.max_record > MOST_MAX_RECORD)
        r->options.max_record = MOST_MAX_RECORD;
    r->job.options = &r->options;
    r->judge.options = &r->options;
    if (!r->job.sizes)
        r->job.sizes = &usual_sizes;
}

static bool create_units(run *r, size_t threads) {
    r->unit_count = 2 * threads;
    r->units = calloc(r->unit_count, sizeof *r->units);
    for (size_t i = 0; r->units && i < r->unit_count; i++)
        dp_stream_init(&r->units[i].stream, r->options.stop);
    return r->units != NULL;
}

static void free_run(run *r) {
    for (size_t i = 0; r->units && i < r->unit_count; i++)
        dp_unit_free(&r->units[i]);
    free(r->units);
    dp_source_free(&r->source);
    dp_judge_free(&r->judge);
    dp_buffer_free(&r->held);
    pthread_cond_destroy(&r->moved);
    pthread_mutex_destroy(&r->order);
    pthread_mutex_destroy(&r->reading);
}

/* Names the keys that were asked for and that no record has. */
static void tell_unseen(const run *r) {
    const doppel_input_options *o = &r->options;
    const char *keys[DP_FIELDS] = {o->id_key, o->url_key, o->title_key, o->text_key, o->html_key};
    if (!o->unseen || !(r->seen & DP_SEEN_RECORD))
        return;
    for (size_t i = 0; i < DP_FIELDS + o->extra_count; i++) {
        const char *key = i < DP_FIELDS ? keys[i] : o->extra_keys[i - DP_FIELDS];
        if (key && !(r->seen >> i & 1))
            o->unseen(key, o->user);
    }
}

doppel_status dp_input_run(const dp_input_job *job, doppel_input_counts *counts, doppel_error *error) {
    run r = {.job = *job};
    set_options(&r, job->options);
    pthread_mutex_init(&r.reading, NULL);
    pthread_mutex_init(&r.order, NULL);
    pthread_cond_init(&r.moved, NULL);
    dp_source_init(&r.source, &r.job);
    size_t threads = dp_thread_count(r.options.threads);
    r.source.threads = (int)threads;
    if (r.options.progress)
        r.total = dp_source_total(&r.job);
    if (r.options.extra_count > DP_EXTRA)
        r.status = dp_fail(&r.error, DOPPEL_ERROR_USAGE, "more than %d extra keys", DP_EXTRA);
    else if (create_units(&r, threads))
        run_threads(&r, threads);
    else
        set_status(&r, DOPPEL_ERROR_MEMORY, NULL);
    if (asked_to_stop(&r))
        set_status(&r, DOPPEL_ERROR_INTERRUPTED, NULL);
    doppel_status judged = r.status == DOPPEL_OK ? judge(&r, true) : DOPPEL_OK;
    if (judged != DOPPEL_OK)
        set_status(&r, judged, NULL);
    if (r.status == DOPPEL_OK)
        tell_unseen(&r);
    if (counts)
        *counts = r.counts;
    if (error && r.status != DOPPEL_OK)
        *error = r.error;
    free_run(&r);
    return r.status;
}

doppel_status doppel_input_run(const char *const *paths, size_t path_count, const doppel_input_options *options,
                               const doppel_work *work_to_do, doppel_input_counts *counts, doppel_error *error) {
    dp_input_job job = {.paths = paths, .path_count = path_count, .options = options, .work = work_to_do};
    return dp_input_run(&job, counts, error);
}
