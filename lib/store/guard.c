/* guard.c - sections of guard.h: a thread's own list of them, and one handler of SIGBUS for all. */
#include "store/guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

static _Thread_local dp_guard *volatile current;
static struct sigaction before;
static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;

/* A thread that blocks all signals would be ended by this one, handler or not. */
static void unblock(void) {
    sigset_t fault;
    sigemptyset(&fault);
    sigaddset(&fault, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &fault, NULL);
}

void dp_guard_push(dp_guard *guard) {
    static _Thread_local bool unblocked;
    if (!unblocked)
        unblock();
    unblocked = true;
    guard->outer = current;
    current = guard;
}

void dp_guard_leave(dp_guard *guard) {
    current = guard->outer;
}

void dp_guard_raise(void) {
    dp_guard *guard = current;
    if (!guard)
        return;
    current = guard->outer;
    siglongjmp(guard->place, 1);
}

/* Not ours: as it would have been without us. With the default handler the access is made again, and ends the process.
 * A handler that was set after ours, and passes on to it, would come back here. */
static void on_fault(int number, siginfo_t *info, void *context) {
    static _Thread_local volatile sig_atomic_t passing;
    dp_guard_raise();
    bool again = passing;
    passing = 1;
    if (again)
        signal(number, SIG_DFL);
    else if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    else
        signal(number, SIG_DFL);
    passing = 0;
}

void dp_guard_install(void) {
    struct sigaction now, ours = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    ours.sa_sigaction = on_fault;
    sigemptyset(&ours.sa_mask);
    pthread_mutex_lock(&installing);
    if (!sigaction(SIGBUS, NULL, &now) && !(now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault)) {
        before = now;
        sigaction(SIGBUS, &ours, NULL);
    }
    pthread_mutex_unlock(&installing);
}
