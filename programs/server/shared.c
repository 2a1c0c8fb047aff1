/* shared.c - of an index in a store that several processes share: whether it answers, and its figures. */
#include "server/indexes.h"

bool index_is_away(index_entry *entry) {
    return entry->shared && watch_is_away(&entry->watch);
}

void index_stats(index_entry *entry, doppel_engine_stats *stats) {
    if (entry->shared)
        watch_stats(&entry->watch, stats);
    else
        doppel_engine_get_stats(entry->engine, stats);
}
