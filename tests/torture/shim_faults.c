/* shim_faults.c - makes calls fail: the n-th one, all from the n-th one on, or each n-th. Has the functions that give
 * memory and threads. */
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

static struct {
    _Atomic int kinds;
    _Atomic uint64_t calls;
    uint64_t n;
    int reason;
    fault_when when;
} faults;

void shim_arm(int kinds, uint64_t n, int reason, fault_when when) {
    faults.calls = 0;
    faults.n = n;
    faults.reason = reason;
    faults.when = when;
    faults.kinds = kinds;
}

static _Thread_local bool in_pause;

void shim_pause(bool paused) {
    in_pause = paused;
}

uint64_t shim_disarm(void) {
    faults.kinds = 0;
    return faults.calls;
}

static bool is_turn(uint64_t call) {
    if (!faults.n)
        return false;
    if (faults.when == FAULT_EVERY)
        return call % faults.n == 0;
    return faults.when == FAULT_FROM ? call >= faults.n : call == faults.n;
}

bool shim_refuses(int kind) {
    if (in_pause || !(faults.kinds & kind) || !is_turn(atomic_fetch_add(&faults.calls, 1) + 1))
        return false;
    errno = kind & (FAULT_MEMORY | FAULT_MAP) ? ENOMEM : faults.reason;
    return true;
}

/* ---- memory: what the C library calls its own functions by ---- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
    return shim_refuses(FAULT_MEMORY) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return shim_refuses(FAULT_MEMORY) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    return shim_refuses(FAULT_MEMORY) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return shim_refuses(FAULT_MEMORY) ? NULL : __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size) {
    return shim_refuses(FAULT_MEMORY) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **made, size_t alignment, size_t size) {
    void *memory = shim_refuses(FAULT_MEMORY) ? NULL : __libc_memalign(alignment, size);
    if (!memory)
        return ENOMEM;
    *made = memory;
    return 0;
}

/* ---- threads ---- */

static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* Before anything fails: looking for it takes memory. */
__attribute__((constructor)) static void find_create(void) {
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *given) {
    return shim_refuses(FAULT_THREAD) ? EAGAIN : create(thread, attributes, run, given);
}
