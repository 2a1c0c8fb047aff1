/* clock.c - the time. */
#include "common/clock.h"

#include <stdio.h>

uint64_t now_microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

struct timespec milliseconds_from_now(long milliseconds) {
    struct timespec then;
    clock_gettime(CLOCK_REALTIME, &then);
    then.tv_sec += milliseconds / 1000;
    then.tv_nsec += milliseconds % 1000 * 1000000;
    if (then.tv_nsec >= 1000000000) {
        then.tv_sec++;
        then.tv_nsec -= 1000000000;
    }
    return then;
}

const char *format_date(uint64_t seconds, char text[DATE_ROOM]) {
    time_t when = (time_t)seconds;
    struct tm utc;
    if (!gmtime_r(&when, &utc) || !strftime(text, DATE_ROOM, "%Y-%m-%dT%H:%M:%SZ", &utc))
        snprintf(text, DATE_ROOM, "%llu", (unsigned long long)seconds);
    return text;
}
