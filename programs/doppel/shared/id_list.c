/* id_list.c - a growing list of ids. */
#include "shared/id_list.h"

#include <stdlib.h>
#include <string.h>

bool make_room(void *array, size_t *room, size_t count, size_t size) {
    void *old, *grown;
    if (count <= *room)
        return true;
    size_t wanted = *room + *room / 2 > count ? *room + *room / 2 : count + 15;
    if (wanted > SIZE_MAX / size)
        return false;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, wanted * size);
    if (!grown)
        return false;
    memcpy(array, &grown, sizeof grown);
    *room = wanted;
    return true;
}

bool ids_add(id_list *ids, const char *id, size_t length) {
    size_t used = ids->count ? (size_t)ids->ends[ids->count - 1] : 0;
    if (!make_room(&ids->ends, &ids->room, ids->count + 1, sizeof *ids->ends) ||
        !make_room(&ids->bytes, &ids->bytes_room, used + length, 1))
        return false;
    if (length)
        memcpy(ids->bytes + used, id, length);
    ids->ends[ids->count++] = used + length;
    return true;
}

void ids_free(id_list *ids) {
    free(ids->bytes);
    free(ids->ends);
    *ids = (id_list){0};
}
