/* keys_memory.c - memory of slots. Segments grow at about the same time, each by a little: on a heap they would leave
 * holes behind that are too small for the next. What is large is mapped, and goes back as a whole. */
#include "engine/keys_table.h"

#include <stdlib.h>
#include <sys/mman.h>

void *dp_slots_get(size_t bytes) {
    if (bytes < DP_SLOTS_MAPPED)
        return calloc(1, bytes);
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

void dp_slots_free(void *slots, size_t bytes) {
    if (bytes < DP_SLOTS_MAPPED)
        free(slots);
    else
        munmap(slots, bytes);
}
