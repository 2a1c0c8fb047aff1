/* report_gather.c - figures of a decided batch, its largest groups, and which of their documents to show. */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *report_id(report *r, uint64_t document, size_t *length) {
    *length = doppel_batch_id(r->batch, document, r->id, r->id_room);
    if (*length > r->id_room) {
        char *more = realloc(r->id, *length);
        if (!more)
            return NULL;
        r->id = more;
        r->id_room = *length;
        *length = doppel_batch_id(r->batch, document, r->id, r->id_room);
    }
    return r->id ? r->id : "";
}

static void free_document(shown_document *d) {
    free(d->text);
    free(d->title);
    free(d->url);
}

void report_free(report *r) {
    for (size_t i = 0; i < r->groups; i++) {
        free_document(&r->group[i].kept);
        for (size_t j = 0; j < r->group[i].copies; j++)
            free_document(&r->group[i].copy[j]);
    }
    free(r->group);
    free(r->size);
    free(r->id);
    hosts_free(&r->hosts);
    doppel_batch_free(r->batch);
}

/* ---- figures ---- */

/* Similarities are kept in single precision: 0.8 may come as a little more or less. */
static bool is_identical(const doppel_near *near) {
    return isnan(near->similarity) ? near->distance == 0 : near->similarity > 1 - 1e-6;
}

static size_t step_of(double similarity) {
    double step = floor((similarity + 1e-6) * SIMILARITY_STEPS);
    return step < 0 ? 0 : step >= SIMILARITY_STEPS ? SIMILARITY_STEPS - 1 : (size_t)step;
}

static void count_removed(report_figures *f, const doppel_near *near) {
    f->removed++;
    if (!strcmp(near->reason, "exact_url"))
        f->by_url++;
    else if (!strcmp(near->reason, "title_similarity"))
        f->by_title++;
    else if (is_identical(near))
        f->identical++;
    else
        f->near++;
    if (strcmp(near->reason, "content_hash") != 0)
        return;
    if (near->distance >= 0 && near->distance < DISTANCES)
        f->distance[near->distance]++;
    if (isnan(near->similarity))
        return;
    f->measured++;
    if (!is_identical(near))
        f->similarity[step_of(near->similarity)]++;
}

static void count_all(report *r) {
    report_figures *f = &r->figures;
    uint64_t count = doppel_batch_count(r->batch);
    f->known = r->stats.known;
    f->documents = count - f->known;
    for (uint64_t i = 0; i < count; i++) {
        doppel_near near;
        doppel_batch_get(r->batch, i, &near);
        /* An original in an index is no document of the batch, but is of the group. */
        r->size[near.a] += near.a >= count && !r->size[near.a] ? 2 : 1;
        if (near.a != i)
            count_removed(f, &near);
        else if (i >= f->known)
            f->kept++;
    }
    for (uint64_t i = 0; i < count + r->stats.in_index; i++) {
        if (r->size[i] < 2)
            continue;
        f->groups++;
        f->largest = r->size[i] > f->largest ? r->size[i] : f->largest;
    }
}

/* ---- the largest groups ---- */

/* Puts a group where it belongs: the larger first, then the earlier. */
static void place_group(report *r, uint64_t original) {
    uint32_t size = r->size[original];
    if (r->groups == r->wanted && (!r->wanted || r->group[r->groups - 1].size >= size))
        return;
    size_t at = r->groups < r->wanted ? r->groups++ : r->groups - 1;
    for (; at && r->group[at - 1].size < size; at--)
        r->group[at] = r->group[at - 1];
    r->group[at] = (shown_group){.original = original, .size = size, .least = 1};
    r->group[at].kept.near = (doppel_near){.a = original, .b = original};
}

static shown_group *group_of(report *r, uint64_t original) {
    for (size_t i = 0; i < r->groups; i++)
        if (r->group[i].original == original)
            return &r->group[i];
    return NULL;
}

/* How unlike the kept one a copy is: the greater the rather it is shown. */
static double unlikeness(const doppel_near *near) {
    return isnan(near->similarity) ? near->distance / 64.0 : 1 - near->similarity;
}

static void place_copy(shown_group *g, const doppel_near *near) {
    double own = unlikeness(near);
    size_t at = g->copies;
    for (size_t i = 0; i < g->copies; i++)
        if (unlikeness(&g->copy[i].near) == own && g->copy[i].near.distance == near->distance)
            return;
    if (at == SHOWN_COPIES && unlikeness(&g->copy[--at].near) >= own)
        return;
    g->copies = at + 1;
    for (; at && unlikeness(&g->copy[at - 1].near) < own; at--)
        g->copy[at] = g->copy[at - 1];
    g->copy[at] = (shown_document){.near = *near};
}

static void take_copy(shown_group *g, const doppel_near *near) {
    if (!is_identical(near)) {
        g->least = near->similarity < g->least ? near->similarity : g->least;
        g->most = near->similarity > g->most ? near->similarity : g->most;
        place_copy(g, near);
        return;
    }
    g->identical++;
    if (g->same_count < SHOWN_IDS)
        g->same[g->same_count++] = near->b;
}

static void choose(report *r) {
    uint64_t count = doppel_batch_count(r->batch);
    for (uint64_t i = 0; i < count + r->stats.in_index; i++)
        if (r->size[i] > 1)
            place_group(r, i);
    uint64_t least = r->groups ? r->group[r->groups - 1].size : UINT64_MAX;
    for (uint64_t i = 0; i < count; i++) {
        doppel_near near;
        doppel_batch_get(r->batch, i, &near);
        shown_group *g = near.a != i && r->size[near.a] >= least ? group_of(r, near.a) : NULL;
        if (g)
            take_copy(g, &near);
    }
}

doppel_status report_gather(report *r) {
    uint64_t count = doppel_batch_count(r->batch);
    r->size = calloc(count + r->stats.in_index + 1, sizeof *r->size);
    r->group = calloc(r->wanted + 1, sizeof *r->group);
    if (!r->size || !r->group)
        return DOPPEL_ERROR_MEMORY;
    count_all(r);
    choose(r);
    return DOPPEL_OK;
}
