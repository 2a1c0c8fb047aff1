/* stored.c - documents as they are remembered: everything that is known of a number, copied out of the store into a
 * list. */
#include "engine/engine.h"

typedef struct reading {
    doppel_engine *engine;
    dp_worker *worker;
    dp_look look;
    uint64_t number;
    doppel_stored_list *list;
    doppel_stored *to;
    doppel_error *error;
} reading;

/* Damage is passed over where everything else is to be saved. */
static doppel_status after_damage(const reading *r, doppel_status status, const doppel_error *why) {
    if (status == DOPPEL_ERROR_STORE) {
        status = dp_engine_damage(r->engine, 1, why, r->error);
        return r->look.salvage ? DOPPEL_OK : status;
    }
    if (status != DOPPEL_OK && r->error)
        *r->error = *why;
    return status;
}

/* The URLs of the copies that are linked to it. */
static doppel_status read_aliases(reading *r) {
    uint64_t few[64], *links = few;
    size_t found = 0;
    doppel_error why = {0};
    doppel_status status = dp_view_links(r->worker->view, r->number, few, 64, &found, &why);
    if (status != DOPPEL_OK || !found)
        return after_damage(r, status, &why);
    if (found > 64) {
        if (!(links = dp_stored_take(r->list, found * sizeof *links)))
            return dp_no_memory(r->error);
        status = dp_view_links(r->worker->view, r->number, links, found, &found, r->error);
    }
    doppel_slice *aliases = dp_stored_take(r->list, found * sizeof *aliases);
    if (!aliases)
        return dp_no_memory(r->error);
    r->to->aliases = aliases;
    for (size_t i = 0; i < found && status == DOPPEL_OK; i++) {
        dp_record record;
        bool there = false;
        if (dp_look_alive(r->engine, &r->look, links[i]))
            status = dp_read_record(r->engine, r->worker, &r->look, links[i], &record, &there, r->error);
        if (status == DOPPEL_OK && there && record.url.length &&
            !dp_stored_copy(r->list, record.url, &aliases[r->to->alias_count++]))
            status = dp_no_memory(r->error);
    }
    return status;
}

static doppel_status read_text(reading *r, uint64_t length) {
    doppel_slice packed;
    doppel_status status = dp_read_part(r->engine, r->worker, &r->look, DP_PART_TEXT, r->number, &packed, r->error);
    if (status != DOPPEL_OK || !packed.data)
        return status;
    return dp_stored_unpack(r->list, packed, length, &r->to->text) ? DOPPEL_OK : dp_no_memory(r->error);
}

/* A sample, with the keys of its bands: their number, each, the sample. */
static doppel_status read_sample(reading *r, const dp_trace *trace) {
    doppel_slice sample;
    doppel_status status = dp_read_sample(r->engine, r->worker, &r->look, r->number, &sample, r->error);
    size_t head = 1 + 4 * trace->key_count;
    if (status != DOPPEL_OK || !sample.data)
        return status;
    char *kept = dp_stored_take(r->list, head + sample.length);
    if (!kept)
        return dp_no_memory(r->error);
    kept[0] = (char)trace->key_count;
    if (trace->key_count)
        memcpy(kept + 1, trace->keys, 4 * trace->key_count);
    memcpy(kept + head, sample.data, sample.length);
    r->to->sample = (doppel_slice){kept, head + sample.length};
    return DOPPEL_OK;
}

static doppel_status read_set(reading *r) {
    const uint64_t *set;
    size_t count;
    doppel_status status = dp_read_set(r->engine, r->worker, &r->look, r->number, &set, &count, r->error);
    if (status != DOPPEL_OK || !set)
        return status;
    uint64_t *kept = dp_stored_take(r->list, count * sizeof *kept);
    if (!kept)
        return dp_no_memory(r->error);
    memcpy(kept, set, count * sizeof *kept);
    r->to->set = kept;
    r->to->set_count = count;
    return DOPPEL_OK;
}

static doppel_status read_number(reading *r, const dp_wanted *wanted, bool *found) {
    dp_trace trace;
    dp_record record;
    doppel_status status = dp_read_trace(r->engine, r->worker, &r->look, r->number, &trace, found, r->error);
    if (status == DOPPEL_OK && *found && !dp_trace_is_kept(&trace))
        *found = false;
    if (status == DOPPEL_OK && *found)
        status = dp_read_record(r->engine, r->worker, &r->look, r->number, &record, found, r->error);
    if (status != DOPPEL_OK || !*found)
        return status;
    dp_counts counts;
    *r->to = dp_stored_of(&trace, &record);
    r->to->original_gone = trace.kind == DP_TRACE_COPY && !dp_look_alive(r->engine, &r->look, trace.of);
    if (!dp_stored_name(r->list, &record, r->to))
        return dp_no_memory(r->error);
    doppel_error why = {0};
    status = dp_view_counts(r->worker->view, r->number, &counts, &why);
    if (status == DOPPEL_OK)
        dp_stored_count(&counts, r->to);
    status = after_damage(r, status, &why);
    if (status == DOPPEL_OK)
        status = read_aliases(r);
    if (status == DOPPEL_OK && wanted->text && record.text_length)
        status = read_text(r, record.text_length);
    if (record.sampled)
        r->to->set_count = record.set_count;
    if (status == DOPPEL_OK && wanted->set && record.set_count)
        status = record.sampled ? read_sample(r, &trace) : read_set(r);
    return status;
}

doppel_status dp_stored_add(doppel_engine *engine, dp_worker *worker, uint64_t number, const dp_wanted *wanted,
                            doppel_stored_list *list, bool *found, doppel_error *error) {
    reading r = {.engine = engine, .worker = worker, .number = number, .list = list, .error = error};
    r.look = *wanted->look;
    *found = false;
    if (!(r.to = dp_stored_next(list)))
        return dp_no_memory(error);
    if (!dp_look_alive(engine, &r.look, number))
        return DOPPEL_OK;
    doppel_status status = read_number(&r, wanted, found);
    list->count += status == DOPPEL_OK && *found;
    return status;
}
