/* memory.c - memory of runs: from the heap while small, else mappings with huge pages, which make looking up something
 * in a table of hundreds of megabytes about one and a half times faster. */
#include "hamming/run.h"

#include <stdlib.h>
#include <sys/mman.h>

/* A huge page of the common machines. Areas of two and more are mapped, so that at most half of one is lost. */
#define HUGE_PAGE ((size_t)2 << 20)
#define MAPPED_FROM (2 * HUGE_PAGE)
#define CACHE_LINE ((size_t)64)

/* Areas up to this size are used again. Larger ones are given back at once, and of smaller ones no more than twice as
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

bool dp_area_get(dp_area *area, size_t size) {
    *area = (dp_area){0};
    if (size > SIZE_MAX / 2)
        return false;
    if (size >= MAPPED_FROM) {
        area->mapped = round_up(size, HUGE_PAGE);
        area->data = map_aligned(area->mapped);
    } else {
        area->data = aligned_alloc(CACHE_LINE, round_up(size ? size : 1, CACHE_LINE));
    }
    if (!area->data) {
        *area = (dp_area){0}; /* nothing to free, and nothing for a pool to keep */
        return false;
    }
    area->size = size;
    return true;
}

/* Gives back what lies beyond `size`, as far as the system allows. */
static void area_trim(dp_area *area, size_t size) {
    size_t keep = round_up(size ? size : 1, HUGE_PAGE);
    if (keep < area->mapped) {
        munmap((char *)area->data + keep, area->mapped - keep);
        area->mapped = keep;
    }
    if (size < area->size)
        area->size = size;
}

void dp_area_free(dp_area *area) {
    if (area->mapped)
        munmap(area->data, area->mapped);
    else
        free(area->data);
    *area = (dp_area){0};
}

/* ---- areas that are used again ---- */

/* The next power of two: a run is mostly followed by one somewhat larger. What is not written takes no memory. */
static size_t pooled_size(size_t size) {
    size_t room = MAPPED_FROM;
    while (room < size)
        room *= 2;
    return room;
}

bool dp_pool_get(dp_pool *pool, dp_area *area, size_t size) {
    if (!pool || size < MAPPED_FROM || size > POOLED_MOST)
        return dp_area_get(area, size);
    for (int i = 0; i < DP_POOL_ROOM; i++) {
        dp_area *kept = &pool->area[i];
        if (kept->mapped >= size) {
            *area = *kept;
            area->size = size;
            *kept = (dp_area){0};
            return true;
        }
    }
    bool got = dp_area_get(area, pooled_size(size));
    area->size = size;
    return got;
}

void dp_pool_give(dp_pool *pool, dp_area *area) {
    size_t kept = 0;
    for (int i = 0; pool && i < DP_POOL_ROOM; i++)
        kept += pool->area[i].mapped;
    bool keeps = area->mapped && area->mapped <= POOLED_MOST && kept + area->mapped <= 2 * POOLED_MOST;
    for (int i = 0; pool && keeps && i < DP_POOL_ROOM; i++)
        if (!pool->area[i].data) {
            pool->area[i] = *area;
            *area = (dp_area){0};
            return;
        }
    dp_area_free(area);
}

void dp_pool_trim(const dp_pool *pool, dp_area *area, size_t size) {
    if (!pool || area->mapped > POOLED_MOST)
        area_trim(area, size);
}

void dp_pool_free(dp_pool *pool) {
    for (int i = 0; i < DP_POOL_ROOM; i++)
        dp_area_free(&pool->area[i]);
}
