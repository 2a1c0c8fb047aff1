/* id_list.h - a growing list of ids: 8 bytes and its own bytes each. */
#ifndef SHARED_ID_LIST_H
#define SHARED_ID_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero is empty. */
typedef struct id_list {
    char *bytes; /* of all ids, one after the other */
    size_t bytes_room;
    uint64_t *ends; /* where each ends in them */
    size_t count, room;
} id_list;

/* Appends an id; false when there is no memory. */
bool ids_add(id_list *ids, const char *id, size_t length);
void ids_free(id_list *ids);

static inline const char *ids_get(const id_list *ids, uint64_t i, size_t *length) {
    uint64_t start = i ? ids->ends[i - 1] : 0;
    *length = (size_t)(ids->ends[i] - start);
    return ids->bytes + start;
}

/* Makes room for `count` items of `size` bytes; false, with everything unchanged, when there is no memory. */
bool make_room(void *array, size_t *room, size_t count, size_t size);

#endif
