/* memory.c - memory of runs: from the heap while small, else mappings with huge pages, which make looking up something
 * in a table of hundreds of megabytes about one and a half times faster. */
#include "hamming/run.h"

#include <stdlib.h>
#include <sys/mman.h>

/* A huge page of the common machines. Blocks of two and more are mapped, so that at most half of one is lost. */
#define HUGE_PAGE ((size_t)2 << 20)
#define MAPPED_FROM (2 * HUGE_PAGE)
#define CACHE_LINE ((size_t)64)

/* Blocks up to this size are used again. Larger ones are given back at once, and of smaller ones no more than twice as
 * much is kept: large runs are rarely made, and memory that lies idle is lost to others. */
#define POOLED_MOST ((size_t)32 << 20)

static size_t round_up(size_t size, size_t unit) {
    return (size + unit - 1) / unit * unit;
}

/* A mapping that begins at a huge page: more is asked for, and both ends are given back. */
static void *map_aligned(size_t size) {
    size_t asked = size + HUGE_PAGE;
    char *data = mmap(NULL, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
    size_t before = round_up((uintptr_t)data, HUGE_PAGE) - (uintptr_t)data;
    if (before)
        munmap(data, before);
    if (before < HUGE_PAGE)
        munmap(data + before + size, HUGE_PAGE - before);
    madvise(data + before, size, MADV_HUGEPAGE); /* a wish: nothing depends on it */
    return data + before;
}

bool dp_memory_alloc(dp_memory *block, size_t size) {
    *block = (dp_memory){0};
    if (size > SIZE_MAX / 2)
        return false;
    if (size >= MAPPED_FROM) {
        block->mapped = round_up(size, HUGE_PAGE);
        block->data = map_aligned(block->mapped);
    } else {
        block->data = aligned_alloc(CACHE_LINE, round_up(size ? size : 1, CACHE_LINE));
    }
    if (!block->data) {
        *block = (dp_memory){0}; /* nothing to free, and nothing for a pool to keep */
        return false;
    }
    block->size = size;
    return true;
}

/* Gives back what lies beyond `size`, as far as the system allows. */
static void memory_trim(dp_memory *block, size_t size) {
    size_t keep = round_up(size ? size : 1, HUGE_PAGE);
    if (keep < block->mapped) {
        munmap((char *)block->data + keep, block->mapped - keep);
        block->mapped = keep;
    }
    if (size < block->size)
        block->size = size;
}

void dp_memory_free(dp_memory *block) {
    if (block->mapped)
        munmap(block->data, block->mapped);
    else
        free(block->data);
    *block = (dp_memory){0};
}

/* ---- blocks that are used again ---- */

/* The next power of two: a run is mostly followed by one somewhat larger. What is not written takes no memory. */
static size_t pooled_size(size_t size) {
    size_t room = MAPPED_FROM;
    while (room < size)
        room *= 2;
    return room;
}

bool dp_memory_pool_get(dp_memory_pool *pool, dp_memory *block, size_t size) {
    if (!pool || size < MAPPED_FROM || size > POOLED_MOST)
        return dp_memory_alloc(block, size);
    for (int i = 0; i < DP_MEMORY_POOL_ROOM; i++) {
        dp_memory *kept = &pool->block[i];
        if (kept->mapped >= size) {
            *block = *kept;
            block->size = size;
            *kept = (dp_memory){0};
            return true;
        }
    }
    bool got = dp_memory_alloc(block, pooled_size(size));
    block->size = size;
    return got;
}

void dp_memory_pool_put(dp_memory_pool *pool, dp_memory *block) {
    size_t kept = 0;
    for (int i = 0; pool && i < DP_MEMORY_POOL_ROOM; i++)
        kept += pool->block[i].mapped;
    bool keeps = block->mapped && block->mapped <= POOLED_MOST && kept + block->mapped <= 2 * POOLED_MOST;
    for (int i = 0; pool && keeps && i < DP_MEMORY_POOL_ROOM; i++)
        if (!pool->block[i].data) {
            pool->block[i] = *block;
            *block = (dp_memory){0};
            return;
        }
    dp_memory_free(block);
}

void dp_memory_pool_trim(const dp_memory_pool *pool, dp_memory *block, size_t size) {
    if (!pool || block->mapped > POOLED_MOST)
        memory_trim(block, size);
}

void dp_memory_pool_free(dp_memory_pool *pool) {
    for (int i = 0; i < DP_MEMORY_POOL_ROOM; i++)
        dp_memory_free(&pool->block[i]);
}
