/* keys_memory.c - memory of slots. Segments grow at about the same time, each by a little: on a heap they would leave
 * holes behind that are too small for the next. What is large is mapped, and goes back as a whole. */
#include "engine/keys_table.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Of a mapping of this size, an eighth is lost to whole pages on the average. */
#define MAPPED_FROM ((size_t)16 << 10)

uint64_t *dp_slots_get(size_t count) {
    if (count > SIZE_MAX / 16)
        return NULL;
    if (count * sizeof(uint64_t) < MAPPED_FROM)
        return calloc(count, sizeof(uint64_t));
    void *mapped = mmap(NULL, count * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

void dp_slots_free(uint64_t *slots, size_t count) {
    if (count * sizeof *slots < MAPPED_FROM)
        free(slots);
    else
        munmap(slots, count * sizeof *slots);
}
