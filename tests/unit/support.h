/* support.h - what tests of measures and kernels share: random numbers that repeat, and memory that ends at a page
 * which must not be read. */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* SplitMix64: one state gives one sequence. */
static inline uint64_t random_next(uint64_t *state) {
    uint64_t x = *state += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* A number below `limit`. */
static inline size_t random_below(uint64_t *state, size_t limit) {
    return (size_t)(random_next(state) % limit);
}

/* Whether this is a run of `make test-full`. */
static inline bool full_suite(void) {
    const char *suite = getenv("DOPPEL_SUITE");
    return suite && !strcmp(suite, "full");
}

/* How many times smaller sizes become under a sanitizer, where nothing depends on them. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SMALLER = 5 };
#else
enum { SMALLER = 1 };
#endif

/* Goes through the variants of a kernel that this CPU can run, best first, the portable one last. */
#define EACH_VARIANT(kernel, variant)                                                                      \
    for (const dp_##kernel##_variant *variant = dp_##kernel##_variants, *behind = NULL; variant != behind; \
         behind = variant->needs ? NULL : variant + 1, variant++)                                          \
        if (variant->needs <= dp_cpu_best())

/* What threads other than the test's own expect: the last that was not so stands in s->wrong, an
 * _Atomic(const char *). */
#define EXPECT(s, what)                                                   \
    do {                                                                  \
        if (!(what))                                                      \
            atomic_store(&(s)->wrong, "line " LINE(__LINE__) ": " #what); \
    } while (0)
#define LINE(number) LINE_TEXT(number)
#define LINE_TEXT(number) #number

/* Pages of memory with a page behind them that no one may touch. */
typedef struct guarded {
    char *pages;
    size_t size;
} guarded;

static inline guarded guarded_create(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
    char *pages = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + whole, page, PROT_NONE), 0);
    return (guarded){pages, whole};
}

/* The last `size` bytes before the guard, filled with a copy of `bytes` (if any). */
static inline void *guarded_copy(guarded memory, const void *bytes, size_t size) {
    char *at = memory.pages + memory.size - size;
    if (bytes && size)
        memcpy(at, bytes, size);
    return at;
}

static inline void guarded_free(guarded memory) {
    munmap(memory.pages, memory.size + (size_t)sysconf(_SC_PAGESIZE));
}

#endif
