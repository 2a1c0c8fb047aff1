/* machine.h - services of the machine: threads, the clock, memory, temporary files. */
#ifndef DP_MACHINE_H
#define DP_MACHINE_H

#include "doppel.h"

#include <pthread.h>

/* The number of threads to use: `asked` (up to DP_MAX_THREADS), or for 0 one for each CPU of this
 * process. */
enum { DP_MAX_THREADS = 1024 };
size_t dp_thread_count(int asked);

/* Starts a thread that blocks all signals, so that they go to the threads of the caller; false: the system refuses. */
bool dp_thread_start(pthread_t *thread, void *(*run)(void *user), void *user);

/* Calls work(user, 0) ... work(user, threads - 1), each on its own thread, including the calling one, and waits for
 * all. If the system refuses a thread, the calling one does its share: every number is called exactly once, but then
 * possibly one after the other, so none may wait for another. Signals go to the calling thread. */
void dp_run_threads(size_t threads, void (*work)(void *user, size_t thread), void *user);

/* ---- the clock ---- */

/* Seconds of a monotonic clock, for durations. */
double dp_seconds(void);

/* Seconds since 1970, by the system clock, which may be set. */
uint64_t dp_wall_seconds(void);

void dp_sleep(double seconds);

/* ---- memory and random numbers ---- */

/* Half of the free memory, in bytes; at least 64 MiB. */
uint64_t dp_memory_default(void);

/* Memory for a big table or buffer, aligned to 64 bytes, in huge pages if it is large; free() it. NULL when out of
 * memory. Its content is undefined. */
void *dp_big_alloc(size_t bytes);

/* An unpredictable number, never 0. */
uint64_t dp_random_number(void);

/* Unpredictable bytes. Errors: DOPPEL_ERROR_IO where the system gives none. */
doppel_status dp_random_bytes(void *to, size_t length, doppel_error *error);

/* Whether *stop (stop may be NULL) asks to end. */
static inline bool dp_stopped(const volatile int *stop) {
    return stop && __atomic_load_n(stop, __ATOMIC_RELAXED);
}

/* ---- temporary files ---- */

/* A file in `tmp` (NULL: TMPDIR, else /tmp) that has no name, and is removed when it is closed. Zero is none. */
typedef struct dp_scratch {
    bool open;
    int fd;
    uint64_t size;
    char folder[256]; /* for messages */
} dp_scratch;

doppel_status dp_scratch_open(dp_scratch *scratch, const char *tmp, doppel_error *error);
void dp_scratch_close(dp_scratch *scratch);

/* Several threads may write and read at different offsets. A write beyond `size` does not change it: the caller that
 * assigns offsets does. */
doppel_status dp_scratch_write(const dp_scratch *scratch, const void *bytes, size_t length, uint64_t at,
                               doppel_error *error);
doppel_status dp_scratch_read(const dp_scratch *scratch, void *bytes, size_t length, uint64_t at, doppel_error *error);

#endif
