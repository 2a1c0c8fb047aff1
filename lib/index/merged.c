/* merged.c - writes a merged run: numbers, owners, lists of owners, times. */
#include "index/merged.h"

#include <stdlib.h>

bool dp_merged_init(dp_merged *m, dp_run *run, uint64_t most, bool timed) {
    *m = (dp_merged){.words = run->bits > 64 ? 2 : 1, .run = run, .shared_words = (most + 63) / 64};
    if (!dp_pool_get(run->pool, &run->area[DP_AREA_VALUES], most * (size_t)m->words * 8) ||
        !dp_pool_get(run->pool, &run->area[DP_AREA_IDS], most * 8))
        return false;
    m->values = run->area[DP_AREA_VALUES].data;
    m->ids = run->area[DP_AREA_IDS].data;
    return !timed || (m->times = malloc(most * 8 + 8));
}

void dp_merged_free(dp_merged *m) {
    free(m->owner);
    free(m->times);
    dp_buffer_free(&m->lists);
    dp_buffer_free(&m->listed);
}

/* ---- owners of one number ---- */

/* Merges ascending owners into those gathered so far, from the end. */
bool dp_merged_gather(dp_merged *m, const dp_run *run, const dp_owners *owners) {
    if (!dp_reserve(&m->owner, &m->owner_room, m->owners + owners->count, sizeof *m->owner))
        return false;
    size_t alive = 0;
    for (uint64_t i = 0; i < owners->count; i++)
        alive += !dp_run_is_dead(run, owners->slot + i);
    size_t to = m->owners + alive, old = m->owners;
    m->owners = to;
    for (uint64_t i = owners->count; i-- > 0;) {
        if (dp_run_is_dead(run, owners->slot + i))
            continue;
        while (old && m->owner[old - 1].owner > owners->owner[i])
            m->owner[--to] = m->owner[--old];
        m->owner[--to] = (dp_owner_time){owners->owner[i], dp_run_expires(run, owners->slot + i)};
    }
    return true;
}

static bool add_number(dp_buffer *buffer, uint64_t number) {
    return dp_buffer_add(buffer, &number, sizeof number);
}

static bool get_shared(dp_merged *m) {
    if (m->shared)
        return true;
    if (!dp_area_get(&m->run->area[DP_AREA_SHARED], m->shared_words * 8))
        return false;
    m->shared = m->run->area[DP_AREA_SHARED].data;
    memset(m->shared, 0, m->shared_words * 8);
    return true;
}

static bool give_list(dp_merged *m, uint64_t position) {
    if (!get_shared(m) || !add_number(&m->lists, m->owners))
        return false;
    m->ids[position] = m->lists.size / 8 - 1;
    m->shared[position / 64] |= (uint64_t)1 << (position % 64);
    bool good = !m->times || add_number(&m->listed, 0);
    for (size_t i = 0; i < m->owners && good; i++) {
        good = add_number(&m->lists, m->owner[i].owner);
        if (m->times && good)
            good = add_number(&m->listed, m->owner[i].expires);
    }
    return good;
}

bool dp_merged_give(dp_merged *m, const uint64_t *number) {
    uint64_t position = m->run->count;
    memcpy(m->values + position * (uint64_t)m->words, number, (size_t)m->words * 8);
    m->run->count++;
    if (m->owners > 1) {
        if (m->times)
            m->times[position] = 0;
        return give_list(m, position);
    }
    m->ids[position] = m->owner[0].owner;
    if (m->times)
        m->times[position] = m->owner[0].expires;
    return true;
}

/* ---- as they stand ---- */

void dp_merged_give_stretch(dp_merged *m, const uint64_t *numbers, const uint64_t *owners, uint64_t count) {
    uint64_t position = m->run->count;
    memcpy(m->values + position * (uint64_t)m->words, numbers, count * (size_t)m->words * 8);
    memcpy(m->ids + position, owners, count * 8);
    if (m->times)
        memset(m->times + position, 0, count * 8);
    m->run->count += count;
}

/* ---- the end ---- */

/* Times by position and times of lists become one column. */
static bool join_times(dp_merged *m) {
    dp_run *run = m->run;
    uint64_t *times = realloc(m->times, dp_run_slots(run) * 8 + 8);
    if (!times)
        return false;
    m->times = NULL;
    if (m->listed.size)
        memcpy(times + run->count, m->listed.data, m->listed.size);
    run->expires_memory = times;
    atomic_init(&run->expires, (_Atomic uint64_t *)(void *)times);
    return true;
}

bool dp_merged_finish(dp_merged *m) {
    dp_run *run = m->run;
    run->list_count = m->lists.size / 8;
    if (m->times && !join_times(m))
        return false;
    dp_pool_trim(run->pool, &run->area[DP_AREA_VALUES], run->count * (size_t)m->words * 8);
    dp_pool_trim(run->pool, &run->area[DP_AREA_IDS], run->count * 8);
    run->area[DP_AREA_LISTS] = (dp_area){m->lists.data, m->lists.size, 0};
    m->lists = (dp_buffer){0};
    run->values = m->values;
    run->ids = m->ids;
    run->lists = run->area[DP_AREA_LISTS].data;
    run->shared = m->shared;
    return true;
}
