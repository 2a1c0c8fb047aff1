/* redis_arena.c - memory that goes all at once: what commands are made of, what a look has fetched. */
#include "known/redis.h"

#include <stdlib.h>

enum { BLOCK = 65536 };

struct dp_arena_block {
    struct dp_arena_block *next;
    size_t used, room;
    max_align_t bytes[];
};

void *dp_arena_take(dp_arena *arena, size_t length) {
    struct dp_arena_block *block = arena->block;
    if (length > SIZE_MAX / 2)
        return NULL;
    length = (length + 16) & ~(size_t)15;
    if (!block || block->room - block->used < length) {
        size_t room = length > BLOCK ? length : BLOCK;
        if (!(block = malloc(sizeof *block + room)))
            return NULL;
        *block = (struct dp_arena_block){.next = arena->block, .room = room};
        arena->block = block;
    }
    block->used += length;
    return (char *)block->bytes + block->used - length;
}

void dp_arena_free(dp_arena *arena) {
    for (struct dp_arena_block *block = arena->block, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    arena->block = NULL;
}

doppel_slice dp_arena_copy(dp_arena *arena, const void *bytes, size_t length) {
    char *copy = dp_arena_take(arena, length);
    if (copy && length)
        memcpy(copy, bytes, length);
    return (doppel_slice){copy, copy ? length : 0};
}
