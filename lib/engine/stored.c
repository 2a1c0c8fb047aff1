/* stored.c - lists of documents as they are remembered: everything that is known of a number, copied out of the store
 * into blocks that belong to the list. */
#include "engine/engine.h"

#include <math.h>
#include <stdlib.h>
#include <zstd.h>

/* Blocks of so many bytes, or of what is needed at once. */
enum { BLOCK = 16384 };

typedef struct block {
    struct block *next;
    size_t used, room;
    char bytes[];
} block;

typedef struct held {
    block *blocks;
    size_t stored_room;
} held;

/* Memory of the list, on a multiple of 8; NULL: there is none. */
static void *take(doppel_stored_list *list, size_t length) {
    held *h = list->held;
    if (!h && !(list->held = h = calloc(1, sizeof *h)))
        return NULL;
    length = (length + 8) & ~(size_t)7;
    if (!h->blocks || h->blocks->room - h->blocks->used < length) {
        size_t room = length > BLOCK ? length : BLOCK;
        block *made = malloc(sizeof *made + room);
        if (!made)
            return NULL;
        *made = (block){.next = h->blocks, .room = room};
        h->blocks = made;
    }
    h->blocks->used += length;
    return h->blocks->bytes + h->blocks->used - length;
}

static bool copy(doppel_stored_list *list, doppel_slice from, doppel_slice *to) {
    *to = (doppel_slice){NULL, 0};
    if (!from.data)
        return true;
    char *bytes = take(list, from.length);
    if (!bytes)
        return false;
    memcpy(bytes, from.data, from.length);
    *to = (doppel_slice){bytes, from.length};
    return true;
}

static void free_blocks(held *h, block *until) {
    for (block *b = h->blocks, *next; b && b != until; b = next) {
        next = b->next;
        free(b);
    }
    h->blocks = until;
}

void dp_stored_list_clear(doppel_stored_list *list) {
    list->count = 0;
    if (list->held)
        free_blocks(list->held, NULL);
}

void doppel_stored_list_free(doppel_stored_list *list) {
    if (!list)
        return;
    dp_stored_list_clear(list);
    free(list->held);
    free(list->stored);
    *list = (doppel_stored_list){0};
}

/* ---- what is read ---- */

typedef struct reading {
    doppel_engine *engine;
    dp_worker *worker;
    dp_look look;
    uint64_t number;
    doppel_stored_list *list;
    doppel_stored *to;
    doppel_error *error;
} reading;

/* The URLs of the copies that are linked to it. */
static doppel_status read_aliases(reading *r) {
    uint64_t few[64], *links = few;
    size_t found = 0;
    doppel_status status = dp_view_links(r->worker->view, r->number, few, 64, &found, r->error);
    if (status != DOPPEL_OK || !found)
        return status;
    if (found > 64) {
        if (!(links = take(r->list, found * sizeof *links)))
            return dp_no_memory(r->error);
        status = dp_view_links(r->worker->view, r->number, links, found, &found, r->error);
    }
    doppel_slice *aliases = take(r->list, found * sizeof *aliases);
    if (!aliases)
        return dp_no_memory(r->error);
    r->to->aliases = aliases;
    for (size_t i = 0; i < found && status == DOPPEL_OK; i++) {
        dp_record record;
        bool there = false;
        if (dp_look_alive(r->engine, &r->look, links[i]))
            status = dp_read_record(r->engine, r->worker, &r->look, links[i], &record, &there, r->error);
        if (status == DOPPEL_OK && there && record.url.length &&
            !copy(r->list, record.url, &aliases[r->to->alias_count++]))
            status = dp_no_memory(r->error);
    }
    return status;
}

static doppel_status read_text(reading *r, uint64_t length) {
    doppel_slice packed;
    doppel_status status = dp_read_part(r->engine, r->worker, &r->look, DP_PART_TEXT, r->number, &packed, r->error);
    if (status != DOPPEL_OK || !packed.data)
        return status;
    char *text = take(r->list, length);
    if (!text)
        return dp_no_memory(r->error);
    size_t size = ZSTD_decompress(text, length, packed.data, packed.length);
    if (!ZSTD_isError(size))
        r->to->text = (doppel_slice){text, size};
    return DOPPEL_OK;
}

static doppel_status read_set(reading *r) {
    const uint64_t *set;
    size_t count;
    doppel_status status = dp_read_set(r->engine, r->worker, &r->look, r->number, &set, &count, r->error);
    if (status != DOPPEL_OK || !set)
        return status;
    uint64_t *kept = take(r->list, count * sizeof *kept);
    if (!kept)
        return dp_no_memory(r->error);
    memcpy(kept, set, count * sizeof *kept);
    r->to->set = kept;
    r->to->set_count = count;
    return DOPPEL_OK;
}

static doppel_status read_counts(reading *r) {
    dp_counts counts;
    doppel_status status = dp_view_counts(r->worker->view, r->number, &counts, r->error);
    if (status != DOPPEL_OK)
        return status;
    for (int i = 0; i < 3; i++) {
        r->to->duplicates_by[i] = counts.by[i];
        r->to->duplicates += counts.by[i];
    }
    r->to->last_duplicate = counts.last;
    return DOPPEL_OK;
}

static bool copy_names(reading *r, const dp_record *record) {
    doppel_stored *to = r->to;
    return copy(r->list, record->id, &to->id) && copy(r->list, record->url, &to->url) &&
           copy(r->list, record->canonical, &to->canonical) && copy(r->list, record->title, &to->title) &&
           copy(r->list, record->fields, &to->fields) && copy(r->list, record->origin, &to->origin) &&
           (!record->reason || copy(r->list, record->original_id, &to->original_id));
}

static doppel_status read_number(reading *r, const dp_wanted *wanted, bool *found) {
    dp_trace trace;
    dp_record record;
    doppel_status status = dp_read_trace(r->engine, r->worker, &r->look, r->number, &trace, found, r->error);
    if (status == DOPPEL_OK && *found && trace.kind >= DP_TRACE_REMOVAL)
        *found = false;
    if (status == DOPPEL_OK && *found)
        status = dp_read_record(r->engine, r->worker, &r->look, r->number, &record, found, r->error);
    if (status != DOPPEL_OK || !*found)
        return status;
    doppel_stored *to = r->to;
    *to =
        (doppel_stored){.number = r->number,
                        .reason = dp_reason_name((dp_reason)record.reason),
                        .evidence = record.reason ? record.evidence : dp_evidence_none(),
                        .added = trace.added,
                        .expires = trace.expires,
                        .words = record.words,
                        .fingerprint = {trace.fingerprint[0], trace.fingerprint[1]},
                        .similarity = NAN,
                        .containment = NAN,
                        .distance = -1,
                        .original_gone = trace.kind == DP_TRACE_COPY && !dp_look_alive(r->engine, &r->look, trace.of)};
    memcpy(to->digest, trace.digest, sizeof to->digest);
    if (!copy_names(r, &record))
        return dp_no_memory(r->error);
    status = read_counts(r);
    if (status == DOPPEL_OK)
        status = read_aliases(r);
    if (status == DOPPEL_OK && wanted->text && record.text_length)
        status = read_text(r, record.text_length);
    if (status == DOPPEL_OK && wanted->set && record.set_count)
        status = read_set(r);
    return status;
}

doppel_status dp_stored_add(doppel_engine *engine, dp_worker *worker, uint64_t number, const dp_wanted *wanted,
                            doppel_stored_list *list, bool *found, doppel_error *error) {
    reading r = {.engine = engine, .worker = worker, .number = number, .list = list, .error = error};
    r.look = *wanted->look;
    *found = false;
    if (!list->held && !take(list, 0))
        return dp_no_memory(error);
    held *h = list->held;
    if (!dp_reserve(&list->stored, &h->stored_room, list->count + 1, sizeof *list->stored))
        return dp_no_memory(error);
    r.to = &list->stored[list->count];
    if (!dp_look_alive(engine, &r.look, number))
        return DOPPEL_OK;
    doppel_status status = read_number(&r, wanted, found);
    list->count += status == DOPPEL_OK && *found;
    return status;
}
