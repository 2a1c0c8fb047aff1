/* stored.c - documents as they are remembered: everything that is known of a number, copied out of the store into a
 * list. */
#include "engine/engine.h"

typedef struct reading {
    dp_worker *worker;
    dp_look *look; /* the worker's */
    uint64_t number;
    doppel_stored_list *list;
    doppel_stored *to;
    doppel_error *error;
} reading;

/* The URLs of the copies that are linked to it. */
static doppel_status read_aliases(reading *r) {
    uint64_t few[64], *links = few;
    size_t found = 0;
    doppel_status status = dp_look_links(r->look, r->number, few, 64, &found, r->error);
    if (status != DOPPEL_OK || !found)
        return status;
    if (found > 64) {
        if (!(links = dp_stored_take(r->list, found * sizeof *links)))
            return dp_no_memory(r->error);
        status = dp_look_links(r->look, r->number, links, found, &found, r->error);
    }
    doppel_slice *aliases = dp_stored_take(r->list, found * sizeof *aliases);
    if (!aliases)
        return dp_no_memory(r->error);
    r->to->aliases = aliases;
    for (size_t i = 0; i < found && status == DOPPEL_OK; i++) {
        dp_record record;
        bool there = false;
        status = dp_look_alive(r->look, links[i], &there, r->error);
        if (status == DOPPEL_OK && there)
            status = dp_look_record(r->look, links[i], &record, &there, r->error);
        if (status == DOPPEL_OK && there && record.url.length &&
            !dp_stored_copy(r->list, record.url, &aliases[r->to->alias_count++]))
            status = dp_no_memory(r->error);
    }
    return status;
}

static doppel_status read_text(reading *r, uint64_t length) {
    doppel_slice packed;
    doppel_status status = dp_look_read(r->look, DP_PART_TEXT, r->number, &packed, r->error);
    if (status != DOPPEL_OK || !packed.data)
        return status;
    return dp_stored_unpack(r->list, packed, length, &r->to->text) ? DOPPEL_OK : dp_no_memory(r->error);
}

/* A sample, with the keys of its bands: their number, each, the sample. */
static doppel_status read_sample(reading *r, const dp_trace *trace) {
    doppel_slice sample;
    doppel_status status = dp_read_sample(r->worker, r->number, &sample, r->error);
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
    doppel_status status = dp_read_set(r->worker, r->number, &set, &count, r->error);
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
    doppel_status status = dp_look_trace(r->look, r->number, &trace, found, r->error);
    if (status == DOPPEL_OK && *found && !dp_trace_is_kept(&trace))
        *found = false;
    if (status == DOPPEL_OK && *found)
        status = dp_look_record(r->look, r->number, &record, found, r->error);
    if (status != DOPPEL_OK || !*found)
        return status;
    dp_counts counts;
    bool there = true;
    *r->to = dp_stored_of(&trace, &record);
    if (trace.kind == DP_TRACE_COPY)
        status = dp_look_alive(r->look, trace.of, &there, r->error);
    r->to->original_gone = !there;
    if (status == DOPPEL_OK && !dp_stored_name(r->list, &record, r->to))
        return dp_no_memory(r->error);
    if (status == DOPPEL_OK)
        status = dp_look_counts(r->look, r->number, &counts, r->error);
    if (status == DOPPEL_OK)
        dp_stored_count(&counts, r->to);
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

doppel_status dp_stored_add(dp_worker *worker, uint64_t number, dp_wanted wanted, doppel_stored_list *list, bool *found,
                            doppel_error *error) {
    reading r = {.worker = worker, .look = worker->look, .number = number, .list = list, .error = error};
    bool there;
    *found = false;
    if (!(r.to = dp_stored_next(list)))
        return dp_no_memory(error);
    doppel_status status = dp_look_alive(r.look, number, &there, error);
    if (status != DOPPEL_OK || !there)
        return status;
    status = read_number(&r, &wanted, found);
    list->count += status == DOPPEL_OK && *found;
    return status;
}
