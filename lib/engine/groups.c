/* groups.c - the originals with the most copies: a heap over all that were counted. */
#include "engine/over.h"

#include <stdlib.h>

/* Whether a group comes behind another: fewer duplicates, then the higher number. */
static bool is_less(const dp_group_size *a, const dp_group_size *b) {
    return a->duplicates != b->duplicates ? a->duplicates < b->duplicates : a->number > b->number;
}

static void sift_down(dp_largest *l) {
    for (size_t i = 0, child; (child = 2 * i + 1) < l->count; i = child) {
        if (child + 1 < l->count && is_less(&l->group[child + 1], &l->group[child]))
            child++;
        if (!is_less(&l->group[child], &l->group[i]))
            return;
        dp_group_size kept = l->group[i];
        l->group[i] = l->group[child];
        l->group[child] = kept;
    }
}

static void add_up(dp_largest *l, dp_group_size one) {
    size_t i = l->count++;
    for (; i && is_less(&one, &l->group[(i - 1) / 2]); i = (i - 1) / 2)
        l->group[i] = l->group[(i - 1) / 2];
    l->group[i] = one;
}

void dp_largest_add(dp_largest *l, uint64_t number, const dp_counts *counts) {
    dp_group_size one = {number, counts->by[0] + counts->by[1] + counts->by[2]};
    if (l->count < l->room) {
        add_up(l, one);
    } else if (l->room && is_less(&l->group[0], &one)) {
        l->group[0] = one;
        sift_down(l);
    }
}

static int compare_groups(const void *a, const void *b) {
    return is_less(a, b) ? 1 : -1;
}

void dp_largest_sort(dp_largest *l) {
    qsort(l->group, l->count, sizeof *l->group, compare_groups);
}

bool dp_largest_init(dp_largest *l, uint64_t limit) {
    *l = (dp_largest){.room = limit < 1U << 20 ? (size_t)limit : 1U << 20};
    l->group = calloc(l->room + 1, sizeof *l->group);
    return l->group;
}

void dp_largest_free(dp_largest *l) {
    free(l->group);
}

/* ---- of a folder ---- */

typedef struct counting {
    doppel_engine *engine;
    uint64_t now;
    dp_largest largest;
} counting;

static doppel_status on_count(uint64_t number, const dp_counts *counts, void *user) {
    counting *c = user;
    if (dp_known_alive(c->engine->known, number, c->now))
        dp_largest_add(&c->largest, number, counts);
    return DOPPEL_OK;
}

doppel_status doppel_engine_groups(doppel_engine *engine, uint64_t limit, doppel_stored_list *list,
                                   doppel_error *error) {
    const dp_look look = {.below = UINT64_MAX, .now = dp_engine_now(engine)};
    const dp_wanted wanted = {.look = &look};
    counting c = {.engine = engine, .now = look.now};
    dp_worker *worker;
    bool found;
    if (engine->shared)
        return dp_over_groups(engine, limit, list, error);
    dp_stored_list_clear(list);
    doppel_status status = dp_engine_flush(engine, error);
    if (status == DOPPEL_OK)
        status = dp_engine_enter(engine, &worker, error);
    if (status != DOPPEL_OK)
        return status;
    if (!dp_largest_init(&c.largest, limit))
        status = dp_no_memory(error);
    if (status == DOPPEL_OK)
        status = dp_view_begin(worker->view, error);
    if (status == DOPPEL_OK) {
        doppel_error why = {0};
        status = dp_view_each_count(worker->view, on_count, &c, &why);
        if (status == DOPPEL_ERROR_STORE)
            status = dp_engine_damage(engine, 1, &why, error);
        else if (status != DOPPEL_OK && error)
            *error = why;
        dp_largest_sort(&c.largest);
        for (size_t i = 0; i < c.largest.count && status == DOPPEL_OK; i++)
            status = dp_stored_add(engine, worker, c.largest.group[i].number, &wanted, list, &found, error);
        dp_view_end(worker->view);
    }
    dp_largest_free(&c.largest);
    dp_engine_leave(engine, worker);
    return status;
}
