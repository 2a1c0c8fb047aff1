/* query_copy.c - a query that outlives its asker, in one block: the query, its numbers, then its bytes. */
#include "engine/query.h"

#include <stdlib.h>

/* Copies bytes to *at, which moves behind them; gives where they are. NULL stays NULL. */
static const void *place(char **at, const void *bytes, size_t length) {
    char *to = *at;
    if (!bytes)
        return NULL;
    if (length)
        memcpy(to, bytes, length);
    *at += length;
    return to;
}

dp_query *dp_query_copy(const dp_query *query) {
    size_t set_bytes = query->set_count * sizeof *query->set, key_bytes = query->key_count * sizeof *query->keys;
    dp_query *copy = malloc(sizeof *copy + set_bytes + key_bytes + query->id.length + query->url.length +
                            query->canonical.length + query->title.length + query->title_key.length +
                            query->fields.length + query->text.length + query->origin.length + query->sample.length);
    if (!copy)
        return NULL;
    *copy = *query;
    /* The widest numbers come first, so that all stand where they must. */
    char *at = (char *)(copy + 1);
    copy->set = place(&at, query->set, set_bytes);
    copy->keys = place(&at, query->keys, key_bytes);
    doppel_slice *slice[] = {&copy->id,     &copy->url,  &copy->canonical, &copy->title, &copy->title_key,
                             &copy->fields, &copy->text, &copy->origin,    &copy->sample};
    for (size_t i = 0; i < sizeof slice / sizeof *slice; i++)
        slice[i]->data = place(&at, slice[i]->data, slice[i]->length);
    return copy;
}
