/* calls.c - long calls. The work runs on a thread of its own while the calling thread, without the GIL, waits for its
 * end; every WAKE_MS it takes the GIL to run Python's signal handlers and, every second time, to report progress.
 * Python runs signal handlers on its main thread alone, so that the work cannot run there: Ctrl-C would wait for it.
 *
 * All state is on the stack of the caller, which always joins the thread. A process forked during a call has neither.
 */
#include "module.h"

#include <pthread.h>
#include <time.h>

/* Signals are served at this interval, well below what a person notices, and progress at twice that. */
enum { WAKE_MS = 50 };

typedef struct running_call {
    doppel_status (*work)(void *argument);
    void *argument;
    doppel_status status;
    bool done;
    pthread_mutex_t mutex; /* of `done` */
    pthread_cond_t ended;
} running_call;

static void *run_work(void *argument) {
    running_call *running = argument;
    running->status = running->work(running->argument);
    pthread_mutex_lock(&running->mutex);
    running->done = true;
    pthread_cond_signal(&running->ended);
    pthread_mutex_unlock(&running->mutex);
    return NULL;
}

/* Waits for the end of the work, or WAKE_MS; gives whether it has ended. */
static bool wait_a_while(running_call *running) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAKE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    int timed_out = 0;
    pthread_mutex_lock(&running->mutex);
    while (!running->done && !timed_out)
        timed_out = pthread_cond_timedwait(&running->ended, &running->mutex, &until);
    bool done = running->done;
    pthread_mutex_unlock(&running->mutex);
    return done;
}

bool report_progress(long_call *call) {
    uint64_t total = atomic_load(&call->total), done = atomic_load(&call->done);
    if (!call->progress || call->progress == Py_None || !total)
        return true;
    PyObject *result = PyObject_CallFunction(call->progress, "KK", (unsigned long long)done, (unsigned long long)total);
    Py_XDECREF(result);
    return result;
}

/* Waits with the GIL released, but for signals and progress; gives false when one of them raised, and then has set
 * `stop`. */
static bool wait_for_end(long_call *call, running_call *running) {
    bool fine = true;
    for (unsigned wakes = 1;; wakes++) {
        bool done;
        Py_BEGIN_ALLOW_THREADS;
        done = wait_a_while(running);
        Py_END_ALLOW_THREADS;
        if (done)
            return fine;
        if (fine && (PyErr_CheckSignals() < 0 || (wakes % 2 == 0 && !report_progress(call)))) {
            call->stop = 1;
            fine = false;
        }
    }
}

/* Starts the thread; false: it cannot be started. The wait goes by a clock that does not jump. */
static bool start(running_call *running, pthread_t *thread) {
    pthread_condattr_t by_clock;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&running->mutex, NULL);
    pthread_cond_init(&running->ended, &by_clock);
    pthread_condattr_destroy(&by_clock);
    return pthread_create(thread, NULL, run_work, running) == 0;
}

doppel_status run_long_call(long_call *call, doppel_status (*work)(void *argument), void *argument) {
    running_call running = {.work = work, .argument = argument};
    pthread_t thread;
    bool fine = true;
    if (start(&running, &thread)) {
        fine = wait_for_end(call, &running);
        pthread_join(thread, NULL);
    } else {
        Py_BEGIN_ALLOW_THREADS;
        run_work(&running);
        Py_END_ALLOW_THREADS;
    }
    pthread_cond_destroy(&running.ended);
    pthread_mutex_destroy(&running.mutex);
    if (fine && running.status == DOPPEL_OK)
        fine = report_progress(call);
    return fine ? running.status : DOPPEL_ERROR_INTERRUPTED;
}
