/* get.c - documents by id or URL, and all of them. */
#include "engine/over.h"

/* ---- one ---- */

doppel_status dp_engine_canonical(doppel_engine *engine, dp_worker *worker, doppel_slice name, doppel_slice *url,
                                  doppel_error *error) {
    dp_buffer *to = &worker->packed;
    if (!dp_reserve(&to->data, &to->capacity, 3 * name.length + 64, 1))
        return dp_no_memory(error);
    doppel_status status = doppel_url_canonical(name.data, name.length, NULL, engine->options.url_without, to->data,
                                                to->capacity, &to->size);
    *url = (doppel_slice){to->data, to->size};
    return status == DOPPEL_OK ? status : dp_fail(error, status, "%s", doppel_status_name(status));
}

doppel_status dp_engine_resolve(doppel_engine *engine, dp_worker *worker, const dp_look *look, doppel_slice name,
                                uint64_t *number, doppel_error *error) {
    doppel_slice url;
    doppel_status status = dp_find_id(engine, worker, name, look, number, error);
    if (status != DOPPEL_OK || *number || !name.length)
        return status;
    status = dp_engine_canonical(engine, worker, name, &url, error);
    return status == DOPPEL_OK ? dp_find_url(engine, worker, url, look, number, error) : status;
}

doppel_status doppel_engine_get(doppel_engine *engine, const char *id_or_url, size_t length, doppel_stored_list *list,
                                doppel_error *error) {
    dp_look look;
    const dp_wanted wanted = {.look = &look, .text = true, .set = true};
    dp_worker *worker;
    uint64_t number = 0;
    bool found;
    if (engine->shared)
        return dp_over_get(engine, (doppel_slice){id_or_url, length}, list, error);
    dp_stored_list_clear(list);
    doppel_status status = dp_engine_enter(engine, &worker, error);
    if (status != DOPPEL_OK)
        return status;
    do {
        dp_stored_list_clear(list);
        status = dp_look_begin(engine, worker, &look, error);
        if (status != DOPPEL_OK)
            break;
        status = dp_engine_resolve(engine, worker, &look, (doppel_slice){id_or_url, length}, &number, error);
        if (status == DOPPEL_OK && number)
            status = dp_stored_add(engine, worker, number, &wanted, list, &found, error);
        dp_look_end(engine, worker, &look);
    } while (status == DOPPEL_OK && !list->count && dp_look_again(engine, &look));
    dp_engine_leave(engine, worker);
    return status;
}

/* ---- all ---- */

/* So many are read at a time, so that whoever is given them may take his time. */
enum { CHUNK = 256 };

typedef struct chunk {
    uint64_t number[CHUNK];
    size_t count;
    uint64_t damaged;
} chunk;

static doppel_status on_number(uint64_t number, doppel_slice bytes, void *user) {
    chunk *c = user;
    dp_trace trace;
    bool whole = dp_trace_decode(bytes, &trace);
    c->damaged += !whole;
    if (!whole || !dp_trace_is_kept(&trace))
        return DOPPEL_OK;
    c->number[c->count++] = number;
    return c->count < CHUNK ? DOPPEL_OK : DOPPEL_ERROR_INTERRUPTED;
}

static void on_damaged(uint64_t number, void *user) {
    chunk *c = user;
    (void)number;
    c->damaged++;
}

/* Reads the next documents from `*from` on, in a view that has begun. */
static doppel_status read_chunk(doppel_engine *engine, dp_worker *worker, uint64_t *from, chunk *c,
                                doppel_stored_list *list, doppel_error *error) {
    const dp_look look = {.below = UINT64_MAX, .now = dp_engine_now(engine), .salvage = true};
    const dp_wanted wanted = {.look = &look, .text = true, .set = true};
    const dp_each each = {
        .part = DP_PART_TRACE, .from = *from, .to = UINT64_MAX, .value = on_number, .damaged = on_damaged, .user = c};
    c->count = 0;
    doppel_status status = dp_view_each(worker->view, &each, error);
    if (status == DOPPEL_ERROR_INTERRUPTED)
        status = DOPPEL_OK;
    for (size_t i = 0; i < c->count && status == DOPPEL_OK; i++) {
        bool found;
        status = dp_stored_add(engine, worker, c->number[i], &wanted, list, &found, error);
        /* It is known, but its record cannot be read. */
        c->damaged += status == DOPPEL_OK && !found && dp_known_alive(engine->known, c->number[i], look.now);
        *from = c->number[i] + 1;
    }
    return status;
}

doppel_status doppel_engine_each(doppel_engine *engine, bool (*document)(const doppel_stored *stored, void *user),
                                 void *user, uint64_t *damaged, doppel_error *error) {
    chunk c = {.count = CHUNK};
    uint64_t from = 1;
    if (engine->shared)
        return dp_over_each(engine, document, user, damaged, error);
    doppel_status status = dp_engine_flush(engine, error);
    doppel_stored_list list = {0};
    while (status == DOPPEL_OK && c.count == CHUNK) {
        dp_worker *worker;
        dp_stored_list_clear(&list);
        if ((status = dp_engine_enter(engine, &worker, error)) != DOPPEL_OK)
            break;
        status = dp_view_begin(worker->view, error);
        if (status == DOPPEL_OK) {
            status = read_chunk(engine, worker, &from, &c, &list, error);
            dp_view_end(worker->view);
        }
        dp_engine_leave(engine, worker);
        for (size_t i = 0; i < list.count && status == DOPPEL_OK; i++)
            if (!document(&list.stored[i], user))
                status = dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    }
    doppel_stored_list_free(&list);
    if (damaged)
        *damaged = c.damaged;
    return status;
}
