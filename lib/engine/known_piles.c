/* known_piles.c - titles that wait to be loaded.
 *
 * Owners of a title are best added in the order of their numbers. Titles come in that order, but on several threads: so
 * those of one pile whose numbers differ in the lowest bits only are a stretch, and stretches of all piles are sorted.
 */
#include "engine/known_parts.h"

#include <stdlib.h>

enum { STRETCH_BITS = 12 };

void dp_title_pile_free(dp_title_pile *pile) {
    dp_buffer_free(&pile->titles);
    free(pile->stretch);
    *pile = (dp_title_pile){0};
}

bool dp_title_pile_add(dp_title_pile *pile, doppel_slice title, uint64_t number) {
    dp_title_stretch *last = pile->count ? &pile->stretch[pile->count - 1] : NULL;
    if (!last || last->number >> STRETCH_BITS != number >> STRETCH_BITS) {
        if (!dp_reserve(&pile->stretch, &pile->room, pile->count + 1, sizeof *pile->stretch))
            return false;
        last = &pile->stretch[pile->count++];
        *last = (dp_title_stretch){.number = number, .start = pile->titles.size, .end = pile->titles.size};
    }
    uint64_t head[2] = {number, title.length};
    bool added =
        dp_buffer_add(&pile->titles, head, sizeof head) && dp_buffer_add(&pile->titles, title.data, title.length);
    if (added)
        last->end = pile->titles.size;
    return added;
}

static int compare_stretches(const void *first, const void *second) {
    const dp_title_stretch *a = first, *b = second;
    return a->number < b->number ? -1 : a->number > b->number;
}

static doppel_status add_stretch(dp_titles_index *index, const dp_title_stretch *s) {
    doppel_status status = DOPPEL_OK;
    for (const char *at = s->titles + s->start, *end = s->titles + s->end; at < end && status == DOPPEL_OK;) {
        uint64_t head[2];
        memcpy(head, at, sizeof head);
        at += sizeof head;
        status = dp_titles_index_add(index, at, (size_t)head[1], head[0]);
        at += (size_t)head[1];
    }
    return status;
}

doppel_status dp_title_piles_load(dp_titles_index *index, dp_title_pile *const *piles, size_t count) {
    size_t stretches = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        stretches += piles[i]->count;
    dp_title_stretch *all = malloc((stretches + 1) * sizeof *all);
    if (!all)
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < piles[i]->count; j++) {
            all[at] = piles[i]->stretch[j];
            all[at++].titles = piles[i]->titles.data;
        }
    qsort(all, stretches, sizeof *all, compare_stretches);
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < stretches && status == DOPPEL_OK; i++)
        status = add_stretch(index, &all[i]);
    free(all);
    return status;
}
