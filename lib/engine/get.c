/* get.c - documents by id or URL, and all of them. */
#include "engine/engine.h"

/* ---- one ---- */

/* A name as the canonical URL that it may be; the worker's. */
static doppel_status canonical(doppel_engine *engine, dp_worker *worker, doppel_slice name, doppel_slice *url,
                               doppel_error *error) {
    dp_buffer *to = &worker->packed;
    if (!dp_reserve(&to->data, &to->capacity, 3 * name.length + 64, 1))
        return dp_no_memory(error);
    doppel_status status = doppel_url_canonical(name.data, name.length, NULL, engine->options.url_without, to->data,
                                                to->capacity, &to->size);
    *url = (doppel_slice){to->data, to->size};
    return status == DOPPEL_OK ? status : dp_fail(error, status, "%s", doppel_status_name(status));
}

doppel_status dp_engine_resolve(doppel_engine *engine, dp_worker *worker, doppel_slice name, uint64_t *number,
                                doppel_error *error) {
    doppel_slice url;
    doppel_status status = dp_find_id(worker, name, number, error);
    if (status != DOPPEL_OK || *number || !name.length)
        return status;
    status = canonical(engine, worker, name, &url, error);
    return status == DOPPEL_OK ? dp_find_url(worker, url, number, error) : status;
}

doppel_status doppel_engine_get(doppel_engine *engine, const char *id_or_url, size_t length, doppel_stored_list *list,
                                doppel_error *error) {
    dp_worker *worker;
    dp_stored_list_clear(list);
    doppel_status status = dp_worker_take(engine, &worker, error);
    if (status != DOPPEL_OK)
        return status;
    do {
        uint64_t number = 0;
        bool found;
        dp_stored_list_clear(list);
        status = dp_look_begin(worker->look, DP_LOOK_READ, error);
        if (status != DOPPEL_OK)
            break;
        status = dp_engine_resolve(engine, worker, (doppel_slice){id_or_url, length}, &number, error);
        if (status == DOPPEL_OK && number)
            status = dp_stored_add(worker, number, (dp_wanted){.text = true, .set = true}, list, &found, error);
        (void)dp_look_end(worker->look, NULL);
    } while (status == DOPPEL_OK && !list->count && dp_look_again(worker->look));
    dp_worker_give(engine, worker);
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

/* Reads the next documents from `*from` on, in a look that has begun. */
static doppel_status read_chunk(dp_worker *worker, uint64_t *from, chunk *c, doppel_stored_list *list,
                                doppel_error *error) {
    const dp_wanted wanted = {.text = true, .set = true};
    const dp_each each = {
        .part = DP_PART_TRACE, .from = *from, .to = UINT64_MAX, .value = on_number, .damaged = on_damaged, .user = c};
    c->count = 0;
    worker->look->salvage = true;
    doppel_status status = dp_look_each(worker->look, &each, error);
    if (status == DOPPEL_ERROR_INTERRUPTED)
        status = DOPPEL_OK;
    for (size_t i = 0; i < c->count && status == DOPPEL_OK; i++) {
        bool found, alive = false;
        status = dp_stored_add(worker, c->number[i], wanted, list, &found, error);
        if (status == DOPPEL_OK && !found)
            status = dp_look_alive(worker->look, c->number[i], &alive, error);
        c->damaged += alive; /* it is there, but its record cannot be read */
        *from = c->number[i] + 1;
    }
    return status;
}

doppel_status doppel_engine_each(doppel_engine *engine, bool (*document)(const doppel_stored *stored, void *user),
                                 void *user, uint64_t *damaged, doppel_error *error) {
    chunk c = {.count = CHUNK};
    uint64_t from = 1;
    doppel_stored_list list = {0};
    doppel_status status = dp_known_flush(engine->known, error);
    while (status == DOPPEL_OK && c.count == CHUNK) {
        dp_worker *worker;
        dp_stored_list_clear(&list);
        if ((status = dp_worker_take(engine, &worker, error)) != DOPPEL_OK)
            break;
        status = dp_look_begin(worker->look, DP_LOOK_LIST, error);
        if (status == DOPPEL_OK) {
            status = read_chunk(worker, &from, &c, &list, error);
            (void)dp_look_end(worker->look, NULL);
        }
        dp_worker_give(engine, worker);
        for (size_t i = 0; i < list.count && status == DOPPEL_OK; i++)
            if (!document(&list.stored[i], user))
                status = dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    }
    doppel_stored_list_free(&list);
    if (damaged)
        *damaged = c.damaged;
    return status;
}
