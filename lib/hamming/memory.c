/* memory.c - memory of runs: from the heap while small, else mappings with huge pages, which make lookups in a table of
 * hundreds of megabytes about one and a half times faster. */
#include "hamming/run.h"

#include <stdlib.h>
#include <sys/mman.h>

/* A huge page of the common machines. Blocks of two and more are mapped, so that at most half of one is lost. */
#define HUGE_PAGE ((size_t)2 << 20)
#define MAPPED_FROM (2 * HUGE_PAGE)
#define CACHE_LINE ((size_t)64)

static size_t round_up(size_t size, size_t unit) {
    return (size + unit - 1) / unit * unit;
}

/* A mapping aligned to a huge page: it maps more, and unmaps both ends. */
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
    madvise(data + before, size, MADV_HUGEPAGE); /* a hint: nothing depends on it */
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
        *block = (dp_memory){0}; /* nothing to free */
        return false;
    }
    block->size = size;
    return true;
}

void dp_memory_trim(dp_memory *block, size_t size) {
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
