/* machine.c - services of the machine: CPU level, threads, the clock, memory, random bytes, unnamed files. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* ---- the CPU: which kernels it can run. DOPPEL_CPU=portable|avx2|avx512|neon lowers the level, for tests and
 * debugging. */

/* Each level requires everything its kernels use (DP_TARGET_* in kernel.h); AVX-512 begins with Ice Lake and Zen 4. */
int dp_cpu_best(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                __builtin_cpu_supports("popcnt");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
                  __builtin_cpu_supports("avx512bitalg") && __builtin_cpu_supports("avx512vpopcntdq");
    return avx512 ? DP_CPU_AVX512 : avx2 ? DP_CPU_AVX2 : DP_CPU_PORTABLE;
#elif defined(__aarch64__)
    return DP_CPU_NEON;
#else
    return DP_CPU_PORTABLE;
#endif
}

static const char *const level_names[] = {
#if defined(__aarch64__)
    "portable", "neon"
#else
    "portable", "avx2", "avx512"
#endif
};

static int find_level(void) {
    int best = dp_cpu_best();
    const char *wanted = getenv("DOPPEL_CPU");
    for (int level = 0; wanted && level < best; level++)
        if (!strcmp(wanted, level_names[level]))
            return level;
    return best;
}

int dp_cpu_level(void) {
    static _Atomic int level = -1;
    int found = atomic_load_explicit(&level, memory_order_relaxed);
    if (found < 0) {
        found = find_level();
        atomic_store_explicit(&level, found, memory_order_relaxed);
    }
    return found;
}

const char *doppel_cpu_level(void) {
    return level_names[dp_cpu_level()];
}

/* ---- threads ---- */

size_t dp_thread_count(int asked) {
    cpu_set_t cpus;
    if (asked > 0)
        return asked < DP_MAX_THREADS ? (size_t)asked : DP_MAX_THREADS;
    return sched_getaffinity(0, sizeof cpus, &cpus) ? 1 : (size_t)CPU_COUNT(&cpus);
}

bool dp_thread_start(pthread_t *thread, void *(*run)(void *user), void *user) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int refused = pthread_create(thread, NULL, run, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !refused;
}

typedef struct helper {
    pthread_t thread;
    void (*work)(void *user, size_t thread);
    void *user;
    size_t number;
} helper;

static void *helper_main(void *given) {
    helper *h = given;
    h->work(h->user, h->number);
    return NULL;
}

void dp_run_threads(size_t threads, void (*work)(void *user, size_t thread), void *user) {
    helper *helpers = threads > 1 ? calloc(threads - 1, sizeof *helpers) : NULL;
    size_t started = 0;
    for (; helpers && started < threads - 1; started++) {
        helper *h = &helpers[started];
        *h = (helper){.work = work, .user = user, .number = started + 1};
        if (!dp_thread_start(&h->thread, helper_main, h))
            break;
    }
    work(user, 0);
    for (size_t number = started + 1; number < threads; number++)
        work(user, number);
    while (started)
        pthread_join(helpers[--started].thread, NULL);
    free(helpers);
}

/* ---- the clock ---- */

double dp_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

uint64_t dp_wall_seconds(void) {
    return (uint64_t)time(NULL);
}

void dp_sleep(double seconds) {
    time_t whole = (time_t)seconds;
    nanosleep(&(struct timespec){whole, (long)((seconds - (double)whole) * 1e9)}, NULL);
}

/* ---- random numbers ---- */

uint64_t dp_random_number(void) {
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec ^ (uint64_t)(uintptr_t)&seed;
    }
    return seed ? seed : 1;
}

doppel_status dp_random_bytes(void *to, size_t length, doppel_error *error) {
    for (char *next = to; length;) {
        ssize_t got = getrandom(next, length, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return dp_fail(error, DOPPEL_ERROR_IO, "the system gives no random bytes: %s", strerror(errno));
        next += got;
        length -= (size_t)got;
    }
    return DOPPEL_OK;
}

/* ---- memory ---- */

#define LEAST_MEMORY ((uint64_t)64 << 20)

uint64_t dp_memory_default(void) {
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];
    unsigned long long kilobytes = 0;
    while (file && !kilobytes && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) != 1)
            kilobytes = 0;
    if (file)
        fclose(file);
    uint64_t bytes = (uint64_t)kilobytes << 10;
    if (!bytes)
        bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return bytes / 2 < LEAST_MEMORY ? LEAST_MEMORY : bytes / 2;
}

#define HUGE_PAGE ((size_t)2 << 20)

void *dp_big_alloc(size_t bytes) {
    if (bytes > SIZE_MAX - HUGE_PAGE)
        return NULL;
    size_t unit = bytes < 2 * HUGE_PAGE ? 64 : HUGE_PAGE, whole = (bytes + unit - 1) / unit * unit;
    void *made = aligned_alloc(unit, whole ? whole : unit);
    if (made && unit == HUGE_PAGE)
        madvise(made, whole, MADV_HUGEPAGE);
    return made;
}

/* ---- temporary files ---- */

static const char *tmp_folder(const char *tmp) {
    if (!tmp || !*tmp)
        tmp = getenv("TMPDIR");
    return tmp && *tmp ? tmp : "/tmp";
}

/* Some file systems have no unnamed files: there one is created and unlinked at once. */
static int open_nameless(const char *folder) {
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    char *name = NULL;
    if (asprintf(&name, "%s/doppel-XXXXXX", folder) < 0)
        return -1;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    free(name);
    return fd;
}

doppel_status dp_scratch_open(dp_scratch *scratch, const char *tmp, doppel_error *error) {
    const char *folder = tmp_folder(tmp);
    *scratch = (dp_scratch){0};
    snprintf(scratch->folder, sizeof scratch->folder, "%s", folder);
    scratch->fd = open_nameless(folder);
    if (scratch->fd < 0)
        return dp_fail_at(error, DOPPEL_ERROR_IO, folder, 0,
                          "cannot make a temporary file there: %s; choose another folder or give more memory",
                          strerror(errno));
    scratch->open = true;
    return DOPPEL_OK;
}

void dp_scratch_close(dp_scratch *scratch) {
    if (scratch->open)
        close(scratch->fd);
    *scratch = (dp_scratch){0};
}

doppel_status dp_scratch_write(const dp_scratch *scratch, const void *bytes, size_t length, uint64_t at,
                               doppel_error *error) {
    for (const char *from = bytes; length;) {
        ssize_t done = pwrite(scratch->fd, from, length, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return dp_fail_at(error, DOPPEL_ERROR_IO, scratch->folder, 0,
                              "cannot write a temporary file there: %s; make room, choose another folder or give more "
                              "memory",
                              strerror(done ? errno : ENOSPC));
        from += done;
        at += (uint64_t)done;
        length -= (size_t)done;
    }
    return DOPPEL_OK;
}

doppel_status dp_scratch_read(const dp_scratch *scratch, void *bytes, size_t length, uint64_t at, doppel_error *error) {
    for (char *to = bytes; length;) {
        ssize_t done = pread(scratch->fd, to, length, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return dp_fail_at(error, DOPPEL_ERROR_IO, scratch->folder, 0, "cannot read a temporary file there: %s",
                              done ? strerror(errno) : "it was cut short");
        to += done;
        at += (uint64_t)done;
        length -= (size_t)done;
    }
    return DOPPEL_OK;
}
