/* faults.h - fail the n-th allocation, or the n-th call to the system, for all n.
 *
 * The linker sends the library's calls here (--wrap, tests/CMakeLists.txt), libcrypto's allocations come by its own
 * hook. A scenario is run until it has met no more faults. */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include "support.h"

#include "doppel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

/* ---- faults ---- */

/* Kinds of calls that can fail; or them together. */
enum { MEMORY = 1, SYSTEM = 2, CRYPTO = 4, FILES = 8, THREADS = 16 };

static struct {
    int kinds;
    _Atomic size_t calls;
    size_t fail_at;
    bool go_on;             /* all calls from that one on fail */
    bool die;               /* that call ends the process, with DIED */
    _Atomic ptrdiff_t live; /* allocations of the library that were not freed, and bytes that stay mapped */
} faults;

enum { DIED = 7 };

static bool fails(int kind) {
    if (!(faults.kinds & kind))
        return false;
    size_t call = atomic_fetch_add(&faults.calls, 1) + 1;
    if (faults.die && call == faults.fail_at)
        _exit(DIED);
    return faults.go_on ? call >= faults.fail_at : call == faults.fail_at;
}

/* Declares the function behind a wrapped one, and the one that takes its place. */
#define WRAP(result, name, arguments) \
    result __real_##name arguments;   \
    result __wrap_##name arguments;   \
    result __wrap_##name arguments

/* ---- memory ---- */

WRAP(void *, malloc, (size_t size)) {
    void *made = fails(MEMORY) ? NULL : __real_malloc(size);
    faults.live += made != NULL;
    return made;
}

WRAP(void *, calloc, (size_t count, size_t size)) {
    void *made = fails(MEMORY) ? NULL : __real_calloc(count, size);
    faults.live += made != NULL;
    return made;
}

WRAP(void *, realloc, (void *old, size_t size)) {
    void *made = fails(MEMORY) ? NULL : __real_realloc(old, size);
    faults.live += made && !old;
    return made;
}

WRAP(void *, aligned_alloc, (size_t alignment, size_t size)) {
    void *made = fails(MEMORY) ? NULL : __real_aligned_alloc(alignment, size);
    faults.live += made != NULL;
    return made;
}

WRAP(char *, strdup, (const char *text)) {
    char *made = fails(MEMORY) ? NULL : __real_strdup(text);
    faults.live += made != NULL;
    return made;
}

WRAP(char *, strndup, (const char *text, size_t length)) {
    char *made = fails(MEMORY) ? NULL : __real_strndup(text, length);
    faults.live += made != NULL;
    return made;
}

WRAP(void, free, (void *given)) {
    faults.live -= given != NULL;
    __real_free(given);
}

WRAP(XXH3_state_t *, XXH3_createState, (void)) {
    return fails(MEMORY) ? NULL : __real_XXH3_createState();
}

static ptrdiff_t whole_pages(size_t length) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (ptrdiff_t)((length + page - 1) / page * page);
}

/* A mapping without a file is memory. */
WRAP(void *, mmap, (void *at, size_t length, int protection, int flags, int number, off_t offset)) {
    if (fails(flags & MAP_ANONYMOUS ? MEMORY : SYSTEM)) {
        errno = flags & MAP_ANONYMOUS ? ENOMEM : ENOSPC;
        return MAP_FAILED;
    }
    void *made = __real_mmap(at, length, protection, flags, number, offset);
    if (made != MAP_FAILED)
        faults.live += whole_pages(length);
    return made;
}

WRAP(int, munmap, (void *at, size_t length)) {
    faults.live -= whole_pages(length);
    return __real_munmap(at, length);
}

/* ---- the system, which has a reason ---- */

static bool refuses(int kind) {
    if (!fails(kind))
        return false;
    errno = ENOSPC;
    return true;
}

WRAP(FILE *, fdopen, (int number, const char *mode)) {
    return refuses(SYSTEM) ? NULL : __real_fdopen(number, mode);
}

WRAP(int, fflush, (FILE * file)) {
    return refuses(SYSTEM) ? EOF : __real_fflush(file);
}

/* A file is closed even when that says it failed. */
WRAP(int, fclose, (FILE * file)) {
    int closed = __real_fclose(file);
    return refuses(SYSTEM) ? EOF : closed;
}

WRAP(int, fsync, (int number)) {
    return refuses(SYSTEM) ? -1 : __real_fsync(number);
}

WRAP(int, rename, (const char *from, const char *to)) {
    return refuses(SYSTEM) ? -1 : __real_rename(from, to);
}

WRAP(char *, mkdtemp, (char *name)) {
    return refuses(SYSTEM) ? NULL : __real_mkdtemp(name);
}

/* ---- files and threads ---- */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode) {
    return refuses(FILES) ? -1 : __real_open(path, flags, flags & (O_CREAT | O_TMPFILE) ? mode : 0);
}

WRAP(ssize_t, pwrite, (int number, const void *bytes, size_t length, off_t at)) {
    return refuses(FILES) ? -1 : __real_pwrite(number, bytes, length, at);
}

WRAP(ssize_t, pread, (int number, void *bytes, size_t length, off_t at)) {
    return refuses(FILES) ? -1 : __real_pread(number, bytes, length, at);
}

WRAP(int, pthread_create, (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *given)) {
    return fails(THREADS) ? EAGAIN : __real_pthread_create(thread, attributes, run, given);
}

/* ---- running into them ---- */

/* Does something from beginning to end, frees what it made, and gives what came of it. */
typedef doppel_status (*scenario)(uint64_t *result);

/* Which calls fail, and what a scenario may say then. */
typedef struct fault_plan {
    int kinds;
    bool go_on;
    doppel_status expected;
    bool may_pass; /* a fault may be harmless */
    bool sparse;   /* many calls: beyond the first, every 50th is enough for a quick run */
} fault_plan;

static inline doppel_status run_into(scenario run, const fault_plan *plan, size_t n, uint64_t *result) {
    faults.kinds = plan->kinds;
    faults.calls = 0;
    faults.fail_at = n;
    faults.go_on = plan->go_on;
    *result = 0;
    doppel_status status = run(result);
    faults.kinds = 0;
    return status;
}

static inline void run_with(scenario run, fault_plan plan) {
    uint64_t truth = 0, result = 0;
    assert_int_equal(run(&truth), DOPPEL_OK);
    ptrdiff_t live = faults.live;
    for (size_t n = 1;; n += (plan.sparse || SMALLER > 1) && n > 50 / SMALLER && !full_suite() ? 50 : 1) {
        doppel_status status = run_into(run, &plan, n, &result);
        bool met = faults.calls >= n;
        assert_int_equal(faults.live, live);
        if (status == DOPPEL_OK)
            assert_int_equal(result, truth);
        else if (plan.kinds != CRYPTO || status != DOPPEL_ERROR_USAGE)
            assert_int_equal(status,
                             plan.expected); /* a hash libcrypto has no memory to find is one it does not know */
        /* It is as if nothing had happened. */
        result = 0;
        assert_int_equal(run(&result), DOPPEL_OK);
        assert_int_equal(result, truth);
        assert_int_equal(faults.live, live);
        if (!met)
            return;
        assert_true(status != DOPPEL_OK || plan.may_pass);
    }
}

/* What a test looks at between two faults does not fail. */
static inline int pause_faults(void) {
    int kinds = faults.kinds;
    faults.kinds = 0;
    return kinds;
}

static inline void resume_faults(int kinds) {
    faults.kinds = kinds;
}

static inline uint64_t mixed(uint64_t result, uint64_t number) {
    return result * 0x9E3779B97F4A7C15u + number;
}

#endif
