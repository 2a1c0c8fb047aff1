/* groups.c - the originals with the most copies: a heap over all that were counted. */
#include "engine/engine.h"

#include <stdlib.h>

typedef struct group_size {
    uint64_t number, duplicates;
} group_size;

/* The largest groups so far, as a heap with the smallest on top; sorted, the largest first. */
typedef struct largest {
    group_size *group;
    size_t count, room;
} largest;

/* Whether a group comes behind another: fewer duplicates, then the higher number. */
static bool is_less(const group_size *a, const group_size *b) {
    return a->duplicates != b->duplicates ? a->duplicates < b->duplicates : a->number > b->number;
}

static void sift_down(largest *l) {
    for (size_t i = 0, child; (child = 2 * i + 1) < l->count; i = child) {
        if (child + 1 < l->count && is_less(&l->group[child + 1], &l->group[child]))
            child++;
        if (!is_less(&l->group[child], &l->group[i]))
            return;
        group_size kept = l->group[i];
        l->group[i] = l->group[child];
        l->group[child] = kept;
    }
}

static void add_up(largest *l, group_size one) {
    size_t i = l->count++;
    for (; i && is_less(&one, &l->group[(i - 1) / 2]); i = (i - 1) / 2)
        l->group[i] = l->group[(i - 1) / 2];
    l->group[i] = one;
}

static void add_group(largest *l, uint64_t number, const dp_counts *counts) {
    group_size one = {number, counts->by[0] + counts->by[1] + counts->by[2]};
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

/* ---- of an index ---- */

typedef struct counting {
    dp_look *look;
    largest largest;
    doppel_error *error;
} counting;

static doppel_status on_count(uint64_t number, const dp_counts *counts, void *user) {
    counting *c = user;
    bool alive;
    doppel_status status = dp_look_alive(c->look, number, &alive, c->error);
    if (status == DOPPEL_OK && alive)
        add_group(&c->largest, number, counts);
    return status;
}

static doppel_status list_groups(dp_worker *worker, largest *l, doppel_stored_list *list, doppel_error *error) {
    counting c = {.look = worker->look, .largest = *l, .error = error};
    doppel_status status = dp_look_each_count(worker->look, on_count, &c, error);
    *l = c.largest;
    qsort(l->group, l->count, sizeof *l->group, compare_groups);
    for (size_t i = 0; i < l->count && status == DOPPEL_OK; i++) {
        bool found;
        status = dp_stored_add(worker, l->group[i].number, (dp_wanted){0}, list, &found, error);
    }
    return status;
}

doppel_status doppel_engine_groups(doppel_engine *engine, uint64_t limit, doppel_stored_list *list,
                                   doppel_error *error) {
    largest l = {.room = limit < 1U << 20 ? (size_t)limit : 1U << 20};
    dp_worker *worker;
    dp_stored_list_clear(list);
    doppel_status status = dp_known_flush(engine->known, error);
    if (status == DOPPEL_OK)
        status = dp_worker_take(engine, &worker, error);
    if (status != DOPPEL_OK)
        return status;
    if (!(l.group = calloc(l.room + 1, sizeof *l.group)))
        status = dp_no_memory(error);
    if (status == DOPPEL_OK)
        status = dp_look_begin(worker->look, DP_LOOK_LIST, error);
    if (status == DOPPEL_OK) {
        status = list_groups(worker, &l, list, error);
        (void)dp_look_end(worker->look, NULL);
    }
    free(l.group);
    dp_worker_give(engine, worker);
    return status;
}
