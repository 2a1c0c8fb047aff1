/* get.c - documents by id or URL, all of them, and those with the most copies. */
#include "engine/engine.h"

#include <stdlib.h>

/* ---- one ---- */

doppel_status dp_engine_resolve(doppel_engine *engine, dp_worker *worker, const dp_look *look, doppel_slice name,
                                uint64_t *number, doppel_error *error) {
    dp_buffer *url = &worker->packed;
    doppel_status status = dp_find_id(engine, worker, name, look, number, error);
    if (status != DOPPEL_OK || *number || !name.length)
        return status;
    if (!dp_reserve(&url->data, &url->capacity, 3 * name.length + 64, 1))
        return dp_no_memory(error);
    status = doppel_url_canonical(name.data, name.length, NULL, engine->options.url_without, url->data, url->capacity,
                                  &url->size);
    if (status != DOPPEL_OK)
        return dp_fail(error, status, "%s", doppel_status_name(status));
    return dp_find_url(engine, worker, (doppel_slice){url->data, url->size}, look, number, error);
}

doppel_status doppel_engine_get(doppel_engine *engine, const char *id_or_url, size_t length, doppel_stored_list *list,
                                doppel_error *error) {
    dp_look look;
    const dp_wanted wanted = {.look = &look, .text = true, .set = true};
    dp_worker *worker;
    uint64_t number = 0;
    bool found;
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
    if (!whole || trace.kind >= DP_TRACE_REMOVAL)
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
    const dp_look look = {.below = UINT64_MAX, .now = dp_engine_now(engine)};
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

/* ---- groups ---- */

typedef struct group {
    uint64_t number, duplicates;
} group;

/* The largest groups so far, as a heap with the smallest on top. */
typedef struct largest {
    doppel_engine *engine;
    uint64_t now;
    group *group;
    size_t count, room;
} largest;

/* Whether a group comes behind another: fewer duplicates, then the higher number. */
static bool is_less(const group *a, const group *b) {
    return a->duplicates != b->duplicates ? a->duplicates < b->duplicates : a->number > b->number;
}

static void sift_down(largest *l) {
    for (size_t i = 0, child; (child = 2 * i + 1) < l->count; i = child) {
        if (child + 1 < l->count && is_less(&l->group[child + 1], &l->group[child]))
            child++;
        if (!is_less(&l->group[child], &l->group[i]))
            return;
        group kept = l->group[i];
        l->group[i] = l->group[child];
        l->group[child] = kept;
    }
}

static void add_up(largest *l, group one) {
    size_t i = l->count++;
    for (; i && is_less(&one, &l->group[(i - 1) / 2]); i = (i - 1) / 2)
        l->group[i] = l->group[(i - 1) / 2];
    l->group[i] = one;
}

static doppel_status on_count(uint64_t number, const dp_counts *counts, void *user) {
    largest *l = user;
    group one = {number, counts->by[0] + counts->by[1] + counts->by[2]};
    if (!dp_known_alive(l->engine->known, number, l->now))
        return DOPPEL_OK;
    if (l->count < l->room) {
        add_up(l, one);
    } else if (l->room && is_less(&l->group[0], &one)) {
        l->group[0] = one;
        sift_down(l);
    }
    return DOPPEL_OK;
}

static int compare_groups(const void *a, const void *b) {
    return is_less(a, b) ? 1 : -1;
}

doppel_status doppel_engine_groups(doppel_engine *engine, uint64_t limit, doppel_stored_list *list,
                                   doppel_error *error) {
    const dp_look look = {.below = UINT64_MAX, .now = dp_engine_now(engine)};
    const dp_wanted wanted = {.look = &look};
    dp_worker *worker;
    dp_stored_list_clear(list);
    doppel_status status = dp_engine_flush(engine, error);
    if (status == DOPPEL_OK)
        status = dp_engine_enter(engine, &worker, error);
    if (status != DOPPEL_OK)
        return status;
    largest l = {.engine = engine, .now = look.now, .room = limit < 1U << 20 ? (size_t)limit : 1U << 20};
    if (!(l.group = calloc(l.room + 1, sizeof *l.group)))
        status = dp_no_memory(error);
    if (status == DOPPEL_OK)
        status = dp_view_begin(worker->view, error);
    if (status == DOPPEL_OK) {
        status = dp_view_each_count(worker->view, on_count, &l, error);
        qsort(l.group, l.count, sizeof *l.group, compare_groups);
        bool found;
        for (size_t i = 0; i < l.count && status == DOPPEL_OK; i++)
            status = dp_stored_add(engine, worker, l.group[i].number, &wanted, list, &found, error);
        dp_view_end(worker->view);
    }
    free(l.group);
    dp_engine_leave(engine, worker);
    return status;
}
