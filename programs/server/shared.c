/* shared.c - of an index in a store that several processes share: whether it answers, and its figures. */
#include "server/indexes.h"

bool index_is_away(index_entry *entry) {
    return entry->shared && watch_is_away(&entry->watch);
}

void indexes_stop_waiting(indexes *all) {
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->count; i++)
        doppel_engine_stop_waiting(all->list[i]->engine);
    pthread_mutex_unlock(&all->lock);
}

void index_stats(index_entry *entry, doppel_engine_stats *stats) {
    if (entry->unavailable)
        *stats = (doppel_engine_stats){0};
    else if (entry->shared)
        watch_stats(&entry->watch, stats);
    else
        doppel_engine_get_stats(entry->engine, stats);
}
