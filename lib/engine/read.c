/* read.c - what is stored of a number, from what is not durable yet or from the worker's view.
 *
 * A part that is damaged is counted and logged. Then it counts as gone, where the engine was opened to save what can be
 * read, and else ends the call: what is not known for sure is not answered. */
#include "engine/engine.h"
#include "verify/verify.h"

/* What the view shows is durable: its last number is the border. Documents leave `known` after the store. */
doppel_status dp_look_begin(doppel_engine *engine, dp_worker *worker, dp_look *look, doppel_error *error) {
    dp_moment moment;
    *look = (dp_look){.below = UINT64_MAX, .now = dp_engine_now(engine), .deciding = engine->has_background};
    if (look->deciding)
        pthread_mutex_lock(&engine->order);
    look->removals = atomic_load(&engine->removals);
    doppel_status status = dp_view_begin(worker->view, error);
    if (status != DOPPEL_OK) {
        if (look->deciding)
            pthread_mutex_unlock(&engine->order);
        return status;
    }
    dp_view_moment(worker->view, &moment);
    if (engine->options.read_only)
        status = dp_engine_catch_up(engine, worker, &moment, look, error);
    if (!look->deciding)
        look->below = moment.last + 1;
    return status;
}

void dp_look_end(doppel_engine *engine, dp_worker *worker, const dp_look *look) {
    dp_view_end(worker->view);
    if (look->deciding)
        pthread_mutex_unlock(&engine->order);
}

bool dp_look_again(const doppel_engine *engine, const dp_look *look) {
    return !look->deciding && look->removals != atomic_load(&engine->removals);
}

bool dp_look_alive(const doppel_engine *engine, const dp_look *look, uint64_t number) {
    return dp_known_alive(engine->known, number, look->now) &&
           !(look->deciding && dp_leaving_has(&engine->leaving, number));
}

doppel_status dp_engine_damage(doppel_engine *engine, uint64_t documents, const doppel_error *why,
                               doppel_error *error) {
    atomic_fetch_add(&engine->counters.damaged, documents);
    dp_log_error(engine, "READ", why);
    if (engine->options.salvage)
        return DOPPEL_OK;
    if (error)
        *error = *why;
    return DOPPEL_ERROR_STORE;
}

/* What is stored of a number contradicts itself: `how` says in which way. */
static doppel_status nonsense(doppel_engine *engine, const dp_look *look, const char *what, uint64_t number,
                              const char *how, doppel_error *error) {
    doppel_error why = {0};
    dp_damaged(engine->path ? engine->path : "memory", &why, "the %s of number %llu %s", what,
               (unsigned long long)number, how);
    doppel_status status = dp_engine_damage(engine, 1, &why, error);
    return look->salvage ? DOPPEL_OK : status;
}

/* Whether a part that is not there ought to be: a view shows one moment, in which a document has its record, and what
 * that speaks of. */
static bool is_missing(dp_worker *worker, dp_part part, uint64_t number) {
    doppel_slice bytes;
    dp_trace trace;
    dp_record record;
    if (part == DP_PART_TRACE ||
        dp_view_get(worker->view, part == DP_PART_RECORD ? DP_PART_TRACE : DP_PART_RECORD, number, &bytes, NULL) ||
        !bytes.data)
        return false;
    if (part == DP_PART_RECORD)
        return dp_trace_decode(bytes, &trace) && dp_trace_is_kept(&trace);
    return dp_record_decode(bytes, &record) && (part == DP_PART_SET ? record.set_count : record.text_length);
}

doppel_status dp_read_part(doppel_engine *engine, dp_worker *worker, const dp_look *look, dp_part part, uint64_t number,
                           doppel_slice *bytes, doppel_error *error) {
    const dp_pending *pending = look->deciding ? dp_commit_find(engine, number) : NULL;
    atomic_fetch_add_explicit(&engine->counters.reads[part], 1, memory_order_relaxed);
    if (pending) {
        *bytes = pending->change.part[part];
        return DOPPEL_OK;
    }
    doppel_error why = {0};
    doppel_status status = dp_view_get(worker->view, part, number, bytes, &why);
    if (status == DOPPEL_ERROR_STORE) {
        *bytes = (doppel_slice){NULL, 0};
        status = dp_engine_damage(engine, 1, &why, error);
        return look->salvage ? DOPPEL_OK : status;
    }
    if (status == DOPPEL_OK && !bytes->data && is_missing(worker, part, number))
        return nonsense(engine, look,
                        part == DP_PART_RECORD ? "record"
                        : part == DP_PART_SET  ? "set"
                                               : "text",
                        number, "is missing", error);
    if (status != DOPPEL_OK && error)
        *error = why;
    return status;
}

doppel_status dp_read_trace(doppel_engine *engine, dp_worker *worker, const dp_look *look, uint64_t number,
                            dp_trace *trace, bool *found, doppel_error *error) {
    doppel_slice bytes;
    doppel_status status = dp_read_part(engine, worker, look, DP_PART_TRACE, number, &bytes, error);
    *found = status == DOPPEL_OK && bytes.data && dp_trace_decode(bytes, trace);
    if (status == DOPPEL_OK && bytes.data && !*found)
        status = nonsense(engine, look, "trace", number, "makes no sense", error);
    return status;
}

doppel_status dp_read_record(doppel_engine *engine, dp_worker *worker, const dp_look *look, uint64_t number,
                             dp_record *record, bool *found, doppel_error *error) {
    doppel_slice bytes;
    doppel_status status = dp_read_part(engine, worker, look, DP_PART_RECORD, number, &bytes, error);
    *found = status == DOPPEL_OK && bytes.data && dp_record_decode(bytes, record);
    if (status == DOPPEL_OK && bytes.data && !*found)
        status = nonsense(engine, look, "record", number, "makes no sense", error);
    return status;
}

doppel_status dp_read_set(doppel_engine *engine, dp_worker *worker, const dp_look *look, uint64_t number,
                          const uint64_t **set, size_t *count, doppel_error *error) {
    doppel_slice bytes;
    doppel_status status = dp_read_part(engine, worker, look, DP_PART_SET, number, &bytes, error);
    *set = NULL;
    *count = 0;
    if (status != DOPPEL_OK || !bytes.data)
        return status;
    *count = bytes.length / sizeof **set;
    if (!dp_reserve(&worker->set, &worker->set_room, *count + 1, sizeof *worker->set))
        return dp_no_memory(error);
    for (size_t i = 0; i < *count; i++)
        worker->set[i] = dp_load64(bytes.data + 8 * i);
    *set = worker->set;
    return DOPPEL_OK;
}

doppel_status dp_read_sample(doppel_engine *engine, dp_worker *worker, const dp_look *look, uint64_t number,
                             doppel_slice *sample, doppel_error *error) {
    doppel_status status = dp_read_part(engine, worker, look, DP_PART_SET, number, sample, error);
    if (status != DOPPEL_OK || !sample->data || dp_bottom_is_valid(*sample))
        return status;
    *sample = (doppel_slice){NULL, 0};
    return nonsense(engine, look, "sample", number, "makes no sense", error);
}
