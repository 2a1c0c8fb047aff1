/* shim_clock.c - a system's clock that is wrong, by as much as the program says. */
#include "shim.h"

#include <stdatomic.h>
#include <time.h>

static _Atomic long wrong_by;

void shim_clock(long seconds) {
    wrong_by = seconds;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time_t told = now.tv_sec + wrong_by;
    if (at)
        *at = told;
    return told;
}
