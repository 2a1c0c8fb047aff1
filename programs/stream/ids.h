/* ids.h - the pages of a part by their ids: which came already? They are borrowed. */
#ifndef STREAM_IDS_H
#define STREAM_IDS_H

#include "doppel.h"

typedef struct id_set {
    const doppel_document **slots; /* NULL: free */
    size_t room;                   /* a power of two, at least twice as many as there will be */
} id_set;

bool id_set_open(id_set *set, size_t count); /* false: no memory */
void id_set_clear(id_set *set);
void id_set_free(id_set *set);

bool id_set_has(const id_set *set, const char *id, size_t length);

/* The page that came first with the id of this one; NULL: this is it. */
const doppel_document *id_set_add(id_set *set, const doppel_document *page);

#endif
